/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg/rebuild: a JPEG file put together from its coefficients and skeleton, in one of the ways. */
#ifndef PSTK_JPEG_REBUILD_H
#define PSTK_JPEG_REBUILD_H

#include "image/jpeg/coefficients.h"
#include "image/jpeg/splice.h"

/* Put a file together: frame, blocks, skeleton, rebuild and parameters are given (skeleton and all
 * of it may be hostile: EBADMSG, never out of bounds). EBADMSG also when it takes more than
 * out_capacity bytes. */
int pstk__jpeg_image_rebuild(const struct pstk__jpeg_image *image, uint8_t *out,
                             uint64_t out_capacity, uint64_t *out_size, struct pstk__arena *arena,
                             struct pstk_error *err);
/* Most bytes that a rebuilt file can take. */
uint64_t pstk__jpeg_rebuild_bound(const struct pstk__jpeg_image *image);
/* Bytes of arena that a rebuild takes at most. */
uint64_t pstk__jpeg_rebuild_scratch(const struct pstk__jpeg_frame *f, uint64_t skeleton_size);

/* Rebuild the image as its `rebuild` says, for who needs the sizes of its scans; the file is
 * a->out..a->at. What it allocates from the arena is given back. Results as
 * pstk__jpeg_image_rebuild. */
int pstk__jpeg_attempt(struct pstk__jpeg_attempt *attempt, const struct pstk__jpeg_image *image,
                       uint8_t *out, uint64_t capacity, struct pstk__arena *arena,
                       struct pstk_error *err);

#endif
