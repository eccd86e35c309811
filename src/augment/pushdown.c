/* SPDX-License-Identifier: Apache-2.0 */
#include "augment/pushdown.h"

#include "augment/sampled_ops.h"

#include <string.h>

/* The list of ops that is written. */
struct rest {
    struct pstk_op *ops;
    uint32_t n;
};

static int moves(const struct pstk_op *op)
{
    const struct pstk__op_entry *entry = pstk__op_entry(op->kind);
    const struct pstk__view whole = {0}; /* before any crop: only mirrored edges need a picture */
    return entry->effects & (PSTK__CROPS | PSTK__FLIPS) && !(entry->effects & PSTK__RESIZES) &&
           entry->fold && !(entry->needs_picture && entry->needs_picture(op, &whole));
}

static int is_by_pixel(const struct pstk_op *op)
{
    const struct pstk__op_entry *entry = pstk__op_entry(op->kind);
    return entry->table || entry->effects & (PSTK__COLOURS | PSTK__BY_PIXEL);
}

/* Return 1 when the crop rectangle is inside of the picture. */
static int is_inside(const struct pstk__geometry *g)
{
    return g->crop_left >= 0 && g->crop_top >= 0 &&
           g->crop_left + g->crop_width <= g->image_width &&
           g->crop_top + g->crop_height <= g->image_height;
}

/* Return 1 when no pixel of the picture is in the crop rectangle. */
static int is_empty(const struct pstk__geometry *g)
{
    return g->crop_left >= g->image_width || g->crop_top >= g->image_height ||
           g->crop_left + g->crop_width <= 0 || g->crop_top + g->crop_height <= 0;
}

int pstk__op_keeps_pixels(const struct pstk_op *op, const struct pstk__view *view)
{
    struct pstk__geometry g;
    if (!moves(op))
        return 0;
    pstk__geometry_init(&g, view->width, view->height);
    pstk__geometry_fold(&g, op, 1);
    return is_inside(&g);
}

/* Fold a crop or a flip into earlier ones. 0: it is impossible, because the result may show pixels
 * that an earlier one removed, shows nothing, or exceeds the size limit of pictures. */
static int fold(struct pstk__geometry *g, const struct pstk_op *op)
{
    const struct pstk__view view = {.width = g->crop_width, .height = g->crop_height};
    struct pstk__geometry next = *g;
    if (g->cropped && !pstk__op_keeps_pixels(op, &view))
        return 0;
    pstk__geometry_fold(&next, op, 1);
    if (is_empty(&next) || next.crop_width > PSTK__MAX_PICTURE_SIDE ||
        next.crop_height > PSTK__MAX_PICTURE_SIDE)
        return 0;
    *g = next;
    return 1;
}

static void append(struct rest *rest, struct pstk_op op, const uint8_t fill[4])
{
    memcpy(op.fill, fill, sizeof op.fill);
    rest->ops[rest->n++] = op;
}

/* Return the part of the picture that is in the crop rectangle. */
static struct pstk__box inner(const struct pstk__geometry *g)
{
    const int64_t left = g->crop_left > 0 ? g->crop_left : 0;
    const int64_t top = g->crop_top > 0 ? g->crop_top : 0;
    const int64_t right = g->crop_left + g->crop_width, end = g->crop_top + g->crop_height;
    return (struct pstk__box){
        .left = (uint32_t)left,
        .top = (uint32_t)top,
        .width = (uint32_t)((right < g->image_width ? right : g->image_width) - left),
        .height = (uint32_t)((end < g->image_height ? end : g->image_height) - top)};
}

/* Write the crop and the flips of a stretch; if no op is before it, fold them into the geometry
 * instead. */
static void write_part(struct rest *rest, struct pstk__geometry *first,
                       const struct pstk__geometry *moved, const struct pstk__box *part)
{
    static const uint8_t black[4] = {0};
    const int is_whole = part->width == moved->image_width && part->height == moved->image_height;
    if (first) {
        pstk__geometry_crop(first, part->left, part->top, part->width, part->height);
        first->flip ^= moved->flip;
        first->flip_vertical ^= moved->flip_vertical;
        return;
    }
    if (!is_whole)
        append(rest,
               pstk_crop_at((int32_t)part->top, (int32_t)part->left, part->height, part->width),
               black);
    if (moved->flip)
        append(rest, pstk_flip_horizontal(), black);
    if (moved->flip_vertical)
        append(rest, pstk_flip_vertical(), black);
}

/* Append the padding around the visible part of a picture, whose flips are already done. */
static void write_padding(struct rest *rest, const struct pstk__geometry *moved,
                          const struct pstk__box *part)
{
    int64_t left = part->left - moved->crop_left, top = part->top - moved->crop_top;
    if (part->width == moved->crop_width && part->height == moved->crop_height)
        return;
    if (moved->flip)
        left = (int64_t)moved->crop_width - part->width - left;
    if (moved->flip_vertical)
        top = (int64_t)moved->crop_height - part->height - top;
    append(rest, pstk_crop_at(-(int32_t)top, -(int32_t)left, moved->crop_height, moved->crop_width),
           moved->fill);
}

/*
 * Write the first of n ops: the longest stretch of crops and flips, folded together, and of ops
 * that change each pixel by itself, in their order. These ops do not change padding, so no padding
 * may come before them. first: the geometry, while no op is before the stretch. Returns the number
 * of ops in the stretch.
 */
static uint32_t write_stretch(struct rest *rest, struct pstk__geometry *first,
                              struct pstk__view *view, const struct pstk_op *ops, uint32_t n)
{
    struct pstk__geometry moved;
    uint32_t n_ops = 0;
    pstk__geometry_init(&moved, view->width, view->height);
    while (n_ops < n && (moves(&ops[n_ops]) ? fold(&moved, &ops[n_ops])
                                            : is_by_pixel(&ops[n_ops]) && is_inside(&moved)))
        n_ops++;
    const struct pstk__box part = inner(&moved);
    write_part(rest, first, &moved, &part);
    for (uint32_t k = 0; k < n_ops; k++) {
        if (!moves(&ops[k]))
            rest->ops[rest->n++] = ops[k];
        *view = pstk__op_view(&ops[k], view);
    }
    write_padding(rest, &moved, &part);
    return n_ops;
}

uint32_t pstk__ops_push_down(struct pstk__geometry *g, uint32_t channels, struct pstk_op *to,
                             const struct pstk_op *ops, uint32_t n)
{
    struct pstk__view view = {
        .width = g->crop_width, .height = g->crop_height, .channels = channels};
    struct rest rest = {.ops = to};
    for (uint32_t i = 0; i < n;) {
        const uint32_t n_ops = write_stretch(&rest, rest.n == 0 ? g : NULL, &view, ops + i, n - i);
        const uint32_t n_more = n_ops > 0 ? 0 : 1 + ops[i].n_children; /* 0 in a stretch */
        for (uint32_t k = 0; k < n_more; k++)
            rest.ops[rest.n++] = ops[i + k];
        if (n_more > 0)
            view = pstk__op_view(&ops[i], &view);
        i += n_ops + n_more;
    }
    return rest.n;
}
