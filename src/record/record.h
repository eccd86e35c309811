/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record: bytes -> checked view of the fields. Pure: no I/O, no allocation.
 * Nothing in a view is used before the head's CRC, tag, number, sizes and limits were checked; a
 * field's bytes not before pstk__record_check_field.
 */
#ifndef PSTK_RECORD_H
#define PSTK_RECORD_H

#include "base/little.h"
#include "image/decoder.h"
#include "record/schema.h"

/* Flags of an entry. */
enum pstk__field_flag {
    /* The plain bytes are not those that were packed, but a standard JPEG file with the same
     * coefficients and markers. */
    PSTK__FIELD_EQUIVALENT = 1,
    PSTK__FIELD_PALETTE = 2, /* the samples are numbers of a palette's colours */
    /* A JPEG that Pillow loads by guessing: the decoder of damaged files decodes it. */
    PSTK__FIELD_DAMAGED = 4,
    PSTK__FIELD_ABSENT =
        1u << 15, /* of other formats: the record has no such field; never stored */
};

/* Which checksum covers the stored bytes of a field. */
enum pstk__checksum {
    PSTK__CHECKSUM_CRC32C, /* stored_crc; the user of the bytes compares it */
    PSTK__CHECKSUM_HEAD,   /* they lie in the record's head, whose CRC parsing compared */
    PSTK__CHECKSUM_NONE    /* none: their format has no checksums */
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
    uint8_t channels;  /* of the stored image, as its header says; images only */
    uint8_t bit_depth; /* of a sample, in the same way */
    uint32_t width;    /* pixels; images only */
    uint32_t height;
    uint16_t checksum;    /* enum pstk__checksum */
    uint16_t flags;       /* enum pstk__field_flag */
    uint16_t passthrough; /* enum pstk_passthrough; set by the encoders of pack alone */
    uint16_t gap;         /* bytes after data that were read with it and must be zero */
    uint64_t offset;      /* bytes: from the record's start */
};

/* A field whose values lie in a file of its own, one after the other. */
struct pstk__field_file {
    const char *name; /* of the file, for messages */
    uint64_t offset;  /* bytes: of the value of record 0 */
    uint64_t size;    /* bytes of a value */
    uint32_t file;    /* its number */
};

struct pstk__record {
    const struct pstk__schema *schema;          /* borrowed */
    uint64_t number;                            /* within the shard */
    uint64_t file_offset;                       /* of its first byte, for messages */
    const char *shard;                          /* file name, borrowed, for messages */
    uint32_t file;                              /* number of that file */
    const struct pstk__field_file *field_files; /* by field, borrowed; NULL: all lie in `shard` */
    uint32_t accepts_damaged; /* 1: images decode as Pillow loads them, even if it has to guess */
    uint32_t n_fields;
    struct pstk__field_view fields[PSTK_MAX_FIELDS];
};

/* Limits of a record, from the manifest and the settings. */
struct pstk__record_limits {
    uint64_t max_size; /* of the whole record */
    uint64_t max_stored[PSTK_MAX_FIELDS];
    uint64_t max_plain[PSTK_MAX_FIELDS];
    uint32_t max_width[PSTK_MAX_FIELDS];
    uint32_t max_height[PSTK_MAX_FIELDS];
};

/* What is known of a record before its bytes are seen. */
struct pstk__record_location {
    const char *shard;    /* file name */
    uint32_t file;        /* its number */
    uint32_t tag;         /* of the shard */
    uint64_t number;      /* of the record in the shard */
    uint64_t file_offset; /* of its first byte */
    uint64_t size;        /* of the whole record, from the index */
};

/* Parse `available` bytes (the whole record, or at least its head) into *out. EBADMSG with shard,
 * record and byte range when a check fails. */
int pstk__record_parse(struct pstk__record *out, const struct pstk__schema *schema,
                       const struct pstk__record_limits *limits,
                       const struct pstk__record_location *location, const void *bytes,
                       uint64_t available, struct pstk_error *err);
/* Where the stored bytes of field i lie: file, its name, and byte in it. */
void pstk__record_locate(const struct pstk__record *record, uint32_t i, uint32_t *file,
                         const char **name, uint64_t *offset);
/* What an entry says of an image; its orientation is 1. */
struct pstk__image_info pstk__field_image(const struct pstk__field_view *v);
/* Compare an image's own header with its entry. Returns NULL, or how they differ, in `text`. */
const char *pstk__field_image_differs(const struct pstk__field_view *v,
                                      const struct pstk__image_info *info, char text[160]);
/* 1 when the `gap` bytes before `end`, at most 16, are zero; 16 bytes before `end` can be read. */
static inline int pstk__record_gap_is_zero(const uint8_t *end, uint32_t gap)
{
    const unsigned __int128 last =
        (unsigned __int128)pstk__get64(end - 8) << 64 | pstk__get64(end - 16);
    return gap == 0 || last >> (128 - 8 * gap) == 0;
}

/* The same of what follows a field's data. */
static inline int pstk__field_gap_is_zero(const struct pstk__field_view *v)
{
    return v->gap == 0 || pstk__record_gap_is_zero(v->data + v->stored_size + v->gap, v->gap);
}

/* Check what a view says of an image in a list: encoding, samples, flags (palette alone) and sizes.
 * Returns what is wrong, static storage, or NULL. */
const char *pstk__record_item_wrong(const struct pstk__field_view *v);
/* Check the stored bytes of field i as its checksum kind requires, and the gap after them. */
int pstk__record_check_field(const struct pstk__record *record, uint32_t i, struct pstk_error *err);
/* Name damage in field i of a record: shard, record, byte range of the field. Returns EBADMSG or
 * `code`.
 */
int pstk__record_fail(const struct pstk__record *record, uint32_t i, int code, int stage,
                      struct pstk_error *err, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));

/* Bytes of a record whose fields are stored as `views` say: its fields with an entry begin one
 * after another at multiples of PSTK__RECORD_ALIGN. */
uint64_t pstk__record_size(const struct pstk__schema *schema, const struct pstk__field_view *views);
/* Return the CRC of a record's content: of the bytes of fixed fields and the plain CRCs of the
 * others. */
uint32_t pstk__record_content_crc(const struct pstk__schema *schema,
                                  const struct pstk__field_view *views);
/* Write a head of schema->head_size bytes. views[i].data of fixed fields: their bytes; the other
 * members as they are to be stored. */
void pstk__record_head(const struct pstk__schema *schema, uint32_t tag, uint64_t number,
                       const struct pstk__field_view *views, void *head);

/* Two lanes of the content identity of one record, and of a run of records (FORMAT.md, Identity).
 */
struct pstk__identity {
    uint64_t lane[2]; /* < 2^61 - 1 */
    uint64_t n;       /* records */
};
/* "jpeg", ..., of the encodings that the library decodes; else "?". */
const char *pstk__encoding_name(uint32_t encoding);

/* Append one record: views with plain_size, plain_crc, what is known of images; fixed ones with
 * data. */
void pstk__identity_add(struct pstk__identity *id, const struct pstk__schema *schema,
                        const struct pstk__field_view *views);
/* a = a followed by b. */
void pstk__identity_join(struct pstk__identity *a, const struct pstk__identity *b);
/* 32 lower-case hex digits and 0: the lanes, mixed with schema crc and n. */
void pstk__identity_text(const struct pstk__identity *id, uint32_t schema_crc, char text[40]);

#endif
