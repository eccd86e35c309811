/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cpu_times.h"

#include "base/clock.h"
#include "base/file.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define REST 50             /* an answer is repeated for this many times its cost */
#define MAX_REST 100000000u /* ns; in case the reader was preempted */

struct pstk__cpu_thread {
    pid_t id; /* 0: the entry is free */
    clockid_t clock;
    struct pstk__cpu_time used; /* newest answer of the system; it never shrinks */
};

struct pstk__cpu_times {
    pthread_mutex_t lock;
    struct pstk__cpu_time ended; /* sum over the threads that left */
    struct pstk__cpu_time begin; /* used before pstk__cpu_times_begin, not counted */
    struct pstk__cpu_time last;  /* newest answer of pstk__cpu_times_read */
    uint64_t last_ns, cost_ns;   /* time of that answer, and how long it took; 0: none yet */
    uint32_t capacity;
    uint32_t n_entries; /* entries of threads[] ever used, from the first on */
    struct pstk__cpu_thread threads[];
};

struct pstk__cpu_times *pstk__cpu_times_open(uint32_t capacity)
{
    struct pstk__cpu_times *times =
        calloc(1, sizeof *times + capacity * sizeof(struct pstk__cpu_thread));
    if (!times || pthread_mutex_init(&times->lock, NULL) != 0) {
        free(times);
        return NULL;
    }
    times->capacity = capacity;
    return times;
}

void pstk__cpu_times_close(struct pstk__cpu_times *times)
{
    if (!times)
        return;
    pthread_mutex_destroy(&times->lock);
    free(times);
}

/* Return the time that a thread of this process waited for a core. schedstat holds its time on a
 * core, its time of waiting for one, and how often it ran. */
static uint64_t core_wait_of(pid_t id)
{
    char path[64], text[96], *end;
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", (int)id);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    const int64_t n = pstk__file_pread(fd, text, sizeof text - 1, 0);
    close(fd);
    if (n <= 0)
        return 0;
    text[n] = 0;
    strtoull(text, &end, 10);
    return strtoull(end, NULL, 10);
}

/* Add the thread's times. If the system does not answer, for example without a free descriptor, the
 * last answer stays. */
static void add_thread(struct pstk__cpu_time *to, struct pstk__cpu_thread *thread)
{
    struct timespec time;
    if (clock_gettime(thread->clock, &time) == 0)
        thread->used.cpu_ns = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
    const uint64_t core_wait_ns = core_wait_of(thread->id);
    if (core_wait_ns > thread->used.core_wait_ns)
        thread->used.core_wait_ns = core_wait_ns;
    to->cpu_ns += thread->used.cpu_ns;
    to->core_wait_ns += thread->used.core_wait_ns;
}

/* Find the entry of a thread, or, for the number 0, a free one; NULL: there is none. The caller
 * holds the lock. */
static struct pstk__cpu_thread *find(struct pstk__cpu_times *times, pid_t id)
{
    for (uint32_t i = 0; i < times->n_entries; i++)
        if (times->threads[i].id == id)
            return &times->threads[i];
    return id == 0 && times->n_entries < times->capacity ? &times->threads[times->n_entries++]
                                                         : NULL;
}

void pstk__cpu_times_join(struct pstk__cpu_times *times)
{
    if (!times)
        return;
    struct pstk__cpu_thread self = {.id = gettid()};
    if (pthread_getcpuclockid(pthread_self(), &self.clock) != 0)
        return;
    pthread_mutex_lock(&times->lock);
    struct pstk__cpu_thread *place = find(times, 0);
    if (place)
        *place = self;
    pthread_mutex_unlock(&times->lock);
}

void pstk__cpu_times_leave(struct pstk__cpu_times *times)
{
    if (!times)
        return;
    pthread_mutex_lock(&times->lock);
    struct pstk__cpu_thread *place = find(times, gettid());
    if (place) {
        add_thread(&times->ended, place);
        place->id = 0;
    }
    pthread_mutex_unlock(&times->lock);
}

/* Sum the times of all threads that joined. The caller holds the lock. */
static struct pstk__cpu_time sum_of(struct pstk__cpu_times *times)
{
    struct pstk__cpu_time sum = times->ended;
    for (uint32_t i = 0; i < times->n_entries; i++)
        if (times->threads[i].id)
            add_thread(&sum, &times->threads[i]);
    return sum;
}

void pstk__cpu_times_begin(struct pstk__cpu_times *times)
{
    if (!times)
        return;
    pthread_mutex_lock(&times->lock);
    times->begin = sum_of(times);
    times->last_ns = 0;
    pthread_mutex_unlock(&times->lock);
}

struct pstk__cpu_time pstk__cpu_times_read(struct pstk__cpu_times *times)
{
    if (!times)
        return (struct pstk__cpu_time){.cpu_ns = 0};
    pthread_mutex_lock(&times->lock);
    const uint64_t now = pstk__clock_ns();
    const uint64_t rest = REST * times->cost_ns < MAX_REST ? REST * times->cost_ns : MAX_REST;
    if (!times->last_ns || now - times->last_ns >= rest) {
        times->last = sum_of(times);
        times->last.cpu_ns -= times->begin.cpu_ns;
        times->last.core_wait_ns -= times->begin.core_wait_ns;
        times->last_ns = now;
        times->cost_ns = pstk__clock_ns() - now;
    }
    const struct pstk__cpu_time answer = times->last;
    pthread_mutex_unlock(&times->lock);
    return answer;
}
