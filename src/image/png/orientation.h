/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png/orientation: finds the orientation of a PNG file as Pillow 12's ImageOps.exif_transpose does:
 * from Exif in the last eXIf chunk of the file, or in a text "Raw profile type exif"; or else from
 * XMP. Allocates nothing.
 */
#ifndef PSTK_PNG_ORIENTATION_H
#define PSTK_PNG_ORIENTATION_H

#include <stdint.h>

/* Return the orientation, 1..8, of a file of at least PSTK__PNG_IHDR_END bytes. */
uint32_t pstk__png_orientation(const void *file, uint64_t size);
#endif
