/* SPDX-License-Identifier: Apache-2.0 */
#include "format/table/classes.h"

#include "base/random.h"

#include <penstock/types.h>

#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 256

static uint64_t hash_of(const char *name, uint64_t size)
{
    uint64_t hash = size;
    for (uint64_t i = 0; i < size; i++)
        hash = hash * 0x100000001b3u + (uint8_t)name[i];
    return pstk__mix64(hash);
}

/* Return the slot of a name, or the free one for it. A free slot must exist. */
static uint64_t slot_of(const struct pstk__table_classes *classes, const char *name, uint64_t size)
{
    uint64_t slot = hash_of(name, size) & (classes->n_slots - 1);
    for (; classes->slots[slot]; slot = (slot + 1) & (classes->n_slots - 1)) {
        const char *other = pstk__texts_get(&classes->names, classes->slots[slot] - 1);
        if (strncmp(other, name, size) == 0 && other[size] == 0)
            break;
    }
    return slot;
}

static int make_slots(struct pstk__table_classes *classes, uint64_t n)
{
    uint32_t *slots = calloc(n, sizeof *slots);
    if (!slots)
        return PSTK_ENOMEM;
    free(classes->slots);
    classes->slots = slots;
    classes->n_slots = n;
    for (uint64_t i = 0; i < classes->names.n; i++) {
        const char *name = pstk__texts_get(&classes->names, i);
        classes->slots[slot_of(classes, name, strlen(name))] = (uint32_t)i + 1;
    }
    return 0;
}

/* Make room for one more name of `size` bytes. */
static int grow(struct pstk__table_classes *classes, uint64_t size)
{
    struct pstk__texts *names = &classes->names;
    if (names->n < names->max_n && size + 1 < names->max_bytes - names->size)
        return 0;
    struct pstk__texts more = {0};
    if (pstk__texts_open(&more, 2 * names->max_n + 64, 2 * names->max_bytes + 64 * (size + 1)) < 0)
        return PSTK_ENOMEM;
    for (uint64_t i = 0; i < names->n; i++) {
        const char *name = pstk__texts_get(names, i);
        pstk__texts_add(&more, name, strlen(name));
    }
    pstk__texts_close(names);
    *names = more;
    return 0;
}

int pstk__table_classes_add(struct pstk__table_classes *classes, const char *name, uint64_t size)
{
    if (2 * (classes->names.n + 1) >= classes->n_slots) {
        const uint64_t n = classes->n_slots ? 2 * classes->n_slots : FIRST_SLOTS;
        if (make_slots(classes, n) < 0)
            return PSTK_ENOMEM;
    }
    const uint64_t slot = slot_of(classes, name, size);
    if (classes->slots[slot])
        return 0;
    if (classes->names.n == PSTK__TABLE_MAX_CLASSES)
        return PSTK_EFBIG;
    if (grow(classes, size) < 0)
        return PSTK_ENOMEM;
    pstk__texts_add(&classes->names, name, size);
    classes->slots[slot] = (uint32_t)classes->names.n;
    return 0;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int pstk__table_classes_sort(struct pstk__table_classes *classes)
{
    struct pstk__texts sorted = {0};
    const uint64_t n = classes->names.n;
    const char **names = calloc(n ? n : 1, sizeof *names);
    if (!names || pstk__texts_open(&sorted, n, classes->names.size) < 0) {
        free(names);
        return PSTK_ENOMEM;
    }
    for (uint64_t i = 0; i < n; i++)
        names[i] = pstk__texts_get(&classes->names, i);
    qsort(names, n, sizeof *names, compare);
    for (uint64_t i = 0; i < n; i++)
        pstk__texts_add(&sorted, names[i], strlen(names[i]));
    free(names);
    pstk__texts_close(&classes->names);
    classes->names = sorted;
    return n ? make_slots(classes, classes->n_slots) : 0;
}

uint64_t pstk__table_classes_find(const struct pstk__table_classes *classes, const char *name,
                                  uint64_t size)
{
    const uint32_t number = classes->n_slots ? classes->slots[slot_of(classes, name, size)] : 0;
    return number ? number - 1 : classes->names.n;
}

void pstk__table_classes_close(struct pstk__table_classes *classes)
{
    pstk__texts_close(&classes->names);
    free(classes->slots);
    *classes = (struct pstk__table_classes){0};
}
