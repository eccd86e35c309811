/* SPDX-License-Identifier: Apache-2.0 */
#include "support/test.h"

#include "reader/reader.h"
#include "support/local_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

struct io_uring; /* liburing is reader/uring.c's alone */
struct iovec;

/* ---- faults, put between by the linker (--wrap) ---------------------------------------------- */

static int fail_after = -1; /* allocations and thread starts count down to a failure */
static int refuse_ring, refuse_files, refuse_buffers, refuse_update; /* native errno, 0 = none */
static int refuse_new_flags;  /* 1: the ring is refused with any flag, as on old kernels */
static atomic_uint n_answers; /* calls of pstk__reader_result */
static enum { AS_IT_IS, SHORT, SHORT_BLOCKS, INTERRUPTED, FAIL_ONE, FAIL_ALWAYS } answer;
static uint32_t block_size; /* SHORT_BLOCKS: cut at multiples of it, as direct reads are */
static unsigned fail_at;    /* FAIL_ONE: which answer is EIO */

static int fails(void)
{
    return fail_after >= 0 && fail_after-- == 0;
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

int __real_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg)
{
    return fails() ? EAGAIN : __real_pthread_create(t, a, f, arg);
}

int __real_io_uring_queue_init(unsigned n, struct io_uring *ring, unsigned flags);
int __wrap_io_uring_queue_init(unsigned n, struct io_uring *ring, unsigned flags);
int __wrap_io_uring_queue_init(unsigned n, struct io_uring *ring, unsigned flags)
{
    if (refuse_ring)
        return -refuse_ring;
    return refuse_new_flags && flags ? -EINVAL : __real_io_uring_queue_init(n, ring, flags);
}

int __real_io_uring_register_files(struct io_uring *ring, const int *fds, unsigned n);
int __wrap_io_uring_register_files(struct io_uring *ring, const int *fds, unsigned n);
int __wrap_io_uring_register_files(struct io_uring *ring, const int *fds, unsigned n)
{
    return refuse_files ? -refuse_files : __real_io_uring_register_files(ring, fds, n);
}

int __real_io_uring_register_files_update(struct io_uring *ring, unsigned at, const int *fds,
                                          unsigned n);
int __wrap_io_uring_register_files_update(struct io_uring *ring, unsigned at, const int *fds,
                                          unsigned n);
int __wrap_io_uring_register_files_update(struct io_uring *ring, unsigned at, const int *fds,
                                          unsigned n)
{
    return refuse_update ? -refuse_update : __real_io_uring_register_files_update(ring, at, fds, n);
}

int __real_io_uring_register_buffers(struct io_uring *ring, const struct iovec *v, unsigned n);
int __wrap_io_uring_register_buffers(struct io_uring *ring, const struct iovec *v, unsigned n);
int __wrap_io_uring_register_buffers(struct io_uring *ring, const struct iovec *v, unsigned n)
{
    return refuse_buffers ? -refuse_buffers : __real_io_uring_register_buffers(ring, v, n);
}

int __real_pstk__reader_result(struct pstk__read *read, int32_t got);
int __wrap_pstk__reader_result(struct pstk__read *read, int32_t got);
int __wrap_pstk__reader_result(struct pstk__read *read, int32_t got)
{
    unsigned i = atomic_fetch_add(&n_answers, 1);
    switch (answer) {
    case SHORT:
        if (got > 1)
            got = 1 + (int32_t)(i * 2654435761u % (unsigned)got);
        break;
    case SHORT_BLOCKS:
        if (got > (int32_t)block_size)
            got = (int32_t)(block_size * (1 + i * 2654435761u % ((unsigned)got / block_size)));
        break;
    case INTERRUPTED:
        if (i % 3)
            got = i % 3 == 1 ? -EINTR : -EAGAIN;
        break;
    case FAIL_ONE:
        if (i == fail_at)
            got = -EIO;
        break;
    case FAIL_ALWAYS:
        got = -EAGAIN;
        break;
    case AS_IT_IS:
        break;
    }
    return __real_pstk__reader_result(read, got);
}

/* ---- files and reads to check */

#define N_FILES 3
#define FILE_SIZE 300007u /* no multiple of anything */
#define MAX_SIZE 70000u
#define BUFFER_SIZE                                                                                \
    77824u /* whole pages, for an odd start below 4000, MAX_SIZE and one byte more */
#define MAX_DEPTH 64

static char folder[] = "/tmp/test_reader-XXXXXX";
static int fds[N_FILES];
static uint8_t *buffers; /* MAX_DEPTH * BUFFER_SIZE, page aligned */
static uint32_t seed;

static const uint32_t kinds[] = {PSTK_READER_THREADS, PSTK_READER_IO_URING};

static uint32_t draw(uint32_t n)
{
    seed = seed * 1664525 + 1013904223;
    return (uint32_t)(((uint64_t)seed * n) >> 32);
}

static uint8_t byte_at(uint32_t file, uint64_t offset)
{
    return (uint8_t)((offset * 2654435761u) >> 13 ^ offset >> 7 ^ file * 85);
}

static struct pstk__reader_config config_of(uint32_t kind, uint32_t depth, int registered)
{
    struct pstk__reader_config c = {.kind = kind, .depth = depth, .n_files = N_FILES + 1};
    if (registered) {
        c.buffers = buffers;
        c.buffers_size = (uint64_t)MAX_DEPTH * BUFFER_SIZE;
    }
    return c;
}

/* Open, with the files in their slots. NULL: this machine has no such reader. */
static struct pstk__reader *open_reader(const struct pstk__reader_config *c, uint32_t *fallbacks)
{
    struct pstk__reader *reader;
    *fallbacks = 0;
    if (pstk__reader_open(&reader, c, fallbacks, NULL) < 0)
        return NULL;
    for (uint32_t i = 0; i < N_FILES; i++)
        reader->ops->set_file(reader, i, fds[i]);
    return reader;
}

static uint32_t expected_size(const struct pstk__read *r)
{
    if (r->offset >= FILE_SIZE)
        return 0;
    return r->size < FILE_SIZE - r->offset ? r->size : (uint32_t)(FILE_SIZE - r->offset);
}

/* Return whether the read gave the file's bytes, all of them, and nothing behind them. */
static int is_right(const struct pstk__read *r)
{
    const uint8_t *data = r->buffer;
    uint32_t n = expected_size(r);
    if (r->result == -EIO && answer == FAIL_ONE)
        return 0;
    if (r->result != (int32_t)n) {
        printf("# read of %u at %llu gave %d, not %u\n", r->size, (unsigned long long)r->offset,
               r->result, n);
        return 0;
    }
    for (uint32_t i = 0; i < n; i++)
        if (data[i] != byte_at(r->file, r->offset + i))
            return 0;
    return data[r->size] == 0xa5;
}

static void fill(struct pstk__read *r, uint32_t index, uint32_t size)
{
    r->file = draw(N_FILES);
    r->from = local_file(fds[r->file]);
    r->size = size;
    r->offset = draw(8) ? draw(FILE_SIZE) : FILE_SIZE - draw(5000);
    r->fixed = draw(4) != 0; /* the bit is true only when buffers are registered: see run_reads */
    r->buffer = buffers + (size_t)index * BUFFER_SIZE + (draw(2) ? draw(4000) : 0);
    if (draw(4) == 0)
        r->offset &= ~4095ull;
    ((uint8_t *)r->buffer)[size] = 0xa5;
}

/* Run n reads with sizes first, first + step, ... (modulo MAX_SIZE), `depth` in flight. Returns how
 * many were right. */
static uint32_t run_reads(struct pstk__reader *reader, uint32_t depth, uint32_t n, uint32_t step)
{
    static struct pstk__read reads[MAX_DEPTH];
    struct pstk__read *done[MAX_DEPTH], *idle[MAX_DEPTH];
    uint32_t n_right = 0, n_idle = 0, n_queued = 0, n_done = 0;
    for (uint32_t i = 0; i < depth; i++) {
        reads[i].user = i;
        idle[n_idle++] = &reads[i];
    }
    while (n_done < n) {
        while (n_idle && n_queued < n) {
            struct pstk__read *r = idle[--n_idle];
            fill(r, (uint32_t)r->user, 1 + n_queued++ * step % MAX_SIZE);
            reader->ops->queue(reader, r);
        }
        if (reader->ops->submit(reader) < 0)
            return n_right;
        int got = reader->ops->reap(reader, done, 1 + draw(depth), 1);
        if (got < 1)
            return n_right;
        for (int i = 0; i < got; i++) {
            n_right += (uint32_t)is_right(done[i]);
            idle[n_idle++] = done[i];
        }
        n_done += (uint32_t)got;
    }
    return reader->ops->reap(reader, done, MAX_DEPTH, 1) == 0 ? n_right : 0;
}

/* The sweep that every backend and every fault stands. Returns 1 when all is right. */
static int sweep(uint32_t kind, uint32_t n, uint32_t step)
{
    static const uint32_t depths[] = {1, 2, 3, 7, 64};
    for (int registered = 0; registered < 2; registered++) {
        for (uint32_t d = 0; d < 5; d++) {
            uint32_t fallbacks;
            const struct pstk__reader_config c = config_of(kind, depths[d], registered);
            struct pstk__reader *reader = open_reader(&c, &fallbacks);
            if (!reader)
                return printf("# reader %u cannot be opened\n", kind), 0;
            uint32_t n_right = run_reads(reader, depths[d], n, step);
            reader->ops->close(reader);
            if (n_right != n)
                return printf("# reader %u, depth %u: %u of %u right\n", kind, depths[d], n_right,
                              n),
                       0;
        }
    }
    return 1;
}

static int has_uring(void)
{
    struct pstk_machine m = {.size = sizeof m};
    pstk__reader_probe(&m);
    return m.io_uring == 1;
}

#define NEED_URING()                                                                               \
    do {                                                                                           \
        if (!has_uring())                                                                          \
            SKIP("io_uring is not permitted here");                                                \
    } while (0)

/* Return whether the backend can be tried here. */
static int usable(uint32_t kind)
{
    return kind == PSTK_READER_THREADS || has_uring();
}

/* Run `body` in a child: its result, 0..255, or -1. */
static int in_child(int (*body)(void))
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        _exit(body());
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

TEST(every_backend_gives_every_size_offset_depth_and_the_end_of_the_file)
{
    const uint32_t nth = test_stride(5, 5);
    for (int k = 0; k < 2; k++)
        if (usable(kinds[k]))
            CHECK(sweep(kinds[k], 900 / nth, 79 * nth));
}

TEST(short_reads_are_continued)
{
    answer = SHORT;
    int right = 1;
    for (int k = 0; k < 2; k++)
        if (usable(kinds[k]))
            right &= sweep(kinds[k], 60, 1171);
    answer = AS_IT_IS;
    CHECK(right);
}

TEST(interrupted_and_refused_attempts_are_repeated)
{
    answer = INTERRUPTED;
    int right = 1;
    for (int k = 0; k < 2; k++)
        if (usable(kinds[k]))
            right &= sweep(kinds[k], 100, 701);
    answer = AS_IT_IS;
    CHECK(right);
}

TEST(attempts_go_on_at_aligned_places_and_end_with_the_file)
{
    struct pstk__read read = {.offset = 4096, .buffer = buffers, .size = 8192};
    pstk__reader_begin(&read);
    CHECK_EQ(pstk__reader_start(&read), 0);
    CHECK_EQ(__real_pstk__reader_result(&read, 5000), 0);
    CHECK_EQ(pstk__reader_start(&read), 4096);
    CHECK_EQ(__real_pstk__reader_result(&read, 904), 0); /* no further: the end, or a short read? */
    CHECK_EQ(pstk__reader_start(&read), 5000);
    CHECK_EQ(__real_pstk__reader_result(&read, -EINVAL), 1); /* direct: only the end is odd */
    CHECK_EQ(read.result, 5000);

    read.offset = 512 * 3;
    pstk__reader_begin(&read);
    CHECK_EQ(__real_pstk__reader_result(&read, 1100), 0);
    CHECK_EQ(pstk__reader_start(&read), 1024);
    CHECK_EQ(__real_pstk__reader_result(&read, 76), 0);
    CHECK_EQ(pstk__reader_start(&read), 1100);
    CHECK_EQ(__real_pstk__reader_result(&read, 1000), 0); /* buffered: it went on after all */
    CHECK_EQ(pstk__reader_start(&read), 2048);
    CHECK_EQ(__real_pstk__reader_result(&read, 8192 - 2048), 1);
    CHECK_EQ(read.result, 8192);

    pstk__reader_begin(&read);
    CHECK_EQ(__real_pstk__reader_result(&read, -EINVAL), 1);
    CHECK_EQ(read.result, -EINVAL);
}

TEST(an_error_is_the_result_of_the_read_that_met_it_alone)
{
    for (int k = 0; k < 2; k++) {
        uint32_t fallbacks, n_right = 0;
        const struct pstk__reader_config c = config_of(kinds[k], 4, 1);
        if (!usable(kinds[k]))
            continue;
        for (fail_at = 0; fail_at < 9; fail_at++) {
            struct pstk__reader *reader = open_reader(&c, &fallbacks);
            CHECK(reader);
            atomic_store(&n_answers, 0);
            answer = FAIL_ONE;
            n_right = run_reads(reader, 4, 9, 4096);
            answer = AS_IT_IS;
            reader->ops->close(reader);
            CHECK_EQ(n_right, 8);
        }
    }
}

TEST(a_read_refused_for_ever_ends_with_eagain)
{
    for (int k = 0; k < 2; k++) {
        uint32_t fallbacks;
        const struct pstk__reader_config c = config_of(kinds[k], 1, 1);
        struct pstk__reader *reader = usable(kinds[k]) ? open_reader(&c, &fallbacks) : NULL;
        struct pstk__read read = {.from = local_file(fds[0]), .buffer = buffers, .size = 100},
                          *done = NULL;
        if (!reader)
            continue;
        answer = FAIL_ALWAYS;
        reader->ops->queue(reader, &read);
        int n = reader->ops->reap(reader, &done, 1, 1);
        answer = AS_IT_IS;
        reader->ops->close(reader);
        CHECK(n == 1 && done == &read);
        CHECK_EQ(read.result, -EAGAIN);
    }
}

TEST(a_bad_descriptor_is_the_error_of_its_reads)
{
    for (int k = 0; k < 2; k++) {
        uint32_t fallbacks;
        const struct pstk__reader_config c = config_of(kinds[k], 2, 0);
        struct pstk__reader *reader = usable(kinds[k]) ? open_reader(&c, &fallbacks) : NULL;
        struct pstk__read read = {.from = local_file(-1),
                                  .file = N_FILES,
                                  .buffer = buffers,
                                  .size = 9},
                          *done;
        if (!reader)
            continue;
        reader->ops->queue(reader, &read);
        int n = reader->ops->reap(reader, &done, 1, 1);
        reader->ops->close(reader);
        CHECK_EQ(n, 1);
        CHECK_EQ(read.result, -EBADF);
    }
}

/* Read one byte range of slot 0 and say which file's bytes came; -1: none's. */
static int file_in_slot(struct pstk__reader *reader, int fd)
{
    struct pstk__read read = {
        .from = local_file(fd), .offset = 77, .buffer = buffers, .size = 5000, .fixed = 1};
    struct pstk__read *done;
    reader->ops->queue(reader, &read);
    if (reader->ops->submit(reader) < 0 || reader->ops->reap(reader, &done, 1, 1) != 1)
        return -1;
    for (uint32_t file = 0; file < N_FILES; file++) {
        read.file = file;
        buffers[5000] = 0xa5;
        if (is_right(&read))
            return (int)file;
    }
    return -1;
}

TEST(a_slot_reads_the_file_it_was_given_last_registered_or_not)
{
    for (int k = 0; k < 3; k++) { /* the third: the update is refused */
        uint32_t fallbacks, kind = kinds[k > 0];
        const struct pstk__reader_config c = config_of(kind, 4, 1);
        struct pstk__reader *reader = usable(kind) ? open_reader(&c, &fallbacks) : NULL;
        if (!reader)
            continue;
        int got[6], refused = 0;
        for (int i = 0; i < 6; i++) {
            refuse_update = k == 2 && i % 2 ? ENOMEM : 0;
            refused += reader->ops->set_file(reader, 0, fds[i % N_FILES]) == -ENOMEM;
            got[i] = file_in_slot(reader, fds[i % N_FILES]);
        }
        refuse_update = 0;
        int emptied = reader->ops->set_file(reader, 0, -1);
        reader->ops->close(reader);
        for (int i = 0; i < 6; i++)
            CHECK_EQ(got[i], i % N_FILES);
        CHECK_EQ(refused, k == 2 && !(fallbacks & PSTK_FALLBACK_NO_FIXED_FILES) ? 3 : 0);
        CHECK_EQ(emptied, 0);
    }
}

TEST(direct_reads_reach_an_odd_end_of_the_file_also_when_cut_short)
{
    char path[64];
    uint32_t memory_align = 0, offset_align = 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fds[1]);
    int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (fd < 0 || pstk__direct_align(path, &memory_align, &offset_align) < 0) {
        if (fd >= 0)
            close(fd);
        SKIP("O_DIRECT is refused by this file system");
    }
    int n_wrong = 0;
    for (int k = 0; k < 4; k++) {
        uint32_t fallbacks;
        const struct pstk__reader_config c = config_of(kinds[k % 2], 2, 1);
        struct pstk__reader *reader = usable(kinds[k % 2]) ? open_reader(&c, &fallbacks) : NULL;
        if (!reader)
            continue;
        reader->ops->set_file(reader, 1, fd);
        answer = k < 2 ? AS_IT_IS : SHORT_BLOCKS;
        block_size = offset_align;
        for (uint32_t at = 0; at < FILE_SIZE + 8192; at += 12288) {
            struct pstk__read read = {.from = local_file(fd),
                                      .file = 1,
                                      .offset = at,
                                      .size = 65536,
                                      .buffer = buffers,
                                      .fixed = 1},
                              *done;
            buffers[65536] = 0xa5;
            reader->ops->queue(reader, &read);
            if (reader->ops->reap(reader, &done, 1, 1) != 1 || !is_right(&read))
                n_wrong++;
        }
        answer = AS_IT_IS;
        reader->ops->close(reader);
    }
    close(fd);
    CHECK_EQ(n_wrong, 0);
}

/* Fill a reader with reads that take the disk a while (direct where it can be), submit them all or
 * the first half, close. 1: nothing came into the buffers after that. */
static int is_quiet_after_close(struct pstk__reader *reader, const int *files, int all)
{
    static struct pstk__read reads[MAX_DEPTH];
    for (uint32_t i = 0; i < MAX_DEPTH; i++) {
        uint32_t file = i % N_FILES;
        reads[i] = (struct pstk__read){.from = local_file(files[file]),
                                       .file = file,
                                       .offset = i % 4 * 65536,
                                       .size = 65536,
                                       .buffer = buffers + (size_t)i * BUFFER_SIZE,
                                       .fixed = i % 2};
        reader->ops->queue(reader, &reads[i]);
        if (i == MAX_DEPTH / 2 && reader->ops->submit(reader) < 0)
            return 0;
    }
    if (all && reader->ops->submit(reader) < 0)
        return 0;
    reader->ops->close(reader);
    for (size_t i = 0; i < (size_t)MAX_DEPTH * BUFFER_SIZE; i += 4096)
        buffers[i] = 0x5a; /* quickly: a write under way must meet it */
    usleep(5000);
    for (size_t i = 0; i < (size_t)MAX_DEPTH * BUFFER_SIZE; i += 4096)
        if (buffers[i] != 0x5a)
            return 0;
    return 1;
}

TEST(after_close_nothing_is_written_any_more)
{
    int direct[N_FILES], n_loud = 0;
    for (uint32_t f = 0; f < N_FILES; f++) {
        char path[300];
        snprintf(path, sizeof path, "%s/%u", folder, f);
        direct[f] = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    }
    for (int turn = 0; turn < 32; turn++) {
        const int *files = direct[0] >= 0 && turn & 4 ? direct : fds;
        uint32_t fallbacks, kind = kinds[turn & 1];
        const struct pstk__reader_config c = config_of(kind, MAX_DEPTH, turn & 2);
        struct pstk__reader *reader = usable(kind) ? open_reader(&c, &fallbacks) : NULL;
        if (!reader)
            continue;
        for (uint32_t i = 0; i < N_FILES; i++) {
            posix_fadvise(fds[i], 0, 0, POSIX_FADV_DONTNEED);
            reader->ops->set_file(reader, i, files[i]);
        }
        n_loud += !is_quiet_after_close(reader, files, turn & 8);
    }
    for (uint32_t f = 0; f < N_FILES; f++)
        if (direct[f] >= 0)
            close(direct[f]);
    CHECK_EQ(n_loud, 0);
}

TEST(reap_without_waiting_returns_at_once)
{
    for (int k = 0; k < 2; k++) {
        uint32_t fallbacks;
        const struct pstk__reader_config c = config_of(kinds[k], 2, 0);
        struct pstk__reader *reader = usable(kinds[k]) ? open_reader(&c, &fallbacks) : NULL;
        struct pstk__read *done[2];
        if (!reader)
            continue;
        int n = reader->ops->reap(reader, done, 2, 0);
        int idle = reader->ops->reap(reader, done, 2, 1); /* nothing in flight: no wait either */
        reader->ops->close(reader);
        CHECK_EQ(n, 0);
        CHECK_EQ(idle, 0);
    }
}

static void ignore_signal(int s)
{
    (void)s;
}

TEST(signals_do_not_disturb_reads)
{
    struct sigaction action = {.sa_handler = ignore_signal}, old; /* no SA_RESTART */
    struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    if (TEST_BUILD == 2)
        SKIP("TSan waits for itself for ever when a signal comes while a thread's memory is freed");
    sigaction(SIGALRM, &action, &old);
    setitimer(ITIMER_REAL, &often, NULL);
    int right = 1;
    for (int k = 0; k < 2; k++)
        if (usable(kinds[k]))
            right &= sweep(kinds[k], 200, 349);
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &old, NULL);
    CHECK(right);
}

/* ---- tests: the ladder */

/* Open, run some reads: the fallbacks, or -1 when data is wrong or the backend another one. */
static int fallbacks_of(uint32_t kind, uint32_t expected_kind)
{
    uint32_t fallbacks;
    const struct pstk__reader_config c = config_of(kind, 16, 1);
    struct pstk__reader *reader = open_reader(&c, &fallbacks);
    if (!reader)
        return -1;
    int right = reader->ops->kind == expected_kind && run_reads(reader, 16, 100, 577) == 100;
    reader->ops->close(reader);
    return right ? (int)fallbacks : -1;
}

/* Refuse io_uring_setup with EPERM, as container run times do. 0, or -1: no seccomp here. */
static int deny_io_uring(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int child_without_io_uring(void)
{
    struct pstk_error err;
    struct pstk__reader *reader;
    uint32_t fallbacks = 0;
    struct pstk_machine m = {.size = sizeof m};
    if (deny_io_uring() < 0)
        return 77;
    if (fallbacks_of(PSTK_READER_AUTO, PSTK_READER_THREADS) != PSTK_FALLBACK_NO_IO_URING)
        return 1;
    pstk__reader_probe(&m);
    if (m.io_uring != -EPERM || m.fixed_buffers != -EPERM || m.single_issuer != 0)
        return 2;
    const struct pstk__reader_config c = config_of(PSTK_READER_IO_URING, 4, 0);
    pstk_error_init(&err, sizeof err);
    if (pstk__reader_open(&reader, &c, &fallbacks, &err) != PSTK_ENOTSUP || reader)
        return 3;
    if (err.native != EPERM || !strstr(err.message, "seccomp") || fallbacks)
        return 4;
    return 0;
}

TEST(io_uring_denied_by_seccomp_leaves_the_threads_and_the_fallback)
{
    int r = in_child(child_without_io_uring);
    if (r == 77)
        SKIP("no seccomp filter can be installed here");
    CHECK_EQ(r, 0);
}

/* RLIMIT_MEMLOCK binds only without CAP_IPC_LOCK. */
static int drop_ipc_lock(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &head, data) < 0)
        return -1;
    data[0].effective &= ~(1u << CAP_IPC_LOCK);
    data[0].permitted &= ~(1u << CAP_IPC_LOCK);
    return (int)syscall(SYS_capset, &head, data);
}

static int child_with_little_memlock(void)
{
    struct rlimit low = {65536, 65536};
    if (drop_ipc_lock() < 0 || setrlimit(RLIMIT_MEMLOCK, &low) < 0)
        return 77;
    if (!has_uring())
        return 77; /* before 5.12 the queues are locked memory too */
    int fallbacks = fallbacks_of(PSTK_READER_AUTO, PSTK_READER_IO_URING);
    if (fallbacks < 0 || !(fallbacks & PSTK_FALLBACK_NO_FIXED_BUFFERS))
        return 1;
    struct pstk_machine m = {.size = sizeof m};
    pstk__reader_probe(&m);
    return m.fixed_buffers == -ENOMEM ? 0 : 2;
}

TEST(little_lockable_memory_leaves_plain_buffers_and_the_fallback)
{
    NEED_URING();
    int r = in_child(child_with_little_memlock);
    if (r == 77)
        SKIP("RLIMIT_MEMLOCK or CAP_IPC_LOCK cannot be lowered here");
    CHECK_EQ(r, 0);
}

static int child_opens_again_and_again(void)
{
    struct rlimit low = {8 << 20, 8 << 20}; /* buffers below fit once, not twice */
    if (drop_ipc_lock() < 0 || setrlimit(RLIMIT_MEMLOCK, &low) < 0)
        return 77;
    for (int i = 0; i < 40; i++) {
        int fallbacks = fallbacks_of(PSTK_READER_IO_URING, PSTK_READER_IO_URING);
        if (fallbacks < 0 || (fallbacks & PSTK_FALLBACK_NO_FIXED_BUFFERS))
            return 1;
    }
    return 0;
}

TEST(a_closed_reader_has_given_its_locked_memory_back)
{
    NEED_URING();
    int r = in_child(child_opens_again_and_again);
    if (r == 77)
        SKIP("RLIMIT_MEMLOCK or CAP_IPC_LOCK cannot be lowered here");
    CHECK_EQ(r, 0);
}

TEST(each_refusal_is_one_fallback_and_the_data_stays_right)
{
    NEED_URING();
    int none = fallbacks_of(PSTK_READER_AUTO, PSTK_READER_IO_URING);
    refuse_files = EMFILE;
    int files = fallbacks_of(PSTK_READER_AUTO, PSTK_READER_IO_URING);
    refuse_files = 0;
    refuse_buffers = ENOMEM;
    int memory = fallbacks_of(PSTK_READER_AUTO, PSTK_READER_IO_URING);
    refuse_buffers = 0;
    refuse_new_flags = 1;
    int old = fallbacks_of(PSTK_READER_AUTO, PSTK_READER_IO_URING);
    refuse_new_flags = 0;
    CHECK(none >= 0);
    CHECK_EQ(files, none | PSTK_FALLBACK_NO_FIXED_FILES);
    CHECK_EQ(memory, none | PSTK_FALLBACK_NO_FIXED_BUFFERS);
    CHECK_EQ(old, none | PSTK_FALLBACK_NO_SINGLE_ISSUER);
}

TEST(auto_falls_back_to_threads_without_io_uring_and_forced_says_why)
{
    static const int natives[] = {EPERM, ENOSYS, ENOMEM, EINVAL, EMFILE, EACCES};
    for (int i = 0; i < 6; i++) {
        struct pstk_error err;
        struct pstk__reader *reader;
        uint32_t fallbacks = 0;
        const struct pstk__reader_config c = config_of(PSTK_READER_IO_URING, 4, 0);
        pstk_error_init(&err, sizeof err);
        refuse_ring = natives[i];
        int ladder = fallbacks_of(PSTK_READER_AUTO, PSTK_READER_THREADS);
        int forced = pstk__reader_open(&reader, &c, &fallbacks, &err);
        refuse_ring = 0;
        CHECK_EQ(ladder, PSTK_FALLBACK_NO_IO_URING);
        CHECK_EQ(forced, PSTK_ENOTSUP);
        CHECK(err.native == natives[i] && strstr(err.message, "io_uring") && reader == NULL);
    }
}

TEST(settings_out_of_range_are_named)
{
    struct pstk__reader *reader;
    uint32_t fallbacks = 0;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    struct pstk__reader_config c = config_of(PSTK_READER_AUTO, 0, 0);
    CHECK_EQ(pstk__reader_open(&reader, &c, &fallbacks, &err), PSTK_EINVAL);
    CHECK(!strcmp(err.message, "queue_depth: value is 0; must be from 1 to 4096"));
    c.depth = 4097;
    CHECK_EQ(pstk__reader_open(&reader, &c, &fallbacks, &err), PSTK_EINVAL);
    c.depth = 4;
    c.kind = 9;
    CHECK_EQ(pstk__reader_open(&reader, &c, &fallbacks, &err), PSTK_EINVAL);
    CHECK(!strcmp(err.message, "reader: value is 9; must be from 0 to 2"));
    c.kind = PSTK_READER_THREADS;
    c.n_files = 0;
    CHECK_EQ(pstk__reader_open(&reader, &c, &fallbacks, &err), PSTK_EINVAL);
    CHECK(!strcmp(err.message, "n_files: value is 0; must be at least 1"));
}

TEST(any_allocation_or_thread_start_may_fail_at_open)
{
    pstk__reader_uring.close(NULL); /* nothing is legal input */
    pstk__reader_threads.close(NULL);
    for (int k = 0; k < 2; k++) {
        struct pstk__reader *reader = NULL;
        const struct pstk__reader_config c = config_of(kinds[k], 5, 1);
        int n = 0;
        if (!usable(kinds[k]))
            continue;
        for (;; n++) {
            uint32_t fallbacks = 0;
            fail_after = n;
            int r = pstk__reader_open(&reader, &c, &fallbacks, NULL);
            int hit = fail_after < 0;
            fail_after = -1;
            if (r == 0)
                reader->ops->close(reader);
            if (!hit)
                break;
            /* Registered buffers are an extra: without memory to ask for them it is a fallback. */
            CHECK(r < 0 ? reader == NULL : !!(fallbacks & PSTK_FALLBACK_NO_FIXED_BUFFERS));
        }
        /* pool, its threads' list, 5 threads; ring, its 2 lists of reads, 2 tables, buffers */
        CHECK_EQ(n, k == 0 ? 7 : 6);
    }
}

TEST(the_alignment_of_a_file_and_of_its_folder_are_powers_of_two_or_refused)
{
    char path[300];
    snprintf(path, sizeof path, "%s/0", folder);
    const char *paths[] = {path, folder};
    for (int i = 0; i < 2; i++) {
        uint32_t memory = 0, offset = 0;
        int r = pstk__direct_align(paths[i], &memory, &offset);
        if (r < 0) {
            CHECK_EQ(r, -EINVAL);
            continue;
        }
        CHECK(memory >= 1 && (memory & (memory - 1)) == 0);
        CHECK(offset >= 512 && (offset & (offset - 1)) == 0);
    }
    uint32_t a, b;
    CHECK_EQ(pstk__direct_align("/no/such/file", &a, &b), -ENOENT);
    CHECK_EQ(pstk__direct_align("/dev/null", &a, &b), -EINVAL);
}

TEST(the_probe_agrees_with_the_reader)
{
    struct pstk_machine m = {.size = sizeof m};
    pstk__reader_probe(&m);
    refuse_ring = ENOSYS;
    struct pstk_machine none = {.size = sizeof none};
    pstk__reader_probe(&none);
    refuse_ring = 0;
    CHECK_EQ(none.io_uring, -ENOSYS);
    CHECK_EQ(none.single_issuer, 0);
    CHECK_EQ(none.fixed_buffers, -ENOSYS);
    if (m.io_uring != 1)
        SKIP("io_uring is not permitted here");
    int fallbacks = fallbacks_of(PSTK_READER_AUTO, PSTK_READER_IO_URING);
    CHECK_EQ(m.single_issuer, !(fallbacks & PSTK_FALLBACK_NO_SINGLE_ISSUER));
    CHECK(m.fixed_buffers == 1 || m.fixed_buffers < 0);
}

/* ---- set up
 * -------------------------------------------------------------------------------------- */

static int make_files(void)
{
    static uint8_t data[FILE_SIZE];
    char path[300];
    if (!mkdtemp(folder))
        return -1;
    for (uint32_t f = 0; f < N_FILES; f++) {
        for (uint32_t i = 0; i < FILE_SIZE; i++)
            data[i] = byte_at(f, i);
        snprintf(path, sizeof path, "%s/%u", folder, f);
        fds[f] = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fds[f] < 0 || write(fds[f], data, FILE_SIZE) != FILE_SIZE || fsync(fds[f]) < 0)
            return -1;
    }
    buffers = mmap(NULL, (size_t)MAX_DEPTH * BUFFER_SIZE + 4096, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return buffers == MAP_FAILED ? -1 : 0;
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(every_backend_gives_every_size_offset_depth_and_the_end_of_the_file),
        CASE(short_reads_are_continued),
        CASE(interrupted_and_refused_attempts_are_repeated),
        CASE(attempts_go_on_at_aligned_places_and_end_with_the_file),
        CASE(an_error_is_the_result_of_the_read_that_met_it_alone),
        CASE(a_read_refused_for_ever_ends_with_eagain),
        CASE(a_bad_descriptor_is_the_error_of_its_reads),
        CASE(a_slot_reads_the_file_it_was_given_last_registered_or_not),
        CASE(direct_reads_reach_an_odd_end_of_the_file_also_when_cut_short),
        CASE(after_close_nothing_is_written_any_more),
        CASE(reap_without_waiting_returns_at_once),
        CASE(signals_do_not_disturb_reads),
        CASE(io_uring_denied_by_seccomp_leaves_the_threads_and_the_fallback),
        CASE(little_lockable_memory_leaves_plain_buffers_and_the_fallback),
        CASE(a_closed_reader_has_given_its_locked_memory_back),
        CASE(each_refusal_is_one_fallback_and_the_data_stays_right),
        CASE(auto_falls_back_to_threads_without_io_uring_and_forced_says_why),
        CASE(settings_out_of_range_are_named),
        CASE(any_allocation_or_thread_start_may_fail_at_open),
        CASE(the_alignment_of_a_file_and_of_its_folder_are_powers_of_two_or_refused),
        CASE(the_probe_agrees_with_the_reader),
    };
    if (make_files() < 0)
        return perror(folder), 1;
    int failed = RUN_CASES(cases);
    char path[300];
    for (uint32_t f = 0; f < N_FILES; f++) {
        snprintf(path, sizeof path, "%s/%u", folder, f);
        unlink(path);
    }
    rmdir(folder);
    return failed;
}
