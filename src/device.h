/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device: where batches are handed out. L2. A table; the host is its null object: batches stay in
 * their slots, streams are ignored.
 */
#ifndef PSTK_DEVICE_H
#define PSTK_DEVICE_H

#include <penstock/penstock.h>

struct pstk__device; /* begins with a pointer to its table */

struct pstk__device_ops {
    uint32_t kind; /* enum pstk_device_kind */
    const char *name;
    /* Open device `index`; returns owned. ENOTSUP: this build or machine has none. */
    int (*open)(struct pstk__device **out, int32_t index, struct pstk_error *err);
    void (*close)(struct pstk__device *d);
    /* Make slot memory fit for copies (page-lock); once per slot. */
    int (*register_slot)(struct pstk__device *d, void *memory, uint64_t size,
                         struct pstk_error *err);
    void (*unregister_slot)(struct pstk__device *d, void *memory);
    /* The consumer's stream shall wait for the batch / has done with it. */
    int (*acquire)(struct pstk__device *d, struct pstk_batch *batch, void *stream,
                   struct pstk_error *err);
    int (*release)(struct pstk__device *d, struct pstk_batch *batch, void *stream);
};

struct pstk__device {
    const struct pstk__device_ops *ops;
};

/* The table of a kind, NULL when this build has none. */
const struct pstk__device_ops *pstk__device_ops(uint32_t kind);

#endif
