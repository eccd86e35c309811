/* SPDX-License-Identifier: Apache-2.0 */
/* targets: mixes one-hot vectors as torchvision and timm do, in float32 steps. */
#include "mix/mix.h"

void pstk__mix_targets(float *targets, const struct pstk_mix *mix,
                       const struct pstk_mixed_row *rows, const uint32_t *labels, uint32_t n)
{
    const double off_value = mix->smoothing / mix->n_classes;
    const float off = (float)off_value, on = (float)(1.0 - mix->smoothing + off_value);
    for (uint32_t i = 0; i < n; i++, targets += mix->n_classes) {
        const uint32_t own = labels[i], other = labels[rows[i].partner];
        const float keep = (float)rows[i].lam, take = (float)(1.0 - rows[i].lam);
        const float neither = off * keep + off * take;
        for (uint32_t c = 0; c < mix->n_classes; c++)
            targets[c] = neither;
        targets[other] = off * keep + on * take;
        targets[own] = on * keep + (own == other ? on : off) * take;
    }
}
