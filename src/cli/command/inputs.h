/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inputs: which files a part was made of, in which state, and by which options: two hashes at the
 * end of the part's note (FORMAT.md). A task that runs twice sees by them that its part is done.
 */
#ifndef PSTK_CLI_INPUTS_H
#define PSTK_CLI_INPUTS_H

#include <penstock/format.h>

#include "command/tree.h"
#include "option/fields.h"

/* Options that let a pack go on after a bad file. A pack that succeeds without any makes the same
 * with them; one with SKIP_BAD alone may leave out what it takes with both. */
enum inputs_tolerated { INPUTS_SKIP_BAD = 1, INPUTS_DAMAGED = 2 };

/* What a part is made of. Borrows. */
struct inputs {
    const char *src;
    const struct tree *tree; /* its files first to first + n - 1 */
    uint64_t first, n;
    const char *identity;    /* of a data set that is packed record by record; NULL: of files */
    const char *annotations; /* a file that is read, too, or NULL */
    const struct fields *reading;
    uint32_t tolerated; /* bits of enum inputs_tolerated */
};

/* Return the note of the part that s describes, owned: s->note, and the hashes. NULL: a file cannot
 * be looked at, or nobody knows which there are; the part's note is then s->note. */
char *inputs_note(const struct inputs *inputs, const struct pstk_writer_settings *s);
/* Check that the data set at `out` is the part that s describes, whole, from inputs in the same
 * state, by options that give the same. Returns 0, or an exit status after a message that names
 * what differs. */
int inputs_check(const char *out, const struct pstk_writer_settings *s);

#endif
