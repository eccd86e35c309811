/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/encode: encodes rows of RGB as a baseline JPEG file with the standard tables. For the same
 * pixels and quality it gives the bytes that Pillow's save(quality=...) writes with the same
 * libjpeg. For packing.
 */
#ifndef PSTK_JPEG_ENCODE_H
#define PSTK_JPEG_ENCODE_H

#include "base/arena.h"

#include <penstock/types.h>

struct pstk__jpeg_picture {
    const uint8_t *rgb; /* borrowed; height rows of width * 3 bytes, end to end */
    uint32_t width;     /* 1..65500, libjpeg's limit */
    uint32_t height;
    uint32_t quality;     /* 1..100 */
    uint32_t orientation; /* EXIF, 1..8; any value except 1 is written, as the only entry of an Exif
                             segment */
};

/* Encode a picture. Returns owned bytes (free()) in *out. ENOTSUP: larger than a JPEG can be;
 * ENOMEM. */
int pstk__jpeg_encode(const struct pstk__jpeg_picture *picture, void **out, uint64_t *out_size,
                      struct pstk__arena *arena, struct pstk_error *err);
/* Return the largest number of arena bytes that encoding takes for this width. */
uint64_t pstk__jpeg_encode_scratch(uint32_t width);

#endif
