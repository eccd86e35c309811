/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/exif: reads the orientation from Exif metadata of any file format, by the rule of Pillow 12
 * (Image.Exif, TiffImagePlugin). Pure.
 */
#ifndef PSTK_IMAGE_EXIF_H
#define PSTK_IMAGE_EXIF_H

#include <stdint.h>

/* Exif metadata, which a file may hold in pieces, or encoded. */
struct pstk__exif {
    /* Copy up to n bytes from byte `at` on. Returns their number: fewer only at the end.
     * Consecutive calls, each for the bytes after the last call's, take one pass over the metadata
     * together; a call for earlier bytes may take one more. */
    uint32_t (*read)(void *user, uint64_t at, uint8_t *out, uint32_t n);
    void *user;
    uint64_t size; /* bytes */
};

/* Return the orientation in Exif metadata: a TIFF structure, which "Exif\0\0" may precede, once or
 * more often. 1..8; 1 also when Pillow raises an exception, or finds another value. 0: the metadata
 * has no entry for it, or no byte at all, so XMP may have it. */
uint32_t pstk__exif_orientation(const struct pstk__exif *exif);
/* Return the orientation in Exif metadata in one piece. */
uint32_t pstk__exif_orientation_of(const uint8_t *data, uint64_t size);
#endif
