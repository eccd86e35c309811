/* SPDX-License-Identifier: Apache-2.0 */
/*
 * canvas: the picture of one output of one sample, and the memory of the fixed ops that change it
 * one after the other. One thread.
 */
#ifndef PSTK_CANVAS_H
#define PSTK_CANVAS_H

#include "augment/op.h"
#include "image/jpeg/recompress.h"
#include "pixels/blur.h"
#include "pixels/colour.h"
#include "pixels/colour_table.h"
#include "pixels/tensor.h"
#include "pixels/warp.h"

/* The kernels of all ops, with one ISA. */
struct pstk__canvas_kernels {
    const struct pstk__pixel_kernels *pixel;
    const struct pstk__colour_kernels *colour;
    const struct pstk__warp_kernels *warp;
    const struct pstk__blur_kernels *blur;
    struct pstk__recompress_kernels jpeg;
    const struct pstk__tensor_kernels *tensor;
};

/* To begin, set kernels, arena, picture, room and spare, and the rest to 0. Tables of neighbouring
 * ops are folded into one, which waits until an op reads pixel values. An op may leave a table of
 * its own. */
struct pstk__canvas {
    const struct pstk__canvas_kernels *kernels; /* borrowed */
    struct pstk__arena *arena;                  /* borrowed; scratch of one op at a time */
    struct pstk__picture picture;               /* the result of the ops so far */
    uint64_t room;                              /* bytes of the picture's memory */
    uint32_t has_table;                         /* 1: the table waits to be applied */
    struct pstk__colour_table table;
    struct pstk_error *failure; /* borrowed; set where change returns ECANCELED */
    uint8_t *spare; /* memory as large as the picture's; ops that do not work in place write here */
};

/* Set the kernels of an ISA (AUTO: the best of this CPU). 0: this build or CPU lacks them. */
int pstk__canvas_kernels_init(struct pstk__canvas_kernels *kernels, uint32_t isa);
/* Change the picture by n fixed ops as they were drawn; each op's children follow it. 0, ENOMEM:
 * the arena has no room, EFBIG: an op would make a picture that exceeds the memory computed from
 * the bounds of its list, EINVAL: an op does not fit the picture, or ECANCELED: a function of the
 * program failed, see canvas->failure. */
int pstk__canvas_run(struct pstk__canvas *canvas, const struct pstk_op *ops, uint32_t n);
/* Change the picture as pstk__canvas_run does, but tables of the last ops may still wait in the
 * canvas. */
int pstk__canvas_run_folded(struct pstk__canvas *canvas, const struct pstk_op *ops, uint32_t n);
/* Return a picture of this size in the spare memory, for an op to fill. */
struct pstk__picture pstk__canvas_spare(const struct pstk__canvas *canvas, uint32_t width,
                                        uint32_t height, uint32_t channels);
/* Make the filled spare the picture, and the picture's memory the spare. */
void pstk__canvas_swap(struct pstk__canvas *canvas, const struct pstk__picture *filled);
/* Resize a part of the picture, NULL: all of it, by a filter that is not RANDOM. The part lies
 * inside the picture. 0 or ENOMEM. */
int pstk__canvas_resize(struct pstk__canvas *canvas, const struct pstk__box *part, uint32_t filter,
                        uint32_t width, uint32_t height);

/* The memory of a canvas for ops [begin, end) of a list. */
struct pstk__canvas_bounds {
    uint64_t room;    /* bytes of the picture's memory, and of the spare memory */
    uint64_t scratch; /* maximum arena bytes of one op */
};
/* Compute the bounds for pictures that are at most `largest` with the view `view` before the first
 * op. */
struct pstk__canvas_bounds pstk__canvas_bounds_of(const struct pstk_op *ops, uint32_t begin,
                                                  uint32_t end, struct pstk__largest largest,
                                                  struct pstk__view view);

#endif
