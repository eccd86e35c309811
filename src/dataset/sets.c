/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/sets.h"

#include "base/error.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define MAX_DIGITS 7

/* Read digits. How many, at most MAX_DIGITS, or 0. */
static int read_digits(const char *at, uint32_t *number)
{
    int n = 0;
    *number = 0;
    for (; isdigit((unsigned char)at[n]); n++) {
        if (n == MAX_DIGITS)
            return 0;
        *number = *number * 10 + (uint32_t)(at[n] - '0');
    }
    return n;
}

int pstk__set_parse(struct pstk__set_name *out, const char *name)
{
    const char *of = NULL, *slash = strrchr(name, '/');
    const char *last = slash ? slash + 1 : name;
    for (const char *at = last; (at = strstr(at, "-of-")); at++)
        of = at;
    if (!of)
        return 0;
    const char *begin = of;
    while (begin > last && isdigit((unsigned char)begin[-1]))
        begin--;
    out->width = read_digits(begin, &out->number);
    const int n = read_digits(of + 4, &out->count);
    out->prefix = (size_t)(begin - name);
    out->end = of + 4 + n;
    return out->width > 0 && begin + out->width == of && n > 0 && begin > last &&
           begin[-1] == '-' && out->number < out->count;
}

/* The set being gone through. */
struct walk {
    char name[PSTK__MAX_SHOWN]; /* of its last shard */
    struct pstk__set_name set;
    int has_set;
    int (*bad)(void *user, const struct pstk_error *bad);
    void *user;
};

static int is_same_set(const struct walk *walk, const char *name, const struct pstk__set_name *set)
{
    return walk->has_set && walk->set.count == set->count && walk->set.prefix == set->prefix &&
           memcmp(walk->name, name, set->prefix) == 0 && strcmp(walk->set.end, set->end) == 0;
}

/* Report the shards first to last of a set as missing, if there are some. */
static int report(struct walk *walk, const char *name, const struct pstk__set_name *set,
                  uint32_t first, uint64_t last)
{
    struct pstk_error bad;
    char shard[PSTK__MAX_SHOWN];
    const int prefix = (int)set->prefix, width = set->width;
    if (first > last)
        return 0;
    pstk_error_init(&bad, sizeof bad);
    const char *of = name + set->prefix + set->width;
    snprintf(shard, sizeof shard, "%.*s%0*u%s", prefix, name, width, first, of);
    if (first == last)
        pstk__fail(&bad, PSTK_ENOENT, PSTK_STAGE_OPEN,
                   "%s is missing: the names of the others count %u shards; copy it again", shard,
                   set->count);
    else
        pstk__fail(&bad, PSTK_ENOENT, PSTK_STAGE_OPEN,
                   "%s and the following, to number %llu, are missing: the names of the others "
                   "count %u shards; copy them again",
                   shard, (unsigned long long)last, set->count);
    pstk__fail_at(&bad, PSTK_ENOENT, shard, PSTK_NONE, PSTK_NONE, 0);
    return walk->bad(walk->user, &bad) ? PSTK_ECANCELED : 0;
}

/* What is missing at the end of the set. */
static int end_set(struct walk *walk)
{
    const int has_set = walk->has_set;
    walk->has_set = 0;
    return has_set ? report(walk, walk->name, &walk->set, walk->set.number + 1,
                            (uint64_t)walk->set.count - 1)
                   : 0;
}

/* Go on to the next file, in the order of names. */
static int next_name(struct walk *walk, const char *name)
{
    struct pstk__set_name set;
    int rc = 0;
    const int is_one = pstk__set_parse(&set, name);
    uint32_t expected = 0;
    if (is_one && is_same_set(walk, name, &set))
        expected = walk->set.number + 1;
    else
        rc = end_set(walk);
    if (rc < 0 || !is_one)
        return rc;
    rc = set.number > expected ? report(walk, name, &set, expected, (uint64_t)set.number - 1) : 0;
    if (strlen(name) >= sizeof walk->name)
        return rc; /* longer than any file's name */
    snprintf(walk->name, sizeof walk->name, "%s", name);
    walk->has_set = pstk__set_parse(&walk->set, walk->name);
    return rc;
}

static int is_choice(const struct pstk__source *source, const char *path)
{
    struct pstk__store_entry entry;
    const int is_folder = source->store->look &&
                          source->store->look(source->store, path, &entry) == 0 &&
                          entry.kind == PSTK__STORE_FOLDER;
    return !is_folder && !strpbrk(path, "*?");
}

int pstk__sets_check(const struct pstk__source *source, const char *path,
                     int (*bad)(void *user, const struct pstk_error *bad), void *user,
                     struct pstk_error *err)
{
    struct walk walk = {.bad = bad, .user = user};
    if (!source->format->index || source->format->has_file_each || is_choice(source, path))
        return 0;
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < source->n_shards; i++) {
        char name[PSTK__MAX_SHOWN];
        rc = next_name(&walk, pstk__source_file_name(source, i, name));
    }
    if (rc == 0)
        rc = end_set(&walk);
    return rc < 0 ? pstk__fail(err, rc, PSTK_STAGE_OPEN, "verify was canceled") : 0;
}
