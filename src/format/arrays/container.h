/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container: a file that holds arrays, and its fields: .npy (one), .npz and .safetensors. Reads
 * only the heads, each with the parser of its kind, and no rows.
 */
#ifndef PSTK_CONTAINER_H
#define PSTK_CONTAINER_H

#include "format/arrays/array.h"
#include "format/format.h"

enum pstk__container_kind {
    PSTK__CONTAINER_NONE, /* not a file of arrays */
    PSTK__CONTAINER_NPY,
    PSTK__CONTAINER_NPZ,
    PSTK__CONTAINER_SAFETENSORS,
    PSTK__CONTAINER_N
};

/* An array that is a field. */
struct pstk__array_field {
    char name[PSTK_MAX_NAME];
    uint32_t file;            /* number of the file */
    struct pstk__array array; /* array, with positions in that file */
    struct pstk__cover cover; /* size 0: none */
};

struct pstk__array_fields {
    uint32_t n;
    struct pstk__array_field fields[PSTK_MAX_FIELDS];
};

/* A file to read. */
struct pstk__container {
    enum pstk__container_kind kind;
    uint32_t number;               /* number of the file */
    const char *name;              /* name of the file, without its directory */
    const char *path;              /* path of the file, for messages */
    const struct pstk__file *file; /* open */
    uint64_t size;                 /* bytes of the file */
};

/* Return the kind of a file by its name; hidden files are NONE. */
enum pstk__container_kind pstk__container_of(const char *name);
/* Return its name for users, which is the suffix without the dot. Static storage. */
const char *pstk__container_name(enum pstk__container_kind kind);
/* Add the fields of a file. EBADMSG: damaged; ENOTSUP, EFBIG: an array that cannot be read in
 * place, with advice; ENOMEM, or the code of a failed read. */
int pstk__container_read(const struct pstk__container *container, struct pstk__array_fields *fields,
                         struct pstk_error *err);

#endif
