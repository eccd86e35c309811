/* SPDX-License-Identifier: Apache-2.0 */
#include "base/gate.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void pstk__gate_init(struct pstk__gate *g)
{
    atomic_init(&g->count, 0);
    atomic_init(&g->n_waiting, 0);
}

uint32_t pstk__gate_ticket(struct pstk__gate *g)
{
    /* Acquire: pairs with the knock's increment, so that what was written before it is seen. */
    return atomic_load_explicit(&g->count, memory_order_acquire);
}

int pstk__gate_wait(struct pstk__gate *g, uint32_t ticket, int64_t timeout_ns)
{
    struct timespec t, *timeout = NULL;
    if (timeout_ns >= 0) {
        t.tv_sec = timeout_ns / 1000000000;
        t.tv_nsec = timeout_ns % 1000000000;
        timeout = &t;
    }
    /* Sequentially consistent with the knock: either it sees n_waiting, or the futex call below
     * sees the new count and returns at once. */
    atomic_fetch_add_explicit(&g->n_waiting, 1, memory_order_seq_cst);
    int r = 0;
    if (atomic_load_explicit(&g->count, memory_order_seq_cst) == ticket &&
        syscall(SYS_futex, (uintptr_t)&g->count, FUTEX_WAIT_PRIVATE, ticket, timeout, NULL, 0) < 0)
        r = errno == ETIMEDOUT ? -ETIMEDOUT : 0; /* EAGAIN, EINTR: the caller looks again */
    atomic_fetch_sub_explicit(&g->n_waiting, 1, memory_order_relaxed);
    return r;
}

void pstk__gate_knock(struct pstk__gate *g)
{
    atomic_fetch_add_explicit(&g->count, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&g->n_waiting, memory_order_seq_cst) > 0)
        syscall(SYS_futex, (uintptr_t)&g->count, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
