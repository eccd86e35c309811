/* SPDX-License-Identifier: Apache-2.0 */
/* show: draws the pictures that a trainer will see, through the loader itself. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <penstock/penstock.h>

#include "command.h"
#include "command/consumer.h"
#include "command/shapes.h"
#include "option/options.h"
#include "option/pipeline.h"
#include "ui/interrupt.h"
#include "ui/json.h"
#include "ui/message.h"
#include "ui/sheet.h"
#include "ui/status.h"
#include "ui/text.h"

#define N_SHOWN 16 /* samples without --ids */
#define MAX_IDS 65536
#define DEFAULT_OUTPUT "penstock-show.png" /* our own name: replacing the file loses nothing */

enum { OPT_IDS = 256, OPT_JSON, OPT_PLAIN, OPT_RECIPE };

static const struct option_row table[] = {
    {.name = "ids",
     .code = OPT_IDS,
     .value = "IDS",
     .initial = "0..15, or of a subset the first 16",
     .text = "sample ids, from 0: 7, or 0..15, or 3,5,8..11"},
    {.name = "output",
     .code = 'o',
     .value = "FILE",
     .initial = "penstock-show.png; with --json none",
     .text =
         "PNG file to write, - for standard output; an existing file is replaced when the new one "
         "is complete; a symbolic link is followed; a device or FIFO is written to directly"},
    {.name = "plain",
     .code = OPT_PLAIN,
     .text = "show only the pixels of the samples: no ids, no names of classes, no masks, boxes, "
             "polygons and keypoints"},
    {.name = "recipe",
     .code = OPT_RECIPE,
     .value = "NAME",
     .text =
         "one sample and 15 of its augmentations by a recipe of the Python package, which draws "
         "them: python3 -m penstock show DATA --recipe NAME"},
    OPTION_JSON("print one JSON object: crop [top, left, height, width] and flip; of several ids a "
                "list of them, samples"),
    FIELDS_OPTIONS,
    FIELDS_DAMAGED_OPTION,
    PIPELINE_IMAGE_OPTIONS,
    {.text = "whose crops"},
    PIPELINE_SEED_OPTIONS,
    PIPELINE_RUN_OPTIONS,
    {.text = "no effect: the picture of a sample does not depend on its place in the order"},
    PIPELINE_ORDER_OPTIONS,
    OPTION_END};

struct show {
    struct pipeline pipeline;
    const char *ids_text;
    const char *output; /* NULL: no picture, with --json only */
    int json;
    int plain;     /* 1: draw only pixels */
    uint64_t *ids; /* owned */
    uint64_t n_ids;
    struct sheet sheet;
    struct shapes shapes;   /* targets of a picture that is not plain */
    struct json_t *samples; /* owned; NULL without --json */
    struct consumer consumer;
};

static int set_option(struct show *show, int code, const char *value)
{
    switch (code) {
    case OPT_IDS:
        show->ids_text = value;
        return 0;
    case 'o':
        show->output = value;
        return 0;
    case OPT_JSON:
        show->json = 1;
        return 0;
    case OPT_PLAIN:
        show->plain = 1;
        return 0;
    case OPT_RECIPE:
        message_say("--recipe: recipes belong to the Python package; run python3 -m penstock show, "
                    "with the same arguments");
        return -1;
    default:
        return pipeline_set(&show->pipeline, code, value);
    }
}

/* Read an id below n at *text and move *text past it. */
static int read_id(const char **text, uint64_t n, uint64_t *out)
{
    char digits[24];
    size_t length = strspn(*text, "0123456789");
    if (length == 0 || length >= sizeof digits) {
        message_say("--ids: value is '%s'; must be a list such as 3,5,8..11", *text);
        return -1;
    }
    memcpy(digits, *text, length);
    digits[length] = 0;
    *text += length;
    return option_count("--ids", digits, (struct range){0, n - 1}, out);
}

static int parse_ids(struct show *show, uint64_t n)
{
    const char *text = show->ids_text;
    show->ids = calloc(MAX_IDS, sizeof *show->ids);
    if (!show->ids)
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
        if (last < first || last - first >= MAX_IDS - show->n_ids)
            return message_usage("--ids: value is '%s'; must be %s", show->ids_text,
                                 last < first ? "ranges that count upwards"
                                              : "at most 65536 ids (name fewer)");
        for (uint64_t id = first; id <= last; id++)
            show->ids[show->n_ids++] = id;
        if (!*text)
            return 0;
        if (*text++ != ',')
            return message_usage("--ids: value is '%s'; must be a list such as 3,5,8..11",
                                 show->ids_text);
    }
}

static struct json_t *sample_json(const struct show *show, const struct pstk_batch *batch)
{
    struct json_t *object = json_make_object(), *crop = json_make_array(),
                  *size = json_make_array();
    const struct pstk_crop *c = &batch->crops[0];
    json_put_count(object, "id", batch->sample_ids[0]);
    if (batch->n_replacements)
        json_put_count(object, "replacement_id", batch->replacement_ids[0]);
    json_append_count(crop, (uint64_t)c->top);
    json_append_count(crop, (uint64_t)c->left);
    json_append_count(crop, (uint64_t)c->height);
    json_append_count(crop, (uint64_t)c->width);
    json_append_count(size, c->image_height);
    json_append_count(size, c->image_width);
    json_put(object, "crop", crop);
    json_put_bool(object, "flip", c->flip != 0);
    json_put(object, "image_size", size);
    json_put_count(object, "size", show->pipeline.size);
    json_put_text(object, "output", show->output);
    return object;
}

static int put_picture(struct show *show, uint64_t i, const struct pstk_batch *batch,
                       struct pstk_error *err)
{
    const uint64_t side = show->sheet.side;
    consumer_warn(&show->consumer, batch);
    const void *pixels = consumer_rows(&show->consumer, batch, 0, side * side * 3, err);
    if (!pixels)
        return status_refuse(err, NULL);
    sheet_put(&show->sheet, i, pixels);
    if (!show->plain) {
        const struct area picture = sheet_picture(&show->sheet, i);
        const struct area line = sheet_line(&show->sheet, i);
        int r = shapes_draw(&show->shapes, &show->consumer, batch, &picture, err);
        if (r == 0)
            r = shapes_write(&show->shapes, &show->consumer, batch, &line, err);
        if (r < 0)
            return status_refuse(err, NULL);
    }
    if (show->samples)
        json_append(show->samples, sample_json(show, batch));
    return 0;
}

/* Take the first samples of the subset. Returns 0 or an exit status. */
static int take_members(struct show *show)
{
    const struct pipeline *pipeline = &show->pipeline;
    if (show->ids_text)
        return message_usage("--ids: cannot be given together with --subset");
    show->n_ids = pipeline->n_samples < N_SHOWN ? pipeline->n_samples : N_SHOWN;
    show->ids = calloc(N_SHOWN, sizeof *show->ids);
    if (!show->ids)
        message_no_memory();
    return pstk_members_ids(pipeline->members, 0, show->n_ids, show->ids) == 0 ? 0 : STATUS_DAMAGED;
}

/* Fetch ids one by one, in batches of one row in sequential order, so that position = id; for a
 * subset, fetch its first positions. */
static int fetch(struct show *show, struct pstk_loader *loader)
{
    struct pstk_error err;
    struct pstk_batch *batch;
    void *stream = show->consumer.stream;
    int status = 0;
    pstk_error_init(&err, sizeof err);
    for (uint64_t i = 0; i < show->n_ids && status == 0; i++) {
        if (interrupt_seen())
            return interrupt_say("no picture was written");
        const uint64_t position = show->pipeline.members ? i : show->ids[i];
        int r = pstk_seek(loader, show->pipeline.epoch, position, &err);
        if (r == 0)
            r = pstk_next(loader, &batch, stream, -1, &err);
        if (r == PSTK_EINTR && interrupt_seen())
            return interrupt_say("no picture was written");
        if (r < 0)
            return status_refuse(&err, NULL);
        if (r == 0 || batch->n_valid != 1 || batch->sample_ids[0] != show->ids[i]) {
            message_say("the loader did not return sample %" PRIu64 "; please report this",
                        show->ids[i]);
            return STATUS_DAMAGED;
        }
        status = put_picture(show, i, batch, &err);
        pstk_release(&batch, stream);
    }
    return status;
}

static int fetch_all(struct show *show)
{
    struct pstk_loader *loader;
    struct pstk_error err;
    int status = pipeline_open(&show->pipeline, &loader);
    if (status)
        return status;
    pstk_error_init(&err, sizeof err);
    if (consumer_open(&show->consumer, loader, show->pipeline.device, &err) < 0)
        status = status_refuse(&err, NULL);
    else
        status = fetch(show, loader);
    consumer_close(&show->consumer);
    pipeline_close(&loader);
    return status;
}

static int report(struct show *show)
{
    if (!show->json) {
        text_print(stdout, show->output);
        if (show->n_ids == 1)
            printf(": sample %" PRIu64 ", %u x %u pixels\n", show->ids[0], show->sheet.width,
                   show->sheet.height);
        else
            printf(": %" PRIu64 " samples in %u rows of %u, %u x %u pixels\n", show->n_ids,
                   show->sheet.n_rows, show->sheet.n_columns, show->sheet.width,
                   show->sheet.height);
        return message_finish(STATUS_OK);
    }
    struct json_t *object;
    if (show->n_ids == 1) {
        object = json_take_first(show->samples);
    } else {
        object = json_make_object();
        json_put_text(object, "output", show->output);
        json_put(object, "samples", show->samples);
    }
    show->samples = NULL;
    return json_print(object, STATUS_OK);
}

static int show(struct show *s, const char *path)
{
    struct pipeline *pipeline = &s->pipeline;
    int status = pipeline_look(pipeline, path);
    if (status)
        return status;
    pipeline_say_left_out(pipeline);
    char all[32];
    if (!s->ids_text && !pipeline->members) {
        uint64_t last = pipeline->n_samples < N_SHOWN ? pipeline->n_samples - 1 : N_SHOWN - 1;
        snprintf(all, sizeof all, "0..%" PRIu64, last);
        s->ids_text = all;
    }
    status = pipeline->members ? take_members(s) : parse_ids(s, pipeline->n_samples);
    if (status == 0)
        status = pipeline_build(pipeline, 1);
    if (status == 0)
        status = sheet_open(&s->sheet, pipeline->size, s->plain ? 0 : SHEET_LINE, s->n_ids);
    if (status == 0 && !s->plain)
        status = shapes_open(&s->shapes, pipeline);
    if (status)
        return status;
    pipeline->settings.batch_size = 1;
    pipeline->settings.global_batch_size = pipeline->settings.order.uneven = 0;
    pipeline->settings.ranks.rank = 0;
    pipeline->settings.ranks.world = 1;
    pipeline->settings.last_batch = PSTK_LAST_SHORT;
    pipeline->settings.order.kind = PSTK_ORDER_SEQUENTIAL;
    pipeline->settings.order.ways = pipeline->settings.order.block =
        pipeline->settings.order.window = 0;
    pipeline->settings.order.position = pipeline->members ? 0 : s->ids[0];
    pipeline->settings.observe.report_crops = 1;
    if (s->json)
        s->samples = json_make_array();
    status = fetch_all(s);
    if (status == 0 && s->output)
        status = sheet_write(&s->sheet, s->output);
    if (status)
        return status;
    return s->output && strcmp(s->output, "-") == 0 ? message_finish(STATUS_OK) : report(s);
}

/* Return the end of a file's name that names another image format, or NULL. */
static const char *other_kind(const char *path)
{
    static const char *const others[] = {".jpg", ".jpeg", ".gif", ".webp", ".bmp",
                                         ".tif", ".tiff", ".svg", ".pdf"};
    const char *suffix = strrchr(path, '.');
    for (size_t i = 0; suffix && i < sizeof others / sizeof *others; i++)
        if (strcasecmp(suffix, others[i]) == 0)
            return others[i];
    return NULL;
}

/* Read the options, then show the samples. Returns an exit status. */
static int run_show(struct show *s, struct options *options)
{
    int c;
    while ((c = options_next(options)) > 0)
        if (set_option(s, c, optarg) < 0)
            return STATUS_USAGE;
    if (c < 0 || options_operands(options, 1, 1, "DATA") < 0)
        return options->status;
    if (!s->output && !s->json)
        s->output = DEFAULT_OUTPUT;
    s->plain |= !s->output; /* no picture to draw on */
    if (s->output && other_kind(s->output))
        return message_usage(
            "--output: value is '%s'; must not end in %s, because the picture is a "
            "PNG (choose a name that ends in .png)",
            s->output, other_kind(s->output));
    if (s->output && strcmp(s->output, "-") == 0 && isatty(STDOUT_FILENO))
        return message_usage("--output: value is -; must be a file, for standard output is a "
                             "terminal (name a file, or write into a pipe)");
    if (s->output && strcmp(s->output, "-") == 0 && s->json)
        return message_usage(
            "--output: value is -; must be a file with --json, which prints there");
    if (s->pipeline.dtype != PSTK_U8)
        return message_usage("--dtype: value is '%s'; must be u8 (a picture has 8-bit pixels)",
                             option_choice_name(pipeline_dtypes, s->pipeline.dtype));
    s->pipeline.layout = PSTK_NHWC; /* the layout changes no pixel */
    interrupt_install();
    return show(s, options_operand(options, 0));
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options options = {.command = self, .argc = argc, .argv = argv};
    struct show s = {.output = NULL};
    pipeline_init(&s.pipeline);
    int status = run_show(&s, &options);
    free(s.ids);
    sheet_close(&s.sheet);
    shapes_close(&s.shapes);
    json_drop(s.samples);
    pipeline_free(&s.pipeline);
    return status;
}

const struct command command_show = {
    .name = "show",
    .summary = "write a picture of what a trainer will see",
    .operands = "DATA",
    .text = "Write a picture of what a trainer will see, and print where. Several ids make a "
            "contact sheet. Below each sample are its id and the name of its class. The first "
            "mask, boxes, polygons and keypoints of the data set that belong to the image are "
            "drawn in, boxes in the colour of their class, with its name. --plain leaves all of "
            "this out; one id then gives exactly the pixels of that sample.\n",
    .options = table,
    .examples = "penstock show train\n"
                "penstock show train --ids 0..63 --size 96 -o sheet.png\n"
                "penstock show train --ids 7 --crop center --plain -o 7.png --json\n",
    .exit_status = "0; 1 damaged data, or a picture that cannot be written; 2 wrong usage or path",
    .run = run,
};
