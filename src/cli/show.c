/* SPDX-License-Identifier: Apache-2.0 */
/* show: what a trainer will see, through the loader itself, as a picture. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <penstock/penstock.h>

#include "command.h"
#include "consumer.h"
#include "interrupt.h"
#include "json.h"
#include "message.h"
#include "options.h"
#include "pipeline.h"
#include "sheet.h"
#include "text.h"

#define MAX_IDS 65536

enum { OPT_IDS = 256, OPT_JSON };

static const struct option table[] = {PIPELINE_IMAGE_OPTIONS,
                                      PIPELINE_SEED_OPTIONS,
                                      PIPELINE_ORDER_OPTIONS,
                                      PIPELINE_RUN_OPTIONS,
                                      {"ids", required_argument, NULL, OPT_IDS},
                                      {"output", required_argument, NULL, 'o'},
                                      {"json", no_argument, NULL, OPT_JSON},
                                      {"help", no_argument, NULL, 'h'},
                                      OPTION_END};

static const char help[] =
    "usage: penstock show DATA --ids IDS -o FILE.png [options]\n"
    "\n"
    "Write a picture of what a trainer will see. Several ids make a contact sheet; one id gives\n"
    "exactly the pixels of that sample.\n"
    "\n"
    "options:\n"
    "  --ids IDS           sample ids, from 0: 7, or 0..15, or 3,5,8..11 (0..15)\n"
    "  -o, --output FILE   PNG file, - for standard output; a file that is there is replaced when\n"
    "                      the new one is whole\n"
    "  --size N            pixels of both sides (224)\n"
    "  --crop C            random, center, none, as in bench (random)\n"
    "  --flip P            flip with this probability (0.5 with random crops, else 0)\n"
    "  --seed S --epoch E  whose crops (0, 0)\n"
    "  --threads, --slots, --reader, --io, --device, --variant, --on-bad   as in bench\n"
    "  --batch-size, --start-batch, --order, --rank, --world, --last   taken and without effect:\n"
    "                      what becomes of a sample does not depend on where it comes\n"
    "  --json              print one JSON object: crop [top, left, height, width] and flip; of\n"
    "                      several ids a list of them, samples\n"
    "\n"
    "examples:\n"
    "  penstock show train --ids 0..15 -o sheet.png\n"
    "  penstock show train --ids 1700 --crop center -o 1700.png --json\n"
    "\n"
    "exit status: 0; 1 damaged data, or a picture that cannot be written; 2 wrong usage or path\n";

struct show {
    struct pipeline pipeline;
    const char *ids_text;
    const char *output; /* NULL: none */
    int json;
    uint64_t *ids; /* owned */
    uint64_t n_ids;
    struct sheet sheet;
    struct json_t *samples; /* owned; NULL without --json */
    struct consumer consumer;
};

static int set_option(struct show *s, int code, const char *value)
{
    switch (code) {
    case OPT_IDS:
        s->ids_text = value;
        return 0;
    case 'o':
        s->output = value;
        return 0;
    case OPT_JSON:
        s->json = 1;
        return 0;
    default:
        return pipeline_set(&s->pipeline, code, value);
    }
}

/* Read an id below n at *text; moves *text behind it. */
static int read_id(const char **text, uint64_t n, uint64_t *out)
{
    char digits[24];
    size_t length = strspn(*text, "0123456789");
    if (length == 0 || length >= sizeof digits) {
        message_say("--ids is a list such as 3,5,8..11, not '%s'", *text);
        return -1;
    }
    memcpy(digits, *text, length);
    digits[length] = 0;
    *text += length;
    return option_count("--ids", digits, (struct range){0, n - 1}, out);
}

static int parse_ids(struct show *s, uint64_t n)
{
    const char *text = s->ids_text;
    s->ids = calloc(MAX_IDS, sizeof *s->ids);
    if (!s->ids)
        message_no_memory();
    for (;;) {
        uint64_t first, last;
        if (read_id(&text, n, &first) < 0)
            return STATUS_USAGE;
        last = first;
        if (strncmp(text, "..", 2) == 0) {
            text += 2;
            if (read_id(&text, n, &last) < 0)
                return STATUS_USAGE;
        }
        if (last < first || last - first >= MAX_IDS - s->n_ids)
            return message_usage("--ids: %s", last < first ? "a range counts upwards"
                                                           : "these are more than 65536");
        for (uint64_t id = first; id <= last; id++)
            s->ids[s->n_ids++] = id;
        if (!*text)
            return 0;
        if (*text++ != ',')
            return message_usage("--ids is a list such as 3,5,8..11, not '%s'", s->ids_text);
    }
}

static struct json_t *sample_json(const struct show *s, const struct pstk_batch *b)
{
    struct json_t *o = json_make_object(), *crop = json_make_array(), *size = json_make_array();
    const struct pstk_crop *c = &b->crops[0];
    json_put_count(o, "id", b->sample_ids[0]);
    if (b->n_replaced)
        json_put_count(o, "substitute_id", b->substitute_ids[0]);
    json_append_count(crop, (uint64_t)c->top);
    json_append_count(crop, (uint64_t)c->left);
    json_append_count(crop, (uint64_t)c->height);
    json_append_count(crop, (uint64_t)c->width);
    json_append_count(size, c->image_height);
    json_append_count(size, c->image_width);
    json_put(o, "crop", crop);
    json_put_bool(o, "flip", c->flip != 0);
    json_put(o, "image_size", size);
    json_put_count(o, "size", s->pipeline.size);
    json_put_text(o, "output", s->output);
    return o;
}

static int put_picture(struct show *s, uint64_t i, const struct pstk_batch *batch,
                       struct pstk_error *err)
{
    const uint64_t side = s->sheet.side;
    consumer_warn(&s->consumer, batch);
    const void *pixels = consumer_rows(&s->consumer, batch, 0, side * side * 3, err);
    if (!pixels)
        return message_refuse(err, NULL);
    sheet_put(&s->sheet, i, pixels);
    if (s->samples)
        json_append(s->samples, sample_json(s, batch));
    return 0;
}

/* Fetch ids one by one: batches of one row, in sequential order, so that position = id. */
static int fetch(struct show *s, struct pstk_loader *loader)
{
    struct pstk_error err;
    struct pstk_batch *batch;
    void *stream = s->consumer.stream;
    int status = 0;
    pstk_error_init(&err, sizeof err);
    for (uint64_t i = 0; i < s->n_ids && status == 0; i++) {
        if (interrupt_seen())
            return interrupt_say("no picture was written");
        int r = pstk_seek(loader, s->pipeline.epoch, s->ids[i], &err);
        if (r == 0)
            r = pstk_next(loader, &batch, stream, -1, &err);
        if (r == PSTK_EINTR && interrupt_seen())
            return interrupt_say("no picture was written");
        if (r < 0)
            return message_refuse(&err, NULL);
        if (r == 0 || batch->n_valid != 1 || batch->sample_ids[0] != s->ids[i]) {
            message_say("sample %" PRIu64 " did not come; please report this", s->ids[i]);
            return STATUS_DAMAGED;
        }
        status = put_picture(s, i, batch, &err);
        pstk_release(&batch, stream);
    }
    return status;
}

static int fetch_all(struct show *s)
{
    struct pstk_loader *loader;
    struct pstk_error err;
    int status = pipeline_open(&s->pipeline, &loader);
    if (status)
        return status;
    pstk_error_init(&err, sizeof err);
    if (consumer_open(&s->consumer, loader, s->pipeline.device, &err) < 0)
        status = message_refuse(&err, NULL);
    else
        status = fetch(s, loader);
    consumer_close(&s->consumer);
    pipeline_close(&loader);
    return status;
}

static int report(struct show *s)
{
    if (!s->json) {
        text_print(stdout, s->output);
        if (s->n_ids == 1)
            printf(": sample %" PRIu64 ", %u x %u pixels\n", s->ids[0], s->sheet.width,
                   s->sheet.height);
        else
            printf(": %" PRIu64 " samples in %u rows of %u, %u x %u pixels\n", s->n_ids,
                   s->sheet.n_rows, s->sheet.n_columns, s->sheet.width, s->sheet.height);
        return message_finish(STATUS_OK);
    }
    struct json_t *o;
    if (s->n_ids == 1) {
        o = json_take_first(s->samples);
    } else {
        o = json_make_object();
        json_put_text(o, "output", s->output);
        json_put(o, "samples", s->samples);
    }
    s->samples = NULL;
    return json_print(o, STATUS_OK);
}

static int show(struct show *s, const char *path)
{
    struct pipeline *p = &s->pipeline;
    int status = pipeline_look(p, path);
    if (status)
        return status;
    char all[32];
    if (!s->ids_text) {
        uint64_t last = p->info.n_samples < 16 ? p->info.n_samples - 1 : 15;
        snprintf(all, sizeof all, "0..%" PRIu64, last);
        s->ids_text = all;
    }
    status = parse_ids(s, p->info.n_samples);
    if (status == 0)
        status = pipeline_build(p, 1);
    if (status == 0)
        status = sheet_open(&s->sheet, p->size, s->n_ids);
    if (status)
        return status;
    p->settings.batch_size = 1;
    p->settings.rank = 0;
    p->settings.world = 1;
    p->settings.last = PSTK_LAST_SHORT;
    p->settings.order = PSTK_ORDER_SEQUENTIAL;
    p->settings.position = s->ids[0];
    p->settings.with_crops = 1;
    if (s->json)
        s->samples = json_make_array();
    status = fetch_all(s);
    if (status == 0 && s->output)
        status = sheet_write(&s->sheet, s->output);
    if (status)
        return status;
    return s->output && strcmp(s->output, "-") == 0 ? message_finish(STATUS_OK) : report(s);
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options o = {
        .command = self, .table = table, .letters = "o:", .argc = argc, .argv = argv};
    struct show s = {.output = NULL};
    int c;
    pipeline_init(&s.pipeline);
    while ((c = options_next(&o)) > 0)
        if (set_option(&s, c, optarg) < 0)
            return STATUS_USAGE;
    if (c < 0 || options_operands(&o, 1, 1, "DATA") < 0)
        return o.status;
    if (!s.output && !s.json)
        return message_usage("show needs -o FILE.png to write to");
    if (s.output && strcmp(s.output, "-") == 0 && s.json)
        return message_usage("the picture and --json cannot both go to standard output");
    if (s.pipeline.dtype != PSTK_U8)
        return message_usage("a picture has 8-bit pixels: show takes only --dtype u8");
    s.pipeline.layout = PSTK_NHWC; /* a layout changes no pixel */
    interrupt_install();
    int status = show(&s, options_operand(&o, 0));
    free(s.ids);
    sheet_close(&s.sheet);
    json_drop(s.samples);
    return status;
}

const struct command command_show = {"show", "write a picture of what a trainer will see", help,
                                     run};
