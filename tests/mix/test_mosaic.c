/* SPDX-License-Identifier: Apache-2.0 */
/* Settings, draws and pixels of mosaics. What a loader makes of them: tests/python/test_mosaic.py.
 */
#include "mix/mosaic.h"
#include "support/test.h"

#include <math.h>

#define HEIGHT 20u
#define WIDTH 31u

static struct pstk_mosaic mosaic_of(double probability)
{
    struct pstk_mosaic mosaic;
    pstk_mosaic_init(&mosaic, sizeof mosaic);
    mosaic.probability = probability;
    return mosaic;
}

static struct pstk_mix_key key_of(uint32_t n_rows, uint64_t seed)
{
    return (struct pstk_mix_key){.size = sizeof(struct pstk_mix_key),
                                 .n_rows = n_rows,
                                 .height = HEIGHT,
                                 .width = WIDTH,
                                 .seed = seed};
}

/* ---- settings -------------------------------------------------------------------------------- */

TEST(settings_out_of_range_are_refused_by_name)
{
    struct pstk_mosaic mosaic = mosaic_of(1);
    const struct {
        double *member;
        double value;
        const char *says;
    } wrong[] = {
        {&mosaic.probability, 1.5, "mosaic.probability: value is 1.5; must be from 0 to 1"},
        {&mosaic.probability, NAN, "mosaic.probability: value is nan; must be from 0 to 1"},
        {&mosaic.center_min, -0.5, "mosaic.center_min: value is -0.5; must be from 0 to 1"},
        {&mosaic.center_min, 0.8,
         "mosaic.center_min: value is 0.8; must be at most center_max, which is 0.75"},
        {&mosaic.center_max, INFINITY, "mosaic.center_max: value is inf; must be from 0 to 1"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct pstk_error err;
        pstk_error_init(&err, sizeof err);
        mosaic = mosaic_of(1);
        CHECK_EQ(pstk__mosaic_check(&mosaic, NULL), 0);
        *wrong[i].member = wrong[i].value;
        CHECK_EQ(pstk__mosaic_check(&mosaic, &err), PSTK_EINVAL);
        CHECK_STR(err.message, wrong[i].says);
    }
    mosaic = mosaic_of(1);
    mosaic.reserved = 1;
    CHECK_EQ(pstk__mosaic_check(&mosaic, NULL), PSTK_EINVAL);
}

TEST(structs_of_other_versions_are_copied_or_refused)
{
    struct {
        struct pstk_mosaic mosaic;
        uint64_t newer;
    } given = {.newer = 0};
    struct pstk_mosaic own;
    pstk_mosaic_init(&given.mosaic, sizeof given);
    CHECK_EQ(pstk__mosaic_copy(&own, &given.mosaic, NULL), 0);
    CHECK(own.size == sizeof own && own.center_max == 0.75);
    given.newer = 1;
    CHECK_EQ(pstk__mosaic_copy(&own, &given.mosaic, NULL), PSTK_ENOTSUP);
    given.mosaic.size = 0;
    CHECK_EQ(pstk__mosaic_copy(&own, &given.mosaic, NULL), PSTK_EINVAL);
}

TEST(keys_are_checked)
{
    const struct pstk_mosaic mosaic = mosaic_of(1);
    struct pstk_mosaic_row row;
    struct pstk_mix_key key = key_of(1, 0);
    CHECK_EQ(pstk_mosaic_draw(&mosaic, &key, &row, NULL), 0);
    CHECK_EQ(pstk_mosaic_draw(&mosaic, &key, NULL, NULL), PSTK_EINVAL);
    key.width = 65536;
    CHECK_EQ(pstk_mosaic_draw(&mosaic, &key, &row, NULL), PSTK_EINVAL);
    key.width = 0;
    CHECK_EQ(pstk_mosaic_draw(&mosaic, &key, &row, NULL), PSTK_EINVAL);
    key = key_of(1, 0);
    key.reserved = 1;
    CHECK_EQ(pstk_mosaic_draw(&mosaic, &key, &row, NULL), PSTK_EINVAL);
    key = key_of(1, 0);
    key.size--;
    CHECK_EQ(pstk_mosaic_draw(&mosaic, &key, &row, NULL), PSTK_EINVAL);
}

/* ---- draws ----------------------------------------------------------------------------------- */

TEST(draws_depend_on_the_whole_key_and_a_row_not_on_the_number_of_draws_before)
{
    const struct pstk_mosaic mosaic = mosaic_of(1);
    struct pstk_mosaic_row rows[9], again[9];
    struct pstk_mix_key keys[5];
    for (int i = 0; i < 5; i++)
        keys[i] = key_of(9, 7);
    keys[1].seed++;
    keys[2].epoch++;
    keys[3].position++;
    keys[4].rank++;
    pstk__mosaic_draw(&mosaic, &keys[0], rows);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(pstk_mosaic_draw(&mosaic, &keys[i], again, NULL), 0);
        CHECK((memcmp(rows, again, sizeof rows) == 0) == (i == 0));
    }
    CHECK(memcmp(&rows[0].parts[1], &rows[1].parts[1], sizeof rows[0].parts[1]) != 0);
}

TEST(a_fixed_center_is_rounded_and_parts_without_area_are_allowed)
{
    static const struct {
        double at;
        uint32_t x, y;
    } cases[] = {{0, 0, 0}, {0.5, 16, 10}, {0.3, 9, 6}, {1, WIDTH, HEIGHT}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pstk_mosaic mosaic = mosaic_of(1);
        struct pstk_mosaic_row row;
        const struct pstk_mix_key key = key_of(1, i);
        mosaic.center_min = mosaic.center_max = cases[i].at;
        CHECK_EQ(pstk_mosaic_draw(&mosaic, &key, &row, NULL), 0);
        CHECK(row.n_parts == 4 && row.center_x == cases[i].x && row.center_y == cases[i].y);
        CHECK(row.parts[0].width == cases[i].x && row.parts[3].width == WIDTH - cases[i].x);
    }
}

/* ---- pixels ---------------------------------------------------------------------------------- */

#define N_ROWS 5u
#define CANARY 0xa5u
#define MOST (N_ROWS * HEIGHT * WIDTH * 12)

/* Return the index of an element in rows of planes, or in rows whose only plane has wide pixels. */
static size_t at(const struct pstk__mosaic_pixels *pixels, uint32_t row, uint32_t plane, uint32_t y,
                 uint32_t x)
{
    return row * pixels->row_size +
           (((uint64_t)plane * pixels->height + y) * pixels->width + x) * pixels->element_size;
}

/* Return the pixel of `from` that (x, y) of a row shows. */
static size_t shown_at(const struct pstk__mosaic_pixels *pixels, const struct pstk_mosaic_row *row,
                       uint32_t plane, uint32_t y, uint32_t x)
{
    const uint32_t k = row->n_parts == 1 ? 0 : (y >= row->center_y) * 2u + (x >= row->center_x);
    const uint32_t up = k < 2 && row->n_parts > 1 ? HEIGHT - row->center_y : 0;
    const uint32_t left = k % 2 == 0 && row->n_parts > 1 ? WIDTH - row->center_x : 0;
    const uint32_t down = k >= 2 ? row->center_y : 0, right = k % 2 ? row->center_x : 0;
    return at(pixels, row->parts[k].row, plane, y + up - down, x + left - right);
}

TEST(pixels_are_those_of_a_naive_loop_and_nothing_else_is_written)
{
    static uint8_t from[MOST], to[MOST + 64];
    static const uint32_t forms[][2] = {{1, 1}, {1, 3}, {3, 1}, {1, 12}, {3, 4}, {4, 2}, {1, 8}};
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        const struct pstk__mosaic_pixels pixels = {.to = to,
                                                   .from = from,
                                                   .row_size = (uint64_t)HEIGHT * WIDTH *
                                                               forms[f][0] * forms[f][1],
                                                   .n = N_ROWS,
                                                   .n_planes = forms[f][0],
                                                   .height = HEIGHT,
                                                   .width = WIDTH,
                                                   .element_size = forms[f][1]};
        struct pstk_mosaic mosaic = mosaic_of(0.8);
        struct pstk_mosaic_row rows[N_ROWS];
        const struct pstk_mix_key key = key_of(N_ROWS, f);
        mosaic.center_min = 0;
        mosaic.center_max = 1;
        pstk__mosaic_draw(&mosaic, &key, rows);
        for (size_t i = 0; i < sizeof from; i++)
            from[i] = (uint8_t)(i * 2654435761u >> 11);
        memset(to, CANARY, sizeof to);
        pstk__mosaic_pixels(&pixels, rows);
        for (uint32_t i = 0; i < N_ROWS; i++)
            for (uint32_t plane = 0; plane < pixels.n_planes; plane++)
                for (uint32_t y = 0; y < HEIGHT; y++)
                    for (uint32_t x = 0; x < WIDTH; x++)
                        CHECK(memcmp(to + at(&pixels, i, plane, y, x),
                                     from + shown_at(&pixels, &rows[i], plane, y, x),
                                     pixels.element_size) == 0);
        for (size_t i = N_ROWS * pixels.row_size; i < sizeof to; i++)
            CHECK_EQ(to[i], CANARY);
    }
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(settings_out_of_range_are_refused_by_name),
        CASE(structs_of_other_versions_are_copied_or_refused),
        CASE(keys_are_checked),
        CASE(draws_depend_on_the_whole_key_and_a_row_not_on_the_number_of_draws_before),
        CASE(a_fixed_center_is_rounded_and_parts_without_area_are_allowed),
        CASE(pixels_are_those_of_a_naive_loop_and_nothing_else_is_written),
    };
    return RUN_CASES(cases);
}
