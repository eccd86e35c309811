/* SPDX-License-Identifier: Apache-2.0 */
/* image/exif: what is read of Exif metadata, in any file that has it. Pure. */
#ifndef PSTK_IMAGE_EXIF_H
#define PSTK_IMAGE_EXIF_H

#include <stdint.h>

/* The orientation in a TIFF structure as Exif has it (from its byte order mark on), 1..8; 1 when
 * there is none or it is damaged. */
uint32_t pstk__exif_orientation(const uint8_t *tiff, uint64_t size);
#endif
