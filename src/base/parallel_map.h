/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parallel_map: threads do numbered jobs, in order, at most two a thread ahead of the one being
 * reported. What a job finds waits in its slot. The caller's thread takes it out in the order of
 * the jobs, and only that thread calls back. A thread whose slot is full waits until its turn
 * comes: memory stays bounded however much is found. With one thread the caller's does the jobs,
 * too.
 */
#ifndef PSTK_PARALLEL_MAP_H
#define PSTK_PARALLEL_MAP_H

#include <penstock/types.h>

#include <stddef.h>

/* Where a job's findings go. A non-zero result: stop, and return ECANCELED. */
struct pstk__map_sink {
    int (*bad)(void *user, const struct pstk_error *bad); /* borrows */
    /* n more of what the caller counts are done, perhaps 0. A job calls it often enough that a
     * caller can stop soon. */
    int (*progress)(void *user, uint64_t n);
    void *user;
};

struct pstk__parallel_map {
    const char *what; /* "verify": for messages and the threads' names */
    uint64_t n_jobs;
    uint32_t n_threads; /* at most that many, and as many as there are jobs; 0: as 1 */
    size_t result_size; /* bytes of what a job leaves for `join`; 0: nothing */
    void *user;
    /* Make a thread's own state: owned, for `close`. On the caller's thread. NULL: all threads have
     * `user` as their state, and there is no close. */
    int (*open)(void *user, void **state, struct pstk_error *err);
    void (*close)(void *state); /* NULL is fine */
    /* Do a job, on a thread of the map. 0, ECANCELED, or a reason why nothing more can be done. */
    int (*run)(void *state, uint64_t job, const struct pstk__map_sink *sink, void *result,
               struct pstk_error *err);
    /* Take what a job left, in the order of the jobs, on the caller's thread; NULL: nothing. */
    void (*join)(void *user, const void *result);
    /* Free what a job left that is not joined, because the work ended before; NULL: nothing. On the
     * caller's thread. */
    void (*drop)(void *result);
    /* The caller's own, on its thread; with `user`. */
    int (*bad)(void *user, const struct pstk_error *bad); /* NULL: no job calls it */
    int (*progress)(void *user, uint64_t n);
};

/* Do all jobs. Returns 0, ECANCELED where the caller said stop, or the first error of a job, after
 * the findings of those before it. */
int pstk__parallel_map_run(const struct pstk__parallel_map *work, struct pstk_error *err);

#endif
