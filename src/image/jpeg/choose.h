/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg/choose: finds the method that rebuilds a JPEG file, by trying. */
#ifndef PSTK_JPEG_CHOOSE_H
#define PSTK_JPEG_CHOOSE_H

#include "image/jpeg/coefficients.h"

/* Find out how a file can be rebuilt, by rebuilding it. Sets rebuild and parameters, and may
 * replace the image's skeleton by another one from the arena (some encoders leave bytes after a
 * scan). EBADMSG: no method works, and the file can only be stored unchanged. *exact: 1 when the
 * result equals data[0, size). `out` is scratch of pstk__jpeg_rebuild_bound() bytes; in the end it
 * holds the rebuilt file, *out_size bytes. */
int pstk__jpeg_image_choose(struct pstk__jpeg_image *image, const void *data, uint64_t size,
                            uint8_t *out, uint64_t *out_size, int *exact, struct pstk__arena *arena,
                            struct pstk_error *err);
/* Return the largest number of arena bytes that reading a file of this size and choosing take. */
uint64_t pstk__jpeg_image_scratch(const struct pstk__jpeg_frame *f, uint64_t file_size);

#endif
