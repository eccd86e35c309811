/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finish_avx512: finishes rows of u8 pixels with 512-bit registers, by the table's affine function
 * (its line) if there is one, else by look-ups. `channels` is f->channels, as a constant for the
 * compiler.
 */
#if defined(__x86_64__)

#include "pixels/resize_avx512.h"

/* ---- look-ups ------------------------------------------------------------------------------ */

/* Return 1 when each channel goes to a plane; the pixels of one channel are a plane. */
INLINE int is_apart(const struct pstk__finish *f)
{
    return f->layout == PSTK_NCHW || f->channels == 1;
}

/* Return 1 when a row is finished by its table's line. */
INLINE int has_line(const struct pstk__finish *f)
{
    return f->affine && f->affine->exact && (is_apart(f) || !f->flip);
}

/*
 * Works on 64 pixels at a time: one register for each channel, as many for packed pixels. An
 * element is looked up byte by byte: *plane* p of a channel's table holds byte p of its 256
 * elements, in four registers.
 */
struct lookup {
    __m512i plane[PSTK__MAX_CHANNELS][4][4];
};
_Static_assert(sizeof(struct lookup) <= PSTK__LOOKUP_SIZE, "a lookup has its place");

#define ROW_4(f, i) f(i), f(i + 1), f(i + 2), f(i + 3)
#define ROW_16(f, i) ROW_4(f, i), ROW_4(f, i + 4), ROW_4(f, i + 8), ROW_4(f, i + 12)
#define ROW_64(f, i) ROW_16(f, i), ROW_16(f, i + 16), ROW_16(f, i + 32), ROW_16(f, i + 48)
#define ONCE(i) (i)
#define THRICE(i) (3 * (i))
#define FOURFOLD(i) (4 * (i))
#define THIRD(i) ((i) / 3)
#define FOURTH(i) ((i) / 4)
static const uint8_t once[64] = {ROW_64(ONCE, 0)};
static const uint8_t thrice[64] = {ROW_64(THRICE, 0)};
static const uint8_t fourfold[64] = {ROW_64(FOURFOLD, 0)};
static const uint8_t third[192] = {ROW_64(THIRD, 0), ROW_64(THIRD, 64), ROW_64(THIRD, 128)};
static const uint8_t fourth[256] = {ROW_64(FOURTH, 0), ROW_64(FOURTH, 64), ROW_64(FOURTH, 128),
                                    ROW_64(FOURTH, 192)};

#define EVERY_THIRD 0x9249249249249249ull  /* bits 0, 3, 6, ... 63 */
#define EVERY_FOURTH 0x1111111111111111ull /* bits 0, 4, 8, ... 60 */

/* The positions of the channels of a run of pixels, mirrored or not, in its registers: byte
 * channels * k + c is byte k of channel c. */
struct split {
    __m512i from[PSTK__MAX_CHANNELS];
    __mmask64 in[PSTK__MAX_CHANNELS][PSTK__MAX_CHANNELS]; /* for each channel: its bytes in each
                                                             register */
};

INLINE struct split split_of(uint32_t n_pixels, uint32_t flip, uint32_t channels)
{
    struct split s;
    const __m512i along = _mm512_loadu_si512(channels == 1   ? once
                                             : channels == 3 ? thrice
                                                             : fourfold);
    for (uint32_t c = 0; c < channels; c++) {
        const __m512i last = _mm512_set1_epi8((char)(channels * (n_pixels - 1) + c));
        s.from[c] =
            flip ? _mm512_sub_epi8(last, along) : _mm512_add_epi8(along, _mm512_set1_epi8((char)c));
        const __m512i which = _mm512_and_si512(s.from[c], _mm512_set1_epi8((char)0xc0));
        for (uint32_t z = 0; z < channels; z++)
            s.in[c][z] = _mm512_cmpeq_epi8_mask(which, _mm512_set1_epi8((char)(64 * z)));
    }
    return s;
}

INLINE __m512i merge(__m512i from, const __m512i *z, const __mmask64 *in, uint32_t channels)
{
    if (channels == 1)
        return _mm512_permutexvar_epi8(from, z[0]);
    __m512i v = _mm512_maskz_permutexvar_epi8(in[0], from, z[0]);
    for (uint32_t k = 1; k < channels; k++)
        v = _mm512_mask_permutexvar_epi8(v, in[k], from, z[k]);
    return v;
}

/* Interleave three or four channels to packed pixels. */
INLINE void interleave(__m512i *z, const __m512i *channel, uint32_t channels)
{
    for (uint32_t k = 0; k < channels; k++) {
        if (channels == 4) {
            const __mmask64 in[4] = {EVERY_FOURTH, EVERY_FOURTH << 1, EVERY_FOURTH << 2,
                                     EVERY_FOURTH << 3};
            z[k] = merge(_mm512_loadu_si512(fourth + 64 * k), channel, in, 4);
            continue;
        }
        const __m512i from = _mm512_loadu_si512(third + 64 * k);
        /* byte 64 k + q is of channel (64 k + q) % 3 = (k + q) % 3 */
        const __mmask64 red = k == 0 ? EVERY_THIRD : k == 1 ? EVERY_THIRD << 2 : EVERY_THIRD << 1;
        const __mmask64 green = k == 0 ? EVERY_THIRD << 1 : k == 1 ? EVERY_THIRD : EVERY_THIRD << 2;
        const __mmask64 in[3] = {red, green, ~(red | green)};
        z[k] = merge(from, channel, in, 3);
    }
}

/* Join planes to elements of `size` bytes: 64 / size elements in each register. */
INLINE void zip(__m512i *out, const __m512i *plane, uint32_t size)
{
    if (size == 1) {
        out[0] = plane[0];
    } else if (size == 2) {
        out[0] = _mm512_unpacklo_epi8(plane[0], plane[1]);
        out[1] = _mm512_unpackhi_epi8(plane[0], plane[1]);
    } else {
        const __m512i lo01 = _mm512_unpacklo_epi8(plane[0], plane[1]);
        const __m512i lo23 = _mm512_unpacklo_epi8(plane[2], plane[3]);
        const __m512i hi01 = _mm512_unpackhi_epi8(plane[0], plane[1]);
        const __m512i hi23 = _mm512_unpackhi_epi8(plane[2], plane[3]);
        out[0] = _mm512_unpacklo_epi16(lo01, lo23);
        out[1] = _mm512_unpackhi_epi16(lo01, lo23);
        out[2] = _mm512_unpacklo_epi16(hi01, hi23);
        out[3] = _mm512_unpackhi_epi16(hi01, hi23);
    }
}

/* Order bytes so that zip, which works within 128-bit lanes, puts them into their natural order. */
INLINE __m512i zip_order(__m512i v, uint32_t size)
{
    if (size == 1)
        return v;
    if (size == 2)
        return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7), v);
    return _mm512_permutexvar_epi32(
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), v);
}

/* Look up one plane of the elements of 64 values. */
INLINE __m512i look_up(const __m512i table[4], __m512i v)
{
    const __m512i low = _mm512_permutex2var_epi8(table[0], v, table[1]);
    const __m512i high = _mm512_permutex2var_epi8(table[2], v, table[3]);
    return _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(v), high);
}

INLINE void store_elements(uint8_t *out, const __m512i *planes, uint32_t size, uint32_t n)
{
    __m512i v[4];
    zip(v, planes, size);
    for (uint32_t k = 0; k < size; k++) {
        const uint32_t at = 64 * k, end = n * size;
        if (at + 64 <= end)
            _mm512_storeu_si512(out + at, v[k]);
        else if (at < end)
            _mm512_mask_storeu_epi8(out + at, mask64(end - at), v[k]);
    }
}

/* Finish n pixels, at most 64, to out, the first element of the first pixel. */
INLINE void finish_64(uint8_t *out, const __m512i *channel, const struct pstk__finish *f,
                      const struct lookup *l, uint32_t size, uint32_t n, uint32_t channels)
{
    __m512i planes[PSTK__MAX_CHANNELS][4];
    const int apart = channels == 1 || f->layout == PSTK_NCHW;
    for (uint32_t c = 0; c < channels; c++) {
        const __m512i v = apart ? zip_order(channel[c], size) : channel[c];
        for (uint32_t p = 0; p < size; p++)
            planes[c][p] = size == 1 ? v : look_up(l->plane[c][p], v);
        if (apart)
            store_elements(out + c * f->plane * size, planes[c], size, n);
    }
    if (apart)
        return;
    __m512i packed[PSTK__MAX_CHANNELS][4];
    for (uint32_t p = 0; p < size; p++) {
        __m512i of_plane[PSTK__MAX_CHANNELS], z[PSTK__MAX_CHANNELS];
        for (uint32_t c = 0; c < channels; c++)
            of_plane[c] = planes[c][p];
        interleave(z, of_plane, channels);
        for (uint32_t k = 0; k < channels; k++)
            packed[k][p] = zip_order(z[k], size);
    }
    for (uint32_t k = 0; k < channels && 64 * k < channels * n; k++) {
        const uint32_t left = channels * n - 64 * k;
        store_elements(out + 64 * k * size, packed[k], size, left < 64 ? left : 64);
    }
}

INLINE void finish_sized(uint8_t *out, const uint8_t *in, const struct pstk__finish *f,
                         const struct lookup *l, uint32_t size, uint32_t channels)
{
    const uint64_t step = size * (f->layout == PSTK_NCHW ? 1 : channels);
    struct split split = split_of(64, f->flip, channels);
    for (uint32_t x = 0; x < f->width; x += 64) {
        const uint32_t left = f->width - x, n = left < 64 ? left : 64, n_bytes = channels * n;
        const uint8_t *from = in + (size_t)channels * (f->flip ? left - n : x);
        __m512i z[PSTK__MAX_CHANNELS], channel[PSTK__MAX_CHANNELS];
        for (uint32_t k = 0; k < channels; k++) {
            const uint32_t at = 64 * k < n_bytes ? 64 * k : n_bytes;
            z[k] = _mm512_maskz_loadu_epi8(mask64(n_bytes - at), from + at);
        }
        if (n < 64)
            split = split_of(n, f->flip, channels);
        for (uint32_t c = 0; c < channels; c++)
            channel[c] = merge(split.from[c], z, split.in[c], channels);
        finish_64(out + x * step, channel, f, l, size, n, channels);
    }
}

/* Extract byte `plane` of 64 elements. */
INLINE __m512i plane_of(const uint8_t *table, uint32_t size, uint32_t plane)
{
    __m512i v = _mm512_setzero_si512();
    for (uint32_t k = 0; k < 4; k++) {
        const __m512i dwords =
            size == 2 ? _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(table + 32 * k)))
                      : _mm512_loadu_si512(table + 64 * k);
        const __m128i bytes =
            _mm512_cvtepi32_epi8(_mm512_srl_epi32(dwords, _mm_cvtsi32_si128((int)(8 * plane))));
        v = _mm512_mask_broadcast_i32x4(v, (__mmask16)(0xf << 4 * k), bytes);
    }
    return v;
}

TARGET void pstk__lookup_init_avx512(void *lookup, const struct pstk__finish *f)
{
    struct lookup *l = lookup;
    const uint32_t size = pstk_dtype_size(f->dtype);
    if (has_line(f))
        return;
    for (uint32_t c = 0; c < f->channels; c++)
        for (uint32_t p = 0; p < size; p++)
            for (uint32_t k = 0; k < 4; k++) {
                const uint8_t *table = (const uint8_t *)f->table + (256 * c + 64 * k) * size;
                l->plane[c][p][k] = plane_of(table, size, p);
            }
}

/* ---- lines --------------------------------------------------------------------------------- */

/* Make elements of 16 values by their line. */
INLINE __m256i elements_16(__m512i values, __m512 scale, __m512 offset, int is_bf16)
{
    const __m512 v = _mm512_fmadd_ps(_mm512_cvtepi32_ps(values), scale, offset);
    if (!is_bf16)
        return _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    /* No value of a line is a tie between two elements, so adding half an element and truncating
     * rounds correctly. */
    const __m512i up = _mm512_add_epi32(_mm512_castps_si512(v), _mm512_set1_epi32(0x8000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(up, 16));
}

/* Finish n pixels, at most 16, to planes by the table's line. */
INLINE void apart_16(uint16_t *out, const uint8_t *pixels, const struct pstk__finish *f,
                     const __m512i *from, uint32_t n, int is_bf16, uint32_t channels)
{
    const __m512i in = _mm512_maskz_loadu_epi8(mask64(channels * n), pixels);
    for (uint32_t c = 0; c < channels; c++) {
        const __m512i values = _mm512_maskz_permutexvar_epi8(EVERY_FOURTH, from[c], in);
        const __m256i v = elements_16(values, _mm512_set1_ps(f->affine->scale[c]),
                                      _mm512_set1_ps(f->affine->offset[c]), is_bf16);
        _mm256_mask_storeu_epi16(out + c * f->plane, mask16(n), v);
    }
}

INLINE void finish_apart(uint16_t *out, const uint8_t *pixels, const struct pstk__finish *f,
                         int is_bf16, uint32_t channels)
{
    const __m512i iota = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i along = _mm512_mullo_epi32(iota, _mm512_set1_epi32((int)channels));
    const uint32_t rest = f->width % 16, whole = f->width - rest;
    __m512i full[PSTK__MAX_CHANNELS], part[PSTK__MAX_CHANNELS];
    for (uint32_t c = 0; c < channels; c++) {
        const __m512i last = _mm512_set1_epi32((int)(channels * 15 + c));
        const __m512i end = _mm512_set1_epi32((int)(channels * (rest - 1) + c));
        const __m512i first = _mm512_set1_epi32((int)c);
        full[c] = f->flip ? _mm512_sub_epi32(last, along) : _mm512_add_epi32(along, first);
        part[c] = f->flip ? _mm512_sub_epi32(end, along) : full[c];
    }
    const int64_t step = f->flip ? -(int64_t)(channels * 16) : (int64_t)(channels * 16);
    const uint8_t *from = pixels + (f->flip ? (size_t)channels * (f->width - 16) : 0);
    for (uint32_t x = 0; x < whole; x += 16, from += step)
        apart_16(out + x, from, f, full, 16, is_bf16, channels);
    if (rest != 0)
        apart_16(out + whole, f->flip ? pixels : from, f, part, rest, is_bf16, channels);
}

/* Finish a row to packed pixels by the table's line, 16 values at a time, not flipped. */
INLINE void finish_packed(uint16_t *out, const uint8_t *pixels, const struct pstk__finish *f,
                          int is_bf16, uint32_t channels)
{
    const uint32_t size = channels * f->width;
    const uint32_t period = channels == 3 ? 3 : 1; /* registers from one channel 0 to the next */
    __m512 scale[3], offset[3];
    for (uint32_t k = 0; k < period; k++) { /* value 16 k + i has channel (k + i) % 3, or i % 4 */
        float scales[16], offsets[16];
        for (uint32_t i = 0; i < 16; i++) {
            scales[i] = f->affine->scale[(k + i) % channels];
            offsets[i] = f->affine->offset[(k + i) % channels];
        }
        scale[k] = _mm512_loadu_ps(scales);
        offset[k] = _mm512_loadu_ps(offsets);
    }
    for (uint32_t i = 0; i < size;)
        for (uint32_t k = 0; k < period && i < size; k++, i += 16) {
            const __mmask16 in = mask16(size - i);
            const __m512i values = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(in, pixels + i));
            _mm256_mask_storeu_epi16(out + i, in,
                                     elements_16(values, scale[k], offset[k], is_bf16));
        }
}

/* ---- gathers ------------------------------------------------------------------------------- */

/* Finish a row to packed float32 pixels, not flipped. Packing planes of four bytes would take
 * longer. */
INLINE void gather_packed(uint32_t *out, const uint8_t *pixels, const struct pstk__finish *f,
                          uint32_t channels)
{
    const __m512i iota = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i triple = _mm512_srli_epi32(_mm512_mullo_epi32(iota, _mm512_set1_epi32(11)), 5);
    __m512i channel = _mm512_sub_epi32(iota, _mm512_mullo_epi32(triple, _mm512_set1_epi32(3)));
    if (channels == 4)
        channel = _mm512_and_si512(iota, _mm512_set1_epi32(3));
    const uint32_t size = channels * f->width;
    for (uint32_t i = 0; i < size; i += 16) {
        const __mmask16 in = mask16(size - i);
        const __m512i values = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(in, pixels + i));
        const __m512i index = _mm512_add_epi32(values, _mm512_slli_epi32(channel, 8));
        _mm512_mask_storeu_epi32(out + i, in, _mm512_i32gather_epi32(index, f->table, 4));
        if (channels == 4)
            continue;
        /* the next 16 values have the next of three channels each */
        const __mmask16 last = _mm512_cmpeq_epi32_mask(channel, _mm512_set1_epi32(2));
        channel = _mm512_maskz_add_epi32(_knot_mask16(last), channel, _mm512_set1_epi32(1));
    }
}

/* ---- rows ---------------------------------------------------------------------------------- */

INLINE void finish_by_line(uint16_t *out, const uint8_t *pixels, const struct pstk__finish *f,
                           uint32_t channels)
{
    const int apart = channels == 1 || f->layout == PSTK_NCHW, is_bf16 = f->dtype == PSTK_BF16;
    if (apart && is_bf16)
        finish_apart(out, pixels, f, 1, channels);
    else if (apart)
        finish_apart(out, pixels, f, 0, channels);
    else if (is_bf16)
        finish_packed(out, pixels, f, 1, channels);
    else
        finish_packed(out, pixels, f, 0, channels);
}

INLINE void finish_by_table(uint8_t *out, const uint8_t *pixels, const struct pstk__finish *f,
                            uint32_t channels)
{
    const uint32_t size = pstk_dtype_size(f->dtype);
    struct lookup own;
    const struct lookup *l = f->lookup;
    if (size == 4 && channels > 1 && f->layout == PSTK_NHWC && !f->flip) {
        gather_packed((uint32_t *)out, pixels, f, channels);
        return;
    }
    if (size > 1 && !l) {
        pstk__lookup_init_avx512(&own, f);
        l = &own;
    }
    if (size == 1)
        finish_sized(out, pixels, f, l, 1, channels);
    else if (size == 2)
        finish_sized(out, pixels, f, l, 2, channels);
    else
        finish_sized(out, pixels, f, l, 4, channels);
}

INLINE void finish_row(void *out, const uint8_t *pixels, const struct pstk__finish *f,
                       uint32_t channels)
{
    if (has_line(f))
        finish_by_line(out, pixels, f, channels);
    else
        finish_by_table(out, pixels, f, channels);
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

void pstk__finish_row_avx512(void *out, const uint8_t *pixels, const struct pstk__finish *finish)
{
    if (finish->dtype == PSTK_U8 && !finish->flip &&
        (finish->layout == PSTK_NHWC || finish->channels == 1))
        memcpy(out, pixels, (size_t)finish->channels * finish->width);
    else if (finish->channels == 1)
        finish_row_1(out, pixels, finish);
    else if (finish->channels == 3)
        finish_row_3(out, pixels, finish);
    else
        finish_row_4(out, pixels, finish);
}

#endif
