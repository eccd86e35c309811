/* SPDX-License-Identifier: Apache-2.0 */
#include "support/test.h"

#include <penstock/penstock.h>

#include "format/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- faults, put between by the linker (--wrap) ---------------------------------------------- */

static int fail_after = -1; /* allocations count down to one that fails; < 0: none */
static int refuse_flag;     /* 1: O_DIRECT is refused when it is set */
static int refuse_read;     /* 1: it may be set, but reads are refused */
static int refuse_open;     /* errno of the next open; 0 = none */

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
    if (fail_after >= 0 && fail_after-- == 0)
        return NULL;
    return __real_calloc(n, size);
}

int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    long arg = command == F_SETFL ? va_arg(args, int) : 0;
    va_end(args);
    if (command == F_SETFL && (arg & O_DIRECT)) {
        if (refuse_flag) {
            errno = EINVAL;
            return -1;
        }
        if (refuse_read)
            return 0;
    }
    return __real_fcntl(fd, command, arg);
}

ssize_t __real_pread(int fd, void *data, size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void *data, size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void *data, size_t size, off_t offset)
{
    if (refuse_read) {
        errno = EINVAL;
        return -1;
    }
    return __real_pread(fd, data, size, offset);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    if (refuse_open) {
        errno = refuse_open;
        refuse_open = 0;
        return -1;
    }
    return __real_open(path, flags, 0600);
}

/* The names of the three functions with 64-bit file offsets (_FILE_OFFSET_BITS), which meson sets.
 */
int __wrap_fcntl64(int fd, int command, ...) __attribute__((alias("__wrap_fcntl")));
int __wrap_open64(const char *path, int flags, ...) __attribute__((alias("__wrap_open")));
ssize_t __wrap_pread64(int fd, void *data, size_t size, off_t offset)
    __attribute__((alias("__wrap_pread")));

/* ---- a format whose shards are files named 0, 1, ... ------------------------------------------
 */

#define N_SHARDS 9

static char folder[] = "/tmp/test_files-XXXXXX";
static int n_checks;                  /* calls of file_check */
static uint32_t damaged = UINT32_MAX; /* shard that file_check refuses */

static const char *file_name(const struct pstk__source *s, uint32_t shard)
{
    static const char *const names[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8"};
    (void)s;
    return names[shard % N_SHARDS];
}

static int file_check(const struct pstk__source *s, uint32_t shard, const struct pstk__file *file,
                      struct pstk_error *err)
{
    (void)s, (void)file;
    n_checks++;
    if (shard != damaged)
        return 0;
    if (err) {
        pstk_error_init(err, sizeof *err);
        err->code = PSTK_EBADMSG;
        snprintf(err->message, sizeof err->message, "damaged header");
    }
    return PSTK_EBADMSG;
}

static int replaced; /* 1: another data set stands at the path */

static int stands(const struct pstk__source *s, struct pstk_error *err)
{
    (void)s;
    if (!replaced)
        return 0;
    if (err) {
        pstk_error_init(err, sizeof *err);
        err->code = PSTK_ENOENT;
        snprintf(err->message, sizeof err->message, "was replaced");
    }
    return PSTK_ENOENT;
}

static const struct pstk__format format = {
    .file_name = file_name, .file_check = file_check, .stands = stands};
static struct pstk__source source = {
    .format = &format, .store = &pstk__store_local, .n_files = N_SHARDS, .path = folder};

/* The number of the shard that fd reads, by its first byte; -1: neither. */
static int shard_of(int fd)
{
    static _Alignas(4096) uint8_t page[4096];
    return __real_pread(fd, page, sizeof page, 0) == sizeof page ? page[0] : -1;
}

static int n_open_fds(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += __real_fcntl(fd, F_GETFD, 0) >= 0;
    return n;
}

/* ---- tests ------------------------------------------------------------------------------------
 */

TEST(known_shards_keep_their_slot_and_the_least_recently_used_goes_first)
{
    struct pstk__files *f;
    uint32_t fallbacks = 0, slot[4], again;
    const struct pstk__file *file;
    int before = n_open_fds();
    CHECK_EQ(pstk__files_open(&f, &source, 3, 0, &fallbacks, NULL), 0);
    n_checks = 0;
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_EQ(pstk__files_acquire(f, i, &slot[i], &file, NULL), 1);
        CHECK_EQ(shard_of(file->fd), i);
        pstk__files_release(f, slot[i]);
    }
    CHECK_EQ(pstk__files_acquire(f, 0, &again, &file, NULL), 0); /* now 1 is the oldest */
    CHECK_EQ(again, slot[0]);
    pstk__files_release(f, again);
    CHECK_EQ(pstk__files_acquire(f, 3, &slot[3], &file, NULL), 1);
    CHECK_EQ(slot[3], slot[1]);
    CHECK_EQ(shard_of(file->fd), 3);
    CHECK_EQ(n_checks, 4);
    CHECK_EQ(n_open_fds(), before + 3);
    pstk__files_close(f);
    CHECK_EQ(n_open_fds(), before);
    CHECK_EQ(fallbacks, 0);
}

TEST(a_pinned_file_is_never_evicted_and_all_pinned_is_busy)
{
    struct pstk__files *f;
    uint32_t fallbacks = 0, a, b, slot;
    const struct pstk__file *file;
    CHECK_EQ(pstk__files_open(&f, &source, 2, 0, &fallbacks, NULL), 0);
    CHECK_EQ(pstk__files_acquire(f, 0, &a, &file, NULL), 1);
    CHECK_EQ(pstk__files_acquire(f, 0, &a, &file, NULL), 0); /* two pins */
    CHECK_EQ(pstk__files_acquire(f, 1, &b, &file, NULL), 1);
    CHECK_EQ(pstk__files_acquire(f, 2, &slot, &file, NULL), PSTK__FILES_PINNED);
    pstk__files_release(f, a);
    CHECK_EQ(pstk__files_acquire(f, 2, &slot, &file, NULL), PSTK__FILES_PINNED);
    pstk__files_release(f, a);
    CHECK_EQ(pstk__files_acquire(f, 2, &slot, &file, NULL), 1);
    CHECK_EQ(slot, a);
    pstk__files_close(f); /* pinned or not */
}

TEST(random_use_matches_a_naive_list_for_every_capacity)
{
    uint32_t seed = 7;
    for (uint32_t capacity = 1; capacity <= N_SHARDS + 1; capacity++) {
        struct pstk__files *f;
        uint32_t fallbacks = 0, order[N_SHARDS], n = 0, slot;
        const struct pstk__file *file;
        CHECK_EQ(pstk__files_open(&f, &source, capacity, 0, &fallbacks, NULL), 0);
        for (int step = 0; step < 300; step++) {
            seed = seed * 1664525 + 1013904223;
            uint32_t shard = (seed >> 8) % N_SHARDS, i = 0;
            while (i < n && order[i] != shard)
                i++;
            CHECK_EQ(pstk__files_acquire(f, shard, &slot, &file, NULL), i == n);
            CHECK_EQ(shard_of(file->fd), shard);
            pstk__files_release(f, slot);
            if (i == n && n == capacity)
                i = 0; /* the oldest leaves */
            if (i < n)
                memmove(&order[i], &order[i + 1], (--n - i) * sizeof order[0]);
            order[n++] = shard;
        }
        pstk__files_close(f);
    }
}

/* Numbers that may hash to the same places, of a data set of millions of files. */
static uint32_t far_number(uint32_t i)
{
    static const uint32_t steps[] = {1, 4096, 1000003, 1u << 27};
    return i / 4 * steps[i % 4];
}

TEST(a_few_slots_serve_millions_of_files_as_a_naive_list_does)
{
    struct pstk__source many = source;
    many.n_files = 4100000000u;
    uint32_t seed = 11;
    for (uint32_t capacity = 1; capacity <= 40; capacity += 3) {
        struct pstk__files *f;
        uint32_t fallbacks = 0, order[124], n = 0, slot;
        const struct pstk__file *file;
        CHECK_EQ(pstk__files_open(&f, &many, capacity, 0, &fallbacks, NULL), 0);
        for (int step = 0; step < 2000; step++) {
            seed = seed * 1664525 + 1013904223;
            const uint32_t number = far_number((seed >> 8) % 124);
            uint32_t i = 0;
            while (i < n && order[i] != number)
                i++;
            CHECK_EQ(pstk__files_acquire(f, number, &slot, &file, NULL), i == n);
            CHECK_EQ(shard_of(file->fd), number % N_SHARDS);
            pstk__files_release(f, slot);
            if (i == n && n == capacity)
                i = 0; /* the oldest leaves */
            if (i < n)
                memmove(&order[i], &order[i + 1], (--n - i) * sizeof order[0]);
            order[n++] = number;
        }
        pstk__files_close(f);
    }
}

TEST(o_direct_is_set_after_the_check_where_the_file_system_takes_it)
{
    struct pstk__files *f;
    uint32_t fallbacks = 0, slot;
    const struct pstk__file *file;
    CHECK_EQ(pstk__files_open(&f, &source, 2, 1, &fallbacks, NULL), 0);
    CHECK_EQ(pstk__files_acquire(f, 5, &slot, &file, NULL), 1);
    int flags = __real_fcntl(file->fd, F_GETFL, 0);
    CHECK_EQ(!(flags & O_DIRECT), !!(fallbacks & PSTK_FALLBACK_NO_DIRECT));
    CHECK_EQ(flags & O_NONBLOCK, 0);
    CHECK_EQ(shard_of(file->fd), 5);
    pstk__files_close(f);
}

/* Both ways to refuse O_DIRECT end in buffered files and the fallback. */
static void check_refused_direct(int *refuse)
{
    struct pstk__files *f;
    uint32_t fallbacks = 0, slot;
    const struct pstk__file *file;
    CHECK_EQ(pstk__files_open(&f, &source, 2, 1, &fallbacks, NULL), 0);
    *refuse = 1;
    int r = pstk__files_acquire(f, 5, &slot, &file, NULL);
    *refuse = 0;
    CHECK_EQ(r, 1);
    CHECK_EQ(fallbacks, PSTK_FALLBACK_NO_DIRECT);
    CHECK_EQ(__real_fcntl(file->fd, F_GETFL, 0) & (O_DIRECT | O_NONBLOCK), 0);
    CHECK_EQ(pstk__files_acquire(f, 6, &slot, &file, NULL), 1); /* no second try */
    CHECK_EQ(__real_fcntl(file->fd, F_GETFL, 0) & O_DIRECT, 0);
    pstk__files_close(f);
}

TEST(o_direct_refused_when_set_leaves_files_buffered)
{
    check_refused_direct(&refuse_flag);
}

TEST(o_direct_refused_when_read_leaves_files_buffered)
{
    check_refused_direct(&refuse_read);
}

TEST(a_file_that_cannot_be_opened_is_an_error_with_its_name_and_leaks_nothing)
{
    struct pstk__files *f;
    struct pstk_error err;
    uint32_t fallbacks = 0, slot;
    const struct pstk__file *file;
    int before = n_open_fds();
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk__files_open(&f, &source, 1, 0, &fallbacks, &err), 0);
    refuse_open = ENOENT;
    CHECK_EQ(pstk__files_acquire(f, 4, &slot, &file, &err), PSTK_ENOENT);
    CHECK(strstr(err.message, folder) && !strcmp(err.shard, "4") && err.native == ENOENT);
    CHECK_EQ(err.stage, PSTK_STAGE_SHARD);
    refuse_open = EMFILE;
    CHECK_EQ(pstk__files_acquire(f, 4, &slot, &file, &err), PSTK_EFBIG);
    CHECK(strstr(err.message, "ulimit -n"));
    damaged = 4;
    CHECK_EQ(pstk__files_acquire(f, 4, &slot, &file, &err), PSTK_EBADMSG);
    CHECK(!strcmp(err.shard, "4") && strstr(err.message, "damaged header"));
    damaged = UINT32_MAX;
    CHECK_EQ(n_open_fds(), before);
    CHECK_EQ(pstk__files_acquire(f, 4, &slot, &file, &err), 1); /* the slot is as good as before */
    pstk__files_close(f);
    CHECK_EQ(n_open_fds(), before);
}

/* A loader waits for a read to end where every slot is pinned, and for nothing where a file cannot
 * be opened. */
TEST(a_file_that_is_busy_is_an_error_not_a_table_that_is_full)
{
    struct pstk__files *f;
    struct pstk_error err;
    uint32_t fallbacks = 0, slot;
    const struct pstk__file *file;
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk__files_open(&f, &source, 1, 0, &fallbacks, &err), 0);
    refuse_open = EBUSY;
    CHECK_EQ(pstk__files_acquire(f, 4, &slot, &file, &err), PSTK_EBUSY);
    pstk__files_close(f);
}

TEST(a_fifo_in_place_of_a_shard_is_refused_and_does_not_hang)
{
    char path[300], aside[300];
    struct pstk__files *f;
    struct pstk_error err;
    uint32_t fallbacks = 0, slot;
    const struct pstk__file *file;
    pstk__source_file_path(&source, 7, path, sizeof path);
    snprintf(aside, sizeof aside, "%s/aside", folder);
    CHECK_EQ(rename(path, aside), 0);
    CHECK_EQ(mkfifo(path, 0600), 0);
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk__files_open(&f, &source, 1, 0, &fallbacks, &err), 0);
    int r = pstk__files_acquire(f, 7, &slot, &file, &err);
    pstk__files_close(f);
    CHECK_EQ(rename(aside, path), 0);
    CHECK_EQ(r, PSTK_EBADMSG);
    CHECK(strstr(err.message, "regular"));
}

TEST(a_shard_is_checked_again_when_it_is_opened_again)
{
    struct pstk__files *f;
    uint32_t fallbacks = 0, slot;
    const struct pstk__file *file;
    CHECK_EQ(pstk__files_open(&f, &source, 1, 0, &fallbacks, NULL), 0);
    n_checks = 0;
    for (uint32_t i = 0; i < 6; i++) {
        CHECK_EQ(pstk__files_acquire(f, i % 2, &slot, &file, NULL), 1);
        pstk__files_release(f, slot);
    }
    CHECK_EQ(n_checks, 6);
    pstk__files_close(f);
}

TEST(a_shard_of_a_data_set_that_was_replaced_is_not_called_damaged)
{
    struct pstk__files *f;
    struct pstk_error err;
    uint32_t fallbacks = 0, slot;
    const struct pstk__file *file;
    CHECK_EQ(pstk__files_open(&f, &source, 2, 0, &fallbacks, NULL), 0);
    damaged = 3;
    replaced = 1;
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk__files_acquire(f, 3, &slot, &file, &err), PSTK_ENOENT);
    CHECK_STR(err.message, "was replaced");
    CHECK_STR(err.shard, "3");
    CHECK_EQ(pstk__files_acquire(f, 4, &slot, &file, &err),
             1); /* it could be opened: nobody asks */
    pstk__files_release(f, slot);
    damaged = UINT32_MAX;
    replaced = 0;
    pstk__files_close(f);
}

TEST(the_capacity_leaves_half_of_the_limit_of_open_files)
{
    struct rlimit old, low;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
    low = (struct rlimit){.rlim_cur = 64, .rlim_max = old.rlim_max};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
    uint32_t many = pstk__files_capacity(1000000, 1), few = pstk__files_capacity(3, 8);
    uint32_t none = pstk__files_capacity(0, 1), shared = pstk__files_capacity(1000000, 8);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
    CHECK_EQ(many, 32);
    CHECK_EQ(few, 3);
    CHECK_EQ(none, 1);
    CHECK_EQ(shared, 4);
}

TEST(a_file_opened_outside_the_table_is_kept_unless_another_thread_was_faster)
{
    struct pstk__files *f;
    struct pstk__file first, second, third;
    const struct pstk__file *file, *again;
    uint32_t fallbacks = 0, slot, other;
    const int before = n_open_fds();
    CHECK_EQ(pstk__files_open(&f, &source, 1, PSTK__FILES_PLAIN, &fallbacks, NULL), 0);
    CHECK_EQ(pstk__files_find(f, 2, &slot, &file), 0);
    CHECK_EQ(pstk__source_open_file(&source, 2, &first, NULL), 0);
    CHECK_EQ(pstk__source_open_file(&source, 2, &second, NULL), 0);
    CHECK_EQ(pstk__source_open_file(&source, 3, &third, NULL), 0);
    CHECK_EQ(pstk__files_keep(f, 2, &first, &slot, &file), 0);
    CHECK(first.store == NULL && shard_of(file->fd) == 2); /* it is the table's now */
    CHECK_EQ(pstk__files_keep(f, 2, &second, &other, &again), 0);
    CHECK(second.store != NULL && again == file && other == slot); /* it stays the caller's */
    CHECK_EQ(pstk__files_keep(f, 3, &third, &other, &again), PSTK_EBUSY);
    CHECK(third.store != NULL);
    pstk__files_release(f, slot);
    CHECK_EQ(pstk__files_keep(f, 3, &third, &other, &again), PSTK_EBUSY); /* two pins */
    pstk__files_release(f, slot);
    CHECK_EQ(pstk__files_keep(f, 3, &third, &other, &again), 0);
    CHECK_EQ(shard_of(again->fd), 3);
    CHECK_EQ(pstk__files_find(f, 2, &slot, &file), 0); /* the oldest went */
    pstk__file_end(&second);
    pstk__files_close(f);
    CHECK_EQ(n_open_fds(), before);
}

TEST(bytes_that_cannot_be_read_are_named_with_their_place)
{
    struct pstk__file file;
    struct pstk_error err;
    uint8_t bytes[4096];
    struct pstk__extent e = {.file = 4, .record = 11, .offset = 100, .size = 50};
    CHECK_EQ(pstk__source_open_file(&source, 4, &file, NULL), 0);
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk__source_read(&source, &file, &e, bytes, &err), 0);
    e.offset = 4090;
    CHECK_EQ(pstk__source_read(&source, &file, &e, bytes, &err), PSTK_EBADMSG);
    CHECK_STR(err.message,
              "4: record 11: the file ends at byte 4096, within the bytes 4090 to 4139");
    CHECK_STR(err.shard, "4");
    CHECK(err.record == 11 && err.offset == 4090 && err.length == 50);
    refuse_read = 1;
    CHECK_EQ(pstk__source_read(&source, &file, &e, bytes, &err), PSTK_EINVAL);
    refuse_read = 0;
    CHECK(strstr(err.message, "4: record 11: cannot read bytes 4090 to 4139"));
    CHECK_EQ(err.native, EINVAL);
    pstk__file_end(&file);
}

TEST(any_allocation_may_fail_at_open)
{
    struct pstk__files *f;
    uint32_t fallbacks = 0;
    int r = -1;
    for (int n = 0; r != 0; n++) {
        CHECK(n < 10);
        fail_after = n;
        r = pstk__files_open(&f, &source, 4, 0, &fallbacks, NULL);
        fail_after = -1;
        CHECK(r == 0 ? n == 3 : r == PSTK_ENOMEM && f == NULL);
    }
    pstk__files_close(f);
    CHECK_EQ(pstk__files_open(&f, &source, 0, 0, &fallbacks, NULL), PSTK_EINVAL);
    pstk__files_close(NULL);
}

static int make_shards(void)
{
    char path[300];
    static uint8_t page[4096];
    if (!mkdtemp(folder))
        return -1;
    for (uint32_t i = 0; i < N_SHARDS; i++) {
        pstk__source_file_path(&source, i, path, sizeof path);
        FILE *f = fopen(path, "wbe");
        page[0] = (uint8_t)i;
        if (!f || fwrite(page, sizeof page, 1, f) != 1 || fclose(f))
            return -1;
    }
    return 0;
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(known_shards_keep_their_slot_and_the_least_recently_used_goes_first),
        CASE(a_pinned_file_is_never_evicted_and_all_pinned_is_busy),
        CASE(random_use_matches_a_naive_list_for_every_capacity),
        CASE(a_few_slots_serve_millions_of_files_as_a_naive_list_does),
        CASE(o_direct_is_set_after_the_check_where_the_file_system_takes_it),
        CASE(o_direct_refused_when_set_leaves_files_buffered),
        CASE(o_direct_refused_when_read_leaves_files_buffered),
        CASE(a_file_that_cannot_be_opened_is_an_error_with_its_name_and_leaks_nothing),
        CASE(a_file_that_is_busy_is_an_error_not_a_table_that_is_full),
        CASE(a_fifo_in_place_of_a_shard_is_refused_and_does_not_hang),
        CASE(a_shard_is_checked_again_when_it_is_opened_again),
        CASE(a_shard_of_a_data_set_that_was_replaced_is_not_called_damaged),
        CASE(the_capacity_leaves_half_of_the_limit_of_open_files),
        CASE(a_file_opened_outside_the_table_is_kept_unless_another_thread_was_faster),
        CASE(bytes_that_cannot_be_read_are_named_with_their_place),
        CASE(any_allocation_may_fail_at_open),
    };
    if (make_shards() < 0)
        return perror(folder), 1;
    int failed = RUN_CASES(cases);
    char path[300];
    for (uint32_t i = 0; i < N_SHARDS; i++) {
        pstk__source_file_path(&source, i, path, sizeof path);
        unlink(path);
    }
    rmdir(folder);
    return failed;
}
