/* SPDX-License-Identifier: Apache-2.0 */
#include "picture/copy.h"

#include "picture/fill.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

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

#define SIDE 32u /* of a block of pixels: input and output fit the L1 cache */

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Copy n pixels that lie `step` bytes apart: `copied` bytes of each but the last, whose bytes past
 * the pixel the next one overwrites. */
INLINE void gather(uint8_t *out, const uint8_t *in, ptrdiff_t step, uint32_t n, uint32_t size,
                   uint32_t copied)
{
    for (uint32_t i = 1; i < n; i++, out += size, in += step)
        memcpy(out, in, copied);
    memcpy(out, in, size);
}

static void gather_pixels(uint8_t *out, const uint8_t *in, ptrdiff_t step, uint32_t n,
                          uint32_t size)
{
    if (size == 1)
        gather(out, in, step, n, 1, 1);
    else if (size == 2)
        gather(out, in, step, n, 2, 2);
    else if (size == 3)
        gather(out, in, step, n, 3, 4);
    else
        gather(out, in, step, n, 4, 4);
}

/* Rows of the output are columns of the input: from the last column, or the columns bottom up. */
static void quarter_turn(const struct pstk__picture *out, const struct pstk__picture *in,
                         int clockwise)
{
    const uint32_t size = in->channels;
    const ptrdiff_t down = (ptrdiff_t)stride_of(in), step = clockwise ? -down : down;
    for (uint32_t row = 0; row < out->height; row += SIDE) {
        const uint32_t end = min_u32(row + SIDE, out->height);
        for (uint32_t column = 0; column < out->width; column += SIDE)
            for (uint32_t r = row; r < end; r++) {
                const uint32_t from_row = clockwise ? in->height - 1 - column : column;
                const uint32_t from_column = clockwise ? r : in->width - 1 - r;
                gather_pixels(row_of(out, r) + (size_t)column * size,
                              row_of(in, from_row) + (size_t)from_column * size, step,
                              min_u32(SIDE, out->width - column), size);
            }
    }
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
        quarter_turn(out, in, turn == PSTK__TURN_270);
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

/* The input of an output. As numpy.pad, which mirrors again and again. */
static uint32_t source_of(const struct side *side, uint32_t output, uint32_t mode)
{
    const int64_t i = (int64_t)output - side->pad, n = side->n;
    if (mode == PSTK_PAD_EDGE || (mode == PSTK_PAD_REFLECT && n == 1))
        return side->from + (uint32_t)(i < 0 ? 0 : i < n ? i : n - 1);
    const int64_t once = mode == PSTK_PAD_REFLECT, period = 2 * (n - once);
    const int64_t place = (i % period + period) % period;
    return side->from + (uint32_t)(place < n ? place : 2 * n - 1 - once - place);
}

/* Pad a row whose middle is there. */
static void pad_row(uint8_t *row, const uint8_t *in, uint32_t width, const struct side *x,
                    uint32_t mode, uint32_t size)
{
    for (uint32_t i = 0; i < width; i++) {
        if (i == x->pad)
            i += x->n;
        if (i < width)
            memcpy(row + (size_t)i * size, in + (size_t)source_of(x, i, mode) * size, size);
    }
}

static void constant_row(uint8_t *row, const uint8_t fill[4], uint32_t width, const struct side *x,
                         uint32_t size)
{
    const uint32_t end = x->pad + x->n;
    pstk__fill_pixels(row, x->pad, fill, size);
    pstk__fill_pixels(row + (size_t)end * size, width - end, fill, size);
}

void pstk__copy_pad(const struct pstk__picture *out, const struct pstk__picture *in, int32_t left,
                    int32_t top, uint32_t mode, const uint8_t fill[4])
{
    const uint32_t size = in->channels;
    const struct side x = side_of(in->width, out->width, left);
    const struct side y = side_of(in->height, out->height, top);
    for (uint32_t row = 0; row < out->height; row++) {
        uint8_t *to = row_of(out, row);
        if (mode == PSTK_PAD_CONSTANT && (row < y.pad || row - y.pad >= y.n || x.n == 0)) {
            pstk__fill_pixels(to, out->width, fill, size);
            continue;
        }
        const uint8_t *from = row_of(in, source_of(&y, row, mode));
        memcpy(to + (size_t)x.pad * size, from + (size_t)x.from * size, (size_t)x.n * size);
        if (mode == PSTK_PAD_CONSTANT)
            constant_row(to, fill, out->width, &x, size);
        else
            pad_row(to, from, out->width, &x, mode, size);
    }
}

void pstk__copy_crop(const struct pstk__picture *out, const struct pstk__picture *in, int32_t left,
                     int32_t top, const uint8_t fill[4])
{
    pstk__copy_pad(out, in, -left, -top, PSTK_PAD_CONSTANT, fill);
}
