/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed: files read, checked and converted by several threads ahead of one writer, handed over in
 * order. At most 8 files a thread are ahead, and at most 256 MiB of files in memory, except:
 *   - the file that the writer waits for, which may always be read, so that a file larger than the
 *     budget stops nobody;
 *   - the images that threads are converting, whose new size is only known afterwards.
 * Files are open only while they are read, and no more at once than this process may still open.
 * All functions are called by one thread, the writer's.
 */
#ifndef PSTK_CLI_FEED_H
#define PSTK_CLI_FEED_H

#include <stdint.h>

#include <penstock/format.h>

#include "tree.h"

struct feed; /* opaque */

/* What became of a file. Only what is known of the file itself makes it bad; what may go better on
 * another machine, or in an hour, is a failure. */
enum feed_state {
    FEED_IMAGE = 0,
    FEED_BAD,    /* it was looked at, and is no image that can be packed */
    FEED_FAILED, /* this machine could not read it, or it changed meanwhile */
};

/* A file as the feed hands it over. */
struct feed_item {
    uint64_t number;        /* in tree->files */
    enum feed_state state;  /* not FEED_IMAGE: only reason, format and code below are set */
    void *data;             /* leased until release */
    uint64_t size;          /* bytes of data */
    uint64_t file_size;     /* bytes of the file */
    int is_palette;         /* the file was a PNG with a palette */
    int is_converted;       /* data is the library's, of an image of ... */
    uint32_t width, height; /* ... so many pixels */
    char reason[400];       /* why it cannot be packed, or "" */
    const char *format;     /* of a bad one: the image format that pack does not take, or NULL */
    int code;               /* of a failed one: PSTK_EACCES, ... */
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
int feed_next(struct feed *feed, struct feed_item *item);
/* Give back what next handed over. */
void feed_release(struct feed *feed, struct feed_item *item);
/* Stop and join the threads, free; NULL is fine. */
void feed_close(struct feed **feed);

#endif
