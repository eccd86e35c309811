/* SPDX-License-Identifier: Apache-2.0 */
#include "image/png/remake.h"

#include "base/error.h"
#include "image/png/rows.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_MAX 0x7fffffffu
#define MARK "psRm" /* a private chunk, safe to copy */

static const char mark_text[] = "penstock made this file of the rows of a damaged one";

/* A file being remade; on the stack of pstk__png_remake. */
struct work {
    struct pstk__png_rows rows;
    z_stream out;
    int has_out;    /* 1: out is open */
    uint8_t *bytes; /* owned; the result */
    uint64_t used, capacity;
};

/* ---- the result ----------------------------------------------------------------------------- */

static int reserve(struct work *work, uint64_t n)
{
    if (n <= work->capacity - work->used)
        return 0;
    const uint64_t capacity = 2 * work->capacity + n;
    uint8_t *bytes = realloc(work->bytes, capacity);
    if (!bytes)
        return PSTK_ENOMEM;
    work->bytes = bytes;
    work->capacity = capacity;
    return 0;
}

/* Complete the chunk whose name and data begin at byte `at` + 4 of the result. */
static void end_chunk(struct work *work, uint64_t at)
{
    const uint64_t n = work->used - at - 8;
    pstk__png_put32(work->bytes + at, (uint32_t)n);
    pstk__png_put32(work->bytes + work->used, (uint32_t)crc32_z(0, work->bytes + at + 4, n + 4));
    work->used += 4;
}

static int put_chunk(struct work *work, const char *name, const void *data, uint64_t n)
{
    const uint64_t at = work->used;
    if (reserve(work, n + 12) < 0)
        return PSTK_ENOMEM;
    memcpy(work->bytes + at + 4, name, 4);
    if (n)
        memcpy(work->bytes + at + 8, data, n);
    work->used += 8 + n;
    end_chunk(work, at);
    return 0;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static int deflate_some(struct work *work, const uint8_t *rows, uint32_t n, int flush)
{
    work->out.next_in = (z_const Bytef *)(uintptr_t)rows;
    work->out.avail_in = n;
    int r = Z_OK;
    do {
        if (reserve(work, 4096 + 4) < 0) /* 4 bytes for the CRC */
            return PSTK_ENOMEM;
        const uint64_t room = work->capacity - work->used - 4;
        work->out.next_out = work->bytes + work->used;
        work->out.avail_out = room < CHUNK_MAX ? (uInt)room : CHUNK_MAX;
        const uInt before = work->out.avail_out;
        r = deflate(&work->out, flush);
        work->used += before - work->out.avail_out;
    } while (r == Z_OK && (work->out.avail_out == 0 || flush == Z_FINISH));
    return 0;
}

static int copy_rows(struct work *work)
{
    uint8_t rows[PSTK__PNG_ROWS_ROOM];
    int64_t n;
    int r = 0;
    while (r == 0 && (n = pstk__png_rows_next(&work->rows, rows)) != 0)
        r = n < 0 ? (int)n : deflate_some(work, rows, (uint32_t)n, Z_NO_FLUSH);
    return r < 0 ? r : deflate_some(work, NULL, 0, Z_FINISH);
}

/* Return 1 when libpng takes a chunk of this name and size; any other chunk makes it refuse the
 * whole file. */
static int is_usual(const struct pstk__png_chunk *chunk)
{
    for (int i = 0; i < 4; i++)
        if ((chunk->name[i] | 0x20) < 'a' || (chunk->name[i] | 0x20) > 'z')
            return 0;
    return chunk->size <= PNG_USER_CHUNK_MALLOC_MAX;
}

/* Copy the chunks after the image data, without checking CRCs: Pillow does not read these. A chunk
 * whose content is cut is an error in Pillow. */
static int copy_after(struct work *work)
{
    struct pstk__png_chunk chunk;
    int r;
    while ((r = pstk__png_rows_after(&work->rows, &chunk)) > 0) {
        const int is_kept = !pstk__png_chunk_is(&chunk, "IDAT") &&
                            !pstk__png_chunk_is(&chunk, "PLTE") && is_usual(&chunk);
        if (is_kept && put_chunk(work, chunk.name, chunk.data, chunk.size) < 0)
            return PSTK_ENOMEM;
    }
    return r;
}

/* ---- all ------------------------------------------------------------------------------------ */

static int remake(struct work *work, const uint8_t *data, uint64_t size,
                  const struct pstk__image_info *info)
{
    int r = pstk__png_rows_begin(&work->rows, data, size, info);
    if (r < 0)
        return r;
    if (reserve(work, size + 4096) < 0)
        return PSTK_ENOMEM;
    memcpy(work->bytes, data, PSTK__PNG_IHDR_END);
    work->used = PSTK__PNG_IHDR_END;
    r = put_chunk(work, MARK, mark_text, sizeof mark_text - 1);
    const uint64_t before = work->rows.data_at - PSTK__PNG_IHDR_END;
    if (r < 0 || reserve(work, before + 8) < 0)
        return PSTK_ENOMEM;
    memcpy(work->bytes + work->used, data + PSTK__PNG_IHDR_END, before);
    work->used += before;
    const uint64_t at = work->used;
    memcpy(work->bytes + at + 4, "IDAT", 4);
    work->used += 8;
    work->has_out = deflateInit(&work->out, Z_DEFAULT_COMPRESSION) == Z_OK;
    r = work->has_out ? copy_rows(work) : PSTK_ENOMEM;
    if (r < 0)
        return r;
    if (work->used - at - 8 > CHUNK_MAX)
        return PSTK_EBADMSG;
    end_chunk(work, at);
    r = copy_after(work);
    return r < 0 ? r : put_chunk(work, "IEND", NULL, 0);
}

int pstk__png_remake(const void *data, uint64_t size, const struct pstk__image_info *info,
                     void **out, uint64_t *out_size, struct pstk_error *err)
{
    struct work work = {.used = 0};
    *out = NULL;
    *out_size = 0;
    const int r = remake(&work, data, size, info);
    pstk__png_rows_close(&work.rows);
    if (work.has_out)
        deflateEnd(&work.out);
    if (r == 0) {
        *out = work.bytes;
        *out_size = work.used;
        return 0;
    }
    free(work.bytes);
    return pstk__fail(err, r, PSTK_STAGE_DECODE,
                      r == PSTK_ENOMEM ? "no memory to make a PNG file anew"
                                       : "the rows of the PNG file are not whole");
}

int pstk__png_is_remade(const void *data, uint64_t size)
{
    uint64_t at = PSTK__PNG_IHDR_END;
    struct pstk__png_chunk chunk;
    return size >= PSTK__PNG_IHDR_END && memcmp(data, "\x89PNG", 4) == 0 &&
           pstk__png_chunk_next(data, size, &at, &chunk) && pstk__png_chunk_is(&chunk, MARK);
}
