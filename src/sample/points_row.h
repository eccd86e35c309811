/* SPDX-License-Identifier: Apache-2.0 */
/*
 * points_row: the keypoints of a sample that follow an image output: moved by what was drawn for
 * the image, and written without the rows of dropped boxes. Pure.
 */
#ifndef PSTK_POINTS_ROW_H
#define PSTK_POINTS_ROW_H

#include "sample/drawn.h"

struct pstk__keypoints_source {
    const struct pstk_field *field;
    const void *data;                     /* its value */
    uint64_t size;                        /* bytes */
    const struct pstk__image_info *image; /* as coded */
    const struct pstk__drawn *drawn;      /* of the image output */
    const struct pstk__boxes *boxes;      /* as many as rows; NULL: all rows stay */
};

/* Write the rows that are left, and return their number. */
uint32_t pstk__keypoints_write(const struct pstk__keypoints_source *source,
                               const struct pstk__output *o, float *out);

#endif
