/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/coefficients: takes a JPEG file apart into its quantised coefficients and its other bytes.
 * For packing, and for rebuilding a file (rebuild.h); decoding to pixels does not use it.
 *
 * It reads the files that decode.c accepts (the same warnings are errors), of any process that
 * libjpeg-turbo reads as coefficients. The *skeleton* is the file without the entropy-coded data of
 * its scans: markers with their segments, stray bytes between them, bytes after the end.
 */
#ifndef PSTK_JPEG_COEFFICIENTS_H
#define PSTK_JPEG_COEFFICIENTS_H

#include "base/arena.h"
#include "image/jpeg/frame.h"

#include <penstock/types.h>

/* The method that rebuilds a file from coefficients and skeleton. */
enum pstk__jpeg_rebuild {
    /* Our own Huffman coder, sequential and progressive, codes the scans by the skeleton's tables.
     * Gives the original's bytes. */
    PSTK__JPEG_REBUILD_SCANS = 1,
    /* libjpeg codes the scans (arithmetic coding). Gives the original's bytes; allocates. */
    PSTK__JPEG_REBUILD_LIBRARY = 2,
    /* A standard JPEG with the same coefficients, quantisation tables, APPn and COM markers. Gives
     * other bytes, which SCANS can rebuild. Never stored. */
    PSTK__JPEG_REBUILD_STANDARD = 3,
};

struct pstk__jpeg_image {
    struct pstk__jpeg_frame frame;
    uint32_t orientation; /* EXIF, 1..8 */
    uint32_t smoothed; /* 1: a progressive file lacks bits of some coefficients, so decoders smooth
                          its blocks; planes cannot give its pixels */
    int16_t *blocks[PSTK__JPEG_MAX_COMPONENTS]; /* rows * stride blocks of 64 coefficients, row by
                                                   row, natural order, MCU padding included */
    uint8_t *skeleton;
    uint64_t skeleton_size;
    uint32_t rebuild;    /* enum pstk__jpeg_rebuild; choose sets it, rebuild reads it */
    uint32_t parameters; /* for the rebuild (padding bits, ...); choose sets them */
};

/* Take a file apart. Takes memory from the arena, which the caller resets. EBADMSG, ENOTSUP, EFBIG
 * (over max_pixels or too many scans), ENOMEM. */
int pstk__jpeg_image_read(struct pstk__jpeg_image *image, const void *data, uint64_t size,
                          uint64_t max_pixels, struct pstk__arena *arena, struct pstk_error *err);

#endif
