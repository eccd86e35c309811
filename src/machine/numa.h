/* SPDX-License-Identifier: Apache-2.0 */
/*
 * numa: which cores and nodes this process may use, and memory near them. The only user of
 * hwloc. Honours the affinity mask, the cgroup CPU quota, and local rank / local world (the cores
 * are divided in order, whole nodes first where they divide). Works on synthetic and XML
 * topologies: then threads are planned but not pinned, and memory is not bound.
 */
#ifndef PSTK_NUMA_H
#define PSTK_NUMA_H

#include "machine/cgroup.h"

#include <penstock/types.h>

#define PSTK__MAX_NODES 64
#define PSTK__MAX_WORKERS 1024

struct pstk__numa; /* opaque: the loaded topology and its plan */

struct pstk__numa_config {
    const char *topology; /* hwloc synthetic string, path of an XML file, or NULL: this machine */
    uint32_t local_rank, local_world;
    uint32_t n_workers; /* wanted, 0 = as many as cores (quota included) */
    int pin;            /* pin threads */
    /* Load PCI devices too, for pstk__numa_pci_node. A topology from a file needs it, where nothing
     * else lists them. For this machine it is not worth its cost, a read of each device's
     * configuration space (1 to 2 ms each in a virtual machine): without it sysfs is asked, for one
     * device. Only corrections made through hwloc's environment (HWLOC_PCI_LOCALITY) need it. */
    int with_pci;
};

/* Load the topology, plan the workers. Returns owned in *out. */
int pstk__numa_open(struct pstk__numa **out, const struct pstk__numa_config *c,
                    struct pstk_error *err);
void pstk__numa_close(struct pstk__numa *n);
/* Planned: nodes in use (>= 1), workers in all (>= 1), the node of a worker (< nodes in use). */
uint32_t pstk__numa_n_nodes(const struct pstk__numa *n);
uint32_t pstk__numa_n_workers(const struct pstk__numa *n);
uint32_t pstk__numa_worker_node(const struct pstk__numa *n, uint32_t worker);
/* OS index of the core that a worker is planned on (for tests and doctor). */
uint32_t pstk__numa_worker_cpu(const struct pstk__numa *n, uint32_t worker);
/* Cores in the affinity mask. */
uint32_t pstk__numa_n_cores(const struct pstk__numa *n);
/* Of those, what local rank and quota leave to this process: the automatic number of workers. */
uint32_t pstk__numa_n_usable(const struct pstk__numa *n);
/* Called by a thread on itself: pin it to its worker's core, or, where there are fewer workers than
 * cores, to the planned cores of its node. 0 or a native errno; an unpinned plan returns 0. */
int pstk__numa_pin_worker(struct pstk__numa *n, uint32_t worker);
/* Index of the NUMA node nearest to a PCI device, for pstk__numa_map and pstk__numa_pin_node;
 * bus_id as CUDA writes it, "0000:3B:00.0". UINT32_MAX when the topology has several nodes and has
 * none that is nearest. The index is pstk__numa_n_nodes or above when no worker is there. Adds to
 * the plan: while other threads use `n` it may not be called. */
uint32_t pstk__numa_pci_node(struct pstk__numa *n, const char *bus_id);
/* Called by a thread on itself: bind it to all the planned cores of a node; of a node without
 * workers, to all that the affinity mask leaves, or nothing is pinned when it leaves none. */
int pstk__numa_pin_node(struct pstk__numa *n, uint32_t node);
/* Map `size` zeroed bytes, page aligned (from 2 MiB on to 2 MiB, a huge page), bound to a node when
 * there are several. NULL when memory is not to be had; *bound is set to 0 when binding was refused
 * (memory is still given). */
void *pstk__numa_map(struct pstk__numa *n, size_t size, uint32_t node, int *bound);
void pstk__numa_unmap(void *p, size_t size);

#endif
