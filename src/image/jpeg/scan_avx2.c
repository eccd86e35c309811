/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg/scan_avx2: writes sequential scans with the shifts and bit counts of BMI, which every CPU
 * with AVX2 has. */
#if defined(__x86_64__)

#include "image/jpeg/coder.h"

#define TARGET __attribute__((target("bmi,bmi2,popcnt")))

TARGET int pstk__jpeg_coder_avx2(const struct pstk__jpeg_units *units,
                                 struct pstk__jpeg_coder *coder)
{
    const struct pstk__jpeg_visitor visitor = {pstk__jpeg_coder_block, pstk__jpeg_coder_restart,
                                               coder};
    return pstk__jpeg_visit(units, &visitor);
}

#endif
