/* SPDX-License-Identifier: Apache-2.0 */
/* shape: sets the shapes of a host slot's tensors, whose batch has one of several sizes or its own
 * number of rows. */
#include "batch/slot.h"
#include "sample/multi_size.h"

#include <string.h>

/* Called by the reader of the slot's lane, before it pushes the first task: no other thread uses
 * the slot. */
void pstk__slot_shape(struct pstk__slot *slot, const struct pstk__plan *plan)
{
    const uint32_t size_index = pstk__multi_size_at(plan, slot->batch.epoch, slot->batch.index);
    const struct pstk__plan *of = pstk__plan_of_size(plan, size_index);
    if (slot->batch.size_index == size_index && slot->n_shaped == slot->batch.n_rows)
        return;
    slot->batch.size_index = size_index;
    slot->n_shaped = slot->batch.n_rows;
    for (uint32_t i = 0; i < slot->pool->n_outputs; i++) {
        const struct pstk__output *o = &of->outputs[i];
        struct pstk_tensor *t = &slot->tensors[i];
        if (slot->outputs[i].offsets)
            continue;
        memcpy(t->shape, o->shape, sizeof t->shape);
        memcpy(t->strides, o->strides, sizeof t->strides);
        t->shape[0] = slot->batch.n_rows;
        slot->outputs[i].row_size = pstk__output_rows(o)->row_size;
        t->size = slot->batch.n_rows * slot->outputs[i].row_size;
    }
}
