/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound: whether a launcher gave this process cores of its own, which must not be divided again.
 * The rule is that of the Python package (bound.py there).
 */
#ifndef PSTK_CLI_BOUND_H
#define PSTK_CLI_BOUND_H

#include <stdint.h>

/* Return 1 when this process may use fewer cores than its cgroup, and so few that those of
 * local_world processes fit. from_parent: fewer than its parent, for launchers that leave processes
 * the cores that they have themselves, which an outer launcher may have bound. */
int bound_cores(uint32_t local_world, int from_parent);

#endif
