/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged records under a running loader: reported in stream order, or replaced, never read. */
#include "format/format.h"
#include "support/sample_set.h"
#include "support/test.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define N_SAMPLES 29
#define BAD 11

static char path[4200];
static uint32_t reader_kind; /* PSTK_READER_AUTO, or threads under TSan */

static const struct pstk_output outputs[] = {
    {.field = "cls", .kind = PSTK_OUTPUT_SCALAR},
    {.field = "text", .kind = PSTK_OUTPUT_BYTES},
};

static struct pstk_settings base(void)
{
    struct pstk_settings s;
    pstk_settings_init(&s, sizeof s);
    s.path = path;
    s.outputs = outputs;
    s.n_outputs = 2;
    s.batch_size = 3;
    s.order.kind = PSTK_ORDER_SEQUENTIAL;
    s.reading.reader = reader_kind;
    return s;
}

/* Flip bits of byte `back` before the end of sample id's record (`back` 0: its first byte). */
static int damage(uint64_t id, uint64_t back, uint8_t bits, char *shard_file, size_t size)
{
    struct pstk__source *s;
    struct pstk__extent page, e;
    struct pstk__sample_location place;
    _Alignas(4096) uint8_t bytes[PSTK__PAGE_SIZE];
    if (pstk__source_open(&s, path, NULL, NULL) < 0)
        return -1;
    s->format->locate(s, id, &place);
    s->format->page(s, &place, &page);
    pstk__source_file_path(s, page.file, shard_file, size);
    int fd = open(shard_file, O_RDWR);
    int r = pread(fd, bytes, sizeof bytes, (off_t)page.offset) == (ssize_t)sizeof bytes
                ? s->format->extent(s, &place, PSTK__ALL_FIELDS, bytes, &e, NULL)
                : -1;
    off_t at = (off_t)(back ? e.offset + e.size - back : e.offset);
    uint8_t byte = 0;
    if (r == 0 && pread(fd, &byte, 1, at) == 1) {
        byte ^= bits;
        r = pwrite(fd, &byte, 1, at) == 1 ? 0 : -1;
    }
    close(fd);
    pstk__source_close(s);
    return r;
}

TEST(damage_arrives_in_stream_order_and_stays)
{
    char file[4500];
    for (uint32_t threads = 1; threads <= 4; threads++) {
        struct pstk_settings s = base();
        struct pstk_loader *loader;
        struct pstk_batch *b;
        struct pstk_error err;
        pstk_error_init(&err, sizeof err);
        CHECK_EQ(damage(BAD, 1, 4, file, sizeof file), 0);
        s.n_threads = threads;
        CHECK_EQ(pstk_open(&loader, &s, &err), 0);
        for (int i = 0; i < BAD / 3; i++) {
            CHECK_EQ(pstk_next(loader, &b, NULL, -1, &err), 1);
            CHECK_EQ(b->index, i);
            pstk_release(&b, NULL);
        }
        for (int i = 0; i < 3; i++) {
            CHECK_EQ(pstk_next(loader, &b, NULL, -1, &err), PSTK_EBADMSG);
            CHECK_EQ(err.sample_id, BAD);
            CHECK_EQ(err.epoch, 0);
            CHECK_EQ(err.position, BAD);
            CHECK(err.record != PSTK_NONE && err.length > 0);
            CHECK(err.shard[0] && strstr(file, err.shard));
        }
        CHECK_EQ(pstk_seek(loader, 0, BAD + 1, &err), 0);
        CHECK_EQ(pstk_next(loader, &b, NULL, -1, &err), 1);
        CHECK_EQ(b->sample_ids[0], BAD + 1);
        pstk_release(&b, NULL);
        CHECK_EQ(pstk_seek(loader, 0, 9, &err), 0);
        CHECK_EQ(pstk_next(loader, &b, NULL, -1, &err), PSTK_EBADMSG);
        CHECK_EQ(damage(BAD, 1, 4, file, sizeof file), 0); /* mends it */
        CHECK_EQ(pstk_seek(loader, 0, 9, &err), 0);
        CHECK_EQ(pstk_next(loader, &b, NULL, -1, &err), 1);
        pstk_release(&b, NULL);
        pstk_close(&loader);
    }
}

static void count_bad(void *user, const struct pstk_error *bad, uint64_t replacement_id)
{
    /* The first sample whose text is wrong. */
    if (bad->sample_id == BAD && bad->code == PSTK_EBADMSG && replacement_id != BAD)
        atomic_fetch_add((_Atomic int *)user, 1);
}

TEST(replacements_are_the_same_for_any_threads_and_reported)
{
    char file[4500];
    uint64_t replacement = PSTK_NONE;
    int64_t label = 0;
    CHECK_EQ(damage(BAD, 1, 4, file, sizeof file), 0);
    for (uint32_t threads = 1; threads <= 5; threads++) {
        _Atomic int told = 0;
        struct pstk_settings s = base();
        struct pstk_loader *loader;
        struct pstk_batch *b;
        struct pstk_error err;
        struct pstk_stats st = {.size = sizeof st};
        pstk_error_init(&err, sizeof err);
        s.n_threads = threads;
        s.bad_sample = PSTK_BAD_REPLACE;
        s.on_bad_sample = count_bad;
        s.bad_sample_user = &told;
        s.order.position = BAD;
        s.memory.n_slots = 2;
        s.order.kind = PSTK_ORDER_SEQUENTIAL;
        CHECK_EQ(pstk_open(&loader, &s, &err), 0);
        CHECK_EQ(pstk_next(loader, &b, NULL, -1, &err), 1);
        CHECK_EQ(b->sample_ids[0], BAD);
        CHECK(b->replacement_ids[0] != PSTK_NONE && b->replacement_ids[0] != BAD);
        CHECK_EQ(b->replacement_ids[1], PSTK_NONE);
        CHECK_EQ(b->n_replacements, 1);
        const int64_t *labels = b->tensors[0].data;
        CHECK_EQ(labels[0], (int64_t)b->replacement_ids[0] * 3 - 7);
        if (replacement == PSTK_NONE) {
            replacement = b->replacement_ids[0];
            label = labels[0];
        }
        CHECK_EQ(b->replacement_ids[0], replacement);
        CHECK_EQ(labels[0], label);
        pstk_release(&b, NULL);
        CHECK_EQ(pstk_get_stats(loader, &st), 0);
        CHECK_EQ(st.n_replacements, 1);
        pstk_close(&loader);
        CHECK_EQ(told, 1);
    }
    CHECK_EQ(damage(BAD, 1, 4, file, sizeof file), 0);
}

/* Get the id that replaces BAD, which stands at this position of a subset. */
static void replacement_in(const struct pstk_subset *subset, uint32_t threads, uint64_t at,
                           uint64_t *other)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    s.subset = subset;
    s.n_threads = threads;
    s.bad_sample = PSTK_BAD_REPLACE;
    s.order.position = at;
    s.last_batch = PSTK_LAST_SHORT;
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_next(loader, &b, NULL, -1, NULL), 1);
    CHECK_EQ(b->sample_ids[0], BAD);
    CHECK_EQ(b->n_replacements, 1);
    *other = b->replacement_ids[0];
    CHECK_EQ(((const int64_t *)b->tensors[0].data)[0], (int64_t)*other * 3 - 7);
    pstk_release(&b, NULL);
    pstk_close(&loader);
}

/* Most draws are BAD: each is replaced by `other`, or, where that is PSTK_NONE, by none. */
static void replacement_drawn(const struct pstk_subset *subset, uint64_t other)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    s.subset = subset;
    s.order.kind = PSTK_ORDER_FULL;
    s.bad_sample = PSTK_BAD_REPLACE;
    CHECK_EQ(pstk_open(&loader, &s, &err), 0);
    const int r = pstk_next(loader, &b, NULL, -1, &err);
    if (other == PSTK_NONE) {
        CHECK_EQ(r, PSTK_EBADMSG);
        CHECK(strstr(err.message, "the weights drew no other sample of the subset") != NULL);
    } else {
        CHECK_EQ(r, 1);
        for (uint32_t i = 0; i < b->n_valid; i++)
            CHECK(b->sample_ids[i] == BAD ? b->replacement_ids[i] == other
                                          : b->sample_ids[i] == other);
        pstk_release(&b, NULL);
    }
    pstk_close(&loader);
}

/* On both sides of the border of a split, and where the rule leaves one sample or none. */
TEST(a_replacement_is_of_the_same_subset)
{
    char file[4500];
    struct pstk_error err;
    struct pstk_subset range = {.size = sizeof range, .kind = PSTK_SUBSET_RANGE, .last = BAD + 1};
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(damage(BAD, 1, 4, file, sizeof file), 0);
    uint64_t before = PSTK_NONE, other = PSTK_NONE;
    replacement_in(&range, 1, BAD, &before);
    CHECK(before < BAD);
    replacement_in(&range, 4, BAD, &other);
    CHECK_EQ(other, before);
    range.first = BAD;
    range.last = N_SAMPLES;
    replacement_in(&range, 1, 0, &other);
    CHECK(other > BAD && other < N_SAMPLES);
    range.last = BAD + 2;
    replacement_in(&range, 1, 0, &other);
    CHECK_EQ(other, BAD + 1);
    static const uint64_t ids[] = {4, 28, BAD, 9};
    struct pstk_subset list = {
        .size = sizeof list, .kind = PSTK_SUBSET_IDS, .ids = ids, .n_ids = 4};
    replacement_in(&list, 2, 2, &other);
    CHECK(other == 4 || other == 28 || other == 9);
    /* Weights: none of weight 0 comes, nor crosses the border. */
    double weights[N_SAMPLES] = {[3] = 1, [BAD] = 8, [20] = 50};
    struct pstk_subset weighted = {.size = sizeof weighted,
                                   .kind = PSTK_SUBSET_WEIGHTED,
                                   .weights = weights,
                                   .n_weights = N_SAMPLES};
    range.first = 0;
    range.last = BAD + 1;
    range.next = &weighted;
    replacement_drawn(&range, 3);
    weights[3] = 0;
    replacement_drawn(&range, PSTK_NONE);
    range.first = BAD;
    range.next = NULL;
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    s.subset = &range;
    s.batch_size = 1;
    s.bad_sample = PSTK_BAD_REPLACE;
    CHECK_EQ(pstk_open(&loader, &s, &err), 0);
    CHECK_EQ(pstk_n_samples(loader), 1);
    CHECK_EQ(pstk_next(loader, &b, NULL, -1, &err), PSTK_EBADMSG);
    CHECK(strstr(err.message, "no sample can replace it: the subset has no other sample") != NULL);
    pstk_close(&loader);
    CHECK_EQ(damage(BAD, 1, 4, file, sizeof file), 0); /* mends it */
}

TEST(measuring_the_ceilings_reports_no_bad_sample)
{
    char file[4500];
    _Atomic int told = 0;
    struct pstk_settings s = base();
    struct pstk_ceilings ceilings = {.size = sizeof ceilings};
    CHECK_EQ(damage(BAD, 1, 4, file, sizeof file), 0);
    s.outputs = &outputs[1]; /* its bytes are damaged */
    s.n_outputs = 1;
    s.bad_sample = PSTK_BAD_REPLACE;
    s.on_bad_sample = count_bad;
    s.bad_sample_user = &told;
    CHECK_EQ(pstk_measure_ceilings(&s, 0.2, &ceilings, NULL), 0);
    CHECK(ceilings.loader_samples_per_second > 0);
    CHECK_EQ(told, 0);
    CHECK_EQ(damage(BAD, 1, 4, file, sizeof file), 0);
}

TEST(a_missing_shard_is_an_error_that_names_it)
{
    char file[4500], away[4600];
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(damage(N_SAMPLES - 1, 1, 0, file, sizeof file), 0);
    snprintf(away, sizeof away, "%s.away", file);
    CHECK_EQ(rename(file, away), 0);
    s.order.position = N_SAMPLES - 3;
    CHECK_EQ(pstk_open(&loader, &s, &err), 0);
    int r = pstk_next(loader, &b, NULL, -1, &err);
    CHECK_EQ(rename(away, file), 0);
    CHECK(r < 0);
    CHECK(strstr(err.message, strrchr(file, '/') + 1));
    pstk_close(&loader);
}

TEST(a_truncated_shard_is_an_error_that_names_it)
{
    char file[4500];
    struct stat st;
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(damage(0, 1, 0, file, sizeof file), 0);
    CHECK_EQ(stat(file, &st), 0);
    char *bytes = malloc((size_t)st.st_size);
    int fd = open(file, O_RDWR);
    CHECK(bytes && pread(fd, bytes, (size_t)st.st_size, 0) == st.st_size);
    CHECK_EQ(ftruncate(fd, st.st_size - 4096), 0);
    CHECK_EQ(pstk_open(&loader, &s, &err), 0);
    int r = pstk_next(loader, &b, NULL, -1, &err);
    CHECK(r < 0);
    CHECK(strstr(err.message, strrchr(file, '/') + 1));
    pstk_close(&loader);
    CHECK(pwrite(fd, bytes, (size_t)st.st_size, 0) == st.st_size);
    close(fd);
    free(bytes);
}

/* Cut a shard while the loader runs: what was checked at open may be gone at the next read. */
TEST(a_shard_cut_under_a_running_loader_is_an_error)
{
    char file[4500];
    struct stat st;
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(damage(0, 1, 0, file, sizeof file), 0);
    CHECK_EQ(stat(file, &st), 0);
    char *bytes = malloc((size_t)st.st_size);
    int fd = open(file, O_RDWR);
    CHECK(bytes && pread(fd, bytes, (size_t)st.st_size, 0) == st.st_size);
    s.memory.n_slots = 2;
    CHECK_EQ(pstk_open(&loader, &s, &err), 0);
    CHECK_EQ(pstk_next(loader, &b, NULL, -1, &err), 1);
    pstk_release(&b, NULL);
    CHECK_EQ(ftruncate(fd, 4096), 0);
    int r = 1;
    for (int i = 0; i < 20 && r >= 0; i++) {
        r = pstk_next(loader, &b, NULL, -1, &err);
        pstk_release(&b, NULL);
    }
    CHECK(pwrite(fd, bytes, (size_t)st.st_size, 0) == st.st_size);
    close(fd);
    free(bytes);
    CHECK(r < 0);
    CHECK(err.message[0]);
    pstk_close(&loader);
}

static int refuse_decode(void *user, const struct pstk_sample *sample, void *row, uint64_t size)
{
    memset(row, 0, size);
    return sample->sample_id % 5 == *(uint64_t *)user ? PSTK_EBADMSG : 0;
}

static int no_memory_decode(void *user, const struct pstk_sample *sample, void *row, uint64_t size)
{
    (void)user;
    memset(row, 0, size);
    return sample->sample_id == 1 ? PSTK_ENOMEM : 0;
}

TEST(a_users_decode_error_is_the_lowest_rows)
{
    uint64_t rest = 2; /* remainder modulo 5: samples 2, 7, 12, ... are refused */
    struct pstk_output o = {.field = "cls",
                            .kind = PSTK_OUTPUT_CALLBACK,
                            .dtype = PSTK_U8,
                            .callback.n_dims = 1,
                            .callback.shape = {1},
                            .callback.decode = refuse_decode,
                            .callback.user = &rest};
    for (int i = 0; i < 20; i++) {
        struct pstk_settings s = base();
        struct pstk_loader *loader;
        struct pstk_batch *b;
        struct pstk_error err;
        pstk_error_init(&err, sizeof err);
        s.outputs = &o;
        s.n_outputs = 1;
        s.batch_size = 20;
        s.n_threads = 4;
        CHECK_EQ(pstk_open(&loader, &s, &err), 0);
        CHECK_EQ(pstk_next(loader, &b, NULL, -1, &err), PSTK_EBADMSG);
        CHECK_EQ(err.sample_id, 2);
        pstk_close(&loader);
    }
}

/* Sample 2 says why, in a message without an end; sample 7 does not. */
static int explain_decode(void *user, const struct pstk_sample *sample, void *row, uint64_t size)
{
    memset(row, 0, size);
    if (sample->sample_id != *(uint64_t *)user)
        return 0;
    if (sample->sample_id == 7)
        return -12345;
    memset(sample->error->message, 'x', sizeof sample->error->message);
    memcpy(sample->error->message, "the class is 9 of 5", 19);
    return PSTK_EBADMSG;
}

TEST(a_users_decode_function_says_why_it_fails)
{
    uint64_t which = 2;
    struct pstk_output o = {.field = "cls",
                            .kind = PSTK_OUTPUT_CALLBACK,
                            .dtype = PSTK_U8,
                            .callback.n_dims = 1,
                            .callback.shape = {1},
                            .callback.decode = explain_decode,
                            .callback.user = &which};
    for (; which <= 7; which += 5) {
        struct pstk_settings s = base();
        struct pstk_loader *loader;
        struct pstk_batch *b;
        struct pstk_error err;
        pstk_error_init(&err, sizeof err);
        s.outputs = &o;
        s.n_outputs = 1;
        s.batch_size = 20;
        CHECK_EQ(pstk_open(&loader, &s, &err), 0);
        CHECK_EQ(pstk_next(loader, &b, NULL, -1, &err), which == 2 ? PSTK_EBADMSG : PSTK_EINVAL);
        CHECK_EQ(err.sample_id, which);
        CHECK(err.shard[0] && memchr(err.message, 0, sizeof err.message));
        if (which == 2)
            CHECK(strstr(err.message, "of output 'cls' returned -74 for sample 2: the class is 9 "
                                      "of 5xxx"));
        if (which == 7)
            CHECK(strstr(err.message, "of output 'cls' returned -12345 for sample 7") &&
                  !strstr(err.message, "sample 7:"));
        pstk_close(&loader);
    }
}

TEST(a_ragged_batch_over_its_budget_names_the_setting)
{
    struct pstk_output o = {
        .field = "text", .kind = PSTK_OUTPUT_BYTES, .ragged.bytes_per_batch = 64};
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct pstk_error err;
    int r;
    pstk_error_init(&err, sizeof err);
    s.outputs = &o;
    s.n_outputs = 1;
    CHECK_EQ(pstk_open(&loader, &s, &err), 0);
    while ((r = pstk_next(loader, &b, NULL, -1, &err)) == 1)
        pstk_release(&b, NULL);
    CHECK_EQ(r, PSTK_EFBIG);
    CHECK(strstr(err.message, "bytes_per_batch"));
    pstk_close(&loader);
}

TEST(an_error_is_never_written_past_its_size)
{
    uint64_t rest = 0;
    struct pstk_output o = {.field = "cls",
                            .kind = PSTK_OUTPUT_CALLBACK,
                            .dtype = PSTK_U8,
                            .callback.n_dims = 1,
                            .callback.shape = {1},
                            .callback.decode = refuse_decode,
                            .callback.user = &rest};
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    uint8_t bytes[sizeof(struct pstk_error)];
    struct pstk_error *small = malloc(64); /* exact, so that ASan sees a write behind it */
    CHECK(small);
    pstk_error_init(small, 64);
    s.outputs = &o;
    s.n_outputs = 1;
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    memcpy(bytes, small, 64);
    CHECK_EQ(pstk_next(loader, &b, NULL, -1, small), PSTK_EBADMSG);
    CHECK_EQ(memcmp(bytes, small, 64), 0);
    free(small);
    pstk_close(&loader);
}

TEST(failures_of_the_machine_are_not_replaced_as_bad_samples)
{
    struct pstk_output o = {.field = "cls",
                            .kind = PSTK_OUTPUT_CALLBACK,
                            .dtype = PSTK_U8,
                            .callback.n_dims = 1,
                            .callback.shape = {1},
                            .callback.decode = no_memory_decode};
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    s.outputs = &o;
    s.n_outputs = 1;
    s.bad_sample = PSTK_BAD_REPLACE;
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_next(loader, &b, NULL, -1, NULL), PSTK_ENOMEM);
    pstk_close(&loader);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(damage_arrives_in_stream_order_and_stays),
        CASE(replacements_are_the_same_for_any_threads_and_reported),
        CASE(a_replacement_is_of_the_same_subset),
        CASE(measuring_the_ceilings_reports_no_bad_sample),
        CASE(a_missing_shard_is_an_error_that_names_it),
        CASE(a_truncated_shard_is_an_error_that_names_it),
        CASE(a_shard_cut_under_a_running_loader_is_an_error),
        CASE(a_users_decode_error_is_the_lowest_rows),
        CASE(a_users_decode_function_says_why_it_fails),
        CASE(a_ragged_batch_over_its_budget_names_the_setting),
        CASE(an_error_is_never_written_past_its_size),
        CASE(failures_of_the_machine_are_not_replaced_as_bad_samples),
    };
    const char *reader = getenv("PENSTOCK_TEST_READER");
    if (reader && strcmp(reader, "threads") == 0)
        reader_kind = PSTK_READER_THREADS;
    sample_set_path(path, sizeof path);
    sample_set_make(path, N_SAMPLES, 65536, PSTK_CODEC_NONE);
    int r = RUN_CASES(cases);
    sample_set_remove(path);
    return r;
}
