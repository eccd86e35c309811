/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cast.h"
#include "support/test.h"

#include <math.h>

static uint32_t state = 1;

static uint32_t draw(void)
{
    state = state * 1664525u + 1013904223u;
    return state ^ state >> 15;
}

static float float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static double half_value(uint32_t h) /* by the definition, not by bits of a float */
{
    const int e = (int)(h >> 10 & 31), m = (int)(h & 1023);
    const double v = e == 0 ? ldexp(m, -24) : ldexp(1024 + m, e - 25);
    return h & 0x8000 ? -v : v;
}

TEST(every_half_becomes_its_float_and_comes_back)
{
    for (uint32_t h = 0; h < 65536; h++) {
        const float f = pstk__f32_from_f16((uint16_t)h);
        if ((h & 0x7c00) != 0x7c00)
            CHECK((double)f == half_value(h) && !signbit(f) == !(h & 0x8000));
        else
            CHECK((h & 0x3ff) ? isnan(f) : isinf(f));
        const uint32_t quiet = (h & 0x7fff) > 0x7c00 ? h | 0x200 : h;
        CHECK_EQ(pstk__f16_from_f32(f), quiet);
    }
}

TEST(floats_round_to_the_nearest_half_ties_to_even)
{
    for (uint32_t h = 0; h < 0x7c00; h++) { /* between each half and the next: below, at, above */
        const double next = h + 1 == 0x7c00 ? 65536.0 : half_value(h + 1);
        const float middle = (float)((half_value(h) + next) / 2); /* exact: 12 bits */
        const uint32_t even = h & 1 ? h + 1 : h;
        CHECK_EQ(pstk__f16_from_f32(middle), even);
        CHECK_EQ(pstk__f16_from_f32(nextafterf(middle, 0.0f)), h);
        CHECK_EQ(pstk__f16_from_f32(nextafterf(middle, INFINITY)), h + 1);
        CHECK_EQ(pstk__f16_from_f32(-middle), even | 0x8000);
    }
    for (int i = 0; i < 2000000; i++) {
        const float f = float_of(draw());
        const uint32_t h = pstk__f16_from_f32(f);
        if (isnan(f) || fabsf(f) >= 65520.0f)
            continue;
        const double off = fabs((double)f - half_value(h)), m = h & 0x7fff;
        CHECK(off <= fabs((double)f - half_value((uint32_t)m == 0x7bff ? h : h + 1)));
        CHECK(m == 0 || off <= fabs((double)f - half_value(h - 1)));
    }
    CHECK_EQ(pstk__f16_from_f32(65519.996f), 0x7bff);
    CHECK_EQ(pstk__f16_from_f32(65520.0f), 0x7c00);
    CHECK_EQ(pstk__f16_from_f32(-INFINITY), 0xfc00);
}

TEST(floats_round_to_the_nearest_bfloat_ties_to_even)
{
    for (int i = 0; i < 2000000; i++) {
        const uint32_t bits = draw();
        const float f = float_of(bits);
        const uint32_t b = pstk__bf16_from_f32(f);
        if (isnan(f)) {
            CHECK(isnan(float_of(b << 16)));
            continue;
        }
        const uint32_t below = bits & 0xffff, q = bits >> 16;
        CHECK_EQ(b, below < 0x8000 || (below == 0x8000 && !(q & 1)) ? q : q + 1);
    }
}

TEST(exactly_the_dtypes_that_hold_every_value_fit)
{
    /* Rows: from; a 1 where `to` (u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32 f64) holds all. */
    static const char *const fits[13] = {
        NULL,
        /* u8   */ "101111111111",
        /* i8   */ "010101011111",
        /* u16  */ "001011110011",
        /* i16  */ "000101010011",
        /* u32  */ "000010110001",
        /* i32  */ "000001010001",
        /* u64  */ "000000100000",
        /* i64  */ "000000010000",
        /* f16  */ "000000001011",
        /* bf16 */ "000000000111",
        /* f32  */ "000000000011",
        /* f64  */ "000000000001",
    };
    CHECK(!pstk__cast_fits(0, PSTK_U8) && !pstk__cast_fits(PSTK_U8, 13));
    for (uint32_t from = 1; from <= 12; from++)
        for (uint32_t to = 1; to <= 12; to++)
            CHECK_EQ(pstk__cast_fits(from, to), fits[from][to - 1] - '0');
}

TEST(casts_keep_the_value)
{
    int64_t i64;
    double f64;
    float f32;
    uint16_t half;
    uint64_t u64;
    pstk__cast(&i64, PSTK_I64, &(int8_t){-128}, PSTK_I8);
    CHECK_EQ(i64, -128);
    pstk__cast(&i64, PSTK_I64, &(uint32_t){0xfffffffeu}, PSTK_U32);
    CHECK_EQ(i64, 4294967294ll);
    pstk__cast(&f64, PSTK_F64, &(int32_t){INT32_MIN}, PSTK_I32);
    CHECK(f64 == -2147483648.0);
    pstk__cast(&f32, PSTK_F32, &(uint16_t){65535}, PSTK_U16);
    CHECK(f32 == 65535.0f);
    pstk__cast(&half, PSTK_F16, &(uint8_t){255}, PSTK_U8);
    CHECK(pstk__f32_from_f16(half) == 255.0f);
    pstk__cast(&half, PSTK_BF16, &(int8_t){-127}, PSTK_I8);
    CHECK(float_of((uint32_t)half << 16) == -127.0f);
    pstk__cast(&f64, PSTK_F64, &(float){0.1f}, PSTK_F32);
    CHECK(f64 == (double)0.1f);
    pstk__cast(&f32, PSTK_F32, &(uint16_t){0x0001}, PSTK_F16);
    CHECK(f32 == 0x1p-24f);
    pstk__cast(&u64, PSTK_U64, &(uint64_t){UINT64_MAX}, PSTK_U64);
    CHECK(u64 == UINT64_MAX);
}

/* Narrowing of whole numbers, against the bounds of each dtype. */
TEST(whole_numbers_that_a_smaller_dtype_has_are_cast_and_others_refused)
{
    static const struct {
        uint32_t dtype;
        int64_t least;
        uint64_t most;
    } bounds[] = {{PSTK_U8, 0, UINT8_MAX},   {PSTK_I8, INT8_MIN, INT8_MAX},
                  {PSTK_U16, 0, UINT16_MAX}, {PSTK_I16, INT16_MIN, INT16_MAX},
                  {PSTK_U32, 0, UINT32_MAX}, {PSTK_I32, INT32_MIN, INT32_MAX},
                  {PSTK_U64, 0, UINT64_MAX}, {PSTK_I64, INT64_MIN, INT64_MAX}};
    static const int64_t near[] = {0,
                                   1,
                                   -1,
                                   127,
                                   128,
                                   -128,
                                   -129,
                                   255,
                                   256,
                                   65535,
                                   65536,
                                   INT32_MAX,
                                   INT32_MAX + 1ll,
                                   INT32_MIN,
                                   INT32_MIN - 1ll,
                                   UINT32_MAX,
                                   UINT32_MAX + 1ll,
                                   INT64_MAX,
                                   INT64_MIN};
    for (size_t b = 0; b < sizeof bounds / sizeof bounds[0]; b++)
        for (size_t i = 0; i < sizeof near / sizeof near[0]; i++)
            for (int is_unsigned = 0; is_unsigned < 2; is_unsigned++) {
                const int64_t value = near[i];
                const int is_below = !is_unsigned && value < bounds[b].least;
                const int is_above = (is_unsigned || value > 0) && (uint64_t)value > bounds[b].most;
                const uint32_t from = is_unsigned ? PSTK_U64 : PSTK_I64;
                int64_t out[2] = {0, 0}, again = 0;
                const int64_t in[2] = {1, value};
                const int r = pstk__cast_values(out, bounds[b].dtype, in, from, 2);
                CHECK_EQ(r, is_below || is_above ? -1 : 0);
                if (r < 0)
                    continue;
                pstk__cast(&again, from, (uint8_t *)out + pstk_dtype_size(bounds[b].dtype),
                           bounds[b].dtype);
                CHECK(again == value);
            }
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(whole_numbers_that_a_smaller_dtype_has_are_cast_and_others_refused),
        CASE(every_half_becomes_its_float_and_comes_back),
        CASE(floats_round_to_the_nearest_half_ties_to_even),
        CASE(floats_round_to_the_nearest_bfloat_ties_to_even),
        CASE(exactly_the_dtypes_that_hold_every_value_fit),
        CASE(casts_keep_the_value),
    };
    return RUN_CASES(cases);
}
