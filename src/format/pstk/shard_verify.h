/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard_verify: reads every byte of one shard file in large blocks, and checks it. Continues after
 * damage as far as the index locates records. One verifier per thread.
 */
#ifndef PSTK_SHARD_VERIFY_H
#define PSTK_SHARD_VERIFY_H

#include "base/codec.h"
#include "base/parallel_map.h"
#include "format/pstk/manifest.h"
#include "record/record.h"
#include "store/store.h"

/* The input that all threads share. Read-only. */
struct pstk__verify_input {
    const struct pstk__store *store;
    const char *path; /* path of the data set */
    const struct pstk__manifest *manifest;
    struct pstk__record_limits limits;
    struct pstk__dictionary **dictionaries; /* as in the manifest; NULL: damaged, so values
                                               compressed with it are not decompressed */
    const uint64_t *first;                  /* sample id of each shard's first record */
    int decode;                             /* 1: decode every image in full */
};

/* The totals of a shard's intact records. */
struct pstk__verify_found {
    uint64_t n_bad;
    struct pstk__identity identity;
    struct pstk_field_stats stats[PSTK_MAX_FIELDS];
};

struct pstk__shard_verifier;

/* Open a verifier, which borrows input for its life. Returns owned. */
int pstk__shard_verifier_open(struct pstk__shard_verifier **out,
                              const struct pstk__verify_input *input, struct pstk_error *err);
/* Check shard number `shard`, and hand damage and records to the sink. The sink can end the check
 * between any two steps; only the checksum, decompression or decoding of one value is not
 * interrupted. An error is ECANCELED, or a reason why it cannot check (no memory, no file
 * descriptor). */
int pstk__shard_verifier_run(struct pstk__shard_verifier *verifier, uint32_t shard,
                             const struct pstk__map_sink *sink, struct pstk__verify_found *found,
                             struct pstk_error *err);
/* NULL is fine. */
void pstk__shard_verifier_close(struct pstk__shard_verifier *verifier);

#endif
