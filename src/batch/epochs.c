/* SPDX-License-Identifier: Apache-2.0 */
#include "batch/epochs.h"

#include "base/error.h"

#include <stdlib.h>

/* Return a * b + c, at most UINT64_MAX. */
static uint64_t grown(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t result;
    return __builtin_mul_overflow(a, b, &result) || __builtin_add_overflow(result, c, &result)
               ? UINT64_MAX
               : result;
}

uint64_t pstk__epochs_size(const struct pstk__bucketing *bucketing)
{
    const uint64_t size = pstk__bucketing_is_wide(bucketing) ? sizeof(uint64_t) : sizeof(uint32_t);
    uint64_t all = bucketing->n_buckets * (sizeof(struct pstk__open_batch) + sizeof(uint32_t));
    all = grown(2 * sizeof(uint64_t), bucketing->max_batches + 1, all);
    all = grown(2 * size, bucketing->n_kept, all);
    return grown(size, bucketing->n_room, all);
}

int pstk__epochs_open(struct pstk__epochs *epochs, const struct pstk__partition *partition,
                      struct pstk_error *err)
{
    const struct pstk__bucketing *b = &epochs->bucketing;
    const uint64_t size = pstk__bucketing_is_wide(b) ? sizeof(uint64_t) : sizeof(uint32_t);
    const uint64_t whole = pstk__epochs_size(b);
    epochs->partition = partition;
    pstk__picker_init(&epochs->picker, b->picks);
    epochs->memory = whole < SIZE_MAX ? malloc(whole) : NULL;
    if (!epochs->memory)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                          "no memory for %llu bytes of batches by a budget",
                          (unsigned long long)whole);
    /* Arrays with the larger alignment come first. */
    uint8_t *at = epochs->memory;
    epochs->work.open = (struct pstk__open_batch *)(void *)at;
    at += b->n_buckets * sizeof(struct pstk__open_batch);
    for (int i = 0; i < 2; i++) {
        epochs->of[i].stream.begins = (uint64_t *)(void *)at;
        at += (b->max_batches + 1) * sizeof(uint64_t);
    }
    for (int i = 0; i < 2; i++) {
        epochs->of[i].stream.positions = at;
        at += b->n_kept * size;
    }
    epochs->work.rows = at;
    at += b->n_room * size;
    epochs->work.sorted = (uint32_t *)(void *)at;
    return 0;
}

void pstk__epochs_close(struct pstk__epochs *epochs)
{
    if (!epochs)
        return;
    free(epochs->memory);
    free(epochs->costs);
    pthread_mutex_destroy(&epochs->build);
    pthread_mutex_destroy(&epochs->lock);
    free(epochs);
}

/* The caller holds the lock. */
static int is_ready(const struct pstk__epochs *epochs, uint64_t epoch)
{
    return epochs->of[epoch & 1].is_ready && epochs->of[epoch & 1].epoch == epoch;
}

/* Take the lock once the stream of an epoch exists. The caller unlocks. */
static void lock_with(struct pstk__epochs *epochs, uint64_t epoch)
{
    for (;;) {
        pthread_mutex_lock(&epochs->lock);
        if (is_ready(epochs, epoch))
            return;
        pthread_mutex_unlock(&epochs->lock);
        pstk__epochs_make(epochs,
                          epoch); /* again, if another thread has replaced the stream since */
    }
}

void pstk__epochs_make(struct pstk__epochs *epochs, uint64_t epoch)
{
    const uint32_t i = epoch & 1;
    pthread_mutex_lock(&epochs->lock);
    int ready = is_ready(epochs, epoch);
    pthread_mutex_unlock(&epochs->lock);
    if (ready)
        return;
    pthread_mutex_lock(&epochs->build);
    pthread_mutex_lock(&epochs->lock);
    ready = is_ready(epochs, epoch); /* another thread may have made it */
    if (!ready)
        epochs->of[i].is_ready = 0; /* no thread reads the stream from here on */
    pthread_mutex_unlock(&epochs->lock);
    if (!ready) {
        pstk__bucketing_walk(&epochs->bucketing, &epochs->picker, epoch, &epochs->work,
                             &epochs->of[i].stream);
        pthread_mutex_lock(&epochs->lock);
        epochs->of[i].epoch = epoch;
        epochs->of[i].is_ready = 1;
        pthread_mutex_unlock(&epochs->lock);
    }
    pthread_mutex_unlock(&epochs->build);
}

uint64_t pstk__epochs_n_steps(struct pstk__epochs *epochs, uint64_t epoch, uint64_t place)
{
    if (place >= epochs->bucketing.n_kept)
        return 0;
    lock_with(epochs, epoch);
    const uint64_t n = pstk__bucketed_n_steps(&epochs->bucketing, &epochs->of[epoch & 1].stream,
                                              epochs->partition, place);
    pthread_mutex_unlock(&epochs->lock);
    return n;
}

int pstk__epochs_is_over(struct pstk__epochs *epochs, uint64_t epoch, uint64_t place)
{
    return place > 0 && pstk__epochs_n_steps(epochs, epoch, place) == 0;
}

void pstk__epochs_cut(struct pstk__epochs *epochs, uint64_t epoch, uint64_t place,
                      struct pstk__cut *out, uint64_t *positions)
{
    const struct pstk__bucketing *bucketing = &epochs->bucketing;
    lock_with(epochs, epoch);
    const struct pstk__bucketed *stream = &epochs->of[epoch & 1].stream;
    pstk__bucketed_cut(bucketing, stream, epochs->partition, place, out);
    for (uint32_t i = 0; i < out->n_rows; i++)
        positions[i] = pstk__bucketed_position(bucketing, stream, out->first + i);
    pthread_mutex_unlock(&epochs->lock);
}

uint64_t pstk__epochs_n_batches(struct pstk__epochs *epochs, uint64_t epoch)
{
    lock_with(epochs, epoch);
    const uint64_t n = epochs->of[epoch & 1].stream.n_batches;
    pthread_mutex_unlock(&epochs->lock);
    return n;
}
