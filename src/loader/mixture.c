/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/mixture.h"

#include "base/error.h"
#include "dataset/dataset.h"
#include "dataset/members.h"
#include "format/joined.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAIL(code, fmt, ...) pstk__fail(err, code, PSTK_STAGE_OPEN, fmt, ##__VA_ARGS__)
#define U64(x) ((unsigned long long)(x))

/* ---- settings -------------------------------------------------------------------------------- */

static int check_weights(const struct pstk_mixture *mixture, uint32_t i, struct pstk_error *err)
{
    const struct pstk_mixture_segment *segment = &mixture->segments[i];
    const uint32_t n = mixture->n_data_sets;
    uint32_t wrong;
    if (!segment->weights)
        return FAIL(PSTK_EINVAL,
                    "mixture.segments[%u].weights: value is NULL; must be an array of "
                    "n_data_sets numbers",
                    i);
    if (pstk__mixture_weights_ok(segment->weights, n, &wrong))
        return 0;
    if (wrong == n)
        return FAIL(PSTK_EINVAL,
                    "mixture.segments[%u].weights: the sum is not a number above 0; must be (give "
                    "a data set a weight above 0, and all of them at most 1e300 together)",
                    i);
    if (segment->weights[wrong] > 0 && segment->weights[wrong] <= 1e300)
        return FAIL(PSTK_EINVAL,
                    "mixture.segments[%u].weights: value is %g for data set %s, less than 1/65536 "
                    "of their sum; must be 0 or at least that (raise it, or leave the data set "
                    "out)",
                    i, segment->weights[wrong], mixture->paths[wrong]);
    return FAIL(PSTK_EINVAL,
                "mixture.segments[%u].weights: value is %g for data set %s; must be a number, 0 or "
                "more (give each data set its share, in any unit)",
                i, segment->weights[wrong], mixture->paths[wrong]);
}

static int check_segments(const struct pstk_mixture *mixture, struct pstk_error *err)
{
    for (uint32_t i = 0; i < mixture->n_segments; i++) {
        const uint64_t begin = mixture->segments[i].begin;
        if (i == 0 && begin != 0)
            return FAIL(PSTK_EINVAL,
                        "mixture.segments[0].begin: value is %llu; must be 0 (the "
                        "first weights hold from the start)",
                        U64(begin));
        if (i > 0 && begin <= mixture->segments[i - 1].begin)
            return FAIL(PSTK_EINVAL,
                        "mixture.segments[%u].begin: value is %llu; must be above that of the "
                        "segment before it, %llu (sort the segments)",
                        i, U64(begin), U64(mixture->segments[i - 1].begin));
        const int r = check_weights(mixture, i, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Check that each data set has a weight in some segment: else it would be opened for nothing. */
static int check_used(const struct pstk_mixture *mixture, struct pstk_error *err)
{
    for (uint32_t d = 0; d < mixture->n_data_sets; d++) {
        int is_used = 0;
        for (uint32_t i = 0; i < mixture->n_segments; i++)
            is_used |= mixture->segments[i].weights[d] > 0;
        if (!is_used)
            return FAIL(PSTK_EINVAL,
                        "mixture: data set %s has the weight 0 in all segments; must "
                        "be above 0 in one (or leave the data set out)",
                        mixture->paths[d]);
    }
    return 0;
}

/* Check that the struct is initialised, and of a version that this library knows. */
static int check_struct(const struct pstk_mixture *mixture, struct pstk_error *err)
{
    if (mixture->size < offsetof(struct pstk_mixture, subsets))
        return FAIL(PSTK_EINVAL, "mixture: not initialised, call pstk_mixture_init first");
    for (uint32_t i = sizeof *mixture; i < mixture->size; i++)
        if (((const uint8_t *)mixture)[i] != 0)
            return FAIL(PSTK_ENOTSUP,
                        "mixture: a setting of a newer penstock is set, which "
                        "version %s does not know",
                        pstk_version());
    return 0;
}

int pstk__mixture_check(const struct pstk_settings *settings, struct pstk_error *err)
{
    const struct pstk_mixture *mixture = settings->mixture;
    int r = check_struct(mixture, err);
    if (r < 0)
        return r;
    if (settings->path)
        return FAIL(PSTK_EINVAL,
                    "path: value is %s; must be NULL with mixture, which has the "
                    "paths",
                    settings->path);
    if (settings->subset)
        return FAIL(PSTK_EINVAL, "subset: not supported with mixture; must be NULL (set "
                                 "mixture.subsets, a subset for each data set)");
    if (settings->order.kind == PSTK_ORDER_WINDOWED)
        return FAIL(PSTK_ENOTSUP, "order: value is windowed; must be full or sequential with "
                                  "mixture, which this version does not read by blocks");
    if (mixture->n_data_sets < 1 || mixture->n_data_sets > PSTK_MAX_DATA_SETS)
        return pstk__fail_setting(err, "mixture.n_data_sets", mixture->n_data_sets, "from 1 to %d",
                                  PSTK_MAX_DATA_SETS);
    if (mixture->n_segments < 1 || mixture->n_segments > PSTK_MAX_SEGMENTS)
        return pstk__fail_setting(err, "mixture.n_segments", mixture->n_segments, "from 1 to %d",
                                  PSTK_MAX_SEGMENTS);
    if (mixture->exhaustion > PSTK_EXHAUSTION_DROP)
        return pstk__fail_setting(err, "mixture.exhaustion", mixture->exhaustion, "from 0 to %d",
                                  PSTK_EXHAUSTION_DROP);
    if (mixture->samples_per_epoch && mixture->exhaustion != PSTK_EXHAUSTION_REPEAT)
        return pstk__fail_setting(err, "mixture.samples_per_epoch", mixture->samples_per_epoch,
                                  "0 unless exhaustion is PSTK_EXHAUSTION_REPEAT: the data sets "
                                  "end the epoch");
    if (mixture->samples_per_epoch > (uint64_t)1 << 40)
        return pstk__fail_setting(err, "mixture.samples_per_epoch", mixture->samples_per_epoch,
                                  "at most 2^40");
    if (!mixture->paths || !mixture->segments)
        return FAIL(PSTK_EINVAL, "mixture.%s: value is NULL; must be an array",
                    mixture->paths ? "segments" : "paths");
    for (uint32_t d = 0; d < mixture->n_data_sets; d++)
        if (!mixture->paths[d] || !mixture->paths[d][0])
            return FAIL(PSTK_EINVAL,
                        "mixture.paths[%u]: value is %s; must be the path of a data "
                        "set",
                        d, mixture->paths[d] ? "empty" : "NULL");
    r = check_segments(mixture, err);
    return r < 0 ? r : check_used(mixture, err);
}

/* ---- open ------------------------------------------------------------------------------------ */

/* Open all data sets and join them. */
static int open_joined(struct pstk__source **out, const struct pstk_settings *s,
                       struct pstk_error *err)
{
    const struct pstk_mixture *mixture = s->mixture;
    struct pstk__source *sources[PSTK_MAX_DATA_SETS];
    for (uint32_t d = 0; d < mixture->n_data_sets; d++) {
        const int r = pstk__source_open(&sources[d], mixture->paths[d], s->foreign, err);
        if (r < 0) {
            while (d-- > 0)
                pstk__source_close(sources[d]);
            return r;
        }
    }
    return pstk__joined_open(out, sources, mixture->n_data_sets, err);
}

/* Check that all data sets have the outputs' fields; the plan checks the rest of the outputs. */
static int check_fields(const struct pstk_settings *s, const struct pstk__source *joined,
                        struct pstk_error *err)
{
    for (uint32_t i = 0; i < s->n_outputs; i++) {
        const struct pstk_output *output =
            (const void *)((const uint8_t *)s->outputs + (uint64_t)i * s->output_size);
        const int r = output->field ? pstk__joined_check_field(joined, output->field, err) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

/* Return the subset of a data set; NULL: all its samples, as for programs of an older version. */
static const struct pstk_subset *subset_of(const struct pstk_mixture *mixture, uint32_t d)
{
    const uint32_t end = offsetof(struct pstk_mixture, subsets) + sizeof mixture->subsets;
    return mixture->size >= end && mixture->subsets ? mixture->subsets[d] : NULL;
}

/* Put a data set before the message of an error. */
static void name_data_set(const char *path, struct pstk_error *err)
{
    char message[sizeof err->message];
    memcpy(message, err->message, sizeof message);
    message[sizeof message - 1] = 0;
    const int n = snprintf(err->message, sizeof err->message, "data set %.200s: ", path);
    if (n > 0 && (size_t)n < sizeof err->message)
        snprintf(err->message + n, sizeof err->message - (size_t)n, "%s", message);
}

/* Find the samples of the subset of a data set. Opens the data set once more, by itself. */
static int open_members(struct pstk_members **out, const struct pstk_settings *s, uint32_t d,
                        struct pstk_error *err)
{
    struct pstk_dataset *dataset;
    int r = pstk_dataset_open(&dataset, s->mixture->paths[d], s->foreign, err);
    if (r < 0)
        return r;
    r = pstk_members_open(out, dataset, subset_of(s->mixture, d), err);
    pstk_dataset_close(&dataset);
    if (r == 0 && pstk__members_alias(*out) && s->order.kind != PSTK_ORDER_FULL)
        r = FAIL(PSTK_EINVAL, "order: value is sequential; must be full with weights in "
                              "mixture.subsets, which draw samples at random");
    return r;
}

/* Make the mixture, in one allocation with its patterns. */
static int make(struct pstk__mixture **out, const struct pstk_settings *s,
                const struct pstk__source *joined, struct pstk_members *const *members_of,
                struct pstk_error *err)
{
    const struct pstk_mixture *mixture = s->mixture;
    uint64_t sizes[PSTK_MAX_DATA_SETS];
    for (uint32_t d = 0; d < mixture->n_data_sets; d++) {
        sizes[d] = members_of[d] ? pstk_members_n_draws(members_of[d])
                                 : pstk__joined_part(joined, d)->n_samples;
        if (sizes[d] > (uint64_t)1
                           << 40) /* as in samples_per_epoch: positions of the run fit 64 bits */
            return FAIL(
                PSTK_EINVAL,
                "mixture.subsets[%u]: value draws %llu samples; must be at most 2^40 (lower "
                "n_draws)",
                d, U64(sizes[d]));
    }
    struct pstk__mixture *made =
        malloc(sizeof *made + pstk__mixture_max_phases(mixture) * PSTK__PHASE_MEMORY);
    if (!made)
        return FAIL(PSTK_ENOMEM, "no memory for the order of a mixture");
    *out = made;
    pstk__mixture_make(made, mixture, sizes, s->seed, made + 1);
    for (uint64_t d = 0, first = 0; d < mixture->n_data_sets; d++) {
        if (members_of[d])
            pstk__mixture_narrow(made, (uint32_t)d, first, pstk__members_subset(members_of[d]),
                                 pstk__members_alias(members_of[d]));
        else
            pstk__mixture_narrow(made, (uint32_t)d, first, NULL, NULL);
        first += pstk__joined_part(joined, (uint32_t)d)->n_samples;
    }
    if (made->n_begun < mixture->n_segments)
        return FAIL(PSTK_EINVAL,
                    "mixture.segments[%u].begin: value is %llu; must be below %llu, where an epoch "
                    "ends because a data set has no more samples (lower it, or repeat the data "
                    "sets)",
                    made->n_begun, U64(mixture->segments[made->n_begun].begin), U64(made->n));
    return 0;
}

int pstk__mixture_open(struct pstk_dataset **out, const struct pstk_settings *s,
                       struct pstk_error *err)
{
    struct pstk__source *joined;
    int r = open_joined(&joined, s, err);
    if (r == 0)
        r = pstk__dataset_of(out, joined, err);
    return r == 0 ? check_fields(s, joined, err) : r;
}

int pstk__mixture_make_order(struct pstk__mixture **out,
                             struct pstk_members *members_of[PSTK_MAX_DATA_SETS],
                             const struct pstk_settings *s, const struct pstk__source *joined,
                             struct pstk_error *err)
{
    for (uint32_t d = 0; d < s->mixture->n_data_sets; d++) {
        const int r = subset_of(s->mixture, d) ? open_members(&members_of[d], s, d, err) : 0;
        if (r < 0) {
            name_data_set(pstk__joined_part(joined, d)->path, err);
            return r;
        }
    }
    return make(out, s, joined, members_of, err);
}

void pstk__mixture_name(const struct pstk__mixture *mixture, const struct pstk__source *joined,
                        const struct pstk__pick *pick, struct pstk_error *err)
{
    if (mixture)
        name_data_set(pstk__joined_part(joined, pick->data_set)->path, err);
}
