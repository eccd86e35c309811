/* SPDX-License-Identifier: Apache-2.0 */
/* An export whose nth allocation, write, read, sync, rename, opened file or thread fails leaves
 * nothing, and what it was to replace stays; for n = 0, 1, 2, ... until none fails. */
#include "support/faults.h"
#include "support/fixture.h"

#include <penstock/export.h>
#include <penstock/subset.h>

#define N_RECORDS 150 /* three blocks of samples: so there are threads */

static const struct {
    int kind, native;
} kinds[] = {
    {FAULT_MEMORY, ENOMEM}, {FAULT_WRITE, ENOSPC}, {FAULT_READ, EIO},   {FAULT_SYNC, EIO},
    {FAULT_RENAME, EIO},    {FAULT_OPEN, EMFILE},  {FAULT_REMOVE, EIO}, {FAULT_THREAD, EAGAIN},
};

/* Fields that each target can hold. */
static const char *const folder_fields[] = {"img", "txt", "id"}, *const npy_fields[] = {"id"};

static void settings_of(struct pstk_export_settings *s, uint32_t target, struct fixture *f)
{
    static char data[300], out[300];
    snprintf(data, sizeof data, "%s/data", f->dir);
    snprintf(out, sizeof out, "%s/out", f->dir);
    *s = (struct pstk_export_settings){
        .size = sizeof *s, .target = target, .data = data, .out = out, .n_threads = 2};
    if (target == PSTK_EXPORT_FOLDER) {
        s->fields = folder_fields;
        s->n_fields = 3;
    } else if (target == PSTK_EXPORT_NPY) {
        s->fields = npy_fields;
        s->n_fields = 1;
    } else {
        s->shard_size = 200 << 10;
    }
}

static int exists(struct fixture *f, const char *name)
{
    struct stat status;
    return lstat(fixture_path(f, name), &status) == 0;
}

/* 1: the mark of the export says that it is complete. */
static int is_complete(struct fixture *f)
{
    char text[128] = "";
    FILE *file = fopen(fixture_path(f, "out/penstock-export.json"), "r");
    const int found = file && fgets(text, sizeof text, file) && strstr(text, "\"complete\":true");
    if (file)
        fclose(file);
    return found;
}

/* Export once, with the nth call failing; *left becomes 0 when none failed. */
static void export_once(struct fixture *f, const struct pstk_export_settings *s, int k, int n,
                        int *left)
{
    const int stood = exists(f, "out");
    fault_arm(kinds[k].kind, n, kinds[k].native);
    const int r = pstk_export(s, NULL, &f->err);
    const int fired = fault_disarm();
    *left = 0; /* also after a failed check */
    if (r == 0) {
        CHECK(is_complete(f)); /* a failure in removing what was replaced is no failure */
        if (!s->overwrite)
            fixture_remove(s->out);
    } else {
        CHECK(fired > 0 && f->err.message[0] && f->err.code == r);
        /* only the last sync comes after the directory has its name */
        CHECK(exists(f, "out") == stood || (kinds[k].kind == FAULT_SYNC && is_complete(f)));
        CHECK(!exists(f, "out") || is_complete(f));
        if (exists(f, "out") && !s->overwrite)
            fixture_remove(s->out);
    }
    if (s->overwrite && exists(f, ".tmp-out")) /* the replaced one: the next export removes it */
        CHECK(is_complete(f));
    else
        CHECK(!exists(f, ".tmp-out"));
    *left = fired;
}

/* Under TSan every third call: it looks at the threads' ways out, which neighbouring calls share.
 */
static void sweep(struct fixture *f, const struct pstk_export_settings *s)
{
    const int step = (int)test_stride(1, 3);
    for (int k = 0; k < (int)(sizeof kinds / sizeof *kinds); k++) {
        int n = -step, left = 1;
        while (left)
            export_once(f, s, k, n += step, &left);
        CHECK(n > 0 || kinds[k].kind == FAULT_REMOVE ||
              (kinds[k].kind == FAULT_THREAD && s->subset));
    }
}

static void write_data(struct fixture *f)
{
    struct pstk_writer_settings s;
    fixture_open(f);
    fixture_settings(&s, fixture_path(f, "data"));
    CHECK_EQ(fixture_write(&s, 0, N_RECORDS, 2000, &f->err), 0);
}

TEST(a_failed_call_of_any_kind_leaves_nothing)
{
    struct fixture f;
    struct pstk_export_settings s;
    write_data(&f);
    for (uint32_t target = PSTK_EXPORT_WEBDATASET; target <= PSTK_EXPORT_NPY; target++) {
        settings_of(&s, target, &f);
        sweep(&f, &s);
    }
    fixture_close(&f);
}

TEST(a_failed_call_in_a_folder_leaves_nothing)
{
    struct fixture f;
    struct pstk_export_settings s;
    const struct pstk_subset few = {
        .size = sizeof few, .kind = PSTK_SUBSET_RANGE, .first = 0, .last = 5};
    write_data(&f);
    settings_of(&s, PSTK_EXPORT_FOLDER, &f);
    s.subset = &few;
    sweep(&f, &s);
    fixture_close(&f);
}

TEST(a_replaced_export_stays_until_the_new_one_is_whole)
{
    struct fixture f;
    struct pstk_export_settings s;
    write_data(&f);
    settings_of(&s, PSTK_EXPORT_MDS, &f);
    CHECK_EQ(pstk_export(&s, NULL, &f.err), 0);
    s.overwrite = 1;
    sweep(&f, &s);
    fixture_close(&f);
}

int main(void)
{
    static const struct test_case cases[] = {
        CASE(a_failed_call_of_any_kind_leaves_nothing),
        CASE(a_failed_call_in_a_folder_leaves_nothing),
        CASE(a_replaced_export_stays_until_the_new_one_is_whole),
    };
    return RUN_CASES(cases);
}
