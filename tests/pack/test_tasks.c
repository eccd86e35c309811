/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of unknown number: written by the tasks of a pack, committed by its driver. */
#include "support/faults.h"
#include "support/fixture.h"
#include "support/merging.h"
#include "format/pstk/manifest_file.h"
#include "format/pstk/shard.h"

#include <sys/wait.h>

#define PACK "00112233445566778899aabbccddeeff"
#define OTHER "ffeeddccbbaa99887766554433221100"
#define N_RECORDS 60

static void task_settings(struct pstk_writer_settings *s, const char *path, const char *task,
                          uint32_t attempt)
{
    fixture_settings(s, path);
    s->shard_size = 64 << 10;
    s->dictionary_size = 256;
    s->pack_id = PACK;
    s->task = task;
    s->attempt = attempt;
}

/* The part of a task, with records [first, end). */
static int write_task(struct fixture *f, const char *path, const char *task, uint32_t attempt,
                      uint64_t first, uint64_t end)
{
    struct pstk_writer_settings s;
    task_settings(&s, path, task, attempt);
    return fixture_write(&s, first, end, 3000, &f->err);
}

/* Three tasks, at t0, t1, t2, of 20 records each; the keys do not sort as the records do. */
static int write_tasks(struct fixture *f, const char *paths[3])
{
    static const char *const keys[3] = {"m", "a/0", "z=1"};
    static char names[3][300];
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < 3; i++) {
        snprintf(names[i], sizeof names[i], "%s/t%u", f->dir, i);
        paths[i] = names[i];
        r = write_task(f, paths[i], keys[i], i, 20 * i, 20 * (i + 1));
    }
    return r;
}

/* Return whether the ids of the records are first[0] .. first[0] + 19, first[1] .. and so on. */
static int has_order(const char *path, const uint32_t *first, uint32_t n)
{
    struct pstk_dataset *d;
    int same = pstk_dataset_open(&d, path, NULL, NULL) == 0;
    for (uint64_t k = 0; same && k < 20 * (uint64_t)n; k++) {
        uint64_t *id = NULL, size = 0;
        same = pstk_dataset_get(d, k, 3, (void **)&id, &size, NULL, NULL) == 0 && size == 8 &&
               *id == first[k / 20] + k % 20;
        pstk_free(id);
    }
    pstk_dataset_close(&d);
    return same;
}

TEST(parts_of_tasks_join_in_the_order_of_the_list)
{
    struct fixture f;
    struct pstk_writer_settings s;
    const char *parts[3];
    char single[40], merged[40], reversed[40];
    uint64_t n = 0;
    fixture_open(&f);
    const char *whole = fixture_path(&f, "whole"), *out = fixture_path(&f, "out");
    const char *other = fixture_path(&f, "other");
    fixture_settings(&s, whole);
    CHECK_EQ(fixture_write(&s, 0, N_RECORDS, 3000, &f.err), 0);
    CHECK_EQ(fixture_identity(whole, single, &n), 0);
    CHECK_EQ(write_tasks(&f, parts), 0);
    CHECK_EQ(merge_parts(parts, 3, out, 0, &f.err), 0);
    CHECK_EQ(fixture_identity(out, merged, &n), 0);
    CHECK_STR(single, merged);
    CHECK_EQ(n, N_RECORDS);
    CHECK_EQ(fixture_verify(out), 0);
    CHECK(has_order(out, (const uint32_t[]){0, 20, 40}, 3));
    const char *back[] = {parts[2], parts[1], parts[0]};
    CHECK_EQ(merge_parts(back, 3, other, 0, &f.err), 0);
    CHECK_EQ(fixture_identity(other, reversed, &n), 0);
    CHECK(strcmp(single, reversed) != 0);
    CHECK_EQ(fixture_verify(other), 0);
    CHECK(has_order(other, (const uint32_t[]){40, 20, 0}, 3));
    CHECK_EQ(merge_parts(parts + 1, 2, fixture_path(&f, "some"), 0, &f.err), 0);
    CHECK(has_order(fixture_path(&f, "some"), (const uint32_t[]){20, 40}, 2));
    fixture_close(&f);
}

/* The manifest at a path; a failure leaves it empty. */
static struct pstk__manifest load(const char *path)
{
    struct pstk__manifest m;
    if (pstk__manifest_load(&m, &pstk__store_local, path, NULL) < 0)
        memset(&m, 0, sizeof m);
    return m;
}

TEST(a_part_says_its_pack_task_and_attempt_and_the_whole_does_not)
{
    struct fixture f;
    const char *parts[3];
    fixture_open(&f);
    const char *out = fixture_path(&f, "out");
    CHECK_EQ(write_tasks(&f, parts), 0);
    struct pstk__manifest m = load(parts[1]);
    CHECK(m.part == 0 && m.n_parts == 0);
    CHECK_STR(m.task.pack_id, PACK);
    CHECK_STR(m.task.key, "a/0");
    CHECK_EQ(m.task.attempt, 1);
    pstk__manifest_free(&m);
    CHECK_EQ(merge_parts(parts, 3, out, 0, &f.err), 0);
    m = load(out);
    CHECK(m.part == 0 && m.n_parts == 1 && !m.task.pack_id[0] && !m.task.key[0]);
    pstk__manifest_free(&m);
    fixture_close(&f);
}

/* Tag of the first shard at a path, and its file's name. */
static uint32_t first_tag(const char *path, char file[PSTK__MAX_FILE_NAME + 1])
{
    struct pstk__manifest m = load(path);
    size_t size = 0;
    struct pstk__shard_header h = {.tag = 0};
    snprintf(file, PSTK__MAX_FILE_NAME + 1, "%s", m.n_shards ? m.shards[0].file : "");
    char *shard;
    if (asprintf(&shard, "%s/%s", path, file) < 0)
        abort();
    uint8_t *bytes = fixture_load(shard, &size);
    if (bytes && size >= PSTK__HEADER_SIZE)
        (void)pstk__shard_header_check(&h, bytes, shard, NULL);
    free(bytes);
    free(shard);
    pstk__manifest_free(&m);
    return h.tag;
}

TEST(shards_of_a_task_have_bytes_names_and_tags_of_its_own)
{
    static const struct {
        const char *path, *task;
        uint32_t attempt;
    } makers[] = {{"a", "x", 0}, {"again", "x", 0}, {"b", "x", 1}, {"c", "x/1", 0}, {"d", "y", 0}};
    struct fixture f;
    char names[5][PSTK__MAX_FILE_NAME + 1];
    uint32_t tags[5];
    fixture_open(&f);
    for (int i = 0; i < 5; i++) { /* the same records */
        const char *path = fixture_path(&f, makers[i].path);
        CHECK_EQ(write_task(&f, path, makers[i].task, makers[i].attempt, 0, 60), 0);
        tags[i] = first_tag(path, names[i]);
        CHECK_EQ(strlen(names[i]), strlen("task-0123456789abcdef-000000.pstk"));
    }
    CHECK(fixture_same(fixture_path(&f, "a"), fixture_path(&f, "again")));
    for (int i = 1; i < 5; i++)
        for (int k = i + 1; k < 5; k++)
            CHECK(tags[i] != tags[k] && strcmp(names[i], names[k]) != 0);
    char maker[PSTK__TASK_TEXT];
    const struct pstk__task task = {PACK, "x/1", 7};
    CHECK_STR(pstk__task_text(&task, maker), PACK "/x/1/7");
    CHECK_EQ(pstk__shard_tag(maker, 12, 0xab), pstk__crc32c(0, PACK "/x/1/7/12/000000ab", 50));
    fixture_close(&f);
}

TEST(two_hundred_parts_of_the_same_records_join)
{
    static char paths[200][300];
    const char *parts[200];
    struct fixture f;
    char key[16];
    fixture_open(&f);
    const char *out = fixture_path(&f, "out");
    for (int i = 0; i < 200; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/t%d", f.dir, i);
        snprintf(key, sizeof key, "%05d", i);
        parts[i] = paths[i];
        CHECK_EQ(write_task(&f, paths[i], key, 0, 0, 2), 0);
    }
    CHECK_EQ(merge_parts(parts, 200, out, 0, &f.err), 0);
    struct pstk__manifest m = load(out);
    CHECK_EQ(m.n_samples, 400);
    CHECK_EQ(m.n_shards, 200);
    for (uint32_t i = 0; i < 200; i++)
        CHECK(strncmp(m.shards[i].file, "task-", 5) == 0); /* none had to be renamed */
    pstk__manifest_free(&m);
    CHECK_EQ(fixture_verify(out), 0);
    fixture_close(&f);
}

TEST(two_attempts_at_a_task_are_refused_and_one_is_taken)
{
    struct fixture f;
    const char *parts[3];
    fixture_open(&f);
    const char *out = fixture_path(&f, "out"), *second = fixture_path(&f, "second");
    CHECK_EQ(write_tasks(&f, parts), 0);
    CHECK_EQ(write_task(&f, second, "a/0", 9, 20, 40), 0);
    const char *both[] = {parts[0], parts[1], parts[2], second};
    const char *twice[] = {parts[2], parts[0], parts[2]};
    const char *one[] = {parts[0], second, parts[2]};
    CHECK_EQ(merge_parts(both, 4, out, 0, &f.err), PSTK_EINVAL);
    CHECK(strstr(f.err.message, "t1 (attempt 1) and ") && strstr(f.err.message, second) &&
          strstr(f.err.message, "second (attempt 9) are both of task a/0: give one of them"));
    CHECK_EQ(merge_parts(twice, 3, out, 0, &f.err), PSTK_EINVAL);
    CHECK(strstr(f.err.message, "are both of task z=1"));
    CHECK_EQ(fixture_count(out), -1);
    CHECK_EQ(merge_parts(one, 3, out, 0, &f.err), 0);
    CHECK(has_order(out, (const uint32_t[]){0, 20, 40}, 3));
    fixture_close(&f);
}

/* Merge parts of one pack. */
static int merge_of(struct fixture *f, const char *const *parts, uint32_t n, const char *pack_id)
{
    char out[300];
    snprintf(out, sizeof out, "%s/out", f->dir);
    const struct pstk_merge_settings s = {
        .size = sizeof s, .parts = parts, .n_parts = n, .out = out, .pack_id = pack_id};
    return pstk_merge(&s, &f->err);
}

TEST(parts_of_another_pack_and_numbered_parts_are_refused)
{
    struct fixture f;
    struct pstk_writer_settings s;
    const char *parts[3];
    fixture_open(&f);
    const char *other = fixture_path(&f, "other"), *numbered = fixture_path(&f, "numbered");
    const char *whole = fixture_path(&f, "whole");
    CHECK_EQ(write_tasks(&f, parts), 0);
    task_settings(&s, other, "q", 0);
    s.pack_id = OTHER;
    CHECK_EQ(fixture_write(&s, 0, 5, 10, &f.err), 0);
    fixture_settings(&s, numbered);
    s.n_parts = 2;
    s.part = 1;
    CHECK_EQ(fixture_write(&s, 0, 5, 10, &f.err), 0);
    fixture_settings(&s, whole);
    CHECK_EQ(fixture_write(&s, 0, 5, 10, &f.err), 0);
    const char *mixed[] = {parts[0], other}, *with_number[] = {parts[0], numbered};
    const char *with_whole[] = {whole, parts[0]};
    CHECK_EQ(merge_of(&f, mixed, 2, NULL), PSTK_EINVAL);
    CHECK(strstr(f.err.message, "t0 is of the pack " PACK) &&
          strstr(f.err.message, "other is of the pack " OTHER ": they were not packed together"));
    CHECK_EQ(merge_of(&f, with_number, 2, NULL), PSTK_EINVAL);
    CHECK(strstr(f.err.message, "numbered is part 1 of 2: they were not packed together"));
    CHECK_EQ(merge_of(&f, with_whole, 2, NULL), PSTK_EINVAL);
    CHECK(strstr(f.err.message, "whole is part 0 of 1, "));
    CHECK_EQ(merge_of(&f, parts, 3, OTHER), PSTK_EINVAL);
    CHECK(strstr(f.err.message,
                 "t0 is of the pack " PACK ", not of the pack " OTHER " that is merged"));
    CHECK_EQ(merge_of(&f, &whole, 1, PACK), PSTK_EINVAL);
    CHECK(strstr(f.err.message, "whole is part 0 of 1, not of the pack " PACK));
    CHECK_EQ(fixture_count(fixture_path(&f, "out")), -1);
    CHECK_EQ(merge_of(&f, parts, 3, PACK), 0);
    CHECK_EQ(fixture_verify(fixture_path(&f, "out")), 0);
    fixture_close(&f);
}

TEST(an_empty_part_is_verified_and_merged_but_not_opened)
{
    struct fixture f;
    struct pstk_dataset *d;
    const char *parts[3], *empty[2];
    fixture_open(&f);
    CHECK_EQ(write_tasks(&f, parts), 0);
    for (int i = 0; i < 2; i++) {
        empty[i] = fixture_path(&f, i ? "e1" : "e0");
        CHECK_EQ(write_task(&f, empty[i], i ? "e1" : "e0", 0, 0, 0), 0);
        CHECK_EQ(fixture_verify(empty[i]), 0);
        CHECK_EQ(pstk_dataset_open(&d, empty[i], NULL, &f.err), PSTK_ENODATA);
    }
    CHECK_EQ(pstk_dataset_open(&d, parts[0], NULL, &f.err), 0); /* as a numbered part */
    pstk_dataset_close(&d);
    CHECK_EQ(merge_of(&f, empty, 2, PACK), PSTK_EINVAL);
    CHECK(strstr(f.err.message, "and all other parts are empty"));
    const char *some[] = {empty[0], parts[0], empty[1], parts[1]};
    CHECK_EQ(merge_of(&f, some, 4, PACK), 0);
    CHECK(has_order(fixture_path(&f, "out"), (const uint32_t[]){0, 20}, 2));
    fixture_close(&f);
}

TEST(files_of_a_killed_attempt_are_refused_and_the_next_starts_over)
{
    struct fixture f;
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    const char *parts[3];
    int status;
    fixture_open(&f);
    CHECK_EQ(write_tasks(&f, parts), 0);
    const char *killed = fixture_path(&f, "killed"), *nothing = fixture_path(&f, "nothing");
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        fault_arm(FAULT_DEATH, 20, 0);
        _exit(write_task(&f, killed, "k", 0, 60, 80) < 0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && fixture_count(killed) > 1);
    const char *with_killed[] = {parts[0], killed}, *with_nothing[] = {parts[0], nothing};
    CHECK_EQ(merge_of(&f, with_killed, 2, PACK), PSTK_ENOENT);
    CHECK(strstr(f.err.message, killed) &&
          strstr(f.err.message, "has no manifest.json: its writer is at work or was killed; pack "
                                "it again, or leave it out"));
    CHECK_EQ(mkdir(nothing, 0777), 0);
    CHECK_EQ(merge_of(&f, with_nothing, 2, PACK), PSTK_ENOENT);
    CHECK(strstr(f.err.message, "so it is not a data set"));
    task_settings(&s, killed, "k", 1);
    CHECK_EQ(pstk_writer_open(&w, &s, &f.err), 0);
    CHECK(pstk_writer_n_leftovers(w) > 0);
    CHECK_EQ(merge_of(&f, with_killed, 2, PACK), PSTK_ENOENT); /* at work */
    CHECK_EQ(fixture_add(w, 60, 10, &f.err), 0);
    CHECK_EQ(pstk_writer_commit(&w, &f.err), 0);
    CHECK_EQ(fixture_count(killed), 2 + FIXTURE_COLUMNS);
    CHECK_EQ(merge_of(&f, with_killed, 2, PACK), 0);
    fixture_close(&f);
}

/* Commit parts through a writer with these members. */
static int commit_parts(struct fixture *f, const struct pstk_writer_settings *s,
                        const char *const *parts, uint32_t n)
{
    struct pstk_writer *w;
    int r = pstk_writer_open(&w, s, &f->err);
    return r < 0 ? r : pstk_writer_commit_parts(&w, parts, n, &f->err);
}

TEST(a_driver_commits_the_parts_of_its_pack_alone)
{
    struct fixture f;
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    const char *parts[3];
    fixture_open(&f);
    const char *out = fixture_path(&f, "out");
    CHECK_EQ(write_tasks(&f, parts), 0);
    fixture_settings(&s, out);
    s.pack_id = OTHER;
    CHECK_EQ(commit_parts(&f, &s, parts, 3), PSTK_EINVAL);
    CHECK(strstr(f.err.message, "not of the pack " OTHER));
    CHECK_EQ(fixture_count(out), -1);
    s.pack_id = PACK;
    CHECK_EQ(pstk_writer_open(&w, &s, &f.err), 0);
    CHECK_EQ(fixture_add(w, 0, 10, &f.err), PSTK_EINVAL);
    CHECK(strstr(f.err.message, "it can only commit parts"));
    CHECK_EQ(pstk_writer_commit(&w, &f.err), PSTK_EINVAL);
    CHECK_EQ(commit_parts(&f, &s, parts, 3), 0);
    CHECK(has_order(out, (const uint32_t[]){0, 20, 40}, 3));
    s.pack_id = NULL;
    s.overwrite = 1;
    CHECK_EQ(commit_parts(&f, &s, parts + 1, 2), 0);
    CHECK(has_order(out, (const uint32_t[]){20, 40}, 2));
    CHECK_EQ(fixture_verify(out), 0);
    fixture_close(&f);
}

TEST(the_part_of_a_task_may_be_made_of_parts)
{
    struct fixture f;
    struct pstk_writer_settings s;
    const char *parts[3];
    char paths[4][300];
    const char *numbered[4] = {paths[0], paths[1], paths[2], paths[3]};
    fixture_open(&f);
    CHECK_EQ(write_tasks(&f, parts), 0);
    for (uint32_t i = 0; i < 4; i++) { /* 60 .. 79, twice */
        snprintf(paths[i], sizeof paths[i], "%s/p%u", f.dir, i);
        fixture_settings(&s, paths[i]);
        s.part = i % 2;
        s.n_parts = 2;
        CHECK_EQ(fixture_write(&s, 60 + 10 * s.part, 70 + 10 * s.part, 3000, &f.err), 0);
    }
    const char *last = fixture_path(&f, "last"), *same = fixture_path(&f, "same");
    task_settings(&s, last, "last", 4);
    CHECK_EQ(commit_parts(&f, &s, numbered, 2), 0);
    task_settings(&s, same, "same", 0);
    CHECK_EQ(commit_parts(&f, &s, numbered + 2, 2), 0);
    struct pstk__manifest m = load(last);
    CHECK_EQ(m.n_parts, 0);
    CHECK_STR(m.task.key, "last");
    CHECK_EQ(m.task.attempt, 4);
    pstk__manifest_free(&m);
    const char *all[] = {parts[0], last, same}; /* the last two have shards of the same names */
    CHECK_EQ(merge_of(&f, all, 3, PACK), 0);
    CHECK(has_order(fixture_path(&f, "out"), (const uint32_t[]){0, 60, 60}, 3));
    CHECK_EQ(fixture_verify(fixture_path(&f, "out")), 0);
    CHECK(fixture_exists(fixture_path(&f, "out"), "p2-part-00000-of-00002-000000.pstk"));
    fixture_close(&f);
}

TEST(settings_that_make_no_task_are_named)
{
    static char long_key[202];
    static const struct {
        struct pstk_writer_settings s;
        const char *says;
    } cases[] = {
        {{.task = "a"}, "pack_id: value is NULL; must be the id of the pack that task a is of"},
        {{.pack_id = "0123", .task = "a"}, "pack_id: value is '0123'; must be 32 lower-case hex"},
        {{.pack_id = "00112233445566778899AABBCCDDEEFF"}, "must be 32 lower-case hex digits"},
        {{.pack_id = PACK "0", .task = "a"}, "must be 32 lower-case hex digits"},
        {{.pack_id = PACK, .task = ""}, "task: value is ''; must be 1 to 200 of the characters"},
        {{.pack_id = PACK, .task = "a b"}, "task: value is 'a b'; must be 1 to 200"},
        {{.pack_id = PACK, .task = "a\"b"}, "task: value is"},
        {{.pack_id = PACK, .task = long_key}, "task: value is 'aaaa"},
        {{.pack_id = PACK, .task = "a", .n_parts = 2}, "n_parts: value is 2; must be 0 with a"},
        {{.pack_id = "A", .n_parts = 2}, "pack_id: value is 'A'; must be 32 lower-case hex digits"},
        {{.attempt = 1}, "attempt: value is 1; must be 0 without a task"},
        {{.pack_id = PACK, .attempt = 1}, "attempt: value is 1; must be 0 without a task"},
    };
    struct fixture f;
    struct pstk_writer *w;
    memset(long_key, 'a', 201);
    fixture_open(&f);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pstk_writer_settings s;
        fixture_settings(&s, fixture_path(&f, "out"));
        s.pack_id = cases[i].s.pack_id;
        s.task = cases[i].s.task;
        s.attempt = cases[i].s.attempt;
        s.n_parts = cases[i].s.n_parts;
        CHECK_EQ(pstk_writer_open(&w, &s, &f.err), PSTK_EINVAL);
        if (!strstr(f.err.message, cases[i].says))
            printf("# case %zu: %s\n", i, f.err.message);
        CHECK(strstr(f.err.message, cases[i].says));
        CHECK_EQ(fixture_count(fixture_path(&f, "out")), -1);
    }
    fixture_close(&f);
}

TEST(settings_of_a_merge_that_are_wrong_are_named)
{
    const char *const parts[] = {"/nowhere"};
    const struct {
        struct pstk_merge_settings s;
        const char *says;
    } cases[] = {
        {{.size = 8}, "size: value is 8; must be sizeof(struct pstk_merge_settings)"},
        {{.size = sizeof cases[0].s, .out = "o"}, "parts: value is empty"},
        {{.size = sizeof cases[0].s, .parts = parts, .n_parts = 1}, "out: value is empty"},
        {{.size = sizeof cases[0].s, .parts = parts, .n_parts = 1, .out = "o", .pack_id = "7"},
         "pack_id: value is '7'; must be 32 lower-case hex digits"},
        {{.size = sizeof cases[0].s, .parts = parts, .n_parts = 1, .out = "o", .overwrite = 2},
         "overwrite: value is 2; must be 0 or 1"},
        {{.size = sizeof cases[0].s, .parts = parts, .n_parts = 1, .out = "o", .reserved = 3},
         "reserved: value is 3; must be 0"},
    };
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk_merge(NULL, &err), PSTK_EINVAL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_EQ(pstk_merge(&cases[i].s, &err), PSTK_EINVAL);
        if (!strstr(err.message, cases[i].says))
            printf("# case %zu: %s\n", i, err.message);
        CHECK(strstr(err.message, cases[i].says));
    }
    struct {
        struct pstk_merge_settings s;
        uint64_t more;
    } newer = {{.size = sizeof newer, .parts = parts, .n_parts = 1, .out = "o"}, 1};
    CHECK_EQ(pstk_merge(&newer.s, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "a setting is set that this version does not know"));
    newer.more = 0;
    CHECK_EQ(pstk_merge(&newer.s, &err), PSTK_ENOENT);
}

TEST(no_memory_leaves_no_data_set)
{
    struct fixture f;
    const char *parts[3];
    int n = 0, fired = 1;
    fixture_open(&f);
    CHECK_EQ(write_tasks(&f, parts), 0);
    const char *out = fixture_path(&f, "out");
    for (; fired; n++) {
        fault_arm(FAULT_MEMORY, n, ENOMEM);
        int r = merge_parts(parts, 3, out, 0, &f.err);
        fired = fault_disarm();
        CHECK(fired ? r < 0 && f.err.message[0] : r == 0);
        CHECK(!fired || fixture_count(out) == -1);
    }
    printf("# %d places\n", n);
    CHECK(n > 15);
    CHECK_EQ(fixture_verify(out), 0);
    fixture_close(&f);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(parts_of_tasks_join_in_the_order_of_the_list),
        CASE(a_part_says_its_pack_task_and_attempt_and_the_whole_does_not),
        CASE(shards_of_a_task_have_bytes_names_and_tags_of_its_own),
        CASE(two_hundred_parts_of_the_same_records_join),
        CASE(two_attempts_at_a_task_are_refused_and_one_is_taken),
        CASE(parts_of_another_pack_and_numbered_parts_are_refused),
        CASE(an_empty_part_is_verified_and_merged_but_not_opened),
        CASE(files_of_a_killed_attempt_are_refused_and_the_next_starts_over),
        CASE(a_driver_commits_the_parts_of_its_pack_alone),
        CASE(the_part_of_a_task_may_be_made_of_parts),
        CASE(settings_that_make_no_task_are_named),
        CASE(settings_of_a_merge_that_are_wrong_are_named),
        CASE(no_memory_leaves_no_data_set),
    };
    return RUN_CASES(cases);
}
