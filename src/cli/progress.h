/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress: how far a command is. On a terminal one line with a bar, rate and time left, redrawn
 * ten times a second at most; otherwise a quiet line every ten seconds. Standard error.
 */
#ifndef PSTK_CLI_PROGRESS_H
#define PSTK_CLI_PROGRESS_H

#include <stdint.h>

struct progress {
    const char *doing; /* "packing" */
    const char *what;  /* "images": what is counted */
    int terminal;
    int drawn;          /* a line is on the screen */
    double start, last; /* seconds */
};

void progress_begin(struct progress *progress, const char *doing, const char *what);
/* `part` in [0, 1] is done (negative: unknown); n_items of them so far. Cheap: call it often. */
void progress_update(struct progress *progress, double part, uint64_t n_items);
/* Take the line off the screen; to be called before anything else is printed. */
void progress_end(struct progress *progress);

#endif
