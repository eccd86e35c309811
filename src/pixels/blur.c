/* SPDX-License-Identifier: Apache-2.0 */
#include "pixels/blur.h"

#include "base/kernels.h"
#include "base/random.h"
#include "pixels/copy.h"
#include "pixels/warp.h"

#include <string.h>

static uint8_t *row_of(const struct pstk__picture *picture, uint32_t row)
{
    return picture->pixels + (size_t)row * picture->width * picture->channels;
}

/* Return a row, or the edge row nearest to it when it lies outside. */
static const uint8_t *clamped_row(const struct pstk__picture *picture, int64_t row)
{
    const int64_t last = (int64_t)picture->height - 1;
    return row_of(picture, (uint32_t)(row < 0 ? 0 : row < last ? row : last));
}

/* ---- boxes --------------------------------------------------------------------------------- */

#define N_BOXES 3u

/* Return half the height of a box, with the fraction that weighs its outermost rows, as Pillow's
 * _gaussian_blur_radius does. Each operation rounds to the type that it has there. */
static float box_radius(float radius)
{
    const float variance = radius * radius / N_BOXES;
    const float length = (float)__builtin_sqrt(12.0 * (double)variance + 1.0);
    const float whole = (float)(uint32_t)(((double)length - 1.0) / 2.0);
    float part = (2 * whole + 1) * (whole * (whole + 1) - 3 * variance);
    part /= 6 * (variance - (whole + 1) * (whole + 1));
    return whole + part;
}

/* Compute the sums of the box around the row above the first row. */
static void first_sums(uint32_t *sums, const struct pstk__picture *in, uint32_t reach)
{
    const uint32_t n = in->width * in->channels, last = in->height - 1;
    const uint32_t n_below = reach < last ? reach : last; /* rows that are in the box once */
    const uint8_t *top = row_of(in, 0), *bottom = row_of(in, last);
    for (uint32_t i = 0; i < n; i++)
        sums[i] = top[i] * (reach + 1) + bottom[i] * (reach - n_below);
    for (uint32_t row = 0; row < n_below; row++) {
        const uint8_t *from = row_of(in, row);
        for (uint32_t i = 0; i < n; i++)
            sums[i] += from[i];
    }
}

/* The memory that both blurs divide: two pictures and rows of sums, or a row of floats. */
struct rooms {
    struct pstk__picture a, b;
    uint32_t *sums;
    uint16_t *low_sums;
};

static void narrow_sums(const struct rooms *rooms, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        rooms->low_sums[i] = (uint16_t)rooms->sums[i];
}

/* Blur down, as Pillow's ImagingHorizontalBoxBlur on a turned picture. */
static void box_pass(const struct pstk__blur_kernels *kernels, const struct pstk__picture *out,
                     const struct pstk__picture *in, float radius, const struct rooms *rooms)
{
    const uint32_t reach = (uint32_t)radius, n = in->width * in->channels;
    const uint32_t weight = (uint32_t)((float)(1u << 24) / (radius * 2 + 1));
    const int is_low = 2 * reach + 1 <= PSTK__BLUR_LOW_BOX;
    first_sums(rooms->sums, in, reach);
    if (is_low)
        narrow_sums(rooms, n);
    for (int64_t row = 0; row < in->height; row++) {
        const struct pstk__blur_box box = {
            .leaving = clamped_row(in, row - reach - 1),
            .entering = clamped_row(in, row + reach),
            .next = clamped_row(in, row + reach + 1),
            .weight = weight,
            .edge_weight = ((1u << 24) - (reach * 2 + 1) * weight) / 2,
        };
        if (is_low)
            kernels->low_box_row(row_of(out, (uint32_t)row), rooms->low_sums, &box, n);
        else
            kernels->box_row(row_of(out, (uint32_t)row), rooms->sums, &box, n);
    }
}

static struct rooms rooms_of(const struct pstk__picture *in, void *scratch)
{
    const uint64_t size = pstk__picture_room((uint64_t)in->width * in->height, in->channels);
    const uint64_t side = in->width > in->height ? in->width : in->height;
    uint8_t *pixels = scratch;
    uint32_t *sums = (uint32_t *)(void *)(pixels + 2 * size);
    return (struct rooms){
        .a = {pixels, in->width, in->height, in->channels},
        .b = {pixels + size, in->width, in->height, in->channels},
        .sums = sums,
        .low_sums = (uint16_t *)(void *)(sums + side * in->channels),
    };
}

static void turn_round(struct pstk__picture *picture)
{
    const uint32_t width = picture->width;
    picture->width = picture->height;
    picture->height = width;
}

/* Blur across: turn the picture, blur down, and turn it back. */
static void boxes_across(const struct pstk__blur_kernels *kernels, const struct pstk__picture *out,
                         const struct pstk__picture *in, float radius, struct rooms rooms)
{
    const struct pstk__warp_kernels *turns = pstk__warp_kernels(kernels->isa);
    turn_round(&rooms.a);
    turn_round(&rooms.b);
    pstk__copy_turn(turns, &rooms.a, in, PSTK__TURN_90);
    box_pass(kernels, &rooms.b, &rooms.a, radius, &rooms);
    box_pass(kernels, &rooms.a, &rooms.b, radius, &rooms);
    box_pass(kernels, &rooms.b, &rooms.a, radius, &rooms);
    pstk__copy_turn(turns, out, &rooms.b, PSTK__TURN_270);
}

/* Blur down; `in` may be `out`. */
static void boxes_down(const struct pstk__blur_kernels *kernels, const struct pstk__picture *out,
                       const struct pstk__picture *in, float radius, const struct rooms *rooms)
{
    box_pass(kernels, &rooms->a, in, radius, rooms);
    box_pass(kernels, &rooms->b, &rooms->a, radius, rooms);
    box_pass(kernels, out, &rooms->b, radius, rooms);
}

void pstk__blur_box_gaussian(const struct pstk__blur_kernels *kernels,
                             const struct pstk__picture *out, const struct pstk__picture *in,
                             const float radius[2], void *scratch)
{
    const struct rooms rooms = rooms_of(in, scratch);
    const float x = box_radius(radius[0]), y = box_radius(radius[1]);
    if (x != 0)
        boxes_across(kernels, out, in, x, rooms);
    if (y != 0)
        boxes_down(kernels, out, x != 0 ? out : in, y, &rooms);
    if (x == 0 && y == 0)
        memcpy(out->pixels, in->pixels, pstk__picture_size(in));
}

/* ---- a sum of weights ---------------------------------------------------------------------- */

static void weights_of(struct pstk__blur_weights *weights, uint32_t size, double sigma)
{
    double values[PSTK__BLUR_MAX_KERNEL / 2 + 1], sum = 0;
    weights->reach = size / 2;
    for (uint32_t k = 0; k <= weights->reach; k++) {
        const double distance = k / sigma;
        values[k] = pstk__exp(-0.5 * (distance * distance));
        sum += k > 0 ? 2 * values[k] : values[k];
    }
    for (uint32_t k = 0; k <= weights->reach; k++)
        weights->weights[k] = (float)(values[k] / sum);
}

/* Return a position, mirrored at either end of n when it is less than n past it; the end itself is
 * not repeated. */
static uint32_t mirrored(int64_t place, uint32_t n)
{
    const int64_t last = (int64_t)n - 1;
    return (uint32_t)(place < 0 ? -place : place <= last ? place : 2 * last - place);
}

/* Mirror `reach` pixels at both ends of n; `row` is the first of the n. */
static void mirror_ends(float *row, uint32_t n, uint32_t reach, uint32_t channels)
{
    const size_t size = channels * sizeof *row;
    float *end = row + (size_t)n * channels;
    for (size_t k = 1; k <= reach; k++) {
        memcpy(row - k * channels, row + k * channels, size);
        memcpy(end + (k - 1) * channels, end - (k + 1) * channels, size);
    }
}

void pstk__blur_gaussian(const struct pstk__blur_kernels *kernels, const struct pstk__picture *out,
                         const struct pstk__picture *in, const struct pstk__blur_params *params,
                         void *scratch)
{
    struct pstk__blur_weights x, y;
    const uint8_t *rows[PSTK__BLUR_MAX_KERNEL];
    const uint32_t n = in->width * in->channels;
    weights_of(&x, params->size[0], params->sigma[0]);
    weights_of(&y, params->size[1], params->sigma[1]);
    float *sums = (float *)scratch + (size_t)x.reach * in->channels;
    for (uint32_t row = 0; row < in->height; row++) {
        for (uint32_t k = 0; k <= 2 * y.reach; k++)
            rows[k] = row_of(in, mirrored((int64_t)row + k - y.reach, in->height));
        kernels->column(sums, rows, &y, n);
        mirror_ends(sums, in->width, x.reach, in->channels);
        kernels->row(row_of(out, row), sums, &x, n, in->channels);
    }
}

uint64_t pstk__blur_scratch(uint32_t width, uint32_t height, uint32_t channels)
{
    const uint64_t side = width > height ? width : height;
    const uint64_t pictures = 2 * pstk__picture_room((uint64_t)width * height, channels);
    const uint64_t sums = (sizeof(uint32_t) + sizeof(uint16_t)) * channels * side;
    const uint64_t floats = sizeof(float) * channels * (side + PSTK__BLUR_MAX_KERNEL);
    return pictures + (((sums > floats ? sums : floats) + 63) & ~(uint64_t)63);
}

/* ---- kernels ------------------------------------------------------------------------------- */

const struct pstk__blur_kernels *pstk__blur_kernels(uint32_t isa)
{
    /* The kernels from worst to best, including those that this CPU does not run. */
    static const void *const entries[] = {
        &pstk__blur_c,
#if defined(__x86_64__)
        &pstk__blur_avx2,
        &pstk__blur_avx512,
#endif
    };
    return pstk__kernels_choose(entries, sizeof entries / sizeof entries[0], isa);
}
