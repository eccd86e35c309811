/* SPDX-License-Identifier: Apache-2.0 */
#include "option/bound.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_SIZE 4096
#define LIST_SIZE 4096 /* bytes of a list of processors, such as "0-3,8" */
#define MAX_CPUS (1 << 20)
#define CGROUPS "/sys/fs/cgroup"

/* Return the number of cores that a process may use, 0 when it cannot be read. 0: this process. */
static uint64_t cores_of(pid_t process)
{
    for (int n = 1024; n <= MAX_CPUS; n *= 2) {
        cpu_set_t *set = CPU_ALLOC(n);
        const size_t size = CPU_ALLOC_SIZE(n);
        if (!set)
            return 0;
        const int failed = sched_getaffinity(process, size, set) < 0 ? errno : 0;
        const int count = failed ? 0 : CPU_COUNT_S(size, set);
        CPU_FREE(set);
        if (failed != EINVAL) /* EINVAL: the kernel's mask is longer */
            return (uint64_t)count;
    }
    return 0;
}

/* Count the processors of a list such as "0-3,8". 0: it is none. */
static uint64_t count_list(const char *text)
{
    uint64_t n = 0;
    while (*text) {
        char *end;
        const unsigned long first = strtoul(text, &end, 10);
        unsigned long last = first;
        if (end == text)
            return 0;
        if (*end == '-') {
            text = end + 1;
            last = strtoul(text, &end, 10);
            if (end == text || last < first)
                return 0;
        }
        n += last - first + 1;
        if (*end != ',' && *end)
            return 0;
        text = end + (*end == ',');
    }
    return n;
}

/* Count the processors that the file of a folder lists, or of the nearest folder above it, down to
 * `top` bytes of the path. Cuts up `path`. 0: none of them lists any. */
static uint64_t count_upwards(char path[PATH_SIZE], size_t top, const char *file)
{
    for (;;) {
        char name[PATH_SIZE + 32], list[LIST_SIZE] = "";
        snprintf(name, sizeof name, "%s/%s", path, file);
        FILE *stream = fopen(name, "re");
        if (stream) {
            if (!fgets(list, sizeof list, stream))
                list[0] = 0;
            fclose(stream);
            list[strcspn(list, "\n")] = 0;
        }
        if (list[0])
            return count_list(list);
        char *slash = strrchr(path, '/');
        if (!slash || (size_t)(slash - path) < top)
            return 0;
        *slash = 0;
    }
}

static int has_word(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (; *list; list += strcspn(list, ","), list += *list == ',')
        if (strncmp(list, word, n) == 0 && (list[n] == ',' || !list[n]))
            return 1;
    return 0;
}

/* Count the cores of the cgroup that a line of /proc/self/cgroup, "id:controllers:path", names. 0:
 * it says nothing of cores. */
static uint64_t cores_of_line(char *line)
{
    char *controllers = strchr(line, ':'), folder[PATH_SIZE];
    char *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path)
        return 0;
    *controllers++ = 0;
    *path++ = 0;
    const int is_v2 = !*controllers;
    if (!is_v2 && !has_word(controllers, "cpuset"))
        return 0;
    const int top = snprintf(folder, sizeof folder, CGROUPS "%s%s", is_v2 ? "" : "/", controllers);
    if (top < 0 || (size_t)top + strlen(path) >= sizeof folder)
        return 0;
    snprintf(folder + top, sizeof folder - (size_t)top, "%s", strcmp(path, "/") == 0 ? "" : path);
    return count_upwards(folder, (size_t)top, is_v2 ? "cpuset.cpus.effective" : "cpuset.cpus");
}

/* Return the number of cores that all processes of this machine have together. */
static uint64_t cores_of_cgroup(void)
{
    char line[PATH_SIZE];
    uint64_t n = 0;
    FILE *stream = fopen("/proc/self/cgroup", "re");
    while (stream && n == 0 && fgets(line, sizeof line, stream)) {
        line[strcspn(line, "\n")] = 0;
        n = cores_of_line(line);
    }
    if (stream)
        fclose(stream);
    if (n)
        return n;
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (uint64_t)online : 1;
}

int bound_cores(uint32_t local_world, int from_parent)
{
    if (local_world < 2)
        return 0;
    const uint64_t own = cores_of(0), all = from_parent ? cores_of(getppid()) : cores_of_cgroup();
    return own && own * local_world <= all;
}
