/* SPDX-License-Identifier: Apache-2.0 */
/*
 * avx2_neon: intrinsics for which SIMDe 0.7 has more instructions than NEON needs, often a loop
 * over elements. Two of them need not give what AVX2 does where no kernel depends on it: a float
 * that no int32_t holds is converted to another number, and -2^15 times -2^15 saturates in mulhrs.
 */
#ifndef PSTK_BASE_AVX2_NEON_H
#define PSTK_BASE_AVX2_NEON_H

#include <arm_neon.h>
#include <stdint.h>

#define PSTK__NEON static inline __attribute__((always_inline))

PSTK__NEON __m256i pstk__neon_joined(int64x2_t low, int64x2_t high)
{
    simde__m256i_private v;
    v.m128i[0] = low;
    v.m128i[1] = high;
    return simde__m256i_from_private(v);
}

/* Return the lower (0) or the upper (1) half. */
PSTK__NEON int64x2_t pstk__neon_half(__m256i v, int i)
{
    return simde__m256i_to_private(v).m128i[i];
}

PSTK__NEON float32x4_t pstk__neon_floats(__m256 v, int i)
{
    return vreinterpretq_f32_s64(pstk__neon_half(_mm256_castps_si256(v), i));
}

PSTK__NEON __m256 pstk__neon_joined_floats(float32x4_t low, float32x4_t high)
{
    return _mm256_castsi256_ps(
        pstk__neon_joined(vreinterpretq_s64_f32(low), vreinterpretq_s64_f32(high)));
}

PSTK__NEON __m256i pstk__neon_mulhrs_epi16(__m256i a, __m256i b)
{
    int16x8_t v[2];
    for (int i = 0; i < 2; i++)
        v[i] = vqrdmulhq_s16(vreinterpretq_s16_s64(pstk__neon_half(a, i)),
                             vreinterpretq_s16_s64(pstk__neon_half(b, i)));
    return pstk__neon_joined(vreinterpretq_s64_s16(v[0]), vreinterpretq_s64_s16(v[1]));
}

PSTK__NEON __m256i pstk__neon_mullo_epi16(__m256i a, __m256i b)
{
    int16x8_t v[2];
    for (int i = 0; i < 2; i++)
        v[i] = vmulq_s16(vreinterpretq_s16_s64(pstk__neon_half(a, i)),
                         vreinterpretq_s16_s64(pstk__neon_half(b, i)));
    return pstk__neon_joined(vreinterpretq_s64_s16(v[0]), vreinterpretq_s64_s16(v[1]));
}

PSTK__NEON __m256i pstk__neon_cvttps_epi32(__m256 v)
{
    return pstk__neon_joined(vreinterpretq_s64_s32(vcvtq_s32_f32(pstk__neon_floats(v, 0))),
                             vreinterpretq_s64_s32(vcvtq_s32_f32(pstk__neon_floats(v, 1))));
}

PSTK__NEON __m256 pstk__neon_cvtepi32_ps(__m256i v)
{
    return pstk__neon_joined_floats(vcvtq_f32_s32(vreinterpretq_s32_s64(pstk__neon_half(v, 0))),
                                    vcvtq_f32_s32(vreinterpretq_s32_s64(pstk__neon_half(v, 1))));
}

PSTK__NEON __m256i pstk__neon_cvtepu8_epi16(__m128i v)
{
    const uint8x16_t bytes = vreinterpretq_u8_s64(v);
    return pstk__neon_joined(vreinterpretq_s64_u16(vmovl_u8(vget_low_u8(bytes))),
                             vreinterpretq_s64_u16(vmovl_high_u8(bytes)));
}

PSTK__NEON __m256i pstk__neon_cvtepu16_epi32(__m128i v)
{
    const uint16x8_t words = vreinterpretq_u16_s64(v);
    return pstk__neon_joined(vreinterpretq_s64_u32(vmovl_u16(vget_low_u16(words))),
                             vreinterpretq_s64_u32(vmovl_high_u16(words)));
}

/* Each index is 0 to 7. */
PSTK__NEON __m256i pstk__neon_permutevar8x32_epi32(__m256i v, __m256i index)
{
    const uint8x16x2_t table = {
        {vreinterpretq_u8_s64(pstk__neon_half(v, 0)), vreinterpretq_u8_s64(pstk__neon_half(v, 1))}};
    int64x2_t out[2];
    for (int i = 0; i < 2; i++) {
        const uint32x4_t dwords = vreinterpretq_u32_s64(pstk__neon_half(index, i));
        const uint32x4_t bytes = vmlaq_n_u32(vdupq_n_u32(0x03020100), dwords, 0x04040404);
        out[i] = vreinterpretq_s64_u8(vqtbl2q_u8(table, vreinterpretq_u8_u32(bytes)));
    }
    return pstk__neon_joined(out[0], out[1]);
}

PSTK__NEON int64x1_t pstk__neon_quarter(__m256i v, int i)
{
    const int64x2_t half = pstk__neon_half(v, i / 2);
    return i % 2 ? vget_high_s64(half) : vget_low_s64(half);
}

PSTK__NEON __m256i pstk__neon_permute4x64_epi64(__m256i v, int order)
{
    return pstk__neon_joined(
        vcombine_s64(pstk__neon_quarter(v, order & 3), pstk__neon_quarter(v, order >> 2 & 3)),
        vcombine_s64(pstk__neon_quarter(v, order >> 4 & 3), pstk__neon_quarter(v, order >> 6 & 3)));
}

PSTK__NEON __m256i pstk__neon_blend_epi16(__m256i a, __m256i b, int mask)
{
    int16x8_t v[2];
    uint16_t words[8];
    for (int i = 0; i < 8; i++)
        words[i] = mask >> i & 1 ? 0xffff : 0;
    for (int i = 0; i < 2; i++)
        v[i] = vbslq_s16(vld1q_u16(words), vreinterpretq_s16_s64(pstk__neon_half(b, i)),
                         vreinterpretq_s16_s64(pstk__neon_half(a, i)));
    return pstk__neon_joined(vreinterpretq_s64_s16(v[0]), vreinterpretq_s64_s16(v[1]));
}

/* Rounds to nearest, ties to even, as the thread does. */
PSTK__NEON __m128i pstk__neon_cvtps_ph(__m256 v, int rounding)
{
    (void)rounding;
    return vreinterpretq_s64_f16(
        vcvt_high_f16_f32(vcvt_f16_f32(pstk__neon_floats(v, 0)), pstk__neon_floats(v, 1)));
}

PSTK__NEON __m256 pstk__neon_cvtph_ps(__m128i v)
{
    const float16x8_t halves = vreinterpretq_f16_s64(v);
    return pstk__neon_joined_floats(vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves));
}

#undef _mm256_mulhrs_epi16
#define _mm256_mulhrs_epi16 pstk__neon_mulhrs_epi16
#undef _mm256_mullo_epi16
#define _mm256_mullo_epi16 pstk__neon_mullo_epi16
#undef _mm256_cvttps_epi32
#define _mm256_cvttps_epi32 pstk__neon_cvttps_epi32
#undef _mm256_cvtepi32_ps
#define _mm256_cvtepi32_ps pstk__neon_cvtepi32_ps
#undef _mm256_cvtepu8_epi16
#define _mm256_cvtepu8_epi16 pstk__neon_cvtepu8_epi16
#undef _mm256_cvtepu16_epi32
#define _mm256_cvtepu16_epi32 pstk__neon_cvtepu16_epi32
#undef _mm256_permutevar8x32_epi32
#define _mm256_permutevar8x32_epi32 pstk__neon_permutevar8x32_epi32
#undef _mm256_permute4x64_epi64
#define _mm256_permute4x64_epi64 pstk__neon_permute4x64_epi64
#undef _mm256_blend_epi16
#define _mm256_blend_epi16 pstk__neon_blend_epi16
#undef _mm256_cvtps_ph
#define _mm256_cvtps_ph pstk__neon_cvtps_ph
#undef _mm256_cvtph_ps
#define _mm256_cvtph_ps pstk__neon_cvtph_ps

#endif
