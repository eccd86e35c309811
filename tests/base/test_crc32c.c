/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crc32c.h"
#include "base/random.h"
#include "support/test.h"

#include <penstock/penstock.h>

enum { SIZE = 20000 };
static uint8_t data[SIZE + 64], copy[SIZE + 128];

static void fill(void)
{
    struct pstk__random_key key = {.seed = 1};
    struct pstk__random r;
    pstk__random_init(&r, &key);
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)pstk__random_u32(&r);
}

/* One bit at a time, from the polynomial. */
static uint32_t bitwise(uint32_t crc, const uint8_t *p, size_t size)
{
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
    }
    return ~crc;
}

/* RFC 3720 B.4, and the check value of the catalogues. */
TEST(known_answers)
{
    uint8_t bytes[32];
    uint32_t (*const all[])(uint32_t, const void *, size_t) = {pstk__crc32c, pstk__crc32c_c};
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(all[i](0, "123456789", 9), 0xE3069283u);
        CHECK_EQ(all[i](0, memset(bytes, 0, 32), 32), 0x8A9136AAu);
        CHECK_EQ(all[i](0, memset(bytes, 0xFF, 32), 32), 0x62A8AB43u);
        for (int k = 0; k < 32; k++)
            bytes[k] = (uint8_t)k;
        CHECK_EQ(all[i](0, bytes, 32), 0x46DD794Eu);
        for (int k = 0; k < 32; k++)
            bytes[k] = (uint8_t)(31 - k);
        CHECK_EQ(all[i](0, bytes, 32), 0x113FDB5Cu);
    }
    CHECK_EQ(pstk_crc32c(0, "123456789", 9), 0xE3069283u);
}

TEST(nothing_changes_nothing)
{
    CHECK_EQ(pstk__crc32c(0, "", 0), 0);
    CHECK_EQ(pstk__crc32c(0, NULL, 0), 0);
    CHECK_EQ(pstk__crc32c(0x12345678, NULL, 0), 0x12345678);
    CHECK_EQ(pstk__crc32c_copy(0x12345678, NULL, NULL, 0), 0x12345678);
}

TEST(the_table_equals_the_polynomial)
{
    fill();
    for (size_t size = 0; size < 300; size++)
        CHECK_EQ(pstk__crc32c_c(7, data, size), bitwise(7, data, size));
}

TEST(every_size_to_7000_equals_the_table)
{
    fill();
    for (size_t size = 0; size < 7000; size++) {
        const uint8_t *p = data + size % 17;
        CHECK_EQ(pstk__crc32c((uint32_t)size, p, size), pstk__crc32c_c((uint32_t)size, p, size));
    }
}

TEST(every_cut_of_a_text_gives_the_same)
{
    fill();
    uint32_t whole = pstk__crc32c_c(0, data, 700);
    for (size_t cut = 0; cut <= 700; cut++)
        CHECK_EQ(pstk__crc32c(pstk__crc32c(0, data, cut), data + cut, 700 - cut), whole);
}

TEST(copying_gives_the_same_sum_and_the_bytes_and_touches_no_others)
{
    fill();
    for (size_t size = 0; size < SIZE; size += size < 700 ? 1 : 997) {
        size_t from = size % 9, to = 32 + size % 7;
        memset(copy, 0xEE, sizeof copy);
        uint32_t crc = pstk__crc32c_copy(3, copy + to, data + from, size);
        CHECK_EQ(crc, pstk__crc32c_c(3, data + from, size));
        CHECK(memcmp(copy + to, data + from, size) == 0);
        for (size_t i = 0; i < 32; i++)
            CHECK(copy[to - 1 - i] == 0xEE && copy[to + size + i] == 0xEE);
    }
}

/* Exact allocations: under AddressSanitizer a read past either end is seen. */
TEST(no_byte_outside_is_read)
{
    for (size_t size = 1; size < 400; size++) {
        uint8_t *exact = malloc(size);
        CHECK(exact);
        memset(exact, (int)size, size);
        uint32_t crc = pstk__crc32c(0, exact, size), expected = bitwise(0, exact, size);
        free(exact);
        CHECK_EQ(crc, expected);
    }
}

TEST(each_flipped_bit_changes_the_sum)
{
    fill();
    uint32_t whole = pstk__crc32c(0, data, 3333);
    for (size_t bit = 0; bit < 3333 * 8; bit += 5) {
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CHECK(pstk__crc32c(0, data, 3333) != whole);
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(known_answers),
        CASE(nothing_changes_nothing),
        CASE(the_table_equals_the_polynomial),
        CASE(every_size_to_7000_equals_the_table),
        CASE(every_cut_of_a_text_gives_the_same),
        CASE(copying_gives_the_same_sum_and_the_bytes_and_touches_no_others),
        CASE(no_byte_outside_is_read),
        CASE(each_flipped_bit_changes_the_sum),
    };
    return RUN_CASES(cases);
}
