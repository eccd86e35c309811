/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg/forward_avx2: the forward steps with AVX2: 16 pixels, 32 means, or two blocks at a time, a
 * block in each half of a vector. */
#include "base/little.h"
#include "image/jpeg/forward_x86.h"

#if defined(__x86_64__)

#include <penstock/penstock.h>

#define TARGET __attribute__((target("avx2,bmi,bmi2,popcnt")))
#define INLINE static inline __attribute__((always_inline)) TARGET

/* ---- colour --------------------------------------------------------------------------------- */

/* Return bytes c, c + 3, c + 6, ... of 48. */
INLINE __m256i channel(const __m128i part[3], int c)
{
    static const int8_t _Alignas(16) shuffles[3][3][16] = {
        {{0, 3, 6, 9, 12, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
         {-1, -1, -1, -1, -1, -1, 2, 5, 8, 11, 14, -1, -1, -1, -1, -1},
         {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 1, 4, 7, 10, 13}},
        {{1, 4, 7, 10, 13, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
         {-1, -1, -1, -1, -1, 0, 3, 6, 9, 12, 15, -1, -1, -1, -1, -1},
         {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 2, 5, 8, 11, 14}},
        {{2, 5, 8, 11, 14, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
         {-1, -1, -1, -1, -1, 1, 4, 7, 10, 13, -1, -1, -1, -1, -1, -1},
         {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 3, 6, 9, 12, 15}},
    };
    __m128i sum = _mm_setzero_si128();
    for (int i = 0; i < 3; i++)
        sum = _mm_or_si128(
            sum, _mm_shuffle_epi8(part[i], *(const __m128i *)(const void *)shuffles[c][i]));
    return _mm256_cvtepu8_epi16(sum);
}

INLINE __m256i pair(int first, int second)
{
    return _mm256_set1_epi32((int32_t)((uint32_t)(uint16_t)first | (uint32_t)second << 16));
}

/* Store the upper halves of 16 sums as bytes. */
INLINE void put_bytes(uint8_t *out, __m256i low, __m256i high)
{
    const __m256i words =
        _mm256_packs_epi32(_mm256_srli_epi32(low, 16), _mm256_srli_epi32(high, 16));
    _mm_storeu_si128((__m128i *)(void *)out, _mm_packus_epi16(_mm256_castsi256_si128(words),
                                                              _mm256_extracti128_si256(words, 1)));
}

/* Compute the luma. Green's 38470 is split into 22086 + 16384, which fit 16 bits. */
INLINE __m256i luma(__m256i red_green, __m256i blue_green)
{
    return _mm256_add_epi32(
        _mm256_add_epi32(
            _mm256_madd_epi16(red_green, pair(PSTK__F_0_29900, PSTK__F_0_58700 - 16384)),
            _mm256_madd_epi16(blue_green, pair(PSTK__F_0_11400, 16384))),
        _mm256_set1_epi32(PSTK__COLOUR_HALF));
}

/* Return x / 2 minus weighted parts of two other colours. `shifted` has x in the upper halves. */
INLINE __m256i chroma(__m256i shifted, __m256i others, __m256i factors)
{
    return _mm256_add_epi32(
        _mm256_add_epi32(_mm256_srli_epi32(shifted, 1), _mm256_madd_epi16(others, factors)),
        _mm256_set1_epi32(PSTK__COLOUR_CENTRE));
}

TARGET void pstk__forward_split_avx2(uint8_t *const ycc[3], const uint8_t *rgb, uint32_t n)
{
    const __m256i zero = _mm256_setzero_si256();
    const __m256i of_cb = pair(-PSTK__F_0_16874, -PSTK__F_0_33126);
    const __m256i of_cr = pair(-PSTK__F_0_08131, -PSTK__F_0_41869);
    for (uint32_t i = 0; i < n; i += 16, rgb += 48) {
        const __m128i *in = (const __m128i *)(const void *)rgb;
        const __m128i part[3] = {_mm_loadu_si128(in), _mm_loadu_si128(in + 1),
                                 _mm_loadu_si128(in + 2)};
        const __m256i r = channel(part, 0), g = channel(part, 1), b = channel(part, 2);
        const __m256i rg[2] = {_mm256_unpacklo_epi16(r, g), _mm256_unpackhi_epi16(r, g)};
        const __m256i bg[2] = {_mm256_unpacklo_epi16(b, g), _mm256_unpackhi_epi16(b, g)};
        put_bytes(ycc[0] + i, luma(rg[0], bg[0]), luma(rg[1], bg[1]));
        put_bytes(ycc[1] + i, chroma(_mm256_unpacklo_epi16(zero, b), rg[0], of_cb),
                  chroma(_mm256_unpackhi_epi16(zero, b), rg[1], of_cb));
        put_bytes(ycc[2] + i, chroma(_mm256_unpacklo_epi16(zero, r), bg[0], of_cr),
                  chroma(_mm256_unpackhi_epi16(zero, r), bg[1], of_cr));
    }
}

/* Sum pairs of neighbours. */
INLINE __m256i pair_sums(const uint8_t *row)
{
    return _mm256_maddubs_epi16(_mm256_loadu_si256((const __m256i *)(const void *)row),
                                _mm256_set1_epi8(1));
}

INLINE __m256i means(const uint8_t *upper, const uint8_t *lower)
{
    const __m256i sum = _mm256_add_epi16(pair_sums(upper), pair_sums(lower));
    return _mm256_srli_epi16(_mm256_add_epi16(sum, pair(1, 2)), 2);
}

TARGET void pstk__forward_halve_avx2(uint8_t *out, const uint8_t *upper, const uint8_t *lower,
                                     uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 32) {
        const __m256i bytes = _mm256_packus_epi16(means(upper + 2 * i, lower + 2 * i),
                                                  means(upper + 2 * i + 32, lower + 2 * i + 32));
        _mm256_storeu_si256((__m256i *)(void *)(out + i), _mm256_permute4x64_epi64(bytes, 0xd8));
    }
}

/* ---- forward DCT ---------------------------------------------------------------------------- */

typedef __m256i vector;
#define OP(name) _mm256_##name
#define BROADCAST(x) _mm256_broadcastsi128_si256(x)
#include "image/jpeg/forward_dct.h"

/* Quantise the coefficients of two blocks and store them, block after block. */
INLINE void quantise(int16_t out[2][64], const vector rows[8],
                     const struct pstk__jpeg_divisors *divisors)
{
    for (int v = 0; v < 8; v++) {
        const vector half = row_of(divisors->half, v), scale = row_of(divisors->scale, v);
        const vector reciprocal = row_of(divisors->reciprocal, v);
        vector a = _mm256_add_epi16(_mm256_abs_epi16(rows[v]), half);
        a = _mm256_mulhi_epu16(_mm256_mulhi_epu16(a, reciprocal), scale);
        a = _mm256_sign_epi16(a, rows[v]);
        _mm_store_si128((__m128i *)(void *)&out[0][8 * v], _mm256_castsi256_si128(a));
        _mm_store_si128((__m128i *)(void *)&out[1][8 * v], _mm256_extracti128_si256(a, 1));
    }
}

/* ---- packing -------------------------------------------------------------------------------- */

/* Byte shuffles: for sixteen positions of the zigzag order, their index in each sixteen bytes of a
 * block; -1: the value lies in other bytes. */
struct shuffles {
    int8_t _Alignas(16) at[4][4][16];
};

static void shuffles_init(struct shuffles *shuffles)
{
    for (uint32_t z = 0; z < 64; z++)
        for (uint32_t part = 0; part < 4; part++)
            shuffles->at[z / 16][part][z % 16] =
                (int8_t)(pstk__zigzag[z] / 16 == part ? pstk__zigzag[z] % 16 : -1);
}

INLINE __m128i load(const void *p)
{
    return _mm_load_si128((const __m128i *)p);
}

/* Append the bytes that a map marks, in order. Each step stores eight bytes, and moves on by the
 * number marked. */
INLINE int8_t *compress(int8_t *out, const int8_t *bytes, uint64_t map)
{
    for (; map != 0; map >>= 8, bytes += 8) {
        const uint64_t mask = _pdep_u64(map & 255, 0x0101010101010101) * 255;
        const uint64_t packed = _pext_u64(pstk__get64((const uint8_t *)bytes), mask);
        pstk__put64((uint8_t *)out, packed);
        out += __builtin_popcountll(map & 255);
    }
    return out;
}

/* Pack a block as pstk__block_pack does; no coefficient may be wide. */
INLINE void pack(struct pstk__block_writer *to, const int16_t block[64],
                 const struct shuffles *shuffles)
{
    int8_t _Alignas(16) bytes[64];
    __m128i part[4];
    uint64_t zeros = 0, edges = 0;
    for (int i = 0; i < 4; i++)
        part[i] = _mm_packs_epi16(load(block + 16 * i), load(block + 16 * i + 8));
    for (int i = 0; i < 4; i++) {
        __m128i z = _mm_setzero_si128();
        for (int k = 0; k < 4; k++)
            z = _mm_or_si128(z, _mm_shuffle_epi8(part[k], load(shuffles->at[i][k])));
        const __m128i edge = _mm_or_si128(_mm_cmpeq_epi8(z, _mm_set1_epi8(127)),
                                          _mm_cmpeq_epi8(z, _mm_set1_epi8(-128)));
        const __m128i zero = _mm_cmpeq_epi8(z, _mm_setzero_si128());
        zeros |= (uint64_t)(uint32_t)_mm_movemask_epi8(zero) << (16 * i);
        edges |= (uint64_t)(uint32_t)_mm_movemask_epi8(edge) << (16 * i);
        _mm_store_si128((__m128i *)(void *)(bytes + 16 * i), z);
    }
    if (__builtin_expect((edges & ~(uint64_t)1) != 0, 0)) {
        pstk__block_pack(to, block);
        return;
    }
    const uint64_t map = ~zeros & ~(uint64_t)1;
    *to->dc++ = block[0];
    *to->maps++ = map;
    to->values = compress(to->values, bytes, map);
}

TARGET static void transform(const struct pstk__block_writer *to, const uint8_t *samples,
                             size_t stride, uint32_t n_blocks,
                             const struct pstk__jpeg_divisors *divisors)
{
    struct pstk__block_writer writer = *to;
    struct shuffles shuffles;
    shuffles_init(&shuffles);
    for (uint32_t i = 0; i < n_blocks; i += 2, samples += 16) {
        int16_t _Alignas(32) blocks[2][64];
        vector rows[8];
        for (uint32_t y = 0; y < 8; y++)
            rows[y] = _mm256_sub_epi16(_mm256_cvtepu8_epi16(_mm_loadu_si128(
                                           (const __m128i *)(const void *)(samples + y * stride))),
                                       _mm256_set1_epi16(128));
        both_passes(rows);
        quantise(blocks, rows, divisors);
        pack(&writer, blocks[0], &shuffles);
        if (i + 1 < n_blocks)
            pack(&writer, blocks[1], &shuffles);
    }
}

const struct pstk__forward_kernels pstk__forward_kernels_avx2 = {
    .isa = PSTK_KERNELS_AVX2,
    .split = pstk__forward_split_avx2,
    .halve = pstk__forward_halve_avx2,
    .transform = transform,
};

#endif
