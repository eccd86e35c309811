/* SPDX-License-Identifier: Apache-2.0 */
#include "image/decoder.h"

#include "base/error.h"

int pstk__image_check_box(const struct pstk__coded *image, const struct pstk__box *box,
                          const struct pstk__row_sink *sink, struct pstk_error *err)
{
    const struct pstk__image_info *info = image->info;
    if (sink->channels != 1 && sink->channels != 3 && sink->channels != 4)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_DECODE,
                          "channels: value is %u; must be 1, 3 or 4", sink->channels);
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
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE, "%s of %u x %u pixels is empty",
                          name, width, height);
    if ((uint64_t)width * height > max_pixels)
        return pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_DECODE,
                          "%s of %u x %u pixels is over the limit of %llu pixels (max_pixels)",
                          name, width, height, (unsigned long long)max_pixels);
    return 0;
}
