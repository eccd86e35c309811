/* SPDX-License-Identifier: Apache-2.0 */
/* bad: the files that pack cannot take as images, and the reasons. */
#ifndef PSTK_CLI_BAD_H
#define PSTK_CLI_BAD_H

#include "command/formats.h"
#include "command/tree.h"
#include "ui/json.h"

struct bad_file {
    uint64_t number;    /* number of the file in the tree */
    char *reason;       /* owned */
    const char *format; /* image format that pack does not take; NULL: not an image */
};

/* Zeroed at the start. */
struct bad {
    struct bad_file *files; /* owned; the capacity is the next power of two */
    uint64_t n;
    struct formats formats; /* counts of the files that have a format */
};

/* Add a file. `reason` is copied. `format` is static storage or NULL. */
void bad_add(struct bad *bad, uint64_t number, const char *reason, const char *format);
/* Print all bad files. n_files is the number of files that were checked. */
void bad_print(const struct bad *bad, const struct tree *tree, uint64_t n_files);
/* Put `skipped` (a list) and `skipped_formats` (counts) into an object. */
void bad_put(const struct bad *bad, const struct tree *tree, struct json_t *object);
void bad_close(struct bad *bad);

#endif
