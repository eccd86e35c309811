/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lerp: the kernels of MixUp. Each ISA has one; lerp.c chooses. The plain C kernel is the reference
 * for the other. Pure.
 */
#ifndef PSTK_PIXELS_LERP_H
#define PSTK_PIXELS_LERP_H

#include <penstock/types.h>

/* The arguments of a blend: `n` elements of `to` become to * keep + from * take; each product and
 * the sum is rounded to the dtype: f16, bf16 or f32. from: other memory, or `to` itself. */
struct pstk__blend {
    void *to;
    const void *from;
    uint64_t n;
    float keep, take;
    uint32_t dtype; /* enum pstk_dtype */
};

void pstk__blend(const struct pstk__blend *blend, uint32_t kernels);

void pstk__blend_c(const struct pstk__blend *blend); /* lerp_c.c */
#if defined(__x86_64__) || defined(PSTK_NEON)
void pstk__blend_avx2(const struct pstk__blend *blend); /* lerp_avx2.c */
#endif

#endif
