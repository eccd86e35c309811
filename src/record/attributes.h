/* SPDX-License-Identifier: Apache-2.0 */
/* attributes: what a field says of its values beyond their kind: the image that they belong to,
 * axes, the form of boxes, coordinates. Pure. schema.c calls the checks. */
#ifndef PSTK_ATTRIBUTES_H
#define PSTK_ATTRIBUTES_H

#include "record/kind.h"

/* What fields say of each other: numbers of fields, -1 for none. */
struct pstk__links {
    int32_t of[PSTK_MAX_FIELDS];       /* the image that a field belongs to */
    int32_t axis[PSTK_MAX_FIELDS];     /* the first field whose rows have the same axis */
    int32_t split[PSTK_MAX_FIELDS];    /* the first field whose rows a field splits */
    int32_t split_by[PSTK_MAX_FIELDS]; /* the field that splits the rows of a field */
    uint32_t has_axes;                 /* 1: axes.h has something to check in a record */
};

/* Check the attributes of a field by themselves, and the shape and dtype that they need. `i` is its
 * number, for messages. 0 or EINVAL. */
int pstk__attributes_check(const struct pstk_field *field, uint32_t i, struct pstk_error *err);
/* Check what n fields, each of which was checked, say of each other. 0 or EINVAL. */
int pstk__attributes_link(struct pstk__links *links, const struct pstk_field *fields, uint32_t n,
                          struct pstk_error *err);
/* 1 when the characters may be the name of a field or an axis. */
int pstk__attributes_name_ok(const char name[PSTK_MAX_NAME]);
/* The attributes in the schema's text, " of=jpg rows=objects", ..., or "". Always terminated. */
void pstk__attributes_text(const struct pstk_field *field, char *text, uint32_t size);

#define PSTK__ATTRIBUTES_TEXT (4 * PSTK_MAX_NAME + 64) /* bytes that the text has at most */

#endif
