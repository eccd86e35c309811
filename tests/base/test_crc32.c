/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crc32.h"
#include "base/random.h"
#include "support/test.h"

static struct pstk__crc32 crc32;

/* One bit at a time, from the polynomial. */
static uint32_t bitwise(uint32_t crc, const uint8_t *p, size_t size)
{
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return ~crc;
}

/* The check value of the catalogues. */
TEST(known_answers)
{
    CHECK_EQ(pstk__crc32_continue(&crc32, 0, "123456789", 9), 0xCBF43926u);
    CHECK_EQ(pstk__crc32_continue(&crc32, 0, "", 0), 0);
}

TEST(any_pieces_of_any_bytes_give_the_bitwise_result)
{
    struct pstk__random_key key = {.seed = 1};
    struct pstk__random random;
    uint8_t data[300];
    pstk__random_init(&random, &key);
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)pstk__random_u32(&random);
    for (size_t begin = 0; begin < 9; begin++)
        for (size_t middle = begin; middle <= sizeof data; middle++) {
            uint32_t crc = pstk__crc32_continue(&crc32, 0, data + begin, middle - begin);
            CHECK_EQ(crc, bitwise(0, data + begin, middle - begin));
            crc = pstk__crc32_continue(&crc32, crc, data + middle, sizeof data - middle);
            CHECK_EQ(crc, bitwise(0, data + begin, sizeof data - begin));
        }
}

int main(void)
{
    const struct test_case cases[] = {CASE(known_answers),
                                      CASE(any_pieces_of_any_bytes_give_the_bitwise_result)};
    pstk__crc32_init(&crc32);
    return RUN_CASES(cases);
}
