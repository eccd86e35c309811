/* SPDX-License-Identifier: Apache-2.0 */
/* kernels: how long a worker takes for a sample with each kind of kernels. */
#ifndef PSTK_PROBE_KERNELS_H
#define PSTK_PROBE_KERNELS_H

#include <penstock/penstock.h>

/* Write ns[kind], by enum pstk_kernels: the CPU time of a worker for a sample with these kernels,
 * without the time in which it did not run. All are measured on the same samples, taking turns, for
 * `seconds` in total. 0: this CPU lacks them, or nothing could be measured; all are 0 where outputs
 * call functions of the program or have processes. borrows. Called by pstk_measure_ceilings. */
void pstk__measure_kernels(const struct pstk_settings *s, struct pstk_dataset *dataset,
                           double seconds, double ns[PSTK_KERNELS_AVX512 + 1]);

#endif
