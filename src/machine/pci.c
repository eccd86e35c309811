/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/pci.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_SIZE 4096 /* bytes; a longer path counts as missing */

/* Address of a device on the bus. */
struct address {
    unsigned long domain, bus, device, function;
};

/* Parse "domain:bus:device.function", hexadecimal. CUDA and sysfs write four digits for the domain,
 * NVML eight. Devices under a volume management controller have domains of more than four
 * digits. */
static int parse_address(const char *bus_id, struct address *address)
{
    char domain[9], bus[3], device[3], function[2];
    int end = 0;
    int n = sscanf(bus_id, "%8[0-9a-fA-F]:%2[0-9a-fA-F]:%2[0-9a-fA-F].%1[0-7]%n", domain, bus,
                   device, function, &end);
    if (n != 4 || bus_id[end] != 0)
        return -EINVAL;
    *address = (struct address){strtoul(domain, NULL, 16), strtoul(bus, NULL, 16),
                                strtoul(device, NULL, 16), strtoul(function, NULL, 16)};
    return address->device < 32 ? 0 : -EINVAL;
}

/* Read the first line of a file of the device's directory. Returns 0, or -1 when it cannot be read:
 * some files exist only for PCI Express devices, and reading may fail while the device is off. */
static int read_line(const char *dir, const char *file, char *line, int size)
{
    char path[PATH_SIZE];
    int n = snprintf(path, sizeof path, "%s/%s", dir, file);
    FILE *stream = n > 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;
    if (!stream)
        return -1;
    char *got = fgets(line, size, stream);
    fclose(stream);
    return got ? 0 : -1;
}

/* Return the generation of a link by its speed: "16.0 GT/s PCIe", on older kernels "16 GT/s"; 0
 * when unknown. It reads only the integer part, which is enough and does not depend on a locale's
 * decimal point. */
static uint32_t generation_in(const char *dir, const char *file)
{
    static const unsigned long speeds[] = {2, 5, 8, 16, 32, 64, 128}; /* GT/s, rounded down */
    char line[64];
    if (read_line(dir, file, line, sizeof line) < 0 || !strstr(line, " GT/s"))
        return 0;
    unsigned long speed = strtoul(line, NULL, 10);
    for (uint32_t i = 0; i < sizeof speeds / sizeof speeds[0]; i++)
        if (speeds[i] == speed)
            return i + 1;
    return 0;
}

/* Return the lanes of a link, 0 when unknown. A device that has dropped off the bus reads as all
 * ones, 63 lanes; a link has at most 32. */
static uint32_t width_in(const char *dir, const char *file)
{
    char line[64];
    if (read_line(dir, file, line, sizeof line) < 0)
        return 0;
    unsigned long width = strtoul(line, NULL, 10);
    return width <= 32 ? (uint32_t)width : 0;
}

static int32_t node_in(const char *dir)
{
    char line[64], *end;
    if (read_line(dir, "numa_node", line, sizeof line) < 0)
        return -1;
    long node = strtol(line, &end, 10);
    return end != line && node >= 0 && node <= INT32_MAX ? (int32_t)node : -1;
}

int pstk__pci_get(const char *root, const char *bus_id, struct pstk__pci *out)
{
    char dir[PATH_SIZE];
    struct address address;
    *out = (struct pstk__pci){.numa_node = -1};
    int r = parse_address(bus_id, &address);
    if (r < 0)
        return r;
    int n = snprintf(dir, sizeof dir, "%s/sys/bus/pci/devices/%04lx:%02lx:%02lx.%lx", root,
                     address.domain, address.bus, address.device, address.function);
    if (n < 0 || (size_t)n >= sizeof dir)
        return -ENAMETOOLONG;
    if (access(dir, F_OK) < 0)
        return -errno;
    out->generation = generation_in(dir, "current_link_speed");
    out->max_generation = generation_in(dir, "max_link_speed");
    out->width = width_in(dir, "current_link_width");
    out->max_width = width_in(dir, "max_link_width");
    out->numa_node = node_in(dir);
    return 0;
}
