/* SPDX-License-Identifier: Apache-2.0 */
#include "base/eventcount.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void pstk__eventcount_init(struct pstk__eventcount *eventcount)
{
    atomic_init(&eventcount->count, 0);
    atomic_init(&eventcount->n_waiting, 0);
}

uint32_t pstk__eventcount_ticket(struct pstk__eventcount *eventcount)
{
    /* Acquire: pairs with notify's increment, so that the notifier's earlier writes are seen. */
    return atomic_load_explicit(&eventcount->count, memory_order_acquire);
}

int pstk__eventcount_wait(struct pstk__eventcount *eventcount, uint32_t ticket, int64_t timeout_ns)
{
    struct timespec time, *timeout = NULL;
    if (timeout_ns >= 0) {
        time.tv_sec = timeout_ns / 1000000000;
        time.tv_nsec = timeout_ns % 1000000000;
        timeout = &time;
    }
    /* Sequentially consistent with notify: either it sees n_waiting, or the futex call below
     * sees the new count and returns at once. */
    atomic_fetch_add_explicit(&eventcount->n_waiting, 1, memory_order_seq_cst);
    int r = 0;
    if (atomic_load_explicit(&eventcount->count, memory_order_seq_cst) == ticket &&
        syscall(SYS_futex, (uintptr_t)&eventcount->count, FUTEX_WAIT_PRIVATE, ticket, timeout, NULL,
                0) < 0)
        r = errno == ETIMEDOUT ? -ETIMEDOUT : 0; /* EAGAIN, EINTR: the caller checks again */
    atomic_fetch_sub_explicit(&eventcount->n_waiting, 1, memory_order_relaxed);
    return r;
}

static void notify(struct pstk__eventcount *eventcount, int n)
{
    atomic_fetch_add_explicit(&eventcount->count, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&eventcount->n_waiting, memory_order_seq_cst) > 0)
        syscall(SYS_futex, (uintptr_t)&eventcount->count, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

void pstk__eventcount_notify(struct pstk__eventcount *eventcount)
{
    notify(eventcount, INT_MAX);
}

void pstk__eventcount_notify_one(struct pstk__eventcount *eventcount)
{
    notify(eventcount, 1);
}
