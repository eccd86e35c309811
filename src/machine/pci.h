/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pci: what the kernel says of a PCI device: its link and the NUMA node that it lies on. Reads
 * a few small files of sysfs. `root` is "/" outside tests, which give a directory with sys/ below
 * it.
 */
#ifndef PSTK_PCI_H
#define PSTK_PCI_H

#include <stdint.h>

struct pstk__pci {
    /* PCI Express generation, 1..7; 0 = not known. A GPU lowers its link to generation 1 while it
     * is idle, to save power: `generation` says what it can do only right after some copies. */
    uint32_t generation, max_generation;
    uint32_t width, max_width; /* lanes, 1..32; 0 = not known */
    int32_t numa_node;         /* OS index; -1 = not known, as on machines with one node */
};

/* Read what is known of the device `bus_id`, written as CUDA does: "0000:3B:00.0", in upper or
 * lower case. 0 or a negative errno: -EINVAL when it is not such an id, -ENOENT when the device
 * does not exist. A virtual machine's devices often have no link, and members that no file has are
 * 0 (numa_node: -1). `out` is set in all cases. */
int pstk__pci_get(const char *root, const char *bus_id, struct pstk__pci *out);

#endif
