/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npy: parses the head of a .npy file, format versions 1.0 to 3.0 (numpy.lib.format). Pure: no
 * I/O, no allocation. The head is a Python dictionary as text. The parser reads only the literals
 * that NumPy writes there, and evaluates nothing.
 */
#ifndef PSTK_NPY_H
#define PSTK_NPY_H

#include <penstock/format.h>

#define PSTK__NPY_HEADER_MAX (1u << 16) /* bytes of a head; NumPy's have 128 */
#define PSTK__NPY_MAX_DIMS (1 + PSTK_MAX_DIMS)

struct pstk__npy_header {
    uint32_t dtype;  /* enum pstk_dtype; bool is u8 */
    uint32_t n_dims; /* 1 .. PSTK__NPY_MAX_DIMS: the rows, and the dimensions of each */
    uint64_t shape[PSTK__NPY_MAX_DIMS]; /* shape[1..] >= 1 */
    uint64_t row_size;                  /* bytes of shape[1..], 1 .. 2^32-1 */
    uint64_t offset;                    /* bytes: of row 0 in the file */
    uint64_t end;                       /* bytes: of the file, where it holds the array alone */
};

/* Parse the first `size` bytes of a file; PSTK__NPY_HEADER_MAX bytes are enough. `name` is the
 * file's name, for messages. EBADMSG: not a .npy file, or a damaged one; ENOTSUP: an array that
 * cannot be read in place, with advice; EFBIG: too large. */
int pstk__npy_header_parse(struct pstk__npy_header *npy_header, const void *bytes, uint64_t size,
                           const char *name, struct pstk_error *err);

#endif
