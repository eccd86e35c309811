/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump_blur: blurs pictures for another program to compare (pillow_blur.py). Standard input holds
 * jobs, struct job and the pixels; standard output gets each job's pixels. Every ISA of the
 * kernels does the job; the program fails where they differ.
 */
#include "pixels/blur.h"
#include "support/picture.h"

#include <stdio.h>

struct job {
    uint32_t width, height, channels;
    uint32_t size[2]; /* size of the kernel; 0: by boxes */
    double sigma[2];
} __attribute__((packed));

static void blur(const struct job *job, const struct pstk__blur_kernels *kernels,
                 const struct pstk__picture *out, const struct pstk__picture *in, void *scratch)
{
    const float radius[2] = {(float)job->sigma[0], (float)job->sigma[1]};
    const struct pstk__blur_params params = {{job->size[0], job->size[1]},
                                             {job->sigma[0], job->sigma[1]}};
    if (job->size[0] == 0)
        pstk__blur_box_gaussian(kernels, out, in, radius, scratch);
    else
        pstk__blur_gaussian(kernels, out, in, &params, scratch);
}

/* 1 when every ISA gives the same bytes, which `out` gets. */
static int all_agree(const struct job *job, const struct pstk__picture *out,
                     const struct pstk__picture *other, const struct pstk__picture *in)
{
    const uint64_t size = pstk__picture_size(out);
    void *scratch = malloc(pstk__blur_scratch(job->width, job->height, job->channels));
    int agree = scratch != NULL;
    if (agree)
        blur(job, pstk__blur_kernels(PSTK_KERNELS_C), out, in, scratch);
    for (uint32_t v = PSTK_KERNELS_AVX2; agree && v <= PSTK_KERNELS_NEON; v++) {
        const struct pstk__blur_kernels *kernels = pstk__blur_kernels(v);
        if (kernels)
            blur(job, kernels, other, in, scratch);
        agree = !kernels || memcmp(out->pixels, other->pixels, size) == 0;
    }
    free(scratch);
    return agree;
}

int main(void)
{
    struct job job;
    int ok = 1;
    while (ok && fread(&job, sizeof job, 1, stdin) == 1) {
        struct pstk__picture in, out, other;
        ok = picture_open(&in, job.width, job.height, job.channels) == 0;
        ok = picture_open(&out, job.width, job.height, job.channels) == 0 && ok;
        ok = picture_open(&other, job.width, job.height, job.channels) == 0 && ok;
        const uint64_t size = pstk__picture_size(&in);
        ok = ok && fread(in.pixels, 1, size, stdin) == size && all_agree(&job, &out, &other, &in) &&
             fwrite(out.pixels, 1, size, stdout) == size && fflush(stdout) == 0;
        if (!ok)
            fprintf(stderr, "dump_blur: %u x %u x %u failed\n", job.width, job.height,
                    job.channels);
        picture_close(&in);
        picture_close(&out);
        picture_close(&other);
    }
    return !ok;
}
