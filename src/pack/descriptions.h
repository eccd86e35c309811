/* SPDX-License-Identifier: Apache-2.0 */
/* descriptions: what the writer's caller says of the values of a record that are pixels. */
#ifndef PSTK_DESCRIPTIONS_H
#define PSTK_DESCRIPTIONS_H

#include "image/decoder.h"
#include "record/schema.h"

/* An array of the caller, all zero for a record without pixels. */
struct pstk__descriptions {
    const struct pstk_pixels *first; /* borrowed; the elements have the size that it states */
    uint32_t n;
};

/* Check that each is of an image or mask field, which has no other, and can be. 0 or EINVAL. */
int pstk__descriptions_check(const struct pstk__descriptions *pixels,
                             const struct pstk__schema *schema, struct pstk_error *err);
/* Find the one of field i, after that check. 0: there is none. */
int pstk__descriptions_find(const struct pstk__descriptions *pixels, uint32_t i,
                            struct pstk__image_info *info);

#endif
