/* SPDX-License-Identifier: Apache-2.0 */
#include "image/png/remake.h"

#include "base/error.h"
#include "image/png/chunk.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define PIECE_SIZE 65536u /* bytes that Pillow hands to zlib at once; ImageFile.MAXBLOCK */
#define CHUNK_MAX 0x7fffffffu
#define INTERLACE_AT 28 /* in IHDR: PNG 3, 11.2.1 */
#define MARK "psRm"     /* a private chunk, safe to copy */

static const char mark_text[] = "penstock made this file of the rows of a damaged one";

/* A file being remade; on the stack of pstk__png_remake. */
struct work {
    const uint8_t *data;
    uint64_t size;
    const struct pstk__image_info *info;
    uint64_t data_at;  /* of the first IDAT chunk */
    uint64_t after_at; /* of the first chunk after the image data; size: there is none */
    uint64_t n_rows;   /* bytes of all rows with their filters, inflated */
    z_stream in, out;
    int has_in, has_out; /* 1: in, out are open */
    uint8_t *bytes;      /* owned; the result */
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

static void put_be32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

static uint32_t crc_of(const uint8_t *p, uint64_t n)
{
    return (uint32_t)crc32_z(0, p, n);
}

/* Complete the chunk whose name and data begin at byte `at` + 4 of the result. */
static void end_chunk(struct work *work, uint64_t at)
{
    const uint64_t n = work->used - at - 8;
    put_be32(work->bytes + at, (uint32_t)n);
    put_be32(work->bytes + work->used, crc_of(work->bytes + at + 4, n + 4));
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

/* ---- what Pillow refuses -------------------------------------------------------------------- */

static int is_any(const struct pstk__png_chunk *chunk, const char *names)
{
    for (; *names; names += 4)
        if (pstk__png_chunk_is(chunk, names))
            return 1;
    return 0;
}

/* 1: the byte after the key of a text or a profile is its compression method, and is 0. */
static int has_method(const struct pstk__png_chunk *chunk)
{
    const uint8_t *zero = chunk->size ? memchr(chunk->data, 0, chunk->size) : NULL;
    const uint64_t key = zero ? (uint64_t)(zero - chunk->data) : chunk->size;
    const int is_profile = pstk__png_chunk_is(chunk, "iCCP");
    return chunk->size > key + 1 ? chunk->data[key + 1] == 0 : !is_profile;
}

/* 1: Pillow raises an exception, or the file is an animation. */
static int is_refused(const struct work *work, const struct pstk__png_chunk *chunk)
{
    const struct pstk__image_info *info = work->info;
    const uint32_t n = chunk->size;
    if (pstk__png_chunk_is(chunk, "tRNS") && !info->has_palette)
        return (info->channels == 1 && n < 2) || (info->channels == 3 && n < 6);
    if (is_any(chunk, "iCCPzTXt"))
        return !has_method(chunk);
    return (pstk__png_chunk_is(chunk, "gAMA") && n < 4) ||
           (pstk__png_chunk_is(chunk, "cHRM") && n % 4 != 0) ||
           (pstk__png_chunk_is(chunk, "sRGB") && n < 1) ||
           (pstk__png_chunk_is(chunk, "pHYs") && n < 9) || is_any(chunk, "IHDRacTLfcTLfdAT");
}

/* Find the image data. Pillow checks the chunks before them. */
static int find_data(struct work *work)
{
    struct pstk__png_chunk chunk;
    uint64_t at = PSTK__PNG_IHDR_END, begin = at;
    while (pstk__png_chunk_next(work->data, work->size, &at, &chunk)) {
        if (pstk__png_chunk_is(&chunk, "IDAT"))
            break;
        const uint8_t *crc = chunk.data + chunk.size;
        uint8_t found[4];
        put_be32(found, crc_of((const uint8_t *)chunk.name, 4 + (uint64_t)chunk.size));
        if (at > work->size || memcmp(crc, found, 4) != 0 || is_refused(work, &chunk) ||
            pstk__png_chunk_is(&chunk, "IEND"))
            return PSTK_EBADMSG;
        begin = at;
    }
    work->data_at = begin;
    return 0;
}

/* Copy the chunks after the image data, without CRC: Pillow reads none. One whose content is cut is
 * an error there. */
static int copy_after(struct work *work)
{
    struct pstk__png_chunk chunk;
    uint64_t at = work->after_at;
    while (pstk__png_chunk_begin(work->data, work->size, at, &chunk) &&
           !pstk__png_chunk_is(&chunk, "IEND")) {
        if (!pstk__png_chunk_next(work->data, work->size, &at, &chunk) || is_refused(work, &chunk))
            return PSTK_EBADMSG;
        const int is_kept = !is_any(&chunk, "IDATPLTE") && chunk.size <= CHUNK_MAX;
        if (is_kept && put_chunk(work, chunk.name, chunk.data, chunk.size) < 0)
            return PSTK_ENOMEM;
    }
    return 0;
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* Return the bytes of all rows, each with its filter, of an image that may be interlaced. */
static uint64_t rows_size(const struct work *work)
{
    static const uint8_t passes[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                         {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
    const struct pstk__image_info *info = work->info;
    const uint64_t bits = (uint64_t)info->channels * info->bit_depth;
    uint64_t sum = 0;
    if (!work->data[INTERLACE_AT])
        return info->height * ((info->width * bits + 7) / 8 + 1);
    for (int i = 0; i < 7; i++) {
        const uint64_t width = (info->width + passes[i][2] - 1u - passes[i][0]) / passes[i][2];
        const uint64_t height = (info->height + passes[i][3] - 1u - passes[i][1]) / passes[i][3];
        sum += width ? height * ((width * bits + 7) / 8 + 1) : 0;
    }
    return sum;
}

static int deflate_some(struct work *work, const uint8_t *rows, uint32_t n, int flush)
{
    work->out.next_in = (z_const Bytef *)(uintptr_t)rows;
    work->out.avail_in = n;
    int r = Z_OK;
    do {
        if (reserve(work, 4096 + 4) < 0) /* 4: for the CRC */
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

/* Inflate a piece of the image data, no further than the last row. EBADMSG: zlib refuses it before
 * or where the last row ends, as in Pillow, which does not look at what follows. */
static int take_piece(struct work *work, const uint8_t *piece, uint32_t n, uint64_t *n_left)
{
    uint8_t rows[16384];
    work->in.next_in = (z_const Bytef *)(uintptr_t)piece;
    work->in.avail_in = n;
    while (work->in.avail_in > 0 && *n_left > 0) {
        const uint32_t wanted = *n_left < sizeof rows ? (uint32_t)*n_left : sizeof rows;
        work->in.next_out = rows;
        work->in.avail_out = wanted;
        const int r = inflate(&work->in, Z_NO_FLUSH);
        const uint32_t made = wanted - work->in.avail_out;
        if (r < 0 || r == Z_NEED_DICT || (r == Z_STREAM_END && made < *n_left))
            return PSTK_EBADMSG;
        *n_left -= made;
        if (deflate_some(work, rows, made, Z_NO_FLUSH) < 0)
            return PSTK_ENOMEM;
    }
    return 0;
}

/* Walk over the image data, whose last chunk may be cut. */
static int copy_rows(struct work *work)
{
    uint64_t at = work->data_at, n_left = rows_size(work);
    struct pstk__png_chunk chunk;
    int r = 0;
    work->after_at = work->size;
    while (r == 0 && n_left > 0 && pstk__png_chunk_begin(work->data, work->size, at, &chunk) &&
           pstk__png_chunk_is(&chunk, "IDAT")) {
        const uint64_t there = work->size - (uint64_t)(chunk.data - work->data);
        const uint64_t whole = chunk.size < there ? chunk.size : there;
        for (uint64_t i = 0; r == 0 && i < whole && n_left > 0; i += PIECE_SIZE)
            r = take_piece(work, chunk.data + i,
                           whole - i < PIECE_SIZE ? (uint32_t)(whole - i) : PIECE_SIZE, &n_left);
        at += 12 + (uint64_t)chunk.size;
    }
    work->after_at = at < work->size ? at : work->size;
    return r < 0 ? r : n_left > 0 ? PSTK_EBADMSG : deflate_some(work, NULL, 0, Z_FINISH);
}

/* ---- all ------------------------------------------------------------------------------------ */

static int remake(struct work *work)
{
    int r = find_data(work);
    if (r < 0)
        return r;
    if (reserve(work, work->size + 4096) < 0)
        return PSTK_ENOMEM;
    memcpy(work->bytes, work->data, PSTK__PNG_IHDR_END);
    work->used = PSTK__PNG_IHDR_END;
    r = put_chunk(work, MARK, mark_text, sizeof mark_text - 1);
    const uint64_t before = work->data_at - PSTK__PNG_IHDR_END;
    if (r < 0 || reserve(work, before + 8) < 0)
        return PSTK_ENOMEM;
    memcpy(work->bytes + work->used, work->data + PSTK__PNG_IHDR_END, before);
    work->used += before;
    const uint64_t at = work->used;
    memcpy(work->bytes + at + 4, "IDAT", 4);
    work->used += 8;
    work->has_in = inflateInit(&work->in) == Z_OK;
    work->has_out = deflateInit(&work->out, Z_DEFAULT_COMPRESSION) == Z_OK;
    r = work->has_in && work->has_out ? copy_rows(work) : PSTK_ENOMEM;
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
    struct work work = {.data = data, .size = size, .info = info};
    *out = NULL;
    *out_size = 0;
    const int r = remake(&work);
    if (work.has_in)
        inflateEnd(&work.in);
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
