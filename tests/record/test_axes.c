/* SPDX-License-Identifier: Apache-2.0 */
#include "support/test.h"

#include "record/axes.h"
#include "record/value.h"

enum { IMG, BOX, LAB, PARTS, POINTS, RUN_LENGTHS, RUNS, CAPTIONS, N };

static const struct pstk_field fields[N] = {
    [IMG] = {.name = "img", .kind = PSTK_FIELD_IMAGE},
    [BOX] = {.name = "box",
             .kind = PSTK_FIELD_BOXES,
             .dtype = PSTK_F32,
             .n_dims = 2,
             .shape = {0, 4},
             .of = "img",
             .rows = "objects",
             .box_format = PSTK_BOX_FORMAT_XYXY,
             .coordinates = PSTK_COORDINATES_PIXELS},
    [LAB] = {.name = "lab",
             .kind = PSTK_FIELD_NDARRAY,
             .dtype = PSTK_I64,
             .n_dims = 1,
             .rows = "objects"},
    [PARTS] = {.name = "parts",
               .kind = PSTK_FIELD_NDARRAY,
               .dtype = PSTK_I16,
               .n_dims = 1,
               .rows = "objects",
               .splits = "points"},
    [POINTS] = {.name = "points",
                .kind = PSTK_FIELD_POLYGONS,
                .dtype = PSTK_F64,
                .n_dims = 2,
                .shape = {0, 2},
                .of = "img",
                .rows = "points",
                .coordinates = PSTK_COORDINATES_UNIT},
    [RUN_LENGTHS] = {.name = "lengths",
                     .kind = PSTK_FIELD_NDARRAY,
                     .dtype = PSTK_U64,
                     .n_dims = 1,
                     .rows = "objects",
                     .splits = "runs"},
    [RUNS] = {.name = "runs",
              .kind = PSTK_FIELD_RLE,
              .dtype = PSTK_U32,
              .n_dims = 1,
              .of = "img",
              .rows = "runs"},
    [CAPTIONS] = {.name = "captions", .kind = PSTK_FIELD_UTF8_LIST, .rows = "objects"},
};

static const float boxes[3][4];
static const int64_t labels[3];
static const int16_t parts[3] = {2, 0, 3};
static const double points[5][2];
static const uint64_t lengths[3] = {3, 0, 2};
/* Two masks of 4 x 2 pixels, the second one full. */
static const uint32_t runs[5] = {2, 5, 1, 0, 8};
static const uint32_t three_texts[4] = {3};

/* The view of the record's image, which is its first field. */
static struct pstk__field_view views[N];

/* A record of three objects in which all agrees. */
static void make(struct pstk__schema *schema, struct pstk_value *values)
{
    const struct pstk_value good[N] = {
        [IMG] = {NULL, 100},
        [BOX] = {(const uint8_t *)boxes, sizeof boxes},
        [LAB] = {(const uint8_t *)labels, sizeof labels},
        [PARTS] = {(const uint8_t *)parts, sizeof parts},
        [POINTS] = {(const uint8_t *)points, sizeof points},
        [RUN_LENGTHS] = {(const uint8_t *)lengths, sizeof lengths},
        [RUNS] = {(const uint8_t *)runs, sizeof runs},
        [CAPTIONS] = {(const uint8_t *)three_texts, sizeof three_texts},
    };
    CHECK_EQ(pstk__schema_init(schema, fields, N, NULL), 0);
    memcpy(values, good, sizeof good);
    views[IMG] = (struct pstk__field_view){.width = 4, .height = 2};
}

static int check(const struct pstk__schema *schema, const struct pstk_value *values,
                 uint32_t wrong_field, const char *says)
{
    uint32_t field = 99;
    char text[320];
    const char *wrong = pstk__axes_check(schema, values, views, &field, text);
    if (!wrong || field != wrong_field || !strstr(wrong, says))
        printf("# field %u: %s\n", field, wrong ? wrong : "nothing wrong");
    return wrong && field == wrong_field && strstr(wrong, says);
}

TEST(a_record_whose_rows_lengths_and_runs_agree_is_right)
{
    struct pstk__schema schema;
    struct pstk_value values[N];
    uint32_t field;
    char text[320];
    make(&schema, values);
    CHECK(schema.links.has_axes);
    CHECK(pstk__axes_check(&schema, values, views, &field, text) == NULL);
    for (uint32_t i = 0; i < N; i++)
        values[i].size = i == CAPTIONS ? 4 : 0; /* no object at all */
    values[CAPTIONS].data = (const uint8_t[4]){0};
    CHECK(pstk__axes_check(&schema, values, views, &field, text) == NULL);
}

TEST(only_lists_lengths_and_runs_are_read)
{
    struct pstk__schema schema;
    struct pstk_value values[N];
    make(&schema, values);
    for (uint32_t i = 0; i < N; i++)
        CHECK_EQ(pstk__axes_reads(&schema, i),
                 i == PARTS || i == RUN_LENGTHS || i == RUNS || i == CAPTIONS);
}

TEST(another_number_of_rows_is_found_in_arrays_and_lists)
{
    struct pstk__schema schema;
    struct pstk_value values[N];
    make(&schema, values);
    values[LAB].size -= 8;
    CHECK(check(&schema, values, LAB,
                "rows: value is 2; must be 3, as field box has on the axis "
                "objects"));
    make(&schema, values);
    values[CAPTIONS].data = (const uint8_t[4]){4};
    CHECK(check(&schema, values, CAPTIONS, "rows: value is 4; must be 3"));
    make(&schema, values);
    values[BOX].size -= 16;
    CHECK(check(&schema, values, LAB, "rows: value is 3; must be 2"));
}

TEST(lengths_that_do_not_add_up_are_found)
{
    struct pstk__schema schema;
    struct pstk_value values[N];
    make(&schema, values);
    values[POINTS].size -= 16;
    CHECK(check(&schema, values, PARTS,
                "splits: lengths 0 to 2 are negative or add up to too many rows; "
                "must add up to 4, the rows of field points"));
    make(&schema, values);
    values[PARTS].data = (const uint8_t *)(const int16_t[3]){2, 0, 2};
    CHECK(check(&schema, values, PARTS, "splits: sum is 4; must be 5"));
    values[PARTS].data = (const uint8_t *)(const int16_t[3]){6, -3, 2};
    CHECK(check(&schema, values, PARTS, "splits: lengths 0 to 0"));
    values[PARTS].data = (const uint8_t *)(const int16_t[3]){2, -1, 4};
    CHECK(check(&schema, values, PARTS, "splits: lengths 0 to 1"));
    make(&schema, values);
    values[RUN_LENGTHS].data = (const uint8_t *)(const uint64_t[3]){3, UINT64_MAX, 3};
    CHECK(check(&schema, values, RUN_LENGTHS, "splits: lengths 0 to 1"));
}

TEST(lengths_of_every_dtype_of_integers_are_read)
{
    static const uint64_t bytes[1] = {0x0000000000000005};
    static const uint64_t negative[1] = {UINT64_MAX - 1};
    struct pstk_field two[2] = {
        {.name = "n", .kind = PSTK_FIELD_NDARRAY, .n_dims = 1, .splits = "rows"},
        {.name = "r", .kind = PSTK_FIELD_NDARRAY, .dtype = PSTK_U8, .n_dims = 1, .rows = "rows"}};
    for (uint32_t dtype = PSTK_U8; dtype <= PSTK_I64; dtype++) {
        struct pstk__schema schema;
        uint32_t field;
        char text[320];
        two[0].dtype = dtype;
        CHECK_EQ(pstk__schema_init(&schema, two, 2, NULL), 0);
        struct pstk_value values[2] = {{(const uint8_t *)bytes, pstk_dtype_size(dtype)}, {NULL, 5}};
        CHECK(pstk__axes_check(&schema, values, views, &field, text) == NULL);
        values[0].data = (const uint8_t *)negative;
        CHECK(pstk__axes_check(&schema, values, views, &field, text) != NULL);
    }
}

TEST(runs_add_up_to_the_pixels_of_their_image)
{
    static const uint32_t less[5] = {2, 5, 1, 0, 7}, whole[2] = {3, 5};
    struct pstk__schema schema;
    struct pstk_value values[N];
    make(&schema, values);
    values[RUNS].data = (const uint8_t *)less;
    CHECK(
        check(&schema, values, RUNS, "runs 3 to 4: sum is 7; must be 8, the pixels of field img"));
    make(&schema, values);
    views[0].height = 3;
    CHECK(check(&schema, values, RUNS, "runs 0 to 2: sum is 8; must be 12"));
    make(&schema, values);
    values[RUN_LENGTHS].data = (const uint8_t *)(const uint64_t[3]){2, 1, 2};
    CHECK(check(&schema, values, RUNS, "runs 0 to 1: sum is 7"));

    struct pstk_field lone[2] = {fields[IMG], fields[RUNS]};
    struct pstk_value one[2] = {values[IMG], {(const uint8_t *)whole, sizeof whole}};
    uint32_t field;
    char text[320];
    lone[1].rows[0] = 0; /* without lengths: one mask, or none */
    views[0].height = 2;
    CHECK_EQ(pstk__schema_init(&schema, lone, 2, NULL), 0);
    CHECK(pstk__axes_check(&schema, one, views, &field, text) == NULL);
    views[0].width = 5;
    CHECK(check(&schema, one, 1, "sum is 8; must be 10"));
    one[1].size = 0;
    CHECK(pstk__axes_check(&schema, one, views, &field, text) == NULL);
}

/* Rows of 2^64 bytes: of such rows a value has none, and it may have that. */
TEST(rows_too_large_to_count_in_64_bits_are_none)
{
    const struct pstk_field large[2] = {
        {.name = "a",
         .kind = PSTK_FIELD_NDARRAY,
         .dtype = PSTK_U8,
         .n_dims = 4,
         .shape = {0, 1u << 22, 1u << 21, 1u << 21},
         .rows = "rows"},
        {.name = "texts", .kind = PSTK_FIELD_UTF8_LIST, .rows = "rows"},
    };
    struct pstk_value none[2] = {{(const uint8_t *)"", 0}, {(const uint8_t[4]){0}, 4}};
    struct pstk__schema schema;
    uint32_t field;
    char text[320];
    CHECK_EQ(pstk__schema_init(&schema, large, 2, NULL), 0);
    CHECK(pstk__value_check(&large[0], none[0].data, 0, text) == NULL);
    CHECK(pstk__axes_check(&schema, none, views, &field, text) == NULL);
    none[1].data = (const uint8_t *)three_texts;
    CHECK(check(&schema, none, 1, "rows: value is 3; must be 0"));
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_record_whose_rows_lengths_and_runs_agree_is_right),
        CASE(only_lists_lengths_and_runs_are_read),
        CASE(another_number_of_rows_is_found_in_arrays_and_lists),
        CASE(lengths_that_do_not_add_up_are_found),
        CASE(lengths_of_every_dtype_of_integers_are_read),
        CASE(runs_add_up_to_the_pixels_of_their_image),
        CASE(rows_too_large_to_count_in_64_bits_are_none),
    };
    return RUN_CASES(cases);
}
