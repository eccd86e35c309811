/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg/choose: which way of rebuilding gives a JPEG file back, found by trying. */
#ifndef PSTK_JPEG_CHOOSE_H
#define PSTK_JPEG_CHOOSE_H

#include "image/jpeg/coefficients.h"

/* Find out how the file can be rebuilt, by rebuilding it: sets rebuild and parameters, and may put
 * another skeleton from the arena in the place of the image's (encoders leave bytes after a scan).
 * EBADMSG: in no way; such a file can only be kept as it is. *exact: 1 when the result equals
 * data[0, size). `out` is scratch of pstk__jpeg_rebuild_bound() bytes and holds the rebuilt file of
 * *out_size bytes at the end. */
int pstk__jpeg_image_choose(struct pstk__jpeg_image *image, const void *data, uint64_t size,
                            uint8_t *out, uint64_t *out_size, int *exact, struct pstk__arena *arena,
                            struct pstk_error *err);
/* Bytes of arena that reading a file of this size and choosing take at most. */
uint64_t pstk__jpeg_image_scratch(const struct pstk__jpeg_frame *f, uint64_t file_size);

#endif
