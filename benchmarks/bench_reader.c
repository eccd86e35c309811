/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_reader: measure src/reader/reader.h against a bare io_uring loop. The bare loop, the
 * io_uring backend and the pread pool do the same reads, in turn within one process, so all see the
 * same state of the machine. Prints medians and ratios as one JSON line. The arguments are those of
 * bare_uring.c;
 * --seconds is the length of one turn.
 */
#define BARE_URING_NO_MAIN
#include "bare_uring.c"

#include "reader/reader.h"

#define N_TURNS 5

/* Queue the next extent into the buffer of `read`. */
static void put(struct pstk__reader *reader, const struct bare_work *w, uint64_t i,
                struct pstk__read *read)
{
    const struct bare_extent *e = &w->extents[i % w->n];
    read->offset = e->offset;
    read->size = e->size;
    reader->ops->queue(reader, read);
}

/* As bare_loop, through the table. */
static int reader_loop(struct pstk__reader *reader, const struct bare_work *w,
                       struct pstk__read *reads, struct bare_result *out)
{
    *out = (struct bare_result){0};
    struct pstk__read *done[256];
    double start = bare_now(), now = start;
    uint64_t i = 0;
    for (; i < w->depth; i++)
        put(reader, w, i, &reads[i]);
    uint64_t n_left = w->depth;
    while (n_left) {
        int n = reader->ops->submit(reader);
        if (n == 0)
            n = reader->ops->reap(reader, done, 256, 1);
        if (n < 0)
            return n;
        now = bare_now();
        for (int k = 0; k < n; k++) {
            if (done[k]->result != (int32_t)done[k]->size)
                return done[k]->result < 0 ? done[k]->result : -EIO;
            out->n_bytes += done[k]->size;
            out->n_reads++;
            if (now - start < w->seconds)
                put(reader, w, i++, done[k]);
            else
                n_left--;
        }
    }
    out->seconds = now - start;
    return 0;
}

static int reader_run(const struct bare_work *w, uint32_t kind, struct bare_result *out)
{
    struct pstk__reader_config config = {.kind = kind,
                                         .depth = w->depth,
                                         .n_files = 1,
                                         .buffers = w->buffers,
                                         .buffers_size = (uint64_t)w->depth * w->buffer_size};
    const struct pstk__file file = {.store = &pstk__store_local, .fd = w->fd};
    struct pstk__reader *reader;
    uint32_t fallbacks = 0;
    int r = pstk__reader_open(&reader, &config, &fallbacks, NULL);
    if (r < 0)
        return r;
    struct pstk__read *reads = calloc(w->depth, sizeof *reads);
    r = reads ? reader->ops->set_file(reader, 0, w->fd) : -ENOMEM;
    for (uint32_t i = 0; reads && i < w->depth; i++) {
        reads[i].from = &file;
        reads[i].fixed = 1;
        reads[i].buffer = w->buffers + (uint64_t)i * w->buffer_size;
    }
    if (r == 0)
        r = reader_loop(reader, w, reads, out);
    reader->ops->close(reader);
    free(reads);
    return r;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int measure(const struct bare_work *w)
{
    static const char *const names[] = {"bare", "io_uring", "threads"};
    double rates[3][N_TURNS], bytes_per_read = w->size;
    for (int turn = 0; turn < N_TURNS; turn++) {
        for (uint32_t way = 0; way < 3; way++) {
            struct bare_result result = {0};
            int r = way == 0 ? bare_run(w, &result) : reader_run(w, way, &result);
            if (r < 0) {
                fprintf(stderr, "%s by %s: %s\n", w->path, names[way], strerror(-r));
                return r;
            }
            rates[way][turn] = (double)result.n_reads / result.seconds;
            bytes_per_read = (double)result.n_bytes / (double)result.n_reads;
        }
    }
    for (int way = 0; way < 3; way++)
        qsort(rates[way], N_TURNS, sizeof(double), by_value);
    const int m = N_TURNS / 2;
    printf("{\"size\": %u, \"depth\": %u, \"pattern\": \"%s\", \"io\": \"%s\"", w->size, w->depth,
           w->list     ? "list"
           : w->random ? "random"
                       : "sequential",
           w->direct ? "direct" : "buffered");
    for (int way = 0; way < 3; way++)
        printf(", \"%s\": {\"reads_per_second\": %.0f, \"bytes_per_second\": %.0f}", names[way],
               rates[way][m], rates[way][m] * bytes_per_read);
    printf(", \"io_uring_ratio\": %.3f, \"threads_ratio\": %.3f}\n", rates[1][m] / rates[0][m],
           rates[2][m] / rates[0][m]);
    return 0;
}

int main(int argc, char **argv)
{
    struct bare_work w;
    int r = bare_parse(&w, argc, argv);
    if (r == 0)
        r = measure(&w);
    bare_free(&w);
    return r < 0;
}
