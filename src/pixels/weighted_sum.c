/* SPDX-License-Identifier: Apache-2.0 */
#include "pixels/weighted_sum.h"

void pstk__mix_set(float *sum, const uint8_t *in, float weight, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        sum[i] = weight * (float)in[i];
}

void pstk__mix_add(float *sum, const uint8_t *in, float weight, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        sum[i] += weight * (float)in[i];
}

static uint8_t cut(float value)
{
    const float most = value < 255.0f ? value : 255.0f;
    return (uint8_t)(int32_t)(most > 0.0f ? most : 0.0f);
}

void pstk__mix_write(uint8_t *out, const float *sum, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        out[i] = cut(sum[i]);
}

void pstk__mix_blend(uint8_t *out, const uint8_t *from, const uint8_t *to, float alpha, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        out[i] = cut((float)from[i] + alpha * (float)((int32_t)to[i] - (int32_t)from[i]));
}
