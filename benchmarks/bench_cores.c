/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cores: a loader of many workers and NUMA nodes on a machine that has few. The workers'
 * decode sleeps 0.4 ms and uses no core, so that a machine of 2 cores runs 128 of them; the nodes
 * are hwloc's synthetic ones. What is left of a core's time is that of the loader's own threads.
 *
 *   bench_cores DIR [--workers LIST] [--bytes LIST] [--nodes LIST] [--seconds S]
 *
 * LIST: whole numbers with commas between. Makes (and keeps) DIR/records-N: records of N bytes,
 * 128 MB of them, which stay in the page cache. For each number of nodes, size and number of
 * workers it prints the rate in full random order, and the CPU time a record of each kind of
 * thread. Next to the rate stand two bounds, measured just before: the same number of threads that
 * sleep without a loader, and bare parallel pread of as many bytes of the same files, in random
 * order, by a thread a core. The ratio is that to the lower bound, which is named.
 */
#include "bench.h"

#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define SLEEP_NS 400000L
#define DATA_SIZE 128000000u /* bytes of one data set */
#define MAX_BYTES 16000000u  /* largest record */
#define MAX_THREADS 256u
#define MAX_NODES 64u
#define MAX_LIST 16u
#define BATCH 32u

struct list {
    uint32_t n;
    uint32_t of[MAX_LIST];
};

/* Threads that repeat one thing until `ends`. */
struct crowd {
    atomic_int ends;
    atomic_uint_fast64_t n_done;
    int fd;
    uint64_t n_records; /* number of records of n_bytes in the file */
    uint32_t n_bytes;
};

/* One line of the table. Times are in ns a record. */
struct line {
    double rate, sleeping, reading; /* records/s */
    double reader, workers, consumer, process;
};

static int sleep_once(void *user, const struct pstk_sample *sample, void *row, uint64_t size)
{
    const struct timespec time = {.tv_nsec = SLEEP_NS};
    (void)user, (void)sample;
    memset(row, 0, size);
    nanosleep(&time, NULL);
    return 0;
}

static void *sleep_again(void *argument)
{
    struct crowd *crowd = argument;
    uint64_t n = 0;
    char row;
    for (; !atomic_load_explicit(&crowd->ends, memory_order_relaxed); n++)
        sleep_once(NULL, NULL, &row, sizeof row);
    atomic_fetch_add(&crowd->n_done, n);
    return NULL;
}

static void *read_again(void *argument)
{
    struct crowd *crowd = argument;
    uint64_t n = 0, random = (uintptr_t)&n | 1;
    char *bytes = malloc(crowd->n_bytes);
    if (!bytes)
        bench_die("malloc", NULL);
    for (; !atomic_load_explicit(&crowd->ends, memory_order_relaxed); n++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const uint64_t at = (random >> 33) % crowd->n_records * crowd->n_bytes;
        if (pread(crowd->fd, bytes, crowd->n_bytes, (off_t)at) != (ssize_t)crowd->n_bytes)
            bench_die("pread", NULL);
    }
    atomic_fetch_add(&crowd->n_done, n);
    free(bytes);
    return NULL;
}

/* Return how often n_threads do it in a second, together. */
static double rate_of(struct crowd *crowd, void *(*what)(void *), uint32_t n_threads,
                      double seconds)
{
    pthread_t threads[MAX_THREADS];
    const double begin = bench_now();
    for (uint32_t i = 0; i < n_threads; i++)
        if (pthread_create(&threads[i], NULL, what, crowd) != 0)
            bench_die("pthread_create", NULL);
    usleep((useconds_t)(seconds * 1e6));
    atomic_store(&crowd->ends, 1);
    for (uint32_t i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    return (double)crowd->n_done / (bench_now() - begin);
}

static double sleeping_rate(uint32_t n_threads, double seconds)
{
    struct crowd crowd = {.n_done = 0};
    return rate_of(&crowd, sleep_again, n_threads, seconds);
}

static uint32_t n_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    const uint32_t n = (uint32_t)CPU_COUNT(&set);
    return n < MAX_THREADS ? n : MAX_THREADS;
}

/* Open the first shard of the data set. */
static int open_shard(const char *path, uint64_t *size)
{
    char pattern[4200];
    glob_t shards;
    struct stat file;
    snprintf(pattern, sizeof pattern, "%s/*.pstk", path);
    if (glob(pattern, 0, NULL, &shards) != 0)
        bench_die(pattern, NULL);
    const int fd = open(shards.gl_pathv[0], O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &file) != 0)
        bench_die(shards.gl_pathv[0], NULL);
    *size = (uint64_t)file.st_size;
    globfree(&shards);
    return fd;
}

static double reading_rate(const char *path, uint32_t n_bytes, double seconds)
{
    uint64_t size;
    struct crowd crowd = {.n_bytes = n_bytes, .fd = open_shard(path, &size)};
    crowd.n_records = size / n_bytes;
    const double rate = rate_of(&crowd, read_again, n_cores(), seconds);
    close(crowd.fd);
    return rate;
}

static void make_records(const char *path, uint32_t n_bytes)
{
    const struct pstk_field field = {.name = "bytes", .kind = PSTK_FIELD_BYTES};
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
    for (uint32_t i = 0; i < n_bytes; i++)
        bytes[i] = (uint8_t)(i * 2654435761u >> 24);
    for (uint32_t i = 0; i < DATA_SIZE / n_bytes; i++) {
        const struct pstk_value value = {bytes, n_bytes};
        if (pstk_writer_add(w, &value, 1, &err) < 0)
            bench_die("add", &err);
    }
    if (pstk_writer_commit(&w, &err) < 0)
        bench_die("commit", &err);
    free(bytes);
}

/* Make the data set unless it is there, and read its shard into the page cache. */
static void prepare(const char *path, uint32_t n_bytes)
{
    static char bytes[1 << 20];
    struct pstk_dataset *d;
    uint64_t size;
    if (pstk_dataset_open(&d, path, NULL, NULL) < 0)
        make_records(path, n_bytes);
    else
        pstk_dataset_close(&d);
    const int fd = open_shard(path, &size);
    while (read(fd, bytes, sizeof bytes) > 0)
        ;
    close(fd);
}

static double thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* Take batches until `end`; return their rows. */
static uint64_t take(struct pstk_loader *loader, double end)
{
    uint64_t n = 0;
    struct pstk_batch *batch;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    while (bench_now() < end) {
        const int r = pstk_next(loader, &batch, NULL, -1, &err);
        if (r < 0)
            bench_die("next", &err);
        if (r > 0) {
            n += batch->n_valid;
            pstk_release(&batch, NULL);
        }
    }
    return n;
}

/* Run a loader of the data set: first a tenth of the time unmeasured, as it starts. */
static void run_loader(struct line *line, const char *path, uint32_t n_workers, double seconds)
{
    const struct pstk_output output = {
        .name = "slept",
        .field = "bytes",
        .kind = PSTK_OUTPUT_CALLBACK,
        .dtype = PSTK_U8,
        .callback = {.decode = sleep_once, .n_dims = 1, .shape = {1}}};
    struct pstk_settings s;
    struct pstk_loader *loader;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    pstk_settings_init(&s, sizeof s);
    s.path = path;
    s.batch_size = BATCH;
    s.n_threads = n_workers;
    s.outputs = &output;
    s.n_outputs = 1;
    s.reading.io = PSTK_IO_BUFFERED;
    if (pstk_open(&loader, &s, &err) < 0)
        bench_die("open", &err);
    take(loader, bench_now() + seconds / 10);
    struct pstk_stats before = {.size = sizeof before}, after = {.size = sizeof after};
    pstk_get_stats(loader, &before);
    const double begin = bench_now(), consumer = thread_ns();
    uint64_t n_rows = take(loader, begin + seconds);
    while (n_rows == 0)
        n_rows = take(loader, bench_now() + seconds);
    const double n = (double)n_rows;
    line->rate = n / (bench_now() - begin);
    line->consumer = (thread_ns() - consumer) / n;
    usleep(200000); /* the times of threads are asked for again after a rest */
    pstk_get_stats(loader, &after);
    line->reader = (double)(after.stage_reader.cpu_ns - before.stage_reader.cpu_ns) / n;
    line->workers = (double)(after.stage_workers.cpu_ns - before.stage_workers.cpu_ns) / n;
    line->process = (double)(after.cpu_ns - before.cpu_ns) / n;
    pstk_close(&loader);
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

/* Describe a machine of so many nodes to hwloc, with a core for each worker. */
static void set_nodes(uint32_t n_nodes, uint32_t n_workers)
{
    char text[96];
    snprintf(text, sizeof text, "pack:%u [numa] core:%u pu:1", n_nodes,
             (n_workers + n_nodes - 1) / n_nodes + 1);
    setenv("HWLOC_SYNTHETIC", text, 1);
}

static void print_line(const struct line *line, uint32_t n_nodes, uint32_t n_bytes,
                       uint32_t n_workers)
{
    const int sleeps = line->sleeping < line->reading;
    printf("%5u %8u %7u %11.0f %11.0f %11.0f %6.2f %-8s %8.2f %8.2f %8.2f %8.2f\n", n_nodes,
           n_bytes, n_workers, line->rate, line->sleeping, line->reading,
           line->rate / (sleeps ? line->sleeping : line->reading), sleeps ? "sleeping" : "pread",
           line->reader / 1e3, line->workers / 1e3, line->consumer / 1e3, line->process / 1e3);
    fflush(stdout);
}

static void measure(const char *folder, uint32_t n_nodes, uint32_t n_bytes,
                    const struct list *workers, double seconds)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/records-%u", folder, n_bytes);
    prepare(path, n_bytes);
    for (uint32_t i = 0; i < workers->n; i++) {
        struct line line = {.sleeping = sleeping_rate(workers->of[i], seconds / 2),
                            .reading = reading_rate(path, n_bytes, seconds / 2)};
        set_nodes(n_nodes, workers->of[i]);
        run_loader(&line, path, workers->of[i], seconds);
        print_line(&line, n_nodes, n_bytes, workers->of[i]);
    }
}

int main(int argc, char **argv)
{
    struct list workers = {7, {2, 4, 8, 16, 32, 64, 128}}, bytes = {3, {2000, 100000, 1000000}},
                nodes = {3, {1, 2, 8}};
    double seconds = 2;
    const char *wrong = argc % 2 ? "usage: bench_cores DIR [--workers LIST] [--bytes LIST] "
                                   "[--nodes LIST] [--seconds S]"
                                 : NULL;
    for (int i = 2; i + 1 < argc && !wrong; i += 2)
        if (strcmp(argv[i], "--workers") == 0)
            wrong = parse(&workers, argv[i + 1], MAX_THREADS);
        else if (strcmp(argv[i], "--bytes") == 0)
            wrong = parse(&bytes, argv[i + 1], MAX_BYTES);
        else if (strcmp(argv[i], "--nodes") == 0)
            wrong = parse(&nodes, argv[i + 1], MAX_NODES);
        else if (strcmp(argv[i], "--seconds") == 0)
            seconds = atof(argv[i + 1]) > 0 ? atof(argv[i + 1]) : seconds;
        else
            wrong = "unknown option";
    if (wrong)
        return fprintf(stderr, "%s\n", wrong), 2;
    mkdir(argv[1], 0777);
    printf("%5s %8s %7s %11s %11s %11s %6s %-8s %8s %8s %8s %8s\n", "nodes", "bytes", "workers",
           "records/s", "sleeping/s", "pread/s", "ratio", "bound", "reader", "workers", "consumer",
           "process");
    for (uint32_t k = 0; k < nodes.n; k++)
        for (uint32_t i = 0; i < bytes.n; i++)
            measure(argv[1], nodes.of[k], bytes.of[i], &workers, seconds);
    puts("reader, workers, consumer, process: us of CPU time a record");
    return 0;
}
