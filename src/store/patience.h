/* SPDX-License-Identifier: Apache-2.0 */
/* patience: how long to wait for a file that another process or thread makes. */
#ifndef PSTK_PATIENCE_H
#define PSTK_PATIENCE_H

#include "base/clock.h"

#define PSTK__PATIENCE_NS                                                                          \
    UINT64_C(60000000000)      /* time without progress; shorter waits may be a pause of the disk */
#define PSTK__PATIENCE_SLOW 10 /* factor for stages whose progress is not visible */
#define PSTK__PATIENCE_LOOK_NS 100000000 /* ns between two checks */
#define PSTK__PATIENCE_PAUSE_NS                                                                    \
    UINT64_C(1000000000) /* max ns of idle time counted between two checks */

/* State of a wait. All zeros: no check was made yet. */
struct pstk__patience {
    uint64_t looked_ns; /* time of the last check, or 0: none yet */
    uint64_t idle_ns;
};

/* Check again, and return idle_ns. An interval longer than PSTK__PATIENCE_PAUSE_NS counts as that
 * much: this process was stopped then, perhaps together with the maker of the file. */
static inline uint64_t pstk__patience_look(struct pstk__patience *patience, int has_moved)
{
    const uint64_t now = pstk__clock_ns();
    const uint64_t since = patience->looked_ns ? now - patience->looked_ns : 0;
    patience->looked_ns = now;
    patience->idle_ns += since < PSTK__PATIENCE_PAUSE_NS ? since : PSTK__PATIENCE_PAUSE_NS;
    if (has_moved)
        patience->idle_ns = 0;
    return patience->idle_ns;
}

#endif
