/* SPDX-License-Identifier: Apache-2.0 */
/* op_erase: torchvision's RandomErasing and timm's, on the finished rows of an output, and the
 * boxes that they draw. */
#include "augment/sampled_ops.h"

#include "base/cast.h"
#include "base/error.h"
#include "base/normal.h"

#include <math.h>
#include <string.h>

#define MAX_RATIO 65535.0
#define N_TRIES 10 /* as torchvision */
#define FAIL(...) pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, __VA_ARGS__)
#define INLINE static inline __attribute__((always_inline))

#define PER_CHANNEL 2 /* value of is_normal in a random erasing */
#define MAX_COUNT 32

struct pstk_op pstk_random_erasing(double probability, double value)
{
    struct pstk_op op = {.kind = PSTK_OP_RANDOM_ERASING};
    op.params.random_erasing =
        (struct pstk_random_erasing_params){probability, 0.02, 0.33, 0.3, 3.3};
    for (uint32_t c = 0; c < PSTK__MAX_CHANNELS; c++)
        op.params.random_erasing.value[c] = value;
    return op;
}

struct pstk_op pstk_erase(uint32_t top, uint32_t left, uint32_t height, uint32_t width,
                          double value)
{
    struct pstk_op op = {.kind = PSTK_OP_ERASE};
    op.params.erase = (struct pstk_erase_params){top, left, height, width};
    for (uint32_t c = 0; c < PSTK__MAX_CHANNELS; c++)
        op.params.erase.value[c] = value;
    return op;
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* Check the fill. max: the largest is_normal. */
static int check_values(const double values[PSTK__MAX_CHANNELS], double is_normal, int most,
                        struct pstk_error *err)
{
    if (!(is_normal >= 0 && is_normal <= most && is_normal == (int)is_normal))
        return FAIL("is_normal: value is %g; must be a whole number from 0 to %d", is_normal, most);
    for (uint32_t c = 0; c < PSTK__MAX_CHANNELS; c++)
        if (!isfinite((float)values[c]) || (is_normal != 0 && values[c] != 0))
            return FAIL("value[%u]: value is %g; must be finite, and 0 if is_normal is not", c,
                        values[c]);
    return 0;
}

/* Check that values for u8 rows are whole numbers. */
static int check_dtype(const double values[PSTK__MAX_CHANNELS], double is_normal,
                       const struct pstk__view *view, struct pstk_error *err)
{
    if (view->dtype != PSTK_U8)
        return 0;
    if (is_normal != 0)
        return FAIL(
            "normal values are fractions, which dtype u8 cannot hold; use f16, bf16 or f32");
    for (uint32_t c = 0; c < view->channels; c++)
        if (!(values[c] >= 0 && values[c] <= 255 && values[c] == (uint8_t)values[c]))
            return FAIL("value[%u]: value is %g; must be a whole number from 0 to 255 for dtype u8",
                        c, values[c]);
    return 0;
}

static int check_count(double least, double most, struct pstk_error *err)
{
    const int is_set = least != 0 || most != 0;
    if (is_set && !(least >= 1 && least <= most && most <= MAX_COUNT && least == (int)least &&
                    most == (int)most))
        return FAIL(
            "count: value is (%g, %g); must be two whole numbers in rising order, from 1 to "
            "%d",
            least, most, MAX_COUNT);
    return 0;
}

static int check_random(const struct pstk_op *op, struct pstk_error *err)
{
    const struct pstk_random_erasing_params *p = &op->params.random_erasing;
    if (!(p->probability >= 0 && p->probability <= 1))
        return FAIL("probability: value is %g; must be from 0 to 1", p->probability);
    if (!(p->min_scale >= 0 && p->min_scale <= p->max_scale && p->max_scale <= 1))
        return FAIL("scale: value is (%g, %g); must be two fractions of the area in rising order, "
                    "from 0 to 1",
                    p->min_scale, p->max_scale);
    if (!(p->min_ratio >= 1 / MAX_RATIO && p->min_ratio <= p->max_ratio &&
          p->max_ratio <= MAX_RATIO))
        return FAIL("ratio: value is (%g, %g); must be two ratios of height to width in rising "
                    "order, from 1/65535 to 65535",
                    p->min_ratio, p->max_ratio);
    int rc = check_count(p->min_count, p->max_count, err);
    if (rc == 0)
        rc = check_values(p->value, p->is_normal, PER_CHANNEL, err);
    if (rc == 0)
        rc = pstk__op_check_no_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, PSTK_MAX_OP_PARAMS, err);
}

static int check_random_view(const struct pstk_op *op, const struct pstk__view *view,
                             struct pstk_error *err)
{
    const struct pstk_random_erasing_params *p = &op->params.random_erasing;
    return check_dtype(p->value, p->is_normal, view, err);
}

static int check(const struct pstk_op *op, struct pstk_error *err)
{
    static const char *const names[] = {"top", "left", "height", "width"};
    const struct pstk_erase_params *p = &op->params.erase;
    for (int i = 0; i < 4; i++)
        if (!(op->params.values[i] >= 0 && op->params.values[i] <= UINT16_MAX &&
              op->params.values[i] == (uint32_t)op->params.values[i]))
            return FAIL("%s: value is %g; must be a whole number from 0 to 65535", names[i],
                        op->params.values[i]);
    for (int i = 0; i < 2; i++)
        if (!(p->key[i] >= 0 && p->key[i] <= UINT32_MAX && p->key[i] == (uint32_t)p->key[i]))
            return FAIL("key[%d]: value is %g; must be a whole number below 2^32", i, p->key[i]);
    int rc = check_values(p->value, p->is_normal, 1, err);
    if (rc == 0)
        rc = pstk__op_check_no_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, 11, err);
}

static int check_view(const struct pstk_op *op, const struct pstk__view *view,
                      struct pstk_error *err)
{
    const struct pstk_erase_params *p = &op->params.erase;
    const int is_sized = view->width > 0 && view->height > 0;
    if (is_sized && (p->top + p->height > view->height || p->left + p->width > view->width))
        return FAIL("part: it ends at (%g, %g); must lie inside of rows of %u x %u pixels",
                    p->top + p->height, p->left + p->width, view->height, view->width);
    return check_dtype(p->value, p->is_normal, view, err);
}

/* ---- draws ----------------------------------------------------------------------------------- */

/* Draw the height and width of one of `count` boxes, as one try of torchvision's get_params or
 * timm's _erase. 0: the box is too large. */
static int draw_size(const struct pstk_op *op, struct pstk__random *r,
                     const struct pstk__view *view, uint32_t count, struct pstk__box *box)
{
    const struct pstk_random_erasing_params *p = &op->params.random_erasing;
    const double area = (double)view->height * view->width *
                        pstk__random_uniform(r, p->min_scale, p->max_scale) / count;
    const double aspect =
        pstk__exp(pstk__random_uniform(r, pstk__log(p->min_ratio), pstk__log(p->max_ratio)));
    const double height = pstk__rint_even(sqrt(area * aspect));
    const double width = pstk__rint_even(sqrt(area / aspect));
    if (!(height < view->height && width < view->width))
        return 0;
    box->height = (uint32_t)height;
    box->width = (uint32_t)width;
    return 1;
}

/* Set the fill of a box: the given values, random normal ones, or the key of normal numbers for
 * each pixel. */
static void draw_values(const struct pstk_op *op, struct pstk__random *r,
                        struct pstk_erase_params *drawn)
{
    const struct pstk_random_erasing_params *given = &op->params.random_erasing;
    const int is_normal = given->is_normal == 1, is_colour = given->is_normal == PER_CHANNEL;
    for (uint32_t c = 0; c < PSTK__MAX_CHANNELS; c++)
        drawn->value[c] = is_colour ? pstk__normal(pstk__random_u32(r)) : given->value[c];
    drawn->is_normal = is_normal;
    for (int k = 0; k < 2 && is_normal; k++)
        drawn->key[k] = pstk__random_u32(r);
}

/* Draw a box as torchvision's get_params, in its order, but with 64 bits in place of normal
 * numbers. */
static void draw_box(const struct pstk_op *op, struct pstk__random *r, uint32_t count,
                     struct pstk__sampled_ops *to)
{
    struct pstk__box box;
    struct pstk_op drawn = pstk_erase(0, 0, 0, 0, 0);
    int i = 0;
    while (i < N_TRIES && !draw_size(op, r, &to->view, count, &box))
        i++;
    if (i == N_TRIES)
        return;
    draw_values(op, r, &drawn.params.erase);
    drawn.params.erase.top = (double)pstk__random_below(r, to->view.height - box.height + 1);
    drawn.params.erase.left = (double)pstk__random_below(r, to->view.width - box.width + 1);
    drawn.params.erase.height = box.height;
    drawn.params.erase.width = box.width;
    pstk__sampled_ops_add(to, &drawn);
}

/* Draw as torchvision's forward, or as timm's with a number of boxes. */
static void draw(const struct pstk_op *op, struct pstk__random *r, struct pstk__sampled_ops *to)
{
    const struct pstk_random_erasing_params *p = &op->params.random_erasing;
    const uint32_t least = (uint32_t)p->min_count, most = (uint32_t)p->max_count;
    uint32_t count = least > 0 ? least : 1;
    if (!(pstk__random_unit(r) < p->probability))
        return;
    if (most > least)
        count += (uint32_t)pstk__random_below(r, most - least + 1);
    for (uint32_t k = 0; k < count; k++)
        draw_box(op, r, count, to);
}

static uint32_t max_boxes(const struct pstk_op *op)
{
    return op->params.random_erasing.max_count > 0 ? (uint32_t)op->params.random_erasing.max_count
                                                   : 1;
}

/* ---- elements -------------------------------------------------------------------------------- */

static uint32_t element_of(float value, uint32_t dtype)
{
    uint32_t bits;
    if (dtype == PSTK_U8)
        return (uint8_t)value;
    if (dtype == PSTK_F16)
        return pstk__f16_from_f32(value);
    if (dtype == PSTK_BF16)
        return pstk__bf16_from_f32(value);
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Write an element n times, `step` elements apart. */
INLINE void put(uint8_t *out, uint32_t element, uint64_t step, uint32_t n, uint32_t size)
{
    for (uint32_t i = 0; i < n; i++, out += step * size)
        memcpy(out, &element, size);
}

static void put_constant(uint8_t *out, uint32_t element, uint64_t step, uint32_t n, uint32_t size)
{
    if (size == 1)
        put(out, element, step, n, 1);
    else if (size == 2)
        put(out, element, step, n, 2);
    else
        put(out, element, step, n, 4);
}

static void put_normal(uint8_t *out, struct pstk__random *r, uint64_t step, uint32_t n,
                       uint32_t dtype)
{
    const uint32_t size = pstk_dtype_size(dtype);
    for (uint32_t i = 0; i < n; i++, out += step * size)
        put_constant(out, element_of((float)pstk__normal(pstk__random_u32(r)), dtype), 1, 1, size);
}

/* Overwrite a box. In any layout, normal numbers come in the order of channels, rows, columns. */
static void erase(const struct pstk_op *op, const struct pstk__finish *finish, void *row)
{
    const struct pstk_erase_params *p = &op->params.erase;
    const uint32_t top = (uint32_t)p->top, left = (uint32_t)p->left;
    const uint32_t height = (uint32_t)p->height, width = (uint32_t)p->width;
    const uint32_t size = pstk_dtype_size(finish->dtype);
    const uint64_t step = finish->layout == PSTK_NCHW ? 1 : finish->channels;
    struct pstk__random r = {.key = {(uint32_t)p->key[0], (uint32_t)p->key[1]}};
    for (uint32_t c = 0; c < finish->channels; c++) {
        const uint64_t channel = finish->layout == PSTK_NCHW ? c * finish->plane : c;
        const uint32_t element = element_of((float)p->value[c], finish->dtype);
        for (uint32_t y = top; y < top + height; y++) {
            const uint64_t at = channel + ((uint64_t)y * finish->width + left) * step;
            uint8_t *out = (uint8_t *)row + at * size;
            if (p->is_normal == 1)
                put_normal(out, &r, step, width, finish->dtype);
            else
                put_constant(out, element, step, width, size);
        }
    }
}

const struct pstk__op_entry pstk__op_random_erasing = {
    .kind = PSTK_OP_RANDOM_ERASING,
    .effects = PSTK__ERASES,
    .name = "random erasing",
    .check = check_random,
    .check_view = check_random_view,
    .draw = draw,
    .max_ops = max_boxes,
};

const struct pstk__op_entry pstk__op_erase = {
    .kind = PSTK_OP_ERASE,
    .effects = PSTK__ERASES,
    .name = "erase",
    .check = check,
    .check_view = check_view,
    .erase = erase,
};
