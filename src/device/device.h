/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device: the devices on which batches are handed out. Each device is one table of functions:
 * host.c and cuda/. device.c lists them, and no entry includes the list. The host is the null
 * object.
 *
 * Threads. The uploader, one thread, calls open and all members from pin on; the host has no
 * uploader, so the thread that opens the loader calls open. Any threads of the program call the
 * consumer's members, several at a time, and hold no lock of the library. Any thread calls
 * get_times, at any time, and close, once no other thread uses the device. find, count, describe
 * and measure have no device.
 *
 * A device with memory of its own (has_slots) has slots there. One uploader thread opens it, then
 * loads filled host slots into device slots, in three steps: ready checks that all recorded uses of
 * the slot are over, load queues copies, finish checks that they are done and queues the device's
 * remaining work. Only then may the slot be leased: a stream that waits for it waits for kernels,
 * never for a copy. Up to PSTK__LOADS loads are between load and finish.
 */
#ifndef PSTK_DEVICE_H
#define PSTK_DEVICE_H

#include "sample/layout.h"

#define PSTK__BUS_ID_SIZE 32 /* bytes of a PCI address as text, with its 0 */
#define PSTK__MAX_USERS 64   /* streams of one lease that pstk_share_use may name */

struct pstk__device; /* first member: a pointer to its table */

struct pstk__device_config {
    int32_t index;                     /* number of the device among those of its kind */
    uint32_t n_slots;                  /* slots on the device */
    uint32_t timed;                    /* 1: measure copies and the consumer's stream */
    const struct pstk__plan *plan;     /* borrowed for the call */
    const struct pstk__layout *layout; /* borrowed for the call */
};

/* A batch to copy from a host slot to a device slot. */
struct pstk__load {
    const uint8_t *memory;       /* the host slot's memory; borrowed until finish */
    uint32_t slot;               /* number of the device slot */
    const uint64_t *ragged_size; /* n_outputs: used bytes of each ragged output */
    const uint64_t *dense_size; /* n_outputs: used bytes of each other output, for a batch of one of
                                   several sizes; NULL: all bytes are used */
};

/* The arguments of finish. */
struct pstk__load_end {
    uint32_t slot;       /* number of the device slot, as in the load */
    uint32_t n_valid;    /* valid rows */
    uint32_t size_index; /* the batch's index among the plan's sizes */
    int wait;            /* 1: wait for the copies to end */
};

/* The arguments of release. */
struct pstk__lease_end {
    uint32_t slot;
    int quick;           /* as in acquire */
    void **streams;      /* streams that used the slot */
    uint32_t *n_streams; /* release removes the recorded streams */
};

struct pstk__histogram;

/* The measurements of a timed device since it was opened. Reading them never waits. */
struct pstk__device_times {
    uint64_t copy_ns;    /* ns in which copies to the device ran */
    uint64_t copy_bytes; /* bytes of these copies */
    uint64_t used_ns; /* ns, consumer's streams: from a batch's arrival until that stream asks for
                         the next one */
    uint64_t starved_ns; /* ns, consumer's streams: from that request until the batch has arrived */
    uint64_t start_ns;   /* of starved_ns: the first batch */
    /* ns of these waits, one for each batch; lives as long as the device; NULL: it is not timed */
    const struct pstk__histogram *waits;
};

struct pstk__device_ops {
    uint32_t kind;      /* enum pstk_device_kind */
    uint32_t has_slots; /* 1: the device has slots, and batches are loaded into them */
    const char *name;
    /* Check that device `index` exists, and write its PCI address, "" when it has none. Touches no
     * device. ENOTSUP: this build, or machine, has no such devices; EINVAL: it has fewer. */
    int (*find)(int32_t index, char bus_id[PSTK__BUS_ID_SIZE], struct pstk_error *err);
    /* Open a device. Returns owned. With has_slots the uploader thread calls this, and the device
     * becomes current for it. */
    int (*open)(struct pstk__device **out, const struct pstk__device_config *c,
                struct pstk_error *err);
    /* Free all; waits for work that may still use the memory. Any thread may call this. */
    void (*close)(struct pstk__device *d);
    /* Return the number of devices; <0: there can be none, see find. Neither this function nor the
     * next one touches a device. */
    int (*count)(void);
    /* Describe a device whose kind and index find has accepted. */
    void (*describe)(int32_t index, struct pstk_device *to);
    /* Measure plain copies: see pstk_measure_copies. */
    int (*measure)(int32_t index, uint64_t block_size, double seconds,
                   struct pstk_copy_rates *rates, struct pstk_error *err);

    /* Note that the stream asks for a batch; `again`: it asked before and was given none. The
     * consumer calls this, on any thread, before the host waits for a batch. Only a timed device
     * does anything here. `quick`: as in acquire. */
    void (*ask)(struct pstk__device *d, void *stream, int again, int quick);
    /* Begin a lease on a stream: make the stream wait for the slot's load. EINVAL: the stream
     * belongs to another device. ETIMEDOUT: `quick` is 1, and another thread is in a call of the
     * consumer's, which may wait for room in its stream. */
    int (*acquire)(struct pstk__device *d, uint32_t slot, void *stream, int quick,
                   struct pstk_error *err);
    /* Make one more stream wait for the slot's load. */
    int (*wait)(struct pstk__device *d, uint32_t slot, void *stream, struct pstk_error *err);
    /* Record that the work now in the stream uses the slot: the slot's next load waits for it. */
    int (*record)(struct pstk__device *d, uint32_t slot, void *stream, struct pstk_error *err);
    /* Check that the stream means the same in every thread. EINVAL: it does not. */
    int (*check_shared)(struct pstk__device *d, void *stream, struct pstk_error *err);
    /* End the lease: record each of the streams and remove it from the list. 1: the streams left
     * are being captured into a graph: call again when they no longer are. ETIMEDOUT: as in
     * acquire; call again. */
    int (*release)(struct pstk__device *d, const struct pstk__lease_end *end,
                   struct pstk_error *err);
    /* Give up a release that left streams: it will not be called again, and the device's memory is
     * never freed. */
    void (*abandon)(struct pstk__device *d);
    /* Copy device memory to the host after the work now in the stream, and wait for the copy. */
    int (*read)(struct pstk__device *d, void *to, const void *from, uint64_t size, void *stream,
                struct pstk_error *err);
    /* Open and close a stream, for programs that do not use the device's API themselves. close of
     * the device closes streams that are still open. */
    int (*stream_open)(struct pstk__device *d, void **stream, struct pstk_error *err);
    void (*stream_close)(struct pstk__device *d, void *stream);
    /* Keep the stream busy, to simulate a training step. */
    int (*stream_spin)(struct pstk__device *d, void *stream, uint64_t ns, struct pstk_error *err);

    /* Only the uploader calls the members from here on, and only with has_slots. */
    /* Page-lock host memory, so that copies from it need no CPU. 1: the system refused; copies from
     * this memory then go through the device's bounce buffers. */
    int (*pin)(struct pstk__device *d, void *memory, uint64_t size, struct pstk_error *err);
    void (*unpin)(struct pstk__device *d, void *memory);
    /* Return the address of a slot, which never changes while the device is open. */
    uint8_t *(*memory)(struct pstk__device *d, uint32_t slot);
    /* Check that a load into the slot may begin. 1: it may. 0: the consumer's streams still use the
     * slot, or kernels still use memory that the load needs; with `wait` this waits for them
     * instead, and no load may be under way. */
    int (*ready)(struct pstk__device *d, uint32_t slot, int wait, struct pstk_error *err);
    /* Queue a load's copies. The slot must be ready, and fewer than PSTK__LOADS loads under way. */
    int (*load)(struct pstk__device *d, const struct pstk__load *load, struct pstk_error *err);
    /* Finish the oldest load under way. 1: done: the host slot is free again, and the device slot
     * may be leased. 0: its copies are not done; with `wait` this waits for them instead. */
    int (*finish)(struct pstk__device *d, const struct pstk__load_end *end, struct pstk_error *err);
    /* Wait until all queued work is over. */
    void (*drain)(struct pstk__device *d);
    void (*get_times)(struct pstk__device *d, struct pstk__device_times *times);
};

struct pstk__device {
    const struct pstk__device_ops *ops;
};

/* Return the table of a kind, NULL when the kind does not exist. */
const struct pstk__device_ops *pstk__device_ops(uint32_t kind);

#endif
