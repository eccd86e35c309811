/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table: a table of images as text, row by row: CSV, TSV or JSON lines. A family: this is the
 * contract, NAME.c an entry, table.c the list.
 *
 *
 * Entries are pure: they parse bytes in memory, and write unescaped text into memory of the caller.
 * They do not depend on columns and their types.
 */
#ifndef PSTK_TABLE_TABLE_H
#define PSTK_TABLE_TABLE_H

#include "store/store.h"

#include <penstock/format.h>

#define PSTK__TABLE_MAX_ROW (UINT64_C(16) << 20) /* max bytes of a row */
#define PSTK__TABLE_MAX_CELLS 63                 /* max cells of a row: the path makes two fields */
#define PSTK__TABLE_MAX_KEY 255                  /* max bytes of a column's name in the table */

enum pstk__cell_kind {
    PSTK__CELL_PLAIN = 0, /* a cell of CSV, whose text decides the type */
    PSTK__CELL_STRING = 1,
    PSTK__CELL_NUMBER = 2, /* a number of JSON */
    PSTK__CELL_WORD = 3,   /* true or false */
    PSTK__CELL_NULL = 4,
    PSTK__CELL_NESTED = 5, /* a list or an object, as JSON text */
};

/* A value. Pointers borrow the row's bytes, or the room that was given for unescaped text. */
struct pstk__cell {
    const char *text; /* characters of a string, without NUL; otherwise the text as written */
    uint64_t size;    /* bytes */
    const char *raw;  /* text as written; in CSV without its quotes */
    uint64_t raw_size;
    const char *key; /* name of the column in JSON lines */
    uint64_t key_size;
    uint64_t at; /* begin of the value, byte of the row */
    uint32_t kind;
};

struct pstk__table_row {
    struct pstk__cell cells[PSTK__TABLE_MAX_CELLS];
    uint32_t n_cells;  /* 0: an empty line, which is no row */
    uint64_t size;     /* bytes, its line end included */
    uint64_t n_lines;  /* line ends in the row */
    uint64_t wrong_at; /* wrong byte of the row */
    char wrong[160];   /* reason, as a phrase */
};

struct pstk__table_kind {
    const char *name;
    const char *endings; /* endings of files, with a space between */
    char delimiter;      /* delimiter of CSV */
    uint32_t has_header; /* 1: the first row has the names of the columns; 0: each row has them */
    /* Parse the first row of the bytes. is_end: no more bytes follow. `room` has `size` bytes, for
     * text. 1; 0: the row does not end within the bytes; -1: row->wrong. */
    int (*parse)(const struct pstk__table_kind *kind, const char *bytes, uint64_t size, int is_end,
                 char *room, struct pstk__table_row *row);
};

extern const struct pstk__table_kind pstk__table_csv, pstk__table_tsv, pstk__table_json;

/* Return the kind of a file by the ending of its name, whatever its case; NULL: it is no table. */
const struct pstk__table_kind *pstk__table_of(const char *path);

#endif
