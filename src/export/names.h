/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names: makes paths of files from arbitrary texts in a data set. Pure, except for the memory that
 * it appends to.
 *
 * Slashes separate the parts of a path; empty parts are dropped. Control characters and the parts
 * "." and ".." are escaped as % and two hex digits. A % before two hex digits is escaped, too, so
 * that different texts stay different. The path stays below the directory in which it is used.
 */
#ifndef PSTK_EXPORT_NAMES_H
#define PSTK_EXPORT_NAMES_H

#include "base/bytes.h"

/* Maximum bytes of a part of a path; with something appended it stays below NAME_MAX, 255. */
#define PSTK__NAME_PART 200

/* Append a text as one part of a path: slashes are escaped, too. Returns 0; -1: the text is empty
 * or too long, and nothing was appended. */
int pstk__name_part(struct pstk__bytes *to, const char *text, uint64_t size);
/* Append a text as a path. Returns 0; -1: the text has no part, a part that is too long, or more
 * than 16 parts, and nothing was appended. */
int pstk__name_path(struct pstk__bytes *to, const char *text, uint64_t size);
/* Return the length, with the dot, of a suffix that names an image (".JPEG"), or 0. */
uint64_t pstk__name_image_suffix(const char *path, uint64_t size);

/* A set of 64-bit hashes of names. All zero is empty. */
struct pstk__name_set {
    uint64_t *hashes; /* 0: a free slot; owned */
    uint64_t n, capacity;
};

/* Add a name. Returns 1: it is new; 0: it, or a name of the same hash, was in the set; -1: no
 * memory. */
int pstk__name_set_add(struct pstk__name_set *set, const void *name, uint64_t size);
void pstk__name_set_clear(struct pstk__name_set *set);
void pstk__name_set_free(struct pstk__name_set *set);

#endif
