/* SPDX-License-Identifier: Apache-2.0 */
/* bench: runs the whole loader with a consumer that does nothing, or that is busy for a while. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include <penstock/penstock.h>

#include "command.h"
#include "command/status_files.h"
#include "command/consumer.h"
#include "option/machine.h"
#include "option/options.h"
#include "option/pipeline.h"
#include "report/recording.h"
#include "report/report.h"
#include "report/report_page.h"
#include "ui/interrupt.h"
#include "ui/message.h"
#include "ui/progress.h"
#include "ui/status.h"
#include "ui/unit.h"

#define DEFAULT_SECONDS 10
#define CEILING_SECONDS 4 /* all ceilings together */

#define MAX_STEP_MS 60000

enum {
    OPT_EPOCHS = 256,
    OPT_SECONDS,
    OPT_STEP,
    OPT_DIGEST,
    OPT_NO_CEILINGS,
    OPT_TRACE,
    OPT_REPORT,
    OPT_JSON
};

static const struct option_row table[] = {
    {.text = "duration"},
    {.name = "seconds",
     .code = OPT_SECONDS,
     .value = "S",
     .initial = "10",
     .text = "measure for S seconds, over as many epochs as needed"},
    {.name = "epochs",
     .code = OPT_EPOCHS,
     .value = "N",
     .initial = "1 with --digest",
     .text = "measure N epochs"},
    PIPELINE_IMAGE_OPTIONS,
    {.text = "data"},
    FIELDS_OPTIONS,
    FIELDS_DAMAGED_OPTION,
    {.text = "order"},
    PIPELINE_SEED_OPTIONS,
    PIPELINE_ORDER_OPTIONS,
    PIPELINE_DRAW_OPTIONS,
    {.name = "mixture",
     .code = OPT_MIXTURE,
     .value = "PATH=WEIGHT,...",
     .text = "read several data sets in these shares, in place of DATA; a data set that is used up "
             "begins again, and an epoch has as many samples as all of them together"},
    PIPELINE_RUN_OPTIONS,
    {.name = "step-ms",
     .code = OPT_STEP,
     .value = "X",
     .initial = "0",
     .text = "after each batch keep the GPU, or the host, busy for X ms, as a training step does; "
             "the GPU's memory is not touched, so that copies run undisturbed"},
    {.text = "output"},
    {.name = "digest",
     .code = OPT_DIGEST,
     .text = "print the CRC32C of the valid rows of every batch, in order"},
    {.name = "no-ceilings", .code = OPT_NO_CEILINGS, .text = "do not measure the ceilings"},
    {.name = "trace",
     .code = OPT_TRACE,
     .value = "FILE",
     .text = "write the newest events of each thread to FILE, which ui.perfetto.dev opens"},
    {.name = "report",
     .code = OPT_REPORT,
     .value = "FILE",
     .text = "write the results to FILE as one HTML page, with charts of them and of the "
             "throughput over time"},
    OPTION_JSON("print one JSON object"),
    OPTION_END};

struct bench {
    struct pipeline pipeline;
    struct report report;
    struct progress progress;
    struct consumer consumer;
    struct recording recording;
    uint64_t n_epochs;   /* 0: no limit */
    double max_seconds;  /* 0: no limit */
    uint64_t n_expected; /* batches, when n_epochs is the limit */
    const char *trace;   /* file; NULL: none */
    int json;
};

/* Set the file of --report. The page and the text would be mixed on standard output. */
static int set_page(struct bench *bench, const char *path)
{
    if (strcmp(path, "-") == 0) {
        message_say("--report: value is '-'; must be a file, for standard output has the text");
        return -1;
    }
    bench->recording.path = path;
    return report_page_check("--report") == 0 ? 0 : -1;
}

static int set_option(struct bench *bench, int code, const char *value)
{
    switch (code) {
    case OPT_EPOCHS:
        return option_count("--epochs", value, (struct range){1, UINT32_MAX}, &bench->n_epochs);
    case OPT_SECONDS:
        return option_real("--seconds", value, 0.01, 1e9, &bench->max_seconds);
    case OPT_STEP:
        return option_real("--step-ms", value, 0, MAX_STEP_MS, &bench->report.step_ms);
    case OPT_DIGEST:
        bench->report.with_digest = 1;
        return 0;
    case OPT_NO_CEILINGS:
        bench->report.with_ceilings = 0;
        return 0;
    case OPT_TRACE:
        bench->trace = value;
        return 0;
    case OPT_REPORT:
        return set_page(bench, value);
    case OPT_JSON:
        bench->json = 1;
        return 0;
    default:
        return pipeline_set(&bench->pipeline, code, value);
    }
}

/* Return the bytes of the valid rows, which are at the start of the tensor. A ragged tensor has
 * only valid rows. */
static uint64_t valid_size(const struct pstk_tensor *t, uint32_t n_valid)
{
    if (t->offsets)
        return t->size;
    uint64_t size = pstk_dtype_size(t->dtype);
    for (uint32_t i = 1; i < t->n_dims; i++)
        size *= (uint64_t)t->shape[i];
    return size * n_valid;
}

static int take(struct bench *bench, const struct pstk_batch *batch, struct pstk_error *err)
{
    struct report *report = &bench->report;
    if (batch->n_palette_images > 0 && !bench->consumer.warned)
        progress_end(&bench->progress); /* the warning gets a line of its own */
    consumer_warn(&bench->consumer, batch);
    for (uint32_t i = 0; i < batch->n_tensors; i++) {
        uint64_t size = valid_size(&batch->tensors[i], batch->n_valid);
        report->bytes_out += size;
        if (!report->with_digest || !size)
            continue;
        const void *rows = consumer_rows(&bench->consumer, batch, i, size, err);
        if (!rows)
            return err->code;
        report->digest = pstk_crc32c(report->digest, rows, size);
    }
    report->n_samples += batch->n_valid;
    report->n_batches++;
    return 0;
}

/* Run one training step. Returns 1, 0 at the end of an epoch, or a negative result. */
static int step(struct bench *bench, struct pstk_error *err)
{
    const struct consumer *consumer = &bench->consumer;
    struct pstk_batch *batch;
    const double start = bench->recording.path ? unit_now() : 0;
    int r = pstk_next(consumer->loader, &batch, consumer->stream, -1, err);
    if (r != 1)
        return r;
    if (bench->recording.path)
        waits_add(&bench->recording.waits, unit_now() - start);
    r = take(bench, batch, err);
    if (r == 0 && bench->report.step_ms > 0)
        r = pstk_stream_spin(consumer->loader, consumer->stream,
                             (uint64_t)(bench->report.step_ms * 1e6), err);
    pstk_release(&batch, consumer->stream);
    return r < 0 ? r : 1;
}

static void show_progress(struct bench *bench, double elapsed)
{
    double part = 0;
    if (bench->n_epochs)
        part = (double)bench->report.n_batches / (double)bench->n_expected;
    if (bench->max_seconds > 0 && elapsed / bench->max_seconds > part)
        part = elapsed / bench->max_seconds;
    progress_update(&bench->progress, part, bench->report.n_samples);
}

/* Run until the limit. Returns 0, or an exit status. */
static int consume(struct bench *bench)
{
    struct pstk_error err;
    uint64_t n_epochs = 0;
    double start = unit_now();
    int r = 0;
    pstk_error_init(&err, sizeof err);
    progress_begin(&bench->progress, "running", "samples");
    if (bench->recording.path)
        recording_begin(&bench->recording, bench->consumer.loader);
    while (!interrupt_seen() && (r = step(bench, &err)) >= 0) {
        if (r == 0 && ++n_epochs == bench->n_epochs)
            break;
        bench->report.seconds = unit_now() - start;
        show_progress(bench, bench->report.seconds);
        if (bench->recording.path)
            recording_look(&bench->recording, bench->consumer.loader);
        if (bench->max_seconds > 0 && bench->report.seconds >= bench->max_seconds)
            break;
    }
    progress_end(&bench->progress);
    if (interrupt_seen()) {
        message_say("interrupted after %" PRIu64 " batches", bench->report.n_batches);
        return interrupt_status();
    }
    if (r < 0)
        return status_refuse(&err, NULL);
    if (bench->recording.path)
        recording_end(&bench->recording, bench->consumer.loader);
    /* On a device steps are only queued. The time includes the last steps. */
    consumer_close(&bench->consumer);
    bench->report.seconds = unit_now() - start;
    return 0;
}

/* Refuse a run that would deliver nothing, instead of reporting 0 samples/s. */
static int check_length(struct bench *bench)
{
    const struct pipeline *pipeline = &bench->pipeline;
    struct pstk_order_settings order = pipeline_order(pipeline);
    uint64_t n = pstk_order_n_batches(&order, 0);
    if (n == 0)
        return pipeline_say_too_few(pipeline);
    if (pipeline->start_batch >= n)
        return message_usage("--start-batch: value is %" PRIu64 "; must be below %" PRIu64
                             ", the batches of the epoch",
                             pipeline->start_batch, n);
    if (bench->n_epochs)
        bench->n_expected = (n - pipeline->start_batch) + (bench->n_epochs - 1) * n;
    return 0;
}

static int run_loader(struct bench *bench)
{
    struct pstk_loader *loader;
    struct rusage usage;
    struct pstk_error err;
    int status = pipeline_open(&bench->pipeline, &loader);
    if (status)
        return status;
    pstk_error_init(&err, sizeof err);
    if (consumer_open(&bench->consumer, loader, bench->pipeline.device, &err) < 0)
        status = status_refuse(&err, NULL);
    else
        status = consume(bench);
    consumer_close(&bench->consumer);
    if (bench->trace && pstk_trace_write(loader, NULL, &err) < 0)
        message_say("%s", err.message);
    bench->report.stats.size = sizeof bench->report.stats;
    mixture_count(&bench->pipeline.mixture, loader);
    int r = pstk_get_stats(loader, &bench->report.stats);
    if (status == 0 && r < 0) {
        message_say("%s", pstk_strerror(r));
        status = status_of_code(r);
    }
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        bench->report.rss_peak = (uint64_t)usage.ru_maxrss * 1024;
    pipeline_close(&loader);
    return status;
}

static void measure_ceilings(struct bench *bench)
{
    struct pstk_error err;
    int terminal = !bench->json && bench->progress.terminal;
    pstk_error_init(&err, sizeof err);
    bench->report.ceilings.size = sizeof bench->report.ceilings;
    if (terminal)
        fputs("\r\033[Kmeasuring the ceilings ...", stderr);
    interrupt_at_once("not all ceilings were measured");
    int r = pstk_measure_ceilings(&bench->pipeline.settings, CEILING_SECONDS,
                                  &bench->report.ceilings, &err);
    interrupt_at_once(NULL);
    if (terminal)
        fputs("\r\033[K", stderr);
    if (r < 0) {
        message_say("the ceilings could not be measured: %s", err.message);
        bench->report.with_ceilings = 0;
    }
}

/* Return 1 if the loader's reader makes all reads. */
static int reader_reads(const struct bench *b)
{
    return b->report.stats.direct || report_is_packed(&b->report) ||
           b->pipeline.settings.order.kind == PSTK_ORDER_WINDOWED;
}

static int bench(struct bench *b, const char *path)
{
    char file[STATUS_FILES_PATH_SIZE];
    int status = pipeline_look(&b->pipeline, path);
    if (status == 0)
        status = check_length(b);
    if (status == 0)
        pipeline_say_left_out(&b->pipeline);
    if (status == 0)
        status = pipeline_build(&b->pipeline, 0);
    b->pipeline.settings.device.measure = 1;
    b->pipeline.settings.observe.trace_path = b->trace;
    b->pipeline.settings.observe.monitor_path = status_files_path(file);
    if (status == 0)
        status = run_loader(b);
    if (status)
        return status;
    struct pstk_machine machine = {.size = sizeof machine}; /* its last members count workers */
    pstk_get_machine(NULL, &machine, NULL);
    b->report.n_usable = machine.n_usable;
    b->report.n_workers = reader_reads(b) ? machine.n_workers_direct : machine.n_workers;
    b->report.device.size = sizeof b->report.device;
    pstk_get_device(b->pipeline.device, b->pipeline.device_index, &b->report.device, NULL);
    b->pipeline.settings.observe.monitor_path = NULL; /* the ceilings' loaders are not watched */
    if (b->report.with_ceilings)
        measure_ceilings(b);
    /* Write the page first, so that a failure is printed before the result, which is printed in any
     * case. */
    const int page_status = b->recording.path ? recording_write(&b->recording, &b->report) : 0;
    status = b->json ? report_json(&b->report) : report_text(&b->report);
    return status ? status : page_status;
}

/* Check the operands: the data set, or none with a mixture. */
static int check_operands(struct options *options, int n)
{
    if (n == 1)
        return options_operands(options, 1, 1, "DATA");
    if (options_n_operands(options) == 0)
        return 0;
    options->status = message_usage("--mixture: cannot be given together with DATA, which is '%s'",
                                    options_operand(options, 0));
    return -1;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options options = {.command = self, .argc = argc, .argv = argv};
    struct bench b = {.n_epochs = 0};
    int c;
    pipeline_init(&b.pipeline);
    b.report.pipeline = &b.pipeline;
    b.report.with_ceilings = 1;
    while ((c = options_next(&options)) > 0)
        if (set_option(&b, c, optarg) < 0) {
            pipeline_free(&b.pipeline);
            return STATUS_USAGE;
        }
    const int n_operands = b.pipeline.mixture.n ? 0 : 1;
    if (n_operands == 0) /* these options need one data set */
        b.report.with_ceilings = 0;
    if (c < 0 || check_operands(&options, n_operands) < 0) {
        pipeline_free(&b.pipeline);
        return options.status;
    }
    if (b.n_epochs == 0 && b.max_seconds == 0) { /* the digest of a timed run would not repeat */
        if (b.report.with_digest)
            b.n_epochs = 1;
        else
            b.max_seconds = DEFAULT_SECONDS;
    }
    interrupt_install();
    const int status = bench(&b, n_operands ? options_operand(&options, 0) : NULL);
    pipeline_free(&b.pipeline);
    return status;
}

const struct command command_bench = {
    .name = "bench",
    .summary = "measure throughput, and what limits it",
    .operands = "DATA",
    .text = "Run the loader as a trainer would, throw the batches away, and print how fast it was "
            "and what limits it. Next to that, bench prints the ceilings: what storage, memory and "
            "the loader without decoding can do. As a reference it compares the loader with "
            "libjpeg-turbo, which decodes the same images whole. On a GPU it also prints how fast "
            "copies to it were, and how long its stream waited for batches. The last lines predict "
            "what a change would bring. With --mixture there are no ceilings.\n",
    .options = table,
    .examples = "penstock bench train\n"
                "penstock bench train --device cuda --dtype f16 --layout nchw --batch-size 256 "
                "--step-ms 40\n"
                "penstock bench train --crop center --order sequential --last short --epochs 1\n"
                "penstock bench train --seconds 2 --trace trace.json --no-ceilings\n"
                "penstock bench train --digest --threads 4 --no-ceilings --json | jq -r .digest\n"
                "penstock bench --mixture web=0.7,books=0.3\n",
    .exit_status = "0; 1 damaged data; 2 wrong usage or path; 130 Ctrl-C",
    .run = run,
};
