/* SPDX-License-Identifier: Apache-2.0 */
/* geometry: which part of an image a row of an output shows, and how. Pure. */
#ifndef PSTK_GEOMETRY_H
#define PSTK_GEOMETRY_H

#include "pixels/resize.h"

/*
 * The geometry of a sample. The source box is resized to out_width x out_height. The crop rectangle
 * of the result is kept; pixels of a rectangle that reaches outside have the fill. The flips mirror
 * them. Coordinates refer to the image after EXIF orientation.
 */
struct pstk__geometry {
    uint32_t image_width, image_height;
    struct pstk__box source;
    uint32_t out_width, out_height; /* after the resize; the source's size if there is none */
    int64_t crop_left, crop_top;    /* in the resized image */
    uint32_t crop_width, crop_height;
    uint32_t filter;  /* enum pstk_filter of the resize; not RANDOM */
    uint32_t resized; /* 1: a resizing op was applied */
    uint32_t cropped; /* 1: a cropping op was applied */
    uint8_t fill[4];  /* of the first cropping op: later ones do not reach outside */
    uint32_t flip, flip_vertical;
};

/* Begin with the whole image, unchanged. */
void pstk__geometry_init(struct pstk__geometry *g, uint32_t image_width, uint32_t image_height);
/* Resize the source box to this size; the crop rectangle becomes all of it. */
void pstk__geometry_resize(struct pstk__geometry *g, uint32_t width, uint32_t height);
/* Keep the part of the view that begins at (left, top), relative to the crop rectangle as it is
 * mirrored. The part may reach outside. */
void pstk__geometry_crop(struct pstk__geometry *g, int64_t left, int64_t top, uint32_t width,
                         uint32_t height);
#endif
