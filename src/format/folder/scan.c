/* SPDX-License-Identifier: Apache-2.0 */
#include "format/folder/scan.h"

#include "base/parallel_map.h"
#include "base/error.h"
#include "format/folder/folder.h"
#include "format/folder/name.h"
#include "format/folder/rules.h"
#include "format/folder/tree.h"
#include "format/folder/values.h"
#include "format/indexed.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 2 /* version of a scan's results: an index of another version is built again */

/* The input of the index of a folder. */
struct work {
    const struct pstk__opening *opening;
    enum pstk__folder_layout layout;
    struct pstk__folder_walk top;    /* owned; the folder itself */
    struct pstk__texts folders;      /* folders in it, the classes; owned */
    struct pstk__index_build *build; /* borrowed during the build: n_done bytes of images found,
                                        n_joined samples */
};

/* ---- one class: a job of the map ------------------------------------------------------------ */

static uint64_t n_images(const struct pstk__folder_walk *walk)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < walk->n_dirs; i++)
        n += walk->dirs[i].rows.n;
    return n;
}

/* 1: the class folder has the file that every packed data set has. */
static int has_manifest(const struct pstk__folder_walk *walk, const char *name)
{
    char path[PATH_MAX];
    struct pstk__store_entry entry;
    const int n = snprintf(path, sizeof path, "%s/%s/" PSTK__FOLDER_MANIFEST, walk->root, name);
    return n > 0 && (size_t)n < sizeof path && walk->store->look(walk->store, path, &entry) == 0;
}

static int check_class(const struct pstk__folder_walk *walk, const char *name,
                       struct pstk_error *err)
{
    char shown[512], before[PATH_MAX + 1];
    pstk__folder_show(name, shown, sizeof shown);
    snprintf(before, sizeof before, "%s/", walk->root);
    const struct pstk__folder_named named = {before, shown};
    const int r = pstk__folder_check_class(named, name, err);
    if (r < 0 || n_images(walk) > 0)
        return r;
    return pstk__folder_refuse_empty(
        named, has_manifest(walk, name) ? PSTK__EMPTY_MANIFEST : PSTK__EMPTY_NONE, err);
}

/* Walk folder number `job`, on a thread of the map. The result owns a walk. */
static int walk_folder(void *state, uint64_t job, const struct pstk__map_sink *sink, void *result,
                       struct pstk_error *err)
{
    const struct work *work = state;
    const char *name = pstk__texts_get(&work->folders, job);
    struct pstk__folder_walk *walk = calloc(1, sizeof *walk);
    if (!walk)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the index of %s",
                          work->top.root);
    walk->store = work->top.store;
    walk->root = work->top.root;
    walk->label = (int64_t)job;
    walk->by_content = work->top.by_content;
    walk->progress = sink->progress;
    walk->user = sink->user;
    walk->err = err;
    int r = pstk__folder_walk_all(walk, name);
    if (r == 0 && work->layout == PSTK__FOLDER_CLASSES)
        r = check_class(walk, name, err);
    else if (r == 0 && n_images(walk) > 0)
        r = pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                       "%s was changed while it was indexed: open it again", walk->root);
    if (r < 0) {
        pstk__folder_walk_close(walk);
        free(walk);
        return r;
    }
    *(struct pstk__folder_walk **)result = walk;
    return 0;
}

/* ---- joining: on the caller's thread --------------------------------------------------------- */

static void add_largest(uint64_t *to, uint64_t number)
{
    *to = number > *to ? number : *to;
}

static void add_field(struct pstk__index_field *field, const struct pstk__folder_dir *dir,
                      uint64_t largest, uint64_t bytes)
{
    field->n += dir->rows.n;
    field->bytes += bytes;
    add_largest(&field->max_size, largest);
    field->max_plain = field->max_size;
}

/* Add labels, paths and sizes to the digest, but no times: a copy of the folder has the same
 * digest. */
static void add_digest(uint64_t digest[2], const struct pstk__folder_dir *dir)
{
    for (uint64_t i = 0; i < dir->rows.n; i++) {
        const uint64_t *cells = dir->rows.cells + i * dir->rows.n_columns;
        pstk__index_digest(digest, dir->rows.values + cells[PSTK__FOLDER_VALUES],
                           cells[PSTK__FOLDER_VALUES_SIZE]);
        pstk__index_digest(digest, &cells[PSTK__FOLDER_SIZE], sizeof *cells);
    }
}

static int join_dir(const struct work *work, const struct pstk__folder_dir *dir)
{
    struct pstk__index_build *build = work->build;
    struct pstk__inferred_schema *found = &build->found;
    const uint32_t path = found->n_fields - 1;
    build->n_joined += dir->rows.n;
    if (build->n_joined >= UINT32_MAX - 1) /* each sample is a file, and the index is one more */
        return pstk__fail(build->err, PSTK_EFBIG, PSTK_STAGE_OPEN,
                          "%s has more than 2^32 images: pack them, or open parts of the folder",
                          work->opening->path);
    add_field(&found->fields[PSTK__FIELD_OF_IMAGE], dir, dir->largest, dir->bytes);
    if (work->layout == PSTK__FOLDER_CLASSES)
        add_field(&found->fields[PSTK__FIELD_OF_LABEL], dir, 8, 8 * dir->rows.n);
    add_field(&found->fields[path], dir, dir->longest, dir->paths);
    add_largest(&found->facts[PSTK__FACT_ODD], dir->odd);
    add_largest(&found->facts[PSTK__FACT_MAX], dir->most);
    add_digest(found->facts + PSTK__FACT_DIGEST, dir);
    return pstk__index_writer_add(build->writer, dir->path, dir->bytes, dir->changed_ns, &dir->rows,
                                  build->err);
}

/* Write the images that a walk found, in the order of its directories. */
static void join_walk(const struct work *work, const struct pstk__folder_walk *walk)
{
    for (uint64_t i = 0; work->build->code == 0 && i < walk->n_dirs; i++)
        work->build->code = join_dir(work, &walk->dirs[i]);
}

static void drop_folder(void *result)
{
    struct pstk__folder_walk *walk = *(struct pstk__folder_walk **)result;
    pstk__folder_walk_close(walk);
    free(walk);
}

static void join_folder(void *user, const void *result)
{
    struct pstk__folder_walk *walk = *(struct pstk__folder_walk *const *)result;
    join_walk(user, walk);
    drop_folder(&walk);
}

/* Report progress of an unknown total of bytes. */
static int add_progress(void *user, uint64_t n)
{
    const struct work *work = user;
    return pstk__index_build_advance(work->build, n, 0);
}

/* ---- building -------------------------------------------------------------------------------- */

static void begin_fields(struct pstk__inferred_schema *found, enum pstk__folder_layout layout)
{
    *found = (struct pstk__inferred_schema){.n_fields = layout == PSTK__FOLDER_CLASSES ? 3 : 2};
    found->facts[PSTK__FACT_LAYOUT] = layout;
    found->facts[PSTK__FACT_DIGEST] = 1;
    found->facts[PSTK__FACT_DIGEST + 1] = 2;
    struct pstk__index_field *field = found->fields;
    *field++ = (struct pstk__index_field){.field = {.name = "image", .kind = PSTK_FIELD_IMAGE}};
    if (layout == PSTK__FOLDER_CLASSES)
        *field++ = (struct pstk__index_field){
            .field = {.name = "label", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_I64}};
    *field = (struct pstk__index_field){.field = {.name = "path", .kind = PSTK_FIELD_UTF8}};
}

/* List the folder itself. */
static int walk_top(struct work *work, enum pstk__folder_images images, struct pstk_error *err)
{
    pstk__folder_walk_close(&work->top);
    pstk__texts_close(&work->folders);
    work->top.err = err;
    return pstk__folder_walk_one(&work->top, ".", images, &work->folders);
}

static int run_map(struct work *work, struct pstk_error *err)
{
    const struct pstk__parallel_map map = {.what = "index",
                                           .n_jobs = work->folders.n,
                                           .n_threads = pstk__indexed_threads(work->opening),
                                           .result_size = sizeof(struct pstk__folder_walk *),
                                           .user = work,
                                           .run = walk_folder,
                                           .join = join_folder,
                                           .drop = drop_folder,
                                           .progress = add_progress};
    return pstk__index_build_result(work->build, pstk__parallel_map_run(&map, err));
}

/* The build callback of store/index/location.h. */
static int build(void *user, struct pstk__index_build *build)
{
    struct work *work = user;
    struct pstk__inferred_schema *found = &build->found;
    struct pstk_error *err = build->err;
    work->build = build;
    begin_fields(found, work->layout);
    work->top.progress = add_progress;
    work->top.user = work;
    int r = walk_top(
        work, work->layout == PSTK__FOLDER_FLAT ? PSTK__FOLDER_TAKE : PSTK__FOLDER_COUNT, err);
    if (r == 0)
        join_walk(work, &work->top);
    found->facts[PSTK__FACT_LEFT_OUT] = work->top.n_counted;
    if (r == 0)
        r = build->code;
    if (r == 0 && work->folders.n > 0)
        r = run_map(work, err);
    if (r == PSTK_ECANCELED)
        return pstk__fail(err, r, PSTK_STAGE_OPEN, "indexing %s was canceled; nothing was saved",
                          work->opening->path);
    if (r == 0 && build->n_joined == 0)
        r = pstk__fail(err, PSTK_ENODATA, PSTK_STAGE_OPEN,
                       "%s holds no images: neither it nor its subfolders have a %s",
                       work->opening->path,
                       work->top.by_content ? "file that begins as a JPEG or PNG file does"
                                            : ".jpg, .jpeg or .png file");
    if (r == 0 && work->layout == PSTK__FOLDER_CLASSES &&
        pstk__texts_copy(&build->classes, &work->folders) < 0)
        r = pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the index of %s",
                       work->opening->path);
    if (found->facts[PSTK__FACT_ODD])
        found->fields[found->n_fields - 1].field.kind = PSTK_FIELD_BYTES;
    found->max_record = found->fields[PSTK__FIELD_OF_IMAGE].max_size + found->facts[PSTK__FACT_MAX];
    return r;
}

/* ---- is it as it was? ------------------------------------------------------------------------ */

/* The differs callback of store/index/location.h: returns why the directories differ from the
 * index, or NULL. */
static const char *differs(void *user, const struct pstk__index *index)
{
    const struct work *work = user;
    char path[PATH_MAX];
    for (uint32_t i = 0; i < index->n_files; i++) {
        const char *name = pstk__texts_get(&index->names, i);
        struct pstk__store_entry entry;
        const int n = snprintf(path, sizeof path, "%s/%s", work->opening->path, name);
        if (n < 0 || (size_t)n >= sizeof path ||
            work->opening->store->look(work->opening->store, path, &entry) < 0 ||
            entry.kind != PSTK__STORE_FOLDER)
            return "a folder is missing";
        if (entry.changed_ns != index->files[i].changed_ns)
            return "a folder was changed";
    }
    return NULL;
}

int pstk__folder_location_of(struct pstk__folder_location *to, const struct pstk__opening *opening,
                             enum pstk__folder_layout layout, struct pstk_error *err)
{
    const uint64_t version = (uint64_t)PSTK__INDEX_VERSION << 32 | VERSION << 8 | layout;
    if (!realpath(opening->path, to->root))
        return pstk__fail_errno(err, errno, PSTK_STAGE_OPEN, "cannot open %s", opening->path);
    memcpy(to->parent, to->root, sizeof to->root);
    char *slash = strrchr(to->parent, '/');
    slash[slash == to->parent] = 0;
    const struct pstk_foreign *foreign = opening->foreign;
    to->location =
        (struct pstk__index_location){.data = layout == PSTK__FOLDER_FLAT ? to->root : to->parent,
                                      .cache = foreign ? foreign->cache_path : NULL,
                                      .format = pstk__format_folder.name,
                                      .key = {1, 2},
                                      .path_digest = {1, 2}};
    const char *name = layout == PSTK__FOLDER_FLAT ? "" : strrchr(to->root, '/') + 1;
    pstk__index_digest(to->location.key, &version, sizeof version);
    pstk__index_digest(to->location.key, name, strlen(name));
    if (foreign && foreign->by_content) /* conditional, so that indexes without it stay in use */
        pstk__index_digest(to->location.key, &foreign->by_content, sizeof foreign->by_content);
    pstk__index_digest(to->location.path_digest, to->root, strlen(to->root));
    return 0;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Choose class folders if a folder below the top has an image. */
static int find_layout(struct work *work, struct pstk_error *err)
{
    int r = walk_top(work, PSTK__FOLDER_SKIP, err);
    int found = 0;
    for (uint64_t i = 0; r == 0 && !found && i < work->folders.n; i++) {
        r = pstk__folder_has_image(&work->top, pstk__texts_get(&work->folders, i));
        found = r > 0;
        r = r > 0 ? 0 : r;
    }
    work->layout = found ? PSTK__FOLDER_CLASSES : PSTK__FOLDER_FLAT;
    return r;
}

/* Choose the layout, and open its index, or build that if none fits. */
static int make_index(struct pstk__index **out, struct work *work, struct pstk_error *err)
{
    const struct pstk_foreign *foreign = work->opening->foreign;
    struct pstk__folder_location location;
    int r = find_layout(work, err);
    if (r == 0)
        r = pstk__folder_location_of(&location, work->opening, work->layout, err);
    if (r < 0)
        return r;
    const struct pstk__index_work index_work = {
        .user = work, .differs = differs, .build = build, .watch = pstk__index_watch_of(foreign)};
    return pstk__index_get(out, &location.location, &index_work, err);
}

int pstk__folder_get_index(struct pstk__index **out, const struct pstk__opening *opening,
                           struct pstk_error *err)
{
    struct work *work = calloc(1, sizeof *work);
    int r = 0;
    *out = NULL;
    if (!work)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to open %s", opening->path);
    work->opening = opening;
    work->top.store = opening->store;
    work->top.root = opening->path;
    work->top.by_content = opening->foreign ? opening->foreign->by_content : 0;
    const struct pstk__index_work looking = {.user = work, .differs = differs};
    for (uint32_t layout = 0; r == 0 && !*out && layout < PSTK__FOLDER_LAYOUTS; layout++) {
        struct pstk__folder_location location;
        r = pstk__folder_location_of(&location, opening, layout, err);
        if (r == 0)
            r = pstk__index_find_fitting(out, &location.location, &looking, err);
    }
    if (r == 0 && !*out)
        r = make_index(out, work, err);
    pstk__folder_walk_close(&work->top);
    pstk__texts_close(&work->folders);
    free(work);
    return r;
}
