/* SPDX-License-Identifier: Apache-2.0 */
#include "store/index/index.h"

#include "base/crc32c.h"
#include "base/error.h"
#include "base/random.h"
#include "store/index/layout.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FILE_WORDS 7 /* words of 8 bytes for a file in the description; its widths follow */

/* ---- digest ---------------------------------------------------------------------------------- */

void pstk__index_digest(uint64_t digest[2], const void *bytes, uint64_t size)
{
    const uint8_t *from = bytes;
    uint64_t left = size;
    for (;;) {
        uint8_t word[8] = {0};
        memcpy(word, from, left < 8 ? left : 8);
        const uint64_t number = pstk__get64(word) + (left < 8 ? size << 56 : 0);
        for (uint32_t lane = 0; lane < 2; lane++)
            digest[lane] = pstk__mix64((digest[lane] + lane) * 0x9e3779b97f4a7c15u + number + lane);
        if (left < 8)
            return;
        from += 8;
        left -= 8;
    }
}

/* ---- the description ------------------------------------------------------------------------- */

/* A cursor over bytes. `is_short` is set once a read asks for more bytes than are left. */
struct cursor {
    const uint8_t *at, *end;
    int is_short;
};

static const uint8_t *take(struct cursor *cursor, uint64_t size)
{
    static const uint8_t zeros[sizeof(struct pstk__index_field)];
    if (cursor->is_short || (uint64_t)(cursor->end - cursor->at) < size) {
        cursor->is_short = 1;
        return size <= sizeof zeros ? zeros : NULL;
    }
    cursor->at += size;
    return cursor->at - size;
}

static uint64_t take64(struct cursor *cursor)
{
    return pstk__get64(take(cursor, 8));
}

static int read_file(struct pstk__index *index, struct pstk__index_file *file, uint32_t n_columns,
                     struct cursor *cursor)
{
    file->size = take64(cursor);
    file->changed_ns = (int64_t)take64(cursor);
    file->first = index->n_samples;
    file->values = take64(cursor);
    file->values_end = take64(cursor);
    file->pages = take64(cursor);
    file->table.n_rows = take64(cursor);
    file->table.n_columns = n_columns;
    take64(cursor); /* reserved */
    memcpy(file->table.width, take(cursor, n_columns), n_columns);
    if (cursor->is_short || pstk__index_table_derive(&file->table) < 0 || file->table.n_rows >> 32)
        return PSTK_EBADMSG;
    const uint64_t n_pages = pstk__index_table_n_pages(&file->table);
    if (file->values > file->values_end || file->values_end > index->size ||
        file->pages > index->size || file->pages % PSTK__INDEX_TABLE_PAGE ||
        n_pages > (index->size - file->pages) / PSTK__INDEX_TABLE_PAGE || file->size >> 44)
        return PSTK_EBADMSG;
    index->n_samples += file->table.n_rows;
    index->n_pages += n_pages;
    index->bytes += file->size; /* 2^32 files below 2^44: no overflow */
    return 0;
}

/* Read n texts, each with its 0, after the number of their bytes. */
static int read_texts(struct pstk__texts *texts, uint64_t n, struct cursor *cursor)
{
    const uint64_t size = take64(cursor);
    const char *at = (const char *)take(cursor, size);
    if (cursor->is_short || size > UINT32_MAX)
        return PSTK_EBADMSG;
    const char *end = at + size;
    if (pstk__texts_open(texts, n, size) < 0)
        return PSTK_ENOMEM;
    for (uint64_t i = 0; i < n; i++) {
        const size_t length = strnlen(at, (size_t)(end - at));
        if (at + length == end)
            return PSTK_EBADMSG;
        pstk__texts_add(texts, at, length);
        at += length + 1;
    }
    return at == end ? 0 : PSTK_EBADMSG;
}

/* 1: the numbers by which readers allocate are within the limits of a scan. Anybody may have
 * written the index. Each format checks its facts itself. */
static int found_is_bounded(const struct pstk__inferred_schema *found)
{
    for (uint32_t i = 0; i < found->n_fields; i++) {
        const struct pstk__index_field *field = &found->fields[i];
        if (field->max_size > PSTK__INDEX_MAX_VALUE || field->max_plain > PSTK__INDEX_MAX_VALUE ||
            field->n >> 40 || field->bytes >> 60 || !memchr(field->field.name, 0, PSTK_MAX_NAME))
            return 0;
    }
    return found->max_record <= PSTK__INDEX_MAX_RECORD;
}

static int read_found(struct pstk__inferred_schema *found, struct cursor *cursor)
{
    found->n_fields = (uint32_t)take64(cursor);
    found->max_record = take64(cursor);
    for (uint32_t i = 0; i < PSTK__INDEX_FACTS; i++)
        found->facts[i] = take64(cursor);
    if (cursor->is_short || found->n_fields == 0 || found->n_fields > PSTK_MAX_FIELDS)
        return PSTK_EBADMSG;
    for (uint32_t i = 0; i < found->n_fields; i++)
        memcpy(&found->fields[i], take(cursor, sizeof found->fields[i]), sizeof found->fields[i]);
    return cursor->is_short || !found_is_bounded(found) ? PSTK_EBADMSG : 0;
}

/* Read the description, whose CRC the caller has checked. */
static int read_tail(struct pstk__index *index, const uint8_t *header, const uint8_t *tail,
                     uint64_t size)
{
    struct cursor cursor = {.at = tail, .end = tail + size};
    const uint32_t n_columns = pstk__get32(header + PSTK__IH_N_COLUMNS);
    const uint32_t n_files = pstk__get32(header + PSTK__IH_N_FILES);
    if (n_columns > PSTK__INDEX_TABLE_MAX_COLUMNS || n_files > size / (8 * FILE_WORDS))
        return PSTK_EBADMSG;
    index->n_files = n_files;
    index->files = calloc(n_files ? n_files : 1, sizeof *index->files);
    if (!index->files)
        return PSTK_ENOMEM;
    int r = read_found(&index->found, &cursor);
    for (uint32_t i = 0; r == 0 && i < n_files; i++)
        r = read_file(index, &index->files[i], n_columns, &cursor);
    if (r == 0)
        r = read_texts(&index->names, n_files, &cursor);
    if (r == 0)
        r = read_texts(&index->classes, pstk__get32(header + PSTK__IH_N_CLASSES), &cursor);
    return r == 0 && cursor.at != cursor.end ? PSTK_EBADMSG : r;
}

/* ---- open ------------------------------------------------------------------------------------ */

/* Return why the header does not belong to an index with this key, or NULL. */
static const char *header_wrong(const uint8_t *header, const uint64_t key[2], uint64_t size)
{
    static const char *const wrong[] = {
        [PSTK__SIDECAR_IS_OTHER] = "it is not an index",
        [PSTK__SIDECAR_IS_OF_ANOTHER_VERSION] = "another version of penstock wrote it",
        [PSTK__SIDECAR_IS_DAMAGED] = "its header is damaged",
    };
    const enum pstk__sidecar_state state = pstk__sidecar_check(
        header, PSTK__INDEX_HEADER, PSTK__SIDECAR_INDEX_MAGIC, PSTK__INDEX_VERSION);
    if (state != PSTK__SIDECAR_IS_WHOLE)
        return wrong[state];
    if (pstk__get64(header + PSTK__IH_KEY) != key[0] ||
        pstk__get64(header + PSTK__IH_KEY + 8) != key[1])
        return "it is the index of other files";
    const uint64_t tail = pstk__get64(header + PSTK__IH_TAIL);
    if (pstk__get64(header + PSTK__IH_SIZE) != size || tail < PSTK__INDEX_HEADER || tail > size ||
        size - tail > PSTK__INDEX_MAX_TAIL)
        return "it is cut short";
    return NULL;
}

int pstk__index_fail(const struct pstk__index *index, int stage, struct pstk_error *err,
                     const char *what, ...)
{
    char text[384];
    va_list args;
    va_start(args, what);
    if (vsnprintf(text, sizeof text, what, args) < 0)
        text[0] = 0;
    va_end(args);
    return pstk__fail(err, PSTK_EBADMSG, stage, "the index %s %s; remove it, and it is built again",
                      index->path, text);
}

static int fail_unusable(struct pstk__index *index, const char *why, struct pstk_error *err)
{
    return pstk__index_fail(index, PSTK_STAGE_OPEN, err, "cannot be used: %s", why);
}

static int load(struct pstk__index *index, const struct pstk__file *file, const uint64_t key[2],
                struct pstk_error *err)
{
    _Alignas(64) uint8_t header[PSTK__INDEX_HEADER];
    int r = file->store->stat(file, &index->size, &index->changed_ns);
    const int64_t n = r < 0 ? r : pstk__file_read(file, header, sizeof header, 0);
    if (n < 0)
        return pstk__fail_errno(err, (int)-n, PSTK_STAGE_OPEN, "cannot read the index %s",
                                index->path);
    const char *wrong =
        n < (int64_t)sizeof header ? "it is cut short" : header_wrong(header, key, index->size);
    if (wrong)
        return fail_unusable(index, wrong, err);
    const uint64_t begin = pstk__get64(header + PSTK__IH_TAIL), size = index->size - begin;
    uint8_t *tail = malloc(size ? size : 1);
    if (!tail)
        return pstk__sidecar_fail_memory("index", index->path, err);
    const int64_t got = pstk__file_read(file, tail, size, begin);
    if (got == (int64_t)size &&
        pstk__crc32c(0, tail, size) == pstk__get32(header + PSTK__IH_TAIL_CRC))
        r = read_tail(index, header, tail, size);
    else
        r = PSTK_EBADMSG;
    index->digest[0] = pstk__get64(header + PSTK__IH_DIGEST);
    index->digest[1] = pstk__get64(header + PSTK__IH_DIGEST + 8);
    free(tail);
    if (got < 0)
        return pstk__fail_errno(err, (int)-got, PSTK_STAGE_OPEN, "cannot read the index %s",
                                index->path);
    if (r == PSTK_ENOMEM)
        return pstk__sidecar_fail_memory("index", index->path, err);
    return r < 0 ? fail_unusable(index, "its description is damaged", err) : 0;
}

int pstk__index_open(struct pstk__index **out, const char *path, int fd, const uint64_t key[2],
                     struct pstk_error *err)
{
    *out = NULL;
    struct pstk__index *index = calloc(1, sizeof *index);
    if (!index || !(index->path = strdup(path))) {
        free(index);
        close(fd);
        return pstk__sidecar_fail_memory("index", path, err);
    }
    index->held = fd + 1;
    const struct pstk__file file = {.store = &pstk__store_local, .fd = fd};
    const int r = load(index, &file, key, err);
    if (r < 0)
        pstk__index_close(index);
    else
        *out = index;
    return r;
}

int pstk__index_file_path(const struct pstk__index *index, char *path, size_t size)
{
    const int n = index->held ? snprintf(path, size, PSTK__INDEX_HELD, index->held - 1)
                              : snprintf(path, size, "%s", index->path);
    return n < 0 || (size_t)n >= size ? PSTK_EINVAL : 0;
}

void pstk__index_close(struct pstk__index *index)
{
    if (!index)
        return;
    pstk__texts_close(&index->names);
    pstk__texts_close(&index->classes);
    if (index->held)
        close(index->held - 1);
    free(index->files);
    free(index->path);
    free(index->location);
    free(index);
}

const char *pstk__index_differs(const struct pstk__index *index, const struct pstk__texts *names,
                                const uint64_t *sizes, const int64_t *changed_ns)
{
    if (!pstk__texts_equal(&index->names, names))
        return "its files have other names";
    for (uint32_t i = 0; i < index->n_files; i++) {
        if (index->files[i].size != sizes[i])
            return "a file has another size";
        if (index->files[i].changed_ns != changed_ns[i])
            return "a file was changed";
    }
    return NULL;
}

/* Find the last file whose first sample id is at most `id`. A file without records has the first id
 * of the next file and comes before it. */
uint32_t pstk__index_find(const struct pstk__index *index, uint64_t id)
{
    uint32_t low = 0, n = index->n_files;
    while (n > 1) {
        const uint32_t half = n / 2;
        low += index->files[low + half].first <= id ? half : 0;
        n -= half;
    }
    return low;
}
