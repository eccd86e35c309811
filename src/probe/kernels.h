/* SPDX-License-Identifier: Apache-2.0 */
/* kernels: measures the time a worker takes for a sample with each ISA of the kernels. */
#ifndef PSTK_PROBE_KERNELS_H
#define PSTK_PROBE_KERNELS_H

#include <penstock/penstock.h>

/* Write ns[kind], by enum pstk_kernels: a worker's CPU time for a sample with these kernels. The
 * kinds take turns on the same samples, for `seconds` of this thread's CPU time, and for at most
 * three times as long. 0: this CPU lacks the kind, or nothing could be measured. All are 0 if
 * outputs call functions of the program or have processes. Borrows its arguments. Called by
 * pstk_measure_ceilings. */
void pstk__measure_kernels(const struct pstk_settings *s, struct pstk_dataset *dataset,
                           double seconds, double ns[PSTK_KERNELS_NEON + 1]);

#endif
