/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/bound.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include "machine/cgroup.h"

#define MAX_CPUS (1 << 20)

/* Return the number of cores that a process may use, 0 when it cannot be read. process 0: this
 * process. */
static uint64_t cores_of(pid_t process)
{
    for (int n = 1024; n <= MAX_CPUS; n *= 2) {
        cpu_set_t *set = CPU_ALLOC(n);
        const size_t size = CPU_ALLOC_SIZE(n);
        if (!set)
            return 0;
        const int failed = sched_getaffinity(process, size, set) < 0 ? errno : 0;
        const int count = failed ? 0 : CPU_COUNT_S(size, set);
        CPU_FREE(set);
        if (failed != EINVAL) /* EINVAL: the kernel's mask has more bits */
            return (uint64_t)count;
    }
    return 0;
}

/* Return the number of cores that all processes of this machine may use together. */
static uint64_t cores_of_all(const char *root)
{
    const uint64_t n = pstk__cgroup_cores(root);
    const long online = n ? 0 : sysconf(_SC_NPROCESSORS_ONLN);
    return n ? n : online > 0 ? (uint64_t)online : 1;
}

int pstk__bound_cores(const char *root, uint32_t local_world, int from_parent)
{
    if (local_world < 2)
        return 0;
    const uint64_t own = cores_of(0), all = from_parent ? cores_of(getppid()) : cores_of_all(root);
    return own && own * local_world <= all;
}
