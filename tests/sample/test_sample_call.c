/* SPDX-License-Identifier: Apache-2.0 */
/* A function of the program between operations: what it gets, and what becomes of its failures. */
#include "support/sample_fixture.h"
#include "support/test.h"

/* The facts that a function saw, and the actions that it shall take. */
struct wish {
    int result;
    int64_t write_at;   /* writes a byte there, from the end of the pixels; -1: does not */
    int64_t scratch_at; /* the same of the scratch, from its begin */
    const char *why; /* the message; NULL: nothing. Without an end if it is longer than a message */
    uint32_t n_calls;
    struct pstk_shape shape;
    uint64_t random[2];
    const void *scratch;
};

static int obey(void *user, uint8_t *pixels, const struct pstk_shape *shape, const uint64_t *random,
                void *scratch, struct pstk_error *error)
{
    struct wish *wish = user;
    const size_t size = (size_t)shape->height * shape->width * shape->channels;
    wish->n_calls++;
    wish->shape = *shape;
    wish->scratch = scratch;
    memcpy(wish->random, random, sizeof wish->random);
    for (size_t i = 0; i < size; i++)
        pixels[i] ^= 255;
    if (wish->write_at >= 0)
        pixels[size + (size_t)wish->write_at] ^= 1;
    if (wish->scratch_at >= 0)
        ((uint8_t *)scratch)[wish->scratch_at] ^= 1;
    if (wish->why)
        memcpy(error->message, wish->why, strnlen(wish->why, sizeof error->message));
    return wish->result;
}

/* A function of this wish after a resize, for one sample. */
static int run_with(struct run *r, struct wish *wish, uint64_t scratch_size, uint64_t sample_id)
{
    const struct pstk_op ops[] = {pstk_resize(7, 9), pstk_call(obey, wish, scratch_size),
                                  pstk_call(obey, wish, scratch_size)};
    const struct pstk_output o = {.name = "pixels",
                                  .field = "img",
                                  .kind = PSTK_OUTPUT_IMAGE,
                                  .image.ops = ops,
                                  .image.n_ops = 3};
    struct fixture f;
    const int rc = small_open(&f) < 0 ? PSTK_ENOMEM : run_all(r, &f, &o, 1, sample_id);
    fixture_close(&f);
    return rc;
}

TEST(a_function_gets_the_pixels_and_bits_of_its_own)
{
    struct wish first = {.write_at = -1, .scratch_at = -1}, second = first, other = first;
    struct run r;
    CHECK_EQ(run_with(&r, &first, 100, 1), 0);
    run_close(&r);
    CHECK_EQ(first.n_calls, 2);
    CHECK(first.shape.height == 7 && first.shape.width == 9 && first.shape.channels == 3);
    CHECK(first.scratch != NULL && (uintptr_t)first.scratch % 64 == 0);
    CHECK_EQ(run_with(&r, &second, 0, 1), 0);
    run_close(&r);
    CHECK(second.scratch == NULL);
    CHECK(memcmp(first.random, second.random, sizeof first.random) == 0);
    CHECK_EQ(run_with(&r, &other, 0, 2), 0);
    run_close(&r);
    CHECK(other.random[0] != first.random[0] && other.random[1] != first.random[1]);
    CHECK(first.random[0] != first.random[1]);
}

TEST(a_result_makes_the_sample_bad)
{
    static const struct {
        int result, code;
    } cases[] = {{1, PSTK_ECANCELED},
                 {-9999, PSTK_ECANCELED},
                 {PSTK_EINVAL, PSTK_ECANCELED},
                 {PSTK_EBADMSG, PSTK_ECANCELED},
                 {PSTK_ECANCELED, PSTK_ECANCELED},
                 {PSTK_ENOMEM, PSTK_ENOMEM}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wish wish = {.result = cases[i].result, .write_at = -1, .scratch_at = -1};
        struct run r;
        char words[64];
        const int rc = run_with(&r, &wish, 0, 5);
        snprintf(words, sizeof words,
                 "output 'pixels', sample 5: the function of a call returned %d", wish.result);
        const char *named = strstr(r.err.message, words);
        const int is_named = named && named[strlen(words)] != ':';
        const int native = r.err.native, code = r.err.code;
        run_close(&r);
        CHECK_EQ(rc, cases[i].code);
        CHECK_EQ(code, cases[i].code);
        CHECK_EQ(native, wish.result);
        CHECK(is_named);
        CHECK_EQ(wish.n_calls, 1);
    }
}

TEST(a_function_says_why_it_fails)
{
    char endless[sizeof((struct pstk_error *)0)->message + 1];
    memset(endless, 'x', sizeof endless);
    endless[sizeof endless - 1] = 0;
    const char *const texts[] = {"the picture is too dark", endless};
    for (size_t i = 0; i < 2; i++) {
        struct wish wish = {.result = 42, .write_at = -1, .scratch_at = -1, .why = texts[i]};
        struct run r;
        char words[128];
        const int rc = run_with(&r, &wish, 0, 5);
        snprintf(words, sizeof words,
                 "output 'pixels', sample 5: the function of a call returned 42: %.23s", texts[i]);
        const int is_quoted = strstr(r.err.message, words) != NULL;
        const int has_end = memchr(r.err.message, 0, sizeof r.err.message) != NULL;
        run_close(&r);
        CHECK_EQ(rc, PSTK_ECANCELED);
        CHECK(has_end);
        CHECK(is_quoted);
    }
    struct wish hostile = {
        .result = 42, .write_at = -1, .scratch_at = -1, .why = "\033]0;x\a\xc2\x9b\x9bm \u00e9\n"};
    struct run quoted;
    CHECK_EQ(run_with(&quoted, &hostile, 0, 5), PSTK_ECANCELED);
    const int is_safe =
        strstr(quoted.err.message, "42: \\x1b]0;x\\x07\\xc2\\x9b\\x9bm \u00e9\\x0a") != NULL;
    run_close(&quoted);
    CHECK(is_safe);
    /* The message of a function that returns 0 is ignored. */
    struct wish fine = {.write_at = -1, .scratch_at = -1, .why = "the picture is too dark"};
    struct run r;
    CHECK_EQ(run_with(&r, &fine, 0, 5), 0);
    run_close(&r);
}

TEST(a_write_past_the_pixels_or_the_scratch_makes_the_sample_bad)
{
    for (int64_t at = 0; at < 64; at++) {
        struct wish past = {.write_at = at, .scratch_at = -1};
        struct wish past_scratch = {.write_at = -1, .scratch_at = 100 + at};
        struct run r;
        CHECK_EQ(run_with(&r, &past, 0, 1), PSTK_ECANCELED);
        const int is_named = strstr(r.err.message, "wrote past the end of its pixels") != NULL;
        run_close(&r);
        CHECK(is_named);
        CHECK_EQ(run_with(&r, &past_scratch, 100, 1), PSTK_ECANCELED);
        const int is_named_too = strstr(r.err.message, "wrote past the end of its scratch") != NULL;
        run_close(&r);
        CHECK(is_named_too);
    }
    struct wish inside = {.write_at = -1, .scratch_at = 99};
    struct run r;
    CHECK_EQ(run_with(&r, &inside, 100, 1), 0);
    run_close(&r);
}

static int open_result(const struct pstk_op *op, const char *words)
{
    struct run r;
    struct fixture f;
    const struct pstk_op ops[] = {pstk_resize(7, 9), *op};
    const struct pstk_output o = {
        .field = "img", .kind = PSTK_OUTPUT_IMAGE, .image.ops = ops, .image.n_ops = 2};
    if (small_open(&f) < 0)
        return -1;
    const int rc = run_all(&r, &f, &o, 1, 1);
    const int is_right = rc == PSTK_EINVAL && strstr(r.err.message, words) != NULL;
    if (!is_right)
        printf("# %s\n", r.err.message);
    run_close(&r);
    fixture_close(&f);
    return is_right;
}

TEST(wrong_members_are_named)
{
    struct wish wish = {0};
    struct pstk_op op = pstk_call(NULL, &wish, 0);
    CHECK(open_result(&op, "function: value is NULL; must be a function"));
    op = pstk_call(obey, &wish, 1ull << 40);
    CHECK(
        open_result(&op, "scratch_size: value is 1.09951e+12; must be a whole number of at most"));
    op = pstk_call(obey, &wish, 1);
    op.params.call.scratch_size = 0.5;
    CHECK(open_result(&op, "scratch_size: value is 0.5"));
    op = pstk_call(obey, &wish, 1);
    op.params.call.random[3] = -1;
    CHECK(open_result(&op, "random[3]: value is -1"));
    op = pstk_call(obey, &wish, 1);
    op.params.values[5] = 1; /* after its own */
    CHECK(open_result(&op, "params.values[5]: value is 1; must be 0"));
    op = pstk_adjust(PSTK_OP_INVERT, 0);
    op.user = &wish;
    CHECK(open_result(&op, "function, user: values are set; must be NULL"));
}

/* pstk_op_apply makes the same pixels if the op has the random bits that were drawn. */
TEST(an_operation_that_was_drawn_applies_to_pixels_of_the_program)
{
    struct wish wish = {.write_at = -1, .scratch_at = -1};
    const struct pstk_op ops[] = {pstk_resize(2, 2), pstk_call(obey, &wish, 8)};
    const struct pstk_shape shape = {.height = 2, .width = 2, .channels = 1};
    const struct pstk_draw draw = {.size = sizeof draw, .seed = 3, .sample_id = 7};
    const uint8_t pixels[4] = {1, 2, 3, 4};
    struct pstk_op drawn[2];
    struct pstk_shape made;
    struct pstk_error err;
    uint8_t out[4];
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk_ops_draw(ops, 2, &shape, &draw, drawn, 2, &err), 2);
    CHECK_EQ(pstk_op_apply(&drawn[1], 0, pixels, &shape, out, &made, &err), 0);
    CHECK(out[0] == 254 && out[3] == 251 && pixels[0] == 1);
    CHECK_EQ(wish.random[0], (uint64_t)drawn[1].params.call.random[0] |
                                 (uint64_t)drawn[1].params.call.random[1] << 32);
    CHECK_EQ(wish.random[1], (uint64_t)drawn[1].params.call.random[2] |
                                 (uint64_t)drawn[1].params.call.random[3] << 32);
    wish.result = 3;
    CHECK_EQ(pstk_op_apply(&drawn[1], 0, pixels, &shape, out, &made, &err), PSTK_ECANCELED);
    CHECK(strstr(err.message, "the function of a call returned 3") != NULL);
    CHECK_EQ(err.native, 3);
    wish.result = 0;
    wish.write_at = 63;
    CHECK_EQ(pstk_op_apply(&drawn[1], 0, pixels, &shape, out, &made, &err), PSTK_ECANCELED);
    CHECK(strstr(err.message, "wrote past the end of its pixels") != NULL);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_function_gets_the_pixels_and_bits_of_its_own),
        CASE(a_result_makes_the_sample_bad),
        CASE(a_function_says_why_it_fails),
        CASE(a_write_past_the_pixels_or_the_scratch_makes_the_sample_bad),
        CASE(wrong_members_are_named),
        CASE(an_operation_that_was_drawn_applies_to_pixels_of_the_program),
    };
    return RUN_CASES(cases);
}
