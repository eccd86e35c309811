/* SPDX-License-Identifier: Apache-2.0 */
#include "sample/boxes_row.h"

#include "record/coordinates.h"

#include <string.h>

static struct pstk__sides extent_of(uint32_t form, const double v[4])
{
    if (form == PSTK_BOX_FORMAT_XYWH)
        return (struct pstk__sides){{v[0], v[1]}, {v[0] + v[2], v[1] + v[3]}};
    if (form == PSTK_BOX_FORMAT_CXCYWH)
        return (struct pstk__sides){{v[0] - v[2] / 2, v[1] - v[3] / 2},
                                    {v[0] + v[2] / 2, v[1] + v[3] / 2}};
    return (struct pstk__sides){{v[0], v[1]}, {v[2], v[3]}};
}

const char *pstk__boxes_read(struct pstk__boxes *boxes, const struct pstk_field *field,
                             const void *data, const struct pstk__image_info *image, char text[200])
{
    const int is_unit = field->coordinates == PSTK_COORDINATES_UNIT;
    const double width = is_unit ? image->width : 1, height = is_unit ? image->height : 1;
    const uint32_t size = pstk_dtype_size(field->dtype);
    const uint8_t *at = data;
    boxes->n_excluded = 0;
    if (pstk__coordinates_check(field, data, 4ull * boxes->n * size, text))
        return text;
    for (uint32_t i = 0; i < boxes->n; i++) {
        double v[4];
        for (int k = 0; k < 4; k++, at += size)
            v[k] = pstk__coordinate(at, field->dtype);
        struct pstk__sides *e = &boxes->boxes[i].whole;
        boxes->boxes[i].is_excluded = 0;
        *e = extent_of(field->box_format, v);
        e->min.x *= width;
        e->max.x *= width;
        e->min.y *= height;
        e->max.y *= height;
    }
    return NULL;
}

void pstk__boxes_choose(struct pstk__boxes *boxes, const struct pstk__output *o)
{
    const struct pstk_output *output = &o->settings;
    for (uint32_t i = 0; i < boxes->n; i++) {
        struct pstk__moved_box *box = &boxes->boxes[i];
        const struct pstk__sides *e = &box->shown;
        const double area = pstk__sides_area(e);
        if (!box->is_dropped &&
            !(e->max.x - e->min.x >= output->follow.min_side &&
              e->max.y - e->min.y >= output->follow.min_side && area >= output->follow.min_area &&
              area >= output->follow.min_visible * pstk__sides_area(&box->whole)))
            box->is_dropped = 1;
    }
}

static void write_box(const struct pstk__sides *e, const struct pstk__output *o, float out[4])
{
    const int is_unit = o->settings.follow.coordinates == PSTK_COORDINATES_UNIT;
    const double width = is_unit ? o->image.width : 1, height = is_unit ? o->image.height : 1;
    const double left = e->min.x / width, right = e->max.x / width;
    const double top = e->min.y / height, bottom = e->max.y / height;
    const int is_xyxy =
        o->settings.follow.box_format == 0 || o->settings.follow.box_format == PSTK_BOX_FORMAT_XYXY;
    const int is_centre = o->settings.follow.box_format == PSTK_BOX_FORMAT_CXCYWH;
    out[0] = (float)(is_centre ? (left + right) / 2 : left);
    out[1] = (float)(is_centre ? (top + bottom) / 2 : top);
    out[2] = (float)(is_xyxy ? right : right - left);
    out[3] = (float)(is_xyxy ? bottom : bottom - top);
}

uint32_t pstk__boxes_write(const struct pstk__boxes *boxes, const struct pstk__output *o,
                           float *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < boxes->n; i++) {
        const struct pstk__moved_box *box = &boxes->boxes[i];
        if (!box->is_dropped)
            write_box(o->settings.follow.keep_outside ? &box->whole : &box->shown, o,
                      out + 4 * n++);
    }
    return n;
}

uint32_t pstk__boxes_keep(const struct pstk__boxes *boxes, void *out)
{
    struct pstk__kept_boxes *kept = out;
    kept->n = 0;
    for (uint32_t i = 0; i < boxes->n; i++)
        if (!boxes->boxes[i].is_dropped)
            kept->boxes[kept->n++] = boxes->boxes[i];
    return (uint32_t)kept->n;
}

static void shift(struct pstk__sides *e, double x, double y)
{
    e->min.x += x;
    e->max.x += x;
    e->min.y += y;
    e->max.y += y;
}

static double clip(double v, double least, double most)
{
    return v < least ? least : v > most ? most : v;
}

void pstk__boxes_place(struct pstk__boxes *boxes, const struct pstk_mosaic_part *part)
{
    const double right = part->left + (double)part->width, left = part->left;
    const double bottom = part->top + (double)part->height, top = part->top;
    for (uint32_t i = 0; i < boxes->n; i++) {
        struct pstk__moved_box *box = &boxes->boxes[i];
        struct pstk__sides *e = &box->shown;
        shift(&box->whole, left - part->from_left, top - part->from_top);
        shift(e, left - part->from_left, top - part->from_top);
        e->min.x = clip(e->min.x, left, right);
        e->max.x = clip(e->max.x, left, right);
        e->min.y = clip(e->min.y, top, bottom);
        e->max.y = clip(e->max.y, top, bottom);
        if (!(e->max.x > e->min.x && e->max.y > e->min.y))
            box->is_dropped = 1;
    }
}
