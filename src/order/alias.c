/* SPDX-License-Identifier: Apache-2.0 */
#include "order/alias.h"

#include "base/random.h"

#include <assert.h>

/* The `data_set` of these draws; neither samples nor batches use it. */
#define WEIGHED_DRAWS (UINT32_MAX - 4)
#define OTHER_DRAWS (UINT32_MAX - 5)

uint32_t pstk__alias_bits(uint64_t n)
{
    const uint32_t n_bits = n > 1 ? 64 - (uint32_t)__builtin_clzll(n - 1) : 0;
    return 62 - n_bits < 53 ? 62 - n_bits : 53;
}

/* Each index has a column of height `total`, and n * weight to fill columns with. An index with too
 * little fills the rest of its column from an index with too much. `work` holds both kinds: those
 * with too little (poor) from its start, those with enough (rich) from its end. */
void pstk__alias_init(struct pstk__alias *alias, uint64_t n, uint64_t *weights, uint32_t *others,
                      uint32_t *work)
{
    assert(n > 0 && n <= PSTK__ALIAS_MAX);
    uint64_t total = 0, n_poor = 0, n_rich = 0;
    for (uint64_t i = 0; i < n; i++)
        total += weights[i];
    assert(total > 0);
    for (uint64_t i = 0; i < n; i++) {
        weights[i] *= n;
        others[i] = (uint32_t)i;
        if (weights[i] < total)
            work[n_poor++] = (uint32_t)i;
        else
            work[n - ++n_rich] = (uint32_t)i;
    }
    while (n_poor > 0 && n_rich > 0) {
        const uint32_t poor = work[--n_poor], rich = work[n - n_rich];
        others[poor] = rich;
        weights[rich] -= total - weights[poor];
        if (weights[rich] < total) {
            n_rich--;
            work[n_poor++] = rich;
        }
    }
    /* Sums are exact: once no index is rich, none is poor, and those left have just enough. */
    assert(n_poor == 0);
    *alias = (struct pstk__alias){.n = n, .total = total, .shares = weights, .others = others};
}

static uint64_t draw(const struct pstk__alias *alias, const struct pstk__random_key *key)
{
    struct pstk__random random;
    pstk__random_init(&random, key);
    const uint64_t i = pstk__random_below(&random, alias->n);
    return pstk__random_below(&random, alias->total) < alias->shares[i] ? i : alias->others[i];
}

uint64_t pstk__alias_at(const struct pstk__alias *alias, uint64_t seed, uint64_t epoch, uint64_t k)
{
    return draw(alias,
                &(struct pstk__random_key){
                    .seed = seed, .epoch = epoch, .sample_id = k, .data_set = WEIGHED_DRAWS});
}

uint64_t pstk__alias_other(const struct pstk__alias *alias, uint64_t id, uint32_t attempt)
{
    return draw(
        alias, &(struct pstk__random_key){.sample_id = id, .data_set = OTHER_DRAWS, .op = attempt});
}
