/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_defaults: whether the number of workers that a loader chooses is the best one. For each
 * shape of data it runs the loader with its own choice and with each number from 1 to twice the
 * cores, in turns, first for a consumer that sleeps until a batch is there, then for one that asks
 * again and again, which keeps one core busy.
 *
 *   bench_defaults JPEGS DIR [--threads LIST] [--shapes LIST] [--seconds S] [--rounds R]
 *                 [--per second|cpu]
 *
 * JPEGS: a data set that `penstock pack` made of a folder of JPEGs. LIST: with commas between;
 * shapes: jpeg,pixels,arrays,small. Makes (and keeps) DIR/pixels (256 x 256 RGB), DIR/arrays
 * (150 kB) and DIR/small (2 kB), which stay in the page cache. Other programs spoil the rates: they
 * leave more of the cores to more threads. So --per cpu counts rows a second of CPU time instead,
 * for the consumer that sleeps. It compares only numbers of workers that keep all cores busy. It
 * prints the median rate of each number of workers, and at the end of a line the ratio of the
 * default to the best of them.
 */
#include "bench.h"

#include <sched.h>
#include <sys/stat.h>

#define MAX_THREADS 64u
#define SIDE 256u                     /* pixels of a stored image */
#define ARRAY_SIZE 150528u            /* bytes: 224 x 224 x 3 */
#define SMALL_SIZE 2048u              /* bytes */
#define DATA_SIZE (UINT64_C(1) << 27) /* bytes of one data set that is made */

struct shape {
    const char *name;
    uint32_t record_size; /* bytes; 0: the data set is given */
    uint32_t batch_size;
    int has_images;
};

static const struct shape shapes[] = {{"jpeg", 0, 64, 1},
                                      {"pixels", SIDE *SIDE * 3, 64, 1},
                                      {"arrays", ARRAY_SIZE, 64, 0},
                                      {"small", SMALL_SIZE, 1024, 0}};
#define N_SHAPES (sizeof shapes / sizeof *shapes)

struct options {
    const char *jpegs, *folder;
    const char *shapes; /* NULL: all */
    uint32_t n_threads; /* entries of `threads` */
    uint32_t threads[MAX_THREADS];
    double seconds;
    int rounds;
    int per_cpu; /* 1: rates are those of a second of CPU time of this process */
};

static uint32_t n_cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 1;
}

static int add(struct pstk_writer *w, const struct shape *shape, const void *bytes,
               struct pstk_error *err)
{
    const struct pstk_value value = {bytes, shape->record_size};
    const struct pstk_pixels pixels = {
        .size = sizeof pixels, .height = SIDE, .width = SIDE, .channels = 3, .bit_depth = 8};
    return shape->has_images ? pstk_writer_add_pixels(w, &value, 1, &pixels, 1, err)
                             : pstk_writer_add(w, &value, 1, err);
}

static void make(const char *path, const struct shape *shape)
{
    const struct pstk_field image = {.name = "jpg", .kind = PSTK_FIELD_IMAGE},
                            array = {.name = "values",
                                     .kind = PSTK_FIELD_NDARRAY,
                                     .dtype = PSTK_U8,
                                     .n_dims = 1,
                                     .shape = {shape->record_size}};
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    struct pstk_error err;
    uint8_t *bytes = malloc(shape->record_size);
    pstk_error_init(&err, sizeof err);
    pstk_writer_settings_init(&s, sizeof s);
    s.path = path;
    s.fields = shape->has_images ? &image : &array;
    s.n_fields = 1;
    s.overwrite = 1;
    if (!bytes || pstk_writer_open(&w, &s, &err) < 0)
        bench_die("writer", &err);
    for (uint32_t i = 0; i < shape->record_size; i++)
        bytes[i] = (uint8_t)(i * 2654435761u >> 24);
    for (uint64_t i = 0; i < DATA_SIZE / shape->record_size; i++)
        if (add(w, shape, bytes, &err) < 0)
            bench_die("add", &err);
    if (pstk_writer_commit(&w, &err) < 0)
        bench_die("commit", &err);
    free(bytes);
}

static const char *path_of(const struct shape *shape, const struct options *options,
                           char path[4096])
{
    struct pstk_dataset *d;
    if (shape->record_size == 0)
        return options->jpegs;
    snprintf(path, 4096, "%s/%s", options->folder, shape->name);
    if (pstk_dataset_open(&d, path, NULL, NULL) < 0)
        make(path, shape);
    else
        pstk_dataset_close(&d);
    return path;
}

/* Take batches until `end`, return their rows. */
static uint64_t take(struct pstk_loader *loader, double end, int spins)
{
    struct pstk_batch *batch;
    struct pstk_error err;
    uint64_t n = 0;
    pstk_error_init(&err, sizeof err);
    while (bench_now() < end) {
        const int r = pstk_next(loader, &batch, NULL, spins ? 0 : -1, &err);
        if (r < 0 && r != PSTK_ETIMEDOUT)
            bench_die("next", &err);
        if (r > 0) {
            n += batch->n_valid;
            pstk_release(&batch, NULL);
        }
    }
    return n;
}

/* Return the CPU time of this process in seconds, which ended threads keep. */
static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Return the rows a second of a loader with so many workers; 0: its own choice, which *n_workers
 * then is. */
static double rate_of(const struct shape *shape, const char *path, uint32_t n_threads,
                      const struct options *options, int spins, uint32_t *n_workers)
{
    struct pstk_op ops[] = {pstk_random_resized_crop(224, 224), pstk_random_flip(0.5)};
    const struct pstk_output output =
        shape->has_images ? (struct pstk_output){.name = "image",
                                                 .field = "jpg",
                                                 .kind = PSTK_OUTPUT_IMAGE,
                                                 .dtype = PSTK_U8,
                                                 .image = {.ops = ops, .n_ops = 2}}
                          : (struct pstk_output){.field = "values", .kind = PSTK_OUTPUT_TENSOR};
    struct pstk_settings s;
    struct pstk_loader *loader;
    struct pstk_error err;
    struct pstk_stats stats = {.size = sizeof stats};
    pstk_error_init(&err, sizeof err);
    pstk_settings_init(&s, sizeof s);
    s.path = path;
    s.batch_size = shape->batch_size;
    s.n_threads = n_threads;
    s.outputs = &output;
    s.n_outputs = 1;
    s.reading.io = PSTK_IO_BUFFERED;
    if (pstk_open(&loader, &s, &err) < 0)
        bench_die("open", &err);
    take(loader, bench_now() + options->seconds / 10, spins);
    const double begin = bench_now(), cpu = cpu_seconds();
    const uint64_t n = take(loader, begin + options->seconds, spins);
    const double rate = (double)n / (options->per_cpu ? cpu_seconds() - cpu : bench_now() - begin);
    pstk_get_stats(loader, &stats);
    *n_workers = stats.n_threads;
    pstk_close(&loader);
    return rate;
}

static void measure(const struct shape *shape, const struct options *options, int spins)
{
    struct bench_runs runs[1 + MAX_THREADS] = {{0}};
    char folder[4096];
    const char *path = path_of(shape, options, folder);
    uint32_t chosen = 0, unused;
    for (int round = 0; round < options->rounds; round++)
        for (uint32_t k = 0; k <= options->n_threads; k++) {
            /* each round begins with another number, so that no number always follows the same */
            const uint32_t i = (k + (uint32_t)round) % (options->n_threads + 1);
            bench_add(&runs[i], rate_of(shape, path, i ? options->threads[i - 1] : 0, options,
                                        spins, i ? &unused : &chosen));
        }
    double best = bench_median(&runs[0]);
    printf("%-7s %-6s %3u %9.0f", shape->name, spins ? "spins" : "sleeps", chosen, best);
    for (uint32_t i = 1; i <= options->n_threads; i++) {
        const double rate = bench_median(&runs[i]);
        printf(" %3u: %-9.0f", options->threads[i - 1], rate);
        best = rate > best ? rate : best;
    }
    printf(" %.2f\n", bench_median(&runs[0]) / best);
    fflush(stdout);
}

/* Return 1 if the name is one of a list with commas between. */
static int is_listed(const char *list, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == 0))
            return 1;
    return !list;
}

static int parse_threads(struct options *options, const char *text)
{
    for (options->n_threads = 0; options->n_threads < MAX_THREADS; text++) {
        char *end;
        const unsigned long n = strtoul(text, &end, 10);
        if (end == text || n < 1 || n > 1024)
            return -1;
        options->threads[options->n_threads++] = (uint32_t)n;
        if (*end == 0)
            return 0;
        text = end;
    }
    return -1;
}

int main(int argc, char **argv)
{
    struct options options = {.seconds = 1, .rounds = 5};
    int wrong = argc < 3 || argc % 2 == 0;
    for (uint32_t n = 1; n <= 2 * n_cores() && n <= MAX_THREADS; n++)
        options.threads[options.n_threads++] = n;
    for (int i = 3; i + 1 < argc && !wrong; i += 2)
        if (strcmp(argv[i], "--threads") == 0)
            wrong = parse_threads(&options, argv[i + 1]) < 0;
        else if (strcmp(argv[i], "--shapes") == 0)
            options.shapes = argv[i + 1];
        else if (strcmp(argv[i], "--seconds") == 0)
            wrong = (options.seconds = atof(argv[i + 1])) <= 0;
        else if (strcmp(argv[i], "--rounds") == 0)
            wrong = (options.rounds = atoi(argv[i + 1])) < 1 || options.rounds > BENCH_RUNS_MAX;
        else if (strcmp(argv[i], "--per") == 0)
            wrong = !(options.per_cpu = strcmp(argv[i + 1], "cpu") == 0) &&
                    strcmp(argv[i + 1], "second") != 0;
        else
            wrong = 1;
    if (wrong)
        return fprintf(stderr, "usage: bench_defaults JPEGS DIR [--threads LIST] [--shapes LIST] "
                               "[--seconds S] [--rounds R] [--per second|cpu]\n"),
               2;
    options.jpegs = argv[1];
    options.folder = argv[2];
    mkdir(options.folder, 0777);
    printf("rows a second%s of %u cores, medians of %d rounds of %.1f s; the default and its "
           "workers first, "
           "its ratio to the best last\n",
           options.per_cpu ? " of CPU time" : "", n_cores(), options.rounds, options.seconds);
    for (int spins = 0; spins < (options.per_cpu ? 1 : 2); spins++)
        for (size_t i = 0; i < N_SHAPES; i++)
            if (is_listed(options.shapes, shapes[i].name))
                measure(&shapes[i], &options, spins);
    return 0;
}
