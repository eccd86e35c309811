/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eventcount: threads sleep on a futex until another thread notifies them. A waiter reads the
 * ticket, checks its condition, and waits only if no thread has notified it since. A signal handler
 * may notify.
 *
 *   uint32_t ticket = pstk__eventcount_ticket(&eventcount);
 *   if (!condition())
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
/* Wait until a thread notifies after the ticket was read, at most timeout_ns (< 0: for ever). 0, or
 * -ETIMEDOUT. May return early. */
int pstk__eventcount_wait(struct pstk__eventcount *eventcount, uint32_t ticket, int64_t timeout_ns);
/* Wake every waiter. Before the call, the caller has written the data that waiters check. */
void pstk__eventcount_notify(struct pstk__eventcount *eventcount);
/* As notify, but wake one waiter: all of them wait for the same thing, and one is enough for it. */
void pstk__eventcount_notify_one(struct pstk__eventcount *eventcount);

#endif
