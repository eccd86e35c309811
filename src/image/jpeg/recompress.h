/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/recompress: computes the pixels of an image that was saved as a JPEG file and read again.
 * They are those of Pillow with libjpeg-turbo: save(quality=...), which samples colours 2 x 2, and
 * then open(). Neither the file nor its entropy code is made, because they lose nothing.
 */
#ifndef PSTK_JPEG_RECOMPRESS_H
#define PSTK_JPEG_RECOMPRESS_H

#include "base/arena.h"
#include "image/jpeg/forward.h"
#include "image/jpeg/kernels.h"

/* The kernels of both directions, for one ISA. */
struct pstk__recompress_kernels {
    const struct pstk__forward_kernels *forward;
    const struct pstk__jpeg_kernels *inverse;
};

/* Change height rows of `width` pixels, end to end, of 1 or 3 channels. 64 bytes after them are
 * readable. quality: 1 to 100. Takes
 * memory from the arena and gives all of it back. 0 or ENOMEM. */
int pstk__jpeg_recompress(uint8_t *pixels, uint32_t width, uint32_t height, uint32_t channels,
                          uint32_t quality, const struct pstk__recompress_kernels *kernels,
                          struct pstk__arena *arena);
/* Return the largest number of arena bytes for pictures up to this width. Derived in a comment. */
uint64_t pstk__jpeg_recompress_scratch(uint32_t max_width);

#endif
