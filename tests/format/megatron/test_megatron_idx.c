/* SPDX-License-Identifier: Apache-2.0 */
#include "format/megatron/idx.h"

#include "base/little.h"
#include "support/test.h"

static uint8_t head[PSTK__MEGATRON_HEAD];
static struct pstk__megatron_idx idx;
static char text[160];
static uint64_t at;

static void make(uint8_t code, uint64_t n_sequences, uint64_t n_boundaries)
{
    memcpy(head, "MMIDIDX\0\0", 9);
    pstk__put64(head + 9, 1);
    head[17] = code;
    pstk__put64(head + 18, n_sequences);
    pstk__put64(head + 26, n_boundaries);
}

static const char *parse(uint64_t size, uint64_t file_size)
{
    return pstk__megatron_idx_parse(&idx, head, size, file_size, &at, text);
}

TEST(codes_of_dtypes_are_those_of_the_published_layout)
{
    static const uint32_t dtypes[] = {PSTK_U8,  PSTK_I8,  PSTK_I16, PSTK_I32,
                                      PSTK_I64, PSTK_F64, PSTK_F32, PSTK_U16};
    for (uint8_t code = 1; code <= 8; code++) {
        make(code, 3, 2);
        CHECK(!parse(34, 34 + 12 * 3 + 8 * 2));
        CHECK_EQ(idx.dtype, dtypes[code - 1]);
    }
    make(9, 3, 2);
    CHECK(parse(34, 86));
    CHECK_EQ(at, 17);
}

TEST(arrays_follow_the_head_and_modes_may_follow_them)
{
    make(8, 3, 2);
    CHECK(!parse(34, 86) && !parse(34, 89));
    CHECK(idx.lengths == 34 && idx.pointers == 46 && idx.boundaries == 70);
    for (uint64_t size = 34; size < 100; size++)
        CHECK_EQ(parse(34, size) == NULL, size == 86 || size == 89);
}

TEST(counts_that_overflow_are_refused)
{
    static const uint64_t counts[] = {1ull << 41, 1ull << 61, 1ull << 62, UINT64_MAX};
    for (int i = 0; i < 4; i++) {
        make(8, counts[i], 1);
        CHECK(parse(34, 34 + 12 * counts[i] + 8));
        make(8, 0, counts[i]);
        CHECK(parse(34, 34 + 8 * counts[i]));
    }
    make(8, 0, 0);
    CHECK(parse(34, 34));
}

TEST(a_head_that_is_cut_is_refused)
{
    make(8, 0, 1);
    for (uint64_t size = 0; size < 34; size++) {
        CHECK(parse(size, size));
        CHECK_EQ(at, size);
    }
    CHECK(!parse(34, 42));
}

int main(void)
{
    const struct test_case cases[] = {CASE(codes_of_dtypes_are_those_of_the_published_layout),
                                      CASE(arrays_follow_the_head_and_modes_may_follow_them),
                                      CASE(counts_that_overflow_are_refused),
                                      CASE(a_head_that_is_cut_is_refused)};
    return RUN_CASES(cases);
}
