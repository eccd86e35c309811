/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nth call of a kind fails, for n = 0, 1, 2, ... until a whole run succeeds: every failure is a
 * clean error, nothing is left behind (ASan), nothing hangs. The calls are wrapped by the linker.
 */
#include "support/sample_set.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum fault {
    NO_FAULT,
    FAULT_MEMORY,
    FAULT_MMAP,
    FAULT_THREAD,
    FAULT_OPEN,
    FAULT_OPENS, /* a run of them */
    FAULT_PREAD,
    FAULT_STAT
};

static _Atomic int fault_kind;
static _Atomic long fault_left; /* calls of the kind until one fails; < 0: it failed */

/* 1: this call fails. */
static int fails(enum fault kind)
{
    return atomic_load(&fault_kind) == (int)kind && atomic_fetch_sub(&fault_left, 1) == 0;
}

static long run_length; /* calls that fail, one after the other */

static int fails_in_run(enum fault kind)
{
    long left = atomic_load(&fault_kind) == (int)kind ? atomic_fetch_sub(&fault_left, 1) : 1;
    return left <= 0 && left > -run_length;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    return fails(FAULT_MEMORY) ? NULL : __real_malloc(size);
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
    return fails(FAULT_MEMORY) ? NULL : __real_calloc(n, size);
}

void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size)
{
    return fails(FAULT_MEMORY) ? NULL : __real_aligned_alloc(align, size);
}

/* With and without _FILE_OFFSET_BITS=64, libc's names differ. */
#define WRAP_MMAP(name)                                                                            \
    void *__real_##name(void *at, size_t size, int prot, int flags, int fd, off_t offset);         \
    void *__wrap_##name(void *at, size_t size, int prot, int flags, int fd, off_t offset);         \
    void *__wrap_##name(void *at, size_t size, int prot, int flags, int fd, off_t offset)          \
    {                                                                                              \
        if (fails(FAULT_MMAP)) {                                                                   \
            errno = ENOMEM;                                                                        \
            return MAP_FAILED;                                                                     \
        }                                                                                          \
        return __real_##name(at, size, prot, flags, fd, offset);                                   \
    }
WRAP_MMAP(mmap)
WRAP_MMAP(mmap64)

int __real_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *u);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *u);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *u)
{
    return fails(FAULT_THREAD) ? EAGAIN : __real_pthread_create(t, a, f, u);
}

#define WRAP_OPEN(name)                                                                            \
    int __real_##name(const char *file, int flags, ...);                                           \
    int __wrap_##name(const char *file, int flags, ...);                                           \
    int __wrap_##name(const char *file, int flags, ...)                                            \
    {                                                                                              \
        va_list list;                                                                              \
        va_start(list, flags);                                                                     \
        int mode = flags & O_CREAT ? va_arg(list, int) : 0;                                        \
        va_end(list);                                                                              \
        if (fails(FAULT_OPEN) || fails_in_run(FAULT_OPENS)) {                                      \
            errno = EMFILE;                                                                        \
            return -1;                                                                             \
        }                                                                                          \
        return __real_##name(file, flags, mode);                                                   \
    }
WRAP_OPEN(open)
WRAP_OPEN(open64)

#define WRAP_PREAD(name)                                                                           \
    ssize_t __real_##name(int fd, void *to, size_t size, off_t at);                                \
    ssize_t __wrap_##name(int fd, void *to, size_t size, off_t at);                                \
    ssize_t __wrap_##name(int fd, void *to, size_t size, off_t at)                                 \
    {                                                                                              \
        if (fails(FAULT_PREAD)) {                                                                  \
            errno = EIO;                                                                           \
            return -1;                                                                             \
        }                                                                                          \
        return __real_##name(fd, to, size, at);                                                    \
    }
WRAP_PREAD(pread)
WRAP_PREAD(pread64)

#define WRAP_FSTAT(name)                                                                           \
    int __real_##name(int fd, struct stat *st);                                                    \
    int __wrap_##name(int fd, struct stat *st);                                                    \
    int __wrap_##name(int fd, struct stat *st)                                                     \
    {                                                                                              \
        if (fails(FAULT_STAT)) {                                                                   \
            errno = EIO;                                                                           \
            return -1;                                                                             \
        }                                                                                          \
        return __real_##name(fd, st);                                                              \
    }
WRAP_FSTAT(fstat)
WRAP_FSTAT(fstat64)

static char path[4200];
static uint32_t bad_sample;     /* bad_sample of the runs: enum pstk_bad_sample */
static uint64_t n_replacements; /* replacements of all runs */

/* Open, stream one epoch, close. The first error, or 0; *n: samples whose label was right. */
static int run_once(uint32_t reader, uint32_t *n)
{
    const struct pstk_output outputs[] = {
        {.field = "cls", .kind = PSTK_OUTPUT_SCALAR},
        {.field = "text", .kind = PSTK_OUTPUT_BYTES},
    };
    struct pstk_settings s;
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    pstk_settings_init(&s, sizeof s);
    s.path = path;
    s.outputs = outputs;
    s.n_outputs = 2;
    s.batch_size = 4;
    s.n_threads = 2;
    s.reading.reader = reader;
    s.bad_sample = bad_sample;
    *n = 0;
    int r = pstk_open(&loader, &s, &err);
    if (r < 0)
        return err.message[0] && !loader ? r : 1;
    while ((r = pstk_next(loader, &b, NULL, 20000000000, &err)) == 1) {
        n_replacements += b->n_replacements;
        for (uint32_t i = 0; i < b->n_valid; i++)
            *n += ((const int64_t *)b->tensors[0].data)[i] == (int64_t)b->sample_ids[i] * 3 - 7;
        pstk_release(&b, NULL);
    }
    pstk_close(&loader);
    return r;
}

/* Under TSan every third call, and others with the other reader: it looks at the threads' ways out,
 * which neighbouring calls share. */
static void sweep(enum fault kind, uint32_t reader)
{
    const long step = test_stride(1, 3);
    for (long n = reader == PSTK_READER_AUTO ? step / 2 : 0; n < 2000; n += step) {
        uint32_t n_right;
        atomic_store(&fault_left, n);
        atomic_store(&fault_kind, (int)kind);
        int r = run_once(reader, &n_right);
        atomic_store(&fault_kind, NO_FAULT);
        CHECK(r <= 0);
        CHECK(r != PSTK_ETIMEDOUT);
        if (r == 0)
            CHECK_EQ(n_right, 20);
        if (atomic_load(&fault_left) >= 0) { /* no call failed: all were tried */
            CHECK_EQ(r, 0);
            return;
        }
    }
    CHECK(!"the sweep ends");
}

#define SWEEP(name, kind)                                                                          \
    TEST(the_nth_##name##_fails_cleanly)                                                           \
    {                                                                                              \
        sweep(kind, PSTK_READER_THREADS);                                                          \
        if (!test_state.failed)                                                                    \
            sweep(kind, PSTK_READER_AUTO);                                                         \
    }
SWEEP(allocation, FAULT_MEMORY)
SWEEP(mapping, FAULT_MMAP)
SWEEP(thread, FAULT_THREAD)
SWEEP(open, FAULT_OPEN)
SWEEP(pread, FAULT_PREAD)
SWEEP(fstat, FAULT_STAT)

/* Long runs reach the slow path, and end before another sample is tried. */
TEST(a_limit_of_open_files_is_no_bad_sample)
{
    n_replacements = 0;
    bad_sample = PSTK_BAD_REPLACE;
    for (run_length = 2; run_length < 64 && !test_state.failed; run_length += run_length / 2)
        sweep(FAULT_OPENS, PSTK_READER_THREADS);
    bad_sample = PSTK_BAD_ERROR;
    CHECK_EQ(n_replacements, 0);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_limit_of_open_files_is_no_bad_sample),
        CASE(the_nth_allocation_fails_cleanly),
        CASE(the_nth_mapping_fails_cleanly),
        CASE(the_nth_thread_fails_cleanly),
        CASE(the_nth_open_fails_cleanly),
        CASE(the_nth_pread_fails_cleanly),
        CASE(the_nth_fstat_fails_cleanly),
    };
    sample_set_path(path, sizeof path);
    sample_set_make(path, 20, 65536, PSTK_CODEC_ZSTD);
    int r = RUN_CASES(cases);
    sample_set_remove(path);
    return r;
}
