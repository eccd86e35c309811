/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table: rows of unsigned numbers in checked pages of 4 KiB, to bytes and from bytes. Pure.
 *
 * A shard has a table of its own: a row for each of its records, a number in each column. A column
 * has the same width in all rows of a shard, so the page and the place of a row follow from its
 * number. Column 0 is stored as the difference from the least of its page; the others as they are.
 */
#ifndef PSTK_INDEX_TABLE_H
#define PSTK_INDEX_TABLE_H

#include "base/little.h"

#include <penstock/types.h>

#define PSTK__INDEX_TABLE_PAGE 4096       /* bytes of a page */
#define PSTK__INDEX_TABLE_HEAD 32         /* bytes before its rows */
#define PSTK__INDEX_TABLE_MAX_COLUMNS 136 /* two for each field of a schema, and 8 */

/* How the rows of a shard lie in its pages. Invariants: at[c + 1] = at[c] + width[c]; stride is the
 * sum of all widths; per_page rows and 8 more bytes fit in a page after its head. */
struct pstk__index_table {
    uint64_t n_rows;
    uint32_t n_columns;
    uint32_t stride;                                /* bytes of a row */
    uint32_t per_page;                              /* rows of a page */
    uint8_t width[PSTK__INDEX_TABLE_MAX_COLUMNS];   /* bytes, 0 to 8; 0: the number is always 0 */
    uint16_t at[PSTK__INDEX_TABLE_MAX_COLUMNS + 1]; /* byte of a row */
};

/* Choose the least widths in which n_rows rows of n_columns numbers fit. Returns 0, or EFBIG: a row
 * is larger than a page. */
int pstk__index_table_fit(struct pstk__index_table *table, const uint64_t *rows, uint64_t n_rows,
                          uint32_t n_columns, struct pstk_error *err);
/* Derive stride, per_page and at from width, n_rows and n_columns. 0, or EBADMSG: no table has
 * these. */
int pstk__index_table_derive(struct pstk__index_table *table);
/* Pages of the table. */
uint64_t pstk__index_table_n_pages(const struct pstk__index_table *table);
/* Write page number `page`: rows are those of the whole table. Returns the page's CRC32C. */
uint32_t pstk__index_table_encode(const struct pstk__index_table *table, uint32_t shard,
                                  uint64_t page, const uint64_t *rows, void *bytes);
/* Check the bytes of a page. NULL, or what is wrong; static storage. */
const char *pstk__index_table_check(const struct pstk__index_table *table, uint32_t shard,
                                    uint64_t page, const void *bytes);

/* The number in a column of row `row` of the table, from its checked page. */
static inline uint64_t pstk__index_table_get(const struct pstk__index_table *table,
                                             const void *page, uint64_t row, uint32_t column)
{
    const uint8_t *bytes = page;
    const uint32_t width = table->width[column];
    if (width == 0)
        return column == 0 ? pstk__get64(bytes + 16) : 0;
    const uint64_t at =
        PSTK__INDEX_TABLE_HEAD + row % table->per_page * table->stride + table->at[column];
    const uint64_t number = pstk__get64(bytes + at) & (UINT64_MAX >> (64 - 8 * width));
    return column == 0 ? number + pstk__get64(bytes + 16) : number;
}

#endif
