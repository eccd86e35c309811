/* SPDX-License-Identifier: Apache-2.0 */
#include "base/queue.h"

#include "base/clock.h"
#include "base/eventcount.h"

#include <assert.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#define LINE 128 /* bytes that one thread's writes may take from the others: two cache lines */

/* The cell of positions p, p + n, and so on, of n cells. Its turn says whose it is: p: of the
 * thread that pushes p; p + 1: of the thread that pops p. */
struct cell {
    _Atomic uint64_t turn;
    void *item;
};
#define A_LINE 8u /* cells on LINE bytes */

/*
 * Position p is claimed by moving tail (push) or head (pop) past it; then the cell belongs to the
 * claiming thread until it sets the turn. The turn passes the item on: release and acquire.
 *
 * Why no wake-up is lost. A push sets the turn (T), then reads n_waiting (N). A pop that found
 * nothing adds to n_waiting (W), reads the ticket, and looks at the turn again (L), before it
 * waits. All four are sequentially consistent. If N came before W, T came before L, which finds the
 * item. Otherwise the push notifies: after the ticket was read, if L did not find the item, so that
 * the wait ends. One notification wakes one thread, and each push that saw a waiter gives one. It
 * may be in vain: while the push of an older item is under way, the thread that wakes finds
 * nothing. The push of the older item then wakes a thread, and that thread the next one (pass_on).
 */
struct pstk__queue {
    uint64_t mask;    /* number of cells - 1; that number is a power of two, at least A_LINE */
    uint32_t shift;   /* its logarithm, less that of A_LINE */
    _Atomic int shut; /* 1: pops give NULL */
    _Alignas(LINE) _Atomic uint64_t tail;
    _Alignas(LINE) _Atomic uint64_t head;
    _Alignas(LINE) _Atomic uint32_t n_waiting; /* pops that found nothing */
    struct pstk__eventcount arrived;
    _Alignas(LINE) struct cell cells[];
};

/* Return the cell of a position. Positions that follow each other lie on different cache lines. */
static struct cell *cell_of(struct pstk__queue *q, uint64_t at)
{
    at &= q->mask;
    return &q->cells[(at * A_LINE | at >> q->shift) & q->mask];
}

struct pstk__queue *pstk__queue_open(uint32_t capacity)
{
    uint32_t shift = 0;
    while ((uint64_t)A_LINE << shift < capacity)
        shift++;
    const uint64_t n = (uint64_t)A_LINE << shift;
    struct pstk__queue *q = aligned_alloc(LINE, sizeof *q + n * sizeof *q->cells);
    if (!q)
        return NULL;
    q->mask = n - 1;
    q->shift = shift;
    atomic_init(&q->shut, 0);
    atomic_init(&q->tail, 0);
    atomic_init(&q->head, 0);
    atomic_init(&q->n_waiting, 0);
    pstk__eventcount_init(&q->arrived);
    for (uint64_t i = 0; i < n; i++)
        atomic_init(&cell_of(q, i)->turn, i);
    return q;
}

/* Claim the next position to push. */
static uint64_t claim_push(struct pstk__queue *q)
{
    uint64_t at = atomic_load_explicit(&q->tail, memory_order_relaxed);
    for (;;) {
        const uint64_t turn = atomic_load_explicit(&cell_of(q, at)->turn, memory_order_acquire);
        if (turn == at) {
            if (atomic_compare_exchange_weak_explicit(&q->tail, &at, at + 1, memory_order_relaxed,
                                                      memory_order_relaxed))
                return at;
        } else if (turn > at) { /* another thread has pushed there */
            at = atomic_load_explicit(&q->tail, memory_order_relaxed);
        } else { /* a pop of a round ago has not set its turn yet */
            const uint64_t head = atomic_load_explicit(&q->head, memory_order_acquire);
            assert((int64_t)(at - head) <= (int64_t)q->mask); /* head may have passed `at` by now */
            sched_yield();
            at = atomic_load_explicit(&q->tail, memory_order_relaxed);
        }
    }
}

int pstk__queue_push(struct pstk__queue *q, void *item)
{
    assert(item); /* pop returns NULL for a shut queue */
    if (atomic_load_explicit(&q->shut, memory_order_relaxed))
        return -1;
    const uint64_t at = claim_push(q);
    struct cell *cell = cell_of(q, at);
    cell->item = item;
    atomic_store_explicit(&cell->turn, at + 1, memory_order_seq_cst);
    if (atomic_load_explicit(&q->n_waiting, memory_order_seq_cst) > 0)
        pstk__eventcount_notify_one(&q->arrived);
    return 0;
}

/* Take the oldest item, or return NULL. */
static void *take(struct pstk__queue *q)
{
    uint64_t at = atomic_load_explicit(&q->head, memory_order_relaxed);
    struct cell *cell;
    for (;;) {
        cell = cell_of(q, at);
        const uint64_t turn = atomic_load_explicit(&cell->turn, memory_order_seq_cst);
        if (turn <= at) /* not pushed yet */
            return NULL;
        if (turn > at + 1) /* another thread has taken it */
            at = atomic_load_explicit(&q->head, memory_order_relaxed);
        else if (atomic_compare_exchange_weak_explicit(&q->head, &at, at + 1, memory_order_release,
                                                       memory_order_relaxed))
            break;
    }
    void *item = cell->item;
    atomic_store_explicit(&cell->turn, at + q->mask + 1, memory_order_release);
    return item;
}

void *pstk__queue_try_pop(struct pstk__queue *q)
{
    return atomic_load_explicit(&q->shut, memory_order_relaxed) ? NULL : take(q);
}

/* Wake the next waiter if one more item is there. */
static void pass_on(struct pstk__queue *q)
{
    uint64_t head, turn;
    do {
        head = atomic_load_explicit(&q->head, memory_order_acquire);
        turn = atomic_load_explicit(&cell_of(q, head)->turn, memory_order_seq_cst);
    } while (turn > head + 1); /* another thread has taken that item: look at the next one */
    if (turn == head + 1 && atomic_load_explicit(&q->n_waiting, memory_order_seq_cst) > 0)
        pstk__eventcount_notify_one(&q->arrived);
}

/* Wait until there is an item, and take it; NULL once shut. */
static void *wait_for_item(struct pstk__queue *q)
{
    void *item = NULL;
    atomic_fetch_add_explicit(&q->n_waiting, 1, memory_order_seq_cst);
    for (;;) {
        const uint32_t ticket = pstk__eventcount_ticket(&q->arrived);
        if (atomic_load_explicit(&q->shut, memory_order_relaxed) || (item = take(q)))
            break;
        pstk__eventcount_wait(&q->arrived, ticket, -1);
    }
    atomic_fetch_sub_explicit(&q->n_waiting, 1, memory_order_relaxed);
    if (item)
        pass_on(q);
    return item;
}

void *pstk__queue_pop(struct pstk__queue *q, uint64_t *waited_ns, uint32_t *n_left)
{
    void *item = pstk__queue_try_pop(q);
    if (!item && !atomic_load_explicit(&q->shut, memory_order_relaxed)) {
        const uint64_t start = waited_ns ? pstk__clock_ns() : 0;
        item = wait_for_item(q);
        if (waited_ns)
            *waited_ns += pstk__clock_ns() - start;
    }
    if (n_left) { /* head first: it never passes tail */
        const uint64_t head = atomic_load_explicit(&q->head, memory_order_acquire);
        *n_left = (uint32_t)(atomic_load_explicit(&q->tail, memory_order_relaxed) - head);
    }
    return item;
}

void pstk__queue_shut(struct pstk__queue *q)
{
    atomic_store_explicit(&q->shut, 1, memory_order_relaxed); /* notify releases it */
    pstk__eventcount_notify(&q->arrived);
}

void pstk__queue_close(struct pstk__queue *q)
{
    free(q);
}
