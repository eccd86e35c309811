/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/coefficients: a JPEG file taken apart into its quantised coefficients and all its other
 * bytes. For packing, and for giving a file back (rebuild.h): not on the way to pixels.
 *
 * What is read is what decoding accepts (decode.c: the same warnings end it), of any process that
 * libjpeg-turbo reads as coefficients. The *skeleton* is the file without the entropy-coded data of
 * its scans: markers with their segments, stray bytes between them, bytes after the end.
 */
#ifndef PSTK_JPEG_COEFFICIENTS_H
#define PSTK_JPEG_COEFFICIENTS_H

#include "base/arena.h"
#include "image/jpeg/frame.h"

#include <penstock/types.h>

/* How a file is put together from coefficients and skeleton. */
enum pstk__jpeg_rebuild {
    PSTK__JPEG_REBUILD_SCANS = 1,    /* our own Huffman coder, sequential and progressive, codes the
                                        scans by the skeleton's tables: the original's bytes */
    PSTK__JPEG_REBUILD_LIBRARY = 2,  /* libjpeg codes the scans (arithmetic): the original's bytes;
                                        it allocates */
    PSTK__JPEG_REBUILD_STANDARD = 3, /* a standard JPEG with the same coefficients, tables of
                                        quantisation, APPn and COM markers; other bytes, that SCANS
                                        gives back. Is not stored */
};

struct pstk__jpeg_image {
    struct pstk__jpeg_frame frame;
    uint32_t orientation; /* EXIF, 1..8 */
    uint32_t smoothed;    /* 1: a progressive file that lacks bits of some coefficients, so that
                             libjpeg smooths its blocks: planes cannot stand for its pixels */
    int16_t *blocks[PSTK__JPEG_MAX_COMPONENTS]; /* rows * stride blocks of 64 coefficients, row
                                                   by row, natural order, MCU padding included */
    uint8_t *skeleton;
    uint64_t skeleton_size;
    uint32_t rebuild;    /* enum pstk__jpeg_rebuild; set by choose, given to rebuild */
    uint32_t parameters; /* what rebuild also needs (padding bits, ...); set by choose */
};

/* Take a file apart. Memory from the arena, which stays the caller's. EBADMSG, ENOTSUP, EFBIG (over
 * max_pixels or too many scans), ENOMEM. */
int pstk__jpeg_image_read(struct pstk__jpeg_image *image, const void *data, uint64_t size,
                          uint64_t max_pixels, struct pstk__arena *arena, struct pstk_error *err);

#endif
