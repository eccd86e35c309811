/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <stdio.h>
#include <string.h>

#include "json.h"
#include "message.h"
#include "text.h"
#include "unit.h"

static const struct choice limits[] = {{"unknown", PSTK_LIMIT_UNKNOWN},
                                       {"storage", PSTK_LIMIT_STORAGE},
                                       {"decode", PSTK_LIMIT_DECODE},
                                       {"copy", PSTK_LIMIT_COPY},
                                       {"consumer", PSTK_LIMIT_CONSUMER},
                                       {"reader", PSTK_LIMIT_READER},
                                       {NULL, 0}};
static const struct choice rungs[] = {{"no_io_uring", PSTK_RUNG_NO_IO_URING},
                                      {"no_fixed_buffers", PSTK_RUNG_NO_FIXED_BUFFERS},
                                      {"no_fixed_files", PSTK_RUNG_NO_FIXED_FILES},
                                      {"no_direct", PSTK_RUNG_NO_DIRECT},
                                      {"no_single_issuer", PSTK_RUNG_NO_SINGLE_ISSUER},
                                      {"not_pinned", PSTK_RUNG_NOT_PINNED},
                                      {"not_bound", PSTK_RUNG_NOT_BOUND},
                                      {"not_page_locked", PSTK_RUNG_NOT_PAGE_LOCKED},
                                      {NULL, 0}};
/* The same for people. */
static const struct choice steps[] = {
    {"io_uring is refused here, so threads read", PSTK_RUNG_NO_IO_URING},
    {"buffers are not registered (RLIMIT_MEMLOCK; see `penstock doctor`)",
     PSTK_RUNG_NO_FIXED_BUFFERS},
    {"files are not registered", PSTK_RUNG_NO_FIXED_FILES},
    {"the file system refuses O_DIRECT, so the page cache is used", PSTK_RUNG_NO_DIRECT},
    {"the kernel lacks single issuer (Linux 6.0) or deferred task work (6.1) for io_uring",
     PSTK_RUNG_NO_SINGLE_ISSUER},
    {"threads could not be pinned to cores", PSTK_RUNG_NOT_PINNED},
    {"memory could not be bound to its node", PSTK_RUNG_NOT_BOUND},
    {NULL, 0}};

static double per_second(const struct report *r, double n)
{
    return r->seconds > 0 ? n / r->seconds : 0;
}

/* Does the device have slots of its own? */
static int on_device(const struct report *r)
{
    return r->stats.n_device_slots > 0;
}

/* Bytes per second while copies to the device ran; 0: none was measured. */
static double copy_rate(const struct pstk_stats *s)
{
    return s->copy_ns ? (double)s->copy_bytes * 1e9 / (double)s->copy_ns : 0;
}

/* Part of its time that the consumer's stream waited for batches, in percent; negative: not
 * measured. */
static double starved_percent(const struct pstk_stats *s)
{
    double all = (double)s->stream_starved_ns + (double)s->stream_used_ns;
    return all > 0 ? (double)s->stream_starved_ns * 100 / all : -1;
}

/* A ceiling beside what was reached; measured 0 = not measured. */
struct ceiling {
    const char *name;  /* JSON */
    const char *title; /* people */
    double measured, reached;
    int bytes; /* 1: bytes, 0: samples */
};

#define N_CEILINGS 5
#define ADVICE_SIZE 256

static void list_ceilings(const struct report *r, struct ceiling c[N_CEILINGS])
{
    const struct pstk_ceilings *m = &r->ceilings;
    double samples = per_second(r, (double)r->n_samples);
    c[0] = (struct ceiling){"storage", "storage, raw reads of these records",
                            m->storage_bytes_per_second,
                            per_second(r, (double)r->stats.bytes_delivered), 1};
    c[1] = (struct ceiling){"decode", "decode, libjpeg-turbo alone, whole images",
                            m->decode_samples_per_second, samples, 0};
    c[2] = (struct ceiling){"memory", "memory, copies of the size of the batches",
                            m->memory_bytes_per_second, per_second(r, (double)r->bytes_out), 1};
    c[3] = (struct ceiling){"loader", "loader, nothing decoded", m->loader_samples_per_second,
                            samples, 0};
    c[4] = (struct ceiling){"copy", "copy, plain page-locked, to the device",
                            m->copy_bytes_per_second, copy_rate(&r->stats), 1};
}

/* What limits, and what to change: one sentence. */
static void advise(const struct report *r, char *text, size_t size)
{
    uint32_t n = r->stats.n_threads;
    switch (r->stats.limit) {
    case PSTK_LIMIT_STORAGE:
        snprintf(text, size,
                 "storage: the workers wait for reads; a faster disk, or enough memory to hold the "
                 "data set in the page cache, would help");
        return;
    case PSTK_LIMIT_DECODE:
        if (n < r->n_usable)
            snprintf(text, size,
                     "decode: the workers are busy all the time, but only %u of %u cores are used; "
                     "try --threads %u",
                     n, r->n_usable, r->n_usable);
        else
            snprintf(text, size,
                     "decode: the workers are busy all the time; more cores, or smaller images in "
                     "the data set, would help");
        return;
    case PSTK_LIMIT_COPY:
        snprintf(text, size, "copy: batches wait for their way to the device; %s",
                 r->stats.page_locked
                     ? "smaller images, or a wider link to the device (`penstock doctor` tells "
                       "what it has), would help"
                     : "page-locked slots would help: fewer --slots or smaller batches, or a "
                       "container that may lock more memory");
        return;
    case PSTK_LIMIT_CONSUMER:
        snprintf(text, size,
                 "consumer: batches wait to be taken, so %s is what limits, not the loader%s",
                 on_device(r) ? "the work on the device" : "what takes them",
                 r->with_digest     ? " (here it is the digest)"
                 : (r->step_ms > 0) ? " (here it is --step-ms)"
                                    : "");
        return;
    case PSTK_LIMIT_READER:
        snprintf(text, size,
                 "reader: its thread is always busy with the cost of single records; "
                 "larger records would help");
        return;
    default:
        snprintf(text, size, "too short a run to say; give it longer with --seconds 10");
    }
}

/* ---- for people ---------------------------------------------------------------------------- */

static void print_head(const struct report *r)
{
    const struct pipeline *p = r->pipeline;
    char n[UNIT_SIZE], shards[UNIT_SIZE], bytes[UNIT_SIZE];
    text_print(stdout, p->path);
    printf(": %s sample%s, %s in %s shard%s\n", unit_count(n, p->info.n_samples),
           p->info.n_samples == 1 ? "" : "s", unit_bytes(bytes, (double)p->info.bytes),
           unit_count(shards, p->info.n_shards), p->info.n_shards == 1 ? "" : "s");
    if (p->image_field >= 0)
        printf("%s crop to %u x %u, %s %s, ", option_choice_name(pipeline_crops, p->crop), p->size,
               p->size, option_choice_name(pipeline_dtypes, p->dtype),
               option_choice_name(pipeline_layouts, p->layout));
    printf("%s order, batches of %u, %u slots, %u worker%s\n",
           option_choice_name(pipeline_orders, p->order), p->batch_size, r->stats.n_slots,
           r->stats.n_threads, r->stats.n_threads == 1 ? "" : "s");
}

static void print_throughput(const struct report *r)
{
    char a[UNIT_SIZE], b[UNIT_SIZE], c[UNIT_SIZE], d[UNIT_SIZE];
    printf("\n  %s samples/s   %s/s read\n",
           unit_count(a, (uint64_t)(per_second(r, (double)r->n_samples) + 0.5)),
           unit_bytes(b, per_second(r, (double)r->stats.bytes_delivered)));
    printf("  %s samples in %s batches, %s", unit_count(a, r->n_samples),
           unit_count(b, r->n_batches), unit_seconds(c, r->seconds));
    if (r->stats.n_replaced)
        printf("; %s bad sample%s replaced", unit_count(d, r->stats.n_replaced),
               r->stats.n_replaced == 1 ? " was" : "s were");
    putchar('\n');
    if (r->with_digest)
        printf("  digest %08x\n", r->digest);
}

static void print_stage(const char *name, const struct pstk_stage_stats *s)
{
    double all = (double)s->busy_ns + (double)s->starved_ns + (double)s->blocked_ns;
    double percent = all > 0 ? 100 / all : 0;
    char items[UNIT_SIZE];
    printf("  %-10s  %7u  %6.0f %%  %6.0f %%  %6.0f %%  %13s\n", name, s->n_threads,
           (double)s->busy_ns * percent, (double)s->starved_ns * percent,
           (double)s->blocked_ns * percent, unit_count(items, s->n_items));
}

static void print_stages(const struct report *r)
{
    printf("\n  %-10s  %7s  %8s  %8s  %8s  %13s\n", "stage", "threads", "busy", "starved",
           "blocked", "items");
    print_stage("reader", &r->stats.stage_reader);
    print_stage("workers", &r->stats.stage_workers);
    if (on_device(r))
        print_stage("uploader", &r->stats.stage_uploader);
    print_stage("consumer", &r->stats.stage_consumer);
}

static void print_machine(const struct report *r)
{
    const struct pstk_stats *s = &r->stats;
    char a[UNIT_SIZE], b[UNIT_SIZE], c[UNIT_SIZE], d[UNIT_SIZE], e[UNIT_SIZE];
    printf("\n  reader      %s, %s, buffers %s, %u reads deep\n",
           option_choice_name(pipeline_readers, s->reader), s->direct ? "direct" : "buffered",
           s->registered ? "registered" : "not registered", s->queue_depth);
    for (const struct choice *step = steps; step->name; step++)
        if (s->rungs & step->value)
            printf("              %s\n", step->name);
    printf("  memory      %s at its peak\n", unit_bytes(a, (double)r->rss_peak));
    printf("              slots %s, reads %s, index %s, scratch up to %s\n",
           unit_bytes(b, (double)s->slot_memory), unit_bytes(c, (double)s->io_memory),
           unit_bytes(d, (double)s->index_memory), unit_bytes(e, (double)s->scratch_memory));
}

static void print_device(const struct report *r)
{
    const struct pstk_stats *s = &r->stats;
    char a[UNIT_SIZE], b[UNIT_SIZE];
    printf("  device      CUDA %d, %.36s: %u slots, %s of its memory\n", r->pipeline->device_index,
           r->device.name, s->n_device_slots, unit_bytes(a, (double)s->device_memory));
    printf("              %s\n",
           s->page_locked ? "host slots are page-locked, so copies run straight from them"
                          : "host slots could not be page-locked, so copies take a step more");
    if (s->copy_ns)
        printf("              %s copied to it, at %s/s while copying\n",
               unit_bytes(a, (double)s->copy_bytes), unit_bytes(b, copy_rate(s)));
    if (starved_percent(s) >= 0)
        printf("              its stream waited for batches %.1f %% of its time\n",
               starved_percent(s));
}

static void rate_text(char text[2 * UNIT_SIZE], double rate, int bytes)
{
    char number[UNIT_SIZE];
    if (bytes)
        snprintf(text, 2 * UNIT_SIZE, "%s/s", unit_bytes(number, rate));
    else
        snprintf(text, 2 * UNIT_SIZE, "%s/s", unit_count(number, (uint64_t)(rate + 0.5)));
}

static void print_ceilings(const struct report *r)
{
    struct ceiling c[N_CEILINGS];
    char measured[2 * UNIT_SIZE], reached[2 * UNIT_SIZE];
    list_ceilings(r, c);
    printf("\n  %-42s  %12s  %12s  %6s\n", "ceiling", "measured", "reached", "ratio");
    for (int i = 0; i < N_CEILINGS; i++) {
        if (c[i].measured <= 0)
            continue;
        rate_text(measured, c[i].measured, c[i].bytes);
        rate_text(reached, c[i].reached, c[i].bytes);
        printf("  %-42s  %12s  %12s  %6.2f\n", c[i].title, measured, reached,
               c[i].reached / c[i].measured);
    }
}

/* Print a sentence in lines of at most 66 letters, aligned with what stands above. */
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

int report_text(const struct report *r)
{
    char advice[ADVICE_SIZE];
    advise(r, advice, sizeof advice);
    print_head(r);
    print_throughput(r);
    print_stages(r);
    print_machine(r);
    if (on_device(r))
        print_device(r);
    if (r->with_ceilings)
        print_ceilings(r);
    print_wrapped("limit", advice);
    return message_finish(STATUS_OK);
}

/* ---- as JSON ------------------------------------------------------------------------------- */

static void put_stage(struct json_t *stages, const char *name, const struct pstk_stage_stats *s)
{
    struct json_t *o = json_make_object();
    json_put_count(o, "busy_ns", s->busy_ns);
    json_put_count(o, "starved_ns", s->starved_ns);
    json_put_count(o, "blocked_ns", s->blocked_ns);
    json_put_count(o, "items", s->n_items);
    json_put_count(o, "threads", s->n_threads);
    json_put(stages, name, o);
}

static struct json_t *reader_json(const struct pstk_stats *s)
{
    struct json_t *o = json_make_object(), *taken = json_make_array();
    json_put_text(o, "backend", option_choice_name(pipeline_readers, s->reader));
    json_put_bool(o, "direct", s->direct != 0);
    json_put_bool(o, "registered", s->registered != 0);
    json_put_count(o, "queue_depth", s->queue_depth);
    json_put_count(o, "reads", s->n_reads);
    for (const struct choice *rung = rungs; rung->name; rung++)
        if (s->rungs & rung->value)
            json_append_text(taken, rung->name);
    json_put(o, "rungs", taken);
    return o;
}

static struct json_t *memory_json(const struct pstk_stats *s)
{
    struct json_t *o = json_make_object();
    json_put_count(o, "slots", s->slot_memory);
    json_put_count(o, "io", s->io_memory);
    json_put_count(o, "index", s->index_memory);
    json_put_count(o, "scratch", s->scratch_memory);
    return o;
}

static struct json_t *device_json(const struct report *r)
{
    const struct pstk_stats *s = &r->stats;
    struct json_t *o = json_make_object();
    json_put_text(o, "kind", "cuda");
    json_put_count(o, "index", (uint64_t)r->pipeline->device_index);
    json_put_text(o, "name", r->device.name);
    json_put_count(o, "slots", s->n_device_slots);
    json_put_count(o, "memory", s->device_memory);
    json_put_bool(o, "page_locked", s->page_locked != 0);
    json_put_count(o, "copy_bytes", s->copy_bytes);
    json_put_count(o, "copy_ns", s->copy_ns);
    json_put_real(o, "copy_bytes_per_second", copy_rate(s));
    json_put_count(o, "stream_used_ns", s->stream_used_ns);
    json_put_count(o, "stream_starved_ns", s->stream_starved_ns);
    if (starved_percent(s) >= 0)
        json_put_real(o, "starved_percent", starved_percent(s));
    else
        json_put_null(o, "starved_percent");
    return o;
}

static void put_ceilings(struct json_t *o, const struct report *r)
{
    struct ceiling c[N_CEILINGS];
    struct json_t *ceilings = json_make_object(), *ratios = json_make_object();
    const struct pstk_ceilings *m = &r->ceilings;
    list_ceilings(r, c);
    json_put_real(ceilings, "storage_bytes_per_second", m->storage_bytes_per_second);
    json_put_real(ceilings, "storage_reads_per_second", m->storage_reads_per_second);
    json_put_real(ceilings, "decode_samples_per_second", m->decode_samples_per_second);
    json_put_real(ceilings, "memory_bytes_per_second", m->memory_bytes_per_second);
    json_put_real(ceilings, "loader_samples_per_second", m->loader_samples_per_second);
    if (on_device(r)) {
        json_put_real(ceilings, "copy_bytes_per_second", m->copy_bytes_per_second);
        json_put_count(ceilings, "copy_block_size", m->copy_block_size);
    }
    for (int i = 0; i < N_CEILINGS; i++)
        if (c[i].measured > 0)
            json_put_real(ratios, c[i].name, c[i].reached / c[i].measured);
    json_put(o, "ceilings", ceilings);
    json_put(o, "ratios", ratios);
}

int report_json(const struct report *r)
{
    const struct pstk_stats *s = &r->stats;
    struct json_t *o = json_make_object(), *stages = json_make_object();
    char text[ADVICE_SIZE];
    json_put_text(o, "path", r->pipeline->path);
    json_put_real(o, "samples_per_second", per_second(r, (double)r->n_samples));
    json_put_count(o, "samples", r->n_samples);
    json_put_real(o, "seconds", r->seconds);
    json_put_count(o, "bytes_read", s->bytes_delivered);
    json_put_count(o, "bytes_out", r->bytes_out);
    json_put_count(o, "threads", s->n_threads);
    json_put_count(o, "slots", s->n_slots);
    json_put_count(o, "batch_size", r->pipeline->batch_size);
    json_put_count(o, "batches", r->n_batches);
    json_put_count(o, "n_replaced", s->n_replaced);
    json_put_count(o, "n_palette_images", s->n_palette_images);
    snprintf(text, sizeof text, "%08x", r->digest);
    json_put_text(o, "digest", r->with_digest ? text : NULL);
    json_put_count(o, "rss_peak_bytes", r->rss_peak);
    json_put(o, "memory", memory_json(s));
    json_put(o, "reader", reader_json(s));
    put_stage(stages, "reader", &s->stage_reader);
    put_stage(stages, "workers", &s->stage_workers);
    if (on_device(r))
        put_stage(stages, "uploader", &s->stage_uploader);
    put_stage(stages, "consumer", &s->stage_consumer);
    json_put(o, "stages", stages);
    if (on_device(r))
        json_put(o, "device", device_json(r));
    else
        json_put_null(o, "device"); /* the host */
    json_put_real(o, "step_ms", r->step_ms);
    if (r->with_ceilings)
        put_ceilings(o, r);
    else
        json_put_null(o, "ceilings");
    json_put_text(o, "limit", option_choice_name(limits, s->limit));
    advise(r, text, sizeof text);
    json_put_text(o, "advice", text);
    return json_print(o, STATUS_OK);
}
