/* SPDX-License-Identifier: Apache-2.0 */
#include "image/image.h"

#include "base/error.h"
#include "image/jpeg/plain.h"
#include "base/signature.h"

#include <penstock/format.h>
#include <stdlib.h>
#include <string.h>

static const struct pstk__image_decoder *const decoders[] = {&pstk__image_jpeg, &pstk__image_png,
                                                             &pstk__image_pixels};

const struct pstk__image_decoder *pstk__image_decoder(uint32_t encoding)
{
    for (size_t i = 0; i < sizeof decoders / sizeof decoders[0]; i++)
        if (decoders[i]->encoding == encoding)
            return decoders[i];
    return NULL;
}

int pstk_image_is_palette(const void *data, uint64_t size)
{
    enum { COLOUR_TYPE_AT = 25, PALETTE = 3 }; /* in IHDR, the first chunk: PNG 3, 11.2.1 */
    return data && size > COLOUR_TYPE_AT &&
           pstk__signature_find(data, size, NULL) == PSTK__SIGNATURE_PNG &&
           ((const uint8_t *)data)[COLOUR_TYPE_AT] == PALETTE;
}

int pstk__image_probe(const void *data, uint64_t size, uint64_t max_pixels,
                      struct pstk__image_info *info, struct pstk_error *err)
{
    const char *name;
    switch (pstk__signature_find(data, size, &name)) {
    case PSTK__SIGNATURE_JPEG:
        return pstk__image_jpeg.probe(data, size, max_pixels, info, err);
    case PSTK__SIGNATURE_PNG:
        return pstk__image_png.probe(data, size, max_pixels, info, err);
    case PSTK__SIGNATURE_OTHER:
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                          "the file has the format %s; only JPEG and PNG are packed (convert it)",
                          name);
    default:
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                          "%llu bytes that begin neither like a JPEG nor like a PNG file",
                          (unsigned long long)size);
    }
}

/* ---- shared checks -------------------------------------------------------------------------- */

int pstk__image_check_box(const struct pstk__image_info *info, const struct pstk__box *box,
                          struct pstk_error *err)
{
    if (box->width > 0 && box->width <= info->width && box->left <= info->width - box->width &&
        box->height > 0 && box->height <= info->height && box->top <= info->height - box->height)
        return 0;
    return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_DECODE,
                      "box of %u x %u pixels at left %u, top %u is not inside the image of %u x %u",
                      box->width, box->height, box->left, box->top, info->width, info->height);
}

int pstk__image_check_size(const char *name, uint32_t width, uint32_t height, uint64_t max_pixels,
                           struct pstk_error *err)
{
    if (width == 0 || height == 0)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE, "%s of %u x %u pixels has none",
                          name, width, height);
    if ((uint64_t)width * height > max_pixels)
        return pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_DECODE,
                          "%s of %u x %u pixels is over the limit of %llu pixels (max_pixels)",
                          name, width, height, (unsigned long long)max_pixels);
    return 0;
}

/* ---- Exif ----------------------------------------------------------------------------------- */

static uint32_t read_number(const uint8_t *p, uint32_t n_bytes, int little)
{
    uint32_t value = 0;
    for (uint32_t i = 0; i < n_bytes; i++)
        value = value << 8 | p[little ? n_bytes - 1 - i : i];
    return value;
}

uint32_t pstk__image_orientation(const uint8_t *tiff, uint64_t size)
{
    enum { ENTRY_SIZE = 12, TAG_ORIENTATION = 0x112, TYPE_SHORT = 3, TYPE_LONG = 4 };

    if (size < 8)
        return 1;
    int little = tiff[0] == 'I';
    uint32_t mark = (uint32_t)tiff[2] << 8 | tiff[3];
    if (memcmp(tiff, little ? "II" : "MM", 2) != 0 || (mark != 0x2a && mark != 0x2a00))
        return 1; /* 42 in the wrong byte order is forgiven, as Pillow does */
    uint64_t at = read_number(tiff + 4, 4, little);
    if (at > size - 2)
        return 1;
    uint64_t n_entries = read_number(tiff + at, 2, little);
    at += 2;
    for (uint64_t i = 0; i < n_entries && at <= size && size - at >= ENTRY_SIZE; i++) {
        const uint8_t *entry = tiff + at;
        at += ENTRY_SIZE;
        if (read_number(entry, 2, little) != TAG_ORIENTATION)
            continue;
        uint32_t type = read_number(entry + 2, 2, little);
        uint32_t value = 0;
        if (read_number(entry + 4, 4, little) == 1 && (type == TYPE_SHORT || type == TYPE_LONG))
            value = read_number(entry + 8, type == TYPE_SHORT ? 2 : 4, little);
        return value >= 1 && value <= 8 ? value : 1;
    }
    return 1;
}

/* ---- decoded pixels ------------------------------------------------------------------------- */

static int pixels_probe(const void *data, uint64_t size, uint64_t max_pixels,
                        struct pstk__image_info *info, struct pstk_error *err)
{
    (void)data;
    (void)size;
    (void)max_pixels;
    (void)info;
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                      "decoded pixels have no header; their size must come with them");
}

static int pixels_decode(struct pstk__image_state *state, const void *data, uint64_t size,
                         const struct pstk__image_info *info, const struct pstk__box *box,
                         const struct pstk__row_sink *sink, struct pstk_error *err)
{
    (void)state;
    int r = pstk__image_check_box(info, box, err);
    if (r < 0)
        return r;
    uint64_t stride = (uint64_t)info->width * 3; /* below 2^34, so times height could overflow */
    if (size / stride != info->height || size % stride != 0)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                          "decoded image of %u x %u pixels has %llu bytes, not 3 a pixel",
                          info->width, info->height, (unsigned long long)size);
    const uint8_t *row = (const uint8_t *)data + box->top * stride + (uint64_t)box->left * 3;
    sink->rows(sink->user, row, stride, box->height);
    return 0;
}

const struct pstk__image_decoder pstk__image_pixels = {
    .encoding = PSTK_ENCODING_PIXELS,
    .name = "pixels",
    .probe = pixels_probe,
    .decode = pixels_decode,
};

/* ---- state ---------------------------------------------------------------------------------- */

uint64_t pstk__image_scratch_within(uint32_t max_width, uint32_t max_height, uint64_t max_pixels)
{
    /* One image is decoded at a time, and its memory is given back: the larger bound holds. */
    uint64_t jpeg = pstk__jpeg_scratch(max_width, max_height, max_pixels);
    uint64_t png = pstk__png_scratch(max_width, max_height, max_pixels);
    uint64_t planes = pstk__planes_scratch(max_width, max_height);
    uint64_t most = jpeg > png ? jpeg : png;
    return most > planes ? most : planes;
}

uint64_t pstk__image_scratch(uint32_t width, uint32_t height)
{
    return pstk__image_scratch_within(width, height, (uint64_t)width * height);
}

int pstk__image_state_open(struct pstk__image_state **out, struct pstk__arena *arena,
                           uint32_t variant, struct pstk_error *err)
{
    *out = NULL;
    struct pstk__image_state *s = calloc(1, sizeof *s);
    if (!s)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for an image decoder");
    s->arena = arena;
    int r = pstk__jpeg_open(&s->jpeg, arena, err);
    if (r == 0)
        r = pstk__planes_state_open(&s->planes, variant, err);
    if (r < 0) {
        pstk__image_state_close(s);
        return r;
    }
    *out = s;
    return 0;
}

void pstk__image_state_close(struct pstk__image_state *s)
{
    if (!s)
        return;
    pstk__planes_state_close(s->planes);
    pstk__jpeg_close(s->jpeg);
    free(s);
}

const char *pstk__image_library(void)
{
    return pstk__jpeg_library();
}

/* ---- the whole image, checked --------------------------------------------------------------- */

static void drop_rows(void *user, const uint8_t *rgb, uint64_t stride, uint32_t n_rows)
{
    (void)user;
    (void)rgb;
    (void)stride;
    (void)n_rows;
}

static int decode_all(const void *data, uint64_t size, const struct pstk__image_info *info,
                      struct pstk_error *err)
{
    const struct pstk__row_sink nowhere = {.rows = drop_rows};
    const struct pstk__box all = {.width = info->width, .height = info->height};
    struct pstk__arena arena = {0};
    struct pstk__image_state *state = NULL;

    int r = pstk__arena_open(&arena, pstk__image_scratch(info->width, info->height));
    if (r < 0)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_DECODE,
                          "no memory to decode an image of %u x %u pixels", info->width,
                          info->height);
    r = pstk__image_state_open(&state, &arena, PSTK_VARIANT_AUTO, err);
    if (r == 0)
        r = pstk__image_decoder(info->encoding)
                ->decode(state, data, size, info, &all, &nowhere, err);
    pstk__image_state_close(state);
    pstk__arena_close(&arena);
    return r;
}

/* 1: our own reader finds that libjpeg would decode it without a warning, in a fraction of the
 * time. */
static int is_plain_and_whole(const void *data, uint64_t size, const struct pstk__image_info *info)
{
    if (info->encoding != PSTK_ENCODING_JPEG)
        return 0;
    struct pstk__jpeg_plain *s = malloc(sizeof *s);
    int r = s && pstk__jpeg_plain_open(s, data, size) && pstk__jpeg_plain_check(s);
    free(s);
    return r;
}

int pstk_image_check(const void *data, uint64_t size, uint64_t max_pixels, uint32_t *width,
                     uint32_t *height, struct pstk_error *err)
{
    struct pstk__image_info info;

    if (!data)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_DECODE, "data is NULL");
    int r = pstk__image_probe(data, size, max_pixels ? max_pixels : PSTK__MAX_PIXELS, &info, err);
    if (r < 0)
        return r;
    if (width)
        *width = info.width;
    if (height)
        *height = info.height;
    return is_plain_and_whole(data, size, &info) ? 0 : decode_all(data, size, &info, err);
}
