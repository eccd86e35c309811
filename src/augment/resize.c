/* SPDX-License-Identifier: Apache-2.0 */
/* pixel: the resize under way, its memory, and the choice of kernels. */
#include "augment/resize.h"

#include "base/cpu.h"

#include <string.h>

#define CHANNELS 3u
#define MAX_DECODED_ROWS 16u /* more at a time do not come out of a decoder, warm */
#define ALIGN(size) (((size) + 63) & ~(uint64_t)63) /* what the arena gives */

/* ---- weights -------------------------------------------------------------------------------- */

/*
 * No output has more taps than this. The interval of length 2 * support around its centre holds at
 * most ceil(2 * support) inputs, and rounding of its two ends may add one; support = max(1, in /
 * out). Never less for more inputs or fewer outputs.
 */
static uint32_t taps_bound(uint32_t in, uint32_t out)
{
    const uint64_t length = in > out ? (2 * (uint64_t)in + out - 1) / out : 2;
    return (uint32_t)(length + 1 < in ? length + 1 : in);
}

static uint64_t weights_size(uint32_t n_rows, uint32_t n_out)
{
    return ((uint64_t)n_rows + 3) / 4 * 4 * n_out * sizeof(int32_t);
}

int pstk__axis_init(struct pstk__axis *a, struct pstk__arena *arena,
                    const struct pstk__pixel_kernels *kernels, uint32_t in, uint32_t out,
                    uint32_t window, uint32_t n_out)
{
    const double scale = (double)in / out, support = scale < 1.0 ? 1.0 : scale;
    const struct pstk__filter f = {.scale = scale,
                                   .support = support,
                                   .filterscale = 1.0 / support,
                                   .in = in,
                                   .n_rows = taps_bound(in, out)};
    *a = (struct pstk__axis){.n_out = n_out};
    a->first = pstk__arena_get(arena, (size_t)n_out * sizeof *a->first);
    a->n = pstk__arena_get(arena, (size_t)n_out * sizeof *a->n);
    a->weights = pstk__arena_get(arena, weights_size(f.n_rows, n_out));
    if (a->first == NULL || a->n == NULL || a->weights == NULL)
        return PSTK_ENOMEM;
    kernels->axis_weights(a, &f, window);
    for (uint32_t i = 0; i < n_out; i++)
        a->n_taps = a->n[i] > a->n_taps ? a->n[i] : a->n_taps;
    for (uint32_t k = f.n_rows; k < (a->n_taps + 3) / 4 * 4; k++)
        memset(a->weights + (size_t)k * n_out, 0, n_out * sizeof *a->weights);
    a->begin = a->first[0];
    a->end = a->first[n_out - 1] + a->n[n_out - 1];
    return 0;
}

/* 1 when every output is the input under it: one tap each, as many inputs as outputs. */
static uint32_t is_identity(const struct pstk__axis *a)
{
    return a->n_taps == 1 && a->end - a->begin == a->n_out;
}

/* ---- memory --------------------------------------------------------------------------------- */

/* Slots that n_taps rows in a row may reach over: the first tap may be a slot's last row. */
static uint32_t slots_of(const struct pstk__pixel_kernels *k, uint32_t n_taps)
{
    return n_taps < 2 ? 1 : (n_taps - 2) / k->slot_rows + 2;
}

static uint64_t slot_size(const struct pstk__pixel_kernels *k, uint32_t width)
{
    return ALIGN(((uint64_t)CHANNELS * width + PSTK__SLOT_PAD) * k->slot_unit);
}

static uint64_t scratch_count(const struct pstk__pixel_kernels *k, uint32_t n_slots)
{
    return (uint64_t)n_slots * k->slot_rows;
}

static uint64_t axis_scratch(uint32_t n_rows, uint32_t n_out)
{
    return 2 * ALIGN((uint64_t)n_out * sizeof(uint32_t)) + ALIGN(weights_size(n_rows, n_out));
}

static uint64_t kernels_scratch(const struct pstk__pixel_kernels *k,
                                const struct pstk__resize_bounds *b)
{
    const uint32_t x_taps = taps_bound(b->max_in_width, b->min_out_width);
    const uint32_t y_taps = taps_bound(b->max_in_height, b->min_out_height);
    const uint32_t n_ring = slots_of(k, y_taps);
    return ALIGN(k->across_size(b->max_window_width, x_taps)) + 2 * ALIGN(n_ring * sizeof(void *)) +
           n_ring * slot_size(k, b->max_window_width) +
           ALIGN(scratch_count(k, n_ring) * sizeof(int32_t)) +
           (k->slot_rows - 1) * ALIGN((uint64_t)CHANNELS * b->max_in_width) + PSTK__LOOKUP_SIZE +
           ALIGN((uint64_t)CHANNELS * b->max_window_width) +
           axis_scratch(x_taps, b->max_window_width) + axis_scratch(y_taps, b->max_window_height);
}

static int ring_init(struct pstk__resize *r, struct pstk__arena *arena)
{
    const struct pstk__pixel_kernels *k = r->kernels;
    r->n_ring = slots_of(k, r->y.n_taps);
    r->ring = pstk__arena_get(arena, r->n_ring * sizeof *r->ring);
    r->slots = pstk__arena_get(arena, r->n_ring * sizeof *r->slots);
    r->scratch = pstk__arena_get(arena, scratch_count(k, r->n_ring) * sizeof *r->scratch);
    if (r->ring == NULL || r->slots == NULL || r->scratch == NULL)
        return PSTK_ENOMEM;
    for (uint32_t i = 0; i < r->n_ring; i++) {
        r->ring[i] = pstk__arena_get(arena, slot_size(k, r->x.n_out));
        if (r->ring[i] == NULL)
            return PSTK_ENOMEM;
    }
    return 0;
}

/* ---- resize --------------------------------------------------------------------------------- */

/* Whether the vertical pass writes finished rows: u8 RGB from left to right. */
static uint32_t is_direct(const struct pstk__finish *f)
{
    return f->dtype == PSTK_U8 && f->layout == PSTK_NHWC && !f->flip;
}

int pstk__resize_begin(struct pstk__resize *r, struct pstk__arena *arena,
                       const struct pstk__pixel_kernels *kernels,
                       const struct pstk__resize_config *c)
{
    *r = (struct pstk__resize){
        .kernels = kernels, .finish = c->finish, .out = c->out, .out_stride = c->out_stride};
    const struct pstk__box *w = &c->window;
    int rc = pstk__axis_init(&r->x, arena, kernels, c->in_width, c->out_width, w->left, w->width);
    if (rc == 0)
        rc = pstk__axis_init(&r->y, arena, kernels, c->in_height, c->out_height, w->top, w->height);
    if (rc < 0)
        return rc;
    if (r->finish.dtype != PSTK_U8) {
        void *lookup = pstk__arena_get(arena, PSTK__LOOKUP_SIZE);
        if (lookup == NULL)
            return PSTK_ENOMEM;
        kernels->lookup_init(lookup, &r->finish);
        r->finish.lookup = lookup;
    }
    r->identity = is_identity(&r->x) && is_identity(&r->y);
    if (r->identity)
        return 0;
    while (1u << r->slot_shift < kernels->slot_rows)
        r->slot_shift++;
    r->held_stride = ALIGN((uint64_t)CHANNELS * (r->x.end - r->x.begin));
    r->across = pstk__arena_get(arena, kernels->across_size(r->x.n_out, r->x.n_taps));
    r->held = pstk__arena_get(arena, (kernels->slot_rows - 1) * r->held_stride);
    r->row = pstk__arena_get(arena, (size_t)CHANNELS * w->width);
    if (r->across == NULL || r->held == NULL || r->row == NULL)
        return PSTK_ENOMEM;
    r->finish.flip = kernels->across_init(r->across, &r->x, r->finish.flip);
    r->direct = is_direct(&r->finish);
    return ring_init(r, arena);
}

/* Write output row n_out, all of whose inputs are in slots. */
static void row_out(struct pstk__resize *r)
{
    const struct pstk__axis *y = &r->y;
    const uint32_t i = r->n_out, first = y->first[i] - y->begin;
    const uint32_t slot = first >> r->slot_shift, last = (first + y->n[i] - 1) >> r->slot_shift;
    const struct pstk__column column = {
        .slots = r->slots,
        .n_slots = last - slot + 1,
        .lead = first - (slot << r->slot_shift),
        .n_taps = y->n[i],
        .stride = y->n_out,
        .weights = y->weights + i,
        .size = CHANNELS * r->x.n_out,
        .scratch = r->scratch,
    };
    uint8_t *out = r->out + i * r->out_stride;
    uint32_t at = slot % r->n_ring;
    for (uint32_t k = 0; k < column.n_slots; k++) {
        r->slots[k] = r->ring[at];
        at = at + 1 < r->n_ring ? at + 1 : 0;
    }
    if (r->direct) {
        r->kernels->resize_column(out, &column);
    } else {
        r->kernels->resize_column(r->row, &column);
        r->kernels->finish_row(out, r->row, &r->finish);
    }
    r->n_out++;
}

/*
 * A slot of n rows goes in. It overwrites the one n_ring slots before it: an output not yet written
 * has its last tap in this slot or behind it, hence its first less than n_ring slots before.
 */
static void slot_in(struct pstk__resize *r, const uint8_t *const *rows, uint32_t n)
{
    const struct pstk__axis *y = &r->y;
    r->kernels->resize_rows(r->ring[(r->n_in >> r->slot_shift) % r->n_ring], rows, r->across);
    r->n_in += n;
    while (r->n_out < y->n_out && y->first[r->n_out] + y->n[r->n_out] - y->begin <= r->n_in)
        row_out(r);
}

/* As many of the next n rows as go with those held into one slot: how many. Where a slot does not
 * fill up, they are held, unless no others will come. */
static uint32_t rows_in(struct pstk__resize *r, const uint8_t *rgb, uint64_t stride, uint32_t n)
{
    const uint8_t *rows[PSTK__MAX_SLOT_ROWS];
    const uint32_t slot_rows = r->kernels->slot_rows;
    const uint32_t room = slot_rows - r->n_held, taken = n < room ? n : room;
    const uint32_t n_rows = r->n_held + taken;
    if (n_rows < slot_rows && r->n_in + n_rows < r->y.end - r->y.begin) {
        for (uint32_t k = 0; k < taken; k++)
            memcpy(r->held + r->n_held++ * r->held_stride, rgb + k * stride,
                   (size_t)CHANNELS * (r->x.end - r->x.begin));
        return taken;
    }
    for (uint32_t k = 0; k < slot_rows; k++) {
        const uint32_t row = k < n_rows ? k : 0; /* behind the last row: no tap looks there */
        rows[k] =
            row < r->n_held ? r->held + row * r->held_stride : rgb + (row - r->n_held) * stride;
    }
    slot_in(r, rows, n_rows);
    r->n_held = 0;
    return taken;
}

/* Ask for the rows behind these. Each is no longer than a few lines of the cache, and not next to
 * the one before: the CPU does not find out by itself where they are. */
static void rows_ahead(const struct pstk__resize *r, const uint8_t *rgb, uint64_t stride)
{
    const size_t size = (size_t)CHANNELS * (r->x.end - r->x.begin);
    for (uint32_t k = 0; k < r->kernels->slot_rows; k++, rgb += stride)
        for (size_t at = 0; at < size; at += 64)
            __builtin_prefetch(rgb + at);
}

void pstk__resize_rows(struct pstk__resize *r, const uint8_t *rgb, uint64_t stride, uint32_t n)
{
    const uint32_t slot_rows = r->kernels->slot_rows;
    if (r->identity) {
        for (uint32_t i = 0; i < n; i++, r->n_out++)
            r->kernels->finish_row(r->out + r->n_out * r->out_stride, rgb + i * stride, &r->finish);
        return;
    }
    for (uint32_t i = 0; i < n;) {
        if (n > MAX_DECODED_ROWS && n - i >= 2 * slot_rows)
            rows_ahead(r, rgb + (i + slot_rows) * stride, stride);
        i += rows_in(r, rgb + i * stride, stride, n - i);
    }
}

/* ---- kernels ------------------------------------------------------------------------------- */

/* Worst first: all of them, whatever runs here. */
static const struct pstk__pixel_kernels *const entries[] = {
    &pstk__pixel_c,
#if defined(__x86_64__)
    &pstk__pixel_avx2,
    &pstk__pixel_avx512,
#endif
};
#define N_ENTRIES (sizeof entries / sizeof entries[0])

const struct pstk__pixel_kernels *pstk__pixel_kernels(uint32_t variant)
{
    const uint32_t best = pstk__cpu_variant();
    for (size_t i = N_ENTRIES; i-- > 0;)
        if (entries[i]->variant <= best &&
            (variant == PSTK_VARIANT_AUTO || entries[i]->variant == variant))
            return entries[i];
    return NULL;
}

uint64_t pstk__resize_scratch(const struct pstk__resize_bounds *b)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < N_ENTRIES; i++) {
        const uint64_t size = kernels_scratch(entries[i], b);
        most = size > most ? size : most;
    }
    return most;
}
