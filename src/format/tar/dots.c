/* SPDX-License-Identifier: Apache-2.0 */
#include "format/tar/dots.h"

#include <string.h>

/* The fields whose suffixes have dots. */
struct dotted {
    uint64_t fields;                /* a set */
    uint64_t same[PSTK_MAX_FIELDS]; /* for each field: the set of fields with its stem, itself
                                       included */
    int are_alike;                  /* 1: two of them have the same end and different stems */
    int are_numbered;               /* 1: each stem has a digit */
};

static size_t stem_of(const char *suffix)
{
    const char *dot = strrchr(suffix, '.');
    return dot ? (size_t)(dot - suffix) : 0;
}

static int is_same_stem(const char *a, const char *b)
{
    return stem_of(a) == stem_of(b) && memcmp(a, b, stem_of(a)) == 0;
}

static void find_dotted(struct dotted *dotted, const struct pstk__inferred_schema *found)
{
    *dotted = (struct dotted){.are_numbered = 1};
    for (uint32_t i = 0; i < found->n_fields; i++) {
        const char *name = found->fields[i].field.name;
        if (!stem_of(name))
            continue;
        dotted->fields |= 1ull << i;
        dotted->are_numbered &= strcspn(name, "0123456789") < stem_of(name);
        for (uint32_t k = 0; k <= i; k++) {
            const char *other = found->fields[k].field.name;
            if (!stem_of(other))
                continue;
            if (is_same_stem(name, other)) {
                dotted->same[i] |= 1ull << k;
                dotted->same[k] |= 1ull << i;
            } else {
                dotted->are_alike |= strcmp(name + stem_of(name), other + stem_of(other)) == 0;
            }
        }
    }
}

int pstk__tar_dots_doubtful(const struct pstk__tar_together *together,
                            const struct pstk__inferred_schema *found)
{
    struct dotted dotted;
    uint64_t n_with[PSTK_MAX_FIELDS] = {0}, n = 0, most = 0;
    int is_some_double = 0;
    find_dotted(&dotted, found);
    if (!dotted.are_alike)
        return 0;
    for (uint32_t i = 0; i < PSTK__TAR_SEEN; i++) {
        const uint64_t fields = together->buckets[i].fields, with_dots = fields & dotted.fields;
        n += fields != 0;
        if (!with_dots)
            continue;
        if (fields != with_dots)
            return 0;
        is_some_double |= (with_dots & ~dotted.same[__builtin_ctzll(with_dots)]) != 0;
        for (uint64_t left = with_dots; left; left &= left - 1) {
            const uint64_t n_now = ++n_with[__builtin_ctzll(left)];
            most = n_now > most ? n_now : most;
        }
    }
    return !is_some_double || (dotted.are_numbered && (n == 1 || 2 * most <= n));
}
