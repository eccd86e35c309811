/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eventcount: threads sleep on a futex until another thread notifies them. A waiter reads the
 * ticket, checks whether the thing that it needs is there, and waits only if no thread has notified
 * it since. To notify is safe in a signal handler.
 *
 *   uint32_t ticket = pstk__eventcount_ticket(&eventcount);
 *   if (!there())
 *       pstk__eventcount_wait(&eventcount, ticket, -1);
 */
#ifndef PSTK_EVENTCOUNT_H
#define PSTK_EVENTCOUNT_H

#include <stdatomic.h>
#include <stdint.h>

struct pstk__eventcount {
    _Atomic uint32_t count;     /* notifications, modulo 2^32; the futex word */
    _Atomic uint32_t n_waiting; /* threads inside wait */
};

void pstk__eventcount_init(struct pstk__eventcount *eventcount);
uint32_t pstk__eventcount_ticket(struct pstk__eventcount *eventcount);
/* Wait until someone has notified it since the ticket, at most timeout_ns (< 0: for ever). 0, or
 * -ETIMEDOUT. May return early. */
int pstk__eventcount_wait(struct pstk__eventcount *eventcount, uint32_t ticket, int64_t timeout_ns);
/* Make every waiter look again. The caller has written the thing that it looks for before the call.
 */
void pstk__eventcount_notify(struct pstk__eventcount *eventcount);

#endif
