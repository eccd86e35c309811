/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One shard, a file per field, no index: the place of a row follows from its number. Later, only
 * the size and the time of change that a file had at open identify it.
 */
#include "format/arrays/arrays.h"

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "format/arrays/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUFFIX ".npy"
#define NAME_SIZE (PSTK_MAX_NAME + sizeof SUFFIX - 1) /* of a file, its 0 included */
#define PATH_SIZE 4096

/* The file of one field. */
struct array {
    char name[NAME_SIZE];
    struct pstk__array header;
    uint64_t size; /* bytes of the file */
    int64_t changed_ns;
};

struct npy {
    uint32_t n;                                     /* of arrays, sorted by name */
    struct array arrays[PSTK_MAX_FIELDS];           /* by field */
    struct pstk__field_file files[PSTK_MAX_FIELDS]; /* the same, for views of samples */
};

/* ---- the directory --------------------------------------------------------------------------- */

/* FIELD.npy; hidden files do not count. */
static int is_array(const char *name)
{
    const size_t n = strlen(name), suffix = sizeof SUFFIX - 1;
    return name[0] != '.' && n > suffix && strcmp(name + n - suffix, SUFFIX) == 0;
}

static int find_one(void *user, const char *name)
{
    (void)user;
    return is_array(name);
}

static int npy_probe(const struct pstk__store *store, const char *path, struct pstk_error *err)
{
    const int rc = store->list ? store->list(store, path, find_one, NULL) : 0;
    if (rc >= 0 || rc == -ENOENT || rc == -ENOTDIR)
        return rc > 0;
    return pstk__fail_errno(err, -rc, PSTK_STAGE_OPEN, "cannot open %s", path);
}

/* The names being collected. */
struct names {
    struct npy *npy;
    const char *path;
    struct pstk_error *err;
    int code;
};

static int add_name(void *user, const char *name)
{
    struct names *list = user;
    struct npy *npy = list->npy;
    if (!is_array(name))
        return 0;
    if (npy->n == PSTK_MAX_FIELDS)
        list->code = pstk__fail(list->err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                                "%s has more than %d .npy files, the most that a data set may "
                                "have; move some to another directory",
                                list->path, PSTK_MAX_FIELDS);
    else if (strlen(name) >= NAME_SIZE ||
             strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") !=
                 strlen(name))
        list->code = pstk__fail(list->err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                                "%s/%.300s: its name is not the name of a field; must be 1 to %d "
                                "of A-Z a-z 0-9 _ . - before .npy: rename it",
                                list->path, name, PSTK_MAX_NAME - 1);
    else
        snprintf(npy->arrays[npy->n++].name, NAME_SIZE, "%s", name);
    return list->code;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct array *)a)->name, ((const struct array *)b)->name);
}

static int find_arrays(struct pstk__source *source, struct pstk_error *err)
{
    struct npy *npy = source->state;
    struct names list = {.npy = npy, .path = source->path, .err = err};
    const int rc = source->store->list(source->store, source->path, add_name, &list);
    if (list.code < 0)
        return list.code;
    if (rc < 0)
        return pstk__fail_errno(err, -rc, PSTK_STAGE_OPEN, "cannot open %s", source->path);
    qsort(npy->arrays, npy->n, sizeof npy->arrays[0], compare_names);
    return 0;
}

/* ---- one file -------------------------------------------------------------------------------- */

static int read_head(struct array *array, const struct pstk__file *file, const char *path,
                     struct pstk_error *err)
{
    uint8_t *head = malloc(PSTK__NPY_HEADER_MAX);
    if (!head)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to open %s", path);
    int rc = file->store->stat(file, &array->size, &array->changed_ns);
    const uint64_t wanted = array->size < PSTK__NPY_HEADER_MAX ? array->size : PSTK__NPY_HEADER_MAX;
    const int64_t n = rc < 0 ? rc : pstk__file_read(file, head, wanted, 0);
    if (n < 0)
        rc = pstk__fail_errno(err, (int)-n, PSTK_STAGE_OPEN, "cannot read %s", path);
    else
        rc = pstk__npy_header_parse(&array->header, head, (uint64_t)n, path, err);
    free(head);
    return rc;
}

static int open_array(const struct pstk__source *source, struct array *array,
                      struct pstk_error *err)
{
    char path[PATH_SIZE];
    struct pstk__file file;
    const int n = snprintf(path, sizeof path, "%s/%s", source->path, array->name);
    if (n < 0 || (size_t)n >= sizeof path)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "the path is too long: %.400s...",
                          source->path);
    int rc = source->store->open(source->store, &file, path);
    if (rc == -ENOENT)
        return pstk__fail_errno(err, ENOENT, PSTK_STAGE_OPEN,
                                "%s is a link to a missing file, or was removed just now", path);
    if (rc < 0)
        return pstk__file_fail(err, -rc, PSTK_STAGE_OPEN, path, path);
    rc = read_head(array, &file, path, err);
    pstk__file_end(&file);
    if (rc < 0)
        return rc;
    if (array->size < array->header.end)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "%s is cut short: it has %" PRIu64 " bytes; its array needs %" PRIu64
                          ": write it again",
                          path, array->size, array->header.end);
    if (array->size > array->header.end)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "%s has %" PRIu64
                          " bytes after its array; must hold one array only: write it again",
                          path, array->size - array->header.end);
    return 0;
}

/* ---- the data set ---------------------------------------------------------------------------- */

static void npy_close(struct pstk__source *source)
{
    free(source->state);
    free(source->path);
    free(source);
}

static void describe_field(struct pstk__source *source, uint32_t i, struct pstk_field *field)
{
    const struct npy *npy = source->state;
    const struct array *array = &npy->arrays[i];
    const struct pstk__array *npy_header = &array->header;
    const size_t length = strlen(array->name) - (sizeof SUFFIX - 1);
    *field = (struct pstk_field){
        .kind = npy_header->n_dims == 1 ? PSTK_FIELD_SCALAR : PSTK_FIELD_NDARRAY,
        .dtype = npy_header->dtype,
        .n_dims = npy_header->n_dims - 1,
    };
    memcpy(field->name, array->name, length);
    memcpy(field->shape, npy_header->shape + 1, field->n_dims * sizeof npy_header->shape[0]);
}

/* Sizes of the values of a field, which are all the same. */
static void describe_values(struct pstk__source *source, uint32_t i)
{
    struct npy *npy = source->state;
    const struct array *array = &npy->arrays[i];
    const uint64_t row = array->header.row_size, n = source->n_samples;
    source->stats[i] = (struct pstk_field_stats){.max_stored_size = row,
                                                 .max_plain_size = row,
                                                 .stored_bytes = row * n,
                                                 .plain_bytes = row * n,
                                                 .n_codec = {[PSTK_CODEC_NONE] = n}};
    source->limits.max_stored[i] = row;
    source->limits.max_plain[i] = row;
    source->limits.max_size += row;
    source->bytes += array->size;
    npy->files[i] = (struct pstk__field_file){
        .name = array->name, .offset = array->header.offset, .size = row, .file = i};
}

/* Two lanes over names, types, shapes, sizes and times of change: not over content. */
static void make_identity(struct pstk__source *source)
{
    const struct npy *npy = source->state;
    uint64_t lanes[2] = {1, 2};
    for (uint32_t i = 0; i < npy->n; i++) {
        const struct array *array = &npy->arrays[i];
        uint64_t words[NAME_SIZE / 8 + 5 + PSTK__ARRAY_MAX_DIMS] = {0};
        const uint64_t facts[] = {array->header.dtype, array->header.n_dims, array->size,
                                  (uint64_t)array->changed_ns};
        memcpy(words, array->name, strlen(array->name));
        memcpy(words + NAME_SIZE / 8 + 1, facts, sizeof facts);
        memcpy(words + NAME_SIZE / 8 + 5, array->header.shape, sizeof array->header.shape);
        for (size_t k = 0; k < sizeof words / sizeof words[0]; k++)
            for (uint32_t lane = 0; lane < 2; lane++)
                lanes[lane] = pstk__mix64(lanes[lane] * 0x9e3779b97f4a7c15u + words[k] + lane);
    }
    snprintf(source->identity, sizeof source->identity, "%016" PRIx64 "%016" PRIx64, lanes[0],
             lanes[1]);
}

/* All arrays have the same number of rows, at least one. */
static int check_rows(const struct pstk__source *source, struct pstk_error *err)
{
    const struct npy *npy = source->state;
    for (uint32_t i = 1; i < npy->n; i++)
        if (npy->arrays[i].header.shape[0] != npy->arrays[0].header.shape[0])
            return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                              "%s: %s has %" PRIu64 " rows, %s has %" PRIu64
                              "; must be as many in each, because row i of every file is sample i",
                              source->path, npy->arrays[0].name, npy->arrays[0].header.shape[0],
                              npy->arrays[i].name, npy->arrays[i].header.shape[0]);
    if (source->n_samples == 0)
        return pstk__fail(err, PSTK_ENODATA, PSTK_STAGE_OPEN,
                          "%s is empty: a data set of 0 samples", source->path);
    return 0;
}

/* Fill a source; its close frees a source that is filled in part, too. */
static int fill(struct pstk__source *source, const char *path, struct pstk_error *err)
{
    struct pstk_field fields[PSTK_MAX_FIELDS];
    struct npy *npy = calloc(1, sizeof *npy);
    source->state = npy;
    source->path = strdup(path);
    if (!source->path || !npy)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to open %s", path);
    int rc = find_arrays(source, err);
    for (uint32_t i = 0; rc == 0 && i < npy->n; i++)
        rc = open_array(source, &npy->arrays[i], err);
    source->n_samples = npy->n ? npy->arrays[0].header.shape[0] : 0;
    source->n_shards = 1;
    source->n_files = npy->n;
    if (rc == 0)
        rc = check_rows(source, err);
    for (uint32_t i = 0; rc == 0 && i < npy->n; i++)
        describe_field(source, i, &fields[i]);
    if (rc == 0)
        rc = pstk__schema_init(&source->schema, fields, npy->n, err);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < npy->n; i++)
        describe_values(source, i);
    make_identity(source);
    return 0;
}

static int npy_open(struct pstk__source **out, const struct pstk__store *store, const char *path,
                    struct pstk_error *err)
{
    *out = NULL;
    struct pstk__source *source = calloc(1, sizeof *source);
    if (!source)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to open %s", path);
    source->format = &pstk__format_npy;
    source->store = store;
    const int rc = fill(source, path, err);
    if (rc < 0) {
        npy_close(source);
        return rc;
    }
    *out = source;
    return 0;
}

/* ---- where things are ------------------------------------------------------------------------ */

static void npy_locate(const struct pstk__source *source, uint64_t id, struct pstk__place *at)
{
    (void)source;
    *at = (struct pstk__place){.shard = 0, .record = id};
}

static uint64_t known_fields(const struct pstk__source *source)
{
    return source->n_files == 64 ? UINT64_MAX : (1ull << source->n_files) - 1;
}

static uint32_t npy_n_extents(const struct pstk__source *source, uint64_t fields)
{
    return (uint32_t)__builtin_popcountll(fields & known_fields(source));
}

/* A file has its field's number. */
static int npy_extent(const struct pstk__source *source, const struct pstk__place *at,
                      uint64_t fields, const void *page, struct pstk__extent *out,
                      struct pstk_error *err)
{
    (void)page, (void)err;
    const struct npy *npy = source->state;
    for (uint64_t left = fields & known_fields(source); left; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(left);
        const struct pstk__field_file *field_file = &npy->files[i];
        *out++ = (struct pstk__extent){.file = i,
                                       .record = at->record,
                                       .offset = field_file->offset + at->record * field_file->size,
                                       .size = field_file->size,
                                       .whole_size = field_file->size};
    }
    return 0;
}

static const struct pstk__field_file *npy_field_files(const struct pstk__source *source)
{
    const struct npy *npy = source->state;
    return npy->files;
}

static int npy_parse(const struct pstk__source *source, const struct pstk__place *at,
                     const struct pstk__extent *extents, uint32_t n_extents,
                     struct pstk__record *out, struct pstk_error *err)
{
    (void)err;
    const struct npy *npy = source->state;
    out->schema = &source->schema;
    out->number = at->record;
    out->file_offset = 0;
    out->shard = npy->files[0].name;
    out->file = 0;
    out->field_files = npy->files;
    out->n_fields = npy->n;
    for (uint32_t i = 0; i < npy->n; i++)
        out->fields[i] = (struct pstk__field_view){.stored_size = (uint32_t)npy->files[i].size,
                                                   .plain_size = (uint32_t)npy->files[i].size,
                                                   .checksum = PSTK__CHECKSUM_NONE};
    for (uint32_t k = 0; k < n_extents; k++)
        out->fields[extents[k].file].data = extents[k].data;
    return 0;
}

static const char *npy_file_name(const struct pstk__source *source, uint32_t file)
{
    const struct npy *npy = source->state;
    return npy->arrays[file].name;
}

/* ---- is it still what was opened? ------------------------------------------------------------ */

static int npy_file_check(const struct pstk__source *source, uint32_t number,
                          const struct pstk__file *file, struct pstk_error *err)
{
    const struct npy *npy = source->state;
    const struct array *array = &npy->arrays[number];
    uint64_t size;
    int64_t changed_ns;
    const int rc = file->store->stat(file, &size, &changed_ns);
    if (rc < 0)
        return pstk__fail_errno(err, -rc, PSTK_STAGE_SHARD, "cannot read %s", array->name);
    if (size == array->size && changed_ns == array->changed_ns)
        return 0;
    if (size == array->size)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_SHARD,
                          "%s was changed or replaced since the data set was opened (its time of "
                          "change differs): open the data set again",
                          array->name);
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_SHARD,
                      "%s was changed or replaced since the data set was opened: it has %" PRIu64
                      " bytes, and had %" PRIu64 ": open the data set again",
                      array->name, size, array->size);
}

/* Check that a file lies at the path of an array. npy_file_check finds whether it changed. */
static int array_is_there(const struct pstk__source *source, uint32_t number)
{
    char path[PATH_SIZE];
    struct pstk__file file;
    if (pstk__source_file_path(source, number, path, sizeof path) < 0)
        return 1;
    const int rc = source->store->open(source->store, &file, path);
    if (rc == 0)
        pstk__file_end(&file);
    return rc != -ENOENT && rc != -ENOTDIR;
}

static int npy_stands(const struct pstk__source *source, struct pstk_error *err)
{
    for (uint32_t i = 0; i < source->n_files; i++)
        if (!array_is_there(source, i))
            return pstk__fail(err, PSTK_ENOENT, PSTK_STAGE_SHARD,
                              "%s/%s was removed or renamed while the data set was open%s: open "
                              "the data set again",
                              source->path, npy_file_name(source, i),
                              source->path[0] == '/'
                                  ? ""
                                  : ", or the program changed to another directory, where this "
                                    "relative path leads elsewhere");
    return 0;
}

const struct pstk__format pstk__format_npy = {
    .name = "npy",
    .needs = "FIELD.npy arrays, as numpy.save makes them",
    .checksum = PSTK__CHECKSUM_NONE,
    .probe = npy_probe,
    .open = npy_open,
    .close = npy_close,
    .locate = npy_locate,
    .extent = npy_extent,
    .parse = npy_parse,
    .field_files = npy_field_files,
    .n_extents = npy_n_extents,
    .file_name = npy_file_name,
    .file_check = npy_file_check,
    .stands = npy_stands,
};
