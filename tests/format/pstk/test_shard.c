/* SPDX-License-Identifier: Apache-2.0 */
#include "support/test.h"

#include "base/crc32c.h"
#include "base/little.h"
#include "format/pstk/shard.h"

#define HEAD 48 /* bytes of a record head in these tests */

static struct pstk__shard_header sample_header(void)
{
    struct pstk__shard_header h = {
        .schema_crc = 0x12345678,
        .tag = pstk__shard_tag("0/1", 0, 0),
        .n_records = 1000,
        .data_end = 4096 + 1000 * 64,
        .index_crc = 0xabcdef01,
        .identity = {5, (1ull << 61) - 2},
    };
    pstk__shard_header_derive(&h, NULL);
    return h;
}

/* Give edited bytes a fitting checksum again. */
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
    struct pstk__shard_header h = sample_header(), back;
    CHECK_EQ(h.index_offset, 69632);
    CHECK_EQ(h.n_pages, 2);
    CHECK_EQ(h.file_size, 69632 + 8192);
    pstk__shard_header_encode(&h, b);
    CHECK_EQ(pstk__shard_header_check(&back, b, "x.pstk", NULL), 0);
    CHECK(memcmp(&h, &back, sizeof h) == 0);
}

TEST(every_flipped_bit_of_a_header_is_found)
{
    uint8_t b[4096];
    struct pstk__shard_header h = sample_header(), back;
    pstk__shard_header_encode(&h, b);
    for (uint32_t bit = 0; bit < 8 * 4096; bit++) {
        b[bit / 8] ^= (uint8_t)(1 << bit % 8);
        CHECK_EQ(pstk__shard_header_check(&back, b, "x.pstk", NULL), PSTK_EBADMSG);
        b[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

TEST(an_intact_header_of_another_version_or_with_flags_is_refused_by_them)
{
    uint8_t b[4096];
    struct pstk__shard_header h = sample_header(), back;
    struct pstk_error err = {0};
    pstk__shard_header_encode(&h, b);
    pstk__put32(b + 8, 3);
    seal_header(b);
    CHECK_EQ(pstk__shard_header_check(&back, b, "x.pstk", &err), PSTK_ENOTSUP);
    CHECK(strstr(err.message,
                 "a newer penstock wrote it: its version is 3; this penstock reads version 2"));
    pstk__put32(b + 8, 1);
    seal_header(b);
    CHECK_EQ(pstk__shard_header_check(&back, b, "x.pstk", &err), PSTK_ENOTSUP);
    CHECK_STR(
        err.message,
        "x.pstk is of version 1; this library reads version 2 (pack again, to another directory)");
    pstk__put32(b + 8, 2);
    pstk__put32(b + 12, 0x10);
    seal_header(b);
    CHECK_EQ(pstk__shard_header_check(&back, b, "x.pstk", &err), PSTK_ENOTSUP);
    CHECK(strstr(err.message, "0x10"));
    pstk__put32(b + 8, 0);
    seal_header(b);
    CHECK_EQ(pstk__shard_header_check(&back, b, "x.pstk", &err), PSTK_EBADMSG);
}

TEST(hostile_header_values_with_a_right_checksum_are_refused)
{
    static const struct {
        uint32_t at;
        uint64_t value;
    } edits[] = {
        {24, 0},          {24, 1ull << 32}, {24, 1ull << 63},       {24, 1001 * 509}, {32, 4095},
        {32, UINT64_MAX}, {32, 1ull << 45}, {40, 69632 + 4096},     {40, 0},          {48, 69632},
        {48, 1ull << 63}, {56, 3},          {72, (1ull << 61) - 1}, {80, UINT64_MAX}, {68, 1},
        {88, 1},          {4084, 1},        {32, 68096 - 8},
    };
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        uint8_t b[4096];
        struct pstk__shard_header h = sample_header(), back;
        pstk__shard_header_encode(&h, b);
        if (edits[i].at == 68)
            pstk__put32(b + 68, 1);
        else
            pstk__put64(b + edits[i].at, edits[i].value);
        seal_header(b);
        if (pstk__shard_header_check(&back, b, "x.pstk", NULL) != PSTK_EBADMSG)
            printf("# edit %zu\n", i);
        CHECK_EQ(pstk__shard_header_check(&back, b, "x.pstk", NULL), PSTK_EBADMSG);
    }
}

TEST(a_shard_over_16_tib_cannot_be_derived)
{
    struct pstk__shard_header h = {.n_records = 1, .data_end = 1ull << 44};
    CHECK_EQ(pstk__shard_header_derive(&h, NULL), PSTK_EFBIG);
    h.data_end -= 4096;
    CHECK_EQ(pstk__shard_header_derive(&h, NULL), 0);
    CHECK_EQ(h.file_size, 1ull << 44);
    h.n_records = 1ull << 32;
    CHECK_EQ(pstk__shard_header_derive(&h, NULL), PSTK_EFBIG);
}

TEST(the_number_of_pages_is_records_by_509_rounded_up)
{
    CHECK_EQ(pstk__shard_n_pages(1), 1);
    CHECK_EQ(pstk__shard_n_pages(509), 1);
    CHECK_EQ(pstk__shard_n_pages(510), 2);
    CHECK_EQ(pstk__shard_n_pages(0xffffffff), 8438050);
}

/* Page `page` of 1000 records of 64 bytes. */
static struct pstk__page_location make_page(uint8_t *b, uint32_t page)
{
    struct pstk__shard_header h = sample_header();
    uint64_t offsets[510];
    uint32_t n = page == 0 ? 509 : 491;
    for (uint32_t i = 0; i <= n; i++)
        offsets[i] = 4096 + 64ull * (509 * page + i);
    pstk__page_encode(b, page, h.tag, n, offsets);
    return (struct pstk__page_location){.shard = "x.pstk",
                                        .tag = h.tag,
                                        .page = page,
                                        .n_records = h.n_records,
                                        .data_end = h.data_end,
                                        .index_offset = h.index_offset,
                                        .head_size = HEAD};
}

TEST(a_page_gives_the_extent_of_each_of_its_records)
{
    uint8_t b[4096];
    for (uint32_t p = 0; p < 2; p++) {
        struct pstk__page_location location = make_page(b, p);
        CHECK_EQ(pstk__page_check(&location, b, NULL), 0);
        for (uint64_t r = 509 * p; r < (p ? 1000 : 509); r++) {
            uint64_t offset, size;
            pstk__page_extent(b, r, &offset, &size);
            CHECK_EQ(offset, 4096 + 64 * r);
            CHECK_EQ(size, 64);
        }
    }
}

TEST(every_flipped_bit_of_a_page_is_found_and_its_place_named)
{
    uint8_t b[4096];
    struct pstk__page_location location = make_page(b, 1);
    struct pstk_error err = {0};
    for (uint32_t bit = 0; bit < 8 * 4096; bit++) {
        b[bit / 8] ^= (uint8_t)(1 << bit % 8);
        CHECK_EQ(pstk__page_check(&location, b, &err), PSTK_EBADMSG);
        b[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    CHECK_STR(err.shard, "x.pstk");
    CHECK_EQ(err.offset, 69632 + 4096);
    CHECK_EQ(err.length, 4096);
}

TEST(hostile_offsets_with_a_right_checksum_are_refused)
{
    static const struct {
        uint32_t i;
        uint64_t value;
    } edits[] = {
        {0, 4095},
        {0, 4097},
        {0, 0},
        {5, 4096 + 200}, /* overlaps */
        {5, UINT64_MAX},
        {5, 1ull << 63},
        {509, 1ull << 50},
        {509, 4096 + 509 * 64 + 100000},
        {5, 4096 + 288}, /* less than a head after it */
        {5, 4096 + 328}, /* not aligned */
    };
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        uint8_t b[4096];
        struct pstk__page_location location = make_page(b, 0);
        pstk__put64(b + 16 + 8 * edits[i].i, edits[i].value);
        seal_page(b);
        if (pstk__page_check(&location, b, NULL) != PSTK_EBADMSG)
            printf("# edit %zu\n", i);
        CHECK_EQ(pstk__page_check(&location, b, NULL), PSTK_EBADMSG);
    }
}

TEST(a_page_of_another_place_or_shard_is_refused)
{
    uint8_t b[4096];
    struct pstk__page_location location = make_page(b, 0);
    location.page = 1;
    CHECK_EQ(pstk__page_check(&location, b, NULL), PSTK_EBADMSG);
    location.page = 0;
    location.tag ^= 1;
    CHECK_EQ(pstk__page_check(&location, b, NULL), PSTK_EBADMSG);
    location.tag ^= 1;
    location.n_records = 509;
    CHECK_EQ(pstk__page_check(&location, b, NULL), PSTK_EBADMSG); /* does not end at data_end */
    location.n_records = 508;
    CHECK_EQ(pstk__page_check(&location, b, NULL), PSTK_EBADMSG);
    location = make_page(b, 2);
    CHECK_EQ(pstk__page_check(&location, b, NULL), PSTK_EBADMSG);
}

TEST(offsets_after_the_last_record_must_be_zero)
{
    uint8_t b[4096];
    struct pstk__page_location location = make_page(b, 1);
    b[4095] = 1;
    seal_page(b);
    CHECK_EQ(pstk__page_check(&location, b, NULL), PSTK_EBADMSG);
}

TEST(the_tag_is_the_checksum_of_part_n_parts_and_sequence)
{
    CHECK_EQ(pstk__shard_tag("3/10", 12, 0xab), pstk__crc32c(0, "3/10/12/000000ab", 16));
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_header_comes_back_as_it_was_written),
        CASE(every_flipped_bit_of_a_header_is_found),
        CASE(an_intact_header_of_another_version_or_with_flags_is_refused_by_them),
        CASE(hostile_header_values_with_a_right_checksum_are_refused),
        CASE(a_shard_over_16_tib_cannot_be_derived),
        CASE(the_number_of_pages_is_records_by_509_rounded_up),
        CASE(a_page_gives_the_extent_of_each_of_its_records),
        CASE(every_flipped_bit_of_a_page_is_found_and_its_place_named),
        CASE(hostile_offsets_with_a_right_checksum_are_refused),
        CASE(a_page_of_another_place_or_shard_is_refused),
        CASE(offsets_after_the_last_record_must_be_zero),
        CASE(the_tag_is_the_checksum_of_part_n_parts_and_sequence),
    };
    return RUN_CASES(cases);
}
