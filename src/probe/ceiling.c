/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ceiling: measures the rate of each part of the path alone, on the same data and machine. The
 * simplest correct code measures each ceiling, not the code of the path that it is compared with.
 */
#include <penstock/foreign.h>
#include <penstock/penstock.h>

#include "base/clock.h"
#include "dataset/dataset.h"
#include "device/device.h"
#include "base/error.h"
#include "format/files.h"
#include "image/image.h"
#include "sample/layout.h"
#include "machine/cgroup.h"
#include "machine/numa.h"
#include "order/order.h"
#include "reader/reader.h"
#include "loader/settings.h"
#include "probe/kernels.h"
#include "probe/resident.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define N_EXTENTS 524288u        /* maximum records whose reads are repeated */
#define RUN 256u                 /* neighbouring records in a run of these */
#define N_PROBED 131072u         /* maximum extents that are checked against the page cache */
#define N_COLD 65536u            /* maximum extents outside the page cache, each read once */
#define N_COLD_MIN 64u           /* fewer give no measurement */
#define PAGE 4096u               /* bytes */
#define N_IMAGES 256u            /* maximum images in memory for the decode ceiling */
#define N_TRIED (2 * N_IMAGES)   /* records that are read to find them */
#define IMAGE_BYTES (256u << 20) /* maximum bytes of these images */
#define READ_MAX (1u << 30)      /* bytes of a read; a larger record is read in part */
#define N_SLICES 5u              /* slices of the decode ceiling's time */
#define COPY_MAX (256u << 20)    /* maximum bytes of a copy to a device */
#define COPY_BYTES (64u << 20)   /* bytes that a thread copies; larger than private caches */
#define COPY_MIN (4u << 20)      /* fewer may lie in a cache, and give no measurement */

/* ---- storage --------------------------------------------------------------------------------- */

struct storage {
    struct pstk__source *source;
    struct pstk__files *files;
    struct pstk__reader *reader;
    struct pstk__extent *extents; /* n; n_extents for each record */
    struct pstk__read *reads;     /* depth */
    uint8_t *memory;              /* depth buffers of `room` bytes */
    uint64_t room;
    uint32_t n, n_extents, depth, fallbacks;
    struct pstk__order order; /* order of the extents */
    uint64_t align;           /* alignment of direct reads; 1 when buffered */
    uint32_t is_cold;         /* 1: no extent was in the page cache, and each is read once */
    uint32_t is_cached;       /* 1: most extents were in the page cache */
};

/* Read and check the index page of a record. */
static int storage_page(struct storage *storage, const struct pstk__extent *at, uint8_t *page,
                        struct pstk_error *err)
{
    const struct pstk__file *file;
    uint32_t slot;
    int r = pstk__files_acquire(storage->files, at->file, &slot, &file, err);
    if (r < 0 || r == PSTK__FILES_PINNED)
        return r < 0 ? r : PSTK_EBUSY;
    r = pstk__source_read(storage->source, file, at, page, err);
    pstk__files_release(storage->files, slot);
    return r < 0 ? r : storage->source->format->page_check(storage->source, at, page, err);
}

/* Find the extents of the record at a position. `page` holds the index page *have; both change. */
static int storage_record(struct storage *storage, const struct pstk__sample_location *place,
                          uint8_t *page, struct pstk__extent *have, struct pstk__extent *out,
                          struct pstk_error *err)
{
    struct pstk__extent at;
    int r = 0;
    pstk__source_page(storage->source, place, &at);
    if (at.size && (at.file != have->file || at.offset != have->offset || !have->size))
        r = storage_page(storage, &at, page, err);
    *have = at;
    if (r == 0)
        r = storage->source->format->extent(storage->source, place, PSTK__ALL_FIELDS, page, out,
                                            err);
    for (uint32_t k = 0; r == 0 && k < storage->n_extents; k++) {
        out[k].size = out[k].size < READ_MAX ? out[k].size : READ_MAX;
        storage->room = out[k].size + 2 * storage->align > storage->room
                            ? out[k].size + 2 * storage->align
                            : storage->room;
    }
    return r;
}

/* Collect up to N_EXTENTS extents, from runs of RUN neighbouring records at random positions, so
 * that one index page serves many. They are read in random order. */
static int storage_extents(struct storage *storage, struct pstk_error *err)
{
    _Alignas(4096) uint8_t page[PSTK__PAGE_SIZE];
    uint64_t n_runs = (storage->source->n_samples + RUN - 1) / RUN, run = 0;
    struct pstk__extent have = {.size = 0};
    struct pstk__order order;
    pstk__order_init(&order, &(struct pstk__order_shape){.interleave.n = n_runs}, 1, 0);
    for (uint32_t n = 0; n < storage->n && run < n_runs; run++) {
        uint64_t id = pstk__order_at(&order, run) * RUN, end = id + RUN;
        for (; id < end && id < storage->source->n_samples && n < storage->n;
             id++, n += storage->n_extents) {
            struct pstk__sample_location place;
            storage->source->format->locate(storage->source, id, &place);
            int r = storage_record(storage, &place, page, &have, &storage->extents[n], err);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

/* Return pstk__resident for an extent. */
static int storage_resident(struct storage *storage, const struct pstk__extent *extent)
{
    const struct pstk__file *file;
    uint32_t slot;
    int r = pstk__files_acquire(storage->files, extent->file, &slot, &file, NULL);
    if (r < 0 || r == PSTK__FILES_PINNED)
        return -1;
    r = pstk__resident(file->fd, extent->offset, extent->size);
    pstk__files_release(storage->files, slot);
    return r;
}

/* Keep only extents that are not in the page cache. The loader that ran before has filled the cache
 * with its reads, and other programs share it, so nothing is evicted. Of extents that share a page
 * one is kept, because its read would bring the page for the others. All are kept if the kernel
 * does not report the cached pages, or if nearly all are cached. */
static void storage_keep_cold(struct storage *storage)
{
    uint32_t n = 0, n_cached = 0, i = 0;
    struct pstk__extent last = {.size = 0};
    struct pstk__extent *kept = calloc(N_COLD, sizeof *kept);
    for (; kept && i < storage->n && i < N_PROBED && n < N_COLD; i++) {
        const struct pstk__extent *e = &storage->extents[i];
        if (e->size == 0 || (last.size && e->file == last.file && e->offset >= last.offset &&
                             e->offset / PAGE <= (last.offset + last.size - 1) / PAGE))
            continue;
        const int resident = storage_resident(storage, e);
        n_cached += resident == 1;
        if (resident == 0)
            kept[n++] = last = *e;
    }
    storage->is_cached = n < N_COLD_MIN && n_cached > n;
    storage->is_cold = n >= N_COLD_MIN;
    if (storage->is_cold) {
        memcpy(storage->extents, kept, n * sizeof *kept);
        storage->n = n;
        storage->depth = storage->depth < n ? storage->depth : n;
        pstk__order_init(&storage->order, &(struct pstk__order_shape){.interleave.n = n}, 2, 0);
    }
    free(kept);
}

static int storage_queue(struct storage *storage, uint32_t i, struct pstk__read *read)
{
    const struct pstk__extent *extent =
        &storage->extents[pstk__order_at(&storage->order, i % storage->n)];
    uint64_t begin = extent->offset / storage->align * storage->align;
    uint64_t end =
        (extent->offset + extent->size + storage->align - 1) / storage->align * storage->align;
    int r = pstk__files_acquire(storage->files, extent->file, &read->file, &read->from, NULL);
    if (r < 0 || r == PSTK__FILES_PINNED)
        return r < 0 ? r : PSTK_EBUSY;
    if (r == 1)
        storage->reader->ops->set_file(storage->reader, read->file, read->from->fd);
    read->offset = begin;
    read->size = (uint32_t)(end - begin);
    storage->reader->ops->queue(storage->reader, read);
    return 0;
}

static int storage_failed(struct pstk_error *err)
{
    return pstk__fail(err, PSTK_EIO, PSTK_STAGE_READ, "the reads of the storage ceiling failed");
}

static int storage_run(struct storage *storage, double seconds, struct pstk_ceilings *out,
                       struct pstk_error *err)
{
    uint64_t start = pstk__clock_ns(), until = start + (uint64_t)(seconds * 1e9), bytes = 0, n = 0;
    struct pstk__read *done[64];
    uint32_t next = 0, in_flight = 0;
    for (; next < storage->depth; next++, in_flight++) {
        struct pstk__read *request = &storage->reads[next];
        *request =
            (struct pstk__read){.buffer = storage->memory + next * storage->room, .fixed = 1};
        if (storage_queue(storage, next, request) < 0)
            return storage_failed(err);
    }
    int failed = 0;
    while (in_flight > 0) {
        if (storage->reader->ops->submit(storage->reader) < 0)
            return storage_failed(err);
        int n_done = storage->reader->ops->reap(storage->reader, done, 64, 1);
        if (n_done < 0)
            return storage_failed(err);
        const int more = pstk__clock_ns() < until && !failed;
        for (int i = 0; i < n_done; i++) {
            failed |= done[i]->result < 0;
            bytes += done[i]->result > 0 ? (uint64_t)done[i]->result : 0;
            n++;
            pstk__files_release(storage->files, done[i]->file);
            in_flight--;
            if (more && (!storage->is_cold || next < storage->n) &&
                storage_queue(storage, next++, done[i]) == 0)
                in_flight++;
        }
    }
    double passed = (double)(pstk__clock_ns() - start) / 1e9;
    out->storage_bytes_per_second = failed ? 0 : (double)bytes / passed;
    out->storage_reads_per_second = failed ? 0 : (double)n / passed;
    return 0;
}

static void storage_close(struct storage *storage)
{
    const int keeps_memory = storage->reader && storage->reader->n_lost > 0;
    if (storage->reader)
        storage->reader->ops->close(storage->reader);
    pstk__files_close(storage->files);
    if (storage->memory && !keeps_memory)
        munmap(storage->memory, storage->room * storage->depth);
    free(storage->reads);
    free(storage->extents);
}

/* Return the offset alignment of direct reads that the loader would choose. */
static uint64_t direct_align(const struct pstk__source *source)
{
    char path[4096];
    uint32_t memory_align, offset_align;
    if (!source->store->has_fds || pstk__source_file_path(source, 0, path, sizeof path) < 0 ||
        pstk__direct_align(path, &memory_align, &offset_align) < 0 || offset_align == 0)
        return 4096;
    return offset_align;
}

static int storage_open(struct storage *storage, const struct pstk_settings *s, int direct,
                        struct pstk_error *err)
{
    uint32_t n_files = pstk__files_capacity(storage->source->n_files, 1);
    storage->depth =
        s->reading.queue_depth && s->reading.queue_depth <= 4096 ? s->reading.queue_depth : 128;
    if (n_files < storage->source->n_files && storage->depth > n_files)
        storage->depth = n_files; /* every read in flight pins a file */
    storage->align = direct ? direct_align(storage->source) : 1;
    storage->room = 4096;
    storage->n_extents = pstk__source_n_extents(storage->source, PSTK__ALL_FIELDS);
    const uint64_t most = N_EXTENTS / storage->n_extents;
    storage->n = (uint32_t)(storage->source->n_samples < most ? storage->source->n_samples : most) *
                 storage->n_extents;
    pstk__order_init(&storage->order, &(struct pstk__order_shape){.interleave.n = storage->n}, 2,
                     0);
    storage->extents = calloc(storage->n, sizeof *storage->extents);
    storage->reads = calloc(storage->depth, sizeof *storage->reads);
    if (!storage->extents || !storage->reads)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the ceilings");
    int r = pstk__files_open(&storage->files, storage->source, n_files,
                             direct ? PSTK__FILES_DIRECT : PSTK__FILES_RANDOM, &storage->fallbacks,
                             err);
    if (r == 0)
        r = storage_extents(storage, err);
    if (r < 0)
        return r;
    if (!direct)
        storage_keep_cold(storage);
    storage->room = (storage->room + 4095) / 4096 * 4096;
    uint64_t budget = pstk__cgroup_memory("/") / 8;
    while (storage->depth > 1 && storage->room * storage->depth > budget)
        storage->depth /= 2;
    void *memory = mmap(NULL, storage->room * storage->depth, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the ceilings");
    storage->memory = memory;
    struct pstk__reader_config c = {.kind = s->reading.reader,
                                    .depth = storage->depth,
                                    .n_files = n_files,
                                    .no_fds = !storage->source->store->has_fds,
                                    .buffers = memory,
                                    .buffers_size = storage->room * storage->depth};
    return pstk__reader_open(&storage->reader, &c, &storage->fallbacks, err);
}

/* Return 1 if a loader with these settings reads directly, where the file system allows it. */
static int reads_directly(const struct pstk__source *source, const struct pstk_settings *s)
{
    return s->reading.io == PSTK_IO_DIRECT ||
           (s->reading.io == PSTK_IO_AUTO && source->bytes > pstk__cgroup_memory("/") / 2);
}

static int measure_storage(struct pstk__source *source, const struct pstk_settings *s,
                           double seconds, struct pstk_ceilings *out, struct pstk_error *err)
{
    struct storage storage = {.source = source};
    int r = storage_open(&storage, s, reads_directly(source, s), err);
    const uint64_t before = pstk__resident_bytes_read();
    if (r == 0)
        r = storage_run(&storage, seconds, out, err);
    if (storage.is_cached)
        out->from_page_cache = PSTK_CEILING_STORAGE | PSTK_CEILING_LOADER;
    else if (pstk__resident_bytes_read() > before) /* some file systems do not count: FUSE */
        out->from_page_cache = PSTK_CEILING_LOADER;
    storage_close(&storage);
    return r;
}

/* ---- decode and memory: threads that do one thing -------------------------------------------- */

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
    uint64_t copy_size;          /* bytes of each memory copy */
    uint64_t ns;                 /* measuring time once ready */
    uint32_t first;              /* first image, modulo their number */
    double rate;                 /* out: images or bytes per second */
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
    const struct pstk__row_sink sink = {.rows = ignore_rows, .channels = 3};
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
    if (pstk__image_state_open(&state, &arena, PSTK_KERNELS_AUTO, NULL) == 0) {
        uint64_t start = pstk__clock_ns(), until = start + ns, now = start, n = 0;
        size_t mark = arena.used;
        for (; now < until; n++, now = pstk__clock_ns()) {
            uint32_t i = (first + (uint32_t)n) % set->n;
            const struct pstk__image_info *info = &set->image[i].info;
            const struct pstk__coded image = {.decoder = pstk__image_decoder(info->encoding),
                                              .data = set->image[i].data,
                                              .size = set->image[i].size,
                                              .info = info};
            const struct pstk__box box = {.width = info->width, .height = info->height};
            pstk__image_decode(state, &image, &box, &sink, NULL);
            pstk__arena_reset(&arena, mark);
        }
        rate = n ? (double)n * 1e9 / (double)(now - start) : 0;
    }
    pstk__image_state_close(state);
    pstk__arena_close(&arena);
    return rate;
}

static double copy_memory(uint64_t size, uint64_t ns)
{
    uint8_t *from = malloc(size), *to = malloc(size);
    double rate = 0;
    if (from && to) {
        memset(from, 1, size);
        memset(to, 2, size);
        uint64_t start = pstk__clock_ns(), until = start + ns, now = start, n = 0;
        for (; now < until; n++, now = pstk__clock_ns()) {
            memcpy(to, from, size);
            from[n % size] = to[0]; /* keeps the compiler from removing the copy */
        }
        rate = n ? (double)n * (double)size * 1e9 / (double)(now - start) : 0;
    }
    free(from);
    free(to);
    return rate;
}

static void *bench_body(void *argument)
{
    struct bench_thread *thread = argument;
    thread->rate = thread->images ? decode_images(thread->images, thread->first, thread->ns)
                                  : copy_memory(thread->copy_size, thread->ns);
    return NULL;
}

/* Return the sum of the rates of n threads that all do `one` at the same time; 0 if one did not
 * start. Each thread begins with another image, which also differs from slice to slice. */
static double run_threads(const struct bench_thread *one, uint32_t n, uint32_t slice)
{
    struct bench_thread *threads = calloc(n, sizeof *threads);
    double rate = 0;
    uint32_t started = 0;
    for (; threads && started < n; started++) {
        threads[started] = *one;
        threads[started].first = (slice * n + started) * 7919u;
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

/* Return the bytes that a measurement may take at a time: a quarter of what the control group
 * leaves, or any number. The kernel kills a process that exceeds the limit. Not counted: buffers of
 * the storage and loader ceilings, and the images that each thread decodes into. */
static uint64_t memory_share(void)
{
    uint64_t limit, left;
    pstk__cgroup_memory_left("/", &limit, &left);
    return limit ? left / 4 : UINT64_MAX;
}

/* Return the rate of copies by n threads; 0: there is too little memory for them. */
static double measure_memory(uint32_t n, double seconds)
{
    const uint64_t most = memory_share() / 2 / n;
    const struct bench_thread copies = {.copy_size = most < COPY_BYTES ? most : COPY_BYTES,
                                        .ns = (uint64_t)(seconds * 1e9)};
    return copies.copy_size < COPY_MIN ? 0 : run_threads(&copies, n, 0);
}

/* Read images of `field` whole into memory: only JPEGs, from N_TRIED records. */
static void load_images(struct images *set, struct pstk_dataset *dataset, uint32_t field)
{
    const struct pstk__source *source = pstk__dataset_source(dataset);
    struct pstk__order order;
    uint64_t bytes = 0, most = memory_share();
    most = most < IMAGE_BYTES ? most : IMAGE_BYTES;
    pstk__order_init(&order, &(struct pstk__order_shape){.interleave.n = source->n_samples}, 2, 0);
    const uint64_t n = source->n_samples < N_TRIED ? source->n_samples : N_TRIED;
    for (uint64_t k = 0; k < n && set->n < N_IMAGES && bytes < most; k++) {
        struct pstk_value_info value = {.size = sizeof value};
        uint32_t i = set->n;
        if (pstk_dataset_get(dataset, pstk__order_at(&order, k), field, &set->image[i].data,
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

/*
 * The decode ceiling, measured in N_SLICES slices before, between and after the other ceilings of
 * work in memory. The rate is the median. On a shared machine, other processes may take nearly all
 * of it for a slice or two, but not for most.
 */
struct decode {
    struct images *images; /* owned; NULL: nothing to decode */
    uint32_t n_threads, n_rates;
    double seconds; /* duration of a slice */
    double rates[N_SLICES];
};

static void decode_open(struct decode *decode, struct pstk_dataset *dataset, uint32_t field)
{
    decode->images = calloc(1, sizeof *decode->images);
    if (decode->images)
        load_images(decode->images, dataset, field);
}

/* Measure the next slice. The rates stay sorted. */
static void decode_slice(struct decode *decode)
{
    if (!decode->images || decode->images->n == 0)
        return;
    uint32_t i = decode->n_rates++;
    const struct bench_thread one = {.images = decode->images,
                                     .ns = (uint64_t)(decode->seconds * 1e9)};
    const double rate = run_threads(&one, decode->n_threads, i);
    for (; i > 0 && decode->rates[i - 1] > rate; i--)
        decode->rates[i] = decode->rates[i - 1];
    decode->rates[i] = rate;
}

/* Return the median of the slices so far, 0 when there is none, and free the images. */
static double decode_close(struct decode *decode)
{
    for (uint32_t i = 0; decode->images && i < decode->images->n; i++)
        pstk_free(decode->images->image[i].data);
    free(decode->images);
    return decode->rates[decode->n_rates / 2];
}

/* ---- the loader itself ----------------------------------------------------------------------- */

static int decode_nothing(void *user, const struct pstk_sample *sample, void *row,
                          uint64_t row_size)
{
    (void)user, (void)sample;
    memset(row, 0, row_size);
    return 0;
}

/* Open a loader in the middle of an epoch, which the earlier short run has not reached. If that is
 * no position (a subset has fewer samples), open it at the start. NULL: no loader opens. */
static struct pstk_loader *open_in_middle(struct pstk_settings *s, uint64_t n_samples)
{
    struct pstk_loader *loader;
    const uint64_t batch = (uint64_t)s->batch_size * s->ranks.world, position = s->order.position;
    s->order.position = n_samples / 2 / batch * batch;
    if (pstk_open(&loader, s, NULL) == 0)
        return loader;
    s->order.position = position;
    return pstk_open(&loader, s, NULL) == 0 ? loader : NULL;
}

/* Measure the loader without decoding. *cached, a bit set, keeps PSTK_CEILING_LOADER only if less
 * than a tenth of the bytes came from storage. */
static double measure_loader(const struct pstk_settings *s, uint64_t n_samples, const char *field,
                             double seconds, uint32_t *cached)
{
    const uint64_t read_before = pstk__resident_bytes_read();
    struct pstk_stats stats = {.size = sizeof stats};
    struct pstk_output output = {.name = "nothing",
                                 .field = field,
                                 .kind = PSTK_OUTPUT_CALLBACK,
                                 .dtype = PSTK_U8,
                                 .callback.n_dims = 1,
                                 .callback.shape = {1},
                                 .callback.stored = 1,
                                 .callback.decode = decode_nothing};
    struct pstk_settings settings = *s;
    struct pstk_loader *loader;
    struct pstk_batch *batch;
    settings.outputs = &output;
    settings.n_outputs = 1;
    settings.output_size = sizeof output;
    settings.observe.report_crops = 0;
    settings.global_batch_size = settings.order.uneven =
        0; /* batch_size is already this rank's part */
    settings.mix = NULL;
    settings.mosaic = NULL;
    settings.on_bad_sample = NULL; /* called only for batches that the caller takes */
    settings.device.kind = PSTK_HOST;
    settings.device.index = 0;
    if (!(loader = open_in_middle(&settings, n_samples)))
        return 0;
    uint64_t start = pstk__clock_ns(), until = start + (uint64_t)(seconds * 1e9);
    int r = 0;
    while (pstk__clock_ns() < until && (r = pstk_next(loader, &batch, NULL, -1, NULL)) >= 0)
        if (r > 0)
            pstk_release(&batch, NULL);
    pstk_get_stats(loader, &stats);
    /* Count rows, not batches: slow storage gives few batches in this time. */
    double rate = (double)(stats.stage_workers.n_items - stats.n_rows_ahead) * 1e9 /
                  (double)(pstk__clock_ns() - start);
    pstk_close(&loader);
    const uint64_t read = pstk__resident_bytes_read();
    if (read == UINT64_MAX || read - read_before >= stats.bytes_read / 10)
        *cached &= ~(uint32_t)PSTK_CEILING_LOADER;
    return r < 0 ? 0 : rate;
}

/* ---- copies to a device ---------------------------------------------------------------------- */

/* Return the bytes of the largest copy that a batch needs: its deferred rows, its other dense rows,
 * or one ragged output. 0: unknown. */
static uint64_t largest_copy(const struct pstk_settings *s, const struct pstk__source *source)
{
    struct pstk__plan *plan;
    struct pstk__layout layout;
    if (pstk__plan_open(&plan, s, source, NULL) < 0)
        return 0;
    pstk__layout_init(&layout, plan, s->observe.report_crops, 0);
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

/* Measure the copy rates. They stay 0 if they cannot be measured, for example without memory for
 * the copies. */
static void measure_copies(const struct pstk_settings *s, const struct pstk__source *source,
                           double seconds, struct pstk_ceilings *out)
{
    struct pstk_copy_rates rates = {.size = sizeof rates};
    uint64_t size = largest_copy(s, source);
    if (size > COPY_MAX)
        size = COPY_MAX;
    if (size == 0 ||
        pstk_measure_copies(s->device.kind, s->device.index, size, seconds, &rates, NULL) < 0)
        return;
    out->copy_bytes_per_second = rates.to_device;
    out->copy_block_size = size;
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Find the first output whose field holds images, else the first output with a field. */
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

/* Return the number of workers of a loader with these settings. */
static uint32_t ceiling_threads(const struct pstk__source *source, const struct pstk_settings *s)
{
    struct pstk__numa *numa;
    struct pstk__numa_config c = {.local_rank = s->ranks.local_rank,
                                  .local_world = s->ranks.local_world,
                                  .n_workers = s->n_threads,
                                  .bus_id = s->device.kind == PSTK_CUDA ? "" : NULL,
                                  .reader_reads = reads_directly(source, s) ||
                                                  !source->store->has_fds ||
                                                  s->order.kind == PSTK_ORDER_WINDOWED};
    if (pstk__numa_open(&numa, &c, NULL) < 0)
        return s->n_threads ? s->n_threads : 1;
    uint32_t n = pstk__numa_n_workers(numa);
    pstk__numa_close(numa);
    return n;
}

/* Measure the ceilings that read records, for `share` seconds each. They run first, because the
 * other measurements fill the page cache. `name`: the field to read, NULL: none. */
static int measure_reads(const struct pstk_settings *s, struct pstk__source *own, const char *name,
                         double share, struct pstk_ceilings *ceilings, struct pstk_error *err)
{
    const int r = measure_storage(own, s, share, ceilings, err);
    if (r < 0)
        return r;
    if (name)
        ceilings->loader_samples_per_second =
            measure_loader(s, own->n_samples, name, share, &ceilings->from_page_cache);
    if (ceilings->loader_samples_per_second <= 0) /* it was not measured */
        ceilings->from_page_cache &= ~(uint32_t)PSTK_CEILING_LOADER;
    return 0;
}

/* Measure the ceilings of work in memory, for `share` seconds each. */
static void measure_others(const struct pstk_settings *s, const struct pstk__source *source,
                           double share, struct decode *decode, struct pstk_ceilings *ceilings)
{
    decode_slice(decode);
    decode_slice(decode);
    ceilings->memory_bytes_per_second = measure_memory(decode->n_threads, share);
    decode_slice(decode);
    if (s->device.kind != PSTK_HOST)
        measure_copies(s, source, share, ceilings);
    decode_slice(decode);
    decode_slice(decode);
}

static void measure_kernels(const struct pstk_settings *s, struct pstk_dataset *dataset,
                            double share, struct pstk_ceilings *ceilings)
{
    _Static_assert(sizeof ceilings->kernels_ns == (PSTK_KERNELS_NEON + 1) * sizeof(double),
                   "a time for each kind");
    pstk__measure_kernels(s, dataset, share, ceilings->kernels_ns);
}

/* Measure each ceiling for an equal share of the time: five for every loader, and a sixth on a
 * device. */
static int measure_all(const struct pstk_settings *s, struct pstk_dataset *dataset, double seconds,
                       struct pstk_ceilings *ceilings, struct pstk_error *err)
{
    const struct pstk__source *source = pstk__dataset_source(dataset);
    const double share = seconds / (s->device.kind == PSTK_HOST ? 5 : 6);
    struct decode decode = {.n_threads = ceiling_threads(source, s), .seconds = share / N_SLICES};
    struct pstk__source *own;
    uint32_t field = 0;
    const char *name = ceiling_field(s, source, &field);
    int r = pstk__source_open(&own, s->path, s->foreign, err);
    if (r < 0)
        return r;
    r = measure_reads(s, own, name, share, ceilings, err);
    pstk__source_close(own);
    if (r == 0 && name && source->schema.fields[field].kind == PSTK_FIELD_IMAGE)
        decode_open(&decode, dataset, field);
    if (r == 0)
        measure_others(s, source, share, &decode, ceilings);
    ceilings->decode_samples_per_second = decode_close(&decode);
    if (r == 0)
        measure_kernels(s, dataset, share, ceilings);
    return r;
}

int pstk_measure_ceilings(const struct pstk_settings *settings, double seconds,
                          struct pstk_ceilings *ceilings, struct pstk_error *err)
{
    if (!ceilings || ceilings->size < sizeof ceilings->size || !(seconds > 0))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "ceilings: seconds and size must be set");
    struct pstk_dataset *dataset;
    struct pstk_ceilings c = {.size = sizeof c};
    struct pstk_settings own_settings = {0}, *s = &own_settings;
    char bus_id[PSTK__BUS_ID_SIZE];
    int r = pstk__settings_copy(s, settings, err);
    if (r == 0)
        r = pstk__settings_check(s, err);
    if (r == 0)
        r = pstk__device_ops(s->device.kind)->find(s->device.index, bus_id, err);
    if (r == 0)
        r = pstk_dataset_open(&dataset, s->path, s->foreign, err);
    if (r < 0)
        return r;
    r = measure_all(s, dataset, seconds, &c, err);
    pstk_dataset_close(&dataset);
    if (r < 0)
        return r;
    uint32_t size = ceilings->size;
    memset(ceilings, 0, size);
    memcpy(ceilings, &c, size < sizeof c ? size : sizeof c);
    ceilings->size = size;
    return 0;
}
