/* SPDX-License-Identifier: Apache-2.0 */
#include "store/index/table.h"

#include "base/crc32c.h"
#include "base/error.h"

/* Head of a page: CRC32C, shard, number of the page, number of rows, smallest number of column 0,
 * zeros. */
enum { CRC = 0, SHARD = 4, PAGE = 8, N_ROWS = 12, BASE = 16, ZERO = 24 };

#define SPARE 8 /* bytes after the last row: numbers are read 8 bytes at a time */
#define ROOM (PSTK__INDEX_TABLE_PAGE - PSTK__INDEX_TABLE_HEAD - SPARE)

static uint8_t width_of(uint64_t number)
{
    return number ? (uint8_t)((64 - __builtin_clzll(number) + 7) / 8) : 0;
}

int pstk__index_table_derive(struct pstk__index_table *table)
{
    if (table->n_columns == 0 || table->n_columns > PSTK__INDEX_TABLE_MAX_COLUMNS)
        return PSTK_EBADMSG;
    uint32_t at = 0; /* at most 256 * 8 */
    for (uint32_t c = 0; c < table->n_columns; c++) {
        if (table->width[c] > 8)
            return PSTK_EBADMSG;
        table->at[c] = (uint16_t)at;
        at += table->width[c];
    }
    table->at[table->n_columns] = (uint16_t)at;
    table->stride = at;
    table->per_page = at ? ROOM / at : ROOM;
    return table->per_page ? 0 : PSTK_EBADMSG;
}

uint64_t pstk__index_table_n_pages(const struct pstk__index_table *table)
{
    return table->n_rows / table->per_page + (table->n_rows % table->per_page != 0);
}

/* Return the rows of a page. */
static uint32_t rows_of(const struct pstk__index_table *table, uint64_t page)
{
    const uint64_t left = table->n_rows - page * table->per_page;
    return left < table->per_page ? (uint32_t)left : table->per_page;
}

/* Return the smallest number of column 0 in a page. */
static uint64_t base_of(const struct pstk__index_table *table, uint64_t page, const uint64_t *rows)
{
    const uint64_t *row = rows + page * table->per_page * table->n_columns;
    uint64_t base = UINT64_MAX;
    for (uint32_t i = 0; i < rows_of(table, page); i++, row += table->n_columns)
        base = *row < base ? *row : base;
    return base;
}

/* 1: column 0 is wide enough for the difference of every row from the smallest number of its page.
 */
static int column_0_fits(const struct pstk__index_table *table, const uint64_t *rows)
{
    const uint64_t n_pages = pstk__index_table_n_pages(table);
    for (uint64_t page = 0; page < n_pages; page++) {
        const uint64_t base = base_of(table, page, rows);
        const uint64_t *row = rows + page * table->per_page * table->n_columns;
        for (uint32_t i = 0; i < rows_of(table, page); i++, row += table->n_columns)
            if (width_of(*row - base) > table->width[0])
                return 0;
    }
    return 1;
}

int pstk__index_table_fit(struct pstk__index_table *table, const uint64_t *rows, uint64_t n_rows,
                          uint32_t n_columns, struct pstk_error *err)
{
    *table = (struct pstk__index_table){.n_rows = n_rows, .n_columns = n_columns};
    for (uint64_t i = 0; i < n_rows; i++)
        for (uint32_t c = 1; c < n_columns; c++) {
            const uint8_t width = width_of(rows[i * n_columns + c]);
            table->width[c] = width > table->width[c] ? width : table->width[c];
        }
    /* A wider column 0 makes pages of fewer rows, so its differences only become smaller. */
    for (table->width[0] = 0; table->width[0] <= 8; table->width[0]++)
        if (pstk__index_table_derive(table) < 0)
            return pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_OPEN,
                              "a row of the index takes %u bytes, more than a page: give the data "
                              "set fewer fields",
                              table->stride);
        else if (column_0_fits(table, rows))
            return 0;
    return PSTK_EFBIG; /* not reached: 8 bytes hold any difference */
}

uint32_t pstk__index_table_encode(const struct pstk__index_table *table, uint32_t shard,
                                  uint64_t page, const uint64_t *rows, void *bytes)
{
    uint8_t *to = bytes;
    const uint32_t n = rows_of(table, page);
    const uint64_t base = base_of(table, page, rows);
    memset(to, 0, PSTK__INDEX_TABLE_PAGE);
    pstk__put32(to + SHARD, shard);
    pstk__put32(to + PAGE, (uint32_t)page);
    pstk__put32(to + N_ROWS, n);
    pstk__put64(to + BASE, base);
    const uint64_t *row = rows + page * table->per_page * table->n_columns;
    uint8_t *at = to + PSTK__INDEX_TABLE_HEAD;
    for (uint32_t i = 0; i < n; i++, row += table->n_columns, at += table->stride)
        for (uint32_t c = 0; c < table->n_columns; c++) {
            uint8_t number[8];
            pstk__put64(number, c == 0 ? row[0] - base : row[c]);
            memcpy(at + table->at[c], number, table->width[c]);
        }
    const uint32_t crc = pstk__crc32c(0, to + SHARD, PSTK__INDEX_TABLE_PAGE - SHARD);
    pstk__put32(to + CRC, crc);
    return crc;
}

const char *pstk__index_table_check(const struct pstk__index_table *table, uint32_t shard,
                                    uint64_t page, const void *bytes)
{
    const uint8_t *from = bytes;
    if (pstk__get32(from + CRC) != pstk__crc32c(0, from + SHARD, PSTK__INDEX_TABLE_PAGE - SHARD))
        return "its checksum is wrong";
    if (pstk__get32(from + SHARD) != shard || pstk__get32(from + PAGE) != (uint32_t)page)
        return "it is another page";
    if (pstk__get32(from + N_ROWS) != rows_of(table, page))
        return "its number of rows is wrong";
    return pstk__get64(from + ZERO) ? "a byte that must be zero is not" : NULL;
}
