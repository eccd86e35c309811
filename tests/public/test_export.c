/* SPDX-License-Identifier: Apache-2.0 */
/* export: pstk_export, as a program sees it that has the shared library and the public headers, and
 * nothing else. tests/cli/test_export.py reads what the targets are. */
#include "support/test.h"

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include <penstock/export.h>
#include <penstock/subset.h>

#define N_SAMPLES 300

static char folder[64], data[96];

static struct pstk_error new_error(void)
{
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    return err;
}

static int write_data(struct pstk_error *err)
{
    const struct pstk_field fields[] = {
        {.name = "cls", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_I64},
        {.name = "text", .kind = PSTK_FIELD_UTF8},
    };
    struct pstk_writer_settings s;
    struct pstk_writer *writer;
    pstk_writer_settings_init(&s, sizeof s);
    s.path = data;
    s.fields = fields;
    s.n_fields = 2;
    int r = pstk_writer_open(&writer, &s, err);
    for (int64_t i = 0; r == 0 && i < N_SAMPLES; i++) {
        const struct pstk_value values[] = {{.data = &i, .size = sizeof i},
                                            {.data = "text", .size = (uint64_t)(i % 5)}};
        r = pstk_writer_add(writer, values, 2, err);
    }
    return r < 0 ? r : pstk_writer_commit(&writer, err);
}

struct watch {
    uint64_t n_calls, n_done, n_total;
    int stop;
};

static int on_progress(void *user, uint64_t n_done, uint64_t n_total)
{
    struct watch *watch = user;
    watch->n_calls++;
    watch->n_done = n_done;
    watch->n_total = n_total;
    return watch->stop;
}

/* 1: nothing is left next to an export. */
static int is_clean(const char *out)
{
    char path[128];
    struct stat status;
    snprintf(path, sizeof path, "%s/.tmp-%s", folder, out);
    return lstat(path, &status) < 0;
}

TEST(a_data_set_is_exported_and_the_result_counts_it)
{
    struct pstk_error err = new_error();
    struct pstk_export_result result = {.size = sizeof result};
    struct watch watch = {0};
    char out[96];
    CHECK_EQ(write_data(&err), 0);
    snprintf(out, sizeof out, "%s/tars", folder);
    struct pstk_export_settings s = {.size = sizeof s,
                                     .target = PSTK_EXPORT_WEBDATASET,
                                     .data = data,
                                     .out = out,
                                     .shard_size = 65536,
                                     .n_threads = 2,
                                     .on_progress = on_progress,
                                     .user = &watch};
    CHECK_EQ(pstk_export(&s, &result, &err), 0);
    CHECK_EQ(result.n_samples, N_SAMPLES);
    CHECK(result.n_shards > 2 && result.n_shards == result.n_files);
    CHECK(result.bytes <= result.n_files * 65536);
    CHECK_EQ(result.n_images + result.n_equivalent + result.n_encoded + result.n_renamed, 0);
    CHECK(watch.n_calls > 0 && watch.n_done == N_SAMPLES && watch.n_total == N_SAMPLES);
    CHECK(is_clean("tars"));
    CHECK_EQ(pstk_export(&s, NULL, &err), PSTK_EEXIST);
    s.overwrite = 1;
    CHECK_EQ(pstk_export(&s, NULL, NULL), 0);
    CHECK(is_clean("tars"));
}

TEST(a_caller_stops_an_export_and_nothing_is_left)
{
    struct pstk_error err = new_error();
    struct watch watch = {.stop = 1};
    struct stat status;
    char out[96];
    snprintf(out, sizeof out, "%s/stopped", folder);
    const struct pstk_export_settings s = {.size = sizeof s,
                                           .target = PSTK_EXPORT_WEBDATASET,
                                           .data = data,
                                           .out = out,
                                           .on_progress = on_progress,
                                           .user = &watch};
    CHECK_EQ(pstk_export(&s, NULL, &err), PSTK_ECANCELED);
    CHECK(lstat(out, &status) < 0 && is_clean("stopped"));
}

TEST(a_subset_is_exported)
{
    struct pstk_error err = new_error();
    struct pstk_export_result result = {.size = sizeof result};
    struct pstk_subset subset = {
        .size = sizeof subset, .kind = PSTK_SUBSET_RANGE, .first = 290, .last = 300};
    const char *const fields[] = {"cls"};
    char out[96], file[128];
    snprintf(out, sizeof out, "%s/few", folder);
    const struct pstk_export_settings s = {.size = sizeof s,
                                           .target = PSTK_EXPORT_NPY,
                                           .data = data,
                                           .out = out,
                                           .fields = fields,
                                           .n_fields = 1,
                                           .subset = &subset};
    CHECK_EQ(pstk_export(&s, &result, &err), 0);
    CHECK_EQ(result.n_samples, 10);
    CHECK_EQ(result.bytes, 128 + 80);
    int64_t last;
    snprintf(file, sizeof file, "%s/cls.npy", out);
    FILE *stream = fopen(file, "rb");
    CHECK(stream && fseek(stream, -8, SEEK_END) == 0 && fread(&last, 8, 1, stream) == 1);
    CHECK_EQ(last, 299);
    fclose(stream);
    subset.first = 300; /* the step leaves nothing */
    CHECK_EQ(pstk_export(&s, NULL, &err), PSTK_EINVAL);
}

TEST(wrong_settings_are_refused_before_anything_is_written)
{
    struct pstk_error err = new_error();
    struct stat status;
    char out[96];
    snprintf(out, sizeof out, "%s/never", folder);
    const struct pstk_export_settings right = {
        .size = sizeof right, .target = PSTK_EXPORT_WEBDATASET, .data = data, .out = out};
    const char *const absent[] = {"absent"};
    struct {
        const char *word;
        struct pstk_export_settings s;
    } cases[] = {{"target", right}, {"data", right}, {"out", right},        {"fields", right},
                 {"label", right},  {"key", right},  {"shard_size", right}, {"field text", right},
                 {"size", right},   {"out", right}};
    const uint32_t n = sizeof cases / sizeof *cases;
    cases[0].s.target = 77;
    cases[1].s.data = NULL;
    cases[2].s.out = "";
    cases[3].s.fields = absent;
    cases[3].s.n_fields = 1;
    cases[4].s.label = "cls";
    cases[5].s.key = "cls";
    cases[6].s.shard_size = 1;
    cases[7].s.target = PSTK_EXPORT_NPY;
    cases[8].s.size = 0;
    cases[9].s.out = "/";
    for (uint32_t i = 0; i < n; i++) {
        CHECK_EQ(pstk_export(&cases[i].s, NULL, &err), PSTK_EINVAL);
        CHECK(strstr(err.message, cases[i].word) == err.message || i >= 8);
    }
    CHECK_EQ(pstk_export(NULL, NULL, NULL), PSTK_EINVAL);
    CHECK(lstat(out, &status) < 0 && is_clean("never"));
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *at)
{
    (void)status, (void)type, (void)at;
    return remove(path);
}

int main(void)
{
    static const struct test_case cases[] = {
        CASE(a_data_set_is_exported_and_the_result_counts_it),
        CASE(a_caller_stops_an_export_and_nothing_is_left),
        CASE(a_subset_is_exported),
        CASE(wrong_settings_are_refused_before_anything_is_written),
    };
    snprintf(folder, sizeof folder, "/tmp/penstock-export-XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    snprintf(data, sizeof data, "%s/data", folder);
    const int failed = RUN_CASES(cases);
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return failed;
}
