/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the path could do alone, on the same data and machine. L4. Each ceiling is
 * measured by the simplest code that could be right, not by the path that it is held against.
 */
#include <penstock/penstock.h>

#include "base/clock.h"
#include "dataset/dataset.h"
#include "device/device.h"
#include "base/error.h"
#include "format/files.h"
#include "image/image.h"
#include "sample/layout.h"
#include "machine/numa.h"
#include "order/order.h"
#include "reader/reader.h"
#include "loader/settings.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define N_EXTENTS 524288u        /* records whose reads are repeated, at most */
#define RUN 256u                 /* neighbours among them */
#define N_IMAGES 256u            /* images held in memory for the decode ceiling, at most */
#define IMAGE_BYTES (256u << 20) /* of them, at most */
#define READ_MAX (1u << 30)      /* bytes of a read: a larger record's start stands for it */
#define COPY_MAX (256u << 20)    /* bytes of a copy to a device, at most */
#define COPY_BYTES (64u << 20)   /* a thread's block for memcpy: past any private cache */

/* ---- storage --------------------------------------------------------------------------------- */

struct storage {
    struct pstk__source *source;
    struct pstk__files *files;
    struct pstk__reader *reader;
    struct pstk__extent *extents; /* n */
    struct pstk__read *reads;     /* depth */
    uint8_t *memory;              /* depth buffers of `room` bytes */
    uint64_t room;
    uint32_t n, depth, rungs;
    struct pstk__order order; /* of the extents */
    uint64_t align;           /* of direct reads; 1 when buffered */
};

/* Read and check the index page of a record. */
static int storage_page(struct storage *t, const struct pstk__extent *at, uint8_t *page,
                        struct pstk_error *err)
{
    uint32_t file;
    int fd, r = pstk__files_acquire(t->files, at->shard, &file, &fd, err);
    if (r < 0)
        return r;
    ssize_t n = pread(fd, page, PSTK__PAGE_SIZE, (off_t)at->offset);
    pstk__files_release(t->files, file);
    if (n != PSTK__PAGE_SIZE)
        return pstk__fail(err, PSTK_EIO, PSTK_STAGE_READ, "could not read an index page");
    return t->source->format->page_check(t->source, at, page, err);
}

/* Extents of up to N_EXTENTS records: runs of RUN records from random places, so that one page
 * tells of many. They are read in random order. */
static int storage_extents(struct storage *t, struct pstk_error *err)
{
    const struct pstk__format *f = t->source->format;
    _Alignas(4096) uint8_t page[PSTK__PAGE_SIZE];
    uint64_t n_runs = (t->source->n_samples + RUN - 1) / RUN, run = 0;
    struct pstk__extent have = {.size = 0};
    struct pstk__order order;
    pstk__order_init(&order, PSTK_ORDER_FULL, n_runs, 1, 0);
    for (uint32_t n = 0; n < t->n && run < n_runs; run++) {
        uint64_t id = pstk__order_at(&order, run) * RUN, end = id + RUN;
        for (; id < end && id < t->source->n_samples && n < t->n; id++, n++) {
            struct pstk__extent at, *e = &t->extents[n];
            uint32_t shard;
            uint64_t record;
            int r = 0;
            f->locate(t->source, id, &shard, &record);
            f->page(t->source, shard, record, &at);
            if (at.size && (at.shard != have.shard || at.offset != have.offset || !have.size))
                r = storage_page(t, &at, page, err);
            have = at;
            if (r == 0)
                r = f->extent(t->source, shard, record, page, 0, e, err);
            if (r < 0)
                return r;
            e->size = e->size < READ_MAX ? e->size : READ_MAX;
            t->room = e->size + 2 * t->align > t->room ? e->size + 2 * t->align : t->room;
        }
    }
    return 0;
}

static int storage_queue(struct storage *t, uint32_t i, struct pstk__read *read)
{
    const struct pstk__extent *e = &t->extents[pstk__order_at(&t->order, i % t->n)];
    uint64_t begin = e->offset / t->align * t->align;
    uint64_t end = (e->offset + e->size + t->align - 1) / t->align * t->align;
    uint32_t file;
    int fd, r = pstk__files_acquire(t->files, e->shard, &file, &fd, NULL);
    if (r < 0)
        return r;
    if (r == 1)
        t->reader->ops->set_file(t->reader, file, fd);
    read->fd = fd;
    read->file = file;
    read->offset = begin;
    read->size = (uint32_t)(end - begin);
    t->reader->ops->queue(t->reader, read);
    return 0;
}

static int storage_failed(struct pstk_error *err)
{
    return pstk__fail(err, PSTK_EIO, PSTK_STAGE_READ, "the reads of the storage ceiling failed");
}

static int storage_run(struct storage *t, double seconds, struct pstk_ceilings *out,
                       struct pstk_error *err)
{
    uint64_t start = pstk__clock_ns(), until = start + (uint64_t)(seconds * 1e9), bytes = 0, n = 0;
    struct pstk__read *done[64];
    uint32_t next = 0, in_flight = 0;
    for (; next < t->depth; next++, in_flight++) {
        struct pstk__read *r = &t->reads[next];
        *r = (struct pstk__read){.buffer = t->memory + next * t->room, .fixed = 1};
        if (storage_queue(t, next, r) < 0)
            return storage_failed(err);
    }
    int failed = 0;
    while (in_flight > 0) {
        if (t->reader->ops->submit(t->reader) < 0)
            return storage_failed(err);
        int n_done = t->reader->ops->reap(t->reader, done, 64, 1);
        if (n_done < 0)
            return storage_failed(err);
        int more = pstk__clock_ns() < until && !failed;
        for (int i = 0; i < n_done; i++) {
            failed |= done[i]->result < 0;
            bytes += done[i]->result > 0 ? (uint64_t)done[i]->result : 0;
            n++;
            pstk__files_release(t->files, done[i]->file);
            in_flight--;
            if (more && storage_queue(t, next++, done[i]) == 0)
                in_flight++;
        }
    }
    double passed = (double)(pstk__clock_ns() - start) / 1e9;
    out->storage_bytes_per_second = failed ? 0 : (double)bytes / passed;
    out->storage_reads_per_second = failed ? 0 : (double)n / passed;
    return 0;
}

static void storage_close(struct storage *t)
{
    const int keeps_memory = t->reader && t->reader->n_lost > 0;
    if (t->reader)
        t->reader->ops->close(t->reader);
    pstk__files_close(t->files);
    if (t->memory && !keeps_memory)
        munmap(t->memory, t->room * t->depth);
    free(t->reads);
    free(t->extents);
}

/* Offset alignment of direct reads, as the loader would choose it. */
static uint64_t direct_align(const struct pstk__source *source)
{
    char path[4096];
    uint32_t memory_align, offset_align;
    if (source->format->shard_path(source, 0, path, sizeof path) < 0 ||
        pstk__direct_align(path, &memory_align, &offset_align) < 0 || offset_align == 0)
        return 4096;
    return offset_align;
}

static int storage_open(struct storage *t, const struct pstk_settings *s, int direct,
                        struct pstk_error *err)
{
    uint32_t n_files = pstk__files_capacity(t->source->n_shards, 1);
    t->depth = s->queue_depth && s->queue_depth <= 4096 ? s->queue_depth : 128;
    if (n_files < t->source->n_shards && t->depth > n_files)
        t->depth = n_files; /* every read in flight pins a file */
    t->align = direct ? direct_align(t->source) : 1;
    t->room = 4096;
    t->n = t->source->n_samples < N_EXTENTS ? (uint32_t)t->source->n_samples : N_EXTENTS;
    pstk__order_init(&t->order, PSTK_ORDER_FULL, t->n, 2, 0);
    t->extents = calloc(t->n, sizeof *t->extents);
    t->reads = calloc(t->depth, sizeof *t->reads);
    if (!t->extents || !t->reads)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the ceilings");
    int r = pstk__files_open(&t->files, t->source, n_files, direct, &t->rungs, err);
    if (r == 0)
        r = storage_extents(t, err);
    if (r < 0)
        return r;
    t->room = (t->room + 4095) / 4096 * 4096;
    uint64_t budget = pstk__cgroup_memory("/") / 8;
    while (t->depth > 1 && t->room * t->depth > budget)
        t->depth /= 2;
    void *memory =
        mmap(NULL, t->room * t->depth, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the ceilings");
    t->memory = memory;
    struct pstk__reader_config c = {.kind = s->reader,
                                    .depth = t->depth,
                                    .n_files = n_files,
                                    .buffers = memory,
                                    .buffers_size = t->room * t->depth};
    return pstk__reader_open(&t->reader, &c, &t->rungs, err);
}

static int measure_storage(struct pstk__source *source, const struct pstk_settings *s,
                           double seconds, struct pstk_ceilings *out, struct pstk_error *err)
{
    struct storage t = {.source = source};
    int direct = s->io == PSTK_IO_DIRECT ||
                 (s->io == PSTK_IO_AUTO && source->bytes > pstk__cgroup_memory("/") / 2);
    int r = storage_open(&t, s, direct, err);
    if (r == 0)
        r = storage_run(&t, seconds, out, err);
    storage_close(&t);
    return r;
}

/* ---- decode and memory: threads that do one thing ----------------------------------------------
 */

struct images {
    uint32_t n;
    struct {
        void *data;
        uint64_t size;
        struct pstk__image_info info;
    } image[N_IMAGES];
};

struct bench_thread {
    pthread_t thread;
    const struct images *images; /* NULL: copy memory instead */
    uint64_t ns;                 /* how long to run, once it is ready */
    uint32_t number;
    double rate; /* out: images or bytes per second */
};

static void ignore_rows(void *user, const uint8_t *rgb, uint64_t stride, uint32_t n_rows)
{
    (void)user;
    (void)rgb;
    (void)stride;
    (void)n_rows;
}

static double decode_images(const struct images *set, uint32_t first, uint64_t ns)
{
    const struct pstk__row_sink sink = {.rows = ignore_rows};
    uint32_t width = 1, height = 1;
    for (uint32_t i = 0; i < set->n; i++) {
        width = set->image[i].info.width > width ? set->image[i].info.width : width;
        height = set->image[i].info.height > height ? set->image[i].info.height : height;
    }
    struct pstk__arena arena;
    struct pstk__image_state *state = NULL;
    double rate = 0;
    if (pstk__arena_open(&arena, pstk__image_scratch(width, height)) < 0)
        return 0;
    if (pstk__image_state_open(&state, &arena, PSTK_VARIANT_AUTO, NULL) == 0) {
        uint64_t start = pstk__clock_ns(), until = start + ns, now = start, n = 0;
        size_t mark = arena.used;
        for (; now < until; n++, now = pstk__clock_ns()) {
            uint32_t i = (first + (uint32_t)n) % set->n;
            const struct pstk__image_info *info = &set->image[i].info;
            struct pstk__box box = {.width = info->width, .height = info->height};
            pstk__image_decoder(info->encoding)
                ->decode(state, set->image[i].data, set->image[i].size, info, &box, &sink, NULL);
            pstk__arena_reset(&arena, mark);
        }
        rate = n ? (double)n * 1e9 / (double)(now - start) : 0;
    }
    pstk__image_state_close(state);
    pstk__arena_close(&arena);
    return rate;
}

static double copy_memory(uint64_t ns)
{
    uint8_t *from = malloc(COPY_BYTES), *to = malloc(COPY_BYTES);
    double rate = 0;
    if (from && to) {
        memset(from, 1, COPY_BYTES);
        memset(to, 2, COPY_BYTES);
        uint64_t start = pstk__clock_ns(), until = start + ns, now = start, n = 0;
        for (; now < until; n++, now = pstk__clock_ns()) {
            memcpy(to, from, COPY_BYTES);
            from[n % COPY_BYTES] = to[0]; /* keeps the copy from being left out */
        }
        rate = n ? (double)n * COPY_BYTES * 1e9 / (double)(now - start) : 0;
    }
    free(from);
    free(to);
    return rate;
}

static void *bench_body(void *argument)
{
    struct bench_thread *b = argument;
    b->rate = b->images ? decode_images(b->images, b->number * 7919u, b->ns) : copy_memory(b->ns);
    return NULL;
}

/* Sum of the rates of n threads that all run for `seconds`. */
static double run_threads(const struct images *images, uint32_t n, double seconds)
{
    struct bench_thread *threads = calloc(n, sizeof *threads);
    uint64_t ns = (uint64_t)(seconds * 1e9);
    double rate = 0;
    uint32_t started = 0;
    for (; threads && started < n; started++) {
        threads[started] = (struct bench_thread){.images = images, .ns = ns, .number = started};
        if (pthread_create(&threads[started].thread, NULL, bench_body, &threads[started]) != 0)
            break;
    }
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(threads[i].thread, NULL);
        rate += threads[i].rate;
    }
    free(threads);
    return started == n ? rate : 0;
}

/* Images of field `field`, read whole into memory. */
static void load_images(struct images *set, struct pstk_dataset *d, uint32_t field)
{
    const struct pstk__source *s = pstk__dataset_source(d);
    struct pstk__order order;
    uint64_t bytes = 0;
    pstk__order_init(&order, PSTK_ORDER_FULL, s->n_samples, 2, 0);
    for (uint64_t k = 0; k < s->n_samples && set->n < N_IMAGES && bytes < IMAGE_BYTES; k++) {
        struct pstk_value_info value = {.size = sizeof value};
        uint32_t i = set->n;
        if (pstk_dataset_get(d, pstk__order_at(&order, k), field, &set->image[i].data,
                             &set->image[i].size, &value, NULL) < 0)
            continue;
        if (value.encoding == PSTK_ENCODING_JPEG &&
            pstk__image_probe(set->image[i].data, set->image[i].size, PSTK__MAX_PIXELS,
                              &set->image[i].info, NULL) == 0) {
            bytes += set->image[i].size;
            set->n++;
        } else {
            pstk_free(set->image[i].data);
        }
    }
}

static double measure_decode(struct pstk_dataset *d, uint32_t field, uint32_t n_threads,
                             double seconds)
{
    struct images *set = calloc(1, sizeof *set);
    if (!set)
        return 0;
    load_images(set, d, field);
    double rate = set->n ? run_threads(set, n_threads, seconds) : 0;
    for (uint32_t i = 0; i < set->n; i++)
        pstk_free(set->image[i].data);
    free(set);
    return rate;
}

/* ---- the loader itself -------------------------------------------------------------------------
 */

static int decode_nothing(void *user, const struct pstk_sample *sample, void *row,
                          uint64_t row_size)
{
    (void)user, (void)sample;
    memset(row, 0, row_size);
    return 0;
}

static double measure_loader(const struct pstk_settings *s, const char *field, double seconds)
{
    struct pstk_output output = {.name = "nothing",
                                 .field = field,
                                 .kind = PSTK_OUTPUT_CALLBACK,
                                 .dtype = PSTK_U8,
                                 .n_dims = 1,
                                 .shape = {1},
                                 .stored = 1,
                                 .decode = decode_nothing};
    struct pstk_settings t = *s;
    struct pstk_loader *loader;
    struct pstk_batch *batch;
    t.outputs = &output;
    t.n_outputs = 1;
    t.output_size = sizeof output;
    t.with_crops = 0;
    t.on_bad_sample = NULL; /* reports are for the batches that the caller takes */
    t.device = PSTK_HOST;
    t.device_index = 0;
    if (pstk_open(&loader, &t, NULL) < 0)
        return 0;
    uint64_t start = pstk__clock_ns(), until = start + (uint64_t)(seconds * 1e9), n = 0;
    int r = 0;
    while (pstk__clock_ns() < until && (r = pstk_next(loader, &batch, NULL, -1, NULL)) >= 0) {
        if (r == 0)
            continue;
        n += batch->n_valid;
        pstk_release(&batch, NULL);
    }
    double rate = (double)n * 1e9 / (double)(pstk__clock_ns() - start);
    pstk_close(&loader);
    return r < 0 ? 0 : rate;
}

/* ---- copies to a device ------------------------------------------------------------------------
 */

/* Bytes of the largest copy that a batch takes: of its deferred rows, of its other dense ones, or
 * of a ragged output. */
static uint64_t largest_copy(const struct pstk_settings *s, const struct pstk__source *source)
{
    struct pstk__plan *plan;
    struct pstk__layout layout;
    if (pstk__plan_open(&plan, s, source, NULL) < 0)
        return 0;
    pstk__layout_init(&layout, plan, s->with_crops, 0);
    uint64_t size = layout.size == UINT64_MAX ? 0 : layout.arrival_size;
    if (layout.size != UINT64_MAX && layout.dense_size - size > size)
        size = layout.dense_size - size;
    for (uint32_t i = 0; i < plan->n_outputs; i++) {
        const struct pstk__output *o = &plan->outputs[i];
        if (pstk__output_is_ragged(o) && o->budget > size)
            size = o->budget;
    }
    pstk__plan_close(plan);
    return size;
}

/* Where copies cannot be measured (no memory for them beside the loader's) they are not. */
static void measure_copies(const struct pstk_settings *s, const struct pstk__source *source,
                           double seconds, struct pstk_ceilings *out)
{
    struct pstk_copy_rates rates = {.size = sizeof rates};
    uint64_t size = largest_copy(s, source);
    if (size > COPY_MAX)
        size = COPY_MAX;
    if (size == 0 ||
        pstk_measure_copies(s->device, s->device_index, size, seconds, &rates, NULL) < 0)
        return;
    out->copy_bytes_per_second = rates.to_device;
    out->copy_block_size = size;
}

/* ---- all ---------------------------------------------------------------------------------------
 */

/* The first output with a field that is an image, else the first output. */
static const char *ceiling_field(const struct pstk_settings *s, const struct pstk__source *source,
                                 uint32_t *field)
{
    const char *name = NULL;
    for (uint32_t i = 0; i < s->n_outputs; i++) {
        const struct pstk_output *o =
            (const void *)((const char *)s->outputs + (size_t)i * s->output_size);
        int f = o->field ? pstk__schema_find(&source->schema, o->field) : -1;
        if (f < 0)
            continue;
        int image = source->schema.fields[f].kind == PSTK_FIELD_IMAGE;
        if (!name || image) {
            name = o->field;
            *field = (uint32_t)f;
        }
        if (image)
            break;
    }
    return name;
}

/* Workers that a loader with these settings has. */
static uint32_t ceiling_threads(const struct pstk_settings *s)
{
    struct pstk__numa *numa;
    struct pstk__numa_config c = {.local_rank = s->local_rank,
                                  .local_world = s->local_world ? s->local_world : 1,
                                  .n_workers = s->n_threads};
    if (pstk__numa_open(&numa, &c, NULL) < 0)
        return s->n_threads ? s->n_threads : 1;
    uint32_t n = pstk__numa_n_workers(numa);
    pstk__numa_close(numa);
    return n;
}

/* Each for its share of the time: those that every loader has, and one more on a device. */
static int measure_all(const struct pstk_settings *s, struct pstk_dataset *d, double seconds,
                       struct pstk_ceilings *c, struct pstk_error *err)
{
    const struct pstk__source *source = pstk__dataset_source(d);
    const double share = seconds / (s->device == PSTK_HOST ? 4 : 5);
    const uint32_t n_threads = ceiling_threads(s);
    struct pstk__source *own;
    uint32_t field = 0;
    const char *name = ceiling_field(s, source, &field);
    int r = pstk__source_open(&own, s->path, err);
    if (r < 0)
        return r;
    r = measure_storage(own, s, share, c, err);
    pstk__source_close(own);
    if (r < 0)
        return r;
    if (name && source->schema.fields[field].kind == PSTK_FIELD_IMAGE)
        c->decode_samples_per_second = measure_decode(d, field, n_threads, share);
    c->memory_bytes_per_second = run_threads(NULL, n_threads, share);
    if (name)
        c->loader_samples_per_second = measure_loader(s, name, share);
    if (s->device != PSTK_HOST)
        measure_copies(s, source, share, c);
    return 0;
}

int pstk_measure_ceilings(const struct pstk_settings *settings, double seconds,
                          struct pstk_ceilings *ceilings, struct pstk_error *err)
{
    if (!ceilings || ceilings->size < sizeof ceilings->size || !(seconds > 0))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "ceilings: seconds or size is not set");
    struct pstk_dataset *d;
    struct pstk_ceilings c = {.size = sizeof c};
    struct pstk_settings own_settings = {0}, *s = &own_settings;
    char bus_id[PSTK__BUS_ID_SIZE];
    int r = pstk__settings_copy(s, settings, err);
    if (r == 0)
        r = pstk__settings_check(s, err);
    if (r == 0)
        r = pstk__device_ops(s->device)->find(s->device_index, bus_id, err);
    if (r == 0)
        r = pstk_dataset_open(&d, s->path, err);
    if (r < 0)
        return r;
    r = measure_all(s, d, seconds, &c, err);
    pstk_dataset_close(&d);
    if (r < 0)
        return r;
    uint32_t size = ceilings->size;
    memset(ceilings, 0, size);
    memcpy(ceilings, &c, size < sizeof c ? size : sizeof c);
    ceilings->size = size;
    return 0;
}
