/* SPDX-License-Identifier: Apache-2.0 */
#include "order/mixture.h"

#include "base/random.h"

#include <string.h>

#define EXACT 1e-8 /* slots; counts this near to a whole number are whole, up to rounding */

int pstk__mixture_weights_ok(const double *weights, uint32_t n, uint32_t *wrong)
{
    double sum = 0;
    for (*wrong = 0; *wrong < n; ++*wrong) {
        const double weight = weights[*wrong];
        if (!(weight >= 0 && weight <= 1e300)) /* refuses NaN too */
            return 0;
        sum += weight;
    }
    if (!(sum > 0 && sum <= 1e300))
        return 0;
    for (*wrong = 0; *wrong < n; ++*wrong)
        if (weights[*wrong] > 0 && !(weights[*wrong] / sum * PSTK__PERIOD_MAX >= 1))
            return 0;
    return 1;
}

uint32_t pstk__mixture_max_phases(const struct pstk_mixture *mixture)
{
    const int leaves = mixture->exhaustion == PSTK_EXHAUSTION_DROP;
    return mixture->n_segments + (leaves ? mixture->n_data_sets : 0);
}

/* ---- counts ---------------------------------------------------------------------------------- */

/* Return 1 if every share is a whole number of slots of a period. */
static int fits(const double *shares, uint32_t n, uint32_t period)
{
    uint64_t sum = 0;
    for (uint32_t d = 0; d < n; d++) {
        const double wanted = shares[d] * period;
        const uint32_t count = (uint32_t)(wanted + 0.5);
        const double off = wanted - count;
        if (off > EXACT || off < -EXACT || (shares[d] > 0 && count == 0))
            return 0;
        sum += count;
    }
    return sum == period;
}

/* Round the shares of a period of PSTK__PERIOD_MAX slots: down, but at least to 1; then those up
 * that lost most. */
static void round_counts(struct pstk__mixture_phase *phase, const double *shares, uint32_t n)
{
    uint32_t left = PSTK__PERIOD_MAX;
    uint8_t is_up[PSTK_MAX_DATA_SETS] = {0};
    for (uint32_t d = 0; d < n; d++) {
        phase->counts[d] = (uint32_t)(shares[d] * PSTK__PERIOD_MAX);
        phase->counts[d] += shares[d] > 0 && phase->counts[d] == 0;
        left -= phase->counts[d] < left ? phase->counts[d] : left;
    }
    for (; left > 0; left--) {
        uint32_t most = n;
        double cut = -1;
        for (uint32_t d = 0; d < n; d++) {
            const double off = shares[d] * PSTK__PERIOD_MAX - phase->counts[d];
            if (shares[d] > 0 && !is_up[d] && off > cut) {
                most = d;
                cut = off;
            }
        }
        phase->counts[most]++; /* fewer slots are left than data sets have a share, since each lost
                                  less than 1 */
        is_up[most] = 1;
    }
}

static void count_slots(struct pstk__mixture_phase *phase, const double *weights, uint32_t n)
{
    double shares[PSTK_MAX_DATA_SETS], sum = 0;
    for (uint32_t d = 0; d < n; d++)
        sum += weights[d];
    for (uint32_t d = 0; d < n; d++)
        shares[d] = weights[d] / sum;
    phase->period = 1;
    while (phase->period < PSTK__PERIOD_MAX && !fits(shares, n, phase->period))
        phase->period++;
    if (!fits(shares, n, phase->period)) {
        round_counts(phase, shares, n);
        return;
    }
    for (uint32_t d = 0; d < n; d++)
        phase->counts[d] = (uint32_t)(shares[d] * phase->period + 0.5);
}

/* ---- the period ------------------------------------------------------------------------------ */

/* The next sample of a data set in the period being filled. */
struct job {
    uint32_t j;        /* number of the sample in the period */
    uint32_t count;    /* samples of the data set in the period */
    uint32_t release;  /* first slot that it may take */
    uint32_t deadline; /* first slot that is too late */
};

static void next_job(struct job *job, uint32_t period)
{
    const uint64_t j = job->j;
    job->release = (uint32_t)(j * period / job->count);
    job->deadline = (uint32_t)(((j + 1) * period + job->count - 1) / job->count);
}

/* Fill the period, earliest deadline first; among equals, the first data set. */
static void fill_period(const struct pstk__mixture_phase *phase, uint32_t n, uint8_t *of,
                        uint16_t *rank)
{
    struct job jobs[PSTK_MAX_DATA_SETS];
    uint8_t owners[PSTK_MAX_DATA_SETS];
    uint32_t n_jobs = 0;
    for (uint32_t d = 0; d < n; d++)
        if (phase->counts[d] > 0) {
            jobs[n_jobs] = (struct job){.count = phase->counts[d]};
            next_job(&jobs[n_jobs], phase->period);
            owners[n_jobs++] = (uint8_t)d;
        }
    for (uint32_t t = 0; t < phase->period; t++) {
        uint32_t first = 0, deadline = UINT32_MAX;
        for (uint32_t i = 0; i < n_jobs; i++)
            if (jobs[i].release <= t && jobs[i].deadline < deadline && jobs[i].j < jobs[i].count) {
                first = i;
                deadline = jobs[i].deadline;
            }
        of[t] = owners[first];
        rank[t] = (uint16_t)jobs[first].j++;
        next_job(&jobs[first], phase->period);
    }
}

/* ---- phases ---------------------------------------------------------------------------------- */

/* Return the position at which a phase asks data set d for sample `number`; UINT64_MAX: never. */
static uint64_t position_of(const struct pstk__mixture_phase *phase, uint32_t d, uint64_t number)
{
    const uint64_t count = phase->counts[d], more = number - phase->before[d];
    if (count == 0)
        return UINT64_MAX;
    uint32_t t = 0;
    while (phase->of[t] != d || phase->rank[t] != more % count)
        t++;
    const unsigned __int128 at =
        (unsigned __int128)(more / count) * phase->period + t + phase->from;
    return at < UINT64_MAX ? (uint64_t)at : UINT64_MAX;
}

/* Return the first position at which a phase asks a data set for a sample that it does not have. */
static uint64_t end_of(const struct pstk__mixture *mixture, const struct pstk__mixture_phase *phase)
{
    uint64_t end = UINT64_MAX;
    for (uint32_t d = 0; d < mixture->n_data_sets; d++) {
        const uint64_t at = position_of(phase, d, mixture->sizes[d]);
        end = at < end ? at : end;
    }
    return end;
}

/* Set the counts before a phase, which begins where the phase before it ends. */
static void begin_after(struct pstk__mixture_phase *phase, const struct pstk__mixture_phase *last)
{
    const uint64_t n = phase->from - last->from;
    for (uint32_t d = 0; d < PSTK_MAX_DATA_SETS; d++)
        phase->before[d] = last->before[d] + n / last->period * last->counts[d];
    for (uint32_t t = 0; t < n % last->period; t++)
        phase->before[last->of[t]]++;
}

/* Add a phase with these weights, without exhausted data sets. Returns 0 if all are. */
static int add_phase(struct pstk__mixture *mixture, uint64_t from, const double *weights,
                     uint8_t *memory)
{
    struct pstk__mixture_phase *phase = &mixture->phases[mixture->n_phases];
    double own[PSTK_MAX_DATA_SETS], sum = 0;
    memset(phase, 0, sizeof *phase);
    phase->from = from;
    if (mixture->n_phases > 0)
        begin_after(phase, phase - 1);
    for (uint32_t d = 0; d < mixture->n_data_sets; d++) {
        const int has_left =
            mixture->exhaustion == PSTK_EXHAUSTION_DROP && phase->before[d] >= mixture->sizes[d];
        own[d] = has_left ? 0 : weights[d];
        sum += own[d];
    }
    if (!(sum > 0))
        return 0;
    memory += mixture->n_phases * PSTK__PHASE_MEMORY;
    uint16_t *rank = (uint16_t *)(void *)memory;
    uint8_t *of = memory + PSTK__PERIOD_MAX * sizeof *rank;
    phase->rank = rank;
    phase->of = of;
    count_slots(phase, own, mixture->n_data_sets);
    fill_period(phase, mixture->n_data_sets, of, rank);
    mixture->n_phases++;
    return 1;
}

/* Make all phases. Returns the position at which an epoch ends. */
static uint64_t add_phases(struct pstk__mixture *mixture, const struct pstk_mixture *s,
                           void *memory)
{
    uint64_t from = 0;
    for (uint32_t i = 0; i < s->n_segments;) {
        const uint64_t next = i + 1 < s->n_segments ? s->segments[i + 1].begin : UINT64_MAX;
        mixture->n_begun = i + 1;
        if (!add_phase(mixture, from, s->segments[i].weights, memory))
            return from;
        const struct pstk__mixture_phase *phase = &mixture->phases[mixture->n_phases - 1];
        const uint64_t end =
            s->exhaustion == PSTK_EXHAUSTION_REPEAT ? UINT64_MAX : end_of(mixture, phase);
        if (end < next && s->exhaustion == PSTK_EXHAUSTION_STOP)
            return end;
        from = end < next ? end : next;
        i += end >= next;
    }
    return from;
}

void pstk__mixture_make(struct pstk__mixture *out, const struct pstk_mixture *settings,
                        const uint64_t *sizes, uint64_t seed, void *memory)
{
    uint64_t sum = 0;
    out->n_data_sets = settings->n_data_sets;
    out->exhaustion = settings->exhaustion;
    out->n_phases = 0;
    for (uint32_t d = 0; d < settings->n_data_sets; d++) {
        out->sizes[d] = sizes[d];
        pstk__mixture_narrow(out, d, sum, NULL, NULL);
        out->seeds[d] = d ? pstk__mix64(seed + d * 0x9e3779b97f4a7c15u) : seed;
        sum += sizes[d];
    }
    out->n = add_phases(out, settings, memory);
    if (settings->exhaustion == PSTK_EXHAUSTION_REPEAT)
        out->n = settings->samples_per_epoch ? settings->samples_per_epoch : sum;
}

void pstk__mixture_narrow(struct pstk__mixture *mixture, uint32_t d, uint64_t first,
                          const struct pstk__subset *subset, const struct pstk__alias *alias)
{
    mixture->first[d] = first;
    mixture->subsets[d] = subset;
    mixture->aliases[d] = alias;
}

void pstk__mixture_at(const struct pstk__mixture *mixture, uint64_t position,
                      struct pstk__mixture_sample *out)
{
    uint32_t low = 0, high = mixture->n_phases;
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        *(mixture->phases[middle].from <= position ? &low : &high) = middle;
    }
    const struct pstk__mixture_phase *phase = &mixture->phases[low];
    const uint64_t at = position - phase->from;
    const uint64_t q = at / phase->period, t = at % phase->period;
    out->data_set = phase->of[t];
    out->number = phase->before[out->data_set] + q * phase->counts[out->data_set] + phase->rank[t];
}
