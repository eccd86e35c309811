/* SPDX-License-Identifier: Apache-2.0 */
#include "order/pick.h"

void pstk__picker_init(struct pstk__picker *picker, const struct pstk__pick_plan *plan)
{
    picker->plan = plan;
    picker->is_ready = 0;
}

void pstk__picker_at(struct pstk__picker *picker, uint64_t epoch, uint64_t k,
                     struct pstk__pick *out)
{
    if (!picker->is_ready || picker->epoch != epoch) {
        pstk__order_init(&picker->order, &picker->plan->shape, picker->plan->seed, epoch);
        picker->epoch = epoch;
        picker->is_ready = 1;
    }
    *out = (struct pstk__pick){.id = pstk__order_at(&picker->order, k), .epoch = epoch};
}
