/* SPDX-License-Identifier: Apache-2.0 */
#include "augment/canvas.h"
#include "augment/sampled_ops.h"
#include "base/error.h"
#include "support/test.h"

#include <math.h>

#define WIDTH 500u
#define HEIGHT 375u
#define N_DRAWS 200000
#define N_BINS 20

static const struct pstk_random_resized_crop_params range = {0.08, 1.0, 3.0 / 4.0, 4.0 / 3.0};

/* Draw the geometry that a list of ops, all of the prefix, gives an image of this size. */
static void draw_geometry(const struct pstk_op *ops, uint32_t n, uint32_t width, uint32_t height,
                          struct pstk__random_key key, struct pstk__geometry *g)
{
    struct pstk_op drawn[8];
    struct pstk__sampled_ops sampled = {.ops = drawn,
                                        .view = {.width = width, .height = height, .channels = 3}};
    CHECK(pstk__ops_prefix(ops, n) == n && pstk__ops_max(ops, n) <= 8);
    CHECK_EQ(pstk__ops_draw(&sampled, ops, 0, n, key), 0);
    pstk__geometry_init(g, width, height);
    pstk__geometry_fold(g, drawn, sampled.n);
    CHECK(g->crop_width == sampled.view.width && g->crop_height == sampled.view.height);
}

/* torchvision's get_params as its source has it, on another generator and libm. */
static uint64_t naive_state = 88172645463325252ull;

static double naive_uniform(double lo, double hi)
{
    naive_state ^= naive_state << 13;
    naive_state ^= naive_state >> 7;
    naive_state ^= naive_state << 17;
    return lo + (hi - lo) * ((double)(naive_state >> 11) * 0x1p-53);
}

static struct pstk__box naive_box(uint32_t width, uint32_t height)
{
    const double area = (double)width * height;
    for (int i = 0; i < 10; i++) {
        const double target = area * naive_uniform(range.min_scale, range.max_scale);
        const double aspect = exp(naive_uniform(log(range.min_ratio), log(range.max_ratio)));
        const long w = lrint(sqrt(target * aspect)), h = lrint(sqrt(target / aspect));
        if (0 < w && w <= (long)width && 0 < h && h <= (long)height)
            return (struct pstk__box){.top = (uint32_t)naive_uniform(0, (double)(height - h + 1)),
                                      .left = (uint32_t)naive_uniform(0, (double)(width - w + 1)),
                                      .width = (uint32_t)w,
                                      .height = (uint32_t)h};
    }
    return (struct pstk__box){.width = 0};
}

struct counts {
    double area[N_BINS], aspect[N_BINS], top[N_BINS], left[N_BINS];
};

static void count(struct counts *c, const struct pstk__box *b)
{
    const double area = (double)b->width * b->height / ((double)WIDTH * HEIGHT);
    const double aspect = log((double)b->width / b->height) / log(4.0 / 3.0);
    const int a = (int)(area * N_BINS), r = (int)((aspect + 1.1) / 2.2 * N_BINS);
    c->area[a < N_BINS ? a : N_BINS - 1]++;
    c->aspect[r < 0 ? 0 : r < N_BINS ? r : N_BINS - 1]++;
    c->top[(uint64_t)b->top * N_BINS / (HEIGHT - b->height + 1)]++;
    c->left[(uint64_t)b->left * N_BINS / (WIDTH - b->width + 1)]++;
}

/* Two-sample chi-square statistic; 19 degrees of freedom: 50 is passed once in 8000 trials. */
static double distance(const double *a, const double *b)
{
    double sum = 0;
    for (int i = 0; i < N_BINS; i++)
        if (a[i] + b[i] > 0)
            sum += (a[i] - b[i]) * (a[i] - b[i]) / (a[i] + b[i]);
    return sum;
}

TEST(random_crops_are_distributed_as_those_of_torchvision)
{
    static struct counts ours, naive;
    memset(&ours, 0, sizeof ours);
    memset(&naive, 0, sizeof naive);
    for (uint64_t i = 0; i < N_DRAWS; i++) {
        struct pstk__random r;
        pstk__random_init(&r, &(struct pstk__random_key){.seed = 7, .sample_id = i});
        const struct pstk__box b = pstk__random_resized_crop_box(&r, WIDTH, HEIGHT, &range);
        CHECK(b.width > 0 && b.left + b.width <= WIDTH && b.top + b.height <= HEIGHT);
        count(&ours, &b);
        const struct pstk__box n = naive_box(WIDTH, HEIGHT);
        CHECK(n.width > 0);
        count(&naive, &n);
    }
    CHECK(distance(ours.area, naive.area) < 50);
    CHECK(distance(ours.aspect, naive.aspect) < 50);
    CHECK(distance(ours.top, naive.top) < 50);
    CHECK(distance(ours.left, naive.left) < 50);
}

TEST(random_crops_reach_every_offset_the_first_and_the_last_included)
{
    int seen[2][8] = {{0}};
    for (uint64_t i = 0; i < 20000; i++) {
        struct pstk__random r;
        pstk__random_init(&r, &(struct pstk__random_key){.seed = 1, .sample_id = i});
        const struct pstk__box b = pstk__random_resized_crop_box(
            &r, 10, 10, &(struct pstk_random_resized_crop_params){0.09, 0.09, 1.0, 1.0});
        CHECK_EQ(b.width, 3);
        CHECK_EQ(b.height, 3);
        CHECK(b.left <= 7 && b.top <= 7);
        seen[0][b.left]++;
        seen[1][b.top]++;
    }
    for (int i = 0; i < 8; i++)
        CHECK(seen[0][i] > 2200 && seen[0][i] < 2800 && seen[1][i] > 2200 && seen[1][i] < 2800);
}

static struct pstk__box box_of(uint32_t width, uint32_t height, double ratio_min, double ratio_max)
{
    struct pstk__random r;
    pstk__random_init(&r, &(struct pstk__random_key){.seed = 1});
    const struct pstk_random_resized_crop_params by = {1.0, 1.0, ratio_min, ratio_max};
    return pstk__random_resized_crop_box(&r, width, height, &by);
}

TEST(the_centred_box_is_used_after_ten_failed_tries)
{
    struct pstk__box b = box_of(1000, 10, 3.0 / 4.0, 4.0 / 3.0); /* too wide: 13.33 -> 13 */
    CHECK_EQ(b.width, 13);
    CHECK_EQ(b.height, 10);
    CHECK_EQ(b.left, 493);
    CHECK_EQ(b.top, 0);
    b = box_of(9, 1000, 3.0 / 4.0, 4.0 / 3.0); /* too tall: 9 / 0.75 = 12 */
    CHECK_EQ(b.width, 9);
    CHECK_EQ(b.height, 12);
    CHECK_EQ(b.top, 494);
    b = box_of(1000, 5, 0.5, 0.5); /* 2.5 rounds to the even 2 */
    CHECK_EQ(b.width, 2);
    CHECK_EQ(b.height, 5);
    b = box_of(1, 1, 3.0, 4.0); /* torchvision: no pixels; here one */
    CHECK_EQ(b.width, 1);
    CHECK_EQ(b.height, 1);
}

TEST(the_shorter_side_is_exact_and_the_longer_one_cut_down)
{
    static const uint32_t wanted[][5] = {
        {500, 375, 256, 341, 256},
        {375, 500, 256, 256, 341},
        {333, 500, 224, 224, 336},
        {256, 256, 256, 256, 256},
        {1, 65535, 65535, 65535, 4294836225u},
        {3, 2, 1, 1, 1},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const uint32_t *w = wanted[i];
        const struct pstk_op op = pstk_resize_shorter(w[2]);
        struct pstk__geometry g;
        draw_geometry(&op, 1, w[0], w[1], (struct pstk__random_key){0}, &g);
        CHECK_EQ(g.out_width, w[3]);
        CHECK_EQ(g.out_height, w[4]);
        CHECK_EQ(g.source.width, w[0]);
        CHECK_EQ(g.source.height, w[1]);
    }
}

/* torchvision makes the shorter side 0 for the two longest images; here it is 1. */
TEST(the_longer_side_gets_no_longer_than_it_may_as_in_torchvision)
{
    static const uint32_t wanted[][6] = {
        {1000, 200, 100, 300, 300, 60}, {200, 1000, 100, 300, 60, 300},
        {333, 500, 224, 300, 200, 300}, {640, 480, 256, 341, 341, 256},
        {640, 480, 256, 340, 340, 255}, {65535, 7, 8, 4096, 4096, 1},
        {5, 4000, 9, 10, 1, 10},        {3, 7, 2, 3, 1, 3},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const uint32_t *w = wanted[i];
        const struct pstk_op op = pstk_resize_shorter_max(w[2], w[3]);
        struct pstk__geometry g;
        draw_geometry(&op, 1, w[0], w[1], (struct pstk__random_key){0}, &g);
        CHECK_EQ(g.out_width, w[4]);
        CHECK_EQ(g.out_height, w[5]);
    }
}

TEST(no_image_is_resized_by_more_than_the_bounds_say)
{
    for (uint64_t i = 0; i < 20000; i++) {
        struct pstk__random r;
        pstk__random_init(&r, &(struct pstk__random_key){.seed = 3, .sample_id = i});
        const uint32_t width = 1 + (uint32_t)pstk__random_below(&r, i % 2 ? 3000 : 40);
        const uint32_t height = 1 + (uint32_t)pstk__random_below(&r, i % 3 ? 3000 : 40);
        const uint32_t side = 1 + (uint32_t)pstk__random_below(&r, 300);
        const uint32_t longest = side + (uint32_t)pstk__random_below(&r, 300);
        const struct pstk_op op = pstk_resize_shorter_max(side, longest > side ? longest : 0);
        struct pstk__resize_bounds b = {
            .max_in_width = width + (uint32_t)pstk__random_below(&r, 100),
            .max_in_height = height + (uint32_t)pstk__random_below(&r, 100)};
        struct pstk__geometry g;
        draw_geometry(&op, 1, width, height, (struct pstk__random_key){0}, &g);
        pstk__ops_bound(&op, 1, &b);
        CHECK((uint64_t)width * b.min_out_width <= (uint64_t)b.max_in_width * g.out_width);
        CHECK((uint64_t)height * b.min_out_height <= (uint64_t)b.max_in_height * g.out_height);
    }
}

TEST(a_centre_crop_begins_where_torchvision_begins)
{
    static const int32_t wanted[][3] = {/* have, want, first */
                                        {7, 4, 2},  {5, 4, 0},  {9, 4, 2},  {256, 224, 16},
                                        {4, 4, 0},  {4, 7, -1}, {1, 4, -1}, {4, 6, -1},
                                        {11, 4, 4}, {3, 10, -3}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const struct pstk_op op = pstk_center_crop(3, (uint32_t)wanted[i][1]);
        struct pstk__geometry g;
        draw_geometry(&op, 1, (uint32_t)wanted[i][0], 3, (struct pstk__random_key){0}, &g);
        CHECK_EQ(g.crop_left, wanted[i][2]);
        CHECK_EQ(g.crop_width, wanted[i][1]);
        CHECK_EQ(g.crop_top, 0);
        CHECK_EQ(g.resized, 0);
    }
}

/* One row of numbered pixels through the operations one by one, -1 where it was padded. */
static uint32_t naive_row(const struct pstk_op *ops, uint32_t n, uint32_t width, int32_t *row)
{
    int32_t from[64];
    for (uint32_t x = 0; x < width; x++)
        row[x] = (int32_t)x;
    for (uint32_t j = 0; j < n; j++) {
        memcpy(from, row, sizeof from);
        if (ops[j].kind == PSTK_OP_RANDOM_FLIP) {
            for (uint32_t x = 0; x < width && ops[j].params.random_flip.probability == 1.0; x++)
                row[x] = from[width - 1 - x];
            continue;
        }
        const int32_t want = (int32_t)ops[j].width, have = (int32_t)width;
        const int32_t left =
            want > have ? -((want - have) / 2) : (int32_t)rint((have - want) / 2.0);
        for (int32_t x = 0; x < want; x++)
            row[x] = x + left >= 0 && x + left < have ? from[x + left] : -1;
        width = ops[j].width;
    }
    return width;
}

TEST(crops_and_flips_in_any_order_equal_them_done_one_by_one)
{
    uint32_t seed = 1;
    for (int i = 0; i < 20000; i++) {
        struct pstk_op ops[5];
        uint32_t crop = 40, n = 0;
        struct pstk__view view = {.channels = 3, .dtype = PSTK_U8};
        for (n = 0; n < 5; n++) {
            seed = seed * 1664525u + 1013904223u;
            if (seed >> 31) {
                ops[n] = pstk_random_flip(seed >> 30 & 1);
            } else {
                crop = 1 + (seed >> 8) % crop;
                ops[n] = pstk_center_crop(1, crop);
            }
        }
        if (pstk__ops_check(ops, n, &view, NULL) < 0)
            continue; /* flips only */
        const uint32_t have = 1 + (seed >> 16) % 40;
        int32_t row[64];
        struct pstk__geometry g;
        draw_geometry(ops, n, have, 1, (struct pstk__random_key){0}, &g);
        CHECK_EQ(naive_row(ops, n, have, row), view.width);
        CHECK_EQ(g.crop_width, view.width);
        for (uint32_t x = 0; x < view.width; x++) {
            const int64_t at = g.crop_left + (g.flip ? view.width - 1 - x : x);
            CHECK_EQ(at >= 0 && at < (int64_t)have ? at : -1, row[x]);
        }
    }
}

TEST(flips_come_as_often_as_their_probability_says)
{
    const double p[] = {0.0, 0.3, 0.5, 1.0};
    for (int k = 0; k < 4; k++) {
        const struct pstk_op op = pstk_random_flip(p[k]);
        int n = 0;
        for (uint64_t id = 0; id < 20000; id++) {
            struct pstk__geometry g;
            draw_geometry(&op, 1, 4, 4, (struct pstk__random_key){.sample_id = id}, &g);
            n += (int)g.flip;
        }
        CHECK(fabs(n - 20000 * p[k]) <= 5 * sqrt(20000 * p[k] * (1 - p[k])));
    }
}

TEST(geometry_depends_on_each_part_of_the_key_and_on_nothing_else)
{
    const struct pstk_op ops[2] = {pstk_random_resized_crop(8, 8), pstk_random_flip(0.5)};
    const struct pstk__random_key base = {.seed = 1, .epoch = 2, .sample_id = 3, .group = 4};
    struct pstk__random_key keys[5] = {base, base, base, base, base};
    struct pstk__geometry g[6];
    keys[1].seed++;
    keys[2].epoch++;
    keys[3].sample_id++;
    keys[4].group++;
    for (int i = 0; i < 5; i++)
        draw_geometry(ops, 2, 400, 300, keys[i], &g[i]);
    draw_geometry(ops, 2, 400, 300, base, &g[5]);
    CHECK(memcmp(&g[0], &g[5], sizeof g[0]) == 0);
    for (int i = 1; i < 5; i++)
        CHECK(memcmp(&g[0].source, &g[i].source, sizeof g[0].source) != 0);
}

TEST(a_random_filter_is_drawn_after_the_box)
{
    struct pstk_op crop = pstk_random_resized_crop(8, 8), any = crop;
    uint32_t n_cubic = 0;
    crop.filter = PSTK_FILTER_LANCZOS;
    any.filter = PSTK_FILTER_RANDOM;
    for (uint64_t i = 0; i < 10000; i++) {
        const struct pstk__random_key key = {.seed = 5, .sample_id = i};
        struct pstk__geometry g[2];
        draw_geometry(&crop, 1, 400, 300, key, &g[0]);
        draw_geometry(&any, 1, 400, 300, key, &g[1]);
        CHECK(memcmp(&g[0].source, &g[1].source, sizeof g[0].source) == 0);
        CHECK_EQ(g[0].filter, PSTK_FILTER_LANCZOS);
        CHECK(g[1].filter == PSTK_FILTER_BILINEAR || g[1].filter == PSTK_FILTER_BICUBIC);
        n_cubic += g[1].filter == PSTK_FILTER_BICUBIC;
    }
    CHECK(n_cubic > 4700 && n_cubic < 5300);
}

TEST(every_resize_passes_its_filter_on)
{
    struct pstk_op ops[3] = {pstk_resize(8, 9), pstk_resize_shorter(7),
                             pstk_resized_crop(1, 2, 3, 4, 5, 6)};
    for (uint32_t i = 0; i < 3; i++) {
        struct pstk__resize_bounds bounds = {0};
        struct pstk__geometry g;
        pstk__geometry_init(&g, 40, 30);
        ops[i].filter = PSTK_FILTER_HAMMING;
        pstk__geometry_fold(&g, &ops[i], 1);
        pstk__ops_bound(&ops[i], 1, &bounds);
        CHECK_EQ(g.filter, PSTK_FILTER_HAMMING);
        CHECK_EQ(bounds.filters, 1u << PSTK_FILTER_HAMMING);
        ops[i].filter = PSTK_FILTER_RANDOM;
        pstk__ops_bound(&ops[i], 1, &bounds);
        CHECK_EQ(bounds.filters, 1u << PSTK_FILTER_BILINEAR | 1u << PSTK_FILTER_BICUBIC);
    }
}

struct wrong {
    struct pstk_op ops[3];
    uint32_t n;
    uint32_t dtype;
    int code;
    const char *says;
};

static void check_wrong(const struct wrong *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct pstk_error err;
        struct pstk__view view = {.channels = 3, .dtype = list[i].dtype};
        pstk_error_init(&err, sizeof err);
        const int rc = pstk__ops_check(list[i].ops, list[i].n, &view, &err);
        CHECK_EQ(rc, list[i].code);
        CHECK_EQ(err.code, rc);
        if (strstr(err.message, list[i].says) == NULL)
            printf("# %s\n", err.message);
        CHECK(strstr(err.message, list[i].says) != NULL);
    }
}

TEST(wrong_lists_are_refused_with_the_operation_named)
{
    const float mean[3] = {0.5f, 0.5f, 0.5f}, dev[3] = {0.2f, 0.2f, 0.2f}, zero[3] = {0};
    const struct pstk_op rrc = pstk_random_resized_crop(8, 8), crop = pstk_center_crop(8, 8);
    const struct pstk_op flip = pstk_random_flip(0.5), norm = pstk_normalize(mean, dev);
    struct pstk_op flags = crop, unused = crop, sized = flip;
    struct pstk_op parent = crop, counted = flip, filtered = rrc, channels = norm, filled = crop;
    struct pstk_op cropped = crop, cut = crop, more = norm;
    const struct pstk_op one = pstk_normalize_channels(1, mean, dev);
    parent.children = &flip;
    counted.n_children = 2;
    filtered.filter = 8;
    cut.filter = PSTK_FILTER_BICUBIC;
    channels.channels = 5;
    more.params.normalize.deviation[3] = 1;
    cropped.channels = 3;
    filled.fill[3] = 7;
    flags.flags = 1;
    unused.params.values[3] = 1;
    sized.width = 3;
    const struct wrong list[] = {
        {{flip}, 1, PSTK_U8, PSTK_EINVAL, "do not fix the size"},
        {{rrc}, 0, PSTK_U8, PSTK_EINVAL, "do not fix the size"},
        {{pstk_resize_shorter(8)}, 1, PSTK_U8, PSTK_EINVAL, "do not fix the size"},
        {{crop, {.kind = 99}}, 2, PSTK_U8, PSTK_ENOTSUP, "ops[1].kind: value is 99; must be"},
        {{{.kind = 0}}, 1, PSTK_U8, PSTK_ENOTSUP, "ops[0].kind: value is 0; must be"},
        {{pstk_resized_crop(0, 0, 4, 4, 8, 8)},
         1,
         PSTK_U8,
         PSTK_ENOTSUP,
         "ops[0] (resized crop): its parameters belong to one image"},
        {{norm, crop}, 2, PSTK_F32, PSTK_EINVAL, "ops[0] (normalise): it must be the last"},
        {{crop, norm}, 2, PSTK_U8, PSTK_EINVAL, "u8 cannot hold"},
        {{crop, more}, 2, PSTK_F32, PSTK_EINVAL, "mean[3], deviation[3]: values are 0 and 1"},
        {{crop, pstk_normalize(mean, zero)},
         2,
         PSTK_F32,
         PSTK_EINVAL,
         "deviation[0]: value is 0; must be"},
        {{crop, pstk_normalize((float[3]){0, NAN, 0}, dev)}, 2, PSTK_F32, PSTK_EINVAL, "mean[1]"},
        {{pstk_center_crop(0, 8)}, 1, PSTK_U8, PSTK_EINVAL, "height: value is 0; must be"},
        {{pstk_resize(8, 65536)}, 1, PSTK_U8, PSTK_EINVAL, "width: value is 65536; must be"},
        {{pstk_resize_shorter(0), crop},
         2,
         PSTK_U8,
         PSTK_EINVAL,
         "side (width): value is 0; must be"},
        {{pstk_resize_shorter_max(8, 8), crop},
         2,
         PSTK_U8,
         PSTK_EINVAL,
         "value is 8; must be 0, or"},
        {{pstk_resize_shorter_max(8, 65536), crop},
         2,
         PSTK_U8,
         PSTK_EINVAL,
         "value is 65536; must"},
        {{pstk_random_resized_crop(8, 0)}, 1, PSTK_U8, PSTK_EINVAL, "width: value is 0; must be"},
        {{pstk_random_resized_crop_range(8, 8, 0.5, 0.4, 1, 1)}, 1, PSTK_U8, PSTK_EINVAL, "scale"},
        {{pstk_random_resized_crop_range(8, 8, -0.1, 1, 1, 1)}, 1, PSTK_U8, PSTK_EINVAL, "scale"},
        {{pstk_random_resized_crop_range(8, 8, 0, 1.5, 1, 1)}, 1, PSTK_U8, PSTK_EINVAL, "scale"},
        {{pstk_random_resized_crop_range(8, 8, NAN, 1, 1, 1)}, 1, PSTK_U8, PSTK_EINVAL, "scale"},
        {{pstk_random_resized_crop_range(8, 8, 0, NAN, 1, 1)}, 1, PSTK_U8, PSTK_EINVAL, "scale"},
        {{pstk_random_resized_crop_range(8, 8, 0, 1, 2, 1)}, 1, PSTK_U8, PSTK_EINVAL, "ratio"},
        {{pstk_random_resized_crop_range(8, 8, 0, 1, 0, 1)}, 1, PSTK_U8, PSTK_EINVAL, "ratio"},
        {{pstk_random_resized_crop_range(8, 8, 0, 1, 1, INFINITY)},
         1,
         PSTK_U8,
         PSTK_EINVAL,
         "ratio"},
        {{pstk_random_resized_crop_range(8, 8, 0, 1, NAN, 1)}, 1, PSTK_U8, PSTK_EINVAL, "ratio"},
        {{crop, pstk_random_flip(1.1)}, 2, PSTK_U8, PSTK_EINVAL, "probability: value is 1.1; must"},
        {{crop, pstk_random_flip(NAN)}, 2, PSTK_U8, PSTK_EINVAL, "ops[1] (random flip): probab"},
        {{flags}, 1, PSTK_U8, PSTK_EINVAL, "flags: value is 0x1; must be 0"},
        {{unused}, 1, PSTK_U8, PSTK_EINVAL, "params.values[3]: value is 1; must be 0"},
        {{crop, sized}, 2, PSTK_U8, PSTK_EINVAL, "width, height: values are "},
        {{parent}, 1, PSTK_U8, PSTK_EINVAL, "ops[0] (centre crop): n_children: value is "},
        {{crop, counted}, 2, PSTK_U8, PSTK_EINVAL, "ops[1] (random flip): n_children: value is "},
        {{filtered}, 1, PSTK_U8, PSTK_EINVAL, "filter: value is 8; must be from 0 to 7"},
        {{cut}, 1, PSTK_U8, PSTK_EINVAL, "filter: value is 5; must be 0, because"},
        {{crop, channels}, 2, PSTK_F32, PSTK_EINVAL, "channels: value is 5; must be 1, 3 or 4"},
        {{crop, one}, 2, PSTK_F32, PSTK_EINVAL, "they have 1 number; must be 3, one for each"},
        {{cropped}, 1, PSTK_U8, PSTK_EINVAL, "channels: value is 3; must be 0, because"},
        {{filled}, 1, PSTK_U8, PSTK_EINVAL, "fill: value is 7; must be 0, because"},
    };
    check_wrong(list, sizeof list / sizeof list[0]);
}

TEST(wrong_crops_pads_and_erasings_are_refused)
{
    const struct pstk_op crop = pstk_center_crop(8, 8);
    const struct pstk_op norm = pstk_normalize(PSTK_IMAGENET_MEAN, PSTK_IMAGENET_STD);
    struct pstk_op part = pstk_crop_at(0, 0, 8, 8), narrow = pstk_pad(1, 1, 1, 1, 0);
    struct pstk_op padded = pstk_random_crop(8, 8, 1), mode = padded;
    const struct pstk_op erasing = pstk_random_erasing(1, 0.5);
    struct pstk_op normal = pstk_random_erasing(1, 0), both = erasing, scaled = normal;
    struct pstk_op ratios = normal;
    normal.params.random_erasing.is_normal = both.params.random_erasing.is_normal = 1;
    scaled.params.random_erasing.min_scale = 0.5;
    ratios.params.random_erasing.min_ratio = 0;
    part.params.crop.left = 1.5;
    narrow.params.pad.right = -1;
    padded.params.random_crop.pad_if_needed = 2;
    mode.params.random_crop.mode = 4;
    const struct wrong list[] = {
        {{part}, 1, PSTK_U8, PSTK_EINVAL, "ops[0] (crop): left: value is 1.5; must be a whole"},
        {{padded}, 1, PSTK_U8, PSTK_EINVAL, "pad_if_needed: value is 2; must be 0 or 1"},
        {{mode}, 1, PSTK_U8, PSTK_EINVAL, "mode: value is 4; must be from 0 to 3"},
        {{crop, narrow}, 2, PSTK_U8, PSTK_EINVAL, "padding, right: value is -1; must be"},
        {{pstk_pad(1, 1, 1, 1, 0)}, 1, PSTK_U8, PSTK_EINVAL, "do not fix the size"},
        {{crop, erasing, norm}, 3, PSTK_F32, PSTK_EINVAL, "(random erasing): it must be the last"},
        {{crop, norm, norm}, 3, PSTK_F32, PSTK_EINVAL, "ops[1] (normalise): it must be the last"},
        {{crop, pstk_random_apply(&erasing, 1, 1)},
         2,
         PSTK_F32,
         PSTK_EINVAL,
         "it must be the last"},
        {{crop, erasing}, 2, PSTK_U8, PSTK_EINVAL, "value[0]: value is 0.5; must be a whole"},
        {{crop, normal}, 2, PSTK_U8, PSTK_EINVAL, "normal values are fractions"},
        {{crop, both}, 2, PSTK_F32, PSTK_EINVAL, "value[0]: value is 0.5; must be finite, and 0"},
        {{crop, pstk_random_erasing(2, 0)}, 2, PSTK_F32, PSTK_EINVAL, "probability: value is 2"},
        {{crop, scaled}, 2, PSTK_F32, PSTK_EINVAL, "scale: value is (0.5, 0.33)"},
        {{crop, ratios}, 2, PSTK_F32, PSTK_EINVAL, "ratio: value is (0, 3.3)"},
        {{crop, pstk_erase(0, 3, 8, 6, 0)}, 2, PSTK_U8, PSTK_EINVAL, "part: it ends at (8, 9)"},
    };
    check_wrong(list, sizeof list / sizeof list[0]);
}

TEST(valid_lists_are_accepted_and_give_their_output_size)
{
    const struct pstk_op norm = pstk_normalize(PSTK_IMAGENET_MEAN, PSTK_IMAGENET_STD);
    const struct pstk_op train[] = {pstk_random_resized_crop(160, 224), pstk_random_flip(0.5),
                                    norm};
    const struct pstk_op test[] = {pstk_resize_shorter(256), pstk_center_crop(192, 224), norm};
    const struct pstk_op turned[] = {pstk_resize(9, 8), pstk_random_flip(1),
                                     pstk_center_crop(20, 4)};
    struct pstk__view view = {.channels = 3, .dtype = PSTK_F16};
    CHECK_EQ(pstk__ops_check(train, 3, &view, NULL), 0);
    CHECK(view.height == 160 && view.width == 224);
    view = (struct pstk__view){.channels = 3, .dtype = PSTK_BF16};
    CHECK_EQ(pstk__ops_check(test, 3, &view, NULL), 0);
    CHECK(view.height == 192 && view.width == 224);
    view = (struct pstk__view){.channels = 3, .dtype = PSTK_U8};
    CHECK_EQ(pstk__ops_check(turned, 3, &view, NULL), 0);
    CHECK(view.height == 20 && view.width == 4);
}

TEST(rows_are_changed_as_they_come_up_to_the_first_op_that_needs_a_picture)
{
    const struct pstk_op rrc = pstk_random_resized_crop(8, 8), crop = pstk_center_crop(8, 8);
    const struct pstk_op flip = pstk_random_flip(0.5), gray = pstk_grayscale(3);
    const struct pstk_op resize = pstk_resize(4, 4), large = pstk_center_crop(9, 8);
    const struct pstk_op part = pstk_random_crop(8, 8, 0), padded = pstk_random_crop(6, 6, 2);
    const struct pstk_op inside = pstk_crop_at(1, 2, 4, 4), outside = pstk_crop_at(-1, 2, 4, 4);
    const struct pstk_op down = pstk_random_vertical_flip(0.5), pad = pstk_pad(1, 1, 1, 1, 0);
    const struct pstk_op erase = pstk_random_erasing(0.5, 0);
    struct pstk_op filled = padded, mirrored = padded, filled_outside = outside, edge = pad;
    filled.fill[1] = filled_outside.fill[2] = 1;
    mirrored.params.random_crop.mode = PSTK_PAD_REFLECT;
    edge.params.pad.mode = PSTK_PAD_EDGE;
    const struct {
        struct pstk_op ops[4];
        uint32_t n, prefix;
    } list[] = {
        {{rrc, flip, crop}, 3, 3},      {{gray, rrc, flip}, 3, 3},  {{rrc, gray, flip}, 3, 1},
        {{rrc, resize}, 2, 1},          {{flip, rrc}, 2, 1},        {{crop, resize}, 2, 1},
        {{crop, large}, 2, 1},          {{crop, gray, flip}, 3, 3}, {{flip, gray, crop}, 3, 3},
        {{part, down, flip}, 3, 3},     {{padded, down}, 2, 2},     {{filled, down}, 2, 2},
        {{filled, gray}, 2, 1},         {{gray, filled}, 2, 2},     {{mirrored, down}, 2, 0},
        {{crop, inside}, 2, 2},         {{crop, outside}, 2, 1},    {{outside, flip}, 2, 2},
        {{filled_outside, flip}, 2, 2}, {{pad, crop}, 2, 1},        {{edge, crop}, 2, 0},
        {{down, pad, resize}, 3, 2},    {{crop, padded}, 2, 1},     {{rrc, flip, erase}, 3, 2},
        {{rrc, padded}, 2, 2},          {{rrc, pad, part}, 3, 3},   {{down, resize}, 2, 1},
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        struct pstk__view view = {.channels = 3, .dtype = PSTK_U8};
        CHECK_EQ(pstk__ops_check(list[i].ops, list[i].n, &view, NULL), 0);
        CHECK_EQ(pstk__ops_prefix(list[i].ops, list[i].n), list[i].prefix);
    }
}

/* Children may be shared: a list of a few hundred bytes could draw 2^32 operations. */
TEST(lists_that_would_explode_are_refused)
{
    struct pstk_op level[4][64], list[60];
    struct pstk_error err;
    struct pstk__view view = {.channels = 3, .dtype = PSTK_U8};
    pstk_error_init(&err, sizeof err);
    for (int i = 0; i < 64; i++) {
        level[0][i] = pstk_rand_augment(32, 9, 31, 0);
        for (int k = 1; k < 4; k++)
            level[k][i] = pstk_random_order(level[k - 1], 64);
    }
    const struct pstk_op many[2] = {pstk_resize(8, 8), pstk_random_apply(level[3], 64, 1)};
    CHECK_EQ(pstk__ops_check(many, 2, &view, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "the list has more than 4096 operations") != NULL);
    const struct pstk_op drawn[3] = {pstk_resize(8, 8), level[1][0], level[1][1]};
    view = (struct pstk__view){.channels = 3, .dtype = PSTK_U8};
    CHECK_EQ(pstk__ops_check(drawn, 2, &view, &err), 0);
    CHECK_EQ(pstk__ops_max(drawn, 3), 4097);
    view = (struct pstk__view){.channels = 3, .dtype = PSTK_U8};
    CHECK_EQ(pstk__ops_check(drawn, 3, &view, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "may draw more than 4096 operations") != NULL);
    for (int i = 0; i < 60; i++)
        list[i] = i == 0 ? pstk_resize(60000, 60000) : pstk_rotate(45, 0, 1);
    view = (struct pstk__view){.channels = 3, .dtype = PSTK_U8};
    CHECK_EQ(pstk__ops_check(list, 60, &view, &err), PSTK_EFBIG);
    CHECK(strstr(err.message, "ops[9] (rotate): it would make images of") != NULL);
}

TEST(children_keep_the_size)
{
    const struct pstk_op turn = pstk_rotate(10, 0, 0), grow = pstk_rotate(10, 0, 1);
    const struct pstk_op same = pstk_center_crop(8, 8), other = pstk_center_crop(8, 7);
    const struct pstk_op turned = pstk_random_rotation(0, 9, 0), part = pstk_random_crop(8, 8, 0);
    const struct pstk_op zoomed = pstk_random_zoom_out(1, 2, 1);
    struct pstk_op grown = turned;
    grown.params.random_rotation.expand = 1;
    const struct {
        const struct pstk_op *child;
        int first_fixes, code;
    } list[] = {{&turn, 0, 0},
                {&grow, 0, PSTK_ENOTSUP},
                {&turned, 0, 0},
                {&turned, 1, 0},
                {&grown, 0, PSTK_ENOTSUP},
                {&grown, 1, PSTK_ENOTSUP},
                {&zoomed, 1, PSTK_ENOTSUP},
                {&part, 1, PSTK_ENOTSUP},
                {&same, 1, 0},
                {&same, 0, PSTK_ENOTSUP},
                {&other, 1, PSTK_ENOTSUP}};
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        const struct pstk_op resize = pstk_resize(8, 8),
                             apply = pstk_random_apply(list[i].child, 1, 1);
        const struct pstk_op ops[3] = {list[i].first_fixes ? resize : pstk_random_flip(1), apply,
                                       resize};
        struct pstk__view view = {.channels = 3, .dtype = PSTK_U8};
        CHECK_EQ(pstk__ops_check(ops, 3, &view, NULL), list[i].code);
    }
}

/* Pixels are the same with all kernels, so an ISA may have those of a lower one. */
TEST(every_isa_of_the_resize_has_kernels_for_pictures)
{
    for (uint32_t isa = PSTK_KERNELS_AUTO; isa <= PSTK_KERNELS_NEON; isa++) {
        struct pstk__canvas_kernels kernels;
        CHECK_EQ(pstk__canvas_kernels_init(&kernels, isa), pstk__pixel_kernels(isa) != NULL);
    }
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(random_crops_are_distributed_as_those_of_torchvision),
        CASE(random_crops_reach_every_offset_the_first_and_the_last_included),
        CASE(the_centred_box_is_used_after_ten_failed_tries),
        CASE(the_shorter_side_is_exact_and_the_longer_one_cut_down),
        CASE(the_longer_side_gets_no_longer_than_it_may_as_in_torchvision),
        CASE(no_image_is_resized_by_more_than_the_bounds_say),
        CASE(a_centre_crop_begins_where_torchvision_begins),
        CASE(crops_and_flips_in_any_order_equal_them_done_one_by_one),
        CASE(flips_come_as_often_as_their_probability_says),
        CASE(geometry_depends_on_each_part_of_the_key_and_on_nothing_else),
        CASE(a_random_filter_is_drawn_after_the_box),
        CASE(every_resize_passes_its_filter_on),
        CASE(wrong_lists_are_refused_with_the_operation_named),
        CASE(wrong_crops_pads_and_erasings_are_refused),
        CASE(valid_lists_are_accepted_and_give_their_output_size),
        CASE(rows_are_changed_as_they_come_up_to_the_first_op_that_needs_a_picture),
        CASE(lists_that_would_explode_are_refused),
        CASE(children_keep_the_size),
        CASE(every_isa_of_the_resize_has_kernels_for_pictures),
    };
    return RUN_CASES(cases);
}
