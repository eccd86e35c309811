/* SPDX-License-Identifier: Apache-2.0 */
/* scan: reads the offsets of a shard, and the head of each sample, for the index. */
#ifndef PSTK_MDS_SCAN_H
#define PSTK_MDS_SCAN_H

#include "format/indexed.h"
#include "format/mds/index_json.h"

/* Columns of a row: the begin of the sample, its bytes, and the bytes of its value in each column
 * of variable size. */
enum { PSTK__MDS_BEGIN = 0, PSTK__MDS_SIZE = 1, PSTK__MDS_SIZES = 2 };

/* The functions of a pstk__scanner, whose own is a struct pstk__mds. */
int pstk__mds_infer(const struct pstk__scan *scan, const struct pstk_foreign *wanted,
                    struct pstk__inferred_schema *found, struct pstk_error *err);
int pstk__mds_scan(const struct pstk__scan *scan, struct pstk__index_rows *rows,
                   struct pstk__inferred_schema *found, struct pstk_error *err);

#endif
