/* SPDX-License-Identifier: Apache-2.0 */
#include "support/faults.h"
#include "support/fixture.h"
#include "support/merging.h"

#include <math.h>
#include <sys/wait.h>

#define SMALL_SHARD (64u << 10)
#define MANY_CALLS 100000
#define N 1300 /* records: i64 values of one shard take 3 pages, u32 values 2 */

/* Write N records to "DIR/NAME", in one shard or many; the path. */
static const char *write_data(struct fixture *f, const char *name, uint64_t shard_size)
{
    struct pstk_writer_settings s;
    fixture_settings(&s, fixture_path(f, name));
    s.shard_size = shard_size;
    s.dictionary_size = 1;
    return fixture_write(&s, 0, N, 20, &f->err) < 0 ? "" : s.path;
}

static int64_t verify(const char *path)
{
    return pstk_verify(path, 0, 2, NULL, NULL, NULL, NULL);
}

/* Return whether values first .. first + n - 1 of the columns id and txt.size are those of the
 * records. */
static int check_range(struct pstk_dataset *d, uint64_t first, uint64_t n)
{
    int64_t *ids = malloc(n * 8 + 1);
    uint32_t *sizes = malloc(n * 4 + 1);
    int r = pstk_dataset_read_column(d, "id", first, n, ids, n * 8, NULL);
    r = r ? r : pstk_dataset_read_column(d, "txt.size", first, n, sizes, n * 4, NULL);
    for (uint64_t i = 0; r == 0 && i < n; i++) {
        char text[256];
        r = ids[i] != (int64_t)(first + i) || sizes[i] != fixture_text(text, first + i);
    }
    free(ids);
    free(sizes);
    return r == 0;
}

TEST(every_range_of_a_column_has_the_values_of_the_records)
{
    struct fixture f;
    fixture_open(&f);
    for (int many = 0; many < 2; many++) {
        struct pstk_dataset *d;
        struct pstk_dataset_info info = {.size = sizeof info};
        const char *path = write_data(&f, many ? "many" : "one", many ? SMALL_SHARD : 0);
        CHECK_EQ(pstk_dataset_open(&d, path, NULL, &f.err), 0);
        CHECK_EQ(pstk_dataset_get_info(d, &info), 0);
        CHECK(many ? info.n_shards > 5 : info.n_shards == 1);
        for (uint64_t first = 0; first <= N; first += 37)
            for (uint64_t n = 0; first + n <= N; n += n < 3 ? 1 : 101)
                CHECK(check_range(d, first, n));
        CHECK(check_range(d, 0, N));
        CHECK(check_range(d, 510, 510) && check_range(d, 509, 2) && check_range(d, N, 0));
        pstk_dataset_close(&d);
        CHECK_EQ(verify(path), 0);
    }
    fixture_close(&f);
}

TEST(the_columns_of_a_data_set_are_listed_with_their_meaning)
{
    static const struct {
        const char *name;
        uint32_t dtype, fact, field;
    } expected[FIXTURE_COLUMNS] = {
        {"img.size", PSTK_U32, PSTK_COLUMN_SIZE, 0},
        {"img.width", PSTK_U32, PSTK_COLUMN_WIDTH, 0},
        {"img.height", PSTK_U32, PSTK_COLUMN_HEIGHT, 0},
        {"txt.size", PSTK_U32, PSTK_COLUMN_SIZE, 1},
        {"raw.size", PSTK_U32, PSTK_COLUMN_SIZE, 2},
        {"id", PSTK_I64, PSTK_COLUMN_VALUE, 3},
    };
    struct fixture f;
    struct pstk_dataset *d;
    struct pstk_column_info info = {.size = sizeof info};
    fixture_open(&f);
    const char *path = write_data(&f, "d", 0);
    CHECK_EQ(pstk_dataset_open(&d, path, NULL, &f.err), 0);
    CHECK_EQ(pstk_dataset_n_columns(d), FIXTURE_COLUMNS);
    for (uint32_t i = 0; i < FIXTURE_COLUMNS; i++) {
        CHECK_EQ(pstk_dataset_get_column_info(d, i, &info), 0);
        CHECK_STR(info.name, expected[i].name);
        CHECK_EQ(info.dtype, expected[i].dtype);
        CHECK_EQ(info.fact, expected[i].fact);
        CHECK_EQ(info.field, expected[i].field);
        CHECK_EQ(info.bytes, 4096 * (expected[i].dtype == PSTK_I64 ? 4 : 3));
    }
    CHECK_EQ(pstk_dataset_read_column(d, "none", 0, 1, &info, sizeof info, &f.err), PSTK_ENOENT);
    CHECK(strstr(f.err.message, "has no column none; its columns are img.size, img.width"));
    CHECK_EQ(pstk_dataset_read_column(d, "id", 1, N, &info, sizeof info, &f.err), PSTK_EINVAL);
    CHECK_EQ(pstk_dataset_read_column(d, "id", UINT64_MAX, 2, &info, 16, &f.err), PSTK_EINVAL);
    CHECK_EQ(pstk_dataset_read_column(d, "id", 0, 1, &info, 7, &f.err), PSTK_EINVAL);
    CHECK(strstr(f.err.message, "out_size: value is 7; must be at least 8"));
    pstk_dataset_close(&d);
    fixture_close(&f);
}

TEST(a_writer_that_wants_none_writes_the_same_records_without_columns)
{
    struct fixture f;
    struct pstk_writer_settings s;
    struct pstk_dataset *d;
    char with[40], without[40];
    uint64_t n;
    fixture_open(&f);
    CHECK_EQ(fixture_identity(write_data(&f, "with", 0), with, &n), 0);
    fixture_settings(&s, fixture_path(&f, "without"));
    s.columns = 1;
    s.dictionary_size = 1;
    CHECK_EQ(fixture_write(&s, 0, N, 20, &f.err), 0);
    CHECK_EQ(fixture_count(s.path), 2);
    CHECK_EQ(fixture_identity(s.path, without, &n), 0);
    CHECK_STR(with, without);
    CHECK_EQ(pstk_dataset_open(&d, s.path, NULL, &f.err), 0);
    CHECK_EQ(pstk_dataset_n_columns(d), 0);
    CHECK_EQ(pstk_dataset_read_column(d, "id", 0, 1, &n, 8, &f.err), PSTK_ENOENT);
    CHECK(strstr(f.err.message, "it has none"));
    pstk_dataset_close(&d);
    s.columns = 2;
    s.overwrite = 1;
    CHECK_EQ(fixture_write(&s, 0, N, 20, &f.err), PSTK_EINVAL);
    fixture_close(&f);
}

/* ---- damage ---------------------------------------------------------------------------------- */

struct found {
    int n, n_elsewhere;
    char file[64];
    struct pstk_error last;
};

static int on_bad(void *user, const struct pstk_error *bad)
{
    struct found *found = user;
    found->n++;
    found->n_elsewhere += strcmp(bad->shard, found->file) != 0;
    found->last = *bad;
    return 0;
}

/* Change a byte of a file: its bit 0. */
static int flip(const char *directory, const char *name, off_t at)
{
    char path[600];
    uint8_t byte;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, O_RDWR);
    if (fd < 0 || pread(fd, &byte, 1, at) != 1)
        return -1;
    byte ^= 1;
    const int r = pwrite(fd, &byte, 1, at) == 1 ? 0 : -1;
    close(fd);
    return r;
}

TEST(damage_to_a_column_fails_only_its_reader_verify_and_check)
{
    struct fixture f;
    int64_t ids[N];
    fixture_open(&f);
    const char *path = write_data(&f, "d", 0);
    for (off_t at = 3; at < 4 * 4096; at += 509) {
        struct pstk_dataset *d;
        void *data;
        uint64_t size;
        struct found found = {.file = "shard-000000.id.pcol"}, checked = found;
        const uint64_t page = (uint64_t)at / 4096;
        CHECK_EQ(flip(path, found.file, at), 0);
        CHECK_EQ(pstk_dataset_open(&d, path, NULL, &f.err), 0);
        CHECK_EQ(pstk_dataset_get(d, 7, 3, &data, &size, NULL, &f.err), 0);
        pstk_free(data);
        CHECK_EQ(pstk_dataset_read_column(d, "id", 0, N, ids, sizeof ids, &f.err), PSTK_EBADMSG);
        CHECK_STR(f.err.shard, found.file);
        CHECK(f.err.offset <= (uint64_t)at && (uint64_t)at < f.err.offset + f.err.length);
        CHECK_EQ(pstk_dataset_read_column(d, "img.width", 0, N, ids, sizeof ids, &f.err), 0);
        if (page > 0) { /* pages that are not damaged can be read */
            const uint64_t other = page == 1 ? 510 : 0;
            CHECK_EQ(pstk_dataset_read_column(d, "id", other, 280, ids, sizeof ids, &f.err), 0);
            CHECK_EQ(ids[279], (int64_t)other + 279);
        }
        CHECK_EQ(pstk_dataset_check(d, on_bad, &checked, &f.err), page == 0);
        CHECK(pstk_verify(path, 0, 1, on_bad, NULL, &found, &f.err) == 1 && found.n == 1);
        CHECK(found.n_elsewhere == 0 && checked.n_elsewhere == 0);
        CHECK_EQ(found.last.offset, 4096 * page);
        pstk_dataset_close(&d);
        CHECK_EQ(flip(path, found.file, at), 0);
    }
    CHECK_EQ(verify(path), 0);
    fixture_close(&f);
}

TEST(a_file_that_is_missing_cut_short_or_another_is_named)
{
    struct fixture f;
    struct pstk_dataset *d;
    int64_t value;
    fixture_open(&f);
    const char *path = write_data(&f, "d", 0), *other = write_data(&f, "e", 100u << 10);
    char id[300], moved[300], from[300];
    snprintf(id, sizeof id, "%s/shard-000000.id.pcol", path);
    snprintf(moved, sizeof moved, "%s/moved", f.dir);
    snprintf(from, sizeof from, "%s/shard-000001.id.pcol", other);
    CHECK_EQ(pstk_dataset_open(&d, path, NULL, &f.err), 0);
    CHECK_EQ(rename(id, moved), 0);
    struct found found = {.file = "shard-000000.id.pcol"};
    CHECK(pstk_dataset_read_column(d, "id", 0, 1, &value, 8, &f.err) < 0);
    CHECK_STR(f.err.shard, found.file);
    CHECK_EQ(pstk_verify(path, 0, 1, on_bad, NULL, &found, &f.err), 1);
    CHECK_EQ(rename(from, id), 0); /* a column of another shard */
    CHECK_EQ(pstk_dataset_read_column(d, "id", 0, 1, &value, 8, &f.err), PSTK_EBADMSG);
    CHECK_EQ(pstk_verify(path, 0, 1, on_bad, NULL, &found, &f.err), 1);
    CHECK_EQ(rename(moved, id), 0);
    CHECK_EQ(truncate(id, 8192), 0);
    CHECK_EQ(pstk_dataset_read_column(d, "id", 0, 1, &value, 8, &f.err), PSTK_EBADMSG);
    CHECK(strstr(f.err.message, "its size in bytes is 8192, the manifest says 16384"));
    CHECK_EQ(pstk_verify(path, 0, 1, on_bad, NULL, &found, &f.err), 1);
    CHECK_EQ(found.n_elsewhere, 0);
    pstk_dataset_close(&d);
    fixture_close(&f);
}

/* Values with right checksums that are not those of the records. */
TEST(verify_finds_values_that_the_records_do_not_have)
{
    struct fixture f;
    struct found found = {.file = "shard-000000.id.pcol"};
    int64_t ids[N];
    fixture_open(&f);
    const char *path = write_data(&f, "d", 0);
    for (int i = 0; i < N; i++)
        ids[i] = i == 1100 ? -1 : i;
    const struct pstk_new_column column = {.size = sizeof column,
                                           .dtype = PSTK_I64,
                                           .name = "id",
                                           .values = ids,
                                           .n = N,
                                           .overwrite = 1};
    CHECK_EQ(pstk_column_add(path, &column, NULL, NULL, &f.err), 0);
    CHECK_EQ(verify(path), 0); /* an added column need not have the records' values */
    snprintf(found.file, sizeof found.file, "shard-000000.id.1.pcol");
    CHECK(fixture_exists(path, found.file));
    CHECK_EQ(pstk_verify(path, 0, 1, on_bad, NULL, &found, &f.err), 0);
    /* A manifest that says otherwise, of the same length: "field" and "fact" instead of spaces. */
    char text[4096], manifest[400];
    size_t size;
    snprintf(manifest, sizeof manifest, "%s/manifest.json", path);
    uint8_t *bytes = fixture_load(manifest, &size);
    CHECK(bytes && size < sizeof text);
    bytes[size] = 0;
    char *at = strstr((char *)bytes, "\"files\":\"id.1\"");
    CHECK(at);
    int n = snprintf(text, sizeof text, "%.*s\"field\":\"id\",\"fact\":\"value\",%s",
                     (int)(at - (char *)bytes), (char *)bytes, at);
    n -= 22;
    n += sprintf(text + n, ",\"crc32c\":\"%08x\"}\n", pstk__crc32c(0, text, (uint64_t)n));
    fixture_put(path, "manifest.json", text);
    free(bytes);
    CHECK_EQ(pstk_verify(path, 0, 1, on_bad, NULL, &found, &f.err), 1);
    CHECK(
        strstr(found.last.message, "page 2, records 1020 to 1299: some values differ from those"));
    CHECK_EQ(found.last.offset, 3 * 4096);
    CHECK_EQ(found.n_elsewhere, 0);
    fixture_close(&f);
}

/* ---- adding ---------------------------------------------------------------------------------- */

static int add(const char *path, const char *name, const double *values, uint64_t n, int overwrite,
               struct pstk_error *err)
{
    const struct pstk_new_column column = {.size = sizeof column,
                                           .dtype = PSTK_F64,
                                           .name = name,
                                           .values = values,
                                           .n = n,
                                           .overwrite = (uint32_t)overwrite};
    return pstk_column_add(path, &column, NULL, NULL, err);
}

TEST(an_added_column_keeps_the_identity_and_open_data_sets)
{
    struct fixture f;
    struct pstk_dataset *old, *d;
    char before[40], after[40];
    double weights[N], back[N];
    uint64_t n;
    fixture_open(&f);
    const char *path = write_data(&f, "d", SMALL_SHARD);
    const int n_files = fixture_count(path);
    for (int i = 0; i < N; i++)
        weights[i] = 1.0 / (i + 1);
    CHECK_EQ(fixture_identity(path, before, &n), 0);
    CHECK_EQ(pstk_dataset_open(&old, path, NULL, &f.err), 0);
    CHECK_EQ(add(path, "weight", weights, N, 0, &f.err), 0);
    CHECK_EQ(fixture_identity(path, after, &n), 0);
    CHECK_STR(before, after);
    CHECK(check_range(old, 0, N));
    CHECK_EQ(pstk_dataset_read_column(old, "weight", 0, 1, back, 8, &f.err), PSTK_ENOENT);
    CHECK_EQ(pstk_dataset_open(&d, path, NULL, &f.err), 0);
    CHECK_EQ(pstk_dataset_read_column(d, "weight", 0, N, back, sizeof back, &f.err), 0);
    CHECK(memcmp(weights, back, sizeof back) == 0);
    CHECK_EQ(verify(path), 0);

    CHECK_EQ(add(path, "weight", weights, N, 0, &f.err), PSTK_EEXIST);
    weights[5] = 99;
    CHECK_EQ(add(path, "weight", weights, N, 1, &f.err), 0);
    CHECK_EQ(pstk_dataset_read_column(d, "weight", 0, 1, back, 8, &f.err), PSTK_ENOENT);
    CHECK(strstr(f.err.message, "the columns of the data set were changed while it was open"));
    CHECK(check_range(d, 0, N)); /* the others are as they were */
    pstk_dataset_close(&d);
    CHECK_EQ(pstk_dataset_open(&d, path, NULL, &f.err), 0);
    CHECK_EQ(pstk_dataset_read_column(d, "weight", 5, 1, back, 8, &f.err), 0);
    CHECK(back[0] == 99);
    pstk_dataset_close(&d);
    CHECK_EQ(pstk_column_remove(path, "weight", &f.err), 0);
    CHECK_EQ(fixture_count(path), n_files);
    CHECK_EQ(pstk_column_remove(path, "weight", &f.err), PSTK_ENOENT);
    CHECK_EQ(verify(path), 0);
    CHECK(check_range(old, 0, N));
    pstk_dataset_close(&old);
    fixture_close(&f);
}

static int stop_at_2(void *user, uint64_t n_done, uint64_t n_total)
{
    return n_done > n_total || ++*(int *)user == 2;
}

TEST(a_refused_or_cancelled_column_changes_nothing)
{
    struct fixture f;
    double weights[N] = {0};
    int n_calls = 0;
    fixture_open(&f);
    const char *path = write_data(&f, "d", SMALL_SHARD);
    const int n_files = fixture_count(path);
    CHECK_EQ(add(path, "w", weights, N - 1, 0, &f.err), PSTK_EINVAL);
    CHECK(strstr(f.err.message, "the array has 1299 values; must have 1300, one for each sample"));
    CHECK_EQ(add(path, "a b", weights, N, 0, &f.err), PSTK_EINVAL);
    CHECK_EQ(add(path, "", weights, N, 0, &f.err), PSTK_EINVAL);
    CHECK_EQ(add(path, "id", weights, N, 0, &f.err), PSTK_EEXIST);
    CHECK_EQ(add(fixture_path(&f, "none"), "w", weights, N, 0, &f.err), PSTK_ENOENT);
    weights[1234] = NAN;
    CHECK_EQ(add(path, "w", weights, N, 0, &f.err), PSTK_EINVAL);
    CHECK(strstr(f.err.message, "column w: the value of sample 1234 is NaN"));
    weights[1234] = INFINITY;
    const struct pstk_new_column column = {
        .size = sizeof column, .dtype = PSTK_F64, .name = "w", .values = weights, .n = N};
    CHECK_EQ(pstk_column_add(path, &column, stop_at_2, &n_calls, &f.err), PSTK_ECANCELED);
    CHECK_EQ(fixture_count(path), n_files);
    CHECK_EQ(add(path, "w", weights, N, 0, &f.err), 0);
    CHECK_EQ(verify(path), 0);
    fixture_close(&f);
}

/* Any call may fail: the old state or the new one. */
TEST(an_addition_that_fails_leaves_the_old_columns_or_the_new_ones)
{
    static const int kinds[] = {FAULT_MEMORY, FAULT_WRITE,  FAULT_READ,
                                FAULT_SYNC,   FAULT_RENAME, FAULT_OPEN};
    struct fixture f;
    double weights[10] = {1, 2, 3};
    struct pstk_writer_settings s;
    fixture_open(&f);
    fixture_settings(&s, fixture_path(&f, "d"));
    s.dictionary_size = 1;
    CHECK_EQ(fixture_write(&s, 0, 10, 20, &f.err), 0);
    CHECK_EQ(add(s.path, "w", weights, 10, 0, &f.err), 0);
    const int n_files = fixture_count(s.path);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        int fired = 1;
        for (int n = 0; fired; n++) {
            fault_arm(kinds[k], n, ENOSPC);
            const int r = add(s.path, "w", weights, 10, 1, &f.err);
            fired = fault_disarm();
            CHECK(fired || r == 0);
            CHECK_EQ(verify(s.path), 0);
            CHECK_EQ(add(s.path, "w", weights, 10, 1, &f.err), 0); /* tidies up */
            CHECK_EQ(fixture_count(s.path), n_files);
        }
    }
    fixture_close(&f);
}

/* The operations that may be killed. */
enum change { ADD, REPLACE, REMOVE, N_CHANGES };

#define OLD 1.0 /* each value of column w, before a change and ... */
#define NEW 2.0 /* ... after it */

static int change(const char *path, enum change how)
{
    double values[N];
    for (int i = 0; i < N; i++)
        values[i] = NEW;
    return how == REMOVE ? pstk_column_remove(path, "w", NULL)
                         : add(path, "w", values, N, how == REPLACE, NULL);
}

/* Bring back the state before a change. The next change removes what a killed one left. */
static int undo(const char *path, enum change how)
{
    double values[N];
    for (int i = 0; i < N; i++)
        values[i] = OLD;
    const int r = add(path, "w", values, N, 1, NULL);
    return r == 0 && how == ADD ? pstk_column_remove(path, "w", NULL) : r;
}

/* Return the value that all samples have in column w; 0: there is no column; -1: anything else. */
static double value_of_all(const char *path)
{
    struct pstk_dataset *d;
    double values[N];
    if (pstk_dataset_open(&d, path, NULL, NULL) < 0)
        return -1;
    const int r = pstk_dataset_read_column(d, "w", 0, N, values, sizeof values, NULL);
    pstk_dataset_close(&d);
    for (int i = 1; r == 0 && i < N; i++)
        if (values[i] != values[0])
            return -1;
    return r == PSTK_ENOENT ? 0 : r < 0 ? -1 : values[0];
}

/* Kill the change in place of its first, second, ... call that changes files. Returns how many
 * times the old and the new state stood. */
static int kill_each_call(const char *path, enum change how, int *n_old, int *n_new)
{
    const double before = how == ADD ? 0 : OLD, after = how == REMOVE ? 0 : NEW;
    int status = 0, is_right = undo(path, how) == 0;
    const int n_files = fixture_count(path);
    for (int call = 0; is_right && (*n_new == 0 || WIFSIGNALED(status)); call++) {
        fflush(stdout);
        const pid_t child = fork();
        if (child == 0) {
            fault_arm(FAULT_DEATH, call, 0);
            _exit(change(path, how) < 0);
        }
        is_right = child > 0 && waitpid(child, &status, 0) == child &&
                   (WIFSIGNALED(status) || WEXITSTATUS(status) == 0) && verify(path) == 0;
        const double value = value_of_all(path);
        *n_new += value == after;
        *n_old += value == before;
        is_right = is_right && (value == after || (value == before && *n_new == 0)) &&
                   undo(path, how) == 0 && fixture_count(path) == n_files;
        if (!is_right)
            printf("# change %d, call %d: value %g\n", how, call, value);
    }
    return is_right;
}

TEST(a_killed_change_leaves_the_old_column_or_the_new_one)
{
    struct fixture f;
    fixture_open(&f);
    const char *path = write_data(&f, "d", 12 * SMALL_SHARD);
    for (enum change how = ADD; how < N_CHANGES; how++) {
        int n_old = 0, n_new = 0;
        CHECK(kill_each_call(path, how, &n_old, &n_new));
        printf("# %d kills left the old state, %d the new one\n", n_old, n_new - 1);
        CHECK(n_old > 5 && n_new > 2);
    }
    fixture_close(&f);
}

static int has_no_locks; /* 1: the file system has none */

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);
int __wrap_flock(int fd, int operation)
{
    if (!has_no_locks)
        return __real_flock(fd, operation);
    errno = ENOLCK;
    return -1;
}

/* The journal of a killed change also lists the files of the column that it was to replace. */
TEST(files_of_a_killed_change_without_locks_can_be_removed_as_advised)
{
    struct fixture f;
    double weights[N] = {0};
    char journal[400];
    fixture_open(&f);
    const char *path = write_data(&f, "d", 0);
    CHECK_EQ(add(path, "w", weights, N, 0, &f.err), 0);
    fixture_put(path, ".tmp-writer", "shard-000000.w.pcol\nshard-000000.w.1.pcol\n");
    has_no_locks = 1;
    CHECK_EQ(add(path, "w", weights, N, 1, &f.err), PSTK_EBUSY);
    CHECK(strstr(f.err.message, "has no locks); if none is, remove its files .tmp-*"));
    snprintf(journal, sizeof journal, "%s/.tmp-writer", path);
    CHECK_EQ(unlink(journal), 0);
    CHECK_EQ(verify(path), 0);
    CHECK_EQ(add(path, "w", weights, N, 1, &f.err), 0);
    has_no_locks = 0;
    CHECK_EQ(verify(path), 0);
    fixture_close(&f);
}

/* ---- merging --------------------------------------------------------------------------------- */

TEST(merging_keeps_the_columns_that_all_parts_have)
{
    struct fixture f;
    struct pstk_dataset *d;
    struct pstk_dataset_info info = {.size = sizeof info};
    double weights[N] = {3};
    char paths[3][300];
    const char *parts[3] = {paths[0], paths[1], paths[2]};
    fixture_open(&f);
    for (uint32_t i = 0; i < 3; i++) {
        struct pstk_writer_settings s;
        snprintf(paths[i], sizeof paths[i], "%s/p%u", f.dir, i);
        fixture_settings(&s, paths[i]);
        s.part = i;
        s.n_parts = 3;
        s.shard_size = SMALL_SHARD;
        s.dictionary_size = 1;
        CHECK_EQ(fixture_write(&s, i == 0 ? 0 : 700,
                               i == 0   ? 700
                               : i == 1 ? 700
                                        : N,
                               20, &f.err),
                 0);
    }
    CHECK_EQ(add(paths[0], "both", weights, 700, 0, &f.err), 0);
    CHECK_EQ(add(paths[2], "both", weights, 600, 0, &f.err), 0);
    CHECK_EQ(add(paths[2], "both", weights, 600, 1, &f.err), 0); /* other file names */
    CHECK_EQ(add(paths[0], "first", weights, 700, 0, &f.err), 0);
    CHECK_EQ(add(paths[1], "empty", weights, 0, 0, &f.err), PSTK_EINVAL);
    CHECK(strstr(f.err.message, "is an empty part"));
    const char *out = fixture_path(&f, "out");
    fault_arm(FAULT_LINK, 1, ENOSPC); /* the first column file fails */
    CHECK(merge_parts(parts, 3, out, 0, &f.err) < 0);
    CHECK_EQ(fault_disarm(), 1);
    CHECK(strstr(f.err.message, "No space left") && !strstr(f.err.message, "restore it"));
    fault_arm(FAULT_SYNC, MANY_CALLS, 0); /* none fails: they are counted */
    CHECK_EQ(merge_parts(parts, 3, out, 0, &f.err), 0);
    const int n_syncs = MANY_CALLS - atomic_load(&fault.left);
    fault_disarm();
    CHECK_EQ(verify(out), 0);
    CHECK_EQ(pstk_dataset_open(&d, out, NULL, &f.err), 0);
    CHECK_EQ(pstk_dataset_get_info(d, &info), 0);
    CHECK((uint64_t)n_syncs <= 2 * info.n_shards + 8); /* not one for each of their column files */
    CHECK(check_range(d, 0, N) && check_range(d, 690, 20));
    CHECK_EQ(pstk_dataset_read_column(d, "both", 700, 1, weights, 8, &f.err), 0);
    CHECK(weights[0] == 3);
    CHECK_EQ(pstk_dataset_n_columns(d), FIXTURE_COLUMNS + 1);
    CHECK_EQ(pstk_dataset_read_column(d, "first", 0, 1, weights, 8, &f.err), PSTK_ENOENT);
    pstk_dataset_close(&d);
    CHECK_EQ(flip(paths[2], "part-00002-of-00003-000000.id.pcol", 100), 0);
    CHECK_EQ(merge_parts(parts, 3, fixture_path(&f, "bad"), 0, &f.err), PSTK_EBADMSG);
    CHECK(strstr(f.err.message, "column file part-00002-of-00003-000000.id.pcol cannot be joined"));
    CHECK_EQ(fixture_count(fixture_path(&f, "bad")), -1);
    fixture_close(&f);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(every_range_of_a_column_has_the_values_of_the_records),
        CASE(the_columns_of_a_data_set_are_listed_with_their_meaning),
        CASE(a_writer_that_wants_none_writes_the_same_records_without_columns),
        CASE(damage_to_a_column_fails_only_its_reader_verify_and_check),
        CASE(a_file_that_is_missing_cut_short_or_another_is_named),
        CASE(verify_finds_values_that_the_records_do_not_have),
        CASE(an_added_column_keeps_the_identity_and_open_data_sets),
        CASE(a_refused_or_cancelled_column_changes_nothing),
        CASE(an_addition_that_fails_leaves_the_old_columns_or_the_new_ones),
        CASE(a_killed_change_leaves_the_old_column_or_the_new_one),
        CASE(files_of_a_killed_change_without_locks_can_be_removed_as_advised),
        CASE(merging_keeps_the_columns_that_all_parts_have),
    };
    return RUN_CASES(cases);
}
