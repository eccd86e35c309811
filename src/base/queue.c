/* SPDX-License-Identifier: Apache-2.0 */
#include "base/queue.h"

#include "base/clock.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

/*
 * Invariants, under `mutex`: n <= capacity, head < capacity; the items are ring[head], ring[head +
 * 1], ... modulo capacity. n_waiting >= threads blocked in pop - signals under way. A push that
 * finds a waiter decrements the count and owes it one signal; a woken thread that finds no item
 * increments it again. So a push signals only when a thread waits, and no item stays in the queue
 * while a thread sleeps.
 */
struct pstk__queue {
    pthread_mutex_t mutex;
    pthread_cond_t arrived;
    uint32_t capacity; /* items */
    uint32_t head;     /* ring index of the oldest */
    uint32_t n;        /* items in the ring */
    uint32_t n_waiting;
    int shut;
    void *ring[];
};

/* Lock the queue. A default mutex that the library initialised never fails to lock or unlock; if it
 * does, memory is overwritten. */
static void lock(struct pstk__queue *q)
{
    int r = pthread_mutex_lock(&q->mutex);
    assert(r == 0);
    (void)r;
}

static void unlock(struct pstk__queue *q)
{
    int r = pthread_mutex_unlock(&q->mutex);
    assert(r == 0);
    (void)r;
}

struct pstk__queue *pstk__queue_open(uint32_t capacity)
{
    if (capacity == 0)
        capacity = 1;
    struct pstk__queue *q = calloc(1, sizeof *q + (size_t)capacity * sizeof q->ring[0]);
    if (!q)
        return NULL;
    q->capacity = capacity;
    if (pthread_mutex_init(&q->mutex, NULL) != 0) {
        free(q);
        return NULL;
    }
    if (pthread_cond_init(&q->arrived, NULL) != 0) {
        pthread_mutex_destroy(&q->mutex);
        free(q);
        return NULL;
    }
    return q;
}

/* Wake n threads; after unlocking, so that none wakes only to wait for the mutex. */
static void wake(struct pstk__queue *q, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        pthread_cond_signal(&q->arrived);
}

int pstk__queue_push(struct pstk__queue *q, void *item)
{
    return pstk__queue_push_many(q, &item, 1);
}

int pstk__queue_push_many(struct pstk__queue *q, void *const *items, uint32_t n)
{
    lock(q);
    if (q->shut) {
        unlock(q);
        return -1;
    }
    assert(n <= q->capacity - q->n);
    /* 64 bits: head + n may pass 2^32 when the capacity does nearly */
    uint64_t tail = (uint64_t)q->head + q->n;
    if (tail >= q->capacity)
        tail -= q->capacity;
    for (uint32_t i = 0; i < n; i++) {
        assert(items[i]); /* pop returns NULL for a shut queue */
        q->ring[tail] = items[i];
        if (++tail == q->capacity)
            tail = 0;
    }
    q->n += n;
    uint32_t n_wake = n < q->n_waiting ? n : q->n_waiting;
    q->n_waiting -= n_wake;
    unlock(q);
    wake(q, n_wake);
    return 0;
}

/* Take the oldest item; there is at least one. The caller holds the lock. */
static void *take(struct pstk__queue *q)
{
    void *item = q->ring[q->head];
    if (++q->head == q->capacity)
        q->head = 0;
    q->n--;
    return item;
}

/* Wait until there is an item or the queue is shut. The caller holds the lock. */
static void wait_for_item(struct pstk__queue *q, uint64_t *waited_ns)
{
    uint64_t start = waited_ns ? pstk__clock_ns() : 0;
    while (q->n == 0 && !q->shut) {
        q->n_waiting++;
        int r = pthread_cond_wait(&q->arrived, &q->mutex);
        assert(r == 0);
        (void)r;
    }
    if (waited_ns)
        *waited_ns += pstk__clock_ns() - start;
}

void *pstk__queue_pop(struct pstk__queue *q, uint64_t *waited_ns, uint32_t *n_left)
{
    lock(q);
    if (q->n == 0 && !q->shut)
        wait_for_item(q, waited_ns);
    void *item = q->shut ? NULL : take(q);
    if (n_left)
        *n_left = q->n;
    unlock(q);
    return item;
}

void *pstk__queue_try_pop(struct pstk__queue *q)
{
    lock(q);
    void *item = q->n == 0 || q->shut ? NULL : take(q);
    unlock(q);
    return item;
}

void pstk__queue_shut(struct pstk__queue *q)
{
    lock(q);
    q->shut = 1;
    q->n_waiting = 0;
    unlock(q);
    pthread_cond_broadcast(&q->arrived);
}

void pstk__queue_close(struct pstk__queue *q)
{
    if (!q)
        return;
    pthread_cond_destroy(&q->arrived);
    pthread_mutex_destroy(&q->mutex);
    free(q);
}
