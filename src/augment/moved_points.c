/* SPDX-License-Identifier: Apache-2.0 */
#include "augment/moved_points.h"

/* Mark the points that left the image. A NaN counts as outside. */
static void find_outside(struct pstk__moved_points *points, uint32_t width, uint32_t height)
{
    for (uint32_t i = 0; i < points->n; i++) {
        const struct pstk__point p = points->points[i];
        points->is_outside[i] |= !(p.x >= 0 && p.x <= width && p.y >= 0 && p.y <= height);
    }
}

void pstk__moved_points_begin(struct pstk__moved_points *points, uint32_t width, uint32_t height)
{
    for (uint32_t i = 0; i < points->n; i++)
        points->is_outside[i] = 0;
    find_outside(points, width, height);
}

void pstk__moved_points_move(struct pstk__moved_points *points, const struct pstk_op *op,
                             const struct pstk__view *view)
{
    const struct pstk__op_entry *entry = pstk__op_entry(op->kind);
    const struct pstk__view after = pstk__op_view(op, view);
    if (!entry->move)
        return;
    entry->move(op, view, points->points, points->n);
    find_outside(points, after.width, after.height);
}

/* Decide by the sign of the area that two sides of a square span, in the middle of the image. */
int pstk__op_mirrors(const struct pstk_op *op, const struct pstk__view *view)
{
    const struct pstk__op_entry *entry = pstk__op_entry(op->kind);
    const double x = 0.5 * view->width, y = 0.5 * view->height;
    struct pstk__point p[3] = {{x, y}, {x + 1, y}, {x, y + 1}};
    if (!entry->move)
        return 0;
    entry->move(op, view, p, 3);
    return (p[1].x - p[0].x) * (p[2].y - p[0].y) < (p[2].x - p[0].x) * (p[1].y - p[0].y);
}
