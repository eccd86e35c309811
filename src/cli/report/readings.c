/* SPDX-License-Identifier: Apache-2.0 */
#include "report/readings.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "option/machine.h"
#include "report/report_page.h"
#include "report/series.h"
#include "ui/interrupt.h"
#include "ui/json.h"
#include "ui/json_line.h"
#include "ui/message.h"

/* Maximum bytes of a line. A reading has some 1 kB, and a document without series some 5 kB. */
#define LINE_SIZE (UINT32_C(1) << 17)
/* Maximum ranks, or monitors of one process, that are drawn. */
#define MAX_SOURCES 16
/* Maximum ranks that are counted individually: more than a job has. */
#define MAX_RANKS (UINT32_C(1) << 16)
/* Maximum points of all series together. With 6 figures of 10 bytes in the data, and a row of 230
 * bytes in the table, each adds 300 bytes: together less than 600 kB, which with Chart.js (200 kB)
 * is less than 1 MB. */
#define MAX_POINTS 1920

/* The readings of one rank and name. */
struct source {
    char name[SERIES_LABEL];
    uint64_t rank;
    struct series series;
};

struct readings {
    const char *name; /* name of the file */
    uint64_t n_lines, n_readings;
    uint64_t n_odd, first_odd; /* lines that are left out, and the number of the first one */
    uint32_t n_sources;
    struct source *sources;  /* owned; MAX_SOURCES */
    uint8_t *not_drawn;      /* owned; a bit for each rank that found no source */
    struct json_t *document; /* owned; the document that came as a line, or NULL */
    struct json_t *last;     /* owned; the newest reading */
    double begin, end;       /* seconds since 1970 */
    double n_samples, n_batches, n_replacements, n_bytes;
    double waited, looked; /* seconds; looked: readings whose wait is known */
};

static struct source *source_of(struct readings *readings, const char *name, uint64_t rank)
{
    char label[SERIES_LABEL];
    snprintf(label, sizeof label, "%.*s", SERIES_LABEL - 1, name);
    for (uint32_t i = 0; i < readings->n_sources; i++) {
        struct source *source = &readings->sources[i];
        if (source->rank == rank && strcmp(source->name, label) == 0)
            return source;
    }
    if (readings->n_sources == MAX_SOURCES) {
        readings->not_drawn[rank % MAX_RANKS / 8] |= (uint8_t)(1u << rank % 8);
        return NULL;
    }
    struct source *source = &readings->sources[readings->n_sources++];
    source->rank = rank;
    strcpy(source->name, label);
    return source;
}

/* Add the figures that count for the whole run. */
static void add_up(struct readings *readings, const struct json_t *reading, double begin,
                   double seconds)
{
    const double waiting = json_figure(reading, "waiting");
    const double bytes = json_figure(reading, "read_bytes_per_s");
    const double samples = json_figure(reading, "n_samples");
    const double batches = json_figure(reading, "n_batches");
    const double replacements = json_figure(reading, "n_replacements");
    if (readings->n_readings++ == 0 || begin < readings->begin)
        readings->begin = begin;
    if (readings->n_readings == 1 || begin + seconds > readings->end)
        readings->end = begin + seconds;
    readings->n_samples += samples; /* NAN: the sum is unknown, too */
    readings->n_batches += batches;
    readings->n_replacements += replacements;
    readings->n_bytes += bytes * seconds;
    if (isfinite(waiting)) {
        readings->waited += waiting * seconds;
        readings->looked += seconds;
    }
}

static int add_reading(struct readings *readings, struct json_t *reading)
{
    const double seconds = json_figure(reading, "seconds");
    const double begin = json_figure(reading, "time") - seconds;
    const char *name = json_text(reading, "name");
    if (!isfinite(begin) || !(seconds > 0))
        return 0;
    struct source *source = source_of(readings, name ? name : "", json_count(reading, "rank", 0));
    struct series_point point = {.begin = begin, .seconds = seconds};
    point.figure[SERIES_SAMPLES] = json_figure(reading, "samples_per_s");
    point.figure[SERIES_BYTES] = json_figure(reading, "read_bytes_per_s");
    point.figure[SERIES_WAITING] = json_figure(reading, "waiting");
    point.figure[SERIES_CORES] = json_figure(reading, "cpu_cores");
    point.figure[SERIES_MEMORY] = json_figure(reading, "rss");
    point.figure[SERIES_GPU] = json_figure(json_get(reading, "gpu"), "utilisation");
    if (source)
        series_add(&source->series, &point);
    add_up(readings, reading, begin, seconds);
    json_drop(readings->last);
    readings->last = json_share(reading);
    return 1;
}

/* Take an object. Returns 1, 0 when it is no reading and no document, or -1 after a message. */
static int take_object(struct readings *readings, struct json_t *object)
{
    const char *schema = json_text(object, "schema");
    if (!schema)
        return add_reading(readings, object);
    if (strcmp(schema, REPORT_SCHEMA) != 0)
        return 0;
    const uint64_t version = json_count(object, "version", 0);
    if (version != REPORT_VERSION) {
        message_usage("%s: line %" PRIu64 " is a document of version %" PRIu64
                      "; must be %d (use command and package of one version)",
                      readings->name, readings->n_lines, version, REPORT_VERSION);
        return -1;
    }
    json_drop(readings->document);
    readings->document = json_share(object);
    return 1;
}

static int take_line(struct readings *readings, const char *line)
{
    size_t size;
    if (line[strspn(line, " \t\r\n")] == 0)
        return 1;
    char *strict = json_line_strict(line, &size);
    struct json_t *object = json_parse(strict, size);
    const int r = object ? take_object(readings, object) : 0;
    json_drop(object);
    free(strict);
    return r;
}

/* Skip the rest of a line that is too long. */
static void skip_line(FILE *file)
{
    int c;
    while ((c = getc(file)) != EOF && c != '\n')
        ;
}

static int take_lines(struct readings *readings, FILE *file)
{
    char *line = malloc(LINE_SIZE);
    int r = 0;
    if (!line)
        message_no_memory();
    while (r >= 0 && !interrupt_seen() && fgets(line, (int)LINE_SIZE, file)) {
        const size_t length = strlen(line);
        readings->n_lines++;
        const int is_long = length == LINE_SIZE - 1 && line[length - 1] != '\n';
        if (is_long)
            skip_line(file);
        r = is_long ? 0 : take_line(readings, line);
        if (r == 0 && readings->n_odd++ == 0)
            readings->first_odd = readings->n_lines;
    }
    free(line);
    return r;
}

static uint32_t n_points(const struct readings *readings)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < readings->n_sources; i++)
        n += readings->sources[i].series.n;
    return n;
}

/* Keep all series together within MAX_POINTS. Each series keeps at least one point, and there are
 * fewer sources than MAX_POINTS, so the loop ends. */
static void thin(struct readings *readings)
{
    while (n_points(readings) > MAX_POINTS)
        for (uint32_t i = 0; i < readings->n_sources; i++)
            series_halve(&readings->sources[i].series);
}

/* Write the label of a series: the parts in which the sources differ. */
static void set_label(const struct readings *readings, struct source *source)
{
    const struct source *first = &readings->sources[0];
    int names = 0, ranks = 0;
    for (uint32_t i = 1; i < readings->n_sources; i++) {
        names |= strcmp(readings->sources[i].name, first->name) != 0;
        ranks |= readings->sources[i].rank != first->rank;
    }
    char *label = source->series.label;
    if (names && ranks)
        snprintf(label, SERIES_LABEL, "%.40s, rank %" PRIu64, source->name, source->rank);
    else if (names)
        snprintf(label, SERIES_LABEL, "%s", source->name);
    else if (ranks)
        snprintf(label, SERIES_LABEL, "rank %" PRIu64, source->rank);
}

static struct json_t *run_json(const struct readings *readings)
{
    struct json_t *run = json_make_object();
    const double seconds = readings->end - readings->begin;
    json_put_real(run, "seconds", seconds);
    json_put_real(run, "samples", readings->n_samples);
    json_put_real(run, "samples_per_second", readings->n_samples / seconds);
    json_put_real(run, "batches", readings->n_batches);
    json_put_real(run, "bytes_read", readings->n_bytes);
    json_put_real(run, "n_replacements", readings->n_replacements);
    json_put_real(run, "waiting",
                  readings->looked > 0 ? readings->waited / readings->looked : (double)NAN);
    json_put_real(run, "rss_bytes", json_figure(readings->last, "rss"));
    json_put_text(run, "bottleneck", json_text(readings->last, "verdict"));
    return run;
}

static struct json_t *series_of(struct readings *readings)
{
    struct json_t *series = json_make_array();
    thin(readings);
    for (uint32_t i = 0; i < readings->n_sources; i++) {
        set_label(readings, &readings->sources[i]);
        json_append(series, series_json(&readings->sources[i].series, readings->begin));
    }
    return series;
}

/* Add the facts about this machine if the run goes on here: its Monitor gave the path of its data
 * set. The training process does not look for devices itself, because that would start the CUDA
 * driver in it. */
static void put_machine(struct json_t *document)
{
    char text[MACHINE_NODE];
    const char *path = json_text(document, "path"), *node = json_text(document, "node");
    const char *here = machine_node(text);
    struct json_t *machine = NULL;
    if (path && node && here && strcmp(node, here) == 0 && !json_get(document, "machine"))
        machine = machine_json(path);
    if (machine)
        json_put(document, "machine", machine);
}

static uint64_t n_not_drawn(const struct readings *readings)
{
    uint64_t n = 0;
    for (uint32_t rank = 0; rank < MAX_RANKS; rank++)
        n += readings->not_drawn[rank / 8] >> rank % 8 & 1;
    return n;
}

static struct json_t *document_of(struct readings *readings)
{
    struct json_t *document = report_page_document("monitor");
    json_put(document, "series", series_of(readings));
    json_put_count(document, "n_not_drawn", n_not_drawn(readings));
    if (readings->document)
        json_fill(document, readings->document);
    if (readings->last) {
        struct json_t *rest = json_make_object();
        json_put_text(rest, "name", json_text(readings->last, "name"));
        json_put_text(rest, "node", json_text(readings->last, "node"));
        json_put(rest, "run", run_json(readings));
        json_fill(document, rest);
        json_drop(rest);
    }
    put_machine(document);
    return document;
}

/* Report the lines and ranks that were left out. Returns 0, or an exit status when there is nothing
 * to draw. */
static int judge(const struct readings *readings, FILE *file, int r)
{
    if (r < 0)
        return STATUS_USAGE;
    if (interrupt_seen())
        return interrupt_say("no page was written");
    if (ferror(file)) {
        message_say("cannot read %s: %s", readings->name, strerror(errno));
        return STATUS_DAMAGED;
    }
    if (readings->n_readings == 0 && !readings->document)
        return message_usage("%s has no reading of a Monitor; give a file that "
                             "penstock.monitor.JSONLines wrote",
                             readings->name);
    if (readings->n_odd)
        message_say("%s: left out %" PRIu64
                    " line%s that %s no reading; the first is line %" PRIu64,
                    readings->name, readings->n_odd, readings->n_odd == 1 ? "" : "s",
                    readings->n_odd == 1 ? "is" : "are", readings->first_odd);
    return 0;
}

struct json_t *readings_read(FILE *file, const char *name, int *status)
{
    struct readings readings = {.name = name};
    readings.sources = calloc(MAX_SOURCES, sizeof *readings.sources);
    readings.not_drawn = calloc(MAX_RANKS / 8, 1);
    if (!readings.sources || !readings.not_drawn)
        message_no_memory();
    const int r = take_lines(&readings, file);
    *status = judge(&readings, file, r);
    struct json_t *document = *status ? NULL : document_of(&readings);
    json_drop(readings.document);
    json_drop(readings.last);
    free(readings.sources);
    free(readings.not_drawn);
    return document;
}
