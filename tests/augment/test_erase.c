/* SPDX-License-Identifier: Apache-2.0 */
#include "augment/sampled_ops.h"
#include "base/cast.h"
#include "base/normal.h"
#include "support/test.h"

#include <math.h>
#include <stdlib.h>

#define HEIGHT 40u
#define WIDTH 50u
#define N_DRAWS 100000
#define N_BINS 20

/* ---- boxes ----------------------------------------------------------------------------------- */

/* Draw for a row of HEIGHT x WIDTH. 0: nothing was drawn. */
static uint32_t draw(const struct pstk_op *op, uint64_t sample_id, struct pstk_op *drawn)
{
    struct pstk__sampled_ops sampled = {.ops = drawn,
                                        .view = {.width = WIDTH, .height = HEIGHT, .channels = 3}};
    pstk__ops_draw(&sampled, op, 0, 1,
                   (struct pstk__random_key){.seed = 5, .sample_id = sample_id});
    return sampled.n;
}

static uint64_t naive_state = 88172645463325252ull;

static double naive_uniform(double lo, double hi)
{
    naive_state ^= naive_state << 13;
    naive_state ^= naive_state >> 7;
    naive_state ^= naive_state << 17;
    return lo + (hi - lo) * ((double)(naive_state >> 11) * 0x1p-53);
}

/* torchvision's RandomErasing.get_params as its source has it, on another generator and libm. 0: it
 * gives up. */
static uint32_t naive_box(const struct pstk_random_erasing_params *p, double box[4])
{
    const double area = (double)HEIGHT * WIDTH;
    for (int i = 0; i < 10; i++) {
        const double erased = area * naive_uniform(p->min_scale, p->max_scale);
        const double aspect = exp(naive_uniform(log(p->min_ratio), log(p->max_ratio)));
        const long h = lrint(sqrt(erased * aspect)), w = lrint(sqrt(erased / aspect));
        if (!(h < (long)HEIGHT && w < (long)WIDTH))
            continue;
        box[0] = floor(naive_uniform(0, (double)(HEIGHT - h + 1)));
        box[1] = floor(naive_uniform(0, (double)(WIDTH - w + 1)));
        box[2] = (double)h;
        box[3] = (double)w;
        return 1;
    }
    return 0;
}

struct counts {
    double top[N_BINS], left[N_BINS], height[N_BINS], width[N_BINS], none[2];
};

static void count(struct counts *c, uint32_t n, const double box[4])
{
    c->none[n]++;
    if (n == 0)
        return;
    c->top[(int)(box[0] * N_BINS / (HEIGHT - box[2] + 1))]++;
    c->left[(int)(box[1] * N_BINS / (WIDTH - box[3] + 1))]++;
    c->height[(int)(box[2] * N_BINS / HEIGHT)]++;
    c->width[(int)(box[3] * N_BINS / WIDTH)]++;
}

/* Two-sample chi-square statistic; 19 degrees of freedom: 50 is passed once in 8000 trials. */
static double distance(const double *a, const double *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        if (a[i] + b[i] > 0)
            sum += (a[i] - b[i]) * (a[i] - b[i]) / (a[i] + b[i]);
    return sum;
}

static void compare(const struct pstk_op *op)
{
    static struct counts ours, naive;
    memset(&ours, 0, sizeof ours);
    memset(&naive, 0, sizeof naive);
    for (uint64_t i = 0; i < N_DRAWS; i++) {
        struct pstk_op drawn;
        double box[4];
        const uint32_t n = draw(op, i, &drawn);
        CHECK(n == 0 || (drawn.kind == PSTK_OP_ERASE &&
                         drawn.params.erase.top + drawn.params.erase.height <= HEIGHT &&
                         drawn.params.erase.left + drawn.params.erase.width <= WIDTH));
        count(&ours, n, drawn.params.values);
        count(&naive, naive_box(&op->params.random_erasing, box), box);
    }
    CHECK(distance(ours.top, naive.top, N_BINS) < 50);
    CHECK(distance(ours.left, naive.left, N_BINS) < 50);
    CHECK(distance(ours.height, naive.height, N_BINS) < 50);
    CHECK(distance(ours.width, naive.width, N_BINS) < 50);
    CHECK(distance(ours.none, naive.none, 2) < 16);
}

TEST(boxes_are_distributed_as_those_of_torchvision)
{
    struct pstk_op op = pstk_random_erasing(1, 0);
    compare(&op);
    op.params.random_erasing.max_scale = 1; /* large ones, of which many tries fail */
    op.params.random_erasing.min_scale = 0.7;
    op.params.random_erasing.max_ratio = 10;
    compare(&op);
}

TEST(boxes_come_as_often_as_their_probability_says_and_never_have_a_whole_side)
{
    struct pstk_op drawn, op = pstk_random_erasing(0.3, 0);
    int n = 0;
    for (uint64_t i = 0; i < 20000; i++)
        n += (int)draw(&op, i, &drawn);
    CHECK(fabs(n - 6000.0) < 5 * sqrt(6000 * 0.7));
    op.params.random_erasing.probability = op.params.random_erasing.min_scale =
        op.params.random_erasing.max_scale = 1; /* the whole area: no box is small enough */
    for (uint64_t i = 0; i < 1000; i++)
        CHECK_EQ(draw(&op, i, &drawn), 0);
}

TEST(normal_values_have_a_key_of_their_own_for_each_sample)
{
    struct pstk_op drawn[2], op = pstk_random_erasing(1, 0);
    op.params.random_erasing.is_normal = 1;
    CHECK(draw(&op, 1, &drawn[0]) == 1 && draw(&op, 2, &drawn[1]) == 1);
    CHECK(drawn[0].params.erase.is_normal == 1 && drawn[1].params.erase.is_normal == 1);
    CHECK(drawn[0].params.erase.key[0] != drawn[1].params.erase.key[0] &&
          drawn[0].params.erase.key[1] != drawn[1].params.erase.key[1]);
}

/* ---- elements -------------------------------------------------------------------------------- */

#define N_BYTES (HEIGHT * WIDTH * 4 * 4)

static uint32_t naive_bits(float v, uint32_t dtype)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return dtype == PSTK_U8     ? (uint32_t)v
           : dtype == PSTK_F16  ? pstk__f16_from_f32(v)
           : dtype == PSTK_BF16 ? pstk__bf16_from_f32(v)
                                : bits;
}

/* The element of the k-th place of the box, counted by channels, rows and columns. */
static float naive_value(const struct pstk_op *op, uint32_t c, uint64_t k)
{
    const uint32_t key[2] = {(uint32_t)op->params.erase.key[0], (uint32_t)op->params.erase.key[1]};
    const uint32_t counter[4] = {(uint32_t)(k / 4), 0, 0, 0};
    uint32_t words[4];
    pstk__philox(counter, key, words);
    return op->params.erase.is_normal == 1 ? (float)pstk__normal(words[k % 4])
                                           : (float)op->params.erase.value[c];
}

static void naive_erase(const struct pstk_op *op, const struct pstk__finish *f, uint8_t *row)
{
    const uint32_t size = pstk_dtype_size(f->dtype);
    uint64_t k = 0;
    for (uint32_t c = 0; c < f->channels; c++)
        for (uint32_t y = 0; y < op->params.erase.height; y++)
            for (uint32_t x = 0; x < op->params.erase.width; x++, k++) {
                const uint32_t at = (y + (uint32_t)op->params.erase.top) * WIDTH + x +
                                    (uint32_t)op->params.erase.left;
                const uint32_t bits = naive_bits(naive_value(op, c, k), f->dtype);
                memcpy(row + (f->layout == PSTK_NCHW ? c * HEIGHT * WIDTH + at
                                                     : at * f->channels + c) *
                                 size,
                       &bits, size);
            }
}

static void check_erased(struct pstk_op op, uint32_t channels, uint32_t dtype, uint32_t layout)
{
    static uint8_t ours[N_BYTES], naive[N_BYTES];
    const struct pstk__finish form = {.channels = channels,
                                      .dtype = dtype,
                                      .layout = layout,
                                      .width = WIDTH,
                                      .plane = HEIGHT * WIDTH};
    for (uint32_t i = 0; i < N_BYTES; i++)
        ours[i] = naive[i] = (uint8_t)(i * 7);
    for (uint32_t c = 0; c < 4 && op.params.erase.is_normal == 0; c++)
        op.params.erase.value[c] = dtype == PSTK_U8 ? 3 + 80 * c : 0.3 - c;
    pstk__op_entry(PSTK_OP_ERASE)->erase(&op, &form, ours);
    naive_erase(&op, &form, naive);
    CHECK(memcmp(ours, naive, N_BYTES) == 0);
}

TEST(elements_of_a_box_get_the_value_in_every_dtype_and_layout)
{
    static const uint32_t dtypes[] = {PSTK_F16, PSTK_BF16, PSTK_F32, PSTK_U8}, n[] = {1, 3, 4};
    static const uint32_t boxes[][4] = {{0, 0, HEIGHT, WIDTH}, {3, 5, 1, 7}, {39, 49, 1, 1},
                                        {2, 3, 20, 31},        {4, 4, 0, 3}, {7, 0, 5, 50}};
    for (int b = 0; b < 6; b++)
        for (uint32_t i = 0; i < 24; i++) {
            const uint32_t *v = boxes[b];
            struct pstk_op op = pstk_erase(v[0], v[1], v[2], v[3], 0);
            check_erased(op, n[i % 3], dtypes[i / 6], i / 3 % 2);
            op.params.erase.is_normal = 1;
            op.params.erase.key[0] = 0xfedcba98u;
            op.params.erase.key[1] = 77;
            if (dtypes[i / 6] != PSTK_U8)
                check_erased(op, n[i % 3], dtypes[i / 6], i / 3 % 2);
        }
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(boxes_are_distributed_as_those_of_torchvision),
        CASE(boxes_come_as_often_as_their_probability_says_and_never_have_a_whole_side),
        CASE(normal_values_have_a_key_of_their_own_for_each_sample),
        CASE(elements_of_a_box_get_the_value_in_every_dtype_and_layout),
    };
    return RUN_CASES(cases);
}
