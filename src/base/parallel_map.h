/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parallel_map: threads do numbered jobs, in order, at most two a thread ahead of the job being
 * reported. The findings of a job wait in its slot. The caller's thread takes them out in the order
 * of the jobs, and only that thread calls back. A thread whose slot is full waits for its turn, so
 * memory is bounded for any number of findings. With one thread, the caller's thread does the jobs,
 * too.
 */
#ifndef PSTK_PARALLEL_MAP_H
#define PSTK_PARALLEL_MAP_H

#include <penstock/types.h>

#include <stddef.h>

/* The callbacks that take a job's findings. A non-zero result: stop, and return ECANCELED. */
struct pstk__map_sink {
    int (*bad)(void *user, const struct pstk_error *bad); /* borrows */
    /* Report that n more of the caller's units are done, perhaps 0. A job calls it often enough
     * that a caller can stop soon. */
    int (*progress)(void *user, uint64_t n);
    void *user;
};

struct pstk__parallel_map {
    const char *what; /* "verify": in messages and in the threads' names */
    uint64_t n_jobs;
    uint32_t n_threads; /* maximum; no more than the jobs; 0: 1 */
    size_t result_size; /* bytes of a job's result for `join`; 0: none */
    void *user;
    /* Create a thread's own state: owned, freed by `close`. On the caller's thread. NULL: all
     * threads have `user` as their state, and there is no close. */
    int (*open)(void *user, void **state, struct pstk_error *err);
    void (*close)(void *state); /* frees a state; NULL is fine */
    /* Do a job, on a thread of the map. 0, ECANCELED, or an error that ends the map. */
    int (*run)(void *state, uint64_t job, const struct pstk__map_sink *sink, void *result,
               struct pstk_error *err);
    /* Take the result of a job, in the order of the jobs, on the caller's thread; NULL: results are
     * ignored. */
    void (*join)(void *user, const void *result);
    /* Free a result that is not joined, because the map ended before; NULL: nothing is freed. On
     * the caller's thread. */
    void (*drop)(void *result);
    /* The caller's callbacks, called on its thread with `user`. */
    int (*bad)(void *user, const struct pstk_error *bad); /* NULL: no job calls it */
    int (*progress)(void *user, uint64_t n);
};

/* Do all jobs. Returns 0, ECANCELED when the caller stopped it, or the first error of a job, after
 * the findings of earlier jobs are reported. */
int pstk__parallel_map_run(const struct pstk__parallel_map *work, struct pstk_error *err);

#endif
