/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_avx2: the loops compiled for vectors of 256 bits. The build forbids compilers to contract
 * products and sums by themselves. */
#if defined(__x86_64__)

#define TARGET __attribute__((target("avx2,bmi,bmi2,fma,f16c,popcnt")))
#define FMA(a, b, c) __builtin_fmaf(a, b, c)

#include "pixels/tensor_loops.h"

const struct pstk__tensor_kernels pstk__tensor_avx2 = TENSOR_KERNELS(PSTK_KERNELS_AVX2);

#endif
