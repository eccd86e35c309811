/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/backend: makes the pixels of a box from an image's coefficients. It transforms only the
 * blocks that the box and the margin of its upsampling need, one row of blocks after another, in
 * memory that stays in cache. The pixels are bit for bit those of libjpeg-turbo with JDCT_ISLOW and
 * fancy upsampling, converted to RGB as Pillow does, for every sampling and every box.
 */
#ifndef PSTK_JPEG_BACKEND_H
#define PSTK_JPEG_BACKEND_H

#include "base/arena.h"
#include "image/decoder.h"
#include "image/jpeg/frame.h"
#include "image/jpeg/kernels.h"

/* The source of the blocks. */
struct pstk__block_source {
    /* Get blocks [first, first + n) of row `row` of a component. For one component `row` never
     * falls from call to call, rows may be skipped, and first and n are the same in every call.
     * *out borrows until the next call. 0, or a result with err filled in. */
    int (*row)(void *user, uint32_t component, uint32_t row, uint32_t first, uint32_t n,
               struct pstk__block_row *out, struct pstk_error *err);
    void *user;
};

struct pstk__backend_config {
    const struct pstk__jpeg_frame *frame;
    const struct pstk__jpeg_kernels *kernels;
    const struct pstk__block_source *source;
    const struct pstk__box *box; /* inside the image, not empty */
    const struct pstk__row_sink *sink;
};

/* Check that the back end can make pixels of a frame: factors 1..4, each dividing the largest, and
 * a colour that agrees with the number of components. 0, ENOTSUP or EBADMSG. */
int pstk__jpeg_backend_check(const struct pstk__jpeg_frame *f, struct pstk_error *err);
/* Pass the rows of the box to the sink. The frame must have passed check. Takes memory from the
 * arena and gives all of it back. 0, ENOMEM, or the source's result. */
int pstk__jpeg_backend_rows(const struct pstk__backend_config *c, struct pstk__arena *arena,
                            struct pstk_error *err);
/* Return the largest number of arena bytes for images up to this width. Derived in a comment. */
uint64_t pstk__jpeg_backend_scratch(uint32_t max_width);

#endif
