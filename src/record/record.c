/* SPDX-License-Identifier: Apache-2.0 */
#include "record/record.h"

#include "base/codec.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/little.h"
#include "image/mask.h"
#include "image/pixels.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Offsets in a record head and in an entry; FORMAT.md has the tables. */
enum {
    HEAD_CRC = 0,
    HEAD_TAG = 4,
    HEAD_NUMBER = 8,
    ENTRY_STORED_SIZE = 0,
    ENTRY_PLAIN_SIZE = 4,
    ENTRY_STORED_CRC = 8,
    ENTRY_PLAIN_CRC = 12,
    ENTRY_CODEC = 16,
    ENTRY_ENCODING = 17,
    ENTRY_CHANNELS = 18,
    ENTRY_BIT_DEPTH = 19,
    ENTRY_WIDTH = 20,
    ENTRY_HEIGHT = 24,
    ENTRY_FLAGS = 28,
    ENTRY_ZERO = 30,
};

/* Bit depths of a PNG by its channels, as bits 1 << depth (PNG 3, 11.2.1); [0]: with a palette. */
static const uint32_t png_depths[] = {1 << 1 | 1 << 2 | 1 << 4 | 1 << 8,
                                      1 << 1 | 1 << 2 | 1 << 4 | 1 << 8 | 1 << 16, 1 << 8 | 1 << 16,
                                      1 << 8 | 1 << 16, 1 << 8 | 1 << 16};

const char *pstk__encoding_name(uint32_t encoding)
{
    static const char *const names[] = {"none", "jpeg", "png", "pixels"};
    return encoding < sizeof names / sizeof names[0] ? names[encoding] : "?";
}

/* Report damage in bytes [from, from + length) of the record. Cold, so that parsing stays short. */
static int __attribute__((cold, noinline, format(printf, 5, 6)))
fail_record(const struct pstk__record_location *location, uint64_t from, uint64_t length,
            struct pstk_error *err, const char *fmt, ...)
{
    char what[384];
    va_list args;
    va_start(args, fmt);
    if (vsnprintf(what, sizeof what, fmt, args) < 0)
        what[0] = 0;
    va_end(args);
    uint64_t offset = location->file_offset + from;
    pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_RECORD, "%s: record %llu (bytes %llu to %llu): %s",
               location->shard, (unsigned long long)location->number, (unsigned long long)offset,
               (unsigned long long)(offset + length - (length > 0)), what);
    pstk__fail_at(err, PSTK_EBADMSG, location->shard, location->number, offset, length);
    return PSTK_EBADMSG;
}

int pstk__record_fail(const struct pstk__record *record, uint32_t i, int code, int stage,
                      struct pstk_error *err, const char *fmt, ...)
{
    char what[512];
    va_list args;
    va_start(args, fmt);
    if (vsnprintf(what, sizeof what, fmt, args) < 0)
        what[0] = 0;
    va_end(args);
    if (i >= record->n_fields) { /* the whole record */
        pstk__fail(err, code, stage, "%s: record %llu: %s", record->shard,
                   (unsigned long long)record->number, what);
        pstk__fail_at(err, code, record->shard, record->number, record->file_offset, 0);
        return code;
    }
    const struct pstk__field_view *v = &record->fields[i];
    const char *name;
    uint32_t file;
    uint64_t offset;
    pstk__record_locate(record, i, &file, &name, &offset);
    pstk__fail(err, code, stage, "%s: record %llu: field %s (bytes %llu to %llu): %s", name,
               (unsigned long long)record->number, record->schema->fields[i].name,
               (unsigned long long)offset,
               (unsigned long long)(offset + v->stored_size - (v->stored_size > 0)), what);
    pstk__fail_at(err, code, name, record->number, offset, v->stored_size);
    return code;
}

void pstk__record_locate(const struct pstk__record *record, uint32_t i, uint32_t *file,
                         const char **name, uint64_t *offset)
{
    const struct pstk__field_file *field_file =
        record->field_files ? &record->field_files[i] : NULL;
    *file = field_file ? field_file->file : record->file;
    *name = field_file ? field_file->name : record->shard;
    *offset = field_file ? field_file->offset + record->number * field_file->size
                         : record->file_offset + record->fields[i].offset;
}

struct pstk__image_info pstk__field_image(const struct pstk__field_view *v)
{
    return (struct pstk__image_info){.encoding = v->encoding,
                                     .width = v->width,
                                     .height = v->height,
                                     .orientation = 1,
                                     .channels = v->channels,
                                     .bit_depth = v->bit_depth,
                                     .has_palette = (v->flags & PSTK__FIELD_PALETTE) != 0};
}

const char *pstk__field_image_differs(const struct pstk__field_view *v,
                                      const struct pstk__image_info *info, char text[160])
{
    const struct pstk__image_info said = pstk__field_image(v);
    if (info->width != said.width || info->height != said.height)
        snprintf(text, 160, "the image has %ux%u pixels, its record says %ux%u", info->width,
                 info->height, said.width, said.height);
    else if (info->channels != said.channels || info->bit_depth != said.bit_depth ||
             info->has_palette != said.has_palette)
        snprintf(text, 160, "the image has %u channels of %u bits%s, its record says %u of %u%s",
                 info->channels, info->bit_depth, info->has_palette ? " and a palette" : "",
                 said.channels, said.bit_depth, said.has_palette ? " and a palette" : "");
    else
        return NULL;
    return text;
}

/* Return static storage, as all checks of an entry do. */
static const char *encoding_wrong(uint32_t encoding)
{
#define RESERVED(number, name)                                                                     \
    case number:                                                                                   \
        return "it has encoding " #number " (" name "), which this library does not decode";
    switch (encoding) {
        RESERVED(4, "webp")
        RESERVED(5, "tiff")
        RESERVED(6, "bmp")
        RESERVED(7, "gif")
        RESERVED(8, "avif")
        RESERVED(9, "jxl")
    case PSTK_ENCODING_NONE:
        return "it is an image without an encoding";
    default:
        return "its image encoding is unknown; reading it needs a newer penstock";
    }
#undef RESERVED
}

/* Return 1 if an image of a known encoding can have these channels, bits and palette. */
static int samples_ok(const struct pstk__field_view *v)
{
    const int has_palette = (v->flags & PSTK__FIELD_PALETTE) != 0;
    switch (v->encoding) {
    case PSTK_ENCODING_JPEG:
        return v->bit_depth == 8 && (v->channels == 1 || v->channels == 3 || v->channels == 4);
    case PSTK_ENCODING_PNG:
        return v->channels >= 1 && v->channels <= (has_palette ? 1 : 4) && v->bit_depth <= 16 &&
               png_depths[has_palette ? 0 : v->channels] >> v->bit_depth & 1;
    default:
        return pstk__pixels_known(v->channels, v->bit_depth);
    }
}

/* Check the facts that an entry holds about an image. Returns the fault, or NULL. */
static const char *image_wrong(const struct pstk__field_view *v)
{
    if (v->encoding < PSTK_ENCODING_JPEG || v->encoding > PSTK_ENCODING_PIXELS)
        return encoding_wrong(v->encoding);
    if (v->width == 0 || v->height == 0)
        return "it is an image without width or height";
    if (v->width > PSTK__MAX_SIDE || v->height > PSTK__MAX_SIDE)
        return "it has a side of more than 65535 pixels, which this library does not decode";
    if (!samples_ok(v))
        return "its encoding has no such channels, bits or palette; reading it may need a newer "
               "penstock";
    /* The product is below 2^16 * 2^16 * 8: no overflow in 64 bits. */
    if (v->encoding == PSTK_ENCODING_PIXELS &&
        v->plain_size !=
            (uint64_t)v->width * v->height * pstk__pixels_size(v->channels, v->bit_depth))
        return "its size is not width x height x channels x bytes of a sample";
    return NULL;
}

static const char *mask_wrong(const struct pstk__field_view *v)
{
    const char *wrong = image_wrong(v);
    return wrong || pstk__mask_known(v->encoding, v->channels)
               ? wrong
               : "it is a mask, but neither a PNG file nor pixels of one channel";
}

/* Return the flags that an entry of this codec and encoding may have. */
static uint32_t flags_known(const struct pstk__field_view *v)
{
    const int is_file = v->codec == PSTK_CODEC_NONE && v->encoding == PSTK_ENCODING_JPEG;
    return (v->codec == PSTK_CODEC_PLANES ? PSTK__FIELD_EQUIVALENT : 0u) |
           (v->encoding == PSTK_ENCODING_PNG ? PSTK__FIELD_PALETTE : 0u) |
           (is_file ? PSTK__FIELD_DAMAGED : 0u);
}

const char *pstk__record_item_wrong(const struct pstk__field_view *v)
{
    return v->flags & ~(flags_known(v) & PSTK__FIELD_PALETTE)
               ? "it has flags that an item of its encoding does not have"
               : image_wrong(v);
}

/* Return 1 if the entry of another kind has an encoding or other facts of images. Lists of images
 * have only a width and a height: the largest of their items. */
static int has_image_facts(const struct pstk__field_view *v, uint32_t kind)
{
    const int has_sides = (pstk__field_traits(kind) & PSTK__TRAIT_IMAGES) != 0;
    return v->encoding || v->channels || v->bit_depth || (!has_sides && (v->width || v->height));
}

/* Check an entry by itself: a known encoding, and sizes that fit the codec, the encoding and the
 * schema. Returns the fault, or NULL. */
static const char *entry_wrong(const struct pstk__schema *schema, uint32_t i,
                               const struct pstk__field_view *v)
{
    const struct pstk_field *field = &schema->fields[i];
    if (schema->plain_size[i] && v->plain_size != schema->plain_size[i])
        return "its uncompressed size does not match its shape";
    if (v->codec == PSTK_CODEC_NONE &&
        (v->plain_size != v->stored_size || v->plain_crc != v->stored_crc))
        return "it is stored uncompressed, but its plain size or checksum differs";
    if (v->codec == PSTK_CODEC_ZSTD && field->codec != PSTK_CODEC_ZSTD)
        return "it is stored with zstd, but its field is not";
    if (v->codec == PSTK_CODEC_PLANES && field->codec != PSTK_CODEC_PLANES)
        return "it is stored as planes, but its field is not";
    if (v->codec == PSTK_CODEC_PLANES && v->encoding != PSTK_ENCODING_JPEG)
        return "it is stored as planes, but is not a JPEG";
    if (v->flags & ~flags_known(v))
        return "it has flags that its codec or encoding does not have; reading it may need a newer "
               "penstock";
    if (field->kind == PSTK_FIELD_IMAGE)
        return image_wrong(v);
    if (field->kind == PSTK_FIELD_MASK)
        return mask_wrong(v);
    return has_image_facts(v, field->kind)
               ? "it is not an image, but has an encoding, channels, bits, a width or a height"
               : NULL;
}

static const char *limit_broken(const struct pstk__record_limits *limits, uint32_t i,
                                const struct pstk__field_view *v)
{
    if (v->stored_size > limits->max_stored[i])
        return "it is larger than the largest stored value that the data set may have";
    if (v->plain_size > limits->max_plain[i])
        return "it is larger, decompressed, than the largest value that the data set may have";
    if (v->width > limits->max_width[i] || v->height > limits->max_height[i])
        return "it is wider or higher than the largest image that the data set may have";
    return NULL;
}

static void read_entry(struct pstk__field_view *v, const uint8_t *e)
{
    v->data = NULL;
    v->gap = 0;
    v->stored_size = pstk__get32(e + ENTRY_STORED_SIZE);
    v->plain_size = pstk__get32(e + ENTRY_PLAIN_SIZE);
    v->stored_crc = pstk__get32(e + ENTRY_STORED_CRC);
    v->plain_crc = pstk__get32(e + ENTRY_PLAIN_CRC);
    v->codec = e[ENTRY_CODEC];
    v->encoding = e[ENTRY_ENCODING];
    v->channels = e[ENTRY_CHANNELS];
    v->bit_depth = e[ENTRY_BIT_DEPTH];
    v->width = pstk__get32(e + ENTRY_WIDTH);
    v->height = pstk__get32(e + ENTRY_HEIGHT);
    v->flags = pstk__get16(e + ENTRY_FLAGS);
    v->checksum = PSTK__CHECKSUM_CRC32C;
}

static int __attribute__((cold, noinline))
fail_entry(const struct pstk__record_location *location, const struct pstk__schema *schema,
           uint32_t i, const struct pstk__field_view *v, const char *what, struct pstk_error *err)
{
    return fail_record(
        location, PSTK__RECORD_HEAD + (uint64_t)schema->entry[i] * PSTK__RECORD_ENTRY,
        PSTK__RECORD_ENTRY, err,
        "the entry of field %s is wrong: %s (stored %u, plain %u bytes, codec %s, "
        "encoding %u, %u x %u, %u channels of %u bits, flags %x)",
        schema->fields[i].name, what, v->stored_size, v->plain_size, pstk__codec_name(v->codec),
        v->encoding, v->width, v->height, v->channels, v->bit_depth, v->flags);
}

/* A field in the head needs no further check: the head's checksum covers it. */
static void view_fixed(struct pstk__field_view *v, const struct pstk__schema *schema, uint32_t i,
                       const uint8_t *head)
{
    *v = (struct pstk__field_view){
        .data = head + schema->fixed_offset[i],
        .stored_size = schema->fixed_size[i],
        .plain_size = schema->fixed_size[i],
        .offset = schema->fixed_offset[i],
        .checksum = PSTK__CHECKSUM_HEAD,
    };
}

/* Fill the views of all fields, and check each entry by itself. *end: offset at which the gap after
 * the last field ends. */
static int view_fields(struct pstk__record *out, const struct pstk__record_limits *limits,
                       const struct pstk__record_location *location, const uint8_t *head,
                       uint64_t *end, struct pstk_error *err)
{
    const struct pstk__schema *schema = out->schema;
    *end = schema->head_size;
    for (uint32_t i = 0; i < schema->n_fields; i++) {
        struct pstk__field_view *v = &out->fields[i];
        if (schema->entry[i] < 0) {
            view_fixed(v, schema, i, head);
            continue;
        }
        const uint8_t *e =
            head + PSTK__RECORD_HEAD + (uint32_t)schema->entry[i] * PSTK__RECORD_ENTRY;
        read_entry(v, e);
        const char *wrong =
            pstk__codec_known(v->codec)
                ? entry_wrong(schema, i, v)
                : "this version does not know its codec; reading it needs a newer penstock";
        if (!wrong && pstk__get16(e + ENTRY_ZERO))
            wrong = "its last two bytes must be zero and are not";
        if (!wrong)
            wrong = limit_broken(limits, i, v);
        if (wrong)
            return fail_entry(location, schema, i, v, wrong, err);
        /* At most 64 sizes up to 2^32 are added: no overflow. The offset is used only after the sum
         * was found to be the record's size, which fits in 32 bits. */
        v->offset = (uint32_t)*end;
        *end += pstk__record_aligned(v->stored_size);
    }
    return 0;
}

/* Check the words of the head before any entry. */
static int check_head(const struct pstk__schema *schema,
                      const struct pstk__record_location *location, const uint8_t *head,
                      uint64_t available, struct pstk_error *err)
{
    if (location->size > PSTK__MAX_RECORD_SIZE || location->size < schema->head_size ||
        available < schema->head_size)
        return fail_record(
            location, 0, location->size, err,
            "%llu of %llu bytes are present; a head has %u, a record at most 2^32-16",
            (unsigned long long)available, (unsigned long long)location->size, schema->head_size);
    uint32_t crc = pstk__crc32c(0, head + HEAD_TAG, schema->head_size - HEAD_TAG);
    if (crc != pstk__get32(head + HEAD_CRC))
        return fail_record(location, 0, schema->head_size, err,
                           "the record head is damaged: its checksum is %08x, but it states %08x",
                           crc, pstk__get32(head + HEAD_CRC));
    if (pstk__get32(head + HEAD_TAG) != location->tag ||
        pstk__get64(head + HEAD_NUMBER) != location->number)
        return fail_record(location, HEAD_TAG, PSTK__RECORD_HEAD - HEAD_TAG, err,
                           "misplaced: this is record %llu of the shard with tag %08x, not %08x",
                           (unsigned long long)pstk__get64(head + HEAD_NUMBER),
                           pstk__get32(head + HEAD_TAG), location->tag);
    if (!pstk__record_gap_is_zero(head + schema->head_size, schema->head_size - schema->fixed_end))
        return fail_record(location, schema->fixed_end, schema->head_size - schema->fixed_end, err,
                           "the head ends with %u bytes that must be zero and are not",
                           schema->head_size - schema->fixed_end);
    return 0;
}

/* Point the fields to their data, as far as it was read. */
static void view_data(struct pstk__record *record, const uint8_t *bytes, uint64_t available)
{
    for (uint32_t i = 0; i < record->schema->n_fields; i++) {
        struct pstk__field_view *v = &record->fields[i];
        const uint64_t end = (uint64_t)v->offset + v->stored_size;
        if (v->checksum == PSTK__CHECKSUM_HEAD || end > available)
            continue;
        v->data = bytes + v->offset;
        const uint64_t next = pstk__record_aligned(end);
        v->gap = next <= available ? (uint16_t)(next - end) : 0;
    }
}

int pstk__record_parse(struct pstk__record *out, const struct pstk__schema *schema,
                       const struct pstk__record_limits *limits,
                       const struct pstk__record_location *location, const void *bytes,
                       uint64_t available, struct pstk_error *err)
{
    const uint8_t *head = bytes;
    out->n_fields = 0;
    int r = check_head(schema, location, head, available, err);
    if (r < 0)
        return r;
    out->schema = schema;
    out->number = location->number;
    out->file_offset = location->file_offset;
    out->shard = location->shard;
    out->file = location->file;
    out->field_files = NULL;
    out->accepts_damaged = 0; /* marked images are decoded in that way in any case */
    uint64_t end;
    r = view_fields(out, limits, location, head, &end, err);
    if (r < 0)
        return r;
    if (end != location->size)
        return fail_record(location, 0, location->size, err,
                           "its fields end at byte %llu, but the index says that it has %llu bytes",
                           (unsigned long long)end, (unsigned long long)location->size);
    if (end > limits->max_size)
        return fail_record(location, 0, location->size, err,
                           "%llu bytes are over the limit of %llu", (unsigned long long)end,
                           (unsigned long long)limits->max_size);
    view_data(out, head, available);
    out->n_fields = schema->n_fields;
    return 0;
}

/* Report that bytes after field i are not zero. */
static int __attribute__((cold, noinline))
fail_gap(const struct pstk__record *record, uint32_t i, struct pstk_error *err)
{
    const struct pstk__field_view *v = &record->fields[i];
    pstk__record_fail(record, i, PSTK_EBADMSG, PSTK_STAGE_RECORD, err,
                      "the %u bytes after it must be zero and are not", v->gap);
    pstk__fail_at(err, PSTK_EBADMSG, record->shard, record->number,
                  record->file_offset + v->offset + v->stored_size, v->gap);
    return PSTK_EBADMSG;
}

int pstk__record_check_field(const struct pstk__record *record, uint32_t i, struct pstk_error *err)
{
    const struct pstk__field_view *v = &record->fields[i];
    if (v->checksum == PSTK__CHECKSUM_HEAD)
        return 0;
    if (!v->data)
        return pstk__record_fail(record, i, PSTK_EINVAL, PSTK_STAGE_RECORD, err,
                                 "only the record's head was read");
    if (v->checksum == PSTK__CHECKSUM_NONE)
        return 0;
    uint32_t crc = pstk__crc32c(0, v->data, v->stored_size);
    if (crc == v->stored_crc)
        return pstk__field_gap_is_zero(v) ? 0 : fail_gap(record, i, err);
    return pstk__record_fail(record, i, PSTK_EBADMSG, PSTK_STAGE_RECORD, err,
                             "damaged: its checksum is %08x, the record head says %08x", crc,
                             v->stored_crc);
}

uint64_t pstk__record_size(const struct pstk__schema *schema, const struct pstk__field_view *views)
{
    uint64_t size = schema->head_size;
    for (uint32_t i = 0; i < schema->n_fields; i++)
        size += schema->entry[i] < 0 ? 0 : pstk__record_aligned(views[i].stored_size);
    return size;
}

uint32_t pstk__record_content_crc(const struct pstk__schema *schema,
                                  const struct pstk__field_view *views)
{
    uint32_t crc = 0;
    for (uint32_t i = 0; i < schema->n_fields; i++)
        crc = schema->entry[i] < 0
                  ? pstk__crc32c(crc, views[i].data, schema->fixed_size[i])
                  : pstk__crc32c(crc, &views[i].plain_crc, sizeof views[i].plain_crc);
    return crc;
}

void pstk__record_head(const struct pstk__schema *schema, uint32_t tag, uint64_t number,
                       const struct pstk__field_view *views, void *head)
{
    uint8_t *b = head;
    pstk__put32(b + HEAD_TAG, tag);
    pstk__put64(b + HEAD_NUMBER, number);
    for (uint32_t i = 0; i < schema->n_fields; i++) {
        const struct pstk__field_view *v = &views[i];
        if (schema->entry[i] < 0) {
            memcpy(b + schema->fixed_offset[i], v->data, schema->fixed_size[i]);
            continue;
        }
        uint8_t *e = b + PSTK__RECORD_HEAD + (uint32_t)schema->entry[i] * PSTK__RECORD_ENTRY;
        pstk__put32(e + ENTRY_STORED_SIZE, v->stored_size);
        pstk__put32(e + ENTRY_PLAIN_SIZE, v->plain_size);
        pstk__put32(e + ENTRY_STORED_CRC, v->stored_crc);
        pstk__put32(e + ENTRY_PLAIN_CRC, v->plain_crc);
        e[ENTRY_CODEC] = v->codec;
        e[ENTRY_ENCODING] = v->encoding;
        e[ENTRY_CHANNELS] = v->channels;
        e[ENTRY_BIT_DEPTH] = v->bit_depth;
        pstk__put32(e + ENTRY_WIDTH, v->width);
        pstk__put32(e + ENTRY_HEIGHT, v->height);
        pstk__put16(e + ENTRY_FLAGS, v->flags);
        pstk__put16(e + ENTRY_ZERO, 0);
    }
    memset(b + schema->fixed_end, 0, schema->head_size - schema->fixed_end);
    pstk__put32(b + HEAD_CRC, pstk__crc32c(0, b + HEAD_TAG, schema->head_size - HEAD_TAG));
}
