/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/checksums.h"

#include "base/error.h"
#include "store/sidecar.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Positions, of two words each, among the facts in the file that identify the state of the data
 * set. */
enum { FACT_ROWS = 0, FACT_NAMES = 2, FACT_SIZES = 4, FACT_TIMES = 6 };
_Static_assert(FACT_TIMES + 2 <= PSTK__INDEX_FACTS, "as many as the file has room for");

struct pstk__checksums {
    struct pstk__index *index; /* owned */
    struct pstk__file file;    /* file of the index; owned */
};

/* The state of looking for, or making, the checksums of one data set. */
struct pstk__checksums_writer {
    const struct pstk__source *source;
    struct pstk__index_location location;
    char data[PATH_MAX];               /* memory of location.data */
    uint64_t state[PSTK__INDEX_FACTS]; /* facts of the data set's current state; state[0] is 0 until
                                          they are known */
    char *note;                        /* or NULL */
    struct pstk__index_rows rows;      /* rows of the current segment */
    struct pstk__index_build *build;
    uint64_t n_added;
    const struct pstk_foreign *foreign;      /* or NULL */
    const struct pstk__checksums_work *work; /* NULL: existing checksums are looked for, none are
                                                made */
};

/* ---- of which data set ----------------------------------------------------------------------- */

uint64_t pstk__checksums_fields(const struct pstk__source *source)
{
    const uint32_t n = source->schema.n_fields;
    uint64_t fields = n == 64 ? PSTK__ALL_FIELDS : (UINT64_C(1) << n) - 1;
    if (source->format->checksum != PSTK__CHECKSUM_NONE || source->is_checked)
        return 0;
    for (uint32_t i = 0; i < n; i++)
        if (pstk__source_cover(source, i))
            fields &= ~(UINT64_C(1) << i);
    return fields;
}

static void add_file(uint64_t state[PSTK__INDEX_FACTS], const char *name, uint64_t size,
                     int64_t changed_ns)
{
    pstk__index_digest(state + FACT_NAMES, name, strlen(name));
    pstk__index_digest(state + FACT_SIZES, &size, sizeof size);
    pstk__index_digest(state + FACT_TIMES, &changed_ns, sizeof changed_ns);
}

static void find_indexed_state(uint64_t state[PSTK__INDEX_FACTS], const struct pstk__index *index)
{
    state[FACT_ROWS] = index->digest[0];
    state[FACT_ROWS + 1] = index->digest[1];
    for (uint32_t i = 0; i < index->n_files; i++)
        add_file(state, pstk__texts_get(&index->names, i), index->files[i].size,
                 index->files[i].changed_ns);
}

/* Find the state of a data set without an index. Such data sets have few files. */
static int find_plain_state(uint64_t state[PSTK__INDEX_FACTS], const struct pstk__source *source,
                            struct pstk_error *err)
{
    for (uint32_t i = 0; i < source->n_files; i++) {
        char path[PATH_MAX], name[PSTK__MAX_SHOWN];
        struct pstk__file file;
        uint64_t size;
        int64_t changed_ns;
        int r = pstk__source_file_path(source, i, path, sizeof path);
        if (r == 0)
            r = source->store->open(source->store, &file, path);
        if (r == 0) {
            r = source->store->stat(&file, &size, &changed_ns);
            pstk__file_end(&file);
        }
        if (r < 0)
            return pstk__fail_errno(err, -r, PSTK_STAGE_OPEN, "cannot open %s", path);
        add_file(state, pstk__source_file_name(source, i, name), size, changed_ns);
    }
    return 0;
}

/* Find the state once, and only if checksums exist or are made: it may open files. */
static int find_state(struct pstk__checksums_writer *writer, struct pstk_error *err)
{
    const struct pstk__source *source = writer->source;
    if (writer->state[0])
        return 0;
    for (uint32_t i = 0; i < PSTK__INDEX_FACTS; i++)
        writer->state[i] = 1 + i % 2;
    if (!source->format->index)
        return find_plain_state(writer->state, source, err);
    find_indexed_state(writer->state, source->format->index(source));
    return 0;
}

/* Find the folder that contains the data set, or that is the data set. Returns 0, or EINVAL if its
 * path is too long. */
static int find_folder(const struct pstk__source *source, char folder[PATH_MAX])
{
    struct pstk__store_entry entry;
    const struct pstk__index *index = source->format->index ? source->format->index(source) : NULL;
    const char *from = index && index->location ? index->location : source->path;
    const int n = snprintf(folder, PATH_MAX, "%s", from);
    if (n < 0 || n >= PATH_MAX)
        return PSTK_EINVAL;
    if (from != source->path ||
        (source->store->look && source->store->look(source->store, folder, &entry) == 0 &&
         entry.kind == PSTK__STORE_FOLDER))
        return 0;
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = 0;
    else
        snprintf(folder, PATH_MAX, ".");
    return 0;
}

/* Return the name of `path` in `folder`, both real paths: the path below the folder, or
 * else the file's name. */
static const char *name_below(const char *folder, const char *path)
{
    const size_t n = strlen(folder);
    const char *slash = strrchr(path, '/');
    if (strcmp(path, folder) == 0)
        return "";
    if (strncmp(path, folder, n) == 0 &&
        (n == 1 || path[n] == '/')) /* "/" ends with its own slash */
        return path + n + (n > 1);
    return slash ? slash + 1 : path;
}

/* Digest the data set's name in its folder, which stays when the data changes, and the settings of
 * its reading: fields, folder of a table's images, by_content. */
static void digest_name(struct pstk__checksums_writer *writer, const struct pstk_foreign *foreign)
{
    char of_path[PATH_MAX], of_data[PATH_MAX];
    const char *path = writer->source->path, *name = path;
    const uint64_t fields = pstk__checksums_fields(writer->source);
    const size_t n = strlen(writer->data);
    const char *folder = realpath(writer->data, of_data) ? of_data : writer->data;
    if (realpath(path, of_path))
        name = name_below(folder, of_path);
    else if (strncmp(path, writer->data, n) == 0)
        name = path + n + strspn(path + n, "/"); /* the path is a pattern */
    pstk__index_digest(writer->location.key, writer->location.format,
                       strlen(writer->location.format));
    pstk__index_digest(writer->location.key, name, strlen(name));
    pstk__index_digest(writer->location.key, &fields, sizeof fields);
    if (foreign && foreign->root_path && realpath(foreign->root_path, of_path))
        pstk__index_digest(writer->location.key, of_path, strlen(of_path));
    if (foreign && foreign->by_content) /* so that checksums made without it stay valid */
        pstk__index_digest(writer->location.key, &foreign->by_content, sizeof foreign->by_content);
    for (uint32_t i = 0; foreign && i < foreign->n_fields; i++) {
        const struct pstk_field *field = &foreign->fields[i];
        pstk__index_digest(writer->location.key, field->name, strlen(field->name));
        pstk__index_digest(writer->location.key, field->shape, sizeof field->shape);
    }
    pstk__index_digest(writer->location.path_digest, folder, strlen(folder));
}

static int begin(struct pstk__checksums_writer *writer, const struct pstk__source *source,
                 const struct pstk_foreign *foreign, struct pstk_error *err)
{
    *writer = (struct pstk__checksums_writer){
        .source = source, .rows = {.n_columns = 1}, .foreign = foreign};
    if (find_folder(source, writer->data) < 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "the path is too long: %.400s...",
                          source->path);
    writer->location = (struct pstk__index_location){.data = writer->data,
                                                     .cache = foreign ? foreign->cache_path : NULL,
                                                     .format = source->format->name,
                                                     .ending = PSTK__SIDECAR_CHECKSUMS,
                                                     .what = "checksums",
                                                     .key = {1, 2},
                                                     .path_digest = {1, 2}};
    digest_name(writer, foreign);
    return 0;
}

/* ---- looking at them ------------------------------------------------------------------------- */

static int facts_differ(const struct pstk__checksums_writer *writer,
                        const struct pstk__index *index, uint32_t fact)
{
    return memcmp(&index->found.facts[fact], &writer->state[fact], 2 * sizeof(uint64_t)) != 0;
}

/* Return 1 if the segments fit a file made for n_samples samples. */
static int has_segments(const struct pstk__index *index, uint64_t n_samples)
{
    if (index->n_samples != n_samples)
        return 0;
    for (uint32_t i = 0; i < index->n_files; i++)
        if (index->files[i].first != (uint64_t)i * PSTK__CHECKSUMS_SEGMENT ||
            index->files[i].table.n_columns != 1 ||
            index->files[i].table.n_rows - 1 >= PSTK__CHECKSUMS_SEGMENT)
            return 0;
    return 1;
}

/* Implement `differs` of store/index/location.h: return why the checksums do not fit the current
 * state of the data set. */
static const char *differs(void *user, const struct pstk__index *index)
{
    struct pstk__checksums_writer *writer = user;
    if (find_state(writer, NULL) < 0)
        return "a file of the data set cannot be opened";
    if (facts_differ(writer, index, FACT_NAMES))
        return "since they were made, a file of the data set was added, removed or renamed";
    if (facts_differ(writer, index, FACT_SIZES))
        return "since they were made, the size of a file has changed";
    if (facts_differ(writer, index, FACT_TIMES))
        return "since they were made, a file was written to";
    if (facts_differ(writer, index, FACT_ROWS))
        return "since they were made, samples have moved in their files";
    return has_segments(index, writer->source->n_samples) ? NULL : "they belong to other samples";
}

/* Implement `unusable` of store/index/location.h. */
static void keep_note(void *user, const char *path, const char *why)
{
    const struct pstk__checksums_writer *writer = user;
    if (writer->note)
        snprintf(writer->note, PSTK__CHECKSUMS_NOTE, "the checksums %.180s are not used: %s", path,
                 why);
}

static int open_file(struct pstk__checksums **out, struct pstk__index *index,
                     const struct pstk__store *store, struct pstk_error *err)
{
    struct pstk__checksums *checksums = calloc(1, sizeof *checksums);
    if (!checksums) {
        pstk__index_close(index);
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for checksums");
    }
    checksums->index = index;
    char path[PATH_MAX];
    int r = pstk__index_file_path(index, path, sizeof path) < 0 ? -ENAMETOOLONG : 0;
    if (r == 0)
        r = store->open(store, &checksums->file, path);
    if (r < 0) {
        pstk__fail_errno(err, -r, PSTK_STAGE_OPEN, "cannot open the checksums %s", index->path);
        pstk__checksums_close(checksums);
        return err ? err->code : PSTK_EIO;
    }
    *out = checksums;
    return 0;
}

int pstk__checksums_find(struct pstk__checksums **out, const struct pstk__source *source,
                         const struct pstk_foreign *foreign, char note[PSTK__CHECKSUMS_NOTE],
                         struct pstk_error *err)
{
    struct pstk__index *index = NULL;
    *out = NULL;
    note[0] = 0;
    struct pstk__checksums_writer *writer = malloc(sizeof *writer);
    if (!writer)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for checksums");
    int r = begin(writer, source, foreign, err);
    writer->note = note;
    const struct pstk__index_work work = {
        .user = writer, .differs = differs, .unusable = keep_note};
    if (r == 0)
        r = pstk__index_find_fitting(&index, &writer->location, &work, err);
    free(writer);
    return r == 0 && index ? open_file(out, index, source->store, err) : r;
}

void pstk__checksums_close(struct pstk__checksums *checksums)
{
    if (!checksums)
        return;
    pstk__file_end(&checksums->file);
    pstk__index_close(checksums->index);
    free(checksums);
}

static int fail_page(const struct pstk__checksums *checksums, uint64_t offset, const char *wrong,
                     struct pstk_error *err)
{
    const char *path = checksums->index->path;
    pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_SHARD,
               "the checksums %s are damaged in bytes %" PRIu64 " to %" PRIu64
               ": %s; the samples that they belong to were read, but not compared; remove the "
               "file, and let verify keep checksums again",
               path, offset, offset + PSTK__PAGE_SIZE - 1, wrong);
    return pstk__fail_at(err, PSTK_EBADMSG, path, PSTK_NONE, offset, PSTK__PAGE_SIZE);
}

int pstk__checksums_get(const struct pstk__checksums *checksums, uint64_t id,
                        struct pstk__checksums_page *page, uint32_t *crc, struct pstk_error *err)
{
    const struct pstk__index *index = checksums->index;
    const uint32_t segment = (uint32_t)(id / PSTK__CHECKSUMS_SEGMENT);
    const uint64_t row = id % PSTK__CHECKSUMS_SEGMENT;
    const struct pstk__index_file *table = &index->files[segment];
    const uint64_t number = pstk__index_page_of(table, row);
    const uint64_t offset = table->pages + number * PSTK__PAGE_SIZE;
    if (page->offset != offset) {
        page->offset = 0;
        const int64_t n = pstk__file_read(&checksums->file, page->bytes, PSTK__PAGE_SIZE, offset);
        const char *wrong = n == PSTK__PAGE_SIZE ? pstk__index_table_check(&table->table, segment,
                                                                           number, page->bytes)
                                                 : "they cannot be read";
        if (wrong)
            return fail_page(checksums, offset, wrong, err);
        page->offset = offset;
    }
    *crc = (uint32_t)pstk__index_table_get(&table->table, page->bytes, row, 0);
    return 0;
}

/* ---- making them ----------------------------------------------------------------------------- */

/* Write the segment, which is full or the last one. */
static int end_segment(struct pstk__checksums_writer *writer, struct pstk_error *err)
{
    char name[32];
    snprintf(name, sizeof name, "%" PRIu64, (writer->n_added - 1) / PSTK__CHECKSUMS_SEGMENT);
    const int r = pstk__index_writer_add(writer->build->writer, name, 0, 0, &writer->rows, err);
    pstk__index_rows_close(&writer->rows);
    return r;
}

int pstk__checksums_add(struct pstk__checksums_writer *writer, uint32_t crc, struct pstk_error *err)
{
    const uint64_t cell = crc;
    if (pstk__index_rows_add(&writer->rows, &cell) < 0)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for checksums");
    writer->n_added++;
    return writer->rows.n == PSTK__CHECKSUMS_SEGMENT ? end_segment(writer, err) : 0;
}

int pstk__checksums_report(const struct pstk__checksums_writer *writer, uint64_t n_done,
                           uint64_t n_total)
{
    return writer->build->progress(writer->build->progress_user, n_done, n_total);
}

/* Implement `on_progress` of store/index/lock.h. `make` and `foreign` may have different users. */
static int on_progress(void *user, uint64_t n_done, uint64_t n_total)
{
    const struct pstk__checksums_writer *writer = user;
    return writer->work->progress(writer->work->user, n_done, n_total);
}

static void on_wait(void *user, const char *text)
{
    const struct pstk__checksums_writer *writer = user;
    if (writer->foreign && writer->foreign->on_wait)
        writer->foreign->on_wait(writer->foreign->user, text);
}

/* Implement `build` of store/index/location.h. */
static int build(void *user, struct pstk__index_build *build)
{
    struct pstk__checksums_writer *writer = user;
    struct pstk__inferred_schema *found = &build->found;
    struct pstk_error *err = build->err;
    writer->build = build;
    writer->n_added = 0;
    found->n_fields = 1;
    found->fields[0] = (struct pstk__index_field){
        .field = {.name = "crc32c", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_U32}};
    memcpy(found->facts, writer->state, sizeof found->facts);
    int r = writer->work->make(writer->work->user, writer, err);
    if (r == 0 && writer->rows.n > 0)
        r = end_segment(writer, err);
    pstk__index_rows_close(&writer->rows);
    return r;
}

int pstk__checksums_make(struct pstk__checksums **out, const struct pstk__source *source,
                         const struct pstk_foreign *foreign,
                         const struct pstk__checksums_work *work, struct pstk_error *err)
{
    struct pstk__index *index = NULL;
    *out = NULL;
    struct pstk__checksums_writer *writer = malloc(sizeof *writer);
    if (!writer)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for checksums");
    int r = begin(writer, source, foreign, err);
    if (r == 0)
        r = find_state(writer, err);
    writer->work = work;
    const struct pstk__index_work index_work = {
        .user = writer,
        .differs = differs,
        .build = build,
        .watch = {.on_progress = on_progress, .on_wait = on_wait, .user = writer}};
    if (r == 0)
        r = pstk__index_get(&index, &writer->location, &index_work, err);
    free(writer);
    return r == 0 && index ? open_file(out, index, source->store, err) : r;
}
