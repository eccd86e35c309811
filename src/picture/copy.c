/* SPDX-License-Identifier: Apache-2.0 */
#include "picture/copy.h"

#include <stddef.h>
#include <string.h>

static uint8_t *row_of(const struct pstk__picture *picture, uint64_t y)
{
    return picture->pixels + y * picture->width * picture->channels;
}

/* ---- crop ------------------------------------------------------------------------------------ */

static void fill_pixels(uint8_t *out, uint64_t n_pixels, uint32_t channels, const uint8_t fill[4])
{
    for (uint64_t i = 0; i < n_pixels; i++, out += channels)
        memcpy(out, fill, channels);
}

/* The part of n pixels from `begin` on that lies in [0, size): [lo, hi), relative to `begin`. */
static void inside(int64_t begin, uint32_t n, uint32_t size, uint32_t *lo, uint32_t *hi)
{
    const int64_t end = (int64_t)size - begin;
    *lo = begin < 0 ? (uint32_t)(-begin < n ? -begin : n) : 0;
    *hi = end < *lo ? *lo : (uint32_t)(end < n ? end : n);
}

void pstk__picture_crop(const struct pstk__picture *out, const struct pstk__picture *in,
                        int64_t left, int64_t top, const uint8_t fill[4])
{
    const uint32_t channels = in->channels;
    uint32_t x0, x1, y0, y1;
    inside(left, out->width, in->width, &x0, &x1);
    inside(top, out->height, in->height, &y0, &y1);
    for (uint32_t y = 0; y < out->height; y++) {
        uint8_t *to = row_of(out, y);
        if (y < y0 || y >= y1) {
            fill_pixels(to, out->width, channels, fill);
            continue;
        }
        const uint8_t *from = row_of(in, (uint64_t)(top + y));
        fill_pixels(to, x0, channels, fill);
        memcpy(to + (size_t)x0 * channels, from + (left + x0) * channels,
               (size_t)(x1 - x0) * channels);
        fill_pixels(to + (size_t)x1 * channels, out->width - x1, channels, fill);
    }
}

/* ---- flips ----------------------------------------------------------------------------------- */

static inline void mirror(uint8_t *to, const uint8_t *from, uint32_t width, uint32_t channels)
{
    to += (size_t)width * channels;
    for (uint32_t x = 0; x < width; x++, from += channels) {
        to -= channels;
        memcpy(to, from, channels);
    }
}

/* Inlined with a constant, so that a pixel is copied at once. */
static void mirror_row(uint8_t *to, const uint8_t *from, uint32_t width, uint32_t channels)
{
    if (channels == 1)
        mirror(to, from, width, 1);
    else if (channels == 3)
        mirror(to, from, width, 3);
    else
        mirror(to, from, width, 4);
}

void pstk__picture_flip_horizontal(const struct pstk__picture *out, const struct pstk__picture *in)
{
    for (uint32_t y = 0; y < in->height; y++)
        mirror_row(row_of(out, y), row_of(in, y), in->width, in->channels);
}

void pstk__picture_flip_vertical(const struct pstk__picture *out, const struct pstk__picture *in)
{
    for (uint32_t y = 0; y < in->height; y++)
        memcpy(row_of(out, in->height - 1 - y), row_of(in, y), (size_t)in->width * in->channels);
}
