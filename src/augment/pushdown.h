/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pushdown: crops and flips done before the ops that they follow, as far as no pixel that is shown
 * changes. Then pixels that nothing shows are neither decoded nor changed. Pure.
 *
 *   colour, zoom out, crop, flip, resize  ->  part of the image, flipped; colour, border, resize
 */
#ifndef PSTK_PUSHDOWN_H
#define PSTK_PUSHDOWN_H

#include "augment/op.h"

/* The most ops that n ops become. */
#define PSTK__PUSHDOWN_ROOM(n) (2 * (n))

/* Take n fixed ops that change the picture of a geometry, children of theirs after them. Fold into
 * the geometry what can be done first, and write the other ops to `to`, which has room for
 * PSTK__PUSHDOWN_ROOM(n). Returns their number. `channels`: of the picture. */
uint32_t pstk__ops_push_down(struct pstk__geometry *g, uint32_t channels, struct pstk_op *to,
                             const struct pstk_op *ops, uint32_t n);
/* 1: the op moves pixels of a view to other places, as one crop without padding, or flips. */
int pstk__op_keeps_pixels(const struct pstk_op *op, const struct pstk__view *view);

#endif
