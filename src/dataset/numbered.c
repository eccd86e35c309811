/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/numbered.h"

#include "base/error.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DIGITS 7

/* Read digits. Returns their number, at most MAX_DIGITS, or 0. */
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

int pstk__numbered_parse(struct pstk__numbered_name *out, const char *name)
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

/* The numbered names among a data set's files. */
struct names {
    struct name *names; /* owned */
    uint64_t n;
    int (*bad)(void *user, const struct pstk_error *bad);
    void *user;
};

struct name {
    char *text; /* owned; set.end lies in it */
    struct pstk__numbered_name set;
};

/* Compare the sets of two names by prefix, end and count. 0: one set. */
static int compare_sets(const struct name *a, const struct name *b)
{
    const size_t shorter = a->set.prefix < b->set.prefix ? a->set.prefix : b->set.prefix;
    int order = memcmp(a->text, b->text, shorter);
    if (order == 0)
        order = (a->set.prefix > b->set.prefix) - (a->set.prefix < b->set.prefix);
    if (order == 0)
        order = strcmp(a->set.end, b->set.end);
    return order ? order : (a->set.count > b->set.count) - (a->set.count < b->set.count);
}

/* Compare two names by set, then by number. The order of the texts differs if numbers lack leading
 * zeros. */
static int compare_names(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    const int order = compare_sets(x, y);
    return order ? order : (x->set.number > y->set.number) - (x->set.number < y->set.number);
}

/* Add a name if it is numbered. Returns 0 or ENOMEM. */
static int add_name(struct names *names, const char *text)
{
    struct name *name = &names->names[names->n];
    if (!pstk__numbered_parse(&name->set, text))
        return 0;
    name->text = strdup(text);
    if (!name->text)
        return PSTK_ENOMEM;
    pstk__numbered_parse(&name->set, name->text);
    names->n++;
    return 0;
}

/* Report the shards first to last of a set as missing; none if first > last. of: an existing name
 * of the set. width: minimum digits of a number. */
static int report(const struct names *names, const struct name *of, int width, uint64_t first,
                  uint64_t last)
{
    const struct pstk__numbered_name *set = &of->set;
    struct pstk_error bad;
    char shard[PSTK__MAX_SHOWN];
    if (first > last)
        return 0;
    pstk_error_init(&bad, sizeof bad);
    snprintf(shard, sizeof shard, "%.*s%0*llu%s", (int)set->prefix, of->text, width,
             (unsigned long long)first, of->text + set->prefix + set->width);
    if (first == last)
        pstk__fail(&bad, PSTK_ENOENT, PSTK_STAGE_OPEN,
                   "%s is missing: the names of the other files state %u shards; copy it again",
                   shard, set->count);
    else
        pstk__fail(&bad, PSTK_ENOENT, PSTK_STAGE_OPEN,
                   "%s and the following, to number %llu, are missing: the names of the other "
                   "files state %u shards; copy them again",
                   shard, (unsigned long long)last, set->count);
    pstk__fail_at(&bad, PSTK_ENOENT, shard, PSTK_NONE, PSTK_NONE, 0);
    return names->bad(names->user, &bad) ? PSTK_ECANCELED : 0;
}

/* Report the shards that a set lacks. Its sorted names are first to end - 1. */
static int report_set(const struct names *names, uint64_t first, uint64_t end)
{
    uint64_t expected = 0;
    int width = names->names[first].set.width, rc = 0;
    for (uint64_t i = first; i < end; i++)
        width = names->names[i].set.width < width ? names->names[i].set.width : width;
    for (uint64_t i = first; rc == 0 && i < end; i++) {
        const struct name *name = &names->names[i];
        if (name->set.number > expected)
            rc = report(names, name, width, expected, (uint64_t)name->set.number - 1);
        expected = (uint64_t)name->set.number + 1;
    }
    const struct name *last = &names->names[end - 1];
    return rc < 0 ? rc : report(names, last, width, expected, (uint64_t)last->set.count - 1);
}

static int report_all(struct names *names)
{
    int rc = 0;
    qsort(names->names, names->n, sizeof *names->names, compare_names);
    for (uint64_t first = 0, end; rc == 0 && first < names->n; first = end) {
        for (end = first + 1; end < names->n; end++)
            if (compare_sets(&names->names[first], &names->names[end]) != 0)
                break;
        rc = report_set(names, first, end);
    }
    return rc;
}

/* Return 1 if the path names files one by one: the caller has chosen them. */
static int is_choice(const struct pstk__source *source, const char *path)
{
    struct pstk__store_entry entry;
    const int is_folder = source->store->look &&
                          source->store->look(source->store, path, &entry) == 0 &&
                          entry.kind == PSTK__STORE_FOLDER;
    return !is_folder && !strpbrk(path, "*?");
}

int pstk__numbered_check(const struct pstk__source *source, const char *path,
                         int (*bad)(void *user, const struct pstk_error *bad), void *user,
                         struct pstk_error *err)
{
    if (!source->format->index || source->format->has_file_each || is_choice(source, path) ||
        source->n_shards == 0)
        return 0;
    struct names names = {
        .names = calloc(source->n_shards, sizeof *names.names), .bad = bad, .user = user};
    int rc = names.names ? 0 : PSTK_ENOMEM;
    for (uint32_t i = 0; rc == 0 && i < source->n_shards; i++) {
        char name[PSTK__MAX_SHOWN];
        rc = add_name(&names, pstk__source_file_name(source, i, name));
    }
    if (rc == 0)
        rc = report_all(&names);
    for (uint64_t i = 0; i < names.n; i++)
        free(names.names[i].text);
    free(names.names);
    if (rc == PSTK_ENOMEM)
        return pstk__fail(err, rc, PSTK_STAGE_OPEN, "no memory for the names of %llu files",
                          (unsigned long long)source->n_shards);
    return rc < 0 ? pstk__fail(err, rc, PSTK_STAGE_OPEN, "verify was canceled") : 0;
}
