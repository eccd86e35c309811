/* SPDX-License-Identifier: Apache-2.0 */
/* convert: sizes, pixels, JPEGs, what is refused; and the encoder below it. */
#include "support/faults.h"

#include "pack/convert.h"
#include "support/exact_arena.h"
#include "image/image.h"
#include "image/jpeg/encode.h"
#include "support/jpeg_writer.h"
#include "support/test.h"
#include "support/tiny_images.h"

#include <penstock/penstock.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function" /* its resize alone is needed */
#include "support/naive_pixel.h"
#pragma GCC diagnostic pop

struct bytes {
    uint8_t *data; /* owned */
    uint64_t size;
    uint32_t width, height;
};

static struct bytes make_jpeg(uint32_t width, uint32_t height)
{
    const struct jpeg_spec spec = {.width = width,
                                   .height = height,
                                   .n_components = 3,
                                   .h = 2,
                                   .v = 2,
                                   .interleaved = 1,
                                   .quality = 85};
    size_t size;
    struct bytes b = {.width = width, .height = height};
    b.data = jpeg_write(&spec, &size);
    b.size = size;
    return b;
}

static int convert(const struct bytes *in, const struct pstk_convert *how, struct bytes *out)
{
    void *data;
    *out = (struct bytes){0};
    int r = pstk_image_convert(in->data, in->size, how, &data, &out->size, &out->width,
                               &out->height, NULL);
    out->data = data;
    return r;
}

/* Encode pixels with libjpeg, with the settings that Pillow gives it. */
static struct bytes encode_plainly(const uint8_t *rgb, uint32_t width, uint32_t height, int quality)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    unsigned char *data = NULL;
    unsigned long n = 0;
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &data, &n);
    c.image_width = width;
    c.image_height = height;
    c.input_components = 3;
    c.in_color_space = JCS_RGB;
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, quality, TRUE);
    jpeg_start_compress(&c, TRUE);
    for (uint32_t y = 0; y < height; y++) {
        JSAMPROW row = (JSAMPROW)(uintptr_t)(rgb + (size_t)y * width * 3);
        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    return (struct bytes){.data = data, .size = n, .width = width, .height = height};
}

static int same(const struct bytes *a, const void *data, uint64_t size)
{
    return a->size == size && memcmp(a->data, data, size) == 0;
}

/* ---- sizes ---------------------------------------------------------------------------------- */

TEST(sizes_follow_torchvision_for_the_shorter_side_and_rounding_for_the_longer)
{
    static const struct {
        uint32_t shorter, longer, w, h, out_w, out_h;
    } rows[] = {
        {256, 0, 500, 375, 341, 256}, /* int(341.33) */
        {256, 0, 375, 500, 256, 341}, /* the other way round */
        {256, 0, 300, 300, 256, 256}, /* square */
        {256, 0, 256, 900, 256, 900}, /* as it is */
        {256, 0, 100, 900, 100, 900}, /* never enlarged */
        {3, 0, 5, 7, 3, 4},           /* 4.2 */
        {2, 0, 3, 65535, 2, 43690},   /* exactly */
        {256, 0, 257, 511, 256, 509}, /* 509.01 */
        {0, 512, 500, 375, 500, 375}, /* fits */
        {0, 512, 512, 512, 512, 512}, /* fits */
        {0, 400, 500, 375, 400, 300}, /* exactly */
        {0, 100, 333, 222, 100, 67},  /* 66.67 */
        {0, 100, 222, 333, 67, 100},  /* the other way round */
        {0, 10, 40, 6, 10, 2},        /* 1.5 rounds up */
        {0, 10, 40, 5, 10, 1},        /* 1.25 */
        {0, 10, 4000, 1, 10, 1},      /* never 0 */
        {0, 2147483646, 2147483647, 2147483647, 2147483646, 2147483646},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct pstk_convert how = {.shorter_side = rows[i].shorter,
                                         .max_side = rows[i].longer};
        uint32_t w = rows[i].w, h = rows[i].h;
        pstk__convert_size(&how, &w, &h);
        CHECK_EQ(w, rows[i].out_w);
        CHECK_EQ(h, rows[i].out_h);
    }
}

/* ---- pixels --------------------------------------------------------------------------------- */

TEST(pixels_are_the_resized_decode)
{
    static const uint32_t sides[][3] = {{61, 43, 20},  {43, 61, 42}, {90, 90, 7},
                                        {40, 200, 40}, {30, 30, 31}, {16, 300, 1}};
    for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++) {
        const struct pstk_convert how = {.size = sizeof how, .shorter_side = sides[i][2]};
        struct bytes in = make_jpeg(sides[i][0], sides[i][1]), out;
        uint32_t w, h;
        int r = convert(&in, &how, &out);
        uint8_t *rgb = jpeg_reference(in.data, in.size, &w, &h);
        uint8_t *wanted = naive_resize(rgb, w, h, out.width, out.height);
        int equal = same(&out, wanted, (uint64_t)out.width * out.height * 3);
        free(rgb);
        free(wanted);
        free(in.data);
        pstk_free(out.data);
        CHECK_EQ(r, 1);
        CHECK(equal);
    }
}

TEST(a_png_becomes_pixels_too)
{
    const struct pstk_convert how = {.size = sizeof how, .shorter_side = 5};
    struct bytes in = {.data = malloc(sizeof tiny_png), .size = sizeof tiny_png}, out;
    memcpy(in.data, tiny_png, sizeof tiny_png);
    int r = convert(&in, &how, &out);
    uint64_t size = out.size, area = (uint64_t)out.width * out.height;
    free(in.data);
    pstk_free(out.data);
    CHECK_EQ(r, 1);
    CHECK_EQ(size, 3 * area);
}

/* ---- JPEGs ---------------------------------------------------------------------------------- */

TEST(jpegs_are_what_libjpeg_makes_of_the_resized_decode)
{
    static const uint32_t rows[][4] = {/* width, height, max_side, quality */
                                       {61, 43, 30, 75}, {43, 61, 60, 0},   {61, 43, 0, 50},
                                       {61, 43, 99, 50}, {300, 11, 16, 95}, {17, 17, 3, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct pstk_convert how = {
            .size = sizeof how, .max_side = rows[i][2], .quality = rows[i][3]};
        struct bytes in = make_jpeg(rows[i][0], rows[i][1]), out;
        uint32_t w, h;
        int r = convert(&in, &how, &out);
        uint8_t *rgb = jpeg_reference(in.data, in.size, &w, &h);
        uint8_t *small = naive_resize(rgb, w, h, out.width, out.height);
        struct bytes wanted =
            encode_plainly(small, out.width, out.height, rows[i][3] ? (int)rows[i][3] : 90);
        int equal = same(&out, wanted.data, wanted.size);
        free(rgb);
        free(small);
        free(wanted.data);
        free(in.data);
        pstk_free(out.data);
        CHECK_EQ(r, 1);
        CHECK(equal);
    }
}

TEST(without_a_quality_what_fits_stays_as_it_is)
{
    const struct pstk_convert how = {.size = sizeof how, .max_side = 61};
    struct bytes in = make_jpeg(61, 43), out;
    int r = convert(&in, &how, &out);
    free(in.data);
    CHECK_EQ(r, 0);
    CHECK(out.data == NULL && out.size == 0 && out.width == 61 && out.height == 43);
}

/* Put an Exif segment with an orientation behind the start of a file. */
static struct bytes turn(const struct bytes *b, uint8_t orientation)
{
    const uint8_t exif[] = {0xff, 0xe1, 0, 34, 'E', 'x',         'i', 'f', 0, 0,  'M', 'M',
                            0,    42,   0, 0,  0,   8,           0,   1,   1, 18, 0,   3,
                            0,    0,    0, 1,  0,   orientation, 0,   0,   0, 0,  0,   0};
    struct bytes t = {.size = b->size + sizeof exif};
    t.data = malloc(t.size);
    memcpy(t.data, b->data, 2);
    memcpy(t.data + 2, exif, sizeof exif);
    memcpy(t.data + 2 + sizeof exif, b->data + 2, b->size - 2);
    return t;
}

TEST(a_jpeg_keeps_its_orientation_and_is_not_turned)
{
    const struct pstk_convert how = {.size = sizeof how, .max_side = 30, .quality = 80};
    struct bytes in = make_jpeg(61, 43), turned = turn(&in, 6), out, plain;
    struct pstk__image_info info = {0};
    int r = convert(&turned, &how, &out), q = convert(&in, &how, &plain);
    int p = pstk__image_probe(out.data, out.size, 1u << 20, &info, NULL);
    uint64_t more = out.size - plain.size;
    int checked = pstk_image_check(out.data, out.size, 0, NULL, NULL, NULL);
    free(in.data);
    free(turned.data);
    pstk_free(out.data);
    pstk_free(plain.data);
    CHECK(r == 1 && q == 1 && p == 0 && checked == 0);
    CHECK_EQ(info.orientation, 6);
    CHECK(info.width == 30 && info.height == 21);
    CHECK_EQ(more, 36); /* a segment of 34 bytes and its marker */
}

/* ---- what is refused ------------------------------------------------------------------------ */

TEST(contradictions_and_nothing_at_all_are_refused)
{
    static const struct pstk_convert bad[] = {
        {.size = sizeof(struct pstk_convert)},
        {.size = sizeof(struct pstk_convert), .shorter_side = 3, .max_side = 3},
        {.size = sizeof(struct pstk_convert), .shorter_side = 3, .quality = 3},
        {.size = sizeof(struct pstk_convert), .quality = 101},
        {.size = 4, .shorter_side = 3},
        {.size = 1u << 20, .shorter_side = 3},
    };
    struct bytes in = make_jpeg(20, 20), out;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_EQ(convert(&in, &bad[i], &out), PSTK_EINVAL);
        CHECK(out.data == NULL);
    }
    CHECK_EQ(convert(&in, NULL, &out), PSTK_EINVAL);
    free(in.data);
}

TEST(structs_of_other_versions_are_read_as_far_as_they_are_known)
{
    struct {
        struct pstk_convert how;
        uint64_t later;
    } newer = {.how = {.size = sizeof newer, .quality = 50}};
    struct pstk_convert older = {.size = 16, .quality = 50, .max_pixels = 1};
    struct bytes in = make_jpeg(20, 20), out;
    CHECK_EQ(convert(&in, &newer.how, &out), 1);
    pstk_free(out.data);
    newer.later = 1;
    CHECK_EQ(convert(&in, &newer.how, &out), PSTK_EINVAL);
    CHECK_EQ(convert(&in, &older, &out), 1); /* max_pixels is beyond its size */
    pstk_free(out.data);
    free(in.data);
}

TEST(damaged_and_huge_images_are_refused)
{
    const struct pstk_convert how = {.size = sizeof how, .shorter_side = 30};
    const struct pstk_convert few = {.size = sizeof few, .shorter_side = 30, .max_pixels = 2622};
    struct bytes in = make_jpeg(61, 43), out;
    CHECK_EQ(convert(&in, &few, &out), PSTK_EFBIG);
    in.size -= 20; /* within the last rows, which the resize does not read alone */
    CHECK_EQ(convert(&in, &how, &out), PSTK_EBADMSG);
    CHECK(out.data == NULL);
    in.size = 10;
    CHECK_EQ(convert(&in, &how, &out), PSTK_EBADMSG);
    free(in.data);
}

TEST(any_allocation_may_fail)
{
    const struct pstk_convert how = {.size = sizeof how, .max_side = 30, .quality = 80};
    struct bytes in = make_jpeg(61, 43), out;
    int r = PSTK_ENOMEM, n = 0;
    for (; r == PSTK_ENOMEM && n < 100; n++) {
        fault_arm(FAULT_MEMORY, n, ENOMEM);
        r = convert(&in, &how, &out);
        int fired = fault_disarm();
        CHECK_EQ(r, fired ? PSTK_ENOMEM : 1);
        CHECK((out.data != NULL) == (r == 1));
    }
    CHECK(n > 3 && r == 1);
    pstk_free(out.data);
    free(in.data);
}

/* ---- the encoder ---------------------------------------------------------------------------- */

TEST(the_encoder_stays_within_the_stated_bound_and_gives_it_back)
{
    static const uint32_t widths[] = {1, 7, 16, 17, 33, 500, 4097, 65500};
    uint8_t *rgb = calloc(65500 * 40, 3);
    struct pstk__arena arena = {0};
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        const struct pstk__jpeg_picture p = {
            .rgb = rgb, .width = widths[i], .height = 40, .quality = 90, .orientation = 1};
        void *out;
        uint64_t size;
        exact_arena_open(&arena, pstk__jpeg_encode_scratch(widths[i]), 0xa5);
        CHECK_EQ(pstk__jpeg_encode(&p, &out, &size, &arena, NULL), 0);
        CHECK_EQ(arena.used, 0);
        free(out);
    }
    exact_arena_close(&arena);
    free(rgb);
}

TEST(a_width_that_no_jpeg_can_hold_is_refused_by_name)
{
    uint8_t *rgb = calloc(65501, 3);
    const struct pstk__jpeg_picture p = {
        .rgb = rgb, .width = 65501, .height = 1, .quality = 90, .orientation = 1};
    struct pstk__arena arena;
    struct pstk_error err;
    void *out;
    uint64_t size;
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk__arena_open(&arena, pstk__jpeg_encode_scratch(p.width)), 0);
    CHECK_EQ(pstk__jpeg_encode(&p, &out, &size, &arena, &err), PSTK_ENOTSUP);
    CHECK(strstr(err.message, "65501") && out == NULL);
    pstk__arena_close(&arena);
    free(rgb);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(sizes_follow_torchvision_for_the_shorter_side_and_rounding_for_the_longer),
        CASE(pixels_are_the_resized_decode),
        CASE(a_png_becomes_pixels_too),
        CASE(jpegs_are_what_libjpeg_makes_of_the_resized_decode),
        CASE(without_a_quality_what_fits_stays_as_it_is),
        CASE(a_jpeg_keeps_its_orientation_and_is_not_turned),
        CASE(contradictions_and_nothing_at_all_are_refused),
        CASE(structs_of_other_versions_are_read_as_far_as_they_are_known),
        CASE(damaged_and_huge_images_are_refused),
        CASE(any_allocation_may_fail),
        CASE(the_encoder_stays_within_the_stated_bound_and_gives_it_back),
        CASE(a_width_that_no_jpeg_can_hold_is_refused_by_name),
    };
    return RUN_CASES(cases);
}
