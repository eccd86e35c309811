/* SPDX-License-Identifier: Apache-2.0 */
#include "order/windowed.h"
#include "support/test.h"

static struct pstk__windowed windowed;

static void init(uint64_t n, uint32_t strands, uint32_t block, uint32_t window, uint64_t seed)
{
    pstk__windowed_init(
        &windowed,
        &(struct pstk__weave){.n = n, .strands = strands, .block = block, .window = window}, seed,
        seed % 3);
}

/* Is every id given once? And is every place what the functions for readers say? */
static int is_right(uint8_t *seen)
{
    const uint64_t n = windowed.weave.n;
    memset(seen, 0, n);
    for (uint64_t k = 0; k < n; k++) {
        struct pstk__weave_place place;
        pstk__windowed_place(&windowed, k, &place);
        if (place.id >= n || seen[place.id]++ || place.id != pstk__windowed_at(&windowed, k))
            return 0;
        uint64_t first, begin, length;
        uint32_t rows;
        pstk__windowed_block(&windowed, place.line, &first, &rows);
        if (place.row >= rows || place.id != first + place.row)
            return 0;
        const uint64_t i = k / windowed.weave.strands;
        if (place.window != pstk__windowed_window(&windowed, place.strand, i) ||
            place.window >= pstk__windowed_n_windows(&windowed, place.strand))
            return 0;
        pstk__windowed_span(&windowed, place.strand, place.window, &begin, &length);
        if (i < begin || i >= begin + length || length > windowed.n_window)
            return 0;
        const struct pstk__weave_blocks blocks =
            pstk__windowed_blocks(&windowed, place.strand, place.window);
        if (place.line < blocks.first || place.line > blocks.last ||
            blocks.last - blocks.first > windowed.weave.window + 1u)
            return 0;
    }
    return 1;
}

TEST(windowed_is_a_bijection_for_every_small_n)
{
    static uint8_t seen[700];
    static const uint32_t strands[] = {1, 2, 3, 7, 48, 1000}, blocks[] = {1, 2, 5, 64, 1000},
                          windows[] = {1, 2, 3, 8};
    for (uint64_t n = 1; n <= 700; n += 1 + n / 40)
        for (size_t s = 0; s < sizeof strands / sizeof *strands; s++)
            for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++)
                for (size_t w = 0; w < sizeof windows / sizeof *windows; w++) {
                    init(n, strands[s], blocks[b], windows[w], n + s);
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
        init(ns[i], PSTK__STRANDS_MAX, i & 1 ? 64 : PSTK__BLOCK_MAX, PSTK__WINDOW_MAX, 5);
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
        uint32_t strands;
    } expected[] = {{1, 1},      {4095, 1},   {4096, 4},   {12287, 4},
                    {12288, 12}, {49151, 12}, {49152, 48}, {(uint64_t)1 << 40, 48}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct pstk__weave weave = {.n = expected[i].n};
        pstk__weave_settle(&weave);
        CHECK_EQ(weave.strands, expected[i].strands);
        CHECK_EQ(weave.block, 64);
        CHECK_EQ(weave.window, 4);
    }
    struct pstk__weave set = {.n = 1 << 20, .strands = 5, .block = 6, .window = 7};
    pstk__weave_settle(&set);
    CHECK(set.strands == 5 && set.block == 6 && set.window == 7);
}

int main(void)
{
    static const struct test_case cases[] = {
        CASE(windowed_is_a_bijection_for_every_small_n),
        CASE(windowed_is_a_bijection_around_powers_of_two),
        CASE(windowed_stays_in_range_for_the_largest_n),
        CASE(settle_fills_in_what_is_not_set_from_n_alone),
    };
    return RUN_CASES(cases);
}
