/* SPDX-License-Identifier: Apache-2.0 */
/* The oracle decodes the whole image, applies the operations one by one to whole images, and
 * computes every element by float steps. */
#include "image/image.h"
#include "support/sample_fixture.h"
#include "support/jpeg_writer.h"
#include "support/naive_image.h"
#include "support/test.h"

/* ---- allocation and decoding, counted ----------------------------------------------------------
 */

static uint64_t n_allocations, n_decodes;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
const struct pstk__image_decoder *__real_pstk__image_decoder(uint32_t encoding);
const struct pstk__image_decoder *__wrap_pstk__image_decoder(uint32_t encoding);

void *__wrap_malloc(size_t size)
{
    n_allocations++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    n_allocations++;
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    n_allocations++;
    return __real_realloc(p, size);
}

const struct pstk__image_decoder *__wrap_pstk__image_decoder(uint32_t encoding)
{
    n_decodes++; /* sample.c asks once for each decode */
    return __real_pstk__image_decoder(encoding);
}

/* ---- images ------------------------------------------------------------------------------------
 */

static const float mean[3] = {0.485f, 0.456f, 0.406f}, dev[3] = {0.229f, 0.224f, 0.225f};

#define MAX_OPS 5
/* Pipelines of at most MAX_OPS operations; 0 ends the list. */
static uint32_t pipeline(uint32_t which, struct pstk_op ops[MAX_OPS])
{
    struct pstk_op crop = pstk_random_crop(20, 30, 3), none = pstk_adjust(PSTK_OP_POSTERIZE, 8);
    crop.params.random_crop.pad_if_needed = 1;
    const struct pstk_op lists[][MAX_OPS] = {
        {pstk_random_resized_crop(24, 31), pstk_random_flip(0.5)},
        {pstk_resize_shorter(40), pstk_center_crop(32, 33), pstk_random_flip(1)},
        {pstk_resize(19, 50)},
        {pstk_center_crop(20, 21)},
        {pstk_center_crop(130, 121), pstk_random_flip(1)},
        {pstk_resize_shorter(9), pstk_center_crop(30, 30), pstk_random_flip(0.5)},
        {pstk_random_resized_crop_range(60, 60, 0.9, 1, 0.2, 0.3), pstk_center_crop(70, 50),
         pstk_random_flip(1), pstk_center_crop(31, 22)},
        {pstk_random_resized_crop_range(1, 1, 0.0, 0.01, 0.5, 2)},
        {pstk_random_vertical_flip(1), pstk_center_crop(101, 80), pstk_random_flip(0.5)},
        {pstk_random_resized_crop(17, 12), pstk_random_vertical_flip(1), pstk_center_crop(20, 9)},
        {pstk_random_vertical_flip(1), pstk_resize(20, 30), pstk_random_vertical_flip(0.5)},
        {crop, pstk_random_flip(0.5), pstk_random_vertical_flip(0.5)},
        {crop, pstk_random_flip(0.5), pstk_random_vertical_flip(0.5), none},
        {pstk_resize(40, 28), pstk_crop_at(-3, 5, 50, 19), pstk_random_vertical_flip(1)},
        {pstk_resize(40, 28), pstk_crop_at(-3, 5, 50, 19), pstk_random_vertical_flip(1), none},
        {pstk_crop_at(3, -2, 9, 70), pstk_crop_at(-3, 1, 12, 12)},
        {pstk_crop_at(3, 2, 9, 20), pstk_crop_at(-3, -1, 8, 7)},
        {pstk_center_crop(80, 100)}, /* these are as large as the first image */
        {pstk_resize(80, 100), pstk_random_flip(1)},
        {pstk_center_crop(80, 100), pstk_random_vertical_flip(1)},
        {pstk_center_crop(40, 50), pstk_resize(80, 100)},
    };
    if (which >= sizeof lists / sizeof lists[0])
        return 0;
    memcpy(ops, lists[which], sizeof lists[which]);
    uint32_t n = 0;
    while (n < MAX_OPS && ops[n].kind != 0)
        n++;
    return n;
}

static const uint32_t dtypes[4] = {PSTK_U8, PSTK_F16, PSTK_BF16, PSTK_F32};

/* The pixels that a function saw, and its result. */
struct seen {
    struct pstk_sample sample;
    int result;
};

/* Copy the pixels, as far as the row goes: a pstk_decode_fn. */
static int copy_pixels(void *user, const struct pstk_sample *sample, void *row, uint64_t row_size)
{
    struct seen *seen = user;
    seen->sample = *sample;
    memset(sample->scratch, 1, sample->scratch_size);
    memcpy(row, sample->data, sample->data_size < row_size ? sample->data_size : row_size);
    return seen->result;
}

/* A callback with the ops of an image output. */
static struct pstk_output pixels_to(const struct pstk_output *image, struct seen *seen)
{
    struct pstk_output o = *image;
    o.name = "own";
    o.kind = PSTK_OUTPUT_CALLBACK;
    o.dtype = PSTK_U8;
    o.image.layout = 0;
    o.callback.decode = copy_pixels;
    o.callback.user = seen;
    o.callback.scratch_size = 100;
    return o;
}

/* Return whether a function gets the pixels of image output o that run r wrote for sample k. */
static int same_pixels(const struct fixture *f, const struct pstk_output *o, const struct run *r,
                       uint64_t k)
{
    struct seen seen = {.result = 0};
    struct run own;
    struct pstk_output outputs[2] = {pixels_to(o, &seen), *o};
    const struct pstk__output *image = &r->plan->outputs[0];
    const uint64_t shape[3] = {image->image.height, image->image.width, image->image.channels};
    const uint64_t size = shape[0] * shape[1] * shape[2];
    outputs[0].callback.n_dims = 3;
    memcpy(outputs[0].callback.shape, shape, sizeof shape);
    const int rc = run_all(&own, f, outputs, 2, k);
    const int same = rc == 0 && memcmp(own.rows[0].data, r->rows[0].data, size) == 0 &&
                     memcmp(own.rows[1].data, r->rows[0].data, size) == 0 &&
                     seen.sample.data_size == size && seen.sample.n_dims == 3 &&
                     seen.sample.dtype == PSTK_U8 &&
                     memcmp(seen.sample.shape, shape, sizeof shape) == 0;
    run_close(&own);
    return same;
}

/* Every pipeline, dtype and layout on one stored image whose upright decoded pixels are m. */
static void sweep(const struct fixture *f, struct image m, uint32_t exif)
{
    struct pstk_op ops[MAX_OPS + 1];
    uint32_t n;
    for (uint32_t p = 0; (n = pipeline(p, ops)) > 0; p++)
        for (uint32_t k = 0; k < 8; k++) {
            struct pstk_output o = {.field = "img",
                                    .kind = PSTK_OUTPUT_IMAGE,
                                    .dtype = dtypes[k & 3],
                                    .image.layout = k >> 2,
                                    .image.n_ops = n,
                                    .image.ops = ops,
                                    .image.exif_orientation = exif,
                                    .image.random_group = p};
            struct run r;
            if (o.dtype != PSTK_U8 && (p & 1) == 0)
                ops[o.image.n_ops++] = pstk_normalize(mean, dev);
            const int rc = run_all(&r, f, &o, 1, k);
            if (rc < 0)
                printf("# pipeline %u: %s\n", p, r.err.message);
            int equal = rc == 0 && naive_equal(m, &o, k, r.rows[0].data);
            if (equal && k == 0)
                equal = same_pixels(f, &o, &r, k);
            run_close(&r);
            if (!equal)
                printf("# pipeline %u, dtype %u, layout %u\n", p, o.dtype, o.image.layout);
            CHECK(equal);
        }
}

static const uint32_t sizes[][2] = {{100, 80}, {37, 90}, {1, 1}, {3, 200}, {64, 1}};

TEST(rows_of_raw_pixels_equal_the_oracle)
{
    for (int i = 0; i < 5 && !test_state.failed; i++) {
        struct fixture f;
        struct image m = image_make(sizes[i][0], sizes[i][1]);
        CHECK_EQ(fixture_open(&f, m.rgb, (uint64_t)m.width * m.height * 3, PSTK_ENCODING_PIXELS,
                              m.width, m.height),
                 0);
        sweep(&f, m, 0);
        if (!test_state.failed)
            sweep(&f, m, 1); /* raw pixels have no orientation */
        free(m.rgb);
        fixture_close(&f);
    }
}

TEST(rows_of_compressed_fields_equal_the_oracle)
{
    struct fixture f;
    struct image m = image_make(60, 50);
    CHECK_EQ(fixture_open(&f, m.rgb, 60 * 50 * 3, PSTK_ENCODING_PIXELS, 60, 50), 0);
    CHECK_EQ(view_compress(&f, IMG), 0);
    CHECK_EQ(fixture_lay(&f), 0);
    sweep(&f, m, 0);
    free(m.rgb);
    fixture_close(&f);
}

/* ---- JPEG and its orientation -------------------------------------------------------------------
 */

static void keep_rows(void *user, const uint8_t *rgb, uint64_t stride, uint32_t n_rows)
{
    struct image *m = user;
    for (uint32_t k = 0; k < n_rows; k++, rgb += stride) {
        memcpy(m->rgb + (size_t)m->height++ * m->width * 3, rgb, (size_t)m->width * 3);
    }
}

/* Full decode. */
static struct image decode_all(const uint8_t *data, size_t size, uint32_t width, uint32_t height)
{
    struct image m = {width, 0, malloc((size_t)width * height * 3)};
    struct pstk__arena arena;
    struct pstk__image_state *state = NULL;
    const struct pstk__image_info info = {PSTK_ENCODING_JPEG, width, height, 1};
    const struct pstk__box box = {0, 0, width, height};
    const struct pstk__row_sink sink = {keep_rows, &m, 3};
    if (pstk__arena_open(&arena, pstk__image_scratch(width, height)) == 0 &&
        pstk__image_state_open(&state, &arena, PSTK_KERNELS_AUTO, NULL) == 0)
        pstk__image_decode(
            state,
            &(const struct pstk__coded){pstk__image_decoder(PSTK_ENCODING_JPEG), data, size, &info},
            &box, &sink, NULL);
    pstk__image_state_close(state);
    pstk__arena_close(&arena);
    return m;
}

/* Return the file with an Exif segment that holds nothing but this orientation; owned. */
static uint8_t *with_orientation(const uint8_t *jpeg, size_t size, uint8_t orientation)
{
    const uint8_t segment[36] = {0xff, 0xe1, 0, 34, 'E', 'x', 'i', 'f', 0, 0,
                                 'M',  'M',  0, 42, 0,   0,   0,   8,   0, 1,
                                 1,    0x12, 0, 3,  0,   0,   0,   1,   0, orientation};
    uint8_t *out = malloc(size + sizeof segment);
    memcpy(out, jpeg, 2);
    memcpy(out + 2, segment, sizeof segment);
    memcpy(out + 2 + sizeof segment, jpeg + 2, size - 2);
    return out;
}

static struct image upright(struct image m, uint8_t orientation)
{
    static const uint8_t quarters[9] = {0, 0, 0, 2, 2, 1, 1, 3, 3};
    static const uint8_t flipped[9] = {0, 0, 1, 0, 1, 1, 0, 1, 0};
    struct image now = naive_crop(m, 0, 0, m.width, m.height), next;
    for (int i = 0; i < quarters[orientation]; i++, now = next) {
        next = naive_rotate(now);
        free(now.rgb);
    }
    if (flipped[orientation]) {
        next = naive_flip(now);
        free(now.rgb);
        now = next;
    }
    return now;
}

TEST(rows_of_jpegs_equal_the_oracle_in_all_eight_orientations)
{
    const struct jpeg_spec spec = {.width = 97,
                                   .height = 61,
                                   .n_components = 3,
                                   .h = 2,
                                   .v = 2,
                                   .interleaved = 1,
                                   .quality = 90};
    size_t size;
    uint8_t *jpeg = jpeg_write(&spec, &size);
    struct image coded = decode_all(jpeg, size, 97, 61);
    CHECK_EQ(coded.height, 61);
    for (uint8_t o = 1; o <= 8 && !test_state.failed; o++) {
        struct fixture f;
        uint8_t *file = with_orientation(jpeg, size, o);
        struct image m = upright(coded, o);
        CHECK_EQ(fixture_open(&f, file, size + 36, PSTK_ENCODING_JPEG, 97, 61), 0);
        sweep(&f, m, 1);
        if (!test_state.failed)
            sweep(&f, coded, 0); /* by default the tag is not looked at */
        fixture_close(&f);
        free(m.rgb);
        free(file);
    }
    free(coded.rgb);
    free(jpeg);
}

TEST(outputs_of_one_field_share_one_decode_and_do_not_disturb_each_other)
{
    const struct jpeg_spec spec = {.width = 120,
                                   .height = 90,
                                   .n_components = 3,
                                   .h = 2,
                                   .v = 1,
                                   .interleaved = 1,
                                   .quality = 90};
    const struct pstk_op a[] = {pstk_random_resized_crop(20, 20), pstk_random_flip(0.5)};
    const struct pstk_op b[] = {pstk_resize(30, 10)}, c[] = {pstk_center_crop(200, 30)};
    const struct pstk_output outputs[5] = {
        {.name = "a", .field = "img", .kind = 1, .dtype = PSTK_U8, .image = {.ops = a, .n_ops = 2}},
        {.field = "lab", .kind = PSTK_OUTPUT_SCALAR},
        {.name = "b",
         .field = "img",
         .kind = 1,
         .dtype = PSTK_F16,
         .image = {.ops = b, .n_ops = 1, .exif_orientation = 1}},
        {.name = "c",
         .field = "img",
         .kind = 1,
         .dtype = PSTK_F32,
         .image = {.ops = c, .n_ops = 1, .layout = PSTK_NCHW}},
        {.name = "a2",
         .field = "img",
         .kind = 1,
         .dtype = PSTK_U8,
         .image = {.ops = a, .n_ops = 2, .random_group = 1}}};
    size_t size;
    struct fixture f;
    struct run r;
    uint8_t *jpeg = jpeg_write(&spec, &size), *file = with_orientation(jpeg, size, 6);
    struct image coded = decode_all(jpeg, size, 120, 90), turned = upright(coded, 6);
    CHECK_EQ(fixture_open(&f, file, size + 36, PSTK_ENCODING_JPEG, 120, 90), 0);
    n_decodes = 0;
    for (uint64_t id = 0; id < 20; id++) {
        CHECK_EQ(run_all(&r, &f, outputs, 5, id), 0);
        CHECK_EQ(n_decodes, id + 1);
        CHECK(naive_equal(coded, &outputs[0], id, r.rows[0].data));
        CHECK_EQ(*(int32_t *)r.rows[1].data, -5);
        CHECK(naive_equal(turned, &outputs[2], id, r.rows[2].data));
        CHECK(naive_equal(coded, &outputs[3], id, r.rows[3].data));
        CHECK(naive_equal(coded, &outputs[4], id, r.rows[4].data));
        CHECK(memcmp(&r.crops[0], &r.crops[4], sizeof r.crops[0]) != 0);
        CHECK(memcmp(r.crops, &(struct pstk_crop[8]){{0}}[1], sizeof r.crops[0]) != 0);
        run_close(&r);
    }
    fixture_close(&f);
    free(coded.rgb);
    free(turned.rgb);
    free(file);
    free(jpeg);
}

TEST(crops_tell_what_was_shown)
{
    const struct pstk_op a[] = {pstk_random_resized_crop(8, 8), pstk_random_flip(1)};
    const struct pstk_op b[] = {pstk_resize_shorter(20), pstk_center_crop(16, 16)};
    const struct pstk_op c[] = {pstk_center_crop(50, 10)};
    const struct pstk_output outputs[4] = {
        {.name = "a", .field = "img", .kind = PSTK_OUTPUT_IMAGE, .image.ops = a, .image.n_ops = 2},
        {.name = "b", .field = "img", .kind = PSTK_OUTPUT_IMAGE, .image.ops = b, .image.n_ops = 2},
        {.name = "c", .field = "img", .kind = PSTK_OUTPUT_IMAGE, .image.ops = c, .image.n_ops = 1},
        {.field = "lab", .kind = PSTK_OUTPUT_SCALAR}};
    struct fixture f;
    struct run r;
    struct pstk__random random;
    CHECK_EQ(small_open(&f), 0);
    CHECK_EQ(run_all(&r, &f, outputs, 4, 2), 0);
    pstk__random_init(&random,
                      &(struct pstk__random_key){.seed = SEED, .epoch = EPOCH, .sample_id = 2});
    const struct pstk__box box = pstk__random_resized_crop_box(
        &random, 40, 30, &(struct pstk_random_resized_crop_params){0.08, 1, 3.0 / 4, 4.0 / 3});
    const struct pstk_crop want[4] = {{(int32_t)box.top, (int32_t)box.left, (int32_t)box.height,
                                       (int32_t)box.width, 30, 40, 1, 0},
                                      {0, 0, 30, 40, 30, 40, 0, 0},
                                      {-10, 15, 50, 10, 30, 40, 0, 0},
                                      {0, 0, 0, 0, 0, 0, 0, 0}};
    CHECK(memcmp(r.crops, want, sizeof want) == 0);
    run_close(&r);
    fixture_close(&f);
}

TEST(a_random_crop_pads_by_mirrors_to_more_than_the_picture_before_and_after)
{
    struct pstk_op drawn[4], op = pstk_random_crop(33, 44, 40);
    const struct pstk_output output = {
        .name = "a", .field = "img", .kind = PSTK_OUTPUT_IMAGE, .image.ops = &op, .image.n_ops = 1};
    const struct pstk_draw by = {.size = sizeof by, .seed = SEED, .epoch = EPOCH, .sample_id = 2};
    struct pstk_shape shape = {.height = 30, .width = 40, .channels = 3};
    static uint8_t pictures[2][130 * 140 * 3];
    struct fixture f;
    struct run r;
    op.params.random_crop.mode = PSTK_PAD_REFLECT;
    CHECK_EQ(small_open(&f), 0);
    CHECK_EQ(run_all(&r, &f, &output, 1, 2), 0);
    const int n = pstk_ops_draw(&op, 1, &shape, &by, drawn, 4, NULL);
    CHECK_EQ(n, 2);
    memcpy(pictures[0], small_image.rgb, (size_t)30 * 40 * 3);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pstk_op_apply(&drawn[i], 0, pictures[i], &shape, pictures[1 - i], &shape, NULL),
                 0);
    CHECK(memcmp(pictures[0], r.rows[0].data, (size_t)33 * 44 * 3) == 0);
    run_close(&r);
    fixture_close(&f);
}

TEST(an_image_that_is_too_small_for_a_random_crop_is_an_error_that_says_so)
{
    const struct pstk_op ops[] = {pstk_resize_shorter(20), pstk_random_crop(24, 16, 1)};
    const struct pstk_output output = {
        .name = "a", .field = "img", .kind = PSTK_OUTPUT_IMAGE, .image.ops = ops, .image.n_ops = 2};
    struct fixture f;
    struct run r;
    CHECK_EQ(small_open(&f), 0);
    CHECK_EQ(run_all(&r, &f, &output, 1, 2), PSTK_EINVAL);
    CHECK(strstr(r.err.message, "crop of 24 x 16 pixels does not fit into the image, which has "
                                "22 x 28 there") != NULL);
    CHECK(r.err.stage == PSTK_STAGE_DECODE && r.err.sample_id == 2);
    run_close(&r);
    fixture_close(&f);
}

/* Return whether the second row, of the same list with random erasings, is the first row with the
 * areas drawn. */
static int is_erased(const struct pstk__output *o, void *plain, const void *erased)
{
    const struct pstk_shape shape = {.height = 30, .width = 40, .channels = 3};
    const struct pstk_draw by = {
        .size = sizeof by, .seed = SEED, .epoch = EPOCH, .sample_id = 2, .random_group = 7};
    const struct pstk__row_layout *row = pstk__output_rows(o);
    const struct pstk__finish finish = {.channels = 3,
                                        .dtype = row->dtype,
                                        .layout = row->layout,
                                        .width = o->image.width,
                                        .plane = (uint64_t)o->image.width * o->image.height};
    struct pstk_op drawn[8];
    const int n = pstk_ops_draw(o->image.ops, o->image.n_ops, &shape, &by, drawn, 8, NULL);
    if (n < 2 || drawn[n - 2].kind != PSTK_OP_ERASE || drawn[n - 1].kind != PSTK_OP_ERASE)
        return 0;
    for (int i = n - 2; i < n; i++)
        pstk__op_entry(PSTK_OP_ERASE)->erase(&drawn[i], &finish, plain);
    return memcmp(plain, erased, row->row_size) == 0;
}

TEST(boxes_of_finished_rows_are_erased)
{
    struct pstk_op normal = pstk_random_erasing(1, 0);
    normal.params.random_erasing.is_normal = 1;
    const struct pstk_op lists[][5] = {
        {pstk_random_resized_crop(12, 17), pstk_random_flip(0.5), pstk_normalize(mean, dev),
         pstk_random_erasing(1, 0.25), normal},
        {pstk_random_crop(12, 17, 0), pstk_adjust(PSTK_OP_INVERT, 0), pstk_normalize(mean, dev),
         pstk_random_erasing(1, -3), normal},
        {pstk_crop_at(100, 100, 9, 8), pstk_random_flip(0.5), pstk_normalize(mean, dev),
         pstk_random_erasing(1, 2), normal},
    };
    struct fixture f;
    CHECK_EQ(small_open(&f), 0);
    for (uint32_t k = 0; k < 18; k++) {
        struct pstk_output outputs[2] = {{.name = "plain",
                                          .field = "img",
                                          .kind = PSTK_OUTPUT_IMAGE,
                                          .dtype = dtypes[1 + k % 3],
                                          .image.layout = k / 3 % 2,
                                          .image.n_ops = 3,
                                          .image.ops = lists[k / 6],
                                          .image.random_group = 7}};
        struct run r;
        outputs[1] = outputs[0];
        outputs[1].name = "erased";
        outputs[1].image.n_ops = 5;
        CHECK_EQ(run_all(&r, &f, outputs, 2, 2), 0);
        CHECK(memcmp(r.rows[0].data, r.rows[1].data,
                     pstk__output_rows(&r.plan->outputs[0])->row_size) != 0);
        CHECK(is_erased(&r.plan->outputs[1], r.rows[0].data, r.rows[1].data));
        run_close(&r);
    }
    fixture_close(&f);
}

/* ---- what passes through -----------------------------------------------------------------------
 */

TEST(scalars_tensors_and_bytes_pass_through)
{
    const struct pstk_output outputs[8] = {
        {.field = "lab", .kind = PSTK_OUTPUT_SCALAR, .dtype = PSTK_I64},
        {.field = "half", .kind = PSTK_OUTPUT_SCALAR, .dtype = PSTK_F32},
        {.field = "vec", .kind = PSTK_OUTPUT_TENSOR},
        {.field = "big", .kind = PSTK_OUTPUT_TENSOR},
        {.field = "var", .kind = PSTK_OUTPUT_BYTES},
        {.field = "text", .kind = PSTK_OUTPUT_BYTES, .ragged.bytes_per_batch = 9},
        {.name = "file", .field = "img", .kind = PSTK_OUTPUT_BYTES},
        {.name = "bytes", .field = "vec", .kind = PSTK_OUTPUT_BYTES}};
    struct fixture f;
    struct run r;
    CHECK_EQ(small_open(&f), 0);
    for (int compressed = 0; compressed < 2; compressed++) {
        if (compressed) {
            CHECK_EQ(view_compress(&f, BIG), 0);
            CHECK_EQ(fixture_lay(&f), 0);
        }
        CHECK_EQ(run_all(&r, &f, outputs, 8, 0), 0);
        CHECK_EQ(*(int64_t *)r.rows[0].data, -5);
        CHECK(*(float *)r.rows[1].data == 1.5f);
        CHECK(memcmp(r.rows[2].data, vec, sizeof vec) == 0);
        CHECK(memcmp(r.rows[3].data, big, sizeof big) == 0);
        CHECK(r.rows[4].size == 6 && memcmp(r.rows[4].data, var, 6) == 0);
        CHECK(r.rows[5].size == 8 && memcmp(r.rows[5].data, text, 8) == 0);
        CHECK(r.rows[6].size == 3600 && memcmp(r.rows[6].data, small_image.rgb, 3600) == 0);
        CHECK(r.rows[7].size == sizeof vec && memcmp(r.rows[7].data, vec, sizeof vec) == 0);
        const struct pstk__output *o = r.plan->outputs;
        CHECK(o[0].n_dims == 1 && o[0].shape[0] == 4 && pstk__output_rows(&o[0])->row_size == 8);
        CHECK(o[2].n_dims == 3 && o[2].shape[1] == 2 && o[2].shape[2] == 3 && o[2].budget == 96);
        CHECK(o[2].strides[0] == 6 && o[2].strides[1] == 3 && o[2].strides[2] == 1);
        CHECK(o[4].budget == 24 && o[5].budget == 9 && pstk__output_rows(&o[5])->row_size == 8);
        CHECK_EQ(r.plan->head_only, 0);
        run_close(&r);
    }
    fixture_close(&f);
}

TEST(fields_of_the_head_need_no_other_byte)
{
    const struct pstk_output outputs[2] = {{.field = "lab", .kind = PSTK_OUTPUT_SCALAR},
                                           {.field = "vec", .kind = PSTK_OUTPUT_TENSOR}};
    const struct pstk_settings s = settings_of(outputs, 2);
    const struct pstk__sample_key key = {0, 0, 0};
    struct fixture f;
    struct run r;
    struct pstk__record record;
    CHECK_EQ(small_open(&f), 0);
    CHECK_EQ(run_open(&r, &f, &s), 0);
    CHECK_EQ(r.plan->head_only, 1);
    CHECK_EQ(fixture_parse(&f, f.source.schema.head_size, &record, &r.err), 0);
    CHECK_EQ(pstk__sample_write(r.sampler, &record, 0, &key, r.rows, &r.err), 0);
    CHECK_EQ(*(int32_t *)r.rows[0].data, -5);
    run_close(&r);
    fixture_close(&f);
}

/* ---- callbacks ---------------------------------------------------------------------------------
 */

struct told {
    struct pstk_sample sample;
    uint64_t row_size;
    int result;
    int aligned;
};

static int tell(void *user, const struct pstk_sample *sample, void *row, uint64_t row_size)
{
    struct told *t = user;
    t->sample = *sample;
    t->row_size = row_size;
    t->aligned = (uintptr_t)sample->scratch % 64 == 0;
    memset(sample->scratch, 1, sample->scratch_size);
    memcpy(row, sample->data, row_size < sample->data_size ? row_size : sample->data_size);
    return t->result;
}

TEST(a_decode_function_sees_its_sample_and_writes_its_row)
{
    struct told t[3] = {{.result = 0}};
    struct pstk_output o[3];
    for (uint32_t i = 0; i < 3; i++)
        o[i] = (struct pstk_output){.name = i == 0   ? "a"
                                            : i == 1 ? "b"
                                                     : "c",
                                    .field = "text",
                                    .kind = PSTK_OUTPUT_CALLBACK,
                                    .dtype = PSTK_U8,
                                    .callback.n_dims = 2,
                                    .callback.shape = {2, 4},
                                    .callback.decode = tell,
                                    .callback.user = &t[i],
                                    .image.random_group = i / 2,
                                    .callback.scratch_size = 1000 + i};
    struct fixture f;
    struct run r;
    CHECK_EQ(small_open(&f), 0);
    CHECK_EQ(run_all(&r, &f, o, 3, 6), 0);
    CHECK(memcmp(r.rows[0].data, text, 8) == 0);
    const struct told first = t[0];
    CHECK(first.sample.sample_id == 6 && first.sample.epoch == EPOCH && first.sample.position == 9);
    CHECK(first.sample.data_size == 8 && first.row_size == 8 && first.aligned);
    CHECK(first.sample.scratch_size == 1000 && t[2].sample.scratch_size == 1002);
    CHECK(memcmp(first.sample.random, t[1].sample.random, 16) == 0); /* one group */
    CHECK(memcmp(first.sample.random, t[2].sample.random, 16) != 0);
    CHECK_EQ(run_write(&r, &f, 6), 0);
    CHECK(memcmp(first.sample.random, t[0].sample.random, 16) == 0);
    CHECK_EQ(run_write(&r, &f, 7), 0);
    CHECK(memcmp(first.sample.random, t[0].sample.random, 16) != 0);
    run_close(&r);
    fixture_close(&f);
}

TEST(a_decode_functions_error_is_reported_with_the_sample)
{
    static const int codes[][2] = {{PSTK_EBADMSG, PSTK_EBADMSG},
                                   {PSTK_ENODATA, PSTK_ENODATA},
                                   {-9999, PSTK_EINVAL},
                                   {1, PSTK_EINVAL}};
    for (int i = 0; i < 4; i++) {
        struct told t = {.result = codes[i][0]};
        const struct pstk_output o = {.name = "mine",
                                      .field = "text",
                                      .kind = PSTK_OUTPUT_CALLBACK,
                                      .dtype = PSTK_U8,
                                      .callback.decode = tell,
                                      .callback.user = &t,
                                      .callback.scratch_size = 1};
        struct fixture f;
        struct run r;
        CHECK_EQ(small_open(&f), 0);
        CHECK_EQ(run_all(&r, &f, &o, 1, 6), codes[i][1]);
        CHECK(r.err.sample_id == 6 && r.err.epoch == EPOCH && r.err.position == 9);
        CHECK(r.err.code == codes[i][1] && r.err.native == codes[i][0]);
        CHECK(strstr(r.err.message, "'mine'") && strstr(r.err.message, "sample 6"));
        CHECK_STR(r.err.shard, SHARD);
        CHECK_EQ(r.err.record, 5);
        run_close(&r);
        fixture_close(&f);
    }
}

TEST(a_decode_function_gets_whole_images_of_any_size)
{
    static const uint32_t all[][2] = {{100, 80}, {1, 1}, {20, 200}};
    const struct pstk_op ops[] = {pstk_resize_shorter(16), pstk_adjust(PSTK_OP_INVERT, 0)};
    const struct pstk_op erasing[] = {pstk_random_erasing(1, 9)};
    const struct pstk_op sized[] = {pstk_resize(40, 30), pstk_random_erasing(1, 9)};
    for (int i = 0; i < 3; i++) {
        struct seen seen = {.result = 0};
        struct pstk_output o = {.field = "img",
                                .image.channels = 3,
                                .callback.n_dims = 3,
                                .callback.shape = {80, 100, 3}};
        o = pixels_to(&o, &seen);
        struct fixture f;
        struct run r;
        const uint32_t w = all[i][0], h = all[i][1];
        struct image m = image_make(w, h);
        CHECK_EQ(fixture_open(&f, m.rgb, 3ull * w * h, PSTK_ENCODING_PIXELS, w, h), 0);
        CHECK_EQ(run_all(&r, &f, &o, 1, 1), 0);
        CHECK(seen.sample.shape[0] == h && seen.sample.shape[1] == w && seen.sample.shape[2] == 3);
        CHECK(memcmp(r.rows[0].data, m.rgb, 3ull * w * h < 24000 ? 3ull * w * h : 24000) == 0);
        run_close(&r);
        o.image.ops = ops, o.image.n_ops = 2, o.image.channels = 1;
        CHECK_EQ(run_all(&r, &f, &o, 1, 1), 0);
        CHECK_EQ(seen.sample.shape[0], w < h ? 16 * h / w : 16);
        CHECK_EQ(seen.sample.shape[2], 1);
        seen.result = PSTK_ENODATA;
        CHECK_EQ(run_write(&r, &f, 1), PSTK_ENODATA);
        CHECK(strstr(r.err.message, "'own'") && r.err.sample_id == 1);
        run_close(&r);
        seen.result = 0;
        o.image.ops = erasing, o.image.n_ops = 1, o.image.channels = 3;
        CHECK_EQ(run_all(&r, &f, &o, 1, 1), PSTK_EINVAL);
        CHECK(strstr(r.err.message, "must fix the size"));
        run_close(&r);
        o.image.ops = sized, o.image.n_ops = 2;
        CHECK_EQ(run_all(&r, &f, &o, 1, 1), 0);
        struct run image;
        const struct pstk_output plain = {
            .field = "img", .kind = 1, .image.ops = sized, .image.n_ops = 2};
        CHECK_EQ(run_all(&image, &f, &plain, 1, 1), 0);
        CHECK(memcmp(r.rows[0].data, image.rows[0].data, 3600) == 0);
        run_close(&image);
        run_close(&r);
        free(m.rgb);
        fixture_close(&f);
    }
}

TEST(a_decode_function_sees_what_its_bytes_are)
{
    struct seen seen = {.result = 0};
    struct fixture f;
    static const struct {
        const char *field;
        uint32_t dtype, n_dims;
    } all[] = {
        {"half", PSTK_F16, 0}, {"vec", PSTK_F32, 2}, {"var", PSTK_U16, 1}, {"text", PSTK_U8, 1}};
    CHECK_EQ(small_open(&f), 0);
    for (int i = 0; i < 4; i++) {
        struct run r;
        struct pstk_output o = {.field = all[i].field};
        o = pixels_to(&o, &seen);
        CHECK_EQ(run_all(&r, &f, &o, 1, 1), 0);
        CHECK_EQ(seen.sample.dtype, all[i].dtype);
        CHECK_EQ(seen.sample.n_dims, all[i].n_dims);
        uint64_t size = pstk_dtype_size(seen.sample.dtype);
        for (uint32_t d = 0; d < seen.sample.n_dims; d++)
            size *= seen.sample.shape[d];
        CHECK_EQ(size, seen.sample.data_size);
        run_close(&r);
    }
    fixture_close(&f);
}

/* ---- damage ------------------------------------------------------------------------------------
 */

/* With the byte at `at` changed, the record gives an error that names `length` bytes from
 * `from` on. */
static void check_flip(struct run *r, struct fixture *f, uint64_t at, uint64_t from,
                       uint32_t length)
{
    f->bytes[at] ^= 0x10;
    CHECK_EQ(run_write(r, f, 1), PSTK_EBADMSG);
    CHECK_STR(r->err.shard, SHARD);
    CHECK(r->err.record == 5 && r->err.offset == 4096 + from && r->err.length == length);
    CHECK(r->err.sample_id == 1 && r->err.stage == PSTK_STAGE_RECORD);
    f->bytes[at] ^= 0x10;
}

/* A changed byte of a field, or of the gap after it. */
static void check_damage(uint32_t field, const struct pstk_output *o, int compressed)
{
    struct fixture f;
    struct run r;
    CHECK_EQ(small_open(&f), 0);
    if (compressed)
        CHECK_EQ(view_compress(&f, field), 0);
    CHECK_EQ(fixture_lay(&f), 0);
    const struct pstk_settings s = settings_of(o, 1);
    CHECK_EQ(run_open(&r, &f, &s), 0);
    CHECK_EQ(run_write(&r, &f, 1), 0);
    uint64_t at = f.source.schema.head_size;
    for (uint32_t i = 0; i < field; i++)
        at += f.source.schema.entry[i] >= 0 ? pstk__record_aligned(f.views[i].stored_size) : 0;
    const uint32_t n = f.views[field].stored_size;
    for (uint32_t k = 0; k < n; k += 1 + n / 50)
        check_flip(&r, &f, at + k, at, n);
    for (uint64_t k = n; k < pstk__record_aligned(n); k++)
        check_flip(&r, &f, at + k, at + n, (uint32_t)(pstk__record_aligned(n) - n));
    CHECK_EQ(run_write(&r, &f, 1), 0);
    run_close(&r);
    fixture_close(&f);
}

TEST(a_changed_byte_of_a_field_is_an_error_that_names_its_place)
{
    const struct pstk_op ops[] = {pstk_resize(8, 8)};
    struct told t = {.result = 0};
    const struct pstk_output image = {
        .field = "img", .kind = 1, .image.ops = ops, .image.n_ops = 1};
    const struct pstk_output bytes = {.field = "text", .kind = PSTK_OUTPUT_BYTES};
    const struct pstk_output tensor = {.field = "big", .kind = PSTK_OUTPUT_TENSOR};
    const struct pstk_output call = {.field = "var",
                                     .kind = PSTK_OUTPUT_CALLBACK,
                                     .dtype = PSTK_U8,
                                     .callback.decode = tell,
                                     .callback.user = &t,
                                     .callback.scratch_size = 1};
    check_damage(IMG, &image, 0);
    check_damage(TEXT, &bytes, 0);
    check_damage(BIG, &tensor, 0);
    check_damage(VAR, &call, 0);
    check_damage(BIG, &tensor, 1);
}

TEST(a_field_that_decompresses_to_other_bytes_is_an_error)
{
    const struct pstk_output o = {.field = "big", .kind = PSTK_OUTPUT_TENSOR};
    struct fixture f;
    struct run r;
    CHECK_EQ(small_open(&f), 0);
    CHECK_EQ(view_compress(&f, BIG), 0);
    f.views[BIG].plain_crc ^= 1; /* the frame and its checksum are whole */
    CHECK_EQ(fixture_lay(&f), 0);
    CHECK_EQ(run_all(&r, &f, &o, 1, 0), PSTK_EBADMSG);
    CHECK(strstr(r.err.message, "decompresses to") != NULL);
    run_close(&r);
    fixture_close(&f);
}

TEST(a_truncated_jpeg_with_a_good_checksum_is_a_decoder_error)
{
    const struct jpeg_spec spec = {.width = 97,
                                   .height = 61,
                                   .n_components = 3,
                                   .h = 2,
                                   .v = 2,
                                   .interleaved = 1,
                                   .quality = 90};
    const struct pstk_op ops[] = {pstk_resize(8, 8)};
    const struct pstk_output o = {.field = "img", .kind = 1, .image.ops = ops, .image.n_ops = 1};
    size_t size;
    struct fixture f;
    struct run r;
    uint8_t *jpeg = jpeg_write(&spec, &size);
    CHECK_EQ(fixture_open(&f, jpeg, size / 2, PSTK_ENCODING_JPEG, 97, 61), 0);
    CHECK_EQ(run_all(&r, &f, &o, 1, 3), PSTK_EBADMSG);
    CHECK(r.err.stage == PSTK_STAGE_DECODE && r.err.record == 5 && r.err.sample_id == 3);
    CHECK_STR(r.err.shard, SHARD);
    run_close(&r);
    fixture_close(&f);
    CHECK_EQ(fixture_open(&f, jpeg, size, PSTK_ENCODING_JPEG, 96, 61), 0); /* the record lies */
    CHECK_EQ(run_all(&r, &f, &o, 1, 3), PSTK_EBADMSG);
    run_close(&r);
    fixture_close(&f);
    free(jpeg);
}

TEST(an_image_over_max_pixels_is_refused)
{
    const struct pstk_op ops[] = {pstk_resize(8, 8)};
    const struct pstk_output o = {.field = "img", .kind = 1, .image.ops = ops, .image.n_ops = 1};
    struct pstk_settings s = settings_of(&o, 1);
    struct fixture f;
    struct run r;
    CHECK_EQ(small_open(&f), 0);
    for (uint32_t over = 0; over < 2; over++) {
        s.memory.max_pixels = 1200 - over;
        CHECK_EQ(run_open(&r, &f, &s), 0);
        CHECK_EQ(run_write(&r, &f, 0), over ? PSTK_EFBIG : 0);
        CHECK(!over || strstr(r.err.message, "max_pixels") != NULL);
        run_close(&r);
    }
    fixture_close(&f);
}

/* ---- memory ------------------------------------------------------------------------------------
 */

TEST(writing_samples_allocates_nothing)
{
    const struct jpeg_spec specs[2] = {{.width = 97,
                                        .height = 61,
                                        .n_components = 3,
                                        .h = 2,
                                        .v = 2,
                                        .interleaved = 1,
                                        .quality = 90},
                                       {.width = 97,
                                        .height = 61,
                                        .n_components = 3,
                                        .h = 1,
                                        .v = 1,
                                        .progressive = 1,
                                        .quality = 90}};
    const struct pstk_op ops[] = {pstk_random_resized_crop(8, 8), pstk_random_flip(0.5),
                                  pstk_normalize(mean, dev)};
    const struct pstk_output outputs[3] = {{.field = "img",
                                            .kind = 1,
                                            .image.ops = ops,
                                            .image.n_ops = 3,
                                            .dtype = PSTK_F16,
                                            .image.exif_orientation = 1},
                                           {.field = "big", .kind = PSTK_OUTPUT_TENSOR},
                                           {.field = "lab", .kind = PSTK_OUTPUT_SCALAR}};
    for (int i = 0; i < 2; i++) {
        size_t size;
        struct fixture f;
        struct run r;
        uint8_t *jpeg = jpeg_write(&specs[i], &size), *file = with_orientation(jpeg, size, 5);
        CHECK_EQ(fixture_open(&f, file, size + 36, PSTK_ENCODING_JPEG, 97, 61), 0);
        CHECK_EQ(view_compress(&f, BIG), 0);
        CHECK_EQ(fixture_lay(&f), 0);
        const struct pstk_settings s = settings_of(outputs, 3);
        CHECK_EQ(run_open(&r, &f, &s), 0);
        n_allocations = 0;
        for (uint64_t id = 0; id < 20; id++)
            CHECK_EQ(run_write(&r, &f, id), 0);
        CHECK_EQ(n_allocations, 0);
        run_close(&r);
        fixture_close(&f);
        free(file);
        free(jpeg);
    }
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(rows_of_raw_pixels_equal_the_oracle),
        CASE(rows_of_compressed_fields_equal_the_oracle),
        CASE(rows_of_jpegs_equal_the_oracle_in_all_eight_orientations),
        CASE(outputs_of_one_field_share_one_decode_and_do_not_disturb_each_other),
        CASE(crops_tell_what_was_shown),
        CASE(boxes_of_finished_rows_are_erased),
        CASE(a_random_crop_pads_by_mirrors_to_more_than_the_picture_before_and_after),
        CASE(an_image_that_is_too_small_for_a_random_crop_is_an_error_that_says_so),
        CASE(scalars_tensors_and_bytes_pass_through),
        CASE(fields_of_the_head_need_no_other_byte),
        CASE(a_decode_function_sees_its_sample_and_writes_its_row),
        CASE(a_decode_functions_error_is_reported_with_the_sample),
        CASE(a_decode_function_gets_whole_images_of_any_size),
        CASE(a_decode_function_sees_what_its_bytes_are),
        CASE(a_changed_byte_of_a_field_is_an_error_that_names_its_place),
        CASE(a_field_that_decompresses_to_other_bytes_is_an_error),
        CASE(a_truncated_jpeg_with_a_good_checksum_is_a_decoder_error),
        CASE(an_image_over_max_pixels_is_refused),
        CASE(writing_samples_allocates_nothing),
    };
    const int rc = RUN_CASES(cases);
    free(small_image.rgb);
    return rc;
}
