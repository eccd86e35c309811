/* SPDX-License-Identifier: Apache-2.0 */
/* mixing: mixes the rows of a slot in pairs. */
#include "batch/slot.h"
#include "mix/mix.h"

#include <string.h>

static void mix_images(const struct pstk__slot *slot, const struct pstk__plan *plan)
{
    const struct pstk__mixing *mixing = &plan->mixing;
    const struct pstk__output *o = &plan->outputs[mixing->image];
    const struct pstk__mix_images images = {.data = slot->tensors[mixing->image].data,
                                            .n = slot->batch.n_valid,
                                            .dtype = o->dtype,
                                            .layout = o->settings.image.layout,
                                            .height = o->image.height,
                                            .width = o->image.width,
                                            .channels = o->image.channels,
                                            .pairing = mixing->settings.pairing,
                                            .kernels = plan->kernels.pixel->isa};
    pstk__mix_images(&images, slot->mixed);
}

/* Write the last two tensors, which PSTK_MIX_PAIRS adds. */
static void write_pairs(const struct pstk__slot *slot, const struct pstk__plan *plan)
{
    const uint32_t partner = plan->n_outputs - 2, lambda = plan->n_outputs - 1;
    const uint64_t size = slot->outputs[partner].row_size;
    const uint8_t *labels = slot->tensors[plan->mixing.label].data;
    uint8_t *partners = slot->tensors[partner].data;
    float *lambdas = slot->tensors[lambda].data;
    for (uint32_t i = 0; i < slot->batch.n_valid; i++) {
        memcpy(partners + i * size, labels + slot->mixed[i].partner * size, size);
        lambdas[i] = (float)slot->mixed[i].lam;
    }
}

/* Called by the last worker of the slot's countdown; no other thread uses the slot by then. */
void pstk__slot_mix(struct pstk__slot *slot, const struct pstk__plan *plan, uint32_t rank)
{
    const struct pstk__mixing *mixing = &plan->mixing;
    const int has_images = mixing->image != UINT32_MAX;
    const struct pstk_mix_key key = {
        .size = sizeof key,
        .n_rows = slot->batch.n_valid,
        .height = has_images ? plan->outputs[mixing->image].image.height : 0,
        .width = has_images ? plan->outputs[mixing->image].image.width : 0,
        .seed = plan->seed,
        .epoch = slot->batch.epoch,
        .position = slot->batch.position,
        .rank = rank};
    if (slot->failed_row != UINT32_MAX)
        return;
    pstk__mix_draw(&mixing->settings, &key, slot->mixed);
    if (has_images)
        mix_images(slot, plan);
    if (slot->labels)
        pstk__mix_targets(slot->tensors[mixing->label].data, &mixing->settings, slot->mixed,
                          slot->labels, slot->batch.n_valid);
    else
        write_pairs(slot, plan);
}
