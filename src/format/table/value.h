/* SPDX-License-Identifier: Apache-2.0 */
/* value: the type of a table's cell, and its value as its field stores it. Pure. */
#ifndef PSTK_TABLE_VALUE_H
#define PSTK_TABLE_VALUE_H

#include "format/table/table.h"

#include <locale.h>

/* The type of a cell by its text. A column has the class of its cells, CLASS_FLOAT if some are
 * integers and others floats, and CLASS_MIXED if they differ otherwise. */
enum pstk__cell_class {
    PSTK__CLASS_NONE = 0, /* no cell was seen */
    PSTK__CLASS_INTEGER,  /* an int64; one with leading zeros or a plus is text */
    PSTK__CLASS_FLOAT,
    PSTK__CLASS_BOOL,
    PSTK__CLASS_TEXT,
    PSTK__CLASS_MIXED, /* null, lists, objects, JSON numbers that are neither; or cells of several
                          classes */
};

enum pstk__cell_class pstk__cell_class(const struct pstk__cell *cell);
/* 1: a cell of CSV is a decimal number. NaN and infinity do not count, because they are words as
 * well. */
int pstk__cell_is_number(const struct pstk__cell *cell);
/* Return the class of a column with cells of both classes. */
enum pstk__cell_class pstk__cell_class_join(enum pstk__cell_class a, enum pstk__cell_class b);

/* The way to read the values of a column. */
enum pstk__table_reading {
    PSTK__READ_PATH = 0, /* a path of an image */
    PSTK__READ_SCALAR,   /* a scalar of the column's dtype */
    PSTK__READ_TEXT,     /* a text; in JSON a string */
    PSTK__READ_ANY,      /* a text; in JSON the characters of a string, otherwise JSON text */
    PSTK__READ_JSON,     /* JSON text */
    PSTK__READ_BYTES,    /* as READ_ANY, perhaps not UTF-8 */
    PSTK__READ_CLASS,    /* a text that names a class */
};

struct pstk__table_column {
    char name[PSTK_MAX_NAME];          /* name of the field */
    char key[PSTK__TABLE_MAX_KEY + 1]; /* name in the table */
    uint32_t reading;                  /* enum pstk__table_reading */
    uint32_t dtype;                    /* dtype of a scalar */
    uint32_t class;    /* class of a scalar's cells (FLOAT: or INTEGER); NONE, MIXED: any */
    uint32_t may_lack; /* 1: a row of JSON lines without the column has null */
};

/* Read a value of a column, except paths and classes: *data and *size, which borrow the cell or
 * `room`. locale: "C". Returns NULL, or the reason of a failure, as a phrase in `text`. */
const char *pstk__table_value(const struct pstk__table_column *column,
                              const struct pstk__cell *cell, locale_t locale, uint8_t room[8],
                              const void **data, uint64_t *size, char text[240]);
/* Describe cells of a class for messages: "an integer". */
const char *pstk__cell_class_name(enum pstk__cell_class class);
/* Return the end of the digits 0 to 9 that begin at `at`; at most `end`. */
const char *pstk__table_skip_digits(const char *at, const char *end);
/* Write a text as messages show it, cut to the buffer. */
void pstk__table_show(const char *from, uint64_t size, char to[64]);

#endif
