/* SPDX-License-Identifier: Apache-2.0 */
#include "support/test.h"

#include "base/little.h"
#include "format/table/classes.h"
#include "format/table/more.h"
#include "format/table/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct pstk__cell cell_of(const char *text, uint32_t kind)
{
    return (struct pstk__cell){
        .text = text, .size = strlen(text), .raw = text, .raw_size = strlen(text), .kind = kind};
}

static enum pstk__cell_class class_of(const char *text)
{
    const struct pstk__cell cell = cell_of(text, PSTK__CELL_PLAIN);
    return pstk__cell_class(&cell);
}

TEST(a_plain_cell_is_what_its_text_is)
{
    static const char *const integers[] = {"0", "-1", "42", "9223372036854775807",
                                           "-9223372036854775808"};
    static const char *const floats[] = {"1.5", "-.5",  "1.",       "1e3", "+2.5E-3",
                                         "nan", "-inf", "Infinity", "0.0"};
    static const char *const texts[] = {"",   "007", "+1",   "1_000", "9223372036854775808",
                                        " 1", "1 ",  "0x1",  "1e",    "e3",
                                        ".",  "-",   "00.5", "yes",   "True ",
                                        "1,5"};
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++)
        CHECK_EQ(class_of(integers[i]), PSTK__CLASS_INTEGER);
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
        CHECK_EQ(class_of(floats[i]), PSTK__CLASS_FLOAT);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        CHECK_EQ(class_of(texts[i]), PSTK__CLASS_TEXT);
    CHECK_EQ(class_of("true"), PSTK__CLASS_BOOL);
    CHECK_EQ(class_of("FALSE"), PSTK__CLASS_BOOL);
}

TEST(columns_join_their_cells)
{
    CHECK_EQ(pstk__cell_class_join(PSTK__CLASS_NONE, PSTK__CLASS_BOOL), PSTK__CLASS_BOOL);
    CHECK_EQ(pstk__cell_class_join(PSTK__CLASS_INTEGER, PSTK__CLASS_FLOAT), PSTK__CLASS_FLOAT);
    CHECK_EQ(pstk__cell_class_join(PSTK__CLASS_FLOAT, PSTK__CLASS_INTEGER), PSTK__CLASS_FLOAT);
    CHECK_EQ(pstk__cell_class_join(PSTK__CLASS_TEXT, PSTK__CLASS_INTEGER), PSTK__CLASS_MIXED);
    CHECK_EQ(pstk__cell_class_join(PSTK__CLASS_MIXED, PSTK__CLASS_MIXED), PSTK__CLASS_MIXED);
}

/* Read a scalar; `wrong`: a word of what is wrong, or NULL and *bits. */
static void check_scalar(uint32_t dtype, uint32_t class, const char *text, uint32_t kind,
                         uint64_t bits, const char *wrong)
{
    const struct pstk__table_column column = {
        .reading = PSTK__READ_SCALAR, .dtype = dtype, .class = class};
    const struct pstk__cell cell = cell_of(text, kind);
    uint8_t room[8] = {0};
    char why[240];
    const void *data;
    uint64_t size;
    locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const char *r = pstk__table_value(&column, &cell, locale, room, &data, &size, why);
    if (wrong) {
        CHECK(r != NULL && strstr(r, wrong) != NULL);
    } else {
        CHECK(r == NULL && data == room && size == pstk_dtype_size(dtype));
        CHECK_EQ(pstk__get64(room), bits);
    }
    freelocale(locale);
}

TEST(scalars_have_their_dtype)
{
    const uint32_t any = PSTK__CLASS_NONE, plain = PSTK__CELL_PLAIN, number = PSTK__CELL_NUMBER;
    check_scalar(PSTK_I64, PSTK__CLASS_INTEGER, "-2", plain, (uint64_t)-2, NULL);
    check_scalar(PSTK_I64, PSTK__CLASS_INTEGER, "1.5", plain, 0, "must be an integer");
    check_scalar(PSTK_I64, PSTK__CLASS_INTEGER, "007", plain, 0, "must be an integer");
    check_scalar(PSTK_I64, any, "007", plain, 7, NULL);
    check_scalar(PSTK_U8, any, "255", number, 255, NULL);
    check_scalar(PSTK_U8, any, "256", number, 0, "u8");
    check_scalar(PSTK_U8, any, "-1", number, 0, "u8");
    check_scalar(PSTK_U8, PSTK__CLASS_BOOL, "True", plain, 1, NULL);
    check_scalar(PSTK_U8, PSTK__CLASS_BOOL, "1", plain, 0, "true or false");
    check_scalar(PSTK_F64, PSTK__CLASS_FLOAT, "1.5", plain, 0x3ff8000000000000, NULL);
    check_scalar(PSTK_F64, PSTK__CLASS_FLOAT, "3", number, 0x4008000000000000, NULL);
    check_scalar(PSTK_F64, any, "-inf", plain, 0xfff0000000000000, NULL);
    check_scalar(PSTK_F64, any, "1e999", plain, 0, "f64");
    check_scalar(PSTK_F64, any, "x", plain, 0, "a number");
    check_scalar(PSTK_F64, any, "", plain, 0, "a number");
    check_scalar(PSTK_F32, any, "0.1", plain, 0x3dcccccd, NULL);
    check_scalar(PSTK_F32, any, "1e39", plain, 0, "f32");
    check_scalar(PSTK_F16, any, "1.5", plain, 0x3e00, NULL);
    check_scalar(PSTK_F16, any, "1e6", plain, 0, "f16");
    check_scalar(PSTK_BF16, any, "1.5", plain, 0x3fc0, NULL);
    check_scalar(PSTK_I64, any, "null", PSTK__CELL_NULL, 0, "an integer");
}

/* 1 + 2^-11 is in the middle between two halves, 1 + 2^-8 between two bfloat16. */
TEST(halves_are_rounded_once)
{
    const uint32_t any = PSTK__CLASS_NONE, plain = PSTK__CELL_PLAIN;
    check_scalar(PSTK_F16, any, "1.00048828125", plain, 0x3c00, NULL);
    check_scalar(PSTK_F16, any, "1.000488281250000000000000000000000000000000001", plain, 0x3c01,
                 NULL);
    check_scalar(PSTK_F16, any, "-1.00048828125000000001", plain, 0xbc01, NULL);
    check_scalar(PSTK_F16, any, "1.00146484374999999999", plain, 0x3c01, NULL);
    check_scalar(PSTK_F16, any, "65519.99999999999", plain, 0x7bff, NULL);
    check_scalar(PSTK_F16, any, "65520", plain, 0, "f16");
    check_scalar(PSTK_F16, any, "1e400", plain, 0, "f16");
    check_scalar(PSTK_F16, any, "1e-400", plain, 0, NULL);
    check_scalar(PSTK_F16, any, "-1e-400", plain, 0x8000, NULL);
    check_scalar(PSTK_F16, any, "-inf", plain, 0xfc00, NULL);
    check_scalar(PSTK_F16, any, "nan", plain, 0x7e00, NULL);
    check_scalar(PSTK_BF16, any, "1.00390625", plain, 0x3f80, NULL);
    check_scalar(PSTK_BF16, any, "1.00390625000000000001", plain, 0x3f81, NULL);
    check_scalar(PSTK_BF16, any, "3.39e38", plain, 0x7f7f, NULL);
    check_scalar(PSTK_BF16, any, "3.4e38", plain, 0, "bf16");
}

TEST(texts_are_what_the_column_takes)
{
    uint8_t room[8];
    char why[240];
    const void *data;
    uint64_t size;
    struct pstk__table_column column = {.reading = PSTK__READ_TEXT};
    struct pstk__cell cell = cell_of("5", PSTK__CELL_NUMBER);
    CHECK(pstk__table_value(&column, &cell, NULL, room, &data, &size, why) != NULL);
    column.reading = PSTK__READ_ANY;
    CHECK(pstk__table_value(&column, &cell, NULL, room, &data, &size, why) == NULL);
    CHECK(size == 1 && data == cell.text);
    cell = cell_of("a\xff", PSTK__CELL_PLAIN);
    CHECK(strstr(pstk__table_value(&column, &cell, NULL, room, &data, &size, why), "byte 1"));
    column.reading = PSTK__READ_BYTES;
    CHECK(pstk__table_value(&column, &cell, NULL, room, &data, &size, why) == NULL);
    cell = cell_of("x", PSTK__CELL_STRING);
    cell.raw = "\"x\"";
    cell.raw_size = 3;
    column.reading = PSTK__READ_JSON;
    CHECK(pstk__table_value(&column, &cell, NULL, room, &data, &size, why) == NULL);
    CHECK(size == 3 && data == cell.raw);
}

TEST(classes_have_the_order_of_their_bytes)
{
    struct pstk__table_classes classes = {0};
    char name[16];
    for (int round = 0; round < 2; round++)
        for (int i = 4999; i >= 0; i--) {
            snprintf(name, sizeof name, "c%d", i);
            CHECK_EQ(pstk__table_classes_add(&classes, name, strlen(name)), 0);
        }
    CHECK_EQ(pstk__table_classes_add(&classes, "\xc3\xa9", 2), 0);
    CHECK_EQ(classes.names.n, 5001);
    CHECK_EQ(pstk__table_classes_sort(&classes), 0);
    for (uint64_t i = 0; i < classes.names.n; i++) {
        const char *own = pstk__texts_get(&classes.names, i);
        CHECK_EQ(pstk__table_classes_find(&classes, own, strlen(own)), i);
        CHECK(i == 0 || strcmp(pstk__texts_get(&classes.names, i - 1), own) < 0);
    }
    CHECK_EQ(pstk__table_classes_find(&classes, "c", 1), classes.names.n);
    pstk__table_classes_close(&classes);
    CHECK_EQ(pstk__table_classes_find(&classes, "c", 1), 0);
    CHECK_EQ(pstk__table_classes_sort(&classes), 0);
    pstk__table_classes_close(&classes);
}

TEST(columns_of_a_row_come_back_and_damage_is_seen)
{
    uint8_t bytes[4 + 4 + 3 + 4] = {[4] = 3, [8] = 'a', 'b', 'c'};
    const uint8_t *data[PSTK_MAX_FIELDS];
    uint32_t sizes[PSTK_MAX_FIELDS];
    pstk__table_more_seal(bytes, sizeof bytes);
    CHECK(pstk__table_more_read(bytes, sizeof bytes, 2, data, sizes) == NULL);
    CHECK(sizes[0] == 3 && memcmp(data[0], "abc", 3) == 0 && sizes[1] == 0);
    CHECK(pstk__table_more_read(bytes, sizeof bytes, 1, data, sizes) != NULL);
    CHECK(pstk__table_more_read(bytes, sizeof bytes, 3, data, sizes) != NULL);
    for (uint32_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        CHECK(pstk__table_more_read(bytes, sizeof bytes, 2, data, sizes) != NULL);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (uint32_t cut = 0; cut < sizeof bytes; cut++)
        CHECK(pstk__table_more_read(bytes, cut, 2, data, sizes) != NULL);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_plain_cell_is_what_its_text_is),
        CASE(columns_join_their_cells),
        CASE(scalars_have_their_dtype),
        CASE(halves_are_rounded_once),
        CASE(texts_are_what_the_column_takes),
        CASE(classes_have_the_order_of_their_bytes),
        CASE(columns_of_a_row_come_back_and_damage_is_seen),
    };
    return RUN_CASES(cases);
}
