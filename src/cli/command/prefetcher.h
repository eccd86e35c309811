/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefetcher: several threads read, check and convert files ahead of one writer, which gets them in
 * order. Per thread at most 8 files are ahead, and at most 256 MiB of files are in memory, except:
 *
 *   - the file that the writer waits for, which may always be read, so that a file larger than the
 *     budget does not block;
 *   - the images that threads are converting, because their new size is known only afterwards.
 *
 * A file is open only while it is read, and never more files than this process may still open. One
 * thread, the writer's, calls all functions.
 */
#ifndef PSTK_CLI_PREFETCHER_H
#define PSTK_CLI_PREFETCHER_H

#include <stdint.h>

#include <penstock/format.h>

#include "command/tree.h"

struct prefetcher; /* opaque */

/* The result for a file. Only a property of the file itself makes it bad. A problem that may be
 * absent on another machine, or an hour later, is a failure. */
enum prefetch_state {
    PREFETCH_IMAGE = 0,
    PREFETCH_BAD,    /* the file is not an image that can be packed */
    PREFETCH_FAILED, /* this machine could not read the file, or it changed meanwhile */
};

/* A file as prefetcher_next returns it. */
struct prefetched {
    uint64_t number;           /* number of the file in the tree */
    enum prefetch_state state; /* unless PREFETCH_IMAGE, only reason, format and code are set */
    void *data;                /* leased until release */
    uint64_t size;             /* bytes of data */
    uint64_t file_size;        /* bytes of the file */
    int is_palette;            /* the file was a PNG with a palette */
    int is_damaged;            /* data is a damaged image, which the configuration accepts */
    int is_converted;          /* 1: data belongs to the library, and is a converted image of */
    uint32_t width, height;    /* this size; pixels */
    char reason[400];          /* reason why it cannot be packed, or "" */
    const char *format; /* for a bad file: the image format, which pack does not take, or NULL */
    int code;           /* for a failed file: PSTK_EACCES, ... */
};

/* The files to prefetch, and their conversion. */
struct prefetcher_config {
    const char *root;
    const struct tree *tree;
    uint64_t first, n; /* files first .. first + n - 1 of the tree */
    uint32_t n_threads;
    const struct pstk_convert *convert; /* conversion of the images; NULL: only check them */
    uint32_t damaged;                   /* enum pstk_damaged; UNCHECKED: damaged JPEGs are bad */
    /* a data set whose samples are read in place of files: the image in this field; or NULL */
    struct pstk_dataset *dataset;
    uint32_t field;
    const char *absent; /* error text for a file that does not exist; NULL: it ends the pack */
};

/* Begin to read. Everything that `config` points to is borrowed until close. Returns 0, or an exit
 * status after a message. */
int prefetcher_open(struct prefetcher **out, const struct prefetcher_config *config);
/* Wait for the next file. Returns 1, or 0 after the last one. */
int prefetcher_next(struct prefetcher *prefetcher, struct prefetched *item);
/* Release an item that prefetcher_next returned. */
void prefetcher_release(struct prefetcher *prefetcher, struct prefetched *item);
/* Stop and join the threads, then free. NULL is fine. */
void prefetcher_close(struct prefetcher **prefetcher);

#endif
