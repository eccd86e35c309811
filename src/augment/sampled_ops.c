/* SPDX-License-Identifier: Apache-2.0 */
#include "augment/sampled_ops.h"

#include <string.h>

void pstk__sampled_ops_add(struct pstk__sampled_ops *sampled, const struct pstk_op *op)
{
    struct pstk_op *drawn = &sampled->ops[sampled->n++];
    *drawn = *op;
    drawn->flags |= sampled->flags;
    if (sampled->boxes && !sampled->in_chains)
        pstk__boxes_move(sampled->boxes, drawn, &sampled->view);
    sampled->view = pstk__op_view(drawn, &sampled->view);
}

void pstk__sampled_ops_add_draw(struct pstk__sampled_ops *sampled, const struct pstk_op *op,
                                struct pstk__random *r)
{
    const struct pstk__op_entry *entry = pstk__op_entry(op->kind);
    const uint32_t flags = sampled->flags;
    sampled->flags = op->flags & PSTK_OP_TENSOR;
    if (entry->draw)
        entry->draw(op, r, sampled);
    else if (!(entry->effects & PSTK__FINISHES))
        pstk__sampled_ops_add(sampled, op);
    sampled->flags = flags;
}

void pstk__sampled_ops_add_resize(const struct pstk_op *op, struct pstk__random *r,
                                  struct pstk__sampled_ops *sampled)
{
    struct pstk_op drawn = *op;
    drawn.filter = pstk__filter_draw(op->filter, r);
    pstk__sampled_ops_add(sampled, &drawn);
}

int pstk__ops_draw(struct pstk__sampled_ops *sampled, const struct pstk_op *ops, uint32_t begin,
                   uint32_t end, struct pstk__random_key key)
{
    for (uint32_t i = begin; i < end && sampled->rc == 0; i++) {
        struct pstk__random r;
        key.op = i;
        pstk__random_init(&r, &key);
        pstk__sampled_ops_add_draw(sampled, &ops[i], &r);
    }
    return sampled->rc;
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
