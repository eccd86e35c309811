/* SPDX-License-Identifier: Apache-2.0 */
/* mosaic_pixels: copies parts of rows, line by line. */
#include "mix/mosaic.h"

#include <string.h>

static void copy_part(const struct pstk__mosaic_pixels *pixels, uint8_t *row,
                      const struct pstk_mosaic_part *part)
{
    const uint64_t line_size = (uint64_t)pixels->width * pixels->element_size;
    const uint64_t size = (uint64_t)part->width * pixels->element_size;
    const uint8_t *from = pixels->from + part->row * pixels->row_size +
                          (uint64_t)part->from_left * pixels->element_size;
    uint8_t *to = row + (uint64_t)part->left * pixels->element_size;
    for (uint32_t plane = 0; plane < pixels->n_planes; plane++) {
        const uint64_t first = (uint64_t)plane * pixels->height;
        for (uint32_t y = 0; y < part->height; y++)
            memcpy(to + (first + part->top + y) * line_size,
                   from + (first + part->from_top + y) * line_size, size);
    }
}

void pstk__mosaic_pixels(const struct pstk__mosaic_pixels *pixels,
                         const struct pstk_mosaic_row *rows)
{
    for (uint32_t i = 0; i < pixels->n; i++)
        for (uint32_t k = 0; k < rows[i].n_parts; k++)
            copy_part(pixels, pixels->to + i * pixels->row_size, &rows[i].parts[k]);
}
