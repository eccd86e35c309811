/* SPDX-License-Identifier: Apache-2.0 */
#include "format/table/paths.h"

#include "base/error.h"
#include "format/folder/values.h"
#include "format/table/columns.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 1: the folder has a file `name` with a column file_name, whose path becomes `table`; 0: it has
 * none; <0: the file cannot be read. */
static int has_metadata(const struct pstk__store *store, const char *folder, const char *name,
                        char table[PATH_MAX])
{
    struct pstk__store_entry entry;
    const int n = snprintf(table, PATH_MAX, "%s/%s", folder, name);
    if (n < 0 || n >= PATH_MAX || store->look(store, table, &entry) < 0 ||
        entry.kind != PSTK__STORE_FILE)
        return 0;
    return pstk__table_has_column(store, table, entry.size, "file_name");
}

int pstk__table_refuse_parquet(const struct pstk__store *store, const char *folder,
                               struct pstk_error *err)
{
    struct pstk__store_entry entry;
    char table[PATH_MAX];
    const int n = snprintf(table, PATH_MAX, "%s/metadata.parquet", folder);
    if (n < 0 || n >= PATH_MAX || store->look(store, table, &entry) < 0 ||
        entry.kind != PSTK__STORE_FILE)
        return 0;
    return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                      "%s has a metadata.parquet, which only Python reads (penstock.Dataset, "
                      "penstock.Loader, penstock.pack); must have none here (write the table as "
                      "metadata.csv or metadata.jsonl, and remove metadata.parquet)",
                      folder);
}

int pstk__table_find(const struct pstk__store *store, const char *path, char table[PATH_MAX],
                     struct pstk_error *err)
{
    struct pstk__store_entry entry;
    char other[PATH_MAX];
    if (!store->look || strlen(path) >= PATH_MAX || store->look(store, path, &entry) < 0)
        return 0;
    if (entry.kind == PSTK__STORE_FILE) {
        snprintf(table, PATH_MAX, "%s", path);
        return pstk__table_of(path) != NULL;
    }
    if (entry.kind != PSTK__STORE_FOLDER)
        return 0;
    const int has_csv = has_metadata(store, path, "metadata.csv", table);
    const int has_json = has_metadata(store, path, "metadata.jsonl", has_csv ? other : table);
    if (has_csv > 0 && has_json > 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "%s has a metadata.csv and a metadata.jsonl: give the path of the right "
                          "one, or remove the other",
                          path);
    if (has_csv < 0 || has_json < 0)
        return pstk__fail_errno(err, -(has_csv < 0 ? has_csv : has_json), PSTK_STAGE_OPEN,
                                "cannot read %s/metadata.%s", path, has_csv < 0 ? "csv" : "jsonl");
    const int r = has_csv || has_json ? pstk__table_refuse_parquet(store, path, err) : 0;
    return r < 0 ? r : has_csv || has_json;
}

int pstk__table_paths_of(struct pstk__table_paths *paths, const struct pstk__opening *opening,
                         const char table[PATH_MAX], struct pstk_error *err)
{
    const char *root = opening->foreign ? opening->foreign->root_path : NULL;
    struct pstk__store_entry entry;
    snprintf(paths->table, sizeof paths->table, "%s", table);
    snprintf(paths->folder, sizeof paths->folder, "%s", table);
    char *slash = strrchr(paths->folder, '/');
    if (slash)
        slash[slash == paths->folder] = 0;
    else
        memcpy(paths->folder, ".", 2);
    const int n = snprintf(paths->root, sizeof paths->root, "%s", root ? root : paths->folder);
    if (n < 0 || n >= PATH_MAX)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "root_path: value is too long: %.400s...", root);
    for (int end = n; end > 1 && paths->root[end - 1] == '/'; end--)
        paths->root[end - 1] = 0;
    if (!realpath(paths->root, paths->real))
        return pstk__fail_errno(err, errno, PSTK_STAGE_OPEN, "root_path: cannot open %s",
                                paths->root);
    const int r = opening->store->look(opening->store, paths->root, &entry);
    if (r == 0 && entry.kind != PSTK__STORE_FOLDER)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "root_path: value is %s; must be a folder", paths->root);
    return r < 0 ? pstk__fail_errno(err, -r, PSTK_STAGE_OPEN, "cannot open %s", paths->root) : 0;
}

/* Return the part of an absolute path after the folder; NULL: the path is not below it. */
static const char *below(const char *folder, const char *path)
{
    const size_t n = strlen(folder);
    if (strncmp(path, folder, n) != 0)
        return NULL;
    path += n;
    if (n > 1 && *path != '/') /* the folder / ends with its own slash */
        return NULL;
    return path + strspn(path, "/");
}

static int has_dots(const char *path)
{
    for (const char *part = path; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL)
        if (part[0] == '.' && part[1] == '.' && (part[2] == '/' || part[2] == 0))
            return 1;
    return 0;
}

const char *pstk__table_image_path(const struct pstk__table_paths *paths, const char *from,
                                   uint64_t size, char *path)
{
    if (size == 0)
        return "the path is empty";
    if (size >= PSTK__VALUES_MAX_PATH)
        return "the path has more than 4095 bytes";
    memcpy(path, from, size);
    path[size] = 0;
    if (has_dots(path))
        return "the path has a part '..'; must lie below the root folder (root_path), and be "
               "written without '..'";
    if (path[0] == '/') {
        const char *rest = paths->root[0] == '/' ? below(paths->root, path) : NULL;
        rest = rest ? rest : below(paths->real, path);
        if (!rest)
            return "the path is absolute, and not below the root folder: give the folder that "
                   "contains all images (root_path)";
        memmove(path, rest, strlen(rest) + 1);
    }
    size = strlen(path);
    return size == 0 || path[size - 1] == '/' ? "the path names no file" : NULL;
}

const char *pstk__table_path_flaw(const char *path)
{
    static const char blanks[] = " \t\r\n";
    const size_t n = strlen(path);
    if (strchr(path, '\\'))
        return "its path has a \\, which separates no folders here (write /)";
    if (strstr(path, ":/"))
        return "its path is an address (write the path alone)";
    if (n > 0 && (strchr(blanks, path[0]) || strchr(blanks, path[n - 1])))
        return "its path begins or ends with a blank (remove the blank)";
    return NULL;
}
