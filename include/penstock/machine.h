/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/machine.h - the resources of this machine, and the rate of each part of a loader alone.
 */
#ifndef PENSTOCK_MACHINE_H
#define PENSTOCK_MACHINE_H

#include <penstock/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pstk_settings;

/* ---- the machine --------------------------------------------------------------------------- */

/* Instruction sets of the kernels that decode and resize. All give the same bytes. */
enum pstk_kernels {
    /* the best that runs here */
    PSTK_KERNELS_AUTO = 0,
    PSTK_KERNELS_C = 1,
    PSTK_KERNELS_AVX2 = 2,
    PSTK_KERNELS_AVX512 = 3,
    /* aarch64, which has only NEON and C */
    PSTK_KERNELS_NEON = 4,
};

/* The resources that this machine offers a loader. -1: unknown. */
struct pstk_machine {
    /* sizeof(struct pstk_machine), set by the caller */
    uint32_t size;

    /* Cores and memory. */

    /* cores in this process's affinity mask */
    uint32_t n_cores;
    /* cores, within the cgroup's CPU quota */
    uint32_t n_usable;
    /* NUMA nodes of those cores */
    uint32_t n_nodes;
    /* bytes of the machine's memory, or its cgroup's limit if that is lower */
    uint64_t memory;
    /* bytes of RLIMIT_MEMLOCK; UINT64_MAX: unlimited */
    uint64_t memlock;
    /* RLIMIT_NOFILE */
    uint64_t open_files;
    /* cores that the cgroup grants; 0: no quota */
    double cpu_quota;

    /* Reading. pstk_get_machine tries these, some 40 ms, only if `size` reaches past io_uring. */

    /* 1: a ring can be set up and entered; <0: -errno of the refused call */
    int32_t io_uring;
    /* 1: 64 MiB of buffers can be registered; <0: -errno */
    int32_t fixed_buffers;
    /* 1: both IORING_SETUP_SINGLE_ISSUER (6.0) and IORING_SETUP_DEFER_TASKRUN (6.1) work */
    int32_t single_issuer;
    /* 1: O_DIRECT works on the path; <0: -errno */
    int32_t direct;
    /* bytes */
    uint32_t direct_memory_align;
    /* bytes */
    uint32_t direct_offset_align;

    /* Processors. */

    /* the best enum pstk_kernels of this CPU */
    uint32_t kernels;
    /* devices of CUDA; -1: a build without CUDA, or no usable driver. pstk_get_machine looks for
     * devices, which takes 0.1 s and more, only if `size` reaches past this member */
    int32_t n_cuda_devices;

    /* Names. */

    /* release of the kernel */
    char kernel[64];
    /* model name */
    char cpu[64];
    /* file system of the path: "ext4", ... */
    char file_system[32];
    /* name and version of the linked library */
    char libjpeg[32];

    /* 1: the kernel reports that the path lies on a rotating disk; 0: it does not */
    int32_t rotational;
    /* automatic number of workers (n_threads) of a loader on the host that has this machine to
     * itself. It holds where the page cache may serve the reads, which workers then make */
    uint32_t n_workers;
    /* the same where the reader makes all reads: direct ones, those of a windowed order, and those
     * of files that are unpacked */
    uint32_t n_workers_direct;
    /* n_workers of a loader on a device whose NUMA node is unknown */
    uint32_t n_workers_device;
};

/* Find out about this machine. `path`: where the data would lie; NULL: nowhere. Fills *machine up
 * to its size. borrows. */
PSTK_API int pstk_get_machine(const char *path, struct pstk_machine *machine,
                              struct pstk_error *err);

/* ---- devices ------------------------------------------------------------------------------- */

enum pstk_device_kind {
    PSTK_HOST = 0,
    PSTK_CUDA = 1,
};

/* A device on which a loader can hand out batches. 0 or "": unknown. */
struct pstk_device {
    /* sizeof(struct pstk_device), set by the caller */
    uint32_t size;
    /* enum pstk_device_kind */
    uint32_t kind;
    /* number of the device among those of its kind */
    int32_t index;
    /* nearest NUMA node, as the system numbers it; -1: unknown */
    int32_t numa_node;
    /* bytes */
    uint64_t memory;

    /* CUDA versions of driver and runtime: 13000 is 13.0 */
    uint32_t driver, runtime;
    /* compute capability */
    uint32_t major, minor;

    /* current generation of the PCIe link; GPUs lower it while idle */
    uint32_t pcie_generation;
    /* current number of lanes */
    uint32_t pcie_width;
    /* highest generation that link and device support */
    uint32_t pcie_generation_max;
    /* largest number of lanes that link and device support */
    uint32_t pcie_width_max;

    /* PCI address */
    char bus_id[32];
    char name[64];
};

/* Find out about a device, without allocating memory there. ENOTSUP: this build or machine has no
 * device of that kind; EINVAL: it has none of that index. */
PSTK_API int pstk_get_device(uint32_t kind, int32_t index, struct pstk_device *device,
                             struct pstk_error *err);

/* Bytes per second that copies reach when nothing else runs; 0: not measured. */
struct pstk_copy_rates {
    /* sizeof(struct pstk_copy_rates), set by the caller */
    uint32_t size;
    uint32_t reserved;
    /* from page-locked host memory, by cudaMemcpyAsync */
    double to_device;
    /* to page-locked host memory */
    double to_host;
    /* from memory that is not page-locked */
    double pageable_to_device;
    /* within device memory; each byte counts once */
    double on_device;
};

/* Measure copies of block_size bytes, one after the other, for `seconds` in total. Allocates two
 * blocks on the device. */
PSTK_API int pstk_measure_copies(uint32_t kind, int32_t index, uint64_t block_size, double seconds,
                                 struct pstk_copy_rates *rates, struct pstk_error *err);

/* ---- ceilings ------------------------------------------------------------------------------ */

/* Ceilings whose measurement reads files. */
enum pstk_ceiling_reads {
    PSTK_CEILING_STORAGE = 1,
    PSTK_CEILING_LOADER = 2,
};

/* The rate of each part when it runs alone. 0: not measured, because the data set has no such
 * field, or memory or time was short. */
struct pstk_ceilings {
    /* sizeof(struct pstk_ceilings), set by the caller */
    uint32_t size;
    /* bits of enum pstk_ceiling_reads: ceilings whose reads came from the page cache, so that they
     * do not show the disk's rate. 0 as well if the kernel does not report it */
    uint32_t from_page_cache;
    /* reads of records' extents at the loader's depth, without checks: of records outside of the
     * page cache, each once, if there are enough of them */
    double storage_bytes_per_second;
    /* rate of the same reads, counted in reads */
    double storage_reads_per_second;
    /* full decode by libjpeg-turbo on n_threads threads */
    double decode_samples_per_second;
    /* memcpy by n_threads threads, of blocks that no CPU cache holds */
    double memory_bytes_per_second;
    /* rate of the same loader with an output that decodes nothing */
    double loader_samples_per_second;
    /* page-locked copies to the device, each as large as those of a batch */
    double copy_bytes_per_second;
    /* bytes of each of those copies */
    uint64_t copy_block_size;
    /* by enum pstk_kernels: a worker's ns of CPU time for a sample with these kernels, all on the
     * same samples. worker_factor of struct pstk_forecast_settings is a ratio of two of them. 0:
     * this CPU lacks them, or outputs call functions of the program or have processes */
    double kernels_ns[5];
};

/* Measure the ceilings for a loader with these settings, for `seconds` in total, on a busy machine
 * up to 1.4 times as long. Opening files and reading the images to decode take extra time. borrows.
 */
PSTK_API int pstk_measure_ceilings(const struct pstk_settings *s, double seconds,
                                   struct pstk_ceilings *ceilings, struct pstk_error *err);

#ifdef __cplusplus
}
#endif
#endif
