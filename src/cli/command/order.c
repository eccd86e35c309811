/* SPDX-License-Identifier: Apache-2.0 */
/* order: prints the sample ids of batches, without reading a record. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "command.h"
#include "command/explain.h"
#include "option/options.h"
#include "option/pipeline.h"
#include "ui/interrupt.h"
#include "ui/json.h"
#include "ui/message.h"
#include "ui/status.h"

enum { OPT_BATCHES = 256, OPT_EXPLAIN, OPT_JSON };

static const struct option_row table[] = {
    PIPELINE_SEED_OPTIONS,
    PIPELINE_ORDER_OPTIONS,
    PIPELINE_DRAW_OPTIONS,
    {.name = "batches",
     .code = OPT_BATCHES,
     .value = "N",
     .initial = "to the end of the epoch",
     .text = "number of batches to print"},
    {.name = "explain",
     .code = OPT_EXPLAIN,
     .text = "print, in place of ids, what the order means for rank R of W: how it mixes samples, "
             "how often it reads each of them, its memory and its batches"},
    FIELDS_OPTIONS,
    OPTION_JSON("print one JSON object: batches, a list of lists; with --explain the numbers"),
    OPTION_END};

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

/* Print the batches. Returns 0, an exit status after a message, or -1 when a signal came before the
 * last batch. */
static int print_batches(const struct pstk_order_settings *s, const struct pipeline *pipeline,
                         uint64_t n, struct json_t *batches)
{
    uint64_t left = pstk_order_n_batches(s, pipeline->position);
    uint64_t *ids = calloc(pipeline->batch_size, sizeof *ids);
    int64_t r = 0;
    if (!ids)
        message_no_memory();
    if (n > left)
        n = left;
    uint64_t i = 0;
    for (; i < n && r >= 0 && !interrupt_seen() && !ferror(stdout); i++) {
        r = pipeline_batch(pipeline, s, pipeline->position + i * pipeline_global_batch(pipeline),
                           ids);
        if (r >= 0)
            print_batch(batches, ids, r);
    }
    free(ids);
    if (r < 0) {
        message_say("%s", pstk_strerror((int)r));
        return status_of_code((int)r);
    }
    return i < n && interrupt_seen() ? -1 : STATUS_OK;
}

static int order(struct pipeline *pipeline, const char *path, uint64_t n, int json)
{
    int status = pipeline_look(pipeline, path);
    if (status)
        return status;
    pipeline_say_left_out(pipeline);
    struct pstk_order_settings s = pipeline_order(pipeline);
    uint64_t whole = pstk_order_n_batches(&s, 0);
    if (pipeline->start_batch > whole)
        return message_usage("--start-batch: value is %" PRIu64 "; must be at most %" PRIu64
                             ", the batches of the epoch",
                             pipeline->start_batch, whole);
    if (whole == 0)
        pipeline_say_too_few(pipeline);
    struct json_t *batches = json ? json_make_array() : NULL;
    status = print_batches(&s, pipeline, n, batches);
    if (status < 0) {
        json_drop(batches);
        return interrupt_say(json ? "nothing was printed" : "not all batches were printed");
    }
    if (!batches || status) {
        json_drop(batches);
        return status ? status : message_finish(STATUS_OK);
    }
    struct json_t *object = json_make_object();
    json_put_count(object, "n_samples", pipeline->n_samples);
    json_put_count(object, "n_batches", whole);
    json_put_count(object, "start_batch", pipeline->start_batch);
    json_put(object, "batches", batches);
    return json_print(object, STATUS_OK);
}

static int explain_order(struct pipeline *pipeline, const char *path, uint64_t n, int json)
{
    if (n != UINT64_MAX || pipeline->start_batch)
        return message_usage("--explain: cannot be given together with --batches or --start-batch");
    const int status = pipeline_look(pipeline, path);
    return status ? status : explain_print(pipeline, json);
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options options = {.command = self, .argc = argc, .argv = argv};
    struct pipeline pipeline;
    uint64_t n = UINT64_MAX;
    int c, json = 0, explain = 0;
    pipeline_init(&pipeline);
    while ((c = options_next(&options)) > 0) {
        int r = 0;
        if (c == OPT_JSON)
            json = 1;
        else if (c == OPT_EXPLAIN)
            explain = 1;
        else if (c == OPT_BATCHES)
            r = option_count("--batches", optarg, (struct range){0, UINT64_MAX}, &n);
        else
            r = pipeline_set(&pipeline, c, optarg);
        if (r < 0) {
            pipeline_free(&pipeline);
            return STATUS_USAGE;
        }
    }
    int status;
    if (c == 0 && options_operands(&options, 1, 1, "DATA") == 0) {
        interrupt_install();
        status = explain ? explain_order(&pipeline, options_operand(&options, 0), n, json)
                         : order(&pipeline, options_operand(&options, 0), n, json);
    } else {
        status = options.status;
    }
    pipeline_free(&pipeline);
    return status;
}

const struct command command_order = {
    .name = "order",
    .summary = "print the sample ids of batches",
    .operands = "DATA",
    .text = "Print the sample ids of each batch, one line of numbers a batch: what a trainer with "
            "the same values saw, or will see. With --explain: print what the order costs.\n",
    .options = table,
    .examples =
        "penstock order train --epoch 3 --seed 1 --batch-size 8 --start-batch 1 --batches 1\n"
        "penstock order train --rank 1 --world 8 --batches 2\n"
        "penstock order train --order windowed --world 8 --explain\n"
        "penstock order train --subset fraction:0.8..1:seed=1 --batches 1\n"
        "penstock order train --balanced cls --batches 1\n",
    .exit_status = "0; 2 wrong usage or path",
    .run = run,
};
