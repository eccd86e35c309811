/* SPDX-License-Identifier: Apache-2.0 */
/* report: the results of a benchmark, as text for people and as JSON. */
#ifndef PSTK_CLI_REPORT_H
#define PSTK_CLI_REPORT_H

#include "option/pipeline.h"

struct json_t;

/* One run of bench. */
struct report {
    const struct pipeline *pipeline;
    uint64_t n_samples, n_batches; /* delivered */
    uint64_t bytes_out;            /* tensor bytes of valid rows */
    double seconds;                /* from the first pstk_next to the end of the last step */
    double step_ms;                /* milliseconds of a simulated step; 0: none */
    uint32_t digest;
    int with_digest;
    int with_ceilings;
    uint64_t rss_peak;  /* bytes */
    uint32_t n_usable;  /* cores that this process may use; 0: unknown */
    uint32_t n_workers; /* workers of a loader on the host without --threads; 0: unknown */
    struct pstk_device device;
    struct pstk_stats stats;
    struct pstk_ceilings ceilings;
};

/* Return 1 if the loader unpacked its files. */
int report_is_packed(const struct report *report);
/* Print the report to standard output; return an exit status. */
int report_text(const struct report *report);
int report_json(const struct report *report);
/* Write one sentence about the bottleneck: the share that shows it, and what to change. */
void report_advise(const struct report *report, char *text, size_t size);
/* Return the object that report_json prints, owned. */
struct json_t *report_object(const struct report *report);

#endif
