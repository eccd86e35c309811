/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of a store, as local files keep it, and what is done alike on all of them. */
#include "store/patience.h"
#include "support/test.h"
#include "support/test_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#define FILE_SIZE 10000

static char folder[] = "/tmp/test_store-XXXXXX";
static uint8_t content[FILE_SIZE];

static const char *path_of(const char *name)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const void *bytes, size_t size)
{
    FILE *f = fopen(path_of(name), "wb");
    if (!f || fwrite(bytes, 1, size, f) != size || fclose(f))
        printf("Bail out! %s\n", path_of(name));
}

TEST(a_path_lies_in_the_store_of_local_files)
{
    CHECK(pstk__store_of("/data/train") == &pstk__store_local);
    CHECK_EQ(pstk__store_local.has_fds, 1);
}

TEST(an_open_file_has_a_descriptor_a_size_and_a_time_of_change)
{
    struct pstk__file f;
    const struct timespec times[2] = {{.tv_sec = 7}, {.tv_sec = 1234, .tv_nsec = 567}};
    uint64_t size = 0;
    int64_t changed = 0;
    put("a", content, FILE_SIZE);
    CHECK_EQ(utimensat(AT_FDCWD, path_of("a"), times, 0), 0);
    CHECK_EQ(pstk__store_local.open(&pstk__store_local, &f, path_of("a")), 0);
    CHECK(f.store == &pstk__store_local && fcntl(f.fd, F_GETFD) == FD_CLOEXEC);
    CHECK_EQ(f.store->stat(&f, &size, &changed), 0);
    CHECK_EQ(size, FILE_SIZE);
    CHECK_EQ(changed, 1234000000567);
    /* No year is too far: ns of after 2262 do not fit 63 bits. */
    const struct timespec far[2] = {{.tv_sec = 7}, {.tv_sec = 1ll << 33}};
    CHECK_EQ(utimensat(AT_FDCWD, path_of("a"), far, 0), 0);
    CHECK_EQ(f.store->stat(&f, &size, &changed), 0);
    CHECK_EQ((uint64_t)changed, (1ull << 33) * 1000000000);
    const int fd = f.fd;
    pstk__file_end(&f);
    CHECK(f.store == NULL && f.fd == -1 && fcntl(fd, F_GETFD) < 0);
    pstk__file_end(&f); /* again is fine */
}

TEST(opening_a_file_that_is_not_regular_fails_without_waiting)
{
    struct pstk__file f;
    CHECK_EQ(mkfifo(path_of("fifo"), 0600), 0);
    CHECK_EQ(pstk__store_local.open(&pstk__store_local, &f, path_of("absent")), -ENOENT);
    CHECK(f.store == NULL && f.fd == -1);
    CHECK_EQ(pstk__store_local.open(&pstk__store_local, &f, path_of("fifo")), -EINVAL);
    CHECK_EQ(pstk__store_local.open(&pstk__store_local, &f, folder), -EISDIR);
    CHECK(f.store == NULL && f.fd == -1);
    unlink(path_of("fifo"));
}

TEST(reads_are_whole_whatever_the_store_gives_at_once)
{
    static uint8_t bytes[FILE_SIZE + 100];
    put("a", content, FILE_SIZE);
    for (uint32_t k = 0; k < 6; k++) {
        struct test_store t = test_store_make();
        struct pstk__file f;
        t.piece = k % 3 ? 1 + 700 * k : 0;
        t.refuse_every = k;
        t.refuse_every = t.refuse_every == 1 ? 2 : t.refuse_every;
        CHECK_EQ(t.store.open(&t.store, &f, path_of("a")), 0);
        CHECK_EQ(pstk__file_read(&f, bytes, FILE_SIZE, 0), FILE_SIZE);
        CHECK(memcmp(bytes, content, FILE_SIZE) == 0);
        CHECK_EQ(pstk__file_read(&f, bytes, 200, FILE_SIZE - 150), 150); /* the end of the file */
        CHECK(memcmp(bytes, content + FILE_SIZE - 150, 150) == 0);
        CHECK_EQ(pstk__file_read(&f, bytes, 200, FILE_SIZE), 0);
        CHECK_EQ(t.n_open, 1);
        pstk__file_end(&f);
        CHECK_EQ(t.n_open, 0);
    }
}

TEST(a_read_that_fails_gives_the_errno)
{
    struct test_store t = test_store_make();
    struct pstk__file f;
    uint8_t bytes[100];
    put("a", content, FILE_SIZE);
    t.bad_file = "a";
    t.fail_from = 5000;
    CHECK_EQ(t.store.open(&t.store, &f, path_of("a")), 0);
    CHECK_EQ(pstk__file_read(&f, bytes, 100, 4900), 100);
    CHECK_EQ(pstk__file_read(&f, bytes, 100, 4950), -EIO);
    pstk__file_end(&f);
}

TEST(loading_gives_the_whole_file_or_says_why_not)
{
    struct test_store t = test_store_make();
    struct pstk_error err;
    void *bytes = &t;
    uint64_t size = 1;
    put("a", content, FILE_SIZE);
    put("empty", "", 0);
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk__store_load(&t.store, path_of("a"), FILE_SIZE, &bytes, &size, &err), 0);
    CHECK(size == FILE_SIZE && memcmp(bytes, content, FILE_SIZE) == 0);
    free(bytes);
    CHECK_EQ(pstk__store_load(&t.store, path_of("empty"), 1, &bytes, &size, &err), 0);
    CHECK(bytes != NULL && size == 0);
    free(bytes);
    CHECK_EQ(pstk__store_load(&t.store, path_of("a"), FILE_SIZE - 1, &bytes, &size, &err),
             PSTK_EFBIG);
    CHECK(bytes == NULL && strstr(err.message, "must be at most 9999"));
    CHECK_EQ(pstk__store_load(&t.store, path_of("absent"), 9, &bytes, &size, &err), PSTK_ENOENT);
    CHECK(strstr(err.message, "no such file"));
    CHECK_EQ(pstk__store_load(&pstk__store_local, folder, 9, &bytes, &size, &err), PSTK_ENOTSUP);
    CHECK(strstr(err.message, "a directory"));
    t.bad_file = "a";
    t.fail_from = 1;
    CHECK_EQ(pstk__store_load(&t.store, path_of("a"), FILE_SIZE, &bytes, &size, &err), PSTK_EIO);
    CHECK(bytes == NULL && err.native == EIO);
    CHECK_EQ(t.n_open, 0);
}

/* Names seen, as bits of their first letters. */
static int see(void *user, const char *name)
{
    uint32_t *seen = user;
    if (name[0] == '.')
        return 0;
    *seen |= 1u << (name[0] - 'a');
    return name[0] == 'c' ? 42 : 0;
}

TEST(listing_hands_on_every_name_until_one_ends_it)
{
    uint32_t seen = 0;
    put("a", "", 0);
    put("b", "", 0);
    unlink(path_of("empty"));
    CHECK_EQ(pstk__store_local.list(&pstk__store_local, folder, see, &seen), 0);
    CHECK_EQ(seen, 3);
    put("c", "", 0);
    CHECK_EQ(pstk__store_local.list(&pstk__store_local, folder, see, &seen), 42);
    unlink(path_of("c"));
    CHECK_EQ(pstk__store_local.list(&pstk__store_local, path_of("absent"), see, &seen), -ENOENT);
    CHECK_EQ(pstk__store_local.list(&pstk__store_local, path_of("a"), see, &seen), -ENOTDIR);
}

/* The process that waits may have been stopped, and the one that it waits for with it. */
TEST(a_long_time_between_two_looks_counts_little)
{
    struct pstk__patience patience = {0};
    CHECK_EQ(pstk__patience_look(&patience, 0), 0);
    patience.looked_ns -= UINT64_C(3600000000000);
    CHECK_EQ(pstk__patience_look(&patience, 0), PSTK__PATIENCE_PAUSE_NS);
    CHECK(pstk__patience_look(&patience, 0) >= PSTK__PATIENCE_PAUSE_NS);
    CHECK_EQ(pstk__patience_look(&patience, 1), 0);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_path_lies_in_the_store_of_local_files),
        CASE(an_open_file_has_a_descriptor_a_size_and_a_time_of_change),
        CASE(opening_a_file_that_is_not_regular_fails_without_waiting),
        CASE(reads_are_whole_whatever_the_store_gives_at_once),
        CASE(a_read_that_fails_gives_the_errno),
        CASE(loading_gives_the_whole_file_or_says_why_not),
        CASE(listing_hands_on_every_name_until_one_ends_it),
        CASE(a_long_time_between_two_looks_counts_little),
    };
    if (!mkdtemp(folder))
        return perror(folder), 1;
    for (uint32_t i = 0; i < FILE_SIZE; i++)
        content[i] = (uint8_t)(i * 31 + (i >> 8));
    const int failed = RUN_CASES(cases);
    unlink(path_of("a"));
    unlink(path_of("b"));
    rmdir(folder);
    return failed;
}
