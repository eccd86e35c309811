/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget: memory is a number you choose; this is where it goes. L2, pure.
 * From the data set's maxima and the settings: slots, I/O rings, index caches, workers' scratch.
 */
#ifndef PSTK_BUDGET_H
#define PSTK_BUDGET_H

#include "sample/layout.h"

struct pstk__budget {
    uint64_t limit; /* bytes that all may take */
    uint32_t n_slots;
    uint32_t n_lanes;          /* a multiple of the nodes: see pipeline.h */
    uint32_t rows_per_job;     /* run of rows handed from reader to worker at once */
    uint32_t depth;            /* reads in flight per lane */
    uint64_t slot_size;        /* bytes of one slot */
    uint32_t n_device_slots;   /* 0 where slots are handed out on the host */
    uint64_t device_slot_size; /* bytes on the host of a device's slot: what batches report there */
    uint64_t slot_memory;      /* bytes on the host of all slots */
    uint64_t ring_size;        /* bytes of I/O memory per lane, whole pages */
    uint64_t index_size;       /* bytes of index cache per lane, whole pages */
    uint64_t spare_size;       /* bytes of a worker's slow-path buffer; mapped, touched when used */
};

/* workers_per_node: of the node with the fewest. machine_memory: bytes that the machine or cgroup
 * has. EINVAL or ENOMEM names the setting that asks too much. */
int pstk__budget_init(struct pstk__budget *b, const struct pstk_settings *s,
                      const struct pstk__plan *plan, const struct pstk__layout *layout,
                      uint32_t n_nodes, uint32_t workers_per_node, uint64_t machine_memory,
                      struct pstk_error *err);

#endif
