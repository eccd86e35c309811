/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/coefficients: a JPEG file taken apart into its quantised coefficients and all its other
 * bytes, and put together again. L2; for packing, and for giving a file back: not on the way to
 * pixels.
 *
 * What is read is what decoding accepts (decode.c: the same warnings end it), of any process that
 * libjpeg-turbo reads as coefficients. The *skeleton* is the file without the entropy-coded data
 * of its scans: markers with their segments, stray bytes between them, bytes behind the end.
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
    uint32_t parameters; /* what rebuild needs beside it (padding bits, ...); set by choose */
};

/* Take a file apart. Memory from the arena, which stays the caller's. EBADMSG, ENOTSUP, EFBIG (over
 * max_pixels or too many scans), ENOMEM. */
int pstk__jpeg_image_read(struct pstk__jpeg_image *image, const void *data, uint64_t size,
                          uint64_t max_pixels, struct pstk__arena *arena, struct pstk_error *err);
/* Find out how the file can be rebuilt, by rebuilding it: sets rebuild and parameters, and may put
 * another skeleton from the arena in the place of the image's (encoders leave bytes behind a scan).
 * EBADMSG: in no way; such a file can only be kept as it is. *exact: 1
 * when the result equals data[0, size). `out` is scratch of pstk__jpeg_rebuild_bound() bytes and
 * holds the rebuilt file of *out_size bytes at the end. */
int pstk__jpeg_image_choose(struct pstk__jpeg_image *image, const void *data, uint64_t size,
                            uint8_t *out, uint64_t *out_size, int *exact, struct pstk__arena *arena,
                            struct pstk_error *err);
/* Put a file together: frame, blocks, skeleton, rebuild and parameters are given (skeleton and all
 * of it may be hostile: EBADMSG, never out of bounds). EBADMSG also when it takes more than
 * out_capacity bytes. */
int pstk__jpeg_image_rebuild(const struct pstk__jpeg_image *image, uint8_t *out,
                             uint64_t out_capacity, uint64_t *out_size, struct pstk__arena *arena,
                             struct pstk_error *err);
/* Most bytes that a rebuilt file can take. */
uint64_t pstk__jpeg_rebuild_bound(const struct pstk__jpeg_image *image);
/* Bytes of arena for a read and a choose of a file of this size, and for a rebuild: bounds. */
uint64_t pstk__jpeg_image_scratch(const struct pstk__jpeg_frame *f, uint64_t file_size);
uint64_t pstk__jpeg_rebuild_scratch(const struct pstk__jpeg_frame *f, uint64_t skeleton_size);

#endif
