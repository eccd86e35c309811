/* SPDX-License-Identifier: Apache-2.0 */
#include "command/pack_id.h"

#include <inttypes.h>
#include <stdio.h>

struct pack_hash pack_hash_begin(void)
{
    return (struct pack_hash){UINT64_C(0xcbf29ce484222325), UINT64_C(0x2545f4914f6cdd1d)};
}

void pack_hash_add(struct pack_hash *hash, const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    do {
        hash->a = (hash->a ^ *c) * UINT64_C(0x100000001b3);
        hash->b = (hash->b ^ *c) * UINT64_C(0x9e3779b97f4a7c15);
        hash->b ^= hash->b >> 29;
    } while (*c++);
}

void pack_hash_add_number(struct pack_hash *hash, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, number);
    pack_hash_add(hash, text);
}

const char *pack_hash_text(const struct pack_hash *hash, char text[PACK_ID_SIZE + 1])
{
    snprintf(text, PACK_ID_SIZE + 1, "%016llx%016llx", (unsigned long long)hash->a,
             (unsigned long long)hash->b);
    return text;
}

const char *pack_id_of(const struct tree *tree, const char *note, char text[PACK_ID_SIZE + 1])
{
    struct pack_hash hash = pack_hash_begin();
    pack_hash_add(&hash, note);
    for (uint64_t i = 0; i < tree->info.n_classes; i++)
        pack_hash_add(&hash, tree->classes[i]);
    for (uint64_t i = 0; i < tree->n_files; i++) {
        uint32_t number;
        const char *path = tree_path(tree, i, &number);
        pack_hash_add_number(&hash, number);
        pack_hash_add(&hash, path);
    }
    return pack_hash_text(&hash, text);
}
