/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report_body.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <penstock/types.h>

#include "report/forecast.h"
#include "ui/html.h"
#include "ui/json.h"
#include "ui/unit.h"

#define CELL_SIZE (2 * UNIT_SIZE)

/* ---- figures: each returns `text`, or NULL for one that is not known ---------------------------
 */

static const char *count_text(char text[CELL_SIZE], double value)
{
    if (!(value >= 0) || value > 1e18)
        return NULL;
    return unit_count(text, (uint64_t)(value + 0.5));
}

static const char *unit_text(char text[CELL_SIZE], double value, const char *unit)
{
    char number[CELL_SIZE];
    if (!count_text(number, value))
        return NULL;
    snprintf(text, CELL_SIZE, "%.*s %s", UNIT_SIZE, number, unit);
    return text;
}

static const char *bytes_text(char text[CELL_SIZE], double value, const char *unit)
{
    char number[UNIT_SIZE];
    if (!(value >= 0) || isinf(value))
        return NULL;
    snprintf(text, CELL_SIZE, "%s%s", unit_bytes(number, value), unit);
    return text;
}

static const char *percent_text(char text[CELL_SIZE], double share)
{
    if (!isfinite(share))
        return NULL;
    snprintf(text, CELL_SIZE, "%.*f %%", share < 0.1 ? 1 : 0, 100 * share);
    return text;
}

static const char *real_text(char text[CELL_SIZE], double value, const char *unit)
{
    if (!isfinite(value))
        return NULL;
    snprintf(text, CELL_SIZE, "%.3g%s", value, unit);
    return text;
}

static const char *time_text(char text[CELL_SIZE], double ns)
{
    static const char *const units[] = {"ns", "\xC2\xB5s", "ms", "s"};
    int i = 0;
    if (!(ns >= 0) || isinf(ns))
        return NULL;
    for (; i < 3 && ns >= 999.5; i++)
        ns /= 1000;
    snprintf(text, CELL_SIZE, ns >= 999.5 ? "%.0f %s" : "%.3g %s", ns, units[i]);
    return text;
}

/* ---- parts of the page -------------------------------------------------------------------------
 */

static void begin_section(FILE *file, const char *id, const char *title, const char *note)
{
    fprintf(file, "<section id=\"%s\"><h2>%s</h2>\n", id, title);
    if (note)
        fprintf(file, "<p class=\"note\">%s</p>\n", note);
}

static void end_section(FILE *file)
{
    fputs("</section>\n", file);
}

static void put_absent(FILE *file, const char *why)
{
    fprintf(file, "<p class=\"absent\">%s</p>\n", why);
}

static void put_chart(FILE *file, const char *id, const char *label)
{
    fprintf(file,
            "<figure class=\"chart\"><figcaption>%s</figcaption><div><canvas id=\"%s\" "
            "role=\"img\" aria-label=\"%s\"></canvas></div></figure>\n",
            label, id, label);
}

static void begin_details(FILE *file, const char *summary)
{
    fprintf(file, "<details><summary>%s</summary>\n", summary);
}

static void put_tile(FILE *file, const char *what, const char *value)
{
    fputs("<div class=\"tile\"><dt>", file);
    html_text(file, what);
    fputs(value ? "</dt><dd>" : "</dt><dd class=\"none\" title=\"not known\">", file);
    if (value)
        html_text(file, value);
    else
        fputs("&ndash;", file);
    fputs("</dd></div>\n", file);
}

static void put_row(FILE *file, const char *name, const char *value)
{
    html_row_head(file, name);
    html_cell(file, value);
    fputs("</tr>\n", file);
}

/* ---- the head ----------------------------------------------------------------------------------
 */

static void put_title(FILE *file, const struct json_t *document)
{
    const char *name = json_text(document, "name"), *node = json_text(document, "node");
    const char *producer = json_text(document, "producer"),
               *version = json_text(document, "penstock");
    const time_t made = (time_t)json_count(document, "made", 0);
    struct tm when;
    char text[CELL_SIZE] = "";
    if (gmtime_r(&made, &when))
        strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &when);
    fputs("<header><h1>", file);
    html_text(file, name ? name : "penstock");
    fputs("</h1><p>penstock ", file);
    html_text(file, producer ? producer : "");
    fputs(" ", file);
    html_text(file, version ? version : "");
    if (node) {
        fputs(" on ", file);
        html_text(file, node);
    }
    fprintf(file, ", <time>%s</time></p></header>\n", text);
}

/* Return the share of a stage's time in a state, by `key`; NAN: unknown. */
static double share_of(const struct json_t *stage, const char *key)
{
    const double all = json_figure(stage, "busy_ns") + json_figure(stage, "starved_ns") +
                       json_figure(stage, "blocked_ns");
    return all > 0 ? json_figure(stage, key) / all : (double)NAN;
}

static double rate(const struct json_t *run, const char *key)
{
    const double seconds = json_figure(run, "seconds");
    return seconds > 0 ? json_figure(run, key) / seconds : (double)NAN;
}

static void put_tiles(FILE *file, const struct json_t *run)
{
    const struct json_t *consumer = json_get(json_get(run, "stages"), "consumer");
    double waiting = share_of(consumer, "starved_ns");
    char text[CELL_SIZE];
    if (isnan(waiting))
        waiting = json_figure(run, "waiting");
    fputs("<dl class=\"tiles\">\n", file);
    put_tile(file, "throughput",
             unit_text(text, json_figure(run, "samples_per_second"), "samples/s"));
    put_tile(file, "read from storage", bytes_text(text, rate(run, "bytes_read"), "/s"));
    put_tile(file, "waiting for data", percent_text(text, waiting));
    put_tile(file, "limit", json_text(run, "bottleneck"));
    put_tile(file, "samples", count_text(text, json_figure(run, "samples")));
    put_tile(file, "time",
             json_figure(run, "seconds") >= 0 ? unit_seconds(text, json_figure(run, "seconds"))
                                              : NULL);
    fputs("</dl>\n", file);
}

static void put_words(FILE *file, const struct json_t *run)
{
    const char *advice = json_text(run, "advice");
    const uint64_t n = json_count(run, "n_replacements", 0);
    char text[CELL_SIZE];
    if (advice) {
        fputs("<p class=\"advice\">", file);
        html_text(file, advice);
        fputs("</p>\n", file);
    }
    if (n > 0)
        fprintf(file,
                "<p class=\"warning\">%s bad sample%s replaced; <code>penstock verify</code> finds "
                "them.</p>\n",
                unit_count(text, n), n == 1 ? " was" : "s were");
}

/* ---- over time ---------------------------------------------------------------------------------
 */

static double figure_at(const struct json_t *one, const char *key, size_t i)
{
    return json_number(json_at(json_get(one, key), i));
}

static void put_series(FILE *file, const struct json_t *one)
{
    static const char *const heads[] = {"from", "for",      "samples/s", "read/s", "waiting",
                                        "CPU",  "resident", "GPU busy",  NULL};
    const char *label = json_text(one, "label");
    char text[CELL_SIZE];
    html_table(file, "numbers", label && label[0] ? label : NULL, heads);
    for (size_t i = 0; i < json_n(json_get(one, "begin")); i++) {
        snprintf(text, sizeof text, "%.2f s", figure_at(one, "begin", i));
        html_row_head(file, text);
        html_cell(file, real_text(text, figure_at(one, "seconds", i), " s"));
        html_cell(file, count_text(text, figure_at(one, "samples_per_second", i)));
        html_cell(file, bytes_text(text, figure_at(one, "read_bytes_per_second", i), "/s"));
        html_cell(file, percent_text(text, figure_at(one, "waiting", i)));
        html_cell(file, real_text(text, figure_at(one, "cpu_cores", i), " cores"));
        html_cell(file, bytes_text(text, figure_at(one, "rss_bytes", i), ""));
        html_cell(file, percent_text(text, figure_at(one, "gpu_utilisation", i)));
        fputs("</tr>\n", file);
    }
    html_table_end(file);
}

static int any_has(const struct json_t *series, const char *key)
{
    for (size_t i = 0; i < json_n(series); i++)
        if (json_get(json_at(series, i), key))
            return 1;
    return 0;
}

static void put_time(FILE *file, const struct json_t *document)
{
    const struct json_t *series = json_get(document, "series");
    const uint64_t n_not_drawn = json_count(document, "n_not_drawn", 0);
    begin_section(file, "over-time", "Throughput over time", NULL);
    if (json_n(series) == 0) {
        put_absent(file, "Nothing was recorded over time.");
    } else {
        if (any_has(series, "samples_per_second"))
            put_chart(file, "chart-throughput", "Samples per second");
        if (any_has(series, "waiting"))
            put_chart(file, "chart-waiting", "Share of its time that the consumer waited, %");
        if (any_has(series, "gpu_utilisation"))
            put_chart(file, "chart-gpu", "Share of time that the GPU was busy, %");
        if (n_not_drawn)
            fprintf(file, "<p class=\"note\">%" PRIu64 " more ranks are not drawn.</p>\n",
                    n_not_drawn);
        begin_details(file, "As a table");
        for (size_t i = 0; i < json_n(series); i++)
            put_series(file, json_at(series, i));
        fputs("</details>\n", file);
    }
    end_section(file);
}

/* ---- stages ------------------------------------------------------------------------------------
 */

static void put_stage(FILE *file, const struct json_t *stages, const char *name)
{
    const struct json_t *stage = json_get(stages, name);
    char text[CELL_SIZE];
    if (!stage)
        return;
    html_row_head(file, name);
    html_cell(file, count_text(text, json_figure(stage, "threads")));
    html_cell(file, percent_text(text, share_of(stage, "busy_ns")));
    html_cell(file, percent_text(text, share_of(stage, "starved_ns")));
    html_cell(file, percent_text(text, share_of(stage, "blocked_ns")));
    html_cell(file, count_text(text, json_figure(stage, "items")));
    fputs("</tr>\n", file);
}

static void put_stages(FILE *file, const struct json_t *run)
{
    static const char *const heads[] = {"stage",   "threads", "busy", "starved",
                                        "blocked", "items",   NULL};
    const struct json_t *stages = json_get(run, "stages");
    begin_section(file, "stages", "Where the threads' time went",
                  "Starved: waiting for the stage before. Blocked: waiting until the stage after "
                  "has room. The consumer is the program that takes batches.");
    if (!stages) {
        put_absent(file, "Not recorded.");
    } else {
        put_chart(file, "chart-stages", "Share of each stage's time, %");
        html_table(file, "numbers", NULL, heads);
        put_stage(file, stages, "reader");
        put_stage(file, stages, "workers");
        put_stage(file, stages, "uploader");
        put_stage(file, stages, "consumer");
        html_table_end(file);
    }
    end_section(file);
}

/* ---- waits -------------------------------------------------------------------------------------
 */

/* A key of `times`, and the title of its row. */
struct timed {
    const char *key, *title;
};

static const struct timed timed[] = {{"wait", "wait for a batch"},
                                     {"read", "a read"},
                                     {"decode", "a worker, for a run of rows"},
                                     {"finish", "functions of a whole batch"},
                                     {"copy", "copy of a batch to the device"},
                                     {"stream", "wait of the device's stream"},
                                     {NULL, NULL}};

static void put_quantiles(FILE *file, const struct json_t *times)
{
    static const char *const heads[] = {"what", "times", "50 %", "95 %", "99 %", "100 %", NULL};
    char text[CELL_SIZE];
    html_table(file, "numbers", "So many of them took at most:", heads);
    for (const struct timed *one = timed; one->key; one++) {
        const struct json_t *spread = json_get(times, one->key);
        if (!spread)
            continue;
        html_row_head(file, one->title);
        html_cell(file, count_text(text, json_figure(spread, "n")));
        html_cell(file, time_text(text, json_figure(spread, "p50_ns")));
        html_cell(file, time_text(text, json_figure(spread, "p95_ns")));
        html_cell(file, time_text(text, json_figure(spread, "p99_ns")));
        html_cell(file, time_text(text, json_figure(spread, "max_ns")));
        fputs("</tr>\n", file);
    }
    html_table_end(file);
}

static void put_buckets(FILE *file, const struct json_t *buckets)
{
    static const char *const heads[] = {"from", "below", "batches", NULL};
    char text[CELL_SIZE];
    begin_details(file, "The histogram as a table");
    html_table(file, "numbers", NULL, heads);
    for (size_t i = 0; i < json_n(buckets); i++) {
        const struct json_t *bucket = json_at(buckets, i);
        const char *from = time_text(text, json_figure(bucket, "from_ns"));
        html_row_head(file, from ? from : "");
        html_cell(file, time_text(text, json_figure(bucket, "below_ns")));
        html_cell(file, count_text(text, json_figure(bucket, "n")));
        fputs("</tr>\n", file);
    }
    html_table_end(file);
    fputs("</details>\n", file);
}

static void put_waits(FILE *file, const struct json_t *document)
{
    const struct json_t *times = json_get(document, "times");
    const struct json_t *buckets = json_get(document, "wait_buckets");
    begin_section(file, "waits", "How long single waits took", NULL);
    if (json_n(buckets) > 0)
        put_chart(file, "chart-waits", "Batches by the time that the consumer waited for them");
    else if (json_get(times, "wait"))
        put_chart(file, "chart-quantiles", "Wait for a batch, by the share of batches, ms");
    if (json_n(times) > 0)
        put_quantiles(file, times);
    if (json_n(buckets) > 0)
        put_buckets(file, buckets);
    if (json_n(times) == 0 && json_n(buckets) == 0)
        put_absent(file, "Not recorded.");
    end_section(file);
}

/* ---- ceilings and predictions ------------------------------------------------------------------
 */

/* A ceiling: the keys of its rate, of its ratio, and of the flag that it read from the page cache,
 * or NULL. */
struct ceiling_keys {
    const char *rate, *ratio, *title, *cached;
    int bytes;
};

static const struct ceiling_keys ceilings[] = {
    {"storage_bytes_per_second", "storage", "storage, raw reads of records",
     "storage_from_page_cache", 1},
    {"memory_bytes_per_second", "memory", "memory, copies of the size of the batches", NULL, 1},
    {"loader_samples_per_second", "loader", "loader, nothing decoded", "loader_from_page_cache", 0},
    {"copy_bytes_per_second", "copy", "copies to the device, page-locked", NULL, 1},
    {NULL, NULL, NULL, NULL, 0}};

static const char *rate_text(char text[CELL_SIZE], double value, int bytes)
{
    return bytes ? bytes_text(text, value, "/s") : unit_text(text, value, "samples/s");
}

static void put_ceiling_name(FILE *file, const struct ceiling_keys *one, const struct json_t *rates)
{
    char *cached = one->cached ? json_plain(json_get(rates, one->cached)) : NULL;
    char text[CELL_SIZE + 64];
    snprintf(text, sizeof text, "%s%s", one->title,
             cached && strcmp(cached, "yes") == 0 ? ", from the page cache" : "");
    html_row_head(file, text);
    free(cached);
}

static void put_ceilings(FILE *file, const struct json_t *run)
{
    static const char *const heads[] = {"ceiling", "measured alone", "in the run", "reached", NULL};
    const struct json_t *rates = json_get(run, "ceilings"), *ratios = json_get(run, "ratios");
    char text[CELL_SIZE];
    begin_section(file, "ceilings", "Ceilings",
                  "What each part of the machine does alone, and how much of that the run used.");
    if (json_n(ratios) == 0) {
        put_absent(file, "Not measured.");
    } else {
        put_chart(file, "chart-ceilings", "Reached, % of each ceiling");
        html_table(file, "numbers", NULL, heads);
        for (const struct ceiling_keys *one = ceilings; one->rate; one++) {
            const double measured = json_figure(rates, one->rate);
            const double ratio = json_figure(ratios, one->ratio);
            if (isnan(ratio))
                continue;
            put_ceiling_name(file, one, rates);
            html_cell(file, rate_text(text, measured, one->bytes));
            html_cell(file, rate_text(text, measured * ratio, one->bytes));
            html_cell(file, percent_text(text, ratio));
            fputs("</tr>\n", file);
        }
        html_table_end(file);
    }
    end_section(file);
}

/* Put a change in words: the document has "workers" and "+1". */
static void put_change(FILE *file, const struct json_t *one)
{
    const char *what = json_text(one, "what"), *change = json_text(one, "change");
    char text[2 * CELL_SIZE];
    if (!what || !change)
        snprintf(text, sizeof text, "?");
    else if (strcmp(what, "workers") == 0)
        snprintf(text, sizeof text, "%.40s worker%s", change, strcmp(change, "+1") == 0 ? "" : "s");
    else if (strcmp(what, "storage") == 0)
        snprintf(text, sizeof text, "storage %.40s as fast", change);
    else if (strcmp(what, "consumer") == 0)
        snprintf(text, sizeof text, "a consumer that takes batches at once");
    else
        snprintf(text, sizeof text, "%.50s %.40s", what, change);
    html_row_head(file, text);
}

static void put_forecast(FILE *file, const struct json_t *run)
{
    static const char *const heads[] = {"change", "samples/s", "", "limit then", NULL};
    const struct json_t *forecast = json_get(run, "forecast");
    const struct json_t *cases = json_get(forecast, "cases");
    const double measured = json_figure(forecast, "measured");
    char text[CELL_SIZE];
    begin_section(file, "forecast", "What a change would bring",
                  "Predictions from this run alone, except the first line, which was measured.");
    if (json_n(cases) == 0) {
        put_absent(file, "No prediction: the run was too short, nothing shows what limits, or its "
                         "times are not recorded.");
    } else {
        put_chart(file, "chart-forecast", "Samples per second; striped bars are predictions");
        html_table(file, "numbers", NULL, heads);
        html_row_head(file, "this run");
        html_cell(file, count_text(text, measured));
        html_cell(file, "measured");
        html_cell(file, json_text(run, "bottleneck"));
        fputs("</tr>\n", file);
        for (size_t i = 0; i < json_n(cases); i++) {
            const struct json_t *one = json_at(cases, i);
            const double found = json_figure(one, "samples_per_second");
            put_change(file, one);
            html_cell(file, count_text(text, found));
            html_cell(file, found < measured * FORECAST_NO_CHANGE ? "prediction: no faster"
                                                                  : "prediction");
            html_cell(file, json_text(one, "limit"));
            fputs("</tr>\n", file);
        }
        html_table_end(file);
    }
    end_section(file);
}

/* ---- machine and settings ----------------------------------------------------------------------
 */

static void begin_pairs(FILE *file)
{
    static const char *const heads[] = {"what", "value", NULL};
    html_table(file, "pairs", NULL, heads);
}

/* Put one key of an object as a row. json_each calls it. */
static void put_pair(void *user, const char *key, const struct json_t *value)
{
    FILE *file = user;
    const size_t length = strlen(key);
    char name[CELL_SIZE], text[CELL_SIZE];
    char *plain = json_plain(value);
    snprintf(name, sizeof name, "%s", key);
    const int is_bytes = length < sizeof name && length > 6 && !strcmp(key + length - 6, "_bytes");
    if (is_bytes)
        name[length - 6] = 0;
    for (char *c = name; *c; c++)
        if (*c == '_')
            *c = ' ';
    put_row(file, name, is_bytes ? bytes_text(text, json_number(value), "") : plain);
    free(plain);
}

static void put_pairs(FILE *file, const char *id, const char *title, const struct json_t *object)
{
    begin_section(file, id, title, NULL);
    if (json_n(object) == 0) {
        put_absent(file, "Not recorded.");
    } else {
        begin_pairs(file);
        json_each(object, put_pair, file);
        html_table_end(file);
    }
    end_section(file);
}

static void put_memory(FILE *file, const struct json_t *run)
{
    static const struct timed rows[] = {{"slots", "batches (slots)"},
                                        {"io", "reads"},
                                        {"index", "index"},
                                        {"blocks", "blocks of a windowed order"},
                                        {"scratch", "scratch of workers, at most"},
                                        {NULL, NULL}};
    const struct json_t *memory = json_get(run, "memory");
    char text[CELL_SIZE];
    begin_section(file, "memory", "Memory", NULL);
    if (!memory && !json_get(run, "rss_peak_bytes") && !json_get(run, "rss_bytes")) {
        put_absent(file, "Not recorded.");
        end_section(file);
        return;
    }
    begin_pairs(file);
    if (json_get(run, "rss_peak_bytes"))
        put_row(file, "resident, at its peak",
                bytes_text(text, json_figure(run, "rss_peak_bytes"), ""));
    else
        put_row(file, "resident, at the last look",
                bytes_text(text, json_figure(run, "rss_bytes"), ""));
    for (const struct timed *one = rows; one->key; one++)
        if (json_get(memory, one->key))
            put_row(file, one->title, bytes_text(text, json_figure(memory, one->key), ""));
    html_table_end(file);
    end_section(file);
}

void report_body(FILE *file, const struct json_t *document)
{
    const struct json_t *run = json_get(document, "run");
    put_title(file, document);
    put_tiles(file, run);
    put_words(file, run);
    fputs("<main>\n", file);
    put_time(file, document);
    put_stages(file, run);
    put_waits(file, document);
    put_ceilings(file, run);
    put_forecast(file, run);
    fputs("<div class=\"facts\">\n", file);
    put_memory(file, run);
    put_pairs(file, "machine", "Machine", json_get(document, "machine"));
    put_pairs(file, "settings", "Settings", json_get(document, "settings"));
    fputs("</div>\n</main>\n", file);
}
