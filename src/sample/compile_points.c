/* SPDX-License-Identifier: Apache-2.0 */
/* compile_points: outputs of points that follow an image output. */
#include "sample/compile.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#define MAX_POINTS (1u << 24)                       /* max points of a row */
#define ALIGN(size) (((size) + 63) & ~(uint64_t)63) /* bytes as the arena rounds them */

#define FAIL(i, code, fmt, ...)                                                                    \
    pstk__fail(err, code, PSTK_STAGE_OPEN, "outputs[%u]" fmt, i, ##__VA_ARGS__)

/* ---- which boxes ----------------------------------------------------------------------------- */

int pstk__compile_levels(struct pstk__plan *p, uint32_t i, uint32_t boxes_field)
{
    const struct pstk__schema *schema = &p->source->schema;
    struct pstk__output *o = &p->outputs[i];
    const char *rows = schema->fields[boxes_field].rows;
    uint32_t n = 0, found[PSTK__MAX_LEVELS];
    int32_t field = (int32_t)o->field;
    o->follow.n_levels = 0;
    while (rows[0] && strcmp(schema->fields[field].rows, rows) != 0) {
        field = schema->fields[field].rows[0] ? schema->links.split_by[field] : -1;
        if (field < 0 || n == PSTK__MAX_LEVELS)
            return 0;
        found[n++] = (uint32_t)field;
    }
    for (uint32_t k = 0; k < n; k++)
        o->follow.levels[k] = found[n - 1 - k];
    o->follow.n_levels = n;
    return rows[0] != 0;
}

/* Return 1 if rows of output i may be dropped with the boxes of output k. */
static int fits(struct pstk__plan *p, uint32_t i, uint32_t k)
{
    const struct pstk__output *boxes = &p->outputs[k];
    const char *rows = pstk__compile_field(p, i)->rows, *of_boxes = pstk__compile_field(p, k)->rows;
    if (boxes->kind != PSTK_OUTPUT_BOXES || boxes->follow.image != p->outputs[i].follow.image)
        return 0;
    return p->outputs[i].kind == PSTK_OUTPUT_POLYGONS
               ? pstk__compile_levels(p, i, boxes->field)
               : !rows[0] || !of_boxes[0] || strcmp(rows, of_boxes) == 0;
}

static int find_named(struct pstk__plan *p, uint32_t i, const char *name, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    for (uint32_t k = 0; k < p->n_outputs; k++) {
        const struct pstk__output *boxes = &p->outputs[k];
        if (boxes->kind != PSTK_OUTPUT_BOXES || strcmp(boxes->name, name) != 0)
            continue;
        if (boxes->follow.image != o->follow.image)
            return FAIL(i, PSTK_EINVAL,
                        ".boxes: output '%.64s' follows image output '%s'; must follow '%s', as "
                        "this output does",
                        name, p->outputs[boxes->follow.image].name,
                        p->outputs[o->follow.image].name);
        o->follow.boxes = k;
        o->follow.has_boxes = 1;
        if (o->kind != PSTK_OUTPUT_POLYGONS || fits(p, i, k))
            return 0;
        return FAIL(i, PSTK_EINVAL,
                    ".boxes: the corners of field '%s' do not belong to boxes of output '%.64s'; "
                    "fields of lengths must lead from the axis of the boxes to theirs (splits)",
                    pstk__compile_field(p, i)->name, name);
    }
    return FAIL(i, PSTK_EINVAL, ".boxes: value is '%.64s'; must be the name of an output of boxes",
                name);
}

/* Find the boxes output whose dropped boxes drop rows of output i, if there is one. All outputs are
 * checked. */
static int find_boxes(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    const char *name = o->settings.follow.boxes;
    uint32_t n = 0;
    o->settings.follow.boxes = NULL;
    if (name)
        return name[0] ? find_named(p, i, name, err) : 0;
    for (uint32_t k = 0; k < p->n_outputs; k++) {
        if (!fits(p, i, k))
            continue;
        o->follow.boxes = k;
        n++;
    }
    o->follow.has_boxes = n == 1;
    if (n > 1)
        return FAIL(i, PSTK_EINVAL,
                    ".boxes: there are %u outputs of boxes that follow '%s'; must be the name of "
                    "one, or empty for none",
                    n, p->outputs[o->follow.image].name);
    return 0;
}

/* ---- keypoints ------------------------------------------------------------------------------- */

static int check_settings(const struct pstk_output *output, const struct pstk_field *field,
                          uint32_t i, struct pstk_error *err)
{
    if (output->dtype != 0 && output->dtype != PSTK_F32)
        return FAIL(i, PSTK_EINVAL, ".dtype: value is %s; must be 0 or f32 for keypoints",
                    pstk_dtype_name(output->dtype));
    if (output->follow.coordinates > PSTK_COORDINATES_UNIT)
        return FAIL(i, PSTK_EINVAL,
                    ".coordinates: value is %u; must be one of enum pstk_coordinates",
                    output->follow.coordinates);
    if (output->follow.keep_outside > 1 || output->follow.at_centers > 1)
        return FAIL(i, PSTK_EINVAL, ".%s: value is %u; must be 0 or 1",
                    output->follow.keep_outside > 1 ? "keep_outside" : "at_centers",
                    output->follow.keep_outside > 1 ? output->follow.keep_outside
                                                    : output->follow.at_centers);
    if (output->follow.at_centers && (output->follow.coordinates == PSTK_COORDINATES_UNIT ||
                                      field->coordinates == PSTK_COORDINATES_UNIT))
        return FAIL(i, PSTK_EINVAL,
                    ".at_centers: value is 1; must be 0 for coordinates unit, because it counts "
                    "pixels");
    if (output->follow.n_flip_pairs > 0 && !output->follow.flip_pairs)
        return FAIL(i, PSTK_EINVAL,
                    ".flip_pairs: value is NULL; must be an array of %u pairs (n_flip_pairs)",
                    output->follow.n_flip_pairs);
    return 0;
}

static int set_partner(struct pstk__output *o, uint32_t i, uint32_t pair, uint32_t n_points,
                       struct pstk_error *err)
{
    const uint32_t *two = o->settings.follow.flip_pairs + 2 * (size_t)pair;
    for (int k = 0; k < 2; k++) {
        if (two[k] >= n_points)
            return FAIL(i, PSTK_EINVAL,
                        ".flip_pairs[%u]: point %u does not exist; must be from 0 to %u", pair,
                        two[k], n_points - 1);
        if (o->follow.partners[two[k]] != two[k] || two[0] == two[1])
            return FAIL(i, PSTK_EINVAL,
                        ".flip_pairs[%u]: point %u is named twice; must be in one pair, once", pair,
                        two[k]);
    }
    o->follow.partners[two[0]] = two[1];
    o->follow.partners[two[1]] = two[0];
    return 0;
}

static int set_partners(struct pstk__output *o, uint32_t i, uint32_t n_points,
                        struct pstk_error *err)
{
    int rc = 0;
    const uint32_t n = o->settings.follow.n_flip_pairs;
    if (n == 0) {
        o->settings.follow.flip_pairs = NULL;
        return 0;
    }
    o->follow.partners = calloc(n_points, sizeof *o->follow.partners);
    if (!o->follow.partners)
        return FAIL(i, PSTK_ENOMEM, ".flip_pairs: out of memory");
    for (uint32_t k = 0; k < n_points; k++)
        o->follow.partners[k] = k;
    for (uint32_t pair = 0; pair < n && rc == 0; pair++)
        rc = set_partner(o, i, pair, n_points, err);
    o->settings.follow.flip_pairs = NULL;
    return rc;
}

int pstk__check_keypoints(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    const struct pstk_field *field = pstk__compile_field(p, i);
    if (field->kind != PSTK_FIELD_KEYPOINTS)
        return pstk__compile_wrong_kind(p, i, "a keypoints", "keypoints", err);
    if (field->shape[1] > MAX_POINTS)
        return FAIL(i, PSTK_EFBIG, ": field '%s' has %llu points in a row; must be at most %u",
                    field->name, (unsigned long long)field->shape[1], MAX_POINTS);
    const uint32_t n_points = (uint32_t)field->shape[1];
    int rc = pstk__compile_image(p, i, err);
    if (rc == 0)
        rc = check_settings(&o->settings, field, i, err);
    if (rc == 0)
        rc = set_partners(o, i, n_points, err);
    if (rc < 0)
        return rc;
    const uint64_t stored = n_points * field->shape[2] * pstk_dtype_size(field->dtype);
    o->dtype = PSTK_F32;
    o->ragged.item_size = 3ull * n_points * sizeof(float);
    o->ragged.max_size = p->source->limits.max_plain[o->field] / stored * o->ragged.item_size;
    o->n_dims = 3;
    o->shape[1] = n_points;
    o->shape[2] = 3;
    return 0;
}

int pstk__passes_keypoints(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    const int rc = find_boxes(p, i, err);
    return rc < 0 ? rc : pstk__passes_ragged(p, i, err);
}

/* ---- polygons -------------------------------------------------------------------------------- */

int pstk__check_polygons(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    const struct pstk_field *field = pstk__compile_field(p, i);
    if (field->kind != PSTK_FIELD_POLYGONS)
        return pstk__compile_wrong_kind(p, i, "a polygons", "polygons", err);
    const int rc = pstk__compile_image(p, i, err);
    if (rc < 0)
        return rc;
    if (o->dtype != 0 && o->dtype != PSTK_F32)
        return FAIL(i, PSTK_EINVAL, ".dtype: value is %s; must be 0 or f32 for polygons",
                    pstk_dtype_name(o->dtype));
    if (o->settings.follow.coordinates > PSTK_COORDINATES_UNIT)
        return FAIL(i, PSTK_EINVAL,
                    ".coordinates: value is %u; must be one of enum pstk_coordinates",
                    o->settings.follow.coordinates);
    o->dtype = PSTK_F32;
    o->ragged.item_size = 2 * sizeof(float);
    o->ragged.max_size = p->source->limits.max_plain[o->field] /
                         (2ull * pstk_dtype_size(field->dtype)) * o->ragged.item_size;
    o->n_dims = 2;
    o->shape[1] = 2;
    return 0;
}

int pstk__passes_nested(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    const int rc = pstk__passes_ragged(p, i, err);
    for (uint32_t k = 0; k < o->follow.n_levels; k++)
        o->passes[o->n_worker_passes - 1].held +=
            ALIGN(p->source->limits.max_plain[o->follow.levels[k]]);
    return rc;
}

int pstk__passes_polygons(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    const int rc = find_boxes(p, i, err);
    p->outputs[i].follow.n_levels = 0;
    if (rc == 0 && p->outputs[i].follow.has_boxes)
        pstk__compile_levels(p, i, p->outputs[p->outputs[i].follow.boxes].field);
    return rc < 0 ? rc : pstk__passes_nested(p, i, err);
}
