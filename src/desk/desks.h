/* SPDX-License-Identifier: Apache-2.0 */
/*
 * desks: the processes that make the rows of one output. Workers ask; each takes a free desk, or
 * waits for one. A thread of its own, the *keeper*, starts processes, because the system may kill a
 * process when the thread that started it ends.
 *
 *   desk:  WANTED --keeper--> STARTED --a worker found its end--> WANTED
 */
#ifndef PSTK_DESKS_H
#define PSTK_DESKS_H

#include "desk/desk.h"

struct pstk__desks;

struct pstk__desks_config {
    const struct pstk_processes *processes; /* copies */
    uint32_t n_processes;                   /* at least 1 */
    uint64_t data_size;                     /* the most of a sample */
    uint64_t row_size;
    const char *output; /* name, in messages; borrowed */
};

/* Refuse wrong members of the processes of outputs[i]: EINVAL or ENOTSUP. */
int pstk__desks_check(const struct pstk_processes *processes, uint32_t i, struct pstk_error *err);
/* Allocate, and have all processes started, without waiting for them. Returns owned. */
int pstk__desks_open(struct pstk__desks **out, const struct pstk__desks_config *config,
                     struct pstk_error *err);
/* End all waits: what is asked from now on is ECANCELED. Thread: that which opens or closes. */
void pstk__desks_stop(struct pstk__desks *desks);
/* Kill the processes, free. Nobody asks any more. NULL is fine. */
void pstk__desks_close(struct pstk__desks *desks);
/* Have a row made of request->data_size bytes. ECANCELED: the sample is bad, or, with the stage
 * OPEN, no process can be started. Thread: any worker. */
int pstk__desks_ask(struct pstk__desks *desks, struct pstk_request *request, const void *data,
                    void *row, struct pstk_error *err);
/* Bytes of memory that processes share with this one, at most. */
uint64_t pstk__desks_memory(const struct pstk__desks *desks);

#endif
