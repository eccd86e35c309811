/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg/plain: what it takes, a full decode takes; what damage it must see. test_jpeg_rebuild
 * compares the coefficients. */
#include "image/image.h"
#include "image/jpeg/decode.h"
#include "image/jpeg/plain.h"
#include "support/jpeg_writer.h"
#include "support/test.h"

#include <penstock/format.h>

static struct pstk__jpeg_plain plain;

/* Does the quick look say that a file is whole? */
static int is_whole(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1); /* its own block: a sanitizer sees reads past it */
    memcpy(copy, data, size);
    int r = pstk__jpeg_plain_open(&plain, copy, size) && pstk__jpeg_plain_check(&plain);
    free(copy);
    return r;
}

static void drop_rows(void *user, const uint8_t *rgb, uint64_t stride, uint32_t n_rows)
{
    (void)user, (void)rgb, (void)stride, (void)n_rows;
}

/* Does a full decode succeed, by libjpeg and without a warning? */
static int decodes(const uint8_t *data, size_t size)
{
    const struct pstk__row_sink sink = {.rows = drop_rows, .channels = 3};
    struct pstk__image_info info;
    struct pstk__image_state *state;
    struct pstk__arena arena;
    if (pstk__image_jpeg.probe(data, size, PSTK__MAX_PIXELS, &info, NULL) < 0 ||
        pstk__arena_open(&arena, pstk__image_scratch(info.width, info.height)) < 0)
        return 0;
    int r = pstk__image_state_open(&state, &arena, PSTK_KERNELS_AUTO, NULL);
    if (r == 0) {
        const struct pstk__box all = {.width = info.width, .height = info.height};
        r = pstk__image_decode(state,
                               &(const struct pstk__coded){&pstk__image_jpeg, data, size, &info},
                               &all, &sink, NULL);
        pstk__image_state_close(state);
    }
    pstk__arena_close(&arena);
    return r == 0;
}

/* Does reading take a file exactly when the look finds it whole? The room for each component's
 * blocks is of its own, too. */
static int is_read(const uint8_t *data, size_t size, int whole)
{
    uint8_t *copy = malloc(size);
    int16_t *blocks[PSTK__JPEG_MAX_COMPONENTS] = {NULL};
    memcpy(copy, data, size);
    int is = pstk__jpeg_plain_open(&plain, copy, size);
    for (uint32_t i = 0; is && i < plain.frame.n_components; i++) {
        const struct pstk__jpeg_component *component = &plain.frame.component[i];
        blocks[i] = malloc((size_t)128 * component->rows * component->stride);
    }
    is = is && pstk__jpeg_plain_read(&plain, blocks);
    for (uint32_t i = 0; i < PSTK__JPEG_MAX_COMPONENTS; i++)
        free(blocks[i]);
    free(copy);
    return is == whole;
}

#define N_PLAIN 11
/* The last ones are not plain, though whole. */
static const struct jpeg_spec specs[] = {
    {.width = 61, .height = 43, .n_components = 3, .h = 1, .v = 1, .interleaved = 1},
    {.width = 61, .height = 43, .n_components = 3, .h = 2, .v = 2, .interleaved = 1},
    {.width = 64, .height = 48, .n_components = 3, .h = 2, .v = 1, .interleaved = 1},
    {.width = 33, .height = 70, .n_components = 3, .h = 1, .v = 2, .interleaved = 1},
    {.width = 50, .height = 50, .n_components = 3, .h = 4, .v = 1, .interleaved = 1},
    {.width = 40, .height = 40, .n_components = 3, .h = 1, .v = 1, .interleaved = 1, .rgb = 1},
    {.width = 61, .height = 43, .n_components = 1, .h = 1, .v = 1},
    {.width = 61, .height = 43, .n_components = 1, .h = 2, .v = 2},
    {.width = 61, .height = 90, .n_components = 3, .h = 2, .v = 2, .interleaved = 1, .restart = 3},
    {.width = 80,
     .height = 80,
     .n_components = 3,
     .h = 1,
     .v = 1,
     .interleaved = 1,
     .quality = 100},
    {.width = 1, .height = 1, .n_components = 3, .h = 2, .v = 2, .interleaved = 1, .quality = 5},
    {.width = 61, .height = 43, .n_components = 3, .h = 2, .v = 2, .progressive = 1},
    {.width = 61, .height = 43, .n_components = 3, .h = 2, .v = 2, .interleaved = 0},
    {.width = 61, .height = 43, .n_components = 4, .h = 1, .v = 1, .interleaved = 1},
    {.width = 61,
     .height = 43,
     .n_components = 3,
     .h = 1,
     .v = 1,
     .interleaved = 1,
     .arithmetic = 1},
};
#define N_SPECS (sizeof specs / sizeof specs[0])

static uint64_t state = 88172645463325252ull;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 33) % below;
}

TEST(plain_files_are_found_whole_and_others_are_left_to_libjpeg)
{
    for (size_t i = 0; i < N_SPECS; i++) {
        size_t size;
        uint8_t *data = jpeg_write(&specs[i], &size);
        int whole = is_whole(data, size), good = decodes(data, size);
        int checked = pstk_image_check(data, size, 0, NULL, NULL, NULL);
        int read = is_read(data, size, whole);
        free(data);
        CHECK_EQ(whole, i < N_PLAIN);
        CHECK_EQ(good, 1);
        CHECK_EQ(checked, 0);
        CHECK_EQ(read, 1);
    }
}

/* The test cuts each file to every length but the whole one. */
TEST(no_truncated_file_is_found_whole)
{
    for (size_t i = 0; i < N_PLAIN; i++) {
        size_t size;
        uint8_t *data = jpeg_write(&specs[i], &size);
        size_t n = 0, step = 1 + size / 700;
        for (size_t k = 0; k < size; k += size - k < 40 ? 1 : step)
            n += (size_t)is_whole(data, k);
        free(data);
        CHECK_EQ(n, 0);
    }
}

/* One way of damage, the same for the same draws. */
static size_t mutate(uint8_t *data, size_t size)
{
    size_t at = draw(2) ? draw((uint32_t)size) : size - 1 - draw(size < 60 ? (uint32_t)size : 60);
    switch (draw(5)) {
    case 0:
        data[at] ^= (uint8_t)(1u << draw(8));
        return size;
    case 1:
        data[at] = (uint8_t)(draw(2) ? 0xff : draw(256));
        return size;
    case 2: /* one byte less */
        memmove(data + at, data + at + 1, size - at - 1);
        return size - 1;
    case 3: /* a marker in the middle */
        data[at] = 0xff;
        data[at + 1 < size ? at + 1 : at] = (uint8_t)(0xd0 + draw(16));
        return size;
    default: /* two bytes change places */
    {
        size_t other = draw((uint32_t)size);
        uint8_t byte = data[at];
        data[at] = data[other];
        data[other] = byte;
        return size;
    }
    }
}

TEST(any_file_found_whole_decodes_without_a_warning_and_is_read)
{
    uint32_t n_whole = 0, n_damaged = 0, n_wrong = 0, n_misread = 0;
    for (size_t i = 0; i < N_PLAIN; i++) {
        size_t size;
        uint8_t *data = jpeg_write(&specs[i], &size);
        uint8_t *bad = malloc(size);
        for (uint32_t k = 0; k < 600; k++) {
            memcpy(bad, data, size);
            size_t n = mutate(bad, size);
            /* only files that the probe accepts are asked (Pillow's rules for headers) */
            struct pstk__image_info info;
            if (pstk__image_jpeg.probe(bad, n, 1u << 20, &info, NULL) < 0)
                continue;
            int whole = is_whole(bad, n);
            n_whole += (uint32_t)whole;
            n_damaged += (uint32_t)!whole;
            n_wrong += (uint32_t)(whole && !decodes(bad, n));
            n_misread += (uint32_t)!is_read(bad, n, whole);
        }
        free(bad);
        free(data);
    }
    printf("# %u of %u mutated files are still whole\n", n_whole, n_whole + n_damaged);
    CHECK(n_whole > 1000 && n_damaged > 1000);
    CHECK_EQ(n_wrong, 0);
    CHECK_EQ(n_misread, 0);
}

TEST(bytes_after_the_end_of_the_image_do_not_matter)
{
    size_t size;
    uint8_t *data = jpeg_write(&specs[1], &size);
    uint8_t *more = malloc(size + 9);
    memcpy(more, data, size);
    memset(more + size, 0xff, 9);
    int whole = is_whole(more, size + 9);
    free(data);
    free(more);
    CHECK_EQ(whole, 1);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(plain_files_are_found_whole_and_others_are_left_to_libjpeg),
        CASE(no_truncated_file_is_found_whole),
        CASE(any_file_found_whole_decodes_without_a_warning_and_is_read),
        CASE(bytes_after_the_end_of_the_image_do_not_matter),
    };
    return RUN_CASES(cases);
}
