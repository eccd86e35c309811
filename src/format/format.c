/* SPDX-License-Identifier: Apache-2.0 */
#include "format/format.h"

#include "base/error.h"
#include "format/arrays/arrays.h"
#include "format/folder/folder.h"
#include "format/mds/mds.h"
#include "format/megatron/megatron.h"
#include "format/pstk/pstk.h"
#include "format/tar/tar.h"
#include "format/tfrecord/tfrecord.h"

#include <stddef.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The record formats there are, the first that knows a path wins: folder is the last, because a
 * folder of anything may hold an image, too. */
static const struct pstk__format *const formats[] = {
    &pstk__format_pstk,     &pstk__format_arrays,   &pstk__format_mds,   &pstk__format_tar,
    &pstk__format_tfrecord, &pstk__format_megatron, &pstk__format_folder};

#define N_FORMATS (sizeof formats / sizeof formats[0])

/* ---- finding and opening --------------------------------------------------------------------- */

/* "a directory with A, or with B": the form of data sets. */
static const char *describe(char text[512])
{
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < N_FORMATS && used < 512; i++) {
        const int n =
            snprintf(text + used, 512 - used, "%s%s", i ? ", or with " : "", formats[i]->needs);
        used += n > 0 ? (size_t)n : 0;
    }
    return text;
}

/* The same for files that are data sets: ", or a .npy, ... file". */
static const char *describe_files(char text[256])
{
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < N_FORMATS && used < 256; i++) {
        const int n = formats[i]->files
                          ? snprintf(text + used, 256 - used, ", or a %s", formats[i]->files)
                          : 0;
        used += n > 0 ? (size_t)n : 0;
    }
    return text;
}

/* Return 1 when a writer is at work in the directory, or was killed there. */
static int is_unfinished(const char *path)
{
    char journal[PATH_MAX];
    const int n = snprintf(journal, sizeof journal, "%s/%s", path, PSTK__JOURNAL_FILE);
    return n > 0 && (size_t)n < sizeof journal && access(journal, F_OK) == 0;
}

/* Why no format knows `path`. */
static int fail_unknown(const char *path, struct pstk_error *err)
{
    struct stat st;
    char known[512], files[256];
    if (stat(path, &st) < 0)
        return errno == ENOENT || errno == ENOTDIR
                   ? pstk__fail(err, PSTK_ENOENT, PSTK_STAGE_OPEN, "no such file or directory: %s",
                                path)
                   : pstk__fail_errno(err, errno, PSTK_STAGE_OPEN, "cannot open %s", path);
    size_t n = strlen(path);
    if (S_ISDIR(st.st_mode) && is_unfinished(path))
        return pstk__fail(err, PSTK_ENOENT, PSTK_STAGE_OPEN,
                          "%s is not a data set: its writer is at work, or was killed; wait for "
                          "it, or pack again to the same place",
                          path);
    if (S_ISDIR(st.st_mode))
        return pstk__fail(err, PSTK_ENOENT, PSTK_STAGE_OPEN,
                          "%s is not a data set; must be a directory with %s", path,
                          describe(known));
    if (n >= 5 && strcmp(path + n - 5, ".pstk") == 0)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "%s is one shard of a data set; name the directory that holds it", path);
    return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                      "%s is a file; must be a directory with %s%s", path, describe(known),
                      describe_files(files));
}

int pstk__format_find(const struct pstk__format **out, const struct pstk__store *store,
                      const char *path, struct pstk_error *err)
{
    *out = NULL;
    for (size_t i = 0; i < N_FORMATS; i++) {
        const int rc = formats[i]->probe(store, path, err);
        if (rc < 0)
            return rc;
        if (rc > 0) {
            *out = formats[i];
            return 0;
        }
    }
    return fail_unknown(path, err);
}

const char *pstk_find_format(const char *path, struct pstk_error *err)
{
    const struct pstk__format *format;
    if (!path || !path[0]) {
        pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                   "path: value is empty; must be the path of a data set");
        return NULL;
    }
    return pstk__format_find(&format, pstk__store_of(path), path, err) < 0 ? NULL : format->name;
}

/* Of the struct before it had cache_size. */
#define FOREIGN_SIZE_MIN offsetof(struct pstk_foreign, cache_size)
#define CACHE_SIZE_MIN (1u << 20) /* less is a mistake: entries have 8 KiB and more */

int pstk__foreign_check(const struct pstk_foreign *foreign, struct pstk_error *err)
{
    if (!foreign)
        return 0;
    if (foreign->size < FOREIGN_SIZE_MIN || foreign->size > sizeof *foreign ||
        foreign->field_size != sizeof(struct pstk_field))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "foreign: its size or field_size is not set, or is that of another "
                          "version; set them by sizeof");
    if (foreign->n_fields > PSTK_MAX_FIELDS || (foreign->n_fields && !foreign->fields))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "foreign.n_fields: value is %u; must be at most %u, the number of "
                          "elements of fields",
                          foreign->n_fields, PSTK_MAX_FIELDS);
    for (uint32_t i = 0; i < foreign->n_fields; i++)
        if (!memchr(foreign->fields[i].name, 0, PSTK_MAX_NAME))
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                              "foreign.fields[%u].name: value is longer than %u bytes", i,
                              PSTK_MAX_NAME - 1);
    const uint64_t size = pstk__foreign_cache_size(foreign);
    if (size > 0 && size < CACHE_SIZE_MIN)
        return pstk__fail_setting(err, "foreign.cache_size", size,
                                  "0, for auto, or at least %u (bytes)", CACHE_SIZE_MIN);
    return 0;
}

uint64_t pstk__foreign_cache_size(const struct pstk_foreign *foreign)
{
    return foreign && foreign->size > FOREIGN_SIZE_MIN ? foreign->cache_size : 0;
}

int pstk__source_open(struct pstk__source **out, const char *path,
                      const struct pstk_foreign *foreign, struct pstk_error *err)
{
    *out = NULL;
    if (!path || !path[0])
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "path: value is empty; must be the path of a data set");
    const struct pstk__opening opening = {
        .store = pstk__store_of(path), .path = path, .foreign = foreign};
    const struct pstk__format *format;
    int r = pstk__foreign_check(foreign, err);
    if (r == 0)
        r = pstk__format_find(&format, opening.store, path, err);
    return r < 0 ? r : format->open(out, &opening, err);
}

void pstk__source_close(struct pstk__source *source)
{
    if (source)
        source->format->close(source);
}

/* ---- what absent functions mean -------------------------------------------------------------- */

void pstk__source_range(const struct pstk__source *source, uint32_t shard, uint64_t *first,
                        uint64_t *n)
{
    *first = 0;
    *n = source->n_samples;
    if (source->format->range)
        source->format->range(source, shard, first, n);
}

int pstk__source_has_covers(const struct pstk__source *source)
{
    uint32_t n = 0;
    while (n < source->schema.n_fields && pstk__source_cover(source, n))
        n++;
    return n == source->schema.n_fields;
}

uint64_t pstk__source_max_read(const struct pstk__source *source, uint64_t fields)
{
    if (source->format->read_size)
        return source->format->read_size(source, fields, 1);
    if (!source->format->n_extents)
        return source->limits.max_size;
    uint64_t size = 0; /* at most 64 times 2^32-1 */
    for (uint32_t i = 0; i < source->schema.n_fields; i++)
        size += fields >> i & 1 ? source->limits.max_stored[i] : 0;
    return size;
}

uint64_t pstk__source_mean_read(const struct pstk__source *source, uint64_t fields)
{
    if (source->format->read_size)
        return source->format->read_size(source, fields, 0);
    uint64_t bytes = source->format->n_extents ? 0 : source->bytes; /* of 64 fields below 2^44 */
    for (uint32_t i = 0; source->format->n_extents && i < source->schema.n_fields; i++)
        bytes += fields >> i & 1 ? source->stats[i].stored_bytes : 0;
    return source->n_samples ? bytes / source->n_samples : 0;
}

const char *pstk__source_file_name(const struct pstk__source *source, uint32_t file,
                                   char buffer[PSTK__MAX_SHOWN])
{
    if (source->format->part)
        source = source->format->part(source, &file);
    if (source->format->file_shown) {
        source->format->file_shown(source, file, buffer, PSTK__MAX_SHOWN);
        return buffer;
    }
    const char *name = source->format->file_name ? source->format->file_name(source, file) : NULL;
    return name ? name : source->path;
}

int pstk__source_file_path(const struct pstk__source *source, uint32_t file, char *path,
                           size_t size)
{
    if (source->format->part)
        source = source->format->part(source, &file);
    if (source->format->file_path)
        return source->format->file_path(source, file, path, size);
    const char *name = source->format->file_name ? source->format->file_name(source, file) : NULL;
    const int n = name ? snprintf(path, size, "%s/%s", source->path, name)
                       : snprintf(path, size, "%s", source->path);
    return n < 0 || (size_t)n >= size ? PSTK_EINVAL : 0;
}

int pstk__source_stands(const struct pstk__source *source, struct pstk_error *err)
{
    return source->format->stands ? source->format->stands(source, err) : 0;
}
