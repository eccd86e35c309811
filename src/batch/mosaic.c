/* SPDX-License-Identifier: Apache-2.0 */
/* mosaic: combines rows of a slot to pictures of four. */
#include "batch/slot.h"
#include "mix/mosaic.h"
#include "sample/boxes_row.h"

#include <string.h>

/* ---- images and masks ------------------------------------------------------------------------ */

static void combine_pixels(const struct pstk__slot *slot, const struct pstk__plan *plan, uint32_t i)
{
    const struct pstk__output *o = &plan->outputs[i];
    const int is_image = o->kind == PSTK_OUTPUT_IMAGE;
    const int has_planes = is_image && o->settings.image.layout == PSTK_NCHW;
    const uint32_t channels = is_image ? o->image.channels : 1;
    const struct pstk__mosaic_pixels pixels = {.to = slot->tensors[i].data,
                                               .from = slot->outputs[i].written,
                                               .row_size = pstk__output_rows(o)->row_size,
                                               .n = slot->batch.n_valid,
                                               .n_planes = has_planes ? channels : 1,
                                               .height = o->image.height,
                                               .width = o->image.width,
                                               .element_size = pstk_dtype_size(o->dtype) *
                                                               (has_planes ? 1 : channels)};
    pstk__mosaic_pixels(&pixels, slot->mosaics);
}

/* ---- boxes ----------------------------------------------------------------------------------- */

/* The rows of boxes being combined, and the outputs that follow them. */
struct combined_boxes {
    const struct pstk__slot *slot;
    const struct pstk__plan *plan;
    uint32_t output;                     /* index of the boxes' output */
    uint32_t per_box[PSTK__MAX_OUTPUTS]; /* indices of the outputs that have an item per box */
    uint32_t n_per_box;
    uint64_t n_dropped;
};

/* Return the end of the row's present content: bytes from its beginning. */
static int64_t *end_of(const struct combined_boxes *combined, uint32_t output, uint32_t row)
{
    return &combined->slot->outputs[output].offsets[row + 1];
}

static uint8_t *room_at(const struct combined_boxes *combined, uint32_t output, uint32_t row)
{
    const uint64_t row_size = pstk__output_rows(&combined->plan->outputs[output])->row_size;
    return (uint8_t *)combined->slot->tensors[output].data + row * row_size +
           *end_of(combined, output, row);
}

/* Return a row as a worker wrote it. */
static const void *written_at(const struct combined_boxes *combined, uint32_t output, uint32_t row)
{
    return combined->slot->outputs[output].written +
           row * pstk__output_written_size(&combined->plan->outputs[output]);
}

/* Append a box to the row, and its items in the outputs that follow: item `number` of the row
 * `from`. */
static void append_box(const struct combined_boxes *combined, uint32_t row,
                       const struct pstk__boxes *box, uint32_t from, uint64_t number)
{
    const uint32_t i = combined->output;
    const struct pstk__output *outputs = combined->plan->outputs;
    float *out = (float *)(void *)room_at(combined, i, row);
    pstk__boxes_write(box, &outputs[i], out);
    *end_of(combined, i, row) += (int64_t)outputs[i].ragged.item_size;
    for (uint32_t k = 0; k < combined->n_per_box; k++) {
        const uint32_t j = combined->per_box[k];
        const uint64_t size = outputs[j].ragged.item_size;
        const uint8_t *items = written_at(combined, j, from);
        memcpy(room_at(combined, j, row), items + number * size, size);
        *end_of(combined, j, row) += (int64_t)size;
    }
}

static void append_part(struct combined_boxes *combined, uint32_t row,
                        const struct pstk_mosaic_part *part)
{
    const uint32_t i = combined->output;
    const struct pstk__kept_boxes *kept = written_at(combined, i, part->row);
    for (uint64_t number = 0; number < kept->n; number++) {
        struct pstk__moved_box one = kept->boxes[number];
        struct pstk__boxes box = {.boxes = &one, .n = 1};
        pstk__boxes_place(&box, part);
        pstk__boxes_choose(&box, &combined->plan->outputs[i]);
        if (one.is_dropped)
            combined->n_dropped++;
        else
            append_box(combined, row, &box, part->row, number);
    }
}

static void combine_boxes(struct pstk__slot *slot, const struct pstk__plan *plan, uint32_t i)
{
    struct combined_boxes combined = {.slot = slot, .plan = plan, .output = i};
    for (uint32_t j = 0; j < plan->n_outputs; j++)
        if (plan->outputs[j].kind == PSTK_OUTPUT_PER_BOX && plan->outputs[j].follow.boxes == i)
            combined.per_box[combined.n_per_box++] = j;
    for (uint32_t row = 0; row < slot->batch.n_valid; row++) {
        const struct pstk_mosaic_row *mosaic = &slot->mosaics[row];
        *end_of(&combined, i, row) = 0;
        for (uint32_t k = 0; k < combined.n_per_box; k++)
            *end_of(&combined, combined.per_box[k], row) = 0;
        for (uint32_t k = 0; k < mosaic->n_parts; k++)
            append_part(&combined, row, &mosaic->parts[k]);
    }
    atomic_fetch_add_explicit(&slot->n_dropped_boxes, (uint32_t)combined.n_dropped,
                              memory_order_relaxed);
}

/* Called by the last worker of the slot's countdown; no other thread uses the slot by then. */
void pstk__slot_combine(struct pstk__slot *slot, const struct pstk__plan *plan, uint32_t rank)
{
    const struct pstk__output *image = &plan->outputs[plan->mosaic.image];
    const struct pstk_mix_key key = {.size = sizeof key,
                                     .n_rows = slot->batch.n_valid,
                                     .height = image->image.height,
                                     .width = image->image.width,
                                     .seed = plan->seed,
                                     .epoch = slot->batch.epoch,
                                     .position = slot->batch.position,
                                     .rank = rank};
    if (slot->failed_row != UINT32_MAX)
        return;
    pstk__mosaic_draw(&plan->mosaic.settings, &key, slot->mosaics);
    for (uint32_t i = 0; i < plan->n_outputs; i++) {
        const struct pstk__output *o = &plan->outputs[i];
        if (o->is_combined && o->kind == PSTK_OUTPUT_BOXES)
            combine_boxes(slot, plan, i);
        else if (o->is_combined && !pstk__output_is_ragged(o))
            combine_pixels(slot, plan, i);
    }
}
