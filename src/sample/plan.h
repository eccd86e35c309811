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

/* What becomes of a batch once all its rows are written. */
struct pstk__mixing {
    struct pstk_mix settings; /* its names are NULL once they are found; n_classes 0: nothing */
    uint32_t image, label;    /* outputs; UINT32_MAX: none */
};

/* The same: pictures of four rows. */
struct pstk__mosaic {
    struct pstk_mosaic settings; /* its name is NULL once it is found; size 0: there are none */
    uint32_t image;              /* output; UINT32_MAX: not found yet */
};

struct pstk__plan {
    const struct pstk__source *source; /* borrowed */
    uint32_t n_outputs;  /* with the two that PSTK_MIX_PAIRS adds at the end: partner, lambda */
    uint32_t batch_size; /* rows that slots have room for */
    const char *rows_setting; /* that gave it, for messages */
    int has_budget;           /* 1: it gives batches their rows */
    struct pstk__output outputs[PSTK__MAX_OUTPUTS];
    uint32_t n_fields;                   /* that outputs read */
    uint8_t by_field[PSTK__MAX_OUTPUTS]; /* n_fields: the first output of each, in the order of
                                            work: boxes, images, then all others */
    uint32_t n_leading;                  /* of these: fields of boxes and images */
    struct pstk__mixing mixing;
    struct pstk__mosaic mosaic;
    struct pstk__process_pool *pools[PSTK__MAX_OUTPUTS]; /* n_pools, owned: of outputs that share
                                                            one */
    uint32_t n_pools;
    uint32_t n_batched; /* outputs whose processes get whole batches */
    struct pstk__canvas_kernels kernels;
    uint64_t max_pixels;
    uint64_t scratch_size; /* arena bytes a worker needs, for every size */
    uint32_t head_only;    /* 1: no output needs more than the record head */
    uint32_t n_joined;     /* data sets of a mixture; 0: one data set */
    uint32_t on_device;    /* 1: batches go to a device */
    uint64_t seed;
    uint32_t size_index; /* the list that outputs with several have here: see multi_size.h */
    uint32_t n_sizes;    /* lists of these outputs; 0: none has several */
    uint32_t every;      /* batches in a row that have the same size */
    struct pstk__plan *others[PSTK_MAX_SIZES - 1]; /* of size 0: those from 1 on, owned */
};

static inline int pstk__plan_mixes(const struct pstk__plan *p)
{
    return p->mixing.settings.n_classes > 0;
}

/* 1: the tensor of the labels has their targets. */
static inline int pstk__plan_has_targets(const struct pstk__plan *p)
{
    return pstk__plan_mixes(p) && p->mixing.settings.targets == PSTK_MIX_DENSE;
}

static inline int pstk__plan_has_mosaic(const struct pstk__plan *p)
{
    return p->mosaic.settings.size > 0;
}

/* Compile settings against a source: every wrong thing is EINVAL / ENOTSUP naming the setting (and
 * listing the fields there are). Returns owned. */
int pstk__plan_open(struct pstk__plan **out, const struct pstk_settings *s,
                    const struct pstk__source *source, struct pstk_error *err);
void pstk__plan_close(struct pstk__plan *p);

/* Start the processes that make rows, of outputs that share them once: as many as they ask for, or
 * n_auto. Their settings are those of open, and not used after this. */
int pstk__plan_start(struct pstk__plan *p, uint32_t n_auto, struct pstk_error *err);
/* Bytes that they share with this process, at most. */
uint64_t pstk__plan_shared_memory(const struct pstk__plan *p);
/* End the waits for them; their outputs fail from now on. */
void pstk__plan_stop(struct pstk__plan *p);
/* Kill them, free. Nobody asks them any more. */
void pstk__plan_end(struct pstk__plan *p);
/* The number of processes: *n that outputs ask for, and *n_auto times an automatic one. */
void pstk__plan_processes(const struct pstk__plan *p, uint32_t *n, uint32_t *n_auto);

/* ---- between plan.c, compile.c, processes.c, mixing.c, mosaic.c and multi_size.c
 * ------------------
 */

/* Compile the plan of one size alone. Returns owned. */
int pstk__plan_open_size(struct pstk__plan **out, const struct pstk_settings *s,
                         const struct pstk__source *source, uint32_t size_index,
                         struct pstk_error *err);
/* Arena bytes a worker needs for this size. */
uint64_t pstk__plan_scratch(const struct pstk__plan *p);

/* 1: outputs of the kind follow an image output. They are checked, and compiled, after all others.
 */
int pstk__output_follows(uint32_t kind);
/* EINVAL: the kind of output does not exist. */
int pstk__output_check_kind(uint32_t kind, uint32_t i, struct pstk_error *err);
/* Check output i, whose settings are copied and whose field is found; set its shape and sizes. */
int pstk__output_check(struct pstk__plan *p, uint32_t i, struct pstk_error *err);
/* Check batched of a callback whose other settings are checked, and set its input. */
int pstk__check_batched(struct pstk__plan *p, uint32_t i, struct pstk_error *err);
/* Find the boxes that the ops of an image look at, if they do. EINVAL: there are none. */
int pstk__output_find_boxes(struct pstk__plan *p, uint32_t i, struct pstk_error *err);
/* Make its passes, once all outputs are checked. Closing the plan frees them, also after a failure.
 */
int pstk__output_compile(struct pstk__plan *p, uint32_t i, struct pstk_error *err);

/* List the names of those of the first n outputs that are of a kind, as many as fit. */
#define PSTK__NAMES_SIZE 256
void pstk__output_names(const struct pstk__plan *p, uint32_t n, uint32_t kind,
                        char text[PSTK__NAMES_SIZE]);

/* Copy and check the mix of the settings, if they have one; count the outputs that it adds. */
int pstk__mixing_open(struct pstk__plan *p, const struct pstk_settings *s, struct pstk_error *err);
/* Output i has its name: note it if the mix names it. */
void pstk__mixing_find(struct pstk__plan *p, uint32_t i);
/* Output i has the labels, a scalar: check its field, set its shape. */
int pstk__mixing_label(struct pstk__plan *p, uint32_t i, struct pstk_error *err);
/* n outputs of the settings are checked and compiled: check what the mix needs of them, and make
 * those that it adds. */
int pstk__mixing_compile(struct pstk__plan *p, uint32_t n, struct pstk_error *err);

/* Copy and check the mosaic of the settings, if they have one. */
int pstk__mosaic_open(struct pstk__plan *p, const struct pstk_settings *s, struct pstk_error *err);
/* Output i has its name: note it if the mosaic names it. */
void pstk__mosaic_find(struct pstk__plan *p, uint32_t i);
/* n outputs are checked, and not compiled: find those that are combined, and make room for their
 * rows. EINVAL: the image is none, or an output follows it that cannot be combined. */
int pstk__mosaic_combine(struct pstk__plan *p, uint32_t n, struct pstk_error *err);
/* Output i has its settings: take its list of p->size_index as its ops. EINVAL: members contradict
 * each other, or those of an output before it. */
int pstk__multi_size_choose(struct pstk__plan *p, uint32_t i, struct pstk_error *err);
/* Add the size to the error of a plan that could not be opened. */
void pstk__multi_size_locate(const struct pstk__plan *p, struct pstk_error *err);
/* Open the others of size 0. EINVAL: their images have other channels, or end otherwise. */
int pstk__multi_size_open(struct pstk__plan *p, const struct pstk_settings *s,
                          struct pstk_error *err);
/* Processes make rows for all of them. */
void pstk__multi_size_share(struct pstk__plan *p);
void pstk__multi_size_close(struct pstk__plan *p);

#endif
