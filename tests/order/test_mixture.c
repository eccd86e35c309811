/* SPDX-License-Identifier: Apache-2.0 */
#include "order/mixture.h"
#include "order/partition.h"
#include "order/pick.h"
#include "support/test.h"

#include <math.h>
#include <stdlib.h>

static struct pstk__mixture mixture;
static void *memory;

/* A mixture of n data sets by the weights of one segment. */
static void make(const double *weights, const uint64_t *sizes, uint32_t n, uint32_t exhaustion,
                 uint64_t seed)
{
    const struct pstk_mixture_segment segment = {.weights = weights};
    pstk__mixture_make(
        &mixture,
        &(struct pstk_mixture){
            .n_data_sets = n, .segments = &segment, .n_segments = 1, .exhaustion = exhaustion},
        sizes, seed, memory);
}

/* Are the samples of each data set numbered one by one, and its share kept at every prefix?
 * `slack`: what a share may be off for each position. */
static int keeps_shares(const double *weights, uint32_t n, uint64_t n_positions, double slack)
{
    uint64_t delivered[PSTK_MAX_DATA_SETS] = {0};
    double sum = 0;
    for (uint32_t d = 0; d < n; d++)
        sum += weights[d];
    for (uint64_t p = 0; p < n_positions; p++) {
        struct pstk__mixture_sample at;
        pstk__mixture_at(&mixture, p, &at);
        if (at.data_set >= n || at.number != delivered[at.data_set]++)
            return 0;
        for (uint32_t d = 0; d < n; d++) {
            const double wanted = weights[d] / sum * (double)(p + 1);
            if (fabs((double)delivered[d] - wanted) >= 1 + 1e-6 + slack * (double)(p + 1))
                return 0;
            if (weights[d] == 0 && delivered[d] > 0)
                return 0;
        }
    }
    return 1;
}

static const uint64_t many[PSTK_MAX_DATA_SETS] = {[0 ... PSTK_MAX_DATA_SETS - 1] = 1ull << 40};

TEST(shares_hold_at_every_prefix_for_all_small_weights)
{
    for (uint32_t a = 0; a <= 7; a++)
        for (uint32_t b = 0; b <= 7; b++)
            for (uint32_t c = 0; c <= 7; c++)
                for (uint32_t d = 1; d <= 7; d += 3) {
                    const double weights[] = {a, b, c, d};
                    make(weights, many, 4, PSTK_EXHAUSTION_STOP, 0);
                    CHECK(mixture.phases[0].period <= a + b + c + d);
                    CHECK(keeps_shares(weights, 4, 3 * mixture.phases[0].period, 0));
                }
}

TEST(shares_hold_at_every_prefix_for_random_weights)
{
    struct pstk__random r;
    pstk__random_init(&r, &(struct pstk__random_key){.seed = 16});
    for (uint32_t i = 0; i < 12; i++) {
        double weights[PSTK_MAX_DATA_SETS];
        const uint32_t n = 2 + (uint32_t)pstk__random_below(&r, PSTK_MAX_DATA_SETS - 1);
        for (uint32_t d = 0; d < n; d++)
            weights[d] = 0.01 + pstk__random_unit(&r);
        make(weights, many, n, PSTK_EXHAUSTION_STOP, 0);
        CHECK_EQ(mixture.phases[0].period, PSTK__PERIOD_MAX);
        CHECK(keeps_shares(weights, n, PSTK__PERIOD_MAX + 1000, 1. / PSTK__PERIOD_MAX));
        for (uint32_t d = 0; d < n; d++) /* the bound of the counted shares is sharp */
            weights[d] = mixture.phases[0].counts[d];
        CHECK(keeps_shares(weights, n, PSTK__PERIOD_MAX + 1000, 0));
    }
}

TEST(weights_with_few_digits_are_exact)
{
    static const struct {
        double weights[3];
        uint32_t period;
    } cases[] = {{{0.7, 0.3, 0}, 10},
                 {{0.1, 0.2, 0.7}, 10},
                 {{1, 1, 1}, 3},
                 {{0.333, 0.333, 0.334}, 1000},
                 {{0.12345, 0.5, 0.37655}, 20000},
                 {{5, 0, 0}, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        make(cases[i].weights, many, 3, PSTK_EXHAUSTION_STOP, 0);
        CHECK_EQ(mixture.phases[0].period, cases[i].period);
        CHECK(keeps_shares(cases[i].weights, 3, 2 * cases[i].period, 0));
    }
}

TEST(golden_periods_are_those_of_order_md)
{
    static const struct {
        double weights[3];
        const char *period;
    } cases[] = {{{5, 2, 3}, "0201020102"}, {{0.7, 0.3, 0}, "0010010001"}, {{1, 1, 1}, "012"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char found[16] = "";
        make(cases[i].weights, many, 3, PSTK_EXHAUSTION_STOP, 0);
        for (uint32_t t = 0; t < mixture.phases[0].period; t++)
            found[t] = (char)('0' + mixture.phases[0].of[t]);
        CHECK_STR(found, cases[i].period);
    }
}

TEST(weights_are_checked)
{
    static const struct {
        double weights[3];
        int is_ok;
        uint32_t wrong;
    } cases[] = {
        {{1, 0, 2}, 1, 3},     {{0, 0, 0}, 0, 3},        {{1, -1, 2}, 0, 1},
        {{1, 2, NAN}, 0, 2},   {{INFINITY, 1, 1}, 0, 0}, {{1, 1, 1e-6}, 0, 2},
        {{65535, 1, 0}, 1, 3}, {{65536, 1, 0}, 0, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t wrong;
        CHECK_EQ(pstk__mixture_weights_ok(cases[i].weights, 3, &wrong), cases[i].is_ok);
        CHECK_EQ(wrong, cases[i].wrong);
    }
}

/* A naive stream: the pattern slot by slot, data sets that are used up left out as they go. */
TEST(drop_gives_each_sample_once)
{
    static const uint64_t sizes[] = {50, 7, 1000, 1, 333};
    static const double weights[] = {1, 1, 0.5, 3, 0.123};
    static uint8_t seen[5][1000];
    make(weights, sizes, 5, PSTK_EXHAUSTION_DROP, 0);
    CHECK_EQ(mixture.n, 50 + 7 + 1000 + 1 + 333);
    for (uint64_t p = 0; p < mixture.n; p++) {
        struct pstk__mixture_sample at;
        pstk__mixture_at(&mixture, p, &at);
        CHECK(at.number < sizes[at.data_set] && !seen[at.data_set][at.number]++);
    }
    for (uint32_t i = 0; i < mixture.n_phases; i++) { /* the shares of those that are left */
        const struct pstk__mixture_phase *phase = &mixture.phases[i];
        const uint64_t end = i + 1 < mixture.n_phases ? phase[1].from : mixture.n;
        double sum = 0;
        for (uint32_t d = 0; d < 5; d++)
            sum += phase->before[d] < sizes[d] ? weights[d] : 0;
        uint64_t delivered[5] = {0};
        for (uint64_t p = phase->from; p < end; p++) {
            struct pstk__mixture_sample at;
            pstk__mixture_at(&mixture, p, &at);
            delivered[at.data_set]++;
            for (uint32_t d = 0; d < 5; d++) {
                const double share = phase->before[d] < sizes[d] ? weights[d] / sum : 0;
                const double n = (double)(p + 1 - phase->from);
                CHECK(fabs((double)delivered[d] - share * n) < 1 + 1e-6 + n / PSTK__PERIOD_MAX);
            }
        }
    }
}

TEST(stop_ends_before_the_first_sample_that_is_missing)
{
    static const uint64_t sizes[] = {50, 7, 1000};
    for (uint32_t i = 1; i < 200; i++) {
        const double weights[] = {i % 7 + 1, i % 5, i % 11};
        make(weights, sizes, 3, PSTK_EXHAUSTION_STOP, 0);
        uint64_t delivered[3] = {0};
        for (uint64_t p = 0; p <= mixture.n; p++) {
            struct pstk__mixture_sample at;
            pstk__mixture_at(&mixture, p, &at);
            CHECK_EQ(delivered[at.data_set] < sizes[at.data_set], p < mixture.n);
            CHECK_EQ(at.number, delivered[at.data_set]++);
        }
    }
}

TEST(segments_change_shares_and_lose_nothing)
{
    static const double weights[3][3] = {{0.7, 0.3, 0}, {0, 0.5, 0.5}, {1, 1, 1}};
    const struct pstk_mixture_segment segments[] = {
        {.begin = 0, .weights = weights[0]},
        {.begin = 1003, .weights = weights[1]},
        {.begin = 1004, .weights = weights[2]},
    };
    for (uint32_t exhaustion = 0; exhaustion < 3; exhaustion++) {
        pstk__mixture_make(
            &mixture,
            &(struct pstk_mixture){
                .n_data_sets = 3, .segments = segments, .n_segments = 3, .exhaustion = exhaustion},
            many, 0, memory);
        CHECK_EQ(mixture.n_begun, 3);
        uint64_t delivered[3] = {0}, before[3] = {0};
        for (uint64_t p = 0, s = 0; p < 5000; p++) {
            struct pstk__mixture_sample at;
            pstk__mixture_at(&mixture, p, &at);
            CHECK_EQ(at.number, delivered[at.data_set]++);
            if (s < 2 && p == segments[s + 1].begin) {
                s++;
                memcpy(before, delivered, sizeof before);
                before[at.data_set]--;
            }
            const double *w = weights[s], sum = w[0] + w[1] + w[2];
            for (uint32_t d = 0; d < 3; d++) {
                const double wanted = w[d] / sum * (double)(p + 1 - segments[s].begin);
                CHECK(fabs((double)(delivered[d] - before[d]) - wanted) < 1 + 1e-6);
            }
        }
    }
}

TEST(a_segment_that_an_epoch_does_not_reach_is_found)
{
    static const double weights[] = {1, 1};
    static const uint64_t sizes[] = {10, 20};
    struct pstk_mixture_segment segments[] = {{.begin = 0, .weights = weights},
                                              {.begin = 20, .weights = weights}};
    const struct pstk_mixture settings = {.n_data_sets = 2, .segments = segments, .n_segments = 2};
    pstk__mixture_make(&mixture, &settings, sizes, 0, memory);
    CHECK(mixture.n == 20 && mixture.n_begun == 2);
    segments[1].begin = 21;
    pstk__mixture_make(&mixture, &settings, sizes, 0, memory);
    CHECK(mixture.n == 20 && mixture.n_begun == 1);
}

/* ---- picks ----------------------------------------------------------------------------------- */

static struct pstk__picked_order orders[3];

static struct pstk__pick pick_at(const struct pstk__pick_plan *plan, uint64_t epoch, uint64_t k)
{
    static struct pstk__picker picker;
    struct pstk__pick pick;
    pstk__picker_init(&picker, plan);
    memset(orders, 0, sizeof orders);
    picker.of_mixture = orders;
    pstk__picker_at(&picker, epoch, k, &pick);
    return pick;
}

TEST(repeat_gives_each_epoch_of_a_data_set_whole)
{
    static const uint64_t sizes[] = {5, 11, 300};
    static const double weights[] = {0.5, 0.25, 0.25};
    make(weights, sizes, 3, PSTK_EXHAUSTION_REPEAT, 7);
    CHECK_EQ(mixture.n, 316);
    const struct pstk__pick_plan plan = {.seed = 7, .mixture = &mixture};
    struct pstk__picker picker;
    pstk__picker_init(&picker, &plan);
    memset(orders, 0, sizeof orders);
    picker.of_mixture = orders;
    uint64_t delivered[3] = {0}, seen[3][5] = {{0}};
    for (uint64_t p = 0; p < 5 * mixture.n; p++) {
        struct pstk__pick pick;
        pstk__picker_at(&picker, p / mixture.n, p % mixture.n, &pick);
        const uint32_t d = pick.data_set;
        const uint64_t own = pick.id - pick.first;
        CHECK(own < sizes[d] && pick.first == mixture.first[d]);
        CHECK_EQ(pick.epoch, delivered[d] / sizes[d]);
        if (delivered[d]++ % sizes[d] == 0)
            memset(seen[d], 0, sizeof seen[d]);
        CHECK(!(seen[d][own / 64] >> own % 64 & 1));
        seen[d][own / 64] |= 1ull << own % 64;
        const struct pstk__pick again = pick_at(&plan, p / mixture.n, p % mixture.n);
        CHECK(again.id == pick.id && again.epoch == pick.epoch); /* a seek is a run */
    }
}

TEST(data_set_0_has_the_order_that_it_has_alone)
{
    static const uint64_t sizes[] = {2000, 2000};
    static const double weights[] = {1, 1};
    make(weights, sizes, 2, PSTK_EXHAUSTION_STOP, 3);
    const struct pstk__pick_plan plan = {.seed = 3, .mixture = &mixture},
                                 alone = {.seed = 3, .shape.interleave.n = 2000};
    uint32_t n_equal = 0;
    for (uint64_t k = 0; k < mixture.n; k++) {
        const struct pstk__pick pick = pick_at(&plan, 4, k), own = pick_at(&alone, 4, k / 2);
        CHECK(pick.epoch == 4 && pick.data_set == k % 2);
        if (pick.data_set == 0)
            CHECK_EQ(pick.id, own.id);
        else
            n_equal += pick.id - pick.first == own.id;
    }
    CHECK(n_equal < 20); /* the other has its own */
}

TEST(global_batches_are_the_same_for_any_number_of_ranks)
{
    static const uint64_t sizes[] = {130, 70};
    static const double weights[] = {0.6, 0.4};
    make(weights, sizes, 2, PSTK_EXHAUSTION_DROP, 1);
    const struct pstk__pick_plan plan = {.seed = 1, .mixture = &mixture};
    for (uint32_t world = 1; world <= 6; world++) {
        uint8_t seen[200] = {0};
        for (uint64_t position = 0; position < 200; position += 12)
            for (uint32_t rank = 0; rank < world; rank++) {
                const struct pstk__partition partition = {.n = mixture.n,
                                                          .global_batch = 12,
                                                          .rank = rank,
                                                          .world = world,
                                                          .last_batch = PSTK_LAST_SHORT};
                for (uint32_t i = 0; i < pstk__partition_n_valid(&partition, position); i++) {
                    const uint64_t k = pstk__partition_row(&partition, position, i);
                    CHECK(k >= position && k < position + 12);
                    seen[pick_at(&plan, 0, k).id]++;
                }
            }
        for (uint32_t i = 0; i < 200; i++)
            CHECK_EQ(seen[i], 1);
    }
}

int main(void)
{
    static const struct test_case cases[] = {
        CASE(shares_hold_at_every_prefix_for_all_small_weights),
        CASE(shares_hold_at_every_prefix_for_random_weights),
        CASE(weights_with_few_digits_are_exact),
        CASE(golden_periods_are_those_of_order_md),
        CASE(weights_are_checked),
        CASE(drop_gives_each_sample_once),
        CASE(stop_ends_before_the_first_sample_that_is_missing),
        CASE(segments_change_shares_and_lose_nothing),
        CASE(a_segment_that_an_epoch_does_not_reach_is_found),
        CASE(repeat_gives_each_epoch_of_a_data_set_whole),
        CASE(data_set_0_has_the_order_that_it_has_alone),
        CASE(global_batches_are_the_same_for_any_number_of_ranks),
    };
    memory = malloc(PSTK__PHASES_MAX * PSTK__PHASE_MEMORY);
    const int rc = memory ? RUN_CASES(cases) : 1;
    free(memory);
    return rc;
}
