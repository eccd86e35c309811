/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump_warp: transforms pictures for another program to compare (tests/picture/pillow_warp.py).
 * Standard input holds jobs, struct job and the pixels; standard output gets each job's pixels.
 * Every variant of the kernels does the job; the program fails where they differ.
 */
#include "picture/warp.h"
#include "support/picture.h"

#include <stdio.h>
#include <string.h>

struct job {
    uint32_t perspective; /* 0: affine */
    uint32_t in_width, in_height, out_width, out_height, channels, filter;
    uint8_t fill[4];
    double m[8];
};

/* 0, or -1 where memory ends. */
static int warp(const struct job *job, const uint8_t *in, struct pstk__picture *out,
                const struct pstk__warp_kernels *kernels)
{
    struct pstk__picture copy;
    if (picture_open(&copy, job->in_width, job->in_height, job->channels) < 0)
        return -1;
    memcpy(copy.pixels, in, pstk__picture_size(&copy));
    if (job->perspective)
        pstk__warp_perspective(kernels, out, &copy, job->m, job->filter, job->fill);
    else
        pstk__warp_affine(kernels, out, &copy, job->m, job->filter, job->fill);
    picture_close(&copy);
    return 0;
}

static int work(const struct job *job, const uint8_t *in, struct pstk__picture *out,
                struct pstk__picture *other)
{
    if (warp(job, in, out, pstk__warp_kernels(PSTK_KERNELS_C)) < 0)
        return -1;
    for (uint32_t v = PSTK_KERNELS_AVX2; v <= PSTK_KERNELS_AVX512; v++) {
        const struct pstk__warp_kernels *kernels = pstk__warp_kernels(v);
        if (kernels && (warp(job, in, other, kernels) < 0 ||
                        memcmp(out->pixels, other->pixels, pstk__picture_size(out)) != 0))
            return -1;
    }
    return fwrite(out->pixels, 1, pstk__picture_size(out), stdout) == pstk__picture_size(out) &&
                   fflush(stdout) == 0
               ? 0
               : -1;
}

int main(void)
{
    struct job job;
    int rc = 0;
    while (rc == 0 && fread(&job, sizeof job, 1, stdin) == 1) {
        struct pstk__picture in, out, other;
        rc = picture_open(&in, job.in_width, job.in_height, job.channels) < 0 ||
             picture_open(&out, job.out_width, job.out_height, job.channels) < 0 ||
             picture_open(&other, job.out_width, job.out_height, job.channels) < 0;
        if (rc == 0)
            rc = fread(in.pixels, 1, pstk__picture_size(&in), stdin) != pstk__picture_size(&in) ||
                 work(&job, in.pixels, &out, &other) < 0;
        if (rc != 0)
            fprintf(stderr, "dump_warp: %u x %u x %u failed\n", job.in_width, job.in_height,
                    job.channels);
        picture_close(&in);
        picture_close(&out);
        picture_close(&other);
    }
    return rc;
}
