/* SPDX-License-Identifier: Apache-2.0 */
/*
 * column_verify: checks every byte of a shard's column files, and compares their values with the
 * records. While the records are read, it keeps 8 bytes for each page: a checksum of the values
 * that follow from the records. Then it reads the files. It compares a page if all its records were
 * intact. One thread.
 */
#ifndef PSTK_COLUMN_VERIFY_H
#define PSTK_COLUMN_VERIFY_H

#include "format/pstk/manifest.h"
#include "store/store.h"

struct pstk__column_verifier;

/* Receives the findings. A non-zero result ends the check with ECANCELED. */
struct pstk__column_sink {
    int (*bad)(void *user, const struct pstk_error *bad); /* borrows */
    int (*tick)(void *user); /* called after each read of at most 256 KiB */
    void *user;
};

/* Open a verifier, which borrows all arguments for its life. *out is owned; NULL if the data set
 * has no columns. */
int pstk__column_verifier_open(struct pstk__column_verifier **out, const struct pstk__store *store,
                               const char *path, const struct pstk__manifest *manifest,
                               struct pstk_error *err);
/* Begin shard number `shard`. */
void pstk__column_verifier_begin(struct pstk__column_verifier *verifier, uint32_t shard);
/* Add the values that follow from an intact record. Records come in order. ENOMEM. */
int pstk__column_verifier_add(struct pstk__column_verifier *verifier, uint64_t record,
                              const struct pstk__field_view *views, struct pstk_error *err);
/* Check the files of the shard, whose tag is `tag`; NULL: unknown. An error is ECANCELED, or a
 * reason why it cannot check. */
int pstk__column_verifier_run(struct pstk__column_verifier *verifier, const uint32_t *tag,
                              const struct pstk__column_sink *sink, struct pstk_error *err);
/* NULL is fine. */
void pstk__column_verifier_close(struct pstk__column_verifier *verifier);

#endif
