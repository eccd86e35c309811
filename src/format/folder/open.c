/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "base/little.h"
#include "format/coding.h"
#include "format/folder/folder.h"
#include "format/folder/name.h"
#include "format/folder/scan.h"
#include "format/table/table.h"
#include "format/table/more.h"
#include "format/table/paths.h"
#include "format/table/scan.h"
#include "format/folder/tree.h"
#include "format/folder/values.h"
#include "format/indexed.h"

#include <errno.h>
#include <limits.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_VALUES (PSTK__VALUES_MAX + 2 * PSTK__TABLE_MAX_ROW) /* max bytes for a table's row */

/* The state of a source: a folder or a table. */
struct state {
    struct pstk__indexed indexed; /* first member; the shared part of formats with an index */
    struct pstk__file index;      /* open index, to look up names of files; owned */
    uint32_t path_field;          /* number of the field `path`: the last one in a folder */
    char *root;                   /* folder that paths of images are below; owned */
    char *table;                  /* file of the table that lists them, owned, or NULL */
};

static const struct state *state_of(const struct pstk__source *source)
{
    return source->state;
}

static int has_labels(const struct pstk__source *source)
{
    return state_of(source)->path_field > PSTK__FIELD_OF_LABEL;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Give a field the kind that the caller wants. */
static int retype(const struct state *state, uint32_t i, struct pstk__index_field *field,
                  const struct pstk_field *wanted, struct pstk_error *err)
{
    const uint32_t kind = wanted->kind;
    if (i == PSTK__FIELD_OF_IMAGE && kind != PSTK_FIELD_IMAGE && kind != PSTK_FIELD_BYTES)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "field image: its kind is %u; must be image or bytes", kind);
    if (i == state->path_field && kind != PSTK_FIELD_UTF8 && kind != PSTK_FIELD_BYTES)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "field path: its kind is %u; must be utf8 or bytes", kind);
    if (state->table && i != PSTK__FIELD_OF_IMAGE && i != state->path_field)
        return 0; /* the index has the column in that type */
    if (i != PSTK__FIELD_OF_IMAGE && i != state->path_field &&
        (kind != PSTK_FIELD_SCALAR || wanted->dtype != PSTK_I64))
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "field label: its kind is %u; must be a scalar of int64", kind);
    field->field.kind = wanted->kind;
    return 0;
}

static int retype_all(const struct state *state, struct pstk__inferred_schema *found,
                      const struct pstk_foreign *foreign, struct pstk_error *err)
{
    int r = 0;
    for (uint32_t i = 0; r == 0 && foreign && i < foreign->n_fields; i++) {
        const int k = pstk__index_find_field(found, foreign->fields[i].name);
        if (k >= 0)
            r = retype(state, (uint32_t)k, &found->fields[k], &foreign->fields[i], err);
    }
    return r;
}

/* Return the number of the field of paths, the first one that is neither image nor label; n_fields:
 * there is none. */
static uint32_t find_path(const struct pstk__inferred_schema *found)
{
    uint32_t i = PSTK__FIELD_OF_IMAGE + 1;
    while (i < found->n_fields && i < PSTK__FIELD_OF_LABEL + 2 &&
           strcmp(found->fields[i].field.name, "path") != 0)
        i++;
    return i < PSTK__FIELD_OF_LABEL + 2 ? i : found->n_fields;
}

/* 1: the number of fields and the bytes of values are within the limits of a scan. A table's row
 * may add the bytes of its cells, and of their sizes. */
static int is_found(const struct state *state, const struct pstk__inferred_schema *found)
{
    const uint64_t *facts = found->facts, layout = facts[PSTK__FACT_LAYOUT];
    if (state->table)
        return layout == PSTK__FOLDER_TABLE && found->n_fields >= 2 &&
               find_path(found) < found->n_fields && facts[PSTK__FACT_MAX] <= MAX_VALUES;
    return layout < PSTK__FOLDER_LAYOUTS &&
           found->n_fields == (layout == PSTK__FOLDER_CLASSES ? 3u : 2u) &&
           facts[PSTK__FACT_MAX] <= PSTK__VALUES_MAX;
}

/* Check the index. It is of this library's version, but its contents may be wrong, since anybody
 * may have written it. */
static int check_found(const struct state *state, const struct pstk__index *index,
                       struct pstk_error *err)
{
    if (is_found(state, &index->found) && index->n_samples > 0 &&
        index->n_samples < UINT32_MAX - 1 &&
        index->found.fields[PSTK__FIELD_OF_IMAGE].max_size <= UINT32_MAX)
        return 0;
    return pstk__index_fail(index, PSTK_STAGE_OPEN, err, "is damaged");
}

/* Set the identity. It depends on labels (in a table: lines and columns), paths, sizes and the
 * schema, but not on times, so that a copy of the folder has the same. */
static void set_identity(struct pstk__source *source, const struct pstk__inferred_schema *found)
{
    uint64_t digest[2] = {found->facts[PSTK__FACT_DIGEST], found->facts[PSTK__FACT_DIGEST + 1]};
    pstk__index_digest(digest, &source->schema.crc, sizeof source->schema.crc);
    snprintf(source->identity, sizeof source->identity, "%016" PRIx64 "%016" PRIx64, digest[0],
             digest[1]);
}

static int describe(struct pstk__source *source, const struct pstk__opening *opening,
                    struct pstk_error *err)
{
    struct state *state = source->state;
    struct pstk__index *index = state->indexed.index;
    struct pstk__inferred_schema *found = malloc(sizeof *found);
    if (!found)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to open %s", opening->path);
    *found = index->found;
    int r = retype_all(state, found, opening->foreign, err);
    if (r == 0)
        r = pstk__indexed_describe(source, found, err);
    index->found = *found; /* with the types that the caller wants, and the codings of the schema */
    free(found);
    source->names = index->classes; /* owned by the index */
    source->n_files = source->n_samples + 1;
    source->n_left_out = index->found.facts[PSTK__FACT_LEFT_OUT];
    set_identity(source, &index->found);
    return r;
}

/* Opens the index of a folder or a table, and sets the paths in the state. */
typedef int (*get_index_fn)(struct pstk__source *source, const struct pstk__opening *opening,
                            struct pstk_error *err);

static int get_table_index(struct pstk__source *source, const struct pstk__opening *opening,
                           struct pstk_error *err)
{
    char table[PATH_MAX];
    struct state *state = source->state;
    int r = pstk__table_find(opening->store, opening->path, table, err);
    if (r < 0)
        return r;
    if (r == 0)
        return pstk__fail(err, PSTK_ENOENT, PSTK_STAGE_OPEN, "%s: the table was removed",
                          opening->path);
    struct pstk__table_paths *paths = malloc(sizeof *paths);
    r = paths ? pstk__table_paths_of(paths, opening, table, err) : PSTK_ENOMEM;
    if (r == 0) {
        state->root = strdup(paths->root);
        state->table = strdup(paths->table);
        state->indexed.folder = strdup(paths->folder);
        if (!state->root || !state->table || !state->indexed.folder)
            r = PSTK_ENOMEM;
    }
    if (r == PSTK_ENOMEM)
        r = pstk__fail(err, r, PSTK_STAGE_OPEN, "no memory to open %s", opening->path);
    if (r == 0)
        r = pstk__table_get_index(&state->indexed.index, opening, paths, err);
    free(paths);
    return r;
}

static int get_folder_index(struct pstk__source *source, const struct pstk__opening *opening,
                            struct pstk_error *err)
{
    struct state *state = source->state;
    state->indexed.folder = strdup(opening->path);
    state->root = strdup(opening->path);
    if (!state->indexed.folder || !state->root)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to open %s", opening->path);
    return pstk__folder_get_index(&state->indexed.index, opening, err);
}

static int fill(struct pstk__source *source, const struct pstk__opening *opening,
                get_index_fn get_index, struct pstk_error *err)
{
    struct state *state = calloc(1, sizeof *state);
    source->state = state;
    source->path = strdup(opening->path);
    if (!source->path || !state)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to open %s", opening->path);
    int r = get_index(source, opening, err);
    if (r == 0)
        r = check_found(state, state->indexed.index, err);
    if (r < 0)
        return r;
    const struct pstk__index *index = state->indexed.index;
    state->path_field = find_path(&index->found);
    char path[PATH_MAX];
    r = pstk__index_file_path(index, path, sizeof path) < 0 ? -ENAMETOOLONG : 0;
    if (r == 0)
        r = source->store->open(source->store, &state->index, path);
    if (r < 0)
        return pstk__fail_errno(err, -r, PSTK_STAGE_OPEN, "cannot open the index %s", index->path);
    return describe(source, opening, err);
}

static void folder_close(struct pstk__source *source)
{
    struct state *state = source->state;
    if (state) {
        pstk__file_end(&state->index);
        free(state->root);
        free(state->table);
    }
    pstk__indexed_close(source);
}

static int open_as(struct pstk__source **out, const struct pstk__format *format,
                   get_index_fn get_index, const struct pstk__opening *opening,
                   struct pstk_error *err)
{
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s", opening->path);
    *out = NULL;
    if (n < 0 || (size_t)n >= sizeof path)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "the path is too long: %.400s...",
                          opening->path);
    for (int end = n; end > 1 && path[end - 1] == '/'; end--)
        path[end - 1] = 0;
    const struct pstk__opening bare = {
        .store = opening->store, .path = path, .foreign = opening->foreign};
    struct pstk__source *source = calloc(1, sizeof *source);
    if (!source)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to open %s", path);
    source->format = format;
    source->store = opening->store;
    const int r = fill(source, &bare, get_index, err);
    if (r < 0) {
        folder_close(source);
        return r;
    }
    *out = source;
    return 0;
}

static int folder_open(struct pstk__source **out, const struct pstk__opening *opening,
                       struct pstk_error *err)
{
    return open_as(out, &pstk__format_folder, get_folder_index, opening, err);
}

static int table_open(struct pstk__source **out, const struct pstk__opening *opening,
                      struct pstk_error *err)
{
    return open_as(out, &pstk__format_table, get_table_index, opening, err);
}

/* ---- where things are ------------------------------------------------------------------------ */

static int has_image(uint64_t fields)
{
    return fields >> PSTK__FIELD_OF_IMAGE & 1;
}

/* Return the number of a sample's extents: its image, if it is wanted, and always its values, which
 * contain the file's name. */
static uint32_t folder_n_extents(const struct pstk__source *source, uint64_t fields)
{
    (void)source;
    return has_image(fields) ? 2 : 1;
}

/* Return the max or the mean bytes that are read for a sample. The mean, too, takes the max of the
 * values. */
static uint64_t folder_read_size(const struct pstk__source *source, uint64_t fields, int is_max)
{
    const uint64_t values = pstk__indexed_index(source)->found.facts[PSTK__FACT_MAX];
    const uint64_t image =
        is_max ? source->limits.max_stored[PSTK__FIELD_OF_IMAGE]
               : source->stats[PSTK__FIELD_OF_IMAGE].stored_bytes / source->n_samples;
    return values + (has_image(fields) ? image : 0);
}

static void folder_page(const struct pstk__source *source, const struct pstk__sample_location *at,
                        struct pstk__extent *page)
{
    pstk__indexed_page(source, at, page);
    page->file = (uint32_t)source->n_samples;
}

/* The numbers of a sample in the index. */
struct row {
    uint64_t values, values_size; /* range of bytes in the index file */
    uint64_t more_size;           /* bytes of a table's columns, after the values */
    uint64_t size;                /* bytes of the image's file */
    int64_t changed_ns;
};

/* Read the row of a sample. 0, or EBADMSG: its numbers do not fit the index. */
static int get_row(const struct pstk__source *source, const struct pstk__sample_location *at,
                   const void *page, struct row *row)
{
    const struct pstk__index *index = pstk__indexed_index(source);
    const struct pstk__index_file *dir = &index->files[at->shard];
    const uint64_t room = dir->values_end - dir->values;
    const uint64_t begin = pstk__indexed_cell(source, at, page, PSTK__FOLDER_VALUES);
    *row = (struct row){0};
    row->values = dir->values + begin;
    row->values_size = pstk__indexed_cell(source, at, page, PSTK__FOLDER_VALUES_SIZE);
    row->size = pstk__indexed_cell(source, at, page, PSTK__FOLDER_SIZE);
    row->changed_ns = (int64_t)pstk__indexed_cell(source, at, page, PSTK__FOLDER_CHANGED);
    if (state_of(source)->table)
        row->more_size = pstk__indexed_cell(source, at, page, PSTK__FOLDER_MORE);
    return begin > room || row->values_size > PSTK__VALUES_MAX || row->more_size > room - begin ||
                   row->values_size > room - begin - row->more_size ||
                   row->values_size + row->more_size > index->found.facts[PSTK__FACT_MAX] ||
                   row->size > source->limits.max_stored[PSTK__FIELD_OF_IMAGE]
               ? PSTK_EBADMSG
               : 0;
}

static int fail_index(const struct pstk__source *source, uint64_t record, const char *why,
                      struct pstk_error *err)
{
    const struct pstk__index *index = pstk__indexed_index(source);
    pstk__index_fail(index, PSTK_STAGE_RECORD, err, "is damaged: record %" PRIu64 ": %s", record,
                     why);
    return pstk__fail_at(err, PSTK_EBADMSG, index->path, record, PSTK_NONE, 0);
}

static int folder_extent(const struct pstk__source *source, const struct pstk__sample_location *at,
                         uint64_t fields, const void *page, struct pstk__extent *out,
                         struct pstk_error *err)
{
    const struct pstk__index_file *dir = &pstk__indexed_index(source)->files[at->shard];
    struct row row;
    if (get_row(source, at, page, &row) < 0)
        return fail_index(source, at->record, "its row is wrong", err);
    if (has_image(fields))
        *out++ = (struct pstk__extent){.file = (uint32_t)(dir->first + at->record),
                                       .record = at->record,
                                       .size = row.size,
                                       .whole_size = row.size};
    *out = (struct pstk__extent){.file = (uint32_t)source->n_samples,
                                 .record = at->record,
                                 .page = (uint32_t)row.values_size, /* used by parse */
                                 .offset = row.values,
                                 .size = row.values_size + row.more_size,
                                 .whole_size = row.values_size + row.more_size};
    return 0;
}

/* ---- a sample -------------------------------------------------------------------------------- */

/* Fail because the image's file is empty, or was missing when the index was built. */
static int fail_empty(const struct pstk__source *source, const struct pstk__folder_values *values,
                      struct pstk__record *out, struct pstk_error *err)
{
    const char *table = state_of(source)->table;
    if (!table)
        return pstk__record_fail(out, PSTK__FIELD_OF_IMAGE, PSTK_EBADMSG, PSTK_STAGE_RECORD, err,
                                 "the file is empty, or a link to nothing");
    char path[PSTK__VALUES_MAX_PATH];
    snprintf(path, sizeof path, "%.*s", (int)values->path_size, (const char *)values->path);
    const char *wrong = pstk__table_path_flaw(path);
    return pstk__record_fail(out, PSTK__FIELD_OF_IMAGE, PSTK_EBADMSG, PSTK_STAGE_RECORD, err,
                             "the file is empty, or was missing when %s was indexed, which has it "
                             "in line %" PRIu64 "; once it is there, touch the table%s%s",
                             table, pstk__get64(values->number), wrong ? "; " : "",
                             wrong ? wrong : "");
}

static int parse_image(const struct pstk__source *source, const struct pstk__extent *extent,
                       struct pstk__record *out, struct pstk_error *err)
{
    char text[160];
    const char *wrong =
        pstk__coding_view(&out->fields[PSTK__FIELD_OF_IMAGE],
                          &pstk__indexed_index(source)->found.fields[PSTK__FIELD_OF_IMAGE],
                          extent->data, extent->size, text);
    return wrong ? pstk__record_fail(out, PSTK__FIELD_OF_IMAGE, PSTK_EBADMSG, PSTK_STAGE_RECORD,
                                     err, "%s", wrong)
                 : 0;
}

static void view_bytes(struct pstk__field_view *view, const void *data, uint32_t size)
{
    view->data = data;
    view->stored_size = view->plain_size = size;
}

/* View the wanted columns of a table's row. */
static int parse_more(const struct pstk__source *source, const struct pstk__sample_location *at,
                      uint64_t fields, const uint8_t *bytes, uint64_t size,
                      struct pstk__record *out, struct pstk_error *err)
{
    const struct pstk__inferred_schema *found = &pstk__indexed_index(source)->found;
    const uint32_t path = state_of(source)->path_field;
    const uint8_t *data[PSTK_MAX_FIELDS];
    uint32_t sizes[PSTK_MAX_FIELDS], n = 0;
    char text[160];
    const char *wrong = pstk__table_more_read(bytes, size, found->n_fields - 2, data, sizes);
    for (uint32_t i = PSTK__FIELD_OF_IMAGE + 1; !wrong && i < found->n_fields; i++) {
        const struct pstk_field *field = &found->fields[i].field;
        if (i == path)
            continue;
        if (field->kind == PSTK_FIELD_SCALAR && sizes[n] != pstk_dtype_size(field->dtype))
            wrong = "a scalar has another size than its dtype";
        else if (fields >> i & 1)
            wrong = pstk__coding_view(&out->fields[i], &found->fields[i], data[n], sizes[n], text);
        n++;
    }
    return wrong ? fail_index(source, at->record, wrong, err) : 0;
}

static int folder_parse(const struct pstk__source *source, const struct pstk__sample_location *at,
                        uint64_t fields, const struct pstk__extent *extents, uint32_t n_extents,
                        struct pstk__record *out, struct pstk_error *err)
{
    const struct pstk__extent *own = &extents[n_extents - 1];
    const uint32_t path = state_of(source)->path_field;
    const uint64_t size = own->page < own->size ? own->page : own->size;
    struct pstk__folder_values values;
    const char *wrong = pstk__folder_values_read(&values, own->data, size);
    if (wrong)
        return fail_index(source, at->record, wrong, err);
    pstk__indexed_begin(source, at, 0, out);
    out->shard = values.shown;
    out->file = (uint32_t)(pstk__indexed_index(source)->files[at->shard].first + at->record);
    if (!state_of(source)->table && has_labels(source))
        view_bytes(&out->fields[PSTK__FIELD_OF_LABEL], values.number, 8);
    view_bytes(&out->fields[path], values.path, values.path_size);
    const int r = state_of(source)->table
                      ? parse_more(source, at, fields, own->data + size, own->size - size, out, err)
                      : 0;
    if (r < 0 || n_extents == 1)
        return r;
    return extents[0].size == 0 ? fail_empty(source, &values, out, err)
                                : parse_image(source, &extents[0], out, err);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Read the row of the sample with file number `file`. Any thread; never allocates. */
static int look_up(const struct pstk__source *source, uint32_t file, struct row *row)
{
    const struct state *state = state_of(source);
    _Alignas(64) uint8_t bytes[PSTK__PAGE_SIZE];
    struct pstk__sample_location at;
    struct pstk__extent page;
    pstk__indexed_locate(source, file, &at);
    pstk__indexed_page(source, &at, &page);
    const int64_t n = pstk__file_read(&state->index, bytes, page.size, page.offset);
    if (n < 0)
        return (int)n;
    if (n != PSTK__PAGE_SIZE || pstk__indexed_page_check(source, &page, bytes, NULL) < 0)
        return PSTK_EBADMSG;
    return get_row(source, &at, bytes, row);
}

/* As look_up, and read the sample's values into `bytes`, which *values points into. */
static int look_up_values(const struct pstk__source *source, uint32_t file,
                          uint8_t bytes[PSTK__VALUES_MAX], struct pstk__folder_values *values)
{
    struct row row;
    const int r = look_up(source, file, &row);
    if (r < 0)
        return r;
    const int64_t n = pstk__file_read(&state_of(source)->index, bytes, row.values_size, row.values);
    if (n < 0)
        return (int)n;
    return (uint64_t)n != row.values_size ||
                   pstk__folder_values_read(values, bytes, row.values_size)
               ? PSTK_EBADMSG
               : 0;
}

static void folder_file_shown(const struct pstk__source *source, uint32_t file, char *name,
                              size_t size)
{
    uint8_t bytes[PSTK__VALUES_MAX];
    struct pstk__folder_values values;
    if (file == source->n_samples)
        snprintf(name, size, "%s", pstk__indexed_index(source)->path);
    else if (look_up_values(source, file, bytes, &values) < 0)
        snprintf(name, size, "image %u", file);
    else
        snprintf(name, size, "%s", values.shown);
}

static int folder_file_path(const struct pstk__source *source, uint32_t file, char *path,
                            size_t size)
{
    uint8_t bytes[PSTK__VALUES_MAX];
    struct pstk__folder_values values;
    if (file == source->n_samples)
        return pstk__index_file_path(pstk__indexed_index(source), path, size);
    const int r = look_up_values(source, file, bytes, &values);
    if (r < 0)
        return r;
    const int n = snprintf(path, size, "%s/%s", state_of(source)->root, values.path);
    return n < 0 || (size_t)n >= size ? PSTK_EINVAL : 0;
}

static int check_index(const struct pstk__source *source, uint64_t size, int64_t changed_ns,
                       struct pstk_error *err)
{
    const struct pstk__index *index = pstk__indexed_index(source);
    if (size == index->size && changed_ns == index->changed_ns)
        return 0;
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_SHARD,
                      "the index %s was built again since the data set was opened: open the data "
                      "set again",
                      index->path);
}

/* Check that the table has the size and time that it had when it was indexed. Never allocates. */
static int check_table(const struct pstk__source *source, struct pstk_error *err)
{
    const uint64_t *facts = pstk__indexed_index(source)->found.facts;
    const char *table = state_of(source)->table;
    struct pstk__store_entry entry;
    const int r = source->store->look(source->store, table, &entry);
    if (r == 0 && entry.size == facts[PSTK__FACT_TABLE_SIZE] &&
        entry.changed_ns == (int64_t)facts[PSTK__FACT_TABLE_CHANGED])
        return 0;
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_SHARD,
                      "%s was %s since the data set was opened: open the data set again", table,
                      r == 0 ? "changed or replaced" : "removed");
}

static int fail_changed(const struct pstk__source *source, uint32_t number, int is_size,
                        struct pstk_error *err)
{
    char name[PSTK__MAX_SHOWN];
    const char *index = pstk__indexed_index(source)->path, *table = state_of(source)->table;
    const char *what = is_size ? "its size" : "its time of change";
    folder_file_shown(source, number, name, sizeof name);
    if (table)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_SHARD,
                          "%s was changed since %s was indexed (%s differs): remove the index %s, "
                          "and open the data set again",
                          name, table, what, index);
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_SHARD,
                      "%s was changed since its folder was indexed (%s differs): open the data set "
                      "again; if it was changed in place, remove the index %s first",
                      name, what, index);
}

/* Check that a file was not changed since the index was built: its size and time are those in its
 * row. For the index's own file: those that it had when it was opened. */
static int folder_file_check(const struct pstk__source *source, uint32_t number,
                             const struct pstk__file *file, struct pstk_error *err)
{
    char name[PSTK__MAX_SHOWN];
    uint64_t size;
    int64_t changed_ns;
    struct row row;
    int r = file->store->stat(file, &size, &changed_ns);
    if (r == 0 && number == source->n_samples)
        return check_index(source, size, changed_ns, err);
    if (r == 0)
        r = look_up(source, number, &row);
    if (r == 0 && state_of(source)->table && check_table(source, err) < 0)
        return PSTK_EBADMSG;
    if (r == 0 && size == row.size && changed_ns == row.changed_ns)
        return 0;
    if (!err)
        return r < 0 ? r : PSTK_EBADMSG;
    folder_file_shown(source, number, name, sizeof name);
    if (r == PSTK_EBADMSG)
        return fail_index(source, number, "its row is wrong", err);
    if (r < 0)
        return pstk__fail_errno(err, -r, PSTK_STAGE_SHARD, "cannot read %s", name);
    return fail_changed(source, number, size != row.size, err);
}

/* The entry of a format whose samples are files of images. */
#define ENTRY_OF_IMAGES(name_, needs_, files_, has_directory_, probe_, open_)                      \
    {                                                                                              \
        .name = (name_), .needs = (needs_), .files = (files_), .file = "image",                    \
        .checksum = PSTK__CHECKSUM_NONE, .has_directory = (has_directory_), .has_file_each = 1,    \
        .probe = (probe_), .open = (open_), .close = folder_close, .index = pstk__indexed_index,   \
        .locate = pstk__indexed_locate, .range = pstk__indexed_range, .page = folder_page,         \
        .page_check = pstk__indexed_page_check, .n_extents = folder_n_extents,                     \
        .extent = folder_extent, .parse = folder_parse, .read_size = folder_read_size,             \
        .file_shown = folder_file_shown, .file_path = folder_file_path,                            \
        .file_check = folder_file_check,                                                           \
    }

const struct pstk__format pstk__format_folder =
    ENTRY_OF_IMAGES("folder", "JPEG or PNG images, in class folders or flat", NULL, 0,
                    pstk__folder_probe, folder_open);

const struct pstk__format pstk__format_table = ENTRY_OF_IMAGES(
    "table", "a metadata.csv or .jsonl that lists images",
    ".csv, .tsv, .jsonl or .ndjson table of images", 1, pstk__table_probe, table_open);
