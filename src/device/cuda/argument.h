/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda/argument: the arguments of the kernels, one struct for each kind of kernel. cuda/kernels.h
 * launches the kernels, cuda/arithmetic.h does their work. The device's compiler reads this file
 * too.
 */
#ifndef PSTK_CUDA_ARGUMENT_H
#define PSTK_CUDA_ARGUMENT_H

#include <stdint.h>

/*
 * Convert u8 NHWC rows to normalised images. `in` and `out` do not overlap, both 64-byte aligned.
 * Rows from n_valid on become 0.
 */
struct pstk__cuda_pixels {
    /* device: n_rows x height x width x channels, or n_rows x channels x height x width */
    void *out;
    /* device: n_rows x height x width x channels */
    const uint8_t *in;
    /* device: n_rows bytes, 1: mirrored horizontally; NULL: no row is */
    const uint8_t *flips;
    /* device: channels x 256 elements of dtype, filled by pstk__normalisation_table */
    const void *table;
    uint32_t n_rows, n_valid;
    uint32_t height, width;
    uint32_t channels; /* 1, 3 or 4 */
    uint32_t dtype;    /* PSTK_F16, PSTK_BF16, PSTK_F32 */
    uint32_t layout;   /* enum pstk_layout of out */
    uint32_t exact;    /* 1: scale and offset give the same elements as the table (pstk__affine) */
    float scale[4], offset[4];
};

/* Convert elements to a wider dtype: pstk__cast_fits(from, to) holds, from != to. 64-byte aligned.
 */
struct pstk__cuda_cast {
    void *out;      /* device */
    const void *in; /* device */
    uint64_t n;     /* elements */
    uint32_t to, from;
};

#endif
