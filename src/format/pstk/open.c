/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `.pstk`: a directory with manifest.json and shards. Memory: the manifest, a cumulative count and
 * 16 bytes for each shard, some 150 bytes a shard in all; nothing for each record.
 */
#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "format/format.h"
#include "format/pstk/manifest.h"
#include "format/pstk/shard.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

_Static_assert(PSTK__PAGE_SIZE == PSTK__INDEX_PAGE, "two names of one size");

/* What only a shard's header says. Every shard_check of a shard stores the same values, since the
 * manifest has the header's CRC; `tag` is stored last and read first. */
struct shard_facts {
    _Atomic uint64_t data_end; /* bytes */
    _Atomic uint64_t tag;      /* TAG_KNOWN | tag; 0 before the first check */
};

#define TAG_KNOWN (1ull << 32)

struct pstk_state {
    struct pstk__manifest manifest; /* its names were moved to the source */
    uint64_t *first;                /* owned, n_shards + 1: sample ids, rising; last: n_samples */
    struct shard_facts *facts;      /* owned, n_shards */
    struct pstk__dictionary **dictionaries; /* owned, manifest.n_dictionaries; NULL: not opened */
};

/* ---- open and close -------------------------------------------------------------------------- */

static int pstk_probe(const char *path, struct pstk_error *err)
{
    char name[PATH_MAX];
    struct stat st;
    int n = snprintf(name, sizeof name, "%s/" PSTK__MANIFEST_FILE, path);
    if (n < 0 || (size_t)n >= sizeof name)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "the path is too long: %.400s...",
                          path);
    if (stat(name, &st) == 0)
        return 1;
    if (errno == ENOENT || errno == ENOTDIR)
        return 0;
    return pstk__fail_errno(err, errno, PSTK_STAGE_OPEN, "cannot open %s", name);
}

static void pstk_close(struct pstk__source *s)
{
    struct pstk_state *t = s->state;
    for (uint32_t i = 0; t && t->dictionaries && i < t->manifest.n_dictionaries; i++)
        pstk__dictionary_close(t->dictionaries[i]);
    if (t) {
        free(t->dictionaries);
        free(t->facts);
        free(t->first);
        pstk__manifest_free(&t->manifest);
        free(t);
    }
    pstk__texts_close(&s->names);
    free(s->path);
    free(s);
}

static int pstk_stands(const struct pstk__source *s, struct pstk_error *err)
{
    const struct pstk_state *t = s->state;
    if (pstk__manifest_stands(&t->manifest, s->path) != 0)
        return 0;
    return pstk__fail(
        err, PSTK_ENOENT, PSTK_STAGE_SHARD,
        "%s: the data set was replaced, removed or renamed while it was open%s: open it again%s",
        s->path,
        s->path[0] == '/' ? ""
                          : ", or the program went to another directory, from which this relative "
                            "path does not lead there",
        s->path[0] == '/' ? "" : ", best by an absolute path");
}

static int file_path(const struct pstk__source *s, const char *file, char *path, size_t size)
{
    int n = snprintf(path, size, "%s/%s", s->path, file);
    return n < 0 || (size_t)n >= size ? PSTK_EINVAL : 0;
}

static int open_dictionary(struct pstk__source *s, uint32_t i, struct pstk_error *err)
{
    struct pstk_state *t = s->state;
    const struct pstk__manifest_dictionary *d = &t->manifest.dictionaries[i];
    char path[PATH_MAX];
    if (file_path(s, d->file, path, sizeof path) < 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "the path is too long: %.400s...",
                          s->path);
    void *bytes;
    uint64_t size;
    int r = pstk__file_load(path, PSTK__MAX_DICTIONARY, &bytes, &size, err);
    if (r < 0)
        return r;
    uint32_t crc = pstk__crc32c(0, bytes, size);
    if (size != d->bytes || crc != d->crc) {
        r = pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                       "%s is damaged: %llu bytes with checksum %08x; the manifest says %llu and "
                       "%08x",
                       path, (unsigned long long)size, crc, (unsigned long long)d->bytes, d->crc);
    } else {
        r = pstk__dictionary_open(&t->dictionaries[i], bytes, size, err);
        if (r < 0)
            pstk__fail(err, r, PSTK_STAGE_OPEN, "%s: %s", path, err ? err->message : "");
    }
    free(bytes);
    return r;
}

/* Everything that is sized by the manifest. */
static int allocate(struct pstk__source *s, struct pstk_error *err)
{
    struct pstk_state *t = s->state;
    uint32_t n = t->manifest.n_shards, n_dictionaries = t->manifest.n_dictionaries;
    t->first = calloc((size_t)n + 1, sizeof *t->first);
    t->facts = calloc(n, sizeof *t->facts);
    t->dictionaries = calloc(n_dictionaries ? n_dictionaries : 1, sizeof *t->dictionaries);
    if (!t->first || !t->facts || !t->dictionaries)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for %u shards of %s", n,
                          s->path);
    return 0;
}

static void copy_facts(struct pstk__source *s)
{
    struct pstk_state *t = s->state;
    struct pstk__manifest *m = &t->manifest;
    s->schema = m->schema;
    memcpy(s->stats, m->stats, sizeof s->stats);
    memcpy(s->identity, m->identity, sizeof s->identity);
    s->n_samples = m->n_samples;
    s->n_shards = m->n_shards;
    s->bytes = m->bytes;
    for (uint32_t i = 0; i < m->n_shards; i++) {
        t->first[i + 1] = t->first[i] + m->shards[i].n_records;
        s->n_pages += pstk__shard_n_pages(m->shards[i].n_records);
    }
    s->names = m->names;
    m->names = (struct pstk__texts){0};
    pstk__manifest_limits(m, &s->limits);
}

/* Fill a source that closes whatever it has, also half-way. */
static int fill(struct pstk__source *s, const char *path, struct pstk_error *err)
{
    s->path = strdup(path);
    struct pstk_state *t = calloc(1, sizeof *t);
    s->state = t;
    if (!s->path || !t)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to open %s", path);
    int r = pstk__manifest_load(&t->manifest, path, err);
    if (r < 0)
        return r;
    if (t->manifest.n_samples == 0)
        return pstk__fail(err, PSTK_ENODATA, PSTK_STAGE_OPEN,
                          "%s is empty: a data set of 0 samples", path);
    r = allocate(s, err);
    if (r < 0)
        return r;
    copy_facts(s);
    for (uint32_t i = 0; i < t->manifest.n_dictionaries && r == 0; i++)
        r = open_dictionary(s, i, err);
    if (r < 0 && pstk_stands(s, err) < 0)
        r = PSTK_ENOENT;
    return r;
}

static int pstk_open_source(struct pstk__source **out, const char *path, struct pstk_error *err)
{
    *out = NULL;
    struct pstk__source *s = calloc(1, sizeof *s);
    if (!s)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to open %s", path);
    s->format = &pstk__format_pstk;
    int r = fill(s, path, err);
    if (r < 0) {
        pstk_close(s);
        return r;
    }
    *out = s;
    return 0;
}

/* ---- where things are ------------------------------------------------------------------------ */

static const struct pstk__manifest_shard *shard_of(const struct pstk__source *s, uint32_t shard)
{
    const struct pstk_state *t = s->state;
    return &t->manifest.shards[shard];
}

/* Of index page 0: the index is the end of the file. The manifest's check saw to the difference. */
static uint64_t index_offset(const struct pstk__manifest_shard *m)
{
    return m->bytes - pstk__shard_n_pages(m->n_records) * PSTK__INDEX_PAGE;
}

/* The last shard whose first sample id is at most `id`. */
static void pstk_locate(const struct pstk__source *s, uint64_t id, uint32_t *shard,
                        uint64_t *record)
{
    const struct pstk_state *t = s->state;
    uint32_t low = 0, n = t->manifest.n_shards;
    while (n > 1) {
        uint32_t half = n / 2;
        low += t->first[low + half] <= id ? half : 0;
        n -= half;
    }
    *shard = low;
    *record = id - t->first[low];
}

static void pstk_range(const struct pstk__source *s, uint32_t shard, uint64_t *first, uint64_t *n)
{
    const struct pstk_state *t = s->state;
    *first = t->first[shard];
    *n = t->first[shard + 1] - t->first[shard];
}

static const char *pstk_shard_name(const struct pstk__source *s, uint32_t shard)
{
    return shard_of(s, shard)->file;
}

static int pstk_shard_path(const struct pstk__source *s, uint32_t shard, char *path, size_t size)
{
    return file_path(s, shard_of(s, shard)->file, path, size);
}

static const struct pstk__dictionary *pstk_dictionary(const struct pstk__source *s, uint32_t shard,
                                                      uint32_t field)
{
    const struct pstk_state *t = s->state;
    const struct pstk__manifest_shard *m = &t->manifest.shards[shard];
    for (uint32_t i = 0; i < m->n_dictionaries; i++)
        if (t->manifest.dictionaries[m->dictionaries[i]].field == field)
            return t->dictionaries[m->dictionaries[i]];
    return NULL;
}

static void pstk_page(const struct pstk__source *s, uint32_t shard, uint64_t record,
                      struct pstk__extent *page)
{
    uint32_t p = (uint32_t)(record / PSTK__PAGE_RECORDS);
    *page = (struct pstk__extent){
        .shard = shard,
        .page = p,
        .record = (uint64_t)p * PSTK__PAGE_RECORDS,
        .offset = index_offset(shard_of(s, shard)) + (uint64_t)p * PSTK__INDEX_PAGE,
        .size = PSTK__INDEX_PAGE,
        .whole_size = PSTK__INDEX_PAGE,
    };
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* The shard's tag; EINVAL where nobody has checked its header yet. */
static int tag_of(const struct pstk__source *s, uint32_t shard, uint32_t *tag,
                  struct pstk_error *err)
{
    const struct pstk_state *t = s->state;
    /* acquire: pairs with the release in learn. */
    uint64_t known = atomic_load_explicit(&t->facts[shard].tag, memory_order_acquire);
    *tag = (uint32_t)known;
    if (known & TAG_KNOWN)
        return 0;
    return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_SHARD,
                      "%s was not checked before it was read from", pstk_shard_name(s, shard));
}

static void learn(const struct pstk__source *s, uint32_t shard, const struct pstk__shard_header *h)
{
    struct pstk_state *t = s->state;
    atomic_store_explicit(&t->facts[shard].data_end, h->data_end, memory_order_relaxed);
    /* release: who sees the tag sees data_end (tag_of). */
    atomic_store_explicit(&t->facts[shard].tag, TAG_KNOWN | h->tag, memory_order_release);
}

static int pstk_page_check(const struct pstk__source *s, const struct pstk__extent *page,
                           const void *bytes, struct pstk_error *err)
{
    const struct pstk_state *t = s->state;
    const struct pstk__manifest_shard *m = shard_of(s, page->shard);
    uint32_t tag;
    int r = tag_of(s, page->shard, &tag, err);
    if (r < 0)
        return r;
    const struct pstk__page_place place = {
        .shard = m->file,
        .tag = tag,
        .page = page->page,
        .n_records = m->n_records,
        .data_end = atomic_load_explicit(&t->facts[page->shard].data_end, memory_order_relaxed),
        .index_offset = index_offset(m),
        .head_size = s->schema.head_size,
    };
    return pstk__page_check(&place, bytes, err);
}

static int pstk_extent(const struct pstk__source *s, uint32_t shard, uint64_t record,
                       const void *page, int head_only, struct pstk__extent *out,
                       struct pstk_error *err)
{
    uint64_t offset, size;
    pstk__page_extent(page, record, &offset, &size);
    if (size > s->limits.max_size) {
        const char *name = pstk_shard_name(s, shard);
        pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_SHARD,
                   "%s: record %llu (bytes %llu to %llu): %llu bytes are more than the manifest's "
                   "maxima allow (%llu)",
                   name, (unsigned long long)record, (unsigned long long)offset,
                   (unsigned long long)(offset + size - 1), (unsigned long long)size,
                   (unsigned long long)s->limits.max_size);
        pstk__fail_at(err, PSTK_EBADMSG, name, record, offset, size);
        return PSTK_EBADMSG;
    }
    *out = (struct pstk__extent){
        .shard = shard,
        .page = (uint32_t)(record / PSTK__PAGE_RECORDS),
        .record = record,
        .offset = offset,
        .size = head_only ? s->schema.head_size : size,
        .whole_size = size,
    };
    return 0;
}

static int pstk_parse(const struct pstk__source *s, const struct pstk__extent *e, const void *bytes,
                      struct pstk__record *out, struct pstk_error *err)
{
    struct pstk__record_place place = {
        .shard = pstk_shard_name(s, e->shard),
        .number = e->record,
        .file_offset = e->offset,
        .size = e->whole_size,
    };
    int r = tag_of(s, e->shard, &place.tag, err);
    if (r < 0)
        return r;
    return pstk__record_parse(out, &s->schema, &s->limits, &place, bytes, e->size, err);
}

/* A shard file that is not the one the manifest tells of. */
static int fail_shard(const char *name, struct pstk_error *err, const char *what, uint64_t is,
                      uint64_t should)
{
    pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_SHARD,
               "%s: %s %llu, the manifest says %llu: it is cut short, damaged or of another data "
               "set; restore it from a copy",
               name, what, (unsigned long long)is, (unsigned long long)should);
    pstk__fail_at(err, PSTK_EBADMSG, name, PSTK_NONE, 0, 0);
    return PSTK_EBADMSG;
}

static int pstk_shard_check(const struct pstk__source *s, uint32_t shard, int fd,
                            struct pstk_error *err)
{
    const struct pstk__manifest_shard *m = shard_of(s, shard);
    _Alignas(64) uint8_t bytes[PSTK__HEADER_SIZE];
    struct pstk__shard_header h;
    struct stat st;
    if (fstat(fd, &st) < 0)
        return pstk__fail_errno(err, errno, PSTK_STAGE_SHARD, "cannot read shard %s", m->file);
    if ((uint64_t)st.st_size != m->bytes)
        return fail_shard(m->file, err, "its size in bytes is", (uint64_t)st.st_size, m->bytes);
    int64_t n = pstk__file_pread(fd, bytes, sizeof bytes, 0);
    if (n < 0)
        return pstk__fail_errno(err, (int)-n, PSTK_STAGE_SHARD, "cannot read shard %s", m->file);
    if ((uint64_t)n != sizeof bytes)
        return fail_shard(m->file, err, "bytes of its header that are there:", (uint64_t)n,
                          sizeof bytes);
    int r = pstk__shard_header_check(&h, bytes, m->file, err);
    if (r < 0)
        return r;
    if (h.schema_crc != s->schema.crc)
        return fail_shard(m->file, err, "the checksum of its schema is", h.schema_crc,
                          s->schema.crc);
    if (h.n_records != m->n_records)
        return fail_shard(m->file, err, "its number of records is", h.n_records, m->n_records);
    if (h.file_size != m->bytes)
        return fail_shard(m->file, err, "its size in bytes, by its header, is", h.file_size,
                          m->bytes);
    if (h.index_crc != m->index_crc)
        return fail_shard(m->file, err, "the checksum of its index is", h.index_crc, m->index_crc);
    if (h.crc != m->header_crc)
        return fail_shard(m->file, err, "the checksum of its header is", h.crc, m->header_crc);
    learn(s, shard, &h);
    return 0;
}

const struct pstk__format pstk__format_pstk = {
    .name = "pstk",
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
    .shard_path = pstk_shard_path,
    .shard_name = pstk_shard_name,
    .shard_check = pstk_shard_check,
    .stands = pstk_stands,
};
