/* SPDX-License-Identifier: Apache-2.0 */
#include "report/forecast.h"

#include <penstock/penstock.h>

#include <stdio.h>
#include <string.h>

#include "names.h"
#include "option/option.h"
#include "ui/json.h"
#include "ui/unit.h"

static void add(struct forecast *forecast, const struct pstk_stats *stats, const char *what,
                const char *change, struct pstk_forecast_settings settings)
{
    struct pstk_forecast found = {.size = sizeof found};
    settings.size = sizeof settings;
    if (pstk_predict(stats, &settings, &found) < 0 || found.samples_per_second <= 0)
        return;
    struct forecast_case *one = &forecast->cases[forecast->n++];
    *one = (struct forecast_case){
        .what = what, .samples_per_second = found.samples_per_second, .limit = found.limit};
    snprintf(one->change, sizeof one->change, "%s", change);
    forecast->measured = found.measured;
}

struct forecast forecast_of(const struct pstk_stats *stats, uint32_t n_cores)
{
    const uint32_t n = stats->n_threads;
    struct forecast forecast = {.n = 0};
    char twice[16];
    snprintf(twice, sizeof twice, "+%u", n);
    add(&forecast, stats, "workers", "+1",
        (struct pstk_forecast_settings){.n_threads = n + 1, .n_cores = n_cores});
    if (n > 1)
        add(&forecast, stats, "workers", twice,
            (struct pstk_forecast_settings){.n_threads = 2 * n, .n_cores = n_cores});
    add(&forecast, stats, "storage", "x2",
        (struct pstk_forecast_settings){.storage_factor = 2, .n_cores = n_cores});
    add(&forecast, stats, "consumer", "none",
        (struct pstk_forecast_settings){.no_consumer = 1, .n_cores = n_cores});
    return forecast;
}

void forecast_kernels(struct forecast *forecast, const struct pstk_stats *stats, uint32_t n_cores,
                      uint32_t kernels, const double kernels_ns[5])
{
    uint32_t now = kernels;
    if (now == PSTK_KERNELS_AUTO) /* the best kernels of this CPU */
        for (uint32_t k = PSTK_KERNELS_C; k <= PSTK_KERNELS_NEON; k++)
            now = kernels_ns[k] > 0 ? k : now;
    for (uint32_t k = PSTK_KERNELS_C; k <= PSTK_KERNELS_NEON; k++)
        if (k != now && kernels_ns[k] > 0 && kernels_ns[now] > 0)
            add(forecast, stats, "kernels", option_choice_name(names_kernels, k),
                (struct pstk_forecast_settings){.worker_factor = kernels_ns[k] / kernels_ns[now],
                                                .n_cores = n_cores});
}

static void change_text(const struct forecast_case *one, char *text, size_t size)
{
    if (strcmp(one->what, "workers") == 0)
        snprintf(text, size, "%s worker%s more", one->change + 1,
                 strcmp(one->change, "+1") == 0 ? "" : "s");
    else if (strcmp(one->what, "storage") == 0)
        snprintf(text, size, "storage twice as fast");
    else if (strcmp(one->what, "kernels") == 0)
        snprintf(text, size, "--kernels %s", one->change);
    else
        snprintf(text, size, "a consumer that takes batches at once");
}

const char *forecast_text(const struct forecast *forecast, uint32_t i, char text[FORECAST_TEXT])
{
    const struct forecast_case *one = &forecast->cases[i];
    const char *limit = option_choice_name(names_bottleneck, one->limit);
    char change[FORECAST_TEXT / 2], n[UNIT_SIZE];
    change_text(one, change, sizeof change);
    const int is_faster = one->samples_per_second >= forecast->measured * FORECAST_NO_CHANGE;
    if (!is_faster && one->samples_per_second * FORECAST_NO_CHANGE > forecast->measured)
        snprintf(text, FORECAST_TEXT, "%-37s  no faster (limit: %s)", change, limit);
    else
        snprintf(text, FORECAST_TEXT, "%-37s  %s samples/s (limit: %s)", change,
                 unit_count(n, (uint64_t)(one->samples_per_second + 0.5)), limit);
    return text;
}

void forecast_put(const struct forecast *forecast, struct json_t *object)
{
    if (forecast->n == 0) {
        json_put_null(object, "forecast");
        return;
    }
    struct json_t *all = json_make_object(), *cases = json_make_array();
    for (uint32_t i = 0; i < forecast->n; i++) {
        const struct forecast_case *one = &forecast->cases[i];
        struct json_t *entry = json_make_object();
        json_put_text(entry, "what", one->what);
        json_put_text(entry, "change", one->change);
        json_put_real(entry, "samples_per_second", one->samples_per_second);
        json_put_text(entry, "limit", option_choice_name(names_bottleneck, one->limit));
        json_put_bool(entry, "is_prediction", 1);
        json_append(cases, entry);
    }
    json_put_real(all, "measured", forecast->measured);
    json_put(all, "cases", cases);
    json_put(object, "forecast", all);
}
