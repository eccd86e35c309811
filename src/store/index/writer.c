/* SPDX-License-Identifier: Apache-2.0 */
#include "store/index/writer.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "store/index/layout.h"

#include <stdlib.h>

#define PAGES_AT_ONCE 64

struct pstk__index_writer {
    struct pstk__sidecar file;
    uint64_t at; /* bytes written; a failed write counts in full */
    uint64_t digest[2];
    uint32_t n_files, n_columns;
    struct pstk__bytes files; /* files of the description */
    struct pstk__bytes names;
};

/* ---- rows ------------------------------------------------------------------------------------ */

/* Make room for `more` elements of `size` bytes after n; *max: the capacity in elements. */
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

/* ---- the file -------------------------------------------------------------------------------- */

static void put64(struct pstk__bytes *bytes, uint64_t number)
{
    uint8_t word[8];
    pstk__put64(word, number);
    pstk__bytes_put(bytes, word, sizeof word);
}

static int fail_memory(const struct pstk__index_writer *writer, struct pstk_error *err)
{
    return pstk__sidecar_fail_memory("index", writer->file.path, err);
}

int pstk__index_writer_open(struct pstk__index_writer **out, int dir, const char *path,
                            struct pstk_error *err)
{
    struct pstk__index_writer *writer = *out = calloc(1, sizeof *writer);
    if (!writer)
        return pstk__sidecar_fail_memory("index", path, err);
    writer->at = PSTK__INDEX_HEADER;
    const int r = pstk__sidecar_open(&writer->file, "index", dir, path, err);
    if (r < 0)
        pstk__index_writer_abort(out);
    return r;
}

int pstk__index_writer_open_nameless(struct pstk__index_writer **out, int dir, const char *path,
                                     struct pstk_error *err)
{
    int r = pstk__index_writer_open(out, dir, path, err);
    if (r == 0)
        r = pstk__sidecar_unname(&(*out)->file, err);
    if (r < 0)
        pstk__index_writer_abort(out);
    return r;
}

int pstk__index_writer_dir(const struct pstk__index_writer *writer)
{
    return writer->file.dir;
}

const char *pstk__index_writer_path(const struct pstk__index_writer *writer)
{
    return writer->file.path;
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
        r = pstk__sidecar_write(&writer->file, buffer, n * PSTK__INDEX_TABLE_PAGE, writer->at, err);
        writer->at += n * PSTK__INDEX_TABLE_PAGE;
    }
    free(buffer);
    return r;
}

/* Append a file to the description, as read_file in index.c reads it. */
static void describe(struct pstk__index_writer *writer, const struct pstk__index_file *file)
{
    const uint64_t words[] = {file->size,
                              (uint64_t)file->changed_ns,
                              file->values,
                              file->values_end,
                              file->pages,
                              file->table.n_rows,
                              0};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        put64(&writer->files, words[i]);
    pstk__bytes_put(&writer->files, file->table.width, file->table.n_columns);
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
    r = pstk__sidecar_write(&writer->file, rows->values, rows->n_values, writer->at, err);
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
    describe(writer, &file);
    pstk__bytes_put(&writer->names, name, strlen(name) + 1);
    return writer->files.failed || writer->names.failed ? fail_memory(writer, err) : 0;
}

/* Assemble the description, in the order in which read_tail in index.c reads it. */
static void make_tail(struct pstk__index_writer *writer, const struct pstk__inferred_schema *found,
                      const struct pstk__texts *classes, struct pstk__bytes *tail)
{
    put64(tail, found->n_fields);
    put64(tail, found->max_record);
    for (uint32_t i = 0; i < PSTK__INDEX_FACTS; i++)
        put64(tail, found->facts[i]);
    pstk__bytes_put(tail, found->fields, found->n_fields * sizeof found->fields[0]);
    pstk__bytes_put(tail, writer->files.data, writer->files.size);
    put64(tail, writer->names.size);
    pstk__bytes_put(tail, writer->names.data, writer->names.size);
    put64(tail, classes ? classes->size : 0);
    if (classes)
        pstk__bytes_put(tail, classes->bytes, classes->size);
}

static int write_end(struct pstk__index_writer *writer, const uint64_t key[2],
                     const struct pstk__bytes *tail, uint64_t n_classes, struct pstk_error *err)
{
    _Alignas(64) uint8_t header[PSTK__INDEX_HEADER] = {0};
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
    pstk__sidecar_seal(header, sizeof header, PSTK__SIDECAR_INDEX_MAGIC, PSTK__INDEX_VERSION);
    int r = pstk__sidecar_write(&writer->file, tail->data, tail->size, writer->at, err);
    if (r == 0)
        r = pstk__sidecar_write(&writer->file, header, sizeof header, 0, err);
    return r == 0 && writer->file.temporary[0] ? pstk__sidecar_publish(&writer->file, err) : r;
}

int pstk__index_writer_commit(struct pstk__index_writer **p, const uint64_t key[2],
                              const struct pstk__inferred_schema *found,
                              const struct pstk__texts *classes, int *fd, struct pstk_error *err)
{
    struct pstk__index_writer *writer = *p;
    struct pstk__bytes tail = {0};
    int r;
    *fd = -1;
    make_tail(writer, found, classes, &tail);
    if (tail.failed)
        r = fail_memory(writer, err);
    else if (tail.size > PSTK__INDEX_MAX_TAIL)
        r = pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_OPEN,
                       "the index %s would describe %u files in more than 1 GiB: join files",
                       writer->file.path, writer->n_files);
    else
        r = write_end(writer, key, &tail, classes ? classes->n : 0, err);
    pstk__bytes_free(&tail);
    if (r == 0) { /* the caller owns it from now on */
        *fd = writer->file.fd;
        writer->file.fd = -1;
    }
    pstk__index_writer_abort(p);
    return r;
}

void pstk__index_writer_abort(struct pstk__index_writer **p)
{
    struct pstk__index_writer *writer = *p;
    if (!writer)
        return;
    pstk__sidecar_close(&writer->file);
    pstk__bytes_free(&writer->files);
    pstk__bytes_free(&writer->names);
    free(writer);
    *p = NULL;
}
