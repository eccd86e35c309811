/* SPDX-License-Identifier: Apache-2.0 */
/* verify: read and check everything, and name what is damaged. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <penstock/format.h>

#include "command.h"
#include "interrupt.h"
#include "json.h"
#include "machine.h"
#include "message.h"
#include "opening.h"
#include "options.h"
#include "progress.h"
#include "status.h"
#include "text.h"
#include "unit.h"

#define MAX_LISTED 100000 /* damaged places that --json lists; all are counted and printed */
#define WELL_SIZE 160

enum { OPT_THREADS = 256, OPT_DECODE, OPT_JSON };

static const struct option_row table[] = {
    {.name = "threads",
     .code = OPT_THREADS,
     .value = "N",
     .initial = "all cores",
     .text = "check with N threads"},
    {.name = "decode", .code = OPT_DECODE, .text = "decode every image in full, too"},
    FIELDS_OPTION,
    OPTION_JSON("print one JSON object: n_bad, has_checksums, and bad: a list of shard, record, "
                "offset, length, reason"),
    OPTION_END};

struct verify {
    struct json_t *bad; /* owned; NULL without --json */
    uint64_t n_bad;
    struct fields fields;
    struct progress progress;
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

/* Return the text after `start` when it begins with that, or else the whole text. */
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

/* Print the place, as in "shard-000000.pstk, record 7, bytes 10 to 19: ", without the parts that
 * the reason contains. A reason that names the shard is about the whole shard: "cannot open
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

/* Print one line: the place first, then the reason. */
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
    progress_end(&verify->progress);
    print(bad);
    if (verify->bad && verify->n_bad < MAX_LISTED)
        list(verify, bad);
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

/* Return what the report needs of the data set; zeros when it cannot be opened. *n_damaged: images
 * that are marked as damaged. */
static struct pstk_dataset_info find_info(const char *path, const struct fields *fields,
                                          uint64_t *n_damaged)
{
    struct pstk_dataset_info info = {.size = sizeof info};
    struct pstk_dataset *dataset;
    *n_damaged = 0;
    if (opening_dataset_as(&dataset, path, fields, NULL) < 0)
        return info;
    pstk_dataset_get_info(dataset, &info);
    for (uint32_t i = 0; i < info.n_fields; i++) {
        struct pstk_field_stats stats = {.size = sizeof stats};
        pstk_dataset_get_field(dataset, i, NULL, &stats);
        *n_damaged += stats.n_damaged;
    }
    pstk_dataset_close(&dataset);
    return info;
}

/* Write "no damage found", with what was decoded. */
static const char *all_well(int decode, uint64_t n_damaged, char text[WELL_SIZE])
{
    char n[UNIT_SIZE], marked[WELL_SIZE / 2] = "";
    if (n_damaged)
        snprintf(marked, sizeof marked, " (%s image%s marked as damaged%s)",
                 unit_count(n, n_damaged), n_damaged == 1 ? " is" : "s are",
                 !decode          ? ""
                 : n_damaged == 1 ? " and needs guesses"
                                  : " and need guesses");
    snprintf(text, WELL_SIZE, "no damage found%s%s", decode ? ", every image decodes" : "", marked);
    return text;
}

static int report(struct verify *verify, const char *path, double seconds, int decode)
{
    uint64_t n_damaged;
    const struct pstk_dataset_info info = find_info(path, &verify->fields, &n_damaged);
    const int unchecked = info.format[0] && !info.has_checksums;
    int status = verify->n_bad ? STATUS_DAMAGED : STATUS_OK;
    char n[UNIT_SIZE], time[UNIT_SIZE], well[WELL_SIZE];
    if (verify->bad) {
        struct json_t *object = json_make_object();
        json_put_text(object, "path", path);
        json_put_count(object, "n_bad", verify->n_bad);
        json_put_bool(object, "truncated", verify->n_bad > MAX_LISTED);
        json_put_real(object, "seconds", seconds);
        json_put_bool(object, "has_checksums", !unchecked);
        json_put_count(object, "n_damaged_images", n_damaged);
        json_put(object, "bad", verify->bad);
        verify->bad = NULL;
        return json_print(object, status);
    }
    text_print(stdout, path);
    if (verify->n_bad)
        printf(": %s damaged place%s, in %s\n", unit_count(n, verify->n_bad),
               verify->n_bad == 1 ? "" : "s", unit_seconds(time, seconds));
    else if (unchecked && strcmp(info.format, "arrays") == 0)
        printf(": every sample can be read, in %s; only .npz files have checksums, so changed "
               "content of other files is not found\n",
               unit_seconds(time, seconds));
    else if (unchecked)
        printf(
            ": every sample can be read, in %s; %s files have no checksums, so changed content is "
            "not found\n",
            unit_seconds(time, seconds), info.format);
    else
        printf(": %s, in %s\n", all_well(decode, n_damaged, well), unit_seconds(time, seconds));
    return message_finish(status);
}

static int verify(struct verify *v, const char *path, int decode, uint32_t n_threads)
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
                                           .decode = decode != 0,
                                           .n_threads = n_threads,
                                           .path = path,
                                           .foreign = &opening.foreign,
                                           .on_bad = on_bad,
                                           .on_progress = on_progress,
                                           .user = v};
    const int64_t r = pstk_verify_data(&s, &err);
    interrupt_at_once(NULL);
    progress_end(&v->progress);
    if (r == PSTK_EBADMSG || r == PSTK_EIO) {
        /* too damaged to be read as a data set: one damaged place */
        on_bad(v, &err);
        return report(v, path, unit_now() - start, decode);
    }
    fields_explain(&v->fields, &err);
    if (r < 0)
        return status_refuse(&err, path);
    return report(v, path, unit_now() - start, decode);
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options options = {.command = self, .argc = argc, .argv = argv};
    struct verify v = {.n_bad = 0};
    uint32_t n_threads = 0; /* 0: all cores */
    int c, decode = 0, json = 0;
    while ((c = options_next(&options)) > 0) {
        if (c == OPT_FIELD) {
            if (fields_add(&v.fields, optarg) < 0)
                return STATUS_USAGE;
        } else if (c == OPT_DECODE)
            decode = 1;
        else if (c == OPT_JSON)
            json = 1;
        else if (option_count32("--threads", optarg, (struct range){0, 1024}, &n_threads) < 0)
            return STATUS_USAGE;
    }
    if (c < 0 || options_operands(&options, 1, 1, "DATA") < 0)
        return options.status;
    if (json)
        v.bad = json_make_array();
    int status = verify(&v, options_operand(&options, 0), decode,
                        n_threads ? n_threads : machine_n_cores(1024));
    json_drop(v.bad);
    return status;
}

const struct command command_verify = {
    .name = "verify",
    .summary = "read and check everything",
    .operands = "DATA",
    .text = "Read and check every byte of a data set: manifest, shard headers, index, record heads "
            "and fields. Verify names each damaged place by shard, record, byte range and reason. "
            "Where the format has no checksums, it prints so.\n",
    .options = table,
    .examples = "penstock verify train\n"
                "penstock verify train --decode --json | jq .n_bad\n",
    .exit_status =
        "0 no damage found; 1 damaged; 2 wrong usage or path, no data set, or a newer version",
    .run = run,
};
