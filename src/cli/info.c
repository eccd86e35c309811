/* SPDX-License-Identifier: Apache-2.0 */
/* info: what a data set holds, from its manifest. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <penstock/format.h>

#include "census.h"
#include "command.h"
#include "json.h"
#include "message.h"
#include "options.h"
#include "text.h"
#include "unit.h"

#define OPT_JSON 256

static const struct option table[] = {
    {"json", no_argument, NULL, OPT_JSON}, {"help", no_argument, NULL, 'h'}, OPTION_END};

static const char help[] =
    "usage: penstock info DATA [--json]\n"
    "\n"
    "Print what a data set holds: samples, shards, bytes, fields; how its images are stored, and\n"
    "how many of its JPEGs come back byte for byte. Reads the manifest alone.\n"
    "\n"
    "examples:\n"
    "  penstock info train\n"
    "  penstock info train --json | jq .n_samples\n"
    "\n"
    "exit status: 0; 1 the manifest is damaged; 2 wrong usage or path, no data set, newer "
    "version\n";

static const struct choice kinds[] = {
    {"bytes", PSTK_FIELD_BYTES},   {"utf8", PSTK_FIELD_UTF8},       {"image", PSTK_FIELD_IMAGE},
    {"scalar", PSTK_FIELD_SCALAR}, {"ndarray", PSTK_FIELD_NDARRAY}, {NULL, 0}};
static const struct choice codecs[] = {
    {"none", PSTK_CODEC_NONE}, {"zstd", PSTK_CODEC_ZSTD}, {"planes", PSTK_CODEC_PLANES}, {NULL, 0}};
static const struct choice encodings[] = {{"jpeg", PSTK_ENCODING_JPEG},
                                          {"png", PSTK_ENCODING_PNG},
                                          {"pixels", PSTK_ENCODING_PIXELS},
                                          {NULL, 0}};

static struct json_t *counts(const uint64_t *n, const struct choice *choices)
{
    struct json_t *o = json_make_object();
    for (; choices->name; choices++)
        if (n[choices->value])
            json_put_count(o, choices->name, n[choices->value]);
    return o;
}

/* The note in the manifest, which says what was done to the images; owned; NULL: none. */
static char *read_note(const char *data)
{
    char *path;
    if (asprintf(&path, "%s/manifest.json", data) < 0)
        message_no_memory();
    char *note = json_file_text(path, "note");
    free(path);
    return note;
}

static struct json_t *field_json(const struct pstk_field *f, const struct pstk_field_stats *s)
{
    struct json_t *o = json_make_object();
    json_put_text(o, "name", f->name);
    json_put_text(o, "kind", option_choice_name(kinds, f->kind));
    if (f->dtype)
        json_put_text(o, "dtype", pstk_dtype_name(f->dtype));
    if (f->n_dims) {
        struct json_t *shape = json_make_array();
        for (uint32_t i = 0; i < f->n_dims; i++)
            json_append_count(shape, f->shape[i]);
        json_put(o, "shape", shape);
    }
    json_put_text(o, "codec", option_choice_name(codecs, f->codec));
    json_put_count(o, "stored_bytes", s->stored_bytes);
    json_put_count(o, "plain_bytes", s->plain_bytes);
    json_put_count(o, "max_stored_size", s->max_stored_size);
    json_put_count(o, "max_plain_size", s->max_plain_size);
    if (f->kind == PSTK_FIELD_IMAGE) {
        json_put_count(o, "max_width", s->max_width);
        json_put_count(o, "max_height", s->max_height);
        json_put(o, "encodings", counts(s->n_encoding, encodings));
        const struct census census = census_of(s);
        struct json_t *images = json_make_object();
        census_put(&census, images);
        json_put(o, "images", images);
    }
    json_put(o, "codecs", counts(s->n_codec, codecs));
    return o;
}

static int print_json(const char *path, const char *note, struct pstk_dataset *d,
                      const struct pstk_dataset_info *info)
{
    struct json_t *o = json_make_object(), *fields = json_make_array(), *classes;
    json_put_text(o, "path", path);
    json_put_count(o, "n_samples", info->n_samples);
    json_put_count(o, "n_shards", info->n_shards);
    json_put_count(o, "bytes", info->bytes);
    json_put_count(o, "format_version", info->format_version);
    json_put_text(o, "identity", info->identity);
    json_put_text(o, "note", note);
    for (uint32_t i = 0; i < info->n_fields; i++) {
        struct pstk_field f;
        struct pstk_field_stats s = {.size = sizeof s};
        if (pstk_dataset_get_field(d, i, &f, &s) == 0)
            json_append(fields, field_json(&f, &s));
    }
    json_put(o, "fields", fields);
    json_put_count(o, "n_classes", info->n_names);
    classes = json_make_array();
    for (uint64_t i = 0; i < info->n_names; i++)
        json_append_text(classes, pstk_dataset_name(d, i));
    json_put(o, "classes", classes);
    return json_print(o, STATUS_OK);
}

/* What is worth knowing of a field beside its kind. */
static void print_details(const struct pstk_field *f, const struct pstk_field_stats *s)
{
    char n[UNIT_SIZE];
    if (f->n_dims) {
        fputs(" [", stdout);
        for (uint32_t i = 0; i < f->n_dims; i++) {
            if (f->shape[i])
                printf("%s%" PRIu64, i ? ", " : "", f->shape[i]);
            else
                printf("%s*", i ? ", " : "");
        }
        fputs("]", stdout);
    }
    for (const struct choice *c = encodings; f->kind == PSTK_FIELD_IMAGE && c->name; c++)
        if (s->n_encoding[c->value])
            printf("  %s %s", unit_count(n, s->n_encoding[c->value]), c->name);
    if (f->kind == PSTK_FIELD_IMAGE)
        printf("  up to %u x %u", s->max_width, s->max_height);
    if (s->n_codec[PSTK_CODEC_ZSTD] || s->n_codec[PSTK_CODEC_PLANES])
        printf("  %s, to %.0f %%", s->n_codec[PSTK_CODEC_ZSTD] ? "zstd" : "planes",
               100.0 * (double)s->stored_bytes / (s->plain_bytes ? (double)s->plain_bytes : 1.0));
}

static void print_field(const struct pstk_field *f, const struct pstk_field_stats *s)
{
    char kind[64], bytes[UNIT_SIZE], most[UNIT_SIZE];
    snprintf(kind, sizeof kind, "%s%s%s", option_choice_name(kinds, f->kind), f->dtype ? " " : "",
             f->dtype ? pstk_dtype_name(f->dtype) : "");
    printf("  %-12s  %-12s  %10s  %10s ", f->name, kind, unit_bytes(bytes, (double)s->stored_bytes),
           unit_bytes(most, (double)s->max_stored_size));
    print_details(f, s);
    putchar('\n');
    if (f->kind == PSTK_FIELD_IMAGE) {
        const struct census census = census_of(s);
        char text[CENSUS_SIZE];
        printf("  %-12s  images: %s\n", "", census_text(&census, text));
    }
}

static void print_line(const char *what, const char *text)
{
    printf("  %-9s ", what);
    text_print(stdout, text);
    putchar('\n');
}

static int print_text(const char *path, const char *note, struct pstk_dataset *d,
                      const struct pstk_dataset_info *info)
{
    char n[UNIT_SIZE], shards[UNIT_SIZE], bytes[UNIT_SIZE];
    text_print(stdout, path);
    printf("\n  samples   %s\n", unit_count(n, info->n_samples));
    if (info->n_names)
        printf("  classes   %s\n", unit_count(n, info->n_names));
    printf("  shards    %s\n", unit_count(shards, info->n_shards));
    printf("  bytes     %s\n", unit_bytes(bytes, (double)info->bytes));
    print_line("identity", info->identity);
    if (note && *note)
        print_line("note", note);
    printf("\n  %-12s  %-12s  %10s  %10s  details\n", "field", "kind", "stored", "largest");
    for (uint32_t i = 0; i < info->n_fields; i++) {
        struct pstk_field f;
        struct pstk_field_stats s = {.size = sizeof s};
        if (pstk_dataset_get_field(d, i, &f, &s) == 0)
            print_field(&f, &s);
    }
    return message_finish(STATUS_OK);
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options o = {.command = self, .table = table, .letters = "", .argc = argc, .argv = argv};
    struct pstk_dataset_info info = {.size = sizeof info};
    struct pstk_dataset *d;
    struct pstk_error err;
    int c, json = 0;
    while ((c = options_next(&o)) > 0)
        json = 1;
    if (c < 0 || options_operands(&o, 1, 1, "DATA") < 0)
        return o.status;
    const char *path = options_operand(&o, 0);
    pstk_error_init(&err, sizeof err);
    if (pstk_dataset_open(&d, path, &err) < 0)
        return message_refuse(&err, path);
    int r = pstk_dataset_get_info(d, &info);
    int status = message_status(r);
    if (r == 0) {
        char *note = read_note(path);
        status = json ? print_json(path, note, d, &info) : print_text(path, note, d, &info);
        free(note);
    }
    pstk_dataset_close(&d);
    return status;
}

const struct command command_info = {"info", "print what a data set holds", help, run};
