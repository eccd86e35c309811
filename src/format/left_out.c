/* SPDX-License-Identifier: Apache-2.0 */
#include "format/left_out.h"

#include "base/utf8.h"
#include "format/listing.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Limits for a deep tree that has nothing to do with the data set: they take some ms. */
#define MAX_FOLDERS 64
#define MAX_NAMES 65536 /* max names in all folders together */
#define MAX_CASED 256   /* max names of another case that are checked */
#define MAX_OTHER 16    /* max names of another kind that are checked */
#define SHOWN_PATH 150  /* bytes of a path in the sentence */
#define SHOWN 80        /* bytes of a name in it */

/* Files that are left out for one reason. */
struct group {
    uint64_t n;
    int is_part;              /* 1: there may be more, which were not searched */
    char first[NAME_MAX + 1]; /* first by its bytes; "": none */
};

struct look {
    const struct pstk__format *format;
    const struct pstk__store *store;
    const char *path;
    struct pstk__store_entry top;
    struct {
        char *name; /* owned */
        uint64_t device, inode;
    } folders[MAX_FOLDERS];
    uint32_t n_folders;
    uint32_t has_more;                 /* 1: there are more folders */
    uint32_t n_cased, n_other;         /* names at the top that were checked */
    uint64_t n_names;                  /* names seen below */
    uint64_t n_read;                   /* names at the top that the data set reads first */
    struct group cased, other, nested; /* nested: of one folder */
    uint64_t n;                        /* number of all files left out */
    char *text; /* sentence about them; PSTK_LEFT_OUT_SIZE bytes of the caller */
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

/* 1: a folder that was seen has the name. */
static int is_folder(const struct look *look, const char *name)
{
    uint32_t i = 0;
    while (i < look->n_folders && strcmp(look->folders[i].name, name) != 0)
        i++;
    return i < look->n_folders;
}

static int join(char to[PATH_MAX], const char *path, const char *name)
{
    const size_t n = strlen(path);
    const int r = snprintf(to, PATH_MAX, "%s%s%s", path, n && path[n - 1] == '/' ? "" : "/", name);
    return r > 0 && r < PATH_MAX;
}

/* 1: an entry of that kind exists below the top. */
static int lies_there(const struct look *look, const char *name, uint32_t kind,
                      struct pstk__store_entry *entry)
{
    char below[PATH_MAX];
    return join(below, look->path, name) && look->store->look(look->store, below, entry) == 0 &&
           entry->kind == kind;
}

/* 1: the format opens the file below the top. */
static int is_of(const struct look *look, const char *name)
{
    char below[PATH_MAX];
    return join(below, look->path, name) && look->format->probe(look->store, below, NULL) > 0;
}

/* A pstk__store_name_fn: a name at the top. The folders there were seen before. Checks each file up
 * to a bound, so that one file without data does not hide others. */
static int see_top(void *user, const char *name)
{
    struct look *look = user;
    struct pstk__store_entry entry;
    if (name[0] == '.')
        return 0;
    if (pstk__listing_is_wanted(look->format->names, name, 0)) {
        look->n_read++;
    } else if (pstk__listing_is_wanted(look->format->names, name, 1)) {
        if (look->n_cased++ < MAX_CASED && lies_there(look, name, PSTK__STORE_FILE, &entry))
            add(&look->cased, name);
    } else if (is_other(look->format, name) && !is_folder(look, name)) {
        if (look->n_other++ < MAX_OTHER && is_of(look, name))
            add(&look->other, name);
    }
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
    struct pstk__store_entry entry;
    look->has_more = look->n_folders == MAX_FOLDERS;
    if (look->has_more || !lies_there(look, name, PSTK__STORE_FOLDER, &entry))
        return (int)look->has_more;
    int is_known = entry.device == look->top.device && entry.inode == look->top.inode;
    for (uint32_t i = 0; i < look->n_folders; i++)
        is_known |=
            entry.device == look->folders[i].device && entry.inode == look->folders[i].inode;
    char *copy = is_known ? NULL : strdup(name);
    if (copy) {
        look->folders[look->n_folders].name = copy;
        look->folders[look->n_folders].device = entry.device;
        look->folders[look->n_folders++].inode = entry.inode;
    }
    return 0;
}

/* ---- the sentence ---------------------------------------------------------------------------- */

/* Return the bytes of a text to show, at most `max`, without cutting a character. */
static int shown(const char *text, size_t max)
{
    return (int)pstk__utf8_end(text, strnlen(text, max));
}

/* Append "N files WHERE PATH are left out, the first NAME: WHY", with the path only in the first
 * sentence. below: the folder of the first file, or "". Counts the files even if the sentence has
 * no room. */
static void say(struct look *look, const struct group *group, const char *below, const char *where,
                const char *why)
{
    char text[PSTK_LEFT_OUT_SIZE];
    const size_t used = strlen(look->text);
    const int is_one = group->n == 1;
    const char *path = used ? "it" : look->path;
    look->n += group->n;
    const int n =
        snprintf(text, sizeof text, "%s%s%llu file%s %s %.*s %s left out, %s%.*s%s%.*s: %s",
                 used ? "; " : "", group->is_part ? "at least " : "", (unsigned long long)group->n,
                 is_one ? "" : "s", where, shown(path, SHOWN_PATH), path, is_one ? "is" : "are",
                 is_one ? "" : "the first ", shown(below, SHOWN), below, below[0] ? "/" : "",
                 shown(group->first, SHOWN), group->first, why);
    if (n > 0 && (size_t)n < sizeof text - used)
        memcpy(look->text + used, text, (size_t)n + 1);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Count the files in the folders below. */
static void find_nested(struct look *look)
{
    char below[PATH_MAX];
    struct group all = {0};
    const char *first = "";
    _Static_assert(offsetof(struct look, folders[0].name) == offsetof(struct look, folders),
                   "folders are compared by their first member");
    qsort(look->folders, look->n_folders, sizeof look->folders[0], compare);
    for (uint32_t i = 0; i < look->n_folders && look->n_names < MAX_NAMES; i++) {
        look->nested = (struct group){0};
        if (!join(below, look->path, look->folders[i].name) ||
            look->store->list(look->store, below, see_nested, look) < 0 || look->nested.n == 0 ||
            !is_of(look, look->folders[i].name))
            continue;
        first = first[0] ? first : look->folders[i].name;
        all.n += look->nested.n;
        if (!all.first[0])
            memcpy(all.first, look->nested.first, sizeof all.first);
    }
    char why[SHOWN + 100];
    snprintf(why, sizeof why,
             "only files directly in the folder are read (move them there, or open its subfolder "
             "%.*s alone)",
             shown(first, SHOWN), first);
    all.is_part = look->n_names >= MAX_NAMES || look->has_more;
    if (all.n)
        say(look, &all, first, "in the folders below", why);
}

uint64_t pstk__left_out_find(const struct pstk__source *source, char text[PSTK_LEFT_OUT_SIZE])
{
    const char *path = source->path;
    const struct pstk__store *store = pstk__store_of(path);
    const struct pstk__format *format = source->format;
    struct pstk__store_entry entry;
    text[0] = 0;
    if (!format->names || !store->look || !store->list || !store->list_folders ||
        store->look(store, path, &entry) < 0 || entry.kind != PSTK__STORE_FOLDER)
        return 0;
    struct look look = {.format = format, .store = store, .path = path, .top = entry, .text = text};
    store->list_folders(store, path, see_folder, &look);
    store->list(store, path, see_top, &look);
    look.cased.is_part = look.n_cased > MAX_CASED;
    look.other.is_part = look.n_other > MAX_OTHER;
    if (look.cased.n)
        say(&look, &look.cased, "", "in", "readers expect its suffix in lower case (rename it)");
    if (look.other.n && look.n_read)
        say(&look, &look.other, "", "in",
            "the other files in it form the data set (open this one by its own name or by a "
            "pattern)");
    find_nested(&look);
    for (uint32_t i = 0; i < look.n_folders; i++)
        free(look.folders[i].name);
    return look.n;
}
