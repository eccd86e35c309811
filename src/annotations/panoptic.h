/* SPDX-License-Identifier: Apache-2.0 */
/*
 * panoptic: the segments of COCO's panoptic annotations, one annotation and one PNG file for each
 * image. coco.c reads the JSON file and owns the state; panoptic_mask reads the colours.
 */
#ifndef PSTK_PANOPTIC_H
#define PSTK_PANOPTIC_H

#include "annotations/coco_json.h"
#include "annotations/panoptic_mask.h"
#include "annotations/source.h"

#define PSTK__PANOPTIC_CLASSES 65535 /* the class mask has u16; 65535 means none */

/* Closed when all zero. */
struct pstk__panoptic {
    char *folder;                /* folder of the PNG files; owned */
    struct pstk__bytes uses;     /* struct use: the categories of segments, sorted by id */
    struct pstk__bytes segments; /* struct pstk__segment of the current image */
    struct pstk__bytes file;     /* bytes of its PNG file */
    uint32_t label_size;         /* bytes of a class in the class mask: 1 or 2 */
};

/* Check an annotation's segments in the first reading, and note the categories of good ones. *n:
 * number of segments; unchanged after a failure. 0, EBADMSG or ENOMEM. */
int pstk__panoptic_note(struct pstk__panoptic *panoptic, const struct pstk__coco_location *location,
                        const struct pstk__coco_object *object, uint32_t *n);
/* End the first reading, with the classes sorted by id: check that every category is a class, and
 * find the folder of the PNG files, `masks` or path without .json. 0, EBADMSG, EINVAL, ENOENT or
 * ENOMEM. */
int pstk__panoptic_begin(struct pstk__panoptic *panoptic, const struct pstk_annotations *a,
                         const char *masks, struct pstk_error *err);
/* Begin an image without segments. */
void pstk__panoptic_clear(struct pstk__panoptic *panoptic);
/* Add the next segment of the image. */
void pstk__panoptic_add(struct pstk__panoptic *panoptic, int64_t id, uint64_t label);
/* Append the masks of an image to the values of two fields: the numbers of the segments, and their
 * classes. file: the PNG file below the folder; NULL: the image has no annotation. 0, EBADMSG (also
 * if the file is missing), EACCES, EIO, EFBIG or ENOMEM. */
int pstk__panoptic_put(struct pstk__panoptic *panoptic, struct pstk_annotations *a,
                       const struct pstk__annotated_image *image, const char *file,
                       const uint32_t fields[2], struct pstk_error *err);
void pstk__panoptic_close(struct pstk__panoptic *panoptic);

#endif
