/* SPDX-License-Identifier: Apache-2.0 */
#include "image/png/encode.h"

#include "base/error.h"
#include "image/pixels.h"

#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

/* zlib's level; level 6 takes four times as long and saves a few percent. */
#define LEVEL 3

struct encoder {
    uint8_t *bytes; /* owned */
    uint64_t size, capacity;
    png_structp png;
    png_infop info;
    jmp_buf escape;
};

static void fail_png(png_structp png, png_const_charp message)
{
    struct encoder *encoder = png_get_error_ptr(png);
    (void)message;
    longjmp(encoder->escape, 1);
}

static void ignore_warning(png_structp png, png_const_charp message)
{
    (void)png, (void)message;
}

static void append(png_structp png, png_bytep data, size_t size)
{
    struct encoder *encoder = png_get_io_ptr(png);
    if (size > encoder->capacity - encoder->size) {
        const uint64_t capacity = 2 * encoder->capacity + size;
        uint8_t *bytes = realloc(encoder->bytes, capacity);
        if (!bytes)
            png_error(png, "out of memory");
        encoder->bytes = bytes;
        encoder->capacity = capacity;
    }
    memcpy(encoder->bytes + encoder->size, data, size);
    encoder->size += size;
}

static void flush(png_structp png)
{
    (void)png;
}

/* Encode the pixels. Returns 0, or -1: no memory. Nothing else can fail, because the sizes were
 * checked. */
static int encode(struct encoder *encoder, const uint8_t *pixels,
                  const struct pstk__image_info *image)
{
    static const int colours[] = {
        [1] = PNG_COLOR_TYPE_GRAY, [3] = PNG_COLOR_TYPE_RGB, [4] = PNG_COLOR_TYPE_RGBA};
    const uint64_t stride =
        (uint64_t)image->width * pstk__pixels_size(image->channels, image->bit_depth);
    if (setjmp(encoder->escape))
        return -1;
    png_set_write_fn(encoder->png, encoder, append, flush);
    png_set_user_limits(encoder->png, 0x7fffffff, 0x7fffffff);
    png_set_compression_level(encoder->png, LEVEL);
    png_set_IHDR(encoder->png, encoder->info, image->width, image->height, image->bit_depth,
                 colours[image->channels], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(encoder->png, encoder->info);
    if (image->bit_depth == 16)
        png_set_swap(encoder->png); /* PNG is big-endian */
    for (uint32_t y = 0; y < image->height; y++)
        png_write_row(encoder->png, pixels + y * stride);
    png_write_end(encoder->png, encoder->info);
    return 0;
}

int pstk__png_encode(const void *pixels, uint64_t size, const struct pstk__image_info *info,
                     void **out, uint64_t *out_size, struct pstk_error *err)
{
    struct encoder encoder = {.size = 0};
    *out = NULL;
    *out_size = 0;
    if (!pstk__pixels_known(info->channels, info->bit_depth) || !info->width || !info->height ||
        size != (uint64_t)info->width * info->height *
                    pstk__pixels_size(info->channels, info->bit_depth))
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                          "has %llu bytes, which are not %u x %u pixels of %u samples of %u bits",
                          (unsigned long long)size, info->width, info->height, info->channels,
                          info->bit_depth);
    encoder.png =
        png_create_write_struct(PNG_LIBPNG_VER_STRING, &encoder, fail_png, ignore_warning);
    encoder.info = encoder.png ? png_create_info_struct(encoder.png) : NULL;
    const int r = encoder.info ? encode(&encoder, pixels, info) : -1;
    png_destroy_write_struct(&encoder.png, &encoder.info);
    if (r < 0) {
        free(encoder.bytes);
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_DECODE, "no memory to make a PNG file");
    }
    *out = encoder.bytes;
    *out_size = encoder.size;
    return 0;
}
