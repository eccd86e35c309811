/* SPDX-License-Identifier: Apache-2.0 */
#include "support/test.h"

#include "base/little.h"
#include "image/mask.h"
#include "support/png_writer.h"

#include <penstock/format.h>

/* Decode a file that `spec` describes; *samples owned. */
static int decode_file(const struct png_spec *spec, const uint8_t *file, size_t size,
                       void **samples, uint32_t *dtype, struct pstk_error *err)
{
    const struct pstk_value_info info = {.size = sizeof info,
                                         .encoding = PSTK_ENCODING_PNG,
                                         .width = spec->width,
                                         .height = spec->height,
                                         .channels = 1,
                                         .bit_depth = (uint32_t)spec->depth,
                                         .has_palette = spec->color == PNG_COLOR_TYPE_PALETTE};
    return pstk_mask_decode(file, size, &info, samples, dtype, err);
}

/* Return whether the samples of the file that `spec` describes come out as they were written. */
static int is_exact(const struct png_spec *spec)
{
    size_t size;
    uint8_t *file = png_write(spec, &size);
    void *samples = NULL;
    uint32_t dtype = 0, n_different = 0;
    if (decode_file(spec, file, size, &samples, &dtype, NULL) == 0)
        for (uint32_t i = 0; i < spec->width * spec->height; i++) {
            const uint32_t found =
                dtype == PSTK_U16 ? ((uint16_t *)samples)[i] : ((uint8_t *)samples)[i];
            n_different += found != png_sample(spec, i % spec->width, i / spec->width, 0);
        }
    const int is_right = samples && dtype == (spec->depth == 16 ? PSTK_U16 : PSTK_U8);
    pstk_free(samples);
    free(file);
    return is_right && n_different == 0;
}

static const struct {
    int color, depth;
} kinds[] = {{PNG_COLOR_TYPE_GRAY, 1},    {PNG_COLOR_TYPE_GRAY, 2},    {PNG_COLOR_TYPE_GRAY, 4},
             {PNG_COLOR_TYPE_GRAY, 8},    {PNG_COLOR_TYPE_GRAY, 16},   {PNG_COLOR_TYPE_PALETTE, 1},
             {PNG_COLOR_TYPE_PALETTE, 2}, {PNG_COLOR_TYPE_PALETTE, 4}, {PNG_COLOR_TYPE_PALETTE, 8}};

#define N_KINDS (sizeof kinds / sizeof kinds[0])

TEST(every_png_of_one_channel_gives_its_numbers)
{
    for (size_t i = 0; i < N_KINDS; i++)
        for (uint32_t width = 1; width < 20; width += 3)
            for (int interlaced = 0; interlaced < 2; interlaced++) {
                CHECK(is_exact(&(const struct png_spec){.width = width,
                                                        .height = 9,
                                                        .color = kinds[i].color,
                                                        .depth = kinds[i].depth,
                                                        .interlaced = interlaced,
                                                        .transparent = width % 2 == 0}));
            }
}

TEST(numbers_past_the_end_of_the_palette_stay_what_they_are)
{
    CHECK(is_exact(&(const struct png_spec){
        .width = 31, .height = 5, .color = PNG_COLOR_TYPE_PALETTE, .depth = 8, .n_colors = 3}));
}

TEST(pixels_give_their_numbers)
{
    static const uint8_t numbers[12] = {0, 1, 2, 255, 254, 7, 9, 8, 1, 0, 3, 4};
    for (uint32_t depth = 8; depth <= 16; depth += 8) {
        const struct pstk_value_info info = {.size = sizeof info,
                                             .encoding = PSTK_ENCODING_PIXELS,
                                             .width = depth == 8 ? 4 : 2,
                                             .height = 3,
                                             .channels = 1,
                                             .bit_depth = depth};
        struct pstk_error err;
        void *samples;
        uint32_t dtype;
        pstk_error_init(&err, sizeof err);
        CHECK_EQ(pstk_mask_decode(numbers, 12, &info, &samples, &dtype, &err), 0);
        CHECK_EQ(dtype, depth == 8 ? PSTK_U8 : PSTK_U16);
        CHECK(memcmp(samples, numbers, 12) == 0);
        pstk_free(samples);
        CHECK_EQ(pstk_mask_decode(numbers, 11, &info, &samples, &dtype, &err), PSTK_EBADMSG);
        CHECK(samples == NULL && strstr(err.message, "must have 12"));
    }
}

TEST(a_file_is_probed_for_a_mask)
{
    struct pstk__image_info info;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    for (size_t i = 0; i < N_KINDS; i++) {
        const struct png_spec spec = {
            .width = 5, .height = 7, .color = kinds[i].color, .depth = kinds[i].depth};
        size_t size;
        uint8_t *file = png_write(&spec, &size);
        CHECK_EQ(pstk__mask_probe(file, size, 35, &info, &err), 0);
        CHECK(info.width == 5 && info.height == 7 && info.channels == 1);
        CHECK(info.encoding == PSTK_ENCODING_PNG && info.bit_depth == kinds[i].depth);
        CHECK_EQ(info.has_palette, kinds[i].color == PNG_COLOR_TYPE_PALETTE);
        CHECK_EQ(pstk__mask_probe(file, size, 34, &info, &err), PSTK_EFBIG);
        free(file);
    }
    const struct png_spec rgb = {.width = 5, .height = 7, .color = PNG_COLOR_TYPE_RGB, .depth = 8};
    size_t size;
    uint8_t *file = png_write(&rgb, &size);
    CHECK_EQ(pstk__mask_probe(file, size, 35, &info, &err), PSTK_EBADMSG);
    CHECK(strstr(err.message, "3 channels; a mask must have 1"));
    free(file);
    CHECK_EQ(pstk__mask_probe("\xff\xd8\xff\xe0", 4, 35, &info, &err), PSTK_EBADMSG);
    CHECK(strstr(err.message, "JPEG"));
    CHECK_EQ(pstk__mask_probe("no", 2, 35, &info, &err), PSTK_EBADMSG);
    CHECK_EQ(pstk__mask_probe("GIF89a", 6, 35, &info, &err), PSTK_EBADMSG);
    CHECK(strstr(err.message, "PNG"));
}

TEST(damage_is_an_error)
{
    const struct png_spec spec = {
        .width = 40, .height = 30, .color = PNG_COLOR_TYPE_PALETTE, .depth = 8};
    size_t size;
    uint8_t *file = png_write(&spec, &size);
    struct pstk_error err;
    uint32_t dtype, n_refused = 0;
    void *samples;
    pstk_error_init(&err, sizeof err);
    for (size_t i = 0; i < size; i++) { /* every byte of a PNG file counts */
        file[i] ^= 0x20;
        n_refused += decode_file(&spec, file, size, &samples, &dtype, &err) == PSTK_EBADMSG;
        CHECK(samples == NULL);
        file[i] ^= 0x20;
    }
    CHECK_EQ(n_refused, size);
    for (size_t n = 0; n < size; n += 7)
        CHECK_EQ(decode_file(&spec, file, n, &samples, &dtype, &err), PSTK_EBADMSG);
    free(file);
}

TEST(a_description_that_differs_from_the_file_is_an_error)
{
    const struct png_spec spec = {
        .width = 8, .height = 6, .color = PNG_COLOR_TYPE_GRAY, .depth = 8};
    struct png_spec other[5] = {spec, spec, spec, spec, spec};
    size_t size;
    uint8_t *file = png_write(&spec, &size);
    uint32_t dtype;
    void *samples;
    other[0].width = 9;
    other[1].height = 5;
    other[2].depth = 16;
    other[3].depth = 4;
    other[4].color = PNG_COLOR_TYPE_PALETTE;
    for (size_t i = 0; i < 5; i++) {
        CHECK_EQ(decode_file(&other[i], file, size, &samples, &dtype, NULL), PSTK_EBADMSG);
        CHECK(samples == NULL);
    }
    free(file);
}

TEST(a_value_that_is_no_mask_is_refused)
{
    static const uint8_t bytes[64];
    const struct pstk_value_info mask = {.size = sizeof mask,
                                         .encoding = PSTK_ENCODING_PIXELS,
                                         .width = 4,
                                         .height = 4,
                                         .channels = 1,
                                         .bit_depth = 8};
    struct pstk_value_info infos[8] = {mask, mask, mask, mask, mask, mask, mask, mask};
    uint32_t dtype;
    void *samples;
    infos[0].encoding = PSTK_ENCODING_JPEG;
    infos[1].encoding = PSTK_ENCODING_NONE;
    infos[2].channels = 3;
    infos[3].channels = 257;
    infos[4].bit_depth = 4;
    infos[5].size = 8; /* a size that no version has */
    infos[6].width = 65536;
    infos[7].width = infos[7].height = 65535;
    for (uint32_t i = 0; i < 8; i++) {
        CHECK_EQ(pstk_mask_decode(bytes, 16, &infos[i], &samples, &dtype, NULL),
                 i < 6 ? PSTK_EINVAL : PSTK_EFBIG);
        CHECK(samples == NULL);
    }
    CHECK_EQ(pstk_mask_decode(NULL, 16, &mask, &samples, &dtype, NULL), PSTK_EINVAL);
    CHECK_EQ(pstk_mask_decode(bytes, 16, NULL, &samples, &dtype, NULL), PSTK_EINVAL);
    CHECK_EQ(pstk_mask_decode(bytes, 16, &mask, NULL, &dtype, NULL), PSTK_EINVAL);
    CHECK_EQ(pstk_mask_decode(bytes, 16, &mask, &samples, NULL, NULL), PSTK_EINVAL);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(every_png_of_one_channel_gives_its_numbers),
        CASE(numbers_past_the_end_of_the_palette_stay_what_they_are),
        CASE(pixels_give_their_numbers),
        CASE(a_file_is_probed_for_a_mask),
        CASE(damage_is_an_error),
        CASE(a_description_that_differs_from_the_file_is_an_error),
        CASE(a_value_that_is_no_mask_is_refused),
    };
    return RUN_CASES(cases);
}
