/* SPDX-License-Identifier: Apache-2.0 */
/* attributes: the properties that a schema gives a field in addition to its kind: the image that
 * its values belong to, axes, box format, coordinates. Pure. schema.c calls the checks. */
#ifndef PSTK_ATTRIBUTES_H
#define PSTK_ATTRIBUTES_H

#include "record/kind.h"

/* The references from each field to others, as field numbers; -1 for none. */
struct pstk__links {
    int32_t of[PSTK_MAX_FIELDS];       /* image field that the field belongs to */
    int32_t axis[PSTK_MAX_FIELDS];     /* first field whose rows have the same axis */
    int32_t split[PSTK_MAX_FIELDS];    /* first field whose rows this field splits */
    int32_t split_by[PSTK_MAX_FIELDS]; /* field that splits this field's rows */
    uint32_t has_axes;                 /* 1: axes.h has something to check in a record */
};

/* Check the attributes of field `i` by themselves, and the shape and dtype that they require.
 * Messages show `i`. Returns 0 or EINVAL. */
int pstk__attributes_check(const struct pstk_field *field, uint32_t i, struct pstk_error *err);
/* Resolve and check the references among n fields; each field was checked by
 * pstk__attributes_check. Returns 0 or EINVAL. */
int pstk__attributes_link(struct pstk__links *links, const struct pstk_field *fields, uint32_t n,
                          struct pstk_error *err);
/* Return 1 if the characters may be the name of a field or an axis. */
int pstk__attributes_name_ok(const char name[PSTK_MAX_NAME]);
/* Write the attributes as in the schema's text, " of=jpg rows=objects", ..., or "". The text always
 * ends with 0. */
void pstk__attributes_text(const struct pstk_field *field, char *text, uint32_t size);

#define PSTK__ATTRIBUTES_TEXT (4 * PSTK_MAX_NAME + 64) /* maximum size of the text, bytes */

#endif
