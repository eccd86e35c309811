/* SPDX-License-Identifier: Apache-2.0 */
/* image/check: checks that a file is an image that decodes without damage to its last row, or that
 * Pillow loads despite its damage. */
#include "base/error.h"
#include "image/image.h"
#include "image/jpeg/plain.h"

#include <penstock/format.h>
#include <stdlib.h>

static void drop_rows(void *user, const uint8_t *pixels, uint64_t stride, uint32_t n_rows)
{
    (void)user;
    (void)pixels;
    (void)stride;
    (void)n_rows;
}

static int decode_all(const void *data, uint64_t size, const struct pstk__image_info *info,
                      const struct pstk__image_decoder *decoder, struct pstk_error *err)
{
    const struct pstk__coded image = {.decoder = decoder, .data = data, .size = size, .info = info};
    const struct pstk__row_sink nowhere = {.rows = drop_rows, .channels = 3};
    const struct pstk__box all = {.width = info->width, .height = info->height};
    struct pstk__arena arena = {0};
    struct pstk__image_state *state = NULL;

    int r = pstk__arena_open(&arena, pstk__image_scratch(info->width, info->height));
    if (r < 0)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_DECODE,
                          "no memory to decode an image of %u x %u pixels", info->width,
                          info->height);
    r = pstk__image_state_open(&state, &arena, PSTK_KERNELS_AUTO, err);
    if (r == 0)
        r = pstk__image_decode(state, &image, &all, &nowhere, err);
    pstk__image_state_close(state);
    pstk__arena_close(&arena);
    return r;
}

/* Return 1 if the library's own reader finds, in a fraction of the time, that libjpeg would decode
 * the file without a warning. */
static int is_plain_and_whole(const void *data, uint64_t size, const struct pstk__image_info *info)
{
    if (info->encoding != PSTK_ENCODING_JPEG)
        return 0;
    struct pstk__jpeg_plain *plain = malloc(sizeof *plain);
    int r = plain && pstk__jpeg_plain_open(plain, data, size) && pstk__jpeg_plain_check(plain);
    free(plain);
    return r;
}

static int check_whole(const void *data, uint64_t size, const struct pstk__image_info *info,
                       struct pstk_error *err)
{
    return is_plain_and_whole(data, size, info)
               ? 0
               : decode_all(data, size, info, pstk__image_decoder(info->encoding), err);
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
    return check_whole(data, size, &info, err);
}

int pstk_image_check_damaged(const void *data, uint64_t size, uint64_t max_pixels,
                             uint32_t *damaged, struct pstk_error *err)
{
    struct pstk__image_info info;

    if (damaged)
        *damaged = PSTK_DAMAGE_NONE;
    if (!data || !damaged)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_DECODE, "%s is NULL",
                          data ? "damaged" : "data");
    int r = pstk__image_probe(data, size, max_pixels ? max_pixels : PSTK__MAX_PIXELS, &info, err);
    if (r < 0)
        return r;
    r = check_whole(data, size, &info, err);
    if (r == PSTK_EBADMSG &&
        decode_all(data, size, &info, pstk__image_damaged_decoder(info.encoding), NULL) == 0)
        *damaged = info.encoding == PSTK_ENCODING_JPEG ? PSTK_DAMAGE_GUESSED : PSTK_DAMAGE_REMADE;
    return r;
}
