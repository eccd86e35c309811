/* SPDX-License-Identifier: Apache-2.0 */
/* mosaic: checks the settings, and draws from the counter-based generator. */
#include "mix/mosaic.h"

#include "base/error.h"
#include "base/random.h"

#include <stddef.h>
#include <string.h>

#define MOSAIC_SIZE_MAX 4096u
#define MOSAIC_SIZE_MIN                                                                            \
    sizeof(struct pstk_mosaic) /* size in the first version that has the struct */
#define MOSAIC_DRAWS                                                                               \
    (UINT32_MAX - 2) /* the `data_set` of the draws; neither samples nor mixes use it */
#define SIDE_MAX 65535u
#define N_OTHERS 3u

#define FAIL(code, fmt, ...) pstk__fail(err, code, PSTK_STAGE_OPEN, "mosaic" fmt, ##__VA_ARGS__)

/* ---- settings -------------------------------------------------------------------------------- */

void pstk_mosaic_init(struct pstk_mosaic *mosaic, uint32_t size)
{
    if (!mosaic || size < MOSAIC_SIZE_MIN)
        return;
    memset(mosaic, 0, size);
    mosaic->size = size;
    mosaic->probability = 1;
    mosaic->center_min = 0.25;
    mosaic->center_max = 0.75;
}

int pstk__mosaic_copy(struct pstk_mosaic *to, const struct pstk_mosaic *from,
                      struct pstk_error *err)
{
    if (from->size < MOSAIC_SIZE_MIN || from->size > MOSAIC_SIZE_MAX)
        return FAIL(PSTK_EINVAL, ": not initialised, call pstk_mosaic_init first");
    for (uint32_t i = sizeof *to; i < from->size; i++)
        if (((const uint8_t *)from)[i] != 0)
            return FAIL(PSTK_ENOTSUP,
                        ": a member of a newer penstock is set, which version %s does not know",
                        pstk_version());
    *to = *from;
    to->size = sizeof *to;
    return 0;
}

/* Check that a value is a fraction; NaN is refused. */
static int check_fraction(const char *name, double value, struct pstk_error *err)
{
    if (value >= 0 && value <= 1)
        return 0;
    return FAIL(PSTK_EINVAL, ".%s: value is %g; must be from 0 to 1", name, value);
}

int pstk__mosaic_check(const struct pstk_mosaic *mosaic, struct pstk_error *err)
{
    int r = check_fraction("probability", mosaic->probability, err);
    if (r == 0)
        r = check_fraction("center_min", mosaic->center_min, err);
    if (r == 0)
        r = check_fraction("center_max", mosaic->center_max, err);
    if (r == 0 && mosaic->center_min > mosaic->center_max)
        r = FAIL(PSTK_EINVAL, ".center_min: value is %g; must be at most center_max, which is %g",
                 mosaic->center_min, mosaic->center_max);
    if (r == 0 && mosaic->reserved != 0)
        r = pstk__fail_setting(err, "mosaic.reserved", mosaic->reserved, "0");
    return r;
}

/* ---- draws ----------------------------------------------------------------------------------- */

/* Draw one of at least 4 rows that is not in `taken`, and add it there. `taken`, which is sorted,
 * has the row itself and earlier draws. */
static uint32_t draw_other(struct pstk__random *random, uint32_t n, uint32_t taken[],
                           uint32_t n_taken)
{
    uint32_t found = (uint32_t)pstk__random_below(random, n - n_taken), k = 0;
    while (k < n_taken && taken[k] <= found) {
        found++;
        k++;
    }
    memmove(&taken[k + 1], &taken[k], (n_taken - k) * sizeof *taken);
    taken[k] = found;
    return found;
}

static void draw_others(struct pstk__random *random, uint32_t n, uint32_t row,
                        uint32_t others[N_OTHERS])
{
    uint32_t taken[N_OTHERS + 1] = {row};
    for (uint32_t k = 0; k < N_OTHERS; k++)
        others[k] = n > N_OTHERS ? draw_other(random, n, taken, k + 1)
                                 : (uint32_t)pstk__random_below(random, n);
}

static uint32_t draw_center(struct pstk__random *random, const struct pstk_mosaic *mosaic,
                            uint32_t side)
{
    const uint32_t least = (uint32_t)(mosaic->center_min * side + 0.5);
    const uint32_t most = (uint32_t)(mosaic->center_max * side + 0.5);
    return least + (uint32_t)pstk__random_below(random, most - least + 1);
}

/* Return part k of a mosaic: the corner of the row `of` that touches the center. */
static struct pstk_mosaic_part part_of(uint32_t of, uint32_t k, const struct pstk_mosaic_row *row,
                                       const struct pstk_mix_key *key)
{
    const int is_right = (k & 1) != 0, is_bottom = (k & 2) != 0;
    return (struct pstk_mosaic_part){.row = of,
                                     .top = is_bottom ? row->center_y : 0,
                                     .left = is_right ? row->center_x : 0,
                                     .height =
                                         is_bottom ? key->height - row->center_y : row->center_y,
                                     .width = is_right ? key->width - row->center_x : row->center_x,
                                     .from_top = is_bottom ? 0 : key->height - row->center_y,
                                     .from_left = is_right ? 0 : key->width - row->center_x};
}

static struct pstk_mosaic_row draw_row(const struct pstk_mosaic *mosaic,
                                       const struct pstk_mix_key *key, uint32_t number)
{
    const struct pstk__random_key of = {.seed = key->seed,
                                        .epoch = key->epoch,
                                        .sample_id = key->position,
                                        .data_set = MOSAIC_DRAWS,
                                        .group = key->rank,
                                        .op = number};
    struct pstk__random random;
    struct pstk_mosaic_row row = {
        .n_parts = 1, .parts = {{.row = number, .height = key->height, .width = key->width}}};
    uint32_t others[N_OTHERS];
    pstk__random_init(&random, &of);
    if (!(pstk__random_unit(&random) < mosaic->probability))
        return row;
    row.n_parts = N_OTHERS + 1;
    row.center_x = draw_center(&random, mosaic, key->width);
    row.center_y = draw_center(&random, mosaic, key->height);
    draw_others(&random, key->n_rows, number, others);
    row.parts[0] = part_of(number, 0, &row, key);
    for (uint32_t k = 0; k < N_OTHERS; k++)
        row.parts[k + 1] = part_of(others[k], k + 1, &row, key);
    return row;
}

void pstk__mosaic_draw(const struct pstk_mosaic *mosaic, const struct pstk_mix_key *key,
                       struct pstk_mosaic_row *rows)
{
    for (uint32_t i = 0; i < key->n_rows; i++)
        rows[i] = draw_row(mosaic, key, i);
}

static int check_key(const struct pstk_mix_key *key, struct pstk_error *err)
{
    if (key->size != sizeof *key)
        return pstk__fail_setting(err, "key.size", key->size, "sizeof(struct pstk_mix_key)");
    if (key->reserved != 0)
        return pstk__fail_setting(err, "key.reserved", key->reserved, "0");
    if (!(key->height - 1 < SIDE_MAX && key->width - 1 < SIDE_MAX)) /* 0 wraps around */
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "key: height and width are %u and %u; must be from 1 to %u", key->height,
                          key->width, SIDE_MAX);
    return 0;
}

int pstk_mosaic_draw(const struct pstk_mosaic *mosaic, const struct pstk_mix_key *key,
                     struct pstk_mosaic_row *rows, struct pstk_error *err)
{
    struct pstk_mosaic own;
    if (!mosaic || !key || (!rows && key->n_rows > 0))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "mosaic, key or rows is NULL");
    int r = pstk__mosaic_copy(&own, mosaic, err);
    if (r == 0)
        r = pstk__mosaic_check(&own, err);
    if (r == 0)
        r = check_key(key, err);
    if (r == 0)
        pstk__mosaic_draw(&own, key, rows);
    return r;
}
