/* SPDX-License-Identifier: Apache-2.0 */
#include "image/jpeg/frame.h"

static uint32_t ceil_of(uint64_t a, uint32_t b)
{
    return (uint32_t)((a + b - 1) / b);
}

static uint32_t round_up(uint32_t n, uint32_t to)
{
    return ceil_of(n, to) * to;
}

void pstk__jpeg_frame_layout(struct pstk__jpeg_frame *f)
{
    f->max_h = f->max_v = 1;
    for (uint32_t i = 0; i < f->n_components; i++) {
        const struct pstk__jpeg_component *c = &f->component[i];
        f->max_h = c->h > f->max_h ? c->h : f->max_h;
        f->max_v = c->v > f->max_v ? c->v : f->max_v;
    }
    for (uint32_t i = 0; i < f->n_components; i++) {
        struct pstk__jpeg_component *c = &f->component[i];
        c->width = ceil_of((uint64_t)f->width * c->h, f->max_h);
        c->height = ceil_of((uint64_t)f->height * c->v, f->max_v);
        c->across = ceil_of(c->width, 8);
        c->down = ceil_of(c->height, 8);
        c->stride = f->n_components == 1 ? c->across : round_up(c->across, c->h);
        c->rows = f->n_components == 1 ? c->down : round_up(c->down, c->v);
    }
}

uint32_t pstk__jpeg_color_components(uint32_t color)
{
    switch (color) {
    case PSTK__JPEG_GRAY:
        return 1;
    case PSTK__JPEG_YCC:
    case PSTK__JPEG_RGB:
        return 3;
    case PSTK__JPEG_CMYK:
    case PSTK__JPEG_YCCK:
        return 4;
    default:
        return 0;
    }
}
