/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_times: the CPU time of a group of threads, and how long they waited for a core. A thread
 * joins its group when it begins and leaves it before it ends; any thread may ask meanwhile. All
 * calls take the group's lock, for as long as the system takes to say the times.
 */
#ifndef PSTK_CPU_TIMES_H
#define PSTK_CPU_TIMES_H

#include <stdint.h>

/* What threads used, in ns. */
struct pstk__cpu_time {
    uint64_t cpu_ns;
    /* ready to run, with no core free: the second number of Linux' /proc/PID/schedstat; 0 where
     * the kernel does not count it */
    uint64_t core_wait_ns;
};

struct pstk__cpu_times; /* a group of threads; as argument, NULL: a group without any */

/* Make a group with room for `capacity` threads at a time. Owned; NULL: no memory. */
struct pstk__cpu_times *pstk__cpu_times_open(uint32_t capacity);
/* All threads have left. */
void pstk__cpu_times_close(struct pstk__cpu_times *times);

/* The calling thread joins; without room its times are not known. */
void pstk__cpu_times_join(struct pstk__cpu_times *times);
/* The calling thread ends. It may have joined. */
void pstk__cpu_times_leave(struct pstk__cpu_times *times);

/* Count from now on: what was used before does not count. */
void pstk__cpu_times_begin(struct pstk__cpu_times *times);
/* What the threads used since pstk__cpu_times_begin, or ever without it. Asking the system takes
 * some microseconds a thread. An answer is repeated for 50 times as long as it took, at most
 * 100 ms, so that who asks all the time takes no more than a fiftieth of a core. */
struct pstk__cpu_time pstk__cpu_times_read(struct pstk__cpu_times *times);

#endif
