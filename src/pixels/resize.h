/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize: resizes rows of an image as Pillow's Image.resize(size, filter) does, and chooses the
 * kernels. Pixels have 1 (mode L), 3 (RGB) or 4 (RGBA) channels. Sources: Pillow's Resample.c, and
 * for NEAREST its Geometry.c. For RGBA, Pillow multiplies colours by alpha, resizes, and divides by
 * alpha, unless the filter is NEAREST or the image already has the size. Pure.
 */
#ifndef PSTK_PIXELS_RESIZE_H
#define PSTK_PIXELS_RESIZE_H

#include "base/arena.h"
#include "image/decoder.h"
#include "pixels/resize_kernels.h"

/* Return the kernels of an ISA (AUTO: the best that this CPU runs), NULL when this build or CPU
 * does not have them. */
const struct pstk__pixel_kernels *pstk__pixel_kernels(uint32_t isa);

/* One side of a resize. */
struct pstk__axis_config {
    uint32_t filter;           /* enum pstk_filter; not RANDOM */
    uint32_t in, out;          /* pixels before and after */
    uint32_t first_out, n_out; /* wanted outputs are [first_out, first_out + n_out) */
};
/* Compute the weights of an axis; the kernels' passes take its filter. 0 or ENOMEM. */
int pstk__axis_init(struct pstk__axis *axis, struct pstk__arena *arena,
                    const struct pstk__pixel_kernels *kernels, const struct pstk__axis_config *c);

/* A resize in progress. The caller passes rows in; finished rows appear in `out`. All memory comes
 * from an arena. */
struct pstk__resize {
    const struct pstk__pixel_kernels *kernels; /* kernels for alpha and finish */
    const struct pstk__pixel_kernels *passes;
    struct pstk__axis x, y;
    uint32_t identity;   /* 1: rows only go through finish_row; members from `row` on are unset */
    uint32_t is_nearest; /* 1: pixels are copied; members from `across` on are unset */
    uint32_t direct;     /* 1: the vertical pass writes finished rows */
    uint32_t has_alpha;  /* 1: rows are premultiplied on input, and divided by alpha on output */
    uint32_t slot_shift; /* slot_rows = 1 << slot_shift */
    uint32_t n_in;       /* input rows in slots, counted from y.begin */
    uint32_t n_held;     /* rows that wait for the rest of their slot, < slot_rows */
    uint32_t n_out;      /* output rows finished */
    struct pstk__finish finish;
    uint8_t *out;          /* first output row */
    int64_t out_stride;    /* bytes from one output row to the next */
    uint8_t *row;          /* one u8 output row */
    void *across;          /* x as the kernels packed it */
    uint32_t n_ring;       /* slots kept; the taps of one output lie within this many */
    uint8_t **ring;        /* n_ring slots */
    const uint8_t **slots; /* room for n_ring pointers, for struct pstk__column */
    int32_t *scratch;      /* scratch for struct pstk__column */
    /* Input rows, held_stride bytes apart: up to slot_rows - 1 that wait for the rest of their
     * slot; with has_alpha all slot_rows of a slot, premultiplied. */
    uint8_t *held;
    uint64_t held_stride;
};

/* Resize an image of in_width x in_height to out_width x out_height and keep the crop rectangle of
 * it. pstk__resize_rows then expects rows [y.begin, y.end), each of pixels [x.begin, x.end). 0 or
 * ENOMEM. */
struct pstk__resize_config {
    uint32_t channels; /* 1, 3 or 4, for input and output; finish.channels is the same */
    uint32_t filter;   /* enum pstk_filter; not RANDOM */
    uint32_t in_width, in_height, out_width, out_height;
    struct pstk__box crop; /* rectangle of the output */
    struct pstk__finish finish;
    void *out;
    int64_t out_stride; /* bytes from one output row to the next; negative: upwards */
};
int pstk__resize_begin(struct pstk__resize *resize, struct pstk__arena *arena,
                       const struct pstk__pixel_kernels *kernels,
                       const struct pstk__resize_config *c);
/* Pass in the next n input rows, `stride` bytes apart. Reads nothing past their pixels. */
void pstk__resize_rows(struct pstk__resize *resize, const uint8_t *pixels, uint64_t stride,
                       uint32_t n);
/* Bounds of all resizes of an output: no image is larger than max_in, none is resized to less than
 * min_out, no crop rectangle is larger than max_crop. */
struct pstk__resize_bounds {
    uint32_t channels; /* channels of every image */
    uint32_t filters;  /* pstk__filter_set of those in use; 0: BILINEAR */
    uint32_t max_in_width, max_in_height;
    uint32_t min_out_width, min_out_height;
    uint32_t max_crop_width, max_crop_height;
};
/* Return the largest number of arena bytes that begin takes within these bounds. */
uint64_t pstk__resize_scratch(const struct pstk__resize_bounds *bounds);

#endif
