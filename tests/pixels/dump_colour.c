/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump_colour: changes colours for another program to compare (tests/pixels/pillow_colour.py).
 * Standard input holds jobs, each 6 x u32 (enum pstk_kernels, operation, width, height, channels,
 * channels of the result), 2 x f64 (settings) and the pixels; standard output gets each job's
 * result. Settings that an operation does not have are 0.
 */
#include "pixels/colour.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum operation {
    BRIGHTNESS,
    CONTRAST,
    SATURATION,
    HUE,
    SHARPNESS,
    GAMMA,
    INVERT,
    POSTERIZE,
    SOLARIZE,
    SOLARIZE_ADD,
    AUTOCONTRAST,
    EQUALIZE,
    GRAYSCALE,
    PERMUTE,
};

struct job {
    uint32_t isa, operation, width, height, channels, out_channels;
    double settings[2];
};

static int by_table(struct pstk__colour_table *table, const struct pstk__colour_kernels *k,
                    const struct pstk__picture *picture, const struct job *job)
{
    const double *settings = job->settings;
    if (job->operation == BRIGHTNESS)
        pstk__colour_table_brightness(table, (float)settings[0]);
    else if (job->operation == CONTRAST)
        pstk__colour_table_contrast(table, pstk__colour_mean(k, picture), (float)settings[0]);
    else if (job->operation == GAMMA)
        pstk__colour_table_gamma(table, settings[0], settings[1]);
    else if (job->operation == INVERT)
        pstk__colour_table_invert(table);
    else if (job->operation == POSTERIZE)
        pstk__colour_table_posterize(table, (uint32_t)settings[0]);
    else if (job->operation == SOLARIZE)
        pstk__colour_table_solarize(table, settings[0]);
    else if (job->operation == SOLARIZE_ADD)
        pstk__colour_table_solarize_add(table, (int32_t)settings[0], (int32_t)settings[1]);
    else
        return 0;
    return 1;
}

static void permute(const struct pstk__colour_kernels *k, const struct pstk__picture *picture,
                    uint32_t code)
{
    const uint32_t order[3] = {code % 3, code / 3 % 3, code / 9 % 3};
    pstk__colour_permute(k, picture, order);
}

/* Change the picture, or write it to `out`, which has its shape. Returns the one with the result.
 */
static struct pstk__picture *change(struct pstk__picture *out, struct pstk__picture *picture,
                                    const struct job *job)
{
    const struct pstk__colour_kernels *k = pstk__colour_kernels(job->isa);
    const float factor = (float)job->settings[0];
    struct pstk__colour_table table;
    if (by_table(&table, k, picture, job))
        pstk__colour_apply(k, picture, &table);
    else if (job->operation == SATURATION)
        pstk__colour_saturation(k, picture, factor);
    else if (job->operation == HUE)
        pstk__colour_hue(k, picture, job->settings[0]);
    else if (job->operation == AUTOCONTRAST)
        pstk__colour_autocontrast(k, picture);
    else if (job->operation == EQUALIZE)
        pstk__colour_equalize(k, picture);
    else if (job->operation == GRAYSCALE)
        pstk__colour_grayscale(k, picture, job->out_channels);
    else if (job->operation == PERMUTE)
        permute(k, picture, (uint32_t)job->settings[0]);
    else
        pstk__colour_sharpness(k, out, picture, factor);
    return job->operation == SHARPNESS ? out : picture;
}

static struct pstk__picture picture_of(const struct job *job)
{
    const uint64_t n_pixels = (uint64_t)job->width * job->height;
    struct pstk__picture picture = {
        .width = job->width, .height = job->height, .channels = job->channels};
    picture.pixels = aligned_alloc(64, pstk__picture_room(n_pixels, 4));
    return picture;
}

int main(void)
{
    struct job job;
    while (fread(&job, sizeof job, 1, stdin) == 1) {
        struct pstk__picture picture = picture_of(&job), out = picture_of(&job);
        const size_t size = (size_t)pstk__picture_size(&picture);
        int ok = picture.pixels && out.pixels && pstk__colour_kernels(job.isa) &&
                 fread(picture.pixels, 1, size, stdin) == size;
        if (ok) {
            const struct pstk__picture *result = change(&out, &picture, &job);
            const size_t out_size = (size_t)pstk__picture_size(result);
            ok = fwrite(result->pixels, 1, out_size, stdout) == out_size && fflush(stdout) == 0;
        }
        free(picture.pixels);
        free(out.pixels);
        if (!ok) {
            fprintf(stderr, "dump_colour: operation %u of %u x %u x %u failed\n", job.operation,
                    job.width, job.height, job.channels);
            return 1;
        }
    }
    return 0;
}
