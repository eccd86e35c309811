/* SPDX-License-Identifier: Apache-2.0 */
/* coordinates: the numbers of boxes, keypoints and polygons. Pure. The writer checks them before it
 * takes a value, the loader before it moves them. */
#ifndef PSTK_COORDINATES_H
#define PSTK_COORDINATES_H

#include <penstock/format.h>

/* Return the element at `data`, which need not be aligned. Integers beyond 2^53 lose low bits; no
 * image has that many pixels. */
double pstk__coordinate(const void *data, uint32_t dtype);
/*
 * Check a value of the field, whose size is right. Boxes are finite, and max is not below min.
 * Points are finite unless their visibility is 0; visibilities are finite and at least 0. Corners
 * of polygons are finite. Any value of another kind is accepted. Returns NULL, or a phrase in
 * `text` about the first error.
 */
const char *pstk__coordinates_check(const struct pstk_field *field, const void *data, uint64_t size,
                                    char text[200]);

#endif
