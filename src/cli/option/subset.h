/* SPDX-License-Identifier: Apache-2.0 */
/* subset: the steps of a subset of a data set, as --subset names them, one an option; and what
 * draws from it, of --weights and --balanced. */
#ifndef PSTK_CLI_SUBSET_H
#define PSTK_CLI_SUBSET_H

#include <penstock/subset.h>

/* Zero it; subset_close frees what it holds. It must not move once subset_first was called. */
struct subset {
    uint32_t n;
    struct pstk_subset steps[PSTK_SUBSET_MAX_STEPS];
    char *texts[PSTK_SUBSET_MAX_STEPS];  /* owned, of names of columns */
    void *values[PSTK_SUBSET_MAX_STEPS]; /* owned, ids or values */
    struct pstk_subset weights;          /* kind 0: none */
};

/* Read one step and append it. Returns 0, or -1 after a message. */
int subset_add(struct subset *subset, const char *text);
/* Have samples drawn by weight, `kind`, from a column. Borrows. Returns 0, or -1 after a message.
 */
int subset_draw(struct subset *subset, uint32_t kind, const char *column);
/* Return the option that has samples drawn; NULL: none. */
const char *subset_draws(const struct subset *subset);
/* 1: samples that follow each other in the subset do so in the data set, too. */
int subset_is_range(const struct subset *subset);
/* Return the chain of steps; NULL: there is none. */
const struct pstk_subset *subset_first(struct subset *subset);
void subset_close(struct subset *subset);

#endif
