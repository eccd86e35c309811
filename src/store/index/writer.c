/* SPDX-License-Identifier: Apache-2.0 */
#include "store/index/writer.h"

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "store/index/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGES_AT_ONCE 64

/* Bytes being gathered. */
struct bytes {
    uint8_t *data; /* owned */
    uint64_t size, max;
};

struct pstk__index_writer {
    int fd;  /* owned */
    int dir; /* borrowed; where the file is made */
    char path[PATH_MAX];
    const char *name; /* in path: that in dir */
    char temporary[NAME_MAX + 1];
    int is_nameless; /* 1: it was unlinked at once, and is never renamed */
    uint64_t at;     /* bytes written, with those that a failed write left out */
    uint64_t digest[2];
    uint32_t n_files, n_columns;
    struct bytes files; /* of the description */
    struct bytes names;
};

/* ---- rows ------------------------------------------------------------------------------------ */

/* Make room for `more` elements of `size` bytes after n; *max elements have room. */
static void *grown(void *old, uint64_t n, uint64_t more, uint64_t size, uint64_t *max)
{
    uint64_t wanted = *max ? *max : 1024;
    while (wanted < n + more)
        wanted *= 2;
    if (wanted == *max)
        return old;
    void *new = wanted > SIZE_MAX / size ? NULL : realloc(old, wanted * size);
    if (new)
        *max = wanted;
    return new;
}

int pstk__index_rows_add(struct pstk__index_rows *rows, const uint64_t *cells)
{
    uint64_t *to = grown(rows->cells, rows->n * rows->n_columns, rows->n_columns,
                         sizeof *rows->cells, &rows->max_cells);
    if (!to)
        return PSTK_ENOMEM;
    rows->cells = to;
    memcpy(to + rows->n++ * rows->n_columns, cells, rows->n_columns * sizeof *cells);
    return 0;
}

int pstk__index_rows_value(struct pstk__index_rows *rows, const void *bytes, uint64_t size,
                           uint64_t *at)
{
    uint8_t *to = grown(rows->values, rows->n_values, size, 1, &rows->max_values);
    if (!to)
        return PSTK_ENOMEM;
    rows->values = to;
    *at = rows->n_values;
    if (size > 0)
        memcpy(to + rows->n_values, bytes, size);
    rows->n_values += size;
    return 0;
}

void pstk__index_rows_close(struct pstk__index_rows *rows)
{
    free(rows->cells);
    free(rows->values);
    *rows = (struct pstk__index_rows){.n_columns = rows->n_columns};
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static int append(struct bytes *bytes, const void *data, uint64_t size)
{
    uint8_t *to = grown(bytes->data, bytes->size, size, 1, &bytes->max);
    if (!to)
        return PSTK_ENOMEM;
    bytes->data = to;
    if (size > 0)
        memcpy(to + bytes->size, data, size);
    bytes->size += size;
    return 0;
}

static int append64(struct bytes *bytes, uint64_t number)
{
    uint8_t word[8];
    pstk__put64(word, number);
    return append(bytes, word, sizeof word);
}

/* ---- the file -------------------------------------------------------------------------------- */

static int fail_write(const struct pstk__index_writer *writer, int native, struct pstk_error *err)
{
    return pstk__fail_errno(err, native, PSTK_STAGE_OPEN, "cannot write the index %s%s",
                            writer->path, pstk__file_write_advice(native));
}

static int fail_memory(const struct pstk__index_writer *writer, struct pstk_error *err)
{
    return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the index %s",
                      writer->path);
}

static int write_at(struct pstk__index_writer *writer, const void *bytes, uint64_t size,
                    uint64_t offset, struct pstk_error *err)
{
    const int native = pstk__file_pwrite(writer->fd, bytes, size, offset);
    return native ? fail_write(writer, native, err) : 0;
}

int pstk__index_writer_open(struct pstk__index_writer **out, int dir, const char *path,
                            struct pstk_error *err)
{
    *out = NULL;
    struct pstk__index_writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the index %s", path);
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const int n = snprintf(writer->path, sizeof writer->path, "%s", path);
    /* A name of its own: where files cannot be locked, several processes may build at once. */
    const int m = snprintf(writer->temporary, sizeof writer->temporary, "%s.tmp-XXXXXX", name);
    if (n < 0 || (size_t)n >= sizeof writer->path || m < 0 ||
        (size_t)m >= sizeof writer->temporary) {
        free(writer);
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "the path is too long: %.400s...",
                          path);
    }
    writer->dir = dir;
    writer->name = writer->path + (name - path);
    writer->at = PSTK__INDEX_HEADER;
    writer->fd = pstk__file_make_temporary(dir, writer->temporary);
    if (writer->fd < 0) {
        const int r = fail_write(writer, -writer->fd, err);
        free(writer);
        return r;
    }
    *out = writer;
    return 0;
}

int pstk__index_writer_open_nameless(struct pstk__index_writer **out, int dir, const char *path,
                                     struct pstk_error *err)
{
    const int r = pstk__index_writer_open(out, dir, path, err);
    if (r < 0)
        return r;
    (*out)->is_nameless = 1;
    if (unlinkat(dir, (*out)->temporary, 0) == 0)
        return 0;
    const int failed = fail_write(*out, errno, err);
    pstk__index_writer_abort(out);
    return failed;
}

int pstk__index_writer_dir(const struct pstk__index_writer *writer)
{
    return writer->dir;
}

const char *pstk__index_writer_path(const struct pstk__index_writer *writer)
{
    return writer->path;
}

static int write_pages(struct pstk__index_writer *writer, const struct pstk__index_table *table,
                       const uint64_t *cells, struct pstk_error *err)
{
    const uint64_t n_pages = pstk__index_table_n_pages(table);
    uint8_t *buffer = aligned_alloc(64, PAGES_AT_ONCE * PSTK__INDEX_TABLE_PAGE);
    int r = buffer ? 0 : fail_memory(writer, err);
    for (uint64_t page = 0; r == 0 && page < n_pages;) {
        uint64_t n = 0;
        for (; n < PAGES_AT_ONCE && page < n_pages; n++, page++) {
            const uint32_t crc = pstk__index_table_encode(table, writer->n_files, page, cells,
                                                          buffer + n * PSTK__INDEX_TABLE_PAGE);
            pstk__index_digest(writer->digest, &crc, sizeof crc);
        }
        r = write_at(writer, buffer, n * PSTK__INDEX_TABLE_PAGE, writer->at, err);
        writer->at += n * PSTK__INDEX_TABLE_PAGE;
    }
    free(buffer);
    return r;
}

/* Append to the description what index.c's read_file reads. */
static int describe(struct pstk__index_writer *writer, const struct pstk__index_file *file)
{
    const uint64_t words[] = {file->size,
                              (uint64_t)file->changed_ns,
                              file->values,
                              file->values_end,
                              file->pages,
                              file->table.n_rows,
                              0};
    int r = 0;
    for (size_t i = 0; r == 0 && i < sizeof words / sizeof words[0]; i++)
        r = append64(&writer->files, words[i]);
    return r < 0 ? r : append(&writer->files, file->table.width, file->table.n_columns);
}

int pstk__index_writer_add(struct pstk__index_writer *writer, const char *name, uint64_t size,
                           int64_t changed_ns, const struct pstk__index_rows *rows,
                           struct pstk_error *err)
{
    struct pstk__index_file file = {.size = size, .changed_ns = changed_ns, .values = writer->at};
    int r =
        pstk__index_table_fit(&file.table, rows->cells, rows->n, (uint32_t)rows->n_columns, err);
    if (r < 0)
        return r;
    writer->n_columns = (uint32_t)rows->n_columns;
    pstk__index_digest(writer->digest, name, strlen(name));
    pstk__index_digest(writer->digest, &size, sizeof size);
    const uint32_t crc = pstk__crc32c(0, rows->values, rows->n_values);
    pstk__index_digest(writer->digest, &crc, sizeof crc);
    r = write_at(writer, rows->values, rows->n_values, writer->at, err);
    if (r < 0)
        return r;
    file.values_end = writer->at + rows->n_values;
    writer->at = (file.values_end + PSTK__INDEX_TABLE_PAGE - 1) / PSTK__INDEX_TABLE_PAGE *
                 PSTK__INDEX_TABLE_PAGE;
    file.pages = writer->at;
    r = write_pages(writer, &file.table, rows->cells, err);
    if (r < 0)
        return r;
    writer->n_files++;
    if (describe(writer, &file) < 0 || append(&writer->names, name, strlen(name) + 1) < 0)
        return fail_memory(writer, err);
    return 0;
}

/* Put the description together, in the order in which index.c's read_tail reads it. */
static int make_tail(struct pstk__index_writer *writer, const struct pstk__inferred_schema *found,
                     const struct pstk__texts *classes, struct bytes *tail)
{
    int r = append64(tail, found->n_fields);
    r = r < 0 ? r : append64(tail, found->max_record);
    for (uint32_t i = 0; r == 0 && i < PSTK__INDEX_FACTS; i++)
        r = append64(tail, found->facts[i]);
    r = r < 0 ? r : append(tail, found->fields, found->n_fields * sizeof found->fields[0]);
    r = r < 0 ? r : append(tail, writer->files.data, writer->files.size);
    r = r < 0 ? r : append64(tail, writer->names.size);
    r = r < 0 ? r : append(tail, writer->names.data, writer->names.size);
    r = r < 0 ? r : append64(tail, classes ? classes->size : 0);
    return r < 0 || !classes ? r : append(tail, classes->bytes, classes->size);
}

static int write_end(struct pstk__index_writer *writer, const uint64_t key[2],
                     const struct bytes *tail, uint64_t n_classes, struct pstk_error *err)
{
    _Alignas(64) uint8_t header[PSTK__INDEX_HEADER] = {0};
    memcpy(header + PSTK__IH_MAGIC, PSTK__INDEX_MAGIC, 8);
    pstk__put32(header + PSTK__IH_VERSION, PSTK__INDEX_VERSION);
    for (uint32_t lane = 0; lane < 2; lane++) {
        pstk__put64(header + PSTK__IH_KEY + 8 * lane, key[lane]);
        pstk__put64(header + PSTK__IH_DIGEST + 8 * lane, writer->digest[lane]);
    }
    pstk__put64(header + PSTK__IH_SIZE, writer->at + tail->size);
    pstk__put64(header + PSTK__IH_TAIL, writer->at);
    pstk__put32(header + PSTK__IH_TAIL_CRC, pstk__crc32c(0, tail->data, tail->size));
    pstk__put32(header + PSTK__IH_N_FILES, writer->n_files);
    pstk__put32(header + PSTK__IH_N_COLUMNS, writer->n_columns);
    pstk__put32(header + PSTK__IH_N_CLASSES, (uint32_t)n_classes);
    pstk__put32(header, pstk__crc32c(0, header + 4, sizeof header - 4));
    int r = write_at(writer, tail->data, tail->size, writer->at, err);
    if (r == 0)
        r = write_at(writer, header, sizeof header, 0, err);
    if (writer->is_nameless)
        return r;
    /* As others may read the data, they may read its index: a temporary file lets nobody. */
    if (r == 0 && fchmod(writer->fd, 0644) < 0)
        r = fail_write(writer, errno, err);
    if (r == 0 && fsync(writer->fd) < 0)
        r = fail_write(writer, errno, err);
    if (r == 0 && renameat(writer->dir, writer->temporary, writer->dir, writer->name) < 0)
        r = fail_write(writer, errno, err);
    return r;
}

static void close_writer(struct pstk__index_writer *writer)
{
    if (writer->fd >= 0)
        close(writer->fd);
    free(writer->files.data);
    free(writer->names.data);
    free(writer);
}

int pstk__index_writer_commit(struct pstk__index_writer **p, const uint64_t key[2],
                              const struct pstk__inferred_schema *found,
                              const struct pstk__texts *classes, int *fd, struct pstk_error *err)
{
    struct pstk__index_writer *writer = *p;
    struct bytes tail = {0};
    *fd = -1;
    int r = make_tail(writer, found, classes, &tail);
    if (r < 0)
        r = fail_memory(writer, err);
    else if (tail.size > PSTK__INDEX_MAX_TAIL)
        r = pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_OPEN,
                       "the index %s would describe %u files in more than 1 GiB: join files",
                       writer->path, writer->n_files);
    else
        r = write_end(writer, key, &tail, classes ? classes->n : 0, err);
    free(tail.data);
    if (r < 0) {
        pstk__index_writer_abort(p);
        return r;
    }
    *fd = writer->fd;
    writer->fd = -1;
    close_writer(writer);
    *p = NULL;
    return 0;
}

void pstk__index_writer_abort(struct pstk__index_writer **p)
{
    if (!*p)
        return;
    if (!(*p)->is_nameless)
        unlinkat((*p)->dir, (*p)->temporary, 0);
    close_writer(*p);
    *p = NULL;
}
