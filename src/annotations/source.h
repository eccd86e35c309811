/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source: the contract of a format of annotations. One file of this folder fills struct
 * pstk_annotations in `open`, and reads the values of one image in `read`. annotations.c lists the
 * formats and has the public functions.
 */
#ifndef PSTK_SOURCE_H
#define PSTK_SOURCE_H

#include <penstock/annotations.h>

#include "base/bytes.h"

/* The name of the image field to which the values belong. */
#define PSTK__ANNOTATIONS_IMAGE "jpg"

/* The fields of all sources: arrays with one value for each object of an image, and boxes, in
 * pixels. */
#define PSTK__ANNOTATIONS_ARRAY(field, type)                                                       \
    {                                                                                              \
        .name = field, .kind = PSTK_FIELD_NDARRAY, .dtype = type, .n_dims = 1, .rows = "objects"   \
    }
#define PSTK__ANNOTATIONS_BOXES(its_form)                                                          \
    {                                                                                              \
        .name = "boxes", .kind = PSTK_FIELD_BOXES, .dtype = PSTK_F32, .n_dims = 2,                 \
        .shape = {0, 4}, .of = PSTK__ANNOTATIONS_IMAGE, .rows = "objects", .box_format = its_form, \
        .coordinates = PSTK_COORDINATES_PIXELS                                                     \
    }
#define PSTK__ANNOTATIONS_FIELDS 16 /* maximum number of fields */

struct pstk__annotated_image {
    char *file;             /* owned; path below the folder of the images */
    int64_t id;             /* COCO's id; VOC: number of the file */
    uint32_t width, height; /* size in the annotations; 0: unknown */
    uint64_t first, n;      /* COCO: range of its annotations in the index */
};

struct pstk__annotations_class {
    char *name;   /* owned */
    int64_t id;   /* COCO's category id; VOC: -1 */
    int is_thing; /* COCO's isthing; -1: unknown */
};

/* A format of annotations. */
struct pstk__annotations_entry {
    uint32_t format; /* enum pstk_annotations_format */
    /* Fill images, classes, fields and info; a->state belongs to the format. `close` is called even
     * after a failure. */
    int (*open)(struct pstk_annotations *a, const struct pstk_annotations_settings *s,
                struct pstk_error *err);
    /* Append the values of image i to a->values, which are empty. */
    int (*read)(struct pstk_annotations *a, uint64_t i, struct pstk_error *err);
    /* Free a->state, which may be NULL. */
    void (*close)(struct pstk_annotations *a);
};

struct pstk_annotations {
    const struct pstk__annotations_entry *entry;
    void *state;                             /* state of the entry */
    char *path;                              /* owned; settings->path */
    char *bad;                               /* owned; info.bad */
    int skip_bad;                            /* settings->skip_bad */
    uint64_t n_bad_images;                   /* bad images, counted in info.n_bad */
    struct pstk__annotated_image *images;    /* info.n_images, and room for more; owned */
    struct pstk__annotations_class *classes; /* info.n_names, and room for more; owned */
    struct pstk_field fields[PSTK__ANNOTATIONS_FIELDS];
    struct pstk__bytes values[PSTK__ANNOTATIONS_FIELDS]; /* values of the image that was read last
                                                          */
    struct pstk_pixels pixels[PSTK__ANNOTATIONS_FIELDS]; /* size and depth of values that are
                                                            pixels; else height is 0 */
    struct pstk_annotations_info info;
};

extern const struct pstk__annotations_entry pstk__annotations_coco, pstk__annotations_voc;

/* Append an image or a class to its list; takes the text. The file's name is checked. Returns 0,
 * EBADMSG or ENOMEM; after a failure the text is freed. */
int pstk__annotations_add_image(struct pstk_annotations *a, struct pstk__annotated_image image,
                                struct pstk_error *err);
int pstk__annotations_add_class(struct pstk_annotations *a, struct pstk__annotations_class added,
                                struct pstk_error *err);
/* Append a field. Members that are not set must be 0. */
void pstk__annotations_add_field(struct pstk_annotations *a, const struct pstk_field *field);
/* Count a box that leaves the image, is flat, or seems to consist of fractions of it. */
void pstk__annotations_count_box(struct pstk_annotations *a,
                                 const struct pstk__annotated_image *image,
                                 const double corners[4]);
/* Handle an annotation that failed with r. With skip_bad an EBADMSG is counted and forgotten:
 * returns 0 or ENOMEM. Otherwise returns r; the message of EBADMSG then names skip_bad. err is not
 * NULL. */
int pstk__annotations_leave_out(struct pstk_annotations *a, int r, struct pstk_error *err);
/* Fail because all annotations are bad. */
int pstk__annotations_all_bad(const struct pstk_annotations *a, struct pstk_error *err);
/* Return the reason why a file's path may not be used: it may leave its folder. NULL: it is fine.
 */
const char *pstk__annotations_path_wrong(const char *path);
/* Fail because there is no memory. */
int pstk__annotations_no_memory(struct pstk_error *err);

#endif
