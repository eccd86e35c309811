/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outputs that have several lists of operations. The plan and rows of each size are those of a plan
 * with that list alone, and what is laid out once fits them all.
 */
#include "sample/multi_size.h"
#include "sample/layout.h"
#include "support/sample_fixture.h"
#include "support/test.h"

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

/* Three sizes: the second is drawn on a picture, and has the most operations. */
static const struct pstk_op *list_of(uint32_t v, uint32_t *n)
{
    static struct pstk_op ops[3][4];
    ops[0][0] = pstk_random_resized_crop(8, 9);
    ops[1][0] = pstk_random_resized_crop(30, 20);
    ops[1][1] = pstk_random_flip(0.5);
    ops[1][2] = pstk_random_rotation(-20, 20, PSTK_FILTER_BILINEAR);
    ops[1][3] = pstk_color_jitter(0.4, 0.4, 0.4, 0.1);
    ops[2][0] = pstk_resize(5, 50);
    *n = v == 1 ? 4 : 1;
    return ops[v];
}

static struct pstk_op_list lists[3];

static struct pstk_output sized(uint32_t dtype, uint32_t layout)
{
    for (uint32_t v = 0; v < 3; v++)
        lists[v].ops = list_of(v, &lists[v].n_ops);
    return (struct pstk_output){.field = "img",
                                .kind = PSTK_OUTPUT_IMAGE,
                                .dtype = dtype,
                                .image.layout = layout,
                                .image.size_ops = lists,
                                .image.n_sizes = 3,
                                .image.every = 2};
}

static struct pstk_output alone(uint32_t dtype, uint32_t layout, uint32_t v)
{
    struct pstk_output o = sized(dtype, layout);
    o.image.ops = list_of(v, &o.image.n_ops);
    o.image.size_ops = NULL;
    o.image.n_sizes = o.image.every = 0;
    return o;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Check that the rows of a size are those of its list alone. `room` fits the largest. */
static void check_rows(const struct fixture *f, struct run *all, uint32_t v, uint32_t dtype)
{
    const struct pstk_output outputs[2] = {alone(dtype, PSTK_NCHW, v),
                                           {.field = "lab", .kind = PSTK_OUTPUT_SCALAR}};
    struct pstk__record record;
    struct run one;
    CHECK_EQ(run_all(&one, f, outputs, 2, 7), 0);
    const struct pstk__sample_key key = {7, EPOCH, 9, v};
    CHECK_EQ(fixture_parse(f, f->size, &record, &all->err), 0);
    CHECK_EQ(pstk__sample_write(all->sampler, &record, 0, &key, all->rows, &all->err), 0);
    const struct pstk__output *o = &pstk__plan_of_size(all->plan, v)->outputs[0];
    const struct pstk__output *want = &one.plan->outputs[0];
    CHECK_EQ(pstk__output_rows(o)->row_size, pstk__output_rows(want)->row_size);
    CHECK(memcmp(o->shape, want->shape, sizeof o->shape) == 0);
    CHECK(memcmp(o->strides, want->strides, sizeof o->strides) == 0);
    CHECK(memcmp(all->rows[0].data, one.rows[0].data, pstk__output_rows(o)->row_size) == 0);
    CHECK(memcmp(&all->crops[0], &one.crops[0], sizeof all->crops[0]) == 0);
    run_close(&one);
}

TEST(a_row_of_a_size_is_that_of_its_list_alone)
{
    const uint32_t dtypes[] = {PSTK_U8, PSTK_F16, PSTK_F32};
    struct fixture f;
    CHECK_EQ(small_open(&f), 0);
    for (uint32_t d = 0; d < 3; d++) {
        const struct pstk_output outputs[2] = {sized(dtypes[d], PSTK_NCHW),
                                               {.field = "lab", .kind = PSTK_OUTPUT_SCALAR}};
        const struct pstk_settings s = settings_of(outputs, 2);
        struct run all;
        CHECK_EQ(run_open(&all, &f, &s), 0);
        free(all.rows[0].data);
        all.rows[0].data = malloc(pstk__multi_size_row_size(all.plan, 0));
        CHECK_EQ(pstk__multi_size_row_size(all.plan, 0), 30 * 20 * 3 * pstk_dtype_size(dtypes[d]));
        for (uint32_t k = 0; k < 9; k++) /* in turns, on one worker */
            check_rows(&f, &all, k * 2 % 3, dtypes[d]);
        run_close(&all);
    }
    fixture_close(&f);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

TEST(a_slot_and_a_worker_fit_the_largest_size)
{
    struct fixture f;
    CHECK_EQ(small_open(&f), 0);
    for (uint32_t on_device = 0; on_device < 2; on_device++) {
        const struct pstk_output output = sized(PSTK_F16, PSTK_NHWC);
        struct pstk_settings s = settings_of(&output, 1);
        struct pstk__layout layout;
        struct pstk__plan *plan;
        s.device.kind = on_device ? PSTK_CUDA : PSTK_HOST;
        CHECK_EQ(pstk__plan_open(&plan, &s, &f.source, NULL), 0);
        pstk__layout_init(&layout, plan, 0, 0);
        for (uint32_t v = 0; v < 3; v++) {
            const struct pstk_output one = alone(PSTK_F16, PSTK_NHWC, v);
            struct pstk__layout of_one;
            struct pstk__plan *single;
            s.outputs = &one;
            CHECK_EQ(pstk__plan_open(&single, &s, &f.source, NULL), 0);
            pstk__layout_init(&of_one, single, 0, 0);
            CHECK(plan->scratch_size >= single->scratch_size);
            CHECK(v == 1 ? layout.size == of_one.size : layout.size > of_one.size);
            CHECK(v == 1 ? layout.device_size == of_one.device_size
                         : layout.device_size >= of_one.device_size);
            CHECK_EQ(pstk__plan_of_size(plan, v)->scratch_size, plan->scratch_size);
            pstk__plan_close(single);
        }
        CHECK_EQ(plan->outputs[0].image.max_ops, plan->others[0]->outputs[0].image.max_ops);
        CHECK_EQ(plan->others[1]->outputs[0].image.max_ops,
                 plan->others[0]->outputs[0].image.max_ops);
        pstk__plan_close(plan);
    }
    fixture_close(&f);
}

TEST(a_size_lasts_for_some_batches_and_all_are_drawn)
{
    uint32_t n[3] = {0}, changes = 0;
    const struct pstk__plan plan = {.n_sizes = 3, .every = 4, .seed = 1};
    for (uint64_t index = 0; index < 12000; index++) {
        const uint32_t v = pstk__multi_size_at(&plan, 5, index);
        CHECK(v < 3);
        CHECK_EQ(v, pstk__multi_size_at(&plan, 5, index / 4 * 4));
        changes += index > 0 && v != pstk__multi_size_at(&plan, 5, index - 1);
        n[v]++;
    }
    /* 3000 draws of a third each: a number outside of these bounds is more than 5 deviations off */
    for (uint32_t v = 0; v < 3; v++)
        CHECK(n[v] > 4 * 870 && n[v] < 4 * 1130);
    CHECK(changes > 1870 && changes < 2130);
    const struct pstk__plan none = {.n_sizes = 0}, one = {.n_sizes = 1, .every = 1};
    CHECK(pstk__multi_size_at(&none, 5, 7) == 0 && pstk__multi_size_at(&one, 5, 7) == 0);
}

/* ---- what is refused ------------------------------------------------------------------------- */

struct wrong {
    struct pstk_output output;
    const char *says;
};

static struct pstk_output but(struct pstk_output o, uint32_t n_sizes, uint32_t every)
{
    o.image.n_sizes = n_sizes;
    o.image.every = every;
    return o;
}

static struct pstk_output of_lists(const struct pstk_op_list *given)
{
    return (struct pstk_output){.field = "img",
                                .name = "given",
                                .kind = PSTK_OUTPUT_IMAGE,
                                .image.size_ops = given,
                                .image.n_sizes = 3,
                                .image.every = 2};
}

TEST(wrong_lists_are_refused_with_the_member_named)
{
    const struct pstk_op ops[] = {pstk_resize(8, 8), pstk_grayscale(1)};
    const struct pstk_op open[] = {pstk_resize_shorter(8)}, bad[] = {pstk_resize(0, 8)};
    const struct pstk_op_list gray[3] = {{ops, 1, 0}, {ops, 2, 0}, {ops, 1, 0}};
    const struct pstk_op_list sizeless[3] = {{ops, 1, 0}, {ops, 1, 0}, {open, 1, 0}};
    const struct pstk_op_list empty[3] = {{ops, 1, 0}, {NULL, 0, 0}, {ops, 1, 0}};
    const struct pstk_op_list absent[3] = {{NULL, 2, 0}, {ops, 1, 0}, {ops, 1, 0}};
    const struct pstk_op_list unknown[3] = {{ops, 1, 0}, {bad, 1, 0}, {ops, 1, 0}};
    const struct pstk_op_list reserved[3] = {{ops, 1, 0}, {ops, 1, 9}, {ops, 1, 0}};
    const struct pstk_op_list long_one[3] = {{ops, 1, 0}, {ops, 65, 0}, {ops, 1, 0}};
    struct pstk_output both = of_lists(gray), scalar = of_lists(gray), none = of_lists(NULL);
    struct pstk_output unused = alone(PSTK_U8, 0, 0);
    both.image.ops = ops;
    both.image.n_ops = 1;
    scalar.kind = PSTK_OUTPUT_SCALAR;
    unused.image.every = 3;
    const struct wrong list[] = {
        {but(of_lists(gray), 0, 2), "outputs[1].n_sizes: value is 0; must be at least 1"},
        {but(of_lists(gray), 65, 2), "outputs[1].n_sizes: value is 65; must be at most 64"},
        {but(of_lists(gray), 3, 0), "outputs[1].every: value is 0; must be at least 1"},
        {but(of_lists(gray), 2, 2), "outputs[1].n_sizes: value is 2; must be 3, as of outputs[0]"},
        {but(of_lists(gray), 3, 5), "outputs[1].every: value is 5; must be 2, as of outputs[0]"},
        {unused, "outputs[1].every: value is 3; must be 0"},
        {both, "outputs[1].n_ops: value is 1; must be 0 for an output that has size_ops"},
        {scalar, "outputs[1].n_sizes: value is 3; must be 0, because it applies to image"},
        {none, "outputs[1].size_ops: value is NULL; must be an array of 3"},
        {of_lists(gray), "outputs[1].size_ops[1].ops: the images have 1 channels; must have 3"},
        {of_lists(sizeless), "outputs[1].size_ops[2].ops do not fix the size"},
        {of_lists(empty), "outputs[1].size_ops[1].ops do not fix the size"},
        {of_lists(absent), "outputs[1].size_ops[0].ops: value is NULL; must be an array of 2"},
        {of_lists(unknown), "outputs[1].size_ops[1].ops[0]"},
        {of_lists(reserved), "outputs[1].size_ops[1].reserved: value is 9; must be 0"},
        {of_lists(long_one), "outputs[1].size_ops[1].n_ops: value is 65; must be at most 64"},
    };
    struct fixture f;
    CHECK_EQ(small_open(&f), 0);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        const struct pstk_output outputs[2] = {sized(PSTK_U8, PSTK_NHWC), list[i].output};
        const struct pstk_settings s = settings_of(outputs, 2);
        struct pstk__plan *plan = (void *)&f;
        struct pstk_error err;
        pstk_error_init(&err, sizeof err);
        const int rc = pstk__plan_open(&plan, &s, &f.source, &err);
        if (rc != PSTK_EINVAL || !strstr(err.message, list[i].says))
            printf("# %zu: %d %s\n", i, rc, err.message);
        CHECK_EQ(rc, PSTK_EINVAL);
        CHECK(strstr(err.message, list[i].says) != NULL);
        CHECK(plan == NULL && err.stage == PSTK_STAGE_OPEN);
    }
    fixture_close(&f);
}

TEST(every_allocation_that_fails_at_open_is_an_error_that_leaves_nothing)
{
    const struct pstk_output outputs[2] = {sized(PSTK_F16, PSTK_NHWC),
                                           {.field = "lab", .kind = PSTK_OUTPUT_SCALAR}};
    const struct pstk_settings s = settings_of(outputs, 2);
    struct fixture f;
    CHECK_EQ(small_open(&f), 0);
    int n_failed = 0, rc = PSTK_ENOMEM;
    for (uint64_t n = 0; rc < 0 && n < 100; n++) {
        struct pstk__plan *plan;
        n_allocations = 0;
        fail_at = n;
        rc = pstk__plan_open(&plan, &s, &f.source, NULL);
        fail_at = UINT64_MAX;
        CHECK(rc == 0 || (rc == PSTK_ENOMEM && plan == NULL));
        n_failed += rc < 0;
        pstk__plan_close(plan);
    }
    CHECK(rc == 0 && n_failed >= 12);
    fixture_close(&f);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_row_of_a_size_is_that_of_its_list_alone),
        CASE(a_slot_and_a_worker_fit_the_largest_size),
        CASE(a_size_lasts_for_some_batches_and_all_are_drawn),
        CASE(wrong_lists_are_refused_with_the_member_named),
        CASE(every_allocation_that_fails_at_open_is_an_error_that_leaves_nothing),
    };
    const int rc = RUN_CASES(cases);
    free(small_image.rgb);
    return rc;
}
