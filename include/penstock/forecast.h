/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/forecast.h - what a loader would do with more workers, faster storage, other kernels, or
 * a consumer that takes every batch at once: predictions from what its stages did so far.
 *
 * Each stage has a rate at which it would be busy all the time: the rate of the loader, over the
 * part of its time in which the stage is busy (the utilization law). The lowest of these rates
 * limits. A change of the machine changes some of them; the prediction is the rate so far, times
 * how much the lowest of them changes. The cores have such a rate, too: n_cores over the CPU time
 * of a sample.
 *
 * The model leaves out that threads share a core's units, caches and memory, and that the clock
 * falls when more cores are busy.
 */
#ifndef PENSTOCK_FORECAST_H
#define PENSTOCK_FORECAST_H

#include <penstock/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pstk_stats;

/* What changes. 0 in a member: as it is. */
struct pstk_forecast_settings {
    /* sizeof(struct pstk_forecast_settings), set by the caller */
    uint32_t size;
    /* workers */
    uint32_t n_threads;
    /* storage so many times as fast, in bytes and in latency */
    double storage_factor;
    /* time of a worker for a sample, as a multiple of that so far; with other kernels a ratio of
     * two kernels_ns of pstk_measure_ceilings */
    double worker_factor;
    /* cores that the process may use, perhaps a fraction by a CPU quota; 0: not known, so that the
     * cores never limit */
    double n_cores;
    /* 1: the consumer takes every batch at once */
    uint32_t no_consumer;
    uint32_t reserved;
};

struct pstk_forecast {
    /* sizeof(struct pstk_forecast), set by the caller */
    uint32_t size;
    /* enum pstk_bottleneck: what would limit then */
    uint32_t limit;
    /* rate since the first pstk_next: samples over the time of the consumer */
    double measured;
    /* the prediction; 0 with limit 0 (PSTK_BOTTLENECK_UNKNOWN): nothing shows what limits */
    double samples_per_second;
};

/* Predict the rate of a loader from its statistics. Pure: nothing is measured or changed. EINVAL: a
 * size, a factor or n_cores that is negative or not finite. Thread: any. */
PSTK_API int pstk_predict(const struct pstk_stats *stats,
                          const struct pstk_forecast_settings *settings,
                          struct pstk_forecast *forecast);

#ifdef __cplusplus
}
#endif
#endif
