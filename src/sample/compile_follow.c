/* SPDX-License-Identifier: Apache-2.0 */
/* compile_follow: outputs that follow an image output. */
#include "sample/compile.h"

#include "base/cast.h"
#include "base/error.h"
#include "image/mask.h"
#include "record/kind.h"

#include <stdio.h>
#include <string.h>

#define ALIGN(size) (((size) + 63) & ~(uint64_t)63) /* bytes as the arena rounds them */

#define FAIL(i, code, fmt, ...)                                                                    \
    pstk__fail(err, code, PSTK_STAGE_OPEN, "outputs[%u]" fmt, i, ##__VA_ARGS__)

/* ---- which image ----------------------------------------------------------------------------- */

/* Return the name of the image field that the field belongs to, or "". */
static const char *image_of(const struct pstk__plan *p, uint32_t i)
{
    const int32_t of = p->source->schema.links.of[p->outputs[i].field];
    return of >= 0 ? p->source->schema.fields[of].name : "";
}

/* Return 1 if output k is an image that output i may follow. */
static int fits(const struct pstk__plan *p, uint32_t i, uint32_t k)
{
    const int32_t of = p->source->schema.links.of[p->outputs[i].field];
    const struct pstk__output *o = &p->outputs[k];
    return o->kind == PSTK_OUTPUT_IMAGE && (of < 0 || o->field == (uint32_t)of);
}

/* List the names of the images that output i may follow: "a, b"; "none". */
static const char *names_of(const struct pstk__plan *p, uint32_t i, char text[200])
{
    size_t length = 0;
    for (uint32_t k = 0; k < p->n_outputs && length < 200; k++)
        if (fits(p, i, k))
            length += (size_t)snprintf(text + length, 200 - length, "%s%s", length ? ", " : "",
                                       p->outputs[k].name);
    return length ? text : "none";
}

static int find_named(const struct pstk__plan *p, uint32_t i, const char *name, uint32_t *found,
                      struct pstk_error *err)
{
    char names[200];
    uint32_t k = 0;
    while (k < p->n_outputs && strcmp(p->outputs[k].name, name) != 0)
        k++;
    if (k == p->n_outputs)
        return FAIL(i, PSTK_EINVAL,
                    ".follows: value is '%.64s'; must be the name of an image output: %s", name,
                    names_of(p, i, names));
    if (p->outputs[k].kind != PSTK_OUTPUT_IMAGE)
        return FAIL(i, PSTK_EINVAL, ".follows: output '%.64s' is not an image; must be one: %s",
                    name, names_of(p, i, names));
    if (!fits(p, i, k))
        return FAIL(i, PSTK_EINVAL,
                    ".follows: output '%.64s' is of another image; field '%s' belongs to '%s'",
                    name, pstk__compile_field(p, i)->name, image_of(p, i));
    *found = k;
    return 0;
}

int pstk__compile_image(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    const char *name = o->settings.follow.image;
    char names[200];
    uint32_t n = 0;
    o->settings.follow.image = NULL;
    if (name)
        return find_named(p, i, name, &o->follow.image, err);
    for (uint32_t k = 0; k < p->n_outputs; k++) {
        if (!fits(p, i, k))
            continue;
        o->follow.image = k;
        n++;
    }
    if (n == 0)
        return FAIL(i, PSTK_EINVAL,
                    ".follows: there is no image output of field '%s' to follow; add one",
                    image_of(p, i));
    if (n > 1)
        return FAIL(i, PSTK_EINVAL,
                    ".follows: there are %u image outputs of field '%s'; must be the name of one: "
                    "%s",
                    n, image_of(p, i), names_of(p, i, names));
    return 0;
}

/* Make the passes of the image that move pixels: one PICTURE pass for all of them, which have equal
 * scratch. A mask's passes need no more memory, because it has fewer channels. n_planes: bytes of a
 * sample, which are moved one after the other. */

int pstk__check_mask(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    const uint32_t fill = o->settings.follow.fill;
    if (pstk__compile_field(p, i)->kind != PSTK_FIELD_MASK)
        return pstk__compile_wrong_kind(p, i, "a mask", "mask", err);
    int rc = pstk__compile_image(p, i, err);
    if (rc < 0)
        return rc;
    if (o->dtype == 0)
        o->dtype = PSTK_U8;
    if (!pstk__cast_fits(PSTK_U8, o->dtype))
        return FAIL(i, PSTK_EINVAL, ".dtype: value is %s; must be one that holds every u8",
                    pstk_dtype_name(o->dtype));
    const uint32_t most = pstk__cast_fits(PSTK_U16, o->dtype) ? UINT16_MAX : UINT8_MAX;
    if (fill > most)
        return FAIL(i, PSTK_EINVAL, ".fill: value is %u; must be at most %u for dtype %s", fill,
                    most, pstk_dtype_name(o->dtype));
    o->image.height = p->outputs[o->follow.image].image.height;
    o->image.width = p->outputs[o->follow.image].image.width;
    o->n_dims = 3;
    o->shape[0] = p->batch_size;
    o->shape[1] = o->image.height;
    o->shape[2] = o->image.width;
    return 0;
}

/* Make the passes of the image that move pixels, with one PICTURE pass for all of those, which have
 * equal scratch. A mask's need no more memory, because it has fewer channels. n_planes: bytes of a
 * sample, which are moved one after the other. */
static void passes_moving(struct pstk__plan *p, struct pstk__output *o, uint32_t n_planes)
{
    const struct pstk__output *image = &p->outputs[o->follow.image];
    for (uint32_t j = 0; j < image->n_worker_passes; j++) {
        struct pstk__pass pass = image->passes[j];
        if (pass.what != PSTK__PASS_TURN && pass.what != PSTK__PASS_RESIZE &&
            pass.what != PSTK__PASS_PICTURE)
            continue;
        if (pass.what == PSTK__PASS_PICTURE && o->passes[o->n_passes - 1].what == pass.what)
            continue;
        if (pass.what == PSTK__PASS_RESIZE)
            o->image.resize = o->n_passes;
        pass.op = NULL;
        pass.held *= n_planes;
        pass.out = pstk__compile_pixels(1);
        pstk__compile_pass(o, pass);
    }
    o->image.crop = image->image.crop;
    o->image.canvas_room = image->image.canvas_room;
}

int pstk__passes_mask(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    const struct pstk__output *image = &p->outputs[o->follow.image];
    const struct pstk__record_limits *limits = &p->source->limits;
    const uint32_t w = limits->max_width[image->field], h = limits->max_height[image->field];
    const uint32_t is_wide = o->dtype != PSTK_U8, n_planes = is_wide ? 2 : 1;
    struct pstk__row_layout row = pstk__compile_row(o, PSTK_U8);
    (void)err;
    row.layout = PSTK_NHWC;
    row.channels = 1;
    /* The drawn ops that move pixels, and a row of each byte of the samples. */
    const uint64_t held = pstk__output_image_ops_size(image) + n_planes * ALIGN((uint64_t)w);
    pstk__compile_pass(o, (struct pstk__pass){.what = PSTK__PASS_DECODE,
                                              .out = pstk__compile_pixels(1),
                                              .held = held,
                                              .scratch = pstk__mask_scratch(w, h, p->max_pixels)});
    passes_moving(p, o, n_planes);
    pstk__compile_pass(o, (struct pstk__pass){.what = PSTK__PASS_FINISH,
                                              .out = row,
                                              .held = is_wide ? 2 * ALIGN(row.row_size) : 0});
    if (is_wide)
        pstk__compile_pass(
            o, (struct pstk__pass){.what = PSTK__PASS_CAST, .out = pstk__compile_row(o, o->dtype)});
    return 0;
}

/* ---- boxes ----------------------------------------------------------------------------------- */

/* Return 1 if field f has a number for each box of output i: an array of one dimension on their
 * axis. */
static int is_column(const struct pstk__plan *p, uint32_t i, uint32_t f)
{
    const struct pstk_field *field = &p->source->schema.fields[f];
    const char *rows = pstk__compile_field(p, i)->rows;
    return field->kind == PSTK_FIELD_NDARRAY && field->n_dims == 1 && field->shape[0] == 0 &&
           !field->splits[0] && (!rows[0] || !field->rows[0] || strcmp(rows, field->rows) == 0);
}

static int check_limits(const struct pstk_output *output, uint32_t i, struct pstk_error *err)
{
    if (output->follow.box_format > PSTK_BOX_FORMAT_CXCYWH)
        return FAIL(i, PSTK_EINVAL, ".form: value is %u; must be one of enum pstk_box_format",
                    output->follow.box_format);
    if (output->follow.coordinates > PSTK_COORDINATES_UNIT)
        return FAIL(i, PSTK_EINVAL,
                    ".coordinates: value is %u; must be one of enum pstk_coordinates",
                    output->follow.coordinates);
    if (output->follow.keep_outside > 1)
        return FAIL(i, PSTK_EINVAL, ".keep_outside: value is %u; must be 0 or 1",
                    output->follow.keep_outside);
    if (!(output->follow.min_side >= 0 && output->follow.min_side < UINT32_MAX))
        return FAIL(i, PSTK_EINVAL, ".min_side: value is %g; must be 0 or more pixels",
                    output->follow.min_side);
    if (!(output->follow.min_area >= 0 && output->follow.min_area < 0x1p64))
        return FAIL(i, PSTK_EINVAL, ".min_area: value is %g; must be 0 or more pixels",
                    output->follow.min_area);
    if (!(output->follow.min_visible >= 0 && output->follow.min_visible <= 1))
        return FAIL(i, PSTK_EINVAL, ".min_visible: value is %g; must be from 0 to 1",
                    output->follow.min_visible);
    return 0;
}

/* List the fields that have a number for each box of output i: "a, b"; "none". */
static const char *columns_of(const struct pstk__plan *p, uint32_t i, char text[200])
{
    const struct pstk__schema *schema = &p->source->schema;
    size_t length = 0;
    for (uint32_t f = 0; f < schema->n_fields && length < 200; f++)
        if (is_column(p, i, f))
            length += (size_t)snprintf(text + length, 200 - length, "%s%s", length ? ", " : "",
                                       schema->fields[f].name);
    return length ? text : "none";
}

/* Compile the condition of a boxes output. Its numbers are read as a level below the boxes. */
static int compile_where(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    const struct pstk__schema *schema = &p->source->schema;
    struct pstk__output *o = &p->outputs[i];
    const char *text = o->settings.follow.where;
    char column[PSTK_MAX_NAME], columns[200];
    uint32_t f = 0;
    o->settings.follow.where = NULL;
    o->follow.n_levels = 0;
    if (!text)
        return 0;
    if (pstk__box_where_parse(&o->follow.where, column, text) < 0)
        return FAIL(
            i, PSTK_EINVAL,
            ".where: value is '%.64s'; must be a field, one of == != < <= > >=, and a whole "
            "number, as 'iscrowd == 0'",
            text);
    while (f < schema->n_fields && strcmp(schema->fields[f].name, column) != 0)
        f++;
    if (f == schema->n_fields || !is_column(p, i, f))
        return FAIL(i, PSTK_EINVAL,
                    ".where: value is '%.64s'; '%s' must be a field with a number for each box: %s",
                    text, column, columns_of(p, i, columns));
    o->follow.levels[o->follow.n_levels++] = f;
    return 0;
}

int pstk__check_boxes(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    const struct pstk_field *field = pstk__compile_field(p, i);
    if (field->kind != PSTK_FIELD_BOXES)
        return pstk__compile_wrong_kind(p, i, "a boxes", "boxes", err);
    int rc = pstk__compile_image(p, i, err);
    if (rc == 0)
        rc = check_limits(&o->settings, i, err);
    if (rc == 0)
        rc = compile_where(p, i, err);
    if (rc < 0)
        return rc;
    if (o->dtype != 0 && o->dtype != PSTK_F32)
        return FAIL(i, PSTK_EINVAL, ".dtype: value is %s; must be 0 or f32 for boxes",
                    pstk_dtype_name(o->dtype));
    o->dtype = PSTK_F32;
    o->image.height = p->outputs[o->follow.image].image.height;
    o->image.width = p->outputs[o->follow.image].image.width;
    o->ragged.item_size = 4 * sizeof(float);
    o->follow.max_boxes =
        p->source->limits.max_plain[o->field] / (4ull * pstk_dtype_size(field->dtype));
    o->ragged.max_size = o->follow.max_boxes * o->ragged.item_size;
    o->n_dims = 2;
    o->shape[1] = 4;
    return 0;
}

/* Return the name of the boxes field that output i belongs to by the schema; without such a field
 * another one's, or "boxes". */
static const char *boxes_of(const struct pstk__plan *p, uint32_t i)
{
    const struct pstk__schema *schema = &p->source->schema;
    const char *found = "boxes";
    for (uint32_t f = schema->n_fields; f-- > 0;) {
        if (schema->fields[f].kind != PSTK_FIELD_BOXES)
            continue;
        found = schema->fields[f].name;
        if (strcmp(schema->fields[f].rows, pstk__compile_field(p, i)->rows) == 0)
            break;
    }
    return found;
}

/* Set the boxes output that output i follows. */
static int find_boxes(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    const char *name = o->settings.follow.boxes;
    uint32_t n = 0;
    o->settings.follow.boxes = NULL;
    for (uint32_t k = 0; k < p->n_outputs; k++) {
        if (p->outputs[k].kind != PSTK_OUTPUT_BOXES ||
            (name && strcmp(p->outputs[k].name, name) != 0))
            continue;
        o->follow.boxes = k;
        n++;
    }
    if (n == 1)
        return 0;
    if (name)
        return FAIL(i, PSTK_EINVAL,
                    ".boxes: value is '%.64s'; must be the name of an output of boxes", name);
    if (n == 0)
        return FAIL(i, PSTK_EINVAL, ".boxes: there is no output of boxes; add one of field '%s'",
                    boxes_of(p, i));
    return FAIL(i, PSTK_EINVAL, ".boxes: there are %u outputs of boxes; must be the name of one",
                n);
}

int pstk__check_per_box(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    const uint32_t kind = pstk__compile_field(p, i)->kind;
    if (kind == PSTK_FIELD_BOXES || kind == PSTK_FIELD_KEYPOINTS || kind == PSTK_FIELD_POLYGONS)
        return FAIL(i, PSTK_EINVAL,
                    ".kind: field '%s' has %s, which follow the image by themselves; must be a "
                    "field with items for boxes, such as labels",
                    pstk__compile_field(p, i)->name, pstk__field_kind_name(kind));
    const int rc = find_boxes(p, i, err);
    if (rc < 0)
        return rc;
    const struct pstk__output *o = &p->outputs[i];
    pstk__compile_levels(p, i, p->outputs[o->follow.boxes].field);
    const uint32_t dtype = pstk__compile_field(p, i)->dtype;
    if (o->settings.follow.add != 0 && !pstk__cast_fits(dtype, PSTK_I64))
        return FAIL(i, PSTK_EINVAL,
                    ".add: value is %lld; must be 0 for a field of dtype %s (add works on whole "
                    "numbers up to i64)",
                    (long long)o->settings.follow.add, pstk_dtype_name(dtype));
    return pstk__check_ragged(p, i, err);
}

/* Return 1 if an op of the list depends on boxes; children cannot. */
static uint32_t looks_at_boxes(const struct pstk__image_part *image)
{
    uint32_t effects = 0;
    for (uint32_t j = 0; j < image->n_ops; j++)
        effects |= pstk__op_entry(image->ops[j].kind)->effects;
    return (effects & PSTK__LOOKS_AT_BOXES) != 0;
}

int pstk__output_find_boxes(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    o->image.looks_at_boxes = looks_at_boxes(&o->image);
    if (!o->image.looks_at_boxes)
        return 0;
    for (uint32_t k = 0; k < p->n_outputs; k++) {
        o->image.boxes = k;
        if (p->outputs[k].kind == PSTK_OUTPUT_BOXES && p->outputs[k].follow.image == i)
            return 0;
    }
    return FAIL(i, PSTK_EINVAL,
                ".ops: a random IoU crop needs boxes; add an output of boxes that follows this "
                "image");
}
