/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool: the processes that make the rows of one output or of several. A worker with a request takes
 * a free process, or waits for one; requests for whole batches, which are older, go first. A thread
 * of the pool, the *supervisor*, starts processes, because the system may kill a process when the
 * thread that started it ends.
 *
 *   process:  WANTED --supervisor--> STARTED --a worker found its end--> WANTED
 */
#ifndef PSTK_PROCESS_POOL_H
#define PSTK_PROCESS_POOL_H

#include "process/worker_process.h"

struct pstk__process_pool;

struct pstk__process_pool_config {
    const struct pstk_processes *processes; /* copied */
    uint32_t n_processes;                   /* at least 1 */
    uint64_t data_size;                     /* maximum bytes of a request */
    uint64_t row_size;                      /* maximum bytes of a request's rows */
    const char *whose; /* "output 'x'", for messages; copied, up to 200 bytes */
};

/* A worker thread's request for rows. */
struct pstk__process_request {
    struct pstk_request head; /* head that is sent */
    const void *data;         /* head.data_size bytes, borrowed */
    void *rows;               /* out: head.row_size bytes, borrowed */
    uint64_t timeout_ns;      /* 0: no limit */
    uint32_t is_batch;        /* 1: rows of a whole batch */
};

/* Check the processes of outputs[i]. EINVAL names the wrong member. */
int pstk__process_pool_check(const struct pstk_processes *processes, uint32_t i,
                             struct pstk_error *err);
/* Allocate the pool, and let the supervisor start all processes, without waiting for them. Returns
 * owned. */
int pstk__process_pool_open(struct pstk__process_pool **out,
                            const struct pstk__process_pool_config *config, struct pstk_error *err);
/* End all waits: from now on requests return ECANCELED. Call it on the thread that opens or closes.
 */
void pstk__process_pool_stop(struct pstk__process_pool *pool);
/* Kill the processes, and free the pool. No thread may make requests any more. NULL is fine. */
void pstk__process_pool_close(struct pstk__process_pool *pool);
/* Request rows from a process. ECANCELED: the sample or batch is bad, or, with the stage OPEN, no
 * process can be started or the pool was stopped. EFBIG: the data exceed data_size. Any worker may
 * call it. */
int pstk__process_pool_ask(struct pstk__process_pool *pool, struct pstk__process_request *request,
                           struct pstk_error *err);
/* Return the bytes of memory that the processes share with this one. */
uint64_t pstk__process_pool_memory(const struct pstk__process_pool *pool);

#endif
