/* SPDX-License-Identifier: Apache-2.0 */
/*
 * array: the description of an array whose rows are samples, as the head of a container gives it,
 * and the limits that all containers share. Pure.
 */
#ifndef PSTK_ARRAY_H
#define PSTK_ARRAY_H

#include <penstock/format.h>

#define PSTK__ARRAY_MAX_DIMS (1 + PSTK_MAX_DIMS)
#define PSTK__ARRAY_FILE_MAX (1ull << 44) /* max bytes of an array, and of a file with several */

struct pstk__array {
    uint32_t dtype;  /* enum pstk_dtype; bool is u8 */
    uint32_t n_dims; /* 1 .. PSTK__ARRAY_MAX_DIMS: the rows, and the dimensions of a row */
    uint64_t shape[PSTK__ARRAY_MAX_DIMS]; /* shape[1..] >= 1 */
    uint64_t row_size;                    /* product of shape[1..] in bytes, 1 .. 2^32-1 */
    uint64_t offset;                      /* begin of row 0, byte of the file */
    uint64_t end;                         /* end of the last row, byte of the file */
};

/* Set row_size and end from dtype, n_dims, shape and offset (< 2^44). name: of the array, for
 * messages. ENOTSUP: no rows, or empty ones, with advice; EFBIG: too large. */
int pstk__array_measure(struct pstk__array *array, const char *name, struct pstk_error *err);
/* 1: the bytes can be the name of a field: 1 to PSTK_MAX_NAME - 1 of A-Z a-z 0-9 _ . - */
int pstk__array_name_ok(const char *name, uint64_t size);

#endif
