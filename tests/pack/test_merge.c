/* SPDX-License-Identifier: Apache-2.0 */
#include "support/faults.h"
#include "support/fixture.h"
#include "support/merging.h"
#include "format/pstk/manifest_file.h"

#include <sys/wait.h>

#define N_RECORDS 300

/* Set the settings that all parts of these tests share. */
static void part_settings(struct pstk_writer_settings *s, const char *path, uint32_t i, uint32_t n)
{
    fixture_settings(s, path);
    s->part = i;
    s->n_parts = n;
    s->shard_size = 64 << 10;
    s->dictionary_size = 256;
}

/* Part i of n of records 0 .. N_RECORDS - 1. */
static int write_part(struct fixture *f, const char *path, uint32_t i, uint32_t n)
{
    struct pstk_writer_settings s;
    part_settings(&s, path, i, n);
    return fixture_write(&s, N_RECORDS * i / n, N_RECORDS * (i + 1) / n, 500, &f->err);
}

/* n parts, at p0, p1, ...; paths[8] are filled. */
static int write_parts(struct fixture *f, const char **paths, uint32_t n)
{
    static char names[8][300];
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < n; i++) {
        snprintf(names[i], sizeof names[i], "%s/p%u", f->dir, i);
        paths[i] = names[i];
        r = write_part(f, paths[i], i, n);
    }
    return r;
}

static int same_records(const char *a, const char *b)
{
    struct pstk_dataset *x = NULL, *y = NULL;
    int same =
        pstk_dataset_open(&x, a, NULL, NULL) == 0 && pstk_dataset_open(&y, b, NULL, NULL) == 0;
    for (uint64_t k = 0; same && k < N_RECORDS; k++) {
        for (uint32_t i = 0; same && i < FIXTURE_FIELDS; i++) {
            void *p = NULL, *q = NULL;
            uint64_t n = 0, m = 1;
            same = pstk_dataset_get(x, k, i, &p, &n, NULL, NULL) == 0 &&
                   pstk_dataset_get(y, k, i, &q, &m, NULL, NULL) == 0 && n == m &&
                   memcmp(p, q, n) == 0;
            pstk_free(p);
            pstk_free(q);
        }
    }
    pstk_dataset_close(&x);
    pstk_dataset_close(&y);
    return same;
}

TEST(merged_parts_are_a_single_pack_whatever_their_order)
{
    struct fixture f;
    struct pstk_writer_settings s;
    const char *parts[8];
    char single[40], merged[40], out[300];
    uint64_t n = 0;
    fixture_open(&f);
    const char *whole = fixture_path(&f, "whole");
    part_settings(&s, whole, 0, 1);
    CHECK_EQ(fixture_write(&s, 0, N_RECORDS, 500, &f.err), 0);
    CHECK_EQ(fixture_identity(whole, single, &n), 0);
    CHECK_EQ(write_parts(&f, parts, 4), 0);
    snprintf(out, sizeof out, "%s/out", f.dir);
    static const int orders[3][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}};
    for (int k = 0; k < 3; k++) {
        const char *order[4];
        for (int i = 0; i < 4; i++)
            order[i] = parts[orders[k][i]];
        CHECK_EQ(merge_parts(order, 4, out, 0, &f.err), 0);
        CHECK_EQ(fixture_identity(out, merged, &n), 0);
        CHECK_STR(single, merged);
        CHECK_EQ(n, N_RECORDS);
        CHECK_EQ(fixture_verify(out), 0);
        CHECK(same_records(out, fixture_path(&f, "whole")));
        fixture_remove(out);
    }
    for (int i = 0; i < 4; i++)
        CHECK_EQ(fixture_verify(parts[i]), 0);
    fixture_close(&f);
}

TEST(shards_are_linked_and_copied_where_links_are_refused)
{
    struct fixture f;
    const char *parts[8];
    struct stat a, b;
    fixture_open(&f);
    CHECK_EQ(write_parts(&f, parts, 2), 0);
    const char *out = fixture_path(&f, "out");
    CHECK_EQ(merge_parts(parts, 2, out, 0, &f.err), 0);
    CHECK_EQ(stat(fixture_path(&f, "p0/part-00000-of-00002-000000.pstk"), &a), 0);
    CHECK_EQ(stat(fixture_path(&f, "out/part-00000-of-00002-000000.pstk"), &b), 0);
    CHECK_EQ(a.st_ino, b.st_ino);
    const int refusals[] = {EXDEV, EPERM, EMLINK, EOPNOTSUPP};
    for (int i = 0; i < 4; i++) {
        const char *copy = fixture_path(&f, "copy");
        fault_arm(FAULT_LINK, 0, refusals[i]);
        fault.always = 1;
        CHECK_EQ(merge_parts(parts, 2, copy, 0, &f.err), 0);
        CHECK(fault_disarm() > 2);
        CHECK(fixture_same(out, copy));
        CHECK_EQ(stat(fixture_path(&f, "copy/part-00000-of-00002-000000.pstk"), &b), 0);
        CHECK(a.st_ino != b.st_ino);
        fixture_remove(copy);
    }
    fixture_close(&f);
}

TEST(missing_double_and_foreign_parts_are_named)
{
    struct fixture f;
    const char *p[8];
    char other[300];
    fixture_open(&f);
    CHECK_EQ(write_parts(&f, p, 3), 0);
    snprintf(other, sizeof other, "%s/other", f.dir);
    CHECK_EQ(write_part(&f, other, 1, 2), 0);
    const char *out = fixture_path(&f, "out");
    const char *no_middle[] = {p[0], p[2]}, *no_last[] = {p[1], p[0]};
    const char *twice[] = {p[0], p[1], p[2], p[1]}, *foreign[] = {p[0], p[1], other};
    const char *none[] = {p[0], fixture_path(&f, "nothing"), p[2]};
    CHECK_EQ(merge_parts(no_middle, 2, out, 0, &f.err), PSTK_EINVAL);
    CHECK(strstr(f.err.message, "part 1 of 3 is missing") != NULL);
    CHECK_EQ(merge_parts(no_last, 2, out, 0, &f.err), PSTK_EINVAL);
    CHECK(strstr(f.err.message, "part 2 of 3 is missing") != NULL);
    CHECK_EQ(merge_parts(twice, 4, out, 0, &f.err), PSTK_EINVAL);
    CHECK(strstr(f.err.message, "both part 1") != NULL);
    CHECK_EQ(merge_parts(foreign, 3, out, 0, &f.err), PSTK_EINVAL);
    CHECK(strstr(f.err.message, "other is part") || strstr(f.err.message, "other of 2"));
    CHECK_EQ(merge_parts(none, 3, out, 0, &f.err), PSTK_ENOENT);
    CHECK_EQ(merge_parts(NULL, 3, out, 0, &f.err), PSTK_EINVAL);
    CHECK_EQ(merge_parts(p, 0, out, 0, &f.err), PSTK_EINVAL);
    CHECK_EQ(merge_parts(p, 3, "", 0, &f.err), PSTK_EINVAL);
    CHECK_EQ(fixture_count(out), -1);
    fixture_close(&f);
}

TEST(parts_of_other_settings_are_refused)
{
    static const char *const names[2][2] = {{"cat", "dog"}, {"cat", "cow"}};
    struct fixture f;
    struct pstk_writer_settings s;
    struct pstk_field fields[FIXTURE_FIELDS];
    char paths[2][300];
    const char *parts[2] = {paths[0], paths[1]};
    fixture_open(&f);
    const char *out = fixture_path(&f, "out");
    for (uint32_t i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/n%u", f.dir, i);
        part_settings(&s, paths[i], i, 2);
        s.names = names[i];
        s.n_names = 2;
        CHECK_EQ(fixture_write(&s, i, i + 1, 10, &f.err), 0);
    }
    CHECK_EQ(merge_parts(parts, 2, out, 0, &f.err), PSTK_EINVAL);
    CHECK(strstr(f.err.message, "class names") != NULL);
    for (uint32_t k = 0; k < 3; k++) { /* another level, codec, name */
        memcpy(fields, fixture_fields, sizeof fields);
        fields[1].codec_level = k == 0 ? 7 : 0;
        fields[1].codec = k == 1 ? PSTK_CODEC_NONE : PSTK_CODEC_ZSTD;
        memcpy(fields[3].name, k == 2 ? "ix" : "id", 3);
        part_settings(&s, paths[1], 1, 2);
        s.fields = fields;
        s.overwrite = 1;
        s.names = names[0];
        s.n_names = 2;
        CHECK_EQ(fixture_write(&s, 1, 2, 10, &f.err), 0);
        CHECK_EQ(merge_parts(parts, 2, out, 0, &f.err), PSTK_EINVAL);
        CHECK(strstr(f.err.message, "fields, codecs or levels") != NULL);
    }
    CHECK_EQ(fixture_count(out), -1);
    fixture_close(&f);
}

TEST(equal_dictionaries_become_one)
{
    struct fixture f;
    struct pstk_writer_settings s;
    char paths[2][300];
    const char *parts[2] = {paths[0], paths[1]};
    fixture_open(&f);
    const char *out = fixture_path(&f, "out");
    for (uint32_t i = 0; i < 2; i++) { /* the same records twice: the same dictionary */
        snprintf(paths[i], sizeof paths[i], "%s/p%u", f.dir, i);
        part_settings(&s, paths[i], i, 2);
        s.shard_size = 0;
        CHECK_EQ(fixture_write(&s, 0, 100, 10, &f.err), 0);
        CHECK_EQ(fixture_count(paths[i]), 3 + FIXTURE_COLUMNS);
    }
    CHECK_EQ(merge_parts(parts, 2, out, 0, &f.err), 0);
    CHECK_EQ(fixture_count(out),
             4 + 2 * FIXTURE_COLUMNS); /* manifest, two shards, one dictionary */
    CHECK_EQ(fixture_verify(out), 0);
    fixture_close(&f);
}

TEST(an_empty_part_adds_nothing)
{
    struct fixture f;
    struct pstk_writer_settings s;
    char paths[2][300];
    const char *parts[2] = {paths[0], paths[1]};
    fixture_open(&f);
    const char *out = fixture_path(&f, "out");
    for (uint32_t i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/p%u", f.dir, i);
        part_settings(&s, paths[i], i, 2);
        CHECK_EQ(fixture_write(&s, 0, i ? 0 : 3, 10, &f.err), 0);
    }
    CHECK_EQ(merge_parts(parts, 2, out, 0, &f.err), 0);
    CHECK_EQ(fixture_verify(out), 0);
    fixture_close(&f);
}

TEST(a_merge_onto_a_part_or_other_files_changes_neither)
{
    struct fixture f;
    const char *parts[8];
    fixture_open(&f);
    CHECK_EQ(write_parts(&f, parts, 2), 0);
    for (int overwrite = 0; overwrite < 2; overwrite++) {
        CHECK_EQ(merge_parts(parts, 2, parts[0], overwrite, &f.err), PSTK_EINVAL);
        CHECK(strstr(f.err.message, "one of the parts") != NULL);
    }
    CHECK_EQ(fixture_verify(parts[0]), 0);
    const char *out = fixture_path(&f, "out");
    CHECK_EQ(mkdir(out, 0777), 0);
    fixture_put(out, "notes.txt", "mine");
    CHECK_EQ(merge_parts(parts, 2, out, 0, &f.err), PSTK_EEXIST);
    CHECK_EQ(fixture_count(out), 1);
    fixture_close(&f);
}

TEST(a_damaged_part_is_refused)
{
    struct fixture f;
    const char *parts[8];
    fixture_open(&f);
    CHECK_EQ(write_parts(&f, parts, 2), 0);
    const char *out = fixture_path(&f, "out");
    const char *shard = fixture_path(&f, "p1/part-00001-of-00002-000000.pstk");
    int fd = open(shard, O_RDWR);
    CHECK(fd >= 0);
    CHECK_EQ(pwrite(fd, "\x01", 1, 100), 1);
    CHECK_EQ(merge_parts(parts, 2, out, 0, &f.err), PSTK_EBADMSG);
    CHECK_EQ(pwrite(fd, "\x00", 1, 100), 1);
    CHECK_EQ(ftruncate(fd, 8192), 0);
    CHECK_EQ(merge_parts(parts, 2, out, 0, &f.err), PSTK_EBADMSG);
    CHECK(strstr(f.err.message, "part-00001") && strstr(f.err.message, "8192"));
    close(fd);
    unlink(shard);
    CHECK_EQ(merge_parts(parts, 2, out, 0, &f.err), PSTK_ENOENT);
    CHECK_EQ(fixture_count(out), -1);
    fixture_close(&f);
}

TEST(a_part_whose_manifest_lies_is_refused)
{
    struct fixture f;
    const char *parts[8];
    char identity[40], wrong[40];
    uint64_t n = 0;
    fixture_open(&f);
    CHECK_EQ(write_parts(&f, parts, 2), 0);
    CHECK_EQ(fixture_identity(parts[1], identity, &n), 0);
    memcpy(wrong, identity, sizeof wrong);
    wrong[31] = wrong[31] == '0' ? '1' : '0';
    CHECK_EQ(fixture_edit_manifest(parts[1], identity, wrong), 0);
    CHECK_EQ(merge_parts(parts, 2, fixture_path(&f, "out"), 0, &f.err), PSTK_EBADMSG);
    CHECK(strstr(f.err.message, "identity") != NULL);
    fixture_close(&f);
}

/* ---- over a data set that is there ------------------------------------------------------------
 */

/* Another data set at `path`, and a file of a user's. */
static int write_old(struct fixture *f, const char *path)
{
    struct pstk_writer_settings s;
    fixture_remove(path);
    part_settings(&s, path, 0, 1);
    int r = fixture_write(&s, 7, 40, 3000, &f->err);
    fixture_put(path, "README", "mine");
    return r;
}

static int has_identity(const char *path, const char *identity)
{
    char now[40];
    uint64_t n;
    return fixture_identity(path, now, &n) == 0 && strcmp(now, identity) == 0;
}

TEST(a_data_set_is_replaced_when_asked_and_other_files_stay)
{
    struct fixture f;
    const char *parts[8];
    char wanted[40], old[40];
    uint64_t n;
    fixture_open(&f);
    CHECK_EQ(write_parts(&f, parts, 3), 0);
    const char *out = fixture_path(&f, "out"), *once = fixture_path(&f, "once");
    CHECK_EQ(merge_parts(parts, 3, once, 0, &f.err), 0);
    CHECK_EQ(fixture_identity(once, wanted, &n), 0);
    CHECK_EQ(write_old(&f, out), 0);
    CHECK_EQ(fixture_identity(out, old, &n), 0);
    CHECK_EQ(mkdir(fixture_path(&f, "out/folder"), 0777), 0);
    fixture_put(out, "mine.pstk", "x");
    CHECK_EQ(merge_parts(parts, 3, out, 0, &f.err), PSTK_EEXIST);
    CHECK(strstr(f.err.message, "overwrite") != NULL);
    CHECK_EQ(merge_parts(parts, 2, out, 1, &f.err), PSTK_EINVAL);
    CHECK(has_identity(out, old));
    for (int round = 0; round < 3; round++) { /* also by the same parts again */
        CHECK_EQ(merge_parts(parts, 3, out, 1, &f.err), 0);
        CHECK(has_identity(out, wanted));
        CHECK_EQ(fixture_verify(out), 0);
        CHECK_EQ(fixture_count(out), fixture_count(once) + 3);
    }
    CHECK(fixture_exists(out, "README") && fixture_exists(out, "folder"));
    CHECK(fixture_exists(out, "mine.pstk"));
    for (int i = 0; i < 3; i++)
        CHECK_EQ(fixture_verify(parts[i]), 0);
    fixture_close(&f);
}

/* user: two paths; the first file takes the place of the second. */
static void replace_file(const void *user)
{
    const char *const *paths = user;
    (void)rename(paths[0], paths[1]);
}

/* Its files are looked at, and linked later, by their names. */
TEST(a_part_that_changes_meanwhile_is_refused_and_the_old_data_set_stays)
{
    struct fixture f;
    struct pstk_writer_settings s;
    char files[2][2][300], old[40];
    uint64_t n;
    fixture_open(&f);
    const char *out = fixture_path(&f, "out"), *part = fixture_path(&f, "p");
    CHECK_EQ(write_old(&f, out), 0);
    CHECK_EQ(fixture_identity(out, old, &n), 0);
    uint32_t n_files = fixture_count(out);
    for (int k = 0; k < 2; k++) {     /* a shard, a dictionary */
        for (int i = 0; i < 2; i++) { /* another one, and the part */
            struct pstk__manifest m;
            const char *path = fixture_path(&f, i ? "p" : "other");
            fixture_remove(path);
            part_settings(&s, path, 0, 1);
            CHECK_EQ(fixture_write(&s, i ? 0 : 100, i ? 100 : 200, 500, &f.err), 0);
            CHECK_EQ(pstk__manifest_load(&m, &pstk__store_local, path, &f.err), 0);
            CHECK(m.n_dictionaries > 0);
            snprintf(files[i][k], sizeof files[i][k], "%s/%s", path,
                     k ? m.dictionaries[0].file : m.shards[0].file);
            pstk__manifest_free(&m);
        }
        const char *const user[] = {files[0][k], files[1][k]};
        fault_arm(FAULT_LINK, 0, 0);
        fault.before = replace_file;
        fault.user = user;
        CHECK_EQ(merge_parts(&part, 1, out, 1, &f.err), PSTK_EBADMSG);
        CHECK_EQ(fault_disarm(), 1);
        CHECK(strstr(f.err.message, part) && strstr(f.err.message, "changed during the merge"));
        CHECK(has_identity(out, old));
        CHECK_EQ(fixture_verify(out), 0);
        CHECK_EQ(fixture_count(out), n_files);
    }
    fixture_close(&f);
}

/* It would lead to nothing once the merge has removed what it replaces. */
TEST(a_part_of_links_into_the_data_set_that_is_replaced_is_refused)
{
    struct fixture f;
    struct pstk_writer_settings s;
    char shard[300], hop[300];
    fixture_open(&f);
    const char *out = fixture_path(&f, "out"), *part = fixture_path(&f, "p");
    part_settings(&s, out, 0, 1);
    CHECK_EQ(fixture_write(&s, 0, 3, 10, &f.err), 0);
    for (int k = 0; k < 3;
         k++) { /* a link of the whole path, of one from its place, of two steps */
        fixture_remove(part);
        part_settings(&s, part, 0, 1);
        CHECK_EQ(fixture_write(&s, 0, 3, 10, &f.err), 0);
        snprintf(shard, sizeof shard, "%s/shard-000000.pstk", part);
        snprintf(hop, sizeof hop, "%s/hop", f.dir);
        CHECK_EQ(unlink(shard), 0);
        if (k == 2)
            CHECK_EQ(symlink("out/shard-000000.pstk", hop), 0);
        CHECK_EQ(symlink(k == 0   ? fixture_path(&f, "out/shard-000000.pstk")
                         : k == 1 ? "../out/shard-000000.pstk"
                                  : "../hop",
                         shard),
                 0);
        CHECK_EQ(fixture_verify(part), 0);
        CHECK_EQ(merge_parts(&part, 1, out, 1, &f.err), PSTK_EINVAL);
        CHECK(strstr(f.err.message, shard) && strstr(f.err.message, "symbolic link"));
        CHECK_EQ(fixture_verify(part), 0);
    }
    CHECK_EQ(merge_parts(&part, 1, fixture_path(&f, "elsewhere"), 0, &f.err), 0);
    fixture_close(&f);
}

TEST(a_writer_that_held_the_directory_commits_the_parts)
{
    struct fixture f;
    struct pstk_writer_settings s;
    struct pstk_writer *w, *other;
    const char *parts[8];
    char wanted[40];
    uint64_t n;
    fixture_open(&f);
    const char *out = fixture_path(&f, "out"), *once = fixture_path(&f, "once");
    for (int replace = 0; replace < 2; replace++) {
        if (replace)
            CHECK_EQ(write_old(&f, out), 0);
        part_settings(&s, out, 0, 1);
        s.overwrite = 1;
        CHECK_EQ(pstk_writer_open(&w, &s, &f.err), 0);
        CHECK_EQ(write_parts(&f, parts, 2), replace ? PSTK_EEXIST : 0);
        CHECK_EQ(pstk_writer_open(&other, &s, &f.err), PSTK_EBUSY);
        CHECK_EQ(merge_parts(parts, 2, out, 1, &f.err), PSTK_EBUSY);
        CHECK_EQ(pstk_writer_commit_parts(&w, parts, 2, &f.err), 0);
        CHECK(w == NULL);
        if (!replace)
            CHECK_EQ(merge_parts(parts, 2, once, 0, &f.err), 0);
        CHECK_EQ(fixture_identity(once, wanted, &n), 0);
        CHECK(has_identity(out, wanted));
        CHECK_EQ(fixture_verify(out), 0);
        CHECK_EQ(fixture_count(out), fixture_count(once) + replace);
    }
    fixture_close(&f);
}

TEST(parts_that_do_not_go_with_the_writer_are_refused)
{
    struct fixture f;
    struct pstk_writer_settings s;
    struct pstk_writer *w = NULL;
    const char *parts[8];
    fixture_open(&f);
    CHECK_EQ(write_parts(&f, parts, 2), 0);
    const char *out = fixture_path(&f, "out");
    CHECK_EQ(pstk_writer_commit_parts(&w, parts, 2, &f.err), PSTK_EINVAL);
    for (int k = 0; k < 6; k++) {
        static const char *const wanted[] = {"fields, codecs",        "records were added",
                                             "parts: value is empty", "part 1 of 2 is missing",
                                             "part 0 of 3",           "writing failed before"};
        part_settings(&s, out, 0, k == 4 ? 3 : 1);
        s.n_fields = k == 0 ? FIXTURE_FIELDS - 1 : FIXTURE_FIELDS;
        CHECK_EQ(pstk_writer_open(&w, &s, &f.err), 0);
        if (k == 1)
            CHECK_EQ(fixture_add(w, 0, 10, &f.err), 0);
        if (k == 5) {
            fault_arm(FAULT_MEMORY, 1, ENOMEM); /* after the values' check */
            CHECK_EQ(fixture_add(w, 0, 10, &f.err), PSTK_ENOMEM);
            fault_disarm();
        }
        uint32_t n = k == 2 ? 0 : k == 3 ? 1 : 2;
        CHECK_EQ(pstk_writer_commit_parts(&w, parts, n, &f.err),
                 k == 5 ? PSTK_ENOMEM : PSTK_EINVAL);
        CHECK(strstr(f.err.message, wanted[k]) != NULL);
        CHECK(w == NULL);
        CHECK_EQ(fixture_count(out), -1);
    }
    fixture_close(&f);
}

/* Does the manifest have this note? */
static int has_note(struct fixture *f, const char *path, const char *note)
{
    struct pstk__manifest m;
    int r = pstk__manifest_load(&m, &pstk__store_local, path, &f->err);
    int same = r == 0 && m.note && strcmp(m.note, note) == 0;
    pstk__manifest_free(&m);
    return same;
}

TEST(the_note_is_the_writers_or_that_of_the_first_part)
{
    struct fixture f;
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    fixture_open(&f);
    const char *out = fixture_path(&f, "out"), *part = fixture_path(&f, "p");
    part_settings(&s, part, 0, 1);
    s.note = "the part's";
    CHECK_EQ(fixture_write(&s, 0, 3, 10, &f.err), 0);
    for (int k = 0; k < 2; k++) {
        part_settings(&s, out, 0, 1);
        s.overwrite = 1;
        s.note = k ? "the writer's" : NULL;
        CHECK_EQ(pstk_writer_open(&w, &s, &f.err), 0);
        CHECK_EQ(pstk_writer_commit_parts(&w, &part, 1, &f.err), 0);
        CHECK(has_note(&f, out, k ? "the writer's" : "the part's"));
    }
    fixture_close(&f);
}

/* Open a writer and give it up: it removes what a killed one left. */
static int sweep_up(struct fixture *f, const char *path)
{
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    part_settings(&s, path, 0, 1);
    s.overwrite = 1;
    int r = pstk_writer_open(&w, &s, &f->err);
    pstk_writer_abort(&w);
    return r;
}

/* The merge is killed in place of its first, second, ... change to a file: the old data set stands,
 * or the new one, and the next writer removes all that was left. */
TEST(a_killed_merge_leaves_the_old_or_the_new_data_set)
{
    struct fixture f;
    const char *parts[8];
    char wanted[40], old[40];
    uint64_t n;
    int status = 0, n_old = 0, n_new = 0;
    fixture_open(&f);
    CHECK_EQ(write_parts(&f, parts, 2), 0);
    const char *out = fixture_path(&f, "out"), *once = fixture_path(&f, "once");
    CHECK_EQ(merge_parts(parts, 2, once, 0, &f.err), 0);
    CHECK_EQ(fixture_identity(once, wanted, &n), 0);
    CHECK_EQ(write_old(&f, out), 0);
    CHECK_EQ(fixture_identity(out, old, &n), 0);
    int n_old_files = fixture_count(out), n_new_files = fixture_count(once) + 1; /* README */
    for (int call = 0; n_new == 0 || WIFSIGNALED(status); call++) {
        if (!has_identity(out, old))
            CHECK_EQ(write_old(&f, out), 0);
        fflush(stdout);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            fault_arm(FAULT_DEATH, call, 0);
            _exit(merge_parts(parts, 2, out, 1, NULL) < 0);
        }
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
        int is_new = has_identity(out, wanted);
        CHECK(is_new || (has_identity(out, old) && n_new == 0));
        n_new += is_new;
        n_old += !is_new;
        CHECK_EQ(sweep_up(&f, out), 0);
        CHECK_EQ(fixture_verify(out), 0);
        CHECK_EQ(fixture_count(out), is_new ? n_new_files : n_old_files);
    }
    CHECK(n_old > 10 && n_new > 3);
    CHECK(fixture_verify(parts[0]) == 0 && fixture_verify(parts[1]) == 0);
    fixture_close(&f);
}

/* Fail the nth call of a kind for n = 0, 1, ... until none fails: then none or the new data set is
 * there, with `old` (its identity) the old or the new one. */
static int sweep(struct fixture *f, const char **parts, int kind, int native, const char *old)
{
    int ok = 1, n = 0, fds = fixture_n_fds(), fired = 1;
    char out[300];
    snprintf(out, sizeof out, "%s/out", f->dir);
    for (; ok && fired; n++) {
        if (old && !has_identity(out, old))
            ok = write_old(f, out) == 0;
        fault_arm(kind, n, native);
        int r = merge_parts(parts, 2, out, old != NULL, &f->err);
        fired = fault_disarm();
        ok = ok && fixture_n_fds() == fds && (fired ? r < 0 && f->err.message[0] : r == 0) &&
             (old ? fixture_verify(out) == 0 : fixture_none_or_whole(out)) &&
             (!old || (fixture_exists(out, "README") && (r < 0 || !has_identity(out, old))));
        if (!ok)
            printf("# kind %d, call %d: %d %s\n", kind, n, r, f->err.message);
        if (!old || !fired)
            fixture_remove(out);
    }
    return ok && n > 1 && fixture_verify(parts[0]) == 0 && fixture_verify(parts[1]) == 0;
}

TEST(any_call_may_fail)
{
    struct fixture f;
    const char *parts[8];
    char identity[40];
    uint64_t n;
    fixture_open(&f);
    const char *old = fixture_path(&f, "old");
    CHECK_EQ(write_parts(&f, parts, 2), 0);
    CHECK_EQ(write_old(&f, old), 0);
    CHECK_EQ(fixture_identity(old, identity, &n), 0);
    for (int k = 0; k < 2; k++) {
        const char *over = k ? identity : NULL;
        CHECK(sweep(&f, parts, FAULT_MEMORY, ENOMEM, over));
        CHECK(sweep(&f, parts, FAULT_WRITE, ENOSPC, over));
        CHECK(sweep(&f, parts, FAULT_READ, EIO, over));
        CHECK(sweep(&f, parts, FAULT_SYNC, EIO, over));
        CHECK(sweep(&f, parts, FAULT_RENAME, EIO, over));
        CHECK(sweep(&f, parts, FAULT_LINK, ENOSPC, over));
        CHECK(sweep(&f, parts, FAULT_OPEN, EMFILE, over));
    }
    fixture_close(&f);
}

/* The progress that on_progress saw, and the point at which it stops. */
struct watch {
    int n_calls, stop_at; /* calls; -1: never */
    uint64_t n_done, n_total;
    int falls; /* 1: n_done fell, or passed n_total */
};

static int on_progress(void *user, uint64_t n_done, uint64_t n_total)
{
    struct watch *w = user;
    w->falls |= n_done < w->n_done || n_done > n_total;
    w->n_done = n_done;
    w->n_total = n_total;
    return w->n_calls++ == w->stop_at;
}

TEST(a_watched_merge_counts_all_bytes)
{
    struct fixture f;
    struct watch w = {.stop_at = -1};
    const char *parts[8];
    fixture_open(&f);
    CHECK_EQ(write_parts(&f, parts, 3), 0);
    for (int copied = 0; copied < 2; copied++) {
        const char *out = fixture_path(&f, copied ? "copied" : "linked");
        struct pstk_dataset_info info = {.size = sizeof info};
        struct pstk_dataset *d;
        if (copied) {
            fault_arm(FAULT_LINK, 0, EXDEV);
            fault.always = 1;
        }
        w = (struct watch){.stop_at = -1};
        CHECK_EQ(merge_watched(parts, 3, out, 0, on_progress, &w, &f.err), 0);
        fault_disarm();
        CHECK_EQ(pstk_dataset_open(&d, out, NULL, &f.err), 0);
        CHECK_EQ(pstk_dataset_get_info(d, &info), 0);
        pstk_dataset_close(&d);
        CHECK(!w.falls && w.n_calls > 5);
        CHECK_EQ(w.n_done, w.n_total);
        CHECK(w.n_total <= info.bytes && info.bytes - w.n_total <= 3 * 256); /* dictionaries */
    }
    fixture_close(&f);
}

/* Is at `path` what was there before: a data set of this identity and n files, or ("") nothing? */
static int is_as_it_was(const char *path, const char *identity, int n_files)
{
    char now[40];
    uint64_t n;
    struct stat s;
    if (!*identity)
        return stat(path, &s) < 0 && errno == ENOENT;
    return fixture_identity(path, now, &n) == 0 && strcmp(now, identity) == 0 &&
           fixture_count(path) == n_files;
}

/* Stop a merge at each call of on_progress. Returns how many there are, -1 where one was not
 * stopped or left something. */
static int stop_everywhere(struct fixture *f, const char *const *parts, int copied)
{
    const char *out = fixture_path(f, "out");
    char before[40] = "";
    uint64_t n = 0;
    const int has_old = fixture_identity(out, before, &n) == 0;
    const int n_files = has_old ? fixture_count(out) : 0;
    for (int k = 0;; k++) {
        struct watch w = {.stop_at = k};
        if (copied) {
            fault_arm(FAULT_LINK, 0, EXDEV);
            fault.always = 1;
        }
        int r = merge_watched(parts, 3, out, has_old, on_progress, &w, &f->err);
        fault_disarm();
        if (r == 0)
            return k;
        if (r != PSTK_ECANCELED || !strstr(f->err.message, "stopped by its caller") ||
            w.n_calls != k + 1 || !is_as_it_was(out, has_old ? before : "", n_files))
            return -1;
    }
}

TEST(a_merge_that_its_caller_stops_leaves_what_was_there)
{
    struct fixture f;
    struct pstk_writer_settings s;
    const char *parts[8];
    fixture_open(&f);
    CHECK_EQ(write_parts(&f, parts, 3), 0);
    for (int copied = 0; copied < 2; copied++) {
        const char *out = fixture_path(&f, "out");
        CHECK(stop_everywhere(&f, parts, copied) > 5); /* onto nothing */
        CHECK_EQ(fixture_verify(out), 0);
        fixture_remove(out);
        fixture_settings(&s, out);
        CHECK_EQ(fixture_write(&s, 0, 20, 500, &f.err), 0);
        CHECK(stop_everywhere(&f, parts, copied) > 5);
        CHECK_EQ(fixture_verify(out), 0);
        fixture_remove(out);
    }
    for (int i = 0; i < 3; i++)
        CHECK_EQ(fixture_verify(parts[i]), 0);
    fixture_close(&f);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(merged_parts_are_a_single_pack_whatever_their_order),
        CASE(shards_are_linked_and_copied_where_links_are_refused),
        CASE(missing_double_and_foreign_parts_are_named),
        CASE(parts_of_other_settings_are_refused),
        CASE(equal_dictionaries_become_one),
        CASE(an_empty_part_adds_nothing),
        CASE(a_merge_onto_a_part_or_other_files_changes_neither),
        CASE(a_damaged_part_is_refused),
        CASE(a_part_whose_manifest_lies_is_refused),
        CASE(a_data_set_is_replaced_when_asked_and_other_files_stay),
        CASE(a_part_that_changes_meanwhile_is_refused_and_the_old_data_set_stays),
        CASE(a_part_of_links_into_the_data_set_that_is_replaced_is_refused),
        CASE(a_writer_that_held_the_directory_commits_the_parts),
        CASE(parts_that_do_not_go_with_the_writer_are_refused),
        CASE(the_note_is_the_writers_or_that_of_the_first_part),
        CASE(a_killed_merge_leaves_the_old_or_the_new_data_set),
        CASE(a_watched_merge_counts_all_bytes),
        CASE(a_merge_that_its_caller_stops_leaves_what_was_there),
        CASE(any_call_may_fail),
    };
    return RUN_CASES(cases);
}
