/* SPDX-License-Identifier: Apache-2.0 */
#include "support/faults.h"
#include "support/archive_writer.h"
#include "support/fixture.h"
#include "support/merging.h"

/* The findings of verify, in order. */
struct told {
    int n;
    int stop_at; /* 0: never */
    uint64_t last_done, last_total;
    int progress_falls;
    struct {
        char shard[64];
        uint64_t record, offset, length, sample_id;
        int code, native;
        char message[300];
    } bads[400];
};

static int on_bad(void *user, const struct pstk_error *bad)
{
    struct told *t = user;
    if (t->n < 400) {
        snprintf(t->bads[t->n].shard, 64, "%.63s", bad->shard);
        snprintf(t->bads[t->n].message, 300, "%.299s", bad->message);
        t->bads[t->n].record = bad->record;
        t->bads[t->n].offset = bad->offset;
        t->bads[t->n].length = bad->length;
        t->bads[t->n].sample_id = bad->sample_id;
        t->bads[t->n].code = bad->code;
        t->bads[t->n].native = bad->native;
    }
    t->n++;
    return t->n == t->stop_at;
}

static int on_progress(void *user, uint64_t n_done, uint64_t n_total)
{
    struct told *t = user;
    t->progress_falls |= n_done < t->last_done;
    t->last_done = n_done;
    t->last_total = n_total;
    return 0;
}

static int64_t verify(struct told *t, const char *path, int decode, uint32_t n_threads)
{
    memset(t, 0, sizeof *t);
    return pstk_verify(path, decode, n_threads, on_bad, on_progress, t, NULL);
}

static void flip(const char *directory, const char *name, uint64_t offset, uint8_t mask)
{
    char path[600];
    uint8_t b = 0;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, O_RDWR);
    if (fd < 0 || pread(fd, &b, 1, (off_t)offset) != 1)
        abort();
    b ^= mask;
    if (pwrite(fd, &b, 1, (off_t)offset) != 1)
        abort();
    close(fd);
}

/* Two parts of a few records each, merged: the smallest data set of two shards. */
static int write_two_shards(struct fixture *f, const char *path)
{
    const char *parts[2] = {fixture_path(f, "p0"), fixture_path(f, "p1")};
    struct pstk_writer_settings s;
    for (uint32_t i = 0; i < 2; i++) {
        fixture_settings(&s, parts[i]);
        s.part = i;
        s.n_parts = 2;
        s.dictionary_size = 256;
        int r = fixture_write(&s, i * 40, i * 40 + 40, 5, &f->err);
        if (r < 0)
            return r;
    }
    return merge_parts(parts, 2, path, 0, &f->err);
}

static char **list(const char *path, int *n)
{
    static char names[32][256];
    static char *pointers[32];
    struct dirent *e;
    DIR *d = opendir(path);
    *n = 0;
    while (d && (e = readdir(d)) != NULL && *n < 32) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(names[*n], 256, "%s", e->d_name);
        pointers[*n] = names[*n];
        ++*n;
    }
    if (d)
        closedir(d);
    return pointers;
}

/* Return whether byte i is deep within a run of zeros. */
static int is_among_zeros(const uint8_t *bytes, size_t size, size_t i)
{
    static const uint8_t zeros[33];
    return i >= 16 && i + 17 <= size && memcmp(bytes + i - 16, zeros, sizeof zeros) == 0;
}

/* Flip bits of one file, one at a time. With PENSTOCK_TEST_FULL every bit; else every bit where
 * headers, pages and heads begin, one bit of every seventh byte, and few among zeros. 40 records of
 * one shape begin at multiples of 16, which 7 does not divide: every byte of a record is flipped in
 * some of them. With a sanitizer one bit of every fifth of the first, under TSan of every tenth,
 * since this verify has one thread, and one bit of every 35th byte. */
static int flip_all(const char *directory, const char *name, uint64_t *n_flips)
{
    char path[600];
    size_t size = 0;
    int full = getenv("PENSTOCK_TEST_FULL") != NULL;
    const uint32_t stride = test_stride(5, 5), of_heads = test_stride(5, 10);
    snprintf(path, sizeof path, "%s/%s", directory, name);
    uint8_t *bytes = fixture_load(path, &size);
    int fd = open(path, O_RDWR);
    int ok = bytes && fd >= 0;
    for (size_t i = 0; ok && i < size; i++) {
        int head = full || i < 96 || (i >= 4088 && i < 4300) || i % 509 == 0;
        int all = full || (head && stride == 1);
        if (head ? !full && i % of_heads
                 : i % (7 * stride) || (i % 61 && is_among_zeros(bytes, size, i)))
            continue;
        for (int bit = 0; ok && bit < 8; bit++) {
            uint8_t b = bytes[i] ^ (uint8_t)(1 << bit);
            if (!all && bit != (int)(i % 8))
                continue;
            ok = pwrite(fd, &b, 1, (off_t)i) == 1;
            ok = ok && pstk_verify(directory, 0, 1, NULL, NULL, NULL, NULL) != 0;
            if (!ok)
                printf("# %s: bit %d of byte %zu flipped and not found\n", name, bit, i);
            ++*n_flips;
        }
        ok = ok && pwrite(fd, &bytes[i], 1, (off_t)i) == 1;
    }
    if (fd >= 0)
        close(fd);
    free(bytes);
    return ok;
}

TEST(any_flipped_bit_is_found)
{
    struct fixture f;
    uint64_t n_flips = 0;
    int n;
    fixture_open(&f);
    const char *path = fixture_path(&f, "d");
    CHECK_EQ(write_two_shards(&f, path), 0);
    CHECK_EQ(fixture_verify(path), 0);
    char **names = list(path, &n);
    CHECK(n >= 4); /* manifest, two shards, dictionaries */
    for (int i = 0; i < n; i++)
        CHECK(flip_all(path, names[i], &n_flips));
    CHECK_EQ(fixture_verify(path), 0);
    printf("# %llu bits flipped\n", (unsigned long long)n_flips);
    fixture_close(&f);
}

TEST(any_truncation_and_any_appended_byte_is_found)
{
    struct fixture f;
    int n;
    fixture_open(&f);
    const char *path = fixture_path(&f, "d");
    CHECK_EQ(write_two_shards(&f, path), 0);
    char **names = list(path, &n);
    for (int i = 0; i < n; i++) {
        char file[600];
        size_t size = 0;
        snprintf(file, sizeof file, "%s/%s", path, names[i]);
        uint8_t *bytes = fixture_load(file, &size);
        CHECK(bytes != NULL);
        unlink(file); /* it is a link to the part's file */
        for (size_t k = 0; k <= size + 3;
             k += k < 32 || k + 40 > size ? test_stride(5, 9) : 13 * test_stride(7, 70)) {
            int fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0666);
            CHECK(fd >= 0);
            CHECK_EQ(pwrite(fd, bytes, size, 0), (ssize_t)size);
            CHECK_EQ(ftruncate(fd, (off_t)k), 0);
            close(fd);
            int64_t r = pstk_verify(path, 0, 1, NULL, NULL, NULL, &f.err);
            CHECK(k == size ? r == 0 : r != 0);
        }
        int fd = open(file, O_RDWR | O_TRUNC);
        CHECK(fd >= 0 && pwrite(fd, bytes, size, 0) == (ssize_t)size);
        close(fd);
        free(bytes);
    }
    CHECK_EQ(fixture_verify(path), 0);
    fixture_close(&f);
}

static int write_many(struct fixture *f, const char *path)
{
    struct pstk_writer_settings s;
    fixture_settings(&s, path);
    s.shard_size = 64 << 10;
    return fixture_write(&s, 0, 400, 1500, &f->err);
}

TEST(a_damaged_record_is_named_and_the_others_are_checked)
{
    struct fixture f;
    struct told *t = malloc(sizeof *t);
    fixture_open(&f);
    const char *path = fixture_path(&f, "d");
    CHECK_EQ(write_many(&f, path), 0);
    flip(path, "shard-000001.pstk", 4096 + 9, 1);      /* head of record 0 */
    flip(path, "shard-000001.pstk", 4096 + 400, 0x80); /* somewhere in it or behind */
    flip(path, "shard-000002.pstk", 9000, 4);
    CHECK_EQ(verify(t, path, 0, 1), 2); /* the bytes after a damaged head belong to it */
    CHECK_STR(t->bads[0].shard, "shard-000001.pstk");
    CHECK_EQ(t->bads[0].record, 0);
    CHECK_EQ(t->bads[0].offset, 4096);
    CHECK(t->bads[0].length > 0 && t->bads[0].sample_id > 20);
    CHECK_STR(t->bads[1].shard, "shard-000002.pstk");
    CHECK(t->bads[1].offset <= 9000 && t->bads[1].offset + t->bads[1].length > 9000);
    CHECK(strstr(t->bads[1].message, "raw") != NULL);
    CHECK_EQ(t->last_done, 400);
    CHECK_EQ(t->last_total, 400);
    CHECK(!t->progress_falls);
    free(t);
    fixture_close(&f);
}

TEST(records_after_a_damaged_header_are_checked)
{
    struct fixture f;
    struct told *t = malloc(sizeof *t);
    fixture_open(&f);
    const char *path = fixture_path(&f, "d");
    CHECK_EQ(write_many(&f, path), 0);
    flip(path, "shard-000000.pstk", 30, 1);
    CHECK_EQ(verify(t, path, 0, 1), 1);
    CHECK_EQ(t->bads[0].offset, 0);
    flip(path, "shard-000000.pstk", 9000, 1);
    CHECK_EQ(verify(t, path, 0, 1), 2);
    CHECK(t->bads[1].record != PSTK_NONE);
    free(t);
    fixture_close(&f);
}

/* Write n records of 32 bytes. */
static void write_numbers(struct fixture *f, const char *path, int64_t n)
{
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    const struct pstk_field field = {.name = "x", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_I64};
    fixture_settings(&s, path);
    s.fields = &field;
    s.n_fields = 1;
    CHECK_EQ(pstk_writer_open(&w, &s, &f->err), 0);
    for (int64_t k = 0; k < n; k++)
        CHECK_EQ(pstk_writer_add(w, &(struct pstk_value){&k, 8}, 1, &f->err), 0);
    CHECK_EQ(pstk_writer_commit(&w, &f->err), 0);
}

TEST(the_page_after_a_damaged_page_is_used)
{
    struct fixture f;
    struct told *t = malloc(sizeof *t);
    fixture_open(&f);
    const char *path = fixture_path(&f, "d");
    write_numbers(&f, path, 1200);
    /* 32 bytes a record: they end at byte 42496, so page 0 lies at 45056. */
    const char *shard = "shard-000000.pstk";
    flip(path, shard, 45056 + 100, 1);
    CHECK_EQ(verify(t, path, 0, 1), 1);
    CHECK_EQ(t->bads[0].length, 4096);
    CHECK(strstr(t->bads[0].message, "records 0 to 508") != NULL);
    flip(path, shard, 4096 + 32 * 1100 + 20, 1);
    CHECK_EQ(verify(t, path, 0, 1), 2);
    CHECK_EQ(t->bads[1].record, 1100);
    free(t);
    fixture_close(&f);
}

TEST(the_message_of_a_damaged_page_counts_its_records)
{
    struct fixture f;
    struct told *t = malloc(sizeof *t);
    fixture_open(&f);
    for (int64_t n = 1; n <= 2; n++) {
        const char *path = fixture_path(&f, n == 1 ? "one" : "two");
        write_numbers(&f, path, n);
        flip(path, "shard-000000.pstk", 8192 + 100, 1);
        CHECK_EQ(verify(t, path, 0, 1), 1);
        CHECK(strstr(t->bads[0].message,
                     n == 1 ? "; record 0 cannot be read" : "; records 0 to 1 cannot be read"));
    }
    free(t);
    fixture_close(&f);
}

TEST(a_missing_shard_is_one_damaged_place)
{
    struct fixture f;
    struct told *t = malloc(sizeof *t);
    fixture_open(&f);
    const char *path = fixture_path(&f, "d");
    CHECK_EQ(write_many(&f, path), 0);
    CHECK_EQ(unlink(fixture_path(&f, "d/shard-000003.pstk")), 0);
    for (uint32_t n = 1; n < 4; n++) {
        CHECK_EQ(verify(t, path, 1, n), 1);
        CHECK_STR(t->bads[0].shard, "shard-000003.pstk");
    }
    free(t);
    fixture_close(&f);
}

TEST(any_number_of_threads_reports_damage_in_order)
{
    struct fixture f;
    struct told *one = malloc(sizeof *one), *many = malloc(sizeof *many);
    fixture_open(&f);
    const char *path = fixture_path(&f, "d");
    struct pstk_writer_settings s;
    fixture_settings(&s, path);
    s.shard_size = 64 << 10;
    CHECK_EQ(fixture_write(&s, 0, 800, 300, &f.err), 0);
    /* More damaged records in a shard than wait in its slot, in several shards. */
    for (int k = 0; k < 5; k += 2) {
        char name[40];
        snprintf(name, sizeof name, "shard-%06d.pstk", k);
        for (uint64_t at = 4096 + 300; at < 40000; at += 500)
            flip(path, name, at, 1);
    }
    int64_t n = verify(one, path, 1, 1);
    CHECK(n > 100 && n == one->n && n < 400);
    for (uint32_t n_threads = 2; n_threads <= 9; n_threads++) {
        CHECK_EQ(verify(many, path, 1, n_threads), n);
        CHECK_EQ(memcmp(one->bads, many->bads, (size_t)n * sizeof *one->bads), 0);
        CHECK_EQ(many->last_done, 800);
    }
    free(one);
    free(many);
    fixture_close(&f);
}

TEST(the_caller_can_stop_it)
{
    struct fixture f;
    struct told *t = malloc(sizeof *t);
    fixture_open(&f);
    const char *path = fixture_path(&f, "d");
    CHECK_EQ(write_many(&f, path), 0);
    for (int k = 0; k < 8; k++) {
        char name[40];
        snprintf(name, sizeof name, "shard-%06d.pstk", k);
        for (uint64_t at = 4096 + 300; at < 40000; at += 500)
            flip(path, name, at, 1);
    }
    for (uint32_t n_threads = 1; n_threads < 6; n_threads++) {
        for (int stop = 1; stop < 60; stop += 13) {
            memset(t, 0, sizeof *t);
            t->stop_at = stop;
            CHECK_EQ(pstk_verify(path, 0, n_threads, on_bad, NULL, t, &f.err), PSTK_ECANCELED);
            CHECK_EQ(t->n, stop);
        }
    }
    free(t);
    fixture_close(&f);
}

TEST(a_manifest_that_lies_is_found)
{
    static const char *const edits[][2] = {
        {"\"max_stored\":168", "\"max_stored\":169"},
        {"\"max_plain\":168", "\"max_plain\":269"},
        {"\"max_width\":16", "\"max_width\":17"},
        {"\"max_height\":8", "\"max_height\":9"},
        {"\"jpeg\":200,\"png\":200", "\"jpeg\":199,\"png\":201"},
        {"\"zstd\":400", "\"zstd\":399"},
        {"\"stored_bytes\":49800", "\"stored_bytes\":49801"},
        {"\"max_stored\":168", "\"max_stored\":167"},
    };
    struct fixture f;
    struct told *t = malloc(sizeof *t);
    fixture_open(&f);
    const char *path = fixture_path(&f, "d");
    CHECK_EQ(write_many(&f, path), 0);
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        CHECK_EQ(fixture_edit_manifest(path, edits[i][0], edits[i][1]), 0);
        CHECK(verify(t, path, 0, 1) > 0);
        CHECK_STR(t->bads[0].shard, i < 7 ? "manifest.json" : "shard-000000.pstk");
        CHECK_EQ(fixture_edit_manifest(path, edits[i][1], edits[i][0]), 0);
        CHECK_EQ(verify(t, path, 0, 1), 0);
    }
    char identity[40], wrong[40];
    uint64_t n;
    CHECK_EQ(fixture_identity(path, identity, &n), 0);
    memcpy(wrong, identity, sizeof wrong);
    wrong[3] = wrong[3] == '0' ? '1' : '0';
    CHECK_EQ(fixture_edit_manifest(path, identity, wrong), 0);
    CHECK_EQ(verify(t, path, 0, 1), 1);
    CHECK(strstr(t->bads[0].message, "identity") != NULL);
    free(t);
    fixture_close(&f);
}

#define MS 1000000ull      /* ns */
#define MIB_NS (20 * MS)   /* time of a read of a MiB */
#define MAX_NS (100 * MS)  /* without asking */
#define STOP_NS (300 * MS) /* after which it shall stop */

/*
 * A slow disk, by a clock that reads move and nothing else, so that a busy machine is as good as an
 * idle one. Where other threads than the caller's read, the clock waits for the caller, who may not
 * have run since: before it was not asked for too long, and, once it said stop, until that has come
 * so far that the threads are awaited.
 */
static struct {
    _Atomic int is_on;
    _Atomic uint64_t now, asked; /* ns of the clock; asked: when verify did so last */
    _Atomic int is_stopping, is_awaiting;
    _Atomic int is_late; /* 1: it was not asked, however long the clock waited */
    pthread_t caller;
} disk;

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    const uint64_t now = atomic_load(&disk.now);
    if (!atomic_load(&disk.is_on))
        return __real_clock_gettime(clock, time);
    *time = (struct timespec){(time_t)(now / 1000000000), (long)(now % 1000000000)};
    return 0;
}

int __real_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result)
{
    atomic_store(&disk.is_awaiting, 1);
    return __real_pthread_join(thread, result);
}

/* The read takes its time, if it may: 1. */
static int takes(uint64_t ns)
{
    uint64_t now = atomic_load(&disk.now);
    const int may = atomic_load(&disk.is_stopping) ? atomic_load(&disk.is_awaiting)
                                                   : now + ns - atomic_load(&disk.asked) < MAX_NS;
    return (may || atomic_load(&disk.is_late) || pthread_equal(disk.caller, pthread_self())) &&
           atomic_compare_exchange_strong(&disk.now, &now, now + ns);
}

static void read_slowly(size_t size)
{
    const uint64_t ns = size * MIB_NS >> 20;
    for (uint32_t i = 0; !takes(ns); i++)
        if (!test_patience(i))
            atomic_store(&disk.is_late, 1);
}

/* The longest time in which verify did not ask whether to stop. */
struct asking {
    uint64_t longest, stop_at; /* ns; stop_at: of the clock, 0: never */
};

static int ask(void *user, uint64_t n_done, uint64_t n_total)
{
    struct asking *a = user;
    const uint64_t now = atomic_load(&disk.now), passed = now - atomic_load(&disk.asked);
    (void)n_done, (void)n_total;
    if (atomic_load(&disk.is_stopping)) /* it was asked for the last time then */
        return 1;
    a->longest = passed > a->longest ? passed : a->longest;
    if (a->stop_at && now >= a->stop_at)
        atomic_store(&disk.is_stopping, 1);
    atomic_store(&disk.asked, now);
    return atomic_load(&disk.is_stopping);
}

/* As pstk_verify, on the slow disk. */
static int64_t verify_slowly(const char *path, uint32_t n_threads, struct asking *a)
{
    disk.caller = pthread_self();
    atomic_store(&disk.now, 1000 * MS);
    atomic_store(&disk.asked, 1000 * MS);
    atomic_store(&disk.is_stopping, 0);
    atomic_store(&disk.is_awaiting, 0);
    atomic_store(&disk.is_late, 0);
    atomic_store(&disk.is_on, 1);
    a->stop_at += a->stop_at ? 1000 * MS : 0;
    fault.on_read = read_slowly;
    const int64_t n_bad = pstk_verify(path, 0, n_threads, NULL, ask, a, NULL);
    fault.on_read = NULL;
    atomic_store(&disk.is_on, 0);
    return n_bad;
}

/* 40 MiB in one shard of 2 records, then of 40. */
TEST(verify_asks_whether_to_stop_every_100_ms_and_then_stops)
{
    for (uint64_t n = 2; n <= 40; n += 38) {
        struct fixture f;
        struct pstk_writer_settings s;
        fixture_open(&f);
        const char *path = fixture_path(&f, "d");
        fixture_settings(&s, path);
        CHECK_EQ(fixture_write(&s, 0, n, (40u << 20) / n, &f.err), 0);
        for (uint32_t n_threads = 1; n_threads < 4; n_threads += 2) {
            struct asking whole = {0, 0}, stopped = {0, STOP_NS};
            CHECK_EQ(verify_slowly(path, n_threads, &whole), 0);
            CHECK(atomic_load(&disk.now) >= 1000 * MS + 40 * MIB_NS);
            CHECK(whole.longest < MAX_NS);
            CHECK_EQ(verify_slowly(path, n_threads, &stopped), PSTK_ECANCELED);
            CHECK(stopped.longest < MAX_NS);
            CHECK(atomic_load(&disk.now) - atomic_load(&disk.asked) < MAX_NS);
        }
        fixture_close(&f);
    }
}

TEST(an_image_that_does_not_decode_is_found_when_decoding)
{
    struct fixture f;
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    struct told *t = malloc(sizeof *t);
    int64_t id = 1;
    fixture_open(&f);
    const char *path = fixture_path(&f, "d");
    fixture_settings(&s, path);
    CHECK_EQ(pstk_writer_open(&w, &s, &f.err), 0);
    const struct pstk_value v[4] = {{tiny_jpeg, sizeof tiny_jpeg - 4}, {"x", 1}, {"", 0}, {&id, 8}};
    CHECK_EQ(fixture_add(w, 0, 10, &f.err), 0);
    CHECK_EQ(pstk_writer_add(w, v, 4, &f.err), 0);
    CHECK_EQ(fixture_add(w, 1, 10, &f.err), 0);
    CHECK_EQ(pstk_writer_commit(&w, &f.err), 0);
    CHECK_EQ(verify(t, path, 0, 1), 0);
    CHECK_EQ(verify(t, path, 1, 1), 1);
    CHECK_EQ(t->bads[0].record, 1);
    CHECK_EQ(t->bads[0].sample_id, 1);
    free(t);
    fixture_close(&f);
}

TEST(verifying_a_path_that_is_no_data_set_is_an_error)
{
    struct fixture f;
    fixture_open(&f);
    CHECK(pstk_verify(NULL, 0, 1, NULL, NULL, NULL, &f.err) == PSTK_EINVAL);
    CHECK(pstk_verify(fixture_path(&f, "none"), 0, 1, NULL, NULL, NULL, &f.err) == PSTK_ENOENT);
    CHECK(pstk_verify(f.dir, 0, 1, NULL, NULL, NULL, &f.err) < 0);
    fixture_put(f.dir, "manifest.json", "{}"); /* another program's file */
    CHECK(pstk_verify(f.dir, 0, 1, NULL, NULL, NULL, &f.err) < 0);
    fixture_put(f.dir, "manifest.json", "{\"format\":\"penstock\",");
    CHECK(pstk_verify(f.dir, 0, 1, NULL, NULL, NULL, &f.err) == PSTK_EBADMSG);
    fixture_close(&f);
}

/* Every allocation, read, open and thread start may fail: an error or damage, never "whole", no
 * leak. */
static int sweep_with(const char *path, uint32_t n_threads, int kind, int native)
{
    int n = 0, ok = 1, fds = fixture_n_fds(), n_advised = 0;
    for (; ok; n++) {
        struct pstk_error err;
        pstk_error_init(&err, sizeof err);
        fault_arm(kind, n, native);
        int64_t r = pstk_verify(path, 1, n_threads, NULL, NULL, NULL, &err);
        int fired = fault_disarm();
        /* A read that failed once may be read again in smaller pieces, and then be good. */
        ok = (fired ? r != 0 || kind == FAULT_READ : r == 0) && fixture_n_fds() == fds;
        n_advised += strstr(err.message, "; lower n_threads") != NULL;
        if (!ok)
            printf("# kind %d, call %d: %lld: %s\n", kind, n, (long long)r, err.message);
        if (!fired)
            break;
    }
    /* Each thread has resources of its own, so fewer threads need less of them. */
    const int is_shared = n_threads > 1 && (kind == FAULT_MEMORY || kind == FAULT_THREAD);
    return ok && n > 0 && (n_advised > 0) == is_shared;
}

static int sweep(const char *path, int kind, int native)
{
    return sweep_with(path, 3, kind, native);
}

TEST(any_call_may_fail)
{
    struct fixture f;
    fixture_open(&f);
    const char *path = fixture_path(&f, "d");
    CHECK_EQ(write_two_shards(&f, path), 0);
    CHECK(sweep(path, FAULT_MEMORY, ENOMEM));
    CHECK(sweep(path, FAULT_READ, EIO));
    CHECK(sweep(path, FAULT_OPEN, EMFILE));
    CHECK(sweep(path, FAULT_OPEN, EACCES));
    CHECK(sweep(path, FAULT_THREAD, EAGAIN));
    CHECK(sweep_with(path, 1, FAULT_MEMORY, ENOMEM));
    fixture_close(&f);
}

/* 200 numbers, as numpy.save writes them: they have no checksums. */
static void write_array(const char *directory)
{
    char head[128], name[600];
    const int64_t rows[200] = {0};
    snprintf(name, sizeof name, "%s/l.npy", directory);
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    const int n = snprintf(head + 10, sizeof head - 10,
                           "{'descr': '<i8', 'fortran_order': False, 'shape': (200,)}");
    head[10 + n] = ' ';
    head[127] = '\n';
    FILE *file = mkdir(directory, 0700) == 0 ? fopen(name, "wb") : NULL;
    if (!file || fwrite(head, sizeof head, 1, file) != 1 ||
        fwrite(rows, sizeof rows, 1, file) != 1 || fclose(file) != 0)
        abort();
}

TEST(any_call_may_fail_where_there_are_no_checksums)
{
    struct fixture f;
    fixture_open(&f);
    const char *path = fixture_path(&f, "a");
    write_array(path);
    for (uint32_t n_threads = 1; n_threads <= 3; n_threads += 2) {
        CHECK(sweep_with(path, n_threads, FAULT_MEMORY, ENOMEM));
        CHECK(sweep_with(path, n_threads, FAULT_READ, EIO));
        CHECK(sweep_with(path, n_threads, FAULT_OPEN, EMFILE));
        CHECK(sweep_with(path, n_threads, FAULT_OPEN, EACCES));
    }
    CHECK(sweep_with(path, 3, FAULT_THREAD, EAGAIN));
    fixture_close(&f);
}

/* Three arrays in an archive, each with a checksum; returns the size. */
static uint64_t write_archive(const char *path, uint32_t n_rows, int is_damaged)
{
    static struct written written;
    uint8_t array[1024];
    char name[] = "a.npy";
    memset(&written, 0, sizeof written);
    memset(array, ' ', sizeof array);
    memcpy(array, "\x93NUMPY\x01\x00\x76\x00", 10);
    const int n = snprintf((char *)array + 10, 118,
                           "{'descr': '|u1', 'fortran_order': False, 'shape': (%u,)}", n_rows);
    array[10 + n] = ' ';
    for (; name[0] <= 'c'; name[0]++)
        archive_add(&written, name, array, 128 + n_rows);
    archive_finish(&written, "");
    written.bytes[written.local[1] + 35 + 128] ^= (uint8_t)is_damaged;
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(written.bytes, written.size, 1, file) != 1 || fclose(file) != 0)
        abort();
    return written.size;
}

TEST(any_call_may_fail_where_fields_have_a_checksum_each)
{
    struct fixture f;
    fixture_open(&f);
    const char *path = fixture_path(&f, "a.npz");
    write_archive(path, 200, 0);
    for (uint32_t n_threads = 1; n_threads <= 3; n_threads += 2) {
        CHECK(sweep_with(path, n_threads, FAULT_MEMORY, ENOMEM));
        CHECK(sweep_with(path, n_threads, FAULT_READ, EIO));
        CHECK(sweep_with(path, n_threads, FAULT_OPEN, EMFILE));
    }
    CHECK(sweep_with(path, 3, FAULT_THREAD, EAGAIN));
    fixture_close(&f);
}

struct counted {
    uint64_t n_bad, n_done, n_total;
    struct pstk_error last;
};

static int count_bad(void *user, const struct pstk_error *bad)
{
    struct counted *counted = user;
    counted->n_bad++;
    counted->last = *bad;
    return 0;
}

static int count_done(void *user, uint64_t n_done, uint64_t n_total)
{
    struct counted *counted = user;
    counted->n_done = n_done;
    counted->n_total = n_total;
    return 0;
}

TEST(a_field_with_a_wrong_checksum_is_one_damaged_place)
{
    struct fixture f;
    fixture_open(&f);
    const char *path = fixture_path(&f, "a.npz");
    for (int is_damaged = 0; is_damaged < 2; is_damaged++)
        for (uint32_t n_threads = 1; n_threads <= 3; n_threads++) {
            struct counted counted = {0};
            write_archive(path, 200, is_damaged);
            CHECK_EQ(pstk_verify(path, 0, n_threads, count_bad, count_done, &counted, NULL),
                     is_damaged);
            CHECK_EQ(counted.n_bad, is_damaged);
            CHECK_EQ(counted.n_done, 200);
            CHECK_EQ(counted.n_total, 200);
            CHECK(!is_damaged || strstr(counted.last.message, "a.npz: field b (bytes "));
            CHECK(!is_damaged || counted.last.length == 328);
        }
    fixture_close(&f);
}

#define LARGE 300000000 /* bytes of a row: the rooms of two threads would be too large */

/* 65 rows, two blocks, in a file that is one hole. */
static void write_large_array(const char *directory)
{
    char head[128], name[600];
    snprintf(name, sizeof name, "%s/l.npy", directory);
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    const int n = snprintf(head + 10, sizeof head - 10,
                           "{'descr': '|u1', 'fortran_order': False, 'shape': (65, %d)}", LARGE);
    head[10 + n] = ' ';
    head[127] = '\n';
    FILE *file = mkdir(directory, 0700) == 0 ? fopen(name, "wb") : NULL;
    if (!file || fwrite(head, sizeof head, 1, file) != 1 || fclose(file) != 0 ||
        truncate(name, 128 + (off_t)65 * LARGE) != 0)
        abort();
}

static int count_threads(void)
{
    int n = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; tasks && (entry = readdir(tasks));)
        n += entry->d_name[0] != '.';
    if (tasks)
        closedir(tasks);
    return n;
}

/* Note how many threads there are, and stop. */
static int note_threads(void *user, uint64_t n_done, uint64_t n_total)
{
    (void)n_done, (void)n_total;
    *(int *)user = count_threads();
    return 1;
}

TEST(large_rows_are_read_by_fewer_threads)
{
    struct fixture f;
    fixture_open(&f);
    int before = count_threads(), during = 0;
    const char *large = fixture_path(&f, "l");
    write_large_array(large);
    CHECK_EQ(pstk_verify(large, 0, 2, NULL, note_threads, &during, NULL), PSTK_ECANCELED);
    CHECK_EQ(during, before);
    fixture_close(&f);
}

TEST(unreadable_sectors_are_damaged_places)
{
    struct fixture f;
    struct told *t = malloc(sizeof *t);
    fixture_open(&f);
    const char *path = fixture_path(&f, "d");
    CHECK_EQ(write_many(&f, path), 0);
    fault_arm(FAULT_READ, 4, EIO);
    fault.always = 1;
    int64_t r = verify(t, path, 0, 1);
    CHECK(fault_disarm() > 0);
    CHECK(r > 0 && t->n == r);
    CHECK_EQ(t->bads[r < 400 ? r - 1 : 399].length > 0, 1);
    free(t);
    fixture_close(&f);
}

static int names_the_errno(const struct told *t, int i)
{
    int named = t->bads[i].code == PSTK_EIO && t->bads[i].native == EIO && t->bads[i].shard[0] &&
                strstr(t->bads[i].message, "Input/output error") != NULL;
    /* A dictionary is read as a whole. */
    named &= t->bads[i].offset != PSTK_NONE || strstr(t->bads[i].shard, ".zdict");
    if (!named)
        printf("# %s, offset %lld, code %d, native %d: %s\n", t->bads[i].shard,
               (long long)t->bads[i].offset, t->bads[i].code, t->bads[i].native,
               t->bads[i].message);
    return named;
}

/* All reads from the nth on fail: manifest, dictionary, header, index page, records, padding. */
TEST(unreadable_bytes_are_reported_with_their_errno_and_place)
{
    struct fixture f;
    struct told *t = malloc(sizeof *t);
    int fired = 1, n_unnamed = 0, n_told = 0;
    fixture_open(&f);
    const char *path = fixture_path(&f, "d");
    CHECK_EQ(write_two_shards(&f, path), 0);
    for (int n = 0; fired; n++) {
        memset(t, 0, sizeof *t);
        fault_arm(FAULT_READ, n, EIO);
        fault.always = 1;
        pstk_error_init(&f.err, sizeof f.err);
        int64_t r = pstk_verify(path, 0, 1, on_bad, on_progress, t, &f.err);
        fired = fault_disarm();
        if (r < 0)
            CHECK(f.err.code == PSTK_EIO && f.err.native == EIO &&
                  strstr(f.err.message, "Input/output error"));
        for (int i = 0; i < t->n && i < 400; i++, n_told++)
            n_unnamed += !names_the_errno(t, i);
    }
    CHECK_EQ(n_unnamed, 0);
    CHECK(n_told > 10);
    free(t);
    fixture_close(&f);
}

TEST(a_shard_that_ends_early_is_no_error_of_the_machine)
{
    struct fixture f;
    struct told *t = malloc(sizeof *t);
    fixture_open(&f);
    const char *path = fixture_path(&f, "d");
    CHECK_EQ(write_two_shards(&f, path), 0);
    char file[600];
    snprintf(file, sizeof file, "%s/part-00000-of-00002-000000.pstk", path);
    for (off_t size = 0; size < 20000; size += 1000) {
        CHECK_EQ(truncate(file, size), 0);
        CHECK(verify(t, path, 0, 1) > 0);
        for (int i = 0; i < t->n && i < 400; i++) {
            CHECK_EQ(t->bads[i].code, PSTK_EBADMSG);
            CHECK(!strstr(t->bads[i].message, "Input/output error"));
        }
    }
    free(t);
    fixture_close(&f);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(any_flipped_bit_is_found),
        CASE(any_truncation_and_any_appended_byte_is_found),
        CASE(a_damaged_record_is_named_and_the_others_are_checked),
        CASE(records_after_a_damaged_header_are_checked),
        CASE(the_page_after_a_damaged_page_is_used),
        CASE(the_message_of_a_damaged_page_counts_its_records),
        CASE(a_missing_shard_is_one_damaged_place),
        CASE(any_number_of_threads_reports_damage_in_order),
        CASE(the_caller_can_stop_it),
        CASE(a_manifest_that_lies_is_found),
        CASE(an_image_that_does_not_decode_is_found_when_decoding),
        CASE(verifying_a_path_that_is_no_data_set_is_an_error),
        CASE(any_call_may_fail),
        CASE(any_call_may_fail_where_there_are_no_checksums),
        CASE(any_call_may_fail_where_fields_have_a_checksum_each),
        CASE(a_field_with_a_wrong_checksum_is_one_damaged_place),
        CASE(large_rows_are_read_by_fewer_threads),
        CASE(unreadable_sectors_are_damaged_places),
        CASE(unreadable_bytes_are_reported_with_their_errno_and_place),
        CASE(a_shard_that_ends_early_is_no_error_of_the_machine),
        CASE(verify_asks_whether_to_stop_every_100_ms_and_then_stops),
    };
    return RUN_CASES(cases);
}
