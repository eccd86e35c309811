/* SPDX-License-Identifier: Apache-2.0 */
#include "support/sample_fixture.h"
#include "support/test.h"

/* ---- allocation that fails
 * ----------------------------------------------------------------------- */

static uint64_t n_allocations, fail_at = UINT64_MAX;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_malloc(size_t size)
{
    return n_allocations++ == fail_at ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return n_allocations++ == fail_at ? NULL : __real_calloc(n, size);
}

/* ---- settings
 * ------------------------------------------------------------------------------------ */

static int decode_nothing(void *user, const struct pstk_sample *sample, void *row,
                          uint64_t row_size)
{
    (void)user;
    (void)sample;
    memset(row, 0, row_size);
    return 0;
}

struct wrong {
    struct pstk_output output;
    const char *says;
    int code; /* 0: EINVAL */
};

/* Outputs 'lab' and this one are refused as it says. */
static void check_wrong(const struct fixture *f, size_t i, const struct wrong *wrong)
{
    const struct pstk_output outputs[2] = {{.field = "lab", .kind = PSTK_OUTPUT_SCALAR},
                                           wrong->output};
    const struct pstk_settings s = settings_of(outputs, 2);
    const int code = wrong->code ? wrong->code : PSTK_EINVAL;
    struct pstk_error err;
    struct pstk__plan *plan = (void *)&err;
    pstk_error_init(&err, sizeof err);
    const int rc = pstk__plan_open(&plan, &s, &f->source, &err);
    if (rc != code || strstr(err.message, wrong->says) == NULL)
        printf("# %zu: %d %s\n", i, rc, err.message);
    CHECK_EQ(rc, code);
    CHECK(strstr(err.message, wrong->says) != NULL);
    CHECK(plan == NULL && err.code == rc && err.stage == PSTK_STAGE_OPEN);
}

#define IMAGE .field = "img", .kind = 1, .image.ops = crop, .image.n_ops = 1

TEST(wrong_outputs_are_refused_with_the_setting_named)
{
    const struct pstk_op crop[] = {pstk_center_crop(8, 8)}, shorter[] = {pstk_resize_shorter(8)};
    char longest[100];
    memset(longest, 'n', sizeof longest);
    longest[99] = 0;
    const struct wrong list[] = {
        {{.field = "lab"}, "outputs[1].kind: value is 0"},
        {{.field = "lab", .kind = 70}, "outputs[1].kind: value is 70"},
        {{.field = "cls", .kind = 2}, "no field 'cls'; it has: img"},
        {{.kind = 2}, "outputs[1].field: value is NULL"},
        {{.field = "half", .kind = 2, .name = ""}, "outputs[1].name"},
        {{.field = "half", .kind = 2, .name = longest}, "outputs[1].name"},
        {{.field = "half", .kind = 2, .name = "lab"}, "which outputs[0] has too"},
        {{.field = "lab", .kind = 1, .name = "x"}, "needs a field of kind image"},
        {{.field = "img", .kind = 2}, "needs a field of kind scalar"},
        {{.field = "img", .kind = 3}, "needs a field of kind ndarray"},
        {{.field = "half", .kind = 4}, "'half' is of kind scalar"},
        {{.field = "img", .kind = 1}, "outputs[1].ops do not fix the size"},
        {{.field = "img", .kind = 1, .image.n_ops = 1}, "outputs[1].ops: value is NULL"},
        {{.field = "img", .kind = 1, .image = {.n_ops = 65, .ops = crop}}, "n_ops: value is 65"},
        {{.field = "img", .kind = 1, .image = {.n_ops = 1, .ops = shorter}}, "do not fix"},
        {{IMAGE, .dtype = PSTK_I32}, "outputs[1].dtype: value is i32"},
        {{IMAGE, .image.layout = 2}, "layout"},
        {{IMAGE, .image.exif_orientation = 2}, "exif_orientation: value is 2"},
        {{.field = "half", .kind = 2, .image = {.n_ops = 1, .ops = crop}},
         "image outputs and callbacks"},
        {{.field = "half", .kind = 2, .ragged.bytes_per_batch = 1}, "bytes_per_batch"},
        {{.field = "half", .kind = 2, .callback.decode = decode_nothing}, "callback outputs only"},
        {{.field = "half", .kind = 2, .callback.n_dims = 1}, "n_dims 0"},
        {{.field = "half", .kind = 2, .callback.stored = 1}, "stored"},
        {{.field = "half", .kind = 2, .image.reserved[3] = 1}, "is newer than this", PSTK_ENOTSUP},
        {{.field = "half", .kind = 2, .ragged.reserved[0] = 1}, "is newer than this", PSTK_ENOTSUP},
        {{.field = "half", .kind = 2, .dtype = PSTK_I32}, "not every f16"},
        {{.field = "lab", .name = "x", .kind = 2, .dtype = PSTK_F32}, "not every i32"},
        {{.field = "lab", .name = "x", .kind = 2, .dtype = PSTK_F32}, "(output 'x')"},
        {{.field = "half", .kind = 2, .dtype = 77}, "outputs[1].dtype"},
        {{.field = "vec", .kind = 3, .dtype = PSTK_F16}, "that holds them all, or f32"},
        {{.field = "var", .kind = 3}, "variable shape"},
        {{.field = "text", .kind = 4, .dtype = PSTK_U16}, "must be 0 or u8 for an output of bytes"},
        {{.field = "text", .kind = 6}, "'text' is of kind utf8"},
        {{.field = "vec", .kind = 6}, "whose only variable dimension is the first"},
        {{.field = "var", .kind = 6, .dtype = PSTK_F64},
         "the dtype of the field, for a ragged output"},
        {{.field = "text", .kind = 4, .ragged.bytes_per_batch = 7}, "bytes_per_batch: value is 7"},
        {{.field = "text", .kind = 4, .ragged.bytes_per_batch = 1ull << 60},
         "bytes_per_batch: value is 1152921504606846976; must be at most 70368744177664",
         PSTK_EFBIG},
    };
    struct fixture f;
    CHECK_EQ(small_open(&f), 0);
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        check_wrong(&f, i, &list[i]);
    fixture_close(&f);
}

#define CALLBACK .field = "text", .kind = 5, .dtype = 1, .callback.decode = decode_nothing

TEST(wrong_outputs_of_functions_are_refused_with_the_setting_named)
{
    const struct wrong list[] = {
        {{.field = "text", .kind = 5, .dtype = PSTK_U8}, "outputs[1].decode: value is NULL"},
        {{.field = "text", .kind = 5, .callback.decode = decode_nothing},
         "outputs[1].dtype: value is 0"},
        {{CALLBACK, .callback.n_dims = 9}, "n_dims"},
        {{CALLBACK, .callback.n_dims = 1}, "shape[0]: value is 0"},
        {{CALLBACK, .callback.n_dims = 2, .callback.shape = {1ull << 35, 1ull << 35}},
         "larger than 2^40",
         PSTK_EFBIG},
        {{CALLBACK, .callback.scratch_size = UINT64_MAX}, "scratch_size", PSTK_EFBIG},
    };
    struct fixture f;
    CHECK_EQ(small_open(&f), 0);
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        check_wrong(&f, i, &list[i]);
    fixture_close(&f);
}

#define PROCESSES .field = "text", .kind = 5, .dtype = 1, .callback.processes = &processes

TEST(wrong_outputs_of_processes_are_refused_with_the_setting_named)
{
    const struct pstk_op crop[] = {pstk_center_crop(8, 8)};
    const char *const program[] = {"/bin/true", NULL};
    const struct pstk_processes processes = {.size = sizeof processes, .arguments = program};
    const struct wrong list[] = {
        {{CALLBACK, .callback.batched = 1},
         "outputs[1].batched: value is 1; must be 0 for an output without processes"},
        {{IMAGE, .callback.timeout_ns = 1},
         "outputs[1].timeout_ns: value is 1; must be 0 for an output without processes"},
        {{PROCESSES, .callback.batched = 2}, "outputs[1].batched: value is 2; must be 0 or 1"},
        {{PROCESSES, .callback.batched = 1}, "outputs[1].batched: field 'text' is of kind"},
        {{.field = "img",
          .kind = 5,
          .callback.processes = &processes,
          .dtype = 1,
          .callback.batched = 1,
          .image.channels = 3},
         "outputs[1].ops: must fix the size of the image"},
        {{PROCESSES, .callback.batched = 1, .callback.stored = 1},
         "outputs[1].stored: value is 1; must be 0"},
        {{PROCESSES, .callback.timeout_ns = UINT64_MAX},
         "outputs[1].timeout_ns: value is 18446744073709551615; must be below 2^63"},
    };
    struct fixture f;
    CHECK_EQ(small_open(&f), 0);
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        check_wrong(&f, i, &list[i]);
    fixture_close(&f);
}

/* ---- members that a kind of output does not use ---------------------------------------------- */

#define BIT(kind) (1u << PSTK_OUTPUT_##kind)

/* A member, and the kinds that use it; what is said to the others. */
struct unused {
    struct pstk_output output;
    uint32_t users;
    const char *says;
};

static const char for_images[] = ": layout and exif_orientation must be 0, because they apply to "
                                 "image outputs only (";
static const char for_ragged[] = ".bytes_per_batch: must be 0, because it applies to ragged "
                                 "outputs only (";
static const char for_callbacks[] = ": decode, user and processes must be NULL, scratch_size and "
                                    "n_dims 0, because they apply to callback outputs only (";
static const char for_boxes[] = ": form, min_side, min_area and min_visible must be 0, because "
                                "they apply to boxes only (";
static const char for_places[] = ": coordinates and keep_outside must be 0, because they apply to "
                                 "boxes, keypoints and polygons (coordinates) only (";
static const char for_keypoints[] = ": flip_pairs must be NULL, n_flip_pairs and at_centers 0, "
                                    "because they apply to keypoints only (";
static const char for_pixels[] = "must be 0, because operations apply to image outputs and "
                                 "callbacks only (";
static const char for_channels[] = ".channels: value is 3; must be 0, because only images have "
                                   "channels (";
static const char for_masks[] = ".fill: value is 1; must be 0, because it applies to masks only (";
static const char for_followers[] = ".follows: value is 'i'; must be NULL, because it applies to "
                                    "outputs that follow an image only (";
static const char for_conditions[] =
    ".where: value is 'a'; must be NULL, because it applies to "
    "boxes only (an output that follows the boxes drops the same ones) (";
static const char for_members[] = ".boxes: value is 'b'; must be NULL, because it applies to "
                                  "outputs per box, keypoints and polygons only (";
static const char for_numbers[] = ".add: value is -1; must be 0, because it applies to outputs per "
                                  "box only (";
static const char for_processes[] = "value is 1; must be 0 for an output without processes (";

/* Every kind refuses the member, or lets it pass. */
static void check_unused(const struct fixture *f, size_t i, const struct unused *unused)
{
    for (uint32_t kind = PSTK_OUTPUT_IMAGE; kind <= PSTK_OUTPUT_POLYGONS; kind++) {
        struct pstk_output outputs[2] = {{.field = "lab", .kind = PSTK_OUTPUT_SCALAR},
                                         unused->output};
        const struct pstk_settings s = settings_of(outputs, 2);
        const int is_used = (unused->users >> kind & 1) != 0;
        struct pstk__plan *plan;
        struct pstk_error err;
        pstk_error_init(&err, sizeof err);
        outputs[1].field = "half";
        outputs[1].kind = kind;
        const int rc = pstk__plan_open(&plan, &s, &f->source, &err);
        if ((strstr(err.message, unused->says) == NULL) != is_used)
            printf("# %zu, kind %u: %d %s\n", i, kind, rc, err.message);
        CHECK_EQ(strstr(err.message, unused->says) == NULL, is_used);
        CHECK(is_used || rc == PSTK_EINVAL);
        pstk__plan_close(plan);
    }
}

TEST(members_that_a_kind_does_not_use_are_refused)
{
    const struct pstk_op crop[] = {pstk_center_crop(8, 8)};
    const struct pstk_processes processes = {.size = sizeof processes};
    const uint32_t pair[2] = {0, 1};
    struct fixture f;
    const uint32_t pixels = BIT(IMAGE) | BIT(CALLBACK), points = BIT(KEYPOINTS) | BIT(POLYGONS);
    const uint32_t per_box = BIT(PER_BOX) | points, follow = BIT(MASK) | BIT(BOXES) | points;
    const uint32_t ragged = BIT(BYTES) | BIT(RAGGED) | BIT(BOXES) | per_box;
    const struct unused list[] = {
        {{.image = {.n_ops = 1, .ops = crop}}, pixels, for_pixels},
        {{.image.channels = 3}, pixels, for_channels},
        {{.image.reference = 1}, pixels, for_pixels},
        {{.image.layout = 1}, BIT(IMAGE), for_images},
        {{.image.exif_orientation = 1}, pixels, for_images},
        {{.ragged.bytes_per_batch = 1}, ragged, for_ragged},
        {{.callback.decode = decode_nothing}, BIT(CALLBACK), for_callbacks},
        {{.callback.user = &f}, BIT(CALLBACK), for_callbacks},
        {{.callback.processes = &processes}, BIT(CALLBACK), for_callbacks},
        {{.callback.scratch_size = 1ull << 32}, BIT(CALLBACK), for_callbacks},
        {{.callback.n_dims = 1}, BIT(CALLBACK), for_callbacks},
        {{.callback.batched = 1}, 0, for_processes},
        {{.callback.timeout_ns = 1}, 0, for_processes},
        {{.callback.stored = 1}, BIT(CALLBACK), "must be 0, or 1 for a callback output ("},
        {{.follow.image = "i"}, follow, for_followers},
        {{.follow.fill = 1}, BIT(MASK), for_masks},
        {{.follow.box_format = 1}, BIT(BOXES), for_boxes},
        {{.follow.min_side = 0.5}, BIT(BOXES), for_boxes},
        {{.follow.min_area = 0.5}, BIT(BOXES), for_boxes},
        {{.follow.min_visible = 0.5}, BIT(BOXES), for_boxes},
        {{.follow.keep_outside = 1}, BIT(BOXES) | BIT(KEYPOINTS), for_places},
        {{.follow.coordinates = 1}, BIT(BOXES) | points, for_places},
        {{.follow.flip_pairs = pair}, BIT(KEYPOINTS), for_keypoints},
        {{.follow.n_flip_pairs = 1}, BIT(KEYPOINTS), for_keypoints},
        {{.follow.at_centers = 1}, BIT(KEYPOINTS), for_keypoints},
        {{.follow.where = "a"}, BIT(BOXES), for_conditions},
        {{.follow.add = -1}, BIT(PER_BOX), for_numbers},
        {{.follow.boxes = "b"}, per_box, for_members},
    };
    CHECK_EQ(small_open(&f), 0);
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        check_unused(&f, i, &list[i]);
    fixture_close(&f);
}

TEST(wrong_settings_around_the_outputs_are_refused)
{
    const struct pstk_output o[65] = {{.field = "lab", .kind = PSTK_OUTPUT_SCALAR}};
    struct fixture f;
    CHECK_EQ(small_open(&f), 0);
    for (int i = 0; i < 7; i++) {
        struct pstk_settings s = settings_of(o, 1);
        s.batch_size = i == 0 ? 0 : 4;
        s.n_outputs = i == 1 ? 0 : i == 2 ? 65 : 1;
        s.outputs = i == 3 ? NULL : o;
        s.output_size = i == 4 ? 0 : s.output_size;
        s.op_size = i == 5 ? 0 : s.op_size;
        s.reading.kernels = i == 6 ? 99 : 0;
        struct pstk__plan *plan;
        CHECK_EQ(pstk__plan_open(&plan, &s, &f.source, NULL), i == 6 ? PSTK_ENOTSUP : PSTK_EINVAL);
        CHECK(plan == NULL);
    }
    fixture_close(&f);
}

TEST(a_device_finishes_images_except_those_that_are_erased)
{
    const struct pstk_op ops[] = {pstk_resize(8, 9),
                                  pstk_normalize(PSTK_IMAGENET_MEAN, PSTK_IMAGENET_STD),
                                  pstk_random_erasing(1, 0)};
    struct fixture f;
    CHECK_EQ(small_open(&f), 0);
    for (uint32_t erased = 0; erased < 2; erased++) {
        const struct pstk_output o = {.field = "img",
                                      .kind = PSTK_OUTPUT_IMAGE,
                                      .dtype = PSTK_F16,
                                      .image.ops = ops,
                                      .image.n_ops = 2 + erased};
        struct pstk_settings s = settings_of(&o, 1);
        struct pstk__plan *plan;
        s.device.kind = PSTK_CUDA;
        CHECK_EQ(pstk__plan_open(&plan, &s, &f.source, NULL), 0);
        CHECK_EQ(pstk__output_device_pass(&plan->outputs[0]) == NULL, erased);
        CHECK_EQ(pstk__output_rows(&plan->outputs[0])->row_size, 8 * 9 * 3 * (1 + erased));
        CHECK_EQ(pstk__output_final(&plan->outputs[0])->row_size, 8 * 9 * 3 * 2);
        pstk__plan_close(plan);
    }
    fixture_close(&f);
}

TEST(elements_of_another_size_are_read_at_their_stride)
{
    struct {
        struct pstk_op op;
        uint64_t newer;
    } ops[2] = {{pstk_resize(8, 9), 0}, {pstk_random_flip(1), 0}};
    struct {
        struct pstk_output o;
        uint64_t newer[3];
    } outputs[2] = {
        {{.field = "lab", .kind = PSTK_OUTPUT_SCALAR}, {0}},
        {{.field = "img", .kind = PSTK_OUTPUT_IMAGE, .image.ops = &ops[0].op, .image.n_ops = 2},
         {0}}};
    struct fixture f;
    struct pstk__plan *plan;
    CHECK_EQ(small_open(&f), 0);
    struct pstk_settings s = settings_of(&outputs[0].o, 2);
    s.output_size = sizeof outputs[0];
    s.op_size = sizeof ops[0];
    CHECK_EQ(pstk__plan_open(&plan, &s, &f.source, NULL), 0);
    CHECK(plan->outputs[1].image.height == 8 && plan->outputs[1].image.width == 9);
    CHECK(plan->outputs[1].image.ops[1].kind == PSTK_OP_RANDOM_FLIP);
    CHECK(plan->outputs[1].image.ops != &ops[0].op);
    pstk__plan_close(plan);
    ops[1].newer = 1; /* a program newer than the library asks for what it does not know */
    CHECK_EQ(pstk__plan_open(&plan, &s, &f.source, NULL), PSTK_ENOTSUP);
    ops[1].newer = 0;
    outputs[0].newer[2] = 1;
    CHECK_EQ(pstk__plan_open(&plan, &s, &f.source, NULL), PSTK_ENOTSUP);
    /* A program older than the library: what its elements lack is 0. */
    const size_t older = offsetof(struct pstk_output, ragged.bytes_per_batch);
    uint8_t *packed = malloc(2 * older);
    CHECK(packed != NULL);
    memcpy(packed, &outputs[0].o, older);
    memcpy(packed + older, &outputs[1].o, older);
    s.outputs = (void *)packed;
    s.output_size = (uint32_t)older;
    CHECK_EQ(pstk__plan_open(&plan, &s, &f.source, NULL), 0);
    CHECK(plan->outputs[1].settings.callback.decode == NULL && plan->outputs[1].image.width == 9);
    pstk__plan_close(plan);
    free(packed);
    const struct pstk_op resize =
        pstk_resize(8, 9); /* bytes after params are not there to be read */
    const uint32_t older_op = offsetof(struct pstk_op, children);
    void *op = malloc(older_op);
    CHECK(op != NULL);
    memcpy(op, &resize, older_op);
    outputs[1].o.image.ops = op;
    outputs[1].o.image.n_ops = 1;
    s = settings_of(&outputs[1].o, 1);
    s.output_size = sizeof outputs[0];
    s.op_size = older_op;
    CHECK_EQ(pstk__plan_open(&plan, &s, &f.source, NULL), 0);
    CHECK(plan->outputs[0].image.ops[0].width == 9 &&
          plan->outputs[0].image.ops[0].children == NULL);
    pstk__plan_close(plan);
    free(op);
    fixture_close(&f);
}

TEST(every_allocation_that_fails_at_open_is_an_error_that_leaves_nothing)
{
    const struct pstk_op ops[] = {pstk_random_resized_crop(8, 8)};
    const struct pstk_output outputs[2] = {
        {.field = "img", .kind = 1, .image.ops = ops, .image.n_ops = 1, .dtype = PSTK_F16},
        {.field = "lab", .kind = PSTK_OUTPUT_SCALAR}};
    const struct pstk_settings s = settings_of(outputs, 2);
    struct fixture f;
    CHECK_EQ(small_open(&f), 0);
    int n_failed = 0, rc = PSTK_ENOMEM;
    for (uint64_t n = 0; rc < 0 && n < 100; n++) {
        struct pstk__plan *plan;
        struct pstk__sampler *sampler = NULL;
        n_allocations = 0;
        fail_at = n;
        rc = pstk__plan_open(&plan, &s, &f.source, NULL);
        if (rc == 0)
            rc = pstk__sampler_open(&sampler, plan, NULL);
        fail_at = UINT64_MAX;
        CHECK(rc == 0 || (rc == PSTK_ENOMEM && sampler == NULL));
        n_failed += rc < 0;
        pstk__sampler_close(sampler);
        pstk__plan_close(plan);
    }
    CHECK(rc == 0 && n_failed >= 4);
    fixture_close(&f);
}

/* ---- side columns ---------------------------------------------------------------------------- */

static int32_t in_column; /* the column's value for the sample; the record has -5 */

static uint32_t one_column(const struct pstk__source *source)
{
    (void)source;
    return 1;
}

static void column_of_lab(const struct pstk__source *source, uint32_t i,
                          struct pstk_column_info *info)
{
    (void)source;
    (void)i;
    *info = (struct pstk_column_info){.dtype = PSTK_I32, .fact = PSTK_COLUMN_VALUE, .field = LAB};
}

static int read_column(const struct pstk__source *source, uint32_t i, uint64_t first, uint64_t n,
                       void *out, struct pstk_error *err)
{
    (void)source;
    (void)i;
    (void)err;
    memcpy(out, &in_column, sizeof in_column);
    return first == 0 && n == 1 ? 0 : PSTK_EINVAL;
}

TEST(a_column_proves_that_a_smaller_dtype_holds_all_and_records_are_compared)
{
    static const struct pstk__format format = {.name = "hand",
                                               .n_columns = one_column,
                                               .column = column_of_lab,
                                               .column_read = read_column};
    struct pstk_output o = {.field = "lab", .kind = PSTK_OUTPUT_SCALAR, .dtype = PSTK_I8};
    struct fixture f;
    struct run r;
    CHECK_EQ(small_open(&f), 0);
    CHECK_EQ(run_all(&r, &f, &o, 1, 0), PSTK_EINVAL); /* without a column */
    CHECK(strstr(r.err.message, "fits i8, and no side column of it proves that all values do"));
    run_close(&r);
    f.source.format = &format;
    in_column = -5;
    CHECK_EQ(run_all(&r, &f, &o, 1, 0), 0);
    CHECK_EQ(*(int8_t *)r.rows[0].data, -5);
    run_close(&r);
    in_column = -129;
    CHECK_EQ(run_all(&r, &f, &o, 1, 0), PSTK_EINVAL);
    CHECK(strstr(r.err.message, "outputs[0].dtype: not every i32 of field 'lab' fits i8: sample 0 "
                                "has -129; choose one that holds them all, or i32"));
    run_close(&r);
    /* A column that is wrong: no other value is handed out. */
    o.dtype = PSTK_U8;
    in_column = 5;
    CHECK_EQ(run_all(&r, &f, &o, 1, 0), PSTK_EBADMSG);
    CHECK(strstr(r.err.message, "a value that does not fit u8, although its side column says so"));
    run_close(&r);
    o.dtype = PSTK_F16;
    CHECK_EQ(run_all(&r, &f, &o, 1, 0), PSTK_EINVAL);
    CHECK(strstr(r.err.message, "fits f16 (side columns only prove that whole numbers"));
    run_close(&r);
    fixture_close(&f);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(wrong_outputs_are_refused_with_the_setting_named),
        CASE(wrong_outputs_of_functions_are_refused_with_the_setting_named),
        CASE(wrong_outputs_of_processes_are_refused_with_the_setting_named),
        CASE(members_that_a_kind_does_not_use_are_refused),
        CASE(wrong_settings_around_the_outputs_are_refused),
        CASE(a_device_finishes_images_except_those_that_are_erased),
        CASE(elements_of_another_size_are_read_at_their_stride),
        CASE(a_column_proves_that_a_smaller_dtype_holds_all_and_records_are_compared),
        CASE(every_allocation_that_fails_at_open_is_an_error_that_leaves_nothing),
    };
    const int rc = RUN_CASES(cases);
    free(small_image.rgb);
    return rc;
}
