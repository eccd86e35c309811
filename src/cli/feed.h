/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed: files read, checked and converted by several threads ahead of one writer, handed over in
 * order.
 *
 *   n_released <= n_next <= n_taken <= n_released + WINDOW files, and at most BUDGET bytes in
 *   memory, but for the file that the writer waits for: that one may always be read, so that a
 *   file larger than the budget stops nobody; and but for the images that each thread has at work,
 *   whose size after conversion is only then known.
 */
#ifndef PSTK_CLI_FEED_H
#define PSTK_CLI_FEED_H

#include <stdint.h>

#include <penstock/format.h>

#include "tree.h"

struct feed; /* opaque */

/* A file as the feed hands it over. */
struct feed_item {
    uint64_t number;        /* in tree->files */
    void *data;             /* leased until release; NULL when bad */
    uint64_t size;          /* bytes of data */
    uint64_t file_size;     /* bytes of the file */
    int is_palette;         /* the file was a PNG with a palette */
    int is_converted;       /* data is the library's, of an image of ... */
    uint32_t width, height; /* ... so many pixels */
    char reason[400];       /* why it cannot be packed, or "" */
};

/* Which files to feed, and how. */
struct feed_config {
    const char *root;
    const struct tree *tree;
    uint64_t first, n; /* files first .. first + n - 1 of the tree */
    uint32_t n_threads;
    const struct pstk_convert *convert; /* what to make of the images; NULL: only check them */
};

/* Begin to read. All that `config` points to is borrowed until close. Returns 0, or an exit status
 * after having said what is wrong. */
int feed_open(struct feed **out, const struct feed_config *config);
/* Wait for the next file: 1, or 0 after the last. */
int feed_next(struct feed *f, struct feed_item *item);
/* Give back what next handed over. */
void feed_release(struct feed *f, struct feed_item *item);
/* Stop and join the threads, free; NULL is fine. */
void feed_close(struct feed **f);

#endif
