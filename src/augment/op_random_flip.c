/* SPDX-License-Identifier: Apache-2.0 */
/* op_random_flip: mirrors left to right with a probability. */
#include "augment/op.h"

#include "base/error.h"

struct pstk_op pstk_random_flip(double probability)
{
    return (struct pstk_op){.kind = PSTK_OP_RANDOM_FLIP, .params = {probability}};
}

static int check(const struct pstk_op *op, struct pstk_error *err)
{
    if (!(op->params[0] >= 0.0 && op->params[0] <= 1.0))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "probability: value is %g; must be from 0 to 1", op->params[0]);
    const int rc = pstk__op_check_no_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, 1, err);
}

static void apply(const struct pstk_op *op, struct pstk__random *r, struct pstk__geometry *g)
{
    g->flip ^= pstk__random_unit(r) < op->params[0];
}

const struct pstk__op_entry pstk__op_random_flip = {
    .kind = PSTK_OP_RANDOM_FLIP,
    .effects = PSTK__FLIPS,
    .name = "random flip",
    .check = check,
    .apply = apply,
};
