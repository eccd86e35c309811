/* SPDX-License-Identifier: Apache-2.0 */
#include "format/table/columns.h"

#include "base/error.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names of the column of paths, in order of preference: file_name is that of Hugging Face's
 * imagefolder. bindings/python/penstock/tables.py finds paths and names fields of Parquet in the
 * same way: change both. */
static const char *const path_keys[] = {"file_name", "path", "filename", "file", "image"};

/* The statistics of each column in the first rows. */
struct sample {
    enum pstk__cell_class class[PSTK__TABLE_MAX_CELLS];
    uint64_t n_in[PSTK__TABLE_MAX_CELLS]; /* rows that have the column */
    uint64_t n_rows;
};

/* ---- names ----------------------------------------------------------------------------------- */

/* Write the name of a column's field: the column's name, cut to the max, with _ for each character
 * that fields cannot have; "columnN" if the column has none. */
static void name_field(struct pstk__table_column *column, uint32_t number)
{
    size_t n = strlen(column->key);
    if (n == 0) {
        snprintf(column->name, sizeof column->name, "column%u", number);
        return;
    }
    n = n < sizeof column->name - 1 ? n : sizeof column->name - 1;
    for (size_t i = 0; i < n; i++) {
        const char c = column->key[i];
        const int is_known = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                             (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
        column->name[i] = is_known ? c : '_';
    }
    column->name[n] = 0;
}

static int add_column(struct pstk__table_columns *columns, struct pstk__table_file *file,
                      const char *key, uint64_t size, uint64_t at)
{
    struct pstk__table_column *column = &columns->of[columns->n];
    if (columns->n == PSTK__TABLE_MAX_CELLS)
        return pstk__table_file_fail(file, at, "the table has more than %d columns",
                                     PSTK__TABLE_MAX_CELLS);
    if (size > PSTK__TABLE_MAX_KEY || pstk__utf8_end(key, size) != size)
        return pstk__table_file_fail(file, at,
                                     "the name of column %u is longer than %d bytes, or not UTF-8",
                                     columns->n + 1, PSTK__TABLE_MAX_KEY);
    *column = (struct pstk__table_column){.reading = PSTK__READ_TEXT};
    memcpy(column->key, key, size);
    name_field(column, columns->n + 1);
    columns->n++;
    return 0;
}

static uint32_t find_key(const struct pstk__table_columns *columns, const char *key, uint64_t size)
{
    uint32_t i = 0;
    while (i < columns->n &&
           (strncmp(columns->of[i].key, key, size) != 0 || columns->of[i].key[size] != 0))
        i++;
    return i;
}

static int read_header(struct pstk__table_columns *columns, struct pstk__table_file *file)
{
    int r = pstk__table_file_next(file);
    if (r == 0)
        return pstk__fail(file->err, PSTK_ENODATA, PSTK_STAGE_OPEN, "the table %s is empty",
                          file->scan.path);
    if (r < 0)
        return r;
    r = 0;
    for (uint32_t i = 0; r == 0 && i < file->row.n_cells; i++) {
        const struct pstk__cell *cell = &file->row.cells[i];
        r = add_column(columns, file, cell->text, cell->size, cell->at);
    }
    return r;
}

/* Write the names of as many columns as fit. */
static void list_columns(const struct pstk__table_columns *columns, char text[200])
{
    size_t used = 0;
    text[0] = 0;
    for (uint32_t i = 0; i < columns->n && used + 80 < 200; i++) {
        char shown[64];
        pstk__table_show(columns->of[i].key, strlen(columns->of[i].key), shown);
        used += (size_t)snprintf(text + used, 200 - used, "%s%s", i ? ", " : "", shown);
    }
}

/* Fail because the table has no column of paths. */
static int fail_path(const struct pstk__table_columns *columns, struct pstk__table_file *file)
{
    const struct pstk__table_kind *kind = file->kind;
    const char *path = file->scan.path;
    char names[200];
    list_columns(columns, names);
    if (columns->n == 1 && strpbrk(columns->of[0].key, ";\t|"))
        return pstk__fail(file->err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "the table %s has one column, %s; separate its columns by commas, or by "
                          "tabs in a .tsv file",
                          path, names);
    return pstk__fail(file->err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                      "the table %s has no column of the images' paths, named file_name, path, "
                      "filename, file or image; its columns are %s (pack a table without images "
                      "with Python: penstock.pack(pandas.%s('%s'%s), OUT), and open OUT)",
                      path, names, kind == &pstk__table_json ? "read_json" : "read_csv", path,
                      kind == &pstk__table_json  ? ", lines=True"
                      : kind == &pstk__table_tsv ? ", sep='\\t'"
                                                 : "");
}

/* Find the column of paths. */
static int find_path(struct pstk__table_columns *columns, struct pstk__table_file *file)
{
    for (size_t i = 0; i < sizeof path_keys / sizeof path_keys[0]; i++) {
        columns->path = find_key(columns, path_keys[i], strlen(path_keys[i]));
        if (columns->path == columns->n)
            continue;
        columns->of[columns->path].reading = PSTK__READ_PATH;
        return 0;
    }
    return fail_path(columns, file);
}

/* Rename columns that have the names of fields in every table, by a _ at the end. A column that has
 * this name already is refused: the two could not be distinguished. */
static int part_names(struct pstk__table_columns *columns, struct pstk__table_file *file)
{
    char shown[64], other[64];
    for (uint32_t i = 0; i < columns->n; i++) {
        char *name = columns->of[i].name;
        if (i != columns->path && (strcmp(name, "image") == 0 || strcmp(name, "path") == 0))
            snprintf(name, PSTK_MAX_NAME, "%s_", name[0] == 'i' ? "image" : "path");
    }
    for (uint32_t i = 0; i < columns->n; i++)
        for (uint32_t k = 0; k < i; k++) {
            const struct pstk__table_column *a = &columns->of[k], *b = &columns->of[i];
            if (k == columns->path || i == columns->path || strcmp(a->name, b->name) != 0)
                continue;
            pstk__table_show(a->key, strlen(a->key), shown);
            pstk__table_show(b->key, strlen(b->key), other);
            return pstk__fail(file->err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                              "columns '%s' and '%s' of %s both become the field %s; must have "
                              "different names (rename one)",
                              shown, other, file->scan.path, a->name);
        }
    return 0;
}

/* ---- types ----------------------------------------------------------------------------------- */

static int sample_row(struct pstk__table_columns *columns, struct pstk__table_file *file,
                      struct sample *sample)
{
    sample->n_rows++;
    for (uint32_t i = 0; i < file->row.n_cells; i++) {
        const struct pstk__cell *cell = &file->row.cells[i];
        uint32_t at = i;
        if (cell->key) {
            at = find_key(columns, cell->key, cell->key_size);
            const int r = at < columns->n
                              ? 0
                              : add_column(columns, file, cell->key, cell->key_size, cell->at);
            if (r < 0)
                return r;
        } else if (at >= columns->n) {
            return 0; /* the scan reports a wrong row */
        }
        sample->class[at] = pstk__cell_class_join(sample->class[at], pstk__cell_class(cell));
        sample->n_in[at]++;
    }
    return 0;
}

static void set_scalar(struct pstk__table_column *column, uint32_t dtype, uint32_t class)
{
    column->reading = PSTK__READ_SCALAR;
    column->dtype = dtype;
    column->class = class;
}

/* Give a column the type of its cells. */
static void infer(const struct pstk__table_columns *columns, const struct pstk__table_file *file,
                  const struct sample *sample, struct pstk__table_column *column)
{
    const uint32_t i = (uint32_t)(column - columns->of);
    enum pstk__cell_class class = sample->class[i];
    if (!file->kind->has_header && sample->n_in[i] < sample->n_rows)
        class = PSTK__CLASS_MIXED;
    switch (class) {
    case PSTK__CLASS_INTEGER:
        set_scalar(column, PSTK_I64, class);
        break;
    case PSTK__CLASS_FLOAT:
        set_scalar(column, PSTK_F64, class);
        break;
    case PSTK__CLASS_BOOL:
        set_scalar(column, PSTK_U8, class);
        break;
    default:
        column->reading = class != PSTK__CLASS_MIXED || file->kind->has_header
                              ? (i == columns->label ? PSTK__READ_CLASS : PSTK__READ_TEXT)
                              : PSTK__READ_JSON;
    }
}

static int is_float(uint32_t dtype)
{
    return dtype == PSTK_F16 || dtype == PSTK_BF16 || dtype == PSTK_F32 || dtype == PSTK_F64;
}

/* 1: the type that the caller wants has a value for null. */
static int has_null(const struct pstk__table_column *column)
{
    return column->reading == PSTK__READ_SCALAR
               ? column->class == PSTK__CLASS_NONE && is_float(column->dtype)
               : column->reading == PSTK__READ_ANY || column->reading == PSTK__READ_BYTES;
}

/* Give a column the type that the caller wants. */
static int retype(struct pstk__table_column *column, const struct pstk_field *wanted,
                  const struct pstk__table_file *file)
{
    if (wanted->kind == PSTK_FIELD_SCALAR && pstk_dtype_size(wanted->dtype) > 0)
        set_scalar(column, wanted->dtype, PSTK__CLASS_NONE);
    else if (wanted->kind == PSTK_FIELD_UTF8)
        column->reading = PSTK__READ_ANY;
    else if (wanted->kind == PSTK_FIELD_BYTES)
        column->reading = PSTK__READ_BYTES;
    else
        return pstk__fail(file->err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "field %s: its kind is %u; a column of a table must be a scalar, utf8 or "
                          "bytes",
                          column->name, wanted->kind);
    return 0;
}

static int retype_all(struct pstk__table_columns *columns, struct pstk__table_file *file,
                      const struct sample *sample, const struct pstk_foreign *foreign)
{
    int r = 0;
    for (uint32_t i = 0; r == 0 && foreign && i < foreign->n_fields; i++) {
        const struct pstk_field *wanted = &foreign->fields[i];
        char names[200];
        uint32_t k = 0;
        if (strcmp(wanted->name, "image") == 0 || strcmp(wanted->name, "path") == 0)
            continue; /* open.c handles these */
        while (k < columns->n &&
               (k == columns->path || strcmp(columns->of[k].name, wanted->name) != 0))
            k++;
        if (k == columns->n && !file->kind->has_header) {
            r = add_column(columns, file, wanted->name, strlen(wanted->name), 0);
        } else if (k == columns->n) {
            list_columns(columns, names);
            r = pstk__fail(file->err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                           "fields: the table %s has no column %s; its columns are %s",
                           file->scan.path, wanted->name, names);
        }
        if (r == 0)
            r = retype(&columns->of[k], wanted, file);
        if (r == 0 && !file->kind->has_header)
            columns->of[k].may_lack = has_null(&columns->of[k]) && sample->n_in[k] < sample->n_rows;
    }
    return r;
}

/* ---- all ------------------------------------------------------------------------------------- */

static int read_sample(struct pstk__table_columns *columns, struct pstk__table_file *file,
                       struct sample *sample)
{
    int r = 1;
    while (r > 0 && sample->n_rows < PSTK__TABLE_SAMPLE) {
        r = pstk__table_file_next(file);
        if (r > 0 && sample_row(columns, file, sample) < 0)
            return PSTK_EBADMSG;
    }
    if (r >= 0 && sample->n_rows == 0)
        return pstk__fail(file->err, PSTK_ENODATA, PSTK_STAGE_OPEN, "the table %s has no rows",
                          file->scan.path);
    return r < 0 ? r : 0;
}

int pstk__table_columns_find(struct pstk__table_columns *columns, struct pstk__table_file *file,
                             const struct pstk_foreign *foreign)
{
    struct sample *sample = calloc(1, sizeof *sample);
    *columns = (struct pstk__table_columns){0};
    if (!sample)
        return pstk__fail(file->err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to open %s",
                          file->scan.path);
    int r = file->kind->has_header ? read_header(columns, file) : 0;
    columns->at = file->reader.at;
    columns->line = file->line;
    /* First, because a file that is no table has wrong rows, too. */
    if (r == 0 && file->kind->has_header)
        r = find_path(columns, file);
    if (r == 0)
        r = read_sample(columns, file, sample);
    if (r == 0)
        r = find_path(columns, file);
    columns->label = find_key(columns, "label", 5);
    for (uint32_t i = 0; r == 0 && i < columns->n; i++)
        if (i != columns->path)
            infer(columns, file, sample, &columns->of[i]);
    if (r == 0)
        r = part_names(columns, file);
    if (r == 0)
        r = retype_all(columns, file, sample, foreign);
    columns->label = find_key(columns, "label", 5);
    free(sample);
    return r;
}

static int match_keys(const struct pstk__table_columns *columns, struct pstk__table_file *file,
                      const struct pstk__cell **of)
{
    static const struct pstk__cell null = {
        .text = "null", .size = 4, .raw = "null", .raw_size = 4, .kind = PSTK__CELL_NULL};
    char shown[64];
    for (uint32_t i = 0; i < columns->n; i++)
        of[i] = columns->of[i].reading == PSTK__READ_JSON || columns->of[i].may_lack ? &null : NULL;
    for (uint32_t i = 0; i < file->row.n_cells; i++) {
        const struct pstk__cell *cell = &file->row.cells[i];
        uint32_t k = i; /* rows mostly have the same order */
        if (k >= columns->n || strncmp(columns->of[k].key, cell->key, cell->key_size) != 0 ||
            columns->of[k].key[cell->key_size] != 0)
            k = find_key(columns, cell->key, cell->key_size);
        if (k == columns->n) {
            pstk__table_show(cell->key, cell->key_size, shown);
            return pstk__table_file_fail(
                file, cell->at,
                "the column %s is in none of the first %d rows: give the field a type: utf8, bytes "
                "or a float (its value is null in rows without the column)",
                shown, PSTK__TABLE_SAMPLE);
        }
        of[k] = cell;
    }
    for (uint32_t i = 0; i < columns->n; i++)
        if (!of[i])
            return pstk__table_file_fail(
                file, 0,
                columns->of[i].class == PSTK__CLASS_NONE && i != columns->path
                    ? "the row has no column %s; every row must have it, or the field must have "
                      "the type utf8, bytes or a float"
                    : "the row has no column %s",
                columns->of[i].key);
    return 0;
}

int pstk__table_columns_match(const struct pstk__table_columns *columns,
                              struct pstk__table_file *file, const struct pstk__cell **of)
{
    if (!file->kind->has_header)
        return match_keys(columns, file, of);
    if (file->row.n_cells != columns->n)
        return pstk__table_file_fail(file, 0,
                                     "the row has %u columns; must have %u, as the header has",
                                     file->row.n_cells, columns->n);
    for (uint32_t i = 0; i < columns->n; i++)
        of[i] = &file->row.cells[i];
    return 0;
}

int pstk__table_has_column(const struct pstk__store *store, const char *path, uint64_t size,
                           const char *key)
{
    struct pstk_error why;
    struct pstk__table_file *file = malloc(sizeof *file);
    if (!file)
        return PSTK_ENOMEM;
    pstk_error_init(&why, sizeof why);
    int r = pstk__table_file_open(file, store, path, size, &why);
    if (r == 0)
        r = pstk__table_file_next(file);
    int found = 0;
    for (uint32_t i = 0; r > 0 && i < file->row.n_cells; i++) {
        const struct pstk__cell *cell = &file->row.cells[i];
        const char *name = cell->key ? cell->key : cell->text;
        const uint64_t n = cell->key ? cell->key_size : cell->size;
        found |= n == strlen(key) && memcmp(name, key, n) == 0;
    }
    pstk__table_file_close(file);
    free(file);
    return r < 0 && r != PSTK_EBADMSG && r != PSTK_EFBIG ? r : found;
}
