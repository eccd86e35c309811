/* SPDX-License-Identifier: Apache-2.0 */
/* list: the plain bytes of a list: how many items, and where each lies (FORMAT.md, Lists). Pure. */
#ifndef PSTK_LIST_H
#define PSTK_LIST_H

#include "record/kind.h"
#include "record/record.h"

/* Items have heads, and begin at multiples of PSTK__LIST_ALIGN: those of images. */
#define PSTK__LIST_ALIGN 16 /* bytes, of a head, too */

/* A list whose items are read in order. */
struct pstk__list {
    const uint8_t *data; /* borrowed */
    uint64_t size;
    uint32_t has_heads; /* 1: a list of images */
    uint32_t n;         /* items */
    uint32_t i;         /* of the next one */
    uint64_t at;        /* where it begins */
};

/* Begin to read a list of a kind that has PSTK__TRAIT_LIST. Returns NULL, or what is wrong, as a
 * phrase in `text`: then there is no item. */
const char *pstk__list_begin(struct pstk__list *list, uint32_t kind, const void *data,
                             uint64_t size, char text[160]);
/* Read the next item, of which there must be one, into *item: data, plain_size, and of an image
 * what its head says. Returns as begin does. */
const char *pstk__list_next(struct pstk__list *list, struct pstk__field_view *item, char text[160]);
/* After the last item: check that nothing follows. Returns as begin does. */
const char *pstk__list_end(const struct pstk__list *list, char text[160]);

/* Check a whole list, of texts their UTF-8, of images their heads. Returns as begin does. */
const char *pstk__list_check(uint32_t kind, const void *data, uint64_t size, char text[160]);
/* Largest width and height of the items of a checked list; 0 for lists without images. */
void pstk__list_sides(uint32_t kind, const void *data, uint64_t size, uint32_t *width,
                      uint32_t *height);
/* Check the headers of all images of a checked list, and find their largest sides. Returns as begin
 * does. */
const char *pstk__list_check_images(uint32_t kind, const void *data, uint64_t size, uint32_t *width,
                                    uint32_t *height, char text[200]);
/* Check what an image's own header says against the head of its item in a list of this kind.
 * Returns as begin does. */
const char *pstk__list_check_image(uint32_t kind, const struct pstk__field_view *item,
                                   char text[160]);

/* Bytes of the list before its items, whose sizes are `sizes`. */
uint64_t pstk__list_head_size(uint32_t kind, uint32_t n);
/* Write the head of item i of n into a list. `at`: the list's bytes, zero so far. */
void pstk__list_put_head(uint32_t kind, uint32_t n, uint32_t i, const struct pstk__field_view *item,
                         uint8_t *at);

#endif
