/* SPDX-License-Identifier: Apache-2.0 */
#include "store/index/lock.h"

#include "base/error.h"
#include "base/file.h"
#include "base/little.h"
#include "store/patience.h"
#include "store/sidecar.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ANNOUNCE_NS 1000000000 /* ns of a wait before it is announced */
#define MISPLACED                                                                                  \
    5 /* locks taken of files that have lost their names, before going on without one */
#define HOLDER_SIZE 128 /* bytes of the text that names the holder, with its 0 */

/* Layout of the lock's file: work done, work in total, name of the holder. */
enum { DONE = 0, TOTAL = 8, HOLDER = 16, FILE_SIZE = HOLDER + HOLDER_SIZE };

/* The builder, described by the file of its lock. Compared byte by byte. */
struct look {
    uint64_t n_done, n_total;
    uint64_t inode;
    int64_t changed_ns;
    char holder[HOLDER_SIZE];
};

/* ---- the holder ------------------------------------------------------------------------------ */

/* Remove the holder's name. A failure does no harm: the next holder writes its own name. */
static int clear(int fd)
{
    return ftruncate(fd, 0);
}

static void write_holder(int fd)
{
    uint8_t bytes[FILE_SIZE] = {0};
    char host[65] = "";
    if (gethostname(host, sizeof host - 1) < 0 || !host[0])
        snprintf(host, sizeof host, "unknown");
    snprintf((char *)bytes + HOLDER, HOLDER_SIZE, "process %ld on host %s", (long)getpid(), host);
    /* A failure is ignored: the name is advice for the processes that wait. */
    if (pstk__file_pwrite(fd, bytes, sizeof bytes, 0) != 0)
        clear(fd);
}

void pstk__index_lock_note(struct pstk__index_lock *lock, uint64_t n_done, uint64_t n_total)
{
    const uint64_t now = pstk__clock_ns();
    uint8_t words[HOLDER];
    if (lock->fd < 0 || now < lock->next_ns)
        return;
    pstk__put64(words + DONE, n_done);
    pstk__put64(words + TOTAL, n_total);
    lock->next_ns = pstk__file_pwrite(lock->fd, words, sizeof words, 0)
                        ? UINT64_MAX
                        : now + PSTK__PATIENCE_LOOK_NS;
}

void pstk__index_lock_finishes(struct pstk__index_lock *lock)
{
    lock->next_ns = 0;
    pstk__index_lock_note(lock, UINT64_MAX, UINT64_MAX);
}

static int is_finishing(const struct look *look)
{
    return look->n_total == UINT64_MAX;
}

/* Copy the holder's name, up to the first byte that is not printable ASCII: another process wrote
 * it. */
static void read_holder(char to[HOLDER_SIZE], const uint8_t *bytes)
{
    size_t n = 0;
    for (; n < HOLDER_SIZE - 1 && bytes[n] >= ' ' && bytes[n] <= '~'; n++)
        to[n] = (char)bytes[n];
    if (n == 0)
        snprintf(to, HOLDER_SIZE, "another process");
}

static void look_at_builder(int fd, const struct stat *st, struct look *look)
{
    uint8_t bytes[FILE_SIZE] = {0};
    memset(look, 0, sizeof *look);
    if (pstk__file_pread(fd, bytes, sizeof bytes, 0) < 0)
        memset(bytes, 0, sizeof bytes);
    look->n_done = pstk__get64(bytes + DONE);
    look->n_total = pstk__get64(bytes + TOTAL);
    look->inode = (uint64_t)st->st_ino;
    look->changed_ns = pstk__file_changed_ns(st);
    read_holder(look->holder, bytes + HOLDER);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* A wait, from its first check on. */
struct waiting {
    const struct pstk__index_wait *for_what;
    uint64_t begin_ns;
    struct pstk__patience patience;
    int is_announced;
    struct look seen;
};

static int fail_idle(const struct waiting *waiting, struct pstk_error *err)
{
    const struct pstk__index_wait *wait = waiting->for_what;
    return pstk__fail(
        err, PSTK_ETIMEDOUT, PSTK_STAGE_OPEN,
        "the %s of %.400s: %s is building it, but has made no progress for %" PRIu64
        " s; continue or end that process, and open the data set again (lock: %.600s)",
        pstk__index_what(wait->location), wait->location->data, waiting->seen.holder,
        waiting->patience.idle_ns / 1000000000, wait->spot->lock);
}

static void announce(struct waiting *waiting)
{
    const struct pstk__index_wait *wait = waiting->for_what;
    char text[1400];
    if (waiting->is_announced || !wait->watch->on_wait ||
        waiting->patience.looked_ns - waiting->begin_ns < ANNOUNCE_NS)
        return;
    waiting->is_announced = 1;
    snprintf(text, sizeof text,
             "%s is building the %s of %.400s; this process waits for it (lock: %.600s)",
             waiting->seen.holder, pstk__index_what(wait->location), wait->location->data,
             wait->spot->lock);
    wait->watch->on_wait(wait->watch->user, text);
}

/* Check the builder, and sleep a little. 0: try again; <0. */
static int wait_a_little(struct waiting *waiting, const struct look *look, struct pstk_error *err)
{
    const struct pstk__index_wait *wait = waiting->for_what;
    const struct pstk__index_watch *watch = wait->watch;
    const uint64_t idle_ns =
        pstk__patience_look(&waiting->patience, memcmp(&waiting->seen, look, sizeof *look) != 0);
    if (!waiting->begin_ns)
        waiting->begin_ns = waiting->patience.looked_ns;
    waiting->seen = *look;
    announce(waiting);
    if (watch->on_progress && watch->on_progress(watch->user, is_finishing(look) ? 0 : look->n_done,
                                                 is_finishing(look) ? 0 : look->n_total))
        return pstk__fail(err, PSTK_ECANCELED, PSTK_STAGE_OPEN,
                          "waiting for the %s %s was canceled", pstk__index_what(wait->location),
                          wait->spot->index);
    if (idle_ns >= wait->patience_ns * (is_finishing(look) ? PSTK__PATIENCE_SLOW : 1))
        return fail_idle(waiting, err);
    nanosleep(&(struct timespec){.tv_nsec = PSTK__PATIENCE_LOOK_NS}, NULL);
    return 0;
}

/* ---- taking it ------------------------------------------------------------------------------- */

/* Open the lock's file, and make it if it is missing. Its owner may be anybody, so only a file
 * without other names is used. Returns the descriptor, or -1. */
static int open_file(const struct pstk__index_wait *wait, struct stat *st,
                     struct pstk__index_refusal *refusal)
{
    int fd;
    do
        fd = openat(wait->dir, pstk__sidecar_name(wait->spot->lock),
                    O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return errno == ELOOP ? pstk__index_refuse(refusal, EACCES, "its lock is a link")
                              : pstk__index_refuse(refusal, errno, NULL);
    if (fstat(fd, st) < 0 || !S_ISREG(st->st_mode) || st->st_nlink > 1) {
        close(fd);
        return pstk__index_refuse(refusal, EACCES,
                                  "its lock is not a regular file, or has a second name");
    }
    return fd;
}

/* Let only this user open the file in place: whoever can open it can lock it. A file that cannot be
 * changed stays open to others. */
static void close_to_others(int fd)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && st.st_nlink == 1 && st.st_uid == geteuid() &&
        (st.st_mode & 0777) != 0600)
        (void)fchmod(fd, 0600);
}

/* 1: the file is this user's. If a file system shows all files as another user's, it shows the
 * folder so too, and pstk__index_spot_open has accepted that folder. */
static int is_ours(const struct pstk__index_wait *wait, const struct stat *st)
{
    struct stat folder;
    return st->st_uid == geteuid() ||
           (fstat(wait->dir, &folder) == 0 && folder.st_uid == st->st_uid);
}

/* Try to lock. 0: locked, or the file system has no locks; a positive errno: not locked. */
static int try_lock(struct pstk__index_lock *lock)
{
    int r;
    while ((r = flock(lock->fd, LOCK_EX | LOCK_NB)) < 0 && errno == EINTR)
        ;
    lock->is_locked = r == 0;
    return r == 0 || errno == ENOSYS || errno == EOPNOTSUPP || errno == ENOLCK ? 0 : errno;
}

int pstk__index_lock_take(struct pstk__index_lock *lock, const struct pstk__index_wait *wait,
                          struct pstk__index_refusal *refusal, struct pstk_error *err)
{
    struct waiting waiting = {.for_what = wait};
    int n_misplaced =
        0;     /* file systems without stable inode numbers make each file look misplaced */
    for (;;) { /* open anew each time: only then NFS shows the time of the builder's last write */
        struct stat st;
        struct look look;
        *lock = (struct pstk__index_lock){.fd = open_file(wait, &st, refusal)};
        if (lock->fd < 0)
            return 1;
        const int native = try_lock(lock);
        const int is_misplaced =
            native == 0 && lock->is_locked &&
            !pstk__file_is_at(wait->dir, pstk__sidecar_name(wait->spot->lock), &st);
        if (is_misplaced && ++n_misplaced == MISPLACED)
            lock->is_locked = 0;
        if (native == 0 && !(is_misplaced && lock->is_locked)) {
            if (lock->is_locked)
                close_to_others(lock->fd);
            write_holder(lock->fd);
            return 0;
        }
        look_at_builder(lock->fd, &st, &look);
        close(lock->fd);
        lock->fd = -1;
        if (native == EWOULDBLOCK && !is_ours(wait, &st)) {
            pstk__index_refuse(refusal, EACCES, "another user has its lock");
            return 1;
        }
        if (native && native != EWOULDBLOCK)
            return pstk__fail_errno(err, native, PSTK_STAGE_OPEN, "cannot lock %s",
                                    wait->spot->lock);
        const int r = wait_a_little(&waiting, &look, err);
        if (r < 0)
            return r;
    }
}

void pstk__index_lock_release(struct pstk__index_lock *lock)
{
    if (lock->fd < 0)
        return;
    if (lock->is_locked)
        clear(lock->fd);
    flock(lock->fd, LOCK_UN); /* a child that was forked meanwhile shares the lock */
    close(lock->fd);
    lock->fd = -1;
}
