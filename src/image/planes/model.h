/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planes/model: codes the frequencies of 256 symbols in few bytes. Pure.
 *
 * A frequency is coded as a level: 0 absent, 1..8 the frequency itself, then four levels an octave
 * up to 2^10. The first symbol of the highest level gets the rest of the sum 2^10. Measured over
 * photographs, the levels lose 0.003 bits a symbol, and the small number of slots 0.012.
 */
#ifndef PSTK_PLANES_MODEL_H
#define PSTK_PLANES_MODEL_H

#include "image/planes/rans.h"

#define PSTK__MODEL_MAX_LEVEL 36
#define PSTK__MODEL_MAX_SIZE                                                                       \
    386 /* most bytes written: 3 nibbles a symbol and the end, rounded up */

/* The order of symbols: as bytes, or as signed values 0, 1, -1, 2, -2, ... -128. */
enum pstk__model_order { PSTK__MODEL_PLAIN = 0, PSTK__MODEL_SIGNED = 1 };

/* The symbols that have a frequency, listed in that order. They take their slots in the same order.
 */
struct pstk__model {
    uint32_t order; /* enum pstk__model_order */
    uint32_t n;     /* symbols; 1..256 */
    uint8_t symbol[256];
    uint8_t level[256];      /* level of each of these symbols */
    uint16_t frequency[256]; /* frequency of each of these symbols; the sum is 2^10 */
};

/* Fit a model to counts of symbols, at least one of which is not 0. */
void pstk__model_fit(struct pstk__model *model, const uint32_t count[256],
                     enum pstk__model_order order);
/* Write a model; returns its size in bytes. */
uint32_t pstk__model_write(uint8_t out[PSTK__MODEL_MAX_SIZE], const struct pstk__model *model);
/* Read a model that takes exactly these bytes. Returns -1 when it is damaged. */
int pstk__model_read(struct pstk__model *model, const uint8_t *data, uint32_t size,
                     enum pstk__model_order order);
/* Fill in the symbols for coding; absent ones have frequency 0. */
void pstk__model_symbols(struct pstk__rans_symbol symbol[256], const struct pstk__model *model);
/* Return the bits, times 256, that a symbol of frequency f >= 1 takes. */
uint32_t pstk__model_bits(uint32_t f);
/* Estimate the bits, times 256, that symbols of these counts take with a model of their own, the
 * model included. The joining of contexts uses this. */
uint64_t pstk__model_cost(const uint32_t count[256]);

#endif
