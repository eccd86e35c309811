/* SPDX-License-Identifier: Apache-2.0 */
/* list: the plain bytes of a list: the number of items and their positions (FORMAT.md, Lists).
 * Pure. */
#ifndef PSTK_LIST_H
#define PSTK_LIST_H

#include "record/kind.h"
#include "record/record.h"

/* Items of lists of images have heads, and begin at multiples of PSTK__LIST_ALIGN. */
#define PSTK__LIST_ALIGN 16 /* also the size of an item's head, bytes */

/* A list whose items are read in order. */
struct pstk__list {
    const uint8_t *data; /* borrowed */
    uint64_t size;
    uint32_t has_heads; /* 1: a list of images */
    uint32_t n;         /* items */
    uint32_t i;         /* number of the next item */
    uint64_t at;        /* offset at which the previous item ends, bytes */
};

/* Begin to read a list of a kind that has PSTK__TRAIT_LIST. Returns NULL, or a phrase in `text`
 * with the reason of a failure; then the list has no item. */
const char *pstk__list_begin(struct pstk__list *list, uint32_t kind, const void *data,
                             uint64_t size, char text[160]);
/* Read the next item, which must exist, into *item: data, plain_size and, for an image, the facts
 * in its head. Returns as pstk__list_begin does. */
const char *pstk__list_next(struct pstk__list *list, struct pstk__field_view *item, char text[160]);
/* Check, after the last item, that nothing follows. Returns as pstk__list_begin does. */
const char *pstk__list_end(const struct pstk__list *list, char text[160]);

/* Check a whole list: texts are UTF-8, heads of images are right. Returns as pstk__list_begin does.
 */
const char *pstk__list_check(uint32_t kind, const void *data, uint64_t size, char text[160]);
/* Find the largest width and height among the items of a checked list; 0 for lists without images.
 */
void pstk__list_sides(uint32_t kind, const void *data, uint64_t size, uint32_t *width,
                      uint32_t *height);
/* Check the headers of all images of a checked list, and find their largest width and height.
 * Returns as pstk__list_begin does. */
const char *pstk__list_check_images(uint32_t kind, const void *data, uint64_t size, uint32_t *width,
                                    uint32_t *height, char text[200]);
/* Compare an image's own header with the head of its item in a list of this kind. Returns as
 * pstk__list_begin does. */
const char *pstk__list_check_image(uint32_t kind, const struct pstk__field_view *item,
                                   char text[160]);

/* Return the bytes of a list of n items before its first item. */
uint64_t pstk__list_head_size(uint32_t kind, uint32_t n);
/* Write the number of items and the head of item i of n. `at`: the list's bytes, zero so far. */
void pstk__list_put_head(uint32_t kind, uint32_t n, uint32_t i, const struct pstk__field_view *item,
                         uint8_t *at);

#endif
