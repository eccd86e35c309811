/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loader with a GPU, on the fake CUDA runtime: every batch equals the naive loop's on the host,
 * whatever the schedule, and no call's failure loses, hangs or corrupts anything. The fake sees
 * missing waits whatever ran first.
 */
#include "clock.h"
#include "cuda_consumer.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>

#define MS 1000000ull /* ns */

/* Two epochs on the fake as it is configured; 1 when all is well, then and after. */
static int device_equals_oracle(const struct pstk_settings *s, const struct cuda_fake_config *c)
{
    struct oracle o;
    struct pstk_loader *loader = NULL;
    struct pstk_error err = error_now();
    cudaStream_t stream = NULL;
    cuda_fake_open(c);
    cudaSetDevice(s->device_index);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    int ok = oracle_open_for(&o, s) == 0 && pstk_open(&loader, s, &err) == 0;
    for (int epoch = 0; epoch < 2 && ok; epoch++) {
        int n = epoch_on(loader, &o, stream, &err);
        ok = n == (int)pstk_n_batches(loader);
    }
    if (!ok)
        printf("# %s\n", err.message);
    pstk_close(&loader);
    oracle_close(&o);
    cudaStreamDestroy(stream);
    return cuda_fake_close() == 0 && ok;
}

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
                mine[4].n_ops = dtypes[3 - d] == PSTK_U8 ? 2 : 3;
                mine[0].layout = mine[4].layout = layout ? PSTK_NCHW : PSTK_NHWC;
                s.outputs = mine;
                s.last = last;
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
                    s.n_slots = slots[k];
                    s.batch_size = batches[b];
                    s.n_device_slots = d;
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
    CHECK(stats.rungs & PSTK_RUNG_NOT_PAGE_LOCKED);
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
        t->ok = pstk_batch_record(b, other, NULL) == 0 && t->ok;
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
    s.n_slots = 2 + pick(3);
    s.n_device_slots = 2 + pick(3);
    s.n_threads = 1 + pick(2);
    s.seed = seed;
    s.last = pick(3);
    s.timed = pick(2);
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
        trainer_next(&t, s.n_device_slots);
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

/* ---- streams and devices --------------------------------------------------------------------- */

TEST(nothing_runs_on_gpu_0_by_accident)
{
    struct pstk_settings s = base();
    struct cuda_fake_stats stats;
    struct pstk_loader *loader;
    struct pstk_batch *b = NULL;
    void *stream;
    int current = -1;
    cuda_fake_open(&(struct cuda_fake_config){.n_devices = 3});
    s.device_index = 2;
    s.timed = 1;
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_stream_open(loader, &stream, NULL), 0);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(pstk_next(loader, &b, stream, LONG, NULL), 1);
        CHECK_EQ(pstk_stream_spin(loader, stream, 1000, NULL), 0);
        pstk_release(&b, stream);
    }
    CHECK_EQ(pstk_next(loader, &b, stream, LONG, NULL), 1);
    pstk_stream_close(loader, &stream);
    pstk_close(&loader);
    CHECK_EQ(cudaGetDevice(&current), cudaSuccess);
    CHECK_EQ(current, 0);
    cuda_fake_stats(&stats);
    CHECK_EQ(stats.devices[0].has_context, 0);
    CHECK_EQ(stats.devices[1].has_context, 0);
    CHECK_EQ(stats.devices[2].has_context, 1);
    CHECK_EQ(stats.n_hazards, 0);
    cudaSetDevice(2);
    pstk_release(&b, NULL);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(a_stream_left_open_is_closed_after_the_last_batch)
{
    struct pstk_settings s = base();
    struct cuda_fake_stats stats;
    struct pstk_loader *loader;
    struct pstk_batch *b;
    void *stream, *other;
    cuda_fake_open(&(struct cuda_fake_config){.n_devices = 2, .max_delay_us = 100});
    s.device_index = 1;
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_stream_open(loader, &stream, NULL), 0);
    CHECK_EQ(pstk_stream_open(loader, &other, NULL), 0);
    CHECK_EQ(pstk_next(loader, &b, stream, LONG, NULL), 1);
    pstk_stream_close(loader, &other);
    pstk_close(&loader);
    cuda_fake_stats(&stats);
    CHECK_EQ(stats.n_streams, 3);
    pstk_release(&b, stream);
    cuda_fake_stats(&stats);
    CHECK_EQ(stats.n_streams, 0);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(the_threads_current_device_stays_what_it_was)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    cudaStream_t stream;
    int current = -1;
    cuda_fake_open(&(struct cuda_fake_config){.n_devices = 2});
    cudaSetDevice(1);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaSetDevice(0);
    s.device_index = 1;
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_next(loader, &b, stream, LONG, NULL), 1);
    pstk_release(&b, stream);
    CHECK_EQ(cudaGetDevice(&current), cudaSuccess);
    CHECK_EQ(current, 0);
    pstk_close(&loader);
    CHECK_EQ(cudaGetDevice(&current), cudaSuccess);
    CHECK_EQ(current, 0);
    cudaStreamDestroy(stream);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(a_stream_of_another_device_is_refused_and_the_batch_stays)
{
    struct pstk_settings s = base();
    struct pstk_error err = error_now();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    cudaStream_t other;
    cuda_fake_open(&(struct cuda_fake_config){.n_devices = 2});
    cudaSetDevice(1);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_next(loader, &b, other, LONG, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "another device"));
    CHECK_EQ(pstk_next(loader, &b, NULL, LONG, &err), PSTK_EINVAL); /* device 1's default stream */
    CHECK(strstr(err.message, "cudaSetDevice(0)"));
    CHECK_EQ(cudaPeekAtLastError(), cudaSuccess);
    cudaSetDevice(0);
    CHECK_EQ(pstk_next(loader, &b, NULL, LONG, &err), 1);
    CHECK_EQ(b->index, 0);
    CHECK_EQ(pstk_batch_wait(b, other, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_batch_record(b, other, &err), PSTK_EINVAL);
    pstk_release(&b, other); /* cannot be ordered: the slot is lost, and next says why */
    int r;
    while ((r = pstk_next(loader, &b, NULL, LONG, &err)) == 1)
        pstk_release(&b, NULL);
    CHECK_EQ(r, PSTK_EINVAL);
    CHECK(strstr(err.message, "another device"));
    CHECK_EQ(pstk_seek(loader, 0, 0, NULL), 0); /* no way back */
    CHECK_EQ(pstk_next(loader, &b, NULL, LONG, &err), PSTK_EINVAL);
    pstk_close(&loader);
    cudaStreamDestroy(other);
    CHECK_EQ(cuda_fake_close(), 1); /* its memory stays: the other device may read it still */
}

TEST(an_error_of_the_programs_own_is_not_taken_away)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    void *memory;
    cuda_fake_open(NULL);
    cudaSetDevice(0);
    CHECK_EQ(cudaMalloc(&memory, (size_t)1 << 50), cudaErrorMemoryAllocation);
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
    CHECK_EQ(cudaMalloc(&memory, (size_t)1 << 50), cudaErrorMemoryAllocation);
    CHECK_EQ(pstk_next(loader, &b, NULL, LONG, NULL), 1);
    pstk_release(&b, NULL);
    CHECK_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
    pstk_close(&loader);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(several_loaders_on_a_device_and_several_devices)
{
    struct pstk_loader *loaders[4];
    struct oracle oracles[4];
    struct pstk_error err = error_now();
    void *streams[4];
    cuda_fake_open(&(struct cuda_fake_config){.n_devices = 2, .max_delay_us = 50});
    for (int i = 0; i < 4; i++) {
        struct pstk_settings s = base();
        s.device_index = i % 2;
        s.seed = 100 + (uint64_t)i;
        CHECK_EQ(oracle_open_for(&oracles[i], &s), 0);
        CHECK_EQ(pstk_open(&loaders[i], &s, NULL), 0);
        CHECK_EQ(pstk_stream_open(loaders[i], &streams[i], NULL), 0);
    }
    for (int epoch = 0; epoch < 3; epoch++)
        for (int i = 0; i < 4; i++) {
            cudaSetDevice(i % 2); /* for the steps of the test, which are launches */
            CHECK_EQ(epoch_on(loaders[i], &oracles[i], streams[i], &err), 5);
        }
    for (int i = 0; i < 4; i++) {
        pstk_stream_close(loaders[i], &streams[i]);
        pstk_close(&loaders[i]);
        oracle_close(&oracles[i]);
    }
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(a_batch_may_be_used_on_many_streams)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct seen *steps[12];
    cudaStream_t streams[12];
    struct oracle o;
    cuda_fake_open(&(struct cuda_fake_config){.max_delay_us = 100});
    cudaSetDevice(0);
    for (int i = 0; i < 12; i++)
        cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking);
    s.n_device_slots = 2;
    CHECK_EQ(oracle_open_for(&o, &s), 0);
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    for (int k = 0; k < 6; k++) {
        int r = pstk_next(loader, &b, streams[0], LONG, NULL);
        if (r == 0)
            continue;
        CHECK_EQ(r, 1);
        for (int i = 0; i < 12; i++) {
            steps[i] = seen_open(b);
            if (i > 0)
                CHECK_EQ(pstk_batch_wait(b, streams[i], NULL), 0);
            CHECK_EQ(seen_step(steps[i], streams[i]), cudaSuccess);
            if (i > 0)
                CHECK_EQ(pstk_batch_record(b, streams[i], NULL), 0);
        }
        pstk_release(&b, streams[0]);
        for (int i = 0; i < 12; i++) {
            CHECK_EQ(cudaStreamSynchronize(streams[i]), cudaSuccess);
            CHECK(seen_equal(&o, steps[i]));
            seen_free(steps[i]);
        }
    }
    pstk_close(&loader);
    oracle_close(&o);
    for (int i = 0; i < 12; i++)
        cudaStreamDestroy(streams[i]);
    CHECK_EQ(cuda_fake_close(), 0);
}

/* What a finalizer does: give back, from a thread that never chose a device. */
static void *give_back(void *batch)
{
    struct pstk_batch *b = batch;
    pstk_release(&b, NULL);
    return NULL;
}

TEST(the_default_stream_may_be_released_on_by_any_thread)
{
    struct pstk_settings s = base();
    struct pstk_error err = error_now();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct pstk_share *share;
    pthread_t thread;
    cuda_fake_open(&(struct cuda_fake_config){.n_devices = 2, .max_delay_us = 50});
    cudaSetDevice(1);
    s.device_index = 1;
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    for (int i = 0; i < 12; i++) {
        int r = pstk_next(loader, &b, NULL, LONG, &err);
        CHECK(r >= 0);
        if (r == 0)
            continue;
        CHECK_EQ(pthread_create(&thread, NULL, give_back, b), 0);
        pthread_join(thread, NULL);
    }
    CHECK_EQ(pstk_next(loader, &b, cudaStreamPerThread, LONG, &err), 1);
    CHECK_EQ(pstk_share_open(&share, &b, cudaStreamPerThread, &err), PSTK_EINVAL);
    CHECK(b && strstr(err.message, "cudaStreamPerThread"));
    CHECK_EQ(pstk_share_open(&share, &b, NULL, &err), 0);
    pstk_share_unref(&share);
    pstk_close(&loader);
    CHECK_EQ(cuda_fake_close(), 0);
}

/* Take and release n batches, so that every device slot is loaded again. */
static int run_on(struct pstk_loader *loader, cudaStream_t stream, int n)
{
    struct pstk_batch *b;
    for (int i = 0; i < n; i++) {
        const int r = pstk_next(loader, &b, stream, LONG, NULL);
        if (r < 0)
            return 0;
        pstk_release(&b, stream);
    }
    return 1;
}

TEST(what_a_share_is_used_on_ends_before_the_slot_is_overwritten)
{
    struct pstk_settings s = base();
    struct pstk_error err = error_now();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct pstk_share *share;
    struct oracle o;
    cudaStream_t streams[10], other;
    cuda_fake_open(&(struct cuda_fake_config){.n_devices = 2, .max_delay_us = 100});
    cudaSetDevice(1);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cudaSetDevice(0);
    for (int i = 0; i < 10; i++)
        cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking);
    s.n_device_slots = 2;
    CHECK_EQ(oracle_open_for(&o, &s), 0);
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_share_use(NULL, NULL, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_next(loader, &b, streams[0], LONG, NULL), 1);
    CHECK_EQ(pstk_share_open(&share, &b, streams[0], NULL), 0);
    CHECK_EQ(pstk_share_use(share, cudaStreamPerThread, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "cudaStreamPerThread"));
    CHECK_EQ(pstk_share_use(share, other, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "another device"));
    for (int i = 0; i < 2; i++) /* twice is once; its own stream needs no place */
        for (int k = 0; k < 9; k++)
            CHECK_EQ(pstk_share_use(share, streams[k], NULL), 0);
    CHECK_EQ(pstk_share_use(share, streams[9], &err), PSTK_ENOBUFS);
    CHECK(strstr(err.message, "pstk_batch_record"));
    struct seen *step = seen_open(pstk_share_batch(share));
    cuda_fake_hold(streams[8]);
    CHECK_EQ(seen_step(step, streams[8]), cudaSuccess); /* queued after share_use */
    pstk_share_unref(&share);
    CHECK_EQ(pstk_next(loader, &b, streams[0], LONG, NULL), 1);
    pstk_release(&b, streams[0]);
    cuda_fake_let(streams[8]);
    CHECK(run_on(loader, streams[0], 6));
    CHECK_EQ(cudaStreamSynchronize(streams[8]), cudaSuccess);
    CHECK(seen_equal(&o, step));
    seen_free(step);
    pstk_close(&loader);
    oracle_close(&o);
    for (int i = 0; i < 10; i++)
        cudaStreamDestroy(streams[i]);
    cudaStreamDestroy(other);
    CHECK_EQ(cuda_fake_close(), 0);
}

static _Thread_local cudaStream_t current_stream; /* as PyTorch keeps it */

static int get_current_stream(int32_t device_index, void **stream)
{
    *stream = current_stream;
    return device_index != 0;
}

static void read_nothing(void *user)
{
    (void)user;
}

/* A prefetcher takes batches on a side stream and uses them on the main one. Hazards, or -1. */
static int prefetch(pstk_current_stream_fn current)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct pstk_share *share;
    struct oracle o;
    struct seen *steps[4];
    cudaStream_t side, main_stream;
    cudaEvent_t taken;
    cuda_fake_open(&(struct cuda_fake_config){.max_delay_us = 200, .quiet = 1});
    cudaSetDevice(0);
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&main_stream, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&taken, cudaEventDisableTiming);
    s.n_device_slots = 2;
    s.current_stream = current;
    int ok = oracle_open_for(&o, &s) == 0 && pstk_open(&loader, &s, NULL) == 0;
    for (int i = 0; i < 4; i++) {
        ok = pstk_next(loader, &b, side, LONG, NULL) == 1 && ok;
        cudaEventRecord(taken, side);
        cudaStreamWaitEvent(main_stream, taken, 0);
        steps[i] = seen_open(b);
        ok = pstk_share_open(&share, &b, side, NULL) == 0 && ok;
        /* Where they race it is by name only: TSan would find a race that is meant. */
        ok = seen_queue(steps[i], current ? seen_run : read_nothing, main_stream) == cudaSuccess &&
             ok;
        current_stream = main_stream;
        pstk_share_unref(&share);
    }
    pstk_close(&loader);
    cudaStreamSynchronize(main_stream);
    for (int i = 0; i < 4; i++) {
        ok = (!current || seen_equal(&o, steps[i])) && ok;
        seen_free(steps[i]);
    }
    oracle_close(&o);
    cudaStreamDestroy(side);
    cudaStreamDestroy(main_stream);
    cudaEventDestroy(taken);
    return ok ? (int)cuda_fake_close() : -1;
}

TEST(the_current_stream_ends_before_the_slot_of_a_share_is_overwritten)
{
    CHECK(prefetch(NULL) > 0); /* nobody names the main stream: the fake sees the race */
    CHECK_EQ(prefetch(get_current_stream), 0);
}

struct second_user {
    const struct pstk_batch *batch;
    struct seen *step;
    pthread_barrier_t *queued, *compared;
    int ok;
};

static void *use_on_own_stream(void *user)
{
    struct second_user *u = user;
    cudaSetDevice(0);
    u->ok = pstk_batch_wait(u->batch, cudaStreamPerThread, NULL) == 0 &&
            seen_step(u->step, cudaStreamPerThread) == cudaSuccess &&
            pstk_batch_record(u->batch, cudaStreamPerThread, NULL) == 0;
    pthread_barrier_wait(u->queued);
    pthread_barrier_wait(u->compared);
    u->ok = u->ok && cudaStreamSynchronize(cudaStreamPerThread) == cudaSuccess;
    return NULL;
}

TEST(one_handle_may_be_two_streams)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct oracle o;
    pthread_barrier_t queued, compared;
    pthread_t thread;
    pthread_barrier_init(&queued, NULL, 2);
    pthread_barrier_init(&compared, NULL, 2);
    cuda_fake_open(&(struct cuda_fake_config){.max_delay_us = 2000});
    cudaSetDevice(0);
    s.n_device_slots = 2;
    CHECK_EQ(oracle_open_for(&o, &s), 0);
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_next(loader, &b, cudaStreamPerThread, LONG, NULL), 1);
    struct second_user u = {b, seen_open(b), &queued, &compared, 0};
    CHECK_EQ(pthread_create(&thread, NULL, use_on_own_stream, &u), 0);
    pthread_barrier_wait(&queued);
    pstk_release(&b, cudaStreamPerThread);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(pstk_next(loader, &b, cudaStreamPerThread, LONG, NULL), 1);
        pstk_release(&b, cudaStreamPerThread);
    }
    pthread_barrier_wait(&compared);
    pthread_join(thread, NULL);
    CHECK(u.ok && seen_equal(&o, u.step));
    seen_free(u.step);
    pstk_close(&loader);
    oracle_close(&o);
    CHECK_EQ(cuda_fake_close(), 0);
    pthread_barrier_destroy(&queued);
    pthread_barrier_destroy(&compared);
}

TEST(a_stream_that_is_captured_is_refused)
{
    struct pstk_settings s = base();
    struct pstk_error err = error_now();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    cudaStream_t stream;
    cuda_fake_open(NULL);
    cudaSetDevice(0);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    cuda_fake_capture_stream(stream);
    CHECK_EQ(pstk_next(loader, &b, stream, LONG, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "captured"));
    cuda_fake_capture_stream(NULL);
    CHECK_EQ(pstk_next(loader, &b, stream, LONG, &err), 1);
    cuda_fake_capture_stream(stream);
    CHECK_EQ(pstk_batch_record(b, stream, &err), PSTK_EINVAL);
    cuda_fake_capture_stream(NULL);
    pstk_release(&b, stream);
    pstk_close(&loader);
    cudaStreamDestroy(stream);
    CHECK_EQ(cuda_fake_close(), 0);
}

/* A graph is captured on the stream that a batch was leased on, and the batch is dropped. */
TEST(a_batch_released_during_a_capture_of_its_stream_is_parked)
{
    for (unsigned flags = 0; flags < 2; flags++) {
        struct pstk_settings s = base();
        struct pstk_error err = error_now();
        struct pstk_loader *loader;
        struct pstk_batch *b[3];
        struct oracle o;
        cudaStream_t stream;
        cuda_fake_open(&(struct cuda_fake_config){.max_delay_us = 100});
        cudaSetDevice(0);
        cudaStreamCreateWithFlags(&stream, flags);
        s.n_device_slots = 2;
        CHECK_EQ(oracle_open_for(&o, &s), 0);
        CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
        CHECK_EQ(pstk_next(loader, &b[0], stream, LONG, &err), 1);
        CHECK_EQ(pstk_next(loader, &b[1], flags ? stream : NULL, LONG, &err), 1);
        struct seen *step = seen_open(b[0]);
        cuda_fake_hold(stream);
        CHECK_EQ(seen_step(step, stream), cudaSuccess); /* before the capture */
        cuda_fake_capture_stream(stream);
        pstk_release(&b[0], stream);
        pstk_release(&b[1], flags ? stream : NULL);
        CHECK_EQ(pstk_next(loader, &b[2], stream, LONG, &err), PSTK_ENOBUFS);
        CHECK(strstr(err.message, "capture"));
        cuda_fake_capture_stream(NULL);
        CHECK_EQ(pstk_next(loader, &b[2], stream, LONG, &err), 1);
        pstk_release(&b[2], stream);
        cuda_fake_let(stream);
        CHECK(run_on(loader, stream, 6));
        CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
        CHECK(seen_equal(&o, step));
        seen_free(step);
        pstk_close(&loader);
        oracle_close(&o);
        cudaStreamDestroy(stream);
        CHECK_EQ(cuda_fake_close(), 0);
    }
}

struct capturer {
    cudaStream_t stream;
    struct pstk_batch *_Atomic batch; /* to be released */
    _Atomic int is_over;
    pthread_rwlock_t lock; /* no capture begins or ends during a call */
};

static void set_captured(struct capturer *c, cudaStream_t stream)
{
    pthread_rwlock_wrlock(&c->lock);
    cuda_fake_capture_stream(stream);
    pthread_rwlock_unlock(&c->lock);
}

static void *release_while_capturing(void *user)
{
    struct capturer *c = user;
    while (!c->is_over) {
        struct pstk_batch *b = atomic_exchange(&c->batch, NULL);
        if (!b) {
            sched_yield();
            continue;
        }
        set_captured(c, c->stream);
        pthread_rwlock_rdlock(&c->lock);
        pstk_release(&b, c->stream);
        pthread_rwlock_unlock(&c->lock);
        set_captured(c, NULL);
    }
    return NULL;
}

/* Slots are parked by one thread while another one takes them up again. */
TEST(batches_come_while_another_thread_parks_slots)
{
    struct pstk_settings s = base();
    struct capturer c = {NULL};
    struct pstk_loader *loader;
    struct pstk_batch *b;
    cudaStream_t stream;
    pthread_t thread;
    int n = 0, n_refused = 0;
    pthread_rwlock_init(&c.lock, NULL);
    cuda_fake_open(NULL);
    cudaSetDevice(0);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&c.stream, cudaStreamNonBlocking);
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pthread_create(&thread, NULL, release_while_capturing, &c), 0);
    while (n < 300 && n_refused < 1000000) {
        pthread_rwlock_rdlock(&c.lock);
        const int r = pstk_next(loader, &b, stream, MS, NULL);
        if (r == 1 && (b = atomic_exchange(&c.batch, b)) != NULL)
            pstk_release(&b, stream);
        pthread_rwlock_unlock(&c.lock);
        n += r == 1;
        n_refused += r == PSTK_ENOBUFS; /* all are parked, or the last one waits to be */
        if (r < 0 && r != PSTK_ENOBUFS && r != PSTK_ETIMEDOUT)
            break;
        sched_yield();
    }
    while (atomic_load(&c.batch))
        sched_yield();
    c.is_over = 1;
    pthread_join(thread, NULL);
    pthread_rwlock_destroy(&c.lock);
    CHECK_EQ(n, 300);
    pstk_close(&loader);
    cudaStreamDestroy(stream);
    cudaStreamDestroy(c.stream);
    CHECK_EQ(cuda_fake_close(), 0);
}

/* Any call on any batch will do. */
TEST(a_later_release_records_what_was_parked)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b[3];
    cudaStream_t stream;
    cuda_fake_open(NULL);
    cudaSetDevice(0);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pstk_next(loader, &b[i], stream, LONG, NULL), 1);
    cuda_fake_capture_stream(stream);
    pstk_release(&b[0], stream);
    pstk_close(&loader); /* waits for no capture, and frees nothing under a lease */
    cuda_fake_capture_stream(NULL);
    pstk_release(&b[1], stream);
    pstk_release(&b[2], stream); /* frees all */
    cudaStreamDestroy(stream);
    CHECK_EQ(cuda_fake_close(), 0);
}

/* What is before the capture in the stream may still use the memory, and nobody may wait for it. */
TEST(what_is_parked_when_all_is_closed_keeps_its_memory)
{
    for (int closed_first = 0; closed_first < 2; closed_first++) {
        struct pstk_settings s = base();
        struct cuda_fake_stats stats;
        struct pstk_loader *loader;
        struct pstk_batch *b;
        cudaStream_t stream;
        cuda_fake_open(&(struct cuda_fake_config){.quiet = 1});
        cudaSetDevice(0);
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
        CHECK_EQ(pstk_next(loader, &b, stream, LONG, NULL), 1);
        struct seen *step = seen_open(b);
        cuda_fake_hold(stream);
        CHECK_EQ(seen_step(step, stream), cudaSuccess);
        cuda_fake_capture_stream(stream);
        if (closed_first)
            pstk_close(&loader);
        pstk_release(&b, stream);
        pstk_close(&loader);
        cuda_fake_let(stream);
        cuda_fake_capture_stream(NULL);
        CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
        cudaStreamDestroy(stream);
        seen_free(step);
        cuda_fake_stats(&stats);
        CHECK_EQ(stats.n_hazards, 0);
        CHECK_EQ(stats.n_events + stats.n_streams + stats.n_registrations, 0);
        CHECK_EQ(cuda_fake_close(), 1); /* the memory */
    }
}

/* Of global mode in another thread, then of thread-local mode in this one: no call breaks it. */
TEST(a_capture_of_another_stream_is_not_broken)
{
    for (int what = 1; what < 3; what++) {
        struct pstk_settings s = base();
        struct cuda_fake_config config = {.no_register = what == 2 ? cudaErrorNotSupported : 0};
        struct pstk_stats stats = {.size = sizeof stats};
        struct pstk_loader *loader;
        struct pstk_batch *b;
        struct pstk_share *share;
        cudaStream_t captured;
        void *stream;
        uint8_t byte;
        cuda_fake_open(&config);
        cudaSetDevice(0);
        cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking);
        cuda_fake_capture(what);
        cuda_fake_capture_stream(captured);
        s.timed = 1;
        CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
        CHECK_EQ(pstk_stream_open(loader, &stream, NULL), 0);
        for (int i = 0; i < 5; i++) {
            CHECK_EQ(pstk_next(loader, &b, i % 2 ? stream : NULL, LONG, NULL), 1);
            CHECK_EQ(pstk_stream_spin(loader, stream, 1000, NULL), 0);
            CHECK_EQ(pstk_batch_wait(b, stream, NULL), 0);
            CHECK_EQ(pstk_batch_record(b, stream, NULL), 0);
            CHECK_EQ(pstk_batch_read(b, 1, &byte, 1, stream, NULL), 0);
            CHECK_EQ(pstk_share_open(&share, &b, NULL, NULL), 0);
            CHECK_EQ(pstk_share_use(share, stream, NULL), 0);
            pstk_share_unref(&share);
            CHECK_EQ(pstk_get_stats(loader, &stats), 0);
        }
        pstk_stream_close(loader, &stream);
        pstk_close(&loader);
        cuda_fake_capture_stream(NULL);
        cuda_fake_capture(0);
        cudaStreamDestroy(captured);
        CHECK_EQ(cuda_fake_close(), 0);
    }
}

/* ---- leases ---------------------------------------------------------------------------------- */

TEST(a_slot_keeps_its_addresses)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    const void *data[3][6] = {{NULL}};
    cuda_fake_open(NULL);
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    for (int i = 0; i < 20; i++) {
        int r = pstk_next(loader, &b, NULL, LONG, NULL);
        if (r == 0)
            continue;
        CHECK_EQ(r, 1);
        CHECK(b->slot < 3);
        for (uint32_t k = 0; k < 6; k++) {
            CHECK(!data[b->slot][k] || data[b->slot][k] == b->tensors[k].data);
            CHECK_EQ((uintptr_t)b->tensors[k].data % 64, 0);
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
    s.n_device_slots = 2;
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
                 pstk_batch_record(b, NULL, NULL) == PSTK_EPERM &&
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
    s.n_slots = 2;
    cuda_fake_stats(&before);
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(pstk_next(loader, &b, NULL, LONG, NULL), 1);
        text += b->tensors[0].size;
        pstk_release(&b, NULL);
    }
    cuda_fake_stats(&after);
    CHECK_EQ(after.n_pageable, 0);
    /* Offsets of 5 int64 go as 64 bytes; three more batches at most were loaded ahead. */
    CHECK(after.n_h2d - before.n_h2d >= text + 3 * 64);
    CHECK(after.n_h2d - before.n_h2d <= text + 6 * 64 + 3 * 4 * 64);
    pstk_close(&loader);
    CHECK_EQ(cuda_fake_close(), 0);
}

/* ---- time ------------------------------------------------------------------------------------ */

static void sleep_ms(uint32_t ms)
{
    const struct timespec t = {.tv_nsec = (long)(ms * MS)};
    nanosleep(&t, NULL);
}

/* A row takes as many milliseconds as `user` says. */
static int decode_slowly(void *user, const struct pstk_sample *sample, void *row, uint64_t size)
{
    (void)sample;
    sleep_ms(*(const uint32_t *)user);
    memset(row, 1, size);
    return 0;
}

/* A loader of one worker and a trainer on the fake's clock. */
struct clocked {
    struct pstk_loader *loader;
    uint32_t row_ms;
    struct pstk_output output;
    void *streams[2];
    uint64_t used, starved, wall; /* nanoseconds */
    uint64_t start;
    int ok;
};

static void clocked_open(struct clocked *c, uint32_t row_ms, uint32_t n_device_slots)
{
    struct pstk_settings s = base();
    cuda_fake_open(NULL);
    cudaSetDevice(0);
    c->row_ms = row_ms;
    c->output = (struct pstk_output){.field = "cls",
                                     .kind = PSTK_OUTPUT_CALLBACK,
                                     .dtype = PSTK_U8,
                                     .n_dims = 1,
                                     .shape = {8},
                                     .decode = decode_slowly,
                                     .user = &c->row_ms};
    s.outputs = &c->output;
    s.n_outputs = 1;
    s.batch_size = 1;
    s.n_threads = 1;
    s.n_device_slots = n_device_slots;
    s.timed = 1;
    c->ok = pstk_open(&c->loader, &s, NULL) == 0 &&
            pstk_stream_open(c->loader, &c->streams[0], NULL) == 0 &&
            pstk_stream_open(c->loader, &c->streams[1], NULL) == 0;
    c->start = pstk__clock_ns();
}

/* Counted is what came before the last batch that was asked for. */
static void clocked_close(struct clocked *c)
{
    struct pstk_stats stats = {.size = sizeof stats};
    struct pstk_batch *b = NULL;
    for (int i = 0; i < 2; i++) /* the second finds that the first has arrived */
        if (pstk_next(c->loader, &b, c->streams[0], LONG, NULL) == 1) {
            cudaStreamSynchronize(c->streams[0]);
            pstk_release(&b, c->streams[0]);
        }
    c->wall = pstk__clock_ns() - c->start;
    pstk_get_stats(c->loader, &stats);
    c->used = stats.stream_used_ns;
    c->starved = stats.stream_starved_ns;
    printf("# %.0f ms used, %.0f ms starved, %.0f ms in all\n", (double)c->used / 1e6,
           (double)c->starved / 1e6, (double)c->wall / 1e6);
    for (int i = 0; i < 2; i++)
        pstk_stream_close(c->loader, &c->streams[i]);
    pstk_close(&c->loader);
    c->ok = cuda_fake_close() == 0 && c->ok;
}

/* As `for batch in loader` does: the last batch is held while the next one is asked for. */
static void train_naturally(struct clocked *c, int n, uint64_t step_ns)
{
    struct pstk_batch *held = NULL, *b = NULL;
    for (int i = 0; i < n; i++) {
        c->ok = pstk_next(c->loader, &b, c->streams[0], LONG, NULL) >= 0 && c->ok;
        pstk_release(&held, c->streams[0]);
        if (b)
            pstk_stream_spin(c->loader, c->streams[0], step_ns, NULL);
        held = b;
        b = NULL;
    }
    pstk_release(&held, c->streams[0]);
}

TEST(a_slow_loader_starves_the_stream_of_a_loop_that_holds_its_batch)
{
    struct clocked c = {0};
    clocked_open(&c, 20, 3);
    train_naturally(&c, 15, 2 * MS);
    clocked_close(&c);
    CHECK(c.ok);
    CHECK(c.starved >= 15 * 10 * MS);
    CHECK(c.used >= 14 * 2 * MS);
    CHECK(c.starved > 2 * c.used);
    CHECK(c.used + c.starved <= c.wall);
}

TEST(a_fast_loader_starves_no_stream)
{
    struct clocked c = {0};
    clocked_open(&c, 0, 3);
    sleep_ms(50); /* it fills its slots */
    train_naturally(&c, 15, 20 * MS);
    clocked_close(&c);
    CHECK(c.ok);
    CHECK(c.used >= 14 * 20 * MS);
    CHECK(c.starved < c.used / 4);
    CHECK(c.used + c.starved <= c.wall);
}

TEST(work_after_an_early_release_is_use)
{
    struct clocked c = {0};
    struct pstk_batch *b;
    clocked_open(&c, 0, 3);
    sleep_ms(50);
    for (int i = 0; i < 15; i++) {
        c.ok = pstk_next(c.loader, &b, c.streams[0], LONG, NULL) == 1 && c.ok;
        pstk_release(&b, c.streams[0]); /* after the forward pass; this is the backward pass: */
        pstk_stream_spin(c.loader, c.streams[0], 20 * MS, NULL);
    }
    clocked_close(&c);
    CHECK(c.ok);
    CHECK(c.used >= 14 * 20 * MS);
    CHECK(c.starved < c.used / 4);
}

TEST(a_batch_that_is_polled_for_is_asked_for_once)
{
    struct clocked c = {0};
    struct pstk_batch *b;
    int r;
    clocked_open(&c, 20, 3);
    for (int i = 0; i < 10; i++) {
        while ((r = pstk_next(c.loader, &b, c.streams[0], 0, NULL)) == PSTK_ETIMEDOUT)
            sleep_ms(1);
        c.ok = r == 1 && c.ok;
        pstk_stream_spin(c.loader, c.streams[0], 2 * MS, NULL);
        pstk_release(&b, c.streams[0]);
    }
    clocked_close(&c);
    CHECK(c.ok);
    CHECK(c.starved >= 10 * 10 * MS);
    CHECK(c.starved > 2 * c.used);
    CHECK(c.used + c.starved <= c.wall);
}

TEST(what_is_done_between_epochs_is_use)
{
    struct clocked c = {0};
    clocked_open(&c, 0, 3);
    sleep_ms(50);
    train_naturally(&c, N_SAMPLES + 1, 0); /* the last call finds the epoch's end */
    pstk_stream_spin(c.loader, c.streams[0], 200 * MS, NULL);
    clocked_close(&c);
    CHECK(c.ok);
    CHECK(c.used >= 200 * MS);
    CHECK(c.starved < c.used / 4);
}

TEST(each_streams_time_is_its_own)
{
    struct clocked c = {0};
    struct pstk_batch *b;
    clocked_open(&c, 0, 4);
    sleep_ms(50);
    for (int i = 0; i < 16; i++) {
        c.ok = pstk_next(c.loader, &b, c.streams[i % 2], LONG, NULL) == 1 && c.ok;
        pstk_stream_spin(c.loader, c.streams[i % 2], 20 * MS, NULL);
        pstk_release(&b, c.streams[i % 2]);
    }
    cudaStreamSynchronize(c.streams[1]);
    clocked_close(&c);
    CHECK(c.ok);
    CHECK(c.used >= 14 * 20 * MS);
    CHECK(c.starved < c.used / 4);
    CHECK(c.used + c.starved <= 2 * c.wall);
}

/* 64 leases are kept until the device has passed them; what goes past that is not measured. */
TEST(a_program_far_ahead_of_its_stream_is_not_measured_wrongly)
{
    struct clocked c = {0};
    struct pstk_batch *held[70] = {NULL};
    clocked_open(&c, 0, 64);
    cuda_fake_hold(c.streams[0]);
    for (int i = 0; i < 70; i++) {
        if (i >= 60)
            pstk_release(&held[i - 60], c.streams[1]);
        c.ok = pstk_next(c.loader, &held[i], c.streams[0], LONG, NULL) >= 0 && c.ok;
    }
    sleep_ms(200);
    cuda_fake_let(c.streams[0]);
    for (int i = 0; i < 70; i++)
        pstk_release(&held[i], c.streams[0]);
    cudaStreamSynchronize(c.streams[0]);
    train_naturally(&c, 10, 10 * MS);
    clocked_close(&c);
    CHECK(c.ok);
    CHECK(c.used >= 9 * 10 * MS);
    CHECK(c.starved < 100 * MS); /* nobody waited while the stream was held */
    CHECK(c.used + c.starved <= c.wall);
}

TEST(what_a_timed_device_did_is_in_the_stats)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct pstk_stats stats = {.size = sizeof stats};
    void *stream;
    cuda_fake_open(NULL);
    s.timed = 1;
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_stream_open(loader, &stream, NULL), 0);
    for (int i = 0; i < 30; i++)
        if (pstk_next(loader, &b, stream, LONG, NULL) == 1) {
            CHECK_EQ(pstk_stream_spin(loader, stream, 2 * MS, NULL), 0);
            pstk_release(&b, stream);
        }
    CHECK_EQ(pstk_get_stats(loader, &stats), 0);
    CHECK(stats.stream_used_ns >= 10 * 2 * MS);
    CHECK(stats.copy_ns > 0);
    CHECK(stats.copy_bytes > 0);
    CHECK_EQ(stats.n_device_slots, 3);
    CHECK(stats.device_memory > 0);
    CHECK_EQ(stats.page_locked, 1);
    CHECK(stats.stage_uploader.n_items >= 24);
    pstk_stream_close(loader, &stream);
    pstk_close(&loader);
    CHECK_EQ(cuda_fake_close(), 0);
}

int main(void)
{
    consumer_begin();
    const struct test_case cases[] = {
        CASE(every_dtype_and_layout_equals_the_host),
        CASE(threads_slots_and_batches_make_no_difference),
        CASE(slots_that_cannot_be_page_locked_are_copied_through_the_bounce_buffers),
        CASE(no_schedule_of_thousands_makes_a_difference),
        CASE(nothing_runs_on_gpu_0_by_accident),
        CASE(a_stream_left_open_is_closed_after_the_last_batch),
        CASE(the_threads_current_device_stays_what_it_was),
        CASE(a_stream_of_another_device_is_refused_and_the_batch_stays),
        CASE(an_error_of_the_programs_own_is_not_taken_away),
        CASE(several_loaders_on_a_device_and_several_devices),
        CASE(a_batch_may_be_used_on_many_streams),
        CASE(the_default_stream_may_be_released_on_by_any_thread),
        CASE(what_a_share_is_used_on_ends_before_the_slot_is_overwritten),
        CASE(the_current_stream_ends_before_the_slot_of_a_share_is_overwritten),
        CASE(one_handle_may_be_two_streams),
        CASE(a_stream_that_is_captured_is_refused),
        CASE(a_batch_released_during_a_capture_of_its_stream_is_parked),
        CASE(batches_come_while_another_thread_parks_slots),
        CASE(a_later_release_records_what_was_parked),
        CASE(what_is_parked_when_all_is_closed_keeps_its_memory),
        CASE(a_capture_of_another_stream_is_not_broken),
        CASE(a_slot_keeps_its_addresses),
        CASE(holding_every_device_slot_is_enobufs),
        CASE(a_leased_batch_outlives_the_loader_and_its_last_use),
        CASE(a_forked_child_may_call_nothing),
        CASE(read_gives_a_tensors_bytes),
        CASE(only_what_a_ragged_batch_has_is_copied),
        CASE(a_slow_loader_starves_the_stream_of_a_loop_that_holds_its_batch),
        CASE(a_fast_loader_starves_no_stream),
        CASE(work_after_an_early_release_is_use),
        CASE(a_batch_that_is_polled_for_is_asked_for_once),
        CASE(what_is_done_between_epochs_is_use),
        CASE(each_streams_time_is_its_own),
        CASE(a_program_far_ahead_of_its_stream_is_not_measured_wrongly),
        CASE(what_a_timed_device_did_is_in_the_stats),
    };
    int failed = RUN_CASES(cases);
    consumer_end();
    return failed;
}
