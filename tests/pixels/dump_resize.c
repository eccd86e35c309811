/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump_resize: resizes for another program to compare (tests/pixels/pillow_resize.py). Standard
 * input holds jobs, each 10 x u32 (in width, in height, out width, out height, crop left, top,
 * width, height, channels, filter) and the pixels; standard output gets each job's crop rectangle.
 * u8, NHWC, no flip.
 */
#include "pixels/resize.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t scratch_of(const uint32_t job[10])
{
    const struct pstk__resize_bounds bounds = {
        .channels = job[8],
        .filters = pstk__filter_set(job[9]),
        .max_in_width = job[0],
        .max_in_height = job[1],
        .min_out_width = job[2],
        .min_out_height = job[3],
        .max_crop_width = job[6],
        .max_crop_height = job[7],
    };
    return pstk__resize_scratch(&bounds);
}

/* Exactly the bytes promised by pstk__resize_scratch, and exactly the pixels asked for. */
static int resize(const uint32_t job[10], const uint8_t *in, uint8_t *out)
{
    struct pstk__arena arena;
    if (pstk__arena_open(&arena, scratch_of(job)) < 0)
        return -1;
    const struct pstk__resize_config config = {
        .channels = job[8],
        .filter = job[9],
        .in_width = job[0],
        .in_height = job[1],
        .out_width = job[2],
        .out_height = job[3],
        .crop = {job[4], job[5], job[6], job[7]},
        .finish = {.channels = job[8], .dtype = PSTK_U8, .layout = PSTK_NHWC, .width = job[6]},
        .out = out,
        .out_stride = (uint64_t)job[6] * job[8],
    };
    struct pstk__resize r;
    const struct pstk__pixel_kernels *kernels = pstk__pixel_kernels(PSTK_KERNELS_AUTO);
    int rc = pstk__resize_begin(&r, &arena, kernels, &config);
    const size_t row_size = rc < 0 ? 0 : (size_t)(r.x.end - r.x.begin) * job[8];
    uint8_t *row = malloc(row_size ? row_size : 1); /* a block of its own: over-reads are seen */
    for (uint32_t y = rc < 0 || !row ? 1 : r.y.begin; rc == 0 && row && y < r.y.end; y++) {
        const uint8_t *from = in + ((size_t)y * job[0] + r.x.begin) * job[8];
        for (size_t i = 0; i < row_size; i++)
            row[i] = from[i];
        pstk__resize_rows(&r, row, 0, 1);
    }
    if (rc == 0 && (!row || r.n_out != job[7]))
        rc = -1;
    free(row);
    pstk__arena_close(&arena);
    return rc;
}

int main(void)
{
    uint32_t job[10];
    while (fread(job, sizeof job, 1, stdin) == 1) {
        const size_t in_size = (size_t)job[0] * job[1] * job[8];
        const size_t out_size = (size_t)job[6] * job[7] * job[8];
        uint8_t *in = malloc(in_size), *out = malloc(out_size);
        int ok = in && out && fread(in, 1, in_size, stdin) == in_size;
        ok = ok && resize(job, in, out) == 0 && fwrite(out, 1, out_size, stdout) == out_size;
        free(in);
        free(out);
        if (!ok || fflush(stdout) != 0) {
            fprintf(stderr, "dump_resize: %u x %u x %u to %u x %u by filter %u failed\n", job[0],
                    job[1], job[8], job[2], job[3], job[9]);
            return 1;
        }
    }
    return 0;
}
