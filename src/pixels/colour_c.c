/* SPDX-License-Identifier: Apache-2.0 */
/* colour_c: the colour kernels in plain C, the reference for the other ISAs. */
#include "image/channels.h"
#include "pixels/blend.h"
#include "pixels/colour_kernels.h"

#include <penstock/penstock.h>

#include <string.h>

static uint64_t n_pixels_of(const struct pstk__picture *picture)
{
    return (uint64_t)picture->width * picture->height;
}

static uint8_t min_of(uint8_t a, uint8_t b)
{
    return a < b ? a : b;
}

static uint8_t max_of(uint8_t a, uint8_t b)
{
    return a > b ? a : b;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void apply(const struct pstk__picture *picture, const struct pstk__colour_table *table)
{
    uint8_t *at = picture->pixels;
    for (uint64_t i = n_pixels_of(picture); i > 0; i--)
        for (uint32_t c = 0; c < picture->channels; c++, at++)
            *at = table->to[c][*at];
}

static void range(struct pstk__colour_range *range, const struct pstk__picture *picture)
{
    const uint8_t *at = picture->pixels;
    memset(range->least, 255, sizeof range->least);
    memset(range->most, 0, sizeof range->most);
    for (uint64_t i = n_pixels_of(picture); i > 0; i--)
        for (uint32_t c = 0; c < picture->channels; c++, at++) {
            range->least[c] = min_of(range->least[c], *at);
            range->most[c] = max_of(range->most[c], *at);
        }
}

static void permute(const struct pstk__picture *picture, const uint32_t order[3])
{
    uint8_t *at = picture->pixels;
    for (uint64_t i = n_pixels_of(picture); i > 0; i--, at += picture->channels) {
        const uint8_t colours[3] = {at[0], at[1], at[2]};
        for (uint32_t c = 0; c < 3; c++)
            at[c] = colours[order[c]];
    }
}

/* ---- luma ------------------------------------------------------------------------------------ */

static uint64_t luma_sum(const struct pstk__picture *picture)
{
    const uint8_t *at = picture->pixels;
    uint64_t sum = 0;
    for (uint64_t i = n_pixels_of(picture); i > 0; i--, at += picture->channels)
        sum += picture->channels == 1 ? at[0] : pstk__luma(at);
    return sum;
}

static void luma(uint8_t *out, uint32_t out_channels, const struct pstk__picture *picture)
{
    const uint8_t *at = picture->pixels;
    for (uint64_t i = n_pixels_of(picture); i > 0; i--, at += picture->channels) {
        const uint8_t gray = pstk__luma(at);
        for (uint32_t c = 0; c < out_channels; c++)
            *out++ = gray;
    }
}

static void saturate(const struct pstk__picture *picture, float factor)
{
    uint8_t *at = picture->pixels;
    for (uint64_t i = n_pixels_of(picture); i > 0; i--, at += picture->channels) {
        const uint8_t gray = pstk__luma(at);
        for (uint32_t c = 0; c < 3; c++)
            at[c] = pstk__blend(gray, at[c], factor);
    }
}

/* ---- hue ------------------------------------------------------------------------------------- */

/* Return the hue, 0 to 254, of a colour that is not gray. red, green and blue are distances from
 * the largest of the three, as parts of `reach`, the distance of the smallest. */
static uint8_t hue_of(const uint8_t *rgb, uint8_t most, uint8_t reach)
{
    const float red = (float)(most - rgb[0]) / reach, green = (float)(most - rgb[1]) / reach,
                blue = (float)(most - rgb[2]) / reach;
    const float sixths = rgb[0] == most   ? blue - green
                         : rgb[1] == most ? (float)(2.0 + red - blue)
                                          : (float)(4.0 + green - red);
    const double turn = sixths / 6.0 + 1.0;
    return (uint8_t)((float)(turn < 1.0 ? turn : turn - 1.0) * 255.0);
}

/* Return part / whole, rounded to the nearest integer; wholes are odd, so there are no ties. */
static uint8_t nearest(uint32_t part, uint32_t whole)
{
    return (uint8_t)((part + whole / 2) / whole);
}

/* Write the colour of a hue, a saturation and a value. Pillow computes in float and double; these
 * quotients of integers are the same bytes for all 2^24 arguments. */
static void rgb_from_hsv(uint8_t *rgb, uint32_t hue, uint32_t saturation, uint32_t value)
{
    const uint32_t side = hue * 6 / 255, rest = hue * 6 - side * 255, full = 255 * 255;
    const uint8_t v = (uint8_t)value, p = nearest(value * (255 - saturation), 255),
                  q = nearest(value * (full - saturation * rest), full),
                  t = nearest(value * (full - saturation * (255 - rest)), full);
    const uint8_t all[6][3] = {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}};
    memcpy(rgb, all[side % 6], 3);
}

static void shift_hue(const struct pstk__picture *picture, uint8_t shift)
{
    uint8_t *at = picture->pixels;
    for (uint64_t i = n_pixels_of(picture); i > 0; i--, at += picture->channels) {
        const uint8_t most = max_of(at[0], max_of(at[1], at[2]));
        const uint8_t reach = (uint8_t)(most - min_of(at[0], min_of(at[1], at[2])));
        if (reach > 0)
            rgb_from_hsv(at, (uint8_t)(hue_of(at, most, reach) + shift), reach * 255u / most, most);
        if (picture->channels == 4)
            at[3] = 255;
    }
}

/* ---- sharpness ------------------------------------------------------------------------------- */

/*
 * Smooth a pixel by Pillow's SMOOTH: a weight of 5 for the pixel, of 1 for each of its 8
 * neighbours, divided by 13, rounded to nearest. A sum of integers divided by 13 is at least 1 / 26
 * from a half, so the rounding of Pillow's floats, an error below 1e-3, changes no byte.
 */
static uint8_t smooth(const uint8_t *at, uint64_t stride, uint32_t channels)
{
    uint32_t sum = 4u * *at;
    at -= stride;
    for (uint32_t row = 0; row < 3; row++, at += stride)
        sum += (uint32_t)at[-(int64_t)channels] + at[0] + at[channels];
    return (uint8_t)((sum + 6) / 13);
}

static void sharpen_row(const struct pstk__picture *out, const struct pstk__picture *in, uint32_t y,
                        float factor)
{
    const uint32_t channels = in->channels;
    const uint64_t stride = (uint64_t)in->width * channels;
    for (uint64_t i = y * stride + channels; i < (y + 1) * stride - channels; i++) {
        const uint8_t *at = in->pixels + i;
        const uint32_t is_alpha = i % channels == 3; /* rows begin at multiples of the channels */
        out->pixels[i] = is_alpha ? *at : pstk__blend(smooth(at, stride, channels), *at, factor);
    }
}

const struct pstk__colour_kernels pstk__colour_c = {
    .isa = PSTK_KERNELS_C,
    .apply = apply,
    .range = range,
    .luma_sum = luma_sum,
    .luma = luma,
    .saturate = saturate,
    .shift_hue = shift_hue,
    .permute = permute,
    .sharpen_row = sharpen_row,
};
