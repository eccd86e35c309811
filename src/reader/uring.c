/* SPDX-License-Identifier: Apache-2.0 */
/* The io_uring backend, the only file that includes liburing. */
#include "base/error.h"
#include "reader/reader.h"

#include <assert.h>
#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The kernel takes at most 1 GiB in one registered buffer, and 2^14 of them. */
#define CHUNK_SHIFT 30
#define MAX_CHUNKS (1u << 14)

/* Features of 5.6, the first kernel with IORING_OP_READ; older kernels are refused as a whole. */
#define NEEDED_FEATURES (IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE | IORING_FEAT_RW_CUR_POS)

/* Successive refusals of a submit (EAGAIN, EBUSY: no kernel memory) that are an error, if nothing
 * is in flight that could make room. */
#define MAX_REFUSED 1000

/* Memory to which the kernel may still write a lost read. */
struct range {
    const uint8_t *begin, *end;
};

/*
 * Invariants. A read that is taken and not reaped has exactly one entry: in the submission queue,
 * in the kernel, or in the completion queue. There are at most `depth` such reads, and both queues
 * have at least `depth` entries. So neither queue can overflow, even when reads are continued.
 *
 * A sandbox may deny io_uring_enter at any time. The ring is then lost for good. Reads that it had
 * taken come back with an error, because nobody can wait for them any longer; a thread reader makes
 * all later reads. The kernel may still finish a lost read at any time until the ring is closed, so
 * no later read may use that memory. A read that would use it fails instead, and its caller reads
 * elsewhere.
 */
struct uring {
    struct pstk__reader reader; /* first member */
    struct io_uring ring;
    int ring_open; /* 1: close must exit the ring */
    uint32_t depth;
    uint32_t n_taken;          /* reads queued and not reaped, <= depth */
    struct pstk__read **taken; /* those reads; owned, depth */
    uint32_t n_files;          /* entries of file_fixed; 0 when files are not registered */
    uint8_t *file_fixed;       /* 1: the kernel's table has this slot's fd */
    uint8_t *buffers;          /* registered region; NULL: none */
    uint64_t buffers_size;
    int lost;                          /* negative errno of io_uring_enter; 0: it works */
    struct pstk__reader_config config; /* for `threads`, without the buffers */
    struct pstk__reader *threads; /* owned; set once lost; NULL if no thread could be started */
    struct pstk__read *failed;    /* reads to give back, once lost */
    struct range *ranges;         /* memory of the lost reads; owned, depth */
    uint32_t n_ranges;
};

/* ---- the path of a read
 * --------------------------------------------------------------------------- */

/* Return the registered buffer that holds all of [data, data + size), or -1. */
static int fixed_chunk(const struct uring *u, const uint8_t *data, uint32_t size)
{
    uintptr_t from = (uintptr_t)data - (uintptr_t)u->buffers;
    if (!u->buffers || from >= u->buffers_size || size > u->buffers_size - from || size == 0)
        return -1;
    uintptr_t chunk = from >> CHUNK_SHIFT;
    return chunk == (from + size - 1) >> CHUNK_SHIFT ? (int)chunk : -1;
}

/* Put the next attempt at a read into the submission queue. */
static void prepare(struct uring *u, struct pstk__read *read)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
    assert(sqe); /* the queue has room: see the invariants */
    uint32_t start = pstk__reader_start(read);
    uint8_t *data = (uint8_t *)read->buffer + start;
    uint32_t size = read->size - start;
    int file_fixed = read->file < u->n_files && u->file_fixed[read->file];
    int fd = file_fixed ? (int)read->file : read->from->fd;
    int chunk = read->fixed ? fixed_chunk(u, data, size) : -1;
    if (chunk >= 0)
        io_uring_prep_read_fixed(sqe, fd, data, size, read->offset + start, chunk);
    else
        io_uring_prep_read(sqe, fd, data, size, read->offset + start);
    io_uring_sqe_set_flags(sqe,
                           (file_fixed ? IOSQE_FIXED_FILE : 0u) | (read->aside ? IOSQE_ASYNC : 0u));
    io_uring_sqe_set_data(sqe, read);
}

/* ---- a lost ring ---------------------------------------------------------------------------- */

/* Return 1 for the errors with which seccomp and similar sandboxes deny a call. */
static int is_denial(int result)
{
    return result == -EPERM || result == -EACCES || result == -ENOSYS;
}

static void fail_read(struct uring *u, struct pstk__read *read)
{
    read->result = u->lost;
    read->next = u->failed;
    u->failed = read;
}

/* Fall back to threads. If no thread can be started, all later reads fail, and their callers use
 * their own slow paths. */
static void lose(struct uring *u, int why)
{
    u->lost = why;
    u->reader.fallbacks |= PSTK_FALLBACK_NO_IO_URING;
    for (uint32_t i = 0; i < u->n_taken; i++) {
        const uint8_t *begin = u->taken[i]->buffer;
        u->ranges[u->n_ranges++] = (struct range){begin, begin + u->taken[i]->size};
        fail_read(u, u->taken[i]);
    }
    u->reader.n_lost = u->n_ranges;
    u->n_taken = 0;
    if (pstk__reader_threads.open(&u->threads, &u->config, &u->reader.fallbacks, NULL) < 0)
        u->threads = NULL;
}

static int may_read_into(const struct uring *u, const uint8_t *data, uint32_t size)
{
    for (uint32_t i = 0; i < u->n_ranges; i++)
        if (data < u->ranges[i].end && data + size > u->ranges[i].begin)
            return 0;
    return 1;
}

static void queue_lost(struct uring *u, struct pstk__read *read)
{
    if (u->threads && may_read_into(u, read->buffer, read->size))
        u->threads->ops->queue(u->threads, read);
    else
        fail_read(u, read);
}

static int reap_lost(struct uring *u, struct pstk__read **done, uint32_t max, int wait)
{
    uint32_t n = 0;
    while (u->failed && n < max) {
        done[n++] = u->failed;
        u->failed = u->failed->next;
    }
    if (n || !u->threads)
        return (int)n;
    return u->threads->ops->reap(u->threads, done, max, wait);
}

/* ---- a working one ----------------------------------------------------------------------------
 */

static void uring_queue(struct pstk__reader *reader, struct pstk__read *read)
{
    struct uring *u = (struct uring *)reader;
    if (u->lost) {
        queue_lost(u, read);
        return;
    }
    assert(u->n_taken < u->depth);
    pstk__reader_begin(read);
    read->taken_index = u->n_taken;
    u->taken[u->n_taken++] = read;
    prepare(u, read);
}

/* Remove a reaped read from `taken`; the last one moves to its index. */
static void untake(struct uring *u, const struct pstk__read *read)
{
    u->taken[read->taken_index] = u->taken[--u->n_taken];
    u->taken[read->taken_index]->taken_index = read->taken_index;
}

/* Submit the queue to the kernel; with `wait`, return only after a read finished or a signal came.
 */
static int start(struct uring *u, int wait)
{
    for (int n_refused = 0; n_refused < MAX_REFUSED; n_refused++) {
        int r = wait ? io_uring_submit_and_wait(&u->ring, 1) : io_uring_submit(&u->ring);
        uint32_t n_waiting = io_uring_sq_ready(&u->ring);
        if (r >= 0 && n_waiting == 0)
            return 0;
        if (r > 0)
            n_refused = -1; /* the kernel took some: the count starts again */
        if (r == -EINTR && wait)
            return 0;
        if (r < 0 && r != -EINTR && r != -EAGAIN && r != -EBUSY)
            return r;
        if (n_waiting < u->n_taken && (r == -EAGAIN || r == -EBUSY)) {
            /* Reads in flight make room when they finish; submit the rest after that. */
            struct io_uring_cqe *cqe;
            r = wait ? io_uring_wait_cqe(&u->ring, &cqe) : 0;
            return r == -EINTR ? 0 : r;
        }
    }
    return -EAGAIN;
}

static int uring_submit(struct pstk__reader *reader)
{
    struct uring *u = (struct uring *)reader;
    if (u->lost)
        return u->threads ? u->threads->ops->submit(u->threads) : 0;
    int failed = io_uring_sq_ready(&u->ring) ? start(u, 0) : 0;
    if (!is_denial(failed))
        return failed;
    lose(u, failed);
    return 0;
}

/* Take finished reads out of the completion queue. Returns how many. *again: 1 if some continue. */
static uint32_t collect(struct uring *u, struct pstk__read **done, uint32_t max, int *again)
{
    struct io_uring_cqe *cqes[64];
    uint32_t n = 0;
    while (n < max) {
        uint32_t n_wanted = max - n < 64 ? max - n : 64;
        uint32_t n_cqes = io_uring_peek_batch_cqe(&u->ring, cqes, n_wanted);
        if (n_cqes == 0)
            break;
        for (uint32_t i = 0; i < n_cqes; i++) {
            struct pstk__read *read = io_uring_cqe_get_data(cqes[i]);
            if (pstk__reader_result(read, cqes[i]->res)) {
                untake(u, read);
                done[n++] = read;
                continue;
            }
            prepare(u, read);
            *again = 1;
        }
        io_uring_cq_advance(&u->ring, n_cqes);
    }
    return n;
}

static int uring_reap(struct pstk__reader *reader, struct pstk__read **done, uint32_t max, int wait)
{
    struct uring *u = (struct uring *)reader;
    int again = 0, failed = 0;
    if (u->lost)
        return reap_lost(u, done, max, wait);
    uint32_t n = collect(u, done, max, &again);
    while (n == 0 && wait && max && u->n_taken && failed == 0) {
        failed = start(u, 1);
        again = 0;
        n = collect(u, done, max, &again); /* even if submit failed: these reads finished before */
    }
    if (again && failed == 0)
        failed = start(u, 0);
    if (is_denial(failed)) {
        lose(u, failed);
        return n ? (int)n : reap_lost(u, done, max, wait);
    }
    /* Give finished reads back in any case; a submit that fails for good fails again. */
    return failed < 0 && n == 0 ? failed : (int)n;
}

static int uring_set_file(struct pstk__reader *reader, uint32_t file, int fd)
{
    struct uring *u = (struct uring *)reader;
    if (file >= u->n_files || u->lost)
        return 0; /* nothing is registered, or nothing uses it */
    u->file_fixed[file] = 0;
    int n = io_uring_register_files_update(&u->ring, file, &fd, 1);
    if (n < 0) {
        reader->fallbacks |= PSTK_FALLBACK_NO_FIXED_FILES;
        return n;
    }
    u->file_fixed[file] = n == 1 && fd >= 0;
    return 0;
}

/* ---- open and close -------------------------------------------------------------------------- */

/* Wait for all memory that the kernel may still write to. Reads that were never submitted are
 * dropped. Nobody can wait for the reads of a lost ring: closing the ring cancels them. A buffered
 * read that a kernel thread is working on may end, and write, a moment after that. */
static void drain(struct uring *u)
{
    if (u->lost)
        return;
    uint32_t n_left = u->n_taken - io_uring_sq_ready(&u->ring);
    while (n_left) {
        struct io_uring_cqe *cqe;
        int r = io_uring_wait_cqe(&u->ring, &cqe);
        if (r == -EINTR)
            continue;
        /* Two cases lead here: misuse (another thread closes: EEXIST), and an io_uring_enter that
         * is denied only now. */
        if (r < 0)
            break;
        io_uring_cqe_seen(&u->ring, cqe);
        n_left--;
    }
}

static void uring_close(struct pstk__reader *reader)
{
    struct uring *u = (struct uring *)reader;
    if (!u)
        return;
    if (u->threads)
        u->threads->ops->close(u->threads);
    if (u->ring_open) {
        drain(u);
        /* The kernel tears a closed ring down some time later. Without these two calls the locked
         * memory would still count, so a reader opened next would be refused, and the files would
         * keep their file system busy. A failure is harmless: the kernel then does it later. */
        if (u->buffers)
            io_uring_unregister_buffers(&u->ring);
        if (u->n_files)
            io_uring_unregister_files(&u->ring);
        io_uring_queue_exit(&u->ring);
    }
    free(u->file_fixed);
    free(u->ranges);
    free(u->taken);
    free(u);
}

/* Run an operation that does nothing: a sandbox may permit io_uring_setup and deny io_uring_enter.
 * Returns 0 or a negative errno. */
static int try_ring(struct io_uring *ring)
{
    struct io_uring_cqe *cqe;
    int r;
    io_uring_prep_nop(io_uring_get_sqe(ring)); /* cannot be NULL: the ring is empty */
    do
        r = io_uring_submit_and_wait(ring, 1);
    while (r == -EINTR);
    if (r >= 0)
        r = io_uring_peek_cqe(ring, &cqe);
    if (r == 0)
        io_uring_cqe_seen(ring, cqe);
    return r;
}

/* Set up the best ring of this kernel. Newer kernels do completion work only on request, without
 * interrupting the thread (6.1), or at least without IPIs (5.19). Returns 0 or a negative errno. */
static int open_ring(struct io_uring *ring, uint32_t depth, uint32_t *fallbacks)
{
    static const uint32_t flags[] = {
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_COOP_TASKRUN |
            IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL,
        IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL,
        0,
    };
    int r = -EINVAL;
    for (uint32_t i = 0; i < 3 && r == -EINVAL; i++) {
        r = io_uring_queue_init(depth, ring, flags[i]);
        if (i > 0)
            *fallbacks |= PSTK_FALLBACK_NO_SINGLE_ISSUER;
    }
    if (r < 0)
        return r;
    r = (ring->features & NEEDED_FEATURES) == NEEDED_FEATURES ? try_ring(ring) : -ENOSYS;
    if (r < 0)
        io_uring_queue_exit(ring);
    return r;
}

/* Register an empty table of n_files slots; u->n_files stays 0 if that is refused. */
static int open_files(struct uring *u, uint32_t n_files, uint32_t *fallbacks)
{
    u->file_fixed = calloc(n_files, 1);
    int *fds = malloc(n_files * sizeof *fds);
    if (!u->file_fixed || !fds) {
        free(fds);
        return -ENOMEM;
    }
    memset(fds, 0xff,
           n_files * sizeof *fds); /* all -1: empty slots, as kernels before 5.19 require */
    if (io_uring_register_files(&u->ring, fds, n_files) == 0)
        u->n_files = n_files;
    else
        *fallbacks |= PSTK_FALLBACK_NO_FIXED_FILES;
    free(fds);
    return 0;
}

/* Register [memory, memory + size). Returns 0 or a negative errno: -ENOMEM also from
 * RLIMIT_MEMLOCK. */
static int register_buffers(struct io_uring *ring, void *memory, uint64_t size)
{
    uint64_t chunk = (uint64_t)1 << CHUNK_SHIFT;
    uint64_t n = (size + chunk - 1) / chunk;
    if (n > MAX_CHUNKS)
        return -E2BIG;
    struct iovec *iov = calloc(n, sizeof *iov);
    if (!iov)
        return -ENOMEM;
    for (uint64_t i = 0; i < n; i++) {
        iov[i].iov_base = (uint8_t *)memory + i * chunk;
        iov[i].iov_len = i + 1 < n ? chunk : size - i * chunk;
    }
    int r = io_uring_register_buffers(ring, iov, (unsigned)n);
    free(iov);
    return r;
}

static int refuse(struct pstk_error *err, int native)
{
    const char *why = "the kernel refuses it";
    const char *what = "choose the reader `threads`, or `auto`, which falls back to it";
    switch (native) {
    case EPERM:
    case EACCES:
        why = "this machine or container forbids it";
        what =
            "allow it in the container's seccomp profile and /proc/sys/kernel/io_uring_disabled, "
            "or choose the reader `threads` or `auto`";
        break;
    case ENOSYS:
        why = "the kernel is older than 5.6 or was built without it";
        break;
    case ENOMEM:
        why = "there is no memory for its queues, or RLIMIT_MEMLOCK is too low for them";
        what = "raise the limit (ulimit -l), or choose the reader `threads` or `auto`";
        break;
    case EMFILE:
    case ENFILE:
        why = "too many files are open";
        what = "raise the limit (ulimit -n)";
        break;
    default:
        break;
    }
    char name[64];
    int code =
        pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN, "io_uring cannot be used (%s): %s; %s",
                   strerror_r(native, name, sizeof name), why, what);
    if (err)
        err->native = native;
    return code;
}

static int uring_open(struct pstk__reader **out, const struct pstk__reader_config *c,
                      uint32_t *fallbacks, struct pstk_error *err)
{
    *out = NULL;
    struct uring *u = calloc(1, sizeof *u);
    if (!u)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the io_uring reader");
    u->reader.ops = &pstk__reader_uring;
    u->depth = c->depth;
    u->config = *c;
    u->config.buffers = NULL;
    u->taken = calloc(c->depth, sizeof *u->taken);
    u->ranges = calloc(c->depth, sizeof *u->ranges);
    if (!u->taken || !u->ranges) {
        uring_close(&u->reader);
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the io_uring reader");
    }
    uint32_t taken = 0; /* fallbacks of this ring, which are dropped if the ring is given up */
    int r = open_ring(&u->ring, c->depth, &taken);
    if (r < 0) {
        uring_close(&u->reader);
        return refuse(err, -r);
    }
    u->ring_open = 1;
    if (open_files(u, c->n_files, &taken) < 0) {
        uring_close(&u->reader);
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                          "no memory for the file table of the io_uring reader (%u slots)",
                          c->n_files);
    }
    if (c->buffers && c->buffers_size) {
        if (register_buffers(&u->ring, c->buffers, c->buffers_size) == 0) {
            u->buffers = c->buffers;
            u->buffers_size = c->buffers_size;
        } else {
            taken |= PSTK_FALLBACK_NO_FIXED_BUFFERS;
        }
    }
    *fallbacks |= taken;
    *out = &u->reader;
    return 0;
}

const struct pstk__reader_ops pstk__reader_uring = {
    .name = "io_uring",
    .kind = PSTK_READER_IO_URING,
    .open = uring_open,
    .set_file = uring_set_file,
    .queue = uring_queue,
    .submit = uring_submit,
    .reap = uring_reap,
    .close = uring_close,
};

/* ---- what the kernel permits -------------------------------------------------------------- */

/* Register the same 1 MiB 64 times: the limit counts each, and a small control group has to bear
 * only one. Returns 0 or -errno. */
static int try_buffers(struct io_uring *ring)
{
    const size_t size = (size_t)1 << 20;
    struct iovec buffers[64];
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return -errno;
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        buffers[i] = (struct iovec){memory, size};
    const int r = io_uring_register_buffers(ring, buffers, sizeof buffers / sizeof *buffers);
    if (r == 0)
        io_uring_unregister_buffers(ring);
    munmap(memory, size);
    return r;
}

void pstk__reader_probe(struct pstk_machine *machine)
{
    struct io_uring ring;
    uint32_t fallbacks = 0;
    int r = open_ring(&ring, 8, &fallbacks);
    machine->io_uring = r < 0 ? r : 1;
    machine->single_issuer = r == 0 && !(fallbacks & PSTK_FALLBACK_NO_SINGLE_ISSUER);
    machine->fixed_buffers = r;
    if (r < 0)
        return;
    r = try_buffers(&ring);
    machine->fixed_buffers = r < 0 ? r : 1;
    io_uring_queue_exit(&ring);
}
