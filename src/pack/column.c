/* SPDX-License-Identifier: Apache-2.0 */
/* column: adds a side column to a data set, or removes one. The directory is locked as by a writer,
 * and the new manifest is the last step. */
#include "pack/column_writer.h"

#include "base/error.h"
#include "base/file.h"
#include "format/format.h"
#include "format/arrays/npy.h"
#include "format/pstk/manifest_file.h"
#include "format/pstk/shard.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The values that are read from a .npy file at once, in bytes: 64 pages, whole values of any dtype.
 */
#define PIECE_SIZE (64 * PSTK__COLUMN_VALUES)

/* A column being added. */
struct adding {
    const struct pstk_new_column *column;
    struct pstk__staging staging;
    struct pstk__manifest manifest;
    uint32_t dtype;
    uint64_t n;      /* values */
    int fd;          /* column->file; -1: the values are in memory; owned */
    uint64_t offset; /* offset of value 0 in that file */
    uint8_t *buffer; /* owned; PIECE_SIZE bytes */
    uint64_t first;  /* number of the sample that is record 0 of the shard */
    pstk_progress_fn on_progress;
    void *user;
};

static void teardown(struct adding *adding)
{
    pstk__staging_close(&adding->staging);
    pstk__manifest_free(&adding->manifest);
    if (adding->fd >= 0)
        close(adding->fd);
    free(adding->buffer);
}

/* ---- values ------------------------------------------------------------------------------------
 */

/* Return the number of the first NaN of n values, or n. */
static uint64_t find_nan(const uint8_t *values, uint64_t n, uint32_t dtype)
{
    const uint32_t size = pstk_dtype_size(dtype);
    for (uint64_t i = 0; i < n; i++, values += size) {
        uint64_t bits = 0;
        memcpy(&bits, values, size);
        if (dtype == PSTK_F16    ? (bits & 0x7fff) > 0x7c00
            : dtype == PSTK_BF16 ? (bits & 0x7fff) > 0x7f80
            : dtype == PSTK_F32  ? (bits & 0x7fffffff) > 0x7f800000
                                 : (bits & INT64_MAX) > 0x7ff0000000000000)
            return i;
    }
    return n;
}

static int check_values(const struct adding *adding, const void *values, uint64_t first, uint64_t n,
                        struct pstk_error *err)
{
    const uint32_t dtype = adding->dtype;
    if (dtype != PSTK_F16 && dtype != PSTK_BF16 && dtype != PSTK_F32 && dtype != PSTK_F64)
        return 0;
    const uint64_t i = find_nan(values, n, dtype);
    return i == n ? 0
                  : pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_WRITE,
                               "column %s: the value of sample %" PRIu64
                               " is NaN; must be a number (replace it, for example by 0)",
                               adding->column->name, first + i);
}

/* Read n values of the file, from number `first` on, into the buffer. */
static int read_values(struct adding *adding, uint64_t first, uint64_t n, struct pstk_error *err)
{
    const uint64_t size = pstk_dtype_size(adding->dtype);
    const int64_t got =
        pstk__file_pread(adding->fd, adding->buffer, n * size, adding->offset + first * size);
    if (got == (int64_t)(n * size))
        return 0;
    if (got < 0)
        return pstk__fail_errno(err, (int)-got, PSTK_STAGE_READ, "%s: cannot be read",
                                adding->column->file);
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_READ,
                      "%s: the file ends before its %" PRIu64 " values; write it again",
                      adding->column->file, adding->n);
}

/* Return values of the current shard: pstk__column_values.get. */
static const void *get_values(void *user, uint64_t first, uint64_t n, struct pstk_error *err)
{
    struct adding *adding = user;
    const void *values = adding->buffer;
    first += adding->first;
    if (adding->fd < 0)
        values = (const uint8_t *)adding->column->values + first * pstk_dtype_size(adding->dtype);
    else if (read_values(adding, first, n, err) < 0)
        return NULL;
    if (check_values(adding, values, first, n, err) < 0)
        return NULL;
    if (adding->on_progress && adding->on_progress(adding->user, first + n, adding->n)) {
        pstk__fail(err, PSTK_ECANCELED, PSTK_STAGE_CONSUMER,
                   "column %s was stopped by its caller; %s is unchanged", adding->column->name,
                   adding->staging.path);
        return NULL;
    }
    return values;
}

/* ---- what is asked for --------------------------------------------------------------------------
 */

/* Open the .npy file, and find its dtype and number of values. */
static int open_file(struct adding *adding, struct pstk_error *err)
{
    const char *name = adding->column->file;
    struct pstk__array header;
    adding->buffer = malloc(PIECE_SIZE > PSTK__NPY_HEADER_MAX ? PIECE_SIZE : PSTK__NPY_HEADER_MAX);
    if (!adding->buffer)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "%s: out of memory", name);
    adding->fd = pstk__file_open(name);
    if (adding->fd < 0)
        return pstk__file_fail(err, -adding->fd, PSTK_STAGE_OPEN, name, name);
    const int64_t n = pstk__file_pread(adding->fd, adding->buffer, PSTK__NPY_HEADER_MAX, 0);
    if (n < 0)
        return pstk__fail_errno(err, (int)-n, PSTK_STAGE_READ, "%s: cannot be read", name);
    int r = pstk__npy_header_parse(&header, adding->buffer, (uint64_t)n, name, err);
    if (r < 0)
        return r;
    if (header.n_dims != 1)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "%s: the array has %u dimensions; must have one, with a value for each "
                          "sample: save array[:, 0] or the like",
                          name, header.n_dims);
    adding->dtype = header.dtype;
    adding->n = header.shape[0];
    adding->offset = header.offset;
    return 0;
}

static int check_column(const struct pstk_new_column *column, struct pstk_error *err)
{
    if (!column || column->size < sizeof *column)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "column->size: value is %u; must be sizeof(struct pstk_new_column)",
                          column ? column->size : 0);
    if (!column->name || !pstk__column_name_ok(column->name))
        return pstk__fail(
            err, PSTK_EINVAL, PSTK_STAGE_OPEN,
            "name: value is \"%.100s\"; must be 1 to %d of the characters A-Z a-z 0-9 "
            "_ . -",
            column->name ? column->name : "", PSTK_MAX_COLUMN_NAME - 1);
    if (column->file ? column->values || column->n || column->dtype : !column->values)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "file: must be set alone, or values, dtype and n without it");
    if (!column->file && pstk_dtype_size(column->dtype) == 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "dtype: value is %u; must be one of enum pstk_dtype", column->dtype);
    return 0;
}

/* Fail for a path without a manifest; the message says if it is a data set of another format. */
static int check_format(const char *path, struct pstk_error *err)
{
    const struct pstk__format *format;
    if (!path || !*path)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "path: value is empty; must be the path of a data set");
    const int r = pstk__format_find(&format, pstk__store_of(path), path, err);
    if (r < 0 || format->n_columns)
        return r;
    return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN, "%s: " PSTK__NO_COLUMNS, path,
                      format->name, path);
}

static int check_number(const struct adding *adding, struct pstk_error *err)
{
    const uint64_t n_samples = adding->manifest.n_samples;
    if (n_samples == 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "%s is an empty part; a column needs samples", adding->staging.path);
    return adding->n == n_samples
               ? 0
               : pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                            "column %s: %s has %" PRIu64 " values; must have %" PRIu64
                            ", one for each sample of %s",
                            adding->column->name,
                            adding->column->file ? adding->column->file : "the array", adding->n,
                            n_samples, adding->staging.path);
}

/* ---- adding
 * -------------------------------------------------------------------------------------- */

/* Return 1 if a file name of this column is taken: the directory has it, or a column of the
 * manifest has these files. */
static int is_taken(const struct adding *adding, const struct pstk__manifest_column *column)
{
    const struct pstk__manifest *m = &adding->manifest;
    char file[PSTK__MAX_COLUMN_FILE];
    for (uint32_t i = 0; i < m->n_columns; i++)
        if (strcmp(m->columns[i].files, column->files) == 0)
            return 1;
    for (uint32_t i = 0; i < m->n_shards; i++)
        if (pstk__manifest_column_file(column, m->shards[i].file, file) == 0 &&
            pstk__staging_has(&adding->staging, file))
            return 1;
    return 0;
}

/* Add the column to the manifest with unused file names, in place of an old column of the same
 * name. Returns its number, or an error. */
static int64_t add_to_manifest(struct adding *adding, struct pstk_error *err)
{
    struct pstk__manifest *m = &adding->manifest;
    const int old = pstk__manifest_find_column(m, adding->column->name);
    struct pstk__manifest_column column = {.dtype = adding->dtype, .fact = PSTK_COLUMN_ADDED};
    snprintf(column.name, sizeof column.name, "%s", adding->column->name);
    snprintf(column.files, sizeof column.files, "%s", column.name);
    for (uint32_t i = 1; is_taken(adding, &column); i++)
        snprintf(column.files, sizeof column.files, "%.79s.%u", column.name, i);
    if (old >= 0) {
        const int r = pstk__staging_drop_column(&adding->staging, m, (uint32_t)old, err);
        if (r < 0)
            return r;
        pstk__manifest_remove_column(m, (uint32_t)old);
    }
    const int r = pstk__manifest_add_column(m, &column, err);
    return r < 0 ? r : (int64_t)m->n_columns - 1;
}

/* Read a shard's tag from its header; the header must be the one that the manifest lists. */
static int read_tag(const struct adding *adding, const struct pstk__manifest_shard *shard,
                    uint32_t *tag, struct pstk_error *err)
{
    char path[PATH_MAX];
    uint8_t bytes[PSTK__HEADER_SIZE];
    struct pstk__shard_header h;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", adding->staging.path, shard->file) >=
        sizeof path)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "%s: the path is too long",
                          adding->staging.path);
    const int fd = pstk__file_open(path);
    if (fd < 0)
        return pstk__file_fail(err, -fd, PSTK_STAGE_SHARD, path, path);
    const int64_t n = pstk__file_pread(fd, bytes, sizeof bytes, 0);
    close(fd);
    if (n < 0)
        return pstk__fail_errno(err, (int)-n, PSTK_STAGE_SHARD, "%s: cannot be read", path);
    memset(bytes + n, 0, sizeof bytes - (size_t)n); /* a short file fails its checksum */
    const int r = pstk__shard_header_check(&h, bytes, path, err);
    if (r < 0)
        return r;
    *tag = h.tag;
    return h.crc == shard->header_crc
               ? 0
               : pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_SHARD,
                            "%s is not the shard that the manifest lists; verify the data set",
                            path);
}

/* Write the column's file of shard i. */
static int put_shard(struct adding *adding, uint32_t number, uint32_t i, struct pstk_error *err)
{
    struct pstk__manifest_column *column = &adding->manifest.columns[number];
    const struct pstk__manifest_shard *shard = &adding->manifest.shards[i];
    const struct pstk__column_values values = {.get = get_values, .user = adding};
    struct pstk__column_header h = {
        .shard_crc = shard->header_crc, .n_records = shard->n_records, .dtype = column->dtype};
    char file[PSTK__MAX_COLUMN_FILE];
    memcpy(h.name, column->name, sizeof h.name);
    int r = pstk__manifest_column_file(column, shard->file, file);
    if (r < 0)
        return pstk__fail(err, r, PSTK_STAGE_WRITE,
                          "column %s: its file for %s would have a name of over %d bytes; choose "
                          "a shorter name",
                          column->name, shard->file, PSTK__MAX_COLUMN_FILE - 1);
    r = read_tag(adding, shard, &h.tag, err);
    if (r == 0)
        r = pstk__column_put(&adding->staging, file, &h, &values, err);
    adding->first += shard->n_records;
    return r < 0 ? r : pstk__manifest_add_column_crc(column, h.crc, err);
}

static int add(struct adding *adding, struct pstk_error *err)
{
    const struct pstk__manifest *m = &adding->manifest;
    int r = check_number(adding, err);
    if (r < 0)
        return r;
    if (!adding->column->overwrite && pstk__manifest_find_column(m, adding->column->name) >= 0)
        return pstk__fail(err, PSTK_EEXIST, PSTK_STAGE_OPEN,
                          "%s has a column %s already; set overwrite to replace it, or choose "
                          "another name",
                          adding->staging.path, adding->column->name);
    if (m->n_columns >= PSTK__MAX_COLUMNS)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "%s has %u columns, the most that a data set may have; remove one",
                          adding->staging.path, m->n_columns);
    const int64_t number = add_to_manifest(adding, err);
    if (number < 0)
        return (int)number;
    for (uint32_t i = 0; r == 0 && i < m->n_shards; i++)
        r = put_shard(adding, (uint32_t)number, i, err);
    return r < 0 ? r : pstk__staging_commit(&adding->staging, m, err);
}

int pstk_column_add(const char *path, const struct pstk_new_column *column,
                    pstk_progress_fn on_progress, void *user, struct pstk_error *err)
{
    int r = check_column(column, err);
    if (r == 0)
        r = check_format(path, err);
    if (r < 0)
        return r;
    struct adding adding = {.column = column,
                            .dtype = column->dtype,
                            .n = column->n,
                            .fd = -1,
                            .on_progress = on_progress,
                            .user = user};
    adding.staging.dir = -1;
    r = column->file ? open_file(&adding, err) : 0;
    if (r == 0)
        r = pstk__staging_edit(&adding.staging, path, &adding.manifest, err);
    if (r == 0)
        r = add(&adding, err);
    teardown(&adding);
    return r;
}

int pstk_column_remove(const char *path, const char *name, struct pstk_error *err)
{
    struct pstk__staging staging = {.dir = -1};
    struct pstk__manifest m = {.n_shards = 0};
    if (!name)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "name is NULL");
    int r = check_format(path, err);
    if (r == 0)
        r = pstk__staging_edit(&staging, path, &m, err);
    if (r < 0)
        return r;
    const int i = pstk__manifest_find_column(&m, name);
    if (i < 0)
        r = pstk__fail(err, PSTK_ENOENT, PSTK_STAGE_OPEN,
                       "%s has no column %.80s (`penstock info` lists its columns)", path, name);
    if (r == 0)
        r = pstk__staging_drop_column(&staging, &m, (uint32_t)i, err);
    if (r == 0)
        pstk__manifest_remove_column(&m, (uint32_t)i);
    if (r == 0)
        r = pstk__staging_commit(&staging, &m, err);
    pstk__staging_close(&staging);
    pstk__manifest_free(&m);
    return r;
}
