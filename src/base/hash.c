/* SPDX-License-Identifier: Apache-2.0 */
/* The header of xxHash has all of its code, so nothing is linked. */
#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum kind { XX32, XX64, XX3_64, XX3_128 };

static const struct {
    const char *name;
    enum kind kind;
} known[] = {{"xxh32", XX32},
             {"xxh64", XX64},
             {"xxh3_64", XX3_64},
             {"xxh3_128", XX3_128},
             {"xxh128", XX3_128}};

struct pstk__hash {
    union {
        XXH32_state_t xx32;
        XXH64_state_t xx64;
        XXH3_state_t xx3;
    } state; /* first: it may have to be aligned */
    enum kind kind;
};

/* Its place in the list, or -1. */
static int find(const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].name, name) == 0)
            return (int)i;
    return -1;
}

int pstk__hash_is_known(const char *name)
{
    return find(name) >= 0;
}

struct pstk__hash *pstk__hash_open(const char *name)
{
    const int i = find(name);
    struct pstk__hash *hash = NULL;
    if (i < 0 || posix_memalign((void **)&hash, 64, (sizeof *hash + 63) / 64 * 64))
        return NULL;
    hash->kind = known[i].kind;
    if (hash->kind == XX32)
        XXH32_reset(&hash->state.xx32, 0);
    else if (hash->kind == XX64)
        XXH64_reset(&hash->state.xx64, 0);
    else if (hash->kind == XX3_64)
        XXH3_64bits_reset(&hash->state.xx3);
    else
        XXH3_128bits_reset(&hash->state.xx3);
    return hash;
}

void pstk__hash_add(struct pstk__hash *hash, const void *bytes, size_t size)
{
    if (hash->kind == XX32)
        XXH32_update(&hash->state.xx32, bytes, size);
    else if (hash->kind == XX64)
        XXH64_update(&hash->state.xx64, bytes, size);
    else if (hash->kind == XX3_64)
        XXH3_64bits_update(&hash->state.xx3, bytes, size);
    else
        XXH3_128bits_update(&hash->state.xx3, bytes, size);
}

void pstk__hash_get(const struct pstk__hash *hash, char hex[PSTK__HASH_HEX])
{
    if (hash->kind == XX3_128) {
        const XXH128_hash_t both = XXH3_128bits_digest(&hash->state.xx3);
        snprintf(hex, PSTK__HASH_HEX, "%016" PRIx64 "%016" PRIx64, (uint64_t)both.high64,
                 (uint64_t)both.low64);
    } else if (hash->kind == XX32) {
        snprintf(hex, PSTK__HASH_HEX, "%08" PRIx32, (uint32_t)XXH32_digest(&hash->state.xx32));
    } else {
        const uint64_t one = hash->kind == XX64 ? XXH64_digest(&hash->state.xx64)
                                                : XXH3_64bits_digest(&hash->state.xx3);
        snprintf(hex, PSTK__HASH_HEX, "%016" PRIx64, one);
    }
}

void pstk__hash_close(struct pstk__hash *hash)
{
    free(hash);
}
