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
        const struct pstk__jpeg_component *component = &f->component[i];
        f->max_h = component->h > f->max_h ? component->h : f->max_h;
        f->max_v = component->v > f->max_v ? component->v : f->max_v;
    }
    for (uint32_t i = 0; i < f->n_components; i++) {
        struct pstk__jpeg_component *component = &f->component[i];
        component->width = ceil_of((uint64_t)f->width * component->h, f->max_h);
        component->height = ceil_of((uint64_t)f->height * component->v, f->max_v);
        component->across = ceil_of(component->width, 8);
        component->down = ceil_of(component->height, 8);
        component->stride =
            f->n_components == 1 ? component->across : round_up(component->across, component->h);
        component->rows =
            f->n_components == 1 ? component->down : round_up(component->down, component->v);
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
