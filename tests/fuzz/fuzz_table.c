/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_table: any bytes as a table of images, after a byte that chooses CSV, TSV or JSON lines,
 * read row by row; as a reader does that has all bytes, and as one that has had a part of them.
 * Cells lie within the bytes, or within the room for text, and both readers find the same rows.
 */
#include "format/table/more.h"
#include "format/table/value.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int is_within(const char *at, uint64_t n, const char *bytes, uint64_t size)
{
    const uintptr_t from = (uintptr_t)at, begin = (uintptr_t)bytes;
    return from >= begin && from <= begin + size && n <= size - (from - begin);
}

static void check_value(uint32_t dtype, const struct pstk__cell *cell, locale_t locale)
{
    struct pstk__table_column column = {.reading = dtype ? PSTK__READ_SCALAR : PSTK__READ_ANY,
                                        .dtype = dtype};
    uint8_t room[8];
    char text[240];
    const void *value;
    uint64_t n;
    if (pstk__table_value(&column, cell, locale, room, &value, &n, text))
        return;
    if (dtype ? n != pstk_dtype_size(dtype) : n != cell->size)
        abort();
}

static void check_row(const struct pstk__table_row *row, const char *bytes, uint64_t size,
                      const char *room, locale_t locale)
{
    static const uint32_t dtypes[] = {0, PSTK_I64, PSTK_U8, PSTK_F64, PSTK_F16};
    if (row->size > size || row->size == 0 || row->n_cells > PSTK__TABLE_MAX_CELLS)
        abort();
    for (uint32_t i = 0; i < row->n_cells; i++) {
        const struct pstk__cell *cell = &row->cells[i];
        if (!is_within(cell->raw, cell->raw_size, bytes, row->size) || cell->at > row->size ||
            (!is_within(cell->text, cell->size, bytes, row->size) &&
             !is_within(cell->text, cell->size, room, size)) ||
            memchr(cell->text, 0, cell->size))
            abort();
        for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++)
            check_value(dtypes[k], cell, locale);
        pstk__cell_class(cell);
    }
}

/* A reader that has `part` bytes asks for more, or finds the same. */
static void check_part(const struct pstk__table_kind *kind, const char *bytes, uint64_t part,
                       int result, const struct pstk__table_row *whole)
{
    char *copy = malloc(part ? part : 1), *room = malloc(part ? part : 1);
    struct pstk__table_row *row = malloc(sizeof *row);
    if (copy && room && row) {
        memcpy(copy, bytes, part);
        const int r = kind->parse(kind, copy, part, 0, room, row);
        if (r != 0 &&
            (r != result || (r > 0 && (row->size != whole->size || row->n_cells != whole->n_cells ||
                                       row->n_lines != whole->n_lines))))
            abort();
    }
    free(copy);
    free(room);
    free(row);
}

static void check_table(const struct pstk__table_kind *kind, const char *bytes, uint64_t size,
                        locale_t locale)
{
    struct pstk__table_row *row = malloc(sizeof *row);
    for (uint64_t at = 0; row && at < size;) {
        char *room = malloc(size - at);
        if (!room)
            break;
        const int r = kind->parse(kind, bytes + at, size - at, 1, room, row);
        if (r == 0)
            abort(); /* no more follows */
        if (r > 0)
            check_row(row, bytes + at, size - at, room, locale);
        check_part(kind, bytes + at, (size - at) / 2, r, row);
        at = r > 0 ? at + row->size : size;
        free(room);
    }
    free(row);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct pstk__table_kind *const kinds[] = {&pstk__table_csv, &pstk__table_json,
                                                           &pstk__table_tsv};
    const uint8_t *values[PSTK_MAX_FIELDS];
    uint32_t sizes[PSTK_MAX_FIELDS];
    if (size < 2)
        return 0;
    /* In memory of exactly its size, so that a read past it is seen. */
    char *exact = malloc(size - 1);
    locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (exact && locale) {
        memcpy(exact, data + 1, size - 1);
        check_table(kinds[data[0] % 3], exact, size - 1, locale);
        if (size - 1 >= PSTK__MORE_CRC) {
            pstk__table_more_seal((uint8_t *)exact, size - 1);
            pstk__table_more_read((uint8_t *)exact, size - 1, data[0] % PSTK_MAX_FIELDS, values,
                                  sizes);
        }
    }
    if (locale)
        freelocale(locale);
    free(exact);
    return 0;
}
