/* SPDX-License-Identifier: Apache-2.0 */
/* coordinates: the numbers of boxes, keypoints and polygons. Pure. The writer checks them before it
 * takes a value, a loader before it moves them. */
#ifndef PSTK_COORDINATES_H
#define PSTK_COORDINATES_H

#include <penstock/format.h>

/* The element at `data`, which need not be aligned. Whole numbers lose what is beyond 2^53; no
 * image has that many pixels. */
double pstk__coordinate(const void *data, uint32_t dtype);
/*
 * Check a value of the field, whose size is right: boxes are finite, and max is not below min;
 * points are finite unless their visibility is 0, and visibilities are finite, 0 or more; corners
 * of polygons are finite. Other kinds are always right. Returns NULL, or what is wrong with the
 * first such, as a phrase in `text`.
 */
const char *pstk__coordinates_check(const struct pstk_field *field, const void *data, uint64_t size,
                                    char text[200]);

#endif
