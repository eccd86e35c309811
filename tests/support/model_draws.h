/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_draws: random numbers, counts of symbols of several shapes, and what a model must be and
 * cost, for the tests of the coder of planes.
 */
#ifndef PSTK_TEST_MODEL_DRAWS_H
#define PSTK_TEST_MODEL_DRAWS_H

#include "image/planes/layout.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static uint64_t state = 88172645463325252ull;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 33) % below;
}

enum shape { ONE, TWO, SPARSE, DENSE, SKEWED, FLAT, STEPS, N_SHAPES };

/* Counts of symbols, of a shape. At least one is not 0. */
static void draw_counts(uint32_t count[256], enum shape shape)
{
    memset(count, 0, 256 * sizeof *count);
    const uint32_t some = draw(256), other = (some + 1 + draw(255)) & 255;
    count[some] = 1 + draw(1u << draw(24));
    for (uint32_t s = 0; s < 256; s++) {
        if (shape == TWO && s == other)
            count[s] = 1 + draw(1u << draw(24));
        else if (shape == SPARSE && draw(12) == 0)
            count[s] = draw(1u << draw(16));
        else if (shape == DENSE)
            count[s] = 1 + draw(1u << draw(12));
        else if (shape == SKEWED)
            count[s] = s == some ? 1u << 30 : draw(3);
        else if (shape == FLAT)
            count[s] = 1000;
        else if (shape == STEPS)
            count[s] = draw(2) ? 1000 * (s & 1 ? 1 : 8) : 0;
    }
    if (shape == STEPS)
        count[some] = 1000;
}

static enum pstk__model_order draw_order(void)
{
    return draw(2) ? PSTK__MODEL_PLAIN : PSTK__MODEL_SIGNED;
}

/* Symbols are distinct, listed in their order, and their frequencies make up the whole. */
static int is_sound(const struct pstk__model *m)
{
    uint32_t sum = 0, i = 0;
    if (m->n < 1 || m->n > 256)
        return 0;
    for (uint32_t place = 0; place < 256; place++) {
        const uint32_t half = (place + 1) / 2;
        const uint32_t s = m->order == PSTK__MODEL_PLAIN ? place
                           : place % 2                   ? half
                                                         : (256 - half) & 255;
        if (i == m->n || m->symbol[i] != s)
            continue;
        if (m->level[i] < 1 || m->level[i] > PSTK__MODEL_MAX_LEVEL || m->frequency[i] < 1)
            return 0;
        sum += m->frequency[i++];
    }
    return i == m->n && sum == PSTK__RANS_ONE;
}

/* Bits that the symbols of these counts take, by a model, and at best. */
static double coded_bits(const uint32_t count[256], const struct pstk__model *m)
{
    double bits = 0;
    for (uint32_t i = 0; i < m->n; i++)
        bits += count[m->symbol[i]] * (PSTK__RANS_BITS - log2(m->frequency[i]));
    return bits;
}

static double entropy(const uint32_t count[256])
{
    double bits = 0, total = 0;
    for (uint32_t s = 0; s < 256; s++)
        total += count[s];
    for (uint32_t s = 0; s < 256; s++)
        bits += count[s] ? count[s] * log2(total / count[s]) : 0;
    return bits;
}

#endif
