/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/buffer.h"
#include "support/test.h"

#define SIZE (64 * 4096)

static _Alignas(4096) uint8_t memory[SIZE];

TEST(pieces_never_overlap_and_never_leave_the_buffer)
{
    struct pstk__buffer r;
    struct pstk__piece *held[16] = {0};
    uint64_t sizes[16] = {0}, x = 1;
    CHECK_EQ(pstk__buffer_open(&r, memory, SIZE, 16), 0);
    int n_got = 0;
    for (int round = 0; round < 20000; round++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        int i = (int)(x >> 60);
        if (held[i]) {
            for (uint64_t k = 0; k < sizes[i]; k += 97)
                CHECK_EQ(held[i]->data[k], (uint8_t)(i + 1));
            pstk__buffer_put(held[i]);
            held[i] = NULL;
            continue;
        }
        sizes[i] = 1 + (x >> 20) % (SIZE / 2);
        held[i] = pstk__buffer_get(&r, sizes[i]);
        if (!held[i])
            continue;
        n_got++;
        CHECK(held[i]->data >= memory && held[i]->data + sizes[i] <= memory + SIZE);
        CHECK_EQ((uintptr_t)held[i]->data % 4096, 0);
        memset(held[i]->data, i + 1, sizes[i]);
    }
    CHECK(n_got > 1000);
    pstk__buffer_close(&r);
}

TEST(half_the_buffer_always_fits_once_all_is_given_back)
{
    struct pstk__buffer r;
    CHECK_EQ(pstk__buffer_open(&r, memory, SIZE, 4), 0);
    for (uint64_t first = 1; first < SIZE / 2; first += 4096) {
        struct pstk__piece *a = pstk__buffer_get(&r, first);
        CHECK(a);
        pstk__buffer_put(a);
        struct pstk__piece *b = pstk__buffer_get(&r, SIZE / 2);
        CHECK(b);
        pstk__buffer_put(b);
    }
    pstk__buffer_close(&r);
}

TEST(a_held_piece_holds_up_the_buffer_but_nothing_else)
{
    struct pstk__buffer r;
    CHECK_EQ(pstk__buffer_open(&r, memory, SIZE, 8), 0);
    struct pstk__piece *a = pstk__buffer_get(&r, SIZE / 2), *b = pstk__buffer_get(&r, SIZE / 2);
    CHECK(a && b);
    pstk__buffer_put(b);
    CHECK(!pstk__buffer_get(&r, 1));
    pstk__buffer_put(a);
    CHECK(pstk__buffer_get(&r, SIZE / 2));
    pstk__buffer_close(&r);
}

TEST(pieces_are_counted)
{
    struct pstk__buffer r;
    CHECK_EQ(pstk__buffer_open(&r, memory, SIZE, 2), 0);
    struct pstk__piece *a = pstk__buffer_get(&r, 1);
    CHECK(a && pstk__buffer_get(&r, 1));
    CHECK(!pstk__buffer_get(&r, 1));
    pstk__buffer_put(a);
    CHECK(pstk__buffer_get(&r, 1));
    pstk__buffer_close(&r);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(pieces_never_overlap_and_never_leave_the_buffer),
        CASE(half_the_buffer_always_fits_once_all_is_given_back),
        CASE(a_held_piece_holds_up_the_buffer_but_nothing_else),
        CASE(pieces_are_counted),
    };
    return RUN_CASES(cases);
}
