/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed: files read and checked by several threads ahead of one writer, handed over in order.
 *
 *   n_released <= n_next <= n_taken <= n_released + WINDOW files, and at most BUDGET bytes in
 *   memory, but for the file that the writer waits for: that one may always be read, so that a
 *   file larger than the budget stops nobody.
 */
#ifndef PSTK_CLI_FEED_H
#define PSTK_CLI_FEED_H

#include <stdint.h>

#include "tree.h"

struct feed; /* opaque */

/* A file as the feed hands it over. */
struct feed_item {
    uint64_t number;  /* in tree->files */
    void *data;       /* leased until release; NULL when bad */
    uint64_t size;    /* bytes */
    char reason[400]; /* why it cannot be packed, or "" */
};

/* Read files first .. first + n - 1 of `tree` (borrowed until close) below `root` with n_threads.
 * Returns 0, or an exit status after having said what is wrong. */
int feed_open(struct feed **out, const char *root, const struct tree *tree, uint64_t first,
              uint64_t n, uint32_t n_threads);
/* Wait for the next file: 1, or 0 after the last. */
int feed_next(struct feed *f, struct feed_item *item);
/* Give back what next handed over. */
void feed_release(struct feed *f, struct feed_item *item);
/* Stop and join the threads, free; NULL is fine. */
void feed_close(struct feed **f);

#endif
