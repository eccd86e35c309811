/* SPDX-License-Identifier: Apache-2.0 */
/* The list of compression formats with random access. */
#include "store/unpack/packing.h"

#include <stdio.h>
#include <string.h>

static const struct pstk__packing *const packings[PSTK__N_PACKINGS] = {&pstk__packing_gzip,
                                                                       &pstk__packing_zstd};

const struct pstk__packing *pstk__packing_of(uint32_t number)
{
    return number >= 1 && number <= PSTK__N_PACKINGS ? packings[number - 1] : NULL;
}

uint32_t pstk__packing_find(const uint8_t *head, uint64_t n)
{
    for (uint32_t i = 0; n >= 4 && i < PSTK__N_PACKINGS; i++)
        if (packings[i]->begins(head, n))
            return i + 1;
    return 0;
}

uint32_t pstk__packing_named(const char *name)
{
    const char *dot = strrchr(name, '.');
    for (uint32_t i = 0; dot && i < PSTK__N_PACKINGS; i++) {
        const size_t n = strlen(dot);
        for (const char *at = packings[i]->endings; (at = strstr(at, dot)); at += n)
            if (at[-1] == ' ' && (at[n] == 0 || at[n] == ' '))
                return i + 1;
    }
    return 0;
}
