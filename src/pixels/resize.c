/* SPDX-License-Identifier: Apache-2.0 */
/* resize: runs a resize, bounds its memory, and lists the kernels. */
#include "pixels/resize.h"

#include "base/kernels.h"
#include "pixels/resize_kernels_avx2.h"
#include "pixels/resize_kernels_avx512.h"
#include "pixels/resize_kernels_c.h"
#include "pixels/resize_kernels_neon.h"

#include <string.h>

#define MAX_DECODED_ROWS 16u /* max rows that a decoder passes at a time, warm */
#define ALIGN(size) (((size) + 63) & ~(uint64_t)63) /* rounds sizes as the arena does */

/* ---- weights -------------------------------------------------------------------------------- */

/*
 * Return a bound on the taps of an output. An interval of length 2 * support holds at most ceil(2 *
 * support) inputs, and rounding of its ends may add one; 2 * support = the filter's length * max(1,
 * in / out). The bound never falls with more inputs or fewer outputs.
 */
static uint32_t taps_bound(uint32_t kind, uint32_t in, uint32_t out)
{
    const uint64_t most = pstk__filter_length(kind);
    const uint64_t length = in > out ? (most * in + out - 1) / out : most;
    return (uint32_t)(length + 1 < in ? length + 1 : in);
}

static uint64_t weights_size(uint32_t n_rows, uint32_t n_out)
{
    return ((uint64_t)n_rows + 3) / 4 * 4 * n_out * sizeof(int32_t);
}

/*
 * Fill in the inputs that Pillow's ImagingScaleAffine (Geometry.c) copies. It adds the scale up, so
 * its rounding depends on all outputs before first_out. Returns 1, the rows of weights that an
 * output of one tap has.
 */
static uint32_t copies_init(struct pstk__axis *axis, const struct pstk__axis_config *c)
{
    const double scale = (double)c->in / c->out;
    double at = scale * 0.5;
    for (uint32_t i = 0; i < c->first_out; i++)
        at += scale;
    for (uint32_t i = 0; i < c->n_out; i++, at += scale) {
        axis->first[i] = at < c->in ? (uint32_t)at : c->in - 1;
        axis->n[i] = 1;
        axis->weights[i] = 1 << PSTK__WEIGHT_BITS;
    }
    return 1;
}

/* Fill in the weights of a filter. Returns the number of rows filled. */
static uint32_t weights_init(struct pstk__axis *axis, const struct pstk__pixel_kernels *kernels,
                             const struct pstk__axis_config *c, uint32_t kind)
{
    const double scale = (double)c->in / c->out, most = scale < 1.0 ? 1.0 : scale;
    const struct pstk__filter filter = {.kind = kind,
                                        .scale = scale,
                                        .support = pstk__filter_length(kind) * 0.5 * most,
                                        .filterscale = 1.0 / most,
                                        .in = c->in,
                                        .n_rows = taps_bound(kind, c->in, c->out)};
    axis->is_signed = pstk__filter_is_signed(kind);
    kernels->axis_weights(axis, &filter, c->first_out);
    return filter.n_rows;
}

/* A pass to the same size changes nothing, and Pillow leaves it out. */
int pstk__axis_init(struct pstk__axis *axis, struct pstk__arena *arena,
                    const struct pstk__pixel_kernels *kernels, const struct pstk__axis_config *c)
{
    const uint32_t kind = pstk__filter_kind(c->filter), n_out = c->n_out;
    *axis = (struct pstk__axis){.n_out = n_out};
    axis->first = pstk__arena_get(arena, (size_t)n_out * sizeof *axis->first);
    axis->n = pstk__arena_get(arena, (size_t)n_out * sizeof *axis->n);
    axis->weights = pstk__arena_get(arena, weights_size(taps_bound(kind, c->in, c->out), n_out));
    if (!axis->first || !axis->n || !axis->weights)
        return PSTK_ENOMEM;
    const uint32_t n_rows = kind == PSTK_FILTER_NEAREST || c->in == c->out
                                ? copies_init(axis, c)
                                : weights_init(axis, kernels, c, kind);
    for (uint32_t i = 0; i < n_out; i++)
        axis->n_taps = axis->n[i] > axis->n_taps ? axis->n[i] : axis->n_taps;
    for (uint32_t k = n_rows; k < (axis->n_taps + 3) / 4 * 4; k++)
        memset(axis->weights + (size_t)k * n_out, 0, n_out * sizeof *axis->weights);
    axis->begin = axis->first[0];
    axis->end = axis->first[n_out - 1] + axis->n[n_out - 1];
    return 0;
}

/* Return 1 when every output is a copy of one input: one tap each, as many inputs as outputs. The
 * inputs of a resize to another size either never skip one or never repeat one. */
static uint32_t is_identity(const struct pstk__axis *axis)
{
    return axis->n_taps == 1 && axis->end - axis->begin == axis->n_out;
}

/* Return the kernels whose passes take a filter. */
static const struct pstk__pixel_kernels *passes_of(const struct pstk__pixel_kernels *kernels,
                                                   uint32_t kind)
{
    return kind == PSTK_FILTER_BILINEAR ? kernels : kernels->general;
}

/* ---- memory --------------------------------------------------------------------------------- */

/* Return the slots that n_taps consecutive rows may touch: the first tap may be a slot's last
 * row. */
static uint32_t slots_of(const struct pstk__pixel_kernels *k, uint32_t n_taps)
{
    return n_taps < 2 ? 1 : (n_taps - 2) / k->slot_rows + 2;
}

static uint64_t slot_size(const struct pstk__pixel_kernels *k, uint32_t width, uint32_t channels)
{
    return ALIGN(((uint64_t)channels * width + PSTK__SLOT_PAD) * k->slot_unit);
}

/* Return the rows of `held`: rows that wait for the rest of a slot, or, premultiplied, a whole
 * slot. */
static uint32_t held_count(const struct pstk__pixel_kernels *k, uint32_t channels)
{
    return channels == 4 ? k->slot_rows : k->slot_rows - 1;
}

static uint64_t scratch_count(const struct pstk__pixel_kernels *k, uint32_t n_slots)
{
    return (uint64_t)n_slots * k->slot_rows;
}

static uint64_t axis_scratch(uint32_t n_rows, uint32_t n_out)
{
    return 2 * ALIGN((uint64_t)n_out * sizeof(uint32_t)) + ALIGN(weights_size(n_rows, n_out));
}

static uint64_t kernels_scratch(const struct pstk__pixel_kernels *kernels, uint32_t kind,
                                const struct pstk__resize_bounds *bounds)
{
    const struct pstk__pixel_kernels *k = passes_of(kernels, kind);
    const uint32_t x_taps = taps_bound(kind, bounds->max_in_width, bounds->min_out_width);
    const uint32_t y_taps = taps_bound(kind, bounds->max_in_height, bounds->min_out_height);
    const uint32_t n_ring = slots_of(k, y_taps);
    return ALIGN(k->across_size(bounds->max_crop_width, x_taps, bounds->channels)) +
           2 * ALIGN(n_ring * sizeof(void *)) +
           n_ring * slot_size(k, bounds->max_crop_width, bounds->channels) +
           ALIGN(scratch_count(k, n_ring) * sizeof(int32_t)) +
           held_count(k, bounds->channels) *
               ALIGN((uint64_t)bounds->channels * bounds->max_in_width) +
           PSTK__LOOKUP_SIZE + ALIGN((uint64_t)bounds->channels * bounds->max_crop_width) +
           axis_scratch(x_taps, bounds->max_crop_width) +
           axis_scratch(y_taps, bounds->max_crop_height);
}

static int ring_init(struct pstk__resize *resize, struct pstk__arena *arena)
{
    const struct pstk__pixel_kernels *k = resize->passes;
    resize->n_ring = slots_of(k, resize->y.n_taps);
    resize->ring = pstk__arena_get(arena, resize->n_ring * sizeof *resize->ring);
    resize->slots = pstk__arena_get(arena, resize->n_ring * sizeof *resize->slots);
    resize->scratch =
        pstk__arena_get(arena, scratch_count(k, resize->n_ring) * sizeof *resize->scratch);
    if (!resize->ring || !resize->slots || !resize->scratch)
        return PSTK_ENOMEM;
    for (uint32_t i = 0; i < resize->n_ring; i++) {
        resize->ring[i] =
            pstk__arena_get(arena, slot_size(k, resize->x.n_out, resize->finish.channels));
        if (!resize->ring[i])
            return PSTK_ENOMEM;
    }
    return 0;
}

/* ---- resize --------------------------------------------------------------------------------- */

/* Return 1 when the vertical pass writes finished rows: u8 pixels from left to right. */
static uint32_t is_direct(const struct pstk__finish *finish)
{
    return finish->dtype == PSTK_U8 && (finish->layout == PSTK_NHWC || finish->channels == 1) &&
           !finish->flip;
}

/* Return 1 when the passes change no row. RGBA also needs the whole image to have its size already,
 * as in Pillow: multiplying by alpha and dividing by it again is not exact. */
static uint32_t is_unchanged(const struct pstk__resize *resize, const struct pstk__resize_config *c)
{
    if (c->channels == 4)
        return c->in_width == c->out_width && c->in_height == c->out_height;
    return is_identity(&resize->x) && is_identity(&resize->y);
}

static int axes_init(struct pstk__resize *resize, struct pstk__arena *arena,
                     const struct pstk__resize_config *c)
{
    const struct pstk__box *box = &c->crop;
    const struct pstk__axis_config x = {.filter = c->filter,
                                        .in = c->in_width,
                                        .out = c->out_width,
                                        .first_out = box->left,
                                        .n_out = box->width};
    const struct pstk__axis_config y = {.filter = c->filter,
                                        .in = c->in_height,
                                        .out = c->out_height,
                                        .first_out = box->top,
                                        .n_out = box->height};
    const int rc = pstk__axis_init(&resize->x, arena, resize->passes, &x);
    return rc < 0 ? rc : pstk__axis_init(&resize->y, arena, resize->passes, &y);
}

static int finish_init(struct pstk__resize *resize, struct pstk__arena *arena)
{
    if (resize->finish.dtype == PSTK_U8)
        return 0;
    void *lookup = pstk__arena_get(arena, PSTK__LOOKUP_SIZE);
    if (!lookup)
        return PSTK_ENOMEM;
    resize->kernels->lookup_init(lookup, &resize->finish);
    resize->finish.lookup = lookup;
    return 0;
}

/* Prepare the passes of a resize that copies neither rows nor pixels. */
static int passes_init(struct pstk__resize *resize, struct pstk__arena *arena, uint32_t channels)
{
    const struct pstk__pixel_kernels *k = resize->passes;
    while (1u << resize->slot_shift < k->slot_rows)
        resize->slot_shift++;
    resize->has_alpha = channels == 4;
    resize->held_stride = ALIGN((uint64_t)channels * (resize->x.end - resize->x.begin));
    resize->across =
        pstk__arena_get(arena, k->across_size(resize->x.n_out, resize->x.n_taps, channels));
    resize->held = pstk__arena_get(arena, held_count(k, channels) * resize->held_stride);
    if (!resize->across || !resize->held)
        return PSTK_ENOMEM;
    resize->finish.flip = k->across_init(resize->across, &resize->x, channels, resize->finish.flip);
    return ring_init(resize, arena);
}

int pstk__resize_begin(struct pstk__resize *resize, struct pstk__arena *arena,
                       const struct pstk__pixel_kernels *kernels,
                       const struct pstk__resize_config *c)
{
    const uint32_t kind = pstk__filter_kind(c->filter);
    *resize = (struct pstk__resize){.kernels = kernels,
                                    .passes = passes_of(kernels, kind),
                                    .is_nearest = kind == PSTK_FILTER_NEAREST,
                                    .finish = c->finish,
                                    .out = c->out,
                                    .out_stride = c->out_stride};
    int rc = axes_init(resize, arena, c);
    if (rc == 0)
        rc = finish_init(resize, arena);
    resize->identity = rc == 0 && is_unchanged(resize, c);
    if (rc < 0 || resize->identity)
        return rc;
    resize->row = pstk__arena_get(arena, (size_t)c->channels * c->crop.width);
    if (!resize->row)
        return PSTK_ENOMEM;
    if (!resize->is_nearest)
        rc = passes_init(resize, arena, c->channels);
    resize->direct = is_direct(&resize->finish);
    return rc;
}

/* Write output row n_out, whose inputs are all in slots. */
static void row_out(struct pstk__resize *resize)
{
    const struct pstk__axis *y = &resize->y;
    const uint32_t i = resize->n_out, first = y->first[i] - y->begin;
    const uint32_t slot = first >> resize->slot_shift,
                   last = (first + y->n[i] - 1) >> resize->slot_shift;
    const struct pstk__column column = {
        .slots = resize->slots,
        .n_slots = last - slot + 1,
        .lead = first - (slot << resize->slot_shift),
        .n_taps = y->n[i],
        .is_signed = y->is_signed,
        .stride = y->n_out,
        .weights = y->weights + i,
        .size = resize->finish.channels * resize->x.n_out,
        .scratch = resize->scratch,
    };
    uint8_t *out = resize->out + i * resize->out_stride;
    uint32_t at = slot % resize->n_ring;
    for (uint32_t k = 0; k < column.n_slots; k++) {
        resize->slots[k] = resize->ring[at];
        at = at + 1 < resize->n_ring ? at + 1 : 0;
    }
    uint8_t *row = resize->direct ? out : resize->row;
    resize->passes->resize_column(row, &column);
    if (resize->has_alpha)
        resize->kernels->unpremultiply(row, resize->x.n_out);
    if (!resize->direct)
        resize->kernels->finish_row(out, row, &resize->finish);
    resize->n_out++;
}

/*
 * Fill a slot with n rows. It overwrites the slot filled n_ring slots earlier, which is no longer
 * needed: an output not yet written has its last tap in this slot or a later one, so its first tap
 * is less than n_ring slots before.
 */
static void slot_in(struct pstk__resize *resize, const uint8_t *const *rows, uint32_t n)
{
    const struct pstk__axis *y = &resize->y;
    resize->passes->resize_rows(resize->ring[(resize->n_in >> resize->slot_shift) % resize->n_ring],
                                rows, resize->across);
    resize->n_in += n;
    while (resize->n_out < y->n_out &&
           y->first[resize->n_out] + y->n[resize->n_out] - y->begin <= resize->n_in)
        row_out(resize);
}

static size_t row_size(const struct pstk__resize *resize)
{
    return (size_t)resize->finish.channels * (resize->x.end - resize->x.begin);
}

static void hold(struct pstk__resize *resize, const uint8_t *row)
{
    uint8_t *to = resize->held + resize->n_held++ * resize->held_stride;
    if (resize->has_alpha)
        resize->kernels->premultiply(to, row, resize->x.end - resize->x.begin);
    else
        memcpy(to, row, row_size(resize));
}

/* Take as many of the next n rows as complete a slot with those held. Returns how many. Rows of an
 * incomplete slot are held, unless they are the last. Premultiplied rows are always held. */
static uint32_t rows_in(struct pstk__resize *resize, const uint8_t *pixels, uint64_t stride,
                        uint32_t n)
{
    const uint8_t *rows[PSTK__MAX_SLOT_ROWS];
    const uint32_t slot_rows = resize->passes->slot_rows;
    const uint32_t room = slot_rows - resize->n_held, taken = n < room ? n : room;
    const uint32_t n_rows = resize->n_held + taken;
    const int waits = n_rows < slot_rows && resize->n_in + n_rows < resize->y.end - resize->y.begin;
    for (uint32_t k = 0; k < taken && (waits || resize->has_alpha); k++)
        hold(resize, pixels + k * stride);
    if (waits)
        return taken;
    for (uint32_t k = 0; k < slot_rows; k++) {
        const uint32_t row = k < n_rows ? k : 0; /* past the last row; no tap reads it */
        rows[k] = row < resize->n_held ? resize->held + row * resize->held_stride
                                       : pixels + (row - resize->n_held) * stride;
    }
    slot_in(resize, rows, n_rows);
    resize->n_held = 0;
    return taken;
}

/* Prefetch the rows after these. Rows are short, a few cache lines each, and not adjacent, so the
 * CPU's own prefetcher does not find them. */
static void rows_ahead(const struct pstk__resize *resize, const uint8_t *pixels, uint64_t stride)
{
    const size_t size = row_size(resize);
    for (uint32_t k = 0; k < resize->passes->slot_rows; k++, pixels += stride)
        for (size_t at = 0; at < size; at += 64)
            __builtin_prefetch(pixels + at);
}

/*
 * Copy the one input of each output, all of its channels at once. For 3 channels, 4 bytes are moved
 * when the row has a byte after the pixel, on either side. Inlined with a constant.
 */
static inline void copy_pixels(uint8_t *restrict out, const uint8_t *restrict in,
                               const struct pstk__axis *x, uint32_t channels)
{
    const uint32_t *restrict first = x->first;
    const uint32_t n_out = x->n_out, begin = x->begin, last = x->end - 1;
    uint32_t i = 0;
    for (; channels == 3 && i + 1 < n_out && first[i] < last; i++)
        memcpy(out + 3 * (size_t)i, in + 3 * (size_t)(first[i] - begin), 4);
    for (; i < n_out; i++)
        memcpy(out + (size_t)channels * i, in + (size_t)channels * (first[i] - begin), channels);
}

static void row_of_copies(uint8_t *out, const uint8_t *in, const struct pstk__resize *resize)
{
    if (resize->finish.channels == 1)
        copy_pixels(out, in, &resize->x, 1);
    else if (resize->finish.channels == 3)
        copy_pixels(out, in, &resize->x, 3);
    else
        copy_pixels(out, in, &resize->x, 4);
}

/* Write the output rows that are copies of the next input row. */
static void row_nearest(struct pstk__resize *resize, const uint8_t *in)
{
    const struct pstk__axis *y = &resize->y;
    const uint32_t input = y->begin + resize->n_in++;
    uint8_t *out = resize->out + resize->n_out * resize->out_stride;
    const uint8_t *row = resize->direct ? out : resize->row;
    if (y->first[resize->n_out] != input)
        return;
    row_of_copies(resize->direct ? out : resize->row, in, resize);
    if (resize->direct)
        resize->n_out++;
    for (; resize->n_out < y->n_out && y->first[resize->n_out] == input; resize->n_out++)
        resize->kernels->finish_row(resize->out + resize->n_out * resize->out_stride, row,
                                    &resize->finish);
}

void pstk__resize_rows(struct pstk__resize *resize, const uint8_t *pixels, uint64_t stride,
                       uint32_t n)
{
    const uint32_t slot_rows = resize->passes->slot_rows;
    if (resize->identity) {
        for (uint32_t i = 0; i < n; i++, resize->n_out++)
            resize->kernels->finish_row(resize->out + resize->n_out * resize->out_stride,
                                        pixels + i * stride, &resize->finish);
        return;
    }
    for (uint32_t i = 0; i < n && resize->is_nearest; i++)
        row_nearest(resize, pixels + i * stride);
    for (uint32_t i = 0; i < n && !resize->is_nearest;) {
        if (n > MAX_DECODED_ROWS && n - i >= 2 * slot_rows)
            rows_ahead(resize, pixels + (i + slot_rows) * stride, stride);
        i += rows_in(resize, pixels + i * stride, stride, n - i);
    }
}

/* ---- kernels ------------------------------------------------------------------------------- */

/* The kernels from worst to best, including those that this CPU does not run. */
static const void *const entries[] = {
    &pstk__pixel_c,
#if defined(__x86_64__)
    &pstk__pixel_avx2,
    &pstk__pixel_avx512,
#elif defined(PSTK_NEON)
    &pstk__pixel_neon,
#endif
};
#define N_ENTRIES (sizeof entries / sizeof entries[0])

const struct pstk__pixel_kernels *pstk__pixel_kernels(uint32_t isa)
{
    return pstk__kernels_choose(entries, N_ENTRIES, isa);
}

uint64_t pstk__resize_scratch(const struct pstk__resize_bounds *bounds)
{
    const uint32_t given = bounds->filters ? bounds->filters : 1u << PSTK_FILTER_BILINEAR;
    const uint32_t filters = given | 1u << PSTK_FILTER_NEAREST; /* for masks */
    uint64_t most = 0;
    for (uint32_t kind = PSTK_FILTER_NEAREST; kind <= PSTK_FILTER_LANCZOS; kind++)
        for (uint32_t i = 0; i < N_ENTRIES && filters >> kind & 1; i++) {
            const uint64_t size = kernels_scratch(entries[i], kind, bounds);
            most = size > most ? size : most;
        }
    return most;
}
