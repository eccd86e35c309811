/* SPDX-License-Identifier: Apache-2.0 */
#include "format/mds/column.h"

#include "record/translate.h"
#include "support/test.h"
#include "support/tiny_images.h"

static struct pstk__mds_columns columns;
static char text[160];
static int code;

static const char *add(const char *name, const char *encoding, uint64_t size)
{
    return pstk__mds_add(&columns, name, encoding, size, &code, text);
}

/* A field as the scan makes it of a first value. */
static struct pstk__index_field field_of(const char *encoding, const void *value, uint64_t size)
{
    struct pstk__index_field field;
    columns = (struct pstk__mds_columns){0};
    add("x", encoding, 0);
    pstk__mds_describe(&field, &columns.at[0], value, size, size, text);
    return field;
}

TEST(encodings_become_kinds_dtypes_and_shapes)
{
    static const struct {
        const char *encoding;
        uint64_t size;
        uint32_t kind, dtype, n_dims, coding;
    } cases[] = {{"bytes", 0, PSTK_FIELD_BYTES, 0, 0, PSTK__CODING_PLAIN},
                 {"str", 9, PSTK_FIELD_UTF8, 0, 0, PSTK__CODING_PLAIN},
                 {"int", 8, PSTK_FIELD_SCALAR, PSTK_I64, 0, PSTK__CODING_PLAIN},
                 {"float16", 2, PSTK_FIELD_SCALAR, PSTK_F16, 0, PSTK__CODING_PLAIN},
                 {"str_int", 0, PSTK_FIELD_SCALAR, PSTK_I64, 0, PSTK__CODING_TEXT_INTEGER},
                 {"pil", 0, PSTK_FIELD_IMAGE, 0, 0, PSTK__MDS_PIXELS},
                 {"list[png]", 0, PSTK_FIELD_IMAGE_LIST, 0, 0, PSTK__MDS_IMAGE_LIST},
                 {"ndarray", 0, PSTK_FIELD_NDARRAY, 0, 0, PSTK__MDS_ARRAY},
                 {"ndarray:int8", 0, PSTK_FIELD_NDARRAY, PSTK_I8, 0, PSTK__MDS_ARRAY_TYPED},
                 {"ndarray:int16:3,4", 24, PSTK_FIELD_NDARRAY, PSTK_I16, 2, PSTK__CODING_PLAIN},
                 {"pkl", 0, 0, 0, 0, PSTK__CODING_PLAIN},
                 {"ndarray:bool", 0, 0, 0, 0, PSTK__CODING_PLAIN},
                 {"ndarray:int8:0", 0, 0, 0, 0, PSTK__CODING_PLAIN},
                 {"ndarray:int8:1,1,1,1,1,1,1,1,1", 9, 0, 0, 0, PSTK__CODING_PLAIN},
                 {"ndarray:int8:99999999999999999999", 0, 0, 0, 0, PSTK__CODING_PLAIN},
                 {"", 0, 0, 0, 0, PSTK__CODING_PLAIN}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        columns = (struct pstk__mds_columns){0};
        CHECK(!add("x", cases[i].encoding, cases[i].size));
        const struct pstk__mds_column *column = &columns.at[0];
        CHECK_EQ(column->field.kind, cases[i].kind);
        CHECK_EQ(column->field.dtype, cases[i].dtype);
        CHECK_EQ(column->field.n_dims, cases[i].n_dims);
        CHECK_EQ(column->coding, cases[i].coding);
        CHECK_EQ(column->is_variable, cases[i].size == 0);
    }
}

TEST(a_size_that_the_encoding_cannot_have_is_refused)
{
    columns = (struct pstk__mds_columns){0};
    CHECK(add("a", "int", 4) && code == PSTK_EBADMSG);
    CHECK(add("a", "int", 0) && code == PSTK_EBADMSG);
    CHECK(add("a", "ndarray:int16:3,4", 12) && code == PSTK_EBADMSG);
    CHECK(add("a", "ndarray:int64:4000000000,4000000000", 8) && code == PSTK_EBADMSG);
    CHECK(add("a", "bytes", 1ull << 32) && code == PSTK_EBADMSG);
    CHECK(!add("a", "bytes", 0xfffffff0));
    CHECK(add("b", "bytes", 0xfffffff0) && code == PSTK_EBADMSG);
    CHECK_EQ(columns.n, 1);
}

TEST(sixty_four_columns_are_the_most)
{
    char name[8];
    columns = (struct pstk__mds_columns){0};
    for (int i = 0; i < PSTK_MAX_FIELDS; i++) {
        snprintf(name, sizeof name, "c%d", i);
        CHECK(!add(name, "str", 0));
    }
    CHECK(add("one-more", "str", 0) && code == PSTK_ENOTSUP);
}

TEST(values_lie_by_the_sizes_in_the_head)
{
    static const uint8_t head[] = {3, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};
    struct pstk__mds_offsets offsets;
    columns = (struct pstk__mds_columns){0};
    CHECK(!add("a", "str", 0) && !add("b", "int", 8) && !add("c", "bytes", 0));
    pstk__mds_find_offsets(&offsets, &columns, head);
    CHECK_EQ(pstk__mds_head(&columns), 8);
    CHECK_EQ(offsets.begin[0], 8);
    CHECK_EQ(offsets.begin[1], 11);
    CHECK_EQ(offsets.begin[2], 19);
    CHECK_EQ(offsets.begin[3], 19 + 0xffffffffull);
}

/* The field that a caller wants. */
static struct pstk_field wanted(uint32_t kind, uint32_t dtype, uint32_t n_dims, uint64_t first)
{
    return (struct pstk_field){
        .name = "x", .kind = kind, .dtype = dtype, .n_dims = n_dims, .shape = {first}};
}

static int retype(struct pstk__index_field *field, struct pstk_field to)
{
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    const int r = pstk__mds_retype(field, &to, &err);
    return r == err.code ? r : 1;
}

TEST(bytes_become_what_the_caller_wants)
{
    static const uint8_t tokens[] = {1, 0, 2, 0, 3, 0};
    struct pstk__field_view view;
    struct pstk__index_field field = field_of("bytes", tokens, sizeof tokens);
    CHECK_EQ(retype(&field, wanted(PSTK_FIELD_NDARRAY, PSTK_U16, 1, 0)), 0);
    CHECK(!pstk__mds_view(&view, &field, tokens, 6, text));
    CHECK(view.data == tokens && view.plain_size == 6);
    CHECK(pstk__mds_view(&view, &field, tokens, 5, text));
    field = field_of("bytes", tokens, sizeof tokens);
    CHECK_EQ(retype(&field, wanted(PSTK_FIELD_NDARRAY, PSTK_U16, 1, 3)), 0);
    CHECK(!pstk__mds_view(&view, &field, tokens, 6, text));
    CHECK(pstk__mds_view(&view, &field, tokens, 4, text));
    field = field_of("bytes", tiny_png, sizeof tiny_png);
    CHECK_EQ(retype(&field, wanted(PSTK_FIELD_IMAGE, 0, 0, 0)), 0);
    CHECK(!pstk__mds_view(&view, &field, tiny_png, sizeof tiny_png, text));
    CHECK_EQ(view.encoding, PSTK_ENCODING_PNG);
    field = field_of("bytes", "12", 2);
    CHECK_EQ(retype(&field, wanted(PSTK_FIELD_SCALAR, PSTK_I32, 0, 0)), 0);
    CHECK(!pstk__mds_view(&view, &field, (const uint8_t *)"12", 2, text));
    CHECK(view.codec == PSTK__FOREIGN_TEXT_INTEGER && view.plain_size == 4);
    field = field_of("bytes", "12", 2);
    CHECK_EQ(retype(&field, wanted(PSTK_FIELD_BOXES, PSTK_F32, 2, 0)), PSTK_ENOTSUP);
    CHECK_EQ(retype(&field, wanted(PSTK_FIELD_NDARRAY, PSTK_U16, 2, 0)), PSTK_ENOTSUP);
}

TEST(arrays_take_a_fixed_shape_and_bytes_their_heads)
{
    static const uint8_t array[] = {16, 1 << 2, 3, 1, 0, 2, 0, 3, 0}; /* uint16, {3} */
    struct pstk__field_view view;
    struct pstk__index_field field = field_of("ndarray", array, sizeof array);
    CHECK_EQ(field.field.dtype, PSTK_U16);
    CHECK(!pstk__mds_view(&view, &field, array, sizeof array, text));
    CHECK(view.data == array + 3 && view.plain_size == 6);
    CHECK_EQ(retype(&field, wanted(PSTK_FIELD_NDARRAY, PSTK_U16, 1, 3)), 0);
    CHECK(!pstk__mds_view(&view, &field, array, sizeof array, text));
    CHECK_EQ(retype(&field, wanted(PSTK_FIELD_NDARRAY, PSTK_U16, 1, 4)), PSTK_ENOTSUP);
    field = field_of("ndarray", array, sizeof array);
    CHECK_EQ(retype(&field, wanted(PSTK_FIELD_NDARRAY, PSTK_U16, 1, 4)), 0);
    CHECK(pstk__mds_view(&view, &field, array, sizeof array, text));
    field = field_of("ndarray", array, sizeof array);
    CHECK_EQ(retype(&field, wanted(PSTK_FIELD_NDARRAY, PSTK_I16, 1, 0)), PSTK_ENOTSUP);
    CHECK_EQ(retype(&field, wanted(PSTK_FIELD_SCALAR, PSTK_U16, 0, 0)), PSTK_ENOTSUP);
    CHECK_EQ(retype(&field, wanted(PSTK_FIELD_BYTES, 0, 0, 0)), 0);
    CHECK(!pstk__mds_view(&view, &field, array, sizeof array, text));
    CHECK(view.data == array && view.plain_size == sizeof array);
}

TEST(an_array_of_several_variable_dimensions_gets_its_shape_before_its_elements)
{
    static const uint8_t array[] = {2 << 2 | 1, 1, 0, 2, 0, 7, 8}; /* int8, {1, 2} */
    struct pstk__field_view view;
    uint64_t plain[3] = {0};
    struct pstk__index_field field = field_of("ndarray:int8", array, sizeof array);
    CHECK_EQ(field.field.n_dims, 2);
    CHECK(!pstk__mds_view(&view, &field, array, sizeof array, text));
    CHECK_EQ(view.plain_size, 18);
    CHECK(!pstk__translate(view.codec, &field.field, view.data, view.stored_size, plain, 18, text));
    CHECK(plain[0] == 1 && plain[1] == 2 && plain[2] == (8 << 8 | 7));
}

TEST(an_array_of_more_dimensions_than_a_field_has_is_bytes)
{
    static const uint8_t array[] = {9 << 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 5};
    const struct pstk__index_field field = field_of("ndarray:int8", array, sizeof array);
    CHECK_EQ(field.field.kind, PSTK_FIELD_BYTES);
    CHECK_EQ(field.coding, PSTK__CODING_PLAIN);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(encodings_become_kinds_dtypes_and_shapes),
        CASE(a_size_that_the_encoding_cannot_have_is_refused),
        CASE(sixty_four_columns_are_the_most),
        CASE(values_lie_by_the_sizes_in_the_head),
        CASE(bytes_become_what_the_caller_wants),
        CASE(arrays_take_a_fixed_shape_and_bytes_their_heads),
        CASE(an_array_of_several_variable_dimensions_gets_its_shape_before_its_elements),
        CASE(an_array_of_more_dimensions_than_a_field_has_is_bytes)};
    return RUN_CASES(cases);
}
