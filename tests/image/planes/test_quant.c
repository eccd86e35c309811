/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of quantisation in few bytes: those of libjpeg's qualities, and any others. */
#include "support/test.h"

#include "image/planes/quant.h"

#include <jpeglib.h>

/* Set both tables that libjpeg has at a quality. */
static void set_tables(uint16_t quant[2][64], int quality)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    c.in_color_space = JCS_RGB;
    c.input_components = 3;
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, quality, TRUE);
    for (uint32_t t = 0; t < 2; t++)
        memcpy(quant[t], c.quant_tbl_ptrs[t]->quantval, sizeof quant[t]);
    jpeg_destroy_compress(&c);
}

TEST(libjpegs_tables_of_every_quality_take_two_bytes)
{
    for (int quality = 1; quality <= 100; quality++) {
        uint16_t quant[2][64], back[64];
        set_tables(quant, quality);
        for (uint32_t t = 0; t < 2; t++) {
            uint8_t bytes[PSTK__QUANT_MAX_SIZE];
            CHECK_EQ(pstk__quant_write(bytes, quant[t]), 2);
            CHECK_EQ(pstk__quant_read(back, bytes, 2), 2);
            CHECK(memcmp(back, quant[t], sizeof back) == 0);
        }
    }
}

/* Return the bytes of a table that differs in one entry from libjpeg's, after it was read back. */
static uint32_t size_with(uint32_t place, uint16_t entry)
{
    uint16_t quant[2][64], back[64];
    uint8_t bytes[PSTK__QUANT_MAX_SIZE];
    set_tables(quant, 75);
    quant[0][place] = entry;
    const uint32_t size = pstk__quant_write(bytes, quant[0]);
    return pstk__quant_read(back, bytes, sizeof bytes) == size &&
                   memcmp(back, quant[0], sizeof back) == 0
               ? size
               : 0;
}

TEST(any_other_table_takes_its_entries)
{
    for (uint32_t place = 0; place < 64; place++) {
        CHECK_EQ(size_with(place, 255), 65);
        CHECK_EQ(size_with(place, 256), 129);
        CHECK_EQ(size_with(place, 65535), 129);
        CHECK_EQ(size_with(place, 0), 65);
    }
}

TEST(other_forms_other_qualities_and_fewer_bytes_are_damaged)
{
    uint8_t bytes[PSTK__QUANT_MAX_SIZE] = {0};
    uint16_t quant[64];
    const struct {
        uint8_t form, quality;
        uint32_t size;
    } forms[] = {{0, 0, 65}, {1, 0, 129}, {2, 1, 2}, {2, 100, 2}, {3, 1, 2}, {3, 100, 2}};
    for (uint32_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        bytes[0] = forms[i].form;
        bytes[1] = forms[i].quality;
        for (uint32_t size = 0; size < forms[i].size; size++)
            CHECK_EQ(pstk__quant_read(quant, bytes, size), 0);
        CHECK_EQ(pstk__quant_read(quant, bytes, sizeof bytes), forms[i].size);
    }
    for (uint32_t form = 2; form < 256; form++)
        for (uint32_t quality = 0; quality < 256; quality++) {
            const int good = form < 4 && quality >= 1 && quality <= 100;
            bytes[0] = (uint8_t)form;
            bytes[1] = (uint8_t)quality;
            CHECK_EQ(pstk__quant_read(quant, bytes, sizeof bytes), good ? 2 : 0);
        }
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(libjpegs_tables_of_every_quality_take_two_bytes),
        CASE(any_other_table_takes_its_entries),
        CASE(other_forms_other_qualities_and_fewer_bytes_are_damaged),
    };
    return RUN_CASES(cases);
}
