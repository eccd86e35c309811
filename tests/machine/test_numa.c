/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/numa.h"
#include "machine/pci.h"
#include "support/test.h"

#include <hwloc.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

/* Linked with --wrap: the nth of these calls of the library fails, counted from 1; 0 = none. */
static int fail_at, n_calls;

static int fails(void)
{
    return ++n_calls == fail_at;
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

hwloc_bitmap_t __real_hwloc_bitmap_alloc(void);
hwloc_bitmap_t __wrap_hwloc_bitmap_alloc(void);
hwloc_bitmap_t __wrap_hwloc_bitmap_alloc(void)
{
    return fails() ? NULL : __real_hwloc_bitmap_alloc();
}

hwloc_bitmap_t __real_hwloc_bitmap_dup(hwloc_const_bitmap_t b);
hwloc_bitmap_t __wrap_hwloc_bitmap_dup(hwloc_const_bitmap_t b);
hwloc_bitmap_t __wrap_hwloc_bitmap_dup(hwloc_const_bitmap_t b)
{
    return fails() ? NULL : __real_hwloc_bitmap_dup(b);
}

int __real_hwloc_topology_init(hwloc_topology_t *t);
int __wrap_hwloc_topology_init(hwloc_topology_t *t);
int __wrap_hwloc_topology_init(hwloc_topology_t *t)
{
    return fails() ? -1 : __real_hwloc_topology_init(t);
}

int __real_hwloc_topology_load(hwloc_topology_t t);
int __wrap_hwloc_topology_load(hwloc_topology_t t);
int __wrap_hwloc_topology_load(hwloc_topology_t t)
{
    return fails() ? -1 : __real_hwloc_topology_load(t);
}

int __real_hwloc_bitmap_set(hwloc_bitmap_t b, unsigned i);
int __wrap_hwloc_bitmap_set(hwloc_bitmap_t b, unsigned i);
int __wrap_hwloc_bitmap_set(hwloc_bitmap_t b, unsigned i)
{
    return fails() ? -1 : __real_hwloc_bitmap_set(b, i);
}

/* Linked likewise: what sysfs tells of every device; -2 = what it really tells. */
static int32_t sysfs_node = -2;

int __real_pstk__pci_get(const char *root, const char *bus_id, struct pstk__pci *out);
int __wrap_pstk__pci_get(const char *root, const char *bus_id, struct pstk__pci *out);
int __wrap_pstk__pci_get(const char *root, const char *bus_id, struct pstk__pci *out)
{
    if (sysfs_node == -2)
        return __real_pstk__pci_get(root, bus_id, out);
    *out = (struct pstk__pci){.numa_node = sysfs_node};
    return 0;
}

#define SMALL "node:2 core:4 pu:2"
#define LARGE "node:8 core:8 pu:1"

static struct pstk_error err;

static struct pstk__numa *open_with(const char *topology, const struct pstk__numa_config *config)
{
    struct pstk__numa_config c = *config;
    c.topology = topology;
    c.pin = 1;
    struct pstk__numa *n;
    return pstk__numa_open(&n, &c, &err) < 0 ? NULL : n;
}

static struct pstk__numa *open_part(const char *topology, uint32_t n_workers, uint32_t local_rank,
                                    uint32_t local_world)
{
    const struct pstk__numa_config c = {.n_workers = n_workers,
                                        .local_rank = local_rank,
                                        .local_world = local_world,
                                        .reader_reads = 1};
    return open_with(topology, &c);
}

/* The plan as text: "node:cpu node:cpu ...". */
static const char *plan_of(const char *topology, uint32_t n_workers, uint32_t rank, uint32_t world)
{
    static char text[8192];
    struct pstk__numa *n = open_part(topology, n_workers, rank, world);
    if (!n)
        return err.message;
    size_t at = 0;
    text[0] = 0;
    for (uint32_t w = 0; w < pstk__numa_n_workers(n); w++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%u:%u", w ? " " : "",
                               pstk__numa_worker_node(n, w), pstk__numa_worker_cpu(n, w));
    pstk__numa_close(n);
    return text;
}

TEST(by_itself_there_is_one_worker_a_core_on_its_first_thread)
{
    CHECK_STR(plan_of(SMALL, 0, 0, 1), "0:0 0:2 0:4 0:6 1:8 1:10 1:12 1:14");
}

/* Return the cores that workers count on, as "0-6,8-14 of 16": with `pus` hardware threads a core,
 * of the usable ones. Closes n. */
static const char *cores_of(struct pstk__numa *n, uint32_t pus)
{
    static char text[512];
    uint8_t has_worker[1024] = {0};
    size_t at = 0;
    if (!n)
        return err.message;
    for (uint32_t w = 0; w < pstk__numa_n_workers(n); w++)
        has_worker[pstk__numa_worker_cpu(n, w) / pus] = 1;
    for (uint32_t i = 0, end; i < 1023; i = end + 1) {
        for (end = i; has_worker[end] && end < 1023; end++)
            ;
        if (end > i)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%u", at ? "," : "", i);
        if (end > i + 1)
            at += (size_t)snprintf(text + at, sizeof text - at, "-%u", end - 1);
    }
    snprintf(text + at, sizeof text - at, " of %u", pstk__numa_n_usable(n));
    pstk__numa_close(n);
    return text;
}

TEST(a_reader_and_an_uploader_have_a_core_where_4_workers_a_node_remain)
{
    static const struct {
        const char *topology;
        struct pstk__numa_config c;
        uint32_t pus;
        const char *host, *device; /* the workers' cores with batches there */
    } rows[] = {
        {"node:1 core:1 pu:1", {0}, 1, "0 of 1", "0 of 1"},
        {"node:1 core:2 pu:1", {0}, 1, "0-1 of 2", "0-1 of 2"},
        {"node:1 core:4 pu:1", {0}, 1, "0-3 of 4", "0-3 of 4"},
        {"node:1 core:4 pu:2", {0}, 2, "0-3 of 4", "0-3 of 4"},
        {"node:1 core:5 pu:1", {0}, 1, "0-3 of 5", "0-3 of 5"},
        {"node:1 core:6 pu:1", {0}, 1, "0-4 of 6", "0-3 of 6"},
        {"node:1 core:8 pu:2", {0}, 2, "0-6 of 8", "0-5 of 8"},
        {"node:1 core:16 pu:1", {0}, 1, "0-14 of 16", "0-13 of 16"},
        {"node:1 core:16 pu:2", {0}, 2, "0-14 of 16", "0-13 of 16"},
        {"node:1 core:64 pu:2", {0}, 2, "0-62 of 64", "0-61 of 64"},
        {"node:1 core:128 pu:2", {0}, 2, "0-126 of 128", "0-125 of 128"},
        /* two sockets, a reader each */
        {"pack:2 [numa] core:2 pu:1", {0}, 1, "0-3 of 4", "0-3 of 4"},
        {"pack:2 [numa] core:4 pu:1", {0}, 1, "0-7 of 8", "0-7 of 8"},
        {"pack:2 [numa] core:5 pu:1", {0}, 1, "0-3,5-8 of 10", "0-3,5-8 of 10"},
        {"pack:2 [numa] core:8 pu:1", {0}, 1, "0-6,8-14 of 16", "0-6,8-13 of 16"},
        {"pack:2 [numa] core:64 pu:2", {0}, 2, "0-62,64-126 of 128", "0-62,64-125 of 128"},
        /* 8 ranks */
        {"node:1 core:4 pu:1", {.local_rank = 7, .local_world = 8}, 1, "3 of 1", "3 of 1"},
        {"node:1 core:8 pu:1", {.local_rank = 7, .local_world = 8}, 1, "7 of 1", "7 of 1"},
        {"pack:2 [numa] core:16 pu:1", {.local_world = 8}, 1, "0-3 of 4", "0-3 of 4"},
        {"pack:2 [numa] core:32 pu:2", {.local_world = 8}, 2, "0-6 of 8", "0-5 of 8"},
        {"pack:2 [numa] core:32 pu:2",
         {.local_rank = 4, .local_world = 8},
         2,
         "32-38 of 8",
         "32-37 of 8"},
        {"pack:2 [numa] core:64 pu:1",
         {.local_rank = 7, .local_world = 8},
         1,
         "112-126 of 16",
         "112-125 of 16"},
        /* ranks with uneven parts of nodes: each node by itself */
        {"node:8 core:16 pu:1",
         {.local_rank = 7, .local_world = 9},
         1,
         "99-110,112 of 14",
         "99-109,112 of 14"},
        {"node:8 core:16 pu:1",
         {.local_rank = 1, .local_world = 9},
         1,
         "14-26 of 14",
         "14-25 of 14"},
        {"node:3 core:6 pu:1", {.local_world = 2}, 1, "0-4,6-8 of 9", "0-3,6-8 of 9"},
        {"node:3 core:6 pu:1", {.local_rank = 1, .local_world = 2}, 1, "9-16 of 9", "9-15 of 9"},
        /* so many as were asked for: nothing is left */
        {"node:1 core:16 pu:1", {.n_workers = 16}, 1, "0-15 of 16", "0-15 of 16"},
        {"node:1 core:16 pu:1", {.n_workers = 20}, 1, "0-15 of 16", "0-15 of 16"},
        {"node:1 core:16 pu:1", {.n_workers = 15}, 1, "0-14 of 16", "0-14 of 16"},
        {"node:1 core:16 pu:1", {.n_workers = 2}, 1, "0,8 of 16", "0,8 of 16"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pstk__numa_config c = rows[i].c;
        c.local_world = c.local_world ? c.local_world : 1;
        c.reader_reads = 1;
        printf("# %s, rank %u of %u\n", rows[i].topology, c.local_rank, c.local_world);
        CHECK_STR(cores_of(open_with(rows[i].topology, &c), rows[i].pus), rows[i].host);
        c.bus_id = ""; /* a device of which the node is unknown */
        CHECK_STR(cores_of(open_with(rows[i].topology, &c), rows[i].pus), rows[i].device);
    }
}

TEST(a_reader_whose_workers_make_the_reads_has_a_core_on_nodes_of_32_cores)
{
    static const struct {
        const char *topology;
        struct pstk__numa_config c;
        uint32_t pus;
        const char *host, *device;
    } rows[] = {
        {"node:1 core:2 pu:1", {0}, 1, "0-1 of 2", "0-1 of 2"},
        {"node:1 core:8 pu:2", {0}, 2, "0-7 of 8", "0-6 of 8"},
        {"node:1 core:31 pu:2", {0}, 2, "0-30 of 31", "0-29 of 31"},
        {"node:1 core:32 pu:2", {0}, 2, "0-30 of 32", "0-29 of 32"},
        {"pack:2 [numa] core:64 pu:2", {0}, 2, "0-62,64-126 of 128", "0-62,64-125 of 128"},
        {"pack:2 [numa] core:32 pu:2", {.local_world = 2}, 2, "0-30 of 32", "0-29 of 32"},
        {"pack:2 [numa] core:32 pu:2",
         {.local_rank = 3, .local_world = 4},
         2,
         "48-63 of 16",
         "48-62 of 16"},
        {"pack:2 [numa] core:32 pu:2",
         {.local_rank = 7, .local_world = 8},
         2,
         "56-63 of 8",
         "56-62 of 8"},
        {"pack:2 [numa] core:32 pu:2", {.n_workers = 64}, 2, "0-63 of 64", "0-63 of 64"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pstk__numa_config c = rows[i].c;
        c.local_world = c.local_world ? c.local_world : 1;
        printf("# %s, rank %u of %u\n", rows[i].topology, c.local_rank, c.local_world);
        CHECK_STR(cores_of(open_with(rows[i].topology, &c), rows[i].pus), rows[i].host);
        c.bus_id = "";
        CHECK_STR(cores_of(open_with(rows[i].topology, &c), rows[i].pus), rows[i].device);
    }
}

TEST(workers_that_wait_for_processes_come_on_top)
{
    struct pstk__numa_config c = {.local_world = 1, .n_more = 3, .n_times = 2, .reader_reads = 1};
    struct pstk__numa *n = open_with("node:1 core:16 pu:1", &c);
    CHECK(n);
    CHECK_EQ(pstk__numa_n_workers(n), 15 + 3 + 2 * 16);
    pstk__numa_close(n);
    c.n_workers = 5;
    n = open_with("node:1 core:16 pu:1", &c);
    CHECK(n);
    CHECK_EQ(pstk__numa_n_workers(n), 5);
    pstk__numa_close(n);
}

TEST(more_workers_than_cores_take_second_threads_and_then_share)
{
    CHECK_STR(plan_of("node:2 core:1 pu:2", 3, 0, 1), "0:0 1:2 0:1");
    CHECK_STR(plan_of("node:2 core:1 pu:2", 4, 0, 1), "0:0 1:2 0:1 1:3");
    CHECK_STR(plan_of("node:2 core:1 pu:2", 6, 0, 1), "0:0 1:2 0:1 1:3 0:0 1:2");
}

TEST(fewer_workers_than_cores_are_spread_over_the_nodes)
{
    CHECK_STR(plan_of(SMALL, 4, 0, 1), "0:0 0:4 1:8 1:12");
    CHECK_STR(plan_of(SMALL, 2, 0, 1), "0:0 1:8");
    CHECK_STR(plan_of(SMALL, 1, 0, 1), "0:0");
}

TEST(local_ranks_take_whole_nodes_where_these_divide)
{
    CHECK_STR(plan_of(SMALL, 0, 0, 2), "0:0 0:2 0:4 0:6");
    CHECK_STR(plan_of(SMALL, 0, 1, 2), "0:8 0:10 0:12 0:14");
    CHECK_STR(plan_of(LARGE, 2, 3, 4), "0:48 1:56");
}

TEST(local_ranks_share_a_node_where_they_divide_by_the_nodes)
{
    CHECK_STR(plan_of(SMALL, 0, 0, 8), "0:0");
    CHECK_STR(plan_of(SMALL, 0, 3, 8), "0:6");
    CHECK_STR(plan_of(SMALL, 0, 4, 8), "0:8");
    CHECK_STR(plan_of(SMALL, 0, 1, 4), "0:4 0:6");
    CHECK_STR(plan_of("node:3 core:2 pu:1", 0, 5, 6), "0:5");
}

TEST(local_ranks_that_do_not_divide_take_the_cores_in_order)
{
    CHECK_STR(plan_of(SMALL, 0, 0, 3), "0:0 0:2");
    CHECK_STR(plan_of(SMALL, 0, 1, 3), "0:4 0:6 1:8");
    CHECK_STR(plan_of(SMALL, 0, 2, 3), "0:10 0:12 0:14");
}

TEST(every_core_belongs_to_one_local_rank_at_most_and_else_to_a_reader)
{
    /* These are the worlds up to 64 that matter: the small ones, and those at and beside what 8
     * nodes of 8 cores divide by. */
    static const uint8_t worlds[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  11, 15,
                                     16, 17, 24, 31, 32, 33, 48, 56, 63, 64};
    for (uint32_t i = 0; i < sizeof worlds; i++) {
        const uint32_t world = worlds[i];
        uint8_t owners[64] = {0};
        uint32_t least = 64, most = 0, n_usable = 0, n_workers = 0;
        for (uint32_t rank = 0; rank < world; rank++) {
            struct pstk__numa *n = open_part(LARGE, 0, rank, world);
            CHECK(n);
            uint32_t count = pstk__numa_n_workers(n);
            for (uint32_t w = 0; w < count; w++)
                owners[pstk__numa_worker_cpu(n, w)]++;
            n_workers += count;
            const uint32_t usable = pstk__numa_n_usable(n);
            n_usable += usable;
            least = usable < least ? usable : least;
            most = usable > most ? usable : most;
            pstk__numa_close(n);
        }
        uint32_t n_owned = 0;
        for (int core = 0; core < 64; core++) {
            CHECK(owners[core] <= 1);
            n_owned += owners[core];
        }
        CHECK(n_usable == 64 && n_owned == n_workers && most - least <= 1);
        if (8 % world == 0) /* whole nodes of 8 cores */
            CHECK_EQ(n_workers, 56);
        if (world >= 16) /* 4 cores each, or fewer */
            CHECK_EQ(n_workers, 64);
    }
}

TEST(more_local_ranks_than_cores_get_one_each_and_share)
{
    for (uint32_t rank = 0; rank < 32; rank++) {
        struct pstk__numa *n = open_part(SMALL, 0, rank, 32);
        CHECK(n);
        CHECK_EQ(pstk__numa_n_workers(n), 1);
        CHECK_EQ(pstk__numa_worker_cpu(n, 0), rank / 4 * 2);
        pstk__numa_close(n);
    }
    CHECK_STR(plan_of("node:1 core:2 pu:1", 0, 4, 5), "0:1");
}

/* Export a synthetic topology without some of its processors (bits of `without`) to a new file. */
static int export_topology(char *path, const char *synthetic, unsigned long without)
{
    int fd = mkstemp(path);
    hwloc_topology_t t;
    if (fd < 0 || close(fd) < 0 || hwloc_topology_init(&t) < 0)
        return -1;
    hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
    int r = hwloc_topology_set_synthetic(t, synthetic);
    if (r == 0)
        r = hwloc_topology_load(t);
    hwloc_bitmap_from_ulong(cpus, without);
    hwloc_bitmap_andnot(cpus, hwloc_topology_get_topology_cpuset(t), cpus);
    if (r == 0)
        r = hwloc_topology_restrict(t, cpus, 0);
    if (r == 0)
        r = hwloc_topology_export_xml(t, path, 0);
    hwloc_bitmap_free(cpus);
    hwloc_topology_destroy(t);
    return r;
}

TEST(an_exported_topology_gives_the_same_plan)
{
    char path[] = "/tmp/pstk-numa-XXXXXX", plan[512];
    CHECK_EQ(export_topology(path, SMALL, 0), 0);
    snprintf(plan, sizeof plan, "%s", plan_of(path, 0, 0, 1));
    unlink(path);
    CHECK_STR(plan, "0:0 0:2 0:4 0:6 1:8 1:10 1:12 1:14");
}

TEST(nodes_are_not_cut_where_they_have_different_numbers_of_cores)
{
    char path[] = "/tmp/pstk-numa-XXXXXX", whole[512], part[512];
    CHECK_EQ(export_topology(path, "node:4 core:2 pu:1", 1ul << 7), 0);
    snprintf(whole, sizeof whole, "%s", plan_of(path, 0, 0, 2));
    unlink(path);
    CHECK_STR(whole, "0:0 0:1 1:2 1:3");
    char other[] = "/tmp/pstk-numa-XXXXXX";
    CHECK_EQ(export_topology(other, "node:2 core:4 pu:1", 3), 0);
    snprintf(part, sizeof part, "%s", plan_of(other, 0, 1, 4));
    unlink(other);
    CHECK_STR(part, "0:3");
}

TEST(a_topology_of_another_machine_pins_nothing_and_gives_memory)
{
    cpu_set_t before, after;
    CHECK(sched_getaffinity(0, sizeof before, &before) == 0);
    struct pstk__numa *n = open_part(LARGE, 0, 0, 1);
    CHECK(n);
    CHECK_EQ(pstk__numa_pin_node(n, 7), 0);
    CHECK(sched_getaffinity(0, sizeof after, &after) == 0 && CPU_EQUAL(&before, &after));
    int bound = 1;
    uint8_t *p = pstk__numa_map(n, 100000, 7, &bound);
    CHECK(p && bound == 1 && (uintptr_t)p % 4096 == 0);
    for (int i = 0; i < 100000; i++)
        CHECK_EQ(p[i], 0);
    memset(p, 1, 100000);
    pstk__numa_unmap(p, 100000);
    pstk__numa_unmap(NULL, 1);
    CHECK(!pstk__numa_map(n, SIZE_MAX / 2, 0, &bound));
    for (size_t size = 2 << 20; size < 9 << 20; size += (1 << 20) + 4096) {
        p = pstk__numa_map(n, size, 0, &bound); /* huge pages would fit */
        CHECK(p && (uintptr_t)p % (2 << 20) == 0);
        CHECK_EQ(p[0] + p[size - 1], 0);
        CHECK_EQ(mprotect(p, size, PROT_NONE), 0);
        pstk__numa_unmap(p, size);
        CHECK(mprotect(p, size, PROT_NONE) != 0); /* nothing of it stays */
    }
    pstk__numa_close(n);
}

TEST(this_machine_is_planned_within_the_affinity_mask_and_threads_are_pinned)
{
    cpu_set_t before, after;
    CHECK(sched_getaffinity(0, sizeof before, &before) == 0);
    struct pstk__numa *n = open_part(NULL, 0, 0, 1);
    CHECK(n);
    CHECK(pstk__numa_n_usable(n) >= 1 && pstk__numa_n_usable(n) <= pstk__numa_n_cores(n));
    CHECK(pstk__numa_n_cores(n) <= (uint32_t)CPU_COUNT(&before));
    CHECK(pstk__numa_n_workers(n) <= pstk__numa_n_usable(n));
    for (uint32_t w = 0; w < pstk__numa_n_workers(n); w++) {
        uint32_t cpu = pstk__numa_worker_cpu(n, w);
        CHECK(CPU_ISSET(cpu, &before));
        CHECK_EQ(pstk__numa_pin_node(n, pstk__numa_worker_node(n, w)), 0);
        CHECK(sched_getaffinity(0, sizeof after, &after) == 0 && CPU_ISSET(cpu, &after));
        CHECK(sched_setaffinity(0, sizeof before, &before) == 0);
    }
    CHECK_EQ(pstk__numa_pin_node(n, 0), 0);
    CHECK(sched_setaffinity(0, sizeof before, &before) == 0);
    int bound = 1;
    void *p = pstk__numa_map(n, 1 << 20, 0, &bound);
    CHECK(p);
    pstk__numa_unmap(p, 1 << 20);
    pstk__numa_close(n);
}

TEST(a_narrower_affinity_mask_leaves_fewer_cores)
{
    cpu_set_t before, one;
    CHECK(sched_getaffinity(0, sizeof before, &before) == 0);
    if (CPU_COUNT(&before) < 2)
        SKIP("a single processor");
    int last = CPU_SETSIZE - 1;
    while (!CPU_ISSET(last, &before))
        last--;
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    struct pstk__numa *n = open_part(NULL, 3, 0, 1);
    CHECK(sched_setaffinity(0, sizeof before, &before) == 0);
    CHECK(n);
    uint32_t n_cores = pstk__numa_n_cores(n), cpu = pstk__numa_worker_cpu(n, 2);
    pstk__numa_close(n);
    CHECK_EQ(n_cores, 1);
    CHECK_EQ(cpu, last);
}

TEST(a_worker_may_use_every_core_of_its_node)
{
    cpu_set_t before, after;
    CHECK(sched_getaffinity(0, sizeof before, &before) == 0);
    struct pstk__numa *n = open_part(NULL, 0, 0, 1);
    CHECK(n);
    uint32_t n_nodes = pstk__numa_n_nodes(n);
    CHECK_EQ(pstk__numa_pin_node(n, pstk__numa_worker_node(n, 0)), 0);
    CHECK(sched_getaffinity(0, sizeof after, &after) == 0);
    CHECK(sched_setaffinity(0, sizeof before, &before) == 0);
    pstk__numa_close(n);
    if (n_nodes > 1)
        SKIP("several nodes");
    CHECK(CPU_EQUAL(&before, &after));
}

TEST(without_pinning_nothing_is_pinned)
{
    cpu_set_t before, after;
    CHECK(sched_getaffinity(0, sizeof before, &before) == 0);
    struct pstk__numa_config c = {.local_world = 1, .pin = 0};
    struct pstk__numa *n;
    CHECK_EQ(pstk__numa_open(&n, &c, &err), 0);
    CHECK_EQ(pstk__numa_pin_node(n, 0), 0);
    pstk__numa_close(n);
    CHECK(sched_getaffinity(0, sizeof after, &after) == 0 && CPU_EQUAL(&before, &after));
}

TEST(invalid_settings_are_refused_by_name)
{
    CHECK(!open_part("no such topology", 0, 0, 1));
    CHECK_EQ(err.code, PSTK_EINVAL);
    CHECK(strstr(err.message, "topology: value is \"no such topology\""));
    CHECK(!open_part("/dev/null", 0, 0, 1));
    CHECK(err.code < 0);
    CHECK(!open_part(SMALL, 0, 2, 2));
    CHECK(err.code == PSTK_EINVAL && strstr(err.message, "local_rank"));
    CHECK(!open_part(SMALL, 0, 0, 0));
    CHECK(!open_part(SMALL, 0, 1, 0));
    CHECK(!open_part(SMALL, PSTK__MAX_WORKERS + 1, 0, 1));
    CHECK(err.code == PSTK_EINVAL && strstr(err.message, "n_threads"));
    CHECK(!open_part("node:65 core:1 pu:1", 0, 0, 1));
    CHECK_EQ(err.code, PSTK_EFBIG);
    pstk__numa_close(NULL);
}

TEST(more_cores_than_workers_are_allowed_are_planned_up_to_the_limit)
{
    struct pstk__numa *n = open_part("node:2 core:600 pu:1", 0, 0, 1);
    CHECK(n);
    uint32_t n_workers = pstk__numa_n_workers(n), n_nodes = pstk__numa_n_nodes(n);
    pstk__numa_close(n);
    CHECK_EQ(n_workers, PSTK__MAX_WORKERS);
    CHECK_EQ(n_nodes, 2);
}

TEST(open_survives_every_failing_allocation)
{
    static const char *const topologies[] = {SMALL, NULL};
    for (int i = 0; i < 2; i++) {
        struct pstk__numa *n = NULL;
        int nth;
        for (nth = 1; !n && nth < 1000; nth++) {
            fail_at = nth;
            n_calls = 0;
            n = open_part(topologies[i], 0, 0, 1);
            fail_at = 0;
            CHECK(n || err.code < 0);
        }
        CHECK(n && nth > 7);
        pstk__numa_close(n);
    }
}

/* A machine of one or two packages with a GPU each. */
struct machine {
    unsigned n_packages, n_nodes; /* nodes of each package */
    int far;                      /* another node, memory for all packages */
    unsigned denied;              /* bits: processors that a container is denied */
    unsigned n_cores;             /* cores of each node */
};

static unsigned bits(unsigned first, unsigned end)
{
    return (1u << end) - (1u << first);
}

#define GPU_0 "0000:3B:00.0"    /* on the first package */
#define GPU_1 "0000:86:00.0"    /* on the second */
#define GPU_ANY "0000:01:00.0"  /* on neither */
#define GPU_NONE "0000:99:00.0" /* not there */

static void put_sets(FILE *f, const char *type, unsigned os_index, unsigned cpus, unsigned nodes)
{
    fprintf(f,
            "<object type=\"%s\" os_index=\"%u\" cpuset=\"0x%x\" complete_cpuset=\"0x%x\" "
            "nodeset=\"0x%x\" complete_nodeset=\"0x%x\"",
            type, os_index, cpus, cpus, nodes, nodes);
}

static void put_gpu(FILE *f, const char *bus)
{
    fprintf(f,
            "<object type=\"Bridge\" bridge_type=\"0-1\" depth=\"0\" "
            "bridge_pci=\"0000:[%s-%s]\"><object type=\"PCIDev\" pci_busid=\"0000:%s:00.0\" "
            "pci_type=\"0302 [10de:20b0] [10de:134f] a1\" pci_link_speed=\"31.5\"/></object>\n",
            bus, bus, bus);
}

static void put_node(FILE *f, unsigned i, unsigned n_cores)
{
    const unsigned node = 1u << i;
    put_sets(f, "NUMANode", i, bits(i * n_cores, (i + 1) * n_cores), node);
    fputs("/>\n", f);
    for (unsigned core = i * n_cores; core < (i + 1) * n_cores; core++) {
        put_sets(f, "Core", core, 1u << core, node);
        fputs(">\n", f);
        put_sets(f, "PU", core, 1u << core, node);
        fputs("/></object>\n", f);
    }
}

static void put_package(FILE *f, const struct machine *m, unsigned package)
{
    const unsigned n_cores = m->n_cores;
    const unsigned first = package * m->n_nodes, end = first + m->n_nodes;
    put_sets(f, "Package", package, bits(first * n_cores, end * n_cores), bits(first, end));
    fputs(">\n", f);
    for (unsigned i = first; i < end; i++) {
        if (m->n_nodes > 1) {
            put_sets(f, "Group", i, bits(i * n_cores, (i + 1) * n_cores), 1u << i);
            fputs(">\n", f);
        }
        put_node(f, i, n_cores);
        fputs(m->n_nodes > 1 ? "</object>\n" : "", f);
    }
    put_gpu(f, package ? "86" : "3b");
    fputs("</object>\n", f);
}

/* Write the machine as hwloc exports one. */
static int put_machine(char *path, const struct machine *m)
{
    int fd = mkstemp(path);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f)
        return -1;
    unsigned n_nodes = m->n_packages * m->n_nodes;
    unsigned cpus = bits(0, n_nodes * m->n_cores);
    unsigned nodes = bits(0, n_nodes + (m->far != 0));
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<topology version=\"2.0\">\n", f);
    put_sets(f, "Machine", 0, cpus, nodes);
    fprintf(f, " allowed_cpuset=\"0x%x\" allowed_nodeset=\"0x%x\">\n", cpus & ~m->denied, nodes);
    if (m->far) {
        put_sets(f, "NUMANode", n_nodes, cpus, 1u << n_nodes);
        fputs("/>\n", f);
    }
    for (unsigned i = 0; i < m->n_packages; i++)
        put_package(f, m, i);
    put_gpu(f, "01");
    fputs("</object>\n</topology>\n", f);
    return fclose(f);
}

/* Open such a machine. */
static struct pstk__numa *open_machine_with(const struct machine *m,
                                            const struct pstk__numa_config *c)
{
    char path[] = "/tmp/pstk-numa-XXXXXX";
    struct pstk__numa *n = put_machine(path, m) == 0 ? open_with(path, c) : NULL;
    unlink(path);
    return n;
}

/* Open it as `local_rank` of `local_world`. */
static struct pstk__numa *open_machine(const struct machine *m, uint32_t local_rank,
                                       uint32_t local_world, int with_pci)
{
    const struct pstk__numa_config c = {
        .local_rank = local_rank, .local_world = local_world, .with_pci = with_pci};
    return open_machine_with(m, &c);
}

/* Return the nodes of the four GPUs as text, "-" for none. */
static const char *gpus_of(struct pstk__numa *n)
{
    static const char *const gpus[] = {GPU_0, GPU_1, GPU_ANY, GPU_NONE};
    static char text[64];
    size_t at = 0;
    if (!n)
        return err.message;
    for (int i = 0; i < 4; i++) {
        uint32_t node = pstk__numa_pci_node(n, gpus[i]);
        const char *space = i ? " " : "";
        at += (size_t)(node == UINT32_MAX
                           ? snprintf(text + at, sizeof text - at, "%s-", space)
                           : snprintf(text + at, sizeof text - at, "%s%u", space, node));
    }
    pstk__numa_close(n);
    return text;
}

TEST(a_device_is_near_the_node_of_its_package)
{
    static const struct machine plain = {2, 1, 0, 0, 1};
    CHECK_STR(gpus_of(open_machine(&plain, 0, 1, 1)), "0 1 - -");
    struct pstk__numa *n = open_machine(&plain, 0, 1, 1);
    CHECK(n);
    CHECK_EQ(pstk__numa_pci_node(n, "0000:86:00.0"), 1);
    CHECK_EQ(pstk__numa_pci_node(n, "00000000:3b:00.0"), 0);
    CHECK_EQ(pstk__numa_pci_node(n, "no id"), UINT32_MAX);
    CHECK_EQ(pstk__numa_pci_node(n, ""), UINT32_MAX);
    CHECK_EQ(pstk__numa_n_nodes(n), 2);
    pstk__numa_close(n);
}

TEST(without_pci_devices_in_the_topology_only_a_single_node_is_near)
{
    static const struct machine plain = {2, 1, 0, 0, 1};
    CHECK_STR(gpus_of(open_machine(&plain, 0, 1, 0)), "- - - -");
    CHECK_STR(gpus_of(open_part(SMALL, 0, 0, 1)), "- - - -");
    CHECK_STR(gpus_of(open_part("node:1 core:4 pu:2", 0, 3, 4)), "0 0 0 0");
}

TEST(a_node_without_workers_is_added_after_those_with_workers)
{
    static const struct machine plain = {2, 1, 0, 0, 1};
    CHECK_STR(gpus_of(open_machine(&plain, 0, 2, 1)), "0 1 - -");
    CHECK_STR(gpus_of(open_machine(&plain, 1, 2, 1)), "1 0 - -");
    struct pstk__numa *n = open_machine(&plain, 0, 2, 1);
    CHECK(n);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pstk__numa_pci_node(n, GPU_1), 1);
    CHECK_EQ(pstk__numa_n_nodes(n), 1);
    CHECK_EQ(pstk__numa_pin_node(n, 1), 0);
    int bound = 1;
    uint8_t *p = pstk__numa_map(n, 5000, 1, &bound);
    CHECK(p && bound == 1 && p[4999] == 0);
    pstk__numa_unmap(p, 5000);
    pstk__numa_close(n);
}

TEST(of_several_nodes_of_a_package_one_with_workers_is_taken)
{
    static const struct machine cut = {2, 2, 0, 0, 1};
    CHECK_STR(gpus_of(open_machine(&cut, 0, 1, 1)), "0 2 - -");
    CHECK_STR(gpus_of(open_machine(&cut, 1, 4, 1)), "0 1 - -");
    CHECK_STR(gpus_of(open_machine(&cut, 3, 4, 1)), "1 0 - -");
}

TEST(the_uploader_has_its_core_on_the_node_of_its_device)
{
    static const struct machine plain = {2, 1, 0, 0, 8}, cut = {2, 2, 0, 0, 6};
    struct pstk__numa_config c = {
        .local_world = 1, .with_pci = 1, .bus_id = GPU_0, .reader_reads = 1};
    CHECK_STR(cores_of(open_machine_with(&plain, &c), 1), "0-5,8-14 of 16");
    CHECK_STR(cores_of(open_machine_with(&cut, &c), 1), "0-3,6-10,12-16,18-22 of 24");
    c.bus_id = GPU_1;
    CHECK_STR(cores_of(open_machine_with(&plain, &c), 1), "0-6,8-13 of 16");
    CHECK_STR(cores_of(open_machine_with(&cut, &c), 1), "0-4,6-10,12-15,18-22 of 24");
    c.bus_id = GPU_NONE;
    CHECK_STR(cores_of(open_machine_with(&plain, &c), 1), "0-6,8-13 of 16");
    c.local_rank = 3;
    c.local_world = 4;
    c.bus_id = GPU_1; /* nearest to two nodes, of which this rank has one */
    CHECK_STR(cores_of(open_machine_with(&cut, &c), 1), "18-21 of 6");
    c.bus_id = GPU_0; /* on no node of this rank */
    CHECK_STR(cores_of(open_machine_with(&cut, &c), 1), "18-21 of 6");
}

TEST(memory_that_is_far_from_all_processors_is_near_no_device)
{
    static const struct machine with_far = {2, 1, 1, 0, 1};
    CHECK_STR(gpus_of(open_machine(&with_far, 0, 1, 1)), "0 1 - -");
    CHECK_STR(gpus_of(open_machine(&with_far, 0, 2, 1)), "0 1 - -");
    static const struct machine one = {1, 1, 1, 0, 1};
    CHECK_STR(gpus_of(open_machine(&one, 0, 1, 1)), "0 0 0 0");
}

TEST(a_package_whose_processors_a_container_is_denied_keeps_its_device)
{
    static const struct machine container = {2, 1, 0, 2, 1};
    struct pstk__numa *n = open_machine(&container, 0, 1, 1);
    CHECK(n);
    CHECK_EQ(pstk__numa_n_workers(n), 1);
    CHECK_EQ(pstk__numa_n_nodes(n), 1);
    CHECK_STR(gpus_of(n), "0 1 - -");
}

/* Open the two processors and nodes as if they were this machine's: threads are then pinned. */
static struct pstk__numa *open_as_this_machine(uint32_t local_rank, uint32_t local_world,
                                               int with_pci)
{
    static const struct machine plain = {2, 1, 0, 0, 1};
    setenv("HWLOC_THISSYSTEM", "1", 1);
    struct pstk__numa *n = open_machine(&plain, local_rank, local_world, with_pci);
    unsetenv("HWLOC_THISSYSTEM");
    return n;
}

TEST(sysfs_gives_the_node_of_devices_that_hwloc_does_not_know)
{
    cpu_set_t mask;
    CHECK(sched_getaffinity(0, sizeof mask, &mask) == 0);
    if (!CPU_ISSET(0, &mask) || !CPU_ISSET(1, &mask))
        SKIP("processors 0 and 1");
    char without[1024], with[1024], none[1024], other[1024];
    sysfs_node = 1;
    snprintf(without, sizeof without, "%s", gpus_of(open_as_this_machine(0, 1, 0)));
    snprintf(with, sizeof with, "%s", gpus_of(open_as_this_machine(0, 1, 1)));
    sysfs_node = -1;
    snprintf(none, sizeof none, "%s", gpus_of(open_as_this_machine(0, 1, 0)));
    sysfs_node = 5; /* not in the topology */
    snprintf(other, sizeof other, "%s", gpus_of(open_as_this_machine(0, 1, 0)));
    sysfs_node = -2;
    CHECK_STR(without, "1 1 1 1");
    CHECK_STR(with, "0 1 1 1");
    CHECK_STR(none, "- - - -");
    CHECK_STR(other, "- - - -");
}

TEST(sysfs_of_this_machine_says_nothing_of_another)
{
    static const struct machine plain = {2, 1, 0, 0, 1};
    char without[1024], with[1024];
    sysfs_node = 1;
    snprintf(without, sizeof without, "%s", gpus_of(open_machine(&plain, 0, 1, 0)));
    snprintf(with, sizeof with, "%s", gpus_of(open_machine(&plain, 0, 1, 1)));
    sysfs_node = -2;
    CHECK_STR(without, "- - - -");
    CHECK_STR(with, "0 1 - -");
}

TEST(a_thread_is_pinned_to_a_node_without_workers_as_far_as_its_mask_allows)
{
    cpu_set_t before, first, wide, narrow;
    CHECK(sched_getaffinity(0, sizeof before, &before) == 0);
    if (!CPU_ISSET(0, &before) || !CPU_ISSET(1, &before))
        SKIP("processors 0 and 1");
    struct pstk__numa *n = open_as_this_machine(0, 2, 1);
    CHECK(n);
    uint32_t node = pstk__numa_pci_node(n, GPU_1);
    int r = node == 1 ? pstk__numa_pin_node(n, node) : -1;
    CHECK(sched_getaffinity(0, sizeof wide, &wide) == 0);
    CHECK(sched_setaffinity(0, sizeof before, &before) == 0);
    pstk__numa_close(n);
    CHECK_EQ(r, 0);
    CHECK(CPU_COUNT(&wide) == 1 && CPU_ISSET(1, &wide));

    CPU_ZERO(&first);
    CPU_SET(0, &first);
    CHECK(sched_setaffinity(0, sizeof first, &first) == 0);
    n = open_as_this_machine(0, 1, 1);
    node = n ? pstk__numa_pci_node(n, GPU_1) : 0;
    r = node == 1 ? pstk__numa_pin_node(n, node) : -1;
    CHECK(sched_getaffinity(0, sizeof narrow, &narrow) == 0);
    CHECK(sched_setaffinity(0, sizeof before, &before) == 0);
    pstk__numa_close(n);
    CHECK_EQ(r, 0);
    CHECK(CPU_EQUAL(&narrow, &first));
}

TEST(this_machine_opens_with_its_pci_devices)
{
    struct pstk__numa_config c = {.local_world = 1, .pin = 1, .with_pci = 1};
    struct pstk__numa *n;
    CHECK_EQ(pstk__numa_open(&n, &c, &err), 0);
    uint32_t n_nodes = pstk__numa_n_nodes(n), node = pstk__numa_pci_node(n, "0000:00:00.0");
    uint32_t none = pstk__numa_pci_node(n, "ffff:ff:1f.7");
    pstk__numa_close(n);
    /* One node: that. With several a container may see one of them, so no more can be said. */
    CHECK(node == UINT32_MAX || node <= n_nodes);
    CHECK(none == 0 || none == UINT32_MAX);
}

TEST(a_node_that_cannot_be_added_is_none)
{
    static const struct machine plain = {2, 1, 0, 0, 1};
    struct pstk__numa *n = open_machine(&plain, 0, 2, 1);
    CHECK(n);
    fail_at = 1;
    n_calls = 0;
    uint32_t none = pstk__numa_pci_node(n, GPU_1);
    fail_at = 0;
    uint32_t node = pstk__numa_pci_node(n, GPU_1);
    pstk__numa_close(n);
    CHECK_EQ(none, UINT32_MAX);
    CHECK_EQ(node, 1);
}

int main(void)
{
    pstk_error_init(&err, sizeof err);
    const struct test_case cases[] = {
        CASE(by_itself_there_is_one_worker_a_core_on_its_first_thread),
        CASE(a_reader_and_an_uploader_have_a_core_where_4_workers_a_node_remain),
        CASE(a_reader_whose_workers_make_the_reads_has_a_core_on_nodes_of_32_cores),
        CASE(workers_that_wait_for_processes_come_on_top),
        CASE(more_workers_than_cores_take_second_threads_and_then_share),
        CASE(fewer_workers_than_cores_are_spread_over_the_nodes),
        CASE(local_ranks_take_whole_nodes_where_these_divide),
        CASE(local_ranks_share_a_node_where_they_divide_by_the_nodes),
        CASE(local_ranks_that_do_not_divide_take_the_cores_in_order),
        CASE(every_core_belongs_to_one_local_rank_at_most_and_else_to_a_reader),
        CASE(more_local_ranks_than_cores_get_one_each_and_share),
        CASE(an_exported_topology_gives_the_same_plan),
        CASE(nodes_are_not_cut_where_they_have_different_numbers_of_cores),
        CASE(a_topology_of_another_machine_pins_nothing_and_gives_memory),
        CASE(this_machine_is_planned_within_the_affinity_mask_and_threads_are_pinned),
        CASE(a_narrower_affinity_mask_leaves_fewer_cores),
        CASE(a_worker_may_use_every_core_of_its_node),
        CASE(without_pinning_nothing_is_pinned),
        CASE(invalid_settings_are_refused_by_name),
        CASE(more_cores_than_workers_are_allowed_are_planned_up_to_the_limit),
        CASE(open_survives_every_failing_allocation),
        CASE(a_device_is_near_the_node_of_its_package),
        CASE(without_pci_devices_in_the_topology_only_a_single_node_is_near),
        CASE(a_node_without_workers_is_added_after_those_with_workers),
        CASE(of_several_nodes_of_a_package_one_with_workers_is_taken),
        CASE(the_uploader_has_its_core_on_the_node_of_its_device),
        CASE(memory_that_is_far_from_all_processors_is_near_no_device),
        CASE(a_package_whose_processors_a_container_is_denied_keeps_its_device),
        CASE(sysfs_gives_the_node_of_devices_that_hwloc_does_not_know),
        CASE(sysfs_of_this_machine_says_nothing_of_another),
        CASE(a_thread_is_pinned_to_a_node_without_workers_as_far_as_its_mask_allows),
        CASE(this_machine_opens_with_its_pci_devices),
        CASE(a_node_that_cannot_be_added_is_none),
    };
    return RUN_CASES(cases);
}
