/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns: the columns of a table, and the field of each. Names come from the header or, in JSON
 * lines, from the first rows; types from the first rows, or from the caller.
 */
#ifndef PSTK_TABLE_COLUMNS_H
#define PSTK_TABLE_COLUMNS_H

#include "format/table/file.h"
#include "format/table/value.h"

#include <penstock/foreign.h>

#define PSTK__TABLE_SAMPLE 10000 /* rows from which types are inferred */

struct pstk__table_columns {
    struct pstk__table_column of[PSTK__TABLE_MAX_CELLS];
    uint32_t n;
    uint32_t path;  /* column of the images' paths */
    uint32_t label; /* column named label; n: there is none */
    uint64_t at;    /* byte of the first row */
    uint64_t line;  /* line of the first row */
};

/* Find the columns, and read the file from its begin. foreign: types that the caller wants; NULL:
 * none. ENODATA: there are no rows. */
int pstk__table_columns_find(struct pstk__table_columns *columns, struct pstk__table_file *file,
                             const struct pstk_foreign *foreign);
/* Find the cell of each column in the last row read: of[columns->n]. */
int pstk__table_columns_match(const struct pstk__table_columns *columns,
                              struct pstk__table_file *file, const struct pstk__cell **of);
/* 1: a column of the first row is named `key`; 0: none is, or no row can be parsed; <0: the file
 * cannot be read. */
int pstk__table_has_column(const struct pstk__store *store, const char *path, uint64_t size,
                           const char *key);

#endif
