/* SPDX-License-Identifier: Apache-2.0 */
#include "sample/image_ops.h"

/* The turns of EXIF 2.3, tag 0x0112. */
static const struct pstk__turn turns[9] = {
    [1] = {0, 0, 0}, [2] = {0, 1, 0}, [3] = {0, 1, 1}, [4] = {0, 0, 1},
    [5] = {1, 0, 0}, [6] = {1, 0, 1}, [7] = {1, 1, 1}, [8] = {1, 1, 0},
};

static int erases(const struct pstk_op *op)
{
    return (pstk__op_entry(op->kind)->effects & PSTK__ERASES) != 0;
}

/* Turn boxes of the coded image upright: mirror their positions, then swap. */
static void begin_boxes(const struct pstk__image_ops *image_ops, struct pstk__boxes *boxes)
{
    const struct pstk__turn turn = image_ops->turn;
    const double width = turn.swap ? image_ops->height : image_ops->width;
    const double height = turn.swap ? image_ops->width : image_ops->height;
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
    pstk__boxes_begin(boxes, image_ops->width, image_ops->height);
}

void pstk__image_ops_move_boxes(const struct pstk__image_ops *image_ops, struct pstk__boxes *boxes)
{
    struct pstk__view view = {
        .width = image_ops->width, .height = image_ops->height, .channels = 1};
    begin_boxes(image_ops, boxes);
    for (uint32_t k = 0; k < image_ops->n_prefix + image_ops->n_changes;
         k += 1 + image_ops->ops[k].n_children) { /* skip the chains of a MIX */
        pstk__boxes_move(boxes, &image_ops->ops[k], &view);
        view = pstk__op_view(&image_ops->ops[k], &view);
    }
}

void pstk__image_ops_move_points(const struct pstk__image_ops *image_ops,
                                 struct pstk__moved_points *points)
{
    const struct pstk__turn turn = image_ops->turn;
    struct pstk__view view = {
        .width = image_ops->width, .height = image_ops->height, .channels = 1};
    for (uint32_t i = 0; i < points->n; i++) {
        struct pstk__point *p = &points->points[i];
        p->x = turn.mirror_x ? (turn.swap ? image_ops->height : image_ops->width) - p->x : p->x;
        p->y = turn.mirror_y ? (turn.swap ? image_ops->width : image_ops->height) - p->y : p->y;
        if (turn.swap)
            *p = (struct pstk__point){p->y, p->x};
    }
    pstk__moved_points_begin(points, image_ops->width, image_ops->height);
    for (uint32_t k = 0; k < image_ops->n_prefix + image_ops->n_changes;
         k += 1 + image_ops->ops[k].n_children) {
        pstk__moved_points_move(points, &image_ops->ops[k], &view);
        view = pstk__op_view(&image_ops->ops[k], &view);
    }
}

int pstk__image_ops_mirrors(const struct pstk__image_ops *image_ops, struct pstk__view *view)
{
    int mirrors = 0;
    *view =
        (struct pstk__view){.width = image_ops->width, .height = image_ops->height, .channels = 1};
    for (uint32_t k = 0; k < image_ops->n_prefix + image_ops->n_changes;
         k += 1 + image_ops->ops[k].n_children) {
        mirrors ^= pstk__op_mirrors(&image_ops->ops[k], view);
        *view = pstk__op_view(&image_ops->ops[k], view);
    }
    return mirrors;
}

int pstk__image_ops_init(struct pstk__image_ops *image_ops, const struct pstk__output *o,
                         const struct pstk__image_info *info, const struct pstk__random_key *key,
                         struct pstk__boxes *boxes, struct pstk_error *err)
{
    image_ops->turn = turns[o->settings.image.exif_orientation ? info->orientation : 1];
    image_ops->width = image_ops->turn.swap ? info->height : info->width;
    image_ops->height = image_ops->turn.swap ? info->width : info->height;
    struct pstk__random_key own = *key;
    struct pstk__sampled_ops sampled = {.ops = image_ops->ops,
                                        .view = {.width = image_ops->width,
                                                 .height = image_ops->height,
                                                 .channels = o->image.in_channels},
                                        .err = err,
                                        .boxes = boxes};
    if (boxes)
        begin_boxes(image_ops, boxes);
    own.group = o->settings.image.random_group;
    int rc = pstk__ops_draw(&sampled, o->image.ops, 0, o->image.n_prefix, own);
    image_ops->n_prefix = sampled.n;
    image_ops->n_erasures = 0;
    if (rc == 0)
        rc = pstk__ops_draw(&sampled, o->image.ops, o->image.n_prefix, o->image.n_ops, own);
    while (sampled.n > image_ops->n_prefix && erases(&image_ops->ops[sampled.n - 1])) {
        sampled.n--;
        image_ops->n_erasures++;
    }
    image_ops->n_changes = sampled.n - image_ops->n_prefix;
    return rc;
}
