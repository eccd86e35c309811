/* SPDX-License-Identifier: Apache-2.0 */
#include "format/rivals.h"

#include "base/error.h"
#include "format/folder/folder.h"
#include "format/listing.h"
#include "format/megatron/megatron.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define MAX_KINDS 32 /* max endings of names that are distinguished */
#define MAX_TRIED 8  /* max names of a kind that are checked: a few of a million images */
#define SHOWN 150    /* bytes of the path before the advice, which has it in full */

/* The names in a directory with one ending: the part from their last dot on, or none. */
struct kind {
    const char *end;   /* ending from the dot on, borrowed; "": without one */
    const char *first; /* first name that the format opens, borrowed; NULL: none was found */
    uint64_t n, n_tried;
};

/* Find the kind of an ending, or add it. NULL: there are too many. */
static struct kind *kind_of(struct kind kinds[MAX_KINDS], const char *end)
{
    size_t i = 0;
    while (i < MAX_KINDS && kinds[i].end && strcmp(kinds[i].end, end) != 0)
        i++;
    if (i == MAX_KINDS)
        return NULL;
    kinds[i].end = end;
    return &kinds[i];
}

/* Write the path of a name in a directory. 0: it is too long. */
static int join(char to[PATH_MAX], const char *path, const char *star, const char *name)
{
    const size_t length = strlen(path);
    const char *slash = length && path[length - 1] == '/' ? "" : "/";
    const int n = snprintf(to, PATH_MAX, "%s%s%s%s", path, slash, star, name);
    return n > 0 && n < PATH_MAX;
}

static int is_file_of(const struct pstk__format *format, const struct pstk__store *store,
                      const char *path)
{
    struct pstk__store_entry entry;
    return store->look(store, path, &entry) == 0 && entry.kind == PSTK__STORE_FILE &&
           format->probe(store, path, NULL) > 0;
}

/* Find the only kind of names that are files of `format`. NULL: there are several kinds, or none.
 */
static const struct kind *find_kind(struct kind kinds[MAX_KINDS], const struct pstk__texts *names,
                                    const struct pstk__format *format,
                                    const struct pstk__store *store, const char *path)
{
    char file[PATH_MAX];
    const struct kind *found = NULL;
    for (uint64_t i = 0; i < names->n; i++) {
        const char *name = pstk__texts_get(names, i), *dot = strrchr(name, '.');
        if (format == &pstk__format_megatron && pstk__text_ends_with(name, ".bin"))
            continue; /* the .idx of the pair opens both */
        struct kind *kind = kind_of(kinds, dot ? dot : "");
        if (!kind)
            return NULL;
        kind->n++;
        if (kind->first || kind->n_tried == MAX_TRIED)
            continue;
        kind->n_tried++;
        if (!join(file, path, "", name) || !is_file_of(format, store, file))
            continue;
        if (found)
            return NULL;
        kind->first = name;
        found = kind;
    }
    return found;
}

/* Write a pattern for names with the ending of this one, such as *.tar.gz, if the format takes it.
 */
static int make_pattern(char to[PATH_MAX], const struct pstk__format *format,
                        const struct pstk__store *store, const char *path, const char *name)
{
    for (const char *dot = strrchr(name, '.'); dot; dot = memrchr(name, '.', (size_t)(dot - name)))
        if (join(to, path, "*", dot) && format->probe(store, to, NULL) > 0)
            return 1;
    return 0;
}

/* Write the path that opens all files of `format` in a directory: a pattern, or the only file.
 * Returns 1: it is a pattern. "": no single path opens them. */
static int path_of_files(const struct pstk__format *format, const struct pstk__store *store,
                         const char *path, char to[PATH_MAX])
{
    struct pstk__texts names = {0};
    struct kind kinds[MAX_KINDS] = {0};
    to[0] = 0;
    if (pstk__listing_names(&names, store, path) < 0)
        return 0;
    const struct kind *kind = find_kind(kinds, &names, format, store, path);
    const int are_many = kind && kind->n > 1;
    const int has_path = are_many ? make_pattern(to, format, store, path, kind->first)
                                  : kind && join(to, path, "", kind->first);
    if (!has_path)
        to[0] = 0;
    pstk__texts_close(&names);
    return has_path && are_many;
}

static int fail(const struct pstk__format *found, const struct pstk__format *rival,
                const struct pstk__store *store, const char *path, struct pstk_error *err)
{
    char files[PATH_MAX], others[PATH_MAX] = "";
    const int are_many = path_of_files(found, store, path, files);
    if (!rival->has_file_each) /* the directory opens images and their table */
        path_of_files(rival, store, path, others);
    if (!files[0])
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "path: value is %.*s, which has %s, and %s; must be of one format (move "
                          "the others elsewhere)",
                          SHOWN, path, found->needs, rival->needs);
    if (others[0])
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "path: value is %.*s, which has %s, and %s; must be of one format (open "
                          "%s or %s)",
                          SHOWN, path, found->needs, rival->needs, files, others);
    return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                      "path: value is %.*s, which has %s, and %s; must be of one format (open %s, "
                      "or move %s elsewhere to open the rest)",
                      SHOWN, path, found->needs, rival->needs, files, are_many ? "them" : "it");
}

int pstk__rivals_check(const struct pstk__format *found, const struct pstk__format *const *others,
                       size_t n, const struct pstk__store *store, const char *path,
                       struct pstk_error *err)
{
    struct pstk__store_entry entry;
    if (!store->look || !store->list || store->look(store, path, &entry) < 0 ||
        entry.kind != PSTK__STORE_FOLDER)
        return 0;
    for (size_t i = 0; i < n; i++) {
        const int r = others[i] == &pstk__format_folder ? pstk__folder_is_most(store, path, err)
                                                        : others[i]->probe(store, path, err);
        if (r != 0)
            return r < 0 ? r : fail(found, others[i], store, path, err);
    }
    return 0;
}
