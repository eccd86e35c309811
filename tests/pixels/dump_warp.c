/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump_warp: moves the pixels of pictures for another program to compare (pillow_warp.py,
 * torchvision_warp.py). Standard input holds jobs, struct job and the pixels; standard output gets,
 * for each, width and height as u32, the matrix as 8 doubles, and the pixels. Every ISA of the
 * kernels does the job; the program fails where they differ.
 */
#include "pixels/rotation.h"
#include "pixels/warp_matrix.h"
#include "support/picture.h"

#include <stdio.h>
#include <string.h>

enum what { AFFINE, PERSPECTIVE, ROTATE, FORM, CORNERS, FLIP, TURN, PAD };

struct job {
    uint32_t what;
    uint32_t in_width, in_height, out_width, out_height, channels; /* ROTATE sets the output's */
    uint32_t option; /* filter; FLIP: 1 is vertical; TURN: how far; PAD: how */
    uint8_t fill[4];
    /* AFFINE, PERSPECTIVE: the matrix. ROTATE: angle, expand, 1 if centred, x, y, 1 if translated,
     * x, y. FORM: angle, translate, scale, shear, centre. CORNERS: start, end. PAD: left, top. */
    double number[16];
};

/* Compute the matrix, and the output's size. */
static void prepare(struct job *job, struct pstk__rotation *rotation, double m[8])
{
    const double *n = job->number;
    memset(rotation, 0, sizeof *rotation);
    memset(m, 0, 8 * sizeof *m);
    if (job->what == AFFINE || job->what == PERSPECTIVE) {
        memcpy(m, n, 8 * sizeof *m);
    } else if (job->what == ROTATE) {
        const struct pstk__rotation_params params = {n[0], (uint32_t)n[1], n[2] != 0 ? n + 3 : NULL,
                                                     n[5] != 0 ? n + 6 : NULL};
        pstk__rotation_init(rotation, &params, job->in_width, job->in_height);
        memcpy(m, rotation->m, sizeof rotation->m);
        job->out_width = rotation->width;
        job->out_height = rotation->height;
    } else if (job->what == FORM) {
        const struct pstk__affine_params params = {
            n[0], {n[1], n[2]}, n[3], {n[4], n[5]}, {n[6], n[7]}};
        pstk__warp_affine_matrix(&params, m);
    } else if (job->what == CORNERS && pstk__warp_perspective_matrix(n, n + 8, m) < 0) {
        memset(m, 0, 8 * sizeof *m);
    }
}

static void work(const struct job *job, const struct pstk__rotation *rotation, const double m[8],
                 const struct pstk__warp_kernels *k, const struct pstk__picture *out,
                 const struct pstk__picture *in)
{
    if (job->what == AFFINE || job->what == FORM)
        pstk__warp_affine(k, out, in, m, job->option, job->fill);
    else if (job->what == PERSPECTIVE || job->what == CORNERS)
        pstk__warp_perspective(k, out, in, m, job->option, job->fill);
    else if (job->what == ROTATE)
        pstk__warp_rotation(k, out, in, rotation, job->option, job->fill);
    else if (job->what == FLIP && job->option == 0)
        pstk__copy_flip_horizontal(k, out, in);
    else if (job->what == FLIP)
        pstk__copy_flip_vertical(out, in);
    else if (job->what == TURN)
        pstk__copy_turn(k, out, in, job->option);
    else
        pstk__copy_pad(out, in, (int32_t)job->number[0], (int32_t)job->number[1], job->option,
                       job->fill);
}

/* The pixels of `in`, on a copy that the work may overwrite. 0, or -1 where memory ends. */
static int work_on_copy(const struct job *job, const struct pstk__rotation *rotation,
                        const double m[8], const struct pstk__warp_kernels *k,
                        const struct pstk__picture *out, const struct pstk__picture *in)
{
    struct pstk__picture copy;
    if (picture_open(&copy, in->width, in->height, in->channels) < 0)
        return -1;
    memcpy(copy.pixels, in->pixels, pstk__picture_size(in));
    work(job, rotation, m, k, out, &copy);
    picture_close(&copy);
    return 0;
}

/* Return whether every ISA gives the same bytes, which `out` gets. */
static int all_agree(const struct job *job, const struct pstk__rotation *rotation,
                     const double m[8], const struct pstk__picture *out,
                     const struct pstk__picture *in)
{
    struct pstk__picture other;
    const struct pstk__warp_kernels *c = pstk__warp_kernels(PSTK_KERNELS_C);
    int agree = picture_open(&other, out->width, out->height, out->channels) == 0 &&
                work_on_copy(job, rotation, m, c, out, in) == 0;
    for (uint32_t v = PSTK_KERNELS_AVX2; v <= PSTK_KERNELS_NEON; v++) {
        const struct pstk__warp_kernels *k = pstk__warp_kernels(v);
        agree = agree && (!k || (work_on_copy(job, rotation, m, k, &other, in) == 0 &&
                                 memcmp(out->pixels, other.pixels, pstk__picture_size(out)) == 0));
    }
    picture_close(&other);
    return agree;
}

static int answer(const struct pstk__picture *out, const double m[8])
{
    const uint32_t size[2] = {out->width, out->height};
    return fwrite(size, sizeof size, 1, stdout) == 1 && fwrite(m, sizeof *m, 8, stdout) == 8 &&
           fwrite(out->pixels, 1, pstk__picture_size(out), stdout) == pstk__picture_size(out) &&
           fflush(stdout) == 0;
}

int main(void)
{
    struct job job;
    int ok = 1;
    while (ok && fread(&job, sizeof job, 1, stdin) == 1) {
        struct pstk__rotation rotation;
        struct pstk__picture in, out;
        double m[8];
        prepare(&job, &rotation, m);
        ok = picture_open(&in, job.in_width, job.in_height, job.channels) == 0;
        ok = picture_open(&out, job.out_width, job.out_height, job.channels) == 0 && ok;
        ok = ok && fread(in.pixels, 1, pstk__picture_size(&in), stdin) == pstk__picture_size(&in) &&
             all_agree(&job, &rotation, m, &out, &in) && answer(&out, m);
        if (!ok)
            fprintf(stderr, "dump_warp: job %u on %u x %u x %u failed\n", job.what, job.in_width,
                    job.in_height, job.channels);
        picture_close(&in);
        picture_close(&out);
    }
    return !ok;
}
