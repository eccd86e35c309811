/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handback: a lane's reader waits until other threads hand slots, I/O memory or tasks back to it.
 * There is no lock, and workers notify the reader only when it may be about to wait.
 *
 *   reader, one thread                        workers of the lane, any number
 *   begin: takes a ticket of the eventcount         put memory and task back where the reader finds
 * them looks at all pools, does what it can      given: looks at `wanted`; notifies when it is 1
 *   end: found nothing? sets `wanted` ...
 *   begin, look again, end: nothing again?
 *   wait: until a notification after the ticket
 *
 * Slots come back rarely: whoever frees one notifies the eventcount each time and leaves `wanted`
 * alone. Memory and tasks come back with every task, and the reader seldom waits: hence `wanted`.
 *
 * Why no hand-back is missed. The reader sets `wanted` (end) and workers look at it (given) by
 * read-modify-writes, which have one order with all that is written to it. Given releases, end
 * acquires. The reader waits only after a round that it began once it had set `wanted`, and
 * withdraws it, by a relaxed store, only after a round that got something done. So wishes and
 * withdrawals take turns in that order, and a given has one of two places:
 *   - between a wish and its withdrawal, or after the last wish: it reads 1 and notifies. If the
 *     ticket of a later round is newer than the notification, that round sees what was handed back
 *     (begin acquires what notify released). If it is older, wait returns at once, or is woken.
 *   - before the first wish, or between a withdrawal and the next wish: only givens lie between it
 *     and that wish, and so end reads from it or from one that follows it: the round that begins
 *     then sees what was handed back.
 * Both read-modify-writes are needed: with a plain store in end or a plain load in given, both
 * sides may miss each other.
 *
 * Closing notifies the eventcount after it has set what the reader looks at after begin.
 */
#ifndef PSTK_HANDBACK_H
#define PSTK_HANDBACK_H

#include "base/eventcount.h"

struct pstk__handback {
    struct pstk__eventcount eventcount; /* notified by closing, by whoever frees a slot, and by
                                           workers while wanted is 1 */
    _Atomic uint32_t wanted;            /* 1: the reader may be about to wait */

    /* the reader thread's own */
    uint32_t ticket; /* eventcount's, for the round under way */
    int is_armed;    /* 1: wanted was 1 before the round under way began */
};

void pstk__handback_init(struct pstk__handback *handback);
/* Reader: begin a round, before looking at any pool. */
void pstk__handback_begin(struct pstk__handback *handback);
/* Reader: end a round. progress: it got something done. Returns 1 if the reader may wait, 0 if the
 * next round comes first. */
int pstk__handback_end(struct pstk__handback *handback, int progress);
/* Reader, after an end that gave 1: wait until something may have been handed back. */
void pstk__handback_wait(struct pstk__handback *handback);
/* Worker of the lane, holding no lock: report that memory and a task are back in their pools. */
void pstk__handback_given(struct pstk__handback *handback);

#endif
