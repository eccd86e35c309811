/* SPDX-License-Identifier: Apache-2.0 */
/* field: a stored field to its plain bytes, checked, whatever its codec. */
#ifndef PSTK_FIELD_H
#define PSTK_FIELD_H

#include "base/arena.h"
#include "base/codec.h"
#include "record/record.h"

/* What decompressing a field needs. */
struct pstk__field_memory {
    struct pstk__decoder *decoder;
    const struct pstk__dictionary *dictionary; /* the shard's for the field, or NULL */
    struct pstk__arena *scratch;               /* with room for pstk__field_scratch bytes */
    void *plain;                               /* plain_size bytes */
};

/* Find that memory for field i of r. 0, or an error that is then the result. */
typedef int (*pstk__field_memory_fn)(void *user, const struct pstk__record *r, uint32_t i,
                                     struct pstk__field_memory *out, struct pstk_error *err);

/* How a caller reads fields. */
struct pstk__field_reading {
    uint64_t max_pixels; /* of an image that is stored compressed */
    pstk__field_memory_fn memory;
    void *user;
};

/* Check field i of a record, whose data is present, as its checksum kind requires, and decompress
 * it if it is compressed: *plain is its plain_size bytes, in the record or in the memory that
 * `memory` found. Asks for memory only after the checks: any codec can make far more bytes of an
 * image than are stored. EBADMSG, EFBIG, ENOTSUP, ENOMEM, with the place in the message. Pure
 * except for `memory`. */
int pstk__field_read(const struct pstk__record *record, uint32_t i,
                     const struct pstk__field_reading *reading, const uint8_t **plain,
                     struct pstk_error *err);
/* Check that max_pixels permits decoding the image in field i, by the size in the head: before any
 * memory is touched for it. 0 or EFBIG. */
int pstk__field_check_pixels(const struct pstk__record *record, uint32_t i, uint64_t max_pixels,
                             struct pstk_error *err);
/* Bytes of arena that decompressing a field takes at most; 0 for most codecs. */
uint64_t pstk__field_scratch(const struct pstk__field_view *v);

#endif
