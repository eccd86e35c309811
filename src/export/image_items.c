/* SPDX-License-Identifier: Apache-2.0 */
#include "export/image_items.h"

#include "image/png/encode.h"

#include <stdlib.h>

void pstk__image_items_begin(struct pstk__image_items *items, uint32_t kind,
                             const struct pstk__export_value *value)
{
    char wrong[160]; /* unused: the value was checked */
    *items = (struct pstk__image_items){.n_encoded = 0};
    pstk__list_begin(&items->list, kind, value->data, value->size, wrong);
}

int pstk__image_items_next(struct pstk__image_items *items, const void **data, uint64_t *size,
                           struct pstk_error *err)
{
    struct pstk__field_view item;
    char wrong[160];
    pstk__list_next(&items->list, &item, wrong);
    *data = item.data;
    *size = item.plain_size;
    if (item.encoding != PSTK_ENCODING_PIXELS || !items->list.has_heads)
        return 0;
    const struct pstk__image_info info = pstk__field_image(&item);
    free(items->file);
    items->n_encoded++;
    const int r = pstk__png_encode(item.data, item.plain_size, &info, &items->file, size, err);
    *data = items->file;
    return r;
}

void pstk__image_items_end(struct pstk__image_items *items)
{
    free(items->file);
    items->file = NULL;
}
