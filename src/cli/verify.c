/* SPDX-License-Identifier: Apache-2.0 */
/* verify: read and check everything; name what is damaged. */
#include <stdio.h>
#include <stdlib.h>

#include <penstock/format.h>

#include "command.h"
#include "interrupt.h"
#include "json.h"
#include "machine.h"
#include "message.h"
#include "options.h"
#include "progress.h"
#include "text.h"
#include "unit.h"

#define MAX_LISTED 100000 /* damaged places that --json lists; all are counted and printed */

enum { OPT_THREADS = 256, OPT_DECODE, OPT_JSON };

static const struct option table[] = {{"threads", required_argument, NULL, OPT_THREADS},
                                      {"decode", no_argument, NULL, OPT_DECODE},
                                      {"json", no_argument, NULL, OPT_JSON},
                                      {"help", no_argument, NULL, 'h'},
                                      OPTION_END};

static const char help[] =
    "usage: penstock verify DATA [options]\n"
    "\n"
    "Read and check every byte of a data set: manifest, shard headers, index, record heads, "
    "fields.\n"
    "Each damaged place is named by shard, record, byte range and reason.\n"
    "\n"
    "options:\n"
    "  --threads N   check with N threads (all cores)\n"
    "  --decode      decode every image in full, too\n"
    "  --json        print one JSON object: n_bad, and bad: a list of shard, record, offset,\n"
    "                length, reason\n"
    "\n"
    "examples:\n"
    "  penstock verify train\n"
    "  penstock verify train --decode --json | jq .n_bad\n"
    "\n"
    "exit status: 0 whole; 1 damaged; 2 wrong usage or path, no data set, or a newer version\n";

struct verify {
    struct json_t *bad; /* owned, NULL without --json */
    uint64_t n_bad;
    struct progress progress;
};

static void list(struct verify *v, const struct pstk_error *bad)
{
    struct json_t *o = json_make_object();
    json_put_text(o, "shard", bad->shard[0] ? bad->shard : NULL);
    json_put_count(o, "record", bad->record);
    json_put_count(o, "sample_id", bad->sample_id);
    json_put_count(o, "offset", bad->offset);
    json_put_count(o, "length", bad->length);
    json_put_text(o, "reason", bad->message);
    json_append(v->bad, o);
}

/* One line: where first, then why. */
static void print(const struct pstk_error *bad)
{
    const char *before = "";
    char *shard = text_copy(bad->shard), *message = text_copy(bad->message);
    fputs("  ", stderr);
    if (shard[0]) {
        fprintf(stderr, "%s", shard);
        before = ", ";
    }
    if (bad->record != PSTK_NONE) {
        fprintf(stderr, "%srecord %llu", before, (unsigned long long)bad->record);
        before = ", ";
    }
    if (bad->offset != PSTK_NONE) {
        fprintf(stderr, "%sbytes %llu..%llu", before, (unsigned long long)bad->offset,
                (unsigned long long)(bad->offset + (bad->length ? bad->length - 1 : 0)));
        before = ", ";
    }
    fprintf(stderr, "%s%s\n", before[0] ? ": " : "", message);
    free(shard);
    free(message);
}

static int on_bad(void *user, const struct pstk_error *bad)
{
    struct verify *v = user;
    progress_end(&v->progress);
    print(bad);
    if (v->bad && v->n_bad < MAX_LISTED)
        list(v, bad);
    v->n_bad++;
    interrupt_at_once("the damage found so far is above");
    return 0;
}

static int on_progress(void *user, uint64_t n_done, uint64_t n_total)
{
    struct verify *v = user;
    progress_update(&v->progress, n_total ? (double)n_done / (double)n_total : -1, n_done);
    return 0;
}

static int report(struct verify *v, const char *path, double seconds, int decode)
{
    int status = v->n_bad ? STATUS_DAMAGED : STATUS_OK;
    char n[UNIT_SIZE], time[UNIT_SIZE];
    if (v->bad) {
        struct json_t *o = json_make_object();
        json_put_text(o, "path", path);
        json_put_count(o, "n_bad", v->n_bad);
        json_put_bool(o, "truncated", v->n_bad > MAX_LISTED);
        json_put_real(o, "seconds", seconds);
        json_put(o, "bad", v->bad);
        v->bad = NULL;
        return json_print(o, status);
    }
    text_print(stdout, path);
    if (v->n_bad)
        printf(": %s damaged place%s, in %s\n", unit_count(n, v->n_bad), v->n_bad == 1 ? "" : "s",
               unit_seconds(time, seconds));
    else
        printf(": whole%s, in %s\n", decode ? ", every image decodes" : "",
               unit_seconds(time, seconds));
    return message_finish(status);
}

static int verify(struct verify *v, const char *path, int decode, uint32_t n_threads)
{
    struct pstk_error err;
    double start = unit_now();
    pstk_error_init(&err, sizeof err);
    interrupt_install();
    /* Nothing is written and nothing is left to clean up: no image is too large to stop at. */
    interrupt_at_once("no damage was found so far");
    progress_begin(&v->progress, "verifying", "samples");
    int64_t r = pstk_verify(path, decode, n_threads, on_bad, on_progress, v, &err);
    interrupt_at_once(NULL);
    progress_end(&v->progress);
    if (r == PSTK_EBADMSG || r == PSTK_EIO) {
        /* so damaged that it cannot be read as a data set: one damaged place */
        on_bad(v, &err);
        return report(v, path, unit_now() - start, decode);
    }
    if (r < 0)
        return message_refuse(&err, path);
    return report(v, path, unit_now() - start, decode);
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options o = {.command = self, .table = table, .letters = "", .argc = argc, .argv = argv};
    struct verify v = {.n_bad = 0};
    uint32_t n_threads = 0; /* 0: all cores */
    int c, decode = 0, json = 0;
    while ((c = options_next(&o)) > 0) {
        if (c == OPT_DECODE)
            decode = 1;
        else if (c == OPT_JSON)
            json = 1;
        else if (option_count32("--threads", optarg, (struct range){0, 1024}, &n_threads) < 0)
            return STATUS_USAGE;
    }
    if (c < 0 || options_operands(&o, 1, 1, "DATA") < 0)
        return o.status;
    if (json)
        v.bad = json_make_array();
    int status =
        verify(&v, options_operand(&o, 0), decode, n_threads ? n_threads : machine_n_cores(1024));
    json_drop(v.bad);
    return status;
}

const struct command command_verify = {"verify", "read and check everything", help, run};
