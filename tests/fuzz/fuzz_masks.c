/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_masks: any bytes as COCO's compressed counts, and as corners of polygons. What is decoded is
 * a mask of 0 and 1, with as many pixels of 1 as its runs have.
 */
#include <penstock/annotations.h>

#include <stdlib.h>
#include <string.h>

#define SIDE 61 /* pixels */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t count(const uint8_t *mask, uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (mask[i] > 1)
            abort();
        sum += mask[i];
    }
    return sum;
}

static void decode_runs(const char *text, size_t size)
{
    uint32_t *counts = malloc(size ? size * sizeof *counts : 1);
    uint8_t mask[SIDE * SIDE];
    uint64_t n = 0, sum = 0, ones = 0;
    if (counts && pstk_rle_parse(text, size, counts, size, &n, NULL) == 0) {
        if (n > size)
            abort();
        for (uint64_t i = 0; i < n; i++) {
            sum += counts[i];
            ones += i % 2 ? counts[i] : 0;
        }
        for (uint32_t height = 1; height <= SIDE; height += 12) {
            const int r = pstk_rle_decode(counts, n, height, SIDE, mask, NULL);
            if ((r == 0) != (sum == height * SIDE) || (r == 0 && count(mask, sum) != ones))
                abort();
        }
    }
    free(counts);
}

static void draw_polygon(const uint8_t *data, size_t size)
{
    const uint32_t n = (uint32_t)(size / 4), n_points[2] = {n / 2, n - n / 2};
    double *points = malloc(size ? 2 * (size_t)n * sizeof *points + 1 : 1);
    uint8_t mask[SIDE * SIDE];
    for (uint32_t i = 0; points && i < 2 * n; i++) {
        int16_t tenths;
        memcpy(&tenths, data + 2 * (size_t)i, sizeof tenths);
        points[i] = tenths / 10.;
    }
    memset(mask, 7, sizeof mask);
    if (points && pstk_polygon_mask(points, n_points, 2, SIDE, SIDE, mask, NULL) == 0)
        count(mask, sizeof mask);
    free(points);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 4096)
        return 0;
    char *text = malloc(size ? size : 1); /* allocate exactly its size */
    if (text && size)
        memcpy(text, data, size);
    if (text)
        decode_runs(text, size);
    free(text);
    draw_polygon(data, size);
    return 0;
}
