/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lerp: the kernels of MixUp. Each ISA has a table of them; lerp.c lists the tables and chooses
 * one. The plain C kernel is the reference for the other. Pure.
 */
#ifndef PSTK_PIXELS_LERP_H
#define PSTK_PIXELS_LERP_H

#include <penstock/types.h>

/* The arguments of a blend: `n` elements of `to` become to * keep + from * take; each product and
 * the sum is rounded to the dtype: f16, bf16 or f32. from: other memory, or `to` itself. */
struct pstk__lerp {
    void *to;
    const void *from;
    uint64_t n;
    float keep, take;
    uint32_t dtype; /* enum pstk_dtype */
};

/* The kernels of one ISA. */
struct pstk__lerp_kernels {
    uint32_t isa; /* enum pstk_kernels */
    void (*blend)(const struct pstk__lerp *lerp);
};

/* Return the kernels of an ISA (AUTO: of the best), or of the next lower one. NULL: this CPU does
 * not have the ISA. */
const struct pstk__lerp_kernels *pstk__lerp_kernels(uint32_t isa);

extern const struct pstk__lerp_kernels pstk__lerp_c; /* lerp_c.c */
#if defined(__x86_64__) || defined(PSTK_NEON)
extern const struct pstk__lerp_kernels pstk__lerp_avx2; /* lerp_avx2.c */
#endif

#endif
