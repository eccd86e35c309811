/* SPDX-License-Identifier: Apache-2.0 */
#include "annotations/mask_size.h"

#include <penstock/annotations.h>

#include "base/error.h"

int pstk__mask_size_check(uint32_t height, uint32_t width, struct pstk_error *err)
{
    const int is_height = height == 0 || height > PSTK_MAX_MASK_SIDE;
    if (is_height || width == 0 || width > PSTK_MAX_MASK_SIDE)
        return pstk__fail_setting(err, is_height ? "height" : "width", is_height ? height : width,
                                  "1 to %d pixels", PSTK_MAX_MASK_SIDE);
    return 0;
}
