/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convert one row of MCUs at a time to samples, when the back end asks for its first blocks. The
 * back end asks for all blocks of luma of a row of MCUs before chroma blocks of the next one, so
 * one row of MCUs is kept. It passes on rows of pixels only after it has read the rows of MCUs that
 * they lie in, so these pixels can be overwritten.
 */
#include "image/jpeg/recompress.h"

#include "image/jpeg/backend.h"
#include "image/jpeg/quality.h"

#include <assert.h>
#include <string.h>

#define BLOCK 8u
#define MCU 16u /* pixels of an MCU's side, in colour */
#define N_COLOURS 3u

/* Rows of samples of one row of MCUs. */
struct strip {
    uint8_t *samples; /* begins after PSTK__FORWARD_PAD bytes */
    size_t stride;
};

struct recompress {
    uint8_t *pixels; /* borrowed */
    uint32_t channels;
    const struct pstk__recompress_kernels *kernels;
    struct pstk__jpeg_frame frame;
    struct pstk__jpeg_divisors divisors[2]; /* for luma, for chroma */
    uint32_t mcu_row;                       /* row of MCUs in the strips; UINT32_MAX: none yet */
    struct strip strips[N_COLOURS];
    uint8_t *full[2][N_COLOURS]; /* two rows of each component at full size; luma's are not used */
    struct pstk__block_writer blocks; /* the blocks of one row */
    uint32_t row;                     /* next row of pixels to pass on */
};

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* ---- frame ---------------------------------------------------------------------------------- */

static void component_init(struct recompress *r, uint32_t i, uint32_t factor, uint32_t quality)
{
    struct pstk__jpeg_component *component = &r->frame.component[i];
    const uint32_t is_chroma = i > 0;
    component->id = (uint8_t)(i + 1);
    component->h = component->v = (uint8_t)factor;
    for (uint32_t k = 0; k < 64; k++)
        component->quant[k] = pstk__jpeg_quality_entry(is_chroma, k, quality);
    pstk__jpeg_divisors_init(&r->divisors[is_chroma], component->quant);
}

static void frame_init(struct recompress *r, uint32_t width, uint32_t height, uint32_t quality)
{
    const uint32_t n = r->channels;
    r->frame = (struct pstk__jpeg_frame){.width = width,
                                         .height = height,
                                         .n_components = n,
                                         .color = n == 1 ? PSTK__JPEG_GRAY : PSTK__JPEG_YCC};
    for (uint32_t i = 0; i < n; i++)
        component_init(r, i, n > 1 && i == 0 ? 2 : 1, quality);
    pstk__jpeg_frame_layout(&r->frame);
}

/* ---- memory --------------------------------------------------------------------------------- */

/* Return the bytes of a row of samples of the whole width, which kernels write up to a multiple of
 * 64. */
static size_t row_size(size_t width)
{
    return round_up(width, 64);
}

/* Return the bytes of the packed blocks of a row. */
static size_t blocks_size(size_t n_blocks, size_t size)
{
    return n_blocks * size + PSTK__FORWARD_PAD;
}

static int blocks_allocate(struct pstk__block_writer *blocks, struct pstk__arena *arena, size_t n)
{
    blocks->maps = pstk__arena_get(arena, blocks_size(n, sizeof(uint64_t)));
    blocks->dc = pstk__arena_get(arena, blocks_size(n, sizeof(int16_t)));
    blocks->values = pstk__arena_get(arena, blocks_size(n, 63));
    blocks->wide = pstk__arena_get(arena, blocks_size(n, 63 * sizeof(int16_t)));
    return blocks->maps && blocks->dc && blocks->values && blocks->wide ? 0 : PSTK_ENOMEM;
}

static int allocate(struct recompress *r, struct pstk__arena *arena)
{
    const size_t size = row_size(round_up(r->frame.width, MCU));
    for (uint32_t i = 0; i < r->channels; i++) {
        struct strip *strip = &r->strips[i];
        strip->stride = size;
        uint8_t *memory = pstk__arena_get(arena, MCU * size + 2 * PSTK__FORWARD_PAD);
        uint8_t *full = pstk__arena_get(arena, 2 * size);
        if (!memory || !full)
            return PSTK_ENOMEM;
        strip->samples = memory + PSTK__FORWARD_PAD;
        r->full[0][i] = full;
        r->full[1][i] = full + size;
    }
    return blocks_allocate(&r->blocks, arena, r->frame.component[0].across);
}

/* Count the memory that `allocate` takes, with three components; the arena rounds each piece up to
 * 64 bytes. A row has at most one block for 8 pixels of the width, rounded up. */
uint64_t pstk__jpeg_recompress_scratch(uint32_t max_width)
{
    const size_t size = row_size(round_up(max_width, MCU));
    const size_t n_blocks = round_up(max_width, BLOCK) / BLOCK;
    return N_COLOURS * ((MCU + 2) * size + 2 * PSTK__FORWARD_PAD) +
           blocks_size(n_blocks, sizeof(uint64_t) + sizeof(int16_t) + 63 + 63 * sizeof(int16_t)) +
           4 * (PSTK__FORWARD_PAD + 64) + pstk__jpeg_backend_scratch(max_width);
}

/* ---- pixels to samples ---------------------------------------------------------------------- */

/* Repeat the last of n samples up to a whole MCU. */
static void extend(uint8_t *row, uint32_t n)
{
    memset(row + n, row[n - 1], round_up(n, MCU) - n);
}

static const uint8_t *pixels_at(const struct recompress *r, uint32_t y)
{
    return r->pixels + (size_t)y * r->frame.width * r->channels;
}

static uint8_t *sample_row(const struct recompress *r, uint32_t component, uint32_t y)
{
    return r->strips[component].samples + y * r->strips[component].stride;
}

/* Repeat the last row of samples past the image's end. */
static void repeat(const struct recompress *r, uint32_t component, uint32_t n_rows, uint32_t most)
{
    for (uint32_t y = n_rows; y < most; y++)
        memcpy(sample_row(r, component, y), sample_row(r, component, n_rows - 1),
               r->strips[component].stride);
}

/* Fill the strip of an image of one component: rows [top, top + n). */
static void fill_gray(const struct recompress *r, uint32_t top, uint32_t n)
{
    for (uint32_t y = 0; y < n; y++) {
        uint8_t *row = sample_row(r, 0, y);
        memcpy(row, pixels_at(r, top + y), r->frame.width);
        extend(row, r->frame.width);
    }
    repeat(r, 0, n, BLOCK);
}

/* Convert row y of the strips: luma goes into the strip, chroma into full rows number y % 2. */
static void split_row(const struct recompress *r, uint32_t top, uint32_t y)
{
    uint8_t *const *full = r->full[y % 2];
    uint8_t *const rows[N_COLOURS] = {sample_row(r, 0, y), full[1], full[2]};
    r->kernels->forward->split(rows, pixels_at(r, top + y), r->frame.width);
    for (uint32_t i = 0; i < N_COLOURS; i++)
        extend(rows[i], r->frame.width);
}

/* Fill the strips of an image of three components: rows [top, top + n). */
static void fill_colours(const struct recompress *r, uint32_t top, uint32_t n)
{
    const uint32_t n_samples = (uint32_t)round_up(r->frame.width, MCU) / 2;
    for (uint32_t y = 0; y < n; y += 2) {
        const int has_two = y + 1 < n;
        split_row(r, top, y);
        if (has_two)
            split_row(r, top, y + 1);
        for (uint32_t i = 1; i < N_COLOURS; i++)
            r->kernels->forward->halve(sample_row(r, i, y / 2), r->full[0][i], r->full[has_two][i],
                                       n_samples);
    }
    repeat(r, 0, n, MCU);
    for (uint32_t i = 1; i < N_COLOURS; i++)
        repeat(r, i, (n + 1) / 2, BLOCK);
}

static void fill(struct recompress *r, uint32_t mcu_row)
{
    const uint32_t size = r->channels == 1 ? BLOCK : MCU, top = mcu_row * size;
    const uint32_t left = r->frame.height - top, n = left < size ? left : size;
    if (r->channels == 1)
        fill_gray(r, top, n);
    else
        fill_colours(r, top, n);
    r->mcu_row = mcu_row;
}

/* ---- what the back end calls ---------------------------------------------------------------- */

static int get_row(void *user, uint32_t component, uint32_t row, uint32_t first, uint32_t n,
                   struct pstk__block_row *out, struct pstk_error *err)
{
    struct recompress *r = user;
    const uint32_t rows = r->frame.component[component].v; /* rows of blocks in an MCU */
    (void)err;
    if (row / rows != r->mcu_row)
        fill(r, row / rows);
    r->kernels->forward->transform(
        &r->blocks, sample_row(r, component, row % rows * BLOCK) + (size_t)first * BLOCK,
        r->strips[component].stride, n, &r->divisors[component > 0]);
    *out = (struct pstk__block_row){.maps = r->blocks.maps,
                                    .dc = r->blocks.dc,
                                    .values = r->blocks.values,
                                    .wide = r->blocks.wide,
                                    .n_blocks = n};
    return 0;
}

static void put_rows(void *user, const uint8_t *pixels, uint64_t stride, uint32_t n_rows)
{
    struct recompress *r = user;
    const size_t size = (size_t)r->frame.width * r->channels;
    for (uint32_t y = 0; y < n_rows; y++, r->row++)
        memcpy(r->pixels + r->row * size, pixels + y * stride, size);
}

int pstk__jpeg_recompress(uint8_t *pixels, uint32_t width, uint32_t height, uint32_t channels,
                          uint32_t quality, const struct pstk__recompress_kernels *kernels,
                          struct pstk__arena *arena)
{
    const size_t mark = arena->used;
    struct recompress r = {
        .pixels = pixels, .channels = channels, .kernels = kernels, .mcu_row = UINT32_MAX};
    assert(channels == 1 || channels == N_COLOURS);
    frame_init(&r, width, height, quality);
    const struct pstk__row_sink sink = {.rows = put_rows, .user = &r, .channels = channels};
    const struct pstk__block_source source = {.row = get_row, .user = &r};
    const struct pstk__box box = {.width = width, .height = height};
    const struct pstk__backend_config config = {.frame = &r.frame,
                                                .kernels = kernels->inverse,
                                                .source = &source,
                                                .box = &box,
                                                .sink = &sink};
    int rc = allocate(&r, arena);
    if (rc == 0)
        rc = pstk__jpeg_backend_rows(&config, arena, NULL);
    pstk__arena_reset(arena, mark);
    return rc;
}
