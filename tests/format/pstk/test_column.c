/* SPDX-License-Identifier: Apache-2.0 */
#include "support/test.h"

#include "base/crc32c.h"
#include "base/little.h"
#include "format/pstk/column.h"
#include "format/pstk/column_fact.h"

/* 1000 values of i64: a full page and one of 490. */
static struct pstk__column_header sample_header(void)
{
    struct pstk__column_header h = {.tag = 0x12345678,
                                    .shard_crc = 0xabcdef01,
                                    .n_records = 1000,
                                    .dtype = PSTK_I64,
                                    .pages_crc = 0x55,
                                    .name = "cls"};
    pstk__column_header_derive(&h);
    return h;
}

static void seal_header(uint8_t *b)
{
    pstk__put32(b + 4092, pstk__crc32c(0, b, 4092));
}

static void seal_page(uint8_t *b)
{
    pstk__put32(b, pstk__crc32c(0, b + 4, 4092));
}

TEST(a_header_comes_back_as_it_was_written)
{
    uint8_t b[4096];
    struct pstk__column_header h = sample_header(), back;
    CHECK_EQ(h.n_pages, 2);
    CHECK_EQ(h.file_size, 12288);
    CHECK_EQ(h.page_tag, pstk__crc32c(0, "12345678/cls/i64", 16));
    pstk__column_header_encode(&h, b);
    CHECK_EQ(pstk__column_header_check(&back, b, "x.cls.pcol", NULL), 0);
    CHECK_EQ(back.tag, h.tag);
    CHECK_EQ(back.shard_crc, h.shard_crc);
    CHECK_EQ(back.n_records, 1000);
    CHECK_EQ(back.dtype, PSTK_I64);
    CHECK_EQ(back.pages_crc, 0x55);
    CHECK_EQ(back.crc, h.crc);
    CHECK_EQ(back.file_size, h.file_size);
    CHECK_EQ(back.page_tag, h.page_tag);
    CHECK_STR(back.name, "cls");
}

TEST(every_flipped_bit_of_a_header_is_found)
{
    uint8_t b[4096];
    struct pstk__column_header h = sample_header(), back;
    pstk__column_header_encode(&h, b);
    for (uint32_t bit = 0; bit < 8 * 4096; bit++) {
        b[bit / 8] ^= (uint8_t)(1 << bit % 8);
        CHECK_EQ(pstk__column_header_check(&back, b, "x.cls.pcol", NULL), PSTK_EBADMSG);
        b[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

TEST(hostile_header_values_with_a_right_checksum_are_refused)
{
    static const struct {
        uint32_t at;
        uint64_t value;
        int code;
        const char *names;
    } edits[] = {
        {8, 3, PSTK_ENOTSUP, "is of version 3"},
        {12, (uint64_t)0x12345678 << 32 | 1, PSTK_ENOTSUP, "flags 0x1"},
        {32, (uint64_t)0x55 << 32, PSTK_ENOTSUP, "dtype 0"},
        {32, (uint64_t)0x55 << 32 | 13, PSTK_ENOTSUP, "dtype 13"},
        {32, (uint64_t)0x55 << 32 | PSTK_U8, PSTK_EBADMSG, "contradicts itself"},
        {24, 0, PSTK_EBADMSG, "impossible: 0 records"},
        {24, 1ull << 32, PSTK_EBADMSG, "impossible"},
        {24, 1021, PSTK_EBADMSG, "contradicts itself"},
        {40, 3, PSTK_EBADMSG, "contradicts itself"},
        {48, 8192, PSTK_EBADMSG, "contradicts itself"},
        {56, 1, PSTK_EBADMSG, "must be zero"},
        {64, 0, PSTK_EBADMSG, "name is not one"},
        {64, 0x6100736c63, PSTK_EBADMSG, "name is not one"},
        {64, 0x2f736c63, PSTK_EBADMSG, "name is not one"},
        {136, 1, PSTK_EBADMSG, "name is not one"},
        {144, 1, PSTK_EBADMSG, "must be zero"},
        {4084, 1, PSTK_EBADMSG, "must be zero"},
    };
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        uint8_t b[4096];
        struct pstk__column_header h = sample_header(), back;
        struct pstk_error err = {0};
        pstk__column_header_encode(&h, b);
        pstk__put64(b + edits[i].at, edits[i].value);
        seal_header(b);
        const int r = pstk__column_header_check(&back, b, "x.cls.pcol", &err);
        if (r != edits[i].code || !strstr(err.message, edits[i].names))
            printf("# edit %zu: %d %s\n", i, r, err.message);
        CHECK_EQ(r, edits[i].code);
        CHECK(strstr(err.message, edits[i].names));
    }
}

TEST(a_page_comes_back_and_every_flipped_bit_of_it_is_found)
{
    const struct pstk__column_header h = sample_header();
    uint8_t b[4096];
    int64_t given[490];
    const void *back;
    for (int i = 0; i < 490; i++)
        given[i] = i * 1000003 - 7;
    const struct pstk__column_page page = pstk__column_page_of(&h, "x.cls.pcol", 1);
    CHECK_EQ(page.n, 490);
    CHECK_EQ(pstk__column_page_encode(b, &page, given), pstk__column_page_crc(b));
    CHECK_EQ(pstk__column_page_check(&page, b, &back, NULL), 0);
    CHECK(memcmp(back, given, sizeof given) == 0);
    for (uint32_t bit = 0; bit < 8 * 4096; bit++) {
        b[bit / 8] ^= (uint8_t)(1 << bit % 8);
        CHECK_EQ(pstk__column_page_check(&page, b, &back, NULL), PSTK_EBADMSG);
        b[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

TEST(a_page_of_another_place_or_file_is_refused_and_named)
{
    static const struct {
        uint32_t at, value;
        const char *names;
    } edits[] = {
        {4, 0, "it is page 0"},
        {8, 7, "with the tag 00000007"},
        {12, 489, "states 489 values; must have 490"},
        {12, 510, "states 510 values"},
        {16 + 490 * 8, 1, "bytes after its 490 values"},
        {4092, 1u << 31, "bytes after its 490 values"},
    };
    const struct pstk__column_header h = sample_header();
    const struct pstk__column_page page = pstk__column_page_of(&h, "x.cls.pcol", 1);
    int64_t given[490] = {1};
    const void *back;
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        uint8_t b[4096];
        struct pstk_error err = {0};
        pstk__column_page_encode(b, &page, given);
        pstk__put32(b + edits[i].at, edits[i].value);
        seal_page(b);
        CHECK_EQ(pstk__column_page_check(&page, b, &back, &err), PSTK_EBADMSG);
        if (!strstr(err.message, edits[i].names))
            printf("# edit %zu: %s\n", i, err.message);
        CHECK(strstr(err.message, edits[i].names));
        CHECK_EQ(err.offset, 8192);
        CHECK_EQ(err.length, 4096);
    }
}

/* name:dtype of each column that a schema gives. */
static void list_columns(const struct pstk_field *fields, uint32_t n, char text[1024])
{
    struct pstk__schema schema;
    struct pstk__derived_column columns[PSTK__MAX_DERIVED];
    text[0] = 0;
    if (pstk__schema_init(&schema, fields, n, NULL) < 0)
        return;
    const uint32_t n_columns = pstk__derived_columns(&schema, columns);
    for (uint32_t i = 0; i < n_columns; i++)
        snprintf(text + strlen(text), 1024 - strlen(text), "%s:%s ", columns[i].name,
                 pstk_dtype_name(columns[i].dtype));
}

TEST(the_fields_of_a_schema_give_its_columns)
{
    const struct pstk_field fields[] = {
        {.name = "jpg", .kind = PSTK_FIELD_IMAGE},
        {.name = "cls", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_I16},
        {.name = "raw", .kind = PSTK_FIELD_BYTES},
        {.name = "txt", .kind = PSTK_FIELD_UTF8, .codec = PSTK_CODEC_ZSTD},
        {.name = "box",
         .kind = PSTK_FIELD_NDARRAY,
         .dtype = PSTK_F32,
         .n_dims = 2,
         .shape = {0, 4}},
        {.name = "fix", .kind = PSTK_FIELD_NDARRAY, .dtype = PSTK_F32, .n_dims = 1, .shape = {3}},
        {.name = "any", .kind = PSTK_FIELD_NDARRAY, .dtype = PSTK_U8, .n_dims = 2},
        {.name = "far", .kind = PSTK_FIELD_NDARRAY, .dtype = PSTK_U8, .n_dims = 1, .shape = {5000}},
    };
    char text[1024];
    list_columns(fields, 8, text);
    CHECK_STR(text, "jpg.size:u32 jpg.width:u32 jpg.height:u32 cls:i16 raw.size:u32 txt.size:u32 "
                    "box.length:u32 any.size:u32 ");
}

TEST(a_scalar_field_keeps_its_name_where_another_fact_would_have_it)
{
    const struct pstk_field fields[] = {
        {.name = "jpg", .kind = PSTK_FIELD_IMAGE},
        {.name = "jpg.width", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_F64},
        {.name = "a", .kind = PSTK_FIELD_BYTES},
        {.name = "a.size", .kind = PSTK_FIELD_BYTES},
    };
    char text[1024];
    list_columns(fields, 4, text);
    CHECK_STR(text, "jpg.size:u32 jpg.height:u32 jpg.width:f64 a.size:u32 a.size.size:u32 ");
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_header_comes_back_as_it_was_written),
        CASE(every_flipped_bit_of_a_header_is_found),
        CASE(hostile_header_values_with_a_right_checksum_are_refused),
        CASE(a_page_comes_back_and_every_flipped_bit_of_it_is_found),
        CASE(a_page_of_another_place_or_file_is_refused_and_named),
        CASE(the_fields_of_a_schema_give_its_columns),
        CASE(a_scalar_field_keeps_its_name_where_another_fact_would_have_it),
    };
    return RUN_CASES(cases);
}
