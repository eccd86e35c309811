/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_times: the CPU time of a group of threads, and the time for which they waited for a core. A
 * thread joins its group when it begins and leaves it before it ends; any thread may read the times
 * meanwhile. Every call takes the group's lock, which a reader holds while the system reports the
 * times.
 */
#ifndef PSTK_CPU_TIMES_H
#define PSTK_CPU_TIMES_H

#include <stdint.h>

/* The times that threads used, in ns. */
struct pstk__cpu_time {
    uint64_t cpu_ns;
    /* time ready to run without a free core: the second number of Linux' /proc/PID/schedstat; 0
     * where the kernel does not count it */
    uint64_t core_wait_ns;
};

struct pstk__cpu_times; /* a group of threads; as argument, NULL: an empty group */

/* Make a group with room for `capacity` threads at a time. Owned; NULL: no memory. */
struct pstk__cpu_times *pstk__cpu_times_open(uint32_t capacity);
/* Free the group. All threads have left. */
void pstk__cpu_times_close(struct pstk__cpu_times *times);

/* Add the calling thread to the group; without room its times stay unknown. */
void pstk__cpu_times_join(struct pstk__cpu_times *times);
/* Remove the calling thread, which ends next. It need not have joined. */
void pstk__cpu_times_leave(struct pstk__cpu_times *times);

/* Count from now on, and ignore earlier times. */
void pstk__cpu_times_begin(struct pstk__cpu_times *times);
/* Return the times that the threads used since pstk__cpu_times_begin, or ever without it. Reading
 * takes the system some microseconds a thread. An answer is repeated for 50 times as long as it
 * took, at most 100 ms, so that a caller in a loop takes no more than a fiftieth of a core. */
struct pstk__cpu_time pstk__cpu_times_read(struct pstk__cpu_times *times);

#endif
