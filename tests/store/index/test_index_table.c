/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of numbers in pages: what was put in comes out, in as few bytes as hold it, or not at all.
 */
#include "store/index/table.h"

#include "base/random.h"
#include "support/test.h"

#define MAX_ROWS 3000u

static uint64_t rows[MAX_ROWS * 5];
static struct pstk_error err;

/* A number of at most `bits` bits; any length is as likely as another. */
static uint64_t draw(struct pstk__random *random, uint32_t bits)
{
    const uint32_t n = (uint32_t)pstk__random_below(random, bits + 1);
    return n ? pstk__random_u64(random) >> (64 - n) : 0;
}

/* Are all numbers of a table, through its pages, those of `rows`? */
static int reads_back(const struct pstk__index_table *table, uint32_t shard)
{
    _Alignas(64) uint8_t page[PSTK__INDEX_TABLE_PAGE];
    for (uint64_t p = 0; p < pstk__index_table_n_pages(table); p++) {
        pstk__index_table_encode(table, shard, p, rows, page);
        if (pstk__index_table_check(table, shard, p, page))
            return 0;
        for (uint64_t i = p * table->per_page; i < (p + 1) * table->per_page && i < table->n_rows;
             i++)
            for (uint32_t c = 0; c < table->n_columns; c++)
                if (pstk__index_table_get(table, page, i, c) != rows[i * table->n_columns + c])
                    return 0;
    }
    return 1;
}

TEST(numbers_of_any_width_come_back)
{
    struct pstk__random random;
    pstk__random_init(&random, &(struct pstk__random_key){.seed = 7});
    for (uint32_t round = 0; round < 400; round++) {
        struct pstk__index_table table;
        const uint32_t n_columns = 1 + (uint32_t)pstk__random_below(&random, 5);
        const uint64_t n_rows = pstk__random_below(&random, MAX_ROWS);
        uint32_t bits[5];
        for (uint32_t c = 0; c < n_columns; c++)
            bits[c] = (uint32_t)pstk__random_below(&random, 65);
        uint64_t offset = draw(&random, 40);
        for (uint64_t i = 0; i < n_rows; i++)
            for (uint32_t c = 0; c < n_columns; c++)
                rows[i * n_columns + c] = c || round % 3 == 0
                                              ? draw(&random, bits[c])
                                              : (offset += draw(&random, bits[0] / 3));
        CHECK_EQ(pstk__index_table_fit(&table, rows, n_rows, n_columns, &err), 0);
        CHECK(reads_back(&table, round));
    }
}

TEST(a_column_takes_the_bytes_of_its_largest_number)
{
    struct pstk__index_table table;
    for (uint64_t i = 0; i < 1000; i++) {
        rows[4 * i] = (1ull << 40) + 2048 * i; /* only the difference within a page counts */
        rows[4 * i + 1] = 0;
        rows[4 * i + 2] = i == 500 ? 256 : 255;
        rows[4 * i + 3] = UINT64_MAX;
    }
    CHECK_EQ(pstk__index_table_fit(&table, rows, 1000, 4, &err), 0);
    CHECK(table.width[0] == 3 && table.width[1] == 0 && table.width[2] == 2 && table.width[3] == 8);
    CHECK_EQ(table.stride, 13);
    CHECK_EQ(table.per_page, (4096 - 32 - 8) / 13);
    CHECK(reads_back(&table, 0));
}

TEST(any_flipped_bit_of_a_page_is_seen)
{
    _Alignas(64) uint8_t page[PSTK__INDEX_TABLE_PAGE];
    struct pstk__index_table table;
    for (uint64_t i = 0; i < 100; i++)
        rows[i] = i * i;
    CHECK_EQ(pstk__index_table_fit(&table, rows, 100, 1, &err), 0);
    pstk__index_table_encode(&table, 3, 0, rows, page);
    for (uint32_t bit = 0; bit < 8 * PSTK__INDEX_TABLE_PAGE; bit++) {
        page[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CHECK(pstk__index_table_check(&table, 3, 0, page) != NULL);
        page[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    CHECK(pstk__index_table_check(&table, 3, 0, page) == NULL);
    CHECK(pstk__index_table_check(&table, 4, 0, page) != NULL); /* right bytes of another place */
    CHECK(pstk__index_table_check(&table, 3, 1, page) != NULL);
}

TEST(a_row_larger_than_a_page_is_refused)
{
    struct pstk__index_table table = {.n_columns = PSTK__INDEX_TABLE_MAX_COLUMNS, .n_rows = 1};
    memset(table.width, 8, sizeof table.width);
    CHECK_EQ(pstk__index_table_derive(&table), 0); /* the most columns fit */
    table.width[5] = 9;
    CHECK_EQ(pstk__index_table_derive(&table), PSTK_EBADMSG);
    table.n_columns = 0;
    CHECK_EQ(pstk__index_table_derive(&table), PSTK_EBADMSG);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(numbers_of_any_width_come_back),
        CASE(a_column_takes_the_bytes_of_its_largest_number),
        CASE(any_flipped_bit_of_a_page_is_seen),
        CASE(a_row_larger_than_a_page_is_refused),
    };
    return RUN_CASES(cases);
}
