/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_ranks: what several ranks on this machine take together: `doctor --ranks N`. The numbers
 * are the library's: one loader after the other is opened as rank I of N, with bench's defaults,
 * and reports what it has.
 */
#ifndef PSTK_CLI_LOCAL_RANKS_H
#define PSTK_CLI_LOCAL_RANKS_H

#include "command/checkup.h"

#define LOCAL_RANKS_MAX 256

struct local_ranks {
    uint32_t n;           /* of --ranks; 0: not asked for */
    uint32_t n_opened;    /* ranks whose loader was opened; 0: no data set, and below is 0 */
    struct checkup found; /* what is printed */
    uint32_t min_workers, max_workers, n_workers; /* of a rank; of all */
    /* Bytes of all ranks. */
    uint64_t slots, io, index, scratch;
    uint64_t registered; /* of io: registered with io_uring, so locked */
    uint64_t memlock;    /* that it may be; UINT64_MAX: any */
    uint64_t page_cache; /* left of the machine's memory for it */
    uint32_t n_files;    /* that one rank has open after its first batch */
    uint64_t data_set;   /* bytes of its files */
};

/* Look at n ranks of a data set, or of none. `checkup` has looked at the path already. */
void local_ranks(struct local_ranks *ranks, const char *path, const struct checkup *checkup,
                 const struct pstk_machine *machine);
/* Put `ranks`, null where it was not asked for. */
void local_ranks_put(const struct local_ranks *ranks, struct json_t *object);

#endif
