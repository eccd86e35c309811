/* SPDX-License-Identifier: Apache-2.0 */
/* draw: draws the mixes of a batch's rows from the counter-based generator. */
#include "base/error.h"
#include "mix/beta.h"
#include "mix/mix.h"

#include <string.h>

#define MIX_DRAWS UINT32_MAX /* the `data_set` of a batch's draws; no sample uses it */
#define SIDE_MAX 65535u

static uint32_t partner_of(uint32_t pairing, uint32_t row, uint32_t n)
{
    if (pairing == PSTK_MIX_FLIP)
        return n - 1 - row;
    return (row > 0 ? row : n) - 1;
}

/* Draw the range of a side that a box covers: `ratio` of the side around a random pixel, clipped.
 * torchvision takes equal numbers of pixels before and after it; timm takes one more after it if
 * the length is odd. */
static void draw_side(struct pstk__random *random, double ratio, uint32_t pairing, uint32_t side,
                      uint32_t *begin, uint32_t *length)
{
    const uint32_t at = (uint32_t)pstk__random_below(random, side);
    const uint32_t whole = (uint32_t)(ratio * side), before = whole / 2;
    const uint32_t after = pairing == PSTK_MIX_FLIP ? whole - before : before;
    const uint32_t end = after < side - at ? at + after : side;
    *begin = at > before ? at - before : 0;
    *length = end - *begin;
}

/* Draw a box, and set lambda to the fraction of the area outside it. */
static void draw_box(struct pstk__random *random, const struct pstk_mix *mix,
                     const struct pstk_mix_key *key, struct pstk_mixed_row *row)
{
    const double ratio = __builtin_sqrt(1.0 - row->lam);
    draw_side(random, ratio, mix->pairing, key->width, &row->left, &row->width);
    draw_side(random, ratio, mix->pairing, key->height, &row->top, &row->height);
    const double box = (double)row->width * row->height;
    row->lam = 1.0 - box / ((double)key->width * key->height);
}

static uint32_t draw_kind(struct pstk__random *random, const struct pstk_mix *mix)
{
    if (!pstk__mix_has_images(mix) || !(pstk__random_unit(random) < mix->probability))
        return PSTK_MIX_NONE;
    if (mix->mixup_alpha > 0 && mix->cutmix_alpha > 0)
        return pstk__random_unit(random) < mix->switch_probability ? PSTK_MIX_CUTMIX
                                                                   : PSTK_MIX_MIXUP;
    return mix->mixup_alpha > 0 ? PSTK_MIX_MIXUP : PSTK_MIX_CUTMIX;
}

/* Round to float32, the type of lambda in torchvision and timm. */
static double as_single(double x)
{
    return (double)(float)x;
}

/* Draw the mix of a row, without its partner. number: the row's; 0 for a whole batch. */
static struct pstk_mixed_row draw_row(const struct pstk_mix *mix, const struct pstk_mix_key *key,
                                      uint32_t number)
{
    const struct pstk__random_key of = {.seed = key->seed,
                                        .epoch = key->epoch,
                                        .sample_id = key->position,
                                        .data_set = MIX_DRAWS,
                                        .group = key->rank,
                                        .op = number};
    struct pstk__random random;
    pstk__random_init(&random, &of);
    struct pstk_mixed_row row = {.kind = draw_kind(&random, mix), .lam = 1};
    if (row.kind == PSTK_MIX_NONE)
        return row;
    const int is_mixup = row.kind == PSTK_MIX_MIXUP;
    row.lam = as_single(pstk__beta(&random, is_mixup ? mix->mixup_alpha : mix->cutmix_alpha));
    if (is_mixup)
        return row;
    draw_box(&random, mix, key, &row);
    if (mix->mode != PSTK_MIX_BATCH) /* timm keeps the lambdas of a batch in a tensor */
        row.lam = as_single(row.lam);
    return row;
}

/* Return the row whose draw is used for row i of n. */
static uint32_t drawn_with(uint32_t mode, uint32_t i, uint32_t n)
{
    if (mode == PSTK_MIX_BATCH)
        return 0;
    return mode == PSTK_MIX_PAIR && i > n - 1 - i ? n - 1 - i : i;
}

void pstk__mix_draw(const struct pstk_mix *mix, const struct pstk_mix_key *key,
                    struct pstk_mixed_row *rows)
{
    for (uint32_t i = 0; i < key->n_rows; i++) {
        const uint32_t drawn = drawn_with(mix->mode, i, key->n_rows);
        rows[i] = drawn < i ? rows[drawn] : draw_row(mix, key, i);
        rows[i].partner = partner_of(mix->pairing, i, key->n_rows);
    }
}

static int check_key(const struct pstk_mix *mix, const struct pstk_mix_key *key,
                     struct pstk_error *err)
{
    const int has_size =
        key->height - 1 < SIDE_MAX && key->width - 1 < SIDE_MAX; /* 0 wraps around */
    if (key->size != sizeof *key)
        return pstk__fail_setting(err, "key.size", key->size, "sizeof(struct pstk_mix_key)");
    if (key->reserved != 0)
        return pstk__fail_setting(err, "key.reserved", key->reserved, "0");
    if (mix->cutmix_alpha > 0 && !has_size)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "key: height and width are %u and %u; must be from 1 to %u for CutMix",
                          key->height, key->width, SIDE_MAX);
    return 0;
}

int pstk_mix_draw(const struct pstk_mix *mix, const struct pstk_mix_key *key,
                  struct pstk_mixed_row *rows, struct pstk_error *err)
{
    struct pstk_mix own;
    if (!mix || !key || (!rows && key->n_rows > 0))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "mix, key or rows is NULL");
    int r = pstk__mix_copy(&own, mix, err);
    if (r == 0)
        r = pstk__mix_check(&own, err);
    if (r == 0)
        r = check_key(&own, key, err);
    if (r == 0)
        pstk__mix_draw(&own, key, rows);
    return r;
}
