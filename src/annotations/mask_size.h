/* SPDX-License-Identifier: Apache-2.0 */
/* mask_size: what the sides of a mask may be. */
#ifndef PSTK_MASK_SIZE_H
#define PSTK_MASK_SIZE_H

#include <penstock/types.h>

/* 0, or EINVAL: a side is 0 or above PSTK_MAX_MASK_SIDE. */
int pstk__mask_size_check(uint32_t height, uint32_t width, struct pstk_error *err);

#endif
