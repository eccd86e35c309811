/* SPDX-License-Identifier: Apache-2.0 */
#include "format/rivals.h"

#include "base/error.h"
#include "format/folder/folder.h"
#include "format/listing.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Write the path to open for the files of `format` in a directory: a pattern that this format
 * takes, or else the first file. Returns 1: it is a pattern. "": the format opens none alone. */
static int path_of_files(const struct pstk__format *format, const struct pstk__store *store,
                         const char *path, char to[PATH_MAX])
{
    struct pstk__texts names = {0};
    struct pstk__store_entry entry;
    const size_t length = strlen(path);
    const char *slash = length && path[length - 1] == '/' ? "" : "/", *first = NULL;
    if (pstk__listing_names(&names, store, path) < 0)
        names.n = 0;
    for (uint64_t i = 0; !first && i < names.n; i++) {
        const char *name = pstk__texts_get(&names, i);
        const int size = snprintf(to, PATH_MAX, "%s%s%s", path, slash, name);
        if (size > 0 && size < PATH_MAX && store->look(store, to, &entry) == 0 &&
            entry.kind == PSTK__STORE_FILE && format->probe(store, to, NULL) > 0)
            first = name;
    }
    char pattern[PATH_MAX];
    const char *dot = first ? strrchr(first, '.') : NULL;
    const int n = dot ? snprintf(pattern, sizeof pattern, "%s%s*%s", path, slash, dot) : 0;
    const int is_pattern = n > 0 && n < PATH_MAX && format->probe(store, pattern, NULL) > 0;
    if (!first)
        to[0] = 0;
    else if (is_pattern)
        memcpy(to, pattern, (size_t)n + 1);
    pstk__texts_close(&names);
    return is_pattern;
}

static int fail(const struct pstk__format *found, const struct pstk__format *rival,
                const struct pstk__store *store, const char *path, struct pstk_error *err)
{
    char files[PATH_MAX], others[PATH_MAX] = "";
    const int are_many = path_of_files(found, store, path, files);
    if (!rival->has_file_each) /* images and their table are opened by the directory */
        path_of_files(rival, store, path, others);
    if (!files[0])
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "path: value is %s, which has %s, and %s; must be of one format (move "
                          "the others elsewhere)",
                          path, found->needs, rival->needs);
    if (others[0])
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "path: value is %s, which has %s, and %s; must be of one format (open "
                          "%s or %s)",
                          path, found->needs, rival->needs, files, others);
    return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                      "path: value is %s, which has %s, and %s; must be of one format (open %s, "
                      "or move %s elsewhere to open the rest)",
                      path, found->needs, rival->needs, files, are_many ? "them" : "it");
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
        const int is_rival = others[i] == &pstk__format_folder
                                 ? pstk__folder_is_most(store, path)
                                 : others[i]->probe(store, path, NULL) > 0;
        if (is_rival)
            return fail(found, others[i], store, path, err);
    }
    return 0;
}
