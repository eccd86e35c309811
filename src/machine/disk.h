/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk: whether a block device spins, as the kernel reports it. Reads one small file of sysfs.
 * `root` is "/"; tests pass a directory with a sys/ of its own.
 */
#ifndef PSTK_DISK_H
#define PSTK_DISK_H

#include <stdint.h>

/* 1: the device, or the one that it is a partition of, spins; 0: it does not; -1: unknown, as of
 * file systems without a device of their own. Virtual machines often say 1 of any disk. */
int32_t pstk__disk_rotational(const char *root, unsigned device_major, unsigned device_minor);

#endif
