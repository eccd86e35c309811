/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cast.h"
#include "base/cpu.h"
#include "base/kernels.h"
#include "mix/beta.h"
#include "mix/mix.h"
#include "pixels/lerp.h"
#include "support/test.h"

#include <penstock/machine.h>

#include <math.h>

/* ---- the beta distribution ------------------------------------------------------------------- */

/* The regularised incomplete beta function I_x(a, a), x <= 1/2, by its continued fraction: Press et
 * al., Numerical Recipes, 6.4. */
static double beta_cdf(double x, double a)
{
    if (x <= 0)
        return 0;
    const double front = exp(lgamma(2 * a) - 2 * lgamma(a) + a * log(x) + a * log1p(-x)) / a;
    double c = 1, d = 1 / (1 - 2 * a * x / (a + 1)), f = d;
    for (int m = 1; m < 100; m++) {
        const double even = m * (a - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        const double odd = -(a + m) * (2 * a + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / (1 + even * d);
        c = 1 + even / c;
        f *= c * d;
        d = 1 / (1 + odd * d);
        c = 1 + odd / c;
        f *= c * d;
    }
    return front * f;
}

static int rising(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#define N_BETA 40000

/* Numbers above 1/2 are mirrored: near 1 doubles are too coarse for small alphas. The distance of
 * Kolmogorov and Smirnov times sqrt(n) is above 2.3 once in 20000 trials. */
static double beta_distance(double alpha, int *n_upper)
{
    static double numbers[N_BETA];
    double most = 0;
    *n_upper = 0;
    for (uint32_t i = 0; i < N_BETA; i++) {
        struct pstk__random random;
        pstk__random_init(&random, &(struct pstk__random_key){.seed = 3, .sample_id = i});
        const double x = pstk__beta(&random, alpha);
        *n_upper += x > 0.5;
        numbers[i] = x > 0.5 ? 1 - x : x;
        if (!(x >= 0 && x <= 1))
            return INFINITY;
    }
    qsort(numbers, N_BETA, sizeof *numbers, rising);
    for (uint32_t i = 0; i < N_BETA; i++) {
        const double wanted = 2 * beta_cdf(numbers[i], alpha);
        const double below = wanted - (double)i / N_BETA, above = (double)(i + 1) / N_BETA - wanted;
        if (numbers[i] < 1e-15) /* 1 - x of an upper one was rounded */
            continue;
        most = fmax(most, fmax(below, above));
    }
    return most * sqrt(N_BETA);
}

TEST(lambdas_have_the_beta_distribution_of_every_alpha)
{
    static const double alphas[] = {0.02, 0.1, 0.2, 0.4, 0.5, 0.8, 1, 1.5, 2, 10, 1000};
    for (size_t i = 0; i < sizeof alphas / sizeof *alphas; i++) {
        int n_upper;
        const double distance = beta_distance(alphas[i], &n_upper);
        CHECK(distance < 2.3);
        CHECK(abs(n_upper - N_BETA / 2) < 4.5 * sqrt(N_BETA) / 2);
    }
    CHECK(fabs(beta_cdf(0.25, 1) - 0.25) < 1e-12 && fabs(beta_cdf(0.25, 2) - 0.15625) < 1e-12);
}

TEST(extreme_alphas_give_numbers_from_0_to_1)
{
    static const double alphas[] = {1e-300, 1e-10, 0.001, 1e6};
    for (size_t k = 0; k < sizeof alphas / sizeof *alphas; k++)
        for (uint32_t i = 0; i < 1000; i++) {
            struct pstk__random random;
            pstk__random_init(&random, &(struct pstk__random_key){.seed = 3, .sample_id = i});
            const double x = pstk__beta(&random, alphas[k]);
            CHECK(x >= 0 && x <= 1);
            CHECK(alphas[k] > 1e-10 || x == 0 || x == 1);
            CHECK(alphas[k] < 1e6 || fabs(x - 0.5) < 0.01);
        }
}

/* ---- draws ----------------------------------------------------------------------------------- */

#define HEIGHT 20u
#define WIDTH 31u

static struct pstk_mix mix_of(double mixup_alpha, double cutmix_alpha)
{
    struct pstk_mix mix;
    pstk_mix_init(&mix, sizeof mix);
    mix.n_classes = 10;
    mix.mixup_alpha = mixup_alpha;
    mix.cutmix_alpha = cutmix_alpha;
    return mix;
}

static struct pstk_mix_key key_of(uint32_t n_rows, uint64_t position)
{
    return (struct pstk_mix_key){.size = sizeof(struct pstk_mix_key),
                                 .n_rows = n_rows,
                                 .height = HEIGHT,
                                 .width = WIDTH,
                                 .seed = 7,
                                 .position = position};
}

TEST(rows_of_a_batch_share_a_draw_and_elements_have_their_own)
{
    struct pstk_mix mix = mix_of(0.8, 1);
    struct pstk_mixed_row rows[9], again[9];
    const struct pstk_mix_key key = key_of(9, 1234);
    CHECK_EQ(pstk_mix_draw(&mix, &key, rows, NULL), 0);
    CHECK_EQ(pstk_mix_draw(&mix, &key, again, NULL), 0);
    CHECK(memcmp(rows, again, sizeof rows) == 0);
    for (uint32_t i = 0; i < 9; i++) {
        CHECK_EQ(rows[i].partner, (i + 8) % 9);
        CHECK(rows[i].lam == rows[0].lam && rows[i].kind == rows[0].kind);
    }
    mix.mode = PSTK_MIX_ELEM;
    mix.pairing = PSTK_MIX_FLIP;
    CHECK_EQ(pstk_mix_draw(&mix, &key, rows, NULL), 0);
    for (uint32_t i = 0; i < 9; i++) {
        CHECK_EQ(rows[i].partner, 8 - i);
        CHECK(rows[i].lam == (double)(float)rows[i].lam);
        CHECK(i == 0 || rows[i].lam != rows[i - 1].lam);
    }
    for (uint32_t n = 1; n <= 9; n++) {
        const struct pstk_mix_key pairs = key_of(n, 1234);
        mix.mode = PSTK_MIX_PAIR;
        CHECK_EQ(pstk_mix_draw(&mix, &pairs, again, NULL), 0);
        for (uint32_t i = 0; i < n; i++) {
            CHECK(again[i].lam == rows[i < n - 1 - i ? i : n - 1 - i].lam);
            CHECK(again[i].partner == n - 1 - i && again[again[i].partner].partner == i);
        }
    }
    mix.pairing = PSTK_MIX_ROLL;
    CHECK_EQ(pstk_mix_draw(&mix, &key, again, NULL), PSTK_EINVAL);
    mix.mode = PSTK_MIX_ELEM;
    struct pstk_mix_key other = key;
    other.epoch = 1;
    pstk__mix_draw(&mix, &other, again);
    CHECK(again[0].lam != rows[0].lam);
    other = key;
    other.rank = 1;
    pstk__mix_draw(&mix, &other, again);
    CHECK(again[0].lam != rows[0].lam);
    other = key;
    other.seed = 8;
    pstk__mix_draw(&mix, &other, again);
    CHECK(again[0].lam != rows[0].lam);
}

TEST(kinds_come_as_often_as_their_probabilities_say)
{
    struct pstk_mix mix = mix_of(0.8, 1);
    int n[3] = {0};
    mix.probability = 0.6;
    mix.switch_probability = 0.25;
    for (uint32_t i = 0; i < 20000; i++) {
        struct pstk_mixed_row row;
        const struct pstk_mix_key key = key_of(1, i);
        pstk__mix_draw(&mix, &key, &row);
        n[row.kind]++;
        CHECK(row.kind != PSTK_MIX_NONE || (row.lam == 1 && row.height == 0));
    }
    CHECK(abs(n[PSTK_MIX_NONE] - 8000) < 5 * 70 && abs(n[PSTK_MIX_CUTMIX] - 3000) < 5 * 51);
    mix.switch_probability = 0;
    mix.probability = 1;
    for (uint32_t i = 0; i < 100; i++) {
        struct pstk_mixed_row row;
        const struct pstk_mix_key key = key_of(1, i);
        pstk__mix_draw(&mix, &key, &row);
        CHECK_EQ(row.kind, PSTK_MIX_MIXUP);
    }
}

/* torchvision's and timm's boxes, as their sources have them, around (x, y). */
static void naive_box(double lam, int is_timm, int x, int y, int box[4])
{
    if (is_timm) {
        const double ratio = sqrt(1 - lam);
        const int h = (int)(HEIGHT * ratio), w = (int)(WIDTH * ratio);
        box[0] = y - h / 2, box[1] = x - w / 2, box[2] = y + (h + 1) / 2, box[3] = x + (w + 1) / 2;
    } else {
        const double r = 0.5 * sqrt(1 - lam);
        const int w = (int)(r * WIDTH), h = (int)(r * HEIGHT);
        box[0] = y - h, box[1] = x - w, box[2] = y + h, box[3] = x + w;
    }
    box[0] = box[0] < 0 ? 0 : box[0];
    box[1] = box[1] < 0 ? 0 : box[1];
    box[2] = box[2] > (int)HEIGHT ? (int)HEIGHT : box[2];
    box[3] = box[3] > (int)WIDTH ? (int)WIDTH : box[3];
}

/* Two-sample chi-square statistic; 19 degrees of freedom: 50 is passed once in 8000 trials. */
static double distance(const double *a, const double *b)
{
    double sum = 0;
    for (int i = 0; i < 20; i++)
        if (a[i] + b[i] > 0)
            sum += (a[i] - b[i]) * (a[i] - b[i]) / (a[i] + b[i]);
    return sum;
}

TEST(boxes_are_distributed_as_those_of_torchvision_and_of_timm)
{
    for (uint32_t pairing = PSTK_MIX_ROLL; pairing <= PSTK_MIX_FLIP; pairing++) {
        double ours[4][20] = {{0}}, naive[4][20] = {{0}};
        struct pstk_mix mix = mix_of(0, 1);
        struct pstk__random random;
        pstk__random_init(&random, &(struct pstk__random_key){.seed = 99});
        mix.pairing = pairing;
        for (uint32_t i = 0; i < 20000; i++) {
            struct pstk_mixed_row row;
            const struct pstk_mix_key key = key_of(1, i);
            int box[4];
            pstk__mix_draw(&mix, &key, &row);
            CHECK(row.top + row.height <= HEIGHT && row.left + row.width <= WIDTH);
            CHECK(row.lam == 1.0 - (double)(row.height * row.width) / (double)(HEIGHT * WIDTH));
            ours[0][row.top * 20 / HEIGHT]++;
            ours[1][row.left * 20 / WIDTH]++;
            ours[2][row.height * 19 / HEIGHT]++;
            ours[3][row.width * 19 / WIDTH]++;
            const double lam = pstk__random_unit(&random); /* alpha is 1 */
            naive_box(lam, pairing == PSTK_MIX_FLIP, (int)pstk__random_below(&random, WIDTH),
                      (int)pstk__random_below(&random, HEIGHT), box);
            naive[0][box[0] * 20 / (int)HEIGHT]++;
            naive[1][box[1] * 20 / (int)WIDTH]++;
            naive[2][(box[2] - box[0]) * 19 / (int)HEIGHT]++;
            naive[3][(box[3] - box[1]) * 19 / (int)WIDTH]++;
        }
        for (int k = 0; k < 4; k++)
            CHECK(distance(ours[k], naive[k]) < 50);
    }
}

/* ---- images ---------------------------------------------------------------------------------- */

static float single_of(const uint8_t *from, uint32_t dtype)
{
    float value;
    uint16_t half;
    if (dtype == PSTK_F32) {
        memcpy(&value, from, sizeof value);
        return value;
    }
    memcpy(&half, from, sizeof half);
    const uint32_t bits = (uint32_t)half << 16;
    memcpy(&value, &bits, sizeof value);
    return dtype == PSTK_F16 ? pstk__f32_from_f16(half) : value;
}

static float rounded(float value, uint32_t dtype)
{
    uint8_t element[4];
    if (dtype == PSTK_F32)
        return value;
    const uint16_t half =
        dtype == PSTK_F16 ? pstk__f16_from_f32(value) : pstk__bf16_from_f32(value);
    memcpy(element, &half, sizeof half);
    return single_of(element, dtype);
}

static void put(uint8_t *to, float value, uint32_t dtype)
{
    const uint16_t half =
        dtype == PSTK_F16 ? pstk__f16_from_f32(value) : pstk__bf16_from_f32(value);
    if (dtype == PSTK_F32)
        memcpy(to, &value, sizeof value);
    else
        memcpy(to, &half, sizeof half);
}

/* Compute element (row, c, y, x) from a copy of all images. */
static float naive_element(const struct pstk__mix_images *images, const uint8_t *before,
                           const struct pstk_mixed_row *rows, uint32_t i, uint64_t e)
{
    const uint64_t row_size = (uint64_t)images->height * images->width * images->channels;
    const uint32_t size = pstk_dtype_size(images->dtype);
    const float own = single_of(before + (i * row_size + e) * size, images->dtype);
    const float other = single_of(before + (rows[i].partner * row_size + e) * size, images->dtype);
    const uint64_t pixel = images->layout == PSTK_NCHW ? e : e / images->channels;
    const uint64_t y = pixel / images->width % images->height, x = pixel % images->width;
    const int is_in = y >= rows[i].top && y < rows[i].top + rows[i].height && x >= rows[i].left &&
                      x < rows[i].left + rows[i].width;
    if (rows[i].kind == PSTK_MIX_CUTMIX)
        return is_in ? other : own;
    if (rows[i].kind == PSTK_MIX_NONE)
        return own;
    const float keep = (float)rows[i].lam, take = (float)(1.0 - rows[i].lam);
    const float kept = rounded(own * keep, images->dtype);
    const float taken = rounded(other * take, images->dtype);
    return rounded(kept + taken, images->dtype);
}

#define MAX_ELEMENTS 70000u

/* Return whether images of this shape are mixed as the naive loop mixes them, and nothing after
 * them is written. */
static int images_are_right(struct pstk__mix_images images, struct pstk_mix mix, uint64_t position)
{
    static uint8_t now[MAX_ELEMENTS * 4 + 8], before[sizeof now];
    struct pstk_mixed_row rows[8];
    struct pstk__random random;
    const uint32_t size = pstk_dtype_size(images.dtype);
    const uint64_t row_size = (uint64_t)images.height * images.width * images.channels;
    const uint64_t n = images.n * row_size;
    pstk__random_init(&random, &(struct pstk__random_key){.seed = position, .sample_id = 4});
    memset(now, 0xa5, sizeof now);
    for (uint64_t e = 0; e < n; e++)
        put(now + e * size, (float)pstk__random_uniform(&random, -3, 3), images.dtype);
    memcpy(before, now, sizeof now);
    struct pstk_mix_key key = key_of(images.n, position);
    key.height = images.height;
    key.width = images.width;
    mix.pairing = images.pairing;
    pstk__mix_draw(&mix, &key, rows);
    images.data = now;
    pstk__mix_images(&images, rows);
    for (uint64_t e = 0; e < n; e++) {
        uint8_t wanted[4];
        put(wanted, naive_element(&images, before, rows, (uint32_t)(e / row_size), e % row_size),
            images.dtype);
        if (memcmp(now + e * size, wanted, size) != 0)
            return 0;
    }
    return memcmp(now + n * size, before + n * size, sizeof now - n * size) == 0;
}

TEST(images_are_mixed_as_a_naive_loop_mixes_them)
{
    static const uint32_t dtypes[] = {PSTK_F32, PSTK_F16, PSTK_BF16}, channels[] = {1, 3, 4};
    for (uint32_t k = 0; k < 1500; k++) {
        struct pstk_mix mix = mix_of(k % 3 == 0 ? 0 : 0.9, k % 3 == 1 ? 0 : 1);
        struct pstk__mix_images images = {.n = 1 + k % 7,
                                          .dtype = dtypes[k / 2 % 3],
                                          .layout = k / 6 % 2 ? PSTK_NHWC : PSTK_NCHW,
                                          .height = 1 + k * 7 % 23,
                                          .width = 1 + k * 11 % 29,
                                          .channels = channels[k / 4 % 3],
                                          .pairing = k / 3 % 2,
                                          .kernels = PSTK_KERNELS_C + k / 5 % 4};
        if (k % 50 == 0) { /* several strips, whose ends lie within lines */
            images.n = 2;
            images.height = 83;
            images.width = k % 100 ? 101 : 97;
        }
        if (!pstk__kernels_run(images.kernels))
            images.kernels = PSTK_KERNELS_C;
        mix.mode = images.pairing == PSTK_MIX_FLIP ? k / 7 % 3 : k / 7 % 2;
        mix.probability = k % 11 ? 1 : 0.5;
        CHECK(images_are_right(images, mix, k));
    }
}

TEST(the_isa_asked_for_is_the_one_given)
{
    for (uint32_t isa = PSTK_KERNELS_AUTO; isa <= PSTK_KERNELS_NEON + 1; isa++) {
        const struct pstk__lerp_kernels *k = pstk__lerp_kernels(isa);
        const uint32_t wanted = isa == PSTK_KERNELS_AUTO ? pstk__cpu_kernels() : isa;
        CHECK((k != NULL) == pstk__kernels_run(wanted));
        CHECK(!k || k->isa == (wanted == PSTK_KERNELS_AVX512 ? PSTK_KERNELS_AVX2 : wanted));
    }
}

/* ---- targets --------------------------------------------------------------------------------- */

TEST(targets_are_mixtures_of_smoothed_one_hot_vectors)
{
    struct pstk_mix mix = mix_of(0.8, 1);
    struct pstk_mixed_row rows[5];
    const uint32_t labels[5] = {3, 9, 3, 0, 0};
    float targets[5 * 10 + 1];
    mix.mode = PSTK_MIX_ELEM;
    for (int smooth = 0; smooth < 2; smooth++) {
        const struct pstk_mix_key key = key_of(5, 77);
        mix.smoothing = smooth ? 0.1 : 0;
        pstk__mix_draw(&mix, &key, rows);
        targets[50] = 42;
        pstk__mix_targets(targets, &mix, rows, labels, 5);
        CHECK(targets[50] == 42);
        for (uint32_t i = 0; i < 5; i++) {
            float sum = 0;
            for (uint32_t c = 0; c < 10; c++) {
                const double off = mix.smoothing / 10, on = 1 - mix.smoothing + off;
                const float own = (float)(labels[i] == c ? on : off);
                const float other = (float)(labels[rows[i].partner] == c ? on : off);
                const float a = own * (float)rows[i].lam, b = other * (float)(1 - rows[i].lam);
                CHECK(targets[10 * i + c] == a + b);
                sum += a + b;
            }
            CHECK(fabsf(sum - 1) < 1e-5f);
        }
    }
}

/* ---- settings -------------------------------------------------------------------------------- */

/* 1: refused, and the message begins so. */
static int is_refused(const struct pstk_mix *mix, const char *begins)
{
    const struct pstk_mix_key key = key_of(1, 0);
    struct pstk_mixed_row row;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    const int r = pstk_mix_draw(mix, &key, &row, &err);
    if (r < 0 && strncmp(err.message, begins, strlen(begins)) == 0)
        return 1;
    printf("# %d: %s\n", r, err.message);
    return 0;
}

TEST(wrong_settings_are_refused_by_their_names)
{
    struct pstk_mix mix = mix_of(0.8, 1);
#define REFUSED(member, value, begins)                                                             \
    do {                                                                                           \
        mix = mix_of(0.8, 1);                                                                      \
        mix.member = value;                                                                        \
        CHECK(is_refused(&mix, begins));                                                           \
    } while (0)
    REFUSED(mixup_alpha, -0.1, "mix.mixup_alpha: value is -0.1; must be from 0 to 1e+06");
    REFUSED(cutmix_alpha, NAN, "mix.cutmix_alpha: value is nan; must be");
    REFUSED(cutmix_alpha, INFINITY, "mix.cutmix_alpha: value is inf; must be");
    REFUSED(probability, 1.1, "mix.probability: value is 1.1; must be from 0 to 1");
    REFUSED(switch_probability, -1, "mix.switch_probability: value is -1; must be");
    REFUSED(smoothing, 1, "mix.smoothing: value is 1; must be from 0, and below 1");
    REFUSED(mode, 3, "mix.mode: value is 3; must be from 0 to 2");
    REFUSED(mode, PSTK_MIX_PAIR, "mix.pairing: value is 0; must be PSTK_MIX_FLIP where mode is");
    REFUSED(pairing, 2, "mix.pairing: value is 2; must be");
    REFUSED(targets, 2, "mix.targets: value is 2; must be");
    REFUSED(reserved, 1, "mix.reserved: value is 1; must be");
    REFUSED(n_classes, 0, "mix.n_classes: value is 0; must be at least 1");
    REFUSED(size, 8, "mix: not initialised");
#undef REFUSED
    mix = mix_of(0.8, 1);
    mix.smoothing = 0.1;
    mix.targets = PSTK_MIX_PAIRS;
    CHECK(is_refused(&mix, "mix.smoothing: value is 0.1; must be 0 unless targets is"));
    struct {
        struct pstk_mix mix;
        uint64_t newer;
    } grown = {.mix = mix_of(0.8, 1), .newer = 1};
    grown.mix.size = sizeof grown;
    CHECK(is_refused(&grown.mix, "mix: a member of a newer penstock is set"));
    struct pstk_mix_key key = key_of(1, 0);
    struct pstk_mixed_row row;
    mix = mix_of(0, 1);
    key.width = 0;
    CHECK_EQ(pstk_mix_draw(&mix, &key, &row, NULL), PSTK_EINVAL);
    key.width = 65536;
    CHECK_EQ(pstk_mix_draw(&mix, &key, &row, NULL), PSTK_EINVAL);
    CHECK_EQ(pstk_mix_draw(NULL, &key, &row, NULL), PSTK_EINVAL);
    key = key_of(1, 0);
    key.reserved = 1;
    CHECK_EQ(pstk_mix_draw(&mix, &key, &row, NULL), PSTK_EINVAL);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(lambdas_have_the_beta_distribution_of_every_alpha),
        CASE(extreme_alphas_give_numbers_from_0_to_1),
        CASE(rows_of_a_batch_share_a_draw_and_elements_have_their_own),
        CASE(kinds_come_as_often_as_their_probabilities_say),
        CASE(boxes_are_distributed_as_those_of_torchvision_and_of_timm),
        CASE(images_are_mixed_as_a_naive_loop_mixes_them),
        CASE(the_isa_asked_for_is_the_one_given),
        CASE(targets_are_mixtures_of_smoothed_one_hot_vectors),
        CASE(wrong_settings_are_refused_by_their_names),
    };
    return RUN_CASES(cases);
}
