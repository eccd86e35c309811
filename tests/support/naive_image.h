/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naive_image: the operations done one by one to whole images, and every element computed by float
 * steps: what a row of an image output must equal. Include sample_fixture.h before it.
 */
#ifndef PSTK_TEST_NAIVE_IMAGE_H
#define PSTK_TEST_NAIVE_IMAGE_H

#include "support/naive_pixel.h"
#include "augment/op.h"

/* ---- the oracle --------------------------------------------------------------------------------
 */

static struct image naive_crop(struct image m, int64_t left, int64_t top, uint32_t w, uint32_t h)
{
    struct image out = {w, h, calloc((size_t)w * h, 3)};
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++)
            if (x + left >= 0 && x + left < m.width && y + top >= 0 && y + top < m.height)
                memcpy(out.rgb + (y * w + x) * 3, m.rgb + ((y + top) * m.width + x + left) * 3, 3);
    return out;
}

/* Padded by `left` on all sides and, where it is too small then, to fit; cut at random. */
static struct image naive_random_crop(struct image m, const struct pstk_op *op,
                                      struct pstk__random *r)
{
    int64_t w = m.width + 2 * (int64_t)op->params.random_crop.left,
            h = m.height + 2 * (int64_t)op->params.random_crop.left;
    int64_t left = -(int64_t)op->params.random_crop.left, top = left;
    left -= w < op->width ? op->width - w : 0;
    top -= h < op->height ? op->height - h : 0;
    w = w < op->width ? 2 * op->width - w : w;
    h = h < op->height ? 2 * op->height - h : h;
    top += (int64_t)pstk__random_below(r, (uint64_t)(h - op->height) + 1);
    left += (int64_t)pstk__random_below(r, (uint64_t)(w - op->width) + 1);
    return naive_crop(m, left, top, op->width, op->height);
}

static int64_t naive_offset(uint32_t have, uint32_t want)
{
    return want > have ? -(int64_t)((want - have) / 2) : (int64_t)rint((have - want) / 2.0);
}

static struct image naive_flip(struct image m)
{
    struct image out = {m.width, m.height, malloc((size_t)m.width * m.height * 3)};
    for (uint32_t y = 0; y < m.height; y++)
        for (uint32_t x = 0; x < m.width; x++)
            memcpy(out.rgb + ((size_t)y * m.width + x) * 3,
                   m.rgb + ((size_t)y * m.width + m.width - 1 - x) * 3, 3);
    return out;
}

static struct image naive_flip_vertical(struct image m)
{
    struct image out = {m.width, m.height, malloc((size_t)m.width * m.height * 3)};
    for (uint32_t y = 0; y < m.height; y++)
        memcpy(out.rgb + (size_t)y * m.width * 3, m.rgb + (size_t)(m.height - 1 - y) * m.width * 3,
               (size_t)m.width * 3);
    return out;
}

/* A quarter clockwise. */
static struct image naive_rotate(struct image m)
{
    struct image out = {m.height, m.width, malloc((size_t)m.width * m.height * 3)};
    for (uint32_t y = 0; y < out.height; y++)
        for (uint32_t x = 0; x < out.width; x++)
            memcpy(out.rgb + ((size_t)y * out.width + x) * 3,
                   m.rgb + ((size_t)(m.height - 1 - x) * m.width + y) * 3, 3);
    return out;
}

static struct image naive_sized(struct image m, uint32_t w, uint32_t h)
{
    return (struct image){w, h, naive_resize(m.rgb, m.width, m.height, w, h)};
}

/* The image after one operation; frees what came in. */
static struct image naive_op(struct image m, const struct pstk_op *op, struct pstk__random *r)
{
    struct image out = m, cut;
    if (op->kind == PSTK_OP_RANDOM_RESIZED_CROP) {
        const struct pstk__box b =
            pstk__random_resized_crop_box(r, m.width, m.height, &op->params.random_resized_crop);
        cut = naive_crop(m, b.left, b.top, b.width, b.height);
        out = naive_sized(cut, op->width, op->height);
        free(cut.rgb);
    } else if (op->kind == PSTK_OP_RESIZE) {
        out = naive_sized(m, op->width, op->height);
    } else if (op->kind == PSTK_OP_RESIZE_SHORTER) {
        const uint32_t less = m.width < m.height ? m.width : m.height;
        out = naive_sized(m, (uint32_t)((double)op->width * m.width / less),
                          (uint32_t)((double)op->width * m.height / less));
    } else if (op->kind == PSTK_OP_CENTER_CROP) {
        out = naive_crop(m, naive_offset(m.width, op->width), naive_offset(m.height, op->height),
                         op->width, op->height);
    } else if (op->kind == PSTK_OP_RANDOM_FLIP &&
               pstk__random_unit(r) < op->params.random_flip.probability) {
        out = naive_flip(m);
    } else if (op->kind == PSTK_OP_CROP) {
        out = naive_crop(m, (int64_t)op->params.crop.left, (int64_t)op->params.crop.top, op->width,
                         op->height);
    } else if (op->kind == PSTK_OP_RANDOM_CROP) {
        out = naive_random_crop(m, op, r);
    } else if (op->kind == PSTK_OP_RANDOM_VERTICAL_FLIP &&
               pstk__random_unit(r) < op->params.random_vertical_flip.probability) {
        out = naive_flip_vertical(m);
    }
    if (out.rgb != m.rgb)
        free(m.rgb);
    return out;
}

/* Return whether the row is what the oracle makes of the upright image m (which stays). */
static int naive_equal(struct image m, const struct pstk_output *o, uint64_t sample_id,
                       const void *row)
{
    struct image now = naive_crop(m, 0, 0, m.width, m.height);
    const float *mean = NULL, *dev = NULL;
    float numbers[6];
    for (uint32_t j = 0; j < o->image.n_ops; j++) {
        struct pstk__random r;
        pstk__random_init(&r, &(struct pstk__random_key){.seed = SEED,
                                                         .epoch = EPOCH,
                                                         .sample_id = sample_id,
                                                         .group = o->image.random_group,
                                                         .op = j});
        now = naive_op(now, &o->image.ops[j], &r);
        const struct pstk_normalize_params *p = &o->image.ops[j].params.normalize;
        for (int c = 0; c < 3 && o->image.ops[j].kind == PSTK_OP_NORMALIZE; c++) {
            numbers[c] = (float)p->mean[c];
            numbers[3 + c] = (float)p->deviation[c];
            mean = numbers;
            dev = numbers + 3;
        }
    }
    int equal = 1;
    const uint32_t area = now.width * now.height;
    for (uint32_t i = 0; i < area; i++)
        for (uint32_t c = 0; c < 3; c++)
            equal &= naive_element(row, o->dtype,
                                   o->image.layout == PSTK_NCHW ? c * area + i : 3 * i + c) ==
                     naive_value(o->dtype, now.rgb[3 * i + c], c, mean, dev);
    free(now.rgb);
    return equal;
}

#endif
