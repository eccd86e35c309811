/* SPDX-License-Identifier: Apache-2.0 */
/* scan: reads through an archive once, for its index. */
#ifndef PSTK_TAR_SCAN_H
#define PSTK_TAR_SCAN_H

#include "format/indexed.h"

/* Columns of a row: where the first member of the sample begins; then for each field where its
 * member begins, from there, and the bytes from that to the end of its data. 0 and 0: it is absent.
 * A member begins here with the first header that matters (member.h). */
static inline uint32_t pstk__tar_begin(uint32_t field)
{
    return 1 + 2 * field;
}
static inline uint32_t pstk__tar_size(uint32_t field)
{
    return 2 + 2 * field;
}

/* Facts of an index. */
enum pstk__tar_fact {
    PSTK__TAR_SCATTERED =
        0,                 /* 1: the members of some sample lie far apart, so each is read alone */
    PSTK__TAR_HEADERS = 1, /* the most bytes of a member before its data */
};

/* The functions of a pstk__scanner. */
int pstk__tar_infer(const struct pstk__scan *scan, const struct pstk_foreign *wanted,
                    struct pstk__inferred_schema *found, struct pstk_error *err);
uint32_t pstk__tar_n_columns(const struct pstk__inferred_schema *found);
int pstk__tar_scan(const struct pstk__scan *scan, struct pstk__index_rows *rows,
                   struct pstk__inferred_schema *found, struct pstk_error *err);

#endif
