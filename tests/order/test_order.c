/* SPDX-License-Identifier: Apache-2.0 */
#include "order/order.h"
#include "order/partition.h"
#include "base/random.h"
#include "support/test.h"

#include <math.h>
#include <stddef.h>

static struct pstk__order order;

static void init(struct pstk__order *of, uint32_t kind, uint64_t n, uint64_t seed, uint64_t epoch)
{
    pstk__order_init(of, &(struct pstk__order_shape){.kind = kind, .interleave.n = n}, seed, epoch);
}

/* Is the order of n samples a bijection? Marks `seen`, of n bytes. */
static int is_bijection(uint8_t *seen, uint64_t n, uint64_t seed, uint64_t epoch)
{
    memset(seen, 0, n);
    init(&order, PSTK_ORDER_FULL, n, seed, epoch);
    for (uint64_t k = 0; k < n; k++) {
        uint64_t id = pstk__order_at(&order, k);
        if (id >= n || seen[id]++)
            return 0;
    }
    return 1;
}

TEST(full_is_a_bijection_for_every_small_n)
{
    static uint8_t seen[3000];
    for (uint64_t n = 1; n <= 3000; n++)
        CHECK(is_bijection(seen, n, n * 7, n % 5));
}

/* Here a faulty order loses a sample: n - 1, the largest id, needs one bit more than n - 2. */
TEST(full_is_a_bijection_around_powers_of_two)
{
    uint8_t *seen = malloc((1 << 20) + 2);
    CHECK(seen);
    int good = 1;
    for (int bits = 10; bits <= 20; bits++)
        for (int off = -2; off <= 2; off++)
            if (bits < 20 || off < 2)
                good &= is_bijection(seen, (uint64_t)((1 << bits) + off), 3, 11);
    free(seen);
    CHECK(good);
}

TEST(full_stays_in_range_for_the_largest_n)
{
    static const uint64_t ns[] = {(uint64_t)1 << 32, ((uint64_t)1 << 32) + 1, (uint64_t)1 << 63,
                                  ((uint64_t)1 << 63) + 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof ns / sizeof ns[0]; i++) {
        init(&order, PSTK_ORDER_FULL, ns[i], 1, 2);
        for (uint64_t k = 0; k < 1000; k++) {
            CHECK(pstk__order_at(&order, k) < ns[i]);
            CHECK(pstk__order_at(&order, ns[i] - 1 - k) < ns[i]);
        }
    }
}

/* Version PSTK_ORDER_VERSION of the order, made by a model in another language. Whoever changes
 * these numbers changes what every saved cursor means. */
TEST(full_is_held_by_golden_vectors)
{
    CHECK_EQ(PSTK_ORDER_VERSION, 1);
    static const struct {
        uint64_t n, seed, epoch, ids[5]; /* at 0, 1, 2, n / 2, n - 1; at most n - 1 */
    } golden[] = {
        {1u, 0u, 0u, {0u, 0u, 0u, 0u, 0u}},
        {2u, 1u, 0u, {1u, 0u, 0u, 0u, 0u}},
        {10u, 0u, 0u, {4u, 3u, 2u, 6u, 5u}},
        {10u, 0u, 1u, {2u, 4u, 8u, 7u, 0u}},
        {10u, 1u, 0u, {7u, 5u, 9u, 2u, 4u}},
        {1024u, 42u, 7u, {345u, 531u, 951u, 586u, 807u}},
        {1025u, 42u, 7u, {377u, 653u, 1011u, 403u, 101u}},
        {65537u, 1u, 1u, {64490u, 32384u, 31958u, 45957u, 1274u}},
        {1281167u, 42u, 0u, {32448u, 889861u, 308140u, 760116u, 779493u}},
        {1281167u, 42u, 1u, {1076263u, 254316u, 969148u, 246910u, 595017u}},
        {1281167u, 43u, 0u, {267547u, 11522u, 229325u, 634649u, 232278u}},
        {1000000000u,
         18446744073709551615u,
         18446744073709551615u,
         {272433505u, 495773647u, 78846384u, 578526875u, 429178569u}},
        {4294967297u,
         5u,
         1099511627776u,
         {117118840u, 2909451654u, 1864063878u, 3881019653u, 1019802014u}},
        {4611686018427387904u,
         9u,
         9u,
         {3466813696084772590u, 3190243140035428259u, 323023570293608731u, 1015787713105068399u,
          4094716018809216978u}},
    };
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
        uint64_t n = golden[i].n;
        const uint64_t at[5] = {0, 1, 2, n / 2, n - 1};
        init(&order, PSTK_ORDER_FULL, n, golden[i].seed, golden[i].epoch);
        for (int j = 0; j < 5; j++) {
            uint64_t k = at[j] < n ? at[j] : n - 1;
            CHECK(pstk__order_at(&order, k) == golden[i].ids[j]);
        }
    }
}

TEST(sequential_is_the_identity)
{
    init(&order, PSTK_ORDER_SEQUENTIAL, 5000, 1, 2);
    for (uint64_t k = 0; k < 5000; k++)
        CHECK(pstk__order_at(&order, k) == k);
}

/* Chi-square against its mean + 4 standard deviations. */
static int is_even(const uint32_t *counts, int bins, double expected)
{
    double chi = 0;
    for (int i = 0; i < bins; i++)
        chi += (counts[i] - expected) * (counts[i] - expected) / expected;
    if (!(chi < bins - 1 + 4 * sqrt(2.0 * (bins - 1))))
        printf("# chi-square %.1f of %d bins\n", chi, bins);
    return chi < bins - 1 + 4 * sqrt(2.0 * (bins - 1));
}

/* Number of a permutation of n <= 5 in [0, n!): its Lehmer code. */
static int rank_of(const uint64_t *ids, int n)
{
    int rank = 0;
    for (int i = 0; i < n; i++) {
        int smaller = 0;
        for (int j = i + 1; j < n; j++)
            smaller += ids[j] < ids[i];
        rank = rank * (n - i) + smaller;
    }
    return rank;
}

TEST(all_permutations_of_few_samples_are_equally_likely_over_seeds_and_over_epochs)
{
    enum { DRAWS = 100 };
    int factorial = 1;
    for (int n = 2; n <= 5; n++) {
        factorial *= n;
        for (int by_epoch = 0; by_epoch < 2; by_epoch++) {
            uint32_t counts[120] = {0};
            for (uint64_t i = 0; i < (uint64_t)factorial * DRAWS; i++) {
                init(&order, PSTK_ORDER_FULL, (uint64_t)n, by_epoch ? 1 : i, by_epoch ? i : 1);
                uint64_t ids[5];
                for (int k = 0; k < n; k++)
                    ids[k] = pstk__order_at(&order, (uint64_t)k);
                counts[rank_of(ids, n)]++;
            }
            CHECK(is_even(counts, factorial, DRAWS));
        }
    }
}

/* The smallest networks have the narrowest halves: where does position k go over many seeds? */
TEST(every_position_goes_everywhere_in_the_smallest_networks)
{
    static const uint64_t ns[] = {1025, 1500, 2048, 2049};
    for (size_t i = 0; i < sizeof ns / sizeof ns[0]; i++)
        for (uint64_t k = 0; k < ns[i]; k += ns[i] / 3) {
            static uint32_t counts[2049];
            memset(counts, 0, sizeof counts);
            for (uint64_t seed = 0; seed < ns[i] * 20; seed++) {
                init(&order, PSTK_ORDER_FULL, ns[i], seed, 0);
                counts[pstk__order_at(&order, k)]++;
            }
            CHECK(is_even(counts, (int)ns[i], 20));
        }
}

/* Differences of neighbours modulo n, over seeds: a weak network repeats some. */
TEST(neighbours_differ_by_anything_in_the_smallest_networks)
{
    static uint32_t counts[1025];
    memset(counts, 0, sizeof counts);
    enum { SEEDS = 40 };
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        init(&order, PSTK_ORDER_FULL, 1025, seed, 3);
        for (uint64_t k = 0; k + 1 < 1025; k++)
            counts[(pstk__order_at(&order, k + 1) + 1025 - pstk__order_at(&order, k)) % 1025]++;
    }
    CHECK_EQ(counts[0], 0);
    CHECK(is_even(counts + 1, 1024, SEEDS));
}

/* Correlation of two sequences of ids below n, each near uniform: variance n^2 / 12. */
struct correlation {
    double sum;
    uint64_t count;
};

static void correlate(struct correlation *c, uint64_t a, uint64_t b, uint64_t n)
{
    double mean = ((double)n - 1) / 2, variance = (double)n * (double)n / 12;
    c->sum += ((double)a - mean) * ((double)b - mean) / variance;
    c->count++;
}

/* Standard deviation of a correlation of N independent pairs: 1 / sqrt N; four of them allowed. */
static int is_none(const struct correlation *c)
{
    double r = c->sum / (double)c->count;
    if (fabs(r) >= 4 / sqrt((double)c->count))
        printf("# correlation %g of %llu pairs\n", r, (unsigned long long)c->count);
    return fabs(r) < 4 / sqrt((double)c->count);
}

TEST(large_orders_have_no_correlation_of_position_neighbour_seed_or_epoch)
{
    static const uint64_t ns[] = {100003, 1281167, 100000000};
    static struct pstk__order others[3];
    enum { N = 100000 };
    for (size_t i = 0; i < sizeof ns / sizeof ns[0]; i++) {
        uint64_t n = ns[i];
        init(&order, PSTK_ORDER_FULL, n, 17, 4);
        init(&others[0], PSTK_ORDER_FULL, n, 18, 4);
        init(&others[1], PSTK_ORDER_FULL, n, 17, 5);
        struct correlation by_position = {0}, by_next = {0}, by_stride = {0}, by[2] = {{0}};
        for (uint64_t k = 0; k < N; k++) {
            uint64_t id = pstk__order_at(&order, k);
            correlate(&by_position, k * (n / N), pstk__order_at(&order, k * (n / N)), n);
            correlate(&by_next, id, pstk__order_at(&order, k + 1), n);
            correlate(&by_stride, id, pstk__order_at(&order, (k + 1024) % n), n);
            correlate(&by[0], id, pstk__order_at(&others[0], k), n);
            correlate(&by[1], id, pstk__order_at(&others[1], k), n);
        }
        CHECK(is_none(&by_position) && is_none(&by_next) && is_none(&by_stride));
        CHECK(is_none(&by[0]) && is_none(&by[1]));
    }
}

TEST(each_part_of_a_large_order_takes_evenly_from_each_part_of_the_ids)
{
    static const uint64_t ns[] = {1 << 20, 1281167, 100000000};
    enum { BINS = 64, PER_BIN = 3200 };
    for (size_t i = 0; i < sizeof ns / sizeof ns[0]; i++) {
        static uint32_t counts[BINS * BINS], lows[BINS];
        memset(counts, 0, sizeof counts);
        memset(lows, 0, sizeof lows);
        init(&order, PSTK_ORDER_FULL, ns[i], 99, 0);
        for (uint64_t bin = 0; bin < BINS; bin++)
            for (uint64_t k = 0; k < PER_BIN; k++) {
                uint64_t id = pstk__order_at(&order, bin * (ns[i] / BINS) + k);
                counts[bin * BINS + id * BINS / ns[i]]++;
                lows[id % BINS]++;
            }
        CHECK(is_even(counts, BINS * BINS, PER_BIN / BINS));
        CHECK(is_even(lows, BINS, PER_BIN));
    }
}

/* If permutations are uniform, the positions k with the same id in two epochs are Poisson with
 * mean 1. */
TEST(a_next_epoch_of_another_seed_has_nothing_in_common)
{
    static struct pstk__order other;
    uint64_t n = 100003, same = 0;
    for (uint64_t seed = 0; seed < 8; seed++) {
        init(&order, PSTK_ORDER_FULL, n, seed + 1, 1000);
        init(&other, PSTK_ORDER_FULL, n, seed, 1001);
        for (uint64_t k = 0; k < n; k++)
            same += pstk__order_at(&order, k) == pstk__order_at(&other, k);
    }
    CHECK(same < 24); /* mean 8; 24 is never reached by chance (1e-5) */
}

/* One global batch, counted out position by position. */
struct naive {
    uint64_t rows[4][5]; /* [rank][row]: position, wrapped */
    uint32_t n_valid[4];
};

static int naive_batch(struct naive *out, const struct pstk__partition *p, uint64_t position)
{
    uint64_t global = p->global_batch;
    memset(out, 0, sizeof *out);
    if (position >= p->n || (p->last_batch == PSTK_LAST_DROP && position + global > p->n))
        return 0;
    for (uint64_t k = position; k < position + global; k++) {
        uint64_t rank = k % p->world;
        if (k < p->n || p->last_batch == PSTK_LAST_PAD)
            out->rows[rank][out->n_valid[rank]++] = k % p->n;
    }
    return 1;
}

/* Compare all batches from `position` on with the naive ones; returns 1 when they agree. */
static int agrees(struct pstk__partition p, uint64_t position)
{
    struct naive naive;
    uint64_t n_batches = 0, at = position;
    uint8_t seen[41] = {0};
    for (; naive_batch(&naive, &p, at); at += p.global_batch, n_batches++)
        for (p.rank = 0; p.rank < p.world; p.rank++) {
            uint32_t n_valid = pstk__partition_n_valid(&p, at);
            if (n_valid != naive.n_valid[p.rank] || n_valid > pstk__partition_rows(&p))
                return 0;
            for (uint32_t row = 0; row < n_valid; row++) {
                uint64_t k = pstk__partition_row(&p, at, row);
                if (k != naive.rows[p.rank][row])
                    return 0;
                seen[k]++;
            }
        }
    for (p.rank = 0; p.rank < p.world; p.rank++)
        if (pstk__partition_n_batches(&p, position) != n_batches)
            return 0;
    uint64_t global = p.global_batch, left = p.n - position;
    for (uint64_t k = 0; k < p.n; k++) {
        uint64_t end = p.last_batch == PSTK_LAST_DROP ? position + left / global * global : p.n;
        uint8_t expected = k >= position && k < end;
        if (p.last_batch != PSTK_LAST_PAD ? seen[k] != expected : seen[k] < expected)
            return 0;
    }
    return 1;
}

TEST(partitions_equal_counting_and_give_each_sample_once_at_every_position)
{
    struct pstk__partition p = {0};
    uint64_t count = 0;
    for (p.n = 0; p.n <= 40; p.n++)
        for (p.world = 1; p.world <= 4; p.world++)
            for (p.global_batch = p.world; p.global_batch <= 5 * p.world; p.global_batch++)
                for (p.last_batch = 0; p.last_batch <= 2; p.last_batch++)
                    for (uint64_t position = 0; position <= p.n; position++, count++)
                        CHECK(agrees(p, position));
    printf("# %llu partitions\n", (unsigned long long)count);
}

TEST(positions_past_the_end_have_no_batches)
{
    for (uint32_t last = 0; last <= 2; last++) {
        struct pstk__partition p = {.n = 10, .global_batch = 4, .world = 2, .last_batch = last};
        CHECK_EQ(pstk__partition_n_batches(&p, 10), 0);
        CHECK_EQ(pstk__partition_n_batches(&p, 11), 0);
        CHECK_EQ(pstk__partition_n_batches(&p, UINT64_MAX), 0);
        CHECK_EQ(pstk__partition_n_valid(&p, 11), 0);
    }
}

TEST(the_largest_batches_do_not_overflow)
{
    struct pstk__partition p = {
        .n = 10, .global_batch = (uint64_t)UINT32_MAX << 29, .world = 1 << 29, .rank = 9};
    p.last_batch = PSTK_LAST_SHORT;
    CHECK_EQ(pstk__partition_n_batches(&p, 0), 1);
    CHECK_EQ(pstk__partition_n_valid(&p, 0), 1);
    CHECK_EQ(pstk__partition_row(&p, 0, 0), 9);
    p.last_batch = PSTK_LAST_PAD;
    CHECK_EQ(pstk__partition_n_valid(&p, 0), UINT32_MAX);
    CHECK(pstk__partition_row(&p, 0, UINT32_MAX - 1) < 10);
}

static struct pstk_order_settings settings_of(uint64_t n)
{
    return (struct pstk_order_settings){.size = sizeof(struct pstk_order_settings),
                                        .n_samples = n,
                                        .seed = 5,
                                        .epoch = 6,
                                        .batch_size = 4,
                                        .world = 1};
}

TEST(the_public_order_is_the_internal_one)
{
    struct pstk_order_settings s = settings_of(1281167);
    s.world = 8;
    s.rank = 3;
    s.last_batch = PSTK_LAST_SHORT;
    init(&order, PSTK_ORDER_FULL, s.n_samples, 5, 6);
    CHECK_EQ(pstk_order_n_batches(&s, 0), (1281167 + 31) / 32);
    uint64_t ids[4];
    CHECK_EQ(pstk_order_batch(&s, 64, ids), 4);
    for (uint64_t row = 0; row < 4; row++)
        CHECK(ids[row] == pstk__order_at(&order, 64 + 3 + row * 8));
    CHECK_EQ(pstk_order_batch(&s, 1281167 - 5, ids), 1);
    CHECK_EQ(pstk_order_batch(&s, 1281167, ids), 0);
    CHECK_EQ(pstk_order_batch(&s, UINT64_MAX, ids), 0);
}

TEST(drop_leaves_out_the_rest)
{
    struct pstk_order_settings s = settings_of(10);
    uint64_t ids[4];
    CHECK_EQ(pstk_order_n_batches(&s, 0), 2);
    CHECK_EQ(pstk_order_batch(&s, 4, ids), 4);
    CHECK_EQ(pstk_order_batch(&s, 8, ids), 0);
    s.n_samples = 0;
    CHECK_EQ(pstk_order_n_batches(&s, 0), 0);
    CHECK_EQ(pstk_order_batch(&s, 0, ids), 0);
}

/* Set seen[id] to the number of the global batch that gives the sample to one of the ranks. Return
 * the batches of an epoch, or 0 when a sample comes twice or a rank has too many rows. */
static uint64_t note_batches(struct pstk_order_settings s, uint16_t *seen)
{
    static uint64_t ids[1024];
    uint64_t n_batches = pstk_order_n_batches(&s, 0);
    memset(seen, 0, s.n_samples * sizeof *seen);
    for (s.rank = 0; s.rank < s.world; s.rank++)
        for (uint64_t i = 0; i < n_batches; i++) {
            const int64_t n = pstk_order_batch(&s, i * s.global_batch_size, ids);
            if (n < 0 || n > (s.global_batch_size - 1) / s.world + 1)
                return 0;
            for (int64_t row = 0; row < n; row++) {
                if (seen[ids[row]])
                    return 0;
                seen[ids[row]] = (uint16_t)(i + 1);
            }
        }
    return n_batches;
}

TEST(global_batches_are_the_same_sets_for_any_number_of_ranks)
{
    enum { N = 10007 };
    static uint16_t alone[N], divided[N];
    static const uint32_t worlds[] = {2, 7, 48, 64, 1000};
    struct pstk_order_settings s = settings_of(N);
    s.batch_size = 0;
    s.global_batch_size = 1000; /* 48 and 64 do not divide it */
    for (s.last_batch = PSTK_LAST_DROP; s.last_batch <= PSTK_LAST_SHORT; s.last_batch += 2)
        for (uint32_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
            s.world = 1;
            CHECK_EQ(note_batches(s, alone), s.last_batch == PSTK_LAST_SHORT ? 11 : 10);
            s.world = worlds[i];
            CHECK_EQ(note_batches(s, divided), s.last_batch == PSTK_LAST_SHORT ? 11 : 10);
            CHECK(!memcmp(alone, divided, sizeof alone));
        }
}

TEST(settings_of_the_first_version_need_no_later_members)
{
    uint64_t ids[4], same[4];
    struct pstk_order_settings s = settings_of(10);
    CHECK_EQ(pstk_order_batch(&s, 4, ids), 4);
    s.size = offsetof(struct pstk_order_settings, global_batch_size);
    s.global_batch_size = UINT32_MAX; /* the memory of something else */
    CHECK_EQ(pstk_order_batch(&s, 4, same), 4);
    CHECK(!memcmp(ids, same, sizeof ids));
}

TEST(a_windowed_order_has_the_defaults_that_settle_fills_in)
{
    uint64_t ids[4], same[4];
    struct pstk_order_settings s = settings_of(100000), settled;
    s.order = PSTK_ORDER_WINDOWED;
    settled = s;
    CHECK_EQ(pstk_order_settle(&settled), 0);
    CHECK(settled.ways == 48 && settled.block == 64 && settled.window == 4);
    CHECK_EQ(pstk_order_batch(&s, 40000, ids), 4);
    CHECK_EQ(pstk_order_batch(&settled, 40000, same), 4);
    CHECK(!memcmp(ids, same, sizeof ids));
    settled.ways = 12;
    CHECK_EQ(pstk_order_batch(&settled, 40000, same), 4);
    CHECK(memcmp(ids, same, sizeof ids));
    settled = settings_of(100000);
    CHECK_EQ(pstk_order_settle(&settled), 0);
    CHECK(!settled.ways && !settled.block && !settled.window);
    settled.size = offsetof(struct pstk_order_settings, ways);
    CHECK_EQ(pstk_order_settle(&settled), PSTK_EINVAL);
}

TEST(settings_that_make_no_sense_are_refused)
{
    uint64_t ids[4];
    struct pstk_order_settings good = settings_of(10);
    CHECK_EQ(pstk_order_batch(&good, 0, NULL), PSTK_EINVAL);
    CHECK_EQ(pstk_order_batch(NULL, 0, ids), PSTK_EINVAL);
    CHECK_EQ(pstk_order_n_batches(NULL, 0), 0);
    struct pstk_order_settings bad[16];
    for (int i = 0; i < 16; i++)
        bad[i] = good;
    bad[0].size = 8;
    bad[1].batch_size = 0;
    bad[2].order = 3;
    bad[3].last_batch = 3;
    bad[4].rank = 1;
    bad[5].n_samples = UINT64_MAX;
    bad[6].batch_size = bad[6].world = UINT32_MAX;
    bad[7].global_batch_size = 4; /* and batch_size */
    bad[8].reserved = 1;
    bad[9].batch_size = 0;
    bad[9].global_batch_size = 3;
    bad[9].world = 4;
    bad[10].ways = 2; /* not for the full order */
    bad[11].block = 2;
    bad[12].window = 2;
    bad[13].reserved = 2;
    bad[14].order = PSTK_ORDER_WINDOWED;
    bad[14].ways = 65537;
    bad[15].world = 0;
    for (int i = 0; i < 16; i++) {
        CHECK_EQ(pstk_order_settle(&bad[i]), PSTK_EINVAL);
        CHECK_EQ(pstk_order_batch(&bad[i], 0, ids), PSTK_EINVAL);
        CHECK_EQ(pstk_order_n_batches(&bad[i], 0), 0);
    }
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(full_is_a_bijection_for_every_small_n),
        CASE(full_is_a_bijection_around_powers_of_two),
        CASE(full_stays_in_range_for_the_largest_n),
        CASE(full_is_held_by_golden_vectors),
        CASE(sequential_is_the_identity),
        CASE(all_permutations_of_few_samples_are_equally_likely_over_seeds_and_over_epochs),
        CASE(every_position_goes_everywhere_in_the_smallest_networks),
        CASE(neighbours_differ_by_anything_in_the_smallest_networks),
        CASE(large_orders_have_no_correlation_of_position_neighbour_seed_or_epoch),
        CASE(each_part_of_a_large_order_takes_evenly_from_each_part_of_the_ids),
        CASE(a_next_epoch_of_another_seed_has_nothing_in_common),
        CASE(partitions_equal_counting_and_give_each_sample_once_at_every_position),
        CASE(positions_past_the_end_have_no_batches),
        CASE(the_largest_batches_do_not_overflow),
        CASE(the_public_order_is_the_internal_one),
        CASE(drop_leaves_out_the_rest),
        CASE(global_batches_are_the_same_sets_for_any_number_of_ranks),
        CASE(settings_of_the_first_version_need_no_later_members),
        CASE(a_windowed_order_has_the_defaults_that_settle_fills_in),
        CASE(settings_that_make_no_sense_are_refused),
    };
    return RUN_CASES(cases);
}
