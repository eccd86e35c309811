/* SPDX-License-Identifier: Apache-2.0 */
#include "order/windowed.h"

#include <assert.h>

#define BLOCK_AUTO 64u
#define WINDOW_AUTO 4u

void pstk__interleave_settle(struct pstk__interleave *interleave)
{
    /* Numbers of ways that many numbers of ranks divide. Each way has at least four windows. */
    static const uint32_t ways[] = {48, 12, 4, 1};
    if (!interleave->block)
        interleave->block = BLOCK_AUTO;
    if (!interleave->window)
        interleave->window = WINDOW_AUTO;
    for (uint32_t i = 0; !interleave->ways; i++)
        if (interleave->n >= 1024u * (uint64_t)ways[i] || ways[i] == 1)
            interleave->ways = ways[i];
}

/* Return the stream of draws of an epoch for one purpose, as draws_of in order.c. */
static struct pstk__random draws_of(uint64_t purpose, uint64_t seed, uint64_t epoch)
{
    const uint64_t key = pstk__mix64(seed + purpose);
    return (struct pstk__random){
        .key = {(uint32_t)key, (uint32_t)(key >> 32)},
        .counter = {0, 0, (uint32_t)epoch, (uint32_t)(epoch >> 32)},
    };
}

void pstk__windowed_init(struct pstk__windowed *windowed, const struct pstk__interleave *interleave,
                         uint64_t seed, uint64_t epoch)
{
    const uint64_t n_blocks = (interleave->n - 1) / interleave->block + 1;
    *windowed = (struct pstk__windowed){
        .interleave = *interleave,
        .n_blocks = n_blocks,
        .n_last = interleave->n - (n_blocks - 1) * interleave->block,
        .n_way = interleave->n / interleave->ways,
        .n_longer = interleave->n % interleave->ways,
        .n_window = (uint64_t)interleave->window * interleave->block,
    };
    struct pstk__random draws = draws_of(0x77696E646F773031u, seed, epoch); /* "window01" */
    pstk__permutation_init(&windowed->blocks, n_blocks, &draws);
    windowed->last = pstk__permutation_find(&windowed->blocks, n_blocks - 1);
    draws = draws_of(0x77696E646F773032u, seed, epoch); /* "window02" */
    for (int i = 0; i < PSTK__FEISTEL_ROUNDS; i++)
        windowed->mixer.keys[i] = pstk__random_u64(&draws);
    windowed->window_key = pstk__random_u64(&draws);
    windowed->row_key = pstk__random_u64(&draws);
    pstk__feistel_size(&windowed->mixer, windowed->n_window);
}

/* Return the samples by which a way changes windows early. */
static uint64_t phase_of(const struct pstk__windowed *windowed, uint32_t way)
{
    return way * windowed->n_window / windowed->interleave.ways;
}

/* Return the index in the line of samples at which a way begins. */
static uint64_t begin_of(const struct pstk__windowed *windowed, uint32_t way)
{
    const uint64_t longer = way < windowed->n_longer ? way : windowed->n_longer;
    return way * windowed->n_way + longer;
}

uint64_t pstk__windowed_way(const struct pstk__windowed *windowed, uint32_t way)
{
    return windowed->n_way + (way < windowed->n_longer);
}

uint64_t pstk__windowed_window(const struct pstk__windowed *windowed, uint32_t way, uint64_t i)
{
    return (i + phase_of(windowed, way)) / windowed->n_window;
}

uint64_t pstk__windowed_n_windows(const struct pstk__windowed *windowed, uint32_t way)
{
    const uint64_t n = pstk__windowed_way(windowed, way);
    return n ? pstk__windowed_window(windowed, way, n - 1) + 1 : 0;
}

/* Find the samples of a window of a way whose phase is known: number of the first, and how many. */
static void span_of(const struct pstk__windowed *windowed, uint32_t way, uint64_t phase,
                    uint64_t window, uint64_t *first, uint64_t *n)
{
    const uint64_t begin = window * windowed->n_window, all = pstk__windowed_way(windowed, way);
    const uint64_t end = begin + windowed->n_window - phase;
    *first = begin > phase ? begin - phase : 0;
    *n = (end < all ? end : all) - *first;
}

void pstk__windowed_span(const struct pstk__windowed *windowed, uint32_t way, uint64_t window,
                         uint64_t *first, uint64_t *n)
{
    span_of(windowed, way, phase_of(windowed, way), window, first, n);
}

/* Return the block of an index in the line of samples, and set *row. Indices after the last block,
 * which may be short, are moved up to a multiple of the block's size. */
static uint64_t block_at(const struct pstk__windowed *windowed, uint64_t at, uint32_t *row)
{
    const uint32_t block = windowed->interleave.block;
    const uint64_t last = windowed->last * block;
    if (at >= last + windowed->n_last)
        at += block - windowed->n_last;
    *row = (uint32_t)(at % block);
    return at / block;
}

/* Rotate the rows of a block of the line. The factors of the product are below 2^32 and 2^20. */
static uint32_t rotate(const struct pstk__windowed *windowed, uint64_t line, uint32_t row)
{
    const uint64_t n = line == windowed->last ? windowed->n_last : windowed->interleave.block;
    const uint64_t by = (pstk__mix64(windowed->row_key + line) >> 32) * n >> 32;
    return (uint32_t)(row + by < n ? row + by : row + by - n);
}

/* Permute a window: map sample i of its n to another one. */
static uint64_t mix(const struct pstk__windowed *windowed, uint32_t way, uint64_t window,
                    uint64_t n, uint64_t i)
{
    const uint64_t twist = pstk__mix64(pstk__mix64(windowed->window_key + way) + window);
    if (n == windowed->n_window)
        return n > 1 ? pstk__feistel_walk(&windowed->mixer, twist, n, i) : i;
    if (n < 2)
        return i;
    struct pstk__feistel mixer = windowed->mixer;
    pstk__feistel_size(&mixer, n);
    return pstk__feistel_walk(&mixer, twist, n, i);
}

void pstk__windowed_line(const struct pstk__windowed *windowed, uint64_t k,
                         struct pstk__interleave_location *out)
{
    const uint32_t ways = windowed->interleave.ways;
    assert(k < windowed->interleave.n);
    out->way = (uint32_t)(k % ways);
    const uint64_t i = k / ways;
    const uint64_t phase = phase_of(windowed, out->way);
    uint64_t first, n;
    out->window = (i + phase) / windowed->n_window;
    span_of(windowed, out->way, phase, out->window, &first, &n);
    const uint64_t at =
        begin_of(windowed, out->way) + first + mix(windowed, out->way, out->window, n, i - first);
    out->line = block_at(windowed, at, &out->row);
    out->row = rotate(windowed, out->line, out->row);
}

void pstk__windowed_locate(const struct pstk__windowed *windowed, uint64_t k,
                           struct pstk__interleave_location *out)
{
    pstk__windowed_line(windowed, k, out);
    out->id =
        pstk__permutation_at(&windowed->blocks, out->line) * windowed->interleave.block + out->row;
}

uint64_t pstk__windowed_at(const struct pstk__windowed *windowed, uint64_t k)
{
    struct pstk__interleave_location location;
    pstk__windowed_locate(windowed, k, &location);
    return location.id;
}

struct pstk__interleave_blocks pstk__windowed_blocks(const struct pstk__windowed *windowed,
                                                     uint32_t way, uint64_t window)
{
    uint64_t first, n;
    uint32_t row;
    pstk__windowed_span(windowed, way, window, &first, &n);
    const uint64_t at = begin_of(windowed, way) + first;
    return (struct pstk__interleave_blocks){.first = block_at(windowed, at, &row),
                                            .last = block_at(windowed, at + n - 1, &row)};
}

void pstk__windowed_block(const struct pstk__windowed *windowed, uint64_t line, uint64_t *first,
                          uint32_t *n)
{
    *first = pstk__permutation_at(&windowed->blocks, line) * windowed->interleave.block;
    *n = line == windowed->last ? (uint32_t)windowed->n_last : windowed->interleave.block;
}
