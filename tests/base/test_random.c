/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"
#include "support/test.h"

#include <float.h>
#include <math.h>

/* The known answers published with Random123 (kat_vectors, philox 4x32 10). */
TEST(philox_gives_the_published_answers)
{
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } kat[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX},
         {UINT32_MAX, UINT32_MAX},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (int i = 0; i < 3; i++) {
        uint32_t out[4];
        pstk__philox(kat[i].counter, kat[i].key, out);
        CHECK(memcmp(out, kat[i].out, sizeof out) == 0);
    }
}

static const struct pstk__random_key some_key = {.seed = 1, .epoch = 2, .sample_id = 3};

/* These numbers may never change: they are every crop and flip ever drawn. */
TEST(a_stream_is_held_by_golden_numbers)
{
    struct pstk__random_key key = {0x0123456789abcdefu, 7, 123456789012345u, 1, 2, 3, 4};
    struct pstk__random r;
    pstk__random_init(&r, &key);
    static const uint32_t golden[] = {0x81a737bbu, 0x4dd6c5b2u, 0xd0fb5618u,
                                      0xb8128901u, 0x5e6e023cu, 0x868397f5u};
    for (int i = 0; i < 6; i++) {
        uint32_t x = pstk__random_u32(&r);
        if (x != golden[i])
            printf("# draw %d: 0x%08xu\n", i, x);
        CHECK(x == golden[i]);
    }
}

TEST(every_part_of_the_key_changes_the_stream)
{
    struct pstk__random_key keys[8];
    for (int i = 0; i < 8; i++)
        keys[i] = some_key;
    keys[1].seed++;
    keys[2].epoch++;
    keys[3].sample_id++;
    keys[4].data_set++;
    keys[5].occurrence++;
    keys[6].group++;
    keys[7].op++;
    uint64_t draws[8];
    for (int i = 0; i < 8; i++) {
        struct pstk__random r;
        pstk__random_init(&r, &keys[i]);
        draws[i] = pstk__random_u64(&r);
        for (int j = 0; j < i; j++)
            CHECK(draws[i] != draws[j]);
    }
}

TEST(the_high_halves_of_the_key_count)
{
    struct pstk__random_key a = some_key, b = some_key, c = some_key, d = some_key;
    a.seed += (uint64_t)1 << 32;
    b.epoch += (uint64_t)1 << 32;
    c.sample_id += (uint64_t)1 << 32;
    d.occurrence += (uint64_t)1 << 32;
    const struct pstk__random_key *keys[] = {&some_key, &a, &b, &c, &d};
    uint64_t draws[5];
    for (int i = 0; i < 5; i++) {
        struct pstk__random r;
        pstk__random_init(&r, keys[i]);
        draws[i] = pstk__random_u64(&r);
        for (int j = 0; j < i; j++)
            CHECK(draws[i] != draws[j]);
    }
}

TEST(unit_lies_in_0_1_with_the_mean_and_variance_of_a_uniform)
{
    enum { N = 200000 };
    double sum = 0, squares = 0, least = 1, most = 0;
    for (uint64_t id = 0; id < N; id++) { /* the first draw of many samples: as it is used */
        struct pstk__random_key key = some_key;
        key.sample_id = id;
        struct pstk__random r;
        pstk__random_init(&r, &key);
        double u = pstk__random_unit(&r);
        CHECK(u >= 0 && u < 1);
        sum += u;
        squares += u * u;
        least = u < least ? u : least;
        most = u > most ? u : most;
    }
    /* 4 standard deviations of the means: 0.2887 / sqrt N and 0.2981 / sqrt N */
    CHECK(fabs(sum / N - 0.5) < 4 * 0.2887 / sqrt(N));
    CHECK(fabs(squares / N - 1.0 / 3) < 4 * 0.2981 / sqrt(N));
    CHECK(least < 1e-4 && most > 1 - 1e-4);
}

TEST(uniform_lies_between_its_bounds)
{
    struct pstk__random r;
    pstk__random_init(&r, &some_key);
    for (int i = 0; i < 1000; i++) {
        double x = pstk__random_uniform(&r, -3, 5);
        CHECK(x >= -3 && x <= 5);
    }
    CHECK(pstk__random_uniform(&r, 2, 2) == 2);
}

/* Chi-square of `bins` equal bins against its mean + 4 standard deviations (bins - 1 degrees). */
static int is_even(const uint32_t *counts, int bins, double expected)
{
    double chi = 0;
    for (int i = 0; i < bins; i++)
        chi += (counts[i] - expected) * (counts[i] - expected) / expected;
    return chi < bins - 1 + 4 * sqrt(2.0 * (bins - 1));
}

TEST(below_is_even_also_where_a_modulo_would_not_be)
{
    static const uint64_t ns[] = {1, 2, 3, 6, 7, 10, 97};
    for (size_t i = 0; i < sizeof ns / sizeof ns[0]; i++) {
        uint32_t counts[97] = {0};
        struct pstk__random_key key = some_key;
        key.sample_id = i;
        struct pstk__random r;
        pstk__random_init(&r, &key);
        for (int k = 0; k < 50000; k++) {
            uint64_t x = pstk__random_below(&r, ns[i]);
            CHECK(x < ns[i]);
            counts[x]++;
        }
        CHECK(ns[i] == 1 || is_even(counts, (int)ns[i], 50000.0 / (double)ns[i]));
    }
    /* n = 3 * 2^62: without rejection multiples of 3 would come twice as often */
    uint32_t thirds[3] = {0};
    struct pstk__random r;
    pstk__random_init(&r, &some_key);
    for (int k = 0; k < 60000; k++)
        thirds[pstk__random_below(&r, (uint64_t)3 << 62) % 3]++;
    CHECK(is_even(thirds, 3, 20000));
}

TEST(mix64_is_the_finaliser_of_splitmix64)
{
    /* the first outputs of SplitMix64 seeded with 0 and with 1234567 */
    CHECK(pstk__mix64(0x9E3779B97F4A7C15u) == 0xE220A8397B1DCDAFu);
    CHECK(pstk__mix64(1234567u + 0x9E3779B97F4A7C15u) == 6457827717110365317u);
}

/* |a - b| in units of the last place of b. */
static double ulps(double a, long double b)
{
    double rounded = (double)b;
    double ulp = nextafter(fabs(rounded), INFINITY) - fabs(rounded);
    return (double)(fabsl((long double)a - b) / ulp);
}

TEST(exp_is_within_1_ulp)
{
    double worst = 0;
    struct pstk__random r;
    pstk__random_init(&r, &some_key);
    for (int i = 0; i < 300000; i++) {
        double range = i % 3 == 0 ? 700 : i % 3 == 1 ? 50 : 1;
        double x = pstk__random_uniform(&r, -range, range);
        double off = ulps(pstk__exp(x), expl((long double)x));
        worst = off > worst ? off : worst;
    }
    printf("# worst: %.3f ulp\n", worst);
    CHECK(worst < 1);
}

TEST(log_is_within_1_ulp)
{
    double worst = 0;
    struct pstk__random r;
    pstk__random_init(&r, &some_key);
    for (int i = 0; i < 300000; i++) {
        double x =
            i % 2 ? pstk__random_uniform(&r, 0.5, 2)
                  : pstk__random_uniform(&r, 1, 10) * pow(10, pstk__random_uniform(&r, -307, 300));
        double off = ulps(pstk__log(x), logl((long double)x));
        worst = off > worst ? off : worst;
    }
    printf("# worst: %.3f ulp\n", worst);
    CHECK(worst < 1);
}

TEST(exp_and_log_are_right_at_their_ends)
{
    CHECK(pstk__exp(0) == 1 && pstk__log(1) == 0);
    CHECK(pstk__exp(INFINITY) == INFINITY && pstk__exp(-INFINITY) == 0);
    CHECK(pstk__exp(710) == INFINITY && pstk__exp(-746) == 0);
    CHECK(isfinite(pstk__exp(709.78)) && pstk__exp(-745) > 0);
    CHECK(pstk__exp(-740) > 0 && pstk__exp(-740) < DBL_MIN);
    CHECK(pstk__log(INFINITY) == INFINITY && pstk__log(0) == -INFINITY);
    CHECK(isnan(pstk__log(-1)) && isnan(pstk__log(NAN)) && isnan(pstk__exp(NAN)));
    CHECK(ulps(pstk__log(DBL_TRUE_MIN), logl((long double)DBL_TRUE_MIN)) < 1);
    CHECK(ulps(pstk__log(DBL_MAX), logl((long double)DBL_MAX)) < 1);
}

TEST(exp_and_log_are_held_by_golden_bits)
{
    /* aspect ratios of RandomResizedCrop: any other machine has these bits too */
    CHECK(pstk__log(0.75) == -0x1.269621134db92p-2);
    CHECK(pstk__log(4.0 / 3) == 0x1.269621134db92p-2);
    CHECK(pstk__exp(0.1) == 0x1.1aec7b35a00d4p+0);
    CHECK(pstk__exp(-0.28768207245178096) == 0x1.8p-1);
}

TEST(rint_even_is_rint)
{
    static const double xs[] = {0,
                                -0.0,
                                0.5,
                                1.5,
                                2.5,
                                -0.5,
                                -1.5,
                                -2.5,
                                0.49999999999999994,
                                1e15,
                                1e16,
                                -1e300,
                                4503599627370495.5,
                                4503599627370497,
                                255.5,
                                254.5};
    for (size_t i = 0; i < sizeof xs / sizeof xs[0]; i++)
        CHECK(pstk__rint_even(xs[i]) == rint(xs[i]));
    CHECK(pstk__rint_even(INFINITY) == INFINITY && isnan(pstk__rint_even(NAN)));
    struct pstk__random r;
    pstk__random_init(&r, &some_key);
    for (int i = 0; i < 10000; i++) {
        double x = pstk__random_uniform(&r, -1000, 1000);
        CHECK(pstk__rint_even(x) == rint(x));
    }
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(philox_gives_the_published_answers),
        CASE(a_stream_is_held_by_golden_numbers),
        CASE(every_part_of_the_key_changes_the_stream),
        CASE(the_high_halves_of_the_key_count),
        CASE(unit_lies_in_0_1_with_the_mean_and_variance_of_a_uniform),
        CASE(uniform_lies_between_its_bounds),
        CASE(below_is_even_also_where_a_modulo_would_not_be),
        CASE(mix64_is_the_finaliser_of_splitmix64),
        CASE(exp_is_within_1_ulp),
        CASE(log_is_within_1_ulp),
        CASE(exp_and_log_are_right_at_their_ends),
        CASE(exp_and_log_are_held_by_golden_bits),
        CASE(rint_even_is_rint),
    };
    return RUN_CASES(cases);
}
