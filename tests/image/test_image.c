/* SPDX-License-Identifier: Apache-2.0 */
#include "support/test.h"

#include "base/arena.h"
#include "image/channels.h"
#include "image/exif.h"
#include "image/xmp.h"
#include "image/image.h"
#include "image/jpeg/decode.h"
#include "image/pixels.h"
#include "image/planes/decode.h"
#include "image/png/decode.h"
#include "support/jpeg_writer.h"
#include "support/png_writer.h"

#include <penstock/format.h>
#include <stdatomic.h>

/*
 * Every malloc of the process is counted, those of libjpeg, libpng and zlib too: the program's own
 * functions stand before the C library's. AddressSanitizer needs that place for itself.
 */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif

#ifndef SANITIZED
static atomic_ulong n_allocations;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

void *malloc(size_t size)
{
    atomic_fetch_add_explicit(&n_allocations, 1, memory_order_relaxed);
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    atomic_fetch_add_explicit(&n_allocations, 1, memory_order_relaxed);
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    atomic_fetch_add_explicit(&n_allocations, 1, memory_order_relaxed);
    return __libc_realloc(p, size);
}
#endif

static void count_rows(void *user, const uint8_t *rgb, uint64_t stride, uint32_t n_rows)
{
    uint32_t *n = user;
    (void)rgb;
    (void)stride;
    *n += n_rows;
}

/* ---- the table ------------------------------------------------------------------------------ */

TEST(each_encoding_has_its_decoder_and_no_other_has_one)
{
    CHECK(pstk__image_decoder(PSTK_ENCODING_JPEG) == &pstk__image_jpeg);
    CHECK(pstk__image_decoder(PSTK_ENCODING_PNG) == &pstk__image_png);
    CHECK(pstk__image_decoder(PSTK_ENCODING_PIXELS) == &pstk__image_pixels);
    CHECK(pstk__image_decoder(PSTK_ENCODING_NONE) == NULL);
    CHECK(pstk__image_decoder(4) == NULL);
    CHECK_STR(pstk__image_decoder(PSTK_ENCODING_PNG)->name, "png");
    CHECK(strncmp(pstk__image_library(), "libjpeg-turbo ", 14) == 0);
    CHECK(pstk__image_library()[14] >= '0' && pstk__image_library()[14] <= '9');
}

TEST(the_first_bytes_tell_the_encoding)
{
    static const struct jpeg_spec jpeg = {
        .width = 20, .height = 10, .n_components = 3, .h = 2, .v = 2, .interleaved = 1};
    static const struct png_spec png = {
        .width = 30, .height = 7, .color = PNG_COLOR_TYPE_RGB, .depth = 8};
    struct pstk__image_info info;
    struct pstk_error err;
    size_t size;

    pstk_error_init(&err, sizeof err);
    uint8_t *file = jpeg_write(&jpeg, &size);
    CHECK_EQ(pstk__image_probe(file, size, 200, &info, &err), 0);
    CHECK_EQ(info.encoding, PSTK_ENCODING_JPEG);
    CHECK_EQ(info.width, 20);
    CHECK_EQ(info.height, 10);
    CHECK_EQ(info.orientation, 1);
    CHECK_EQ(pstk__image_probe(file, size, 199, &info, &err), PSTK_EFBIG);
    CHECK(strstr(err.message, "max_pixels") != NULL);
    free(file);
    file = png_write(&png, &size);
    CHECK_EQ(pstk__image_probe(file, size, 210, &info, &err), 0);
    CHECK_EQ(info.encoding, PSTK_ENCODING_PNG);
    CHECK_EQ(info.width, 30);
    CHECK_EQ(info.height, 7);
    free(file);
    CHECK_EQ(pstk__image_probe("GIF89a..", 8, 200, &info, &err), PSTK_EBADMSG);
    CHECK_EQ(pstk__image_probe("", 0, 200, &info, &err), PSTK_EBADMSG);
    CHECK_EQ(pstk__image_probe("", 0, 200, &info, NULL), PSTK_EBADMSG);
}

/* ---- decoded pixels ------------------------------------------------------------------------- */

struct rows {
    const uint8_t *expected;
    uint64_t stride;
    uint32_t row_size;
    uint32_t n, n_different;
};

static void compare_rows(void *user, const uint8_t *rgb, uint64_t stride, uint32_t n_rows)
{
    struct rows *r = user;
    for (uint32_t k = 0; k < n_rows; k++, rgb += stride) {
        r->n_different += memcmp(r->expected + r->n * r->stride, rgb, r->row_size) != 0;
        r->n++;
    }
}

TEST(decoded_pixels_come_out_as_they_are)
{
    uint8_t pixels[5 * 4 * 3];
    const struct pstk__image_info info = {PSTK_ENCODING_PIXELS, 5, 4, 1, 3, 8, 0};
    struct pstk_error err;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)i;
    pstk_error_init(&err, sizeof err);
    for (uint32_t left = 0; left < 5; left++)
        for (uint32_t top = 0; top < 4; top++) {
            const struct pstk__box box = {left, top, 5 - left, 4 - top};
            struct rows rows = {pixels + (top * 5 + left) * 3, 15, box.width * 3, 0, 0};
            const struct pstk__row_sink sink = {compare_rows, &rows, 3};
            CHECK_EQ(
                pstk__image_pixels.decode(
                    NULL,
                    &(const struct pstk__coded){&pstk__image_pixels, pixels, sizeof pixels, &info},
                    &box, &sink, &err),
                0);
            CHECK_EQ(rows.n, box.height);
            CHECK_EQ(rows.n_different, 0);
        }
    const struct pstk__box all = {0, 0, 5, 4};
    const struct pstk__row_sink sink = {.channels = 3};
    CHECK_EQ(pstk__image_pixels.decode(
                 NULL, &(const struct pstk__coded){&pstk__image_pixels, pixels, 59, &info}, &all,
                 &sink, &err),
             PSTK_EBADMSG);
    CHECK_EQ(pstk__image_pixels.decode(
                 NULL, &(const struct pstk__coded){&pstk__image_pixels, pixels, 61, &info}, &all,
                 &sink, &err),
             PSTK_EBADMSG);
    const struct pstk__image_info huge = {
        PSTK_ENCODING_PIXELS, UINT32_MAX, UINT32_MAX, 1, 4, 16, 0};
    CHECK_EQ(pstk__image_pixels.decode(
                 NULL, &(const struct pstk__coded){&pstk__image_pixels, pixels, 60, &huge}, &all,
                 &sink, &err),
             PSTK_EBADMSG);
    CHECK_EQ(pstk__image_pixels.probe(pixels, 60, 100, NULL, &err), PSTK_EBADMSG);
}

TEST(decoded_pixels_come_out_in_1_and_4_channels)
{
    static const uint8_t pixels[4 * 3] = {10, 200, 30, 255, 255, 255, 7, 7, 7, 255, 0, 0};
    /* by hand: 0.299 R + 0.587 G + 0.114 B, rounded */
    static const uint8_t gray[4] = {124, 255, 7, 76};
    static const uint8_t rgba[4 * 4] = {10, 200, 30, 255, 255, 255, 255, 255,
                                        7,  7,   7,  255, 255, 0,   0,   255};
    const struct pstk__image_info info = {PSTK_ENCODING_PIXELS, 2, 2, 1, 3, 8, 0};
    const struct pstk__coded image = {&pstk__image_pixels, pixels, sizeof pixels, &info};
    struct pstk__image_state *state;
    struct pstk__arena arena;
    CHECK_EQ(pstk__arena_open(&arena, pstk__image_pixels.scratch(2, 2, 4)), 0);
    CHECK_EQ(pstk__image_state_open(&state, &arena, PSTK_KERNELS_AUTO, NULL), 0);
    for (uint32_t left = 0; left < 2; left++)
        for (uint32_t channels = 1; channels <= 4; channels += 3) {
            const struct pstk__box box = {left, 0, 2 - left, 2};
            const uint8_t *expected = channels == 1 ? gray : rgba;
            struct rows rows = {expected + left * channels, 2 * channels, box.width * channels, 0,
                                0};
            const struct pstk__row_sink sink = {compare_rows, &rows, channels};
            CHECK_EQ(pstk__image_decode(state, &image, &box, &sink, NULL), 0);
            CHECK(rows.n == 2 && rows.n_different == 0 && arena.used == 0);
        }
    pstk__image_state_close(state);
    pstk__arena_close(&arena);
}

/* One pixel of each kind, of 8 bits and of 16, and what a sink of 1, 3 and 4 channels gets of it.
 */
TEST(pixels_of_1_3_and_4_channels_of_8_and_16_bits_come_out_in_1_3_and_4)
{
    static const struct {
        uint8_t n, pixel[4], out[3][4];
    } cases[] = {{1, {77}, {{77}, {77, 77, 77}, {77, 77, 77, 255}}},
                 {3, {10, 200, 30}, {{124}, {10, 200, 30}, {10, 200, 30, 255}}},
                 {4, {10, 200, 30, 9}, {{124}, {10, 200, 30}, {10, 200, 30, 9}}}};
    struct pstk__image_state *state;
    struct pstk__arena arena;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk__arena_open(&arena, pstk__image_pixels.scratch(3, 2, 6)), 0);
    CHECK_EQ(pstk__image_state_open(&state, &arena, PSTK_KERNELS_AUTO, NULL), 0);
    for (uint32_t i = 0; i < 18; i++) {
        const uint32_t k = i % 3, sink_channels = (const uint32_t[]){1, 3, 4}[i / 3 % 3];
        const uint32_t n = cases[k].n, bytes = 1 + i / 9;
        const struct pstk__image_info info = {PSTK_ENCODING_PIXELS, 3, 2, 1, cases[k].n,
                                              (uint8_t)(8 * bytes), 0};
        uint8_t pixels[6 * 8], expected[2 * 4];
        for (uint32_t j = 0; j < 6 * n * bytes; j++) /* the low bytes differ, and do not matter */
            pixels[j] =
                bytes == 2 && j % 2 == 0 ? (uint8_t)(91 * j) : cases[k].pixel[j / bytes % n];
        for (uint32_t j = 0; j < 2 * sink_channels; j++)
            expected[j] = cases[k].out[i / 3 % 3][j % sink_channels];
        struct rows rows = {expected, 0, 2 * sink_channels, 0, 0};
        const struct pstk__coded image = {&pstk__image_pixels, pixels, 6 * n * bytes, &info};
        const struct pstk__row_sink sink = {compare_rows, &rows, sink_channels};
        const int refused = n == 1 && bytes == 2;
        CHECK_EQ(
            pstk__image_decode(state, &image, &(const struct pstk__box){1, 0, 2, 2}, &sink, &err),
            refused ? PSTK_ENOTSUP : 0);
        CHECK(rows.n == (refused ? 0 : 2) && rows.n_different == 0 && arena.used == 0);
        CHECK(!refused || strstr(err.message, "16-bit gray"));
    }
    pstk__image_state_close(state);
    pstk__arena_close(&arena);
}

TEST(pixels_of_other_channels_and_bits_are_refused)
{
    static const uint8_t pixels[64];
    const struct pstk__box all = {0, 0, 2, 2};
    const struct pstk__row_sink sink = {.channels = 3};
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    for (uint32_t channels = 0; channels < 6; channels++)
        for (uint32_t bits = 0; bits <= 32; bits += 4) {
            const struct pstk__image_info info = {PSTK_ENCODING_PIXELS, 2, 2, 1, (uint8_t)channels,
                                                  (uint8_t)bits,        0};
            const struct pstk__coded image = {&pstk__image_pixels, pixels, channels * bits / 2,
                                              &info};
            if ((channels == 1 || channels == 3 || channels == 4) && (bits == 8 || bits == 16))
                continue;
            CHECK_EQ(pstk__image_pixels.decode(NULL, &image, &all, &sink, &err), PSTK_EBADMSG);
            CHECK(strstr(err.message, "channels"));
        }
}

TEST(a_gray_of_rgb_is_exact_and_keeps_every_gray_also_in_place)
{
    uint8_t rgb[256 * 3], gray[256];
    for (uint32_t v = 0; v < 256; v++)
        rgb[3 * v] = rgb[3 * v + 1] = rgb[3 * v + 2] = (uint8_t)v;
    pstk__gray_from_rgb(gray, rgb, 256);
    pstk__gray_from_rgb(rgb, rgb, 256);
    for (uint32_t v = 0; v < 256; v++)
        CHECK(gray[v] == v && rgb[v] == v);
    uint32_t n_different = 0;
    for (uint32_t r = 0; r < 256; r += 5)
        for (uint32_t g = 0; g < 256; g++)
            for (uint32_t b = 0; b < 256; b += 3) {
                const uint8_t one[3] = {(uint8_t)r, (uint8_t)g, (uint8_t)b};
                pstk__gray_from_rgb(gray, one, 1);
                n_different += gray[0] != (r * 19595 + g * 38470 + b * 7471 + 32768) / 65536;
            }
    CHECK_EQ(n_different, 0);
}

TEST(other_channels_and_a_decoder_that_is_not_listed_are_refused)
{
    static const uint32_t encodings[] = {PSTK_ENCODING_JPEG, PSTK_ENCODING_PNG,
                                         PSTK_ENCODING_PIXELS};
    static const uint8_t pixels[60];
    const struct pstk__box all = {0, 0, 5, 4};
    const struct pstk__image_decoder other = pstk__image_pixels;
    const struct pstk__row_sink rgb = {.channels = 3};
    struct pstk__arena arena = {0};
    struct pstk__image_state *state;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk__image_state_open(&state, &arena, PSTK_KERNELS_AUTO, NULL), 0);
    for (size_t e = 0; e < 3; e++) {
        const struct pstk__image_info info = {encodings[e], 5, 4, 1};
        const struct pstk__coded image = {pstk__image_decoder(encodings[e]), pixels, 60, &info};
        for (uint32_t channels = 0; channels < 7; channels++) {
            const struct pstk__row_sink sink = {.channels = channels};
            if (channels == 1 || channels == 3 || channels == 4)
                continue;
            CHECK_EQ(pstk__image_decode(state, &image, &all, &sink, &err), PSTK_EINVAL);
            CHECK(strstr(err.message, "channels") != NULL);
        }
    }
    const struct pstk__image_info info = {PSTK_ENCODING_PIXELS, 5, 4, 1, 3, 8, 0};
    const struct pstk__coded image = {&other, pixels, 60, &info};
    CHECK_EQ(pstk__image_decode(state, &image, &all, &rgb, &err), PSTK_EINVAL);
    pstk__image_state_close(state);
}

TEST(a_box_outside_the_image_is_refused)
{
    static const struct pstk__box boxes[] = {
        {0, 0, 0, 1}, {0, 0, 1, 0}, {5, 0, 1, 1}, {0, 4, 1, 1},          {4, 0, 2, 1},
        {0, 3, 1, 2}, {0, 0, 6, 1}, {0, 0, 1, 5}, {UINT32_MAX, 0, 2, 1}, {0, UINT32_MAX, 1, 2}};
    static const uint32_t encodings[] = {PSTK_ENCODING_JPEG, PSTK_ENCODING_PNG,
                                         PSTK_ENCODING_PIXELS};
    static const uint8_t pixels[60];
    const struct pstk__row_sink sink = {.channels = 3};
    struct pstk__arena arena = {0};
    struct pstk__image_state *state;
    CHECK_EQ(pstk__image_state_open(&state, &arena, PSTK_KERNELS_AUTO, NULL), 0);
    for (size_t e = 0; e < 3; e++)
        for (size_t i = 0; i < sizeof boxes / sizeof boxes[0]; i++) {
            const struct pstk__image_info info = {encodings[e], 5, 4, 1};
            CHECK_EQ(pstk__image_decode(state,
                                        &(const struct pstk__coded){
                                            pstk__image_decoder(encodings[e]), pixels, 60, &info},
                                        &boxes[i], &sink, NULL),
                     PSTK_EINVAL);
        }
    pstk__image_state_close(state);
}

/* ---- Exif ----------------------------------------------------------------------------------- */

/* A TIFF structure of two entries, the second being the orientation. 9: a part of it gives another
 * orientation than the rule does. */
static uint32_t orientation_of(int little, uint32_t type, uint32_t count, uint32_t value)
{
    uint8_t t[34] = {0};
    const uint32_t fields[][3] = {
        /* offset, bytes, value */
        {2, 2, 42}, {4, 4, 8},      {8, 2, 2},     {10, 2, 0x10f}, {12, 2, 2},
        {14, 4, 1}, {22, 2, 0x112}, {24, 2, type}, {26, 4, count}, {30, type == 4 ? 4 : 2, value}};
    memcpy(t, little ? "II" : "MM", 2);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        for (uint32_t k = 0; k < fields[i][1]; k++)
            t[fields[i][0] + k] =
                (uint8_t)(fields[i][2] >> 8 * (little ? k : fields[i][1] - 1 - k));
    uint32_t whole = pstk__exif_orientation_of(t, sizeof t);
    for (size_t n = 0; n < sizeof t; n++) { /* cut anywhere: nothing is read past the end */
        uint8_t *part = malloc(n ? n : 1);
        if (!part)
            return 9;
        memcpy(part, t, n);
        uint32_t found = pstk__exif_orientation_of(part, n);
        free(part);
        if (found != (n > 0 && n < 8)) /* 1: no header; else the directory ends: 0 */
            return 9;
    }
    return whole;
}

TEST(orientation_is_read_in_both_byte_orders_and_by_pillows_rule_when_damaged)
{
    for (int little = 0; little < 2; little++) {
        for (uint32_t value = 1; value <= 8; value++) {
            CHECK_EQ(orientation_of(little, 3, 1, value), value);
            CHECK_EQ(orientation_of(little, 4, 1, value), value);
        }
        CHECK_EQ(orientation_of(little, 3, 1, 0), 1);
        CHECK_EQ(orientation_of(little, 3, 1, 9), 1);
        CHECK_EQ(orientation_of(little, 2, 1, 6), 1);
        CHECK_EQ(orientation_of(little, 3, 2, 6), 6);
        CHECK_EQ(orientation_of(little, 99, 1, 6), 0);
        CHECK_EQ(orientation_of(little, 3, 0, 6), 0);
    }
    CHECK_EQ(pstk__exif_orientation_of((const uint8_t *)"II*\0\xff\xff\xff\xff", 8), 0);
    CHECK_EQ(pstk__exif_orientation_of((const uint8_t *)"XX*\0\x8\0\0\0\0\0", 10), 1);
}

TEST(the_orientation_in_xmp_is_the_first_digit_of_an_attribute_or_element)
{
    static const struct {
        const char *text;
        uint32_t orientation;
    } cases[] = {{"<x tiff:Orientation=\"6\"/>", 6},
                 {"<tiff:Orientation>8</tiff:Orientation>", 8},
                 {"tiff:Orientation='3' tiff:Orientation>5", 5},
                 {"tiff:Orientation>0", 1},
                 {"tiff:Orientation>9", 1},
                 {"tiff:Orientation=\"", 0},
                 {"tiff:Orientation", 0},
                 {"tiff:Orientiff:Orientation>2", 2},
                 {"", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const size_t n = strlen(cases[i].text);
        uint8_t *copy = malloc(n ? n : 1); /* nothing is read past the end */
        CHECK(copy != NULL);
        memcpy(copy, cases[i].text, n);
        CHECK_EQ(pstk__xmp_orientation(copy, n), cases[i].orientation);
        free(copy);
    }
}

/* ---- the state ------------------------------------------------------------------------------ */

#define N_FILES 7

struct files {
    uint8_t *data[N_FILES];
    size_t size[N_FILES];
    struct pstk__image_info info[N_FILES];
};

/* One of each path through the decoders. */
static int files_make(struct files *f)
{
    struct jpeg_spec jpeg = {
        .width = 120, .height = 90, .n_components = 3, .h = 2, .v = 2, .interleaved = 1};
    struct png_spec png = {.width = 120, .height = 90, .color = PNG_COLOR_TYPE_RGB, .depth = 8};
    f->data[0] = jpeg_write(&jpeg, &f->size[0]);
    jpeg.progressive = 1;
    f->data[1] = jpeg_write(&jpeg, &f->size[1]);
    jpeg.progressive = 2;
    f->data[2] = jpeg_write(&jpeg, &f->size[2]);
    jpeg.progressive = 0;
    jpeg.arithmetic = 1;
    f->data[3] = jpeg_write(&jpeg, &f->size[3]);
    jpeg.n_components = 4;
    jpeg.arithmetic = 0;
    f->data[4] = jpeg_write(&jpeg, &f->size[4]);
    f->data[5] = png_write(&png, &f->size[5]);
    png.interlaced = 1;
    png.depth = 16;
    f->data[6] = png_write(&png, &f->size[6]);
    for (int i = 0; i < N_FILES; i++)
        if (pstk__image_probe(f->data[i], f->size[i], PSTK__MAX_PIXELS, &f->info[i], NULL) < 0)
            return -1;
    return 0;
}

static void files_free(struct files *f)
{
    for (int i = 0; i < N_FILES; i++)
        free(f->data[i]);
}

/* Decode every file in full, a box of it, and a damaged copy, in place. Returns how many rows. */
static uint32_t decode_all(struct pstk__image_state *state, struct files *f)
{
    struct pstk_error err;
    uint32_t n = 0;
    const struct pstk__row_sink sink = {count_rows, &n, 3};
    pstk_error_init(&err, sizeof err);
    for (int i = 0; i < N_FILES; i++) {
        const struct pstk__image_decoder *d = pstk__image_decoder(f->info[i].encoding);
        const struct pstk__box all = {0, 0, 120, 90}, some = {31, 20, 50, 40};
        if (pstk__image_decode(state,
                               &(const struct pstk__coded){d, f->data[i], f->size[i], &f->info[i]},
                               &all, &sink, &err) < 0 ||
            pstk__image_decode(state,
                               &(const struct pstk__coded){d, f->data[i], f->size[i], &f->info[i]},
                               &some, &sink, &err) < 0)
            return 0;
        uint32_t before = n;
        if (pstk__image_decode(
                state, &(const struct pstk__coded){d, f->data[i], f->size[i] / 2, &f->info[i]},
                &all, &sink, &err) >= 0)
            return 0;
        n = before;
    }
    return n;
}

TEST(nothing_is_allocated_once_the_state_is_open)
{
#ifdef SANITIZED
    SKIP("the sanitizer counts its own");
#else
    struct files f;
    struct pstk__arena arena;
    struct pstk__image_state *state;

    CHECK_EQ(files_make(&f), 0);
    CHECK_EQ(pstk__arena_open(&arena, pstk__image_scratch(120, 90)), 0);
    unsigned long before = atomic_load(&n_allocations);
    CHECK_EQ(pstk__image_state_open(&state, &arena, PSTK_KERNELS_AUTO, NULL), 0);
    CHECK(atomic_load(&n_allocations) > before); /* the count counts */
    before = atomic_load(&n_allocations);
    CHECK_EQ(decode_all(state, &f), N_FILES * (90 + 40));
    CHECK_EQ(atomic_load(&n_allocations), before);
    CHECK_EQ(arena.used, 0);
    pstk__image_state_close(state);
    pstk__arena_close(&arena);
    files_free(&f);
#endif
}

TEST(memory_taken_stays_within_the_stated_bound_and_is_given_back)
{
    struct files f;
    struct pstk__arena arena;
    struct pstk__image_state *state;

    CHECK_EQ(files_make(&f), 0);
    CHECK_EQ(pstk__arena_open(&arena, 64 + pstk__image_scratch(120, 90)), 0);
    CHECK(pstk__arena_get(&arena, 10) != NULL); /* memory that was in use stays */
    size_t used = arena.used;
    CHECK_EQ(pstk__image_state_open(&state, &arena, PSTK_KERNELS_AUTO, NULL), 0);
    CHECK_EQ(decode_all(state, &f), N_FILES * (90 + 40));
    CHECK_EQ(arena.used, used);
    CHECK(arena.peak - used <= pstk__image_scratch(120, 90));
    pstk__image_state_close(state);
    pstk__arena_close(&arena);
    files_free(&f);
}

TEST(check_decodes_the_whole_image_and_gives_its_size)
{
    struct files f;
    uint32_t width = 0, height = 0;
    struct pstk_error err;

    pstk_error_init(&err, sizeof err);
    CHECK_EQ(files_make(&f), 0);
    for (int i = 0; i < N_FILES; i++) {
        CHECK_EQ(pstk_image_check(f.data[i], f.size[i], PSTK__MAX_PIXELS, &width, &height, &err),
                 0);
        CHECK_EQ(width, 120);
        CHECK_EQ(height, 90);
        CHECK_EQ(pstk_image_check(f.data[i], f.size[i], 100, NULL, NULL, &err), PSTK_EFBIG);
        CHECK_EQ(pstk_image_check(f.data[i], f.size[i] - 40, PSTK__MAX_PIXELS, NULL, NULL, &err),
                 PSTK_EBADMSG);
        CHECK_EQ(err.stage, PSTK_STAGE_DECODE);
    }
    CHECK_EQ(pstk_image_check(NULL, 0, 100, NULL, NULL, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_image_check("no", 2, 100, NULL, NULL, NULL), PSTK_EBADMSG);
    files_free(&f);
}

TEST(close_takes_what_open_left)
{
    pstk__image_state_close(NULL);
    pstk__image_jpeg.close(NULL);
    pstk__image_planes.close(NULL);
    CHECK(1);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(each_encoding_has_its_decoder_and_no_other_has_one),
        CASE(the_first_bytes_tell_the_encoding),
        CASE(decoded_pixels_come_out_as_they_are),
        CASE(decoded_pixels_come_out_in_1_and_4_channels),
        CASE(pixels_of_1_3_and_4_channels_of_8_and_16_bits_come_out_in_1_3_and_4),
        CASE(pixels_of_other_channels_and_bits_are_refused),
        CASE(a_gray_of_rgb_is_exact_and_keeps_every_gray_also_in_place),
        CASE(other_channels_and_a_decoder_that_is_not_listed_are_refused),
        CASE(a_box_outside_the_image_is_refused),
        CASE(orientation_is_read_in_both_byte_orders_and_by_pillows_rule_when_damaged),
        CASE(the_orientation_in_xmp_is_the_first_digit_of_an_attribute_or_element),
        CASE(nothing_is_allocated_once_the_state_is_open),
        CASE(memory_taken_stays_within_the_stated_bound_and_is_given_back),
        CASE(check_decodes_the_whole_image_and_gives_its_size),
        CASE(close_takes_what_open_left),
    };
    return RUN_CASES(cases);
}
