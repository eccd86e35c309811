/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_process: one process of the program's that makes rows, and the memory that it shares with
 * this process. Who holds the process, see pool.h, may call its functions.
 *
 *   mapping   | guard | data: pages | guard | rows: pages | guard |
 *
 * Data and rows end where their pages end, so that a write past them stops the process.
 */
#ifndef PSTK_PROCESS_WORKER_PROCESS_H
#define PSTK_PROCESS_WORKER_PROCESS_H

#include <penstock/processes.h>

#include <sys/types.h>

/* The command that starts the process. Borrowed. */
struct pstk__process_program {
    char *const *arguments;   /* path first */
    char *const *environment; /* or NULL */
    int job;                  /* a file */
};

/* The result of a request to the process. */
enum pstk__worker_process_result {
    PSTK__WORKER_PROCESS_DONE = 0, /* it answered 0 */
    PSTK__WORKER_PROCESS_REFUSED,  /* it answered otherwise: process->answer */
    PSTK__WORKER_PROCESS_GONE,     /* it has ended, or cannot be talked to */
    PSTK__WORKER_PROCESS_LATE,     /* the time is over */
    PSTK__WORKER_PROCESS_CANCELED, /* `wake` is readable */
};

struct pstk__worker_process {
    uint64_t data_pages, row_pages; /* bytes, whole pages */
    uint64_t start_ns;              /* when the process was started */
    uint8_t *base;                  /* the mapping, owned; NULL: none */
    size_t mapped;                  /* bytes of the mapping */
    int memory;                     /* file, owned; -1: none */
    int socket;                     /* to the process, owned; -1: none */
    pid_t pid;                      /* 0: no process */
    int end;                        /* file, owned: readable once the process has ended; -1: none */
    uint32_t is_ready;
    struct pstk_answer answer; /* ends with 0 */
};

/* Map the memory, for that much at most. 0 or a negative errno; close it in any case. */
int pstk__worker_process_open(struct pstk__worker_process *process, uint64_t data_size,
                              uint64_t row_size);
/* End the process, and free. */
void pstk__worker_process_close(struct pstk__worker_process *process);

/* Start a process. 0 or a negative errno. The system may kill the process when the calling thread
 * ends. */
int pstk__worker_process_start(struct pstk__worker_process *process,
                               const struct pstk__process_program *program);
/* Wait until the process is ready. timeout_ns: from its start; 0, any time. */
enum pstk__worker_process_result pstk__worker_process_ready(struct pstk__worker_process *process,
                                                            uint64_t timeout_ns, int wake);
/* Have request->row_size bytes of rows made of request->data_size bytes of data. Their places in
 * the memory are set here. timeout_ns: 0, any time. *sent: 0 if the request did not leave. */
enum pstk__worker_process_result pstk__worker_process_ask(struct pstk__worker_process *process,
                                                          struct pstk_request *request,
                                                          const void *data, void *row,
                                                          uint64_t timeout_ns, int wake, int *sent);
/* Wait for the end of the process, and kill it when the time is over. Writes how it ended to text,
 * "was killed by signal 11 (SIGSEGV)". */
void pstk__worker_process_end(struct pstk__worker_process *process, int timeout_ms, char text[128]);

/* Make a file in memory of `size` bytes, with those at `bytes` unless that is NULL, whose size is
 * sealed; number 16 or above. A negative errno: failed. */
int pstk__process_file(const char *name, const void *bytes, uint64_t size);

#endif
