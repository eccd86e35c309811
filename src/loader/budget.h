/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget: divides the memory that the user allows. Pure. From the data set's maxima and the
 * settings: slots, I/O buffers, index caches, workers' scratch.
 */
#ifndef PSTK_BUDGET_H
#define PSTK_BUDGET_H

#include "loader/footprint.h"
#include "sample/layout.h"

struct pstk__budget {
    uint64_t limit; /* bytes that all parts together may take */
    uint32_t n_slots;
    uint32_t n_lanes;          /* a multiple of the nodes: see pipeline.h */
    uint32_t rows_per_task;    /* consecutive rows that a reader hands to a worker at once */
    uint32_t depth;            /* reads in flight per lane */
    uint64_t slot_size;        /* bytes of one slot */
    uint32_t n_device_slots;   /* 0: slots are handed out on the host */
    uint64_t device_slot_size; /* bytes on the host of a device's slot: the part of a batch that
                                  stays there */
    uint64_t slot_memory;      /* bytes on the host of all slots */
    uint64_t buffer_size;      /* bytes of I/O memory per lane, whole pages */
    uint64_t index_size;       /* bytes of index cache per lane, whole pages */
    struct pstk__blocks_footprint blocks; /* per lane */
    uint64_t spare_size; /* bytes of a worker's buffer for reads of its own; mapped, touched when
                            used */
};

/* The inputs of the budget; borrowed for the call. */
struct pstk__budget_config {
    const struct pstk_settings *settings;      /* checked */
    const struct pstk__interleave *interleave; /* settled; NULL unless the order is windowed */
    const struct pstk__plan *plan;
    const struct pstk__layout *layout;
    const struct pstk__layout *least; /* layout with a batch_size of 1, which advice assumes */
    uint32_t n_nodes;
    uint32_t workers_per_node; /* number of workers of the node with the fewest */
    uint64_t machine_memory;   /* bytes that the machine or cgroup has */
    uint64_t taken;            /* bytes of max_memory that are in use already */
    /* bytes of the control group's hard limit, and bytes left below it; a limit of 0: none */
    uint64_t group_limit, group_left;
};

/* Divide the memory. If the control group leaves less than max_memory, divide this process's part
 * of it, which local_world processes share. ENOMEM: the least memory exceeds that part, and the
 * message names the limit. EINVAL or ENOMEM names the setting that asks too much. ENOMEM advises to
 * raise max_memory, and to lower settings so that all fits: each of several joined by "or" is
 * enough alone; those joined by "and" are needed together. */
int pstk__budget_init(struct pstk__budget *budget, const struct pstk__budget_config *c,
                      struct pstk_error *err);

#endif
