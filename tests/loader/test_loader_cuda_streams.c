/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The streams that batches are taken, used and released on, on the fake CUDA runtime: of which
 * device, how many, of which thread, and while graphs are captured.
 */
#include "support/cuda_consumer.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define MS 1000000ull /* ns */

TEST(nothing_runs_on_gpu_0_by_accident)
{
    struct pstk_settings s = base();
    struct cuda_fake_stats stats;
    struct pstk_loader *loader;
    struct pstk_batch *b = NULL;
    void *stream;
    int current = -1;
    cuda_fake_open(&(struct cuda_fake_config){.n_devices = 3});
    s.device.index = 2;
    s.device.measure = 1;
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
    s.device.index = 1;
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

/* The last release frees what kernels are made of. */
TEST(a_kernel_in_a_stream_left_open_ends_before_its_code_goes)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    void *stream;
    cudaStream_t foreign;
    cuda_fake_open(NULL);
    cudaSetDevice(0);
    cudaStreamCreateWithFlags(&foreign, cudaStreamNonBlocking);
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_stream_open(loader, &stream, NULL), 0);
    CHECK_EQ(pstk_stream_spin(loader, stream, 50 * MS, NULL), 0);
    CHECK_EQ(pstk_stream_spin(loader, foreign, 100 * MS, NULL), 0);
    pstk_close(&loader);
    cudaStreamDestroy(foreign);
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
    s.device.index = 1;
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
    CHECK_EQ(pstk_batch_use_stream(b, other, &err), PSTK_EINVAL);
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
    CHECK_EQ(cuda_fake_close(),
             2); /* memory and module stay: the other device may use them still */
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
        s.device.index = i % 2;
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

/* More than a slot has events for uses. */
#define MANY 70

TEST(a_batch_may_be_used_on_many_streams)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct seen *steps[MANY];
    cudaStream_t streams[MANY];
    struct oracle o;
    cuda_fake_open(&(struct cuda_fake_config){.max_delay_us = 100});
    cudaSetDevice(0);
    for (int i = 0; i < MANY; i++)
        cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking);
    s.device.n_slots = 2;
    CHECK_EQ(oracle_open_for(&o, &s), 0);
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    for (int k = 0; k < 6; k++) {
        int r = pstk_next(loader, &b, streams[0], LONG, NULL);
        if (r == 0)
            continue;
        CHECK_EQ(r, 1);
        for (int i = 0; i < MANY; i++) {
            steps[i] = seen_open(b);
            if (i > 0)
                CHECK_EQ(pstk_batch_wait(b, streams[i], NULL), 0);
            CHECK_EQ(seen_step(steps[i], streams[i]), cudaSuccess);
            if (i > 0)
                CHECK_EQ(pstk_batch_use_stream(b, streams[i], NULL), 0);
        }
        pstk_release(&b, streams[0]);
        for (int i = 0; i < MANY; i++) {
            CHECK_EQ(cudaStreamSynchronize(streams[i]), cudaSuccess);
            CHECK(seen_equal(&o, steps[i]));
            seen_free(steps[i]);
        }
    }
    pstk_close(&loader);
    oracle_close(&o);
    for (int i = 0; i < MANY; i++)
        cudaStreamDestroy(streams[i]);
    CHECK_EQ(cuda_fake_close(), 0);
}

/* Give a batch back as a finalizer does, from a thread that never chose a device. */
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
    s.device.index = 1;
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    for (int i = 0; i < MANY; i++) {
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

TEST(work_on_a_shares_streams_ends_before_the_slot_is_overwritten)
{
    struct pstk_settings s = base();
    struct pstk_error err = error_now();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct pstk_share *share;
    struct oracle o;
    cudaStream_t streams[66], other;
    cudaEvent_t ended;
    cuda_fake_open(&(struct cuda_fake_config){.n_devices = 2, .max_delay_us = 100});
    cudaSetDevice(1);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cudaSetDevice(0);
    for (int i = 0; i < 66; i++)
        cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking);
    s.device.n_slots = 2;
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
        for (int k = 0; k < 65; k++)
            CHECK_EQ(pstk_share_use(share, streams[k], NULL), 0);
    CHECK_EQ(pstk_share_use(share, streams[65], &err), PSTK_EFBIG);
    CHECK(strstr(err.message, "let one of them wait for the work"));
    struct seen *step = seen_open(pstk_share_batch(share));
    struct seen *further = seen_open(pstk_share_batch(share));
    cuda_fake_hold(streams[64]);
    cuda_fake_hold(streams[65]);
    CHECK_EQ(seen_step(step, streams[64]), cudaSuccess); /* queued after share_use */
    /* As the message says: one of the 64 waits for the 65th. */
    cudaEventCreateWithFlags(&ended, cudaEventDisableTiming);
    CHECK_EQ(seen_step(further, streams[65]), cudaSuccess);
    CHECK_EQ(cudaEventRecord(ended, streams[65]), cudaSuccess);
    CHECK_EQ(cudaStreamWaitEvent(streams[7], ended, 0), cudaSuccess);
    pstk_share_unref(&share);
    CHECK_EQ(pstk_next(loader, &b, streams[0], LONG, NULL), 1);
    pstk_release(&b, streams[0]);
    cuda_fake_let(streams[64]);
    cuda_fake_let(streams[65]);
    CHECK(run_on(loader, streams[0], 6));
    CHECK_EQ(cudaStreamSynchronize(streams[64]), cudaSuccess);
    CHECK_EQ(cudaStreamSynchronize(streams[65]), cudaSuccess);
    CHECK(seen_equal(&o, step) && seen_equal(&o, further));
    cudaEventDestroy(ended);
    seen_free(step);
    seen_free(further);
    pstk_close(&loader);
    oracle_close(&o);
    for (int i = 0; i < 66; i++)
        cudaStreamDestroy(streams[i]);
    cudaStreamDestroy(other);
    CHECK_EQ(cuda_fake_close(), 0);
}

static _Thread_local cudaStream_t current_stream; /* as PyTorch keeps it */
static int n_named;                               /* calls that asked for one of the host's */

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
    s.device.n_slots = 2;
    s.device.current_stream = current;
    int ok = oracle_open_for(&o, &s) == 0 && pstk_open(&loader, &s, NULL) == 0;
    for (int i = 0; i < 4; i++) {
        ok = pstk_next(loader, &b, side, LONG, NULL) == 1 && ok;
        cudaEventRecord(taken, side);
        cudaStreamWaitEvent(main_stream, taken, 0);
        steps[i] = seen_open(b);
        ok = pstk_share_open(&share, &b, side, NULL) == 0 && ok;
        /* A step that would race reads nothing: TSan would report a race that is intended. */
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

static int name_no_stream(int32_t device_index, void **stream)
{
    *stream = NULL;
    n_named++;
    return device_index < 0;
}

TEST(nobody_asks_for_the_current_stream_of_a_batch_on_the_host)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct pstk_share *share;
    s.device.kind = PSTK_HOST;
    s.device.current_stream = name_no_stream;
    n_named = 0;
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_next(loader, &b, NULL, LONG, NULL), 1);
    CHECK_EQ(pstk_share_open(&share, &b, NULL, NULL), 0);
    pstk_share_unref(&share);
    pstk_close(&loader);
    CHECK_EQ(n_named, 0);
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
            pstk_batch_use_stream(u->batch, cudaStreamPerThread, NULL) == 0;
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
    s.device.n_slots = 2;
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
    uint8_t byte;
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
    CHECK_EQ(pstk_batch_use_stream(b, stream, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_batch_wait(b, stream, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_batch_read(b, 1, &byte, 1, stream, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_stream_spin(loader, stream, 1, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "captured"));
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
        s.device.n_slots = 2;
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
        /* Recorded now: the step is not over. */
        CHECK_EQ(pstk_next(loader, &b[2], stream, 50000000, &err), PSTK_ETIMEDOUT);
        cuda_fake_let(stream);
        CHECK_EQ(pstk_next(loader, &b[2], stream, LONG, &err), 1);
        pstk_release(&b[2], stream);
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
    int n = 0;
    uint32_t n_refused = 0; /* since the last batch */
    pthread_rwlock_init(&c.lock, NULL);
    cuda_fake_open(NULL);
    cudaSetDevice(0);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&c.stream, cudaStreamNonBlocking);
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pthread_create(&thread, NULL, release_while_capturing, &c), 0);
    while (n < 300 && test_patience(n_refused)) {
        pthread_rwlock_rdlock(&c.lock);
        const int r = pstk_next(loader, &b, stream, n % 2 ? MS : 0, NULL);
        if (r == 1 && (b = atomic_exchange(&c.batch, b)) != NULL)
            pstk_release(&b, stream);
        pthread_rwlock_unlock(&c.lock);
        n += r == 1;
        /* All are parked, or the last one waits to be. */
        n_refused = r == PSTK_ENOBUFS ? n_refused + 1 : 0;
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

/* Work before the capture in the stream may still use the memory, and nobody may wait for it. */
TEST(a_slot_parked_when_all_is_closed_keeps_its_memory)
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
        CHECK_EQ(cuda_fake_close(), 2); /* the memory and the module */
    }
}

/* One capture is of global mode in another thread, the next of thread-local mode in this one: no
 * call breaks it. */
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
        s.device.measure = 1;
        CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
        CHECK_EQ(pstk_stream_open(loader, &stream, NULL), 0);
        for (int i = 0; i < 5; i++) {
            CHECK_EQ(pstk_next(loader, &b, i % 2 ? stream : NULL, LONG, NULL), 1);
            CHECK_EQ(pstk_stream_spin(loader, stream, 1000, NULL), 0);
            CHECK_EQ(pstk_batch_wait(b, stream, NULL), 0);
            CHECK_EQ(pstk_batch_use_stream(b, stream, NULL), 0);
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

int main(void)
{
    consumer_begin();
    const struct test_case cases[] = {
        CASE(nothing_runs_on_gpu_0_by_accident),
        CASE(a_stream_left_open_is_closed_after_the_last_batch),
        CASE(a_kernel_in_a_stream_left_open_ends_before_its_code_goes),
        CASE(the_threads_current_device_stays_what_it_was),
        CASE(a_stream_of_another_device_is_refused_and_the_batch_stays),
        CASE(an_error_of_the_programs_own_is_not_taken_away),
        CASE(several_loaders_on_a_device_and_several_devices),
        CASE(a_batch_may_be_used_on_many_streams),
        CASE(the_default_stream_may_be_released_on_by_any_thread),
        CASE(work_on_a_shares_streams_ends_before_the_slot_is_overwritten),
        CASE(the_current_stream_ends_before_the_slot_of_a_share_is_overwritten),
        CASE(nobody_asks_for_the_current_stream_of_a_batch_on_the_host),
        CASE(one_handle_may_be_two_streams),
        CASE(a_stream_that_is_captured_is_refused),
        CASE(a_batch_released_during_a_capture_of_its_stream_is_parked),
        CASE(batches_come_while_another_thread_parks_slots),
        CASE(a_later_release_records_what_was_parked),
        CASE(a_slot_parked_when_all_is_closed_keeps_its_memory),
        CASE(a_capture_of_another_stream_is_not_broken),
    };
    int failed = RUN_CASES(cases);
    consumer_end();
    return failed;
}
