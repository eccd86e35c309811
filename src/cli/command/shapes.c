/* SPDX-License-Identifier: Apache-2.0 */
#include "command/shapes.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "option/opening.h"
#include "ui/font.h"
#include "ui/message.h"
#include "ui/status.h"

#define N_COLOURS 12u
#define IGNORED 255 /* the class of a mask that loss functions ignore */
#define MARGIN 2    /* pixels on each side of a name */

/* Classes use the colours in turn. */
static const colour colours[N_COLOURS] = {
    {229, 57, 53}, {30, 136, 229}, {67, 160, 71}, {251, 140, 0},  {142, 36, 170}, {0, 172, 193},
    {216, 27, 96}, {124, 179, 66}, {121, 85, 72}, {253, 216, 53}, {57, 73, 171},  {0, 137, 123}};
static const colour black = {0, 0, 0}, white = {255, 255, 255};
static const colour outline = {255, 235, 59}, shown = {0, 230, 64}, hidden = {41, 121, 255};

/* ---- outputs -------------------------------------------------------------------------------- */

/* Add an output for a field; -1: add none. */
static void add(struct shapes *shapes, struct pipeline *pipeline, enum shape shape, int field,
                struct pstk_output output)
{
    shapes->output[shape] = -1;
    if (field < 0 || pipeline->n_outputs == PSTK_MAX_FIELDS)
        return;
    shapes->output[shape] = (int)pipeline->n_outputs;
    output.field = pipeline->fields[field].name;
    pipeline->outputs[pipeline->n_outputs++] = output;
    pipeline->settings.n_outputs = pipeline->n_outputs;
}

static void add_all(struct shapes *shapes, struct pipeline *pipeline)
{
    const struct pstk_field *fields = pipeline->fields;
    const char *image = pipeline->outputs[0].name, *of = fields[pipeline->image_field].name;
    const int boxes = pipeline_find(pipeline, PSTK_ROLE_BOXES, of);
    const int polygons = pipeline_find(pipeline, PSTK_ROLE_POLYGONS, of);
    add(shapes, pipeline, SHAPE_CLASS, pipeline_find(pipeline, PSTK_ROLE_LABEL, NULL),
        (struct pstk_output){.name = "class", .kind = PSTK_OUTPUT_SCALAR});
    add(shapes, pipeline, SHAPE_MASK, pipeline_find(pipeline, PSTK_ROLE_MASK, of),
        (struct pstk_output){.name = "mask", .kind = PSTK_OUTPUT_MASK, .follow.image = image});
    add(shapes, pipeline, SHAPE_BOXES, boxes,
        (struct pstk_output){.name = "boxes", .kind = PSTK_OUTPUT_BOXES, .follow.image = image});
    add(shapes, pipeline, SHAPE_BOX_CLASSES,
        boxes < 0 ? -1 : pipeline_find(pipeline, PSTK_ROLE_BOX_CLASSES, fields[boxes].name),
        (struct pstk_output){
            .name = "labels", .kind = PSTK_OUTPUT_PER_BOX, .follow.boxes = "boxes"});
    add(shapes, pipeline, SHAPE_POLYGONS, polygons,
        (struct pstk_output){.name = "polygons",
                             .kind = PSTK_OUTPUT_POLYGONS,
                             .follow.image = image,
                             .follow.boxes = ""});
    add(shapes, pipeline, SHAPE_CORNERS,
        polygons < 0 ? -1 : pipeline_find(pipeline, PSTK_ROLE_CORNERS, fields[polygons].name),
        (struct pstk_output){.name = "corners", .kind = PSTK_OUTPUT_RAGGED});
    add(shapes, pipeline, SHAPE_KEYPOINTS, pipeline_find(pipeline, PSTK_ROLE_KEYPOINTS, of),
        (struct pstk_output){.name = "keypoints",
                             .kind = PSTK_OUTPUT_KEYPOINTS,
                             .follow.image = image,
                             .follow.boxes = ""});
}

int shapes_open(struct shapes *shapes, struct pipeline *pipeline)
{
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    *shapes = (struct shapes){.dataset = NULL};
    if (opening_dataset_as(&shapes->dataset, pipeline->path, &pipeline->read_as, &err) < 0)
        return status_refuse(&err, pipeline->path);
    add_all(shapes, pipeline);
    return 0;
}

void shapes_close(struct shapes *shapes)
{
    pstk_dataset_close(&shapes->dataset);
}

/* ---- values of a batch ---------------------------------------------------------------------- */

/* The values of one output for the only row of a batch. */
struct values {
    void *data; /* owned */
    uint32_t dtype;
    int64_t n;    /* items */
    int64_t each; /* elements of an item */
};

/* Copy the values of an output. Returns 0, or a negative result. An output that the image lacks has
 * 0 items. */
static int get(const struct shapes *shapes, enum shape shape, struct consumer *consumer,
               const struct pstk_batch *batch, struct values *values, struct pstk_error *err)
{
    const int output = shapes->output[shape];
    *values = (struct values){.data = NULL};
    if (output < 0)
        return 0;
    const struct pstk_tensor *tensor = &batch->tensors[output];
    const int64_t n = tensor->offsets ? tensor->offsets[1] : 1;
    if (n == 0)
        return 0;
    const void *data = consumer_rows(consumer, batch, (uint32_t)output, tensor->size, err);
    if (!data)
        return err->code;
    *values =
        (struct values){.data = malloc(tensor->size), .dtype = tensor->dtype, .n = n, .each = 1};
    if (!values->data)
        message_no_memory();
    memcpy(values->data, data, tensor->size);
    for (uint32_t i = 1; i < tensor->n_dims; i++)
        values->each *= tensor->shape[i];
    return 0;
}

/* Return whole number i of a little-endian array. */
static int64_t number_at(const struct values *values, int64_t i)
{
    const uint32_t size = pstk_dtype_size(values->dtype);
    const uint8_t *p = (const uint8_t *)values->data + (size_t)i * size;
    const int is_signed = pstk_dtype_name(values->dtype)[0] == 'i';
    uint64_t value = is_signed && p[size - 1] >= 0x80 ? UINT64_MAX : 0;
    memcpy(&value, p, size);
    return (int64_t)value;
}

static const uint8_t *colour_of(int64_t class)
{
    return colours[(uint64_t) class % N_COLOURS];
}

/* Write the name of a class, or its number if it has none. */
static void name_of(const struct shapes *shapes, int64_t class, char *text, size_t size)
{
    const char *name = class < 0 ? NULL : pstk_dataset_name(shapes->dataset, (uint64_t) class);
    if (name)
        snprintf(text, size, "%s", name);
    else
        snprintf(text, size, "%" PRId64, class);
}

/* ---- drawing -------------------------------------------------------------------------------- */

/* Round a coordinate. One far outside of the picture is brought nearer. */
static int at(float value, int side)
{
    const double low = -side, high = 2.0 * side;
    const double near = value < low ? low : value < high ? value : high;
    return (int)(near - low + 0.5) - side; /* a cast rounds toward 0 */
}

static void draw_mask(const struct area *picture, const struct values *mask)
{
    for (int64_t i = 0; i < mask->n * mask->each; i++) {
        const int64_t class = number_at(mask, i);
        if (class != 0 && class != IGNORED)
            canvas_tint(picture, (int)(i % picture->width), (int)(i / picture->width),
                        colour_of(class));
    }
}

/* Draw one polygon of n corners. */
static void draw_polygon(const struct area *picture, const float *points, int64_t n)
{
    for (int64_t i = 0; i < 2 * n; i++)
        if (!isfinite(points[i]))
            return;
    for (int64_t i = 0; n > 1 && i < n; i++) {
        const float *from = points + 2 * i, *to = points + 2 * (i + 1 < n ? i + 1 : 0);
        canvas_line(picture, at(from[0], picture->width), at(from[1], picture->height),
                    at(to[0], picture->width), at(to[1], picture->height), outline);
    }
}

/* Draw all polygons; without lengths the corners belong to one polygon. */
static void draw_polygons(const struct area *picture, const struct values *corners,
                          const struct values *lengths)
{
    const float *points = corners->data;
    int64_t done = 0;
    if (!points)
        return;
    if (!lengths->data)
        draw_polygon(picture, points, corners->n);
    for (int64_t i = 0; i < lengths->n; i++) {
        const int64_t n = number_at(lengths, i);
        if (n < 0 || n > corners->n - done)
            return;
        draw_polygon(picture, points + 2 * done, n);
        done += n;
    }
}

/* Draw points: visible ones in one colour, hidden ones in another. Points without a position are
 * not drawn. */
static void draw_keypoints(const struct area *picture, const struct values *points)
{
    for (int64_t i = 0; i < points->n * points->each; i += 3) {
        const float *p = (const float *)points->data + i;
        if (!(p[2] > 0) || !isfinite(p[0]) || !isfinite(p[1]))
            continue;
        const int x = at(p[0], picture->width), y = at(p[1], picture->height);
        canvas_fill(picture, (struct rectangle){x - 3, y - 3, x + 3, y + 3}, white);
        canvas_fill(picture, (struct rectangle){x - 2, y - 2, x + 2, y + 2},
                    p[2] >= 2 ? shown : hidden);
    }
}

static struct rectangle box_of(const struct area *picture, const float *box)
{
    return (struct rectangle){at(box[0], picture->width), at(box[1], picture->height),
                              at(box[2], picture->width), at(box[3], picture->height)};
}

/* Write a name on a ground of the class's colour, cut to half of the picture's width: above the
 * box, or in it if there is no room, and wholly inside of the picture. */
static void draw_name(const struct area *picture, struct rectangle box, const char *name,
                      const colour c)
{
    const int room = picture->width / 2;
    const int width = canvas_text_width(name, room) + 2 * MARGIN;
    const int is_light = 299 * c[0] + 587 * c[1] + 114 * c[2] > 150000; /* maximum 255000 */
    const int top = box.top >= FONT_HEIGHT ? box.top - FONT_HEIGHT : box.top > 0 ? box.top : 0;
    int left = box.left < picture->width - width ? box.left : picture->width - width;
    left = left > 0 ? left : 0;
    canvas_fill(picture, (struct rectangle){left, top, left + width, top + FONT_HEIGHT}, c);
    canvas_text(picture, left + MARGIN, top, room, name, is_light ? black : white);
}

/* Draw all boxes, then the names, so that no box crosses one. */
static void draw_boxes(const struct shapes *shapes, const struct area *picture,
                       const struct values *all, const struct values *classes)
{
    const float *boxes = all->data;
    const int64_t n = all->n;
    char name[256];
    for (int64_t i = 0; i < n; i++)
        canvas_frame(picture, box_of(picture, boxes + 4 * i), 2,
                     colour_of(classes->n == n ? number_at(classes, i) : 0));
    for (int64_t i = 0; i < n && classes->n == n; i++) {
        name_of(shapes, number_at(classes, i), name, sizeof name);
        draw_name(picture, box_of(picture, boxes + 4 * i), name, colour_of(number_at(classes, i)));
    }
}

/* ---- a picture ------------------------------------------------------------------------------ */

int shapes_draw(const struct shapes *shapes, struct consumer *consumer,
                const struct pstk_batch *batch, const struct area *picture, struct pstk_error *err)
{
    struct values values[N_SHAPES] = {{.data = NULL}};
    int r = 0;
    for (int i = SHAPE_MASK; i < N_SHAPES && r == 0; i++)
        r = get(shapes, (enum shape)i, consumer, batch, &values[i], err);
    if (r == 0) {
        draw_mask(picture, &values[SHAPE_MASK]);
        draw_polygons(picture, &values[SHAPE_POLYGONS], &values[SHAPE_CORNERS]);
        draw_boxes(shapes, picture, &values[SHAPE_BOXES], &values[SHAPE_BOX_CLASSES]);
        draw_keypoints(picture, &values[SHAPE_KEYPOINTS]);
    }
    for (int i = 0; i < N_SHAPES; i++)
        free(values[i].data);
    return r;
}

int shapes_write(const struct shapes *shapes, struct consumer *consumer,
                 const struct pstk_batch *batch, const struct area *line, struct pstk_error *err)
{
    struct values class;
    char text[288], name[256] = "";
    const int r = get(shapes, SHAPE_CLASS, consumer, batch, &class, err);
    if (r < 0)
        return r;
    if (class.data)
        name_of(shapes, number_at(&class, 0), name, sizeof name);
    free(class.data);
    snprintf(text, sizeof text, "%" PRIu64 " %s", batch->sample_ids[0], name);
    canvas_text(line, MARGIN, 1, line->width - MARGIN, text, black);
    return 0;
}
