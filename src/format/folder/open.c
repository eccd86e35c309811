/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "format/folder/folder.h"
#include "format/folder/name.h"
#include "format/folder/scan.h"
#include "format/folder/tree.h"
#include "format/folder/values.h"
#include "format/form.h"
#include "format/indexed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The state of such a source. */
struct state {
    struct pstk__indexed indexed; /* first: what formats with an index share */
    struct pstk__file index;      /* owned; for names of files */
    uint32_t path_field;          /* number of the field `path`: of the last one */
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
    if (i != PSTK__FIELD_OF_IMAGE && i != state->path_field &&
        (kind != PSTK_FIELD_SCALAR || wanted->dtype != PSTK_I64))
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "field label: its kind is %u; must be a scalar of int64", kind);
    field->field.kind = wanted->kind;
    return 0;
}

static int retype_all(const struct state *state, struct pstk__index_found *found,
                      const struct pstk_foreign *foreign, struct pstk_error *err)
{
    int r = 0;
    for (uint32_t i = 0; r == 0 && foreign && i < foreign->n_fields; i++)
        for (uint32_t k = 0; r == 0 && k < found->n_fields; k++)
            if (strcmp(found->fields[k].field.name, foreign->fields[i].name) == 0)
                r = retype(state, k, &found->fields[k], &foreign->fields[i], err);
    return r;
}

/* The index is of this version of the library, but anyone may have written it. */
static int check_found(const struct pstk__index *index, struct pstk_error *err)
{
    const uint64_t *facts = index->found.facts;
    const uint32_t n = facts[PSTK__FACT_LAYOUT] == PSTK__FOLDER_CLASSES ? 3 : 2;
    if (index->found.n_fields == n && facts[PSTK__FACT_MOST] <= PSTK__VALUES_MAX &&
        index->n_samples > 0 && index->n_samples < UINT32_MAX - 1 &&
        index->found.fields[PSTK__FIELD_OF_IMAGE].max_size <= UINT32_MAX)
        return 0;
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                      "the index %s is damaged; remove it, and it is built again", index->path);
}

/* A copy of the folder has the same identity: it is of labels, paths and sizes, not of times. */
static void set_identity(struct pstk__source *source, const struct pstk__index_found *found)
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
    struct pstk__index_found *found = malloc(sizeof *found);
    if (!found)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to open %s", opening->path);
    *found = index->found;
    int r = retype_all(state, found, opening->foreign, err);
    if (r == 0)
        r = pstk__indexed_describe(source, found, err);
    index->found = *found; /* the forms of its fields are those of the schema */
    free(found);
    source->names = index->classes; /* the index owns them */
    source->n_files = source->n_samples + 1;
    set_identity(source, &index->found);
    return r;
}

static int fill(struct pstk__source *source, const struct pstk__opening *opening,
                struct pstk_error *err)
{
    struct state *state = calloc(1, sizeof *state);
    source->state = state;
    source->path = strdup(opening->path);
    if (state)
        state->indexed.folder = strdup(opening->path);
    if (!source->path || !state || !state->indexed.folder)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to open %s", opening->path);
    int r = pstk__folder_get_index(&state->indexed.index, opening, err);
    if (r == 0)
        r = check_found(state->indexed.index, err);
    if (r < 0)
        return r;
    const struct pstk__index *index = state->indexed.index;
    state->path_field = index->found.n_fields - 1;
    r = source->store->open(source->store, &state->index, index->path);
    if (r < 0)
        return pstk__fail_errno(err, -r, PSTK_STAGE_OPEN, "cannot open the index %s", index->path);
    return describe(source, opening, err);
}

static void folder_close(struct pstk__source *source)
{
    struct state *state = source->state;
    if (state)
        pstk__file_end(&state->index);
    pstk__indexed_close(source);
}

static int folder_open(struct pstk__source **out, const struct pstk__opening *opening,
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
    source->format = &pstk__format_folder;
    source->store = opening->store;
    const int r = fill(source, &bare, err);
    if (r < 0) {
        folder_close(source);
        return r;
    }
    *out = source;
    return 0;
}

/* ---- where things are ------------------------------------------------------------------------ */

static int has_image(uint64_t fields)
{
    return fields >> PSTK__FIELD_OF_IMAGE & 1;
}

/* The image, if it is wanted, and the values, which always are: they have the file's name. */
static uint32_t folder_n_extents(const struct pstk__source *source, uint64_t fields)
{
    (void)source;
    return has_image(fields) ? 2 : 1;
}

/* Bytes of a sample that are read: the most, or on average. */
static uint64_t folder_read_size(const struct pstk__source *source, uint64_t fields, int is_most)
{
    const uint64_t values = pstk__indexed_index(source)->found.facts[PSTK__FACT_MOST];
    const uint64_t image =
        is_most ? source->limits.max_stored[PSTK__FIELD_OF_IMAGE]
                : source->stats[PSTK__FIELD_OF_IMAGE].stored_bytes / source->n_samples;
    return values + (has_image(fields) ? image : 0);
}

static void folder_page(const struct pstk__source *source, const struct pstk__place *at,
                        struct pstk__extent *page)
{
    pstk__indexed_page(source, at, page);
    page->file = (uint32_t)source->n_samples;
}

/* What the index has of a sample. */
struct row {
    uint64_t values, values_size; /* bytes of the index file */
    uint64_t size;                /* bytes of the image's file */
    int64_t changed_ns;
};

/* 0, or EBADMSG: its numbers do not fit the index. */
static int get_row(const struct pstk__source *source, const struct pstk__place *at,
                   const void *page, struct row *row)
{
    const struct pstk__index *index = pstk__indexed_index(source);
    const struct pstk__index_file *dir = &index->files[at->shard];
    const uint64_t room = dir->values_end - dir->values;
    const uint64_t begin = pstk__indexed_cell(source, at, page, PSTK__FOLDER_VALUES);
    row->values = dir->values + begin;
    row->values_size = pstk__indexed_cell(source, at, page, PSTK__FOLDER_VALUES_SIZE);
    row->size = pstk__indexed_cell(source, at, page, PSTK__FOLDER_SIZE);
    row->changed_ns = (int64_t)pstk__indexed_cell(source, at, page, PSTK__FOLDER_CHANGED);
    return begin > room || row->values_size > room - begin ||
                   row->values_size > index->found.facts[PSTK__FACT_MOST] ||
                   row->size > source->limits.max_stored[PSTK__FIELD_OF_IMAGE]
               ? PSTK_EBADMSG
               : 0;
}

static int fail_index(const struct pstk__source *source, uint64_t record, const char *why,
                      struct pstk_error *err)
{
    const char *path = pstk__indexed_index(source)->path;
    pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_RECORD,
               "the index %s is damaged: record %" PRIu64 ": %s; remove it, and it is built again",
               path, record, why);
    return pstk__fail_at(err, PSTK_EBADMSG, path, record, PSTK_NONE, 0);
}

static int folder_extent(const struct pstk__source *source, const struct pstk__place *at,
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
                                 .offset = row.values,
                                 .size = row.values_size,
                                 .whole_size = row.values_size};
    return 0;
}

/* ---- a sample -------------------------------------------------------------------------------- */

static int parse_image(const struct pstk__source *source, const struct pstk__extent *extent,
                       struct pstk__record *out, struct pstk_error *err)
{
    char text[160];
    if (extent->size == 0)
        return pstk__record_fail(out, PSTK__FIELD_OF_IMAGE, PSTK_EBADMSG, PSTK_STAGE_RECORD, err,
                                 "the file is empty, or a link to nothing");
    const char *wrong =
        pstk__form_view(&out->fields[PSTK__FIELD_OF_IMAGE],
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

static int folder_parse(const struct pstk__source *source, const struct pstk__place *at,
                        uint64_t fields, const struct pstk__extent *extents, uint32_t n_extents,
                        struct pstk__record *out, struct pstk_error *err)
{
    (void)fields;
    const struct pstk__extent *own = &extents[n_extents - 1];
    const uint32_t path = state_of(source)->path_field;
    struct pstk__folder_values values;
    const char *wrong = pstk__folder_values_read(&values, own->data, own->size);
    if (wrong)
        return fail_index(source, at->record, wrong, err);
    pstk__indexed_begin(source, at, 0, out);
    out->shard = values.shown;
    out->file = (uint32_t)(pstk__indexed_index(source)->files[at->shard].first + at->record);
    if (has_labels(source))
        view_bytes(&out->fields[PSTK__FIELD_OF_LABEL], values.label, 8);
    view_bytes(&out->fields[path], values.path, values.path_size);
    return n_extents > 1 ? parse_image(source, &extents[0], out, err) : 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Read what the index has of file number `file`, a sample's. Any thread; allocates nothing. */
static int look_up(const struct pstk__source *source, uint32_t file, struct row *row)
{
    const struct state *state = state_of(source);
    _Alignas(64) uint8_t bytes[PSTK__PAGE_SIZE];
    struct pstk__place at;
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

/* The same, with its path and that for messages; `bytes` has room for both. */
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
        return snprintf(path, size, "%s", pstk__indexed_index(source)->path) < (int)size
                   ? 0
                   : PSTK_EINVAL;
    const int r = look_up_values(source, file, bytes, &values);
    if (r < 0)
        return r;
    const int n = snprintf(path, size, "%s/%s", source->path, values.path);
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

/* A file is what its row says, or it was changed since the index was built. */
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
    if (r == 0 && size == row.size && changed_ns == row.changed_ns)
        return 0;
    if (!err)
        return r < 0 ? r : PSTK_EBADMSG;
    folder_file_shown(source, number, name, sizeof name);
    if (r == PSTK_EBADMSG)
        return fail_index(source, number, "its row is wrong", err);
    if (r < 0)
        return pstk__fail_errno(err, -r, PSTK_STAGE_SHARD, "cannot read %s", name);
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_SHARD,
                      "%s was changed since its folder was indexed (%s differs): open the data set "
                      "again; if it was changed in place, remove the index %s first",
                      name, size == row.size ? "its time of change" : "its size",
                      pstk__indexed_index(source)->path);
}

const struct pstk__format pstk__format_folder = {
    .name = "folder",
    .needs = "JPEG or PNG images, in class folders or flat",
    .file = "image",
    .checksum = PSTK__CHECKSUM_NONE,
    .has_file_each = 1,
    .probe = pstk__folder_probe,
    .open = folder_open,
    .close = folder_close,
    .index = pstk__indexed_index,
    .locate = pstk__indexed_locate,
    .range = pstk__indexed_range,
    .page = folder_page,
    .page_check = pstk__indexed_page_check,
    .n_extents = folder_n_extents,
    .extent = folder_extent,
    .parse = folder_parse,
    .read_size = folder_read_size,
    .file_shown = folder_file_shown,
    .file_path = folder_file_path,
    .file_check = folder_file_check,
};
