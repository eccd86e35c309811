/* SPDX-License-Identifier: Apache-2.0 */
#include "sample/drawn.h"

/* EXIF 2.3, tag 0x0112. */
static const struct pstk__turn turns[9] = {
    [1] = {0, 0, 0}, [2] = {0, 1, 0}, [3] = {0, 1, 1}, [4] = {0, 0, 1},
    [5] = {1, 0, 0}, [6] = {1, 0, 1}, [7] = {1, 1, 1}, [8] = {1, 1, 0},
};

static int erases(const struct pstk_op *op)
{
    return (pstk__op_entry(op->kind)->effects & PSTK__ERASES) != 0;
}

int pstk__drawn_init(struct pstk__drawn *drawn, const struct pstk__output *o,
                     const struct pstk__image_info *info, const struct pstk__random_key *key,
                     struct pstk_error *err)
{
    drawn->turn = turns[o->settings.exif_orientation ? info->orientation : 1];
    drawn->width = drawn->turn.swap ? info->height : info->width;
    drawn->height = drawn->turn.swap ? info->width : info->height;
    struct pstk__random_key own = *key;
    struct pstk__drawing drawing = {
        .ops = drawn->ops,
        .view = {.width = drawn->width, .height = drawn->height, .channels = o->settings.channels},
        .err = err};
    own.group = o->settings.random_group;
    int rc = pstk__ops_draw(&drawing, o->settings.ops, 0, o->n_prefix, own);
    drawn->n_prefix = drawing.n;
    drawn->n_erasures = 0;
    if (rc == 0)
        rc = pstk__ops_draw(&drawing, o->settings.ops, o->n_prefix, o->settings.n_ops, own);
    while (drawing.n > drawn->n_prefix && erases(&drawn->ops[drawing.n - 1])) {
        drawing.n--;
        drawn->n_erasures++;
    }
    drawn->n_changes = drawing.n - drawn->n_prefix;
    return rc;
}
