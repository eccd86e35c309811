/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of operations at random, in any order. The oracle draws the same fixed operations and
 * applies them to whole images, one after the other. The worker's arena has exactly the bytes that
 * the plan asks for, so a bound that is too low fails.
 */
#include "support/sample_fixture.h"
#include "support/test.h"

#include <math.h>

#define MAX_OPS 6
#define N_LISTS 600

static uint32_t state = 7;

static uint32_t below(uint32_t n)
{
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(state >> 8) * n >> 24);
}

static struct pstk_op with_fill(struct pstk_op op)
{
    for (int c = 0; c < 3; c++)
        op.fill[c] = (uint8_t)below(256);
    return op;
}

/* A crop that every image has room for. */
static struct pstk_op padded_crop(uint32_t height, uint32_t width)
{
    struct pstk_op op = pstk_random_crop(height, width, below(5));
    op.params.random_crop.pad_if_needed = 1;
    return op;
}

static struct pstk_op expanded(struct pstk_op rotation)
{
    rotation.params.random_rotation.expand = 1;
    return with_fill(rotation);
}

/* Add random bits to every byte: a pstk_pixels_fn. */
static int add_noise(void *user, uint8_t *pixels, const struct pstk_shape *shape,
                     const uint64_t *random, void *scratch, struct pstk_error *error)
{
    const uint32_t n = shape->height * shape->width * shape->channels;
    uint64_t *sums = scratch;
    (void)user;
    (void)error;
    memcpy(sums, random, 2 * sizeof *sums);
    for (uint32_t i = 0; i < n; i++) {
        sums[i % 2] = sums[i % 2] * 6364136223846793005u + 1;
        pixels[i] = (uint8_t)(pixels[i] + (sums[i % 2] >> 60));
    }
    return 0;
}

/* One of the operations that gray and RGB take. Its children, if it has any, are fixed. */
static struct pstk_op any_op(void)
{
    static const struct pstk_op children[2] = {
        {.kind = PSTK_OP_INVERT}, {.kind = PSTK_OP_SHARPNESS, .params.sharpness = {1.7}}};
    const uint32_t h = 1 + below(40), w = 1 + below(40), sides[2] = {h, w};
    switch (below(38)) {
    case 0:
        return pstk_random_resized_crop(h, w);
    case 1:
        return pstk_resize(h, w);
    case 2:
        return pstk_center_crop(h, w);
    case 3:
        return pstk_random_flip(0.5);
    case 4:
        return pstk_color_jitter(0.4, 0.4, 0.4, 0.1);
    case 5:
        return pstk_random_apply(children, 2, 0.5);
    case 6:
        return pstk_random_choice(children, 2);
    case 7:
        return pstk_random_order(children, 2);
    case 8:
        return with_fill(pstk_random_rotation(-180, 180, below(2) ? PSTK_FILTER_BILINEAR : 0));
    case 9:
        return with_fill(pstk_random_perspective(0.5, 0.7, PSTK_FILTER_BICUBIC));
    case 10:
        return pstk_random_gaussian_blur(1, 0.1, 2);
    case 11:
        return pstk_random_box_blur(0, 3);
    case 12:
        return with_fill(pstk_trivial_augment_wide(31, PSTK_FILTER_BILINEAR));
    case 13:
        return pstk_rand_augment(3, 9, 31, 0);
    case 14:
        return pstk_auto_augment(below(3), PSTK_FILTER_NEAREST);
    case 15:
        return with_fill(pstk_rotate(below(720), PSTK_FILTER_BICUBIC, 1));
    case 16:
        return pstk_grayscale(3);
    case 17:
        return pstk_resize_shorter(h);
    case 18:
        return pstk_random_vertical_flip(0.5);
    case 19:
        return with_fill(padded_crop(h, w));
    case 20:
        return with_fill(pstk_pad(below(4), below(4), below(4), below(4), PSTK_PAD_CONSTANT));
    case 21:
        return pstk_adjust(PSTK_OP_EQUALIZE, 0);
    case 22:
        return pstk_resize_longest(h);
    case 23:
        return with_fill(pstk_pad_to_size(200, 200, below(2)));
    case 24:
        return with_fill(pstk_letterbox(h, w, below(2)));
    case 25:
        return pstk_corner_crop(1, 1, below(5));
    case 26:
        return pstk_scale_jitter(h, w, 0.3, 1.5);
    case 27:
        return with_fill(pstk_random_zoom_out(1, 1.5, 0.7));
    case 28:
        return pstk_random_shortest_size(sides, 2, 50);
    case 29:
        return pstk_random_resize(h, h + w);
    case 30:
        return expanded(pstk_random_rotation(-180, 180, 0));
    case 31:
    case 32:
        return with_fill(pstk_crop_at((int32_t)below(60) - 30, (int32_t)below(60) - 30, h, w));
    case 33:
        return pstk_adjust(PSTK_OP_CONTRAST, 0.5 + below(2));
    case 34:
        return pstk_random_photometric_distort(0.5);
    case 35:
        return pstk_random_jpeg(1 + below(50), 51 + below(50));
    case 36:
        return pstk_call(add_noise, NULL, 16);
    default:
        return pstk_adjust(PSTK_OP_POSTERIZE, below(9));
    }
}

/* ---- the oracle ------------------------------------------------------------------------------ */

/* An image under way. */
struct steps {
    uint8_t *pixels; /* owned; NULL: an operation refused it */
    struct pstk_shape shape;
    int refused; /* by an operation, while drawing; else 0 */
};

/* Apply one operation. */
static void step(struct steps *s, const struct pstk_op *op)
{
    struct pstk_shape after;
    uint8_t *next = NULL;
    if (pstk_op_apply(op, PSTK_KERNELS_C, s->pixels, &s->shape, NULL, &after, NULL) == 0) {
        next = malloc((size_t)after.width * after.height * after.channels);
        if (pstk_op_apply(op, PSTK_KERNELS_C, s->pixels, &s->shape, next, &after, NULL) < 0) {
            free(next);
            next = NULL;
        }
    }
    free(s->pixels);
    *s = (struct steps){next, after, 0};
}

/* Apply the drawn operations one by one. */
static struct steps by_steps(struct image m, const struct pstk_output *o, uint64_t id)
{
    const struct pstk_draw draw = {
        .size = sizeof draw, .seed = SEED, .epoch = EPOCH, .sample_id = id};
    struct pstk_op drawn[32];
    struct steps s = {malloc((size_t)m.width * m.height * 3),
                      {.height = m.height, .width = m.width, .channels = 3},
                      0};
    const int n = pstk_ops_draw(o->image.ops, o->image.n_ops, &s.shape, &draw, drawn, 32, NULL);
    memcpy(s.pixels, m.rgb, (size_t)m.width * m.height * 3);
    if (n > 32)
        abort();
    if (n < 0) {
        free(s.pixels);
        return (struct steps){.refused = n};
    }
    for (int i = 0; i < n && s.pixels; i++)
        step(&s, &drawn[i]);
    return s;
}

/* x / 255, as outputs of f32 without Normalize; element i of NHWC or NCHW. */
static int equal(const void *row, const struct pstk_output *o, const struct steps *s)
{
    const struct pstk_shape *shape = &s->shape;
    const uint8_t *pixels = s->pixels;
    const size_t area = (size_t)shape->width * shape->height, n = area * shape->channels;
    for (size_t i = 0; i < n; i++) {
        const size_t at = o->image.layout == PSTK_NHWC ? i : i % area * shape->channels + i / area;
        const int same = o->dtype == PSTK_U8
                             ? ((const uint8_t *)row)[i] == pixels[at]
                             : ((const float *)row)[i] == (float)pixels[at] / 255.0f;
        if (!same)
            return 0;
    }
    return 1;
}

/* Compare one sample. A list may make a picture too large for an image, as when a resize of the
 * shorter side follows a crop of 40 x 1, or too large to be padded: then both fail. */
static void compare(const struct fixture *f, struct image m, const struct pstk_output *o,
                    uint64_t id, uint32_t *n_rows)
{
    struct run r;
    const struct steps s = by_steps(m, o, id);
    const int rc = run_all(&r, f, o, 1, id);
    const int wanted = s.pixels ? 0 : s.refused < 0 ? s.refused : PSTK_EFBIG;
    const int is_right = rc == wanted && (rc < 0 || equal(r.rows[0].data, o, &s));
    if (!is_right) {
        printf("# %d: %s\n", rc, r.err.message);
        for (uint32_t k = 0; k < o->image.n_ops; k++)
            printf("# op %u\n", o->image.ops[k].kind);
    }
    *n_rows += rc == 0;
    run_close(&r);
    free(s.pixels);
    CHECK(is_right);
}

static void lists_on(const struct fixture *f, struct image m, uint32_t exif)
{
    uint32_t n_rows = 0;
    for (int i = 0; i < N_LISTS && !test_state.failed; i++) {
        struct pstk_op ops[MAX_OPS + 1];
        const uint32_t n = 1 + below(MAX_OPS);
        for (uint32_t k = 0; k < n; k++)
            ops[k] = any_op();
        ops[n] = below(2) ? pstk_resize(1 + below(30), 1 + below(30))
                          : pstk_center_crop(1 + below(50), 1 + below(50));
        const struct pstk_output o = {.field = "img",
                                      .kind = PSTK_OUTPUT_IMAGE,
                                      .dtype = below(2) ? PSTK_U8 : PSTK_F32,
                                      .image.layout = below(2),
                                      .image.n_ops = n + 1,
                                      .image.ops = ops,
                                      .image.exif_orientation = exif};
        compare(f, m, &o, (uint64_t)i, &n_rows);
    }
    CHECK(test_state.failed || n_rows > N_LISTS / 2);
}

TEST(any_list_of_operations_equals_its_steps)
{
    static const uint32_t sizes[][2] = {{60, 47}, {33, 80}, {5, 9}, {1, 3}};
    for (int i = 0; i < 4 && !test_state.failed; i++) {
        struct fixture f;
        struct image m = image_make(sizes[i][0], sizes[i][1]);
        CHECK_EQ(fixture_open(&f, m.rgb, (uint64_t)m.width * m.height * 3, PSTK_ENCODING_PIXELS,
                              m.width, m.height),
                 0);
        lists_on(&f, m, 0);
        free(m.rgb);
        fixture_close(&f);
    }
}

/* Two outputs of one field, each with a picture of its own, share one decode. */
TEST(outputs_with_pictures_do_not_disturb_each_other)
{
    const struct pstk_op a[] = {pstk_random_resized_crop(20, 30), pstk_rand_augment(2, 9, 31, 3)};
    const struct pstk_op b[] = {pstk_color_jitter(1, 1, 1, 0.5), pstk_center_crop(70, 9)};
    const struct pstk_op c[] = {pstk_resize(8, 8)};
    const struct pstk_output outputs[3] = {
        {.name = "a", .field = "img", .kind = PSTK_OUTPUT_IMAGE, .image.ops = a, .image.n_ops = 2},
        {.name = "b", .field = "img", .kind = PSTK_OUTPUT_IMAGE, .image.ops = b, .image.n_ops = 2},
        {.name = "c", .field = "img", .kind = PSTK_OUTPUT_IMAGE, .image.ops = c, .image.n_ops = 1}};
    struct fixture f;
    struct image m = image_make(60, 47);
    CHECK_EQ(fixture_open(&f, m.rgb, 60 * 47 * 3, PSTK_ENCODING_PIXELS, 60, 47), 0);
    for (uint64_t id = 0; id < 50 && !test_state.failed; id++) {
        struct run r;
        CHECK_EQ(run_all(&r, &f, outputs, 3, id), 0);
        for (int k = 0; k < 3; k++) {
            struct pstk_output o = outputs[k];
            const struct steps s = by_steps(m, &o, id);
            o.dtype = PSTK_U8;
            const int is_equal = s.pixels && equal(r.rows[k].data, &o, &s);
            free(s.pixels);
            CHECK(is_equal);
        }
        run_close(&r);
    }
    free(m.rgb);
    fixture_close(&f);
}

TEST(an_operation_that_cannot_be_drawn_gives_its_code)
{
    const uint32_t side = 4;
    const struct pstk_op ops[] = {pstk_random_shortest_size(&side, 1, 0), pstk_resize(9, 9)};
    const struct pstk_output o = {
        .field = "img", .kind = PSTK_OUTPUT_IMAGE, .image.ops = ops, .image.n_ops = 2};
    struct fixture f;
    struct run r;
    struct image m = image_make(70, 4);
    CHECK_EQ(fixture_open(&f, m.rgb, 70 * 4 * 3, PSTK_ENCODING_PIXELS, 70, 4), 0);
    CHECK_EQ(run_all(&r, &f, &o, 1, 1), PSTK_EFBIG);
    CHECK(strstr(r.err.message, "resizing the shorter side to 4 pixels"));
    run_close(&r);
    free(m.rgb);
    fixture_close(&f);
}

/* The resize is in the prefix, and its picture fits the memory of a later one; but the image is
 * longer than the bounds of the resize foresee. */
TEST(an_image_that_is_too_long_is_a_bad_sample)
{
    const struct pstk_op ops[] = {pstk_resize_shorter(4), pstk_adjust(PSTK_OP_INVERT, 0),
                                  pstk_resize(200, 200)};
    const struct pstk_output o = {
        .field = "img", .kind = PSTK_OUTPUT_IMAGE, .image.ops = ops, .image.n_ops = 3};
    static const struct {
        uint32_t width;
        int code;
    } list[] = {{64, 0}, {65, PSTK_EFBIG}, {600, PSTK_EFBIG}};
    for (int i = 0; i < 3; i++) {
        struct fixture f;
        struct run r;
        struct image m = image_make(list[i].width, 4);
        CHECK_EQ(fixture_open(&f, m.rgb, (uint64_t)m.width * m.height * 3, PSTK_ENCODING_PIXELS,
                              m.width, m.height),
                 0);
        CHECK_EQ(run_all(&r, &f, &o, 1, 1), list[i].code);
        run_close(&r);
        free(m.rgb);
        fixture_close(&f);
    }
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(any_list_of_operations_equals_its_steps),
        CASE(an_image_that_is_too_long_is_a_bad_sample),
        CASE(an_operation_that_cannot_be_drawn_gives_its_code),
        CASE(outputs_with_pictures_do_not_disturb_each_other),
    };
    return RUN_CASES(cases);
}
