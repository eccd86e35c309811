/* SPDX-License-Identifier: Apache-2.0 */
/* image_items: reads the items of a list of images, masks or bytes as files, one after another.
 * Pixels become PNG files. */
#ifndef PSTK_EXPORT_IMAGE_ITEMS_H
#define PSTK_EXPORT_IMAGE_ITEMS_H

#include "export/export.h"
#include "record/list.h"

/* The state of reading a list. */
struct pstk__image_items {
    struct pstk__list list;
    void *file; /* file of the last item that was stored as pixels; owned */
    uint64_t n_encoded;
};

/* Begin to read a checked list of that kind, which may be a list of texts. */
void pstk__image_items_begin(struct pstk__image_items *items, uint32_t kind,
                             const struct pstk__export_value *value);
/* Read the next item, which must exist. *data lives until the next call. */
int pstk__image_items_next(struct pstk__image_items *items, const void **data, uint64_t *size,
                           struct pstk_error *err);
void pstk__image_items_end(struct pstk__image_items *items);

#endif
