/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds take turns on the same samples, and this thread's CPU time counts. On a busy machine,
 * runs of 50 ms of one kind after the other differed by half, and the time of one sample depends on
 * the sample. In turns, other work affects all kinds alike, and their ratio stays.
 */
#include "probe/kernels.h"

#include "base/clock.h"
#include "base/kernels.h"
#include "dataset/dataset.h"
#include "order/order.h"
#include "sample/sample.h"

#include <stdlib.h>
#include <time.h>

#define N_KINDS (PSTK_KERNELS_NEON + 1)
#define MIN_SAMPLES 8u /* fewer give no result */
#define MAX_TIME 3 /* times `seconds`: a busy machine gives the thread less CPU time than that */

struct kind {
    struct pstk__plan *plan;       /* owned; NULL: this CPU lacks it */
    struct pstk__sampler *sampler; /* owned */
    double ns;                     /* sum over all samples so far */
};

struct probe {
    struct pstk_dataset *dataset; /* borrowed */
    struct pstk__order order;     /* order of the samples */
    struct kind kinds[N_KINDS];
    void *rows[PSTK__MAX_OUTPUTS]; /* owned */
    uint8_t flips[PSTK__MAX_OUTPUTS];
    uint32_t label;
    struct pstk__room record; /* owned */
};

static double cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Return whether the library alone makes the rows. */
static int is_own_work(const struct pstk_settings *s, const struct pstk__plan *plan)
{
    for (uint32_t i = 0; i < s->n_outputs; i++) {
        const struct pstk_output *o =
            (const void *)((const char *)s->outputs + (size_t)i * s->output_size);
        for (uint32_t k = 0; k < o->image.n_ops; k++)
            if (plan->outputs[i].image.ops[k].kind == PSTK_OP_CALL)
                return 0;
        if (o->kind == PSTK_OUTPUT_CALLBACK || plan->outputs[i].callback.pool)
            return 0;
    }
    return plan->n_outputs == s->n_outputs;
}

/* Open the kinds that this CPU has. Returns how many there are. */
static uint32_t open_kinds(struct probe *probe, const struct pstk_settings *settings)
{
    struct pstk_settings s = *settings;
    const struct pstk__source *source = pstk__dataset_source(probe->dataset);
    uint32_t n = 0;
    for (uint32_t k = PSTK_KERNELS_C; k < N_KINDS; k++) {
        struct kind *kind = &probe->kinds[k];
        if (!pstk__kernels_run(k))
            continue;
        s.reading.kernels = k;
        if (pstk__plan_open(&kind->plan, &s, source, NULL) < 0 || !is_own_work(&s, kind->plan) ||
            pstk__sampler_open(&kind->sampler, kind->plan, NULL) < 0)
            return 0;
        n++;
    }
    return n;
}

/* Allocate a record, and a row for each output. */
static int open_memory(struct probe *probe)
{
    const struct pstk__plan *plan = probe->kinds[PSTK_KERNELS_C].plan;
    probe->record.size = pstk__dataset_source(probe->dataset)->limits.max_size;
    probe->record.data = malloc(probe->record.size + 1);
    int is_there = probe->record.data != NULL;
    for (uint32_t i = 0; is_there && i < plan->n_outputs; i++) {
        probe->rows[i] = calloc(1, pstk__output_written_size(&plan->outputs[i]) + 1);
        is_there = probe->rows[i] != NULL;
    }
    return is_there;
}

static void probe_close(struct probe *probe)
{
    for (uint32_t k = 0; k < N_KINDS; k++) {
        pstk__sampler_close(probe->kinds[k].sampler);
        pstk__plan_close(probe->kinds[k].plan);
    }
    for (uint32_t i = 0; i < PSTK__MAX_OUTPUTS; i++)
        free(probe->rows[i]);
    free(probe->record.data);
    free(probe);
}

/* Make the rows of a sample by one kind. Returns the time in ns, or a number below 0: the sample is
 * bad. */
static double make_rows(struct probe *probe, struct kind *kind, const struct pstk__record *record,
                        uint32_t shard, const struct pstk__sample_key *key)
{
    struct pstk__row rows[PSTK__MAX_OUTPUTS];
    for (uint32_t i = 0; i < kind->plan->n_outputs; i++)
        rows[i] = (struct pstk__row){
            .data = probe->rows[i], .flip = &probe->flips[i], .label = &probe->label};
    const double begin = cpu_ns();
    if (pstk__sample_write(kind->sampler, record, shard, key, rows, NULL) < 0)
        return -1;
    return cpu_ns() - begin;
}

/* Make the rows of sample number `turn` by each kind; the first kind changes with the turn. Returns
 * 1, or 0: the sample is bad, and is not counted. */
static int take_turn(struct probe *probe, uint64_t turn)
{
    const struct pstk__source *source = pstk__dataset_source(probe->dataset);
    const struct pstk__sample_key key = {
        .sample_id = pstk__order_at(&probe->order, turn % source->n_samples),
        .epoch = turn / source->n_samples,
        .position = turn % source->n_samples};
    struct pstk__record record;
    uint32_t shard;
    double ns[N_KINDS] = {0};
    if (pstk__dataset_read(probe->dataset, key.sample_id, PSTK__ALL_FIELDS, &probe->record, &record,
                           &shard, NULL) < 0)
        return 0;
    for (uint32_t i = 0; i < N_KINDS; i++) {
        const uint32_t k = (uint32_t)((turn + i) % N_KINDS);
        if (!probe->kinds[k].sampler)
            continue;
        ns[k] = make_rows(probe, &probe->kinds[k], &record, shard, &key);
        if (ns[k] < 0)
            return 0;
    }
    for (uint32_t k = 0; k < N_KINDS; k++)
        probe->kinds[k].ns += ns[k];
    return 1;
}

/* Take turns for `ns` of this thread's time, and discard the first quarter, which faults in the
 * pages of the scratch memory. Returns the samples counted. */
static uint64_t take_turns(struct probe *probe, double ns)
{
    const double begin = cpu_ns();
    const uint64_t until = pstk__clock_ns() + (uint64_t)(MAX_TIME * ns);
    uint64_t n = 0;
    int is_warm = 0;
    for (uint64_t turn = 0; cpu_ns() < begin + ns && pstk__clock_ns() < until; turn++) {
        n += (uint64_t)take_turn(probe, turn);
        if (is_warm || cpu_ns() < begin + ns / 4)
            continue;
        is_warm = 1;
        n = 0;
        for (uint32_t k = 0; k < N_KINDS; k++)
            probe->kinds[k].ns = 0;
    }
    return n;
}

void pstk__measure_kernels(const struct pstk_settings *s, struct pstk_dataset *dataset,
                           double seconds, double ns[PSTK_KERNELS_NEON + 1])
{
    uint64_t n = 0;
    struct probe *probe = calloc(1, sizeof *probe);
    if (!probe)
        return;
    probe->dataset = dataset;
    const uint64_t n_samples = pstk__dataset_source(dataset)->n_samples;
    pstk__order_init(&probe->order, &(struct pstk__order_shape){.interleave.n = n_samples}, 3, 0);
    if (n_samples && open_kinds(probe, s) && open_memory(probe))
        n = take_turns(probe, seconds * 1e9);
    for (uint32_t k = 0; n >= MIN_SAMPLES && k < N_KINDS; k++)
        ns[k] = probe->kinds[k].ns / (double)n;
    probe_close(probe);
}
