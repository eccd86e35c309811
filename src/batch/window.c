/* SPDX-License-Identifier: Apache-2.0 */
#include "batch/window.h"

#include "base/clock.h"
#include "base/error.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int pstk__window_open(struct pstk__window *window, struct pstk__slots *filled,
                      struct pstk__slots *slots, const struct pstk__partition *partition,
                      struct pstk__epochs *epochs, struct pstk__cursor start,
                      struct pstk_error *err)
{
    *window = (struct pstk__window){.filled_slots = filled,
                                    .slots = slots,
                                    .partition = *partition,
                                    .epochs = epochs,
                                    .claim = start,
                                    .deliver = start};
    window->deliver_over = epochs && pstk__epochs_is_over(epochs, start.epoch, start.position);
    pstk__eventcount_init(&window->delivery);
    pstk__eventcount_init(&window->uploads);
    window->ready = calloc(slots->n_slots, sizeof *window->ready);
    if (filled != slots)
        window->filled = calloc(filled->n_slots, sizeof *window->filled);
    if (!window->ready || (filled != slots && !window->filled) ||
        pthread_mutex_init(&window->lock, NULL) != 0) {
        free(window->filled);
        free(window->ready);
        window->filled = window->ready = NULL;
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the window");
    }
    return 0;
}

void pstk__window_close(struct pstk__window *window)
{
    if (!window->ready)
        return;
    pthread_mutex_destroy(&window->lock);
    free(window->filled);
    free(window->ready);
    window->filled = window->ready = NULL;
}

/* Positions past the last batch of an epoch are the start of the next one. Open made sure that a
 * whole epoch has a batch, so this loop ends. */
static struct pstk__cursor normal(const struct pstk__window *window, struct pstk__cursor cursor)
{
    if (window->epochs)
        return pstk__epochs_is_over(window->epochs, cursor.epoch, cursor.position)
                   ? (struct pstk__cursor){.epoch = cursor.epoch + 1}
                   : cursor;
    if (pstk__schedule_n_batches(&window->partition, cursor.epoch, cursor.position) == 0)
        return (struct pstk__cursor){.epoch = cursor.epoch + 1};
    return cursor;
}

/* With the lock: give a slot the next batch of a budget's stream. */
static void claim_cut(struct pstk__window *window, struct pstk__slot *slot)
{
    struct pstk__cut cut;
    pstk__epochs_cut(window->epochs, window->claim.epoch, window->claim.position, &cut,
                     slot->places);
    slot->batch.index = cut.index;
    slot->batch.next_position = cut.next_position;
    slot->batch.n_rows = slot->batch.n_valid = cut.n_rows;
    slot->first = cut.first;
    slot->is_last = cut.is_last;
}

/* With the lock: give a slot the next batch of equal ones. */
static void claim_rows(struct pstk__window *window, struct pstk__slot *slot)
{
    const struct pstk__partition here = pstk__schedule_at(
        &window->partition, window->claim.epoch, window->claim.position, &slot->batch.index);
    const uint64_t position = window->claim.position, rest = here.n - position;
    slot->batch.next_position = rest < here.global_batch ? here.n : position + here.global_batch;
    slot->batch.n_rows = (uint32_t)pstk__partition_rows(&here);
    slot->batch.n_valid = pstk__partition_n_valid(&here, position);
}

/* Called by readers, holding nothing. Streams of a budget are made without the lock, which the
 * consumer needs. A seek may come in between: then the one that misses is made under it. */
static void make_stream(struct pstk__window *window)
{
    pthread_mutex_lock(&window->lock);
    struct pstk__cursor claim = window->claim;
    pthread_mutex_unlock(&window->lock);
    claim = normal(window, claim);
    pstk__epochs_make(window->epochs, claim.epoch);
}

/* Called by every lane's reader, holding nothing. Under the lock batches are numbered in the order
 * of the stream, whichever lane comes first. */
void pstk__window_claim(struct pstk__window *window, struct pstk__slot *slot)
{
    if (window->epochs)
        make_stream(window);
    pthread_mutex_lock(&window->lock);
    window->claim = normal(window, window->claim);
    slot->seq = window->claim_seq++;
    slot->generation = atomic_load_explicit(&window->generation, memory_order_relaxed);
    slot->batch.epoch = window->claim.epoch;
    slot->batch.position = window->claim.position;
    if (window->epochs)
        claim_cut(window, slot);
    else
        claim_rows(window, slot);
    window->claim.position = slot->batch.next_position;
    pthread_mutex_unlock(&window->lock);
}

/* Called by readers, workers and the uploader, with or without the lock, for a slot that is theirs.
 */
int pstk__window_stale(struct pstk__window *window, const struct pstk__slot *slot)
{
    /* Relaxed: a late look only means some work in vain. */
    return atomic_load_explicit(&window->generation, memory_order_relaxed) != slot->generation;
}

/* Called by the last worker of a slot, and by the uploader; holding nothing. Put a slot in its
 * place of the array, or drop it. `next_seq`: the only batch that the thread at the eventcount
 * waits for.
 */
static void put(struct pstk__window *window, struct pstk__slot *slot, struct pstk__slot **array,
                const uint64_t *next_seq, struct pstk__eventcount *eventcount)
{
    pthread_mutex_lock(&window->lock);
    int stale = pstk__window_stale(window, slot);
    int next = !stale && slot->seq == *next_seq;
    if (!stale)
        array[slot->seq % slot->pool->n_slots] = slot;
    pthread_mutex_unlock(&window->lock);
    if (stale)
        pstk__slot_drop(slot);
    else if (next)
        pstk__eventcount_notify(eventcount);
}

void pstk__window_put(struct pstk__window *window, struct pstk__slot *slot)
{
    if (window->filled)
        put(window, slot, window->filled, &window->upload_seq, &window->uploads);
    else
        put(window, slot, window->ready, &window->deliver_seq, &window->delivery);
}

/* Called by the uploader, holding nothing. */
struct pstk__slot *pstk__window_take_filled(struct pstk__window *window)
{
    pthread_mutex_lock(&window->lock);
    struct pstk__slot **place = &window->filled[window->upload_seq % window->filled_slots->n_slots],
                      *slot = *place;
    if (slot) {
        assert(slot->seq == window->upload_seq);
        *place = NULL;
        window->upload_seq++;
        pstk__slot_copy(slot); /* under the lock: a seek drops what it finds in the array */
    }
    pthread_mutex_unlock(&window->lock);
    return slot;
}

void pstk__window_put_loaded(struct pstk__window *window, struct pstk__slot *slot)
{
    put(window, slot, window->ready, &window->deliver_seq, &window->delivery);
}

/* Called by a lane's reader or by the uploader, before it ends; holding nothing. The first one's
 * error stays. */
static void fail(struct pstk__window *window, const struct pstk_error *err, int uploads_over)
{
    pthread_mutex_lock(&window->lock);
    if (!window->fatal.code)
        window->fatal = *err;
    window->uploads_over |= uploads_over;
    pthread_mutex_unlock(&window->lock);
    pstk__eventcount_notify(&window->delivery);
}

void pstk__window_fail(struct pstk__window *window, const struct pstk_error *err)
{
    fail(window, err, 0);
}

void pstk__window_fail_uploads(struct pstk__window *window, const struct pstk_error *err)
{
    fail(window, err, 1);
}

/* With the lock: will the uploader put in the batch that comes next? */
static int is_uploading(const struct pstk__window *window)
{
    return window->filled && !window->uploads_over &&
           (window->upload_seq > window->deliver_seq ||
            window->filled[window->deliver_seq % window->filled_slots->n_slots]);
}

/* With the lock: the batch that comes next is taken out. */
static void advance(struct pstk__window *window)
{
    window->ready[window->deliver_seq % window->slots->n_slots] = NULL;
    window->deliver_seq++;
}

/* Called by the consumer, holding nothing.
 * Find what comes next: 1 and the slot, a result of take, or -EAGAIN: wait. */
static int look(struct pstk__window *window, struct pstk__slot **out, struct pstk_error *err)
{
    int r = 1;
    pthread_mutex_lock(&window->lock);
    struct pstk__slot *slot = window->ready[window->deliver_seq % window->slots->n_slots];
    if (window->failed) {
        r = pstk__fail_copy(err, &window->error);
    } else if (!slot && window->fatal.code && !is_uploading(window)) {
        window->failed = 1;
        window->error = window->fatal;
        r = pstk__fail_copy(err, &window->error);
    } else if (!slot) {
        r = -EAGAIN;
    } else if (slot->failed_row != UINT32_MAX) {
        /* The cursor stays at this batch: the caller may seek past it, or to it again. */
        window->failed = 1;
        window->error = slot->error;
        advance(window);
        pstk__slot_drop(slot);
        r = pstk__fail_copy(err, &window->error);
    } else {
        assert(slot->seq == window->deliver_seq);
        *out = slot;
    }
    pthread_mutex_unlock(&window->lock);
    return r;
}

/* Look once, without waiting: a result of take, or -EAGAIN: wait. It asks the device without the
 * lock, which the other threads need: only this thread takes batches or seeks. */
static int try_take(struct pstk__window *window, struct pstk__slot **out, void *stream, int quick,
                    struct pstk_error *err)
{
    struct pstk__slot *slot = NULL;
    int r = look(window, &slot, err);
    if (r != 1)
        return r;
    r = pstk__slot_lease(slot, stream, quick, err);
    if (r < 0) /* the stream is refused, or busy: the batch stays for the next call */
        return r;
    pthread_mutex_lock(&window->lock);
    advance(window);
    window->deliver = (struct pstk__cursor){slot->batch.epoch, slot->batch.next_position};
    window->deliver_over = slot->is_last;
    pthread_mutex_unlock(&window->lock);
    *out = slot;
    return 1;
}

/* The result when nothing is ready: an interrupt, every slot leased, time over; 0: wait. */
static int why_not(struct pstk__window *window, int64_t left_ns, struct pstk_error *err)
{
    if (atomic_exchange_explicit(&window->interrupted, 0, memory_order_acquire))
        return pstk__fail(err, PSTK_EINTR, PSTK_STAGE_CONSUMER, "interrupted while waiting");
    uint32_t n_leased = atomic_load_explicit(&window->slots->n_leased, memory_order_relaxed);
    uint32_t n_parked = atomic_load_explicit(&window->slots->n_parked, memory_order_relaxed);
    if (n_leased == window->slots->n_slots && n_parked > 0)
        return pstk__fail(err, PSTK_ENOBUFS, PSTK_STAGE_CONSUMER,
                          "all %u slots are in use, %u of them released while their stream was "
                          "being captured into a graph: end the capture first, or raise "
                          "n_device_slots",
                          window->slots->n_slots, n_parked);
    if (n_leased == window->slots->n_slots)
        return pstk__fail(err, PSTK_ENOBUFS, PSTK_STAGE_CONSUMER,
                          "all %u slots are leased: release a batch first, or raise %s",
                          window->slots->n_slots, window->filled ? "n_device_slots" : "n_slots");
    if (left_ns == 0)
        return pstk__fail(err, PSTK_ETIMEDOUT, PSTK_STAGE_CONSUMER,
                          "no batch was ready within the timeout");
    return 0;
}

static int wait_take(struct pstk__window *window, struct pstk__slot **out, void *stream,
                     int64_t timeout_ns, struct pstk_error *err)
{
    uint64_t start = pstk__clock_ns();
    for (;;) {
        uint32_t ticket = pstk__eventcount_ticket(&window->delivery);
        int r = try_take(window, out, stream, timeout_ns == 0, err);
        if (r != -EAGAIN)
            return r;
        int64_t left = -1;
        if (timeout_ns >= 0) {
            uint64_t passed = pstk__clock_ns() - start;
            left = passed < (uint64_t)timeout_ns ? timeout_ns - (int64_t)passed : 0;
        }
        r = why_not(window, left, err);
        if (r < 0)
            return r;
        pstk__eventcount_wait(&window->delivery, ticket, left);
    }
}

/* With the lock: where the batch is that comes next. With a budget the batch that was taken last,
 * or a seek, has said so: the consumer waits for no stream. */
static struct pstk__cursor next_of(const struct pstk__window *window)
{
    if (!window->epochs)
        return normal(window, window->deliver);
    return window->deliver_over ? (struct pstk__cursor){.epoch = window->deliver.epoch + 1}
                                : window->deliver;
}

int pstk__window_take(struct pstk__window *window, struct pstk__slot **out, void *stream,
                      int64_t timeout_ns, uint64_t *waited_ns, struct pstk_error *err)
{
    *out = NULL;
    pthread_mutex_lock(&window->lock);
    struct pstk__cursor next = next_of(window);
    int at_end = !window->failed && next.epoch != window->deliver.epoch;
    if (at_end) {
        window->deliver = next;
        window->deliver_over = 0;
    }
    pthread_mutex_unlock(&window->lock);
    int r = at_end ? 0 : try_take(window, out, stream, timeout_ns == 0, err);
    if (r != -EAGAIN)
        return r;
    uint64_t start = pstk__clock_ns();
    r = wait_take(window, out, stream, timeout_ns, err);
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

/* With the lock: begin a new generation at `to`. It drops batches that were put in here; readers,
 * workers and the uploader find the slots that they hold stale. */
static void restart(struct pstk__window *window, struct pstk__cursor to)
{
    window->claim = window->deliver = to;
    window->deliver_seq = window->upload_seq = window->claim_seq;
    atomic_fetch_add_explicit(&window->generation, 1, memory_order_relaxed);
    drop_all(window->ready, window->slots->n_slots);
    if (window->filled)
        drop_all(window->filled, window->filled_slots->n_slots);
}

/* Called by the consumer, holding nothing. */
void pstk__window_seek(struct pstk__window *window, struct pstk__cursor to)
{
    const struct pstk__cursor want = normal(window, to);
    pthread_mutex_lock(&window->lock);
    const struct pstk__cursor at = next_of(window);
    window->deliver_over = want.epoch != to.epoch;
    if (!window->failed && at.epoch == want.epoch && at.position == want.position) {
        window->deliver = to;
        pthread_mutex_unlock(&window->lock);
        return;
    }
    window->failed = 0;
    restart(window, to);
    pthread_mutex_unlock(&window->lock);
}

/* Called by the consumer, holding nothing. An error of a sample stays until a seek. */
void pstk__window_resize(struct pstk__window *window, uint64_t global_batch)
{
    pthread_mutex_lock(&window->lock);
    if (window->partition.global_batch != global_batch) {
        window->partition.global_batch = global_batch;
        restart(window, window->deliver);
    }
    pthread_mutex_unlock(&window->lock);
}

uint64_t pstk__window_n_left(struct pstk__window *window, uint64_t epoch, uint64_t position)
{
    if (window->epochs)
        return pstk__epochs_n_steps(window->epochs, epoch, position);
    pthread_mutex_lock(&window->lock);
    const uint64_t n = pstk__schedule_n_batches(&window->partition, epoch, position);
    pthread_mutex_unlock(&window->lock);
    return n;
}

uint64_t pstk__window_n_batches(struct pstk__window *window)
{
    if (window->epochs)
        return pstk__epochs_n_steps(window->epochs, pstk__window_cursor(window).epoch, 0);
    pthread_mutex_lock(&window->lock);
    const uint64_t n = pstk__schedule_n_batches(&window->partition, window->deliver.epoch, 0);
    pthread_mutex_unlock(&window->lock);
    return n;
}

struct pstk__cursor pstk__window_cursor(struct pstk__window *window)
{
    pthread_mutex_lock(&window->lock);
    struct pstk__cursor cursor = window->deliver;
    pthread_mutex_unlock(&window->lock);
    return cursor;
}

/* Called by any thread or a signal handler: no lock, only atomics and a futex. */
void pstk__window_interrupt(struct pstk__window *window)
{
    /* Release: pairs with the exchange in why_not. */
    atomic_store_explicit(&window->interrupted, 1, memory_order_release);
    pstk__eventcount_notify(&window->delivery);
}
