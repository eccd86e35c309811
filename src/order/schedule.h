/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule: sizes of batches that follow from the number of the step. Pure, O(segments).
 *
 * A step is a global batch, counted from the start of epoch 0. The steps of the epochs before an
 * epoch determine the position in it at which a size begins; all epochs in which the size does not
 * change have equally many. So the size is a function of (epoch, position), and a seek needs no
 * history. A batch at any position has the size of the batch that holds this position when the
 * epoch is read from its start.
 */
#ifndef PSTK_SCHEDULE_H
#define PSTK_SCHEDULE_H

#include "order/partition.h"

#define PSTK__MAX_BATCH_FROM ((uint64_t)1 << 62) /* exclusive limit of a segment's `from` */

/* One size of batches, from step `from` on until the next segment's. */
struct pstk__segment {
    uint64_t from; /* number of a step; 0 for the first segment; rising */
    uint64_t rows; /* rows of a global batch; a whole epoch has at least one such batch */
};

struct pstk__schedule {
    uint32_t n_segments; /* at least 1 */
    struct pstk__segment segments[];
};

/* Check the caller's steps and make a schedule of them. The first segment has partition's
 * global_batch; each row of a step counts `scale` rows of a global batch. *out is owned, to be
 * freed by free, or NULL if n_steps is 0. EINVAL, ENOMEM. */
int pstk__schedule_open(struct pstk__schedule **out, const struct pstk__partition *partition,
                        const struct pstk_batch_step *steps, uint32_t n_steps, uint64_t scale,
                        struct pstk_error *err);
/* Return the partition of the batch at (epoch, position): `partition` with that batch's
 * global_batch. Sets *index, unless NULL, to the number of the batch in its epoch. */
struct pstk__partition pstk__schedule_at(const struct pstk__partition *partition, uint64_t epoch,
                                         uint64_t position, uint64_t *index);
/* Return the batches of an epoch from `position` on. */
uint64_t pstk__schedule_n_batches(const struct pstk__partition *partition, uint64_t epoch,
                                  uint64_t position);
/* Return the partition of the last batch of an epoch, which has one, and set *position to its
 * position. */
struct pstk__partition pstk__schedule_last(const struct pstk__partition *partition, uint64_t epoch,
                                           uint64_t *position);

#endif
