/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed files read through the store are the bytes that were compressed, wherever one reads.
 */
#include "store/unpack/unpack.h"

#include "store/cache/entry.h"
#include "store/unpack/input.h"
#include "store/unpack/access_points.h"
#include "store/unpack/table.h"
#include "support/test.h"
#include "unpack_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

/* One file, opened through the store. */
struct opened {
    struct pstk__unpack *unpack;
    struct pstk__file file;
};

static int open_one(struct opened *opened, struct fixture *f, const char *name,
                    const struct packed_bytes *packed, const char *cache)
{
    packed_write(fixture_path(f, name), packed->data, packed->size);
    *opened = (struct opened){.file = {.fd = -1}};
    int r = unpack_open_names(&opened->unpack, f->dir, &name, 1, cache, &f->err);
    if (r == 0 && opened->unpack) {
        const struct pstk__store *store = pstk__unpack_store(opened->unpack);
        r = store->open(store, &opened->file, fixture_path(f, name));
    }
    return r;
}

static void close_one(struct opened *opened)
{
    pstk__file_end(&opened->file);
    pstk__unpack_close(opened->unpack);
}

static uint64_t next(uint64_t *x)
{
    *x ^= *x << 13, *x ^= *x >> 7, *x ^= *x << 17;
    return *x;
}

/* Reads at n random places, some past the end, and one through all, are those of the plain bytes.
 */
static int reads_as(const struct pstk__file *file, const uint8_t *plain, uint64_t size,
                    uint64_t seed, int n)
{
    uint8_t *buffer = malloc(size + 1);
    uint64_t x = seed + 88172645463325252ull, has_size;
    int64_t changed_ns;
    int ok = file->store->stat(file, &has_size, &changed_ns) == 0 && has_size == size;
    for (int i = 0; ok && i < n; i++) {
        const uint64_t offset = next(&x) % (size + 100);
        const uint64_t most = i % 4 ? 3000 : 400000;
        const uint64_t want = 1 + next(&x) % (size + 1 < most ? size + 1 : most);
        const uint64_t there = offset >= size ? 0 : size - offset < want ? size - offset : want;
        ok = pstk__file_read(file, buffer, want, offset) == (int64_t)there &&
             (there == 0 || memcmp(buffer, plain + offset, there) == 0);
    }
    ok = ok && pstk__file_read(file, buffer, size + 1, 0) == (int64_t)size &&
         (size == 0 || memcmp(buffer, plain, size) == 0);
    free(buffer);
    return ok;
}

TEST(gzip_of_every_level_and_strategy_reads_as_the_plain_bytes)
{
    const uint64_t size = 3500000;
    uint8_t *plain = plain_bytes(size, 1);
    const int strategies[] = {Z_DEFAULT_STRATEGY, Z_FILTERED, Z_HUFFMAN_ONLY, Z_RLE, Z_FIXED};
    for (int k = 0; k < 14; k += (int)test_stride(1, 7)) { /* one thread: little for TSan */
        struct fixture f;
        struct opened opened;
        struct packed_bytes packed = {0};
        fixture_open(&f);
        packed_gzip(&packed, plain, size, k < 10 ? k : 6, k < 10 ? 0 : strategies[k - 9]);
        CHECK_EQ(open_one(&opened, &f, "x.gz", &packed, NULL), 0);
        CHECK(reads_as(&opened.file, plain, size, (uint64_t)k, 25));
        close_one(&opened);
        free(packed.data);
        fixture_close(&f);
    }
    free(plain);
}

TEST(blocks_of_many_megabytes_are_read_through)
{
    const uint64_t size = 40u << 20; /* zeros: one block of it unpacks to more than a buffer has */
    uint8_t *plain = calloc(size, 1);
    memset(plain + (35u << 20), 7, 1000);
    struct fixture f;
    struct opened opened;
    struct packed_bytes packed = {0};
    fixture_open(&f);
    packed_gzip(&packed, plain, size, 9, 0);
    CHECK(packed.size < 100000);
    CHECK_EQ(open_one(&opened, &f, "x.gz", &packed, NULL), 0);
    CHECK(reads_as(&opened.file, plain, size, 3, 30));
    close_one(&opened);
    free(packed.data);
    free(plain);
    fixture_close(&f);
}

TEST(members_of_any_size_and_empty_ones_are_one_file)
{
    const uint64_t size = 3000000;
    uint8_t *plain = plain_bytes(size, 5);
    for (uint64_t step = 1000 * test_stride(1, 49); step < 2 * size; step *= 7) {
        struct fixture f;
        struct opened opened;
        struct packed_bytes packed = {0};
        fixture_open(&f);
        for (uint64_t at = 0; at < size; at += step) {
            packed_gzip(&packed, plain + at, size - at < step ? size - at : step, 6, 0);
            packed_gzip(&packed, plain, 0, 6, 0);
        }
        CHECK_EQ(open_one(&opened, &f, "x.gz", &packed, NULL), 0);
        CHECK(reads_as(&opened.file, plain, size, step, 25));
        close_one(&opened);
        free(packed.data);
        fixture_close(&f);
    }
    free(plain);
}

/* Frames of `step` bytes, with skippable ones between them, as a seek table is one. */
static void pack_frames(struct packed_bytes *packed, const uint8_t *plain, uint64_t size,
                        uint64_t step)
{
    const uint8_t skippable[] = {0x5e, 0x2a, 0x4d, 0x18, 5, 0, 0, 0, 1, 2, 3, 4, 5};
    for (uint64_t at = 0; at < size; at += step)
        packed_zstd(packed, plain + at, size - at < step ? size - at : step);
    packed_append(packed, skippable, sizeof skippable);
}

TEST(zstd_of_many_frames_reads_as_the_plain_bytes)
{
    const uint64_t size = 9u << 20;
    uint8_t *plain = plain_bytes(size, 9);
    for (uint64_t step = 100000; step < 8u << 20; step *= 4) {
        struct fixture f;
        struct opened opened;
        struct packed_bytes packed = {0};
        fixture_open(&f);
        pack_frames(&packed, plain, size, step);
        CHECK_EQ(open_one(&opened, &f, "x.zst", &packed, NULL), 0);
        CHECK_STR(pstk__unpack_name(opened.unpack), "zstd");
        CHECK(reads_as(&opened.file, plain, size, step, 25));
        close_one(&opened);
        free(packed.data);
        fixture_close(&f);
    }
    free(plain);
}

TEST(a_large_zstd_frame_is_unpacked_into_the_cache_or_refused_with_what_to_do)
{
    const uint64_t size = 20u << 20;
    uint8_t *plain = plain_bytes(size, 11);
    struct fixture f;
    struct opened opened;
    struct packed_bytes packed = {0};
    fixture_open(&f);
    packed_zstd(&packed, plain, size);
    CHECK_EQ(open_one(&opened, &f, "x.zst", &packed, NULL), PSTK_ENOTSUP);
    CHECK(strstr(f.err.message, "set cache_path") && strstr(f.err.message, "x.zst"));
    char cache[300];
    snprintf(cache, sizeof cache, "%s/cache", f.dir);
    for (int k = 0; k < 2; k++) {
        CHECK_EQ(open_one(&opened, &f, "x.zst", &packed, cache), 0);
        CHECK(reads_as(&opened.file, plain, size, 13, 40));
        close_one(&opened);
    }
    free(packed.data);
    free(plain);
    fixture_close(&f);
}

/* Four threads at random places of two files. */
struct reading {
    const struct pstk__file *files;
    uint8_t *const *plain;
    uint64_t size, seed;
    int ok;
};

static void *read_some(void *arg)
{
    struct reading *reading = arg;
    uint64_t x = reading->seed;
    uint8_t *buffer = malloc(300000);
    reading->ok = 1;
    for (int i = 0; reading->ok && i < 120; i++) {
        const uint64_t k = next(&x) & 1, offset = next(&x) % (reading->size - 300000);
        const uint64_t want = 1 + next(&x) % (i % 3 ? 5000 : 300000);
        reading->ok = pstk__file_read(&reading->files[k], buffer, want, offset) == (int64_t)want &&
                      memcmp(buffer, reading->plain[k] + offset, want) == 0;
    }
    free(buffer);
    return NULL;
}

TEST(four_threads_at_once_get_the_bytes)
{
    const char *const names[] = {"a.gz", "b.zst"};
    const uint64_t size = 6u << 20;
    uint8_t *const plain[] = {plain_bytes(size, 1), plain_bytes(size, 2)};
    struct packed_bytes packed[2] = {{0}};
    struct pstk__unpack *unpack;
    struct pstk__file files[2];
    struct fixture f;
    struct reading readings[4];
    pthread_t threads[4];
    fixture_open(&f);
    packed_gzip(&packed[0], plain[0], size, 6, 0);
    pack_frames(&packed[1], plain[1], size, 1u << 20);
    for (int i = 0; i < 2; i++)
        packed_write(fixture_path(&f, names[i]), packed[i].data, packed[i].size);
    CHECK_EQ(unpack_open_names(&unpack, f.dir, names, 2, NULL, &f.err), 0);
    const struct pstk__store *store = pstk__unpack_store(unpack);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(store->open(store, &files[i], fixture_path(&f, names[i])), 0);
    for (uint64_t i = 0; i < 4; i++) {
        readings[i] = (struct reading){files, plain, size, 77 + i, 0};
        CHECK_EQ(pthread_create(&threads[i], NULL, read_some, &readings[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++)
        CHECK(readings[i].ok);
    for (int i = 0; i < 2; i++) {
        pstk__file_end(&files[i]);
        free(packed[i].data);
        free(plain[i]);
    }
    pstk__unpack_close(unpack);
    fixture_close(&f);
}

TEST(every_flipped_bit_and_every_cut_of_a_small_file_is_refused)
{
    uint8_t *plain = plain_bytes(700, 3);
    struct packed_bytes packed = {0};
    struct opened opened;
    struct fixture f;
    int n_same = 0;
    fixture_open(&f);
    packed_gzip(&packed, plain, 700, 6, 0);
    for (size_t bit = 0; bit < 8 * packed.size; bit += test_stride(1, 11)) {
        /* Nothing checks a member's time, level, system, and flag of text. */
        if (bit == 24 || (bit / 8 >= 4 && bit / 8 < 10))
            continue;
        packed.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        /* Two files of one size in one tick of the clock are taken for the same. */
        fixture_remove(fixture_path(&f, ".penstock"));
        const int r = open_one(&opened, &f, "x.gz", &packed, NULL);
        /* A copy from another place may give the same bytes. */
        const int is_same = r == 0 && reads_as(&opened.file, plain, 700, 1, 1);
        close_one(&opened);
        packed.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        CHECK(r == PSTK_EBADMSG || is_same);
        CHECK(is_same || (strstr(f.err.message, "byte ") && strstr(f.err.message, "x.gz")));
        n_same += is_same;
    }
    CHECK(n_same < 10); /* among them the bits that fill the last byte of the last block */
    for (size_t size = 0; size < packed.size; size++) {
        const struct packed_bytes cut = {.data = packed.data, .size = size};
        const int r = open_one(&opened, &f, "x.gz", &cut, NULL);
        close_one(&opened);
        CHECK_EQ(r, PSTK_EBADMSG);
    }
    free(packed.data);
    free(plain);
    fixture_close(&f);
}

static int64_t read_at_most_100(const struct pstk__file *file, void *buffer, uint64_t size,
                                uint64_t offset)
{
    const uint64_t left = offset < 100 ? 100 - offset : 0;
    return pstk__store_local.read_at(file, buffer, size < left ? size : left, offset);
}

/* Open the file at `path` as it is now, and read it to its end. 0, or a result of _open or _more.
 */
static int read_input(struct pstk__unpack_input *input, const struct pstk__store *store,
                      const char *path, uint8_t *buffer)
{
    struct pstk__store_entry entry;
    pstk__store_local.look(&pstk__store_local, path, &entry);
    *input = (struct pstk__unpack_input){.path = path,
                                         .name = "x",
                                         .packing = "gzip",
                                         .size = entry.size,
                                         .changed_ns = entry.changed_ns,
                                         .file = {.fd = -1},
                                         .buffer = buffer};
    int r = pstk__unpack_input_open(input, store, NULL);
    if (r == 0)
        while ((r = pstk__unpack_input_more(input, NULL)) > 0)
            input->io.n_in = 0;
    return r;
}

TEST(a_file_that_is_cut_or_replaced_while_it_is_read_is_refused)
{
    const size_t size = PSTK__UNPACK_READ + 500;
    uint8_t *bytes = plain_bytes(size, 4), *buffer = malloc(PSTK__UNPACK_READ);
    struct pstk__store cutting = pstk__store_local;
    struct pstk__unpack_input input;
    struct fixture f;
    char sizes[200];
    fixture_open(&f);
    const char *path = fixture_path(&f, "x");
    cutting.read_at = read_at_most_100;
    packed_write(path, bytes, size);
    CHECK_EQ(read_input(&input, &pstk__store_local, path, buffer), 0);
    CHECK(input.n_read == size && pstk__unpack_input_end(&input, &f.err) == 0);
    packed_write(path, bytes, size - 1);
    CHECK_EQ(pstk__unpack_input_end(&input, &f.err), PSTK_EBADMSG);
    snprintf(
        sizes, sizeof sizes,
        "was changed or replaced since the data set was opened: it has %zu bytes, and had %zu:",
        size - 1, size);
    CHECK(strstr(f.err.message, sizes));
    pstk__file_end(&input.file);
    CHECK_EQ(read_input(&input, &cutting, path, buffer), 0);
    CHECK_EQ(pstk__unpack_input_end(&input, &f.err), PSTK_EBADMSG);
    CHECK(strstr(f.err.message, "byte 100 of the gzip file: the file ends here: it was cut"));
    pstk__file_end(&input.file);
    free(buffer);
    free(bytes);
    fixture_close(&f);
}

TEST(every_flipped_bit_of_a_points_file_gives_the_bytes_or_an_error)
{
    const uint64_t size = 1300000;
    uint8_t *plain = plain_bytes(size, 21), *buffer = malloc(size);
    struct packed_bytes packed = {0};
    struct opened opened;
    struct fixture f;
    char name[400] = "", text[PSTK__WHY];
    fixture_open(&f);
    packed_gzip(&packed, plain, size, 6, 0);
    CHECK_EQ(open_one(&opened, &f, "x.gz", &packed, NULL), 0);
    close_one(&opened);
    DIR *folder = opendir(fixture_path(&f, ".penstock"));
    const struct dirent *entry;
    while ((entry = readdir(folder)))
        if (strstr(entry->d_name, ".points"))
            snprintf(name, sizeof name, "%s/.penstock/%.100s", f.dir, entry->d_name);
    closedir(folder);
    const int fd = open(name, O_RDWR);
    const uint64_t n = (uint64_t)lseek(fd, 0, SEEK_END);
    int n_seen = 0;
    for (uint64_t at = 0; at < n; at += at < 100 || at + 700 > n ? 1 : 997) {
        uint8_t was, is;
        CHECK(pread(fd, &was, 1, (off_t)at) == 1);
        is = was ^ (uint8_t)(1 << at % 8);
        CHECK(pwrite(fd, &is, 1, (off_t)at) == 1);
        const char *const names[] = {"x.gz"};
        CHECK_EQ(unpack_open_names(&opened.unpack, f.dir, names, 1, NULL, &f.err), 0);
        const struct pstk__store *store = pstk__unpack_store(opened.unpack);
        CHECK_EQ(store->open(store, &opened.file, fixture_path(&f, "x.gz")), 0);
        const int64_t r = pstk__file_read(&opened.file, buffer, size, 0);
        CHECK(r == -EBADMSG || (r == (int64_t)size && memcmp(buffer, plain, size) == 0));
        n_seen += r < 0;
        CHECK(r > 0 || strstr(pstk__file_why(&opened.file, EBADMSG, text), name));
        close_one(&opened);
        CHECK(pwrite(fd, &was, 1, (off_t)at) == 1);
    }
    CHECK(n_seen > 200);
    close(fd);
    free(packed.data);
    free(plain);
    free(buffer);
    fixture_close(&f);
}

/* The table of one file that is unpacked as a whole, and the key of its entry. */
static void open_table(struct pstk__packed_files *table, struct pstk__cache_key *key,
                       struct fixture *f)
{
    static char path[4096];
    struct pstk__texts names = {0};
    struct pstk__file file;
    uint64_t size;
    int64_t changed_ns;
    snprintf(path, sizeof path, "%s", fixture_path(f, "x.zst"));
    CHECK_EQ(pstk__store_local.open(&pstk__store_local, &file, path), 0);
    CHECK_EQ(file.store->stat(&file, &size, &changed_ns), 0);
    pstk__file_end(&file);
    CHECK_EQ(pstk__texts_open(&names, 1, 64), 0);
    pstk__texts_add(&names, "x.zst", 5);
    const struct pstk__unpack_files files = {.store = &pstk__store_local,
                                             .folder = f->dir,
                                             .names = &names,
                                             .sizes = &size,
                                             .changed_ns = &changed_ns,
                                             .cache = f->dir,
                                             .format = "test"};
    CHECK_EQ(pstk__packed_open(table, &files, &f->err), 0);
    pstk__texts_close(&names);
    table->at[0].of.packing = 2;
    table->at[0].of.unpacked = 700;
    *key = (struct pstk__cache_key){
        .path = path, .made = "unpacked", .size = size, .changed_ns = changed_ns, .end = size};
}

static void *stop_table(void *user)
{
    struct pstk__packed_files *table = user;
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    atomic_store(&table->is_stopped, 1);
    return NULL;
}

TEST(waiting_for_an_entry_ends_where_its_maker_does_nothing_and_where_it_is_stopped)
{
    struct fixture f;
    struct pstk__packed_files table;
    struct pstk__cache_key key;
    struct pstk__cache *cache;
    struct pstk__cache_writer *writer;
    struct pstk__file file;
    struct packed_bytes packed = {0};
    pthread_t thread;
    uint8_t *plain = plain_bytes(700, 5);
    fixture_open(&f);
    packed_zstd(&packed, plain, 700);
    packed_write(fixture_path(&f, "x.zst"), packed.data, packed.size);
    open_table(&table, &key, &f);
    CHECK_EQ(pstk__cache_open(&cache, f.dir, 0, &f.err), 0);
    CHECK_EQ(pstk__cache_begin(&writer, cache, &key, 700, &f.err), 0);
    table.patience_ns = 30000000;
    CHECK_EQ(pstk__packed_entry(&table, 0, 0, &file, &f.err), PSTK_ETIMEDOUT);
    CHECK(strstr(f.err.message, "no progress") && strstr(f.err.message, ".tmp;") &&
          strstr(f.err.message, "x.zst"));
    table.patience_ns = 3600000000000u;
    CHECK_EQ(pthread_create(&thread, NULL, stop_table, &table), 0);
    CHECK_EQ(pstk__packed_entry(&table, 0, 0, &file, &f.err), PSTK_ECANCELED);
    pthread_join(thread, NULL);
    pstk__cache_abort(&writer);
    CHECK_EQ(pstk__packed_entry(&table, 0, 0, &file, &f.err), PSTK_ECANCELED);
    atomic_store(&table.is_stopped, 0);
    CHECK_EQ(pstk__packed_entry(&table, 0, 0, &file, &f.err), 0);
    CHECK(reads_as(&file, plain, 700, 3, 1));
    pstk__file_end(&file);
    pstk__cache_close(cache);
    pstk__packed_close(&table);
    free(packed.data);
    free(plain);
    fixture_close(&f);
}

/* Another entry that fills the cache, and is made slowly. */
struct slow {
    struct pstk__cache_writer *writer;
    int r;
};

static void *make_slowly(void *user)
{
    static const uint8_t bytes[1 << 20];
    struct slow *slow = user;
    for (int i = 0; i < 24 && slow->r == 0; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 60000000}, NULL);
        slow->r = pstk__cache_append(slow->writer, bytes, sizeof bytes, NULL);
    }
    if (slow->r == 0)
        slow->r = pstk__cache_commit(&slow->writer, NULL);
    return NULL;
}

TEST(waiting_for_room_lasts_as_long_as_others_make_progress)
{
    struct fixture f;
    struct pstk__packed_files table;
    struct pstk__cache_key key, other;
    struct pstk__cache *cache;
    struct slow slow = {0};
    struct pstk__file file;
    struct packed_bytes packed = {0};
    pthread_t thread;
    uint8_t *plain = plain_bytes(700, 5);
    fixture_open(&f);
    packed_zstd(&packed, plain, 700);
    packed_write(fixture_path(&f, "x.zst"), packed.data, packed.size);
    open_table(&table, &key, &f);
    table.cache_size = pstk__cache_file_size(24 << 20) + 1000; /* room for one of them */
    table.patience_ns = 90000000; /* ten times that: it has a note each 0.5 s, for 1.4 s */
    other = key;
    other.path = "/other";
    CHECK_EQ(pstk__cache_open(&cache, f.dir, table.cache_size, &f.err), 0);
    CHECK_EQ(pstk__cache_begin(&slow.writer, cache, &other, 24 << 20, &f.err), 0);
    CHECK_EQ(pthread_create(&thread, NULL, make_slowly, &slow), 0);
    CHECK_EQ(pstk__packed_entry(&table, 0, 0, &file, &f.err), 0);
    pthread_join(thread, NULL);
    CHECK_EQ(slow.r, 0);
    CHECK(reads_as(&file, plain, 700, 3, 1));
    pstk__file_end(&file);
    pstk__cache_drop(cache, &key, NULL);
    CHECK_EQ(pstk__cache_begin(&slow.writer, cache, &other, 24 << 20, &f.err), 0);
    CHECK_EQ(pstk__packed_entry(&table, 0, 0, &file, &f.err), PSTK_ETIMEDOUT);
    CHECK(strstr(f.err.message, "has no room"));
    pstk__cache_abort(&slow.writer);
    pstk__cache_close(cache);
    pstk__packed_close(&table);
    free(packed.data);
    free(plain);
    fixture_close(&f);
}

TEST(files_that_are_not_compressed_are_left_alone)
{
    struct fixture f;
    struct opened opened;
    const struct packed_bytes plain = {(uint8_t[]){1, 2, 3, 4, 5}, 5};
    fixture_open(&f);
    CHECK_EQ(open_one(&opened, &f, "x.tar", &plain, NULL), 0);
    CHECK(opened.unpack == NULL);
    CHECK(access(fixture_path(&f, ".penstock"), F_OK) < 0);
    fixture_close(&f);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(gzip_of_every_level_and_strategy_reads_as_the_plain_bytes),
        CASE(blocks_of_many_megabytes_are_read_through),
        CASE(members_of_any_size_and_empty_ones_are_one_file),
        CASE(zstd_of_many_frames_reads_as_the_plain_bytes),
        CASE(a_large_zstd_frame_is_unpacked_into_the_cache_or_refused_with_what_to_do),
        CASE(four_threads_at_once_get_the_bytes),
        CASE(every_flipped_bit_and_every_cut_of_a_small_file_is_refused),
        CASE(a_file_that_is_cut_or_replaced_while_it_is_read_is_refused),
        CASE(every_flipped_bit_of_a_points_file_gives_the_bytes_or_an_error),
        CASE(waiting_for_an_entry_ends_where_its_maker_does_nothing_and_where_it_is_stopped),
        CASE(waiting_for_room_lasts_as_long_as_others_make_progress),
        CASE(files_that_are_not_compressed_are_left_alone),
    };
    return RUN_CASES(cases);
}
