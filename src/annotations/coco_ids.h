/* SPDX-License-Identifier: Apache-2.0 */
/* coco_ids: images and categories of a COCO file by their ids, which must differ. */
#ifndef PSTK_COCO_IDS_H
#define PSTK_COCO_IDS_H

#include "annotations/source.h"

/* As strcmp. */
int pstk__coco_compare_ids(int64_t a, int64_t b);
/* Fail: two elements of a section have one id, which is its member. Returns EBADMSG. */
int pstk__coco_twice(const struct pstk_annotations *a, const char *section, const char *member,
                     int64_t id, struct pstk_error *err);
/* As pstk__annotations_leave_out, of an image. */
int pstk__coco_leave_out_image(struct pstk_annotations *a, int r, struct pstk_error *err);
/* Sort images and categories by id, and refuse ids that two have. Where bad images are skipped, one
 * of two that are the same is left out; of others nothing says which of them the annotations belong
 * to. 0 or EBADMSG; ENOMEM. */
int pstk__coco_sort_ids(struct pstk_annotations *a, struct pstk_error *err);
/* Find what has an id, once they are sorted. NULL: nothing has. */
struct pstk__annotated_image *pstk__coco_find_image(const struct pstk_annotations *a, int64_t id);
const struct pstk__annotations_class *pstk__coco_find_category(const struct pstk_annotations *a,
                                                               int64_t id);

#endif
