/* SPDX-License-Identifier: Apache-2.0 */
/* Draws by weight: the table has the weights exactly, and draws come as it says. */
#include "base/random.h"
#include "order/alias.h"
#include "order/pick.h"
#include "support/test.h"

#define MOST 4000

static uint64_t weights[MOST], shares[MOST], mass[MOST];
static uint32_t others[MOST], work[MOST];
static struct pstk__alias alias;

static void make(uint64_t n)
{
    memcpy(shares, weights, n * sizeof *shares);
    pstk__alias_init(&alias, n, shares, others, work);
}

/* Column i gives shares[i] to i, and the rest of `total` to others[i]: together n times the weight.
 */
static int is_exact(uint64_t n)
{
    uint64_t total = 0;
    memset(mass, 0, n * sizeof *mass);
    for (uint64_t i = 0; i < n; i++) {
        if (others[i] >= n || shares[i] > alias.total)
            return 0;
        mass[i] += shares[i];
        mass[others[i]] += alias.total - shares[i];
        total += weights[i];
    }
    for (uint64_t i = 0; i < n; i++)
        if (mass[i] != weights[i] * n)
            return 0;
    return alias.total == total && alias.n == n;
}

TEST(a_table_has_the_weights_exactly)
{
    struct pstk__random random;
    pstk__random_init(&random, &(struct pstk__random_key){.seed = 3});
    for (uint64_t n = 1; n <= MOST; n = n < 40 ? n + 1 : n * 3 / 2)
        for (uint32_t kind = 0; kind < 6; kind++) {
            const uint32_t bits = pstk__alias_bits(n);
            CHECK(bits >= 22 && bits <= 53 && (n << bits) <= (uint64_t)1 << 62);
            for (uint64_t i = 0; i < n; i++) {
                const uint64_t any = pstk__random_u64(&random);
                weights[i] = kind == 0   ? 1
                             : kind == 1 ? (uint64_t)1 << bits
                             : kind == 2 ? any >> (64 - bits)
                             : kind == 3 ? any >> 63
                             : kind == 4 ? (uint64_t)(i == n / 2) << bits
                                         : any >> (any & 63) >> (64 - bits);
            }
            weights[n - 1] += weights[n - 1] == 0; /* not all 0 */
            make(n);
            CHECK(is_exact(n));
        }
}

TEST(weights_of_the_most_samples_have_room)
{
    CHECK_EQ(pstk__alias_bits(1), 53);
    CHECK_EQ(pstk__alias_bits(512), 53);
    CHECK_EQ(pstk__alias_bits(513), 52);
    CHECK_EQ(pstk__alias_bits(PSTK__ALIAS_MAX), 30);
}

/* Chi-square of 10 classes; that 9 degrees of freedom give 40 happens once in 10^5 seeds. */
TEST(draws_come_as_the_weights_say)
{
    uint64_t counts[10] = {0}, same = 0;
    double chi = 0;
    for (uint64_t i = 0; i < 10; i++)
        weights[i] = i * i;
    make(10);
    for (uint64_t k = 0; k < 200000; k++) {
        counts[pstk__alias_at(&alias, 1, 2, k)]++;
        same += pstk__alias_at(&alias, 1, 2, k) == pstk__alias_at(&alias, 1, 3, k);
    }
    CHECK_EQ(counts[0], 0);
    double expected_same = 0;
    for (uint64_t i = 1; i < 10; i++) {
        const double p = (double)(i * i) / 285, expected = 200000 * p;
        chi += ((double)counts[i] - expected) * ((double)counts[i] - expected) / expected;
        expected_same += 200000 * p * p;
    }
    CHECK(chi < 40);
    CHECK((double)same > expected_same * 0.97 && (double)same < expected_same * 1.03);
}

TEST(others_are_a_function_of_id_and_attempt)
{
    for (uint64_t i = 0; i < 10; i++)
        weights[i] = i != 4;
    make(10);
    uint64_t seen = 0;
    for (uint32_t attempt = 0; attempt < 200; attempt++) {
        const uint64_t other = pstk__alias_other(&alias, 77, attempt);
        CHECK(other < 10 && other != 4);
        CHECK_EQ(pstk__alias_other(&alias, 77, attempt), other);
        seen |= (uint64_t)1 << other;
    }
    CHECK_EQ(seen, 0x3EF);
}

TEST(a_pick_names_its_draw)
{
    static struct pstk__picker picker;
    static struct pstk__subset subset;
    pstk__subset_init(&subset, 100);
    pstk__subset_range(&subset, 50, 60);
    for (uint64_t i = 0; i < 10; i++)
        weights[i] = 1 + i % 2;
    make(10);
    const struct pstk__pick_plan plan = {.subset = &subset, .alias = &alias, .seed = 4};
    pstk__picker_init(&picker, &plan);
    for (uint64_t k = 0; k < 100; k++) {
        struct pstk__pick pick;
        const uint64_t far = k << 40;
        pstk__picker_at(&picker, 9, far, &pick);
        CHECK_EQ(pick.id, 50 + pstk__alias_at(&alias, 4, 9, far));
        CHECK(pick.epoch == 9 && pick.occurrence == far);
    }
}

int main(void)
{
    static const struct test_case cases[] = {
        CASE(a_table_has_the_weights_exactly), CASE(weights_of_the_most_samples_have_room),
        CASE(draws_come_as_the_weights_say),   CASE(others_are_a_function_of_id_and_attempt),
        CASE(a_pick_names_its_draw),
    };
    return RUN_CASES(cases);
}
