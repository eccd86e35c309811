/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include "base/hash_kind.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pstk__hash {
    const struct pstk__hash_kind *kind;
    _Alignas(64) uint8_t state[]; /* kind->state_size bytes */
};

static const struct pstk__hash_kind *find_in(const struct pstk__hash_kind *kinds, const char *name)
{
    while (kinds->name && strcmp(kinds->name, name) != 0)
        kinds++;
    return kinds->name ? kinds : NULL;
}

/* Find the kind of that name. NULL: this build does not know it. */
static const struct pstk__hash_kind *find(const char *name)
{
    const struct pstk__hash_kind *kind = find_in(pstk__hash_xx, name);
    return kind ? kind : find_in(pstk__hash_md, name);
}

int pstk__hash_is_known(const char *name)
{
    return find(name) != NULL;
}

struct pstk__hash *pstk__hash_open(const char *name)
{
    const struct pstk__hash_kind *kind = find(name);
    struct pstk__hash *hash = NULL;
    if (!kind ||
        posix_memalign((void **)&hash, 64, (sizeof *hash + kind->state_size + 63) / 64 * 64))
        return NULL;
    hash->kind = kind;
    kind->begin(hash->state);
    return hash;
}

void pstk__hash_add(struct pstk__hash *hash, const void *bytes, size_t size)
{
    hash->kind->add(hash->state, bytes, size);
}

void pstk__hash_get(const struct pstk__hash *hash, char hex[PSTK__HASH_HEX])
{
    uint8_t bytes[(PSTK__HASH_HEX - 1) / 2];
    hash->kind->get(hash->state, bytes);
    for (size_t i = 0; i < hash->kind->size; i++)
        snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
}

void pstk__hash_close(struct pstk__hash *hash)
{
    free(hash);
}
