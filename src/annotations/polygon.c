/* SPDX-License-Identifier: Apache-2.0 */
/*
 * polygon: fills polygons as masks, by the rule of rleFrPoly in COCO's maskApi.c. Corners are
 * rounded to fifths of a pixel, and the boundary is walked between them in steps of a fifth. Where
 * it crosses the centre line of a column of pixels, the pixels below change between outside and
 * inside.
 *
 * The reference sorts the crossings and makes runs of them. This code toggles a bit of the mask at
 * each crossing, then sums the parity down the columns, which needs no other memory.
 */
#include <penstock/annotations.h>

#include <stdlib.h>
#include <string.h>

#include "annotations/mask_size.h"
#include "base/error.h"

#define STEPS 5      /* steps in a pixel */
#define CENTRE 2     /* step of a pixel on its centre line */
#define MOST 1048576 /* largest coordinate, pixels; 5 times this fits an int many times */
#define INSIDE 1     /* bit of a pixel inside the mask */
#define TURN 2       /* bit of a crossing; cleared in the end */

struct drawing {
    uint8_t *mask;
    int32_t height, width;
};

struct position {
    int32_t x, y; /* in steps */
};

/* Handle the boundary from step `a` to step `b`, in another column of steps: toggle TURN where it
 * crosses the centre line of a column of pixels. */
static void cross(const struct drawing *d, struct position a, struct position b)
{
    const int32_t step = (b.x < a.x ? b.x : b.x - 1) - CENTRE;
    if (step < 0 || step % STEPS || step / STEPS >= d->width)
        return;
    const int32_t low = (a.y < b.y ? a.y : b.y) - CENTRE;
    int32_t x = step / STEPS;
    int32_t y = low <= 0 ? 0 : (low + STEPS - 1) / STEPS; /* rounded up */
    if (y >= d->height) { /* below the column: at the top of the next one */
        y = 0;
        x++;
    }
    if (x < d->width)
        d->mask[(int64_t)y * d->width + x] ^= TURN;
}

/* Return position t of a side, counted from `from`. */
static struct position side_at(struct position from, double slope, int along_x, int32_t t)
{
    if (along_x)
        return (struct position){from.x + t, (int32_t)(from.y + slope * t + .5)};
    return (struct position){(int32_t)(from.x + slope * t + .5), from.y + t};
}

/* Walk a side and return its last position. before: the position before the first one, or NULL. The
 * arithmetic is the reference's: from the lower end to the upper one, in either direction of the
 * side. */
static struct position walk(const struct drawing *d, const struct position *before,
                            struct position from, struct position to)
{
    const int32_t dx = abs(to.x - from.x), dy = abs(to.y - from.y);
    const int along_x = dx >= dy;
    const int32_t n = along_x ? dx : dy;
    const int turned = along_x ? from.x > to.x : from.y > to.y;
    const struct position low = turned ? to : from, high = turned ? from : to;
    /* A side of one position has no slope, and needs none. */
    const double slope = n == 0    ? 0
                         : along_x ? (double)(high.y - low.y) / n
                                   : (double)(high.x - low.x) / n;
    struct position last = side_at(low, slope, along_x, turned ? n : 0);
    if (before && before->x != last.x)
        cross(d, *before, last);
    for (int32_t i = 1; i <= n; i++) {
        const struct position next = side_at(low, slope, along_x, turned ? n - i : i);
        if (next.x != last.x)
            cross(d, last, next);
        last = next;
    }
    return last;
}

static struct position position_of(const double *point)
{
    return (struct position){(int32_t)(STEPS * point[0] + .5), (int32_t)(STEPS * point[1] + .5)};
}

static void walk_boundary(const struct drawing *d, const double *points, uint32_t n)
{
    const struct position first = position_of(points);
    struct position corner = first, last = first;
    for (uint32_t i = 0; i < n; i++) {
        const struct position next =
            i + 1 < n ? position_of(points + 2 * ((uint64_t)i + 1)) : first;
        last = walk(d, i ? &last : NULL, corner, next);
        corner = next;
    }
}

/* Toggle TURN in all of column x. */
static void turn_column(const struct drawing *d, int32_t x)
{
    for (int32_t y = 0; y < d->height; y++)
        d->mask[(int64_t)y * d->width + x] ^= TURN;
}

/* Set INSIDE for the pixels after an odd number of crossings, counted down the columns and from one
 * column to the next; clear all TURNs. */
static void fill(const struct drawing *d)
{
    const int32_t width = d->width;
    const uint8_t *bottom = d->mask + (int64_t)(d->height - 1) * width;
    const int64_t n_pixels = (int64_t)d->height * width;
    for (int64_t i = width; i < n_pixels; i++)
        d->mask[i] ^= d->mask[i - width] & TURN;
    for (int32_t x = 1; x < width; x++) /* few columns end inside */
        if (bottom[x - 1] & TURN)
            turn_column(d, x);
    for (int64_t i = 0; i < n_pixels; i++)
        d->mask[i] = (uint8_t)((d->mask[i] | d->mask[i] / TURN) & INSIDE);
}

/* Check the corners of all polygons. */
static int check_points(const double *points, const uint32_t *n_points, uint32_t n_polygons,
                        struct pstk_error *err)
{
    for (uint32_t p = 0; p < n_polygons; p++) {
        for (uint64_t i = 0; i < 2 * (uint64_t)n_points[p]; i++) {
            const double value = points[i];
            if (!(value >= -MOST && value <= MOST))
                return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_RECORD,
                                  "points: corner %u of polygon %u has %c %g; must be -%d to %d",
                                  (uint32_t)(i / 2), p, i % 2 ? 'y' : 'x', value, MOST, MOST);
        }
        points += 2 * (uint64_t)n_points[p];
    }
    return 0;
}

int pstk_polygon_mask(const double *points, const uint32_t *n_points, uint32_t n_polygons,
                      uint32_t height, uint32_t width, uint8_t *mask, struct pstk_error *err)
{
    const struct drawing d = {mask, (int32_t)height, (int32_t)width};
    int r = pstk__mask_size_check(height, width, err);
    if (r == 0)
        r = check_points(points, n_points, n_polygons, err);
    if (r < 0)
        return r;
    memset(mask, 0, (uint64_t)height * width);
    for (uint32_t p = 0; p < n_polygons; p++) {
        if (n_points[p] == 0)
            continue;
        walk_boundary(&d, points, n_points[p]);
        fill(&d);
        points += 2 * (uint64_t)n_points[p];
    }
    return 0;
}
