/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_trace: what one event of a trace costs the thread that adds it, in nanoseconds: the stores
 * into the ring, alone and with the two times that it is made of. And a value of a histogram.
 *
 *   bench_trace [--runs R]
 */
#include "bench.h"
#include "observe/histogram.h"
#include "observe/timeline.h"

#define N_EVENTS 2000000u

static struct pstk__histogram histogram;

static double add_events(struct pstk__ring *ring, int with_clock)
{
    const double start = bench_now();
    for (uint32_t i = 0; i < N_EVENTS; i++) {
        const uint64_t begin = with_clock ? pstk__ring_now(ring) : i;
        const struct pstk__event event = {.begin_ns = begin,
                                          .end_ns = with_clock ? pstk__clock_ns() : i + 1,
                                          .seq = i,
                                          .index = i,
                                          .kind = PSTK__EVENT_DECODE,
                                          .n_rows = 16};
        pstk__ring_add(ring, &event);
    }
    return (bench_now() - start) * 1e9 / N_EVENTS;
}

static double add_values(void)
{
    const double start = bench_now();
    for (uint32_t i = 0; i < N_EVENTS; i++)
        pstk__histogram_add(&histogram, (uint64_t)i * 2654435761u >> 8);
    return (bench_now() - start) * 1e9 / N_EVENTS;
}

int main(int argc, char **argv)
{
    const long n_runs = argc > 2 && strcmp(argv[1], "--runs") == 0 ? atol(argv[2]) : 9;
    struct bench_runs stores = {0}, events = {0}, values = {0};
    struct pstk__timeline *timeline;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    if (pstk__timeline_open(&timeline, 1, 1, 0, NULL, &err) < 0)
        bench_die("timeline", &err);
    struct pstk__ring *ring = pstk__timeline_worker(timeline, 1, 0);
    for (long i = 0; i < n_runs; i++) {
        bench_add(&stores, add_events(ring, 0));
        bench_add(&events, add_events(ring, 1));
        bench_add(&values, add_values());
    }
    bench_line("stores of an event", &stores, "ns", NULL, 0);
    bench_line("an event with its two times", &events, "ns", NULL, 50);
    bench_line("a value of a histogram", &values, "ns", NULL, 0);
    pstk__timeline_close(timeline);
    return 0;
}
