/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/convert.h"

#include "base/error.h"
#include "image/image.h"
#include "image/jpeg/encode.h"
#include "pixels/resize.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define CHANNELS 3u
#define QUALITY_DEFAULT 90u
#define SIZE_MAX_KNOWN 4096u /* bytes; larger than any struct */

/* A conversion. `look` fills in the first part, `make_pixels` the second; `close_work` frees it in
 * any state. */
struct work {
    struct pstk_convert how;
    struct pstk__image_info info;
    uint32_t width, height; /* size of the result, pixels */

    struct pstk__arena arena;        /* owned */
    struct pstk__image_state *state; /* owned; in the arena */
    struct pstk__resize resize;
    uint32_t n_rows; /* rows received from the decoder */
    uint8_t *pixels; /* owned; the pixels of the result */
};

/* ---- sizes ---------------------------------------------------------------------------------- */

/* Return side * to / from, rounded with halves up, at least 1. Sides are below 2^31 (PNG), and `to`
 * is below `from`, which is a side; so the sum stays below 2^64. */
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
        /* Compute torchvision's int(size * long / short). The quotient as a double is an integer
         * only if the exact one is, so truncating it equals integer division. */
        const uint32_t other = (uint32_t)((uint64_t)how->shorter_side * longer / shorter);
        *width = w < h ? how->shorter_side : other;
        *height = w < h ? other : how->shorter_side;
    } else if (how->max_side && longer > how->max_side) {
        *width = scaled(w, how->max_side, longer);
        *height = scaled(h, how->max_side, longer);
    }
}

/* ---- settings ------------------------------------------------------------------------------- */

static int invalid(struct pstk_error *err, const char *why)
{
    return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_DECODE, "convert: %s", why);
}

/* Copy the struct of a caller who may use another version: members that it lacks become 0, and
 * members unknown here must be 0. */
static int copy_how(struct pstk_convert *to, const struct pstk_convert *from,
                    struct pstk_error *err)
{
    const uint8_t *bytes = (const uint8_t *)from;
    if (!from || from->size < offsetof(struct pstk_convert, max_side) ||
        from->size > SIZE_MAX_KNOWN)
        return invalid(err, "size must be sizeof(struct pstk_convert)");
    for (uint32_t i = sizeof *to; i < from->size; i++)
        if (bytes[i] != 0)
            return invalid(err, "a member is set that this version does not know");
    memset(to, 0, sizeof *to);
    memcpy(to, from, from->size < sizeof *to ? from->size : sizeof *to);
    if (to->shorter_side && (to->max_side || to->quality))
        return invalid(err, "max_side and quality must be 0 when shorter_side is set (it makes "
                            "pixels, they make JPEGs)");
    if (!to->shorter_side && !to->max_side && !to->quality)
        return invalid(err, "no change is requested; set shorter_side, max_side or quality");
    if (to->quality > 100)
        return invalid(err, "quality must be from 1 to 100");
    if (to->damaged > PSTK_DAMAGED_ACCEPT || to->reserved != 0)
        return invalid(err, "damaged must be 0 or PSTK_DAMAGED_ACCEPT, and reserved 0");
    to->max_pixels = to->max_pixels ? to->max_pixels : PSTK__MAX_PIXELS;
    return 0;
}

/* ---- decode, resize ------------------------------------------------------------------------- */

/* Receive all rows of the image; pass on those that the resize reads. */
static void take_rows(void *user, const uint8_t *rgb, uint64_t stride, uint32_t n_rows)
{
    struct work *work = user;
    const struct pstk__axis *x = &work->resize.x, *y = &work->resize.y;
    const uint32_t begin = work->n_rows, end = begin + n_rows;
    const uint32_t lo = y->begin > begin ? y->begin : begin;
    const uint32_t hi = y->end < end ? y->end : end;
    if (lo < hi)
        pstk__resize_rows(&work->resize, rgb + (lo - begin) * stride + (size_t)CHANNELS * x->begin,
                          stride, hi - lo);
    work->n_rows = end;
}

static int begin_resize(struct work *work)
{
    const struct pstk__resize_config config = {
        .channels = CHANNELS,
        .in_width = work->info.width,
        .in_height = work->info.height,
        .out_width = work->width,
        .out_height = work->height,
        .crop = {.width = work->width, .height = work->height},
        .finish = {.channels = CHANNELS,
                   .dtype = PSTK_U8,
                   .layout = PSTK_NHWC,
                   .width = work->width},
        .out = work->pixels,
        .out_stride = (uint64_t)work->width * CHANNELS};
    return pstk__resize_begin(&work->resize, &work->arena, pstk__pixel_kernels(PSTK_KERNELS_AUTO),
                              &config);
}

/* Decode an image with a decoder, from its first row on. */
static int decode_by(struct work *work, const struct pstk__coded *image, struct pstk_error *err)
{
    const struct pstk__row_sink sink = {.rows = take_rows, .user = work, .channels = 3};
    const struct pstk__box all = {.width = work->info.width, .height = work->info.height};
    const size_t mark = work->arena.used;
    work->n_rows = 0;
    const int r = begin_resize(work) < 0 ? pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_DECODE,
                                                      "no scratch memory for a resize")
                                         : pstk__image_decode(work->state, image, &all, &sink, err);
    pstk__arena_reset(&work->arena, mark);
    return r;
}

/* Decode the image. If it is damaged and damaged files are accepted, decode it as Pillow does. */
static int decode(struct work *work, const void *data, uint64_t size, struct pstk_error *err)
{
    struct pstk__coded image = {.decoder = pstk__image_decoder(work->info.encoding),
                                .data = data,
                                .size = size,
                                .info = &work->info};
    int r = pstk__image_state_open(&work->state, &work->arena, PSTK_KERNELS_AUTO, err);
    if (r == 0)
        r = decode_by(work, &image, err);
    if (r != PSTK_EBADMSG || work->how.damaged != PSTK_DAMAGED_ACCEPT)
        return r;
    image.decoder = pstk__image_damaged_decoder(work->info.encoding);
    return decode_by(work, &image, NULL) == 0 ? 0 : r;
}

/* ---- converting ----------------------------------------------------------------------------- */

static uint64_t scratch_size(const struct work *work)
{
    const struct pstk__resize_bounds bounds = {.channels = CHANNELS,
                                               .max_in_width = work->info.width,
                                               .max_in_height = work->info.height,
                                               .min_out_width = work->width,
                                               .min_out_height = work->height,
                                               .max_crop_width = work->width,
                                               .max_crop_height = work->height};
    return pstk__image_scratch(work->info.width, work->info.height) +
           pstk__resize_scratch(&bounds) + pstk__jpeg_encode_scratch(work->width);
}

/* Check the settings, read the image's header, and choose the size of the result. */
static int look(struct work *work, const void *data, uint64_t size, const struct pstk_convert *how,
                struct pstk_error *err)
{
    int r = copy_how(&work->how, how, err);
    if (r == 0)
        r = pstk__image_probe(data, size, work->how.max_pixels, &work->info, err);
    if (r < 0)
        return r;
    work->width = work->info.width;
    work->height = work->info.height;
    pstk__convert_size(&work->how, &work->width, &work->height);
    return 0;
}

/* Return 1 if the image needs no change. */
static int is_unchanged(const struct work *work)
{
    return !work->how.shorter_side && !work->how.quality && work->width == work->info.width &&
           work->height == work->info.height;
}

static uint64_t pixels_size(const struct work *work)
{
    return (uint64_t)work->width * work->height * CHANNELS;
}

/* Decode and resize into work->pixels. */
static int make_pixels(struct work *work, const void *data, uint64_t size, struct pstk_error *err)
{
    work->pixels = malloc(pixels_size(work));
    if (!work->pixels || pstk__arena_open(&work->arena, scratch_size(work)) < 0)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_DECODE,
                          "no memory to convert an image of %u x %u pixels", work->info.width,
                          work->info.height);
    return decode(work, data, size, err);
}

/* Return the pixels: the result when shorter_side is set. */
static int hand_over(struct work *work, void **out, uint64_t *out_size)
{
    *out = work->pixels;
    *out_size = pixels_size(work);
    work->pixels = NULL;
    return 0;
}

/* Return a JPEG of the pixels: the result when shorter_side is 0. */
static int encode(struct work *work, void **out, uint64_t *out_size, struct pstk_error *err)
{
    const struct pstk__jpeg_picture picture = {.rgb = work->pixels,
                                               .width = work->width,
                                               .height = work->height,
                                               .quality = work->how.quality ? work->how.quality
                                                                            : QUALITY_DEFAULT,
                                               .orientation = work->info.orientation};
    return pstk__jpeg_encode(&picture, out, out_size, &work->arena, err);
}

static void close_work(struct work *work)
{
    pstk__image_state_close(work->state);
    pstk__arena_close(&work->arena);
    free(work->pixels);
}

int pstk_image_convert(const void *data, uint64_t size, const struct pstk_convert *how, void **out,
                       uint64_t *out_size, uint32_t *width, uint32_t *height,
                       struct pstk_error *err)
{
    struct work work = {.n_rows = 0};
    if (!data || !out || !out_size)
        return invalid(err, !data ? "data is NULL" : !out ? "out is NULL" : "out_size is NULL");
    *out = NULL;
    *out_size = 0;
    int r = look(&work, data, size, how, err);
    if (r < 0)
        return r;
    if (width)
        *width = work.width;
    if (height)
        *height = work.height;
    if (is_unchanged(&work))
        return 0;
    r = make_pixels(&work, data, size, err);
    if (r == 0)
        r = work.how.shorter_side ? hand_over(&work, out, out_size)
                                  : encode(&work, out, out_size, err);
    close_work(&work);
    return r < 0 ? r : 1;
}
