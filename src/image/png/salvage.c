/* SPDX-License-Identifier: Apache-2.0 */
#include "image/png/salvage.h"

#include "base/error.h"

#include <string.h>

/* ---- zlib's memory -------------------------------------------------------------------------- */

static voidpf take_memory(voidpf user, uInt n, uInt size)
{
    return pstk__arena_get(user, (uint64_t)n * size);
}

static void give_back(voidpf user, voidpf address)
{
    (void)user, (void)address; /* resetting the arena frees it */
}

int pstk__png_salvage_begin(struct pstk__png_salvage *salvage, struct pstk__arena *arena,
                            const void *data, uint64_t size, const struct pstk__image_info *info)
{
    salvage->rows.in = (z_stream){.zalloc = take_memory, .zfree = give_back, .opaque = arena};
    salvage->adler = (uint32_t)adler32(0, NULL, 0);
    salvage->has_rows = salvage->has_end = 0;
    const int r = pstk__png_rows_begin(&salvage->rows, data, size, info);
    salvage->next = data;
    salvage->n_next = r == 0 ? salvage->rows.data_at : 0;
    return r;
}

/* ---- chunks --------------------------------------------------------------------------------- */

/* Complete the chunk whose data is made[8] up to `end`. */
static void end_chunk(struct pstk__png_salvage *salvage, const char *name, uint8_t *end)
{
    const uint32_t n = (uint32_t)(end - salvage->made) - 8;
    memcpy(pstk__png_put32(salvage->made, n), name, 4);
    end = pstk__png_put32(end, (uint32_t)crc32_z(0, salvage->made + 4, n + 4));
    salvage->next = salvage->made;
    salvage->n_next = (uint64_t)(end - salvage->made);
}

/* Make a chunk of rows: a stored deflate block (RFC 1951, 3.2.4) in zlib's format (RFC 1950).
 * Returns 0 after the last row. */
static int64_t make_rows(struct pstk__png_salvage *salvage)
{
    uint8_t *p = salvage->made + 8;
    if (!salvage->has_rows) {
        *p++ = 0x78; /* deflate, a window of 32 KiB */
        *p++ = 0x01;
    }
    const int64_t n = pstk__png_rows_next(&salvage->rows, p + 5);
    if (n <= 0)
        return n;
    const int is_last = salvage->rows.n_left == 0;
    salvage->has_rows = 1;
    salvage->adler = (uint32_t)adler32_z(salvage->adler, p + 5, (size_t)n);
    p[0] = (uint8_t)is_last;
    p[1] = (uint8_t)n;
    p[2] = (uint8_t)(n >> 8);
    p[3] = (uint8_t)~p[1];
    p[4] = (uint8_t)~p[2];
    p += 5 + n;
    end_chunk(salvage, "IDAT", is_last ? pstk__png_put32(p, salvage->adler) : p);
    return n;
}

/* Make the next chunk. */
static int make(struct pstk__png_salvage *salvage)
{
    struct pstk__png_chunk chunk;
    int64_t r = make_rows(salvage);
    if (r != 0)
        return r < 0 ? (int)r : 0;
    if (salvage->has_end)
        return PSTK_EBADMSG;
    do
        r = pstk__png_rows_after(&salvage->rows, &chunk);
    while (r > 0);
    if (r < 0)
        return (int)r;
    salvage->has_end = 1;
    end_chunk(salvage, "IEND", salvage->made + 8);
    return 0;
}

int pstk__png_salvage_read(struct pstk__png_salvage *salvage, uint8_t *out, uint64_t n)
{
    while (n > 0) {
        const int r = salvage->n_next == 0 ? make(salvage) : 0;
        if (r < 0)
            return r;
        const uint64_t some = n < salvage->n_next ? n : salvage->n_next;
        memcpy(out, salvage->next, some);
        out += some;
        n -= some;
        salvage->next += some;
        salvage->n_next -= some;
    }
    return 0;
}
