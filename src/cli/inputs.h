/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inputs: which files a part was made of, and in which state: a hash of their names, sizes and
 * times at the end of the part's note (FORMAT.md). A task that runs twice sees by it that its part
 * is done.
 */
#ifndef PSTK_CLI_INPUTS_H
#define PSTK_CLI_INPUTS_H

#include <penstock/format.h>

#include "tree.h"

/* What a part is made of. Borrows. */
struct inputs {
    const char *src;
    const struct tree *tree; /* its files first to first + n - 1 */
    uint64_t first, n;
    const char *identity;    /* of a data set that is packed record by record; NULL: of files */
    const char *annotations; /* a file that is read, too, or NULL */
};

/* Return the note of a part, owned: `note`, and a hash of the inputs. NULL: a file cannot be looked
 * at, or nobody knows which there are; the part's note is then `note`. */
char *inputs_note(const struct inputs *inputs, const char *note);
/* NULL: the data set at `out` is the part that s describes, from inputs in the same state, by the
 * same options. Else why it is another; static storage. */
const char *inputs_differ(const char *out, const struct pstk_writer_settings *s);

#endif
