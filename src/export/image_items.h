/* SPDX-License-Identifier: Apache-2.0 */
/* image_items: the items of a list of images, of masks or of bytes as files, one after another.
 * Pixels become PNG files. */
#ifndef PSTK_EXPORT_IMAGE_ITEMS_H
#define PSTK_EXPORT_IMAGE_ITEMS_H

#include "export/export.h"
#include "record/list.h"

/* A list being read. */
struct pstk__image_items {
    struct pstk__list list;
    void *file; /* owned; of the last item that was stored as pixels */
    uint64_t n_encoded;
};

/* Begin to read a checked list of that kind, also of texts. */
void pstk__image_items_begin(struct pstk__image_items *items, uint32_t kind,
                             const struct pstk__export_value *value);
/* Read the next item, of which there must be one: *data lives until the next call. */
int pstk__image_items_next(struct pstk__image_items *items, const void **data, uint64_t *size,
                           struct pstk_error *err);
void pstk__image_items_end(struct pstk__image_items *items);

#endif
