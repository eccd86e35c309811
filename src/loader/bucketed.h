/* SPDX-License-Identifier: Apache-2.0 */
/* bucketed: a loader's batches by a budget: settings checked, costs looked at, the first epoch
 * walked. */
#ifndef PSTK_LOADER_BUCKETED_H
#define PSTK_LOADER_BUCKETED_H

#include "loader/pipeline.h"

/* Check all that needs no data set. Without a budget, nothing. EINVAL, ENOTSUP name the setting. */
int pstk__bucketed_check(const struct pstk_settings *settings, struct pstk_error *err);
/* Make pipeline->epochs, which the caller closes, of an order of n positions; set the positions of
 * the partition, and the rows of the largest batch in settings.batch_size. */
int pstk__bucketed_open(struct pstk__pipeline *pipeline, uint64_t n, struct pstk_error *err);

#endif
