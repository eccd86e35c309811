/* SPDX-License-Identifier: Apache-2.0 */
/* op: the list of operations, and the functions that work on lists of them. */
#include "augment/op.h"

#include "base/error.h"

/* ---- the list -------------------------------------------------------------------------------- */

#define OPS(X)                                                                                     \
    X(random_resized_crop)                                                                         \
    X(resize)                                                                                      \
    X(resize_shorter)                                                                              \
    X(center_crop)                                                                                 \
    X(random_flip)                                                                                 \
    X(grayscale)                                                                                   \
    X(normalize)

#define X(name) extern const struct pstk__op_entry pstk__op_##name;
OPS(X)
#undef X

static const struct pstk__op_entry *const entries[] = {
#define X(name) &pstk__op_##name,
    OPS(X)
#undef X
};

const struct pstk__op_entry *pstk__op_entry(uint32_t kind)
{
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
        if (entries[i]->kind == kind)
            return entries[i];
    return NULL;
}

/* ---- what a list does to a sample ------------------------------------------------------------ */

void pstk__ops_apply(const struct pstk_op *ops, uint32_t n, uint32_t image_width,
                     uint32_t image_height, struct pstk__random_key key, struct pstk__geometry *g)
{
    pstk__geometry_init(g, image_width, image_height);
    for (uint32_t i = 0; i < n; i++) {
        const struct pstk__op_entry *entry = pstk__op_entry(ops[i].kind);
        if (!entry || !entry->apply)
            continue;
        struct pstk__random r;
        key.op = i;
        pstk__random_init(&r, &key);
        entry->apply(&ops[i], &r, g);
    }
}

void pstk__ops_bound(const struct pstk_op *ops, uint32_t n, struct pstk__resize_bounds *bounds)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct pstk__op_entry *entry = pstk__op_entry(ops[i].kind);
        if (entry && entry->bound)
            entry->bound(&ops[i], bounds);
    }
}

void pstk__ops_finish(const struct pstk_op *ops, uint32_t n, struct pstk__normalisation *to)
{
    *to = (struct pstk__normalisation){0};
    for (uint32_t i = 0; i < n; i++) {
        const struct pstk__op_entry *entry = pstk__op_entry(ops[i].kind);
        if (entry && entry->finish)
            entry->finish(&ops[i], to);
    }
}

/* ---- rules of effects ------------------------------------------------------------------------ */

/* An op of a list. */
struct step {
    const struct pstk_op *op;
    const struct pstk__op_entry *entry;
    uint32_t is_last;
};

/* A resizing op must see the whole image: the library does not offer one after a flip or a crop. */
static int check_resizing(const struct step *step, const struct pstk__view *view,
                          struct pstk_error *err)
{
    (void)step;
    if (view->effects & PSTK__RESIZES)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "a resizing operation comes before it; leave out one of the two");
    if (view->effects & PSTK__FLIPS)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "a flip comes before it; put the flip after the resizing operation");
    if (view->effects & PSTK__CROPS)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "a centre crop comes before it; resize first, then crop");
    return 0;
}

/* A crop may pad the image, but not uncover pixels that an earlier crop removed. */
static int check_crop(const struct step *step, const struct pstk__view *view,
                      struct pstk_error *err)
{
    struct pstk__view after = *view;
    step->entry->size(step->op, &after);
    if (view->effects & PSTK__CROPS && (after.width > view->width || after.height > view->height))
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "%u x %u is larger than the centre crop before it, %u x %u; leave one of "
                          "them out",
                          after.height, after.width, view->height, view->width);
    return 0;
}

static int check_finish(const struct step *step, const struct pstk__view *view,
                        struct pstk_error *err)
{
    if (!step->is_last)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "it must be the last operation");
    if (view->dtype == PSTK_U8)
        return pstk__fail(
            err, PSTK_EINVAL, PSTK_STAGE_OPEN,
            "its results are fractions, which dtype u8 cannot hold; use f16, bf16 or f32");
    return 0;
}

/* What each effect requires of the view before it. */
static const struct {
    uint32_t effect;
    int (*check)(const struct step *s, const struct pstk__view *v, struct pstk_error *err);
} rules[] = {
    {PSTK__RESIZES, check_resizing},
    {PSTK__CROPS, check_crop},
    {PSTK__FINISHES, check_finish},
};

static int step(const struct step *s, struct pstk__view *view, struct pstk_error *err)
{
    int rc = 0;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0] && rc == 0; i++)
        if (s->entry->effects & rules[i].effect)
            rc = rules[i].check(s, view, err);
    if (s->entry->size)
        s->entry->size(s->op, view);
    view->effects |= s->entry->effects;
    if (rc < 0 || !s->entry->channels)
        return rc;
    rc = s->entry->channels(s->op, view->channels, err);
    view->channels = rc < 0 ? view->channels : (uint32_t)rc;
    return rc < 0 ? rc : 0;
}

/* Put "ops[j] (name): " before a message. */
static int named(int code, uint32_t j, const char *name, const struct pstk_error *inner,
                 struct pstk_error *err)
{
    return pstk__fail(err, code, PSTK_STAGE_OPEN, "ops[%u] (%s): %.500s", j, name, inner->message);
}

int pstk__ops_check(const struct pstk_op *ops, uint32_t n, struct pstk__view *view,
                    struct pstk_error *err)
{
    struct pstk_error inner;
    pstk_error_init(&inner, sizeof inner);
    for (uint32_t j = 0; j < n; j++) {
        const struct step s = {&ops[j], pstk__op_entry(ops[j].kind), j + 1 == n};
        if (!s.entry)
            return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                              "ops[%u].kind: value is %u; must be a kind that this version knows",
                              j, ops[j].kind);
        int rc = s.entry->check(&ops[j], &inner);
        if (rc == 0)
            rc = pstk__op_check_members(&ops[j], s.entry->uses, &inner);
        if (rc == 0)
            rc = step(&s, view, &inner);
        if (rc < 0)
            return named(rc, j, s.entry->name, &inner, err);
    }
    if (view->width == 0 || view->height == 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "ops do not fix the size of the rows; add a random resized crop, a "
                          "resize to height x width or a centre crop");
    return 0;
}
