/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan: the outputs of the settings, checked against a data set and compiled to passes. Made once
 * at open, then only read, by any thread.
 */
#ifndef PSTK_PLAN_H
#define PSTK_PLAN_H

#include "augment/canvas.h"
#include "format/format.h"
#include "mix/mix.h"
#include "mix/mosaic.h"
#include "sample/plan_output.h"

#define PSTK__MAX_OUTPUTS 64

/* The mix of a batch's rows, once all are written. */
struct pstk__mixing {
    struct pstk_mix settings; /* its names are NULL once they are found; n_classes 0: no mix */
    uint32_t image, label;    /* indices of outputs; UINT32_MAX: none */
};

/* The mosaic of a batch: pictures of four rows, once all are written. */
struct pstk__mosaic {
    struct pstk_mosaic settings; /* its name is NULL once it is found; size 0: no mosaic */
    uint32_t image;              /* index of the output; UINT32_MAX: not found yet */
};

struct pstk__plan {
    const struct pstk__source *source; /* borrowed */
    uint32_t n_outputs;  /* outputs, including the two that PSTK_MIX_PAIRS adds at the end: partner,
                            lambda */
    uint32_t batch_size; /* rows of the largest batch, for which slots have room */
    const char *rows_setting; /* setting that batch_size comes from, for messages */
    int has_budget;           /* 1: a budget gives batches their rows */
    struct pstk__output outputs[PSTK__MAX_OUTPUTS];
    uint32_t n_fields;                   /* fields that outputs read */
    uint8_t by_field[PSTK__MAX_OUTPUTS]; /* n_fields: the first output of each field, in the order
                                            of work: boxes, images, then all others */
    uint32_t n_leading; /* fields of boxes and images, which come first in by_field */
    struct pstk__mixing mixing;
    struct pstk__mosaic mosaic;
    struct pstk__process_pool *pools[PSTK__MAX_OUTPUTS]; /* n_pools, owned; one for the outputs that
                                                            share processes */
    uint32_t n_pools;
    uint32_t n_batched; /* outputs whose processes take whole batches */
    struct pstk__canvas_kernels kernels;
    uint64_t max_pixels;
    uint64_t scratch_size; /* arena bytes of a worker, for every size */
    uint32_t head_only;    /* 1: every output needs only the record head */
    uint32_t n_joined;     /* data sets of a mixture; 0 without a mixture */
    uint32_t on_device;    /* 1: batches go to a device */
    uint64_t seed;
    uint32_t size_index; /* index of the list of ops, in this plan, of outputs with several: see
                            multi_size.h */
    uint32_t n_sizes;    /* lists of these outputs; 0: no output has several */
    uint32_t every;      /* consecutive batches of the same size */
    struct pstk__plan *others[PSTK_MAX_SIZES - 1]; /* in the plan of size 0: the plans from size 1
                                                      on, owned */
};

static inline int pstk__plan_mixes(const struct pstk__plan *p)
{
    return p->mixing.settings.n_classes > 0;
}

/* Return 1 if the tensor of the labels holds dense targets. */
static inline int pstk__plan_has_targets(const struct pstk__plan *p)
{
    return pstk__plan_mixes(p) && p->mixing.settings.targets == PSTK_MIX_DENSE;
}

static inline int pstk__plan_has_mosaic(const struct pstk__plan *p)
{
    return p->mosaic.settings.size > 0;
}

/* Compile settings against a source. EINVAL, ENOTSUP name the wrong setting, and list the fields
 * that exist. Returns owned. */
int pstk__plan_open(struct pstk__plan **out, const struct pstk_settings *s,
                    const struct pstk__source *source, struct pstk_error *err);
void pstk__plan_close(struct pstk__plan *p);

/* Start the processes that make rows, once for outputs that share them: as many as they ask for, or
 * n_auto. Their settings are those of open, and not used after this. */
int pstk__plan_start(struct pstk__plan *p, uint32_t n_auto, struct pstk_error *err);
/* Return the largest number of bytes that processes share with this one. */
uint64_t pstk__plan_shared_memory(const struct pstk__plan *p);
/* End all waits for processes; their outputs fail from now on. */
void pstk__plan_stop(struct pstk__plan *p);
/* Kill the processes, and free them. No thread calls them any more. */
void pstk__plan_end(struct pstk__plan *p);
/* Count the processes: *n that outputs ask for, and *n_auto times an automatic number. */
void pstk__plan_processes(const struct pstk__plan *p, uint32_t *n, uint32_t *n_auto);

/* ---- between the files of this folder -------------------------------------------------------- */

/* Compile the plan of one size alone. Returns owned. */
int pstk__plan_open_size(struct pstk__plan **out, const struct pstk_settings *s,
                         const struct pstk__source *source, uint32_t size_index,
                         struct pstk_error *err);
/* Return the arena bytes of a worker for this size. */
uint64_t pstk__plan_scratch(const struct pstk__plan *p);

/* Return 1 if outputs of the kind follow an image output. These are checked, and compiled, after
 * all others. */
int pstk__output_follows(uint32_t kind);
/* Check that the kind of output exists. EINVAL. */
int pstk__output_check_kind(uint32_t kind, uint32_t i, struct pstk_error *err);
/* Check output i, whose settings are copied and whose field is found. Sets its shape and sizes. */
int pstk__output_check(struct pstk__plan *p, uint32_t i, struct pstk_error *err);
/* Check the member `batched` of a callback whose other settings are checked, and set its input. */
int pstk__check_batched(struct pstk__plan *p, uint32_t i, struct pstk_error *err);
/* Find the boxes that the ops of an image depend on, if any do. EINVAL: there are none. */
int pstk__output_find_boxes(struct pstk__plan *p, uint32_t i, struct pstk_error *err);
/* Make the passes of output i, once all outputs are checked. Closing the plan frees them, also
 * after a failure. */
int pstk__output_compile(struct pstk__plan *p, uint32_t i, struct pstk_error *err);

/* List the names of the first n outputs that are of a kind, as many as fit. */
#define PSTK__NAMES_SIZE 256
void pstk__output_names(const struct pstk__plan *p, uint32_t n, uint32_t kind,
                        char text[PSTK__NAMES_SIZE]);

/* Copy and check the mix of the settings, if they have one; count the outputs that it adds. */
int pstk__mixing_open(struct pstk__plan *p, const struct pstk_settings *s, struct pstk_error *err);
/* Note output i, which has its name, if the mix names it. */
void pstk__mixing_find(struct pstk__plan *p, uint32_t i);
/* Check the field of output i, which has the labels, a scalar. Sets its shape. */
int pstk__mixing_label(struct pstk__plan *p, uint32_t i, struct pstk_error *err);
/* Check the outputs that the mix needs, once n outputs of the settings are checked and compiled.
 * Makes the outputs that it adds. */
int pstk__mixing_compile(struct pstk__plan *p, uint32_t n, struct pstk_error *err);

/* Copy and check the mosaic of the settings, if they have one. */
int pstk__mosaic_open(struct pstk__plan *p, const struct pstk_settings *s, struct pstk_error *err);
/* Note output i, which has its name, if the mosaic names it. */
void pstk__mosaic_find(struct pstk__plan *p, uint32_t i);
/* Find the outputs that are combined, once n outputs are checked and not yet compiled. Makes room
 * for their rows. EINVAL: the image does not exist, or an output that cannot be combined follows
 * it. */
int pstk__mosaic_combine(struct pstk__plan *p, uint32_t n, struct pstk_error *err);
/* Take the list of p->size_index as the ops of output i, which has its settings. EINVAL: members
 * contradict each other, or those of an output before it. */
int pstk__multi_size_choose(struct pstk__plan *p, uint32_t i, struct pstk_error *err);
/* Add the size to the error of a plan that could not be opened. */
void pstk__multi_size_locate(const struct pstk__plan *p, struct pstk_error *err);
/* Open the plans of the other sizes. p: the plan of size 0. EINVAL: their images have other
 * channels, or another type. */
int pstk__multi_size_open(struct pstk__plan *p, const struct pstk_settings *s,
                          struct pstk_error *err);
/* Share the processes of size 0 with the other sizes. */
void pstk__multi_size_share(struct pstk__plan *p);
void pstk__multi_size_close(struct pstk__plan *p);

#endif
