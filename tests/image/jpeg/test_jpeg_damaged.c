/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder of damaged JPEGs by itself. tests/image/pillow_damaged.py compares it with Pillow. */
#include "support/test.h"

#include "base/arena.h"
#include "image/image.h"
#include "image/jpeg/damaged.h"
#include "image/jpeg/decode.h"
#include "support/channels.h"
#include "support/jpeg_writer.h"

#include <penstock/format.h>

#define PIECE 65536u /* bytes that Pillow reads at once */

struct subject {
    uint8_t *file; /* owned */
    size_t size;
    uint8_t *pixels; /* owned; RGB of the whole image */
    struct pstk__image_info info;
    struct pstk__arena arena;
    struct pstk__image_state *state;
    struct pstk_error err;
};

struct taken {
    uint8_t *to;
    size_t row_size;
    uint32_t n_rows;
};

static void take_rows(void *user, const uint8_t *pixels, uint64_t stride, uint32_t n_rows)
{
    struct taken *t = user;
    for (uint32_t k = 0; k < n_rows; k++, t->n_rows++)
        memcpy(t->to + t->n_rows * t->row_size, pixels + k * stride, t->row_size);
}

static int decode_by(const struct pstk__image_decoder *decoder, struct subject *s,
                     const struct pstk__box *box, uint32_t channels, uint8_t *to)
{
    struct taken t = {.to = to, .row_size = (size_t)box->width * channels};
    const struct pstk__coded image = {decoder, s->file, s->size, &s->info};
    const struct pstk__row_sink sink = {.rows = take_rows, .user = &t, .channels = channels};
    const int r = pstk__image_decode(s->state, &image, box, &sink, &s->err);
    return r == 0 && (t.n_rows != box->height || s->arena.used != 0) ? -1 : r;
}

static int decode(struct subject *s, const struct pstk__box *box, uint32_t channels, uint8_t *to)
{
    return decode_by(&pstk__image_damaged, s, box, channels, to);
}

/* Takes the file. */
static int subject_open(struct subject *s, uint8_t *file, size_t size)
{
    *s = (struct subject){.file = file, .size = size};
    pstk_error_init(&s->err, sizeof s->err);
    if (pstk__image_probe(file, size, PSTK__MAX_PIXELS, &s->info, &s->err) < 0)
        return -1;
    const uint32_t w = s->info.width, h = s->info.height;
    const uint64_t scratch = pstk__image_damaged.scratch(w, h, (uint64_t)w * h);
    if (pstk__arena_open(&s->arena, scratch) < 0)
        return -1;
    s->arena.size = scratch; /* not the page that it was rounded up to */
    s->pixels = malloc((size_t)w * h * 3);
    return s->pixels ? pstk__image_state_open(&s->state, &s->arena, PSTK_KERNELS_AUTO, &s->err)
                     : -1;
}

static void subject_close(struct subject *s)
{
    pstk__image_state_close(s->state);
    pstk__arena_close(&s->arena);
    free(s->pixels);
    free(s->file);
}

static int decode_whole(struct subject *s)
{
    const struct pstk__box all = {.width = s->info.width, .height = s->info.height};
    return decode(s, &all, 3, s->pixels);
}

static uint32_t turn = 1;
static uint32_t draw(uint32_t below)
{
    turn = turn * 1664525u + 1013904223u;
    return (turn >> 8) % below;
}

/* A box of the damaged image against its whole decode. */
static int box_differs(struct subject *s, uint32_t channels)
{
    struct pstk__box box = {.left = draw(s->info.width), .top = draw(s->info.height)};
    box.width = 1 + draw(s->info.width - box.left);
    box.height = 1 + draw(s->info.height - box.top);
    uint8_t *pixels = malloc((size_t)box.width * box.height * channels);
    int n = !pixels || decode(s, &box, channels, pixels) < 0;
    for (uint32_t y = 0; n == 0 && y < box.height; y++)
        n += row_differs(pixels + (size_t)y * box.width * channels,
                         s->pixels + ((size_t)(box.top + y) * s->info.width + box.left) * 3,
                         box.width, channels) != 0;
    free(pixels);
    return n;
}

static uint32_t damaged_of(const struct subject *s, int *result)
{
    uint32_t damaged = 2;
    *result = pstk_image_check_damaged(s->file, s->size, 0, &damaged, NULL);
    return damaged;
}

/* Damage a whole file, by a bit or a marker, until libjpeg warns but goes on; 0 when that never
 * happens. */
static int make_damaged(struct subject *s)
{
    const size_t first = s->size / 2;
    for (int i = 0; i < 400; i++) {
        int r;
        uint8_t *at = s->file + first + draw((uint32_t)(s->size - first - 4)), before[2];
        memcpy(before, at, 2);
        if (draw(2))
            memcpy(at, "\xff\xd3", 2);
        else
            *at ^= (uint8_t)(1u << draw(8));
        if (damaged_of(s, &r) == 1)
            return r == PSTK_EBADMSG && decode_whole(s) == 0;
        memcpy(at, before, 2);
    }
    return 0;
}

static const struct jpeg_spec specs[] = {
    {.width = 75, .height = 61, .n_components = 3, .h = 2, .v = 2, .interleaved = 1},
    {.width = 75, .height = 61, .n_components = 3, .h = 2, .v = 1, .interleaved = 1, .restart = 3},
    {.width = 75, .height = 61, .n_components = 3, .h = 1, .v = 1},
    {.width = 75, .height = 61, .n_components = 1, .h = 1, .v = 1, .interleaved = 1},
    {.width = 75, .height = 61, .n_components = 4, .h = 1, .v = 1, .interleaved = 1},
    {.width = 75,
     .height = 61,
     .n_components = 3,
     .h = 2,
     .v = 2,
     .interleaved = 1,
     .progressive = 1,
     .restart = 4},
    {.width = 75,
     .height = 61,
     .n_components = 3,
     .h = 2,
     .v = 2,
     .interleaved = 1,
     .progressive = 2},
    {.width = 75, .height = 61, .n_components = 1, .h = 1, .v = 1, .progressive = 3},
};
#define N_SPECS (sizeof specs / sizeof specs[0])

TEST(a_box_of_a_damaged_file_is_that_of_its_whole_image)
{
    for (size_t i = 0; i < N_SPECS; i++) {
        for (int k = 0; k < 8; k++) {
            struct subject s;
            size_t size;
            uint8_t *file = jpeg_write(&specs[i], &size);
            CHECK(subject_open(&s, file, size) == 0);
            CHECK(make_damaged(&s));
            int n = 0;
            for (int box = 0; box < 12; box++)
                n += box_differs(&s, (const uint32_t[]){1, 3, 4}[box % 3]);
            CHECK_EQ(n, 0);
            subject_close(&s);
        }
    }
}

TEST(a_whole_file_has_the_same_pixels)
{
    for (size_t i = 0; i < N_SPECS; i++) {
        struct subject s;
        size_t size;
        int r;
        uint8_t *file = jpeg_write(&specs[i], &size);
        CHECK(subject_open(&s, file, size) == 0);
        const struct pstk__box all = {.width = s.info.width, .height = s.info.height};
        const size_t n = (size_t)all.width * all.height * 3;
        uint8_t *pixels = calloc(1, n);
        CHECK(pixels && decode_by(&pstk__image_jpeg, &s, &all, 3, pixels) == 0);
        CHECK_EQ(damaged_of(&s, &r), 0);
        CHECK_EQ(r, 0);
        CHECK_EQ(decode_whole(&s), 0);
        CHECK(memcmp(s.pixels, pixels, n) == 0);
        free(pixels);
        subject_close(&s);
    }
}

/* A file may end only after its last row, which libjpeg completes when it sees what follows. */
TEST(a_file_that_ends_too_early_is_refused)
{
    for (size_t i = 0; i < N_SPECS; i++) {
        struct subject s;
        size_t size;
        int r;
        uint8_t *file = jpeg_write(&specs[i], &size);
        CHECK(subject_open(&s, file, size) == 0);
        for (s.size = size - 12; s.size > 2; s.size -= s.size > 900 ? 41 : 1) {
            CHECK_EQ(damaged_of(&s, &r), 0);
            CHECK_EQ(r, PSTK_EBADMSG);
            CHECK_EQ(decode_whole(&s), PSTK_EBADMSG);
            CHECK_EQ(s.arena.used, 0);
        }
        s.size = size;
        CHECK_EQ(decode_whole(&s), 0); /* no trace of the damage is left in the object */
        subject_close(&s);
    }
}

/* A second scan after that of a baseline file is an error, wherever libjpeg finds it. Pillow looks
 * no further than the piece in which the last row ended. */
TEST(bytes_after_the_last_row_count_only_in_the_piece_already_read)
{
    static const uint8_t scan[] = {0xff, 0xda, 0, 12, 3, 1, 0, 2, 0x11, 3, 0x11, 0, 63, 0};
    for (size_t at = PIECE - 200; at <= PIECE + 100; at += 100) {
        struct subject s;
        size_t size;
        int r;
        uint8_t *file = jpeg_write(&specs[0], &size), *longer = calloc(1, at + 100);
        CHECK(longer != NULL && size < at);
        memcpy(longer, file, size - 2); /* zeros follow where the end was marked */
        memcpy(longer + at, scan, sizeof scan);
        free(file);
        CHECK(subject_open(&s, longer, at + 100) == 0);
        CHECK_EQ(damaged_of(&s, &r), at >= PIECE);
        CHECK_EQ(r, PSTK_EBADMSG);
        CHECK_EQ(decode_whole(&s), at >= PIECE ? 0 : PSTK_EBADMSG);
        subject_close(&s);
    }
}

/* A segment to be skipped may be longer than several pieces are left. */
TEST(a_segment_is_skipped_over_the_end_of_a_piece)
{
    struct subject s;
    size_t size;
    uint32_t w, h;
    uint8_t *file = jpeg_write(&specs[0], &size), *pixels = jpeg_reference(file, size, &w, &h);
    const size_t n = 3 * 65537; /* three comments of the largest size */
    uint8_t *longer = calloc(1, size + n);
    CHECK(longer != NULL);
    memcpy(longer, file, 20); /* SOI and JFIF */
    for (int i = 0; i < 3; i++)
        memcpy(longer + 20 + 65537 * i, "\xff\xfe\xff\xff", 4);
    memcpy(longer + 20 + n, file + 20, size - 20);
    free(file);
    CHECK(subject_open(&s, longer, size + n) == 0);
    CHECK_EQ(decode_whole(&s), 0);
    CHECK(memcmp(s.pixels, pixels, (size_t)w * h * 3) == 0);
    free(pixels);
    subject_close(&s);
}

TEST(only_jpegs_are_damaged)
{
    static const uint8_t png[] = {0x89, 'P', 'N', 'G', 13, 10, 26, 10, 0, 0, 0, 13, 'I', 'H', 'D',
                                  'R',  0,   0,   0,   1,  0,  0,  0,  1, 8, 0, 0,  0,   0};
    uint32_t damaged = 1;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk_image_check_damaged(png, sizeof png, 0, &damaged, &err), PSTK_EBADMSG);
    CHECK_EQ(damaged, 0);
    damaged = 1;
    CHECK_EQ(pstk_image_check_damaged("no", 2, 0, &damaged, &err), PSTK_EBADMSG);
    CHECK_EQ(damaged, 0);
    CHECK_EQ(pstk_image_check_damaged(NULL, 0, 0, &damaged, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_image_check_damaged(png, sizeof png, 0, NULL, &err), PSTK_EINVAL);
}

int main(void)
{
    static const struct test_case cases[] = {
        CASE(a_box_of_a_damaged_file_is_that_of_its_whole_image),
        CASE(a_whole_file_has_the_same_pixels),
        CASE(a_file_that_ends_too_early_is_refused),
        CASE(bytes_after_the_last_row_count_only_in_the_piece_already_read),
        CASE(a_segment_is_skipped_over_the_end_of_a_piece),
        CASE(only_jpegs_are_damaged),
    };
    return RUN_CASES(cases);
}
