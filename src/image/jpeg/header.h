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
    uint32_t orientation;  /* EXIF, 1..8 */
    uint64_t scan_offset;  /* bytes from the start to the first SOS marker */
};

/* Read the header. EBADMSG: damaged or not a JPEG; ENOTSUP: a kind of JPEG that is not decoded. */
int pstk__jpeg_header_read(struct pstk__jpeg_header *h, const void *data, uint64_t size,
                           struct pstk_error *err);
#endif
