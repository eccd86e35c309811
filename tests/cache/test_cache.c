/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of entries: what is written comes back or is refused, and its size stays in its limit.
 */
#include "cache/cache_fixture.h"

#include <pthread.h>
#include <sys/statvfs.h>

#define PLENTY (UINT64_C(1) << 30)

struct cached {
    struct fixture f;
    struct pstk__cache *cache;
};

static int open_cached(struct cached *c, uint64_t max_bytes)
{
    fixture_open(&c->f);
    return pstk__cache_open(&c->cache, fixture_path(&c->f, "c"), max_bytes, &c->f.err);
}

static void close_cached(struct cached *c)
{
    pstk__cache_close(c->cache);
    fixture_close(&c->f);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

TEST(what_was_written_comes_back_from_any_offset)
{
    static const uint64_t sizes[] = {0, 1, B - 1, B, B + 1, 3 * B, 3 * B + 5, 1100 * B + 9};
    static uint8_t bytes[1101 * B];
    struct cached c;
    CHECK_EQ(open_cached(&c, PLENTY), 0);
    for (uint32_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const uint64_t size = sizes[i];
        const uint64_t steps[] = {1, 77, B - 1, B, B + 1, 2 * B - 1, sizeof bytes};
        const struct pstk__cache_key key = key_of(i);
        struct pstk__file file;
        CHECK_EQ(pstk__cache_find(c.cache, &key, &file), 0);
        CHECK(file.store == NULL);
        CHECK_EQ(make(c.cache, i, size, &c.f.err), 0);
        CHECK_EQ(pstk__cache_find(c.cache, &key, &file), 1);
        CHECK_EQ(file.fd, -1);
        for (size_t s = 0; s < sizeof steps / sizeof steps[0]; s++)
            for (uint64_t at = 0; at <= size && at < 4 * B; at += steps[s] < 77 ? 1001 : steps[s]) {
                const uint64_t n = size - at < steps[s] ? size - at : steps[s];
                CHECK_EQ(pstk__file_read(&file, bytes, steps[s], at), n);
                for (uint64_t k = 0; k < n; k++)
                    if (bytes[k] != byte_of(i, at + k))
                        CHECK_EQ(at + k, -1);
            }
        CHECK_EQ(file.store->read_at(&file, bytes, 5, size + 1), 0);
        pstk__file_end(&file);
    }
    close_cached(&c);
}

TEST(parts_of_any_size_make_the_same_entry)
{
    struct cached c;
    CHECK_EQ(open_cached(&c, PLENTY), 0);
    static const uint64_t parts[] = {1, 4095, B, B + 1, 65536};
    for (uint32_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        struct pstk__cache_writer *writer;
        const struct pstk__cache_key key = key_of(i);
        /* fewer bytes than announced */
        CHECK_EQ(pstk__cache_begin(&writer, c.cache, &key, 9 * B, &c.f.err), 0);
        CHECK_EQ(append_bytes(writer, i, 5 * B + 3, parts[i], &c.f.err), 0);
        CHECK_EQ(pstk__cache_commit(&writer, &c.f.err), 0);
        CHECK(writer == NULL);
        CHECK_EQ(has(c.cache, i, 5 * B + 3), 1);
    }
    struct pstk__cache_ledger ledger;
    CHECK_EQ(pstk__cache_lock(c.cache, 0, &ledger), 0);
    CHECK_EQ(ledger.bytes, 5 * pstk__cache_file_size(5 * B + 3));
    pstk__cache_unlock(&ledger);
    close_cached(&c);
}

TEST(more_bytes_than_announced_are_refused)
{
    struct cached c;
    struct pstk__cache_writer *writer;
    const struct pstk__cache_key key = key_of(1);
    CHECK_EQ(open_cached(&c, PLENTY), 0);
    CHECK_EQ(pstk__cache_begin(&writer, c.cache, &key, 10, &c.f.err), 0);
    CHECK_EQ(append_bytes(writer, 1, 10, 10, &c.f.err), 0);
    CHECK_EQ(pstk__cache_append(writer, "x", 1, &c.f.err), PSTK_EFBIG);
    CHECK(strstr(c.f.err.message, "/data/shard.tar") && strstr(c.f.err.message, "10"));
    CHECK_EQ(pstk__cache_commit(&writer, &c.f.err), PSTK_EFBIG);
    CHECK(writer == NULL && has(c.cache, 1, 10) == 0 && !lies_at(path_of(&c.f, 1, ".tmp")));
    close_cached(&c);
}

TEST(each_part_of_a_key_tells_entries_apart)
{
    struct cached c;
    CHECK_EQ(open_cached(&c, PLENTY), 0);
    CHECK_EQ(make(c.cache, 0, 100, &c.f.err), 0);
    for (int part = 0; part < 6; part++) {
        struct pstk__cache_key key = key_of(0);
        struct pstk__file file;
        char name[PSTK__CACHE_NAME], path[80];
        key.path = part == 0 ? "/data/shard.ta" : key.path;
        key.made = part == 1 ? "runpacked" : key.made;
        key.size += part == 2;
        key.changed_ns += part == 3;
        key.begin += part == 4;
        key.end += part == 5;
        CHECK_EQ(pstk__cache_find(c.cache, &key, &file), 0);
        /* nor where its name is the same */
        pstk__cache_key_name(&key, name);
        snprintf(path, sizeof path, "c/entries/%s", name);
        CHECK_EQ(link(path_of(&c.f, 0, ""), fixture_path(&c.f, path)), 0);
        CHECK_EQ(pstk__cache_find(c.cache, &key, &file), 0);
    }
    CHECK_EQ(has(c.cache, 0, 100), 1);
    close_cached(&c);
}

TEST(the_time_of_an_entry_is_that_of_its_key)
{
    struct cached c;
    const struct pstk__cache_key key = key_of(0);
    struct pstk__file file;
    uint64_t size;
    int64_t changed_ns;
    CHECK_EQ(open_cached(&c, PLENTY), 0);
    CHECK_EQ(make(c.cache, 0, 100, &c.f.err), 0);
    CHECK_EQ(pstk__cache_find(c.cache, &key, &file), 1);
    CHECK_EQ(file.store->stat(&file, &size, &changed_ns), 0);
    CHECK(size == 100 && changed_ns == -7);
    pstk__file_end(&file);
    close_cached(&c);
}

TEST(a_key_that_is_too_long_is_refused)
{
    struct cached c;
    char path[PSTK__CACHE_MAX_PATH + 1];
    struct pstk__cache_writer *writer;
    struct pstk__file file;
    struct pstk__cache_key key = key_of(0);
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = 0;
    key.path = path;
    CHECK_EQ(open_cached(&c, PLENTY), 0);
    CHECK_EQ(pstk__cache_begin(&writer, c.cache, &key, 1, &c.f.err), PSTK_EINVAL);
    CHECK(writer == NULL);
    CHECK_EQ(pstk__cache_find(c.cache, &key, &file), 0);
    key.path = path + 1; /* the longest there may be */
    CHECK_EQ(pstk__cache_begin(&writer, c.cache, &key, 1, &c.f.err), 0);
    CHECK_EQ(pstk__cache_append(writer, "a", 1, &c.f.err), 0);
    CHECK_EQ(pstk__cache_commit(&writer, &c.f.err), 0);
    CHECK_EQ(pstk__cache_find(c.cache, &key, &file), 1);
    pstk__file_end(&file);
    close_cached(&c);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static size_t load_bytes(const char *path, uint8_t *bytes, size_t max)
{
    FILE *file = fopen(path, "rb");
    const size_t size = file ? fread(bytes, 1, max, file) : 0;
    if (file)
        fclose(file);
    return size;
}

static void store_bytes(const char *path, const uint8_t *bytes, size_t size)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
        abort();
    close(fd);
}

TEST(every_flipped_byte_of_header_and_table_makes_an_entry_none)
{
    static uint8_t bytes[1 << 17];
    struct cached c;
    const uint64_t size = 5 * B + 1;
    CHECK_EQ(open_cached(&c, PLENTY), 0);
    CHECK_EQ(make(c.cache, 0, size, &c.f.err), 0);
    const char *path = path_of(&c.f, 0, "");
    const size_t n = load_bytes(path, bytes, sizeof bytes);
    CHECK_EQ(n, pstk__cache_file_size(size));
    for (size_t at = 0; at < n;
         at = at + 1 == PSTK__CACHE_HEADER ? pstk__cache_table_at(size) : at + 1) {
        bytes[at] ^= 1u << at % 8;
        store_bytes(path, bytes, n);
        CHECK_EQ(has(c.cache, 0, size), 0);
        CHECK(!lies_at(path)); /* removed */
        bytes[at] ^= 1u << at % 8;
    }
    store_bytes(path, bytes, n);
    CHECK_EQ(has(c.cache, 0, size), 1);
    close_cached(&c);
}

TEST(an_entry_that_is_cut_or_longer_is_none)
{
    static uint8_t bytes[1 << 17];
    struct cached c;
    const uint64_t size = 3 * B + 1;
    CHECK_EQ(open_cached(&c, PLENTY), 0);
    CHECK_EQ(make(c.cache, 0, size, &c.f.err), 0);
    const char *path = path_of(&c.f, 0, "");
    const size_t n = load_bytes(path, bytes, sizeof bytes);
    for (size_t cut = 0; cut<n; cut += cut + 300> n ? 1 : 293) {
        store_bytes(path, bytes, cut);
        CHECK_EQ(has(c.cache, 0, size), 0);
    }
    store_bytes(path, bytes, n + 1);
    CHECK_EQ(has(c.cache, 0, size), 0);
    close_cached(&c);
}

TEST(flipped_data_fails_the_reads_of_its_block_alone)
{
    static uint8_t bytes[8 * B];
    struct cached c;
    const struct pstk__cache_key key = key_of(0);
    const uint64_t size = 6 * B + 100;
    struct pstk__file file;
    CHECK_EQ(open_cached(&c, PLENTY), 0);
    CHECK_EQ(make(c.cache, 0, size, &c.f.err), 0);
    CHECK_EQ(pstk__cache_find(c.cache, &key, &file), 1);
    const int fd = open(path_of(&c.f, 0, ""), O_RDWR);
    static const uint64_t flipped[] = {0, 1, B - 1, B, 3 * B + 17, 6 * B - 1, 6 * B, 6 * B + 99};
    for (size_t i = 0; i < sizeof flipped / sizeof flipped[0]; i++) {
        const uint64_t at = flipped[i], block = at / B;
        const uint8_t right = byte_of(0, at), wrong = right ^ 4;
        CHECK_EQ(pwrite(fd, &wrong, 1, (off_t)(PSTK__CACHE_HEADER + at)), 1);
        for (uint64_t b = 0; b < 7; b++) /* the last byte of each block */
            CHECK_EQ(file.store->read_at(&file, bytes, 1, b < 6 ? (b + 1) * B - 1 : size - 1),
                     b == block ? -EBADMSG : 1);
        CHECK_EQ(pstk__file_read(&file, bytes, size, 0), -EBADMSG);
        CHECK_EQ(pwrite(fd, &right, 1, (off_t)(PSTK__CACHE_HEADER + at)), 1);
        CHECK_EQ(pstk__file_read(&file, bytes, size, 0), size);
    }
    close(fd);
    CHECK_EQ(truncate(path_of(&c.f, 0, ""), 2 * B), 0); /* under an open file */
    CHECK_EQ(pstk__file_read(&file, bytes, size, 0), -EBADMSG);
    pstk__file_end(&file);
    pstk__cache_drop(c.cache, &key, NULL);
    CHECK(!lies_at(path_of(&c.f, 0, "")));
    close_cached(&c);
}

TEST(blocks_that_have_changed_places_are_seen)
{
    uint8_t two[2 * B], bytes[2 * B];
    struct cached c;
    const struct pstk__cache_key key = key_of(0);
    struct pstk__file file;
    CHECK_EQ(open_cached(&c, PLENTY), 0);
    CHECK_EQ(make(c.cache, 0, 2 * B, &c.f.err), 0);
    CHECK_EQ(pstk__cache_find(c.cache, &key, &file), 1);
    const int fd = open(path_of(&c.f, 0, ""), O_RDWR);
    CHECK_EQ(pread(fd, two, 2 * B, PSTK__CACHE_HEADER), 2 * B);
    CHECK_EQ(pwrite(fd, two + B, B, PSTK__CACHE_HEADER), B);
    CHECK_EQ(pwrite(fd, two, B, PSTK__CACHE_HEADER + B), B);
    CHECK_EQ(pread(fd, two, 8, PSTK__CACHE_HEADER + 2 * B), 8); /* and their CRCs as well */
    CHECK_EQ(pwrite(fd, two + 4, 4, PSTK__CACHE_HEADER + 2 * B), 4);
    CHECK_EQ(pwrite(fd, two, 4, PSTK__CACHE_HEADER + 2 * B + 4), 4);
    close(fd);
    CHECK_EQ(pstk__file_read(&file, bytes, B, 0), -EBADMSG);
    CHECK_EQ(pstk__file_read(&file, bytes, B, B), -EBADMSG);
    pstk__file_end(&file);
    close_cached(&c);
}

TEST(two_keys_of_one_name_are_told_apart)
{
    struct cached c;
    CHECK_EQ(open_cached(&c, PLENTY), 0);
    CHECK_EQ(make(c.cache, 0, 100, &c.f.err), 0);
    CHECK_EQ(rename(path_of(&c.f, 0, ""), path_of(&c.f, 1, "")), 0);
    CHECK_EQ(has(c.cache, 1, 100), 0);
    CHECK(lies_at(path_of(&c.f, 1, ""))); /* it is whole: it stays */
    CHECK_EQ(make(c.cache, 1, 50, &c.f.err), 0);
    CHECK_EQ(has(c.cache, 1, 50), 1);
    struct pstk__cache_ledger ledger;
    CHECK_EQ(pstk__cache_lock(c.cache, 0, &ledger), 0);
    CHECK_EQ(ledger.bytes, pstk__cache_file_size(50)); /* what was replaced does not count */
    pstk__cache_unlock(&ledger);
    close_cached(&c);
}

/* ---- size ------------------------------------------------------------------------------------ */

/* Entry i was used so many seconds ago. */
static int set_used(const struct fixture *f, uint32_t i, time_t ago)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const struct timespec times[2] = {{now.tv_sec - ago, 0}, {now.tv_sec - ago, 0}};
    return utimensat(AT_FDCWD, path_of(f, i, ""), times, 0);
}

TEST(what_was_used_least_recently_leaves_first)
{
    struct cached c;
    const uint64_t size = 20000, each = pstk__cache_file_size(size);
    CHECK_EQ(open_cached(&c, 5 * each), 0);
    for (uint32_t i = 0; i < 5; i++) {
        CHECK_EQ(make(c.cache, i, size, &c.f.err), 0);
        CHECK_EQ(set_used(&c.f, i, 1000 + i), 0); /* 4 is the oldest */
    }
    CHECK_EQ(has(c.cache, 4, size), 1); /* used now: 3 is the oldest */
    CHECK_EQ(make(c.cache, 5, size, &c.f.err), 0);
    for (uint32_t i = 0; i < 6; i++)
        CHECK_EQ(lies_at(path_of(&c.f, i, "")), i != 3);
    CHECK_EQ(make(c.cache, 6, 2 * size, &c.f.err), 0); /* in the place of two */
    for (uint32_t i = 0; i < 7; i++)
        CHECK_EQ(lies_at(path_of(&c.f, i, "")), i != 3 && i != 2 && i != 1);
    close_cached(&c);
}

TEST(an_entry_is_marked_as_used_once_a_minute)
{
    struct cached c;
    struct stat st;
    CHECK_EQ(open_cached(&c, PLENTY), 0);
    CHECK_EQ(make(c.cache, 0, 10, &c.f.err), 0);
    CHECK_EQ(set_used(&c.f, 0, 40), 0);
    const time_t now = time(NULL);
    CHECK_EQ(has(c.cache, 0, 10), 1);
    CHECK_EQ(stat(path_of(&c.f, 0, ""), &st), 0);
    CHECK(st.st_mtime < now - 30);
    CHECK_EQ(set_used(&c.f, 0, 70), 0);
    CHECK_EQ(has(c.cache, 0, 10), 1);
    CHECK_EQ(stat(path_of(&c.f, 0, ""), &st), 0);
    CHECK(st.st_mtime >= now - 1);
    close_cached(&c);
}

TEST(an_open_entry_that_leaves_stays_readable)
{
    static uint8_t bytes[1 << 16];
    struct cached c;
    struct pstk__file file;
    const struct pstk__cache_key key = key_of(0);
    CHECK_EQ(open_cached(&c, 60000), 0);
    CHECK_EQ(make(c.cache, 0, 40000, &c.f.err), 0);
    CHECK_EQ(pstk__cache_find(c.cache, &key, &file), 1);
    CHECK_EQ(make(c.cache, 1, 40000, &c.f.err), 0);
    CHECK_EQ(has(c.cache, 0, 40000), 0);
    pstk__cache_close(c.cache);
    c.cache = NULL;
    CHECK_EQ(pstk__file_read(&file, bytes, sizeof bytes, 0), 40000);
    for (uint64_t at = 0; at < 40000; at++)
        CHECK(bytes[at] == byte_of(0, at));
    pstk__file_end(&file);
    close_cached(&c);
}

TEST(what_is_larger_than_the_cache_is_refused_and_nothing_leaves)
{
    struct cached c;
    CHECK_EQ(open_cached(&c, 60000), 0);
    CHECK_EQ(make(c.cache, 0, 40000, &c.f.err), 0);
    CHECK_EQ(make(c.cache, 1, 60000, &c.f.err), PSTK_EFBIG);
    CHECK(strstr(c.f.err.message, "cache_size"));
    CHECK_EQ(has(c.cache, 0, 40000), 1);
    CHECK_EQ(make(c.cache, 1, UINT64_MAX, &c.f.err), PSTK_EFBIG);
    close_cached(&c);
}

TEST(what_others_write_has_its_room)
{
    struct cached c;
    struct pstk__cache_writer *writer;
    const struct pstk__cache_key key = key_of(0);
    CHECK_EQ(open_cached(&c, 100000), 0);
    CHECK_EQ(pstk__cache_begin(&writer, c.cache, &key, 60000, &c.f.err), 0);
    CHECK_EQ(make(c.cache, 1, 60000, &c.f.err), PSTK_EBUSY);
    CHECK(strstr(c.f.err.message, "being written"));
    CHECK_EQ(make(c.cache, 2, 10000, &c.f.err), 0);
    pstk__cache_abort(&writer);
    CHECK(writer == NULL && !lies_at(path_of(&c.f, 0, ".tmp")));
    pstk__cache_abort(&writer);
    CHECK_EQ(make(c.cache, 1, 60000, &c.f.err), 0);
    close_cached(&c);
}

TEST(a_damaged_sum_is_counted_anew)
{
    struct cached c;
    const uint64_t each = pstk__cache_file_size(1000);
    CHECK_EQ(open_cached(&c, 3 * each), 0);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_EQ(make(c.cache, i, 1000, &c.f.err), 0);
        CHECK_EQ(set_used(&c.f, i, 1000 - i), 0);
    }
    const int fd = open(fixture_path(&c.f, "c/entries/lock"), O_RDWR);
    CHECK_EQ(pwrite(fd, "\0\0\0\0", 4, 8), 4); /* a sum of 0, with a wrong CRC */
    close(fd);
    CHECK_EQ(make(c.cache, 3, 1000, &c.f.err), 0);
    for (uint32_t i = 0; i < 4; i++)
        CHECK_EQ(lies_at(path_of(&c.f, i, "")), i != 0);
    CHECK_EQ(unlink(fixture_path(&c.f, "c/entries/lock")), 0);
    CHECK_EQ(make(c.cache, 4, 1000, &c.f.err), 0);
    CHECK(!lies_at(path_of(&c.f, 1, "")));
    close_cached(&c);
}

TEST(half_of_the_free_bytes_is_the_size_if_none_is_set)
{
    struct cached c;
    struct statvfs disk;
    CHECK_EQ(open_cached(&c, 0), 0);
    CHECK_EQ(statvfs(c.f.dir, &disk), 0);
    const double half = (double)disk.f_bavail * (double)disk.f_frsize / 2;
    CHECK((double)c.cache->max_bytes > 0.8 * half && (double)c.cache->max_bytes < 1.2 * half);
    close_cached(&c);
}

/* ---- makers ---------------------------------------------------------------------------------- */

TEST(one_maker_at_a_time)
{
    struct cached c;
    struct pstk__cache_writer *writer, *second;
    const struct pstk__cache_key key = key_of(0);
    uint64_t n_done, n_total;
    CHECK_EQ(open_cached(&c, PLENTY), 0);
    CHECK_EQ(pstk__cache_making(c.cache, &key, &n_done, &n_total), 0);
    CHECK_EQ(pstk__cache_begin(&writer, c.cache, &key, 20 << 20, &c.f.err), 0);
    CHECK_EQ(pstk__cache_begin(&second, c.cache, &key, 100, &c.f.err), PSTK_EBUSY);
    CHECK(second == NULL && strstr(c.f.err.message, "/data/shard.tar"));
    CHECK_EQ(append_bytes(writer, 0, 9 << 20, 1 << 16, &c.f.err), 0);
    CHECK_EQ(pstk__cache_making(c.cache, &key, &n_done, &n_total), 1);
    CHECK(n_done == 8 << 20 && n_total > 20 << 20 && n_total < 21 << 20);
    CHECK_EQ(pstk__cache_commit(&writer, &c.f.err), 0);
    CHECK_EQ(pstk__cache_making(c.cache, &key, &n_done, &n_total), 0);
    /* Who looked before that finds it now. */
    CHECK_EQ(pstk__cache_begin(&second, c.cache, &key, 100, &c.f.err), PSTK_EBUSY);
    CHECK(second == NULL && strstr(c.f.err.message, "has just made"));
    CHECK(!lies_at(path_of(&c.f, 0, ".tmp")));
    CHECK_EQ(has(c.cache, 0, 9 << 20), -1); /* it is there (has reads 1 MiB alone) */
    pstk__cache_drop(c.cache, &key, NULL);
    CHECK_EQ(pstk__cache_begin(&second, c.cache, &key, 100, &c.f.err), 0);
    pstk__cache_abort(&second);
    close_cached(&c);
}

/* As the message of one who waits in vain advises. */
TEST(a_maker_whose_file_was_removed_leaves_the_next_ones_alone)
{
    struct cached c;
    struct pstk__cache_writer *first, *second;
    const struct pstk__cache_key key = key_of(0);
    CHECK_EQ(open_cached(&c, PLENTY), 0);
    for (int is_committed = 0; is_committed < 2; is_committed++) {
        CHECK_EQ(pstk__cache_begin(&first, c.cache, &key, 70000, &c.f.err), 0);
        CHECK_EQ(append_bytes(first, 0, 60000, 5000, &c.f.err), 0);
        CHECK_EQ(unlink(path_of(&c.f, 0, ".tmp")), 0);
        CHECK_EQ(pstk__cache_begin(&second, c.cache, &key, 70000, &c.f.err), 0);
        CHECK_EQ(append_bytes(second, 0, 50000, 5000, &c.f.err), 0);
        if (is_committed)
            CHECK_EQ(pstk__cache_commit(&first, &c.f.err), PSTK_EBUSY);
        else
            pstk__cache_abort(&first);
        CHECK(first == NULL && lies_at(path_of(&c.f, 0, ".tmp")));
        CHECK_EQ(append_bytes(second, 0, 0, 5000, &c.f.err), 0);
        CHECK_EQ(pstk__cache_commit(&second, &c.f.err), 0);
        CHECK_EQ(has(c.cache, 0, 50000), 1);
        pstk__cache_drop(c.cache, &key, NULL);
    }
    close_cached(&c);
}

TEST(entries_that_are_made_are_in_motion)
{
    struct cached c;
    struct pstk__cache_writer *writer;
    const struct pstk__cache_key key = key_of(0);
    CHECK_EQ(open_cached(&c, PLENTY), 0);
    CHECK_EQ(make(c.cache, 1, 1000, &c.f.err), 0);
    const uint64_t none = pstk__cache_motion(c.cache);
    CHECK_EQ(pstk__cache_begin(&writer, c.cache, &key, 20 << 20, &c.f.err), 0);
    const uint64_t begun = pstk__cache_motion(c.cache);
    CHECK_EQ(pstk__cache_motion(c.cache), begun);
    CHECK_EQ(append_bytes(writer, 0, 9 << 20, 1 << 16, &c.f.err), 0);
    const uint64_t noted = pstk__cache_motion(c.cache);
    CHECK_EQ(pstk__cache_commit(&writer, &c.f.err), 0);
    CHECK(begun != none && noted != begun && pstk__cache_motion(c.cache) != noted);
    close_cached(&c);
}

/* A child begins entry i, writes, and is killed. */
static void kill_a_maker(struct cached *c, uint32_t i)
{
    int ready[2];
    if (pipe(ready) < 0)
        abort();
    const pid_t child = fork();
    if (child == 0) {
        struct pstk__cache_writer *writer;
        const struct pstk__cache_key key = key_of(i);
        if (pstk__cache_begin(&writer, c->cache, &key, 70000, NULL) < 0 ||
            append_bytes(writer, i, 50000, 5000, NULL) < 0 || write(ready[1], "", 1) != 1)
            _exit(1);
        pause();
    }
    char byte;
    if (read(ready[0], &byte, 1) != 1)
        abort();
    kill(child, SIGKILL);
    status_of(child);
    close(ready[0]);
    close(ready[1]);
}

TEST(a_killed_maker_leaves_nothing_that_lasts)
{
    struct cached c;
    struct pstk__cache *again;
    CHECK_EQ(open_cached(&c, 100000), 0);
    kill_a_maker(&c, 0);
    CHECK(lies_at(path_of(&c.f, 0, ".tmp")));
    CHECK_EQ(has(c.cache, 0, 50000), 0);
    c.cache->max_bytes = PLENTY;                    /* nothing is counted anew */
    CHECK_EQ(make(c.cache, 0, 60000, &c.f.err), 0); /* takes over */
    CHECK_EQ(has(c.cache, 0, 60000), 1);
    c.cache->max_bytes = 100000;
    struct pstk__cache_ledger ledger;
    CHECK_EQ(pstk__cache_lock(c.cache, 0, &ledger), 0);
    CHECK_EQ(ledger.bytes, pstk__cache_file_size(60000)); /* what was left does not count */
    pstk__cache_unlock(&ledger);
    kill_a_maker(&c, 1);
    CHECK_EQ(make(c.cache, 2, 80000, &c.f.err), 0); /* its room is free */
    CHECK(!lies_at(path_of(&c.f, 1, ".tmp")));
    kill_a_maker(&c, 3);
    CHECK_EQ(pstk__cache_open(&again, fixture_path(&c.f, "c"), PLENTY, &c.f.err), 0);
    CHECK(!lies_at(path_of(&c.f, 3, ".tmp")));
    pstk__cache_close(again);
    close_cached(&c);
}

TEST(a_living_makers_file_is_not_removed)
{
    struct cached c;
    struct pstk__cache *again;
    struct pstk__cache_writer *writer;
    const struct pstk__cache_key key = key_of(0);
    CHECK_EQ(open_cached(&c, 100000), 0);
    CHECK_EQ(pstk__cache_begin(&writer, c.cache, &key, 50000, &c.f.err), 0);
    CHECK_EQ(pstk__cache_open(&again, fixture_path(&c.f, "c"), 100000, &c.f.err), 0);
    CHECK(lies_at(path_of(&c.f, 0, ".tmp")));
    CHECK_EQ(make(again, 1, 60000, &c.f.err), PSTK_EBUSY); /* counts all files */
    CHECK(lies_at(path_of(&c.f, 0, ".tmp")));
    pstk__cache_close(again);
    CHECK_EQ(append_bytes(writer, 0, 50000, 4096, &c.f.err), 0);
    CHECK_EQ(pstk__cache_commit(&writer, &c.f.err), 0);
    CHECK_EQ(has(c.cache, 0, 50000), 1);
    close_cached(&c);
}

/* Make the entry or wait until another has. Returns 1: this process made it; 0: another; -1. */
static int get(struct pstk__cache *cache, uint32_t i, uint64_t size)
{
    for (uint32_t naps = 0;;) {
        const int found = has(cache, i, size);
        if (found)
            return found < 0 ? -1 : 0;
        const int r = make(cache, i, size, NULL);
        if (r != PSTK_EBUSY)
            return r < 0 ? -1 : 1;
        if (!test_nap(naps++))
            return -1;
    }
}

TEST(of_processes_that_want_one_entry_one_makes_it)
{
    enum { N = 6 };
    struct cached c;
    pid_t children[N];
    int n_made = 0;
    CHECK_EQ(open_cached(&c, PLENTY), 0);
    for (int k = 0; k < N; k++)
        if ((children[k] = fork()) == 0) {
            struct pstk__cache *own;
            int made = 0;
            if (pstk__cache_open(&own, fixture_path(&c.f, "c"), PLENTY, NULL) < 0)
                _exit(100);
            for (uint32_t i = 0; i < 8; i++) {
                const int r = get(own, i, 300000);
                if (r < 0)
                    _exit(101);
                made += r;
            }
            _exit(made);
        }
    for (int k = 0; k < N; k++)
        n_made += status_of(children[k]);
    CHECK_EQ(n_made, 8);
    close_cached(&c);
}

/* Under the lock: no file comes or goes. */
static int is_within(struct pstk__cache *cache)
{
    struct pstk__cache_ledger ledger;
    struct pstk__cache_sum sum;
    if (pstk__cache_lock(cache, PSTK__CACHE_PATIENCE_NS, &ledger) < 0)
        return 0;
    const int r = pstk__cache_survey(cache, &sum);
    const uint64_t bytes = sum.bytes + sum.writing_bytes;
    const int is = r == 0 && bytes <= cache->max_bytes &&
                   (ledger.bytes == UINT64_MAX || ledger.bytes >= bytes);
    if (!is)
        printf("# %llu bytes, %llu counted, %llu at most\n", (unsigned long long)bytes,
               (unsigned long long)ledger.bytes, (unsigned long long)cache->max_bytes);
    pstk__cache_unlock(&ledger);
    return is;
}

/* What a child does: makes, finds, drops and gives up entries by chance. */
static int use_by_chance(struct cached *c, uint32_t seed, uint64_t max_bytes)
{
    struct pstk__cache *own;
    if (pstk__cache_open(&own, fixture_path(&c->f, "c"), max_bytes, NULL) < 0)
        return 1;
    for (int turn = 0; turn < 80; turn++) {
        seed = seed * 1664525u + 1013904223u;
        const uint32_t i = seed >> 8 & 31;
        const uint64_t size = i * 4000 + 1;
        const struct pstk__cache_key key = key_of(i);
        struct pstk__cache_writer *writer;
        const int found = has(own, i, size);
        if (found < 0)
            return 2;
        if (found && seed >> 28 == 0)
            pstk__cache_drop(own, &key, NULL);
        if (found || pstk__cache_begin(&writer, own, &key, size + 9000, NULL) < 0)
            continue;
        if (append_bytes(writer, i, size, 1 << 16, NULL) < 0)
            return 3;
        if (seed >> 28 == 1)
            pstk__cache_abort(&writer);
        else if (seed >> 28 == 2)
            raise(SIGKILL);
        else if (pstk__cache_commit(&writer, NULL) < 0)
            return 4;
    }
    pstk__cache_close(own);
    return 0;
}

TEST(processes_that_write_at_once_stay_within_the_limit)
{
    enum { N = 4 };
    const uint64_t max_bytes = 700000;
    struct cached c;
    pid_t children[N];
    uint32_t seed = 1, n_running = N;
    CHECK_EQ(open_cached(&c, max_bytes), 0);
    for (uint32_t k = 0; k < N; k++)
        if ((children[k] = fork()) == 0)
            _exit(use_by_chance(&c, seed + k, max_bytes));
    for (uint32_t turn = 0; n_running;) {
        CHECK(is_within(c.cache));
        for (uint32_t k = 0; k < N; k++) {
            int status;
            if (!children[k] || waitpid(children[k], &status, WNOHANG) != children[k])
                continue;
            children[k] = 0;
            n_running--;
            CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
            if (WIFSIGNALED(status) && turn++ < 15) { /* another comes in its place */
                n_running++;
                seed += N;
                if ((children[k] = fork()) == 0)
                    _exit(use_by_chance(&c, seed + k, max_bytes));
            }
        }
    }
    CHECK(is_within(c.cache));
    close_cached(&c);
}

/* ---- refusals -------------------------------------------------------------------------------- */

TEST(a_link_in_the_place_of_an_entry_is_none)
{
    struct cached c;
    CHECK_EQ(open_cached(&c, PLENTY), 0);
    CHECK_EQ(make(c.cache, 0, 100, &c.f.err), 0);
    CHECK_EQ(rename(path_of(&c.f, 0, ""), fixture_path(&c.f, "elsewhere")), 0);
    CHECK_EQ(symlink(fixture_path(&c.f, "elsewhere"), path_of(&c.f, 0, "")), 0);
    CHECK_EQ(has(c.cache, 0, 100), 0);
    CHECK(!lies_at(path_of(&c.f, 0, "")) && lies_at(fixture_path(&c.f, "elsewhere")));
    CHECK_EQ(symlink(fixture_path(&c.f, "elsewhere"), path_of(&c.f, 1, ".tmp")), 0);
    CHECK(make(c.cache, 1, 100, &c.f.err) < 0);
    CHECK_EQ(mkfifo(path_of(&c.f, 2, ""), 0600), 0); /* nobody waits for its other end */
    CHECK_EQ(has(c.cache, 2, 100), 0);
    close_cached(&c);
}

TEST(a_folder_that_is_a_link_or_that_others_write_to_is_refused)
{
    struct cached c;
    struct pstk__cache *cache;
    CHECK_EQ(open_cached(&c, PLENTY), 0);
    CHECK_EQ(chmod(fixture_path(&c.f, "c/entries"), 0770), 0);
    CHECK_EQ(pstk__cache_open(&cache, fixture_path(&c.f, "c"), 1, &c.f.err), PSTK_EPERM);
    CHECK(cache == NULL && strstr(c.f.err.message, "chmod go-w"));
    CHECK_EQ(mkdir(fixture_path(&c.f, "d"), 0700), 0);
    CHECK_EQ(symlink(fixture_path(&c.f, "c/entries"), fixture_path(&c.f, "d/entries")), 0);
    CHECK_EQ(pstk__cache_open(&cache, fixture_path(&c.f, "d"), 1, &c.f.err), PSTK_ENOENT);
    CHECK(cache == NULL && strstr(c.f.err.message, "no link"));
    store_bytes(fixture_path(&c.f, "file"), (const uint8_t *)"", 0);
    CHECK(pstk__cache_open(&cache, fixture_path(&c.f, "file"), 1, &c.f.err) < 0);
    CHECK(strstr(c.f.err.message, "cache_path"));
    close_cached(&c);
}

TEST(an_entry_that_others_may_write_to_is_none)
{
    struct cached c;
    CHECK_EQ(open_cached(&c, PLENTY), 0);
    CHECK_EQ(make(c.cache, 0, 100, &c.f.err), 0);
    CHECK_EQ(chmod(path_of(&c.f, 0, ""), 0666), 0);
    CHECK_EQ(has(c.cache, 0, 100), 0);
    close_cached(&c);
}

TEST(entries_are_for_their_owner_alone)
{
    struct cached c;
    struct stat folder, entry;
    CHECK_EQ(open_cached(&c, PLENTY), 0);
    CHECK_EQ(make(c.cache, 0, 100, &c.f.err), 0);
    CHECK_EQ(stat(fixture_path(&c.f, "c/entries"), &folder), 0);
    CHECK_EQ(stat(path_of(&c.f, 0, ""), &entry), 0);
    CHECK((folder.st_mode & 077) == 0 && (entry.st_mode & 077) == 0);
    close_cached(&c);
}

/* In a child that is not root. Returns what `see` does, or 100. */
static int as_nobody(int (*see)(struct cached *c), struct cached *c)
{
    const pid_t child = fork();
    if (child == 0)
        _exit(geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0) ? 100 : see(c));
    return status_of(child);
}

static int make_under_umask(struct cached *c)
{
    struct pstk__cache *cache;
    if (pstk__cache_open(&cache, fixture_path(&c->f, "own/c"), PLENTY, &c->f.err) < 0)
        return 1;
    umask(0777);
    return make(cache, 0, 100, &c->f.err) < 0 || has(cache, 0, 100) != 1 ||
           make(cache, 1, 100, &c->f.err) < 0;
}

TEST(an_umask_hides_no_entry_from_its_owner)
{
    struct cached c;
    CHECK_EQ(open_cached(&c, PLENTY), 0);
    CHECK_EQ(chmod(c.f.dir, 0755), 0);
    CHECK_EQ(mkdir(fixture_path(&c.f, "own"), 0700), 0);
    CHECK_EQ(chmod(fixture_path(&c.f, "own"), 0777), 0);
    CHECK_EQ(as_nobody(make_under_umask, &c), 0);
    close_cached(&c);
}

TEST(another_users_folder_is_refused_and_entry_is_none)
{
    struct cached c;
    struct pstk__cache *cache;
    if (geteuid() != 0)
        SKIP("needs root, to give files away");
    CHECK_EQ(open_cached(&c, PLENTY), 0);
    CHECK_EQ(make(c.cache, 0, 100, &c.f.err), 0);
    CHECK_EQ(chown(path_of(&c.f, 0, ""), 1234, 1234), 0);
    CHECK_EQ(has(c.cache, 0, 100), 0);
    CHECK(!lies_at(path_of(&c.f, 0, "")));
    CHECK_EQ(chown(fixture_path(&c.f, "c/entries"), 1234, 1234), 0);
    CHECK_EQ(pstk__cache_open(&cache, fixture_path(&c.f, "c"), 1, &c.f.err), PSTK_EPERM);
    CHECK(strstr(c.f.err.message, "1234") && strstr(c.f.err.message, "cache_path"));
    close_cached(&c);
}

/* What root keeps for all is read by others; they cannot add to it. */
static int see_roots(struct cached *c)
{
    struct pstk__cache *cache;
    if (pstk__cache_open(&cache, fixture_path(&c->f, "c"), PLENTY, &c->f.err) < 0)
        return 1;
    if (has(cache, 0, 100) != 1)
        return 2;
    if (make(cache, 1, 100, &c->f.err) != PSTK_EACCES || !strstr(c->f.err.message, "cache_path"))
        return 3;
    return 0;
}

TEST(a_folder_that_cannot_be_written_to_is_read)
{
    struct cached c;
    CHECK_EQ(open_cached(&c, PLENTY), 0);
    CHECK_EQ(make(c.cache, 0, 100, &c.f.err), 0);
    CHECK_EQ(chmod(c.f.dir, 0755), 0);
    CHECK_EQ(chmod(path_of(&c.f, 0, ""), 0444), 0);
    CHECK_EQ(chmod(fixture_path(&c.f, "c/entries/lock"), 0444), 0);
    CHECK_EQ(chmod(fixture_path(&c.f, "c/entries"), 0555), 0);
    CHECK_EQ(as_nobody(see_roots, &c), 0);
    CHECK_EQ(chmod(fixture_path(&c.f, "c/entries"), 0755), 0);
    close_cached(&c);
}

static int see_no_folder(struct cached *c)
{
    struct pstk__cache *cache;
    const int r = pstk__cache_open(&cache, fixture_path(&c->f, "locked/c"), PLENTY, &c->f.err);
    return r != PSTK_EACCES || cache || !strstr(c->f.err.message, "cache_path");
}

TEST(a_folder_that_cannot_be_made_is_refused)
{
    struct cached c;
    CHECK_EQ(open_cached(&c, PLENTY), 0);
    CHECK_EQ(chmod(c.f.dir, 0755), 0);
    CHECK_EQ(mkdir(fixture_path(&c.f, "locked"), 0555), 0);
    CHECK_EQ(as_nobody(see_no_folder, &c), 0);
    close_cached(&c);
}

/* ---- threads --------------------------------------------------------------------------------- */

#define N_KEYS 12
static struct pstk__cache *shared;

static void *use_shared(void *user)
{
    uint8_t bytes[39000];
    uint32_t seed = (uint32_t)(uintptr_t)user;
    for (int turn = 0; turn < 300; turn++) {
        seed = seed * 1664525u + 1013904223u;
        const uint32_t i = (seed >> 8) % N_KEYS;
        const struct pstk__cache_key key = key_of(i);
        struct pstk__file file;
        struct pstk__cache_writer *writer;
        if (pstk__cache_find(shared, &key, &file)) {
            const uint64_t at = seed % 30000;
            const int64_t n = pstk__file_read(&file, bytes, 9000, at);
            for (int64_t k = 0; k < n; k++)
                if (bytes[k] != byte_of(i, at + (uint64_t)k))
                    return (void *)1;
            pstk__file_end(&file);
            if (n != 9000)
                return (void *)2;
        } else if (pstk__cache_begin(&writer, shared, &key, 39000, NULL) == 0) {
            for (uint64_t k = 0; k < 39000; k++)
                bytes[k] = byte_of(i, k);
            if (pstk__cache_append(writer, bytes, 39000, NULL) < 0 ||
                pstk__cache_commit(&writer, NULL) < 0)
                return (void *)3;
        }
    }
    return NULL;
}

TEST(threads_find_read_and_make_at_once)
{
    struct cached c;
    pthread_t threads[4];
    CHECK_EQ(open_cached(&c, 8 * pstk__cache_file_size(39000)), 0);
    shared = c.cache;
    for (uintptr_t k = 0; k < 4; k++)
        CHECK_EQ(pthread_create(&threads[k], NULL, use_shared, (void *)(k + 1)), 0);
    for (int k = 0; k < 4; k++) {
        void *result;
        CHECK_EQ(pthread_join(threads[k], &result), 0);
        CHECK_EQ((intptr_t)result, 0);
    }
    CHECK(is_within(c.cache));
    close_cached(&c);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(what_was_written_comes_back_from_any_offset),
        CASE(parts_of_any_size_make_the_same_entry),
        CASE(more_bytes_than_announced_are_refused),
        CASE(each_part_of_a_key_tells_entries_apart),
        CASE(the_time_of_an_entry_is_that_of_its_key),
        CASE(a_key_that_is_too_long_is_refused),
        CASE(every_flipped_byte_of_header_and_table_makes_an_entry_none),
        CASE(an_entry_that_is_cut_or_longer_is_none),
        CASE(flipped_data_fails_the_reads_of_its_block_alone),
        CASE(blocks_that_have_changed_places_are_seen),
        CASE(two_keys_of_one_name_are_told_apart),
        CASE(what_was_used_least_recently_leaves_first),
        CASE(an_entry_is_marked_as_used_once_a_minute),
        CASE(an_open_entry_that_leaves_stays_readable),
        CASE(what_is_larger_than_the_cache_is_refused_and_nothing_leaves),
        CASE(what_others_write_has_its_room),
        CASE(a_damaged_sum_is_counted_anew),
        CASE(half_of_the_free_bytes_is_the_size_if_none_is_set),
        CASE(one_maker_at_a_time),
        CASE(a_maker_whose_file_was_removed_leaves_the_next_ones_alone),
        CASE(entries_that_are_made_are_in_motion),
        CASE(a_killed_maker_leaves_nothing_that_lasts),
        CASE(a_living_makers_file_is_not_removed),
        CASE(of_processes_that_want_one_entry_one_makes_it),
        CASE(processes_that_write_at_once_stay_within_the_limit),
        CASE(a_link_in_the_place_of_an_entry_is_none),
        CASE(a_folder_that_is_a_link_or_that_others_write_to_is_refused),
        CASE(an_entry_that_others_may_write_to_is_none),
        CASE(entries_are_for_their_owner_alone),
        CASE(an_umask_hides_no_entry_from_its_owner),
        CASE(another_users_folder_is_refused_and_entry_is_none),
        CASE(a_folder_that_cannot_be_written_to_is_read),
        CASE(a_folder_that_cannot_be_made_is_refused),
        CASE(threads_find_read_and_make_at_once),
    };
    return RUN_CASES(cases);
}
