/* SPDX-License-Identifier: Apache-2.0 */
/* field: reads a stored field of any codec as checked plain bytes. */
#ifndef PSTK_FIELD_H
#define PSTK_FIELD_H

#include "base/arena.h"
#include "base/codec.h"
#include "record/record.h"

/* The memory that decompressing a field needs. */
struct pstk__field_memory {
    struct pstk__decoder *decoder;
    const struct pstk__dictionary *dictionary; /* the shard's dictionary for the field, or NULL */
    struct pstk__arena *scratch;               /* arena with room for pstk__field_scratch bytes */
    void *plain;                               /* plain_size bytes */
};

/* Find the memory for field i of r. Returns 0, or an error that pstk__field_read then returns. */
typedef int (*pstk__field_memory_fn)(void *user, const struct pstk__record *r, uint32_t i,
                                     struct pstk__field_memory *out, struct pstk_error *err);

/* The settings with which a caller reads fields. */
struct pstk__field_reading {
    uint64_t max_pixels; /* maximum pixels of an image that is stored compressed */
    pstk__field_memory_fn memory;
    void *user;
};

/* Check field i of a record as its checksum kind requires, and decompress it if it is compressed.
 * The field's data is present. *plain: plain_size bytes, in the record or in the memory that
 * `memory` found. `memory` is called only after the checks, because any codec can expand an image
 * far beyond its stored size. EBADMSG, EFBIG, ENOTSUP or ENOMEM; the message names the position.
 * Pure except for `memory`. */
int pstk__field_read(const struct pstk__record *record, uint32_t i,
                     const struct pstk__field_reading *reading, const uint8_t **plain,
                     struct pstk_error *err);
/* Check that max_pixels permits decoding the image in field i, by the size in the record head and
 * before memory is allocated. 0 or EFBIG. */
int pstk__field_check_pixels(const struct pstk__record *record, uint32_t i, uint64_t max_pixels,
                             struct pstk_error *err);
/* Return the bytes of arena that decompressing a field takes at most; 0 for most codecs. */
uint64_t pstk__field_scratch(const struct pstk__field_view *v);

#endif
