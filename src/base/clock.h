/* SPDX-License-Identifier: Apache-2.0 */
/* clock: monotonic time and CPU time in nanoseconds. */
#ifndef PSTK_CLOCK_H
#define PSTK_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t pstk__clock_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Return the CPU time of all threads of the process. */
static inline uint64_t pstk__clock_cpu_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

#endif
