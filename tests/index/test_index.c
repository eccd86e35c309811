/* SPDX-License-Identifier: Apache-2.0 */
/* The file of an index: what the writer was given comes back, or the file is refused. */
#include "index/home.h"

#include "base/error.h"
#include "support/fixture.h"
#include "support/test.h"

#include <fcntl.h>
#include <sys/stat.h>
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

static void describe(struct pstk__index_found *found)
{
    *found = (struct pstk__index_found){.n_fields = 1, .max_record = 77, .facts = {1, 0, 3}};
    found->fields[0] = (struct pstk__index_field){.form = 5, .n = 3, .max_size = 9};
    snprintf(found->fields[0].field.name, PSTK_MAX_NAME, "jpg");
    found->fields[0].field.kind = PSTK_FIELD_IMAGE;
}

static int write_index(const char *path, uint32_t n_files, struct pstk_error *err)
{
    struct pstk__index_writer *writer;
    struct pstk__index_found found;
    struct pstk__texts classes = {0};
    describe(&found);
    pstk__texts_open(&classes, 2, 8);
    pstk__texts_add(&classes, "cat", 3);
    pstk__texts_add(&classes, "dog", 3);
    int r = pstk__index_writer_open(&writer, path, err);
    if (r == 0)
        r = add_files(writer, n_files, err);
    if (r == 0)
        r = pstk__index_writer_commit(&writer, key, &found, &classes, err);
    pstk__texts_close(&classes);
    return r;
}

TEST(what_was_written_comes_back)
{
    struct fixture f;
    struct pstk__index *index;
    fixture_open(&f);
    const char *path = fixture_path(&f, "x.index");
    CHECK_EQ(write_index(path, 3, &f.err), 0);
    CHECK_EQ(pstk__index_open(&index, &pstk__store_local, path, key, &f.err), 0);
    CHECK(index->n_samples == 2100 && index->n_files == 3 && index->bytes == 3003);
    CHECK_STR(pstk__texts_get(&index->names, 2), "002.tar");
    CHECK_STR(pstk__texts_get(&index->classes, 1), "dog");
    CHECK(index->files[2].first == 700 && index->files[2].changed_ns == -5);
    CHECK(index->found.max_record == 77 && index->found.facts[2] == 3);
    CHECK(index->found.fields[0].form == 5 && index->found.fields[0].max_size == 9);
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
    CHECK_EQ(pstk__index_open(&index, &pstk__store_local, path, key, &f.err), PSTK_ENOENT);
    CHECK_EQ(write_index(path, 2, &f.err), 0);
    CHECK_EQ(pstk__index_open(&index, &pstk__store_local, path, (const uint64_t[]){11, 23}, &f.err),
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
    const int r = pstk__index_open(&index, &pstk__store_local, path, key, NULL);
    pstk__index_close(index);
    return r == PSTK_EBADMSG;
}

TEST(every_flipped_byte_of_header_and_description_is_seen_and_every_cut)
{
    struct fixture f;
    static uint8_t bytes[1 << 18];
    fixture_open(&f);
    const char *path = fixture_path(&f, "x.index");
    CHECK_EQ(write_index(path, 3, &f.err), 0);
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
    const struct pstk__index_home home = {
        .store = &pstk__store_local, .data = f.dir, .format = "tar", .key = {11, 22}};
    struct pstk__index_work work = {.differs = differs, .build = build};
    n_built = 0;
    difference = NULL;
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(pstk__index_get(&index, &home, &work, &f.err), 0);
        CHECK(n_built == 1 && index->n_samples == 700);
        pstk__index_close(index);
    }
    difference = "a file was changed";
    CHECK_EQ(pstk__index_get(&index, &home, &work, &f.err), 0);
    CHECK_EQ(n_built, 2);
    pstk__index_close(index);
    difference = "a file was changed";
    work.on_progress = stop;
    CHECK_EQ(pstk__index_get(&index, &home, &work, &f.err), PSTK_ECANCELED);
    CHECK(index == NULL);
    fixture_close(&f);
}

static int count_call(void *user, uint64_t n_done, uint64_t n_total)
{
    ++*(int *)user;
    return n_done == 5 && n_total == 9 ? 0 : -1;
}

TEST(what_could_not_be_added_ends_a_build_and_is_its_result)
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
    struct pstk__index_home home = {
        .store = &pstk__store_local, .data = folder, .format = "tar", .key = {11, 22}};
    const struct pstk__index_work work = {.differs = differs, .build = build};
    n_built = 0;
    difference = NULL;
    CHECK(pstk__index_get(&index, &home, &work, &f.err) < 0);
    CHECK(n_built == 0 && strstr(f.err.message, "set cache_path"));
    home.cache = cache;
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(pstk__index_get(&index, &home, &work, &f.err), 0);
        CHECK(n_built == 1 && strstr(index->path, "caches/own/index/tar-"));
        pstk__index_close(index);
    }
    CHECK_EQ(stat(cache, &st), 0);
    home.place[0] = 5; /* the same names in another place */
    CHECK_EQ(pstk__index_get(&index, &home, &work, &f.err), 0);
    CHECK_EQ(n_built, 2);
    pstk__index_close(index);
    fixture_close(&f);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(what_was_written_comes_back),
        CASE(the_index_of_another_key_is_refused),
        CASE(every_flipped_byte_of_header_and_description_is_seen_and_every_cut),
        CASE(an_index_is_built_once_and_again_when_it_differs),
        CASE(what_could_not_be_added_ends_a_build_and_is_its_result),
        CASE(a_folder_that_is_not_for_writing_has_its_index_in_the_cache),
    };
    return RUN_CASES(cases);
}
