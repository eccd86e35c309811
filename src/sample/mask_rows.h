/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mask_rows: a mask that follows an image output. The ops drawn for the image move the mask's
 * samples, always to the nearest one, whatever the filters are. The bytes of 16-bit samples are
 * moved one after the other. Used by one worker; all memory comes from its arena.
 */
#ifndef PSTK_MASK_ROWS_H
#define PSTK_MASK_ROWS_H

#include "sample/image_rows.h"

struct pstk__mask_rows {
    struct pstk__image_rows planes[2]; /* one for each byte of a sample, lower first */
    uint32_t n_planes;                 /* 2 for 16-bit samples, or for a fill of 16 bits */
    uint32_t sample_size;              /* bytes */
    struct pstk__image_ops image_ops;  /* the drawn ops that move pixels; arena */
    uint32_t fill;
    uint8_t *split[2]; /* a row of each plane; arena */
};

/* The mask of a sample. All pointers borrow. */
struct pstk__mask_source {
    const void *data; /* plain bytes */
    uint64_t size;
    const struct pstk__image_info *info;
    const struct pstk__image_ops *image_ops; /* drawn for the image that the mask follows */
};

/* Write the row of an output. EBADMSG: the file is damaged, or has 16-bit samples that the output's
 * dtype does not hold: err has the reason. ENOMEM, EFBIG, EINVAL: as for image rows, without err.
 */
int pstk__mask_rows_write(struct pstk__mask_rows *rows, const struct pstk__plan *plan,
                          struct pstk__arena *arena, const struct pstk__output *o,
                          const struct pstk__mask_source *source, void *out,
                          struct pstk_error *err);

#endif
