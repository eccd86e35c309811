/* SPDX-License-Identifier: Apache-2.0 */
#include "pixels/tensor.h"

#include "base/kernels.h"

#include <string.h>

static uint64_t n_pixels_of(const struct pstk__picture *picture)
{
    return (uint64_t)picture->width * picture->height;
}

/* ---- colours --------------------------------------------------------------------------------- */

float pstk__tensor_mean(const struct pstk__tensor_kernels *k, const struct pstk__picture *picture)
{
    const uint64_t n = n_pixels_of(picture);
    uint64_t sum = 0;
    if (picture->channels == 3)
        sum = k->gray_sum(picture->pixels, n);
    for (uint64_t i = 0; i < n && picture->channels == 1; i++)
        sum += picture->pixels[i];
    return (float)sum / (float)n;
}

/* Spread gray to three channels, backwards and in place, so that no pixel is written before it is
 * read. */
static void spread(uint8_t *out, const uint8_t *in, uint64_t n)
{
    for (uint64_t i = n; i-- > 0;)
        out[3 * i] = out[3 * i + 1] = out[3 * i + 2] = in[i];
}

void pstk__tensor_grayscale(const struct pstk__tensor_kernels *k, uint8_t *out,
                            uint32_t out_channels, const uint8_t *in, uint32_t channels, uint64_t n)
{
    if (channels == 3)
        k->gray(out, out_channels, in, n);
    else if (out_channels == 3)
        spread(out, in, n);
    else
        memcpy(out, in, n);
}

void pstk__tensor_saturation(const struct pstk__tensor_kernels *k,
                             const struct pstk__picture *picture, double factor)
{
    if (picture->channels == 3)
        k->saturate(picture->pixels, n_pixels_of(picture), (float)factor, (float)(1.0 - factor));
}

void pstk__tensor_hue(const struct pstk__tensor_kernels *k, const struct pstk__picture *picture,
                      double factor)
{
    if (picture->channels == 3)
        k->shift_hue(picture->pixels, n_pixels_of(picture), (float)factor);
}

/* ---- sharpness ------------------------------------------------------------------------------- */

void pstk__tensor_sharpness(const struct pstk__tensor_kernels *k, const struct pstk__picture *out,
                            const struct pstk__picture *in, double factor)
{
    const uint32_t channels = in->channels, n = (in->width - 2) * channels;
    const uint64_t stride = (uint64_t)in->width * channels;
    memcpy(out->pixels, in->pixels, stride);
    if (in->width < 3 || in->height < 3) {
        memcpy(out->pixels, in->pixels, pstk__picture_size(in));
        return;
    }
    for (uint32_t y = 1; y + 1 < in->height; y++) {
        const uint8_t *from = in->pixels + y * stride;
        uint8_t *to = out->pixels + y * stride;
        memcpy(to, from, channels);
        k->sharpen(to + channels, from + channels, n, stride, channels, (float)(1.0 - factor));
        memcpy(to + channels + n, from + channels + n, channels);
    }
    memcpy(out->pixels + (in->height - 1) * stride, in->pixels + (in->height - 1) * stride, stride);
}

/* ---- kernels --------------------------------------------------------------------------------- */

const struct pstk__tensor_kernels *pstk__tensor_kernels(uint32_t isa)
{
    /* The kernels from worst to best, including those that this CPU does not run. */
    static const void *const entries[] = {
        &pstk__tensor_c,
#if defined(__x86_64__)
        &pstk__tensor_avx2,
        &pstk__tensor_avx512,
#endif
    };
    return pstk__kernels_choose(entries, sizeof entries / sizeof entries[0], isa);
}
