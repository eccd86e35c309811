/* SPDX-License-Identifier: Apache-2.0 */
#include "support/test.h"

#include "base/crc32c.h"
#include "record/schema.h"

static const struct pstk_field sample_fields[] = {
    {.name = "jpg", .kind = PSTK_FIELD_IMAGE},
    {.name = "cls", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_I64},
    {.name = "box", .kind = PSTK_FIELD_NDARRAY, .dtype = PSTK_F32, .n_dims = 2, .shape = {2, 3}},
    {.name = "txt", .kind = PSTK_FIELD_UTF8, .codec = PSTK_CODEC_ZSTD, .codec_level = 7},
    {.name = "var", .kind = PSTK_FIELD_NDARRAY, .dtype = PSTK_U16, .n_dims = 2, .shape = {0, 4}},
};

#define N_SAMPLE (sizeof sample_fields / sizeof sample_fields[0])

TEST(fixed_fields_lie_after_the_entries)
{
    struct pstk__schema s;
    CHECK_EQ(pstk__schema_init(&s, sample_fields, N_SAMPLE, NULL), 0);
    CHECK_EQ(s.n_entries, 3);
    CHECK_EQ(s.fixed_end, 16 + 3 * 32 + 8 + 24);
    CHECK_EQ(s.head_size, 144);
    const int entries[] = {0, -1, -1, 1, 2};
    for (uint32_t i = 0; i < N_SAMPLE; i++)
        CHECK_EQ(s.entry[i], entries[i]);
    CHECK_EQ(s.fixed_offset[1], 112);
    CHECK_EQ(s.fixed_size[1], 8);
    CHECK_EQ(s.fixed_offset[2], 120);
    CHECK_EQ(s.fixed_size[2], 24);
    CHECK_EQ(s.fixed_size[0], 0);
}

TEST(an_array_of_4096_bytes_is_fixed_and_one_of_4097_is_not)
{
    struct pstk_field f = {
        .name = "a", .kind = PSTK_FIELD_NDARRAY, .dtype = PSTK_U8, .n_dims = 1, .shape = {4096}};
    struct pstk__schema s;
    CHECK_EQ(pstk__schema_init(&s, &f, 1, NULL), 0);
    CHECK_EQ(s.fixed_size[0], 4096);
    f.shape[0] = 4097;
    CHECK_EQ(pstk__schema_init(&s, &f, 1, NULL), 0);
    CHECK_EQ(s.entry[0], 0);
    f.shape[0] = 16;
    f.codec = PSTK_CODEC_ZSTD;
    CHECK_EQ(pstk__schema_init(&s, &f, 1, NULL), 0);
    CHECK_EQ(s.entry[0], 0);
}

TEST(the_crc_is_that_of_the_text_in_format_md)
{
    static const char text[] =
        "jpg image - none -\ncls scalar i64 none -\nbox ndarray f32 none 2,3\n"
        "txt utf8 - zstd -\nvar ndarray u16 none 0,4\n";
    struct pstk__schema s;
    CHECK_EQ(pstk__schema_init(&s, sample_fields, N_SAMPLE, NULL), 0);
    CHECK_EQ(s.crc, pstk__crc32c(0, text, sizeof text - 1));
}

TEST(only_what_means_something_is_copied)
{
    struct pstk_field f = sample_fields[1];
    memset(f.name + 4, 'x', sizeof f.name - 5);
    f.shape[3] = 77;
    struct pstk__schema a, b;
    CHECK_EQ(pstk__schema_init(&a, &f, 1, NULL), 0);
    CHECK_EQ(pstk__schema_init(&b, &sample_fields[1], 1, NULL), 0);
    CHECK(memcmp(&a, &b, sizeof a) == 0);
}

TEST(each_wrong_field_is_refused_naming_it)
{
    static const struct {
        struct pstk_field field;
        int code;
        const char *names;
    } wrong[] = {
        {{.name = "", .kind = 1}, PSTK_EINVAL, "name"},
        {{.name = "a b", .kind = 1}, PSTK_EINVAL, "a b"},
        {{.name = "a/b", .kind = 1}, PSTK_EINVAL, "a/b"},
        {{.name = "a", .kind = 0}, PSTK_EINVAL, "kind: value is 0"},
        {{.name = "a", .kind = 15}, PSTK_EINVAL, "kind: value is 15"},
        {{.name = "a", .kind = 1, .dtype = PSTK_U8}, PSTK_EINVAL, "dtype: value is 1"},
        {{.name = "a", .kind = 4}, PSTK_EINVAL, "dtype: value is 0"},
        {{.name = "a", .kind = 4, .dtype = 13}, PSTK_EINVAL, "dtype: value is 13"},
        {{.name = "a", .kind = 4, .dtype = 1, .n_dims = 1}, PSTK_EINVAL, "n_dims"},
        {{.name = "a", .kind = 5, .dtype = 1}, PSTK_EINVAL, "n_dims: value is 0"},
        {{.name = "a", .kind = 5, .dtype = 1, .n_dims = 9}, PSTK_EINVAL, "n_dims: value is 9"},
        {{.name = "a", .kind = 5, .dtype = 1, .n_dims = 1, .shape = {1ull << 63}},
         PSTK_EINVAL,
         "shape[0]"},
        {{.name = "a", .kind = 5, .dtype = 12, .n_dims = 3, .shape = {65536, 65536, 2}},
         PSTK_EINVAL,
         "shape"},
        {{.name = "a", .kind = 1, .codec = 2}, PSTK_EINVAL, "planes"},
        {{.name = "a", .kind = 3, .codec = 2, .codec_level = 2}, PSTK_EINVAL, "codec_level"},
        {{.name = "a", .kind = 3, .codec = 3}, PSTK_ENOTSUP, "codec: value is 3"},
        {{.name = "a", .kind = 1, .codec = 99}, PSTK_ENOTSUP, "codec: value is 99"},
        {{.name = "a", .kind = 4, .dtype = 1, .codec = 1}, PSTK_EINVAL, "codec"},
        {{.name = "a", .kind = 1, .codec = 1, .codec_level = 23}, PSTK_EINVAL, "codec_level"},
        {{.name = "a", .kind = 1, .reserved = 1}, PSTK_EINVAL, "reserved"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct pstk__schema s;
        struct pstk_error err;
        pstk_error_init(&err, sizeof err);
        CHECK_EQ(pstk__schema_init(&s, &wrong[i].field, 1, &err), wrong[i].code);
        CHECK(strstr(err.message, "fields[0]"));
        CHECK(strstr(err.message, wrong[i].names));
    }
}

/* Fields with one thing wrong. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
#define BOXES(...)                                                                                 \
    {                                                                                              \
        .name = "a", .kind = PSTK_FIELD_BOXES, .dtype = PSTK_F32, .n_dims = 2, .shape = {0, 4},    \
        .of = "jpg", .box_format = PSTK_BOX_FORMAT_XYWH, .coordinates = PSTK_COORDINATES_UNIT,     \
        __VA_ARGS__                                                                                \
    }
#define LENGTHS(...)                                                                               \
    {                                                                                              \
        .name = "a", .kind = PSTK_FIELD_NDARRAY, .dtype = PSTK_U32, .n_dims = 1, __VA_ARGS__       \
    }

TEST(each_wrong_attribute_is_refused_naming_it)
{
    static const struct {
        struct pstk_field field;
        const char *names;
    } wrong[] = {
        {BOXES(.of = ""), "of: value is"},
        {BOXES(.of = "cls"), "of: value is \"cls\"; must be the name of a field of kind image"},
        {BOXES(.of = "no"), "of: value is \"no\""},
        {BOXES(.of = "a b"), "of: value is \"a b\""},
        {BOXES(.box_format = 0), "form: value is 0"},
        {BOXES(.box_format = 4), "form: value is 4"},
        {BOXES(.coordinates = 0), "coordinates: value is 0"},
        {BOXES(.coordinates = 3), "coordinates: value is 3"},
        {BOXES(.shape = {0, 5}), "must be 0,4 for boxes"},
        {BOXES(.shape = {2, 4}), "must be 0,4 for boxes"},
        {BOXES(.n_dims = 1), "must be 0,4 for boxes"},
        {BOXES(.dtype = PSTK_I32), "dtype: value is i32; must be f16"},
        {BOXES(.rows = "a b"), "rows: value is \"a b\""},
        {BOXES(.splits = "objects"), "splits: value is \"objects\""},
        {BOXES(.kind = PSTK_FIELD_KEYPOINTS, .box_format = 0),
         "must be 0,k,3 or 0,k,2 (k > 0) for keypoints"},
        {BOXES(.kind = PSTK_FIELD_KEYPOINTS, .box_format = 0, .n_dims = 3, .shape = {0, 0, 3}),
         "must be 0,k,3"},
        {BOXES(.kind = PSTK_FIELD_KEYPOINTS, .box_format = 0, .n_dims = 3, .shape = {0, 2, 4}),
         "must be 0,k,3"},
        {BOXES(.kind = PSTK_FIELD_KEYPOINTS), "form: value is 2"},
        {BOXES(.kind = PSTK_FIELD_POLYGONS, .box_format = 0), "must be 0,2 for polygons"},
        {BOXES(.kind = PSTK_FIELD_RLE, .box_format = 0), "coordinates: value is 2"},
        {BOXES(.kind = PSTK_FIELD_RLE, .box_format = 0, .coordinates = 0), "must be 0 for rle"},
        {BOXES(.kind = PSTK_FIELD_RLE, .box_format = 0, .coordinates = 0, .n_dims = 1),
         "dtype: value is f32; must be u32"},
        {LENGTHS(.of = "jpg"), "of: value is \"jpg\""},
        {LENGTHS(.box_format = 1), "form: value is 1"},
        {LENGTHS(.coordinates = 1), "coordinates: value is 1"},
        {LENGTHS(.shape = {3}, .rows = "objects"), "rows: value is objects; must be left out"},
        {LENGTHS(.n_dims = 2, .rows = "objects"), "rows: value is objects; must be left out"},
        {LENGTHS(.shape = {3}, .splits = "objects"), "splits: value is \"objects\""},
        {LENGTHS(.dtype = PSTK_F32, .splits = "objects"), "splits: value is \"objects\""},
        {LENGTHS(.splits = "nothing"), "splits: value is \"nothing\"; must be the axis"},
        {LENGTHS(.splits = "objects", .rows = "objects"), "must be the axis"},
        {LENGTHS(.splits = "points"), "splits: value is points, which field parts splits"},
        {{.name = "a", .kind = PSTK_FIELD_BYTES, .rows = "objects"}, "rows: value is objects"},
        {{.name = "a", .kind = PSTK_FIELD_IMAGE_LIST, .codec = PSTK_CODEC_ZSTD}, "codec is set"},
        {{.name = "a", .kind = PSTK_FIELD_MASK_LIST}, "of: value is"},
        {{.name = "a", .kind = PSTK_FIELD_UTF8_LIST, .dtype = PSTK_U8}, "dtype: value is 1"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const struct pstk_field four[] = {
            {.name = "jpg", .kind = PSTK_FIELD_IMAGE},
            {.name = "cls", .kind = PSTK_FIELD_UTF8_LIST, .rows = "points"},
            {.name = "parts",
             .kind = PSTK_FIELD_NDARRAY,
             .dtype = PSTK_U8,
             .n_dims = 1,
             .rows = "objects",
             .splits = "points"},
            wrong[i].field,
        };
        struct pstk__schema s;
        struct pstk_error err;
        pstk_error_init(&err, sizeof err);
        CHECK_EQ(pstk__schema_init(&s, four, 4, &err), PSTK_EINVAL);
        if (!strstr(err.message, "fields[3]") || !strstr(err.message, wrong[i].names))
            printf("# %zu: %s\n", i, err.message);
        CHECK(strstr(err.message, "fields[3]"));
        CHECK(strstr(err.message, wrong[i].names));
    }
}

#pragma GCC diagnostic pop

TEST(attributes_are_in_the_text_of_the_crc_and_link_fields)
{
    static const char text[] =
        "pts polygons f32 none 0,2 of=jpg rows=points coordinates=pixels\n"
        "box boxes f16 zstd 0,4 of=jpg rows=objects form=cxcywh coordinates=unit\n"
        "n ndarray u8 none 0 rows=objects splits=points\n"
        "jpg image - none -\n"
        "cap utf8_list - none - rows=objects\n";
    static const struct pstk_field fields[] = {
        {.name = "pts",
         .kind = PSTK_FIELD_POLYGONS,
         .dtype = PSTK_F32,
         .n_dims = 2,
         .shape = {0, 2},
         .of = "jpg",
         .rows = "points",
         .coordinates = PSTK_COORDINATES_PIXELS},
        {.name = "box",
         .kind = PSTK_FIELD_BOXES,
         .dtype = PSTK_F16,
         .codec = PSTK_CODEC_ZSTD,
         .n_dims = 2,
         .shape = {0, 4},
         .of = "jpg",
         .rows = "objects",
         .box_format = PSTK_BOX_FORMAT_CXCYWH,
         .coordinates = PSTK_COORDINATES_UNIT},
        {.name = "n",
         .kind = PSTK_FIELD_NDARRAY,
         .dtype = PSTK_U8,
         .n_dims = 1,
         .rows = "objects",
         .splits = "points"},
        {.name = "jpg", .kind = PSTK_FIELD_IMAGE},
        {.name = "cap", .kind = PSTK_FIELD_UTF8_LIST, .rows = "objects"},
    };
    struct pstk__schema s;
    CHECK_EQ(pstk__schema_init(&s, fields, 5, NULL), 0);
    CHECK_EQ(s.crc, pstk__crc32c(0, text, sizeof text - 1));
    const int32_t of[] = {3, 3, -1, -1, -1}, axis[] = {0, 1, 1, -1, 1};
    const int32_t split[] = {-1, -1, 0, -1, -1}, split_by[] = {2, -1, -1, -1, -1};
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(s.links.of[i], of[i]);
        CHECK_EQ(s.links.axis[i], axis[i]);
        CHECK_EQ(s.links.split[i], split[i]);
        CHECK_EQ(s.links.split_by[i], split_by[i]);
    }
    CHECK(s.links.has_axes);
    CHECK_EQ(pstk__schema_init(&s, sample_fields, N_SAMPLE, NULL), 0);
    CHECK(!s.links.has_axes);
}

TEST(a_name_without_end_and_a_name_given_twice_are_refused)
{
    struct pstk_field f[2] = {{.kind = PSTK_FIELD_BYTES}, {.kind = PSTK_FIELD_BYTES}};
    struct pstk__schema s;
    memset(f[0].name, 'n', sizeof f[0].name);
    CHECK_EQ(pstk__schema_init(&s, f, 1, NULL), PSTK_EINVAL);
    f[0].name[63] = 0;
    CHECK_EQ(pstk__schema_init(&s, f, 1, NULL), 0);
    memcpy(f[1].name, f[0].name, sizeof f[0].name);
    CHECK_EQ(pstk__schema_init(&s, f, 2, NULL), PSTK_EINVAL);
}

TEST(the_number_of_fields_is_1_to_64)
{
    struct pstk_field f[65];
    struct pstk__schema s;
    memset(f, 0, sizeof f);
    for (int i = 0; i < 65; i++) {
        snprintf(f[i].name, sizeof f[i].name, "f%d", i);
        f[i].kind = PSTK_FIELD_NDARRAY;
        f[i].dtype = PSTK_U8;
        f[i].n_dims = 1;
        f[i].shape[0] = 4096;
    }
    CHECK_EQ(pstk__schema_init(&s, f, 0, NULL), PSTK_EINVAL);
    CHECK_EQ(pstk__schema_init(&s, NULL, 1, NULL), PSTK_EINVAL);
    CHECK_EQ(pstk__schema_init(&s, f, 65, NULL), PSTK_EINVAL);
    CHECK_EQ(pstk__schema_init(&s, f, 64, NULL), 0);
    CHECK_EQ(s.head_size, 16 + 64 * 4096);
}

TEST(fields_are_found_by_name_and_listed)
{
    struct pstk__schema s;
    char text[24], little[6], nothing[1] = {'x'};
    CHECK_EQ(pstk__schema_init(&s, sample_fields, N_SAMPLE, NULL), 0);
    CHECK_EQ(pstk__schema_find(&s, "txt"), 3);
    CHECK_EQ(pstk__schema_find(&s, "tx"), -1);
    pstk__schema_names(&s, text, sizeof text);
    CHECK_STR(text, "jpg, cls, box, txt, var");
    pstk__schema_names(&s, little, sizeof little);
    CHECK_STR(little, "jpg, ");
    pstk__schema_names(&s, nothing, 0);
    CHECK_EQ(nothing[0], 'x');
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(fixed_fields_lie_after_the_entries),
        CASE(an_array_of_4096_bytes_is_fixed_and_one_of_4097_is_not),
        CASE(the_crc_is_that_of_the_text_in_format_md),
        CASE(only_what_means_something_is_copied),
        CASE(each_wrong_field_is_refused_naming_it),
        CASE(each_wrong_attribute_is_refused_naming_it),
        CASE(attributes_are_in_the_text_of_the_crc_and_link_fields),
        CASE(a_name_without_end_and_a_name_given_twice_are_refused),
        CASE(the_number_of_fields_is_1_to_64),
        CASE(fields_are_found_by_name_and_listed),
    };
    return RUN_CASES(cases);
}
