/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_copies: records that a loader only copies, from the page cache, in full random order. Next
 * to each stands bare pread of as many bytes of the same files by as many threads, in random order,
 * into as much memory as the loader's batches have.
 *
 *   bench_copies DIR [--bytes LIST] [--workers LIST] [--seconds S] [--rounds N]
 *
 * LIST: whole numbers with commas between. Makes (and keeps) in DIR, for each number of bytes N:
 *   arrays-N   a .npy file of u8 rows of N bytes: no checksum
 *   records-N  a .pstk data set of the same rows
 *   bytes-N    one of values of N/2 to N bytes, read as bytes
 *   pixels-N   one of square images of some N bytes, stored as pixels; `whole` reads all of each
 *              image, `crops` a random crop of 7/8 of its sides
 * Each round measures all, one after another; the medians of the rounds are printed.
 */
#include "bench.h"

#include <fcntl.h>
#include <glob.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define DATA_SIZE 256000000u /* bytes of one data set */
#define MAX_BYTES 16000000u
#define MAX_THREADS 64u
#define MAX_LIST 16u
#define BATCH 64u
#define CHANNELS 3u

enum shape { ARRAYS, RECORDS, BYTES, WHOLE, CROPS, N_SHAPES };

static const struct {
    const char *name, *folder;
} shapes[N_SHAPES] = {{"arrays", "arrays"},
                      {"records", "records"},
                      {"bytes", "bytes"},
                      {"pixels, whole", "pixels"},
                      {"pixels, crops", "pixels"}};

struct list {
    uint32_t n;
    uint32_t of[MAX_LIST];
};

/* ---- data ------------------------------------------------------------------------------------ */

static uint32_t side_of(uint32_t n_bytes)
{
    const uint32_t side = (uint32_t)sqrt(n_bytes / (double)CHANNELS);
    return side > 0 ? side : 1;
}

static void fill(uint8_t *bytes, uint32_t n, uint32_t i)
{
    for (uint32_t k = 0; k < n; k++)
        bytes[k] = (uint8_t)((k * 2654435761u >> 24) + i);
}

static void make_arrays(const char *path, uint32_t n_bytes)
{
    char file[4200], head[128];
    uint8_t *bytes = malloc(n_bytes);
    mkdir(path, 0777);
    snprintf(file, sizeof file, "%s/rows.npy", path);
    FILE *f = fopen(file, "wb");
    const int n = snprintf(head, sizeof head,
                           "{'descr': '|u1', 'fortran_order': False, 'shape': "
                           "(%u, %u), }",
                           DATA_SIZE / n_bytes, n_bytes);
    if (!f || !bytes)
        bench_die(file, NULL);
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, f);
    fprintf(f, "%s%*s\n", head, 117 - n, "");
    for (uint32_t i = 0; i < DATA_SIZE / n_bytes; i++) {
        fill(bytes, n_bytes, i);
        fwrite(bytes, 1, n_bytes, f);
    }
    if (fclose(f) != 0)
        bench_die(file, NULL);
    free(bytes);
}

static struct pstk_field field_of(enum shape shape, uint32_t n_bytes)
{
    struct pstk_field field = {.name = "rows",
                               .kind = PSTK_FIELD_NDARRAY,
                               .dtype = PSTK_U8,
                               .n_dims = 1,
                               .shape = {n_bytes}};
    if (shape == BYTES)
        field = (struct pstk_field){.name = "rows", .kind = PSTK_FIELD_BYTES};
    if (shape == WHOLE)
        field = (struct pstk_field){.name = "rows", .kind = PSTK_FIELD_IMAGE};
    return field;
}

static void make_records(const char *path, enum shape shape, uint32_t n_bytes)
{
    const struct pstk_field field = field_of(shape, n_bytes);
    const uint32_t side = side_of(n_bytes), n_image = side * side * CHANNELS;
    const struct pstk_pixels pixels = {.size = sizeof pixels,
                                       .field = 0,
                                       .width = side,
                                       .height = side,
                                       .channels = CHANNELS,
                                       .bit_depth = 8};
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    struct pstk_error err;
    uint8_t *bytes = malloc(n_bytes);
    pstk_error_init(&err, sizeof err);
    pstk_writer_settings_init(&s, sizeof s);
    s.path = path;
    s.fields = &field;
    s.n_fields = 1;
    s.overwrite = 1;
    if (!bytes || pstk_writer_open(&w, &s, &err) < 0)
        bench_die("writer", &err);
    for (uint32_t i = 0; i < DATA_SIZE / n_bytes; i++) {
        const uint32_t n = shape == WHOLE   ? n_image
                           : shape == BYTES ? n_bytes - i % (n_bytes / 2)
                                            : n_bytes;
        const struct pstk_value value = {bytes, n};
        fill(bytes, n_bytes, i);
        if (pstk_writer_add_pixels(w, &value, 1, &pixels, shape == WHOLE, &err) < 0)
            bench_die("add", &err);
    }
    if (pstk_writer_commit(&w, &err) < 0)
        bench_die("commit", &err);
    free(bytes);
}

/* Open the file of the data set, or its first shard. */
static int open_file(const char *path, uint64_t *size)
{
    char pattern[4200];
    glob_t files;
    struct stat st;
    snprintf(pattern, sizeof pattern, "%s/*.[pn][sp]*", path);
    if (glob(pattern, 0, NULL, &files) != 0)
        bench_die(pattern, NULL);
    const int fd = open(files.gl_pathv[0], O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        bench_die(files.gl_pathv[0], NULL);
    *size = (uint64_t)st.st_size;
    globfree(&files);
    return fd;
}

/* Make the data set unless it is there, and read it into the page cache. */
static void prepare(const char *path, enum shape shape, uint32_t n_bytes)
{
    static char bytes[1 << 20];
    struct pstk_dataset *d;
    uint64_t size;
    if (pstk_dataset_open(&d, path, NULL, NULL) == 0)
        pstk_dataset_close(&d);
    else if (shape == ARRAYS)
        make_arrays(path, n_bytes);
    else
        make_records(path, shape, n_bytes);
    const int fd = open_file(path, &size);
    while (read(fd, bytes, sizeof bytes) > 0)
        ;
    close(fd);
}

/* ---- bare pread ------------------------------------------------------------------------------ */

struct readers {
    atomic_int ends;
    atomic_uint_fast64_t n_done;
    int fd;
    uint64_t n_records; /* of n_bytes, in the file */
    uint32_t n_bytes;
    uint64_t memory_size; /* bytes of one thread */
};

static void *read_again(void *argument)
{
    struct readers *readers = argument;
    const uint64_t n_places = readers->memory_size / readers->n_bytes;
    uint64_t n = 0, random = (uintptr_t)&n | 1;
    char *memory = mmap(NULL, readers->memory_size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
        bench_die("mmap", NULL);
    for (; !atomic_load_explicit(&readers->ends, memory_order_relaxed); n++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const uint64_t at = (random >> 33) % readers->n_records * readers->n_bytes;
        char *to = memory + n % n_places * readers->n_bytes;
        if (pread(readers->fd, to, readers->n_bytes, (off_t)at) != (ssize_t)readers->n_bytes)
            bench_die("pread", NULL);
    }
    atomic_fetch_add(&readers->n_done, n);
    munmap(memory, readers->memory_size);
    return NULL;
}

/* Return the records a second that n_threads read. */
static double bare_rate(const char *path, uint32_t n_bytes, uint32_t n_threads, uint64_t memory,
                        double seconds)
{
    pthread_t threads[MAX_THREADS];
    uint64_t size;
    struct readers readers = {.n_bytes = n_bytes, .fd = open_file(path, &size)};
    readers.n_records = size / n_bytes;
    readers.memory_size = memory / n_threads;
    (void)posix_fadvise(readers.fd, 0, 0, POSIX_FADV_RANDOM); /* only advice */
    const double begin = bench_now();
    for (uint32_t i = 0; i < n_threads; i++)
        if (pthread_create(&threads[i], NULL, read_again, &readers) != 0)
            bench_die("pthread_create", NULL);
    usleep((useconds_t)(seconds * 1e6));
    atomic_store(&readers.ends, 1);
    for (uint32_t i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    close(readers.fd);
    return (double)readers.n_done / (bench_now() - begin);
}

/* ---- the loader ------------------------------------------------------------------------------ */

/* The memory of a loader's batches, and its CPU time a record. */
struct measure {
    double rate, cpu_us;
    uint64_t memory;
};

static struct measure measure(const char *path, enum shape shape, uint32_t n_bytes,
                              uint32_t n_workers, double seconds)
{
    const uint32_t side = shape == CROPS ? side_of(n_bytes) * 7 / 8 : side_of(n_bytes);
    const struct pstk_op crop = {.kind = PSTK_OP_RANDOM_CROP, .height = side, .width = side};
    struct pstk_output output = {.field = "rows", .kind = PSTK_OUTPUT_TENSOR};
    if (shape == BYTES)
        output.kind = PSTK_OUTPUT_BYTES;
    if (shape >= WHOLE)
        output = (struct pstk_output){
            .field = "rows", .kind = PSTK_OUTPUT_IMAGE, .image = {.ops = &crop, .n_ops = 1}};
    struct pstk_settings s;
    struct pstk_stats stats;
    pstk_settings_init(&s, sizeof s);
    s.path = path;
    s.batch_size = BATCH;
    s.n_threads = n_workers;
    s.outputs = &output;
    s.n_outputs = 1;
    s.reading.io = PSTK_IO_BUFFERED;
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    const double begin = bench_now();
    const double rate = bench_loader(&s, seconds, NULL, &stats);
    const double n = rate * (bench_now() - begin);
    getrusage(RUSAGE_SELF, &after);
    const double cpu = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1e6 +
                       (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec) +
                       (double)(after.ru_stime.tv_sec - before.ru_stime.tv_sec) * 1e6 +
                       (double)(after.ru_stime.tv_usec - before.ru_stime.tv_usec);
    return (struct measure){
        .rate = rate, .cpu_us = cpu / n, .memory = stats.n_slots * (uint64_t)BATCH * n_bytes};
}

/* ---- the table ------------------------------------------------------------------------------- */

static void compare(const char *folder, enum shape shape, uint32_t n_bytes, uint32_t n_workers,
                    double seconds, uint32_t n_rounds)
{
    struct bench_runs loader = {0}, bare = {0}, cpu = {0};
    char path[4096], name[64];
    snprintf(path, sizeof path, "%s/%s-%u", folder, shapes[shape].folder, n_bytes);
    prepare(path, shape == CROPS ? WHOLE : shape, n_bytes);
    for (uint32_t i = 0; i < n_rounds; i++) {
        const struct measure m = measure(path, shape, n_bytes, n_workers, seconds);
        bench_add(&loader, m.rate);
        bench_add(&cpu, m.cpu_us);
        bench_add(&bare, bare_rate(path, n_bytes, n_workers, m.memory, seconds));
    }
    snprintf(name, sizeof name, "%s, %u bytes, %u workers", shapes[shape].name, n_bytes, n_workers);
    bench_line(name, &loader, "records/s", &bare, 0);
    bench_line("   CPU time", &cpu, "us a record", NULL, 0);
}

static const char *parse(struct list *list, const char *text, uint32_t max)
{
    for (list->n = 0; list->n < MAX_LIST; text++) {
        char *end;
        const unsigned long value = strtoul(text, &end, 10);
        if (end == text || value < 1 || value > max)
            break;
        list->of[list->n++] = (uint32_t)value;
        if (*end == 0)
            return NULL;
        if (*end != ',')
            break;
        text = end;
    }
    return "must be whole numbers with commas between";
}

int main(int argc, char **argv)
{
    struct list workers = {1, {2}}, bytes = {3, {16000, 50000, 150000}}, rounds = {1, {5}};
    double seconds = 1;
    const char *wrong = argc % 2 ? "usage: bench_copies DIR [--bytes LIST] [--workers LIST] "
                                   "[--seconds S] [--rounds N]"
                                 : NULL;
    for (int i = 2; i + 1 < argc && !wrong; i += 2)
        if (strcmp(argv[i], "--workers") == 0)
            wrong = parse(&workers, argv[i + 1], MAX_THREADS);
        else if (strcmp(argv[i], "--bytes") == 0)
            wrong = parse(&bytes, argv[i + 1], MAX_BYTES);
        else if (strcmp(argv[i], "--rounds") == 0)
            wrong = parse(&rounds, argv[i + 1], BENCH_RUNS_MAX);
        else if (strcmp(argv[i], "--seconds") == 0)
            seconds = atof(argv[i + 1]) > 0 ? atof(argv[i + 1]) : seconds;
        else
            wrong = "unknown option";
    if (wrong)
        return fprintf(stderr, "%s\n", wrong), 2;
    mkdir(argv[1], 0777);
    for (uint32_t k = 0; k < bytes.n; k++)
        for (uint32_t i = 0; i < workers.n; i++)
            for (enum shape shape = 0; shape < N_SHAPES; shape++)
                compare(argv[1], shape, bytes.of[k], workers.of[i], seconds, rounds.of[0]);
    return 0;
}
