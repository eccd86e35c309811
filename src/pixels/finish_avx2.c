/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finish_avx2: finishes rows of u8 pixels with 256-bit registers: u8, and 16-bit dtypes by the
 * table's affine function (its line). Look-ups in a table are left to finish_c: gathers, and loads
 * that fill a vector, take longer (benchmarks/bench_levels). `channels` is f->channels, as a
 * constant for the compiler.
 */
#if defined(__x86_64__) || defined(PSTK_NEON)

#include "pixels/resize_avx2.h"
#include "pixels/resize_kernels_c.h"

/*
 * Works on 32 pixels at a time. Eight consecutive values, from value 8 k of a row on, belong to one
 * channel, or, with PACKED, to channels 8 k % channels and on.
 */
#define PACKED PSTK__MAX_CHANNELS
struct lookup {
    __m256 scale[PACKED + 1][3], offset[PACKED + 1][3]; /* [channel or PACKED][k % 3] */
};
_Static_assert(sizeof(struct lookup) <= PSTK__LOOKUP_SIZE, "a lookup has its place");

#define BLOCK 32u /* pixels; each half of them is in the same half of `channels` registers */

/* ---- pixels and channels -------------------------------------------------------------------- */

/* Shuffles from 16 packed pixels, in 3 or 4 registers of 16 bytes, to 16 bytes of a channel, and
 * back. */
#define ROW_4(f, n, c, k, j) f(n, c, k, j), f(n, c, k, j + 1), f(n, c, k, j + 2), f(n, c, k, j + 3)
#define ROW_16(f, n, c, k)                                                                         \
    {                                                                                              \
        ROW_4(f, n, c, k, 0), ROW_4(f, n, c, k, 4), ROW_4(f, n, c, k, 8), ROW_4(f, n, c, k, 12)    \
    }
#define ROWS(f, n, c)                                                                              \
    {                                                                                              \
        ROW_16(f, n, c, 0), ROW_16(f, n, c, 1), ROW_16(f, n, c, 2), ROW_16(f, n, c, 3)             \
    }
#define SPLIT(n, c, k, j) ((n) * (j) + (c)) / 16 == (k) ? ((n) * (j) + (c)) % 16 : -1
#define JOIN(n, c, k, j) (16 * (k) + (j)) % (n) == (c) ? (16 * (k) + (j)) / (n) : -1
/* [channel][register] */
static const int8_t splits_3[3][4][16] = {ROWS(SPLIT, 3, 0), ROWS(SPLIT, 3, 1), ROWS(SPLIT, 3, 2)};
static const int8_t splits_4[4][4][16] = {ROWS(SPLIT, 4, 0), ROWS(SPLIT, 4, 1), ROWS(SPLIT, 4, 2),
                                          ROWS(SPLIT, 4, 3)};
static const int8_t joins_3[3][4][16] = {ROWS(JOIN, 3, 0), ROWS(JOIN, 3, 1), ROWS(JOIN, 3, 2)};
static const int8_t joins_4[4][4][16] = {ROWS(JOIN, 4, 0), ROWS(JOIN, 4, 1), ROWS(JOIN, 4, 2),
                                         ROWS(JOIN, 4, 3)};

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

INLINE void split(__m256i *channel, const uint8_t *pixels, uint32_t channels)
{
    const int8_t(*splits)[4][16] = channels == 3 ? splits_3 : splits_4;
    const uint32_t half = 16 * channels; /* bytes */
    __m256i z[PSTK__MAX_CHANNELS];
    for (uint32_t k = 0; k < channels; k++)
        z[k] = both(pixels + 16 * k, pixels + half + 16 * k);
    if (channels == 1)
        channel[0] = z[0];
    for (uint32_t c = 0; c < channels && channels > 1; c++) {
        channel[c] = _mm256_or_si256(shuffled(z[0], splits[c][0]), shuffled(z[1], splits[c][1]));
        for (uint32_t k = 2; k < channels; k++)
            channel[c] = _mm256_or_si256(channel[c], shuffled(z[k], splits[c][k]));
    }
}

INLINE void join(uint8_t *pixels, const __m256i *channel, uint32_t channels)
{
    const int8_t(*joins)[4][16] = channels == 3 ? joins_3 : joins_4;
    const uint32_t half = 16 * channels; /* bytes */
    for (uint32_t k = 0; k < channels; k++) {
        __m256i z =
            _mm256_or_si256(shuffled(channel[0], joins[0][k]), shuffled(channel[1], joins[1][k]));
        for (uint32_t c = 2; c < channels; c++)
            z = _mm256_or_si256(z, shuffled(channel[c], joins[c][k]));
        _mm_storeu_si128((__m128i *)(pixels + 16 * k), _mm256_castsi256_si128(z));
        _mm_storeu_si128((__m128i *)(pixels + half + 16 * k), _mm256_extracti128_si256(z, 1));
    }
}

INLINE __m256i reversed(__m256i v)
{
    const __m128i back = _mm_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    return _mm256_shuffle_epi8(_mm256_permute4x64_epi64(v, 0x4e),
                               _mm256_broadcastsi128_si256(back));
}

/* ---- elements ------------------------------------------------------------------------------ */

/* The conversions of bytes to elements: a copy, or a line, cast to one of two dtypes. */
enum way { COPY, LINE_F16, LINE_BF16 };

static int is_line(const struct pstk__finish *finish)
{
    return finish->affine && finish->affine->exact;
}

/* Channels of eight values of packed pixels, from value 8 k on. */
INLINE __m256i channels_from(uint32_t k, uint32_t channels)
{
    if (channels == 4)
        return _mm256_setr_epi32(0, 1, 2, 3, 0, 1, 2, 3);
    return k == 0   ? _mm256_setr_epi32(0, 1, 2, 0, 1, 2, 0, 1)
           : k == 1 ? _mm256_setr_epi32(2, 0, 1, 2, 0, 1, 2, 0)
                    : _mm256_setr_epi32(1, 2, 0, 1, 2, 0, 1, 2);
}

TARGET static void line_init(struct lookup *l, uint32_t c, const struct pstk__finish *f)
{
    const struct pstk__affine *a = f->affine;
    for (uint32_t k = 0; k < 3; k++) {
        const __m256i from =
            c == PACKED ? channels_from(k, f->channels) : _mm256_set1_epi32((int)c);
        l->scale[c][k] = _mm256_i32gather_ps(a->scale, from, 4);
        l->offset[c][k] = _mm256_i32gather_ps(a->offset, from, 4);
    }
}

TARGET void pstk__lookup_init_avx2(void *lookup, const struct pstk__finish *f)
{
    if (!is_line(f))
        return;
    for (uint32_t c = 0; c < f->channels; c++)
        line_init(lookup, c, f);
    line_init(lookup, PACKED, f);
}

/* The data that all blocks of a row share. channels, size and way are constants for the compiler.
 */
struct row {
    const struct lookup *lookup;
    uint32_t channels;
    uint32_t size; /* bytes of an element, 1 or 2 */
    enum way way;
    uint32_t flip;
    uint32_t apart; /* 1: elements of a channel are adjacent */
};

/* 32 values of a row, from value 8 k on: one channel's in a register, or PACKED ones in memory. */
struct values {
    const struct row *row;
    uint32_t c;
    uint32_t k;
    const uint8_t *packed;
    __m256i channel;
};

/* Widen the j-th eight of the values to dwords. */
INLINE __m256i eight(const struct values *v, uint32_t j)
{
    if (v->c == PACKED)
        return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(v->packed + 8 * j)));
    const __m128i low = _mm256_castsi256_si128(v->channel);
    const __m128i half = j < 2 ? low : _mm256_extracti128_si256(v->channel, 1);
    return _mm256_cvtepu8_epi32(j % 2 ? _mm_unpackhi_epi64(half, half) : half);
}

INLINE __m256 on_line(const struct values *v, uint32_t j)
{
    const struct lookup *l = v->row->lookup;
    const uint32_t k = (v->k + j) % 3;
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(eight(v, j)), l->scale[v->c][k], l->offset[v->c][k]);
}

/* Convert to bf16. No value of a line is a tie between two elements, so adding half an element and
 * truncating rounds correctly. */
INLINE __m256i bf16_of(__m256 v)
{
    const __m256i half = _mm256_set1_epi32(0x8000);
    return _mm256_srli_epi32(_mm256_add_epi32(_mm256_castps_si256(v), half), 16);
}

/* Make 16-bit elements of the j-th eight values and the eight after them. */
INLINE __m256i sixteen(const struct values *v, uint32_t j)
{
    if (v->row->way == LINE_F16) {
        const __m256 a = on_line(v, j), b = on_line(v, j + 1);
        const __m128i low = _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT);
        const __m128i high = _mm256_cvtps_ph(b, _MM_FROUND_TO_NEAREST_INT);
        return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
    }
    const __m256i low = bf16_of(on_line(v, j)), high = bf16_of(on_line(v, j + 1));
    return _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
}

INLINE void elements(uint8_t *out, const struct values *v)
{
    __m256i *to = (__m256i *)out;
    _mm256_storeu_si256(to, sixteen(v, 0));
    _mm256_storeu_si256(to + 1, sixteen(v, 2));
}

/* Store a block's pixels of channel c. */
INLINE void store_channel(uint8_t *out, __m256i channel, const struct row *row, uint32_t c)
{
    if (row->size == 1)
        _mm256_storeu_si256((__m256i *)out, channel);
    else
        elements(out, &(struct values){.row = row, .c = c, .channel = channel});
}

INLINE void store_32_packed(uint8_t *out, const uint8_t *pixels, const struct row *row, uint32_t k)
{
    elements(out + 8 * k * row->size,
             &(struct values){.row = row, .c = PACKED, .k = k, .packed = pixels + 8 * k});
}

/* Store the first n pixels of a block, and the rest of the last 32 values. */
INLINE void store_packed(uint8_t *out, const uint8_t *pixels, uint32_t n, const struct row *row)
{
    const uint32_t n_values = row->channels * n;
    store_32_packed(out, pixels, row, 0);
    if (n_values > 32)
        store_32_packed(out, pixels, row, 4);
    if (n_values > 64)
        store_32_packed(out, pixels, row, 8);
    if (row->channels > 3 && n_values > 96)
        store_32_packed(out, pixels, row, 12);
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* Finish the first n pixels of a block. BLOCK pixels are readable, and `out` has room for BLOCK.
 * `plane`: bytes between channels. */
INLINE void finish_block(uint8_t *out, uint64_t plane, const uint8_t *pixels, uint32_t n,
                         const struct row *row)
{
    uint8_t own[PSTK__MAX_CHANNELS * BLOCK];
    __m256i channel[PSTK__MAX_CHANNELS];
    if (row->apart || row->flip)
        split(channel, pixels, row->channels);
    for (uint32_t c = 0; c < row->channels && row->flip; c++)
        channel[c] = reversed(channel[c]);
    if (row->apart) {
        store_channel(out, channel[0], row, 0);
        if (row->channels > 1)
            store_channel(out + plane, channel[1], row, 1);
        if (row->channels > 1)
            store_channel(out + 2 * plane, channel[2], row, 2);
        if (row->channels > 3)
            store_channel(out + 3 * plane, channel[3], row, 3);
        return;
    }
    if (row->flip) {
        join(row->size == 1 ? out : own, channel, row->channels);
        pixels = own;
    }
    if (row->size > 1)
        store_packed(out, pixels, n, row);
}

/* Copy the elements of n pixels from a block of its own to their place. */
INLINE void copy_block(uint8_t *out, uint64_t plane, const uint8_t *block, uint32_t n,
                       const struct row *row)
{
    const uint32_t channel = BLOCK * row->size; /* bytes */
    const size_t size = (size_t)row->size * n;
    if (!row->apart) {
        memcpy(out, block, row->channels * size);
        return;
    }
    memcpy(out, block, size);
    if (row->channels > 1)
        memcpy(out + plane, block + channel, size);
    if (row->channels > 1)
        memcpy(out + 2 * plane, block + 2 * channel, size);
    if (row->channels > 3)
        memcpy(out + 3 * plane, block + 3 * channel, size);
}

INLINE void finish_sized(uint8_t *out, const uint8_t *pixels, const struct pstk__finish *f,
                         struct row row)
{
    const uint32_t channels = row.channels, size = row.size, width = f->width;
    const uint64_t step = size * (row.apart ? 1 : channels), plane = f->plane * size;
    const uint64_t block_size = channels * BLOCK, ahead = row.flip ? -block_size : block_size;
    uint64_t at =
        row.flip ? (uint64_t)channels * width - block_size : 0; /* offset of a whole block */
    for (uint32_t left = width, n; left > 0; left -= n, at += ahead, out += BLOCK * step) {
        uint8_t own[PSTK__MAX_CHANNELS * BLOCK], block[sizeof own * sizeof(uint16_t)];
        const uint8_t *from = own;
        uint8_t *to = block;
        uint64_t to_plane = BLOCK * size;
        n = min_u32(left, BLOCK);
        if (n == BLOCK) {
            from = pixels + at;
            to = out;
            to_plane = plane;
        } else { /* mirrored pixels end where a whole block would end */
            for (uint32_t c = 0; c < channels; c++)
                _mm256_storeu_si256((__m256i *)own + c, _mm256_setzero_si256());
            memcpy(own + (row.flip ? channels * (BLOCK - n) : 0), pixels + (row.flip ? 0 : at),
                   (size_t)channels * n);
        }
        finish_block(to, to_plane, from, n, &row);
        if (n < BLOCK)
            copy_block(out, plane, block, n, &row);
    }
}

INLINE struct row row_as(struct row row, uint32_t size, enum way way)
{
    row.size = size;
    row.way = way;
    return row;
}

INLINE void finish_row(void *out, const uint8_t *pixels, const struct pstk__finish *f,
                       uint32_t channels)
{
    const uint32_t size = pstk_dtype_size(f->dtype);
    struct lookup own;
    struct row row = {.lookup = f->lookup,
                      .channels = channels,
                      .flip = f->flip,
                      .apart = channels == 1 || f->layout == PSTK_NCHW};
    if (size > 1 && !row.lookup) {
        pstk__lookup_init_avx2(&own, f);
        row.lookup = &own;
    }
    if (size == 1)
        finish_sized(out, pixels, f, row_as(row, 1, COPY));
    else if (f->dtype == PSTK_F16)
        finish_sized(out, pixels, f, row_as(row, 2, LINE_F16));
    else
        finish_sized(out, pixels, f, row_as(row, 2, LINE_BF16));
}

/* Attributes of one function for each number of channels, so that the compiler keeps its values in
 * registers. */
#define APART TARGET static __attribute__((noinline))

APART void finish_row_1(void *out, const uint8_t *pixels, const struct pstk__finish *f)
{
    finish_row(out, pixels, f, 1);
}

APART void finish_row_3(void *out, const uint8_t *pixels, const struct pstk__finish *f)
{
    finish_row(out, pixels, f, 3);
}

APART void finish_row_4(void *out, const uint8_t *pixels, const struct pstk__finish *f)
{
    finish_row(out, pixels, f, 4);
}

/* Mirror RGB, five pixels at a time, beginning with the first, which were stored longest ago. Each
 * store's first byte is the next one's last; the last pixels are stored one by one. */
TARGET static void mirror_3(uint8_t *out, const uint8_t *pixels, uint32_t width)
{
    const __m128i back = _mm_setr_epi8(-1, 12, 13, 14, 9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2);
    uint32_t left = width;
    for (; left > 5; left -= 5, pixels += 15) {
        const __m128i five = _mm_loadu_si128((const __m128i *)pixels);
        _mm_storeu_si128((__m128i *)(out + 3 * (size_t)left - 16), _mm_shuffle_epi8(five, back));
    }
    for (; left > 0; left--, pixels += 3)
        memcpy(out + 3 * (size_t)(left - 1), pixels, 3);
}

void pstk__finish_row_avx2(void *out, const uint8_t *pixels, const struct pstk__finish *finish)
{
    if (finish->dtype == PSTK_U8 && !finish->flip &&
        (finish->layout == PSTK_NHWC || finish->channels == 1))
        memcpy(out, pixels, (size_t)finish->channels * finish->width);
    else if (finish->dtype != PSTK_U8 && !is_line(finish))
        pstk__finish_row_c(out, pixels, finish);
    else if (finish->dtype == PSTK_U8 && finish->layout == PSTK_NHWC && finish->channels == 3)
        mirror_3(out, pixels, finish->width);
    else if (finish->channels == 1)
        finish_row_1(out, pixels, finish);
    else if (finish->channels == 3)
        finish_row_3(out, pixels, finish);
    else
        finish_row_4(out, pixels, finish);
}

#endif
