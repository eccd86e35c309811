/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device: where batches are handed out. One table of functions an entry: host.c and cuda/. device.c
 * lists them, and no entry includes the list. The host is the null object.
 *
 * Threads. The uploader, one thread, calls open and all members from pin on; on the host, which has
 * no uploader, the thread that opens the loader calls open. Any threads of the program call the
 * consumer's members, several at a time, and hold no lock of ours. Any thread calls get_times, at
 * any time, and close, once nobody else has the device. find, count, describe and measure have
 * none.
 *
 * A device with memory of its own (has_slots) has slots there. One uploader thread opens it, then
 * loads filled host slots into device slots, in three steps: ready sees that all recorded uses of
 * the slot are over, load queues copies, finish sees that they are done and queues what the device
 * has still to do. Only then may the slot be leased: a stream that waits for it waits for kernels,
 * never for a copy. Up to PSTK__LOADS loads are between load and finish.
 */
#ifndef PSTK_DEVICE_H
#define PSTK_DEVICE_H

#include "sample/layout.h"

#define PSTK__BUS_ID_SIZE 32 /* bytes of a PCI address as text */
#define PSTK__MAX_USERS 64   /* streams of one lease that pstk_share_use names */

struct pstk__device; /* begins with a pointer to its table */

struct pstk__device_config {
    int32_t index;                     /* of its kind */
    uint32_t n_slots;                  /* on the device */
    uint32_t timed;                    /* 1: measure copies and the consumer's stream */
    const struct pstk__plan *plan;     /* borrowed for the call */
    const struct pstk__layout *layout; /* borrowed for the call */
};

/* One batch on its way from a host slot to a device slot. */
struct pstk__load {
    const uint8_t *memory;       /* of the host slot; borrowed until finish */
    uint32_t slot;               /* of the device */
    const uint64_t *ragged_size; /* n_outputs: bytes in use of ragged outputs */
    const uint64_t *dense_size;  /* the same of the others, of a batch of one of several sizes;
                                    NULL: all that there are */
};

/* The other end of that way. */
struct pstk__load_end {
    uint32_t slot;       /* of the device: that of the load */
    uint32_t n_valid;    /* rows */
    uint32_t size_index; /* of the batch */
    int wait;            /* 1: wait for the copies */
};

/* The end of a lease. */
struct pstk__lease_end {
    uint32_t slot;
    int quick;           /* as in acquire */
    void **streams;      /* that used the slot */
    uint32_t *n_streams; /* those recorded are taken out */
};

struct pstk__histogram;

/* The measurements of a timed device since it was opened. Reading them never waits. */
struct pstk__device_times {
    uint64_t copy_ns;    /* copies to the device, while they ran */
    uint64_t copy_bytes; /* of those copies */
    uint64_t used_ns;    /* consumer's streams: from a batch's arrival until the next one is asked
                            for on that stream */
    uint64_t starved_ns; /* consumer's streams: from there until the batch has arrived */
    /* ns of these waits, one for each batch; as long as the device; NULL: it is not timed */
    const struct pstk__histogram *waits;
};

struct pstk__device_ops {
    uint32_t kind;      /* enum pstk_device_kind */
    uint32_t has_slots; /* 1: batches are loaded into slots of its own */
    const char *name;
    /* Is there a device `index`? Writes its PCI address, "" when it has none. Touches no device.
     * ENOTSUP: this build, or machine, has none; EINVAL: not that many. */
    int (*find)(int32_t index, char bus_id[PSTK__BUS_ID_SIZE], struct pstk_error *err);
    /* Returns owned. With has_slots by the uploader thread, which the device is then current for.
     */
    int (*open)(struct pstk__device **out, const struct pstk__device_config *c,
                struct pstk_error *err);
    /* Free all, any thread; waits for what the device may still use. */
    void (*close)(struct pstk__device *d);
    /* Return the number of devices; <0: there can be none, see find. Neither this function nor the
     * next one touches a device. */
    int (*count)(void);
    /* Fill in what is known of a device, of a kind and index that find took. */
    void (*describe)(int32_t index, struct pstk_device *to);
    /* Measure plain copies: see pstk_measure_copies. */
    int (*measure)(int32_t index, uint64_t block_size, double seconds,
                   struct pstk_copy_rates *rates, struct pstk_error *err);

    /* The consumer's, any thread. The stream asks for a batch; `again`: it has asked before and was
     * given none. Only measures, on a timed device: before the host waits for a batch.
     * `quick`: as in acquire. */
    void (*ask)(struct pstk__device *d, void *stream, int again, int quick);
    /* A lease begins on a stream: the stream is to wait for the slot's load. EINVAL: it is a stream
     * of another device. ETIMEDOUT: `quick` is 1, and another thread is in a call of the
     * consumer's, which may wait for room in its stream. */
    int (*acquire)(struct pstk__device *d, uint32_t slot, void *stream, int quick,
                   struct pstk_error *err);
    /* One more stream is to wait. */
    int (*wait)(struct pstk__device *d, uint32_t slot, void *stream, struct pstk_error *err);
    /* The work that is in the stream now uses the slot: the slot's next load waits for it. */
    int (*record)(struct pstk__device *d, uint32_t slot, void *stream, struct pstk_error *err);
    /* Check that the stream means the same in every thread. EINVAL: it does not. */
    int (*check_shared)(struct pstk__device *d, void *stream, struct pstk_error *err);
    /* The lease ends: record each of the streams and take it out. 1: those left are being captured
     * into a graph: call again once they are not. ETIMEDOUT: as in acquire; call again. */
    int (*release)(struct pstk__device *d, const struct pstk__lease_end *end,
                   struct pstk_error *err);
    /* A release that left streams will not be called again: the device's memory is never freed. */
    void (*abandon)(struct pstk__device *d);
    /* Copy device memory to the host after the work that is in the stream, and wait for the copy.
     */
    int (*read)(struct pstk__device *d, void *to, const void *from, uint64_t size, void *stream,
                struct pstk_error *err);
    /* Streams for programs that do not use the device's API themselves. The device closes those
     * that are still open. */
    int (*stream_open)(struct pstk__device *d, void **stream, struct pstk_error *err);
    void (*stream_close)(struct pstk__device *d, void *stream);
    /* Keep the stream busy, to simulate a training step. */
    int (*stream_spin)(struct pstk__device *d, void *stream, uint64_t ns, struct pstk_error *err);

    /* The rest with has_slots only, by the uploader. */
    /* Page-lock host memory, so that copies from it need no CPU. 1: refused; copies from it then go
     * through the device's bounce buffers. */
    int (*pin)(struct pstk__device *d, void *memory, uint64_t size, struct pstk_error *err);
    void (*unpin)(struct pstk__device *d, void *memory);
    /* Address of a slot, the same for the device's life. */
    uint8_t *(*memory)(struct pstk__device *d, uint32_t slot);
    /* May a load into the slot begin? 1; 0: the consumer's streams still use it, or kernels still
     * use memory that the load needs; with `wait` it waits for them. No load may be under way then.
     */
    int (*ready)(struct pstk__device *d, uint32_t slot, int wait, struct pstk_error *err);
    /* Queue a load's copies; the slot is ready, and fewer than PSTK__LOADS are under way. */
    int (*load)(struct pstk__device *d, const struct pstk__load *load, struct pstk_error *err);
    /* Finish the oldest load under way: 1; 0: its copies are not done; with `wait` it waits for
     * them. After 1 the host slot is free again, and the device slot may be leased. */
    int (*finish)(struct pstk__device *d, const struct pstk__load_end *end, struct pstk_error *err);
    /* Wait until all queued work is over. */
    void (*drain)(struct pstk__device *d);
    void (*get_times)(struct pstk__device *d, struct pstk__device_times *times);
};

struct pstk__device {
    const struct pstk__device_ops *ops;
};

/* The table of a kind, NULL when the kind does not exist. */
const struct pstk__device_ops *pstk__device_ops(uint32_t kind);

#endif
