/* SPDX-License-Identifier: Apache-2.0 */
#include "batch/window.h"

#include "base/clock.h"
#include "base/error.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int pstk__window_open(struct pstk__window *w, struct pstk__slots *filled, struct pstk__slots *slots,
                      const struct pstk__partition *p, struct pstk__cursor start,
                      struct pstk_error *err)
{
    *w = (struct pstk__window){
        .filled_slots = filled, .slots = slots, .partition = *p, .claim = start, .deliver = start};
    pstk__gate_init(&w->delivery);
    pstk__gate_init(&w->uploads);
    w->ready = calloc(slots->n_slots, sizeof *w->ready);
    if (filled != slots)
        w->filled = calloc(filled->n_slots, sizeof *w->filled);
    if (!w->ready || (filled != slots && !w->filled) || pthread_mutex_init(&w->lock, NULL) != 0) {
        free(w->filled);
        free(w->ready);
        w->filled = w->ready = NULL;
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the window");
    }
    return 0;
}

void pstk__window_close(struct pstk__window *w)
{
    if (!w->ready)
        return;
    pthread_mutex_destroy(&w->lock);
    free(w->filled);
    free(w->ready);
    w->filled = w->ready = NULL;
}

/* Positions past the last batch of an epoch are the start of the next one. Open made sure that a
 * whole epoch has a batch, so this ends. */
static struct pstk__cursor normal(const struct pstk__window *w, struct pstk__cursor c)
{
    if (pstk__partition_n_batches(&w->partition, c.position) == 0)
        return (struct pstk__cursor){.epoch = c.epoch + 1};
    return c;
}

void pstk__window_claim(struct pstk__window *w, struct pstk__slot *s)
{
    pthread_mutex_lock(&w->lock);
    w->claim = normal(w, w->claim);
    uint64_t global = pstk__partition_global(&w->partition);
    uint64_t position = w->claim.position, rest = w->partition.n - position;
    s->seq = w->claim_seq++;
    s->generation = atomic_load_explicit(&w->generation, memory_order_relaxed);
    s->batch.epoch = w->claim.epoch;
    s->batch.position = position;
    s->batch.next_position = rest < global ? w->partition.n : position + global;
    s->batch.index = position / global;
    s->batch.n_valid = pstk__partition_n_valid(&w->partition, position);
    w->claim.position = s->batch.next_position;
    pthread_mutex_unlock(&w->lock);
}

int pstk__window_stale(struct pstk__window *w, const struct pstk__slot *s)
{
    /* Relaxed: a late look only means that some work is done for nothing. */
    return atomic_load_explicit(&w->generation, memory_order_relaxed) != s->generation;
}

/* Put a slot in its place of the array, or drop it. `next_seq`: what the one behind the gate waits
 * for, and nothing but this. */
static void put(struct pstk__window *w, struct pstk__slot *s, struct pstk__slot **array,
                const uint64_t *next_seq, struct pstk__gate *gate)
{
    pthread_mutex_lock(&w->lock);
    int stale = pstk__window_stale(w, s);
    int next = !stale && s->seq == *next_seq;
    if (!stale)
        array[s->seq % s->pool->n_slots] = s;
    pthread_mutex_unlock(&w->lock);
    if (stale)
        pstk__slot_drop(s);
    else if (next)
        pstk__gate_knock(gate);
}

void pstk__window_put(struct pstk__window *w, struct pstk__slot *s)
{
    if (w->filled)
        put(w, s, w->filled, &w->upload_seq, &w->uploads);
    else
        put(w, s, w->ready, &w->deliver_seq, &w->delivery);
}

struct pstk__slot *pstk__window_take_filled(struct pstk__window *w)
{
    pthread_mutex_lock(&w->lock);
    struct pstk__slot **place = &w->filled[w->upload_seq % w->filled_slots->n_slots], *s = *place;
    if (s) {
        assert(s->seq == w->upload_seq);
        *place = NULL;
        w->upload_seq++;
        pstk__slot_copy(s); /* under the lock: a seek drops what it finds in the array */
    }
    pthread_mutex_unlock(&w->lock);
    return s;
}

void pstk__window_put_loaded(struct pstk__window *w, struct pstk__slot *s)
{
    put(w, s, w->ready, &w->deliver_seq, &w->delivery);
}

static void fail(struct pstk__window *w, const struct pstk_error *err, int uploads_over)
{
    pthread_mutex_lock(&w->lock);
    if (!w->fatal.code)
        w->fatal = *err;
    w->uploads_over |= uploads_over;
    pthread_mutex_unlock(&w->lock);
    pstk__gate_knock(&w->delivery);
}

void pstk__window_fail(struct pstk__window *w, const struct pstk_error *err)
{
    fail(w, err, 0);
}

void pstk__window_fail_uploads(struct pstk__window *w, const struct pstk_error *err)
{
    fail(w, err, 1);
}

/* With the lock: is the batch that comes next the uploader's, who will put it in? */
static int is_uploading(const struct pstk__window *w)
{
    return w->filled && !w->uploads_over &&
           (w->upload_seq > w->deliver_seq || w->filled[w->deliver_seq % w->filled_slots->n_slots]);
}

/* With the lock: the batch that comes next is taken out. */
static void advance(struct pstk__window *w)
{
    w->ready[w->deliver_seq % w->slots->n_slots] = NULL;
    w->deliver_seq++;
}

/* Find what comes next: 1 and the slot, a result of take, or -EAGAIN: wait. */
static int look(struct pstk__window *w, struct pstk__slot **out, struct pstk_error *err)
{
    int r = 1;
    pthread_mutex_lock(&w->lock);
    struct pstk__slot *s = w->ready[w->deliver_seq % w->slots->n_slots];
    if (w->failed) {
        r = pstk__fail_copy(err, &w->error);
    } else if (!s && w->fatal.code && !is_uploading(w)) {
        w->failed = 1;
        w->error = w->fatal;
        r = pstk__fail_copy(err, &w->error);
    } else if (!s) {
        r = -EAGAIN;
    } else if (s->failed_row != UINT32_MAX) {
        /* The cursor stays at this batch: seeking behind it, or to it again, is the caller's. */
        w->failed = 1;
        w->error = s->error;
        advance(w);
        pstk__slot_drop(s);
        r = pstk__fail_copy(err, &w->error);
    } else {
        assert(s->seq == w->deliver_seq);
        *out = s;
    }
    pthread_mutex_unlock(&w->lock);
    return r;
}

/* What can be said at once: a result of take, or -EAGAIN: wait. The device is asked without the
 * lock, which the other threads need: only this one takes batches or seeks. */
static int try_take(struct pstk__window *w, struct pstk__slot **out, void *stream, int quick,
                    struct pstk_error *err)
{
    struct pstk__slot *s = NULL;
    int r = look(w, &s, err);
    if (r != 1)
        return r;
    r = pstk__slot_lease(s, stream, quick, err);
    if (r < 0) /* the stream is refused, or busy: the batch stays for the next call */
        return r;
    pthread_mutex_lock(&w->lock);
    advance(w);
    w->deliver = (struct pstk__cursor){s->batch.epoch, s->batch.next_position};
    pthread_mutex_unlock(&w->lock);
    *out = s;
    return 1;
}

/* What to say when nothing is ready: an interrupt, every slot leased, time over; 0: wait. */
static int why_not(struct pstk__window *w, int64_t left_ns, struct pstk_error *err)
{
    if (atomic_exchange_explicit(&w->interrupted, 0, memory_order_acquire))
        return pstk__fail(err, PSTK_EINTR, PSTK_STAGE_CONSUMER, "interrupted while waiting");
    uint32_t n_leased = atomic_load_explicit(&w->slots->n_leased, memory_order_relaxed);
    uint32_t n_parked = atomic_load_explicit(&w->slots->n_parked, memory_order_relaxed);
    if (n_leased == w->slots->n_slots && n_parked > 0)
        return pstk__fail(err, PSTK_ENOBUFS, PSTK_STAGE_CONSUMER,
                          "all %u slots are in use, %u of them released while their stream was "
                          "being captured into a graph: end the capture first, or raise "
                          "n_device_slots",
                          w->slots->n_slots, n_parked);
    if (n_leased == w->slots->n_slots)
        return pstk__fail(err, PSTK_ENOBUFS, PSTK_STAGE_CONSUMER,
                          "all %u slots are leased: release a batch first, or raise %s",
                          w->slots->n_slots, w->filled ? "n_device_slots" : "n_slots");
    if (left_ns == 0)
        return pstk__fail(err, PSTK_ETIMEDOUT, PSTK_STAGE_CONSUMER,
                          "no batch was ready within the timeout");
    return 0;
}

static int wait_take(struct pstk__window *w, struct pstk__slot **out, void *stream,
                     int64_t timeout_ns, struct pstk_error *err)
{
    uint64_t start = pstk__clock_ns();
    for (;;) {
        uint32_t ticket = pstk__gate_ticket(&w->delivery);
        int r = try_take(w, out, stream, timeout_ns == 0, err);
        if (r != -EAGAIN)
            return r;
        int64_t left = -1;
        if (timeout_ns >= 0) {
            uint64_t passed = pstk__clock_ns() - start;
            left = passed < (uint64_t)timeout_ns ? timeout_ns - (int64_t)passed : 0;
        }
        r = why_not(w, left, err);
        if (r < 0)
            return r;
        pstk__gate_wait(&w->delivery, ticket, left);
    }
}

int pstk__window_take(struct pstk__window *w, struct pstk__slot **out, void *stream,
                      int64_t timeout_ns, uint64_t *waited_ns, struct pstk_error *err)
{
    *out = NULL;
    pthread_mutex_lock(&w->lock);
    struct pstk__cursor next = normal(w, w->deliver);
    int at_end = !w->failed && next.epoch != w->deliver.epoch;
    if (at_end)
        w->deliver = next;
    pthread_mutex_unlock(&w->lock);
    int r = at_end ? 0 : try_take(w, out, stream, timeout_ns == 0, err);
    if (r != -EAGAIN)
        return r;
    uint64_t start = pstk__clock_ns();
    r = wait_take(w, out, stream, timeout_ns, err);
    *waited_ns += pstk__clock_ns() - start;
    return r;
}

static void drop_all(struct pstk__slot **array, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (array[i])
            pstk__slot_drop(array[i]);
        array[i] = NULL;
    }
}

void pstk__window_seek(struct pstk__window *w, struct pstk__cursor to)
{
    pthread_mutex_lock(&w->lock);
    struct pstk__cursor at = normal(w, w->deliver), want = normal(w, to);
    if (!w->failed && at.epoch == want.epoch && at.position == want.position) {
        w->deliver = to;
        pthread_mutex_unlock(&w->lock);
        return;
    }
    w->failed = 0;
    w->claim = w->deliver = to;
    w->deliver_seq = w->upload_seq = w->claim_seq;
    atomic_fetch_add_explicit(&w->generation, 1, memory_order_relaxed);
    drop_all(w->ready, w->slots->n_slots);
    if (w->filled)
        drop_all(w->filled, w->filled_slots->n_slots);
    pthread_mutex_unlock(&w->lock);
}

struct pstk__cursor pstk__window_cursor(struct pstk__window *w)
{
    pthread_mutex_lock(&w->lock);
    struct pstk__cursor c = w->deliver;
    pthread_mutex_unlock(&w->lock);
    return c;
}

void pstk__window_interrupt(struct pstk__window *w)
{
    /* Release: pairs with the exchange in why_not. */
    atomic_store_explicit(&w->interrupted, 1, memory_order_release);
    pstk__gate_knock(&w->delivery);
}
