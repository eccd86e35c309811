/* SPDX-License-Identifier: Apache-2.0 */
#include "base/kernels.h"

#include "base/cpu.h"

#include <penstock/penstock.h>

static uint32_t isa_of(const void *table)
{
    const uint32_t *first_member = table;
    return *first_member;
}

int pstk__kernels_run(uint32_t isa)
{
    const uint32_t best = pstk__cpu_kernels();
    return isa == PSTK_KERNELS_C || isa == best ||
           (isa > PSTK_KERNELS_C && isa < best && best != PSTK_KERNELS_NEON);
}

const void *pstk__kernels_choose(const void *const *tables, size_t n, uint32_t isa)
{
    const uint32_t most = isa == PSTK_KERNELS_AUTO ? pstk__cpu_kernels() : isa;
    if (!pstk__kernels_run(most))
        return NULL;
    for (size_t i = n; i-- > 0;)
        if (isa_of(tables[i]) <= most)
            return tables[i];
    return NULL;
}
