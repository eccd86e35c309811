/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan: reads a file once, for its index. A length is used only after its checksum was compared.
 * The checksums of data are compared when records are read. Large values are skipped.
 */
#ifndef PSTK_TFRECORD_SCAN_H
#define PSTK_TFRECORD_SCAN_H

#include "format/indexed.h"

/* Columns of a row: the begin of the record, and its bytes with its frame. */
enum pstk__tfrecord_column {
    PSTK__TFRECORD_BEGIN = 0,
    PSTK__TFRECORD_SIZE = 1,
    PSTK__TFRECORD_N_COLUMNS = 2,
};

/* The functions of a pstk__scanner. */
int pstk__tfrecord_infer(const struct pstk__scan *scan, const struct pstk_foreign *wanted,
                         struct pstk__inferred_schema *found, struct pstk_error *err);
uint32_t pstk__tfrecord_n_columns(const struct pstk__inferred_schema *found);
int pstk__tfrecord_scan(const struct pstk__scan *scan, struct pstk__index_rows *rows,
                        struct pstk__inferred_schema *found, struct pstk_error *err);

#endif
