/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epochs: the streams of batches by a budget, of an even and an odd epoch, made when they are asked
 * for. Any thread.
 *
 * A stream is made outside of `lock`, so that others use that of the other parity meanwhile, and by
 * one thread at a time. It stays until another epoch of the same parity is asked for. Readers run
 * ahead into the next epoch, so that two are enough; where epochs have fewer batches than there are
 * slots they may be made again, which their size makes cheap.
 */
#ifndef PSTK_EPOCHS_H
#define PSTK_EPOCHS_H

#include "order/bucketing.h"

#include <pthread.h>

struct pstk__epochs {
    struct pstk__bucketing bucketing;        /* constant */
    const struct pstk__partition *partition; /* borrowed, constant */
    pthread_mutex_t build;                   /* held by who makes a stream; taken before `lock` */
    struct pstk__picker picker;              /* guarded by build */
    struct pstk__bucketing_work work;        /* guarded by build */
    pthread_mutex_t lock; /* guards is_ready and epoch; and streams while ready */
    struct {
        int is_ready; /* it is that of `epoch`, and not written to */
        uint64_t epoch;
        struct pstk__bucketed stream;
    } of[2];
    void *memory;
    uint32_t *costs; /* owned */
};

/* Bytes that pstk__epochs_open takes for a bucketing, without its costs; at most UINT64_MAX. */
uint64_t pstk__epochs_size(const struct pstk__bucketing *bucketing);
/* Fill in all but bucketing and costs, which the caller has set. ENOMEM: close it all the same. */
int pstk__epochs_open(struct pstk__epochs *epochs, const struct pstk__partition *partition,
                      struct pstk_error *err);
void pstk__epochs_close(struct pstk__epochs *epochs); /* frees `epochs`; NULL is fine */

/* Make the stream of an epoch, unless it is there. */
void pstk__epochs_make(struct pstk__epochs *epochs, uint64_t epoch);
/* Steps from a place of an epoch on: pstk__bucketed_n_steps. Makes its stream, unless place is 0.
 */
uint64_t pstk__epochs_n_steps(struct pstk__epochs *epochs, uint64_t epoch, uint64_t place);
/* 1: an epoch has no step from a place on; needs no stream where the place is 0 or past the end. */
int pstk__epochs_is_over(struct pstk__epochs *epochs, uint64_t epoch, uint64_t place);
/* The step at a place, and the positions of its rows in the order. */
void pstk__epochs_cut(struct pstk__epochs *epochs, uint64_t epoch, uint64_t place,
                      struct pstk__cut *out, uint64_t *positions);
/* Batches of all ranks in an epoch. */
uint64_t pstk__epochs_n_batches(struct pstk__epochs *epochs, uint64_t epoch);

#endif
