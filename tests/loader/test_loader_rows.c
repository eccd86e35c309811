/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that change their number of rows: each is that of a loader with its size alone, from its
 * position; and together they cover every epoch once. For any number of threads, slots and ranks,
 * on the host and on a device. */
#include "cuda_fake.h"
#include "support/sample_set.h"
#include "support/test.h"

#define N_SAMPLES 103
#define MOST 16 /* rows of a rank */
#define SIDE 9

static char path[4200];

struct setup {
    struct pstk_op ops[3];
    struct pstk_output outputs[4];
    struct pstk_settings settings;
};

static void setup_init(struct setup *setup, uint32_t dtype)
{
    setup->ops[0] = pstk_random_resized_crop(SIDE, SIDE);
    setup->ops[1] = pstk_random_flip(0.5);
    setup->ops[2] = pstk_normalize(PSTK_IMAGENET_MEAN, PSTK_IMAGENET_STD);
    setup->outputs[0] = pstk_output_scalar("cls", PSTK_I64);
    setup->outputs[1] = pstk_output_image("img", setup->ops, dtype == PSTK_U8 ? 2 : 3, dtype,
                                          dtype == PSTK_U8 ? PSTK_NHWC : PSTK_NCHW);
    setup->outputs[2] = pstk_output_ragged("boxes");
    setup->outputs[3] = pstk_output_bytes("text");
    struct pstk_settings *s = &setup->settings;
    pstk_settings_init(s, sizeof *s);
    s->path = path;
    s->outputs = setup->outputs;
    s->n_outputs = 4;
    s->observe.report_crops = 1;
    s->seed = 5;
}

/* A copy of the parts of a batch that a program sees. */
struct copy {
    uint8_t data[4][MOST * SIDE * SIDE * 3 * 4];
    int64_t offsets[2][MOST + 1];
    uint64_t ids[MOST], others[MOST];
    struct pstk_crop crops[MOST];
    int64_t shape[4][10], strides[4][10];
    uint64_t size[4], position, next_position, epoch, index;
    uint32_t n_valid, n_rows;
};

static struct copy found, wanted;

static int copy_batch(struct copy *copy, const struct pstk_batch *b, cudaStream_t stream)
{
    memset(copy, 0, sizeof *copy);
    copy->position = b->position;
    copy->next_position = b->next_position;
    copy->epoch = b->epoch;
    copy->index = b->index;
    copy->n_valid = b->n_valid;
    copy->n_rows = b->n_rows;
    memcpy(copy->ids, b->sample_ids, b->n_valid * sizeof *copy->ids);
    memcpy(copy->others, b->replacement_ids, b->n_valid * sizeof *copy->others);
    memcpy(copy->crops, &b->crops[b->n_rows], b->n_rows * sizeof *copy->crops);
    for (uint32_t i = 0; i < 4; i++) {
        const struct pstk_tensor *t = &b->tensors[i];
        copy->size[i] = t->size;
        memcpy(copy->shape[i], t->shape, sizeof t->shape);
        memcpy(copy->strides[i], t->strides, sizeof t->strides);
        if (i >= 2)
            memcpy(copy->offsets[i - 2], t->offsets, (b->n_rows + 1) * sizeof *t->offsets);
        if (t->size > sizeof copy->data[i])
            return -1;
        if (stream && pstk_batch_read(b, i, copy->data[i], t->size, stream, NULL) < 0)
            return -1;
        if (!stream)
            memcpy(copy->data[i], t->data, t->size);
    }
    return 0;
}

/* The batch at a place, from a loader of `rows` alone, on the host. */
static int copy_alone(const struct setup *setup, uint32_t rows, uint64_t epoch, uint64_t position)
{
    struct setup one = *setup;
    struct pstk_loader *loader;
    struct pstk_batch *b;
    one.settings.outputs = one.outputs;
    one.outputs[1].image.ops = one.ops;
    one.settings.device.kind = PSTK_HOST;
    one.settings.memory.max_batch_size = one.settings.order.n_batch_steps = 0;
    one.settings.order.batch_schedule = NULL;
    one.settings.n_threads = 1;
    one.settings.memory.n_slots = 2;
    one.settings.reading.reader = PSTK_READER_THREADS; /* and few reads at a time: cheap to open */
    one.settings.reading.queue_depth = 4;
    *(setup->settings.global_batch_size ? &one.settings.global_batch_size
                                        : &one.settings.batch_size) = rows;
    one.settings.order.epoch = epoch;
    one.settings.order.position = position;
    int r = pstk_open(&loader, &one.settings, NULL);
    if (r == 0)
        r = pstk_next(loader, &b, NULL, -1, NULL) == 1 ? 0 : -1;
    if (r == 0) {
        r = copy_batch(&wanted, b, NULL);
        pstk_release(&b, NULL);
    }
    pstk_close(&loader);
    return r;
}

/* Return where the batch at a cursor ends, by a naive walk; 0: the epoch has none there. */
static uint64_t naive_end(const struct pstk_settings *s, uint64_t global, uint64_t position)
{
    if (position >= N_SAMPLES)
        return 0;
    if (position + global <= N_SAMPLES)
        return position + global;
    return s->last_batch == PSTK_LAST_DROP ? 0 : N_SAMPLES;
}

static uint32_t next_random(uint32_t *state)
{
    return *state = *state * 1664525u + 1013904223u;
}

/* Go through n batches, with other rows before some of them, and look at some. */
static int walks(const struct setup *setup, uint32_t n, uint32_t random)
{
    const struct pstk_settings *s = &setup->settings;
    const uint32_t world = s->ranks.world, of_all = s->global_batch_size;
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct pstk_error err;
    cudaStream_t stream = NULL;
    uint64_t epoch = s->order.epoch, position = s->order.position;
    uint32_t rows = of_all ? of_all : s->batch_size;
    pstk_error_init(&err, sizeof err);
    if (s->device.kind == PSTK_CUDA)
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    int r = pstk_open(&loader, s, &err);
    for (uint32_t i = 0; r == 0 && i < n; i++) {
        if (next_random(&random) >> 28 < 6) {
            const uint32_t own = 1 + next_random(&random) % 65536 % MOST;
            rows = !of_all           ? own
                   : s->order.uneven ? own * world - (world - 1) + own % world
                                     : own * world;
            if (of_all && rows < world)
                rows = world;
            r = pstk_set_batch_size(loader, rows, &err);
        }
        const uint64_t global = of_all ? rows : (uint64_t)rows * world;
        uint64_t end = naive_end(s, global, position);
        if (r == 0 && end == 0) {
            if (position > 0)
                r = pstk_next(loader, &b, stream, -1, &err) == 0 ? 0 : -1;
            epoch++;
            position = 0;
            end = naive_end(s, global, 0);
        }
        if (r == 0)
            r = pstk_next(loader, &b, stream, -1, &err) == 1 ? 0 : -1;
        if (r < 0)
            break;
        if (b->epoch != epoch || b->position != position || b->next_position != end)
            r = -2;
        if (r == 0 && i % 3 == 0)
            r = copy_batch(&found, b, stream) | copy_alone(setup, rows, epoch, position);
        if (r == 0 && i % 3 == 0 && memcmp(&found, &wanted, sizeof found) != 0)
            r = -3;
        pstk_release(&b, stream);
        position = end;
        if (r < 0)
            printf("# batch %u of %u rows at %llu: %d\n", i, rows, (unsigned long long)position, r);
    }
    if (r < 0)
        printf("# %d: %s\n", r, err.message);
    pstk_close(&loader);
    if (stream)
        cudaStreamDestroy(stream);
    return r == 0;
}

TEST(batches_are_those_of_a_loader_of_their_size)
{
    static const uint32_t dtypes[] = {PSTK_U8, PSTK_F16, PSTK_F32};
    for (uint32_t k = 0; k < 24; k++) {
        struct setup setup;
        setup_init(&setup, dtypes[k % 3]);
        struct pstk_settings *s = &setup.settings;
        s->ranks.world = 1 + k % 4;
        s->ranks.rank = k / 4 % s->ranks.world;
        s->n_threads = 1 + k % 3;
        s->memory.n_slots = k % 2 ? 0 : 2 + k % 5;
        s->reading.reader = k % 3 == 0 ? PSTK_READER_THREADS : PSTK_READER_AUTO;
        s->last_batch = k / 3 % 3;
        s->order.epoch = k;
        s->memory.max_batch_size = MOST;
        s->order.uneven = k % 3 == 2;
        if (s->order.uneven || k % 5 == 0)
            s->global_batch_size = 3 * s->ranks.world;
        else
            s->batch_size = 1 + k % MOST;
        CHECK(walks(&setup, 60, k));
    }
}

TEST(a_device_gives_them_their_shapes)
{
    for (uint32_t k = 0; k < 6; k++) {
        struct setup setup;
        setup_init(&setup, k % 3 ? PSTK_F16 : PSTK_U8);
        setup.settings.batch_size = 7;
        setup.settings.memory.max_batch_size = MOST;
        setup.settings.last_batch = k % 3;
        cuda_fake_open(&(struct cuda_fake_config){.max_delay_us = 100});
        setup.settings.device.kind = PSTK_CUDA;
        const int right = walks(&setup, 60, k);
        CHECK_EQ(cuda_fake_close(), 0);
        CHECK(right);
    }
}

/* Every epoch's samples once, whatever the sizes, and from a cursor by a loader of another size. */
TEST(every_sample_comes_once)
{
    for (uint32_t k = 0; k < 12; k++) {
        uint32_t times[2][N_SAMPLES] = {{0}}, random = k;
        uint64_t epoch = 0, position = 0;
        struct setup setup;
        setup_init(&setup, PSTK_U8);
        setup.settings.last_batch = PSTK_LAST_SHORT;
        setup.settings.memory.max_batch_size = MOST;
        while (epoch < 2) { /* a loader a round */
            struct pstk_loader *loader;
            struct pstk_batch *b;
            setup.settings.order.epoch = epoch;
            setup.settings.order.position = position;
            setup.settings.batch_size = 1 + k;
            CHECK_EQ(pstk_open(&loader, &setup.settings, NULL), 0);
            for (uint32_t i = 0; i < 7; i++) {
                const uint32_t rows = 1 + next_random(&random) % 65536 % MOST;
                CHECK_EQ(pstk_set_batch_size(loader, rows, NULL), 0);
                const int r = pstk_next(loader, &b, NULL, -1, NULL);
                CHECK(r >= 0);
                if (r == 0)
                    continue;
                CHECK_EQ(b->n_rows, rows);
                for (uint32_t row = 0; row < b->n_valid && b->epoch < 2; row++)
                    times[b->epoch][b->sample_ids[row]]++;
                pstk_release(&b, NULL);
            }
            CHECK_EQ(pstk_get_cursor(loader, &epoch, &position), 0);
            if (epoch == 0 && position == N_SAMPLES) {
                epoch = 1;
                position = 0;
            } else if (position == N_SAMPLES) {
                epoch = 2;
            }
            pstk_close(&loader);
        }
        for (uint32_t i = 0; i < N_SAMPLES; i++)
            CHECK(times[0][i] == 1 && times[1][i] == 1);
    }
}

static struct pstk_error err;

/* The loader refuses a size in words that begin so, and goes on as before. */
static int refuses(struct pstk_loader *loader, uint32_t rows, const char *says)
{
    const uint64_t n = pstk_n_batches(loader);
    const int good = pstk_set_batch_size(loader, rows, &err) == PSTK_EINVAL &&
                     !strncmp(err.message, says, strlen(says)) && pstk_n_batches(loader) == n;
    if (!good)
        printf("# %s\n", err.message);
    return good;
}

TEST(a_batch_size_that_open_would_refuse_is_refused)
{
    struct setup setup;
    struct pstk_loader *loader;
    struct pstk_batch *b;
    pstk_error_init(&err, sizeof err);
    setup_init(&setup, PSTK_U8);
    setup.settings.batch_size = 8;
    CHECK_EQ(pstk_open(&loader, &setup.settings, &err), 0);
    CHECK(refuses(loader, 0, "batch_size: value is 0; must be from 1 to "));
    CHECK(refuses(loader, 9,
                  "batch_size: value is 9; must be at most 8, what slots have room for "
                  "(open with a max_batch_size of at least 9)"));
    CHECK_EQ(pstk_set_batch_size(loader, 4, &err), 0);
    CHECK_EQ(pstk_n_batches(loader), N_SAMPLES / 4);
    CHECK_EQ(pstk_next(loader, &b, NULL, -1, &err), 1);
    CHECK_EQ(b->n_rows, 4);
    pstk_release(&b, NULL);
    pstk_close(&loader);

    setup.settings.memory.max_batch_size = 200;
    CHECK_EQ(pstk_open(&loader, &setup.settings, &err), 0);
    char says[600];
    snprintf(says, sizeof says,
             "batch_size: 104 rows for each of 1 rank are more than the 103 samples of %s, so "
             "last_batch=drop",
             setup.settings.path);
    CHECK(refuses(loader, 104, says));
    CHECK_EQ(pstk_set_batch_size(loader, 103, &err), 0);
    CHECK_EQ(pstk_n_batches(loader), 1);
    pstk_close(&loader);

    setup.settings.memory.max_batch_size = 7;
    CHECK_EQ(pstk_open(&loader, &setup.settings, &err), PSTK_EINVAL);
    CHECK(!strcmp(err.message, "max_batch_size: value is 7; must be 0 or at least the rows of this "
                               "rank's batches, which are 8"));

    setup.settings.batch_size = 1;
    setup.settings.global_batch_size = 8;
    setup.settings.ranks.world = 4;
    setup.settings.memory.max_batch_size = 5;
    CHECK_EQ(pstk_open(&loader, &setup.settings, &err), 0);
    CHECK(refuses(loader, 3, "global_batch_size: value is 3; must be at least world, which is 4"));
    CHECK(refuses(loader, 10, "global_batch_size: value is 10; must be a multiple of world"));
    CHECK(refuses(loader, 24,
                  "global_batch_size: value is 24; must be at most 20, what slots have "
                  "room for (open with a max_batch_size of at least 6)"));
    CHECK_EQ(pstk_set_batch_size(loader, 20, &err), 0);
    CHECK_EQ(pstk_n_batches(loader), 5);
    pstk_close(&loader);
    CHECK_EQ(pstk_set_batch_size(NULL, 4, &err), PSTK_EINVAL);
}

/* A schedule's batches, from any place on: those of loaders of one size. */
static int follows(struct setup *setup, const struct pstk_order_settings *order, uint32_t n)
{
    const struct pstk_settings *s = &setup->settings;
    struct pstk_loader *loader;
    struct pstk_batch *b;
    cudaStream_t stream = NULL;
    struct pstk_order_settings at = *order;
    uint64_t position = s->order.position, ids[MOST];
    uint32_t most = 0;
    at.epoch = s->order.epoch;
    if (s->device.kind == PSTK_CUDA)
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    int r = pstk_open(&loader, s, NULL);
    for (uint32_t i = 0; r == 0 && i < n; i++) {
        const int got = pstk_next(loader, &b, stream, -1, NULL);
        if ((got == 0) != (pstk_order_n_batches(&at, position) == 0) || got < 0)
            r = -1;
        if (got == 0) {
            at.epoch++;
            position = 0;
        }
        if (got != 1)
            continue;
        const uint32_t rows = (uint32_t)pstk_order_rows(&at, position) / s->ranks.world;
        if (b->n_rows != rows || b->epoch != at.epoch || b->position != position ||
            pstk_order_batch(&at, position, ids) != b->n_valid ||
            memcmp(ids, b->sample_ids, b->n_valid * sizeof *ids) != 0)
            r = -2;
        if (r == 0 && i % 4 == 0)
            r = copy_batch(&found, b, stream) | copy_alone(setup, rows, at.epoch, position);
        wanted.index = found.index; /* the index counts on another grid */
        if (r == 0 && i % 4 == 0 && memcmp(&found, &wanted, sizeof found) != 0)
            r = -3;
        most = rows > most ? rows : most;
        position = b->next_position;
        pstk_release(&b, stream);
    }
    if (r < 0)
        printf("# %d at epoch %llu, %llu\n", r, (unsigned long long)at.epoch,
               (unsigned long long)position);
    pstk_close(&loader);
    if (stream)
        cudaStreamDestroy(stream);
    return r == 0 && most > 3;
}

TEST(a_schedule_gives_each_step_its_rows)
{
    static const struct pstk_batch_step steps[] = {
        {3, 7, 0}, {9, 1, 0}, {40, 16, 0}, {41, 2, 0}, {80, 5, 0}};
    for (uint32_t k = 0; k < 12; k++) {
        struct setup setup;
        setup_init(&setup, k % 3 ? PSTK_F16 : PSTK_U8);
        struct pstk_settings *s = &setup.settings;
        s->batch_size = 4;
        s->order.batch_schedule = steps;
        s->order.n_batch_steps = 5;
        s->last_batch = k % 3;
        s->ranks.world = 1 + k % 2;
        s->ranks.rank = k / 2 % s->ranks.world;
        s->order.epoch = k / 4;
        s->order.position = k * 5 % N_SAMPLES;
        s->n_threads = 1 + k % 3;
        s->device.kind = k % 4 == 3 ? PSTK_CUDA : PSTK_HOST;
        const struct pstk_order_settings order = {.size = sizeof order,
                                                  .n_samples = N_SAMPLES,
                                                  .seed = s->seed,
                                                  .batch_size = 4,
                                                  .rank = s->ranks.rank,
                                                  .world = s->ranks.world,
                                                  .last_batch = s->last_batch,
                                                  .batch_schedule = steps,
                                                  .n_batch_steps = 5};
        cuda_fake_open(&(struct cuda_fake_config){.max_delay_us = 100});
        const int right = follows(&setup, &order, 90);
        CHECK_EQ(cuda_fake_close(), 0);
        CHECK(right);
    }
}

TEST(wrong_schedules_are_refused_by_name)
{
    const struct {
        struct pstk_batch_step step;
        uint32_t global, world;
        const char *says;
    } bad[] = {
        {{0, 4, 0}, 0, 1, "batch_schedule[0].from: value is 0; must be at least 1, and above"},
        {{1, 0, 0}, 0, 1, "batch_schedule[0].rows: value is 0; must be at least 1"},
        {{1, 104, 0}, 0, 1, "batch_schedule[0].rows: 104 rows of all ranks are more than the 103"},
        {{1, 9, 0}, 4, 4, "batch_schedule[0].rows: value is 9; must be a multiple of world, which"},
        {{1, 3, 0}, 4, 4, "batch_schedule[0].rows: value is 3; must be at least 4"},
    };
    struct pstk_loader *loader;
    struct setup setup;
    pstk_error_init(&err, sizeof err);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        setup_init(&setup, PSTK_U8);
        setup.settings.order.batch_schedule = &bad[i].step;
        setup.settings.order.n_batch_steps = 1;
        setup.settings.global_batch_size = bad[i].global;
        setup.settings.ranks.world = bad[i].world;
        CHECK_EQ(pstk_open(&loader, &setup.settings, &err), PSTK_EINVAL);
        CHECK(!strncmp(err.message, bad[i].says, strlen(bad[i].says)));
    }
    const struct pstk_batch_step good = {5, 16, 0};
    setup_init(&setup, PSTK_U8);
    setup.settings.order.batch_schedule = &good;
    CHECK_EQ(pstk_open(&loader, &setup.settings, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "n_batch_steps: value is 0; must be the length") == err.message);
    setup.settings.order.n_batch_steps = 1;
    CHECK_EQ(pstk_open(&loader, &setup.settings, &err), 0);
    CHECK(refuses(loader, 2, "batch_size: value is 2; must not be set, because batch_schedule"));
    CHECK_EQ(pstk_n_batches(loader), 5 + 98 / 16);
    pstk_close(&loader);
}

/* An unchanged size drops nothing; a new one ends a wait, but does not move the cursor. */
TEST(the_same_size_costs_nothing)
{
    struct setup setup;
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct pstk_stats before = {.size = sizeof before}, after = {.size = sizeof after};
    setup_init(&setup, PSTK_U8);
    setup.settings.batch_size = 8;
    setup.settings.memory.n_slots = 2;
    CHECK_EQ(pstk_open(&loader, &setup.settings, NULL), 0);
    CHECK_EQ(pstk_next(loader, &b, NULL, -1, NULL), 1);
    do /* until both slots are used: nothing more is done then */
        CHECK_EQ(pstk_get_stats(loader, &before), 0);
    while (before.stage_workers.n_items < 16);
    for (int i = 0; i < 1000; i++)
        CHECK_EQ(pstk_set_batch_size(loader, 8, NULL), 0);
    CHECK_EQ(pstk_get_stats(loader, &after), 0);
    CHECK_EQ(after.stage_workers.n_items, before.stage_workers.n_items);
    pstk_release(&b, NULL);
    pstk_close(&loader);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(batches_are_those_of_a_loader_of_their_size),
        CASE(a_device_gives_them_their_shapes),
        CASE(every_sample_comes_once),
        CASE(a_batch_size_that_open_would_refuse_is_refused),
        CASE(a_schedule_gives_each_step_its_rows),
        CASE(wrong_schedules_are_refused_by_name),
        CASE(the_same_size_costs_nothing),
    };
    sample_set_path(path, sizeof path);
    sample_set_make(path, N_SAMPLES, 0, PSTK_CODEC_NONE);
    const int r = RUN_CASES(cases);
    sample_set_remove(path);
    return r;
}
