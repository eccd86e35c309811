/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline: the pipeline options that bench, show and order share, and the settings of the loader
 * that they describe.
 */
#ifndef PSTK_CLI_PIPELINE_H
#define PSTK_CLI_PIPELINE_H

#include <penstock/format.h>
#include <penstock/penstock.h>

#include "options.h"

enum {
    OPT_SIZE = 512,
    OPT_CROP,
    OPT_FLIP,
    OPT_DTYPE,
    OPT_LAYOUT,
    OPT_SEED,
    OPT_EPOCH,
    OPT_BATCH_SIZE,
    OPT_START_BATCH,
    OPT_ORDER,
    OPT_RANK,
    OPT_WORLD,
    OPT_LAST,
    OPT_N_THREADS,
    OPT_SLOTS,
    OPT_READER,
    OPT_IO,
    OPT_DEVICE,
    OPT_VARIANT,
    OPT_ON_BAD
};

/* Rows for getopt tables: what happens to an image ... */
#define PIPELINE_IMAGE_OPTIONS                                                                     \
    {"size", required_argument, NULL, OPT_SIZE}, {"crop", required_argument, NULL, OPT_CROP},      \
        {"flip", required_argument, NULL, OPT_FLIP},                                               \
        {"dtype", required_argument, NULL, OPT_DTYPE},                                             \
    {                                                                                              \
        "layout", required_argument, NULL, OPT_LAYOUT                                              \
    }
/* ... in which order samples come ... */
#define PIPELINE_ORDER_OPTIONS                                                                     \
    {"batch-size", required_argument, NULL, OPT_BATCH_SIZE},                                       \
        {"start-batch", required_argument, NULL, OPT_START_BATCH},                                 \
        {"order", required_argument, NULL, OPT_ORDER},                                             \
        {"rank", required_argument, NULL, OPT_RANK},                                               \
        {"world", required_argument, NULL, OPT_WORLD},                                             \
    {                                                                                              \
        "last", required_argument, NULL, OPT_LAST                                                  \
    }
#define PIPELINE_SEED_OPTIONS                                                                      \
    {"seed", required_argument, NULL, OPT_SEED},                                                   \
    {                                                                                              \
        "epoch", required_argument, NULL, OPT_EPOCH                                                \
    }
/* ... and how the machine is used. */
#define PIPELINE_RUN_OPTIONS                                                                       \
    {"threads", required_argument, NULL, OPT_N_THREADS},                                           \
        {"slots", required_argument, NULL, OPT_SLOTS},                                             \
        {"reader", required_argument, NULL, OPT_READER}, {"io", required_argument, NULL, OPT_IO},  \
        {"device", required_argument, NULL, OPT_DEVICE},                                           \
        {"variant", required_argument, NULL, OPT_VARIANT},                                         \
    {                                                                                              \
        "on-bad", required_argument, NULL, OPT_ON_BAD                                              \
    }

enum pipeline_crop { CROP_RANDOM = 0, CROP_CENTER = 1, CROP_NONE = 2 };

struct pipeline {
    /* as asked for; 0 = the default where it says so */
    const char *path;
    uint32_t size;   /* pixels, of both sides */
    uint32_t crop;   /* enum pipeline_crop */
    double flip;     /* probability; negative: 0.5 for random crops, else 0 */
    uint32_t dtype;  /* enum pstk_dtype */
    uint32_t layout; /* enum pstk_layout */
    uint64_t seed, epoch;
    uint32_t batch_size; /* 0: 64, less for a small data set */
    uint64_t start_batch;
    uint32_t order, rank, world, last;
    uint32_t n_threads, n_slots; /* 0: the library chooses */
    uint32_t reader, io, device, variant, bad_sample;
    int32_t device_index; /* of the kind `device` */

    /* found in the data set */
    struct pstk_dataset_info info;
    struct pstk_field fields[PSTK_MAX_FIELDS];
    int image_field; /* -1: none */

    /* built from both; the pointers go into this struct, so it must not move */
    uint64_t position; /* of start_batch */
    struct pstk_op ops[4];
    struct pstk_output outputs[PSTK_MAX_FIELDS];
    uint32_t n_outputs;
    struct pstk_settings settings;
};

extern const struct choice pipeline_crops[], pipeline_dtypes[], pipeline_layouts[],
    pipeline_orders[], pipeline_lasts[], pipeline_readers[], pipeline_ios[], pipeline_variants[];

void pipeline_init(struct pipeline *p);
/* Take one of the options above. 0, or -1 after having said what is wrong. */
int pipeline_set(struct pipeline *p, int code, const char *value);
/* Look into the data set; choose the batch size and the position. Returns 0 or an exit status. */
int pipeline_look(struct pipeline *p, const char *path);
/* After look: the order that these options describe. */
struct pstk_order_settings pipeline_order(const struct pipeline *p);
/* After look: build outputs (only the image, with `image_only`) and settings. Returns 0 or an exit
 * status. */
int pipeline_build(struct pipeline *p, int image_only);
/* Open the loader of p->settings, which Ctrl-C then wakes. Returns 0 or an exit status. */
int pipeline_open(const struct pipeline *p, struct pstk_loader **out);
void pipeline_close(struct pstk_loader **loader);

#endif
