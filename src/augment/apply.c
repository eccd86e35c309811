/* SPDX-License-Identifier: Apache-2.0 */
/* apply: the public functions that apply operations to the program's own pixels. */
#include "augment/canvas.h"
#include "augment/sampled_ops.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SIDE 65535u /* pixels */

#define FAIL(code, ...) pstk__fail(err, code, PSTK_STAGE_OPEN, __VA_ARGS__)

static int check_shape(const struct pstk_shape *shape, struct pstk_error *err)
{
    if (shape->height < 1 || shape->height > MAX_SIDE || shape->width < 1 ||
        shape->width > MAX_SIDE)
        return FAIL(PSTK_EINVAL,
                    "shape: value is %u x %u; height and width must be from 1 to %u pixels",
                    shape->height, shape->width, MAX_SIDE);
    if (shape->channels != 1 && shape->channels != 3 && shape->channels != 4)
        return FAIL(PSTK_EINVAL, "shape: value has %u channels; must be 1, 3 or 4",
                    shape->channels);
    return 0;
}

static struct pstk__view view_of(const struct pstk_shape *shape)
{
    return (struct pstk__view){.height = shape->height,
                               .width = shape->width,
                               .channels = shape->channels,
                               .dtype = PSTK_F32};
}

/* ---- draw ------------------------------------------------------------------------------------ */

int pstk_ops_draw(const struct pstk_op *ops, uint32_t n_ops, const struct pstk_shape *shape,
                  const struct pstk_draw *draw, struct pstk_op *drawn, uint32_t capacity,
                  struct pstk_error *err)
{
    struct pstk__view view = {.dtype = PSTK_F32};
    if (draw->size < sizeof *draw)
        return FAIL(PSTK_EINVAL, "draw.size: value is %u; must be sizeof(struct pstk_draw), %zu",
                    draw->size, sizeof *draw);
    if ((!ops && n_ops > 0) || (!drawn && capacity > 0))
        return FAIL(PSTK_EINVAL, "ops, drawn: value is NULL; must be an array");
    int rc = check_shape(shape, err);
    view.channels = shape->channels;
    if (rc == 0)
        rc = pstk__ops_check(ops, n_ops, &view, err);
    if (rc < 0)
        return rc;
    const struct pstk__random_key key = {.seed = draw->seed,
                                         .epoch = draw->epoch,
                                         .sample_id = draw->sample_id,
                                         .group = draw->random_group};
    struct pstk__sampled_ops sampled = {.view = view_of(shape), .err = err};
    sampled.ops = calloc(pstk__ops_max(ops, n_ops) + 1, sizeof *sampled.ops);
    if (!sampled.ops)
        return FAIL(PSTK_ENOMEM, "ops: out of memory");
    rc = pstk__ops_draw(&sampled, ops, 0, n_ops, key);
    const uint32_t n = sampled.n < capacity ? sampled.n : capacity;
    for (uint32_t i = 0; rc == 0 && i < n; i++) {
        drawn[i] = sampled.ops[i];
        if (drawn[i].n_children > n - i - 1) /* children beyond the end of the list */
            drawn[i].n_children = n - i - 1;
        drawn[i].children = drawn[i].n_children > 0 ? &drawn[i + 1] : NULL;
    }
    free(sampled.ops);
    return rc < 0 ? rc : (int)sampled.n;
}

/* ---- apply ----------------------------------------------------------------------------------- */

static int check_fixed(const struct pstk_op *op, const struct pstk__op_entry *entry,
                       const struct pstk_shape *shape, struct pstk_error *err)
{
    if (!entry || (!entry->change && !entry->table))
        return FAIL(PSTK_EINVAL, "op.kind: value is %u (%s); must be a fixed operation on pixels",
                    op->kind, entry ? entry->name : "unknown");
    if (op->filter == PSTK_FILTER_RANDOM)
        return FAIL(PSTK_EINVAL, "op.filter: value is RANDOM; must be one that pstk_ops_draw drew");
    struct pstk_op plain = *op;
    plain.flags &= ~(uint32_t)PSTK_OP_TENSOR;
    int rc = entry->check(&plain, err);
    if (rc == 0)
        rc = pstk__op_check_members(op, entry->uses, err);
    if (rc == 0)
        rc = pstk__op_check_tensor(op, shape->channels, err);
    if (rc == 0 && entry->channels)
        rc = entry->channels(op, shape->channels, err);
    return rc < 0 ? rc : 0;
}

/* Change a copy of the pixels: two pictures and the scratch, in an arena. */
static int change(struct pstk__canvas *canvas, const struct pstk_op *op, const void *pixels,
                  void *out)
{
    const struct pstk__picture *picture = &canvas->picture;
    canvas->picture.pixels = pstk__arena_get(canvas->arena, canvas->room);
    canvas->spare = pstk__arena_get(canvas->arena, canvas->room);
    if (!picture->pixels || !canvas->spare)
        return PSTK_ENOMEM;
    memcpy(picture->pixels, pixels, pstk__picture_size(picture));
    const int rc = pstk__canvas_run(canvas, op, 1);
    if (rc == 0)
        memcpy(out, canvas->picture.pixels, pstk__picture_size(&canvas->picture));
    return rc;
}

static int apply(const struct pstk_op *op, const struct pstk__canvas_kernels *kernels,
                 const void *pixels, const struct pstk__view *before, void *out,
                 struct pstk_error *err)
{
    const struct pstk__largest largest = {.width = before->width,
                                          .height = before->height,
                                          .n_pixels = (uint64_t)before->width * before->height};
    const struct pstk__canvas_bounds bounds = pstk__canvas_bounds_of(op, 0, 1, largest, *before);
    struct pstk__arena arena;
    if (pstk__arena_open(&arena, 2 * bounds.room + bounds.scratch) < 0)
        return FAIL(PSTK_ENOMEM, "op: out of memory");
    struct pstk_error failure;
    struct pstk__canvas canvas = {
        .kernels = kernels,
        .failure = &failure,
        .arena = &arena,
        .picture = {.width = before->width, .height = before->height, .channels = before->channels},
        .room = bounds.room};
    const int rc = change(&canvas, op, pixels, out);
    pstk__arena_close(&arena);
    if (rc == PSTK_ECANCELED)
        return pstk__fail_copy(err, &failure);
    return rc < 0 ? FAIL(rc, "op: out of memory") : 0;
}

/* Check that the op can change an image of this size. */
static int check_fits(const struct pstk_op *op, const struct pstk__view *view,
                      struct pstk_error *err)
{
    const struct pstk__op_entry *entry = pstk__op_entry(op->kind);
    const int rc = entry->fits ? entry->fits(op, view) : 0;
    if (rc == PSTK_EINVAL)
        return FAIL(rc,
                    "op: the image has %u x %u pixels; must contain the part that a crop takes or "
                    "half of a blur's kernel, and be no larger than the size to pad to",
                    view->height, view->width);
    if (rc == PSTK_EFBIG)
        return FAIL(rc, "op: the result is more than 16 times as long as wide");
    return 0;
}

int pstk_op_apply(const struct pstk_op *op, uint32_t kernels, const void *pixels,
                  const struct pstk_shape *shape, void *out, struct pstk_shape *out_shape,
                  struct pstk_error *err)
{
    struct pstk__canvas_kernels tables;
    int rc = check_shape(shape, err);
    if (rc == 0)
        rc = check_fixed(op, pstk__op_entry(op->kind), shape, err);
    if (rc < 0)
        return rc;
    if (!pstk__canvas_kernels_init(&tables, kernels))
        return FAIL(PSTK_ENOTSUP,
                    "kernels: value is %u; must be 0, or kernels that both this build and this CPU "
                    "have",
                    kernels);
    const struct pstk__view before = view_of(shape), after = pstk__op_view(op, &before);
    rc = check_fits(op, &before, err);
    if (rc < 0)
        return rc;
    if (after.height > MAX_SIDE || after.width > MAX_SIDE)
        return FAIL(PSTK_EFBIG, "op: the result has %u x %u pixels; must be at most %u on a side",
                    after.height, after.width, MAX_SIDE);
    *out_shape = (struct pstk_shape){
        .height = after.height, .width = after.width, .channels = after.channels};
    return out ? apply(op, &tables, pixels, &before, out, err) : 0;
}
