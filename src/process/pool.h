/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool: the processes that make the rows of one output or of several. Workers ask; each takes a
 * free process, or waits for one: those that ask for whole batches, which are the older ones, go
 * first. A thread of its own, the *supervisor*, starts processes, because the system may kill a
 * process when the thread that started it ends.
 *
 *   process:  WANTED --supervisor--> STARTED --a worker found its end--> WANTED
 */
#ifndef PSTK_PROCESS_POOL_H
#define PSTK_PROCESS_POOL_H

#include "process/worker_process.h"

struct pstk__process_pool;

struct pstk__process_pool_config {
    const struct pstk_processes *processes; /* copies */
    uint32_t n_processes;                   /* at least 1 */
    uint64_t data_size;                     /* the most bytes of a request */
    uint64_t row_size;                      /* the most bytes of a request's rows */
    const char *whose;                      /* "output 'x'", in messages; copied, up to 200 bytes */
};

/* Rows that a worker thread wants. */
struct pstk__process_request {
    struct pstk_request head; /* as it is sent */
    const void *data;         /* head.data_size bytes, borrowed */
    void *rows;               /* out: head.row_size bytes, borrowed */
    uint64_t timeout_ns;      /* 0: any time */
    uint32_t is_batch;        /* 1: of a whole batch */
};

/* Check the processes of outputs[i]. EINVAL or ENOTSUP names the wrong member. */
int pstk__process_pool_check(const struct pstk_processes *processes, uint32_t i,
                             struct pstk_error *err);
/* Allocate, and have all processes started, without waiting for them. Returns owned. */
int pstk__process_pool_open(struct pstk__process_pool **out,
                            const struct pstk__process_pool_config *config, struct pstk_error *err);
/* End all waits: requests return ECANCELED from now on. Thread: the one that opens or closes. */
void pstk__process_pool_stop(struct pstk__process_pool *pool);
/* Kill the processes, and free. No thread makes requests any more. NULL is fine. */
void pstk__process_pool_close(struct pstk__process_pool *pool);
/* Have rows made. ECANCELED: the sample or batch is bad, or, with the stage OPEN, no process can be
 * started. Thread: any worker. */
int pstk__process_pool_ask(struct pstk__process_pool *pool, struct pstk__process_request *request,
                           struct pstk_error *err);
/* Return the most bytes of memory that processes share with this one. */
uint64_t pstk__process_pool_memory(const struct pstk__process_pool *pool);

#endif
