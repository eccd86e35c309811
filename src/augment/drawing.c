/* SPDX-License-Identifier: Apache-2.0 */
#include "augment/drawing.h"

void pstk__drawing_add(struct pstk__drawing *drawing, const struct pstk_op *op)
{
    drawing->ops[drawing->n++] = *op;
    drawing->view = pstk__op_view(op, &drawing->view);
}

void pstk__drawing_add_drawn(struct pstk__drawing *drawing, const struct pstk_op *op,
                             struct pstk__random *r)
{
    const struct pstk__op_entry *entry = pstk__op_entry(op->kind);
    if (entry->draw)
        entry->draw(op, r, drawing);
    else if (!(entry->effects & PSTK__FINISHES))
        pstk__drawing_add(drawing, op);
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

void pstk__geometry_fold(struct pstk__geometry *g, const struct pstk_op *ops, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct pstk__op_entry *entry = pstk__op_entry(ops[i].kind);
        if (entry->fold)
            entry->fold(&ops[i], g);
    }
}
