/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "format/folder/folder.h"
#include "format/folder/name.h"
#include "format/table/paths.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAMES 512 /* max names that are checked in a folder */
#define MAX_FOLDERS 8 /* max folders that are searched, in the order of the directory */
#define MAX_DEPTH 3   /* max depth of an image below the top: CLASS/FOLDER/NAME */

/* A search in the names of a folder. */
struct look {
    const struct pstk__store *store;
    const char *path;
    int counts; /* 1: count images instead of ending at the first */
    uint64_t n_names, n_images, n_folders;
    char *folders[MAX_FOLDERS]; /* owned */
};

/* Write the path of an entry. 0, or -ENAMETOOLONG. */
static int join(char to[PATH_MAX], const char *path, const char *name)
{
    const int n = snprintf(to, PATH_MAX, "%s/%s", path, name);
    return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

/* A pstk__store_name_fn: 1 at an image, unless images are counted; 2 after MAX_NAMES names;
 * otherwise 0. */
static int look_at_name(void *user, const char *name)
{
    struct look *look = user;
    struct pstk__store_entry entry;
    char path[PATH_MAX];
    if (pstk__folder_is_hidden(name))
        return 0;
    if (look->n_names == MAX_NAMES)
        return 2;
    look->n_names++;
    const enum pstk__folder_name kind = pstk__folder_name(name);
    const int is_full = look->n_folders == MAX_FOLDERS;
    if ((kind != PSTK__NAME_DECODED && is_full) || join(path, look->path, name) < 0 ||
        look->store->look(look->store, path, &entry) < 0)
        return 0;
    if (entry.kind == PSTK__STORE_FILE) {
        look->n_images += kind == PSTK__NAME_DECODED;
        return kind == PSTK__NAME_DECODED && !look->counts;
    }
    if (entry.kind == PSTK__STORE_FOLDER && !is_full) {
        look->folders[look->n_folders] = strdup(path);
        look->n_folders += look->folders[look->n_folders] != NULL;
    }
    return 0;
}

static int look_into(const struct pstk__store *store, const char *path, int depth);

/* 1: at least one, and at least half, of the folders found have images. Frees their names. */
static int look_below(struct look *look, int depth)
{
    uint64_t n_found = 0;
    for (uint64_t i = 0; i < look->n_folders; i++) {
        if (depth + 1 < MAX_DEPTH)
            n_found += look_into(look->store, look->folders[i], depth + 1) == 1;
        free(look->folders[i]);
    }
    return n_found > 0 && 2 * n_found >= look->n_folders;
}

/* 1: there is an image directly in the folder, or one in at least half of the searched folders; 0:
 * no; or a negative errno for the folder itself. So a folder such as / or a home, with a picture
 * somewhere deep in it, is no folder of images: its index would read the whole disk. */
static int look_into(const struct pstk__store *store, const char *path, int depth)
{
    struct look *look = calloc(1, sizeof *look);
    if (!look)
        return -ENOMEM;
    look->store = store;
    look->path = path;
    int r = store->list(store, path, look_at_name, look);
    r = r < 0 ? r : r == 1;
    const int are_below = look_below(look, r == 0 ? depth : MAX_DEPTH);
    free(look);
    return r == 0 ? are_below : r;
}

int pstk__folder_is_most(const struct pstk__store *store, const char *path, struct pstk_error *err)
{
    struct look *look = calloc(1, sizeof *look);
    if (!look)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to open %s", path);
    look->store = store;
    look->path = path;
    look->counts = 1;
    const int r = store->list(store, path, look_at_name, look);
    const int is_most = 2 * look->n_images > look->n_names;
    const int are_below = look_below(look, r >= 0 && !is_most ? 0 : MAX_DEPTH);
    free(look);
    if (r < 0)
        return pstk__fail_errno(err, -r, PSTK_STAGE_OPEN, "cannot open %s", path);
    return is_most || are_below;
}

int pstk__folder_probe(const struct pstk__store *store, const char *path, struct pstk_error *err)
{
    if (!store->list || !store->look)
        return 0;
    const int r = look_into(store, path, 0);
    if (r == 1)
        return pstk__table_refuse_parquet(store, path, err) < 0 ? PSTK_EINVAL : 1;
    if (r == 0 || r == -ENOENT || r == -ENOTDIR)
        return 0;
    return pstk__fail_errno(err, -r, PSTK_STAGE_OPEN, "cannot open %s", path);
}

int pstk__table_probe(const struct pstk__store *store, const char *path, struct pstk_error *err)
{
    char table[PATH_MAX];
    return pstk__table_find(store, path, table, err);
}
