/* SPDX-License-Identifier: Apache-2.0 */
/*
 * values: the number and the path of a sample, which the index stores next to its row. The number
 * is a folder's label, or the line of a table's row. Pure.
 *
 * The bytes: a CRC32C of the bytes after it; the size of the path; the number; the path and a 0;
 * the path as messages show it, if it differs, and a 0.
 */
#ifndef PSTK_FOLDER_VALUES_H
#define PSTK_FOLDER_VALUES_H

#include <stdint.h>

#define PSTK__VALUES_PATH 16       /* begin of the path */
#define PSTK__VALUES_MAX_PATH 4096 /* max bytes of a path, its 0 included */
#define PSTK__VALUES_MAX_SHOWN 1024
#define PSTK__VALUES_MAX (PSTK__VALUES_PATH + PSTK__VALUES_MAX_PATH + PSTK__VALUES_MAX_SHOWN)

/* The values of a sample. Pointers borrow the bytes. */
struct pstk__folder_values {
    const uint8_t *number; /* 8 bytes, little-endian: the label in a folder, the row's line in a
                              table */
    const char *path;      /* path below the folder, with its 0 */
    uint32_t path_size;    /* bytes without the 0, at least 1 */
    const char *shown;     /* path for messages */
};

/* Write the values, and return their bytes. path: shorter than PSTK__VALUES_MAX_PATH. */
uint32_t pstk__folder_values_write(uint8_t to[PSTK__VALUES_MAX], int64_t number, const char *path);
/* Read the values. Returns NULL, or the reason of a failure, static storage. */
const char *pstk__folder_values_read(struct pstk__folder_values *values, const uint8_t *bytes,
                                     uint64_t size);

#endif
