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
static int pixels_open(void **out, struct pstk__arena *arena, uint32_t isa, struct pstk_error *err)
{
    (void)isa;
    (void)err;
    *out = arena;
    return 0;
}

/* Count two rows of at most 4 channels, each rounded up by the arena to 64 bytes. */
static uint64_t pixels_scratch(uint32_t max_width, uint32_t max_height, uint64_t max_pixels)
{
    (void)max_height;
    (void)max_pixels;
    return 2 * (4 * (uint64_t)max_width + 64);
}

/* Rows of a box, `stride` bytes apart, to convert for a sink. */
struct rows {
    const uint8_t *first;
    uint64_t stride;
    uint32_t channels;
    uint32_t is_wide; /* 1: samples of 16 bits, little-endian */
};

/* Keep the high byte of each of n samples of 16 bits. */
static void narrow(uint8_t *out, const uint8_t *in, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        out[i] = in[2 * i + 1];
}

/* Pass rows to a sink that needs them converted. */
static int convert_rows(struct pstk__arena *arena, const struct rows *rows,
                        const struct pstk__box *box, const struct pstk__row_sink *sink)
{
    const size_t mark = arena->used;
    const uint8_t *from = rows->first;
    uint8_t *high = pstk__arena_get(arena, (uint64_t)box->width * rows->channels);
    uint8_t *out = pstk__arena_get(arena, (uint64_t)box->width * sink->channels);
    for (uint32_t y = 0; high && out && y < box->height; y++, from += rows->stride) {
        const uint8_t *row = from;
        if (rows->is_wide) {
            narrow(high, row, (uint64_t)box->width * rows->channels);
            row = high;
        }
        if (rows->channels != sink->channels) {
            pstk__channels_convert(out, sink->channels, row, rows->channels, box->width);
            row = out;
        }
        sink->rows(sink->user, row, 0, 1);
    }
    pstk__arena_reset(arena, mark);
    return high && out ? 0 : PSTK_ENOMEM;
}

/* Check that the number of bytes is that of the image, and that its samples can become 8 bits. */
static int check_image(const struct pstk__coded *image, struct pstk_error *err)
{
    const struct pstk__image_info *info = image->info;
    if (!pstk__pixels_known(info->channels, info->bit_depth))
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                          "decoded image of %u channels of %u bits; must have 1, 3 or 4 of 8 or 16",
                          info->channels, info->bit_depth);
    /* stride is below 2^35; its product with the height may overflow */
    const uint32_t pixel = pstk__pixels_size(info->channels, info->bit_depth);
    const uint64_t stride = (uint64_t)info->width * pixel;
    if (image->size / stride != info->height || image->size % stride != 0)
        return pstk__fail(
            err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
            "decoded image of %u x %u pixels has %llu bytes; must have %u bytes a pixel",
            info->width, info->height, (unsigned long long)image->size, pixel);
    if (info->channels == 1 && info->bit_depth == 16)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_DECODE,
                          "the image is 16-bit gray, for whose 8-bit values there is no common "
                          "rule; convert it to 8 bits, or read its bytes");
    return 0;
}

static int pixels_decode(void *state, const struct pstk__coded *image, const struct pstk__box *box,
                         const struct pstk__row_sink *sink, struct pstk_error *err)
{
    const struct pstk__image_info *info = image->info;
    int rc = pstk__image_check_box(image, box, sink, err);
    if (rc == 0)
        rc = check_image(image, err);
    if (rc < 0)
        return rc;
    const uint32_t pixel = pstk__pixels_size(info->channels, info->bit_depth);
    const uint64_t stride = (uint64_t)info->width * pixel;
    const struct rows rows = {
        .first = (const uint8_t *)image->data + box->top * stride + (uint64_t)box->left * pixel,
        .stride = stride,
        .channels = info->channels,
        .is_wide = info->bit_depth == 16,
    };
    if (!rows.is_wide && rows.channels == sink->channels) {
        sink->rows(sink->user, rows.first, stride, box->height);
        return 0;
    }
    rc = convert_rows(state, &rows, box, sink);
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
