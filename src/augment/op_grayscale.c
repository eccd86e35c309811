/* SPDX-License-Identifier: Apache-2.0 */
/* op_grayscale: torchvision's Grayscale, by Pillow's luma, to one channel or three equal ones. */
#include "augment/canvas.h"
#include "augment/op_tensor.h"

#include "base/error.h"
#include "image/channels.h"

#include <string.h>

struct pstk_op pstk_grayscale(uint32_t channels)
{
    return (struct pstk_op){.kind = PSTK_OP_GRAYSCALE, .channels = channels};
}

static int check(const struct pstk_op *op, struct pstk_error *err)
{
    if (op->channels != 1 && op->channels != 3)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "channels: value is %u; must be 1 or 3", op->channels);
    return pstk__op_check_plain(op, err);
}

static int channels_of(const struct pstk_op *op, uint32_t channels, struct pstk_error *err)
{
    (void)channels;
    (void)err;
    return (int)op->channels;
}

static void colour(const struct pstk_op *op, uint8_t *out, const uint8_t *in, uint32_t n_pixels,
                   uint32_t channels)
{
    if (channels == 1)
        memcpy(out, in, n_pixels);
    else
        pstk__channels_convert(out, 1, in, channels, n_pixels);
    for (uint32_t i = n_pixels; op->channels == 3 && i-- > 0;) /* backwards: in place */
        out[3 * (size_t)i] = out[3 * (size_t)i + 1] = out[3 * (size_t)i + 2] = out[i];
}

static int change(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    pstk__colour_grayscale(canvas->kernels->colour, &canvas->picture, op->channels);
    return 0;
}

const struct pstk__op_entry pstk__op_grayscale = {
    .kind = PSTK_OP_GRAYSCALE,
    .effects = PSTK__COLOURS,
    .uses = PSTK__USES_CHANNELS,
    .name = "grayscale",
    .check = check,
    .channels = channels_of,
    .colour = colour,
    .change = change,
    .tensor = &pstk__op_tensor_grayscale,
};
