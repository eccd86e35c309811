/* SPDX-License-Identifier: Apache-2.0 */
/* Ask the loader of another process, through its status file. */
#include "observe/status_file.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_NS 500000 /* interval between two checks for the answer */
#define WAKE_NS                                                                                    \
    50000000 /* interval at which the thread is woken again: the first wake may have come before   \
                its sleep */

static int open_status_file(const char *path, struct pstk_error *err)
{
    struct stat file;
    const int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return pstk__fail_errno(err, errno, PSTK_STAGE_OPEN, "%s cannot be opened", path);
    int r = 0;
    if (fstat(fd, &file) != 0)
        r = pstk__fail_errno(err, errno, PSTK_STAGE_OPEN, "the attributes of %s cannot be read",
                             path);
    else if (!S_ISREG(file.st_mode))
        r = pstk__fail(err, PSTK_ENODATA, PSTK_STAGE_OPEN, "%s is not a regular file", path);
    else if (file.st_uid != geteuid())
        r = pstk__fail(err, PSTK_EACCES, PSTK_STAGE_OPEN, "%s belongs to another user", path);
    if (r == 0)
        return fd;
    close(fd);
    return r;
}

static int read_head(int fd, const char *path, struct pstk__status_file_head *head,
                     struct pstk_error *err)
{
    const int64_t n = pstk__file_pread(fd, head, sizeof *head, 0);
    if (n < 0)
        return pstk__fail_errno(err, (int)-n, PSTK_STAGE_OPEN, "%s cannot be read", path);
    if (n == 0)
        return pstk__fail(err, PSTK_ENODATA, PSTK_STAGE_OPEN,
                          "%s is empty: a loader is just making it, or it was never a status file",
                          path);
    if (n < 12 || memcmp(head->magic, PSTK__STATUS_FILE_MAGIC, sizeof head->magic) != 0)
        return pstk__fail(err, PSTK_ENODATA, PSTK_STAGE_OPEN,
                          "%s is not the status file of a loader", path);
    if (head->version != PSTK__STATUS_FILE_VERSION)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "%s is a status file of version %u, of another penstock than version %s",
                          path, head->version, pstk_version());
    if (n < (int64_t)sizeof *head || head->crc != pstk__status_file_head_crc(head))
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN, "%s is damaged", path);
    head->path[sizeof head->path - 1] = 0;
    head->process.host[sizeof head->process.host - 1] = 0;
    head->process.boot[sizeof head->process.boot - 1] = 0;
    return 0;
}

/* Read the newest whole answer; its number is 0 when there is none. */
static void read_answer(int fd, struct pstk__status_answer *answer)
{
    if (pstk__file_pread(fd, answer, sizeof *answer, PSTK__STATUS_FILE_ANSWER) !=
            (int64_t)sizeof *answer ||
        answer->crc != pstk__status_answer_crc(answer) ||
        answer->stats_size > sizeof answer->stats || answer->metrics_size > sizeof answer->metrics)
        answer->number = 0;
}

/* Write a question, and wait for a new answer. Returns 1 when it came. */
static int ask(int fd, int64_t timeout_ns, struct pstk__status_answer *answer)
{
    const off_t at = offsetof(struct pstk__status_file_head, question);
    char *page = mmap(NULL, PSTK__STATUS_FILE_SIZE, PROT_READ, MAP_SHARED, fd, 0);
    const uint64_t begin = pstk__clock_ns(), timeout = timeout_ns > 0 ? (uint64_t)timeout_ns : 0;
    uint64_t now = begin, woken = 0;
    int came = 0;
    if (page == MAP_FAILED)
        return 0;
    const uint32_t *futex = (const void *)(page + at);
    /* Two processes that ask at the same time use different numbers, so the thread notices both. */
    const uint32_t question = (uint32_t)getpid() * 2654435761u ^ (uint32_t)(begin >> 10);
    read_answer(fd, answer);
    const uint64_t before = answer->number;
    if (pwrite(fd, &question, sizeof question, at) == (ssize_t)sizeof question)
        for (;;) {
            if (!woken || now - woken > WAKE_NS) {
                pstk__status_file_wake(futex);
                woken = now;
            }
            const struct timespec pause = {.tv_nsec = LOOK_NS};
            nanosleep(&pause, NULL);
            read_answer(fd, answer);
            came = answer->number != 0 && answer->number != before;
            now = pstk__clock_ns();
            if (came || now - begin >= timeout)
                break;
        }
    munmap(page, PSTK__STATUS_FILE_SIZE);
    return came;
}

static uint32_t state_of(const struct pstk__process *process)
{
    switch (pstk__process_state(process)) {
    case PSTK__PROCESS_RUNS:
        return PSTK_STATUS_SILENT;
    case PSTK__PROCESS_ENDED:
        return PSTK_STATUS_ENDED;
    default:
        return PSTK_STATUS_ELSEWHERE;
    }
}

static int is_foreign(const struct pstk__process *process)
{
    struct pstk__process self;
    pstk__process_self(&self);
    return process->pid_namespace != self.pid_namespace || strcmp(process->host, self.host) != 0;
}

/* Copy a struct that begins with its size, as far as both versions have its members. */
static void copy_sized(void *to, const void *from, uint32_t n)
{
    uint32_t size;
    memcpy(&size, to, sizeof size);
    memset(to, 0, size);
    memcpy(to, from, size < n ? size : n);
    memcpy(to, &size, sizeof size);
}

int pstk_status_ask(const char *path, int64_t timeout_ns, struct pstk_status *status,
                    struct pstk_stats *stats, struct pstk_metrics *metrics, struct pstk_error *err)
{
    struct pstk__status_file_head head;
    struct pstk__status_answer answer = {.number = 0};
    if (!path || !path[0] || !status || status->size < sizeof status->size ||
        (stats && stats->size < sizeof stats->size) ||
        (metrics && metrics->size < sizeof metrics->size))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "path is empty, status is NULL, or a size is not set");
    const int fd = open_status_file(path, err);
    if (fd < 0)
        return fd;
    const int r = read_head(fd, path, &head, err);
    if (r < 0) {
        close(fd);
        return r;
    }
    struct pstk_status found = {.size = sizeof found,
                                .state = state_of(&head.process),
                                .pid = head.process.pid,
                                .is_foreign = (uint32_t)is_foreign(&head.process),
                                .rank = head.rank,
                                .world = head.world,
                                .device = head.device,
                                .device_index = head.device_index,
                                .opened_ns = head.opened_ns,
                                .n_samples = head.n_samples};
    memcpy(found.host, head.process.host, sizeof found.host);
    memcpy(found.path, head.path, sizeof found.path);
    if (found.state != PSTK_STATUS_ENDED && ask(fd, timeout_ns, &answer)) {
        found.state = PSTK_STATUS_ANSWERED;
        found.answered_ns = answer.answered_ns;
        found.epoch = answer.epoch;
        found.position = answer.position;
    } else {
        answer.stats_size = answer.metrics_size = 0;
    }
    close(fd);
    copy_sized(status, &found, sizeof found);
    if (stats)
        copy_sized(stats, answer.stats, answer.stats_size);
    if (metrics)
        copy_sized(metrics, answer.metrics, answer.metrics_size);
    return 0;
}
