/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk: finds out whether a block device spins, as the kernel reports it. Reads one small file of
 * sysfs. `root` is "/"; tests pass a directory with a sys/ of its own.
 */
#ifndef PSTK_DISK_H
#define PSTK_DISK_H

#include <stdint.h>

/* Return 1 when the device, or the disk of which it is a partition, spins; 0 when not; -1 when
 * unknown, as for file systems without a device of their own. Virtual machines often report 1 for
 * any disk. */
int32_t pstk__disk_rotational(const char *root, unsigned device_major, unsigned device_minor);

#endif
