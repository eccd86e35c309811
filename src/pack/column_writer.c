/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/column_writer.h"

#include "base/error.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECE_PAGES 64 /* pages of one write: 256 KiB */

/* ---- one file ---------------------------------------------------------------------------------
 */

/* The state of writing a file. */
struct put {
    struct pstk__staging *staging;
    const char *file;
    struct pstk__column_header *h;
    const struct pstk__column_values *values;
    int fd;
    uint8_t *buffer; /* owned; PIECE_PAGES pages */
};

/* Encode and write up to PIECE_PAGES pages, from number `page` on. Returns their number, or an
 * error. */
static int64_t put_pages(const struct put *put, uint64_t page, struct pstk_error *err)
{
    const uint64_t per_page = pstk__column_per_page(put->h->dtype);
    const uint64_t left = put->h->n_pages - page, n = left < PIECE_PAGES ? left : PIECE_PAGES;
    const uint64_t first = page * per_page, rest = put->h->n_records - first;
    const uint8_t *values =
        put->values->get(put->values->user, first, rest < n * per_page ? rest : n * per_page, err);
    if (!values)
        return err ? err->code : PSTK_EIO;
    for (uint64_t i = 0; i < n; i++) {
        const struct pstk__column_page place = pstk__column_page_of(put->h, put->file, page + i);
        const uint32_t crc = pstk__column_page_encode(put->buffer + i * PSTK__COLUMN_PAGE, &place,
                                                      values + i * per_page * place.size);
        put->h->pages_crc = pstk__column_pages_crc(put->h->pages_crc, crc);
    }
    const int r = pstk__staging_write(put->staging, put->file, put->fd, put->buffer,
                                      n * PSTK__COLUMN_PAGE, (1 + page) * PSTK__COLUMN_PAGE, err);
    return r < 0 ? r : (int64_t)n;
}

/* Write all pages, then the header, which contains their checksum. */
static int put_file(struct put *put, struct pstk_error *err)
{
    for (uint64_t page = 0; page < put->h->n_pages;) {
        const int64_t n = put_pages(put, page, err);
        if (n < 0)
            return (int)n;
        page += (uint64_t)n;
    }
    pstk__column_header_encode(put->h, put->buffer);
    return pstk__staging_write(put->staging, put->file, put->fd, put->buffer, PSTK__COLUMN_PAGE, 0,
                               err);
}

/* Write a file, without sync and rename. Returns *fd owned, also on failure: -1, or open. */
static int write_file(struct put *put, int *fd, struct pstk_error *err)
{
    struct pstk_error own;
    pstk_error_init(&own, sizeof own);
    err = err ? err : &own; /* put_pages returns its code */
    put->h->pages_crc = 0;
    pstk__column_header_derive(put->h);
    put->buffer = malloc(PIECE_PAGES * PSTK__COLUMN_PAGE);
    if (!put->buffer)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "%s: out of memory",
                          put->staging->path);
    int r = pstk__staging_create(put->staging, put->file, &put->fd, err);
    if (r == 0)
        r = put_file(put, err);
    free(put->buffer);
    *fd = put->fd;
    return r;
}

int pstk__column_put(struct pstk__staging *staging, const char *file, struct pstk__column_header *h,
                     const struct pstk__column_values *values, struct pstk_error *err)
{
    struct put put = {.staging = staging, .file = file, .h = h, .values = values, .fd = -1};
    int fd = -1;
    const int r = write_file(&put, &fd, err);
    if (r == 0)
        return pstk__staging_publish(staging, file, &fd, err);
    if (fd >= 0)
        close(fd);
    return r;
}

/* ---- the columns of a writer --------------------------------------------------------------------
 */

/* The values of a column in the open shard. */
struct pstk__written_values {
    uint8_t *bytes; /* owned */
    uint64_t capacity;
    uint32_t size; /* bytes of a value */
};

static int no_memory(const struct pstk__column_writer *writer, struct pstk_error *err)
{
    return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "%s: out of memory for columns",
                      writer->staging->path);
}

void pstk__column_writer_close(struct pstk__column_writer *writer)
{
    for (uint32_t i = 0; writer->values && i < PSTK__MAX_DERIVED; i++)
        free(writer->values[i].bytes);
    for (uint32_t i = 0; writer->fds && i < PSTK__MAX_DERIVED; i++)
        if (writer->fds[i] >= 0)
            close(writer->fds[i]);
    free(writer->fds);
    free(writer->values);
    free(writer->list);
    memset(writer, 0, sizeof *writer);
}

int pstk__column_writer_open(struct pstk__column_writer *writer, struct pstk__staging *staging,
                             struct pstk__manifest *manifest, struct pstk_error *err)
{
    writer->staging = staging;
    writer->manifest = manifest;
    writer->list = calloc(PSTK__MAX_DERIVED, sizeof *writer->list);
    writer->values = calloc(PSTK__MAX_DERIVED, sizeof *writer->values);
    writer->fds = malloc(PSTK__MAX_DERIVED * sizeof *writer->fds);
    for (uint32_t i = 0; writer->fds && i < PSTK__MAX_DERIVED; i++)
        writer->fds[i] = -1;
    if (!writer->list || !writer->values || !writer->fds)
        return no_memory(writer, err);
    const uint32_t n = pstk__derived_columns(&manifest->schema, writer->list);
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < n; i++) {
        const struct pstk__derived_column *derived = &writer->list[i];
        struct pstk__manifest_column column = {
            .dtype = derived->dtype, .fact = derived->fact, .field = derived->field};
        memcpy(column.name, derived->name, sizeof column.name);
        snprintf(column.files, sizeof column.files, "%s", derived->name);
        writer->values[i].size = pstk_dtype_size(derived->dtype);
        r = pstk__manifest_add_column(manifest, &column, err);
    }
    return r;
}

int pstk__column_writer_add(struct pstk__column_writer *writer,
                            const struct pstk__field_view *views, struct pstk_error *err)
{
    for (uint32_t i = 0; writer->values && i < writer->manifest->n_columns; i++) {
        struct pstk__written_values *values = &writer->values[i];
        if (writer->n_records >= values->capacity) {
            const uint64_t capacity = values->capacity ? 2 * values->capacity : 1024;
            uint8_t *bytes = realloc(values->bytes, capacity * values->size);
            if (!bytes)
                return no_memory(writer, err);
            values->bytes = bytes;
            values->capacity = capacity;
        }
        pstk__column_fact_value(&writer->manifest->schema, &writer->list[i], views,
                                values->bytes + writer->n_records * values->size);
    }
    writer->n_records++;
    return 0;
}

/* Return values of the open shard: pstk__column_values.get. */
static const void *get_values(void *user, uint64_t first, uint64_t n, struct pstk_error *err)
{
    const struct pstk__written_values *values = user;
    (void)n, (void)err;
    return values->bytes + first * values->size;
}

int pstk__column_writer_begin(const struct pstk__column_writer *writer, const char *shard,
                              struct pstk_error *err)
{
    char file[PSTK__MAX_COLUMN_FILE];
    int r = 0;
    for (uint32_t i = 0; r == 0 && writer->values && i < writer->manifest->n_columns; i++) {
        r = pstk__manifest_column_file(&writer->manifest->columns[i], shard, file);
        if (r == 0) /* its name fits: stems of this writer are short */
            r = pstk__staging_announce(writer->staging, file, err);
    }
    return r;
}

/* Write column i's file of *shard. It is synced later, together with the other columns' files: this
 * costs the file system less. */
static int write_column(struct pstk__column_writer *writer, uint32_t i,
                        const struct pstk__manifest_shard *shard, uint32_t tag,
                        struct pstk_error *err)
{
    struct pstk__manifest_column *column = &writer->manifest->columns[i];
    const struct pstk__column_values values = {.get = get_values, .user = &writer->values[i]};
    struct pstk__column_header h = {.tag = tag,
                                    .shard_crc = shard->header_crc,
                                    .n_records = writer->n_records,
                                    .dtype = column->dtype};
    char file[PSTK__MAX_COLUMN_FILE];
    struct put put = {
        .staging = writer->staging, .file = file, .h = &h, .values = &values, .fd = -1};
    memcpy(h.name, column->name, sizeof h.name);
    int r = pstk__manifest_column_file(column, shard->file, file);
    if (r == 0)
        r = write_file(&put, &writer->fds[i], err);
    if (r == 0) /* a hint: its result is ignored */
        (void)sync_file_range(writer->fds[i], 0, 0, SYNC_FILE_RANGE_WRITE);
    return r < 0 ? r : pstk__manifest_add_column_crc(column, h.crc, err);
}

int pstk__column_writer_finish(struct pstk__column_writer *writer,
                               const struct pstk__manifest_shard *shard, uint32_t tag,
                               struct pstk_error *err)
{
    const uint32_t n = writer->values ? writer->manifest->n_columns : 0;
    char file[PSTK__MAX_COLUMN_FILE];
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < n; i++)
        r = write_column(writer, i, shard, tag, err);
    for (uint32_t i = 0; r == 0 && i < n; i++) {
        r = pstk__manifest_column_file(&writer->manifest->columns[i], shard->file, file);
        if (r == 0)
            r = pstk__staging_publish(writer->staging, file, &writer->fds[i], err);
    }
    writer->n_records = 0;
    return r;
}
