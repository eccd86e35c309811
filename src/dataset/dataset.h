/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset: single records, read synchronously: the slow path. It implements pstk_dataset_get, and
 * workers use it to read a replacement. Any number of threads may call it. A lock guards its few
 * open files, and no thread holds it during I/O.
 */
#ifndef PSTK_DATASET_H
#define PSTK_DATASET_H

#include "format/format.h"

struct pstk_dataset; /* owns its source */

/* A data set of an opened source, which it takes, also on failure. Returns owned. */
int pstk__dataset_of(struct pstk_dataset **out, struct pstk__source *source,
                     struct pstk_error *err);
const struct pstk__source *pstk__dataset_source(const struct pstk_dataset *dataset);

/* Memory that the caller owns. */
struct pstk__room {
    void *data;
    uint64_t size; /* bytes */
};

/* Read the values of `fields`, a set, of sample `id` into `room` and parse them; *out borrows from
 * `room`. *shard is the sample's shard. EFBIG when the values do not fit. Never allocates. Called
 * by workers, any number at once. */
int pstk__dataset_read(struct pstk_dataset *dataset, uint64_t id, uint64_t fields,
                       const struct pstk__room *room, struct pstk__record *out, uint32_t *shard,
                       struct pstk_error *err);

/* The same, with the extents that were read and where their bytes are, which lie in `room` one
 * after another. extents: room for PSTK_MAX_FIELDS. */
int pstk__dataset_read_extents(struct pstk_dataset *dataset, uint64_t id, uint64_t fields,
                               const struct pstk__room *room, struct pstk__extent *extents,
                               uint32_t *n_extents, struct pstk__record *out, uint32_t *shard,
                               struct pstk_error *err);
/* 1: the file system has a hole at bytes *begin to *end - 1 of the file, which overlaps the extent:
 * zeros are read there, written or not. 0: there is none, or nobody can know. */
int pstk__dataset_find_hole(struct pstk_dataset *dataset, const struct pstk__extent *extent,
                            uint64_t *begin, uint64_t *end);

#endif
