/* SPDX-License-Identifier: Apache-2.0 */
/* verdict: the last line of `doctor`: whether all is well, what to look at, and what to type
 * next. */
#ifndef PSTK_CLI_VERDICT_H
#define PSTK_CLI_VERDICT_H

#include <penstock/machine.h>

struct checkup;

/* What a machine can lack. Each has a line in doctor's output. */
enum lack {
    LACK_KERNELS = 1, /* faster than plain C */
    LACK_QUOTA = 2,   /* CPU time for all cores */
    LACK_URING = 4,
    LACK_FIXED_BUFFERS = 8, /* this and the next only with io_uring */
    LACK_SINGLE_ISSUER = 16,
    LACK_OPEN_FILES = 32,
    LACK_DIRECT = 64,
    LACK_LANES = 128, /* of a GPU's link; set by the caller */
};

/* Return the set of what this machine lacks, except LACK_LANES. When there is a data set, its
 * findings are more exact about files and direct I/O, so both are left out. */
unsigned verdict_lacks(const struct pstk_machine *machine, const struct checkup *checkup);

struct verdict {
    char text[240];
    const char *next; /* subcommand to run on the path (static storage); NULL: none */
};

struct verdict verdict_of(const struct checkup *checkup, unsigned lacks);

#endif
