/* SPDX-License-Identifier: Apache-2.0 */
#include "option/mixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "option/opening.h"
#include "ui/message.h"
#include "ui/status.h"
#include "ui/text.h"
#include "ui/unit.h"

/* Find the end of the first PATH=WEIGHT: an = with a number after it, and then a comma or the end.
 * Returns the =, or NULL. */
static const char *find_weight(const char *text, double *weight, const char **end)
{
    for (const char *at = strchr(text, '='); at; at = strchr(at + 1, '=')) {
        char *after;
        *weight = strtod(at + 1, &after);
        *end = after;
        if (after != at + 1 && (*after == ',' || !*after))
            return at;
    }
    return NULL;
}

int mixture_add(struct mixture *mixture, const char *text)
{
    const char *rest = text, *end;
    for (;;) {
        double weight;
        const char *equals = find_weight(rest, &weight, &end);
        if (!equals || equals == rest || !(weight > 0) || !isfinite(weight)) {
            message_say("--mixture: value is '%s'; must be PATH=WEIGHT,PATH=WEIGHT..., weights "
                        "above 0",
                        text);
            return -1;
        }
        if (mixture->n == PSTK_MAX_DATA_SETS) {
            message_say("--mixture: has more than %d data sets", PSTK_MAX_DATA_SETS);
            return -1;
        }
        mixture->paths[mixture->n] = strndup(rest, (size_t)(equals - rest));
        if (!mixture->paths[mixture->n])
            message_no_memory();
        mixture->weights[mixture->n++] = weight;
        if (!*end)
            return 0;
        rest = end + 1;
    }
}

static int is_alike(const struct pstk_field *a, const struct pstk_field *b)
{
    return strcmp(a->name, b->name) == 0 && a->kind == b->kind && a->dtype == b->dtype &&
           a->n_dims == b->n_dims && memcmp(a->shape, b->shape, sizeof a->shape) == 0 &&
           strcmp(a->of, b->of) == 0 && strcmp(a->rows, b->rows) == 0 &&
           strcmp(a->splits, b->splits) == 0 && a->box_format == b->box_format &&
           a->coordinates == b->coordinates;
}

/* Keep only the fields that this data set has, too. */
static int keep_alike(struct pstk_dataset *dataset, uint32_t n_other,
                      struct pstk_field fields[PSTK_MAX_FIELDS], uint32_t *n)
{
    uint32_t n_kept = 0;
    for (uint32_t i = 0; i < *n; i++) {
        int has = 0;
        for (uint32_t k = 0; !has && k < n_other; k++) {
            struct pstk_field other;
            const int r = pstk_dataset_get_field(dataset, k, &other, NULL);
            if (r < 0)
                return r;
            has = is_alike(&fields[i], &other);
        }
        if (has)
            fields[n_kept++] = fields[i];
    }
    *n = n_kept;
    return 0;
}

/* Add the numbers of a data set to those of the earlier ones. */
static int add_info(struct pstk_dataset *dataset, int is_first, struct pstk_dataset_info *info,
                    struct pstk_field fields[PSTK_MAX_FIELDS])
{
    struct pstk_dataset_info one = {.size = sizeof one};
    int r = pstk_dataset_get_info(dataset, &one);
    if (r == 0 && one.n_fields > PSTK_MAX_FIELDS)
        r = PSTK_ENOTSUP;
    if (r < 0 || !is_first) {
        info->n_samples += one.n_samples;
        info->n_shards += one.n_shards;
        info->bytes += one.bytes;
        info->n_left_out += one.n_left_out;
        if (!info->left_out[0])
            memcpy(info->left_out, one.left_out, sizeof info->left_out);
        return r < 0 ? r : keep_alike(dataset, one.n_fields, fields, &info->n_fields);
    }
    *info = one;
    for (uint32_t i = 0; r == 0 && i < one.n_fields; i++)
        r = pstk_dataset_get_field(dataset, i, &fields[i], NULL);
    return r;
}

int mixture_look(struct mixture *mixture, struct pstk_dataset_info *info,
                 struct pstk_field fields[PSTK_MAX_FIELDS], const struct fields *read_as)
{
    snprintf(mixture->name, sizeof mixture->name, "the mixture of %u data set%s", mixture->n,
             mixture->n == 1 ? "" : "s");
    for (uint32_t i = 0; i < mixture->n; i++) {
        struct pstk_dataset *dataset;
        struct pstk_error err;
        pstk_error_init(&err, sizeof err);
        if (opening_dataset_as(&dataset, mixture->paths[i], read_as, &err) < 0)
            return status_refuse(&err, mixture->paths[i]);
        const int r = add_info(dataset, i == 0, info, fields);
        pstk_dataset_close(&dataset);
        if (r < 0) {
            message_say("%s: %s", mixture->paths[i], pstk_strerror(r));
            return status_of_code(r);
        }
    }
    if (info->n_fields == 0)
        return message_usage("--mixture: no field is the same in all data sets");
    return 0;
}

const struct pstk_mixture *mixture_settings(struct mixture *mixture)
{
    mixture->segment = (struct pstk_mixture_segment){.weights = mixture->weights};
    pstk_mixture_init(&mixture->settings, sizeof mixture->settings);
    mixture->settings.n_data_sets = mixture->n;
    mixture->settings.paths = (const char *const *)mixture->paths;
    mixture->settings.segments = &mixture->segment;
    mixture->settings.n_segments = 1;
    mixture->settings.exhaustion = PSTK_EXHAUSTION_REPEAT;
    return &mixture->settings;
}

void mixture_count(struct mixture *mixture, const struct pstk_loader *loader)
{
    for (uint32_t i = 0; i < mixture->n; i++) {
        struct pstk_mixture_stats stats = {.size = sizeof stats};
        if (pstk_mixture_get_stats(loader, i, &stats) == 0)
            mixture->n_delivered[i] = stats.n_delivered;
    }
}

void mixture_print(const struct mixture *mixture)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < mixture->n; i++)
        sum += mixture->n_delivered[i];
    for (uint32_t i = 0; i < mixture->n; i++) {
        char n[UNIT_SIZE];
        printf("  %s samples, %.2f %%, of ", unit_count(n, mixture->n_delivered[i]),
               sum ? 100 * (double)mixture->n_delivered[i] / (double)sum : 0);
        text_print(stdout, mixture->paths[i]);
        putchar('\n');
    }
}

void mixture_put(const struct mixture *mixture, struct json_t *object)
{
    struct json_t *data_sets = json_make_array();
    for (uint32_t i = 0; i < mixture->n; i++) {
        struct json_t *one = json_make_object();
        json_put_text(one, "path", mixture->paths[i]);
        json_put_real(one, "weight", mixture->weights[i]);
        json_put_count(one, "samples", mixture->n_delivered[i]);
        json_append(data_sets, one);
    }
    json_put(object, "data_sets", data_sets);
}

void mixture_close(struct mixture *mixture)
{
    for (uint32_t i = 0; i < mixture->n; i++)
        free(mixture->paths[i]);
    mixture->n = 0;
}
