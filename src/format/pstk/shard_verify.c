/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pstk/shard_verify.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "record/field.h"
#include "base/file.h"
#include "image/image.h"
#include "format/pstk/shard.h"
#include "format/pstk/tally.h"
#include "record/value.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK_SIZE (4u << 20) /* bytes of one read of records */
#define PAGES_PER_READ 64
/* Bytes read at once, so that a slow disk does not hold up a stop. */
#define PIECE_SIZE (1u << 20)
#define TICK_NS 20000000u /* between two calls of the sink's progress */
#define SHRUNK (1 << 20)  /* where a native errno stands: the file ends too early */

/* A piece of the file in memory. */
struct piece {
    uint8_t *bytes;    /* owned */
    uint64_t capacity; /* grows to the largest record there is, never beyond the file */
    uint64_t offset;   /* in the file */
    uint64_t size;     /* bytes that are valid */
};

struct pstk__shard_verifier {
    const struct pstk__verify_input *input; /* borrowed */
    struct piece records;
    struct piece pages;
    uint8_t *plain; /* owned; one decompressed value */
    uint64_t plain_capacity;
    void *decoder_memory; /* owned */
    struct pstk__decoder *decoder;
    struct pstk__arena arena;   /* for image; grows by being opened anew */
    struct pstk__arena scratch; /* for fields stored as planes; likewise */
    struct pstk__image_state *image;
    struct pstk_error bad; /* the damage that is being told */

    /* The shard at hand. */
    const struct pstk__verify_sink *sink;
    struct pstk__verify_found *found;
    const struct pstk__manifest_shard *shard;
    const struct pstk__dictionary *dictionary[PSTK_MAX_FIELDS]; /* by field */
    uint8_t dictionary_lost[PSTK_MAX_FIELDS];                   /* 1: it has one that is damaged */
    uint64_t first;                                             /* sample id of its record 0 */
    uint64_t n_done;                                            /* records not yet told of */
    uint64_t told_ns;                                           /* when progress was last told */
    uint64_t file_size;
    int fd;
};

/* ---- memory ---------------------------------------------------------------------------------- */

static int no_memory(struct pstk_error *err, uint64_t size)
{
    return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_READ,
                      "out of memory for %" PRIu64 " bytes of a record; use fewer threads", size);
}

static int grow(uint8_t **bytes, uint64_t *capacity, uint64_t size, struct pstk_error *err)
{
    if (size <= *capacity)
        return 0;
    free(*bytes); /* what it held is not needed: a larger one is read from the start */
    *capacity = 0;
    *bytes = malloc(size);
    if (!*bytes)
        return no_memory(err, size);
    *capacity = size;
    return 0;
}

/* One read of a small data set needs no large block. */
static uint64_t block_size(const struct pstk__manifest *m)
{
    uint64_t size = PSTK__HEADER_SIZE;
    for (uint32_t i = 0; i < m->n_shards && size < BLOCK_SIZE; i++)
        size = m->shards[i].bytes > size ? m->shards[i].bytes : size;
    return size < BLOCK_SIZE ? size : BLOCK_SIZE;
}

int pstk__shard_verifier_open(struct pstk__shard_verifier **out,
                              const struct pstk__verify_input *input, struct pstk_error *err)
{
    *out = NULL;
    struct pstk__shard_verifier *v = calloc(1, sizeof *v);
    if (!v)
        return no_memory(err, sizeof *v);
    v->input = input;
    v->fd = -1;
    uint64_t size = (pstk__decoder_size() + 63) / 64 * 64;
    int r = grow(&v->records.bytes, &v->records.capacity, block_size(input->manifest), err);
    if (r == 0)
        r = grow(&v->pages.bytes, &v->pages.capacity, PAGES_PER_READ * PSTK__INDEX_PAGE, err);
    if (r == 0) {
        v->decoder_memory = aligned_alloc(64, size);
        v->decoder = v->decoder_memory ? pstk__decoder_init(v->decoder_memory, size) : NULL;
        r = v->decoder ? 0 : no_memory(err, size);
    }
    if (r < 0) {
        pstk__shard_verifier_close(v);
        return r;
    }
    *out = v;
    return 0;
}

static void close_image(struct pstk__shard_verifier *v)
{
    if (v->image)
        pstk__image_state_close(v->image);
    v->image = NULL;
    if (v->arena.base)
        pstk__arena_close(&v->arena);
}

void pstk__shard_verifier_close(struct pstk__shard_verifier *v)
{
    if (!v)
        return;
    close_image(v);
    pstk__arena_close(&v->scratch);
    free(v->records.bytes);
    free(v->pages.bytes);
    free(v->plain);
    free(v->decoder_memory);
    free(v);
}

/* ---- telling of damage ----------------------------------------------------------------------- */

/* Hand v->bad to the sink; the shard and the sample are added where the check could not know them.
 */
static int tell(struct pstk__shard_verifier *v)
{
    struct pstk_error *b = &v->bad;
    if (!b->shard[0])
        snprintf(b->shard, sizeof b->shard, "%s", v->shard->file);
    if (b->record != PSTK_NONE && b->record < v->shard->n_records)
        b->sample_id = v->first + b->record;
    v->found->n_bad++;
    return v->sink->bad(v->sink->user, b) ? PSTK_ECANCELED : 0;
}

/* Damage in bytes [offset, offset + length). */
static int __attribute__((format(printf, 5, 6)))
tell_bytes(struct pstk__shard_verifier *v, int code, uint64_t offset, uint64_t length,
           const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    pstk__fail(&v->bad, code, PSTK_STAGE_SHARD, "%s: %s", v->shard->file, text);
    pstk__fail_at(&v->bad, code, v->shard->file, PSTK_NONE, offset, length);
    return tell(v);
}

static int __attribute__((format(printf, 4, 5)))
tell_field(struct pstk__shard_verifier *v, const struct pstk__record *r, uint32_t i,
           const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    pstk__record_fail(r, i, PSTK_EBADMSG, PSTK_STAGE_RECORD, &v->bad, "%s", text);
    return tell(v);
}

/* What cannot be read: `native` as fetch gives it. The message names bytes and reason. */
static void fail_unread(struct pstk__shard_verifier *v, int native, uint64_t offset,
                        uint64_t length, const char *what)
{
    const uint64_t end = offset + (length ? length - 1 : 0);
    int code;
    if (native == SHRUNK)
        code = pstk__fail(&v->bad, PSTK_EBADMSG, PSTK_STAGE_READ,
                          "%s: the %s (bytes %" PRIu64 " to %" PRIu64
                          ") cannot be read: the file ends before",
                          v->shard->file, what, offset, end);
    else
        code = pstk__fail_errno(&v->bad, native, PSTK_STAGE_READ,
                                "%s: the %s (bytes %" PRIu64 " to %" PRIu64 ") cannot be read",
                                v->shard->file, what, offset, end);
    pstk__fail_at(&v->bad, code, v->shard->file, PSTK_NONE, offset, length);
}

static int tell_unread(struct pstk__shard_verifier *v, int native, uint64_t offset, uint64_t length,
                       const char *what)
{
    fail_unread(v, native, offset, length, what);
    return tell(v);
}

/* ---- progress -------------------------------------------------------------------------------- */

/* Hand on what is done. */
static int tell_progress(struct pstk__shard_verifier *v)
{
    const uint64_t n = v->n_done;
    v->n_done = 0;
    v->told_ns = pstk__clock_ns();
    return v->sink->progress(v->sink->user, n) ? PSTK_ECANCELED : 0;
}

/* Between any two steps. */
static int tick(struct pstk__shard_verifier *v)
{
    return pstk__clock_ns() - v->told_ns < TICK_NS ? 0 : tell_progress(v);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Read up to size bytes; *got says how many came, fewer where the file ends. 0, a positive native
 * errno, or ECANCELED. */
static int read_pieces(struct pstk__shard_verifier *v, uint8_t *to, uint64_t offset, uint64_t size,
                       uint64_t *got)
{
    int64_t n = 0;
    for (*got = 0; *got < size; *got += (uint64_t)n) {
        const uint64_t left = size - *got, want = left < PIECE_SIZE ? left : PIECE_SIZE;
        int r = tick(v);
        if (r < 0)
            return r;
        n = pstk__file_pread(v->fd, to + *got, want, offset + *got);
        if (n <= 0)
            return (int)-n;
    }
    return 0;
}

/* Make [offset, offset + size) present in p. 0, a positive native errno (or SHRUNK) when it cannot
 * be read, or a negative error. Reads ahead up to `limit`. */
static int fetch(struct pstk__shard_verifier *v, struct piece *p, uint64_t offset, uint64_t size,
                 uint64_t limit, struct pstk_error *err)
{
    if (offset >= p->offset && offset + size <= p->offset + p->size)
        return 0;
    p->size = 0;
    int r = grow(&p->bytes, &p->capacity, size, err);
    if (r < 0)
        return r;
    uint64_t ahead = limit > offset ? limit - offset : 0;
    ahead = ahead < p->capacity ? ahead : p->capacity;
    ahead = ahead < size ? size : ahead;
    uint64_t n;
    r = read_pieces(v, p->bytes, offset, ahead, &n);
    if (r > 0 && ahead > size) /* the bad sector may lie past what is needed */
        r = read_pieces(v, p->bytes, offset, size, &n);
    if (r != 0)
        return r;
    if (n < size)
        return SHRUNK;
    p->offset = offset;
    p->size = n;
    return 0;
}

static const uint8_t *at(const struct piece *p, uint64_t offset)
{
    return p->bytes + (offset - p->offset);
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* Pixels as they come, one number for all. */
struct pixels {
    uint32_t crc;
    uint32_t row_size;
};

static void sum_rows(void *user, const uint8_t *rgb, uint64_t stride, uint32_t n_rows)
{
    struct pixels *p = user;
    for (uint32_t y = 0; y < n_rows; y++)
        p->crc = pstk__crc32c(p->crc, rgb + y * stride, p->row_size);
}

static int open_image(struct pstk__shard_verifier *v, const struct pstk__image_info *info,
                      struct pstk_error *err)
{
    uint64_t size = pstk__image_scratch(info->width, info->height);
    if (v->image && v->arena.size >= size)
        return 0;
    close_image(v);
    int r = pstk__arena_open(&v->arena, size);
    if (r < 0)
        return no_memory(err, size);
    return pstk__image_state_open(&v->image, &v->arena, PSTK_VARIANT_AUTO, err);
}

/* Decode all of it. 1: done; 0: damage was told. */
static int decode_bytes(struct pstk__shard_verifier *v, const struct pstk__record *r, uint32_t i,
                        const struct pstk__image_decoder *d, const void *data, uint64_t size,
                        const struct pstk__image_info *info, struct pixels *pixels,
                        struct pstk_error *err)
{
    const struct pstk__box box = {.width = info->width, .height = info->height};
    const struct pstk__row_sink sink = {.rows = sum_rows, .user = pixels};
    struct pstk_error why;
    *pixels = (struct pixels){.row_size = 3 * info->width};
    pstk_error_init(&why, sizeof why);
    int result = d->decode(v->image, data, size, info, &box, &sink, &why);
    if (result == PSTK_ENOMEM)
        return pstk__fail(err, result, PSTK_STAGE_DECODE, "%s", why.message);
    return result < 0 ? tell_field(v, r, i, "cannot be decoded: %s", why.message) : 1;
}

/* Planes are decoded both ways: by our own back end, and, as the file they give, by libjpeg. */
static int decode_image(struct pstk__shard_verifier *v, const struct pstk__record *r, uint32_t i,
                        const void *plain, const struct pstk__image_info *info,
                        struct pstk_error *err)
{
    const struct pstk__field_view *f = &r->fields[i];
    struct pixels pixels, own;
    int result = open_image(v, info, err);
    if (result < 0)
        return result;
    result = decode_bytes(v, r, i, pstk__image_decoder(info->encoding), plain, f->plain_size, info,
                          &pixels, err);
    if (result != 1 || f->codec != PSTK_CODEC_PLANES)
        return result < 0 ? result : 0;
    result = decode_bytes(v, r, i, &pstk__image_planes, f->data, f->stored_size, info, &own, err);
    if (result == 1 && own.crc != pixels.crc)
        return tell_field(v, r, i, "its planes decode to other pixels than its file");
    return result < 0 ? result : 0;
}

/* The image's own header against the record's entry, then the image itself if asked for. */
static int check_image(struct pstk__shard_verifier *v, const struct pstk__record *r, uint32_t i,
                       const void *plain, struct pstk_error *err)
{
    const struct pstk__field_view *f = &r->fields[i];
    struct pstk__image_info info = {0};
    struct pstk_error why;
    if (f->encoding == PSTK_ENCODING_PIXELS) {
        uint64_t size = (uint64_t)f->width * f->height * 3;
        return size == f->plain_size
                   ? 0
                   : tell_field(v, r, i, "%ux%u pixels need %" PRIu64 " bytes, not %u", f->width,
                                f->height, size, f->plain_size);
    }
    const struct pstk__image_decoder *d = pstk__image_decoder(f->encoding);
    if (!d)
        return tell_field(v, r, i, "has encoding %u, which no decoder knows", f->encoding);
    pstk_error_init(&why, sizeof why);
    if (d->probe(plain, f->plain_size, PSTK__MAX_PIXELS, &info, &why) < 0)
        return tell_field(v, r, i, "%s", why.message);
    if (info.width != f->width || info.height != f->height)
        return tell_field(v, r, i, "the image has %ux%u pixels, its record says %ux%u", info.width,
                          info.height, f->width, f->height);
    if (f->codec == PSTK_CODEC_PLANES) {
        const uint32_t orientation = info.orientation;
        if (pstk__image_planes.probe(f->data, f->stored_size, PSTK__MAX_PIXELS, &info, &why) < 0)
            return tell_field(v, r, i, "%s", why.message);
        if (info.orientation != orientation)
            return tell_field(v, r, i, "its planes say EXIF orientation %u, its file %u",
                              info.orientation, orientation);
    }
    return v->input->decode ? decode_image(v, r, i, plain, &info, err) : 0;
}

static int check_plain(struct pstk__shard_verifier *v, const struct pstk__record *r, uint32_t i,
                       const void *plain, struct pstk_error *err)
{
    const struct pstk__field_view *f = &r->fields[i];
    const struct pstk_field *field = &r->schema->fields[i];
    char text[160];
    if (field->kind == PSTK_FIELD_IMAGE)
        return check_image(v, r, i, plain, err);
    uint64_t size = f->in_head ? r->schema->fixed_size[i] : f->plain_size;
    const char *wrong = pstk__value_check(field, plain, size, text);
    return wrong ? tell_field(v, r, i, "%s", wrong) : 0;
}

/* Decompress field i into v->plain; 1: done, 0: damage was told, <0: error. */
static int decompress(struct pstk__shard_verifier *v, const struct pstk__record *r, uint32_t i,
                      struct pstk_error *err)
{
    const struct pstk__field_view *f = &r->fields[i];
    struct pstk_error why;
    pstk_error_init(&why, sizeof why);
    int result = pstk__field_check(f, PSTK__MAX_PIXELS, &why);
    if (result < 0)
        return tell_field(v, r, i, "cannot be decompressed: %s", why.message);
    result = grow(&v->plain, &v->plain_capacity, f->plain_size, err);
    if (result < 0)
        return result;
    if (pstk__field_scratch(f) > v->scratch.size) {
        pstk__arena_close(&v->scratch);
        if (pstk__arena_open(&v->scratch, pstk__field_scratch(f)) < 0)
            return no_memory(err, pstk__field_scratch(f));
    }
    if (result == 0)
        result = pstk__field_decode(v->decoder, f, v->dictionary[i], &v->scratch, v->plain, &why);
    if (result == PSTK_ENOMEM)
        return pstk__fail(err, result, PSTK_STAGE_RECORD, "%s", why.message);
    if (result < 0)
        return tell_field(v, r, i, "cannot be decompressed: %s", why.message);
    uint32_t crc = pstk__crc32c(0, v->plain, f->plain_size);
    if (crc != f->plain_crc)
        return tell_field(v, r, i, "its plain bytes have the checksum %08x, the record says %08x",
                          crc, f->plain_crc);
    return 1;
}

static int check_field(struct pstk__shard_verifier *v, const struct pstk__record *r, uint32_t i,
                       struct pstk_error *err)
{
    const struct pstk__field_view *f = &r->fields[i];
    if (f->in_head)
        return check_plain(v, r, i, f->data, err);
    if (pstk__record_check_field(r, i, &v->bad) < 0)
        return tell(v);
    if (f->codec == PSTK_CODEC_NONE) {
        if (f->plain_crc != f->stored_crc)
            return tell_field(v, r, i, "is stored plain, but has two checksums: %08x and %08x",
                              f->stored_crc, f->plain_crc);
        return check_plain(v, r, i, f->data, err);
    }
    if (v->dictionary_lost[i])
        return 0; /* its dictionary has been told of */
    int result = decompress(v, r, i, err);
    return result == 1 ? check_plain(v, r, i, v->plain, err) : result;
}

/* ---- records --------------------------------------------------------------------------------- */

static int check_record(struct pstk__shard_verifier *v, const struct pstk__shard_header *h,
                        const struct pstk__record_place *place, struct pstk_error *err)
{
    const struct pstk__schema *schema = &v->input->manifest->schema;
    uint64_t n_bad = v->found->n_bad;
    struct pstk__record record;
    if (place->file_offset + place->size > v->file_size) {
        pstk__fail(&v->bad, PSTK_EBADMSG, PSTK_STAGE_RECORD,
                   "%s: record %" PRIu64 " ends at byte %" PRIu64 ", behind the end of the file",
                   place->shard, place->number, place->file_offset + place->size);
        pstk__fail_at(&v->bad, PSTK_EBADMSG, place->shard, place->number, place->file_offset,
                      place->size);
        return tell(v);
    }
    if (place->size > v->input->limits.max_size) {
        pstk__fail(&v->bad, PSTK_EBADMSG, PSTK_STAGE_RECORD,
                   "%s: record %" PRIu64 " has %" PRIu64 " bytes, yet the manifest allows %" PRIu64,
                   place->shard, place->number, place->size, v->input->limits.max_size);
        pstk__fail_at(&v->bad, PSTK_EBADMSG, place->shard, place->number, place->file_offset,
                      place->size);
        return tell(v);
    }
    uint64_t limit = h->data_end < v->file_size ? h->data_end : v->file_size;
    int r = fetch(v, &v->records, place->file_offset, place->size, limit, err);
    if (r > 0) {
        char what[40];
        snprintf(what, sizeof what, "record %" PRIu64, place->number);
        fail_unread(v, r, place->file_offset, place->size, what);
        v->bad.record = place->number;
        return tell(v);
    }
    if (r < 0)
        return r;
    const uint8_t *bytes = at(&v->records, place->file_offset);
    if (pstk__record_parse(&record, schema, &v->input->limits, place, bytes, place->size, &v->bad) <
        0)
        return tell(v);
    for (uint32_t i = 0; i < schema->n_fields; i++) {
        r = check_field(v, &record, i, err);
        if (r < 0)
            return r;
    }
    if (v->found->n_bad == n_bad) {
        pstk__identity_add(&v->found->identity, schema, record.fields);
        pstk__tally_add(v->found->stats, schema, record.fields);
    }
    return 0;
}

static int check_records(struct pstk__shard_verifier *v, const struct pstk__shard_header *h,
                         uint64_t first, const uint8_t *page, struct pstk_error *err)
{
    uint64_t left = h->n_records - first;
    uint64_t n = left < PSTK__PAGE_RECORDS ? left : PSTK__PAGE_RECORDS;
    struct pstk__record_place place = {.shard = v->shard->file, .tag = h->tag};
    int r = 0;
    for (uint64_t i = 0; r == 0 && i < n; i++) {
        place.number = first + i;
        place.file_offset = pstk__page_offset(page, (uint32_t)i);
        place.size = pstk__page_offset(page, (uint32_t)i + 1) - place.file_offset;
        r = check_record(v, h, &place, err);
        v->n_done++;
        if (r == 0)
            r = tick(v);
    }
    return r;
}

/* ---- index ----------------------------------------------------------------------------------- */

/* What is known while the pages are walked. */
struct walk {
    const struct pstk__shard_header *header;
    uint64_t end; /* where the page before ended; 0: that page is damaged */
    uint32_t crc; /* of the page CRCs so far */
    int n_bad;    /* 1: a page was damaged, so crc means nothing */
};

static int tell_page(struct pstk__shard_verifier *v, struct walk *k, uint64_t p)
{
    const struct pstk__shard_header *h = k->header;
    uint64_t first = p * PSTK__PAGE_RECORDS, left = h->n_records - first;
    uint64_t n = left < PSTK__PAGE_RECORDS ? left : PSTK__PAGE_RECORDS;
    char why[sizeof v->bad.message];
    memcpy(why, v->bad.message, sizeof why);
    int code = v->bad.code, native = v->bad.native;
    pstk__fail(&v->bad, code, PSTK_STAGE_SHARD,
               "%.600s; records %" PRIu64 " to %" PRIu64 " cannot be read", why, first,
               first + n - 1);
    v->bad.native = native;
    pstk__fail_at(&v->bad, code, v->shard->file, PSTK_NONE, h->index_offset + p * PSTK__INDEX_PAGE,
                  PSTK__INDEX_PAGE);
    k->end = 0;
    k->n_bad = 1;
    v->n_done += n;
    return tell(v);
}

static int check_page(struct pstk__shard_verifier *v, struct walk *k, uint64_t p,
                      struct pstk_error *err)
{
    const struct pstk__shard_header *h = k->header;
    uint64_t offset = h->index_offset + p * PSTK__INDEX_PAGE;
    const struct pstk__page_place place = {.shard = v->shard->file,
                                           .tag = h->tag,
                                           .page = (uint32_t)p,
                                           .n_records = h->n_records,
                                           .data_end = h->data_end,
                                           .index_offset = h->index_offset,
                                           .head_size = v->input->manifest->schema.head_size};
    int r = SHRUNK;
    if (offset + PSTK__INDEX_PAGE <= v->file_size)
        r = fetch(v, &v->pages, offset, PSTK__INDEX_PAGE, v->file_size, err);
    if (r < 0)
        return r;
    if (r > 0) {
        char what[40];
        snprintf(what, sizeof what, "index page %" PRIu64, p);
        fail_unread(v, r, offset, PSTK__INDEX_PAGE, what);
        return tell_page(v, k, p);
    }
    const uint8_t *page = at(&v->pages, offset);
    if (pstk__page_check(&place, page, &v->bad) < 0)
        return tell_page(v, k, p);
    k->crc = pstk__shard_index_crc(k->crc, pstk__page_crc(page));
    if (k->end && pstk__page_offset(page, 0) != k->end) {
        pstk__fail(&v->bad, PSTK_EBADMSG, PSTK_STAGE_SHARD,
                   "%s: index page %" PRIu64 " begins at byte %" PRIu64
                   ", the one before ends at byte %" PRIu64,
                   v->shard->file, p, pstk__page_offset(page, 0), k->end);
        return tell_page(v, k, p);
    }
    uint64_t first = p * PSTK__PAGE_RECORDS, left = h->n_records - first;
    k->end =
        pstk__page_offset(page, left < PSTK__PAGE_RECORDS ? (uint32_t)left : PSTK__PAGE_RECORDS);
    return check_records(v, h, first, page, err);
}

static int check_pages(struct pstk__shard_verifier *v, const struct pstk__shard_header *h,
                       struct pstk_error *err)
{
    struct walk k = {.header = h};
    for (uint64_t p = 0; p < h->n_pages; p++) {
        int r = check_page(v, &k, p, err);
        if (r < 0)
            return r;
    }
    if (k.n_bad || k.crc == v->shard->index_crc)
        return 0;
    return tell_bytes(v, PSTK_EBADMSG, h->index_offset, h->n_pages * PSTK__INDEX_PAGE,
                      "the index is not the shard's: its checksum is %08x, the manifest says %08x",
                      k.crc, v->shard->index_crc);
}

static int check_padding(struct pstk__shard_verifier *v, const struct pstk__shard_header *h,
                         struct pstk_error *err)
{
    uint64_t size = h->index_offset - h->data_end;
    if (size == 0 || h->index_offset > v->file_size)
        return 0;
    int r = fetch(v, &v->records, h->data_end, size, h->index_offset, err);
    if (r < 0)
        return r;
    if (r > 0)
        return tell_unread(v, r, h->data_end, size, "padding");
    const uint8_t *p = at(&v->records, h->data_end);
    for (uint64_t i = 0; i < size; i++)
        if (p[i])
            return tell_bytes(v, PSTK_EBADMSG, h->data_end + i, 1,
                              "byte %" PRIu64 " is padding and not zero", h->data_end + i);
    return 0;
}

/* ---- header ---------------------------------------------------------------------------------- */

/* The header against the manifest. 1: it agrees. */
static int compare_header(struct pstk__shard_verifier *v, const struct pstk__shard_header *h)
{
    const struct pstk__manifest_shard *s = v->shard;
    if (h->schema_crc != v->input->manifest->schema.crc)
        return tell_bytes(v, PSTK_EBADMSG, 16, 4, "is of another schema (%08x, not %08x)",
                          h->schema_crc, v->input->manifest->schema.crc);
    if (h->n_records != s->n_records)
        return tell_bytes(v, PSTK_EBADMSG, 24, 8,
                          "has %" PRIu64 " records, the manifest says %" PRIu64, h->n_records,
                          s->n_records);
    if (h->file_size != s->bytes)
        return tell_bytes(v, PSTK_EBADMSG, 48, 8,
                          "has %" PRIu64 " bytes by its header, the manifest says %" PRIu64,
                          h->file_size, s->bytes);
    if (h->crc != s->header_crc || h->index_crc != s->index_crc)
        return tell_bytes(
            v, PSTK_EBADMSG, 0, PSTK__HEADER_SIZE,
            "the header is not the one that the manifest lists: its checksum is %08x, "
            "not %08x",
            h->crc, s->header_crc);
    return 1;
}

/* The header is lost: where the records end, and the tag, also stand in the last index page, which
 * lies at the end of the file. 1: found. */
static int rebuild_header(struct pstk__shard_verifier *v, struct pstk__shard_header *h,
                          struct pstk_error *err)
{
    const struct pstk__manifest_shard *s = v->shard;
    uint64_t n_pages = pstk__shard_n_pages(s->n_records);
    uint64_t offset = s->bytes - PSTK__INDEX_PAGE;
    if (s->bytes > v->file_size)
        return 0;
    int r = fetch(v, &v->pages, offset, PSTK__INDEX_PAGE, v->file_size, err);
    if (r != 0)
        return r < 0 ? r : 0;
    const uint8_t *page = at(&v->pages, offset);
    if (pstk__crc32c(0, page + 4, PSTK__INDEX_PAGE - 4) != pstk__page_crc(page))
        return 0;
    uint64_t n = s->n_records - (n_pages - 1) * PSTK__PAGE_RECORDS;
    memset(h, 0, sizeof *h);
    h->n_records = s->n_records;
    h->data_end = pstk__page_offset(page, (uint32_t)n);
    h->tag = (uint32_t)page[8] | (uint32_t)page[9] << 8 | (uint32_t)page[10] << 16 |
             (uint32_t)page[11] << 24;
    return pstk__shard_header_derive(h, NULL) == 0 && h->file_size == s->bytes;
}

/* Read and check the header. 1: *h can be used; 0: damage was told, nothing more can be found. */
static int check_header(struct pstk__shard_verifier *v, struct pstk__shard_header *h,
                        struct pstk_error *err)
{
    int r = SHRUNK;
    if (v->file_size >= PSTK__HEADER_SIZE)
        r = fetch(v, &v->records, 0, PSTK__HEADER_SIZE, v->file_size, err);
    if (r < 0)
        return r;
    if (r > 0)
        r = tell_unread(v, r, 0, PSTK__HEADER_SIZE, "header");
    else if (pstk__shard_header_check(h, at(&v->records, 0), v->shard->file, &v->bad) < 0)
        r = tell(v);
    else
        r = compare_header(v, h);
    return r == 0 ? rebuild_header(v, h, err) : r;
}

/* ---- the shard ------------------------------------------------------------------------------- */

static int check_file(struct pstk__shard_verifier *v, struct pstk_error *err)
{
    struct pstk__shard_header h;
    uint64_t bytes = v->shard->bytes, size = v->file_size;
    int r = 0;
    if (size != bytes)
        r = tell_bytes(v, PSTK_EBADMSG, size < bytes ? size : bytes,
                       size < bytes ? bytes - size : size - bytes,
                       "the file has %" PRIu64 " bytes, the manifest says %" PRIu64, size, bytes);
    if (r == 0)
        r = check_header(v, &h, err);
    if (r <= 0)
        return r;
    r = check_pages(v, &h, err);
    if (r == 0)
        r = check_padding(v, &h, err);
    if (r < 0 || v->found->n_bad)
        return r;
    const struct pstk__identity *id = &v->found->identity;
    if (id->lane[0] != h.identity[0] || id->lane[1] != h.identity[1])
        return tell_bytes(v, PSTK_EBADMSG, 72, 16,
                          "the records are not those that the header's identity tells of");
    return 0;
}

static void begin(struct pstk__shard_verifier *v, uint32_t shard)
{
    const struct pstk__manifest *m = v->input->manifest;
    v->shard = &m->shards[shard];
    v->first = v->input->first[shard];
    v->records.size = 0;
    v->pages.size = 0;
    v->n_done = 0;
    v->told_ns = pstk__clock_ns();
    memset(v->dictionary, 0, sizeof v->dictionary);
    memset(v->dictionary_lost, 0, sizeof v->dictionary_lost);
    for (uint32_t i = 0; i < v->shard->n_dictionaries; i++) {
        uint32_t number = v->shard->dictionaries[i], field = m->dictionaries[number].field;
        v->dictionary[field] = v->input->dictionaries[number];
        v->dictionary_lost[field] = !v->dictionary[field];
    }
}

/* 0: open; >0: damage was told; <0: error. */
static int open_file(struct pstk__shard_verifier *v, struct pstk_error *err)
{
    char path[4096];
    struct stat st;
    int n = snprintf(path, sizeof path, "%s/%s", v->input->path, v->shard->file);
    if (n < 0 || (size_t)n >= sizeof path)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "%s: the path is too long",
                          v->input->path);
    v->fd = pstk__file_open(path);
    int native = v->fd < 0 ? -v->fd : fstat(v->fd, &st) < 0 ? errno : 0;
    if (pstk__file_is_refused(native))
        return pstk__file_fail(err, native, PSTK_STAGE_OPEN, path, path);
    if (native) {
        pstk__file_fail(&v->bad, native, PSTK_STAGE_SHARD, v->shard->file, path);
        pstk__fail_at(&v->bad, v->bad.code, v->shard->file, PSTK_NONE, 0, v->shard->bytes);
        return tell(v) < 0 ? PSTK_ECANCELED : 1;
    }
    v->file_size = (uint64_t)st.st_size;
    (void)posix_fadvise(v->fd, 0, 0, POSIX_FADV_SEQUENTIAL); /* a hint: what it says matters not */
    return 0;
}

int pstk__shard_verifier_run(struct pstk__shard_verifier *v, uint32_t shard,
                             const struct pstk__verify_sink *sink, struct pstk__verify_found *found,
                             struct pstk_error *err)
{
    memset(found, 0, sizeof *found);
    pstk_error_init(&v->bad, sizeof v->bad);
    v->sink = sink;
    v->found = found;
    begin(v, shard);
    int r = open_file(v, err);
    if (r == 0)
        r = check_file(v, err);
    if (r >= 0 && tell_progress(v) < 0)
        r = PSTK_ECANCELED;
    if (v->fd >= 0)
        close(v->fd);
    v->fd = -1;
    if (r == PSTK_ECANCELED)
        return pstk__fail(err, r, PSTK_STAGE_CONSUMER, "verify was stopped by its caller");
    return r < 0 ? r : 0;
}
