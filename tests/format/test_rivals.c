/* SPDX-License-Identifier: Apache-2.0 */
/* The reads with which the format of a directory of many files is found. */
#include "format/rivals.h"

#include "support/fixture.h"
#include "support/test.h"

static struct fixture f;
static uint64_t n_calls;

static int look_and_count(const struct pstk__store *store, const char *path,
                          struct pstk__store_entry *entry)
{
    n_calls++;
    return pstk__store_local.look(store, path, entry);
}

static int open_and_count(const struct pstk__store *store, struct pstk__file *file,
                          const char *path)
{
    n_calls++;
    return pstk__store_local.open(store, file, path);
}

/* Make n empty files NUMBER.END. */
static void touch(const char *end, int first, int n)
{
    char name[32];
    for (int i = first; i < first + n; i++) {
        snprintf(name, sizeof name, "%05d.%s", i, end);
        const int fd = open(fixture_path(&f, name), O_CREAT | O_WRONLY, 0600);
        CHECK(fd >= 0 && close(fd) == 0);
    }
}

/* Return the name of the format that the directory has; NULL: the error says more. */
static const char *find(void)
{
    struct pstk__store store = pstk__store_local;
    const struct pstk__format *format;
    store.open = open_and_count;
    store.look = look_and_count;
    n_calls = 0;
    return pstk__format_find(&format, &store, f.dir, &f.err) < 0 ? NULL : format->name;
}

TEST(index_files_of_dali_beside_archives_are_not_all_opened)
{
    fixture_open(&f);
    touch("tar", 0, 1000);
    touch("idx", 0, 1000);
    CHECK_STR(find(), "tar");
    CHECK(n_calls < 800);
    fixture_close(&f);
}

TEST(the_data_sets_to_open_are_named_among_many_other_files)
{
    fixture_open(&f);
    touch("jpg", 0, 1000);
    touch("tfrecord", 1000, 2);
    touch("npy", 2000, 1);
    CHECK(!find() && strstr(f.err.message, "must be of one format (open "));
    CHECK(strstr(f.err.message, "/02000.npy or ") && strstr(f.err.message, "/*.tfrecord)"));
    CHECK(n_calls < 800);
    fixture_close(&f);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(index_files_of_dali_beside_archives_are_not_all_opened),
        CASE(the_data_sets_to_open_are_named_among_many_other_files),
    };
    return RUN_CASES(cases);
}
