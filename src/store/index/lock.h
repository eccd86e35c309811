/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock: lets one of many processes that need an index build it. The builder holds a lock (flock) on
 * a file next to the index, and writes its name and its progress into that file. The kernel drops
 * the lock of a process that dies. The others wait as long as the file changes. A process number
 * would not do: it means nothing on another host or in another container.
 *
 * Nobody waits for another user. Only this user and root can open a file that this user made. If
 * the lock is held, and its file belongs neither to this user nor to the folder's owner, the spot
 * is not used.
 */
#ifndef PSTK_INDEX_LOCK_H
#define PSTK_INDEX_LOCK_H

#include "store/index/spot.h"

#include <penstock/foreign.h>

/* Callbacks of an open, on the caller's thread. Each may be NULL. */
struct pstk__index_watch {
    pstk_progress_fn on_progress;
    pstk_wait_fn on_wait;
    void *user; /* argument of both callbacks */
};

/* Return the callbacks that an open's caller has set; foreign may be NULL. */
static inline struct pstk__index_watch pstk__index_watch_of(const struct pstk_foreign *foreign)
{
    const struct pstk__index_watch nothing = {0};
    return foreign
               ? (struct pstk__index_watch){foreign->on_progress, foreign->on_wait, foreign->user}
               : nothing;
}

struct pstk__index_lock {
    int fd;           /* owned; -1: none */
    int is_locked;    /* 0: the file system has no locks */
    uint64_t next_ns; /* time of the builder's next note; UINT64_MAX: never */
};

/* The index that is waited for, and the caller that waits. */
struct pstk__index_wait {
    const struct pstk__index_location *location;
    const struct pstk__index_spot *spot;
    const struct pstk__index_watch *watch;
    int dir;              /* folder of the spot, borrowed */
    uint64_t patience_ns; /* ns that the builder may make no progress */
};

/* Wait until this process has the lock, or no lock can be had. 0; 1: the spot cannot be written to,
 * see *refusal; ECANCELED: the watch ended it; ETIMEDOUT: the builder has made no progress for
 * patience_ns, or for ten times as long while it finishes; other errors of the system. */
int pstk__index_lock_take(struct pstk__index_lock *lock, const struct pstk__index_wait *wait,
                          struct pstk__index_refusal *refusal, struct pstk_error *err);
/* Report the builder's progress to the processes that wait. An occasional call is enough. */
void pstk__index_lock_note(struct pstk__index_lock *lock, uint64_t n_done, uint64_t n_total);
/* Report that only writing and syncing are left, which may take long without a note. */
void pstk__index_lock_finishes(struct pstk__index_lock *lock);
void pstk__index_lock_release(struct pstk__index_lock *lock);

#endif
