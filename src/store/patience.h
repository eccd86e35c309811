/* SPDX-License-Identifier: Apache-2.0 */
/* patience: how long a file that another process or thread makes is waited for. */
#ifndef PSTK_PATIENCE_H
#define PSTK_PATIENCE_H

#include "base/clock.h"

#define PSTK__PATIENCE_NS UINT64_C(60000000000) /* without progress; less is a pause of a disk */
#define PSTK__PATIENCE_SLOW 10                  /* times that, where progress is not seen */
#define PSTK__PATIENCE_LOOK_NS 100000000        /* between two looks */
#define PSTK__PATIENCE_PAUSE_NS UINT64_C(1000000000) /* counts at most between two looks */

/* What was waited for without progress. Zeros: nothing was seen yet. */
struct pstk__patience {
    uint64_t looked_ns; /* time of the last look, or 0 */
    uint64_t idle_ns;
};

/* Look once more. Counts little of a long time between two looks: this process was stopped, and may
 * have been stopped together with the one that makes the file. Returns idle_ns. */
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
