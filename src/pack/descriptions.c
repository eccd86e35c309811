/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/descriptions.h"

#include "base/error.h"

#include <string.h>

/* Return description n. The elements may have another version's size. */
static struct pstk_pixels pixels_at(const struct pstk__descriptions *all, uint32_t n)
{
    struct pstk_pixels pixels = {0};
    const uint32_t size = all->first->size;
    memcpy(&pixels, (const uint8_t *)all->first + (uint64_t)n * size,
           size < sizeof pixels ? size : sizeof pixels);
    return pixels;
}

int pstk__descriptions_find(const struct pstk__descriptions *all, uint32_t i,
                            struct pstk__image_info *info)
{
    for (uint32_t n = 0; n < all->n; n++) {
        const struct pstk_pixels pixels = pixels_at(all, n);
        if (pixels.field != i)
            continue;
        *info = (struct pstk__image_info){.encoding = PSTK_ENCODING_PIXELS,
                                          .width = pixels.width,
                                          .height = pixels.height,
                                          .orientation = 1,
                                          .channels = (uint8_t)pixels.channels,
                                          .bit_depth = (uint8_t)pixels.bit_depth};
        return 1;
    }
    return 0;
}

/* Check one description of pixels by itself. */
static int check_description(const struct pstk__schema *schema, const struct pstk_pixels *pixels,
                             struct pstk_error *err)
{
    const uint32_t kind = pixels->field < schema->n_fields ? schema->fields[pixels->field].kind : 0;
    if (kind != PSTK_FIELD_IMAGE && kind != PSTK_FIELD_MASK)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_WRITE,
                          "field: value is %u; must be an image or mask field", pixels->field);
    if (kind == PSTK_FIELD_MASK && pixels->channels != 1)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_WRITE,
                          "channels: value is %u; must be 1 for a mask", pixels->channels);
    if (pixels->channels != 1 && pixels->channels != 3 && pixels->channels != 4)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_WRITE,
                          "channels: value is %u; must be 1, 3 or 4", pixels->channels);
    if (pixels->bit_depth != 8 && pixels->bit_depth != 16)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_WRITE,
                          "bit_depth: value is %u; must be 8 or 16", pixels->bit_depth);
    return 0;
}

int pstk__descriptions_check(const struct pstk__descriptions *all,
                             const struct pstk__schema *schema, struct pstk_error *err)
{
    uint64_t seen = 0; /* set of fields; there are at most 64 */
    if (all->n == 0)
        return 0;
    if (!all->first || all->first->size < sizeof all->first->size)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_WRITE, "pixels is %s",
                          all->first ? "without its size" : "NULL");
    for (uint32_t n = 0; n < all->n; n++) {
        const struct pstk_pixels pixels = pixels_at(all, n);
        const int r = check_description(schema, &pixels, err);
        if (r < 0)
            return r;
        if (seen >> pixels.field & 1)
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_WRITE,
                              "field: value is %u, which a description before it has; must be of "
                              "another field",
                              pixels.field);
        seen |= UINT64_C(1) << pixels.field;
    }
    return 0;
}
