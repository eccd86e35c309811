/* SPDX-License-Identifier: Apache-2.0 */
#include "sample/layout.h"

#define ALIGN 256u /* DLPack's; more than a cache line, the widest vector, a kernel's load */

/* a + b, or UINT64_MAX. */
static uint64_t sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* a * b, or UINT64_MAX. */
static uint64_t product(uint64_t a, uint64_t b)
{
    return b && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

static uint64_t aligned(uint64_t size)
{
    return size > UINT64_MAX - ALIGN ? UINT64_MAX : (size + ALIGN - 1) / ALIGN * ALIGN;
}

/* Every row of a batch can be bad: each has a report in small batches; in others the first ones
 * have, and one more gives the number of the rest. */
static uint32_t max_reports(uint32_t batch_size)
{
    return batch_size <= PSTK_MAX_REPORTS ? batch_size : PSTK_MAX_REPORTS + 1;
}

/* The next `n` elements of `size` bytes; returns where they begin. */
static uint64_t put(uint64_t *end, uint64_t n, uint64_t size)
{
    const uint64_t begin = *end;
    *end = sum(*end, aligned(product(n, size)));
    return begin;
}

static void lay_out_device(struct pstk__layout *l, const struct pstk__plan *plan)
{
    const uint64_t b = plan->batch_size;
    uint64_t end = pstk__layout_mirrored(l, l->dense_size);
    for (uint32_t i = 0; i < plan->n_outputs; i++) {
        const struct pstk__output *o = &plan->outputs[i];
        if (o->deferred)
            l->final[i] = put(&end, b, o->final_size);
        else if (pstk__output_is_ragged(o))
            l->final[i] = put(&end, o->budget, 1);
        else
            l->final[i] = pstk__layout_mirrored(l, l->rows[i]);
    }
    l->device_size = end;
}

uint64_t pstk__layout_device_memory(const struct pstk__layout *l, uint32_t n_slots)
{
    return sum(product(n_slots, l->device_size), product(PSTK__LOADS, l->arrival_size));
}

/* The dense rows that are deferred, or those that are not. */
static void put_dense(struct pstk__layout *l, const struct pstk__plan *plan, uint32_t deferred,
                      uint64_t *end)
{
    for (uint32_t i = 0; i < plan->n_outputs; i++) {
        const struct pstk__output *o = &plan->outputs[i];
        if (!pstk__output_is_ragged(o) && o->deferred == deferred)
            l->rows[i] = put(end, plan->batch_size, o->row_size);
    }
}

void pstk__layout_init(struct pstk__layout *l, const struct pstk__plan *plan, uint32_t with_crops,
                       uint32_t with_reports)
{
    const uint64_t b = plan->batch_size;
    const uint32_t n = plan->n_outputs;
    uint64_t end = 0;
    *l = (struct pstk__layout){0};
    put_dense(l, plan, 1, &end);
    for (uint32_t i = 0; i < n; i++)
        if (pstk__output_has_flips(&plan->outputs[i]))
            l->flips[i] = put(&end, b, 1);
    l->arrival_size = end;
    put_dense(l, plan, 0, &end);
    l->told = end;
    for (uint32_t i = 0; i < n; i++)
        if (pstk__output_is_ragged(&plan->outputs[i]))
            l->offsets[i] = put(&end, b + 1, sizeof(int64_t));
    l->dense_size = end;
    l->ids = put(&end, b, sizeof(uint64_t));
    l->substitutes = put(&end, b, sizeof(uint64_t));
    l->crops = put(&end, with_crops ? n * b : 0, sizeof(struct pstk_crop));
    l->max_reports = with_reports ? max_reports(plan->batch_size) : 0;
    l->reports = put(&end, l->max_reports, sizeof(struct pstk_report));
    l->told_end = end;
    /* Ragged rows are written a whole row_size apart, then moved together. */
    for (uint32_t i = 0; i < n; i++)
        if (pstk__output_is_ragged(&plan->outputs[i]))
            l->rows[i] = put(&end, b, plan->outputs[i].row_size);
    l->size = end;
    if (plan->on_device)
        lay_out_device(l, plan);
    if (l->device_size == UINT64_MAX)
        l->size = UINT64_MAX;
}
