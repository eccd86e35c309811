/* SPDX-License-Identifier: Apache-2.0 */
/* The loader against the naive loop, byte for byte, over small exhaustive sweeps. */
#include "support/oracle.h"
#include "support/test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <sys/wait.h>

#define N_SAMPLES 23

static char path[4200];
static uint32_t n_readers = 2; /* 1 under TSan, to which the kernel's writes are invisible */

static const struct pstk_op image_ops[] = {
    {.kind = PSTK_OP_RANDOM_RESIZED_CROP,
     .width = 9,
     .height = 7,
     .params.random_resized_crop = {0.08, 1.0, 3.0 / 4, 4.0 / 3}},
    {.kind = PSTK_OP_RANDOM_FLIP, .params.random_flip = {0.5}},
};

static const struct pstk_output outputs[] = {
    {.name = "image",
     .field = "img",
     .kind = PSTK_OUTPUT_IMAGE,
     .image.ops = image_ops,
     .image.n_ops = 2,
     .dtype = PSTK_F32,
     .image.layout = PSTK_NCHW},
    {.field = "cls", .kind = PSTK_OUTPUT_SCALAR},
    {.field = "tokens", .kind = PSTK_OUTPUT_TENSOR},
    {.field = "text", .kind = PSTK_OUTPUT_BYTES},
    {.field = "boxes", .kind = PSTK_OUTPUT_RAGGED},
};

static struct pstk_settings base(void)
{
    struct pstk_settings s;
    pstk_settings_init(&s, sizeof s);
    s.path = path;
    s.outputs = outputs;
    s.n_outputs = 5;
    s.batch_size = 4;
    s.seed = 17;
    s.n_threads = 2;
    if (n_readers == 1)
        s.reading.reader = PSTK_READER_THREADS;
    return s;
}

static int stream_epoch(struct pstk_loader *loader, struct oracle *o, uint64_t *n_batches)
{
    struct pstk_batch *b;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    int r;
    *n_batches = 0;
    while ((r = pstk_next(loader, &b, NULL, 20000000000, &err)) == 1) {
        int equal = oracle_equal(o, b);
        pstk_release(&b, NULL);
        if (!equal)
            return 0;
        ++*n_batches;
    }
    if (r < 0)
        printf("# %s\n", err.message);
    return r == 0;
}

/* Two epochs from `s`'s start equal the oracle's. */
static int loader_equals_oracle(const struct pstk_settings *s)
{
    struct oracle o;
    struct pstk_loader *loader = NULL;
    struct pstk_error err;
    uint64_t n_first = 0, n_second = 0;
    pstk_error_init(&err, sizeof err);
    int ok = oracle_open(&o, s, &err) == 0 && pstk_open(&loader, s, &err) == 0;
    if (!ok)
        printf("# %s\n", err.message);
    ok = ok && stream_epoch(loader, &o, &n_first) && stream_epoch(loader, &o, &n_second);
    uint64_t global = (uint64_t)s->batch_size * (s->ranks.world ? s->ranks.world : 1);
    uint64_t rest = N_SAMPLES - s->order.position;
    uint64_t want = s->last_batch == PSTK_LAST_DROP ? rest / global : (rest + global - 1) / global;
    if (ok && (n_first != want || n_second != pstk_n_batches(loader))) {
        printf("# %llu batches, not %llu\n", (unsigned long long)n_first, (unsigned long long)want);
        ok = 0;
    }
    pstk_close(&loader);
    oracle_close(&o);
    if (!ok)
        printf("# threads %u slots %u batch %u reader %u last %u rank %u/%u position %llu\n",
               s->n_threads, s->memory.n_slots, s->batch_size, s->reading.reader, s->last_batch,
               s->ranks.rank, s->ranks.world, (unsigned long long)s->order.position);
    return ok;
}

TEST(equals_oracle_for_threads_slots_batches_readers)
{
    const uint32_t threads[] = {1, 2, 4, 7}, slots[] = {2, 3, 8}, batches[] = {1, 3, 8, 23};
    for (uint32_t t = 0; t < 4; t++)
        for (uint32_t k = 0; k < 3; k++)
            for (uint32_t b = 0; b < 4; b++)
                for (uint32_t reader = 0; reader < n_readers; reader++) {
                    struct pstk_settings s = base();
                    s.n_threads = threads[t];
                    s.memory.n_slots = slots[k];
                    s.batch_size = batches[b];
                    s.reading.reader = PSTK_READER_THREADS - reader;
                    s.reading.queue_depth = 1 + (t + k) * 5;
                    CHECK(loader_equals_oracle(&s));
                }
}

TEST(equals_oracle_for_ranks_and_last_rules)
{
    for (uint32_t world = 1; world <= 3; world++)
        for (uint32_t rank = 0; rank < world; rank++)
            for (uint32_t last = 0; last <= PSTK_LAST_SHORT; last++)
                for (uint32_t order = 0; order <= PSTK_ORDER_SEQUENTIAL; order++) {
                    struct pstk_settings s = base();
                    s.ranks.world = world;
                    s.ranks.rank = rank;
                    s.last_batch = last;
                    s.order.kind = order;
                    CHECK(loader_equals_oracle(&s));
                }
}

TEST(equals_oracle_from_every_position)
{
    for (uint64_t position = 0; position <= N_SAMPLES; position++) {
        struct pstk_settings s = base();
        s.order.position = position;
        s.order.epoch = position % 3;
        s.last_batch = (uint32_t)(position % 3);
        CHECK(loader_equals_oracle(&s));
        s.ranks.world = 3;
        s.ranks.rank = (uint32_t)(position % 2);
        s.batch_size = 2;
        CHECK(loader_equals_oracle(&s));
    }
}

TEST(equals_oracle_on_synthetic_nodes)
{
    const char *topologies[] = {"node:2 core:2 pu:1", "node:8 core:1 pu:2"};
    for (int i = 0; i < 2; i++)
        for (uint32_t batch = 1; batch < 6; batch += 2) {
            struct pstk_settings s = base();
            s.reading.topology = topologies[i];
            s.n_threads = 0;
            s.memory.n_slots = 8;
            s.batch_size = batch;
            CHECK(loader_equals_oracle(&s));
        }
}

TEST(equals_oracle_with_a_tiny_ring_and_index)
{
    struct pstk_settings s = base();
    s.memory.io_memory = 8192;
    s.memory.index_memory = 4096;
    s.reading.queue_depth = 2;
    CHECK(loader_equals_oracle(&s));
}

TEST(equals_oracle_direct_or_says_so)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    s.reading.io = PSTK_IO_DIRECT;
    if (pstk_open(&loader, &s, &err) < 0) {
        CHECK(strstr(err.message, "O_DIRECT"));
        SKIP("the temporary directory's file system refuses O_DIRECT");
    }
    pstk_close(&loader);
    CHECK(loader_equals_oracle(&s));
}

TEST(outputs_of_the_head_alone_need_no_body)
{
    struct pstk_settings s = base();
    s.outputs = outputs + 1;
    s.n_outputs = 2;
    CHECK(loader_equals_oracle(&s));
}

TEST(seek_to_where_it_is_keeps_what_is_prefetched)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct pstk_stats before = {.size = sizeof before}, after = {.size = sizeof after};
    s.memory.n_slots = 3;
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_next(loader, &b, NULL, -1, NULL), 1);
    pstk_release(&b, NULL);
    /* The batch that was given, and one in each slot. */
    WAIT_UNTIL(pstk_get_stats(loader, &before) < 0 ||
               before.stage_workers.n_items >= 4 * (1 + s.memory.n_slots));
    CHECK_EQ(pstk_seek(loader, 0, 4, NULL), 0);
    usleep(50000);
    pstk_get_stats(loader, &after);
    CHECK_EQ(after.stage_workers.n_items, before.stage_workers.n_items);
    CHECK_EQ(pstk_next(loader, &b, NULL, -1, NULL), 1);
    CHECK_EQ(b->position, 4);
    pstk_release(&b, NULL);
    pstk_close(&loader);
}

TEST(seek_anywhere_any_time_gives_the_oracle)
{
    struct pstk_settings s = base();
    struct oracle o;
    struct pstk_loader *loader;
    struct pstk_batch *b, *held = NULL;
    s.memory.n_slots = 4;
    CHECK_EQ(oracle_open(&o, &s, NULL), 0);
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    uint64_t x = 5;
    for (int i = 0; i < 300; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        uint64_t epoch = x >> 60, position = (x >> 30) % (N_SAMPLES + 1);
        CHECK_EQ(pstk_seek(loader, epoch, position, NULL), 0);
        int r = pstk_next(loader, &b, NULL, -1, NULL);
        CHECK_EQ(r, N_SAMPLES - position >= 4);
        if (r == 1) {
            CHECK_EQ(b->epoch, epoch);
            CHECK_EQ(b->position, position);
            CHECK(oracle_equal(&o, b));
            pstk_release(&held, NULL);
            held = b;
        }
    }
    pstk_release(&held, NULL);
    pstk_close(&loader);
    oracle_close(&o);
}

TEST(cursor_resumes_on_another_world_size)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    uint8_t seen[N_SAMPLES] = {0};
    s.ranks.world = 2;
    s.batch_size = 3;
    uint64_t epoch = 9, position = 0;
    for (s.ranks.rank = 0; s.ranks.rank < 2; s.ranks.rank++) {
        CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
        for (int i = 0; i < 2; i++) {
            CHECK_EQ(pstk_next(loader, &b, NULL, -1, NULL), 1);
            for (uint32_t k = 0; k < b->n_valid; k++)
                seen[b->sample_ids[k]]++;
            CHECK_EQ(b->next_position, b->position + 6);
            pstk_release(&b, NULL);
        }
        CHECK_EQ(pstk_get_cursor(loader, &epoch, &position), 0);
        pstk_close(&loader);
    }
    CHECK_EQ(position, 12);
    s.ranks.world = 1;
    s.ranks.rank = 0;
    s.batch_size = 4;
    s.last_batch = PSTK_LAST_SHORT;
    s.order.epoch = epoch;
    s.order.position = position;
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    while (pstk_next(loader, &b, NULL, -1, NULL) == 1) {
        for (uint32_t k = 0; k < b->n_valid; k++)
            seen[b->sample_ids[k]]++;
        pstk_release(&b, NULL);
    }
    pstk_close(&loader);
    for (int i = 0; i < N_SAMPLES; i++)
        CHECK_EQ(seen[i], 1);
}

TEST(holding_every_slot_is_enobufs)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b[3];
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    s.memory.n_slots = 2;
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_next(loader, &b[0], NULL, -1, NULL), 1);
    CHECK_EQ(pstk_next(loader, &b[1], NULL, -1, NULL), 1);
    CHECK_EQ(pstk_next(loader, &b[2], NULL, -1, &err), PSTK_ENOBUFS);
    CHECK(b[2] == NULL);
    CHECK(strstr(err.message, "n_slots"));
    pstk_release(&b[0], NULL);
    CHECK_EQ(pstk_next(loader, &b[2], NULL, -1, NULL), 1);
    CHECK_EQ(b[2]->index, 2);
    pstk_release(&b[1], NULL);
    pstk_release(&b[2], NULL);
    pstk_close(&loader);
}

TEST(a_leased_batch_outlives_the_loader)
{
    struct pstk_settings s = base();
    struct oracle o;
    struct pstk_loader *loader;
    struct pstk_batch *b;
    CHECK_EQ(oracle_open(&o, &s, NULL), 0);
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_next(loader, &b, NULL, -1, NULL), 1);
    pstk_close(&loader);
    CHECK(loader == NULL);
    CHECK(oracle_equal(&o, b));
    CHECK_STR(b->tensors[3].name, "text");
    pstk_release(&b, NULL);
    CHECK(b == NULL);
    oracle_close(&o);
}

TEST(close_right_after_open_leaves_nothing)
{
    for (int i = 0; i < 20; i++) {
        struct pstk_settings s = base();
        struct pstk_loader *loader;
        CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
        pstk_close(&loader);
    }
}

static struct pstk_loader *interrupted;

static void interrupt_handler(int signal)
{
    (void)signal;
    pstk_interrupt(interrupted);
}

static _Atomic int may_decode; /* 0: rows wait */

static int slow_decode(void *user, const struct pstk_sample *sample, void *row, uint64_t size)
{
    (void)user, (void)sample;
    WAIT_UNTIL(atomic_load(&may_decode));
    memset(row, 0, size);
    return 0;
}

static const struct pstk_output slow_output = {.name = "slow",
                                               .field = "cls",
                                               .kind = PSTK_OUTPUT_CALLBACK,
                                               .dtype = PSTK_U8,
                                               .callback.n_dims = 1,
                                               .callback.shape = {1},
                                               .callback.decode = slow_decode};

TEST(timeout_and_interrupt_end_a_wait)
{
    struct pstk_settings s = base();
    struct pstk_batch *b;
    s.outputs = &slow_output;
    s.n_outputs = 1;
    CHECK_EQ(pstk_open(&interrupted, &s, NULL), 0);
    CHECK_EQ(pstk_next(interrupted, &b, NULL, 0, NULL), PSTK_ETIMEDOUT);
    CHECK_EQ(pstk_next(interrupted, &b, NULL, 1000000, NULL), PSTK_ETIMEDOUT);
    struct sigaction a = {.sa_handler = interrupt_handler}, old;
    sigaction(SIGALRM, &a, &old);
    struct itimerval t = {.it_value = {.tv_usec = 50000}};
    setitimer(ITIMER_REAL, &t, NULL);
    CHECK_EQ(pstk_next(interrupted, &b, NULL, -1, NULL), PSTK_EINTR);
    sigaction(SIGALRM, &old, NULL);
    atomic_store(&may_decode, 1);
    CHECK_EQ(pstk_next(interrupted, &b, NULL, -1, NULL), 1);
    pstk_release(&b, NULL);
    pstk_close(&interrupted);
}

TEST(a_forked_child_may_call_nothing)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_next(loader, &b, NULL, -1, NULL), 1);
    pid_t child = fork();
    if (child == 0) {
        struct pstk_batch *c;
        int ok = pstk_next(loader, &c, NULL, -1, NULL) == PSTK_EPERM &&
                 pstk_seek(loader, 0, 0, NULL) == PSTK_EPERM;
        pstk_release(&b, NULL);
        pstk_close(&loader);
        _exit(ok ? 0 : 1);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_EQ(status, 0);
    pstk_release(&b, NULL);
    CHECK_EQ(pstk_next(loader, &b, NULL, -1, NULL), 1);
    pstk_release(&b, NULL);
    pstk_close(&loader);
}

TEST(outputs_may_go_after_open)
{
    struct pstk_output *copy = malloc(sizeof outputs);
    struct pstk_op *ops = malloc(sizeof image_ops);
    struct pstk_settings s = base();
    struct oracle o;
    struct pstk_loader *loader;
    uint64_t n;
    CHECK(copy && ops);
    CHECK_EQ(oracle_open(&o, &s, NULL), 0);
    memcpy(copy, outputs, sizeof outputs);
    memcpy(ops, image_ops, sizeof image_ops);
    copy[0].image.ops = ops;
    s.outputs = copy;
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    memset(copy, 0x5a, sizeof outputs);
    memset(ops, 0x5a, sizeof image_ops);
    free(copy);
    free(ops);
    CHECK(stream_epoch(loader, &o, &n));
    pstk_close(&loader);
    oracle_close(&o);
}

struct misuse {
    const char *setting;
    int code;
    void (*spoil)(struct pstk_settings *s);
};

#define SPOIL(name, statement)                                                                     \
    static void spoil_##name(struct pstk_settings *s)                                              \
    {                                                                                              \
        statement;                                                                                 \
    }
SPOIL(batch_size, s->batch_size = 0)
SPOIL(large_batch, s->batch_size = N_SAMPLES + 1)
SPOIL(path, s->path = NULL)
SPOIL(missing, s->path = "/nonexistent/data/set")
SPOIL(outputs, s->n_outputs = 0)
SPOIL(rank, (s->ranks.rank = 2, s->ranks.world = 2))
SPOIL(local_rank, s->ranks.local_rank = 1)
SPOIL(slots, s->memory.n_slots = 1)
SPOIL(many_slots, (s->memory.n_slots = 4000, s->memory.max_memory = 1 << 20))
SPOIL(order, s->order.kind = 9)
SPOIL(last_batch, s->last_batch = 9)
SPOIL(reader, s->reading.reader = 9)
SPOIL(device, s->device.kind = PSTK_CUDA)
SPOIL(device_index, s->device.index = 3)
SPOIL(position, s->order.position = N_SAMPLES + 1)
SPOIL(depth, s->reading.queue_depth = 1000000)
SPOIL(size, s->size = 3)
SPOIL(huge_batch, s->batch_size = UINT32_MAX)
SPOIL(io_memory, s->memory.io_memory = UINT64_MAX)
SPOIL(index_memory, s->memory.index_memory = UINT64_MAX - 1)
SPOIL(record_size, s->memory.max_record_size = 100)

TEST(misuse_names_the_setting)
{
    const struct misuse table[] = {
        {"batch_size", PSTK_EINVAL, spoil_batch_size},
        {"batch_size", PSTK_EINVAL, spoil_large_batch},
        {"path", PSTK_EINVAL, spoil_path},
        {"/nonexistent/data/set", PSTK_ENOENT, spoil_missing},
        {"outputs", PSTK_EINVAL, spoil_outputs},
        {"rank", PSTK_EINVAL, spoil_rank},
        {"local_rank", PSTK_EINVAL, spoil_local_rank},
        {"n_slots", PSTK_EINVAL, spoil_slots},
        {"n_slots", PSTK_ENOMEM, spoil_many_slots},
        {"order", PSTK_EINVAL, spoil_order},
        {"last_batch", PSTK_EINVAL, spoil_last_batch},
        {"reader", PSTK_EINVAL, spoil_reader},
        {"device", PSTK_ENOTSUP, spoil_device},
        {"device_index", PSTK_EINVAL, spoil_device_index},
        {"position", PSTK_EINVAL, spoil_position},
        {"queue_depth", PSTK_EINVAL, spoil_depth},
        {"settings", PSTK_EINVAL, spoil_size},
        {"batch_size", PSTK_EINVAL, spoil_huge_batch},
        {"io_memory", PSTK_EINVAL, spoil_io_memory},
        {"index_memory", PSTK_EINVAL, spoil_index_memory},
        {"max_record_size", PSTK_EFBIG, spoil_record_size},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct pstk_settings s = base();
        struct pstk_loader *loader = (void *)&s;
        struct pstk_error err;
        pstk_error_init(&err, sizeof err);
        table[i].spoil(&s);
        int r = pstk_open(&loader, &s, &err);
        if (r != table[i].code || !strstr(err.message, table[i].setting))
            printf("# %s: %d, \"%s\"\n", table[i].setting, r, err.message);
        CHECK_EQ(r, table[i].code);
        CHECK(strstr(err.message, table[i].setting));
        CHECK_EQ(err.code, r);
        CHECK(loader == NULL);
    }
}

TEST(null_arguments_are_refused)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b = NULL;
    CHECK_EQ(pstk_open(NULL, &s, NULL), PSTK_EINVAL);
    CHECK_EQ(pstk_open(&loader, NULL, NULL), PSTK_EINVAL);
    CHECK_EQ(pstk_next(NULL, &b, NULL, -1, NULL), PSTK_EINVAL);
    CHECK_EQ(pstk_seek(NULL, 0, 0, NULL), PSTK_EINVAL);
    CHECK_EQ(pstk_get_stats(NULL, NULL), PSTK_EINVAL);
    pstk_release(NULL, NULL);
    pstk_release(&b, NULL);
    pstk_close(NULL);
    pstk_interrupt(NULL);
    CHECK_EQ(pstk_n_batches(NULL), 0);
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_next(loader, NULL, NULL, -1, NULL), PSTK_EINVAL);
    CHECK_EQ(pstk_seek(loader, 0, N_SAMPLES + 1, NULL), PSTK_EINVAL);
    pstk_close(&loader);
}

TEST(statistics_add_up)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct pstk_stats st = {.size = sizeof st};
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(pstk_next(loader, &b, NULL, -1, NULL), 1);
        pstk_release(&b, NULL);
    }
    CHECK_EQ(pstk_get_stats(loader, &st), 0);
    CHECK_EQ(st.n_batches, 5);
    CHECK_EQ(st.n_samples, 20);
    CHECK(st.n_reads > 0 && st.bytes_read > 0);
    CHECK(st.stage_workers.n_items >= 20);
    CHECK_EQ(st.n_threads, 2);
    CHECK(st.n_index_hits + st.n_index_misses >= 20);
    CHECK_EQ(st.n_slow_reads, 0);
    CHECK(st.slot_memory > 0 && st.io_memory > 0 && st.index_memory > 0);
    pstk_close(&loader);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(equals_oracle_for_threads_slots_batches_readers),
        CASE(equals_oracle_for_ranks_and_last_rules),
        CASE(equals_oracle_from_every_position),
        CASE(equals_oracle_on_synthetic_nodes),
        CASE(equals_oracle_with_a_tiny_ring_and_index),
        CASE(equals_oracle_direct_or_says_so),
        CASE(outputs_of_the_head_alone_need_no_body),
        CASE(seek_to_where_it_is_keeps_what_is_prefetched),
        CASE(seek_anywhere_any_time_gives_the_oracle),
        CASE(cursor_resumes_on_another_world_size),
        CASE(holding_every_slot_is_enobufs),
        CASE(a_leased_batch_outlives_the_loader),
        CASE(close_right_after_open_leaves_nothing),
        CASE(timeout_and_interrupt_end_a_wait),
        CASE(a_forked_child_may_call_nothing),
        CASE(outputs_may_go_after_open),
        CASE(misuse_names_the_setting),
        CASE(null_arguments_are_refused),
        CASE(statistics_add_up),
    };
    const char *reader = getenv("PENSTOCK_TEST_READER");
    if (reader && strcmp(reader, "threads") == 0)
        n_readers = 1;
    sample_set_path(path, sizeof path);
    sample_set_make(path, N_SAMPLES, 65536, PSTK_CODEC_ZSTD);
    int r = RUN_CASES(cases);
    sample_set_remove(path);
    return r;
}
