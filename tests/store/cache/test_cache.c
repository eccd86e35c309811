/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of entries: what is written comes back or is refused, and its size stays in its limit.
 */
#include "store/cache/cache_fixture.h"

#include <sys/statvfs.h>

/* ---- bytes ----------------------------------------------------------------------------------- */

TEST(written_bytes_are_read_back_from_any_offset)
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
    CHECK_EQ(ledger.bytes, pstk__cache_file_size(50)); /* the replaced entry does not count */
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

TEST(the_least_recently_used_entry_is_evicted_first)
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

TEST(an_entry_larger_than_the_cache_is_refused_and_evicts_nothing)
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

TEST(an_entry_being_written_reserves_its_room)
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
    CHECK(cache == NULL && strstr(c.f.err.message, "not a link to one"));
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

/* Others read the entries that root keeps for all, but cannot add any. */
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

int main(void)
{
    const struct test_case cases[] = {
        CASE(written_bytes_are_read_back_from_any_offset),
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
        CASE(the_least_recently_used_entry_is_evicted_first),
        CASE(an_entry_is_marked_as_used_once_a_minute),
        CASE(an_open_entry_that_leaves_stays_readable),
        CASE(an_entry_larger_than_the_cache_is_refused_and_evicts_nothing),
        CASE(an_entry_being_written_reserves_its_room),
        CASE(a_damaged_sum_is_counted_anew),
        CASE(half_of_the_free_bytes_is_the_size_if_none_is_set),
        CASE(a_link_in_the_place_of_an_entry_is_none),
        CASE(a_folder_that_is_a_link_or_that_others_write_to_is_refused),
        CASE(an_entry_that_others_may_write_to_is_none),
        CASE(entries_are_for_their_owner_alone),
        CASE(an_umask_hides_no_entry_from_its_owner),
        CASE(another_users_folder_is_refused_and_entry_is_none),
        CASE(a_folder_that_cannot_be_written_to_is_read),
        CASE(a_folder_that_cannot_be_made_is_refused),
    };
    return RUN_CASES(cases);
}
