/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset: the slow path: single records, read synchronously. L2. Behind pstk_dataset_get, and what
 * a worker uses to fetch a substitute. Any number of threads; short lock around its few open files.
 */
#ifndef PSTK_DATASET_H
#define PSTK_DATASET_H

#include "format/format.h"

struct pstk_dataset; /* owns its source */

const struct pstk__source *pstk__dataset_source(const struct pstk_dataset *d);

/* Read record `id` whole into buffer (capacity bytes) and parse it; *out borrows from buffer.
 * EFBIG when it does not fit. Never allocates. */
int pstk__dataset_read(struct pstk_dataset *d, uint64_t id, void *buffer, uint64_t capacity,
                       struct pstk__record *out, uint32_t *shard, struct pstk_error *err);

#endif
