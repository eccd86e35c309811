/* SPDX-License-Identifier: Apache-2.0 */
#include "format/tar/suffixes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- lists of the caller's ------------------------------------------------------------------- */

/* Step to the next suffix of a list "jpg;png": return its size, and move *list past it. 0: there
 * are no more. */
static size_t next_of(const char **list, const char **suffix)
{
    *suffix = *list;
    const size_t n = strcspn(*list, ";");
    *list += n + ((*list)[n] == ';');
    return n;
}

/* Return the caller's list that has a suffix, or NULL. */
static const struct pstk_first_of *list_with(const struct pstk_foreign *foreign, const char *suffix)
{
    for (uint32_t i = 0; foreign && i < foreign->n_first_of; i++) {
        const char *list = foreign->first_of[i].suffixes, *one;
        for (size_t n; (n = next_of(&list, &one)) > 0;)
            if (strlen(suffix) == n && memcmp(suffix, one, n) == 0)
                return &foreign->first_of[i];
    }
    return NULL;
}

static const struct pstk_first_of *list_of(const struct pstk_foreign *foreign, const char *name)
{
    for (uint32_t i = 0; foreign && i < foreign->n_first_of; i++)
        if (strcmp(foreign->first_of[i].name, name) == 0)
            return &foreign->first_of[i];
    return NULL;
}

const char *pstk__tar_suffix_name(const struct pstk_foreign *foreign, const char *suffix,
                                  const char **first)
{
    const struct pstk_first_of *list = list_with(foreign, suffix);
    *first = list ? list->suffixes : suffix;
    if (list)
        return list->name;
    return list_of(foreign, suffix) ? NULL : suffix;
}

/* ---- images ---------------------------------------------------------------------------------- */

/* Suffixes of images, in the order of preference for the name of a field. */
static const char *const images[] = {"jpg", "jpeg", "png"};
#define N_IMAGES (sizeof images / sizeof images[0])

/* Return the bytes of a suffix before its last part: "seg." of "seg.png". */
static size_t stem_of(const char *suffix)
{
    const char *dot = strrchr(suffix, '.');
    return dot ? (size_t)(dot + 1 - suffix) : 0;
}

/* Return the number of a suffix's image type, or -1. */
static int image_of(const char *suffix)
{
    for (size_t i = 0; i < N_IMAGES; i++)
        if (strcmp(suffix + stem_of(suffix), images[i]) == 0)
            return (int)i;
    return -1;
}

/* 1: both are suffixes of images that differ only in the last part. */
static int is_same_image(const char *a, const char *b)
{
    const size_t n = stem_of(a);
    return n == stem_of(b) && memcmp(a, b, n) == 0 && image_of(a) >= 0 && image_of(b) >= 0;
}

static int is_named(const struct pstk_foreign *foreign, const char *name)
{
    for (uint32_t i = 0; foreign && i < foreign->n_fields; i++)
        if (strcmp(foreign->fields[i].name, name) == 0)
            return 1;
    return 0;
}

int pstk__tar_wants_key(const struct pstk_foreign *foreign)
{
    return is_named(foreign, PSTK__TAR_KEY) && !list_of(foreign, PSTK__TAR_KEY);
}

/* ---- the table ------------------------------------------------------------------------------- */

int pstk__tar_suffixes_find(const struct pstk__tar_suffixes *suffixes, const char *text)
{
    for (uint32_t i = 0; i < suffixes->n; i++)
        if (strcmp(suffixes->at[i].text, text) == 0)
            return (int)i;
    return -1;
}

static void add(struct pstk__tar_suffixes *suffixes, const char *text, size_t n, uint32_t field,
                uint32_t rule)
{
    struct pstk__tar_suffix *one = &suffixes->at[suffixes->n++];
    snprintf(one->text, sizeof one->text, "%.*s", (int)n, text);
    one->field = (uint8_t)field;
    one->rule = (uint8_t)rule;
    suffixes->n_choices += rule == PSTK__TAR_CHOICE;
}

static void add_list(struct pstk__tar_suffixes *suffixes, const struct pstk_first_of *first_of,
                     uint32_t field)
{
    const char *list = first_of->suffixes, *one;
    for (size_t n; (n = next_of(&list, &one)) > 0;)
        add(suffixes, one, n, field, PSTK__TAR_CHOICE);
}

/* Add the other image types to a field, unless another field has images of its stem. */
static void add_either(struct pstk__tar_suffixes *suffixes,
                       const struct pstk__inferred_schema *found, uint32_t field)
{
    const char *name = found->fields[field].field.name;
    for (uint32_t i = 0; i < found->n_fields; i++)
        if (i != field && is_same_image(found->fields[i].field.name, name))
            return;
    const size_t stem = stem_of(name);
    for (size_t i = 0; i < N_IMAGES; i++) {
        char text[PSTK_MAX_NAME + 8];
        snprintf(text, sizeof text, "%.*s%s", (int)stem, name, images[i]);
        if (strlen(text) < PSTK_MAX_NAME && pstk__tar_suffixes_find(suffixes, text) < 0)
            add(suffixes, text, strlen(text), field, PSTK__TAR_EITHER);
    }
}

void pstk__tar_suffixes_init(struct pstk__tar_suffixes *suffixes,
                             const struct pstk__inferred_schema *found,
                             const struct pstk_foreign *foreign)
{
    suffixes->n = suffixes->n_choices = 0;
    suffixes->at_last = pstk__tar_at_last(foreign);
    suffixes->may_be_last = !foreign || foreign->split_at == PSTK_SPLIT_AUTO;
    suffixes->key = -1;
    for (uint32_t i = 0; i < found->n_fields; i++) {
        const char *name = found->fields[i].field.name;
        const struct pstk_first_of *list = list_of(foreign, name);
        if (pstk__tar_wants_key(foreign) && strcmp(name, PSTK__TAR_KEY) == 0)
            suffixes->key = (int)i;
        else if (list)
            add_list(suffixes, list, i);
        else
            add(suffixes, name, strlen(name), i,
                image_of(name) < 0 ? PSTK__TAR_ONLY : PSTK__TAR_EITHER);
    }
    for (uint32_t i = 0; i < found->n_fields; i++)
        if (image_of(found->fields[i].field.name) >= 0 &&
            !list_of(foreign, found->fields[i].field.name))
            add_either(suffixes, found, i);
}

/* ---- images of either type ------------------------------------------------------------------- */

int pstk__tar_together_open(struct pstk__tar_together *together)
{
    together->n = 0;
    together->buckets = calloc(PSTK__TAR_SEEN, sizeof *together->buckets);
    return together->buckets ? 0 : PSTK_ENOMEM;
}

void pstk__tar_together_close(struct pstk__tar_together *together)
{
    free(together->buckets);
    together->buckets = NULL;
}

void pstk__tar_together_add(struct pstk__tar_together *together, const char *key, uint32_t key_size,
                            uint32_t field)
{
    uint64_t digest[2] = {1, 2};
    pstk__index_digest(digest, key, key_size);
    digest[0] |= (uint64_t)(digest[0] == 0 && digest[1] == 0);
    uint64_t i = digest[0] & (PSTK__TAR_SEEN - 1);
    struct pstk__tar_seen *at = &together->buckets[i];
    while (at->fields && (at->digest[0] != digest[0] || at->digest[1] != digest[1])) {
        i = (i + 1) & (PSTK__TAR_SEEN - 1);
        at = &together->buckets[i];
    }
    if (!at->fields && together->n == PSTK__TAR_SEEN / 2)
        return;
    together->n += !at->fields;
    at->digest[0] = digest[0];
    at->digest[1] = digest[1];
    at->fields |= 1ull << field;
}

static int are_together(const struct pstk__tar_together *together, uint64_t fields)
{
    for (uint32_t i = 0; i < PSTK__TAR_SEEN; i++)
        if (__builtin_popcountll(together->buckets[i].fields & fields) > 1)
            return 1;
    return 0;
}

/* Return the set of fields to join with field `first`: the other image types of its stem. 0: there
 * are none, or one of them is preferred, or the caller names one, or a sample has two of the
 * fields. */
static uint64_t one_with(const struct pstk__tar_together *together,
                         const struct pstk__inferred_schema *found, uint32_t first,
                         const struct pstk_foreign *foreign)
{
    const char *name = found->fields[first].field.name;
    uint64_t fields = 1ull << first;
    if (image_of(name) < 0 || list_of(foreign, name))
        return 0;
    for (uint32_t i = 0; i < found->n_fields; i++) {
        const char *other = found->fields[i].field.name;
        if (i == first || !is_same_image(name, other) || list_of(foreign, other))
            continue;
        if (image_of(other) < image_of(name) || is_named(foreign, other))
            return 0;
        fields |= 1ull << i;
    }
    return are_together(together, fields) ? 0 : fields & ~(1ull << first);
}

void pstk__tar_together_join(const struct pstk__tar_together *together,
                             struct pstk__inferred_schema *found,
                             const struct pstk_foreign *foreign)
{
    uint64_t gone = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < found->n_fields; i++)
        gone |= one_with(together, found, i, foreign);
    for (uint32_t i = 0; i < found->n_fields; i++)
        if (!(gone >> i & 1))
            found->fields[n++] = found->fields[i];
    found->n_fields = n;
}
