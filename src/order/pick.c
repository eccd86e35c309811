/* SPDX-License-Identifier: Apache-2.0 */
#include "order/pick.h"

uint64_t pstk__pick_id(const struct pstk__pick_plan *plan, uint64_t index)
{
    return plan->subset ? pstk__subset_at(plan->subset, index) : index;
}

void pstk__picker_init(struct pstk__picker *picker, const struct pstk__pick_plan *plan)
{
    picker->plan = plan;
    picker->epochs[0].is_ready = picker->epochs[1].is_ready = 0;
}

const struct pstk__order *pstk__picker_order(struct pstk__picker *picker, uint64_t epoch)
{
    const uint32_t i = epoch & 1;
    if (!picker->epochs[i].is_ready || picker->epochs[i].epoch != epoch) {
        pstk__order_init(&picker->epochs[i].order, &picker->plan->shape, picker->plan->seed, epoch);
        picker->epochs[i].epoch = epoch;
        picker->epochs[i].is_ready = 1;
    }
    return &picker->epochs[i].order;
}

/* Find the sample at position k of an epoch of a mixture. With REPEAT each data set has its own
 * epochs, and one stream goes on through all epochs of the mixture; else the data sets share the
 * mixture's epochs. */
static void pick_of_mixture(struct pstk__picker *picker, uint64_t epoch, uint64_t k,
                            struct pstk__pick *out)
{
    const struct pstk__mixture *mixture = picker->plan->mixture;
    const int repeats = mixture->exhaustion == PSTK_EXHAUSTION_REPEAT;
    struct pstk__mixture_sample at;
    pstk__mixture_at(mixture, repeats ? epoch * mixture->n + k : k, &at);
    const uint64_t n = mixture->sizes[at.data_set];
    const uint64_t own_epoch = repeats ? at.number / n : epoch;
    const struct pstk__subset *subset = mixture->subsets[at.data_set];
    *out = (struct pstk__pick){
        .first = mixture->first[at.data_set], .epoch = own_epoch, .data_set = at.data_set};
    if (mixture->aliases[at.data_set]) {
        out->occurrence = at.number % n;
        out->id = out->first + pstk__subset_at(subset, pstk__alias_at(mixture->aliases[at.data_set],
                                                                      mixture->seeds[at.data_set],
                                                                      own_epoch, out->occurrence));
        return;
    }
    struct pstk__picked_order *picked = &picker->of_mixture[at.data_set];
    if (!picked->is_ready || picked->epoch != own_epoch) {
        struct pstk__order_shape shape = picker->plan->shape;
        shape.interleave.n = n;
        pstk__order_init(&picked->order, &shape, mixture->seeds[at.data_set], own_epoch);
        picked->epoch = own_epoch;
        picked->is_ready = 1;
    }
    const uint64_t index = pstk__order_at(&picked->order, at.number % n);
    out->id = out->first + (subset ? pstk__subset_at(subset, index) : index);
}

void pstk__picker_at(struct pstk__picker *picker, uint64_t epoch, uint64_t k,
                     struct pstk__pick *out)
{
    const struct pstk__pick_plan *plan = picker->plan;
    if (plan->alias) {
        const uint64_t drawn = pstk__alias_at(plan->alias, plan->seed, epoch, k);
        *out =
            (struct pstk__pick){.id = pstk__pick_id(plan, drawn), .epoch = epoch, .occurrence = k};
        return;
    }
    if (plan->mixture) {
        pick_of_mixture(picker, epoch, k, out);
        return;
    }
    const struct pstk__order *order = pstk__picker_order(picker, epoch);
    *out = (struct pstk__pick){.id = pstk__pick_id(plan, pstk__order_at(order, k)), .epoch = epoch};
}

void pstk__picker_index(const struct pstk__picker *picker, uint64_t epoch, uint64_t index,
                        struct pstk__pick *out)
{
    *out = (struct pstk__pick){.id = pstk__pick_id(picker->plan, index), .epoch = epoch};
}
