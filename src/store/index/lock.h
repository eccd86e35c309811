/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock: of many processes that need an index, one builds it. It holds a lock (flock) on a file next
 * to the index, and writes into that file who it is and what it has done. The kernel drops the lock
 * of a process that dies. The others wait as long as the file changes: a process that only shows
 * its number can neither be asked nor be trusted, on another host or in another container.
 *
 * Nobody waits for another user: only this user and root can open a file that this user made, and
 * where another than the folder's owner holds it, the spot is not used.
 */
#ifndef PSTK_INDEX_LOCK_H
#define PSTK_INDEX_LOCK_H

#include "store/index/spot.h"

#include <penstock/foreign.h>

/* What the caller of an open sees, on its thread. Each may be NULL. */
struct pstk__index_watch {
    pstk_progress_fn on_progress;
    pstk_wait_fn on_wait;
    void *user; /* of both */
};

/* As the caller of an open wants it; foreign may be NULL. */
static inline struct pstk__index_watch pstk__index_watch_of(const struct pstk_foreign *foreign)
{
    const struct pstk__index_watch nothing = {0};
    return foreign
               ? (struct pstk__index_watch){foreign->on_progress, foreign->on_wait, foreign->user}
               : nothing;
}

struct pstk__index_lock {
    int fd;           /* owned; -1: none */
    int is_locked;    /* 0: files cannot be locked there */
    uint64_t next_ns; /* when the builder writes the next note; UINT64_MAX: never */
};

/* Who waits, and for what. */
struct pstk__index_wait {
    const struct pstk__index_location *location;
    const struct pstk__index_spot *spot;
    const struct pstk__index_watch *watch;
    int dir;              /* of the spot; borrowed */
    uint64_t patience_ns; /* how long the builder may make no progress */
};

/* Wait until this process has the lock, or cannot have any. 0; 1: the spot is not for writing, see
 * *refusal; ECANCELED: the watch ended it; ETIMEDOUT: the builder has made no progress for
 * patience_ns, and ten times that where it finishes; others of the system. */
int pstk__index_lock_take(struct pstk__index_lock *lock, const struct pstk__index_wait *wait,
                          struct pstk__index_refusal *refusal, struct pstk_error *err);
/* Report to those who wait that the builder has come some way, if by 0. Now and then is enough. */
void pstk__index_lock_note(struct pstk__index_lock *lock, uint64_t n_done, uint64_t n_total);
/* Report that only the end is left, which may take long without a note: writing and syncing. */
void pstk__index_lock_finishes(struct pstk__index_lock *lock);
void pstk__index_lock_release(struct pstk__index_lock *lock);

#endif
