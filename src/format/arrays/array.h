/* SPDX-License-Identifier: Apache-2.0 */
/*
 * array: what the head of a container reports of an array whose rows are samples, and the limits
 * that all containers share. Pure.
 */
#ifndef PSTK_ARRAY_H
#define PSTK_ARRAY_H

#include <penstock/format.h>

#define PSTK__ARRAY_MAX_DIMS (1 + PSTK_MAX_DIMS)
#define PSTK__ARRAY_FILE_MAX (1ull << 44) /* bytes of an array, and of a file with several */

struct pstk__array {
    uint32_t dtype;  /* enum pstk_dtype; bool is u8 */
    uint32_t n_dims; /* 1 .. PSTK__ARRAY_MAX_DIMS: the rows, and the dimensions of each */
    uint64_t shape[PSTK__ARRAY_MAX_DIMS]; /* shape[1..] >= 1 */
    uint64_t row_size;                    /* bytes of shape[1..], 1 .. 2^32-1 */
    uint64_t offset;                      /* bytes: of row 0 in its file */
    uint64_t end;                         /* bytes: past the last row */
};

/* Set row_size and end from dtype, n_dims, shape and offset (< 2^44). `name` is the array's, for
 * messages. ENOTSUP: no rows, or empty ones, with advice; EFBIG: too large. */
int pstk__array_measure(struct pstk__array *array, const char *name, struct pstk_error *err);
/* 1: these bytes may be the name of a field: 1 to PSTK_MAX_NAME - 1 of A-Z a-z 0-9 _ . - */
int pstk__array_name_ok(const char *name, uint64_t size);

#endif
