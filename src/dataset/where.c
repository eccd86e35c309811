/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/where.h"

#include "base/cast.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#define AT_ONCE 65536u /* values of a read */

#define FAIL(code, fmt, ...) pstk__fail(err, code, PSTK_STAGE_OPEN, fmt, ##__VA_ARGS__)

static int is_whole(uint32_t dtype)
{
    return dtype >= PSTK_U8 && dtype <= PSTK_I64;
}

static int find_column(const struct pstk_dataset *dataset, const char *name,
                       struct pstk_column_info *info)
{
    for (uint32_t i = 0; pstk_dataset_get_column_info(dataset, i, info) == 0; i++)
        if (strcmp(info->name, name) == 0)
            return 1;
    return 0;
}

/* Is the condition one, and can a column of this dtype have it? */
static int check(const struct pstk_subset *step, uint32_t dtype, struct pstk_error *err)
{
    if (step->kind == PSTK_SUBSET_BETWEEN) {
        if (step->least < step->below)
            return 0;
        return FAIL(
            PSTK_EINVAL,
            "subset: column %s: least is %.17g, and below is %.17g; least must be less, and "
            "neither NaN",
            step->column, step->least, step->below);
    }
    if (!is_whole(dtype))
        return FAIL(PSTK_EINVAL,
                    "subset: column %s has values of dtype %s; must be whole numbers to be listed "
                    "(give a range: at least, below)",
                    step->column, pstk_dtype_name(dtype));
    if (step->n_values == 0 || !step->values)
        return FAIL(PSTK_EINVAL, "subset: column %s: n_values is 0; must be 1 or more",
                    step->column);
    return 0;
}

static int compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The value of a column of whole numbers; *is_one is 0 where int64_t does not have it. */
static int64_t whole_of(const uint8_t *at, uint32_t dtype, int *is_one)
{
    int64_t value = 0;
    uint64_t large = 0;
    *is_one = 1;
    if (dtype != PSTK_U64) {
        pstk__cast(&value, PSTK_I64, at, dtype);
        return value;
    }
    memcpy(&large, at, sizeof large);
    *is_one = large <= INT64_MAX;
    return (int64_t)(large & INT64_MAX);
}

static double real_of(const uint8_t *at, uint32_t dtype)
{
    int64_t whole = 0;
    uint64_t large = 0;
    double value = 0;
    if (dtype == PSTK_U64) {
        memcpy(&large, at, sizeof large);
        return (double)large;
    }
    if (dtype == PSTK_I64) {
        memcpy(&whole, at, sizeof whole);
        return (double)whole;
    }
    pstk__cast(&value, PSTK_F64, at, dtype);
    return value;
}

/* values: sorted. */
static int fits(const struct pstk_subset *step, const int64_t *values, const uint8_t *at,
                uint32_t dtype)
{
    if (step->kind == PSTK_SUBSET_BETWEEN) {
        const double value = real_of(at, dtype);
        return value >= step->least && value < step->below;
    }
    int is_one = 1;
    const int64_t value = whole_of(at, dtype, &is_one);
    const int found =
        is_one && bsearch(&value, values, step->n_values, sizeof value, compare) != NULL;
    return found != (step->inverted != 0);
}

static int mark(struct pstk_dataset *dataset, const struct pstk_subset *step, uint64_t n,
                uint32_t dtype, const int64_t *values, uint8_t *room, uint64_t *bits,
                struct pstk_error *err)
{
    const uint32_t size = pstk_dtype_size(dtype);
    for (uint64_t first = 0; first < n; first += AT_ONCE) {
        const uint64_t count = n - first < AT_ONCE ? n - first : AT_ONCE;
        const int r =
            pstk_dataset_read_column(dataset, step->column, first, count, room, count * size, err);
        if (r < 0)
            return r;
        for (uint64_t i = 0; i < count; i++)
            if (fits(step, values, room + i * size, dtype))
                bits[(first + i) / 64] |= (uint64_t)1 << (first + i) % 64;
    }
    return 0;
}

int pstk__where_mark(struct pstk_dataset *dataset, const struct pstk_subset *step, uint64_t n,
                     uint64_t *bits, struct pstk_error *err)
{
    struct pstk_column_info info = {.size = sizeof info};
    uint8_t nothing = 0;
    if (!step->column || !step->column[0])
        return FAIL(PSTK_EINVAL, "subset: column: value is %s; must be the name of a side column",
                    step->column ? "empty" : "NULL");
    if (!find_column(dataset, step->column, &info)) {
        struct pstk_error missing; /* lists the columns that there are */
        pstk_error_init(&missing, sizeof missing);
        pstk_dataset_read_column(dataset, step->column, 0, 0, &nothing, 1, &missing);
        return FAIL(PSTK_EINVAL, "subset: %.700s", missing.message);
    }
    int r = check(step, info.dtype, err);
    if (r < 0)
        return r;
    const uint64_t n_values = step->kind == PSTK_SUBSET_WHERE ? step->n_values : 0;
    int64_t *values = malloc((n_values + 1) * sizeof *values);
    uint8_t *room = malloc(AT_ONCE * sizeof(uint64_t));
    if (values && room) {
        if (n_values)
            memcpy(values, step->values, n_values * sizeof *values);
        qsort(values, n_values, sizeof *values, compare);
        r = mark(dataset, step, n, info.dtype, values, room, bits, err);
    } else {
        r = FAIL(PSTK_ENOMEM, "no memory for %llu values of column %s",
                 (unsigned long long)n_values, step->column);
    }
    free(room);
    free(values);
    return r;
}
