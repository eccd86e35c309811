/* SPDX-License-Identifier: Apache-2.0 */
/* field: a stored field back to its plain bytes, whatever its codec. L2. */
#ifndef PSTK_FIELD_H
#define PSTK_FIELD_H

#include "base/arena.h"
#include "base/codec.h"
#include "record/record.h"

/* Whether v may be decoded: any codec can make far more bytes of an image than it has stored.
 * Before memory is touched for it. 0 or EFBIG. */
int pstk__field_check(const struct pstk__field_view *v, uint64_t max_pixels,
                      struct pstk_error *err);
/* Decode the stored bytes of v, which were checked, into exactly v->plain_size bytes at `out`.
 * `dictionary` is the shard's for the field, or NULL. `scratch` (used by planes alone) has at least
 * the bytes that pstk__field_scratch says, or is NULL where no field is stored as planes. 0,
 * EBADMSG, ENOTSUP, ENOMEM, with a message that names no place. The result's checksum is the
 * caller's to check. */
int pstk__field_decode(struct pstk__decoder *d, const struct pstk__field_view *v,
                       const struct pstk__dictionary *dictionary, struct pstk__arena *scratch,
                       void *out, struct pstk_error *err);
/* Bytes of arena that decoding v takes at most; 0 for most codecs. */
uint64_t pstk__field_scratch(const struct pstk__field_view *v);

#endif
