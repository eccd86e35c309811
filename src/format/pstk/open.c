/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `.pstk`: a directory with manifest.json and shards. Memory: the manifest, a cumulative count and
 * 16 bytes for each shard, in all some 150 bytes for each shard, and none for each record.
 */
#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "format/pstk/column_file.h"
#include "format/pstk/pstk.h"
#include "format/pstk/manifest_file.h"
#include "format/pstk/shard.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

_Static_assert(PSTK__PAGE_SIZE == PSTK__INDEX_PAGE, "two names of one size");

/* Values that only the header of a shard has. Every file_check of a shard stores the same values,
 * because the manifest has the header's CRC. `tag` is stored last and read first. */
struct shard_facts {
    _Atomic uint64_t data_end; /* end of the data, bytes */
    _Atomic uint64_t tag;      /* TAG_KNOWN | tag; 0 before the first check */
};

#define TAG_KNOWN (1ull << 32)

struct pstk_state {
    struct pstk__manifest manifest; /* manifest, whose names were moved to the source */
    uint64_t *first; /* first sample ids of the shards, ascending, then n_samples; owned, n_shards +
                        1 */
    struct shard_facts *facts;              /* owned, n_shards */
    struct pstk__dictionary **dictionaries; /* owned, manifest.n_dictionaries; NULL: not opened */
    uint64_t stored_fields;                 /* a bit for each field that has an entry */
};

/* ---- open and close -------------------------------------------------------------------------- */

/* A pstk__store_name_fn: 1 for a shard. */
static int is_shard(void *user, const char *name)
{
    (void)user;
    return pstk__text_ends_with(name, ".pstk");
}

/* 1: the manifest begins as penstock's do, or is damaged and has shards next to it; 0: another
 * program wrote it; a negative errno: it cannot be read. */
static int is_ours(const struct pstk__store *store, const char *path, const struct pstk__file *file)
{
    char head[sizeof PSTK__MANIFEST_HEAD - 1];
    const int64_t n = pstk__file_read(file, head, sizeof head, 0);
    if (n == (int64_t)sizeof head && memcmp(head, PSTK__MANIFEST_HEAD, sizeof head) == 0)
        return 1;
    if (n < 0)
        return (int)n;
    return !store->list || store->list(store, path, is_shard, NULL) != 0;
}

static int pstk_probe(const struct pstk__store *store, const char *path, struct pstk_error *err)
{
    char name[PATH_MAX];
    struct pstk__file file;
    int n = snprintf(name, sizeof name, "%s/" PSTK__MANIFEST_FILE, path);
    if (n < 0 || (size_t)n >= sizeof name)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "the path is too long: %.400s...",
                          path);
    n = store->open(store, &file, name);
    const int ours = n == 0 ? is_ours(store, path, &file) : 1;
    pstk__file_end(&file);
    if (ours < 0)
        return pstk__fail_errno(err, -ours, PSTK_STAGE_OPEN, "cannot read %s", name);
    if (!ours)
        return 0;
    if (n == -ENOENT || n == -ENOTDIR)
        return 0;
    /* An entry that is not a regular file means a damaged data set; loading the manifest reports
     * it. */
    if (n == 0 || n == -EISDIR || n == -EINVAL || n == -ENXIO)
        return 1;
    return pstk__fail_errno(err, -n, PSTK_STAGE_OPEN, "cannot open %s", name);
}

static void pstk_close(struct pstk__source *source)
{
    struct pstk_state *state = source->state;
    for (uint32_t i = 0; state && state->dictionaries && i < state->manifest.n_dictionaries; i++)
        pstk__dictionary_close(state->dictionaries[i]);
    if (state) {
        free(state->dictionaries);
        free(state->facts);
        free(state->first);
        pstk__manifest_free(&state->manifest);
        free(state);
    }
    pstk__texts_close(&source->names);
    free(source->path);
    free(source);
}

static int pstk_stands(const struct pstk__source *source, struct pstk_error *err)
{
    const struct pstk_state *state = source->state;
    if (pstk__manifest_stands(&state->manifest, source->store, source->path) != 0)
        return 0;
    return pstk__fail(
        err, PSTK_ENOENT, PSTK_STAGE_SHARD,
        "%s: the data set was replaced, removed or renamed while it was open%s: open it again%s",
        source->path,
        source->path[0] == '/' ? ""
                               : ", or the program changed to another directory, where this "
                                 "relative path leads elsewhere",
        source->path[0] == '/' ? "" : ", best by an absolute path");
}

static int file_path(const struct pstk__source *source, const char *file, char *path, size_t size)
{
    int n = snprintf(path, size, "%s/%s", source->path, file);
    return n < 0 || (size_t)n >= size ? PSTK_EINVAL : 0;
}

static int open_dictionary(struct pstk__source *source, uint32_t i, struct pstk_error *err)
{
    struct pstk_state *state = source->state;
    const struct pstk__manifest_dictionary *dictionary = &state->manifest.dictionaries[i];
    char path[PATH_MAX];
    if (file_path(source, dictionary->file, path, sizeof path) < 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "the path is too long: %.400s...",
                          source->path);
    void *bytes;
    uint64_t size;
    int r = pstk__store_load(source->store, path, PSTK__MAX_DICTIONARY, &bytes, &size, err);
    if (r < 0)
        return r;
    uint32_t crc = pstk__crc32c(0, bytes, size);
    if (size != dictionary->bytes || crc != dictionary->crc) {
        r = pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                       "%s is damaged: %llu bytes with checksum %08x; the manifest says %llu and "
                       "%08x",
                       path, (unsigned long long)size, crc, (unsigned long long)dictionary->bytes,
                       dictionary->crc);
    } else {
        r = pstk__dictionary_open(&state->dictionaries[i], bytes, size, err);
        if (r < 0)
            pstk__fail(err, r, PSTK_STAGE_OPEN, "%s: %s", path, err ? err->message : "");
    }
    free(bytes);
    return r;
}

/* Allocate all arrays whose size the manifest gives. */
static int allocate(struct pstk__source *source, struct pstk_error *err)
{
    struct pstk_state *state = source->state;
    uint32_t n = state->manifest.n_shards, n_dictionaries = state->manifest.n_dictionaries;
    state->first = calloc((size_t)n + 1, sizeof *state->first);
    state->facts = calloc(n, sizeof *state->facts);
    state->dictionaries = calloc(n_dictionaries ? n_dictionaries : 1, sizeof *state->dictionaries);
    if (!state->first || !state->facts || !state->dictionaries)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for %u shards of %s", n,
                          source->path);
    return 0;
}

static void copy_facts(struct pstk__source *source)
{
    struct pstk_state *state = source->state;
    struct pstk__manifest *m = &state->manifest;
    source->schema = m->schema;
    memcpy(source->stats, m->stats, sizeof source->stats);
    memcpy(source->identity, m->identity, sizeof source->identity);
    source->n_samples = m->n_samples;
    source->n_shards = m->n_shards;
    source->n_files = m->n_shards;
    source->bytes = m->bytes;
    for (uint32_t i = 0; i < m->schema.n_fields; i++)
        state->stored_fields |= m->schema.entry[i] < 0 ? 0 : 1ull << i;
    for (uint32_t i = 0; i < m->n_shards; i++) {
        state->first[i + 1] = state->first[i] + m->shards[i].n_records;
        source->n_pages += pstk__shard_n_pages(m->shards[i].n_records);
    }
    source->names = m->names;
    m->names = (struct pstk__texts){0};
    pstk__manifest_limits(m, &source->limits);
}

/* Fill a source; its close also frees a partly filled source. */
static int fill(struct pstk__source *source, const char *path, struct pstk_error *err)
{
    source->path = strdup(path);
    struct pstk_state *state = calloc(1, sizeof *state);
    source->state = state;
    if (!source->path || !state)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to open %s", path);
    int r = pstk__manifest_load(&state->manifest, source->store, path, err);
    if (r < 0)
        return r;
    if (state->manifest.n_samples == 0)
        return pstk__fail(err, PSTK_ENODATA, PSTK_STAGE_OPEN,
                          "%s is empty: the data set has 0 samples", path);
    r = allocate(source, err);
    if (r < 0)
        return r;
    copy_facts(source);
    for (uint32_t i = 0; i < state->manifest.n_dictionaries && r == 0; i++)
        r = open_dictionary(source, i, err);
    if (r < 0 && pstk_stands(source, err) < 0)
        r = PSTK_ENOENT;
    return r;
}

static int pstk_open_source(struct pstk__source **out, const struct pstk__opening *opening,
                            struct pstk_error *err)
{
    *out = NULL;
    struct pstk__source *source = calloc(1, sizeof *source);
    if (!source)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to open %s", opening->path);
    source->format = &pstk__format_pstk;
    source->store = opening->store;
    int r = fill(source, opening->path, err);
    if (r < 0) {
        pstk_close(source);
        return r;
    }
    *out = source;
    return 0;
}

/* ---- where things are ------------------------------------------------------------------------ */

static const struct pstk__manifest_shard *shard_of(const struct pstk__source *source,
                                                   uint32_t shard)
{
    const struct pstk_state *state = source->state;
    return &state->manifest.shards[shard];
}

/* Return the begin of index page 0: the index is the end of the file. The check of the manifest
 * ensures that the difference is not negative. */
static uint64_t index_offset(const struct pstk__manifest_shard *shard)
{
    return shard->bytes - pstk__shard_n_pages(shard->n_records) * PSTK__INDEX_PAGE;
}

/* Find the last shard whose first sample id is at most `id`. */
static void pstk_locate(const struct pstk__source *source, uint64_t id,
                        struct pstk__sample_location *at)
{
    const struct pstk_state *state = source->state;
    uint32_t low = 0, n = state->manifest.n_shards;
    while (n > 1) {
        uint32_t half = n / 2;
        low += state->first[low + half] <= id ? half : 0;
        n -= half;
    }
    at->shard = low;
    at->record = id - state->first[low];
}

static void pstk_range(const struct pstk__source *source, uint32_t shard, uint64_t *first,
                       uint64_t *n)
{
    const struct pstk_state *state = source->state;
    *first = state->first[shard];
    *n = state->first[shard + 1] - state->first[shard];
}

static const char *pstk_file_name(const struct pstk__source *source, uint32_t shard)
{
    return shard_of(source, shard)->file;
}

static const struct pstk__dictionary *pstk_dictionary(const struct pstk__source *source,
                                                      uint32_t shard, uint32_t field)
{
    const struct pstk_state *state = source->state;
    const struct pstk__manifest_shard *m = &state->manifest.shards[shard];
    for (uint32_t i = 0; i < m->n_dictionaries; i++)
        if (state->manifest.dictionaries[m->dictionaries[i]].field == field)
            return state->dictionaries[m->dictionaries[i]];
    return NULL;
}

static void pstk_page(const struct pstk__source *source, const struct pstk__sample_location *at,
                      struct pstk__extent *page)
{
    uint32_t p = (uint32_t)(at->record / PSTK__PAGE_RECORDS);
    *page = (struct pstk__extent){
        .file = at->shard,
        .page = p,
        .record = (uint64_t)p * PSTK__PAGE_RECORDS,
        .offset = index_offset(shard_of(source, at->shard)) + (uint64_t)p * PSTK__INDEX_PAGE,
        .size = PSTK__INDEX_PAGE,
        .whole_size = PSTK__INDEX_PAGE,
    };
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* Set *tag to the shard's tag. EINVAL: its header was not checked yet. */
static int tag_of(const struct pstk__source *source, uint32_t shard, uint32_t *tag,
                  struct pstk_error *err)
{
    const struct pstk_state *state = source->state;
    /* acquire: pairs with the release in learn. */
    uint64_t known = atomic_load_explicit(&state->facts[shard].tag, memory_order_acquire);
    *tag = (uint32_t)known;
    if (known & TAG_KNOWN)
        return 0;
    return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_SHARD,
                      "%s was not checked before it was read from", pstk_file_name(source, shard));
}

static void learn(const struct pstk__source *source, uint32_t shard,
                  const struct pstk__shard_header *h)
{
    struct pstk_state *state = source->state;
    atomic_store_explicit(&state->facts[shard].data_end, h->data_end, memory_order_relaxed);
    /* release: a thread that sees the tag also sees data_end (tag_of). */
    atomic_store_explicit(&state->facts[shard].tag, TAG_KNOWN | h->tag, memory_order_release);
}

static int pstk_page_check(const struct pstk__source *source, const struct pstk__extent *page,
                           const void *bytes, struct pstk_error *err)
{
    const struct pstk_state *state = source->state;
    const struct pstk__manifest_shard *shard = shard_of(source, page->file);
    uint32_t tag;
    int r = tag_of(source, page->file, &tag, err);
    if (r < 0)
        return r;
    const struct pstk__page_location location = {
        .shard = shard->file,
        .tag = tag,
        .page = page->page,
        .n_records = shard->n_records,
        .data_end = atomic_load_explicit(&state->facts[page->file].data_end, memory_order_relaxed),
        .index_offset = index_offset(shard),
        .head_size = source->schema.head_size,
    };
    return pstk__page_check(&location, bytes, err);
}

static int pstk_extent(const struct pstk__source *source, const struct pstk__sample_location *at,
                       uint64_t fields, const void *page, struct pstk__extent *out,
                       struct pstk_error *err)
{
    const struct pstk_state *state = source->state;
    uint64_t offset, size;
    pstk__page_extent(page, at->record, &offset, &size);
    if (size > source->limits.max_size) {
        const char *name = pstk_file_name(source, at->shard);
        pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_SHARD,
                   "%s: record %llu (bytes %llu to %llu): %llu bytes are more than the manifest's "
                   "maxima allow (%llu)",
                   name, (unsigned long long)at->record, (unsigned long long)offset,
                   (unsigned long long)(offset + size - 1), (unsigned long long)size,
                   (unsigned long long)source->limits.max_size);
        pstk__fail_at(err, PSTK_EBADMSG, name, at->record, offset, size);
        return PSTK_EBADMSG;
    }
    *out = (struct pstk__extent){
        .file = at->shard,
        .record = at->record,
        .offset = offset,
        .size = fields & state->stored_fields ? size : source->schema.head_size,
        .whole_size = size,
    };
    return 0;
}

static int pstk_parse(const struct pstk__source *source, const struct pstk__sample_location *at,
                      uint64_t fields, const struct pstk__extent *extent, uint32_t n_extents,
                      struct pstk__record *out, struct pstk_error *err)
{
    (void)fields;
    (void)n_extents; /* one */
    struct pstk__record_location location = {
        .shard = pstk_file_name(source, at->shard),
        .file = at->shard,
        .number = at->record,
        .file_offset = extent->offset,
        .size = extent->whole_size,
    };
    int r = tag_of(source, at->shard, &location.tag, err);
    if (r < 0)
        return r;
    return pstk__record_parse(out, &source->schema, &source->limits, &location, extent->data,
                              extent->size, err);
}

/* Fail because the shard file is not the one that the manifest describes. */
static int fail_shard(const char *name, struct pstk_error *err, const char *what, uint64_t is,
                      uint64_t should)
{
    pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_SHARD,
               "%s: %s %llu, the manifest says %llu: the file is cut short, damaged or from "
               "another data set; restore it from a copy",
               name, what, (unsigned long long)is, (unsigned long long)should);
    pstk__fail_at(err, PSTK_EBADMSG, name, PSTK_NONE, 0, 0);
    return PSTK_EBADMSG;
}

static int pstk_file_check(const struct pstk__source *source, uint32_t shard,
                           const struct pstk__file *file, struct pstk_error *err)
{
    const struct pstk__manifest_shard *m = shard_of(source, shard);
    _Alignas(64) uint8_t bytes[PSTK__HEADER_SIZE];
    struct pstk__shard_header h;
    uint64_t size;
    int64_t changed_ns;
    int rc = file->store->stat(file, &size, &changed_ns);
    if (rc < 0)
        return pstk__fail_errno(err, -rc, PSTK_STAGE_SHARD, "cannot read shard %s", m->file);
    if (size != m->bytes)
        return fail_shard(m->file, err, "its size in bytes is", size, m->bytes);
    int64_t n = pstk__file_read(file, bytes, sizeof bytes, 0);
    if (n < 0)
        return pstk__fail_errno(err, (int)-n, PSTK_STAGE_SHARD, "cannot read shard %s", m->file);
    if ((uint64_t)n != sizeof bytes)
        return fail_shard(m->file, err, "the number of bytes that it has of its header is",
                          (uint64_t)n, sizeof bytes);
    int r = pstk__shard_header_check(&h, bytes, m->file, err);
    if (r < 0)
        return r;
    if (h.schema_crc != source->schema.crc)
        return fail_shard(m->file, err, "the checksum of its schema is", h.schema_crc,
                          source->schema.crc);
    if (h.n_records != m->n_records)
        return fail_shard(m->file, err, "its number of records is", h.n_records, m->n_records);
    if (h.file_size != m->bytes)
        return fail_shard(m->file, err, "its size in bytes, according to its header, is",
                          h.file_size, m->bytes);
    if (h.index_crc != m->index_crc)
        return fail_shard(m->file, err, "the checksum of its index is", h.index_crc, m->index_crc);
    if (h.crc != m->header_crc)
        return fail_shard(m->file, err, "the checksum of its header is", h.crc, m->header_crc);
    learn(source, shard, &h);
    return 0;
}

/* ---- columns --------------------------------------------------------------------------------- */

static uint32_t pstk_n_columns(const struct pstk__source *source)
{
    const struct pstk_state *state = source->state;
    return state->manifest.n_columns;
}

static void pstk_column(const struct pstk__source *source, uint32_t i,
                        struct pstk_column_info *info)
{
    const struct pstk_state *state = source->state;
    const struct pstk__manifest_column *column = &state->manifest.columns[i];
    info->dtype = column->dtype;
    info->fact = column->fact;
    info->field = column->field;
    memcpy(info->name, column->name, sizeof info->name);
}

static uint64_t pstk_column_bytes(const struct pstk__source *source, uint32_t i)
{
    const struct pstk_state *state = source->state;
    const struct pstk__manifest *m = &state->manifest;
    uint64_t bytes = 0; /* at most 2^40 values of 8 bytes, and two pages a shard: no overflow */
    for (uint32_t k = 0; k < m->n_shards; k++)
        bytes += pstk__column_file_size(m->shards[k].n_records, m->columns[i].dtype);
    return bytes;
}

/* Append advice to the message about a column's file; returns r. */
static int advise_column(const struct pstk__source *source, const char *column, int r,
                         struct pstk_error *err)
{
    if (err && (r == PSTK_EBADMSG || r == PSTK_ENOENT)) {
        const size_t n = strlen(err->message);
        snprintf(err->message + n, sizeof err->message - n,
                 "; restore it from a copy, or remove the column: penstock column %s %s --remove",
                 source->path, column);
    }
    return r;
}

/* Open a column's file. On failure, check whether the data set or its columns were replaced. */
static int open_column(const struct pstk__source *source, uint32_t i, uint32_t shard,
                       struct pstk__column_file *file, struct pstk_error *err)
{
    const struct pstk_state *state = source->state;
    const struct pstk__column_location location = {.store = source->store,
                                                   .path = source->path,
                                                   .manifest = &state->manifest,
                                                   .column = i,
                                                   .shard = shard};
    const int r = pstk__column_file_open(file, &location, err);
    if (r == 0)
        return 0;
    if (pstk_stands(source, err) < 0)
        return PSTK_ENOENT;
    if (pstk__manifest_unchanged(&state->manifest, source->store, source->path) != 0)
        return advise_column(source, state->manifest.columns[i].name, r, err);
    return pstk__fail(err, PSTK_ENOENT, PSTK_STAGE_SHARD,
                      "%s: the columns of the data set were changed while it was open: open it "
                      "again to read column %s",
                      source->path, state->manifest.columns[i].name);
}

static int pstk_column_check(const struct pstk__source *source, uint32_t i, uint32_t shard,
                             struct pstk_error *err)
{
    struct pstk__column_file file;
    const int r = open_column(source, i, shard, &file, err);
    if (r == 0)
        pstk__column_file_close(&file);
    return r;
}

static int pstk_column_read(const struct pstk__source *source, uint32_t i, uint64_t first,
                            uint64_t n, void *out, struct pstk_error *err)
{
    const struct pstk_state *state = source->state;
    const uint64_t size = pstk_dtype_size(state->manifest.columns[i].dtype);
    struct pstk__sample_location at;
    void *buffer = aligned_alloc(64, PSTK__COLUMN_READ);
    int r = buffer ? 0
                   : pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_READ, "no memory to read column %s",
                                state->manifest.columns[i].name);
    pstk_locate(source, first, &at);
    for (uint8_t *to = out; r == 0 && n > 0; at.shard++, at.record = 0) {
        struct pstk__column_file file;
        const uint64_t left = state->manifest.shards[at.shard].n_records - at.record;
        const uint64_t here = n < left ? n : left;
        r = open_column(source, i, at.shard, &file, err);
        if (r < 0)
            break;
        r = advise_column(source, state->manifest.columns[i].name,
                          pstk__column_file_read(&file, at.record, here, to, buffer, err), err);
        pstk__column_file_close(&file);
        n -= here;
        to += here * size;
    }
    free(buffer);
    return r;
}

const struct pstk__format pstk__format_pstk = {
    .name = "pstk",
    .needs = "a manifest.json and .pstk shards",
    .file = "shard",
    .checksum = PSTK__CHECKSUM_CRC32C,
    .version = PSTK_FORMAT_VERSION,
    .has_heads = 1,
    .has_parts = 1,
    .has_directory = 1,
    .probe = pstk_probe,
    .open = pstk_open_source,
    .close = pstk_close,
    .locate = pstk_locate,
    .range = pstk_range,
    .page = pstk_page,
    .page_check = pstk_page_check,
    .extent = pstk_extent,
    .parse = pstk_parse,
    .dictionary = pstk_dictionary,
    .file_name = pstk_file_name,
    .file_check = pstk_file_check,
    .stands = pstk_stands,
    .n_columns = pstk_n_columns,
    .column = pstk_column,
    .column_bytes = pstk_column_bytes,
    .column_read = pstk_column_read,
    .column_check = pstk_column_check,
    .verify = pstk__pstk_verify,
};
