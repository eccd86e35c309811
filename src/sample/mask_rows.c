/* SPDX-License-Identifier: Apache-2.0 */
#include "sample/mask_rows.h"

#include "base/cast.h"
#include "base/error.h"
#include "image/mask.h"

#include <string.h>

/* Set the drawn ops that move pixels, all with the nearest filter. */
static int image_ops_init(struct pstk__image_ops *own, struct pstk__arena *arena,
                          const struct pstk__image_ops *image_ops)
{
    const uint32_t n = image_ops->n_prefix + image_ops->n_changes;
    *own = *image_ops;
    own->n_prefix = own->n_changes = own->n_erasures = 0;
    own->ops = pstk__arena_get(arena, n * sizeof *own->ops);
    if (!own->ops)
        return PSTK_ENOMEM;
    for (uint32_t k = 0; k < n;
         k += 1 + image_ops->ops[k].n_children) { /* skip the chains of a MIX */
        const struct pstk__op_entry *entry = pstk__op_entry(image_ops->ops[k].kind);
        struct pstk_op *op = &own->ops[own->n_prefix + own->n_changes];
        if (!entry->move)
            continue;
        *op = image_ops->ops[k];
        op->filter = entry->uses & PSTK__USES_FILTER ? PSTK_FILTER_NEAREST : 0;
        own->n_prefix += k < image_ops->n_prefix;
        own->n_changes += k >= image_ops->n_prefix;
    }
    return 0;
}

/* Set the fill of the ops for a plane, and return it. */
static uint8_t fill_plane(const struct pstk__mask_rows *rows, uint32_t plane)
{
    const struct pstk__image_ops *image_ops = &rows->image_ops;
    const uint8_t fill = (uint8_t)(rows->fill >> 8 * plane);
    for (uint32_t k = 0; k < image_ops->n_prefix + image_ops->n_changes; k++)
        memset(image_ops->ops[k].fill, fill, sizeof image_ops->ops[k].fill);
    return fill;
}

static int begin(struct pstk__mask_rows *rows, const struct pstk__plan *plan,
                 struct pstk__arena *arena, const struct pstk__output *o,
                 const struct pstk__image_info *info, uint8_t *const out[2])
{
    int rc = 0;
    for (uint32_t b = 0; b < rows->n_planes && rc == 0; b++) {
        struct pstk__row row = {.data = out[b]};
        const struct pstk__image_source source = {
            .info = info, .image_ops = &rows->image_ops, .fill = fill_plane(rows, b)};
        pstk__image_rows_begin(&rows->planes[b], plan, arena);
        rc = pstk__image_rows_add(&rows->planes[b], o, &row, &source);
        rows->split[b] = rc == 0 ? pstk__arena_get(arena, info->width) : NULL;
        if (rc == 0 && !rows->split[b])
            rc = PSTK_ENOMEM;
    }
    return rc;
}

/* Take the next rows of the mask: a pstk__row_sink.rows. */
static void take(void *user, const uint8_t *samples, uint64_t stride, uint32_t n_rows)
{
    struct pstk__mask_rows *rows = user;
    const uint32_t width = rows->planes[0].box.width, size = rows->sample_size;
    if (rows->n_planes == 1) {
        pstk__image_rows_take(&rows->planes[0], samples, stride, n_rows);
        return;
    }
    for (uint32_t y = 0; y < n_rows; y++, samples += stride) {
        for (uint32_t x = 0; x < width; x++) {
            rows->split[0][x] = samples[size * x];
            rows->split[1][x] = size == 2 ? samples[2 * x + 1] : 0;
        }
        for (uint32_t b = 0; b < 2; b++)
            pstk__image_rows_take(&rows->planes[b], rows->split[b], 0, 1);
    }
}

static int decode(struct pstk__mask_rows *rows, struct pstk__arena *arena,
                  const struct pstk__mask_source *source, struct pstk_error *err)
{
    const struct pstk__row_sink sink = {.rows = take, .user = rows, .channels = rows->sample_size};
    for (uint32_t b = 0; b < rows->n_planes; b++)
        pstk__image_rows_whole(&rows->planes[b], source->info);
    int rc = pstk__mask_rows(arena, source->data, source->size, source->info, &sink, err);
    if (rc < 0)
        return PSTK_EBADMSG;
    for (uint32_t b = 0; b < rows->n_planes && rc == 0; b++) {
        fill_plane(rows, b);
        rc = pstk__image_rows_end(&rows->planes[b]);
    }
    return rc;
}

#define CHUNK 256u /* samples */

/* Write n elements from samples whose bytes are in the planes. */
static void widen(void *out, uint32_t dtype, uint8_t *const planes[2], uint64_t n)
{
    const uint32_t size = pstk_dtype_size(dtype);
    uint16_t samples[CHUNK];
    for (uint64_t i = 0; i < n; i += CHUNK) {
        const uint32_t count = n - i < CHUNK ? (uint32_t)(n - i) : CHUNK;
        for (uint32_t k = 0; k < count; k++)
            samples[k] = (uint16_t)(planes[0][i + k] | planes[1][i + k] << 8);
        pstk__cast_row((uint8_t *)out + i * size, dtype, samples, PSTK_U16, count);
    }
}

int pstk__mask_rows_write(struct pstk__mask_rows *rows, const struct pstk__plan *plan,
                          struct pstk__arena *arena, const struct pstk__output *o,
                          const struct pstk__mask_source *source, void *out, struct pstk_error *err)
{
    const uint32_t dtype = o->dtype;
    const uint64_t n = (uint64_t)o->image.height * o->image.width;
    uint8_t *planes[2] = {out, NULL};
    rows->fill = o->settings.follow.fill;
    rows->sample_size = pstk__mask_sample_size(source->info);
    rows->n_planes = rows->sample_size == 2 || rows->fill > UINT8_MAX ? 2 : 1;
    if (rows->n_planes == 2 && !pstk__cast_fits(PSTK_U16, dtype))
        return pstk__fail(
            err, PSTK_ENOTSUP, PSTK_STAGE_DECODE,
            "the mask has samples of 16 bits, which the dtype of output '%s' does not "
            "hold; set one that does",
            o->name);
    for (uint32_t b = 0; b < rows->n_planes && dtype != PSTK_U8; b++) {
        planes[b] = pstk__arena_get(arena, n);
        if (!planes[b])
            return PSTK_ENOMEM;
    }
    int rc = image_ops_init(&rows->image_ops, arena, source->image_ops);
    if (rc == 0)
        rc = begin(rows, plan, arena, o, source->info, planes);
    if (rc == 0 && rows->planes[0].n > 0)
        rc = decode(rows, arena, source, err);
    if (rc < 0 || dtype == PSTK_U8)
        return rc;
    if (rows->n_planes == 1)
        pstk__cast_row(out, dtype, planes[0], PSTK_U8, n);
    else
        widen(out, dtype, planes, n);
    return 0;
}
