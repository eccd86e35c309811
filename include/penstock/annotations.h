/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/annotations.h - masks of objects, from the polygons and the runs that COCO's files have.
 *
 * A mask has height x width bytes, rows from top to bottom, each byte 0 or 1. Every mask equals,
 * byte for byte, the one that pycocotools decodes.
 *
 *   uint8_t *mask = malloc((size_t)height * width);
 *   if (pstk_polygon_mask(points, n_points, n_polygons, height, width, mask, &err) < 0) ...
 */
#ifndef PENSTOCK_ANNOTATIONS_H
#define PENSTOCK_ANNOTATIONS_H

#include <penstock/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- masks --------------------------------------------------------------------------------- */

/* Pixels of either side of a mask, at most. */
#define PSTK_MAX_MASK_SIDE 65535

/* Take the runs out of COCO's compressed counts, a text of `size` bytes: write at most `room` of
 * them to counts, and their number to *n, which is never above size. The text has 5 bits a
 * character, and differences from the run before the last one. borrows. EBADMSG: it is not such a
 * text; the message has the byte. EINVAL: there are more runs than room. */
PSTK_API int pstk_rle_parse(const char *text, uint64_t size, uint32_t *counts, uint64_t room,
                            uint64_t *n, struct pstk_error *err);
/* Decode n runs of 0 and 1 in turn, 0 first, down the columns of an image (COCO's uncompressed
 * counts; a value of a PSTK_FIELD_RLE field), to height x width bytes. borrows. EBADMSG: the runs
 * add up to another number than height x width. EINVAL: height or width is 0 or above
 * PSTK_MAX_MASK_SIDE. */
PSTK_API int pstk_rle_decode(const uint32_t *counts, uint64_t n, uint32_t height, uint32_t width,
                             uint8_t *mask, struct pstk_error *err);
/* Draw the union of n_polygons polygons, height x width bytes. Polygon i has n_points[i] corners,
 * each an x and a y of `points`, in pixels; they follow those of polygon i - 1. The rule is that of
 * COCO's rleFrPoly: the boundary is walked in steps of a fifth of a pixel, and a pixel is inside if
 * the column through its centre crosses the boundary an odd number of times above it. A polygon may
 * leave the image, cross itself, or have fewer than 3 corners. borrows. EBADMSG: a coordinate is
 * not finite or beyond 1048576. EINVAL: as pstk_rle_decode. */
PSTK_API int pstk_polygon_mask(const double *points, const uint32_t *n_points, uint32_t n_polygons,
                               uint32_t height, uint32_t width, uint8_t *mask,
                               struct pstk_error *err);

#ifdef __cplusplus
}
#endif
#endif
