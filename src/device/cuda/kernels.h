/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda/kernels: what the device does to an output once its rows are there. Launches only: memory,
 * order and events are the caller's. The arithmetic, element by element, is in cuda/arithmetic.h,
 * which the host compiles as well: what it gives is what the CPU's kernels give, bit for bit.
 */
#ifndef PSTK_CUDA_KERNELS_H
#define PSTK_CUDA_KERNELS_H

#ifndef __CUDACC__
#include "device/cuda/module.h"
#endif

#include <stdint.h>

/*
 * u8 NHWC rows to normalised images. `in` and `out` do not overlap, both 64-byte aligned. Rows from
 * n_valid on become 0.
 */
struct pstk__cuda_pixels {
    void *out;            /* device: n_rows x height x width x 3, or n_rows x 3 x height x width */
    const uint8_t *in;    /* device: n_rows x height x width x 3 */
    const uint8_t *flips; /* device: n_rows bytes, 1 = mirrored horizontally; NULL = none is */
    const void *table;    /* device: 3 x 256 elements of dtype, as pstk__finish_table fills it */
    uint32_t n_rows, n_valid;
    uint32_t height, width;
    uint32_t dtype;  /* PSTK_F16, PSTK_BF16, PSTK_F32 */
    uint32_t layout; /* enum pstk_layout of out */
    uint32_t exact;  /* 1: scale and offset say the same as the table (pstk__affine) */
    float scale[3], offset[3];
};

/* Elements to a wider dtype: pstk__cast_fits(from, to) holds, from != to. 64-byte aligned. */
struct pstk__cuda_cast {
    void *out;      /* device */
    const void *in; /* device */
    uint64_t n;     /* elements */
    uint32_t to, from;
};

#ifndef __CUDACC__
/* Load the kernels into device `index`, whose context is current; pstk__cuda_module_close, also
 * after a failure. */
cudaError_t pstk__cuda_kernels_open(struct pstk__cuda_module *m, int32_t index);
cudaError_t pstk__cuda_pixels(const struct pstk__cuda_module *m, const struct pstk__cuda_pixels *p,
                              cudaStream_t stream);
cudaError_t pstk__cuda_cast(const struct pstk__cuda_module *m, const struct pstk__cuda_cast *c,
                            cudaStream_t stream);
/* Keep one multiprocessor, and so the stream, busy for ns nanoseconds: stands for a training step.
 */
cudaError_t pstk__cuda_spin(const struct pstk__cuda_module *m, uint64_t ns, cudaStream_t stream);
#endif

#endif
