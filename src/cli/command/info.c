/* SPDX-License-Identifier: Apache-2.0 */
/* info: prints the contents of a data set, from its manifest. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <penstock/format.h>

#include "command.h"
#include "command/census.h"
#include "command/labels.h"
#include "command/passthrough.h"
#include "names.h"
#include "option/files.h"
#include "option/ignored.h"
#include "option/opening.h"
#include "option/options.h"
#include "option/role.h"
#include "ui/json.h"
#include "ui/message.h"
#include "ui/status.h"
#include "ui/text.h"
#include "ui/unit.h"

/* Maximum samples that are counted by class without --counts, because reading more labels takes a
 * moment. */
#define COUNTED_UNASKED 10000
#define LISTED 20 /* files without --all */

enum { OPT_COUNTS = 256, OPT_PASSTHROUGH, OPT_ALL, OPT_JSON };

static const struct option_row table[] = {
    {.name = "counts",
     .code = OPT_COUNTS,
     .text = "count the samples of each class, however many there are: read every label"},
    {.name = "passthrough",
     .code = OPT_PASSTHROUGH,
     .text = "list the JPEGs that are not stored as planes, and why: read the head of every "
             "record, and encode those JPEGs once more"},
    {.name = "all", .code = OPT_ALL, .text = "list all classes and files, not the first 20"},
    FIELDS_OPTIONS,
    OPTION_JSON("print one JSON object, with all classes and files"),
    OPTION_END};

struct info {
    const char *path;
    const struct fields *fields;              /* options that it was opened with */
    int counts, lists_passthrough, all, json; /* options */

    struct pstk_dataset *dataset;
    struct pstk_dataset_info info;
    struct json_t *manifest;  /* owned; NULL: none */
    struct pstk_error damage; /* code 0: no damage was found */
    struct labels labels;
    struct passthrough passthrough;
    uint64_t n_listed;     /* kept JPEGs, including those past the limit LISTED */
    struct json_t *listed; /* owned; NULL without --json and --passthrough */
};

/* The lowest encoding of images. NONE, below it, is the encoding of other fields. */
#define ENCODING_MIN (PSTK_ENCODING_NONE + 1)

/* Return an object of the non-zero counts n[value], for the values from `min` on. */
static struct json_t *counts(const uint64_t *n, const struct choice *choices, uint32_t min)
{
    struct json_t *object = json_make_object();
    for (; choices->name; choices++)
        if (choices->value >= min && n[choices->value])
            json_put_count(object, choices->name, n[choices->value]);
    return object;
}

/* Return the manifest, for its note and its part; owned. NULL: none. */
static struct json_t *read_manifest(const char *data)
{
    char *path;
    if (asprintf(&path, "%s/manifest.json", data) < 0)
        message_no_memory();
    struct json_t *manifest = json_read(path);
    free(path);
    return manifest;
}

/* Put which part of a data set this is; nothing if it is whole. */
static void put_part(const struct json_t *manifest, struct json_t *object)
{
    const uint64_t n_parts = json_count(manifest, "n_parts", 1);
    if (n_parts > 1) {
        json_put_count(object, "part", json_count(manifest, "part", 0));
        json_put_count(object, "n_parts", n_parts);
        if (json_text(manifest, "pack")) /* parts of earlier versions have none */
            json_put_text(object, "pack_id", json_text(manifest, "pack"));
    } else if (n_parts == 0) {
        json_put_text(object, "pack_id", json_text(manifest, "pack"));
        json_put_text(object, "task", json_text(manifest, "task"));
        json_put_count(object, "attempt", json_count(manifest, "attempt", 0));
    }
}

static void print_part(const struct json_t *manifest)
{
    const uint64_t n_parts = json_count(manifest, "n_parts", 1);
    if (n_parts > 1)
        printf("  part      %" PRIu64 " of %" PRIu64 " (0 to %" PRIu64
               "); `penstock merge` joins them\n",
               json_count(manifest, "part", 0), n_parts, n_parts - 1);
    else if (n_parts == 0)
        printf("  task      %s, attempt %" PRIu64 "; `penstock merge` joins the parts\n",
               json_text(manifest, "task"), json_count(manifest, "attempt", 0));
    if (n_parts != 1 && json_text(manifest, "pack"))
        printf("  pack id   %s\n", json_text(manifest, "pack"));
}

/* An attribute of a field's values, beyond their kind. */
struct attribute {
    const char *key, *value; /* value "": the field lacks it */
};

#define N_ATTRIBUTES 5

static void find_attributes(const struct pstk_field *field, struct attribute out[N_ATTRIBUTES])
{
    const struct attribute found[N_ATTRIBUTES] = {
        {"of", field->of},
        {"rows", field->rows},
        {"splits", field->splits},
        {"form", field->box_format ? option_choice_name(names_box_format, field->box_format) : ""},
        {"coordinates",
         field->coordinates ? option_choice_name(names_coordinates, field->coordinates) : ""},
    };
    memcpy(out, found, sizeof found);
}

static struct json_t *field_json(const struct pstk_field *field,
                                 const struct pstk_field_stats *stats)
{
    struct json_t *object = json_make_object();
    json_put_text(object, "name", field->name);
    json_put_text(object, "kind", option_choice_name(names_field_kind, field->kind));
    if (field->dtype)
        json_put_text(object, "dtype", pstk_dtype_name(field->dtype));
    if (field->n_dims) {
        struct json_t *shape = json_make_array();
        for (uint32_t i = 0; i < field->n_dims; i++)
            json_append_count(shape, field->shape[i]);
        json_put(object, "shape", shape);
    }
    struct attribute attributes[N_ATTRIBUTES];
    find_attributes(field, attributes);
    for (size_t i = 0; i < N_ATTRIBUTES; i++)
        if (attributes[i].value[0])
            json_put_text(object, attributes[i].key, attributes[i].value);
    json_put_text(object, "codec", option_choice_name(names_codec, field->codec));
    json_put_count(object, "stored_bytes", stats->stored_bytes);
    json_put_count(object, "plain_bytes", stats->plain_bytes);
    json_put_count(object, "max_stored_size", stats->max_stored_size);
    json_put_count(object, "max_plain_size", stats->max_plain_size);
    json_put_count(object, "n_absent", stats->n_absent);
    if (field->kind == PSTK_FIELD_IMAGE || field->kind == PSTK_FIELD_MASK) {
        json_put_count(object, "max_width", stats->max_width);
        json_put_count(object, "max_height", stats->max_height);
        json_put(object, "encodings", counts(stats->n_encoding, names_encoding, ENCODING_MIN));
    }
    if (field->kind == PSTK_FIELD_IMAGE) {
        const struct census census = census_of(stats);
        struct json_t *images = json_make_object();
        census_put(&census, images);
        json_put(object, "images", images);
    }
    json_put(object, "codecs", counts(stats->n_codec, names_codec, PSTK_CODEC_NONE));
    return object;
}

/* Return a list of the side columns. */
static struct json_t *columns_json(const struct pstk_dataset *dataset)
{
    struct json_t *columns = json_make_array();
    struct pstk_column_info info = {.size = sizeof info};
    for (uint32_t i = 0; pstk_dataset_get_column_info(dataset, i, &info) == 0; i++) {
        struct json_t *object = json_make_object();
        json_put_text(object, "name", info.name);
        json_put_text(object, "dtype", pstk_dtype_name(info.dtype));
        json_put_text(object, "fact", option_choice_name(names_column_fact, info.fact));
        json_put_count(object, "bytes", info.bytes);
        json_append(columns, object);
    }
    return columns;
}

static int print_json(struct info *all)
{
    const struct pstk_dataset_info *info = &all->info;
    const struct pstk_dataset *dataset = all->dataset;
    struct json_t *object = json_make_object(), *fields = json_make_array(), *classes;
    json_put_text(object, "path", all->path);
    json_put_count(object, "n_samples", info->n_samples);
    json_put_count(object, "n_shards", info->n_shards);
    json_put_count(object, "bytes", info->bytes);
    json_put_text(object, "format", info->format);
    json_put_count(object, "format_version", info->format_version);
    json_put_bool(object, "has_checksums", info->has_checksums == 1);
    json_put_bool(object, "has_kept_checksums", info->has_checksums == 3);
    json_put_text(object, "identity", info->identity);
    json_put_text(object, "note", json_text(all->manifest, "note"));
    put_part(all->manifest, object);
    for (uint32_t i = 0; i < info->n_fields; i++) {
        struct pstk_field field;
        struct pstk_field_stats stats = {.size = sizeof stats};
        if (pstk_dataset_get_field(dataset, i, &field, &stats) == 0)
            json_append(fields, field_json(&field, &stats));
    }
    json_put(object, "fields", fields);
    json_put(object, "columns", columns_json(dataset));
    json_put_count(object, "n_classes", info->n_names);
    classes = json_make_array();
    for (uint64_t i = 0; i < info->n_names; i++)
        json_append_text(classes, pstk_dataset_name(dataset, i));
    json_put(object, "classes", classes);
    labels_put(&all->labels, object);
    char ignored[IGNORED_SIZE];
    json_put_text(object, "ignored",
                  ignored_tables(all->path, info->format, ignored) > 0 ? ignored : NULL);
    json_put_count(object, "n_left_out", info->n_left_out);
    json_put_text(object, "left_out", info->left_out[0] ? info->left_out : NULL);
    json_put_text(object, "damage", all->damage.code ? all->damage.message : NULL);
    if (all->listed) {
        json_put(object, "passthrough", passthrough_json(&all->passthrough));
        json_put(object, "passthrough_jpegs", all->listed);
        all->listed = NULL;
    }
    return json_print(object, all->damage.code ? STATUS_DAMAGED : STATUS_OK);
}

/* Print facts about a field next to its kind. */
static void print_details(const struct pstk_field *field, const struct pstk_field_stats *stats)
{
    char n[UNIT_SIZE];
    if (field->n_dims) {
        fputs(" [", stdout);
        for (uint32_t i = 0; i < field->n_dims; i++) {
            if (field->shape[i])
                printf("%s%" PRIu64, i ? ", " : "", field->shape[i]);
            else
                printf("%s*", i ? ", " : "");
        }
        fputs("]", stdout);
    }
    const int has_encodings = field->kind == PSTK_FIELD_IMAGE || field->kind == PSTK_FIELD_MASK;
    for (const struct choice *choice = names_encoding; has_encodings && choice->name; choice++)
        if (choice->value >= ENCODING_MIN && stats->n_encoding[choice->value])
            printf("  %s %s", unit_count(n, stats->n_encoding[choice->value]), choice->name);
    if (stats->max_width)
        printf("  up to %u x %u", stats->max_width, stats->max_height);
    if (stats->n_absent)
        printf("  absent from %s", unit_count(n, stats->n_absent));
}

/* Print the image that a field belongs to, its axes and its coordinates. */
static void print_attributes(const struct pstk_field *field, int width)
{
    struct attribute attributes[N_ATTRIBUTES];
    int n = 0;
    find_attributes(field, attributes);
    for (size_t i = 0; i < N_ATTRIBUTES; i++) {
        if (!attributes[i].value[0])
            continue;
        if (n++ == 0)
            printf("  %*s  ", width, "");
        printf("%s%s %s", n > 1 ? ", " : "", attributes[i].key, attributes[i].value);
    }
    if (n)
        putchar('\n');
}

/* Print the ratio of stored to plain bytes of a compressed field. */
static void print_ratio(const struct pstk_field_stats *stats, int width)
{
    if (!stats->plain_bytes ||
        !(stats->n_codec[PSTK_CODEC_ZSTD] + stats->n_codec[PSTK_CODEC_PLANES]))
        return;
    printf("  %*s  stored in %.0f %% of the plain size, by %s\n", width, "",
           100.0 * (double)stats->stored_bytes / (double)stats->plain_bytes,
           stats->n_codec[PSTK_CODEC_ZSTD] ? WORD_PSTK_CODEC_ZSTD : WORD_PSTK_CODEC_PLANES);
}

static void print_field(const struct pstk_field *field, const struct pstk_field_stats *stats,
                        int width)
{
    char kind[64], bytes[UNIT_SIZE], most[UNIT_SIZE];
    snprintf(kind, sizeof kind, "%s%s%s", option_choice_name(names_field_kind, field->kind),
             field->dtype ? " " : "", field->dtype ? pstk_dtype_name(field->dtype) : "");
    printf("  %-*s  %-12s  %10s  %10s ", width, field->name, kind,
           unit_bytes(bytes, (double)stats->stored_bytes),
           unit_bytes(most, (double)stats->max_stored_size));
    print_details(field, stats);
    putchar('\n');
    print_attributes(field, width);
    if (field->kind == PSTK_FIELD_IMAGE) {
        const struct census census = census_of(stats);
        char text[CENSUS_SIZE];
        if (census_text(&census, text)[0]) /* other formats do not count them by encoding */
            printf("  %*s  images: %s\n", width, "", text);
    }
    print_ratio(stats, width);
}

/* Print the side columns, a line each. */
static void print_columns(const struct pstk_dataset *dataset, int width)
{
    struct pstk_column_info info = {.size = sizeof info};
    char bytes[UNIT_SIZE];
    for (uint32_t i = 0; pstk_dataset_get_column_info(dataset, i, &info) == 0; i++) {
        struct pstk_field field;
        if (i == 0)
            printf("\n  %-*s  %-12s  %10s  values\n", width, "column", "dtype", "bytes");
        printf("  %-*s  %-12s  %10s  ", width, info.name, pstk_dtype_name(info.dtype),
               unit_bytes(bytes, (double)info.bytes));
        if (info.fact == PSTK_COLUMN_ADDED ||
            pstk_dataset_get_field(dataset, info.field, &field, NULL) < 0)
            puts("added");
        else
            printf("%s of %s\n", option_choice_name(names_column_fact, info.fact), field.name);
    }
}

#define NARROW 12 /* characters of names */
#define WIDE 24

/* Return the width of the column of names of fields and columns: the longest name, unless that
 * makes the tables too wide. */
static int width_of_names(const struct pstk_dataset *dataset)
{
    struct pstk_column_info info = {.size = sizeof info};
    struct pstk_field field;
    size_t width = NARROW;
    for (uint32_t i = 0; pstk_dataset_get_field(dataset, i, &field, NULL) == 0; i++)
        width = strlen(field.name) > width ? strlen(field.name) : width;
    for (uint32_t i = 0; pstk_dataset_get_column_info(dataset, i, &info) == 0; i++)
        width = strlen(info.name) > width ? strlen(info.name) : width;
    return width > WIDE ? WIDE : (int)width;
}

static void print_line(const char *what, const char *text)
{
    printf("  %-9s ", what);
    text_print(stdout, text);
    putchar('\n');
}

/* Return the checksums of a format that has none for samples. */
static const char *checksums_text(const struct pstk_dataset_info *info)
{
    if (info->has_checksums == 3)
        return "which has no checksums: `penstock verify` keeps some and compares with them";
    if (info->has_checksums)
        return "whose checksums only `penstock verify` checks";
    return strcmp(info->format, "arrays") == 0 ? "in which only .npz files have checksums"
                                               : "which has no checksums";
}

static void print_text(const struct info *all)
{
    const struct pstk_dataset_info *info = &all->info;
    const struct pstk_dataset *dataset = all->dataset;
    char n[UNIT_SIZE], bytes[UNIT_SIZE];
    text_print(stdout, all->path);
    printf("\n  samples   %s\n", unit_count(n, info->n_samples));
    if (info->n_names)
        printf("  classes   %s%s\n", unit_count(n, info->n_names),
               all->labels.n || labels_field(dataset) < 0 ? ""
                                                          : " (--counts counts their samples)");
    printf("  %ss%*s %s\n", files_noun(info), 8 - (int)strlen(files_noun(info)), "",
           unit_count(n, files_count(info)));
    printf("  bytes     %s\n", unit_bytes(bytes, (double)info->bytes));
    print_line("identity", info->identity);
    if (info->has_checksums != 1)
        printf("  format    %s, %s\n", info->format, checksums_text(info));
    else if (strchr(info->format, ',')) /* its compression has checksums that cover every byte */
        print_line("format", info->format);
    print_part(all->manifest);
    const char *note = json_text(all->manifest, "note");
    char ignored[IGNORED_SIZE];
    if (note && *note)
        print_line("note", note);
    if (ignored_tables(all->path, info->format, ignored) > 0)
        print_line("ignored", ignored);
    const char *left_out = ignored_files(info, ignored);
    if (*left_out)
        print_line("left out", left_out);
    const int width = width_of_names(dataset);
    printf("\n  %-*s  %-12s  %10s  %10s  details\n", width, "field", "kind", "stored", "largest");
    for (uint32_t i = 0; i < info->n_fields; i++) {
        struct pstk_field field;
        struct pstk_field_stats stats = {.size = sizeof stats};
        if (pstk_dataset_get_field(dataset, i, &field, &stats) == 0)
            print_field(&field, &stats, width);
    }
    print_columns(dataset, width);
    labels_print(&all->labels, dataset, all->all);
}

/* Return the path of a sample's file, as pack stores it; owned. NULL: there is none. */
static char *key_of(struct pstk_dataset *dataset, uint64_t id)
{
    struct pstk_field field;
    char *key = NULL;
    for (uint32_t i = 0; !key && pstk_dataset_get_field(dataset, i, &field, NULL) == 0; i++) {
        void *data;
        uint64_t size;
        if (field.kind != PSTK_FIELD_UTF8 || strcmp(field.name, "key") != 0)
            continue;
        if (pstk_dataset_get(dataset, id, i, &data, &size, NULL, NULL) < 0)
            return NULL;
        key = strndup(data, size);
        pstk_free(data);
        if (!key)
            message_no_memory();
    }
    return key;
}

/* List one kept JPEG; passthrough_find's on_jpeg. */
static void list_passthrough(void *user, uint64_t id, uint32_t field, uint32_t reason)
{
    struct info *all = user;
    const uint64_t number = all->n_listed++;
    if (!all->listed && number >= LISTED && !all->all)
        return;
    char *key = key_of(all->dataset, id);
    if (all->listed) {
        struct pstk_field described;
        struct json_t *object = json_make_object();
        pstk_dataset_get_field(all->dataset, field, &described, NULL);
        json_put_count(object, "sample_id", id);
        json_put_text(object, "field", described.name);
        json_put_text(object, "key", key);
        json_put_text(object, "reason", passthrough_word(reason));
        json_append(all->listed, object);
    } else {
        printf("  %9" PRIu64 "  ", id);
        text_print(stdout, key ? key : "");
        printf("%s%s\n", key ? ": " : "", passthrough_phrase(reason));
    }
    free(key);
}

/* Find the images that stayed JPEG files; print them, or keep them for print_json. */
static int find_passthrough(struct info *all, struct pstk_error *err)
{
    char n[UNIT_SIZE];
    all->passthrough.on_jpeg = list_passthrough;
    all->passthrough.user = all;
    if (all->json)
        all->listed = json_make_array();
    else
        printf("\n  %9s  JPEG that is not stored as planes: why\n", "sample");
    const int r = passthrough_find(&all->passthrough, all->dataset, err);
    if (r < 0 || all->json)
        return r;
    if (all->n_listed == 0)
        printf("  %9s\n", "none");
    else if (all->n_listed > LISTED && !all->all)
        printf("  and %s more (--all lists them)\n", unit_count(n, all->n_listed - LISTED));
    putchar('\n');
    passthrough_print(&all->passthrough);
    return 0;
}

/* Print and keep an error. The manifest's facts are printed in any case. */
static void note_damage(struct info *all, const struct pstk_error *bad)
{
    all->damage = *bad;
    message_error(bad, all->path);
}

/* Keep the first bad file and stop; pstk_dataset_check's on_bad. */
static int on_bad_file(void *user, const struct pstk_error *bad)
{
    note_damage(user, bad);
    return 1;
}

/* Count the samples of each class, with --counts, or when there are few labels and no damage was
 * found. */
static int count_labels(struct info *all, struct pstk_error *err)
{
    if (!all->counts && (all->damage.code || all->info.n_samples > COUNTED_UNASKED))
        return 0;
    const int r = labels_count(&all->labels, all->path, all->fields, all->dataset, err);
    if (r == 0 || all->counts)
        return r;
    note_damage(all, err);
    labels_close(&all->labels);
    return 0;
}

static int finish_text(const struct info *all)
{
    const int code = all->damage.code;
    if (code == PSTK_EBADMSG || code == PSTK_ENOENT || code == PSTK_EIO)
        message_next("verify", all->path);
    return message_finish(code ? STATUS_DAMAGED : STATUS_OK);
}

/* Read the records that the options need, then print. */
static int info(struct info *all)
{
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    all->info.size = sizeof all->info;
    all->labels.field = ROLE_NONE;
    int r = pstk_dataset_get_info(all->dataset, &all->info);
    if (r < 0)
        return status_of_code(r);
    pstk_dataset_check(all->dataset, on_bad_file, all, NULL);
    r = count_labels(all, &err);
    all->manifest = read_manifest(all->path);
    if (r == 0 && !all->json)
        print_text(all);
    if (r == 0 && all->lists_passthrough)
        r = find_passthrough(all, &err);
    if (r < 0)
        return status_refuse(&err, all->path);
    return all->json ? print_json(all) : finish_text(all);
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options options = {.command = self, .argc = argc, .argv = argv};
    struct info all = {.json = 0};
    struct fields fields = {.n = 0};
    struct pstk_error err;
    int c;
    while ((c = options_next(&options)) > 0) {
        const int is_foreign = fields_have(c);
        if (is_foreign && fields_take(&fields, c, optarg) < 0)
            return STATUS_USAGE;
        if (!is_foreign)
            *(c == OPT_COUNTS        ? &all.counts
              : c == OPT_PASSTHROUGH ? &all.lists_passthrough
              : c == OPT_ALL         ? &all.all
                                     : &all.json) = 1;
    }
    if (c < 0 || options_operands(&options, 1, 1, "DATA") < 0)
        return options.status;
    all.path = options_operand(&options, 0);
    all.fields = &fields;
    pstk_error_init(&err, sizeof err);
    if (opening_dataset_as(&all.dataset, all.path, &fields, &err) < 0)
        return status_refuse(&err, all.path);
    const int status = info(&all);
    labels_close(&all.labels);
    json_drop(all.listed);
    json_drop(all.manifest);
    pstk_dataset_close(&all.dataset);
    return status;
}

const struct command command_info = {
    .name = "info",
    .summary = "print what a data set holds",
    .operands = "DATA",
    .text = "Print what a data set holds: samples, shards, bytes, note, fields and side columns; "
            "how its images are stored (as planes, as files, or as pixels), and how many of "
            "its JPEGs come "
            "back byte for byte; its classes, with the samples of each where the data set has at "
            "most 10,000.\n"
            "\n"
            "Without options, info reads the manifest, the head of each file and those labels. It "
            "prints the manifest also where files are missing, cut short or damaged; `penstock "
            "verify` finds all damage.\n",
    .options = table,
    .examples = "penstock info train\n"
                "penstock info train --passthrough --all\n"
                "penstock info train --json | jq .n_samples\n",
    .exit_status = "0; 1 a file is missing or damaged; 2 wrong usage or path, no data set, or a "
                   "newer version",
    .run = run,
};
