/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/weigh.h"

#include "base/error.h"
#include "dataset/scalars.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#define FAIL(code, fmt, ...) pstk__fail(err, code, PSTK_STAGE_OPEN, "weights: " fmt, ##__VA_ARGS__)
#define COUNT(n) ((unsigned long long)(n))

/* ---- values of samples ------------------------------------------------------------------------
 */

/* Read the weights of all samples, in their order. */
static int read_weights(struct pstk_dataset *dataset, const struct pstk_subset *step, uint64_t n,
                        double *weights, struct pstk_error *err)
{
    struct pstk__scalars scalars;
    if (step->weights && step->column)
        return FAIL(PSTK_EINVAL, "both a list and column %s are given; must be one of them",
                    step->column);
    if (step->weights && step->n_weights != n)
        return FAIL(PSTK_EINVAL,
                    "value has %llu numbers; must have %llu, one for each sample of the data set",
                    COUNT(step->n_weights), COUNT(n));
    if (step->weights) {
        memcpy(weights, step->weights, n * sizeof *weights);
        return 0;
    }
    int r = pstk__scalars_open(&scalars, dataset, "weights", step->column, n, err);
    if (r < 0)
        return r;
    for (uint64_t i = 0; r == 0 && i < n; i++) {
        const uint8_t *at;
        r = pstk__scalars_next(&scalars, &at, err);
        if (r == 0)
            weights[i] = pstk__scalars_real(&scalars, at);
    }
    pstk__scalars_close(&scalars);
    return r;
}

static int compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Count a class among n sorted ones; it occurs. */
static uint64_t count_of(const int64_t *sorted, uint64_t n, int64_t class)
{
    uint64_t bounds[2];
    for (int k = 0; k < 2; k++) { /* k 0: first element not below class; 1: first above it */
        uint64_t low = 0, high = n;
        while (low < high) {
            const uint64_t middle = low + (high - low) / 2;
            if (sorted[middle] < class || (k == 1 && sorted[middle] == class))
                low = middle + 1;
            else
                high = middle;
        }
        bounds[k] = low;
    }
    return bounds[1] - bounds[0];
}

/* Read the classes of all samples, in their order. */
static int read_classes(struct pstk_dataset *dataset, const struct pstk_subset *step, uint64_t n,
                        int64_t *classes, struct pstk_error *err)
{
    struct pstk__scalars scalars;
    int r = pstk__scalars_open(&scalars, dataset, "weights", step->column, n, err);
    if (r < 0)
        return r;
    if (!pstk__scalars_are_whole(&scalars))
        r = FAIL(PSTK_EINVAL, "column %s: its dtype is %s; must be one of whole numbers, classes",
                 step->column, pstk_dtype_name(scalars.dtype));
    for (uint64_t i = 0; r == 0 && i < n; i++) {
        const uint8_t *at;
        int fits;
        r = pstk__scalars_next(&scalars, &at, err);
        if (r == 0)
            classes[i] = pstk__scalars_whole(&scalars, at, &fits);
    }
    pstk__scalars_close(&scalars);
    return r;
}

/* Write 1 / the size of its class in the subset, for each index. */
static int balance(struct pstk_dataset *dataset, const struct pstk_subset *step,
                   const struct pstk__subset *subset, double *weights, struct pstk_error *err)
{
    int64_t *classes = malloc(subset->n_samples * sizeof *classes);
    int64_t *sorted = malloc(subset->n * sizeof *sorted);
    int r = classes && sorted
                ? read_classes(dataset, step, subset->n_samples, classes, err)
                : FAIL(PSTK_ENOMEM, "no memory for %llu classes", COUNT(subset->n_samples));
    if (r == 0) {
        for (uint64_t i = 0; i < subset->n; i++)
            sorted[i] = classes[pstk__subset_at(subset, i)];
        qsort(sorted, subset->n, sizeof *sorted, compare);
        for (uint64_t i = 0; i < subset->n; i++)
            weights[i] =
                1.0 / (double)count_of(sorted, subset->n, classes[pstk__subset_at(subset, i)]);
    }
    free(sorted);
    free(classes);
    return r;
}

/* Write the weight of each index of the subset. */
static int weigh(struct pstk_dataset *dataset, const struct pstk_subset *step,
                 const struct pstk__subset *subset, double *weights, struct pstk_error *err)
{
    double *all = malloc(subset->n_samples * sizeof *all);
    int r = all ? read_weights(dataset, step, subset->n_samples, all, err)
                : FAIL(PSTK_ENOMEM, "no memory for %llu weights", COUNT(subset->n_samples));
    for (uint64_t i = 0; r == 0 && i < subset->n; i++) {
        const uint64_t id = pstk__subset_at(subset, i);
        weights[i] = all[id];
        if (!(all[id] >= 0) || all[id] > DBL_MAX) /* NaN or infinity */
            r = FAIL(PSTK_EINVAL, "value of sample %llu is %g; must be finite, and 0 or more",
                     COUNT(id), all[id]);
    }
    free(all);
    return r;
}

/* ---- to whole numbers -------------------------------------------------------------------------
 */

/* Scale a weight so that the largest becomes 2^bits. Division rounds to the nearest (IEEE 754), and
 * multiplying by a power of two is exact: results are the same on every machine. */
static uint64_t whole_of(double weight, double largest, uint32_t bits)
{
    if (weight == 0)
        return 0;
    const double scaled = weight / largest * (double)((uint64_t)1 << bits);
    return scaled < 1 ? 1 : (uint64_t)scaled;
}

int pstk__weigh(struct pstk_dataset *dataset, const struct pstk_subset *step,
                const struct pstk__subset *subset, uint32_t bits, uint64_t *weights,
                struct pstk_error *err)
{
    double *real = malloc(subset->n * sizeof *real), largest = 0;
    int r = !real ? FAIL(PSTK_ENOMEM, "no memory for %llu weights", COUNT(subset->n))
            : step->kind == PSTK_SUBSET_BALANCED ? balance(dataset, step, subset, real, err)
                                                 : weigh(dataset, step, subset, real, err);
    for (uint64_t i = 0; r == 0 && i < subset->n; i++)
        largest = real[i] > largest ? real[i] : largest;
    if (r == 0 && largest == 0)
        r = FAIL(PSTK_EINVAL, "value is 0 for all %llu samples; one must be above 0",
                 COUNT(subset->n));
    for (uint64_t i = 0; r == 0 && i < subset->n; i++)
        weights[i] = whole_of(real[i], largest, bits);
    free(real);
    return r;
}
