/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixture: position of a stream -> data set, and which of its samples. Pure, O(log phases).
 *
 * The stream is cut into phases with constant shares: a segment is one phase, and each data set
 * that leaves begins another. A phase repeats a period of T slots, T <= 65536, of which data set d
 * has c_d, so that the sum of all c_d is T. With p = q T + t positions since the phase began, slot
 * t has the data set of[t], and the sample is number before_d + q c_d + rank[t] of it: what came
 * before the phase, in whole periods, and in this one.
 *
 * The bound. Let w = c_d / T, and x_d(p) the samples of data set d among the first p of a phase.
 * Then floor(p w) <= x_d(p) <= ceil(p w), so |x_d(p) - p w| < 1 for every p.
 *   Call the j-th sample of d in the period (j = 0, 1, ...) a job of one slot, which may not run in
 *   a slot before its release floor(j / w), and must run in one before its deadline
 *   ceil((j + 1) / w). The period is filled earliest deadline first. Within slots a to b - 1, jobs
 *   of d that have both release and deadline there have a w <= j <= b w - 1: at most (b - a) w of
 *   them, so over all d at most b - a. For jobs of one slot with whole releases and deadlines this
 *   is sufficient: earliest deadline first meets all deadlines (Jackson 1955, Horn 1974). The T
 *   jobs then fill all T slots. By p, those with (j + 1) / w <= p have run: floor(p w) of them at
 *   least; and only those with floor(j / w) <= p - 1, which is j < p w: ceil(p w) at most. Whole
 *   periods add q c_d to both sides.
 * The counts. Where shares s_d exist with s_d T whole (within 1e-8) for a T up to 65536, the least
 * such T is taken: w = s_d. Else T is 65536, and c_d is s_d T rounded down or up (largest
 * remainders), so |w - s_d| < 1 / 65536.
 * Tests compare with these bounds at every prefix.
 */
#ifndef PSTK_ORDER_MIXTURE_H
#define PSTK_ORDER_MIXTURE_H

#include "order/alias.h"
#include "order/subset.h"

#include <penstock/mixture.h>

#define PSTK__PERIOD_MAX 65536u
#define PSTK__PHASES_MAX (PSTK_MAX_SEGMENTS + PSTK_MAX_DATA_SETS)
/* Bytes of patterns that a phase may need. */
#define PSTK__PHASE_MEMORY (PSTK__PERIOD_MAX * (sizeof(uint16_t) + 1))

struct pstk__mixture_phase {
    uint64_t from;                       /* position of the stream at which the phase begins */
    uint32_t period;                     /* slots: T */
    uint32_t counts[PSTK_MAX_DATA_SETS]; /* slots of each data set: c_d */
    uint64_t before[PSTK_MAX_DATA_SETS]; /* samples of each data set before `from` */
    const uint8_t *of;    /* data set of each slot: `period` elements, in the mixture's memory */
    const uint16_t *rank; /* rank of each slot: `period` elements, in the mixture's memory */
};

/* A mixture; constant once made. */
struct pstk__mixture {
    uint32_t n_data_sets, n_phases;
    uint32_t exhaustion;                /* enum pstk_exhaustion */
    uint32_t n_begun;                   /* segments that begin within an epoch; all, with REPEAT */
    uint64_t n;                         /* positions of an epoch */
    uint64_t sizes[PSTK_MAX_DATA_SETS]; /* samples of each data set's epoch, >= 1 */
    uint64_t first[PSTK_MAX_DATA_SETS]; /* samples of all data sets before each */
    /* The subset of each data set, and the alias table that draws from it; borrowed. NULL: all
     * samples, each once. */
    const struct pstk__subset *subsets[PSTK_MAX_DATA_SETS];
    const struct pstk__alias *aliases[PSTK_MAX_DATA_SETS];
    uint64_t seeds[PSTK_MAX_DATA_SETS]; /* seeds of the data sets' orders */
    struct pstk__mixture_phase phases[PSTK__PHASES_MAX];
};

/* The sample at a position of the stream. */
struct pstk__mixture_sample {
    uint32_t data_set;
    uint64_t number; /* number among the data set's samples, in stream order; with REPEAT, over all
                        its epochs */
};

/* Return 1 if the weights may be those of a segment: numbers >= 0, at least one above 0, none too
 * small. Else *wrong is the index of the first wrong one, or n if all are 0. */
int pstk__mixture_weights_ok(const double *weights, uint32_t n, uint32_t *wrong);
/* Return the largest number of phases that a mixture may have. */
uint32_t pstk__mixture_max_phases(const struct pstk_mixture *mixture);
/* Make the phases, for whole data sets. sizes: samples in an epoch of each data set, whose sum is
 * below 2^62. seed: the loader's. settings: checked. memory: PSTK__PHASE_MEMORY bytes for each of
 * the largest number of phases, aligned for uint16_t; `out` points into it. O(phases * 65536 *
 * n_data_sets). */
void pstk__mixture_make(struct pstk__mixture *out, const struct pstk_mixture *settings,
                        const uint64_t *sizes, uint64_t seed, void *memory);
/* Narrow data set d: its samples begin at sample `first` of all, and its subset has sizes[d]
 * samples, from which `alias` draws. Borrows. subset NULL: all samples; alias NULL: each sample
 * once. */
void pstk__mixture_narrow(struct pstk__mixture *mixture, uint32_t d, uint64_t first,
                          const struct pstk__subset *subset, const struct pstk__alias *alias);
/* Find the sample at a position of the stream. */
void pstk__mixture_at(const struct pstk__mixture *mixture, uint64_t position,
                      struct pstk__mixture_sample *out);

#endif
