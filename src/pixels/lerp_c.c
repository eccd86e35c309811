/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cast.h"
#include "pixels/lerp.h"

#include <penstock/machine.h>

static void blend_f32(const struct pstk__lerp *b)
{
    float *to = b->to;
    const float *from = b->from;
    for (uint64_t i = 0; i < b->n; i++)
        to[i] = to[i] * b->keep + from[i] * b->take;
}

static void blend_f16(const struct pstk__lerp *b)
{
    uint16_t *to = b->to;
    const uint16_t *from = b->from;
    for (uint64_t i = 0; i < b->n; i++) {
        const uint16_t kept = pstk__f16_from_f32(pstk__f32_from_f16(to[i]) * b->keep);
        const uint16_t taken = pstk__f16_from_f32(pstk__f32_from_f16(from[i]) * b->take);
        to[i] = pstk__f16_from_f32(pstk__f32_from_f16(kept) + pstk__f32_from_f16(taken));
    }
}

static float f32_from_bf16(uint16_t half)
{
    const union {
        uint32_t bits;
        float value;
    } v = {.bits = (uint32_t)half << 16};
    return v.value;
}

static void blend_bf16(const struct pstk__lerp *b)
{
    uint16_t *to = b->to;
    const uint16_t *from = b->from;
    for (uint64_t i = 0; i < b->n; i++) {
        const uint16_t kept = pstk__bf16_from_f32(f32_from_bf16(to[i]) * b->keep);
        const uint16_t taken = pstk__bf16_from_f32(f32_from_bf16(from[i]) * b->take);
        to[i] = pstk__bf16_from_f32(f32_from_bf16(kept) + f32_from_bf16(taken));
    }
}

static void blend_c(const struct pstk__lerp *lerp)
{
    if (lerp->dtype == PSTK_F32)
        blend_f32(lerp);
    else if (lerp->dtype == PSTK_F16)
        blend_f16(lerp);
    else
        blend_bf16(lerp);
}

const struct pstk__lerp_kernels pstk__lerp_c = {
    .isa = PSTK_KERNELS_C,
    .blend = blend_c,
};
