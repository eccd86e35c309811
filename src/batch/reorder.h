/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reorder: the ordered stream of batches between the threads that fill them and the thread that
 * takes them.
 *
 * Readers claim the next batch of the stream for a slot they hold; workers put finished slots in,
 * in any order; the consumer takes them out in order. If batches are loaded into slots of a device,
 * the uploader is in between: it takes finished slots in order, and puts loaded ones in. The stream
 * runs on from epoch to epoch. A seek, or another size of batches, begins a new generation: batches
 * of an older one are dropped wherever they are.
 *
 * Invariants: deliver_seq <= upload_seq <= claim_seq. Every batch in [upload_seq, claim_seq) holds
 * a slot that workers fill, and every one in [deliver_seq, upload_seq) a slot that is delivered, of
 * this generation, so filled[seq % n] and ready[seq % n] never collide. Without an uploader there
 * is one pool and one array, and upload_seq is deliver_seq.
 */
#ifndef PSTK_REORDER_H
#define PSTK_REORDER_H

#include "batch/epochs.h"
#include "batch/slot.h"
#include "order/schedule.h"

/* A position in the stream of batches. */
struct pstk__cursor {
    uint64_t epoch;
    uint64_t position; /* global sample position */
};

struct pstk__reorder_buffer {
    struct pstk__slots *filled_slots; /* filled by workers; borrowed */
    struct pstk__slots *slots;        /* delivered to the consumer, perhaps the same; borrowed */
    struct pstk__partition partition; /* global_batch: guarded by the lock; the rest constant */
    struct pstk__epochs *epochs;      /* borrowed; NULL without a budget */
    struct pstk__eventcount delivery; /* notified when the next batch was put in, when a stage
                                         failed, and at interrupt */
    struct pstk__eventcount uploads;  /* for the uploader; notified when its next batch was put in,
                                         when a device's slot is free or lost, and at close */
    _Atomic uint32_t interrupted;     /* 1: the next wait returns EINTR */
    _Atomic uint64_t generation;      /* written under the lock */
    pthread_mutex_t lock;             /* guards all below */
    struct pstk__cursor claim;        /* position of the next batch to be claimed */
    struct pstk__cursor deliver;      /* position of the next batch to be delivered */
    int deliver_over;                 /* with a budget, 1: `deliver` is at the end of its epoch */
    uint64_t claim_seq, upload_seq, deliver_seq;
    struct pstk__slot **filled; /* filled_slots->n_slots, owned; NULL without an uploader */
    struct pstk__slot **ready;  /* slots->n_slots, owned */
    int failed;                 /* != 0: next returns the sticky `error` */
    struct pstk_error error;
    struct pstk_error fatal; /* code != 0: a stage failed for good, no more batches come */
    int uploads_over;        /* 1: the uploader was the stage that failed */
};

/* Open the buffer. filled: pool that workers fill; slots: pool that batches are delivered from;
 * epochs: of a budget, or NULL. */
int pstk__reorder_open(struct pstk__reorder_buffer *reorder, struct pstk__slots *filled,
                       struct pstk__slots *slots, const struct pstk__partition *partition,
                       struct pstk__epochs *epochs, struct pstk__cursor start,
                       struct pstk_error *err);
void pstk__reorder_close(struct pstk__reorder_buffer *reorder);

/* Reader: give a slot (FILLING) the next batch of the stream: seq, generation, epoch, position,
 * next_position, index, n_rows, n_valid. */
void pstk__reorder_claim(struct pstk__reorder_buffer *reorder, struct pstk__slot *slot);
/* Return 1 if a seek or another batch size made the slot's batch void. */
int pstk__reorder_stale(struct pstk__reorder_buffer *reorder, const struct pstk__slot *slot);
/* Last worker: put a READY slot in, or drop it if it is stale. */
void pstk__reorder_put(struct pstk__reorder_buffer *reorder, struct pstk__slot *slot);
/* Uploader: take the next batch of the stream, READY -> COPYING. Returns NULL until it is put in.
 */
struct pstk__slot *pstk__reorder_take_filled(struct pstk__reorder_buffer *reorder);
/* Uploader: put a LOADED slot in, or drop it if it is stale. */
void pstk__reorder_put_loaded(struct pstk__reorder_buffer *reorder, struct pstk__slot *slot);
/* Record that a stage failed as a whole. Once all ready batches were taken, every take returns this
 * error, also after a seek. If the uploader itself failed, batches that it has not loaded are never
 * delivered. */
void pstk__reorder_fail(struct pstk__reorder_buffer *reorder, const struct pstk_error *err);
void pstk__reorder_fail_uploads(struct pstk__reorder_buffer *reorder, const struct pstk_error *err);

/* Consumer: take the next batch, leased. Returns 1; 0 at the end of the epoch; ENOBUFS, ETIMEDOUT,
 * EINTR or the stream's error. *waited_ns grows by the time waited. */
int pstk__reorder_take(struct pstk__reorder_buffer *reorder, struct pstk__slot **out, void *stream,
                       int64_t timeout_ns, uint64_t *waited_ns, struct pstk_error *err);
/* Consumer: continue the stream at `to`. */
void pstk__reorder_seek(struct pstk__reorder_buffer *reorder, struct pstk__cursor to);
/* Consumer: give batches from the next one on global_batch rows of all ranks. Batches that were
 * read ahead become void, and their rows are divided again. */
void pstk__reorder_resize(struct pstk__reorder_buffer *reorder, uint64_t global_batch);
/* Return the batches of an epoch from a position on. Any thread. */
uint64_t pstk__reorder_n_left(struct pstk__reorder_buffer *reorder, uint64_t epoch,
                              uint64_t position);
/* Return the batches of the whole epoch that the cursor is in. Any thread. */
uint64_t pstk__reorder_n_batches(struct pstk__reorder_buffer *reorder);
struct pstk__cursor pstk__reorder_cursor(struct pstk__reorder_buffer *reorder);
/* Make the next wait return EINTR. Safe in a signal handler. */
void pstk__reorder_interrupt(struct pstk__reorder_buffer *reorder);

#endif
