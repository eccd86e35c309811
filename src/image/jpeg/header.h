/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/header: reads the marker segments up to the first scan. Pure, without libjpeg. It accepts a
 * header as Pillow (JpegImagePlugin) does: bytes between segments are skipped, but each segment
 * must be whole.
 */
#ifndef PSTK_JPEG_HEADER_H
#define PSTK_JPEG_HEADER_H

#include <penstock/types.h>

struct pstk__jpeg_header {
    uint32_t width, height; /* pixels; not 0 */
    uint32_t sof; /* 0xc0 baseline, 0xc1 extended, 0xc2 progressive; 0xc9 and 0xca: extended and
                     progressive with arithmetic coding */
    uint32_t n_components; /* 1, 3 or 4 */
    uint64_t scan_offset;  /* bytes from the start to the first SOS marker */
    uint64_t exif_offset;  /* bytes from the start to the first Exif segment; 0: there is none */
    uint64_t exif_size;    /* bytes of all Exif segments, without their "Exif\0\0" */
    uint64_t xmp_offset;   /* bytes from the start to the XMP in the last segment that has XMP */
    uint64_t xmp_size;     /* bytes; 0: there is none */
};

/* Read the header. EBADMSG: damaged or not a JPEG; ENOTSUP: a kind of JPEG that is not decoded. */
int pstk__jpeg_header_read(struct pstk__jpeg_header *h, const void *data, uint64_t size,
                           struct pstk_error *err);
/* Return the orientation, 1..8, from Exif, or else from XMP. data: the file whose header was read.
 */
uint32_t pstk__jpeg_orientation(const struct pstk__jpeg_header *h, const void *data);
#endif
