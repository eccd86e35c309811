/* SPDX-License-Identifier: Apache-2.0 */
#include "pixels/copy.h"
#include "pixels/warp.h"
#include "support/picture.h"
#include "support/test.h"

static uint64_t state = 88172645463325252ull;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 33) % below;
}

/* Over every ISA that this CPU runs. */
#define EACH_ISA(k)                                                                                \
    for (uint32_t k##_v = PSTK_KERNELS_C; k##_v <= PSTK_KERNELS_NEON; k##_v++)                     \
        for (const struct pstk__warp_kernels *k = pstk__warp_kernels(k##_v); k; k = NULL)

static const uint8_t fill[4] = {11, 22, 33, 44};

static int picture_draw(struct pstk__picture *picture, uint32_t size)
{
    if (picture_open(picture, 1 + draw(90), 1 + draw(90), size) < 0)
        return -1;
    for (uint64_t i = 0; i < pstk__picture_size(picture); i++)
        picture->pixels[i] = (uint8_t)draw(256);
    return 0;
}

/* Pixels of `out` that are not those of the input at (x, y), or the fill where that lies outside.
 */
struct place {
    int64_t x, y;
};
typedef struct place place_function(const struct pstk__picture *in, int64_t x, int64_t y);

static int wrong_pixels(const struct pstk__picture *out, const struct pstk__picture *in,
                        place_function *from)
{
    const uint32_t size = in->channels;
    int n_bad = 0;
    for (uint32_t i = 0; i < out->width * out->height; i++) {
        const struct place p = from(in, i % out->width, i / out->width);
        const int inside = p.x >= 0 && p.y >= 0 && p.x < in->width && p.y < in->height;
        const uint8_t *want = inside ? in->pixels + (uint64_t)(p.y * in->width + p.x) * size : fill;
        n_bad += memcmp(out->pixels + (uint64_t)i * size, want, size) != 0;
    }
    return n_bad;
}

static struct place across(const struct pstk__picture *in, int64_t x, int64_t y)
{
    return (struct place){in->width - 1 - x, y};
}

static struct place down(const struct pstk__picture *in, int64_t x, int64_t y)
{
    return (struct place){x, in->height - 1 - y};
}

static struct place turned_0(const struct pstk__picture *in, int64_t x, int64_t y)
{
    (void)in;
    return (struct place){x, y};
}

static struct place turned_90(const struct pstk__picture *in, int64_t x, int64_t y)
{
    return (struct place){in->width - 1 - y, x};
}

static struct place turned_180(const struct pstk__picture *in, int64_t x, int64_t y)
{
    return (struct place){in->width - 1 - x, in->height - 1 - y};
}

static struct place turned_270(const struct pstk__picture *in, int64_t x, int64_t y)
{
    return (struct place){y, in->height - 1 - x};
}

TEST(mirrors_move_pixels_of_one_to_four_bytes)
{
    for (uint32_t i = 0; i < 400; i += test_stride(4, 4)) {
        struct pstk__picture in, out;
        CHECK_EQ(picture_draw(&in, 1 + i % 4), 0);
        CHECK_EQ(picture_open(&out, in.width, in.height, in.channels), 0);
        int n_bad = 0;
        EACH_ISA(k)
        {
            pstk__copy_flip_horizontal(k, &out, &in);
            n_bad += wrong_pixels(&out, &in, across);
        }
        pstk__copy_flip_vertical(&out, &in);
        n_bad += wrong_pixels(&out, &in, down);
        picture_close(&in);
        picture_close(&out);
        CHECK_EQ(n_bad, 0);
    }
}

TEST(turns_move_pixels_of_one_to_four_bytes)
{
    static place_function *const turned[4] = {turned_0, turned_90, turned_180, turned_270};
    for (uint32_t i = 0; i < 800; i += test_stride(4, 4)) {
        const uint32_t turn = i / 4 % 4;
        struct pstk__picture in, out;
        CHECK_EQ(picture_draw(&in, 1 + i % 4), 0);
        CHECK_EQ(picture_open(&out, turn & 1 ? in.height : in.width,
                              turn & 1 ? in.width : in.height, in.channels),
                 0);
        int n_bad = 0;
        EACH_ISA(k)
        {
            pstk__copy_turn(k, &out, &in, turn);
            n_bad += wrong_pixels(&out, &in, turned[turn]);
        }
        picture_close(&in);
        picture_close(&out);
        CHECK_EQ(n_bad, 0);
    }
}

/* The pad that is tested. */
static struct {
    int32_t left, top;
    uint32_t mode;
} pad;

/* Step by step, from the edge of what the output shows of the input. */
static int64_t walked(int64_t i, int64_t first, int64_t last)
{
    if (pad.mode == PSTK_PAD_EDGE)
        return i < first ? first : i > last ? last : i;
    const int64_t once = pad.mode == PSTK_PAD_REFLECT;
    while ((i < first || i > last) && first < last)
        i = i < first ? 2 * first - 1 + once - i : 2 * last + 1 - once - i;
    return first < last ? i : first;
}

static struct place padded(const struct pstk__picture *in, int64_t x, int64_t y)
{
    x -= pad.left;
    y -= pad.top;
    if (pad.mode == PSTK_PAD_CONSTANT)
        return (struct place){x, y};
    return (struct place){walked(x, pad.left < 0 ? -pad.left : 0, in->width - 1),
                          walked(y, pad.top < 0 ? -pad.top : 0, in->height - 1)};
}

TEST(a_pad_mirrors_or_repeats_what_is_not_cropped)
{
    for (uint32_t i = 0; i < 1200; i += test_stride(4, 4)) {
        struct pstk__picture in, out;
        CHECK_EQ(picture_draw(&in, 1 + i % 4), 0);
        pad.left = (int32_t)draw(60) - (int32_t)(in.width < 30 ? in.width - 1 : 30);
        pad.top = (int32_t)draw(60) - (int32_t)(in.height < 30 ? in.height - 1 : 30);
        pad.mode = i / 4 % 4;
        /* The far ends of the input are inside. */
        CHECK_EQ(picture_open(&out, (uint32_t)((int32_t)in.width + pad.left) + draw(40),
                              (uint32_t)((int32_t)in.height + pad.top) + draw(40), in.channels),
                 0);
        pstk__copy_pad(&out, &in, pad.left, pad.top, pad.mode, fill);
        const int n_bad = wrong_pixels(&out, &in, padded);
        picture_close(&in);
        picture_close(&out);
        CHECK_EQ(n_bad, 0);
    }
}

TEST(a_crop_fills_what_lies_outside)
{
    pad.mode = PSTK_PAD_CONSTANT;
    for (uint32_t i = 0; i < 400; i += test_stride(4, 4)) {
        struct pstk__picture in, out;
        CHECK_EQ(picture_draw(&in, 1 + i % 4), 0);
        CHECK_EQ(picture_open(&out, 1 + draw(120), 1 + draw(120), in.channels), 0);
        pad.left = (int32_t)draw(300) - 150;
        pad.top = (int32_t)draw(300) - 150;
        pstk__copy_crop(&out, &in, -pad.left, -pad.top, fill);
        const int n_bad = wrong_pixels(&out, &in, padded);
        picture_close(&in);
        picture_close(&out);
        CHECK_EQ(n_bad, 0);
    }
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(mirrors_move_pixels_of_one_to_four_bytes),
        CASE(turns_move_pixels_of_one_to_four_bytes),
        CASE(a_pad_mirrors_or_repeats_what_is_not_cropped),
        CASE(a_crop_fills_what_lies_outside),
    };
    return RUN_CASES(cases);
}
