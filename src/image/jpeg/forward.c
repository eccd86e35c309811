/* SPDX-License-Identifier: Apache-2.0 */
#include "image/jpeg/forward.h"

#include "base/kernels.h"

/*
 * Compute a divisor as compute_reciprocal of jcdctmgr.c does. d has b + 1 bits, b from 3 to 10, and
 * r = 16 + b. A power of two has reciprocal 2^15 and scale 2^(17 - b). Otherwise 2^r / d lies
 * between 2^15 and 2^16: if it is rounded up, the product is too large by too little to change the
 * quotient; if it is rounded down, the 1 that is added to `half` makes up for it.
 * tests/image/jpeg/test_jpeg_forward.c tries all numbers.
 */
static void divisor_init(struct pstk__jpeg_divisors *divisors, uint32_t i, uint32_t d)
{
    const uint32_t b = 31 - (uint32_t)__builtin_clz(d), r = 16 + b;
    const uint32_t down = (1u << r) / d, rest = (1u << r) % d;
    const int is_power = rest == 0, is_down = rest <= d / 2;
    divisors->half[i] = (uint16_t)(d / 2 + (!is_power && is_down));
    divisors->reciprocal[i] = (uint16_t)(is_power ? down / 2 : down + !is_down);
    divisors->scale[i] = (uint16_t)(1u << (32 - r + (uint32_t)is_power));
}

void pstk__jpeg_divisors_init(struct pstk__jpeg_divisors *divisors, const uint16_t quant[64])
{
    for (uint32_t i = 0; i < 64; i++)
        divisor_init(divisors, i, 8u * quant[i]);
}

const struct pstk__forward_kernels *pstk__forward_kernels(uint32_t isa)
{
    static const void *const tables[] = {
        &pstk__forward_kernels_c,
#if defined(__x86_64__)
        &pstk__forward_kernels_avx2,
        &pstk__forward_kernels_avx512,
#endif
    };
    return pstk__kernels_choose(tables, sizeof tables / sizeof tables[0], isa);
}
