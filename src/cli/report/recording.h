/* SPDX-License-Identifier: Apache-2.0 */
/* recording: the course of a benchmark over time, for the page of --report. */
#ifndef PSTK_CLI_RECORDING_H
#define PSTK_CLI_RECORDING_H

#include <penstock/penstock.h>

#include "report/series.h"
#include "report/waits.h"

struct report;

struct recording {
    const char *path;              /* path of the page; NULL: nothing is recorded */
    struct series series;          /* the series of this process */
    struct waits waits;            /* calls of pstk_next that gave a batch */
    struct pstk_metrics metrics;   /* since open; filled in by recording_end */
    struct pstk_stats last;        /* stats at the end of the last point */
    double start, last_at, due_at; /* seconds by unit_now */
};

/* Begin the recording at the loader's first pstk_next. */
void recording_begin(struct recording *recording, const struct pstk_loader *loader);
/* Add a point if one is due: at first every 50 ms. Halving the series doubles the interval. */
void recording_look(struct recording *recording, const struct pstk_loader *loader);
/* Add the last point and the metrics, before the loader is closed. */
void recording_end(struct recording *recording, struct pstk_loader *loader);
/* Write the page. Returns 0, or an exit status after a message. */
int recording_write(const struct recording *recording, const struct report *report);

#endif
