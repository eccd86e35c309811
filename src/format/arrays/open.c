/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One shard, one or more files, no index: the position of a row follows from its number. After
 * open, a file is identified only by its size and its time of change.
 */
#include "format/arrays/arrays.h"

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "format/arrays/container.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME_SIZE 256 /* bytes of a file's name, its 0 included; Linux has none longer */
#define PATH_SIZE 4096
#define MIXED "arrays" /* name of a data set with files of several kinds */

struct array_file {
    char name[FILE_NAME_SIZE]; /* name without its directory */
    enum pstk__container_kind kind;
    uint64_t size; /* bytes */
    int64_t changed_ns;
};

struct arrays {
    int is_file;                                          /* 1: the path is the only file */
    uint32_t n_files;                                     /* sorted by name */
    struct array_file files[PSTK_MAX_FIELDS];             /* each has at least one field */
    struct pstk__array_fields list;                       /* sorted by name, so ordered by field */
    struct pstk__field_file field_files[PSTK_MAX_FIELDS]; /* the same values, for views of samples
                                                           */
};

/* ---- the files ------------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int find_one(void *user, const char *name)
{
    (void)user;
    return pstk__container_of(name) != PSTK__CONTAINER_NONE;
}

static int arrays_probe(const struct pstk__store *store, const char *path, struct pstk_error *err)
{
    const int rc = store->list ? store->list(store, path, find_one, NULL) : 0;
    if (rc == -ENOTDIR)
        return pstk__container_of(base_name(path)) != PSTK__CONTAINER_NONE;
    if (rc >= 0 || rc == -ENOENT)
        return rc > 0;
    return pstk__fail_errno(err, -rc, PSTK_STAGE_OPEN, "cannot open %s", path);
}

/* The names that are collected. */
struct names {
    struct arrays *arrays;
    const char *path;
    struct pstk_error *err;
    int code;
};

static int add_name(void *user, const char *name)
{
    struct names *list = user;
    struct arrays *arrays = list->arrays;
    const enum pstk__container_kind kind = pstk__container_of(name);
    if (kind == PSTK__CONTAINER_NONE)
        return 0;
    if (arrays->n_files == PSTK_MAX_FIELDS) {
        list->code = pstk__fail(list->err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                                "%s has more than %d files of arrays, the most that a data set may "
                                "have; move some to another directory",
                                list->path, PSTK_MAX_FIELDS);
        return list->code;
    }
    struct array_file *file = &arrays->files[arrays->n_files++];
    file->kind = kind;
    snprintf(file->name, sizeof file->name, "%s", name);
    return 0;
}

static int compare_files(const void *a, const void *b)
{
    return strcmp(((const struct array_file *)a)->name, ((const struct array_file *)b)->name);
}

static int find_files(struct pstk__source *source, struct pstk_error *err)
{
    struct arrays *arrays = source->state;
    struct names list = {.arrays = arrays, .path = source->path, .err = err};
    const int rc = source->store->list(source->store, source->path, add_name, &list);
    if (list.code < 0)
        return list.code;
    arrays->is_file = rc == -ENOTDIR;
    if (arrays->is_file)
        return add_name(&list, base_name(source->path));
    if (rc < 0)
        return pstk__fail_errno(err, -rc, PSTK_STAGE_OPEN, "cannot open %s", source->path);
    qsort(arrays->files, arrays->n_files, sizeof arrays->files[0], compare_files);
    return 0;
}

/* ---- one file -------------------------------------------------------------------------------- */

/* Return the name of a file below the data set's path; NULL: that path is the only file. */
static const char *arrays_file_name(const struct pstk__source *source, uint32_t file)
{
    const struct arrays *arrays = source->state;
    return arrays->is_file ? NULL : arrays->files[file].name;
}

static int read_fields(struct pstk__source *source, uint32_t number, const struct pstk__file *open,
                       const char *path, struct pstk_error *err)
{
    struct arrays *arrays = source->state;
    struct array_file *file = &arrays->files[number];
    const int rc = open->store->stat(open, &file->size, &file->changed_ns);
    if (rc < 0)
        return pstk__fail_errno(err, -rc, PSTK_STAGE_OPEN, "cannot read %s", path);
    const struct pstk__container container = {.kind = file->kind,
                                              .number = number,
                                              .name = file->name,
                                              .path = path,
                                              .file = open,
                                              .size = file->size};
    return pstk__container_read(&container, &arrays->list, err);
}

static int open_file(struct pstk__source *source, uint32_t number, struct pstk_error *err)
{
    char path[PATH_SIZE];
    struct pstk__file open;
    if (pstk__source_file_path(source, number, path, sizeof path) < 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "the path is too long: %.400s...",
                          source->path);
    int rc = source->store->open(source->store, &open, path);
    if (rc == -ENOENT)
        return pstk__fail_errno(err, ENOENT, PSTK_STAGE_OPEN,
                                "%s is a link to a missing file, or was removed just now", path);
    if (rc < 0)
        return pstk__file_fail(err, -rc, PSTK_STAGE_OPEN, path, path);
    rc = read_fields(source, number, &open, path, err);
    pstk__file_end(&open);
    return rc;
}

/* ---- the data set ---------------------------------------------------------------------------- */

static void arrays_close(struct pstk__source *source)
{
    free(source->state);
    free(source->path);
    free(source);
}

static int compare_fields(const void *a, const void *b)
{
    const struct pstk__array_field *one = a, *other = b;
    const int order = strcmp(one->name, other->name);
    return order ? order : one->file < other->file ? -1 : one->file > other->file;
}

/* Return the name of a file, which lives as long as the source. */
static const char *name_of(const struct pstk__source *source, uint32_t file)
{
    const char *name = arrays_file_name(source, file);
    return name ? name : source->path;
}

/* Sort the fields, and check that their names differ. */
static int check_names(struct pstk__source *source, struct pstk_error *err)
{
    struct arrays *arrays = source->state;
    struct pstk__array_field *fields = arrays->list.fields;
    qsort(fields, arrays->list.n, sizeof fields[0], compare_fields);
    for (uint32_t i = 1; i < arrays->list.n; i++) {
        const char *one = name_of(source, fields[i - 1].file),
                   *other = name_of(source, fields[i].file);
        if (strcmp(fields[i - 1].name, fields[i].name) != 0)
            continue;
        if (fields[i - 1].file == fields[i].file)
            return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                              "%s has two arrays of the name %s; names must differ: write it again",
                              one, fields[i].name);
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "%s: the field %s is in %s and in %s; must be in one: remove or rename "
                          "an array",
                          source->path, fields[i].name, one, other);
    }
    return 0;
}

/* Describe an array for messages: "x.npy", "a of x.npz". */
static const char *shown(const struct pstk__source *source, const struct pstk__array_field *field,
                         char text[FILE_NAME_SIZE + PSTK_MAX_NAME])
{
    const struct arrays *arrays = source->state;
    const struct array_file *file = &arrays->files[field->file];
    if (file->kind == PSTK__CONTAINER_NPY)
        snprintf(text, FILE_NAME_SIZE + PSTK_MAX_NAME, "%s", file->name);
    else
        snprintf(text, FILE_NAME_SIZE + PSTK_MAX_NAME, "%.63s of %.250s", field->name, file->name);
    return text;
}

/* Check that all arrays have the same number of rows, at least one. */
static int check_rows(struct pstk__source *source, struct pstk_error *err)
{
    const struct arrays *arrays = source->state;
    const struct pstk__array_field *fields = arrays->list.fields;
    char one[FILE_NAME_SIZE + PSTK_MAX_NAME], other[FILE_NAME_SIZE + PSTK_MAX_NAME];
    source->n_samples = fields[0].array.shape[0];
    for (uint32_t i = 1; i < arrays->list.n; i++)
        if (fields[i].array.shape[0] != source->n_samples)
            return pstk__fail(
                err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                "%s: %s has %" PRIu64 " rows, %s has %" PRIu64
                "; all arrays must have the same number of rows, because row i of each is sample i",
                source->path, shown(source, &fields[0], one), source->n_samples,
                shown(source, &fields[i], other), fields[i].array.shape[0]);
    if (source->n_samples == 0)
        return pstk__fail(err, PSTK_ENODATA, PSTK_STAGE_OPEN, "%s is empty: its arrays have 0 rows",
                          source->path);
    return 0;
}

static void describe_field(const struct pstk__array_field *from, struct pstk_field *field)
{
    const struct pstk__array *array = &from->array;
    *field = (struct pstk_field){
        .kind = array->n_dims == 1 ? PSTK_FIELD_SCALAR : PSTK_FIELD_NDARRAY,
        .dtype = array->dtype,
        .n_dims = array->n_dims - 1,
    };
    memcpy(field->name, from->name, sizeof field->name);
    memcpy(field->shape, array->shape + 1, field->n_dims * sizeof array->shape[0]);
}

/* Set the sizes of a field's values, which are all the same. */
static void describe_values(struct pstk__source *source, uint32_t i)
{
    struct arrays *arrays = source->state;
    const struct pstk__array_field *field = &arrays->list.fields[i];
    const uint64_t row = field->array.row_size, n = source->n_samples;
    source->stats[i] = (struct pstk_field_stats){.max_stored_size = row,
                                                 .max_plain_size = row,
                                                 .stored_bytes = row * n,
                                                 .plain_bytes = row * n,
                                                 .n_codec = {[PSTK_CODEC_NONE] = n}};
    source->limits.max_stored[i] = row;
    source->limits.max_plain[i] = row;
    source->limits.max_size += row;
    arrays->field_files[i] = (struct pstk__field_file){.name = name_of(source, field->file),
                                                       .offset = field->array.offset,
                                                       .size = row,
                                                       .file = field->file};
}

/* Set the number of files, their bytes, and their common name. */
static void describe_files(struct pstk__source *source)
{
    const struct arrays *arrays = source->state;
    source->n_shards = 1;
    source->n_files = arrays->n_files;
    source->kind = pstk__container_name(arrays->files[0].kind);
    for (uint32_t i = 0; i < arrays->n_files; i++) {
        source->bytes += arrays->files[i].size;
        if (arrays->files[i].kind != arrays->files[0].kind)
            source->kind = MIXED;
    }
}

/* Digest names, types, shapes, sizes and times of change, but not content, in two lanes. A field
 * counts by the name that a .npy file of it would have, whatever file contains it. */
static void make_identity(struct pstk__source *source)
{
    const struct arrays *arrays = source->state;
    uint64_t lanes[2] = {1, 2};
    for (uint32_t i = 0; i < arrays->list.n; i++) {
        const struct pstk__array_field *field = &arrays->list.fields[i];
        const struct array_file *file = &arrays->files[field->file];
        const uint64_t facts[] = {field->array.dtype, field->array.n_dims, file->size,
                                  (uint64_t)file->changed_ns};
        struct {
            char name[PSTK_MAX_NAME + 8];
            uint64_t facts[4];
            uint64_t shape[PSTK__ARRAY_MAX_DIMS];
        } words = {.name = ""};
        _Static_assert(sizeof words % 8 == 0, "whole words");
        snprintf(words.name, sizeof words.name, "%s.npy", field->name);
        memcpy(words.facts, facts, sizeof facts);
        memcpy(words.shape, field->array.shape, sizeof words.shape);
        for (size_t k = 0; k < sizeof words / 8; k++) {
            uint64_t word;
            memcpy(&word, (const char *)&words + 8 * k, sizeof word);
            for (uint32_t lane = 0; lane < 2; lane++)
                lanes[lane] = pstk__mix64(lanes[lane] * 0x9e3779b97f4a7c15u + word + lane);
        }
    }
    snprintf(source->identity, sizeof source->identity, "%016" PRIx64 "%016" PRIx64, lanes[0],
             lanes[1]);
}

/* Fill a source; its close also frees a partly filled source. */
static int fill(struct pstk__source *source, const char *path, struct pstk_error *err)
{
    struct pstk_field fields[PSTK_MAX_FIELDS];
    struct arrays *arrays = calloc(1, sizeof *arrays);
    source->state = arrays;
    source->path = strdup(path);
    if (!source->path || !arrays)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to open %s", path);
    int rc = find_files(source, err);
    for (uint32_t i = 0; rc == 0 && i < arrays->n_files; i++)
        rc = open_file(source, i, err);
    if (rc == 0)
        rc = check_names(source, err);
    if (rc == 0)
        rc = check_rows(source, err);
    for (uint32_t i = 0; rc == 0 && i < arrays->list.n; i++)
        describe_field(&arrays->list.fields[i], &fields[i]);
    if (rc == 0)
        rc = pstk__schema_init(&source->schema, fields, arrays->list.n, err);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < arrays->list.n; i++)
        describe_values(source, i);
    describe_files(source);
    make_identity(source);
    return 0;
}

static int arrays_open(struct pstk__source **out, const struct pstk__opening *opening,
                       struct pstk_error *err)
{
    *out = NULL;
    struct pstk__source *source = calloc(1, sizeof *source);
    if (!source)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to open %s", opening->path);
    source->format = &pstk__format_arrays;
    source->store = opening->store;
    const int rc = fill(source, opening->path, err);
    if (rc < 0) {
        arrays_close(source);
        return rc;
    }
    *out = source;
    return 0;
}

/* ---- where things are ------------------------------------------------------------------------ */

static void arrays_locate(const struct pstk__source *source, uint64_t id,
                          struct pstk__sample_location *at)
{
    (void)source;
    *at = (struct pstk__sample_location){.shard = 0, .record = id};
}

static uint64_t known_fields(const struct pstk__source *source)
{
    const uint32_t n = source->schema.n_fields;
    return n == 64 ? UINT64_MAX : (1ull << n) - 1;
}

static uint32_t arrays_n_extents(const struct pstk__source *source, uint64_t fields)
{
    return (uint32_t)__builtin_popcountll(fields & known_fields(source));
}

/* Return the extent of field i's value in a record. */
static struct pstk__extent extent_of(const struct arrays *arrays, uint32_t i, uint64_t record)
{
    const struct pstk__field_file *field_file = &arrays->field_files[i];
    return (struct pstk__extent){.file = field_file->file,
                                 .record = record,
                                 .offset = field_file->offset + record * field_file->size,
                                 .size = field_file->size,
                                 .whole_size = field_file->size};
}

/* Set one extent for each field, in the order of the fields. */
static int arrays_extent(const struct pstk__source *source, const struct pstk__sample_location *at,
                         uint64_t fields, const void *page, struct pstk__extent *out,
                         struct pstk_error *err)
{
    (void)page, (void)err;
    for (uint64_t left = fields & known_fields(source); left; left &= left - 1)
        *out++ = extent_of(source->state, (uint32_t)__builtin_ctzll(left), at->record);
    return 0;
}

static const struct pstk__field_file *arrays_field_files(const struct pstk__source *source)
{
    const struct arrays *arrays = source->state;
    return arrays->field_files;
}

static const struct pstk__cover *arrays_cover(const struct pstk__source *source, uint32_t field)
{
    const struct arrays *arrays = source->state;
    const struct pstk__cover *cover = &arrays->list.fields[field].cover;
    return cover->size ? cover : NULL;
}

/* Match extents with fields: an extent does not name its field. Extents have the order of the
 * fields, and all fields have different positions, so the next field at an extent's position is its
 * field. */
static int arrays_parse(const struct pstk__source *source, const struct pstk__sample_location *at,
                        uint64_t fields, const struct pstk__extent *extents, uint32_t n_extents,
                        struct pstk__record *out, struct pstk_error *err)
{
    (void)fields;
    (void)err;
    const struct arrays *arrays = source->state;
    uint32_t k = 0;
    out->schema = &source->schema;
    out->number = at->record;
    out->file_offset = 0;
    out->shard = arrays->field_files[0].name;
    out->file = arrays->field_files[0].file;
    out->field_files = arrays->field_files;
    out->accepts_damaged = 0; /* the data set has no images */
    out->n_fields = arrays->list.n;
    for (uint32_t i = 0; i < arrays->list.n; i++) {
        const struct pstk__extent at_field = extent_of(arrays, i, at->record);
        out->fields[i] = (struct pstk__field_view){.stored_size = (uint32_t)at_field.size,
                                                   .plain_size = (uint32_t)at_field.size,
                                                   .checksum = PSTK__CHECKSUM_NONE};
        if (k < n_extents && extents[k].file == at_field.file &&
            extents[k].offset == at_field.offset)
            out->fields[i].data = extents[k++].data;
    }
    return 0;
}

/* ---- is it still what was opened? ------------------------------------------------------------ */

static int arrays_file_check(const struct pstk__source *source, uint32_t number,
                             const struct pstk__file *file, struct pstk_error *err)
{
    const struct arrays *arrays = source->state;
    const struct array_file *opened = &arrays->files[number];
    return pstk__file_check_same(file, opened->name, opened->size, opened->changed_ns,
                                 PSTK_STAGE_SHARD, err);
}

/* Check that a file lies at the path; arrays_file_check checks whether it changed. */
static int is_there(const struct pstk__source *source, const char *path)
{
    struct pstk__file file;
    const int rc = source->store->open(source->store, &file, path);
    if (rc == 0)
        pstk__file_end(&file);
    return rc != -ENOENT && rc != -ENOTDIR;
}

static int arrays_stands(const struct pstk__source *source, struct pstk_error *err)
{
    char path[PATH_SIZE];
    for (uint32_t i = 0; i < source->n_files; i++)
        if (pstk__source_file_path(source, i, path, sizeof path) == 0 && !is_there(source, path))
            return pstk__fail(err, PSTK_ENOENT, PSTK_STAGE_SHARD,
                              "%s was removed or renamed while the data set was open%s: open the "
                              "data set again",
                              path,
                              source->path[0] == '/'
                                  ? ""
                                  : ", or the program changed to another directory, where this "
                                    "relative path leads elsewhere");
    return 0;
}

const struct pstk__format pstk__format_arrays = {
    .name = MIXED,
    .needs = ".npy, .npz or .safetensors arrays",
    .files = ".npy, .npz or .safetensors file",
    .names = ".npy .npz .safetensors",
    .checksum = PSTK__CHECKSUM_NONE,
    .probe = arrays_probe,
    .open = arrays_open,
    .close = arrays_close,
    .locate = arrays_locate,
    .extent = arrays_extent,
    .parse = arrays_parse,
    .field_files = arrays_field_files,
    .cover = arrays_cover,
    .n_extents = arrays_n_extents,
    .file_name = arrays_file_name,
    .file_check = arrays_file_check,
    .stands = arrays_stands,
};
