/* SPDX-License-Identifier: Apache-2.0 */
/* verdict: the last line of `doctor`: whether all is well, the problems, and the next command to
 * type. */
#ifndef PSTK_CLI_VERDICT_H
#define PSTK_CLI_VERDICT_H

#include <penstock/machine.h>

struct checkup;

/* The lacks of a machine. Each has a line in doctor's output. */
enum lack {
    LACK_KERNELS = 1, /* kernels faster than plain C */
    LACK_QUOTA = 2,   /* CPU quota for all cores */
    LACK_URING = 4,
    LACK_FIXED_BUFFERS = 8, /* this and the next only with io_uring */
    LACK_SINGLE_ISSUER = 16,
    LACK_OPEN_FILES = 32,
    LACK_DIRECT = 64,
    LACK_GPU = 128, /* lanes of a GPU's link, or its copies failed; set by the caller */
};

/* Return the set of this machine's lacks, except LACK_GPU. When there is a data set, its findings
 * are more exact about files and direct I/O, so both are left out. */
unsigned verdict_lacks(const struct pstk_machine *machine, const struct checkup *checkup);

struct verdict {
    char text[400];
    const char *next; /* subcommand to run on the path (static storage); NULL: none */
};

/* Judge by every finding and lack that doctor printed: for the data set, and the local ranks. */
struct verdict verdict_of(const struct checkup *data_set, const struct checkup *ranks,
                          unsigned lacks);

#endif
