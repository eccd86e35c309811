/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crc32c.h"
#include "base/error.h"
#include "format/indexed.h"
#include "format/megatron/idx.h"
#include "format/megatron/megatron.h"
#include "format/megatron/scan.h"
#include "record/kind.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOKENS 0u /* number of the field */

/* ---- paths ----------------------------------------------------------------------------------- */

/* Write a path with another ending for its own of 4 bytes. 0: it is too long. */
static int with_ending(char to[PATH_MAX], const char *path, const char *ending)
{
    const int n = snprintf(to, PATH_MAX, "%.*s%s", (int)(strlen(path) - 4), path, ending);
    return n > 0 && n < PATH_MAX;
}

/* 1: a .idx begins as Megatron-LM's do, or is damaged, and has its .bin. */
static int is_idx(const struct pstk__store *store, const char *path)
{
    char bin[PATH_MAX];
    uint8_t magic[PSTK__MEGATRON_MAGIC_SIZE];
    struct pstk__file file;
    const int r = store->open(store, &file, path);
    const int has_magic = r == 0 &&
                          pstk__file_read(&file, magic, sizeof magic, 0) == (int64_t)sizeof magic &&
                          memcmp(magic, PSTK__MEGATRON_MAGIC, sizeof magic) == 0;
    pstk__file_end(&file);
    return r == 0 &&
           (has_magic || (with_ending(bin, path, ".bin") && pstk__store_has_file(store, bin)));
}

/* Max .idx files of a folder that are opened to find a pair: DALI makes one for each of thousands
 * of tar or TFRecord files. */
#define MAX_TRIED 64

/* A search for a pair in a folder. */
struct search {
    const struct pstk__store *store;
    const char *folder;
    uint32_t n_tried;
};

/* A pstk__store_name_fn: 1 at the first .idx of Megatron-LM, 2 after too many others. */
static int is_pair(void *user, const char *name)
{
    struct search *search = user;
    char path[PATH_MAX];
    if (name[0] == '.' || !pstk__text_ends_with(name, ".idx"))
        return 0;
    if (search->n_tried++ == MAX_TRIED)
        return 2;
    const int n = snprintf(path, sizeof path, "%s/%s", search->folder, name);
    return n > 0 && n < PATH_MAX && is_idx(search->store, path);
}

/* Write the path of the .idx files for `path`: PREFIX.bin, PREFIX, or one of them. 0: there are
 * none; <0: a negative errno. */
static int idx_path(const struct pstk__store *store, const char *path, char to[PATH_MAX])
{
    if (pstk__text_ends_with(path, ".bin"))
        return with_ending(to, path, ".idx");
    int n = snprintf(to, PATH_MAX, "%s.idx", path);
    const int r = n > 0 && n < PATH_MAX ? pstk__store_find_file(store, to) : 0;
    if (r != 0)
        return r;
    n = snprintf(to, PATH_MAX, "%s", path);
    return n > 0 && n < PATH_MAX;
}

static int megatron_probe(const struct pstk__store *store, const char *path, struct pstk_error *err)
{
    char idx[PATH_MAX];
    struct search search = {.store = store, .folder = path};
    const int found = idx_path(store, path, idx);
    if (found < 0)
        return pstk__fail_errno(err, -found, PSTK_STAGE_OPEN, "cannot open %s", path);
    if (found == 0)
        return 0;
    if (pstk__text_ends_with(idx, ".idx") && pstk__store_has_file(store, idx))
        return is_idx(store, idx);
    if (pstk__text_ends_with(idx, ".idx"))
        return pstk__listing_probe(store, idx, ".idx", err);
    const int r = store->list ? store->list(store, path, is_pair, &search) : 0;
    if (r >= 0 || r == -ENOENT || r == -ENOTDIR)
        return r == 1;
    return pstk__fail_errno(err, -r, PSTK_STAGE_OPEN, "cannot open %s", path);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Read the length of samples that the caller wants. */
static int read_length(uint64_t *length, const struct pstk_foreign *foreign, struct pstk_error *err)
{
    *length = 0;
    for (uint32_t i = 0; foreign && i < foreign->n_fields; i++) {
        const struct pstk_field *field = &foreign->fields[i];
        if (strcmp(field->name, PSTK__MEGATRON_TOKENS) != 0)
            continue;
        if (field->kind != PSTK_FIELD_NDARRAY || field->n_dims != 1 || field->shape[0] == 1 ||
            field->shape[0] > INT32_MAX)
            return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                              "field tokens: its kind is %s, with %u dimensions; must be an "
                              "ndarray of shape {0}, for documents, or {n} with n from 2 to "
                              "2^31 - 1, for samples of n tokens",
                              pstk__field_kind_name(field->kind), field->n_dims);
        *length = field->shape[0];
    }
    return 0;
}

/* Turn the names of .idx files into those of .bin files, which have as many bytes. */
static int name_bins(struct pstk__texts *bins, const struct pstk__listing *idx)
{
    if (pstk__texts_open(bins, idx->names.n, idx->names.size) < 0)
        return PSTK_ENOMEM;
    for (uint64_t i = 0; i < idx->names.n; i++) {
        const char *name = pstk__texts_get(&idx->names, i);
        char bin[PATH_MAX];
        if (!with_ending(bin, name, ".bin"))
            return PSTK_EINVAL; /* not reached: its path was opened */
        pstk__texts_add(bins, bin, strlen(bin));
    }
    return 0;
}

/* List the .bin files of a list of .idx files. */
static int list_bins(struct pstk__listing *listing, const struct pstk__listing *idx,
                     const struct pstk__opening *opening, struct pstk_error *err)
{
    struct pstk__texts bins = {0};
    uint64_t missing = PSTK_NONE;
    if (name_bins(&bins, idx) < 0) {
        pstk__texts_close(&bins);
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to list the files of %s",
                          opening->path);
    }
    int r = pstk__listing_of(listing, opening->store, idx->folder, &bins,
                             opening->salvage ? NULL : &missing, err);
    if (r == PSTK_ENOENT && missing != PSTK_NONE)
        r = pstk__fail(err, r, PSTK_STAGE_OPEN,
                       "%s/%s is missing; it has the tokens of the .idx next to it: copy both",
                       idx->folder, pstk__texts_get(&bins, missing));
    pstk__texts_close(&bins);
    return r;
}

/* 1: a file with this ending of four letters exists for some file of the listing. */
static int has_one(const struct pstk__listing *bins, const char *ending)
{
    char path[PATH_MAX];
    for (uint64_t i = 0; i < bins->names.n; i++) {
        const char *name = pstk__texts_get(&bins->names, i);
        const int n = (int)strlen(name) - 4;
        if (n >= 0 &&
            snprintf(path, sizeof path, "%s/%.*s%s", bins->folder, n, name, ending) <
                (int)sizeof path &&
            access(path, F_OK) == 0)
            return 1;
    }
    return 0;
}

/* Fail because a .idx is missing, by *err. The caller may have named .bin files without one. */
static int fail_no_idx(const struct pstk__opening *opening, struct pstk_error *err)
{
    struct pstk__listing bins;
    if (!pstk__text_ends_with(opening->path, ".bin") ||
        pstk__listing_salvage(&bins, opening->store, opening->path, ".bin", NULL) < 0)
        return PSTK_ENOENT;
    if (has_one(&bins, ".bin") && !has_one(&bins, ".idx"))
        pstk__fail(
            err, PSTK_ENOENT, PSTK_STAGE_OPEN,
            "no .bin that %s matches has a .idx of Megatron-LM next to it; " PSTK__MEGATRON_RAW,
            opening->path);
    pstk__listing_close(&bins);
    return PSTK_ENOENT;
}

/* The list callback of a pstk__scanner. */
static int list(struct pstk__listing *listing, void **own, const struct pstk__opening *opening,
                struct pstk_error *err)
{
    char path[PATH_MAX];
    struct pstk__listing idx;
    struct pstk__megatron *megatron = calloc(1, sizeof *megatron);
    *own = megatron;
    const int found = megatron ? idx_path(opening->store, opening->path, path) : 0;
    if (found < 0)
        return pstk__fail_errno(err, -found, PSTK_STAGE_OPEN, "cannot open %s", opening->path);
    if (found == 0)
        return pstk__fail(err, megatron ? PSTK_EINVAL : PSTK_ENOMEM, PSTK_STAGE_OPEN,
                          "%s to open %.400s",
                          megatron ? "the path is too long" : "there is no memory", opening->path);
    int r = read_length(&megatron->length, opening->foreign, err);
    if (r == 0)
        r = opening->salvage ? pstk__listing_salvage(&idx, opening->store, path, ".idx", err)
                             : pstk__listing_open(&idx, opening->store, path, ".idx", err);
    if (r < 0)
        return r == PSTK_ENOENT ? fail_no_idx(opening, err) : r;
    r = list_bins(listing, &idx, opening, err);
    if (r == 0) {
        listing->digest[0] = 1;
        listing->digest[1] = megatron->length;
        pstk__index_digest(listing->digest, idx.sizes, idx.names.n * sizeof *idx.sizes);
        pstk__index_digest(listing->digest, idx.changed_ns, idx.names.n * sizeof *idx.changed_ns);
    }
    pstk__listing_close(&idx);
    return r;
}

static int retype(struct pstk__index_field *field, const struct pstk_field *wanted,
                  struct pstk_error *err)
{
    if (wanted->kind == field->field.kind && wanted->n_dims == 1 &&
        wanted->shape[0] == field->field.shape[0] && wanted->dtype == field->field.dtype)
        return 0;
    return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                      "field %s: it is an ndarray of %s with one dimension, and cannot be read as "
                      "another kind or dtype: cast it in the output",
                      field->field.name, pstk_dtype_name(field->field.dtype));
}

/* The fail_none callback of a pstk__scanner. */
static int fail_none(const struct pstk__index *index, const void *own, const char *path,
                     struct pstk_error *err)
{
    const uint64_t length = ((const struct pstk__megatron *)own)->length;
    const uint64_t item = pstk_dtype_size(index->found.fields[TOKENS].field.dtype);
    uint64_t largest = 0;
    for (uint32_t i = 0; i < index->n_files; i++)
        largest = index->files[i].size > largest ? index->files[i].size : largest;
    if (length == 0 || largest < 2 * item)
        return 0;
    return pstk__fail(err, PSTK_ENODATA, PSTK_STAGE_OPEN,
                      "fields.tokens: value is an array of %" PRIu64 " tokens; must be of at most "
                      "%" PRIu64 ", as many as the largest file of %s has: samples do not cross "
                      "files",
                      length, largest / item, path);
}

static const struct pstk__scanner scanner = {
    .format = &pstk__format_megatron,
    .version = 1,
    .list = list,
    .infer = pstk__megatron_infer,
    .scan = pstk__megatron_scan,
    .retype = retype,
    .fail_none = fail_none,
};

static int megatron_open(struct pstk__source **out, const struct pstk__opening *opening,
                         struct pstk_error *err)
{
    return pstk__indexed_open(out, &scanner, opening, err);
}

/* ---- where things are ------------------------------------------------------------------------ */

static uint64_t known_fields(const struct pstk__source *source)
{
    return (1ull << source->schema.n_fields) - 1;
}

static uint32_t megatron_n_extents(const struct pstk__source *source, uint64_t fields)
{
    return (uint32_t)__builtin_popcountll(fields & known_fields(source));
}

/* Return the extent of a field. Tokens lie in the .bin; starts lie in the index, whose number comes
 * after those of the .bin files. */
static struct pstk__extent extent_of(const struct pstk__source *source,
                                     const struct pstk__sample_location *at, const void *page,
                                     uint32_t field)
{
    const struct pstk__index *index = pstk__indexed_index(source);
    const int is_tokens = field == TOKENS;
    const uint64_t size = pstk__indexed_cell(
        source, at, page, is_tokens ? PSTK__MEGATRON_SIZE : PSTK__MEGATRON_VALUE_SIZE);
    const uint64_t begin = is_tokens
                               ? pstk__indexed_cell(source, at, page, PSTK__MEGATRON_BEGIN)
                               : index->files[at->shard].values +
                                     pstk__indexed_cell(source, at, page, PSTK__MEGATRON_VALUE);
    return (struct pstk__extent){.file = is_tokens ? at->shard : index->n_files,
                                 .page = field,
                                 .record = at->record,
                                 .offset = begin,
                                 .size = size,
                                 .whole_size = size};
}

/* Fail because tokens lie outside of their file, or starts outside of their part of the index. */
static int fail_extent(const struct pstk__source *source, const struct pstk__sample_location *at,
                       const struct pstk__extent *extent, struct pstk_error *err)
{
    const struct pstk__index *index = pstk__indexed_index(source);
    if (extent->page == TOKENS)
        return pstk__indexed_fail_extent(source, at, extent->offset, extent->size, err);
    pstk__index_fail(index, PSTK_STAGE_RECORD, err,
                     "is damaged: it does not have bytes %" PRIu64 " to %" PRIu64
                     ", which it names for record %" PRIu64,
                     extent->offset, extent->offset + extent->size - (extent->size > 0),
                     at->record);
    return pstk__fail_at(err, PSTK_EBADMSG, index->path, at->record, extent->offset, extent->size);
}

static int megatron_extent(const struct pstk__source *source,
                           const struct pstk__sample_location *at, uint64_t fields,
                           const void *page, struct pstk__extent *out, struct pstk_error *err)
{
    const struct pstk__index_file *file = &pstk__indexed_index(source)->files[at->shard];
    for (uint64_t left = fields & known_fields(source); left; left &= left - 1, out++) {
        const uint32_t i = (uint32_t)__builtin_ctzll(left);
        *out = extent_of(source, at, page, i);
        const uint64_t end = i == TOKENS ? file->size : file->values_end;
        const uint64_t least = i == TOKENS ? 0 : PSTK__MEGATRON_VALUE_HEAD;
        /* The index's own limits sized the memory. */
        if (out->size < least || out->size > source->limits.max_stored[i] || out->offset > end ||
            out->size > end - out->offset)
            return fail_extent(source, at, out, err);
    }
    return 0;
}

/* ---- a sample -------------------------------------------------------------------------------- */

static const uint8_t nothing[1]; /* data of an empty document, which is not read */

static int view_starts(const struct pstk__source *source, const struct pstk__extent *extent,
                       struct pstk__field_view *view, struct pstk_error *err)
{
    const struct pstk__index *index = pstk__indexed_index(source);
    view->data = extent->data + PSTK__MEGATRON_VALUE_HEAD;
    view->stored_size = view->plain_size = (uint32_t)(extent->size - PSTK__MEGATRON_VALUE_HEAD);
    if (pstk__get32(extent->data) == pstk__crc32c(0, view->data, view->stored_size))
        return 0;
    pstk__index_fail(index, PSTK_STAGE_RECORD, err,
                     "is damaged in bytes %" PRIu64 " to %" PRIu64 ": a checksum is wrong",
                     extent->offset, extent->offset + extent->size - 1);
    return pstk__fail_at(err, PSTK_EBADMSG, index->path, extent->record, extent->offset,
                         extent->size);
}

static int megatron_parse(const struct pstk__source *source, const struct pstk__sample_location *at,
                          uint64_t fields, const struct pstk__extent *extents, uint32_t n_extents,
                          struct pstk__record *out, struct pstk_error *err)
{
    (void)fields;
    pstk__indexed_begin(source, at, 0, out);
    for (uint32_t k = 0; k < n_extents; k++) {
        struct pstk__field_view *view = &out->fields[extents[k].page];
        if (extents[k].page != TOKENS) {
            const int r = view_starts(source, &extents[k], view, err);
            if (r < 0)
                return r;
            continue;
        }
        out->file_offset = extents[k].offset;
        view->data = extents[k].size ? extents[k].data : nothing;
        view->stored_size = view->plain_size = (uint32_t)extents[k].size;
    }
    return 0;
}

const struct pstk__format pstk__format_megatron = {
    .name = "megatron",
    .needs = "the .idx and .bin of Megatron-LM",
    .names = ".idx",
    .file = ".bin file",
    .checksum = PSTK__CHECKSUM_NONE,
    .probe = megatron_probe,
    .open = megatron_open,
    .close = pstk__indexed_close,
    .index = pstk__indexed_index,
    .locate = pstk__indexed_locate,
    .range = pstk__indexed_range,
    .page = pstk__indexed_page,
    .page_check = pstk__indexed_page_check,
    .n_extents = megatron_n_extents,
    .extent = megatron_extent,
    .parse = megatron_parse,
    .file_name = pstk__indexed_file_name,
    .file_path = pstk__indexed_file_path,
    .file_check = pstk__indexed_file_check,
};
