/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/where.h"

#include "base/error.h"
#include "dataset/scalars.h"

#include <stdlib.h>
#include <string.h>

#define FAIL(code, fmt, ...)                                                                       \
    pstk__fail(err, code, PSTK_STAGE_OPEN, "subset: column %s: " fmt, step->column, ##__VA_ARGS__)

/* Is the condition one, and can the column have it? */
static int check(const struct pstk_subset *step, const struct pstk__scalars *scalars,
                 struct pstk_error *err)
{
    if (step->kind == PSTK_SUBSET_BETWEEN) {
        if (step->least < step->below)
            return 0;
        return FAIL(PSTK_EINVAL,
                    "least is %.17g, and below is %.17g; least must be less, and neither NaN",
                    step->least, step->below);
    }
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

/* values: sorted. */
static int is_wanted(const struct pstk_subset *step, const int64_t *values,
                     const struct pstk__scalars *scalars, const uint8_t *at)
{
    if (step->kind == PSTK_SUBSET_BETWEEN) {
        const double value = pstk__scalars_real(scalars, at);
        return value >= step->least && value < step->below;
    }
    int fits = 0;
    const int64_t value = pstk__scalars_whole(scalars, at, &fits);
    const int found =
        fits && bsearch(&value, values, step->n_values, sizeof value, compare) != NULL;
    return found != (step->inverted != 0);
}

static int mark(struct pstk__scalars *scalars, const struct pstk_subset *step, uint64_t *bits,
                struct pstk_error *err)
{
    const uint64_t n_values = step->kind == PSTK_SUBSET_WHERE ? step->n_values : 0;
    int64_t *values = malloc((n_values + 1) * sizeof *values);
    int r =
        values ? 0 : FAIL(PSTK_ENOMEM, "no memory for %llu values", (unsigned long long)n_values);
    if (r == 0 && n_values) {
        memcpy(values, step->values, n_values * sizeof *values);
        qsort(values, n_values, sizeof *values, compare);
    }
    for (uint64_t i = 0; r == 0 && i < scalars->n; i++) {
        const uint8_t *at;
        r = pstk__scalars_next(scalars, &at, err);
        if (r == 0 && is_wanted(step, values, scalars, at))
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
