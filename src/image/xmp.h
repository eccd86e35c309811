/* SPDX-License-Identifier: Apache-2.0 */
/* image/xmp: reads the orientation from XMP metadata, as Pillow 12 does: by a pattern. Pure. */
#ifndef PSTK_IMAGE_XMP_H
#define PSTK_IMAGE_XMP_H

#include <stdint.h>

/* Bytes of the longest text that matches. Metadata that comes in parts must overlap by one byte
 * less. */
#define PSTK__XMP_MATCH_SIZE 19u

/* Return the orientation of the first tiff:Orientation="N" or tiff:Orientation>N, an attribute or
 * element. 1..8; 1 for any other digit, too. 0: none. */
uint32_t pstk__xmp_orientation(const uint8_t *xmp, uint64_t size);
#endif
