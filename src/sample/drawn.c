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

/* Begin with boxes of the image as coded: a place in it is mirrored, then swapped. */
static void begin_boxes(const struct pstk__drawn *drawn, struct pstk__boxes *boxes)
{
    const struct pstk__turn turn = drawn->turn;
    const double width = turn.swap ? drawn->height : drawn->width;
    const double height = turn.swap ? drawn->width : drawn->height;
    for (uint32_t i = 0; i < boxes->n; i++) {
        const struct pstk__sides e = boxes->boxes[i].whole;
        struct pstk__sides *to = &boxes->boxes[i].whole;
        if (turn.mirror_x) {
            to->min.x = width - e.max.x;
            to->max.x = width - e.min.x;
        }
        if (turn.mirror_y) {
            to->min.y = height - e.max.y;
            to->max.y = height - e.min.y;
        }
        if (turn.swap)
            *to = (struct pstk__sides){{to->min.y, to->min.x}, {to->max.y, to->max.x}};
    }
    pstk__boxes_begin(boxes, drawn->width, drawn->height);
}

void pstk__drawn_move_boxes(const struct pstk__drawn *drawn, struct pstk__boxes *boxes)
{
    struct pstk__view view = {.width = drawn->width, .height = drawn->height, .channels = 1};
    begin_boxes(drawn, boxes);
    for (uint32_t k = 0; k < drawn->n_prefix + drawn->n_changes;
         k += 1 + drawn->ops[k].n_children) { /* not the chains of a mixture */
        pstk__boxes_move(boxes, &drawn->ops[k], &view);
        view = pstk__op_view(&drawn->ops[k], &view);
    }
}

void pstk__drawn_move_points(const struct pstk__drawn *drawn, struct pstk__moved_points *points)
{
    const struct pstk__turn turn = drawn->turn;
    struct pstk__view view = {.width = drawn->width, .height = drawn->height, .channels = 1};
    for (uint32_t i = 0; i < points->n; i++) {
        struct pstk__point *p = &points->points[i];
        p->x = turn.mirror_x ? (turn.swap ? drawn->height : drawn->width) - p->x : p->x;
        p->y = turn.mirror_y ? (turn.swap ? drawn->width : drawn->height) - p->y : p->y;
        if (turn.swap)
            *p = (struct pstk__point){p->y, p->x};
    }
    pstk__moved_points_begin(points, drawn->width, drawn->height);
    for (uint32_t k = 0; k < drawn->n_prefix + drawn->n_changes;
         k += 1 + drawn->ops[k].n_children) {
        pstk__moved_points_move(points, &drawn->ops[k], &view);
        view = pstk__op_view(&drawn->ops[k], &view);
    }
}

int pstk__drawn_mirrors(const struct pstk__drawn *drawn, struct pstk__view *view)
{
    int mirrors = 0;
    *view = (struct pstk__view){.width = drawn->width, .height = drawn->height, .channels = 1};
    for (uint32_t k = 0; k < drawn->n_prefix + drawn->n_changes;
         k += 1 + drawn->ops[k].n_children) {
        mirrors ^= pstk__op_mirrors(&drawn->ops[k], view);
        *view = pstk__op_view(&drawn->ops[k], view);
    }
    return mirrors;
}

int pstk__drawn_init(struct pstk__drawn *drawn, const struct pstk__output *o,
                     const struct pstk__image_info *info, const struct pstk__random_key *key,
                     struct pstk__boxes *boxes, struct pstk_error *err)
{
    drawn->turn = turns[o->settings.exif_orientation ? info->orientation : 1];
    drawn->width = drawn->turn.swap ? info->height : info->width;
    drawn->height = drawn->turn.swap ? info->width : info->height;
    struct pstk__random_key own = *key;
    struct pstk__drawing drawing = {
        .ops = drawn->ops,
        .view = {.width = drawn->width, .height = drawn->height, .channels = o->settings.channels},
        .err = err,
        .boxes = boxes};
    if (boxes)
        begin_boxes(drawn, boxes);
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
