/* SPDX-License-Identifier: Apache-2.0 */
#include "format/left_out.h"

#include "format/listing.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a deep tree that has nothing to do with the data set, so much is looked at: some ms. */
#define MAX_FOLDERS 64
#define MAX_NAMES 65536 /* in all folders together */
#define SHOWN_PATH 150  /* bytes of a path in the sentence */
#define SHOWN 80        /* bytes of a name in it */

/* Files that are left out for one reason. */
struct group {
    uint64_t n;
    int is_part;              /* 1: there may be more, which were not looked for */
    char first[NAME_MAX + 1]; /* by its bytes; "": none */
};

struct look {
    const struct pstk__format *format;
    char *folders[MAX_FOLDERS]; /* owned */
    uint32_t n_folders;
    uint64_t n_names;                  /* seen below */
    uint64_t n_read;                   /* at the top, with names that are read first */
    struct group cased, other, nested; /* nested: of one folder */
};

static void add(struct group *group, const char *name)
{
    group->n++;
    if (!group->first[0] || strcmp(name, group->first) < 0)
        snprintf(group->first, sizeof group->first, "%s", name);
}

static int is_other(const struct pstk__format *format, const char *name)
{
    return format->other_names && pstk__listing_is_wanted(format->other_names, name, 0);
}

/* 1: the name is a folder's, among those that were seen. */
static int is_folder(const struct look *look, const char *name)
{
    uint32_t i = 0;
    while (i < look->n_folders && strcmp(look->folders[i], name) != 0)
        i++;
    return i < look->n_folders;
}

/* A pstk__store_name_fn: a name at the top. The folders there were seen before. */
static int see_top(void *user, const char *name)
{
    struct look *look = user;
    if (name[0] == '.')
        return 0;
    if (pstk__listing_is_wanted(look->format->names, name, 0))
        look->n_read++;
    else if (pstk__listing_is_wanted(look->format->names, name, 1) && !is_folder(look, name))
        add(&look->cased, name);
    else if (is_other(look->format, name) && !is_folder(look, name))
        add(&look->other, name);
    return 0;
}

/* A pstk__store_name_fn: a name in a folder below. */
static int see_nested(void *user, const char *name)
{
    struct look *look = user;
    if (++look->n_names > MAX_NAMES)
        return 1;
    if (name[0] != '.' &&
        (pstk__listing_is_wanted(look->format->names, name, 0) || is_other(look->format, name)))
        add(&look->nested, name);
    return 0;
}

/* A pstk__store_name_fn: the name of a folder below. */
static int see_folder(void *user, const char *name)
{
    struct look *look = user;
    look->folders[look->n_folders] = strdup(name);
    look->n_folders += look->folders[look->n_folders] != NULL;
    return look->n_folders == MAX_FOLDERS;
}

static int join(char to[PATH_MAX], const char *path, const char *name)
{
    const size_t n = strlen(path);
    const int r = snprintf(to, PATH_MAX, "%s%s%s", path, n && path[n - 1] == '/' ? "" : "/", name);
    return r > 0 && r < PATH_MAX;
}

/* 1: a regular file or a folder of that kind lies below a path. */
static int lies_in(const struct pstk__store *store, const char *path, const char *name,
                   uint32_t kind)
{
    struct pstk__store_entry entry;
    char file[PATH_MAX];
    return join(file, path, name) && store->look(store, file, &entry) == 0 && entry.kind == kind;
}

/* 1: the format opens what lies below a path. */
static int is_of(const struct pstk__format *format, const struct pstk__store *store,
                 const char *path, const char *name)
{
    char below[PATH_MAX];
    return join(below, path, name) && format->probe(store, below, NULL) > 0;
}

/* ---- the sentence ---------------------------------------------------------------------------- */

/* Append "N files WHERE PATH are left out, the first NAME: WHY". below: the folder of the first, or
 * "". */
static void say(struct pstk__source *source, const struct group *group, const char *below,
                const char *where, const char *path, const char *why)
{
    const size_t used = strlen(source->left_out);
    const int is_one = group->n == 1;
    source->n_left_out += group->n;
    snprintf(source->left_out + used, sizeof source->left_out - used,
             "%s%s%llu file%s %s %.*s %s left out, %s%.*s%s%.*s: %s", used ? "; " : "",
             group->is_part ? "at least " : "", (unsigned long long)group->n, is_one ? "" : "s",
             where, SHOWN_PATH, path, is_one ? "is" : "are", is_one ? "" : "the first ", SHOWN,
             below, below[0] ? "/" : "", SHOWN, group->first, why);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Count the files in the folders below. */
static void find_nested(struct look *look, struct pstk__source *source,
                        const struct pstk__store *store, const char *path)
{
    char below[PATH_MAX];
    struct group all = {0};
    const char *first = "";
    qsort(look->folders, look->n_folders, sizeof look->folders[0], compare);
    for (uint32_t i = 0; i < look->n_folders && look->n_names < MAX_NAMES; i++) {
        look->nested = (struct group){0};
        if (!join(below, path, look->folders[i]) ||
            store->list(store, below, see_nested, look) < 0 || look->nested.n == 0 ||
            !is_of(look->format, store, path, look->folders[i]))
            continue;
        first = first[0] ? first : look->folders[i];
        all.n += look->nested.n;
        if (!all.first[0])
            memcpy(all.first, look->nested.first, sizeof all.first);
    }
    char why[SHOWN + 100];
    snprintf(why, sizeof why,
             "only files right in it are read (move them there, or open its folder %.*s alone)",
             SHOWN, first);
    all.is_part = look->n_names > MAX_NAMES || look->n_folders == MAX_FOLDERS;
    if (all.n)
        say(source, &all, first, "in the folders below", path, why);
}

void pstk__left_out_find(struct pstk__source *source, const char *path)
{
    const struct pstk__store *store = pstk__store_of(path);
    const struct pstk__format *format = source->format;
    struct pstk__store_entry entry;
    if (!format->names || !store->look || !store->list || !store->list_folders ||
        store->look(store, path, &entry) < 0 || entry.kind != PSTK__STORE_FOLDER)
        return;
    struct look look = {.format = format};
    store->list_folders(store, path, see_folder, &look);
    store->list(store, path, see_top, &look);
    if (look.cased.n && lies_in(store, path, look.cased.first, PSTK__STORE_FILE))
        say(source, &look.cased, "", "in", path,
            "its name ends in letters of another case than those that are read (rename it)");
    if (look.other.n && look.n_read && is_of(format, store, path, look.other.first))
        say(source, &look.other, "", "in", path,
            "files with names of another kind are read (open it by its own name or a pattern)");
    find_nested(&look, source, store, path);
    for (uint32_t i = 0; i < look.n_folders; i++)
        free(look.folders[i]);
}
