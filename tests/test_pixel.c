/* SPDX-License-Identifier: Apache-2.0 */
#include "pixel.h"
#include "naive_pixel.h"
#include "test.h"

static uint64_t state = 88172645463325252ull;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 33) % below;
}

static uint8_t *pixels_of(uint32_t w, uint32_t h, int extreme)
{
    uint8_t *p = malloc((size_t)w * h * 3);
    for (size_t i = 0; p && i < (size_t)w * h * 3; i++)
        p[i] = (uint8_t)(extreme ? draw(2) * 255 : draw(256));
    return p;
}

/* ---- resize -----------------------------------------------------------------------------------
 */

struct shape {
    uint32_t w, h, ow, oh;
    struct pstk__box window;
};

static uint32_t draw_side(void)
{
    const uint32_t most[4] = {2, 9, 70, 300};
    return 1 + draw(most[draw(4)]);
}

static struct shape draw_shape(void)
{
    struct shape s = {draw_side(), draw_side(), draw_side(), draw_side(), {0, 0, 0, 0}};
    s.ow = draw(8) ? s.ow : s.w;
    s.oh = draw(8) ? s.oh : s.h;
    s.window.left = draw(2) ? draw(s.ow) : 0;
    s.window.top = draw(2) ? draw(s.oh) : 0;
    s.window.width = draw(2) ? 1 + draw(s.ow - s.window.left) : s.ow - s.window.left;
    s.window.height = draw(2) ? 1 + draw(s.oh - s.window.top) : s.oh - s.window.top;
    return s;
}

/* Resize by `k` within exactly the promised arena, giving exactly the rows asked for. 0 when that
 * went as promised. */
static int resize(const struct pstk__pixel_kernels *k, const struct shape *s, const uint8_t *in,
                  struct pstk__finish finish, void *out, uint64_t out_stride)
{
    const struct pstk__resize_bounds bounds = {
        s->w, s->h, s->ow, s->oh, s->window.width, s->window.height};
    const struct pstk__resize_config config = {.in_width = s->w,
                                               .in_height = s->h,
                                               .out_width = s->ow,
                                               .out_height = s->oh,
                                               .window = s->window,
                                               .finish = finish,
                                               .out = out,
                                               .out_stride = out_stride};
    struct pstk__resize r;
    struct pstk__arena arena;
    if (pstk__arena_open(&arena, pstk__resize_scratch(&bounds)) < 0)
        return -1;
    arena.size = pstk__resize_scratch(&bounds); /* not the page that it was rounded up to */
    int bad = pstk__resize_begin(&r, &arena, k, &config) < 0;
    const size_t size = bad ? 0 : (size_t)(r.x.end - r.x.begin) * 3;
    for (uint32_t y = bad ? 1 : r.y.begin; !bad && y < r.y.end; y++) {
        uint8_t *row = malloc(size); /* of its own: a sanitizer sees what is read beyond it */
        if (row == NULL)
            return -1;
        memcpy(row, in + ((size_t)y * s->w + r.x.begin) * 3, size);
        pstk__resize_rows(&r, row, 0, 1);
        free(row);
    }
    bad |= r.n_out != s->window.height;
    pstk__arena_close(&arena);
    return bad;
}

static const struct pstk__pixel_kernels *variant(uint32_t v)
{
    return pstk__pixel_kernels(v);
}

TEST(every_window_of_every_resize_equals_the_formulas_of_pillow)
{
    for (int i = 0; i < 1500; i++) {
        const struct shape s = draw_shape();
        uint8_t *in = pixels_of(s.w, s.h, i & 1), *want = naive_resize(in, s.w, s.h, s.ow, s.oh);
        const size_t stride = (size_t)s.window.width * 3;
        CHECK(in && want);
        for (uint32_t v = PSTK_VARIANT_C; v <= PSTK_VARIANT_AVX512; v++) {
            uint8_t *out = malloc(stride * s.window.height);
            if (variant(v) != NULL) {
                const struct pstk__finish f = {.dtype = PSTK_U8, .width = s.window.width};
                CHECK_EQ(resize(variant(v), &s, in, f, out, stride), 0);
                for (uint32_t y = 0; y < s.window.height; y++)
                    CHECK(memcmp(out + y * stride,
                                 want + ((size_t)(s.window.top + y) * s.ow + s.window.left) * 3,
                                 stride) == 0);
            }
            free(out);
        }
        free(in);
        free(want);
    }
}

TEST(the_greatest_sums_do_not_overflow)
{
    /* 65535 white pixels on one: the weights' rounding adds up most. */
    const struct shape shapes[2] = {{65535, 1, 1, 1, {0, 0, 1, 1}}, {1, 65535, 1, 1, {0, 0, 1, 1}}};
    for (int i = 0; i < 2; i++) {
        uint8_t *in = malloc((size_t)65535 * 3), out[3] = {0};
        CHECK(in != NULL);
        memset(in, 255, (size_t)65535 * 3);
        const struct pstk__finish f = {.dtype = PSTK_U8, .width = 1};
        CHECK_EQ(resize(variant(0), &shapes[i], in, f, out, 3), 0);
        uint8_t *want = naive_resize(in, shapes[i].w, shapes[i].h, 1, 1);
        CHECK(want && memcmp(out, want, 3) == 0);
        free(want);
        free(in);
    }
}

TEST(an_axis_reads_no_more_than_it_needs)
{
    static uint8_t memory[1 << 20];
    for (int i = 0; i < 3000; i++) {
        struct pstk__arena arena = {.base = memory, .size = sizeof memory};
        const uint32_t in = draw_side(), out = draw(5) ? draw_side() : in;
        const uint32_t window = draw(out), n = 1 + draw(out - window);
        struct pstk__axis a;
        CHECK_EQ(pstk__axis_init(&a, &arena, in, out, window, n), 0);
        CHECK(a.begin == a.first[0] && a.end == a.first[n - 1] + a.n[n - 1] && a.end <= in);
        uint32_t widest = 0;
        for (uint32_t k = 0; k < n; k++) {
            int64_t sum = 0;
            CHECK(a.n[k] >= 1 && a.n[k] <= a.n_taps);
            CHECK(k == 0 || (a.first[k] >= a.first[k - 1] &&
                             a.first[k] + a.n[k] >= a.first[k - 1] + a.n[k - 1]));
            for (uint32_t t = 0; t < a.n_taps; t++) {
                const int32_t w = a.weights[(size_t)k * a.n_taps + t];
                CHECK(w >= 0 && (t < a.n[k] || w == 0));
                sum += w;
            }
            CHECK(llabs(sum - (1 << 22)) <= (a.n[k] + 1) / 2);
            widest = a.n[k] > widest ? a.n[k] : widest;
        }
        CHECK_EQ(widest, a.n_taps);
        if (in == out)
            CHECK(a.n_taps == 1 && a.begin == window && a.end == window + n);
    }
}

TEST(an_arena_too_small_is_an_error)
{
    static uint8_t memory[4096];
    for (size_t size = 0; size < 4096; size += 64) {
        struct pstk__arena arena = {.base = memory, .size = size};
        struct pstk__resize r;
        const struct pstk__resize_config c = {.in_width = 50,
                                              .in_height = 50,
                                              .out_width = 40,
                                              .out_height = 40,
                                              .window = {0, 0, 40, 40}};
        const int rc = pstk__resize_begin(&r, &arena, variant(0), &c);
        CHECK(rc == 0 || rc == PSTK_ENOMEM);
        CHECK(size != 0 || rc == PSTK_ENOMEM);
    }
}

/* ---- finish -----------------------------------------------------------------------------------
 */

static const uint32_t dtypes[4] = {PSTK_U8, PSTK_F16, PSTK_BF16, PSTK_F32};

TEST(tables_hold_what_the_float_steps_give)
{
    const float mean[3] = {0.485f, 0.456f, 0.406f}, dev[3] = {0.229f, 0.224f, 0.225f};
    for (uint32_t d = 1; d < 4; d++)
        for (int plain = 0; plain < 2; plain++) {
            uint32_t table[768];
            pstk__finish_table(table, dtypes[d], plain ? NULL : mean, dev);
            for (uint32_t i = 0; i < 768; i++)
                CHECK_EQ(naive_element(table, dtypes[d], i),
                         naive_value(dtypes[d], (uint8_t)i, i / 256, plain ? NULL : mean, dev));
        }
}

TEST(finished_rows_are_mirrored_laid_out_and_cast_and_nothing_beside_them_is_written)
{
    const float mean[3] = {0.1f, 0.2f, 0.3f}, dev[3] = {0.4f, 0.5f, 0.6f};
    for (uint32_t i = 0; i < 4 * 2 * 2 * 40; i++) {
        const uint32_t dtype = dtypes[i & 3], flip = i >> 2 & 1, nchw = i >> 3 & 1;
        const uint32_t width = 1 + i / 16, plane = width + 3, size = pstk_dtype_size(dtype);
        const uint32_t n = nchw ? 3 * plane : 3 * width;
        uint8_t rgb[3 * 64], *out = malloc((size_t)(n + 2) * size);
        uint32_t table[768];
        CHECK(out != NULL);
        memset(out, 0xee, (size_t)(n + 2) * size);
        for (uint32_t x = 0; x < 3 * width; x++)
            rgb[x] = (uint8_t)draw(256);
        if (dtype != PSTK_U8)
            pstk__finish_table(table, dtype, mean, dev);
        const struct pstk__finish f = {.dtype = dtype,
                                       .layout = nchw ? PSTK_NCHW : PSTK_NHWC,
                                       .flip = flip,
                                       .width = width,
                                       .plane = plane,
                                       .table = table};
        variant(0)->finish_row(out + size, rgb, &f);
        uint32_t untouched = 0;
        memset(&untouched, 0xee, size);
        for (uint32_t e = 0; e < n + 2; e++) {
            const uint32_t k = e - 1, x = nchw ? k % plane : k / 3, c = nchw ? k / plane : k % 3;
            if (e == 0 || e == n + 1 || x >= width) {
                CHECK_EQ(naive_element(out, dtype, e), untouched);
                continue;
            }
            const uint32_t from = flip ? width - 1 - x : x;
            CHECK_EQ(naive_element(out, dtype, e),
                     naive_value(dtype, rgb[from * 3 + c], c, mean, dev));
        }
        free(out);
    }
}

/* ---- variants ---------------------------------------------------------------------------------
 */

TEST(the_variant_asked_for_is_the_one_given)
{
    CHECK(variant(PSTK_VARIANT_AUTO) != NULL);
    CHECK(variant(PSTK_VARIANT_C) != NULL);
    for (uint32_t v = PSTK_VARIANT_C; v <= PSTK_VARIANT_AVX512; v++)
        CHECK(variant(v) == NULL || variant(v)->variant == v);
    CHECK(variant(99) == NULL);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(every_window_of_every_resize_equals_the_formulas_of_pillow),
        CASE(the_greatest_sums_do_not_overflow),
        CASE(an_axis_reads_no_more_than_it_needs),
        CASE(an_arena_too_small_is_an_error),
        CASE(tables_hold_what_the_float_steps_give),
        CASE(finished_rows_are_mirrored_laid_out_and_cast_and_nothing_beside_them_is_written),
        CASE(the_variant_asked_for_is_the_one_given),
    };
    return RUN_CASES(cases);
}
