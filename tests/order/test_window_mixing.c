/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mixing of windows, and the positions of samples over epochs: chi-square tests. Seeds are
 * fixed; each bound is passed by an ideal shuffle except with a probability below 3e-7 (z = 5), and
 * all tests of this file together (some 2500) except with 1e-3.
 */
#include "order/windowed.h"
#include "support/test.h"

#include <math.h>

enum { Z = 5, BINS_MAX = 3072 };

static uint32_t counts[BINS_MAX];

/* Are n_bins counts those of equally likely bins? By Wilson and Hilferty: the cube root of
 * chi-square / df is normal with mean 1 - 2 / (9 df) and variance 2 / (9 df). */
static int is_even(uint32_t n_bins)
{
    const double df = n_bins - 1;
    double sum = 0, chi = 0;
    for (uint32_t i = 0; i < n_bins; i++)
        sum += counts[i];
    const double expected = sum / n_bins;
    for (uint32_t i = 0; i < n_bins; i++)
        chi += (counts[i] - expected) * (counts[i] - expected) / expected;
    const double z = (cbrt(chi / df) - (1 - 2 / (9 * df))) / sqrt(2 / (9 * df));
    if (!(z < Z))
        printf("# chi-square %.1f of %u bins: z = %.1f\n", chi, n_bins, z);
    return z < Z;
}

/* A network as the windows of an epoch have it: keys of the epoch, a twist of each window. */
static struct pstk__feistel network_of(uint64_t n)
{
    struct pstk__feistel network;
    struct pstk__random draws = {.key = {(uint32_t)n, 77}};
    for (int i = 0; i < PSTK__FEISTEL_ROUNDS; i++)
        network.keys[i] = pstk__random_u64(&draws);
    pstk__feistel_size(&network, n);
    return network;
}

static uint64_t twist_of(uint64_t n, uint64_t window)
{
    return pstk__mix64(pstk__mix64(n * 1000) + window);
}

TEST(every_sample_of_a_window_goes_everywhere)
{
    for (uint64_t n = 2; n <= 300; n++) {
        const struct pstk__feistel network = network_of(n);
        const uint64_t from[] = {0, 1, n / 3, n / 2, n - 2, n - 1};
        for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
            memset(counts, 0, sizeof counts);
            for (uint64_t window = 0; window < 50 * n; window++)
                counts[pstk__feistel_walk(&network, twist_of(n, window), n, from[i])]++;
            CHECK(is_even((uint32_t)n));
        }
    }
}

TEST(every_pair_of_a_small_window_goes_to_every_pair)
{
    for (uint64_t n = 3; n <= 55; n++) {
        const struct pstk__feistel network = network_of(n);
        const uint64_t pairs[][2] = {{0, 1}, {0, n - 1}, {n / 2, n / 2 + 1}};
        for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
            memset(counts, 0, sizeof counts);
            for (uint64_t window = 0; window < 30 * n * (n - 1); window++) {
                const uint64_t twist = twist_of(n, window),
                               a = pstk__feistel_walk(&network, twist, n, pairs[i][0]),
                               b = pstk__feistel_walk(&network, twist, n, pairs[i][1]);
                counts[a * (n - 1) + (b < a ? b : b - 1)]++;
            }
            CHECK(is_even((uint32_t)(n * (n - 1))));
        }
    }
}

TEST(neighbours_in_a_window_come_to_lie_at_every_distance)
{
    for (uint64_t n = 3; n <= 300; n++) {
        const struct pstk__feistel network = network_of(n);
        memset(counts, 0, sizeof counts);
        for (uint64_t window = 0; window < 40 * n; window++) {
            const uint64_t twist = twist_of(n, window), k = window % (n - 1);
            counts[(pstk__feistel_walk(&network, twist, n, k + 1) + n -
                    pstk__feistel_walk(&network, twist, n, k)) %
                       n -
                   1]++;
        }
        CHECK(is_even((uint32_t)n - 1));
    }
}

/* One window after another takes a sample to places that have nothing to do with each other. */
TEST(places_in_consecutive_windows_are_independent)
{
    static const uint64_t ns[] = {8, 16, 31, 48};
    for (size_t i = 0; i < sizeof ns / sizeof *ns; i++) {
        const uint64_t n = ns[i];
        const struct pstk__feistel network = network_of(n);
        memset(counts, 0, sizeof counts);
        for (uint64_t window = 0; window < 50 * n * n; window++)
            counts[pstk__feistel_walk(&network, twist_of(n, window), n, 0) * n +
                   pstk__feistel_walk(&network, twist_of(n, window + 1), n, 0)]++;
        CHECK(is_even((uint32_t)(n * n)));
    }
}

static struct pstk__windowed windowed;

static void init(uint64_t n, uint32_t ways, uint32_t block, uint32_t window, uint64_t epoch)
{
    const struct pstk__interleave interleave = {
        .n = n, .ways = ways, .block = block, .window = window};
    pstk__windowed_init(&windowed, &interleave, 1234, epoch);
}

/* Return the place of a whole window's first sample in it; blocks of one sample, windows of 16. */
static uint64_t mixed_first(uint32_t way, uint64_t window)
{
    struct pstk__interleave_location location;
    uint64_t first, n;
    pstk__windowed_span(&windowed, way, window, &first, &n);
    const struct pstk__interleave_blocks blocks = pstk__windowed_blocks(&windowed, way, window);
    pstk__windowed_locate(&windowed, first * windowed.interleave.ways + way, &location);
    return location.line - blocks.first;
}

TEST(windows_are_mixed_independently_of_the_next_and_of_other_ways)
{
    enum { WINDOWS = 12800 };
    init(2 * 16 * (WINDOWS + 2), 2, 1, 16, 5);
    memset(counts, 0, sizeof counts);
    for (uint64_t window = 1; window <= WINDOWS; window++)
        counts[mixed_first(0, window) * 16 + mixed_first(0, window + 1)]++;
    CHECK(is_even(256));
    memset(counts, 0, sizeof counts);
    for (uint64_t window = 1; window <= WINDOWS; window++)
        counts[mixed_first(0, window) * 16 + mixed_first(1, window)]++;
    CHECK(is_even(256));
}

/* Position 11 of 12 ways begins with a window of 5 samples: it is where rows that are not
 * rotated show. */
TEST(over_epochs_every_position_has_every_sample)
{
    enum { N = 12 * 64 };
    static const uint64_t positions[] = {0, 1, 11, N / 2, N - 12, N - 1};
    for (size_t i = 0; i < sizeof positions / sizeof *positions; i++) {
        memset(counts, 0, sizeof counts);
        for (uint64_t epoch = 0; epoch < 40 * N; epoch++) {
            init(N, 12, 16, 4, epoch);
            counts[pstk__windowed_at(&windowed, positions[i])]++;
        }
        CHECK(is_even(N));
    }
}

TEST(over_epochs_every_sample_has_every_position)
{
    enum { N = 12 * 32 };
    static const uint64_t ids[] = {0, 8, N - 1};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        memset(counts, 0, sizeof counts);
        for (uint64_t epoch = 0; epoch < 40 * N; epoch++) {
            init(N, 12, 16, 2, epoch);
            uint64_t k = 0;
            while (pstk__windowed_at(&windowed, k) != ids[i])
                k++;
            counts[k]++;
        }
        CHECK(is_even(N));
    }
}

/* The defaults: rows of the first and the last samples of the ways with the shortest windows. */
TEST(over_epochs_short_windows_have_every_row)
{
    enum { N = 48 * 1024 };
    static const uint64_t positions[] = {46, 47, N - 48, N - 1};
    for (size_t i = 0; i < sizeof positions / sizeof *positions; i++) {
        memset(counts, 0, sizeof counts);
        for (uint64_t epoch = 0; epoch < 6400; epoch++) {
            init(N, 48, 64, 4, epoch);
            counts[pstk__windowed_at(&windowed, positions[i]) % 64]++;
        }
        CHECK(is_even(64));
    }
}

int main(void)
{
    static const struct test_case cases[] = {
        CASE(every_sample_of_a_window_goes_everywhere),
        CASE(every_pair_of_a_small_window_goes_to_every_pair),
        CASE(neighbours_in_a_window_come_to_lie_at_every_distance),
        CASE(places_in_consecutive_windows_are_independent),
        CASE(windows_are_mixed_independently_of_the_next_and_of_other_ways),
        CASE(over_epochs_every_position_has_every_sample),
        CASE(over_epochs_every_sample_has_every_position),
        CASE(over_epochs_short_windows_have_every_row),
    };
    return RUN_CASES(cases);
}
