/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png_writer: PNG files of every kind, made by libpng from samples that a function of the place
 * gives, so that what a decoder must make of them follows from the same function, without a
 * decoder.
 */
#ifndef PSTK_TEST_PNG_WRITER_H
#define PSTK_TEST_PNG_WRITER_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <png.h>

struct png_spec {
    uint32_t width, height;
    int color; /* PNG_COLOR_TYPE_... */
    int depth; /* bits a sample */
    int interlaced;
    int transparent;  /* 1: a tRNS chunk where the colour type allows it */
    int key_is_first; /* with transparent, of gray and RGB: the key is the first pixel; else 1, or
                         1, 2, 3 */
    int n_colors;     /* colours of the palette, 0: as many as the indices need */
};

struct png_bytes {
    uint8_t *data; /* owned */
    size_t size, room;
};

/* Sample of a channel, depth bits. */
static uint32_t png_sample(const struct png_spec *s, uint32_t x, uint32_t y, uint32_t channel)
{
    uint32_t v = x * 2654435761u ^ y * 2246822519u ^ channel * 3266489917u;
    v = (v ^ v >> 15) * 2246822519u;
    v = (v ^ v >> 13) & ((1u << s->depth) - 1);
    return s->color == PNG_COLOR_TYPE_PALETTE && s->depth == 8 ? v % 200 : v;
}

static uint8_t png_palette_byte(uint32_t index, uint32_t channel)
{
    return (uint8_t)(index * 37 + channel * 91 + 5);
}

/* Return the key of a tRNS chunk, per channel. */
static uint16_t png_key(const struct png_spec *s, uint32_t channel)
{
    const uint32_t own = s->color & PNG_COLOR_MASK_COLOR ? channel : 0;
    return (uint16_t)(s->key_is_first ? png_sample(s, 0, 0, own) : 1 + own);
}

/* Return a value of a pixel in RGB as Pillow decodes it. */
__attribute__((unused)) static uint8_t png_expected(const struct png_spec *s, uint32_t x,
                                                    uint32_t y, uint32_t channel)
{
    if (s->color == PNG_COLOR_TYPE_PALETTE) {
        uint32_t index = png_sample(s, x, y, 0);
        int is_short = s->n_colors && index >= (uint32_t)s->n_colors;
        return is_short ? 0 : png_palette_byte(index, channel);
    }
    uint32_t v = png_sample(s, x, y, s->color & PNG_COLOR_MASK_COLOR ? channel : 0);
    return (uint8_t)(s->depth == 16 ? v >> 8 : v * 255 / ((1u << s->depth) - 1));
}

static const png_byte png_alpha[4] = {0, 128, 255, 3}; /* for the palette's first entries */

/* The alpha that Pillow gives a pixel: it compares a key, in its low bytes, with the 8-bit pixels;
 * of 1 bit, any key but 0 is white. */
__attribute__((unused)) static uint8_t png_expected_alpha(const struct png_spec *s, uint32_t x,
                                                          uint32_t y)
{
    if (s->color & PNG_COLOR_MASK_ALPHA) {
        uint32_t v = png_sample(s, x, y, s->color & PNG_COLOR_MASK_COLOR ? 3 : 1);
        return (uint8_t)(s->depth == 16 ? v >> 8 : v);
    }
    if (!s->transparent)
        return 255;
    if (s->color == PNG_COLOR_TYPE_PALETTE) {
        uint32_t n = s->n_colors && s->n_colors < 4 ? (uint32_t)s->n_colors : 4;
        uint32_t index = png_sample(s, x, y, 0);
        return index < n && index < 1u << s->depth ? png_alpha[index] : 255;
    }
    int is_key = 1;
    for (uint32_t c = 0; c < 3; c++) {
        uint8_t key = (uint8_t)png_key(s, c);
        is_key &= png_expected(s, x, y, c) == (s->depth == 1 && key ? 255 : key);
    }
    return is_key ? 0 : 255;
}

/* Return a value of a pixel as Pillow decodes it in n_channels: convert("L"), "RGB" or "RGBA". */
__attribute__((unused)) static uint8_t png_expected_of(const struct png_spec *s,
                                                       uint32_t n_channels, uint32_t x, uint32_t y,
                                                       uint32_t channel)
{
    if (n_channels == 1)
        return (uint8_t)((png_expected(s, x, y, 0) * 19595u + png_expected(s, x, y, 1) * 38470u +
                          png_expected(s, x, y, 2) * 7471u + 0x8000u) >>
                         16);
    return channel == 3 ? png_expected_alpha(s, x, y) : png_expected(s, x, y, channel);
}

static void png_take(png_structp png, png_bytep data, size_t n)
{
    struct png_bytes *b = png_get_io_ptr(png);
    if (b->size + n > b->room) {
        b->room = 2 * (b->size + n);
        b->data = realloc(b->data, b->room);
        if (!b->data)
            abort();
    }
    memcpy(b->data + b->size, data, n);
    b->size += n;
}

static void png_no_flush(png_structp png)
{
    (void)png;
}

static void png_fill_row(const struct png_spec *s, uint32_t n_channels, uint32_t y, uint8_t *row)
{
    memset(row, 0, (size_t)s->width * n_channels * 2);
    for (uint32_t x = 0; x < s->width; x++)
        for (uint32_t c = 0; c < n_channels; c++) {
            uint32_t v = png_sample(s, x, y, c), bits = (uint32_t)s->depth;
            size_t at = (size_t)x * n_channels + c;
            if (bits == 16)
                row[2 * at] = (uint8_t)(v >> 8), row[2 * at + 1] = (uint8_t)v;
            else
                row[at * bits / 8] |= (uint8_t)(v << (8 - bits - at * bits % 8));
        }
}

/* Returns the file, to be freed, and its size. */
static uint8_t *png_write(const struct png_spec *s, size_t *size)
{
    struct png_bytes out = {0};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_color palette[256];
    png_color_16 key = {
        .gray = png_key(s, 0), .red = png_key(s, 0), .green = png_key(s, 1), .blue = png_key(s, 2)};
    int n_colors = s->n_colors ? s->n_colors : s->depth == 8 ? 200 : 1 << (s->depth & 7);

    png_set_write_fn(png, &out, png_take, png_no_flush);
    png_set_check_for_invalid_index(png, 0);
    png_set_IHDR(png, info, s->width, s->height, s->depth, s->color,
                 s->interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, 0, 0);
    for (uint32_t i = 0; i < 256; i++)
        palette[i] =
            (png_color){png_palette_byte(i, 0), png_palette_byte(i, 1), png_palette_byte(i, 2)};
    if (s->color == PNG_COLOR_TYPE_PALETTE)
        png_set_PLTE(png, info, palette, n_colors);
    if (s->transparent && !(s->color & PNG_COLOR_MASK_ALPHA))
        png_set_tRNS(png, info, png_alpha, n_colors < 4 ? n_colors : 4, &key);
    png_write_info(png, info);
    uint32_t n_channels = png_get_channels(png, info);
    uint8_t *row = malloc((size_t)s->width * n_channels * 2 + 8);
    int n_passes = png_set_interlace_handling(png);
    for (int pass = 0; row && pass < n_passes; pass++)
        for (uint32_t y = 0; y < s->height; y++) {
            png_fill_row(s, n_channels, y, row);
            png_write_row(png, row);
        }
    free(row);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    *size = out.size;
    return out.data;
}

#endif
