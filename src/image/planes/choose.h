/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planes/choose: chooses the tables of frequencies of an image: neighbouring contexts that share a
 * table, and which tables are the image's own and which those of a built-in set. Pure.
 */
#ifndef PSTK_PLANES_CHOOSE_H
#define PSTK_PLANES_CHOOSE_H

#include "image/planes/sets.h"

struct pstk__planes_choice {
    uint32_t set;                            /* number; 0: none */
    uint32_t n;                              /* tables */
    uint32_t n_own;                          /* of them; 0: models are empty */
    uint8_t table[PSTK__N_CONTEXTS];         /* number of each context's */
    uint8_t first[PSTK__PLANES_MAX_TABLES];  /* the first context of each table */
    uint8_t is_own[PSTK__PLANES_MAX_TABLES]; /* 0: it is that of the set for this context */
};

/* Choose for these counts of symbols by context. sets: all; NULL: the image has own tables alone.
 * joined: scratch. */
void pstk__planes_choose(struct pstk__planes_choice *choice,
                         const uint32_t count[PSTK__N_CONTEXTS][256],
                         const struct pstk__planes_set *sets,
                         uint32_t joined[PSTK__N_CONTEXTS][256]);

#endif
