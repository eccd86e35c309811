/* SPDX-License-Identifier: Apache-2.0 */
#include "image/mask.h"

#include "base/error.h"
#include "image/pixels.h"
#include "image/png/decode.h"

#include <penstock/format.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SIDE 65535u

int pstk__mask_probe(const void *data, uint64_t size, uint64_t max_pixels,
                     struct pstk__image_info *info, struct pstk_error *err)
{
    const char *name;
    const enum pstk__signature signature = pstk__signature_find(data, size, &name);
    if (signature == PSTK__SIGNATURE_PNG)
        return pstk__png_probe_samples(data, size, max_pixels, info, err);
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                      "%s; a mask must be a PNG file of one channel, or pixels",
                      signature == PSTK__SIGNATURE_NONE ? "its bytes do not begin as a PNG file"
                      : signature == PSTK__SIGNATURE_JPEG
                          ? "it is a JPEG file, whose loss changes class numbers"
                          : "the file has another format than PNG");
}

/* The position in memory to which the next rows are copied. */
struct copy {
    uint8_t *at;
    size_t row_size;
};

static void copy_rows(void *user, const uint8_t *rows, uint64_t stride, uint32_t n_rows)
{
    struct copy *copy = user;
    for (uint32_t y = 0; y < n_rows; y++, rows += stride, copy->at += copy->row_size)
        memcpy(copy->at, rows, copy->row_size);
}

static void drop_rows(void *user, const uint8_t *rows, uint64_t stride, uint32_t n_rows)
{
    (void)user;
    (void)rows;
    (void)stride;
    (void)n_rows;
}

static int decode_png(const void *data, uint64_t size, const struct pstk__image_info *info,
                      const struct pstk__row_sink *sink, struct pstk_error *err)
{
    const struct pstk__coded image = {&pstk__image_png, data, size, info};
    const uint64_t n_pixels = (uint64_t)info->width * info->height;
    struct pstk__arena arena = {0};
    int r = pstk__arena_open(&arena, pstk__image_png.scratch(info->width, info->height, n_pixels));
    if (r < 0)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_DECODE,
                          "no memory to decode a mask of %u x %u pixels", info->width,
                          info->height);
    r = pstk__png_samples(&arena, &image, sink, err);
    pstk__arena_close(&arena);
    return r;
}

/* Check that the number of bytes is that of the image's pixels. */
static int check_pixels(uint64_t size, const struct pstk__image_info *info, struct pstk_error *err)
{
    const uint64_t n = (uint64_t)info->width * info->height * pstk__mask_sample_size(info);
    return size == n
               ? 0
               : pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                            "mask of %u x %u pixels has %llu bytes; must have %llu", info->width,
                            info->height, (unsigned long long)size, (unsigned long long)n);
}

/* Check the header of a mask's file. */
static int check_header(const void *data, uint64_t size, const struct pstk__image_info *info,
                        struct pstk_error *err)
{
    struct pstk__image_info found;
    const int r = pstk__mask_probe(data, size, PSTK__MAX_PIXELS, &found, err);
    if (r < 0 || (found.width == info->width && found.height == info->height &&
                  found.bit_depth == info->bit_depth && found.has_palette == info->has_palette))
        return r;
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                      "the mask has %u x %u pixels of %u bits%s, its record says %u x %u of %u%s",
                      found.width, found.height, found.bit_depth,
                      found.has_palette ? " and a palette" : "", info->width, info->height,
                      info->bit_depth, info->has_palette ? " and a palette" : "");
}

int pstk__mask_check(const void *data, uint64_t size, const struct pstk__image_info *info,
                     int decode, struct pstk_error *err)
{
    const struct pstk__row_sink nowhere = {.rows = drop_rows,
                                           .channels = pstk__mask_sample_size(info)};
    if (info->encoding == PSTK_ENCODING_PIXELS)
        return check_pixels(size, info, err);
    const int r = check_header(data, size, info, err);
    return r == 0 && decode ? decode_png(data, size, info, &nowhere, err) : r;
}

int pstk__mask_decode(const void *data, uint64_t size, const struct pstk__image_info *info,
                      void *out, struct pstk_error *err)
{
    const uint32_t sample_size = pstk__mask_sample_size(info);
    struct copy copy = {.at = out, .row_size = (size_t)info->width * sample_size};
    const struct pstk__row_sink sink = {.rows = copy_rows, .user = &copy, .channels = sample_size};
    if (info->encoding == PSTK_ENCODING_PNG)
        return decode_png(data, size, info, &sink, err);
    const int r = check_pixels(size, info, err);
    if (r == 0)
        memcpy(out, data, size);
    return r;
}

uint64_t pstk__mask_scratch(uint32_t max_width, uint32_t max_height, uint64_t max_pixels)
{
    return pstk__image_png.scratch(max_width, max_height, max_pixels);
}

int pstk__mask_rows(struct pstk__arena *arena, const void *data, uint64_t size,
                    const struct pstk__image_info *info, const struct pstk__row_sink *sink,
                    struct pstk_error *err)
{
    const struct pstk__coded image = {&pstk__image_png, data, size, info};
    if (info->encoding == PSTK_ENCODING_PNG)
        return pstk__png_samples(arena, &image, sink, err);
    const int r = check_pixels(size, info, err);
    if (r == 0)
        sink->rows(sink->user, data, (uint64_t)info->width * sink->channels, info->height);
    return r;
}

/* Check the header that the caller passed. */
static int check_info(const struct pstk__image_info *info, struct pstk_error *err)
{
    if (!pstk__mask_known(info->encoding, info->channels) ||
        (info->encoding == PSTK_ENCODING_PIXELS &&
         !pstk__pixels_known(info->channels, info->bit_depth)))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_DECODE,
                          "info: the value is no mask (encoding %u, %u channels of %u bits); must "
                          "be of a mask, as pstk_dataset_get describes it",
                          info->encoding, info->channels, info->bit_depth);
    if (info->width > MAX_SIDE || info->height > MAX_SIDE)
        return pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_DECODE,
                          "the mask has a side of more than %u pixels", MAX_SIDE);
    return pstk__image_check_size("mask", info->width, info->height, PSTK__MAX_PIXELS, err);
}

int pstk_mask_decode(const void *data, uint64_t size, const struct pstk_value_info *info,
                     void **samples, uint32_t *dtype, struct pstk_error *err)
{
    struct pstk_value_info about = {0};
    if (!data || !info || !samples || !dtype)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_DECODE, "%s is NULL",
                          !data      ? "data"
                          : !info    ? "info"
                          : !samples ? "samples"
                                     : "dtype");
    *samples = NULL;
    memcpy(&about, info, info->size < sizeof about ? info->size : sizeof about);
    const struct pstk__image_info image = {.encoding = about.encoding,
                                           .width = about.width,
                                           .height = about.height,
                                           .orientation = 1,
                                           .channels = about.channels == 1,
                                           .bit_depth =
                                               about.bit_depth <= 16 ? (uint8_t)about.bit_depth : 0,
                                           .has_palette = about.has_palette != 0};
    int r = check_info(&image, err);
    if (r < 0)
        return r;
    *dtype = pstk__mask_sample_size(&image) == 2 ? PSTK_U16 : PSTK_U8;
    void *out = malloc((size_t)image.width * image.height * pstk__mask_sample_size(&image));
    r = out ? pstk__mask_decode(data, size, &image, out, err)
            : pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_DECODE,
                         "no memory for a mask of %u x %u pixels", image.width, image.height);
    if (r < 0)
        free(out);
    else
        *samples = out;
    return r;
}
