/* SPDX-License-Identifier: Apache-2.0 */
#include "augment/chains.h"

#include "base/normal.h"

#include <math.h>

/* Draw the logarithm of a gamma distributed number. Marsaglia and Tsang, "A simple method for
 * generating gamma variables", ACM TOMS 26 (3), 2000. For alpha below 1 their note applies: a
 * number for alpha + 1, times a uniform one to the power 1 / alpha. */
static double log_gamma(struct pstk__random *r, double alpha)
{
    const double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3, c = 1 / sqrt(9 * d);
    double v, bound;
    do {
        const double x = pstk__normal(pstk__random_u32(r));
        v = 1 + c * x;
        v = v > 0 ? v * v * v : 0;
        bound = v > 0 ? 0.5 * x * x + d - d * v + d * pstk__log(v) : -1e300;
    } while (!(pstk__log(1 - pstk__random_unit(r)) < bound));
    const double found = pstk__log(d * v);
    return alpha < 1 ? found + pstk__log(1 - pstk__random_unit(r)) / alpha : found;
}

/* Work with logarithms: for a small alpha, most numbers are too small for a double. */
void pstk__chains_weights(struct pstk__random *r, double alpha, uint32_t n, float *weights)
{
    double numbers[PSTK__MAX_CHAINS], most = -1e300, sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        numbers[i] = log_gamma(r, alpha);
        most = numbers[i] > most ? numbers[i] : most;
    }
    for (uint32_t i = 0; i < n; i++) {
        numbers[i] = numbers[i] - most < -50 ? 0 : pstk__exp(numbers[i] - most);
        sum += numbers[i];
    }
    for (uint32_t i = 0; i < n; i++)
        weights[i] = (float)(numbers[i] / sum);
}
