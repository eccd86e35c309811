/* SPDX-License-Identifier: Apache-2.0 */
#include "batch/reorder.h"

#include "base/clock.h"
#include "base/error.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int pstk__reorder_open(struct pstk__reorder_buffer *reorder, struct pstk__slots *filled,
                       struct pstk__slots *slots, const struct pstk__partition *partition,
                       struct pstk__epochs *epochs, struct pstk__cursor start,
                       struct pstk_error *err)
{
    *reorder = (struct pstk__reorder_buffer){.filled_slots = filled,
                                             .slots = slots,
                                             .partition = *partition,
                                             .epochs = epochs,
                                             .claim = start,
                                             .deliver = start};
    reorder->deliver_over = epochs && pstk__epochs_is_over(epochs, start.epoch, start.position);
    pstk__eventcount_init(&reorder->delivery);
    pstk__eventcount_init(&reorder->uploads);
    reorder->ready = calloc(slots->n_slots, sizeof *reorder->ready);
    if (filled != slots)
        reorder->filled = calloc(filled->n_slots, sizeof *reorder->filled);
    if (!reorder->ready || (filled != slots && !reorder->filled) ||
        pthread_mutex_init(&reorder->lock, NULL) != 0) {
        free(reorder->filled);
        free(reorder->ready);
        reorder->filled = reorder->ready = NULL;
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the reorder buffer");
    }
    return 0;
}

void pstk__reorder_close(struct pstk__reorder_buffer *reorder)
{
    if (!reorder->ready)
        return;
    pthread_mutex_destroy(&reorder->lock);
    free(reorder->filled);
    free(reorder->ready);
    reorder->filled = reorder->ready = NULL;
}

/* Move a position past the last batch of an epoch to the start of the next one. The loop ends,
 * because open checked that a whole epoch has a batch. */
static struct pstk__cursor normal(const struct pstk__reorder_buffer *reorder,
                                  struct pstk__cursor cursor)
{
    if (reorder->epochs)
        return pstk__epochs_is_over(reorder->epochs, cursor.epoch, cursor.position)
                   ? (struct pstk__cursor){.epoch = cursor.epoch + 1}
                   : cursor;
    if (pstk__schedule_n_batches(&reorder->partition, cursor.epoch, cursor.position) == 0)
        return (struct pstk__cursor){.epoch = cursor.epoch + 1};
    return cursor;
}

/* Give a slot the next batch of a budget's stream. The caller holds the lock. */
static void claim_cut(struct pstk__reorder_buffer *reorder, struct pstk__slot *slot)
{
    struct pstk__cut cut;
    pstk__epochs_cut(reorder->epochs, reorder->claim.epoch, reorder->claim.position, &cut,
                     slot->places);
    slot->batch.index = cut.index;
    slot->batch.next_position = cut.next_position;
    slot->batch.n_rows = slot->batch.n_valid = cut.n_rows;
    slot->first = cut.first;
    slot->is_last = cut.is_last;
}

/* Give a slot the next of the batches of equal size. The caller holds the lock. */
static void claim_rows(struct pstk__reorder_buffer *reorder, struct pstk__slot *slot)
{
    const struct pstk__partition here = pstk__schedule_at(
        &reorder->partition, reorder->claim.epoch, reorder->claim.position, &slot->batch.index);
    const uint64_t position = reorder->claim.position, rest = here.n - position;
    slot->batch.next_position = rest < here.global_batch ? here.n : position + here.global_batch;
    slot->batch.n_rows = (uint32_t)pstk__partition_rows(&here);
    slot->batch.n_valid = pstk__partition_n_valid(&here, position);
}

/* Make the stream of the next claim. Called by readers, holding nothing: it is made without the
 * lock, which the consumer needs. If a seek comes in between, the missing stream is made under the
 * lock. */
static void make_stream(struct pstk__reorder_buffer *reorder)
{
    pthread_mutex_lock(&reorder->lock);
    struct pstk__cursor claim = reorder->claim;
    pthread_mutex_unlock(&reorder->lock);
    claim = normal(reorder, claim);
    pstk__epochs_make(reorder->epochs, claim.epoch);
}

/* Called by every lane's reader, holding nothing. The lock numbers batches in the order of the
 * stream, whichever lane comes first. */
void pstk__reorder_claim(struct pstk__reorder_buffer *reorder, struct pstk__slot *slot)
{
    if (reorder->epochs)
        make_stream(reorder);
    pthread_mutex_lock(&reorder->lock);
    reorder->claim = normal(reorder, reorder->claim);
    slot->seq = reorder->claim_seq++;
    slot->generation = atomic_load_explicit(&reorder->generation, memory_order_relaxed);
    slot->batch.epoch = reorder->claim.epoch;
    slot->batch.position = reorder->claim.position;
    if (reorder->epochs)
        claim_cut(reorder, slot);
    else
        claim_rows(reorder, slot);
    reorder->claim.position = slot->batch.next_position;
    pthread_mutex_unlock(&reorder->lock);
}

/* Called by readers, workers and the uploader, with or without the lock, for a slot that they own.
 */
int pstk__reorder_stale(struct pstk__reorder_buffer *reorder, const struct pstk__slot *slot)
{
    /* Relaxed: a late check only wastes some work. */
    return atomic_load_explicit(&reorder->generation, memory_order_relaxed) != slot->generation;
}

/* Put a slot in its position of the array, or drop it. Called by the last worker of a slot, and by
 * the uploader; holding nothing. next_seq: the only batch that the thread at the eventcount waits
 * for. */
static void put(struct pstk__reorder_buffer *reorder, struct pstk__slot *slot,
                struct pstk__slot **array, const uint64_t *next_seq,
                struct pstk__eventcount *eventcount)
{
    pthread_mutex_lock(&reorder->lock);
    int stale = pstk__reorder_stale(reorder, slot);
    int next = !stale && slot->seq == *next_seq;
    if (!stale)
        array[slot->seq % slot->pool->n_slots] = slot;
    pthread_mutex_unlock(&reorder->lock);
    if (stale)
        pstk__slot_drop(slot);
    else if (next)
        pstk__eventcount_notify(eventcount);
}

void pstk__reorder_put(struct pstk__reorder_buffer *reorder, struct pstk__slot *slot)
{
    if (reorder->filled)
        put(reorder, slot, reorder->filled, &reorder->upload_seq, &reorder->uploads);
    else
        put(reorder, slot, reorder->ready, &reorder->deliver_seq, &reorder->delivery);
}

/* Called by the uploader, holding nothing. */
struct pstk__slot *pstk__reorder_take_filled(struct pstk__reorder_buffer *reorder)
{
    pthread_mutex_lock(&reorder->lock);
    struct pstk__slot **place =
                          &reorder->filled[reorder->upload_seq % reorder->filled_slots->n_slots],
                      *slot = *place;
    if (slot) {
        assert(slot->seq == reorder->upload_seq);
        *place = NULL;
        reorder->upload_seq++;
        pstk__slot_copy(slot); /* under the lock, because a seek drops every slot in the array */
    }
    pthread_mutex_unlock(&reorder->lock);
    return slot;
}

void pstk__reorder_put_loaded(struct pstk__reorder_buffer *reorder, struct pstk__slot *slot)
{
    put(reorder, slot, reorder->ready, &reorder->deliver_seq, &reorder->delivery);
}

/* Called by a lane's reader or by the uploader, before it ends; holding nothing. The first error
 * stays. */
static void fail(struct pstk__reorder_buffer *reorder, const struct pstk_error *err,
                 int uploads_over)
{
    pthread_mutex_lock(&reorder->lock);
    if (!reorder->fatal.code)
        reorder->fatal = *err;
    reorder->uploads_over |= uploads_over;
    pthread_mutex_unlock(&reorder->lock);
    pstk__eventcount_notify(&reorder->delivery);
}

void pstk__reorder_fail(struct pstk__reorder_buffer *reorder, const struct pstk_error *err)
{
    fail(reorder, err, 0);
}

void pstk__reorder_fail_uploads(struct pstk__reorder_buffer *reorder, const struct pstk_error *err)
{
    fail(reorder, err, 1);
}

/* Return 1 if the uploader will put the next batch in. The caller holds the lock. */
static int is_uploading(const struct pstk__reorder_buffer *reorder)
{
    return reorder->filled && !reorder->uploads_over &&
           (reorder->upload_seq > reorder->deliver_seq ||
            reorder->filled[reorder->deliver_seq % reorder->filled_slots->n_slots]);
}

/* Move past the next batch, which was taken out. The caller holds the lock. */
static void advance(struct pstk__reorder_buffer *reorder)
{
    reorder->ready[reorder->deliver_seq % reorder->slots->n_slots] = NULL;
    reorder->deliver_seq++;
}

/* Find the next batch. Called by the consumer, holding nothing. Returns 1 and the slot, a result of
 * take, or -EAGAIN: wait. */
static int look(struct pstk__reorder_buffer *reorder, struct pstk__slot **out,
                struct pstk_error *err)
{
    int r = 1;
    pthread_mutex_lock(&reorder->lock);
    struct pstk__slot *slot = reorder->ready[reorder->deliver_seq % reorder->slots->n_slots];
    if (reorder->failed) {
        r = pstk__fail_copy(err, &reorder->error);
    } else if (!slot && reorder->fatal.code && !is_uploading(reorder)) {
        reorder->failed = 1;
        reorder->error = reorder->fatal;
        r = pstk__fail_copy(err, &reorder->error);
    } else if (!slot) {
        r = -EAGAIN;
    } else if (slot->failed_row != UINT32_MAX) {
        /* The cursor stays at this batch: the caller may seek past it, or to it again. */
        reorder->failed = 1;
        reorder->error = slot->error;
        advance(reorder);
        pstk__slot_drop(slot);
        r = pstk__fail_copy(err, &reorder->error);
    } else {
        assert(slot->seq == reorder->deliver_seq);
        *out = slot;
    }
    pthread_mutex_unlock(&reorder->lock);
    return r;
}

/* Check once, without waiting. Returns a result of take, or -EAGAIN: wait. It asks the device
 * without the lock, which the other threads need: only this thread takes batches or seeks. */
static int try_take(struct pstk__reorder_buffer *reorder, struct pstk__slot **out, void *stream,
                    int quick, struct pstk_error *err)
{
    struct pstk__slot *slot = NULL;
    int r = look(reorder, &slot, err);
    if (r != 1)
        return r;
    r = pstk__slot_lease(slot, stream, quick, err);
    if (r < 0) /* the stream is refused, or busy; the batch stays for the next call */
        return r;
    pthread_mutex_lock(&reorder->lock);
    advance(reorder);
    reorder->deliver = (struct pstk__cursor){slot->batch.epoch, slot->batch.next_position};
    reorder->deliver_over = slot->is_last;
    pthread_mutex_unlock(&reorder->lock);
    *out = slot;
    return 1;
}

/* Return the reason why nothing is ready: an interrupt, every slot leased, time over; 0: wait. */
static int why_not(struct pstk__reorder_buffer *reorder, int64_t left_ns, struct pstk_error *err)
{
    if (atomic_exchange_explicit(&reorder->interrupted, 0, memory_order_acquire))
        return pstk__fail(err, PSTK_EINTR, PSTK_STAGE_CONSUMER, "interrupted while waiting");
    uint32_t n_leased = atomic_load_explicit(&reorder->slots->n_leased, memory_order_relaxed);
    uint32_t n_parked = atomic_load_explicit(&reorder->slots->n_parked, memory_order_relaxed);
    if (n_leased == reorder->slots->n_slots && n_parked > 0)
        return pstk__fail(err, PSTK_ENOBUFS, PSTK_STAGE_CONSUMER,
                          "all %u slots are in use, %u of them released while their stream was "
                          "being captured into a graph: end the capture first, or raise "
                          "n_device_slots",
                          reorder->slots->n_slots, n_parked);
    if (n_leased == reorder->slots->n_slots)
        return pstk__fail(err, PSTK_ENOBUFS, PSTK_STAGE_CONSUMER,
                          "all %u slots are leased: release a batch first, or raise %s",
                          reorder->slots->n_slots, reorder->filled ? "n_device_slots" : "n_slots");
    if (left_ns == 0)
        return pstk__fail(err, PSTK_ETIMEDOUT, PSTK_STAGE_CONSUMER,
                          "no batch was ready within the timeout");
    return 0;
}

static int wait_take(struct pstk__reorder_buffer *reorder, struct pstk__slot **out, void *stream,
                     int64_t timeout_ns, struct pstk_error *err)
{
    uint64_t start = pstk__clock_ns();
    for (;;) {
        uint32_t ticket = pstk__eventcount_ticket(&reorder->delivery);
        int r = try_take(reorder, out, stream, timeout_ns == 0, err);
        if (r != -EAGAIN)
            return r;
        int64_t left = -1;
        if (timeout_ns >= 0) {
            uint64_t passed = pstk__clock_ns() - start;
            left = passed < (uint64_t)timeout_ns ? timeout_ns - (int64_t)passed : 0;
        }
        r = why_not(reorder, left, err);
        if (r < 0)
            return r;
        pstk__eventcount_wait(&reorder->delivery, ticket, left);
    }
}

/* Return the position of the next batch. The caller holds the lock. With a budget, the last take or
 * seek has stored it, so the consumer waits for no stream. */
static struct pstk__cursor next_of(const struct pstk__reorder_buffer *reorder)
{
    if (!reorder->epochs)
        return normal(reorder, reorder->deliver);
    return reorder->deliver_over ? (struct pstk__cursor){.epoch = reorder->deliver.epoch + 1}
                                 : reorder->deliver;
}

int pstk__reorder_take(struct pstk__reorder_buffer *reorder, struct pstk__slot **out, void *stream,
                       int64_t timeout_ns, uint64_t *waited_ns, struct pstk_error *err)
{
    *out = NULL;
    pthread_mutex_lock(&reorder->lock);
    struct pstk__cursor next = next_of(reorder);
    int at_end = !reorder->failed && next.epoch != reorder->deliver.epoch;
    if (at_end) {
        reorder->deliver = next;
        reorder->deliver_over = 0;
    }
    pthread_mutex_unlock(&reorder->lock);
    int r = at_end ? 0 : try_take(reorder, out, stream, timeout_ns == 0, err);
    if (r != -EAGAIN)
        return r;
    uint64_t start = pstk__clock_ns();
    r = wait_take(reorder, out, stream, timeout_ns, err);
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

/* Begin a new generation at `to`. The caller holds the lock. This drops the batches that were put
 * in; readers, workers and the uploader find the slots that they hold stale. */
static void restart(struct pstk__reorder_buffer *reorder, struct pstk__cursor to)
{
    reorder->claim = reorder->deliver = to;
    reorder->deliver_seq = reorder->upload_seq = reorder->claim_seq;
    atomic_fetch_add_explicit(&reorder->generation, 1, memory_order_relaxed);
    drop_all(reorder->ready, reorder->slots->n_slots);
    if (reorder->filled)
        drop_all(reorder->filled, reorder->filled_slots->n_slots);
}

/* Called by the consumer, holding nothing. */
void pstk__reorder_seek(struct pstk__reorder_buffer *reorder, struct pstk__cursor to)
{
    const struct pstk__cursor want = normal(reorder, to);
    pthread_mutex_lock(&reorder->lock);
    const struct pstk__cursor at = next_of(reorder);
    reorder->deliver_over = want.epoch != to.epoch;
    if (!reorder->failed && at.epoch == want.epoch && at.position == want.position) {
        reorder->deliver = to;
        pthread_mutex_unlock(&reorder->lock);
        return;
    }
    reorder->failed = 0;
    restart(reorder, to);
    pthread_mutex_unlock(&reorder->lock);
}

/* Called by the consumer, holding nothing. An error of a sample stays until a seek. */
void pstk__reorder_resize(struct pstk__reorder_buffer *reorder, uint64_t global_batch)
{
    pthread_mutex_lock(&reorder->lock);
    if (reorder->partition.global_batch != global_batch) {
        reorder->partition.global_batch = global_batch;
        restart(reorder, reorder->deliver);
    }
    pthread_mutex_unlock(&reorder->lock);
}

uint64_t pstk__reorder_n_left(struct pstk__reorder_buffer *reorder, uint64_t epoch,
                              uint64_t position)
{
    if (reorder->epochs)
        return pstk__epochs_n_steps(reorder->epochs, epoch, position);
    pthread_mutex_lock(&reorder->lock);
    const uint64_t n = pstk__schedule_n_batches(&reorder->partition, epoch, position);
    pthread_mutex_unlock(&reorder->lock);
    return n;
}

uint64_t pstk__reorder_n_batches(struct pstk__reorder_buffer *reorder)
{
    if (reorder->epochs)
        return pstk__epochs_n_steps(reorder->epochs, pstk__reorder_cursor(reorder).epoch, 0);
    pthread_mutex_lock(&reorder->lock);
    const uint64_t n = pstk__schedule_n_batches(&reorder->partition, reorder->deliver.epoch, 0);
    pthread_mutex_unlock(&reorder->lock);
    return n;
}

struct pstk__cursor pstk__reorder_cursor(struct pstk__reorder_buffer *reorder)
{
    pthread_mutex_lock(&reorder->lock);
    struct pstk__cursor cursor = reorder->deliver;
    pthread_mutex_unlock(&reorder->lock);
    return cursor;
}

/* Called by any thread or a signal handler: it takes no lock, and uses only atomics and a futex. */
void pstk__reorder_interrupt(struct pstk__reorder_buffer *reorder)
{
    /* Release: pairs with the exchange in why_not. */
    atomic_store_explicit(&reorder->interrupted, 1, memory_order_release);
    pstk__eventcount_notify(&reorder->delivery);
}
