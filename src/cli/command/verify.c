/* SPDX-License-Identifier: Apache-2.0 */
/* verify: reads and checks everything, and names the damage. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <penstock/format.h>

#include "command.h"
#include "option/ignored.h"
#include "option/machine.h"
#include "option/opening.h"
#include "option/options.h"
#include "ui/interrupt.h"
#include "ui/json.h"
#include "ui/message.h"
#include "ui/progress.h"
#include "ui/status.h"
#include "ui/text.h"
#include "ui/unit.h"

#define MAX_LISTED 100000 /* damaged places that --json lists; all are counted and printed */
#define WELL_SIZE 160

enum { OPT_THREADS = 256, OPT_DECODE, OPT_CHECKSUMS, OPT_JSON };

static const struct option_row table[] = {
    {.name = "threads",
     .code = OPT_THREADS,
     .value = "N",
     .initial = "all cores",
     .text = "check with N threads"},
    {.name = "decode", .code = OPT_DECODE, .text = "also decode every image in full"},
    FIELDS_OPTIONS,
    FIELDS_DAMAGED_OPTION,
    {.name = "checksums",
     .code = OPT_CHECKSUMS,
     .text = "if the format has no checksums, keep checksums next to the index; later runs compare "
             "every sample with them"},
    OPTION_JSON("print one JSON object: n_bad, n_files, n_samples, has_checksums, checksums "
                "(without, own, compared or kept), note, and bad: a list of shard, record, "
                "offset, length, reason"),
    OPTION_END};

struct verify {
    struct json_t *bad; /* owned; NULL without --json */
    uint64_t n_bad;
    struct fields fields;
    struct progress progress;
    int decode, keep_checksums;
    struct pstk_verify_report report; /* zeros if the data set is too damaged to be opened */
};

static void list(struct verify *verify, const struct pstk_error *bad)
{
    struct json_t *object = json_make_object();
    json_put_text(object, "shard", bad->shard[0] ? bad->shard : NULL);
    json_put_count(object, "record", bad->record);
    json_put_count(object, "sample_id", bad->sample_id);
    json_put_count(object, "offset", bad->offset);
    json_put_count(object, "length", bad->length);
    json_put_text(object, "reason", bad->message);
    json_append(verify->bad, object);
}

/* Return the text after `start` when it begins with `start`, or else the whole text. */
static const char *after(const char *text, const char *start)
{
    const size_t n = strlen(start);
    return strncmp(text, start, n) == 0 ? text + n : text;
}

/* Return the message without the shard and the record at its beginning. */
static const char *reason_of(const struct pstk_error *bad)
{
    char shard[sizeof bad->shard + 2], record[40];
    snprintf(shard, sizeof shard, "%s: ", bad->shard);
    snprintf(record, sizeof record, "record %llu", (unsigned long long)bad->record);
    const char *text = bad->message, *rest = after(text, shard);
    if (rest == text || bad->record == PSTK_NONE)
        return rest;
    text = after(rest, record);
    return text == rest ? rest : text + strspn(text, ": ");
}

/* Print the location, such as "shard-000000.pstk, record 7, bytes 10 to 19: ", without the parts
 * that the reason contains. A reason that names the shard is about the whole shard: "cannot open
 * shard-000000.pstk". */
static void print_place(const struct pstk_error *bad, const char *reason)
{
    char *shard = text_copy(bad->shard), range[60];
    const char *before = "";
    if (!shard)
        message_no_memory();
    if (shard[0] && strstr(reason, bad->shard)) {
        free(shard);
        return;
    }
    if (shard[0]) {
        fprintf(stderr, "%s", shard);
        before = ", ";
    }
    if (bad->record != PSTK_NONE) {
        fprintf(stderr, "%srecord %llu", before, (unsigned long long)bad->record);
        before = ", ";
    }
    snprintf(range, sizeof range, "bytes %llu to %llu", (unsigned long long)bad->offset,
             (unsigned long long)(bad->offset + (bad->length ? bad->length - 1 : 0)));
    if (bad->offset != PSTK_NONE && !strstr(reason, range)) {
        fprintf(stderr, "%s%s", before, range);
        before = ", ";
    }
    fputs(before[0] ? ": " : "", stderr);
    free(shard);
}

/* Print one line: the location first, then the reason. */
static void print(const struct pstk_error *bad)
{
    const char *reason = reason_of(bad);
    char *text = text_copy(reason);
    if (!text)
        message_no_memory();
    fputs("  ", stderr);
    print_place(bad, reason);
    fprintf(stderr, "%s\n", text);
    free(text);
}

static int on_bad(void *user, const struct pstk_error *bad)
{
    struct verify *verify = user;
    struct pstk_error worded = *bad;
    message_settings(&worded);
    progress_end(&verify->progress);
    print(&worded);
    if (verify->bad && verify->n_bad < MAX_LISTED)
        list(verify, &worded);
    verify->n_bad++;
    interrupt_at_once("the damage found so far is above");
    return 0;
}

static int on_progress(void *user, uint64_t n_done, uint64_t n_total)
{
    struct verify *verify = user;
    progress_update(&verify->progress, n_total ? (double)n_done / (double)n_total : -1, n_done);
    return 0;
}

/* Return the facts about the data set for the report; zeros when it cannot be opened. *n_damaged:
 * images that are marked as damaged. A damaged data set with an index is not opened again: that
 * would build the index. */
static struct pstk_dataset_info find_info(const char *path, const struct verify *verify,
                                          uint64_t *n_damaged)
{
    struct pstk_dataset_info info = {.size = sizeof info};
    struct pstk_dataset *dataset;
    const char *format = pstk_find_format(path, NULL);
    *n_damaged = 0;
    if (verify->n_bad > 0 && (!format || strcmp(format, "pstk") != 0))
        return info;
    if (opening_dataset_as(&dataset, path, &verify->fields, NULL) < 0)
        return info;
    pstk_dataset_get_info(dataset, &info);
    for (uint32_t i = 0; i < info.n_fields; i++) {
        struct pstk_field_stats stats = {.size = sizeof stats};
        pstk_dataset_get_field(dataset, i, NULL, &stats);
        *n_damaged += stats.n_damaged;
    }
    ignored_say_files(&info, path);
    pstk_dataset_close(&dataset);
    return info;
}

/* Write "no damage found", and whether the images were decoded. */
static const char *all_well(const struct verify *verify, uint64_t n_damaged, char text[WELL_SIZE])
{
    const int decode = verify->decode;
    char n[UNIT_SIZE], marked[WELL_SIZE / 2] = "";
    if (n_damaged)
        snprintf(marked, sizeof marked, " (%s image%s marked as damaged%s)",
                 unit_count(n, n_damaged), n_damaged == 1 ? " is" : "s are",
                 !decode          ? ""
                 : n_damaged == 1 ? " and needs guesses"
                                  : " and need guesses");
    snprintf(text, WELL_SIZE, "no damage found%s%s%s", decode ? ", every image decodes" : "",
             decode && verify->fields.damaged ? ", damaged ones as Pillow loads them" : "", marked);
    return text;
}

static int report_json(struct verify *verify, const char *path, double seconds, int status)
{
    static const char *const names[] = {"without", "own", "compared", "kept"};
    const struct pstk_verify_report *found = &verify->report;
    const int is_known = found->size > 0;
    uint64_t n_damaged;
    find_info(path, verify, &n_damaged);
    struct json_t *object = json_make_object();
    json_put_text(object, "path", path);
    json_put_count(object, "n_bad", verify->n_bad);
    json_put_bool(object, "truncated", verify->n_bad > MAX_LISTED);
    json_put_real(object, "seconds", seconds);
    json_put_count(object, "n_files", found->n_files);
    json_put_count(object, "n_samples", found->n_samples);
    json_put_count(object, "n_holes", found->n_holes);
    json_put_bool(object, "has_checksums", !is_known || found->checksums != PSTK_VERIFY_WITHOUT);
    json_put_text(object, "checksums", is_known ? names[found->checksums % 4] : NULL);
    json_put_text(object, "note", found->note[0] ? found->note : NULL);
    json_put_count(object, "n_damaged_images", n_damaged);
    json_put(object, "bad", verify->bad);
    verify->bad = NULL;
    return json_print(object, status);
}

/* Print the results for an undamaged data set. */
static void print_well(const struct verify *verify, const char *path, const char *time)
{
    const struct pstk_verify_report *found = &verify->report;
    char n[UNIT_SIZE], well[WELL_SIZE];
    uint64_t n_damaged;
    const struct pstk_dataset_info info = find_info(path, verify, &n_damaged);
    if (found->checksums == PSTK_VERIFY_KEPT)
        printf(": every sample can be read, in %s; the checksums of %s samples are kept: later "
               "runs of verify compare with them\n",
               time, unit_count(n, found->n_samples));
    else if (found->checksums == PSTK_VERIFY_COMPARED)
        printf(": %s, in %s; %s samples have the checksums that were kept\n",
               all_well(verify, n_damaged, well), time, unit_count(n, found->n_samples));
    else if (found->checksums == PSTK_VERIFY_OWN)
        printf(": %s, in %s%s\n", all_well(verify, n_damaged, well), time,
               verify->keep_checksums ? "; its files have checksums of their own: none are kept"
                                      : "");
    else if (strcmp(info.format, "arrays") == 0)
        printf(": every sample can be read, in %s; only .npz files have checksums, so changed "
               "content of other files is not found: --checksums keeps some\n",
               time);
    else
        printf(
            ": every sample can be read, in %s; %s files have no checksums, so changed content is "
            "not found: --checksums keeps some\n",
            time, info.format);
}

static int report(struct verify *verify, const char *path, double seconds)
{
    const int status = verify->n_bad ? STATUS_DAMAGED : STATUS_OK;
    const struct pstk_verify_report *found = &verify->report;
    char n[UNIT_SIZE], samples[UNIT_SIZE], time[UNIT_SIZE];
    if (verify->bad)
        return report_json(verify, path, seconds, status);
    text_print(stdout, path);
    unit_seconds(time, seconds);
    if (!verify->n_bad)
        print_well(verify, path, time);
    else if (found->n_samples)
        printf(": %s damaged place%s, in %s; %s samples were checked%s\n",
               unit_count(n, verify->n_bad), verify->n_bad == 1 ? "" : "s", time,
               unit_count(samples, found->n_samples),
               found->checksums == PSTK_VERIFY_KEPT ? ", and their checksums are kept" : "");
    else
        printf(": %s damaged place%s, in %s\n", unit_count(n, verify->n_bad),
               verify->n_bad == 1 ? "" : "s", time);
    if (found->note[0]) {
        fputs("  ", stdout);
        text_print(stdout, found->note);
        putchar('\n');
    }
    return message_finish(status);
}

static int verify(struct verify *v, const char *path, uint32_t n_threads)
{
    struct pstk_error err;
    double start = unit_now();
    pstk_error_init(&err, sizeof err);
    interrupt_install();
    /* Nothing is written, so nothing needs cleaning up and a signal may end the process at any
     * image. */
    interrupt_at_once("no damage was found so far");
    progress_begin(&v->progress, "verifying", "samples");
    struct opening opening;
    opening_init(&opening);
    fields_apply(&v->fields, &opening.foreign);
    const struct pstk_verify_settings s = {.size = sizeof s,
                                           .decode = v->decode != 0,
                                           .keep_checksums = v->keep_checksums != 0,
                                           .n_threads = n_threads,
                                           .path = path,
                                           .foreign = &opening.foreign,
                                           .on_bad = on_bad,
                                           .on_progress = on_progress,
                                           .user = v,
                                           .report = &v->report};
    v->report.size = sizeof v->report;
    const int64_t r = pstk_verify_data(&s, &err);
    interrupt_at_once(NULL);
    progress_end(&v->progress);
    if (r == PSTK_EBADMSG || r == PSTK_EIO) {
        /* too damaged to be read as a data set: one damaged place */
        on_bad(v, &err);
        v->report = (struct pstk_verify_report){0};
        return report(v, path, unit_now() - start);
    }
    fields_explain(&v->fields, &err);
    if (r < 0)
        return status_refuse(&err, path);
    return report(v, path, unit_now() - start);
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options options = {.command = self, .argc = argc, .argv = argv};
    struct verify v = {.n_bad = 0};
    uint32_t n_threads = 0; /* 0: all cores */
    int c, json = 0;
    while ((c = options_next(&options)) > 0) {
        if (fields_have(c)) {
            if (fields_take(&v.fields, c, optarg) < 0)
                return STATUS_USAGE;
        } else if (c == OPT_DECODE)
            v.decode = 1;
        else if (c == OPT_CHECKSUMS)
            v.keep_checksums = 1;
        else if (c == OPT_JSON)
            json = 1;
        else if (option_count32("--threads", optarg, (struct range){0, 1024}, &n_threads) < 0)
            return STATUS_USAGE;
    }
    if (c < 0 || options_operands(&options, 1, 1, "DATA") < 0)
        return options.status;
    if (json)
        v.bad = json_make_array();
    int status =
        verify(&v, options_operand(&options, 0), n_threads ? n_threads : machine_n_cores(1024));
    json_drop(v.bad);
    return status;
}

const struct command command_verify = {
    .name = "verify",
    .summary = "read and check everything",
    .operands = "DATA",
    .text = "Read and check every byte of a data set: manifest, shard headers, index, record heads "
            "and fields. Verify names each damaged place by shard, record, byte range and reason, "
            "and goes on with the next. Of other formats it reads every sample, finds files that "
            "are missing or cut short, counts samples in holes of sparse files, and checks the "
            "checksums that the format has. "
            "If it has none, --checksums keeps some in the folder .penstock next to the data, or "
            "in the cache folder; a later verify compares with them, until the size or the time of "
            "a file changes.\n",
    .options = table,
    .examples = "penstock verify train\n"
                "penstock verify train --decode --json | jq .n_bad\n"
                "penstock verify shards --checksums\n",
    .exit_status =
        "0 no damage found; 1 damaged; 2 wrong usage or path, no data set, or a newer version",
    .run = run,
};
