/* SPDX-License-Identifier: Apache-2.0 */
/* image/exif: reads Exif metadata, from any file that has it. Pure. */
#ifndef PSTK_IMAGE_EXIF_H
#define PSTK_IMAGE_EXIF_H

#include <stdint.h>

/* Return the orientation, 1..8, from Exif's TIFF structure (from its byte order mark on). 1 when
 * there is none or it is damaged. */
uint32_t pstk__exif_orientation(const uint8_t *tiff, uint64_t size);
#endif
