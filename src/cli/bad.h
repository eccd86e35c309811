/* SPDX-License-Identifier: Apache-2.0 */
/* bad: the files that a pack cannot take as images, and why. */
#ifndef PSTK_CLI_BAD_H
#define PSTK_CLI_BAD_H

#include "formats.h"
#include "json.h"
#include "tree.h"

struct bad_file {
    uint64_t number;    /* in tree.files */
    char *reason;       /* owned */
    const char *format; /* an image of this format, which pack does not take; NULL: no image */
};

/* Zeroed at the start. */
struct bad {
    struct bad_file *files; /* owned; room is the next power of two */
    uint64_t n;
    struct formats formats; /* of those that have one */
};

/* Note a file. `reason`: copies. `format`: static storage, or NULL. */
void bad_add(struct bad *bad, uint64_t number, const char *reason, const char *format);
/* Print all of them, of n_files that were looked at. */
void bad_print(const struct bad *bad, const struct tree *tree, uint64_t n_files);
/* Put them into an object, as `skipped` (a list) and `skipped_formats` (counts). */
void bad_put(const struct bad *bad, const struct tree *tree, struct json_t *object);
/* Free. */
void bad_close(struct bad *bad);

#endif
