/* SPDX-License-Identifier: Apache-2.0 */
/* forecast: predicts a benchmark's rate with more workers, faster storage, other kernels, or
 * without its consumer. */
#ifndef PSTK_CLI_FORECAST_H
#define PSTK_CLI_FORECAST_H

#include <stdint.h>

#include <penstock/diagnostics.h>

struct json_t;

#define FORECAST_CASES 7 /* three of them for kernels */
#define FORECAST_TEXT 128
/* A prediction below this many times the rate is no faster. */
#define FORECAST_NO_CHANGE (PSTK_FORECAST_NO_CHANGE / 100.0)

/* One change, and the prediction for it. */
struct forecast_case {
    const char *what; /* static: workers, storage, consumer, kernels */
    char change[16];  /* as in JSON: +1, x2, none; for kernels their name */
    double samples_per_second;
    uint32_t limit; /* enum pstk_bottleneck */
};

struct forecast {
    double measured; /* samples per second */
    uint32_t n;      /* cases; 0: the bottleneck is unknown */
    struct forecast_case cases[FORECAST_CASES];
};

/* Predict the usual cases for a process that may use n_cores; 0: unknown. */
struct forecast forecast_of(const struct pstk_stats *stats, uint32_t n_cores);
/* Add a case for each kind of kernels, by enum pstk_kernels, that differs from the setting
 * `kernels`: from the times that pstk_measure_ceilings found. */
void forecast_kernels(struct forecast *forecast, const struct pstk_stats *stats, uint32_t n_cores,
                      uint32_t kernels, const double kernels_ns[5]);
/* Write a line for people; return `text`. */
const char *forecast_text(const struct forecast *forecast, uint32_t i, char text[FORECAST_TEXT]);
/* Put the key "forecast": null when the bottleneck is unknown. */
void forecast_put(const struct forecast *forecast, struct json_t *object);

#endif
