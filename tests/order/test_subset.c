/* SPDX-License-Identifier: Apache-2.0 */
/* Subsets of indices, beside sets that a plain loop makes. */
#include "order/pick.h"
#include "support/test.h"

static struct pstk__subset one, two;

/* Add what the subset has to `seen`, of n bytes; 0: an id is out of range. */
static int count(const struct pstk__subset *subset, uint8_t *seen, uint64_t n)
{
    for (uint64_t i = 0; i < subset->n; i++) {
        const uint64_t id = pstk__subset_at(subset, i);
        if (id >= n)
            return 0;
        seen[id]++;
    }
    return 1;
}

static int all_once(const uint8_t *seen, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (seen[i] != 1)
            return 0;
    return 1;
}

/* Cut at billionths; a part without samples is left out. */
static int fraction(struct pstk__subset *subset, uint64_t n, uint64_t seed, uint64_t from,
                    uint64_t to)
{
    const uint64_t first = pstk__subset_border(n, from, PSTK_SUBSET_WHOLE);
    const uint64_t last = pstk__subset_border(n, to, PSTK_SUBSET_WHOLE);
    pstk__subset_init(subset, n);
    if (first < last)
        pstk__subset_drawn(subset, seed, first, last, 0);
    return first < last;
}

TEST(fractions_whose_bounds_meet_are_disjoint_and_whole_for_every_n)
{
    static const uint64_t cuts[] = {1, 100000000, 333333333, 500000000, 800000000, 999999999};
    static uint8_t seen[2100];
    for (uint64_t n = 1; n <= 2100; n++)
        for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
            memset(seen, 0, n);
            if (fraction(&one, n, n % 3, 0, cuts[c]))
                CHECK(count(&one, seen, n));
            if (fraction(&two, n, n % 3, cuts[c], PSTK_SUBSET_WHOLE))
                CHECK(count(&two, seen, n));
            CHECK(all_once(seen, n));
        }
}

TEST(borders_are_exact_where_doubles_are_not)
{
    CHECK_EQ(pstk__subset_border(10, 700000000, PSTK_SUBSET_WHOLE), 7); /* 0.7 is below 7 / 10 */
    CHECK_EQ(pstk__subset_border(10, 800000000, PSTK_SUBSET_WHOLE), 8);
    CHECK_EQ(pstk__subset_border(3, 333333333, PSTK_SUBSET_WHOLE), 0);
    CHECK_EQ(pstk__subset_border((uint64_t)1 << 62, 500000000, PSTK_SUBSET_WHOLE),
             (uint64_t)1 << 61);
    CHECK_EQ(pstk__subset_border(UINT64_MAX, PSTK_SUBSET_WHOLE, PSTK_SUBSET_WHOLE), UINT64_MAX);
}

TEST(all_but_a_stretch_is_the_rest_of_the_same_permutation)
{
    static uint8_t seen[1500];
    for (uint64_t n = 2; n <= 1500; n += 1 + n / 9)
        for (uint64_t first = 0; first < n; first += 1 + n / 7) {
            const uint64_t last = first + 1 + (n - first - 1) / 2;
            if (last - first == n)
                continue;
            memset(seen, 0, n);
            pstk__subset_init(&one, n);
            pstk__subset_drawn(&one, 5, first, last, 0);
            pstk__subset_init(&two, n);
            pstk__subset_drawn(&two, 5, first, last, 1);
            CHECK_EQ(one.n + two.n, n);
            CHECK(count(&one, seen, n) && count(&two, seen, n) && all_once(seen, n));
        }
}

/* Range after fraction after range, and a list between them, beside arrays that are cut. */
TEST(steps_apply_to_what_the_steps_before_left)
{
    static uint64_t naive[3000];
    static uint32_t list[3000];
    for (uint64_t n = 10; n <= 3000; n = n * 3 / 2 + 1) {
        pstk__subset_init(&one, n);
        pstk__subset_range(&one, 2, n - 1);
        uint64_t m = n - 3;
        pstk__subset_init(&two, m);
        pstk__subset_drawn(&two, 8, 0, m, 0); /* the whole permutation, as an oracle */
        for (uint64_t i = 0; i < m; i++)
            naive[i] = 2 + pstk__subset_at(&two, i);
        const uint64_t first = m / 4, last = m;
        pstk__subset_drawn(&one, 8, first, last, 0);
        pstk__subset_range(&one, 1, last - first);
        CHECK_EQ(one.n, last - first - 1);
        for (uint64_t i = 0; i < one.n; i++)
            CHECK_EQ(pstk__subset_at(&one, i), naive[first + 1 + i]);
        uint64_t n_even = 0;
        for (uint64_t i = 0; i < one.n; i++)
            if (pstk__subset_at(&one, i) % 2 == 0)
                list[n_even++] = (uint32_t)pstk__subset_at(&one, i);
        if (n_even < 2)
            continue;
        pstk__subset_list(&one, list, NULL, n_even);
        pstk__subset_range(&one, 1, n_even);
        CHECK_EQ(one.n, n_even - 1);
        for (uint64_t i = 0; i < one.n; i++)
            CHECK_EQ(pstk__subset_at(&one, i), list[i + 1]);
    }
}

TEST(digests_differ_where_subsets_do)
{
    static const uint64_t large[] = {5, 6, 1}, other[] = {6, 5, 1};
    static const uint32_t small[] = {5, 6, 1};
    uint64_t digests[12][2];
    uint32_t n = 0;
    for (uint64_t i = 0; i < 8; i++, n++) {
        pstk__subset_init(&one, i == 7 ? 100 : 99);
        if (i == 1 || i == 2)
            pstk__subset_range(&one, i - 1, 50);
        if (i >= 3 && i < 7)
            pstk__subset_drawn(&one, i & 1, 1, 50, i > 4);
        memcpy(digests[n], one.digest, sizeof one.digest);
    }
    pstk__subset_init(&one, 99);
    pstk__subset_list(&one, NULL, large, 3);
    memcpy(digests[n++], one.digest, sizeof one.digest);
    pstk__subset_init(&one, 99);
    pstk__subset_list(&one, NULL, other, 3);
    memcpy(digests[n++], one.digest, sizeof one.digest);
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = 0; b < a; b++)
            CHECK(digests[a][0] != digests[b][0] && digests[a][1] != digests[b][1]);
    pstk__subset_init(&one, 99);
    pstk__subset_list(&one, small, NULL, 3); /* the width of the list is no difference */
    CHECK_EQ(one.digest[0], digests[8][0]);
    CHECK_EQ(one.digest[1], digests[8][1]);
}

/* The members may never change: a run that is continued has the same subset. */
TEST(a_fraction_has_the_members_that_it_always_had)
{
    CHECK(fraction(&one, 20, 1, 0, 400000000));
    CHECK(fraction(&two, 1000000, 1, 0, 400000000));
    static const uint64_t few[] = {16, 3, 19, 2, 8, 13, 11, 15};
    static const uint64_t many[] = {83874, 228895, 100523, 894645, 545484, 927796, 382198, 856502};
    for (uint64_t i = 0; i < 8; i++) {
        CHECK_EQ(pstk__subset_at(&one, i), few[i]);
        CHECK_EQ(pstk__subset_at(&two, i), many[i]);
    }
}

TEST(a_picker_gives_each_member_once_in_every_order)
{
    static uint8_t seen[5000];
    static struct pstk__picker picker;
    for (uint32_t kind = 0; kind <= PSTK_ORDER_WINDOWED; kind++) {
        CHECK(fraction(&one, 5000, 9, 300000000, 700000000));
        struct pstk__pick_plan plan = {
            .shape = {.kind = kind, .interleave.n = one.n}, .subset = &one, .seed = 3};
        pstk__interleave_settle(&plan.shape.interleave);
        pstk__picker_init(&picker, &plan);
        for (uint64_t epoch = 0; epoch < 2; epoch++) {
            struct pstk__pick pick;
            memset(seen, 0, sizeof seen);
            for (uint64_t k = 0; k < one.n; k++) {
                pstk__picker_at(&picker, epoch, k, &pick);
                CHECK(pick.id < sizeof seen && pick.occurrence == 0 && pick.epoch == epoch);
                seen[pick.id]++;
            }
            for (uint64_t i = 0; i < one.n; i++)
                CHECK_EQ(seen[pstk__subset_at(&one, i)], 1);
        }
    }
}

int main(void)
{
    static const struct test_case cases[] = {
        CASE(fractions_whose_bounds_meet_are_disjoint_and_whole_for_every_n),
        CASE(borders_are_exact_where_doubles_are_not),
        CASE(all_but_a_stretch_is_the_rest_of_the_same_permutation),
        CASE(steps_apply_to_what_the_steps_before_left),
        CASE(digests_differ_where_subsets_do),
        CASE(a_fraction_has_the_members_that_it_always_had),
        CASE(a_picker_gives_each_member_once_in_every_order),
    };
    return RUN_CASES(cases);
}
