/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pstk/column_fact.h"

#include <stdio.h>
#include <string.h>

static const char *const names[PSTK__N_FACTS] = {
    [PSTK_COLUMN_VALUE] = "value", [PSTK_COLUMN_SIZE] = "size",     [PSTK_COLUMN_LENGTH] = "length",
    [PSTK_COLUMN_WIDTH] = "width", [PSTK_COLUMN_HEIGHT] = "height",
};

const char *pstk__column_fact_name(uint32_t fact)
{
    return fact > 0 && fact < PSTK__N_FACTS ? names[fact] : "?";
}

uint32_t pstk__column_fact_parse(const char *name)
{
    for (uint32_t fact = 1; fact < PSTK__N_FACTS; fact++)
        if (strcmp(names[fact], name) == 0)
            return fact;
    return 0;
}

/* Return the bytes of a row of an array with only one variable dimension; 0: another field. */
static uint64_t row_size(const struct pstk_field *field)
{
    uint64_t size = pstk_dtype_size(field->dtype);
    uint32_t n_variable = 0;
    for (uint32_t d = 0; d < field->n_dims; d++) {
        n_variable += field->shape[d] == 0;
        if (__builtin_mul_overflow(size, field->shape[d] ? field->shape[d] : 1, &size))
            size = UINT64_MAX; /* no value has such rows */
    }
    return n_variable == 1 ? size : 0;
}

/* 1: the field has the fact. Facts are numbered in the order in which they are listed. */
static int has_fact(const struct pstk__schema *schema, uint32_t field, uint32_t fact)
{
    const struct pstk_field *f = &schema->fields[field];
    const int is_scalar = f->kind == PSTK_FIELD_SCALAR;
    const int is_varied = !is_scalar && schema->plain_size[field] == 0;
    switch (fact) {
    case PSTK_COLUMN_VALUE:
        return is_scalar;
    case PSTK_COLUMN_SIZE:
        return is_varied && row_size(f) == 0;
    case PSTK_COLUMN_LENGTH:
        return is_varied && row_size(f) > 0;
    case PSTK_COLUMN_WIDTH:
    case PSTK_COLUMN_HEIGHT:
        return f->kind == PSTK_FIELD_IMAGE;
    default:
        return 0;
    }
}

int pstk__column_fact_ok(const struct pstk__schema *schema, uint32_t field, uint32_t fact,
                         uint32_t dtype)
{
    return field < schema->n_fields && has_fact(schema, field, fact) &&
           dtype == (fact == PSTK_COLUMN_VALUE ? schema->fields[field].dtype : PSTK_U32);
}

/* 1: the name is that of a scalar field, or of a column listed before. */
static int is_taken(const struct pstk__schema *schema, const struct pstk__derived_column *columns,
                    uint32_t n, const char *name)
{
    const int field = pstk__schema_find(schema, name);
    if (field >= 0 && schema->fields[field].kind == PSTK_FIELD_SCALAR)
        return 1;
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(columns[i].name, name) == 0)
            return 1;
    return 0;
}

uint32_t pstk__derived_columns(const struct pstk__schema *schema,
                               struct pstk__derived_column columns[PSTK__MAX_DERIVED])
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < schema->n_fields; i++) {
        for (uint32_t fact = PSTK_COLUMN_VALUE; fact < PSTK__N_FACTS; fact++) {
            struct pstk__derived_column column = {.field = i, .fact = fact, .dtype = PSTK_U32};
            const int is_value = fact == PSTK_COLUMN_VALUE;
            if (!has_fact(schema, i, fact))
                continue;
            snprintf(column.name, sizeof column.name, "%s%s%s", schema->fields[i].name,
                     is_value ? "" : ".", is_value ? "" : names[fact]);
            if (is_value)
                column.dtype = schema->fields[i].dtype;
            else if (is_taken(schema, columns, n, column.name))
                continue;
            columns[n++] = column;
        }
    }
    return n;
}

void pstk__column_fact_value(const struct pstk__schema *schema,
                             const struct pstk__derived_column *column,
                             const struct pstk__field_view *views, void *value)
{
    const struct pstk__field_view *view = &views[column->field];
    switch (column->fact) {
    case PSTK_COLUMN_VALUE:
        memcpy(value, view->data, pstk_dtype_size(column->dtype));
        break;
    case PSTK_COLUMN_SIZE:
        pstk__put32(value, view->plain_size);
        break;
    case PSTK_COLUMN_LENGTH: /* the writer's check ensures that rows are whole */
        pstk__put32(value, (uint32_t)(view->plain_size / row_size(&schema->fields[column->field])));
        break;
    case PSTK_COLUMN_WIDTH:
        pstk__put32(value, view->width);
        break;
    default:
        pstk__put32(value, view->height);
    }
}
