/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record: parses bytes to a checked view of the fields. Pure: no I/O, no allocation. Parsing checks
 * the head's CRC, tag, number, sizes and limits before it fills a view. A field's bytes must not be
 * used before pstk__record_check_field.
 */
#ifndef PSTK_RECORD_H
#define PSTK_RECORD_H

#include "base/little.h"
#include "image/decoder.h"
#include "record/schema.h"

/* Flags of an entry. */
enum pstk__field_flag {
    /* The plain bytes differ from the packed file: they are a standard JPEG file with the same
     * coefficients and markers. */
    PSTK__FIELD_EQUIVALENT = 1,
    PSTK__FIELD_PALETTE = 2, /* the samples are indexes of a palette */
    /* The JPEG is damaged, and Pillow guesses the missing part: the decoder of damaged files
     * decodes it. */
    PSTK__FIELD_DAMAGED = 4,
    PSTK__FIELD_ABSENT =
        1u << 15, /* other formats only, never stored: the record has no such field */
};

/* The checksum that covers the stored bytes of a field. */
enum pstk__checksum {
    PSTK__CHECKSUM_CRC32C, /* stored_crc; the user of the bytes compares it */
    PSTK__CHECKSUM_HEAD,   /* the bytes lie in the record's head, whose CRC parsing compared */
    PSTK__CHECKSUM_NONE    /* none: the format has no checksums */
};

/* One field of one record. */
struct pstk__field_view {
    const uint8_t *data;  /* stored bytes, borrowed from the buffer; NULL: only the head was read */
    uint32_t stored_size; /* bytes */
    uint32_t plain_size;  /* bytes after decompression */
    uint32_t stored_crc;
    uint32_t plain_crc;
    uint8_t codec;     /* enum pstk_codec */
    uint8_t encoding;  /* enum pstk_encoding */
    uint8_t channels;  /* channels in the stored image's header; images only */
    uint8_t bit_depth; /* bits of a sample in the stored image's header; images only */
    uint32_t width;    /* pixels; images only */
    uint32_t height;
    uint16_t checksum;    /* enum pstk__checksum */
    uint16_t flags;       /* enum pstk__field_flag */
    uint16_t passthrough; /* enum pstk_passthrough; only the encoders of pack set it */
    uint16_t gap;         /* bytes that were read after `data` and must be zero */
    uint64_t offset;      /* offset from the record's start, bytes */
};

/* A file that holds the values of one field, one after the other. */
struct pstk__field_file {
    const char *name; /* file name, for messages */
    uint64_t offset;  /* offset of the value of record 0, bytes */
    uint64_t size;    /* size of a value, bytes */
    uint32_t file;    /* number of the file */
};

struct pstk__record {
    const struct pstk__schema *schema;          /* borrowed */
    uint64_t number;                            /* number within the shard */
    uint64_t file_offset;                       /* offset of its first byte, for messages */
    const char *shard;                          /* file name, borrowed, for messages */
    uint32_t file;                              /* number of that file */
    const struct pstk__field_file *field_files; /* by field, borrowed; NULL: all fields lie in
                                                   `shard` */
    uint32_t accepts_damaged; /* 1: images decode as Pillow loads them, even if it guesses */
    uint32_t n_fields;
    struct pstk__field_view fields[PSTK_MAX_FIELDS];
};

/* The limits of a record, from the manifest and the settings. */
struct pstk__record_limits {
    uint64_t max_size; /* bytes of the whole record */
    uint64_t max_stored[PSTK_MAX_FIELDS];
    uint64_t max_plain[PSTK_MAX_FIELDS];
    uint32_t max_width[PSTK_MAX_FIELDS];
    uint32_t max_height[PSTK_MAX_FIELDS];
};

/* The facts about a record that are known before its bytes are read. */
struct pstk__record_location {
    const char *shard;    /* file name */
    uint32_t file;        /* number of the file */
    uint32_t tag;         /* tag of the shard */
    uint64_t number;      /* number of the record in the shard */
    uint64_t file_offset; /* offset of the record's first byte */
    uint64_t size;        /* bytes of the whole record, from the index */
};

/* Parse `available` bytes (the whole record, or at least its head) into *out. Returns EBADMSG with
 * shard, record and byte range when a check fails. */
int pstk__record_parse(struct pstk__record *out, const struct pstk__schema *schema,
                       const struct pstk__record_limits *limits,
                       const struct pstk__record_location *location, const void *bytes,
                       uint64_t available, struct pstk_error *err);
/* Find the stored bytes of field i: the file's number, its name, and the offset in it. */
void pstk__record_locate(const struct pstk__record *record, uint32_t i, uint32_t *file,
                         const char **name, uint64_t *offset);
/* Return the facts that an entry holds about an image; the orientation is 1. */
struct pstk__image_info pstk__field_image(const struct pstk__field_view *v);
/* Compare an image's own header with its entry. Returns NULL, or a phrase in `text` with their
 * difference. */
const char *pstk__field_image_differs(const struct pstk__field_view *v,
                                      const struct pstk__image_info *info, char text[160]);
/* Return 1 if the `gap` bytes before `end` are zero. gap is at most 16; 16 bytes before `end` can
 * be read. */
static inline int pstk__record_gap_is_zero(const uint8_t *end, uint32_t gap)
{
    const unsigned __int128 last =
        (unsigned __int128)pstk__get64(end - 8) << 64 | pstk__get64(end - 16);
    return gap == 0 || last >> (128 - 8 * gap) == 0;
}

/* Return 1 if the gap after a field's data is zero. */
static inline int pstk__field_gap_is_zero(const struct pstk__field_view *v)
{
    return v->gap == 0 || pstk__record_gap_is_zero(v->data + v->stored_size + v->gap, v->gap);
}

/* Check the view of an image in a list: encoding, samples, flags (only a palette) and sizes.
 * Returns the fault, in static storage, or NULL. */
const char *pstk__record_item_wrong(const struct pstk__field_view *v);
/* Check the stored bytes of field i as its checksum kind requires, and the gap after them. */
int pstk__record_check_field(const struct pstk__record *record, uint32_t i, struct pstk_error *err);
/* Report an error in field i of a record, with shard, record and byte range. Returns `code`. */
int pstk__record_fail(const struct pstk__record *record, uint32_t i, int code, int stage,
                      struct pstk_error *err, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));

/* Return the bytes of a record with fields in the stored form of `views`: fields with an entry
 * begin one after another at multiples of PSTK__RECORD_ALIGN. */
uint64_t pstk__record_size(const struct pstk__schema *schema, const struct pstk__field_view *views);
/* Return the CRC of a record's content: the bytes of fixed fields, and the plain CRCs of the
 * others. */
uint32_t pstk__record_content_crc(const struct pstk__schema *schema,
                                  const struct pstk__field_view *views);
/* Write a head of schema->head_size bytes. views[i].data is read for fixed fields; other fields are
 * written from the other members. */
void pstk__record_head(const struct pstk__schema *schema, uint32_t tag, uint64_t number,
                       const struct pstk__field_view *views, void *head);

/* The content identity of a record or of a run of records, in two lanes (FORMAT.md, Identity). */
struct pstk__identity {
    uint64_t lane[2]; /* < 2^61 - 1 */
    uint64_t n;       /* number of records */
};
/* Return "jpeg", ..., for an encoding that the library decodes, else "?". */
const char *pstk__encoding_name(uint32_t encoding);

/* Append one record. views: plain_size, plain_crc, facts of images; data of fixed fields. */
void pstk__identity_add(struct pstk__identity *id, const struct pstk__schema *schema,
                        const struct pstk__field_view *views);
/* Append b to a. */
void pstk__identity_join(struct pstk__identity *a, const struct pstk__identity *b);
/* Write 32 lower-case hex digits and 0: the lanes, mixed with schema_crc and n. */
void pstk__identity_text(const struct pstk__identity *id, uint32_t schema_crc, char text[40]);

#endif
