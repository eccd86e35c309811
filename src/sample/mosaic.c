/* SPDX-License-Identifier: Apache-2.0 */
/* mosaic: the outputs that a mosaic combines, and the sizes of their rows. */
#include "sample/plan.h"

#include "base/error.h"
#include "sample/boxes_row.h"

#include <string.h>

#define N_PARTS 4u
#define MAX_BUDGET (1ull << 46) /* as in compile.c: bytes of one output of a batch */

#define FAIL(code, fmt, ...) pstk__fail(err, code, PSTK_STAGE_OPEN, "mosaic." fmt, ##__VA_ARGS__)

int pstk__mosaic_open(struct pstk__plan *p, const struct pstk_settings *s, struct pstk_error *err)
{
    struct pstk_mosaic mosaic;
    if (!s->mosaic)
        return 0;
    int r = pstk__mosaic_copy(&mosaic, s->mosaic, err);
    if (r == 0)
        r = pstk__mosaic_check(&mosaic, err);
    if (r < 0)
        return r;
    if (!mosaic.image)
        return FAIL(PSTK_EINVAL, "image: value is NULL; must be the name of an output");
    if (s->mix)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "mosaic: must be NULL, because mix is set");
    p->mosaic = (struct pstk__mosaic){.settings = mosaic, .image = UINT32_MAX};
    return 0;
}

void pstk__mosaic_find(struct pstk__plan *p, uint32_t i)
{
    if (pstk__plan_has_mosaic(p) && strcmp(p->outputs[i].name, p->mosaic.settings.image) == 0)
        p->mosaic.image = i;
}

/* ---- once all outputs are checked ------------------------------------------------------------ */

/* Return 1 if output i follows the image, itself or through boxes. */
static int follows(const struct pstk__plan *p, uint32_t i)
{
    const struct pstk__output *o = &p->outputs[i];
    if (o->kind == PSTK_OUTPUT_PER_BOX)
        o = &p->outputs[o->follow.boxes];
    return pstk__output_follows(o->kind) && o->follow.image == p->mosaic.image;
}

/* Return the bytes of a row as workers write it: boxes are moved boxes, in double precision and
 * whole. */
static uint64_t written_size(const struct pstk__output *o)
{
    if (o->kind == PSTK_OUTPUT_BOXES)
        return sizeof(struct pstk__kept_boxes) +
               o->follow.max_boxes * sizeof(struct pstk__moved_box);
    return o->ragged.max_size;
}

/* Grow the row of output i: it may have all boxes of four. */
static int grow(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    const uint64_t wanted = o->settings.ragged.bytes_per_batch;
    o->ragged.written_size = written_size(o);
    if (o->ragged.written_size > MAX_BUDGET / p->batch_size / N_PARTS)
        return pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_OPEN,
                          "outputs[%u]: a batch of %u mosaics of rows of up to %llu bytes is too "
                          "large; lower %s (output '%s')",
                          i, p->batch_size, (unsigned long long)o->ragged.written_size,
                          p->rows_setting, o->name);
    o->ragged.max_size *= N_PARTS;
    if (wanted != 0 && wanted < o->ragged.max_size)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "outputs[%u].bytes_per_batch: value is %llu; must be at least %llu, "
                          "because a mosaic may have all boxes of four rows (output '%s')",
                          i, (unsigned long long)wanted, (unsigned long long)o->ragged.max_size,
                          o->name);
    o->budget = wanted != 0 ? wanted : p->batch_size * o->ragged.max_size;
    o->shape[0] = (int64_t)(o->budget / o->ragged.item_size);
    return 0;
}

static int combine(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    o->is_combined = 1;
    if (o->follow.n_levels > 0 && o->kind != PSTK_OUTPUT_BOXES)
        return FAIL(PSTK_EINVAL,
                    "image: output '%s' has several items for a box, but a mosaic combines one "
                    "item for each box; remove that output, or the mosaic",
                    o->name);
    switch (o->kind) {
    case PSTK_OUTPUT_IMAGE:
    case PSTK_OUTPUT_MASK:
        return 0;
    case PSTK_OUTPUT_BOXES:
    case PSTK_OUTPUT_PER_BOX:
        return grow(p, i, err);
    default:
        return FAIL(PSTK_EINVAL,
                    "image: output '%s' follows the image '%s', but a mosaic combines only images, "
                    "masks, boxes and the items of boxes; remove that output, or the mosaic",
                    o->name, p->outputs[p->mosaic.image].name);
    }
}

static int check_image(const struct pstk__plan *p, uint32_t n, struct pstk_error *err)
{
    char names[PSTK__NAMES_SIZE];
    const uint32_t image = p->mosaic.image;
    if (image != UINT32_MAX && p->outputs[image].kind == PSTK_OUTPUT_IMAGE)
        return 0;
    pstk__output_names(p, n, PSTK_OUTPUT_IMAGE, names);
    return FAIL(PSTK_EINVAL, "image: value is '%.64s'; must be the name of an image output: %s",
                p->mosaic.settings.image, names);
}

int pstk__mosaic_combine(struct pstk__plan *p, uint32_t n, struct pstk_error *err)
{
    if (!pstk__plan_has_mosaic(p))
        return 0;
    int r = check_image(p, n, err);
    for (uint32_t i = 0; i < n && r == 0; i++)
        if (i == p->mosaic.image || follows(p, i))
            r = combine(p, i, err);
    p->mosaic.settings.image = NULL; /* it points to the caller's memory */
    return r;
}
