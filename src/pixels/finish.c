/* SPDX-License-Identifier: Apache-2.0 */
/* finish: computes the tables, and the affine functions that give the same elements. */
#include "pixels/finish.h"

#include "base/cast.h"

/* ---- finish tables --------------------------------------------------------------------------- */

/* Scale as torch does, which multiplies by a double, rounded to the tensor's float32. */
static float scaled(uint32_t x, uint32_t scale)
{
    return scale == PSTK_SCALE_MULTIPLY ? (float)x * (float)(1.0 / 255.0) : (float)x / 255.0f;
}

void pstk__normalisation_table(void *table, uint32_t dtype, uint32_t channels,
                               const struct pstk__normalisation *normalisation)
{
    for (uint32_t i = 0; i < channels * 256; i++) {
        const uint32_t channel = i / 256;
        float v = scaled(i % 256, normalisation->scale);
        if (normalisation->is_set) {
            v = v - normalisation->mean[channel];
            v = v / normalisation->deviation[channel];
        }
        if (dtype == PSTK_F16)
            ((uint16_t *)table)[i] = pstk__f16_from_f32(v);
        else if (dtype == PSTK_BF16)
            ((uint16_t *)table)[i] = pstk__bf16_from_f32(v);
        else
            ((float *)table)[i] = v;
    }
}

void pstk__finish_fold(void *folded, const void *table, uint32_t dtype, uint32_t channels,
                       const uint8_t (*bytes)[256])
{
    for (uint32_t c = 0; c < channels; c++)
        for (uint32_t i = 0; i < 256; i++) {
            const uint32_t to = 256 * c + i, from = 256 * c + bytes[c][i];
            if (dtype == PSTK_F32)
                ((uint32_t *)folded)[to] = ((const uint32_t *)table)[from];
            else
                ((uint16_t *)folded)[to] = ((const uint16_t *)table)[from];
        }
}

/* ---- lines --------------------------------------------------------------------------------- */

/* The numbers that are rounded to one element. The two ends belong to its neighbours. */
struct interval {
    double low, high;
};

static double magnitude_of(uint32_t bits, uint32_t dtype)
{
    union {
        uint32_t bits;
        float value;
    } v = {.bits = bits << 16};
    return dtype == PSTK_F16 ? pstk__f32_from_f16((uint16_t)bits) : v.value;
}

/* Find the interval of an element. Returns 0 if the element or a neighbour is not finite. */
static int interval_of(struct interval *i, uint32_t element, uint32_t dtype)
{
    const uint32_t bits = element & 0x7fff, infinity = dtype == PSTK_F16 ? 0x7c00 : 0x7f80;
    if (bits + 1 >= infinity)
        return 0;
    const double at = magnitude_of(bits, dtype), above = magnitude_of(bits + 1, dtype);
    const double below = bits == 0 ? 0.0 : magnitude_of(bits - 1, dtype);
    const struct interval interval = {.low = (below + at) / 2, .high = (at + above) / 2};
    *i = element == bits ? interval
                         : (struct interval){.low = -interval.high, .high = -interval.low};
    return 1;
}

/* Return 1 if the affine function stays in all intervals, although an fma rounds by up to 2^-24 of
 * the result. */
static int fits(const struct interval all[256], float scale, float offset)
{
    for (uint32_t x = 0; x < 256; x++) {
        const double v = (double)scale * x + (double)offset;
        const double error = (v < 0 ? -v : v) / (1 << 23);
        if (!(v - error > all[x].low && v + error < all[x].high))
            return 0;
    }
    return 1;
}

/*
 * Find a line through all 256 intervals. It exists exactly when some slope suits every pair of
 * intervals; each pair bounds the slope from both sides. The middle of the slopes, then the middle
 * of the offsets, leaves the most room for rounding.
 */
static int line_of(float *scale, float *offset, const struct interval all[256])
{
    struct interval slope = {-1e30, 1e30}, shift = {-1e30, 1e30};
    for (uint32_t y = 1; y < 256; y++)
        for (uint32_t x = 0; x < y; x++) {
            const double low = (all[y].low - all[x].high) / (y - x);
            const double high = (all[y].high - all[x].low) / (y - x);
            slope.low = low > slope.low ? low : slope.low;
            slope.high = high < slope.high ? high : slope.high;
        }
    *scale = (float)((slope.low + slope.high) / 2);
    for (uint32_t x = 0; x < 256; x++) {
        const double low = all[x].low - (double)*scale * x;
        const double high = all[x].high - (double)*scale * x;
        shift.low = low > shift.low ? low : shift.low;
        shift.high = high < shift.high ? high : shift.high;
    }
    *offset = (float)((shift.low + shift.high) / 2);
    return fits(all, *scale, *offset);
}

void pstk__affine_init(struct pstk__affine *affine, const void *table, uint32_t dtype,
                       uint32_t channels)
{
    const uint16_t *elements = table;
    struct interval all[256];
    int found = dtype == PSTK_F16 || dtype == PSTK_BF16;
    *affine = (struct pstk__affine){0};
    for (uint32_t c = 0; c < channels && found; c++) {
        for (uint32_t x = 0; x < 256 && found; x++)
            found = interval_of(&all[x], elements[256 * c + x], dtype);
        found = found && line_of(&affine->scale[c], &affine->offset[c], all);
    }
    affine->exact = found ? 1 : 0;
}
