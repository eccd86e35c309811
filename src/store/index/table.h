/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table: the coding of rows of unsigned numbers as checked pages of 4 KiB. Pure.
 *
 * Each shard has its own table: a row for each record, a number in each column. A column has the
 * same width in all rows of a shard, so a row's number gives its page and its position there.
 * Column 0 is stored as the difference from the smallest number of its page; the others are stored
 * unchanged.
 */
#ifndef PSTK_INDEX_TABLE_H
#define PSTK_INDEX_TABLE_H

#include "base/little.h"

#include <penstock/types.h>

#define PSTK__INDEX_TABLE_PAGE 4096       /* bytes of a page */
#define PSTK__INDEX_TABLE_HEAD 32         /* bytes of a page before its rows */
#define PSTK__INDEX_TABLE_MAX_COLUMNS 136 /* two for each field of a schema, and 8 */

/* The layout of a shard's rows in its pages. Invariants: at[c + 1] = at[c] + width[c]; stride is
 * the sum of all widths; per_page rows and 8 more bytes fit in a page after its head. */
struct pstk__index_table {
    uint64_t n_rows;
    uint32_t n_columns;
    uint32_t stride;                              /* bytes of a row */
    uint32_t per_page;                            /* rows of a page */
    uint8_t width[PSTK__INDEX_TABLE_MAX_COLUMNS]; /* bytes of each column, 0 to 8; 0: the number is
                                                     always 0 */
    uint16_t at[PSTK__INDEX_TABLE_MAX_COLUMNS + 1]; /* position of each column in a row, bytes */
};

/* Choose the smallest widths in which n_rows rows of n_columns numbers fit. 0, or EFBIG: a row is
 * larger than a page. */
int pstk__index_table_fit(struct pstk__index_table *table, const uint64_t *rows, uint64_t n_rows,
                          uint32_t n_columns, struct pstk_error *err);
/* Derive stride, per_page and at from width, n_rows and n_columns. 0, or EBADMSG: no table has such
 * widths. */
int pstk__index_table_derive(struct pstk__index_table *table);
/* Return the number of pages. */
uint64_t pstk__index_table_n_pages(const struct pstk__index_table *table);
/* Write the page number `page`; rows: the rows of the whole table. Returns the CRC32C of the page.
 */
uint32_t pstk__index_table_encode(const struct pstk__index_table *table, uint32_t shard,
                                  uint64_t page, const uint64_t *rows, void *bytes);
/* Check the bytes of a page. Returns NULL, or the reason why it is damaged, static storage. */
const char *pstk__index_table_check(const struct pstk__index_table *table, uint32_t shard,
                                    uint64_t page, const void *bytes);

/* Return the number in a column of row `row` of the table, from its checked page. */
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
