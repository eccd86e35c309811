/* SPDX-License-Identifier: Apache-2.0 */
#include "annotations/coco_json.h"

#include <penstock/annotations.h>

#include <float.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define MAX_COUNT 1000000000u        /* elements of a list, whose text has at most 16 MiB */
#define MAX_SEGMENT_ID 0xffffff      /* largest id of a panoptic segment: a colour of 24 bits */
#define MAX_EXACT 9007199254740992.0 /* 2^53: largest whole number written as a real */

int pstk__coco_fail(const struct pstk__coco_location *location, const char *fmt, ...)
{
    char what[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    return pstk__fail(location->err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                      "%.120s: %s[%" PRIu64 "], at byte %" PRIu64 ": %s", location->path,
                      location->section, location->number, location->offset, what);
}

/* Report Jansson's error: the text is no JSON, or exceeds a limit of this reader. */
static void fail_parse(const struct pstk__coco_location *location, const json_error_t *why)
{
    const uint64_t byte = location->offset + (uint64_t)(why->position > 0 ? why->position : 0);
    const int is_nan = strstr(why->text, "'NaN'") || strstr(why->text, "Infinity'");
    switch (json_error_code(why)) {
    case json_error_numeric_overflow:
        pstk__coco_fail(location,
                        "the number before byte %" PRIu64 " is too large; must be -2^63 to 2^63 - "
                        "1 if it is whole, else -1.8e+308 to 1.8e+308",
                        byte);
        return;
    case json_error_duplicate_key:
        pstk__coco_fail(location,
                        "%s (byte %" PRIu64 "); must have each key once in an object (remove one)",
                        why->text, byte);
        return;
    case json_error_null_character:
    case json_error_null_byte_in_key:
        pstk__coco_fail(location, "the text at byte %" PRIu64 " has \\u0000; must be without",
                        byte);
        return;
    default:
        pstk__coco_fail(location, "it is not JSON: %s (byte %" PRIu64 ")%s", why->text, byte,
                        is_nan ? ": JSON has neither NaN nor Infinity, which Python's json.dump "
                                 "writes (allow_nan=False finds them)"
                               : "");
    }
}

json_t *pstk__coco_parse(const struct pstk__coco_location *location, const char *text,
                         uint64_t size)
{
    json_error_t why;
    json_t *tree = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why);
    if (json_is_object(tree))
        return tree;
    if (!tree && json_error_code(&why) == json_error_out_of_memory)
        pstk__fail(location->err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for an annotation of %s",
                   location->path);
    else if (!tree)
        fail_parse(location, &why);
    else
        pstk__coco_fail(location, "it is a list; must be an object");
    json_decref(tree);
    return NULL;
}

/* Describe a value for messages, in text[40]. */
static const char *shown(json_t *value, char text[40])
{
    static const char *const kinds[] = {[JSON_OBJECT] = "an object",
                                        [JSON_STRING] = "a text",
                                        [JSON_TRUE] = "true",
                                        [JSON_FALSE] = "false",
                                        [JSON_NULL] = "null"};
    if (!value)
        return "missing";
    if (json_is_integer(value))
        snprintf(text, 40, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        snprintf(text, 40, "%.15g", json_real_value(value));
    else if (json_is_array(value))
        snprintf(text, 40, "a list of %zu", json_array_size(value));
    else
        return kinds[json_typeof(value)];
    return text;
}

/* Return an optional member; NULL if it is missing, or null, which pandas writes for missing
 * values. */
static json_t *option(json_t *tree, const char *key)
{
    json_t *value = json_object_get(tree, key);
    return json_is_null(value) ? NULL : value;
}

/* Read a whole number, which may be written as a real one (640.0, as pandas does). Returns 1 or 0.
 */
static int is_whole(json_t *value, int64_t *out)
{
    const double real = json_real_value(value);
    if (json_is_real(value) && real >= -MAX_EXACT && real <= MAX_EXACT)
        *out = (int64_t)real;
    else
        *out = json_integer_value(value);
    return json_is_integer(value) || (json_is_real(value) && (double)*out == real);
}

/* Read a whole number of min .. max. */
static int whole(const struct pstk__coco_location *location, json_t *tree, const char *key,
                 int64_t min, int64_t max, int64_t *out)
{
    char text[40];
    json_t *value = json_object_get(tree, key);
    if (is_whole(value, out) && *out >= min && *out <= max)
        return 0;
    if (min == INT64_MIN)
        return pstk__coco_fail(location, "%s: value is %s; must be a whole number", key,
                               shown(value, text));
    return pstk__coco_fail(location, "%s: value is %s; must be %" PRId64 " to %" PRId64, key,
                           shown(value, text), min, max);
}

/* Read an optional 0 or 1, or false or true; if it is missing, *out is unchanged. */
static int flag(const struct pstk__coco_location *location, json_t *tree, const char *key,
                int64_t *out)
{
    json_t *value = option(tree, key);
    if (json_is_boolean(value))
        *out = json_is_true(value);
    return !value || json_is_boolean(value) ? 0 : whole(location, tree, key, 0, 1, out);
}

/* Read an optional width or height; *side is 0 if it is unknown, which some files write as -1. A
 * fraction of a pixel also counts as unknown: the image file has the size. */
static int read_side(const struct pstk__coco_location *location, json_t *tree, const char *key,
                     uint32_t *side)
{
    char text[40];
    int64_t pixels = 0;
    json_t *value = option(tree, key);
    const double real = json_real_value(value); /* 0 for other kinds of values */
    const int is_unknown =
        json_is_real(value) &&
        (real <= 0 || (real < PSTK_MAX_MASK_SIDE && real != (double)(int64_t)real));
    if (!is_unknown && value && (!is_whole(value, &pixels) || pixels > PSTK_MAX_MASK_SIDE))
        return pstk__coco_fail(location,
                               "%s: value is %s; must be 1 to %d (null, 0 or less, or a fraction: "
                               "unknown)",
                               key, shown(value, text), PSTK_MAX_MASK_SIDE);
    *side = pixels > 0 ? (uint32_t)pixels : 0;
    return 0;
}

/* Return 1 for a number that an f32 can hold. Jansson refuses NaN and infinity, which JSON lacks.
 */
static int is_number(json_t *value)
{
    return json_is_number(value) && json_number_value(value) <= FLT_MAX &&
           json_number_value(value) >= -FLT_MAX;
}

static const char *text_of(json_t *tree, const char *key)
{
    return json_string_value(json_object_get(tree, key));
}

int pstk__coco_image(const struct pstk__coco_location *location, json_t *tree,
                     struct pstk__coco_image *image)
{
    char text[40];
    int r = whole(location, tree, "id", INT64_MIN, INT64_MAX, &image->id);
    if (r == 0)
        r = read_side(location, tree, "width", &image->width);
    if (r == 0)
        r = read_side(location, tree, "height", &image->height);
    if (r < 0)
        return r;
    image->file = text_of(tree, "file_name");
    if (!image->file)
        return pstk__coco_fail(location, "file_name: value is %s; must be a text",
                               shown(json_object_get(tree, "file_name"), text));
    return 0;
}

int pstk__coco_category(const struct pstk__coco_location *location, json_t *tree,
                        struct pstk__coco_category *category)
{
    char text[40];
    category->name = text_of(tree, "name");
    if (!category->name)
        return pstk__coco_fail(location, "name: value is %s; must be a text",
                               shown(json_object_get(tree, "name"), text));
    int64_t is_thing = -1;
    const int r = flag(location, tree, "isthing", &is_thing);
    category->is_thing = (int)is_thing;
    return r < 0 ? r : whole(location, tree, "id", INT64_MIN, INT64_MAX, &category->id);
}

static int read_box(const struct pstk__coco_location *location, json_t *tree,
                    struct pstk__coco_object *object)
{
    char text[40];
    json_t *box = json_object_get(tree, "bbox");
    if (json_array_size(box) != 4)
        return pstk__coco_fail(location,
                               "bbox: value is %s; must be a list of 4 numbers: left, top, "
                               "width, height",
                               shown(box, text));
    for (size_t i = 0; i < 4; i++) {
        json_t *value = json_array_get(box, i);
        object->box[i] = json_number_value(value);
        if (!is_number(value) || (i >= 2 && object->box[i] < 0))
            return pstk__coco_fail(location, "bbox: number %zu is %s; must be %s to %g", i,
                                   shown(value, text), i >= 2 ? "0" : "-3.40282e+38", FLT_MAX);
    }
    return 0;
}

static int read_polygons(const struct pstk__coco_location *location,
                         struct pstk__coco_object *object)
{
    char text[40];
    size_t p, i;
    json_t *polygon, *value;
    json_array_foreach(object->polygons, p, polygon)
    {
        if (json_is_number(polygon))
            return pstk__coco_fail(location,
                                   "segmentation: polygon %zu is %s; must be a list of numbers: x, "
                                   "y, x, y, ... (of one polygon write [[...]])",
                                   p, shown(polygon, text));
        if (!json_is_array(polygon) || json_array_size(polygon) % 2)
            return pstk__coco_fail(location,
                                   "segmentation: polygon %zu has %zu numbers; must be a list of "
                                   "an even number of them: x, y, x, y, ...",
                                   p, json_array_size(polygon));
        json_array_foreach(polygon, i, value) if (!is_number(value)) return pstk__coco_fail(
            location,
            "segmentation: number %zu of polygon %zu is %s; must be "
            "-3.40282e+38 to %g",
            i, p, shown(value, text), FLT_MAX);
    }
    return 0;
}

static int read_counts(const struct pstk__coco_location *location, json_t *segmentation,
                       struct pstk__coco_object *object)
{
    char text[40];
    int64_t side[2] = {0, 0};
    json_t *size = json_object_get(segmentation, "size");
    for (size_t i = 0; i < 2; i++) {
        json_t *value = json_array_get(size, i);
        if (!is_whole(value, &side[i]) || side[i] < 1 || side[i] > PSTK_MAX_MASK_SIDE)
            return pstk__coco_fail(location,
                                   "segmentation.size: number %zu is %s; must be height and width, "
                                   "1 to %d",
                                   i, shown(value, text), PSTK_MAX_MASK_SIDE);
    }
    object->height = (uint32_t)side[0];
    object->width = (uint32_t)side[1];
    object->counts = json_object_get(segmentation, "counts");
    if (json_is_array(object->counts) || json_is_string(object->counts))
        return 0;
    return pstk__coco_fail(location, "segmentation.counts: value is %s; must be a list or a text",
                           shown(object->counts, text));
}

static int read_segmentation(const struct pstk__coco_location *location, json_t *tree,
                             struct pstk__coco_object *object)
{
    char text[40];
    json_t *value = option(tree, "segmentation");
    if (!value)
        return 0;
    if (json_is_object(value))
        return read_counts(location, value, object);
    if (!json_is_array(value))
        return pstk__coco_fail(location,
                               "segmentation: value is %s; must be a list of polygons, or an "
                               "object with counts and size",
                               shown(value, text));
    object->polygons = value;
    return read_polygons(location, object);
}

static int read_keypoints(const struct pstk__coco_location *location, json_t *tree,
                          struct pstk__coco_object *object)
{
    char text[40];
    size_t i;
    json_t *value, *list = option(tree, "keypoints");
    const size_t n = json_array_size(list);
    if (!list || (json_is_array(list) && n == 0))
        return 0;
    if (n == 0 || n % 3 || n > MAX_COUNT)
        return pstk__coco_fail(location,
                               "keypoints: value is %s; must be a list of 3 numbers for each "
                               "point: x, y, visibility (leave it out where there are none)",
                               shown(list, text));
    json_array_foreach(list, i, value)
    {
        const double number = json_number_value(value);
        if (!is_number(value))
            return pstk__coco_fail(location,
                                   "keypoints: number %zu is %s; must be -3.40282e+38 to %g", i,
                                   shown(value, text), FLT_MAX);
        if (i % 3 == 2 && number != 0 && number != 1 && number != 2)
            return pstk__coco_fail(location,
                                   "keypoints: number %zu, a visibility, is %s; must be 0, 1 or 2",
                                   i, shown(value, text));
    }
    object->keypoints = list;
    return 0;
}

static int read_area(const struct pstk__coco_location *location, json_t *tree,
                     struct pstk__coco_object *object)
{
    char text[40];
    json_t *value = option(tree, "area");
    object->area = value ? json_number_value(value) : object->box[2] * object->box[3];
    if (value && (!json_is_number(value) || object->area < 0))
        return pstk__coco_fail(location, "area: value is %s; must be a number from 0 on",
                               shown(value, text));
    return 0;
}

/* Read the members that objects and segments share. */
static int read_thing(const struct pstk__coco_location *location, json_t *tree,
                      struct pstk__coco_object *object)
{
    int64_t is_crowd = 0;
    int r = whole(location, tree, "category_id", INT64_MIN, INT64_MAX, &object->category);
    if (r == 0)
        r = flag(location, tree, "iscrowd", &is_crowd);
    object->is_crowd = (uint8_t)is_crowd;
    if (r == 0)
        r = read_box(location, tree, object);
    return r < 0 ? r : read_area(location, tree, object);
}

static int read_panoptic(const struct pstk__coco_location *location, json_t *tree,
                         struct pstk__coco_object *object)
{
    char text[40];
    if (!json_is_array(object->segments))
        return pstk__coco_fail(location, "segments_info: value is %s; must be a list",
                               shown(object->segments, text));
    object->mask = text_of(tree, "file_name");
    if (!object->mask)
        return pstk__coco_fail(location, "file_name: value is %s; must be a text",
                               shown(json_object_get(tree, "file_name"), text));
    return whole(location, tree, "image_id", INT64_MIN, INT64_MAX, &object->image);
}

/* Refuse a caption that also has members of an object: one of the two would be lost. */
static int check_caption(const struct pstk__coco_location *location, json_t *tree)
{
    static const char *const others[] = {"bbox", "segmentation", "keypoints"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const json_t *other = option(tree, others[i]);
        if (other && !(json_is_array(other) && json_array_size(other) == 0))
            return pstk__coco_fail(
                location,
                "it has a caption and '%s'; must be a caption, or an object without 'caption'",
                others[i]);
    }
    return 0;
}

int pstk__coco_object(const struct pstk__coco_location *location, json_t *tree,
                      struct pstk__coco_object *object)
{
    *object = (struct pstk__coco_object){.caption = text_of(tree, "caption"),
                                         .segments = option(tree, "segments_info")};
    if (object->segments)
        return read_panoptic(location, tree, object);
    int r = whole(location, tree, "id", INT64_MIN, INT64_MAX, &object->id);
    if (r == 0)
        r = whole(location, tree, "image_id", INT64_MIN, INT64_MAX, &object->image);
    if (r < 0)
        return r;
    if (object->caption)
        return check_caption(location, tree);
    r = read_thing(location, tree, object);
    if (r == 0)
        r = read_segmentation(location, tree, object);
    return r < 0 ? r : read_keypoints(location, tree, object);
}

int pstk__coco_segment(const struct pstk__coco_location *location,
                       const struct pstk__coco_object *panoptic, size_t number,
                       struct pstk__coco_object *segment)
{
    char text[40], section[80];
    struct pstk__coco_location inner = *location;
    json_t *tree = json_array_get(panoptic->segments, number);
    snprintf(section, sizeof section, "%s[%" PRIu64 "].segments_info", location->section,
             location->number);
    inner.section = section;
    inner.number = number;
    *segment = (struct pstk__coco_object){.image = panoptic->image};
    if (!json_is_object(tree))
        return pstk__coco_fail(&inner, "it is %s; must be an object", shown(tree, text));
    const int r = whole(&inner, tree, "id", 1, MAX_SEGMENT_ID, &segment->id);
    return r < 0 ? r : read_thing(&inner, tree, segment);
}

/* Append the runs of a list of counts. */
static int add_listed(const struct pstk__coco_location *location, json_t *list,
                      struct pstk__bytes *runs)
{
    char text[40];
    size_t i;
    json_t *value;
    json_array_foreach(list, i, value)
    {
        int64_t run;
        if (!is_whole(value, &run) || run < 0 || run > UINT32_MAX)
            return pstk__coco_fail(location,
                                   "segmentation.counts: run %zu is %s; must be 0 to 4294967295", i,
                                   shown(value, text));
        pstk__bytes_u32(runs, (uint32_t)run);
    }
    return 0;
}

/* Append the runs of compressed counts, a text. */
static int add_compressed(const struct pstk__coco_location *location, json_t *text,
                          struct pstk__bytes *runs)
{
    const size_t size = json_string_length(text);
    struct pstk_error err;
    uint64_t n;
    pstk_error_init(&err, sizeof err);
    uint32_t *counts = malloc(size ? size * sizeof *counts : 1);
    if (!counts) {
        runs->failed = 1;
        return 0;
    }
    int r = pstk_rle_parse(json_string_value(text), size, counts, size, &n, &err);
    if (r < 0)
        r = pstk__coco_fail(location, "segmentation.%s", err.message);
    else
        pstk__bytes_put(runs, counts, n * sizeof *counts);
    free(counts);
    return r;
}

/* Add up the runs from byte `at` on, until the sum is above `most`. */
static uint64_t sum_of(const struct pstk__bytes *runs, uint64_t at, uint64_t most)
{
    uint64_t sum = 0;
    for (uint32_t run; at < runs->size && sum <= most; at += sizeof run) {
        memcpy(&run, runs->data + at, sizeof run);
        sum += run;
    }
    return sum;
}

int pstk__coco_runs(const struct pstk__coco_location *location,
                    const struct pstk__coco_object *object, struct pstk__bytes *runs, uint32_t *n)
{
    const uint64_t before = runs->size, wanted = (uint64_t)object->height * object->width;
    const int r = json_is_array(object->counts) ? add_listed(location, object->counts, runs)
                                                : add_compressed(location, object->counts, runs);
    *n = 0;
    if (r < 0 || runs->failed)
        return r < 0 ? r
                     : pstk__fail(location->err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                                  "no memory for the runs of a mask");
    *n = (uint32_t)((runs->size - before) / sizeof(uint32_t));
    const uint64_t sum = sum_of(runs, before, wanted);
    if (sum != wanted)
        return pstk__coco_fail(location,
                               "segmentation.counts: sum is %" PRIu64 "%s; must be %" PRIu64
                               ", the pixels of size %u x %u",
                               sum, sum > wanted ? " or more" : "", wanted, object->height,
                               object->width);
    return 0;
}
