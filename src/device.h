/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device: where batches are handed out. L2. A table of functions; the host is its null object:
 * batches are leased in the slots that workers filled, streams are ignored.
 *
 * A device with memory of its own (has_slots) has slots there. One uploader thread opens it, then
 * loads filled host slots into device slots; loading is only queued, nobody waits for it but the
 * streams that use the batch. What a call queues for a slot waits for what was queued for it
 * before, and a load waits for all recorded uses of the slot.
 */
#ifndef PSTK_DEVICE_H
#define PSTK_DEVICE_H

#include "layout.h"

#define PSTK__BUS_ID_SIZE 32 /* bytes of a PCI address as text */

struct pstk__device; /* begins with a pointer to its table */

struct pstk__device_config {
    int32_t index;                     /* of its kind */
    uint32_t n_slots;                  /* on the device */
    uint32_t n_host_slots;             /* that are loaded from */
    uint32_t timed;                    /* 1: measure copies and the consumer's stream */
    const struct pstk__plan *plan;     /* borrowed for the call */
    const struct pstk__layout *layout; /* likewise */
};

/* One batch on its way from a host slot to a device slot. */
struct pstk__load {
    const uint8_t *memory;       /* of the host slot; borrowed until it is copied */
    uint32_t host_slot, slot;    /* indices */
    uint32_t n_valid;            /* rows */
    const uint64_t *ragged_size; /* n_outputs: bytes in use of ragged outputs */
};

/* What a timed device has measured since it was opened; never waits. */
struct pstk__device_times {
    uint64_t copy_ns;    /* copies to the device, while they ran */
    uint64_t copy_bytes; /* of those copies */
    uint64_t used_ns;    /* consumer's streams: from a batch's arrival until the next one is asked
                            for on that stream */
    uint64_t starved_ns; /* consumer's streams: from there until the batch has arrived */
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
    /* How many there are; <0: none can be, see find. Touches no device, as the next one. */
    int (*count)(void);
    /* Fill in what is known of a device, of a kind and index that find took. */
    void (*describe)(int32_t index, struct pstk_device *to);
    /* Measure plain copies: see pstk_measure_copies. */
    int (*measure)(int32_t index, uint64_t block_size, double seconds,
                   struct pstk_copy_rates *rates, struct pstk_error *err);

    /* The consumer's, any thread. The stream asks for a batch; `again`: it has asked before and was
     * given none. Only measures, on a timed device: before the host waits for a batch. */
    void (*ask)(struct pstk__device *d, void *stream, int again);
    /* A lease begins on a stream: it shall wait for the slot's load.
     * EINVAL: it is a stream of another device. */
    int (*acquire)(struct pstk__device *d, uint32_t slot, void *stream, struct pstk_error *err);
    /* One more stream shall wait. */
    int (*wait)(struct pstk__device *d, uint32_t slot, void *stream, struct pstk_error *err);
    /* What is in the stream by now uses the slot: its next load waits for it. */
    int (*record)(struct pstk__device *d, uint32_t slot, void *stream, struct pstk_error *err);
    /* Does the stream mean the same in every thread? EINVAL: no. */
    int (*check_shared)(struct pstk__device *d, void *stream, struct pstk_error *err);
    /* The lease ends: record each of the *n_streams streams and take it out. 1: those left are
     * being captured into a graph: call again once they are not. */
    int (*release)(struct pstk__device *d, uint32_t slot, void **streams, uint32_t *n_streams,
                   struct pstk_error *err);
    /* A release that gave 1 will not be called again: the device's memory is never freed. */
    void (*abandon)(struct pstk__device *d);
    /* Copy device memory to the host behind what is in the stream, and wait for it. */
    int (*read)(struct pstk__device *d, void *to, const void *from, uint64_t size, void *stream,
                struct pstk_error *err);
    /* Streams for programs that do not speak the device's language themselves. Those not closed
     * are closed with the device. */
    int (*stream_open)(struct pstk__device *d, void **stream, struct pstk_error *err);
    void (*stream_close)(struct pstk__device *d, void *stream);
    /* Keep the stream busy: stands for a training step. */
    int (*stream_spin)(struct pstk__device *d, void *stream, uint64_t ns, struct pstk_error *err);

    /* The rest with has_slots only, by the uploader. */
    /* Page-lock host memory, so that copies from it run by themselves. 1: refused; copies from it
     * go through memory of the device's own then. */
    int (*pin)(struct pstk__device *d, void *memory, uint64_t size, struct pstk_error *err);
    void (*unpin)(struct pstk__device *d, void *memory);
    /* Address of a slot, the same for the device's life. */
    uint8_t *(*memory)(struct pstk__device *d, uint32_t slot);
    /* Queue a load. The host slot must stay as it is until it is copied. Where memory could not be
     * page-locked it waits for the consumer's streams: *blocked_ns grows by that time. */
    int (*load)(struct pstk__device *d, const struct pstk__load *load, uint64_t *blocked_ns,
                struct pstk_error *err);
    /* Has the host slot's last load left it? 1, 0, or with `wait` always 1; *blocked_ns grows by
     * the time that went on waiting for the consumer's streams. */
    int (*copied)(struct pstk__device *d, uint32_t host_slot, int wait, uint64_t *blocked_ns,
                  struct pstk_error *err);
    /* Wait until nothing that was queued runs any more. */
    void (*drain)(struct pstk__device *d);
    void (*get_times)(struct pstk__device *d, struct pstk__device_times *times);
};

struct pstk__device {
    const struct pstk__device_ops *ops;
};

/* The table of a kind, NULL when there is no such kind. */
const struct pstk__device_ops *pstk__device_ops(uint32_t kind);

#endif
