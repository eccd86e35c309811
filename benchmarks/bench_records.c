/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_records: measure reader, checks and hand-over with records that have no pixels.
 *
 *   bench_records DIR [--bytes N] [--records N] [--seconds S] [--runs R] [--threads T]
 *                 [--batch-size B]
 *
 * Makes (and keeps) DIR/tokens-N: records of N bytes (2048; u16 tokens) and a label, 1 GB of them,
 * or as many as --records asks for. Then it measures, in turn, R times: full random order from the
 * page cache, against memcpy and bare reads; the same in sequential order; the loader with an
 * output that decodes nothing; and direct reads from the disk, against bare direct reads.
 */
#include "bench.h"

#include <sys/stat.h>

static void make_tokens(const char *path, uint64_t n, uint32_t n_tokens)
{
    struct pstk_field fields[] = {{.name = "tokens",
                                   .kind = PSTK_FIELD_NDARRAY,
                                   .dtype = PSTK_U16,
                                   .n_dims = 1,
                                   .shape = {n_tokens}},
                                  {.name = "cls", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_I64}};
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    struct pstk_error err;
    uint16_t *tokens = malloc(n_tokens * sizeof *tokens);
    pstk_error_init(&err, sizeof err);
    pstk_writer_settings_init(&s, sizeof s);
    s.path = path;
    s.fields = fields;
    s.n_fields = 2;
    s.overwrite = 1;
    if (!tokens || pstk_writer_open(&w, &s, &err) < 0)
        bench_die("writer", &err);
    for (uint64_t i = 0; i < n; i++) {
        int64_t label = (int64_t)i;
        for (uint32_t k = 0; k < n_tokens; k++)
            tokens[k] = (uint16_t)(i * 31 + k * 7);
        struct pstk_value v[] = {{tokens, n_tokens * sizeof *tokens}, {&label, sizeof label}};
        if (pstk_writer_add(w, v, 2, &err) < 0)
            bench_die("add", &err);
    }
    if (pstk_writer_commit(&w, &err) < 0)
        bench_die("commit", &err);
    free(tokens);
}

static int decode_nothing(void *user, const struct pstk_sample *sample, void *row, uint64_t size)
{
    (void)user, (void)sample;
    memset(row, 0, size);
    return 0;
}

static const struct pstk_output outputs[] = {{.field = "tokens", .kind = PSTK_OUTPUT_TENSOR},
                                             {.field = "cls", .kind = PSTK_OUTPUT_SCALAR}};
static const struct pstk_output nothing[] = {{.name = "nothing",
                                              .field = "cls",
                                              .kind = PSTK_OUTPUT_CALLBACK,
                                              .dtype = PSTK_U8,
                                              .callback.n_dims = 1,
                                              .callback.shape = {1},
                                              .callback.decode = decode_nothing}};

struct figures {
    struct bench_runs full, sequential, empty, direct, memory, reads, direct_bytes, disk_bytes;
};

static void run_once(struct figures *f, struct pstk_settings s, double seconds)
{
    struct pstk_ceilings c = {.size = sizeof c};
    struct pstk_error err;
    double bytes;
    pstk_error_init(&err, sizeof err);
    s.reading.io = PSTK_IO_BUFFERED;
    s.order.kind = PSTK_ORDER_FULL;
    bench_add(&f->full, bench_loader(&s, seconds, NULL, NULL));
    if (pstk_measure_ceilings(&s, 4 * seconds, &c, &err) < 0)
        bench_die("ceilings", &err);
    bench_add(&f->memory, c.memory_bytes_per_second);
    bench_add(&f->reads, c.storage_reads_per_second);
    s.order.kind = PSTK_ORDER_SEQUENTIAL;
    bench_add(&f->sequential, bench_loader(&s, seconds, NULL, NULL));
    s.order.kind = PSTK_ORDER_FULL;
    s.outputs = nothing;
    s.n_outputs = 1;
    bench_add(&f->empty, bench_loader(&s, seconds, NULL, NULL));
    s.outputs = outputs;
    s.n_outputs = 2;
    s.reading.io = PSTK_IO_DIRECT;
    bench_add(&f->direct, bench_loader(&s, seconds, &bytes, NULL));
    bench_add(&f->direct_bytes, bytes);
    if (pstk_measure_ceilings(&s, 4 * seconds, &c, &err) < 0)
        bench_die("ceilings", &err);
    bench_add(&f->disk_bytes, c.storage_bytes_per_second);
}

int main(int argc, char **argv)
{
    uint64_t n = 0;
    uint32_t bytes = 2048;
    double seconds = 2;
    int runs = 3;
    struct pstk_settings s;
    struct figures f = {0};
    char path[4096];
    pstk_settings_init(&s, sizeof s);
    if (argc < 2)
        return fprintf(stderr, "usage: bench_records DIR [--records N] [--seconds S] [--runs R] "
                               "[--threads T] [--batch-size B]\n"),
               2;
    for (int i = 2; i + 1 < argc; i += 2) {
        bytes = strcmp(argv[i], "--bytes") ? bytes : (uint32_t)atoi(argv[i + 1]);
        n = strcmp(argv[i], "--records") ? n : strtoull(argv[i + 1], NULL, 10);
        seconds = strcmp(argv[i], "--seconds") ? seconds : atof(argv[i + 1]);
        runs = strcmp(argv[i], "--runs") ? runs : atoi(argv[i + 1]);
        s.n_threads = strcmp(argv[i], "--threads") ? s.n_threads : (uint32_t)atoi(argv[i + 1]);
        s.batch_size = strcmp(argv[i], "--batch-size") ? s.batch_size : (uint32_t)atoi(argv[i + 1]);
    }
    mkdir(argv[1], 0777);
    bytes = bytes < 2 ? 2 : bytes / 2 * 2;
    snprintf(path, sizeof path, "%s/tokens-%u", argv[1], bytes);
    struct pstk_dataset *d;
    if (pstk_dataset_open(&d, path, NULL, NULL) < 0)
        make_tokens(path, n ? n : 1000000000u / bytes, bytes / 2);
    else
        pstk_dataset_close(&d);
    s.path = path;
    s.batch_size = s.batch_size > 1 ? s.batch_size : 1024;
    s.outputs = outputs;
    s.n_outputs = 2;
    for (int i = 0; i < runs; i++)
        run_once(&f, s, seconds);
    struct bench_runs cost = {0};
    for (int i = 0; i < f.empty.n; i++)
        bench_add(&cost, 1e9 / f.empty.value[i]);
    struct bench_runs copied = {0};
    for (int i = 0; i < f.memory.n; i++)
        bench_add(&copied, f.memory.value[i] / bytes);
    printf("records of %u bytes, batch %u, %d runs of %.1f s: median (lowest..highest)\n", bytes,
           s.batch_size, runs, seconds);
    bench_line("full random order, page cache", &f.full, "records/s", &copied,
               bytes == 2048 ? 1e6 : 0.8);
    bench_line("  for comparison: bare reads, no checks", &f.reads, "reads/s", NULL, 0);
    bench_line("sequential, page cache", &f.sequential, "records/s", &copied, 0.8);
    bench_line("  for comparison: memcpy of the bytes", &copied, "records/s", NULL, 0);
    bench_line("loader alone, nothing decoded", &cost, "ns a sample", NULL, 1000);
    bench_line("full random order, direct", &f.direct, "records/s", NULL, 0);
    bench_line("  bytes read", &f.direct_bytes, "B/s", &f.disk_bytes, 0.95);
    bench_line("  for comparison: bare direct reads", &f.disk_bytes, "B/s", NULL, 0);
    return 0;
}
