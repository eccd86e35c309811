/* SPDX-License-Identifier: Apache-2.0 */
/* geometry: the part of an image that a row of an output shows, and its size and flips. Pure. */
#ifndef PSTK_GEOMETRY_H
#define PSTK_GEOMETRY_H

#include "pixels/resize.h"

/*
 * The geometry of a sample. The source box is resized to out_width x out_height, and the crop
 * rectangle of the result is kept. Pixels of the rectangle outside of the result have the fill. The
 * flips mirror the kept pixels. Coordinates refer to the image after EXIF orientation.
 */
struct pstk__geometry {
    uint32_t image_width, image_height;
    struct pstk__box source;
    uint32_t out_width, out_height; /* after the resize; without one the source's size */
    int64_t crop_left, crop_top;    /* in the resized image */
    uint32_t crop_width, crop_height;
    uint32_t filter;  /* enum pstk_filter of the resize; not RANDOM */
    uint32_t resized; /* 1: a resizing op was applied */
    uint32_t cropped; /* 1: a cropping op was applied */
    uint8_t fill[4];  /* fill of the first cropping op: later ones do not reach outside */
    uint32_t flip, flip_vertical;
};

/* Begin with the whole image, unchanged. */
void pstk__geometry_init(struct pstk__geometry *g, uint32_t image_width, uint32_t image_height);
/* Resize the source box to this size; the crop rectangle becomes the whole result. */
void pstk__geometry_resize(struct pstk__geometry *g, uint32_t width, uint32_t height);
/* Keep the part of the view that begins at (left, top), relative to the crop rectangle after its
 * flips. The part may reach outside. */
void pstk__geometry_crop(struct pstk__geometry *g, int64_t left, int64_t top, uint32_t width,
                         uint32_t height);
#endif
