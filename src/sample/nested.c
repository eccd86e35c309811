/* SPDX-License-Identifier: Apache-2.0 */
#include "sample/nested.h"

#include "record/coordinates.h"

/* Count n items of a level; the items themselves lie below the last level of lengths. */
static int count(struct pstk__nested *nested, uint32_t level, uint64_t n, int is_left)
{
    if (level >= nested->n_levels || level >= PSTK__MAX_LEVELS) {
        if (n > nested->n_items - nested->at)
            return -1;
        if (is_left && n > 0)
            nested->each(nested->user, nested->at, n);
        nested->at += n;
        return 0;
    }
    struct pstk__lengths *lengths = &nested->levels[level];
    const uint8_t *data = lengths->data;
    const uint32_t size = pstk_dtype_size(lengths->dtype);
    for (; n > 0; n--) {
        if (lengths->at == lengths->n)
            return -1;
        const double length = pstk__coordinate(data + size * lengths->at++, lengths->dtype);
        if (!(length >= 0 && length < 0x1p53) ||
            count(nested, level + 1, (uint64_t)length, is_left) < 0)
            return -1;
    }
    return 0;
}

int pstk__nested_each(struct pstk__nested *nested)
{
    if (!nested->boxes)
        return count(nested, nested->n_levels, nested->n_items, 1);
    for (uint32_t i = 0; i < nested->boxes->n; i++)
        if (count(nested, 0, 1, !nested->boxes->boxes[i].is_dropped) < 0)
            return -1;
    for (uint32_t k = 0; k < nested->n_levels; k++)
        if (nested->levels[k].at != nested->levels[k].n)
            return -1;
    return nested->at == nested->n_items ? 0 : -1;
}
