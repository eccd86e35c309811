/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cuda_fake_fixture.h"

static uint64_t state = 88172645463325252ull;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 33) % below;
}

/* ---- order by waits ---- */

TEST(conflicting_accesses_without_a_wait_are_a_race_the_others_are_not)
{
    const struct {
        uint32_t b0, e0, b1, e1;
        int first, second;
        uint64_t n;
    } cases[] = {{0, 100, 0, 100, WRITE, READ, 1},   {0, 100, 0, 100, READ, WRITE, 1},
                 {0, 100, 0, 100, WRITE, WRITE, 1},  {0, 100, 0, 100, READ, READ, 0},
                 {0, 100, 99, 200, WRITE, READ, 1},  {0, 100, 100, 200, WRITE, WRITE, 0},
                 {50, 100, 0, 51, WRITE, READ, 1},   {50, 100, 0, 50, WRITE, READ, 0},
                 {0, 1000, 500, 501, READ, WRITE, 1}};
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int waits = 0; waits < 2; waits++) {
            open_plain();
            const cudaStream_t a = stream_open(), b = stream_open();
            const cudaEvent_t e = event_open();
            uint8_t *d = device_open(SIZE);
            touch(d, cases[i].b0, cases[i].e0, cases[i].first, a);
            if (waits) {
                cudaEventRecord(e, a);
                cudaStreamWaitEvent(b, e, 0);
            } else {
                struct timespec t = {0,
                                     200000}; /* the first has ended: it is a race all the same */
                nanosleep(&t, NULL);
            }
            touch(d, cases[i].b1, cases[i].e1, cases[i].second, b);
            CHECK(close_with(CUDA_FAKE_RACE, waits ? 0 : cases[i].n));
        }
    }
}

TEST(a_race_is_found_despite_ordered_accesses_in_between)
{
    open_plain();
    const cudaStream_t a = stream_open(), b = stream_open(), c = stream_open();
    const cudaEvent_t e = event_open();
    uint8_t *d = device_open(SIZE);
    touch(d, 0, 1000, WRITE, a);
    cudaEventRecord(e, a);
    cudaStreamWaitEvent(b, e, 0);
    touch(d, 400, 600, WRITE, b); /* a's write is in two pieces now */
    cudaStreamWaitEvent(c, e, 0);
    touch(d, 0, 400, READ, c);
    touch(d, 600, 1000, READ, c);
    CHECK_EQ(stats().n_hazards, 0);
    touch(d, 599, 600, READ, c); /* b's */
    CHECK_EQ(hazards(CUDA_FAKE_RACE), 1);
    touch(d, 999, 1000, WRITE, b); /* c's read */
    CHECK_EQ(hazards(CUDA_FAKE_RACE), 2);
    touch(d, 999, 1000, READ, a); /* b's write */
    CHECK_EQ(hazards(CUDA_FAKE_RACE), 3);
    const cudaStream_t z = stream_open();
    touch(d, 100, 101, READ, z); /* a's write, which c read in order, in its first piece */
    CHECK_EQ(hazards(CUDA_FAKE_RACE), 4);
    touch(d, 700, 701, READ, z); /* and in its last */
    CHECK(close_with(CUDA_FAKE_RACE, 5));
}

TEST(a_record_covers_nothing_that_came_after_it)
{
    open_plain();
    const cudaStream_t a = stream_open(), b = stream_open();
    const cudaEvent_t e = event_open();
    uint8_t *d = device_open(SIZE);
    cudaEventRecord(e, a);
    touch(d, 0, 10, WRITE, a);
    cudaStreamWaitEvent(b, e, 0);
    touch(d, 0, 10, READ, b);
    CHECK(close_with(CUDA_FAKE_RACE, 1));
}

TEST(work_the_host_waited_for_is_ordered_before_work_it_enqueues)
{
    for (int how = 0; how < 6; how++) {
        open_plain();
        const cudaStream_t a = stream_open(), b = stream_open();
        const cudaEvent_t e = event_open();
        uint8_t *d = device_open(SIZE), seen;
        touch(d, 0, 10, WRITE, a);
        cudaEventRecord(e, a);
        if (how == 1)
            cudaEventSynchronize(e);
        while (how == 2 && cudaEventQuery(e) == cudaErrorNotReady) {
        }
        if (how == 3)
            cudaStreamSynchronize(a);
        while (how == 4 && cudaStreamQuery(a) == cudaErrorNotReady) {
        }
        if (how == 5)
            cudaDeviceSynchronize();
        CHECK_EQ(cuda_fake_read(&seen, d, 1), how ? 0 : -1);
        touch(d, 0, 10, WRITE, b);
        CHECK(close_with(CUDA_FAKE_RACE, how ? 0 : 2));
    }
}

struct shared {
    cudaEvent_t event;
    int hand;
};

static void *wait_elsewhere(void *arg)
{
    const struct shared *s = arg;
    cudaEventSynchronize(s->event);
    if (s->hand)
        cuda_fake_hand(s);
    return NULL;
}

TEST(another_threads_wait_counts_unless_threads_are_separate)
{
    for (int how = 0; how < 3; how++) { /* one host; separate; separate, handed over */
        cuda_fake_open(&(struct cuda_fake_config){.separate_threads = how > 0, .quiet = 1});
        const cudaStream_t a = stream_open(), b = stream_open();
        struct shared s = {event_open(), how == 2};
        uint8_t *d = device_open(SIZE);
        pthread_t t;
        touch(d, 0, 10, WRITE, a);
        cudaEventRecord(s.event, a);
        pthread_create(&t, NULL, wait_elsewhere, &s);
        pthread_join(t, NULL);
        if (how == 2)
            cuda_fake_take(&s);
        touch(d, 0, 10, WRITE, b);
        CHECK(close_with(CUDA_FAKE_RACE, how == 1));
    }
}

TEST(the_legacy_default_stream_waits_for_blocking_streams_and_they_for_it)
{
    const cudaStream_t names[2] = {NULL, cudaStreamLegacy};
    for (int i = 0; i < 8; i++) {
        open_plain();
        cudaStream_t s = NULL;
        const int blocking = i & 1;
        cudaStreamCreateWithFlags(&s, blocking ? cudaStreamDefault : cudaStreamNonBlocking);
        uint8_t *d = device_open(SIZE);
        touch(d, 0, 10, WRITE, i & 2 ? s : names[i >> 2]);
        touch(d, 0, 10, WRITE, i & 2 ? names[i >> 2] : s);
        cudaDeviceSynchronize();
        CHECK(close_with(CUDA_FAKE_RACE, !blocking));
    }
}

static void *use_thread_stream(void *d)
{
    touch(d, 0, 10, WRITE, cudaStreamPerThread);
    touch(d, 0, 10, WRITE, cudaStreamPerThread);
    return NULL;
}

TEST(each_thread_has_a_default_stream_of_its_own)
{
    open_plain();
    uint8_t *d = device_open(SIZE);
    pthread_t t;
    pthread_create(&t, NULL, use_thread_stream, d);
    touch(d, 20, 30, WRITE, cudaStreamPerThread);
    touch(d, 20, 30, WRITE, cudaStreamPerThread);
    pthread_join(t, NULL);
    CHECK_EQ(stats().n_hazards, 0);
    touch(d, 0, 10, READ, cudaStreamPerThread);
    CHECK(close_with(CUDA_FAKE_RACE, 1));
}

/* A ring of two slots as a loader has it: host -> copy stream -> consumer's stream -> host. */
struct ring {
    cudaStream_t copy, consumer;
    uint8_t *host[2], *device[2];
    cudaEvent_t copied[2], released[2];
    int without; /* number of the wait to leave out; 0: none */
    uint64_t n_wrong;
};

struct consume {
    struct ring *ring;
    const uint8_t *data;
    uint8_t value;
};

static void consume(void *user)
{
    const struct consume *c = user;
    c->ring->n_wrong += c->data[0] != c->value || c->data[99] != c->value;
}

__attribute__((no_sanitize("thread"))) static void consume_unseen(void *user)
{
    const struct consume *c = user;
    c->ring->n_wrong += c->data[0] != c->value;
}

enum { NO_HOST_WAIT = 1, NO_CONSUMER_WAIT, NO_PRODUCER_WAIT, NO_LAST_WAIT, N_WITHOUT };

static void ring_step(struct ring *r, uint32_t i)
{
    const uint32_t k = i % 2;
    const int early = r->without == NO_HOST_WAIT && i == 2;
    if (!early)
        cudaEventSynchronize(r->copied[k]);
    if (early)
        meddle(r->host[k], 99);
    else
        memset(r->host[k], (int)i + 1, 100);
    if (early)
        cuda_fake_let(r->copy);
    if (r->without != NO_PRODUCER_WAIT)
        cudaStreamWaitEvent(r->copy, r->released[k], 0);
    if (r->without == NO_HOST_WAIT && i == 0)
        cuda_fake_hold(r->copy);
    copy_in(r->device[k], r->host[k], 100, r->copy);
    cudaEventRecord(r->copied[k], r->copy);
    if (r->without != NO_CONSUMER_WAIT)
        cudaStreamWaitEvent(r->consumer, r->copied[k], 0);
    const struct consume c = {r, r->device[k], (uint8_t)(i + 1)};
    const struct cuda_fake_access a = {r->device[k], 100, 0};
    cuda_fake_enqueue(r->consumer, r->without ? consume_unseen : consume, &c, sizeof c, &a, 1);
    cudaEventRecord(r->released[k], r->consumer);
}

static void ring_open(struct ring *r)
{
    *r = (struct ring){.copy = stream_open(), .consumer = stream_open()};
    for (int k = 0; k < 2; k++) {
        r->host[k] = pinned_open(100);
        r->device[k] = device_open(100);
        r->copied[k] = event_open();
        r->released[k] = event_open();
    }
}

static void ring_close(struct ring *r)
{
    if (r->without != NO_LAST_WAIT) {
        cudaEventSynchronize(r->released[0]);
        cudaEventSynchronize(r->released[1]);
    }
    for (int k = 0; k < 2; k++) {
        cudaFree(r->device[k]);
        cudaFreeHost(r->host[k]);
        cudaEventDestroy(r->copied[k]);
        cudaEventDestroy(r->released[k]);
    }
    cudaStreamDestroy(r->copy);
    cudaStreamDestroy(r->consumer);
}

static void ring_config(struct cuda_fake_config *c)
{
    *c = (struct cuda_fake_config){
        .seed = draw(1u << 30), .max_delay_us = 1 + draw(20), .delay_percent = 1 + draw(30)};
}

TEST(five_thousand_schedules_of_a_correct_ring_have_no_hazard)
{
    for (int i = 0; i < 250; i++) {
        struct cuda_fake_config c;
        struct ring r;
        ring_config(&c);
        cuda_fake_open(&c);
        ring_open(&r);
        for (uint32_t j = 0; j < 20; j++) { /* schedules */
            const uint32_t n = 2 + draw(4);
            for (uint32_t k = 0; k < n; k++)
                ring_step(&r, k);
            if (draw(2))
                cudaStreamSynchronize(r.consumer);
        }
        ring_close(&r);
        CHECK_EQ(cuda_fake_close(), 0);
        CHECK_EQ(r.n_wrong, 0);
    }
}

TEST(a_ring_that_leaves_out_any_one_wait_is_reported_every_time)
{
    const enum cuda_fake_hazard kinds[N_WITHOUT] = {0, CUDA_FAKE_SOURCE, CUDA_FAKE_RACE,
                                                    CUDA_FAKE_RACE, CUDA_FAKE_FREE};
    for (int without = 1; without < N_WITHOUT; without++) {
        for (int i = 0; i < 50; i++) {
            struct cuda_fake_config c;
            struct ring r;
            ring_config(&c);
            cuda_fake_open(&c);
            ring_open(&r);
            r.without = without;
            for (uint32_t k = 0; k < 4; k++)
                ring_step(&r, k);
            ring_close(&r);
            CHECK(hazards(kinds[without]) > 0);
            cuda_fake_reset();
            CHECK_EQ(cuda_fake_close(), 0);
        }
    }
}

TEST(more_streams_come_and_go_than_clocks_have_places)
{
    cuda_fake_open(NULL);
    for (int i = 0; i < 300; i++) {
        const cudaStream_t a = stream_open(), b = stream_open();
        uint8_t *d = device_open(10);
        touch(d, 0, 10, WRITE, a);
        touch(d, 0, 10, WRITE, b);
        CHECK_EQ(hazards(CUDA_FAKE_RACE), i + 1);
        cudaDeviceSynchronize();
        CHECK_EQ(cudaFree(d), cudaSuccess);
        cudaStreamDestroy(a);
        cudaStreamDestroy(b);
    }
    CHECK(close_with(CUDA_FAKE_RACE, 300));
}

TEST(a_stream_in_anothers_place_of_the_clocks_is_not_taken_for_it)
{
    cuda_fake_open(&(struct cuda_fake_config){.quiet = 1});
    const cudaStream_t a = stream_open(), b = stream_open();
    const cudaEvent_t e = event_open();
    uint8_t *d = device_open(SIZE);
    for (int i = 0; i < 5; i++)
        touch(d, 0, 10, WRITE, a);
    cudaEventRecord(e, a);
    cudaStreamWaitEvent(b, e, 0);
    cudaStreamDestroy(a);
    for (uint32_t i = 0; i < 200; i++) { /* at some time in a's place, of which b knows 5 */
        const cudaStream_t c = stream_open();
        touch(d, 20 + i, 21 + i, WRITE, c);
        touch(d, 20 + i, 21 + i, WRITE, b);
        CHECK_EQ(hazards(CUDA_FAKE_RACE), i + 1);
        cudaStreamDestroy(c);
    }
    CHECK(close_with(CUDA_FAKE_RACE, 200));
}

/* ---- what streams share ---- */

/* A wait in one stream, then a kernel in another: does the kernel run before what is waited for? */
static int kernel_overtakes(uint32_t one_queue)
{
    uint32_t n = 0, list[2] = {0};
    const struct append first = {&n, list, 1};
    cuda_fake_open(&(struct cuda_fake_config){.one_queue = one_queue, .quiet = 1});
    cudaStream_t copies = stream_open(), waits = stream_open(), kernels = stream_open();
    cudaEvent_t copied = event_open();
    uint8_t *d = device_open(SIZE), *p = pinned_open(SIZE);
    cuda_fake_hold_copies(1);
    copy_in(d, p, SIZE, copies);
    cudaEventRecord(copied, copies);
    cudaStreamWaitEvent(waits, copied, 0);
    cuda_fake_enqueue(kernels, append, &first, sizeof first, NULL, 0);
    cudaError_t code = cudaErrorNotReady;
    if (one_queue)
        for (uint32_t i = 0; i < 50 && code == cudaErrorNotReady && test_nap(i); i++)
            code = cudaStreamQuery(kernels);
    else
        WAIT_UNTIL((code = cudaStreamQuery(kernels)) != cudaErrorNotReady);
    cuda_fake_hold_copies(0);
    cudaStreamSynchronize(kernels);
    cudaStreamSynchronize(waits);
    cudaStreamSynchronize(copies);
    const int ran = n == 1;
    cudaFree(d);
    cudaFreeHost(p);
    cudaEventDestroy(copied);
    cudaStreamDestroy(copies);
    cudaStreamDestroy(waits);
    cudaStreamDestroy(kernels);
    return cuda_fake_close() == 0 && ran ? code == cudaSuccess : -1;
}

TEST(with_one_hardware_queue_a_wait_stops_every_stream)
{
    CHECK_EQ(kernel_overtakes(0), 1);
    CHECK_EQ(kernel_overtakes(1), 0);
}

TEST(an_engine_does_one_copy_at_a_time)
{
    cuda_fake_open(&(struct cuda_fake_config){.quiet = 1});
    cudaStream_t a = stream_open(), b = stream_open();
    uint8_t *d = device_open(4 * SIZE), *p = pinned_open(4 * SIZE);
    cuda_fake_hold_copies(1);
    copy_in(d, p, SIZE, a);
    copy_in(d + SIZE, p + SIZE, SIZE, a); /* comes to the engine after the first */
    copy_in(d + 2 * SIZE, p + 2 * SIZE, 2 * SIZE, b);
    WAIT_UNTIL(stats().max_ahead > 0); /* both streams have come */
    cuda_fake_hold_copies(0);
    cudaStreamSynchronize(a);
    cudaStreamSynchronize(b);
    /* The second of a comes when that of b is there or done, never before the first is done. */
    CHECK(stats().max_ahead == SIZE || stats().max_ahead == 2 * SIZE);
    cudaFree(d);
    cudaFreeHost(p);
    cudaStreamDestroy(a);
    cudaStreamDestroy(b);
    CHECK_EQ(cuda_fake_close(), 0);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(conflicting_accesses_without_a_wait_are_a_race_the_others_are_not),
        CASE(a_race_is_found_despite_ordered_accesses_in_between),
        CASE(a_record_covers_nothing_that_came_after_it),
        CASE(work_the_host_waited_for_is_ordered_before_work_it_enqueues),
        CASE(another_threads_wait_counts_unless_threads_are_separate),
        CASE(the_legacy_default_stream_waits_for_blocking_streams_and_they_for_it),
        CASE(each_thread_has_a_default_stream_of_its_own),
        CASE(five_thousand_schedules_of_a_correct_ring_have_no_hazard),
        CASE(a_ring_that_leaves_out_any_one_wait_is_reported_every_time),
        CASE(more_streams_come_and_go_than_clocks_have_places),
        CASE(a_stream_in_anothers_place_of_the_clocks_is_not_taken_for_it),
        CASE(with_one_hardware_queue_a_wait_stops_every_stream),
        CASE(an_engine_does_one_copy_at_a_time),
    };
    return RUN_CASES(cases);
}
