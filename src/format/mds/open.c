/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "format/indexed.h"
#include "format/mds/index_json.h"
#include "format/mds/mds.h"
#include "format/mds/scan.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEAR_BYTES 16384 /* max bytes between values that are read, because skipping costs more */
#define HEAD_ONLY 0xffu  /* takes the place of columns in an extent with only the head */

/* ---- opening --------------------------------------------------------------------------------- */

/* Write the path of a name in a folder. 0, or EINVAL: it is too long. */
static int join(char to[PATH_MAX], const char *folder, const char *name)
{
    const int n = snprintf(to, PATH_MAX, "%s/%s", folder, name);
    return n < 0 || n >= PATH_MAX ? PSTK_EINVAL : 0;
}

/* A pstk__store_name_fn. */
static int is_shard(void *user, const char *name)
{
    (void)user;
    const size_t n = strlen(name);
    return n > 4 && name[0] != '.' && strcmp(name + n - 4, ".mds") == 0;
}

static int mds_probe(const struct pstk__store *store, const char *path, struct pstk_error *err)
{
    char name[PATH_MAX], text[4096];
    struct pstk__file file;
    if (join(name, path, PSTK__MDS_INDEX) < 0)
        return 0;
    int r = store->open(store, &file, name);
    if (r == 0) {
        const int64_t n = pstk__file_read(&file, text, sizeof text, 0);
        r = n < 0 ? (int)n : n > 0 && pstk__mds_index_probe(text, (uint64_t)n);
    } else if (pstk__store_is_absent(r)) {
        r = 0;
    }
    pstk__file_end(&file);
    if (r == 0 && store->list)
        r = store->list(store, path, is_shard, NULL);
    if (r >= 0 || r == -ENOENT || r == -ENOTDIR)
        return r > 0;
    return pstk__fail_errno(err, -r, PSTK_STAGE_OPEN, "cannot open %s", path);
}

/* Replace the names of missing shard files by those of their compressed files. If a shard has both,
 * the uncompressed one is read. */
static int name_packed(struct pstk__mds *mds, struct pstk__texts *names,
                       const struct pstk__opening *opening)
{
    struct pstk__texts found = {0};
    char raw[PATH_MAX], packed[PATH_MAX + 16];
    uint64_t n_packed = 0;
    int r = pstk__texts_open(&found, names->n, names->size + 8 * names->n);
    for (uint64_t i = 0; r == 0 && i < names->n; i++) {
        struct pstk__mds_shard *shard = &mds->shards[i];
        const char *name = pstk__texts_get(names, i);
        const char *ending = pstk__mds_packing(shard->packing)->ending;
        if (shard->packing && join(raw, opening->path, name) == 0 &&
            !pstk__store_has_file(opening->store, raw)) {
            snprintf(packed, sizeof packed, "%s%s", raw, ending);
            shard->is_packed = pstk__store_has_file(opening->store, packed) ? 1 : 0;
        }
        n_packed += shard->is_packed;
        snprintf(packed, sizeof packed, "%s%s", name, shard->is_packed ? ending : "");
        pstk__texts_add(&found, packed, strlen(packed));
    }
    if (r < 0 || n_packed == 0) {
        pstk__texts_close(&found);
        return r;
    }
    pstk__texts_close(names);
    *names = found;
    return 0;
}

/* The known callback of a pstk__scanner. */
static void known(const void *own, uint64_t i, uint32_t *packing, uint64_t *unpacked)
{
    const struct pstk__mds *mds = own;
    const struct pstk__mds_shard *shard = &mds->shards[i];
    *packing = shard->is_packed ? pstk__mds_packing(shard->packing)->number : 0;
    if (*packing)
        *unpacked = shard->size;
}

static int fail_missing(const char *folder, const char *name, struct pstk_error *err)
{
    return pstk__fail(err, PSTK_ENOENT, PSTK_STAGE_OPEN,
                      "the shard %s/%s is missing; index.json lists it: copy the data set again",
                      folder, name);
}

/* The list callback of a pstk__scanner. */
static int list(struct pstk__listing *listing, void **own, const struct pstk__opening *opening,
                struct pstk_error *err)
{
    char path[PATH_MAX];
    struct pstk__mds *mds;
    struct pstk__texts names = {0};
    uint64_t digest[2] = {1, 2}, missing = PSTK_NONE, size;
    void *text;
    if (join(path, opening->path, PSTK__MDS_INDEX) < 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "the path is too long: %.400s...",
                          opening->path);
    int r = pstk__store_load(opening->store, path, PSTK__MDS_INDEX_MAX, &text, &size, err);
    if (r < 0)
        return r;
    r = pstk__mds_index_parse(&mds, &names, digest, text, size, path, err);
    free(text);
    if (r < 0)
        return r;
    *own = mds;
    if (name_packed(mds, &names, opening) < 0) {
        pstk__texts_close(&names);
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the shards of %s",
                          opening->path);
    }
    r = pstk__listing_of(listing, opening->store, opening->path, &names,
                         opening->salvage ? NULL : &missing, err);
    if (r == PSTK_ENOENT && missing != PSTK_NONE)
        r = fail_missing(opening->path, pstk__texts_get(&names, missing), err);
    memcpy(listing->digest, digest, sizeof digest);
    pstk__texts_close(&names);
    return r;
}

static const struct pstk__scanner scanner = {
    .format = &pstk__format_mds,
    .version = 2,
    .list = list,
    .may_be_packed = 1,
    .known = known,
    .infer = pstk__mds_infer,
    .scan = pstk__mds_scan,
    .retype = pstk__mds_retype,
};

static const struct pstk__mds *mds_of(const struct pstk__source *source)
{
    return ((const struct pstk__indexed *)source->state)->own;
}

static const char *file_hash(const struct pstk__source *source, uint32_t file, const char **digits)
{
    const struct pstk__mds *mds = mds_of(source);
    if (file >= mds->n_shards || !mds->shards[file].hash)
        return NULL;
    *digits = mds->texts + mds->shards[file].digits;
    return mds->texts + mds->shards[file].hash;
}

/* Find the field of each column. */
static void match_fields(struct pstk__source *source)
{
    struct pstk__mds *mds = ((struct pstk__indexed *)source->state)->own;
    for (uint32_t c = 0; c < mds->columns.n; c++) {
        const struct pstk__mds_column *column = &mds->columns.at[c];
        const int f = pstk__schema_find(&source->schema, column->field.name);
        mds->field[c] = f;
        mds->mean[c] = !column->is_variable ? column->size
                       : f < 0              ? 0
                                            : source->stats[f].stored_bytes / source->n_samples;
    }
}

static int mds_open(struct pstk__source **out, const struct pstk__opening *opening,
                    struct pstk_error *err)
{
    const int r = pstk__indexed_open(out, &scanner, opening, err);
    if (r < 0)
        return r;
    match_fields(*out);
    (*out)->limits.max_size += 1; /* a head read alone may have 1 byte that is read twice */
    return 0;
}

/* ---- where things are ------------------------------------------------------------------------ */

/* The extents of samples for a set of fields: runs of columns whose values lie near each other, on
 * average; the first has the begin of the sample. They are the same for all samples. At least one
 * unread column lies between two runs, so there are at most 33. */
struct runs {
    uint32_t n;
    struct run {
        uint32_t first, last; /* columns; HEAD_ONLY: none */
    } at[PSTK_MAX_FIELDS];
};

/* Return the bytes at the begin of a sample that parsing needs: sizes of values, or the first byte.
 */
static uint64_t head_of(const struct pstk__mds *mds)
{
    return mds->columns.n_variable ? pstk__mds_head(&mds->columns) : 1;
}

static void find_runs(const struct pstk__mds *mds, uint64_t fields, struct runs *runs)
{
    uint64_t skipped = 0; /* bytes since the end of the last run */
    runs->n = 1;
    runs->at[0] = (struct run){HEAD_ONLY, HEAD_ONLY};
    for (uint32_t c = 0; c < mds->columns.n; c++) {
        if (mds->field[c] < 0 || !(fields >> mds->field[c] & 1)) {
            skipped += mds->mean[c];
            continue;
        }
        if (skipped > NEAR_BYTES)
            runs->at[runs->n++] = (struct run){c, c};
        else if (runs->at[runs->n - 1].first == HEAD_ONLY)
            runs->at[runs->n - 1] = (struct run){0, c};
        else
            runs->at[runs->n - 1].last = c;
        skipped = 0;
    }
}

static uint32_t mds_n_extents(const struct pstk__source *source, uint64_t fields)
{
    struct runs runs;
    find_runs(mds_of(source), fields, &runs);
    return runs.n;
}

/* Return the max or mean bytes of a sample that are read. */
static uint64_t mds_read_size(const struct pstk__source *source, uint64_t fields, int is_max)
{
    const struct pstk__mds *mds = mds_of(source);
    struct runs runs;
    uint64_t size = head_of(mds);
    find_runs(mds, fields, &runs);
    for (uint32_t k = 0; k < runs.n; k++)
        for (uint32_t c = runs.at[k].first; c <= runs.at[k].last && c != HEAD_ONLY; c++) {
            const int is_mean = !is_max || !mds->columns.at[c].is_variable;
            if (!is_mean && mds->field[c] < 0)
                return source->limits.max_size; /* a column of unknown size is read */
            size += is_mean ? mds->mean[c] : source->limits.max_stored[mds->field[c]];
        }
    return size < source->limits.max_size ? size : source->limits.max_size;
}

/* Find the begins of a sample's values from the index. Returns the sample's bytes. */
static uint64_t find_offsets(const struct pstk__source *source,
                             const struct pstk__sample_location *at, const void *page,
                             struct pstk__mds_offsets *offsets)
{
    const struct pstk__mds_columns *columns = &mds_of(source)->columns;
    uint8_t head[4 * PSTK_MAX_FIELDS];
    for (uint32_t i = 0; i < columns->n_variable; i++)
        pstk__put32(head + 4 * i,
                    (uint32_t)pstk__indexed_cell(source, at, page, PSTK__MDS_SIZES + i));
    pstk__mds_find_offsets(offsets, columns, head);
    return pstk__indexed_cell(source, at, page, PSTK__MDS_SIZE);
}

static int mds_extent(const struct pstk__source *source, const struct pstk__sample_location *at,
                      uint64_t fields, const void *page, struct pstk__extent *out,
                      struct pstk_error *err)
{
    const struct pstk__mds *mds = mds_of(source);
    struct pstk__mds_offsets offsets;
    struct runs runs;
    const uint64_t begin = pstk__indexed_cell(source, at, page, PSTK__MDS_BEGIN);
    const uint64_t size = find_offsets(source, at, page, &offsets);
    const uint64_t end = pstk__indexed_index(source)->files[at->shard].size;
    /* The index's own limits sized the memory. */
    if (offsets.begin[mds->columns.n] != size || size >= source->limits.max_size || begin > end ||
        size > end - begin)
        return pstk__indexed_fail_extent(source, at, begin, size, err);
    find_runs(mds, fields, &runs);
    for (uint32_t k = 0; k < runs.n; k++) {
        const struct run *run = &runs.at[k];
        const int has_columns = run->first != HEAD_ONLY;
        const uint64_t from = k == 0 ? 0 : offsets.begin[run->first];
        const uint64_t to = has_columns ? offsets.begin[run->last + 1] : head_of(mds);
        out[k] = (struct pstk__extent){.file = at->shard,
                                       .page = run->first | run->last << 8,
                                       .record = at->record,
                                       .offset = begin + from,
                                       .size = to - from,
                                       .whole_size = to - from};
    }
    return 0;
}

/* ---- a sample -------------------------------------------------------------------------------- */

/* View the values of the columns in an extent. */
static int view_run(const struct pstk__source *source, uint64_t fields,
                    const struct pstk__extent *extent, const struct pstk__mds_offsets *offsets,
                    struct pstk__record *out, struct pstk_error *err)
{
    const struct pstk__index *index = pstk__indexed_index(source);
    const struct pstk__mds *mds = mds_of(source);
    for (uint32_t c = extent->page & 0xff; c <= extent->page >> 8; c++) {
        char text[160];
        const int32_t f = mds->field[c];
        const uint64_t size = offsets->begin[c + 1] - offsets->begin[c];
        const uint8_t *data =
            extent->data + (out->file_offset + offsets->begin[c] - extent->offset);
        if (f < 0 || !(fields >> f & 1))
            continue;
        struct pstk__field_view *view = &out->fields[f];
        const char *wrong = pstk__mds_view(view, &index->found.fields[f], data, size, text);
        view->offset = offsets->begin[c] + (uint64_t)(view->data - data);
        if (!wrong && (view->stored_size > source->limits.max_stored[f] ||
                       view->plain_size > source->limits.max_plain[f]))
            wrong = "is larger than the index says";
        if (wrong)
            return pstk__record_fail(out, (uint32_t)f, PSTK_EBADMSG, PSTK_STAGE_RECORD, err, "%s",
                                     wrong);
    }
    return 0;
}

static int mds_parse(const struct pstk__source *source, const struct pstk__sample_location *at,
                     uint64_t fields, const struct pstk__extent *extents, uint32_t n_extents,
                     struct pstk__record *out, struct pstk_error *err)
{
    const struct pstk__mds *mds = mds_of(source);
    struct pstk__mds_offsets offsets;
    pstk__indexed_begin(source, at, n_extents ? extents[0].offset : 0, out);
    if (n_extents == 0)
        return 0;
    pstk__mds_find_offsets(&offsets, &mds->columns, extents[0].data);
    for (uint32_t k = 0; k < n_extents; k++) {
        const struct pstk__extent *extent = &extents[k];
        const uint32_t first = extent->page & 0xff, last = extent->page >> 8;
        if (first == HEAD_ONLY)
            continue;
        /* The index has the sizes of this head, as it was when it was scanned. */
        const uint64_t from = k == 0 ? 0 : offsets.begin[first];
        if (out->file_offset + from != extent->offset ||
            offsets.begin[last + 1] - from != extent->size)
            return pstk__indexed_fail(source, at, out->file_offset, head_of(mds), err,
                                      "its head and the index give its values different sizes: it "
                                      "is damaged; copy the file again");
        const int r = view_run(source, fields, extent, &offsets, out, err);
        if (r < 0)
            return r;
    }
    return 0;
}

const struct pstk__format pstk__format_mds = {
    .name = "mds",
    .needs = "an index.json and MDS shards",
    .file = "shard",
    .checksum = PSTK__CHECKSUM_NONE,
    .has_directory = 1,
    .probe = mds_probe,
    .open = mds_open,
    .close = pstk__indexed_close,
    .index = pstk__indexed_index,
    .file_hash = file_hash,
    .locate = pstk__indexed_locate,
    .range = pstk__indexed_range,
    .page = pstk__indexed_page,
    .page_check = pstk__indexed_page_check,
    .n_extents = mds_n_extents,
    .extent = mds_extent,
    .parse = mds_parse,
    .read_size = mds_read_size,
    .file_name = pstk__indexed_file_name,
    .file_path = pstk__indexed_file_path,
    .file_check = pstk__indexed_file_check,
};
