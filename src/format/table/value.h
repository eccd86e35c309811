/* SPDX-License-Identifier: Apache-2.0 */
/* value: what a cell of a table is, and its value as a field has it. Pure. */
#ifndef PSTK_TABLE_VALUE_H
#define PSTK_TABLE_VALUE_H

#include "format/table/table.h"

#include <locale.h>

/* What a cell looks like. A column has the class of its cells, CLASS_FLOAT where some are integers
 * and others floats, and CLASS_MIXED where they differ otherwise. */
enum pstk__cell_class {
    PSTK__CLASS_NONE = 0, /* no cell was seen */
    PSTK__CLASS_INTEGER,  /* of int64; one with zeros or a plus before it is text */
    PSTK__CLASS_FLOAT,
    PSTK__CLASS_BOOL,
    PSTK__CLASS_TEXT,
    PSTK__CLASS_MIXED, /* null, lists and objects, too */
};

enum pstk__cell_class pstk__cell_class(const struct pstk__cell *cell);
/* 1: a cell of CSV whose text is a decimal number: not NaN or infinity, which are words as well. */
int pstk__cell_is_number(const struct pstk__cell *cell);
/* The class of a column with cells of both. */
enum pstk__cell_class pstk__cell_class_join(enum pstk__cell_class a, enum pstk__cell_class b);

/* How the values of a column are read. */
enum pstk__table_reading {
    PSTK__READ_PATH = 0, /* the images */
    PSTK__READ_SCALAR,   /* of the column's dtype */
    PSTK__READ_TEXT,     /* a text; of JSON a string */
    PSTK__READ_ANY,      /* a text; of JSON the characters of a string, else JSON text */
    PSTK__READ_JSON,     /* JSON text */
    PSTK__READ_BYTES,    /* as ANY, perhaps not UTF-8 */
    PSTK__READ_CLASS,    /* a text that names a class */
};

struct pstk__table_column {
    char name[PSTK_MAX_NAME];          /* of the field */
    char key[PSTK__TABLE_MAX_KEY + 1]; /* in the table */
    uint32_t reading;                  /* enum pstk__table_reading */
    uint32_t dtype;                    /* of a scalar */
    uint32_t class;    /* enum pstk__cell_class: all cells must have it; NONE: any */
    uint32_t may_lack; /* 1: rows of JSON lines without it have null */
};

/* Read a value of a column, except paths and classes: *data and *size, which borrow the cell or
 * `room`. locale: "C". Returns NULL, or what is wrong, as a phrase in `text`. */
const char *pstk__table_value(const struct pstk__table_column *column,
                              const struct pstk__cell *cell, locale_t locale, uint8_t room[8],
                              const void **data, uint64_t *size, char text[240]);
/* What cells of a class are, for messages: "an integer". */
const char *pstk__cell_class_name(enum pstk__cell_class class);
/* Where the digits 0 to 9 that begin at `at` end; at most `end`. */
const char *pstk__table_skip_digits(const char *at, const char *end);
/* Write a text as messages show it, cut. */
void pstk__table_show(const char *from, uint64_t size, char to[64]);

#endif
