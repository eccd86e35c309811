/* SPDX-License-Identifier: Apache-2.0 */
/* bound: cores that a launcher has divided are not divided again. */
#include "machine/bound.h"
#include "support/test.h"

#include <ftw.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <penstock/penstock.h>

static char root[256];         /* a directory with proc/ and sys/ of its own */
static int n_own, n_of_parent; /* cores of this process, and of its parent; 0: unknown */

int __wrap_sched_getaffinity(pid_t process, size_t size, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t process, size_t size, cpu_set_t *set)
{
    const int n = process == 0 ? n_own : n_of_parent;
    CPU_ZERO_S(size, set);
    for (int i = 0; i < n; i++)
        CPU_SET_S((size_t)i, size, set);
    return n ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int put(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *stream = fopen(path, "w");
    if (!stream)
        return 0;
    fputs(text, stream);
    return fclose(stream) == 0;
}

/* Make a root whose cgroup has the cores 0 to n - 1. */
static int make_root(int n)
{
    static const char *const folders[] = {"proc", "proc/self", "sys", "sys/fs", "sys/fs/cgroup"};
    const char *tmp = getenv("TMPDIR");
    char path[512], list[32];
    snprintf(root, sizeof root, "%.200s/pstk-bound-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(root))
        return 0;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s/%s", root, folders[i]);
        if (mkdir(path, 0777) < 0)
            return 0;
    }
    snprintf(list, sizeof list, "0-%d\n", n - 1);
    return put("proc/self/cgroup", "0::/\n") && put("sys/fs/cgroup/cpuset.cpus.effective", list);
}

static int is_bound(int own, int parent, int cgroup, uint32_t local_world, int from_parent)
{
    n_own = own;
    n_of_parent = parent;
    if (!make_root(cgroup))
        return -1;
    const int bound = pstk__bound_cores(root, local_world, from_parent);
    nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return bound;
}

TEST(mpirun_that_binds_leaves_each_process_a_part_of_the_cgroup)
{
    CHECK_EQ(is_bound(1, 4, 4, 4, 0), 1);
    CHECK_EQ(is_bound(2, 8, 8, 4, 0), 1);
    CHECK_EQ(is_bound(4, 4, 4, 4, 0), 0); /* also a container of 4 cores, of a machine with 64 */
    CHECK_EQ(is_bound(8, 8, 8, 4, 0), 0);
    CHECK_EQ(is_bound(3, 8, 8, 4, 0), 0);
}

TEST(processes_of_torchrun_are_compared_with_their_parent)
{
    CHECK_EQ(is_bound(8, 8, 64, 4, 1), 0); /* they share the 8 cores of a task that is bound */
    CHECK_EQ(is_bound(2, 8, 64, 4, 1), 1); /* --numa-binding */
    CHECK_EQ(is_bound(2, 0, 64, 4, 1), 0);
}

TEST(one_process_or_unknown_cores_are_not_bound)
{
    CHECK_EQ(is_bound(1, 4, 4, 1, 0), 0);
    CHECK_EQ(is_bound(1, 4, 4, 0, 0), 0);
    CHECK_EQ(is_bound(0, 4, 4, 2, 0), 0);
}

TEST(found_ranks_say_so)
{
    const char *const torchrun[] = {"RANK=1", "WORLD_SIZE=4", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=4",
                                    NULL};
    const struct pstk_rank_query query = {.size = sizeof query, .environment = torchrun};
    struct pstk_found_ranks found = {.size = sizeof found};
    n_own = 2;
    n_of_parent = 8;
    CHECK_EQ(pstk_find_ranks(&query, &found, NULL), 0);
    CHECK_EQ(found.is_bound, 1);
    n_own = 8;
    CHECK_EQ(pstk_find_ranks(&query, &found, NULL), 0);
    CHECK_EQ(found.is_bound, 0);
}

int main(void)
{
    static const struct test_case cases[] = {
        CASE(mpirun_that_binds_leaves_each_process_a_part_of_the_cgroup),
        CASE(processes_of_torchrun_are_compared_with_their_parent),
        CASE(one_process_or_unknown_cores_are_not_bound),
        CASE(found_ranks_say_so),
    };
    return RUN_CASES(cases);
}
