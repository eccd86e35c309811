/* SPDX-License-Identifier: Apache-2.0 */
#include "format/folder/tree.h"

#include "base/error.h"
#include "base/signature.h"
#include "format/folder/name.h"
#include "format/folder/rules.h"
#include "format/folder/values.h"
#include "format/listing.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_DIRS                                                                                   \
    (1u << 24) /* max directories of a walk: links may lead to a folder again and again */
#define MAX_IMAGE 0xffffffffu
#define PROGRESS_FILES 1024 /* files between two reports */
#define FRESH_NS 20000000   /* ns; longer than a tick of the clock that stamps files */
/* ns; the same for a file system whose times are multiples of one second, or of two. */
#define COARSE_NS 2000000000

/* ---- messages -------------------------------------------------------------------------------- */

static int fail_memory(const struct pstk__folder_walk *walk)
{
    return pstk__fail(walk->err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the index of %s",
                      walk->root);
}

static int fail_folder(const struct pstk__folder_walk *walk, const char *path, int native)
{
    char shown[512];
    pstk__folder_show(path, shown, sizeof shown);
    if (native == ENOMEM)
        return fail_memory(walk);
    if (native == EFBIG)
        return pstk__fail(
            walk->err, PSTK_EFBIG, PSTK_STAGE_OPEN,
            "the folder %s/%s has more than 2^24 names: split it into several folders", walk->root,
            shown);
    return pstk__fail_errno(walk->err, native, PSTK_STAGE_OPEN, "cannot read the folder %s/%s",
                            walk->root, shown);
}

/* ---- paths ----------------------------------------------------------------------------------- */

static int is_root(const char *path)
{
    return strcmp(path, ".") == 0;
}

/* Write the path below the root of a name in a directory into `to`. */
static int join(const struct pstk__folder_walk *walk, const char *path, const char *name,
                char to[PSTK__VALUES_MAX_PATH])
{
    const int n = is_root(path) ? snprintf(to, PSTK__VALUES_MAX_PATH, "%s", name)
                                : snprintf(to, PSTK__VALUES_MAX_PATH, "%s/%s", path, name);
    if (n > 0 && n < PSTK__VALUES_MAX_PATH)
        return 0;
    return pstk__fail(walk->err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                      "a path below %s is too long: "
                      "%.400s...",
                      walk->root, to);
}

/* Describe the entry at a path below the root, which becomes walk->path. 0 or a negative errno. */
static int look(struct pstk__folder_walk *walk, const char *path, struct pstk__store_entry *entry)
{
    const int n = is_root(path)
                      ? snprintf(walk->path, sizeof walk->path, "%s", walk->root)
                      : snprintf(walk->path, sizeof walk->path, "%s/%s", walk->root, path);
    if (n < 0 || (size_t)n >= sizeof walk->path)
        return -ENAMETOOLONG;
    return walk->store->look(walk->store, walk->path, entry);
}

/* ---- a directory ----------------------------------------------------------------------------- */

/* Describe a directory before its names are listed. If its last change was within this clock tick,
 * wait for the next one: a name that is added in the same tick would not change the time. */
static int look_at_folder(struct pstk__folder_walk *walk, const char *path,
                          struct pstk__store_entry *entry)
{
    struct timespec now;
    *entry = (struct pstk__store_entry){0};
    int r = look(walk, path, entry);
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t age = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - entry->changed_ns;
    const int64_t tick = entry->changed_ns % 1000000000 ? FRESH_NS : COARSE_NS;
    if (r == 0 && age >= -tick && age < tick) {
        nanosleep(&(struct timespec){.tv_sec = tick / 1000000000, .tv_nsec = tick % 1000000000},
                  NULL);
        r = look(walk, path, entry);
    }
    return r;
}

static struct pstk__folder_dir *add_dir(struct pstk__folder_walk *walk, const char *path,
                                        int64_t changed_ns)
{
    if (walk->n_dirs == walk->max_dirs) {
        const uint64_t max = walk->max_dirs ? 2 * walk->max_dirs : 4;
        struct pstk__folder_dir *dirs = reallocarray(walk->dirs, max, sizeof *dirs);
        if (!dirs)
            return NULL;
        walk->dirs = dirs;
        walk->max_dirs = max;
    }
    struct pstk__folder_dir *dir = &walk->dirs[walk->n_dirs];
    *dir = (struct pstk__folder_dir){.path = strdup(path),
                                     .changed_ns = changed_ns,
                                     .rows = {.n_columns = PSTK__FOLDER_COLUMNS}};
    walk->n_dirs += dir->path != NULL;
    return dir->path ? dir : NULL;
}

static int add_image(const struct pstk__folder_walk *walk, struct pstk__folder_dir *dir,
                     const char *path, const struct pstk__store_entry *entry)
{
    uint8_t values[PSTK__VALUES_MAX];
    uint64_t cells[PSTK__FOLDER_COLUMNS];
    const uint64_t length = strlen(path);
    char shown[512];
    pstk__folder_show(path, shown, sizeof shown);
    if (entry->size > MAX_IMAGE)
        return pstk__fail(walk->err, PSTK_EFBIG, PSTK_STAGE_OPEN,
                          "%s/%s has 4 GiB or more; an image must have less", walk->root, shown);
    const uint32_t size = pstk__folder_values_write(values, walk->label, path);
    cells[PSTK__FOLDER_VALUES_SIZE] = size;
    cells[PSTK__FOLDER_SIZE] = entry->size;
    cells[PSTK__FOLDER_CHANGED] = (uint64_t)entry->changed_ns;
    if (pstk__index_rows_value(&dir->rows, values, size, &cells[PSTK__FOLDER_VALUES]) < 0 ||
        pstk__index_rows_add(&dir->rows, cells) < 0)
        return fail_memory(walk);
    dir->bytes += entry->size;
    dir->largest = entry->size > dir->largest ? entry->size : dir->largest;
    dir->most = size > dir->most ? size : dir->most;
    dir->longest = length > dir->longest ? length : dir->longest;
    dir->paths += length;
    dir->odd |= pstk__utf8_end(path, length) != length;
    return 0;
}

/* 1: the file at walk->path, described by `entry`, is a sample by its name or its first bytes; 0:
 * it is not; a negative errno: its first bytes cannot be read. */
static int is_sample(const struct pstk__folder_walk *walk, const char *name,
                     const struct pstk__store_entry *entry)
{
    struct pstk__file file;
    uint8_t head[64];
    if (pstk__folder_name(name) != PSTK__NAME_OTHER)
        return 1;
    if (!walk->by_content || entry->kind != PSTK__STORE_FILE)
        return 0;
    int64_t n = walk->store->open(walk->store, &file, walk->path);
    if (n == 0) {
        do
            n = walk->store->read_at(&file, head, sizeof head, 0);
        while (n == -EINTR || n == -EAGAIN);
        walk->store->close(&file);
    }
    if (n < 0)
        return (int)n;
    const enum pstk__signature found = pstk__signature_find(head, (uint64_t)n, NULL);
    return pstk__folder_takes(found);
}

/* Return the result of is_sample for the file at walk->path, with a message if it is an error. */
static int known(const struct pstk__folder_walk *walk, int found)
{
    char shown[512];
    if (found >= 0)
        return found;
    pstk__folder_show(walk->path, shown, sizeof shown);
    return pstk__fail_errno(walk->err, -found, PSTK_STAGE_OPEN,
                            "by_content: cannot read the first bytes of %s", shown);
}

/* The directory whose names are checked. */
struct look {
    const char *path; /* path of the directory */
    uint64_t dir;     /* number of the directory */
    enum pstk__folder_images images;
    struct pstk__texts *folders; /* receives the folders in it, or NULL */
    uint64_t reported;           /* bytes reported as progress */
};

static int take_name(struct pstk__folder_walk *walk, const struct look *at, const char *name)
{
    char path[PSTK__VALUES_MAX_PATH];
    struct pstk__store_entry entry;
    int r = join(walk, at->path, name, path);
    if (r < 0)
        return r;
    /* Such as a link to nothing: a damaged sample, as for ImageFolder. */
    if (look(walk, path, &entry) < 0)
        entry = (struct pstk__store_entry){.kind = PSTK__STORE_OTHER};
    if (entry.kind == PSTK__STORE_FOLDER && at->folders)
        pstk__texts_add(at->folders, name, strlen(name));
    if (entry.kind == PSTK__STORE_FOLDER || at->images == PSTK__FOLDER_SKIP)
        return 0;
    r = is_sample(walk, name, &entry);
    if (at->images == PSTK__FOLDER_COUNT) { /* not an error, even if the file cannot be read */
        walk->n_counted += r > 0;
        return 0;
    }
    r = known(walk, r);
    return r > 0 ? add_image(walk, &walk->dirs[at->dir], path, &entry) : r;
}

static int report(struct pstk__folder_walk *walk, struct look *at)
{
    const uint64_t n = walk->dirs[at->dir].bytes - at->reported;
    at->reported += n;
    return walk->progress && walk->progress(walk->user, n) ? PSTK_ECANCELED : 0;
}

static int take_names(struct pstk__folder_walk *walk, struct look *at,
                      const struct pstk__texts *names)
{
    int r = at->folders && pstk__texts_open(at->folders, names->n, names->size) < 0
                ? fail_memory(walk)
                : 0;
    for (uint64_t i = 0; r == 0 && i < names->n; i++) {
        r = take_name(walk, at, pstk__texts_get(names, i));
        if (r == 0 && (i + 1) % PROGRESS_FILES == 0)
            r = report(walk, at);
    }
    return r < 0 ? r : report(walk, at);
}

int pstk__folder_walk_one(struct pstk__folder_walk *walk, const char *path,
                          enum pstk__folder_images images, struct pstk__texts *folders)
{
    struct pstk__store_entry entry;
    struct pstk__texts names = {0};
    if (walk->n_dirs >= MAX_DIRS)
        return pstk__fail(walk->err, PSTK_EFBIG, PSTK_STAGE_OPEN,
                          "%s has more than 2^24 folders; does a link lead back to a folder above "
                          "it? (remove the link)",
                          walk->root);
    int r = look_at_folder(walk, path, &entry);
    if (r == 0)
        r = pstk__listing_names(&names, walk->store, walk->path);
    if (r < 0)
        return fail_folder(walk, path, -r);
    struct look at = {.path = path, .dir = walk->n_dirs, .images = images, .folders = folders};
    r = add_dir(walk, path, entry.changed_ns) ? take_names(walk, &at, &names) : fail_memory(walk);
    pstk__texts_close(&names);
    return r;
}

/* ---- all below a directory ------------------------------------------------------------------- */

/* Describe a folder, and enter it below `parent`. */
static int enter(struct pstk__folder_walk *walk, const char *path, struct pstk__folder_above *above,
                 const struct pstk__folder_above *parent)
{
    char shown[512], before[PATH_MAX + 1];
    struct pstk__store_entry entry;
    const int r = look(walk, path, &entry);
    if (r < 0)
        return fail_folder(walk, path, -r);
    above->device = entry.device;
    above->inode = entry.inode;
    pstk__folder_show(path, shown, sizeof shown);
    snprintf(before, sizeof before, "%s/", walk->root);
    return pstk__folder_enter(above, parent, (struct pstk__folder_named){before, shown}, walk->err);
}

static int walk_below(struct pstk__folder_walk *walk, const char *path,
                      const struct pstk__folder_above *parent)
{
    struct pstk__folder_above above;
    struct pstk__texts folders = {0};
    int r = enter(walk, path, &above, parent);
    if (r == 0)
        r = pstk__folder_walk_one(walk, path, PSTK__FOLDER_TAKE, &folders);
    for (uint64_t i = 0; r == 0 && i < folders.n; i++) {
        char inner[PSTK__VALUES_MAX_PATH];
        r = join(walk, path, pstk__texts_get(&folders, i), inner);
        if (r == 0)
            r = walk_below(walk, inner, &above);
    }
    pstk__texts_close(&folders);
    return r;
}

static int compare_dirs(const void *a, const void *b)
{
    return strcmp(((const struct pstk__folder_dir *)a)->path,
                  ((const struct pstk__folder_dir *)b)->path);
}

/* Describe the root, which lies above all folders: a link may lead to it. */
static int look_at_root(struct pstk__folder_walk *walk, struct pstk__folder_above *above)
{
    struct pstk__store_entry entry = {0};
    const int r = look(walk, ".", &entry);
    *above = (struct pstk__folder_above){.device = entry.device, .inode = entry.inode};
    return r < 0 ? fail_folder(walk, ".", -r) : 0;
}

int pstk__folder_walk_all(struct pstk__folder_walk *walk, const char *path)
{
    struct pstk__folder_above root;
    int r = look_at_root(walk, &root);
    if (r == 0)
        r = walk_below(walk, path, &root);
    /* Compare paths with their slashes: ImageFolder sorts the paths of os.walk in this way. */
    if (r == 0)
        qsort(walk->dirs, walk->n_dirs, sizeof *walk->dirs, compare_dirs);
    return r;
}

/* ---- is there an image? ---------------------------------------------------------------------- */

static int has_image(struct pstk__folder_walk *walk, const char *path,
                     const struct pstk__folder_above *parent)
{
    struct pstk__folder_above above;
    struct pstk__store_entry entry;
    struct pstk__texts names = {0};
    int r = enter(walk, path, &above, parent);
    if (r < 0)
        return r;
    r = pstk__listing_names(&names, walk->store, walk->path);
    if (r < 0)
        return fail_folder(walk, path, -r);
    for (int folders = 0; r == 0 && folders <= 1;
         folders++) /* images first: they need no descent */
        for (uint64_t i = 0; r == 0 && i < names.n; i++) {
            const char *name = pstk__texts_get(&names, i);
            const int is_image = pstk__folder_name(name) != PSTK__NAME_OTHER;
            char inner[PSTK__VALUES_MAX_PATH];
            if (!folders && !is_image && !walk->by_content)
                continue;
            r = join(walk, path, name, inner);
            if (r == 0 && look(walk, inner, &entry) < 0)
                entry = (struct pstk__store_entry){.kind = PSTK__STORE_OTHER};
            const int is_folder = r == 0 && entry.kind == PSTK__STORE_FOLDER;
            if (r == 0 && folders && is_folder)
                r = has_image(walk, inner, &above);
            else if (r == 0 && !folders && !is_folder)
                r = known(walk, is_sample(walk, name, &entry));
        }
    pstk__texts_close(&names);
    return r;
}

int pstk__folder_has_image(struct pstk__folder_walk *walk, const char *path)
{
    struct pstk__folder_above root;
    const int r = look_at_root(walk, &root);
    return r < 0 ? r : has_image(walk, path, &root);
}

void pstk__folder_walk_close(struct pstk__folder_walk *walk)
{
    for (uint64_t i = 0; i < walk->n_dirs; i++) {
        free(walk->dirs[i].path);
        pstk__index_rows_close(&walk->dirs[i].rows);
    }
    free(walk->dirs);
    walk->dirs = NULL;
    walk->n_dirs = walk->max_dirs = walk->n_counted = 0;
}
