/* SPDX-License-Identifier: Apache-2.0 */
#include "image/jpeg/splice.h"

#include "base/cpu.h"
#include "base/error.h"

#include <string.h>

/* ---- pieces --------------------------------------------------------------------------------- */

static int is_full(struct pstk_error *err)
{
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                      "JPEG: the rebuilt file is larger than was said");
}

int pstk__jpeg_put(struct pstk__jpeg_attempt *a, const void *bytes, uint64_t n,
                   struct pstk_error *err)
{
    if (n > (uint64_t)(a->end - a->at))
        return is_full(err);
    memcpy(a->at, bytes, (size_t)n);
    a->at += n;
    return 0;
}

int pstk__jpeg_put_scan(struct pstk__jpeg_attempt *a, struct pstk_error *err)
{
    uint32_t padding = a->image->parameters & PSTK__JPEG_ZERO_PADDING ? 0 : 1;
    if (pstk__jpeg_script_is_arithmetic(&a->script))
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                          "JPEG skeleton: arithmetic coding is not for this way of rebuilding");
    pstk__bits_init(&a->bits, a->at, a->end);
    const struct pstk__jpeg_units units = {&a->image->frame, a->blocks, &a->script.scan};
    int r = pstk__jpeg_scan_write(&units, &a->script, padding, a->variant, &a->bits);
    if (r < 0)
        return pstk__fail(err, r, PSTK_STAGE_DECODE,
                          "JPEG: scan %u cannot be coded: no code for a coefficient, or larger "
                          "than was said",
                          a->script.n_scans);
    a->at = a->bits.state.at;
    return 0;
}

int pstk__jpeg_splice(struct pstk__jpeg_attempt *a, struct pstk_error *err)
{
    struct pstk__jpeg_walk walk = {.data = a->image->skeleton, .size = a->image->skeleton_size};
    struct pstk__jpeg_segment segment;
    uint64_t n_copied = 0;
    int r = 0;

    pstk__jpeg_script_init(&a->script);
    while (pstk__jpeg_walk_next(&walk, &segment)) {
        r = pstk__jpeg_script_apply(&a->script, &segment, &a->image->frame, err);
        if (r < 0)
            return r;
        if (r == 0)
            continue;
        r = pstk__jpeg_put(a, walk.data + n_copied, segment.end - n_copied, err);
        const uint8_t *begin = a->at;
        if (r == 0)
            r = a->write_scan(a, err);
        if (r < 0)
            return r;
        a->scan_size[a->script.n_scans - 1] = (uint64_t)(a->at - begin);
        n_copied = segment.end;
    }
    if (a->script.n_scans == 0)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE, "JPEG skeleton without a scan");
    return pstk__jpeg_put(a, walk.data + n_copied, walk.size - n_copied, err);
}

/* ---- one attempt ---------------------------------------------------------------------------- */

/* Are the numbers of blocks those that the sides and factors give? */
static int is_laid_out(const struct pstk__jpeg_frame *f)
{
    struct pstk__jpeg_frame g = *f;
    if ((f->n_components != 1 && f->n_components != 3 && f->n_components != 4) || f->width == 0 ||
        f->height == 0 || f->width > 65535 || f->height > 65535)
        return 0;
    for (uint32_t i = 0; i < f->n_components; i++)
        if (f->component[i].h < 1 || f->component[i].h > 4 || f->component[i].v < 1 ||
            f->component[i].v > 4)
            return 0;
    pstk__jpeg_frame_layout(&g);
    for (uint32_t i = 0; i < f->n_components; i++) {
        const struct pstk__jpeg_component *c = &f->component[i], *d = &g.component[i];
        if (c->across != d->across || c->down != d->down || c->stride != d->stride ||
            c->rows != d->rows)
            return 0;
    }
    return 1;
}

static int run(struct pstk__jpeg_attempt *a, struct pstk_error *err)
{
    switch (a->image->rebuild) {
    case PSTK__JPEG_REBUILD_SCANS:
        a->write_scan = pstk__jpeg_put_scan;
        return pstk__jpeg_splice(a, err);
    case PSTK__JPEG_REBUILD_LIBRARY:
        return pstk__jpeg_rebuild_library(a, err);
    case PSTK__JPEG_REBUILD_STANDARD:
        return pstk__jpeg_rebuild_standard(a, err);
    default:
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                          "JPEG: no way %u of rebuilding a file is known", a->image->rebuild);
    }
}

int pstk__jpeg_attempt(struct pstk__jpeg_attempt *a, const struct pstk__jpeg_image *image,
                       uint8_t *out, uint64_t capacity, struct pstk__arena *arena,
                       struct pstk_error *err)
{
    if (!is_laid_out(&image->frame) || image->parameters > PSTK__JPEG_ZERO_PADDING)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                          "JPEG: frame or parameters of the rebuilding are out of bounds");
    size_t mark = arena->used;
    a->image = image;
    for (uint32_t i = 0; i < PSTK__JPEG_MAX_COMPONENTS; i++)
        a->blocks[i] = image->blocks[i];
    a->variant = pstk__cpu_variant();
    a->arena = arena;
    a->out = a->at = out;
    a->end = out + capacity;
    int r = run(a, err);
    pstk__arena_reset(arena, mark);
    return r;
}

int pstk__jpeg_image_rebuild(const struct pstk__jpeg_image *image, uint8_t *out,
                             uint64_t out_capacity, uint64_t *out_size, struct pstk__arena *arena,
                             struct pstk_error *err)
{
    size_t mark = arena->used;
    struct pstk__jpeg_attempt *a = pstk__arena_get(arena, sizeof *a);
    *out_size = 0;
    if (!a)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_DECODE,
                          "JPEG: no scratch memory for rebuilding");
    int r = pstk__jpeg_attempt(a, image, out, out_capacity, arena, err);
    if (r == 0)
        *out_size = (uint64_t)(a->at - a->out);
    pstk__arena_reset(arena, mark);
    return r;
}

/* ---- bounds --------------------------------------------------------------------------------- */

static uint64_t count_blocks(const struct pstk__jpeg_frame *f)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < f->n_components && i < PSTK__JPEG_MAX_COMPONENTS; i++)
        n += (uint64_t)f->component[i].stride * f->component[i].rows;
    return n;
}

/*
 * A block, coded once: 64 symbols of at most 16 bits with 15 of value, 248 bytes, each of which may
 * be stuffed; and where a restart follows, its marker and a last byte that is filled up: 500 bytes.
 * Tables and headers of a standard file: below 4 KiB (standard.c, struct body). What exceeds this,
 * because scans repeat coefficients, is not rebuilt exactly.
 */
static uint64_t bound_of(const struct pstk__jpeg_frame *f, uint64_t skeleton_size)
{
    return skeleton_size + count_blocks(f) * 512 + 4096;
}

uint64_t pstk__jpeg_rebuild_bound(const struct pstk__jpeg_image *image)
{
    return bound_of(&image->frame, image->skeleton_size);
}

/*
 * An attempt (24 KiB with its tables), a standard file's counts and tables (20 KiB), and libjpeg's
 * output with its markers, its script (9 KiB), a pointer a row of blocks, its tables, statistics of
 * 32 kinds and scan state: all in all below 128 KiB beside what grows.
 */
uint64_t pstk__jpeg_rebuild_scratch(const struct pstk__jpeg_frame *f, uint64_t skeleton_size)
{
    uint64_t n_rows = 0;
    for (uint32_t i = 0; i < f->n_components && i < PSTK__JPEG_MAX_COMPONENTS; i++)
        n_rows += (uint64_t)f->component[i].rows + 4;
    return bound_of(f, skeleton_size) + n_rows * sizeof(void *) + (128u << 10);
}
