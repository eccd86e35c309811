/* SPDX-License-Identifier: Apache-2.0 */
#include "report/series.h"

#include <math.h>

#include "ui/json.h"

static const char *const names[SERIES_FIGURES] = {[SERIES_SAMPLES] = "samples_per_second",
                                                  [SERIES_BYTES] = "read_bytes_per_second",
                                                  [SERIES_WAITING] = "waiting",
                                                  [SERIES_CORES] = "cpu_cores",
                                                  [SERIES_MEMORY] = "rss_bytes",
                                                  [SERIES_GPU] = "gpu_utilisation"};

/* Return the mean of two figures over the time of both. An unknown figure does not count. */
static double mean(double a, double a_seconds, double b, double b_seconds)
{
    if (isnan(a))
        return b;
    if (isnan(b))
        return a;
    return (a * a_seconds + b * b_seconds) / (a_seconds + b_seconds);
}

static void merge(struct series_point *into, const struct series_point *from)
{
    for (int i = 0; i < SERIES_FIGURES; i++)
        into->figure[i] = mean(into->figure[i], into->seconds, from->figure[i], from->seconds);
    into->seconds += from->seconds;
}

void series_extend(struct series *series, const struct series_point *rest)
{
    if (series->n > 0 && rest->seconds > 0)
        merge(&series->points[series->n - 1], rest);
}

void series_halve(struct series *series)
{
    for (uint32_t i = 0; i < series->n; i += 2) {
        struct series_point point = series->points[i];
        if (i + 1 < series->n)
            merge(&point, &series->points[i + 1]);
        series->points[i / 2] = point;
    }
    if (series->n % 2 == 0)
        series->n_last += series->n_merged;
    series->n = (series->n + 1) / 2;
    series->n_merged *= 2;
}

void series_add(struct series *series, const struct series_point *measured)
{
    if (!(measured->seconds > 0) || !isfinite(measured->seconds) || !isfinite(measured->begin))
        return;
    if (series->n_merged == 0)
        series->n_merged = 1;
    if (series->n > 0 && series->n_last < series->n_merged) {
        merge(&series->points[series->n - 1], measured);
        series->n_last++;
        return;
    }
    /* The number of points is even and all are full, so all points are full after halving, too. */
    if (series->n == SERIES_POINTS)
        series_halve(series);
    series->points[series->n++] = *measured;
    series->n_last = 1;
}

static int has_figure(const struct series *series, int figure)
{
    for (uint32_t i = 0; i < series->n; i++)
        if (!isnan(series->points[i].figure[figure]))
            return 1;
    return 0;
}

struct json_t *series_json(const struct series *series, double origin)
{
    struct json_t *object = json_make_object(), *times = json_make_array(),
                  *lengths = json_make_array();
    json_put_text(object, "label", series->label);
    for (uint32_t i = 0; i < series->n; i++) {
        json_append_real(times, series->points[i].begin - origin);
        json_append_real(lengths, series->points[i].seconds);
    }
    json_put(object, "begin", times);
    json_put(object, "seconds", lengths);
    for (int figure = 0; figure < SERIES_FIGURES; figure++) {
        if (!has_figure(series, figure))
            continue;
        struct json_t *values = json_make_array();
        for (uint32_t i = 0; i < series->n; i++)
            json_append_real(values, series->points[i].figure[figure]);
        json_put(object, names[figure], values);
    }
    return object;
}
