/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows: mixes images in place, strip by strip; a strip is the same range of elements of all rows.
 * The rows are mixed in an order in which each still finds its partner unmixed. One row of a pair,
 * or of the whole batch, cannot: its partner's strip is kept. Thus memory is read and written once,
 * and a strip stays in a near cache until its second use.
 */
#include "mix/mix.h"
#include "pixels/lerp.h"

#include <string.h>

#define STRIP_SIZE 32768u /* bytes, on the stack */

struct strip {
    const struct pstk__mix_images *images;
    const struct pstk_mixed_row *rows;
    const struct pstk__lerp_kernels *kernels;
    uint64_t row_size;     /* elements */
    uint64_t begin, n;     /* range of a row, elements */
    uint32_t element_size; /* bytes */
    _Alignas(64) uint8_t kept[STRIP_SIZE];
};

static uint8_t *at(const struct strip *strip, uint32_t row)
{
    return (uint8_t *)strip->images->data +
           (row * strip->row_size + strip->begin) * strip->element_size;
}

/* Copy the part of a row's box that lies in the strip. */
static void cut(const struct strip *strip, uint32_t i, const uint8_t *from)
{
    const struct pstk__mix_images *images = strip->images;
    const struct pstk_mixed_row *row = &strip->rows[i];
    const uint64_t in_pixel = images->layout == PSTK_NCHW ? 1 : images->channels;
    const uint64_t line_size = images->width * in_pixel, end = strip->begin + strip->n;
    uint8_t *to = at(strip, i);
    for (uint64_t line = strip->begin / line_size; line * line_size < end; line++) {
        const uint64_t y = line % images->height;
        if (y < row->top || y - row->top >= row->height)
            continue;
        uint64_t first = line * line_size + row->left * in_pixel;
        uint64_t last = first + row->width * in_pixel;
        first = first > strip->begin ? first : strip->begin;
        last = last < end ? last : end;
        if (first < last)
            memcpy(to + (first - strip->begin) * strip->element_size,
                   from + (first - strip->begin) * strip->element_size,
                   (last - first) * strip->element_size);
    }
}

/* Mix row i. from: its partner's strip before mixing. */
static void mix_row(const struct strip *strip, uint32_t i, const uint8_t *from)
{
    const struct pstk_mixed_row *row = &strip->rows[i];
    if (row->lam == 1)
        return;
    if (row->kind == PSTK_MIX_CUTMIX) {
        if (from != at(strip, i))
            cut(strip, i, from);
        return;
    }
    const struct pstk__lerp lerp = {.to = at(strip, i),
                                    .from = from,
                                    .n = strip->n,
                                    .keep = (float)row->lam,
                                    .take = (float)(1.0 - row->lam),
                                    .dtype = strip->images->dtype};
    strip->kernels->blend(&lerp);
}

static void keep(struct strip *strip, uint32_t row)
{
    memcpy(strip->kept, at(strip, row), strip->n * strip->element_size);
}

/* Mix row i with row i - 1, from the last row down. */
static void mix_rolled(struct strip *strip)
{
    const uint32_t n = strip->images->n;
    keep(strip, n - 1);
    for (uint32_t i = n - 1; i > 0; i--)
        mix_row(strip, i, at(strip, i - 1));
    mix_row(strip, 0, strip->kept);
}

/* Mix row i with row n - 1 - i, pair by pair. The middle row is its own partner. */
static void mix_flipped(struct strip *strip)
{
    for (uint32_t i = 0, j = strip->images->n - 1; i <= j; i++, j--) {
        keep(strip, i);
        mix_row(strip, i, at(strip, j));
        if (i == j)
            return;
        mix_row(strip, j, strip->kept);
    }
}

static int mixes(const struct pstk_mixed_row *rows, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (rows[i].lam != 1)
            return 1;
    return 0;
}

void pstk__mix_images(const struct pstk__mix_images *images, const struct pstk_mixed_row *rows)
{
    struct strip strip;
    if (!mixes(rows, images->n))
        return;
    strip.images = images;
    strip.rows = rows;
    strip.kernels = pstk__lerp_kernels(images->kernels);
    strip.row_size = (uint64_t)images->height * images->width * images->channels;
    strip.element_size = pstk_dtype_size(images->dtype);
    const uint64_t most = STRIP_SIZE / strip.element_size;
    for (strip.begin = 0; strip.begin < strip.row_size; strip.begin += strip.n) {
        const uint64_t left = strip.row_size - strip.begin;
        strip.n = left < most ? left : most;
        if (images->pairing == PSTK_MIX_FLIP)
            mix_flipped(&strip);
        else
            mix_rolled(&strip);
    }
}
