/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_process: a process that runs the caller's program and makes rows, and the memory that it
 * shares with this process. Only the holder of the process (pool.h) may call the functions below.
 *
 *   mapping   | guard | data: pages | guard | rows: pages | guard |
 *
 * Data and rows end where their pages end, so that a write past them stops the process.
 */
#ifndef PSTK_PROCESS_WORKER_PROCESS_H
#define PSTK_PROCESS_WORKER_PROCESS_H

#include <penstock/processes.h>

#include <sys/types.h>

/* The command that starts a process. Borrowed. */
struct pstk__process_program {
    char *const *arguments;   /* path first */
    char *const *environment; /* NULL: empty */
    int job;                  /* file that holds the job */
};

/* The result of a request to the process. */
enum pstk__worker_process_result {
    PSTK__WORKER_PROCESS_DONE = 0, /* it answered 0 */
    PSTK__WORKER_PROCESS_REFUSED,  /* it answered otherwise; the reason is in process->answer */
    PSTK__WORKER_PROCESS_GONE,     /* it has ended, or its socket has failed */
    PSTK__WORKER_PROCESS_LATE,     /* the time limit was exceeded */
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
    int end; /* pidfd, readable once the process has ended; -1: none; owned */
    uint32_t is_ready;
    struct pstk_answer answer; /* its text ends with 0 */
};

/* Map the memory for requests of at most these sizes. Returns 0 or a negative errno; close it in
 * any case. */
int pstk__worker_process_open(struct pstk__worker_process *process, uint64_t data_size,
                              uint64_t row_size);
/* End the process, and free its resources. */
void pstk__worker_process_close(struct pstk__worker_process *process);

/* Start a process. 0 or a negative errno. The system may kill the process when the calling thread
 * ends. */
int pstk__worker_process_start(struct pstk__worker_process *process,
                               const struct pstk__process_program *program);
/* Wait until the process is ready. timeout_ns: counted from its start; 0: no limit. */
enum pstk__worker_process_result pstk__worker_process_ready(struct pstk__worker_process *process,
                                                            uint64_t timeout_ns, int wake);
/* Request row_size bytes of rows from data_size bytes of data, as *request states; this function
 * sets the offsets in the memory. timeout_ns 0: no limit. *sent 0: the request was not sent. */
enum pstk__worker_process_result pstk__worker_process_ask(struct pstk__worker_process *process,
                                                          struct pstk_request *request,
                                                          const void *data, void *row,
                                                          uint64_t timeout_ns, int wake, int *sent);
/* Wait for the end of the process, and kill it when the time is over. Writes to `text` how it
 * ended: "was killed by signal 11 (SIGSEGV)". */
void pstk__worker_process_end(struct pstk__worker_process *process, int timeout_ms, char text[128]);

/* Make a file in memory of `size` bytes, which are copied from `bytes` unless that is NULL. Its
 * size is sealed. Returns its descriptor, 16 or above, or a negative errno. */
int pstk__process_file(const char *name, const void *bytes, uint64_t size);

#endif
