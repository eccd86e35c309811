/* SPDX-License-Identifier: Apache-2.0 */
/*
 * points_row: the keypoints and the polygons of a sample that follow an image output: moved by what
 * was drawn for the image, and written without those of dropped boxes. Pure.
 */
#ifndef PSTK_POINTS_ROW_H
#define PSTK_POINTS_ROW_H

#include "sample/image_ops.h"

struct pstk__points_source {
    const struct pstk_field *field;
    const void *data;                        /* its value */
    uint64_t size;                           /* bytes */
    struct pstk__image_info image;           /* as coded */
    const struct pstk__image_ops *image_ops; /* of the image output */
    const struct pstk__boxes *boxes;         /* with which rows are dropped; NULL: all rows stay */
};

/* Write the rows that are left, and return their number. */
uint32_t pstk__keypoints_write(const struct pstk__points_source *source,
                               const struct pstk__output *o, float *out);
/* Write corners [first, first + n) of polygons, wherever they are. Those that an operation moves to
 * its horizon or beyond are NaN. */
void pstk__corners_write(const struct pstk__points_source *source, const struct pstk__output *o,
                         uint64_t first, uint64_t n, float *out);

#endif
