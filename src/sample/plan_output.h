/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_output: one output of a plan, checked against the data set and compiled to passes. A head,
 * which every output has, and a part for each family of kinds. The parts have the names that they
 * have in the settings (struct pstk_output).
 */
#ifndef PSTK_PLAN_OUTPUT_H
#define PSTK_PLAN_OUTPUT_H

#include "augment/boxes.h"
#include "augment/canvas.h"
#include "process/pool.h"
#include "sample/box_where.h"
#include "sample/pass.h"

#include <penstock/output.h>

#define PSTK__MAX_INPUT (1ull << 40) /* bytes of a row, or of a batch, that a process takes */
#define PSTK__MAX_LEVELS 4u          /* levels of lists in lists */

/* IMAGE, and CALLBACK with decoded pixels. MASK and BOXES have the size of the image that they
 * follow; MASK has resize, crop and canvas_room, too, for its own passes. */
struct pstk__image_part {
    struct pstk_op *ops; /* copy of the list, owned; NULL: no ops */
    uint32_t n_ops;
    uint32_t in_channels;    /* before the ops: 1, 3 or 4 */
    uint32_t channels;       /* after the ops, as handed out */
    uint32_t height, width;  /* pixels after the ops; CALLBACK: 0 if sizes differ */
    uint32_t looks_at_boxes; /* 1: an op of the list looks at boxes */
    uint32_t boxes;          /* looks_at_boxes: the boxes output */
    uint32_t n_prefix;       /* leading ops that the resize and the passes before it do */
    uint32_t max_ops;        /* the most fixed ops that a sample draws, for any size */
    uint32_t resize; /* index of the RESIZE pass; passes before it convert or colour rows on their
                        way into it, PICTURE passes after it change its result */
    struct pstk__largest crop; /* largest crop rectangle of the geometry */
    uint64_t canvas_room;      /* bytes of a picture; 0: no PICTURE pass */
    void *table;               /* IMAGE of a float dtype, for FINISH: channels x 256, owned */
    struct pstk__affine line;  /* the table's line, if its values lie on one */
};

/* A row of the whole batch that processes take. */
struct pstk__input {
    uint32_t dtype, n_dims;
    uint64_t shape[7];
    uint64_t size; /* bytes; 0: processes take no whole batches */
};

/* CALLBACK. One that takes decoded pixels has an image part, too. */
struct pstk__callback_part {
    struct pstk__input input;        /* row of whole batches */
    struct pstk__process_pool *pool; /* processes that make its rows, one of the plan's pools; NULL:
                                        none */
};

/* MASK, BOXES, PER_BOX, KEYPOINTS and POLYGONS. */
struct pstk__follow_part {
    uint32_t image; /* index of the image output; not of PER_BOX, which follows boxes */
    uint32_t boxes; /* PER_BOX, and KEYPOINTS, POLYGONS with has_boxes: index of the boxes output */
    uint32_t has_boxes; /* KEYPOINTS, POLYGONS, 1: a dropped box of output `boxes` drops its rows */
    uint32_t n_levels;  /* PER_BOX, POLYGONS: levels of lengths between the boxes and the items;
                           BOXES: 1 with a condition, else 0 */
    uint32_t levels[PSTK__MAX_LEVELS]; /* fields of these lengths, from the boxes down; BOXES: field
                                          of the condition's numbers */
    struct pstk__box_where where;      /* BOXES: the condition */
    uint64_t max_boxes;                /* BOXES: the most boxes of a sample; else 0 */
    uint32_t *partners; /* KEYPOINTS, for each point: the point that it is exchanged with when
                           mirrored, or itself; owned; NULL: no exchange */
};

/* BYTES, RAGGED, BOXES, PER_BOX, KEYPOINTS and POLYGONS. */
struct pstk__ragged_part {
    uint64_t item_size;    /* bytes of an item, which offsets count as one; 0: not ragged */
    uint64_t max_size;     /* the most bytes of a row */
    uint64_t written_size; /* is_combined: the most bytes of a row that workers write */
};

/*
 * One output. pstk__plan_open makes it in these steps; a step begins once all outputs have taken
 * the one before it, except that an output which follows no image is checked when it is copied.
 *
 *   copy      settings, kind, name, field, is_first, next; image.ops            plan.c
 *   check     dtype, n_dims, shape, strides; sizes, and whom it follows         compile*.c
 *   boxes     image.looks_at_boxes, image.boxes                                 compile_follow.c
 *   combine   is_combined, written_size; more of max_size and budget            mosaic.c
 *   compile   passes, and what they need; follow.boxes of points                compile*.c
 *   end       is_lone_copy, is_lone_image; image.max_ops for all sizes          multi_size.c
 *
 * pstk__plan_start sets callback.pool. Then the output is only read, by any thread.
 *
 * - settings stay what the caller asked for: defaults are filled in outside of them. Where there
 *   are size_ops, image.ops is the list of this plan's. Pointers to memory of the caller's are NULL
 *   once they are used, and all but callback.user are once the plan has started.
 * - A part that the kind does not have is 0; the comment above each part names the kinds that have
 *   it. has_pixels is 1 where the image part is complete.
 * - n_worker_passes of the passes are a worker's, at least one; then comes at most one of the
 *   device. Each takes the result of the one before it. The result of a worker's last pass is a row
 *   as workers write it.
 * - The outputs that PSTK_MIX_PAIRS adds have a head alone, made by mixing.c.
 */
struct pstk__output {
    uint32_t kind;         /* enum pstk_output_kind */
    uint32_t dtype;        /* enum pstk_dtype of the tensor; 0 until it is checked */
    uint32_t field;        /* index in the schema */
    uint32_t next;         /* the next output that reads the same field, or n_outputs */
    uint8_t is_first;      /* 1: no output before it reads the same field */
    uint8_t has_pixels;    /* 1: IMAGE, or CALLBACK that gets decoded pixels */
    uint8_t is_combined;   /* 1: a mosaic combines rows from parts of four that workers write */
    uint8_t is_lone_copy;  /* 1: alone copies a field that lies outside of the record's head */
    uint8_t is_lone_image; /* 1: alone reads a field of images, to rows of u8 pixels, which may be
                              the stored ones */
    struct pstk__pass *passes; /* owned */
    uint32_t n_passes, n_worker_passes;
    uint64_t budget;     /* ragged: bytes that a batch may have; else bytes that workers write */
    uint32_t n_dims;     /* dimensions of the batch tensor, with rows */
    int64_t shape[10];   /* shape[0] = batch_size; ragged: the budget */
    int64_t strides[10]; /* elements */
    char name[PSTK_MAX_NAME];

    struct pstk__image_part image;
    struct pstk__callback_part callback;
    struct pstk__follow_part follow;
    struct pstk__ragged_part ragged;

    struct pstk_output settings; /* a copy; its name is `name` */
};

/* image: the layout of decoded rows, the same for all outputs of the field. DECODE is the second
 * pass. */
static inline const struct pstk__row_layout *pstk__output_decoded(const struct pstk__output *o)
{
    return &o->passes[1].out;
}

/* The layout of a row as workers write it, and as it is handed out. Combined ragged rows are
 * written with another layout: see pstk__output_written_size. */
static inline const struct pstk__row_layout *pstk__output_rows(const struct pstk__output *o)
{
    return &o->passes[o->n_worker_passes - 1].out;
}

/* image, mask: the layout of a finished row of pixels, before a mask's elements are cast. */
static inline const struct pstk__row_layout *pstk__output_finished(const struct pstk__output *o)
{
    const struct pstk__pass *last = &o->passes[o->n_worker_passes - 1];
    return last->what == PSTK__PASS_CAST ? &last->in : &last->out;
}

static inline const struct pstk__row_layout *pstk__output_final(const struct pstk__output *o)
{
    return &o->passes[o->n_passes - 1].out;
}

/* The pass of the device, or NULL. An output with such a pass is *deferred*. */
static inline const struct pstk__pass *pstk__output_device_pass(const struct pstk__output *o)
{
    return o->n_worker_passes < o->n_passes ? &o->passes[o->n_worker_passes] : NULL;
}

/* Return 1 for a deferred image whose rows the device mirrors. */
static inline int pstk__output_has_flips(const struct pstk__output *o)
{
    const struct pstk__pass *device = pstk__output_device_pass(o);
    return device && device->what == PSTK__PASS_FINISH;
}

/* image: arena bytes of the ops drawn for a sample. */
static inline uint64_t pstk__output_image_ops_size(const struct pstk__output *o)
{
    return ((o->image.max_ops + (uint64_t)o->has_pixels) * sizeof(struct pstk_op) + 63) &
           ~(uint64_t)63;
}

/* boxes: arena bytes of a sample's boxes. */
static inline uint64_t pstk__output_boxes_size(const struct pstk__output *o)
{
    return (o->follow.max_boxes * sizeof(struct pstk__moved_box) + 63) & ~(uint64_t)63;
}

static inline int pstk__output_is_ragged(const struct pstk__output *o)
{
    return o->ragged.item_size != 0;
}

/* Return the bytes of a row as workers write it. */
static inline uint64_t pstk__output_written_size(const struct pstk__output *o)
{
    return o->is_combined && pstk__output_is_ragged(o) ? o->ragged.written_size
                                                       : pstk__output_rows(o)->row_size;
}

#endif
