/* SPDX-License-Identifier: Apache-2.0 */
/* lerp_avx2: eight elements at a time; the plain C kernel does the rest. */
#if defined(__x86_64__) || defined(PSTK_NEON)

#include "pixels/lerp.h"

#include "base/avx2.h"

#include <penstock/machine.h>

#define FEATURES "avx2,f16c"
#define TARGET AVX2_TARGET(FEATURES)
#define INLINE static inline __attribute__((always_inline)) AVX2_TARGET(FEATURES)

INLINE __m256 load_f16(const uint16_t *from)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)from));
}

INLINE __m128i f16_of(__m256 v)
{
    return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
}

TARGET static uint64_t blend_f16(const struct pstk__lerp *b)
{
    uint16_t *to = b->to;
    const uint16_t *from = b->from;
    const __m256 keep = _mm256_set1_ps(b->keep), take = _mm256_set1_ps(b->take);
    uint64_t i = 0;
    for (; b->n - i >= 8; i += 8) {
        const __m128i kept = f16_of(_mm256_mul_ps(load_f16(to + i), keep));
        const __m128i taken = f16_of(_mm256_mul_ps(load_f16(from + i), take));
        const __m256 sum = _mm256_add_ps(_mm256_cvtph_ps(kept), _mm256_cvtph_ps(taken));
        _mm_storeu_si128((__m128i *)(to + i), f16_of(sum));
    }
    return i;
}

INLINE __m256 load_bf16(const uint16_t *from)
{
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

/* Round to a number whose low 16 bits are 0, ties to even; NaN stays NaN. */
INLINE __m256 rounded_bf16(__m256 v)
{
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i chosen = _mm256_blendv_epi8(up, quiet, is_nan);
    return _mm256_castsi256_ps(_mm256_and_si256(chosen, _mm256_set1_epi32((int)0xffff0000)));
}

TARGET static uint64_t blend_bf16(const struct pstk__lerp *b)
{
    uint16_t *to = b->to;
    const uint16_t *from = b->from;
    const __m256 keep = _mm256_set1_ps(b->keep), take = _mm256_set1_ps(b->take);
    uint64_t i = 0;
    for (; b->n - i >= 8; i += 8) {
        const __m256 kept = rounded_bf16(_mm256_mul_ps(load_bf16(to + i), keep));
        const __m256 taken = rounded_bf16(_mm256_mul_ps(load_bf16(from + i), take));
        const __m256 sum = rounded_bf16(_mm256_add_ps(kept, taken));
        const __m256i high = _mm256_srli_epi32(_mm256_castps_si256(sum), 16);
        const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(high, high), 0x08);
        _mm_storeu_si128((__m128i *)(to + i), _mm256_castsi256_si128(packed));
    }
    return i;
}

TARGET static uint64_t blend_f32(const struct pstk__lerp *b)
{
    float *to = b->to;
    const float *from = b->from;
    const __m256 keep = _mm256_set1_ps(b->keep), take = _mm256_set1_ps(b->take);
    uint64_t i = 0;
    for (; b->n - i >= 8; i += 8) {
        const __m256 kept = _mm256_mul_ps(_mm256_loadu_ps(to + i), keep);
        const __m256 taken = _mm256_mul_ps(_mm256_loadu_ps(from + i), take);
        _mm256_storeu_ps(to + i, _mm256_add_ps(kept, taken));
    }
    return i;
}

static void blend_avx2(const struct pstk__lerp *lerp)
{
    const uint64_t size = pstk_dtype_size(lerp->dtype);
    const uint64_t n = lerp->dtype == PSTK_F32   ? blend_f32(lerp)
                       : lerp->dtype == PSTK_F16 ? blend_f16(lerp)
                                                 : blend_bf16(lerp);
    struct pstk__lerp rest = *lerp;
    rest.to = (uint8_t *)lerp->to + n * size;
    rest.from = (const uint8_t *)lerp->from + n * size;
    rest.n = lerp->n - n;
    pstk__lerp_c.blend(&rest);
}

const struct pstk__lerp_kernels pstk__lerp_avx2 = {
    .isa = AVX2_ISA,
    .blend = blend_avx2,
};

#endif
