/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream: the samples of each batch. It follows from the settings and from the existing samples:
 * those of a subset, or of the data sets of a mixture, in their order, divided into batches and
 * among ranks. Read-only once open.
 */
#ifndef PSTK_STREAM_H
#define PSTK_STREAM_H

#include "batch/epochs.h"
#include "order/mixture.h"
#include "order/partition.h"
#include "order/pick.h"
#include "order/schedule.h"
#include "dataset/dataset.h"

#include <penstock/penstock.h>

struct pstk__stream {
    struct pstk__partition partition;
    struct pstk__pick_plan picks;
    struct pstk__schedule *schedule; /* owned; NULL: batches of one size */
    struct pstk__epochs *epochs;     /* owned; NULL: no budget */
    uint64_t epochs_memory;          /* bytes, including the costs */
    uint32_t max_rows; /* rows of the largest batch, for which outputs and slots have room */
    struct pstk_members *members;  /* members of the subset, owned; or NULL */
    struct pstk__mixture *mixture; /* owned; NULL: one data set */
    /* Members of a mixture's data sets, owned; NULL for a data set without a subset. */
    struct pstk_members *members_of[PSTK_MAX_DATA_SETS];
};

/* Open the stream of a data set or, with a mixture, of its joined data sets. All pointers: borrows;
 * the data set for the stream's life. The caller closes the stream also after an error. EINVAL
 * names the setting. */
int pstk__stream_open(struct pstk__stream *stream, const struct pstk_settings *s,
                      struct pstk_dataset *dataset, struct pstk_error *err);
void pstk__stream_close(struct pstk__stream *stream);

/* Fail because batches of global_batch rows leave none of the stream's samples under
 * PSTK_LAST_DROP. path: of the data set, for the message. Returns the error code. */
int pstk__stream_fail_no_batch(const struct pstk__stream *stream, const struct pstk_settings *s,
                               const char *path, uint64_t global_batch, struct pstk_error *err);

#endif
