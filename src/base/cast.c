/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cast.h"

#include <string.h>

/* ---- half precision ------------------------------------------------------------------------- */

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Return m >> shift, rounded to nearest, ties to even; 1 <= shift <= 31. */
static uint32_t shift_even(uint32_t m, uint32_t shift)
{
    const uint32_t below = m & ((1u << shift) - 1), half = 1u << (shift - 1);
    const uint32_t q = m >> shift;
    return q + (below > half || (below == half && (q & 1)));
}

uint16_t pstk__f16_from_f32(float value)
{
    const uint32_t bits = bits_of(value);
    const uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    const uint32_t exponent = magnitude >> 23;
    if (magnitude > 0x7f800000u) /* NaN: quiet, as many bits of its payload as fit */
        return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
    if (magnitude >= 0x477ff000u) /* 65520 and more are nearer to 2^16 than to the greatest half */
        return (uint16_t)(sign | 0x7c00u);
    if (exponent >= 113) /* 2^-14 and more: normal; a carry moves into the exponent as it should */
        return (uint16_t)(sign | shift_even(magnitude - (112u << 23), 13));
    if (exponent < 102) /* less than half of the smallest subnormal, 2^-24 */
        return (uint16_t)sign;
    return (uint16_t)(sign | shift_even((magnitude & 0x7fffffu) | 0x800000u, 126 - exponent));
}

uint16_t pstk__bf16_from_f32(float value)
{
    const uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)shift_even(bits, 16); /* a carry makes the next exponent, at last infinity */
}

float pstk__f32_from_f16(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t exponent = half >> 10 & 0x1fu, mantissa = half & 0x3ffu;
    uint32_t bits;
    if (exponent == 0x1f) {
        bits = sign | 0x7f800000u | mantissa << 13;
    } else if (exponent != 0) {
        bits = sign | (exponent + 112) << 23 | mantissa << 13;
    } else { /* 0 and subnormals: mantissa * 2^-24 is exact */
        const float magnitude = (float)mantissa * 0x1p-24f;
        bits = sign | bits_of(magnitude);
    }
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Return the value; a NaN becomes quiet, as in a conversion by hardware. Without this the compiler
 * chooses whether it does. */
static float quiet(float value)
{
    uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        bits |= 0x400000u;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- elements ------------------------------------------------------------------------------- */

enum family { UNSIGNED, SIGNED, FLOATING };

/* The range of a dtype: integers of `bits` magnitude bits, floats with `bits` significant bits. The
 * exponents matter only between f16 and bf16, neither of which holds the other. */
struct dtype_traits {
    enum family family;
    uint32_t bits;
};

static const struct dtype_traits traits[] = {
    [PSTK_U8] = {UNSIGNED, 8},   [PSTK_I8] = {SIGNED, 7},     [PSTK_U16] = {UNSIGNED, 16},
    [PSTK_I16] = {SIGNED, 15},   [PSTK_U32] = {UNSIGNED, 32}, [PSTK_I32] = {SIGNED, 31},
    [PSTK_U64] = {UNSIGNED, 64}, [PSTK_I64] = {SIGNED, 63},   [PSTK_F16] = {FLOATING, 11},
    [PSTK_BF16] = {FLOATING, 8}, [PSTK_F32] = {FLOATING, 24}, [PSTK_F64] = {FLOATING, 53},
};

int pstk__cast_fits(uint32_t from, uint32_t to)
{
    if (pstk_dtype_size(from) == 0 || pstk_dtype_size(to) == 0)
        return 0;
    if (from == to)
        return 1;
    const struct dtype_traits a = traits[from], b = traits[to];
    if (a.family == FLOATING)
        return b.family == FLOATING && b.bits > a.bits && to != PSTK_F16;
    if (a.family == SIGNED && b.family == UNSIGNED)
        return 0;
    return a.bits <= b.bits; /* a signed minimum is a power of two: every float has it */
}

static uint64_t read_unsigned(const void *in, uint32_t size)
{
    uint64_t v = 0;
    for (uint32_t i = 0; i < size; i++)
        v |= (uint64_t)((const uint8_t *)in)[i] << (8 * i);
    return v;
}

static double read_float(const void *in, uint32_t from)
{
    const uint64_t raw = read_unsigned(in, pstk_dtype_size(from));
    const uint32_t low = (uint32_t)raw;
    float single;
    double value;
    if (from == PSTK_F16)
        return quiet(pstk__f32_from_f16((uint16_t)raw));
    if (from == PSTK_BF16 || from == PSTK_F32) {
        const uint32_t bits = from == PSTK_BF16 ? low << 16 : low;
        memcpy(&single, &bits, sizeof single);
        return quiet(single);
    }
    memcpy(&value, &raw, sizeof value);
    return value;
}

static void write_float(void *out, uint32_t to, double value)
{
    const float single = (float)value;
    uint16_t half;
    if (to == PSTK_F64) {
        memcpy(out, &value, sizeof value);
    } else if (to == PSTK_F32) {
        memcpy(out, &single, sizeof single);
    } else {
        half = to == PSTK_F16 ? pstk__f16_from_f32(single) : pstk__bf16_from_f32(single);
        memcpy(out, &half, sizeof half);
    }
}

void pstk__cast(void *out, uint32_t to, const void *in, uint32_t from)
{
    const uint32_t from_size = pstk_dtype_size(from), to_size = pstk_dtype_size(to);
    if (from == to) { /* early, so that a NaN keeps its payload */
        memcpy(out, in, from_size);
        return;
    }
    if (traits[from].family == FLOATING) {
        write_float(out, to, read_float(in, from));
        return;
    }
    uint64_t v = read_unsigned(in, from_size);
    const uint32_t shift = 64 - 8 * from_size;
    if (traits[from].family == SIGNED)
        v = (uint64_t)((int64_t)(v << shift) >> shift); /* extend the sign */
    if (traits[to].family == FLOATING) {
        write_float(out, to, traits[from].family == SIGNED ? (double)(int64_t)v : (double)v);
        return;
    }
    for (uint32_t i = 0; i < to_size; i++)
        ((uint8_t *)out)[i] = (uint8_t)(v >> (8 * i));
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Each pair that token streams need has a loop of its own, which the compiler vectorises. */
#define WIDEN(name, to_type, from_type)                                                            \
    static void name(void *out, const void *in, uint64_t n)                                        \
    {                                                                                              \
        to_type *to = out;                                                                         \
        const uint8_t *bytes = in;                                                                 \
        for (uint64_t i = 0; i < n; i++) {                                                         \
            from_type v;                                                                           \
            memcpy(&v, bytes + i * sizeof v, sizeof v);                                            \
            to[i] = (to_type)v;                                                                    \
        }                                                                                          \
    }
WIDEN(i32_from_u8, int32_t, uint8_t)
WIDEN(i64_from_u8, int64_t, uint8_t)
WIDEN(f32_from_u8, float, uint8_t)
WIDEN(i32_from_u16, int32_t, uint16_t)
WIDEN(i64_from_u16, int64_t, uint16_t)
WIDEN(i64_from_i32, int64_t, int32_t)
WIDEN(i64_from_u32, int64_t, uint32_t)
#undef WIDEN

struct fast_cast {
    uint32_t to, from;
    void (*row)(void *out, const void *in, uint64_t n);
};

static const struct fast_cast fast_casts[] = {
    {PSTK_I32, PSTK_U8, i32_from_u8},   {PSTK_I64, PSTK_U8, i64_from_u8},
    {PSTK_F32, PSTK_U8, f32_from_u8},   {PSTK_I32, PSTK_U16, i32_from_u16},
    {PSTK_I64, PSTK_U16, i64_from_u16}, {PSTK_I64, PSTK_I32, i64_from_i32},
    {PSTK_I64, PSTK_U32, i64_from_u32},
};

void pstk__cast_row(void *out, uint32_t to, const void *in, uint32_t from, uint64_t n)
{
    const uint64_t to_size = pstk_dtype_size(to), from_size = pstk_dtype_size(from);
    if (to == from) {
        memcpy(out, in, n * from_size);
        return;
    }
    for (size_t k = 0; k < sizeof fast_casts / sizeof *fast_casts; k++)
        if (fast_casts[k].to == to && fast_casts[k].from == from) {
            fast_casts[k].row(out, in, n);
            return;
        }
    for (uint64_t i = 0; i < n; i++)
        pstk__cast((uint8_t *)out + i * to_size, to, (const uint8_t *)in + i * from_size, from);
}

/* Cast one whole number. -1: the dtype cannot represent it. */
static int narrow(void *out, uint32_t to, const void *in, uint32_t from)
{
    uint64_t value = 0, again = 0;
    const uint32_t wide = traits[from].family == SIGNED ? PSTK_I64 : PSTK_U64;
    pstk__cast(&value, wide, in, from);
    pstk__cast(out, to, in, from);
    pstk__cast(&again, wide, out, to);
    /* The 64 bits alone do not show a change of sign: one dtype may read a negative number. */
    return again == value && (traits[from].family == traits[to].family || value >> 63 == 0) ? 0
                                                                                            : -1;
}

int pstk__cast_values(void *out, uint32_t to, const void *in, uint32_t from, uint64_t n)
{
    int r = 0;
    if (pstk__cast_fits(from, to)) {
        pstk__cast_row(out, to, in, from, n);
        return 0;
    }
    for (uint64_t i = 0; i < n; i++)
        r |= narrow((uint8_t *)out + i * pstk_dtype_size(to), to,
                    (const uint8_t *)in + i * pstk_dtype_size(from), from);
    return r;
}

int pstk__cast_add(void *row, uint32_t dtype, uint64_t n, int64_t number)
{
    uint8_t *at = row;
    const uint32_t size = pstk_dtype_size(dtype);
    for (uint64_t i = 0; i < n && number != 0; i++, at += size) {
        int64_t value = 0, again = 0;
        pstk__cast(&value, PSTK_I64, at, dtype);
        if (__builtin_add_overflow(value, number, &value))
            return -1;
        memcpy(at, &value, size); /* little-endian: the low bytes come first */
        pstk__cast(&again, PSTK_I64, at, dtype);
        if (again != value)
            return -1;
    }
    return 0;
}
