/* SPDX-License-Identifier: Apache-2.0 */
/* schema: the fields of a record and where they lie in a record head. Pure. */
#ifndef PSTK_SCHEMA_H
#define PSTK_SCHEMA_H

#include "record/attributes.h"

#define PSTK__FIXED_MAX 4096                /* bytes of an ndarray that still lies in the head */
#define PSTK__RECORD_HEAD 16                /* bytes before the entries */
#define PSTK__RECORD_ENTRY 32               /* bytes of one entry */
#define PSTK__RECORD_ALIGN 16               /* bytes: of records, heads and fields with an entry */
#define PSTK__MAX_RECORD_SIZE 0xfffffff0ull /* bytes of a record: a multiple of that below 2^32 */
#define PSTK__MAX_VALUE_SIZE 0xffffffffull  /* bytes of a value */
#define PSTK__MAX_SIDE 65535                /* pixels of an image that decoders take */

/* Derived members follow from `fields`; pstk__schema_init computes them. */
struct pstk__schema {
    struct pstk_field fields[PSTK_MAX_FIELDS];
    uint32_t n_fields;
    uint32_t n_entries;                     /* fields with an entry: those not in the head */
    uint32_t fixed_end;                     /* bytes of the head up to its last fixed field */
    uint32_t head_size;                     /* bytes of every head: those, and zeros to align */
    uint32_t crc;                           /* CRC32C of the canonical text, see FORMAT.md */
    int32_t entry[PSTK_MAX_FIELDS];         /* entry number, -1 = in the head */
    uint32_t fixed_offset[PSTK_MAX_FIELDS]; /* from the head's start; 0 when not in the head */
    uint32_t fixed_size[PSTK_MAX_FIELDS];   /* bytes; 0 when not in the head */
    uint32_t plain_size[PSTK_MAX_FIELDS];   /* bytes of each value; 0 when they vary */
    struct pstk__links links;               /* of fields among each other */
};

/* Bytes that so many take in a record: what follows them is aligned. size < 2^64 - 16. */
static inline uint64_t pstk__record_aligned(uint64_t size)
{
    return (size + PSTK__RECORD_ALIGN - 1) / PSTK__RECORD_ALIGN * PSTK__RECORD_ALIGN;
}

/* Check and copy the fields (names, kinds, dtypes, shapes, attributes, duplicates), derive the
 * rest. */
int pstk__schema_init(struct pstk__schema *schema, const struct pstk_field *fields,
                      uint32_t n_fields, struct pstk_error *err);
/* Number of the field of that name, -1 when there is none. */
int pstk__schema_find(const struct pstk__schema *schema, const char *name);
/* Names of all fields, comma-separated, for messages. Always terminated. */
void pstk__schema_names(const struct pstk__schema *schema, char *text, uint32_t size);

#endif
