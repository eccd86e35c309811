/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mosaic: replaces rows of a batch by pictures of four rows each. Pure: no allocation.
 *
 *   check, copy (at open) -> draw -> pixels (the last worker of a batch)
 */
#ifndef PSTK_MOSAIC_H
#define PSTK_MOSAIC_H

#include <penstock/mosaic.h>

/* Copy the caller's struct, which may be of an older or newer library. EINVAL: it is not
 * initialised; ENOTSUP: it sets a member that this version does not know. */
int pstk__mosaic_copy(struct pstk_mosaic *to, const struct pstk_mosaic *from,
                      struct pstk_error *err);
/* Check all except the name. EINVAL names the member. */
int pstk__mosaic_check(const struct pstk_mosaic *mosaic, struct pstk_error *err);

/* Draw the mosaics of a batch: rows[key->n_rows]. `mosaic` and `key` were checked. */
void pstk__mosaic_draw(const struct pstk_mosaic *mosaic, const struct pstk_mix_key *key,
                       struct pstk_mosaic_row *rows);

/* The valid rows of finished images or masks, next to each other: source and destination. */
struct pstk__mosaic_pixels {
    uint8_t *to;
    const uint8_t *from;   /* memory that does not overlap `to` */
    uint64_t row_size;     /* bytes */
    uint32_t n;            /* rows */
    uint32_t n_planes;     /* planes of a row */
    uint32_t height;       /* rows of a plane */
    uint32_t width;        /* pixels */
    uint32_t element_size; /* bytes of a pixel of a plane */
};

/* Write all rows to `to`, by rows[n]. */
void pstk__mosaic_pixels(const struct pstk__mosaic_pixels *pixels,
                         const struct pstk_mosaic_row *rows);

#endif
