/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coco_json: reads one image, category or annotation of a COCO file from its JSON. Every failure
 * names the member: "bbox: value is ...; must be ...". Only the COCO reader uses Jansson.
 */
#ifndef PSTK_COCO_JSON_H
#define PSTK_COCO_JSON_H

#include <jansson.h>

#include <penstock/types.h>

#include "base/bytes.h"

/* The position of a value in the file, for messages. */
struct pstk__coco_location {
    const char *path;    /* path of the file */
    const char *section; /* "images", "annotations", "categories" */
    uint64_t number;     /* position in that section */
    uint64_t offset;     /* offset of the value's first byte in the file */
    struct pstk_error *err;
};

struct pstk__coco_image {
    int64_t id;
    uint32_t width, height; /* 0: the file lacks them */
    const char *file;       /* borrowed from the tree */
};

struct pstk__coco_category {
    int64_t id;
    const char *name; /* borrowed from the tree */
    int is_thing;     /* isthing; -1: the file lacks it */
};

/* The members of an annotation. Pointers are borrowed from its tree. */
struct pstk__coco_object {
    int64_t id, image, category; /* category: only objects */
    const char *caption;         /* NULL: an object, which has the members below */
    double box[4];               /* left, top, width, height */
    double area;
    uint8_t is_crowd;
    json_t *polygons;       /* a list of lists of x and y; NULL: none */
    json_t *counts;         /* a list or a text; NULL: none */
    uint32_t height, width; /* size that the counts state */
    json_t *keypoints;      /* a list of x, y and visibility; NULL: none */
    json_t *segments; /* panoptic: a list, and of the ids only `image` is set; NULL: not panoptic */
    const char *mask; /* panoptic: path of its PNG file */
};

/* Parse the JSON of a value, an object. Returns owned (json_decref), or NULL after a failure. */
json_t *pstk__coco_parse(const struct pstk__coco_location *location, const char *text,
                         uint64_t size);
/* Read a value, and check all its members, except the segments of a panoptic annotation. 0 or
 * EBADMSG. */
int pstk__coco_image(const struct pstk__coco_location *location, json_t *tree,
                     struct pstk__coco_image *image);
int pstk__coco_category(const struct pstk__coco_location *location, json_t *tree,
                        struct pstk__coco_category *category);
int pstk__coco_object(const struct pstk__coco_location *location, json_t *tree,
                      struct pstk__coco_object *object);
/* Read segment `number` of a panoptic annotation: id, category, box, area and is_crowd. 0 or
 * EBADMSG. */
int pstk__coco_segment(const struct pstk__coco_location *location,
                       const struct pstk__coco_object *panoptic, size_t number,
                       struct pstk__coco_object *segment);
/* Append the runs of an object's counts, as u32, and check that they add up to their size. *n:
 * number of runs. 0, EBADMSG or ENOMEM. */
int pstk__coco_runs(const struct pstk__coco_location *location,
                    const struct pstk__coco_object *object, struct pstk__bytes *runs, uint32_t *n);
/* Fail at a location, because of a member. Returns EBADMSG. */
int pstk__coco_fail(const struct pstk__coco_location *location, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
