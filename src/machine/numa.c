/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/numa.h"

#include "base/error.h"
#include "machine/pci.h"
#include "machine/placement.h"

#include <errno.h>
#include <hwloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE ((size_t)2 << 20) /* huge page of x86-64 and of most aarch64, bytes */

/* One hardware thread that this process may use. */
struct hw_thread {
    hwloc_obj_t pu;
    hwloc_obj_t memory; /* the NUMA node nearest to it */
    uint32_t core;      /* index among the allowed cores, sorted by node */
    uint32_t thread;    /* index among the hardware threads of that core */
    uint32_t node;      /* index among the nodes of the plan; set only for threads of the plan */
    uint32_t is_left;   /* 1: no worker is counted for its core */
};

struct node {
    hwloc_obj_t memory;
    hwloc_cpuset_t cpus; /* owned; the node's planned threads; for a node that only has a device,
                            its allowed threads */
};

struct pstk__numa {
    hwloc_topology_t topology; /* owned; NULL until loaded */
    int is_this_machine;       /* 0: threads are not pinned, memory is not bound */
    int pin;
    uint32_t n_cores;      /* cores in the affinity mask */
    uint32_t n_usable;     /* cores that local rank and quota leave to this process */
    uint32_t *share_cores; /* [n_share_nodes], owned; cores of each node in this process's share */
    uint32_t n_share_nodes;
    uint32_t n_workers;
    uint32_t n_nodes; /* nodes with workers */
    uint32_t n_known; /* all nodes, >= n_nodes: the others only have a device */
    uint32_t n_hw_threads;
    hwloc_cpuset_t allowed;       /* owned; the hardware threads in the affinity mask */
    struct hw_thread *hw_threads; /* owned; sorted by is_left, thread, core: the workers' cores,
                                     their second threads, then the cores left to others */
    struct hw_thread **worker_hw_threads; /* owned; [n_workers], into hw_threads */
    struct node nodes[PSTK__MAX_NODES];
};

static int is_file(const char *path)
{
    return access(path, R_OK) == 0;
}

/* Keep PCI devices only: for the devices of OpenCL and NVML hwloc would start these libraries. Let
 * the kernel list the devices: hwloc's libpciaccess component adds names, leaks memory with each
 * topology, is not safe when two threads load one, and may print. On a machine without this
 * component, excluding it fails, which does no harm. */
static int keep_pci_devices(hwloc_topology_t topology)
{
    (void)hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "pci");
    return hwloc_topology_set_type_filter(topology, HWLOC_OBJ_PCI_DEVICE,
                                          HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
}

static int load_topology(struct pstk__numa *n, const struct pstk__numa_config *c,
                         struct pstk_error *err)
{
    const char *description = c->topology;
    if (hwloc_topology_init(&n->topology) < 0) {
        n->topology = NULL;
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                          "no memory for the machine's topology");
    }
    int r = 0;
    if (description && is_file(description))
        r = hwloc_topology_set_xml(n->topology, description);
    else if (description)
        r = hwloc_topology_set_synthetic(n->topology, description);
    if (r < 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "topology: value is \"%s\"; must be an XML file that hwloc reads or a "
                          "synthetic description such as \"node:2 core:4 pu:2\"",
                          description);
    /* Caches are not needed; without them loading is faster. */
    r = hwloc_topology_set_cache_types_filter(n->topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    if (r == 0 && c->with_pci)
        r = keep_pci_devices(n->topology);
    if (r == 0)
        r = hwloc_topology_load(n->topology);
    if (r < 0)
        return pstk__fail_errno(err, errno ? errno : EIO, PSTK_STAGE_OPEN,
                                "topology: hwloc could not load %s",
                                description ? description : "this machine's");
    n->is_this_machine = hwloc_topology_is_thissystem(n->topology) != 0;
    return 0;
}

/* List the hardware threads that this process may run on: the masks of all its threads together,
 * because the program may have pinned the thread that opens the loader. Returns owned, or NULL when
 * there is no memory. */
static hwloc_cpuset_t allowed_cpus(const struct pstk__numa *n)
{
    hwloc_cpuset_t cpus = hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(n->topology));
    hwloc_cpuset_t mask = hwloc_bitmap_alloc();
    if (cpus && mask && n->is_this_machine &&
        hwloc_get_cpubind(n->topology, mask, HWLOC_CPUBIND_PROCESS) == 0 &&
        hwloc_bitmap_intersects(cpus, mask) && hwloc_bitmap_and(cpus, cpus, mask) < 0) {
        hwloc_bitmap_free(cpus);
        cpus = NULL;
    }
    if (!mask) {
        hwloc_bitmap_free(cpus);
        cpus = NULL;
    }
    hwloc_bitmap_free(mask);
    return cpus;
}

/* Find the node that has the fewest processors around this one (OS index): a node of its own rather
 * than one that all share (slow, far memory). Among equals take the first, which in hwloc is the
 * ordinary memory. Processors that a container is denied count too: their numbers show which node
 * belongs to which processors. */
static hwloc_obj_t memory_of(hwloc_topology_t topology, unsigned cpu)
{
    hwloc_obj_t best = NULL, node = NULL;
    while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node))) {
        hwloc_const_cpuset_t cpus = node->complete_cpuset;
        if (!hwloc_bitmap_isset(cpus, cpu))
            continue;
        if (!best || hwloc_bitmap_weight(cpus) < hwloc_bitmap_weight(best->complete_cpuset))
            best = node;
    }
    return best;
}

static int compare_by_node(const void *a, const void *b)
{
    const struct hw_thread *x = a, *y = b;
    if (x->memory->logical_index != y->memory->logical_index)
        return x->memory->logical_index < y->memory->logical_index ? -1 : 1;
    return x->pu->logical_index < y->pu->logical_index
               ? -1
               : x->pu->logical_index > y->pu->logical_index;
}

static int compare_by_thread(const void *a, const void *b)
{
    const struct hw_thread *x = a, *y = b;
    if (x->is_left != y->is_left)
        return x->is_left < y->is_left ? -1 : 1;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return x->core < y->core ? -1 : x->core > y->core;
}

/* Return the core of a hardware thread, or the thread itself when hwloc sees no cores. */
static hwloc_obj_t core_of(hwloc_topology_t topology, hwloc_obj_t pu)
{
    hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, pu);
    return core ? core : pu;
}

/* Number the cores, and the threads within each; hardware threads must be sorted by node. Returns
 * the number of cores. */
static uint32_t number_cores(struct pstk__numa *n)
{
    uint32_t n_cores = 0;
    hwloc_obj_t last = NULL;
    for (uint32_t i = 0; i < n->n_hw_threads; i++) {
        struct hw_thread *hw_thread = &n->hw_threads[i];
        hwloc_obj_t core = core_of(n->topology, hw_thread->pu);
        hw_thread->thread = core == last ? n->hw_threads[i - 1].thread + 1 : 0;
        n_cores += core != last;
        hw_thread->core = n_cores - 1;
        last = core;
    }
    return n_cores;
}

static int list_hw_threads(struct pstk__numa *n, struct pstk_error *err)
{
    int n_pus = hwloc_get_nbobjs_by_type(n->topology, HWLOC_OBJ_PU);
    n->allowed = allowed_cpus(n);
    n->hw_threads = n_pus > 0 ? calloc((size_t)n_pus, sizeof n->hw_threads[0]) : NULL;
    if (!n->allowed || !n->hw_threads)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                          "no memory for the machine's topology");
    hwloc_obj_t pu = NULL;
    while ((pu = hwloc_get_next_obj_by_type(n->topology, HWLOC_OBJ_PU, pu))) {
        hwloc_obj_t memory = memory_of(n->topology, pu->os_index);
        if (memory && hwloc_bitmap_isset(n->allowed, pu->os_index))
            n->hw_threads[n->n_hw_threads++] = (struct hw_thread){.pu = pu, .memory = memory};
    }
    if (n->n_hw_threads == 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "the topology has no processor with local memory");
    qsort(n->hw_threads, n->n_hw_threads, sizeof n->hw_threads[0], compare_by_node);
    n->n_cores = number_cores(n);
    return 0;
}

/* Cores [first, end) of the allowed ones. */
struct span {
    uint32_t first, end;
};

/* Return part `i` of `parts` of a span. It is never empty: when there are more parts than cores,
 * parts share cores. */
static struct span part_of(struct span span, uint32_t i, uint32_t parts)
{
    uint64_t n = span.end - span.first;
    struct span part = {span.first + (uint32_t)(n * i / parts),
                        span.first + (uint32_t)(n * (i + 1) / parts)};
    if (part.first == part.end)
        part.end++;
    return part;
}

/* Return the cores of nodes [first, end), counted among the nodes that have allowed cores. *n_nodes
 * is the number of such nodes. */
static struct span cores_of_nodes(const struct pstk__numa *n, struct span nodes, uint32_t *n_nodes)
{
    struct span cores = {UINT32_MAX, 0};
    uint32_t count = 0;
    for (uint32_t i = 0; i < n->n_hw_threads; i++) {
        const struct hw_thread *hw_thread = &n->hw_threads[i];
        count += i == 0 || hw_thread->memory != n->hw_threads[i - 1].memory;
        if (count - 1 < nodes.first || count - 1 >= nodes.end)
            continue;
        if (cores.first == UINT32_MAX)
            cores.first = hw_thread->core;
        cores.end = hw_thread->core + 1;
    }
    *n_nodes = count;
    return cores;
}

/* Return the share of one of `world` processes: whole nodes, or a part of one node, when the number
 * of nodes and `world` divide evenly; else a part of all cores. */
static struct span share_of(const struct pstk__numa *n, uint32_t rank, uint32_t world)
{
    uint32_t n_nodes;
    struct span all = cores_of_nodes(n, (struct span){0, UINT32_MAX}, &n_nodes);
    if (n_nodes % world == 0) {
        uint32_t each = n_nodes / world;
        return cores_of_nodes(n, (struct span){rank * each, (rank + 1) * each}, &n_nodes);
    }
    if (world % n_nodes == 0) {
        uint32_t each = world / n_nodes;
        struct span node = {rank / each, rank / each + 1};
        return part_of(cores_of_nodes(n, node, &n_nodes), rank % each, each);
    }
    return part_of(all, rank, world);
}

/* Keep only the hardware threads of these cores, one thread of each core before the second threads.
 */
static void keep_share(struct pstk__numa *n, struct span share)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n->n_hw_threads; i++)
        if (n->hw_threads[i].core >= share.first && n->hw_threads[i].core < share.end)
            n->hw_threads[kept++] = n->hw_threads[i];
    n->n_hw_threads = kept;
    qsort(n->hw_threads, n->n_hw_threads, sizeof n->hw_threads[0], compare_by_thread);
}

/* Return how many cores the quota leaves to each of `world` processes, which share it. */
static uint32_t cores_of_quota(double quota, uint32_t world, uint32_t n_cores)
{
    double each = quota / world;
    if (quota <= 0 || each >= n_cores)
        return n_cores;
    uint32_t whole = (uint32_t)each;
    whole += each > whole;
    return whole ? whole : 1;
}

/* Count the cores of each node in the share, in the order of the nodes. The first n_cores threads
 * are the cores. */
static int count_cores(struct pstk__numa *n, uint32_t n_cores, struct pstk_error *err)
{
    n->share_cores = calloc(n_cores, sizeof n->share_cores[0]);
    if (!n->share_cores)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the nodes' plan");
    for (uint32_t i = 0; i < n_cores; i++) {
        n->n_share_nodes += i == 0 || n->hw_threads[i].memory != n->hw_threads[i - 1].memory;
        n->share_cores[n->n_share_nodes - 1]++;
    }
    return 0;
}

/* Return the index of a node among those of the share, UINT32_MAX for any other node. */
static uint32_t find_share_node(const struct pstk__numa *n, hwloc_obj_t memory)
{
    for (uint32_t node = 0, core = 0; node < n->n_share_nodes; core += n->share_cores[node++])
        if (n->hw_threads[core].memory == memory)
            return node;
    return UINT32_MAX;
}

/* Mark the last cores of each node that are left, and move their threads to the end. */
static void leave_cores(struct pstk__numa *n, const struct pstk__placement *p)
{
    for (uint32_t node = 0, end = 0; node < n->n_share_nodes; node++) {
        end += n->share_cores[node];
        for (uint32_t i = end - p->nodes[node].n_left; i < end; i++)
            for (uint32_t k = 0; k < n->n_hw_threads; k++)
                n->hw_threads[k].is_left |= n->hw_threads[k].core == n->hw_threads[i].core;
    }
    qsort(n->hw_threads, n->n_hw_threads, sizeof n->hw_threads[0], compare_by_thread);
}

/* Return the hardware thread that is counted for a worker: the threads of its core take turns.
 * After leave_cores the first n_kept threads are the cores that workers are counted for. */
static struct hw_thread *thread_of(struct pstk__numa *n, const struct pstk__placement *p,
                                   uint32_t worker)
{
    struct hw_thread *thread = &n->hw_threads[pstk__placement_core(p, worker)];
    const uint32_t core = thread->core;
    uint32_t n_threads = 0;
    for (uint32_t i = 0; i < n->n_hw_threads; i++)
        n_threads += n->hw_threads[i].core == core;
    for (uint32_t i = 0; i < n->n_hw_threads; i++)
        if (n->hw_threads[i].core == core &&
            n->hw_threads[i].thread == worker / p->n_kept % n_threads)
            thread = &n->hw_threads[i];
    return thread;
}

/* Choose a hardware thread for each worker. It decides only the worker's node. */
static int place_workers(struct pstk__numa *n, const struct pstk__placement *p,
                         struct pstk_error *err)
{
    n->n_workers = p->n_workers;
    n->worker_hw_threads = calloc(n->n_workers, sizeof n->worker_hw_threads[0]);
    if (!n->worker_hw_threads)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                          "no memory for the workers' hardware threads");
    leave_cores(n, p);
    for (uint32_t w = 0; w < n->n_workers; w++)
        n->worker_hw_threads[w] = thread_of(n, p, w);
    return 0;
}

/* Return the index of a node that has a worker or device, UINT32_MAX for any other node. */
static uint32_t find_node(const struct pstk__numa *n, hwloc_obj_t memory)
{
    for (uint32_t i = 0; i < n->n_known; i++)
        if (n->nodes[i].memory == memory)
            return i;
    return UINT32_MAX;
}

/* Number the nodes that have workers, and collect the processors of each. */
static int number_nodes(struct pstk__numa *n, struct pstk_error *err)
{
    for (uint32_t w = 0; w < n->n_workers; w++) {
        hwloc_obj_t memory = n->worker_hw_threads[w]->memory;
        if (find_node(n, memory) != UINT32_MAX)
            continue;
        if (n->n_nodes == PSTK__MAX_NODES)
            return pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_OPEN,
                              "the workers are on more than %d NUMA nodes: narrow the affinity "
                              "mask, or set n_threads to %d",
                              PSTK__MAX_NODES, PSTK__MAX_NODES);
        struct node *node = &n->nodes[n->n_nodes];
        node->memory = memory;
        node->cpus = hwloc_bitmap_alloc();
        if (!node->cpus)
            return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the nodes' plan");
        n->n_known = ++n->n_nodes;
    }
    for (uint32_t i = 0; i < n->n_hw_threads; i++) {
        struct hw_thread *hw_thread = &n->hw_threads[i];
        hw_thread->node = find_node(n, hw_thread->memory);
        if (hw_thread->node != UINT32_MAX &&
            hwloc_bitmap_set(n->nodes[hw_thread->node].cpus, hw_thread->pu->os_index) < 0)
            return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the nodes' plan");
    }
    return 0;
}

/* Return 1 when a node is near to a set of processors: the nearest node of at least one of them.
 * Far memory is no processor's nearest node, nor is a GPU's own memory on machines that show it as
 * a node. */
static int is_near(const struct pstk__numa *n, hwloc_obj_t node, hwloc_const_cpuset_t cpus)
{
    int cpu = hwloc_bitmap_first(node->complete_cpuset);
    for (; cpu >= 0; cpu = hwloc_bitmap_next(node->complete_cpuset, cpu))
        if (hwloc_bitmap_isset(cpus, (unsigned)cpu) &&
            memory_of(n->topology, (unsigned)cpu) == node)
            return 1;
    return 0;
}

/* Return 2 for a node of the plan, 1 for a node with cores of the share, else 0. */
static int use_of(const struct pstk__numa *n, hwloc_obj_t memory)
{
    if (find_node(n, memory) != UINT32_MAX)
        return 2;
    for (uint32_t i = 0; i < n->n_hw_threads; i++)
        if (n->hw_threads[i].memory == memory)
            return 1;
    return 0;
}

/* Find a node near to these processors, NULL when there is none; *n_found counts them. If there are
 * several (a package can be cut into four nodes), prefer one with workers: they write the data that
 * the device reads. */
static hwloc_obj_t memory_near(const struct pstk__numa *n, hwloc_const_cpuset_t cpus, int *n_found)
{
    hwloc_obj_t best = NULL, node = NULL;
    *n_found = 0;
    while ((node = hwloc_get_next_obj_by_type(n->topology, HWLOC_OBJ_NUMANODE, node))) {
        if (!is_near(n, node, cpus))
            continue;
        if (!best || use_of(n, node) > use_of(n, best))
            best = node;
        ++*n_found;
    }
    return best;
}

/* Find the node by hwloc, which places a device under the object whose processors are all equally
 * near to it. That object is the whole machine when the firmware reports nothing. */
static hwloc_obj_t memory_by_topology(const struct pstk__numa *n, const char *bus_id, int *n_found)
{
    hwloc_obj_t device = hwloc_get_pcidev_by_busidstring(n->topology, bus_id);
    hwloc_obj_t near = device ? hwloc_get_non_io_ancestor_obj(n->topology, device) : NULL;
    *n_found = 0;
    if (!near || hwloc_bitmap_isequal(near->complete_cpuset,
                                      hwloc_topology_get_complete_cpuset(n->topology)))
        return NULL;
    return memory_near(n, near->complete_cpuset, n_found);
}

static hwloc_obj_t memory_by_sysfs(const struct pstk__numa *n, const char *bus_id)
{
    struct pstk__pci pci;
    if (!n->is_this_machine || pstk__pci_get("/", bus_id, &pci) < 0 || pci.numa_node < 0)
        return NULL;
    return hwloc_get_numanode_obj_by_os_index(n->topology, (unsigned)pci.numa_node);
}

static hwloc_obj_t memory_of_device(const struct pstk__numa *n, const char *bus_id)
{
    int n_found;
    hwloc_obj_t only = memory_near(n, hwloc_topology_get_complete_cpuset(n->topology), &n_found);
    if (n_found == 1)
        return only;
    hwloc_obj_t memory = memory_by_topology(n, bus_id, &n_found);
    if (n_found == 1)
        return memory;
    hwloc_obj_t by_sysfs = memory_by_sysfs(n, bus_id);
    return by_sysfs ? by_sysfs : memory;
}

/* Decide the plan of the threads. `p` gets nodes, which the caller frees. */
static int place_threads(const struct pstk__numa *n, const struct pstk__numa_config *c,
                         struct pstk__placement *p, struct pstk_error *err)
{
    p->nodes = calloc(n->n_share_nodes, sizeof p->nodes[0]);
    if (!p->nodes)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the nodes' plan");
    const int has_uploader = c->bus_id != NULL;
    hwloc_obj_t near_device = has_uploader && !c->n_workers ? memory_of_device(n, c->bus_id) : NULL;
    const struct pstk__placement_config config = {
        .n_cores = n->share_cores,
        .n_nodes = n->n_share_nodes,
        .n_usable = n->n_usable,
        .n_workers = c->n_workers,
        .n_more = c->n_more,
        .n_times = c->n_times,
        .reader_reads = c->reader_reads,
        .has_uploader = has_uploader,
        .device_node = near_device ? find_share_node(n, near_device) : UINT32_MAX};
    pstk__placement_init(p, &config);
    return 0;
}

static int plan(struct pstk__numa *n, const struct pstk__numa_config *c, struct pstk_error *err)
{
    struct pstk__placement p = {.nodes = NULL};
    int r = list_hw_threads(n, err);
    if (r < 0)
        return r;
    const struct span share = share_of(n, c->local_rank, c->local_world);
    const uint32_t n_cores = share.end - share.first;
    keep_share(n, share);
    const double quota = n->is_this_machine ? pstk__cgroup_cpus("/") : 0;
    n->n_usable = cores_of_quota(quota, c->local_world, n_cores);
    r = count_cores(n, n_cores, err);
    if (r == 0)
        r = place_threads(n, c, &p, err);
    if (r == 0)
        r = place_workers(n, &p, err);
    free(p.nodes);
    return r < 0 ? r : number_nodes(n, err);
}

int pstk__numa_open(struct pstk__numa **out, const struct pstk__numa_config *c,
                    struct pstk_error *err)
{
    *out = NULL;
    if (c->local_rank >= c->local_world)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "local_rank: value is %u; must be below local_world, which is %u",
                          c->local_rank, c->local_world);
    if (c->n_workers > PSTK__MAX_WORKERS)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "n_threads: value is %u; must be at most %d", c->n_workers,
                          PSTK__MAX_WORKERS);
    struct pstk__numa *n = calloc(1, sizeof *n);
    if (!n)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                          "no memory for the machine's topology");
    n->pin = c->pin;
    int r = load_topology(n, c, err);
    if (r == 0)
        r = plan(n, c, err);
    if (r < 0) {
        pstk__numa_close(n);
        return r;
    }
    *out = n;
    return 0;
}

void pstk__numa_close(struct pstk__numa *n)
{
    if (!n)
        return;
    for (uint32_t i = 0; i < n->n_known; i++)
        hwloc_bitmap_free(n->nodes[i].cpus);
    hwloc_bitmap_free(n->allowed);
    free(n->worker_hw_threads);
    free(n->share_cores);
    free(n->hw_threads);
    if (n->topology)
        hwloc_topology_destroy(n->topology);
    free(n);
}

uint32_t pstk__numa_n_nodes(const struct pstk__numa *n)
{
    return n->n_nodes;
}

uint32_t pstk__numa_n_workers(const struct pstk__numa *n)
{
    return n->n_workers;
}

int pstk__numa_count_workers(const struct pstk__numa *n, const struct pstk__numa_config *c,
                             uint32_t *n_workers, struct pstk_error *err)
{
    struct pstk__placement p = {.nodes = NULL};
    const int r = place_threads(n, c, &p, err);
    *n_workers = p.n_workers;
    free(p.nodes);
    return r;
}

uint32_t pstk__numa_worker_node(const struct pstk__numa *n, uint32_t worker)
{
    return n->worker_hw_threads[worker]->node;
}

uint32_t pstk__numa_worker_cpu(const struct pstk__numa *n, uint32_t worker)
{
    return n->worker_hw_threads[worker]->pu->os_index;
}

uint32_t pstk__numa_n_cores(const struct pstk__numa *n)
{
    return n->n_cores;
}

uint32_t pstk__numa_n_usable(const struct pstk__numa *n)
{
    return n->n_usable;
}

uint32_t pstk__numa_pci_node(struct pstk__numa *n, const char *bus_id)
{
    hwloc_obj_t memory = memory_of_device(n, bus_id);
    uint32_t i = memory ? find_node(n, memory) : UINT32_MAX;
    if (!memory || i != UINT32_MAX || n->n_known == PSTK__MAX_NODES)
        return i;
    hwloc_cpuset_t cpus = hwloc_bitmap_dup(memory->cpuset);
    if (!cpus || hwloc_bitmap_and(cpus, cpus, n->allowed) < 0) {
        hwloc_bitmap_free(cpus);
        return UINT32_MAX;
    }
    n->nodes[n->n_known] = (struct node){.memory = memory, .cpus = cpus};
    return n->n_known++;
}

static int bind_thread(struct pstk__numa *n, hwloc_const_cpuset_t cpus)
{
    if (!n->pin || !n->is_this_machine || hwloc_bitmap_iszero(cpus))
        return 0;
    if (hwloc_set_cpubind(n->topology, cpus, HWLOC_CPUBIND_THREAD) == 0)
        return 0;
    return errno ? errno : EIO;
}

int pstk__numa_pin_node(struct pstk__numa *n, uint32_t node)
{
    return bind_thread(n, n->nodes[node].cpus);
}

/* Map memory that begins at a huge page when it is large enough for one. Maps more than that, and
 * unmaps the excess at once. */
static void *map_aligned(size_t size)
{
    const size_t extra = size < HUGE_PAGE || size > SIZE_MAX - HUGE_PAGE ? 0 : HUGE_PAGE;
    uint8_t *p =
        mmap(NULL, size + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (size + page - 1) / page * page;
    const size_t before = extra ? (HUGE_PAGE - (uintptr_t)p % HUGE_PAGE) % HUGE_PAGE : 0;
    const size_t mapped = (size + extra + page - 1) / page * page, after = mapped - before - whole;
    if (before > 0)
        munmap(p, before);
    if (after > 0)
        munmap(p + before + whole, after);
    return p + before;
}

void *pstk__numa_map(struct pstk__numa *n, size_t size, uint32_t node, int *bound)
{
    void *p = map_aligned(size);
    if (!p)
        return NULL;
    if (!n->is_this_machine || hwloc_get_nbobjs_by_type(n->topology, HWLOC_OBJ_NUMANODE) < 2)
        return p;
    /* Bind before the first touch, so that no page has to move. The binding is not strict: when the
     * node is full, the next one gives memory, whereas a strict binding would call the
     * out-of-memory killer. */
    int r = hwloc_set_area_membind(n->topology, p, size, n->nodes[node].memory->nodeset,
                                   HWLOC_MEMBIND_BIND, HWLOC_MEMBIND_BYNODESET);
    if (r < 0 && bound)
        *bound = 0;
    return p;
}

void pstk__numa_unmap(void *p, size_t size)
{
    if (p)
        munmap(p, size);
}
