/* SPDX-License-Identifier: Apache-2.0 */
#include "image/jpeg/encode.h"

#include "base/error.h"
#include "image/jpeg/library.h"

#include <jerror.h>
#include <stdlib.h>

#define FIRST_SIZE (64u << 10) /* bytes of the first output buffer; it doubles */

struct encode {
    struct pstk__jpeg_guard guard; /* first: libjpeg's callbacks find the encode through it */
    struct jpeg_compress_struct cinfo;
    struct jpeg_destination_mgr destination;
    const struct pstk__jpeg_picture *picture;
    uint8_t *bytes; /* owned until returned */
    size_t capacity;
    size_t size; /* bytes of the finished file */
};

/* ---- where the bytes go --------------------------------------------------------------------- */

/* Double the room, and keep its contents. */
static void grow(struct encode *encode)
{
    const size_t used = encode->capacity, capacity = used ? 2 * used : FIRST_SIZE;
    uint8_t *bytes = realloc(encode->bytes, capacity);
    if (!bytes)
        ERREXIT1(&encode->cinfo, JERR_OUT_OF_MEMORY, 0); /* does not return; keeps encode->bytes */
    encode->bytes = bytes;
    encode->capacity = capacity;
    encode->destination.next_output_byte = bytes + used;
    encode->destination.free_in_buffer = capacity - used;
}

static void on_begin(j_compress_ptr cinfo)
{
    grow(cinfo->client_data);
}

static boolean on_full(j_compress_ptr cinfo)
{
    grow(cinfo->client_data);
    return TRUE;
}

static void on_end(j_compress_ptr cinfo)
{
    struct encode *encode = cinfo->client_data;
    encode->size = encode->capacity - encode->destination.free_in_buffer;
}

/* ---- under the guard ------------------------------------------------------------------------ */

/* Write a TIFF of one directory with one entry, big-endian: 0x0112 Orientation, one SHORT. */
static void put_orientation(struct encode *encode)
{
    uint8_t exif[32] = {'E', 'x', 'i', 'f', 0, 0, 'M', 'M', 0, 42, 0, 0, 0, 8, 0,
                        1,   1,   18,  0,   3, 0, 0,   0,   1, 0,  0, 0, 0, 0, 0};
    exif[25] = (uint8_t)encode->picture->orientation;
    jpeg_write_marker(&encode->cinfo, JPEG_APP0 + 1, exif, sizeof exif);
}

static int write_file(void *user)
{
    struct encode *encode = user;
    struct jpeg_compress_struct *cinfo = &encode->cinfo;
    const struct pstk__jpeg_picture *picture = encode->picture;
    cinfo->image_width = picture->width;
    cinfo->image_height = picture->height;
    cinfo->input_components = 3;
    cinfo->in_color_space = JCS_RGB;
    jpeg_set_defaults(cinfo); /* YCbCr, 4:2:0, JDCT_ISLOW, standard tables */
    jpeg_set_quality(cinfo, (int)picture->quality, TRUE);
    jpeg_start_compress(cinfo, TRUE);
    if (picture->orientation != 1)
        put_orientation(encode);
    while (cinfo->next_scanline < cinfo->image_height) {
        const uint8_t *row = picture->rgb + (size_t)cinfo->next_scanline * picture->width * 3;
        JSAMPROW rows[1] = {(JSAMPROW)(uintptr_t)row}; /* libjpeg only reads it */
        jpeg_write_scanlines(cinfo, rows, 1);
    }
    jpeg_finish_compress(cinfo);
    return 0;
}

/* ---- encoding ------------------------------------------------------------------------------- */

static int encode(struct encode *e, struct pstk_error *err)
{
    if (pstk__jpeg_open_compress(&e->guard, &e->cinfo) != 0)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "libjpeg cannot start: %s",
                          e->guard.text);
    e->cinfo.dest = &e->destination;
    if (pstk__jpeg_guarded(&e->guard, write_file, e) == 0)
        return 0;
    const int code = e->guard.code == JERR_OUT_OF_MEMORY   ? PSTK_ENOMEM
                     : e->guard.code == JERR_IMAGE_TOO_BIG ? PSTK_ENOTSUP
                                                           : PSTK_EINVAL;
    return pstk__fail(err, code, PSTK_STAGE_WRITE, "cannot write a JPEG of %u x %u pixels: %s",
                      e->picture->width, e->picture->height, e->guard.text);
}

int pstk__jpeg_encode(const struct pstk__jpeg_picture *picture, void **out, uint64_t *out_size,
                      struct pstk__arena *arena, struct pstk_error *err)
{
    const size_t mark = arena->used;
    struct encode e = {.picture = picture,
                       .destination = {.init_destination = on_begin,
                                       .empty_output_buffer = on_full,
                                       .term_destination = on_end}};
    *out = NULL;
    *out_size = 0;
    pstk__jpeg_guard_init(&e.guard, arena);
    const int r = encode(&e, err);
    pstk__jpeg_close_compress(&e.guard, &e.cinfo);
    pstk__arena_reset(arena, mark);
    if (r < 0) {
        free(e.bytes);
        return r;
    }
    *out = e.bytes;
    *out_size = e.size;
    return 0;
}

/*
 * Bound the memory: three components at full size, of at most 2 x 2 blocks an MCU, in rows of the
 * width rounded up to 16 samples, and to the memory manager's 64 bytes. The colour converter takes
 * the rows of one row group with context (2 * 3, and 5 pointers a row), the coefficient controller
 * a strip of 16 rows; together 32. Tables (colour 6 KiB, 4 derived Huffman tables of 1.5 KiB,
 * quantisation, MCU buffer of 10 blocks) and state add less than 64 KiB.
 */
uint64_t pstk__jpeg_encode_scratch(uint32_t width)
{
    return 3 * 32 * ((uint64_t)width + 16 + 64) + (64u << 10);
}
