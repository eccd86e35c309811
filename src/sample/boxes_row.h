/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boxes_row: the boxes of a sample that follow an image output. They are read before the image is
 * drawn, moved by the drawn ops, and written without the dropped ones. Pure.
 */
#ifndef PSTK_BOXES_ROW_H
#define PSTK_BOXES_ROW_H

#include "sample/image_ops.h"

/* Read n boxes of the field into boxes->boxes, in pixels of an image of this size; none is
 * excluded. Returns NULL, or in `text` the fault of a box. */
const char *pstk__boxes_read(struct pstk__boxes *boxes, const struct pstk_field *field,
                             const void *data, const struct pstk__image_info *image,
                             char text[200]);
/* A row of boxes that a mosaic will combine with others. */
struct pstk__kept_boxes {
    uint64_t n;
    struct pstk__moved_box boxes[];
};

/* Copy the boxes that are not dropped, as a struct pstk__kept_boxes. Returns their number. */
uint32_t pstk__boxes_keep(const struct pstk__boxes *boxes, void *out);
/* Move boxes to the position of this part of their image in a mosaic, and drop those that the part
 * does not show. */
void pstk__boxes_place(struct pstk__boxes *boxes, const struct pstk_mosaic_part *part);
/* Drop boxes by the settings of the output. */
void pstk__boxes_choose(struct pstk__boxes *boxes, const struct pstk__output *o);
/* Write the boxes that are not dropped. Returns their number. */
uint32_t pstk__boxes_write(const struct pstk__boxes *boxes, const struct pstk__output *o,
                           float *out);

#endif
