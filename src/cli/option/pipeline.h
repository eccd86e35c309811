/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline: the pipeline options that bench, show and order share, and the loader's settings that
 * result from them.
 */
#ifndef PSTK_CLI_PIPELINE_H
#define PSTK_CLI_PIPELINE_H

#include <penstock/format.h>
#include <penstock/penstock.h>
#include <penstock/role.h>

#include "option/opening.h"
#include "option/mixture.h"
#include "names.h"
#include "option/options.h"
#include "option/ranks.h"
#include "option/subset.h"

enum {
    OPT_SIZE = 512,
    OPT_CROP,
    OPT_FLIP,
    OPT_DTYPE,
    OPT_LAYOUT,
    OPT_SEED,
    OPT_EPOCH,
    OPT_BATCH_SIZE,
    OPT_GLOBAL_BATCH_SIZE,
    OPT_UNEVEN,
    OPT_START_BATCH,
    OPT_ORDER,
    OPT_WAYS,
    OPT_BLOCK,
    OPT_WINDOW,
    OPT_SUBSET,
    OPT_WEIGHTS,
    OPT_BALANCED,
    OPT_DRAWS,
    OPT_MIXTURE,
    OPT_RANK,
    OPT_WORLD,
    OPT_LAST,
    OPT_N_THREADS,
    OPT_SLOTS,
    OPT_READER,
    OPT_IO,
    OPT_DEVICE,
    OPT_KERNELS,
    OPT_ON_BAD
};

extern const struct choice pipeline_crops[], pipeline_dtypes[];

/* Rows for tables of options: changes to an image, */
#define PIPELINE_IMAGE_OPTIONS                                                                     \
    {.text = "images"},                                                                            \
        {.name = "size",                                                                           \
         .code = OPT_SIZE,                                                                         \
         .value = "N",                                                                             \
         .initial = "224",                                                                         \
         .text = "height and width in pixels"},                                                    \
        {.name = "crop",                                                                           \
         .code = OPT_CROP,                                                                         \
         .values = pipeline_crops,                                                                 \
         .initial = "random",                                                                      \
         .text = "how to crop images (random: a random resized crop; center: resize the shorter "  \
                 "side to N * 256 / 224, then crop the centre; none: resize the whole image)"},    \
        {.name = "flip",                                                                           \
         .code = OPT_FLIP,                                                                         \
         .value = "P",                                                                             \
         .initial = "0.5 with random crops, else 0",                                               \
         .text = "probability of a horizontal flip"},                                              \
        {.name = "dtype",                                                                          \
         .code = OPT_DTYPE,                                                                        \
         .values = pipeline_dtypes,                                                                \
         .initial = "u8",                                                                          \
         .text = "dtype of the values; all except u8 are normalised as for ImageNet"},             \
    {                                                                                              \
        .name = "layout", .code = OPT_LAYOUT, .values = names_layout, .initial = "nhwc",           \
        .text = "order of the dimensions"                                                          \
    }
/* seed and epoch, */
#define PIPELINE_SEED_OPTIONS                                                                      \
    {.name = "seed",                                                                               \
     .code = OPT_SEED,                                                                             \
     .value = "S",                                                                                 \
     .initial = "0",                                                                               \
     .text = "seed of the order and of all random choices"},                                       \
    {                                                                                              \
        .name = "epoch", .code = OPT_EPOCH, .value = "E", .initial = "0",                          \
        .text = "epoch to begin with, counted from 0"                                              \
    }
/* order of the samples, */
#define PIPELINE_ORDER_OPTIONS                                                                     \
    {.name = "batch-size",                                                                         \
     .code = OPT_BATCH_SIZE,                                                                       \
     .value = "B",                                                                                 \
     .initial = "64, less for a small data set",                                                   \
     .text = "rows of each rank's batch"},                                                         \
        {.name = "global-batch-size",                                                              \
         .code = OPT_GLOBAL_BATCH_SIZE,                                                            \
         .value = "G",                                                                             \
         .text = "rows of the batches of all ranks together, in place of --batch-size"},           \
        {.name = "uneven",                                                                         \
         .code = OPT_UNEVEN,                                                                       \
         .text = "allow a G that W does not divide: some ranks then have one row more"},           \
        {.name = "start-batch",                                                                    \
         .code = OPT_START_BATCH,                                                                  \
         .value = "K",                                                                             \
         .initial = "0",                                                                           \
         .text = "begin with batch K of the epoch, counted from 0"},                               \
        {.name = "order",                                                                          \
         .code = OPT_ORDER,                                                                        \
         .values = names_order,                                                                    \
         .initial = "full",                                                                        \
         .text = "order of the samples (full: all of them shuffled; sequential: by sample id; "    \
                 "windowed: blocks of neighbours shuffled, and mixed inside windows of blocks)"},  \
        {.name = "ways",                                                                           \
         .code = OPT_WAYS,                                                                         \
         .value = "C",                                                                             \
         .initial = "48, 12, 4 or 1, by the number of samples",                                    \
         .text = "with --order windowed: pieces of the data set to interleave"},                   \
        {.name = "block",                                                                          \
         .code = OPT_BLOCK,                                                                        \
         .value = "N",                                                                             \
         .initial = "64",                                                                          \
         .text = "with --order windowed: samples in a block"},                                     \
        {.name = "window",                                                                         \
         .code = OPT_WINDOW,                                                                       \
         .value = "N",                                                                             \
         .initial = "4",                                                                           \
         .text = "with --order windowed: blocks in a window"},                                     \
        {.name = "subset",                                                                         \
         .code = OPT_SUBSET,                                                                       \
         .value = "STEP",                                                                          \
         .initial = "all samples",                                                                 \
         .text =                                                                                   \
             "select samples by range:A..B, fraction:0..0.8:seed=1, fold:0/5:seed=1 (:rest: the "  \
             "other folds), ids:FILE, where:COLUMN=1,2,3, where:COLUMN!=1, where:COLUMN=A..B; "    \
             "may be given again: each step selects from what the step before selected"},          \
        {.name = "rank",                                                                           \
         .code = OPT_RANK,                                                                         \
         .value = "R",                                                                             \
         .initial = "0",                                                                           \
         .text =                                                                                   \
             "number of this rank; auto: take R and W from torchrun, mpirun, srun or Kubernetes"}, \
        {.name = "world",                                                                          \
         .code = OPT_WORLD,                                                                        \
         .value = "W",                                                                             \
         .initial = "1",                                                                           \
         .text = "number of ranks"},                                                               \
    {                                                                                              \
        .name = "last", .code = OPT_LAST, .values = names_last_batch, .initial = "drop",           \
        .text = "what to do with an incomplete last batch"                                         \
    }
/* drawing by weight, for commands that run an epoch, */
#define PIPELINE_DRAW_OPTIONS                                                                      \
    {.name = "weights",                                                                            \
     .code = OPT_WEIGHTS,                                                                          \
     .value = "COLUMN",                                                                            \
     .text = "draw samples with replacement, by the weights in this side column"},                 \
        {.name = "balanced",                                                                       \
         .code = OPT_BALANCED,                                                                     \
         .value = "COLUMN",                                                                        \
         .text = "draw samples with replacement, so that each class in this side column comes "    \
                 "equally often"},                                                                 \
    {                                                                                              \
        .name = "samples-per-epoch", .code = OPT_DRAWS, .value = "N",                              \
        .initial = "as many as there are samples",                                                 \
        .text = "with --weights or --balanced: number of draws in an epoch"                        \
    }
/* and use of the machine. */
#define PIPELINE_RUN_OPTIONS                                                                       \
    {.text = "resources"},                                                                         \
        {.name = "threads",                                                                        \
         .code = OPT_N_THREADS,                                                                    \
         .value = "N",                                                                             \
         .initial = "the usable cores, less those that other threads need",                        \
         .text = "number of workers; auto leaves a core to readers that make all reads or have a " \
                 "node of 32 cores or more, and one to the copies to a GPU, as long as 4 workers " \
                 "a node remain"},                                                                 \
        {.name = "slots",                                                                          \
         .code = OPT_SLOTS,                                                                        \
         .value = "N",                                                                             \
         .initial = "4",                                                                           \
         .text = "number of batches in memory"},                                                   \
        {.name = "reader",                                                                         \
         .code = OPT_READER,                                                                       \
         .values = names_reader_kind,                                                              \
         .initial = "auto",                                                                        \
         .text = "how to read files"},                                                             \
        {.name = "io",                                                                             \
         .code = OPT_IO,                                                                           \
         .values = names_io,                                                                       \
         .initial = "auto",                                                                        \
         .text = "read past the page cache (direct) or through it (buffered)"},                    \
        {.name = "device",                                                                         \
         .code = OPT_DEVICE,                                                                       \
         .value = "cuda:N",                                                                        \
         .values = names_device_kind,                                                              \
         .initial = "host",                                                                        \
         .text = "where to deliver batches; cuda:N is GPU N"},                                     \
        {.name = "kernels",                                                                        \
         .code = OPT_KERNELS,                                                                      \
         .values = names_kernels,                                                                  \
         .initial = "auto",                                                                        \
         .text = "instruction set of the kernels; all give the same bytes"},                       \
    {                                                                                              \
        .name = "on-bad", .code = OPT_ON_BAD, .values = names_bad_sample, .initial = "error",      \
        .text = "what to do with a bad sample (error: stop; replace: use another sample)"          \
    }

enum pipeline_crop { CROP_RANDOM = 0, CROP_CENTER = 1, CROP_NONE = 2 };

struct pipeline {
    /* from the options; 0 is the default if the comment says so */
    const char *path;
    uint32_t size;   /* pixels of each side */
    uint32_t crop;   /* enum pipeline_crop */
    double flip;     /* probability; negative: 0.5 for random crops, else 0 */
    uint32_t dtype;  /* enum pstk_dtype */
    uint32_t layout; /* enum pstk_layout */
    uint64_t seed, epoch;
    uint32_t batch_size;        /* maximum of this rank; 0: 64, less for a small data set */
    uint32_t global_batch_size; /* 0: batch_size * world */
    int uneven;
    uint64_t start_batch;
    struct subset subset;
    struct mixture mixture; /* in place of path */
    struct fields read_as;  /* from --field */
    struct ranks ranks;
    uint32_t order, last;
    uint32_t rank, world;         /* from `ranks`, by pipeline_look */
    uint32_t ways, block, window; /* for --order windowed; 0: chosen from the number of samples */
    uint32_t n_threads, n_slots;  /* 0: the library chooses */
    uint32_t reader, io, device, kernels, bad_sample;
    int32_t device_index; /* index among the devices of the kind `device` */

    /* from the data set */
    struct pstk_dataset_info info;
    uint64_t n_samples;           /* samples in an epoch */
    struct pstk_members *members; /* members of the subset; NULL: all */
    struct pstk_field fields[PSTK_MAX_FIELDS];
    int image_field; /* -1: none */

    /* built from the options and the data set; these point into this struct, so it must not move */
    struct pstk_subset step;
    uint64_t position; /* the loader's position at start_batch */
    struct pstk_op ops[4];
    struct pstk_output outputs[PSTK_MAX_FIELDS];
    uint32_t n_outputs;
    struct opening opening; /* settings.foreign */
    struct pstk_settings settings;
};

void pipeline_init(struct pipeline *pipeline);
/* Free the memory of the options and of pipeline_look. */
void pipeline_free(struct pipeline *pipeline);
/* Read one of the options above. Returns 0, or -1 after a message. */
int pipeline_set(struct pipeline *pipeline, int code, const char *value);
/* Read the fields of the data set, or with a NULL path of the mixture, then choose the batch size,
 * the position, and ways, block and window of a windowed order. Returns 0 or an exit status. */
int pipeline_look(struct pipeline *pipeline, const char *path);
/* Return the number of the field that has a role, an enum pstk_role, which belongs to the field
 * `of` or NULL; negative: none is known to have it. Call after pipeline_look. */
int pipeline_find(const struct pipeline *pipeline, uint32_t role, const char *of);
/* Return the rows of a batch of all ranks together, at most 2^48. Call after pipeline_look. */
uint64_t pipeline_global_batch(const struct pipeline *pipeline);
/* Return the order that the options describe. Call after pipeline_look. */
struct pstk_order_settings pipeline_order(const struct pipeline *pipeline);
/* Print a message if the data set leaves images out. Call after pipeline_look. */
void pipeline_say_left_out(const struct pipeline *pipeline);
/* Print that the samples are too few for one batch. Returns STATUS_USAGE. */
int pipeline_say_too_few(const struct pipeline *pipeline);
/* Write the ids of the batch at a position, as pstk_order_batch does, for the subset. */
int64_t pipeline_batch(const struct pipeline *pipeline, const struct pstk_order_settings *s,
                       uint64_t position, uint64_t *ids);
/* Build the outputs (with `image_only`, the image alone) and the settings. Call after
 * pipeline_look. Returns 0 or an exit status. */
int pipeline_build(struct pipeline *pipeline, int image_only);
/* Open the loader with pipeline->settings; Ctrl-C then wakes it. Returns 0 or an exit status. */
int pipeline_open(const struct pipeline *pipeline, struct pstk_loader **out);
void pipeline_close(struct pstk_loader **loader);

#endif
