/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_c: the loops compiled for any CPU: the reference for the other ISAs. */
#include "pixels/tensor_fma.h"

#if defined(__FP_FAST_FMAF)
#define FMA(a, b, c) __builtin_fmaf(a, b, c)
#else
#define FMA(a, b, c) pstk__fma(a, b, c)
#endif

#define TARGET

#include "pixels/tensor_loops.h"

const struct pstk__tensor_kernels pstk__tensor_c = TENSOR_KERNELS(PSTK_KERNELS_C);
