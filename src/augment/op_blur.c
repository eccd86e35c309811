/* SPDX-License-Identifier: Apache-2.0 */
/* op_blur: torchvision's gaussian_blur and Pillow's ImageFilter.GaussianBlur, fixed and random. */
#include "augment/canvas.h"
#include "augment/op_tensor.h"
#include "augment/sampled_ops.h"

#include "base/error.h"
#include "pixels/blur.h"

#define MAX_SIGMA 1e4 /* pixels; also the maximum radius */
#define FAIL(...) pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, __VA_ARGS__)

struct pstk_op pstk_gaussian_blur(uint32_t kernel, double sigma)
{
    struct pstk_op op = {.kind = PSTK_OP_GAUSSIAN_BLUR};
    op.params.gaussian_blur = (struct pstk_gaussian_blur_params){{kernel, kernel}, {sigma, sigma}};
    return op;
}

struct pstk_op pstk_box_blur(double radius)
{
    struct pstk_op op = {.kind = PSTK_OP_BOX_BLUR};
    op.params.box_blur = (struct pstk_box_blur_params){{radius, radius}};
    return op;
}

struct pstk_op pstk_random_gaussian_blur(uint32_t kernel, double least, double most)
{
    struct pstk_op op = {.kind = PSTK_OP_RANDOM_GAUSSIAN_BLUR};
    op.params.random_gaussian_blur =
        (struct pstk_random_gaussian_blur_params){{kernel, kernel}, least, most};
    return op;
}

struct pstk_op pstk_random_box_blur(double least, double most)
{
    struct pstk_op op = {.kind = PSTK_OP_RANDOM_BOX_BLUR};
    op.params.random_box_blur = (struct pstk_random_box_blur_params){least, most};
    return op;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static int check_kernel(const double kernel[2], struct pstk_error *err)
{
    for (int i = 0; i < 2; i++) {
        const double size = kernel[i];
        if (!(size >= 1 && size <= PSTK__BLUR_MAX_KERNEL && size == (uint32_t)size &&
              (uint32_t)size % 2 == 1))
            return FAIL("kernel[%d]: value is %g; must be an odd number from 1 to %u pixels", i,
                        size, PSTK__BLUR_MAX_KERNEL);
    }
    return 0;
}

static int check_rest(const struct pstk_op *op, uint32_t n_used, struct pstk_error *err)
{
    const int rc = pstk__op_check_no_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, n_used, err);
}

static int check_gaussian(const struct pstk_op *op, struct pstk_error *err)
{
    const double *sigma = op->params.gaussian_blur.sigma;
    const int rc = check_kernel(op->params.gaussian_blur.kernel, err);
    for (int i = 0; i < 2 && rc == 0; i++)
        if (!(sigma[i] > 0 && sigma[i] <= MAX_SIGMA))
            return FAIL("sigma[%d]: value is %g; must be above 0, and at most %g pixels", i,
                        sigma[i], MAX_SIGMA);
    return rc < 0 ? rc : check_rest(op, 4, err);
}

static int check_box(const struct pstk_op *op, struct pstk_error *err)
{
    for (int i = 0; i < 2; i++)
        if (!(op->params.box_blur.radius[i] >= 0 && op->params.box_blur.radius[i] <= MAX_SIGMA))
            return FAIL("radius[%d]: value is %g; must be from 0 to %g pixels", i,
                        op->params.box_blur.radius[i], MAX_SIGMA);
    return check_rest(op, 2, err);
}

static int check_random_gaussian(const struct pstk_op *op, struct pstk_error *err)
{
    const int rc = check_kernel(op->params.random_gaussian_blur.kernel, err);
    if (rc < 0)
        return rc;
    if (!(op->params.random_gaussian_blur.min_sigma > 0 &&
          op->params.random_gaussian_blur.min_sigma <= op->params.random_gaussian_blur.max_sigma &&
          op->params.random_gaussian_blur.max_sigma <= MAX_SIGMA))
        return FAIL("sigma: value is (%g, %g); must be two numbers in rising order, above 0 and at "
                    "most %g pixels",
                    op->params.random_gaussian_blur.min_sigma,
                    op->params.random_gaussian_blur.max_sigma, MAX_SIGMA);
    return check_rest(op, 4, err);
}

static int check_random_box(const struct pstk_op *op, struct pstk_error *err)
{
    if (!(op->params.random_box_blur.min_radius >= 0 &&
          op->params.random_box_blur.min_radius <= op->params.random_box_blur.max_radius &&
          op->params.random_box_blur.max_radius <= MAX_SIGMA))
        return FAIL("radius: value is (%g, %g); must be two numbers in rising order, from 0 to %g "
                    "pixels",
                    op->params.random_box_blur.min_radius, op->params.random_box_blur.max_radius,
                    MAX_SIGMA);
    return check_rest(op, 2, err);
}

/* ---- changes --------------------------------------------------------------------------------- */

static uint64_t scratch(const struct pstk_op *op, const struct pstk__largest *in, uint32_t channels)
{
    (void)op;
    return pstk__blur_scratch(in->width, in->height, channels) + 64;
}

static void *scratch_get(const struct pstk__canvas *canvas)
{
    const struct pstk__picture *in = &canvas->picture;
    return pstk__arena_get(canvas->arena, pstk__blur_scratch(in->width, in->height, in->channels));
}

/* Check the kernel: torchvision refuses one that reaches past the picture's mirror image. */
static int fits_gaussian(const struct pstk_op *op, const struct pstk__view *view)
{
    const uint32_t width = (uint32_t)op->params.gaussian_blur.kernel[0],
                   height = (uint32_t)op->params.gaussian_blur.kernel[1];
    return width / 2 >= view->width || height / 2 >= view->height ? PSTK_EINVAL : 0;
}

static int change_gaussian(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    const struct pstk__picture *in = &canvas->picture;
    const struct pstk__blur_params params = {
        .size = {(uint32_t)op->params.gaussian_blur.kernel[0],
                 (uint32_t)op->params.gaussian_blur.kernel[1]},
        .sigma = {op->params.gaussian_blur.sigma[0], op->params.gaussian_blur.sigma[1]}};
    const struct pstk__picture out =
        pstk__canvas_spare(canvas, in->width, in->height, in->channels);
    void *memory = scratch_get(canvas);
    if (!memory)
        return PSTK_ENOMEM;
    pstk__blur_gaussian(canvas->kernels->blur, &out, in, &params, memory);
    pstk__canvas_swap(canvas, &out);
    return 0;
}

static int change_box(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    const struct pstk__picture *in = &canvas->picture;
    const struct pstk__picture out =
        pstk__canvas_spare(canvas, in->width, in->height, in->channels);
    const float radius[2] = {(float)op->params.box_blur.radius[0],
                             (float)op->params.box_blur.radius[1]};
    void *memory = scratch_get(canvas);
    if (!memory)
        return PSTK_ENOMEM;
    pstk__blur_box_gaussian(canvas->kernels->blur, &out, in, radius, memory);
    pstk__canvas_swap(canvas, &out);
    return 0;
}

/* ---- draws ----------------------------------------------------------------------------------- */

static void draw_gaussian(const struct pstk_op *op, struct pstk__random *r,
                          struct pstk__sampled_ops *to)
{
    const struct pstk_random_gaussian_blur_params *p = &op->params.random_gaussian_blur;
    const double sigma = pstk__random_uniform(r, p->min_sigma, p->max_sigma);
    struct pstk_op drawn = {.kind = PSTK_OP_GAUSSIAN_BLUR};
    drawn.params.gaussian_blur =
        (struct pstk_gaussian_blur_params){{p->kernel[0], p->kernel[1]}, {sigma, sigma}};
    pstk__sampled_ops_add(to, &drawn);
}

static void draw_box(const struct pstk_op *op, struct pstk__random *r, struct pstk__sampled_ops *to)
{
    const struct pstk_op drawn = pstk_box_blur(pstk__random_uniform(
        r, op->params.random_box_blur.min_radius, op->params.random_box_blur.max_radius));
    pstk__sampled_ops_add(to, &drawn);
}

#define ENTRY(member, number, words, ...)                                                          \
    const struct pstk__op_entry pstk__op_##member = {                                              \
        .kind = number, .effects = PSTK__PICTURES, .name = words, .scratch = scratch, __VA_ARGS__}

ENTRY(gaussian_blur, PSTK_OP_GAUSSIAN_BLUR, "gaussian blur", .check = check_gaussian,
      .fits = fits_gaussian, .change = change_gaussian, .tensor = &pstk__op_tensor_gaussian_blur);
ENTRY(box_blur, PSTK_OP_BOX_BLUR, "box blur", .check = check_box, .change = change_box,
      .tensor = &pstk__op_tensor_none);
ENTRY(random_gaussian_blur, PSTK_OP_RANDOM_GAUSSIAN_BLUR, "random gaussian blur",
      .check = check_random_gaussian, .draw = draw_gaussian,
      .tensor = &pstk__op_tensor_random_blur);
ENTRY(random_box_blur, PSTK_OP_RANDOM_BOX_BLUR, "random box blur", .check = check_random_box,
      .draw = draw_box, .tensor = &pstk__op_tensor_none);
