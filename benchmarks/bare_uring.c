/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bare_uring: measure the storage ceiling. A bare io_uring loop, without any code of penstock,
 * reads a file with a given size, order and depth of reads. Prints one JSON line.
 *
 *   bare_uring FILE [--size BYTES] [--pattern random|sequential] [--depth N] [--io direct|buffered]
 *              [--seconds S] [--list FILE]
 *
 * --list: a text file with one read in each line, "offset size" in bytes, instead of --size and
 * --pattern.
 * bench_reader.c includes this file and names its own main.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct bare_extent {
    uint64_t offset;
    uint32_t size;
};

/* The reads to make, and how. bare_parse fills it. */
struct bare_work {
    const char *path, *list;
    uint32_t size, depth; /* bytes; reads in flight */
    int random, direct;
    double seconds;
    int fd;
    struct bare_extent *extents; /* n, read again and again, in this order */
    uint64_t n;
    uint32_t buffer_size; /* bytes of one buffer: the largest read, rounded up to pages */
    uint8_t *buffers;     /* depth of them */
};

struct bare_result {
    double seconds;
    uint64_t n_reads, n_bytes;
};

static double bare_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int bare_usage(const char *why)
{
    fprintf(stderr,
            "%s\nusage: FILE [--size BYTES] [--pattern random|sequential] [--depth N]\n"
            "       [--io direct|buffered] [--seconds S] [--list FILE]\n",
            why);
    return -1;
}

static int bare_option(struct bare_work *w, const char *name, const char *value)
{
    if (!strcmp(name, "--size"))
        w->size = (uint32_t)strtoul(value, NULL, 0);
    else if (!strcmp(name, "--depth"))
        w->depth = (uint32_t)strtoul(value, NULL, 0);
    else if (!strcmp(name, "--seconds"))
        w->seconds = strtod(value, NULL);
    else if (!strcmp(name, "--list"))
        w->list = value;
    else if (!strcmp(name, "--pattern"))
        w->random = !strcmp(value, "random");
    else if (!strcmp(name, "--io"))
        w->direct = !strcmp(value, "direct");
    else
        return bare_usage(name);
    return 0;
}

/* The extents of a list file. */
static int bare_read_list(struct bare_work *w)
{
    FILE *f = fopen(w->list, "re");
    if (!f)
        return perror(w->list), -1;
    unsigned long long offset, size;
    uint64_t room = 0;
    while (fscanf(f, "%llu %llu", &offset, &size) == 2) {
        if (w->n == room) {
            room = room ? room * 2 : 4096;
            struct bare_extent *more = realloc(w->extents, room * sizeof *more);
            if (!more)
                break;
            w->extents = more;
        }
        w->extents[w->n++] = (struct bare_extent){offset, (uint32_t)size};
        if (size > w->size)
            w->size = (uint32_t)size;
    }
    fclose(f);
    return w->n ? 0 : bare_usage("the list has no line \"offset size\"");
}

/* The extents of a pattern over the whole file: as many as fit in it, at most 2^20. */
static int bare_make_extents(struct bare_work *w, uint64_t file_size)
{
    uint64_t align = w->direct ? 4096 : 8, x = 88172645463325252u;
    if (w->size < 1 || w->size > file_size || (w->direct && w->size % align))
        return bare_usage("--size does not fit the file, or O_DIRECT (multiples of 4096)");
    uint64_t n_places = (file_size - w->size) / align + 1;
    w->n = file_size / w->size < 1u << 20 ? file_size / w->size : 1u << 20;
    w->extents = malloc(w->n * sizeof *w->extents);
    if (!w->extents)
        return perror("malloc"), -1;
    for (uint64_t i = 0; i < w->n; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17; /* xorshift64: only has to spread */
        w->extents[i].offset = w->random ? x % n_places * align : i * w->size;
        w->extents[i].size = w->size;
    }
    return 0;
}

static int bare_parse(struct bare_work *w, int argc, char **argv)
{
    *w = (struct bare_work){.size = 4096, .depth = 128, .random = 1, .seconds = 1, .fd = -1};
    if (argc < 2 || argc % 2)
        return bare_usage("a file and pairs of option and value, please");
    w->path = argv[1];
    for (int i = 2; i < argc; i += 2)
        if (bare_option(w, argv[i], argv[i + 1]) < 0)
            return -1;
    if (w->depth < 1 || w->depth > 4096)
        return bare_usage("--depth is from 1 to 4096");
    struct stat st;
    w->fd = open(w->path, O_RDONLY | O_CLOEXEC | (w->direct ? O_DIRECT : 0));
    if (w->fd < 0 || fstat(w->fd, &st) < 0)
        return perror(w->path), -1;
    if ((w->list ? bare_read_list(w) : bare_make_extents(w, (uint64_t)st.st_size)) < 0)
        return -1;
    w->buffer_size = (w->size + 4095) & ~4095u;
    w->buffers = mmap(NULL, (size_t)w->depth * w->buffer_size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return w->buffers == MAP_FAILED ? perror("mmap"), -1 : 0;
}

static void bare_free(struct bare_work *w)
{
    if (w->fd >= 0)
        close(w->fd);
    if (w->buffers && w->buffers != MAP_FAILED)
        munmap(w->buffers, (size_t)w->depth * w->buffer_size);
    free(w->extents);
}

static void bare_put(struct io_uring *ring, const struct bare_work *w, uint64_t i, uint64_t k,
                     int fixed)
{
    const struct bare_extent *e = &w->extents[i % w->n];
    uint8_t *to = w->buffers + k * w->buffer_size;
    struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
    if (fixed)
        io_uring_prep_read_fixed(sqe, 0, to, e->size, e->offset, 0);
    else
        io_uring_prep_read(sqe, 0, to, e->size, e->offset);
    io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
    io_uring_sqe_set_data64(sqe, k << 32 | e->size);
}

/* Keep `depth` reads in flight for w->seconds. */
static int bare_loop(struct io_uring *ring, const struct bare_work *w, int fixed,
                     struct bare_result *out)
{
    *out = (struct bare_result){0};
    struct io_uring_cqe *cqes[256];
    double start = bare_now(), now = start;
    uint64_t i = 0;
    for (; i < w->depth; i++)
        bare_put(ring, w, i, i, fixed);
    uint64_t n_left = w->depth;
    while (n_left) {
        int r = io_uring_submit_and_wait(ring, 1);
        if (r < 0 && r != -EINTR)
            return r;
        unsigned n = io_uring_peek_batch_cqe(ring, cqes, 256);
        now = bare_now();
        for (unsigned c = 0; c < n; c++) {
            uint64_t data = io_uring_cqe_get_data64(cqes[c]);
            if (cqes[c]->res != (int)(uint32_t)data)
                return cqes[c]->res < 0 ? cqes[c]->res : -EIO;
            out->n_bytes += (uint32_t)data;
            out->n_reads++;
            if (now - start < w->seconds)
                bare_put(ring, w, i++, data >> 32, fixed);
            else
                n_left--;
        }
        io_uring_cq_advance(ring, n);
    }
    out->seconds = now - start;
    return 0;
}

/* 0 or a negative errno. */
static int bare_run(const struct bare_work *w, struct bare_result *out)
{
    struct io_uring ring;
    int r = io_uring_queue_init(w->depth, &ring,
                                IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                                    IORING_SETUP_TASKRUN_FLAG);
    if (r == -EINVAL)
        r = io_uring_queue_init(w->depth, &ring, 0);
    if (r < 0)
        return r;
    struct iovec all = {w->buffers, (size_t)w->depth * w->buffer_size};
    int fixed = io_uring_register_buffers(&ring, &all, 1) == 0;
    r = io_uring_register_files(&ring, &w->fd, 1);
    if (r == 0)
        r = bare_loop(&ring, w, fixed, out);
    if (fixed)
        io_uring_unregister_buffers(&ring);
    io_uring_queue_exit(&ring);
    return r;
}

#ifndef BARE_URING_NO_MAIN
int main(int argc, char **argv)
{
    struct bare_work w;
    struct bare_result result = {0};
    int r = bare_parse(&w, argc, argv);
    if (r == 0) {
        r = bare_run(&w, &result);
        if (r < 0)
            fprintf(stderr, "%s: %s\n", w.path, strerror(-r));
    }
    if (r == 0)
        printf("{\"bytes_per_second\": %.0f, \"reads_per_second\": %.0f, \"size\": %u, "
               "\"depth\": %u, \"pattern\": \"%s\", \"io\": \"%s\"}\n",
               (double)result.n_bytes / result.seconds, (double)result.n_reads / result.seconds,
               w.size, w.depth,
               w.list     ? "list"
               : w.random ? "random"
                          : "sequential",
               w.direct ? "direct" : "buffered");
    bare_free(&w);
    return r < 0;
}
#endif
