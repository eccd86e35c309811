/* SPDX-License-Identifier: Apache-2.0 */
/* bench: the whole loader with a consumer that does nothing, or is busy for a while. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

#include <penstock/penstock.h>

#include "command.h"
#include "consumer.h"
#include "interrupt.h"
#include "machine.h"
#include "message.h"
#include "options.h"
#include "pipeline.h"
#include "progress.h"
#include "report.h"
#include "unit.h"

#define DEFAULT_SECONDS 10
#define CEILING_SECONDS 4 /* for all of them */

#define MAX_STEP_MS 60000

enum { OPT_EPOCHS = 256, OPT_SECONDS, OPT_STEP, OPT_DIGEST, OPT_NO_CEILINGS, OPT_JSON };

static const struct option table[] = {PIPELINE_IMAGE_OPTIONS,
                                      PIPELINE_SEED_OPTIONS,
                                      PIPELINE_ORDER_OPTIONS,
                                      PIPELINE_RUN_OPTIONS,
                                      {"epochs", required_argument, NULL, OPT_EPOCHS},
                                      {"seconds", required_argument, NULL, OPT_SECONDS},
                                      {"step-ms", required_argument, NULL, OPT_STEP},
                                      {"digest", no_argument, NULL, OPT_DIGEST},
                                      {"no-ceilings", no_argument, NULL, OPT_NO_CEILINGS},
                                      {"json", no_argument, NULL, OPT_JSON},
                                      {"help", no_argument, NULL, 'h'},
                                      OPTION_END};

static const char help[] =
    "usage: penstock bench DATA [options]\n"
    "\n"
    "Run the loader as a trainer would, throw the batches away, and say how fast it was and what\n"
    "limits it. Beside it stand the ceilings: what storage, decoder and memory can do alone.\n"
    "On a GPU it also says how long that waited for batches.\n"
    "\n"
    "how long:\n"
    "  --seconds S         so many seconds, over epochs (10)\n"
    "  --epochs N          so many epochs (with --digest: 1)\n"
    "what happens to an image:\n"
    "  --size N            pixels of both sides (224)\n"
    "  --crop C            random: random resized crop; center: shorter side to N * 256 / 224, "
    "then\n"
    "                      the centre; none: the whole image, resized (random)\n"
    "  --flip P            flip with this probability (0.5 with random crops, else 0)\n"
    "  --dtype D           u8, f16, bf16, f32; the last three normalised as for ImageNet (u8)\n"
    "  --layout L          nhwc, nchw (nhwc)\n"
    "in which order:\n"
    "  --batch-size B      rows of each rank's batch (64, less for a small data set)\n"
    "  --order O           full, sequential (full)\n"
    "  --seed S            (0)          --epoch E          the first one (0)\n"
    "  --start-batch K     begin with batch K of that epoch, from 0 (0)\n"
    "  --rank R --world W  this rank of so many (0 of 1)\n"
    "  --last L            drop, pad, short: what becomes of an incomplete last batch (drop)\n"
    "with what:\n"
    "  --threads N         workers (all cores that may be used)\n"
    "  --slots N           batches in memory (4)\n"
    "  --reader R          auto, io_uring, threads (auto)\n"
    "  --io I              auto, direct, buffered (auto)\n"
    "  --device D          where batches are handed out: host, cuda, cuda:N for GPU N (host)\n"
    "  --step-ms X         after each batch keep the GPU, or the host, busy for so long, as a\n"
    "                      training step does; on a GPU without touching its memory, so that\n"
    "                      copies run undisturbed (0)\n"
    "  --variant V         kernels: auto, c, avx2, avx512; all give the same bytes (auto)\n"
    "  --on-bad B          error: stop at a bad sample; substitute: another replaces it (error)\n"
    "and tell:\n"
    "  --digest            CRC32C of the valid rows of every batch, in order\n"
    "  --no-ceilings       do not measure the ceilings\n"
    "  --json              print one JSON object\n"
    "\n"
    "examples:\n"
    "  penstock bench train\n"
    "  penstock bench train --device cuda --dtype f16 --layout nchw --batch-size 256 --step-ms 40\n"
    "  penstock bench train --crop center --order sequential --last short --epochs 1\n"
    "  penstock bench train --digest --threads 4 --no-ceilings --json | jq -r .digest\n"
    "\n"
    "exit status: 0; 1 damaged data; 2 wrong usage or path; 130 Ctrl-C\n";

struct bench {
    struct pipeline pipeline;
    struct report report;
    struct progress progress;
    struct consumer consumer;
    uint64_t n_epochs;   /* 0: no limit */
    double max_seconds;  /* 0: no limit */
    uint64_t n_expected; /* batches, where n_epochs limits */
    int json;
};

static int set_option(struct bench *b, int code, const char *value)
{
    switch (code) {
    case OPT_EPOCHS:
        return option_count("--epochs", value, (struct range){1, UINT32_MAX}, &b->n_epochs);
    case OPT_SECONDS:
        return option_real("--seconds", value, 0.01, 1e9, &b->max_seconds);
    case OPT_STEP:
        return option_real("--step-ms", value, 0, MAX_STEP_MS, &b->report.step_ms);
    case OPT_DIGEST:
        b->report.with_digest = 1;
        return 0;
    case OPT_NO_CEILINGS:
        b->report.with_ceilings = 0;
        return 0;
    case OPT_JSON:
        b->json = 1;
        return 0;
    default:
        return pipeline_set(&b->pipeline, code, value);
    }
}

/* Bytes of the valid rows, which lie at the start of the tensor; ragged: there are no others. */
static uint64_t valid_size(const struct pstk_tensor *t, uint32_t n_valid)
{
    if (t->offsets)
        return t->size;
    uint64_t size = pstk_dtype_size(t->dtype);
    for (uint32_t i = 1; i < t->n_dims; i++)
        size *= (uint64_t)t->shape[i];
    return size * n_valid;
}

static int take(struct bench *b, const struct pstk_batch *batch, struct pstk_error *err)
{
    struct report *r = &b->report;
    if (batch->n_palette_images > 0 && !b->consumer.warned)
        progress_end(&b->progress); /* the warning gets a line of its own */
    consumer_warn(&b->consumer, batch);
    for (uint32_t i = 0; i < batch->n_tensors; i++) {
        uint64_t size = valid_size(&batch->tensors[i], batch->n_valid);
        r->bytes_out += size;
        if (!r->with_digest || !size)
            continue;
        const void *rows = consumer_rows(&b->consumer, batch, i, size, err);
        if (!rows)
            return err->code;
        r->digest = pstk_crc32c(r->digest, rows, size);
    }
    r->n_samples += batch->n_valid;
    r->n_batches++;
    return 0;
}

/* One training step: 1, at the end of an epoch 0, or <0. */
static int step(struct bench *b, struct pstk_error *err)
{
    const struct consumer *c = &b->consumer;
    struct pstk_batch *batch;
    int r = pstk_next(c->loader, &batch, c->stream, -1, err);
    if (r != 1)
        return r;
    r = take(b, batch, err);
    if (r == 0 && b->report.step_ms > 0)
        r = pstk_stream_spin(c->loader, c->stream, (uint64_t)(b->report.step_ms * 1e6), err);
    pstk_release(&batch, c->stream);
    return r < 0 ? r : 1;
}

static void show_progress(struct bench *b, double elapsed)
{
    double part = 0;
    if (b->n_epochs)
        part = (double)b->report.n_batches / (double)b->n_expected;
    if (b->max_seconds > 0 && elapsed / b->max_seconds > part)
        part = elapsed / b->max_seconds;
    progress_update(&b->progress, part, b->report.n_samples);
}

/* Returns 0, or an exit status. */
static int consume(struct bench *b)
{
    struct pstk_error err;
    uint64_t n_epochs = 0;
    double start = unit_now();
    int r = 0;
    pstk_error_init(&err, sizeof err);
    progress_begin(&b->progress, "running", "samples");
    while (!interrupt_seen() && (r = step(b, &err)) >= 0) {
        if (r == 0 && ++n_epochs == b->n_epochs)
            break;
        b->report.seconds = unit_now() - start;
        show_progress(b, b->report.seconds);
        if (b->max_seconds > 0 && b->report.seconds >= b->max_seconds)
            break;
    }
    progress_end(&b->progress);
    if (interrupt_seen()) {
        message_say("interrupted after %" PRIu64 " batches", b->report.n_batches);
        return interrupt_status();
    }
    if (r < 0)
        return message_refuse(&err, NULL);
    /* On a device steps are only queued: the last ones shall be over, too. */
    consumer_close(&b->consumer);
    b->report.seconds = unit_now() - start;
    return 0;
}

/* A run that would deliver nothing is refused, not reported as 0 samples/s. */
static int check_length(struct bench *b)
{
    const struct pipeline *p = &b->pipeline;
    struct pstk_order_settings order = pipeline_order(p);
    uint64_t n = pstk_order_n_batches(&order, 0);
    if (n == 0)
        return message_usage(
            "%s has %" PRIu64 " samples, too few for one batch of %u on %u rank%s; "
            "take a smaller --batch-size, or --last short",
            p->path, p->info.n_samples, p->batch_size, p->world, p->world == 1 ? "" : "s");
    if (p->start_batch >= n)
        return message_usage("--start-batch %" PRIu64 " is past the end: the epoch has %" PRIu64
                             " batches",
                             p->start_batch, n);
    if (b->n_epochs)
        b->n_expected = (n - p->start_batch) + (b->n_epochs - 1) * n;
    return 0;
}

static int run_loader(struct bench *b)
{
    struct pstk_loader *loader;
    struct rusage usage;
    struct pstk_error err;
    int status = pipeline_open(&b->pipeline, &loader);
    if (status)
        return status;
    pstk_error_init(&err, sizeof err);
    if (consumer_open(&b->consumer, loader, b->pipeline.device, &err) < 0)
        status = message_refuse(&err, NULL);
    else
        status = consume(b);
    consumer_close(&b->consumer);
    b->report.stats.size = sizeof b->report.stats;
    int r = pstk_get_stats(loader, &b->report.stats);
    if (status == 0 && r < 0) {
        message_say("%s", pstk_strerror(r));
        status = message_status(r);
    }
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        b->report.rss_peak = (uint64_t)usage.ru_maxrss * 1024;
    pipeline_close(&loader);
    return status;
}

static void measure_ceilings(struct bench *b)
{
    struct pstk_error err;
    int terminal = !b->json && b->progress.terminal;
    pstk_error_init(&err, sizeof err);
    b->report.ceilings.size = sizeof b->report.ceilings;
    if (terminal)
        fputs("\r\033[Kmeasuring the ceilings ...", stderr);
    interrupt_at_once("the ceilings were not measured to the end");
    int r =
        pstk_measure_ceilings(&b->pipeline.settings, CEILING_SECONDS, &b->report.ceilings, &err);
    interrupt_at_once(NULL);
    if (terminal)
        fputs("\r\033[K", stderr);
    if (r < 0) {
        message_say("the ceilings could not be measured: %s", err.message);
        b->report.with_ceilings = 0;
    }
}

static int bench(struct bench *b, const char *path)
{
    int status = pipeline_look(&b->pipeline, path);
    if (status == 0)
        status = check_length(b);
    if (status == 0)
        status = pipeline_build(&b->pipeline, 0);
    b->pipeline.settings.timed = 1;
    if (status == 0)
        status = run_loader(b);
    if (status)
        return status;
    b->report.n_usable = machine_n_cores(UINT32_MAX);
    b->report.device.size = sizeof b->report.device;
    pstk_get_device(b->pipeline.device, b->pipeline.device_index, &b->report.device, NULL);
    if (b->report.with_ceilings)
        measure_ceilings(b);
    return b->json ? report_json(&b->report) : report_text(&b->report);
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options o = {.command = self, .table = table, .letters = "", .argc = argc, .argv = argv};
    struct bench b = {.n_epochs = 0};
    int c;
    pipeline_init(&b.pipeline);
    b.report.pipeline = &b.pipeline;
    b.report.with_ceilings = 1;
    while ((c = options_next(&o)) > 0)
        if (set_option(&b, c, optarg) < 0)
            return STATUS_USAGE;
    if (c < 0 || options_operands(&o, 1, 1, "DATA") < 0)
        return o.status;
    if (b.n_epochs == 0 && b.max_seconds == 0) { /* a digest of a time would not repeat */
        if (b.report.with_digest)
            b.n_epochs = 1;
        else
            b.max_seconds = DEFAULT_SECONDS;
    }
    interrupt_install();
    return bench(&b, options_operand(&o, 0));
}

const struct command command_bench = {"bench", "measure throughput, and what limits it", help, run};
