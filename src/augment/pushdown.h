/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pushdown: moves crops and flips before the ops that they follow, as far as no visible pixel
 * changes. Then invisible pixels are neither decoded nor changed. Pure.
 *
 *   colour, zoom out, crop, flip, resize  ->  part of the image, flipped; colour, border, resize
 */
#ifndef PSTK_PUSHDOWN_H
#define PSTK_PUSHDOWN_H

#include "augment/op.h"

/* The maximum number of ops that n ops become. */
#define PSTK__PUSHDOWN_ROOM(n) (2 * (n))

/* Take n fixed ops that change the picture of a geometry; each op's children follow it. Fold the
 * crops and flips that can be done first into the geometry, and write the other ops to `to`, which
 * has room for PSTK__PUSHDOWN_ROOM(n). Returns their number. `channels`: of the picture. */
uint32_t pstk__ops_push_down(struct pstk__geometry *g, uint32_t channels, struct pstk_op *to,
                             const struct pstk_op *ops, uint32_t n);
/* Return 1 when the op only moves pixels of a view: a crop without padding, or a flip. */
int pstk__op_keeps_pixels(const struct pstk_op *op, const struct pstk__view *view);

#endif
