/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/subset.h - the samples of a data set that a loader delivers: training and validation
 * from one data set, folds, lists, samples whose value in a side column fits.
 *
 * A subset is a chain of steps. The first takes all samples, by id; each further one takes the
 * result of the step before. The samples in a step's result have indices from 0. An order is then
 * one of the indices, while the ids of batches stay those of the data set.
 */
#ifndef PENSTOCK_SUBSET_H
#define PENSTOCK_SUBSET_H

#include <penstock/order.h>
#include <penstock/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pstk_dataset;
struct pstk_members;

enum pstk_subset_kind {
    /* the indices first to last - 1 */
    PSTK_SUBSET_RANGE = 1,
    /* positions floor(n * first / 10^9) to floor(n * last / 10^9) - 1 of a permutation that the
     * seed draws. Steps of one seed with adjacent bounds are disjoint for every n, and leave out no
     * sample between them */
    PSTK_SUBSET_FRACTION = 2,
    /* positions floor(n * fold / n_folds) to floor(n * (fold + 1) / n_folds) - 1 of the same
     * permutation; inverted: all others */
    PSTK_SUBSET_FOLD = 3,
    /* the listed samples that are in the step before, in the order of the list */
    PSTK_SUBSET_IDS = 4,
    /* the samples whose value in a column of whole numbers is listed; inverted: is not listed */
    PSTK_SUBSET_WHERE = 5,
    /* the samples whose value in a column is at least `least` and below `below` */
    PSTK_SUBSET_BETWEEN = 6,
    /* an opened subset (`members`); only as the first step */
    PSTK_SUBSET_MEMBERS = 7,
    /* all samples, where an epoch is n_draws draws with replacement by weight; only as the last
     * step */
    PSTK_SUBSET_WEIGHTED = 8,
    /* as WEIGHTED, with weights that give equal probabilities to all classes, and to all samples
     * within a class */
    PSTK_SUBSET_BALANCED = 9,
};

/* Largest number of steps of a chain. */
#define PSTK_SUBSET_MAX_STEPS 16
/* The unit of a FRACTION's bounds is 1 / 10^9: 0.8 is 800000000, which is exactly 8 of 10 samples.
 */
#define PSTK_SUBSET_WHOLE 1000000000

/* One step. Zero it and set size and kind, then the members that the kind reads. A step without
 * samples is refused. */
struct pstk_subset {
    /* sizeof(struct pstk_subset), set by the caller */
    uint32_t size;
    /* enum pstk_subset_kind */
    uint32_t kind;
    /* RANGE: first index, first < last <= the number of samples. FRACTION: bounds in units of 1 /
     * 10^9, first < last <= 10^9 */
    uint64_t first;
    uint64_t last;
    /* FRACTION, FOLD: seed of the permutation; nothing else depends on it. default: 0 */
    uint64_t seed;
    /* FOLD: index of the fold, below n_folds */
    uint32_t fold;
    /* FOLD: number of folds, at least 2 */
    uint32_t n_folds;
    /* FOLD, WHERE: 1: take all other samples. default: 0 */
    uint32_t inverted;
    /* must be 0 */
    uint32_t reserved;
    /* IDS: n_ids sample ids, each once; copies */
    const uint64_t *ids;
    uint64_t n_ids;
    /* WHERE, BETWEEN, WEIGHTED, BALANCED: name of a side column (format.h); BALANCED: of classes,
     * whole numbers; copies */
    const char *column;
    /* WEIGHTED: n_weights numbers in place of a column, one for each sample of the data set, by id;
     * copies */
    const double *weights;
    uint64_t n_weights;
    /* WEIGHTED, BALANCED: draws of an epoch. default: 0, the number of samples */
    uint64_t n_draws;
    /* WHERE: n_values values; copies. Values of a u64 column above 2^63 - 1 cannot be listed */
    const int64_t *values;
    uint64_t n_values;
    /* BETWEEN: bounds, not NaN, least < below, or below INFINITY. -INFINITY and INFINITY leave a
     * side open: infinite values of a column fit, NaN never does */
    double least;
    double below;
    /* MEMBERS: members of a data set with the same identity; the new members share their memory */
    struct pstk_members *members;
    /* the next step, or NULL; copies */
    const struct pstk_subset *next;
    /* BETWEEN: difference of a bound from its double, for whole numbers beyond 2^53. The bounds are
     * least + least_rest and below + below_rest, and are compared exactly. default: 0 */
    int64_t least_rest;
    int64_t below_rest;
};

/*
 * Find the samples of a subset of an open data set, NULL: all. Returns owned in *out. pstk_open
 * does this by itself; a program needs it to ask which samples the subset has, or to give several
 * loaders one subset.
 *
 * Time and memory: RANGE, FRACTION and FOLD take O(1) of both and up to 2 KiB. The other kinds keep
 * 4 bytes for each of their samples (8 if the data set has 2^32 samples or more). While they are
 * opened they take 1 bit for each sample of the data set, and WHERE and BETWEEN read the column
 * once, 1 to 8 bytes a sample. WEIGHTED and BALANCED keep 12 bytes for each sample that they draw
 * from, of at most 2^32. While they are opened they take 8 bytes for each sample of the data set
 * and 20 for each that they draw from. A draw takes O(1).
 *
 * Weights become whole numbers: the largest 2^b, others their share of it, rounded, and at least 1
 * unless they are 0; b is 62 - log2(samples), rounded down, and at most 53. So a run draws the same
 * samples on every machine. The draw at position k depends on seed, epoch and k alone. The random
 * choices of a sample, of augmentations too, depend on k as well: a sample that comes twice
 * differs.
 *
 * EINVAL: a member of a step is wrong, there is no such column, a step has no sample, or the chain
 * has more than 16 steps. ENOTSUP: an unknown kind. ENOENT: a file of the column is missing.
 * EBADMSG: it is damaged.
 */
PSTK_API int pstk_members_open(struct pstk_members **out, struct pstk_dataset *d,
                               const struct pstk_subset *subset, struct pstk_error *err);
/* Return the number of samples, at least 1. borrows. */
PSTK_API uint64_t pstk_members_n(const struct pstk_members *members);
/* Return the number of positions of an epoch: of its draws, or else of its samples. borrows. */
PSTK_API uint64_t pstk_members_n_draws(const struct pstk_members *members);
/* Write the ids of the batch at `position`, as pstk_order_batch does: a loader of these members
 * with the same values delivers them. borrows. EINVAL: s->n_samples is not pstk_members_n_draws,
 * draws have another order than FULL, or settings are wrong. */
PSTK_API int64_t pstk_members_batch(const struct pstk_members *members,
                                    const struct pstk_order_settings *s, uint64_t position,
                                    uint64_t *ids);
/* Write the ids of the indices first .. first + n - 1 to ids[n]. 0; EINVAL: there are fewer
 * indices. borrows. Thread: any. */
PSTK_API int pstk_members_ids(const struct pstk_members *members, uint64_t first, uint64_t n,
                              uint64_t *ids);
/* Write a hash of 128 bits, digest[2], that two subsets of a data set share only if they have the
 * same ids at the same indices by the same steps; for a WHERE the ids count, not the condition. It
 * is not cryptographic. borrows. */
PSTK_API int pstk_members_digest(const struct pstk_members *members, uint64_t *digest);
/* Free, null *members; NULL is fine. Loaders keep their own reference. Thread: any. */
PSTK_API void pstk_members_close(struct pstk_members **members);

#ifdef __cplusplus
}
#endif
#endif
