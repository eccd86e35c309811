/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coordinates. Every row in memory begins at the same column of the image, the *origin*: a multiple
 * of the MCU's width, so that a block of each component begins there and rows can be aligned.
 * Pixels between the origin and the box are made but not passed on. They are fewer than an MCU, or
 * one MCU more if a margin begins just before the box.
 *
 * Upsampling follows libjpeg-turbo's rules (jinit_upsampler): fancy for 2 x 1, 2 x 2 (both only
 * where a component is more than two samples wide) and 1 x 2; replication for every other whole
 * ratio. This holds for releases 2.0.3 to 3.2 at least; older ones rounded 1 x 2 without the bias
 * (1.5.1) or replicated it.
 */
#include "image/jpeg/backend.h"

#include "base/error.h"
#include "image/channels.h"

#include <assert.h>

#define BLOCK 8u  /* samples of a block's side; rows that the sink gets at once */
#define ALIGN 64u /* bytes; see kernels.h */

/* The ways to turn a component's samples into pixels. */
enum upsampling { FULL_SIZE, FANCY_H2V1, FANCY_H1V2, FANCY_H2V2, REPLICATED };

/* The part of a component that a box needs. */
struct plane {
    uint32_t component; /* index in the frame */
    uint32_t upsampling;
    uint32_t expand_h, expand_v;    /* pixels for each sample, on each axis */
    uint32_t height;                /* samples of the whole component, from top to bottom */
    uint32_t first_block, n_blocks; /* columns of blocks to transform */
    uint32_t n_samples;             /* samples to upsample, from the origin; <= 8 n_blocks */
    uint32_t has_left_edge;         /* 1: they include the component's first sample */
    uint32_t has_right_edge;        /* 1: they include its last sample */
    uint32_t n_rows;                /* rows of the ring: 8 or 16 */
    uint32_t next_row;              /* next row of blocks to transform */
    size_t stride;                  /* bytes between rows of the ring */
    uint8_t *ring;                  /* sample row y is row y % n_rows */
    uint8_t *upsampled;             /* one row at full width; NULL: FULL_SIZE */
};

struct backend {
    const struct pstk__backend_config *config;
    struct plane planes[PSTK__JPEG_MAX_COMPONENTS];
    uint32_t origin, end; /* columns of the image, [origin, end) */
    size_t stride;        /* bytes between rows of pixels */
    uint8_t *pixels;      /* BLOCK rows of RGB or RGBA; NULL: the sink takes the gray plane */
    uint8_t *rgb;         /* one row, for RGBA pixels; else NULL */
};

static size_t round_up(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static int is_fancy_h(uint32_t upsampling)
{
    return upsampling == FANCY_H2V1 || upsampling == FANCY_H2V2;
}

static int is_fancy_v(uint32_t upsampling)
{
    return upsampling == FANCY_H1V2 || upsampling == FANCY_H2V2;
}

/* ---- checks --------------------------------------------------------------------------------- */

static int bad_frame(struct pstk_error *err, const char *what)
{
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE, "JPEG frame: %s", what);
}

/* Check that sides and numbers of blocks follow from the image's sides and the factors. */
static int check_layout(const struct pstk__jpeg_frame *f, struct pstk_error *err)
{
    struct pstk__jpeg_frame want = *f;
    pstk__jpeg_frame_layout(&want);
    if (want.max_h != f->max_h || want.max_v != f->max_v)
        return bad_frame(err, "largest sampling factors do not match the components");
    for (uint32_t i = 0; i < f->n_components; i++) {
        const struct pstk__jpeg_component *a = &f->component[i], *b = &want.component[i];
        if (a->width != b->width || a->height != b->height || a->across != b->across ||
            a->down != b->down || a->stride != b->stride || a->rows != b->rows)
            return bad_frame(err, "sides of a component do not follow from those of the image");
    }
    return 0;
}

int pstk__jpeg_backend_check(const struct pstk__jpeg_frame *f, struct pstk_error *err)
{
    const uint32_t n = pstk__jpeg_color_components(f->color);
    if (n == 0)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_DECODE, "JPEG frame: colour %u", f->color);
    if (n != f->n_components)
        return bad_frame(err, "the number of components does not match the colour");
    if (f->width == 0 || f->width > 65535 || f->height == 0 || f->height > 65535)
        return bad_frame(err, "a side of the image is not in 1..65535");
    for (uint32_t i = 0; i < n; i++) {
        const struct pstk__jpeg_component *component = &f->component[i];
        if (component->h == 0 || component->h > 4 || component->v == 0 || component->v > 4)
            return bad_frame(err, "a sampling factor is not in 1..4");
    }
    const int r = check_layout(f, err);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < n; i++) {
        const struct pstk__jpeg_component *component = &f->component[i];
        if (f->max_h % component->h != 0 || f->max_v % component->v != 0)
            return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_DECODE,
                              "JPEG frame: component %u is sampled %u x %u and the finest %u x %u, "
                              "which is not a whole ratio",
                              i, component->h, component->v, f->max_h, f->max_v);
    }
    return 0;
}

/* ---- geometry ------------------------------------------------------------------------------- */

static uint32_t upsampling_of(const struct pstk__jpeg_frame *f,
                              const struct pstk__jpeg_component *component)
{
    const uint32_t h = f->max_h / component->h, v = f->max_v / component->v;
    if (h == 1 && v == 1)
        return FULL_SIZE;
    if (h == 1 && v == 2)
        return FANCY_H1V2;
    if (h == 2 && v <= 2 && component->width > 2)
        return v == 1 ? FANCY_H2V1 : FANCY_H2V2;
    return REPLICATED;
}

/* Return the first and the last row of samples that the pixel rows [top, bottom) need. When rows
 * are interpolated, an even row also needs the row of samples above, an odd one the row below. */
static uint32_t first_row_of(const struct plane *plane, uint32_t top)
{
    if (is_fancy_v(plane->upsampling))
        return top > 0 ? (top - 1) / 2 : 0;
    return top / plane->expand_v;
}

static uint32_t last_row_of(const struct plane *plane, uint32_t bottom)
{
    if (is_fancy_v(plane->upsampling))
        return least(bottom / 2, plane->height - 1);
    return (bottom - 1) / plane->expand_v;
}

static void plane_begin(struct backend *backend, uint32_t i)
{
    const struct pstk__jpeg_frame *f = backend->config->frame;
    const struct pstk__jpeg_component *component = &f->component[i];
    struct plane *plane = &backend->planes[i];
    *plane = (struct plane){.component = i,
                            .upsampling = upsampling_of(f, component),
                            .expand_h = f->max_h / component->h,
                            .expand_v = f->max_v / component->v,
                            .height = component->height};
    const int fancy = is_fancy_h(plane->upsampling);
    const uint32_t first = backend->origin / plane->expand_h,
                   last = (backend->end - 1) / plane->expand_h;
    const uint32_t last_read = fancy ? least(backend->end / 2, component->width - 1) : last;
    plane->first_block = first / BLOCK;
    plane->n_blocks = last_read / BLOCK - plane->first_block + 1;
    plane->n_samples = last - first + 1;
    plane->has_left_edge = fancy && first == 0;
    plane->has_right_edge = fancy && last == component->width - 1;
    plane->n_rows = is_fancy_v(plane->upsampling) ? 2 * BLOCK : BLOCK;
    plane->next_row = first_row_of(plane, backend->config->box->top) / BLOCK;
    plane->stride = round_up((size_t)plane->n_blocks * BLOCK) + ALIGN;
}

/* Set the origin, then the planes. */
static void backend_begin(struct backend *backend, const struct pstk__backend_config *c)
{
    const struct pstk__jpeg_frame *f = c->frame;
    uint32_t margin = 0;
    for (uint32_t i = 0; i < f->n_components; i++)
        if (is_fancy_h(upsampling_of(f, &f->component[i])))
            margin = least(c->box->left, 1);
    const uint32_t mcu = BLOCK * f->max_h;
    backend->config = c;
    backend->origin = (c->box->left - margin) / mcu * mcu;
    backend->end = c->box->left + c->box->width;
    backend->stride = (c->sink->channels == 4 ? 4 : 3) * round_up(backend->end - backend->origin);
    for (uint32_t i = 0; i < f->n_components; i++)
        plane_begin(backend, i);
}

/* ---- memory --------------------------------------------------------------------------------- */

static size_t ring_size(uint32_t n_rows, size_t stride)
{
    return ALIGN + n_rows * stride; /* the end of a row's stride is before the next row */
}

static size_t upsampled_size(size_t n_pixels)
{
    return ALIGN + round_up(n_pixels) + ALIGN;
}

/* Return 1 when the sink takes the samples of the file's only component. */
static int is_gray_plane(const struct pstk__backend_config *c)
{
    return c->sink->channels == 1 && c->frame->color == PSTK__JPEG_GRAY;
}

static int backend_allocate(struct backend *backend, struct pstk__arena *arena)
{
    for (uint32_t i = 0; i < backend->config->frame->n_components; i++) {
        struct plane *plane = &backend->planes[i];
        uint8_t *ring = pstk__arena_get(arena, ring_size(plane->n_rows, plane->stride));
        if (!ring)
            return PSTK_ENOMEM;
        plane->ring = ring + ALIGN;
        if (plane->upsampling == FULL_SIZE)
            continue;
        uint8_t *row =
            pstk__arena_get(arena, upsampled_size((size_t)plane->n_samples * plane->expand_h));
        if (!row)
            return PSTK_ENOMEM;
        plane->upsampled = row + ALIGN;
    }
    if (is_gray_plane(backend->config))
        return 0;
    backend->pixels = pstk__arena_get(arena, BLOCK * backend->stride);
    if (backend->config->sink->channels == 4)
        backend->rgb = pstk__arena_get(arena, 3 * round_up(backend->end - backend->origin));
    return !backend->pixels || (backend->config->sink->channels == 4 && !backend->rgb) ? PSTK_ENOMEM
                                                                                       : 0;
}

/*
 * Bound the memory. A component has at most as many samples in a row as the image has pixels, W.
 * Whole blocks of them are at most W rounded up to 8, and the stride rounds that up to 64.
 * Upsampled, n_samples is at most the component's width, ceil(W h / max_h), and expand_h times that
 * is at most W + (max_h - 1) / h, hence W + 3. At most three of the four components are
 * interpolated vertically, because one has the largest factor; the bound ignores that. Pixels take
 * W rounded up to 64, 4 bytes each, and one row of 3 bytes each.
 */
uint64_t pstk__jpeg_backend_scratch(uint32_t max_width)
{
    const size_t stride = round_up(max_width) + ALIGN;
    return PSTK__JPEG_MAX_COMPONENTS *
               (ring_size(2 * BLOCK, stride) + upsampled_size((size_t)max_width + 3)) +
           (BLOCK * 4 + 3) * round_up(max_width);
}

/* ---- samples -------------------------------------------------------------------------------- */

static uint8_t *sample_row(const struct plane *plane, uint32_t y)
{
    return plane->ring + (y & (plane->n_rows - 1)) * plane->stride;
}

/* Set the samples past the image's edges that fancy upsampling reads: copies of the outermost. */
static void extend_edges(const struct plane *plane, uint8_t *row)
{
    for (uint32_t y = 0; y < BLOCK; y++, row += plane->stride) {
        if (plane->has_left_edge)
            row[-1] = row[0];
        if (plane->has_right_edge)
            row[plane->n_samples] = row[plane->n_samples - 1];
    }
}

/*
 * Transform rows of blocks up to the one that holds sample row `last`. It never overwrites rows
 * that are still needed: the pixel rows [8 k, 8 k + 8) need samples of one row of blocks;
 * interpolated vertically, they need sample rows 4 k - 1 to 4 k + 4, which lie in two.
 */
static int plane_fill(const struct backend *backend, struct plane *plane, uint32_t last,
                      struct pstk_error *err)
{
    const struct pstk__backend_config *c = backend->config;
    for (; plane->next_row <= last / BLOCK; plane->next_row++) {
        struct pstk__block_row blocks;
        const int r = c->source->row(c->source->user, plane->component, plane->next_row,
                                     plane->first_block, plane->n_blocks, &blocks, err);
        if (r < 0)
            return r;
        assert(blocks.n_blocks == plane->n_blocks);
        uint8_t *row = sample_row(plane, plane->next_row * BLOCK);
        c->kernels->inverse(row, plane->stride, &blocks,
                            c->frame->component[plane->component].quant);
        if (plane->has_left_edge || plane->has_right_edge)
            extend_edges(plane, row);
    }
    return 0;
}

/* ---- pixels --------------------------------------------------------------------------------- */

static void replicate(uint8_t *out, const uint8_t *in, uint32_t n, uint32_t times)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < times; k++)
            *out++ = in[i];
}

/* Return one row of a component at the image's full size, from the origin on. */
static const uint8_t *plane_row(const struct plane *plane, const struct pstk__jpeg_kernels *k,
                                uint32_t y)
{
    const uint32_t half = y / 2; /* FANCY_..V2: the row of samples; `other` is its neighbour */
    const uint32_t other = y % 2 ? least(half + 1, plane->height - 1) : half - (half > 0);
    switch (plane->upsampling) {
    case FULL_SIZE:
        return sample_row(plane, y);
    case FANCY_H2V1:
        k->h2v1(plane->upsampled, sample_row(plane, y), plane->n_samples);
        break;
    case FANCY_H1V2:
        k->h1v2(plane->upsampled, sample_row(plane, half), sample_row(plane, other),
                plane->n_samples, 1 + y % 2);
        break;
    case FANCY_H2V2:
        k->h2v2(plane->upsampled, sample_row(plane, half), sample_row(plane, other),
                plane->n_samples);
        break;
    default:
        replicate(plane->upsampled, sample_row(plane, y / plane->expand_v), plane->n_samples,
                  plane->expand_h);
        break;
    }
    return plane->upsampled;
}

/* Make pixel rows [y, end), which lie between two multiples of BLOCK. */
static int backend_rows(struct backend *backend, uint32_t y, uint32_t end, struct pstk_error *err)
{
    const struct pstk__backend_config *c = backend->config;
    const uint32_t n = c->frame->n_components, n_rows = end - y;
    for (uint32_t i = 0; i < n; i++) {
        struct plane *plane = &backend->planes[i];
        const int r = plane_fill(backend, plane, last_row_of(plane, end), err);
        if (r < 0)
            return r;
    }
    const uint32_t n_pixels = backend->end - backend->origin,
                   margin = c->box->left - backend->origin;
    if (is_gray_plane(c)) {
        c->sink->rows(c->sink->user, sample_row(&backend->planes[0], y) + margin,
                      backend->planes[0].stride, n_rows);
        return 0;
    }
    for (uint8_t *out = backend->pixels; y < end; y++, out += backend->stride) {
        const uint8_t *samples[4] = {NULL, NULL, NULL, NULL};
        for (uint32_t i = 0; i < n; i++)
            samples[i] = plane_row(&backend->planes[i], c->kernels, y);
        c->kernels->rgb[c->frame->color](backend->rgb ? backend->rgb : out, samples, n_pixels);
        if (c->sink->channels == 1)
            pstk__gray_from_rgb(out, out, n_pixels);
        else if (backend->rgb)
            pstk__rgba_from_rgb(out, backend->rgb, n_pixels);
    }
    c->sink->rows(c->sink->user, backend->pixels + (size_t)c->sink->channels * margin,
                  backend->stride, n_rows);
    return 0;
}

int pstk__jpeg_backend_rows(const struct pstk__backend_config *c, struct pstk__arena *arena,
                            struct pstk_error *err)
{
    const size_t mark = arena->used;
    const uint32_t bottom = c->box->top + c->box->height;
    struct backend backend = {.pixels = NULL};
    backend_begin(&backend, c);
    int r = backend_allocate(&backend, arena);
    if (r < 0)
        pstk__fail(err, r, PSTK_STAGE_DECODE, "no scratch memory for a JPEG's rows");
    for (uint32_t y = c->box->top, end; r == 0 && y < bottom; y = end) {
        end = least((y / BLOCK + 1) * BLOCK, bottom);
        r = backend_rows(&backend, y, end, err);
    }
    pstk__arena_reset(arena, mark);
    return r;
}
