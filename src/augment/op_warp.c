/* SPDX-License-Identifier: Apache-2.0 */
/* op_warp: Pillow's Image.transform by a matrix, and Image.rotate: fixed operations, which random
 * affine operations and policies draw. Filters: nearest, the default, bilinear and bicubic. */
#include "augment/canvas.h"
#include "augment/op_tensor.h"

#include "base/error.h"
#include "pixels/rotation.h"
#include "pixels/warp_matrix.h"

#include <math.h>

#define MAX_CENTER 1e9 /* pixels; also the maximum scale */
#define MAX_ANGLE 3600.0
#define FAIL(...) pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, __VA_ARGS__)

struct pstk_op pstk_affine(const double *matrix, uint32_t filter)
{
    struct pstk_op op = {.kind = PSTK_OP_AFFINE, .filter = filter};
    for (int i = 0; i < 6; i++)
        op.params.affine.matrix[i] = matrix[i];
    return op;
}

struct pstk_op pstk_rotate(double angle, uint32_t filter, uint32_t expand)
{
    struct pstk_op op = {.kind = PSTK_OP_ROTATE, .filter = filter};
    op.params.rotate = (struct pstk_rotate_params){angle, expand ? 1 : 0};
    return op;
}

int pstk_affine_matrix(double *matrix, double angle, const double *translate, double scale,
                       const double *shear, const double *center)
{
    const struct pstk__affine_params params = {.angle = angle,
                                               .translate = {translate[0], translate[1]},
                                               .scale = scale,
                                               .shear = {shear[0], shear[1]},
                                               .center = {center[0], center[1]}};
    if (!(fabs(angle) < MAX_ANGLE && fabs(shear[0]) < MAX_ANGLE && fabs(shear[1]) < MAX_ANGLE &&
          scale > 0 && scale < MAX_CENTER))
        return PSTK_EINVAL;
    pstk__warp_affine_matrix(&params, matrix);
    for (int i = 0; i < 6; i++)
        if (!isfinite(matrix[i]))
            return PSTK_EINVAL;
    return 0;
}

int pstk_perspective_matrix(double *matrix, const double *start, const double *end)
{
    return pstk__warp_perspective_matrix(start, end, matrix) < 0 ? PSTK_EINVAL : 0;
}

/* ---- checks ---------------------------------------------------------------------------------- */

int pstk__op_check_warp_filter(const struct pstk_op *op, struct pstk_error *err)
{
    if (op->filter != PSTK_FILTER_DEFAULT && op->filter != PSTK_FILTER_NEAREST &&
        op->filter != PSTK_FILTER_BILINEAR && op->filter != PSTK_FILTER_BICUBIC)
        return FAIL("filter: value is %u; must be PSTK_FILTER_NEAREST, BILINEAR or BICUBIC, or 0 "
                    "for NEAREST",
                    op->filter);
    return 0;
}

int pstk__op_check_center(const double center[2], struct pstk_error *err)
{
    if (!(fabs(center[0]) <= MAX_CENTER && fabs(center[1]) <= MAX_CENTER))
        return FAIL("center: value is (%g, %g); must be finite, and at most 1e9", center[0],
                    center[1]);
    return 0;
}

static int check_matrix(const struct pstk_op *op, const double *matrix, uint32_t n,
                        struct pstk_error *err)
{
    for (uint32_t i = 0; i < n; i++)
        if (!isfinite(matrix[i]))
            return FAIL("matrix[%u]: value is %g; must be finite", i, matrix[i]);
    int rc = pstk__op_check_warp_filter(op, err);
    if (rc == 0)
        rc = pstk__op_check_no_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, n, err);
}

static int check_affine(const struct pstk_op *op, struct pstk_error *err)
{
    return check_matrix(op, op->params.affine.matrix, 6, err);
}

static int check_perspective(const struct pstk_op *op, struct pstk_error *err)
{
    return check_matrix(op, op->params.perspective.matrix, 8, err);
}

static int check_rotate(const struct pstk_op *op, struct pstk_error *err)
{
    const struct pstk_rotate_params *p = &op->params.rotate;
    if (!(fabs(p->angle) <= MAX_ANGLE))
        return FAIL("angle: value is %g; must be from -%g to %g degrees", p->angle, MAX_ANGLE,
                    MAX_ANGLE);
    if (p->expand != 0 && p->expand != 1)
        return FAIL("expand: value is %g; must be 0 or 1", p->expand);
    if (p->has_center != 0 && p->has_center != 1)
        return FAIL("has_center: value is %g; must be 0 or 1", p->has_center);
    int rc = pstk__op_check_center(p->center, err);
    if (rc == 0)
        rc = pstk__op_check_warp_filter(op, err);
    if (rc == 0)
        rc = pstk__op_check_no_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, 5, err);
}

/* ---- changes --------------------------------------------------------------------------------- */

static uint32_t warp_filter(const struct pstk_op *op)
{
    if (op->filter == PSTK_FILTER_BILINEAR)
        return PSTK__WARP_BILINEAR;
    return op->filter == PSTK_FILTER_BICUBIC ? PSTK__WARP_BICUBIC : PSTK__WARP_NEAREST;
}

static int change_affine(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    const struct pstk__picture *in = &canvas->picture;
    const struct pstk__picture out =
        pstk__canvas_spare(canvas, in->width, in->height, in->channels);
    pstk__warp_affine(canvas->kernels->warp, &out, in, op->params.affine.matrix, warp_filter(op),
                      op->fill);
    pstk__canvas_swap(canvas, &out);
    return 0;
}

static int change_perspective(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    const struct pstk__picture *in = &canvas->picture;
    const struct pstk__picture out =
        pstk__canvas_spare(canvas, in->width, in->height, in->channels);
    pstk__warp_perspective(canvas->kernels->warp, &out, in, op->params.perspective.matrix,
                           warp_filter(op), op->fill);
    pstk__canvas_swap(canvas, &out);
    return 0;
}

static void move_affine(const struct pstk_op *op, const struct pstk__view *view,
                        struct pstk__point *points, uint32_t n)
{
    const double *m = op->params.affine.matrix;
    (void)view;
    pstk__points_warp(points, n, (double[8]){m[0], m[1], m[2], m[3], m[4], m[5], 0, 0});
}

static void move_perspective(const struct pstk_op *op, const struct pstk__view *view,
                             struct pstk__point *points, uint32_t n)
{
    (void)view;
    pstk__points_warp(points, n, op->params.perspective.matrix);
}

/* ---- rotation -------------------------------------------------------------------------------- */

struct pstk__rotation pstk__op_rotation(const struct pstk_op *op, uint32_t width, uint32_t height)
{
    const struct pstk__rotation_params params = {
        .angle = op->params.rotate.angle,
        .expand = op->params.rotate.expand == 1,
        .center = op->params.rotate.has_center == 1 ? op->params.rotate.center : NULL};
    struct pstk__rotation rotation;
    if (op->flags & PSTK_OP_TENSOR)
        pstk__tensor_rotation_init(&rotation, &params, width, height);
    else
        pstk__rotation_init(&rotation, &params, width, height);
    return rotation;
}

static int change_rotate(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    const struct pstk__picture *in = &canvas->picture;
    const struct pstk__rotation rotation = pstk__op_rotation(op, in->width, in->height);
    const struct pstk__picture out =
        pstk__canvas_spare(canvas, rotation.width, rotation.height, in->channels);
    pstk__warp_rotation(canvas->kernels->warp, &out, in, &rotation, warp_filter(op), op->fill);
    pstk__canvas_swap(canvas, &out);
    return 0;
}

static void size_rotate(const struct pstk_op *op, struct pstk__view *view)
{
    if (op->params.rotate.expand != 1 || view->width == 0 || view->height == 0)
        return;
    const struct pstk__rotation rotation = pstk__op_rotation(op, view->width, view->height);
    view->width = rotation.width;
    view->height = rotation.height;
}

/* Bound a turned picture. No side is longer than the diagonal, which is shorter than both sides
 * together, rounded outwards on both ends. */
void pstk__largest_turned(struct pstk__largest *largest)
{
    const uint32_t side = largest->width + largest->height + 2;
    *largest =
        (struct pstk__largest){.width = side, .height = side, .n_pixels = (uint64_t)side * side};
}

/* Turn points of an image of this size by quarters, counter-clockwise. */
static void turn_points(uint32_t turn, const struct pstk__view *view, struct pstk__point *points,
                        uint32_t n)
{
    const double width = view->width, height = view->height;
    for (uint32_t i = 0; i < n; i++) {
        const struct pstk__point p = points[i];
        if (turn == PSTK__TURN_90)
            points[i] = (struct pstk__point){p.y, width - p.x};
        else if (turn == PSTK__TURN_180)
            points[i] = (struct pstk__point){width - p.x, height - p.y};
        else if (turn == PSTK__TURN_270)
            points[i] = (struct pstk__point){height - p.y, p.x};
    }
}

static void move_rotate(const struct pstk_op *op, const struct pstk__view *view,
                        struct pstk__point *points, uint32_t n)
{
    const struct pstk__rotation rotation = pstk__op_rotation(op, view->width, view->height);
    const double *m = rotation.m;
    if (rotation.exact)
        turn_points(rotation.turn, view, points, n);
    else
        pstk__points_warp(points, n, (double[8]){m[0], m[1], m[2], m[3], m[4], m[5], 0, 0});
}

static void largest_rotate(const struct pstk_op *op, struct pstk__largest *largest)
{
    if (op->params.rotate.expand == 1)
        pstk__largest_turned(largest);
}

#define ENTRY(member, number, words, ...)                                                          \
    const struct pstk__op_entry pstk__op_##member = {.kind = number,                               \
                                                     .effects = PSTK__PICTURES,                    \
                                                     .uses = PSTK__USES_FILTER | PSTK__USES_FILL,  \
                                                     .name = words,                                \
                                                     __VA_ARGS__}

ENTRY(affine, PSTK_OP_AFFINE, "affine", .check = check_affine, .change = change_affine,
      .move = move_affine, .tensor = &pstk__op_tensor_affine);
ENTRY(perspective, PSTK_OP_PERSPECTIVE, "perspective", .check = check_perspective,
      .change = change_perspective, .move = move_perspective,
      .tensor = &pstk__op_tensor_perspective);
ENTRY(rotate, PSTK_OP_ROTATE, "rotate", .check = check_rotate, .change = change_rotate,
      .move = move_rotate, .size = size_rotate, .largest = largest_rotate,
      .tensor = &pstk__op_tensor_rotate);
