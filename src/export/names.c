/* SPDX-License-Identifier: Apache-2.0 */
#include "export/names.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_PARTS 16
#define FIRST_CAPACITY 1024

static int is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Return 1 if the byte at i must be escaped. */
static int is_escaped(const char *text, uint64_t size, uint64_t i)
{
    const uint8_t c = (uint8_t)text[i];
    if (c == '%')
        return i + 2 < size && is_hex(text[i + 1]) && is_hex(text[i + 2]);
    return c < ' ' || c == 0x7f || c == '/';
}

int pstk__name_part(struct pstk__bytes *to, const char *text, uint64_t size)
{
    const uint64_t begin = to->size;
    const int is_dots = (size == 1 && text[0] == '.') || (size == 2 && memcmp(text, "..", 2) == 0);
    if (size == 0 || size > PSTK__NAME_PART)
        return -1;
    for (uint64_t i = 0; i < size; i++)
        if (is_dots || is_escaped(text, size, i))
            pstk__bytes_format(to, "%%%02x", (uint8_t)text[i]);
        else
            pstk__bytes_put(to, text + i, 1);
    if (to->size - begin <= PSTK__NAME_PART)
        return 0;
    to->size = begin;
    return -1;
}

int pstk__name_path(struct pstk__bytes *to, const char *text, uint64_t size)
{
    const uint64_t begin = to->size;
    uint32_t n = 0;
    int r = 0;
    for (uint64_t i = 0; r == 0 && i < size;) {
        const char *slash = memchr(text + i, '/', size - i);
        const uint64_t length = slash ? (uint64_t)(slash - (text + i)) : size - i;
        if (length > 0) {
            pstk__bytes_text(to, n ? "/" : "");
            r = n == MAX_PARTS ? -1 : pstk__name_part(to, text + i, length);
            n++;
        }
        i += length + 1;
    }
    if (r == 0 && n > 0)
        return 0;
    to->size = begin;
    return -1;
}

uint64_t pstk__name_image_suffix(const char *path, uint64_t size)
{
    static const char *const suffixes[] = {".jpg",  ".jpeg", ".jpe",  ".jfif", ".png", ".bmp",
                                           ".webp", ".tif",  ".tiff", ".gif",  ".ppm", ".pgm"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        const uint64_t n = strlen(suffixes[i]);
        if (size > n && path[size - n - 1] != '/' &&
            strncasecmp(path + size - n, suffixes[i], n) == 0)
            return n;
    }
    return 0;
}

/* ---- a set ----------------------------------------------------------------------------------- */

/* Return the slot of a hash, or the free slot where it belongs. */
static uint64_t *slot_of(const struct pstk__name_set *set, uint64_t hash)
{
    uint64_t i = hash % set->capacity;
    while (set->hashes[i] && set->hashes[i] != hash)
        i = (i + 1) % set->capacity;
    return &set->hashes[i];
}

static int grow(struct pstk__name_set *set)
{
    struct pstk__name_set larger = {.n = set->n,
                                    .capacity = set->capacity ? 2 * set->capacity : FIRST_CAPACITY};
    larger.hashes = calloc(larger.capacity, sizeof *larger.hashes);
    if (!larger.hashes)
        return -1;
    for (uint64_t i = 0; i < set->capacity; i++)
        if (set->hashes[i])
            *slot_of(&larger, set->hashes[i]) = set->hashes[i];
    free(set->hashes);
    *set = larger;
    return 0;
}

/* Hash by FNV-1a, 64 bits. */
static uint64_t hash_of(const uint8_t *name, uint64_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (uint64_t i = 0; i < size; i++)
        hash = (hash ^ name[i]) * UINT64_C(0x100000001b3);
    return hash ? hash : 1;
}

int pstk__name_set_add(struct pstk__name_set *set, const void *name, uint64_t size)
{
    if (set->n >= set->capacity / 2 && grow(set) < 0)
        return -1;
    const uint64_t hash = hash_of(name, size);
    uint64_t *slot = slot_of(set, hash);
    if (*slot)
        return 0;
    *slot = hash;
    set->n++;
    return 1;
}

void pstk__name_set_clear(struct pstk__name_set *set)
{
    if (set->hashes)
        memset(set->hashes, 0, set->capacity * sizeof *set->hashes);
    set->n = 0;
}

void pstk__name_set_free(struct pstk__name_set *set)
{
    free(set->hashes);
    *set = (struct pstk__name_set){0};
}
