/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epochs: the streams of batches by a budget, one of an even and one of an odd epoch, made on
 * demand. Any thread.
 *
 * One thread at a time makes a stream, without holding `lock`: other threads use the stream of the
 * other parity meanwhile. A stream stays until another epoch of the same parity is requested. Two
 * are enough, because readers run ahead into the next epoch only. If epochs have fewer batches than
 * there are slots, streams may be made again; such streams are small, and so cheap.
 */
#ifndef PSTK_EPOCHS_H
#define PSTK_EPOCHS_H

#include "order/bucketing.h"

#include <pthread.h>

struct pstk__epochs {
    struct pstk__bucketing bucketing;        /* constant */
    const struct pstk__partition *partition; /* borrowed, constant */
    pthread_mutex_t build;      /* held by the thread that makes a stream; taken before `lock` */
    struct pstk__picker picker; /* guarded by build */
    struct pstk__bucketing_work work; /* guarded by build */
    pthread_mutex_t lock;             /* guards is_ready and epoch; and streams while ready */
    struct {
        int is_ready; /* 1: the stream is that of `epoch`, and nobody writes to it */
        uint64_t epoch;
        struct pstk__bucketed stream;
    } of[2];
    void *memory;
    uint32_t *costs; /* owned */
};

/* Return the bytes that pstk__epochs_open takes for a bucketing, without its costs; at most
 * UINT64_MAX. */
uint64_t pstk__epochs_size(const struct pstk__bucketing *bucketing);
/* Fill in all members except bucketing and costs, which the caller has set. ENOMEM: the caller
 * closes it nevertheless. */
int pstk__epochs_open(struct pstk__epochs *epochs, const struct pstk__partition *partition,
                      struct pstk_error *err);
void pstk__epochs_close(struct pstk__epochs *epochs); /* frees `epochs`; NULL is fine */

/* Make the stream of an epoch, unless it exists. */
void pstk__epochs_make(struct pstk__epochs *epochs, uint64_t epoch);
/* Return the steps of an epoch from a position of the stream on, as pstk__bucketed_n_steps. Makes
 * its stream, unless the position is 0. */
uint64_t pstk__epochs_n_steps(struct pstk__epochs *epochs, uint64_t epoch, uint64_t place);
/* Return 1 if an epoch has no step from a position of the stream on. Needs no stream if the
 * position is 0 or past the end. */
int pstk__epochs_is_over(struct pstk__epochs *epochs, uint64_t epoch, uint64_t place);
/* Find the step at a position of the stream, and the positions of its rows in the order. */
void pstk__epochs_cut(struct pstk__epochs *epochs, uint64_t epoch, uint64_t place,
                      struct pstk__cut *out, uint64_t *positions);
/* Return the batches of all ranks in an epoch. */
uint64_t pstk__epochs_n_batches(struct pstk__epochs *epochs, uint64_t epoch);

#endif
