/* SPDX-License-Identifier: Apache-2.0 */
#include "image/pixels.h"

#include "base/error.h"
#include "image/channels.h"

#include <penstock/format.h>

static int pixels_probe(const void *data, uint64_t size, uint64_t max_pixels,
                        struct pstk__image_info *info, struct pstk_error *err)
{
    (void)data;
    (void)size;
    (void)max_pixels;
    (void)info;
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                      "decoded pixels have no header; give their width and height");
}

/* Use the arena as the state. */
static int pixels_open(void **out, struct pstk__arena *arena, uint32_t variant,
                       struct pstk_error *err)
{
    (void)variant;
    (void)err;
    *out = arena;
    return 0;
}

/* One row of at most 4 channels, rounded up by the arena to 64 bytes. */
static uint64_t pixels_scratch(uint32_t max_width, uint32_t max_height, uint64_t max_pixels)
{
    (void)max_height;
    (void)max_pixels;
    return 4 * (uint64_t)max_width + 64;
}

/* Convert rows of RGB, `stride` bytes apart, for a sink of other channels. */
static int convert_rows(struct pstk__arena *arena, const uint8_t *rgb, uint64_t stride,
                        const struct pstk__box *box, const struct pstk__row_sink *sink)
{
    const size_t mark = arena->used;
    uint8_t *row = pstk__arena_get(arena, (uint64_t)box->width * sink->channels);
    if (!row)
        return PSTK_ENOMEM;
    for (uint32_t y = 0; y < box->height; y++, rgb += stride) {
        if (sink->channels == 1)
            pstk__gray_from_rgb(row, rgb, box->width);
        else
            pstk__rgba_from_rgb(row, rgb, box->width);
        sink->rows(sink->user, row, 0, 1);
    }
    pstk__arena_reset(arena, mark);
    return 0;
}

static int pixels_decode(void *state, const struct pstk__coded *image, const struct pstk__box *box,
                         const struct pstk__row_sink *sink, struct pstk_error *err)
{
    const struct pstk__image_info *info = image->info;
    int rc = pstk__image_check_box(image, box, sink, err);
    if (rc < 0)
        return rc;
    const uint64_t stride = (uint64_t)info->width * 3; /* < 2^34; times height may overflow */
    if (image->size / stride != info->height || image->size % stride != 0)
        return pstk__fail(
            err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
            "decoded image of %u x %u pixels has %llu bytes; must have 3 bytes a pixel",
            info->width, info->height, (unsigned long long)image->size);
    const uint8_t *row = (const uint8_t *)image->data + box->top * stride + (uint64_t)box->left * 3;
    if (sink->channels == 3) {
        sink->rows(sink->user, row, stride, box->height);
        return 0;
    }
    rc = convert_rows(state, row, stride, box, sink);
    return rc == 0
               ? 0
               : pstk__fail(err, rc, PSTK_STAGE_DECODE, "no scratch memory for a row of pixels");
}

const struct pstk__image_decoder pstk__image_pixels = {
    .encoding = PSTK_ENCODING_PIXELS,
    .name = "pixels",
    .probe = pixels_probe,
    .open = pixels_open,
    .scratch = pixels_scratch,
    .decode = pixels_decode,
};
