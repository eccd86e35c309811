/* SPDX-License-Identifier: Apache-2.0 */
/* subset: the steps of a subset of a data set, each from one option --subset, and the weights that
 * --weights and --balanced draw samples by. */
#ifndef PSTK_CLI_SUBSET_H
#define PSTK_CLI_SUBSET_H

#include <penstock/subset.h>

/* Zero it; subset_close frees what it holds. It must not move once subset_first was called. */
struct subset {
    uint32_t n;
    struct pstk_subset steps[PSTK_SUBSET_MAX_STEPS];
    char *texts[PSTK_SUBSET_MAX_STEPS];  /* owned; names of columns */
    void *values[PSTK_SUBSET_MAX_STEPS]; /* owned; ids or values */
    struct pstk_subset weights;          /* kind 0: none */
};

/* Read one step and append it. Returns 0, or -1 after a message. */
int subset_add(struct subset *subset, const char *text);
/* Draw samples by weight, `kind`, from a column. Borrows. Returns 0, or -1 after a message. */
int subset_draw(struct subset *subset, uint32_t kind, const char *column);
/* Return the option that draws samples; NULL: none. */
const char *subset_draws(const struct subset *subset);
/* Return 1 when neighbours in the subset are neighbours in the data set, too. */
int subset_is_range(const struct subset *subset);
/* Return the chain of steps; NULL: there is none. */
const struct pstk_subset *subset_first(struct subset *subset);
void subset_close(struct subset *subset);

#endif
