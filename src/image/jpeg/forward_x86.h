/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg/forward_x86: the functions that the x86 ISAs share. */
#ifndef PSTK_JPEG_FORWARD_X86_H
#define PSTK_JPEG_FORWARD_X86_H

#include "image/jpeg/forward.h"
#include "image/jpeg/forward_constants.h"
#include "image/jpeg/forward_pack.h"

#if defined(__x86_64__)

#include <immintrin.h>

/* The AVX2 versions of struct pstk__forward_kernels' split and halve. */
void pstk__forward_split_avx2(uint8_t *const ycc[3], const uint8_t *rgb, uint32_t n);
void pstk__forward_halve_avx2(uint8_t *out, const uint8_t *upper, const uint8_t *lower, uint32_t n);

#endif
#endif
