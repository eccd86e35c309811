/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/timing.h"

#include "stats.h"

cudaError_t pstk__timing_open(struct pstk__timing *t)
{
    cudaError_t code = cudaSuccess;
    t->gap = 1; /* it was zeroed with its device */
    for (uint32_t i = 0; code == cudaSuccess && i < PSTK__TIMING_PAIRS; i++) {
        code = cudaEventCreateWithFlags(&t->pairs[i].arrived, cudaEventDefault);
        if (code == cudaSuccess)
            code = cudaEventCreateWithFlags(&t->pairs[i].released, cudaEventDefault);
    }
    return code;
}

void pstk__timing_close(struct pstk__timing *t)
{
    for (uint32_t i = 0; i < PSTK__TIMING_PAIRS; i++) {
        if (t->pairs[i].arrived)
            cudaEventDestroy(t->pairs[i].arrived);
        if (t->pairs[i].released)
            cudaEventDestroy(t->pairs[i].released);
    }
    t->n = 0;
}

static int elapsed(uint64_t *ns, cudaEvent_t from, cudaEvent_t to)
{
    float ms = 0;
    if (cudaEventElapsedTime(&ms, from, to) != cudaSuccess)
        return 0;
    *ns = ms > 0 ? (uint64_t)((double)ms * 1e6) : 0;
    return 1;
}

/* Read the leases that are over on the device, oldest first. */
static void collect(struct pstk__timing *t)
{
    while (t->n > 0) {
        struct pstk__timing_pair *p = &t->pairs[t->first];
        uint64_t used = 0, starved = 0;
        if (!p->is_released || cudaEventQuery(p->released) != cudaSuccess)
            return;
        if (elapsed(&used, p->arrived, p->released)) {
            pstk__count(&t->used_ns, used);
            if (!p->after_gap && elapsed(&starved, t->last, p->arrived))
                pstk__count(&t->starved_ns, starved);
        }
        t->last = p->released; /* its pair is the last to be used again: the ring is never full */
        t->first = (t->first + 1) % PSTK__TIMING_PAIRS;
        t->n--;
    }
}

void pstk__timing_arrive(struct pstk__timing *t, uint32_t slot, cudaStream_t stream)
{
    collect(t);
    struct pstk__timing_pair *p = &t->pairs[(t->first + t->n) % PSTK__TIMING_PAIRS];
    if (t->n == PSTK__TIMING_PAIRS - 1 || cudaEventRecord(p->arrived, stream) != cudaSuccess) {
        t->gap = 1;
        return;
    }
    p->slot = slot;
    p->is_released = 0;
    p->after_gap = t->gap;
    t->gap = 0;
    t->n++;
}

void pstk__timing_release(struct pstk__timing *t, uint32_t slot, cudaStream_t stream)
{
    for (uint32_t i = 0; i < t->n; i++) {
        struct pstk__timing_pair *p = &t->pairs[(t->first + i) % PSTK__TIMING_PAIRS];
        if (p->slot != slot || p->is_released)
            continue;
        p->is_released = cudaEventRecord(p->released, stream) == cudaSuccess;
        return;
    }
}
