/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inputs: the files that a part was made from, their state, and the options: two hashes at the end
 * of the part's note (FORMAT.md). By them a task that runs twice detects that its part is done.
 */
#ifndef PSTK_CLI_INPUTS_H
#define PSTK_CLI_INPUTS_H

#include <penstock/format.h>

#include "command/tree.h"
#include "option/fields.h"

/* Options that let a pack go on after a bad file. A pack that succeeds without any gives the same
 * result with them. A pack with SKIP_BAD alone may leave out files that a pack with both takes. */
enum inputs_tolerated { INPUTS_SKIP_BAD = 1, INPUTS_DAMAGED = 2 };

/* The inputs of a part. Borrows. */
struct inputs {
    const char *src;
    const struct tree *tree; /* its files first to first + n - 1 */
    uint64_t first, n;
    const char *identity; /* identity of a data set that is packed record by record; NULL: files are
                             packed */
    const char *annotations; /* an additional file of annotations, or NULL */
    const struct fields *reading;
    uint32_t tolerated; /* bits of enum inputs_tolerated */
};

/* Return the note of the part that s describes, owned: s->note, and the hashes. NULL: a file cannot
 * be examined, or the files are not known; the part's note is then s->note. */
char *inputs_note(const struct inputs *inputs, const struct pstk_writer_settings *s);
/* Check that the data set at `out` is the part that s describes, whole, from inputs in the same
 * state, by options with the same result. Returns 0, or an exit status after a message that names
 * the difference. */
int inputs_check(const char *out, const struct pstk_writer_settings *s);

#endif
