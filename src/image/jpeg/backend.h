/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/backend: a box of an image from its coefficients: only the blocks that the box and the
 * margin of its upsampling need are transformed, row of blocks by row of blocks, in memory that
 * stays in cache. Bit for bit what libjpeg-turbo gives with JDCT_ISLOW and fancy upsampling,
 * converted to RGB as Pillow does, for every sampling and every box.
 */
#ifndef PSTK_JPEG_BACKEND_H
#define PSTK_JPEG_BACKEND_H

#include "base/arena.h"
#include "image/decoder.h"
#include "image/jpeg/frame.h"
#include "image/jpeg/kernels.h"

/* Where the blocks come from. */
struct pstk__block_source {
    /* Blocks [first, first + n) of row `row` of a component. `row` never falls from call to call
     * for one component; rows may be left out; [first, n) is the same in every call for one
     * component. What *out points to is borrowed until the next call. 0, or a result with err
     * filled in. */
    int (*row)(void *user, uint32_t component, uint32_t row, uint32_t first, uint32_t n,
               struct pstk__block_row *out, struct pstk_error *err);
    void *user;
};

struct pstk__backend_config {
    const struct pstk__jpeg_frame *frame;
    const struct pstk__jpeg_kernels *kernels;
    const struct pstk__block_source *source;
    const struct pstk__box *box; /* lies in the image, not empty */
    const struct pstk__row_sink *sink;
};

/* 0 when the back end can make pixels of such a frame: factors 1..4, every component's dividing the
 * largest; colour and number of components agree; ENOTSUP, EBADMSG. */
int pstk__jpeg_backend_check(const struct pstk__jpeg_frame *f, struct pstk_error *err);
/* Give the rows of the box to the sink. The frame has passed check. Memory from the arena, all of
 * it given back. 0, ENOMEM, or what the source returned. */
int pstk__jpeg_backend_rows(const struct pstk__backend_config *c, struct pstk__arena *arena,
                            struct pstk_error *err);
/* Most bytes of arena that images up to this width take. Derived in a comment. */
uint64_t pstk__jpeg_backend_scratch(uint32_t max_width);

#endif
