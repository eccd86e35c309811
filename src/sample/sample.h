/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample: turns one record into one row of every output tensor. A worker has its own state and
 * allocates nothing.
 */
#ifndef PSTK_SAMPLE_H
#define PSTK_SAMPLE_H

#include "sample/plan.h"
#include "sample/row.h"

/* One worker's state. */
struct pstk__sampler;
int pstk__sampler_open(struct pstk__sampler **out, const struct pstk__plan *plan,
                       struct pstk_error *err);
void pstk__sampler_close(struct pstk__sampler *sampler);

struct pstk__sample_key {
    uint64_t sample_id; /* id of the given record: a replacement is augmented with its own id */
    uint64_t epoch;
    uint64_t position;
    uint32_t size_index; /* size index of the batch */
    uint64_t occurrence; /* number of the draw in the epoch, with replacement; else 0 */
    uint32_t data_set;   /* index in a mixture; else 0 */
};

/*
 * Write row r of each output: rows[plan->n_outputs]. On failure the rows' content is undefined, and
 * err names sample, shard, record, range and reason. Each field is checked, decompressed and
 * decoded once, whatever the number of outputs that read it.
 *
 * The crop of an image row is the box that its resize read; without a resize, the crop rectangle
 * that it shows, which may begin left of or above the image. A centre crop after a resize does not
 * narrow it. Rows of other kinds have the crop 0.
 */
int pstk__sample_write(struct pstk__sampler *sampler, const struct pstk__record *record,
                       uint32_t shard, const struct pstk__sample_key *key, struct pstk__row *rows,
                       struct pstk_error *err);

#endif
