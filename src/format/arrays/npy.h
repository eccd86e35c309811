/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npy: parses the head of a .npy file, format versions 1.0 to 3.0 (numpy.lib.format). Pure: no
 * I/O, no allocation. The head is a Python dictionary as text. The parser reads only the literals
 * that NumPy writes there, and evaluates nothing.
 */
#ifndef PSTK_NPY_H
#define PSTK_NPY_H

#include "format/arrays/array.h"

#define PSTK__NPY_HEADER_MAX (1u << 16) /* bytes of a head; NumPy's have 128 */

/* Parse the first `size` bytes of a file, of which PSTK__NPY_HEADER_MAX are enough; offset and end
 * are in that file. `name` is the file's name, for messages. EBADMSG: not a .npy file, or a damaged
 * one; ENOTSUP: an array that cannot be read in place, with advice; EFBIG: too large. */
int pstk__npy_header_parse(struct pstk__array *array, const void *bytes, uint64_t size,
                           const char *name, struct pstk_error *err);
/* Parse as pstk__npy_header_parse, for an array that is a value: it may have no dimension, or a
 * size of 0; row_size and end are not set. err: or NULL. */
int pstk__npy_head_read(struct pstk__array *array, const void *bytes, uint64_t size,
                        const char *name, struct pstk_error *err);
/* Return the bytes of the head, from the first n of a file; 0: it is none, or n is too small. */
uint64_t pstk__npy_head_size(const uint8_t *bytes, uint64_t n);

#endif
