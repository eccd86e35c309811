/* SPDX-License-Identifier: Apache-2.0 */
/* tests/python/test_jpeg.py compares with Pillow and torchvision; this test, with the linked
 * libjpeg-turbo. */
#include "image/image.h"
#include "image/jpeg/decode.h"
#include "image/jpeg/encode.h"
#include "image/jpeg/recompress.h"
#include "support/picture.h"
#include "support/test.h"

#include <penstock/penstock.h>

static uint64_t state = 88172645463325252ull;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 33) % below;
}

/* Over every ISA that this CPU runs. */
#define EACH_ISA(k)                                                                                \
    for (uint32_t k##_v = PSTK_KERNELS_C; k##_v <= PSTK_KERNELS_NEON; k##_v++)                     \
        for (struct pstk__recompress_kernels k = {pstk__forward_kernels(k##_v),                    \
                                                  pstk__jpeg_kernels(k##_v)};                      \
             k.forward && k.inverse; k.forward = NULL)

TEST(divisors_divide_every_number)
{
    for (uint32_t entry = 1; entry <= 255; entry++) {
        uint16_t quant[64];
        struct pstk__jpeg_divisors divisors;
        const uint32_t d = 8 * entry;
        uint32_t n_bad = 0;
        for (uint32_t i = 0; i < 64; i++)
            quant[i] = (uint16_t)entry;
        pstk__jpeg_divisors_init(&divisors, quant);
        CHECK_EQ(divisors.half[0], divisors.half[63]);
        for (uint32_t a = 0; a <= 32767; a++) {
            const uint16_t sum = (uint16_t)(a + divisors.half[9]);
            n_bad += ((uint32_t)sum * divisors.reciprocal[9] >> 16) * divisors.scale[9] >> 16 !=
                     (a + d / 2) / d;
        }
        CHECK_EQ(n_bad, 0);
    }
}

/* Noise, or something smoother. */
static void fill(const struct pstk__picture *picture, uint32_t amplitude)
{
    const uint32_t base = draw(256 - amplitude);
    for (uint64_t i = 0; i < pstk__picture_size(picture); i++)
        picture->pixels[i] = (uint8_t)(base + draw(amplitude + 1));
}

static void copy_rows(void *user, const uint8_t *pixels, uint64_t stride, uint32_t n_rows)
{
    struct pstk__picture *to = user;
    const size_t size = (size_t)to->width * to->channels;
    for (uint32_t y = 0; y < n_rows; y++, to->pixels += size)
        memcpy(to->pixels, pixels + y * stride, size);
}

/* Encode by libjpeg, and decode. */
static int by_file(const struct pstk__picture *picture, uint32_t quality, struct pstk__arena *arena,
                   const struct pstk__picture *out)
{
    const struct pstk__image_decoder *decoder = &pstk__image_jpeg;
    const struct pstk__jpeg_picture in = {.rgb = picture->pixels,
                                          .width = picture->width,
                                          .height = picture->height,
                                          .quality = quality,
                                          .orientation = 1};
    struct pstk__picture to = *out;
    const struct pstk__row_sink sink = {.rows = copy_rows, .user = &to, .channels = 3};
    const struct pstk__box box = {.width = picture->width, .height = picture->height};
    struct pstk__image_info info;
    struct pstk_error err;
    void *bytes = NULL, *decoding = NULL;
    uint64_t size;
    pstk_error_init(&err, sizeof err);
    int rc = pstk__jpeg_encode(&in, &bytes, &size, arena, &err);
    if (rc == 0)
        rc = decoder->probe(bytes, size, 1u << 28, &info, &err);
    if (rc == 0)
        rc = decoder->open(&decoding, arena, PSTK_KERNELS_AUTO, &err);
    const struct pstk__coded coded = {
        .decoder = decoder, .data = bytes, .size = size, .info = &info};
    if (rc == 0)
        rc = decoder->decode(decoding, &coded, &box, &sink, &err);
    decoder->close(decoding);
    free(bytes);
    return rc;
}

/* Compare all ISAs with a file, and with plain C. */
static int differences(uint32_t width, uint32_t height, uint32_t channels, uint32_t quality)
{
    struct pstk__picture in = {0}, file = {0}, plain = {0}, out = {0};
    struct pstk__arena arena, scratch = {0};
    int n_bad = pstk__arena_open(&arena, 64u << 20) < 0 ||
                pstk__arena_open(&scratch, pstk__jpeg_recompress_scratch(width)) < 0 ||
                picture_open(&in, width, height, channels) < 0 ||
                picture_open(&file, width, height, channels) < 0 ||
                picture_open(&plain, width, height, channels) < 0 ||
                picture_open(&out, width, height, channels) < 0;
    const size_t size = (size_t)pstk__picture_size(&in);
    fill(&in, draw(3) ? draw(256) : 255);
    n_bad += channels == 3 && by_file(&in, quality, &arena, &file) < 0;
    EACH_ISA(k)
    {
        const struct pstk__picture *to = k_v == PSTK_KERNELS_C ? &plain : &out;
        memcpy(to->pixels, in.pixels, size);
        n_bad +=
            pstk__jpeg_recompress(to->pixels, width, height, channels, quality, &k, &scratch) != 0;
        n_bad += scratch.used != 0;
        n_bad += memcmp(to->pixels, plain.pixels, size) != 0;
        n_bad += to->pixels[size] != 0xee;
    }
    n_bad += channels == 3 && memcmp(plain.pixels, file.pixels, size) != 0;
    picture_close(&in);
    picture_close(&file);
    picture_close(&plain);
    picture_close(&out);
    pstk__arena_close(&arena);
    pstk__arena_close(&scratch);
    return n_bad;
}

TEST(pixels_are_those_of_a_file_with_every_isa)
{
    for (uint32_t i = 0; i < 2000; i += test_stride(4, 4))
        CHECK_EQ(
            differences(1 + draw(i % 5 ? 70 : 300), 1 + draw(50), i % 3 ? 3 : 1, 1 + draw(100)), 0);
}

TEST(too_little_memory_is_an_error)
{
    const struct pstk__recompress_kernels kernels = {pstk__forward_kernels(PSTK_KERNELS_AUTO),
                                                     pstk__jpeg_kernels(PSTK_KERNELS_AUTO)};
    struct pstk__picture picture;
    struct pstk__arena arena;
    CHECK_EQ(picture_open(&picture, 100, 30, 3), 0);
    for (uint32_t size = 64; size < 16384; size += 1024) {
        CHECK_EQ(pstk__arena_open(&arena, size), 0);
        const int rc = pstk__jpeg_recompress(picture.pixels, 100, 30, 3, 50, &kernels, &arena);
        const int is_empty = arena.used == 0;
        pstk__arena_close(&arena);
        CHECK_EQ(rc, PSTK_ENOMEM);
        CHECK(is_empty);
    }
    picture_close(&picture);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(divisors_divide_every_number),
        CASE(pixels_are_those_of_a_file_with_every_isa),
        CASE(too_little_memory_is_an_error),
    };
    return RUN_CASES(cases);
}
