/* SPDX-License-Identifier: Apache-2.0 */
#include "process/worker_process.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LARGEST_PAGE 65536ull
#define LOWEST_FILE 16 /* above the descriptors with which a process begins */
#define ALIGN(size) (((size) + 63) & ~(uint64_t)63)

/* ---- memory ---------------------------------------------------------------------------------- */

/* Move a file to a descriptor with which no process begins. */
static int file_up(int file)
{
    const int up = file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, LOWEST_FILE);
    const int error = errno;
    if (file >= 0)
        close(file);
    return up < 0 ? -error : up;
}

/* Write all bytes. Returns 0 or a negative errno. */
static int write_all(int file, const uint8_t *bytes, uint64_t size)
{
    for (uint64_t n = 0; bytes && n < size;) {
        const ssize_t written = pwrite(file, bytes + n, size - n, (off_t)n);
        if (written < 0 && errno != EINTR)
            return -errno;
        n += written > 0 ? (uint64_t)written : 0;
    }
    return 0;
}

int pstk__process_file(const char *name, const void *bytes, uint64_t size)
{
    const int file = file_up(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (file < 0)
        return file;
    int rc = ftruncate(file, (off_t)size) == 0 ? 0 : -errno;
    if (rc == 0)
        rc = write_all(file, bytes, size);
    if (rc == 0 &&
        fcntl(file, F_ADD_SEALS,
              F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | (bytes ? F_SEAL_WRITE : 0)) < 0)
        rc = -errno;
    if (rc == 0)
        return file;
    close(file);
    return rc;
}

static uint64_t pages_of(uint64_t size)
{
    return size == 0 ? LARGEST_PAGE : (size + LARGEST_PAGE - 1) & ~(LARGEST_PAGE - 1);
}

static uint8_t *data_end(const struct pstk__worker_process *process)
{
    return process->base + LARGEST_PAGE + process->data_pages;
}

static uint8_t *row_end(const struct pstk__worker_process *process)
{
    return data_end(process) + LARGEST_PAGE + process->row_pages;
}

/* Map a part of the memory in place of reserved pages. */
static int map_part(const struct pstk__worker_process *process, uint8_t *end, uint64_t size,
                    uint64_t offset)
{
    const void *at = mmap(end - size, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                          process->memory, (off_t)offset);
    return at == MAP_FAILED ? -errno : 0;
}

int pstk__worker_process_open(struct pstk__worker_process *process, uint64_t data_size,
                              uint64_t row_size)
{
    *process = (struct pstk__worker_process){.data_pages = pages_of(data_size),
                                             .row_pages = pages_of(row_size),
                                             .memory = -1,
                                             .socket = -1,
                                             .end = -1};
    process->mapped = process->data_pages + process->row_pages + 3 * LARGEST_PAGE;
    process->memory =
        pstk__process_file("penstock-process", NULL, process->data_pages + process->row_pages);
    if (process->memory < 0)
        return process->memory;
    void *base =
        mmap(NULL, process->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return -errno;
    process->base = base;
    const int rc = map_part(process, data_end(process), process->data_pages, 0);
    return rc < 0 ? rc
                  : map_part(process, row_end(process), process->row_pages, process->data_pages);
}

void pstk__worker_process_close(struct pstk__worker_process *process)
{
    char text[128];
    pstk__worker_process_end(process, 0, text);
    if (process->base)
        munmap(process->base, process->mapped);
    if (process->memory >= 0)
        close(process->memory);
    *process = (struct pstk__worker_process){.memory = -1, .socket = -1, .end = -1};
}

/* ---- the process ----------------------------------------------------------------------------- */

/* Set the files of the process: no input, then the files of enum pstk_process_file. */
static int set_files(posix_spawn_file_actions_t *actions, int socket, int memory, int job)
{
    int rc = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(actions, socket, PSTK_PROCESS_SOCKET);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(actions, memory, PSTK_PROCESS_MEMORY);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(actions, job, PSTK_PROCESS_JOB);
    return -rc;
}

/* Block SIGINT and nothing else in the process: the calling thread may block all signals. */
static int set_signals(posix_spawnattr_t *attributes)
{
    sigset_t blocked, defaults;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    int rc = posix_spawnattr_setsigmask(attributes, &blocked);
    if (rc == 0)
        rc = posix_spawnattr_setsigdefault(attributes, &defaults);
    if (rc == 0)
        rc = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    return -rc;
}

static int spawn(struct pstk__worker_process *process, const struct pstk__process_program *program,
                 int socket)
{
    static char *const nothing[] = {NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int rc = -posix_spawn_file_actions_init(&actions);
    if (rc < 0)
        return rc;
    rc = -posix_spawnattr_init(&attributes);
    if (rc == 0) {
        rc = set_files(&actions, socket, process->memory, program->job);
        if (rc == 0)
            rc = set_signals(&attributes);
        if (rc == 0)
            rc = -posix_spawn(&process->pid, program->arguments[0], &actions, &attributes,
                              program->arguments,
                              program->environment ? program->environment : nothing);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    process->pid = rc == 0 ? process->pid : 0;
    return rc;
}

int pstk__worker_process_start(struct pstk__worker_process *process,
                               const struct pstk__process_program *program)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    const int ours = file_up(ends[0]), theirs = file_up(ends[1]);
    int rc = ours < 0 ? ours : theirs < 0 ? theirs : spawn(process, program, theirs);
    if (theirs >= 0)
        close(theirs);
    process->is_ready = 0;
    process->start_ns = pstk__clock_ns();
    if (rc == 0) {
        process->socket = ours;
        process->end = file_up((int)syscall(SYS_pidfd_open, process->pid, 0));
    } else if (ours >= 0) {
        close(ours);
    }
    return rc;
}

static const char *signal_name(int number)
{
    static const struct {
        int number;
        const char *name;
    } names[] = {{SIGSEGV, "SIGSEGV"},
                 {SIGBUS, "SIGBUS"},
                 {SIGABRT, "SIGABRT"},
                 {SIGILL, "SIGILL"},
                 {SIGFPE, "SIGFPE"},
                 {SIGTERM, "SIGTERM"},
                 {SIGKILL, "SIGKILL, as the system does when memory is short"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].number == number)
            return names[i].name;
    return "see kill -l";
}

/* Wait until the process has a status, at most timeout_ms: its files close before that. */
static void wait_end(const struct pstk__worker_process *process, int timeout_ms)
{
    struct pollfd file = {.fd = process->end, .events = POLLIN};
    if (process->end >= 0 && timeout_ms > 0)
        poll(&file, 1, timeout_ms);
}

/* Get the status of the process, and kill it if it has none yet. Returns 1 if this call killed it.
 */
static int take_status(struct pstk__worker_process *process, pid_t *found, int *status)
{
    *found = waitpid(process->pid, status, WNOHANG);
    if (*found != 0 || kill(process->pid, SIGKILL) < 0)
        return 0;
    do
        *found = waitpid(process->pid, status, 0);
    while (*found < 0 && errno == EINTR);
    return *found > 0 && WIFSIGNALED(*status) && WTERMSIG(*status) == SIGKILL;
}

/* If other code has waited for the process, its number may already be another process's: then it is
 * not killed. */
void pstk__worker_process_end(struct pstk__worker_process *process, int timeout_ms, char text[128])
{
    int status = 0;
    pid_t found;
    snprintf(text, 128, "has ended");
    if (process->socket >= 0)
        close(process->socket);
    process->socket = -1;
    process->is_ready = 0;
    if (process->pid == 0)
        return;
    wait_end(process, timeout_ms);
    const int is_ours = take_status(process, &found, &status);
    if (process->end >= 0)
        close(process->end);
    process->end = -1;
    process->pid = 0;
    if (is_ours)
        snprintf(text, 128, "closed its socket, and was killed");
    else if (found > 0 && WIFSIGNALED(status))
        snprintf(text, 128, "was killed by signal %d (%s)", WTERMSIG(status),
                 signal_name(WTERMSIG(status)));
    else if (found > 0 && WIFEXITED(status))
        snprintf(text, 128, "ended with exit status %d", WEXITSTATUS(status));
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Return 1 if the socket can be read. */
static int has_answer(const struct pstk__worker_process *process)
{
    struct pollfd file = {.fd = process->socket, .events = POLLIN};
    return poll(&file, 1, 0) > 0;
}

/* Wait until the socket can be read or has ended, or until the process has ended: its children may
 * keep the socket open. end_ns 0: no limit. */
static enum pstk__worker_process_result wait_answer(const struct pstk__worker_process *process,
                                                    int wake, uint64_t end_ns)
{
    struct pollfd files[] = {{.fd = process->socket, .events = POLLIN},
                             {.fd = wake, .events = POLLIN},
                             {.fd = process->end, .events = POLLIN}};
    for (;;) {
        const uint64_t now = end_ns ? pstk__clock_ns() : 0;
        if (end_ns && now >= end_ns)
            return has_answer(process) ? PSTK__WORKER_PROCESS_DONE : PSTK__WORKER_PROCESS_LATE;
        const struct timespec left = {.tv_sec = (time_t)((end_ns - now) / 1000000000u),
                                      .tv_nsec = (long)((end_ns - now) % 1000000000u)};
        const int n = ppoll(files, 3, end_ns ? &left : NULL, NULL);
        if (n < 0 && errno != EINTR)
            return PSTK__WORKER_PROCESS_GONE;
        if (n > 0 && (files[0].revents || has_answer(process)))
            return PSTK__WORKER_PROCESS_DONE;
        if (n > 0)
            return files[1].revents ? PSTK__WORKER_PROCESS_CANCELED : PSTK__WORKER_PROCESS_GONE;
    }
}

/* Receive an answer that has arrived. */
static enum pstk__worker_process_result receive(struct pstk__worker_process *process)
{
    struct pstk_answer *answer = &process->answer;
    ssize_t size;
    do
        size = recv(process->socket, answer, sizeof *answer - 1, 0);
    while (size < 0 && errno == EINTR);
    if (size < (ssize_t)sizeof answer->result)
        return PSTK__WORKER_PROCESS_GONE;
    ((char *)answer)[size] = 0;
    return answer->result == 0 ? PSTK__WORKER_PROCESS_DONE : PSTK__WORKER_PROCESS_REFUSED;
}

enum pstk__worker_process_result pstk__worker_process_ready(struct pstk__worker_process *process,
                                                            uint64_t timeout_ns, int wake)
{
    if (process->is_ready)
        return PSTK__WORKER_PROCESS_DONE;
    const uint64_t end_ns = timeout_ns ? process->start_ns + timeout_ns : 0;
    enum pstk__worker_process_result result = wait_answer(process, wake, end_ns);
    if (result == PSTK__WORKER_PROCESS_DONE)
        result = receive(process);
    process->is_ready = result == PSTK__WORKER_PROCESS_DONE;
    return result;
}

enum pstk__worker_process_result pstk__worker_process_ask(struct pstk__worker_process *process,
                                                          struct pstk_request *request,
                                                          const void *data, void *row,
                                                          uint64_t timeout_ns, int wake, int *sent)
{
    const uint64_t end_ns = timeout_ns ? pstk__clock_ns() + timeout_ns : 0;
    request->size = sizeof *request;
    request->row_pages = process->data_pages;
    request->row_offset = process->data_pages + process->row_pages - ALIGN(request->row_size);
    request->data_offset = process->data_pages - ALIGN(request->data_size);
    if (request->data_size > 0)
        memcpy(data_end(process) - ALIGN(request->data_size), data, request->data_size);
    *sent = send(process->socket, request, sizeof *request, MSG_NOSIGNAL) == sizeof *request;
    if (!*sent)
        return PSTK__WORKER_PROCESS_GONE;
    enum pstk__worker_process_result result = wait_answer(process, wake, end_ns);
    if (result == PSTK__WORKER_PROCESS_DONE)
        result = receive(process);
    if (result == PSTK__WORKER_PROCESS_DONE)
        memcpy(row, row_end(process) - ALIGN(request->row_size), request->row_size);
    return result;
}
