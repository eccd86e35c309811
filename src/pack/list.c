/* SPDX-License-Identifier: Apache-2.0 */
/* list: makes a list value from its items. */
#include "record/list.h"

#include "base/error.h"
#include "image/image.h"
#include "image/mask.h"
#include "image/pixels.h"

#include <stdlib.h>
#include <string.h>

#define FAIL(code, fmt, ...) pstk__fail(err, code, PSTK_STAGE_WRITE, fmt, ##__VA_ARGS__)

/* Check the caller's description of pixels against the limits of a head and of an image. */
static int check_pixels(const struct pstk_list_item *item, uint64_t i, struct pstk_error *err)
{
    if (!pstk__pixels_known(item->channels, item->bit_depth))
        return FAIL(
            PSTK_EINVAL,
            "items[%llu]: pixels of %u channels of %u bits; must be 1, 3 or 4 channels of 8 "
            "or 16 bits",
            (unsigned long long)i, item->channels, item->bit_depth);
    return (uint64_t)item->width * item->height <= PSTK__MAX_PIXELS
               ? 0
               : FAIL(PSTK_EFBIG, "items[%llu]: %u x %u pixels, which are over the limit of %u",
                      (unsigned long long)i, item->width, item->height, PSTK__MAX_PIXELS);
}

/* Find the facts for the head of item i: from a file's header or, for pixels, from the caller's
 * description. */
static int look_at(uint32_t kind, const struct pstk_list_item *item, uint64_t i,
                   struct pstk__field_view *view, struct pstk_error *err)
{
    struct pstk__image_info info = {.encoding = item->encoding,
                                    .width = item->width,
                                    .height = item->height,
                                    .channels = (uint8_t)item->channels,
                                    .bit_depth = (uint8_t)item->bit_depth};
    struct pstk_error why;
    pstk_error_init(&why, sizeof why);
    const int is_pixels = item->encoding == PSTK_ENCODING_PIXELS;
    const int r = is_pixels ? check_pixels(item, i, err) : 0;
    if (r < 0)
        return r;
    if (!is_pixels && (kind == PSTK_FIELD_MASK_LIST ? pstk__mask_probe : pstk__image_probe)(
                          item->data, item->size, PSTK__MAX_PIXELS, &info, &why) < 0)
        return FAIL(why.code == PSTK_EFBIG ? why.code : PSTK_EBADMSG, "items[%llu]: %s",
                    (unsigned long long)i, why.message);
    view->encoding = (uint8_t)info.encoding;
    view->width = info.width;
    view->height = info.height;
    view->channels = info.channels;
    view->bit_depth = info.bit_depth;
    view->flags = info.has_palette ? PSTK__FIELD_PALETTE : 0;
    return 0;
}

static int check_items(uint32_t kind, const struct pstk_list_item *items, uint64_t n,
                       struct pstk_error *err)
{
    uint64_t size = 0; /* the loop stops before an overflow */
    if (!(pstk__field_traits(kind) & PSTK__TRAIT_LIST))
        return FAIL(PSTK_EINVAL,
                    "kind: value is %u; must be UTF8_LIST, BYTES_LIST, IMAGE_LIST or "
                    "MASK_LIST of enum pstk_field_kind",
                    kind);
    if (n && !items)
        return FAIL(PSTK_EINVAL, "items: value is NULL; must be an array of n items");
    for (uint64_t i = 0; i < n; i++) {
        if (!items[i].data && items[i].size)
            return FAIL(PSTK_EINVAL, "items[%llu]: data is NULL", (unsigned long long)i);
        if (items[i].size > PSTK__MAX_VALUE_SIZE || size > PSTK__MAX_VALUE_SIZE)
            return FAIL(PSTK_EFBIG, "items: the list is 4 GiB or larger");
        size += items[i].size + PSTK__LIST_ALIGN;
    }
    return n <= UINT32_MAX ? 0 : FAIL(PSTK_EFBIG, "items: the list is 4 GiB or larger");
}

/* Return the offset in the list of an item after one that ended at `end`. */
static uint64_t offset_after(uint32_t kind, uint64_t end)
{
    return pstk__field_traits(kind) & PSTK__TRAIT_IMAGES ? pstk__record_aligned(end) : end;
}

static int put_items(uint32_t kind, const struct pstk_list_item *items, uint32_t n, uint8_t *list,
                     struct pstk_error *err)
{
    uint64_t end = pstk__list_head_size(kind, n);
    for (uint32_t i = 0; i < n; i++) {
        struct pstk__field_view view = {.plain_size = (uint32_t)items[i].size};
        const int r = pstk__field_traits(kind) & PSTK__TRAIT_IMAGES
                          ? look_at(kind, &items[i], i, &view, err)
                          : 0;
        if (r < 0)
            return r;
        pstk__list_put_head(kind, n, i, &view, list);
        const uint64_t at = offset_after(kind, end);
        if (items[i].size)
            memcpy(list + at, items[i].data, items[i].size);
        end = at + items[i].size;
    }
    return 0;
}

int pstk_list_build(uint32_t kind, const struct pstk_list_item *items, uint64_t n, void **out,
                    uint64_t *size, struct pstk_error *err)
{
    if (!out || !size)
        return FAIL(PSTK_EINVAL, "%s is NULL", out ? "size" : "out");
    *out = NULL;
    *size = 0;
    int r = check_items(kind, items, n, err);
    if (r < 0)
        return r;
    uint64_t end = pstk__list_head_size(kind, (uint32_t)n);
    for (uint64_t i = 0; i < n; i++)
        end = offset_after(kind, end) + items[i].size;
    uint8_t *list = end <= PSTK__MAX_VALUE_SIZE ? calloc(1, end) : NULL;
    if (!list)
        return end > PSTK__MAX_VALUE_SIZE ? FAIL(PSTK_EFBIG, "items: the list is 4 GiB or larger")
                                          : FAIL(PSTK_ENOMEM, "no memory for a list of %llu bytes",
                                                 (unsigned long long)end);
    char text[160];
    r = put_items(kind, items, (uint32_t)n, list, err);
    const char *wrong = r == 0 ? pstk__list_check(kind, list, end, text) : NULL;
    if (wrong)
        r = FAIL(PSTK_EINVAL, "items: %s", wrong);
    if (r < 0) {
        free(list);
        return r;
    }
    *out = list;
    *size = end;
    return 0;
}
