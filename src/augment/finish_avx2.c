/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finish_avx2: rows of u8 RGB to output elements, with 256-bit registers: by the line of
 * their table where it has one, else by gathers from it.
 */
#include "augment/resize.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define CHANNELS 3u
#define FEATURES "avx2,bmi,bmi2,fma,f16c,popcnt"
#define TARGET __attribute__((target(FEATURES)))
#define INLINE static inline __attribute__((always_inline, target(FEATURES)))

/*
 * 32 pixels at a time. The table is kept as dwords, so that gathers stay inside it. Eight values in
 * a row, from value 8 k of a row on, are of one channel, or, PACKED, of channels 8 k % 3 and on.
 */
#define PACKED CHANNELS
struct lookup {
    union {
        uint32_t table[CHANNELS * 256];
        struct {
            __m256 scale[CHANNELS + 1][3], offset[CHANNELS + 1][3]; /* [channel or PACKED][k % 3] */
        } line;
    };
};
_Static_assert(sizeof(struct lookup) <= PSTK__LOOKUP_SIZE, "a lookup has its place");

#define BLOCK 32u /* pixels */
#define BLOCK_SIZE                                                                                 \
    (CHANNELS * BLOCK) /* bytes; either half is in the same half of three registers */

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* ---- pixels and channels -------------------------------------------------------------------- */

/* Shuffles of 48 packed bytes, in three times 16, to 16 of a channel, and back. */
#define ROW_4(f, c, k, j) f(c, k, j), f(c, k, j + 1), f(c, k, j + 2), f(c, k, j + 3)
#define ROW_16(f, c, k)                                                                            \
    {                                                                                              \
        ROW_4(f, c, k, 0), ROW_4(f, c, k, 4), ROW_4(f, c, k, 8), ROW_4(f, c, k, 12)                \
    }
#define ROW_48(f, c)                                                                               \
    {                                                                                              \
        ROW_16(f, c, 0), ROW_16(f, c, 1), ROW_16(f, c, 2)                                          \
    }
#define SPLIT(c, k, j) ((3 * (j) + (c)) / 16 == (k) ? (3 * (j) + (c)) % 16 : -1)
#define JOIN(c, k, j) ((16 * (k) + (j)) % 3 == (c) ? (16 * (k) + (j)) / 3 : -1)
static const int8_t splits[CHANNELS][3][16] = {ROW_48(SPLIT, 0), ROW_48(SPLIT, 1),
                                               ROW_48(SPLIT, 2)};
static const int8_t joins[CHANNELS][3][16] = {ROW_48(JOIN, 0), ROW_48(JOIN, 1), ROW_48(JOIN, 2)};

INLINE __m256i both(const void *low, const void *high)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(low)),
                                   _mm_loadu_si128(high), 1);
}

INLINE __m256i shuffled(__m256i v, const int8_t index[16])
{
    return _mm256_shuffle_epi8(
        v, _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)index)));
}

INLINE void split(__m256i channel[CHANNELS], const uint8_t *rgb)
{
    __m256i z[3];
    for (uint32_t k = 0; k < 3; k++)
        z[k] = both(rgb + 16 * k, rgb + 48 + 16 * k);
    for (uint32_t c = 0; c < CHANNELS; c++)
        channel[c] = _mm256_or_si256(
            _mm256_or_si256(shuffled(z[0], splits[c][0]), shuffled(z[1], splits[c][1])),
            shuffled(z[2], splits[c][2]));
}

INLINE void join(uint8_t *rgb, const __m256i channel[CHANNELS])
{
    for (uint32_t k = 0; k < 3; k++) {
        const __m256i z = _mm256_or_si256(
            _mm256_or_si256(shuffled(channel[0], joins[0][k]), shuffled(channel[1], joins[1][k])),
            shuffled(channel[2], joins[2][k]));
        _mm_storeu_si128((__m128i *)(rgb + 16 * k), _mm256_castsi256_si128(z));
        _mm_storeu_si128((__m128i *)(rgb + 48 + 16 * k), _mm256_extracti128_si256(z, 1));
    }
}

INLINE __m256i reversed(__m256i v)
{
    const __m128i back = _mm_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    return _mm256_shuffle_epi8(_mm256_permute4x64_epi64(v, 0x4e),
                               _mm256_broadcastsi128_si256(back));
}

/* ---- elements ------------------------------------------------------------------------------ */

/* How bytes become elements: by table, or by its line to either 16-bit dtype. */
enum way { LOOK_UP, LINE_F16, LINE_BF16 };

static int is_line(const struct pstk__finish *f)
{
    return f->affine != NULL && f->affine->exact;
}

/* Channels of the values from 8 k on of packed pixels. */
INLINE __m256i channels_from(uint32_t k)
{
    return k == 0   ? _mm256_setr_epi32(0, 1, 2, 0, 1, 2, 0, 1)
           : k == 1 ? _mm256_setr_epi32(2, 0, 1, 2, 0, 1, 2, 0)
                    : _mm256_setr_epi32(1, 2, 0, 1, 2, 0, 1, 2);
}

TARGET void pstk__lookup_init_avx2(void *lookup, const struct pstk__finish *f)
{
    struct lookup *l = lookup;
    const uint16_t *halves = f->table;
    const struct pstk__affine *a = f->affine;
    for (uint32_t c = 0; c <= PACKED && is_line(f); c++)
        for (uint32_t k = 0; k < 3; k++) {
            const __m256i from = c == PACKED ? channels_from(k) : _mm256_set1_epi32((int)c);
            l->line.scale[c][k] = _mm256_i32gather_ps(a->scale, from, 4);
            l->line.offset[c][k] = _mm256_i32gather_ps(a->offset, from, 4);
        }
    if (is_line(f))
        return;
    if (pstk_dtype_size(f->dtype) == 4)
        memcpy(l->table, f->table, sizeof l->table);
    else
        for (uint32_t i = 0; i < CHANNELS * 256; i++)
            l->table[i] = halves[i];
}

/* Eight values of channel c or PACKED, from value 8 k on. */
INLINE __m256i look_up(const uint8_t *values, const struct lookup *l, uint32_t c, uint32_t k)
{
    const __m256i v = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)values));
    if (c != PACKED)
        return _mm256_i32gather_epi32((const int *)l->table + 256 * c, v, 4);
    const __m256i first = _mm256_slli_epi32(channels_from(k % 3), 8);
    return _mm256_i32gather_epi32((const int *)l->table, _mm256_add_epi32(v, first), 4);
}

INLINE __m256 on_line(const uint8_t *values, const struct lookup *l, uint32_t c, uint32_t k)
{
    const __m256i v = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)values));
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(v), l->line.scale[c][k % 3],
                           l->line.offset[c][k % 3]);
}

/* No value of a line is a tie between two elements: half an element up, and cut. */
INLINE __m256i bf16_of(__m256 v)
{
    const __m256i half = _mm256_set1_epi32(0x8000);
    return _mm256_srli_epi32(_mm256_add_epi32(_mm256_castps_si256(v), half), 16);
}

/* 16 values to 16-bit elements. */
INLINE __m256i sixteen(const uint8_t *values, const struct lookup *l, uint32_t c, uint32_t k,
                       enum way way)
{
    if (way == LINE_F16) {
        const __m256 v = on_line(values, l, c, k), w = on_line(values + 8, l, c, k + 1);
        const __m128i low = _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
        const __m128i high = _mm256_cvtps_ph(w, _MM_FROUND_TO_NEAREST_INT);
        return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
    }
    __m256i low, high;
    if (way == LINE_BF16) {
        low = bf16_of(on_line(values, l, c, k));
        high = bf16_of(on_line(values + 8, l, c, k + 1));
    } else {
        low = look_up(values, l, c, k);
        high = look_up(values + 8, l, c, k + 1);
    }
    return _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
}

/* Elements of n values, at most 32, of which 32 are readable; the first is value 8 k of its row. */
INLINE void elements(uint8_t *out, const uint8_t *values, uint32_t n, const struct lookup *l,
                     uint32_t c, uint32_t k, uint32_t size, enum way way)
{
    uint8_t own[32 * sizeof(uint32_t)];
    __m256i *to = (__m256i *)(n < 32 ? own : out);
    if (size == 2) {
        _mm256_storeu_si256(to, sixteen(values, l, c, k, way));
        _mm256_storeu_si256(to + 1, sixteen(values + 16, l, c, k + 2, way));
    } else {
        _mm256_storeu_si256(to, look_up(values, l, c, k));
        _mm256_storeu_si256(to + 1, look_up(values + 8, l, c, k + 1));
        _mm256_storeu_si256(to + 2, look_up(values + 16, l, c, k + 2));
        _mm256_storeu_si256(to + 3, look_up(values + 24, l, c, k + 3));
    }
    if (n < 32)
        memcpy(out, own, (size_t)n * size);
}

INLINE void store_32(uint8_t *out, __m256i v, uint32_t n)
{
    uint8_t own[32];
    _mm256_storeu_si256((__m256i *)(n < 32 ? own : out), v);
    if (n < 32)
        memcpy(out, own, n);
}

/* n pixels of one channel to their plane. */
INLINE void store_channel(uint8_t *out, __m256i channel, uint32_t n, const struct lookup *l,
                          uint32_t c, uint32_t size, enum way way)
{
    uint8_t values[BLOCK];
    if (size == 1) {
        store_32(out, channel, n);
        return;
    }
    _mm256_storeu_si256((__m256i *)values, channel);
    elements(out, values, n, l, c, 0, size, way);
}

/* n pixels of BLOCK_SIZE readable bytes. */
INLINE void store_packed(uint8_t *out, const uint8_t *rgb, uint32_t n, const struct lookup *l,
                         uint32_t size, enum way way)
{
    const uint32_t n_values = CHANNELS * n;
    if (size == 1) {
        memcpy(out, rgb, n_values);
        return;
    }
    elements(out, rgb, min_u32(n_values, 32), l, PACKED, 0, size, way);
    if (n_values > 32)
        elements(out + 32 * size, rgb + 32, min_u32(n_values - 32, 32), l, PACKED, 4, size, way);
    if (n_values > 64)
        elements(out + 64 * size, rgb + 64, n_values - 64, l, PACKED, 8, size, way);
}

/* ---- rows ---------------------------------------------------------------------------------- */

INLINE void finish_sized(uint8_t *out, const uint8_t *rgb, const struct pstk__finish *f,
                         uint32_t size, enum way way)
{
    const int apart = f->layout == PSTK_NCHW;
    const uint64_t step = size * (apart ? 1 : CHANNELS);
    const struct lookup *l = f->lookup;
    for (uint32_t x = 0; x < f->width; x += BLOCK, out += BLOCK * step) {
        const uint32_t left = f->width - x, n = min_u32(left, BLOCK);
        const uint8_t *from = rgb + (size_t)CHANNELS * (f->flip ? left - n : x);
        uint8_t own[BLOCK_SIZE];
        __m256i channel[CHANNELS];
        if (n < BLOCK) { /* what is mirrored ends where a whole block would */
            memset(own, 0, sizeof own);
            memcpy(own + (f->flip ? CHANNELS * (BLOCK - n) : 0), from, (size_t)CHANNELS * n);
            from = own;
        }
        if (apart || f->flip)
            split(channel, from);
        for (uint32_t c = 0; c < CHANNELS && f->flip; c++)
            channel[c] = reversed(channel[c]);
        if (apart) {
            const uint64_t plane = f->plane * size;
            store_channel(out, channel[0], n, l, 0, size, way);
            store_channel(out + plane, channel[1], n, l, 1, size, way);
            store_channel(out + 2 * plane, channel[2], n, l, 2, size, way);
            continue;
        }
        if (f->flip) {
            join(own, channel);
            from = own;
        }
        store_packed(out, from, n, l, size, way);
    }
}

TARGET void pstk__finish_row_avx2(void *out, const uint8_t *rgb, const struct pstk__finish *f)
{
    const uint32_t size = pstk_dtype_size(f->dtype);
    struct lookup own;
    struct pstk__finish with = *f;
    if (size > 1 && f->lookup == NULL) {
        pstk__lookup_init_avx2(&own, f);
        with.lookup = &own;
    }
    if (size == 1 && f->layout == PSTK_NHWC && !f->flip)
        memcpy(out, rgb, (size_t)CHANNELS * f->width);
    else if (size == 1)
        finish_sized(out, rgb, &with, 1, LOOK_UP);
    else if (size == 4)
        finish_sized(out, rgb, &with, 4, LOOK_UP);
    else if (!is_line(f))
        finish_sized(out, rgb, &with, 2, LOOK_UP);
    else if (f->dtype == PSTK_F16)
        finish_sized(out, rgb, &with, 2, LINE_F16);
    else
        finish_sized(out, rgb, &with, 2, LINE_BF16);
}

#endif
