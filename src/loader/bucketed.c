/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/bucketed.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#define U64(x) ((unsigned long long)(x))

int pstk__bucketed_check(const struct pstk_settings *s, struct pstk_error *err)
{
    const struct {
        const char *name;
        uint64_t value, wanted;
    } others[] = {{"batch_size", s->batch_size, 1},
                  {"global_batch_size", s->global_batch_size, 0},
                  {"uneven", s->order.uneven, 0},
                  {"n_batch_steps", s->order.n_batch_steps, 0}};
    if (!s->budget)
        return 0;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].value != others[i].wanted)
            return pstk__fail_setting(err, others[i].name, others[i].value,
                                      "%llu, its default, with a budget, which gives batches their "
                                      "rows",
                                      U64(others[i].wanted));
    if (s->memory.max_batch_size)
        return pstk__fail_setting(err, "max_batch_size", s->memory.max_batch_size,
                                  "0 with a budget (set budget.max_rows)");
    if (s->mixture)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "budget: not supported together with mixture; must be NULL");
    if (s->order.kind == PSTK_ORDER_WINDOWED)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "budget: not supported together with a windowed order, whose blocks are "
                          "read in the order of the samples; must be NULL (or set order to full)");
    return pstk__budget_check(s->budget, err);
}

/* Allocate the state of the budget, and copy the costs. */
static int open_epochs(struct pstk__epochs **out, const struct pstk__bucketed_config *c,
                       struct pstk_error *err)
{
    const struct pstk_budget *budget = c->settings->budget;
    const uint64_t n = c->source->n_samples;
    if (budget->n_costs != n)
        return pstk__fail(
            err, PSTK_EINVAL, PSTK_STAGE_OPEN,
            "budget.n_costs: value is %llu; must be %llu, the number of samples of %s, "
            "also where a subset leaves fewer",
            U64(budget->n_costs), U64(n), c->source->path);
    struct pstk__epochs *epochs = calloc(1, sizeof *epochs);
    if (!epochs)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the budget");
    if (pthread_mutex_init(&epochs->build, NULL) != 0) {
        free(epochs);
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for a lock");
    }
    if (pthread_mutex_init(&epochs->lock, NULL) != 0) {
        pthread_mutex_destroy(&epochs->build);
        free(epochs);
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for a lock");
    }
    *out = epochs;
    epochs->costs =
        n <= SIZE_MAX / sizeof *epochs->costs ? malloc(n * sizeof *epochs->costs) : NULL;
    if (!epochs->costs)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for %llu costs", U64(n));
    memcpy(epochs->costs, budget->costs, n * sizeof *epochs->costs);
    return 0;
}

uint64_t pstk__bucketed_memory(const struct pstk__epochs *epochs, uint64_t n)
{
    const uint64_t size = pstk__epochs_size(&epochs->bucketing);
    return n * sizeof(uint32_t) > UINT64_MAX - size ? UINT64_MAX : size + n * sizeof(uint32_t);
}

/* Check that the budget's memory fits: max_memory counts it, before slots and I/O memory. */
static int check_memory(const struct pstk__epochs *epochs, const struct pstk__bucketed_config *c,
                        struct pstk_error *err)
{
    const uint64_t n = c->source->n_samples, limit = c->settings->memory.max_memory,
                   memory = pstk__bucketed_memory(epochs, n);
    if (limit && memory >= limit)
        return pstk__fail_setting(err, "max_memory", limit,
                                  "above %llu bytes, which batches by a budget take for %llu "
                                  "positions of two epochs and the costs of %llu samples",
                                  U64(memory), U64(epochs->bucketing.n_kept), U64(n));
    return 0;
}

int pstk__bucketed_check_first(struct pstk__epochs *epochs, const struct pstk_settings *s,
                               struct pstk_error *err)
{
    const uint64_t n = pstk__epochs_n_batches(epochs, s->order.epoch);
    if (s->last_batch != PSTK_LAST_DROP || n >= s->ranks.world)
        return 0;
    return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                      "budget.total: value is %llu; must give each of %u ranks a batch, but %llu "
                      "samples make %llu of them in epoch %llu, so last_batch=drop leaves no batch "
                      "(lower it, or set last_batch to pad or short)",
                      U64(s->budget->total), s->ranks.world, U64(epochs->bucketing.n_kept), U64(n),
                      U64(s->order.epoch));
}

int pstk__bucketed_open(struct pstk__epochs **out, const struct pstk__bucketed_config *c,
                        struct pstk_error *err)
{
    int r = open_epochs(out, c, err);
    if (r < 0)
        return r;
    struct pstk__epochs *epochs = *out;
    r = pstk__bucketing_init(&epochs->bucketing, c->picks, c->source->n_samples, c->partition->n,
                             c->settings->budget, err);
    epochs->bucketing.costs = epochs->costs;
    if (r == 0)
        r = check_memory(epochs, c, err);
    return r == 0 ? pstk__epochs_open(epochs, c->partition, err) : r;
}
