/* SPDX-License-Identifier: Apache-2.0 */
#include "image/png/rows.h"

#include "base/error.h"

#include <string.h>

#define PIECE_SIZE 65536u /* bytes that Pillow hands to zlib at once; ImageFile.MAXBLOCK */
#define INTERLACE_AT 28   /* in IHDR: PNG 3, 11.2.1 */

/* ---- what Pillow refuses -------------------------------------------------------------------- */

static int is_any(const struct pstk__png_chunk *chunk, const char *names)
{
    for (; *names; names += 4)
        if (pstk__png_chunk_is(chunk, names))
            return 1;
    return 0;
}

/* Return 1 when Pillow accepts the compression method, the byte after the key of a text or profile:
 * it is 0, or missing from a text. */
static int has_method(const struct pstk__png_chunk *chunk)
{
    const uint8_t *zero = chunk->size ? memchr(chunk->data, 0, chunk->size) : NULL;
    const uint64_t key = zero ? (uint64_t)(zero - chunk->data) : chunk->size;
    const int is_profile = pstk__png_chunk_is(chunk, "iCCP");
    return chunk->size > key + 1 ? chunk->data[key + 1] == 0 : !is_profile;
}

/* Return 1 when Pillow raises an exception, or the file is an animation. */
static int is_refused(const struct pstk__png_rows *rows, const struct pstk__png_chunk *chunk)
{
    const struct pstk__image_info *info = rows->info;
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

/* Return 1 when the chunk before `end` has the right CRC. */
static int has_crc(const struct pstk__png_rows *rows, const struct pstk__png_chunk *chunk,
                   uint64_t end)
{
    return end <= rows->size &&
           pstk__png_get32(chunk->data + chunk->size) ==
               (uint32_t)crc32_z(0, (const uint8_t *)chunk->name, 4 + (uint64_t)chunk->size);
}

/* Find the image data. Pillow checks the chunks before them. */
static int find_data(struct pstk__png_rows *rows)
{
    struct pstk__png_chunk chunk;
    uint64_t at = PSTK__PNG_IHDR_END;
    rows->data_at = at;
    while (pstk__png_chunk_next(rows->data, rows->size, &at, &chunk)) {
        if (pstk__png_chunk_is(&chunk, "IDAT"))
            break;
        if (!has_crc(rows, &chunk, at) || is_refused(rows, &chunk) ||
            pstk__png_chunk_is(&chunk, "IEND"))
            return PSTK_EBADMSG;
        rows->data_at = at;
    }
    rows->at = rows->data_at;
    return 0;
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* Return the bytes of all rows, each with its filter; the image may be interlaced. */
static uint64_t rows_size(const struct pstk__png_rows *rows)
{
    static const uint8_t passes[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                         {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
    const struct pstk__image_info *info = rows->info;
    const uint64_t bits = (uint64_t)info->channels * info->bit_depth;
    uint64_t sum = 0;
    if (!rows->data[INTERLACE_AT])
        return info->height * ((info->width * bits + 7) / 8 + 1);
    for (int i = 0; i < 7; i++) {
        const uint64_t width = (info->width + passes[i][2] - 1u - passes[i][0]) / passes[i][2];
        const uint64_t height = (info->height + passes[i][3] - 1u - passes[i][1]) / passes[i][3];
        sum += width ? height * ((width * bits + 7) / 8 + 1) : 0;
    }
    return sum;
}

int pstk__png_rows_begin(struct pstk__png_rows *rows, const void *data, uint64_t size,
                         const struct pstk__image_info *info)
{
    rows->data = data;
    rows->size = size;
    rows->info = info;
    rows->is_open = 0;
    rows->piece_at = rows->piece_end = 0;
    const int r = find_data(rows);
    if (r < 0)
        return r;
    rows->n_left = rows_size(rows);
    rows->is_open = inflateInit(&rows->in) == Z_OK;
    return rows->is_open ? 0 : PSTK_ENOMEM;
}

/* Go to the next chunk of image data, the last of which may be cut. Returns 0 when there is none.
 */
static int next_chunk(struct pstk__png_rows *rows)
{
    struct pstk__png_chunk chunk;
    if (!pstk__png_chunk_begin(rows->data, rows->size, rows->at, &chunk) ||
        !pstk__png_chunk_is(&chunk, "IDAT"))
        return 0;
    rows->piece_at = (uint64_t)(chunk.data - rows->data);
    const uint64_t there = rows->size - rows->piece_at;
    rows->piece_end = rows->piece_at + (chunk.size < there ? chunk.size : there);
    rows->at += 12 + (uint64_t)chunk.size;
    return 1;
}

/* Give zlib the next piece, in Pillow's sizes. Returns 0 when there is none. */
static int next_piece(struct pstk__png_rows *rows)
{
    while (rows->piece_at == rows->piece_end)
        if (!next_chunk(rows))
            return 0;
    const uint64_t left = rows->piece_end - rows->piece_at;
    rows->in.next_in = (z_const Bytef *)(uintptr_t)(rows->data + rows->piece_at);
    rows->in.avail_in = left < PIECE_SIZE ? (uInt)left : PIECE_SIZE;
    rows->piece_at += rows->in.avail_in;
    return 1;
}

/* Inflate no further than the last row: zlib may refuse bytes before or at its end, and Pillow
 * reads no later ones. */
int64_t pstk__png_rows_next(struct pstk__png_rows *rows, uint8_t *out)
{
    while (rows->n_left > 0) {
        if (rows->in.avail_in == 0 && !next_piece(rows))
            return PSTK_EBADMSG;
        const uint32_t wanted =
            rows->n_left < PSTK__PNG_ROWS_ROOM ? (uint32_t)rows->n_left : PSTK__PNG_ROWS_ROOM;
        rows->in.next_out = out;
        rows->in.avail_out = wanted;
        const int r = inflate(&rows->in, Z_NO_FLUSH);
        const uint32_t made = wanted - rows->in.avail_out;
        if (r < 0 || r == Z_NEED_DICT || (r == Z_STREAM_END && made < rows->n_left))
            return PSTK_EBADMSG;
        rows->n_left -= made;
        if (made > 0)
            return made;
    }
    return 0;
}

/* ---- what follows --------------------------------------------------------------------------- */

int pstk__png_rows_after(struct pstk__png_rows *rows, struct pstk__png_chunk *chunk)
{
    if (!pstk__png_chunk_begin(rows->data, rows->size, rows->at, chunk) ||
        pstk__png_chunk_is(chunk, "IEND"))
        return 0;
    return !pstk__png_chunk_next(rows->data, rows->size, &rows->at, chunk) ||
                   is_refused(rows, chunk)
               ? PSTK_EBADMSG
               : 1;
}

void pstk__png_rows_close(struct pstk__png_rows *rows)
{
    if (rows->is_open)
        inflateEnd(&rows->in);
    rows->is_open = 0;
}
