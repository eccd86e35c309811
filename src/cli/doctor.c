/* SPDX-License-Identifier: Apache-2.0 */
/* doctor: what this machine offers a loader; what is missing, what that costs, what to change. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <penstock/penstock.h>

#include "command.h"
#include "json.h"
#include "message.h"
#include "options.h"
#include "unit.h"

#define OPT_JSON 256
#define WANTED_MEMLOCK (UINT64_C(64) << 20) /* bytes: what a loader registers by default */

static const struct option table[] = {
    {"json", no_argument, NULL, OPT_JSON}, {"help", no_argument, NULL, 'h'}, OPTION_END};

static const char help[] =
    "usage: penstock doctor [PATH] [--json]\n"
    "\n"
    "Say what this machine offers a loader, what a missing piece costs, and what to change.\n"
    "PATH is where data lies or will lie; without it the current folder.\n"
    "\n"
    "examples:\n"
    "  penstock doctor /data\n"
    "  penstock doctor /data --json | jq .io_uring\n"
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

/* One line, and below it what is missing: what it costs, what to change. */
static void line(const char *what, const char *value)
{
    printf("  %-14s %s\n", what, value);
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
        remark("each direct read maps its pages anew; raise RLIMIT_MEMLOCK, see below");
    }
    if (m->single_issuer == 1) {
        line("single issuer", "works");
    } else {
        line("single issuer", "no");
        remark("some more CPU time for each read; Linux 6.1 or later has it");
    }
}

static void print_limits(const struct pstk_machine *m)
{
    char text[160], bytes[UNIT_SIZE];
    if (m->memlock == UINT64_MAX)
        line("memlock", "unlimited");
    else
        line("memlock", unit_bytes(bytes, (double)m->memlock));
    if (m->memlock < WANTED_MEMLOCK && m->fixed_buffers != 1)
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

static void print_cuda(const struct pstk_machine *m)
{
    char text[64];
    if (m->n_cuda_devices > 0) {
        snprintf(text, sizeof text, "%d device%s", m->n_cuda_devices,
                 m->n_cuda_devices == 1 ? "" : "s");
        line("CUDA", text);
    } else {
        line("CUDA", m->n_cuda_devices == 0 ? "no device" : "not in this build, or no driver");
        remark("batches stay in host memory; the trainer copies them");
    }
}

static int print_json(const struct pstk_machine *m, const char *path)
{
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
    json_put_count(o, "cuda_devices", m->n_cuda_devices > 0 ? (uint64_t)m->n_cuda_devices : 0);
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
    if (access(path, F_OK) < 0)
        return message_usage("cannot look at %s: %s", path, strerror(errno));
    pstk_error_init(&err, sizeof err);
    if (pstk_get_machine(path, &m, &err) < 0)
        return message_refuse(&err, path);
    if (json)
        return print_json(&m, path);
    print_system(&m);
    print_uring(&m);
    print_limits(&m);
    print_path(&m, path);
    print_cuda(&m);
    return message_finish(STATUS_OK);
}

const struct command command_doctor = {"doctor", "say what this machine offers, and what to change",
                                       help, run};
