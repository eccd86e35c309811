/* SPDX-License-Identifier: Apache-2.0 */
/* runs: masks as runs, in the two encodings of COCO's files. */
#include <penstock/annotations.h>

#include <inttypes.h>
#include <string.h>

#include "annotations/mask_size.h"
#include "base/error.h"

#define DIGIT_BITS 5
#define MORE 0x20    /* bit: another character of this run follows */
#define SIGN 0x10    /* bit of the last character: the difference is negative */
#define MAX_DIGITS 7 /* characters of a run: 35 bits hold every difference of two runs */
#define FIRST_CHARACTER '0'
#define N_CHARACTERS 64

/* Read the number that begins at text[*at]. Returns 0; -1: it does not end, or has too many digits.
 */
static int take_number(const char *text, uint64_t size, uint64_t *at, int64_t *number)
{
    uint64_t value = 0;
    for (uint32_t n = 0; n < MAX_DIGITS && *at < size; n++) {
        const uint32_t digit = (uint32_t)(uint8_t)text[*at] - FIRST_CHARACTER;
        if (digit >= N_CHARACTERS)
            return -1;
        ++*at;
        value |= (uint64_t)(digit & (MORE - 1)) << (DIGIT_BITS * n);
        if (digit & MORE)
            continue;
        if (digit & SIGN)
            value |= ~UINT64_C(0) << (DIGIT_BITS * (n + 1));
        *number = (int64_t)value;
        return 0;
    }
    return -1;
}

int pstk_rle_parse(const char *text, uint64_t size, uint32_t *counts, uint64_t room, uint64_t *n,
                   struct pstk_error *err)
{
    uint32_t before[2] = {0, 0}; /* the previous two runs */
    uint64_t at = 0, found = 0;
    *n = 0;
    while (at < size) {
        const uint64_t from = at;
        int64_t run;
        if (take_number(text, size, &at, &run) < 0)
            return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_RECORD,
                              "counts: byte %" PRIu64 " of %" PRIu64
                              " is not of a compressed mask (must be COCO's compressed counts)",
                              at, size);
        if (found > 2)
            run += before[found % 2];
        if (run < 0 || run > UINT32_MAX)
            return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_RECORD,
                              "counts: run %" PRIu64 ", at byte %" PRIu64 ", is %" PRId64
                              "; must be 0 to 4294967295",
                              found, from, run);
        if (found == room)
            return pstk__fail_setting(err, "room", room,
                                      "the number of runs, which is at most the text's bytes");
        before[found % 2] = counts[found] = (uint32_t)run;
        found++;
    }
    *n = found;
    return 0;
}

/* Set `n` pixels to 1, from number `at` on, down the columns. */
static void fill_run(uint8_t *mask, uint32_t height, uint32_t width, uint64_t at, uint64_t n)
{
    uint64_t x = at / height, y = at % height;
    while (n) {
        const uint64_t in_column = n < height - y ? n : height - y;
        for (uint64_t row = y; row < y + in_column; row++)
            mask[row * width + x] = 1;
        n -= in_column;
        y = 0;
        x++;
    }
}

int pstk_rle_decode(const uint32_t *counts, uint64_t n, uint32_t height, uint32_t width,
                    uint8_t *mask, struct pstk_error *err)
{
    const uint64_t n_pixels = (uint64_t)height * width;
    uint64_t sum = 0;
    const int r = pstk__mask_size_check(height, width, err);
    if (r < 0)
        return r;
    for (uint64_t i = 0; i < n && sum <= n_pixels; i++)
        sum += counts[i];
    if (sum != n_pixels)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_RECORD,
                          "counts: sum is %" PRIu64 "%s; must be %" PRIu64
                          ", the pixels of %u x %u (COCO's size is height, width)",
                          sum, sum > n_pixels ? " or more" : "", n_pixels, height, width);
    memset(mask, 0, n_pixels);
    sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (i % 2)
            fill_run(mask, height, width, sum, counts[i]);
        sum += counts[i];
    }
    return 0;
}
