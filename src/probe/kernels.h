/* SPDX-License-Identifier: Apache-2.0 */
/* kernels: how long a worker takes for a sample with each kind of kernels. */
#ifndef PSTK_PROBE_KERNELS_H
#define PSTK_PROBE_KERNELS_H

#include <penstock/penstock.h>

/* Write ns[kind], by enum pstk_kernels: the CPU time of a worker for a sample with these kernels.
 * All make the rows of the same samples, taking turns, for `seconds` of this thread's CPU time, and
 * for at most three times as long. 0: this CPU lacks them, or nothing could be measured; all are 0
 * where outputs call functions of the program or have processes. borrows. Called by
 * pstk_measure_ceilings. */
void pstk__measure_kernels(const struct pstk_settings *s, struct pstk_dataset *dataset,
                           double seconds, double ns[PSTK_KERNELS_AVX512 + 1]);

#endif
