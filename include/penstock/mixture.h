/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/mixture.h - a loader over several data sets, in given shares.
 *
 * A stored period of slots assigns a data set to each position of the stream, so that the shares
 * hold at every prefix, not only in the mean: the first p samples of a segment contain floor(p *
 * share) of a data set, or 1 more. Shares are exact if they are multiples of 1 / T for some whole T
 * up to 65536, as all weights with few digits are; others are rounded to multiples of 1 / 65536.
 * The samples of each data set come in an order of its own.
 *
 * Positions, sample ids and epochs: a position counts samples of the mixture. A sample id is that
 * of a sample in its data set, whose number is in pstk_batch.data_sets. Random draws depend on the
 * number of the data set, the data set's epoch and the sample id. Data set 0 has the order and the
 * draws that it has without a mixture, with the same subset.
 */
#ifndef PENSTOCK_MIXTURE_H
#define PENSTOCK_MIXTURE_H

#include <penstock/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Largest numbers of data sets and of segments. */
#define PSTK_MAX_DATA_SETS 64
#define PSTK_MAX_SEGMENTS 64

/* Version of the rule: it changes whenever the same settings would give another stream. ORDER.md
 * defines the stream. */
#define PSTK_MIXTURE_VERSION 1

/* The rule for a data set that has no more samples. */
enum pstk_exhaustion {
    /* the epoch ends before the first missing sample; the next one begins anew */
    PSTK_EXHAUSTION_STOP = 0,
    /* the data set begins its next epoch, by itself. The mixture's epoch has samples_per_epoch
     * samples, and the next one goes on where it ended */
    PSTK_EXHAUSTION_REPEAT = 1,
    /* the data set leaves, and the others share by their weights. The epoch ends when none is left:
     * it has each sample once; the next one begins anew */
    PSTK_EXHAUSTION_DROP = 2,
};

struct pstk_subset;

/* Weights, and the position from which they hold. */
struct pstk_mixture_segment {
    /* first sample of the segment. REPEAT: of the whole run, position + epoch * samples_per_epoch;
     * else of each epoch. 0 in the first segment, then rising */
    uint64_t begin;
    /* n_data_sets numbers >= 0, in any unit. At least one is above 0, and each is 0 or at least
     * 1/65536 of their sum. copies */
    const double *weights;
};

/* The data sets of a loader: pstk_settings.mixture. Fill it with pstk_mixture_init. All pointers:
 * copies. The data sets differ from each other. A field that outputs read is equal in all of them:
 * in kind, dtype, shape and the members that name other fields. Other fields may differ. Class
 * names are not compared: pstk_dataset_name has those of each data set. */
struct pstk_mixture {
    /* sizeof(struct pstk_mixture) */
    uint32_t size;
    /* 1 to PSTK_MAX_DATA_SETS */
    uint32_t n_data_sets;
    /* paths of the data sets, n_data_sets */
    const char *const *paths;
    /* n_segments segments */
    const struct pstk_mixture_segment *segments;
    /* 1 to PSTK_MAX_SEGMENTS */
    uint32_t n_segments;
    /* enum pstk_exhaustion. default: PSTK_EXHAUSTION_STOP */
    uint32_t exhaustion;
    /* REPEAT: samples of an epoch of the mixture, at most 2^40; 0: the sum over all data sets. Else
     * 0 */
    uint64_t samples_per_epoch;
    /* n_data_sets subsets (subset.h), each of one data set; NULL: all its samples. A bad sample is
     * replaced by one of the same subset. The order is then that of the subset; with weights as the
     * last step, an epoch of the data set is n_draws draws. default: NULL, all samples of all data
     * sets */
    const struct pstk_subset *const *subsets;
};

/* Statistics of one data set of a loader's mixture. */
struct pstk_mixture_stats {
    /* sizeof(struct pstk_mixture_stats), set by the caller */
    uint32_t size;
    /* must be 0 */
    uint32_t reserved;
    /* samples of an epoch of the data set: all, those of its subset, or its draws */
    uint64_t n_samples;
    /* samples of the data set that this loader delivered */
    uint64_t n_delivered;
};

struct pstk_loader;

/* Fill `mixture` with defaults. `size` is sizeof *mixture: a library that has more members defaults
 * them. */
PSTK_API void pstk_mixture_init(struct pstk_mixture *mixture, uint32_t size);
/* Get the statistics of data set number `data_set`. EINVAL: the loader has no such data set, or no
 * mixture. Thread: any. borrows. */
PSTK_API int pstk_mixture_get_stats(const struct pstk_loader *loader, uint32_t data_set,
                                    struct pstk_mixture_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
