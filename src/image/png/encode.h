/* SPDX-License-Identifier: Apache-2.0 */
/* png/encode: encodes pixels as a PNG file with the same samples, by libpng. */
#ifndef PSTK_PNG_ENCODE_H
#define PSTK_PNG_ENCODE_H

#include "image/decoder.h"

/* Make the file of an image of PSTK_ENCODING_PIXELS that `info` describes. Returns owned bytes in
 * *out (free) and their number in *out_size. EBADMSG: `size` is not the size of such an image;
 * ENOMEM. */
int pstk__png_encode(const void *pixels, uint64_t size, const struct pstk__image_info *info,
                     void **out, uint64_t *out_size, struct pstk_error *err);

#endif
