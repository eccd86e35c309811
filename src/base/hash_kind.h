/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash_kind: the entries of hash's tables. Each library that computes hashes has one file with one
 * table, which is empty in builds without the library.
 */
#ifndef PSTK_HASH_KIND_H
#define PSTK_HASH_KIND_H

#include <stddef.h>
#include <stdint.h>

struct pstk__hash_kind {
    const char *name;  /* NULL: the end of a table */
    size_t state_size; /* bytes; a state is aligned to 64 */
    size_t size;       /* bytes of the hash, at most 64 */
    void (*begin)(void *state);
    void (*add)(void *state, const void *bytes, size_t size);
    void (*get)(const void *state, uint8_t *bytes); /* writes the most significant byte first */
};

extern const struct pstk__hash_kind pstk__hash_xx[]; /* xxHash */
extern const struct pstk__hash_kind pstk__hash_md[]; /* libmd */

#endif
