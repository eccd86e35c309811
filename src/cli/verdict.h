/* SPDX-License-Identifier: Apache-2.0 */
/* verdict: the last line of `doctor`: fine, or what to look at and what to type next. */
#ifndef PSTK_CLI_VERDICT_H
#define PSTK_CLI_VERDICT_H

#include <penstock/machine.h>

struct checkup;

/* What a machine can lack, each with a line of its own in doctor's page. */
enum lack {
    LACK_KERNELS = 1, /* faster than plain C */
    LACK_QUOTA = 2,   /* CPU time for all cores */
    LACK_URING = 4,
    LACK_FIXED_BUFFERS = 8, /* with io_uring only, as the next */
    LACK_SINGLE_ISSUER = 16,
    LACK_OPEN_FILES = 32,
    LACK_DIRECT = 64,
    LACK_LANES = 128, /* of a GPU's link; the caller's to find */
};

/* Return the set of what this machine lacks, without LACK_LANES. Of a data set `checkup` knows
 * better whether files and direct I/O matter: both stay out. */
unsigned verdict_lacks(const struct pstk_machine *machine, const struct checkup *checkup);

struct verdict {
    char text[240];
    const char *next; /* subcommand to run on the path; NULL: none. Static storage */
};

struct verdict verdict_of(const struct checkup *checkup, unsigned lacks);

#endif
