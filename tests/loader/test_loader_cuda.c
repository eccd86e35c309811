/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loader with a GPU, on the fake CUDA runtime: every batch equals the naive loop's on the host,
 * whatever the schedule, and no call's failure loses, hangs or corrupts anything. The fake sees
 * missing waits whatever ran first.
 */
#include "support/cuda_consumer.h"

#include <sys/wait.h>

TEST(every_dtype_and_layout_equals_the_host)
{
    const uint32_t dtypes[] = {PSTK_U8, PSTK_F16, PSTK_BF16, PSTK_F32};
    for (uint32_t d = 0; d < 4; d++)
        for (uint32_t layout = 0; layout < 2; layout++)
            for (uint32_t last = 0; last <= PSTK_LAST_SHORT; last++) {
                struct pstk_output mine[N_OUTPUTS];
                struct pstk_settings s = base();
                memcpy(mine, outputs, sizeof mine);
                mine[0].dtype = dtypes[d];
                mine[4].dtype = dtypes[3 - d];
                mine[4].image.n_ops = dtypes[3 - d] == PSTK_U8 ? 2 : 3;
                mine[0].image.layout = mine[4].image.layout = layout ? PSTK_NCHW : PSTK_NHWC;
                s.outputs = mine;
                s.last_batch = last;
                CHECK(device_equals_oracle(&s, NULL));
            }
}

TEST(images_of_one_and_four_channels_equal_the_host)
{
    const uint32_t dtypes[] = {PSTK_F16, PSTK_BF16, PSTK_F32};
    for (uint32_t channels = 1; channels <= 4; channels += 3)
        for (uint32_t d = 0; d < 3; d++)
            for (uint32_t layout = 0; layout < 2; layout++) {
                struct pstk_output mine[N_OUTPUTS];
                struct pstk_settings s = base();
                memcpy(mine, outputs, sizeof mine);
                mine[4].dtype = dtypes[d];
                mine[4].image.n_ops = 2; /* without normalise, which has three numbers */
                mine[4].image.channels = channels;
                mine[4].image.layout = layout ? PSTK_NCHW : PSTK_NHWC;
                s.outputs = mine;
                CHECK(device_equals_oracle(&s, NULL));
            }
}

TEST(threads_slots_and_batches_make_no_difference)
{
    const uint32_t threads[] = {1, 3}, slots[] = {2, 3, 8}, batches[] = {1, 5, 23};
    for (uint32_t t = 0; t < 2; t++)
        for (uint32_t k = 0; k < 3; k++)
            for (uint32_t b = 0; b < 3; b++)
                for (uint32_t d = 2; d < 5; d++) {
                    struct pstk_settings s = base();
                    struct cuda_fake_config c = {.seed = t + k + b, .max_delay_us = 100};
                    s.n_threads = threads[t];
                    s.memory.n_slots = slots[k];
                    s.batch_size = batches[b];
                    s.device.n_slots = d;
                    CHECK(device_equals_oracle(&s, &c));
                }
}

TEST(slots_that_cannot_be_page_locked_are_copied_through_the_bounce_buffers)
{
    struct pstk_settings s = base();
    struct cuda_fake_config c = {.no_register = cudaErrorNotSupported, .max_delay_us = 200};
    struct pstk_loader *loader;
    struct pstk_stats stats = {.size = sizeof stats};
    CHECK(device_equals_oracle(&s, &c));
    cuda_fake_open(&c);
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_get_stats(loader, &stats), 0);
    CHECK(stats.fallbacks & PSTK_FALLBACK_NOT_PAGE_LOCKED);
    CHECK_EQ(stats.page_locked, 0);
    pstk_close(&loader);
    CHECK_EQ(cudaPeekAtLastError(), cudaSuccess);
    CHECK_EQ(cuda_fake_close(), 0);
}

/* ---- schedules ------------------------------------------------------------------------------- */

static uint64_t random_state;

static uint32_t pick(uint32_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % n;
}

#define MAX_HELD 4
#define MAX_STEPS 64
#define N_STREAMS 3

/* A trainer that does what trainers may: batches held and released in any order, steps on several
 * streams, the program ahead of the device or waiting for it, seeks. */
struct trainer {
    struct oracle oracle;
    struct pstk_loader *loader;
    cudaStream_t streams[N_STREAMS];
    struct pstk_batch *held[MAX_HELD];
    cudaStream_t held_on[MAX_HELD];
    uint32_t n_held;
    struct seen *steps[MAX_STEPS];
    uint32_t n_steps;
    int ok;
};

static void trainer_check(struct trainer *t)
{
    for (int i = 0; i < N_STREAMS; i++)
        t->ok = cudaStreamSynchronize(t->streams[i]) == cudaSuccess && t->ok;
    for (uint32_t i = 0; i < t->n_steps; i++) {
        t->ok = t->ok && seen_equal(&t->oracle, t->steps[i]);
        seen_free(t->steps[i]);
    }
    t->n_steps = 0;
}

static void trainer_release(struct trainer *t)
{
    if (t->n_held == 0)
        return;
    uint32_t k = pick(t->n_held);
    if (t->loader && pick(4) == 0)
        cuda_fake_capture_stream(t->held_on[k]);
    pstk_release(&t->held[k], t->held_on[k]);
    cuda_fake_capture_stream(NULL);
    t->n_held--;
    t->held[k] = t->held[t->n_held];
    t->held_on[k] = t->held_on[t->n_held];
}

static void trainer_step(struct trainer *t, const struct pstk_batch *b, cudaStream_t stream)
{
    struct seen *s = seen_open(b);
    t->ok = seen_step(s, stream) == cudaSuccess && t->ok;
    t->steps[t->n_steps++] = s;
}

static void trainer_next(struct trainer *t, uint32_t n_device_slots)
{
    struct pstk_error err = error_now();
    struct pstk_batch *b;
    cudaStream_t stream = t->streams[pick(N_STREAMS)], other = t->streams[pick(N_STREAMS)];
    const int r = pstk_next(t->loader, &b, stream, LONG, &err);
    if (r == PSTK_ENOBUFS && t->n_held == n_device_slots)
        return;
    if (r < 0)
        printf("# %s\n", err.message);
    t->ok = r >= 0 && t->ok;
    if (r != 1)
        return;
    trainer_step(t, b, stream);
    if (other != stream && pick(2)) {
        t->ok = pstk_batch_wait(b, other, NULL) == 0 && t->ok;
        trainer_step(t, b, other);
        t->ok = pstk_batch_use_stream(b, other, NULL) == 0 && t->ok;
    }
    t->held[t->n_held] = b;
    t->held_on[t->n_held++] = stream;
}

static int schedule(uint64_t seed)
{
    struct trainer t = {.ok = 1};
    struct pstk_settings s = base();
    random_state = seed * 977 + 3;
    const struct cuda_fake_config c = {.seed = seed,
                                       .max_delay_us = pick(3) * 40,
                                       .delay_percent = 1 + pick(100),
                                       .no_register = pick(8) ? 0 : cudaErrorMemoryAllocation};
    s.batch_size = 1 + pick(6);
    s.memory.n_slots = 2 + pick(3);
    s.device.n_slots = 2 + pick(3);
    s.n_threads = 1 + pick(2);
    s.seed = seed;
    s.last_batch = pick(3);
    s.device.measure = pick(2);
    s.outputs = outputs + pick(3);
    s.n_outputs = 1 + pick(5);
    cuda_fake_open(&c);
    cudaSetDevice(0);
    for (int i = 0; i < N_STREAMS; i++)
        cudaStreamCreateWithFlags(&t.streams[i], cudaStreamNonBlocking);
    t.ok = oracle_open_for(&t.oracle, &s) == 0 && pstk_open(&t.loader, &s, NULL) == 0;
    for (uint32_t i = 0, n = 4 + pick(12); i < n && t.ok; i++) {
        if (t.n_steps > MAX_STEPS - 2 || pick(5) == 0)
            trainer_check(&t);
        if (t.n_held == MAX_HELD || pick(3) == 0)
            trainer_release(&t);
        if (pick(9) == 0)
            pstk_seek(t.loader, pick(4), pick(N_SAMPLES), NULL);
        trainer_next(&t, s.device.n_slots);
        if (pick(2))
            trainer_release(&t);
    }
    const int closed_first = (int)pick(2);
    if (closed_first)
        pstk_close(&t.loader); /* with copies under way and batches leased */
    while (t.n_held)
        trainer_release(&t);
    trainer_check(&t);
    pstk_close(&t.loader);
    oracle_close(&t.oracle);
    for (int i = 0; i < N_STREAMS; i++)
        cudaStreamDestroy(t.streams[i]);
    return cuda_fake_close() == 0 && t.ok;
}

/* PENSTOCK_TEST_SCHEDULES=FROM-TO: those, so that several builds need not see the same ones. */
TEST(no_schedule_of_thousands_makes_a_difference)
{
    const char *wanted = getenv("PENSTOCK_TEST_SCHEDULES");
    unsigned long long from = 0, to = 2000;
    if (wanted)
        CHECK_EQ(sscanf(wanted, "%llu-%llu", &from, &to), 2);
    CHECK(from < to);
    for (uint64_t seed = from; seed < to; seed++) {
        const int ok = schedule(seed);
        if (!ok)
            printf("# schedule %llu\n", (unsigned long long)seed);
        CHECK(ok);
    }
}

/* ---- leases ---------------------------------------------------------------------------------- */

TEST(a_slot_keeps_its_addresses)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    const void *data[3][N_OUTPUTS] = {{NULL}};
    cuda_fake_open(NULL);
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    for (int i = 0; i < 20; i++) {
        int r = pstk_next(loader, &b, NULL, LONG, NULL);
        if (r == 0)
            continue;
        CHECK_EQ(r, 1);
        CHECK(b->slot < 3);
        for (uint32_t k = 0; k < N_OUTPUTS; k++) {
            CHECK(!data[b->slot][k] || data[b->slot][k] == b->tensors[k].data);
            CHECK_EQ((uintptr_t)b->tensors[k].data % 256, 0); /* DLPack's */
            CHECK_EQ((uintptr_t)b->tensors[k].offsets % 256, 0);
            CHECK_EQ((uintptr_t)b->tensors[k].device_offsets % 256, 0);
            data[b->slot][k] = b->tensors[k].data;
        }
        pstk_release(&b, NULL);
    }
    pstk_close(&loader);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(holding_every_device_slot_is_enobufs)
{
    struct pstk_settings s = base();
    struct pstk_error err = error_now();
    struct pstk_loader *loader;
    struct pstk_batch *b[3];
    cuda_fake_open(NULL);
    s.device.n_slots = 2;
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_next(loader, &b[0], NULL, LONG, NULL), 1);
    CHECK_EQ(pstk_next(loader, &b[1], NULL, LONG, NULL), 1);
    CHECK_EQ(pstk_next(loader, &b[2], NULL, LONG, &err), PSTK_ENOBUFS);
    CHECK(strstr(err.message, "n_device_slots"));
    pstk_release(&b[0], NULL);
    CHECK_EQ(pstk_next(loader, &b[2], NULL, LONG, NULL), 1);
    pstk_release(&b[1], NULL);
    pstk_release(&b[2], NULL);
    pstk_close(&loader);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(a_leased_batch_outlives_the_loader_and_its_last_use)
{
    struct pstk_settings s = base();
    struct oracle o;
    struct pstk_loader *loader;
    struct pstk_batch *b;
    cudaStream_t stream;
    cuda_fake_open(&(struct cuda_fake_config){.max_delay_us = 2000});
    cudaSetDevice(0);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    CHECK_EQ(oracle_open_for(&o, &s), 0);
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_next(loader, &b, stream, LONG, NULL), 1);
    pstk_close(&loader);
    struct seen *step = seen_open(b);
    CHECK_EQ(seen_step(step, stream), cudaSuccess);
    CHECK_STR(b->tensors[3].name, "text");
    pstk_release(&b, stream); /* frees the device's memory: after the step */
    CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    CHECK(seen_equal(&o, step));
    seen_free(step);
    oracle_close(&o);
    cudaStreamDestroy(stream);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(a_forked_child_may_call_nothing)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    uint8_t byte;
    cuda_fake_open(NULL);
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_next(loader, &b, NULL, LONG, NULL), 1);
    pid_t child = fork();
    if (child == 0) {
        struct pstk_batch *c;
        void *stream;
        int ok = pstk_next(loader, &c, NULL, -1, NULL) == PSTK_EPERM &&
                 pstk_batch_wait(b, NULL, NULL) == PSTK_EPERM &&
                 pstk_batch_use_stream(b, NULL, NULL) == PSTK_EPERM &&
                 pstk_batch_read(b, 1, &byte, 1, NULL, NULL) == PSTK_EPERM &&
                 pstk_stream_open(loader, &stream, NULL) == PSTK_EPERM &&
                 pstk_stream_spin(loader, NULL, 1, NULL) == PSTK_EPERM;
        pstk_release(&b, NULL);
        pstk_close(&loader);
        _exit(ok ? 0 : 1);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_EQ(status, 0);
    pstk_release(&b, NULL);
    pstk_close(&loader);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(read_gives_a_tensors_bytes)
{
    struct pstk_settings s = base();
    struct oracle o;
    struct pstk_loader *loader;
    struct pstk_batch *b;
    cuda_fake_open(NULL);
    CHECK_EQ(oracle_open_for(&o, &s), 0);
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_next(loader, &b, NULL, LONG, NULL), 1);
    struct seen *view = seen_open(b);
    for (uint32_t i = 0; i < N_OUTPUTS; i++) {
        const uint64_t size = b->tensors[i].size;
        CHECK_EQ(pstk_batch_read(b, i, view->tensors[i].data, size, NULL, NULL), 0);
        CHECK_EQ(pstk_batch_read(b, i, view->tensors[i].data, size + 1, NULL, NULL), PSTK_EINVAL);
    }
    CHECK_EQ(pstk_batch_read(b, N_OUTPUTS, view->tensors[0].data, 1, NULL, NULL), PSTK_EINVAL);
    CHECK(oracle_equal(&o, &view->batch));
    seen_free(view);
    pstk_release(&b, NULL);
    pstk_close(&loader);
    oracle_close(&o);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(only_what_a_ragged_batch_has_is_copied)
{
    struct pstk_settings s = base();
    struct cuda_fake_stats before, after;
    struct pstk_loader *loader;
    struct pstk_batch *b;
    uint64_t text = 0;
    cuda_fake_open(NULL);
    s.outputs = outputs + 3;
    s.n_outputs = 1;
    s.memory.n_slots = 2;
    cuda_fake_stats(&before);
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(pstk_next(loader, &b, NULL, LONG, NULL), 1);
        text += b->tensors[0].size;
        pstk_release(&b, NULL);
    }
    cuda_fake_stats(&after);
    CHECK_EQ(after.n_pageable, 0);
    /* Offsets of 5 int64 go as 256 bytes; three more batches at most were loaded ahead. */
    CHECK(after.n_h2d - before.n_h2d >= text + 3 * 256);
    CHECK(after.n_h2d - before.n_h2d <= text + 6 * 256 + 3 * 4 * 64);
    pstk_close(&loader);
    CHECK_EQ(cuda_fake_close(), 0);
}

int main(void)
{
    consumer_begin();
    const struct test_case cases[] = {
        CASE(every_dtype_and_layout_equals_the_host),
        CASE(images_of_one_and_four_channels_equal_the_host),
        CASE(threads_slots_and_batches_make_no_difference),
        CASE(slots_that_cannot_be_page_locked_are_copied_through_the_bounce_buffers),
        CASE(no_schedule_of_thousands_makes_a_difference),
        CASE(a_slot_keeps_its_addresses),
        CASE(holding_every_device_slot_is_enobufs),
        CASE(a_leased_batch_outlives_the_loader_and_its_last_use),
        CASE(a_forked_child_may_call_nothing),
        CASE(read_gives_a_tensors_bytes),
        CASE(only_what_a_ragged_batch_has_is_copied),
    };
    int failed = RUN_CASES(cases);
    consumer_end();
    return failed;
}
