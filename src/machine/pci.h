/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pci: reads the link of a PCI device and its NUMA node, as the kernel reports them. Reads a few
 * small files of sysfs. `root` is "/"; tests pass a directory with a sys/ of its own.
 */
#ifndef PSTK_PCI_H
#define PSTK_PCI_H

#include <stdint.h>

struct pstk__pci {
    /* PCI Express generation, 1..7; 0: not known. An idle GPU lowers its link to generation 1 to
     * save power. So `generation` shows the link's ability only right after some copies. */
    uint32_t generation, max_generation;
    uint32_t width, max_width; /* lanes, 1..32; 0: not known */
    int32_t numa_node;         /* OS index; -1: not known, as on machines with one node */
};

/* Read the link and the node of the device `bus_id`, in CUDA's notation: "0000:3B:00.0", in upper
 * or lower case. Returns 0 or a negative errno: -EINVAL when bus_id is not such an id, -ENOENT when
 * the device does not exist. `out` is filled in all cases; a value that the kernel does not report
 * is 0 (numa_node: -1). Devices of a virtual machine often have no link. */
int pstk__pci_get(const char *root, const char *bus_id, struct pstk__pci *out);

#endif
