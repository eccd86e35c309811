/* SPDX-License-Identifier: Apache-2.0 */
/*
 * series: figures of a run over time, in bounded memory. A full series merges its points in pairs;
 * afterwards each point covers twice as many measurements.
 */
#ifndef PSTK_CLI_SERIES_H
#define PSTK_CLI_SERIES_H

#include <stdint.h>

struct json_t;

/* Maximum points of a series. A phone has about as many pixels in a row (360), so more would not be
 * visible. Even. */
#define SERIES_POINTS 240
#define SERIES_LABEL 64 /* bytes */

enum series_figure {
    SERIES_SAMPLES, /* samples per second */
    SERIES_BYTES,   /* bytes per second read from storage */
    SERIES_WAITING, /* share of its time that the consumer waited, 0 to 1 */
    SERIES_CORES,   /* cores that the process kept busy */
    SERIES_MEMORY,  /* resident bytes */
    SERIES_GPU,     /* share of time that the GPU was busy, 0 to 1 */
    SERIES_FIGURES
};

/* The figures of a stretch of time. */
struct series_point {
    double begin, seconds;
    double figure[SERIES_FIGURES]; /* NAN: unknown */
};

struct series {
    char label[SERIES_LABEL]; /* UTF-8; "": the only series */
    uint32_t n;               /* points */
    uint32_t n_merged;        /* measurements of a full point; 0: 1 */
    uint32_t n_last;          /* measurements of the last point */
    struct series_point points[SERIES_POINTS];
};

/* Add a measurement, later than all before. A measurement of no time is left out. */
void series_add(struct series *series, const struct series_point *measured);
/* Extend the last point by a small rest that follows it. */
void series_extend(struct series *series, const struct series_point *rest);
/* Merge the points in pairs. */
void series_halve(struct series *series);
/* Return an object: the label, and an array for each figure that any point has. Times count from
 * `origin`. */
struct json_t *series_json(const struct series *series, double origin);

#endif
