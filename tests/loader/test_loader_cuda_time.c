/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times that a timed loader measures of the consumer's streams, on the fake CUDA runtime's clock.
 * The trainer's kernels and the rows that are decoded move the clock by hand, so that each time is
 * known to the nanosecond, however slowly the machine runs and whatever it does in between.
 */
#include "base/clock.h"
#include "support/cuda_consumer.h"

#include <stdatomic.h>

#define MS 1000000ull /* ns */

/* A loader of batches of one row, and a trainer. */
struct clocked {
    struct pstk_loader *loader;
    struct pstk_output output;
    void *streams[2];
    uint64_t row_ns;        /* time to decode a row; 0: rows are decoded ahead */
    _Atomic uint64_t asked; /* batches that the trainer asked for, the first is 1 */
    _Atomic uint64_t
        asked_at;        /* the last of them is asked for once the stream has so many records */
    _Atomic int at_once; /* 1: rows take no time any more */
    uint64_t used, starved, start; /* nanoseconds */
    int ok;
};

static int is_asked_for(struct clocked *c, const struct pstk_sample *sample)
{
    const uint64_t batch = sample->epoch * N_SAMPLES + sample->position + 1;
    const uint64_t asked = atomic_load(&c->asked);
    return atomic_load(&c->at_once) || asked > batch ||
           (asked == batch && cuda_fake_records(c->streams[0]) >= atomic_load(&c->asked_at));
}

/* A slow row is decoded, and takes its time, after its batch was asked for. */
static int decode_row(void *user, const struct pstk_sample *sample, void *row, uint64_t size)
{
    struct clocked *c = user;
    memset(row, 1, size);
    if (c->row_ns == 0)
        return 0;
    WAIT_UNTIL(is_asked_for(c, sample));
    if (!atomic_load(&c->at_once))
        cuda_fake_pass(c->row_ns);
    return 0;
}

static void clocked_open(struct clocked *c, uint64_t row_ns, uint32_t n_device_slots)
{
    struct pstk_settings s = base();
    cuda_fake_open(&(struct cuda_fake_config){.clock_by_hand = 1});
    cudaSetDevice(0);
    c->row_ns = row_ns;
    c->output = (struct pstk_output){.field = "cls",
                                     .kind = PSTK_OUTPUT_CALLBACK,
                                     .dtype = PSTK_U8,
                                     .callback.n_dims = 1,
                                     .callback.shape = {8},
                                     .callback.decode = decode_row,
                                     .callback.user = c};
    s.outputs = &c->output;
    s.n_outputs = 1;
    s.batch_size = 1;
    s.memory.n_slots =
        8; /* a worker for each, since rows come in any order and wait for their turn */
    s.n_threads = 16;
    s.device.n_slots = n_device_slots;
    s.device.measure = 1;
    c->ok = pstk_open(&c->loader, &s, NULL) == 0 &&
            pstk_stream_open(c->loader, &c->streams[0], NULL) == 0 &&
            pstk_stream_open(c->loader, &c->streams[1], NULL) == 0;
}

/* Counted is what came before the last batch that was asked for. */
static void clocked_close(struct clocked *c)
{
    struct pstk_stats stats = {.size = sizeof stats};
    struct pstk_batch *b = NULL;
    atomic_store(&c->at_once, 1);
    for (int i = 0; i < 2; i++) /* the second finds that the first has arrived */
        if (pstk_next(c->loader, &b, c->streams[0], LONG, NULL) == 1) {
            cudaStreamSynchronize(c->streams[0]);
            pstk_release(&b, c->streams[0]);
        }
    pstk_get_stats(c->loader, &stats);
    c->used = stats.stream_used_ns;
    c->starved = stats.stream_starved_ns;
    c->start = stats.stream_start_ns;
    struct pstk_metrics m = {.size = sizeof m};
    pstk_get_metrics(c->loader, PSTK_WINDOW_OPEN, &m);
    CHECK(m.stream.n > 0 && m.stream.sum == c->starved);
    for (int i = 0; i < 2; i++)
        pstk_stream_close(c->loader, &c->streams[i]);
    pstk_close(&c->loader);
    c->ok = cuda_fake_close() == 0 && c->ok;
}

/* The next batch is asked for by the stream's next record: let its row be decoded after that. */
static void announce(struct clocked *c)
{
    cudaStreamSynchronize(c->streams[0]);
    atomic_store(&c->asked_at, cuda_fake_records(c->streams[0]) + 1);
    atomic_fetch_add(&c->asked, 1);
}

/* As `for batch in loader` does: the last batch is held while the next one is asked for. */
static void train_naturally(struct clocked *c, int n, uint64_t step_ns)
{
    struct pstk_batch *held = NULL, *b = NULL;
    for (int i = 0; i < n; i++) {
        announce(c);
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
    clocked_open(&c, 20 * MS, 3);
    train_naturally(&c, 15, 2 * MS);
    clocked_close(&c);
    CHECK(c.ok);
    CHECK_EQ(c.starved, 15 * 20 * MS);
    CHECK_EQ(c.start, 20 * MS); /* the first batch's */
    CHECK_EQ(c.used, 15 * 2 * MS);
}

TEST(a_fast_loader_starves_no_stream)
{
    struct clocked c = {0};
    clocked_open(&c, 0, 3);
    train_naturally(&c, 15, 20 * MS);
    clocked_close(&c);
    CHECK(c.ok);
    CHECK_EQ(c.starved, 0);
    CHECK_EQ(c.used, 15 * 20 * MS);
}

TEST(work_after_an_early_release_is_use)
{
    struct clocked c = {0};
    struct pstk_batch *b;
    clocked_open(&c, 0, 3);
    for (int i = 0; i < 15; i++) {
        c.ok = pstk_next(c.loader, &b, c.streams[0], LONG, NULL) == 1 && c.ok;
        pstk_release(&b, c.streams[0]); /* after the forward pass; this is the backward pass: */
        pstk_stream_spin(c.loader, c.streams[0], 20 * MS, NULL);
    }
    clocked_close(&c);
    CHECK(c.ok);
    CHECK_EQ(c.starved, 0);
    CHECK_EQ(c.used, 15 * 20 * MS);
}

TEST(a_batch_that_is_polled_for_is_asked_for_once)
{
    struct clocked c = {0};
    struct pstk_batch *b;
    int r;
    clocked_open(&c, 20 * MS, 3);
    for (int i = 0; i < 10; i++) {
        for (int poll = 0; poll < 3; poll++) { /* its row waits for the announcement */
            c.ok = pstk_next(c.loader, &b, c.streams[0], 0, NULL) == PSTK_ETIMEDOUT && c.ok;
            cudaStreamSynchronize(c.streams[0]);
            cuda_fake_pass(5 * MS);
        }
        atomic_fetch_add(&c.asked, 1);
        WAIT_UNTIL((r = pstk_next(c.loader, &b, c.streams[0], 0, NULL)) != PSTK_ETIMEDOUT);
        c.ok = r == 1 && c.ok;
        pstk_stream_spin(c.loader, c.streams[0], 2 * MS, NULL);
        pstk_release(&b, c.streams[0]);
    }
    clocked_close(&c);
    CHECK(c.ok);
    CHECK_EQ(c.starved, 10 * (3 * 5 + 20) * MS);
    CHECK_EQ(c.start, (3 * 5 + 20) * MS);
    CHECK_EQ(c.used, 10 * 2 * MS);
}

TEST(work_between_epochs_counts_as_use)
{
    struct clocked c = {0};
    clocked_open(&c, 0, 3);
    train_naturally(&c, N_SAMPLES + 1, 0); /* the last call finds the epoch's end */
    pstk_stream_spin(c.loader, c.streams[0], 200 * MS, NULL);
    clocked_close(&c);
    CHECK(c.ok);
    CHECK_EQ(c.starved, 0);
    CHECK_EQ(c.used, 200 * MS);
}

/* Each stream has its batch while the other one works on the batch after it. */
TEST(each_streams_time_is_its_own)
{
    struct clocked c = {0};
    struct pstk_batch *b;
    clocked_open(&c, 0, 4);
    for (int i = 0; i < 16; i++) {
        c.ok = pstk_next(c.loader, &b, c.streams[i % 2], LONG, NULL) == 1 && c.ok;
        pstk_stream_spin(c.loader, c.streams[i % 2], 20 * MS, NULL);
        pstk_release(&b, c.streams[i % 2]);
        cudaStreamSynchronize(c.streams[i % 2]); /* the clock moves for one stream at a time */
    }
    clocked_close(&c);
    CHECK(c.ok);
    CHECK_EQ(c.starved, 0);
    CHECK_EQ(c.used, (8 + 7) * 2 * 20 * MS); /* the second stream's, between its 8 batches */
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
    cuda_fake_pass(200 * MS);
    cuda_fake_let(c.streams[0]);
    for (int i = 0; i < 70; i++)
        pstk_release(&held[i], c.streams[0]);
    cudaStreamSynchronize(c.streams[0]);
    cuda_fake_pass(50 * MS); /* after a lease that went unmeasured: nobody knows what it was */
    train_naturally(&c, 10, 10 * MS);
    clocked_close(&c);
    CHECK(c.ok);
    CHECK_EQ(c.starved, 0);        /* nobody waited while the stream was held */
    CHECK_EQ(c.used, 9 * 10 * MS); /* one of the calls finds the end of an epoch */
}

/* By the clock of the machine, whose times have no upper bound but the whole. */
TEST(the_work_of_a_timed_device_is_in_the_stats)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct pstk_stats stats = {.size = sizeof stats};
    void *stream;
    int n_used = 0;
    cuda_fake_open(NULL);
    s.device.measure = 1;
    const uint64_t begun = pstk__clock_ns();
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_stream_open(loader, &stream, NULL), 0);
    for (int i = 0; i < 30; i++)
        if (pstk_next(loader, &b, stream, LONG, NULL) == 1) {
            CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess); /* the batch before is counted */
            CHECK_EQ(pstk_stream_spin(loader, stream, 2 * MS, NULL), 0);
            pstk_release(&b, stream);
            n_used++;
        }
    CHECK_EQ(pstk_get_stats(loader, &stats), 0);
    CHECK(stats.stream_used_ns >= ((uint64_t)n_used - 2) * 2 * MS);
    CHECK(stats.stream_used_ns + stats.stream_starved_ns <= pstk__clock_ns() - begun);
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
        CASE(a_slow_loader_starves_the_stream_of_a_loop_that_holds_its_batch),
        CASE(a_fast_loader_starves_no_stream),
        CASE(work_after_an_early_release_is_use),
        CASE(a_batch_that_is_polled_for_is_asked_for_once),
        CASE(work_between_epochs_counts_as_use),
        CASE(each_streams_time_is_its_own),
        CASE(a_program_far_ahead_of_its_stream_is_not_measured_wrongly),
        CASE(the_work_of_a_timed_device_is_in_the_stats),
    };
    int failed = RUN_CASES(cases);
    consumer_end();
    return failed;
}
