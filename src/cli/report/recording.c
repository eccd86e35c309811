/* SPDX-License-Identifier: Apache-2.0 */
#include "report/recording.h"

#include <math.h>
#include <string.h>

#include "names.h"
#include "option/machine.h"
#include "option/options.h"
#include "report/report.h"
#include "report/report_page.h"
#include "ui/json.h"
#include "ui/unit.h"

#define LOOK_SECONDS 0.05

static struct pstk_stats stats_of(const struct pstk_loader *loader)
{
    struct pstk_stats stats = {.size = sizeof stats};
    (void)pstk_get_stats(loader, &stats); /* after a failure all counts are 0 */
    return stats;
}

void recording_begin(struct recording *recording, const struct pstk_loader *loader)
{
    recording->last = stats_of(loader);
    recording->start = recording->last_at = unit_now();
    recording->due_at = recording->start + LOOK_SECONDS;
}

/* Return the figures since the last point. */
static struct series_point measure(const struct recording *recording, double now,
                                   const struct pstk_stats *stats)
{
    const struct pstk_stats *last = &recording->last;
    struct series_point point = {.begin = recording->last_at, .seconds = now - recording->last_at};
    const double busy = (double)(stats->stage_consumer.busy_ns - last->stage_consumer.busy_ns);
    const double starved =
        (double)(stats->stage_consumer.starved_ns - last->stage_consumer.starved_ns);
    point.figure[SERIES_SAMPLES] = (double)(stats->n_samples - last->n_samples) / point.seconds;
    point.figure[SERIES_BYTES] = (double)(stats->bytes_read - last->bytes_read) / point.seconds;
    point.figure[SERIES_WAITING] = busy + starved > 0 ? starved / (busy + starved) : (double)NAN;
    point.figure[SERIES_CORES] = (double)(stats->cpu_ns - last->cpu_ns) / 1e9 / point.seconds;
    point.figure[SERIES_MEMORY] = point.figure[SERIES_GPU] = NAN;
    return point;
}

void recording_look(struct recording *recording, const struct pstk_loader *loader)
{
    const double now = unit_now();
    if (now < recording->due_at)
        return;
    const struct pstk_stats stats = stats_of(loader);
    const struct series_point point = measure(recording, now, &stats);
    series_add(&recording->series, &point);
    recording->last = stats;
    recording->last_at = now;
    /* The next point is due no earlier than a whole interval after this one, so that a long step
     * gives one point. */
    recording->due_at = now + LOOK_SECONDS;
}

void recording_end(struct recording *recording, struct pstk_loader *loader)
{
    const double now = unit_now();
    const struct pstk_stats stats = stats_of(loader);
    const struct series_point rest = measure(recording, now, &stats);
    /* A short rest has one step or none, and would look like a change of the rate. */
    if (rest.seconds < LOOK_SECONDS / 2 && recording->series.n > 0)
        series_extend(&recording->series, &rest);
    else
        series_add(&recording->series, &rest);
    recording->metrics.size = sizeof recording->metrics;
    if (pstk_get_metrics(loader, PSTK_WINDOW_OPEN, &recording->metrics) < 0)
        memset(&recording->metrics, 0, sizeof recording->metrics);
}

static void put_times(struct json_t *times, const char *key, const struct pstk_distribution *spread)
{
    if (spread->n == 0)
        return;
    struct json_t *object = json_make_object();
    json_put_count(object, "n", spread->n);
    json_put_count(object, "sum_ns", spread->sum);
    json_put_count(object, "p50_ns", spread->p50);
    json_put_count(object, "p95_ns", spread->p95);
    json_put_count(object, "p99_ns", spread->p99);
    json_put_count(object, "max_ns", spread->max);
    json_put(times, key, object);
}

static struct json_t *times_json(const struct pstk_metrics *metrics)
{
    struct json_t *times = json_make_object();
    put_times(times, "wait", &metrics->wait);
    put_times(times, "read", &metrics->read);
    put_times(times, "decode", &metrics->decode);
    put_times(times, "finish", &metrics->finish);
    put_times(times, "copy", &metrics->copy);
    put_times(times, "stream", &metrics->stream);
    return times;
}

static void put_image_settings(struct json_t *object, const struct pipeline *pipeline)
{
    json_put_count(object, "size", pipeline->size);
    json_put_text(object, "crop", option_choice_name(pipeline_crops, pipeline->crop));
    json_put_text(object, "dtype", option_choice_name(names_dtype, pipeline->dtype));
    json_put_text(object, "layout", option_choice_name(names_layout, pipeline->layout));
}

static struct json_t *settings_json(const struct report *report)
{
    const struct pipeline *pipeline = report->pipeline;
    struct json_t *object = json_make_object();
    json_put_count(object, "batch_size", pipeline->batch_size);
    json_put_count(object, "threads", report->stats.n_threads);
    json_put_count(object, "slots", report->stats.n_slots);
    json_put_text(object, "order", option_choice_name(names_order, pipeline->order));
    json_put_text(object, "last", option_choice_name(names_last_batch, pipeline->last));
    json_put_count(object, "seed", pipeline->seed);
    json_put_count(object, "rank", pipeline->rank);
    json_put_count(object, "world", pipeline->world);
    if (pipeline->image_field >= 0)
        put_image_settings(object, pipeline);
    json_put_text(object, "reader", option_choice_name(names_reader_kind, report->stats.reader));
    json_put_bool(object, "direct", report->stats.direct != 0);
    json_put_count(object, "queue_depth", report->stats.queue_depth);
    json_put_text(object, "kernels", option_choice_name(names_kernels, report->stats.kernels));
    json_put_text(object, "device", option_choice_name(names_device_kind, pipeline->device));
    json_put_text(object, "on_bad", option_choice_name(names_bad_sample, pipeline->bad_sample));
    json_put_real(object, "step_ms", report->step_ms);
    return object;
}

int recording_write(const struct recording *recording, const struct report *report)
{
    struct json_t *document = report_page_document("bench"), *series = json_make_array();
    struct json_t *machine = machine_json(report->pipeline->path);
    char node[MACHINE_NODE];
    json_put_text(document, "name", report->pipeline->path ? report->pipeline->path : "a mixture");
    json_put_text(document, "node", machine_node(node));
    json_put(document, "run", report_object(report));
    if (recording->series.n > 0)
        json_append(series, series_json(&recording->series, recording->start));
    json_put(document, "series", series);
    json_put(document, "times", times_json(&recording->metrics));
    json_put(document, "wait_buckets", waits_json(&recording->waits));
    if (machine && report->device.name[0])
        json_put_text(machine, "gpu", report->device.name);
    if (machine)
        json_put(document, "machine", machine);
    json_put(document, "settings", settings_json(report));
    return report_page_write(document, recording->path);
}
