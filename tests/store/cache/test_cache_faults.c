/* SPDX-License-Identifier: Apache-2.0 */
/* A cache whose nth call fails, or whose process dies there; full disks; limits of files. What it
 * has is whole, what it counts is not less than there is, and finding allocates nothing. */
#include "support/faults.h"

#include "store/cache/cache_fixture.h"

#include <sys/mount.h>
#include <sys/resource.h>

#define MAX_BYTES 200000

static const struct {
    int kind, native;
} kinds[] = {
    {FAULT_MEMORY, ENOMEM}, {FAULT_WRITE, ENOSPC}, {FAULT_READ, EIO},   {FAULT_SYNC, EIO},
    {FAULT_RENAME, EIO},    {FAULT_OPEN, EMFILE},  {FAULT_REMOVE, EIO},
};

/* Open, make entry 3 in the place of the oldest, find it, drop it. Returns the first result below
 * 0, with its message in *err. */
static int use(const char *path, struct pstk_error *err)
{
    struct pstk__cache *cache;
    struct pstk__file file;
    const struct pstk__cache_key key = key_of(3);
    int r = pstk__cache_open(&cache, path, MAX_BYTES, err);
    if (r < 0)
        return r;
    r = make(cache, 3, 90000, err);
    if (pstk__cache_find(cache, &key, &file))
        pstk__file_end(&file);
    pstk__cache_drop(cache, &key, NULL);
    pstk__cache_close(cache);
    return r;
}

/* Two entries that the third does not fit next to. */
static int fill(const char *path)
{
    struct pstk__cache *cache;
    int r = pstk__cache_open(&cache, path, MAX_BYTES, NULL);
    for (uint32_t i = 0; r == 0 && i < 2; i++)
        r = make(cache, i, 70000, NULL);
    pstk__cache_close(cache);
    return r;
}

/* Return whether each entry is whole or is not there, the sum is not too low, and the cache works.
 */
static int is_sound(const char *path)
{
    struct pstk__cache *cache;
    struct pstk__cache_ledger ledger;
    struct pstk__cache_sum sum;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    if (pstk__cache_open(&cache, path, MAX_BYTES, &err) < 0)
        return 0;
    int is = has(cache, 0, 70000) >= 0 && has(cache, 1, 70000) >= 0 && has(cache, 3, 90000) >= 0;
    is = is && pstk__cache_lock(cache, 0, &ledger) == 0;
    if (is) {
        is = pstk__cache_survey(cache, &sum) == 0 && sum.n_writing == 0 &&
             ledger.bytes >= sum.bytes && sum.bytes <= MAX_BYTES;
        pstk__cache_unlock(&ledger);
    }
    const struct pstk__cache_key key = key_of(4);
    pstk__cache_drop(cache, &key, NULL);
    is = is && make(cache, 4, 150000, &err) == 0 && has(cache, 4, 150000) == 1;
    if (!is)
        printf("# %s\n", err.message);
    pstk__cache_close(cache);
    return is;
}

TEST(a_call_that_fails_is_reported_and_leaves_a_sound_cache)
{
    struct fixture f;
    fixture_open(&f);
    const char *path = fixture_path(&f, "c");
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (int n = 0, fired = 1; fired; n++) {
            CHECK(n < 200);
            CHECK_EQ(fill(path), 0);
            fault_arm(kinds[k].kind, n, kinds[k].native);
            const int r = use(path, &f.err);
            fired = fault_disarm();
            CHECK(r == 0 || (fired && r == f.err.code && f.err.message[0]));
            CHECK(is_sound(path));
            fixture_remove(path);
        }
    fixture_close(&f);
}

TEST(a_process_that_dies_at_any_call_leaves_a_sound_cache)
{
    struct fixture f;
    fixture_open(&f);
    const char *path = fixture_path(&f, "c");
    for (int n = 0, died = 1; died; n++) {
        CHECK(n < 400);
        CHECK_EQ(fill(path), 0);
        const pid_t child = fork();
        if (child == 0) {
            fault_arm(FAULT_DEATH, n, 0);
            _exit(use(path, NULL) < 0);
        }
        const int status = status_of(child);
        CHECK(status <= 0);
        died = status < 0;
        CHECK(is_sound(path));
        fixture_remove(path);
    }
    fixture_close(&f);
}

TEST(finding_and_reading_allocate_nothing)
{
    static uint8_t bytes[70000];
    struct fixture f;
    struct pstk__cache *cache;
    struct pstk__file file;
    const struct pstk__cache_key keys[2] = {key_of(0), key_of(1)};
    uint64_t size;
    int64_t changed_ns;
    fixture_open(&f);
    CHECK_EQ(fill(fixture_path(&f, "c")), 0);
    CHECK_EQ(pstk__cache_open(&cache, fixture_path(&f, "c"), MAX_BYTES, &f.err), 0);
    CHECK_EQ(truncate(path_of(&f, 1, ""), 9), 0); /* find removes it */
    fault_arm(FAULT_MEMORY, 0, ENOMEM);
    fault.always = 1;
    const int found = pstk__cache_find(cache, &keys[0], &file);
    const int64_t n = found ? pstk__file_read(&file, bytes, sizeof bytes, 0) : 0;
    const int r = found ? file.store->stat(&file, &size, &changed_ns) : -1;
    pstk__file_end(&file);
    const int damaged = pstk__cache_find(cache, &keys[1], &file);
    pstk__cache_drop(cache, &keys[0], NULL);
    CHECK_EQ(fault_disarm(), 0);
    CHECK(found == 1 && n == 70000 && r == 0 && size == 70000 && damaged == 0);
    CHECK(!lies_at(path_of(&f, 0, "")) && !lies_at(path_of(&f, 1, "")));
    pstk__cache_close(cache);
    fixture_close(&f);
}

/* In a child whose files may have so many bytes. */
static int use_limited(struct fixture *f, rlim_t bytes)
{
    const struct rlimit limit = {bytes, bytes};
    struct pstk__cache *cache;
    if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
        return 1;
    if (pstk__cache_open(&cache, fixture_path(f, "c"), MAX_BYTES, &f->err) < 0)
        return 2;
    if (has(cache, 0, 70000) != 1)
        return 3;
    if (make(cache, 3, 90000, &f->err) != PSTK_EFBIG || !strstr(f->err.message, "ulimit -f"))
        return 4;
    if (bytes > 10000 && make(cache, 4, 1000, &f->err) < 0)
        return 5;
    const struct pstk__cache_key key = key_of(1);
    pstk__cache_drop(cache, &key, NULL);
    return 0;
}

TEST(a_limit_of_files_is_reported_and_kills_nobody)
{
    struct fixture f;
    fixture_open(&f);
    static const rlim_t limits[] = {0, 8, 4096, 50000, 98000};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        CHECK_EQ(fill(fixture_path(&f, "c")), 0);
        const pid_t child = fork();
        if (child == 0)
            _exit(use_limited(&f, limits[i]));
        CHECK_EQ(status_of(child), 0);
        CHECK(is_sound(fixture_path(&f, "c")));
        fixture_remove(fixture_path(&f, "c"));
    }
    fixture_close(&f);
}

/* On a disk of 1 MiB that others fill. */
static void see_full_disk(struct fixture *f)
{
    struct pstk__cache *cache;
    static uint8_t bytes[1 << 20];
    const char *path = fixture_path(f, "disk/c");
    CHECK_EQ(pstk__cache_open(&cache, path, 1 << 30, &f->err), 0);
    CHECK_EQ(make(cache, 0, 300000, &f->err), 0);
    const int fd = open(fixture_path(f, "disk/other"), O_WRONLY | O_CREAT, 0600);
    CHECK_EQ(write(fd, bytes, 500000), 500000);
    CHECK_EQ(make(cache, 1, 400000, &f->err), 0); /* entry 0 leaves: the disk has no other room */
    CHECK(has(cache, 0, 300000) == 0 && has(cache, 1, 400000) == 1);
    struct pstk__cache_writer *writer; /* its file stays, and counts */
    const struct pstk__cache_key key = key_of(9);
    CHECK_EQ(pstk__cache_begin(&writer, cache, &key, 20000, &f->err), 0);
    CHECK_EQ(make(cache, 2, 600000, &f->err), PSTK_ENOSPC);
    CHECK(strstr(f->err.message, "free some space"));
    CHECK(!lies_at(path_of(f, 2, ".tmp")));
    struct pstk__cache_ledger ledger;
    struct pstk__cache_sum sum;
    CHECK_EQ(pstk__cache_lock(cache, 0, &ledger), 0);
    CHECK_EQ(pstk__cache_survey(cache, &sum), 0);
    CHECK(sum.n_writing == 1 && ledger.bytes == sum.bytes + sum.writing_bytes);
    pstk__cache_unlock(&ledger);
    pstk__cache_abort(&writer);
    CHECK(write(fd, bytes, sizeof bytes) > 0); /* to the last byte */
    CHECK_EQ(make(cache, 3, 100000, &f->err), PSTK_ENOSPC);
    pstk__cache_close(cache);
    /* Auto is half of what the full disk had free at the open: more than that can never be kept, so
     * it is EFBIG, not ENOSPC, and the message names another folder. */
    CHECK_EQ(pstk__cache_open(&cache, fixture_path(f, "disk/d"), 0, &f->err), 0);
    CHECK_EQ(make(cache, 3, 100000, &f->err), PSTK_EFBIG);
    CHECK(strstr(f->err.message, "cache_path to a folder with more space"));
    pstk__cache_close(cache);
    close(fd);
}

TEST(entries_leave_a_full_disk_and_what_does_not_fit_is_refused)
{
    struct fixture f;
    fixture_open(&f);
    CHECK_EQ(mkdir(fixture_path(&f, "disk"), 0700), 0);
    if (mount("tmpfs", fixture_path(&f, "disk"), "tmpfs", 0, "size=1m") < 0) {
        fixture_close(&f);
        SKIP("needs a mount of tmpfs");
    }
    see_full_disk(&f);
    umount2(fixture_path(&f, "disk"), MNT_DETACH);
    fixture_close(&f);
}

TEST(a_damaged_entry_leaves_and_one_that_was_made_since_stays)
{
    struct fixture f;
    struct pstk__cache *cache;
    struct pstk__file old, file;
    const struct pstk__cache_key key = key_of(0);
    fixture_open(&f);
    CHECK_EQ(pstk__cache_open(&cache, fixture_path(&f, "c"), MAX_BYTES, &f.err), 0);
    CHECK_EQ(make(cache, 0, 9000, &f.err), 0);
    CHECK_EQ(pstk__cache_find(cache, &key, &old), 1);
    CHECK_EQ(pstk__cache_drop(cache, &key, NULL), 1); /* another rank does, and makes it anew */
    CHECK_EQ(pstk__cache_drop(cache, &key, &old), 1); /* gone is gone */
    CHECK_EQ(make(cache, 0, 9000, &f.err), 0);
    CHECK_EQ(pstk__cache_drop(cache, &key, &old), 1);
    CHECK_EQ(has(cache, 0, 9000), 1);
    pstk__file_end(&old);
    /* While another has the folder locked it waits. */
    CHECK_EQ(pstk__cache_find(cache, &key, &file), 1);
    int ready[2];
    char byte;
    CHECK_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        struct pstk__cache_ledger ledger;
        const int is_locked = pstk__cache_lock(cache, 0, &ledger) == 0;
        const int is_told = write(ready[1], "x", 1) == 1;
        usleep(300000);
        pstk__cache_unlock(&ledger);
        _exit(!is_locked || !is_told);
    }
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    CHECK_EQ(pstk__cache_drop(cache, &key, &file), 1);
    CHECK(!lies_at(path_of(&f, 0, "")));
    CHECK_EQ(status_of(child), 0);
    close(ready[0]);
    close(ready[1]);
    /* A file that cannot be removed is reported: a folder has taken its place. */
    CHECK_EQ(mkdir(path_of(&f, 0, ""), 0700), 0);
    CHECK_EQ(pstk__cache_drop(cache, &key, NULL), 0);
    CHECK_EQ(pstk__cache_drop(cache, &key, &file), 1);
    pstk__file_end(&file);
    pstk__cache_close(cache);
    fixture_close(&f);
}

TEST(a_lock_that_is_never_given_back_is_reported)
{
    struct fixture f;
    struct pstk__cache *cache;
    struct pstk__cache_ledger ledger;
    fixture_open(&f);
    CHECK_EQ(fill(fixture_path(&f, "c")), 0);
    CHECK_EQ(pstk__cache_open(&cache, fixture_path(&f, "c"), MAX_BYTES, &f.err), 0);
    CHECK_EQ(pstk__cache_lock(cache, 0, &ledger), 0);
    CHECK_EQ(has(cache, 0, 70000), 1); /* find waits for nobody */
    CHECK_EQ(make(cache, 3, 1000, &f.err), PSTK_ETIMEDOUT);
    CHECK(strstr(f.err.message, "10 s"));
    pstk__cache_unlock(&ledger);
    CHECK_EQ(make(cache, 3, 1000, &f.err), 0);
    pstk__cache_close(cache);
    fixture_close(&f);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_call_that_fails_is_reported_and_leaves_a_sound_cache),
        CASE(a_process_that_dies_at_any_call_leaves_a_sound_cache),
        CASE(finding_and_reading_allocate_nothing),
        CASE(a_limit_of_files_is_reported_and_kills_nobody),
        CASE(entries_leave_a_full_disk_and_what_does_not_fit_is_refused),
        CASE(a_damaged_entry_leaves_and_one_that_was_made_since_stays),
        CASE(a_lock_that_is_never_given_back_is_reported),
    };
    return RUN_CASES(cases);
}
