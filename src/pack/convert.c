/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/convert.h"

#include "base/error.h"
#include "image/image.h"
#include "image/jpeg/encode.h"
#include "augment/resize.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define CHANNELS 3u
#define QUALITY_DEFAULT 90u
#define SIZE_MAX_KNOWN                                                                             \
    4096u /* bytes: a struct is never that long, so a longer one is no struct                      \
           */

/* One image on its way. */
struct work {
    struct pstk_convert how;
    struct pstk__image_info info;
    uint32_t width, height; /* of the result */
    struct pstk__arena arena;
    struct pstk__image_state *state;
    struct pstk__resize resize;
    uint32_t n_rows; /* taken from the decoder */
    uint8_t *pixels; /* of the result */
};

/* ---- sizes ---------------------------------------------------------------------------------- */

/* side * to / from, rounded, halves up; at least 1. Sides are below 2^31 (PNG), and `to` is smaller
 * than `from`, a side: the sum stays below 2^64. */
static uint32_t scaled(uint32_t side, uint32_t to, uint32_t from)
{
    const uint64_t n = (2 * (uint64_t)side * to + from) / (2 * (uint64_t)from);
    return n ? (uint32_t)n : 1;
}

void pstk__convert_size(const struct pstk_convert *how, uint32_t *width, uint32_t *height)
{
    const uint32_t w = *width, h = *height;
    const uint32_t shorter = w < h ? w : h, longer = w < h ? h : w;
    if (how->shorter_side && shorter > how->shorter_side) {
        /* torchvision's int(size * long / short): the quotient as a double is an integer only where
         * it is one, so that cutting it off is the division of integers. */
        const uint32_t other = (uint32_t)((uint64_t)how->shorter_side * longer / shorter);
        *width = w < h ? how->shorter_side : other;
        *height = w < h ? other : how->shorter_side;
    } else if (how->max_side && longer > how->max_side) {
        *width = scaled(w, how->max_side, longer);
        *height = scaled(h, how->max_side, longer);
    }
}

/* ---- what was asked for --------------------------------------------------------------------- */

static int invalid(struct pstk_error *err, const char *why)
{
    return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_DECODE, "convert: %s", why);
}

/* A caller built against another version has a shorter or longer struct: what is missing reads 0,
 * what we do not know must be 0. */
static int copy_how(struct pstk_convert *to, const struct pstk_convert *from,
                    struct pstk_error *err)
{
    const uint8_t *bytes = (const uint8_t *)from;
    if (!from || from->size < offsetof(struct pstk_convert, max_side) ||
        from->size > SIZE_MAX_KNOWN)
        return invalid(err, "size is not that of struct pstk_convert");
    for (uint32_t i = sizeof *to; i < from->size; i++)
        if (bytes[i] != 0)
            return invalid(err, "something is set that this version does not know");
    memset(to, 0, sizeof *to);
    memcpy(to, from, from->size < sizeof *to ? from->size : sizeof *to);
    if (to->shorter_side && (to->max_side || to->quality))
        return invalid(err, "shorter_side gives pixels; max_side and quality are for JPEGs");
    if (!to->shorter_side && !to->max_side && !to->quality)
        return invalid(err, "nothing is asked for: set shorter_side, max_side or quality");
    if (to->quality > 100)
        return invalid(err, "quality is 1 to 100");
    to->max_pixels = to->max_pixels ? to->max_pixels : PSTK__MAX_PIXELS;
    return 0;
}

/* ---- decode, resize ------------------------------------------------------------------------- */

/* All rows of the image; the resize takes those it reads. */
static void take_rows(void *user, const uint8_t *rgb, uint64_t stride, uint32_t n_rows)
{
    struct work *w = user;
    const struct pstk__axis *x = &w->resize.x, *y = &w->resize.y;
    const uint32_t begin = w->n_rows, end = begin + n_rows;
    const uint32_t lo = y->begin > begin ? y->begin : begin;
    const uint32_t hi = y->end < end ? y->end : end;
    if (lo < hi)
        pstk__resize_rows(&w->resize, rgb + (lo - begin) * stride + (size_t)CHANNELS * x->begin,
                          stride, hi - lo);
    w->n_rows = end;
}

static int begin_resize(struct work *w)
{
    const struct pstk__resize_config config = {
        .in_width = w->info.width,
        .in_height = w->info.height,
        .out_width = w->width,
        .out_height = w->height,
        .window = {.width = w->width, .height = w->height},
        .finish = {.dtype = PSTK_U8, .layout = PSTK_NHWC, .width = w->width},
        .out = w->pixels,
        .out_stride = (uint64_t)w->width * CHANNELS};
    return pstk__resize_begin(&w->resize, &w->arena, pstk__pixel_kernels(PSTK_VARIANT_AUTO),
                              &config);
}

static int decode(struct work *w, const void *data, uint64_t size, struct pstk_error *err)
{
    const struct pstk__row_sink sink = {.rows = take_rows, .user = w};
    const struct pstk__box all = {.width = w->info.width, .height = w->info.height};
    int r = pstk__image_state_open(&w->state, &w->arena, PSTK_VARIANT_AUTO, err);
    if (r == 0 && begin_resize(w) < 0)
        r = pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_DECODE, "no scratch memory for a resize");
    if (r == 0)
        r = pstk__image_decoder(w->info.encoding)
                ->decode(w->state, data, size, &w->info, &all, &sink, err);
    return r;
}

/* ---- converting ----------------------------------------------------------------------------- */

static uint64_t scratch_size(const struct work *w)
{
    const struct pstk__resize_bounds bounds = {.max_in_width = w->info.width,
                                               .max_in_height = w->info.height,
                                               .min_out_width = w->width,
                                               .min_out_height = w->height,
                                               .max_window_width = w->width,
                                               .max_window_height = w->height};
    return pstk__image_scratch(w->info.width, w->info.height) + pstk__resize_scratch(&bounds) +
           pstk__jpeg_encode_scratch(w->width);
}

static int convert(struct work *w, const void *data, uint64_t size, void **out, uint64_t *out_size,
                   struct pstk_error *err)
{
    const uint64_t pixels_size = (uint64_t)w->width * w->height * CHANNELS;
    w->pixels = malloc(pixels_size);
    if (!w->pixels || pstk__arena_open(&w->arena, scratch_size(w)) < 0)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_DECODE,
                          "no memory to convert an image of %u x %u pixels", w->info.width,
                          w->info.height);
    int r = decode(w, data, size, err);
    if (r < 0)
        return r;
    if (w->how.shorter_side) {
        *out = w->pixels;
        *out_size = pixels_size;
        w->pixels = NULL;
        return 0;
    }
    const struct pstk__jpeg_picture picture = {.rgb = w->pixels,
                                               .width = w->width,
                                               .height = w->height,
                                               .quality = w->how.quality ? w->how.quality
                                                                         : QUALITY_DEFAULT,
                                               .orientation = w->info.orientation};
    return pstk__jpeg_encode(&picture, out, out_size, &w->arena, err);
}

int pstk_image_convert(const void *data, uint64_t size, const struct pstk_convert *how, void **out,
                       uint64_t *out_size, uint32_t *width, uint32_t *height,
                       struct pstk_error *err)
{
    struct work w = {.n_rows = 0};
    if (!data || !out || !out_size)
        return invalid(err, !data ? "data is NULL" : !out ? "out is NULL" : "out_size is NULL");
    *out = NULL;
    *out_size = 0;
    int r = copy_how(&w.how, how, err);
    if (r == 0)
        r = pstk__image_probe(data, size, w.how.max_pixels, &w.info, err);
    if (r < 0)
        return r;
    w.width = w.info.width;
    w.height = w.info.height;
    pstk__convert_size(&w.how, &w.width, &w.height);
    if (width)
        *width = w.width;
    if (height)
        *height = w.height;
    if (!w.how.shorter_side && !w.how.quality && w.width == w.info.width &&
        w.height == w.info.height)
        return 0;
    r = convert(&w, data, size, out, out_size, err);
    pstk__image_state_close(w.state);
    pstk__arena_close(&w.arena);
    free(w.pixels);
    return r < 0 ? r : 1;
}
