/* SPDX-License-Identifier: Apache-2.0 */
#include "pixels/colour_table.h"

#include "base/random.h"
#include "pixels/blend.h"

#include <string.h>

static uint8_t clip(int32_t v)
{
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

void pstk__colour_table_same(struct pstk__colour_table *table)
{
    for (uint32_t i = 0; i < 1024; i++)
        table->to[i / 256][i % 256] = (uint8_t)i;
}

void pstk__colour_table_then(struct pstk__colour_table *table,
                             const struct pstk__colour_table *next)
{
    for (uint32_t i = 0; i < 1024; i++)
        table->to[i / 256][i % 256] = next->to[i / 256][table->to[i / 256][i % 256]];
}

/* Copy red's row to green and blue; alpha stays. */
static void spread(struct pstk__colour_table *table)
{
    memcpy(table->to[1], table->to[0], 256);
    memcpy(table->to[2], table->to[0], 256);
    for (uint32_t v = 0; v < 256; v++)
        table->to[3][v] = (uint8_t)v;
}

/* ---- of settings ----------------------------------------------------------------------------- */

void pstk__colour_table_invert(struct pstk__colour_table *table)
{
    for (uint32_t v = 0; v < 256; v++)
        table->to[0][v] = (uint8_t)(255 - v);
    spread(table);
}

void pstk__colour_table_posterize(struct pstk__colour_table *table, uint32_t bits)
{
    for (uint32_t v = 0; v < 256; v++)
        table->to[0][v] = (uint8_t)(v >> (8 - bits) << (8 - bits));
    spread(table);
}

void pstk__colour_table_solarize(struct pstk__colour_table *table, double threshold)
{
    for (uint32_t v = 0; v < 256; v++)
        table->to[0][v] = (uint8_t)(v < threshold ? v : 255 - v);
    spread(table);
}

void pstk__colour_table_solarize_add(struct pstk__colour_table *table, int32_t add,
                                     int32_t threshold)
{
    const int32_t most = add < -255 ? -255 : add > 255 ? 255 : add;
    for (int32_t v = 0; v < 256; v++)
        table->to[0][v] = clip(v < threshold ? v + most : v);
    spread(table);
}

/* Return (v / 255) ^ gamma; 0 instead of less than 1e-21, which no gain brings to 1. */
static double power(uint32_t v, double gamma)
{
    if (gamma == 0.0)
        return 1.0;
    const double exponent = v == 0 ? -50.0 : gamma * pstk__log(v / 255.0);
    return exponent > -50.0 ? pstk__exp(exponent) : 0.0;
}

static uint8_t clipped(double v)
{
    return (uint8_t)(v < 255.0 ? v : 255.0);
}

#define MAX_POWERS 100.0 /* 255 to this power is far below the greatest double */

/* Compute the powers of 1 to 255 from the powers of primes. */
static void powers_of(double powers[256], double gamma)
{
    memset(powers, 0, 256 * sizeof *powers);
    powers[1] = 1.0;
    for (uint32_t v = 2; v < 256; v++) {
        if (powers[v] == 0.0)
            powers[v] = pstk__exp(gamma * pstk__log(v));
        for (uint32_t by = 2; by <= v && v * by < 256; by++)
            powers[v * by] = powers[v] * powers[by];
    }
}

/* Return 1 when an error of less than 1e-6 may give another byte. */
static int is_doubtful(double v)
{
    const double nearest = v < 256.0 ? (double)(int32_t)(v + 0.5) : 0.0;
    return nearest > 0.0 && __builtin_fabs(v - nearest) < 1e-6;
}

/*
 * Compute the bytes of adjust_gamma. `power` of every byte takes three times as long as these
 * products. Both differ by less than 1e-12 of their value: an exponent, at most MAX_POWERS *
 * log(255), is rounded a few times.
 */
static void gamma_bytes(uint8_t to[256], double gamma, double scale)
{
    double powers[256];
    powers_of(powers, gamma);
    const double part = scale / powers[255];
    to[0] = clipped(scale * power(0, gamma));
    for (uint32_t v = 1; v < 256; v++) {
        const double about = part * powers[v];
        to[v] = clipped(is_doubtful(about) ? scale * power(v, gamma) : about);
    }
}

void pstk__colour_table_gamma(struct pstk__colour_table *table, double gamma, double gain)
{
    const double scale = (256.0 - 1e-3) * gain;
    if (gamma <= MAX_POWERS)
        gamma_bytes(table->to[0], gamma, scale);
    for (uint32_t v = 0; v < 256 && gamma > MAX_POWERS; v++)
        table->to[0][v] = clipped(scale * power(v, gamma));
    spread(table);
    memset(table->to[3], 255, 256);
}

static void blend_from(struct pstk__colour_table *table, uint8_t from, float factor)
{
    for (uint32_t v = 0; v < 256; v++)
        table->to[0][v] = pstk__blend(from, (uint8_t)v, factor);
    spread(table);
}

void pstk__colour_table_brightness(struct pstk__colour_table *table, float factor)
{
    blend_from(table, 0, factor);
}

void pstk__colour_table_contrast(struct pstk__colour_table *table, uint8_t mean, float factor)
{
    blend_from(table, mean, factor);
}

/* ---- of a picture's bytes -------------------------------------------------------------------- */

static void stretch(uint8_t to[256], uint8_t least, uint8_t most)
{
    if (most <= least)
        return;
    const double scale = 255.0 / (most - least), offset = -least * scale;
    for (uint32_t v = 0; v < 256; v++)
        to[v] = clip((int32_t)(v * scale + offset));
}

void pstk__colour_table_autocontrast(struct pstk__colour_table *table,
                                     const struct pstk__colour_range *range)
{
    pstk__colour_table_same(table);
    for (uint32_t c = 0; c < 3; c++)
        stretch(table->to[c], range->least[c], range->most[c]);
}

/* Map each byte to the share of the pixels below it. The last used byte does not count, so a
 * channel of one byte, or of none, stays. */
static void flatten(uint8_t to[256], const uint32_t n[256])
{
    uint64_t sum = 0;
    uint32_t last = 0;
    for (uint32_t v = 0; v < 256; v++) {
        sum += n[v];
        last = n[v] ? n[v] : last;
    }
    const uint64_t step = (sum - last) / 255;
    sum = step / 2;
    for (uint32_t v = 0; v < 256 && step > 0; v++) {
        const uint64_t share = sum / step;
        to[v] = (uint8_t)(share < 255 ? share : 255);
        sum += n[v];
    }
}

void pstk__colour_table_equalize(struct pstk__colour_table *table,
                                 const struct pstk__colour_histogram *histogram)
{
    pstk__colour_table_same(table);
    for (uint32_t c = 0; c < 3; c++)
        flatten(table->to[c], histogram->n[c]);
}
