/* SPDX-License-Identifier: Apache-2.0 */
/*
 * numa: finds the cores and nodes that this process may use, places its threads there by the rule
 * of placement.h, and maps memory near them. The only user of hwloc. It respects the affinity mask,
 * the cgroup CPU quota, and local rank and local world. These two divide the cores in order, whole
 * nodes first when they divide evenly. Synthetic and XML topologies work as well: threads are then
 * planned but not pinned, and memory is not bound.
 */
#ifndef PSTK_NUMA_H
#define PSTK_NUMA_H

#include "machine/cgroup.h"
#include "machine/placement.h"

#include <penstock/types.h>

#define PSTK__MAX_NODES 64

struct pstk__numa; /* opaque: the loaded topology and its plan */

struct pstk__numa_config {
    const char *topology; /* hwloc synthetic string, path of an XML file, or NULL: this machine */
    uint32_t local_rank, local_world; /* local_world is at least 1 */
    uint32_t n_workers;               /* number wanted; 0: automatic, see placement.h */
    uint32_t n_more;                  /* automatic: workers added to the number of cores */
    uint32_t n_times;                 /* automatic: workers added for each usable core */
    /* PCI address of the device that an uploader feeds, "" when it is unknown; NULL: none */
    const char *bus_id;
    int reader_reads; /* automatic: 1: the readers make all reads themselves */
    int pin;          /* 1: bind threads to the cores of their node */
    /* 1: load PCI devices too, for pstk__numa_pci_node. A topology from a file needs this, because
     * nothing else lists its devices. On this machine it costs a read of each device's
     * configuration space (1 to 2 ms each in a virtual machine); without it sysfs is read, for one
     * device. Only corrections made through hwloc's environment (HWLOC_PCI_LOCALITY) need it here.
     */
    int with_pci;
};

/* Load the topology and plan the workers. Returns owned in *out. */
int pstk__numa_open(struct pstk__numa **out, const struct pstk__numa_config *c,
                    struct pstk_error *err);
void pstk__numa_close(struct pstk__numa *n);
/* Return a number of the plan: nodes in use (>= 1), all workers (>= 1), the node of a worker (<
 * nodes in use). placement.h says how many workers there are on each node. */
uint32_t pstk__numa_n_nodes(const struct pstk__numa *n);
uint32_t pstk__numa_n_workers(const struct pstk__numa *n);
uint32_t pstk__numa_worker_node(const struct pstk__numa *n, uint32_t worker);
/* Count the workers that there would be on the same cores with another plan: n_workers, n_more,
 * n_times, bus_id and reader_reads of *c. bus_id: NULL or "". */
int pstk__numa_count_workers(const struct pstk__numa *n, const struct pstk__numa_config *c,
                             uint32_t *n_workers, struct pstk_error *err);
/* Return the OS index of the hardware thread that is counted for a worker; for tests, because no
 * worker is bound to it. Threads of cores that are left are counted for no worker. */
uint32_t pstk__numa_worker_cpu(const struct pstk__numa *n, uint32_t worker);
/* Return the number of cores in the affinity mask. */
uint32_t pstk__numa_n_cores(const struct pstk__numa *n);
/* Return the number of cores that local rank and quota leave to this process. */
uint32_t pstk__numa_n_usable(const struct pstk__numa *n);
/* Find the NUMA node nearest to a PCI device, for pstk__numa_map and pstk__numa_pin_node; bus_id as
 * CUDA writes it, "0000:3B:00.0". Returns its index: pstk__numa_n_nodes or above if the node has no
 * worker; UINT32_MAX if the topology has several nodes and none is nearest. It may add to the plan:
 * do not call it while other threads use `n`. */
uint32_t pstk__numa_pci_node(struct pstk__numa *n, const char *bus_id);
/* Bind the calling thread to all cores of a node in this process's share. A node without workers
 * has none there: the thread is bound to the node's cores in the affinity mask, or stays unbound if
 * the mask has none of them. Returns 0 or a native errno; 0 when nothing is bound. */
int pstk__numa_pin_node(struct pstk__numa *n, uint32_t node);
/* Map `size` zeroed bytes, page aligned (2 MiB aligned from 2 MiB on, for huge pages), and bind
 * them to a node when there are several. NULL when there is no memory. *bound becomes 0 when the
 * kernel refused to bind; the memory is still returned. */
void *pstk__numa_map(struct pstk__numa *n, size_t size, uint32_t node, int *bound);
void pstk__numa_unmap(void *p, size_t size);

#endif
