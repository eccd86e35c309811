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

/* Passes that convert or colour, one after the other: each has a row for what it gives. */
struct pstk__recolour {
    const struct pstk__pass *passes; /* borrowed */
    uint32_t n;
    uint64_t row_size; /* bytes from one of their rows to the next */
    uint8_t *rows;     /* n, arena */
};

/* What an output is made of. */
struct pstk__image_source {
    const struct pstk__image_info *info;
    const struct pstk__image_ops *image_ops; /* its ops, for this image; borrowed until end */
    uint8_t fill;                            /* masks: what lies outside of the image */
};

/* The row of one output, under way. */
struct pstk__image_row {
    const struct pstk__output *output; /* borrowed */
    struct pstk__row *row;             /* borrowed */
    struct pstk__image_source source;
    struct pstk__recolour before; /* of rows that go into the resize */
    struct pstk__resize resize;
    struct pstk__picture picture; /* canvas_room > 0: what the resize writes; arena */
    uint64_t room;                /* bytes of its memory, and of the spare's */
    struct pstk_op *changes;      /* of the picture; arena */
    uint32_t n_changes;
    const struct pstk__image_ops *image_ops; /* borrowed */
    uint8_t *out;                            /* the row, for what the drawn ops leave */
    struct pstk__box box;                    /* of the image as coded: what the resize reads */
    uint32_t is_turned; /* 1: rows are collected in `coded`, and turned when all are there */
    uint8_t *coded;     /* box.width x box.height pixels, arena */
    uint8_t *upright;   /* one upright row, arena */
    uint32_t n_rows;    /* rows of `coded` */
};

/* Give the finished picture of a callback's output to its function. 0, or a negative result, which
 * add or end then returns. */
typedef int (*pstk__picture_fn)(void *user, const struct pstk__output *o,
                                const struct pstk__picture *picture);

struct pstk__image_rows {
    const struct pstk__plan *plan;     /* borrowed */
    struct pstk__arena *arena;         /* borrowed */
    size_t mark;                       /* of the arena, at begin */
    pstk__picture_fn give;             /* set after begin, with its user */
    void *user;                        /* borrowed */
    const struct pstk__output *failed; /* whose picture could not be changed */
    struct pstk_error failure; /* of a function between ops: why add or end returned ECANCELED */
    struct pstk__box box;      /* being decoded */
    uint32_t channels;         /* of the decoder's rows */
    uint32_t n_taken;          /* rows of the box, so far */
    uint32_t n;                /* outputs that show a part of the image */
    struct pstk__image_row rows[PSTK__MAX_OUTPUTS];
};

void pstk__image_rows_begin(struct pstk__image_rows *rows, const struct pstk__plan *plan,
                            struct pstk__arena *arena);
/* Begin the row of an output: its crop and what lies outside of the image are written. ENOMEM: the
 * arena has no room; EFBIG: the picture that the output's ops change would be too large. */
int pstk__image_rows_add(struct pstk__image_rows *rows, const struct pstk__output *o,
                         struct pstk__row *row, const struct pstk__image_source *source);
/* Decode all of the image instead of the box. */
void pstk__image_rows_whole(struct pstk__image_rows *rows, const struct pstk__image_info *info);
/* Decode the image, whose n is not 0. accepts_damaged: if it is damaged, begin the rows again, and
 * decode it as Pillow loads it. 0; 1: it was damaged; or what a decoder returns. */
int pstk__image_rows_decode(struct pstk__image_rows *rows, struct pstk__image_state *state,
                            const struct pstk__coded *image, uint32_t accepts_damaged,
                            struct pstk_error *err);
/* Take the next rows of the box: a pstk__row_sink.rows, `user` is r. */
void pstk__image_rows_take(void *user, const uint8_t *pixels, uint64_t stride, uint32_t n_rows);
/* All rows of the box were taken: finish the outputs that waited for them. 0, ENOMEM or EFBIG, as
 * of add, or EINVAL: the picture is too small for an op. */
int pstk__image_rows_end(struct pstk__image_rows *rows);

/* Bounds of the images of a field. */
struct pstk__image_bounds {
    uint32_t max_width, max_height, max_side; /* pixels; max_side: of both */
    uint64_t max_pixels;
};
/* Arena bytes that an output's passes hold, at most. */
uint64_t pstk__image_turn_size(const struct pstk__image_bounds *bounds, uint32_t channels);
uint64_t pstk__image_resize_size(const struct pstk__image_bounds *bounds,
                                 const struct pstk__output *o, uint32_t channels);
/* Arena bytes of a pass that converts or colours rows of at most so many pixels. */
uint64_t pstk__image_row_size(uint32_t max_width);

#endif
