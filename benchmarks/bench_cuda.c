/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cuda: measure the loader with a GPU, and print each figure next to its ceiling:
 *
 *   copies    batches that need no work on the host, against plain page-locked copies of their size
 *   kernels   bytes read and written, against copies on the device that read and write as many
 *   stream    the share of the time in which the stream has no batch, with steps 1.5 times as long
 *             as the loader takes for a batch
 *   images    JPEG files to the GPU, by threads, against libjpeg-turbo decoding them whole
 *
 *   bench_cuda [DATA] [--check] [--quick]
 *
 * DATA: a data set that `penstock pack` made of JPEG files. Without it the program makes files in
 * TMPDIR and removes them. --check: exit with status 1 if an aim is missed. --quick: take a tenth
 * of the time, to see that everything runs. Status 77: this machine has no GPU.
 */
#include "support/finish_table.h"
#include "support/jpeg_writer.h"
#include "support/sample_set.h"
#include "bench.h"
#include "device/cuda/kernels.h"
#include "pixels/resize.h"

#include <cuda_runtime_api.h>

#define MISSING 77 /* exit status */
#define N_RUNS 5
#define N_LABELS 65536u
#define N_IMAGES 400u
#define REGION_SIZE (2ull << 30) /* device memory that kernels go through: far past its caches */
#define ROWS 256u
#define N_LAUNCHES 400u /* between two events */

struct bench {
    char labels[4300], images[4300]; /* paths of data sets */
    double second;                   /* 1, or less */
    uint32_t n_cores;
    int n_missed; /* aims */
    cudaStream_t stream;
    cudaEvent_t begun, ended;
    struct pstk__cuda_module module;
};

static void check(cudaError_t code, const char *doing)
{
    if (code == cudaSuccess)
        return;
    fprintf(stderr, "%s: %s (%s)\n", doing, cudaGetErrorName(code), cudaGetErrorString(code));
    exit(1);
}

static void line(struct bench *b, const char *name, const struct bench_runs *r, const char *unit,
                 const struct bench_runs *ceiling, double aim)
{
    bench_line(name, r, unit, ceiling, aim);
    b->n_missed += aim > 0 && bench_median(r) < aim * bench_median(ceiling);
}

/* ---- data ------------------------------------------------------------------------------------ */

static struct pstk_writer *data_open(const char *path, const struct pstk_field *fields, uint32_t n)
{
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    pstk_writer_settings_init(&s, sizeof s);
    s.path = path;
    s.fields = fields;
    s.n_fields = n;
    if (pstk_writer_open(&w, &s, &err) < 0)
        bench_die(path, &err);
    return w;
}

static void data_add(struct pstk_writer *w, const struct pstk_value *values, uint32_t n)
{
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    if (pstk_writer_add(w, values, n, &err) < 0)
        bench_die("add", &err);
}

static void data_commit(struct pstk_writer *w)
{
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    if (pstk_writer_commit(&w, &err) < 0)
        bench_die("commit", &err);
}

static void make_labels(const char *path)
{
    const struct pstk_field field = {.name = "cls", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_I64};
    struct pstk_writer *w = data_open(path, &field, 1);
    for (int64_t i = 0; i < N_LABELS; i++)
        data_add(w, &(struct pstk_value){&i, sizeof i}, 1);
    data_commit(w);
}

static void make_images(const char *path)
{
    const struct pstk_field field = {
        .name = "jpg", .kind = PSTK_FIELD_IMAGE, .codec = PSTK_CODEC_PLANES};
    struct pstk_writer *w = data_open(path, &field, 1);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < N_IMAGES; i++) {
        const struct jpeg_spec spec = {.width = 400 + i % 200,
                                       .height = 350 + i % 100,
                                       .n_components = 3,
                                       .h = 2,
                                       .v = 2,
                                       .interleaved = 1};
        size_t size;
        uint8_t *data = jpeg_write(&spec, &size);
        data_add(w, &(struct pstk_value){data, size}, 1);
        sum += size;
        free(data);
    }
    data_commit(w);
    printf("made %u JPEG files, 4:2:0, 500 x 400 and %.0f kB on average\n", N_IMAGES,
           (double)sum / N_IMAGES / 1e3);
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* A row that costs nothing: it stays what it was. */
static int decode_nothing(void *user, const struct pstk_sample *sample, void *row,
                          uint64_t row_size)
{
    (void)user, (void)sample, (void)row, (void)row_size;
    return 0;
}

/* Return milliseconds between the two events, once the second is over. */
static double elapsed(const struct bench *b, cudaStream_t stream)
{
    float ms = 0;
    check(cudaEventRecord(b->ended, stream), "event");
    check(cudaEventSynchronize(b->ended), "work");
    check(cudaEventElapsedTime(&ms, b->begun, b->ended), "event");
    return (double)ms;
}

/* The work of the loader in a span of time. */
struct ran {
    double seconds; /* time of the stream, by the device's clock */
    uint64_t n_batches, n_samples;
    struct pstk_stats before, after;
};

/* Run a loader, after a warm-up of a fifth; each batch keeps a stream busy for step_ns. */
static struct ran run_loader(const struct bench *b, const struct pstk_settings *s, uint64_t step_ns,
                             double seconds)
{
    struct ran ran = {.before = {.size = sizeof ran.before}, .after = {.size = sizeof ran.after}};
    const double warm = bench_now() + seconds / 5, until = warm + seconds;
    struct pstk_loader *loader;
    struct pstk_error err;
    void *stream;
    int is_warm = 0;
    pstk_error_init(&err, sizeof err);
    if (pstk_open(&loader, s, &err) < 0 || pstk_stream_open(loader, &stream, &err) < 0)
        bench_die("open", &err);
    for (double now = 0; !is_warm || now < until || ran.n_batches < 2; now = bench_now()) {
        struct pstk_batch *batch;
        if (!is_warm && now >= warm) {
            is_warm = 1;
            ran.n_batches = ran.n_samples = 0;
            pstk_get_stats(loader, &ran.before);
            check(cudaEventRecord(b->begun, stream), "event");
        }
        const int r = pstk_next(loader, &batch, stream, -1, &err);
        if (r < 0 || (r == 1 && pstk_stream_spin(loader, stream, step_ns, &err) < 0))
            bench_die("next", &err);
        if (r == 0)
            continue;
        ran.n_batches++;
        ran.n_samples += batch->n_valid;
        pstk_release(&batch, stream);
    }
    ran.seconds = elapsed(b, stream) / 1e3;
    pstk_get_stats(loader, &ran.after);
    pstk_stream_close(loader, &stream);
    pstk_close(&loader);
    return ran;
}

/* Plain copies of `size` bytes to the device, bytes per second. Where this block lies far from the
 * device the library's own measurement, whose lies near, is the ceiling. */
static double plain_copies(const struct bench *b, uint64_t size, double seconds)
{
    struct pstk_copy_rates rates = {.size = sizeof rates};
    struct pstk_error err;
    void *host, *device;
    double best = 0;
    pstk_error_init(&err, sizeof err);
    check(cudaHostAlloc(&host, size, cudaHostAllocDefault), "page-locked memory");
    memset(host, 1, size);
    check(cudaMalloc(&device, size), "device memory");
    for (double until = bench_now() + seconds / 2; bench_now() < until;) {
        check(cudaEventRecord(b->begun, b->stream), "event");
        for (int i = 0; i < 32; i++)
            check(cudaMemcpyAsync(device, host, size, cudaMemcpyHostToDevice, b->stream), "copy");
        const double rate = 32e3 * (double)size / elapsed(b, b->stream);
        best = rate > best ? rate : best;
    }
    check(cudaFree(device), "free");
    check(cudaFreeHost(host), "free");
    if (pstk_measure_copies(PSTK_CUDA, 0, size, seconds, &rates, &err) < 0)
        bench_die("copies", &err);
    return rates.to_device > best ? rates.to_device : best;
}

static void bench_copies(struct bench *b)
{
    const struct {
        uint32_t n_rows, row_size;
        double aim; /* a small batch is bound by what it costs to hand it over */
    } cases[] = {{8, 150528, 0}, {64, 150528, 0.95}, {256, 150528, 0.95}, {64, 602112, 0.95}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint64_t size = (uint64_t)cases[i].n_rows * cases[i].row_size;
        struct pstk_output o = {.field = "cls",
                                .kind = PSTK_OUTPUT_CALLBACK,
                                .dtype = PSTK_U8,
                                .callback.n_dims = 1,
                                .callback.shape = {cases[i].row_size},
                                .callback.decode = decode_nothing};
        struct bench_runs plain = {0}, copying = {0}, whole = {0};
        struct pstk_settings s;
        pstk_settings_init(&s, sizeof s);
        s.path = b->labels;
        s.outputs = &o;
        s.n_outputs = 1;
        s.batch_size = cases[i].n_rows;
        s.device.kind = PSTK_CUDA;
        s.device.measure = 1;
        for (int run = 0; run < N_RUNS; run++) {
            const struct ran ran = run_loader(b, &s, 0, 0.5 * b->second);
            const uint64_t bytes = ran.after.copy_bytes - ran.before.copy_bytes;
            const uint64_t ns = ran.after.copy_ns - ran.before.copy_ns;
            bench_add(&plain, plain_copies(b, size, 0.4 * b->second) / 1e9);
            bench_add(&copying, ns ? (double)bytes / (double)ns : 0);
            bench_add(&whole, (double)ran.n_batches * (double)size / ran.seconds / 1e9);
            if (!ran.after.page_locked)
                printf("the loader's slots are not page-locked\n");
        }
        printf("\nbatches of %.1f MB to the device\n", (double)size / 1e6);
        line(b, "  the loader's copies, while they ran", &copying, "GB/s", &plain, cases[i].aim);
        line(b, "  the loader, batch after batch", &whole, "GB/s", &plain, cases[i].aim);
        line(b, "  plain page-locked copies", &plain, "GB/s", NULL, 0);
    }
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* Device memory, gone through piece by piece, so that nothing is found in a cache. */
struct region {
    uint8_t *memory, *flips;
    void *table;
    uint64_t size, piece; /* bytes */
    uint32_t n_pieces;
};

/* Milliseconds of a launch. */
static double run_pixels(const struct bench *b, const struct region *r,
                         const struct pstk__cuda_pixels *pixels, uint64_t in_size, uint32_t n)
{
    struct pstk__cuda_pixels p = *pixels;
    check(cudaEventRecord(b->begun, b->stream), "event");
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *piece = r->memory + i % r->n_pieces * r->piece;
        p.in = piece;
        p.out = piece + in_size;
        check(pstk__cuda_pixels(&b->module, &p, b->stream), "launch");
    }
    return elapsed(b, b->stream) / n;
}

/* Return milliseconds of a copy that reads half of `size` bytes and writes the other half. */
static double run_copies(const struct bench *b, const struct region *r, uint64_t size, uint32_t n)
{
    check(cudaEventRecord(b->begun, b->stream), "event");
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *piece = r->memory + i % r->n_pieces * r->piece;
        check(
            cudaMemcpyAsync(piece + size / 2, piece, size / 2, cudaMemcpyDeviceToDevice, b->stream),
            "copy");
    }
    return elapsed(b, b->stream) / n;
}

static void bench_pixels(struct bench *b, struct region *r, const struct pstk__cuda_pixels *image,
                         const char *name)
{
    const uint64_t row = 3ull * image->height * image->width;
    const uint64_t element = pstk_dtype_size(image->dtype);
    struct bench_runs kernel = {0}, copy = {0};
    struct pstk__cuda_pixels p = *image;
    p.n_rows = ROWS;
    while (p.n_rows > 1 && 4 * row * p.n_rows * (1 + element) > r->size)
        p.n_rows /= 2;
    p.n_valid = p.n_rows;
    const uint64_t in_size = (row * p.n_rows + 63) / 64 * 64;
    const uint64_t bytes = row * p.n_rows * (1 + element);
    r->piece = (in_size + row * p.n_rows * element + 127) / 64 * 64;
    r->n_pieces = (uint32_t)(r->size / r->piece);
    const uint32_t n = b->second < 1 ? 2 : N_LAUNCHES;
    for (int run = 0; run <= N_RUNS; run++) {
        const double ms[] = {run_pixels(b, r, &p, in_size, n), run_copies(b, r, bytes, n)};
        if (run == 0) /* warms up */
            continue;
        bench_add(&kernel, (double)bytes / ms[0] / 1e6);
        bench_add(&copy, (double)bytes / ms[1] / 1e6);
    }
    line(b, name, &kernel, "GB/s", &copy, 0.8);
}

static void bench_kernels(struct bench *b)
{
    const float mean[3] = {0.485f, 0.456f, 0.406f}, deviation[3] = {0.229f, 0.224f, 0.225f};
    const uint32_t dtypes[] = {PSTK_F32, PSTK_F16, PSTK_BF16}, widths[] = {224, 299};
    static uint32_t table[3 * 256];
    uint8_t flips[ROWS];
    size_t free_size = 0, total = 0;
    struct region r = {0};
    void *memory, *on_device;
    check(cudaMemGetInfo(&free_size, &total), "memory");
    r.size = free_size / 2 < REGION_SIZE ? free_size / 2 : REGION_SIZE;
    check(cudaMalloc(&memory, r.size), "device memory");
    check(cudaMalloc(&r.table, sizeof table), "device memory");
    check(cudaMalloc(&on_device, sizeof flips), "device memory");
    r.memory = memory;
    r.flips = on_device;
    check(cudaMemsetAsync(r.memory, 0x5a, r.size, b->stream), "memset");
    for (uint32_t i = 0; i < ROWS; i++)
        flips[i] = i % 2;
    check(cudaMemcpyAsync(r.flips, flips, sizeof flips, cudaMemcpyHostToDevice, b->stream), "copy");
    printf("\nkernels, read and written, %u images, half of them mirrored; ratio: to copies on the "
           "device\n",
           ROWS);
    for (uint32_t i = 0; i < 12; i++) {
        struct pstk__affine affine = {0};
        struct pstk__cuda_pixels p = {.flips = r.flips, .table = r.table};
        char name[64];
        p.dtype = dtypes[i / 4];
        p.layout = i & 1 ? PSTK_NCHW : PSTK_NHWC;
        p.width = p.height = widths[i >> 1 & 1];
        p.channels = 3;
        finish_table(table, p.dtype, 3, mean, deviation);
        if (p.dtype != PSTK_F32)
            pstk__affine_init(&affine, table, p.dtype, 3);
        p.exact = affine.exact;
        memcpy(p.scale, affine.scale, sizeof p.scale);
        memcpy(p.offset, affine.offset, sizeof p.offset);
        check(cudaMemcpyAsync(r.table, table, sizeof table, cudaMemcpyHostToDevice, b->stream),
              "copy");
        check(cudaStreamSynchronize(b->stream), "copy");
        snprintf(name, sizeof name, "  %s %s, %u x %u", pstk_dtype_name(p.dtype),
                 p.layout == PSTK_NCHW ? "NCHW" : "NHWC", p.width, p.height);
        bench_pixels(b, &r, &p, name);
    }
    check(cudaFree(r.memory), "free");
    check(cudaFree(r.flips), "free");
    check(cudaFree(r.table), "free");
}

/* ---- images ---------------------------------------------------------------------------------- */

/* Settings of a training run. */
struct training {
    struct pstk_op ops[3];
    struct pstk_output output;
    struct pstk_settings s;
};

static void training_init(struct training *t, const struct bench *b)
{
    *t = (struct training){.ops = {pstk_random_resized_crop(224, 224), pstk_random_flip(0.5),
                                   pstk_normalize(PSTK_IMAGENET_MEAN, PSTK_IMAGENET_STD)},
                           .output = {.name = "image",
                                      .field = "jpg",
                                      .kind = PSTK_OUTPUT_IMAGE,
                                      .image.n_ops = 3,
                                      .dtype = PSTK_F16,
                                      .image.layout = PSTK_NCHW}};
    t->output.image.ops = t->ops;
    pstk_settings_init(&t->s, sizeof t->s);
    t->s.path = b->images;
    t->s.outputs = &t->output;
    t->s.n_outputs = 1;
    t->s.batch_size = 128;
    t->s.device.kind = PSTK_CUDA;
    t->s.device.measure = 1;
}

static void bench_stream(struct bench *b)
{
    struct training t;
    training_init(&t, b);
    const struct ran free_run = run_loader(b, &t.s, 0, 2 * b->second);
    const double step = 1.5 * free_run.seconds / (double)free_run.n_batches;
    const struct ran ran = run_loader(b, &t.s, (uint64_t)(1e9 * step), 6 * b->second);
    const double used = (double)(ran.after.stream_used_ns - ran.before.stream_used_ns);
    const double starved = (double)(ran.after.stream_starved_ns - ran.before.stream_starved_ns);
    const double share = used > 0 ? starved / (used + starved) : 1;
    printf("\nsteps of %.2f ms, 1.5 times as long as making a batch of %u on %u threads\n",
           1e3 * step, t.s.batch_size, ran.after.n_threads);
    printf("%-44s %12.3f %% of its time   aim < 1 %%\n", "  the stream has no batch", 100 * share);
    printf("%-44s %12.3f of the time of steps alone\n", "  steps, the whole",
           ran.seconds / ((double)ran.n_batches * step));
    b->n_missed += share >= 0.01;
}

static void bench_jpeg(struct bench *b)
{
    printf("\nJPEG to f16 NCHW 224 on the device; ratio: to libjpeg-turbo, whole images, as many "
           "threads\n");
    for (uint32_t n = 1; n <= 16 && n <= b->n_cores; n *= 2) {
        struct pstk_ceilings ceilings = {.size = sizeof ceilings};
        struct bench_runs loader = {0}, decode = {0};
        struct pstk_error err;
        struct training t;
        char name[64];
        training_init(&t, b);
        t.s.n_threads = n;
        pstk_error_init(&err, sizeof err);
        for (int run = 0; run < 3; run++) {
            const struct ran ran = run_loader(b, &t.s, 0, b->second);
            bench_add(&loader, (double)ran.n_samples / ran.seconds);
            if (pstk_measure_ceilings(&t.s, 3 * b->second, &ceilings, &err) < 0)
                bench_die("ceilings", &err);
            bench_add(&decode, ceilings.decode_samples_per_second);
        }
        snprintf(name, sizeof name, "  %u threads: the loader", n);
        line(b, name, &loader, "images/s", &decode, 0);
        line(b, "             libjpeg-turbo", &decode, "images/s", NULL, 0);
    }
}

/* ---------------------------------------------------------------------------------------------- */

/* 1, or 0 where there is no GPU; prints which one. */
static int find(struct bench *b)
{
    struct pstk_device device = {.size = sizeof device};
    struct pstk_machine machine = {.size = sizeof machine};
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    if (pstk_get_device(PSTK_CUDA, 0, &device, &err) < 0) {
        printf("no CUDA device (%s)\n", err.message);
        return 0;
    }
    if (pstk_get_machine(NULL, &machine, &err) < 0)
        bench_die("machine", &err);
    b->n_cores = machine.n_usable;
    printf("%s, PCIe %u.0 x%u at most, node %d; %s, %u cores; medians (lowest..highest)\n",
           device.name, device.pcie_generation_max, device.pcie_width_max, device.numa_node,
           machine.cpu, machine.n_usable);
    return 1;
}

int main(int argc, char **argv)
{
    static struct bench b = {.second = 1};
    char folder[4200];
    const char *data = NULL;
    int is_checking = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--check") == 0)
            is_checking = 1;
        else if (strcmp(argv[i], "--quick") == 0)
            b.second = 0.1;
        else if (argv[i][0] != '-' && !data)
            data = argv[i];
        else
            return fprintf(stderr, "usage: bench_cuda [DATA] [--check] [--quick]\n"), 2;
    }
    if (!find(&b))
        return MISSING;
    sample_set_path(folder, sizeof folder);
    snprintf(b.labels, sizeof b.labels, "%s-labels", folder);
    snprintf(b.images, sizeof b.images, "%s", data ? data : folder);
    make_labels(b.labels);
    if (!data)
        make_images(b.images);
    check(cudaStreamCreateWithFlags(&b.stream, cudaStreamNonBlocking), "stream");
    check(cudaEventCreateWithFlags(&b.begun, cudaEventDefault), "event");
    check(cudaEventCreateWithFlags(&b.ended, cudaEventDefault), "event");
    check(pstk__cuda_kernels_open(&b.module, 0), "kernels");
    bench_copies(&b);
    bench_kernels(&b);
    bench_stream(&b);
    bench_jpeg(&b);
    pstk__cuda_module_close(&b.module);
    check(cudaEventDestroy(b.begun), "event");
    check(cudaEventDestroy(b.ended), "event");
    check(cudaStreamDestroy(b.stream), "stream");
    sample_set_remove(b.labels);
    if (!data)
        sample_set_remove(b.images);
    printf("\n%d aims missed\n", b.n_missed);
    return is_checking && b.n_missed > 0;
}
