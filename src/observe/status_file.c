/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/status_file.h"

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The thread wakes by itself now and then, to end when its file is gone. After the file was cut
 * nobody can wake the thread, not even close. */
#define SLEEP_NS 5000000000

struct pstk__status_file {
    struct pstk__status_file_config config; /* path and data_set are not kept */
    char *path;                             /* owned */
    int fd;
    uint32_t *futex;  /* head.question, in a read-only mapping of the file, owned; passed to the
                         futex call, never read */
    struct stat file; /* identifies the file later */
    pthread_t thread;
    int running;        /* 1: the thread was started and not joined */
    _Atomic int ending; /* relaxed, because the question's new number wakes the thread */
    struct pstk__status_answer answer;
};

uint32_t pstk__status_file_head_crc(const struct pstk__status_file_head *head)
{
    const size_t first = offsetof(struct pstk__status_file_head, rank);
    return pstk__crc32c(0, (const char *)head + first, sizeof *head - first);
}

uint32_t pstk__status_answer_crc(const struct pstk__status_answer *answer)
{
    const size_t first = offsetof(struct pstk__status_answer, reserved);
    /* The checksum covers the number. So an answer that is half overwritten by the next one is
     * refused, even if only the number has changed. */
    return pstk__crc32c(pstk__crc32c(0, &answer->number, sizeof answer->number),
                        (const char *)answer + first, sizeof *answer - first);
}

int pstk__status_file_wait(const uint32_t *futex, uint32_t question, int64_t timeout_ns)
{
    const struct timespec time = {.tv_sec = timeout_ns / 1000000000,
                                  .tv_nsec = timeout_ns % 1000000000};
    return syscall(SYS_futex, (uintptr_t)futex, FUTEX_WAIT, question, &time, NULL, 0) < 0 ? -errno
                                                                                          : 0;
}

void pstk__status_file_wake(const uint32_t *futex)
{
    syscall(SYS_futex, (uintptr_t)futex, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static uint64_t realtime_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Write the next answer. Returns 0, or a negative errno. */
static int answer(struct pstk__status_file *status)
{
    struct pstk__status_answer *answer = &status->answer;
    struct pstk_stats stats = {.size = sizeof stats};
    struct pstk_metrics metrics = {.size = sizeof metrics};
    status->config.measure(status->config.user, &stats, &metrics, &answer->epoch,
                           &answer->position);
    memcpy(answer->stats, &stats, sizeof stats);
    memcpy(answer->metrics, &metrics, sizeof metrics);
    answer->stats_size = sizeof stats;
    answer->metrics_size = sizeof metrics;
    answer->answered_ns = realtime_ns();
    answer->number++;
    answer->crc = pstk__status_answer_crc(answer);
    const ssize_t n = pwrite(status->fd, answer, sizeof *answer, PSTK__STATUS_FILE_ANSWER);
    return n == (ssize_t)sizeof *answer ? 0 : n < 0 ? -errno : -EIO;
}

/* Return 1 when the file no longer has a path. */
static int is_gone(const struct pstk__status_file *status)
{
    struct stat now;
    return fstat(status->fd, &now) != 0 || now.st_nlink == 0;
}

/* Answer each question until close, or until the file is cut or deleted. */
static void *serve(void *argument)
{
    struct pstk__status_file *status = argument;
    const uint64_t at = offsetof(struct pstk__status_file_head, question);
    uint32_t question = 0, answered = 0;
    pthread_setname_np(pthread_self(), "pstk-status");
    while (pstk__file_pread(status->fd, &question, sizeof question, at) == sizeof question) {
        if (atomic_load_explicit(&status->ending, memory_order_relaxed))
            break;
        if (question != answered && answer(status) < 0)
            break;
        answered = question;
        const int r = pstk__status_file_wait(status->futex, question, SLEEP_NS);
        if (r == -ETIMEDOUT ? is_gone(status) : r < 0 && r != -EAGAIN && r != -EINTR)
            break; /* the file was cut (EFAULT), or this machine lacks such futexes */
    }
    return NULL;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Copy the end of a path; begin with "..." when the start is cut off. */
static void copy_end(char *to, size_t size, const char *path)
{
    const size_t n = strlen(path);
    if (n < size)
        memcpy(to, path, n + 1);
    else
        snprintf(to, size, "...%s", path + n - (size - 4));
}

static int write_head(const struct pstk__status_file *status,
                      const struct pstk__status_file_config *config)
{
    unsigned char page[PSTK__STATUS_FILE_SIZE] = {0};
    struct pstk__status_file_head head = {.magic = PSTK__STATUS_FILE_MAGIC,
                                          .version = PSTK__STATUS_FILE_VERSION,
                                          .rank = config->rank,
                                          .world = config->world,
                                          .device = config->device,
                                          .device_index = config->device_index,
                                          .opened_ns = realtime_ns(),
                                          .n_samples = config->n_samples};
    pstk__process_self(&head.process);
    copy_end(head.path, sizeof head.path, config->data_set);
    head.crc = pstk__status_file_head_crc(&head);
    memcpy(page, &head, sizeof head);
    const ssize_t n = pwrite(status->fd, page, sizeof page, 0);
    return n == (ssize_t)sizeof page ? 0 : n < 0 ? -errno : -ENOSPC;
}

/* Return 1 when `path` is a status file, even an unfinished one, that a new one may replace. */
static int may_replace(const char *path)
{
    struct pstk__status_file_head head = {.version = 0};
    const int fd = pstk__file_open(path);
    if (fd < 0)
        return 0;
    const int64_t n = pstk__file_pread(fd, &head, sizeof head, 0);
    close(fd);
    return n == 0 || (n > (int64_t)sizeof head.magic &&
                      memcmp(head.magic, PSTK__STATUS_FILE_MAGIC, sizeof head.magic) == 0);
}

static int create(struct pstk__status_file *status, struct pstk_error *err)
{
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    status->fd = open(status->path, flags, 0600);
    if (status->fd < 0 && errno == EEXIST) {
        if (!may_replace(status->path))
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                              "monitor_path: %s is not the status file of a loader; must be a path "
                              "without a file",
                              status->path);
        unlink(status->path);
        status->fd = open(status->path, flags, 0600);
    }
    if (status->fd < 0)
        return pstk__fail_errno(err, errno, PSTK_STAGE_OPEN, "monitor_path: %s cannot be made",
                                status->path);
    return 0;
}

/* Write the file and map it. Returns 0, or a negative errno. */
static int fill(struct pstk__status_file *status, const struct pstk__status_file_config *config)
{
    if (fstat(status->fd, &status->file) != 0)
        return -errno;
    char *whole =
        realpath(status->path, NULL); /* close may run after the working directory has changed */
    if (whole) {
        free(status->path);
        status->path = whole;
    }
    const int r = write_head(status, config);
    if (r < 0)
        return r;
    void *page = mmap(NULL, PSTK__STATUS_FILE_SIZE, PROT_READ, MAP_SHARED, status->fd, 0);
    if (page == MAP_FAILED)
        return -errno;
    status->futex = (void *)((char *)page + offsetof(struct pstk__status_file_head, question));
    return 0;
}

/* Start the thread, with all signals blocked, because signals belong to the program. Returns 0, or
 * a negative errno. */
static int start(struct pstk__status_file *status)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int native = pthread_create(&status->thread, NULL, serve, status);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    status->running = native == 0;
    return -native;
}

int pstk__status_file_open(struct pstk__status_file **out,
                           const struct pstk__status_file_config *config, struct pstk_error *err)
{
    struct pstk__status_file *status = calloc(1, sizeof *status);
    *out = NULL;
    if (status)
        status->path = strdup(config->path);
    if (!status || !status->path) {
        free(status);
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for monitor_path");
    }
    status->config = *config;
    status->config.path = status->config.data_set = NULL;
    int r = create(status, err);
    if (r == 0) {
        int native = fill(status, config);
        if (native == 0)
            native = start(status);
        if (native < 0)
            r = pstk__fail_errno(err, -native, PSTK_STAGE_OPEN, "monitor_path: %s cannot be used%s",
                                 config->path, pstk__file_write_advice(-native));
    }
    if (r < 0) {
        pstk__status_file_close(status);
        return r;
    }
    *out = status;
    return 0;
}

/* End the thread. A new number without a question wakes it. If that cannot be written (the file was
 * cut, and the disk is full), the thread wakes by itself. */
static void stop(struct pstk__status_file *status)
{
    const uint64_t at = offsetof(struct pstk__status_file_head, question);
    uint32_t question = 0;
    atomic_store_explicit(&status->ending, 1, memory_order_relaxed);
    /* This reads nothing from a file that was cut. */
    pstk__file_pread(status->fd, &question, sizeof question, at);
    question++;
    if (pwrite(status->fd, &question, sizeof question, (off_t)at) == (ssize_t)sizeof question)
        pstk__status_file_wake(status->futex);
    pthread_join(status->thread, NULL);
}

void pstk__status_file_close(struct pstk__status_file *status)
{
    if (!status)
        return;
    if (status->running)
        stop(status);
    if (status->futex)
        munmap((char *)(void *)status->futex - offsetof(struct pstk__status_file_head, question),
               PSTK__STATUS_FILE_SIZE);
    if (status->fd >= 0) {
        if (status->file.st_ino != 0 && pstk__file_is_at(AT_FDCWD, status->path, &status->file))
            unlink(status->path);
        close(status->fd);
    }
    free(status->path);
    free(status);
}
