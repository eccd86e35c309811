/* SPDX-License-Identifier: Apache-2.0 */
#include "record/coordinates.h"

#include "base/cast.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

double pstk__coordinate(const void *data, uint32_t dtype)
{
    double value;
    int64_t whole;
    uint64_t large;
    if (dtype == PSTK_I64) {
        memcpy(&whole, data, sizeof whole);
        return (double)whole;
    }
    if (dtype == PSTK_U64) {
        memcpy(&large, data, sizeof large);
        return (double)large;
    }
    pstk__cast(&value, PSTK_F64, data, dtype);
    return value;
}

/* An array of items, each of `width` numbers. */
struct items {
    const uint8_t *data;
    uint64_t n, width;
    uint32_t dtype;
};

/* Read the first `n` numbers of item i. */
static void get(const struct items *items, uint64_t i, uint32_t n, double *v)
{
    const uint32_t size = pstk_dtype_size(items->dtype);
    for (uint32_t k = 0; k < n; k++)
        v[k] = pstk__coordinate(items->data + (i * items->width + k) * size, items->dtype);
}

static const char *check_box(uint32_t form, const double v[4], uint64_t i, char text[200])
{
    static const char *const names[][4] = {
        [PSTK_BOX_FORMAT_XYXY] = {"left", "top", "right", "bottom"},
        [PSTK_BOX_FORMAT_XYWH] = {"left", "top", "width", "height"},
        [PSTK_BOX_FORMAT_CXCYWH] = {"x", "y", "width", "height"}};
    const char *const *name = names[form];
    for (int k = 0; k < 4; k++)
        if (!isfinite(v[k])) {
            snprintf(text, 200, "box %" PRIu64 ": %s is %g; must be finite", i, name[k], v[k]);
            return text;
        }
    for (int k = 2; k < 4; k++)
        if (form == PSTK_BOX_FORMAT_XYXY ? v[k] < v[k - 2] : v[k] < 0) {
            snprintf(text, 200, "box %" PRIu64 ": %s is %g; must be at least %s%g", i, name[k],
                     v[k], form == PSTK_BOX_FORMAT_XYXY ? k == 2 ? "left, " : "top, " : "",
                     form == PSTK_BOX_FORMAT_XYXY ? v[k - 2] : 0);
            return text;
        }
    return NULL;
}

static const char *check_boxes(const struct pstk_field *field, const struct items *items,
                               char text[200])
{
    for (uint64_t i = 0; i < items->n; i++) {
        double v[4];
        get(items, i, 4, v);
        if (check_box(field->box_format, v, i, text))
            return text;
    }
    return NULL;
}

/* n_points: points of each row. */
static const char *check_keypoints(const struct items *items, uint64_t n_points, char text[200])
{
    for (uint64_t i = 0; i < items->n; i++) {
        double v[3] = {0, 0, 2};
        get(items, i, (uint32_t)items->width, v);
        if (!(isfinite(v[2]) && v[2] >= 0)) {
            snprintf(text, 200,
                     "point %" PRIu64 " of row %" PRIu64 ": visibility is %g; must be 0 (absent) "
                     "or more",
                     i % n_points, i / n_points, v[2]);
            return text;
        }
        for (int k = 0; k < 2 && v[2] > 0; k++)
            if (!isfinite(v[k])) {
                snprintf(text, 200,
                         "point %" PRIu64 " of row %" PRIu64 ": %s is %g; must be finite%s",
                         i % n_points, i / n_points, k ? "y" : "x", v[k],
                         items->width == 3 ? ", or its visibility 0" : "");
                return text;
            }
    }
    return NULL;
}

static const char *check_corners(const struct items *items, char text[200])
{
    for (uint64_t i = 0; i < items->n; i++) {
        double v[2];
        get(items, i, 2, v);
        for (int k = 0; k < 2; k++)
            if (!isfinite(v[k])) {
                snprintf(text, 200, "corner %" PRIu64 ": %s is %g; must be finite", i,
                         k ? "y" : "x", v[k]);
                return text;
            }
    }
    return NULL;
}

const char *pstk__coordinates_check(const struct pstk_field *field, const void *data, uint64_t size,
                                    char text[200])
{
    struct items items = {.data = data, .dtype = field->dtype};
    if (field->kind != PSTK_FIELD_BOXES && field->kind != PSTK_FIELD_KEYPOINTS &&
        field->kind != PSTK_FIELD_POLYGONS)
        return NULL;
    items.width = field->shape[field->n_dims - 1];
    items.n = size / (items.width * pstk_dtype_size(field->dtype));
    if (field->kind == PSTK_FIELD_BOXES)
        return check_boxes(field, &items, text);
    return field->kind == PSTK_FIELD_KEYPOINTS ? check_keypoints(&items, field->shape[1], text)
                                               : check_corners(&items, text);
}
