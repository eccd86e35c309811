/* SPDX-License-Identifier: Apache-2.0 */
/* doctor: what this machine offers a loader; what is missing, what that costs, what to change. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <penstock/penstock.h>

#include "command.h"
#include "json.h"
#include "message.h"
#include "options.h"
#include "text.h"
#include "unit.h"

#define OPT_JSON 256
#define WANTED_MEMLOCK (UINT64_C(64) << 20) /* bytes: what a loader registers by default */

#define COPY_SIZE (UINT64_C(32) << 20) /* bytes: 222 images of 224 x 224 pixels, one batch */
#define COPY_SECONDS 0.8               /* of copies on all devices together ... */
#define COPY_SECONDS_MIN 0.1           /* ... and on each at least */

static const struct option table[] = {
    {"json", no_argument, NULL, OPT_JSON}, {"help", no_argument, NULL, 'h'}, OPTION_END};

static const char help[] =
    "usage: penstock doctor [PATH] [--json]\n"
    "\n"
    "Say what this machine offers a loader, what a missing piece costs, and what to change.\n"
    "PATH is where data lies or will lie; without it the current folder. Of GPUs it also measures\n"
    "what plain copies do, which takes each a moment and some of its memory.\n"
    "\n"
    "examples:\n"
    "  penstock doctor /data\n"
    "  penstock doctor /data --json | jq .io_uring\n"
    "  penstock doctor --json | jq '.devices[0].to_device_bytes_per_second'\n"
    "\n"
    "exit status: 0 (also when pieces are missing: penstock runs without them); 2 wrong path\n";

static const struct choice variants[] = {{"plain C", PSTK_VARIANT_C},
                                         {"AVX2", PSTK_VARIANT_AVX2},
                                         {"AVX-512", PSTK_VARIANT_AVX512},
                                         {NULL, 0}};

#if defined(__x86_64__)
#define BUILT_VARIANTS "plain C, AVX2 and AVX-512"
#else
#define BUILT_VARIANTS "plain C alone"
#endif

struct gpu {
    struct pstk_device device;
    struct pstk_copy_rates rates;
    char why[sizeof((struct pstk_error *)0)->message]; /* not measured, or "" */
};

struct gpus {
    uint32_t n;
    struct gpu *gpu; /* owned */
};

/* One line, and below it what is missing: what it costs, what to change. */
static void line(const char *what, const char *value)
{
    printf("  %-14s ", what);
    text_print(stdout, value); /* a path, or what a driver calls its device */
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

static void print_system(const struct pstk_machine *m)
{
    char text[160], bytes[UNIT_SIZE];
    printf("penstock %s on Linux %s, %s\n\n", pstk_version(), m->kernel, m->libjpeg);
    line("processor", m->cpu);
    snprintf(text, sizeof text, "%s, the best of %s that runs here",
             option_choice_name(variants, m->variant), BUILT_VARIANTS);
    line("kernels", text);
    if (m->variant == PSTK_VARIANT_C)
        remark("decoding and resizing are several times slower than with AVX2 or AVX-512");
    snprintf(text, sizeof text, "%u for this process, on %u NUMA node%s", m->n_cores, m->n_nodes,
             m->n_nodes == 1 ? "" : "s");
    line("cores", text);
    if (m->cpu_quota > 0) {
        snprintf(text, sizeof text, "the cgroup grants %.3g cores", m->cpu_quota);
        line("CPU quota", text);
        if (m->cpu_quota < m->n_cores)
            remark("threads beyond it are stopped by the kernel: raise it to the cores there are "
                   "(cpu.max, --cpus)");
    } else {
        line("CPU quota", "none");
    }
    snprintf(text, sizeof text, "%u, chosen where --threads is not given", m->n_usable);
    line("workers", text);
    line("memory", unit_bytes(bytes, (double)m->memory));
}

static void print_uring(const struct pstk_machine *m)
{
    char text[160];
    if (m->io_uring == 1) {
        line("io_uring", "works");
    } else {
        snprintf(text, sizeof text, "refused: %s", errno_text(m->io_uring));
        line("io_uring", text);
        remark("threads read instead: more CPU time for each read, felt with small records");
        remark("allow it: kernel.io_uring_disabled=0, and in a container a seccomp profile that");
        remark("permits io_uring_setup, io_uring_enter and io_uring_register");
        return;
    }
    if (m->fixed_buffers == 1) {
        line("fixed buffers", "64 MiB can be registered");
    } else {
        snprintf(text, sizeof text, "not registered: %s", errno_text(m->fixed_buffers));
        line("fixed buffers", text);
        remark(m->fixed_buffers == -ENOMEM
                   ? "each direct read maps its pages anew; raise RLIMIT_MEMLOCK, see below"
                   : "each direct read maps its pages anew; allow io_uring_register (seccomp)");
    }
    if (m->single_issuer == 1) {
        line("single issuer", "works");
    } else {
        line("single issuer", "no");
        remark("some more CPU time for each read; Linux 6.0 has single issuer, Linux 6.1 deferred");
        remark("task work (DEFER_TASKRUN), and the reader wants both");
    }
}

static void print_limits(const struct pstk_machine *m)
{
    char text[160], bytes[UNIT_SIZE];
    if (m->memlock == UINT64_MAX)
        line("memlock", "unlimited");
    else
        line("memlock", unit_bytes(bytes, (double)m->memlock));
    if (m->memlock < WANTED_MEMLOCK && m->fixed_buffers == -ENOMEM)
        remark(
            "ulimit -l unlimited, LimitMEMLOCK=infinity (systemd), --ulimit memlock=-1 (docker)");
    snprintf(text, sizeof text, "%" PRIu64, m->open_files);
    line("open files", text);
    if (m->open_files < 1024)
        remark("few: shards are opened and closed more often; ulimit -n 4096");
}

static void print_path(const struct pstk_machine *m, const char *path)
{
    char text[300];
    snprintf(text, sizeof text, "%s (%s)", path, m->file_system[0] ? m->file_system : "?");
    line("path", text);
    if (m->direct == 1) {
        snprintf(text, sizeof text, "works, %u bytes aligned in memory, %u in the file",
                 m->direct_memory_align, m->direct_offset_align);
        line("direct I/O", text);
    } else {
        snprintf(text, sizeof text, "refused: %s", errno_text(m->direct));
        line("direct I/O", text);
        remark(
            "reads go through the page cache: one copy more, and no matter while data fits into");
        remark("memory; for more than that, put data on ext4 or xfs on a local NVMe");
    }
}

/* The link is asked for after the copies, for which it woke up. */
static void look_at_gpu(struct gpu *g, int32_t index, double seconds)
{
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    g->rates.size = sizeof g->rates;
    g->device.size = sizeof g->device;
    if (pstk_measure_copies(PSTK_CUDA, index, COPY_SIZE, seconds, &g->rates, &err) < 0)
        snprintf(g->why, sizeof g->why, "%s", err.message);
    if (pstk_get_device(PSTK_CUDA, index, &g->device, &err) < 0) {
        g->device.index = index;
        snprintf(g->why, sizeof g->why, "%s", err.message);
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

/* Why there is no CUDA device: the library's sentence up to its first remark, and what it advises
 * after that; either may be empty. */
static void explain_absence(char why[120], char advice[120])
{
    struct pstk_device d = {.size = sizeof d};
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    why[0] = advice[0] = 0;
    if (pstk_get_device(PSTK_CUDA, 0, &d, &err) == 0)
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

static void print_link(const struct gpu *g)
{
    const struct pstk_device *d = &g->device;
    char text[160], link[64] = "";
    if (d->pcie_generation_max)
        snprintf(link, sizeof link, ", PCIe gen %u x%u", d->pcie_generation_max, d->pcie_width_max);
    snprintf(text, sizeof text, "%s%s", d->bus_id, link);
    if (d->pcie_generation && d->pcie_width &&
        (d->pcie_generation < d->pcie_generation_max || d->pcie_width < d->pcie_width_max))
        snprintf(text, sizeof text, "%s%s (now gen %u x%u)", d->bus_id, link, d->pcie_generation,
                 d->pcie_width);
    remark(text);
    if (d->pcie_width && d->pcie_width < d->pcie_width_max)
        remark("fewer lanes than it could have: another slot of the board would copy faster");
}

static void print_copies(const struct gpu *g)
{
    const struct pstk_copy_rates *r = &g->rates;
    char text[200], a[UNIT_SIZE], b[UNIT_SIZE], c[UNIT_SIZE], d[UNIT_SIZE];
    if (g->why[0]) {
        remark("its copies could not be measured:");
        remark(g->why);
        return;
    }
    snprintf(text, sizeof text, "copies %s/s to it, %s/s back, %s/s on it",
             unit_bytes(a, r->to_device), unit_bytes(b, r->to_host), unit_bytes(d, r->on_device));
    remark(text);
    snprintf(text, sizeof text, "%s/s to it from memory that is not page-locked",
             unit_bytes(c, r->pageable_to_device));
    remark(text);
}

static void print_gpu(const struct gpu *g)
{
    const struct pstk_device *d = &g->device;
    char name[32], text[200], memory[UNIT_SIZE], node[32] = "";
    if (d->numa_node >= 0)
        snprintf(node, sizeof node, ", NUMA node %d", d->numa_node);
    snprintf(name, sizeof name, "CUDA %d", d->index);
    snprintf(text, sizeof text, "%s, %s, compute capability %u.%u%s", d->name,
             unit_bytes(memory, (double)d->memory), d->major, d->minor, node);
    line(name, text);
    print_link(g);
    print_copies(g);
}

static void print_gpus(const struct gpus *gpus)
{
    char text[160];
    if (gpus->n == 0) {
        print_no_cuda();
        return;
    }
    const struct pstk_device *d = &gpus->gpu[0].device;
    snprintf(text, sizeof text, "%u device%s, driver for CUDA %u.%u, runtime of %u.%u", gpus->n,
             gpus->n == 1 ? "" : "s", d->driver / 1000, d->driver % 1000 / 10, d->runtime / 1000,
             d->runtime % 1000 / 10);
    line("CUDA", text);
    for (uint32_t i = 0; i < gpus->n; i++)
        print_gpu(&gpus->gpu[i]);
}

static void put_count_or_null(struct json_t *o, const char *key, uint32_t value)
{
    json_put_count(o, key, value ? value : PSTK_NONE);
}

static struct json_t *gpu_json(const struct gpu *g)
{
    const struct pstk_device *d = &g->device;
    const struct pstk_copy_rates *r = &g->rates;
    struct json_t *o = json_make_object();
    char text[32];
    json_put_count(o, "index", (uint64_t)d->index);
    json_put_text(o, "name", d->name);
    json_put_count(o, "memory_bytes", d->memory);
    snprintf(text, sizeof text, "%u.%u", d->major, d->minor);
    json_put_text(o, "compute_capability", text);
    json_put_count(o, "numa_node", d->numa_node >= 0 ? (uint64_t)d->numa_node : PSTK_NONE);
    json_put_text(o, "bus_id", d->bus_id);
    put_count_or_null(o, "pcie_generation", d->pcie_generation);
    put_count_or_null(o, "pcie_width", d->pcie_width);
    put_count_or_null(o, "pcie_generation_max", d->pcie_generation_max);
    put_count_or_null(o, "pcie_width_max", d->pcie_width_max);
    snprintf(text, sizeof text, "%u.%u", d->driver / 1000, d->driver % 1000 / 10);
    json_put_text(o, "driver", text);
    snprintf(text, sizeof text, "%u.%u", d->runtime / 1000, d->runtime % 1000 / 10);
    json_put_text(o, "runtime", text);
    json_put_real(o, "to_device_bytes_per_second", r->to_device);
    json_put_real(o, "to_host_bytes_per_second", r->to_host);
    json_put_real(o, "pageable_to_device_bytes_per_second", r->pageable_to_device);
    json_put_real(o, "on_device_bytes_per_second", r->on_device);
    json_put_text(o, "not_measured", g->why[0] ? g->why : NULL);
    return o;
}

static struct json_t *gpus_json(const struct gpus *gpus)
{
    struct json_t *a = json_make_array();
    for (uint32_t i = 0; i < gpus->n; i++)
        json_append(a, gpu_json(&gpus->gpu[i]));
    return a;
}

static int print_text(const struct pstk_machine *m, const struct gpus *gpus, const char *path)
{
    print_system(m);
    print_uring(m);
    print_limits(m);
    print_path(m, path);
    print_gpus(gpus);
    return message_finish(STATUS_OK);
}

static int print_json(const struct pstk_machine *m, const struct gpus *gpus, const char *path)
{
    char why[120], advice[120];
    struct json_t *o = json_make_object();
    json_put_text(o, "version", pstk_version());
    json_put_text(o, "kernel", m->kernel);
    json_put_text(o, "libjpeg", m->libjpeg);
    json_put_text(o, "cpu", m->cpu);
    json_put_text(o, "variant", option_choice_name(variants, m->variant));
    json_put_count(o, "cores", m->n_cores);
    json_put_count(o, "usable_cores", m->n_usable);
    json_put_count(o, "numa_nodes", m->n_nodes);
    if (m->cpu_quota > 0)
        json_put_real(o, "cpu_quota", m->cpu_quota);
    else
        json_put_null(o, "cpu_quota");
    json_put_count(o, "memory_bytes", m->memory);
    json_put_bool(o, "io_uring", m->io_uring == 1);
    json_put_bool(o, "fixed_buffers", m->fixed_buffers == 1);
    json_put_bool(o, "single_issuer", m->single_issuer == 1);
    json_put_count(o, "memlock_bytes", m->memlock); /* unlimited: null */
    json_put_count(o, "open_files", m->open_files);
    json_put_text(o, "path", path);
    json_put_text(o, "file_system", m->file_system);
    json_put_bool(o, "direct", m->direct == 1);
    json_put_count(o, "direct_memory_align", m->direct_memory_align);
    json_put_count(o, "direct_offset_align", m->direct_offset_align);
    json_put_count(o, "cuda_devices", gpus->n);
    json_put(o, "devices", gpus_json(gpus));
    explain_absence(why, advice);
    json_put_text(o, "no_cuda", gpus->n ? NULL : why);
    return json_print(o, STATUS_OK);
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options o = {.command = self, .table = table, .letters = "", .argc = argc, .argv = argv};
    struct pstk_machine m = {.size = sizeof m};
    struct pstk_error err;
    int c, json = 0;
    while ((c = options_next(&o)) > 0)
        json = 1;
    if (c < 0 || options_operands(&o, 0, 1, "one PATH") < 0)
        return o.status;
    const char *path = options_n_operands(&o) ? options_operand(&o, 0) : ".";
    if (access(path, F_OK) < 0) {
        const int native = errno;
        message_say("cannot look at %s: %s", path, strerror(native));
        return message_status_of_path(native);
    }
    pstk_error_init(&err, sizeof err);
    if (pstk_get_machine(path, &m, &err) < 0)
        return message_refuse(&err, path);
    struct gpus gpus = look_at_gpus(m.n_cuda_devices);
    const int status = json ? print_json(&m, &gpus, path) : print_text(&m, &gpus, path);
    free(gpus.gpu);
    return status;
}

const struct command command_doctor = {"doctor", "say what this machine offers, and what to change",
                                       help, run};
