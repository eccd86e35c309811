/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts and reports that come when a batch is delivered, by the thread that takes it and whatever
 * the threads that made it: bad samples that others replaced, and images with a palette.
 */
#include "base/clock.h"
#include "cuda_fake.h"
#include "support/png_writer.h"
#include "support/sample_set.h"
#include "support/test.h"

#include <pthread.h>
#include <stdatomic.h>

#define N_SAMPLES 200
#define MAX_SEEN 64
#define STEP 5 /* distance of bad samples, unless a test has another: 2, 7, 12, ... */

static char path[4200];
static uint32_t reader_kind; /* PSTK_READER_AUTO, or threads under TSan */

/* The bad samples: all except `good`, or, without one, every `step`th. */
struct rule {
    uint64_t step;
    uint64_t good; /* PSTK_NONE: none */
    int none_good; /* 1: not even one */
    int slow;      /* 1: earlier rows take longer, so that later ones fail first */
};

static const struct rule every_fifth = {.step = STEP, .good = PSTK_NONE};

static int refuse(void *user, const struct pstk_sample *sample, void *row, uint64_t size)
{
    const struct rule *rule = user;
    const uint64_t id = sample->sample_id;
    memset(row, (int)id, size);
    if (rule->slow)
        usleep(sample->position % 40 < 4 ? 3000 : 50);
    if (rule->none_good || (rule->good != PSTK_NONE && id != rule->good))
        return PSTK_EBADMSG;
    return rule->step && id % rule->step == 2 ? PSTK_EBADMSG : 0;
}

/* The arguments of the callback. */
struct seen {
    pthread_t thread;
    int elsewhere; /* calls on another thread */
    uint32_t n;
    uint64_t bad[MAX_SEEN], replacements[MAX_SEEN], positions[MAX_SEEN];
    char last[768];
};

static void see(void *user, const struct pstk_error *bad, uint64_t replacement_id)
{
    struct seen *s = user;
    s->elsewhere += !pthread_equal(s->thread, pthread_self());
    if (s->n < MAX_SEEN) {
        s->bad[s->n] = bad->sample_id;
        s->replacements[s->n] = replacement_id;
        s->positions[s->n] = bad->position;
    }
    s->n++;
    snprintf(s->last, sizeof s->last, "%s", bad->message);
}

static struct pstk_output output_of(struct rule *rule)
{
    return (struct pstk_output){.field = "cls",
                                .kind = PSTK_OUTPUT_CALLBACK,
                                .dtype = PSTK_U8,
                                .callback.n_dims = 1,
                                .callback.shape = {1},
                                .callback.decode = refuse,
                                .callback.user = rule};
}

static struct pstk_settings settings_of(const struct pstk_output *output, struct seen *seen)
{
    struct pstk_settings s;
    pstk_settings_init(&s, sizeof s);
    s.path = path;
    s.outputs = output;
    s.n_outputs = 1;
    s.batch_size = 10;
    s.order.kind = PSTK_ORDER_SEQUENTIAL;
    s.reading.reader = reader_kind;
    s.bad_sample = PSTK_BAD_REPLACE;
    s.on_bad_sample = see;
    s.bad_sample_user = seen;
    *seen = (struct seen){.thread = pthread_self()};
    return s;
}

static struct pstk_stats stats_of(const struct pstk_loader *loader)
{
    struct pstk_stats st = {.size = sizeof st};
    pstk_get_stats(loader, &st);
    return st;
}

/* Until the workers have filled every slot. */
static void wait_for_rows(const struct pstk_loader *loader, uint64_t n)
{
    WAIT_UNTIL(stats_of(loader).stage_workers.n_items >= n);
}

TEST(rows_that_were_read_ahead_and_not_delivered_are_neither_counted_nor_reported)
{
    struct rule rule = every_fifth;
    struct pstk_output o = output_of(&rule);
    struct seen seen;
    struct pstk_settings s = settings_of(&o, &seen);
    struct pstk_loader *loader;
    struct pstk_batch *b;
    s.memory.n_slots = 6;
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    wait_for_rows(loader, 60);
    CHECK_EQ(stats_of(loader).n_replacements, 0);
    CHECK_EQ(seen.n, 0);
    for (int i = 1; i <= 3; i++) {
        CHECK_EQ(pstk_next(loader, &b, NULL, -1, NULL), 1);
        CHECK_EQ(b->n_replacements, 2);
        pstk_release(&b, NULL);
        CHECK_EQ(stats_of(loader).n_replacements, 2 * i);
        CHECK_EQ(seen.n, 2 * i);
    }
    /* Batches that were read ahead are dropped; batches that are delivered again count again. */
    const uint64_t n_before = stats_of(loader).stage_workers.n_items;
    CHECK_EQ(pstk_seek(loader, 0, 100, NULL), 0);
    CHECK_EQ(pstk_seek(loader, 0, 0, NULL), 0);
    CHECK_EQ(pstk_next(loader, &b, NULL, -1, NULL), 1);
    pstk_release(&b, NULL);
    wait_for_rows(loader, n_before + 70); /* this batch, and one in each slot */
    pstk_close(&loader);
    CHECK_EQ(seen.n, 8);
    CHECK_EQ(seen.bad[6], 2);
    CHECK_EQ(seen.bad[7], 7);
}

TEST(reports_come_in_next_on_its_thread_in_the_order_of_positions)
{
    struct rule rule = every_fifth;
    struct pstk_output o = output_of(&rule);
    struct seen seen;
    struct pstk_settings s = settings_of(&o, &seen);
    struct pstk_loader *loader;
    struct pstk_batch *b;
    uint32_t n = 0;
    rule.slow = 1;
    s.n_threads = 4;
    s.memory.n_slots = 2; /* so that all threads fill the same slot */
    s.batch_size = 40;
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    while (pstk_next(loader, &b, NULL, -1, NULL) == 1) {
        CHECK_EQ(seen.n, n + 8);
        for (; n < seen.n; n++) {
            const uint64_t row = seen.positions[n] - b->position;
            CHECK_EQ(seen.bad[n], STEP * n + 2);
            CHECK(row < 40);
            CHECK_EQ(b->sample_ids[row], seen.bad[n]);
            CHECK_EQ(b->replacement_ids[row], seen.replacements[n]);
        }
        pstk_release(&b, NULL);
    }
    pstk_close(&loader);
    CHECK_EQ(n, 40);
    CHECK_EQ(seen.elsewhere, 0);
}

/* 13 of 40 rows are bad: 2, 5, 8, ... */
TEST(the_lowest_rows_are_described_and_the_others_counted_whatever_the_threads)
{
    for (uint32_t threads = 1; threads <= 6; threads++) {
        struct rule rule = {.step = 3, .good = PSTK_NONE, .slow = 1};
        struct pstk_output o = output_of(&rule);
        struct seen seen;
        struct pstk_settings s = settings_of(&o, &seen);
        struct pstk_loader *loader;
        struct pstk_batch *b;
        s.n_threads = threads;
        s.memory.n_slots = 2;
        s.batch_size = 40;
        CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
        CHECK_EQ(pstk_next(loader, &b, NULL, -1, NULL), 1);
        CHECK_EQ(b->n_replacements, 13);
        CHECK_EQ(b->n_reports, PSTK_MAX_REPORTS + 1);
        CHECK_EQ(b->report_size, sizeof *b->reports);
        CHECK_EQ(seen.n, b->n_reports);
        for (uint32_t i = 0; i < PSTK_MAX_REPORTS; i++) {
            const struct pstk_report *r = &b->reports[i];
            CHECK_EQ(r->row, 3 * i + 2);
            CHECK_EQ(r->error.sample_id, b->sample_ids[r->row]);
            CHECK_EQ(r->error.code, PSTK_EBADMSG);
            CHECK_EQ(r->replacement_id, b->replacement_ids[r->row]);
            CHECK_EQ(((const uint8_t *)b->tensors[0].data)[r->row], r->replacement_id);
            CHECK_EQ(seen.bad[i], r->error.sample_id);
            CHECK_EQ(seen.replacements[i], r->replacement_id);
        }
        CHECK_EQ(b->reports[PSTK_MAX_REPORTS].row, UINT32_MAX);
        CHECK_EQ(seen.bad[PSTK_MAX_REPORTS], PSTK_NONE);
        CHECK_EQ(seen.replacements[PSTK_MAX_REPORTS], PSTK_NONE);
        CHECK_STR(seen.last,
                  "5 more bad samples of the batch at epoch 0, position 0 were replaced: "
                  "only the first 8 of a batch are described");
        CHECK_EQ(stats_of(loader).n_replacements, 13);
        pstk_release(&b, NULL);
        pstk_close(&loader);
    }
}

TEST(small_batches_have_a_report_for_every_row_and_a_loader_that_stops_at_errors_none)
{
    struct rule rule = {.good = 50};
    struct pstk_output o = output_of(&rule);
    struct seen seen;
    struct pstk_settings s = settings_of(&o, &seen);
    struct pstk_loader *loader;
    struct pstk_batch *b;
    s.batch_size = PSTK_MAX_REPORTS;
    s.order.position = 48; /* a try among 200 samples meets the good one seldom: some row fails */
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_next(loader, &b, NULL, -1, NULL), PSTK_EBADMSG);
    CHECK_EQ(seen.n, 0);
    CHECK_EQ(stats_of(loader).n_replacements, 0);
    const uint64_t with_reports = stats_of(loader).slot_memory / stats_of(loader).n_slots;
    pstk_close(&loader);
    s.bad_sample = PSTK_BAD_ERROR;
    s.on_bad_sample = NULL;
    s.order.position = 50;
    rule = every_fifth;
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    const uint64_t without = stats_of(loader).slot_memory / stats_of(loader).n_slots;
    const uint64_t reports = PSTK_MAX_REPORTS * sizeof(struct pstk_report);
    CHECK_EQ(with_reports - without, (reports + 255) / 256 * 256);
    pstk_close(&loader);
}

struct mover {
    struct pstk_loader *loader;
    struct pstk_batch *older;
    struct pstk_error error;
    int next, seek, closed, stats, cursor, is_read;
    uint64_t n_replacements, position;
    uint8_t first;
};

static void move(void *user, const struct pstk_error *bad, uint64_t replacement_id)
{
    struct mover *m = user;
    struct pstk_loader *loader = m->loader;
    struct pstk_batch *b = m->older; /* next nulls it, also where it refuses */
    uint64_t epoch;
    (void)bad, (void)replacement_id;
    if (!m->older)
        return;
    pstk_error_init(&m->error, sizeof m->error);
    m->next = pstk_next(loader, &b, NULL, -1, &m->error);
    m->seek = pstk_seek(loader, 0, 0, NULL);
    pstk_close(&loader);
    m->closed = loader == NULL;
    m->n_replacements = stats_of(m->loader).n_replacements;
    m->cursor = pstk_get_cursor(m->loader, &epoch, &m->position);
    m->is_read = pstk_batch_read(m->older, 0, &m->first, 1, NULL, NULL) == 0;
    pstk_release(&m->older, NULL);
    pstk_interrupt(m->loader);
}

TEST(in_the_callback_the_loader_can_be_looked_at_but_neither_moved_nor_closed)
{
    struct rule rule = every_fifth;
    struct pstk_output o = output_of(&rule);
    struct seen seen;
    struct pstk_settings s = settings_of(&o, &seen);
    struct mover m = {.next = 1};
    struct pstk_batch *b;
    s.on_bad_sample = move;
    s.bad_sample_user = &m;
    s.memory.n_slots = 2;
    CHECK_EQ(pstk_open(&m.loader, &s, NULL), 0);
    CHECK_EQ(pstk_next(m.loader, &m.older, NULL, -1, NULL), 1);
    CHECK_EQ(pstk_next(m.loader, &b, NULL, -1, NULL), 1);
    CHECK_EQ(m.next, PSTK_EBUSY);
    CHECK(strstr(m.error.message, "on_bad_sample"));
    CHECK_EQ(m.seek, PSTK_EBUSY);
    CHECK_EQ(m.closed, 0);
    CHECK_EQ(m.n_replacements, 4);
    CHECK_EQ(m.cursor, 0);
    CHECK_EQ(m.position, 20);
    CHECK(m.is_read && m.first == 0);
    CHECK(m.older == NULL);
    CHECK_EQ(b->position, 10);
    pstk_release(&b, NULL);
    /* The slot that was released there is filled again, and the loader moves as before. */
    int r = pstk_next(m.loader, &b, NULL, -1, NULL);
    if (r == PSTK_EINTR) /* the interrupt, where that batch was not there yet */
        r = pstk_next(m.loader, &b, NULL, -1, NULL);
    CHECK_EQ(r, 1);
    CHECK_EQ(b->position, 20);
    pstk_release(&b, NULL);
    CHECK_EQ(pstk_seek(m.loader, 0, 0, NULL), 0);
    pstk_close(&m.loader);
    CHECK(m.loader == NULL);
}

/* The error of sample `id` of a data set of n samples in one shard, or its replacement. */
static uint64_t replacement_in(uint64_t n, uint64_t shard_size, struct rule rule, uint64_t id,
                               char message[768])
{
    char small[4200];
    struct pstk_output o = output_of(&rule);
    struct seen seen;
    struct pstk_settings s = settings_of(&o, &seen);
    struct pstk_loader *loader = NULL;
    struct pstk_batch *b;
    struct pstk_error err;
    uint64_t other = PSTK_NONE;
    pstk_error_init(&err, sizeof err);
    sample_set_path(small, sizeof small);
    sample_set_make(small, n, shard_size, PSTK_CODEC_NONE);
    s.path = small;
    s.batch_size = 1;
    s.order.position = id;
    if (pstk_open(&loader, &s, &err) == 0 && pstk_next(loader, &b, NULL, -1, &err) == 1) {
        other = b->replacement_ids[0];
        pstk_release(&b, NULL);
    }
    pstk_close(&loader);
    sample_set_remove(small);
    memcpy(message, err.message, sizeof err.message);
    return other;
}

TEST(the_one_good_sample_of_a_small_shard_replaces_all_others)
{
    char message[768];
    for (uint64_t id = 0; id < 9; id++) {
        const struct rule rule = {.good = (id + 4) % 9};
        CHECK_EQ(replacement_in(9, 1 << 20, rule, id, message), rule.good);
    }
}

TEST(a_bad_sample_that_none_can_replace_says_why)
{
    const struct {
        uint64_t n, shard_size;
        const char *why;
    } cases[] = {
        {1, 1 << 20, "; no sample can replace it: the data set has no other sample"},
        {2, 1 << 20,
         "; no sample can replace it: the only other sample of the data set is bad too"},
        {4, 1 << 20, "; no sample can replace it: all 3 other samples of the data set are bad too"},
        {20, 1 << 20,
         "; no sample can replace it: 8 other samples of the data set were tried, and "
         "are bad too"},
        {400, 1 << 16,
         "; no sample can replace it: 8 other samples of its shard were tried, and "
         "are bad too"}};
    const struct rule rule = {.none_good = 1};
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char message[768];
        CHECK_EQ(replacement_in(cases[i].n, cases[i].shard_size, rule, 0, message), PSTK_NONE);
        const char *end = strchr(message, ';');
        CHECK(end && strstr(message, "returned -74 for sample 0"));
        CHECK_STR(end, cases[i].why);
    }
}

/* ---- a device ------------------------------------------------------------------------------- */

/* All that an epoch's batches report, as numbers. */
static uint64_t reports_of(const struct pstk_settings *s, void *stream, struct seen *seen)
{
    struct pstk_loader *loader;
    struct pstk_batch *b;
    uint64_t sum = 0;
    *seen = (struct seen){.thread = pthread_self()};
    if (pstk_open(&loader, s, NULL) < 0)
        return 0;
    while (pstk_next(loader, &b, stream, 20000000000, NULL) == 1) {
        for (uint32_t i = 0; i < b->n_reports; i++)
            sum = sum * 31 + pstk_crc32c(0, &b->reports[i], sizeof b->reports[i]);
        sum += b->n_replacements;
        pstk_release(&b, stream);
    }
    pstk_close(&loader);
    return sum;
}

TEST(a_device_reports_what_the_host_does)
{
    struct rule rule = {.step = 3, .good = PSTK_NONE};
    struct pstk_output o = output_of(&rule);
    struct seen on_host, on_device;
    struct pstk_settings s = settings_of(&o, &on_host);
    s.batch_size = 40;
    const uint64_t wanted = reports_of(&s, NULL, &on_host);
    CHECK(wanted != 0);
    cuda_fake_open(&(struct cuda_fake_config){.max_delay_us = 200});
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    s.device.kind = PSTK_CUDA;
    s.bad_sample_user = &on_device;
    for (s.device.n_slots = 2; s.device.n_slots < 5; s.device.n_slots++) {
        CHECK_EQ(reports_of(&s, stream, &on_device), wanted);
        CHECK_EQ(on_device.n, on_host.n);
        CHECK_EQ(memcmp(on_device.bad, on_host.bad, sizeof on_host.bad), 0);
        CHECK_EQ(memcmp(on_device.replacements, on_host.replacements, sizeof on_host.bad), 0);
        CHECK_EQ(on_device.elsewhere, 0);
    }
    cudaStreamDestroy(stream);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(the_stated_memory_includes_the_reports_of_device_slots)
{
    struct rule rule = every_fifth;
    struct pstk_output o = output_of(&rule);
    struct seen seen;
    struct pstk_settings s = settings_of(&o, &seen);
    struct pstk_loader *loader;
    struct pstk_stats stats[2];
    cuda_fake_open(NULL);
    s.device.kind = PSTK_CUDA;
    s.memory.n_slots = 3;
    for (uint32_t i = 0; i < 2; i++) {
        s.device.n_slots = 2 + i;
        CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
        stats[i] = stats_of(loader);
        pstk_close(&loader);
    }
    CHECK(stats[1].slot_memory - stats[0].slot_memory >=
          (PSTK_MAX_REPORTS + 1) * sizeof(struct pstk_report));
    s.memory.io_memory = stats[1].io_memory;
    s.memory.max_memory = stats[1].slot_memory + stats[1].io_memory + stats[1].index_memory;
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    pstk_close(&loader);
    s.memory.max_memory--;
    CHECK_EQ(pstk_open(&loader, &s, NULL), PSTK_ENOMEM);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(a_batch_whose_stream_is_refused_is_reported_once_when_it_is_delivered)
{
    struct rule rule = every_fifth;
    struct pstk_output o = output_of(&rule);
    struct seen seen;
    struct pstk_settings s = settings_of(&o, &seen);
    struct pstk_loader *loader;
    struct pstk_batch *b;
    cudaStream_t mine, other;
    cuda_fake_open(&(struct cuda_fake_config){.n_devices = 2});
    cudaStreamCreateWithFlags(&mine, cudaStreamNonBlocking);
    cudaSetDevice(1);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cudaSetDevice(0);
    s.device.kind = PSTK_CUDA;
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_next(loader, &b, other, 20000000000, NULL), PSTK_EINVAL);
    CHECK_EQ(seen.n, 0);
    CHECK_EQ(stats_of(loader).n_replacements, 0);
    CHECK_EQ(pstk_next(loader, &b, mine, 20000000000, NULL), 1);
    CHECK_EQ(seen.n, 2);
    CHECK_EQ(stats_of(loader).n_replacements, 2);
    pstk_release(&b, mine);
    pstk_close(&loader);
    cudaStreamDestroy(mine);
    cudaStreamDestroy(other);
    CHECK_EQ(cuda_fake_close(), 0);
}

/* ---- palettes ------------------------------------------------------------------------------- */

static const int colours[] = {PNG_COLOR_TYPE_PALETTE, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_RGB,
                              PNG_COLOR_TYPE_RGB_ALPHA, PNG_COLOR_TYPE_PALETTE};
#define N_COLOURS (sizeof colours / sizeof *colours)

/* A data set of one small PNG file of each kind, in an image field and as bytes. */
static int write_pngs(const char *to)
{
    struct pstk_field fields[] = {{.name = "png", .kind = PSTK_FIELD_IMAGE},
                                  {.name = "file", .kind = PSTK_FIELD_BYTES}};
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    pstk_writer_settings_init(&s, sizeof s);
    s.path = to;
    s.fields = fields;
    s.n_fields = 2;
    int r = pstk_writer_open(&w, &s, NULL);
    for (uint32_t i = 0; r == 0 && i < N_COLOURS; i++) {
        const struct png_spec spec = {.width = 9, .height = 7, .color = colours[i], .depth = 8};
        size_t size;
        uint8_t *file = png_write(&spec, &size);
        const struct pstk_value v[] = {{file, size}, {file, size}};
        if (pstk_image_is_palette(file, size) != (colours[i] == PNG_COLOR_TYPE_PALETTE))
            r = -1;
        if (r == 0)
            r = pstk_writer_add(w, v, 2, NULL);
        free(file);
    }
    return r == 0 ? pstk_writer_commit(&w, NULL) : r;
}

TEST(images_with_a_palette_are_counted_when_their_batch_is_delivered)
{
    char pngs[4200];
    const struct pstk_op ops[] = {pstk_resize(4, 4)};
    const struct pstk_output os[] = {{.name = "a",
                                      .field = "png",
                                      .kind = PSTK_OUTPUT_IMAGE,
                                      .image.ops = ops,
                                      .image.n_ops = 1},
                                     {.name = "b",
                                      .field = "png",
                                      .kind = PSTK_OUTPUT_IMAGE,
                                      .image.ops = ops,
                                      .image.n_ops = 1},
                                     {.field = "file", .kind = PSTK_OUTPUT_BYTES}};
    const uint32_t counts[] = {1, 0, 1};
    struct pstk_settings s;
    struct pstk_loader *loader;
    struct pstk_batch *b;
    sample_set_path(pngs, sizeof pngs);
    CHECK_EQ(write_pngs(pngs), 0);
    for (uint32_t first = 0; first < 3; first++) { /* both outputs, one, none */
        uint64_t n = 0;
        pstk_settings_init(&s, sizeof s);
        s.path = pngs;
        s.outputs = &os[first];
        s.n_outputs = 3 - first;
        s.batch_size = 2;
        s.order.kind = PSTK_ORDER_SEQUENTIAL;
        s.last_batch = PSTK_LAST_SHORT;
        s.reading.reader = reader_kind;
        CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
        wait_for_rows(loader, N_COLOURS);
        for (uint32_t i = 0; i < 3; i++) {
            CHECK_EQ(stats_of(loader).n_palette_images, n);
            CHECK_EQ(pstk_next(loader, &b, NULL, -1, NULL), 1);
            CHECK_EQ(b->n_palette_images, first < 2 ? counts[i] : 0);
            n += b->n_palette_images;
            pstk_release(&b, NULL);
        }
        CHECK_EQ(stats_of(loader).n_palette_images, n);
        pstk_close(&loader);
    }
    sample_set_remove(pngs);
}

TEST(short_or_foreign_bytes_are_no_png_with_a_palette)
{
    const uint8_t start[27] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0, 13, 'I', 'H',
                               'D',  'R', 0,   0,   0,    1,    0,    0,    0, 1, 8, 3,  0};
    uint8_t other[27];
    memcpy(other, start, sizeof other);
    other[0] = 0x88;
    CHECK_EQ(pstk_image_is_palette(start, 26), 1);
    CHECK_EQ(pstk_image_is_palette(start, 25), 0);
    CHECK_EQ(pstk_image_is_palette(other, 27), 0);
    CHECK_EQ(pstk_image_is_palette(NULL, 0), 0);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(rows_that_were_read_ahead_and_not_delivered_are_neither_counted_nor_reported),
        CASE(reports_come_in_next_on_its_thread_in_the_order_of_positions),
        CASE(the_lowest_rows_are_described_and_the_others_counted_whatever_the_threads),
        CASE(small_batches_have_a_report_for_every_row_and_a_loader_that_stops_at_errors_none),
        CASE(in_the_callback_the_loader_can_be_looked_at_but_neither_moved_nor_closed),
        CASE(the_one_good_sample_of_a_small_shard_replaces_all_others),
        CASE(a_bad_sample_that_none_can_replace_says_why),
        CASE(a_device_reports_what_the_host_does),
        CASE(the_stated_memory_includes_the_reports_of_device_slots),
        CASE(a_batch_whose_stream_is_refused_is_reported_once_when_it_is_delivered),
        CASE(images_with_a_palette_are_counted_when_their_batch_is_delivered),
        CASE(short_or_foreign_bytes_are_no_png_with_a_palette),
    };
    const char *reader = getenv("PENSTOCK_TEST_READER");
    if (reader && strcmp(reader, "threads") == 0)
        reader_kind = PSTK_READER_THREADS;
    sample_set_path(path, sizeof path);
    sample_set_make(path, N_SAMPLES, 1 << 20, PSTK_CODEC_NONE);
    int r = RUN_CASES(cases);
    sample_set_remove(path);
    return r;
}
