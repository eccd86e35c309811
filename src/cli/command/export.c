/* SPDX-License-Identifier: Apache-2.0 */
/* export: converts a data set to the format of another library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <penstock/export.h>

#include "command.h"
#include "names.h"
#include "option/machine.h"
#include "option/opening.h"
#include "option/options.h"
#include "option/subset.h"
#include "ui/interrupt.h"
#include "ui/json.h"
#include "ui/message.h"
#include "ui/output.h"
#include "ui/progress.h"
#include "ui/status.h"
#include "ui/text.h"
#include "ui/unit.h"

#define MAX_THREADS 1024

enum {
    OPT_TO = 256,
    OPT_FIELDS,
    OPT_IMAGE,
    OPT_LABEL,
    OPT_KEY,
    OPT_SUBSET,
    OPT_SHARD_SIZE,
    OPT_THREADS,
    OPT_OVERWRITE,
    OPT_JSON
};

static const struct option_row table[] = {
    {.name = "to",
     .code = OPT_TO,
     .values = names_export_target,
     .text = "the target, which must be given (folder: image files in class folders; webdataset: "
             "tar shards; tfrecord: records with tf.train.Example; mds: MosaicML Streaming; npy: "
             "an array a field)"},
    {.name = "fields",
     .code = OPT_FIELDS,
     .value = "NAMES",
     .initial = "all",
     .text = "the fields to export, with commas between them"},
    FIELDS_OPTIONS,
    {.name = "image",
     .code = OPT_IMAGE,
     .value = "FIELD",
     .initial = "the only image field",
     .text = "folder: the images to write"},
    {.name = "label",
     .code = OPT_LABEL,
     .value = "FIELD",
     .initial = "cls, label, or the only such field",
     .text = "folder: the field with the number of the class, whose name becomes a folder"},
    {.name = "key",
     .code = OPT_KEY,
     .value = "FIELD",
     .initial = "key, file_name or path",
     .text = "folder, webdataset: the text field that names the files (none: number them)"},
    {.name = "subset",
     .code = OPT_SUBSET,
     .value = "STEP",
     .initial = "all samples",
     .text = "select samples, as `penstock order` does; may be given again: each step selects from "
             "what the step before selected"},
    {.name = "shard-size",
     .code = OPT_SHARD_SIZE,
     .value = "BYTES",
     .initial = "256M, of mds 64M",
     .text = "webdataset, tfrecord, mds: largest size of a shard (64K, 1G, ...)"},
    {.name = "threads",
     .code = OPT_THREADS,
     .value = "N",
     .initial = "all cores",
     .text = "threads that read and rebuild samples; the files do not depend on them"},
    {.name = "overwrite",
     .code = OPT_OVERWRITE,
     .text = "replace OUT if it is an export to which nothing was added or changed, or an empty "
             "folder; until the last step OUT is unchanged"},
    OPTION_JSON("print the summary as one JSON object"),
    OPTION_END};

struct export
{
    struct pstk_export_settings settings;
    struct pstk_export_result result;
    const char *fields[PSTK_MAX_FIELDS];
    char *names;           /* owned; the text of --fields, split */
    struct fields read_as; /* from --field */
    struct subset subset;
    struct progress progress;
    double start; /* seconds */
    int json;
};

static int on_progress(void *user, uint64_t n_done, uint64_t n_total)
{
    struct export *export = user;
    progress_update(&export->progress, n_total ? (double)n_done / (double)n_total : -1, n_done);
    return interrupt_seen();
}

/* ---- the summary ----------------------------------------------------------------------------- */

static int print_json(const struct export *export)
{
    const struct pstk_export_result *result = &export->result;
    struct json_t *object = json_make_object();
    json_put_text(object, "path", export->settings.out);
    json_put_text(object, "target",
                  option_choice_name(names_export_target, export->settings.target));
    json_put_count(object, "n_samples", result->n_samples);
    json_put_count(object, "n_shards", result->n_shards);
    json_put_count(object, "n_files", result->n_files);
    json_put_count(object, "bytes", result->bytes);
    json_put_count(object, "n_images", result->n_images);
    json_put_count(object, "n_equivalent", result->n_equivalent);
    json_put_count(object, "n_encoded", result->n_encoded);
    json_put_count(object, "n_renamed", result->n_renamed);
    json_put_count(object, "n_remade", result->n_remade);
    json_put_count(object, "n_left_out", result->n_left_out);
    json_put_count(object, "n_renumbered", result->n_renumbered);
    json_put_real(object, "seconds", unit_now() - export->start);
    return json_print(object, STATUS_OK);
}

/* Print the differences from the packed files. */
static void print_differences(const struct pstk_export_result *result)
{
    char n[UNIT_SIZE];
    if (result->n_images > 0 && result->n_equivalent + result->n_encoded + result->n_remade == 0)
        printf("  images          %s, all byte for byte as they were packed\n",
               unit_count(n, result->n_images));
    else if (result->n_images > 0)
        printf("  images          %s\n", unit_count(n, result->n_images));
    if (result->n_equivalent > 0)
        printf("  equivalent      %s JPEG%s with the same coefficients and markers, but not the "
               "packed bytes\n",
               unit_count(n, result->n_equivalent), result->n_equivalent == 1 ? "" : "s");
    if (result->n_encoded > 0)
        printf("  encoded         %s PNG file%s of what was stored as pixels, without loss\n",
               unit_count(n, result->n_encoded), result->n_encoded == 1 ? "" : "s");
    if (result->n_remade > 0)
        printf("  remade          %s PNG file%s made anew from the rows of a damaged one when "
               "packed: not "
               "the original\n",
               unit_count(n, result->n_remade), result->n_remade == 1 ? "" : "s");
    if (result->n_renamed > 0)
        printf("  renamed         %s, whose key came twice, cannot be a file's name, or lacks the "
               "suffix of its image\n",
               unit_count(n, result->n_renamed));
    if (result->n_renumbered > 0)
        printf("  renumbered      %s, whose class has another number there: readers number the "
               "classes that have samples, by their sorted names\n",
               unit_count(n, result->n_renumbered));
    if (result->n_left_out > 0)
        printf("  left out        %s, which readers of image folders leave out: next to folders of "
               "images, or called .jfif or .jpe; --key none numbers all files\n",
               unit_count(n, result->n_left_out));
}

static int report(const struct export *export)
{
    const struct pstk_export_result *result = &export->result;
    char n[UNIT_SIZE], files[UNIT_SIZE], bytes[UNIT_SIZE], time[UNIT_SIZE];
    if (export->json)
        return print_json(export);
    text_print(stdout, export->settings.out);
    printf(": exported %s sample%s to %s: %s file%s, %s, in %s\n", unit_count(n, result->n_samples),
           result->n_samples == 1 ? "" : "s",
           option_choice_name(names_export_target, export->settings.target),
           unit_count(files, result->n_files), result->n_files == 1 ? "" : "s",
           unit_bytes(bytes, (double)result->bytes),
           unit_seconds(time, unit_now() - export->start));
    print_differences(result);
    return message_finish(STATUS_OK);
}

/* ---- the work -------------------------------------------------------------------------------- */

/* Print the library's refusal, with the command's option in place of the setting that helps. */
static int refuse(const struct pstk_error *err, const char *out)
{
    const char *advice = strstr(err->message, "; leave it out: set fields to ");
    if (err->code == PSTK_EEXIST && strstr(err->message, "or set overwrite"))
        return message_usage("%s exists already; choose another path, or give --overwrite to "
                             "replace it if it is an export",
                             out);
    if (err->code == PSTK_EINVAL && advice)
        return message_usage("%.*s; leave it out: --fields %s", (int)(advice - err->message),
                             err->message, advice + strlen("; leave it out: set fields to "));
    return status_refuse(err, NULL);
}

static int work(struct export *export)
{
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    export->start = unit_now();
    export->settings.subset = subset_first(&export->subset);
    progress_begin(&export->progress, "exporting", "samples");
    struct opening opening;
    opening_init(&opening);
    fields_apply(&export->read_as, &opening.foreign);
    export->settings.foreign = &opening.foreign;
    const int r = pstk_export(&export->settings, &export->result, &err);
    progress_end(&export->progress);
    if (r == PSTK_ECANCELED && interrupt_seen())
        return interrupt_say("nothing was exported, and no file is left");
    fields_explain(&export->read_as, &err);
    if (r < 0)
        return refuse(&err, export->settings.out);
    if (export->result.had_leftovers)
        message_say("an export to %s was stopped before; what it left was removed",
                    export->settings.out);
    const int status = report(export);
    if (status)
        message_say("%s was still exported completely", export->settings.out);
    else if (interrupt_seen())
        return interrupt_say("but the export was complete already");
    return status;
}

/* Split the list of --fields. Returns 0, or -1 after a message. */
static int set_fields(struct export *export, const char *value)
{
    free(export->names);
    export->names = strdup(value);
    export->settings.fields = export->fields;
    export->settings.n_fields = 0;
    if (!export->names)
        message_no_memory();
    char *rest = export->names, *name;
    while ((name = strsep(&rest, ","))) {
        if (!*name || export->settings.n_fields == PSTK_MAX_FIELDS) {
            message_usage("--fields: value is '%s'; must be names of fields with commas between "
                          "them, at most %d",
                          value, PSTK_MAX_FIELDS);
            return -1;
        }
        export->fields[export->settings.n_fields++] = name;
    }
    return 0;
}

static int set_option(struct export *export, int code, const char *value)
{
    struct pstk_export_settings *s = &export->settings;
    switch (code) {
    case OPT_TO:
        return option_choice("--to", value, names_export_target, &s->target);
    case OPT_FIELDS:
        return set_fields(export, value);
    FIELDS_CASES:
        return fields_take(&export->read_as, code, value);
    case OPT_IMAGE:
        s->image = value;
        return 0;
    case OPT_LABEL:
        s->label = value;
        return 0;
    case OPT_KEY:
        s->key = strcmp(value, "none") == 0 ? "" : value;
        return 0;
    case OPT_SUBSET:
        return subset_add(&export->subset, value);
    case OPT_SHARD_SIZE:
        return option_bytes("--shard-size", value, (struct range){1 << 16, UINT64_C(1) << 43},
                            &s->shard_size);
    case OPT_THREADS:
        return option_count32("--threads", value, (struct range){0, MAX_THREADS}, &s->n_threads);
    case OPT_OVERWRITE:
        s->overwrite = 1;
        return 0;
    default:
        export->json = 1;
        return 0;
    }
}

static int run_with(struct export *export, struct options *options)
{
    int c;
    while ((c = options_next(options)) > 0)
        if (set_option(export, c, optarg) < 0)
            return STATUS_USAGE;
    if (c < 0 || options_operands(options, 2, 2, "DATA and OUT") < 0)
        return options->status;
    if (!export->settings.target)
        return message_usage("--to must be given: folder, webdataset, tfrecord, mds or npy");
    export->settings.data = options_operand(options, 0);
    export->settings.out = options_operand(options, 1);
    if (export->settings.n_threads == 0)
        export->settings.n_threads = machine_n_cores(MAX_THREADS);
    interrupt_install();
    interrupt_ignore_pipe();
    return work(export);
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options options = {.command = self, .argc = argc, .argv = argv};
    struct export export = {.result.size = sizeof export.result};
    export.settings.size = sizeof export.settings;
    export.settings.on_progress = on_progress;
    export.settings.user = &export;
    const int status = run_with(&export, &options);
    subset_close(&export.subset);
    free(export.names);
    return status;
}

const struct command command_export = {
    .name = "export",
    .summary = "give a data set back as files of another format",
    .operands = "DATA OUT",
    .text = "Write the samples of DATA, of any format that penstock opens, into the new folder OUT "
            "in the format of another library. Images come back byte for byte as they were packed; "
            "the summary counts the images that do not: the few JPEGs that come back as an "
            "equivalent file (`penstock info` counts them), PNG files of images that were stored "
            "as pixels, and PNG files that pack made anew from the rows of a damaged file. Other "
            "fields get the target's natural type, and bfloat16 becomes float32.\n\nA field that "
            "the target cannot hold is an error before anything is written. OUT gets its name as "
            "the last step: an export that is stopped leaves nothing. Its file "
            "penstock-export.json has the fields and the class names.\n",
    .options = table,
    .examples = "penstock export train --to webdataset tars\n"
                "penstock export train --to folder images --subset range:0..1000\n"
                "penstock export train --to npy arrays --fields cls\n",
    .exit_status = "0 exported; 1 a damaged sample, or a failing disk; 2 wrong usage, path or "
                   "field; 130 Ctrl-C",
    .run = run,
};
