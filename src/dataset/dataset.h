/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset: single records, read synchronously: the slow path. It implements pstk_dataset_get, and
 * workers use it to read a replacement. Any number of threads may call it. A lock guards its few
 * open files, and no thread holds it during I/O.
 */
#ifndef PSTK_DATASET_H
#define PSTK_DATASET_H

#include "format/format.h"

struct pstk_dataset; /* it owns its source */

/* Make a data set of an opened source. Takes the source, also on failure. Returns owned. */
int pstk__dataset_of(struct pstk_dataset **out, struct pstk__source *source,
                     struct pstk_error *err);
const struct pstk__source *pstk__dataset_source(const struct pstk_dataset *dataset);

/* A buffer that the caller owns. */
struct pstk__room {
    void *data;
    uint64_t size; /* bytes */
};

/* Read the values of `fields`, a set, of sample `id` into `room` and parse them; *out borrows from
 * `room`. *shard: the sample's shard. EFBIG if the values do not fit. Never allocates. Any number
 * of workers may call it at once. */
int pstk__dataset_read(struct pstk_dataset *dataset, uint64_t id, uint64_t fields,
                       const struct pstk__room *room, struct pstk__record *out, uint32_t *shard,
                       struct pstk_error *err);

/* As pstk__dataset_read, and return the extents that were read. Their bytes lie in `room`, one
 * after another. extents: room for PSTK_MAX_FIELDS. */
int pstk__dataset_read_extents(struct pstk_dataset *dataset, uint64_t id, uint64_t fields,
                               const struct pstk__room *room, struct pstk__extent *extents,
                               uint32_t *n_extents, struct pstk__record *out, uint32_t *shard,
                               struct pstk_error *err);
/* Return 1 if the file system has a hole that overlaps the extent, in bytes *begin to *end - 1 of
 * the file. Zeros are read there, whether a program wrote them or not. Returns 0 if there is none
 * or the file system does not report it. */
int pstk__dataset_find_hole(struct pstk_dataset *dataset, const struct pstk__extent *extent,
                            uint64_t *begin, uint64_t *end);

#endif
