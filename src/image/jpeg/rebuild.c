/* SPDX-License-Identifier: Apache-2.0 */
#include "image/jpeg/rebuild.h"

#include "base/cpu.h"
#include "base/error.h"
#include "image/jpeg/rebuild_library.h"
#include "image/jpeg/rebuild_standard.h"

/* ---- one attempt ---------------------------------------------------------------------------- */

/* Return 1 when the numbers of blocks follow from the sides and factors. */
static int is_laid_out(const struct pstk__jpeg_frame *f)
{
    struct pstk__jpeg_frame frame = *f;
    if ((f->n_components != 1 && f->n_components != 3 && f->n_components != 4) || f->width == 0 ||
        f->height == 0 || f->width > 65535 || f->height > 65535)
        return 0;
    for (uint32_t i = 0; i < f->n_components; i++)
        if (f->component[i].h < 1 || f->component[i].h > 4 || f->component[i].v < 1 ||
            f->component[i].v > 4)
            return 0;
    pstk__jpeg_frame_layout(&frame);
    for (uint32_t i = 0; i < f->n_components; i++) {
        const struct pstk__jpeg_component *c = &f->component[i], *d = &frame.component[i];
        if (c->across != d->across || c->down != d->down || c->stride != d->stride ||
            c->rows != d->rows)
            return 0;
    }
    return 1;
}

static int run(struct pstk__jpeg_attempt *attempt, struct pstk_error *err)
{
    switch (attempt->image->rebuild) {
    case PSTK__JPEG_REBUILD_SCANS:
        attempt->write_scan = pstk__jpeg_put_scan;
        return pstk__jpeg_splice(attempt, err);
    case PSTK__JPEG_REBUILD_LIBRARY:
        return pstk__jpeg_rebuild_library(attempt, err);
    case PSTK__JPEG_REBUILD_STANDARD:
        return pstk__jpeg_rebuild_standard(attempt, err);
    default:
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                          "JPEG: method %u of rebuilding a file is not known",
                          attempt->image->rebuild);
    }
}

int pstk__jpeg_attempt(struct pstk__jpeg_attempt *attempt, const struct pstk__jpeg_image *image,
                       uint8_t *out, uint64_t capacity, struct pstk__arena *arena,
                       struct pstk_error *err)
{
    if (!is_laid_out(&image->frame) || image->parameters > PSTK__JPEG_ZERO_PADDING)
        return pstk__fail(
            err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
            "JPEG: the frame or the parameters for rebuilding the file are out of bounds");
    size_t mark = arena->used;
    attempt->image = image;
    for (uint32_t i = 0; i < PSTK__JPEG_MAX_COMPONENTS; i++)
        attempt->blocks[i] = image->blocks[i];
    attempt->isa = pstk__cpu_kernels();
    attempt->arena = arena;
    attempt->out = attempt->at = out;
    attempt->end = out + capacity;
    int r = run(attempt, err);
    pstk__arena_reset(arena, mark);
    return r;
}

int pstk__jpeg_image_rebuild(const struct pstk__jpeg_image *image, uint8_t *out,
                             uint64_t out_capacity, uint64_t *out_size, struct pstk__arena *arena,
                             struct pstk_error *err)
{
    size_t mark = arena->used;
    struct pstk__jpeg_attempt *attempt = pstk__arena_get(arena, sizeof *attempt);
    *out_size = 0;
    if (!attempt)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_DECODE,
                          "JPEG: no scratch memory for rebuilding");
    int r = pstk__jpeg_attempt(attempt, image, out, out_capacity, arena, err);
    if (r == 0)
        *out_size = (uint64_t)(attempt->at - attempt->out);
    pstk__arena_reset(arena, mark);
    return r;
}

/* ---- bounds --------------------------------------------------------------------------------- */

uint64_t pstk__jpeg_rebuild_bound(const struct pstk__jpeg_image *image)
{
    return pstk__jpeg_splice_bound(&image->frame, image->skeleton_size);
}

/*
 * An attempt (24 KiB with its tables), a standard file's counts and tables (20 KiB), and libjpeg's
 * output with its markers, its script (9 KiB), a pointer for each row of blocks, its tables,
 * statistics of 32 kinds and scan state: less than 128 KiB, in addition to the parts that grow.
 */
uint64_t pstk__jpeg_rebuild_scratch(const struct pstk__jpeg_frame *f, uint64_t skeleton_size)
{
    uint64_t n_rows = 0;
    for (uint32_t i = 0; i < f->n_components && i < PSTK__JPEG_MAX_COMPONENTS; i++)
        n_rows += (uint64_t)f->component[i].rows + 4;
    return pstk__jpeg_splice_bound(f, skeleton_size) + n_rows * sizeof(void *) + (128u << 10);
}
