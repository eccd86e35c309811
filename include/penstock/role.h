/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/role.h - the roles of a data set's fields (picture, class, boxes, ...), for programs
 * that show or export data sets with unknown fields.
 *
 *   struct pstk_role_search s = {.size = sizeof s, .field_size = sizeof *fields, .fields = fields,
 *                                .n_fields = n_fields, .role = PSTK_ROLE_LABEL};
 *   uint32_t i;
 *   int n = pstk_role_find(&s, &i, &err);
 *   if (n < 0) ...                     // a member of s is wrong
 *   if (n > 0 && i != PSTK_NO_FIELD)
 *       label = fields[i].name;
 *
 * The fields are those of pstk_dataset_get_field, or some of them: those that a program exports, or
 * that all data sets of a mixture have.
 */
#ifndef PENSTOCK_ROLE_H
#define PENSTOCK_ROLE_H

#include <penstock/format.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The index that means no field. */
#define PSTK_NO_FIELD UINT32_MAX

/* The role of a field: which fields fit it, and which one has it if several fit. */
enum pstk_role {
    /* an IMAGE field: `jpg`, or else the first one */
    PSTK_ROLE_IMAGE = 1,
    /* the class of the sample, a SCALAR of whole numbers: the first one of `cls`, `label`, `class`,
     * `target`, `class_id`, `label_id`, `category_id` and `target_id`, or else the only one.
     * Another field whose name ends in "id" does not fit unless the search names it: such numbers
     * mostly count samples */
    PSTK_ROLE_LABEL = 2,
    /* a MASK field of the image `of`, or of no image: the first one */
    PSTK_ROLE_MASK = 3,
    /* a BOXES field of the image `of`, or of no image: the first one */
    PSTK_ROLE_BOXES = 4,
    /* a KEYPOINTS field of the image `of`, or of no image: the first one */
    PSTK_ROLE_KEYPOINTS = 5,
    /* a POLYGONS field of the image `of`, or of no image: the first one */
    PSTK_ROLE_POLYGONS = 6,
    /* the class of each box, a list of whole numbers on the axis of the BOXES field `of`, without
     * `splits`: `labels`, or else the only one */
    PSTK_ROLE_BOX_CLASSES = 7,
    /* the number of corners of each polygon: the field that splits the axis of the POLYGONS field
     * `of` */
    PSTK_ROLE_CORNERS = 8,
};

/* Zero it and set size, field_size, fields, n_fields and role, then the members that the role
 * reads. */
struct pstk_role_search {
    /* sizeof(struct pstk_role_search), set by the caller */
    uint32_t size;
    /* sizeof(struct pstk_field), set by the caller */
    uint32_t field_size;
    /* n_fields fields; borrows */
    const struct pstk_field *fields;
    uint32_t n_fields;
    /* enum pstk_role */
    uint32_t role;
    /* name of the field that the role belongs to. MASK, BOXES, KEYPOINTS, POLYGONS: an image, which
     * need not be in `fields`. BOX_CLASSES: a BOXES field in `fields`. CORNERS: a POLYGONS field in
     * `fields`. IMAGE, LABEL: NULL. borrows */
    const char *of;
    /* name of the only field to consider, which a user gave; borrows. default: NULL, all of them */
    const char *name;
};

/* Count the fields that fit a role. *index becomes the number of the field that has it;
 * PSTK_NO_FIELD: none fits, or several do and the role prefers none. Returns the number that fit,
 * or EINVAL: a member of *s is wrong. Thread: any, several at once. */
PSTK_API int pstk_role_find(const struct pstk_role_search *s, uint32_t *index,
                            struct pstk_error *err);

#ifdef __cplusplus
}
#endif
#endif
