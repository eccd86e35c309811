/* SPDX-License-Identifier: Apache-2.0 */
/* schema: the fields of a record and their positions in a record head. Pure. */
#ifndef PSTK_SCHEMA_H
#define PSTK_SCHEMA_H

#include "record/attributes.h"

#define PSTK__FIXED_MAX 4096  /* largest ndarray that lies in the head, bytes */
#define PSTK__RECORD_HEAD 16  /* bytes before the entries */
#define PSTK__RECORD_ENTRY 32 /* bytes of one entry */
#define PSTK__RECORD_ALIGN 16 /* alignment of records, heads and fields with an entry, bytes */
#define PSTK__MAX_RECORD_SIZE 0xfffffff0ull /* largest record: a multiple of 16, bytes */
#define PSTK__MAX_VALUE_SIZE 0xffffffffull  /* largest value, bytes */
#define PSTK__MAX_SIDE 65535 /* largest side of an image that decoders take, pixels */

/* The members after n_fields follow from `fields`; pstk__schema_init computes them. */
struct pstk__schema {
    struct pstk_field fields[PSTK_MAX_FIELDS];
    uint32_t n_fields;
    uint32_t n_entries; /* fields with an entry: all that are not in the head */
    uint32_t fixed_end; /* offset at which the last fixed field in the head ends, bytes */
    uint32_t head_size; /* size of every head, padding included, bytes */
    uint32_t crc;       /* CRC32C of the canonical text (FORMAT.md) */
    int32_t entry[PSTK_MAX_FIELDS];         /* entry number; -1: the field is in the head */
    uint32_t fixed_offset[PSTK_MAX_FIELDS]; /* offset in the head, bytes; 0: not in the head */
    uint32_t fixed_size[PSTK_MAX_FIELDS];   /* bytes; 0 when not in the head */
    uint32_t plain_size[PSTK_MAX_FIELDS];   /* bytes of each value; 0 when they vary */
    struct pstk__links links;               /* references among fields */
};

/* Round a size up to the alignment of a record. size < 2^64 - 16. */
static inline uint64_t pstk__record_aligned(uint64_t size)
{
    return (size + PSTK__RECORD_ALIGN - 1) / PSTK__RECORD_ALIGN * PSTK__RECORD_ALIGN;
}

/* Check and copy the fields (names, kinds, dtypes, shapes, attributes, duplicates), and derive the
 * other members. */
int pstk__schema_init(struct pstk__schema *schema, const struct pstk_field *fields,
                      uint32_t n_fields, struct pstk_error *err);
/* Return the number of the field of that name, or -1. */
int pstk__schema_find(const struct pstk__schema *schema, const char *name);
/* Write the names of all fields, comma-separated, for messages. The text always ends with 0. */
void pstk__schema_names(const struct pstk__schema *schema, char *text, uint32_t size);

#endif
