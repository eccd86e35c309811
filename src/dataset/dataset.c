/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/dataset.h"

#include "base/crc32c.h"
#include "base/error.h"
#include "record/field.h"
#include "base/file.h"
#include "image/image.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N_FILES 16 /* shard files kept open; more threads than that open one for their own use */

/* A kept file. n_pins counts the reads under way on it; only unpinned ones are replaced. */
struct open_file {
    int fd; /* -1: the place is free */
    uint32_t shard;
    uint32_t n_pins;
    uint64_t used_at; /* the clock of the last use; the smallest goes first */
};

struct pstk_dataset {
    struct pstk__source *source; /* owned */
    pthread_mutex_t lock;        /* guards files and clock; never held during I/O */
    struct open_file files[N_FILES];
    uint64_t clock; /* counts uses */
};

/* A shard file for one read. */
struct lease {
    int fd;
    int slot; /* in files, or -1: this lease's own */
};

const struct pstk__source *pstk__dataset_source(const struct pstk_dataset *d)
{
    return d->source;
}

/* ---- open and close -------------------------------------------------------------------------- */

int pstk_dataset_open(struct pstk_dataset **out, const char *path, struct pstk_error *err)
{
    if (!out)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "out is NULL");
    *out = NULL;
    struct pstk_dataset *d = calloc(1, sizeof *d);
    if (!d)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for a data set");
    for (int i = 0; i < N_FILES; i++)
        d->files[i].fd = -1;
    int native = pthread_mutex_init(&d->lock, NULL);
    if (native) {
        free(d);
        return pstk__fail_errno(err, native, PSTK_STAGE_OPEN, "no lock for a data set");
    }
    int r = pstk__source_open(&d->source, path, err);
    if (r < 0) {
        pstk_dataset_close(&d);
        return r;
    }
    *out = d;
    return 0;
}

void pstk_dataset_close(struct pstk_dataset **p)
{
    struct pstk_dataset *d = p ? *p : NULL;
    if (!d)
        return;
    for (int i = 0; i < N_FILES; i++)
        if (d->files[i].fd >= 0)
            close(d->files[i].fd);
    pstk__source_close(d->source);
    pthread_mutex_destroy(&d->lock);
    free(d);
    *p = NULL;
}

void pstk_free(void *data)
{
    free(data);
}

/* ---- what is known --------------------------------------------------------------------------- */

int pstk_dataset_get_info(const struct pstk_dataset *d, struct pstk_dataset_info *info)
{
    if (!d || !info || info->size < sizeof info->size)
        return PSTK_EINVAL;
    const struct pstk__source *s = d->source;
    struct pstk_dataset_info all = {
        .size = info->size,
        .n_fields = s->schema.n_fields,
        .n_samples = s->n_samples,
        .n_shards = s->n_shards,
        .bytes = s->bytes,
        .n_names = s->names.n,
        .format_version = PSTK_FORMAT_VERSION,
    };
    memcpy(all.identity, s->identity, sizeof all.identity);
    memcpy(info, &all, info->size < sizeof all ? info->size : sizeof all);
    return 0;
}

int pstk_dataset_get_field(const struct pstk_dataset *d, uint32_t i, struct pstk_field *field,
                           struct pstk_field_stats *stats)
{
    if (!d || i >= d->source->schema.n_fields || (stats && stats->size < sizeof stats->size))
        return PSTK_EINVAL;
    if (field)
        *field = d->source->schema.fields[i];
    if (stats) {
        struct pstk_field_stats all = d->source->stats[i];
        all.size = stats->size;
        memcpy(stats, &all, all.size < sizeof all ? all.size : sizeof all);
    }
    return 0;
}

const char *pstk_dataset_name(const struct pstk_dataset *d, uint64_t i)
{
    return d && i < d->source->names.n ? pstk__texts_get(&d->source->names, i) : NULL;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* The kept file of a shard, pinned; -1 when there is none. Under the lock. */
static int find_file(struct pstk_dataset *d, uint32_t shard)
{
    for (int i = 0; i < N_FILES; i++) {
        if (d->files[i].fd < 0 || d->files[i].shard != shard)
            continue;
        d->files[i].n_pins++;
        d->files[i].used_at = ++d->clock;
        return i;
    }
    return -1;
}

/* A place for one more file: free, or the one unused for longest; -1: all pinned. Under the lock.
 */
static int find_place(const struct pstk_dataset *d)
{
    int best = -1;
    for (int i = 0; i < N_FILES; i++) {
        if (d->files[i].fd < 0)
            return i;
        if (d->files[i].n_pins == 0 && (best < 0 || d->files[i].used_at < d->files[best].used_at))
            best = i;
    }
    return best;
}

static int open_shard(const struct pstk__source *s, uint32_t shard, int *fd, struct pstk_error *err)
{
    char path[PATH_MAX];
    const char *name = s->format->shard_name(s, shard);
    int r = s->format->shard_path(s, shard, path, sizeof path);
    if (r < 0)
        return pstk__fail(err, r, PSTK_STAGE_SHARD, "the path of shard %s is too long", name);
    char what[PATH_MAX + 8];
    snprintf(what, sizeof what, "shard %s", path);
    *fd = pstk__file_open(path);
    if (*fd < 0) {
        r = pstk__file_fail(err, -*fd, PSTK_STAGE_SHARD, what, path);
        pstk__fail_at(err, r, name, PSTK_NONE, PSTK_NONE, 0);
    } else {
        r = s->format->shard_check(s, shard, *fd, err);
        if (r < 0)
            close(*fd);
    }
    if (r < 0 && s->format->stands(s, err) < 0) {
        r = PSTK_ENOENT;
        pstk__fail_at(err, r, name, PSTK_NONE, PSTK_NONE, 0);
    }
    return r;
}

/* Keep a freshly opened file, or use the one that another thread kept meanwhile. */
static void keep_file(struct pstk_dataset *d, uint32_t shard, struct lease *lease)
{
    int to_close = -1;
    pthread_mutex_lock(&d->lock);
    int slot = find_file(d, shard);
    if (slot >= 0) {
        to_close = lease->fd;
        *lease = (struct lease){.fd = d->files[slot].fd, .slot = slot};
    } else if ((slot = find_place(d)) >= 0) {
        to_close = d->files[slot].fd;
        d->files[slot] =
            (struct open_file){.fd = lease->fd, .shard = shard, .n_pins = 1, .used_at = ++d->clock};
        lease->slot = slot;
    }
    pthread_mutex_unlock(&d->lock);
    if (to_close >= 0)
        close(to_close);
}

static int lease_file(struct pstk_dataset *d, uint32_t shard, struct lease *lease,
                      struct pstk_error *err)
{
    pthread_mutex_lock(&d->lock);
    lease->slot = find_file(d, shard);
    lease->fd = lease->slot >= 0 ? d->files[lease->slot].fd : -1;
    pthread_mutex_unlock(&d->lock);
    if (lease->slot >= 0)
        return 0;
    int r = open_shard(d->source, shard, &lease->fd, err);
    if (r == 0)
        keep_file(d, shard, lease);
    return r;
}

static void end_lease(struct pstk_dataset *d, const struct lease *lease)
{
    if (lease->slot < 0) {
        close(lease->fd);
        return;
    }
    pthread_mutex_lock(&d->lock);
    d->files[lease->slot].n_pins--;
    pthread_mutex_unlock(&d->lock);
}

/* ---- one record ------------------------------------------------------------------------------ */

/* One record under way. */
struct fetch {
    const struct pstk__source *source;
    int fd;
    uint32_t shard;
    uint64_t record; /* within the shard */
};

/* Read bytes [offset, offset + size) of the shard; fewer is damage. */
static int read_exactly(const struct fetch *f, void *buffer, uint64_t size, uint64_t offset,
                        struct pstk_error *err)
{
    const char *name = f->source->format->shard_name(f->source, f->shard);
    int64_t n = pstk__file_pread(f->fd, buffer, size, offset);
    if (n >= 0 && (uint64_t)n == size)
        return 0;
    int r;
    if (n < 0)
        r = pstk__fail_errno(err, (int)-n, PSTK_STAGE_READ,
                             "%s: record %llu: cannot read bytes %llu to %llu", name,
                             (unsigned long long)f->record, (unsigned long long)offset,
                             (unsigned long long)(offset + size - 1));
    else
        r = pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_READ,
                       "%s: record %llu: the file ends at byte %llu, within the bytes %llu to %llu",
                       name, (unsigned long long)f->record,
                       (unsigned long long)offset + (unsigned long long)n,
                       (unsigned long long)offset, (unsigned long long)(offset + size - 1));
    pstk__fail_at(err, r, name, f->record, offset, size);
    return r;
}

/* Extent of the record, by way of its index page. */
static int find_extent(const struct fetch *f, int head_only, struct pstk__extent *e,
                       struct pstk_error *err)
{
    const struct pstk__format *format = f->source->format;
    _Alignas(64) uint8_t page[PSTK__PAGE_SIZE];
    struct pstk__extent where;
    format->page(f->source, f->shard, f->record, &where);
    if (where.size > 0) {
        int r = read_exactly(f, page, where.size, where.offset, err);
        if (r == 0)
            r = format->page_check(f->source, &where, page, err);
        if (r < 0)
            return r;
    }
    return format->extent(f->source, f->shard, f->record, page, head_only, e, err);
}

static int fetch_record(const struct fetch *f, void *buffer, uint64_t capacity,
                        struct pstk__record *out, struct pstk_error *err)
{
    struct pstk__extent e;
    int r = find_extent(f, 0, &e, err);
    if (r < 0)
        return r;
    if (e.size > capacity) {
        const char *name = f->source->format->shard_name(f->source, f->shard);
        pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_READ,
                   "%s: record %llu has %llu bytes; the buffer has %llu", name,
                   (unsigned long long)f->record, (unsigned long long)e.size,
                   (unsigned long long)capacity);
        pstk__fail_at(err, PSTK_EFBIG, name, f->record, e.offset, e.size);
        return PSTK_EFBIG;
    }
    r = read_exactly(f, buffer, e.size, e.offset, err);
    return r < 0 ? r : f->source->format->parse(f->source, &e, buffer, out, err);
}

int pstk__dataset_read(struct pstk_dataset *d, uint64_t id, void *buffer, uint64_t capacity,
                       struct pstk__record *out, uint32_t *shard, struct pstk_error *err)
{
    struct fetch f = {.source = d->source};
    if (id >= d->source->n_samples)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_READ,
                          "sample %llu: the data set has the samples 0 to %llu",
                          (unsigned long long)id, (unsigned long long)d->source->n_samples - 1);
    struct lease lease;
    d->source->format->locate(d->source, id, &f.shard, &f.record);
    int r = lease_file(d, f.shard, &lease, err);
    if (r == 0) {
        f.fd = lease.fd;
        r = fetch_record(&f, buffer, capacity, out, err);
        end_lease(d, &lease);
    }
    *shard = f.shard;
    if (r < 0 && err)
        err->sample_id = id;
    return r;
}

/* ---- one field ------------------------------------------------------------------------------- */

static int no_memory(const struct pstk__record *r, uint32_t field, uint64_t size,
                     struct pstk_error *err)
{
    return pstk__record_fail(r, field, PSTK_ENOMEM, PSTK_STAGE_RECORD, err,
                             "no memory for %llu bytes", (unsigned long long)size);
}

/* Decompress a field whose stored bytes were checked; *data owned. */
static int decode_field(const struct fetch *f, const struct pstk__record *r, uint32_t field,
                        void **data, struct pstk_error *err)
{
    const struct pstk__field_view *v = &r->fields[field];
    const struct pstk__dictionary *dictionary =
        f->source->format->dictionary(f->source, f->shard, field);
    int code = pstk__field_check(v, PSTK__MAX_PIXELS, err);
    if (code < 0)
        return pstk__record_fail(r, field, code, PSTK_STAGE_RECORD, err, "%s",
                                 err ? err->message : "");
    uint64_t size = pstk__decoder_size();
    void *memory = aligned_alloc(64, size);
    void *plain = malloc(v->plain_size ? v->plain_size : 1);
    struct pstk__decoder *decoder = pstk__decoder_init(memory, size);
    struct pstk__arena scratch = {0};
    if (!plain || !decoder || pstk__arena_open(&scratch, pstk__field_scratch(v)) < 0)
        code = no_memory(r, field, size + v->plain_size + pstk__field_scratch(v), err);
    if (code == 0) {
        code = pstk__field_decode(decoder, v, dictionary, &scratch, plain, err);
        if (code < 0)
            pstk__record_fail(r, field, code, PSTK_STAGE_RECORD, err, "%s",
                              err ? err->message : "");
    }
    uint32_t crc = code == 0 ? pstk__crc32c(0, plain, v->plain_size) : 0;
    if (code == 0 && crc != v->plain_crc)
        code = pstk__record_fail(r, field, PSTK_EBADMSG, PSTK_STAGE_RECORD, err,
                                 "decompressed, its checksum is %08x; the record head says %08x",
                                 crc, v->plain_crc);
    pstk__arena_close(&scratch);
    free(memory);
    if (code < 0)
        free(plain);
    else
        *data = plain;
    return code;
}

/* Read, check and decompress one field that is not in the head; *data owned. */
static int get_stored(const struct fetch *f, struct pstk__record *r, uint32_t field, void **data,
                      struct pstk_error *err)
{
    struct pstk__field_view *v = &r->fields[field];
    void *stored = malloc(v->stored_size ? v->stored_size : 1);
    if (!stored)
        return no_memory(r, field, v->stored_size, err);
    int code = v->stored_size
                   ? read_exactly(f, stored, v->stored_size, r->file_offset + v->offset, err)
                   : 0;
    v->data = stored;
    if (code == 0)
        code = pstk__record_check_field(r, field, err);
    if (code == 0 && v->codec == PSTK_CODEC_NONE) {
        *data = stored; /* plain and stored checksum are one: parsing saw to it */
        return 0;
    }
    if (code == 0)
        code = decode_field(f, r, field, data, err);
    free(stored);
    return code;
}

/* A field that lies in the head: a copy of it. */
static int get_fixed(const struct pstk__record *r, uint32_t field, void **data,
                     struct pstk_error *err)
{
    const struct pstk__field_view *v = &r->fields[field];
    *data = malloc(v->plain_size ? v->plain_size : 1);
    if (!*data)
        return no_memory(r, field, v->plain_size, err);
    memcpy(*data, v->data, v->plain_size);
    return 0;
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
    };
    memcpy(info, &all, info->size < sizeof all ? info->size : sizeof all);
}

/* Read the head, then of the rest no more than the field. */
static int fetch_field(const struct fetch *f, uint32_t field, void **data, uint64_t *size,
                       struct pstk_value_info *info, struct pstk_error *err)
{
    struct pstk__extent e;
    struct pstk__record r;
    int code = find_extent(f, 1, &e, err);
    if (code < 0)
        return code;
    void *head = malloc(e.size ? e.size : 1);
    if (!head)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_READ, "no memory for %llu bytes",
                          (unsigned long long)e.size);
    code = read_exactly(f, head, e.size, e.offset, err);
    if (code == 0)
        code = f->source->format->parse(f->source, &e, head, &r, err);
    if (code == 0)
        code = r.fields[field].in_head ? get_fixed(&r, field, data, err)
                                       : get_stored(f, &r, field, data, err);
    if (code == 0) {
        *size = r.fields[field].plain_size;
        if (info)
            fill_info(&r.fields[field], info);
    }
    free(head);
    return code;
}

int pstk_dataset_get(struct pstk_dataset *d, uint64_t sample_id, uint32_t field, void **data,
                     uint64_t *size, struct pstk_value_info *info, struct pstk_error *err)
{
    if (!d || !data || !size)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_READ, "%s is NULL",
                          !d      ? "d"
                          : !data ? "data"
                                  : "size");
    *data = NULL;
    *size = 0;
    if (info && info->size < sizeof info->size)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_READ,
                          "info->size is %u: set it to sizeof(struct pstk_value_info)", info->size);
    const struct pstk__source *s = d->source;
    if (sample_id >= s->n_samples)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_READ,
                          "sample_id is %llu; the data set has the samples 0 to %llu",
                          (unsigned long long)sample_id, (unsigned long long)s->n_samples - 1);
    if (field >= s->schema.n_fields)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_READ, "field is %u; the data set has %u",
                          field, s->schema.n_fields);
    struct fetch f = {.source = s};
    struct lease lease;
    s->format->locate(s, sample_id, &f.shard, &f.record);
    int r = lease_file(d, f.shard, &lease, err);
    if (r == 0) {
        f.fd = lease.fd;
        r = fetch_field(&f, field, data, size, info, err);
        end_lease(d, &lease);
    }
    if (r < 0 && err)
        err->sample_id = sample_id;
    return r;
}
