/* SPDX-License-Identifier: Apache-2.0 */
/* The file of an index: what the writer was given comes back, or the file is refused. */
#include "store/index/location.h"

#include "base/error.h"
#include "support/fixture.h"
#include "support/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const uint64_t key[2] = {11, 22};

/* Rows of file i: record r has a member of r + 1 bytes at 4096 * r. */
static struct pstk__index_rows rows_of(uint32_t i, uint64_t n)
{
    struct pstk__index_rows rows = {.n_columns = 3};
    for (uint64_t r = 0; r < n; r++) {
        uint64_t at;
        if (pstk__index_rows_value(&rows, "name", 4, &at) < 0 ||
            pstk__index_rows_add(&rows, (const uint64_t[]){4096 * r, r + 1 + i, at}) < 0)
            exit(99);
    }
    return rows;
}

/* Add n_files files, file i with i * 700 records. */
static int add_files(struct pstk__index_writer *writer, uint32_t n_files, struct pstk_error *err)
{
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < n_files; i++) {
        char name[16];
        snprintf(name, sizeof name, "%03u.tar", i);
        struct pstk__index_rows rows = rows_of(i, i * 700);
        r = pstk__index_writer_add(writer, name, 1000 + i, -5, &rows, err);
        pstk__index_rows_close(&rows);
    }
    return r;
}

static void describe(struct pstk__inferred_schema *found)
{
    *found = (struct pstk__inferred_schema){.n_fields = 1, .max_record = 77, .facts = {1, 0, 3}};
    found->fields[0] = (struct pstk__index_field){.coding = 5, .n = 3, .max_size = 9};
    snprintf(found->fields[0].field.name, PSTK_MAX_NAME, "jpg");
    found->fields[0].field.kind = PSTK_FIELD_IMAGE;
}

static int write_index(const struct fixture *f, const char *path, uint32_t n_files,
                       struct pstk_error *err)
{
    struct pstk__index_writer *writer;
    struct pstk__inferred_schema found;
    struct pstk__texts classes = {0};
    describe(&found);
    pstk__texts_open(&classes, 2, 8);
    pstk__texts_add(&classes, "cat", 3);
    pstk__texts_add(&classes, "dog", 3);
    const int dir = open(f->dir, O_RDONLY | O_DIRECTORY);
    int fd = -1, r = pstk__index_writer_open(&writer, dir, path, err);
    if (r == 0)
        r = add_files(writer, n_files, err);
    if (r == 0)
        r = pstk__index_writer_commit(&writer, key, &found, &classes, &fd, err);
    if (fd >= 0)
        close(fd);
    pstk__texts_close(&classes);
    close(dir);
    return r;
}

TEST(a_written_index_is_read_back)
{
    struct fixture f;
    struct pstk__index *index;
    fixture_open(&f);
    const char *path = fixture_path(&f, "x.index");
    CHECK_EQ(write_index(&f, path, 3, &f.err), 0);
    CHECK_EQ(pstk__index_open(&index, path, open(path, O_RDONLY), key, &f.err), 0);
    CHECK(index->n_samples == 2100 && index->n_files == 3 && index->bytes == 3003);
    CHECK_STR(pstk__texts_get(&index->names, 2), "002.tar");
    CHECK_STR(pstk__texts_get(&index->classes, 1), "dog");
    CHECK(index->files[2].first == 700 && index->files[2].changed_ns == -5);
    CHECK(index->found.max_record == 77 && index->found.facts[2] == 3);
    CHECK(index->found.fields[0].coding == 5 && index->found.fields[0].max_size == 9);
    CHECK_STR(index->found.fields[0].field.name, "jpg");
    for (uint64_t id = 0; id < 2100; id++) /* file 0 has no record */
        CHECK_EQ(pstk__index_find(index, id), id < 700 ? 1 : 2);
    pstk__index_close(index);
    fixture_close(&f);
}

TEST(the_index_of_another_key_is_refused)
{
    struct fixture f;
    struct pstk__index *index;
    fixture_open(&f);
    const char *path = fixture_path(&f, "x.index");
    CHECK_EQ(write_index(&f, path, 2, &f.err), 0);
    CHECK_EQ(
        pstk__index_open(&index, path, open(path, O_RDONLY), (const uint64_t[]){11, 23}, &f.err),
        PSTK_EBADMSG);
    CHECK(index == NULL && strstr(f.err.message, "other files"));
    fixture_close(&f);
}

/* With the bytes of the file as `bytes` gives them, the index is refused. */
static int is_refused(const char *path, const uint8_t *bytes, size_t size)
{
    struct pstk__index *index;
    FILE *file = fopen(path, "wb");
    fwrite(bytes, 1, size, file);
    fclose(file);
    const int r = pstk__index_open(&index, path, open(path, O_RDONLY), key, NULL);
    pstk__index_close(index);
    return r == PSTK_EBADMSG;
}

TEST(every_flipped_byte_of_header_and_description_is_seen_and_every_cut)
{
    struct fixture f;
    static uint8_t bytes[1 << 18];
    fixture_open(&f);
    const char *path = fixture_path(&f, "x.index");
    CHECK_EQ(write_index(&f, path, 3, &f.err), 0);
    FILE *file = fopen(path, "rb");
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    const uint64_t tail = pstk__get64(bytes + 56);
    CHECK(size < sizeof bytes && tail < size);
    for (size_t i = 0; i < size; i = i == 4095 ? tail : i + (i < 128 || i > tail ? 1 : 61)) {
        if (i >= 4096 && i < tail)
            continue; /* pages have checksums of their own */
        bytes[i] ^= 0x10;
        CHECK(is_refused(path, bytes, size));
        bytes[i] ^= 0x10;
    }
    for (size_t n = 0; n < size; n += 509)
        CHECK(is_refused(path, bytes, n));
    CHECK(!is_refused(path, bytes, size));
    fixture_close(&f);
}

/* ---- home ------------------------------------------------------------------------------------ */

static int n_built;
static const char *difference;

static const char *differs(void *user, const struct pstk__index *index)
{
    (void)user, (void)index;
    return difference;
}

static int build(void *user, struct pstk__index_build *build)
{
    (void)user;
    n_built++;
    describe(&build->found);
    if (pstk__index_build_advance(build, 1, 2))
        return pstk__fail(build->err, PSTK_ECANCELED, PSTK_STAGE_OPEN, "canceled");
    difference = NULL;
    return add_files(build->writer, 2, build->err);
}

static int stop(void *user, uint64_t n_done, uint64_t n_total)
{
    (void)user;
    return n_done == 1 && n_total == 2;
}

TEST(an_index_is_built_once_and_again_when_it_differs)
{
    struct fixture f;
    struct pstk__index *index;
    fixture_open(&f);
    const struct pstk__index_location location = {.data = f.dir, .format = "tar", .key = {11, 22}};
    struct pstk__index_work work = {.differs = differs, .build = build};
    n_built = 0;
    difference = NULL;
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(pstk__index_get(&index, &location, &work, &f.err), 0);
        CHECK(n_built == 1 && index->n_samples == 700);
        pstk__index_close(index);
    }
    difference = "a file was changed";
    CHECK_EQ(pstk__index_get(&index, &location, &work, &f.err), 0);
    CHECK_EQ(n_built, 2);
    pstk__index_close(index);
    difference = "a file was changed";
    work.watch.on_progress = stop;
    CHECK_EQ(pstk__index_get(&index, &location, &work, &f.err), PSTK_ECANCELED);
    CHECK(index == NULL);
    fixture_close(&f);
}

static int count_call(void *user, uint64_t n_done, uint64_t n_total)
{
    ++*(int *)user;
    return n_done == 5 && n_total == 9 ? 0 : -1;
}

TEST(a_failure_to_add_ends_a_build_and_is_its_result)
{
    int n_calls = 0;
    struct pstk__index_build to = {.progress = count_call, .progress_user = &n_calls, .n_done = 2};
    CHECK_EQ(pstk__index_build_advance(&to, 3, 9), 0);
    CHECK_EQ(n_calls, 1);
    CHECK_EQ(pstk__index_build_result(&to, 0), 0);
    CHECK_EQ(pstk__index_build_result(&to, PSTK_EBADMSG), PSTK_EBADMSG);
    to.code = PSTK_ENOSPC;
    CHECK(pstk__index_build_advance(&to, 1, 9) != 0);
    CHECK(n_calls == 1 && to.n_done == 6);
    CHECK_EQ(pstk__index_build_result(&to, PSTK_ECANCELED), PSTK_ENOSPC);
}

TEST(a_folder_that_is_not_for_writing_has_its_index_in_the_cache)
{
    struct fixture f;
    struct pstk__index *index;
    struct stat st;
    fixture_open(&f);
    char folder[512], cache[512];
    snprintf(folder, sizeof folder, "%s",
             fixture_path(&f, "absent/data")); /* root may write anywhere */
    snprintf(cache, sizeof cache, "%s", fixture_path(&f, "caches/own"));
    struct pstk__index_location location = {.data = folder, .format = "tar", .key = {11, 22}};
    const struct pstk__index_work work = {.differs = differs, .build = build};
    n_built = 0;
    difference = NULL;
    CHECK(pstk__index_get(&index, &location, &work, &f.err) < 0);
    CHECK(n_built == 0 && strstr(f.err.message, "set cache_path"));
    location.cache = cache;
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(pstk__index_get(&index, &location, &work, &f.err), 0);
        CHECK(n_built == 1 && strstr(index->path, "caches/own/index/tar-"));
        pstk__index_close(index);
    }
    CHECK_EQ(stat(cache, &st), 0);
    location.path_digest[0] = 5; /* the same names at another path */
    CHECK_EQ(pstk__index_get(&index, &location, &work, &f.err), 0);
    CHECK_EQ(n_built, 2);
    pstk__index_close(index);
    fixture_close(&f);
}

/* ---- other processes and users --------------------------------------------------------------- */

/* A data folder, a cache, and the path of what lies in .penstock there. */
struct spot {
    struct fixture f;
    char data[512], cache[512], own[600], lock[700];
    struct pstk__index_location location;
    struct pstk__index_work work;
};

static char told[2000]; /* the last text of on_wait */
static int n_told;

static void hear(void *user, const char *text)
{
    (void)user;
    n_told++;
    snprintf(told, sizeof told, "%s", text);
}

static void spot_open(struct spot *spot)
{
    *spot = (struct spot){0};
    fixture_open(&spot->f);
    snprintf(spot->data, sizeof spot->data, "%s", fixture_path(&spot->f, "data"));
    snprintf(spot->cache, sizeof spot->cache, "%s", fixture_path(&spot->f, "cache"));
    snprintf(spot->own, sizeof spot->own, "%s/.penstock", spot->data);
    snprintf(spot->lock, sizeof spot->lock, "%s/tar-%016x%016x.index.lock", spot->own, 11, 22);
    mkdir(spot->data, 0755);
    spot->location = (struct pstk__index_location){
        .data = spot->data, .cache = spot->cache, .format = "tar", .key = {11, 22}};
    spot->work = (struct pstk__index_work){
        .differs = differs, .build = build, .watch.on_wait = hear, .patience_ns = 300000000};
    n_built = n_told = 0;
    difference = NULL;
}

/* The index is made where it should be, and found there again. */
static int is_made_in(struct spot *spot, const char *folder)
{
    struct pstk__index *index;
    const size_t n = strlen(folder);
    int is_there = 1;
    for (int i = 0; i < 2; i++) {
        if (pstk__index_get(&index, &spot->location, &spot->work, &spot->f.err) < 0) {
            printf("# %s\n", spot->f.err.message);
            return 0;
        }
        is_there &= strncmp(index->path, folder, n) == 0 && index->path[n] == '/';
        pstk__index_close(index);
    }
    return is_there && n_built == 1;
}

TEST(no_link_is_followed_to_where_an_index_is_written)
{
    struct spot spot;
    struct stat st;
    for (int kind = 0; kind < 3; kind++) {
        spot_open(&spot);
        const char *target = fixture_path(&spot.f, "target");
        if (kind == 0) { /* the folder */
            mkdir(target, 0755);
            CHECK_EQ(symlink(target, spot.own), 0);
        } else { /* the lock as a link, and as another name of a file */
            mkdir(spot.own, 0755);
            const int fd = open(target, O_WRONLY | O_CREAT, 0644);
            CHECK_EQ(write(fd, "precious", 8), 8);
            close(fd);
            CHECK_EQ((kind == 1 ? symlink : link)(target, spot.lock), 0);
        }
        CHECK(is_made_in(&spot, fixture_path(&spot.f, "cache/index")));
        CHECK_EQ(stat(target, &st), 0);
        if (kind == 0)
            CHECK_EQ(rmdir(target), 0); /* it is empty */
        else                            /* nor is its mode another */
            CHECK(st.st_size == 8 && (st.st_mode & 0777) == 0644);
        fixture_close(&spot.f);
    }
}

TEST(a_folder_for_caches_is_made_with_the_one_that_it_is_in)
{
    struct spot spot;
    struct stat st;
    spot_open(&spot);
    CHECK_EQ(symlink(spot.data, spot.own), 0); /* no index is written there */
    snprintf(spot.cache, sizeof spot.cache, "%s", fixture_path(&spot.f, "new/cache/"));
    CHECK(is_made_in(&spot, spot.cache));
    CHECK_EQ(stat(fixture_path(&spot.f, "new"), &st), 0);
    CHECK_EQ(st.st_mode & 0777, 0700);
    fixture_close(&spot.f);
}

TEST(an_index_is_not_read_through_a_link)
{
    struct spot spot;
    char elsewhere[600], index[700], moved[720];
    spot_open(&spot);
    CHECK(is_made_in(&spot, spot.own));
    snprintf(index, sizeof index, "%.*s", (int)strlen(spot.lock) - 5, spot.lock);
    snprintf(moved, sizeof moved, "%s.moved", index);
    CHECK_EQ(rename(index, moved), 0);
    CHECK_EQ(symlink(moved, index), 0);
    n_built = 0;
    CHECK(is_made_in(&spot, spot.own)); /* in place of the link */
    snprintf(elsewhere, sizeof elsewhere, "%s", fixture_path(&spot.f, "elsewhere"));
    CHECK_EQ(rename(spot.own, elsewhere), 0);
    CHECK_EQ(symlink(elsewhere, spot.own), 0);
    n_built = 0;
    CHECK(is_made_in(&spot, fixture_path(&spot.f, "cache/index")));
    fixture_close(&spot.f);
}

/* Next to the data, where it was just built, was there before, or was only looked for. */
TEST(an_open_index_is_the_file_that_was_checked_whatever_has_its_name_by_now)
{
    for (int kind = 0; kind < 3; kind++) {
        struct spot spot;
        struct pstk__index *index = NULL;
        struct stat checked, at_name, read;
        char path[PATH_MAX], other[PATH_MAX];
        spot_open(&spot);
        if (kind > 0)
            CHECK(is_made_in(&spot, spot.own));
        if (kind == 2)
            CHECK_EQ(pstk__index_find_fitting(&index, &spot.location, &spot.work, &spot.f.err), 0);
        else
            CHECK_EQ(pstk__index_get(&index, &spot.location, &spot.work, &spot.f.err), 0);
        CHECK_EQ(stat(index->path, &checked), 0);
        snprintf(other, sizeof other, "%s.other", index->path);
        const int fd = open(other, O_WRONLY | O_CREAT, 0644); /* in its place, as an index looks */
        CHECK_EQ(ftruncate(fd, checked.st_size), 0);
        CHECK_EQ(futimens(fd, (struct timespec[]){checked.st_atim, checked.st_mtim}), 0);
        close(fd);
        CHECK_EQ(rename(other, index->path), 0);
        CHECK_EQ(pstk__index_file_path(index, path, sizeof path), 0);
        CHECK_EQ(stat(path, &read), 0);
        CHECK_EQ(stat(index->path, &at_name), 0);
        CHECK(read.st_ino == checked.st_ino && at_name.st_ino != checked.st_ino);
        pstk__index_close(index);
        fixture_close(&spot.f);
    }
}

TEST(a_folder_of_another_user_is_not_written_to)
{
    struct spot spot;
    if (geteuid() != 0)
        SKIP("only root can give a folder to another user");
    spot_open(&spot);
    mkdir(spot.own, 0777);
    CHECK_EQ(chmod(spot.own, 0777), 0);
    CHECK_EQ(chown(spot.own, 12345, 12345), 0);
    CHECK(is_made_in(&spot, fixture_path(&spot.f, "cache/index")));
    fixture_close(&spot.f);
    spot_open(&spot); /* root makes one in the folder of the data's owner, as in a container */
    mkdir(spot.own, 0777);
    CHECK(chown(spot.own, 12345, 12345) == 0 && chown(spot.data, 12345, 12345) == 0);
    CHECK(is_made_in(&spot, spot.own));
    fixture_close(&spot.f);
    spot_open(&spot); /* without a folder for caches, the reason is in the message */
    mkdir(spot.own, 0777);
    CHECK_EQ(chown(spot.own, 12345, 12345), 0);
    spot.location.cache = NULL;
    struct pstk__index *index;
    CHECK_EQ(pstk__index_get(&index, &spot.location, &spot.work, &spot.f.err), PSTK_EACCES);
    CHECK(strstr(spot.f.err.message, "another user's") && strstr(spot.f.err.message, "cache_path"));
    fixture_close(&spot.f);
}

/* A builder's unfinished file next to the index, to which nobody wrote for `age` seconds. */
static const char *put_unfinished(struct spot *spot, const char *name, time_t age)
{
    char path[sizeof spot->own + 80];
    const struct timespec when = {.tv_sec = time(NULL) - age};
    mkdir(spot->own, 0755);
    snprintf(path, sizeof path, "data/.penstock/tar-%016x%016x.index.tmp-%s", 11, 22, name);
    const char *full = fixture_path(&spot->f, path);
    const int fd = open(full, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || futimens(fd, (const struct timespec[]){when, when}) < 0)
        exit(99);
    close(fd);
    return full;
}

TEST(files_that_a_killed_builder_left_are_removed_once_old)
{
    struct spot spot;
    spot_open(&spot);
    const char *old = put_unfinished(&spot, "killed", 610);
    const char *young = put_unfinished(&spot, "others", 590); /* a node whose locks are not seen */
    CHECK(is_made_in(&spot, spot.own));
    CHECK(access(old, F_OK) < 0 && access(young, F_OK) == 0);
    fixture_close(&spot.f);
}

/* Hold a lock's file, as a builder that was stopped does. */
static int hold(const struct spot *spot, uid_t owner)
{
    mkdir(spot->own, 0755);
    const int fd = open(spot->lock, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || flock(fd, LOCK_EX) < 0 || (owner && fchown(fd, owner, owner) < 0))
        exit(99);
    return fd;
}

TEST(a_lock_of_another_user_is_not_waited_for)
{
    struct spot spot;
    if (geteuid() != 0)
        SKIP("only root can give a file to another user");
    spot_open(&spot);
    spot.work.patience_ns = UINT64_MAX / 100;
    const int fd = hold(&spot, 12345);
    CHECK(is_made_in(&spot, fixture_path(&spot.f, "cache/index")));
    CHECK_EQ(n_told, 0);
    close(fd);
    fixture_close(&spot.f);
}

TEST(a_lock_of_the_folders_owner_is_waited_for)
{
    struct spot spot;
    struct pstk__index *index;
    if (geteuid() != 0)
        SKIP("only root can give a file to another user");
    spot_open(&spot);
    const int fd = hold(&spot, 12345); /* as where a file system shows all files as one user's */
    CHECK(chown(spot.own, 12345, 12345) == 0 && chown(spot.data, 12345, 12345) == 0);
    CHECK_EQ(pstk__index_get(&index, &spot.location, &spot.work, &spot.f.err), PSTK_ETIMEDOUT);
    close(fd);
    CHECK(is_made_in(&spot, spot.own));
    fixture_close(&spot.f);
}

/* The file of a lock as a builder writes it. */
static void write_note(int fd, uint64_t n_done, uint64_t n_total, const char *holder)
{
    uint8_t bytes[16 + 128] = {0};
    pstk__put64(bytes, n_done);
    pstk__put64(bytes + 8, n_total);
    snprintf((char *)bytes + 16, 128, "%s", holder);
    if (pwrite(fd, bytes, sizeof bytes, 0) != sizeof bytes)
        exit(99);
}

TEST(a_builder_that_does_nothing_is_named_and_left)
{
    struct spot spot;
    struct pstk__index *index;
    spot_open(&spot);
    const int fd = hold(&spot, 0);
    write_note(fd, 5, 100, "process 77 on host n2\033[31m");
    spot.work.patience_ns = 1500000000;
    CHECK_EQ(pstk__index_get(&index, &spot.location, &spot.work, &spot.f.err), PSTK_ETIMEDOUT);
    const char *message = spot.f.err.message;
    CHECK(index == NULL && strstr(message, "process 77 on host n2 ") &&
          strstr(message, spot.lock) && strstr(message, spot.data) && strstr(message, "for 1 s"));
    CHECK(n_told == 1 && strstr(told, "process 77 on host n2 ") && strstr(told, spot.lock));
    CHECK(!strstr(message, "remove")); /* the process goes on without it, and meets another */
    close(fd);                         /* as the message says */
    CHECK(is_made_in(&spot, spot.own));
    fixture_close(&spot.f);
}

/* Hold a lock for 20 times 0.1 s, and write a note each 0.1 s: a thread. */
static void *make_progress(void *user)
{
    const int fd = *(int *)user;
    for (uint64_t i = 0; i < 20; i++) {
        write_note(fd, 0, 0, "process 78 on host n2"); /* a time alone is progress */
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    flock(fd, LOCK_UN);
    return NULL;
}

TEST(a_slow_builder_is_waited_for)
{
    struct spot spot;
    pthread_t thread;
    spot_open(&spot);
    spot.work.patience_ns = 700000000;
    int fd = hold(&spot, 0);
    CHECK_EQ(pthread_create(&thread, NULL, make_progress, &fd), 0);
    CHECK(is_made_in(&spot, spot.own));
    CHECK_EQ(n_told, 1);
    pthread_join(thread, NULL);
    close(fd);
    fixture_close(&spot.f);
}

static char noted[200]; /* the lock's file while an index is built */

static int build_and_look(void *user, struct pstk__index_build *to)
{
    const int fd = open(user, O_RDONLY);
    const int r = build(NULL, to); /* it writes a note */
    memset(noted, 0, sizeof noted);
    if (fd < 0 || read(fd, noted, sizeof noted - 1) < 16)
        exit(99);
    close(fd);
    return r;
}

TEST(a_lock_names_its_holder_and_is_for_its_user_alone)
{
    struct spot spot;
    struct stat st;
    char wanted[64];
    spot_open(&spot);
    spot.work.build = build_and_look;
    spot.work.user = spot.lock;
    close(hold(&spot, 0)); /* a lock file of an older version: others could lock it */
    CHECK(is_made_in(&spot, spot.own));
    CHECK(stat(spot.lock, &st) == 0 && (st.st_mode & 0777) == 0600 && st.st_size == 0);
    snprintf(wanted, sizeof wanted, "process %ld on host ", (long)getpid());
    CHECK(strncmp(noted + 16, wanted, strlen(wanted)) == 0 && noted[16 + strlen(wanted)]);
    CHECK(pstk__get64(noted) == 1 && pstk__get64(noted + 8) == 2);
    fixture_close(&spot.f);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_written_index_is_read_back),
        CASE(the_index_of_another_key_is_refused),
        CASE(every_flipped_byte_of_header_and_description_is_seen_and_every_cut),
        CASE(an_index_is_built_once_and_again_when_it_differs),
        CASE(a_failure_to_add_ends_a_build_and_is_its_result),
        CASE(a_folder_that_is_not_for_writing_has_its_index_in_the_cache),
        CASE(no_link_is_followed_to_where_an_index_is_written),
        CASE(a_folder_for_caches_is_made_with_the_one_that_it_is_in),
        CASE(an_index_is_not_read_through_a_link),
        CASE(an_open_index_is_the_file_that_was_checked_whatever_has_its_name_by_now),
        CASE(a_folder_of_another_user_is_not_written_to),
        CASE(a_lock_of_another_user_is_not_waited_for),
        CASE(a_lock_of_the_folders_owner_is_waited_for),
        CASE(files_that_a_killed_builder_left_are_removed_once_old),
        CASE(a_builder_that_does_nothing_is_named_and_left),
        CASE(a_slow_builder_is_waited_for),
        CASE(a_lock_names_its_holder_and_is_for_its_user_alone),
    };
    return RUN_CASES(cases);
}
