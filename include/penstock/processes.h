/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/processes.h - rows that worker processes of the program make, in any language. The
 * Python package runs functions in them.
 *
 * An output of kind PSTK_OUTPUT_CALLBACK has `processes` in place of `decode`. The loader starts
 * them, gives a sample to a free process, and copies the row that it made: a process never touches
 * the memory of a batch. A worker thread waits meanwhile. So the loader has one more worker for
 * each process, unless n_threads is given. Outputs that point to the same struct share its
 * processes.
 *
 * With `batched` a process gets the data of all rows of a complete batch, and makes all rows. The
 * last worker of the batch waits for it while the others work on later batches, so that up to
 * memory.n_slots processes work on whole batches at once.
 *
 * A process begins with three open files, and no input:
 *
 *   PSTK_PROCESS_SOCKET   a socket of messages (SOCK_SEQPACKET): requests and answers in turn
 *   PSTK_PROCESS_MEMORY   its memory, to be mapped: the data and the rows, a page or more each;
 * each of them ends at most 63 bytes before the end of a page PSTK_PROCESS_JOB      a file with the
 * bytes of pstk_processes.job
 *
 * A process that is ready sends an answer, with result 0; one that cannot work sends the reason.
 * Then for each request it writes the row or rows and sends an answer. When the socket ends, it
 * ends. SIGINT is blocked, so that Ctrl-C in a terminal reaches only the program.
 *
 * A result below 0, a process that ends before it answers, and one that exceeds the timeout make
 * the sample bad: ECANCELED. A whole batch fails as a batch: pstk_next returns the error, also with
 * PSTK_BAD_REPLACE, because nothing shows which of its samples is bad. The loader starts another
 * process for the next request. A process that ends before it is ready, or is not ready in time, is
 * an error of the loader, which stays until pstk_close. pstk_close kills all processes; a process
 * should ask the system to be killed when its parent ends (PR_SET_PDEATHSIG).
 */
#ifndef PENSTOCK_PROCESSES_H
#define PENSTOCK_PROCESSES_H

#include <penstock/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum pstk_process_file {
    PSTK_PROCESS_SOCKET = 3,
    PSTK_PROCESS_MEMORY = 4,
    PSTK_PROCESS_JOB = 5,
};

/* The processes of one output, or of several that point to this struct. All pointers: copies. */
struct pstk_processes {
    /* sizeof(struct pstk_processes), set by the caller */
    uint32_t size;
    /* number of processes. default: auto, the cores that this process may use */
    uint32_t n_processes;
    /* path of the program, then its arguments, then NULL */
    const char *const *arguments;
    /* variables as NAME=VALUE, then NULL; NULL: none */
    const char *const *environment;
    /* job_size bytes that every process can read; NULL: none */
    const void *job;
    uint64_t job_size;
    /* limit on the time from the start of a process until it is ready, nanoseconds. default: 0,
     * none */
    uint64_t start_timeout_ns;
};

/* A request to a worker process. */
struct pstk_request {
    /* sizeof(struct pstk_request) of the library */
    uint32_t size;
    /* index in the settings' outputs */
    uint32_t output;
    /* as in struct pstk_sample; for a whole batch, shape[0] is the number of its rows, sample_id is
     * that of the first, and position that of the batch */
    uint32_t dtype;
    uint32_t n_dims;
    uint32_t encoding;
    uint32_t reserved;
    uint64_t shape[8];
    uint64_t sample_id;
    uint64_t epoch;
    uint64_t position;
    uint64_t random[2];
    /* offset in the memory at which the pages of rows begin; the same in every request */
    uint64_t row_pages;
    /* offset in the memory of the row, or of the rows of a whole batch, one after the other */
    uint64_t row_offset;
    uint64_t row_size;
    /* offset in the memory of the data */
    uint64_t data_offset;
    uint64_t data_size;
};

#define PSTK_ANSWER_TEXT 600

/* The answer of a worker process. A message may end after the text. */
struct pstk_answer {
    /* 0; below 0: the sample is bad */
    int32_t result;
    /* reason, UTF-8; a terminating 0 is optional */
    char text[PSTK_ANSWER_TEXT];
};

#ifdef __cplusplus
}
#endif
#endif
