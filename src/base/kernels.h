/* SPDX-License-Identifier: Apache-2.0 */
/* kernels: chooses one ISA of a family of kernels. Each ISA has a table of them, whose first member
 * is its enum pstk_kernels, a uint32_t. */
#ifndef PSTK_BASE_KERNELS_H
#define PSTK_BASE_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/* Return 1 if this CPU runs an ISA: C, the best one, or one below that. NEON is above C alone. */
int pstk__kernels_run(uint32_t isa);
/* Return one of n tables, which are listed from the worst to the best: the table of an ISA (AUTO:
 * of the best that this CPU runs). An ISA without a table gets that of the next lower one. NULL:
 * this CPU does not have the ISA. */
const void *pstk__kernels_choose(const void *const *tables, size_t n, uint32_t isa);

#endif
