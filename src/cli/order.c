/* SPDX-License-Identifier: Apache-2.0 */
/* order: the sample ids of batches, without reading a record. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "command.h"
#include "interrupt.h"
#include "json.h"
#include "message.h"
#include "options.h"
#include "pipeline.h"

enum { OPT_BATCHES = 256, OPT_JSON };

static const struct option table[] = {PIPELINE_SEED_OPTIONS,
                                      PIPELINE_ORDER_OPTIONS,
                                      {"batches", required_argument, NULL, OPT_BATCHES},
                                      {"json", no_argument, NULL, OPT_JSON},
                                      {"help", no_argument, NULL, 'h'},
                                      OPTION_END};

static const char help[] =
    "usage: penstock order DATA [options]\n"
    "\n"
    "Print the sample ids of each batch, one line of numbers a batch: what a trainer with the "
    "same\n"
    "values saw, or will see.\n"
    "\n"
    "options:\n"
    "  --epoch E           (0)          --seed S   (0)\n"
    "  --order O           full, sequential (full)\n"
    "  --batch-size B      rows of each rank's batch (64, less for a small data set)\n"
    "  --start-batch K     begin with batch K of the epoch, from 0 (0)\n"
    "  --batches N         that many batches (to the end of the epoch)\n"
    "  --rank R --world W  this rank of so many (0 of 1)\n"
    "  --last L            drop, pad, short: what becomes of an incomplete last batch (drop)\n"
    "  --json              one JSON object: batches, a list of lists\n"
    "\n"
    "examples:\n"
    "  penstock order train --epoch 3 --seed 1 --batch-size 256 --start-batch 1700 --batches 1\n"
    "  penstock order train --rank 1 --world 8 --batches 2\n"
    "\n"
    "exit status: 0; 2 wrong usage or path\n";

static void print_batch(struct json_t *batches, const uint64_t *ids, int64_t n)
{
    struct json_t *row = batches ? json_make_array() : NULL;
    for (int64_t i = 0; i < n; i++) {
        if (row)
            json_append_count(row, ids[i]);
        else
            printf("%s%" PRIu64, i ? " " : "", ids[i]);
    }
    if (row)
        json_append(batches, row);
    else
        putchar('\n');
}

/* Returns 0, an exit status after a message, or -1: a signal came before the last batch. */
static int print_batches(const struct pstk_order_settings *s, const struct pipeline *p, uint64_t n,
                         struct json_t *batches)
{
    uint64_t left = pstk_order_n_batches(s, p->position);
    uint64_t *ids = calloc(p->batch_size, sizeof *ids);
    int64_t r = 0;
    if (!ids)
        message_no_memory();
    if (n > left)
        n = left;
    uint64_t i = 0;
    for (; i < n && r >= 0 && !interrupt_seen() && !ferror(stdout); i++) {
        r = pstk_order_batch(s, p->position + i * p->batch_size * p->world, ids);
        if (r >= 0)
            print_batch(batches, ids, r);
    }
    free(ids);
    if (r < 0) {
        message_say("%s", pstk_strerror((int)r));
        return message_status((int)r);
    }
    return i < n && interrupt_seen() ? -1 : STATUS_OK;
}

static int order(struct pipeline *p, const char *path, uint64_t n, int json)
{
    int status = pipeline_look(p, path);
    if (status)
        return status;
    struct pstk_order_settings s = pipeline_order(p);
    uint64_t whole = pstk_order_n_batches(&s, 0);
    if (p->start_batch > whole)
        return message_usage("--start-batch %" PRIu64 " is past the end: the epoch has %" PRIu64
                             " batches",
                             p->start_batch, whole);
    struct json_t *batches = json ? json_make_array() : NULL;
    status = print_batches(&s, p, n, batches);
    if (status < 0) {
        json_drop(batches);
        return interrupt_say(json ? "nothing was printed" : "not all batches were printed");
    }
    if (!batches || status) {
        json_drop(batches);
        return status ? status : message_finish(STATUS_OK);
    }
    struct json_t *o = json_make_object();
    json_put_count(o, "n_samples", p->info.n_samples);
    json_put_count(o, "n_batches", whole);
    json_put_count(o, "start_batch", p->start_batch);
    json_put(o, "batches", batches);
    return json_print(o, STATUS_OK);
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options o = {.command = self, .table = table, .letters = "", .argc = argc, .argv = argv};
    struct pipeline p;
    uint64_t n = UINT64_MAX;
    int c, json = 0;
    pipeline_init(&p);
    while ((c = options_next(&o)) > 0) {
        int r = 0;
        if (c == OPT_JSON)
            json = 1;
        else if (c == OPT_BATCHES)
            r = option_count("--batches", optarg, (struct range){0, UINT64_MAX}, &n);
        else
            r = pipeline_set(&p, c, optarg);
        if (r < 0)
            return STATUS_USAGE;
    }
    if (c < 0 || options_operands(&o, 1, 1, "DATA") < 0)
        return o.status;
    interrupt_install();
    return order(&p, options_operand(&o, 0), n, json);
}

const struct command command_order = {"order", "print the sample ids of batches", help, run};
