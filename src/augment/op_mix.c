/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_mix: several chains of operations on one picture, and the mix of their results, as AugMix
 * draws them. A MIX has its chains as children: each begins with a MIX_CHAIN, and fixed operations
 * follow.
 */
#include "augment/canvas.h"
#include "augment/chains.h"
#include "augment/op_tensor.h"

#include "base/error.h"
#include "pixels/weighted_sum.h"

#include <string.h>

#define MAX_CHILDREN 1024u
#define ALIGN(size) (((size) + 63) & ~(uint64_t)63) /* size that the arena takes */
#define FAIL(...) pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, __VA_ARGS__)

struct pstk_op pstk_mix_chains(uint32_t mode, double weight, const struct pstk_op *children,
                               uint32_t n_children)
{
    struct pstk_op op = {.kind = PSTK_DRAWN_MIX, .children = children, .n_children = n_children};
    op.params.mix = (struct pstk_mix_params){mode, weight};
    return op;
}

struct pstk_op pstk_mix_chain(double weight)
{
    struct pstk_op op = {.kind = PSTK_DRAWN_MIX_CHAIN};
    op.params.mix_chain = (struct pstk_mix_chain_params){weight};
    return op;
}

/* ---- sampling -------------------------------------------------------------------------------- */

uint32_t pstk__chains_begin(struct pstk__sampled_ops *to, uint32_t mode, double weight)
{
    const struct pstk_op mix = pstk_mix_chains(mode, weight, NULL, 0);
    pstk__sampled_ops_add(to, &mix);
    to->in_chains = 1;
    return to->n - 1;
}

void pstk__chains_add(struct pstk__sampled_ops *to, double weight)
{
    const struct pstk_op chain = pstk_mix_chain(weight);
    pstk__sampled_ops_add(to, &chain);
}

void pstk__chains_end(struct pstk__sampled_ops *to, uint32_t at)
{
    to->ops[at].children = &to->ops[at + 1];
    to->ops[at].n_children = to->n - at - 1;
    to->in_chains = 0;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static int check_weight(const char *what, double weight, struct pstk_error *err)
{
    if (!(weight >= 0 && weight <= 1))
        return FAIL("%s: value is %g; must be from 0 to 1", what, weight);
    return 0;
}

/* Return whether the op keeps the size of images of two different sizes. */
static int keeps_size(const struct pstk_op *op)
{
    for (uint32_t side = 101; side <= 202; side += 101) {
        const struct pstk__view before = {.width = side, .height = 303 - side, .channels = 3};
        const struct pstk__view after = pstk__op_view(op, &before);
        if (after.width != before.width || after.height != before.height)
            return 0;
    }
    return 1;
}

static int check_child(const struct pstk_op *op, struct pstk_error *err)
{
    const struct pstk__op_entry *entry = pstk__op_entry(op->kind);
    if (op->kind == PSTK_DRAWN_MIX_CHAIN) {
        const int rc = check_weight("weight", op->params.mix_chain.weight, err);
        return rc < 0 ? rc : pstk__op_check_unused(op, 1, err);
    }
    if (!entry || (!entry->change && !entry->table) || op->kind == PSTK_DRAWN_MIX)
        return FAIL("kind: value is %u (%s); must be a fixed operation on pixels, not a mix",
                    op->kind, entry ? entry->name : "unknown");
    if (op->filter == PSTK_FILTER_RANDOM)
        return FAIL("filter: value is RANDOM; must be one that pstk_ops_draw drew");
    int rc = entry->check(op, err);
    if (rc == 0)
        rc = pstk__op_check_members(op, entry->uses, err);
    if (rc == 0 && !keeps_size(op))
        rc = FAIL("it changes the size");
    return rc;
}

static int check(const struct pstk_op *op, struct pstk_error *err)
{
    struct pstk_error inner;
    pstk_error_init(&inner, sizeof inner);
    if (!(op->params.mix.mode >= 0 && op->params.mix.mode <= PSTK_CHAIN_BLENDS &&
          op->params.mix.mode == (uint32_t)op->params.mix.mode))
        return FAIL("mode: value is %g; must be from 0 to %d, an enum pstk_chain_mode",
                    op->params.mix.mode, PSTK_CHAIN_BLENDS);
    if (op->n_children < 1 || op->n_children > MAX_CHILDREN || !op->children ||
        op->children[0].kind != PSTK_DRAWN_MIX_CHAIN)
        return FAIL("n_children: value is %u; must be from 1 to %u, and children an array of them "
                    "that begins with a MIX_CHAIN",
                    op->n_children, MAX_CHILDREN);
    for (uint32_t i = 0; i < op->n_children; i++)
        if (check_child(&op->children[i], &inner) < 0)
            return FAIL("children[%u]: %.400s", i, inner.message);
    int rc = check_weight("weight", op->params.mix.weight, err);
    if (rc == 0)
        rc = pstk__op_check_no_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, 2, err);
}

static int check_chain(const struct pstk_op *op, struct pstk_error *err)
{
    (void)op;
    return FAIL("it begins a chain of a mix; it must be a child of one");
}

static int channels_of(const struct pstk_op *op, uint32_t channels, struct pstk_error *err)
{
    for (uint32_t i = 0; i < op->n_children; i++) {
        const struct pstk__op_entry *entry = pstk__op_entry(op->children[i].kind);
        const int after =
            entry->channels ? entry->channels(&op->children[i], channels, err) : (int)channels;
        if (after < 0)
            return after;
        if ((uint32_t)after != channels)
            return FAIL("children[%u] (%s): it changes the channels", i, entry->name);
    }
    return (int)channels;
}

static int fits(const struct pstk_op *op, const struct pstk__view *view)
{
    int rc = 0;
    for (uint32_t i = 0; i < op->n_children && rc == 0; i++) {
        const struct pstk__op_entry *entry = pstk__op_entry(op->children[i].kind);
        rc = entry->fits ? entry->fits(&op->children[i], view) : 0;
    }
    return rc;
}

/* ---- pictures -------------------------------------------------------------------------------- */

/* The mix so far, of `size` bytes: a sum or, for BLENDS, a picture. */
struct mixing {
    uint32_t mode;
    float weight; /* weight of the original */
    uint64_t size;
    const uint8_t *original;
    float *sum;
    uint8_t *blended;
};

static void mixing_begin(const struct mixing *mixing)
{
    if (mixing->mode == PSTK_CHAIN_BLENDS)
        memcpy(mixing->blended, mixing->original, mixing->size);
    else if (mixing->mode == PSTK_CHAIN_SUM)
        pstk__mix_set(mixing->sum, mixing->original, mixing->weight, mixing->size);
    else
        memset(mixing->sum, 0, mixing->size * sizeof *mixing->sum);
}

static void mixing_add(const struct mixing *mixing, const uint8_t *pixels, float weight)
{
    if (mixing->mode == PSTK_CHAIN_BLENDS)
        pstk__mix_blend(mixing->blended, mixing->blended, pixels, weight, mixing->size);
    else
        pstk__mix_add(mixing->sum, pixels, weight, mixing->size);
}

static void mixing_end(const struct mixing *mixing, uint8_t *out)
{
    if (mixing->mode == PSTK_CHAIN_BLENDS) {
        memcpy(out, mixing->blended, mixing->size);
        return;
    }
    pstk__mix_write(out, mixing->sum, mixing->size);
    if (mixing->mode == PSTK_CHAIN_BLENDED_SUM)
        pstk__mix_blend(out, mixing->original, out, mixing->weight, mixing->size);
}

static uint32_t chain_length(const struct pstk_op *op, uint32_t begin)
{
    uint32_t end = begin;
    while (end < op->n_children && op->children[end].kind != PSTK_DRAWN_MIX_CHAIN)
        end++;
    return end - begin;
}

/* Mix the chains. The operations of each chain find the original in the canvas. */
static int change(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    const uint64_t size = pstk__picture_size(&canvas->picture);
    uint8_t *original = pstk__arena_get(canvas->arena, size);
    void *memory = pstk__arena_get(canvas->arena, size * sizeof(float));
    if (!original || !memory)
        return PSTK_ENOMEM;
    const struct mixing mixing = {.mode = (uint32_t)op->params.mix.mode,
                                  .weight = (float)op->params.mix.weight,
                                  .size = size,
                                  .original = original,
                                  .sum = memory,
                                  .blended = memory};
    memcpy(original, canvas->picture.pixels, size);
    mixing_begin(&mixing);
    for (uint32_t i = 0; i < op->n_children;) {
        const struct pstk_op *chain = &op->children[i++];
        const uint32_t n = chain_length(op, i);
        memcpy(canvas->picture.pixels, original, size);
        const int rc = pstk__canvas_run(canvas, &op->children[i], n);
        if (rc < 0)
            return rc;
        mixing_add(&mixing, canvas->picture.pixels, (float)chain->params.mix_chain.weight);
        i += n;
    }
    mixing_end(&mixing, canvas->picture.pixels);
    return 0;
}

uint64_t pstk__chains_scratch(const struct pstk__largest *in, uint32_t channels)
{
    const uint64_t size = in->n_pixels * channels;
    return ALIGN(size) + ALIGN(size * sizeof(float));
}

static uint64_t scratch(const struct pstk_op *op, const struct pstk__largest *in, uint32_t channels)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < op->n_children; i++) {
        const struct pstk__op_entry *entry = pstk__op_entry(op->children[i].kind);
        const uint64_t n = entry->scratch ? entry->scratch(&op->children[i], in, channels) : 0;
        most = n > most ? n : most;
    }
    return pstk__chains_scratch(in, channels) + most;
}

const struct pstk__op_entry pstk__op_mix = {
    .kind = PSTK_DRAWN_MIX,
    .effects = PSTK__PICTURES | PSTK__KNOWS_IMAGE,
    .tensor = &pstk__op_tensor_none,
    .uses = PSTK__USES_CHILDREN,
    .name = "mix",
    .check = check,
    .channels = channels_of,
    .fits = fits,
    .change = change,
    .scratch = scratch,
};

const struct pstk__op_entry pstk__op_mix_chain = {
    .kind = PSTK_DRAWN_MIX_CHAIN,
    .effects = PSTK__PICTURES,
    .name = "chain of a mix",
    .check = check_chain,
};
