/* SPDX-License-Identifier: Apache-2.0 */
/* Facts computed about ranks and blocks, compared with a run through the whole order. */
#include "order/explain.h"
#include "support/test.h"

/* Counts over one epoch. */
struct counted {
    uint64_t readings; /* distinct (rank, block) */
    uint64_t ways;     /* distinct ways of rank 0 */
    uint64_t ranks;    /* distinct ranks of way 0 */
    uint64_t blocks;   /* the most of rank 0's windows at a time */
};

/* Blocks of the windows that the next sample of each of a rank's ways lies in. */
static uint64_t blocks_now(const struct pstk__windowed *windowed, const uint64_t *next,
                           const uint8_t *is_own, uint8_t *seen, uint64_t n_blocks)
{
    uint64_t n = 0;
    memset(seen, 0, n_blocks);
    for (uint32_t way = 0; way < windowed->interleave.ways; way++) {
        if (!is_own[way] || next[way] >= pstk__windowed_way(windowed, way))
            continue;
        const struct pstk__interleave_blocks blocks =
            pstk__windowed_blocks(windowed, way, pstk__windowed_window(windowed, way, next[way]));
        for (uint64_t line = blocks.first; line <= blocks.last; line++)
            n += !seen[line]++;
    }
    return n;
}

static uint64_t n_set(const uint8_t *flags, uint64_t n)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < n; i++)
        count += flags[i];
    return count;
}

static struct counted count(const struct pstk__interleave *interleave, uint64_t world)
{
    static struct pstk__windowed windowed;
    const uint64_t n_blocks = (interleave->n - 1) / interleave->block + 1;
    uint8_t *reads = calloc(n_blocks * world, 1), *seen = calloc(n_blocks, 1),
            *ways = calloc(interleave->ways, 1), *ranks = calloc(world, 1);
    uint64_t *next = calloc(interleave->ways, sizeof *next);
    struct counted counted = {0};
    pstk__windowed_init(&windowed, interleave, 3, 1);
    for (uint64_t k = 0; k < interleave->n; k++) {
        struct pstk__interleave_location location;
        pstk__windowed_locate(&windowed, k, &location);
        reads[k % world * n_blocks + location.line] = 1;
        if (k % world == 0)
            ways[location.way] = 1;
        if (location.way == 0)
            ranks[k % world] = 1;
    }
    for (uint64_t k = 0; k < interleave->n; k++) {
        next[k % interleave->ways] = k / interleave->ways;
        if (k % 1009 == 0) {
            const uint64_t n = blocks_now(&windowed, next, ways, seen, n_blocks);
            counted.blocks = n > counted.blocks ? n : counted.blocks;
        }
    }
    counted.readings = n_set(reads, n_blocks * world);
    counted.ways = n_set(ways, interleave->ways);
    counted.ranks = n_set(ranks, world);
    free(reads);
    free(seen);
    free(ways);
    free(ranks);
    free(next);
    return counted;
}

TEST(explain_is_what_happens)
{
    static const uint32_t ways[] = {1, 3, 12, 48}, blocks[] = {1, 16, 64}, windows[] = {1, 4, 9};
    static const uint64_t worlds[] = {1, 2, 3, 5, 8, 12, 36, 48, 96, 200}, ns[] = {30011, 36864};
    for (size_t i = 0; i < 4 * 3 * 3 * 10; i++) {
        const struct pstk__interleave interleave = {.n = ns[i % 7 % 2],
                                                    .ways = ways[i % 4],
                                                    .block = blocks[i / 4 % 3],
                                                    .window = windows[i / 12 % 3]};
        const uint64_t world = worlds[i / 36];
        const struct counted counted = count(&interleave, world);
        struct pstk__interleave_share share;
        pstk__interleave_explain(&interleave, world, &share);
        CHECK_EQ(share.ways, counted.ways);
        CHECK_EQ(share.ranks, counted.ranks);
        CHECK(share.blocks >= counted.blocks);
        /* The first and the last window of a way are shorter; there are others. */
        const int has_more =
            interleave.n / interleave.ways >= 4u * interleave.window * interleave.block;
        CHECK(!has_more || share.blocks <= counted.blocks + share.ways + 1);
        const double n_blocks = (double)((interleave.n - 1) / interleave.block + 1);
        const double wanted = (double)counted.readings / n_blocks;
        CHECK(share.n_readings >= 1);
        /* Neighbouring windows of a way are taken to be of independent ranks. */
        const double near = interleave.window == 1 ? 0.2 : 0.04;
        CHECK(share.n_readings > (1 - near) * wanted && share.n_readings < (1 + near) * wanted);
    }
}

TEST(a_block_is_read_once_where_world_divides_ways_of_whole_blocks)
{
    const struct pstk__interleave interleave = {
        .n = 48 * 6400, .ways = 48, .block = 64, .window = 4};
    for (uint64_t world = 1; world <= 48; world++) {
        struct pstk__interleave_share share;
        pstk__interleave_explain(&interleave, world, &share);
        if (48 % world == 0)
            CHECK(share.n_readings == 1 && share.ranks == 1 && share.ways == 48 / world);
        else
            CHECK(share.n_readings > 1.4 && share.ranks > 1);
    }
}

TEST(explain_takes_the_smallest_and_the_largest)
{
    struct pstk__interleave interleave = {.n = 0, .ways = 48, .block = 64, .window = 4};
    struct pstk__interleave_share share;
    pstk__interleave_explain(&interleave, 3, &share);
    CHECK(share.ways == 0 && share.blocks == 0 && share.n_readings == 0);
    interleave.n = 1;
    pstk__interleave_explain(&interleave, 1 << 24, &share);
    CHECK(share.blocks == 1 && share.n_mixed == 1 && share.n_readings == 1);
    interleave = (struct pstk__interleave){.n = (uint64_t)1 << 62,
                                           .ways = PSTK__WAYS_MAX,
                                           .block = PSTK__BLOCK_MAX,
                                           .window = PSTK__WINDOW_MAX};
    pstk__interleave_explain(&interleave, 1 << 24, &share);
    CHECK(share.ways == 1 && share.ranks == 256);
    CHECK(share.blocks == PSTK__WINDOW_MAX + 1);
    CHECK(share.n_mixed == (uint64_t)1 << 48);
    CHECK(share.n_readings > 255.9 && share.n_readings < 256.1);
}

TEST(advise_gives_a_multiple_of_world_near_48)
{
    static const struct {
        uint64_t n, world;
        uint32_t ways;
    } expected[] = {
        {1000000, 1, 48},
        {1000000, 2, 48},
        {1000000, 5, 50},
        {1000000, 7, 49},
        {1000000, 32, 64},
        {1000000, 48, 48},
        {1000000, 64, 64},
        {1000000, 256, 256},
        {1 << 30, 4096, 4096},
        {49151, 1, 47},
        {49152, 1, 48},
        {20000, 8, 16},
        {8192, 8, 8},
        {8191, 8, 8},
        {10, 8, 8},
        {1, 1, 1},
        {1 << 30, 65536, 65536},
        {1 << 30, 131072, 65536},
        {1 << 30, 65537, 1},
        {0, 3, 3},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const struct pstk__interleave interleave = {.n = expected[i].n, .block = 64, .window = 4};
        CHECK_EQ(pstk__interleave_advise(&interleave, expected[i].world), expected[i].ways);
    }
}

int main(void)
{
    static const struct test_case cases[] = {
        CASE(explain_is_what_happens),
        CASE(a_block_is_read_once_where_world_divides_ways_of_whole_blocks),
        CASE(explain_takes_the_smallest_and_the_largest),
        CASE(advise_gives_a_multiple_of_world_near_48),
    };
    return RUN_CASES(cases);
}
