/* SPDX-License-Identifier: Apache-2.0 */
/* doctor: reports a machine's abilities for a loader, what it lacks, what that costs, and what to
 * change. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <penstock/penstock.h>

#include "command.h"
#include "command/checkup.h"
#include "command/local_ranks.h"
#include "command/verdict.h"
#include "names.h"
#include "option/fields.h"
#include "option/options.h"
#include "ui/json.h"
#include "ui/message.h"
#include "ui/status.h"
#include "ui/text.h"
#include "ui/unit.h"

#define WANTED_MEMLOCK (UINT64_C(64) << 20) /* bytes that a loader registers by default */

#define COPY_SIZE (UINT64_C(32) << 20) /* bytes: 222 images of 224 x 224 pixels, one batch */
#define COPY_SECONDS 0.8               /* copies on all devices together */
#define COPY_SECONDS_MIN 0.1           /* minimum on each device */

enum { OPT_WORLD = 256, OPT_RANKS, OPT_JSON };

static const struct option_row table[] = {
    FIELDS_OPTIONS,
    FIELDS_DAMAGED_OPTION,
    {.name = "world",
     .code = OPT_WORLD,
     .value = "W",
     .initial = "1",
     .text = "how many ranks will read the data set; the advice on orders depends on it"},
    {.name = "ranks",
     .code = OPT_RANKS,
     .value = "N",
     .text = "print what N ranks on this machine use together: cores, memory, files, and which "
             "limits they share"},
    OPTION_JSON("print one JSON object"),
    OPTION_END};

/* The fast values of --kernels. */
#if defined(__aarch64__)
#define FAST_KERNELS WORD_PSTK_KERNELS_NEON
#else
#define FAST_KERNELS WORD_PSTK_KERNELS_AVX2 " or " WORD_PSTK_KERNELS_AVX512
#endif
#if defined(__x86_64__)
#define BUILT_KERNELS                                                                              \
    WORD_PSTK_KERNELS_C ", " WORD_PSTK_KERNELS_AVX2 " and " WORD_PSTK_KERNELS_AVX512
#elif defined(PSTK_NEON)
#define BUILT_KERNELS WORD_PSTK_KERNELS_C " and " WORD_PSTK_KERNELS_NEON
#else
#define BUILT_KERNELS WORD_PSTK_KERNELS_C " alone"
#endif

struct gpu {
    struct pstk_device device;
    struct pstk_copy_rates rates;
    char why[sizeof((struct pstk_error *)0)->message]; /* reason why the copies were not measured,
                                                          or "" */
};

struct gpus {
    uint32_t n;
    struct gpu *gpu; /* owned */
};

/* Print one fact as a line. Remarks below it name a lack, its cost and a remedy. */
static void line(const char *what, const char *value)
{
    printf("  %-14s ", what);
    text_print(stdout, value); /* a path, or a device's name from a driver */
    putchar('\n');
}

static void remark(const char *text)
{
    printf("  %-14s   %s\n", "", text);
}

static const char *errno_text(int32_t result)
{
    return result < 0 ? strerror(-result) : "off";
}

/* Print which cores are left, or "" where the rule does not say it. */
static const char *left_text(const struct pstk_machine *machine, uint32_t n_workers, char *text,
                             size_t size)
{
    const uint32_t n_left = machine->n_usable - n_workers;
    if (n_left == 1)
        snprintf(text, size, "1 core is left to the reader%s", machine->n_nodes > 1 ? "s" : "");
    else if (n_left <= machine->n_nodes)
        snprintf(text, size, "%u cores are left to the readers", n_left);
    else /* of so many cores that the number of workers has its limit */
        text[0] = 0;
    return text;
}

/* Print who gets the cores. A remark names each kind of loader that has another number of workers.
 */
static void print_workers(const struct pstk_machine *machine)
{
    char text[160], left[80];
    snprintf(text, sizeof text, "%u, where --threads is not given%s", machine->n_workers,
             machine->n_nodes > 1 ? "; each keeps to its NUMA node" : "");
    line("workers", text);
    if (machine->n_workers == machine->n_usable) {
        snprintf(text, sizeof text, "the reader%s %s core%s",
                 machine->n_nodes > 1 ? "s share" : " shares",
                 machine->n_workers > 1 ? "their" : "its", machine->n_workers > 1 ? "s" : "");
        remark(text);
    } else if (*left_text(machine, machine->n_workers, left, sizeof left)) {
        remark(left);
    }
    if (machine->n_workers_direct < machine->n_workers) {
        snprintf(text, sizeof text, "%u with direct reads, a windowed order or files to unpack: %s",
                 machine->n_workers_direct,
                 left_text(machine, machine->n_workers_direct, left, sizeof left));
        remark(text);
    }
    if (machine->n_workers_device < machine->n_workers) {
        snprintf(text, sizeof text,
                 "%u with batches on a GPU: a core for the copies and your program",
                 machine->n_workers_device);
        remark(text);
    }
}

static void print_system(const struct pstk_machine *machine, unsigned lacks)
{
    char text[160], bytes[UNIT_SIZE];
    printf("penstock %s on Linux %s, %s\n\n", pstk_version(), machine->kernel, machine->libjpeg);
    line("processor", machine->cpu);
    snprintf(text, sizeof text, "%s, the best of %s that runs here",
             option_choice_name(names_kernels, machine->kernels), BUILT_KERNELS);
    line("kernels", text);
    if (lacks & LACK_KERNELS)
        remark("decoding and resizing are several times slower than with " FAST_KERNELS);
    snprintf(text, sizeof text, "%u for this process, on %u NUMA node%s", machine->n_cores,
             machine->n_nodes, machine->n_nodes == 1 ? "" : "s");
    line("cores", text);
    if (machine->cpu_quota > 0) {
        snprintf(text, sizeof text, "the cgroup grants %.3g cores", machine->cpu_quota);
        line("CPU quota", text);
        if (lacks & LACK_QUOTA)
            remark("threads beyond it are stopped by the kernel: raise it to the cores there are "
                   "(cpu.max, --cpus)");
    } else {
        line("CPU quota", "none");
    }
    print_workers(machine);
    line("memory", unit_bytes(bytes, (double)machine->memory));
}

static void print_uring(const struct pstk_machine *machine, unsigned lacks)
{
    char text[160];
    if (!(lacks & LACK_URING)) {
        line("io_uring", "works");
    } else {
        snprintf(text, sizeof text, "refused: %s", errno_text(machine->io_uring));
        line("io_uring", text);
        remark("threads read instead: more CPU time for each read, felt with small records");
        remark("allow it: kernel.io_uring_disabled=0, and in a container a seccomp profile that");
        remark("permits io_uring_setup, io_uring_enter and io_uring_register");
        return;
    }
    if (!(lacks & LACK_FIXED_BUFFERS)) {
        line("fixed buffers", "64 MiB can be registered");
    } else {
        snprintf(text, sizeof text, "not registered: %s", errno_text(machine->fixed_buffers));
        line("fixed buffers", text);
        remark(machine->fixed_buffers == -ENOMEM
                   ? "each direct read maps its pages anew; raise RLIMIT_MEMLOCK, see below"
                   : "each direct read maps its pages anew; allow io_uring_register (seccomp)");
    }
    if (!(lacks & LACK_SINGLE_ISSUER)) {
        line("single issuer", "works");
    } else {
        line("single issuer", "no");
        remark("some more CPU time for each read; Linux 6.0 has single issuer, Linux 6.1 deferred");
        remark("task work (DEFER_TASKRUN), and the reader wants both");
    }
}

static void print_limits(const struct pstk_machine *machine, unsigned lacks)
{
    char text[160], bytes[UNIT_SIZE];
    if (machine->memlock == UINT64_MAX)
        line("memlock", "unlimited");
    else
        line("memlock", unit_bytes(bytes, (double)machine->memlock));
    if (machine->memlock < WANTED_MEMLOCK && machine->fixed_buffers == -ENOMEM)
        remark(
            "ulimit -l unlimited, LimitMEMLOCK=infinity (systemd), --ulimit memlock=-1 (docker)");
    snprintf(text, sizeof text, "%" PRIu64, machine->open_files);
    line("open files", text);
    if (lacks & LACK_OPEN_FILES)
        remark("few: shards are opened and closed more often; ulimit -n 4096");
}

static void print_path(const struct pstk_machine *machine, unsigned lacks, const char *path)
{
    char text[300];
    snprintf(text, sizeof text, "%s (%s)", path,
             machine->file_system[0] ? machine->file_system : "?");
    line("path", text);
    if (machine->direct == 1) {
        snprintf(text, sizeof text, "works, %u bytes aligned in memory, %u in the file",
                 machine->direct_memory_align, machine->direct_offset_align);
        line("direct I/O", text);
    } else {
        snprintf(text, sizeof text, "refused: %s", errno_text(machine->direct));
        line("direct I/O", text);
    }
    if (lacks & LACK_DIRECT) {
        remark(
            "reads go through the page cache: one copy more, and no matter while data fits into");
        remark("memory; for more than that, put data on ext4 or xfs on a local NVMe");
    }
}

/* Measure the copies, then read the state of the link, which the copies have woken up. */
static void look_at_gpu(struct gpu *gpu, int32_t index, double seconds)
{
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    gpu->rates.size = sizeof gpu->rates;
    gpu->device.size = sizeof gpu->device;
    if (pstk_measure_copies(PSTK_CUDA, index, COPY_SIZE, seconds, &gpu->rates, &err) < 0)
        snprintf(gpu->why, sizeof gpu->why, "%s", err.message);
    if (pstk_get_device(PSTK_CUDA, index, &gpu->device, &err) < 0) {
        gpu->device.index = index;
        snprintf(gpu->why, sizeof gpu->why, "%s", err.message);
    }
}

static struct gpus look_at_gpus(int32_t n)
{
    struct gpus gpus = {.n = n > 0 ? (uint32_t)n : 0};
    if (gpus.n == 0)
        return gpus;
    double seconds = COPY_SECONDS / gpus.n;
    if (seconds < COPY_SECONDS_MIN)
        seconds = COPY_SECONDS_MIN;
    gpus.gpu = calloc(gpus.n, sizeof *gpus.gpu);
    if (!gpus.gpu)
        message_no_memory();
    for (uint32_t i = 0; i < gpus.n; i++)
        look_at_gpu(&gpus.gpu[i], (int32_t)i, seconds);
    return gpus;
}

/* Explain why there is no CUDA device: the library's sentence up to its first remark, and the
 * advice after it. Either may be empty. */
static void explain_absence(char why[120], char advice[120])
{
    struct pstk_device device = {.size = sizeof device};
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    why[0] = advice[0] = 0;
    if (pstk_get_device(PSTK_CUDA, 0, &device, &err) == 0)
        return;
    const char *text = err.message, *colon = strstr(text, ": "), *more = strstr(text, "; ");
    text = colon ? colon + 2 : text;
    size_t length = strcspn(text, ";(");
    while (length && text[length - 1] == ' ')
        length--;
    snprintf(why, 120, "%.*s", (int)length, text);
    snprintf(advice, 120, "%s", more ? more + 2 : "");
}

static void print_no_cuda(void)
{
    char why[120], advice[120];
    explain_absence(why, advice);
    line("CUDA", why[0] ? why : "no device");
    if (advice[0])
        remark(advice);
}

static int has_few_lanes(const struct gpu *gpu)
{
    return gpu->device.pcie_width && gpu->device.pcie_width < gpu->device.pcie_width_max;
}

static void print_link(const struct gpu *gpu)
{
    const struct pstk_device *device = &gpu->device;
    char text[160], link[64] = "";
    if (device->pcie_generation_max)
        snprintf(link, sizeof link, ", PCIe gen %u x%u", device->pcie_generation_max,
                 device->pcie_width_max);
    snprintf(text, sizeof text, "%s%s", device->bus_id, link);
    if (device->pcie_generation && device->pcie_width &&
        (device->pcie_generation < device->pcie_generation_max ||
         device->pcie_width < device->pcie_width_max))
        snprintf(text, sizeof text, "%s%s (now gen %u x%u)", device->bus_id, link,
                 device->pcie_generation, device->pcie_width);
    remark(text);
    if (has_few_lanes(gpu))
        remark("fewer lanes than it could have: another slot of the board would copy faster");
}

static void print_copies(const struct gpu *gpu)
{
    const struct pstk_copy_rates *rates = &gpu->rates;
    char text[200], a[UNIT_SIZE], b[UNIT_SIZE], c[UNIT_SIZE], d[UNIT_SIZE];
    if (gpu->why[0]) {
        remark("its copies could not be measured:");
        remark(gpu->why);
        return;
    }
    snprintf(text, sizeof text, "copies %s/s to it, %s/s back, %s/s on it",
             unit_bytes(a, rates->to_device), unit_bytes(b, rates->to_host),
             unit_bytes(d, rates->on_device));
    remark(text);
    snprintf(text, sizeof text, "%s/s to it from memory that is not page-locked",
             unit_bytes(c, rates->pageable_to_device));
    remark(text);
}

static void print_gpu(const struct gpu *gpu)
{
    const struct pstk_device *device = &gpu->device;
    char name[32], text[200], memory[UNIT_SIZE], node[32] = "";
    if (device->numa_node >= 0)
        snprintf(node, sizeof node, ", NUMA node %d", device->numa_node);
    snprintf(name, sizeof name, "CUDA %d", device->index);
    snprintf(text, sizeof text, "%s, %s, compute capability %u.%u%s", device->name,
             unit_bytes(memory, (double)device->memory), device->major, device->minor, node);
    line(name, text);
    print_link(gpu);
    print_copies(gpu);
}

static void print_gpus(const struct gpus *gpus)
{
    char text[160];
    if (gpus->n == 0) {
        print_no_cuda();
        return;
    }
    const struct pstk_device *device = &gpus->gpu[0].device;
    snprintf(text, sizeof text, "%u device%s, driver for CUDA %u.%u, runtime of %u.%u", gpus->n,
             gpus->n == 1 ? "" : "s", device->driver / 1000, device->driver % 1000 / 10,
             device->runtime / 1000, device->runtime % 1000 / 10);
    line("CUDA", text);
    for (uint32_t i = 0; i < gpus->n; i++)
        print_gpu(&gpus->gpu[i]);
}

static void put_count_or_null(struct json_t *object, const char *key, uint32_t value)
{
    json_put_count(object, key, value ? value : PSTK_NONE);
}

static struct json_t *gpu_json(const struct gpu *gpu)
{
    const struct pstk_device *device = &gpu->device;
    const struct pstk_copy_rates *rates = &gpu->rates;
    struct json_t *object = json_make_object();
    char text[32];
    json_put_count(object, "index", (uint64_t)device->index);
    json_put_text(object, "name", device->name);
    json_put_count(object, "memory_bytes", device->memory);
    snprintf(text, sizeof text, "%u.%u", device->major, device->minor);
    json_put_text(object, "compute_capability", text);
    json_put_count(object, "numa_node",
                   device->numa_node >= 0 ? (uint64_t)device->numa_node : PSTK_NONE);
    json_put_text(object, "bus_id", device->bus_id);
    put_count_or_null(object, "pcie_generation", device->pcie_generation);
    put_count_or_null(object, "pcie_width", device->pcie_width);
    put_count_or_null(object, "pcie_generation_max", device->pcie_generation_max);
    put_count_or_null(object, "pcie_width_max", device->pcie_width_max);
    snprintf(text, sizeof text, "%u.%u", device->driver / 1000, device->driver % 1000 / 10);
    json_put_text(object, "driver", text);
    snprintf(text, sizeof text, "%u.%u", device->runtime / 1000, device->runtime % 1000 / 10);
    json_put_text(object, "runtime", text);
    json_put_real(object, "to_device_bytes_per_second", rates->to_device);
    json_put_real(object, "to_host_bytes_per_second", rates->to_host);
    json_put_real(object, "pageable_to_device_bytes_per_second", rates->pageable_to_device);
    json_put_real(object, "on_device_bytes_per_second", rates->on_device);
    json_put_text(object, "not_measured", gpu->why[0] ? gpu->why : NULL);
    return object;
}

static struct json_t *gpus_json(const struct gpus *gpus)
{
    struct json_t *object = json_make_array();
    for (uint32_t i = 0; i < gpus->n; i++)
        json_append(object, gpu_json(&gpus->gpu[i]));
    return object;
}

/* All results. */
struct doctor {
    const char *path;
    struct pstk_machine machine;
    struct gpus gpus;
    struct checkup checkup;
    struct local_ranks ranks;
    unsigned lacks; /* bit set of enum lack */
    struct verdict verdict;
};

static void judge(struct doctor *doctor)
{
    doctor->lacks = verdict_lacks(&doctor->machine, &doctor->checkup);
    for (uint32_t i = 0; i < doctor->gpus.n; i++)
        if (has_few_lanes(&doctor->gpus.gpu[i]) || doctor->gpus.gpu[i].why[0])
            doctor->lacks |= LACK_GPU;
    doctor->verdict = verdict_of(&doctor->checkup, &doctor->ranks.found, doctor->lacks);
}

static int status_of_both(const struct doctor *doctor)
{
    const int status = checkup_status(&doctor->checkup);
    return status ? status : checkup_status(&doctor->ranks.found);
}

static int print_text(const struct doctor *doctor)
{
    const struct pstk_machine *machine = &doctor->machine;
    print_system(machine, doctor->lacks);
    print_uring(machine, doctor->lacks);
    print_limits(machine, doctor->lacks);
    print_path(machine, doctor->lacks, doctor->path);
    print_gpus(&doctor->gpus);
    checkup_print(&doctor->checkup);
    if (doctor->ranks.n)
        putchar('\n');
    checkup_print(&doctor->ranks.found);
    printf("\n  %-14s ", "verdict");
    text_print_wrapped(stdout, doctor->verdict.text, 17);
    if (doctor->verdict.next)
        message_next(doctor->verdict.next, doctor->path);
    return message_finish(status_of_both(doctor));
}

static int print_json(const struct doctor *doctor)
{
    const struct pstk_machine *machine = &doctor->machine;
    const struct gpus *gpus = &doctor->gpus;
    char why[120], advice[120];
    struct json_t *object = json_make_object();
    json_put_text(object, "version", pstk_version());
    json_put_text(object, "kernel", machine->kernel);
    json_put_text(object, "libjpeg", machine->libjpeg);
    json_put_text(object, "cpu", machine->cpu);
    json_put_text(object, "kernels", option_choice_name(names_kernels, machine->kernels));
    json_put_count(object, "cores", machine->n_cores);
    json_put_count(object, "usable_cores", machine->n_usable);
    json_put_count(object, "workers", machine->n_workers);
    json_put_count(object, "workers_direct", machine->n_workers_direct);
    json_put_count(object, "workers_gpu", machine->n_workers_device);
    json_put_count(object, "numa_nodes", machine->n_nodes);
    if (machine->cpu_quota > 0)
        json_put_real(object, "cpu_quota", machine->cpu_quota);
    else
        json_put_null(object, "cpu_quota");
    json_put_count(object, "memory_bytes", machine->memory);
    json_put_bool(object, "io_uring", machine->io_uring == 1);
    json_put_bool(object, "fixed_buffers", machine->fixed_buffers == 1);
    json_put_bool(object, "single_issuer", machine->single_issuer == 1);
    json_put_count(object, "memlock_bytes", machine->memlock); /* unlimited: null */
    json_put_count(object, "open_files", machine->open_files);
    json_put_text(object, "path", doctor->path);
    json_put_text(object, "file_system", machine->file_system);
    json_put_bool(object, "direct", machine->direct == 1);
    if (machine->rotational < 0)
        json_put_null(object, "rotational");
    else
        json_put_bool(object, "rotational", machine->rotational == 1);
    json_put_count(object, "direct_memory_align", machine->direct_memory_align);
    json_put_count(object, "direct_offset_align", machine->direct_offset_align);
    json_put_count(object, "cuda_devices", gpus->n);
    json_put(object, "devices", gpus_json(gpus));
    explain_absence(why, advice);
    json_put_text(object, "no_cuda", gpus->n ? NULL : why);
    checkup_put(&doctor->checkup, object);
    local_ranks_put(&doctor->ranks, object);
    json_put_text(object, "verdict", doctor->verdict.text);
    return json_print(object, status_of_both(doctor));
}

/* Return `path` if it exists; else, for a pattern of files, the folder before its first wildcard,
 * written to `place`. NULL with errno: there is no such folder. */
static const char *find_place(const char *path, char place[PATH_MAX])
{
    if (access(path, F_OK) == 0)
        return path;
    const int native = errno;
    int n = (int)strcspn(path, "*?[{");
    while (n > 0 && path[n - 1] != '/')
        n--;
    if (n < PATH_MAX && pstk_find_format(path, NULL)) {
        snprintf(place, PATH_MAX, "%.*s", n > 0 ? n : 1, n > 0 ? path : ".");
        if (access(place, F_OK) == 0)
            return place;
    }
    errno = native;
    return NULL;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options options = {.command = self, .argc = argc, .argv = argv};
    struct fields fields = {.n = 0};
    struct doctor doctor = {.machine.size = sizeof doctor.machine,
                            .checkup = {.world = 1, .fields = &fields}};
    struct pstk_error err;
    int c, json = 0;
    while ((c = options_next(&options)) > 0) {
        const int is_foreign = fields_have(c);
        if (is_foreign && fields_take(&fields, c, optarg) < 0)
            return STATUS_USAGE;
        if (c == OPT_JSON)
            json = 1;
        else if (c == OPT_RANKS &&
                 option_count32("--ranks", optarg, (struct range){1, LOCAL_RANKS_MAX},
                                &doctor.ranks.n) < 0)
            return STATUS_USAGE;
        else if (c == OPT_WORLD && option_count32("--world", optarg, (struct range){1, 1 << 24},
                                                  &doctor.checkup.world) < 0)
            return STATUS_USAGE;
    }
    if (c < 0 || options_operands(&options, 0, 1, "one PATH") < 0)
        return options.status;
    doctor.path = options_n_operands(&options) ? options_operand(&options, 0) : ".";
    char folder[PATH_MAX];
    const char *place = find_place(doctor.path, folder);
    if (!place) {
        const int native = errno;
        message_say("cannot read the attributes of %s: %s", doctor.path, strerror(native));
        return status_of_path(native);
    }
    pstk_error_init(&err, sizeof err);
    if (pstk_get_machine(place, &doctor.machine, &err) < 0)
        return status_refuse(&err, doctor.path);
    checkup(&doctor.checkup, doctor.path, &doctor.machine);
    local_ranks(&doctor.ranks, doctor.path, &doctor.checkup, &doctor.machine);
    doctor.gpus = look_at_gpus(doctor.machine.n_cuda_devices);
    judge(&doctor);
    const int status = json ? print_json(&doctor) : print_text(&doctor);
    free(doctor.gpus.gpu);
    return status;
}

const struct command command_doctor = {
    .name = "doctor",
    .summary = "print what this machine offers, and what to change",
    .operands = "[PATH]",
    .text =
        "Print what this machine offers a loader, what a missing piece costs, and what to "
        "change. PATH is where data lies or will lie, or a pattern of files ('train/*.tar'); "
        "without it the current folder.\n"
        "\n"
        "Where PATH is a data set, doctor looks at it, too: whether it can be opened, all its "
        "files are there with their sizes, and a loader gives a batch of it in this machine's "
        "memory; whether it has labels, masks that a loader would spoil, or JPEGs that decode "
        "slowly; whether its storage is slow at random reads, and which order suits it for "
        "W ranks. `penstock verify` reads all of it. The verdict at the end says where to look, "
        "and what to do next.\n"
        "\n"
        "With --ranks doctor opens the loaders of N ranks of this machine, one after the other, "
        "and adds up what they have. Memory that direct reads register counts for all ranks of a "
        "user together (memlock), open files for each.\n"
        "\n"
        "Of each GPU doctor also measures what plain copies do, which takes a moment and some "
        "of its memory.\n",
    .options = table,
    .examples = "penstock doctor train\n"
                "penstock doctor train --ranks 8\n"
                "penstock doctor /data --json | jq .io_uring\n"
                "penstock doctor --json | jq '.devices[0].to_device_bytes_per_second'\n",
    .exit_status = "0 (also when the machine lacks pieces: penstock runs without them); 1 the data "
                   "set has errors, or one of N ranks cannot open it; 2 wrong path",
    .run = run,
};
