/* SPDX-License-Identifier: Apache-2.0 */
#include "augment/boxes.h"

#include <math.h>

double pstk__sides_area(const struct pstk__sides *extent)
{
    return (extent->max.x - extent->min.x) * (extent->max.y - extent->min.y);
}

static double clip(double v, double most)
{
    return v < 0 ? 0 : v > most ? most : v;
}

/* Clip the shown box, and drop it if nothing is left. */
static void show(struct pstk__moved_box *box, uint32_t width, uint32_t height)
{
    struct pstk__sides *e = &box->shown;
    e->min.x = clip(e->min.x, width);
    e->max.x = clip(e->max.x, width);
    e->min.y = clip(e->min.y, height);
    e->max.y = clip(e->max.y, height);
    if (!(e->max.x > e->min.x && e->max.y > e->min.y))
        box->is_dropped = 1;
}

void pstk__boxes_begin(struct pstk__boxes *boxes, uint32_t width, uint32_t height)
{
    for (uint32_t i = 0; i < boxes->n; i++) {
        struct pstk__moved_box *box = &boxes->boxes[i];
        box->is_dropped = box->is_excluded;
        box->shown = box->whole;
        show(box, width, height);
    }
}

/* Replace a box by the bounding box of its four moved corners. 0: one of them has no position after
 * the op. */
static int move(struct pstk__sides *e, const struct pstk_op *op, const struct pstk__view *view)
{
    struct pstk__point p[4] = {
        {e->min.x, e->min.y}, {e->max.x, e->min.y}, {e->max.x, e->max.y}, {e->min.x, e->max.y}};
    pstk__op_entry(op->kind)->move(op, view, p, 4);
    e->min = e->max = p[0];
    for (int i = 0; i < 4; i++) {
        if (!isfinite(p[i].x) || !isfinite(p[i].y))
            return 0;
        e->min.x = p[i].x < e->min.x ? p[i].x : e->min.x;
        e->max.x = p[i].x > e->max.x ? p[i].x : e->max.x;
        e->min.y = p[i].y < e->min.y ? p[i].y : e->min.y;
        e->max.y = p[i].y > e->max.y ? p[i].y : e->max.y;
    }
    return 1;
}

/* Return whether the centre of a box lies in an image of this size, not on its edge. */
static int has_centre(const struct pstk__sides *e, const struct pstk__view *view)
{
    const double x = 0.5 * (e->min.x + e->max.x), y = 0.5 * (e->min.y + e->max.y);
    return x > 0 && x < view->width && y > 0 && y < view->height;
}

void pstk__boxes_move(struct pstk__boxes *boxes, const struct pstk_op *op,
                      const struct pstk__view *view)
{
    const struct pstk__op_entry *entry = pstk__op_entry(op->kind);
    const struct pstk__view after = pstk__op_view(op, view);
    for (uint32_t i = 0; i < boxes->n && entry->move; i++) {
        struct pstk__moved_box *box = &boxes->boxes[i];
        if (box->is_dropped)
            continue;
        if (!move(&box->whole, op, view) || !move(&box->shown, op, view) ||
            (entry->effects & PSTK__KEEPS_CENTRES && !has_centre(&box->shown, &after)))
            box->is_dropped = 1;
        else
            show(box, after.width, after.height);
    }
}
