/* SPDX-License-Identifier: Apache-2.0 */
#include "annotations/panoptic_mask.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "image/png/decode.h"

/* Return the value in the class mask of a pixel without a segment. */
static uint32_t no_label(const struct pstk__panoptic_mask *mask)
{
    return mask->label_size == 1 ? UINT8_MAX : UINT16_MAX;
}

static int compare_ids(const void *a, const void *b)
{
    const struct pstk__segment *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* Find the segment of an id that differs from the previous pixel's. Returns NULL if no segment has
 * it. */
static const struct pstk__segment *find(const struct pstk__panoptic_mask *mask, uint32_t id)
{
    const struct pstk__segment wanted = {.id = id};
    if (id == 0)
        return &mask->none;
    return mask->n ? bsearch(&wanted, mask->segments, mask->n, sizeof wanted, compare_ids) : NULL;
}

/* Write the numbers and the classes of a row of colours. */
static void put_row(struct pstk__panoptic_mask *mask, const uint8_t *pixels, uint8_t *numbers,
                    uint8_t *labels)
{
    for (uint32_t x = 0; x < mask->width; x++) {
        const uint8_t *p = pixels + 3 * (size_t)x;
        const uint32_t id = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16;
        if (id != mask->at->id) {
            const struct pstk__segment *found = find(mask, id);
            if (!found && mask->unknown_id < 0) {
                mask->unknown_id = id;
                mask->unknown_x = x;
                mask->unknown_y = (uint32_t)mask->n_rows;
            }
            mask->at = found ? found : &mask->none;
        }
        const uint16_t number = (uint16_t)mask->at->number, label = (uint16_t)mask->at->label;
        memcpy(numbers + 2 * (size_t)x, &number, sizeof number); /* little-endian */
        memcpy(labels + (size_t)mask->label_size * x, &label, mask->label_size);
    }
}

static void take_rows(void *user, const uint8_t *rows, uint64_t stride, uint32_t n_rows)
{
    struct pstk__panoptic_mask *mask = user;
    for (uint32_t y = 0; y < n_rows; y++, rows += stride, mask->n_rows++) {
        uint8_t *numbers = pstk__bytes_room(mask->numbers, 2 * (uint64_t)mask->width);
        uint8_t *labels = pstk__bytes_room(mask->labels, (uint64_t)mask->label_size * mask->width);
        if (numbers && labels)
            put_row(mask, rows, numbers, labels);
    }
}

static int check_header(const struct pstk__image_info *info, struct pstk_error *err)
{
    if (info->channels >= 3 && info->bit_depth == 8)
        return 0;
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                      "the PNG file has %u channel%s of %u bits%s; must be RGB of 8 bits, whose "
                      "colours are ids of segments",
                      info->channels, info->channels == 1 ? "" : "s", info->bit_depth,
                      info->has_palette ? " and a palette" : "");
}

static int decode(struct pstk__panoptic_mask *mask, const struct pstk__coded *image,
                  struct pstk_error *err)
{
    const struct pstk__box all = {.width = mask->width, .height = mask->height};
    const struct pstk__row_sink sink = {.rows = take_rows, .user = mask, .channels = 3};
    const uint64_t n_pixels = (uint64_t)mask->width * mask->height;
    struct pstk__arena arena = {0};
    int r = pstk__arena_open(&arena, pstk__image_png.scratch(mask->width, mask->height, n_pixels));
    if (r < 0)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_DECODE,
                          "no memory to decode a mask of %u x %u pixels", mask->width,
                          mask->height);
    r = pstk__image_png.decode(&arena, image, &all, &sink, err);
    pstk__arena_close(&arena);
    return r;
}

int pstk__panoptic_mask_read(struct pstk__panoptic_mask *mask, const void *data, uint64_t size,
                             struct pstk_error *err)
{
    struct pstk__image_info info;
    const struct pstk__coded image = {&pstk__image_png, data, size, &info};
    int r = pstk__image_png.probe(data, size, PSTK__MAX_PIXELS, &info, err);
    if (r == 0)
        r = check_header(&info, err);
    if (r < 0)
        return r == PSTK_ENOTSUP ? pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                                              "the PNG file is gray of 16 bits; must be RGB of 8 "
                                              "bits, whose colours are ids of segments")
                                 : r;
    mask->width = info.width;
    mask->height = info.height;
    mask->none = (struct pstk__segment){.label = no_label(mask)};
    mask->at = &mask->none;
    mask->n_rows = 0;
    mask->unknown_id = -1;
    r = decode(mask, &image, err);
    if (r == 0 && mask->unknown_id >= 0)
        r = pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                       "the pixel at x %u, y %u has the id %" PRId64
                       "; must be 0 or the id of one of segments_info",
                       mask->unknown_x, mask->unknown_y, mask->unknown_id);
    return r;
}

void pstk__panoptic_mask_fill(const struct pstk__panoptic_mask *mask)
{
    const uint64_t n = (uint64_t)mask->width * mask->height;
    uint8_t *numbers = pstk__bytes_room(mask->numbers, 2 * n);
    uint8_t *labels = pstk__bytes_room(mask->labels, mask->label_size * n);
    if (numbers)
        memset(numbers, 0, 2 * n);
    if (labels)
        memset(labels, 0xff, mask->label_size * n); /* no_label, in either size */
}
