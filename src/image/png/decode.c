/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png/decode: decodes PNG by libpng, to the pixels of Pillow 12. Gray and palette are expanded,
 * gamma is ignored, and 16-bit samples keep their high byte. Alpha and tRNS become alpha or are
 * dropped; nothing is blended. 16-bit gray without alpha is refused: Pillow reads it as integers,
 * which its convert() clips at 255 or scales, depending on the version.
 *
 * Any damage is an error, except a palette that is too short and an odd tRNS chunk that Pillow
 * accepts. That covers every chunk's CRC (Pillow ignores those of image data), and everything that
 * libpng reports as a warning or a benign error. Of chunks that do not affect the pixels only the
 * CRC is read. Bytes after IEND are not read. A second decoder goes on where the fault comes after
 * the rows.
 */
#include "image/png/decode.h"

#include "base/error.h"
#include "base/signature.h"
#include "image/channels.h"
#include "image/png/chunk.h"
#include "image/png/orientation.h"
#include "image/png/salvage.h"

#include <penstock/format.h>
#include <png.h>
#include <setjmp.h>
#include <string.h>

#define BIT_DEPTH_AT 24 /* in IHDR, the first chunk: PNG 3, 11.2.1 */
#define COLOR_TYPE_AT 25
#define MAX_SIDE 0x7fffffffu /* the format's limit */

/* A coded image, of at least PSTK__PNG_IHDR_END bytes. */
struct file {
    const uint8_t *data;
    uint64_t size;
};

/* An image being decoded; on the stack of png_decode. */
struct reader {
    struct file file;
    uint64_t at;                       /* position of the next byte, <= file.size */
    struct pstk__png_salvage *salvage; /* in the arena; libpng reads its bytes; NULL: it reads those
                                          of `file` */
    struct pstk__arena *arena;
    png_structp png; /* in the arena, like all memory of libpng */
    png_infop info;
    uint32_t row_channels; /* channels of libpng's rows: the sink's, with two exceptions: 3 for
                              colour and a sink of 1, and 1 for palette indices */
    uint32_t has_palette;  /* 1: rows are palette indices */
    uint32_t has_key;      /* 1: pixels of this colour have alpha 0 */
    uint8_t key[3];
    uint8_t colors[256][4]; /* by index, in the sink's channels */
    int has_rows;           /* 1: past the last row */
    int out_of_memory;      /* 1: the arena was full */
    char text[256];         /* libpng's last message */
    jmp_buf escape;
};

/* The arguments of a decode. */
struct request {
    const struct pstk__image_info *info;
    const struct pstk__box *box;
    const struct pstk__row_sink *sink; /* channels are a sample's bytes when samples are given as
                                          coded */
    int as_coded;                      /* 1: give the samples of one channel as coded */
    int is_salvaged;                   /* 1: the fault of the file may come after its rows */
};

/* ---- the header, without libpng ------------------------------------------------------------- */

/* Return the CRC-32 (reflected 0xedb88320) of a few bytes; libpng checks those of the image data.
 */
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

/* Return the samples of a pixel; 0: PNG does not allow this colour type with this bit depth (PNG 3,
 * 11.2.1). */
static uint32_t channels_of(uint32_t bit_depth, uint32_t color_type)
{
    const int is_whole = bit_depth == 8 || bit_depth == 16;
    const int is_part = bit_depth == 1 || bit_depth == 2 || bit_depth == 4;
    switch (color_type) {
    case PNG_COLOR_TYPE_GRAY:
        return is_whole || is_part;
    case PNG_COLOR_TYPE_PALETTE:
        return bit_depth == 8 || is_part;
    case PNG_COLOR_TYPE_GRAY_ALPHA:
        return is_whole ? 2 : 0;
    case PNG_COLOR_TYPE_RGB:
        return is_whole ? 3 : 0;
    case PNG_COLOR_TYPE_RGB_ALPHA:
        return is_whole ? 4 : 0;
    default:
        return 0;
    }
}

/* Read the header of any PNG file, without the orientation. */
static int read_header(const struct file *file, uint64_t max_pixels, struct pstk__image_info *info,
                       struct pstk_error *err)
{
    const uint8_t *p = file->data;
    if (file->size < PSTK__PNG_IHDR_END || memcmp(p, "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16) != 0 ||
        crc32_of(p + 12, 17) != pstk__png_get32(p + 29))
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                          "not a PNG file, or its header is damaged");
    uint32_t width = pstk__png_get32(p + 16), height = pstk__png_get32(p + 20);
    if (width > MAX_SIDE || height > MAX_SIDE)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE, "PNG header with a negative size");
    const uint32_t channels = channels_of(p[BIT_DEPTH_AT], p[COLOR_TYPE_AT]);
    if (channels == 0)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                          "PNG header with colour type %u of %u bits, which no PNG has",
                          p[COLOR_TYPE_AT], p[BIT_DEPTH_AT]);
    int r = pstk__image_check_size("PNG", width, height, max_pixels, err);
    if (r < 0)
        return r;
    *info = (struct pstk__image_info){.encoding = PSTK_ENCODING_PNG,
                                      .width = width,
                                      .height = height,
                                      .orientation = 1,
                                      .channels = (uint8_t)channels,
                                      .bit_depth = p[BIT_DEPTH_AT],
                                      .has_palette = p[COLOR_TYPE_AT] == PNG_COLOR_TYPE_PALETTE};
    return 0;
}

static int png_probe(const void *data, uint64_t size, uint64_t max_pixels,
                     struct pstk__image_info *info, struct pstk_error *err)
{
    struct pstk__image_info found;
    const int r = read_header(&(const struct file){data, size}, max_pixels, &found, err);
    if (r < 0)
        return r;
    if (found.channels == 1 && found.bit_depth == 16)
        return pstk__fail(
            err, PSTK_ENOTSUP, PSTK_STAGE_DECODE,
            "PNG with 16-bit gray is not supported, because programs disagree on its "
            "RGB values; convert it to 8 bits, or pack it as the mask of an image, in "
            "a field of kind mask");
    *info = found;
    info->orientation = pstk__png_orientation(data, size);
    return 0;
}

int pstk__png_probe_samples(const void *data, uint64_t size, uint64_t max_pixels,
                            struct pstk__image_info *info, struct pstk_error *err)
{
    struct pstk__image_info found;
    const int r = read_header(&(const struct file){data, size}, max_pixels, &found, err);
    if (r < 0)
        return r;
    if (found.channels != 1)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                          "the PNG file has %u channels; a mask must have 1 (gray, or the numbers "
                          "of a palette)",
                          found.channels);
    *info = found;
    return 0;
}

int pstk_image_is_palette(const void *data, uint64_t size)
{
    return data && size > COLOR_TYPE_AT &&
           pstk__signature_find(data, size, NULL) == PSTK__SIGNATURE_PNG &&
           ((const uint8_t *)data)[COLOR_TYPE_AT] == PNG_COLOR_TYPE_PALETTE;
}

/* ---- libpng's callbacks --------------------------------------------------------------------- */

static PNG_NORETURN void on_error(png_structp png, png_const_charp text)
{
    struct reader *reader = png_get_error_ptr(png);
    size_t n = strnlen(text, sizeof reader->text - 1);
    memcpy(reader->text, text, n);
    reader->text[n] = 0;
    longjmp(reader->escape, 1);
}

static png_voidp get_memory(png_structp png, png_alloc_size_t size)
{
    struct reader *reader = png_get_mem_ptr(png);
    void *p = pstk__arena_get(reader->arena, size);
    reader->out_of_memory |= !p;
    return p;
}

static void free_memory(png_structp png, png_voidp p)
{
    (void)png; /* resetting the arena frees it */
    (void)p;
}

static void read_bytes(png_structp png, png_bytep out, size_t n)
{
    struct reader *reader = png_get_io_ptr(png);
    if (reader->salvage) {
        if (pstk__png_salvage_read(reader->salvage, out, n) < 0)
            png_error(png, "its rows are incomplete, or Pillow refuses the chunks after them");
        return;
    }
    if (n > reader->file.size - reader->at)
        png_error(png, reader->has_rows ? "the file ends after its rows, without IEND"
                                        : "the file ends within the image");
    memcpy(out, reader->file.data + reader->at, n);
    reader->at += n;
}

/* ---- decoding; everything here runs under the guard ----------------------------------------- */

static int check_header(struct reader *reader, const struct pstk__image_info *info)
{
    uint32_t width = png_get_image_width(reader->png, reader->info);
    uint32_t height = png_get_image_height(reader->png, reader->info);
    if (width == info->width && height == info->height)
        return 0;
    snprintf(reader->text, sizeof reader->text, "image is %u x %u pixels, its record says %u x %u",
             width, height, info->width, info->height);
    return -1;
}

static void begin_image(struct reader *reader, const struct request *request)
{
    const struct pstk__image_info *info = request->info;
    png_structp png = reader->png;
    reader->info = png_create_info_struct(png);
    if (!reader->info)
        png_error(png, "out of memory");
    png_set_read_fn(png, reader, read_bytes);
    png_set_benign_errors(png, 0);
    png_set_user_limits(png, info->width, info->height); /* libpng refuses a larger image unread */
    /* skip all chunks except IHDR, PLTE, tRNS, IDAT and IEND; then also tRNS, which this file reads
     * by Pillow's rules */
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, (png_const_bytep) "tRNS", 1);
    png_read_info(png, reader->info);
}

/* Find the tRNS chunk that applies: the last one of the file, as in Pillow. None may be shorter
 * than `least` bytes. NULL: there is none. */
static const uint8_t *find_transparency(const struct reader *reader, uint32_t least,
                                        uint32_t *length)
{
    uint64_t at = PSTK__PNG_IHDR_END;
    struct pstk__png_chunk chunk;
    const uint8_t *last = NULL;
    while (pstk__png_chunk_next(reader->file.data, reader->file.size, &at, &chunk) &&
           !pstk__png_chunk_is(&chunk, "IEND")) {
        if (!pstk__png_chunk_is(&chunk, "tRNS"))
            continue;
        if (chunk.size < least)
            png_error(reader->png, "tRNS: too short for a colour");
        last = chunk.data;
        *length = chunk.size;
    }
    return last;
}

/* Return the index of the 0 in a chunk of 255s with a single 0, else `length`. Pillow finds it by a
 * regular expression whose end also matches before a newline (10). */
static uint32_t find_single_zero(const uint8_t *chunk, uint32_t length)
{
    uint32_t zero = length, n_others = 0;
    for (uint32_t i = 0; i < length; i++) {
        if (chunk[i] == 0 && zero == length)
            zero = i;
        else if (chunk[i] != 255)
            n_others += i + 1 != length || chunk[i] != 10;
    }
    return n_others ? length : zero;
}

/* Set the alpha of all palette entries, also of missing ones; 255 after the end of the chunk.
 * Pillow, too, refuses a chunk of more than 256 bytes, unless it makes a single entry
 * transparent. */
static void choose_palette_alpha(struct reader *reader)
{
    uint32_t length = 0;
    const uint8_t *chunk = find_transparency(reader, 0, &length);
    for (uint32_t i = 0; i < 256; i++)
        reader->colors[i][3] = 255;
    if (!chunk)
        return;
    const uint32_t zero = find_single_zero(chunk, length), n = zero < length ? zero + 1 : length;
    if (n > 256)
        png_error(reader->png, "tRNS: longer than a palette");
    for (uint32_t i = 0; i < n; i++)
        reader->colors[i][3] = chunk[i];
}

/* Make libpng return indices. Indices past the end of the palette are black, as in Pillow 12. */
static void choose_palette(struct reader *reader, uint32_t channels)
{
    png_color *palette = NULL;
    int n = 0;
    reader->has_palette = 1;
    reader->row_channels = 1;
    png_set_packing(reader->png);
    png_set_check_for_invalid_index(reader->png, -1);
    png_get_PLTE(reader->png, reader->info, &palette, &n);
    if (channels == 4)
        choose_palette_alpha(reader);
    for (int i = 0; i < n; i++) {
        const uint8_t rgb[3] = {palette[i].red, palette[i].green, palette[i].blue};
        memcpy(reader->colors[i], rgb, sizeof rgb);
        if (channels == 1)
            pstk__gray_from_rgb(reader->colors[i], rgb, 1);
    }
}

/*
 * Choose the alpha of an image that has neither palette nor alpha. Its tRNS chunk holds a key, the
 * one transparent colour. As in Pillow, the low bytes of the key are compared with the 8-bit
 * pixels, so a key of 2, 4 or 16 bits rarely matches as the format defines it. For 1-bit gray any
 * key except 0 means white.
 */
static void choose_alpha(struct reader *reader, uint32_t color)
{
    uint32_t length = 0;
    const uint32_t n = color == PNG_COLOR_TYPE_RGB ? 3 : 1;
    const uint8_t *chunk = find_transparency(reader, 2 * n, &length);
    png_set_add_alpha(reader->png, 255, PNG_FILLER_AFTER);
    if (!chunk)
        return;
    reader->has_key = 1;
    for (uint32_t i = 0; i < 3; i++)
        reader->key[i] = chunk[2 * (n == 3 ? i : 0) + 1];
    if (n == 1 && png_get_bit_depth(reader->png, reader->info) == 1)
        memset(reader->key, chunk[0] || chunk[1] ? 255 : 0, sizeof reader->key);
}

/* Make libpng return the samples as coded: one byte each, or two for 16 bits in the machine's
 * order, which is little-endian. */
static void choose_samples(struct reader *reader)
{
    const int is_wide = png_get_bit_depth(reader->png, reader->info) == 16;
    reader->row_channels = is_wide ? 2 : 1;
    png_set_packing(reader->png);
    png_set_check_for_invalid_index(reader->png, -1);
    if (is_wide)
        png_set_swap(reader->png);
}

static void choose_output(struct reader *reader, const struct request *request)
{
    png_structp png = reader->png;
    uint32_t color = png_get_color_type(png, reader->info), channels = request->sink->channels;
    if (request->as_coded) {
        choose_samples(reader);
        return;
    }
    if (color == PNG_COLOR_TYPE_PALETTE) {
        choose_palette(reader, channels);
        return;
    }
    reader->row_channels = channels == 1 && (color & PNG_COLOR_MASK_COLOR) ? 3 : channels;
    if (png_get_bit_depth(png, reader->info) == 16)
        png_set_strip_16(png);
    png_set_expand(png); /* expand gray of fewer than 8 bits */
    if (!(color & PNG_COLOR_MASK_COLOR) && channels != 1)
        png_set_gray_to_rgb(png);
    if ((color & PNG_COLOR_MASK_ALPHA) && channels != 4)
        png_set_strip_alpha(png);
    if (!(color & PNG_COLOR_MASK_ALPHA) && channels == 4)
        choose_alpha(reader, color);
}

/* Replace indices by colours, in place, from the last to the first, because colours are longer. */
static inline void expand_palette(const struct reader *reader, uint8_t *row, uint32_t n,
                                  uint32_t channels)
{
    for (uint32_t x = n; x-- > 0;)
        memcpy(row + (size_t)x * channels, reader->colors[row[x]], channels);
}

/* Convert pixels from choose_output's form to the sink's channels, in place. */
static void convert_pixels(const struct reader *reader, uint8_t *row, const struct request *request)
{
    const uint32_t n = request->box->width, channels = request->sink->channels;
    if (request->as_coded)
        return;
    if (reader->has_palette) {
        if (channels == 1)
            expand_palette(reader, row, n, 1);
        else if (channels == 3)
            expand_palette(reader, row, n, 3);
        else
            expand_palette(reader, row, n, 4);
        return;
    }
    if (reader->row_channels != channels)
        pstk__gray_from_rgb(row, row, n);
    for (uint32_t x = 0; reader->has_key && x < n; x++)
        if (memcmp(row + 4 * (size_t)x, reader->key, sizeof reader->key) == 0)
            row[4 * (size_t)x + 3] = 0;
}

static void *get_rows(struct reader *reader, uint64_t size)
{
    void *rows = pstk__arena_get(reader->arena, size);
    reader->out_of_memory |= !rows;
    if (!rows)
        png_error(reader->png, "out of memory");
    return rows;
}

/* Return the bytes of a row in libpng's form or the sink's, whichever is longer. */
static uint64_t row_size(const struct reader *reader, const struct request *request)
{
    const uint32_t channels = request->sink->channels;
    return (uint64_t)request->info->width *
           (channels > reader->row_channels ? channels : reader->row_channels);
}

static void decode_plain(struct reader *reader, const struct request *request)
{
    const struct pstk__box *box = request->box;
    uint8_t *row = get_rows(reader, row_size(reader, request));
    uint8_t *first = row + (size_t)box->left * reader->row_channels;
    for (uint32_t y = 0; y < box->top + box->height; y++) {
        png_read_row(reader->png, row, NULL);
        if (y < box->top)
            continue;
        convert_pixels(reader, first, request);
        request->sink->rows(request->sink->user, first, 0, 1);
    }
}

/* Decode the whole image in seven passes. Each pass except the last fills some pixels of some rows.
 */
static void decode_interlaced(struct reader *reader, const struct request *request, int n_passes)
{
    const struct pstk__box *box = request->box;
    const uint64_t stride = row_size(reader, request);
    uint8_t *rows = get_rows(reader, stride * request->info->height);
    for (int pass = 0; pass < n_passes; pass++)
        for (uint32_t y = 0; y < request->info->height; y++)
            png_read_row(reader->png, rows + y * stride, NULL);
    uint8_t *first = rows + box->top * stride + (size_t)box->left * reader->row_channels;
    for (uint32_t y = 0; y < box->height; y++)
        convert_pixels(reader, first + y * stride, request);
    request->sink->rows(request->sink->user, first, stride, box->height);
}

/* Decode under setjmp. It has a function of its own, in which only pointers live across it. */
static int decode_guarded(struct reader *reader, const struct request *request)
{
    if (setjmp(reader->escape))
        return -1;
    /* on_error twice: a warning (such as a skipped chunk's wrong CRC) is an error too */
    reader->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, reader, on_error, on_error,
                                           reader, get_memory, free_memory);
    if (!reader->png) {
        reader->out_of_memory = 1;
        return -1;
    }
    begin_image(reader, request);
    if (check_header(reader, request->info) < 0)
        return -1;
    choose_output(reader, request);
    int n_passes = png_set_interlace_handling(reader->png);
    png_read_update_info(reader->png, reader->info);
    if (png_get_rowbytes(reader->png, reader->info) !=
        (size_t)request->info->width * reader->row_channels)
        png_error(reader->png, "its rows do not have the requested channels");
    if (n_passes > 1)
        decode_interlaced(reader, request, n_passes);
    else
        decode_plain(reader, request);
    reader->has_rows = 1;
    if (n_passes > 1 || request->box->top + request->box->height == request->info->height)
        png_read_end(reader->png, NULL);
    return 0;
}

/* Use the arena as the state. */
static int png_open(void **out, struct pstk__arena *arena, uint32_t isa, struct pstk_error *err)
{
    (void)isa;
    (void)err;
    *out = arena;
    return 0;
}

/* Make libpng read the bytes of a repaired file instead of the image's own; its header goes to
 * *found. Returns -1 with the reader's text or out_of_memory set. */
static int begin_salvage(struct reader *reader, struct pstk__image_info *found)
{
    int result = read_header(&reader->file, UINT64_MAX, found, NULL);
    reader->salvage = pstk__arena_get(reader->arena, sizeof *reader->salvage);
    if (result == 0)
        result = reader->salvage
                     ? pstk__png_salvage_begin(reader->salvage, reader->arena, reader->file.data,
                                               reader->file.size, found)
                     : PSTK_ENOMEM;
    reader->out_of_memory = result == PSTK_ENOMEM;
    if (result < 0)
        snprintf(reader->text, sizeof reader->text, "Pillow refuses a chunk before its rows");
    return result < 0 ? -1 : 0;
}

static int run(struct pstk__arena *arena, const struct pstk__coded *image,
               const struct request *request, struct pstk_error *err)
{
    struct reader reader = {.file = {image->data, image->size}, .arena = arena};
    struct pstk__image_info found;
    size_t mark = arena->used;
    int result = request->is_salvaged ? begin_salvage(&reader, &found) : 0;
    if (result == 0)
        result = decode_guarded(&reader, request);
    pstk__arena_reset(arena, mark);
    if (result == 0)
        return 0;
    if (reader.out_of_memory)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_DECODE,
                          "PNG needs more scratch memory than its size allows for");
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE, "PNG: %s (at byte %llu of %llu)",
                      reader.text, (unsigned long long)reader.at, (unsigned long long)image->size);
}

/* Decode a box of an image that is no mask. */
static int decode_box(struct pstk__arena *arena, const struct pstk__coded *image,
                      const struct request *request, struct pstk_error *err)
{
    struct pstk__image_info found;
    int result = pstk__image_check_box(image, request->box, request->sink, err);
    if (result == 0)
        result = png_probe(image->data, image->size, UINT64_MAX, &found, err);
    return result < 0 ? result : run(arena, image, request, err);
}

static int png_decode(void *state, const struct pstk__coded *image, const struct pstk__box *box,
                      const struct pstk__row_sink *sink, struct pstk_error *err)
{
    const struct request request = {.info = image->info, .box = box, .sink = sink};
    return decode_box(state, image, &request, err);
}

static int damaged_decode(void *state, const struct pstk__coded *image, const struct pstk__box *box,
                          const struct pstk__row_sink *sink, struct pstk_error *err)
{
    const struct request request = {
        .info = image->info, .box = box, .sink = sink, .is_salvaged = 1};
    return decode_box(state, image, &request, err);
}

int pstk__png_samples(struct pstk__arena *arena, const struct pstk__coded *image,
                      const struct pstk__row_sink *sink, struct pstk_error *err)
{
    const struct pstk__image_info *info = image->info;
    const struct pstk__box all = {.width = info->width, .height = info->height};
    const struct request request = {.info = info, .box = &all, .sink = sink, .as_coded = 1};
    struct pstk__image_info found;
    const int result = pstk__png_probe_samples(image->data, image->size, UINT64_MAX, &found, err);
    if (result < 0)
        return result;
    if (found.bit_depth != info->bit_depth || found.has_palette != info->has_palette)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                          "PNG has %u bits%s, its record says %u%s", found.bit_depth,
                          found.has_palette ? " and a palette" : "", info->bit_depth,
                          info->has_palette ? " and a palette" : "");
    return run(arena, image, &request, err);
}

/*
 * Return the bytes for an image of w x h pixels. An interlaced image is held whole in RGBA. Every
 * image takes libpng's two row buffers within zlib's limits: up to 8 bytes a pixel, rounded up to 8
 * pixels, and 64 more; our row; and less than 128 KiB for libpng's structs, zlib's state and window
 * (7 and 32 KiB), libpng's read buffer for one chunk and inflate's tables.
 */
static uint64_t png_scratch(uint32_t max_width, uint32_t max_height, uint64_t max_pixels)
{
    uint64_t row = (uint64_t)max_width * 4 + 64;
    uint64_t area = (uint64_t)max_width * max_height;
    uint64_t pixels = 4 * (area < max_pixels ? area : max_pixels) + 64 * (uint64_t)max_height;
    uint64_t buffers = 2 * (8 * ((uint64_t)max_width + 8) + 128) + row;
    return pixels + buffers + (128u << 10);
}

const struct pstk__image_decoder pstk__image_png = {
    .encoding = PSTK_ENCODING_PNG,
    .signature = PSTK__SIGNATURE_PNG,
    .name = "png",
    .probe = png_probe,
    .open = png_open,
    .scratch = png_scratch,
    .decode = png_decode,
};

static uint64_t damaged_scratch(uint32_t max_width, uint32_t max_height, uint64_t max_pixels)
{
    return png_scratch(max_width, max_height, max_pixels) + PSTK__PNG_SALVAGE_SIZE;
}

const struct pstk__image_decoder pstk__image_png_damaged = {
    .encoding = PSTK_ENCODING_PNG,
    .name = "damaged png",
    .probe = png_probe,
    .open = png_open,
    .scratch = damaged_scratch,
    .decode = damaged_decode,
};
