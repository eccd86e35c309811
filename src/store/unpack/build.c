/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An index (index/) holds a row for each file. The builder makes points under the lock of that
 * index, and the index says which access points files are valid.
 */
#include "store/unpack/build.h"

#include "base/parallel_map.h"
#include "base/error.h"
#include "store/index/location.h"
#include "store/sidecar.h"
#include "store/unpack/pass.h"
#include "store/unpack/whole.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Columns of a row. */
enum { UNPACKED, PACKING, POINTS_SIZE, HEAD_CRC, IS_CHECKED, N_COLUMNS };

struct work {
    struct pstk__packed_files *table;
    const struct pstk__unpack_files *files;
    struct pstk__index_build *build; /* the build in progress, borrowed: n_done bytes, n_joined
                                        files */
    int dir;                         /* folder where points are made, owned; -1: none yet */
    uint64_t n_bad;                  /* number of damaged files that were passed on */
    uint8_t *is_new; /* for each file 1: its points were made where none existed; owned; each byte
                        is private to its job until the map has ended */
};

/* ---- what a file is -------------------------------------------------------------------------- */

/* Find the packing of a file by its first bytes. Returns its number, 0: not compressed, or <0. */
static int look_at(const struct pstk__unpack_files *files, const char *path, struct pstk_error *err)
{
    uint8_t head[64];
    struct pstk__file file;
    const int r = files->store->open(files->store, &file, path);
    if (r < 0)
        return pstk__fail_errno(err, -r, PSTK_STAGE_OPEN, "cannot open %s", path);
    const int64_t n = pstk__file_read(&file, head, sizeof head, 0);
    pstk__file_end(&file);
    if (n < 0)
        return pstk__fail_errno(err, (int)-n, PSTK_STAGE_OPEN, "cannot read %s", path);
    return files->is_plain && files->is_plain(head, (uint64_t)n)
               ? 0
               : (int)pstk__packing_find(head, (uint64_t)n);
}

int pstk__unpack_is_needed(const struct pstk__unpack_files *files, struct pstk_error *err)
{
    uint64_t first = UINT64_MAX, unpacked;
    uint32_t known = 0;
    for (uint64_t i = 0; files->known && !known && i < files->names->n; i++)
        files->known(files->known_user, i, &known, &unpacked);
    if (files->known)
        return known != 0;
    for (uint64_t i = 0; i < files->names->n; i++) {
        if (pstk__packing_named(pstk__texts_get(files->names, i)))
            return 1;
        if (first == UINT64_MAX && files->sizes[i] > 0)
            first = i;
    }
    char path[PATH_MAX];
    if (first == UINT64_MAX || snprintf(path, sizeof path, "%s/%s", files->folder,
                                        pstk__texts_get(files->names, first)) >= PATH_MAX)
        return 0;
    const int r = look_at(files, path, err);
    return r > 0 ? 1 : r;
}

/* Fail because a file has the name of a compressed file, but is not compressed. */
static int fail_named(const struct pstk__pass *pass, struct pstk_error *err)
{
    const struct pstk__packing *named = pstk__packing_of(pstk__packing_named(pass->name));
    pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
               "%s: byte 0: it does not begin as a %s file does, as its name says: it is damaged; "
               "copy it again, or rename it if it is not compressed",
               pass->path, named->name);
    return pstk__fail_at(err, PSTK_EBADMSG, pass->name, PSTK_NONE, 0, 0);
}

/* Find the packing of a file. Returns its number, 0: not compressed, or <0. Also sets
 * packed->of.unpacked if it is known. */
static int packing_of(const struct pstk__unpack_files *files, uint64_t i, const char *path,
                      struct pstk__packed *packed, struct pstk_error *err)
{
    uint32_t packing = 0;
    if (!files->known)
        return look_at(files, path, err);
    files->known(files->known_user, i, &packing, &packed->of.unpacked);
    return (int)packing;
}

/* A progress callback of struct pstk__whole_job. Counts nothing, because the bytes were counted
 * before. */
static int is_canceled(void *user, uint64_t n)
{
    const struct pstk__pass *pass = user;
    (void)n;
    return pass->progress(pass->user, 0);
}

/* Find the unpacked bytes of a file that will be unpacked into the cache. */
static int measure(const struct work *work, struct pstk__pass *pass, struct pstk__packed *packed,
                   struct pstk_error *err)
{
    if (!work->table->cache_path)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "%s has a zstd frame that unpacks to more than 8 MiB, so it is unpacked "
                          "once, into the cache; no folder for caches is set: set cache_path, or "
                          "unpack the file by zstd -d",
                          pass->path);
    struct pstk__whole_job job = {.store = pass->store,
                                  .path = pass->path,
                                  .name = pass->name,
                                  .packing = pass->of.packing,
                                  .size = pass->of.size,
                                  .changed_ns = pass->of.changed_ns,
                                  .unpacked = PSTK_NONE,
                                  .progress = is_canceled,
                                  .user = pass};
    const int r = pstk__whole_unpack(&job, err);
    packed->of.unpacked = job.unpacked;
    packed->is_checked = job.is_checked != 0;
    return r;
}

/* Describe file `job`, on a thread of the map. *result: its struct pstk__packed. */
static int pass_file(void *state, uint64_t job, const struct pstk__map_sink *sink, void *result,
                     struct pstk_error *err)
{
    const struct work *work = state;
    const struct pstk__packed_files *table = work->table;
    struct pstk__packed *packed = result;
    char path[PATH_MAX], points[PATH_MAX];
    struct pstk__pass pass = {.store = table->store,
                              .path = path,
                              .name = pstk__texts_get(&table->names, job),
                              .points = points,
                              .points_dir = work->dir,
                              .of = table->at[job].of,
                              .progress = sink->progress,
                              .user = sink->user};
    if (pstk__packed_path(table, job, path, sizeof path) < 0 ||
        pstk__packed_access_points(table, job, points, sizeof points) < 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "the path is too long: %.400s...",
                          path);
    *packed = (struct pstk__packed){.of = pass.of};
    const int packing = packing_of(work->files, job, path, packed, err);
    if (packing < 0)
        return packing;
    if (packing == 0) {
        if (pstk__packing_named(pass.name))
            return fail_named(&pass, err);
        return sink->progress(sink->user, pass.of.size) ? PSTK_ECANCELED : 0;
    }
    packed->of.packing = pass.of.packing = (uint32_t)packing;
    /* The file is unpacked when it is first read. Whether all frames of zstd have checksums is
     * unknown until then. */
    packed->is_checked = packing == PSTK__WHOLE_BZIP2;
    if (work->files->known && packing != 1)
        return sink->progress(sink->user, pass.of.size) ? PSTK_ECANCELED : 0;
    const int had =
        faccessat(work->dir, pstk__sidecar_name(points), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    const int r = pstk__pass_run(&pass, err);
    work->is_new[job] = r == 0 && !had;
    if (r > 0)
        return measure(work, &pass, packed, err);
    *packed = (struct pstk__packed){.of = pass.of,
                                    .points_size = pass.points_size,
                                    .head_crc = pass.head_crc,
                                    .is_checked = pass.is_checked != 0};
    return r;
}

/* As pass_file, but pass on a damaged file instead of failing the map. */
static int pass_file_or_tell(void *state, uint64_t job, const struct pstk__map_sink *sink,
                             void *result, struct pstk_error *err)
{
    const struct work *work = state;
    struct pstk_error bad;
    pstk_error_init(&bad, sizeof bad);
    const int r = pass_file(state, job, sink, result, &bad);
    if (r == 0 || r == PSTK_ECANCELED)
        return r;
    if (r != PSTK_EBADMSG && r != PSTK_EIO && r != PSTK_ENOENT && r != PSTK_EACCES)
        return pstk__fail_copy(err, &bad);
    if (!bad.shard[0])
        pstk__fail_at(&bad, r, pstk__texts_get(&work->table->names, job), PSTK_NONE, bad.offset,
                      bad.length);
    return sink->bad(sink->user, &bad) ? PSTK_ECANCELED : 0;
}

/* ---- building -------------------------------------------------------------------------------- */

static int hand_on(void *user, const struct pstk_error *bad)
{
    struct work *work = user;
    work->n_bad++;
    return work->files->on_bad(work->files->bad_user, bad);
}

static int add_progress(void *user, uint64_t n)
{
    const struct work *work = user;
    return pstk__index_build_advance(work->build, n, work->table->n_bytes);
}

/* Add the result of a job to the index, in the order of the files, on the caller's thread. */
static void join_file(void *user, const void *result)
{
    const struct work *work = user;
    struct pstk__index_build *build = work->build;
    const struct pstk__packed *packed = result;
    const uint64_t i = build->n_joined++;
    const uint64_t cells[N_COLUMNS] = {[UNPACKED] = packed->of.unpacked,
                                       [PACKING] = packed->of.packing,
                                       [POINTS_SIZE] = packed->points_size,
                                       [HEAD_CRC] = packed->head_crc,
                                       [IS_CHECKED] = packed->is_checked};
    struct pstk__index_rows rows = {.n_columns = N_COLUMNS};
    if (build->code == 0 && pstk__index_rows_add(&rows, cells) < 0)
        build->code = pstk__fail(build->err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                                 "no memory for the files of %s", work->table->folder);
    if (build->code == 0)
        build->code =
            pstk__index_writer_add(build->writer, pstk__texts_get(&work->table->names, i),
                                   packed->of.size, packed->of.changed_ns, &rows, build->err);
    pstk__index_rows_close(&rows);
}

/* Remove the points that a failed build made. Points that existed before stay, because another
 * index may use them, such as the index of one file of the folder. */
static void remove_new(const struct work *work)
{
    char path[PATH_MAX];
    for (uint64_t i = 0; i < work->table->names.n; i++)
        if (work->is_new[i] && pstk__packed_access_points(work->table, i, path, sizeof path) == 0)
            unlinkat(work->dir, pstk__sidecar_name(path),
                     0); /* a file that stays only wastes room */
    memset(work->is_new, 0, work->table->names.n);
}

/* Read all files from begin to end. */
static int read_all(struct work *work, struct pstk_error *err)
{
    const struct pstk__parallel_map map = {.what = "unpack",
                                           .n_jobs = work->table->names.n,
                                           .n_threads = work->files->n_threads,
                                           .result_size = sizeof(struct pstk__packed),
                                           .user = work,
                                           .run =
                                               work->files->on_bad ? pass_file_or_tell : pass_file,
                                           .join = join_file,
                                           .bad = hand_on,
                                           .progress = add_progress};
    int r = pstk__index_build_result(work->build, pstk__parallel_map_run(&map, err));
    if (r == PSTK_ECANCELED)
        r = pstk__fail(err, r, PSTK_STAGE_OPEN,
                       "indexing the compressed files of %s was canceled; nothing was saved",
                       work->table->folder);
    if (r == 0 && work->n_bad)
        r = pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                       "%llu compressed files of %s are damaged: no sample can be read",
                       (unsigned long long)work->n_bad, work->table->folder);
    return r;
}

/* The build callback of store/index/location.h. */
static int build(void *user, struct pstk__index_build *build)
{
    struct work *work = user;
    struct pstk__inferred_schema *found = &build->found;
    struct pstk_error *err = build->err;
    /* An index needs a field: this one has only a name. */
    found->n_fields = 1;
    snprintf(found->fields[0].field.name, sizeof found->fields[0].field.name, "unpacked");
    found->fields[0].field.kind = PSTK_FIELD_BYTES;
    if (work->dir >= 0) { /* an earlier build could not write its index */
        remove_new(work);
        close(work->dir);
    }
    work->dir = fcntl(pstk__index_writer_dir(build->writer), F_DUPFD_CLOEXEC, 0);
    if (work->dir < 0)
        return pstk__fail_errno(err, errno, PSTK_STAGE_OPEN, "cannot open the folder of %s",
                                pstk__index_writer_path(build->writer));
    work->build = build;
    work->n_bad = 0;
    int r = pstk__packed_set_folder(work->table, pstk__index_writer_path(build->writer), err);
    if (r < 0)
        return r;
    pstk__sidecar_remove_left(work->dir, PSTK__SIDECAR_POINTS, PSTK__SIDECAR_DEAD_SECONDS);
    r = read_all(work, err);
    if (r < 0)
        remove_new(work);
    return r;
}

/* ---- what was found before ------------------------------------------------------------------- */

/* Copy the rows of an index into the table. 0, or -1: the index is damaged, or cannot be read. */
static int take_rows(struct pstk__packed_files *table, const struct pstk__index *index)
{
    struct pstk__file file = {.fd = -1};
    char path[PATH_MAX];
    int r = pstk__index_file_path(index, path, sizeof path) < 0 ||
                    table->store->open(table->store, &file, path) < 0
                ? -1
                : 0;
    for (uint32_t i = 0; r == 0 && i < index->n_files; i++) {
        _Alignas(64) uint8_t page[PSTK__INDEX_TABLE_PAGE];
        const struct pstk__index_table *rows = &index->files[i].table;
        struct pstk__packed *packed = &table->at[i];
        if (rows->n_rows != 1 || rows->n_columns != N_COLUMNS ||
            pstk__file_read(&file, page, sizeof page, index->files[i].pages) != sizeof page ||
            pstk__index_table_check(rows, i, 0, page)) {
            r = -1;
            break;
        }
        packed->of.packing = (uint32_t)pstk__index_table_get(rows, page, 0, PACKING);
        packed->of.unpacked = pstk__index_table_get(rows, page, 0, UNPACKED);
        packed->points_size = pstk__index_table_get(rows, page, 0, POINTS_SIZE);
        packed->head_crc = (uint32_t)pstk__index_table_get(rows, page, 0, HEAD_CRC);
        packed->is_checked = pstk__index_table_get(rows, page, 0, IS_CHECKED) == 1;
        if (packed->of.packing > PSTK__N_WHOLE || packed->of.unpacked >= 1ull << 60 ||
            (packed->of.packing == 1 && packed->points_size == 0) ||
            (packed->of.packing > PSTK__N_PACKINGS && packed->points_size))
            r = -1;
    }
    pstk__file_end(&file);
    return r;
}

/* 1: every compressed file has its points. */
static int has_points(const struct pstk__packed_files *table)
{
    for (uint64_t i = 0; i < table->names.n; i++) {
        char path[PATH_MAX];
        struct stat st;
        const struct pstk__packed *packed = &table->at[i];
        if (packed->of.packing && !pstk__packed_is_cached(packed) &&
            (pstk__packed_access_points(table, i, path, sizeof path) < 0 || lstat(path, &st) < 0 ||
             !S_ISREG(st.st_mode) || (uint64_t)st.st_size != packed->points_size ||
             !pstk__index_trusts(st.st_uid, table->data_owner)))
            return 0;
    }
    return 1;
}

/* The differs callback of store/index/location.h: returns why the points do not fit the current
 * files. */
static const char *differs(void *user, const struct pstk__index *index)
{
    const struct work *work = user;
    const struct pstk__unpack_files *files = work->files;
    const char *why = pstk__index_differs(index, files->names, files->sizes, files->changed_ns);
    if (why)
        return why;
    return pstk__packed_set_folder(work->table, index->path, NULL) < 0 ||
                   take_rows(work->table, index) < 0 || !has_points(work->table)
               ? "points are missing"
               : NULL;
}

/* Digest all that points depend on, except the sizes and times of the files. */
static void digest_key(const struct pstk__unpack_files *files, uint64_t key[2])
{
    const uint64_t version = PSTK__ACCESS_POINTS_VERSION;
    key[0] = 7;
    key[1] = 8;
    pstk__index_digest(key, files->format, strlen(files->format));
    pstk__index_digest(key, &version, sizeof version);
    pstk__index_digest(key, files->names->bytes, files->names->size);
    for (uint64_t i = 0; files->known && i < files->names->n; i++) {
        uint32_t packing = 0;
        uint64_t known[2] = {0};
        files->known(files->known_user, i, &packing, &known[1]);
        known[0] = packing;
        pstk__index_digest(key, known, sizeof known);
    }
}

int pstk__unpack_build(struct pstk__packed_files *table, const struct pstk__unpack_files *files,
                       struct pstk_error *err)
{
    struct pstk__index *index;
    struct work work = {.table = table, .files = files, .dir = -1};
    struct pstk__index_location location = {
        .data = files->folder,
        .cache = files->cache,
        .format = "points",
        .path_digest = {table->path_digest[0], table->path_digest[1]}};
    digest_key(files, location.key);
    work.is_new = calloc(table->names.n + 1, 1);
    if (!work.is_new)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the files of %s",
                          table->folder);
    const struct pstk__index_work index_work = {
        .user = &work, .differs = differs, .build = build, .watch = files->watch};
    int r = pstk__index_get(&index, &location, &index_work, err);
    if (r < 0 && work.dir >= 0)
        remove_new(&work); /* no index could be written for these points */
    if (work.dir >= 0)
        close(work.dir);
    free(work.is_new);
    if (r < 0)
        return r;
    r = pstk__packed_set_folder(table, index->path, err);
    if (r == 0 && take_rows(table, index) < 0)
        r = pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                       "%s is damaged: remove it, and it is made again", index->path);
    pstk__index_close(index);
    return r;
}
