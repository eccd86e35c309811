/* SPDX-License-Identifier: Apache-2.0 */
/* op_erase: torchvision's RandomErasing, of the finished rows of an output, and the box that it
 * draws. */
#include "augment/drawing.h"

#include "base/cast.h"
#include "base/error.h"
#include "base/normal.h"

#include <math.h>
#include <string.h>

#define MAX_RATIO 65535.0
#define N_TRIES 10 /* as torchvision */
#define FAIL(...) pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, __VA_ARGS__)
#define INLINE static inline __attribute__((always_inline))

/* Of params of a random erasing. */
enum {
    SCALE = 1,
    RATIO = 3,
    RANDOM_VALUES = 5,
    N_RANDOM_PARAMS = RANDOM_VALUES + PSTK__MAX_CHANNELS + 1,
};
/* Of params of an erasing: top, left, height, width come first. */
enum {
    VALUES = 4,
    KEY = VALUES + PSTK__MAX_CHANNELS + 1,
    N_PARAMS = KEY + 2,
};
#define IS_NORMAL PSTK__MAX_CHANNELS /* after the first of the values */

struct pstk_op pstk_random_erasing(double probability, double value)
{
    struct pstk_op op = {.kind = PSTK_OP_RANDOM_ERASING,
                         .params = {probability, 0.02, 0.33, 0.3, 3.3}};
    for (uint32_t c = 0; c < PSTK__MAX_CHANNELS; c++)
        op.params[RANDOM_VALUES + c] = value;
    return op;
}

struct pstk_op pstk_erase(uint32_t top, uint32_t left, uint32_t height, uint32_t width,
                          double value)
{
    struct pstk_op op = {.kind = PSTK_OP_ERASE, .params = {top, left, height, width}};
    for (uint32_t c = 0; c < PSTK__MAX_CHANNELS; c++)
        op.params[VALUES + c] = value;
    return op;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static int check_values(const double *values, struct pstk_error *err)
{
    const int is_normal = values[IS_NORMAL] == 1;
    if (values[IS_NORMAL] != 0 && !is_normal)
        return FAIL("is_normal: value is %g; must be 0 or 1", values[IS_NORMAL]);
    for (uint32_t c = 0; c < PSTK__MAX_CHANNELS; c++)
        if (!isfinite((float)values[c]) || (is_normal && values[c] != 0))
            return FAIL("value[%u]: value is %g; must be finite, and 0 if is_normal is 1", c,
                        values[c]);
    return 0;
}

/* Rows of u8 hold whole values only. */
static int check_dtype(const double *values, const struct pstk__view *view, struct pstk_error *err)
{
    if (view->dtype != PSTK_U8)
        return 0;
    if (values[IS_NORMAL] == 1)
        return FAIL(
            "normal values are fractions, which dtype u8 cannot hold; use f16, bf16 or f32");
    for (uint32_t c = 0; c < view->channels; c++)
        if (!(values[c] >= 0 && values[c] <= 255 && values[c] == (uint8_t)values[c]))
            return FAIL("value[%u]: value is %g; must be a whole number from 0 to 255 for dtype u8",
                        c, values[c]);
    return 0;
}

static int check_random(const struct pstk_op *op, struct pstk_error *err)
{
    const double *p = op->params, *scale = p + SCALE, *ratio = p + RATIO;
    if (!(p[0] >= 0 && p[0] <= 1))
        return FAIL("probability: value is %g; must be from 0 to 1", p[0]);
    if (!(scale[0] >= 0 && scale[0] <= scale[1] && scale[1] <= 1))
        return FAIL("scale: value is (%g, %g); must be two fractions of the area in rising order, "
                    "from 0 to 1",
                    scale[0], scale[1]);
    if (!(ratio[0] >= 1 / MAX_RATIO && ratio[0] <= ratio[1] && ratio[1] <= MAX_RATIO))
        return FAIL("ratio: value is (%g, %g); must be two ratios of height to width in rising "
                    "order, from 1/65535 to 65535",
                    ratio[0], ratio[1]);
    int rc = check_values(p + RANDOM_VALUES, err);
    if (rc == 0)
        rc = pstk__op_check_no_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, N_RANDOM_PARAMS, err);
}

static int check_random_view(const struct pstk_op *op, const struct pstk__view *view,
                             struct pstk_error *err)
{
    return check_dtype(op->params + RANDOM_VALUES, view, err);
}

static int check(const struct pstk_op *op, struct pstk_error *err)
{
    static const char *const names[] = {"top", "left", "height", "width"};
    for (int i = 0; i < 4; i++)
        if (!(op->params[i] >= 0 && op->params[i] <= UINT16_MAX &&
              op->params[i] == (uint32_t)op->params[i]))
            return FAIL("%s: value is %g; must be a whole number from 0 to 65535", names[i],
                        op->params[i]);
    for (int i = KEY; i < N_PARAMS; i++)
        if (!(op->params[i] >= 0 && op->params[i] <= UINT32_MAX &&
              op->params[i] == (uint32_t)op->params[i]))
            return FAIL("params[%d]: value is %g; must be a whole number below 2^32", i,
                        op->params[i]);
    int rc = check_values(op->params + VALUES, err);
    if (rc == 0)
        rc = pstk__op_check_no_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, N_PARAMS, err);
}

static int check_view(const struct pstk_op *op, const struct pstk__view *view,
                      struct pstk_error *err)
{
    const double *p = op->params;
    const int is_sized = view->width > 0 && view->height > 0;
    if (is_sized && (p[0] + p[2] > view->height || p[1] + p[3] > view->width))
        return FAIL("part: it ends at (%g, %g); must lie inside of rows of %u x %u pixels",
                    p[0] + p[2], p[1] + p[3], view->height, view->width);
    return check_dtype(p + VALUES, view, err);
}

/* ---- draws ----------------------------------------------------------------------------------- */

/* Set the height and width of a box as one try of torchvision's get_params. 0: it is too large. */
static int draw_size(const struct pstk_op *op, struct pstk__random *r,
                     const struct pstk__view *view, struct pstk__box *box)
{
    const double *p = op->params;
    const double area =
        (double)view->height * view->width * pstk__random_uniform(r, p[SCALE], p[SCALE + 1]);
    const double aspect =
        pstk__exp(pstk__random_uniform(r, pstk__log(p[RATIO]), pstk__log(p[RATIO + 1])));
    const double height = pstk__rint_even(sqrt(area * aspect));
    const double width = pstk__rint_even(sqrt(area / aspect));
    if (!(height < view->height && width < view->width))
        return 0;
    box->height = (uint32_t)height;
    box->width = (uint32_t)width;
    return 1;
}

/* As torchvision's forward and get_params, in their order; 64 bits in place of normal numbers. */
static void draw(const struct pstk_op *op, struct pstk__random *r, struct pstk__drawing *to)
{
    struct pstk__box box;
    uint32_t key[2] = {0, 0};
    int i = 0;
    if (!(pstk__random_unit(r) < op->params[0]))
        return;
    while (i < N_TRIES && !draw_size(op, r, &to->view, &box))
        i++;
    if (i == N_TRIES)
        return;
    for (int k = 0; k < 2 && op->params[RANDOM_VALUES + IS_NORMAL] == 1; k++)
        key[k] = pstk__random_u32(r);
    box.top = (uint32_t)pstk__random_below(r, to->view.height - box.height + 1);
    box.left = (uint32_t)pstk__random_below(r, to->view.width - box.width + 1);
    struct pstk_op drawn = pstk_erase(box.top, box.left, box.height, box.width, 0);
    memcpy(drawn.params + VALUES, op->params + RANDOM_VALUES,
           (PSTK__MAX_CHANNELS + 1) * sizeof *drawn.params);
    drawn.params[KEY] = key[0];
    drawn.params[KEY + 1] = key[1];
    pstk__drawing_add(to, &drawn);
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

/* Normal numbers come in the order of channels, rows and columns, whatever the layout is. */
static void erase(const struct pstk_op *op, const struct pstk__finish *form, void *row)
{
    const uint32_t top = (uint32_t)op->params[0], left = (uint32_t)op->params[1];
    const uint32_t height = (uint32_t)op->params[2], width = (uint32_t)op->params[3];
    const uint32_t size = pstk_dtype_size(form->dtype);
    const uint64_t step = form->layout == PSTK_NCHW ? 1 : form->channels;
    struct pstk__random r = {.key = {(uint32_t)op->params[KEY], (uint32_t)op->params[KEY + 1]}};
    for (uint32_t c = 0; c < form->channels; c++) {
        const uint64_t channel = form->layout == PSTK_NCHW ? c * form->plane : c;
        const uint32_t element = element_of((float)op->params[VALUES + c], form->dtype);
        for (uint32_t y = top; y < top + height; y++) {
            const uint64_t at = channel + ((uint64_t)y * form->width + left) * step;
            uint8_t *out = (uint8_t *)row + at * size;
            if (op->params[VALUES + IS_NORMAL] == 1)
                put_normal(out, &r, step, width, form->dtype);
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
};

const struct pstk__op_entry pstk__op_erase = {
    .kind = PSTK_OP_ERASE,
    .effects = PSTK__ERASES,
    .name = "erase",
    .check = check,
    .check_view = check_view,
    .erase = erase,
};
