/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/members.h"

#include "base/error.h"
#include "dataset/dataset.h"
#include "dataset/weigh.h"
#include "dataset/where.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_MAX ((uint64_t)UINT32_MAX + 1) /* samples whose ids fit in 32 bits */

#define FAIL(code, fmt, ...) pstk__fail(err, code, PSTK_STAGE_OPEN, "subset" fmt, ##__VA_ARGS__)
#define COUNT(n) ((unsigned long long)(n))

/* A list of ids, shared by members. */
struct list {
    _Atomic uint32_t n_references;
    uint64_t n;
    uint32_t *small; /* owned; either this or the next is set */
    uint64_t *large;
};

/* Weights for drawing, shared by members. */
struct weights {
    _Atomic uint32_t n_references;
    struct pstk__alias alias;
    uint64_t *shares; /* owned */
    uint32_t *others; /* owned */
};

struct pstk_members {
    struct pstk__subset subset;
    struct list *list;       /* a reference, or NULL */
    struct weights *weights; /* a reference, or NULL */
    uint64_t n_draws;        /* draws in an epoch; 0 without weights */
    char identity[40];       /* identity of the data set */
};

/* ---- lists ------------------------------------------------------------------------------------
 */

static void list_drop(struct list *list)
{
    /* The release orders this thread's reads of the list before the free. The acquire, in the
     * thread that frees, orders the reads of all other threads before it. */
    if (!list || atomic_fetch_sub_explicit(&list->n_references, 1, memory_order_acq_rel) > 1)
        return;
    free(list->small);
    free(list->large);
    free(list);
}

/* Open a list with room for n ids, each below n_samples. */
static struct list *list_open(uint64_t n_samples, uint64_t n, struct pstk_error *err)
{
    struct list *list = calloc(1, sizeof *list);
    const int is_small = n_samples <= SMALL_MAX;
    if (list && is_small)
        list->small = malloc((n + 1) * sizeof *list->small);
    else if (list)
        list->large = malloc((n + 1) * sizeof *list->large);
    if (!list || !(list->small || list->large)) {
        free(list);
        FAIL(PSTK_ENOMEM, ": no memory for a list of %llu ids of %d bytes", COUNT(n),
             is_small ? 4 : 8);
        return NULL;
    }
    atomic_init(&list->n_references, 1);
    return list;
}

static void list_add(struct list *list, uint64_t id)
{
    if (list->small)
        list->small[list->n++] = (uint32_t)id;
    else
        list->large[list->n++] = id;
}

/* Replace the members' list; takes the reference. */
static void take_list(struct pstk_members *members, struct list *list)
{
    list_drop(members->list);
    members->list = list;
    pstk__subset_list(&members->subset, list->small, list->large, list->n);
}

static int has_bit(const uint64_t *bits, uint64_t i)
{
    return (int)(bits[i / 64] >> i % 64 & 1);
}

static void set_bit(uint64_t *bits, uint64_t i)
{
    bits[i / 64] |= (uint64_t)1 << i % 64;
}

static int none_left(uint32_t number, const char *what, uint64_t n, struct pstk_error *err)
{
    return FAIL(PSTK_EINVAL, ": step %u, %s, leaves none of %llu samples; must leave 1 or more",
                number, what, COUNT(n));
}

/* ---- weights ----------------------------------------------------------------------------------
 */

static void weights_drop(struct weights *weights)
{
    /* The order is as in list_drop. */
    if (!weights || atomic_fetch_sub_explicit(&weights->n_references, 1, memory_order_acq_rel) > 1)
        return;
    free(weights->shares);
    free(weights->others);
    free(weights);
}

static int weights_fill(struct weights *weights, struct pstk_members *members,
                        struct pstk_dataset *dataset, const struct pstk_subset *step,
                        struct pstk_error *err)
{
    const uint64_t n = members->subset.n;
    uint32_t *work = malloc(n * sizeof *work);
    weights->shares = malloc(n * sizeof *weights->shares);
    weights->others = malloc(n * sizeof *weights->others);
    int r = work && weights->shares && weights->others
                ? pstk__weigh(dataset, step, &members->subset, pstk__alias_bits(n), weights->shares,
                              err)
                : FAIL(PSTK_ENOMEM, ": no memory for %llu weights", COUNT(n));
    if (r == 0) {
        pstk__subset_weigh(&members->subset, weights->shares, members->n_draws);
        pstk__alias_init(&weights->alias, n, weights->shares, weights->others, work);
    }
    free(work);
    return r;
}

static int add_weights(struct pstk_members *members, struct pstk_dataset *dataset,
                       const struct pstk_subset *step, struct pstk_error *err)
{
    const uint64_t n = members->subset.n;
    if (step->next)
        return FAIL(PSTK_EINVAL, ": weights have a step after them; must be the last");
    if (n > PSTK__ALIAS_MAX)
        return FAIL(PSTK_EINVAL, ": weights are of %llu samples; must be of at most %llu", COUNT(n),
                    COUNT(PSTK__ALIAS_MAX));
    if (step->n_draws > (uint64_t)1 << 62)
        return FAIL(PSTK_EINVAL, ": n_draws: value is %llu; must be at most 2^62",
                    COUNT(step->n_draws));
    struct weights *weights = calloc(1, sizeof *weights);
    if (!weights)
        return FAIL(PSTK_ENOMEM, ": no memory");
    atomic_init(&weights->n_references, 1);
    members->weights = weights;
    members->n_draws = step->n_draws ? step->n_draws : n;
    return weights_fill(weights, members, dataset, step, err);
}

/* ---- steps ------------------------------------------------------------------------------------
 */

static int add_range(struct pstk_members *members, const struct pstk_subset *step, uint32_t number,
                     struct pstk_error *err)
{
    const uint64_t n = members->subset.n;
    if (step->first >= step->last || step->last > n)
        return FAIL(
            PSTK_EINVAL,
            ": step %u, range: value is %llu to %llu; must be first below last, and last at "
            "most %llu, the samples that there are",
            number, COUNT(step->first), COUNT(step->last), COUNT(n));
    pstk__subset_range(&members->subset, step->first, step->last);
    return 0;
}

static int add_fraction(struct pstk_members *members, const struct pstk_subset *step,
                        uint32_t number, struct pstk_error *err)
{
    const uint64_t n = members->subset.n, whole = PSTK_SUBSET_WHOLE;
    if (step->first >= step->last || step->last > whole)
        return FAIL(
            PSTK_EINVAL,
            ": step %u, fraction: value is %.9f to %.9f; must be first below last, and last "
            "at most 1",
            number, (double)step->first / (double)whole, (double)step->last / (double)whole);
    const uint64_t first = pstk__subset_border(n, step->first, whole);
    const uint64_t last = pstk__subset_border(n, step->last, whole);
    if (first == last)
        return none_left(number, "fraction", n, err);
    pstk__subset_drawn(&members->subset, step->seed, first, last, 0);
    return 0;
}

static int add_fold(struct pstk_members *members, const struct pstk_subset *step, uint32_t number,
                    struct pstk_error *err)
{
    const uint64_t n = members->subset.n;
    if (step->n_folds < 2 || step->fold >= step->n_folds)
        return FAIL(PSTK_EINVAL,
                    ": step %u, fold: value is %u of %u; must be below the number of folds, which "
                    "must be 2 or more",
                    number, step->fold, step->n_folds);
    const uint64_t first = pstk__subset_border(n, step->fold, step->n_folds);
    const uint64_t last = pstk__subset_border(n, step->fold + (uint64_t)1, step->n_folds);
    if (first == last || (step->inverted && last - first == n))
        return none_left(number, "fold", n, err);
    pstk__subset_drawn(&members->subset, step->seed, first, last, step->inverted != 0);
    return 0;
}

/* Return the smaller position of the id at position i, which is repeated. */
static uint64_t find_id(const struct pstk_subset *step, uint64_t i)
{
    uint64_t at = 0;
    while (step->ids[at] != step->ids[i])
        at++;
    return at;
}

/* seen: a bit for each sample, all 0. */
static int check_ids(const struct pstk__subset *subset, const struct pstk_subset *step,
                     uint32_t number, uint64_t *seen, struct pstk_error *err)
{
    for (uint64_t i = 0; i < step->n_ids; i++) {
        const uint64_t id = step->ids[i];
        if (id >= subset->n_samples)
            return FAIL(PSTK_EINVAL,
                        ": step %u, ids[%llu]: value is %llu; must be below %llu, the number of "
                        "samples",
                        number, COUNT(i), COUNT(id), COUNT(subset->n_samples));
        if (has_bit(seen, id))
            return FAIL(PSTK_EINVAL,
                        ": step %u, ids[%llu]: value is %llu, and so is that of ids[%llu]; must be "
                        "listed once (to repeat samples, give weights)",
                        number, COUNT(i), COUNT(id), COUNT(find_id(step, i)));
        set_bit(seen, id);
    }
    return 0;
}

/* bits: a bit for each sample, all 0. */
static int add_ids(struct pstk_members *members, const struct pstk_subset *step, uint32_t number,
                   uint64_t *bits, struct pstk_error *err)
{
    const struct pstk__subset *subset = &members->subset;
    const uint64_t n = subset->n;
    if (step->n_ids == 0 || !step->ids)
        return FAIL(PSTK_EINVAL, ": step %u, ids: value has no ids; must have 1 or more", number);
    int r = check_ids(subset, step, number, bits, err);
    struct list *list = r == 0 ? list_open(subset->n_samples, step->n_ids, err) : NULL;
    if (!list)
        return r < 0 ? r : PSTK_ENOMEM;
    memset(bits, 0, (subset->n_samples / 64 + 1) * sizeof *bits);
    for (uint64_t i = 0; i < n; i++)
        set_bit(bits, pstk__subset_at(subset, i));
    for (uint64_t i = 0; i < step->n_ids; i++)
        if (has_bit(bits, step->ids[i]))
            list_add(list, step->ids[i]);
    if (list->n == 0) {
        list_drop(list);
        return none_left(number, "ids", n, err);
    }
    take_list(members, list);
    return 0;
}

static int add_where(struct pstk_members *members, struct pstk_dataset *dataset,
                     const struct pstk_subset *step, uint32_t number, uint64_t *bits,
                     struct pstk_error *err)
{
    const struct pstk__subset *subset = &members->subset;
    const uint64_t n = subset->n;
    uint64_t n_left = 0;
    int r = pstk__where_mark(dataset, step, subset->n_samples, bits, err);
    if (r < 0)
        return r;
    for (uint64_t i = 0; i < n; i++)
        n_left += (uint64_t)has_bit(bits, pstk__subset_at(subset, i));
    if (n_left == 0)
        return none_left(number, step->column, n, err);
    struct list *list = list_open(subset->n_samples, n_left, err);
    if (!list)
        return PSTK_ENOMEM;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t id = pstk__subset_at(subset, i);
        if (has_bit(bits, id))
            list_add(list, id);
    }
    take_list(members, list);
    return 0;
}

/* Add a step that needs a bit for each sample. */
static int add_listed(struct pstk_members *members, struct pstk_dataset *dataset,
                      const struct pstk_subset *step, uint32_t number, struct pstk_error *err)
{
    uint64_t *bits = calloc(members->subset.n_samples / 64 + 1, sizeof *bits);
    if (!bits)
        return FAIL(PSTK_ENOMEM, ": no memory for a bit of each of %llu samples",
                    COUNT(members->subset.n_samples));
    const int r = step->kind == PSTK_SUBSET_IDS
                      ? add_ids(members, step, number, bits, err)
                      : add_where(members, dataset, step, number, bits, err);
    free(bits);
    return r;
}

static int add_members(struct pstk_members *members, const struct pstk_subset *step,
                       uint32_t number, struct pstk_error *err)
{
    const struct pstk_members *from = step->members;
    if (number > 0)
        return FAIL(PSTK_EINVAL, ": step %u has members; must be the first step", number);
    if (!from)
        return FAIL(PSTK_EINVAL, ": members is NULL; must be what pstk_members_open returned");
    if (strcmp(members->identity, from->identity) != 0)
        return FAIL(PSTK_EINVAL,
                    ": members are of the data set %.39s; must be of this one, %.39s (open them "
                    "again)",
                    from->identity, members->identity);
    if (from->weights && step->next)
        return FAIL(PSTK_EINVAL, ": members have weights, and a step after them; must be the last");
    members->subset = from->subset;
    members->list = from->list;
    members->weights = from->weights;
    members->n_draws = from->n_draws;
    if (members->list)
        atomic_fetch_add_explicit(&members->list->n_references, 1, memory_order_relaxed);
    if (members->weights)
        atomic_fetch_add_explicit(&members->weights->n_references, 1, memory_order_relaxed);
    return 0;
}

static int add(struct pstk_members *members, struct pstk_dataset *dataset,
               const struct pstk_subset *step, uint32_t number, struct pstk_error *err)
{
    if (step->inverted > 1)
        return FAIL(PSTK_EINVAL, ": step %u, inverted: value is %u; must be 0 or 1", number,
                    step->inverted);
    if (step->reserved)
        return FAIL(PSTK_EINVAL, ": step %u, reserved: value is %u; must be 0", number,
                    step->reserved);
    if (members->subset.n_steps == PSTK_SUBSET_MAX_STEPS)
        return FAIL(PSTK_EINVAL, ": it has more than %d steps (combine some)",
                    PSTK_SUBSET_MAX_STEPS);
    switch (step->kind) {
    case PSTK_SUBSET_RANGE:
        return add_range(members, step, number, err);
    case PSTK_SUBSET_FRACTION:
        return add_fraction(members, step, number, err);
    case PSTK_SUBSET_FOLD:
        return add_fold(members, step, number, err);
    case PSTK_SUBSET_IDS:
    case PSTK_SUBSET_WHERE:
    case PSTK_SUBSET_BETWEEN:
        return add_listed(members, dataset, step, number, err);
    case PSTK_SUBSET_MEMBERS:
        return add_members(members, step, number, err);
    case PSTK_SUBSET_WEIGHTED:
    case PSTK_SUBSET_BALANCED:
        return add_weights(members, dataset, step, err);
    default:
        return FAIL(PSTK_ENOTSUP,
                    ": step %u, kind: value is %u; must be one of enum "
                    "pstk_subset_kind",
                    number, step->kind);
    }
}

/* ---- public -----------------------------------------------------------------------------------
 */

/* Copy a step of the caller's, which may lack later members. */
static int copy_step(const struct pstk_subset *from, struct pstk_subset *to, struct pstk_error *err)
{
    if (from->size < offsetof(struct pstk_subset, next) || from->size > 4096)
        return FAIL(PSTK_EINVAL, ": size: value is %u; must be sizeof(struct pstk_subset), %u",
                    from->size, (unsigned)sizeof *to);
    for (uint32_t i = sizeof *to; i < from->size; i++)
        if (((const uint8_t *)from)[i] != 0)
            return FAIL(PSTK_ENOTSUP,
                        ": a member of a newer penstock is set, which version %s does "
                        "not know",
                        pstk_version());
    memset(to, 0, sizeof *to);
    memcpy(to, from, from->size < sizeof *to ? from->size : sizeof *to);
    return 0;
}

int pstk_members_open(struct pstk_members **out, struct pstk_dataset *dataset,
                      const struct pstk_subset *subset, struct pstk_error *err)
{
    if (!out || !dataset)
        return FAIL(PSTK_EINVAL, ": %s is NULL", out ? "d" : "out");
    *out = NULL;
    const struct pstk__source *source = pstk__dataset_source(dataset);
    if (source->n_samples == 0)
        return FAIL(PSTK_EINVAL, ": %s has no samples", source->path);
    struct pstk_members *members = calloc(1, sizeof *members);
    if (!members)
        return FAIL(PSTK_ENOMEM, ": no memory");
    pstk__subset_init(&members->subset, source->n_samples);
    memcpy(members->identity, source->identity, sizeof members->identity);
    int r = 0;
    uint32_t number = 0;
    struct pstk_subset step;
    for (const struct pstk_subset *next = subset; r == 0 && next; next = step.next, number++) {
        if (number == PSTK_SUBSET_MAX_STEPS)
            r = FAIL(PSTK_EINVAL, ": it has more than %d steps (combine some)",
                     PSTK_SUBSET_MAX_STEPS);
        if (r == 0)
            r = copy_step(next, &step, err);
        if (r == 0)
            r = add(members, dataset, &step, number, err);
    }
    if (r < 0)
        pstk_members_close(&members);
    *out = members;
    return r;
}

uint64_t pstk_members_n(const struct pstk_members *members)
{
    return members ? members->subset.n : 0;
}

uint64_t pstk_members_n_draws(const struct pstk_members *members)
{
    return members && members->weights ? members->n_draws : pstk_members_n(members);
}

int64_t pstk_members_batch(const struct pstk_members *members, const struct pstk_order_settings *s,
                           uint64_t position, uint64_t *ids)
{
    struct pstk_order_settings settings = {0};
    if (!members || !s || s->size < offsetof(struct pstk_order_settings, epoch) + sizeof s->epoch ||
        s->n_samples != pstk_members_n_draws(members) ||
        (members->weights && s->order != PSTK_ORDER_FULL))
        return PSTK_EINVAL;
    memcpy(&settings, s, s->size < sizeof settings ? s->size : sizeof settings);
    if (members->weights)
        settings.order = PSTK_ORDER_SEQUENTIAL; /* order of the draws */
    const int64_t n = pstk_order_batch(&settings, position, ids);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t k = ids[i];
        ids[i] = pstk__subset_at(
            &members->subset,
            members->weights ? pstk__alias_at(&members->weights->alias, s->seed, s->epoch, k) : k);
    }
    return n;
}

int pstk_members_ids(const struct pstk_members *members, uint64_t first, uint64_t n, uint64_t *ids)
{
    if (!members || (!ids && n) || first > members->subset.n || n > members->subset.n - first)
        return PSTK_EINVAL;
    for (uint64_t i = 0; i < n; i++)
        ids[i] = pstk__subset_at(&members->subset, first + i);
    return 0;
}

int pstk_members_digest(const struct pstk_members *members, uint64_t *digest)
{
    if (!members || !digest)
        return PSTK_EINVAL;
    digest[0] = members->subset.digest[0];
    digest[1] = members->subset.digest[1];
    return 0;
}

void pstk_members_close(struct pstk_members **members)
{
    if (!members || !*members)
        return;
    list_drop((*members)->list);
    weights_drop((*members)->weights);
    free(*members);
    *members = NULL;
}

const struct pstk__subset *pstk__members_subset(const struct pstk_members *members)
{
    return &members->subset;
}

const struct pstk__alias *pstk__members_alias(const struct pstk_members *members)
{
    return members->weights ? &members->weights->alias : NULL;
}
