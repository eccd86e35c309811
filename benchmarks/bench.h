/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench: the shared parts of the benchmarks: loops over a loader, medians of interleaved runs, a
 * table with the ceiling next to each figure. Header only.
 */
#ifndef PSTK_BENCH_H
#define PSTK_BENCH_H

#include <penstock/format.h>
#include <penstock/penstock.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define BENCH_RUNS_MAX 32

static inline double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline void bench_die(const char *what, const struct pstk_error *err)
{
    fprintf(stderr, "%s: %s\n", what, err && err->message[0] ? err->message : "failed");
    exit(1);
}

static int bench_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Runs of one figure. */
struct bench_runs {
    int n;
    double value[BENCH_RUNS_MAX];
};

static inline void bench_add(struct bench_runs *r, double value)
{
    if (r->n < BENCH_RUNS_MAX)
        r->value[r->n++] = value;
}

static inline double bench_median(const struct bench_runs *r)
{
    double v[BENCH_RUNS_MAX];
    if (r->n == 0)
        return 0;
    memcpy(v, r->value, (size_t)r->n * sizeof *v);
    qsort(v, (size_t)r->n, sizeof *v, bench_compare);
    return r->n % 2 ? v[r->n / 2] : (v[r->n / 2 - 1] + v[r->n / 2]) / 2;
}

static inline double bench_worst(const struct bench_runs *r, int highest)
{
    double w = r->n ? r->value[0] : 0;
    for (int i = 1; i < r->n; i++)
        if (highest ? r->value[i] > w : r->value[i] < w)
            w = r->value[i];
    return w;
}

/* One line: name, median (lowest .. highest), unit; with a ceiling, the ratio of the medians. */
static inline void bench_line(const char *name, const struct bench_runs *r, const char *unit,
                              const struct bench_runs *ceiling, double aim)
{
    printf("%-44s %12.4g (%.4g..%.4g) %s", name, bench_median(r), bench_worst(r, 0),
           bench_worst(r, 1), unit);
    if (ceiling)
        printf("   ratio %.3f", bench_median(r) / bench_median(ceiling));
    if (aim > 0)
        printf("   aim %.3g", aim);
    printf("\n");
    fflush(stdout);
}

/* Return samples per second of a loader with these settings over `seconds`, after a warm-up of a
 * tenth. bytes, if not NULL, gets the bytes per second that it read. */
static inline double bench_loader(const struct pstk_settings *s, double seconds, double *bytes,
                                  struct pstk_stats *stats)
{
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct pstk_error err;
    struct pstk_stats before = {.size = sizeof before}, after = {.size = sizeof after};
    pstk_error_init(&err, sizeof err);
    if (pstk_open(&loader, s, &err) < 0)
        bench_die("open", &err);
    double start = bench_now(), warm = start + seconds / 10, until = warm + seconds;
    int r, counting = 0;
    uint64_t n = 0;
    for (double now = start; now < until; now = bench_now()) {
        if (!counting && now >= warm) {
            counting = 1;
            start = now;
            n = 0;
            pstk_get_stats(loader, &before);
        }
        r = pstk_next(loader, &b, NULL, -1, &err);
        if (r < 0)
            bench_die("next", &err);
        if (r == 0)
            continue;
        n += b->n_valid;
        pstk_release(&b, NULL);
    }
    double passed = bench_now() - start;
    pstk_get_stats(loader, &after);
    if (bytes)
        *bytes = (double)(after.bytes_read - before.bytes_read) / passed;
    if (stats)
        *stats = after;
    pstk_close(&loader);
    return (double)n / passed;
}

static inline double bench_rss(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    long pages = 0, rss = 0;
    if (!f || fscanf(f, "%ld %ld", &pages, &rss) != 2)
        rss = 0;
    if (f)
        fclose(f);
    return (double)rss * (double)sysconf(_SC_PAGESIZE);
}

#endif
