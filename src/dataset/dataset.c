/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/dataset.h"

#include "base/error.h"
#include "dataset/checksums.h"
#include "format/files.h"
#include "format/left_out.h"
#include "image/image.h"
#include "record/field.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N_FILES 16 /* files kept open; more threads than that open one for their own use */

struct pstk_dataset {
    struct pstk__source *source; /* owned */
    pthread_mutex_t lock;        /* guards files; never held during I/O */
    int has_kept;                /* 1: checksums of the samples are kept (checksums.h) */
    struct pstk__files *files;   /* owned */
};

/* An open file, for one read. */
struct lease {
    const struct pstk__file *file;
    uint32_t slot;         /* slot in dataset.files, unless `own` is open */
    struct pstk__file own; /* file that is open because the table has no room for it */
};

const struct pstk__source *pstk__dataset_source(const struct pstk_dataset *dataset)
{
    return dataset->source;
}

/* ---- open and close -------------------------------------------------------------------------- */

/* Return the number of files kept open: at least those of one sample, but at most a quarter of the
 * limit of open files, because a loader in the same process takes half. With fewer, reading samples
 * in turn would open a file for every value. */
static uint32_t n_open_files(const struct pstk__source *source)
{
    const uint32_t n = pstk__source_n_extents(source, PSTK__ALL_FIELDS);
    return pstk__files_capacity(n > N_FILES ? n : N_FILES, 2);
}

int pstk__dataset_of(struct pstk_dataset **out, struct pstk__source *source, struct pstk_error *err)
{
    *out = NULL;
    struct pstk_dataset *dataset = calloc(1, sizeof *dataset);
    const int native = dataset ? pthread_mutex_init(&dataset->lock, NULL) : 0;
    if (!dataset || native) {
        free(dataset);
        pstk__source_close(source);
        return native ? pstk__fail_errno(err, native, PSTK_STAGE_OPEN,
                                         "cannot make a lock for a data set")
                      : pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for a data set");
    }
    dataset->source = source;
    const int r = pstk__files_open(&dataset->files, source, n_open_files(source), PSTK__FILES_PLAIN,
                                   NULL, err);
    if (r < 0) {
        pstk_dataset_close(&dataset);
        return r;
    }
    *out = dataset;
    return 0;
}

/* Return 1 if some sample has a value of the field. */
static int is_there(const struct pstk__source *source, uint32_t field)
{
    const struct pstk_field_stats *stats = &source->stats[field];
    return stats->n_codec[PSTK_CODEC_NONE] || stats->n_codec[PSTK_CODEC_ZSTD] ||
           stats->n_codec[PSTK_CODEC_PLANES];
}

/* Write the names of the fields that have a value in some sample. */
static void list_there(const struct pstk__source *source, char *names, size_t size)
{
    size_t used = 0;
    names[0] = 0;
    for (uint32_t i = 0; i < source->schema.n_fields && used < size; i++)
        if (is_there(source, i))
            used += (size_t)snprintf(names + used, size - used, "%s%s", used ? ", " : "",
                                     source->schema.fields[i].name);
}

/* Check that some sample has a value of each field that the caller names. */
static int check_named(const struct pstk__source *source, const struct pstk_foreign *foreign,
                       struct pstk_error *err)
{
    const uint32_t n = foreign ? foreign->n_fields + foreign->n_first_of : 0;
    for (uint32_t i = 0; i < n; i++) {
        const char *name = i < foreign->n_fields ? foreign->fields[i].name
                                                 : foreign->first_of[i - foreign->n_fields].name;
        const int f = pstk__schema_find(&source->schema, name);
        char names[256];
        list_there(source, names, sizeof names);
        if (f < 0)
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                              "fields: value has '%s'; must be fields of %s: %s", name,
                              source->path, names);
        if (!is_there(source, (uint32_t)f))
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                              "fields: value has '%s', which no sample of %s has; it has: %s", name,
                              source->path, names);
    }
    return 0;
}

/* Look for kept checksums that fit the data set. */
static int find_kept(struct pstk_dataset *dataset, const struct pstk_foreign *foreign,
                     struct pstk_error *err)
{
    struct pstk__checksums *kept;
    char note[PSTK__CHECKSUMS_NOTE];
    if (pstk__checksums_fields(dataset->source) == 0)
        return 0;
    const int r = pstk__checksums_find(&kept, dataset->source, foreign, note, err);
    dataset->has_kept = kept != NULL;
    pstk__checksums_close(kept);
    return r;
}

int pstk_dataset_open(struct pstk_dataset **out, const char *path,
                      const struct pstk_foreign *foreign, struct pstk_error *err)
{
    struct pstk__source *source;
    if (!out)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "out is NULL");
    *out = NULL;
    int r = pstk__source_open(&source, path, foreign, err);
    if (r < 0)
        return r;
    r = check_named(source, foreign, err);
    if (r < 0) {
        pstk__source_close(source);
        return r;
    }
    r = pstk__dataset_of(out, source, err);
    if (r == 0)
        r = find_kept(*out, foreign, err);
    if (r < 0)
        pstk_dataset_close(out);
    return r;
}

void pstk_dataset_close(struct pstk_dataset **p)
{
    struct pstk_dataset *d = p ? *p : NULL;
    if (!d)
        return;
    pstk__files_close(d->files);
    pstk__source_close(d->source);
    pthread_mutex_destroy(&d->lock);
    free(d);
    *p = NULL;
}

void pstk_free(void *data)
{
    free(data);
}

/* ---- facts ----------------------------------------------------------------------------------- */

/* Return 1 if the data set lists a hash for its first file. */
static int has_hashes(const struct pstk__source *source)
{
    const char *digits;
    return source->format->file_hash && source->format->file_hash(source, 0, &digits);
}

/* Return the number of files that hold samples; an index is one more. */
static uint32_t n_data_files(const struct pstk__source *source)
{
    if (source->format->has_file_each)
        return (uint32_t)source->n_samples;
    return (uint32_t)(source->format->file_path ? source->n_shards : source->n_files);
}

int pstk_dataset_get_info(const struct pstk_dataset *dataset, struct pstk_dataset_info *info)
{
    if (!dataset || !info || info->size < sizeof info->size)
        return PSTK_EINVAL;
    const struct pstk__source *source = dataset->source;
    struct pstk_dataset_info all = {
        .size = info->size,
        .n_fields = source->schema.n_fields,
        .n_samples = source->n_samples,
        .n_shards = source->n_shards,
        .bytes = source->bytes,
        .n_names = source->names.n,
        .format_version = source->format->version,
    };
    memcpy(all.identity, source->identity, sizeof all.identity);
    all.has_checksums = source->format->checksum != PSTK__CHECKSUM_NONE || source->is_checked ? 1
                        : dataset->has_kept                                                   ? 3
                        : pstk__source_has_covers(source) || has_hashes(source)               ? 2
                                                                                              : 0;
    all.n_files = n_data_files(source);
    all.n_left_out = source->n_left_out;
    if (info->size > offsetof(struct pstk_dataset_info, n_left_out))
        all.n_left_out += pstk__left_out_find(source, all.left_out);
    snprintf(all.format, sizeof all.format, "%s",
             source->kind ? source->kind : source->format->name);
    memcpy(info, &all, info->size < sizeof all ? info->size : sizeof all);
    return 0;
}

int pstk_dataset_get_field(const struct pstk_dataset *dataset, uint32_t i, struct pstk_field *field,
                           struct pstk_field_stats *stats)
{
    if (!dataset || i >= dataset->source->schema.n_fields ||
        (stats && stats->size < sizeof stats->size))
        return PSTK_EINVAL;
    if (field)
        *field = dataset->source->schema.fields[i];
    if (stats) {
        struct pstk_field_stats all = dataset->source->stats[i];
        all.size = stats->size;
        memcpy(stats, &all, all.size < sizeof all ? all.size : sizeof all);
    }
    return 0;
}

const char *pstk_dataset_name(const struct pstk_dataset *dataset, uint64_t i)
{
    return dataset && i < dataset->source->names.n ? pstk__texts_get(&dataset->source->names, i)
                                                   : NULL;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Get the open file of that number; end_lease gives it back. Any thread may call it; it takes the
 * lock. */
static int lease_file(struct pstk_dataset *dataset, uint32_t number, struct lease *lease,
                      struct pstk_error *err)
{
    lease->own = (struct pstk__file){.fd = -1};
    pthread_mutex_lock(&dataset->lock);
    const int found = pstk__files_find(dataset->files, number, &lease->slot, &lease->file);
    pthread_mutex_unlock(&dataset->lock);
    if (found)
        return 0;
    struct pstk__file open;
    int r = pstk__source_open_file(dataset->source, number, &open, err);
    if (r < 0)
        return r;
    pthread_mutex_lock(&dataset->lock);
    r = pstk__files_keep(dataset->files, number, &open, &lease->slot, &lease->file);
    pthread_mutex_unlock(&dataset->lock);
    if (r == 0) {
        pstk__file_end(
            &open); /* another thread has opened the same file in the meantime: use that */
        return 0;
    }
    lease->own = open;
    lease->file = &lease->own;
    return 0;
}

static void end_lease(struct pstk_dataset *dataset, struct lease *lease)
{
    if (lease->own.store) {
        pstk__file_end(&lease->own);
        return;
    }
    pthread_mutex_lock(&dataset->lock);
    pstk__files_release(dataset->files, lease->slot);
    pthread_mutex_unlock(&dataset->lock);
}

/* Read the bytes of an extent. */
static int read_extent(struct pstk_dataset *dataset, const struct pstk__extent *extent,
                       void *buffer, struct pstk_error *err)
{
    struct lease lease;
    int r = lease_file(dataset, extent->file, &lease, err);
    if (r < 0)
        return r;
    r = pstk__source_read(dataset->source, lease.file, extent, buffer, err);
    end_lease(dataset, &lease);
    return r;
}

/* ---- one record ------------------------------------------------------------------------------ */

/* Find the extents of a sample, through its index page. */
static int find_extents(struct pstk_dataset *dataset, const struct pstk__sample_location *at,
                        uint64_t fields, struct pstk__extent *out, struct pstk_error *err)
{
    const struct pstk__source *source = dataset->source;
    _Alignas(64) uint8_t page[PSTK__PAGE_SIZE];
    struct pstk__extent where;
    pstk__source_page(source, at, &where);
    if (where.size > 0) {
        where.record = at->record; /* for messages: the page is read for this record */
        int r = read_extent(dataset, &where, page, err);
        if (r == 0)
            r = source->format->page_check(source, &where, page, err);
        if (r < 0)
            return r;
    }
    return source->format->extent(source, at, fields, page, out, err);
}

static uint64_t sum_of_sizes(const struct pstk__extent *extent, uint32_t n)
{
    uint64_t size = 0; /* at most 64 times 2^32-1 */
    for (uint32_t i = 0; i < n; i++)
        size += extent[i].size;
    return size;
}

static int fail_room(const struct pstk__source *source, const struct pstk__extent *extent,
                     uint64_t size, uint64_t room, struct pstk_error *err)
{
    char buffer[PSTK__MAX_SHOWN];
    const char *name = pstk__source_file_name(source, extent->file, buffer);
    pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_READ,
               "%s: record %llu has %llu bytes; the buffer has %llu", name,
               (unsigned long long)extent->record, (unsigned long long)size,
               (unsigned long long)room);
    return pstk__fail_at(err, PSTK_EFBIG, name, extent->record, extent->offset, extent->size);
}

/* Read all extents, one after another, into the room. */
static int read_extents(struct pstk_dataset *dataset, struct pstk__extent *extents, uint32_t n,
                        const struct pstk__room *room, struct pstk_error *err)
{
    uint8_t *to = room->data;
    const uint64_t size = sum_of_sizes(extents, n);
    if (size > room->size)
        return fail_room(dataset->source, extents, size, room->size, err);
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < n; i++) {
        if (extents[i].size >
            0) /* as the loader's reader does, which opens no file for an empty value */
            r = read_extent(dataset, &extents[i], to, err);
        extents[i].data = to;
        to += extents[i].size;
    }
    return r;
}

int pstk__dataset_find_hole(struct pstk_dataset *dataset, const struct pstk__extent *extent,
                            uint64_t *begin, uint64_t *end)
{
    struct lease lease;
    off_t hole = -1, data = -1;
    if (extent->size == 0 || lease_file(dataset, extent->file, &lease, NULL) < 0)
        return 0;
    if (lease.file->fd >= 0) {
        hole = lseek(lease.file->fd, (off_t)extent->offset, SEEK_HOLE);
        data = lseek(lease.file->fd, hole, SEEK_DATA);
        if (hole >= 0 && data < 0 && errno == ENXIO) /* the hole reaches the end of the file */
            data = lseek(lease.file->fd, 0, SEEK_END);
    }
    end_lease(dataset, &lease);
    *begin = (uint64_t)hole;
    *end = (uint64_t)data;
    return hole >= 0 && data > hole && *begin < extent->offset + extent->size;
}

int pstk__dataset_read(struct pstk_dataset *dataset, uint64_t id, uint64_t fields,
                       const struct pstk__room *room, struct pstk__record *out, uint32_t *shard,
                       struct pstk_error *err)
{
    struct pstk__extent extents[PSTK_MAX_FIELDS];
    uint32_t n;
    return pstk__dataset_read_extents(dataset, id, fields, room, extents, &n, out, shard, err);
}

int pstk__dataset_read_extents(struct pstk_dataset *dataset, uint64_t id, uint64_t fields,
                               const struct pstk__room *room, struct pstk__extent *extents,
                               uint32_t *n_extents, struct pstk__record *out, uint32_t *shard,
                               struct pstk_error *err)
{
    const struct pstk__source *source = dataset->source;
    struct pstk__sample_location at;
    *n_extents = 0;
    if (id >= source->n_samples)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_READ,
                          "sample %llu: the data set has the samples 0 to %llu",
                          (unsigned long long)id, (unsigned long long)source->n_samples - 1);
    const uint32_t n = pstk__source_n_extents(source, fields);
    source->format->locate(source, id, &at);
    int r = find_extents(dataset, &at, fields, extents, err);
    if (r == 0)
        r = read_extents(dataset, extents, n, room, err);
    if (r == 0)
        r = source->format->parse(source, &at, fields, extents, n, out, err);
    *shard = at.shard;
    *n_extents = n;
    if (r < 0 && err)
        err->sample_id = id;
    return r;
}

/* ---- one field ------------------------------------------------------------------------------- */

static int no_memory(const struct pstk__record *record, uint32_t field, uint64_t size,
                     struct pstk_error *err)
{
    return pstk__record_fail(record, field, PSTK_ENOMEM, PSTK_STAGE_RECORD, err,
                             "no memory for %llu bytes", (unsigned long long)size);
}

/* Memory for decompressing one field; find_memory allocates it for pstk__field_read. */
struct memory {
    const struct pstk__dictionary *dictionary;
    void *plain; /* owned, until get_plain returns it */
    void *decoder_memory;
    struct pstk__arena scratch;
};

static int find_memory(void *user, const struct pstk__record *record, uint32_t field,
                       struct pstk__field_memory *out, struct pstk_error *err)
{
    struct memory *memory = user;
    const struct pstk__field_view *v = &record->fields[field];
    const uint64_t size = pstk__decoder_size(), scratch = pstk__field_scratch(v);
    memory->decoder_memory = aligned_alloc(64, size);
    memory->plain = malloc(v->plain_size ? v->plain_size : 1);
    out->decoder = memory->decoder_memory ? pstk__decoder_init(memory->decoder_memory, size) : NULL;
    out->dictionary = memory->dictionary;
    out->plain = memory->plain;
    out->scratch = &memory->scratch;
    if (memory->plain && out->decoder && pstk__arena_open(&memory->scratch, scratch) == 0)
        return 0;
    return no_memory(record, field, size + v->plain_size + scratch, err);
}

static void close_memory(struct memory *memory)
{
    pstk__arena_close(&memory->scratch);
    free(memory->decoder_memory);
    free(memory->plain);
}

/* Read the stored bytes of a field whose data parsing did not provide; *stored owned. */
static int read_stored(struct pstk_dataset *dataset, struct pstk__record *record, uint32_t field,
                       void **stored, struct pstk_error *err)
{
    struct pstk__field_view *v = &record->fields[field];
    struct pstk__extent extent = {.record = record->number, .size = v->stored_size};
    const char *name;
    pstk__record_locate(record, field, &extent.file, &name, &extent.offset);
    *stored = malloc(v->stored_size ? v->stored_size : 1);
    v->data = *stored;
    if (!*stored)
        return no_memory(record, field, v->stored_size, err);
    return v->stored_size ? read_extent(dataset, &extent, *stored, err) : 0;
}

/* Get the plain bytes of one field, checked; *data owned. */
static int get_plain(struct pstk_dataset *dataset, struct pstk__record *record, uint32_t shard,
                     uint32_t field, void **data, struct pstk_error *err)
{
    struct memory memory = {.dictionary = pstk__source_dictionary(dataset->source, shard, field)};
    const struct pstk__field_reading reading = {
        .max_pixels = PSTK__MAX_PIXELS,
        .memory = find_memory,
        .user = &memory,
    };
    void *stored = NULL;
    const uint8_t *plain;
    int code = record->fields[field].data ? 0 : read_stored(dataset, record, field, &stored, err);
    if (code == 0)
        code = pstk__field_read(record, field, &reading, &plain, err);
    if (code == 0 && plain == stored) {
        *data = stored;
        stored = NULL;
    } else if (code == 0 && plain == memory.plain) {
        *data = memory.plain;
        memory.plain = NULL;
    } else if (code ==
               0) { /* the data lies in the caller's memory, as the values of fixed fields do */
        const uint32_t size = record->fields[field].plain_size;
        *data = malloc(size ? size : 1);
        if (*data)
            memcpy(*data, plain, size);
        else
            code = no_memory(record, field, size, err);
    }
    free(stored);
    close_memory(&memory);
    return code;
}

static void fill_info(const struct pstk__field_view *v, struct pstk_value_info *info)
{
    const struct pstk_value_info all = {
        .size = info->size,
        .encoding = v->encoding,
        .width = v->width,
        .height = v->height,
        .codec = v->codec,
        .equivalent = (v->flags & PSTK__FIELD_EQUIVALENT) != 0,
        .stored_size = v->stored_size,
        .channels = v->channels,
        .bit_depth = v->bit_depth,
        .has_palette = (v->flags & PSTK__FIELD_PALETTE) != 0,
        .damaged = (v->flags & PSTK__FIELD_DAMAGED) != 0,
        .absent = (v->flags & PSTK__FIELD_ABSENT) != 0,
    };
    memcpy(info, &all, info->size < sizeof all ? info->size : sizeof all);
}

/* The parts of a value to return; each member may be NULL. */
struct wanted {
    void **data; /* returns owned; NULL: do not read the value */
    uint64_t *size;
    struct pstk_value_info *info;
};

/* Read the bytes that parsing needs, then only the bytes of the field; or both at once. */
static int fetch_field(struct pstk_dataset *dataset, const struct pstk__sample_location *at,
                       uint32_t field, const struct wanted *wanted, struct pstk_error *err)
{
    const struct pstk__source *source = dataset->source;
    struct pstk__extent extents[PSTK_MAX_FIELDS];
    struct pstk__record record;
    const uint64_t fields = source->format->has_heads ? 0 : 1ull << field;
    const uint32_t n = pstk__source_n_extents(source, fields);
    int code = find_extents(dataset, at, fields, extents, err);
    if (code < 0)
        return code;
    struct pstk__room room = {.size = sum_of_sizes(extents, n)};
    room.data = malloc(room.size ? room.size : 1);
    if (!room.data)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_READ, "no memory for %llu bytes",
                          (unsigned long long)room.size);
    code = read_extents(dataset, extents, n, &room, err);
    if (code == 0)
        code = source->format->parse(source, at, fields, extents, n, &record, err);
    if (code == 0 && wanted->data)
        code = get_plain(dataset, &record, at->shard, field, wanted->data, err);
    if (code == 0 && wanted->size)
        *wanted->size = record.fields[field].plain_size;
    if (code == 0 && wanted->info)
        fill_info(&record.fields[field], wanted->info);
    free(room.data);
    return code;
}

/* Check the arguments, then get the value. */
static int fetch(struct pstk_dataset *dataset, uint64_t sample_id, uint32_t field,
                 const struct wanted *wanted, struct pstk_error *err)
{
    if (wanted->info && wanted->info->size < sizeof wanted->info->size)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_READ,
                          "info->size: value is %u; must be sizeof(struct pstk_value_info)",
                          wanted->info->size);
    const struct pstk__source *source = dataset->source;
    if (sample_id >= source->n_samples)
        return pstk__fail(
            err, PSTK_EINVAL, PSTK_STAGE_READ,
            "sample_id: value is %llu; must be from 0 to %llu, the samples of the data set",
            (unsigned long long)sample_id, (unsigned long long)source->n_samples - 1);
    if (field >= source->schema.n_fields)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_READ,
                          "field: value is %u; must be below %u, the number of fields", field,
                          source->schema.n_fields);
    struct pstk__sample_location at;
    source->format->locate(source, sample_id, &at);
    const int r = fetch_field(dataset, &at, field, wanted, err);
    if (r < 0 && err)
        err->sample_id = sample_id;
    return r;
}

int pstk_dataset_get(struct pstk_dataset *dataset, uint64_t sample_id, uint32_t field, void **data,
                     uint64_t *size, struct pstk_value_info *info, struct pstk_error *err)
{
    if (!dataset || !data || !size)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_READ, "%s is NULL",
                          !dataset ? "d"
                          : !data  ? "data"
                                   : "size");
    *data = NULL;
    *size = 0;
    const struct wanted wanted = {.data = data, .size = size, .info = info};
    return fetch(dataset, sample_id, field, &wanted, err);
}

int pstk_dataset_look(struct pstk_dataset *dataset, uint64_t sample_id, uint32_t field,
                      struct pstk_value_info *info, struct pstk_error *err)
{
    if (!dataset || !info)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_READ, "%s is NULL", !dataset ? "d" : "info");
    const struct wanted wanted = {.info = info};
    return fetch(dataset, sample_id, field, &wanted, err);
}

/* ---- columns --------------------------------------------------------------------------------- */

uint32_t pstk_dataset_n_columns(const struct pstk_dataset *dataset)
{
    return dataset && dataset->source->format->n_columns
               ? dataset->source->format->n_columns(dataset->source)
               : 0;
}

int pstk_dataset_get_column_info(const struct pstk_dataset *dataset, uint32_t i,
                                 struct pstk_column_info *info)
{
    struct pstk_column_info all = {0};
    if (!info || info->size < sizeof info->size || i >= pstk_dataset_n_columns(dataset))
        return PSTK_EINVAL;
    dataset->source->format->column(dataset->source, i, &all);
    all.bytes = dataset->source->format->column_bytes(dataset->source, i);
    all.size = info->size;
    memcpy(info, &all, all.size < sizeof all ? all.size : sizeof all);
    return 0;
}

/* Fail because no column has that name; the message lists as many columns as fit. */
static int fail_column(const struct pstk_dataset *dataset, const char *name, struct pstk_error *err)
{
    char names[400] = "";
    struct pstk_column_info info = {.size = sizeof info};
    const struct pstk__source *source = dataset->source;
    if (!source->format->n_columns)
        return pstk__fail(err, PSTK_ENOENT, PSTK_STAGE_READ,
                          "%s has no column %.80s: " PSTK__NO_COLUMNS, source->path, name,
                          source->format->name, source->path);
    for (uint32_t i = 0; pstk_dataset_get_column_info(dataset, i, &info) == 0; i++) {
        const size_t n = strlen(names);
        snprintf(names + n, sizeof names - n, "%s%s", i ? ", " : "", info.name);
    }
    return pstk__fail(err, PSTK_ENOENT, PSTK_STAGE_READ,
                      "%s has no column %.80s; %s%s (`penstock column` adds one)", source->path,
                      name, names[0] ? "its columns are " : "it has none", names);
}

/* Return the number of the column of that name, or an error. *info lacks the bytes of its files:
 * adding up those of all columns would take longer than reading a range. */
static int64_t find_column(const struct pstk_dataset *dataset, const char *name,
                           struct pstk_column_info *info, struct pstk_error *err)
{
    for (uint32_t i = 0; i < pstk_dataset_n_columns(dataset); i++) {
        dataset->source->format->column(dataset->source, i, info);
        if (strcmp(info->name, name) == 0)
            return i;
    }
    return fail_column(dataset, name, err);
}

int pstk_dataset_read_column(struct pstk_dataset *dataset, const char *name, uint64_t first,
                             uint64_t n, void *out, uint64_t out_size, struct pstk_error *err)
{
    struct pstk_column_info info;
    if (!dataset || !name || (!out && n))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_READ, "%s is NULL",
                          !dataset ? "d"
                          : !name  ? "name"
                                   : "out");
    const struct pstk__source *source = dataset->source;
    const int64_t i = find_column(dataset, name, &info, err);
    if (i < 0)
        return (int)i;
    if (first > source->n_samples || n > source->n_samples - first)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_READ,
                          "first: value is %llu with n %llu; must be samples of the data set, 0 to "
                          "%llu",
                          (unsigned long long)first, (unsigned long long)n,
                          (unsigned long long)source->n_samples - 1);
    if (n > out_size / pstk_dtype_size(info.dtype))
        return pstk__fail(
            err, PSTK_EINVAL, PSTK_STAGE_READ,
            "out_size: value is %llu; must be at least %llu, the bytes of %llu values "
            "of %s",
            (unsigned long long)out_size, (unsigned long long)n * pstk_dtype_size(info.dtype),
            (unsigned long long)n, pstk_dtype_name(info.dtype));
    return n ? source->format->column_read(source, (uint32_t)i, first, n, out, err) : 0;
}

/* ---- all files ------------------------------------------------------------------------------- */

/* Return the number of sample files that are checked: all; or, with a file for each sample, the
 * first of each shard and the last file. */
static uint64_t n_checked(const struct pstk__source *source)
{
    return source->format->has_file_each ? source->n_shards + 1 : source->n_files;
}

/* Check the checked file of number i. */
static int check_own_file(const struct pstk__source *source, uint64_t i, struct pstk_error *bad)
{
    struct pstk__file file;
    uint64_t number = i, n = 1;
    if (source->format->has_file_each && i == source->n_shards)
        number = source->n_files - 1;
    else if (source->format->has_file_each)
        pstk__source_range(source, (uint32_t)i, &number, &n);
    const int r = n > 0 ? pstk__source_open_file(source, (uint32_t)number, &file, bad) : 0;
    if (r == 0 && n > 0)
        pstk__file_end(&file);
    return r;
}

/* Check file i of all files: first the files of samples, then the files of columns, shard by shard.
 */
static int check_file(const struct pstk_dataset *dataset, uint64_t i, uint32_t n_columns,
                      struct pstk_error *bad)
{
    const struct pstk__source *source = dataset->source;
    const uint64_t n_own = n_checked(source);
    if (i < n_own)
        return check_own_file(source, i, bad);
    return source->format->column_check(source, (uint32_t)((i - n_own) % n_columns),
                                        (uint32_t)((i - n_own) / n_columns), bad);
}

int64_t pstk_dataset_check(struct pstk_dataset *dataset, pstk_verify_fn on_bad, void *user,
                           struct pstk_error *err)
{
    int64_t n_bad = 0;
    if (!dataset)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "d is NULL");
    const uint32_t n_columns = pstk_dataset_n_columns(dataset);
    const uint64_t n = n_checked(dataset->source) + dataset->source->n_shards * n_columns;
    for (uint64_t i = 0; i < n; i++) {
        struct pstk_error bad;
        pstk_error_init(&bad, sizeof bad);
        if (check_file(dataset, i, n_columns, &bad) == 0)
            continue;
        n_bad += n_bad < INT32_MAX;
        if (on_bad && on_bad(user, &bad))
            return pstk__fail(err, PSTK_ECANCELED, PSTK_STAGE_OPEN, "on_bad ended the check");
    }
    return n_bad;
}
