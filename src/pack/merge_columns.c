/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/merge_columns.h"

#include "base/error.h"
#include "format/pstk/column_file.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Return 1 if the part has the same column; *number is its number there. */
static int has_column(const struct pstk__manifest *part, const struct pstk__manifest_column *column,
                      uint32_t *number)
{
    const int i = pstk__manifest_find_column(part, column->name);
    *number = (uint32_t)i;
    return i >= 0 && part->columns[i].dtype == column->dtype &&
           part->columns[i].fact == column->fact && part->columns[i].field == column->field;
}

int pstk__merge_columns_agree(struct pstk__manifest *whole, const struct pstk__manifest *part,
                              int first, struct pstk_error *err)
{
    uint32_t number;
    int r = 0;
    for (uint32_t i = 0; r == 0 && first && i < part->n_columns; i++) {
        struct pstk__manifest_column column = part->columns[i];
        /* Use the plain name for its files: a part that replaced the column has other file names.
         */
        snprintf(column.files, sizeof column.files, "%s", column.name);
        r = pstk__manifest_add_column(whole, &column, err);
    }
    for (uint32_t i = whole->n_columns; !first && i > 0; i--)
        if (!has_column(part, &whole->columns[i - 1], &number))
            pstk__manifest_remove_column(whole, i - 1);
    return r;
}

/* Explain a failure for which the part's file is the reason. Others, such as a full disk, have
 * their own message. */
static int fail_file(const struct pstk__column_part *part, const char *column, const char *file,
                     int code, const char *why, struct pstk_error *err)
{
    char text[768]; /* `why` may be the message that this one replaces */
    snprintf(text, sizeof text, "%s", why);
    return pstk__fail(
        err, code, PSTK_STAGE_WRITE,
        "%s: column file %s cannot be joined: %.400s; restore it from a copy, or remove the "
        "column from the part: penstock column %s %s --remove",
        part->path, file, text, part->path, column);
}

/* Link one file, and check it under its new name. */
static int link_file(struct pstk__staging *staging, struct pstk__manifest *whole, uint32_t i,
                     const struct pstk__column_part *part, const char *file, struct pstk_error *err)
{
    char from[PATH_MAX], name[PSTK__MAX_COLUMN_FILE];
    const char *column_name = whole->columns[i].name;
    const uint32_t shard = whole->n_shards - 1;
    const struct pstk__column_location location = {.store = &pstk__store_local,
                                                   .path = staging->path,
                                                   .manifest = whole,
                                                   .column = i,
                                                   .shard = shard};
    struct pstk__column_file column;
    if ((size_t)snprintf(from, sizeof from, "%s/%s", part->path, file) >= sizeof from ||
        pstk__manifest_column_file(&whole->columns[i], whole->shards[shard].file, name) < 0)
        return fail_file(part, column_name, file, PSTK_EINVAL, "its path is too long", err);
    int r = pstk__staging_link(staging, from, name, err);
    if (r == PSTK_EEXIST)
        return pstk__fail(err, r, PSTK_STAGE_WRITE,
                          "%s: the file %s exists already; remove it, or rename it", staging->path,
                          name);
    if (r == 0)
        r = pstk__column_file_open(&column, &location, err);
    if (r == PSTK_ENOENT || r == PSTK_EBADMSG || r == PSTK_ENOTSUP)
        return fail_file(part, column_name, file, r, err ? err->message : "", err);
    if (r < 0)
        return r;
    pstk__column_file_close(&column);
    return 0;
}

/* Announce the column files of the last shard, so that the journal is synced once for all. */
static int announce(struct pstk__staging *staging, const struct pstk__manifest *whole,
                    struct pstk_error *err)
{
    const char *shard = whole->shards[whole->n_shards - 1].file;
    char name[PSTK__MAX_COLUMN_FILE];
    int r = 0;
    for (uint32_t k = 0; r == 0 && k < whole->n_columns; k++)
        if (pstk__manifest_column_file(&whole->columns[k], shard, name) == 0)
            r = pstk__staging_announce(staging, name, err);
    return r;
}

int pstk__merge_columns_link(struct pstk__staging *staging, struct pstk__manifest *whole,
                             const struct pstk__column_part *part, uint32_t i,
                             struct pstk_error *err)
{
    int r = announce(staging, whole, err);
    for (uint32_t k = 0; r == 0 && k < whole->n_columns; k++) {
        struct pstk__manifest_column *column = &whole->columns[k];
        char file[PSTK__MAX_COLUMN_FILE];
        uint32_t number;
        if (!has_column(part->manifest, column, &number))
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_WRITE, "%s has no column %s", part->path,
                              column->name); /* agree has removed such columns */
        const struct pstk__manifest_column *from = &part->manifest->columns[number];
        r = pstk__manifest_column_file(from, part->manifest->shards[i].file, file);
        if (r == 0)
            r = pstk__manifest_add_column_crc(column, from->header_crcs[i], err);
        if (r == 0)
            r = link_file(staging, whole, k, part, file, err);
    }
    return r;
}
