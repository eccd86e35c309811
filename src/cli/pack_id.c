/* SPDX-License-Identifier: Apache-2.0 */
#include "pack_id.h"

#include <stdio.h>

/* Two hashes of 64 bits: FNV-1a (Fowler, Noll, Vo), and the same with another multiplier, start and
 * a shift, so that a collision of one is none of the other. They find mistakes, not attacks. */
struct hash {
    uint64_t a, b;
};

/* Add a text with its terminating 0, which parts it from the next. */
static void add(struct hash *hash, const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    do {
        hash->a = (hash->a ^ *c) * UINT64_C(0x100000001b3);
        hash->b = (hash->b ^ *c) * UINT64_C(0x9e3779b97f4a7c15);
        hash->b ^= hash->b >> 29;
    } while (*c++);
}

const char *pack_id_of(const struct tree *tree, const char *note, char text[PACK_ID_SIZE + 1])
{
    struct hash hash = {UINT64_C(0xcbf29ce484222325), UINT64_C(0x2545f4914f6cdd1d)};
    char number[24];
    add(&hash, note);
    for (uint64_t i = 0; i < tree->n_classes; i++)
        add(&hash, tree->classes[i]);
    for (uint64_t i = 0; i < tree->n_files; i++) {
        snprintf(number, sizeof number, "%u", (unsigned)tree->files[i].cls);
        add(&hash, number);
        add(&hash, tree->files[i].path);
    }
    snprintf(text, PACK_ID_SIZE + 1, "%016llx%016llx", (unsigned long long)hash.a,
             (unsigned long long)hash.b);
    return text;
}
