/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planes/sets: tables of frequencies built into the format, for images that are too small for
 * tables of their own. A set's bytes have the form of an image's models (FORMAT.md). Pure.
 */
#ifndef PSTK_PLANES_SETS_H
#define PSTK_PLANES_SETS_H

#include "image/planes/layout.h"

/* Return the models of a set, 1..PSTK__PLANES_N_SETS. */
struct pstk__planes_models pstk__planes_set(uint32_t number);

/* A set, for packing. */
struct pstk__planes_set {
    uint8_t table[PSTK__N_CONTEXTS]; /* number of each context's table */
    /* Bits, times 256, that a symbol costs, by table. A value without a slot is coded as a wide
     * value; any other symbol without a slot costs PSTK__SET_ABSENT. */
    uint32_t cost[PSTK__PLANES_MAX_TABLES][256];
    struct pstk__rans_symbol symbols[PSTK__PLANES_MAX_TABLES][256]; /* frequency 0: no slot */
};
#define PSTK__SET_ABSENT (1u << 30)

/* Fill in all sets, by number - 1. */
void pstk__planes_sets_init(struct pstk__planes_set sets[PSTK__PLANES_N_SETS]);

#endif
