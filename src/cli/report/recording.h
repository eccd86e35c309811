/* SPDX-License-Identifier: Apache-2.0 */
/* recording: what a benchmark did over time, for the page of --report. */
#ifndef PSTK_CLI_RECORDING_H
#define PSTK_CLI_RECORDING_H

#include <penstock/penstock.h>

#include "report/series.h"
#include "report/waits.h"

struct report;

struct recording {
    const char *path;              /* of the page; NULL: nothing is recorded */
    struct series series;          /* the one of this process */
    struct waits waits;            /* calls of pstk_next that gave a batch */
    struct pstk_metrics metrics;   /* since open; filled in by recording_end */
    struct pstk_stats last;        /* at the end of the last point */
    double start, last_at, due_at; /* seconds of unit_now */
};

/* Begin at the loader's first pstk_next. */
void recording_begin(struct recording *recording, const struct pstk_loader *loader);
/* Add a point if one is due: at first each 50 ms, later twice as rarely with each halving of the
 * series. */
void recording_look(struct recording *recording, const struct pstk_loader *loader);
/* Add the last point and the metrics, before the loader is closed. */
void recording_end(struct recording *recording, struct pstk_loader *loader);
/* Write the page. Returns 0, or an exit status after a message. */
int recording_write(const struct recording *recording, const struct report *report);

#endif
