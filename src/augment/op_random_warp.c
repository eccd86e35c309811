/* SPDX-License-Identifier: Apache-2.0 */
/* op_random_warp: torchvision's RandomRotation, RandomAffine and RandomPerspective. */
#include "augment/op_tensor.h"
#include "augment/sampled_ops.h"

#include "base/error.h"
#include "pixels/warp_matrix.h"

#include <math.h>
#include <string.h>

#define MAX_ANGLE 3600.0
#define MIN_SCALE 1e-6
#define MAX_SCALE 1e6
#define FAIL(...) pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, __VA_ARGS__)

struct pstk_op pstk_random_rotation(double least, double most, uint32_t filter)
{
    struct pstk_op op = {.kind = PSTK_OP_RANDOM_ROTATION, .filter = filter};
    op.params.random_rotation = (struct pstk_random_rotation_params){least, most};
    return op;
}

struct pstk_op pstk_random_perspective(double distortion, double probability, uint32_t filter)
{
    struct pstk_op op = {.kind = PSTK_OP_RANDOM_PERSPECTIVE, .filter = filter};
    op.params.random_perspective = (struct pstk_random_perspective_params){distortion, probability};
    return op;
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* Check two numbers from -most to most, in rising order. */
static int check_angles(const char *what, double lo, double hi, struct pstk_error *err)
{
    if (!(lo >= -MAX_ANGLE && lo <= hi && hi <= MAX_ANGLE))
        return FAIL("%s: value is (%g, %g); must be two numbers in rising order, from %g to %g",
                    what, lo, hi, -MAX_ANGLE, MAX_ANGLE);
    return 0;
}

/* Check the filter, and that size and parameters from n_used on are 0: the end of each check. */
static int check_rest(const struct pstk_op *op, uint32_t n_used, struct pstk_error *err)
{
    int rc = pstk__op_check_warp_filter(op, err);
    if (rc == 0)
        rc = pstk__op_check_no_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, n_used, err);
}

static int check_rotation(const struct pstk_op *op, struct pstk_error *err)
{
    const struct pstk_random_rotation_params *p = &op->params.random_rotation;
    int rc = check_angles("degrees", p->min_angle, p->max_angle, err);
    if (rc == 0 && p->expand != 0 && p->expand != 1)
        rc = FAIL("expand: value is %g; must be 0 or 1", p->expand);
    if (rc == 0 && p->has_center != 0 && p->has_center != 1)
        rc = FAIL("has_center: value is %g; must be 0 or 1", p->has_center);
    if (rc == 0)
        rc = pstk__op_check_center(p->center, err);
    return rc < 0 ? rc : check_rest(op, 6, err);
}

static int check_affine(const struct pstk_op *op, struct pstk_error *err)
{
    const struct pstk_random_affine_params *p = &op->params.random_affine;
    int rc = check_angles("degrees", p->min_angle, p->max_angle, err);
    for (int i = 0; i < 2 && rc == 0; i++)
        if (!(p->translate[i] >= 0 && p->translate[i] <= 1))
            return FAIL("translate[%d]: value is %g; must be a part of the side, from 0 to 1", i,
                        p->translate[i]);
    if (rc == 0 &&
        !(p->min_scale >= MIN_SCALE && p->min_scale <= p->max_scale && p->max_scale <= MAX_SCALE))
        rc = FAIL("scale: value is (%g, %g); must be two numbers in rising order, from %g to %g",
                  p->min_scale, p->max_scale, MIN_SCALE, MAX_SCALE);
    if (rc == 0)
        rc = check_angles("shear of x", p->min_shear_x, p->max_shear_x, err);
    if (rc == 0)
        rc = check_angles("shear of y", p->min_shear_y, p->max_shear_y, err);
    if (rc == 0 && op->flags > PSTK_OP_HAS_CENTER)
        rc = FAIL("flags: value is 0x%x; must be 0 or PSTK_OP_HAS_CENTER", op->flags);
    if (rc == 0)
        rc = pstk__op_check_center(p->center, err);
    struct pstk_op rest = *op;
    rest.flags = 0;
    return rc < 0 ? rc : check_rest(&rest, op->flags == PSTK_OP_HAS_CENTER ? 12 : 10, err);
}

static int check_perspective(const struct pstk_op *op, struct pstk_error *err)
{
    static const char *const names[] = {"distortion", "probability"};
    for (int i = 0; i < 2; i++)
        if (!(op->params.values[i] >= 0 && op->params.values[i] <= 1))
            return FAIL("%s: value is %g; must be from 0 to 1", names[i], op->params.values[i]);
    return check_rest(op, 2, err);
}

/* ---- draws ----------------------------------------------------------------------------------- */

/* Append a warp with the filter and the fill of the op that draws it. */
static void add(struct pstk__sampled_ops *to, const struct pstk_op *op, struct pstk_op warp)
{
    warp.filter = op->filter;
    for (int c = 0; c < 4; c++)
        warp.fill[c] = op->fill[c];
    pstk__sampled_ops_add(to, &warp);
}

static void draw_rotation(const struct pstk_op *op, struct pstk__random *r,
                          struct pstk__sampled_ops *to)
{
    struct pstk_op turn = pstk_rotate(pstk__random_uniform(r, op->params.random_rotation.min_angle,
                                                           op->params.random_rotation.max_angle),
                                      0, op->params.random_rotation.expand == 1);
    turn.params.rotate.has_center = op->params.random_rotation.has_center;
    memcpy(turn.params.rotate.center, op->params.random_rotation.center,
           sizeof turn.params.rotate.center);
    add(to, op, turn);
}

/* Leave the size open: an expanded image has its own. */
static void size_rotation(const struct pstk_op *op, struct pstk__view *view)
{
    if (op->params.random_rotation.expand == 1)
        view->width = view->height = 0;
}

static void largest_rotation(const struct pstk_op *op, struct pstk__largest *largest)
{
    if (op->params.random_rotation.expand == 1)
        pstk__largest_turned(largest);
}

/* Draw as torchvision's get_params, in its order. */
static void draw_affine(const struct pstk_op *op, struct pstk__random *r,
                        struct pstk__sampled_ops *to)
{
    const struct pstk_random_affine_params *p = &op->params.random_affine;
    const double width = to->view.width, height = to->view.height;
    const int has_center = (op->flags & PSTK_OP_HAS_CENTER) != 0;
    struct pstk__affine_params params = {.center = {has_center ? p->center[0] : width * 0.5,
                                                    has_center ? p->center[1] : height * 0.5}};
    double matrix[6];
    params.angle = pstk__random_uniform(r, p->min_angle, p->max_angle);
    params.translate[0] =
        pstk__rint_even(pstk__random_uniform(r, -p->translate[0] * width, p->translate[0] * width));
    params.translate[1] = pstk__rint_even(
        pstk__random_uniform(r, -p->translate[1] * height, p->translate[1] * height));
    params.scale = pstk__random_uniform(r, p->min_scale, p->max_scale);
    params.shear[0] = pstk__random_uniform(r, p->min_shear_x, p->max_shear_x);
    params.shear[1] = pstk__random_uniform(r, p->min_shear_y, p->max_shear_y);
    pstk__warp_affine_matrix(&params, matrix);
    for (int i = 0; i < 6; i++)
        if (!isfinite(matrix[i])) /* a shear of a quarter turn shows nothing */
            return;
    add(to, op, pstk_affine(matrix, 0));
}

/* Return the new coordinate of a corner on an axis of `side` pixels, moved inwards by at most
 * `most`. */
static double inwards(struct pstk__random *r, uint32_t side, uint32_t most, int is_far)
{
    const uint32_t by = (uint32_t)pstk__random_below(r, most + 1u);
    return is_far ? side - 1 - most + by : by;
}

/* Draw as torchvision's get_params: x and y of each corner move inwards, at most to the middle. */
static void draw_perspective(const struct pstk_op *op, struct pstk__random *r,
                             struct pstk__sampled_ops *to)
{
    const uint32_t w = to->view.width, h = to->view.height;
    const uint32_t x = (uint32_t)(op->params.random_perspective.distortion * (w / 2)),
                   y = (uint32_t)(op->params.random_perspective.distortion * (h / 2));
    const double start[8] = {0, 0, w - 1, 0, w - 1, h - 1, 0, h - 1};
    struct pstk_op warp = {.kind = PSTK_OP_PERSPECTIVE};
    double end[8];
    if (!(pstk__random_unit(r) < op->params.random_perspective.probability))
        return;
    for (int i = 0; i < 4; i++) {
        end[2 * i] = inwards(r, w, x, i == 1 || i == 2);
        end[2 * i + 1] = inwards(r, h, y, i >= 2);
    }
    if (pstk__warp_perspective_matrix(start, end, warp.params.perspective.matrix) < 0)
        return;
    for (int i = 0; i < 8; i++)
        if (!isfinite(warp.params.perspective.matrix[i]))
            return;
    add(to, op, warp);
}

#define ENTRY(member, number, words, ...)                                                          \
    const struct pstk__op_entry pstk__op_random_##member = {.kind = number,                        \
                                                            .effects = PSTK__PICTURES,             \
                                                            .uses = PSTK__USES_FILTER |            \
                                                                    PSTK__USES_FILL,               \
                                                            .name = words,                         \
                                                            __VA_ARGS__}

ENTRY(rotation, PSTK_OP_RANDOM_ROTATION, "random rotation", .check = check_rotation,
      .draw = draw_rotation, .size = size_rotation, .largest = largest_rotation,
      .tensor = &pstk__op_tensor_random_warp);
ENTRY(affine, PSTK_OP_RANDOM_AFFINE, "random affine", .check = check_affine, .draw = draw_affine,
      .tensor = &pstk__op_tensor_random_warp);
ENTRY(perspective, PSTK_OP_RANDOM_PERSPECTIVE, "random perspective", .check = check_perspective,
      .draw = draw_perspective, .tensor = &pstk__op_tensor_random_warp);
