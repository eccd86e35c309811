/* SPDX-License-Identifier: Apache-2.0 */
#include "format/indexed.h"

#include "base/parallel_map.h"
#include "base/error.h"
#include "store/index/location.h"

#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- building -------------------------------------------------------------------------------- */

/* The input of the index of a data set. */
struct work {
    const struct pstk__scanner *scanner;
    const struct pstk__opening *opening;
    const struct pstk__listing *listing;
    const void *own;
    uint64_t n_total;                /* bytes of all files */
    struct pstk__index_build *build; /* borrowed during the build: n_done bytes, n_joined files; its
                                        fields are fixed before the first scan */
};

/* The result of a job: the rows of a file. */
struct result {
    struct pstk__index_rows rows;
    struct pstk__inferred_schema found;
};

static int path_of(const struct pstk__listing *listing, uint64_t i, char path[PATH_MAX])
{
    const int n =
        snprintf(path, PATH_MAX, "%s/%s", listing->folder, pstk__texts_get(&listing->names, i));
    return n < 0 || n >= PATH_MAX ? PSTK_EINVAL : 0;
}

/* Return the scan of file i, with its path in `path`. */
static struct pstk__scan scan_of(const struct work *work, uint64_t i, char path[PATH_MAX])
{
    (void)path_of(work->listing, i, path); /* the length was checked when the file was listed */
    return (struct pstk__scan){.store = work->opening->store,
                               .name = pstk__texts_get(&work->listing->names, i),
                               .path = path,
                               .size = work->listing->sizes[i],
                               .number = i,
                               .own = work->own,
                               .foreign = work->opening->foreign};
}

/* Begin fields with the same names and codings, and sums of 0. */
static void begin_found(struct pstk__inferred_schema *to, const struct pstk__inferred_schema *from)
{
    *to = (struct pstk__inferred_schema){.n_fields = from->n_fields};
    for (uint32_t i = 0; i < from->n_fields; i++) {
        to->fields[i].field = from->fields[i].field;
        to->fields[i].coding = from->fields[i].coding;
    }
}

/* 1: the failure concerns a single file, so that others may be intact. */
static int is_of_file(int code)
{
    return code == PSTK_EBADMSG || code == PSTK_EIO || code == PSTK_ENOENT || code == PSTK_EACCES ||
           code == PSTK_EPERM || code == PSTK_ENOTSUP || code == PSTK_EFBIG;
}

/* Fail if the file is missing, which is possible in a damaged data set: its size is then 0, and
 * scanners do not report it. */
static int check_there(const struct work *work, const struct pstk__scan *scan,
                       struct pstk_error *err)
{
    struct pstk__file file;
    if (!work->opening->salvage || scan->size > 0)
        return 0;
    const int r = scan->store->open(scan->store, &file, scan->path);
    pstk__file_end(&file);
    return r < 0 ? pstk__fail_errno(err, -r, PSTK_STAGE_OPEN, "cannot open %s", scan->path) : 0;
}

/* Set the file of a failure that names none. */
static void name_file(struct pstk_error *bad, const char *name)
{
    if (!bad->shard[0])
        pstk__fail_at(bad, bad->code, name, bad->record, bad->offset, bad->length);
}

/* Scan file number `job`, on a thread of the map. */
static int scan_file(void *state, uint64_t job, const struct pstk__map_sink *sink, void *result,
                     struct pstk_error *err)
{
    const struct work *work = state;
    struct result *found = result;
    char path[PATH_MAX];
    struct pstk__scan scan = scan_of(work, job, path);
    scan.progress = sink->progress;
    scan.user = sink->user;
    *found = (struct result){0};
    if (work->scanner->n_columns)
        found->rows.n_columns = work->scanner->n_columns(&work->build->found);
    begin_found(&found->found, &work->build->found);
    struct pstk_error bad;
    pstk_error_init(&bad, sizeof bad);
    /* Scan even a missing file, because the scan sets the columns of its rows. */
    int r = work->scanner->scan(&scan, &found->rows, &found->found, &bad);
    if (r < 0 && r != PSTK_ENOMEM && check_there(work, &scan, &bad) < 0)
        r = bad.code;
    if (r < 0 && work->opening->salvage && is_of_file(r)) {
        name_file(&bad, scan.name);
        r = sink->bad(sink->user, &bad) ? PSTK_ECANCELED : 0;
    }
    if (r < 0)
        pstk__index_rows_close(&found->rows);
    return r < 0 ? pstk__fail_copy(err, &bad) : 0;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void add_found(struct pstk__inferred_schema *to, const struct pstk__inferred_schema *from)
{
    to->max_record = larger(to->max_record, from->max_record);
    for (uint32_t i = 0; i < PSTK__INDEX_FACTS; i++)
        to->facts[i] = larger(to->facts[i], from->facts[i]);
    for (uint32_t i = 0; i < to->n_fields; i++) {
        struct pstk__index_field *a = &to->fields[i];
        const struct pstk__index_field *b = &from->fields[i];
        a->n += b->n;
        a->bytes += b->bytes;
        a->max_size = larger(a->max_size, b->max_size);
        a->max_plain = larger(a->max_plain, b->max_plain);
    }
}

/* Write the result of a job, in the order of the files, on the caller's thread. */
static void join_file(void *user, const void *result)
{
    const struct work *work = user;
    const struct pstk__listing *listing = work->listing;
    struct pstk__index_build *build = work->build;
    struct result found = *(const struct result *)result;
    const uint64_t i = build->n_joined++;
    add_found(&build->found, &found.found);
    if (build->code == 0)
        build->code = pstk__index_writer_add(build->writer, pstk__texts_get(&listing->names, i),
                                             listing->sizes[i], listing->changed_ns[i], &found.rows,
                                             build->err);
    pstk__index_rows_close(&found.rows);
}

static void drop_file(void *result)
{
    pstk__index_rows_close(&((struct result *)result)->rows);
}

/* Report a failure, which happens only in a damaged data set: otherwise the first failure ends the
 * map. */
static int report_bad(void *user, const struct pstk_error *bad)
{
    const struct work *work = user;
    return work->opening->salvage->bad(work->opening->salvage->user, bad);
}

static int add_progress(void *user, uint64_t n)
{
    const struct work *work = user;
    return pstk__index_build_advance(work->build, n, work->n_total);
}

uint32_t pstk__indexed_threads(const struct pstk__opening *opening)
{
    const struct pstk_foreign *foreign = opening->foreign;
    cpu_set_t cores;
    if (foreign && foreign->n_threads)
        return foreign->n_threads;
    return sched_getaffinity(0, sizeof cores, &cores) < 0 ? 1 : (uint32_t)CPU_COUNT(&cores);
}

/* Find the fields by the first file that has records. */
static int infer(const struct work *work, struct pstk__inferred_schema *found,
                 struct pstk_error *err)
{
    char path[PATH_MAX];
    int r = 0;
    for (uint64_t i = 0; r == 0 && i < work->listing->names.n && found->n_fields == 0; i++) {
        const struct pstk__scan scan = scan_of(work, i, path);
        r = work->scanner->infer(&scan, work->opening->foreign, found, err);
    }
    return r;
}

/* Infer the fields of file i, which may be damaged. */
static int infer_one(const struct work *work, uint64_t i, struct pstk__inferred_schema *found,
                     struct pstk_error *bad)
{
    char path[PATH_MAX];
    const struct pstk__scan scan = scan_of(work, i, path);
    pstk_error_init(bad, sizeof *bad);
    *found = (struct pstk__inferred_schema){0};
    const int r = check_there(work, &scan, bad);
    return r < 0 ? r : work->scanner->infer(&scan, work->opening->foreign, found, bad);
}

/* Report every file, because none has a readable record. */
static int report_all(const struct work *work, struct pstk__inferred_schema *found,
                      struct pstk_error *err)
{
    for (uint64_t i = 0; i < work->listing->names.n; i++) {
        struct pstk_error bad;
        const int r = infer_one(work, i, found, &bad);
        if (r == 0)
            continue;
        if (!is_of_file(r))
            return pstk__fail_copy(err, &bad);
        name_file(&bad, pstk__texts_get(&work->listing->names, i));
        if (work->opening->salvage->bad(work->opening->salvage->user, &bad))
            return pstk__fail(err, PSTK_ECANCELED, PSTK_STAGE_OPEN, "verify was canceled");
    }
    found->n_fields = 0;
    return 0;
}

/* As infer, for a damaged data set: use the first file whose begin is intact, otherwise the records
 * of the first file before its damage. A damaged file is reported when it is scanned. */
static int infer_salvaged(const struct work *work, struct pstk__inferred_schema *found,
                          struct pstk_error *err)
{
    uint64_t partial = PSTK_NONE;
    struct pstk_error bad;
    for (uint64_t i = 0; i < work->listing->names.n; i++) {
        const int r = infer_one(work, i, found, &bad);
        if (r == 0 && found->n_fields > 0)
            return 0;
        if (r < 0 && !is_of_file(r))
            return pstk__fail_copy(err, &bad);
        if (found->n_fields > 0 && partial == PSTK_NONE)
            partial = i;
    }
    if (partial == PSTK_NONE)
        return report_all(work, found, err);
    infer_one(work, partial, found, &bad); /* only the fields found count */
    return 0;
}

/* The build callback of store/index/location.h. */
static int build(void *user, struct pstk__index_build *build)
{
    struct work *work = user;
    struct pstk__inferred_schema *found = &build->found;
    struct pstk_error *err = build->err;
    work->build = build;
    int r = work->opening->salvage ? infer_salvaged(work, found, err) : infer(work, found, err);
    if (r == 0 && found->n_fields == 0)
        r = pstk__fail(err, PSTK_ENODATA, PSTK_STAGE_OPEN, "%s is empty: its files have no samples",
                       work->opening->path);
    if (r < 0)
        return r;
    const struct pstk__parallel_map map = {.what = "index",
                                           .n_jobs = work->listing->names.n,
                                           .n_threads = pstk__indexed_threads(work->opening),
                                           .result_size = sizeof(struct result),
                                           .user = work,
                                           .run = scan_file,
                                           .join = join_file,
                                           .drop = drop_file,
                                           .bad = report_bad,
                                           .progress = add_progress};
    r = pstk__index_build_result(build, pstk__parallel_map_run(&map, err));
    if (r == PSTK_ECANCELED)
        return pstk__fail(err, r, PSTK_STAGE_OPEN, "indexing %s was canceled; nothing was saved",
                          work->opening->path);
    return r;
}

/* The differs callback of store/index/location.h: returns why an index does not fit the files as
 * they are now. */
static const char *differs(void *user, const struct pstk__index *index)
{
    const struct work *work = user;
    const struct pstk__listing *listing = work->listing;
    return pstk__index_differs(index, &listing->names, listing->sizes, listing->changed_ns);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Digest all that an index depends on, except the sizes and times of files. */
static void digest_key(const struct work *work, uint64_t key[2])
{
    const struct pstk_foreign *foreign = work->opening->foreign;
    const uint64_t version = (uint64_t)PSTK__INDEX_VERSION << 32 | work->scanner->version;
    key[0] = 1;
    key[1] = 2;
    pstk__index_digest(key, work->scanner->format->name, strlen(work->scanner->format->name));
    pstk__index_digest(key, &version, sizeof version);
    pstk__index_digest(key, work->listing->names.bytes, work->listing->names.size);
    if (work->scanner->list)
        pstk__index_digest(key, work->listing->digest, sizeof work->listing->digest);
    for (uint32_t i = 0; foreign && i < foreign->n_fields; i++)
        pstk__index_digest(key, foreign->fields[i].name, strlen(foreign->fields[i].name));
    for (uint32_t i = 0; foreign && i < foreign->n_first_of; i++) {
        const struct pstk_first_of *first_of = &foreign->first_of[i];
        pstk__index_digest(key, first_of->name, strlen(first_of->name));
        pstk__index_digest(key, first_of->suffixes, strlen(first_of->suffixes));
    }
    if (foreign && foreign->split_at) /* conditional, so that indexes without it stay in use */
        pstk__index_digest(key, &foreign->split_at, sizeof foreign->split_at);
}

static int get_index(struct pstk__indexed *indexed, struct work *work, struct pstk_error *err)
{
    const struct pstk_foreign *foreign = work->opening->foreign;
    char real[PATH_MAX];
    struct pstk__index_location location = {.data = work->listing->folder,
                                            .cache = foreign ? foreign->cache_path : NULL,
                                            .format = work->scanner->format->name,
                                            .path_digest = {1, 2}};
    const char *folder = realpath(work->listing->folder, real) ? real : work->listing->folder;
    pstk__index_digest(location.path_digest, folder, strlen(folder));
    digest_key(work, location.key);
    for (uint64_t i = 0; i < work->listing->names.n; i++)
        work->n_total += work->listing->sizes[i];
    const struct pstk__index_work index_work = {
        .user = work, .differs = differs, .build = build, .watch = pstk__index_watch_of(foreign)};
    return work->opening->salvage
               ? pstk__index_get_nameless(&indexed->index, &location, &index_work, err)
               : pstk__index_get(&indexed->index, &location, &index_work, err);
}

/* Give fields the kinds that the caller wants. */
static int retype(const struct pstk__scanner *scanner, struct pstk__inferred_schema *found,
                  const struct pstk_foreign *foreign, struct pstk_error *err)
{
    int r = 0;
    for (uint32_t i = 0; r == 0 && foreign && i < foreign->n_fields; i++) {
        const int k = pstk__index_find_field(found, foreign->fields[i].name);
        if (k >= 0)
            r = scanner->retype(&found->fields[k], &foreign->fields[i], err);
    }
    return r;
}

/* Set what other formats have in their manifests. */
int pstk__indexed_describe(struct pstk__source *source, const struct pstk__inferred_schema *found,
                           struct pstk_error *err)
{
    const struct pstk__index *index = pstk__indexed_index(source);
    struct pstk_field fields[PSTK_MAX_FIELDS];
    for (uint32_t i = 0; i < found->n_fields; i++)
        fields[i] = found->fields[i].field;
    const int r = pstk__schema_init(&source->schema, fields, found->n_fields, err);
    if (r < 0)
        return r;
    source->limits.max_size = found->max_record;
    /* Records of other formats have no head: every value is read by itself. */
    for (uint32_t i = 0; i < found->n_fields; i++)
        source->schema.entry[i] = (int32_t)i;
    for (uint32_t i = 0; i < found->n_fields; i++) {
        const struct pstk__index_field *field = &found->fields[i];
        const int is_image = (pstk__field_traits(field->field.kind) & PSTK__TRAIT_IMAGES) != 0;
        source->limits.max_stored[i] = field->max_size;
        /* A field read in its coding, instead of as the number of its text, is as long as that; and
         * a number takes up to 8 bytes. */
        source->limits.max_plain[i] = larger(larger(field->max_plain, field->max_size), 8);
        /* Unknown: only the images' own headers have their sizes, and decoders take no more than
         * this. */
        source->limits.max_width[i] = source->limits.max_height[i] = is_image ? PSTK__MAX_SIDE : 0;
        source->stats[i] = (struct pstk_field_stats){.max_stored_size = field->max_size,
                                                     .max_plain_size = field->max_plain,
                                                     .stored_bytes = field->bytes,
                                                     .plain_bytes = field->bytes,
                                                     .n_codec = {[PSTK_CODEC_NONE] = field->n}};
    }
    source->n_samples = index->n_samples;
    source->n_shards = index->n_files;
    source->n_files = (uint64_t)index->n_files + 1;
    source->n_pages = index->n_pages;
    source->bytes = index->bytes;
    uint64_t digest[2] = {index->digest[0], index->digest[1]};
    pstk__index_digest(digest, &source->schema.crc, sizeof source->schema.crc);
    snprintf(source->identity, sizeof source->identity, "%016" PRIx64 "%016" PRIx64, digest[0],
             digest[1]);
    return 0;
}

/* Make compressed files look unpacked in the listing, and in the store of the source and *opening.
 */
static int unpack_files(struct pstk__source *source, struct pstk__listing *listing,
                        struct pstk__opening *opening, struct pstk_error *err)
{
    struct pstk__indexed *indexed = source->state;
    const struct pstk_foreign *foreign = opening->foreign;
    const struct pstk__salvage *salvage = opening->salvage;
    const struct pstk__unpack_files files = {.store = opening->store,
                                             .folder = listing->folder,
                                             .names = &listing->names,
                                             .sizes = listing->sizes,
                                             .changed_ns = listing->changed_ns,
                                             .cache = foreign ? foreign->cache_path : NULL,
                                             .cache_size = pstk__foreign_cache_size(foreign),
                                             .format = source->format->name,
                                             .known = indexed->scanner->known,
                                             .known_user = indexed->own,
                                             .is_plain = indexed->scanner->is_plain,
                                             .on_bad = salvage ? salvage->bad : NULL,
                                             .bad_user = salvage ? salvage->user : NULL,
                                             .n_threads = pstk__indexed_threads(opening),
                                             .watch = pstk__index_watch_of(foreign)};
    const int r = pstk__unpack_open(&indexed->unpack, &files, err);
    if (r < 0 || !indexed->unpack)
        return r;
    for (uint64_t i = 0; i < listing->names.n; i++)
        listing->sizes[i] = pstk__unpack_size(indexed->unpack, i);
    opening->store = source->store = pstk__unpack_store(indexed->unpack);
    source->is_checked = (uint32_t)pstk__unpack_is_checked(indexed->unpack);
    snprintf(indexed->kind, sizeof indexed->kind, "%.8s, %.5s", source->format->name,
             pstk__unpack_name(indexed->unpack));
    source->kind = indexed->kind;
    return 0;
}

/* Refuse a folder of which only some files would be read. */
static int check_lone(const struct pstk__scanner *scanner, const struct pstk__listing *listing,
                      const struct pstk__opening *opening, struct pstk_error *err)
{
    char name[256];
    if (!scanner->packed)
        return 0;
    const int r = pstk__listing_lone(listing, opening->store, opening->path, scanner->packed, name,
                                     sizeof name);
    if (r == 0)
        return 0;
    if (r < 0)
        return pstk__fail_errno(err, -r, PSTK_STAGE_OPEN, "cannot list %s", opening->path);
    return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                      "%s has plain and compressed files, but %s has no plain copy: unpack it, or "
                      "choose files by a pattern such as '%s/*%s'",
                      opening->path, name, opening->path,
                      strchr(name, '.') ? strchr(name, '.') : "");
}

static int fill(struct pstk__source *source, const struct pstk__scanner *scanner,
                const struct pstk__opening *opening, struct pstk_error *err)
{
    struct pstk__listing listing;
    struct pstk__indexed *indexed = calloc(1, sizeof *indexed);
    source->state = indexed;
    source->path = strdup(opening->path);
    if (!source->path || !indexed)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to open %s", opening->path);
    indexed->scanner = scanner;
    int r =
        scanner->list ? scanner->list(&listing, &indexed->own, opening, err)
        : opening->salvage
            ? pstk__listing_salvage(&listing, opening->store, opening->path, scanner->wanted, err)
            : pstk__listing_open(&listing, opening->store, opening->path, scanner->wanted, err);
    if (r < 0)
        return r;
    r = check_lone(scanner, &listing, opening, err);
    if (r < 0) {
        pstk__listing_close(&listing);
        return r;
    }
    struct pstk__opening unpacked = *opening;
    struct work work = {
        .scanner = scanner, .opening = &unpacked, .listing = &listing, .own = indexed->own};
    if (scanner->may_be_packed)
        r = unpack_files(source, &listing, &unpacked, err);
    if (r == 0)
        r = get_index(indexed, &work, err);
    indexed->folder = listing.folder;
    listing.folder = NULL;
    pstk__listing_close(&listing);
    if (r == 0 && indexed->index->n_samples == 0 && scanner->fail_none)
        r = scanner->fail_none(indexed->index, indexed->own, opening->path, err);
    if (r < 0)
        return r;
    if (indexed->index->n_samples == 0)
        return pstk__fail(err, PSTK_ENODATA, PSTK_STAGE_OPEN,
                          "%s is empty: its files have no samples", opening->path);
    struct pstk__inferred_schema *found = malloc(sizeof *found);
    if (!found)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to open %s", opening->path);
    *found = indexed->index->found;
    r = retype(scanner, found, opening->foreign, err);
    if (r == 0)
        r = pstk__indexed_describe(source, found, err);
    indexed->index->found = *found; /* gives its fields the codings of the schema */
    free(found);
    return r;
}

int pstk__indexed_open(struct pstk__source **out, const struct pstk__scanner *scanner,
                       const struct pstk__opening *opening, struct pstk_error *err)
{
    *out = NULL;
    struct pstk__source *source = calloc(1, sizeof *source);
    if (!source)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to open %s", opening->path);
    source->format = scanner->format;
    source->store = opening->store;
    const int r = fill(source, scanner, opening, err);
    if (r < 0) {
        pstk__indexed_close(source);
        return r;
    }
    *out = source;
    return 0;
}

void pstk__indexed_close(struct pstk__source *source)
{
    struct pstk__indexed *indexed = source->state;
    if (indexed) {
        pstk__index_close(indexed->index);
        pstk__unpack_close(indexed->unpack);
        free(indexed->folder);
        free(indexed->own);
        free(indexed);
    }
    free(source->path);
    free(source);
}

/* ---- where things are ------------------------------------------------------------------------ */

void pstk__indexed_locate(const struct pstk__source *source, uint64_t id,
                          struct pstk__sample_location *at)
{
    const struct pstk__index *index = pstk__indexed_index(source);
    at->shard = pstk__index_find(index, id);
    at->record = id - index->files[at->shard].first;
}

void pstk__indexed_range(const struct pstk__source *source, uint32_t shard, uint64_t *first,
                         uint64_t *n)
{
    const struct pstk__index_file *file = &pstk__indexed_index(source)->files[shard];
    *first = file->first;
    *n = file->table.n_rows;
}

void pstk__indexed_page(const struct pstk__source *source, const struct pstk__sample_location *at,
                        struct pstk__extent *page)
{
    const struct pstk__index *index = pstk__indexed_index(source);
    const struct pstk__index_file *file = &index->files[at->shard];
    const uint64_t number = pstk__index_page_of(file, at->record);
    const uint64_t offset = file->pages + number * PSTK__INDEX_TABLE_PAGE;
    /* The page's number in the index, so that pages of different shards differ. */
    *page = (struct pstk__extent){.file = index->n_files,
                                  .page = (uint32_t)(offset / PSTK__INDEX_TABLE_PAGE),
                                  .record = at->record,
                                  .offset = offset,
                                  .size = PSTK__INDEX_TABLE_PAGE,
                                  .whole_size = PSTK__INDEX_TABLE_PAGE};
}

_Static_assert(PSTK__INDEX_TABLE_PAGE == PSTK__PAGE_SIZE, "two names of one size");

/* Return the shard whose pages contain byte `offset` of the index. */
static uint32_t shard_at(const struct pstk__index *index, uint64_t offset)
{
    uint32_t low = 0, n = index->n_files;
    while (n > 1) {
        const uint32_t half = n / 2;
        low += index->files[low + half].pages <= offset ? half : 0;
        n -= half;
    }
    return low;
}

int pstk__indexed_page_check(const struct pstk__source *source, const struct pstk__extent *page,
                             const void *bytes, struct pstk_error *err)
{
    const struct pstk__index *index = pstk__indexed_index(source);
    const uint32_t shard = shard_at(index, page->offset);
    const struct pstk__index_file *file = &index->files[shard];
    const char *wrong = pstk__index_table_check(
        &file->table, shard, (page->offset - file->pages) / PSTK__INDEX_TABLE_PAGE, bytes);
    if (!wrong)
        return 0;
    pstk__index_fail(index, PSTK_STAGE_SHARD, err,
                     "is damaged in bytes %" PRIu64 " to %" PRIu64 ": %s", page->offset,
                     page->offset + page->size - 1, wrong);
    return pstk__fail_at(err, PSTK_EBADMSG, index->path, PSTK_NONE, page->offset, page->size);
}

const char *pstk__indexed_file_name(const struct pstk__source *source, uint32_t file)
{
    const struct pstk__index *index = pstk__indexed_index(source);
    return file < index->n_files ? pstk__texts_get(&index->names, file) : index->path;
}

int pstk__indexed_file_path(const struct pstk__source *source, uint32_t file, char *path,
                            size_t size)
{
    const struct pstk__indexed *indexed = source->state;
    const struct pstk__index *index = indexed->index;
    if (file >= index->n_files)
        return pstk__index_file_path(index, path, size);
    const int n =
        snprintf(path, size, "%s/%s", indexed->folder, pstk__texts_get(&index->names, file));
    return n < 0 || (size_t)n >= size ? PSTK_EINVAL : 0;
}

int pstk__indexed_file_check(const struct pstk__source *source, uint32_t number,
                             const struct pstk__file *file, struct pstk_error *err)
{
    const struct pstk__index *index = pstk__indexed_index(source);
    const int is_index = number == index->n_files;
    const uint64_t was_size = is_index ? index->size : index->files[number].size;
    const int64_t was_ns = is_index ? index->changed_ns : index->files[number].changed_ns;
    return pstk__file_check_same(file, pstk__indexed_file_name(source, number), was_size, was_ns,
                                 PSTK_STAGE_SHARD, err);
}

void pstk__indexed_begin(const struct pstk__source *source, const struct pstk__sample_location *at,
                         uint64_t offset, struct pstk__record *out)
{
    out->schema = &source->schema;
    out->number = at->record;
    out->file_offset = offset;
    out->shard = pstk__indexed_file_name(source, at->shard);
    out->file = at->shard;
    out->field_files = NULL;
    out->accepts_damaged = source->accepts_damaged;
    out->n_fields = source->schema.n_fields;
    for (uint32_t i = 0; i < out->n_fields; i++)
        out->fields[i] = (struct pstk__field_view){.checksum = PSTK__CHECKSUM_NONE};
}

int pstk__indexed_fail(const struct pstk__source *source, const struct pstk__sample_location *at,
                       uint64_t offset, uint64_t length, struct pstk_error *err, const char *fmt,
                       ...)
{
    char what[384];
    const char *name = pstk__indexed_file_name(source, at->shard);
    va_list args;
    va_start(args, fmt);
    if (vsnprintf(what, sizeof what, fmt, args) < 0)
        what[0] = 0;
    va_end(args);
    pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_RECORD,
               "%s: record %" PRIu64 " (bytes %" PRIu64 " to %" PRIu64 "): %s", name, at->record,
               offset, offset + length - (length > 0), what);
    return pstk__fail_at(err, PSTK_EBADMSG, name, at->record, offset, length);
}

int pstk__indexed_fail_extent(const struct pstk__source *source,
                              const struct pstk__sample_location *at, uint64_t offset,
                              uint64_t size, struct pstk_error *err)
{
    const char *name = pstk__indexed_file_name(source, at->shard);
    pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_RECORD,
               "%s: record %" PRIu64 " (bytes %" PRIu64 " to %" PRIu64
               "): the file does not have these bytes; remove the index %s, and it is built again",
               name, at->record, offset, offset + size - (size > 0),
               pstk__indexed_index(source)->path);
    return pstk__fail_at(err, PSTK_EBADMSG, name, at->record, offset, size);
}
