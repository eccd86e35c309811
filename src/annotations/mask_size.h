/* SPDX-License-Identifier: Apache-2.0 */
/* mask_size: checks the sides of a mask. */
#ifndef PSTK_MASK_SIZE_H
#define PSTK_MASK_SIZE_H

#include <penstock/types.h>

/* Return 0, or EINVAL if a side is 0 or above PSTK_MAX_MASK_SIDE. */
int pstk__mask_size_check(uint32_t height, uint32_t width, struct pstk_error *err);

#endif
