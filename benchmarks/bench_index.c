/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_index: measure open, and the loader alone, with very many very small records.
 *
 *   bench_index DIR [--records N] [--seconds S] [--runs R]
 *
 * Makes (and keeps) DIR/labels: N (default 10^8) records of one i64 scalar in shards of 256 MiB.
 * Prints the time and memory of open, and the cost of a sample in two orders. In sequential order
 * it is the cost of the loader alone: reads coalesce, and a row is 8 bytes. In full random order
 * most rows need an index page that the cache, whose size is printed, no longer holds.
 */
#include "bench.h"

#include <sys/stat.h>

static void make_labels(const char *path, uint64_t n)
{
    struct pstk_field field = {.name = "cls", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_I64};
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    pstk_writer_settings_init(&s, sizeof s);
    s.path = path;
    s.fields = &field;
    s.n_fields = 1;
    s.overwrite = 1;
    double start = bench_now();
    if (pstk_writer_open(&w, &s, &err) < 0)
        bench_die("writer", &err);
    for (uint64_t i = 0; i < n; i++) {
        int64_t label = (int64_t)i;
        struct pstk_value v = {&label, sizeof label};
        if (pstk_writer_add(w, &v, 1, &err) < 0)
            bench_die("add", &err);
    }
    if (pstk_writer_commit(&w, &err) < 0)
        bench_die("commit", &err);
    printf("wrote %.3g records in %.1f s\n", (double)n, bench_now() - start);
}

int main(int argc, char **argv)
{
    uint64_t n = 100000000;
    double seconds = 2;
    int runs = 3;
    char path[4096];
    struct pstk_dataset *d;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    if (argc < 2)
        return fprintf(stderr, "usage: bench_index DIR [--records N] [--seconds S] [--runs R]\n"),
               2;
    for (int i = 2; i + 1 < argc; i += 2) {
        n = strcmp(argv[i], "--records") ? n : strtoull(argv[i + 1], NULL, 10);
        seconds = strcmp(argv[i], "--seconds") ? seconds : atof(argv[i + 1]);
        runs = strcmp(argv[i], "--runs") ? runs : atoi(argv[i + 1]);
    }
    mkdir(argv[1], 0777);
    snprintf(path, sizeof path, "%s/labels", argv[1]);
    if (pstk_dataset_open(&d, path, NULL, NULL) < 0)
        make_labels(path, n);
    else
        pstk_dataset_close(&d);

    double rss = bench_rss(), start = bench_now();
    if (pstk_dataset_open(&d, path, NULL, &err) < 0)
        bench_die("open", &err);
    double opened = bench_now() - start;
    struct pstk_dataset_info info = {.size = sizeof info};
    pstk_dataset_get_info(d, &info);
    printf("open: %.3g samples in %llu shards: %.3f ms, %.0f KiB more resident\n",
           (double)info.n_samples, (unsigned long long)info.n_shards, 1e3 * opened,
           (bench_rss() - rss) / 1024);
    pstk_dataset_close(&d);

    const struct pstk_output output = {.field = "cls", .kind = PSTK_OUTPUT_SCALAR};
    struct pstk_settings s;
    struct bench_runs cost = {0}, random = {0};
    struct pstk_stats st = {.size = sizeof st};
    pstk_settings_init(&s, sizeof s);
    s.path = path;
    s.outputs = &output;
    s.n_outputs = 1;
    s.batch_size = 4096;
    for (int i = 0; i < runs; i++) {
        s.order.kind = PSTK_ORDER_SEQUENTIAL;
        bench_add(&cost, 1e9 / bench_loader(&s, seconds, NULL, NULL));
        s.order.kind = PSTK_ORDER_FULL;
        bench_add(&random, bench_loader(&s, seconds, NULL, &st));
    }
    bench_line("loader alone, sequential, 8-byte rows", &cost, "ns a sample", NULL, 1000);
    bench_line("full random order", &random, "records/s", NULL, 0);
    printf("  index cache %.0f MiB, misses %.1f %%, resident %.0f MiB in all\n",
           (double)st.index_memory / 1048576,
           100.0 * (double)st.n_index_misses / (double)(st.n_index_hits + st.n_index_misses),
           bench_rss() / 1048576);
    return 0;
}
