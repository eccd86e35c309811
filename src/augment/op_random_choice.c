/* SPDX-License-Identifier: Apache-2.0 */
/* op_random_choice: operations that choose among their children: torchvision's RandomApply,
 * RandomChoice and RandomOrder. */
#include "augment/sampled_ops.h"

#include "base/error.h"

#define MAX_CHILDREN 64
#define FAIL(...) pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, __VA_ARGS__)

struct pstk_op pstk_random_apply(const struct pstk_op *children, uint32_t n_children,
                                 double probability)
{
    struct pstk_op op = {
        .kind = PSTK_OP_RANDOM_APPLY, .children = children, .n_children = n_children};
    op.params.random_apply = (struct pstk_probability_params){probability};
    return op;
}

struct pstk_op pstk_random_choice(const struct pstk_op *children, uint32_t n_children)
{
    return (struct pstk_op){
        .kind = PSTK_OP_RANDOM_CHOICE, .children = children, .n_children = n_children};
}

struct pstk_op pstk_random_order(const struct pstk_op *children, uint32_t n_children)
{
    return (struct pstk_op){
        .kind = PSTK_OP_RANDOM_ORDER, .children = children, .n_children = n_children};
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* Check everything but the parameters. pstk__ops_check checks the children themselves. */
static int check_parent(const struct pstk_op *op, uint32_t n_params, struct pstk_error *err)
{
    if (op->n_children < 1 || op->n_children > MAX_CHILDREN || !op->children)
        return FAIL("n_children: value is %u; must be from 1 to %d, and children an array of them",
                    op->n_children, MAX_CHILDREN);
    const int rc = pstk__op_check_no_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, n_params, err);
}

static int check_apply(const struct pstk_op *op, struct pstk_error *err)
{
    if (!(op->params.random_apply.probability >= 0.0 && op->params.random_apply.probability <= 1.0))
        return FAIL("probability: value is %g; must be from 0 to 1",
                    op->params.random_apply.probability);
    return check_parent(op, 1, err);
}

static double weight_sum(const struct pstk_op *op)
{
    double sum = 0;
    for (uint32_t i = 0; i < PSTK_MAX_OP_PARAMS; i++)
        sum += op->params.random_choice.weights[i];
    return sum;
}

static int check_choice(const struct pstk_op *op, struct pstk_error *err)
{
    uint32_t n_weights = 0;
    for (uint32_t i = 0; i < PSTK_MAX_OP_PARAMS; i++) {
        if (!(op->params.random_choice.weights[i] >= 0 &&
              op->params.random_choice.weights[i] <= 1e6))
            return FAIL("weights[%u]: value is %g; must be from 0 to 1e6", i,
                        op->params.random_choice.weights[i]);
        n_weights = op->params.random_choice.weights[i] > 0 ? i + 1 : n_weights;
    }
    if (n_weights > 0 && op->n_children > PSTK_MAX_OP_PARAMS)
        return FAIL(
            "weights: at most %u children can have weights, but there are %u (set no weights)",
            PSTK_MAX_OP_PARAMS, op->n_children);
    return check_parent(op, n_weights < op->n_children ? n_weights : op->n_children, err);
}

static int check_order(const struct pstk_op *op, struct pstk_error *err)
{
    return check_parent(op, 0, err);
}

/* ---- draws ----------------------------------------------------------------------------------- */

static void draw_apply(const struct pstk_op *op, struct pstk__random *r,
                       struct pstk__sampled_ops *to)
{
    if (pstk__random_unit(r) < op->params.random_apply.probability)
        for (uint32_t i = 0; i < op->n_children; i++)
            pstk__sampled_ops_add_draw(to, &op->children[i], r);
}

/* Draw a child by weight; without weights all children are equally likely. */
static void draw_choice(const struct pstk_op *op, struct pstk__random *r,
                        struct pstk__sampled_ops *to)
{
    const double sum = weight_sum(op);
    uint32_t chosen = 0;
    if (sum > 0) {
        double at = pstk__random_unit(r) * sum;
        for (uint32_t i = 0; i < op->n_children && at >= 0;
             at -= op->params.random_choice.weights[i++])
            chosen = op->params.random_choice.weights[i] > 0 ? i : chosen;
    } else {
        chosen = (uint32_t)pstk__random_below(r, op->n_children);
    }
    pstk__sampled_ops_add_draw(to, &op->children[chosen], r);
}

static void draw_order(const struct pstk_op *op, struct pstk__random *r,
                       struct pstk__sampled_ops *to)
{
    uint32_t order[MAX_CHILDREN];
    pstk__random_order(r, order, op->n_children);
    for (uint32_t i = 0; i < op->n_children; i++)
        pstk__sampled_ops_add_draw(to, &op->children[order[i]], r);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static uint32_t max_of_all(const struct pstk_op *op)
{
    return pstk__ops_max(op->children, op->n_children);
}

static uint32_t max_of_one(const struct pstk_op *op)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < op->n_children; i++) {
        const uint32_t n = pstk__ops_max(&op->children[i], 1);
        most = n > most ? n : most;
    }
    return most;
}

static uint64_t scratch(const struct pstk_op *op, const struct pstk__largest *in, uint32_t channels)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < op->n_children; i++) {
        const struct pstk__op_tensor work = pstk__op_work(&op->children[i]);
        const uint64_t n = work.scratch ? work.scratch(&op->children[i], in, channels) : 0;
        most = n > most ? n : most;
    }
    return most;
}

/* ---- entries --------------------------------------------------------------------------------- */

#define ENTRY(member, number, words, ...)                                                          \
    const struct pstk__op_entry pstk__op_random_##member = {.kind = number,                        \
                                                            .effects = PSTK__PICTURES,             \
                                                            .uses = PSTK__USES_CHILDREN,           \
                                                            .name = words,                         \
                                                            .scratch = scratch,                    \
                                                            __VA_ARGS__}

ENTRY(apply, PSTK_OP_RANDOM_APPLY, "random apply", .check = check_apply, .draw = draw_apply,
      .max_ops = max_of_all);
ENTRY(choice, PSTK_OP_RANDOM_CHOICE, "random choice", .check = check_choice, .draw = draw_choice,
      .max_ops = max_of_one);
ENTRY(order, PSTK_OP_RANDOM_ORDER, "random order", .check = check_order, .draw = draw_order,
      .max_ops = max_of_all);
