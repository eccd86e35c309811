/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_overhead: what a trace, or a status file that nobody asks, costs a loader of images with
 * one worker, by its processor time.
 *
 *   bench_overhead DATA [--with trace|status] [--kernels c|avx2|neon] [--batches N] [--pairs P]
 *   bench_overhead DATA --once plain|trace|status [--kernels c|avx2|neon] [--batches N]
 *
 * DATA: a data set that `penstock pack` made of a folder of JPEGs. A run takes N batches, then
 * waits until every slot holds a batch, so that each run makes the same rows. Runs with and without
 * take turns; printed are the median of the pairs' ratios, and the ratios between which it lies
 * with 95 % probability (order statistics). --once: one run and no figures, for
 *   valgrind --tool=callgrind bench_overhead DATA --once plain
 * The status file is a file in the current folder.
 */
#include "bench.h"

#include <sys/resource.h>
#include <unistd.h>

#define BATCH 16u
#define SLOTS 3u
#define MAX_PAIRS 1000
#define STATUS_FILE "bench_overhead.status"

static double processor_seconds(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

/* Processor time of all threads, from open to close, for a row that was made, in us. */
static double run(struct pstk_settings *s, uint32_t n_batches, const char *with)
{
    struct pstk_loader *loader;
    struct pstk_batch *batch;
    struct pstk_stats stats = {.size = sizeof stats};
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    const double begin = processor_seconds();
    s->observe.trace_events = strcmp(with, "trace") == 0 ? 16384 : 0;
    s->observe.monitor_path = strcmp(with, "status") == 0 ? STATUS_FILE : NULL;
    if (pstk_open(&loader, s, &err) < 0)
        bench_die("open", &err);
    for (uint32_t i = 0; i < n_batches; i++) {
        int r;
        while ((r = pstk_next(loader, &batch, NULL, -1, &err)) == 0)
            ; /* the end of an epoch */
        if (r < 0)
            bench_die("next", &err);
        pstk_release(&batch, NULL);
    }
    const uint64_t n_rows = (uint64_t)(n_batches + SLOTS) * BATCH;
    do {
        usleep(20000);
        pstk_get_stats(loader, &stats);
    } while (stats.stage_workers.n_items < n_rows);
    if (stats.fallbacks & PSTK_FALLBACK_NO_MONITOR)
        bench_die(STATUS_FILE, NULL);
    pstk_close(&loader);
    return (processor_seconds() - begin) * 1e6 / (double)n_rows;
}

static int ascends(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(struct pstk_settings *s, uint32_t n_batches, int n_pairs, const char *with)
{
    double ratios[MAX_PAIRS];
    struct bench_runs plain = {0}, more = {0};
    run(s, n_batches, "plain"); /* into the page cache */
    for (int i = 0; i < n_pairs; i++) {
        const double first = run(s, n_batches, i % 2 ? with : "plain");
        const double second = run(s, n_batches, i % 2 ? "plain" : with);
        bench_add(&plain, i % 2 ? second : first);
        bench_add(&more, i % 2 ? first : second);
        ratios[i] = i % 2 ? first / second : second / first;
    }
    qsort(ratios, (size_t)n_pairs, sizeof *ratios, ascends);
    /* Two of n values, at n / 2 -+ sqrt(n), enclose the median so often. */
    int off = 0;
    while ((off + 1) * (off + 1) <= n_pairs)
        off++;
    const int low = n_pairs / 2 - off - 1, high = (n_pairs - 1) / 2 + off + 1;
    bench_line("processor time of a row, without", &plain, "us", NULL, 0);
    bench_line("with", &more, "us", NULL, 0);
    printf("%d pairs: with a %s %.4f of that without (%.4f..%.4f)\n", n_pairs, with,
           (ratios[n_pairs / 2] + ratios[(n_pairs - 1) / 2]) / 2, ratios[low > 0 ? low : 0],
           ratios[high < n_pairs ? high : n_pairs - 1]);
}

int main(int argc, char **argv)
{
    const char *once = NULL, *with = "trace";
    long n_batches = 40, n_pairs = 30;
    struct pstk_op ops[] = {pstk_random_resized_crop(224, 224), pstk_random_flip(0.5)};
    struct pstk_output o = {.name = "image",
                            .field = "jpg",
                            .kind = PSTK_OUTPUT_IMAGE,
                            .dtype = PSTK_U8,
                            .image.ops = ops,
                            .image.n_ops = 2};
    struct pstk_settings s;
    pstk_settings_init(&s, sizeof s);
    for (int i = 2; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--kernels") == 0)
            s.reading.kernels = strcmp(argv[i + 1], "c") == 0      ? PSTK_KERNELS_C
                                : strcmp(argv[i + 1], "neon") == 0 ? PSTK_KERNELS_NEON
                                                                   : PSTK_KERNELS_AVX2;
        n_batches = strcmp(argv[i], "--batches") ? n_batches : atol(argv[i + 1]);
        n_pairs = strcmp(argv[i], "--pairs") ? n_pairs : atol(argv[i + 1]);
        once = strcmp(argv[i], "--once") ? once : argv[i + 1];
        with = strcmp(argv[i], "--with") ? with : argv[i + 1];
    }
    if (argc < 2 || n_batches < 1 || n_pairs < 1 || n_pairs > MAX_PAIRS)
        return fprintf(stderr,
                       "usage: bench_overhead DATA [--with trace|status] [--kernels c|avx2|neon] "
                       "[--batches N] [--pairs 1..1000] [--once plain|trace|status]\n"),
               2;
    s.path = argv[1];
    s.batch_size = BATCH;
    s.memory.n_slots = SLOTS;
    s.n_threads = 1;
    s.outputs = &o;
    s.n_outputs = 1;
    if (once)
        run(&s, (uint32_t)n_batches, once);
    else
        measure(&s, (uint32_t)n_batches, (int)n_pairs, with);
    return 0;
}
