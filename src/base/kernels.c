/* SPDX-License-Identifier: Apache-2.0 */
#include "base/kernels.h"

#include "base/cpu.h"

#include <penstock/penstock.h>

static uint32_t isa_of(const void *table)
{
    const uint32_t *first_member = table;
    return *first_member;
}

const void *pstk__kernels_choose(const void *const *tables, size_t n, uint32_t isa)
{
    const uint32_t best = pstk__cpu_kernels();
    const uint32_t most = isa == PSTK_KERNELS_AUTO ? best : isa;
    if (most > best)
        return NULL;
    for (size_t i = n; i-- > 0;)
        if (isa_of(tables[i]) <= most)
            return tables[i];
    return NULL;
}
