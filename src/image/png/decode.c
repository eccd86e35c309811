/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PNG by libpng, Pillow's pixels: gray and palette expanded, alpha and tRNS dropped (not blended),
 * no gamma, of 16-bit samples the high byte. 16-bit gray without alpha is refused: Pillow reads it
 * as integers, which its convert("RGB") clips at 255 or scales, depending on the version.
 *
 * Any damage is an error, but for a palette that is too short: every chunk's CRC is checked (Pillow
 * passes over those of image data), and so is everything that libpng calls a warning or a benign
 * error. Chunks that do not bear on the pixels are read for their CRC only. What follows IEND is
 * not looked at.
 */
#include "base/error.h"
#include "image/image.h"

#include <png.h>
#include <setjmp.h>
#include <string.h>

#define SIGNATURE_SIZE 8
#define IHDR_END 33          /* signature, then length, name, 13 bytes and CRC of IHDR */
#define MAX_SIDE 0x7fffffffu /* the format's limit */

/* One image being decoded; on the stack of png_decode. */
struct reader {
    const uint8_t *data;
    uint64_t size;
    uint64_t at; /* <= size */
    struct pstk__arena *arena;
    png_structp png; /* in the arena, as is everything of libpng's */
    png_infop info;
    int out_of_memory; /* 1: the arena was full */
    char text[256];    /* libpng's last message */
    jmp_buf escape;
};

/* What one call decodes. */
struct job {
    const struct pstk__image_info *info;
    const struct pstk__box *box;
    const struct pstk__row_sink *sink;
};

/* ---- the header, without libpng ------------------------------------------------------------- */

static uint32_t read_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* CRC-32 (reflected 0xedb88320) of a few bytes; those of the image data are libpng's to check. */
static uint32_t crc32_of(const uint8_t *p, uint32_t n)
{
    uint32_t crc = 0xffffffffu;
    for (uint32_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (0xedb88320u & (0u - (crc & 1)));
    }
    return ~crc;
}

/* Orientation of the eXIf chunk before the image data, 1 when there is none. */
static uint32_t find_orientation(const uint8_t *data, uint64_t size)
{
    uint64_t at = IHDR_END;
    while (size - at >= 12) {
        uint32_t length = read_be32(data + at);
        if (length > size - at - 12 || memcmp(data + at + 4, "IDAT", 4) == 0)
            break;
        if (memcmp(data + at + 4, "eXIf", 4) == 0)
            return pstk__image_orientation(data + at + 8, length);
        at += 12 + (uint64_t)length;
    }
    return 1;
}

static int png_probe(const void *data, uint64_t size, uint64_t max_pixels,
                     struct pstk__image_info *info, struct pstk_error *err)
{
    const uint8_t *p = data;

    if (size < IHDR_END || memcmp(p, "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16) != 0 ||
        crc32_of(p + 12, 17) != read_be32(p + 29))
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                          "not a PNG file, or its header is damaged");
    uint32_t width = read_be32(p + 16), height = read_be32(p + 20);
    if (width > MAX_SIDE || height > MAX_SIDE)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE, "PNG header with a negative size");
    if (p[24] == 16 && p[25] == PNG_COLOR_TYPE_GRAY)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_DECODE,
                          "PNG with 16 bits of gray a pixel is not supported, since what RGB it "
                          "means is not agreed on; convert it to 8 bits");
    int r = pstk__image_check_size("PNG", width, height, max_pixels, err);
    if (r < 0)
        return r;
    *info = (struct pstk__image_info){.encoding = PSTK_ENCODING_PNG,
                                      .width = width,
                                      .height = height,
                                      .orientation = find_orientation(p, size)};
    return 0;
}

/* ---- libpng's callbacks --------------------------------------------------------------------- */

static PNG_NORETURN void on_error(png_structp png, png_const_charp text)
{
    struct reader *r = png_get_error_ptr(png);
    size_t n = strnlen(text, sizeof r->text - 1);
    memcpy(r->text, text, n);
    r->text[n] = 0;
    longjmp(r->escape, 1);
}

static png_voidp get_memory(png_structp png, png_alloc_size_t size)
{
    struct reader *r = png_get_mem_ptr(png);
    void *p = pstk__arena_get(r->arena, size);
    r->out_of_memory |= !p;
    return p;
}

static void free_memory(png_structp png, png_voidp p)
{
    (void)png; /* the arena is reset after the image */
    (void)p;
}

static void read_bytes(png_structp png, png_bytep out, size_t n)
{
    struct reader *r = png_get_io_ptr(png);
    if (n > r->size - r->at)
        png_error(png, "the file ends within the image");
    memcpy(out, r->data + r->at, n);
    r->at += n;
}

/* ---- decoding; everything here runs under the guard ----------------------------------------- */

static int check_header(struct reader *r, const struct pstk__image_info *info)
{
    uint32_t width = png_get_image_width(r->png, r->info);
    uint32_t height = png_get_image_height(r->png, r->info);
    if (width == info->width && height == info->height)
        return 0;
    snprintf(r->text, sizeof r->text, "image is %u x %u pixels, its record says %u x %u", width,
             height, info->width, info->height);
    return -1;
}

static void begin_image(struct reader *r, const struct pstk__image_info *info)
{
    png_structp png = r->png;
    r->info = png_create_info_struct(png);
    if (!r->info)
        png_error(png, "out of memory");
    png_set_read_fn(png, r, read_bytes);
    png_set_benign_errors(png, 0);
    png_set_user_limits(png, info->width, info->height); /* a larger one is refused unread */
    /* all but IHDR, PLTE, tRNS, IDAT and IEND; then tRNS, since transparency is dropped */
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, (png_const_bytep) "tRNS", 1);
    png_read_info(png, r->info);
}

/* A palette may be shorter than its indices reach: the rest are grays, as in Pillow. Without this
 * libpng would make them black, and look at the indices too late to object. */
static void fill_palette(struct reader *r)
{
    png_color full[256], *palette = NULL;
    int n = 0, n_all = 1 << png_get_bit_depth(r->png, r->info);
    png_get_PLTE(r->png, r->info, &palette, &n);
    for (int i = 0; i < n_all; i++)
        full[i] = i < n ? palette[i] : (png_color){(png_byte)i, (png_byte)i, (png_byte)i};
    png_set_PLTE(r->png, r->info, full, n_all);
}

static void choose_output(struct reader *r)
{
    png_structp png = r->png;
    uint32_t color = png_get_color_type(png, r->info);
    if (color == PNG_COLOR_TYPE_PALETTE)
        fill_palette(r);
    if (png_get_bit_depth(png, r->info) == 16)
        png_set_strip_16(png);
    png_set_expand(png); /* palette to RGB, gray of fewer than 8 bits to 8 */
    if (!(color & PNG_COLOR_MASK_COLOR))
        png_set_gray_to_rgb(png);
    if (color & PNG_COLOR_MASK_ALPHA)
        png_set_strip_alpha(png);
}

static void *get_rows(struct reader *r, uint64_t size)
{
    void *rows = pstk__arena_get(r->arena, size);
    r->out_of_memory |= !rows;
    if (!rows)
        png_error(r->png, "out of memory");
    return rows;
}

static void decode_plain(struct reader *r, const struct job *job)
{
    const struct pstk__box *box = job->box;
    uint8_t *row = get_rows(r, (uint64_t)job->info->width * 3);
    for (uint32_t y = 0; y < box->top + box->height; y++) {
        png_read_row(r->png, row, NULL);
        if (y >= box->top)
            job->sink->rows(job->sink->user, row + (size_t)box->left * 3, 0, 1);
    }
}

/* Seven passes over the whole image, of which each but the last fills some pixels of some rows. */
static void decode_interlaced(struct reader *r, const struct job *job, int n_passes)
{
    const struct pstk__box *box = job->box;
    uint64_t stride = (uint64_t)job->info->width * 3;
    uint8_t *rows = get_rows(r, stride * job->info->height);
    for (int pass = 0; pass < n_passes; pass++)
        for (uint32_t y = 0; y < job->info->height; y++)
            png_read_row(r->png, rows + y * stride, NULL);
    job->sink->rows(job->sink->user, rows + box->top * stride + (size_t)box->left * 3, stride,
                    box->height);
}

/* setjmp stands in a function of its own with nothing but pointers alive across it. */
static int decode_guarded(struct reader *r, const struct job *job)
{
    if (setjmp(r->escape))
        return -1;
    /* on_error twice: a warning (a wrong CRC of a chunk that is passed over) is an error too */
    r->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, r, on_error, on_error, r, get_memory,
                                      free_memory);
    if (!r->png) {
        r->out_of_memory = 1;
        return -1;
    }
    begin_image(r, job->info);
    if (check_header(r, job->info) < 0)
        return -1;
    choose_output(r);
    int n_passes = png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    if (png_get_rowbytes(r->png, r->info) != (size_t)job->info->width * 3)
        png_error(r->png, "its rows do not come out as RGB");
    if (n_passes > 1)
        decode_interlaced(r, job, n_passes);
    else
        decode_plain(r, job);
    if (n_passes > 1 || job->box->top + job->box->height == job->info->height)
        png_read_end(r->png, NULL);
    return 0;
}

static int png_decode(struct pstk__image_state *state, const void *data, uint64_t size,
                      const struct pstk__image_info *info, const struct pstk__box *box,
                      const struct pstk__row_sink *sink, struct pstk_error *err)
{
    const struct job job = {.info = info, .box = box, .sink = sink};
    struct reader r = {.data = data, .size = size, .arena = state->arena};
    struct pstk__image_info found;

    int result = pstk__image_check_box(info, box, err);
    if (result == 0)
        result = png_probe(data, size, UINT64_MAX, &found, err);
    if (result < 0)
        return result;
    size_t mark = state->arena->used;
    result = decode_guarded(&r, &job);
    pstk__arena_reset(state->arena, mark);
    if (result == 0)
        return 0;
    if (r.out_of_memory)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_DECODE,
                          "PNG needs more scratch memory than its size allows for");
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE, "PNG: %s (at byte %llu of %llu)",
                      r.text, (unsigned long long)r.at, (unsigned long long)size);
}

/*
 * Bytes that an image of w x h pixels takes: interlaced, the whole of it in RGB; libpng's two row
 * buffers and zlib's limits hold for any: up to 8 bytes a pixel, rounded up to 8 pixels, and 64
 * more; our row; libpng's structs, zlib's state and window (7 and 32 KiB), and libpng's read buffer
 * for one chunk and inflate's tables: below 128 KiB.
 */
uint64_t pstk__png_scratch(uint32_t max_width, uint32_t max_height, uint64_t max_pixels)
{
    uint64_t row = (uint64_t)max_width * 3 + 64;
    uint64_t area = (uint64_t)max_width * max_height;
    uint64_t pixels = 3 * (area < max_pixels ? area : max_pixels) + 64 * (uint64_t)max_height;
    uint64_t buffers = 2 * (8 * ((uint64_t)max_width + 8) + 128) + row;
    return pixels + buffers + (128u << 10);
}

const struct pstk__image_decoder pstk__image_png = {
    .encoding = PSTK_ENCODING_PNG,
    .name = "png",
    .probe = png_probe,
    .decode = png_decode,
};
