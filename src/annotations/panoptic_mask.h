/* SPDX-License-Identifier: Apache-2.0 */
/*
 * panoptic_mask: decodes the PNG file of a panoptic annotation, whose colours are ids of segments:
 * R + 256 G + 65536 B, and 0 for pixels without a segment. It makes two masks: the numbers of the
 * segments, and their classes. It reads no files.
 */
#ifndef PSTK_PANOPTIC_MASK_H
#define PSTK_PANOPTIC_MASK_H

#include <penstock/types.h>

#include "base/bytes.h"

#define PSTK__MAX_SEGMENTS 65535 /* segments of an image: numbers are u16, and 0 means none */

struct pstk__segment {
    uint32_t id;
    uint32_t number; /* 1 to PSTK__MAX_SEGMENTS */
    uint32_t label;  /* class */
};

struct pstk__panoptic_mask {
    const struct pstk__segment *segments; /* borrowed; sorted by id, which are unique and not 0 */
    uint64_t n;
    uint32_t label_size;            /* bytes of a class: 1 or 2 */
    struct pstk__bytes *numbers;    /* u16 of each pixel are appended, 0 without a segment */
    struct pstk__bytes *labels;     /* classes are appended, the largest number without a segment */
    uint32_t width, height;         /* size of the file; set by read */
    struct pstk__segment none;      /* the entry of pixels without a segment; set by read */
    const struct pstk__segment *at; /* segment of the previous pixel */
    uint64_t n_rows;                /* rows that were read */
    int64_t unknown_id;             /* first id that no segment has; -1: none */
    uint32_t unknown_x, unknown_y;
};

/* Decode a PNG file. Returns 0; EBADMSG: it is no PNG file of colours, is damaged, or has an id
 * that no segment has; EFBIG or ENOMEM. */
int pstk__panoptic_mask_read(struct pstk__panoptic_mask *mask, const void *data, uint64_t size,
                             struct pstk_error *err);
/* Append the masks of an image without segments, mask->width x mask->height pixels. */
void pstk__panoptic_mask_fill(const struct pstk__panoptic_mask *mask);

#endif
