/* SPDX-License-Identifier: Apache-2.0 */
/* process: which process, so exactly that another one can say later whether it still runs. */
#ifndef PSTK_PROCESS_H
#define PSTK_PROCESS_H

#include <stdint.h>

#define PSTK__BOOT_SIZE 40 /* a UUID and its 0 */
#define PSTK__HOST_SIZE 64

/* A number is used again after a process has ended; with the time of its start it is not. */
struct pstk__process {
    uint32_t pid;               /* in its PID namespace */
    uint32_t reserved;          /* 0 */
    uint64_t start_ticks;       /* when it started, in clock ticks since boot; 0: not known */
    uint64_t pid_namespace;     /* inode; 0: not known */
    char boot[PSTK__BOOT_SIZE]; /* id of the machine's boot; empty: not known */
    char host[PSTK__HOST_SIZE]; /* name of the machine, or of the container; cut if longer */
};

enum {
    PSTK__PROCESS_RUNS = 0,
    PSTK__PROCESS_ENDED = 1,
    PSTK__PROCESS_ELSEWHERE = 2, /* of another machine or PID namespace: cannot be known */
};

/* The process that calls. What /proc does not give stays not known. */
void pstk__process_self(struct pstk__process *self);
/* PSTK__PROCESS_*. A process that has ended and was not waited for has ended. */
int pstk__process_state(const struct pstk__process *process);

#endif
