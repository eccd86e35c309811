/* SPDX-License-Identifier: Apache-2.0 */
/*
 * points_row: the keypoints and the polygons of a sample that follow an image output. They are
 * moved by the ops drawn for the image, and written without those of dropped boxes. Pure.
 */
#ifndef PSTK_POINTS_ROW_H
#define PSTK_POINTS_ROW_H

#include "sample/image_ops.h"

struct pstk__points_source {
    const struct pstk_field *field;
    const void *data;                        /* value of the field */
    uint64_t size;                           /* bytes */
    struct pstk__image_info image;           /* as coded */
    const struct pstk__image_ops *image_ops; /* drawn for the image output */
    const struct pstk__boxes *boxes; /* their dropped boxes drop rows; NULL: all rows stay */
};

/* Write the rows that are not dropped. Returns their number. */
uint32_t pstk__keypoints_write(const struct pstk__points_source *source,
                               const struct pstk__output *o, float *out);
/* Write corners [first, first + n) of polygons, at any position. Corners that an operation moves to
 * its horizon or beyond become NaN. */
void pstk__corners_write(const struct pstk__points_source *source, const struct pstk__output *o,
                         uint64_t first, uint64_t n, float *out);

#endif
