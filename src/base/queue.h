/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue: the one bounded, closable queue between threads. It holds pointers. Its capacity covers
 * the whole pool that flows through it, so push never waits for a pop; pushing into a full queue is
 * a bug of ours (assert). Only empty pools cause back-pressure.
 *
 * No lock: many threads may take a row's work from one queue. Source: Dmitry Vyukov's bounded
 * queue for many producers and many consumers.
 */
#ifndef PSTK_QUEUE_H
#define PSTK_QUEUE_H

#include <stdint.h>

struct pstk__queue; /* opaque */

/* Open a queue. Returns owned, or NULL when there is no memory. */
struct pstk__queue *pstk__queue_open(uint32_t capacity);
/* Append an item and wake one waiter if there is one. After shut: ignored, returns -1; else 0.
 * Whoever pops the item sees what the caller wrote before. */
int pstk__queue_push(struct pstk__queue *q, void *item);
/* Take the oldest item; waits. NULL once shut (at once, also if items are left). *waited_ns, if not
 * NULL, is increased by the time spent waiting; *n_left, if not NULL, is the number of items that
 * are left, about. */
void *pstk__queue_pop(struct pstk__queue *q, uint64_t *waited_ns, uint32_t *n_left);
/* Take the oldest item, or return NULL at once. NULL too while the oldest is being pushed, even if
 * later ones are there: a push that returned shows them all. */
void *pstk__queue_try_pop(struct pstk__queue *q);
/* Wake all waiters; every later pop returns NULL. */
void pstk__queue_shut(struct pstk__queue *q);
/* Free the queue; no thread may be inside. NULL is fine. */
void pstk__queue_close(struct pstk__queue *q);

#endif
