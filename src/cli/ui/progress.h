/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress: the progress of a command, on standard error. On a terminal it is one line with a bar,
 * a rate and the time left, redrawn at most ten times a second; otherwise it is one line every ten
 * seconds.
 */
#ifndef PSTK_CLI_PROGRESS_H
#define PSTK_CLI_PROGRESS_H

#include <stdint.h>

struct progress {
    const char *doing; /* "packing" */
    const char *what;  /* unit of the count, for example "images" */
    int terminal;
    int drawn;                /* 1: a line is on the screen */
    int counting;             /* 1: the figures of the first update are known */
    double last;              /* seconds: when a line was last due */
    double start, first_part; /* time of the first update, and its part; or of the first update
                                 whose part was known */
    uint64_t first_items;     /* count at start: another process may have begun, so rates count from
                                 here */
    double moved;             /* seconds: when last_items changed */
    uint64_t last_items;
};

void progress_begin(struct progress *progress, const char *doing, const char *what);
/* Show that `part` in [0, 1] of the work is done (negative: unknown), n_items so far. It is cheap,
 * so call it often. */
void progress_update(struct progress *progress, double part, uint64_t n_items);
/* Erase the line. Call before anything else is printed. */
void progress_end(struct progress *progress);

#endif
