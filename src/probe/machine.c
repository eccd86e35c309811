/* SPDX-License-Identifier: Apache-2.0 */
/* machine: reports the resources that this machine and its devices offer a loader. */
#include <penstock/penstock.h>

#include "base/cpu.h"
#include "device/device.h"
#include "base/error.h"
#include "image/image.h"
#include "machine/disk.h"
#include "machine/numa.h"
#include "reader/reader.h"

#include <linux/magic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

/* Magic numbers that <linux/magic.h> lacks: statfs(2). */
#define XFS_MAGIC 0x58465342
#define ZFS_MAGIC 0x2fc12fc1
#define LUSTRE_MAGIC 0x0bd00bd0
#define GPFS_MAGIC 0x47504653

struct file_system {
    long magic;
    const char *name;
};

static const struct file_system file_systems[] = {
    {EXT4_SUPER_MAGIC, "ext4"}, {XFS_MAGIC, "xfs"},         {BTRFS_SUPER_MAGIC, "btrfs"},
    {TMPFS_MAGIC, "tmpfs"},     {NFS_SUPER_MAGIC, "nfs"},   {OVERLAYFS_SUPER_MAGIC, "overlay"},
    {F2FS_SUPER_MAGIC, "f2fs"}, {ZFS_MAGIC, "zfs"},         {LUSTRE_MAGIC, "lustre"},
    {GPFS_MAGIC, "gpfs"},       {FUSE_SUPER_MAGIC, "fuse"}, {RAMFS_MAGIC, "ramfs"},
};

static void get_file_system(const char *path, struct pstk_machine *machine)
{
    struct statfs fs;
    snprintf(machine->file_system, sizeof machine->file_system, "?");
    if (statfs(path, &fs) != 0)
        return;
    for (size_t i = 0; i < sizeof file_systems / sizeof *file_systems; i++)
        if ((long)fs.f_type == file_systems[i].magic)
            snprintf(machine->file_system, sizeof machine->file_system, "%s", file_systems[i].name);
}

static int32_t get_rotational(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return -1;
    return pstk__disk_rotational("/", major(status.st_dev), minor(status.st_dev));
}

static uint64_t get_limit(int resource)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0)
        return 0;
    return limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : (uint64_t)limit.rlim_cur;
}

static int get_cores(struct pstk_machine *machine, struct pstk_error *err)
{
    struct pstk__numa *numa;
    struct pstk__numa_config c = {.local_world = 1};
    int r = pstk__numa_open(&numa, &c, err);
    if (r < 0)
        return r;
    machine->n_cores = pstk__numa_n_cores(numa);
    machine->n_usable = pstk__numa_n_usable(numa);
    machine->n_workers = pstk__numa_n_workers(numa);
    machine->n_nodes = pstk__numa_n_nodes(numa);
    c.reader_reads = 1;
    r = pstk__numa_count_workers(numa, &c, &machine->n_workers_direct, err);
    c.reader_reads = 0;
    c.bus_id = "";
    if (r == 0)
        r = pstk__numa_count_workers(numa, &c, &machine->n_workers_device, err);
    pstk__numa_close(numa);
    return r;
}

/* Count the CUDA devices. -1: there is no driver, or this build has no CUDA. */
static int32_t get_cuda_devices(void)
{
    const int n = pstk__device_ops(PSTK_CUDA)->count();
    return n < 0 ? -1 : n;
}

int pstk_get_machine(const char *path, struct pstk_machine *machine, struct pstk_error *err)
{
    struct pstk_machine m = {.size = sizeof m, .rotational = -1};
    if (!machine || machine->size < sizeof machine->size)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "machine: size must be sizeof(struct pstk_machine)");
    int r = get_cores(&m, err);
    if (r < 0)
        return r;
    m.memory = pstk__cgroup_memory("/");
    m.cpu_quota = pstk__cgroup_cpus("/");
    m.memlock = get_limit(RLIMIT_MEMLOCK);
    m.open_files = get_limit(RLIMIT_NOFILE);
    m.kernels = pstk__cpu_kernels();
    /* Counting starts the CUDA driver, which takes time. It is skipped for a caller whose struct
     * lacks the member. */
    if (machine->size > offsetof(struct pstk_machine, n_cuda_devices))
        m.n_cuda_devices = get_cuda_devices();
    if (machine->size > offsetof(struct pstk_machine, io_uring)) /* the check registers 64 MiB */
        pstk__reader_probe(&m);
    struct utsname name;
    if (uname(&name) == 0)
        snprintf(m.kernel, sizeof m.kernel, "%.63s", name.release);
    pstk__cpu_name(m.cpu, sizeof m.cpu);
    snprintf(m.libjpeg, sizeof m.libjpeg, "%s", pstk__image_library());
    if (path) {
        get_file_system(path, &m);
        m.rotational = get_rotational(path);
        r = pstk__direct_align(path, &m.direct_memory_align, &m.direct_offset_align);
        m.direct = r < 0 ? r : 1;
    }
    uint32_t size = machine->size;
    memset(machine, 0, size);
    memcpy(machine, &m, size < sizeof m ? size : sizeof m);
    machine->size = size;
    return 0;
}

/* ---- devices --------------------------------------------------------------------------------- */

/* Return the table of a device kind if it has a device `index`, else NULL with *result and err
 * set. */
static const struct pstk__device_ops *find_device(uint32_t kind, int32_t index, int *result,
                                                  struct pstk_error *err)
{
    const struct pstk__device_ops *ops = pstk__device_ops(kind);
    char bus_id[PSTK__BUS_ID_SIZE];
    if (!ops)
        *result = pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                             "kind: value is %u; must be PSTK_HOST or PSTK_CUDA", kind);
    else
        *result = ops->find(index, bus_id, err);
    return *result < 0 ? NULL : ops;
}

int pstk_get_device(uint32_t kind, int32_t index, struct pstk_device *device,
                    struct pstk_error *err)
{
    struct pstk_device d = {.size = sizeof d, .kind = kind, .index = index};
    int r = 0;
    if (!device || device->size < sizeof device->size)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "device: size must be sizeof(struct pstk_device)");
    const struct pstk__device_ops *ops = find_device(kind, index, &r, err);
    if (!ops)
        return r;
    ops->describe(index, &d);
    const uint32_t size = device->size;
    memset(device, 0, size);
    memcpy(device, &d, size < sizeof d ? size : sizeof d);
    device->size = size;
    return 0;
}

int pstk_measure_copies(uint32_t kind, int32_t index, uint64_t block_size, double seconds,
                        struct pstk_copy_rates *rates, struct pstk_error *err)
{
    struct pstk_copy_rates measured = {.size = sizeof measured};
    int r = 0;
    if (!rates || rates->size < sizeof rates->size)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "rates: size must be sizeof(struct pstk_copy_rates)");
    if (block_size == 0 || !(seconds > 0))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "block_size, seconds: must both be above 0");
    const struct pstk__device_ops *ops = find_device(kind, index, &r, err);
    if (ops)
        r = ops->measure(index, block_size, seconds, &measured, err);
    if (r < 0)
        return r;
    const uint32_t size = rates->size;
    memset(rates, 0, size);
    memcpy(rates, &measured, size < sizeof measured ? size : sizeof measured);
    rates->size = size;
    return 0;
}
