/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg/forward_avx512: the forward steps with AVX-512: 64 pixels, or four blocks at a time, a block
 * in each quarter of a vector. */
#include "image/jpeg/forward_x86.h"

#if defined(__x86_64__)

#include <penstock/penstock.h>

#define TARGET                                                                                     \
    __attribute__((                                                                                \
        target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx512vnni,bmi,bmi2,popcnt")))
#define INLINE static inline __attribute__((always_inline)) TARGET

typedef __m512i vector;
#define OP(name) _mm512_##name
#define BROADCAST(x) _mm512_broadcast_i32x4(x)
#include "image/jpeg/forward_dct.h"

INLINE vector load(const void *p)
{
    return _mm512_loadu_si512(p);
}

/* ---- colour --------------------------------------------------------------------------------- */

/* Lists of f(0) to f(63). */
#define N4(f, i) f(i), f((i) + 1), f((i) + 2), f((i) + 3)
#define N16(f, i) N4(f, i), N4(f, (i) + 4), N4(f, (i) + 8), N4(f, (i) + 12)
#define N64(f) N16(f, 0), N16(f, 16), N16(f, 32), N16(f, 48)

/* Indices of a channel's bytes: the low 7 bits in the first two vectors, the low 6 in the third. */
#define RED(i) (3 * (i)) & 255
#define GREEN(i) (3 * (i) + 1) & 255
#define BLUE(i) (3 * (i) + 2) & 255
static const uint8_t _Alignas(64) places[3][64] = {{N64(RED)}, {N64(GREEN)}, {N64(BLUE)}};

INLINE vector channel(int c, const vector part[3])
{
    const vector at = load(places[c]);
    const vector first = _mm512_permutex2var_epi8(part[0], at, part[1]);
    return _mm512_mask_permutexvar_epi8(first, _mm512_movepi8_mask(at), at, part[2]);
}

/* Return the upper halves of sums in two vectors, as one. */
INLINE vector upper_words(struct pairs sums)
{
    return _mm512_packus_epi32(_mm512_srli_epi32(sums.low, 16), _mm512_srli_epi32(sums.high, 16));
}

INLINE struct pairs plus(struct pairs p, int number)
{
    const vector all = _mm512_set1_epi32(number);
    return (struct pairs){_mm512_add_epi32(p.low, all), _mm512_add_epi32(p.high, all)};
}

/* Return half of x, in the upper halves. */
INLINE struct pairs halves(vector x)
{
    const struct pairs shifted = interleave(_mm512_setzero_si512(), x);
    return (struct pairs){_mm512_srli_epi32(shifted.low, 1), _mm512_srli_epi32(shifted.high, 1)};
}

/* Compute words of the three components from words of the colours. */
INLINE void words_of(vector out[3], vector r, vector g, vector b)
{
    const struct pairs rg = interleave(r, g), bg = interleave(b, g);
    const struct pairs luma =
        sum(products(rg, PSTK__F_0_29900, PSTK__F_0_58700 - 16384),
            products(bg, PSTK__F_0_11400, 16384)); /* 38470 does not fit 16 bits */
    out[0] = upper_words(plus(luma, PSTK__COLOUR_HALF));
    out[1] = upper_words(plus(sum(halves(b), products(rg, -PSTK__F_0_16874, -PSTK__F_0_33126)),
                              PSTK__COLOUR_CENTRE));
    out[2] = upper_words(plus(sum(halves(r), products(bg, -PSTK__F_0_08131, -PSTK__F_0_41869)),
                              PSTK__COLOUR_CENTRE));
}

TARGET static void split(uint8_t *const ycc[3], const uint8_t *rgb, uint32_t n)
{
    const vector zero = _mm512_setzero_si512();
    for (uint32_t i = 0; i < n; i += 64, rgb += 192) {
        vector part[3], x[3], low[3], high[3];
        const uint32_t n_bytes = n - i < 64 ? 3 * (n - i) : 192;
        for (uint32_t k = 0; k < 3; k++) {
            const uint32_t left = n_bytes > 64 * k ? n_bytes - 64 * k : 0;
            part[k] = _mm512_maskz_loadu_epi8(_bzhi_u64(~(uint64_t)0, left > 64 ? 64 : left),
                                              rgb + 64 * (size_t)k);
        }
        for (int c = 0; c < 3; c++)
            x[c] = channel(c, part);
        words_of(low, _mm512_unpacklo_epi8(x[0], zero), _mm512_unpacklo_epi8(x[1], zero),
                 _mm512_unpacklo_epi8(x[2], zero));
        words_of(high, _mm512_unpackhi_epi8(x[0], zero), _mm512_unpackhi_epi8(x[1], zero),
                 _mm512_unpackhi_epi8(x[2], zero));
        for (int c = 0; c < 3; c++)
            _mm512_storeu_si512(ycc[c] + i, _mm512_packus_epi16(low[c], high[c]));
    }
}

/* ---- blocks --------------------------------------------------------------------------------- */

/* Quantise the coefficients of four blocks, rows v of all of them together. */
INLINE void quantise(vector rows[8], const struct pstk__jpeg_divisors *divisors)
{
    for (int v = 0; v < 8; v++) {
        const vector half = row_of(divisors->half, v), scale = row_of(divisors->scale, v);
        const __mmask32 negative = _mm512_movepi16_mask(rows[v]);
        vector a = _mm512_add_epi16(_mm512_abs_epi16(rows[v]), half);
        a = _mm512_mulhi_epu16(_mm512_mulhi_epu16(a, row_of(divisors->reciprocal, v)), scale);
        rows[v] = _mm512_mask_sub_epi16(a, negative, _mm512_setzero_si512(), a);
    }
}

/* Convert four blocks to saturated bytes in natural order: the rows of all become one vector for
 * each. */
INLINE void saturate(vector blocks[4], const vector rows[8])
{
    vector two[4], a[4];
    for (int i = 0; i < 4; i++)
        two[i] = _mm512_packs_epi16(rows[2 * i], rows[2 * i + 1]);
    a[0] = _mm512_shuffle_i32x4(two[0], two[1], 0x44); /* quarters 0 and 1 of both */
    a[1] = _mm512_shuffle_i32x4(two[0], two[1], 0xee);
    a[2] = _mm512_shuffle_i32x4(two[2], two[3], 0x44);
    a[3] = _mm512_shuffle_i32x4(two[2], two[3], 0xee);
    blocks[0] = _mm512_shuffle_i32x4(a[0], a[2], 0x88);
    blocks[1] = _mm512_shuffle_i32x4(a[0], a[2], 0xdd);
    blocks[2] = _mm512_shuffle_i32x4(a[1], a[3], 0x88);
    blocks[3] = _mm512_shuffle_i32x4(a[1], a[3], 0xdd);
}

/* Append a block with wide coefficients. */
INLINE void pack_wide(struct pstk__block_writer *to, const vector rows[8], uint32_t b)
{
    int16_t _Alignas(64) words[8][32];
    int16_t block[64];
    for (int v = 0; v < 8; v++)
        _mm512_store_si512(words[v], rows[v]);
    for (uint32_t i = 0; i < 64; i++)
        block[i] = words[i / 8][8 * b + i % 8];
    pstk__block_pack(to, block);
}

/* Return the DC of block b, the first of its quarter. */
INLINE int16_t dc_of(vector row, uint32_t b)
{
    const __m256i half = b < 2 ? _mm512_castsi512_si256(row) : _mm512_extracti64x4_epi64(row, 1);
    const __m128i quarter =
        b % 2 ? _mm256_extracti128_si256(half, 1) : _mm256_castsi256_si128(half);
    return (int16_t)_mm_cvtsi128_si32(quarter);
}

/* Append block b of four. */
INLINE void pack(struct pstk__block_writer *to, vector bytes, const vector rows[8], uint32_t b)
{
    const vector z = _mm512_permutexvar_epi8(load(pstk__zigzag), bytes);
    const uint64_t map = _mm512_test_epi8_mask(z, z) & ~(uint64_t)1;
    const uint64_t edges = _mm512_cmpeq_epi8_mask(z, _mm512_set1_epi8(127)) |
                           _mm512_cmpeq_epi8_mask(z, _mm512_set1_epi8(-128));
    if (__builtin_expect((edges & ~(uint64_t)1) != 0, 0)) {
        pack_wide(to, rows, b);
        return;
    }
    *to->dc++ = dc_of(rows[0], b);
    *to->maps++ = map;
    _mm512_storeu_si512(to->values, _mm512_maskz_compress_epi8(map, z));
    to->values += __builtin_popcountll(map);
}

TARGET static void transform(const struct pstk__block_writer *to, const uint8_t *samples,
                             size_t stride, uint32_t n_blocks,
                             const struct pstk__jpeg_divisors *divisors)
{
    struct pstk__block_writer writer = *to;
    for (uint32_t i = 0; i < n_blocks; i += 4, samples += 32) {
        vector rows[8], blocks[4];
        for (uint32_t y = 0; y < 8; y++)
            rows[y] = _mm512_sub_epi16(_mm512_cvtepu8_epi16(_mm256_loadu_si256(
                                           (const __m256i *)(const void *)(samples + y * stride))),
                                       _mm512_set1_epi16(128));
        both_passes(rows);
        quantise(rows, divisors);
        saturate(blocks, rows);
        for (uint32_t b = 0; b < 4; b++) /* unrolled */
            if (i + b < n_blocks)
                pack(&writer, blocks[b], rows, b);
    }
}

const struct pstk__forward_kernels pstk__forward_kernels_avx512 = {
    .isa = PSTK_KERNELS_AVX512,
    .split = split,
    .halve = pstk__forward_halve_avx2,
    .transform = transform,
};

#endif
