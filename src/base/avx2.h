/* SPDX-License-Identifier: Apache-2.0 */
/* avx2: the intrinsics that files *_avx2.c are written in. One text makes two ISAs: AVX2 on x86-64,
 * and on aarch64 NEON (PSTK_NEON), which has two registers of 128 bits in place of one of 256.
 * Where neither is defined, these files compile to nothing. */
#ifndef PSTK_BASE_AVX2_H
#define PSTK_BASE_AVX2_H

#if defined(__x86_64__)

#include <immintrin.h>

#define AVX2_ISA PSTK_KERNELS_AVX2
/* The attribute of a function that uses these features of the CPU. */
#define AVX2_TARGET(features) __attribute__((target(features)))

#elif defined(PSTK_NEON)

#include "base/avx2_neon.h"

#define AVX2_ISA PSTK_KERNELS_NEON
#define AVX2_TARGET(features)

#endif

#endif
