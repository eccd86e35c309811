/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of record formats: what is found at a path, and each member of the contract as `.pstk`
 * keeps it, on data sets that the writer made.
 */
#include "format/pstk/pstk.h"

#include "base/error.h"
#include "support/fixture.h"
#include "support/sample_set.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#define N_SAMPLES 1300u
#define SHARD_SIZE                                                                                 \
    600000u /* bytes: some hundreds of records, so that one index page is too few                  \
             */
#define MAX_SHARDS 64u
#define IMG 0u /* fields of a sample_set */
#define LABEL 1u
#define TEXT 4u

/* ---- one data set for all -------------------------------------------------------------------- */

static char path[PATH_MAX];
static struct pstk__source *source;
static char shown[PSTK__MAX_SHOWN]; /* a file name */
static struct pstk_error err;

static void data_open(uint64_t n, uint64_t shard_size)
{
    sample_set_path(path, sizeof path);
    sample_set_make(path, n, shard_size, PSTK_CODEC_ZSTD);
    pstk_error_init(&err, sizeof err);
    if (pstk__source_open(&source, path, NULL, &err) < 0) {
        printf("Bail out! %s\n", err.message);
        exit(99);
    }
}

static void data_close(void)
{
    pstk__source_close(source);
    source = NULL;
    sample_set_remove(path);
}

static const char *in_data(const char *name)
{
    static char file[PATH_MAX + 256];
    snprintf(file, sizeof file, "%s/%s", path, name);
    return file;
}

/* A shard's file, open for reading; fd -1 where it cannot be. */
static struct pstk__file shard_open(uint32_t shard)
{
    char name[PATH_MAX];
    struct pstk__file file = {.fd = -1};
    if (pstk__source_file_path(source, shard, name, sizeof name) == 0)
        source->store->open(source->store, &file, name);
    return file;
}

/* A shard opened and checked, as files does. */
static struct pstk__file shard_checked(uint32_t shard)
{
    struct pstk__file file = shard_open(shard);
    if (file.store && source->format->file_check(source, shard, &file, &err) < 0)
        pstk__file_end(&file);
    return file;
}

/* The checked index page of a record of an open shard. */
static int page_read(const struct pstk__file *file, uint32_t shard, uint64_t record, void *bytes)
{
    struct pstk__extent page;
    source->format->page(source, &(struct pstk__sample_location){shard, record}, &page);
    if (page.size != PSTK__PAGE_SIZE ||
        pstk__file_read(file, bytes, page.size, page.offset) != (int64_t)page.size)
        return -1;
    return source->format->page_check(source, &page, bytes, &err);
}

/* ---- probing --------------------------------------------------------------------------------- */

TEST(a_data_set_is_found_by_the_entry_of_its_format)
{
    data_open(3, 0);
    CHECK(source->format == &pstk__format_pstk);
    CHECK_STR(source->format->name, "pstk");
    CHECK_EQ(pstk__format_pstk.probe(&pstk__store_local, path, NULL), 1);
    CHECK_STR(source->path, path);
    data_close();
}

TEST(the_refusal_of_a_path_says_what_the_path_is)
{
    static const struct {
        const char *name;
        int result;
        const char *says;
    } cases[] = {
        {"absent", PSTK_ENOENT, "no such file or directory: "},
        {"plain/below", PSTK_ENOENT, "no such file or directory: "},
        {"plain", PSTK_ENOTSUP, " is a file; must be a directory with a manifest.json"},
        {"x.pstk", PSTK_ENOTSUP, " is one shard of a data set; name the directory"},
        {".", PSTK_ENOENT, " is not a data set: it has "},
    };
    sample_set_path(path, sizeof path);
    CHECK_EQ(mkdir(path, 0700), 0);
    close(open(in_data("plain"), O_CREAT | O_WRONLY, 0600));
    close(open(in_data("x.pstk"), O_CREAT | O_WRONLY, 0600));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pstk__source *s = (void *)&s;
        pstk_error_init(&err, sizeof err);
        CHECK_EQ(pstk__format_pstk.probe(&pstk__store_local, in_data(cases[i].name), &err), 0);
        CHECK_EQ(pstk__source_open(&s, in_data(cases[i].name), NULL, &err), cases[i].result);
        CHECK(s == NULL && strstr(err.message, cases[i].says));
        CHECK(strstr(err.message, path) && err.stage == PSTK_STAGE_OPEN);
        CHECK_EQ(pstk__source_open(&s, in_data(cases[i].name), NULL, NULL), cases[i].result);
    }
    close(open(in_data(".tmp-writer"), O_CREAT | O_WRONLY, 0600));
    struct pstk__source *s = NULL;
    CHECK_EQ(pstk__source_open(&s, in_data("."), NULL, &err), PSTK_ENOENT);
    CHECK(strstr(err.message, "its writer is at work, or was killed"));
    CHECK_EQ(unlink(in_data(".tmp-writer")), 0);
    sample_set_remove(path);
}

TEST(a_path_that_is_not_set_is_refused_by_name)
{
    struct pstk__source *s = (void *)&s;
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk__source_open(&s, NULL, NULL, &err), PSTK_EINVAL);
    CHECK(s == NULL);
    CHECK_EQ(pstk__source_open(&s, "", NULL, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "path"));
}

TEST(a_path_that_is_too_long_is_refused)
{
    static char name[PATH_MAX + 10];
    struct pstk__source *s;
    memset(name, 'a', sizeof name - 1);
    for (size_t i = 0; i < sizeof name - 1; i += 100)
        name[i] = '/';
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk__format_pstk.probe(&pstk__store_local, name, &err), PSTK_EINVAL);
    CHECK_EQ(pstk__source_open(&s, name, NULL, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "too long"));
}

TEST(a_probe_that_cannot_look_says_why)
{
    struct pstk__source *s;
    sample_set_path(path, sizeof path);
    CHECK_EQ(mkdir(path, 0700), 0);
    CHECK_EQ(symlink("loop", in_data("loop")), 0);
    pstk_error_init(&err, sizeof err);
    const int probed = pstk__format_pstk.probe(&pstk__store_local, in_data("loop"), &err);
    const int opened = pstk__source_open(&s, in_data("loop"), NULL, &err);
    sample_set_remove(path);
    CHECK(probed < 0 && opened == probed);
    CHECK_EQ(err.native, ELOOP);
}

TEST(a_directory_whose_manifest_is_damaged_is_a_data_set_that_does_not_open)
{
    struct pstk__source *s = (void *)&s;
    data_open(3, 0);
    FILE *f = fopen(in_data("manifest.json"), "w");
    fputs("{}\n", f);
    fclose(f);
    CHECK_EQ(pstk__format_pstk.probe(&pstk__store_local, path, &err), 1);
    CHECK_EQ(pstk__source_open(&s, path, NULL, &err), PSTK_EBADMSG);
    CHECK(s == NULL);
    data_close();
}

TEST(closing_nothing_is_fine)
{
    pstk__source_close(NULL);
}

/* ---- an opened source ------------------------------------------------------------------------ */

TEST(open_reads_no_shard)
{
    struct pstk__source *s;
    data_open(N_SAMPLES, SHARD_SIZE);
    for (uint32_t i = 0; i < source->n_shards; i++)
        CHECK_EQ(unlink(in_data(pstk__source_file_name(source, i, shown))), 0);
    CHECK_EQ(pstk__source_open(&s, path, NULL, &err), 0);
    CHECK_EQ(s->n_samples, N_SAMPLES);
    CHECK(s->n_shards == source->n_shards && s->bytes == source->bytes);
    pstk__source_close(s);
    data_close();
}

TEST(a_source_counts_its_samples_shards_pages_and_bytes)
{
    uint64_t n = 0, pages = 0, bytes = 0;
    struct stat st;
    data_open(N_SAMPLES, SHARD_SIZE);
    CHECK_EQ(source->n_samples, N_SAMPLES);
    CHECK(source->n_shards > 2 && source->n_shards <= MAX_SHARDS);
    CHECK(source->n_pages > source->n_shards); /* some have more than one */
    for (uint32_t i = 0; i < source->n_shards; i++) {
        uint64_t first, n_records;
        source->format->range(source, i, &first, &n_records);
        CHECK_EQ(first, n);
        CHECK(n_records > 0);
        n += n_records;
        pages += (n_records + 508) / 509;
        CHECK_EQ(stat(in_data(pstk__source_file_name(source, i, shown)), &st), 0);
        bytes += (uint64_t)st.st_size;
    }
    CHECK_EQ(n, N_SAMPLES);
    CHECK_EQ(source->n_pages, pages);
    CHECK_EQ(source->bytes, bytes);
    CHECK_EQ(source->schema.n_fields, 5);
    CHECK_EQ(strlen(source->identity), 32);
    data_close();
}

/* Is every sample located where counting the shards' records finds it? */
static int locates_as_counting(void)
{
    uint64_t id = 0;
    int good = 1;
    for (uint32_t i = 0; i < source->n_shards; i++) {
        uint64_t first, n;
        source->format->range(source, i, &first, &n);
        good &= first == id;
        for (uint64_t k = 0; k < n; k++, id++) {
            struct pstk__sample_location at = {UINT32_MAX, UINT64_MAX};
            source->format->locate(source, id, &at);
            good &= at.shard == i && at.record == k;
        }
    }
    return good && id == source->n_samples;
}

TEST(every_sample_is_located_where_counting_finds_it_in_1_to_9_shards)
{
    uint32_t seen = 0; /* bit n: a data set of n shards */
    for (uint64_t n = 1; seen != 0x3fe && n < 2000; n += 20) {
        data_open(n, 64 << 10);
        seen |= source->n_shards <= 9 ? 1u << source->n_shards : 0;
        const int good = locates_as_counting();
        data_close();
        CHECK(good);
    }
    CHECK_EQ(seen, 0x3fe);
}

TEST(a_shards_path_is_the_data_sets_and_its_name)
{
    char file[PATH_MAX];
    data_open(N_SAMPLES, SHARD_SIZE);
    for (uint32_t i = 0; i < source->n_shards; i++) {
        const char *name = pstk__source_file_name(source, i, shown);
        CHECK(strstr(name, ".pstk") && !strchr(name, '/'));
        CHECK_EQ(pstk__source_file_path(source, i, file, sizeof file), 0);
        CHECK_STR(file, in_data(name));
        CHECK_EQ(pstk__source_file_path(source, i, file, strlen(file) + 1), 0);
        CHECK_EQ(pstk__source_file_path(source, i, file, strlen(file)), PSTK_EINVAL);
    }
    data_close();
}

TEST(a_shard_has_the_dictionaries_of_its_compressed_fields)
{
    struct fixture f;
    struct pstk_writer_settings s;
    fixture_open(&f);
    fixture_settings(&s, fixture_path(&f, "set"));
    CHECK_EQ(fixture_write(&s, 0, 400, 10, &f.err), 0);
    CHECK_EQ(pstk__source_open(&source, s.path, NULL, &f.err), 0);
    for (uint32_t field = 0; field <= FIXTURE_FIELDS; field++)
        CHECK_EQ(source->format->dictionary(source, 0, field) != NULL, field == 1);
    pstk__source_close(source);
    fixture_close(&f);
    data_open(3, 0); /* compressed without one */
    CHECK(source->format->dictionary(source, 0, IMG) == NULL);
    CHECK(source->format->dictionary(source, 0, TEXT) == NULL);
    data_close();
}

/* ---- pages, extents, records ----------------------------------------------------------------- */

TEST(a_records_page_is_the_one_of_509_records_at_the_files_end)
{
    data_open(N_SAMPLES, 0); /* one shard */
    struct stat st;
    CHECK_EQ(source->n_shards, 1);
    CHECK_EQ(source->n_pages, 3);
    CHECK_EQ(stat(in_data(pstk__source_file_name(source, 0, shown)), &st), 0);
    for (uint64_t k = 0; k < N_SAMPLES; k++) {
        struct pstk__extent page;
        source->format->page(source, &(struct pstk__sample_location){0, k}, &page);
        CHECK_EQ(page.page, k / 509);
        CHECK_EQ(page.record, k / 509 * 509);
        CHECK_EQ(page.file, 0);
        CHECK(page.size == 4096 && page.whole_size == 4096);
        CHECK_EQ(page.offset, (uint64_t)st.st_size - (3 - k / 509) * 4096);
    }
    data_close();
}

/* Every record of a shard by its page, extent and head, one after the other. */
static int walk(uint32_t shard, int head_only)
{
    static uint8_t page[PSTK__PAGE_SIZE], bytes[1 << 20];
    const struct pstk__format *f = source->format;
    struct pstk__file file = shard_checked(shard);
    uint64_t first, n, end = 4096;
    int good = file.store != NULL;
    f->range(source, shard, &first, &n);
    for (uint64_t k = 0; k < n && good; k++) {
        struct pstk__extent e;
        struct pstk__record record;
        int64_t label;
        const struct pstk__sample_location at = {shard, k};
        good =
            page_read(&file, shard, k, page) == 0 &&
            f->extent(source, &at, head_only ? 1u << LABEL : PSTK__ALL_FIELDS, page, &e, &err) ==
                0 &&
            e.file == shard && e.data == NULL && e.record == k && e.offset == end &&
            e.whole_size <= source->limits.max_size &&
            e.size == (head_only ? source->schema.head_size : e.whole_size) &&
            pstk__file_read(&file, bytes, e.size, e.offset) == (int64_t)e.size &&
            (e.data = bytes, f->parse(source, &at, PSTK__ALL_FIELDS, &e, 1, &record, &err) == 0) &&
            record.number == k && record.file_offset == e.offset && record.n_fields == 5;
        end = e.offset + e.whole_size;
        if (!good)
            break;
        memcpy(&label, record.fields[1].data, sizeof label); /* in the head */
        good = label == (int64_t)(first + k) * 3 - 7 &&
               (record.fields[TEXT].data == NULL) == head_only;
    }
    pstk__file_end(&file);
    return good;
}

TEST(every_record_is_found_by_page_and_extent_and_parsed_whole_or_by_its_head)
{
    data_open(N_SAMPLES, SHARD_SIZE);
    for (uint32_t i = 0; i < source->n_shards; i++)
        for (int head_only = 0; head_only <= 1; head_only++) {
            if (!walk(i, head_only))
                printf("# shard %u, head %d: %s\n", i, head_only, err.message);
            CHECK(walk(i, head_only));
        }
    data_close();
}

TEST(a_damaged_page_is_found_and_named)
{
    static uint8_t page[PSTK__PAGE_SIZE];
    struct pstk__extent at;
    data_open(N_SAMPLES, SHARD_SIZE);
    struct pstk__file file = shard_checked(1);
    CHECK(file.store != NULL);
    CHECK_EQ(page_read(&file, 1, 0, page), 0);
    pstk__file_end(&file);
    source->format->page(source, &(struct pstk__sample_location){1, 0}, &at);
    for (uint32_t bit = 0; bit < 8 * PSTK__PAGE_SIZE; bit += 61) {
        page[bit / 8] ^= (uint8_t)(1 << bit % 8);
        CHECK_EQ(source->format->page_check(source, &at, page, &err), PSTK_EBADMSG);
        CHECK(strstr(err.message, pstk__source_file_name(source, 1, shown)));
        page[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    at.page = 1; /* the right bytes of another place */
    CHECK_EQ(source->format->page_check(source, &at, page, &err), PSTK_EBADMSG);
    data_close();
}

TEST(a_record_over_the_manifests_maxima_is_refused_and_placed)
{
    static uint8_t page[PSTK__PAGE_SIZE];
    struct pstk__extent e;
    data_open(N_SAMPLES, SHARD_SIZE);
    struct pstk__file file = shard_checked(0);
    CHECK(file.store != NULL);
    CHECK_EQ(page_read(&file, 0, 0, page), 0);
    pstk__file_end(&file);
    const struct pstk__sample_location at = {0, 5};
    CHECK_EQ(source->format->extent(source, &at, PSTK__ALL_FIELDS, page, &e, &err), 0);
    source->limits.max_size = e.size;
    CHECK_EQ(source->format->extent(source, &at, PSTK__ALL_FIELDS, page, &e, &err), 0);
    source->limits.max_size = e.size - 1;
    CHECK_EQ(source->format->extent(source, &at, 0, page, &e, &err), PSTK_EBADMSG);
    CHECK_EQ(err.record, 5);
    CHECK_STR(err.shard, pstk__source_file_name(source, 0, shown));
    data_close();
}

TEST(pages_and_records_of_an_unchecked_shard_are_refused)
{
    static uint8_t page[PSTK__PAGE_SIZE];
    struct pstk__extent at;
    struct pstk__record record;
    data_open(3, 0);
    const struct pstk__sample_location place = {0, 0};
    source->format->page(source, &place, &at);
    at.data = page;
    CHECK_EQ(source->format->page_check(source, &at, page, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "not checked"));
    CHECK_EQ(source->format->parse(source, &place, PSTK__ALL_FIELDS, &at, 1, &record, &err),
             PSTK_EINVAL);
    data_close();
}

/* ---- shards, and what stands at the path ------------------------------------------------------
 */

TEST(a_shard_that_is_not_the_manifests_is_refused_and_named)
{
    char right[PATH_MAX];
    data_open(N_SAMPLES, SHARD_SIZE);
    const char *name = pstk__source_file_name(source, 0, shown);
    CHECK_EQ(pstk__source_file_path(source, 0, right, sizeof right), 0);
    struct pstk__file file = shard_open(0);
    CHECK_EQ(source->format->file_check(source, 0, &file, &err), 0);
    CHECK_EQ(source->format->file_check(source, 0, &file, &err), 0); /* again is fine */
    /* another shard in its place */
    CHECK_EQ(source->format->file_check(source, 1, &file, &err), PSTK_EBADMSG);
    CHECK_STR(err.shard, pstk__source_file_name(source, 1, shown));
    pstk__file_end(&file);
    /* one that is cut short, by a page or to nothing */
    struct stat st;
    CHECK_EQ(stat(right, &st), 0);
    CHECK_EQ(truncate(right, st.st_size - 4096), 0);
    file = shard_open(0);
    CHECK_EQ(source->format->file_check(source, 0, &file, &err), PSTK_EBADMSG);
    CHECK(strstr(err.message, name) && strstr(err.message, "size in bytes"));
    pstk__file_end(&file);
    CHECK_EQ(truncate(right, 0), 0);
    file = shard_open(0);
    CHECK_EQ(source->format->file_check(source, 0, &file, &err), PSTK_EBADMSG);
    pstk__file_end(&file);
    /* one of the right size whose header is zeros */
    CHECK_EQ(truncate(right, st.st_size), 0);
    file = shard_open(0);
    CHECK_EQ(source->format->file_check(source, 0, &file, &err), PSTK_EBADMSG);
    pstk__file_end(&file);
    data_close();
}

TEST(the_shard_of_another_data_set_is_refused)
{
    char first[PATH_MAX], file[PATH_MAX], own[PATH_MAX];
    data_open(5, 0);
    snprintf(first, sizeof first, "%s", path);
    CHECK_EQ(pstk__source_file_path(source, 0, own, sizeof own), 0);
    struct pstk__source *one = source;
    sample_set_path(path, sizeof path);
    sample_set_make(path, 5, 0, PSTK_CODEC_NONE);
    CHECK_EQ(pstk__source_open(&source, path, NULL, &err), 0);
    CHECK_EQ(pstk__source_file_path(source, 0, file, sizeof file), 0);
    struct pstk__file other = shard_open(0);
    CHECK_EQ(source->format->file_check(source, 0, &other, &err), 0);
    CHECK_EQ(one->format->file_check(one, 0, &other, &err), PSTK_EBADMSG);
    pstk__file_end(&other);
    data_close();
    pstk__source_close(one);
    sample_set_remove(first);
}

TEST(a_shard_that_cannot_be_read_keeps_its_native_error)
{
    data_open(3, 0);
    const struct pstk__file file = {.store = &pstk__store_local, .fd = -1};
    CHECK(source->format->file_check(source, 0, &file, &err) < 0);
    CHECK_EQ(err.native, EBADF);
    data_close();
}

TEST(a_data_set_stands_until_another_or_none_is_at_its_path)
{
    data_open(3, 0);
    CHECK_EQ(source->format->stands(source, &err), 0);
    CHECK_EQ(unlink(in_data("manifest.json")), 0);
    CHECK_EQ(source->format->stands(source, &err), PSTK_ENOENT);
    CHECK(strstr(err.message, path) && strstr(err.message, "replaced, removed or renamed"));
    sample_set_remove(path);
    CHECK_EQ(source->format->stands(source, &err), PSTK_ENOENT);
    sample_set_make(path, 3, 0, PSTK_CODEC_ZSTD); /* the same bytes again */
    CHECK_EQ(source->format->stands(source, &err), 0);
    sample_set_remove(path);
    sample_set_make(path, 4, 0, PSTK_CODEC_ZSTD);
    CHECK_EQ(source->format->stands(source, &err), PSTK_ENOENT);
    data_close();
}

/* ---- an entry that has the must-haves alone ----------------------------------------------------
 */

extern const struct pstk__format bare;

static int bare_open(struct pstk__source **out, const struct pstk__opening *opening,
                     struct pstk_error *e)
{
    (void)e;
    *out = calloc(1, sizeof **out);
    if (!*out)
        return PSTK_ENOMEM;
    **out = (struct pstk__source){
        .format = &bare, .store = opening->store, .n_samples = 70, .n_shards = 1, .n_files = 1};
    (*out)->path = strdup(opening->path);
    return 0;
}

static void bare_close(struct pstk__source *s)
{
    free(s->path);
    free(s);
}

const struct pstk__format bare = {.name = "bare", .open = bare_open, .close = bare_close};

TEST(optional_functions_that_a_format_lacks_have_defaults)
{
    struct pstk__source *s;
    struct pstk__extent page = {.size = 7};
    uint64_t first = 9, n = 9;
    char file[20];
    const struct pstk__opening opening = {.store = &pstk__store_local, .path = "/data/one"};
    CHECK_EQ(bare.open(&s, &opening, &err), 0);
    CHECK_EQ(pstk__source_n_extents(s, PSTK__ALL_FIELDS), 1);
    pstk__source_page(s, &(struct pstk__sample_location){0, 3}, &page);
    CHECK_EQ(page.size, 0);
    pstk__source_range(s, 0, &first, &n);
    CHECK(first == 0 && n == 70);
    CHECK(pstk__source_dictionary(s, 0, 0) == NULL);
    CHECK_STR(pstk__source_file_name(s, 0, shown), "/data/one"); /* the data set is the one file */
    CHECK_EQ(pstk__source_file_path(s, 0, file, sizeof file), 0);
    CHECK_STR(file, "/data/one");
    CHECK_EQ(pstk__source_file_path(s, 0, file, strlen("/data/one")), PSTK_EINVAL);
    CHECK_EQ(pstk__source_stands(s, &err), 0);
    pstk__source_close(s);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_data_set_is_found_by_the_entry_of_its_format),
        CASE(the_refusal_of_a_path_says_what_the_path_is),
        CASE(a_path_that_is_not_set_is_refused_by_name),
        CASE(a_path_that_is_too_long_is_refused),
        CASE(a_probe_that_cannot_look_says_why),
        CASE(a_directory_whose_manifest_is_damaged_is_a_data_set_that_does_not_open),
        CASE(closing_nothing_is_fine),
        CASE(open_reads_no_shard),
        CASE(a_source_counts_its_samples_shards_pages_and_bytes),
        CASE(every_sample_is_located_where_counting_finds_it_in_1_to_9_shards),
        CASE(a_shards_path_is_the_data_sets_and_its_name),
        CASE(a_shard_has_the_dictionaries_of_its_compressed_fields),
        CASE(a_records_page_is_the_one_of_509_records_at_the_files_end),
        CASE(every_record_is_found_by_page_and_extent_and_parsed_whole_or_by_its_head),
        CASE(a_damaged_page_is_found_and_named),
        CASE(a_record_over_the_manifests_maxima_is_refused_and_placed),
        CASE(pages_and_records_of_an_unchecked_shard_are_refused),
        CASE(a_shard_that_is_not_the_manifests_is_refused_and_named),
        CASE(the_shard_of_another_data_set_is_refused),
        CASE(a_shard_that_cannot_be_read_keeps_its_native_error),
        CASE(a_data_set_stands_until_another_or_none_is_at_its_path),
        CASE(optional_functions_that_a_format_lacks_have_defaults),
    };
    return RUN_CASES(cases);
}
