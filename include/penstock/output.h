/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/output.h - the tensors of a batch: their fields, and how rows are made.
 *
 * An output is a head (name, field, kind, dtype) and a part for each family of kinds. The functions
 * pstk_output_* make one with the defaults of its kind; a program changes members of it.
 */
#ifndef PENSTOCK_OUTPUT_H
#define PENSTOCK_OUTPUT_H

#include <penstock/ops.h>
#include <penstock/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pstk_processes;

enum pstk_output_kind {
    /* [B, H, W, C] or [B, C, H, W], C channels */
    PSTK_OUTPUT_IMAGE = 1,
    /* [B]: a scalar field, cast to dtype; every value must fit. If dtype cannot hold all values of
     * the field's dtype, as i32 those of i64, pstk_open reads the field's side column, which must
     * prove that all stored values fit. It can for whole numbers alone */
    PSTK_OUTPUT_SCALAR = 2,
    /* [B, shape...]: an ndarray field of fixed shape, cast to a dtype that holds all of the field's
     */
    PSTK_OUTPUT_TENSOR = 3,
    /* ragged: the field's bytes end to end, and int64 offsets [B + 1] */
    PSTK_OUTPUT_BYTES = 4,
    /* [B, shape...] of dtype: `decode` writes each row, from the field's bytes; or, for an image
     * field with ops, channels or exif_orientation, from decoded pixels */
    PSTK_OUTPUT_CALLBACK = 5,
    /* ragged: an ndarray field whose only variable dimension is the first. The items of all rows
     * end to end, [items, shape...], and int64 offsets [B + 1], which count items */
    PSTK_OUTPUT_RAGGED = 6,
    /* [B, H, W] of a mask field, class numbers; follows an image output */
    PSTK_OUTPUT_MASK = 7,
    /* ragged, [boxes, 4] of f32; follows an image output */
    PSTK_OUTPUT_BOXES = 8,
    /* ragged: as RAGGED, a field with an item for each box; items of dropped boxes are left out */
    PSTK_OUTPUT_PER_BOX = 9,
    /* ragged, [rows, k, 3] of f32: x, y and visibility of k points in each row; follows an image
     * output */
    PSTK_OUTPUT_KEYPOINTS = 10,
    /* ragged, [corners, 2] of f32: x and y of corners of polygons; follows an image output */
    PSTK_OUTPUT_POLYGONS = 11,
};

/* One sample, the argument of a decode callback. All pointers borrow, for the call. */
struct pstk_sample {
    /* sizeof(struct pstk_sample) of the library */
    uint32_t size;
    /* enum pstk_encoding of the field */
    uint32_t encoding;
    uint64_t sample_id;
    uint64_t epoch;
    /* position in the epoch */
    uint64_t position;

    /* the field's bytes, checked and decompressed */
    const void *data;
    /* bytes */
    uint64_t data_size;
    /* 128 random bits of this sample and random group, the same for any number of threads */
    uint64_t random[2];
    /* scratch memory of this worker, 64-byte aligned */
    void *scratch;
    /* bytes */
    uint64_t scratch_size;
    /* enum pstk_codec of data; NONE unless the output asks for stored bytes */
    uint32_t codec;
    uint32_t reserved;

    /* Type of data: decoded pixels, as u8 [height, width, channels], or an array or a number of the
     * field. Other bytes are u8 [data_size]. */

    /* enum pstk_dtype of the elements */
    uint32_t dtype;
    uint32_t n_dims;
    /* elements of each dimension. The elements are the last bytes of data: arrays with several
     * variable dimensions have their shape before them */
    uint64_t shape[8];
    /* Initialised; a failing function may fill it, and functions of the library take it. The
     * loader's message contains its message, and names output, result, sample and file. The other
     * members are ignored. */
    struct pstk_error *error;
};

/* Write one row of row_size bytes. Touch only the row, the scratch and the error. Return 0, or a
 * negative enum pstk_result: the sample is bad. Thread: any worker; several call at once. */
typedef int (*pstk_decode_fn)(void *user, const struct pstk_sample *sample, void *row,
                              uint64_t row_size);

/* Largest number of lists of operations of one output. */
#define PSTK_MAX_SIZES 64

/* A list of operations. All pointers: copies. */
struct pstk_op_list {
    const struct pstk_op *ops;
    uint32_t n_ops;
    /* must be 0 */
    uint32_t reserved;
};

/* Members of IMAGE outputs, and of callbacks that get decoded pixels. */
struct pstk_image_output {
    /* enum pstk_layout. default: PSTK_NHWC */
    uint32_t layout;
    /* 1: gray, Pillow's convert("L"). 3: RGB. 4: RGBA, with 255 if the file has no alpha. 0: 3; for
     * a callback without ops: the coded bytes */
    uint32_t channels;
    /* applied in this order; they must fix the size, except for a callback, which gets images of
     * any size as u8. copies */
    const struct pstk_op *ops;
    uint32_t n_ops;
    /* enum pstk_reference of all ops */
    uint32_t reference;
    /* group of outputs that share their random draws: two images of a sample get the same crop and
     * flip. Masks and boxes follow an image instead. */
    uint32_t random_group;
    /* 1: turn images upright before the ops, as ImageOps.exif_transpose of Pillow 12 does: JPEGs
     * and PNGs, by the orientation in their Exif, or else XMP. 0: ignore the orientation, as
     * Image.open does */
    uint32_t exif_orientation;

    /* Sizes that differ from batch to batch, for multi-scale training. */

    /* n_sizes lists, in place of ops, which must be NULL. Each fixes its own size; all give as many
     * channels. The loader makes all rows of a batch by one of them; the tensor has that list's
     * shape, without padding, and pstk_batch.size_index is its index. Outputs that follow the image
     * take its size. copies. NULL: ops */
    const struct pstk_op_list *size_ops;
    /* number of lists, at most PSTK_MAX_SIZES; 0: ops */
    uint32_t n_sizes;
    /* Successive batches that have the same size. A loader draws the size from the seed, the epoch
     * and the batch's index / every, without the rank, so that all ranks have the same size in a
     * step. It draws once for all outputs that have size_ops: these have equal n_sizes and every. 0
     * without size_ops */
    uint32_t every;

    /* must be 0 */
    uint64_t reserved[4];
};

/* Members of CALLBACK outputs, also of those with processes (processes.h). */
struct pstk_callback_output {
    pstk_decode_fn decode;
    /* the first argument of decode */
    void *user;
    /* bytes of scratch memory for each worker */
    uint64_t scratch_size;
    /* shape of one row */
    uint64_t shape[8];
    /* dimensions of one row */
    uint32_t n_dims;
    /* 1: decode gets the field's bytes as stored: checked, but not decompressed, and planes stay
     * planes */
    uint32_t stored;
    /* processes that make the rows, in place of decode; NULL: none. copies */
    const struct pstk_processes *processes;
    /* processes: time limit for one row, or one whole batch, in nanoseconds; 0: none */
    uint64_t timeout_ns;
    /* processes: 1: each request is a whole batch, see processes.h. All rows of a request have one
     * size: images to which the ops give one, arrays of a fixed shape, scalars */
    uint32_t batched;
    /* must be 0 */
    uint32_t reserved2;

    /* must be 0 */
    uint64_t reserved[4];
};

/* Members of outputs that follow an image: MASK, BOXES, PER_BOX, KEYPOINTS and POLYGONS. The
 * geometric operations of the image output apply to them, too; they have no operations of their
 * own. */
struct pstk_follow_output {
    /* name of the image output; NULL: the only one of the image that the field belongs to. Not for
     * PER_BOX, which follows boxes. copies */
    const char *image;
    /* PER_BOX: name of the boxes output; NULL: the only one. KEYPOINTS, POLYGONS: the boxes output
     * whose dropped boxes drop their rows; NULL: the only one that follows the same image, unless
     * the fields are of different axes; "": none. copies */
    const char *boxes;
    /* BOXES: condition on another field, which has one number for each box: "iscrowd == 0"; the
     * operators are == != < <= > >=, the operand a whole number. Only boxes that fit are handed
     * out. Rows of PER_BOX, KEYPOINTS and POLYGONS, and random IoU crops, leave out the others,
     * too. These are not counted as dropped. NULL: all boxes. copies */
    const char *where;
    /* MASK: class of pixels outside of the image, which loss functions ignore; 0 to 255, or to
     * 65535 if dtype holds that */
    uint32_t fill;
    /* BOXES: enum pstk_box_format (format.h) of the result; 0: XYXY */
    uint32_t box_format;
    /* BOXES, KEYPOINTS, POLYGONS: enum pstk_coordinates (format.h) of the result, relative to the
     * image as it is handed out; 0: PIXELS */
    uint32_t coordinates;
    /* BOXES: 1: boxes are not clipped to the image; a box without area in the image is dropped in
     * any case. KEYPOINTS: 1: points outside of the image keep their visibility and their position
     */
    uint32_t keep_outside;
    /* BOXES: shortest side of a kept box, after clipping; pixels */
    double min_side;
    /* BOXES: smallest area of a kept box, after clipping; square pixels */
    double min_area;
    /* BOXES: smallest fraction of its area that a kept box has after clipping; 0 to 1 */
    double min_visible;
    /* PER_BOX: number added to every value, of a field of whole numbers: 1 makes labels begin at 1,
     * where a detector keeps 0 for the background. A sum that the dtype cannot hold is an error of
     * its sample. 0: as stored */
    int64_t add;
    /* KEYPOINTS: n_flip_pairs pairs of indices of points, as left and right eyes. The two are
     * swapped in rows of samples whose image the operations mirror. copies */
    const uint32_t *flip_pairs;
    uint32_t n_flip_pairs;
    /* KEYPOINTS: 1: the field and the result count pixels, as COCO's keypoints do: (0, 0) is the
     * centre of the top left pixel. 0: (0, 0) is its outer corner, as in all coordinates (enum
     * pstk_coordinates) */
    uint32_t at_centers;

    /* must be 0 */
    uint64_t reserved[4];
};

/* Members of ragged outputs: BYTES, RAGGED, BOXES, PER_BOX, KEYPOINTS and POLYGONS. */
struct pstk_ragged_output {
    /* bytes for values in one slot; 0: batch_size * the field's maximum */
    uint64_t bytes_per_batch;

    /* must be 0 */
    uint64_t reserved[4];
};

/* One tensor of every batch: a head, and one part for each family of kinds. Members that the kind
 * does not use are 0. */
struct pstk_output {
    /* name of the tensor; NULL: the field's. copies */
    const char *name;
    /* name of a field of the data set's schema. copies */
    const char *field;
    /* enum pstk_output_kind */
    uint32_t kind;
    /* enum pstk_dtype; images: u8, f16, bf16 or f32. 0: the field's, for images u8 */
    uint32_t dtype;

    struct pstk_image_output image;
    struct pstk_callback_output callback;
    struct pstk_follow_output follow;
    struct pstk_ragged_output ragged;
};

/* Make an output. Members without an argument are 0, so the tensor has the field's name until the
 * caller sets `name`. The struct borrows the pointers; pstk_open copies. */
PSTK_API struct pstk_output pstk_output_image(const char *field, const struct pstk_op *ops,
                                              uint32_t n_ops, uint32_t dtype, uint32_t layout);
PSTK_API struct pstk_output pstk_output_scalar(const char *field, uint32_t dtype);
PSTK_API struct pstk_output pstk_output_tensor(const char *field, uint32_t dtype);
PSTK_API struct pstk_output pstk_output_bytes(const char *field);
PSTK_API struct pstk_output pstk_output_ragged(const char *field);
/* Follow the image that the mask belongs to. Pixels are copied, whatever the filters of the image's
 * operations are; operations on colours or on finished rows do nothing. dtype: u8, or any that
 * holds every class; masks of 16 bits need one that holds u16. A mask whose size differs from that
 * of its image as it is coded is an error of its sample. If the image is turned upright by its EXIF
 * orientation, the mask is, too. */
PSTK_API struct pstk_output pstk_output_mask(const char *field, uint32_t fill, uint32_t dtype);
/* Follow the image that the boxes belong to. After each operation that moves pixels, a box becomes
 * the bounding box of its corners, clipped to the image, as in torchvision.transforms.v2; computed
 * in f64. A box without a remaining part is dropped, with its items in outputs PER_BOX, and
 * counted. A box with a value that is not finite, or with max below min, is an error of its sample.
 */
PSTK_API struct pstk_output pstk_output_boxes(const char *field);
/* Hand out the items that belong to boxes: labels, areas. Or the items that fields of lengths
 * (`splits`) give to such items: the number of corners of each polygon of an object. Any dtype, as
 * it is stored. */
PSTK_API struct pstk_output pstk_output_per_box(const char *field);
/* Follow the image that the points belong to; computed in f64. A point is outside once it is left
 * of 0 or right of the width of the image, or above or below, after any operation that moves
 * pixels, or before the first; no later operation brings it back. Its visibility becomes 0. Points
 * whose visibility is 0 are (0, 0). Points of a field without visibilities have 2. A point with a
 * value that is not finite, unless its visibility is 0, is an error of its sample. */
PSTK_API struct pstk_output pstk_output_keypoints(const char *field);
/* Follow the image that the polygons belong to; computed in f64. Corners are moved, never clipped:
 * a polygon keeps its number of corners, even outside of the image, and pstk_polygon_mask takes it
 * as it is. Corners at the horizon of a perspective or beyond are NaN. If fields of lengths lead
 * from the axis of an output of boxes to the corners, corners of dropped boxes are dropped, and
 * outputs PER_BOX of these fields have the remaining lengths. */
PSTK_API struct pstk_output pstk_output_polygons(const char *field);
/* Make an output whose rows the program's function writes. A row is one element of dtype; for
 * larger rows set callback.n_dims and .shape, for scratch .scratch_size. */
PSTK_API struct pstk_output pstk_output_callback(const char *field, uint32_t dtype,
                                                 pstk_decode_fn decode, void *user);

#ifdef __cplusplus
}
#endif
#endif
