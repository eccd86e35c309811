/* SPDX-License-Identifier: Apache-2.0 */
#include "pixels/copy.h"

#include "pixels/fill.h"
#include "pixels/gather.h"

#include <string.h>

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static size_t stride_of(const struct pstk__picture *picture)
{
    return (size_t)picture->width * picture->channels;
}

static uint8_t *row_of(const struct pstk__picture *picture, uint32_t row)
{
    return picture->pixels + row * stride_of(picture);
}

/* ---- mirrors ------------------------------------------------------------------------------- */

void pstk__copy_flip_horizontal(const struct pstk__warp_kernels *kernels,
                                const struct pstk__picture *out, const struct pstk__picture *in)
{
    for (uint32_t row = 0; row < in->height; row++)
        kernels->reverse(row_of(out, row), row_of(in, row), in->width, in->channels);
}

void pstk__copy_flip_vertical(const struct pstk__picture *out, const struct pstk__picture *in)
{
    for (uint32_t row = 0; row < in->height; row++)
        memcpy(row_of(out, in->height - 1 - row), row_of(in, row), stride_of(in));
}

/* ---- turns --------------------------------------------------------------------------------- */

/* Make output rows of input columns: from the last column, or from columns bottom up. */
static void quarter_turn(const struct pstk__warp_kernels *kernels, const struct pstk__picture *out,
                         const struct pstk__picture *in, int clockwise)
{
    const ptrdiff_t out_step = (ptrdiff_t)stride_of(out), in_step = (ptrdiff_t)stride_of(in);
    kernels->transpose(&(struct pstk__warp_transpose){
        .out = row_of(out, clockwise ? 0 : out->height - 1),
        .in = row_of(in, clockwise ? in->height - 1 : 0),
        .out_step = clockwise ? out_step : -out_step,
        .in_step = clockwise ? -in_step : in_step,
        .width = out->width,
        .height = out->height,
        .size = in->channels,
    });
}

void pstk__copy_turn(const struct pstk__warp_kernels *kernels, const struct pstk__picture *out,
                     const struct pstk__picture *in, uint32_t turn)
{
    if (turn == PSTK__TURN_0)
        memcpy(out->pixels, in->pixels, pstk__picture_size(in));
    else if (turn == PSTK__TURN_180)
        for (uint32_t row = 0; row < in->height; row++)
            kernels->reverse(row_of(out, in->height - 1 - row), row_of(in, row), in->width,
                             in->channels);
    else
        quarter_turn(kernels, out, in, turn == PSTK__TURN_270);
}

/* ---- padding ------------------------------------------------------------------------------- */

/* One axis of a pad: `pad` outputs, then n inputs from `from` on, then the rest. */
struct side {
    uint32_t from, n, pad;
};

static struct side side_of(int64_t in, int64_t out, int64_t begin)
{
    const int64_t from = begin < 0 ? -begin : 0, pad = begin > 0 ? begin : 0;
    const int64_t end = begin + in < out ? begin + in : out;
    const int64_t n = end - pad;
    if (n <= 0)
        return (struct side){0, 0, (uint32_t)out};
    return (struct side){(uint32_t)from, (uint32_t)n, (uint32_t)pad};
}

/* Return the input of an output, as numpy.pad does, which mirrors again and again. */
static uint32_t source_of(const struct side *side, uint32_t output, uint32_t mode)
{
    const int64_t i = (int64_t)output - side->pad, n = side->n;
    if (i >= 0 && i < n)
        return side->from + (uint32_t)i;
    if (mode == PSTK_PAD_EDGE || (mode == PSTK_PAD_REFLECT && n == 1))
        return side->from + (uint32_t)(i < 0 ? 0 : n - 1);
    const int64_t once = mode == PSTK_PAD_REFLECT, period = 2 * (n - once);
    const int64_t place = (i % period + period) % period;
    return side->from + (uint32_t)(place < n ? place : 2 * n - 1 - once - place);
}

#define COLUMNS 64u /* columns of a side that are padded at a time */

/* Columns [begin, begin + n) of the output, and the input of each. */
struct columns {
    uint32_t begin, n;
    uint32_t input[COLUMNS];
};

/* Fill in the columns from `begin` on, at most COLUMNS of them and none past `end`. */
static void columns_of(struct columns *columns, const struct side *x, uint32_t begin, uint32_t end,
                       uint32_t mode)
{
    columns->begin = begin;
    columns->n = begin < end ? min_u32(COLUMNS, end - begin) : 0;
    for (uint32_t i = 0; i < columns->n; i++)
        columns->input[i] = source_of(x, begin + i, mode);
}

static void copy_columns(uint8_t *out, const uint8_t *in, const struct columns *columns,
                         uint32_t size)
{
    if (columns->n > 0)
        pstk__gather_pixels(out + (size_t)columns->begin * size, in, columns->input, columns->n,
                            size);
}

/* Pad with pixels of the input. Few columns are padded in one pass. */
static void pad_mirrored(const struct pstk__picture *out, const struct pstk__picture *in,
                         const struct side *x, const struct side *y, uint32_t mode)
{
    const uint32_t size = in->channels, end = x->pad + x->n, after = out->width - end;
    const uint32_t most = x->pad > after ? x->pad : after;
    for (uint32_t done = 0; done == 0 || done < most; done += COLUMNS) {
        struct columns left, right;
        columns_of(&left, x, done, x->pad, mode);
        columns_of(&right, x, end + done, out->width, mode);
        for (uint32_t row = 0; row < out->height; row++) {
            uint8_t *to = row_of(out, row);
            const uint8_t *from = row_of(in, source_of(y, row, mode));
            if (done == 0)
                memcpy(to + (size_t)x->pad * size, from + (size_t)x->from * size,
                       (size_t)x->n * size);
            copy_columns(to, from, &left, size);
            copy_columns(to, from, &right, size);
        }
    }
}

/* Pad with one colour: the part between the inputs of two rows is filled at once. */
static void pad_constant(const struct pstk__picture *out, const struct pstk__picture *in,
                         const struct side *x, const struct side *y, const uint8_t fill[4])
{
    const size_t size = in->channels, stride = stride_of(out), n = x->n * size, gap = stride - n;
    const uint32_t n_rows = x->n > 0 ? y->n : 0;
    const uint8_t *end = out->pixels + out->height * stride;
    uint8_t *at = out->pixels;
    if (n_rows > 0) {
        pstk__fill_pixels(at, y->pad * out->width + x->pad, fill, in->channels);
        at += y->pad * stride + x->pad * size;
    }
    for (uint32_t row = 0; row < n_rows; row++, at += n) {
        if (row == 1)
            pstk__fill_pixels(at, out->width - x->n, fill, in->channels);
        else if (row > 1)
            memcpy(at, at - stride, gap);
        at += row > 0 ? gap : 0;
        memcpy(at, row_of(in, y->from + row) + x->from * size, n);
    }
    pstk__fill_pixels(at, (uint32_t)((size_t)(end - at) / size), fill, in->channels);
}

void pstk__copy_pad(const struct pstk__picture *out, const struct pstk__picture *in, int32_t left,
                    int32_t top, uint32_t mode, const uint8_t fill[4])
{
    const struct side x = side_of(in->width, out->width, left);
    const struct side y = side_of(in->height, out->height, top);
    if (mode == PSTK_PAD_CONSTANT)
        pad_constant(out, in, &x, &y, fill);
    else
        pad_mirrored(out, in, &x, &y, mode);
}

void pstk__copy_crop(const struct pstk__picture *out, const struct pstk__picture *in, int32_t left,
                     int32_t top, const uint8_t fill[4])
{
    pstk__copy_pad(out, in, -left, -top, PSTK_PAD_CONSTANT, fill);
}
