/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums that verify keeps of data without any: every damaged byte of their file is seen, and a
 * full disk is no reason to have none. */
#include "dataset/checksums.h"
#include "dataset/numbered.h"
#include "support/faults.h"
#include "support/fixture.h"

#include "base/little.h"

#include <errno.h>
#include <sys/file.h>

#define N 2500 /* samples: three pages of checksums */

/* N numbers, as numpy.save writes them. */
static void write_array(const char *directory)
{
    char head[128], name[600];
    static int64_t rows[N];
    snprintf(name, sizeof name, "%s/l.npy", directory);
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    const int n = snprintf(head + 10, sizeof head - 10,
                           "{'descr': '<i8', 'fortran_order': False, 'shape': (%d,)}", N);
    head[10 + n] = ' ';
    head[127] = '\n';
    for (int i = 0; i < N; i++)
        rows[i] = i * 77;
    FILE *file = mkdir(directory, 0700) == 0 ? fopen(name, "wb") : NULL;
    if (!file || fwrite(head, sizeof head, 1, file) != 1 ||
        fwrite(rows, sizeof rows, 1, file) != 1 || fclose(file) != 0)
        abort();
}

static struct pstk_verify_report report;
static pstk_progress_fn on_progress; /* callback of the next verify; NULL: none */
static int decode;

static int64_t verify(const char *path, uint32_t keep, const char *cache, struct pstk_error *err)
{
    report = (struct pstk_verify_report){.size = sizeof report};
    const struct pstk_foreign foreign = {
        .size = sizeof foreign, .field_size = sizeof(struct pstk_field), .cache_path = cache};
    const struct pstk_verify_settings s = {.size = sizeof s,
                                           .path = path,
                                           .decode = (uint32_t)decode,
                                           .keep_checksums = keep,
                                           .n_threads = 2,
                                           .foreign = &foreign,
                                           .on_progress = on_progress,
                                           .report = &report};
    return pstk_verify_data(&s, err);
}

/* The file in a folder whose name ends so, in `path`. */
static int find_file(const char *folder, const char *ending, char path[600])
{
    DIR *open = opendir(folder);
    const struct dirent *entry;
    int found = 0;
    while (open && (entry = readdir(open))) {
        const size_t n = strlen(entry->d_name), m = strlen(ending);
        if (n > m && strcmp(entry->d_name + n - m, ending) == 0) {
            snprintf(path, 600, "%.300s/%.255s", folder, entry->d_name);
            found++;
        }
    }
    if (open)
        closedir(open);
    return found == 1;
}

static void put_byte(const char *path, long at, int byte)
{
    FILE *file = fopen(path, "r+b");
    if (!file || fseek(file, at, SEEK_SET) != 0 || fputc(byte, file) == EOF || fclose(file) != 0)
        abort();
}

/* Return 1 where the header, a page or the end of the file says what it holds. */
static int is_structure(long i)
{
    return i < 200 || i >= 4 * 4096 || i % 4096 < 32 || i % 4096 >= 4064;
}

/* Return how far the next flip is from byte i. Each byte of structure is flipped; of the checksums
 * between, one of 61, because a page has one checksum over all of them. Under a sanitizer, for the
 * paths alone, one of 11 bytes of structure is. */
static long step_of(long i)
{
    const long left = 4064 - i % 4096; /* to the structure that ends the page */
    return is_structure(i) ? test_stride(11, 11) : left < 61 ? left : 61;
}

TEST(every_flipped_byte_of_the_file_is_seen)
{
    struct fixture f;
    char path[600];
    static uint8_t bytes[1 << 16];
    fixture_open(&f);
    const char *data = fixture_path(&f, "a");
    write_array(data);
    CHECK_EQ(verify(data, 1, NULL, &f.err), 0);
    CHECK(report.checksums == PSTK_VERIFY_KEPT && report.n_samples == N);
    CHECK_EQ(verify(data, 1, NULL, &f.err), 0);
    CHECK_EQ(report.checksums, PSTK_VERIFY_COMPARED);
    CHECK(find_file(fixture_path(&f, "a/.penstock"), ".checksums", path));
    FILE *file = fopen(path, "rb");
    const long size = (long)fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    CHECK(size > 4096 + 3 * 4096 && size < (long)sizeof bytes);
    long n_left = 0; /* bytes of structure that are not flipped */
    for (long i = 0; i < size; i++)
        n_left += is_structure(i);
    for (long i = 0; i < size; i += step_of(i)) {
        n_left -= is_structure(i);
        put_byte(path, i, bytes[i] ^ 0x10);
        const int64_t n_bad = verify(data, 0, NULL, &f.err);
        const int is_seen = n_bad > 0 || (n_bad == 0 && report.note[0]);
        if (!is_seen)
            printf("# byte %ld\n", i);
        CHECK(is_seen);
        put_byte(path, i, bytes[i]);
    }
    CHECK(n_left == 0 || test_stride(11, 11) > 1);
    for (long n = 0; n < size; n += 509) {
        CHECK_EQ(truncate(path, n), 0);
        CHECK_EQ(verify(data, 0, NULL, &f.err), 0);
        CHECK(report.checksums == PSTK_VERIFY_WITHOUT && strstr(report.note, "damaged"));
    }
    fixture_close(&f);
}

/* A flip in the values themselves is one damaged place, of its record. */
TEST(a_changed_value_is_seen_and_its_record_named)
{
    struct fixture f;
    char path[600];
    struct stat st;
    fixture_open(&f);
    const char *data = fixture_path(&f, "a");
    write_array(data);
    CHECK_EQ(verify(data, 1, NULL, &f.err), 0);
    snprintf(path, sizeof path, "%.500s/l.npy", data);
    CHECK_EQ(stat(path, &st), 0);
    for (int i = 0; i < N; i += 499) {
        const struct timespec times[2] = {st.st_atim, st.st_mtim};
        put_byte(path, 128 + 8 * i + 7, 0x40);
        CHECK_EQ(utimensat(AT_FDCWD, path, times, 0), 0);
        CHECK_EQ(verify(data, 0, NULL, &f.err), 1);
        put_byte(path, 128 + 8 * i + 7, 0);
        CHECK_EQ(utimensat(AT_FDCWD, path, times, 0), 0);
    }
    CHECK_EQ(verify(data, 0, NULL, &f.err), 0);
    CHECK_EQ(report.checksums, PSTK_VERIFY_COMPARED);
    fixture_close(&f);
}

/* Every write of the file may find the disk full: the file then goes to the cache folder. Notes in
 * its lock are smaller. */
TEST(a_full_disk_is_no_reason_to_keep_none)
{
    struct fixture f;
    char path[600];
    fixture_open(&f);
    const char *data = fixture_path(&f, "a"), *cache = fixture_path(&f, "cache");
    write_array(data);
    fault.min_size = 512;
    for (int n = 0;; n++) {
        fault_arm(FAULT_WRITE, n, ENOSPC);
        const int64_t r = verify(data, 1, cache, &f.err);
        const int fired = fault_disarm();
        CHECK(r == 0 && report.checksums == PSTK_VERIFY_KEPT);
        CHECK_EQ(find_file(fixture_path(&f, "cache/index"), ".checksums", path), fired);
        CHECK_EQ(verify(data, 0, cache, &f.err), 0);
        CHECK_EQ(report.checksums, PSTK_VERIFY_COMPARED);
        fixture_remove(cache);
        fixture_remove(fixture_path(&f, "a/.penstock"));
        if (!fired)
            break;
        fault_arm(FAULT_WRITE, n, ENOSPC);
        CHECK_EQ(verify(data, 1, NULL, &f.err), PSTK_ENOSPC);
        fault_disarm();
        CHECK(strstr(f.err.message, "free some space") && strstr(f.err.message, "set cache_path"));
    }
    fault.min_size = 0;
    fixture_close(&f);
}

/* ---- who waits ------------------------------------------------------------------------------- */

static char watched[600];                /* the folder of a lock */
static uint64_t shown_done, shown_total; /* most that waiting threads are shown */

static int look_at_lock(void *user, uint64_t n_done, uint64_t n_total)
{
    char path[600];
    uint8_t words[16];
    (void)user;
    (void)n_done;
    (void)n_total;
    const int fd = find_file(watched, ".checksums.lock", path) ? open(path, O_RDONLY) : -1;
    if (fd >= 0 && read(fd, words, sizeof words) == sizeof words &&
        pstk__get64(words) > shown_done) {
        shown_done = pstk__get64(words);
        shown_total = pstk__get64(words + 8);
    }
    close(fd);
    if (shown_done == 0) /* the next note comes 100 ms after the last one */
        nanosleep(&(struct timespec){.tv_nsec = 110000000}, NULL);
    return 0;
}

TEST(the_lock_shows_progress_even_if_every_sample_is_damaged)
{
    static const uint8_t cut[] =
        "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\10\0\0\0\0\x3a\x7e\x9b\x55";
    struct fixture f;
    char path[600];
    fixture_open(&f);
    const char *data = fixture_path(&f, "images");
    mkdir(data, 0700);
    mkdir(fixture_path(&f, "images/c"), 0700);
    for (int i = 0; i < 300; i++) {
        snprintf(path, sizeof path, "%.500s/c/%03d.png", data, i);
        const int fd = open(path, O_WRONLY | O_CREAT, 0600);
        CHECK_EQ(write(fd, cut, sizeof cut - 1), (int)sizeof cut - 1);
        close(fd);
    }
    snprintf(watched, sizeof watched, "%.500s/.penstock", f.dir);
    shown_done = shown_total = 0;
    on_progress = look_at_lock;
    decode = 1;
    CHECK_EQ(verify(data, 1, NULL, &f.err), 300);
    on_progress = NULL;
    decode = 0;
    CHECK(strstr(report.note, "no new checksums were kept, because"));
    CHECK(shown_done > 0 && shown_done <= 300);
    CHECK_EQ(shown_total, 300);
    fixture_close(&f);
}

static int stop(void *user, uint64_t n_done, uint64_t n_total)
{
    (void)user;
    shown_done = n_done;
    shown_total = n_total;
    return 1;
}

TEST(a_wait_for_another_process_shows_its_progress_and_can_be_ended)
{
    struct fixture f;
    char path[600];
    uint8_t words[16];
    fixture_open(&f);
    const char *data = fixture_path(&f, "a"), *own = fixture_path(&f, "a/.penstock");
    write_array(data);
    CHECK_EQ(verify(data, 1, NULL, &f.err), 0);
    CHECK(find_file(own, ".checksums", path));
    CHECK_EQ(unlink(path), 0);
    CHECK(find_file(own, ".checksums.lock", path));
    const int fd = open(path, O_RDWR);
    CHECK_EQ(flock(fd, LOCK_EX), 0);
    pstk__put64(words, 5);
    pstk__put64(words + 8, N);
    CHECK_EQ(pwrite(fd, words, sizeof words, 0), (int)sizeof words);
    on_progress = stop;
    CHECK_EQ(verify(data, 1, NULL, &f.err), PSTK_ECANCELED);
    on_progress = NULL;
    CHECK(shown_done == 5 && shown_total == N && strstr(f.err.message, "waiting for"));
    close(fd);
    CHECK_EQ(verify(data, 1, NULL, &f.err), 0);
    CHECK_EQ(report.checksums, PSTK_VERIFY_KEPT);
    fixture_close(&f);
}

TEST(names_of_sets_are_understood)
{
    static const struct {
        const char *name;
        int is_set;
        uint32_t number, count;
    } cases[] = {{"x-00003-of-00010", 1, 3, 10},
                 {"x-00003-of-00010.tfrecord", 1, 3, 10},
                 {"x.tfrecord-0-of-1", 1, 0, 1},
                 {"a-of-b-1-of-2.tar", 1, 1, 2},
                 {"x-00010-of-00010", 0, 0, 0},
                 {"x-1-of-", 0, 0, 0},
                 {"-of-3", 0, 0, 0},
                 {"1-of-3", 0, 0, 0},
                 {"x1-of-3", 0, 0, 0},
                 {"x-12345678-of-3", 0, 0, 0},
                 {"x-1-of-99999999", 0, 0, 0},
                 {"d-0-of-9/plain.tar", 0, 0, 0},
                 {"d/x-7-of-9.tar", 1, 7, 9},
                 {"", 0, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pstk__numbered_name set;
        CHECK_EQ(pstk__numbered_parse(&set, cases[i].name), cases[i].is_set);
        if (cases[i].is_set)
            CHECK(set.number == cases[i].number && set.count == cases[i].count);
    }
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(every_flipped_byte_of_the_file_is_seen),
        CASE(a_changed_value_is_seen_and_its_record_named),
        CASE(a_full_disk_is_no_reason_to_keep_none),
        CASE(the_lock_shows_progress_even_if_every_sample_is_damaged),
        CASE(a_wait_for_another_process_shows_its_progress_and_can_be_ended),
        CASE(names_of_sets_are_understood),
    };
    return RUN_CASES(cases);
}
