/* SPDX-License-Identifier: Apache-2.0 */
/*
 * column_fact: lists the columns that follow from a schema, and gives a record's value in each.
 * Pure. The writer makes these columns, and verification makes them again. A value follows from the
 * head of the record alone.
 */
#ifndef PSTK_COLUMN_FACT_H
#define PSTK_COLUMN_FACT_H

#include "record/record.h"

#define PSTK__N_FACTS 6 /* number of values of enum pstk_column_fact */
#define PSTK__MAX_DERIVED                                                                          \
    (3 * PSTK_MAX_FIELDS) /* max columns that follow from a schema: images have 3 */
#define PSTK__MAX_COLUMNS (PSTK__MAX_DERIVED + 64) /* max columns of a data set */

/* A column that follows from the records. */
struct pstk__derived_column {
    char name[PSTK_MAX_COLUMN_NAME];
    uint32_t field; /* number in the schema */
    uint32_t fact;  /* enum pstk_column_fact */
    uint32_t dtype;
};

/* List the columns of a schema, in the order of its fields, and return their number. A column is
 * left out if an earlier column or a scalar field has its name. */
uint32_t pstk__derived_columns(const struct pstk__schema *schema,
                               struct pstk__derived_column columns[PSTK__MAX_DERIVED]);
/* 1: the field of the schema has that fact, of that dtype. */
int pstk__column_fact_ok(const struct pstk__schema *schema, uint32_t field, uint32_t fact,
                         uint32_t dtype);
/* Write a record's value, in the bytes of the column's dtype. The view of a scalar must have data.
 */
void pstk__column_fact_value(const struct pstk__schema *schema,
                             const struct pstk__derived_column *column,
                             const struct pstk__field_view *views, void *value);
/* Return the name of a fact ("value", "size", ...), or "?". parse returns the fact of a name, or 0.
 */
const char *pstk__column_fact_name(uint32_t fact);
uint32_t pstk__column_fact_parse(const char *name);

#endif
