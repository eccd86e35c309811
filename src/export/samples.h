/* SPDX-License-Identifier: Apache-2.0 */
/*
 * samples: reads the values of a data set's samples ahead, in order, by a parallel map whose jobs
 * are blocks of samples. Values are checked and decompressed; images that were stored as pixels
 * become PNG files; bfloat16 becomes float32. The caller's thread gets one sample after another.
 */
#ifndef PSTK_EXPORT_SAMPLES_H
#define PSTK_EXPORT_SAMPLES_H

#include "dataset/dataset.h"
#include "export/export.h"

#include <penstock/subset.h>

/* Counts of the values in a block, by their properties. */
struct pstk__samples_counts {
    uint64_t n_images, n_equivalent, n_encoded, n_remade;
};

struct pstk__samples {
    const struct pstk__export *export; /* borrowed; fields and numbers */
    struct pstk_dataset *dataset;      /* borrowed */
    struct pstk_members *members;      /* borrowed; NULL: all samples */
    uint32_t n_threads;
    /* Take a sample. Called on the caller's thread; a negative result ends the reading. */
    int (*take)(void *user, const struct pstk__export_sample *sample, struct pstk_error *err);
    void *user;
    struct pstk__samples_counts counts; /* counts over the samples that were taken */
};

/* Read all samples. Returns 0; the first error of a sample or of `take`; ECANCELED if the settings'
 * on_progress stopped it. */
int pstk__samples_read(struct pstk__samples *samples, struct pstk_error *err);

#endif
