/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_avx512: the loops compiled for vectors of 512 bits. The build forbids compilers to
 * contract products and sums by themselves. */
#if defined(__x86_64__)

#include "pixels/avx512.h"

#define FMA(a, b, c) __builtin_fmaf(a, b, c)

#include "pixels/tensor_loops.h"

const struct pstk__tensor_kernels pstk__tensor_avx512 = TENSOR_KERNELS(PSTK_KERNELS_AVX512);

#endif
