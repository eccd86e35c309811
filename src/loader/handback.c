/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/handback.h"

void pstk__handback_init(struct pstk__handback *handback)
{
    pstk__eventcount_init(&handback->eventcount);
    atomic_init(&handback->wanted, 0);
    handback->ticket = 0;
    handback->is_armed = 0;
}

void pstk__handback_begin(struct pstk__handback *handback)
{
    handback->ticket = pstk__eventcount_ticket(&handback->eventcount);
}

int pstk__handback_end(struct pstk__handback *handback, int progress)
{
    if (!progress && handback->is_armed)
        return 1;
    if (!progress) /* pairs with given: see the head of the header */
        atomic_exchange_explicit(&handback->wanted, 1, memory_order_acq_rel);
    else if (handback->is_armed)
        atomic_store_explicit(&handback->wanted, 0, memory_order_relaxed);
    handback->is_armed = !progress;
    return 0;
}

void pstk__handback_wait(struct pstk__handback *handback)
{
    pstk__eventcount_wait(&handback->eventcount, handback->ticket, -1);
}

void pstk__handback_given(struct pstk__handback *handback)
{
    /* A read-modify-write that changes nothing: it takes its position in the order with end's. */
    if (atomic_fetch_add_explicit(&handback->wanted, 0, memory_order_acq_rel))
        pstk__eventcount_notify(&handback->eventcount);
}
