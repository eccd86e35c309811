/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_rows: the image outputs of one field of one sample. Each finds the part of the image that
 * it shows; the decoder then gives the rows of the smallest box that contains all parts, and every
 * output turns, resizes and finishes its own rows. Used by one worker; all memory comes from its
 * arena.
 *
 *   begin -> add, output by output -> (decode; or whole -> take, by a decoder) -> end
 */
#ifndef PSTK_IMAGE_ROWS_H
#define PSTK_IMAGE_ROWS_H

#include "image/image.h"
#include "sample/image_ops.h"
#include "sample/row.h"

/* Passes that convert or colour, one after another; each has a row for its result. */
struct pstk__recolour {
    const struct pstk__pass *passes; /* borrowed */
    uint32_t n;
    uint64_t row_size; /* bytes from the row of one pass to that of the next */
    uint8_t *rows;     /* n, arena */
};

/* The inputs of an output's row. */
struct pstk__image_source {
    const struct pstk__image_info *info;
    const struct pstk__image_ops *image_ops; /* drawn for this image; borrowed until end */
    uint8_t fill;                            /* masks: value outside of the image */
};

/* The state of one output's row. */
struct pstk__image_row {
    const struct pstk__output *output; /* borrowed */
    struct pstk__row *row;             /* borrowed */
    struct pstk__image_source source;
    struct pstk__recolour before; /* applied to rows before the resize */
    struct pstk__resize resize;
    struct pstk__picture picture; /* canvas_room > 0: the result of the resize; arena */
    uint64_t room;                /* bytes of the picture's memory, and of its spare's */
    struct pstk_op *changes;      /* ops that change the picture; arena */
    uint32_t n_changes;
    const struct pstk__image_ops *image_ops; /* borrowed */
    uint8_t *out;                            /* the row, for what remains of the drawn ops */
    struct pstk__box box;                    /* part of the image as coded that the resize reads */
    uint32_t is_turned; /* 1: rows are collected in `coded`, and turned once all are there */
    uint8_t *coded;     /* box.width x box.height pixels, arena */
    uint8_t *upright;   /* one upright row, arena */
    uint32_t n_rows;    /* rows of `coded` */
};

/* Give the finished picture of a callback's output to its function. Returns 0, or a negative
 * result, which add or end then returns. */
typedef int (*pstk__picture_fn)(void *user, const struct pstk__output *o,
                                const struct pstk__picture *picture);

struct pstk__image_rows {
    const struct pstk__plan *plan;     /* borrowed */
    struct pstk__arena *arena;         /* borrowed */
    size_t mark;                       /* mark of the arena at begin */
    pstk__picture_fn give;             /* set after begin, with its user */
    void *user;                        /* borrowed */
    const struct pstk__output *failed; /* output whose picture could not be changed */
    struct pstk_error failure; /* error of a function between ops, for which add or end returned
                                  ECANCELED */
    struct pstk__box box;      /* part of the image that is decoded */
    uint32_t channels;         /* channels of the decoder's rows */
    uint32_t n_taken;          /* rows of the box that were taken */
    uint32_t n;                /* outputs that show a part of the image */
    struct pstk__image_row rows[PSTK__MAX_OUTPUTS];
};

void pstk__image_rows_begin(struct pstk__image_rows *rows, const struct pstk__plan *plan,
                            struct pstk__arena *arena);
/* Write the row of an output alone if it is an image as it is stored, all of it and unchanged.
 * *data: the image, `size` bytes. Returns 1 if it did; then the row needs none of the other
 * functions. Otherwise the row will be made of the image: *data has become row->aside, and has the
 * bytes, if they lay in the row. */
int pstk__image_row_copy(const struct pstk__output *o, struct pstk__row *row,
                         const struct pstk__image_source *source, const uint8_t **data,
                         uint64_t size);
/* Begin the row of an output: write its crop and the padding outside of the image. ENOMEM: the
 * arena has no room; EFBIG: the picture that the output's ops change would be too large. */
int pstk__image_rows_add(struct pstk__image_rows *rows, const struct pstk__output *o,
                         struct pstk__row *row, const struct pstk__image_source *source);
/* Decode all of the image instead of the box. */
void pstk__image_rows_whole(struct pstk__image_rows *rows, const struct pstk__image_info *info);
/* Decode the image, whose n is not 0. accepts_damaged: if it is damaged, begin the rows again, and
 * decode it as Pillow loads it. Returns 0; 1: it was damaged; or the error of a decoder. */
int pstk__image_rows_decode(struct pstk__image_rows *rows, struct pstk__image_state *state,
                            const struct pstk__coded *image, uint32_t accepts_damaged,
                            struct pstk_error *err);
/* Take the next rows of the box: a pstk__row_sink.rows, whose `user` is the image rows. */
void pstk__image_rows_take(void *user, const uint8_t *pixels, uint64_t stride, uint32_t n_rows);
/* Finish the outputs that waited for all rows of the box. Returns 0; ENOMEM or EFBIG, as add; or
 * EINVAL: the picture is too small for an op. */
int pstk__image_rows_end(struct pstk__image_rows *rows);

/* Bounds of the images of a field. */
struct pstk__image_bounds {
    uint32_t max_width, max_height, max_side; /* pixels; max_side: of width and height */
    uint64_t max_pixels;
};
/* Return the most arena bytes that an output's passes hold. */
uint64_t pstk__image_turn_size(const struct pstk__image_bounds *bounds, uint32_t channels);
uint64_t pstk__image_resize_size(const struct pstk__image_bounds *bounds,
                                 const struct pstk__output *o, uint32_t channels);
/* Return the arena bytes of a pass that converts or colours rows of at most max_width pixels. */
uint64_t pstk__image_row_size(uint32_t max_width);

#endif
