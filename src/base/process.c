/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Read the first `size` - 1 bytes of a small file as a text. 0, or a negative errno. */
static int read_text(const char *path, char *text, uint64_t size)
{
    text[0] = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    const int64_t n = pstk__file_pread(fd, text, size - 1, 0);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    return n < 0 ? (int)n : 0;
}

/* Read the state and the start time of a process of our PID namespace from /proc (proc_pid_stat(5):
 * fields 3 and 22). The name, field 2, is in parentheses and may hold any character. */
static int find_start(const char *pid, char *state, uint64_t *start_ticks)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    const int r = read_text(path, text, sizeof text);
    const char *at = r == 0 ? strrchr(text, ')') : NULL;
    if (!at)
        return r < 0 ? r : -EIO;
    if (sscanf(at, ") %c", state) != 1)
        return -EIO;
    for (int field = 2; field < 22; field++) {
        at = strchr(at + 1, ' ');
        if (!at)
            return -EIO;
    }
    *start_ticks = strtoull(at + 1, NULL, 10);
    return 0;
}

void pstk__process_self(struct pstk__process *self)
{
    struct stat of;
    char state;
    memset(self, 0, sizeof *self);
    self->pid = (uint32_t)getpid();
    if (find_start("self", &state, &self->start_ticks) < 0)
        self->start_ticks = 0;
    if (stat("/proc/self/ns/pid", &of) == 0)
        self->pid_namespace = of.st_ino;
    read_text("/proc/sys/kernel/random/boot_id", self->boot, sizeof self->boot);
    self->boot[strcspn(self->boot, "\n")] = 0;
    if (gethostname(self->host, sizeof self->host) != 0)
        self->host[0] = 0;
    self->host[sizeof self->host - 1] = 0;
}

int pstk__process_state(const struct pstk__process *process)
{
    struct pstk__process self;
    char pid[16], state = 0;
    uint64_t start_ticks = 0;
    pstk__process_self(&self);
    if (strcmp(process->host, self.host) != 0 || !self.start_ticks || !process->start_ticks)
        return PSTK__PROCESS_ELSEWHERE;
    if (strcmp(process->boot, self.boot) != 0)
        return PSTK__PROCESS_ENDED; /* this machine has booted since then */
    if (process->pid_namespace != self.pid_namespace)
        return PSTK__PROCESS_ELSEWHERE;
    snprintf(pid, sizeof pid, "%u", process->pid);
    const int r = find_start(pid, &state, &start_ticks);
    if (r == -ENOENT || r == -ESRCH)
        return PSTK__PROCESS_ENDED;
    if (r < 0)
        return PSTK__PROCESS_ELSEWHERE;
    return start_ticks != process->start_ticks || state == 'Z' || state == 'X' ? PSTK__PROCESS_ENDED
                                                                               : PSTK__PROCESS_RUNS;
}
