/* SPDX-License-Identifier: Apache-2.0 */
#include "order/order.h"
#include "support/test.h"

static struct pstk__windowed windowed;

static void init(uint64_t n, uint32_t ways, uint32_t block, uint32_t window, uint64_t seed)
{
    pstk__windowed_init(
        &windowed,
        &(struct pstk__interleave){.n = n, .ways = ways, .block = block, .window = window}, seed,
        seed % 3);
}

/* Is every id given once? And is every location what the functions for readers say? */
static int is_right(uint8_t *seen)
{
    const uint64_t n = windowed.interleave.n;
    memset(seen, 0, n);
    for (uint64_t k = 0; k < n; k++) {
        struct pstk__interleave_location location;
        pstk__windowed_locate(&windowed, k, &location);
        if (location.id >= n || seen[location.id]++ ||
            location.id != pstk__windowed_at(&windowed, k))
            return 0;
        uint64_t first, begin, length;
        uint32_t rows;
        pstk__windowed_block(&windowed, location.line, &first, &rows);
        if (location.row >= rows || location.id != first + location.row)
            return 0;
        const uint64_t i = k / windowed.interleave.ways;
        if (location.window != pstk__windowed_window(&windowed, location.way, i) ||
            location.window >= pstk__windowed_n_windows(&windowed, location.way))
            return 0;
        pstk__windowed_span(&windowed, location.way, location.window, &begin, &length);
        if (i < begin || i >= begin + length || length > windowed.n_window)
            return 0;
        const struct pstk__interleave_blocks blocks =
            pstk__windowed_blocks(&windowed, location.way, location.window);
        const int has_short = windowed.n_last < windowed.interleave.block &&
                              blocks.first < windowed.last && windowed.last < blocks.last;
        if (location.line < blocks.first || location.line > blocks.last ||
            blocks.last - blocks.first > windowed.interleave.window + (uint32_t)has_short)
            return 0;
    }
    return 1;
}

TEST(windowed_is_a_bijection_for_every_small_n)
{
    static uint8_t seen[700];
    static const uint32_t ways[] = {1, 2, 3, 7, 48, 1000}, blocks[] = {1, 2, 5, 64, 1000},
                          windows[] = {1, 2, 3, 8};
    for (uint64_t n = 1; n <= 700; n += 1 + n / 40)
        for (size_t s = 0; s < sizeof ways / sizeof *ways; s++)
            for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++)
                for (size_t w = 0; w < sizeof windows / sizeof *windows; w++) {
                    init(n, ways[s], blocks[b], windows[w], n + s);
                    CHECK(is_right(seen));
                }
}

TEST(windowed_is_a_bijection_around_powers_of_two)
{
    uint8_t *seen = malloc((1 << 18) + 2);
    CHECK(seen);
    int good = 1;
    for (int bits = 10; bits <= 18; bits++)
        for (int off = -1; off <= 1; off++) {
            init((uint64_t)((1 << bits) + off), 12, 64, 4, 3);
            good &= is_right(seen);
        }
    free(seen);
    CHECK(good);
}

TEST(windowed_stays_in_range_for_the_largest_n)
{
    static const uint64_t ns[] = {(uint64_t)1 << 32, ((uint64_t)1 << 32) + 1, 1000000000000u,
                                  (uint64_t)1 << 62};
    for (size_t i = 0; i < sizeof ns / sizeof ns[0]; i++) {
        init(ns[i], PSTK__WAYS_MAX, i & 1 ? 64 : PSTK__BLOCK_MAX, PSTK__WINDOW_MAX, 5);
        for (uint64_t k = 0; k < 1000; k++) {
            CHECK(pstk__windowed_at(&windowed, k) < ns[i]);
            CHECK(pstk__windowed_at(&windowed, ns[i] - 1 - k) < ns[i]);
        }
    }
}

TEST(settle_fills_in_what_is_not_set_from_n_alone)
{
    static const struct {
        uint64_t n;
        uint32_t ways;
    } expected[] = {{1, 1},      {4095, 1},   {4096, 4},   {12287, 4},
                    {12288, 12}, {49151, 12}, {49152, 48}, {(uint64_t)1 << 40, 48}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct pstk__interleave interleave = {.n = expected[i].n};
        pstk__interleave_settle(&interleave);
        CHECK_EQ(interleave.ways, expected[i].ways);
        CHECK_EQ(interleave.block, 64);
        CHECK_EQ(interleave.window, 4);
    }
    struct pstk__interleave set = {.n = 1 << 20, .ways = 5, .block = 6, .window = 7};
    pstk__interleave_settle(&set);
    CHECK(set.ways == 5 && set.block == 6 && set.window == 7);
}

/* Version PSTK_WINDOWED_VERSION of the order, made by tests/order_model.py. Whoever changes these
 * numbers changes what every saved cursor means. */
TEST(windowed_is_held_by_golden_vectors)
{
    CHECK_EQ(PSTK_WINDOWED_VERSION, 1);
    static const struct {
        uint64_t n, seed, epoch;
        uint32_t interleave[3]; /* ways, block, window; 0: from n */
        uint64_t ids[5];        /* at 0, 1, 2, n / 2, n - 1; at most n - 1 */
    } golden[] = {
        {1u, 0u, 0u, {0, 0, 0}, {0u, 0u, 0u, 0u, 0u}},
        {2u, 1u, 0u, {0, 0, 0}, {0u, 1u, 1u, 1u, 1u}},
        {10u, 0u, 0u, {1, 2, 2}, {1u, 0u, 8u, 7u, 4u}},
        {10u, 0u, 1u, {1, 2, 2}, {9u, 8u, 3u, 4u, 6u}},
        {10u, 1u, 0u, {3, 2, 2}, {4u, 7u, 6u, 0u, 8u}},
        {4096u, 42u, 7u, {0, 0, 0}, {2468u, 3680u, 3483u, 2084u, 53u}},
        {4097u, 42u, 7u, {0, 0, 0}, {3236u, 481u, 3740u, 3812u, 454u}},
        {65537u, 1u, 1u, {0, 0, 0}, {24376u, 23697u, 7565u, 11698u, 65016u}},
        {100000u, 9u, 3u, {5, 7, 3}, {64028u, 34189u, 10774u, 18222u, 50834u}},
        {1281167u, 42u, 0u, {0, 0, 0}, {72055u, 1273031u, 463000u, 1916u, 11654u}},
        {1281167u, 42u, 1u, {0, 0, 0}, {181234u, 321630u, 761262u, 141725u, 29169u}},
        {1281167u, 43u, 0u, {0, 0, 0}, {248784u, 816855u, 1115605u, 619782u, 1274643u}},
        {1281167u, 42u, 0u, {64, 64, 16}, {147040u, 838282u, 511661u, 485673u, 593550u}},
        {1000000000u,
         18446744073709551615u,
         18446744073709551615u,
         {0, 0, 0},
         {949560419u, 470020751u, 561018443u, 551896253u, 195600176u}},
        {4294967297u,
         5u,
         1099511627776u,
         {1000, 1048576, 16},
         {2960553664u, 1879244449u, 3248955306u, 3211569988u, 3082116704u}},
        {1000000000000u,
         9u,
         9u,
         {0, 0, 0},
         {675856222772u, 245587078550u, 167018416556u, 589318922912u, 950079925075u}},
        {4611686018427387904u,
         9u,
         9u,
         {65536, 64, 4096},
         {2126023740955343212u, 3023055007079402193u, 3579169906514838930u, 3144171811089767086u,
          473485451534699874u}},
    };
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
        const uint64_t n = golden[i].n, at[5] = {0, 1, 2, n / 2, n - 1};
        struct pstk__interleave interleave = {.n = n,
                                              .ways = golden[i].interleave[0],
                                              .block = golden[i].interleave[1],
                                              .window = golden[i].interleave[2]};
        pstk__interleave_settle(&interleave);
        pstk__windowed_init(&windowed, &interleave, golden[i].seed, golden[i].epoch);
        for (int j = 0; j < 5; j++)
            CHECK(pstk__windowed_at(&windowed, at[j] < n ? at[j] : n - 1) == golden[i].ids[j]);
    }
}

/* Ways that begin a window between the numbers from and to of their samples. */
static uint32_t n_changes(uint64_t from, uint64_t to)
{
    uint32_t n = 0;
    for (uint32_t s = 0; s < windowed.interleave.ways; s++)
        for (uint64_t i = from; i < to; i++)
            n += pstk__windowed_window(&windowed, s, i) !=
                 pstk__windowed_window(&windowed, s, i - 1);
    return n;
}

TEST(ways_change_windows_one_after_another)
{
    static const uint32_t ways[] = {1, 3, 12, 48, 100, 256};
    for (size_t s = 0; s < sizeof ways / sizeof *ways; s++) {
        init(1 << 20, ways[s], 64, 4, 1);
        CHECK_EQ(n_changes(300, 300 + 256), ways[s]); /* each once in a window's samples */
        for (uint64_t i = 300; i < 300 + 256; i++) {
            const uint64_t few = (ways[s] + 255) / 256, some = (32 * ways[s] + 255) / 256;
            CHECK(n_changes(i, i + 1) <= few);
            CHECK(n_changes(i, i + 32) <= some + 1 && n_changes(i, i + 32) + 1 >= some);
        }
    }
    init(1 << 20, 1000, 64, 4, 1);
    for (uint64_t i = 300; i < 300 + 256; i++)
        CHECK(n_changes(i, i + 1) >= 3 && n_changes(i, i + 1) <= 5); /* 1000 / 256 */
}

/* Read the epoch as ranks do that hold the blocks of one window of each way they have samples
 * of. Return the reads of blocks, and set *most to those of the rank that reads the most. */
static uint64_t n_reads(uint32_t world, uint64_t *most)
{
    enum { WAYS = 48 };
    uint64_t all = 0;
    *most = 0;
    for (uint32_t rank = 0; rank < world; rank++) {
        uint64_t held[WAYS], n = 0; /* blocks before held[s] were read for way s */
        memset(held, 0, sizeof held);
        for (uint64_t k = rank; k < windowed.interleave.n; k += world) {
            struct pstk__interleave_location location;
            pstk__windowed_locate(&windowed, k, &location);
            const struct pstk__interleave_blocks blocks =
                pstk__windowed_blocks(&windowed, location.way, location.window);
            const uint64_t from =
                held[location.way] > blocks.first ? held[location.way] : blocks.first;
            n += blocks.last + 1 - from;
            held[location.way] = blocks.last + 1;
        }
        all += n;
        *most = n > *most ? n : *most;
    }
    return all;
}

TEST(ranks_that_divide_the_ways_read_each_block_once)
{
    enum { BLOCK = 16, N = 48 * 64 * 32 + 5 };
    static const uint32_t worlds[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 48};
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
        uint64_t most;
        init(N, 48, BLOCK, 4, 1);
        const uint64_t all = n_reads(worlds[i], &most);
        /* A block where two ways meet is read for both. */
        CHECK(all >= windowed.n_blocks && all <= windowed.n_blocks + 47);
        /* A way has one block more than another at most, and may touch one more. */
        CHECK(most <= windowed.n_blocks / worlds[i] + 1 + 2 * 48 / worlds[i]);
    }
}

TEST(ranks_that_do_not_divide_the_ways_read_as_often_as_stated)
{
    enum { BLOCK = 64, N = 48 * BLOCK * 32 };
    static const struct {
        uint32_t world, times; /* world / gcd(48, world) */
    } of[] = {{5, 5}, {7, 7}, {9, 3}, {10, 5}, {32, 2}, {36, 3}, {96, 2}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        uint64_t most;
        init(N, 48, BLOCK, 4, 1);
        const uint64_t all = n_reads(of[i].world, &most);
        CHECK(all >= windowed.n_blocks * of[i].times * 99 / 100);
        CHECK(all <= (windowed.n_blocks + 47) * of[i].times);
    }
}

/* Rows of each rank in the first batch of a windowed order; returns the batches of an epoch, or -1
 * where ranks differ. */
static int64_t rows_of(uint64_t n, uint32_t world, uint32_t batch_size, uint32_t last,
                       int64_t *rows)
{
    int64_t n_batches = 0;
    uint64_t ids[64];
    for (uint32_t rank = 0; rank < world; rank++) {
        const struct pstk_order_settings s = {.size = sizeof s,
                                              .order = PSTK_ORDER_WINDOWED,
                                              .n_samples = n,
                                              .batch_size = batch_size,
                                              .rank = rank,
                                              .world = world,
                                              .last_batch = last};
        const int64_t batches = (int64_t)pstk_order_n_batches(&s, 0);
        if (rank && batches != n_batches)
            return -1;
        n_batches = batches;
        rows[rank] = pstk_order_batch(&s, 0, ids);
    }
    return n_batches;
}

TEST(few_samples_and_many_ranks_have_stated_answers)
{
    int64_t rows[96];
    /* One sample. */
    CHECK_EQ(rows_of(1, 1, 4, PSTK_LAST_DROP, rows), 0);
    CHECK_EQ(rows_of(1, 1, 4, PSTK_LAST_PAD, rows), 1);
    CHECK_EQ(rows[0], 4);
    CHECK_EQ(rows_of(1, 1, 4, PSTK_LAST_SHORT, rows), 1);
    CHECK_EQ(rows[0], 1);
    /* Fewer samples than ranks: short leaves ranks empty, drop has no batch, pad repeats. */
    CHECK_EQ(rows_of(3, 8, 2, PSTK_LAST_DROP, rows), 0);
    CHECK_EQ(rows_of(3, 8, 2, PSTK_LAST_SHORT, rows), 1);
    for (int rank = 0; rank < 8; rank++)
        CHECK_EQ(rows[rank], rank < 3);
    CHECK_EQ(rows_of(3, 8, 2, PSTK_LAST_PAD, rows), 1);
    for (int rank = 0; rank < 8; rank++)
        CHECK_EQ(rows[rank], 2);
    /* More ranks than ways: equal batch counts, and rows. */
    CHECK_EQ(rows_of(100000, 96, 10, PSTK_LAST_DROP, rows), 104);
    for (int rank = 0; rank < 96; rank++)
        CHECK_EQ(rows[rank], 10);
    CHECK_EQ(rows_of(100000, 96, 10, PSTK_LAST_SHORT, rows), 105);
    CHECK_EQ(rows_of(100000, 96, 10, PSTK_LAST_PAD, rows), 105);
}

int main(void)
{
    static const struct test_case cases[] = {
        CASE(windowed_is_a_bijection_for_every_small_n),
        CASE(windowed_is_a_bijection_around_powers_of_two),
        CASE(windowed_stays_in_range_for_the_largest_n),
        CASE(settle_fills_in_what_is_not_set_from_n_alone),
        CASE(windowed_is_held_by_golden_vectors),
        CASE(ways_change_windows_one_after_another),
        CASE(ranks_that_divide_the_ways_read_each_block_once),
        CASE(ranks_that_do_not_divide_the_ways_read_as_often_as_stated),
        CASE(few_samples_and_many_ranks_have_stated_answers),
    };
    return RUN_CASES(cases);
}
