/* SPDX-License-Identifier: Apache-2.0 */
/* callbacks: has worker processes make rows of a slot, by callbacks that take its whole batch. */
#include "batch/slot.h"

#include "base/error.h"
#include "base/random.h"

#include <string.h>

#define BATCH_DRAWS                                                                                \
    (UINT32_MAX - 1) /* the `data_set` of these draws; neither samples nor mixes use it */

/* Draw the random numbers of a batch, as a function of its position alone, not of its samples. */
static void draw(const struct pstk__slot *slot, const struct pstk__plan *plan, uint32_t i,
                 uint32_t rank, uint64_t random[2])
{
    const struct pstk__random_key key = {.seed = plan->seed,
                                         .epoch = slot->batch.epoch,
                                         .sample_id = slot->batch.position,
                                         .data_set = BATCH_DRAWS,
                                         .occurrence = rank,
                                         .group = plan->outputs[i].settings.image.random_group};
    struct pstk__random stream;
    pstk__random_init(&stream, &key);
    random[0] = pstk__random_u64(&stream);
    random[1] = pstk__random_u64(&stream);
}

static int fail(const struct pstk__slot *slot, const struct pstk__output *o,
                const struct pstk_error *inner, struct pstk_error *err)
{
    const struct pstk_batch *batch = &slot->batch;
    if (inner->stage == PSTK_STAGE_OPEN) /* not an error of the batch */
        return pstk__fail_copy(err, inner);
    return pstk__fail(err, inner->code, PSTK_STAGE_DECODE,
                      "the function of output '%s' failed for the batch at epoch %llu, position "
                      "%llu, of %u samples (first %llu, last %llu): %.340s (a whole batch is not "
                      "replaced; seek to position %llu to go past it)",
                      o->name, (unsigned long long)batch->epoch,
                      (unsigned long long)batch->position, batch->n_valid,
                      (unsigned long long)slot->sample_ids[0],
                      (unsigned long long)slot->sample_ids[batch->n_valid - 1], inner->message,
                      (unsigned long long)batch->next_position);
}

/* Run the callback of output i, which makes its rows. */
static int run(struct pstk__slot *slot, const struct pstk__plan *plan, uint32_t i, uint32_t rank,
               struct pstk_error *err)
{
    const struct pstk__output *o = &plan->outputs[i];
    const uint32_t n = slot->batch.n_valid;
    struct pstk_error inner;
    struct pstk__process_request request = {.head = {.output = i,
                                                     .dtype = o->callback.input.dtype,
                                                     .n_dims = 1 + o->callback.input.n_dims,
                                                     .shape = {n},
                                                     .sample_id = slot->sample_ids[0],
                                                     .epoch = slot->batch.epoch,
                                                     .position = slot->batch.position,
                                                     .row_size = n * slot->outputs[i].row_size,
                                                     .data_size = n * o->callback.input.size},
                                            .data = slot->outputs[i].inputs,
                                            .rows = slot->tensors[i].data,
                                            .timeout_ns = o->settings.callback.timeout_ns,
                                            .is_batch = 1};
    memcpy(request.head.shape + 1, o->callback.input.shape,
           o->callback.input.n_dims * sizeof *o->callback.input.shape);
    draw(slot, plan, i, rank, request.head.random);
    pstk_error_init(&inner, sizeof inner);
    return pstk__process_pool_ask(o->callback.pool, &request, &inner) < 0
               ? fail(slot, o, &inner, err)
               : 0;
}

/* Called by the last worker of the slot's countdown; no other thread uses the slot by then. This
 * worker waits here for processes, which wait for nobody; other workers fill later slots. */
void pstk__slot_run_callbacks(struct pstk__slot *slot, const struct pstk__plan *plan, uint32_t rank)
{
    struct pstk_error err;
    if (slot->batch.n_valid == 0)
        return;
    for (uint32_t i = 0; i < plan->n_outputs && slot->failed_row == UINT32_MAX; i++) {
        pstk_error_init(&err, sizeof err);
        if (!slot->outputs[i].inputs || run(slot, plan, i, rank, &err) == 0)
            continue;
        err.epoch = slot->batch.epoch;
        err.position = slot->batch.position;
        pstk__slot_fail(slot, slot->batch.n_rows, &err);
    }
}
