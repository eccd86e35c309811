/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: the limits of this process's control groups, version 2 or 1. The lowest limit from its
 * own group up to the root of the hierarchy applies. `root` is "/"; tests pass a directory with a
 * proc/ and a sys/ of its own. A missing file means no limit.
 */
#ifndef PSTK_CGROUP_H
#define PSTK_CGROUP_H

#include <stdint.h>

/* Return the CPU quota in cores, quota / period. 0: no quota. */
double pstk__cgroup_cpus(const char *root);
/* Return the number of cores in the groups' sets of processors. 0: no set is known. */
uint64_t pstk__cgroup_cores(const char *root);
/* Return the memory that this process may use, in bytes: the machine's, or the limit if it is
 * lower. 0: neither is known. */
uint64_t pstk__cgroup_memory(const char *root);
/* Find the limit beyond which the kernel kills a process of the group (memory.max), and the bytes
 * left below it. File pages of the cache, which the kernel would drop first, count as left. In a
 * hierarchy each number is the lowest of all groups. *limit is 0 when there is none. */
void pstk__cgroup_memory_left(const char *root, uint64_t *limit, uint64_t *left);

#endif
