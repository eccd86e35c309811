/* SPDX-License-Identifier: Apache-2.0 */
#include "augment/geometry.h"

void pstk__geometry_init(struct pstk__geometry *g, uint32_t image_width, uint32_t image_height)
{
    *g = (struct pstk__geometry){.image_width = image_width,
                                 .image_height = image_height,
                                 .source = {0, 0, image_width, image_height}};
    pstk__geometry_resize(g, image_width, image_height);
    g->resized = 0;
}

void pstk__geometry_resize(struct pstk__geometry *g, uint32_t width, uint32_t height)
{
    g->out_width = width;
    g->out_height = height;
    g->crop_left = g->crop_top = 0;
    g->crop_width = width;
    g->crop_height = height;
    g->resized = 1;
}

void pstk__geometry_crop(struct pstk__geometry *g, int64_t left, int64_t top, uint32_t width,
                         uint32_t height)
{
    /* In a mirrored view the offset counts from the right, or from the bottom. */
    g->crop_left += g->flip ? (int64_t)g->crop_width - width - left : left;
    g->crop_top += g->flip_vertical ? (int64_t)g->crop_height - height - top : top;
    g->crop_width = width;
    g->crop_height = height;
}
