/* SPDX-License-Identifier: Apache-2.0 */
/* tf.train.Example and its features, as protobuf codes them, to the bytes that fields have. */
#include "record/feature.h"

#include "base/little.h"
#include "record/list.h"
#include "support/test.h"

static char text[160];
static uint8_t plain[256];

/* Plain bytes of a feature in memory of exactly its size; *wrong: NULL, or why it has none. */
static int64_t read_as(uint32_t what, const struct pstk_field *field, const void *data,
                       uint64_t size, const char **wrong)
{
    uint8_t *exact = malloc(size ? size : 1);
    if (size)
        memcpy(exact, data, size);
    const int64_t n = pstk__feature_plain_size(what, field, exact, size);
    memset(plain, 0xee, sizeof plain);
    *wrong = pstk__feature_translate(what, field, exact, size, plain,
                                     n < 0 || n > (int64_t)sizeof plain ? 0 : (uint64_t)n, text);
    free(exact);
    return n;
}

#define READ(what, field, bytes, wrong) read_as(what, field, bytes, sizeof(bytes) - 1, wrong)

static const struct pstk_field scalar = {.kind = PSTK_FIELD_SCALAR, .dtype = PSTK_I64};
static const struct pstk_field ragged = {
    .kind = PSTK_FIELD_NDARRAY, .dtype = PSTK_I64, .n_dims = 1, .shape = {0}};
static const struct pstk_field floats = {
    .kind = PSTK_FIELD_NDARRAY, .dtype = PSTK_F32, .n_dims = 1, .shape = {2}};

TEST(integers_are_read_packed_unpacked_and_mixed)
{
    const char *wrong;
    static const char *const coded[] = {"\x1a\x06\x0a\x04\x05\xac\x02\x00",
                                        "\x1a\x07\x08\x05\x08\xac\x02\x08\x00",
                                        "\x1a\x08\x0a\x01\x05\x08\xac\x02\x08\x00"};
    static const uint64_t sizes[] = {8, 9, 10};
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(read_as(PSTK__FEATURE_READ_INT64, &ragged, coded[i], sizes[i], &wrong), 24);
        CHECK(!wrong);
        CHECK_EQ(pstk__get64(plain), 5);
        CHECK_EQ(pstk__get64(plain + 8), 300);
        CHECK_EQ(pstk__get64(plain + 16), 0);
    }
    CHECK_EQ(READ(PSTK__FEATURE_READ_INT64, &ragged, "\x1a\x00", &wrong), 0);
    CHECK(!wrong);
}

TEST(integers_have_64_bits_and_their_sign)
{
    const char *wrong;
    static const char least[] = "\x1a\x0c\x0a\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01";
    static const char minus_one[] = "\x1a\x0c\x0a\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
    static const char too_large[] = "\x1a\x0c\x0a\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02";
    static const char too_long[] = "\x1a\x0d\x0a\x0b\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01";
    CHECK_EQ(READ(PSTK__FEATURE_READ_INT64, &scalar, least, &wrong), 8);
    CHECK(!wrong && pstk__get64(plain) == UINT64_C(1) << 63);
    CHECK_EQ(READ(PSTK__FEATURE_READ_INT64, &scalar, minus_one, &wrong), 8);
    CHECK(!wrong && pstk__get64(plain) == UINT64_MAX);
    READ(PSTK__FEATURE_READ_INT64, &scalar, too_large, &wrong);
    CHECK(wrong && strstr(wrong, "more than 64 bits"));
    READ(PSTK__FEATURE_READ_INT64, &scalar, too_long, &wrong);
    CHECK(wrong && strstr(wrong, "more than 64 bits"));
}

TEST(integers_must_fit_in_a_smaller_dtype)
{
    static const struct {
        uint32_t dtype;
        const char *coded;
        int fits;
    } cases[] = {{PSTK_U8, "\x1a\x03\x08\xff\x01", 1},  {PSTK_U8, "\x1a\x03\x08\x80\x02", 0},
                 {PSTK_I8, "\x1a\x03\x08\xff\x00", 1},  {PSTK_I8, "\x1a\x03\x08\x80\x01", 0},
                 {PSTK_U64, "\x1a\x03\x08\xff\x01", 1}, {PSTK_U32, "\x1a\x03\x08\xff\x01", 1}};
    const char *wrong;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct pstk_field field = {.kind = PSTK_FIELD_SCALAR, .dtype = cases[i].dtype};
        CHECK_EQ(read_as(PSTK__FEATURE_READ_INT64, &field, cases[i].coded, 5, &wrong),
                 pstk_dtype_size(cases[i].dtype));
        CHECK_EQ(wrong == NULL, cases[i].fits);
        CHECK(cases[i].fits || strstr(wrong, "does not fit in"));
    }
    const struct pstk_field field = {.kind = PSTK_FIELD_SCALAR, .dtype = PSTK_U64};
    READ(PSTK__FEATURE_READ_INT64, &field,
         "\x1a\x0c\x0a\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", &wrong);
    CHECK(wrong && strstr(wrong, "-1, which does not fit in u64"));
}

TEST(floats_are_read_packed_unpacked_and_mixed)
{
    const char *wrong;
    static const char *const coded[] = {"\x12\x0a\x0a\x08\0\0\x80\x3f\0\0\0\x40",
                                        "\x12\x0a\x0d\0\0\x80\x3f\x0d\0\0\0\x40",
                                        "\x12\x0b\x0d\0\0\x80\x3f\x0a\x04\0\0\0\x40"};
    static const uint64_t sizes[] = {12, 12, 13};
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(read_as(PSTK__FEATURE_READ_FLOAT, &floats, coded[i], sizes[i], &wrong), 8);
        CHECK(!wrong);
        CHECK_EQ(pstk__get32(plain), 0x3f800000);
        CHECK_EQ(pstk__get32(plain + 4), 0x40000000);
    }
    READ(PSTK__FEATURE_READ_FLOAT, &floats, "\x12\x05\x0a\x03\0\0\0", &wrong);
    CHECK(wrong && strstr(wrong, "not coded as protobuf codes a float_list"));
    READ(PSTK__FEATURE_READ_FLOAT, &floats, "\x12\x04\x0d\0\0\0", &wrong);
    CHECK(wrong && strstr(wrong, "not coded as protobuf codes a float_list"));
}

TEST(lists_of_bytes_are_those_of_format_md)
{
    const struct pstk_field bytes = {.kind = PSTK_FIELD_BYTES_LIST};
    const struct pstk_field texts = {.kind = PSTK_FIELD_UTF8_LIST};
    const char *wrong;
    static const char coded[] = "\x0a\x09\x0a\x01x\x0a\x00\x0a\x02\xc3\xa9";
    CHECK_EQ(READ(PSTK__FEATURE_READ_LIST, &texts, coded, &wrong), 4 + 12 + 3);
    CHECK(!wrong);
    CHECK(!pstk__list_check(PSTK_FIELD_UTF8_LIST, plain, 19, text));
    CHECK(memcmp(plain, "\3\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0x\xc3\xa9", 19) == 0);
    static const char no_text[] = "\x0a\x03\x0a\x01\xff";
    CHECK_EQ(READ(PSTK__FEATURE_READ_LIST, &bytes, no_text, &wrong), 9);
    CHECK(!wrong);
    READ(PSTK__FEATURE_READ_LIST, &texts, no_text, &wrong);
    CHECK(wrong && strstr(wrong, "item 0 is not UTF-8"));
    CHECK_EQ(READ(PSTK__FEATURE_READ_LIST, &bytes, "\x0a\x00", &wrong), 4);
    CHECK(!wrong && pstk__get32(plain) == 0);
}

TEST(a_feature_that_does_not_match_its_field_is_reported)
{
    static const struct {
        uint32_t what;
        const struct pstk_field *field;
        const char *coded;
        uint64_t size;
        const char *words;
    } cases[] = {
        {PSTK__FEATURE_READ_INT64, &scalar, "", 0, "is absent from this record"},
        {PSTK__FEATURE_READ_INT64, &scalar, "\x0a\x00", 2,
         "a bytes_list in this record; must be an"},
        {PSTK__FEATURE_READ_INT64, &scalar, "\x1a\x04\x08\x01\x08\x02", 6,
         "has 2 values; must have 1"},
        {PSTK__FEATURE_READ_INT64, &scalar, "\x1a\x00", 2, "has 0 values; must have 1"},
        {PSTK__FEATURE_READ_FLOAT, &floats, "\x12\x05\x0d\0\0\0\0", 7, "has 1 values; must have 2"},
        {PSTK__FEATURE_READ_INT64, &scalar, "\x1a\x02\x08\xff", 4, "not coded as protobuf"},
        {PSTK__FEATURE_READ_INT64, &scalar, "\x1a\x03\x0a\x01\xff", 5, "not coded as protobuf"},
        {PSTK__FEATURE_READ_INT64, &scalar, "\x1a\x03\x0a\x02\x01", 5, "not coded as protobuf"},
        {PSTK__FEATURE_READ_INT64, &scalar, "\x1a\x02\x18\x01", 4, "not coded as protobuf"},
        {PSTK__FEATURE_READ_INT64, &scalar, "\x1a\x02\x08", 3, "a tf.train.Feature"},
        {PSTK__FEATURE_READ_INT64, &scalar, "\x1a\x02\x08\x01\x1a", 5, "a tf.train.Feature"},
        {PSTK__FEATURE_READ_INT64, &scalar, "\x22\x00", 2, "a tf.train.Feature"},
        {PSTK__FEATURE_READ_INT64, &scalar, "\x1a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11,
         "a tf.train.Feature"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *wrong;
        CHECK_EQ(read_as(cases[i].what, cases[i].field, cases[i].coded, cases[i].size, &wrong), -1);
        CHECK(wrong && strstr(wrong, cases[i].words));
    }
}

/* Features of an Example, or -1. */
static int count_features(const char *data, uint64_t size)
{
    uint8_t *exact = malloc(size ? size : 1);
    struct pstk__example example;
    struct pstk__feature feature;
    int n = 0, r = -1;
    if (size)
        memcpy(exact, data, size);
    if (pstk__example_begin(&example, exact, size))
        while ((r = pstk__example_next(&example, &feature)) > 0)
            n++;
    free(exact);
    return r < 0 ? r : n;
}

TEST(an_example_cut_or_longer_anywhere_is_none)
{
    static const char whole[] = "\x0a\x13"
                                "\x0a\x09\x0a\x01"
                                "a\x12\x04\x1a\x02\x08\x05"
                                "\x0a\x06\x0a\x02"
                                "bc\x12\x00";
    CHECK_EQ(count_features(whole, sizeof whole - 1), 2);
    CHECK_EQ(count_features("", 0), 0);
    CHECK_EQ(count_features("\x0a\x00", 2), 0);
    for (uint64_t size = 1; size < sizeof whole - 1; size++)
        CHECK_EQ(count_features(whole, size), -1);
    CHECK_EQ(count_features(whole, sizeof whole), -1);
    CHECK_EQ(count_features("\x0a\x02\x0a\x00", 4), -1);
    CHECK_EQ(count_features("\x12\x00", 2), -1);
}

TEST(fields_of_any_order_are_read_and_unknown_ones_skipped)
{
    /* Unknown fields of each coding, a value before its key, and unknown fields of each message. */
    static const char odd[] = "\x18\x96\x01"
                              "\x0a\x16"
                              "\x0a\x0d\x12\x06\x1a\x02\x08\x05\x28\x03\x0a\x01"
                              "a\x20\x01"
                              "\x22\x01x\x38\x00\x30"
                              "\x07"
                              "\x19\1\2\3\4\5\6\7\x08\x1d\1\2\3\4";
    static const char two[] = "\x0a\x00\x0a\x00";
    static const char group[] = "\x0a\x00\x1b\x1c";
    static const char lists[] = "\x0a\x00\x12\x00";
    CHECK_EQ(count_features(odd, sizeof odd - 1), 1);
    CHECK_EQ(count_features(two, 4), 0);
    CHECK_EQ(count_features(group, 4), 0);
    CHECK_EQ(count_features(lists, 4), -1);
}

TEST(features_of_several_messages_are_those_of_one)
{
    static const char one[] = "\x0a\x06\x0a\x04\x0a\x00\x12\x00";
    char many[64] = "";
    for (int n = 1; n <= 3; n++) { /* with one of no entries, and an unknown field, between them */
        const uint64_t size = (uint64_t)n * 12;
        memcpy(many + size - 12, one, 8);
        memcpy(many + size - 4, "\x0a\x00\x20\x05", 4);
        CHECK_EQ(count_features(many, size), n);
        CHECK_EQ(count_features(many, size - 1), -1);
    }
}

/* Groups of field 3 in one another, with a field of each coding within; -1: they are refused. */
static int count_groups(int depth, int ends, char end)
{
    static const char fields[] = "\x08\x96\x01\x11\1\2\3\4\5\6\7\x08\x1a\x02zz\x25\1\2\3\4";
    char bytes[600];
    int size = 0;
    for (int i = 0; i < depth; i++)
        bytes[size++] = 0x1b;
    memcpy(bytes + size, fields, sizeof fields - 1);
    size += (int)sizeof fields - 1;
    for (int i = 0; i < ends; i++)
        bytes[size++] = end;
    memcpy(bytes + size, "\x0a\x06\x0a\x04\x0a\x00\x12\x00", 8);
    return count_features(bytes, (uint64_t)size + 8);
}

TEST(groups_are_skipped_to_a_depth)
{
    CHECK_EQ(count_groups(1, 1, 0x1c), 1);
    CHECK_EQ(count_groups(100, 100, 0x1c), 1);
    CHECK_EQ(count_groups(101, 101, 0x1c), -1);
    CHECK_EQ(count_groups(2, 1, 0x1c), -1); /* it does not end */
    CHECK_EQ(count_groups(1, 2, 0x1c), -1); /* an end without a begin */
    CHECK_EQ(count_groups(1, 1, 0x24), -1); /* the end of another field's */
    CHECK_EQ(count_groups(0, 1, 0x1c), -1);
}

TEST(an_absent_value_is_empty_where_it_may_be)
{
    const struct pstk_field list = {.kind = PSTK_FIELD_UTF8_LIST};
    const struct pstk_field one = {.name = "t", .kind = PSTK_FIELD_UTF8};
    const char *wrong;
    CHECK_EQ(READ(PSTK__FEATURE_READ_INT64, &ragged, "", &wrong), 0);
    CHECK(!wrong);
    CHECK_EQ(READ(PSTK__FEATURE_READ_LIST, &list, "", &wrong), 4);
    CHECK(!wrong && pstk__get32(plain) == 0);
    CHECK_EQ(READ(PSTK__FEATURE_READ_FLOAT, &floats, "", &wrong), -1);
    CHECK(wrong && strstr(wrong, "(\"float32\", (None,))"));
    CHECK_EQ(READ(PSTK__FEATURE_READ_ONE, &one, "", &wrong), -1);
    CHECK(wrong && strstr(wrong, "fields={\"t\": [\"utf8\"]}"));
}

int main(void)
{
    const struct test_case cases[] = {CASE(integers_are_read_packed_unpacked_and_mixed),
                                      CASE(integers_have_64_bits_and_their_sign),
                                      CASE(integers_must_fit_in_a_smaller_dtype),
                                      CASE(floats_are_read_packed_unpacked_and_mixed),
                                      CASE(lists_of_bytes_are_those_of_format_md),
                                      CASE(a_feature_that_does_not_match_its_field_is_reported),
                                      CASE(an_example_cut_or_longer_anywhere_is_none),
                                      CASE(fields_of_any_order_are_read_and_unknown_ones_skipped),
                                      CASE(features_of_several_messages_are_those_of_one),
                                      CASE(groups_are_skipped_to_a_depth),
                                      CASE(an_absent_value_is_empty_where_it_may_be)};
    return RUN_CASES(cases);
}
