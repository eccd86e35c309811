/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"
#include "pixels/tensor.h"
#include "pixels/tensor_fma.h"

#include <string.h>

/* Convert as torch does: clamp_(0, 255), then a conversion that truncates. */
static uint8_t clipped(float v)
{
    return (uint8_t)(v > 0.0f ? v < 255.0f ? v : 255.0f : 0.0f);
}

/* Copy red's row to green and blue. */
static void spread(struct pstk__colour_table *table)
{
    memcpy(table->to[1], table->to[0], 256);
    memcpy(table->to[2], table->to[0], 256);
}

void pstk__tensor_table_brightness(struct pstk__colour_table *table, double factor)
{
    pstk__colour_table_same(table);
    for (uint32_t v = 0; v < 256; v++)
        table->to[0][v] = clipped((float)v * (float)factor);
    spread(table);
}

void pstk__tensor_table_contrast(struct pstk__colour_table *table, float mean, double factor)
{
    const float rest = (float)(1.0 - factor);
    pstk__colour_table_same(table);
    for (uint32_t v = 0; v < 256; v++)
        table->to[0][v] = clipped(pstk__fma(mean, rest, (float)v * (float)factor));
    spread(table);
}

/* Return v ^ gamma for a float from 0 to 1. Results that give the byte 0 with any gain are 0. */
static float power(float v, float gamma)
{
    if (gamma == 0.0f)
        return 1.0f;
    const double exponent = v == 0.0f ? -50.0 : (double)gamma * pstk__log((double)v);
    return exponent > -50.0 ? (float)pstk__exp(exponent) : 0.0f;
}

void pstk__tensor_table_gamma(struct pstk__colour_table *table, double gamma, double gain)
{
    pstk__colour_table_same(table);
    for (uint32_t v = 0; v < 256; v++) {
        float scaled = power((float)v * (float)(1.0 / 255.0), (float)gamma);
        if (gain != 1.0)
            scaled *= (float)gain;
        scaled = scaled < 1.0f ? scaled : 1.0f;
        table->to[0][v] = (uint8_t)(scaled * 255.999f);
    }
    spread(table);
}

static void stretch(uint8_t to[256], uint32_t least, uint32_t most)
{
    const float by = (float)(most - least) * (float)(1.0 / 255.0);
    for (uint32_t v = least; v <= most && most > least; v++)
        to[v] = clipped((float)(v - least) / by);
}

void pstk__tensor_table_autocontrast(struct pstk__colour_table *table,
                                     const struct pstk__colour_range *range)
{
    pstk__colour_table_same(table);
    for (uint32_t c = 0; c < 3; c++)
        stretch(table->to[c], range->least[c], range->most[c]);
}
