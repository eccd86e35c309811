/* SPDX-License-Identifier: Apache-2.0 */
#include "format/format.h"

#include "base/error.h"
#include "format/arrays/array.h"
#include "format/arrays/arrays.h"
#include "format/coding.h"
#include "format/folder/folder.h"
#include "format/mds/mds.h"
#include "format/megatron/megatron.h"
#include "format/pstk/pstk.h"
#include "format/rivals.h"
#include "format/tar/tar.h"
#include "format/tfrecord/tfrecord.h"
#include "format/unknown.h"

#include <stddef.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The record formats. The first that knows a path wins: folder is the last, because a folder of
 * anything may hold an image, too. */
static const struct pstk__format *const formats[] = {
    &pstk__format_pstk,     &pstk__format_mds,      &pstk__format_arrays, &pstk__format_tar,
    &pstk__format_tfrecord, &pstk__format_megatron, &pstk__format_table,  &pstk__format_folder};

#define N_FORMATS (sizeof formats / sizeof formats[0])

/* ---- finding and opening --------------------------------------------------------------------- */

/* Write "A, B, or C": the required contents of a directory. */
static const char *describe(char text[512])
{
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < N_FORMATS && used < 512; i++) {
        const int n = snprintf(text + used, 512 - used, "%s%s",
                               i == 0              ? ""
                               : i + 1 < N_FORMATS ? ", "
                                                   : ", or ",
                               formats[i]->needs);
        used += n > 0 ? (size_t)n : 0;
    }
    return text;
}

/* Write ", or a .npy, ... file": the files that are data sets. */
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

/* A pstk__unknown_find_fn. */
static const char *name_of(const struct pstk__store *store, const char *path)
{
    for (size_t i = 0; i < N_FORMATS; i++)
        if (formats[i]->probe(store, path, NULL) > 0)
            return formats[i]->name;
    return NULL;
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
            const int r = formats[i]->has_directory
                              ? 0
                              : pstk__rivals_check(formats[i], formats + i + 1, N_FORMATS - i - 1,
                                                   store, path, err);
            *out = r < 0 ? NULL : formats[i];
            return r;
        }
    }
    char known[512], files[256];
    return pstk__unknown_fail(store, path, describe(known), describe_files(files), name_of, err);
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

#define CACHE_SIZE_MIN (1u << 20) /* a smaller one is a mistake: entries have 8 KiB and more */

static int fail_list(const struct pstk_first_of *list, const char *must_be, struct pstk_error *err)
{
    return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                      "fields: value is '%.200s' for '%.63s'; %s", list->suffixes, list->name,
                      must_be);
}

/* 1: `suffix` is in a list of `n` bytes. */
static int list_has(const char *list, size_t n, const char *suffix, size_t size)
{
    for (const char *at = list; at < list + n; at += strcspn(at, ";") + 1)
        if (strcspn(at, ";") == size && memcmp(at, suffix, size) == 0)
            return 1;
    return 0;
}

/* Check a list of suffixes: none of them may be in a list before it, or a field by itself. */
static int check_list(const struct pstk_foreign *foreign, uint32_t number, struct pstk_error *err)
{
    const struct pstk_first_of *list = &foreign->first_of[number];
    uint32_t n = 0;
    if (!list->name || !list->suffixes || !pstk__array_name_ok(list->name, strlen(list->name)))
        return pstk__fail(
            err, PSTK_EINVAL, PSTK_STAGE_OPEN,
            "foreign.first_of[%u]: name or suffixes is missing, or is not the name of a field",
            number);
    for (uint32_t i = 0; i < number; i++)
        if (strcmp(foreign->first_of[i].name, list->name) == 0)
            return fail_list(list, "must be the only list of that name", err);
    for (const char *at = list->suffixes;; at++) {
        const size_t size = strcspn(at, ";");
        if (!pstk__array_name_ok(at, size) || ++n > PSTK_MAX_FIRST_OF)
            return fail_list(list, "must be 2 to 8 suffixes with ; between them, as 'jpg;png'",
                             err);
        if (strcspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") < size)
            return fail_list(
                list, "must be in lower case, because readers compare suffixes in lower case", err);
        int is_twice = list_has(list->suffixes, (size_t)(at - list->suffixes), at, size);
        for (uint32_t i = 0; i < number; i++)
            is_twice |= list_has(foreign->first_of[i].suffixes,
                                 strlen(foreign->first_of[i].suffixes), at, size);
        for (uint32_t i = 0; i < foreign->n_fields; i++)
            is_twice |= strcmp(foreign->fields[i].name, list->name) != 0 &&
                        strlen(foreign->fields[i].name) == size &&
                        memcmp(foreign->fields[i].name, at, size) == 0;
        if (is_twice)
            return fail_list(
                list, "must name each suffix once, and no suffix that is a field of its own", err);
        at += size;
        if (!*at)
            break;
    }
    if (n < 2)
        return fail_list(list, "must be 2 to 8 suffixes with ; between them, as 'jpg;png'", err);
    int has_type = 0;
    for (uint32_t i = 0; i < foreign->n_fields; i++)
        has_type |= strcmp(foreign->fields[i].name, list->name) == 0;
    return pstk__coding_are_alike(list->suffixes, has_type)
               ? 0
               : fail_list(list,
                           "its suffixes have different types; must have one type (or give the "
                           "field a type, unless a suffix is npy)",
                           err);
}

static int check_defaults(const struct pstk_foreign *foreign, struct pstk_error *err)
{
    if (foreign->n_defaults > PSTK_MAX_FIELDS || (foreign->n_defaults && !foreign->defaults))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "foreign.n_defaults: value is %u; must be at most %u, the number of "
                          "elements of defaults",
                          foreign->n_defaults, PSTK_MAX_FIELDS);
    for (uint32_t i = 0; i < foreign->n_defaults; i++) {
        const struct pstk_default *given = &foreign->defaults[i];
        if (!given->name || (given->size && !given->data))
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                              "foreign.defaults[%u]: name or data is missing", i);
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(foreign->defaults[k].name, given->name) == 0)
                return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                                  "fields: value has two defaults for '%.63s'; must have one",
                                  given->name);
    }
    return 0;
}

int pstk__foreign_check(const struct pstk_foreign *foreign, struct pstk_error *err)
{
    int r = 0;
    if (!foreign)
        return 0;
    if (foreign->size != sizeof *foreign || foreign->field_size != sizeof(struct pstk_field))
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
    if (foreign->cache_size > 0 && foreign->cache_size < CACHE_SIZE_MIN)
        return pstk__fail_setting(err, "foreign.cache_size", foreign->cache_size,
                                  "0, for auto, or at least %u (bytes)", CACHE_SIZE_MIN);
    if (foreign->n_first_of > PSTK_MAX_FIELDS || (foreign->n_first_of && !foreign->first_of))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "foreign.n_first_of: value is %u; must be at most %u, the number of "
                          "elements of first_of",
                          foreign->n_first_of, PSTK_MAX_FIELDS);
    if (foreign->split_at > PSTK_SPLIT_LAST)
        return pstk__fail_setting(err, "foreign.split_at", foreign->split_at,
                                  "0, for auto, PSTK_SPLIT_FIRST or PSTK_SPLIT_LAST");
    if (foreign->by_content > 1)
        return pstk__fail_setting(err, "foreign.by_content", foreign->by_content, "0 or 1");
    if (foreign->damaged > PSTK_DAMAGED_ACCEPT)
        return pstk__fail_setting(err, "foreign.damaged", foreign->damaged,
                                  "0, to refuse, or PSTK_DAMAGED_ACCEPT");
    if (foreign->reserved)
        return pstk__fail_setting(err, "foreign.reserved", foreign->reserved, "0");
    for (uint32_t i = 0; r == 0 && i < foreign->n_first_of; i++)
        r = check_list(foreign, i, err);
    return r < 0 ? r : check_defaults(foreign, err);
}

int pstk__format_find_as(const struct pstk__format **out, const struct pstk__opening *opening,
                         struct pstk_error *err)
{
    const struct pstk__store *store = opening->store;
    struct pstk__store_entry entry;
    struct pstk_error own;
    if (!opening->foreign || !opening->foreign->by_content)
        return pstk__format_find(out, store, opening->path, err);
    pstk_error_init(&own, sizeof own);
    const int r = pstk__format_find(out, store, opening->path, &own);
    if ((r == PSTK_ENOENT || r == PSTK_ENOTSUP) && store->list && store->look &&
        store->look(store, opening->path, &entry) == 0 && entry.kind == PSTK__STORE_FOLDER)
        *out = &pstk__format_folder;
    return *out ? 0 : pstk__fail_copy(err, &own);
}

/* ---- settings that only some formats take ---------------------------------------------------- */

/* A setting that only one format takes. given: its name and value, or NULL: not set. Penstock's own
 * format takes all, because its data may have been packed with them. */
struct special {
    const char *(*given)(const struct pstk_foreign *foreign, char text[300]);
    const struct pstk__format *format;
    const char *must, *why; /* "must ..., because it is of the format ..., and ..." */
};

static const char *given_by_content(const struct pstk_foreign *foreign, char text[300])
{
    (void)text;
    return foreign->by_content ? "by_content: value is 1" : NULL;
}

static const char *given_split_at(const struct pstk_foreign *foreign, char text[300])
{
    (void)text;
    return foreign->split_at == PSTK_SPLIT_LAST ? "split_at: value is 'last'" : NULL;
}

static const char *given_first_of(const struct pstk_foreign *foreign, char text[300])
{
    if (!foreign->n_first_of)
        return NULL;
    snprintf(text, 300, "fields: value is '%.200s' for '%.63s'", foreign->first_of[0].suffixes,
             foreign->first_of[0].name);
    return text;
}

static const char *given_defaults(const struct pstk_foreign *foreign, char text[300])
{
    if (!foreign->n_defaults)
        return NULL;
    snprintf(text, 300, "fields: value has a default for '%.63s'", foreign->defaults[0].name);
    return text;
}

#define NO_SUFFIXES "only tar archives have members with suffixes"

static const struct special specials[] = {
    {given_by_content, &pstk__format_folder, "not be given", "no folder of images"},
    {given_split_at, &pstk__format_tar, "not be given", NO_SUFFIXES},
    {given_first_of, &pstk__format_tar, "be a type", NO_SUFFIXES},
    {given_defaults, &pstk__format_tfrecord, "have none", "only fields of TFRecord files have one"},
};

/* Refuse a setting that the format of `path` does not take. */
static int check_specials(const struct pstk__format *format, const char *path,
                          const struct pstk_foreign *foreign, struct pstk_error *err)
{
    char text[300];
    for (size_t i = 0; foreign && i < sizeof specials / sizeof specials[0]; i++) {
        const struct special *special = &specials[i];
        const char *given = special->given(foreign, text);
        if (given && format != special->format && format != &pstk__format_pstk)
            return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                              "%s; must %s, because %s is of the format %s, and %s", given,
                              special->must, path, format->name, special->why);
    }
    return 0;
}

uint64_t pstk__foreign_cache_size(const struct pstk_foreign *foreign)
{
    return foreign ? foreign->cache_size : 0;
}

int pstk__source_open(struct pstk__source **out, const char *path,
                      const struct pstk_foreign *foreign, struct pstk_error *err)
{
    return pstk__source_salvage(out, path, foreign, NULL, err);
}

int pstk__source_salvage(struct pstk__source **out, const char *path,
                         const struct pstk_foreign *foreign, const struct pstk__salvage *salvage,
                         struct pstk_error *err)
{
    *out = NULL;
    if (!path || !path[0])
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "path: value is empty; must be the path of a data set");
    const struct pstk__opening opening = {
        .store = pstk__store_of(path), .path = path, .foreign = foreign, .salvage = salvage};
    const struct pstk__format *format = NULL;
    int r = pstk__foreign_check(foreign, err);
    if (r == 0)
        r = pstk__format_find_as(&format, &opening, err);
    if (r == 0)
        r = check_specials(format, path, foreign, err);
    if (r == 0)
        r = format->open(out, &opening, err);
    if (r == 0)
        (*out)->accepts_damaged = foreign && foreign->damaged == PSTK_DAMAGED_ACCEPT;
    return r;
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
    uint64_t size = 0; /* max 64 times 2^32-1 */
    for (uint32_t i = 0; i < source->schema.n_fields; i++)
        size += fields >> i & 1 ? source->limits.max_stored[i] : 0;
    return size;
}

uint64_t pstk__source_mean_read(const struct pstk__source *source, uint64_t fields)
{
    if (source->format->read_size)
        return source->format->read_size(source, fields, 0);
    uint64_t bytes =
        source->format->n_extents ? 0 : source->bytes; /* at most 64 fields below 2^44 */
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
