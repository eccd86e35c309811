/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/placement.h"

#define WORKERS_FIRST 4u /* workers that a node keeps before it leaves a core */
/* Cores of a node from which on its reader has one even if the workers make the reads: it then
 * takes 3 us for each 400 us of 31 workers, a quarter of a core, and one core is 1/32 of all. */
#define MANY_CORES 32u

static uint32_t sum_of(const struct pstk__placement_config *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_nodes; i++)
        n += c->n_cores[i];
    return n;
}

/* Return the number of cores that may be left: the first workers of each node keep theirs. */
static uint32_t cores_to_spare(const struct pstk__placement_config *c)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < c->n_nodes; i++)
        first += c->n_cores[i] < WORKERS_FIRST ? c->n_cores[i] : WORKERS_FIRST;
    return c->n_usable > first ? c->n_usable - first : 0;
}

/* Leave one more core of a node, unless the first workers need it. Returns 1 when it did. */
static uint32_t leave_core(struct pstk__placement *p, const struct pstk__placement_config *c,
                           uint32_t node)
{
    if (c->n_cores[node] - p->nodes[node].n_left <= WORKERS_FIRST)
        return 0;
    p->nodes[node].n_left++;
    p->n_left++;
    return 1;
}

/* Return 1 if a reader that shares a core with a worker would cost more than a core of its own. */
static int reader_needs_core(const struct pstk__placement_config *c, uint32_t node, uint32_t n_all)
{
    return c->reader_reads || (uint64_t)c->n_cores[node] * c->n_usable / n_all >= MANY_CORES;
}

/* Leave the cores of the readers, then that of the uploader: on the device's node, or else on the
 * last node that has one to spare. */
static void leave_cores(struct pstk__placement *p, const struct pstk__placement_config *c,
                        uint32_t n_all)
{
    const uint32_t most = cores_to_spare(c);
    for (uint32_t i = 0; i < c->n_nodes && p->n_left < most; i++)
        if (reader_needs_core(c, i, n_all))
            leave_core(p, c, i);
    if (!c->has_uploader || p->n_left >= most)
        return;
    uint32_t is_left = c->device_node < c->n_nodes && leave_core(p, c, c->device_node);
    for (uint32_t i = c->n_nodes; i > 0 && !is_left; i--)
        is_left = leave_core(p, c, i - 1);
}

/* Return the node of a core, by its index among those kept. */
static uint32_t node_of(const struct pstk__placement *p, const struct pstk__placement_config *c,
                        uint32_t core)
{
    uint32_t node = 0;
    for (uint32_t end = 0; node + 1 < c->n_nodes; node++) {
        end += c->n_cores[node] - p->nodes[node].n_left;
        if (core < end)
            break;
    }
    return node;
}

void pstk__placement_init(struct pstk__placement *p, const struct pstk__placement_config *c)
{
    const uint32_t n_all = sum_of(c);
    *p = (struct pstk__placement){.nodes = p->nodes, .n_workers = c->n_workers};
    for (uint32_t i = 0; i < c->n_nodes; i++)
        p->nodes[i] = (struct pstk__node_threads){0};
    if (c->n_workers == 0) {
        leave_cores(p, c, n_all);
        const uint64_t n = c->n_usable - p->n_left + (uint64_t)c->n_usable * c->n_times + c->n_more;
        p->n_workers = n < PSTK__MAX_WORKERS ? (uint32_t)n : PSTK__MAX_WORKERS;
    }
    p->n_kept = n_all - p->n_left;
    for (uint32_t w = 0; w < p->n_workers; w++)
        p->nodes[node_of(p, c, pstk__placement_core(p, w))].n_workers++;
}

uint32_t pstk__placement_core(const struct pstk__placement *p, uint32_t worker)
{
    return p->n_workers < p->n_kept ? (uint32_t)((uint64_t)worker * p->n_kept / p->n_workers)
                                    : worker % p->n_kept;
}

uint32_t pstk__placement_readers(uint32_t n_workers, uint32_t n_nodes, int for_each_worker,
                                 uint32_t n_max)
{
    const uint32_t n = for_each_worker ? n_workers : 1, most = n_max / n_nodes;
    return n < most ? n : most > 1 ? most : 1;
}
