/* SPDX-License-Identifier: Apache-2.0 */
/* bound: finds out whether a launcher gave this process cores of its own, which must not be divided
 * again. */
#ifndef PSTK_BOUND_H
#define PSTK_BOUND_H

#include <stdint.h>

/* Return 1 when this process may use fewer cores than its cgroup, and so few that they suffice for
 * local_world processes. from_parent: fewer than its parent, for launchers that leave processes
 * their own cores, which an outer launcher may have bound. `root` is "/"; tests pass a directory
 * with a proc/ and a sys/ of its own. */
int pstk__bound_cores(const char *root, uint32_t local_world, int from_parent);

#endif
