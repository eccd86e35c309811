/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: what this process's control groups, version 2 or 1, grant it. The lowest limit from its
 * own group up to the root of the hierarchy counts. `root` is "/" outside tests, which give a
 * directory with proc/ and sys/ below it; a missing file means no limit.
 */
#ifndef PSTK_CGROUP_H
#define PSTK_CGROUP_H

#include <stdint.h>

/* Cores, as a fraction: quota over period. 0 = no quota. */
double pstk__cgroup_cpus(const char *root);
/* Bytes of memory: the machine's, or the limit if lower. 0 when neither is known. */
uint64_t pstk__cgroup_memory(const char *root);

#endif
