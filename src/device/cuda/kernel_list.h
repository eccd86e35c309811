/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda/kernel_list: every kernel by its name in the images, for the device's compiler, which makes
 * them, and for the host, which launches them.
 */
#ifndef PSTK_CUDA_KERNEL_LIST_H
#define PSTK_CUDA_KERNEL_LIST_H

/* X(dtype, layout, exact, run), the members of struct pstk__pixels_kind without their prefix. A
 * table's kernel moves words: that of F16 serves BF16 as well. */
#define PSTK__PIXELS_KERNELS(X)                                                                    \
    X(F32, NHWC, 0, 1)                                                                             \
    X(F32, NHWC, 0, 4)                                                                             \
    X(F32, NCHW, 0, 1)                                                                             \
    X(F32, NCHW, 0, 4)                                                                             \
    X(F16, NHWC, 0, 1)                                                                             \
    X(F16, NHWC, 0, 8)                                                                             \
    X(F16, NCHW, 0, 1)                                                                             \
    X(F16, NCHW, 0, 8)                                                                             \
    X(F16, NHWC, 1, 1)                                                                             \
    X(F16, NHWC, 1, 8)                                                                             \
    X(F16, NCHW, 1, 1)                                                                             \
    X(F16, NCHW, 1, 8)                                                                             \
    X(BF16, NHWC, 1, 1)                                                                            \
    X(BF16, NHWC, 1, 8)                                                                            \
    X(BF16, NCHW, 1, 1)                                                                            \
    X(BF16, NCHW, 1, 8)

/* X(to, from) of the casts that threads do in runs; pstk_cast_any does all others. */
#define PSTK__CAST_KERNELS(X)                                                                      \
    X(I32, U16)                                                                                    \
    X(I64, U8)                                                                                     \
    X(I64, U16)                                                                                    \
    X(I64, I32)

#define PSTK__PIXELS_KERNEL(dtype, layout, exact, run)                                             \
    pstk_pixels_##dtype##_##layout##_##exact##_##run
#define PSTK__CAST_KERNEL(to, from) pstk_cast_##to##_##from

#define PSTK__CUDA_BLOCK 256u /* threads of a block, of all kernels but pstk_spin's one */

#endif
