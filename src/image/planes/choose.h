/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planes/choose: chooses an image's tables of frequencies: which neighbouring contexts share a
 * table, and which tables are the image's own or those of a built-in set. Pure.
 */
#ifndef PSTK_PLANES_CHOOSE_H
#define PSTK_PLANES_CHOOSE_H

#include "image/planes/sets.h"

struct pstk__planes_choice {
    uint32_t set;                            /* number of the set; 0: none */
    uint32_t n;                              /* tables */
    uint32_t n_own;                          /* own tables, of these; 0: models are empty */
    uint8_t table[PSTK__N_CONTEXTS];         /* number of each context's table */
    uint8_t first[PSTK__PLANES_MAX_TABLES];  /* the first context of each table */
    uint8_t is_own[PSTK__PLANES_MAX_TABLES]; /* 0: the table is the set's for this context */
};

/* Choose the tables for these counts of symbols by context. sets: all sets; NULL: the image has
 * only tables of its own. joined: scratch. */
void pstk__planes_choose(struct pstk__planes_choice *choice,
                         const uint32_t count[PSTK__N_CONTEXTS][256],
                         const struct pstk__planes_set *sets,
                         uint32_t joined[PSTK__N_CONTEXTS][256]);

#endif
