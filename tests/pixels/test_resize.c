/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cpu.h"
#include "base/kernels.h"
#include "pixels/resize.h"
#include "support/finish_table.h"
#include "support/naive_pixel.h"
#include "support/test.h"

#include <sys/mman.h>
#include <unistd.h>

static uint64_t state = 88172645463325252ull;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 33) % below;
}

static const struct pstk__pixel_kernels *isa(uint32_t v)
{
    return pstk__pixel_kernels(v);
}

/* Over every ISA that this CPU runs. */
#define EACH_ISA(k)                                                                                \
    for (uint32_t k##_v = PSTK_KERNELS_C; k##_v <= PSTK_KERNELS_NEON; k##_v++)                     \
        for (const struct pstk__pixel_kernels *k = isa(k##_v); k; k = NULL)

static const uint32_t all_channels[3] = {1, 3, 4};

/* Random bytes, extremes, or white; every fourth of a kind from 3 on, which may be alpha, is 255.
 */
static uint8_t *pixels_of(uint32_t w, uint32_t h, uint32_t channels, uint32_t kind)
{
    const size_t size = (size_t)w * h * channels;
    uint8_t *p = malloc(size);
    for (size_t i = 0; p && i < size; i++)
        p[i] = (uint8_t)(kind % 3 == 0 ? draw(256) : kind % 3 == 1 ? draw(2) * 255 : 255);
    for (size_t i = 3; p && kind > 2 && i < size; i += 4)
        p[i] = 255;
    return p;
}

/* Memory that ends where none may be read: a page without access stands on either side. */
static struct {
    uint8_t *begin, *end;
} fence;

static int fence_open(size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size = (size + page - 1) / page * page;
    uint8_t *p = mmap(NULL, size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(p + page, size, PROT_READ | PROT_WRITE) != 0)
        return -1;
    fence.begin = p + page;
    fence.end = fence.begin + size;
    return 0;
}

/* ---- resize -----------------------------------------------------------------------------------
 */

struct shape {
    uint32_t w, h, ow, oh, channels;
    struct pstk__box crop;
    uint32_t filter; /* enum pstk_filter; not RANDOM */
};

static uint32_t draw_side(void)
{
    const uint32_t most[5] = {2, 9, 70, 300, 600};
    return 1 + draw(most[draw(5)]);
}

static struct shape draw_shape(void)
{
    struct shape s = {.w = draw_side(),
                      .h = draw_side(),
                      .ow = draw_side(),
                      .oh = draw_side(),
                      .filter = draw(7)};
    s.channels = all_channels[draw(3)];
    s.ow = draw(8) ? s.ow : s.w;
    s.oh = draw(8) ? s.oh : s.h;
    s.crop.left = draw(2) ? draw(s.ow) : 0;
    s.crop.top = draw(2) ? draw(s.oh) : 0;
    s.crop.width = draw(2) ? 1 + draw(s.ow - s.crop.left) : s.ow - s.crop.left;
    s.crop.height = draw(2) ? 1 + draw(s.oh - s.crop.top) : s.oh - s.crop.top;
    return s;
}

/* Scales around which kernels change: few taps, four, five, eight, many; narrow rows. */
static struct shape draw_scaled(void)
{
    const uint32_t tenths[12] = {3, 7, 10, 13, 17, 20, 21, 26, 39, 55, 90, 190};
    struct shape s = {.ow = 1 + draw(80),
                      .oh = 1 + draw(40),
                      .channels = all_channels[draw(3)],
                      .filter = draw(7)};
    s.w = 1 + (s.ow * tenths[draw(12)] + draw(10)) / 10;
    s.h = 1 + (s.oh * tenths[draw(12)] + draw(10)) / 10;
    s.crop = (struct pstk__box){0, 0, s.ow, s.oh};
    return s;
}

static const uint32_t dtypes[4] = {PSTK_U8, PSTK_F16, PSTK_BF16, PSTK_F32};
static const float mean[4] = {0.485f, 0.456f, 0.406f, 0.25f};
static const float deviation[4] = {0.229f, 0.224f, 0.225f, 0.125f};

/* Return the line of the usual table, found once: it takes a while. Of less channels: its
 * beginning. */
static const struct pstk__affine *line_of(uint32_t dtype)
{
    static struct pstk__affine lines[4];
    static int n_lines;
    for (; n_lines < 4; n_lines++) {
        uint32_t table[1024];
        finish_table(table, dtypes[n_lines], 4, mean, deviation);
        pstk__affine_init(&lines[n_lines], table, dtypes[n_lines], 4);
    }
    for (uint32_t i = 0; i < 4; i++)
        if (dtypes[i] == dtype)
            return &lines[i];
    return NULL;
}

/* The memory for a resize: rows and planes with some elements between, before and after them. */
struct target {
    struct pstk__finish finish;
    uint32_t height, size; /* rows, bytes of an element */
    uint64_t stride, lead; /* elements: from row to row, before the first */
    uint64_t n_elements;   /* with what is before and behind */
    uint32_t table[1024];
    uint8_t *memory;
};

static int target_open(struct target *t, const struct shape *s)
{
    const uint32_t dtype = dtypes[draw(4)], nchw = draw(2), width = s->crop.width, n = s->channels;
    *t = (struct target){.height = s->crop.height, .size = pstk_dtype_size(dtype)};
    t->stride = (uint64_t)width * (nchw ? 1 : n) + draw(3) * draw(40);
    t->lead = 1 + draw(70);
    t->finish = (struct pstk__finish){.channels = n,
                                      .dtype = dtype,
                                      .layout = nchw ? PSTK_NCHW : PSTK_NHWC,
                                      .flip = draw(2),
                                      .width = width,
                                      .plane = t->stride * t->height + draw(50)};
    t->n_elements = t->lead + (nchw ? n * t->finish.plane : t->stride * t->height) + 70;
    if (dtype != PSTK_U8)
        finish_table(t->table, dtype, n, mean, deviation);
    t->finish.table = dtype == PSTK_U8 ? NULL : t->table;
    t->finish.affine = draw(2) ? line_of(dtype) : NULL;
    t->memory = malloc(t->n_elements * t->size);
    if (t->memory)
        memset(t->memory, 0xee, t->n_elements * t->size);
    return t->memory ? 0 : -1;
}

/* Elements that are not what they should be, `want` being the whole u8 image. */
static uint64_t target_check(const struct target *t, const struct shape *s, const uint8_t *want)
{
    const struct pstk__finish *f = &t->finish;
    uint64_t n_bad = 0, n_found = 0, n_untouched = 0;
    for (uint32_t y = 0; y < t->height; y++)
        for (uint32_t x = 0; x < f->width; x++)
            for (uint32_t c = 0; c < f->channels; c++) {
                const uint32_t from = s->crop.left + (f->flip ? f->width - 1 - x : x);
                const size_t pixel = (size_t)(s->crop.top + y) * s->ow + from;
                const uint8_t v = want[pixel * f->channels + c];
                const uint64_t at =
                    t->lead + y * t->stride +
                    (f->layout == PSTK_NCHW ? c * f->plane + x : f->channels * x + c);
                const uint32_t element =
                    f->dtype == PSTK_U8 ? v : naive_element(t->table, f->dtype, 256 * c + v);
                n_bad += naive_element(t->memory, f->dtype, at) != element;
                /* the bytes outside must be as they were */
                memset(t->memory + at * t->size, 0xee, t->size);
                n_found++;
            }
    for (uint64_t i = 0; i < t->n_elements * t->size; i++)
        n_untouched += t->memory[i] == 0xee;
    return n_bad + (n_untouched != t->n_elements * t->size) + (n_found == 0);
}

/* Give rows in groups of a random number, each where nothing may be read before or behind them. */
static void give_rows(struct pstk__resize *r, const struct shape *s, const uint8_t *in)
{
    const uint32_t most[5] = {1, 4, 8, 16, UINT32_MAX}, group = most[draw(5)];
    const size_t size = (size_t)(r->x.end - r->x.begin) * s->channels;
    for (uint32_t y = r->y.begin; y < r->y.end;) {
        const uint32_t left = r->y.end - y, least = left < group ? left : group;
        const uint32_t n = draw(3) ? least : 1 + draw(least);
        const size_t stride = size + draw(2) * draw(100);
        uint8_t *first = draw(3) ? fence.end - stride * (n - 1) - size : fence.begin;
        for (uint32_t k = 0; k < n; k++)
            memcpy(first + k * stride, in + ((size_t)(y + k) * s->w + r->x.begin) * s->channels,
                   size);
        pstk__resize_rows(r, first, stride, n);
        memset(first, 0x55, stride * (n - 1) + size); /* borrowed for the call, no longer */
        y += n;
    }
}

static uint8_t *wanted(const uint8_t *in, const struct shape *s)
{
    return naive_resize_pixels(
        in, &(struct naive_shape){s->w, s->h, s->ow, s->oh, s->channels, s->filter});
}

/* Resize by `k` within exactly the promised arena, giving exactly the rows asked for. 0 when that
 * went as promised. */
static int resize(const struct pstk__pixel_kernels *k, const struct shape *s, const uint8_t *in,
                  struct pstk__finish finish, void *out, uint64_t out_stride)
{
    const struct pstk__resize_bounds bounds = {
        s->channels,   pstk__filter_set(s->filter), s->w, s->h, s->ow, s->oh, s->crop.width,
        s->crop.height};
    const struct pstk__resize_config config = {.channels = s->channels,
                                               .filter = s->filter,
                                               .in_width = s->w,
                                               .in_height = s->h,
                                               .out_width = s->ow,
                                               .out_height = s->oh,
                                               .crop = s->crop,
                                               .finish = finish,
                                               .out = out,
                                               .out_stride = out_stride};
    struct pstk__resize r;
    struct pstk__arena arena;
    if (pstk__arena_open(&arena, pstk__resize_scratch(&bounds)) < 0)
        return -1;
    arena.size = pstk__resize_scratch(&bounds); /* not the page that it was rounded up to */
    int bad = pstk__resize_begin(&r, &arena, k, &config) < 0;
    if (!bad) {
        give_rows(&r, s, in);
        bad = r.n_out != s->crop.height;
    }
    pstk__arena_close(&arena);
    return bad;
}

TEST(every_window_of_every_resize_equals_the_formulas_of_pillow_in_every_isa)
{
    for (uint32_t i = 0; i < 1500; i += test_stride_slow(5)) {
        const struct shape s = i & 1 ? draw_shape() : draw_scaled();
        uint8_t *in = pixels_of(s.w, s.h, s.channels, i % 6), *want = wanted(in, &s);
        CHECK(in && want);
        EACH_ISA(k)
        {
            struct target t;
            CHECK_EQ(target_open(&t, &s), 0);
            CHECK_EQ(resize(k, &s, in, t.finish, t.memory + t.lead * t.size, t.stride * t.size), 0);
            const uint64_t n_bad = target_check(&t, &s, want);
            if (n_bad)
                printf("# ISA %u: %u x %u x %u to %u x %u, crop %u %u %u %u, dtype %u, "
                       "layout %u, flip %u, filter %u\n",
                       k->isa, s.w, s.h, s.channels, s.ow, s.oh, s.crop.left, s.crop.top,
                       s.crop.width, s.crop.height, t.finish.dtype, t.finish.layout, t.finish.flip,
                       s.filter);
            CHECK_EQ(n_bad, 0);
            free(t.memory);
        }
        free(in);
        free(want);
    }
}

/* Four outputs of a group then have the same single input, perhaps the row's last byte. */
TEST(a_large_box_of_gray_reads_nothing_past_a_row)
{
    for (uint32_t w = 16; w < 40; w += 3)
        for (uint32_t ow = 3 * w; ow <= 9 * w; ow += 7) {
            const struct shape s = {w, 3, ow, 3, 1, {0, 0, ow, 3}, PSTK_FILTER_BOX};
            const struct pstk__finish f = {.channels = 1, .dtype = PSTK_U8, .width = ow};
            uint8_t *in = pixels_of(w, 3, 1, 1), *want = wanted(in, &s), *out = malloc(3 * ow);
            CHECK(in && want && out);
            EACH_ISA(k)
            for (uint32_t i = 0; i < 4; i++) {
                CHECK_EQ(resize(k, &s, in, f, out, ow), 0);
                CHECK(memcmp(out, want, 3 * ow) == 0);
            }
            free(in);
            free(want);
            free(out);
        }
}

/* Its one pixel is one input's, of weight 1; but Pillow multiplied by alpha and divided again. */
TEST(rgba_is_left_alone_only_where_the_image_has_its_size_already)
{
    const uint8_t in[16] = {200, 100, 50, 3, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 9, 8};
    struct shape s = {2, 2, 4, 4, 4, {0, 0, 1, 1}, 0};
    const struct pstk__finish f = {.channels = 4, .dtype = PSTK_U8, .width = 1};
    uint8_t *want = wanted(in, &s);
    CHECK(want && memcmp(want, in, 4) != 0);
    EACH_ISA(k)
    {
        uint8_t out[4] = {0};
        s.ow = s.oh = 4;
        CHECK_EQ(resize(k, &s, in, f, out, 4), 0);
        CHECK(memcmp(out, want, 4) == 0);
        s.ow = s.oh = 2;
        CHECK_EQ(resize(k, &s, in, f, out, 4), 0);
        CHECK(memcmp(out, in, 4) == 0);
    }
    free(want);
}

TEST(the_greatest_sums_do_not_overflow)
{
    /* White pixels on one: the weights' rounding adds up most. */
    const struct shape shapes[4] = {{65535, 1, 1, 1, 0, {0, 0, 1, 1}, 0},
                                    {1, 65535, 1, 1, 0, {0, 0, 1, 1}, 0},
                                    {65535, 1, 3, 1, 0, {0, 0, 3, 1}, 0},
                                    {3, 20000, 1, 7, 0, {0, 0, 1, 7}, 0}};
    for (uint32_t i = 0; i < 4 * 3 * 7; i++) {
        struct shape shape = shapes[i / 21], *s = &shape;
        s->channels = all_channels[i % 3];
        s->filter = i / 3 % 7;
        uint8_t *in = pixels_of(s->w, s->h, s->channels, 2), *want = wanted(in, s);
        CHECK(in && want);
        EACH_ISA(k)
        {
            uint8_t out[28] = {0};
            const struct pstk__finish f = {
                .channels = s->channels, .dtype = PSTK_U8, .width = s->ow};
            CHECK_EQ(resize(k, s, in, f, out, (uint64_t)s->ow * s->channels), 0);
            CHECK(memcmp(out, want, (size_t)s->ow * s->oh * s->channels) == 0);
        }
        free(want);
        free(in);
    }
}

static uint8_t axis_memory[2][2 << 20];

TEST(an_axis_reads_no_more_than_it_needs)
{
    for (int i = 0; i < 3000; i++) {
        struct pstk__arena arena = {
            .base = axis_memory[0], .size = sizeof axis_memory[0], .open = sizeof axis_memory[0]};
        const uint32_t in = draw_side(), out = draw(5) ? draw_side() : in;
        const uint32_t first_out = draw(out), n = 1 + draw(out - first_out);
        struct pstk__axis a;
        const struct pstk__axis_config config = {
            .filter = 1 + draw(6), .in = in, .out = out, .first_out = first_out, .n_out = n};
        CHECK_EQ(pstk__axis_init(&a, &arena, isa(PSTK_KERNELS_C), &config), 0);
        CHECK(a.begin == a.first[0] && a.end == a.first[n - 1] + a.n[n - 1] && a.end <= in);
        const int is_signed = config.filter >= PSTK_FILTER_BICUBIC && in != out;
        CHECK_EQ(a.is_signed, is_signed);
        uint32_t widest = 0;
        for (uint32_t k = 0; k < n; k++) {
            int64_t sum = 0, magnitudes = 0;
            CHECK(a.n[k] >= 1 && a.n[k] <= a.n_taps);
            CHECK(k == 0 || (a.first[k] >= a.first[k - 1] &&
                             a.first[k] + a.n[k] >= a.first[k - 1] + a.n[k - 1]));
            for (uint32_t t = 0; t < (a.n_taps + 3) / 4 * 4; t++) {
                const int32_t w = a.weights[(size_t)t * n + k];
                CHECK((w >= 0 || is_signed) && (t < a.n[k] || w == 0));
                sum += w;
                magnitudes += labs(w);
            }
            CHECK(llabs(sum - (1 << 22)) <= (a.n[k] + 1) / 2);
            CHECK(magnitudes < 1 << 23);
            widest = a.n[k] > widest ? a.n[k] : widest;
        }
        CHECK_EQ(widest, a.n_taps);
        if (in == out)
            CHECK(a.n_taps == 1 && a.begin == first_out && a.end == first_out + n);
    }
}

TEST(weights_are_the_same_bits_in_every_isa)
{
    for (int i = 0; i < 3000; i++) {
        const uint32_t in = draw(50) ? draw_side() : 1 + draw(60000);
        const uint32_t out = in > 600 ? 200 + draw(800) : draw_side();
        const uint32_t first_out = draw(out), n = 1 + draw(out - first_out);
        const struct pstk__axis_config config = {
            .filter = 1 + draw(6), .in = in, .out = out, .first_out = first_out, .n_out = n};
        EACH_ISA(k)
        {
            struct pstk__arena arenas[2] = {{.base = axis_memory[0],
                                             .size = sizeof axis_memory[0],
                                             .open = sizeof axis_memory[0]},
                                            {.base = axis_memory[1],
                                             .size = sizeof axis_memory[1],
                                             .open = sizeof axis_memory[1]}};
            struct pstk__axis c, a;
            CHECK_EQ(pstk__axis_init(&c, &arenas[0], isa(PSTK_KERNELS_C), &config), 0);
            memset(axis_memory[1], 0xee, arenas[0].used);
            CHECK_EQ(pstk__axis_init(&a, &arenas[1], k->general, &config), 0);
            CHECK(a.n_taps == c.n_taps && a.begin == c.begin && a.end == c.end);
            CHECK(memcmp(a.first, c.first, n * sizeof *a.first) == 0);
            CHECK(memcmp(a.n, c.n, n * sizeof *a.n) == 0);
            CHECK(memcmp(a.weights, c.weights,
                         (size_t)(a.n_taps + 3) / 4 * 4 * n * sizeof *a.weights) == 0);
        }
    }
}

/* Inputs whose weights differ from the formulas of Pillow with the C library's sin and cos. */
static uint32_t n_wrong(const struct pstk__axis *axis, const struct pstk__axis_config *c)
{
    static int32_t weights[1024];
    struct naive_taps taps = {.weights = weights};
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_out; i++) {
        naive_taps(&taps, c->filter, c->in, c->out, i);
        n += axis->first[i] != taps.first || axis->n[i] > taps.n;
        for (uint32_t k = 0; k < taps.n; k++)
            n += (k < axis->n[i] ? axis->weights[(size_t)k * c->n_out + i] : 0) != weights[k];
    }
    return n;
}

TEST(weights_equal_those_of_pillow_for_all_sizes)
{
    static const uint32_t outs[6] = {3, 32, 100, 224, 256, 299};
    for (uint32_t i = 0; i < 5 * 6 * 600; i += test_stride_slow(7)) {
        const uint32_t in = 1 + i / 30, out = outs[i % 6];
        const struct pstk__axis_config config = {
            .filter = PSTK_FILTER_BOX + i / 6 % 5, .in = in, .out = out, .n_out = out};
        struct pstk__arena arena = {
            .base = axis_memory[0], .size = sizeof axis_memory[0], .open = sizeof axis_memory[0]};
        struct pstk__axis a;
        if (in == out)
            continue;
        CHECK_EQ(pstk__axis_init(&a, &arena, isa(PSTK_KERNELS_C), &config), 0);
        CHECK_EQ(n_wrong(&a, &config), 0);
    }
}

TEST(an_arena_too_small_is_an_error)
{
    static uint8_t memory[1 << 18] __attribute__((aligned(64)));
    EACH_ISA(k)
    {
        int rc = PSTK_ENOMEM;
        size_t size = 0;
        for (; size <= sizeof memory && rc != 0; size += 64) {
            struct pstk__arena arena = {.base = memory, .size = size, .open = size};
            struct pstk__resize r;
            const struct pstk__resize_config c = {.channels = 4,
                                                  .in_width = 50,
                                                  .in_height = 50,
                                                  .out_width = 40,
                                                  .out_height = 40,
                                                  .crop = {0, 0, 40, 40},
                                                  .finish = {.channels = 4, .dtype = PSTK_U8}};
            rc = pstk__resize_begin(&r, &arena, k, &c);
            CHECK(rc == 0 || rc == PSTK_ENOMEM);
            CHECK(size != 0 || rc == PSTK_ENOMEM);
        }
        CHECK_EQ(rc, 0);
    }
}

TEST(the_scratch_size_of_bounds_is_enough_for_any_resize_within_them)
{
    static const uint16_t table[1024];
    for (int i = 0; i < 300; i++) {
        const struct shape s = i & 1 ? draw_shape() : draw_scaled();
        const struct pstk__resize_bounds bounds = {.channels = s.channels,
                                                   .filters = pstk__filter_set(s.filter) |
                                                              pstk__filter_set(draw(8)),
                                                   .max_in_width = s.w + draw(50),
                                                   .max_in_height = s.h + draw(50),
                                                   .min_out_width = 1 + draw(s.ow),
                                                   .min_out_height = 1 + draw(s.oh),
                                                   .max_crop_width = s.crop.width + draw(9),
                                                   .max_crop_height = s.crop.height + draw(9)};
        EACH_ISA(k)
        {
            struct pstk__arena arena;
            struct pstk__resize r;
            const struct pstk__finish f = {
                .channels = s.channels, .dtype = PSTK_F16, .table = table};
            const struct pstk__resize_config c = {.channels = s.channels,
                                                  .filter = s.filter,
                                                  .in_width = s.w,
                                                  .in_height = s.h,
                                                  .out_width = s.ow,
                                                  .out_height = s.oh,
                                                  .crop = s.crop,
                                                  .finish = f};
            CHECK_EQ(pstk__arena_open(&arena, pstk__resize_scratch(&bounds)), 0);
            arena.size = pstk__resize_scratch(&bounds);
            CHECK_EQ(pstk__resize_begin(&r, &arena, k, &c), 0);
            pstk__arena_close(&arena);
        }
    }
}

/* ---- finish -----------------------------------------------------------------------------------
 */

TEST(tables_hold_what_the_float_steps_give)
{
    for (uint32_t k = 0; k < 18; k++) {
        const uint32_t dtype = dtypes[1 + k / 6], channels = all_channels[k % 3];
        const float *m = k / 3 % 2 ? NULL : mean;
        uint32_t table[1025];
        memset(table, 0xee, sizeof table);
        finish_table(table, dtype, channels, m, deviation);
        for (uint32_t i = 0; i < 256 * channels; i++)
            CHECK_EQ(naive_element(table, dtype, i),
                     naive_value(dtype, (uint8_t)i, i / 256, m, deviation));
        CHECK_EQ(naive_element(table, dtype, 256 * channels),
                 pstk_dtype_size(dtype) == 2 ? 0xeeee : 0xeeeeeeee);
    }
}

/* Elements of a table that its line does not give. */
static int line_errors(const struct pstk__affine *a, const uint16_t *table, uint32_t dtype)
{
    int n_bad = 0;
    for (uint32_t i = 0; i < 1024; i++) {
        const float v = fmaf((float)(i % 256), a->scale[i / 256], a->offset[i / 256]);
        n_bad += table[i] != (dtype == PSTK_F16 ? pstk__f16_from_f32(v) : pstk__bf16_from_f32(v));
    }
    return n_bad;
}

TEST(a_line_gives_every_element_of_its_table)
{
    uint32_t n_exact = 0;
    for (uint32_t i = 0; i < 30; i++) {
        const uint32_t dtype = i & 1 ? PSTK_F16 : PSTK_BF16;
        float m[4], d[4];
        for (uint32_t c = 0; c < 4; c++) {
            m[c] = i < 4 ? mean[c] : (float)draw(1000) / 999;
            d[c] = i < 4 ? deviation[c] : ((float)draw(1000) + 1) / 1000;
        }
        uint16_t table[1024];
        struct pstk__affine a;
        finish_table(table, dtype, 4, i < 2 ? NULL : m, d);
        pstk__affine_init(&a, table, dtype, 4);
        CHECK(a.exact == 0 || line_errors(&a, table, dtype) == 0);
        CHECK(a.exact || i >= 4); /* the tables that nearly all have */
        n_exact += a.exact;
    }
    CHECK(n_exact >= 20);
}

TEST(a_table_that_no_line_gives_has_none)
{
    const float far[4] = {0}, small[4] = {1e-5f, 1e-5f, 1e-5f, 1e-5f}; /* infinities as f16 */
    uint16_t table[1024];
    uint32_t wide[1024];
    struct pstk__affine a;
    finish_table(table, PSTK_F16, 4, far, small);
    pstk__affine_init(&a, table, PSTK_F16, 4);
    CHECK_EQ(a.exact, 0);
    finish_table(wide, PSTK_F32, 4, mean, deviation);
    pstk__affine_init(&a, wide, PSTK_F32, 4);
    CHECK_EQ(a.exact, 0);
    for (uint32_t i = 0; i < 20; i++) { /* one element off by one */
        const uint32_t dtype = i & 1 ? PSTK_F16 : PSTK_BF16;
        const uint32_t channels = all_channels[i % 3];
        finish_table(table, dtype, channels, mean, deviation);
        table[draw(channels) * 256 + 1 + draw(254)] ^= 8;
        pstk__affine_init(&a, table, dtype, channels);
        CHECK_EQ(a.exact, 0);
    }
}

/* One row through finish_row, input and output between fences or canaries. 0 when all is right. */
static int finish(const struct pstk__pixel_kernels *k, struct pstk__finish f, int ready)
{
    const uint32_t size = pstk_dtype_size(f.dtype), nchw = f.layout == PSTK_NCHW;
    const uint32_t n = f.channels * (nchw ? (uint32_t)f.plane : f.width);
    const uint32_t n_bytes = f.channels * f.width;
    static uint8_t lookup[PSTK__LOOKUP_SIZE] __attribute__((aligned(64)));
    uint8_t *in = fence.end - n_bytes, *out = malloc((size_t)(n + 2) * size);
    int n_bad = !out;
    for (uint32_t x = 0; x < n_bytes; x++)
        in[x] = (uint8_t)draw(256);
    if (ready && f.dtype != PSTK_U8) {
        k->lookup_init(lookup, &f);
        f.lookup = lookup;
    }
    if (out) {
        memset(out, 0xee, (size_t)(n + 2) * size);
        k->finish_row(out + size, in, &f);
    }
    for (uint32_t e = 0; out && e < n + 2; e++) {
        const uint32_t i = e - 1, x = nchw ? i % (uint32_t)f.plane : i / f.channels;
        const uint32_t c = nchw ? i / (uint32_t)f.plane : i % f.channels;
        uint32_t want = 0;
        memset(&want, 0xee, size);
        if (e > 0 && e < n + 1 && x < f.width) {
            const uint8_t v = in[(f.flip ? f.width - 1 - x : x) * f.channels + c];
            want = f.dtype == PSTK_U8 ? v : naive_element(f.table, f.dtype, 256 * c + v);
        }
        n_bad += naive_element(out, f.dtype, e) != want;
    }
    free(out);
    return n_bad;
}

TEST(finished_rows_are_mirrored_laid_out_and_cast_and_nothing_next_to_them_is_written)
{
    for (uint32_t i = 0; i < 3 * 4 * 2 * 2 * 210; i += test_stride_slow(5)) {
        const uint32_t width = 1 + i / 48, channels = all_channels[i / 16 % 3];
        uint32_t table[1024];
        const uint32_t dtype = dtypes[i & 3], usual = draw(2);
        for (uint32_t e = 0; e < 1024; e++)
            table[e] = draw(UINT32_MAX); /* any table, whatever it was made for */
        if (usual && dtype != PSTK_U8)
            finish_table(table, dtype, channels, mean, deviation);
        EACH_ISA(k)
        {
            const struct pstk__finish f = {.channels = channels,
                                           .dtype = dtype,
                                           .layout = i >> 3 & 1 ? PSTK_NCHW : PSTK_NHWC,
                                           .flip = i >> 2 & 1,
                                           .width = width,
                                           .plane = width + draw(4),
                                           .table = table,
                                           .affine = usual ? line_of(dtype) : NULL};
            const int n_bad = finish(k, f, (int)draw(2));
            if (n_bad)
                printf("# ISA %u: width %u, channels %u, dtype %u, layout %u, flip %u\n", k->isa,
                       width, channels, dtype, f.layout, f.flip);
            CHECK_EQ(n_bad, 0);
        }
    }
}

/* ---- alpha -------------------------------------------------------------------------------------
 */

TEST(colours_times_alpha_and_back_are_those_of_pillow_for_every_colour_and_alpha)
{
    enum { N = 65536 + 60 }; /* every pair, then rows of every length */
    uint8_t *in = malloc(4 * N), *want = malloc(4 * N), *out = malloc(4 * N + 1);
    CHECK(in && want && out);
    for (uint32_t i = 0; i < 4 * N; i++)
        in[i] = (uint8_t)(i % 4 == 3 ? i >> 10 : (i >> 2) + 37 * (i % 4));
    EACH_ISA(k)
    {
        for (uint32_t n = 0; n <= 61; n++) {
            const uint32_t n_pixels = n < 61 ? n : N;
            const size_t size = (size_t)4 * n_pixels;
            uint8_t *row = n < 61 ? fence.end - size : in; /* nothing past the row is read */
            memmove(row, in + (n < 61 ? 4 * draw(60000) : 0), size);
            naive_premultiply(want, row, size);
            out[size] = 0xee;
            k->premultiply(out, row, n_pixels);
            CHECK(memcmp(out, want, size) == 0 && out[size] == 0xee);
            memcpy(out, row, size);
            memcpy(want, row, size);
            naive_unpremultiply(want, size);
            k->unpremultiply(out, n_pixels);
            CHECK(memcmp(out, want, size) == 0 && out[size] == 0xee);
        }
    }
    free(in);
    free(want);
    free(out);
}

/* ---- ISAs ---------------------------------------------------------------------------------
 */

TEST(the_isa_asked_for_is_the_one_given)
{
    CHECK(isa(PSTK_KERNELS_AUTO) != NULL);
    CHECK(isa(PSTK_KERNELS_C) != NULL);
    for (uint32_t v = PSTK_KERNELS_C; v <= PSTK_KERNELS_NEON; v++)
        CHECK(isa(v) == NULL || isa(v)->isa == v);
    CHECK(isa(99) == NULL);
}

#if defined(__x86_64__)
TEST(the_best_isa_that_the_cpu_runs_is_chosen)
{
    const uint32_t best = pstk__cpu_kernels();
    CHECK_EQ(isa(PSTK_KERNELS_AUTO)->isa, best);
    for (uint32_t v = PSTK_KERNELS_C; v <= PSTK_KERNELS_NEON; v++)
        CHECK_EQ(isa(v) != NULL, pstk__kernels_run(v));
}
#endif

int main(void)
{
    const struct test_case cases[] = {
        CASE(every_window_of_every_resize_equals_the_formulas_of_pillow_in_every_isa),
        CASE(a_large_box_of_gray_reads_nothing_past_a_row),
        CASE(rgba_is_left_alone_only_where_the_image_has_its_size_already),
        CASE(the_greatest_sums_do_not_overflow),
        CASE(an_axis_reads_no_more_than_it_needs),
        CASE(weights_are_the_same_bits_in_every_isa),
        CASE(weights_equal_those_of_pillow_for_all_sizes),
        CASE(an_arena_too_small_is_an_error),
        CASE(the_scratch_size_of_bounds_is_enough_for_any_resize_within_them),
        CASE(tables_hold_what_the_float_steps_give),
        CASE(a_line_gives_every_element_of_its_table),
        CASE(a_table_that_no_line_gives_has_none),
        CASE(finished_rows_are_mirrored_laid_out_and_cast_and_nothing_next_to_them_is_written),
        CASE(colours_times_alpha_and_back_are_those_of_pillow_for_every_colour_and_alpha),
        CASE(the_isa_asked_for_is_the_one_given),
#if defined(__x86_64__)
        CASE(the_best_isa_that_the_cpu_runs_is_chosen),
#endif
    };
    if (fence_open((size_t)16 << 20) < 0)
        return 1;
    return RUN_CASES(cases);
}
