/* SPDX-License-Identifier: Apache-2.0 */
/* coco_ids: images and categories of a COCO file, found by their ids, which are unique. */
#ifndef PSTK_COCO_IDS_H
#define PSTK_COCO_IDS_H

#include "annotations/source.h"

/* Compare two ids, with results as of strcmp. */
int pstk__coco_compare_ids(int64_t a, int64_t b);
/* Fail because two elements of a section have the same id. member: the name of the id in the file.
 * Returns EBADMSG. */
int pstk__coco_twice(const struct pstk_annotations *a, const char *section, const char *member,
                     int64_t id, struct pstk_error *err);
/* Leave out a bad image, as pstk__annotations_leave_out does. */
int pstk__coco_leave_out_image(struct pstk_annotations *a, int r, struct pstk_error *err);
/* Sort images and categories by id, and refuse duplicate ids. With skip_bad one of two equal images
 * is left out; if they differ, nothing shows to which of them the annotations belong. 0, EBADMSG or
 * ENOMEM. */
int pstk__coco_sort_ids(struct pstk_annotations *a, struct pstk_error *err);
/* Find an element by id, after sorting. Returns NULL if there is none. */
struct pstk__annotated_image *pstk__coco_find_image(const struct pstk_annotations *a, int64_t id);
const struct pstk__annotations_class *pstk__coco_find_category(const struct pstk_annotations *a,
                                                               int64_t id);

#endif
