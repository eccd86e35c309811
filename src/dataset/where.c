/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/where.h"

#include "base/error.h"
#include "dataset/scalars.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FAIL(code, fmt, ...)                                                                       \
    pstk__fail(err, code, PSTK_STAGE_OPEN, "subset: column %s: " fmt, step->column, ##__VA_ARGS__)

/* A step, prepared for is_wanted. */
struct condition {
    const struct pstk_subset *step;
    const int64_t *values; /* WHERE: sorted; borrowed */
    __int128 least, below; /* BETWEEN: smallest whole numbers at or above the two bounds */
};

/* Return 1 if `rest` can be the difference between a bound and `nearest`, the double next to it:
 * their sum rounds to `nearest`. An open side has no rest. */
static int is_rest(double nearest, int64_t rest)
{
    return rest == 0 || (!isinf(nearest) && nearest + (double)rest == nearest);
}

static int check_bounds(const struct pstk_subset *step, struct pstk_error *err)
{
    if (!is_rest(step->least, step->least_rest))
        return FAIL(PSTK_EINVAL,
                    "least_rest is %lld; least, %.17g, must be the double next to least + "
                    "least_rest",
                    (long long)step->least_rest, step->least);
    if (!is_rest(step->below, step->below_rest))
        return FAIL(PSTK_EINVAL,
                    "below_rest is %lld; below, %.17g, must be the double next to below + "
                    "below_rest",
                    (long long)step->below_rest, step->below);
    if (step->least < step->below ||
        (step->least == step->below && step->least_rest < step->below_rest) ||
        (step->below == (double)INFINITY && !isnan(step->least)))
        return 0;
    return FAIL(PSTK_EINVAL,
                "least is %.17g, and below is %.17g; least must be less, and neither NaN",
                step->least, step->below);
}

/* Check that the condition is valid, and that the column's type permits it. */
static int check(const struct pstk_subset *step, const struct pstk__scalars *scalars,
                 struct pstk_error *err)
{
    if (step->kind == PSTK_SUBSET_BETWEEN)
        return check_bounds(step, err);
    if (!pstk__scalars_are_whole(scalars))
        return FAIL(PSTK_EINVAL,
                    "its dtype is %s; must be one of whole numbers to list values (give a range: "
                    "at least, below)",
                    pstk_dtype_name(scalars->dtype));
    if (step->n_values == 0 || !step->values)
        return FAIL(PSTK_EINVAL, "n_values is 0; must be 1 or more");
    return 0;
}

static int compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Return the smallest whole number at or above a bound; beyond 64 bits, any number that is. */
static __int128 whole_bound(double nearest, int64_t rest)
{
    if (nearest >= 0x1p65 || nearest <= -0x1p65)
        return (__int128)(nearest < 0 ? -0x1p65 : 0x1p65);
    return (__int128)ceil(nearest) + rest;
}

/* Return 1 if the value is at or above the bound. No double lies between the bound and the one next
 * to it. */
static int reaches(double value, double nearest, int64_t rest)
{
    return rest > 0 ? value > nearest : value >= nearest;
}

static int is_between(const struct condition *condition, const struct pstk__scalars *scalars,
                      const uint8_t *at)
{
    const struct pstk_subset *step = condition->step;
    if (!pstk__scalars_are_whole(scalars)) {
        const double value = pstk__scalars_real(scalars, at);
        const int is_open = step->below == (double)INFINITY;
        return reaches(value, step->least, step->least_rest) &&
               (is_open || !reaches(value, step->below, step->below_rest));
    }
    int fits = 0;
    const int64_t whole = pstk__scalars_whole(scalars, at, &fits);
    const __int128 value = fits ? (__int128)whole : (__int128)(uint64_t)whole;
    return value >= condition->least && value < condition->below;
}

static int is_wanted(const struct condition *condition, const struct pstk__scalars *scalars,
                     const uint8_t *at)
{
    const struct pstk_subset *step = condition->step;
    if (step->kind == PSTK_SUBSET_BETWEEN)
        return is_between(condition, scalars, at);
    int fits = 0;
    const int64_t value = pstk__scalars_whole(scalars, at, &fits);
    const int found =
        fits && bsearch(&value, condition->values, step->n_values, sizeof value, compare) != NULL;
    return found != (step->inverted != 0);
}

static int mark(struct pstk__scalars *scalars, const struct pstk_subset *step, uint64_t *bits,
                struct pstk_error *err)
{
    const uint64_t n_values = step->kind == PSTK_SUBSET_WHERE ? step->n_values : 0;
    int64_t *values = malloc((n_values + 1) * sizeof *values);
    const struct condition condition = {.step = step,
                                        .values = values,
                                        .least = whole_bound(step->least, step->least_rest),
                                        .below = whole_bound(step->below, step->below_rest)};
    int r =
        values ? 0 : FAIL(PSTK_ENOMEM, "no memory for %llu values", (unsigned long long)n_values);
    if (r == 0 && n_values) {
        memcpy(values, step->values, n_values * sizeof *values);
        qsort(values, n_values, sizeof *values, compare);
    }
    for (uint64_t i = 0; r == 0 && i < scalars->n; i++) {
        const uint8_t *at;
        r = pstk__scalars_next(scalars, &at, err);
        if (r == 0 && is_wanted(&condition, scalars, at))
            bits[i / 64] |= (uint64_t)1 << i % 64;
    }
    free(values);
    return r;
}

int pstk__where_mark(struct pstk_dataset *dataset, const struct pstk_subset *step, uint64_t n,
                     uint64_t *bits, struct pstk_error *err)
{
    struct pstk__scalars scalars;
    int r = pstk__scalars_open(&scalars, dataset, "subset", step->column, n, err);
    if (r < 0)
        return r;
    r = check(step, &scalars, err);
    if (r == 0)
        r = mark(&scalars, step, bits, err);
    pstk__scalars_close(&scalars);
    return r;
}
