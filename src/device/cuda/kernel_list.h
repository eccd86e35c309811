/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda/kernel_list: lists every kernel by its name in the images, for the device's compiler, which
 * makes them, and for the host, which launches them.
 */
#ifndef PSTK_CUDA_KERNEL_LIST_H
#define PSTK_CUDA_KERNEL_LIST_H

/* X(channels, dtype, layout, exact, run), the members of struct pstk__pixels_kind without their
 * prefix. A kernel with a table moves words, so F16's serves BF16 as well. Pixels of one channel
 * are a plane, so they need no NHWC. */
#define PSTK__PIXELS_LAYOUT(X, channels, layout)                                                   \
    X(channels, F32, layout, 0, 1)                                                                 \
    X(channels, F32, layout, 0, 4)                                                                 \
    X(channels, F16, layout, 0, 1)                                                                 \
    X(channels, F16, layout, 0, 8)                                                                 \
    X(channels, F16, layout, 1, 1)                                                                 \
    X(channels, F16, layout, 1, 8)                                                                 \
    X(channels, BF16, layout, 1, 1)                                                                \
    X(channels, BF16, layout, 1, 8)
#define PSTK__PIXELS_KERNELS(X)                                                                    \
    PSTK__PIXELS_LAYOUT(X, 1, NCHW)                                                                \
    PSTK__PIXELS_LAYOUT(X, 3, NHWC)                                                                \
    PSTK__PIXELS_LAYOUT(X, 3, NCHW)                                                                \
    PSTK__PIXELS_LAYOUT(X, 4, NHWC)                                                                \
    PSTK__PIXELS_LAYOUT(X, 4, NCHW)

/* X(to, from) for the casts whose threads convert runs; pstk_cast_any does all others. */
#define PSTK__CAST_KERNELS(X)                                                                      \
    X(I32, U16)                                                                                    \
    X(I64, U8)                                                                                     \
    X(I64, U16)                                                                                    \
    X(I64, I32)

#define PSTK__PIXELS_KERNEL(channels, dtype, layout, exact, run)                                   \
    pstk_pixels_##channels##_##dtype##_##layout##_##exact##_##run
#define PSTK__CAST_KERNEL(to, from) pstk_cast_##to##_##from

#define PSTK__CUDA_BLOCK                                                                           \
    256u /* threads of a block, in every kernel except pstk_spin, which has one */

#endif
