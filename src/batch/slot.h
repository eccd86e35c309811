/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch: the slots, and who has them.
 *
 *   host     FREE -> FILLING -> READY -> (LEASED | COPYING) -> FREE
 *                       |         |
 *                       +---------+--> FREE   dropped by a seek or at close
 *   device   FREE -> LOADING -> LOADED -> LEASED -> (PARKED ->) FREE
 *                       |         |
 *                       +---------+--> FREE   as above
 *
 * One function per arrow, each asserting the old state. A loader has one pool, of host slots, or,
 * for a device with slots of its own, two: workers fill the host slots, the uploader loads READY
 * ones into slots of the device, and the consumer leases these.
 *
 * Memory is made at open: each host slot is one mapping, on its lane's node or, where a device
 * reads it, on the device's, laid out as layout.h says. The pool that is leased from outlives the
 * loader while batches are leased: it has one reference for the loader and one for each lease.
 *
 * PARKED: the lease of the slot ended on a stream that was being captured into a graph, where
 * nothing may be recorded. Every later release, every next and the end of the pool try again. A
 * parked slot holds no reference.
 */
#ifndef PSTK_BATCH_H
#define PSTK_BATCH_H

#include "device/device.h"
#include "base/eventcount.h"
#include "machine/numa.h"
#include "sample/sample.h"
#include "observe/trace.h"

#include <pthread.h>

#define PSTK__MAX_LANES 64 /* max readers, each with its workers and slots: see pipeline.h */

enum pstk__slot_state {
    PSTK__SLOT_FREE = 0,
    PSTK__SLOT_FILLING = 1, /* host */
    PSTK__SLOT_READY = 2,   /* host */
    PSTK__SLOT_LEASED = 3,
    PSTK__SLOT_COPYING = 4, /* host */
    PSTK__SLOT_LOADING = 5, /* device */
    PSTK__SLOT_LOADED = 6,  /* device */
    PSTK__SLOT_PARKED = 7,  /* device */
};

/* The arrays of one output in a slot. Its tensor is in an array of its own, which the consumer
 * sees. */
struct pstk__slot_output {
    uint8_t *written;  /* host: rows that workers write: the tensor's data or, for outputs of a
                          mosaic, separate memory */
    uint64_t row_size; /* host: bytes of a row in its tensor */
    int64_t *offsets;  /* ragged: batch_size + 1, in `memory`; while FILLING, offsets[i + 1] is the
                          size of row i; else NULL */
    uint8_t *inputs; /* host, callbacks of whole batches: batch_size rows, in `memory`; else NULL */
    uint8_t *flips;  /* deferred images: batch_size, in `memory`; else NULL */
};

/* One slot. While FILLING: rows belong to the workers that hold their tasks; the lock guards
 * failures and replacements; the rest belongs to the last worker of the countdown. READY and LOADED
 * slots belong to the reorder buffer, COPYING and LOADING slots to the uploader, LEASED slots to
 * the consumer, PARKED slots to the thread that takes them out of that state. */
struct pstk__slot {
    struct pstk_batch batch; /* first member, which the consumer sees */
    struct pstk__slots *pool;
    uint64_t lease;         /* the profiler's range of the lease */
    uint64_t leased_ns;     /* time at which the lease began; only with a trace */
    _Atomic uint32_t state; /* enum pstk__slot_state */
    uint32_t lane;          /* host: lane whose reader fills it; device: 0 */
    uint64_t seq;           /* number of the batch in the loader's stream */
    uint64_t generation;    /* generation of the stream; batches of an older one are dropped */

    uint8_t *memory; /* host: mapping of all arrays, owned; device: of the arrays that describe a
                        batch */
    uint64_t memory_size;                          /* bytes */
    struct pstk_tensor tensors[PSTK__MAX_OUTPUTS]; /* tensors; in the host pool of a device: as
                                                      workers write them */
    struct pstk__slot_output outputs[PSTK__MAX_OUTPUTS];
    uint32_t n_shaped;         /* rows in the shapes of tensors */
    uint64_t *sample_ids;      /* batch_size ids, in memory */
    uint64_t *replacement_ids; /* batch_size ids, in memory */
    uint32_t *data_sets;       /* batch_size, in memory; NULL without a mixture */
    uint64_t *places; /* host: batch_size positions in the order, in memory; NULL without a budget
                       */
    uint64_t first;   /* with a budget: position of the batch's first row in the stream */
    int is_last;      /* with a budget, 1: the last batch of its epoch */
    struct pstk_crop *crops;         /* n_outputs * batch_size, in memory; NULL if not requested */
    struct pstk_report *reports;     /* layout.max_reports, in memory; NULL if bad samples are not
                                        replaced */
    struct pstk_mixed_row *mixed;    /* host: batch_size, in memory; NULL if nothing is mixed */
    uint32_t *labels;                /* host: batch_size, in memory; NULL without dense targets */
    struct pstk_mosaic_row *mosaics; /* host: batch_size, in memory; NULL without a mosaic */

    /* Workers write what follows, once a task or less often. It lies on cache lines of its own:
     * they read what stands above for every row. */
    _Alignas(128) _Atomic uint32_t
        n_tasks_left; /* the countdown; the worker that brings it to 0 finishes the slot */
    _Atomic uint32_t n_palette_images; /* rows with an image from a PNG that has a palette */
    _Atomic uint32_t n_damaged_images; /* rows with an image from a damaged file */
    _Atomic uint32_t n_dropped_boxes;
    _Atomic uint64_t n_bytes; /* bytes read for the batch */

    pthread_mutex_t lock;    /* guards all below, reports, and batch.n_replacements and n_reports */
    uint32_t failed_row;     /* lowest row that failed; UINT32_MAX: none */
    struct pstk_error error; /* error of failed_row */
    uint32_t n_users; /* LEASED, PARKED: number of streams that the end of the lease must still
                         record */
    void *users[PSTK__MAX_USERS + 2]; /* distinct streams; the two more are for the release: the
                                         stream that it names and the current one */
};

/* The parts of one output that all slots of a pool share. */
struct pstk__pool_output {
    char name[PSTK_MAX_NAME]; /* name of the tensor */
    uint64_t written_size;    /* ragged only: bytes of a row as workers write it */
    uint64_t input_size;      /* whole batches only: bytes of a row of inputs */
    uint64_t budget;          /* ragged only: bytes */
    uint64_t item_size;       /* ragged only: bytes that offsets count as one */
};

/* A pool: all slots of one kind of a loader. */
struct pstk__slots {
    const struct pstk__device_ops *device_ops; /* functions of the device that hands them out */
    struct pstk__device *device; /* owned, once attached; NULL in a pool that the uploader loads
                                    from */
    struct pstk__slot *slots;    /* n_slots, owned */
    uint32_t n_slots, n_lanes;
    uint32_t on_device; /* 1: slots of a device */
    int32_t device_index;
    uint32_t batch_size; /* rows that a slot has room for: batch.n_rows is at most that */
    uint32_t n_outputs;
    struct pstk__layout layout;
    struct pstk__pool_output *outputs; /* n_outputs, owned: batches outlive the plan */
    _Atomic uint32_t n_refs;           /* loader + leases */
    _Atomic uint32_t n_leased;
    _Atomic uint32_t n_parked; /* leased slots that are PARKED; rises before a slot is PARKED */
    pstk_current_stream_fn current_stream; /* or NULL, as on the host */
    struct pstk__trace *trace; /* a reference; NULL without a trace, or if consumers do not lease
                                  from this pool */
    pthread_mutex_t lock;      /* guards all below */
    uint32_t *free_list[PSTK__MAX_LANES]; /* slot indices, oldest first; room for n_slots; owned */
    uint32_t n_free[PSTK__MAX_LANES];
    struct pstk__eventcount *room[PSTK__MAX_LANES]; /* eventcounts of the threads that wait for the
                                                       lanes' slots, borrowed; or NULL */
    struct pstk_error failure;                      /* code != 0: a release left a slot unusable */
    int owner; /* process id: a child after fork may not use the slots */
};

struct pstk__slots_config {
    const struct pstk__plan *plan;     /* borrowed for the call */
    const struct pstk__layout *layout; /* copied */
    struct pstk__numa *numa;           /* borrowed for the call */
    const struct pstk__device_ops *device_ops;
    uint32_t n_slots;
    uint32_t n_nodes;
    uint32_t n_lanes;   /* lane k lies on node k modulo n_nodes */
    uint32_t node;      /* all slots on this node; UINT32_MAX = each on its lane's */
    uint32_t on_device; /* 1: slots of a device; one lane, numa is not used */
    int32_t device_index;
    pstk_current_stream_fn current_stream; /* or NULL */
    struct pstk__trace *trace;             /* records the leases; a reference is taken; or NULL */
};

/* Make all slots, FREE, dealt round robin to the lanes. Sets *bound to 0 if memory could not be
 * bound to its node. Returns owned with one reference, the loader's. */
int pstk__slots_open(struct pstk__slots **out, const struct pstk__slots_config *c, int *bound,
                     struct pstk_error *err);
/* Take the device that hands the slots out; slots of a device get their addresses. Call it before
 * the first lease. */
void pstk__slots_attach(struct pstk__slots *slots, struct pstk__device *device);
/* Notify `room` when a slot of the lane becomes free, from now on until pstk__slots_unwatch. room:
 * borrowed. */
void pstk__slots_watch(struct pstk__slots *slots, uint32_t lane, struct pstk__eventcount *room);
/* Stop notifying. Any thread may still give slots back; once this has returned, none of them
 * touches an eventcount. */
void pstk__slots_unwatch(struct pstk__slots *slots);
/* Give up a reference; the last one frees all, except memory of the device that a parked slot's
 * streams may still use. */
void pstk__slots_unref(struct pstk__slots *slots);
/* Return 1 if a release failed; *err becomes a copy of its error. */
int pstk__slots_failed(struct pstk__slots *slots, struct pstk_error *err);

/* FREE -> FILLING: take a free slot of the lane, or return NULL. Sample ids of its rows are not
 * set. */
struct pstk__slot *pstk__slot_begin(struct pstk__slots *slots, uint32_t lane);
/* FILLING, by the reader, once the batch has its position and its n_rows: draw its size, and set
 * the tensors' shapes from both. */
void pstk__slot_shape(struct pstk__slot *slot, const struct pstk__plan *plan);
/* Record that a row failed; the lowest row's error stays. Any worker. */
void pstk__slot_fail(struct pstk__slot *slot, uint32_t row, const struct pstk_error *err);
/* Record that `other` was written to a row in place of its bad sample. The reports of the lowest
 * rows stay, in whatever order workers come. Any worker. */
void pstk__slot_replace(struct pstk__slot *slot, uint32_t row, const struct pstk_error *bad,
                        uint64_t other);
/* FILLING, by the last worker, before pstk__slot_done: mix the rows and make their targets. The
 * plan mixes. */
void pstk__slot_mix(struct pstk__slot *slot, const struct pstk__plan *plan, uint32_t rank);
/* FILLING, by the last worker, before pstk__slot_done: make pictures of four rows. The plan has a
 * mosaic. */
void pstk__slot_combine(struct pstk__slot *slot, const struct pstk__plan *plan, uint32_t rank);
/* FILLING, by the last worker, before pstk__slot_done: run the callbacks that take whole batches.
 * If one fails, the slot fails. */
void pstk__slot_run_callbacks(struct pstk__slot *slot, const struct pstk__plan *plan,
                              uint32_t rank);
/* FILLING -> READY, by the last worker: zero rows past n_valid, and move ragged rows together. */
void pstk__slot_done(struct pstk__slot *slot);
/* READY -> COPYING. */
void pstk__slot_copy(struct pstk__slot *slot);
/* COPYING -> FREE. */
void pstk__slot_copied(struct pstk__slot *slot);
/* FREE -> LOADING: take a free slot of a device, or return NULL. */
struct pstk__slot *pstk__slot_load(struct pstk__slots *slots);
/* LOADING -> LOADED: copy the description of the batch from `from` (COPYING). */
void pstk__slot_loaded(struct pstk__slot *slot, const struct pstk__slot *from);
/* READY, LOADED -> LEASED: lease the slot; takes a reference. quick: see acquire in device.h. */
int pstk__slot_lease(struct pstk__slot *slot, void *stream, int quick, struct pstk_error *err);
/* LEASED: have the end of the lease record this stream too. EFBIG: PSTK__MAX_USERS are recorded
 * already. */
int pstk__slot_use(struct pstk__slot *slot, void *stream, struct pstk_error *err);
/* LEASED: have the end of the lease record the calling thread's current stream too, if the program
 * names it. Call it just before the release. */
void pstk__slot_use_current(struct pstk__slot *slot);
/* LEASED -> FREE, PARKED: end the lease, and give the reference back. Any thread. */
void pstk__slot_release(struct pstk__slot *slot, void *stream);
/* PARKED -> FREE for all slots whose streams are no longer being captured. Any thread that holds a
 * reference. quick: see acquire in device.h. Returns ETIMEDOUT if some stay PARKED, else 0. */
int pstk__slots_settle(struct pstk__slots *slots, int quick, struct pstk_error *err);
/* FILLING, READY, LOADING, LOADED -> FREE: drop a slot that a seek or a failure made void. */
void pstk__slot_drop(struct pstk__slot *slot);
/* Find row `row` of each output: rows[n_outputs]. */
void pstk__slot_rows(struct pstk__slot *slot, uint32_t row, struct pstk__row *rows);
/* Note a written row: the sizes of its ragged outputs, and whether it has an image from a PNG with
 * a palette or from a damaged JPEG. */
void pstk__slot_note(struct pstk__slot *slot, uint32_t row, const struct pstk__row *rows);

/* Return an event of the rows of the slot's batch, from begin_ns to end_ns. Called by the slot's
 * owner. */
static inline struct pstk__event pstk__slot_event(const struct pstk__slot *slot, uint32_t kind,
                                                  uint64_t begin_ns, uint64_t end_ns,
                                                  uint32_t n_rows)
{
    return (struct pstk__event){.begin_ns = begin_ns,
                                .end_ns = end_ns,
                                .seq = slot->seq,
                                .epoch = slot->batch.epoch,
                                .index = slot->batch.index,
                                .kind = kind,
                                .n_rows = n_rows};
}

/* With a trace, add an event that began at begin_ns and ends now. Called by the ring's own thread,
 * while it owns the slot. */
static inline void pstk__slot_trace(const struct pstk__slot *slot, struct pstk__ring *ring,
                                    uint32_t kind, uint64_t begin_ns, uint32_t n_rows)
{
    if (ring) {
        const struct pstk__event event =
            pstk__slot_event(slot, kind, begin_ns, pstk__clock_ns(), n_rows);
        pstk__ring_add(ring, &event);
    }
}

#endif
