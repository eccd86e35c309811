/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pstk/shard_verify.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "record/field.h"
#include "base/file.h"
#include "format/files.h"
#include "format/pstk/column_verify.h"
#include "format/pstk/image_verify.h"
#include "format/pstk/shard.h"
#include "format/pstk/tally.h"
#include "record/axes.h"
#include "record/kind.h"
#include "record/value.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_SIZE (4u << 20) /* bytes of one read of records */
#define PAGES_PER_READ 64
/* Bytes of one read call, so that a slow disk does not delay a stop. */
#define PIECE_SIZE (1u << 20)
#define TICK_NS 20000000u /* ns between two calls of the sink's progress */
/* A result of fetch, which is no error: the bytes could not be read, and `got` has the reason. */
#define UNREAD 1

/* A piece of the file in memory. */
struct piece {
    uint8_t *bytes;    /* owned */
    uint64_t capacity; /* grows to the largest record there is, never beyond the file */
    uint64_t offset;   /* position in the file */
    uint64_t size;     /* valid bytes */
};

struct pstk__shard_verifier {
    const struct pstk__verify_input *input; /* borrowed */
    struct piece records;
    struct piece pages;
    /* Decompressed values, owned: [0] for each field in turn, and one a field for values that
     * pstk__axes_reads needs after the whole record was checked. */
    uint8_t *plain[1 + PSTK_MAX_FIELDS];
    uint64_t plain_capacity[1 + PSTK_MAX_FIELDS];
    struct pstk_value values[PSTK_MAX_FIELDS]; /* values of the current record */
    void *decoder_memory;                      /* owned */
    struct pstk__decoder *decoder;
    struct pstk__arena scratch; /* memory for fields stored as planes; to grow, it is opened again
                                 */
    struct pstk__image_verifier images;
    struct pstk_error bad;                 /* damage to report */
    struct pstk__column_verifier *columns; /* owned; NULL: the data set has none */

    /* State of the current shard. */
    const struct pstk__map_sink *sink;
    struct pstk__verify_found *found;
    const struct pstk__manifest_shard *shard;
    const struct pstk__dictionary *dictionary[PSTK_MAX_FIELDS]; /* by field */
    uint8_t dictionary_lost[PSTK_MAX_FIELDS]; /* 1: the field has a dictionary that is damaged */
    uint64_t first;                           /* sample id of its record 0 */
    uint64_t n_done;                          /* records not yet reported */
    uint64_t reported_ns;                     /* time of the last report of progress */
    uint64_t file_size;
    struct pstk__file file;
    int64_t got;  /* bytes of the last failed fetch that were read, or a negative errno */
    uint32_t tag; /* tag of the shard */
    int has_tag;  /* 1: its header is intact, so the tag is known */
};

/* ---- memory ---------------------------------------------------------------------------------- */

static int no_memory(struct pstk_error *err, uint64_t size)
{
    return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_READ,
                      "out of memory for %" PRIu64 " bytes of a record", size);
}

static int grow(uint8_t **bytes, uint64_t *capacity, uint64_t size, struct pstk_error *err)
{
    if (size <= *capacity)
        return 0;
    free(*bytes); /* the old bytes are not needed: the caller reads a larger value from its begin */
    *capacity = 0;
    *bytes = malloc(size);
    if (!*bytes)
        return no_memory(err, size);
    *capacity = size;
    return 0;
}

/* Choose the block size: one read of a small data set needs no large block. */
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
    struct pstk__shard_verifier *verifier = calloc(1, sizeof *verifier);
    if (!verifier)
        return no_memory(err, sizeof *verifier);
    verifier->input = input;
    verifier->images.decode = input->decode;
    uint64_t size = (pstk__decoder_size() + 63) / 64 * 64;
    int r = grow(&verifier->records.bytes, &verifier->records.capacity, block_size(input->manifest),
                 err);
    if (r == 0)
        r = grow(&verifier->pages.bytes, &verifier->pages.capacity,
                 PAGES_PER_READ * PSTK__INDEX_PAGE, err);
    if (r == 0) {
        verifier->decoder_memory = aligned_alloc(64, size);
        verifier->decoder =
            verifier->decoder_memory ? pstk__decoder_init(verifier->decoder_memory, size) : NULL;
        r = verifier->decoder ? 0 : no_memory(err, size);
    }
    if (r == 0)
        r = pstk__column_verifier_open(&verifier->columns, input->store, input->path,
                                       input->manifest, err);
    if (r < 0) {
        pstk__shard_verifier_close(verifier);
        return r;
    }
    *out = verifier;
    return 0;
}

void pstk__shard_verifier_close(struct pstk__shard_verifier *verifier)
{
    if (!verifier)
        return;
    pstk__image_verifier_close(&verifier->images);
    pstk__arena_close(&verifier->scratch);
    pstk__column_verifier_close(verifier->columns);
    free(verifier->records.bytes);
    free(verifier->pages.bytes);
    for (uint32_t i = 0; i <= PSTK_MAX_FIELDS; i++)
        free(verifier->plain[i]);
    free(verifier->decoder_memory);
    free(verifier);
}

/* ---- reporting damage ----------------------------------------------------------------------- */

/* Hand the damage to the sink, with the shard and the sample if the check did not know them. */
static int report(struct pstk__shard_verifier *verifier)
{
    struct pstk_error *error = &verifier->bad;
    if (!error->shard[0])
        snprintf(error->shard, sizeof error->shard, "%s", verifier->shard->file);
    if (error->record != PSTK_NONE && error->record < verifier->shard->n_records)
        error->sample_id = verifier->first + error->record;
    verifier->found->n_bad++;
    return verifier->sink->bad(verifier->sink->user, error) ? PSTK_ECANCELED : 0;
}

/* Report damage in bytes [offset, offset + length). */
static int __attribute__((format(printf, 5, 6)))
report_bytes(struct pstk__shard_verifier *verifier, int code, uint64_t offset, uint64_t length,
             const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    pstk__fail(&verifier->bad, code, PSTK_STAGE_SHARD, "%s: %s", verifier->shard->file, text);
    pstk__fail_at(&verifier->bad, code, verifier->shard->file, PSTK_NONE, offset, length);
    return report(verifier);
}

static int __attribute__((format(printf, 4, 5)))
report_field(struct pstk__shard_verifier *verifier, const struct pstk__record *record, uint32_t i,
             const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    pstk__record_fail(record, i, PSTK_EBADMSG, PSTK_STAGE_RECORD, &verifier->bad, "%s", text);
    return report(verifier);
}

/* Report that the last fetch, of these bytes, failed. */
static void fail_unread(struct pstk__shard_verifier *verifier, uint64_t offset, uint64_t length,
                        const char *what)
{
    const struct pstk__unread unread = {.name = verifier->shard->file,
                                        .what = what,
                                        .record = PSTK_NONE,
                                        .offset = offset,
                                        .size = length,
                                        .got = verifier->got};
    pstk__unread_fail(&unread, &verifier->bad);
}

static int report_unread(struct pstk__shard_verifier *verifier, uint64_t offset, uint64_t length,
                         const char *what)
{
    fail_unread(verifier, offset, length, what);
    return report(verifier);
}

/* ---- progress -------------------------------------------------------------------------------- */

/* Report the progress to the sink. */
static int report_progress(struct pstk__shard_verifier *verifier)
{
    const uint64_t n = verifier->n_done;
    verifier->n_done = 0;
    verifier->reported_ns = pstk__clock_ns();
    return verifier->sink->progress(verifier->sink->user, n) ? PSTK_ECANCELED : 0;
}

/* Report the progress if it is due. Called between any two steps. */
static int tick(struct pstk__shard_verifier *verifier)
{
    return pstk__clock_ns() - verifier->reported_ns < TICK_NS ? 0 : report_progress(verifier);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Read up to size bytes, and set verifier->got to their number, fewer at the end of the file, or to
 * a negative errno. 0, or ECANCELED. */
static int read_pieces(struct pstk__shard_verifier *verifier, uint8_t *to, uint64_t offset,
                       uint64_t size)
{
    uint64_t done = 0;
    int64_t n = 1;
    for (; done < size && n > 0; done += n > 0 ? (uint64_t)n : 0) {
        const uint64_t left = size - done, want = left < PIECE_SIZE ? left : PIECE_SIZE;
        int r = tick(verifier);
        if (r < 0)
            return r;
        n = pstk__file_read(&verifier->file, to + done, want, offset + done);
    }
    verifier->got = n < 0 ? n : (int64_t)done;
    return 0;
}

/* Make [offset, offset + size) present in the piece, and read ahead up to `limit`. 0, UNREAD, or a
 * negative error. */
static int fetch(struct pstk__shard_verifier *verifier, struct piece *piece, uint64_t offset,
                 uint64_t size, uint64_t limit, struct pstk_error *err)
{
    if (offset >= piece->offset && offset + size <= piece->offset + piece->size)
        return 0;
    piece->size = 0;
    int r = grow(&piece->bytes, &piece->capacity, size, err);
    if (r < 0)
        return r;
    uint64_t ahead = limit > offset ? limit - offset : 0;
    ahead = ahead < piece->capacity ? ahead : piece->capacity;
    ahead = ahead < size ? size : ahead;
    r = read_pieces(verifier, piece->bytes, offset, ahead);
    if (r == 0 && verifier->got < 0 &&
        ahead > size) /* the bad sector may lie beyond the wanted bytes */
        r = read_pieces(verifier, piece->bytes, offset, size);
    if (r < 0)
        return r;
    if (verifier->got < 0 || (uint64_t)verifier->got < size)
        return UNREAD;
    piece->offset = offset;
    piece->size = (uint64_t)verifier->got;
    return 0;
}

/* Fail as fetch does, because the bytes from `offset` on lie beyond the end of the file. */
static int cut_short(struct pstk__shard_verifier *verifier, uint64_t offset)
{
    verifier->got = verifier->file_size > offset ? (int64_t)(verifier->file_size - offset) : 0;
    return UNREAD;
}

static const uint8_t *at(const struct piece *piece, uint64_t offset)
{
    return piece->bytes + (offset - piece->offset);
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* The field whose image is checked. */
struct at_field {
    struct pstk__shard_verifier *verifier;
    const struct pstk__record *record;
    uint32_t i;
};

static int report_image(void *user, const char *phrase)
{
    const struct at_field *at_field = user;
    return report_field(at_field->verifier, at_field->record, at_field->i, "%s", phrase);
}

static int check_plain(struct pstk__shard_verifier *verifier, const struct pstk__record *record,
                       uint32_t i, const void *plain, struct pstk_error *err)
{
    const struct pstk__field_view *field_view = &record->fields[i];
    const struct pstk_field *field = &record->schema->fields[i];
    struct at_field at_field = {verifier, record, i};
    const struct pstk__image_findings findings = {.bad = report_image, .user = &at_field};
    char text[160];
    verifier->values[i] = (struct pstk_value){plain, field_view->plain_size};
    if (field->kind == PSTK_FIELD_IMAGE)
        return pstk__image_verifier_image(&verifier->images, field_view, plain, &findings, err);
    if (field->kind == PSTK_FIELD_MASK)
        return pstk__image_verifier_mask(&verifier->images, field_view, plain, &findings, err);
    const char *wrong = pstk__value_check(field, plain, field_view->plain_size, text);
    if (wrong)
        return report_field(verifier, record, i, "%s", wrong);
    return pstk__field_traits(field->kind) & PSTK__TRAIT_IMAGES
               ? pstk__image_verifier_list(&verifier->images, field->kind, field_view, plain,
                                           &findings, err)
               : 0;
}

/* Give pstk__field_read its memory, which grows to the largest value. */
static int find_memory(void *user, const struct pstk__record *record, uint32_t i,
                       struct pstk__field_memory *out, struct pstk_error *err)
{
    struct pstk__shard_verifier *verifier = user;
    const struct pstk__field_view *field_view = &record->fields[i];
    const uint64_t scratch = pstk__field_scratch(field_view);
    const uint32_t k = pstk__axes_reads(record->schema, i) ? i + 1 : 0;
    const int result =
        grow(&verifier->plain[k], &verifier->plain_capacity[k], field_view->plain_size, err);
    if (result < 0)
        return result;
    if (scratch > verifier->scratch.size) {
        pstk__arena_close(&verifier->scratch);
        if (pstk__arena_open(&verifier->scratch, scratch) < 0)
            return no_memory(err, scratch);
    }
    *out = (struct pstk__field_memory){.decoder = verifier->decoder,
                                       .dictionary = verifier->dictionary[i],
                                       .scratch = &verifier->scratch,
                                       .plain = verifier->plain[k]};
    return 0;
}

static int check_field(struct pstk__shard_verifier *verifier, const struct pstk__record *record,
                       uint32_t i, struct pstk_error *err)
{
    const struct pstk__field_view *field_view = &record->fields[i];
    const struct pstk__field_reading reading = {
        .max_pixels = PSTK__MAX_PIXELS, .memory = find_memory, .user = verifier};
    const uint8_t *plain;
    if (verifier->dictionary_lost[i] && field_view->codec != PSTK_CODEC_NONE) /* already reported */
        return pstk__record_check_field(record, i, &verifier->bad) < 0 ? report(verifier) : 0;
    const int result = pstk__field_read(record, i, &reading, &plain, &verifier->bad);
    if (result == PSTK_ENOMEM)
        return pstk__fail_copy(err, &verifier->bad);
    return result < 0 ? report(verifier) : check_plain(verifier, record, i, plain, err);
}

/* ---- records --------------------------------------------------------------------------------- */

/* Report damage of a record as a whole. */
static int __attribute__((format(printf, 3, 4)))
report_record(struct pstk__shard_verifier *verifier, const struct pstk__record_location *location,
              const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    pstk__fail(&verifier->bad, PSTK_EBADMSG, PSTK_STAGE_RECORD, "%s: record %" PRIu64 " %s",
               location->shard, location->number, text);
    pstk__fail_at(&verifier->bad, PSTK_EBADMSG, location->shard, location->number,
                  location->file_offset, location->size);
    return report(verifier);
}

/* Read the bytes of a record, if the index may locate them. 1: *bytes; 0: damage was reported; <0:
 * error. */
static int read_record(struct pstk__shard_verifier *verifier, const struct pstk__shard_header *h,
                       const struct pstk__record_location *location, const uint8_t **bytes,
                       struct pstk_error *err)
{
    const uint64_t end = location->file_offset + location->size;
    const uint64_t limit = h->data_end < verifier->file_size ? h->data_end : verifier->file_size;
    if (end > verifier->file_size)
        return report_record(verifier, location,
                             "ends at byte %" PRIu64 ", past the end of the file", end);
    if (location->size > verifier->input->limits.max_size)
        return report_record(verifier, location,
                             "has %" PRIu64 " bytes, but the manifest allows %" PRIu64,
                             location->size, verifier->input->limits.max_size);
    const int r =
        fetch(verifier, &verifier->records, location->file_offset, location->size, limit, err);
    if (r == UNREAD) {
        char what[40];
        snprintf(what, sizeof what, "record %" PRIu64, location->number);
        fail_unread(verifier, location->file_offset, location->size, what);
        verifier->bad.record = location->number;
        return report(verifier);
    }
    *bytes = at(&verifier->records, location->file_offset);
    return r < 0 ? r : 1;
}

/* Check the axes that the fields of an intact record share, unless a lost dictionary makes values
 * unreadable. */
static int check_axes(struct pstk__shard_verifier *verifier, const struct pstk__record *record)
{
    uint32_t field;
    char text[320];
    if (!record->schema->links.has_axes)
        return 0;
    for (uint32_t i = 0; i < record->schema->n_fields; i++)
        if (verifier->dictionary_lost[i])
            return 0;
    const char *wrong =
        pstk__axes_check(record->schema, verifier->values, record->fields, &field, text);
    return wrong ? report_field(verifier, record, field, "%s", wrong) : 0;
}

/* Check a record, and add it to the totals if it is intact. */
static int check_record(struct pstk__shard_verifier *verifier, const struct pstk__shard_header *h,
                        const struct pstk__record_location *location, struct pstk_error *err)
{
    const struct pstk__schema *schema = &verifier->input->manifest->schema;
    const uint64_t n_bad = verifier->found->n_bad;
    const uint8_t *bytes = NULL;
    struct pstk__record record;
    int r = read_record(verifier, h, location, &bytes, err);
    if (r <= 0)
        return r;
    r = pstk__record_parse(&record, schema, &verifier->input->limits, location, bytes,
                           location->size, &verifier->bad);
    if (r < 0)
        return report(verifier);
    for (uint32_t i = 0; r == 0 && i < schema->n_fields; i++)
        r = check_field(verifier, &record, i, err);
    if (r == 0 && verifier->found->n_bad == n_bad)
        r = check_axes(verifier, &record);
    if (r == 0 && verifier->found->n_bad == n_bad) {
        pstk__identity_add(&verifier->found->identity, schema, record.fields);
        pstk__tally_add(verifier->found->stats, schema, record.fields);
        if (verifier->columns)
            r = pstk__column_verifier_add(verifier->columns, location->number, record.fields, err);
    }
    return r;
}

static int check_records(struct pstk__shard_verifier *verifier, const struct pstk__shard_header *h,
                         uint64_t first, const uint8_t *page, struct pstk_error *err)
{
    uint64_t left = h->n_records - first;
    uint64_t n = left < PSTK__PAGE_RECORDS ? left : PSTK__PAGE_RECORDS;
    struct pstk__record_location location = {.shard = verifier->shard->file, .tag = h->tag};
    int r = 0;
    for (uint64_t i = 0; r == 0 && i < n; i++) {
        location.number = first + i;
        location.file_offset = pstk__page_offset(page, (uint32_t)i);
        location.size = pstk__page_offset(page, (uint32_t)i + 1) - location.file_offset;
        r = check_record(verifier, h, &location, err);
        verifier->n_done++;
        if (r == 0)
            r = tick(verifier);
    }
    return r;
}

/* ---- index ----------------------------------------------------------------------------------- */

/* State of the walk over the index pages. */
struct walk {
    const struct pstk__shard_header *header;
    uint64_t end; /* end of the page before; 0: that page is damaged */
    uint32_t crc; /* CRC of the page CRCs so far */
    int n_bad;    /* 1: a page was damaged, so crc is invalid */
};

static int report_page(struct pstk__shard_verifier *verifier, struct walk *walk, uint64_t p)
{
    const struct pstk__shard_header *h = walk->header;
    uint64_t first = p * PSTK__PAGE_RECORDS, left = h->n_records - first;
    uint64_t n = left < PSTK__PAGE_RECORDS ? left : PSTK__PAGE_RECORDS;
    char why[sizeof verifier->bad.message], last[32] = "";
    memcpy(why, verifier->bad.message, sizeof why);
    if (n > 1)
        snprintf(last, sizeof last, " to %" PRIu64, first + n - 1);
    int code = verifier->bad.code, native = verifier->bad.native;
    pstk__fail(&verifier->bad, code, PSTK_STAGE_SHARD,
               "%.600s; record%s %" PRIu64 "%s cannot be read", why, n > 1 ? "s" : "", first, last);
    verifier->bad.native = native;
    pstk__fail_at(&verifier->bad, code, verifier->shard->file, PSTK_NONE,
                  h->index_offset + p * PSTK__INDEX_PAGE, PSTK__INDEX_PAGE);
    walk->end = 0;
    walk->n_bad = 1;
    verifier->n_done += n;
    return report(verifier);
}

static int check_page(struct pstk__shard_verifier *verifier, struct walk *walk, uint64_t p,
                      struct pstk_error *err)
{
    const struct pstk__shard_header *h = walk->header;
    uint64_t offset = h->index_offset + p * PSTK__INDEX_PAGE;
    const struct pstk__page_location location = {.shard = verifier->shard->file,
                                                 .tag = h->tag,
                                                 .page = (uint32_t)p,
                                                 .n_records = h->n_records,
                                                 .data_end = h->data_end,
                                                 .index_offset = h->index_offset,
                                                 .head_size =
                                                     verifier->input->manifest->schema.head_size};
    int r = cut_short(verifier, offset);
    if (offset + PSTK__INDEX_PAGE <= verifier->file_size)
        r = fetch(verifier, &verifier->pages, offset, PSTK__INDEX_PAGE, verifier->file_size, err);
    if (r < 0)
        return r;
    if (r > 0) {
        char what[40];
        snprintf(what, sizeof what, "index page %" PRIu64, p);
        fail_unread(verifier, offset, PSTK__INDEX_PAGE, what);
        return report_page(verifier, walk, p);
    }
    const uint8_t *page = at(&verifier->pages, offset);
    if (pstk__page_check(&location, page, &verifier->bad) < 0)
        return report_page(verifier, walk, p);
    walk->crc = pstk__shard_index_crc(walk->crc, pstk__page_crc(page));
    if (walk->end && pstk__page_offset(page, 0) != walk->end) {
        pstk__fail(&verifier->bad, PSTK_EBADMSG, PSTK_STAGE_SHARD,
                   "%s: index page %" PRIu64 " begins at byte %" PRIu64
                   ", but the page before it ends at byte %" PRIu64,
                   verifier->shard->file, p, pstk__page_offset(page, 0), walk->end);
        return report_page(verifier, walk, p);
    }
    uint64_t first = p * PSTK__PAGE_RECORDS, left = h->n_records - first;
    walk->end =
        pstk__page_offset(page, left < PSTK__PAGE_RECORDS ? (uint32_t)left : PSTK__PAGE_RECORDS);
    return check_records(verifier, h, first, page, err);
}

static int check_pages(struct pstk__shard_verifier *verifier, const struct pstk__shard_header *h,
                       struct pstk_error *err)
{
    struct walk walk = {.header = h};
    for (uint64_t p = 0; p < h->n_pages; p++) {
        int r = check_page(verifier, &walk, p, err);
        if (r < 0)
            return r;
    }
    if (walk.n_bad || walk.crc == verifier->shard->index_crc)
        return 0;
    return report_bytes(
        verifier, PSTK_EBADMSG, h->index_offset, h->n_pages * PSTK__INDEX_PAGE,
        "the index does not belong to the shard: its checksum is %08x, the manifest says %08x",
        walk.crc, verifier->shard->index_crc);
}

static int check_padding(struct pstk__shard_verifier *verifier, const struct pstk__shard_header *h,
                         struct pstk_error *err)
{
    uint64_t size = h->index_offset - h->data_end;
    if (size == 0 || h->index_offset > verifier->file_size)
        return 0;
    int r = fetch(verifier, &verifier->records, h->data_end, size, h->index_offset, err);
    if (r < 0)
        return r;
    if (r > 0)
        return report_unread(verifier, h->data_end, size, "padding");
    const uint8_t *p = at(&verifier->records, h->data_end);
    for (uint64_t i = 0; i < size; i++)
        if (p[i])
            return report_bytes(verifier, PSTK_EBADMSG, h->data_end + i, 1,
                                "byte %" PRIu64 " is padding and not zero", h->data_end + i);
    return 0;
}

/* ---- header ---------------------------------------------------------------------------------- */

/* Compare the header with the manifest. 1: it agrees. */
static int compare_header(struct pstk__shard_verifier *verifier, const struct pstk__shard_header *h)
{
    const struct pstk__manifest_shard *shard = verifier->shard;
    if (h->schema_crc != verifier->input->manifest->schema.crc)
        return report_bytes(verifier, PSTK_EBADMSG, 16, 4, "another schema (%08x, not %08x)",
                            h->schema_crc, verifier->input->manifest->schema.crc);
    if (h->n_records != shard->n_records)
        return report_bytes(verifier, PSTK_EBADMSG, 24, 8,
                            "%" PRIu64 " records, the manifest says %" PRIu64, h->n_records,
                            shard->n_records);
    if (h->file_size != shard->bytes)
        return report_bytes(verifier, PSTK_EBADMSG, 48, 8,
                            "%" PRIu64 " bytes according to its header, the manifest says %" PRIu64,
                            h->file_size, shard->bytes);
    if (h->crc != shard->header_crc || h->index_crc != shard->index_crc)
        return report_bytes(
            verifier, PSTK_EBADMSG, 0, PSTK__HEADER_SIZE,
            "the header is not the one that the manifest lists: its checksum is %08x, "
            "not %08x",
            h->crc, shard->header_crc);
    return 1;
}

/* Rebuild a lost header from the last index page at the end of the file, which also has the tag and
 * the end of the records. 1: done. */
static int rebuild_header(struct pstk__shard_verifier *verifier, struct pstk__shard_header *h,
                          struct pstk_error *err)
{
    const struct pstk__manifest_shard *shard = verifier->shard;
    uint64_t n_pages = pstk__shard_n_pages(shard->n_records);
    uint64_t offset = shard->bytes - PSTK__INDEX_PAGE;
    if (shard->bytes > verifier->file_size)
        return 0;
    int r = fetch(verifier, &verifier->pages, offset, PSTK__INDEX_PAGE, verifier->file_size, err);
    if (r != 0)
        return r < 0 ? r : 0;
    const uint8_t *page = at(&verifier->pages, offset);
    if (pstk__crc32c(0, page + 4, PSTK__INDEX_PAGE - 4) != pstk__page_crc(page))
        return 0;
    uint64_t n = shard->n_records - (n_pages - 1) * PSTK__PAGE_RECORDS;
    memset(h, 0, sizeof *h);
    h->n_records = shard->n_records;
    h->data_end = pstk__page_offset(page, (uint32_t)n);
    h->tag = (uint32_t)page[8] | (uint32_t)page[9] << 8 | (uint32_t)page[10] << 16 |
             (uint32_t)page[11] << 24;
    return pstk__shard_header_derive(h, NULL) == 0 && h->file_size == shard->bytes;
}

/* Read and check the header. 1: *h is usable; 0: damage was reported, and no more can be checked.
 */
static int check_header(struct pstk__shard_verifier *verifier, struct pstk__shard_header *h,
                        struct pstk_error *err)
{
    int r = cut_short(verifier, 0);
    if (verifier->file_size >= PSTK__HEADER_SIZE)
        r = fetch(verifier, &verifier->records, 0, PSTK__HEADER_SIZE, verifier->file_size, err);
    if (r < 0)
        return r;
    if (r > 0)
        r = report_unread(verifier, 0, PSTK__HEADER_SIZE, "header");
    else if (pstk__shard_header_check(h, at(&verifier->records, 0), verifier->shard->file,
                                      &verifier->bad) < 0)
        r = report(verifier);
    else
        r = compare_header(verifier, h);
    return r == 0 ? rebuild_header(verifier, h, err) : r;
}

/* ---- the shard ------------------------------------------------------------------------------- */

static int check_file(struct pstk__shard_verifier *verifier, struct pstk_error *err)
{
    struct pstk__shard_header h;
    uint64_t bytes = verifier->shard->bytes, size = verifier->file_size;
    int r = 0;
    if (size != bytes)
        r = report_bytes(verifier, PSTK_EBADMSG, size < bytes ? size : bytes,
                         size < bytes ? bytes - size : size - bytes,
                         "the file has %" PRIu64 " bytes, the manifest says %" PRIu64, size, bytes);
    if (r == 0)
        r = check_header(verifier, &h, err);
    if (r <= 0)
        return r;
    verifier->tag = h.tag;
    verifier->has_tag = verifier->found->n_bad == 0;
    r = check_pages(verifier, &h, err);
    if (r == 0)
        r = check_padding(verifier, &h, err);
    if (r < 0 || verifier->found->n_bad)
        return r;
    const struct pstk__identity *id = &verifier->found->identity;
    if (id->lane[0] != h.identity[0] || id->lane[1] != h.identity[1])
        return report_bytes(verifier, PSTK_EBADMSG, 72, 16,
                            "the records do not match the identity in the header");
    return 0;
}

static void begin(struct pstk__shard_verifier *verifier, uint32_t shard)
{
    const struct pstk__manifest *m = verifier->input->manifest;
    verifier->shard = &m->shards[shard];
    verifier->first = verifier->input->first[shard];
    verifier->records.size = 0;
    verifier->pages.size = 0;
    verifier->n_done = 0;
    verifier->has_tag = 0;
    verifier->reported_ns = pstk__clock_ns();
    memset(verifier->dictionary, 0, sizeof verifier->dictionary);
    memset(verifier->dictionary_lost, 0, sizeof verifier->dictionary_lost);
    for (uint32_t i = 0; i < verifier->shard->n_dictionaries; i++) {
        uint32_t number = verifier->shard->dictionaries[i], field = m->dictionaries[number].field;
        verifier->dictionary[field] = verifier->input->dictionaries[number];
        verifier->dictionary_lost[field] = !verifier->dictionary[field];
    }
}

/* Open the file. 0: open; >0: damage was reported; <0: error. */
static int open_file(struct pstk__shard_verifier *verifier, struct pstk_error *err)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/%s", verifier->input->path, verifier->shard->file);
    if (n < 0 || (size_t)n >= sizeof path)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "%s: the path is too long",
                          verifier->input->path);
    int64_t changed_ns;
    int native = verifier->input->store->open(verifier->input->store, &verifier->file, path);
    if (native == 0)
        native = verifier->input->store->stat(&verifier->file, &verifier->file_size, &changed_ns);
    native = -native;
    if (pstk__file_is_refused(native))
        return pstk__file_fail(err, native, PSTK_STAGE_OPEN, path, path);
    if (native) {
        pstk__file_fail(&verifier->bad, native, PSTK_STAGE_SHARD, verifier->shard->file, path);
        pstk__fail_at(&verifier->bad, verifier->bad.code, verifier->shard->file, PSTK_NONE, 0,
                      verifier->shard->bytes);
        return report(verifier) < 0 ? PSTK_ECANCELED : 1;
    }
    if (verifier->file.fd >= 0) /* a hint, whose result does not matter */
        (void)posix_fadvise(verifier->file.fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return 0;
}

/* ---- columns --------------------------------------------------------------------------------- */

static int report_column(void *user, const struct pstk_error *bad)
{
    struct pstk__shard_verifier *verifier = user;
    verifier->found->n_bad++;
    return verifier->sink->bad(verifier->sink->user, bad);
}

static int go_on(void *user)
{
    return tick(user);
}

/* Check the column files of the shard, even if the shard itself is damaged. */
static int check_columns(struct pstk__shard_verifier *verifier, struct pstk_error *err)
{
    const struct pstk__column_sink sink = {.bad = report_column, .tick = go_on, .user = verifier};
    return verifier->columns
               ? pstk__column_verifier_run(verifier->columns,
                                           verifier->has_tag ? &verifier->tag : NULL, &sink, err)
               : 0;
}

int pstk__shard_verifier_run(struct pstk__shard_verifier *verifier, uint32_t shard,
                             const struct pstk__map_sink *sink, struct pstk__verify_found *found,
                             struct pstk_error *err)
{
    memset(found, 0, sizeof *found);
    pstk_error_init(&verifier->bad, sizeof verifier->bad);
    verifier->sink = sink;
    verifier->found = found;
    begin(verifier, shard);
    if (verifier->columns)
        pstk__column_verifier_begin(verifier->columns, shard);
    int r = open_file(verifier, err);
    if (r == 0)
        r = check_file(verifier, err);
    if (r >= 0)
        r = check_columns(verifier, err);
    if (r >= 0 && report_progress(verifier) < 0)
        r = PSTK_ECANCELED;
    pstk__file_end(&verifier->file);
    if (r == PSTK_ECANCELED)
        return pstk__fail(err, r, PSTK_STAGE_CONSUMER, "verify was stopped by its caller");
    return r < 0 ? r : 0;
}
