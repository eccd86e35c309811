/* SPDX-License-Identifier: Apache-2.0 */
#include "mix/beta.h"

#include "base/sine.h"

#define TWO_PI 0x1.921fb54442d18p2

/*
 * T^2 / (2 alpha) is (1 / e - 1) c^2, where e = u^(1 / alpha) and c is a cosine. Its smaller side,
 * 1/2 - |T| / (2 sqrt(2 alpha + T^2)), is w / (2 (1 + sqrt(1 - w))) with w = e / (e + (1 - e) c^2):
 * no step overflows or cancels, however small e is.
 */
double pstk__beta(struct pstk__random *random, double alpha)
{
    const double u = 1.0 - pstk__random_unit(random); /* above 0 */
    const double c = pstk__cos(TWO_PI * pstk__random_unit(random));
    const uint32_t is_upper = pstk__random_u32(random) & 1;
    const double e = pstk__exp(pstk__log(u) / alpha);
    const double rest = (1.0 - e) * c * c;
    const double w = e > 0 ? e / (e + rest) : 0;
    const double smaller = w / (2 * (1 + __builtin_sqrt(1 - w)));
    return is_upper ? 1 - smaller : smaller;
}
