/* SPDX-License-Identifier: Apache-2.0 */
#include "pixels/filter.h"

/* Term k is (-1)^k * pi^(2k + 1) / (2k + 1)!, to the nearest double. */
const double pstk__sin_terms[PSTK__N_SIN_TERMS] = {
    0x1.921fb54442d18p+1,  -0x1.4abbce625be53p+2,  0x1.466bc6775aae2p+1,  -0x1.32d2cce62bd86p-1,
    0x1.50783487ee782p-4,  -0x1.e3074fde8871fp-8,  0x1.e8f434d018d63p-12, -0x1.6fadb9f155744p-16,
    0x1.aaec32af93359p-21, -0x1.8a404211f9547p-26, 0x1.2877020d52cf0p-31,
};

static const struct {
    uint32_t length;
    uint32_t is_signed;
} filters[] = {
    [PSTK_FILTER_NEAREST] = {1, 0}, [PSTK_FILTER_BOX] = {1, 0},     [PSTK_FILTER_BILINEAR] = {2, 0},
    [PSTK_FILTER_HAMMING] = {2, 0}, [PSTK_FILTER_BICUBIC] = {4, 1}, [PSTK_FILTER_LANCZOS] = {6, 1},
};

uint32_t pstk__filter_kind(uint32_t filter)
{
    return filter == PSTK_FILTER_DEFAULT ? PSTK_FILTER_BILINEAR : filter;
}

uint32_t pstk__filter_set(uint32_t filter)
{
    if (filter == PSTK_FILTER_RANDOM)
        return 1u << PSTK_FILTER_BILINEAR | 1u << PSTK_FILTER_BICUBIC;
    return 1u << pstk__filter_kind(filter);
}

uint32_t pstk__filter_draw(uint32_t filter, struct pstk__random *r)
{
    if (filter == PSTK_FILTER_RANDOM)
        return pstk__random_below(r, 2) ? PSTK_FILTER_BICUBIC : PSTK_FILTER_BILINEAR;
    return filter;
}

uint32_t pstk__filter_length(uint32_t kind)
{
    return filters[kind].length;
}

uint32_t pstk__filter_is_signed(uint32_t kind)
{
    return filters[kind].is_signed;
}
