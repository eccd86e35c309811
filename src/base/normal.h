/* SPDX-License-Identifier: Apache-2.0 */
/* normal: normally distributed numbers of a fixed sequence. Pure. The same bits on every machine.
 */
#ifndef PSTK_NORMAL_H
#define PSTK_NORMAL_H

#include <stdint.h>

/* Return the number below which a standard normal number lies with probability (word + 1/2) / 2^32,
 * within 1e-15. Uniform words give normal numbers of at most 6.3. Wichura, "Algorithm AS 241: the
 * percentage points of the normal distribution", Applied Statistics 37 (3), 1988. */
double pstk__normal(uint32_t word);

#endif
