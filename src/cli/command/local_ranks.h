/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_ranks: the resources of several ranks on this machine together: `doctor --ranks N`. The
 * numbers are the library's: one loader after the other is opened as rank I of N, with bench's
 * defaults, and reports its resources.
 */
#ifndef PSTK_CLI_LOCAL_RANKS_H
#define PSTK_CLI_LOCAL_RANKS_H

#include "command/checkup.h"

#define LOCAL_RANKS_MAX 256

struct local_ranks {
    uint32_t n;        /* value of --ranks; 0: not given */
    uint32_t n_opened; /* ranks whose loader was opened; 0: no data set, and the members below are 0
                        */
    struct checkup found;                         /* findings to print */
    uint32_t min_workers, max_workers, n_workers; /* minimum, maximum and sum over the ranks */
    /* Bytes, summed over all ranks. */
    uint64_t slots, io, index, scratch;
    uint64_t registered; /* part of io that is registered with io_uring, so locked */
    uint64_t memlock;    /* limit of registered; UINT64_MAX: any */
    uint64_t page_cache; /* bytes that the machine's memory has left for the page cache */
    uint32_t n_files;    /* files that one rank has open after its first batch */
    uint64_t data_set;   /* bytes of its files */
};

/* Examine n ranks of a data set, or of none. `checkup` has checked the path already. */
void local_ranks(struct local_ranks *ranks, const char *path, const struct checkup *checkup,
                 const struct pstk_machine *machine);
/* Put `ranks`, null if it was not asked for. */
void local_ranks_put(const struct local_ranks *ranks, struct json_t *object);

#endif
