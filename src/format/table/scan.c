/* SPDX-License-Identifier: Apache-2.0 */
#include "format/table/scan.h"

#include "base/parallel_map.h"
#include "base/error.h"
#include "base/little.h"
#include "format/folder/folder.h"
#include "format/folder/name.h"
#include "format/folder/scan.h"
#include "format/table/classes.h"
#include "format/table/columns.h"
#include "format/table/more.h"
#include "format/folder/tree.h"
#include "format/folder/values.h"
#include "format/indexed.h"
#include "base/utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 3 /* version of a scan's results: an index of another version is built again */
#define PART (4u << 20)     /* bytes of a part of the table */
#define PROGRESS (1u << 18) /* bytes between two reports */
#define MAX_IMAGE 0xffffffffu
#define MIN_MORE 256 /* min bytes of room for a row's columns */

/* A run of rows. */
struct part {
    uint64_t at, line;
};

/* The first label of a kind, which messages name. */
struct label {
    uint64_t line; /* 0: there is none */
    uint64_t size;
    char shown[64];
};

/* The input of the index of a table. */
struct work {
    const struct pstk__opening *opening;
    const struct pstk__table_paths *paths;
    struct pstk__store_entry table; /* the table when the index was requested */
    struct pstk__table_columns columns;
    struct pstk__table_classes classes; /* owned */
    struct label first_labels[2]; /* of a name, and of a number: CSV has no quotes that distinguish
                                     them */
    struct label digits[2];       /* of digits, and of digits of another length */
    struct part *parts;           /* owned; n_parts, and the end of the last one */
    uint64_t n_parts, max_parts;
    uint32_t fields[PSTK__TABLE_MAX_CELLS]; /* field of each column, by number */
    struct pstk__index_build *build; /* borrowed during the build: n_done bytes of the table, which
                                        is read twice, n_joined samples */
    uint64_t n_missing;              /* samples whose images are missing */
    char missing[PSTK__VALUES_MAX_PATH]; /* path of the first missing image, below the root */
};

/* The result of a job: the rows of one part. */
struct result {
    struct pstk__index_rows rows; /* owned */
    struct pstk__index_field sums[PSTK_MAX_FIELDS];
    uint64_t digest[2];
    uint64_t most;  /* bytes of the largest sample's values and columns */
    uint64_t odd;   /* 1: a path is not UTF-8 */
    uint64_t bytes; /* bytes of the images */
    uint64_t n_missing;
    char missing[PSTK__VALUES_MAX_PATH]; /* path of the first missing image, below the root */
};

static int fail_memory(const struct work *work, struct pstk_error *err)
{
    return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the index of %s",
                      work->paths->table);
}

static int fail_changed(const struct work *work, struct pstk_error *err)
{
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                      "%s was changed while it was indexed: open it again", work->paths->table);
}

/* ---- first reading: parts and classes -------------------------------------------------------- */

/* Report progress of a known total of bytes. */
static int add_progress(void *user, uint64_t n)
{
    const struct work *work = user;
    return pstk__index_build_advance(work->build, n, 2 * work->table.size);
}

static int add_part(struct work *work, uint64_t at, uint64_t line)
{
    if (work->n_parts == work->max_parts) {
        const uint64_t max = work->max_parts ? 2 * work->max_parts : 64;
        struct part *parts = reallocarray(work->parts, max, sizeof *parts);
        if (!parts)
            return fail_memory(work, work->build->err);
        work->parts = parts;
        work->max_parts = max;
    }
    work->parts[work->n_parts++] = (struct part){.at = at, .line = line};
    return 0;
}

/* Note a label of digits, and the first one of another length: see check_digits(). */
static void note_digits(struct work *work, const struct pstk__table_file *file,
                        const struct pstk__cell *cell)
{
    struct label *first = &work->digits[0];
    struct label *label = first->line && first->size != cell->size ? &work->digits[1] : first;
    if (label->line != 0)
        return;
    *label = (struct label){.line = file->row_line, .size = cell->size};
    pstk__table_show(cell->text, cell->size, label->shown);
}

/* Refuse digits of several lengths without names among them, such as 01 and 2: sorted as names, 10
 * comes before 2. */
static int check_digits(const struct work *work, struct pstk_error *err)
{
    const struct label *first = &work->digits[0], *other = &work->digits[1];
    if (other->line == 0 || work->first_labels[0].line != 0)
        return 0;
    return pstk__fail(
        err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
        "%s, line %" PRIu64 ": the label is '%s', and that of line %" PRIu64
        " is '%s'; digits that name classes must be equally long "
        "(write numbers without zeros before them; or names in quotes, in JSON lines)",
        work->paths->table, other->line, other->shown, first->line, first->shown);
}

/* 1: a number has blanks around it. */
static int is_blank_number(const struct pstk__cell *cell)
{
    struct pstk__cell inner = *cell;
    while (inner.size > 0 && *inner.text == ' ') {
        inner.text++;
        inner.size--;
    }
    while (inner.size > 0 && inner.text[inner.size - 1] == ' ')
        inner.size--;
    return inner.size < cell->size && pstk__cell_is_number(&inner);
}

/* Refuse a table of CSV with both names and numbers as labels: one name among numbers would make
 * classes of them, with other numbers. Digits with leading zeros may be either. */
static int check_label(struct work *work, struct pstk__table_file *file,
                       const struct pstk__cell *cell)
{
    const int is_number = pstk__cell_is_number(cell);
    const char *end = cell->text + cell->size;
    struct label *own = &work->first_labels[is_number];
    const struct label *other = &work->first_labels[!is_number];
    if (cell->kind != PSTK__CELL_PLAIN)
        return 0;
    if (is_blank_number(cell))
        return pstk__table_file_fail(
            file, cell->at,
            "the label is a number with blanks around it; must have none (remove them)");
    const int is_digits = pstk__table_skip_digits(cell->text, end) == end;
    if (is_number || is_digits)
        note_digits(work, file, cell);
    if (!is_number && is_digits)
        return 0;
    if (own->line == 0) {
        own->line = file->row_line;
        pstk__table_show(cell->text, cell->size, own->shown);
    }
    if (other->line == 0)
        return 0;
    return pstk__table_file_fail(
        file, cell->at,
        "the label is %s'%s', and that of line %" PRIu64
        " is %s'%s'; labels must all be numbers or all be names (correct one; for names that look "
        "like numbers, write JSON lines, with labels in quotes)",
        is_number ? "the number " : "", own->shown, other->line, is_number ? "" : "the number ",
        other->shown);
}

/* Add the name in a row's label. A row without a label is left to the second reading, which reports
 * it. */
static int add_class(struct work *work, struct pstk__table_file *file)
{
    const struct pstk__table_column *label = &work->columns.of[work->columns.label];
    const struct pstk__cell *cell = NULL;
    for (uint32_t i = 0; i < file->row.n_cells; i++)
        if (file->kind->has_header
                ? i == work->columns.label
                : file->row.cells[i].key_size == strlen(label->key) &&
                      memcmp(file->row.cells[i].key, label->key, file->row.cells[i].key_size) == 0)
            cell = &file->row.cells[i];
    if (!cell || (cell->kind != PSTK__CELL_PLAIN && cell->kind != PSTK__CELL_STRING))
        return 0;
    if (cell->size == 0 || cell->size > PSTK__TABLE_MAX_CLASS ||
        pstk__utf8_end(cell->text, cell->size) != cell->size)
        return pstk__table_file_fail(file, cell->at,
                                     "the label is %s; it names a class, and must be UTF-8 of 1 to "
                                     "%d bytes (or give the field's type: utf8)",
                                     cell->size == 0 ? "empty" : "too long, or not UTF-8",
                                     PSTK__TABLE_MAX_CLASS);
    int r = check_label(work, file, cell);
    if (r < 0)
        return r;
    r = pstk__table_classes_add(&work->classes, cell->text, cell->size);
    if (r == PSTK_EFBIG)
        return pstk__table_file_fail(file, cell->at,
                                     "the labels are more than 2^20 names of classes: give the "
                                     "field's type, utf8");
    return r < 0 ? fail_memory(work, work->build->err) : 0;
}

/* Find the begins of parts, and the classes. */
static int survey(struct work *work, struct pstk__table_file *file)
{
    const struct pstk__table_columns *columns = &work->columns;
    const int has_classes =
        columns->label < columns->n && columns->of[columns->label].reading == PSTK__READ_CLASS;
    uint64_t reported = 0;
    pstk__table_file_seek(file, columns->at, columns->line, work->table.size);
    int r = add_part(work, columns->at, columns->line);
    while (r == 0) {
        const int n = pstk__table_file_next(file);
        if (n <= 0) {
            r = n;
            break;
        }
        if (has_classes)
            r = add_class(work, file);
        if (r == 0 && file->reader.at - work->parts[work->n_parts - 1].at >= PART)
            r = add_part(work, file->reader.at, file->line);
        if (r == 0 && file->reader.at - reported >= PROGRESS) {
            r = add_progress(work, file->reader.at - reported) ? PSTK_ECANCELED : 0;
            reported = file->reader.at;
        }
    }
    if (r == 0 && has_classes)
        r = check_digits(work, work->build->err);
    if (r == 0 && has_classes && pstk__table_classes_sort(&work->classes) < 0)
        r = fail_memory(work, work->build->err);
    if (r == 0)
        r = add_part(work, work->table.size, file->line);
    if (r == 0)
        work->n_parts--; /* the last one is the end */
    return r < 0 ? r : add_progress(work, work->table.size - reported) ? PSTK_ECANCELED : 0;
}

/* ---- second reading: a part is a job of the map --------------------------------------------- */

/* The state of a thread of the map. */
struct reader {
    const struct work *work;
    struct pstk__table_file file;
    locale_t locale;
    uint8_t *more; /* columns of a row, owned: at least their CRC32C, even without columns */
    uint64_t max_more, n_more;
    char path[PSTK__VALUES_MAX_PATH]; /* path of a row's image, below the root */
};

static void close_reader(void *state)
{
    struct reader *reader = state;
    if (!reader)
        return;
    pstk__table_file_close(&reader->file);
    if (reader->locale)
        freelocale(reader->locale);
    free(reader->more);
    free(reader);
}

static int open_reader(void *user, void **state, struct pstk_error *err)
{
    const struct work *work = user;
    struct reader *reader = calloc(1, sizeof *reader);
    *state = reader;
    if (!reader)
        return fail_memory(work, err);
    reader->work = work;
    reader->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    reader->max_more = MIN_MORE;
    reader->more = malloc(MIN_MORE);
    int r = reader->locale && reader->more ? 0 : fail_memory(work, err);
    if (r == 0)
        r = pstk__table_file_open(&reader->file, work->opening->store, work->paths->table,
                                  work->table.size, err);
    if (r < 0) {
        close_reader(reader);
        *state = NULL;
    }
    return r;
}

/* Append a field to the row's columns. 0 or ENOMEM. */
static int put_more(struct reader *reader, const void *data, uint64_t size)
{
    const uint64_t wanted = reader->n_more + 4 + size;
    if (wanted > reader->max_more) {
        uint8_t *more = realloc(reader->more, 2 * wanted);
        if (!more)
            return PSTK_ENOMEM;
        reader->more = more;
        reader->max_more = 2 * wanted;
    }
    pstk__put32(reader->more + reader->n_more, (uint32_t)size);
    if (size > 0)
        memcpy(reader->more + reader->n_more + 4, data, size);
    reader->n_more = wanted;
    return 0;
}

static void add_value(struct pstk__index_field *sum, uint64_t size)
{
    sum->n++;
    sum->bytes += size;
    sum->max_size = size > sum->max_size ? size : sum->max_size;
    sum->max_plain = sum->max_size;
}

/* Find the number of a label's class. Returns NULL, or the reason of a failure. */
static const char *read_class(const struct work *work, const struct pstk__cell *cell,
                              uint8_t room[8], char text[240])
{
    const uint64_t number = cell->kind == PSTK__CELL_PLAIN || cell->kind == PSTK__CELL_STRING
                                ? pstk__table_classes_find(&work->classes, cell->text, cell->size)
                                : work->classes.names.n;
    char shown[64];
    pstk__put64(room, number);
    if (number < work->classes.names.n)
        return NULL;
    pstk__table_show(cell->raw, cell->raw_size, shown);
    snprintf(text, 240, "is '%s'; must be a text that names a class, as in the first rows", shown);
    return text;
}

/* Append the value of a column to the row's columns. */
static int read_column(struct reader *reader, struct result *result, uint32_t i,
                       const struct pstk__cell *cell)
{
    const struct work *work = reader->work;
    const struct pstk__table_column *column = &work->columns.of[i];
    uint8_t room[8];
    const void *data = room;
    uint64_t size = 8;
    char text[240];
    const char *wrong =
        column->reading == PSTK__READ_CLASS
            ? read_class(work, cell, room, text)
            : pstk__table_value(column, cell, reader->locale, room, &data, &size, text);
    if (wrong)
        return pstk__table_file_fail(&reader->file, cell->at,
                                     "column %s %s; or give the field another type", column->key,
                                     wrong);
    add_value(&result->sums[work->fields[i]], size);
    return put_more(reader, data, size) < 0 ? fail_memory(work, reader->file.err) : 0;
}

/* Describe a row's image; a missing one has 0 bytes. */
static int look_at_image(struct reader *reader, const struct pstk__cell *cell,
                         struct pstk__store_entry *entry)
{
    const struct work *work = reader->work;
    char path[PATH_MAX], shown[256];
    if (cell->kind != PSTK__CELL_PLAIN && cell->kind != PSTK__CELL_STRING) {
        pstk__table_show(cell->raw, cell->raw_size, shown);
        return pstk__table_file_fail(&reader->file, cell->at,
                                     "the path is '%s'; must be a text that names an image", shown);
    }
    const char *wrong = pstk__table_image_path(work->paths, cell->text, cell->size, reader->path);
    if (wrong)
        return pstk__table_file_fail(&reader->file, cell->at, "%s", wrong);
    const int n = snprintf(path, sizeof path, "%s/%s", work->paths->root, reader->path);
    if (n < 0 || (size_t)n >= sizeof path)
        return pstk__table_file_fail(&reader->file, cell->at, "the path is too long");
    const int r = work->opening->store->look(work->opening->store, path, entry);
    if (r < 0 || entry->kind != PSTK__STORE_FILE)
        *entry = (struct pstk__store_entry){.kind = PSTK__STORE_OTHER};
    if (entry->size <= MAX_IMAGE)
        return 0;
    pstk__folder_show(reader->path, shown, sizeof shown);
    return pstk__table_file_fail(&reader->file, cell->at,
                                 "%s has 4 GiB or more; an image must have less", shown);
}

/* Append the last row read. */
static int add_row(struct reader *reader, struct result *result)
{
    const struct work *work = reader->work;
    const struct pstk__table_columns *columns = &work->columns;
    const struct pstk__cell *of[PSTK__TABLE_MAX_CELLS] = {0};
    struct pstk__store_entry entry = {0};
    uint8_t values[PSTK__VALUES_MAX];
    uint64_t cells[PSTK__FOLDER_TABLE_COLUMNS], ignored;
    int r = pstk__table_columns_match(columns, &reader->file, of);
    if (r == 0)
        r = look_at_image(reader, of[columns->path], &entry);
    reader->n_more = PSTK__MORE_CRC;
    if (r == 0 && columns->label < columns->n)
        r = read_column(reader, result, columns->label, of[columns->label]);
    for (uint32_t i = 0; r == 0 && i < columns->n; i++)
        if (i != columns->path && i != columns->label)
            r = read_column(reader, result, i, of[i]);
    if (r < 0)
        return r;
    pstk__table_more_seal(reader->more, reader->n_more);
    const uint32_t size =
        pstk__folder_values_write(values, (int64_t)reader->file.row_line, reader->path);
    cells[PSTK__FOLDER_VALUES_SIZE] = size;
    cells[PSTK__FOLDER_SIZE] = entry.size;
    cells[PSTK__FOLDER_CHANGED] = (uint64_t)entry.changed_ns;
    cells[PSTK__FOLDER_MORE] = reader->n_more;
    if (pstk__index_rows_value(&result->rows, values, size, &cells[PSTK__FOLDER_VALUES]) < 0 ||
        pstk__index_rows_value(&result->rows, reader->more, reader->n_more, &ignored) < 0 ||
        pstk__index_rows_add(&result->rows, cells) < 0)
        return fail_memory(work, reader->file.err);
    const uint64_t length = strlen(reader->path);
    add_value(&result->sums[PSTK__FIELD_OF_IMAGE], entry.size);
    add_value(&result->sums[work->fields[columns->path]], length);
    result->most = size + reader->n_more > result->most ? size + reader->n_more : result->most;
    result->odd |= pstk__utf8_end(reader->path, length) != length;
    result->bytes += entry.size;
    if (entry.kind != PSTK__STORE_FILE && result->n_missing++ == 0)
        memcpy(result->missing, reader->path, length + 1);
    pstk__index_digest(result->digest, values, size);
    pstk__index_digest(result->digest, reader->more, reader->n_more);
    pstk__index_digest(result->digest, &entry.size, sizeof entry.size);
    return 0;
}

/* Read part number `job`, on a thread of the map. */
static int read_part(void *state, uint64_t job, const struct pstk__map_sink *sink, void *to,
                     struct pstk_error *err)
{
    struct reader *reader = state;
    struct result *result = calloc(1, sizeof *result);
    const struct part *part = &reader->work->parts[job];
    if (!result)
        return fail_memory(reader->work, err);
    *result = (struct result){.rows.n_columns = PSTK__FOLDER_TABLE_COLUMNS, .digest = {1, 2}};
    reader->file.err = reader->file.reader.err = err;
    pstk__table_file_seek(&reader->file, part->at, part->line, part[1].at);
    uint64_t reported = part->at;
    int r = 0;
    while (r == 0 && (r = pstk__table_file_next(&reader->file)) > 0) {
        r = add_row(reader, result);
        if (r == 0 && reader->file.reader.at - reported >= PROGRESS) {
            r = sink->progress(sink->user, reader->file.reader.at - reported) ? PSTK_ECANCELED : 0;
            reported = reader->file.reader.at;
        }
    }
    if (r == 0 && sink->progress(sink->user, part[1].at - reported))
        r = PSTK_ECANCELED;
    if (r < 0) {
        pstk__index_rows_close(&result->rows);
        free(result);
        return r;
    }
    *(struct result **)to = result;
    return 0;
}

/* ---- joining: on the caller's thread --------------------------------------------------------- */

static void drop_part(void *from)
{
    struct result *result = *(struct result **)from;
    pstk__index_rows_close(&result->rows);
    free(result);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void add_found(struct pstk__inferred_schema *found, const struct result *result)
{
    for (uint32_t i = 0; i < found->n_fields; i++) {
        struct pstk__index_field *to = &found->fields[i];
        to->n += result->sums[i].n;
        to->bytes += result->sums[i].bytes;
        to->max_plain = to->max_size = larger(to->max_size, result->sums[i].max_size);
    }
    found->facts[PSTK__FACT_MAX] = larger(found->facts[PSTK__FACT_MAX], result->most);
    found->facts[PSTK__FACT_ODD] |= result->odd;
    pstk__index_digest(found->facts + PSTK__FACT_DIGEST, result->digest, sizeof result->digest);
}

static void join_part(void *user, const void *from)
{
    struct work *work = user;
    struct pstk__index_build *build = work->build;
    struct result *result = *(struct result *const *)from;
    const char *slash = strrchr(work->paths->table, '/');
    const char *name = slash ? slash + 1 : work->paths->table;
    add_found(&build->found, result);
    build->n_joined += result->rows.n;
    if (work->n_missing == 0 && result->n_missing > 0)
        memcpy(work->missing, result->missing, sizeof work->missing);
    work->n_missing += result->n_missing;
    if (build->code == 0 &&
        build->n_joined >= UINT32_MAX - 1) /* each sample is a file, and the index is one more */
        build->code = pstk__fail(build->err, PSTK_EFBIG, PSTK_STAGE_OPEN,
                                 "%s has more than 2^32 rows: split it into several tables",
                                 work->paths->table);
    if (build->code == 0 && result->rows.n > 0)
        build->code = pstk__index_writer_add(build->writer, name, result->bytes,
                                             work->table.changed_ns, &result->rows, build->err);
    pstk__index_rows_close(&result->rows);
    free(result);
}

static int run_map(struct work *work, struct pstk_error *err)
{
    const struct pstk__parallel_map map = {.what = "index",
                                           .n_jobs = work->n_parts,
                                           .n_threads = pstk__indexed_threads(work->opening),
                                           .result_size = sizeof(struct result *),
                                           .user = work,
                                           .open = open_reader,
                                           .close = close_reader,
                                           .run = read_part,
                                           .join = join_part,
                                           .drop = drop_part,
                                           .progress = add_progress};
    return pstk__index_build_result(work->build, pstk__parallel_map_run(&map, err));
}

/* ---- building -------------------------------------------------------------------------------- */

static void set_field(struct pstk__index_field *field, const struct pstk__table_column *column)
{
    field->field = (struct pstk_field){.kind = PSTK_FIELD_UTF8};
    memcpy(field->field.name, column->name, sizeof field->field.name);
    if (column->reading == PSTK__READ_BYTES)
        field->field.kind = PSTK_FIELD_BYTES;
    if (column->reading == PSTK__READ_SCALAR || column->reading == PSTK__READ_CLASS) {
        field->field.kind = PSTK_FIELD_SCALAR;
        field->field.dtype = column->reading == PSTK__READ_CLASS ? PSTK_I64 : column->dtype;
    }
}

/* Begin the fields in the order of a folder's: image, label if there is one, path, the other
 * columns. */
static void begin_fields(struct work *work, struct pstk__inferred_schema *found)
{
    const struct pstk__table_columns *columns = &work->columns;
    *found = (struct pstk__inferred_schema){.n_fields = 1};
    found->facts[PSTK__FACT_LAYOUT] = PSTK__FOLDER_TABLE;
    found->facts[PSTK__FACT_DIGEST] = 1;
    found->facts[PSTK__FACT_DIGEST + 1] = 2;
    found->facts[PSTK__FACT_TABLE_SIZE] = work->table.size;
    found->facts[PSTK__FACT_TABLE_CHANGED] = (uint64_t)work->table.changed_ns;
    found->fields[0].field = (struct pstk_field){.name = "image", .kind = PSTK_FIELD_IMAGE};
    if (columns->label < columns->n) {
        work->fields[columns->label] = found->n_fields;
        set_field(&found->fields[found->n_fields++], &columns->of[columns->label]);
    }
    work->fields[columns->path] = found->n_fields;
    found->fields[found->n_fields++].field =
        (struct pstk_field){.name = "path", .kind = PSTK_FIELD_UTF8};
    for (uint32_t i = 0; i < columns->n; i++)
        if (i != columns->path && i != columns->label) {
            work->fields[i] = found->n_fields;
            set_field(&found->fields[found->n_fields++], &columns->of[i]);
        }
}

/* Check that the table is as it was when the index was requested. */
static int check_table(const struct work *work, const struct pstk__file *file,
                       struct pstk_error *err)
{
    uint64_t size;
    int64_t changed_ns;
    const int r = file->store->stat(file, &size, &changed_ns);
    if (r < 0)
        return pstk__fail_errno(err, -r, PSTK_STAGE_OPEN, "cannot read %s", work->paths->table);
    return size == work->table.size && changed_ns == work->table.changed_ns
               ? 0
               : fail_changed(work, err);
}

/* Read the table twice. */
static int read_table(struct work *work, struct pstk__table_file *file, struct pstk_error *err)
{
    int r = pstk__table_file_open(file, work->opening->store, work->paths->table, work->table.size,
                                  err);
    if (r == 0)
        r = check_table(work, &file->reader.file, err);
    if (r == 0)
        r = pstk__table_columns_find(&work->columns, file, work->opening->foreign);
    if (r < 0)
        return r;
    begin_fields(work, &work->build->found);
    r = survey(work, file);
    if (r == 0)
        r = run_map(work, err);
    return r < 0 ? r : check_table(work, &file->reader.file, err);
}

/* Fail because the table has n images, and none of them exists. */
static int fail_missing(const struct work *work, uint64_t n, struct pstk_error *err)
{
    const char *wrong = pstk__table_path_flaw(work->missing);
    const char *way_out = "give the folder that they are below (root_path)";
    char shown[160]; /* short, so that the advice fits the message, too */
    pstk__folder_show(work->missing, shown, sizeof shown);
    const char *at = work->missing;
    while (*at && (uint8_t)*at < 0x80)
        at++;
    if (*at)
        way_out = "give the folder that they are below (root_path), or write names in the files' "
                  "Unicode form, NFC or NFD";
    return pstk__fail(err, PSTK_ENOENT, PSTK_STAGE_OPEN,
                      "none of the %" PRIu64 " images of %.200s exists: the first is looked for at "
                      "'%.200s%s/%s'; %s",
                      n, work->paths->table, work->paths->root,
                      strlen(work->paths->root) > 200 ? "..." : "", shown, wrong ? wrong : way_out);
}

static int finish(const struct work *work, struct pstk__index_build *build)
{
    struct pstk__inferred_schema *found = &build->found;
    if (build->n_joined > 0 && work->n_missing == build->n_joined)
        return fail_missing(work, build->n_joined, build->err);
    if (pstk__texts_copy(&build->classes, &work->classes.names) < 0)
        return fail_memory(work, build->err);
    if (found->facts[PSTK__FACT_ODD])
        found->fields[work->fields[work->columns.path]].field.kind = PSTK_FIELD_BYTES;
    found->max_record = found->fields[PSTK__FIELD_OF_IMAGE].max_size + found->facts[PSTK__FACT_MAX];
    return 0;
}

/* The build callback of store/index/location.h. */
static int build(void *user, struct pstk__index_build *build)
{
    struct work *work = user;
    struct pstk__table_file *file = calloc(1, sizeof *file);
    struct pstk_error *err = build->err;
    work->build = build;
    work->n_missing = work->n_parts = 0;
    memset(work->first_labels, 0, sizeof work->first_labels);
    memset(work->digits, 0, sizeof work->digits);
    pstk__table_classes_close(&work->classes);
    if (!file)
        return fail_memory(work, err);
    int r = read_table(work, file, err);
    pstk__table_file_close(file);
    free(file);
    if (r == PSTK_ECANCELED)
        return pstk__fail(err, r, PSTK_STAGE_OPEN, "indexing %s was canceled; nothing was saved",
                          work->paths->table);
    return r < 0 ? r : finish(work, build);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* The differs callback of store/index/location.h: returns why the table differs from the index. */
static const char *differs(void *user, const struct pstk__index *index)
{
    const struct work *work = user;
    const uint64_t *facts = index->found.facts;
    if (facts[PSTK__FACT_TABLE_SIZE] != work->table.size)
        return "the table has another size";
    return (int64_t)facts[PSTK__FACT_TABLE_CHANGED] == work->table.changed_ns
               ? NULL
               : "the table was changed";
}

/* Digest the version of a scan, the table's name, the root folder given, and the types that the
 * caller wants. The table's size and time are compared by differs. */
static void digest_key(const struct work *work, uint64_t key[2])
{
    const struct pstk_foreign *foreign = work->opening->foreign;
    const uint64_t version =
        (uint64_t)PSTK__INDEX_VERSION << 32 | VERSION << 8 | PSTK__FOLDER_TABLE;
    const char *name = strrchr(work->paths->table, '/');
    name = name ? name + 1 : work->paths->table;
    key[0] = 1;
    key[1] = 2;
    pstk__index_digest(key, &version, sizeof version);
    pstk__index_digest(key, name, strlen(name));
    if (foreign && foreign->root_path)
        pstk__index_digest(key, work->paths->real, strlen(work->paths->real));
    for (uint32_t i = 0; foreign && i < foreign->n_fields; i++) {
        const struct pstk_field *field = &foreign->fields[i];
        const uint64_t type = (uint64_t)field->kind << 32 | field->dtype;
        pstk__index_digest(key, field->name, strlen(field->name));
        pstk__index_digest(key, &type, sizeof type);
    }
}

/* Set the position of the index: next to the folder of the table, since a folder in it could be
 * taken for an empty class. */
static int location_of(const struct work *work, char folder[PATH_MAX],
                       struct pstk__index_location *location, struct pstk_error *err)
{
    const struct pstk_foreign *foreign = work->opening->foreign;
    if (!realpath(work->paths->folder, folder))
        return pstk__fail_errno(err, errno, PSTK_STAGE_OPEN, "cannot open %s", work->paths->folder);
    *location = (struct pstk__index_location){.data = folder,
                                              .cache = foreign ? foreign->cache_path : NULL,
                                              .format = pstk__format_folder.name,
                                              .path_digest = {1, 2}};
    digest_key(work, location->key);
    pstk__index_digest(location->path_digest, folder, strlen(folder));
    char *slash = strrchr(folder, '/');
    pstk__index_digest(location->key, slash + 1, strlen(slash + 1));
    slash[slash == folder] = 0;
    return 0;
}

int pstk__table_get_index(struct pstk__index **out, const struct pstk__opening *opening,
                          const struct pstk__table_paths *paths, struct pstk_error *err)
{
    const struct pstk_foreign *foreign = opening->foreign;
    struct pstk__index_location location;
    char folder[PATH_MAX];
    struct work *work = calloc(1, sizeof *work);
    *out = NULL;
    if (!work)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to open %s", opening->path);
    work->opening = opening;
    work->paths = paths;
    const int found = opening->store->look(opening->store, paths->table, &work->table);
    int r = found < 0
                ? pstk__fail_errno(err, -found, PSTK_STAGE_OPEN, "cannot open %s", paths->table)
                : location_of(work, folder, &location, err);
    const struct pstk__index_work index_work = {
        .user = work, .differs = differs, .build = build, .watch = pstk__index_watch_of(foreign)};
    if (r == 0)
        r = pstk__index_get(out, &location, &index_work, err);
    pstk__table_classes_close(&work->classes);
    free(work->parts);
    free(work);
    return r;
}
