/* SPDX-License-Identifier: Apache-2.0 */
/* process: identifies a process so exactly that another one can check later whether it still runs.
 */
#ifndef PSTK_PROCESS_H
#define PSTK_PROCESS_H

#include <stdint.h>

#define PSTK__BOOT_SIZE 40 /* a UUID and its 0 */
#define PSTK__HOST_SIZE 64

/* The identity of a process. The system reuses a number after its process has ended, but not
 * together with the same start time. */
struct pstk__process {
    uint32_t pid;               /* number in its PID namespace */
    uint32_t reserved;          /* 0 */
    uint64_t start_ticks;       /* start time, in clock ticks since boot; 0: unknown */
    uint64_t pid_namespace;     /* inode; 0: unknown */
    char boot[PSTK__BOOT_SIZE]; /* id of the machine's boot; empty: unknown */
    char host[PSTK__HOST_SIZE]; /* name of the machine, or of the container; cut if longer */
};

enum {
    PSTK__PROCESS_RUNS = 0,
    PSTK__PROCESS_ENDED = 1,
    PSTK__PROCESS_ELSEWHERE = 2, /* another machine or PID namespace, or /proc gives no answer */
};

/* Fill in the identity of the calling process. Members that /proc does not give stay unknown. */
void pstk__process_self(struct pstk__process *self);
/* Return one of PSTK__PROCESS_*. A zombie counts as ended. */
int pstk__process_state(const struct pstk__process *process);

#endif
