/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/cgroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_SIZE 4096 /* bytes; a longer path counts as missing */
#define CGROUP_DIR "sys/fs/cgroup"
#define LIST_SIZE 4096 /* bytes of a list of processors, such as "0-3,8" */

/* Read the first line of a file, without its newline. 0, or -1 when the file cannot be read. */
static int read_line(const char *path, char *line, int size)
{
    FILE *stream = fopen(path, "re");
    if (!stream)
        return -1;
    char *got = fgets(line, size, stream);
    fclose(stream);
    if (!got)
        return -1;
    line[strcspn(line, "\n")] = 0;
    return 0;
}

/* Return the limit that one cgroup directory sets, or -1 when it sets none. */
typedef double (*limit_fn)(const char *dir);

/* Read a number from one file of a directory; -1 when the file is missing or has no number ("max")
 * or a negative one. */
static double number_in(const char *dir, const char *file)
{
    char path[PATH_SIZE], line[128];
    int n = snprintf(path, sizeof path, "%s/%s", dir, file);
    if (n < 0 || (size_t)n >= sizeof path || read_line(path, line, sizeof line) < 0)
        return -1;
    char *end;
    unsigned long long value = strtoull(line, &end, 10);
    return end == line || line[0] == '-' ? -1 : (double)value;
}

static double cpus_v2(const char *dir)
{
    char path[PATH_SIZE], line[128];
    unsigned long long quota, period;
    int n = snprintf(path, sizeof path, "%s/cpu.max", dir);
    if (n < 0 || (size_t)n >= sizeof path || read_line(path, line, sizeof line) < 0)
        return -1;
    if (sscanf(line, "%llu %llu", &quota, &period) != 2 || period == 0)
        return -1;
    return (double)quota / (double)period;
}

static double cpus_v1(const char *dir)
{
    double quota = number_in(dir, "cpu.cfs_quota_us");
    double period = number_in(dir, "cpu.cfs_period_us");
    return quota > 0 && period > 0 ? quota / period : -1;
}

static double memory_v2(const char *dir)
{
    double max = number_in(dir, "memory.max");
    double high = number_in(dir, "memory.high"); /* above it the kernel slows the process down */
    return high >= 0 && (max < 0 || high < max) ? high : max;
}

static double memory_v1(const char *dir)
{
    return number_in(dir, "memory.limit_in_bytes");
}

/* Count the processors of a list such as "0-3,8"; -1 when it lists none. */
static double count_list(const char *text)
{
    double n = 0;
    while (*text) {
        char *end;
        const unsigned long first = strtoul(text, &end, 10);
        unsigned long last = first;
        if (end == text)
            return -1;
        if (*end == '-') {
            text = end + 1;
            last = strtoul(text, &end, 10);
            if (end == text || last < first)
                return -1;
        }
        n += (double)(last - first + 1);
        if (*end != ',' && *end)
            return -1;
        text = end + (*end == ',');
    }
    return n > 0 ? n : -1;
}

/* Count the processors that one file of a directory lists. */
static double cores_in(const char *dir, const char *file)
{
    char path[PATH_SIZE], line[LIST_SIZE];
    int n = snprintf(path, sizeof path, "%s/%s", dir, file);
    if (n < 0 || (size_t)n >= sizeof path || read_line(path, line, sizeof line) < 0)
        return -1;
    return count_list(line);
}

static double cores_v2(const char *dir)
{
    return cores_in(dir, "cpuset.cpus.effective");
}

static double cores_v1(const char *dir)
{
    return cores_in(dir, "cpuset.cpus");
}

/* Sum the named numbers of a group's memory.stat. */
static double stat_in(const char *dir, const char *const names[2])
{
    char path[PATH_SIZE], line[128], name[64];
    unsigned long long value;
    double sum = 0;
    int n = snprintf(path, sizeof path, "%s/memory.stat", dir);
    FILE *stream = n > 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;
    if (!stream)
        return 0;
    while (fgets(line, sizeof line, stream))
        if (sscanf(line, "%63s %llu", name, &value) == 2 &&
            (strcmp(name, names[0]) == 0 || strcmp(name, names[1]) == 0))
            sum += (double)value;
    fclose(stream);
    return sum;
}

static double left_of(double limit, double used, double cached)
{
    if (limit < 0 || used < 0)
        return -1;
    used -= cached < used ? cached : used;
    return limit > used ? limit - used : 0;
}

static double hard_v2(const char *dir)
{
    return number_in(dir, "memory.max");
}

static double left_v2(const char *dir)
{
    static const char *const cached[2] = {"inactive_file", "active_file"};
    return left_of(hard_v2(dir), number_in(dir, "memory.current"), stat_in(dir, cached));
}

static double left_v1(const char *dir)
{
    static const char *const cached[2] = {"total_inactive_file", "total_active_file"};
    return left_of(memory_v1(dir), number_in(dir, "memory.usage_in_bytes"), stat_in(dir, cached));
}

/* Find the lowest limit from a cgroup up to the root of its hierarchy, -1 when none has one.
 * is_nearest: find the limit of the nearest cgroup that has one. In a container without a cgroup
 * namespace, /proc names a path of the host that does not exist here. The container's own limits
 * are then at the root, which is always read. Cuts up `path`. */
static double find_on_path(const char *mount, char *path, limit_fn limit, int is_nearest)
{
    double lowest = -1;
    for (;;) {
        char dir[PATH_SIZE];
        int n = snprintf(dir, sizeof dir, "%s%s", mount, path);
        double here = n > 0 && (size_t)n < sizeof dir ? limit(dir) : -1;
        if (here >= 0 && (lowest < 0 || here < lowest))
            lowest = here;
        if (is_nearest && here >= 0)
            return here;
        char *slash = strrchr(path, '/');
        if (!slash)
            return lowest;
        *slash = 0;
    }
}

static double lower(double a, double b)
{
    return a < 0 ? b : b < 0 || a < b ? a : b;
}

static int has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',')
        if (strncmp(p, word, n) == 0 && (p[n] == ',' || p[n] == 0))
            return 1;
    return 0;
}

/* One limit to look up: its controller, and how each version reports it. */
struct question {
    const char *controller; /* name of the controller in version 1 */
    limit_fn v1, v2;
    int is_nearest; /* 1: the nearest cgroup decides, as for a set of cores, not the lowest limit */
};

/* Find the limit under one mount point, root/sys/fs/cgroup/`name`. Leaves `path` unchanged. */
static double limit_at(const char *root, const char *name, const char *path, limit_fn limit,
                       int is_nearest)
{
    char mount[PATH_SIZE], copy[PATH_SIZE];
    int n = snprintf(mount, sizeof mount, "%s/" CGROUP_DIR "%s%s", root, *name ? "/" : "", name);
    int m = snprintf(copy, sizeof copy, "%s", path);
    if (n < 0 || (size_t)n >= sizeof mount || m < 0 || (size_t)m >= sizeof copy)
        return -1;
    return find_on_path(mount, copy, limit, is_nearest);
}

/* Find the limit that one line of /proc/self/cgroup, "id:controllers:path", leads to. */
static double limit_of_line(const char *root, char *line, const struct question *question)
{
    char *controllers = strchr(line, ':');
    char *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path)
        return -1;
    *controllers++ = 0;
    *path++ = 0;
    if (*controllers == 0) /* version 2, mounted as "unified" next to version 1 */
        return lower(limit_at(root, "", path, question->v2, question->is_nearest),
                     limit_at(root, "unified", path, question->v2, question->is_nearest));
    if (!has_word(controllers, question->controller))
        return -1;
    /* Version 1 is mounted under the names of all its controllers ("cpu,cpuacct"), with a link
     * named after each. */
    return lower(limit_at(root, question->controller, path, question->v1, question->is_nearest),
                 limit_at(root, controllers, path, question->v1, question->is_nearest));
}

/* Find the lowest limit of this process's cgroups, -1 when there is none. */
static double limit_of_process(const char *root, const struct question *question)
{
    char path[PATH_SIZE], line[PATH_SIZE];
    int n = snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *stream = n > 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;
    if (!stream)
        return -1;
    double lowest = -1;
    while (fgets(line, sizeof line, stream)) {
        line[strcspn(line, "\n")] = 0;
        lowest = lower(lowest, limit_of_line(root, line, question));
    }
    fclose(stream);
    return lowest;
}

double pstk__cgroup_cpus(const char *root)
{
    static const struct question question = {"cpu", cpus_v1, cpus_v2, 0};
    double cpus = limit_of_process(root, &question);
    return cpus > 0 ? cpus : 0;
}

uint64_t pstk__cgroup_cores(const char *root)
{
    static const struct question question = {"cpuset", cores_v1, cores_v2, 1};
    const double cores = limit_of_process(root, &question);
    return cores > 0 ? (uint64_t)cores : 0;
}

/* Return the machine's memory in bytes, from the kernel, else from the C library. */
static uint64_t machine_memory(const char *root)
{
    char path[PATH_SIZE], line[128];
    unsigned long long kib;
    int n = snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (n > 0 && (size_t)n < sizeof path && read_line(path, line, sizeof line) == 0 &&
        sscanf(line, "MemTotal: %llu", &kib) == 1)
        return (uint64_t)kib << 10;
    long pages = sysconf(_SC_PHYS_PAGES), page_size = sysconf(_SC_PAGESIZE);
    return pages > 0 && page_size > 0 ? (uint64_t)pages * (uint64_t)page_size : 0;
}

uint64_t pstk__cgroup_memory(const char *root)
{
    static const struct question question = {"memory", memory_v1, memory_v2, 0};
    uint64_t memory = machine_memory(root);
    double limit = limit_of_process(root, &question);
    /* Version 1 without a limit reports nearly 2^63. */
    return limit >= 0 && (memory == 0 || limit < (double)memory) ? (uint64_t)limit : memory;
}

void pstk__cgroup_memory_left(const char *root, uint64_t *limit, uint64_t *left)
{
    static const struct question hard = {"memory", memory_v1, hard_v2};
    static const struct question room = {"memory", left_v1, left_v2};
    const double most = limit_of_process(root, &hard), rest = limit_of_process(root, &room);
    const uint64_t memory = machine_memory(root);
    *limit = *left = 0;
    if (most < 0 || rest < 0 || (memory > 0 && most >= (double)memory))
        return;
    *limit = (uint64_t)most;
    *left = (uint64_t)rest;
}
