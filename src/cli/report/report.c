/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"

#include <stdio.h>
#include <string.h>

#include "names.h"
#include "option/files.h"
#include "option/reading.h"
#include "report/forecast.h"
#include "ui/json.h"
#include "ui/message.h"
#include "ui/text.h"
#include "ui/unit.h"

/* Fallbacks, described for people. */
#define UNPACKED "files are compressed, so threads read and unpack them"
static const struct choice steps[] = {
    {"io_uring is refused here, so threads read", PSTK_FALLBACK_NO_IO_URING},
    {"buffers are not registered (RLIMIT_MEMLOCK; see `penstock doctor`)",
     PSTK_FALLBACK_NO_FIXED_BUFFERS},
    {"files are not registered", PSTK_FALLBACK_NO_FIXED_FILES},
    {"the file system refuses O_DIRECT, so the page cache is used", PSTK_FALLBACK_NO_DIRECT},
    {"the kernel lacks single issuer (Linux 6.0) or deferred task work (6.1) for io_uring",
     PSTK_FALLBACK_NO_SINGLE_ISSUER},
    {"the file system does not show whether the page cache holds a record, so workers read none",
     PSTK_FALLBACK_NO_NOWAIT},
    {"threads could not be pinned to cores", PSTK_FALLBACK_NOT_PINNED},
    {"memory could not be bound to its node", PSTK_FALLBACK_NOT_BOUND},
    {"the trace could not be written", PSTK_FALLBACK_NO_TRACE},
    {"`penstock top` cannot see the loader: its file could not be made", PSTK_FALLBACK_NO_MONITOR},
    {NULL, 0}};

static double per_second(const struct report *report, double n)
{
    return report->seconds > 0 ? n / report->seconds : 0;
}

/* Return 1 when the device has slots of its own. */
static int on_device(const struct report *report)
{
    return report->stats.n_device_slots > 0;
}

/* Return the bytes per second while copies to the device ran; 0: not measured. */
static double copy_rate(const struct pstk_stats *stats)
{
    return stats->copy_ns ? (double)stats->copy_bytes * 1e9 / (double)stats->copy_ns : 0;
}

/* Return the share of its time that the consumer's stream waited for batches, in percent, once it
 * had the first one; negative: not measured. */
static double starved_percent(const struct pstk_stats *stats)
{
    /* Both may have grown between their reads. */
    const double starved = stats->stream_starved_ns > stats->stream_start_ns
                               ? (double)(stats->stream_starved_ns - stats->stream_start_ns)
                               : 0;
    const double all = starved + (double)stats->stream_used_ns;
    return all > 0 ? starved * 100 / all : -1;
}

int report_is_packed(const struct report *report)
{
    return strchr(report->pipeline->info.format, ',') != NULL; /* "tar, gzip" */
}

/* A ceiling and the measured rate. measured is 0 when it was not measured. */
struct ceiling {
    const char *name;  /* name in JSON */
    const char *title; /* name for people */
    double measured, reached;
    int bytes; /* 1: bytes, 0: samples */
};

#define N_CEILINGS 4
#define ADVICE_SIZE 256
/* Percent. If workers are busy for less than this, more workers save less than this share of the
 * time. */
#define BUSY_MIN 20

static void list_ceilings(const struct report *report, struct ceiling ceiling[N_CEILINGS])
{
    const struct pstk_ceilings *ceilings = &report->ceilings;
    const uint32_t cached = ceilings->from_page_cache;
    double samples = per_second(report, (double)report->n_samples);
    ceiling[0] =
        (struct ceiling){"storage",
                         cached & PSTK_CEILING_STORAGE ? "storage, raw reads, from the page cache"
                                                       : "storage, raw reads of records",
                         ceilings->storage_bytes_per_second,
                         per_second(report, (double)report->stats.bytes_delivered), 1};
    ceiling[1] = (struct ceiling){"memory", "memory, copies of the size of the batches",
                                  ceilings->memory_bytes_per_second,
                                  per_second(report, (double)report->bytes_out), 1};
    ceiling[2] =
        (struct ceiling){"loader",
                         cached & PSTK_CEILING_LOADER ? "loader, no decoding, from the page cache"
                                                      : "loader, nothing decoded",
                         ceilings->loader_samples_per_second, samples, 0};
    ceiling[3] = (struct ceiling){"copy", "copy, plain page-locked, to the device",
                                  ceilings->copy_bytes_per_second, copy_rate(&report->stats), 1};
}

/* Return how many times faster this is than libjpeg-turbo, which decodes the same images whole on
 * as many threads. It is a reference only, because a loader that decodes less is faster. 0: not
 * measured. */
static double reference_ratio(const struct report *report)
{
    const double samples = report->ceilings.decode_samples_per_second;
    return samples > 0 ? per_second(report, (double)report->n_samples) / samples : 0;
}

/* Return a part of a stage's time, in percent, rounded. */
static unsigned percent_of(uint64_t part, const struct pstk_stage_stats *stats)
{
    const double all =
        (double)stats->busy_ns + (double)stats->starved_ns + (double)stats->blocked_ns;
    return all > 0 ? (unsigned)((double)part * 100 / all + 0.5) : 0;
}

/* Report that the reader waits for a core. If there are more workers than by default, name that
 * number. */
static void advise_cores(const struct report *report, char *text, size_t size)
{
    const struct pstk_stage_stats *reader = &report->stats.stage_reader;
    /* Threads that read for it count too, so the sum may pass its time. */
    const unsigned share = percent_of(reader->core_wait_ns, reader);
    char fewer[64] = "";
    if (report->n_workers > 0 && report->stats.n_threads > report->n_workers)
        snprintf(fewer, sizeof fewer, "; try --threads %u", report->n_workers);
    snprintf(text, size,
             "cores: the reader is ready to run but has no core %u %% of the time; more cores, or "
             "fewer workers, would help%s",
             share < 100 ? share : 100, fewer);
}

void report_advise(const struct report *report, char *text, size_t size)
{
    const uint32_t n = report->stats.n_threads;
    const struct pstk_stage_stats *reader = &report->stats.stage_reader,
                                  *workers = &report->stats.stage_workers,
                                  *uploader = &report->stats.stage_uploader;
    /* If streams are timed, everything that the uploader does is part of the way to the device. */
    const int is_timed = report->stats.stream_used_ns + report->stats.stream_starved_ns > 0;
    switch (report->stats.bottleneck) {
    case PSTK_BOTTLENECK_STORAGE:
        snprintf(text, size,
                 "storage: the reader waits for reads %u %% of the time; a faster disk, or enough "
                 "memory to hold the data set in the page cache, would help%s",
                 percent_of(reader->starved_ns, reader),
                 reading_is_scattered(report->pipeline->order, &report->pipeline->info)
                     ? ", or --order windowed, which reads whole blocks instead of single records"
                     : "");
        return;
    case PSTK_BOTTLENECK_DECODE:
        if (percent_of(workers->busy_ns, workers) < BUSY_MIN)
            snprintf(text, size,
                     "decode: the workers are busy only %u %% of the time, though more than other "
                     "stages; more threads would gain little",
                     percent_of(workers->busy_ns, workers));
        else if (n + (on_device(report) != 0) < report->n_workers) /* the uploader takes a core */
            snprintf(text, size,
                     "decode: the workers are busy %u %% of the time, but only %u of %u cores are "
                     "used; try --threads %u",
                     percent_of(workers->busy_ns, workers), n, report->n_usable, report->n_workers);
        else
            snprintf(
                text, size,
                "decode: the workers are busy %u %% of the time; more cores, or smaller images "
                "in the data set, would help",
                percent_of(workers->busy_ns, workers));
        return;
    case PSTK_BOTTLENECK_COPY:
        snprintf(
            text, size,
            "copy: the uploader is busy %u %% of the time, so batches wait for their way to the "
            "device; %s",
            percent_of(uploader->busy_ns + (is_timed ? uploader->blocked_ns : 0), uploader),
            report->stats.page_locked
                ? "smaller images, or a wider link to the device (`penstock doctor` prints "
                  "what it has), would help"
                : "page-locked slots would help: fewer --slots or smaller batches, or a "
                  "container that may lock more memory");
        return;
    case PSTK_BOTTLENECK_CONSUMER:
        snprintf(text, size,
                 "consumer: batches wait to be taken, so %s is what limits, not the loader%s",
                 on_device(report) ? "the work on the device" : "what takes them",
                 report->with_digest     ? " (here it is the digest)"
                 : (report->step_ms > 0) ? " (here it is --step-ms)"
                                         : "");
        return;
    case PSTK_BOTTLENECK_READER:
        snprintf(text, size,
                 "reader: its thread is busy %u %% of the time with the cost of single records; "
                 "larger records would help",
                 percent_of(reader->busy_ns, reader));
        return;
    case PSTK_BOTTLENECK_CORES:
        advise_cores(report, text, size);
        return;
    default:
        snprintf(text, size,
                 "the run was too short to say, or no stage was busy for even a tenth of the time; "
                 "measure longer with --seconds 10");
    }
}

/* ---- for people ---------------------------------------------------------------------------- */

static void print_head(const struct report *report)
{
    const struct pipeline *pipeline = report->pipeline;
    char n[UNIT_SIZE], files[FILES_SIZE], bytes[UNIT_SIZE], ranks[RANKS_TEXT];
    text_print(stdout, pipeline->path);
    printf(": %s sample%s, %s in %s\n", unit_count(n, pipeline->info.n_samples),
           pipeline->info.n_samples == 1 ? "" : "s",
           unit_bytes(bytes, (double)pipeline->info.bytes), files_text(&pipeline->info, files));
    if (pipeline->image_field >= 0)
        printf("%s crop to %u x %u, %s %s, ", option_choice_name(pipeline_crops, pipeline->crop),
               pipeline->size, pipeline->size, option_choice_name(names_dtype, pipeline->dtype),
               option_choice_name(names_layout, pipeline->layout));
    printf("%s order", option_choice_name(names_order, pipeline->order));
    if (pipeline->order == PSTK_ORDER_WINDOWED)
        printf(" (%u way%s, blocks of %u, windows of %u)", pipeline->ways,
               pipeline->ways == 1 ? "" : "s", pipeline->block, pipeline->window);
    if (pipeline->ranks.is_auto)
        printf(", %s", ranks_text(&pipeline->ranks, ranks));
    printf(", batches of %u, %u slots, %u worker%s\n", pipeline->batch_size, report->stats.n_slots,
           report->stats.n_threads, report->stats.n_threads == 1 ? "" : "s");
}

static void print_throughput(const struct report *report)
{
    char a[UNIT_SIZE], b[UNIT_SIZE], c[UNIT_SIZE], d[UNIT_SIZE];
    printf("\n  %s samples/s   %s/s read\n",
           unit_count(a, (uint64_t)(per_second(report, (double)report->n_samples) + 0.5)),
           unit_bytes(b, per_second(report, (double)report->stats.bytes_delivered)));
    printf("  %s samples in %s batches, %s", unit_count(a, report->n_samples),
           unit_count(b, report->n_batches), unit_seconds(c, report->seconds));
    if (report->stats.n_replacements)
        printf("; %s bad sample%s replaced", unit_count(d, report->stats.n_replacements),
               report->stats.n_replacements == 1 ? " was" : "s were");
    putchar('\n');
    if (report->with_digest)
        printf("  digest %08x\n", report->digest);
}

static void print_stage(const char *name, const struct pstk_stage_stats *stats)
{
    double all = (double)stats->busy_ns + (double)stats->starved_ns + (double)stats->blocked_ns;
    double percent = all > 0 ? 100 / all : 0;
    char items[UNIT_SIZE];
    printf("  %-10s  %7u  %6.0f %%  %6.0f %%  %6.0f %%  %6.0f %%  %6.0f %%  %13s\n", name,
           stats->n_threads, (double)stats->busy_ns * percent, (double)stats->starved_ns * percent,
           (double)stats->blocked_ns * percent, (double)stats->cpu_ns * percent,
           (double)stats->core_wait_ns * percent, unit_count(items, stats->n_items));
}

static void print_stages(const struct report *report)
{
    printf("\n  %-10s  %7s  %8s  %8s  %8s  %8s  %8s  %13s\n", "stage", "threads", "busy", "starved",
           "blocked", "CPU", "no core", "items");
    print_stage("reader", &report->stats.stage_reader);
    print_stage("workers", &report->stats.stage_workers);
    if (on_device(report))
        print_stage("uploader", &report->stats.stage_uploader);
    print_stage("consumer", &report->stats.stage_consumer);
}

static void print_machine(const struct report *report)
{
    const struct pstk_stats *stats = &report->stats;
    char a[UNIT_SIZE], b[UNIT_SIZE], c[UNIT_SIZE], d[UNIT_SIZE], e[UNIT_SIZE];
    printf("\n  reader      %s, %s, buffers %s, %u reads deep\n",
           option_choice_name(names_reader_kind, stats->reader),
           stats->direct ? "direct" : "buffered",
           stats->registered ? "registered" : "not registered", stats->queue_depth);
    const int is_packed = report_is_packed(report);
    for (const struct choice *step = steps; step->name; step++)
        if (stats->fallbacks & step->value)
            printf("              %s\n",
                   step->value == PSTK_FALLBACK_NO_IO_URING && is_packed ? UNPACKED : step->name);
    printf("  memory      %s at its peak\n", unit_bytes(a, (double)report->rss_peak));
    printf("              slots %s, reads %s, index %s, scratch up to %s\n",
           unit_bytes(b, (double)stats->slot_memory), unit_bytes(c, (double)stats->io_memory),
           unit_bytes(d, (double)stats->index_memory),
           unit_bytes(e, (double)stats->scratch_memory));
}

static void print_device(const struct report *report)
{
    const struct pstk_stats *stats = &report->stats;
    char a[UNIT_SIZE], b[UNIT_SIZE];
    printf("  device      CUDA %d, %.36s: %u slots, %s of its memory\n",
           report->pipeline->device_index, report->device.name, stats->n_device_slots,
           unit_bytes(a, (double)stats->device_memory));
    printf("              %s\n",
           stats->page_locked ? "host slots are page-locked, so copies run straight from them"
                              : "host slots could not be page-locked, so copies take a step more");
    if (stats->copy_ns)
        printf("              %s copied to it, at %s/s while copying\n",
               unit_bytes(a, (double)stats->copy_bytes), unit_bytes(b, copy_rate(stats)));
    if (starved_percent(stats) >= 0)
        printf("              its stream waited for batches %.2f %% of its time,\n"
               "              after %.0f ms for the first\n",
               starved_percent(stats), (double)stats->stream_start_ns / 1e6);
}

static void rate_text(char text[2 * UNIT_SIZE], double rate, int bytes)
{
    char number[UNIT_SIZE];
    if (bytes)
        snprintf(text, 2 * UNIT_SIZE, "%s/s", unit_bytes(number, rate));
    else
        snprintf(text, 2 * UNIT_SIZE, "%s/s", unit_count(number, (uint64_t)(rate + 0.5)));
}

static void print_ceilings(const struct report *report)
{
    struct ceiling ceiling[N_CEILINGS];
    char measured[2 * UNIT_SIZE], reached[2 * UNIT_SIZE];
    list_ceilings(report, ceiling);
    printf("\n  %-42s  %12s  %12s  %6s\n", "ceiling", "measured", "reached", "ratio");
    for (int i = 0; i < N_CEILINGS; i++) {
        if (ceiling[i].measured <= 0)
            continue;
        rate_text(measured, ceiling[i].measured, ceiling[i].bytes);
        rate_text(reached, ceiling[i].reached, ceiling[i].bytes);
        printf("  %-42s  %12s  %12s  %6.2f\n", ceiling[i].title, measured, reached,
               ceiling[i].reached / ceiling[i].measured);
    }
}

/* Print a sentence in lines of at most 66 columns, aligned with the text above it. */
static void print_wrapped(const char *title, const char *text)
{
    const int width = 66;
    printf("\n  %-11s", title);
    for (int column = 0; *text;) {
        int length = (int)strcspn(text, " ");
        if (column && column + 1 + length > width) {
            printf("\n  %-11s", "");
            column = 0;
        }
        printf(" %.*s", length, text);
        column += length + 1;
        text += length + strspn(text + length, " ");
    }
    putchar('\n');
}

static void print_reference(const struct report *report)
{
    const double ratio = reference_ratio(report);
    char text[ADVICE_SIZE], n[UNIT_SIZE];
    if (ratio <= 0)
        return;
    snprintf(text, sizeof text,
             "%.*f x libjpeg-turbo, which decodes %s whole images/s on as many threads",
             ratio < 0.1 ? 2 : 1, ratio,
             unit_count(n, (uint64_t)(report->ceilings.decode_samples_per_second + 0.5)));
    print_wrapped("reference", text);
}

static struct forecast predict(const struct report *report)
{
    struct forecast forecast = forecast_of(&report->stats, report->n_usable);
    if (report->with_ceilings)
        forecast_kernels(&forecast, &report->stats, report->n_usable,
                         report->pipeline->settings.reading.kernels, report->ceilings.kernels_ns);
    return forecast;
}

static void print_forecast(const struct report *report)
{
    const struct forecast forecast = predict(report);
    char text[FORECAST_TEXT];
    for (uint32_t i = 0; i < forecast.n; i++)
        printf("%s  %-11s %s\n", i ? "" : "\n", i ? "" : "prediction",
               forecast_text(&forecast, i, text));
}

int report_text(const struct report *report)
{
    char advice[ADVICE_SIZE];
    report_advise(report, advice, sizeof advice);
    print_head(report);
    print_throughput(report);
    mixture_print(&report->pipeline->mixture);
    print_stages(report);
    print_machine(report);
    if (on_device(report))
        print_device(report);
    if (report->with_ceilings) {
        print_ceilings(report);
        print_reference(report);
    }
    print_wrapped("bottleneck", advice);
    print_forecast(report);
    return message_finish(STATUS_OK);
}

/* ---- as JSON ------------------------------------------------------------------------------- */

static void put_stage(struct json_t *stages, const char *name, const struct pstk_stage_stats *stats)
{
    struct json_t *object = json_make_object();
    json_put_count(object, "busy_ns", stats->busy_ns);
    json_put_count(object, "starved_ns", stats->starved_ns);
    json_put_count(object, "blocked_ns", stats->blocked_ns);
    json_put_count(object, "cpu_ns", stats->cpu_ns);
    json_put_count(object, "core_wait_ns", stats->core_wait_ns);
    json_put_count(object, "items", stats->n_items);
    json_put_count(object, "threads", stats->n_threads);
    json_put(stages, name, object);
}

static struct json_t *reader_json(const struct pstk_stats *stats)
{
    struct json_t *object = json_make_object(), *taken = json_make_array();
    json_put_text(object, "backend", option_choice_name(names_reader_kind, stats->reader));
    json_put_bool(object, "direct", stats->direct != 0);
    json_put_bool(object, "registered", stats->registered != 0);
    json_put_count(object, "queue_depth", stats->queue_depth);
    json_put_count(object, "reads", stats->n_reads);
    json_put_count(object, "cached_reads", stats->n_cached_reads);
    json_put_count(object, "evicted_reads", stats->n_evicted_reads);
    for (const struct choice *fallback = names_fallback; fallback->name; fallback++)
        if (stats->fallbacks & fallback->value)
            json_append_text(taken, fallback->name);
    json_put(object, "fallbacks", taken);
    return object;
}

static struct json_t *memory_json(const struct pstk_stats *stats)
{
    struct json_t *object = json_make_object();
    json_put_count(object, "slots", stats->slot_memory);
    json_put_count(object, "io", stats->io_memory);
    json_put_count(object, "index", stats->index_memory);
    json_put_count(object, "scratch", stats->scratch_memory);
    return object;
}

static struct json_t *device_json(const struct report *report)
{
    const struct pstk_stats *stats = &report->stats;
    struct json_t *object = json_make_object();
    json_put_text(object, "kind", option_choice_name(names_device_kind, report->pipeline->device));
    json_put_count(object, "index", (uint64_t)report->pipeline->device_index);
    json_put_text(object, "name", report->device.name);
    json_put_count(object, "slots", stats->n_device_slots);
    json_put_count(object, "memory", stats->device_memory);
    json_put_bool(object, "page_locked", stats->page_locked != 0);
    json_put_count(object, "copy_bytes", stats->copy_bytes);
    json_put_count(object, "copy_ns", stats->copy_ns);
    json_put_real(object, "copy_bytes_per_second", copy_rate(stats));
    json_put_count(object, "stream_used_ns", stats->stream_used_ns);
    json_put_count(object, "stream_starved_ns", stats->stream_starved_ns);
    json_put_count(object, "stream_start_ns", stats->stream_start_ns);
    if (starved_percent(stats) >= 0)
        json_put_real(object, "starved_percent", starved_percent(stats));
    else
        json_put_null(object, "starved_percent");
    return object;
}

static void put_reference(struct json_t *object, const struct report *report)
{
    struct json_t *reference = json_make_object();
    json_put_real(reference, "libjpeg_turbo_samples_per_second",
                  report->ceilings.decode_samples_per_second);
    json_put_real(reference, "libjpeg_turbo_ratio", reference_ratio(report));
    json_put(object, "reference", reference);
}

static void put_ceilings(struct json_t *object, const struct report *report)
{
    struct ceiling ceiling[N_CEILINGS];
    struct json_t *ceilings = json_make_object(), *ratios = json_make_object();
    struct json_t *kernels = json_make_object();
    const struct pstk_ceilings *m = &report->ceilings;
    list_ceilings(report, ceiling);
    json_put_real(ceilings, "storage_bytes_per_second", m->storage_bytes_per_second);
    json_put_bool(ceilings, "storage_from_page_cache",
                  (m->from_page_cache & PSTK_CEILING_STORAGE) != 0);
    json_put_bool(ceilings, "loader_from_page_cache",
                  (m->from_page_cache & PSTK_CEILING_LOADER) != 0);
    json_put_real(ceilings, "storage_reads_per_second", m->storage_reads_per_second);
    json_put_real(ceilings, "memory_bytes_per_second", m->memory_bytes_per_second);
    json_put_real(ceilings, "loader_samples_per_second", m->loader_samples_per_second);
    for (uint32_t k = PSTK_KERNELS_C; k <= PSTK_KERNELS_NEON; k++)
        if (m->kernels_ns[k] > 0)
            json_put_real(kernels, option_choice_name(names_kernels, k), m->kernels_ns[k]);
    json_put(ceilings, "kernels_ns", kernels);
    if (on_device(report)) {
        json_put_real(ceilings, "copy_bytes_per_second", m->copy_bytes_per_second);
        json_put_count(ceilings, "copy_block_size", m->copy_block_size);
    }
    for (int i = 0; i < N_CEILINGS; i++)
        if (ceiling[i].measured > 0)
            json_put_real(ratios, ceiling[i].name, ceiling[i].reached / ceiling[i].measured);
    json_put(object, "ceilings", ceilings);
    json_put(object, "ratios", ratios);
}

static void put_order(struct json_t *object, const struct pipeline *pipeline)
{
    const int is_windowed = pipeline->order == PSTK_ORDER_WINDOWED;
    json_put_text(object, "order", option_choice_name(names_order, pipeline->order));
    json_put_count(object, "ways", is_windowed ? pipeline->ways : PSTK_NONE);
    json_put_count(object, "block", is_windowed ? pipeline->block : PSTK_NONE);
    json_put_count(object, "window", is_windowed ? pipeline->window : PSTK_NONE);
}

struct json_t *report_object(const struct report *report)
{
    const struct pstk_stats *stats = &report->stats;
    struct json_t *object = json_make_object(), *stages = json_make_object();
    char text[ADVICE_SIZE];
    json_put_text(object, "path", report->pipeline->path);
    if (report->pipeline->mixture.n)
        mixture_put(&report->pipeline->mixture, object);
    json_put_real(object, "samples_per_second", per_second(report, (double)report->n_samples));
    json_put_count(object, "samples", report->n_samples);
    json_put_real(object, "seconds", report->seconds);
    json_put_count(object, "bytes_read", stats->bytes_delivered);
    json_put_count(object, "bytes_out", report->bytes_out);
    json_put_count(object, "threads", stats->n_threads);
    json_put_count(object, "slots", stats->n_slots);
    json_put_count(object, "batch_size", report->pipeline->batch_size);
    json_put_count(object, "global_batch_size", pipeline_global_batch(report->pipeline));
    json_put_count(object, "batches", report->n_batches);
    ranks_put(&report->pipeline->ranks, object);
    put_order(object, report->pipeline);
    json_put_count(object, "n_replacements", stats->n_replacements);
    json_put_count(object, "n_palette_images", stats->n_palette_images);
    json_put_count(object, "n_damaged_images", stats->n_damaged_images);
    snprintf(text, sizeof text, "%08x", report->digest);
    json_put_text(object, "digest", report->with_digest ? text : NULL);
    json_put_count(object, "rss_peak_bytes", report->rss_peak);
    json_put(object, "memory", memory_json(stats));
    json_put(object, "reader", reader_json(stats));
    put_stage(stages, "reader", &stats->stage_reader);
    put_stage(stages, "workers", &stats->stage_workers);
    if (on_device(report))
        put_stage(stages, "uploader", &stats->stage_uploader);
    put_stage(stages, "consumer", &stats->stage_consumer);
    json_put(object, "stages", stages);
    if (on_device(report))
        json_put(object, "device", device_json(report));
    else
        json_put_null(object, "device"); /* the host */
    json_put_real(object, "step_ms", report->step_ms);
    if (report->with_ceilings) {
        put_ceilings(object, report);
        put_reference(object, report);
    } else {
        json_put_null(object, "ceilings");
        json_put_null(object, "reference");
    }
    json_put_text(object, "bottleneck", option_choice_name(names_bottleneck, stats->bottleneck));
    report_advise(report, text, sizeof text);
    json_put_text(object, "advice", text);
    const struct forecast forecast = predict(report);
    forecast_put(&forecast, object);
    return object;
}

int report_json(const struct report *report)
{
    return json_print(report_object(report), STATUS_OK);
}
