/* SPDX-License-Identifier: Apache-2.0 */
#include "record/list.h"

#include "base/little.h"
#include "image/image.h"
#include "image/mask.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Offsets in the head of an image; FORMAT.md has the table. */
enum {
    ITEM_SIZE = 0,
    ITEM_ENCODING = 4,
    ITEM_CHANNELS = 5,
    ITEM_BIT_DEPTH = 6,
    ITEM_FLAGS = 7,
    ITEM_WIDTH = 8,
    ITEM_HEIGHT = 12,
};

#define WRONG(...) (snprintf(text, 160, __VA_ARGS__), text)

static int has_heads(uint32_t kind)
{
    return (pstk__field_traits(kind) & PSTK__TRAIT_IMAGES) != 0;
}

/* There are fewer than 2^32 items, with heads of at most 16 bytes: no overflow. */
uint64_t pstk__list_head_size(uint32_t kind, uint32_t n)
{
    return has_heads(kind) ? PSTK__LIST_ALIGN * (1 + (uint64_t)n) : 4 + 4 * (uint64_t)n;
}

static uint64_t aligned(uint64_t at)
{
    return (at + PSTK__LIST_ALIGN - 1) / PSTK__LIST_ALIGN * PSTK__LIST_ALIGN;
}

/* ---- reading --------------------------------------------------------------------------------- */

const char *pstk__list_begin(struct pstk__list *list, uint32_t kind, const void *data,
                             uint64_t size, char text[160])
{
    static const uint8_t zeros[PSTK__LIST_ALIGN - 4];
    *list = (struct pstk__list){.data = data, .size = size, .has_heads = (uint32_t)has_heads(kind)};
    const uint32_t n = size >= 4 ? pstk__get32(data) : 0;
    const uint64_t least = pstk__list_head_size(kind, n);
    if (size < least)
        return WRONG("%" PRIu64 " bytes, too few for a list of %u items", size, n);
    if (list->has_heads && memcmp(list->data + 4, zeros, sizeof zeros) != 0)
        return WRONG("bytes 4 to 15 of the list must be zero and are not");
    list->n = n;
    list->at = least;
    return NULL;
}

static void read_head(const struct pstk__list *list, struct pstk__field_view *item)
{
    const uint8_t *head = list->data + (list->has_heads ? PSTK__LIST_ALIGN * (1 + (uint64_t)list->i)
                                                        : 4 + 4 * (uint64_t)list->i);
    *item = (struct pstk__field_view){.plain_size = pstk__get32(head + ITEM_SIZE)};
    item->stored_size = item->plain_size;
    if (!list->has_heads)
        return;
    item->encoding = head[ITEM_ENCODING];
    item->channels = head[ITEM_CHANNELS];
    item->bit_depth = head[ITEM_BIT_DEPTH];
    item->flags = head[ITEM_FLAGS];
    item->width = pstk__get32(head + ITEM_WIDTH);
    item->height = pstk__get32(head + ITEM_HEIGHT);
}

const char *pstk__list_next(struct pstk__list *list, struct pstk__field_view *item, char text[160])
{
    read_head(list, item);
    const uint64_t from = list->has_heads ? aligned(list->at) : list->at;
    for (uint64_t at = list->at; at < from && at < list->size; at++)
        if (list->data[at])
            return WRONG("the bytes before item %u must be zero and are not", list->i);
    if (from > list->size || item->plain_size > list->size - from)
        return WRONG("item %u has %u bytes, which are more than follow in the list", list->i,
                     item->plain_size);
    item->data = list->data + from;
    list->at = from + item->plain_size;
    list->i++;
    return NULL;
}

const char *pstk__list_end(const struct pstk__list *list, char text[160])
{
    return list->at == list->size
               ? NULL
               : WRONG("%" PRIu64 " bytes follow the last item of the list", list->size - list->at);
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* Check the head of an image, or the UTF-8 of a text, of item i. */
static const char *check_item(uint32_t kind, const struct pstk__field_view *item, uint32_t i,
                              char text[160])
{
    if (kind == PSTK_FIELD_UTF8_LIST) {
        const uint64_t end = pstk__utf8_end(item->data, item->plain_size);
        return end == item->plain_size ? NULL
                                       : WRONG("item %u is not UTF-8 at byte %" PRIu64, i, end);
    }
    if (!has_heads(kind))
        return NULL;
    const char *wrong = pstk__record_item_wrong(item);
    if (wrong)
        return WRONG("item %u: %.120s", i, wrong);
    return kind == PSTK_FIELD_IMAGE_LIST || pstk__mask_known(item->encoding, item->channels)
               ? NULL
               : WRONG("item %u is not a mask: neither a PNG file nor pixels of one channel", i);
}

const char *pstk__list_check(uint32_t kind, const void *data, uint64_t size, char text[160])
{
    struct pstk__list list;
    struct pstk__field_view item;
    const char *wrong = pstk__list_begin(&list, kind, data, size, text);
    while (!wrong && list.i < list.n) {
        wrong = pstk__list_next(&list, &item, text);
        if (!wrong)
            wrong = check_item(kind, &item, list.i - 1, text);
    }
    return wrong ? wrong : pstk__list_end(&list, text);
}

void pstk__list_sides(uint32_t kind, const void *data, uint64_t size, uint32_t *width,
                      uint32_t *height)
{
    struct pstk__list list;
    struct pstk__field_view item;
    char text[160];
    *width = *height = 0;
    if (!has_heads(kind) || pstk__list_begin(&list, kind, data, size, text))
        return;
    while (list.i < list.n && !pstk__list_next(&list, &item, text)) {
        *width = item.width > *width ? item.width : *width;
        *height = item.height > *height ? item.height : *height;
    }
}

const char *pstk__list_check_image(uint32_t kind, const struct pstk__field_view *item,
                                   char text[160])
{
    struct pstk__image_info info = {0};
    struct pstk_error why;
    pstk_error_init(&why, sizeof why);
    if (item->encoding == PSTK_ENCODING_PIXELS)
        return NULL;
    if ((kind == PSTK_FIELD_MASK_LIST ? pstk__mask_probe : pstk__image_probe)(
            item->data, item->plain_size, PSTK__MAX_PIXELS, &info, &why) < 0)
        return WRONG("%.150s", why.message);
    if (info.encoding == item->encoding && info.width == item->width &&
        info.height == item->height && info.channels == item->channels &&
        info.bit_depth == item->bit_depth &&
        info.has_palette == ((item->flags & PSTK__FIELD_PALETTE) != 0))
        return NULL;
    return WRONG("its header says %s of %u x %u pixels, %u channels of %u bits; its head in the "
                 "list says otherwise",
                 pstk__encoding_name(info.encoding), info.width, info.height, info.channels,
                 info.bit_depth);
}

const char *pstk__list_check_images(uint32_t kind, const void *data, uint64_t size, uint32_t *width,
                                    uint32_t *height, char text[200])
{
    struct pstk__list list;
    struct pstk__field_view item;
    char what[160];
    const char *wrong = pstk__list_begin(&list, kind, data, size, what);
    while (!wrong && list.i < list.n) {
        wrong = pstk__list_next(&list, &item, what);
        if (!wrong)
            wrong = pstk__list_check_image(kind, &item, what);
    }
    pstk__list_sides(kind, data, size, width, height);
    return wrong ? (snprintf(text, 200, "item %u: %s", list.i - 1, wrong), text) : NULL;
}

/* ---- writing --------------------------------------------------------------------------------- */

void pstk__list_put_head(uint32_t kind, uint32_t n, uint32_t i, const struct pstk__field_view *item,
                         uint8_t *at)
{
    pstk__put32(at, n);
    uint8_t *head =
        at + (has_heads(kind) ? PSTK__LIST_ALIGN * (1 + (uint64_t)i) : 4 + 4 * (uint64_t)i);
    pstk__put32(head + ITEM_SIZE, item->plain_size);
    if (!has_heads(kind))
        return;
    head[ITEM_ENCODING] = item->encoding;
    head[ITEM_CHANNELS] = item->channels;
    head[ITEM_BIT_DEPTH] = item->bit_depth;
    head[ITEM_FLAGS] = (uint8_t)item->flags;
    pstk__put32(head + ITEM_WIDTH, item->width);
    pstk__put32(head + ITEM_HEIGHT, item->height);
}
