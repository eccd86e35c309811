/* SPDX-License-Identifier: Apache-2.0 */
#include "sample/layout.h"

#include "sample/multi_size.h"

#define ALIGN                                                                                      \
    256u /* DLPack's alignment; at least a cache line, the widest vector, a kernel's load */

/* Return a + b, at most UINT64_MAX. */
static uint64_t sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Return a * b, at most UINT64_MAX. */
static uint64_t product(uint64_t a, uint64_t b)
{
    return b && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

static uint64_t aligned(uint64_t size)
{
    return size > UINT64_MAX - ALIGN ? UINT64_MAX : (size + ALIGN - 1) / ALIGN * ALIGN;
}

/* Return the max reports of a batch, whose rows can all be bad. In small batches each row has a
 * report. In others the first bad rows have one, and one more counts the rest. */
static uint32_t max_reports(uint32_t batch_size)
{
    return batch_size <= PSTK_MAX_REPORTS ? batch_size : PSTK_MAX_REPORTS + 1;
}

/* Put the next `n` elements of `size` bytes. Returns their offset. */
static uint64_t put(uint64_t *end, uint64_t n, uint64_t size)
{
    const uint64_t begin = *end;
    *end = sum(*end, aligned(product(n, size)));
    return begin;
}

static void lay_out_device(struct pstk__layout *layout, const struct pstk__plan *plan)
{
    const uint64_t b = plan->batch_size;
    uint64_t end = pstk__layout_mirrored(layout, layout->dense_size);
    for (uint32_t i = 0; i < plan->n_outputs; i++) {
        const struct pstk__output *o = &plan->outputs[i];
        if (pstk__output_device_pass(o))
            layout->final[i] = put(&end, b, pstk__multi_size_final_size(plan, i));
        else if (pstk__output_is_ragged(o))
            layout->final[i] = put(&end, o->budget, 1);
        else
            layout->final[i] = pstk__layout_mirrored(layout, layout->rows[i]);
    }
    layout->device_size = end;
}

uint64_t pstk__layout_device_memory(const struct pstk__layout *layout, uint32_t n_slots)
{
    return sum(product(n_slots, layout->device_size), product(PSTK__LOADS, layout->arrival_size));
}

/* Put the dense rows that are deferred, or those that are not. */
static void put_dense(struct pstk__layout *layout, const struct pstk__plan *plan, uint64_t b,
                      int deferred, uint64_t *end)
{
    for (uint32_t i = 0; i < plan->n_outputs; i++) {
        const struct pstk__output *o = &plan->outputs[i];
        if (!pstk__output_is_ragged(o) && !pstk__output_device_pass(o) == !deferred)
            layout->rows[i] = put(end, b, pstk__multi_size_row_size(plan, i));
    }
}

/* Return the largest size in bytes of a row that a mosaic combines. */
static uint64_t written_size(const struct pstk__plan *plan, uint32_t i)
{
    return pstk__output_is_ragged(&plan->outputs[i]) ? pstk__output_written_size(&plan->outputs[i])
                                                     : pstk__multi_size_row_size(plan, i);
}

/* Lay out the host's arrays, of b rows. */
static void lay_out_host(struct pstk__layout *layout, const struct pstk__plan *plan, uint32_t b,
                         uint32_t report_crops, uint32_t with_reports)
{
    const uint32_t n = plan->n_outputs;
    uint64_t end = 0;
    *layout = (struct pstk__layout){0};
    put_dense(layout, plan, b, 1, &end);
    for (uint32_t i = 0; i < n; i++)
        if (pstk__output_has_flips(&plan->outputs[i]))
            layout->flips[i] = put(&end, b, 1);
    layout->arrival_size = end;
    put_dense(layout, plan, b, 0, &end);
    layout->about = end;
    for (uint32_t i = 0; i < n; i++)
        if (pstk__output_is_ragged(&plan->outputs[i]))
            layout->offsets[i] = put(&end, (uint64_t)b + 1, sizeof(int64_t));
    layout->dense_size = end;
    layout->ids = put(&end, b, sizeof(uint64_t));
    layout->replacements = put(&end, b, sizeof(uint64_t));
    layout->data_sets = put(&end, plan->n_joined ? b : 0, sizeof(uint32_t));
    layout->crops = put(&end, report_crops ? (uint64_t)n * b : 0, sizeof(struct pstk_crop));
    layout->max_reports = with_reports ? max_reports(b) : 0;
    layout->reports = put(&end, layout->max_reports, sizeof(struct pstk_report));
    layout->about_end = end;
    layout->mixed = put(&end, pstk__plan_mixes(plan) ? b : 0, sizeof(struct pstk_mixed_row));
    layout->labels = put(&end, pstk__plan_has_targets(plan) ? b : 0, sizeof(uint32_t));
    layout->mosaics =
        put(&end, pstk__plan_has_mosaic(plan) ? b : 0, sizeof(struct pstk_mosaic_row));
    layout->places = put(&end, plan->has_budget ? b : 0, sizeof(uint64_t));
    for (uint32_t i = 0; i < n; i++)
        layout->inputs[i] = put(&end, b, plan->outputs[i].callback.input.size);
    /* Ragged rows are written row_size apart, then moved together. */
    for (uint32_t i = 0; i < n; i++)
        if (pstk__output_is_ragged(&plan->outputs[i]))
            layout->rows[i] = put(&end, b, pstk__output_rows(&plan->outputs[i])->row_size);
    for (uint32_t i = 0; i < n; i++)
        layout->written[i] =
            plan->outputs[i].is_combined ? put(&end, b, written_size(plan, i)) : layout->rows[i];
    layout->size = end;
}

void pstk__layout_init(struct pstk__layout *layout, const struct pstk__plan *plan,
                       uint32_t report_crops, uint32_t with_reports)
{
    lay_out_host(layout, plan, plan->batch_size, report_crops, with_reports);
    if (plan->on_device)
        lay_out_device(layout, plan);
    if (layout->device_size == UINT64_MAX)
        layout->size = UINT64_MAX;
}

void pstk__layout_init_min(struct pstk__layout *layout, const struct pstk__plan *plan,
                           uint32_t report_crops, uint32_t with_reports)
{
    lay_out_host(layout, plan, 1, report_crops, with_reports);
}
