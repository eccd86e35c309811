/* SPDX-License-Identifier: Apache-2.0 */
#include <penstock/diagnostics.h>

#include "observe/stats.h"

#include <math.h>
#include <string.h>

#define N_LIMITS (PSTK_BOTTLENECK_CORES + 1)

/* The rates, in samples per second, at which the loader reaches each limit (enum pstk_bottleneck).
 * INFINITY: never. */
struct rates {
    double of[N_LIMITS];
};

static double smallest(double a, double b)
{
    return a < b ? a : b;
}

static double largest(double a, double b)
{
    return a > b ? a : b;
}

static double part(uint64_t ns, const struct pstk_stage_stats *stage)
{
    const double all =
        (double)stage->busy_ns + (double)stage->starved_ns + (double)stage->blocked_ns;
    return all > 0 ? (double)ns / all : 0;
}

/* Return the rows that workers made in the times of the stages. */
static double rows_made(const struct pstk_stats *s)
{
    const uint64_t n = s->stage_workers.n_items;
    return n > s->n_rows_ahead ? (double)(n - s->n_rows_ahead) : 0;
}

/* Return the rows per second that workers make when they are always busy. Rows of batches that are
 * not delivered yet count, too. */
static double workers_rate(const struct pstk_stats *s)
{
    const struct pstk_stage_stats *w = &s->stage_workers;
    return w->busy_ns ? rows_made(s) * 1e9 * s->n_threads / (double)w->busy_ns : INFINITY;
}

static double full(double rate, double busy)
{
    return busy > 0 ? rate / busy : INFINITY;
}

/* Return the part of its time in which the consumer uses batches. On a device the consumer asks for
 * a batch long before it uses it: the stream's times show the use, or else the times in which the
 * uploader waits for slots. */
static double consumer_part(const struct pstk_stats *s)
{
    const double used = (double)s->stream_used_ns, starved = (double)pstk__stats_stream_waits(s);
    if (used + starved > 0)
        return used / (used + starved);
    if (s->n_device_slots)
        return part(s->stage_uploader.blocked_ns, &s->stage_uploader);
    return part(s->stage_consumer.busy_ns, &s->stage_consumer);
}

static uint32_t lowest(const struct rates *rates)
{
    uint32_t limit = PSTK_BOTTLENECK_STORAGE;
    for (uint32_t i = limit + 1; i < N_LIMITS; i++)
        if (rates->of[i] < rates->of[limit])
            limit = i;
    return limit;
}

/* Return the CPU time of a sample, in ns. When the consumer is left out, only the loader's threads
 * count. */
static double cpu_of_sample(const struct pstk_stats *s, const struct pstk_forecast_settings *change)
{
    const double threads = (double)s->stage_workers.busy_ns + (double)s->stage_reader.busy_ns +
                           (double)s->stage_uploader.busy_ns;
    double cpu = (double)s->cpu_ns;
    if (change->no_consumer && threads < cpu)
        cpu = threads;
    if (change->worker_factor > 0)
        cpu += (change->worker_factor - 1) * smallest((double)s->stage_workers.busy_ns, cpu);
    return cpu / largest(rows_made(s), (double)s->n_samples);
}

static double cores_rate(const struct pstk_stats *s, const struct pstk_forecast_settings *change)
{
    const double cpu = cpu_of_sample(s, change);
    return change->n_cores > 0 && cpu > 0 ? change->n_cores * 1e9 / cpu : INFINITY;
}

/* Return the rates of the loader with its present settings. */
static struct rates rates_now(const struct pstk_stats *s, double rate, double n_cores)
{
    const struct pstk_stage_stats *r = &s->stage_reader;
    const struct pstk_forecast_settings same = {.n_cores = n_cores};
    struct rates rates;
    for (uint32_t i = 0; i < N_LIMITS; i++)
        rates.of[i] = INFINITY;
    rates.of[PSTK_BOTTLENECK_DECODE] = workers_rate(s);
    rates.of[PSTK_BOTTLENECK_READER] = full(rate, part(r->busy_ns, r));
    /* The reader starts reads while it works, so its busy time counts as well. */
    rates.of[PSTK_BOTTLENECK_STORAGE] = full(rate, part(r->starved_ns + r->busy_ns, r));
    rates.of[PSTK_BOTTLENECK_COPY] =
        full(rate, part(s->stage_uploader.busy_ns, &s->stage_uploader));
    rates.of[PSTK_BOTTLENECK_CONSUMER] = full(rate, consumer_part(s));
    rates.of[PSTK_BOTTLENECK_CORES] = largest(rate, cores_rate(s, &same));
    /* The bottleneck that pstk_get_stats reports has the lowest rate of this model. */
    rates.of[s->bottleneck] = smallest(rates.of[s->bottleneck], rates.of[lowest(&rates)]);
    return rates;
}

static void change_rates(struct rates *rates, const struct pstk_stats *s,
                         const struct pstk_forecast_settings *change)
{
    if (change->n_threads > 0)
        rates->of[PSTK_BOTTLENECK_DECODE] *= (double)change->n_threads / s->n_threads;
    if (change->worker_factor > 0)
        rates->of[PSTK_BOTTLENECK_DECODE] /= change->worker_factor;
    if (change->storage_factor > 0)
        rates->of[PSTK_BOTTLENECK_STORAGE] *= change->storage_factor;
    if (change->no_consumer)
        rates->of[PSTK_BOTTLENECK_CONSUMER] = INFINITY;
    const struct pstk_forecast_settings same = {.n_cores = change->n_cores};
    if (change->n_cores > 0)
        rates->of[PSTK_BOTTLENECK_CORES] *= cores_rate(s, change) / cores_rate(s, &same);
}

static int is_factor(double x)
{
    return isfinite(x) && x >= 0;
}

int pstk_predict(const struct pstk_stats *stats, const struct pstk_forecast_settings *settings,
                 struct pstk_forecast *forecast)
{
    if (!stats || stats->size < sizeof *stats || !settings || settings->size < sizeof *settings ||
        !forecast || forecast->size < sizeof forecast->size || stats->bottleneck >= N_LIMITS ||
        !is_factor(settings->storage_factor) || !is_factor(settings->worker_factor) ||
        !is_factor(settings->n_cores))
        return PSTK_EINVAL;
    const uint32_t size = forecast->size;
    const double ns =
        (double)stats->stage_consumer.busy_ns + (double)stats->stage_consumer.starved_ns;
    struct pstk_forecast f = {.size = size,
                              .measured = ns > 0 ? (double)stats->n_samples * 1e9 / ns : 0};
    /* Busy workers that have made no row do not show their rate. */
    const int is_known = stats->bottleneck != PSTK_BOTTLENECK_UNKNOWN &&
                         (rows_made(stats) > 0 || stats->stage_workers.busy_ns == 0);
    if (is_known && f.measured > 0 && stats->n_threads > 0) {
        struct rates rates = rates_now(stats, f.measured, settings->n_cores);
        const double now = rates.of[lowest(&rates)];
        change_rates(&rates, stats, settings);
        f.limit = lowest(&rates);
        f.samples_per_second = f.measured * rates.of[f.limit] / now;
    }
    memset(forecast, 0, size);
    memcpy(forecast, &f, size < sizeof f ? size : sizeof f);
    return 0;
}
