/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg/rebuild: rebuilds a JPEG file from its coefficients and skeleton. */
#ifndef PSTK_JPEG_REBUILD_H
#define PSTK_JPEG_REBUILD_H

#include "image/jpeg/coefficients.h"
#include "image/jpeg/splice.h"

/* Rebuild a file from the image's frame, blocks, skeleton, rebuild and parameters. All of them may
 * be hostile: EBADMSG, never out of bounds. EBADMSG also when the file takes more than out_capacity
 * bytes. */
int pstk__jpeg_image_rebuild(const struct pstk__jpeg_image *image, uint8_t *out,
                             uint64_t out_capacity, uint64_t *out_size, struct pstk__arena *arena,
                             struct pstk_error *err);
/* Return the largest number of bytes that a rebuilt file can take. */
uint64_t pstk__jpeg_rebuild_bound(const struct pstk__jpeg_image *image);
/* Return the largest number of arena bytes that a rebuild takes. */
uint64_t pstk__jpeg_rebuild_scratch(const struct pstk__jpeg_frame *f, uint64_t skeleton_size);

/* Rebuild a file by image->rebuild, for a caller who needs the sizes of its scans; the file is
 * attempt->out..attempt->at. Frees what it allocates from the arena. Returns the same as
 * pstk__jpeg_image_rebuild. */
int pstk__jpeg_attempt(struct pstk__jpeg_attempt *attempt, const struct pstk__jpeg_image *image,
                       uint8_t *out, uint64_t capacity, struct pstk__arena *arena,
                       struct pstk_error *err);

#endif
