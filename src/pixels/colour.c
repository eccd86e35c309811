/* SPDX-License-Identifier: Apache-2.0 */
#include "pixels/colour.h"

#include "base/kernels.h"

#include <penstock/penstock.h>

#include <string.h>

/* ---- tables ---------------------------------------------------------------------------------- */

void pstk__colour_apply(const struct pstk__colour_kernels *k, const struct pstk__picture *picture,
                        const struct pstk__colour_table *table)
{
    k->apply(picture, table);
}

uint8_t pstk__colour_mean(const struct pstk__colour_kernels *k, const struct pstk__picture *picture)
{
    const uint64_t n_pixels = (uint64_t)picture->width * picture->height;
    return (uint8_t)((double)k->luma_sum(picture) / (double)n_pixels + 0.5);
}

/* Count into two histograms in turn: neighbours are often equal, and in one histogram each count
 * would wait for the last one. `channels` is a constant for the compiler. */
static inline __attribute__((always_inline)) void count(struct pstk__colour_histogram *even,
                                                        struct pstk__colour_histogram *odd,
                                                        const uint8_t *at, uint64_t n_pixels,
                                                        uint32_t channels)
{
    for (uint64_t i = 0; i + 2 <= n_pixels; i += 2)
        for (uint32_t c = 0; c < channels; c++) {
            even->n[c][at[i * channels + c]]++;
            odd->n[c][at[(i + 1) * channels + c]]++;
        }
    for (uint32_t c = 0; c < channels && n_pixels % 2; c++)
        even->n[c][at[(n_pixels - 1) * channels + c]]++;
}

void pstk__colour_histogram(struct pstk__colour_histogram *histogram,
                            const struct pstk__picture *picture)
{
    const uint64_t n_pixels = (uint64_t)picture->width * picture->height;
    struct pstk__colour_histogram odd = {0};
    *histogram = odd;
    if (picture->channels == 1)
        count(histogram, &odd, picture->pixels, n_pixels, 1);
    else if (picture->channels == 3)
        count(histogram, &odd, picture->pixels, n_pixels, 3);
    else
        count(histogram, &odd, picture->pixels, n_pixels, 4);
    for (uint32_t i = 0; i < 1024; i++)
        histogram->n[i / 256][i % 256] += odd.n[i / 256][i % 256];
}

void pstk__colour_autocontrast(const struct pstk__colour_kernels *k,
                               const struct pstk__picture *picture)
{
    struct pstk__colour_range range;
    struct pstk__colour_table table;
    k->range(&range, picture);
    pstk__colour_table_autocontrast(&table, &range);
    k->apply(picture, &table);
}

void pstk__colour_equalize(const struct pstk__colour_kernels *k,
                           const struct pstk__picture *picture)
{
    struct pstk__colour_histogram histogram;
    struct pstk__colour_table table;
    pstk__colour_histogram(&histogram, picture);
    pstk__colour_table_equalize(&table, &histogram);
    k->apply(picture, &table);
}

/* ---- colours together ------------------------------------------------------------------------ */

void pstk__colour_saturation(const struct pstk__colour_kernels *k,
                             const struct pstk__picture *picture, float factor)
{
    if (picture->channels > 1)
        k->saturate(picture, factor);
}

void pstk__colour_hue(const struct pstk__colour_kernels *k, const struct pstk__picture *picture,
                      double factor)
{
    if (picture->channels > 1)
        k->shift_hue(picture, (uint8_t)(int32_t)(factor * 255.0));
}

void pstk__colour_permute(const struct pstk__colour_kernels *k, const struct pstk__picture *picture,
                          const uint32_t order[3])
{
    if (picture->channels > 1)
        k->permute(picture, order);
}

/* Spread gray to three channels, backwards and in place, so that no pixel is written before it is
 * read. */
static void spread(uint8_t *pixels, uint64_t n_pixels)
{
    for (uint64_t i = n_pixels; i-- > 0;)
        pixels[3 * i] = pixels[3 * i + 1] = pixels[3 * i + 2] = pixels[i];
}

void pstk__colour_grayscale(const struct pstk__colour_kernels *k, struct pstk__picture *picture,
                            uint32_t channels)
{
    if (picture->channels > 1)
        k->luma(picture->pixels, channels, picture);
    else if (channels == 3)
        spread(picture->pixels, (uint64_t)picture->width * picture->height);
    picture->channels = channels;
}

/* ---- sharpness ------------------------------------------------------------------------------- */

/* Copy the pixels of a row that lack a neighbour on some side. */
static void copy_ends(uint8_t *out, const uint8_t *in, uint64_t stride, uint32_t channels)
{
    memcpy(out, in, channels);
    memcpy(out + stride - channels, in + stride - channels, channels);
}

void pstk__colour_sharpness(const struct pstk__colour_kernels *k, const struct pstk__picture *out,
                            const struct pstk__picture *in, float factor)
{
    const uint64_t stride = (uint64_t)in->width * in->channels, last = stride * (in->height - 1);
    if (in->width < 3 || in->height < 3) {
        memcpy(out->pixels, in->pixels, pstk__picture_size(in));
        return;
    }
    memcpy(out->pixels, in->pixels, stride);
    memcpy(out->pixels + last, in->pixels + last, stride);
    for (uint32_t y = 1; y + 1 < in->height; y++) {
        copy_ends(out->pixels + y * stride, in->pixels + y * stride, stride, in->channels);
        k->sharpen_row(out, in, y, factor);
    }
}

/* ---- kernels --------------------------------------------------------------------------------- */

const struct pstk__colour_kernels *pstk__colour_kernels(uint32_t isa)
{
    /* The kernels from worst to best, including those that this CPU does not run. */
    static const void *const entries[] = {
        &pstk__colour_c,
#if defined(__x86_64__) || defined(PSTK_NEON)
        &pstk__colour_avx2,
#endif
#if defined(__x86_64__)
        &pstk__colour_avx512,
#endif
    };
    return pstk__kernels_choose(entries, sizeof entries / sizeof entries[0], isa);
}
