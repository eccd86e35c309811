/* SPDX-License-Identifier: Apache-2.0 */
/* finish_table: the table of a normalisation, for tests and benchmarks of kernels. */
#ifndef FINISH_TABLE_H
#define FINISH_TABLE_H

#include "pixels/finish.h"

/* Fill a table of channels x 256 elements with (x / 255 - mean) / deviation, with one float for
 * each channel, or with x / 255 if `mean` is NULL. */
static inline void finish_table(void *table, uint32_t dtype, uint32_t channels, const float *mean,
                                const float *deviation)
{
    struct pstk__normalisation normalisation = {.is_set = mean ? 1 : 0};
    for (uint32_t c = 0; c < channels && mean; c++) {
        normalisation.mean[c] = mean[c];
        normalisation.deviation[c] = deviation[c];
    }
    pstk__normalisation_table(table, dtype, channels, &normalisation);
}

#endif
