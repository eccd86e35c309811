/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/mosaic.h - Mosaic: once all rows of a batch are written, each row becomes a picture of
 * four rows, which meet at a point.
 *
 *                  left                   center_x              width
 *                   +------------------------+--------------------+
 *                   | bottom right corner of | bottom left corner |
 *                   | the row itself         | of part 1          |
 *          center_y +------------------------+--------------------+
 *                   | top right corner of    | top left corner of |
 *                   | part 2                 | part 3             |
 *                   +------------------------+--------------------+
 *
 * The scheme is Darknet's (load_data_detection, mosaic=1), whose pictures are augmented before and
 * have the size of the result. Darknet also shifts jittered pictures with borders; this library
 * does not. Ultralytics makes a canvas of twice the size, so that pictures are mostly whole, and
 * then cuts a random affine view out of it. Here operations change the scale before:
 * pstk_scale_jitter or pstk_random_resized_crop.
 *
 * Masks and boxes that follow the image, and outputs that follow the boxes, are combined as well.
 * Other outputs keep the values of the row itself. The other rows are of this rank's batch, so they
 * depend on batch_size and world.
 */
#ifndef PENSTOCK_MOSAIC_H
#define PENSTOCK_MOSAIC_H

#include <penstock/mix.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Settings for mosaics: pstk_settings.mosaic. Fill the struct with pstk_mosaic_init, then name the
 * image.
 *
 * Pixels are copied, in the output's dtype and layout. On a device, such images are finished on the
 * host, then copied there. A slot has the combined outputs twice, before and after. Ragged outputs
 * have room for four times as much after, and the default of their bytes_per_batch is four times as
 * large.
 */
struct pstk_mosaic {
    /* sizeof(struct pstk_mosaic) */
    uint32_t size;
    /* must be 0 */
    uint32_t reserved;
    /* name of the tensor of an image output; copies */
    const char *image;
    /* probability that a row becomes a mosaic, 0 to 1. default: 1 */
    double probability;
    /* smallest and largest coordinate of the point where rows meet, as parts of the width and of
     * the height, 0 to 1, center_min <= center_max. The point is a whole pixel, uniform between the
     * rounded limits. defaults: 0.25, 0.75 */
    double center_min;
    double center_max;
};

/* Fill `mosaic` with defaults. `size` is sizeof *mosaic: a library that has more members defaults
 * them. */
PSTK_API void pstk_mosaic_init(struct pstk_mosaic *mosaic, uint32_t size);

/* One part of a mosaic: a rectangle copied from one row, pixels. */
struct pstk_mosaic_part {
    /* index of the source row in the batch */
    uint32_t row;
    /* position of the part in the result */
    uint32_t top;
    uint32_t left;
    /* 0: the part is empty */
    uint32_t height;
    uint32_t width;
    /* position of the part in the source row */
    uint32_t from_top;
    uint32_t from_left;
};

/*
 * The draw of one row. With at least four valid rows, the three others differ from each other and
 * from the row itself. With fewer, each is any valid row.
 */
struct pstk_mosaic_row {
    /* 4; 1: the row is unchanged, and is its only part */
    uint32_t n_parts;
    /* point at which the four parts meet, pixels; 0 if the row is unchanged */
    uint32_t center_x;
    uint32_t center_y;
    /* must be 0 */
    uint32_t reserved;
    /* top left (the row itself), top right, bottom left, bottom right */
    struct pstk_mosaic_part parts[4];
};

/* Draw the mosaics of a batch, as a loader with these settings does: fill rows[key->n_rows]. The
 * name in `mosaic` is not used; the height and width of the key are. All pointers: borrows. EINVAL:
 * as pstk_open. */
PSTK_API int pstk_mosaic_draw(const struct pstk_mosaic *mosaic, const struct pstk_mix_key *key,
                              struct pstk_mosaic_row *rows, struct pstk_error *err);

#ifdef __cplusplus
}
#endif
#endif
