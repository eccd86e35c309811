/* SPDX-License-Identifier: Apache-2.0 */
/* scan: reads a PREFIX.idx once, for the index of its PREFIX.bin. */
#ifndef PSTK_MEGATRON_SCAN_H
#define PSTK_MEGATRON_SCAN_H

#include "format/indexed.h"

/* The result of the scanner's list, in one block of memory. */
struct pstk__megatron {
    uint64_t length; /* tokens of a sample; 0: a sample is a document */
};

/* Columns of a row: the begin of the tokens, and their bytes; in samples of a fixed length also the
 * begin of the value of `starts` among the file's values in the index, and its bytes. */
enum {
    PSTK__MEGATRON_BEGIN = 0,
    PSTK__MEGATRON_SIZE = 1,
    PSTK__MEGATRON_VALUE = 2,
    PSTK__MEGATRON_VALUE_SIZE = 3,
    PSTK__MEGATRON_NUMBERS = 4
};

/* Bytes before the positions in a value of `starts`: their CRC32C. */
#define PSTK__MEGATRON_VALUE_HEAD 4

/* The functions of a pstk__scanner, whose own is a struct pstk__megatron. */
int pstk__megatron_infer(const struct pstk__scan *scan, const struct pstk_foreign *wanted,
                         struct pstk__inferred_schema *found, struct pstk_error *err);
int pstk__megatron_scan(const struct pstk__scan *scan, struct pstk__index_rows *rows,
                        struct pstk__inferred_schema *found, struct pstk_error *err);

#endif
