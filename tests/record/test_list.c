/* SPDX-License-Identifier: Apache-2.0 */
#include "support/test.h"

#include "record/list.h"
#include "support/tiny_images.h"

#include <penstock/format.h>

static const struct pstk_list_item texts[3] = {{.data = "a", .size = 1},
                                               {.data = "", .size = 0},
                                               {.data = "gr\xc3\xb6\xc3\x9f"
                                                        "e",
                                                .size = 7}};
static const struct pstk_list_item images[2] = {{.data = tiny_jpeg, .size = sizeof tiny_jpeg},
                                                {.data = tiny_png, .size = sizeof tiny_png}};

/* An exact copy, so that ASan sees a read past its end. Returns owned. */
static uint8_t *copy_of(const void *data, uint64_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    memcpy(copy, data, size);
    return copy;
}

TEST(a_list_of_texts_has_the_bytes_of_format_md)
{
    static const uint8_t expected[] = {3, 0, 0, 0, 1,   0,   0,   0,    0,    0,    0,    0,
                                       7, 0, 0, 0, 'a', 'g', 'r', 0xc3, 0xb6, 0xc3, 0x9f, 'e'};
    struct pstk_error err;
    void *data;
    uint64_t size;
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk_list_build(PSTK_FIELD_UTF8_LIST, texts, 3, &data, &size, &err), 0);
    CHECK_EQ(size, sizeof expected);
    CHECK(memcmp(data, expected, sizeof expected) == 0);
    pstk_free(data);
    CHECK_EQ(pstk_list_build(PSTK_FIELD_BYTES_LIST, NULL, 0, &data, &size, &err), 0);
    CHECK_EQ(size, 4);
    CHECK_EQ(pstk__get32(data), 0);
    pstk_free(data);
}

TEST(a_list_of_images_has_heads_and_begins_items_at_multiples_of_16)
{
    struct pstk_list_item back[3];
    struct pstk_error err;
    void *data;
    uint64_t size;
    uint32_t width, height;
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk_list_build(PSTK_FIELD_IMAGE_LIST, images, 2, &data, &size, &err), 0);
    const uint8_t *bytes = data;
    CHECK_EQ(pstk__get32(bytes), 2);
    CHECK_EQ(pstk__get32(bytes + 16), sizeof tiny_jpeg);
    CHECK_EQ(bytes[20], PSTK_ENCODING_JPEG);
    CHECK(bytes[21] == 1 && bytes[22] == 8 && bytes[23] == 0);
    CHECK_EQ(pstk__get32(bytes + 24), 16);
    CHECK_EQ(pstk__get32(bytes + 28), 8);
    CHECK(memcmp(bytes + 48, tiny_jpeg, sizeof tiny_jpeg) == 0);
    CHECK_EQ(size, 48 + pstk__record_aligned(sizeof tiny_jpeg) + sizeof tiny_png);
    CHECK_EQ(pstk_list_read(PSTK_FIELD_IMAGE_LIST, data, size, NULL, 0, &err), 2);
    CHECK_EQ(pstk_list_read(PSTK_FIELD_IMAGE_LIST, data, size, back, 3, &err), 2);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(back[i].size, images[i].size);
        CHECK(memcmp(back[i].data, images[i].data, back[i].size) == 0);
        CHECK_EQ((uintptr_t)((const uint8_t *)back[i].data - bytes) % 16, 0);
    }
    CHECK(back[1].encoding == PSTK_ENCODING_PNG && back[0].width == 16 && back[0].height == 8);
    pstk__list_sides(PSTK_FIELD_IMAGE_LIST, data, size, &width, &height);
    CHECK_EQ(width, back[1].width > 16 ? back[1].width : 16);
    CHECK_EQ(height, back[1].height > 8 ? back[1].height : 8);
    pstk_free(data);
}

TEST(pixels_are_items_as_their_caller_describes_them)
{
    static const uint8_t pixels[2 * 3 * 3] = {1, 2, 3};
    struct pstk_list_item item = {.data = pixels,
                                  .size = sizeof pixels,
                                  .encoding = PSTK_ENCODING_PIXELS,
                                  .width = 2,
                                  .height = 3,
                                  .channels = 3,
                                  .bit_depth = 8};
    struct pstk_error err;
    void *data;
    uint64_t size;
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk_list_build(PSTK_FIELD_IMAGE_LIST, &item, 1, &data, &size, &err), 0);
    CHECK_EQ(size, 32 + sizeof pixels);
    pstk_free(data);
    item.width = 3;
    CHECK_EQ(pstk_list_build(PSTK_FIELD_IMAGE_LIST, &item, 1, &data, &size, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "item 0: its size is not"));
    CHECK(data == NULL);
}

TEST(items_of_another_kind_are_refused)
{
    const struct pstk_list_item bad_text = {.data = "a\xff", .size = 2};
    const struct pstk_list_item no_image = {.data = "hello", .size = 5}, null = {.size = 5};
    struct pstk_error err;
    void *data;
    uint64_t size;
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk_list_build(PSTK_FIELD_UTF8_LIST, &bad_text, 1, &data, &size, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "item 0 is not UTF-8 at byte 1"));
    CHECK_EQ(pstk_list_build(PSTK_FIELD_IMAGE_LIST, &no_image, 1, &data, &size, &err),
             PSTK_EBADMSG);
    CHECK(strstr(err.message, "items[0]: its 5 bytes begin neither"));
    CHECK_EQ(pstk_list_build(PSTK_FIELD_MASK_LIST, images, 1, &data, &size, &err), PSTK_EBADMSG);
    CHECK(strstr(err.message, "items[0]: it is a JPEG file") ||
          strstr(err.message, "items[0]: the PNG file has 3 channels; a mask must have 1"));
    CHECK_EQ(pstk_list_build(PSTK_FIELD_BYTES_LIST, &null, 1, &data, &size, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_list_build(PSTK_FIELD_UTF8, texts, 3, &data, &size, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_list_read(PSTK_FIELD_IMAGE, "", 0, NULL, 0, &err), PSTK_EINVAL);
}

/* Every byte of a list that is changed, and every cut, is another list of the same bytes, or is
 * refused: never read past the end. */
static void damage(uint32_t kind, const struct pstk_list_item *items, uint32_t n)
{
    struct pstk_list_item back[8];
    void *data;
    uint64_t size;
    char text[160];
    CHECK_EQ(pstk_list_build(kind, items, n, &data, &size, NULL), 0);
    for (uint64_t cut = 0; cut < size; cut++) {
        uint8_t *copy = copy_of(data, cut);
        CHECK(pstk__list_check(kind, copy, cut, text) != NULL);
        free(copy);
    }
    uint8_t *more = malloc(size + 1);
    memcpy(more, data, size);
    more[size] = 0;
    CHECK(strstr(pstk__list_check(kind, more, size + 1, text), "1 bytes follow"));
    free(more);
    const uint64_t heads = pstk__list_head_size(kind, n);
    for (uint64_t at = 0; at < heads; at++) {
        uint8_t *copy = copy_of(data, size);
        copy[at] ^= 0x40;
        if (pstk_list_read(kind, copy, size, back, 8, NULL) >= 0)
            CHECK(at >= 16 && (at - 16) % 16 >= 8); /* another size of an image: see below */
        free(copy);
    }
    pstk_free(data);
}

TEST(damaged_lists_are_refused)
{
    damage(PSTK_FIELD_UTF8_LIST, texts, 3);
    damage(PSTK_FIELD_IMAGE_LIST, images, 2);
}

TEST(gaps_before_images_are_zero)
{
    void *data;
    uint64_t size;
    char text[160];
    CHECK_EQ(pstk_list_build(PSTK_FIELD_IMAGE_LIST, images, 2, &data, &size, NULL), 0);
    uint8_t *bytes = data;
    bytes[48 + sizeof tiny_jpeg] = 1;
    CHECK(strstr(pstk__list_check(PSTK_FIELD_IMAGE_LIST, data, size, text),
                 "before item 1 must be zero"));
    pstk_free(data);
}

TEST(a_head_that_an_image_does_not_have_is_found)
{
    struct pstk__list list;
    struct pstk__field_view item;
    void *data;
    uint64_t size;
    char text[160];
    for (int at = 20; at < 32; at++) {
        CHECK_EQ(pstk_list_build(PSTK_FIELD_IMAGE_LIST, images, 1, &data, &size, NULL), 0);
        uint8_t *bytes = data;
        bytes[at] ^= 1;
        CHECK(pstk__list_begin(&list, PSTK_FIELD_IMAGE_LIST, data, size, text) == NULL);
        CHECK(pstk__list_next(&list, &item, text) == NULL);
        CHECK(pstk__list_check(PSTK_FIELD_IMAGE_LIST, data, size, text) != NULL ||
              strstr(pstk__list_check_image(PSTK_FIELD_IMAGE_LIST, &item, text), "says otherwise"));
        pstk_free(data);
    }
}

/* Byte 23 is the flags of a JPEG, byte 39 those of a PNG file: of both only the palette's bit may
 * be set, and that of a PNG file only where its samples can be numbers of a palette. */
TEST(items_have_no_flag_but_the_palettes)
{
    void *data;
    uint64_t size;
    char text[160];
    CHECK_EQ(pstk_list_build(PSTK_FIELD_IMAGE_LIST, images, 2, &data, &size, NULL), 0);
    uint8_t *bytes = data;
    for (uint32_t at = 23; at <= 39; at += 16)
        for (uint32_t bit = 0; bit < 8; bit++) {
            bytes[at] = (uint8_t)(1u << bit);
            const char *wrong = pstk__list_check(PSTK_FIELD_IMAGE_LIST, data, size, text);
            CHECK(wrong && strstr(wrong, bit == 1 && at == 39 ? "channels" : "has flags"));
            bytes[at] = 0;
        }
    pstk_free(data);
}

TEST(channels_and_bits_that_a_byte_does_not_hold_are_refused)
{
    static const uint8_t pixels[2 * 3 * 3];
    const struct pstk_list_item sound = {.data = pixels,
                                         .size = sizeof pixels,
                                         .encoding = PSTK_ENCODING_PIXELS,
                                         .width = 2,
                                         .height = 3,
                                         .channels = 3,
                                         .bit_depth = 8};
    struct pstk_list_item items[4] = {sound, sound, sound, sound};
    void *data;
    uint64_t size;
    items[0].channels = 3 + 256;
    items[1].channels = 3 + 65536;
    items[2].bit_depth = 8 + 256;
    items[3].bit_depth = 8u + (1u << 31);
    CHECK_EQ(pstk_list_build(PSTK_FIELD_IMAGE_LIST, &sound, 1, &data, &size, NULL), 0);
    pstk_free(data);
    for (uint32_t i = 0; i < 4; i++)
        CHECK_EQ(pstk_list_build(PSTK_FIELD_IMAGE_LIST, &items[i], 1, &data, &size, NULL),
                 PSTK_EINVAL);
}

/* Pixels that no image may have, and that no decoder would return. */
TEST(pixels_over_the_limit_of_an_image_are_refused)
{
    const uint32_t width = 20000, height = 8948; /* 178 960 000 */
    struct pstk_list_item item = {.data = calloc(height, width),
                                  .size = (uint64_t)width * height,
                                  .encoding = PSTK_ENCODING_PIXELS,
                                  .width = width,
                                  .height = height,
                                  .channels = 1,
                                  .bit_depth = 8};
    struct pstk_error err;
    void *data = NULL;
    uint64_t size;
    pstk_error_init(&err, sizeof err);
    CHECK(item.data != NULL);
    CHECK_EQ(pstk_list_build(PSTK_FIELD_MASK_LIST, &item, 1, &data, &size, &err), PSTK_EFBIG);
    CHECK(strstr(err.message, "items[0]: 20000 x 8948 pixels"));
    pstk_free(data);
    free((void *)(uintptr_t)item.data);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_list_of_texts_has_the_bytes_of_format_md),
        CASE(a_list_of_images_has_heads_and_begins_items_at_multiples_of_16),
        CASE(pixels_are_items_as_their_caller_describes_them),
        CASE(items_of_another_kind_are_refused),
        CASE(damaged_lists_are_refused),
        CASE(gaps_before_images_are_zero),
        CASE(a_head_that_an_image_does_not_have_is_found),
        CASE(items_have_no_flag_but_the_palettes),
        CASE(channels_and_bits_that_a_byte_does_not_hold_are_refused),
        CASE(pixels_over_the_limit_of_an_image_are_refused),
    };
    return RUN_CASES(cases);
}
