/* SPDX-License-Identifier: Apache-2.0 */
/* bucketed: batches by a budget. Checks the settings, copies the costs, and makes the first epoch's
 * batches. */
#ifndef PSTK_LOADER_BUCKETED_H
#define PSTK_LOADER_BUCKETED_H

#include "batch/epochs.h"
#include "format/format.h"

#include <penstock/penstock.h>

/* Check the settings that need no data set; without a budget, nothing. EINVAL, ENOTSUP name the
 * setting. */
int pstk__bucketed_check(const struct pstk_settings *settings, struct pstk_error *err);
/* The inputs of batches by a budget. All pointers: borrows; picks and partition for the life of the
 * epochs. */
struct pstk__bucketed_config {
    const struct pstk_settings *settings; /* settings with a budget */
    const struct pstk__source *source;
    const struct pstk__pick_plan *picks;
    const struct pstk__partition *partition; /* n: positions of the order */
};

/* Make the batches of the settings' budget; *out is owned, also after an error. */
int pstk__bucketed_open(struct pstk__epochs **out, const struct pstk__bucketed_config *c,
                        struct pstk_error *err);
/* Return the bytes of `epochs` and of the costs of n samples; at most UINT64_MAX. */
uint64_t pstk__bucketed_memory(const struct pstk__epochs *epochs, uint64_t n);
/* Check that the first epoch has a batch for every rank. */
int pstk__bucketed_check_first(struct pstk__epochs *epochs, const struct pstk_settings *settings,
                               struct pstk_error *err);

#endif
