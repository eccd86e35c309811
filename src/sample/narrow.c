/* SPDX-License-Identifier: Apache-2.0 */
#include "sample/narrow.h"

#include "base/cast.h"
#include "base/error.h"
#include "format/joined.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define AT_ONCE (1u << 17) /* values of one read, which opens a file of the column: 1 MiB */

static const struct pstk_field *field_of(const struct pstk__plan *p, uint32_t i)
{
    return &p->source->schema.fields[p->outputs[i].field];
}

/* Return the number of the column that holds the values of the field, or -1. */
static int64_t find_column(const struct pstk__source *source, uint32_t field)
{
    struct pstk_column_info info;
    const uint32_t n =
        source->format && source->format->n_columns ? source->format->n_columns(source) : 0;
    for (uint32_t i = 0; i < n; i++) {
        source->format->column(source, i, &info);
        if (info.fact == PSTK_COLUMN_VALUE && info.field == field)
            return i;
    }
    return -1;
}

static int refuse(const struct pstk__plan *p, uint32_t i, const char *why, struct pstk_error *err)
{
    const struct pstk_field *field = field_of(p, i);
    return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                      "outputs[%u].dtype: not every %s of field '%s' fits %s%s; choose one that "
                      "holds them all, or %s and convert the batches",
                      i, pstk_dtype_name(field->dtype), field->name,
                      pstk_dtype_name(p->outputs[i].dtype), why, pstk_dtype_name(field->dtype));
}

/* Return the word and the path for a data set of a mixture: " in PATH". "": the only data set. */
static const char *name_part(const struct pstk__plan *p, const struct pstk__source *source,
                             const char *word, char text[320])
{
    snprintf(text, 320, "%s %.300s", word, source->path);
    return source == p->source ? "" : text;
}

/* Refuse the value of a sample. */
static int refuse_value(const struct pstk__plan *p, uint32_t i, const struct pstk__source *source,
                        uint64_t sample, uint64_t bits, struct pstk_error *err)
{
    const int is_negative = field_of(p, i)->dtype != PSTK_U64 && (int64_t)bits < 0;
    char why[416], part[320];
    snprintf(why, sizeof why, ": sample %" PRIu64 "%s has %s%" PRIu64, sample,
             name_part(p, source, " of", part), is_negative ? "-" : "",
             is_negative ? 0 - bits : bits);
    return refuse(p, i, why, err);
}

static int check_column(const struct pstk__plan *p, uint32_t i, const struct pstk__source *source,
                        uint32_t column, struct pstk_error *err)
{
    const uint32_t from = field_of(p, i)->dtype, to = p->outputs[i].dtype;
    const uint32_t size = pstk_dtype_size(from);
    uint8_t *values = malloc(AT_ONCE * sizeof(uint64_t)), narrow[sizeof(uint64_t)];
    int r = values ? 0 : pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for a column");
    for (uint64_t first = 0; r == 0 && first < source->n_samples; first += AT_ONCE) {
        const uint64_t left = source->n_samples - first, n = left < AT_ONCE ? left : AT_ONCE;
        r = source->format->column_read(source, column, first, n, values, err);
        for (uint64_t k = 0; k < n && r == 0; k++) {
            uint64_t bits = 0;
            if (pstk__cast_values(narrow, to, values + k * size, from, 1) == 0)
                continue;
            pstk__cast(&bits, from == PSTK_U64 ? PSTK_U64 : PSTK_I64, values + k * size, from);
            r = refuse_value(p, i, source, first + k, bits, err);
        }
    }
    free(values);
    return r;
}

/* Check the values of one data set. */
static int check_source(const struct pstk__plan *p, uint32_t i, const struct pstk__source *source,
                        struct pstk_error *err)
{
    char why[416], part[320];
    const int field = pstk__schema_find(&source->schema, field_of(p, i)->name);
    const int64_t column = field < 0 ? -1 : find_column(source, (uint32_t)field);
    if (column >= 0)
        return check_column(p, i, source, (uint32_t)column, err);
    snprintf(why, sizeof why, ", and no side column of it%s proves that all values do",
             name_part(p, source, " in", part));
    return refuse(p, i, why, err);
}

static int is_whole(uint32_t dtype)
{
    return dtype >= PSTK_U8 && dtype <= PSTK_I64;
}

int pstk__narrow_check(const struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    const uint32_t from = field_of(p, i)->dtype, to = p->outputs[i].dtype;
    const uint32_t n = p->source->n_joined;
    int r = 0;
    if (pstk__cast_fits(from, to))
        return 0;
    if (!is_whole(from) || !is_whole(to))
        return refuse(p, i, " (side columns only prove that whole numbers fit an integer dtype)",
                      err);
    for (uint32_t k = 0; r == 0 && k < n; k++)
        r = check_source(p, i, pstk__joined_part(p->source, k), err);
    return n ? r : check_source(p, i, p->source, err);
}

int pstk__narrow_fail(const struct pstk__record *record, uint32_t field, uint32_t dtype,
                      struct pstk_error *err)
{
    return pstk__record_fail(record, field, PSTK_EBADMSG, PSTK_STAGE_RECORD, err,
                             "has a value that does not fit %s, although its side column says so; "
                             "`penstock verify` compares the two",
                             pstk_dtype_name(dtype));
}
