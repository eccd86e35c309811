/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample: one record -> one row of every output tensor. L2. The plan is compiled once at open and
 * read-only; a worker has its own state and allocates nothing.
 */
#ifndef PSTK_SAMPLE_H
#define PSTK_SAMPLE_H

#include "format/format.h"
#include "image/image.h"
#include "augment/op.h"
#include "augment/resize.h"

#define PSTK__MAX_OUTPUTS 64

/* One compiled output. */
struct pstk__output {
    struct pstk_output settings; /* deep copy: name and ops are the two below; field NULL */
    char name[PSTK_MAX_NAME];
    struct pstk_op *ops; /* owned; NULL when there are none */
    uint32_t field;      /* of the schema */
    uint32_t is_first;   /* 1: no output before it reads the same field */
    uint32_t next;       /* the next output that reads the same field, or n_outputs */
    uint32_t n_dims;     /* of the batch tensor, rows included */
    int64_t shape[10];   /* shape[0] = batch_size; ragged: the budget */
    int64_t strides[10]; /* elements */
    /* What workers write is what was asked for, or, deferred, what a device makes that from: images
     * of u8 NHWC, neither mirrored nor normalised, tensors in the dtype of their field. */
    uint32_t deferred;   /* 0 on the host */
    uint32_t row_dtype;  /* as workers write it */
    uint32_t row_layout; /* likewise */
    uint64_t row_size;   /* bytes of one row as workers write it; ragged: the most */
    uint64_t final_size; /* bytes of one row as it is delivered; ragged: row_size */
    uint64_t budget;     /* ragged: bytes a batch may have; else batch_size * row_size */
    uint64_t item_size;  /* ragged: bytes that offsets count as one, and rows are made of; else 0 */
    uint32_t height, width;   /* image */
    void *table;              /* image, float dtypes: 3 x 256, owned */
    struct pstk__affine line; /* of the table, where it is one */
};

/* A deferred image: a device mirrors and normalises its rows. */
static inline int pstk__output_has_flips(const struct pstk__output *o)
{
    return o->deferred && o->settings.kind == PSTK_OUTPUT_IMAGE;
}

static inline int pstk__output_is_ragged(const struct pstk__output *o)
{
    return o->item_size != 0;
}

struct pstk__plan {
    const struct pstk__source *source; /* borrowed */
    uint32_t n_outputs;
    uint32_t batch_size;
    struct pstk__output outputs[PSTK__MAX_OUTPUTS];
    const struct pstk__pixel_kernels *kernels;
    uint64_t max_pixels;
    uint64_t scratch_size; /* arena bytes a worker needs */
    uint32_t head_only;    /* 1: no output needs more than the record head */
    uint32_t on_device;    /* 1: batches go to a device, which finishes what is deferred */
    uint64_t seed;
};

/* Compile settings against a source: every wrong thing is EINVAL / ENOTSUP naming the setting (and
 * listing the fields there are). Returns owned. */
int pstk__plan_open(struct pstk__plan **out, const struct pstk_settings *s,
                    const struct pstk__source *source, struct pstk_error *err);
void pstk__plan_close(struct pstk__plan *p);

/* One worker's state. */
struct pstk__sampler;
int pstk__sampler_open(struct pstk__sampler **out, const struct pstk__plan *plan,
                       struct pstk_error *err);
void pstk__sampler_close(struct pstk__sampler *s);

/* Where one row of one output goes. */
struct pstk__row {
    void *data;             /* row_size bytes (ragged: room for that many) */
    uint64_t size;          /* out, ragged: bytes written */
    uint8_t *flip;          /* out, deferred image: 1 = still to be mirrored; else unused */
    uint32_t is_palette;    /* out, image: 1 = from a PNG file that has a palette */
    struct pstk_crop *crop; /* out, or NULL */
};

struct pstk__sample_key {
    uint64_t sample_id; /* of the record given: a substitute is augmented as itself */
    uint64_t epoch;
    uint64_t position;
};

/*
 * Write row r of each output: rows[plan->n_outputs]. On failure the rows' content is undefined, and
 * err names sample, shard, record, range and reason. Each field is checked, decompressed and
 * decoded once, whatever the number of outputs that read it.
 *
 * The crop of an image row is the box that its resize read; without a resize, the window that it
 * shows, which may begin left of or above the image. A centre crop behind a resize does not narrow
 * it. Rows of other kinds have the crop 0.
 */
int pstk__sample_write(struct pstk__sampler *s, const struct pstk__record *record, uint32_t shard,
                       const struct pstk__sample_key *key, struct pstk__row *rows,
                       struct pstk_error *err);

#endif
