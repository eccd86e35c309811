/* SPDX-License-Identifier: Apache-2.0 */
/*
 * avx2_neon: those of AVX2's intrinsics that the files compiled for NEON use, each made of two
 * registers of 128 bits. Some do less than AVX2's where no kernel depends on it:
 *
 * - an index of shuffle_epi8 is 0 to 15, or has its top bit set
 * - a byte of a mask of blendv is 0 or -1
 * - shuffle_ps takes the even (0x88) or the odd (0xDD) elements
 * - a float that no int32_t holds is converted to another number; min_ps ignores NaN
 * - conversions to f16 round as the thread does: to nearest, ties to even
 */
#ifndef PSTK_BASE_AVX2_NEON_H
#define PSTK_BASE_AVX2_NEON_H

#include <arm_neon.h>
#include <stdint.h>

#define PSTK__NEON static inline __attribute__((always_inline))

typedef int64x2_t __m128i;

typedef struct {
    int64x2_t half[2];
} __m256i;

typedef struct {
    float32x4_t half[2];
} __m256;

#define _MM_FROUND_TO_NEAREST_INT 0
#define _CMP_UNORD_Q 3

PSTK__NEON __m256i pstk__neon_joined(int64x2_t low, int64x2_t high)
{
    return (__m256i){{low, high}};
}

/* Return the lower (0) or the upper (1) half. */
PSTK__NEON int64x2_t pstk__neon_half(__m256i v, int i)
{
    return i ? v.half[1] : v.half[0];
}

/* ---- memory and constants -------------------------------------------------------------------- */

PSTK__NEON __m128i _mm_loadu_si128(const __m128i *p)
{
    return vreinterpretq_s64_u8(vld1q_u8((const uint8_t *)p));
}

PSTK__NEON void _mm_storeu_si128(__m128i *p, __m128i v)
{
    vst1q_u8((uint8_t *)p, vreinterpretq_u8_s64(v));
}

PSTK__NEON __m128i _mm_loadl_epi64(const __m128i *p)
{
    return vreinterpretq_s64_u8(vcombine_u8(vld1_u8((const uint8_t *)p), vdup_n_u8(0)));
}

PSTK__NEON void _mm_storel_epi64(__m128i *p, __m128i v)
{
    vst1_u8((uint8_t *)p, vreinterpret_u8_s64(vget_low_s64(v)));
}

PSTK__NEON __m256i _mm256_loadu_si256(const __m256i *p)
{
    const uint8_t *from = (const uint8_t *)p;
    return pstk__neon_joined(vreinterpretq_s64_u8(vld1q_u8(from)),
                             vreinterpretq_s64_u8(vld1q_u8(from + 16)));
}

PSTK__NEON void _mm256_storeu_si256(__m256i *p, __m256i v)
{
    uint8_t *to = (uint8_t *)p;
    vst1q_u8(to, vreinterpretq_u8_s64(v.half[0]));
    vst1q_u8(to + 16, vreinterpretq_u8_s64(v.half[1]));
}

PSTK__NEON __m256 _mm256_loadu_ps(const float *p)
{
    return (__m256){{vld1q_f32(p), vld1q_f32(p + 4)}};
}

PSTK__NEON void _mm256_storeu_ps(float *p, __m256 v)
{
    vst1q_f32(p, v.half[0]);
    vst1q_f32(p + 4, v.half[1]);
}

PSTK__NEON __m256i _mm256_broadcastsi128_si256(__m128i v)
{
    return pstk__neon_joined(v, v);
}

PSTK__NEON __m128i _mm_set1_epi8(char v)
{
    return vreinterpretq_s64_u8(vdupq_n_u8((uint8_t)v));
}

PSTK__NEON __m128i _mm_set1_epi16(int16_t v)
{
    return vreinterpretq_s64_s16(vdupq_n_s16(v));
}

PSTK__NEON __m128i _mm_set1_epi32(int32_t v)
{
    return vreinterpretq_s64_s32(vdupq_n_s32(v));
}

PSTK__NEON __m128i _mm_setzero_si128(void)
{
    return vdupq_n_s64(0);
}

PSTK__NEON __m128i _mm_set_epi64x(int64_t high, int64_t low)
{
    return (int64x2_t){low, high};
}

PSTK__NEON __m128i _mm_setr_epi8(int a, int b, int c, int d, int e, int f, int g, int h, int i,
                                 int j, int k, int l, int m, int n, int o, int p)
{
    const int8x16_t v = {(int8_t)a, (int8_t)b, (int8_t)c, (int8_t)d, (int8_t)e, (int8_t)f,
                         (int8_t)g, (int8_t)h, (int8_t)i, (int8_t)j, (int8_t)k, (int8_t)l,
                         (int8_t)m, (int8_t)n, (int8_t)o, (int8_t)p};
    return vreinterpretq_s64_s8(v);
}

PSTK__NEON __m256i _mm256_set1_epi8(char v)
{
    return _mm256_broadcastsi128_si256(_mm_set1_epi8(v));
}

PSTK__NEON __m256i _mm256_set1_epi16(int16_t v)
{
    return _mm256_broadcastsi128_si256(_mm_set1_epi16(v));
}

PSTK__NEON __m256i _mm256_set1_epi32(int32_t v)
{
    return _mm256_broadcastsi128_si256(_mm_set1_epi32(v));
}

PSTK__NEON __m256i _mm256_setzero_si256(void)
{
    return _mm256_broadcastsi128_si256(_mm_setzero_si128());
}

PSTK__NEON __m256 _mm256_set1_ps(float v)
{
    return (__m256){{vdupq_n_f32(v), vdupq_n_f32(v)}};
}

PSTK__NEON __m256i _mm256_set_epi64x(int64_t d, int64_t c, int64_t b, int64_t a)
{
    return pstk__neon_joined(_mm_set_epi64x(b, a), _mm_set_epi64x(d, c));
}

PSTK__NEON __m256i _mm256_setr_epi32(int a, int b, int c, int d, int e, int f, int g, int h)
{
    const int32x4_t low = {a, b, c, d}, high = {e, f, g, h};
    return pstk__neon_joined(vreinterpretq_s64_s32(low), vreinterpretq_s64_s32(high));
}

/* ---- halves ---------------------------------------------------------------------------------- */

PSTK__NEON __m128i _mm256_castsi256_si128(__m256i v)
{
    return v.half[0];
}

PSTK__NEON __m256i _mm256_castsi128_si256(__m128i v)
{
    return pstk__neon_joined(v, v);
}

PSTK__NEON __m128i _mm256_extracti128_si256(__m256i v, int i)
{
    return pstk__neon_half(v, i);
}

/* i is 1. */
PSTK__NEON __m256i _mm256_inserti128_si256(__m256i v, __m128i half, int i)
{
    (void)i;
    return pstk__neon_joined(v.half[0], half);
}

PSTK__NEON int64x1_t pstk__neon_quarter(__m256i v, int i)
{
    const int64x2_t half = pstk__neon_half(v, i & 2);
    return i & 1 ? vget_high_s64(half) : vget_low_s64(half);
}

PSTK__NEON __m256i _mm256_permute4x64_epi64(__m256i v, int order)
{
    return pstk__neon_joined(
        vcombine_s64(pstk__neon_quarter(v, order), pstk__neon_quarter(v, order >> 2)),
        vcombine_s64(pstk__neon_quarter(v, order >> 4), pstk__neon_quarter(v, order >> 6)));
}

PSTK__NEON __m256 _mm256_castsi256_ps(__m256i v)
{
    return (__m256){{vreinterpretq_f32_s64(v.half[0]), vreinterpretq_f32_s64(v.half[1])}};
}

PSTK__NEON __m256i _mm256_castps_si256(__m256 v)
{
    return pstk__neon_joined(vreinterpretq_s64_f32(v.half[0]), vreinterpretq_s64_f32(v.half[1]));
}

/* ---- lanes ----------------------------------------------------------------------------------- */

/* Define a function of two operands, for one register and for two: `of` types the operands, `to`
 * the result. */
#define PSTK__NEON_TWO(name, name_256, of, to, function)                                           \
    PSTK__NEON __m128i name(__m128i a, __m128i b)                                                  \
    {                                                                                              \
        return vreinterpretq_s64_##to(                                                             \
            function(vreinterpretq_##of##_s64(a), vreinterpretq_##of##_s64(b)));                   \
    }                                                                                              \
    PSTK__NEON __m256i name_256(__m256i a, __m256i b)                                              \
    {                                                                                              \
        return pstk__neon_joined(name(a.half[0], b.half[0]), name(a.half[1], b.half[1]));          \
    }

PSTK__NEON int8x16_t pstk__neon_packs_16(int16x8_t a, int16x8_t b)
{
    return vqmovn_high_s16(vqmovn_s16(a), b);
}

PSTK__NEON uint8x16_t pstk__neon_packus_16(int16x8_t a, int16x8_t b)
{
    return vqmovun_high_s16(vqmovun_s16(a), b);
}

PSTK__NEON int16x8_t pstk__neon_packs_32(int32x4_t a, int32x4_t b)
{
    return vqmovn_high_s32(vqmovn_s32(a), b);
}

PSTK__NEON uint16x8_t pstk__neon_packus_32(int32x4_t a, int32x4_t b)
{
    return vqmovun_high_s32(vqmovun_s32(a), b);
}

PSTK__NEON uint16x8_t pstk__neon_mulhi_u16(uint16x8_t a, uint16x8_t b)
{
    return vuzp2q_u16(vreinterpretq_u16_u32(vmull_u16(vget_low_u16(a), vget_low_u16(b))),
                      vreinterpretq_u16_u32(vmull_high_u16(a, b)));
}

PSTK__NEON int32x4_t pstk__neon_madd_16(int16x8_t a, int16x8_t b)
{
    return vpaddq_s32(vmull_s16(vget_low_s16(a), vget_low_s16(b)), vmull_high_s16(a, b));
}

PSTK__NEON uint64x2_t pstk__neon_sad_u8(uint8x16_t a, uint8x16_t b)
{
    return vpaddlq_u32(vpaddlq_u16(vpaddlq_u8(vabdq_u8(a, b))));
}

PSTK__NEON uint8x16_t pstk__neon_shuffled(uint8x16_t bytes, uint8x16_t index)
{
    return vqtbl1q_u8(bytes, index);
}

/* Return b without the bits of a. */
PSTK__NEON uint8x16_t pstk__neon_andnot(uint8x16_t a, uint8x16_t b)
{
    return vbicq_u8(b, a);
}

PSTK__NEON_TWO(_mm_add_epi8, _mm256_add_epi8, s8, s8, vaddq_s8)
PSTK__NEON_TWO(_mm_add_epi16, _mm256_add_epi16, s16, s16, vaddq_s16)
PSTK__NEON_TWO(_mm_add_epi32, _mm256_add_epi32, s32, s32, vaddq_s32)
PSTK__NEON_TWO(_mm_add_epi64, _mm256_add_epi64, u64, u64, vaddq_u64)
PSTK__NEON_TWO(_mm_sub_epi8, _mm256_sub_epi8, s8, s8, vsubq_s8)
PSTK__NEON_TWO(_mm_sub_epi32, _mm256_sub_epi32, s32, s32, vsubq_s32)
PSTK__NEON_TWO(_mm_and_si128, _mm256_and_si256, u8, u8, vandq_u8)
PSTK__NEON_TWO(_mm_or_si128, _mm256_or_si256, u8, u8, vorrq_u8)
PSTK__NEON_TWO(_mm_andnot_si128, _mm256_andnot_si256, u8, u8, pstk__neon_andnot)
PSTK__NEON_TWO(_mm_xor_si128, _mm256_xor_si256, u8, u8, veorq_u8)
PSTK__NEON_TWO(_mm_min_epi8, _mm256_min_epi8, s8, s8, vminq_s8)
PSTK__NEON_TWO(_mm_min_epu8, _mm256_min_epu8, u8, u8, vminq_u8)
PSTK__NEON_TWO(_mm_max_epu8, _mm256_max_epu8, u8, u8, vmaxq_u8)
PSTK__NEON_TWO(_mm_min_epi32, _mm256_min_epi32, s32, s32, vminq_s32)
PSTK__NEON_TWO(_mm_max_epi32, _mm256_max_epi32, s32, s32, vmaxq_s32)
PSTK__NEON_TWO(_mm_cmpgt_epi32, _mm256_cmpgt_epi32, s32, u32, vcgtq_s32)
PSTK__NEON_TWO(_mm_cmpeq_epi8, _mm256_cmpeq_epi8, s8, u8, vceqq_s8)
PSTK__NEON_TWO(_mm_cmpeq_epi32, _mm256_cmpeq_epi32, s32, u32, vceqq_s32)
PSTK__NEON_TWO(_mm_mullo_epi16, _mm256_mullo_epi16, s16, s16, vmulq_s16)
PSTK__NEON_TWO(_mm_mulhi_epu16, _mm256_mulhi_epu16, u16, u16, pstk__neon_mulhi_u16)
PSTK__NEON_TWO(_mm_madd_epi16, _mm256_madd_epi16, s16, s32, pstk__neon_madd_16)
PSTK__NEON_TWO(_mm_sad_epu8, _mm256_sad_epu8, u8, u64, pstk__neon_sad_u8)
PSTK__NEON_TWO(_mm_shuffle_epi8, _mm256_shuffle_epi8, u8, u8, pstk__neon_shuffled)
PSTK__NEON_TWO(_mm_packs_epi16, _mm256_packs_epi16, s16, s8, pstk__neon_packs_16)
PSTK__NEON_TWO(_mm_packus_epi16, _mm256_packus_epi16, s16, u8, pstk__neon_packus_16)
PSTK__NEON_TWO(_mm_packs_epi32, _mm256_packs_epi32, s32, s16, pstk__neon_packs_32)
PSTK__NEON_TWO(_mm_packus_epi32, _mm256_packus_epi32, s32, u16, pstk__neon_packus_32)
PSTK__NEON_TWO(_mm_unpacklo_epi8, _mm256_unpacklo_epi8, s8, s8, vzip1q_s8)
PSTK__NEON_TWO(_mm_unpackhi_epi8, _mm256_unpackhi_epi8, s8, s8, vzip2q_s8)
PSTK__NEON_TWO(_mm_unpacklo_epi16, _mm256_unpacklo_epi16, s16, s16, vzip1q_s16)
PSTK__NEON_TWO(_mm_unpackhi_epi16, _mm256_unpackhi_epi16, s16, s16, vzip2q_s16)
PSTK__NEON_TWO(_mm_unpacklo_epi32, _mm256_unpacklo_epi32, s32, s32, vzip1q_s32)
PSTK__NEON_TWO(_mm_unpackhi_epi32, _mm256_unpackhi_epi32, s32, s32, vzip2q_s32)
PSTK__NEON_TWO(_mm_unpacklo_epi64, _mm256_unpacklo_epi64, u64, u64, vzip1q_u64)
PSTK__NEON_TWO(_mm_unpackhi_epi64, _mm256_unpackhi_epi64, u64, u64, vzip2q_u64)

/* Define a shift, for one register and for two. */
#define PSTK__NEON_SHIFT(name, name_256, lane, type, operator)                                     \
    PSTK__NEON __m128i name(__m128i v, int n)                                                      \
    {                                                                                              \
        return vreinterpretq_s64_##lane(vreinterpretq_##lane##_s64(v) operator(type) n);           \
    }                                                                                              \
    PSTK__NEON __m256i name_256(__m256i v, int n)                                                  \
    {                                                                                              \
        return pstk__neon_joined(name(v.half[0], n), name(v.half[1], n));                          \
    }

PSTK__NEON_SHIFT(_mm_slli_epi16, _mm256_slli_epi16, u16, uint16_t, <<)
PSTK__NEON_SHIFT(_mm_srli_epi16, _mm256_srli_epi16, u16, uint16_t, >>)
PSTK__NEON_SHIFT(_mm_srai_epi16, _mm256_srai_epi16, s16, int16_t, >>)
PSTK__NEON_SHIFT(_mm_slli_epi32, _mm256_slli_epi32, u32, uint32_t, <<)
PSTK__NEON_SHIFT(_mm_srli_epi32, _mm256_srli_epi32, u32, uint32_t, >>)

PSTK__NEON __m128i _mm_blendv_epi8(__m128i a, __m128i b, __m128i mask)
{
    return vbslq_s64(vreinterpretq_u64_s64(mask), b, a);
}

PSTK__NEON __m256i _mm256_blendv_epi8(__m256i a, __m256i b, __m256i mask)
{
    return pstk__neon_joined(_mm_blendv_epi8(a.half[0], b.half[0], mask.half[0]),
                             _mm_blendv_epi8(a.half[1], b.half[1], mask.half[1]));
}

PSTK__NEON uint32_t pstk__neon_top_bits(int64x2_t v)
{
    const uint8x16_t ones = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t is_set = vreinterpretq_u8_s8(vreinterpretq_s8_s64(v) >> (int8_t)7);
    const uint8x16_t bits = vandq_u8(is_set, ones);
    return vaddv_u8(vget_low_u8(bits)) | (uint32_t)vaddv_u8(vget_high_u8(bits)) << 8;
}

PSTK__NEON int _mm256_movemask_epi8(__m256i v)
{
    return (int)(pstk__neon_top_bits(v.half[0]) | pstk__neon_top_bits(v.half[1]) << 16);
}

/* Each index is 0 to 7. */
PSTK__NEON __m128i pstk__neon_looked_up(__m256i v, int64x2_t index)
{
    const uint8x16x2_t table = {{vreinterpretq_u8_s64(v.half[0]), vreinterpretq_u8_s64(v.half[1])}};
    const uint32x4_t bytes =
        vmlaq_n_u32(vdupq_n_u32(0x03020100), vreinterpretq_u32_s64(index), 0x04040404);
    return vreinterpretq_s64_u8(vqtbl2q_u8(table, vreinterpretq_u8_u32(bytes)));
}

PSTK__NEON __m256i _mm256_permutevar8x32_epi32(__m256i v, __m256i index)
{
    return pstk__neon_joined(pstk__neon_looked_up(v, index.half[0]),
                             pstk__neon_looked_up(v, index.half[1]));
}

/* ---- floats ---------------------------------------------------------------------------------- */

#define PSTK__NEON_FLOATS(name, function)                                                          \
    PSTK__NEON __m256 name(__m256 a, __m256 b)                                                     \
    {                                                                                              \
        return (__m256){{function(a.half[0], b.half[0]), function(a.half[1], b.half[1])}};         \
    }

PSTK__NEON_FLOATS(_mm256_add_ps, vaddq_f32)
PSTK__NEON_FLOATS(_mm256_sub_ps, vsubq_f32)
PSTK__NEON_FLOATS(_mm256_mul_ps, vmulq_f32)
PSTK__NEON_FLOATS(_mm256_div_ps, vdivq_f32)
PSTK__NEON_FLOATS(_mm256_min_ps, vminnmq_f32)

PSTK__NEON __m256 _mm256_fmadd_ps(__m256 a, __m256 b, __m256 c)
{
    return (__m256){
        {vfmaq_f32(c.half[0], a.half[0], b.half[0]), vfmaq_f32(c.half[1], a.half[1], b.half[1])}};
}

/* Return c - a * b. */
PSTK__NEON __m256 _mm256_fnmadd_ps(__m256 a, __m256 b, __m256 c)
{
    return (__m256){
        {vfmsq_f32(c.half[0], a.half[0], b.half[0]), vfmsq_f32(c.half[1], a.half[1], b.half[1])}};
}

PSTK__NEON float32x4_t pstk__neon_by_sign(float32x4_t a, float32x4_t b, float32x4_t mask)
{
    return vbslq_f32(vcltzq_s32(vreinterpretq_s32_f32(mask)), b, a);
}

PSTK__NEON __m256 _mm256_blendv_ps(__m256 a, __m256 b, __m256 mask)
{
    return (__m256){{pstk__neon_by_sign(a.half[0], b.half[0], mask.half[0]),
                     pstk__neon_by_sign(a.half[1], b.half[1], mask.half[1])}};
}

PSTK__NEON float32x4_t pstk__neon_unordered(float32x4_t a, float32x4_t b)
{
    return vreinterpretq_f32_u32(vmvnq_u32(vandq_u32(vceqq_f32(a, a), vceqq_f32(b, b))));
}

/* The comparison is _CMP_UNORD_Q. */
PSTK__NEON __m256 _mm256_cmp_ps(__m256 a, __m256 b, int comparison)
{
    (void)comparison;
    return (__m256){
        {pstk__neon_unordered(a.half[0], b.half[0]), pstk__neon_unordered(a.half[1], b.half[1])}};
}

PSTK__NEON float32x4_t pstk__neon_chosen(float32x4_t a, float32x4_t b, int elements)
{
    return elements == 0x88 ? vuzp1q_f32(a, b) : vuzp2q_f32(a, b);
}

PSTK__NEON __m256 _mm256_shuffle_ps(__m256 a, __m256 b, int elements)
{
    return (__m256){{pstk__neon_chosen(a.half[0], b.half[0], elements),
                     pstk__neon_chosen(a.half[1], b.half[1], elements)}};
}

/* The scale is 4. */
PSTK__NEON __m256 _mm256_i32gather_ps(const float *from, __m256i index, int scale)
{
    const int32x4_t a = vreinterpretq_s32_s64(index.half[0]);
    const int32x4_t b = vreinterpretq_s32_s64(index.half[1]);
    const float32x4_t low = {from[a[0]], from[a[1]], from[a[2]], from[a[3]]};
    const float32x4_t high = {from[b[0]], from[b[1]], from[b[2]], from[b[3]]};
    (void)scale;
    return (__m256){{low, high}};
}

/* ---- conversions ----------------------------------------------------------------------------- */

PSTK__NEON __m256i _mm256_cvttps_epi32(__m256 v)
{
    return pstk__neon_joined(vreinterpretq_s64_s32(vcvtq_s32_f32(v.half[0])),
                             vreinterpretq_s64_s32(vcvtq_s32_f32(v.half[1])));
}

PSTK__NEON __m256 _mm256_cvtepi32_ps(__m256i v)
{
    return (__m256){{vcvtq_f32_s32(vreinterpretq_s32_s64(v.half[0])),
                     vcvtq_f32_s32(vreinterpretq_s32_s64(v.half[1]))}};
}

PSTK__NEON __m256i _mm256_cvtepu8_epi16(__m128i v)
{
    const uint8x16_t bytes = vreinterpretq_u8_s64(v);
    return pstk__neon_joined(vreinterpretq_s64_u16(vmovl_u8(vget_low_u8(bytes))),
                             vreinterpretq_s64_u16(vmovl_high_u8(bytes)));
}

PSTK__NEON __m256i _mm256_cvtepu16_epi32(__m128i v)
{
    const uint16x8_t words = vreinterpretq_u16_s64(v);
    return pstk__neon_joined(vreinterpretq_s64_u32(vmovl_u16(vget_low_u16(words))),
                             vreinterpretq_s64_u32(vmovl_high_u16(words)));
}

PSTK__NEON __m256i _mm256_cvtepu8_epi32(__m128i v)
{
    return _mm256_cvtepu16_epi32(
        vreinterpretq_s64_u16(vmovl_u8(vget_low_u8(vreinterpretq_u8_s64(v)))));
}

PSTK__NEON __m128i _mm256_cvtps_ph(__m256 v, int rounding)
{
    (void)rounding;
    return vreinterpretq_s64_f16(vcvt_high_f16_f32(vcvt_f16_f32(v.half[0]), v.half[1]));
}

PSTK__NEON __m256 _mm256_cvtph_ps(__m128i v)
{
    const float16x8_t halves = vreinterpretq_f16_s64(v);
    return (__m256){{vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves)}};
}

#endif
