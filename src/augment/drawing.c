/* SPDX-License-Identifier: Apache-2.0 */
#include "augment/drawing.h"

#include <string.h>

void pstk__drawing_add(struct pstk__drawing *drawing, const struct pstk_op *op)
{
    struct pstk_op *drawn = &drawing->ops[drawing->n++];
    *drawn = *op;
    drawn->flags |= drawing->flags;
    if (drawing->boxes && !drawing->in_mixture)
        pstk__boxes_move(drawing->boxes, drawn, &drawing->view);
    drawing->view = pstk__op_view(drawn, &drawing->view);
}

void pstk__drawing_add_drawn(struct pstk__drawing *drawing, const struct pstk_op *op,
                             struct pstk__random *r)
{
    const struct pstk__op_entry *entry = pstk__op_entry(op->kind);
    const uint32_t flags = drawing->flags;
    drawing->flags = op->flags & PSTK_OP_TENSOR;
    if (entry->draw)
        entry->draw(op, r, drawing);
    else if (!(entry->effects & PSTK__FINISHES))
        pstk__drawing_add(drawing, op);
    drawing->flags = flags;
}

void pstk__drawing_add_resize(const struct pstk_op *op, struct pstk__random *r,
                              struct pstk__drawing *drawing)
{
    struct pstk_op drawn = *op;
    drawn.filter = pstk__filter_draw(op->filter, r);
    pstk__drawing_add(drawing, &drawn);
}

int pstk__ops_draw(struct pstk__drawing *drawing, const struct pstk_op *ops, uint32_t begin,
                   uint32_t end, struct pstk__random_key key)
{
    for (uint32_t i = begin; i < end && drawing->rc == 0; i++) {
        struct pstk__random r;
        key.op = i;
        pstk__random_init(&r, &key);
        pstk__drawing_add_drawn(drawing, &ops[i], &r);
    }
    return drawing->rc;
}

static void fold_one(struct pstk__geometry *g, const struct pstk_op *op)
{
    const struct pstk__op_entry *entry = pstk__op_entry(op->kind);
    const int crops = (entry->effects & PSTK__CROPS) != 0;
    if (crops && !g->cropped)
        memcpy(g->fill, op->fill, sizeof g->fill);
    g->cropped |= (uint32_t)crops;
    if (entry->fold)
        entry->fold(op, g);
}

void pstk__geometry_fold(struct pstk__geometry *g, const struct pstk_op *ops, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        fold_one(g, &ops[i]);
}
