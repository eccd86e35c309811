/* SPDX-License-Identifier: Apache-2.0 */
/* descriptions: the caller's descriptions of a record's values that are pixels. */
#ifndef PSTK_DESCRIPTIONS_H
#define PSTK_DESCRIPTIONS_H

#include "image/decoder.h"
#include "record/schema.h"

/* The caller's array of descriptions. All zero: the record has no pixels. */
struct pstk__descriptions {
    const struct pstk_pixels *first; /* borrowed; its elements have the size that it states */
    uint32_t n;
};

/* Check that each description fits its field, which is an image or a mask and has only one. 0 or
 * EINVAL. */
int pstk__descriptions_check(const struct pstk__descriptions *pixels,
                             const struct pstk__schema *schema, struct pstk_error *err);
/* Find the description of field i, after pstk__descriptions_check. Returns 0 if there is none. */
int pstk__descriptions_find(const struct pstk__descriptions *pixels, uint32_t i,
                            struct pstk__image_info *info);

#endif
