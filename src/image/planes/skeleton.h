/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planes/skeleton: stores the skeleton of a file (jpeg/coefficients) in few bytes. From a field's
 * header a reader can write the skeleton that libjpeg would write with default settings: the *usual
 * skeleton*. If the file has this skeleton, it takes no byte. Else the usual skeleton is the prefix
 * of a zstd frame.
 */
#ifndef PSTK_PLANES_SKELETON_H
#define PSTK_PLANES_SKELETON_H

#include "base/codec.h"
#include "image/jpeg/frame.h"

#define PSTK__SKELETON_LEVEL 9 /* zstd's level, for some 600 bytes */
/* Largest number of bytes of a usual skeleton: start and end, JFIF, four tables of quantisation,
 * the frame header and the scan header of four components, and the Huffman tables. */
#define PSTK__SKELETON_MAX_USUAL (4 + 18 + 4 * 133 + 22 + 16 + 432)

/* Write the usual skeleton of a frame; returns its size. */
uint32_t pstk__skeleton_usual(uint8_t out[PSTK__SKELETON_MAX_USUAL],
                              const struct pstk__jpeg_frame *f);
/* Return the largest number of bytes that a skeleton of `size` bytes takes. */
uint64_t pstk__skeleton_bound(uint64_t size);
/* Store a skeleton in out[0, bound of its size). `zstd` has level PSTK__SKELETON_LEVEL and no
 * dictionary. Returns the stored size, or <0. */
int64_t pstk__skeleton_encode(struct pstk__encoder *zstd, const struct pstk__jpeg_frame *f,
                              const uint8_t *skeleton, uint64_t size, uint8_t *out,
                              struct pstk_error *err);
/* Read a stored skeleton into exactly plain_size bytes at `out`. 0 or EBADMSG. */
int pstk__skeleton_decode(struct pstk__decoder *zstd, const struct pstk__jpeg_frame *f,
                          const uint8_t *stored, uint64_t size, uint8_t *out, uint64_t plain_size,
                          struct pstk_error *err);

#endif
