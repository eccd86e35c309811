/* SPDX-License-Identifier: Apache-2.0 */
/* scan: reads an archive once, for its index. */
#ifndef PSTK_TAR_SCAN_H
#define PSTK_TAR_SCAN_H

#include "format/indexed.h"

/* Columns of a row: the begin of the sample's first member; then for each field the begin of its
 * member, relative to that, and the bytes from there to the end of its data. 0 and 0: the field is
 * absent. The field of the key has the headers of the sample's first member. The begin of a member
 * is here its first header that matters (member.h). */
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
    PSTK__TAR_HEADERS = 1, /* max bytes of a member before its data */
};

/* The functions of a pstk__scanner. */
int pstk__tar_infer(const struct pstk__scan *scan, const struct pstk_foreign *wanted,
                    struct pstk__inferred_schema *found, struct pstk_error *err);
uint32_t pstk__tar_n_columns(const struct pstk__inferred_schema *found);
int pstk__tar_scan(const struct pstk__scan *scan, struct pstk__index_rows *rows,
                   struct pstk__inferred_schema *found, struct pstk_error *err);

#endif
