/* SPDX-License-Identifier: Apache-2.0 */
/*
 * placement: which threads of a loader get which cores. Pure: numbers in, a plan out.
 *
 * A core is counted for one worker, or left to other threads. No thread is bound to one core: the
 * reader and the workers of a node may run on all cores of that node in the share, the uploader on
 * those of the device's node. So a thread that is ready runs wherever a core is free, and a core
 * that is left belongs to the reader, the uploader and the program, whichever needs it. It only
 * means that there is one worker fewer.
 *
 * A core is left where it is worth more than a worker:
 *
 *   readers   A reader that makes the reads itself takes up to 20 us of CPU time for a record of
 *             100 kB, for which a worker takes some 400 us to decode it: with 16 workers most of a
 *             core. If it has to wait for a core, all workers of the node wait for it. Where the
 *             workers make the reads (reader/residency.h) it takes some 3 us, an eighth of a core
 *             with 16 workers. Then it shares a core with a worker, except on nodes where one core
 *             is about 3 % of all or less.
 *   uploader  One core, which the program needs as well: it starts the kernels that use a batch.
 *
 * Neither takes a core of the first four workers of a node, who gain more by it.
 */
#ifndef PSTK_PLACEMENT_H
#define PSTK_PLACEMENT_H

#include <stdint.h>

#define PSTK__MAX_WORKERS 1024

struct pstk__placement_config {
    const uint32_t *n_cores; /* [n_nodes], borrowed; cores of each node in this process's share, at
                                least 1. Hardware threads of one core count once */
    uint32_t n_nodes;        /* at least 1 */
    uint32_t n_usable;       /* cores that the CPU quota leaves, at least 1, at most their sum */
    uint32_t n_workers;      /* number wanted, at most PSTK__MAX_WORKERS; 0: automatic */
    uint32_t n_more;         /* automatic: workers added to the number of cores */
    uint32_t n_times;        /* automatic: workers added for each usable core */
    int reader_reads;        /* 1: the readers make all reads themselves */
    int has_uploader;
    uint32_t device_node; /* index of the device's node; UINT32_MAX: unknown, or not in the share */
};

/* The threads of one node. */
struct pstk__node_threads {
    uint32_t n_left; /* its last cores, for which no worker is counted */
    uint32_t n_workers;
};

struct pstk__placement {
    struct pstk__node_threads *nodes; /* [n_nodes], the caller's */
    uint32_t n_workers;               /* sum over the nodes, 1 to PSTK__MAX_WORKERS */
    uint32_t n_left;                  /* sum over the nodes; 0 where n_workers was given */
    uint32_t n_kept; /* cores that workers are counted for, at least 1: all of the share but those
                        that are left */
};

/* Decide how many workers there are and on which node, and which cores they leave. `nodes` of *p
 * has room for n_nodes. */
void pstk__placement_init(struct pstk__placement *p, const struct pstk__placement_config *c);
/* Return the core that is counted for a worker: its index among those kept, in the order of the
 * nodes. Fewer workers than cores are spread evenly; more share cores, round by round. */
uint32_t pstk__placement_core(const struct pstk__placement *p, uint32_t worker);
/* Return the number of readers of each node, at least 1: one, or, where reading a record costs as
 * much as the rest of its path, one for each worker. n_workers: those of the node with the fewest;
 * n_max: readers of all n_nodes nodes. */
uint32_t pstk__placement_readers(uint32_t n_workers, uint32_t n_nodes, int for_each_worker,
                                 uint32_t n_max);

#endif
