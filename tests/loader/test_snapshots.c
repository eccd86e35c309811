/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of time: against a recount by a clock of the test's, and of a loader. */
#include "loader/snapshots.h"
#include "support/cuda_consumer.h"

#include <unistd.h>

#define SECOND 1000000000ull

/* The test's loader: one batch in each second, and a wait as long as the second's number. */
struct fake {
    uint64_t n_batches;
    struct pstk__counted wait;
};

static void measure(const void *loader, struct pstk__snapshot *look)
{
    const struct fake *fake = loader;
    look->counts[PSTK__COUNT_BATCHES] = fake->n_batches;
    look->spreads[PSTK__SPREAD_WAIT] = fake->wait;
}

static void advance(struct fake *fake, struct pstk__snapshots *looks, uint64_t second)
{
    fake->n_batches++;
    fake->wait.n[pstk__bucket_of(second)]++;
    fake->wait.sum += second;
    if (pstk__snapshots_due(looks, second * SECOND))
        pstk__snapshots_take(looks, measure, fake, second * SECOND);
}

static struct pstk_metrics get(struct pstk__snapshots *looks, const struct fake *fake,
                               uint32_t window, uint64_t second)
{
    struct pstk_metrics m = {.size = sizeof m};
    pstk__snapshots_get(looks, measure, fake, window, second * SECOND, &m);
    return m;
}

/* The sum of first to last. */
static uint64_t sum_of(uint64_t first, uint64_t last)
{
    uint64_t sum = 0;
    for (uint64_t i = first; i <= last; i++)
        sum += i;
    return sum;
}

TEST(windows_are_those_of_a_recount)
{
    static struct fake fake;
    struct pstk__snapshots *looks = pstk__snapshots_open(0);
    uint64_t asked = 0;
    for (uint64_t second = 1; second <= 400; second++) {
        advance(&fake, looks, second);
        const struct pstk_metrics open = get(looks, &fake, PSTK_WINDOW_OPEN, second);
        CHECK(open.n_batches == second && open.duration_ns == second * SECOND);
        CHECK_EQ(open.wait.sum, sum_of(1, second));
        const struct pstk_metrics minute = get(looks, &fake, PSTK_WINDOW_MINUTE, second);
        const uint64_t length = minute.duration_ns / SECOND;
        CHECK(second < 65 ? length == second || length >= 60 : length >= 60 && length < 65);
        CHECK(minute.n_batches == length && minute.wait.n == length);
        CHECK_EQ(minute.wait.sum, sum_of(second - length + 1, second));
        CHECK(minute.wait.max >= second);
        if (second % 7 == 0) {
            const struct pstk_metrics look = get(looks, &fake, PSTK_WINDOW_LOOK, second);
            CHECK(look.n_batches == second - asked &&
                  look.duration_ns == (second - asked) * SECOND);
            CHECK_EQ(look.wait.sum, sum_of(asked + 1, second));
            asked = second;
        }
    }
    /* Nobody asks for batches for ten minutes: the window begins at the newest look. */
    const struct pstk_metrics late = get(looks, &fake, PSTK_WINDOW_MINUTE, 1000);
    CHECK(late.n_batches == 0 && late.duration_ns == 600 * SECOND);
    pstk__snapshots_close(looks);
}

static void run(uint32_t device, int with_trace)
{
    struct pstk_settings s = base();
    struct pstk_error err = error_now();
    struct pstk_metrics m = {.size = sizeof m};
    struct pstk_stats stats = {.size = sizeof stats};
    struct pstk_loader *loader;
    struct pstk_batch *batch;
    uint64_t n = 0, n_samples = 0;
    s.device.kind = device;
    s.observe.trace_events = with_trace ? 64 : 0;
    s.device.measure = device == PSTK_CUDA;
    cuda_fake_open(NULL);
    CHECK_EQ(pstk_open(&loader, &s, &err), 0);
    while (pstk_next(loader, &batch, NULL, LONG, &err) == 1) {
        n++;
        n_samples += batch->n_valid;
        pstk_release(&batch, NULL);
    }
    CHECK_EQ(pstk_get_metrics(loader, PSTK_WINDOW_LOOK, &m), 0);
    CHECK_EQ(pstk_get_stats(loader, &stats), 0);
    CHECK(m.n_batches == n && m.n_samples == n_samples &&
          m.bytes_delivered == stats.bytes_delivered);
    CHECK_EQ(m.wait.n, n);
    CHECK(m.wait.sum <= stats.stage_consumer.starved_ns);
    CHECK(m.n_ready <= n && m.wait.p50 <= m.wait.p95 && m.wait.p99 <= m.wait.max);
    CHECK(m.decode.n + stats.n_threads >= n); /* each counts its last one a little later */
    CHECK(m.read.n >= m.n_reads && m.n_reads >= n && m.read.sum > 0 && m.bytes_read > 0);
    CHECK(m.finish.n >= n && m.jobs.n >= m.decode.n);
    CHECK(m.stream.n <= n && (m.stream.n > 0) == (device == PSTK_CUDA));
    CHECK_EQ(m.stream.sum, stats.stream_starved_ns);
    CHECK(m.ready.n > 0 && m.ready.n <= n + 1 && m.leased.n == m.ready.n && m.free.n == m.ready.n);
    CHECK(device == PSTK_CUDA ? m.copy.n >= n : m.copy.n == 0);
    CHECK_EQ(pstk_get_metrics(loader, PSTK_WINDOW_LOOK, &m), 0);
    CHECK_EQ(m.n_batches, 0);
    CHECK_EQ(pstk_get_metrics(loader, PSTK_WINDOW_MINUTE, &m), 0);
    CHECK_EQ(m.n_batches, n);
    CHECK_EQ(pstk_get_metrics(loader, 3, &m), PSTK_EINVAL);
    m.size = 3;
    CHECK_EQ(pstk_get_metrics(loader, 0, &m), PSTK_EINVAL);
    CHECK_EQ(pstk_get_metrics(NULL, 0, &m), PSTK_EINVAL);
    pstk_close(&loader);
    CHECK_EQ(cuda_fake_close(), 0);
}

/* Slots are counted by their states at calls of pstk_next: with all batches made and k leased,
 * the k + 1st call finds k leased, and the others ready. */
TEST(slots_are_counted_when_a_batch_is_asked_for)
{
    struct pstk_settings s = base();
    struct pstk_error err = error_now();
    struct pstk_metrics m = {.size = sizeof m};
    struct pstk_stats stats = {.size = sizeof stats};
    struct pstk_loader *loader;
    struct pstk_batch *held[3] = {NULL};
    s.device.kind = PSTK_HOST;
    s.memory.n_slots = 5;
    CHECK_EQ(pstk_open(&loader, &s, &err), 0);
    do /* until every slot has a batch */
        CHECK_EQ(pstk_get_metrics(loader, PSTK_WINDOW_OPEN, &m), 0);
    while (m.finish.n < 5);
    usleep(100000); /* from the end of finishing to the window */
    for (uint64_t k = 0; k < 3; k++) {
        CHECK_EQ(pstk_next(loader, &held[k], NULL, LONG, &err), 1);
        CHECK_EQ(pstk_get_metrics(loader, PSTK_WINDOW_LOOK, &m), 0);
        usleep(11000); /* calls that are 10 ms apart are noted */
        CHECK(m.leased.n == 1 && m.leased.sum == k);
        CHECK(m.ready.n == 1 && m.ready.sum == 5 - k && m.free.n == 1 && m.free.sum == 0);
    }
    CHECK_EQ(pstk_get_stats(loader, &stats), 0);
    CHECK_EQ(stats.n_slots, 5);
    for (uint64_t k = 0; k < 3; k++)
        pstk_release(&held[k], NULL);
    pstk_close(&loader);
}

TEST(a_loader_is_measured)
{
    run(PSTK_HOST, 0);
    run(PSTK_CUDA, 1);
}

int main(void)
{
    const struct test_case cases[] = {CASE(windows_are_those_of_a_recount),
                                      CASE(slots_are_counted_when_a_batch_is_asked_for),
                                      CASE(a_loader_is_measured)};
    consumer_begin();
    const int failed = RUN_CASES(cases);
    consumer_end();
    return failed;
}
