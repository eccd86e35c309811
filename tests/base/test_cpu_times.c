/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU time of a group of threads, and how long they waited for a core. */
#include "base/clock.h"
#include "base/cpu_times.h"
#include "support/test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

static uint64_t own_cpu_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void work(uint64_t ns)
{
    const uint64_t end = own_cpu_ns() + ns;
    while (own_cpu_ns() < end)
        ;
}

/* A thread that joins, works, and waits before it leaves. */
struct worker {
    struct pstk__cpu_times *times;
    uint64_t ns;
    int core;            /* core that it is bound to; -1: any */
    _Atomic int *at;     /* counts those that have worked */
    _Atomic int *may_go; /* 1: leave */
};

static void *run(void *argument)
{
    struct worker *worker = argument;
    if (worker->core >= 0) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET((size_t)worker->core, &one);
        (void)sched_setaffinity(0, sizeof one, &one); /* without it, the test fails */
    }
    pstk__cpu_times_join(worker->times);
    work(worker->ns);
    atomic_fetch_add(worker->at, 1);
    while (!atomic_load(worker->may_go))
        usleep(500);
    pstk__cpu_times_leave(worker->times);
    return NULL;
}

static int first_core(void)
{
    cpu_set_t all;
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return -1;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET((size_t)i, &all))
            return i;
    return -1;
}

/* Have two threads work for `ns` each, and set what is told while they live and once they ended. */
static void two_threads(struct pstk__cpu_times *times, uint64_t ns, int core,
                        struct pstk__cpu_time told[2])
{
    _Atomic int at = 0, may_go = 0;
    pthread_t threads[2];
    struct worker worker = {times, ns, core, &at, &may_go};
    for (uint32_t i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, run, &worker), 0);
    while (atomic_load(&at) < 2)
        usleep(500);
    told[0] = pstk__cpu_times_read(times);
    atomic_store(&may_go, 1);
    for (uint32_t i = 0; i < 2; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    told[1] = pstk__cpu_times_read(times);
}

TEST(threads_that_run_and_that_ended_are_counted)
{
    struct pstk__cpu_times *times = pstk__cpu_times_open(2);
    struct pstk__cpu_time told[2];
    CHECK(times);
    two_threads(times, 20 * MS, -1, told);
    CHECK(told[0].cpu_ns >= 40 * MS && told[0].cpu_ns < 400 * MS);
    CHECK(told[1].cpu_ns >= told[0].cpu_ns && told[1].cpu_ns < 400 * MS);
    CHECK(told[1].core_wait_ns >= told[0].core_wait_ns);
    /* the places are free again */
    two_threads(times, 20 * MS, -1, told);
    CHECK(told[0].cpu_ns >= 80 * MS);
    pstk__cpu_times_close(times);
}

TEST(two_threads_on_one_core_wait_for_it)
{
    if (access("/proc/self/schedstat", R_OK) != 0)
        SKIP("the kernel does not count run delays");
    struct pstk__cpu_times *times = pstk__cpu_times_open(2);
    struct pstk__cpu_time told[2];
    CHECK(times);
    two_threads(times, 60 * MS, first_core(), told);
    /* One works while the other waits: together they wait about as long as one works. */
    CHECK(told[0].core_wait_ns >= 20 * MS);
    pstk__cpu_times_close(times);
}

TEST(what_was_used_before_the_begin_does_not_count)
{
    struct pstk__cpu_times *times = pstk__cpu_times_open(1);
    CHECK(times);
    pstk__cpu_times_join(times);
    work(30 * MS);
    CHECK(pstk__cpu_times_read(times).cpu_ns >= 30 * MS);
    pstk__cpu_times_begin(times);
    CHECK(pstk__cpu_times_read(times).cpu_ns < 20 * MS);
    work(30 * MS);
    const uint64_t used = pstk__cpu_times_read(times).cpu_ns;
    CHECK(used >= 30 * MS && used < 50 * MS);
    pstk__cpu_times_leave(times);
    CHECK(pstk__cpu_times_read(times).cpu_ns >= used);
    pstk__cpu_times_close(times);
}

TEST(without_room_or_group_nothing_is_known_and_nothing_fails)
{
    struct pstk__cpu_times *times = pstk__cpu_times_open(0);
    CHECK(times);
    pstk__cpu_times_join(times);
    CHECK_EQ(pstk__cpu_times_read(times).cpu_ns, 0);
    pstk__cpu_times_leave(times);
    pstk__cpu_times_close(times);
    pstk__cpu_times_join(NULL);
    pstk__cpu_times_leave(NULL);
    pstk__cpu_times_begin(NULL);
    CHECK_EQ(pstk__cpu_times_read(NULL).core_wait_ns, 0);
    pstk__cpu_times_close(NULL);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(threads_that_run_and_that_ended_are_counted),
        CASE(two_threads_on_one_core_wait_for_it),
        CASE(what_was_used_before_the_begin_does_not_count),
        CASE(without_room_or_group_nothing_is_known_and_nothing_fails),
    };
    return RUN_CASES(cases);
}
