/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loader's copies to a GPU leave the trainer its kernels, its own copies, its threads and its
 * memory. The tests run on the fake CUDA runtime.
 */
#include "support/cuda_consumer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>

static void nap_ms(long ms)
{
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static void run_nothing(void *user)
{
    (void)user;
}

#define DEPTH 4u

struct release {
    struct pstk_batch *batch;
    cudaStream_t stream;
    _Atomic int is_over;
};

static void *release_on(void *user)
{
    struct release *r = user;
    pstk_release(&r->batch, r->stream);
    atomic_store(&r->is_over, 1);
    return NULL;
}

struct waker {
    cudaStream_t stream;
    _Atomic int now;
};

/* Lets the stream go when it is asked; in the end also where nobody came so far as to ask. */
static void *let_go(void *user)
{
    struct waker *w = user;
    WAIT_UNTIL(atomic_load(&w->now));
    cuda_fake_let(w->stream);
    return NULL;
}

/* A release that waits for room in its stream, as a launch would. */
TEST(next_without_time_waits_for_no_other_threads_call)
{
    struct pstk_settings s = base();
    struct pstk_error err = error_now();
    struct release r = {NULL, NULL, 0};
    struct pstk_loader *loader;
    struct pstk_batch *b;
    cudaStream_t other;
    struct waker w = {NULL, 0};
    pthread_t releaser, waker;
    cuda_fake_open(&(struct cuda_fake_config){.stream_depth = DEPTH});
    cudaSetDevice(0);
    cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_next(loader, &r.batch, r.stream, LONG, NULL), 1);
    CHECK_EQ(cudaStreamSynchronize(r.stream), cudaSuccess);
    cuda_fake_hold(r.stream);
    for (uint32_t i = 0; i < DEPTH; i++)
        CHECK_EQ(cuda_fake_enqueue(r.stream, run_nothing, &s, 1, NULL, 0), cudaSuccess);
    w.stream = r.stream;
    CHECK_EQ(pthread_create(&waker, NULL, let_go, &w), 0);
    CHECK_EQ(pthread_create(&releaser, NULL, release_on, &r), 0);
    WAIT_UNTIL(cuda_fake_n_stuck(r.stream) == 1);
    CHECK(!atomic_load(&r.is_over));
    CHECK_EQ(pstk_next(loader, &b, other, 0, &err), PSTK_ETIMEDOUT);
    CHECK_EQ(err.code, PSTK_ETIMEDOUT);
    CHECK(!atomic_load(&r.is_over)); /* so it did not wait */
    atomic_store(&w.now, 1);
    CHECK_EQ(pstk_next(loader, &b, other, LONG, NULL), 1);
    CHECK_EQ(b->index, 1);
    pthread_join(waker, NULL);
    pthread_join(releaser, NULL);
    pstk_release(&b, other);
    pstk_close(&loader);
    cudaStreamDestroy(r.stream);
    cudaStreamDestroy(other);
    CHECK_EQ(cuda_fake_close(), 0);
}

/* As before, and a slot waits for a capture that is over to be given back. */
TEST(next_without_time_settles_no_slot_while_another_thread_is_in_a_call)
{
    struct pstk_settings s = base();
    struct pstk_error err = error_now();
    struct release r = {NULL, NULL, 0};
    struct pstk_loader *loader;
    struct pstk_batch *b;
    cudaStream_t other;
    struct waker w = {NULL, 0};
    pthread_t releaser, waker;
    cuda_fake_open(&(struct cuda_fake_config){.stream_depth = DEPTH});
    cudaSetDevice(0);
    cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_next(loader, &r.batch, r.stream, LONG, NULL), 1);
    CHECK_EQ(pstk_next(loader, &b, other, LONG, NULL), 1);
    CHECK_EQ(cudaStreamSynchronize(r.stream), cudaSuccess);
    CHECK_EQ(cudaStreamSynchronize(other), cudaSuccess);
    cuda_fake_capture_stream(other);
    pstk_release(&b, other); /* parked */
    cuda_fake_hold(r.stream);
    for (uint32_t i = 0; i < DEPTH; i++)
        CHECK_EQ(cuda_fake_enqueue(r.stream, run_nothing, &s, 1, NULL, 0), cudaSuccess);
    w.stream = r.stream;
    CHECK_EQ(pthread_create(&waker, NULL, let_go, &w), 0);
    CHECK_EQ(pthread_create(&releaser, NULL, release_on, &r), 0);
    WAIT_UNTIL(cuda_fake_n_stuck(r.stream) == 1);
    cuda_fake_capture_stream(NULL);
    CHECK(!atomic_load(&r.is_over));
    CHECK_EQ(pstk_next(loader, &b, other, 0, &err), PSTK_ETIMEDOUT);
    CHECK_EQ(err.code, PSTK_ETIMEDOUT);
    CHECK(!atomic_load(&r.is_over)); /* so it did not wait */
    atomic_store(&w.now, 1);
    pthread_join(waker, NULL);
    pthread_join(releaser, NULL);
    for (uint32_t i = 0; i < 3; i++) { /* every slot is there again */
        int result;
        while ((result = pstk_next(loader, &b, other, 0, &err)) == PSTK_ETIMEDOUT)
            nap_ms(1);
        CHECK_EQ(result, 1);
        pstk_release(&b, other);
    }
    pstk_close(&loader);
    cudaStreamDestroy(r.stream);
    cudaStreamDestroy(other);
    CHECK_EQ(cuda_fake_close(), 0);
}

/* Once all slots are loaded, give one back and hold what is then copied there. 0: nothing is. */
static int hold_a_load(struct pstk_loader *loader, struct pstk_batch **b, cudaStream_t stream)
{
    struct cuda_fake_stats now;
    struct pstk_stats stats = {.size = sizeof stats};
    WAIT_UNTIL(pstk_get_stats(loader, &stats) < 0 || stats.stage_uploader.n_items >= 3);
    cuda_fake_hold_copies(1);
    pstk_release(b, stream);
    WAIT_UNTIL((cuda_fake_stats(&now), now.n_at_engines > 0));
    nap_ms(20); /* for what else it may queue */
    return now.n_at_engines > 0;
}

/* The stream comes to its end. */
static int ends(cudaStream_t stream)
{
    WAIT_UNTIL(cudaStreamQuery(stream) != cudaErrorNotReady);
    return cudaStreamQuery(stream) == cudaSuccess;
}

/* With CUDA_DEVICE_MAX_CONNECTIONS=1, which Megatron sets. */
TEST(no_kernel_of_the_trainers_waits_for_a_copy_of_ours)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    cudaStream_t stream;
    cuda_fake_open(&(struct cuda_fake_config){.one_queue = 1});
    cudaSetDevice(0);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_next(loader, &b, stream, LONG, NULL), 1);
    CHECK(hold_a_load(loader, &b, stream));
    CHECK_EQ(cuda_fake_enqueue(stream, run_nothing, &s, 1, NULL, 0), cudaSuccess);
    const int ended = ends(stream);
    cuda_fake_hold_copies(0);
    CHECK(ended);
    pstk_close(&loader);
    cudaStreamDestroy(stream);
    CHECK_EQ(cuda_fake_close(), 0);
}

/* A step that goes on for long uses the batches that were given back. */
TEST(no_copy_of_the_trainers_waits_for_a_slot_of_ours)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b[2];
    cudaStream_t stream, other;
    void *small, *pinned;
    cuda_fake_open(&(struct cuda_fake_config){.one_queue = 1});
    cudaSetDevice(0);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    CHECK_EQ(cudaMalloc(&small, 64), cudaSuccess);
    CHECK_EQ(cudaHostAlloc(&pinned, 64, cudaHostAllocDefault), cudaSuccess);
    s.device.n_slots = 2;
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pstk_next(loader, &b[i], stream, LONG, NULL), 1);
    CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    cuda_fake_hold(stream);
    for (int i = 0; i < 2; i++)
        pstk_release(&b[i], stream);
    nap_ms(50); /* for what the loader queues */
    CHECK_EQ(cudaMemcpyAsync(small, pinned, 64, cudaMemcpyHostToDevice, other), cudaSuccess);
    const int ended = ends(other);
    cuda_fake_let(stream);
    CHECK(ended);
    CHECK_EQ(pstk_next(loader, &b[0], stream, LONG, NULL), 1);
    pstk_release(&b[0], stream);
    CHECK_EQ(cudaStreamSynchronize(other), cudaSuccess);
    pstk_close(&loader);
    cudaFree(small);
    cudaFreeHost(pinned);
    cudaStreamDestroy(stream);
    cudaStreamDestroy(other);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(a_batch_is_leased_once_its_copies_are_done)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct oracle o;
    cuda_fake_open(NULL);
    cudaSetDevice(0);
    CHECK_EQ(oracle_open_for(&o, &s), 0);
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_next(loader, &b, NULL, LONG, NULL), 1);
    CHECK(hold_a_load(loader, &b, NULL));
    int r = 1, n = 0;
    while ((r = pstk_next(loader, &b, NULL, 50000000, NULL)) == 1 && ++n)
        pstk_release(&b, NULL);
    CHECK_EQ(r, PSTK_ETIMEDOUT);
    CHECK(n <= 2); /* the other slots */
    CHECK_EQ(pstk_next(loader, &b, NULL, 0, NULL), PSTK_ETIMEDOUT);
    cuda_fake_hold_copies(0);
    CHECK_EQ(pstk_next(loader, &b, NULL, LONG, NULL), 1);
    struct seen *step = seen_open(b);
    CHECK_EQ(seen_step(step, NULL), cudaSuccess);
    pstk_release(&b, NULL);
    CHECK_EQ(cudaStreamSynchronize(NULL), cudaSuccess);
    CHECK(seen_equal(&o, step));
    seen_free(step);
    pstk_close(&loader);
    oracle_close(&o);
    CHECK_EQ(cuda_fake_close(), 0);
}

/* 12 MiB a batch. */
static const struct pstk_op large_ops[] = {{.kind = PSTK_OP_RESIZE, .width = 512, .height = 512}};
static const struct pstk_output large = {.field = "img",
                                         .kind = PSTK_OUTPUT_IMAGE,
                                         .image.ops = large_ops,
                                         .image.n_ops = 1,
                                         .dtype = PSTK_U8};

/* Bytes of mappings that huge pages were asked for. */
static uint64_t n_huge(void)
{
    FILE *f = fopen("/proc/self/smaps", "r");
    unsigned long long begin, end, size = 0, all = 0;
    char line[4096];
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%llx-%llx ", &begin, &end) == 2)
            size = end - begin;
        else if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " hg"))
            all += size;
    }
    if (f)
        fclose(f);
    return all;
}

TEST(huge_pages_are_asked_for_where_slots_are_page_locked)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    const uint64_t before = n_huge(), batch = (uint64_t)12 << 20;
    void *probe = mmap(NULL, 4 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(probe != MAP_FAILED);
    if (madvise(probe, 4 << 20, MADV_HUGEPAGE) != 0 || n_huge() == before)
        SKIP("the kernel has no transparent huge pages");
    munmap(probe, 4 << 20);
    cuda_fake_open(NULL);
    s.outputs = &large;
    s.n_outputs = 1;
    s.batch_size = 16;
    s.memory.n_slots = 3;
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK(n_huge() - before >= 3 * batch);
    pstk_close(&loader);
    CHECK_EQ(n_huge(), before);
    s.device.kind = PSTK_HOST; /* there ragged slots are mostly untouched */
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(n_huge(), before);
    pstk_close(&loader);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(a_small_copy_of_the_trainers_waits_for_4_MiB_of_ours_at_most)
{
    struct pstk_settings s = base();
    struct cuda_fake_stats stats;
    struct pstk_loader *loader;
    struct pstk_batch *b;
    cudaStream_t stream, other;
    void *small, *pinned;
    cuda_fake_open(NULL);
    cudaSetDevice(0);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    CHECK_EQ(cudaMalloc(&small, 64), cudaSuccess);
    CHECK_EQ(cudaHostAlloc(&pinned, 64, cudaHostAllocDefault), cudaSuccess);
    s.outputs = &large;
    s.n_outputs = 1;
    s.batch_size = 16;
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_next(loader, &b, stream, LONG, NULL), 1);
    cuda_fake_reset();
    CHECK(hold_a_load(loader, &b, stream));
    CHECK_EQ(cudaMemcpyAsync(small, pinned, 64, cudaMemcpyHostToDevice, other), cudaSuccess);
    WAIT_UNTIL((cuda_fake_stats(&stats), stats.max_ahead > 0)); /* it has come to the engine */
    cuda_fake_hold_copies(0);
    CHECK_EQ(cudaStreamSynchronize(other), cudaSuccess);
    cuda_fake_stats(&stats);
    CHECK_EQ(stats.max_ahead, 4 << 20);
    pstk_close(&loader);
    cudaFree(small);
    cudaFreeHost(pinned);
    cudaStreamDestroy(stream);
    cudaStreamDestroy(other);
    CHECK_EQ(cuda_fake_close(), 0);
}

/* 4 rows of 7 x 9 pixels: as u8 they arrive in two buffers, as f32 they lie in every slot. */
TEST(slots_share_two_arrival_buffers)
{
    const uint64_t rows = 768, flips = 256, final = 3072; /* in units of 256 bytes */
    for (uint32_t n = 2; n <= 8; n++) {
        struct pstk_settings s = base();
        struct pstk_stats stats = {.size = sizeof stats};
        struct cuda_fake_stats fake;
        struct pstk_loader *loader;
        cuda_fake_open(NULL);
        s.n_outputs = 1;
        s.device.n_slots = n;
        CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
        CHECK_EQ(pstk_get_stats(loader, &stats), 0);
        cuda_fake_stats(&fake);
        CHECK_EQ(stats.device_memory, n * final + 2 * (rows + flips));
        CHECK_EQ(fake.devices[0].n_allocated, stats.device_memory + 3 * 256 * sizeof(float));
        pstk_close(&loader);
        CHECK_EQ(cuda_fake_close(), 0);
        CHECK(device_equals_oracle(&s, &(struct cuda_fake_config){.max_delay_us = 300}));
    }
}

int main(void)
{
    consumer_begin();
    const struct test_case cases[] = {
        CASE(next_without_time_waits_for_no_other_threads_call),
        CASE(next_without_time_settles_no_slot_while_another_thread_is_in_a_call),
        CASE(no_kernel_of_the_trainers_waits_for_a_copy_of_ours),
        CASE(no_copy_of_the_trainers_waits_for_a_slot_of_ours),
        CASE(a_batch_is_leased_once_its_copies_are_done),
        CASE(a_small_copy_of_the_trainers_waits_for_4_MiB_of_ours_at_most),
        CASE(huge_pages_are_asked_for_where_slots_are_page_locked),
        CASE(slots_share_two_arrival_buffers),
    };
    int failed = RUN_CASES(cases);
    consumer_end();
    return failed;
}
