/* SPDX-License-Identifier: Apache-2.0 */
/* What a timed loader measures of the consumer's streams, on the fake CUDA runtime's clock. */
#include "base/clock.h"
#include "support/cuda_consumer.h"

#define MS 1000000ull /* ns */

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
    s.measure_device = 1;
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
    s.measure_device = 1;
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
