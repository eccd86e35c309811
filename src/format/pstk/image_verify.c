/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pstk/image_verify.h"

#include "base/crc32c.h"
#include "base/error.h"
#include "image/jpeg/damaged.h"
#include "image/mask.h"
#include "image/planes/decode.h"
#include "record/list.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static int __attribute__((format(printf, 2, 3)))
report_wrong(const struct pstk__image_findings *findings, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return findings->bad(findings->user, text) ? PSTK_ECANCELED : 0;
}

/* ---- pixels ---------------------------------------------------------------------------------- */

/* An image, and the checksum of its decoded pixels. */
struct summed {
    struct pstk__coded image;
    uint32_t crc; /* CRC of the pixels, output */
};

static void sum_rows(void *user, const uint8_t *rgb, uint64_t stride, uint32_t n_rows)
{
    struct summed *summed = user;
    for (uint32_t y = 0; y < n_rows; y++)
        summed->crc = pstk__crc32c(summed->crc, rgb + y * stride, 3 * summed->image.info->width);
}

void pstk__image_verifier_close(struct pstk__image_verifier *verifier)
{
    pstk__image_state_close(verifier->image);
    verifier->image = NULL;
    pstk__arena_close(&verifier->arena);
}

static int open_image(struct pstk__image_verifier *verifier, const struct pstk__image_info *info,
                      struct pstk_error *err)
{
    uint64_t size = pstk__image_scratch(info->width, info->height);
    if (verifier->image && verifier->arena.size >= size)
        return 0;
    pstk__image_verifier_close(verifier);
    int r = pstk__arena_open(&verifier->arena, size);
    if (r < 0)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_READ,
                          "out of memory for %" PRIu64 " bytes of a record", size);
    return pstk__image_state_open(&verifier->image, &verifier->arena, PSTK_KERNELS_AUTO, err);
}

/* Decode the whole image. 1: done; 0: damage was reported. */
static int decode_whole(struct pstk__image_verifier *verifier, struct summed *summed,
                        const struct pstk__image_findings *findings, struct pstk_error *err)
{
    const struct pstk__box box = {.width = summed->image.info->width,
                                  .height = summed->image.info->height};
    const struct pstk__row_sink sink = {.rows = sum_rows, .user = summed, .channels = 3};
    struct pstk_error why;
    pstk_error_init(&why, sizeof why);
    int result = pstk__image_decode(verifier->image, &summed->image, &box, &sink, &why);
    if (result == PSTK_ENOMEM)
        return pstk__fail(err, result, PSTK_STAGE_DECODE, "%s", why.message);
    return result < 0 ? report_wrong(findings, "cannot be decoded: %s", why.message) : 1;
}

/* Check that a file marked as damaged gives a warning, and that pstk__image_damaged decodes it. */
static int decode_damaged(struct pstk__image_verifier *verifier, struct summed *file,
                          const struct pstk__image_findings *findings, struct pstk_error *err)
{
    const struct pstk__box box = {.width = file->image.info->width,
                                  .height = file->image.info->height};
    const struct pstk__row_sink sink = {.rows = sum_rows, .user = file, .channels = 3};
    if (pstk__image_decode(verifier->image, &file->image, &box, &sink, NULL) == 0)
        return report_wrong(findings, "is marked as damaged, but decodes without a warning");
    file->image.decoder = &pstk__image_damaged;
    const int result = decode_whole(verifier, file, findings, err);
    return result < 0 ? result : 0;
}

/* Decode planes in both ways: by our own back end, and as the file that they give, by libjpeg. */
static int decode_image(struct pstk__image_verifier *verifier, const struct pstk__field_view *view,
                        const void *plain, const struct pstk__image_info *info,
                        const struct pstk__image_findings *findings, struct pstk_error *err)
{
    struct summed file = {
        .image = {pstk__image_decoder(info->encoding), plain, view->plain_size, info}};
    struct summed planes = {.image = {&pstk__image_planes, view->data, view->stored_size, info}};
    int result = open_image(verifier, info, err);
    if (result < 0)
        return result;
    if (view->flags & PSTK__FIELD_DAMAGED)
        return decode_damaged(verifier, &file, findings, err);
    result = decode_whole(verifier, &file, findings, err);
    if (result != 1 || view->codec != PSTK_CODEC_PLANES)
        return result < 0 ? result : 0;
    result = decode_whole(verifier, &planes, findings, err);
    if (result == 1 && planes.crc != file.crc)
        return report_wrong(findings, "its planes and its file decode to different pixels");
    return result < 0 ? result : 0;
}

/* ---- values ---------------------------------------------------------------------------------- */

int pstk__image_verifier_image(struct pstk__image_verifier *verifier,
                               const struct pstk__field_view *view, const void *plain,
                               const struct pstk__image_findings *findings, struct pstk_error *err)
{
    struct pstk__image_info info = {0};
    struct pstk_error why;
    char text[160];
    if (view->encoding == PSTK_ENCODING_PIXELS) /* parsing compared size and samples */
        return 0;
    const struct pstk__image_decoder *decoder = pstk__image_decoder(view->encoding);
    if (!decoder)
        return report_wrong(findings, "encoding %u, which no decoder knows", view->encoding);
    pstk_error_init(&why, sizeof why);
    if (decoder->probe(plain, view->plain_size, PSTK__MAX_PIXELS, &info, &why) < 0)
        return report_wrong(findings, "%s", why.message);
    if (pstk__field_image_differs(view, &info, text))
        return report_wrong(findings, "%s", text);
    if (view->codec == PSTK_CODEC_PLANES) {
        const uint32_t orientation = info.orientation;
        if (pstk__image_planes.probe(view->data, view->stored_size, PSTK__MAX_PIXELS, &info, &why) <
            0)
            return report_wrong(findings, "%s", why.message);
        if (info.orientation != orientation)
            return report_wrong(findings, "its planes say EXIF orientation %u, its file %u",
                                info.orientation, orientation);
    }
    return verifier->decode ? decode_image(verifier, view, plain, &info, findings, err) : 0;
}

int pstk__image_verifier_mask(struct pstk__image_verifier *verifier,
                              const struct pstk__field_view *view, const void *plain,
                              const struct pstk__image_findings *findings, struct pstk_error *err)
{
    const struct pstk__image_info info = pstk__field_image(view);
    struct pstk_error why;
    pstk_error_init(&why, sizeof why);
    const int r = pstk__mask_check(plain, view->plain_size, &info, verifier->decode, &why);
    if (r == PSTK_ENOMEM)
        return pstk__fail(err, r, PSTK_STAGE_DECODE, "%s", why.message);
    return r < 0 ? report_wrong(findings, "%s", why.message) : 0;
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* Check an image of a list, which is not compressed in the record. */
static int check_item(struct pstk__image_verifier *verifier, uint32_t kind,
                      const struct pstk__field_view *item,
                      const struct pstk__image_findings *findings, struct pstk_error *err)
{
    char text[160];
    const struct pstk__image_info info = pstk__field_image(item);
    if (pstk__list_check_image(kind, item, text))
        return report_wrong(findings, "an item is wrong: %s", text);
    if (kind == PSTK_FIELD_MASK_LIST)
        return pstk__image_verifier_mask(verifier, item, item->data, findings, err);
    if (!verifier->decode || item->encoding == PSTK_ENCODING_PIXELS)
        return 0;
    struct summed summed = {
        .image = {pstk__image_decoder(item->encoding), item->data, item->plain_size, &info}};
    int result = open_image(verifier, &info, err);
    if (result == 0)
        result = decode_whole(verifier, &summed, findings, err);
    return result < 0 ? result : 0;
}

int pstk__image_verifier_list(struct pstk__image_verifier *verifier, uint32_t kind,
                              const struct pstk__field_view *view, const void *plain,
                              const struct pstk__image_findings *findings, struct pstk_error *err)
{
    struct pstk__list list;
    struct pstk__field_view item;
    uint32_t width, height;
    char text[160];
    int r = 0;
    pstk__list_sides(kind, plain, view->plain_size, &width, &height);
    if (width != view->width || height != view->height)
        return report_wrong(findings,
                            "its largest item has %u x %u pixels, its record says %u x %u", width,
                            height, view->width, view->height);
    if (pstk__list_begin(&list, kind, plain, view->plain_size, text))
        return 0; /* pstk__value_check has reported it */
    while (r == 0 && list.i < list.n && !pstk__list_next(&list, &item, text))
        r = check_item(verifier, kind, &item, findings, err);
    return r;
}
