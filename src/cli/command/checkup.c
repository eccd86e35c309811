/* SPDX-License-Identifier: Apache-2.0 */
#include "command/checkup.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "command/census.h"
#include "command/labels.h"
#include "option/files.h"
#include "option/ignored.h"
#include "option/opening.h"
#include "option/pipeline.h"
#include "option/reading.h"
#include "option/role.h"
#include "ui/json.h"
#include "ui/output.h"
#include "ui/text.h"
#include "ui/unit.h"

#define N_PROBED 256           /* PNG files that are checked for palettes */
#define COUNTED_SAMPLES 100000 /* maximum labels that are read */

static const char *const levels[] = {"ok", "note", "warning", "error"};

/* The data set under examination. */
struct patient {
    struct checkup *checkup;
    const char *path;
    const struct pstk_machine *machine;
    struct pstk_dataset *dataset;
    struct pstk_dataset_info info;
    char labels_error[sizeof((struct pstk_error *)0)->message]; /* reason why labels were not read;
                                                                   or "" */
};

static struct finding *find(struct checkup *checkup, const char *what, enum finding_level level,
                            const char *format, ...) __attribute__((format(printf, 4, 5)));

static struct finding *find(struct checkup *checkup, const char *what, enum finding_level level,
                            const char *format, ...)
{
    assert(checkup->n < CHECKUP_MAX);
    struct finding *finding = &checkup->findings[checkup->n++];
    *finding = (struct finding){.what = what, .level = level};
    va_list args;
    va_start(args, format);
    vsnprintf(finding->text, sizeof finding->text, format, args);
    va_end(args);
    return finding;
}

static void advise(struct finding *finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void advise(struct finding *finding, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(finding->advice, sizeof finding->advice, format, args);
    va_end(args);
}

/* ---- the files ------------------------------------------------------------------------------- */

/* The bad files that pstk_dataset_check reports: files of samples, and files of side columns. */
struct bad_files {
    uint64_t n, n_columns;
    struct pstk_error first, first_column;
};

static int is_column_file(const char *name)
{
    const size_t n = strlen(name);
    return n > 5 && strcmp(name + n - 5, ".pcol") == 0;
}

static int on_bad_file(void *user, const struct pstk_error *bad)
{
    struct bad_files *files = user;
    const int is_column = is_column_file(bad->shard);
    uint64_t *n = is_column ? &files->n_columns : &files->n;
    if ((*n)++ == 0)
        *(is_column ? &files->first_column : &files->first) = *bad;
    return 0;
}

/* Return 1 when `penstock verify` finds the error, too. */
static int is_damage(const struct pstk_error *err)
{
    return err->code == PSTK_EBADMSG || err->code == PSTK_EIO || err->code == PSTK_ENOENT;
}

/* Report column files that cannot be used. Loaders do not read them. */
static void judge_columns(struct patient *patient, const struct bad_files *bad)
{
    char n[UNIT_SIZE];
    if (bad->n_columns == 0)
        return;
    unit_count(n, patient->info.n_shards * pstk_dataset_n_columns(patient->dataset));
    struct finding *finding = find(patient->checkup, "columns", FINDING_WARNING,
                                   "%" PRIu64 " of %s files of side columns cannot be used: %s",
                                   bad->n_columns, n, bad->first_column.message);
    advise(finding, "loaders do not read them; programs that read the column fail");
}

/* Check the files. Returns the number of files of samples that cannot be used. */
static uint64_t look_at_files(struct patient *patient)
{
    struct bad_files bad = {.n = 0};
    char n[UNIT_SIZE];
    const int is_folder = strcmp(patient->info.format, "folder") == 0;
    const char *what = is_folder                                         ? "folders"
                       : strcmp(files_noun(&patient->info), "file") == 0 ? "files"
                                                                         : "shards";
    pstk_dataset_check(patient->dataset, on_bad_file, &bad, NULL);
    unit_count(n, is_folder ? patient->info.n_shards : files_count(&patient->info));
    if (bad.n == 0) {
        find(patient->checkup, what, FINDING_OK, "%s, %s", n,
             is_folder ? "the first image of each readable"
                       : "readable, with the sizes that the data set says");
    } else {
        struct finding *finding =
            find(patient->checkup, what, FINDING_ERROR, "%" PRIu64 " of %s cannot be used: %s",
                 bad.n, n, bad.first.message);
        finding->is_damage = is_damage(&bad.first);
        advise(finding, bad.first.code == PSTK_EACCES
                            ? "make the files readable for this user (chmod a+r)"
                            : "copy these files again from where they are whole, or pack again");
    }
    judge_columns(patient, &bad);
    if (!is_folder && files_count(&patient->info) > patient->machine->open_files)
        advise(find(patient->checkup, "open files", FINDING_NOTE,
                    "this process may open %" PRIu64 " files at once, fewer than there are %s",
                    patient->machine->open_files, what),
               "raise the limit (ulimit -n)%s",
               patient->info.n_shards > 1 ? ", or pack with a larger --shard-size" : "");
    return bad.n;
}

static void look_at_storage(struct patient *patient)
{
    const struct pstk_machine *machine = patient->machine;
    const char *system = machine->file_system[0] ? machine->file_system : "?";
    char bytes[UNIT_SIZE], memory[UNIT_SIZE];
    unit_bytes(bytes, (double)patient->info.bytes);
    unit_bytes(memory, (double)machine->memory);
    if (patient->info.bytes < machine->memory) {
        find(patient->checkup, "storage", FINDING_OK,
             "%s; memory of %s can hold them all, so that later epochs need no disk", bytes,
             memory);
    } else if (machine->direct == 1) {
        find(patient->checkup, "storage", FINDING_OK,
             "%s, more than the memory of %s: read directly", bytes, memory);
    } else {
        advise(find(patient->checkup, "storage", FINDING_WARNING,
                    "%s, more than the memory of %s, and without direct I/O each read passes the "
                    "page cache",
                    bytes, memory),
               "put the data on ext4 or xfs on a local disk");
    }
    if (reading_is_remote(system))
        advise(find(patient->checkup, "storage", FINDING_NOTE,
                    "%s may keep the files on another machine", system),
               "copy the data set to a local disk where `penstock bench` names storage as the "
               "bottleneck");
}

static void look_at_order(struct patient *patient)
{
    struct reading reading;
    if (reading_judge(patient->machine, &patient->info, patient->checkup->world, &reading))
        advise(find(patient->checkup, "order", FINDING_NOTE, "%s", reading.text), "%s",
               reading.advice);
}

/* ---- the records ----------------------------------------------------------------------------- */

static void look_at_records(struct patient *patient)
{
    uint64_t stored = 0, largest = 0;
    char mean[UNIT_SIZE], most[UNIT_SIZE];
    for (uint32_t i = 0; i < patient->info.n_fields; i++) {
        struct pstk_field_stats stats = {.size = sizeof stats};
        if (pstk_dataset_get_field(patient->dataset, i, NULL, &stats) < 0)
            continue;
        stored += stats.stored_bytes;
        largest += stats.max_stored_size;
    }
    find(patient->checkup, "records", FINDING_OK, "%s on average, %s at most",
         unit_bytes(mean, (double)stored / (double)patient->info.n_samples),
         unit_bytes(most, (double)largest));
}

/* Read the first batch with bench's defaults, as a trainer would. */
static int read_batch(struct pstk_loader *loader, struct pstk_error *err)
{
    struct pstk_batch *batch;
    const int r = pstk_next(loader, &batch, NULL, -1, err);
    if (r == 1)
        pstk_release(&batch, NULL);
    return r;
}

/* Add a finding about a first batch that fails, perhaps for the same reason as the labels. A
 * replacement comes from the same shard, so it helps only when a single record is bad. */
static void judge_batch(struct patient *patient, const struct pstk_error *err)
{
    const int is_same = strcmp(err->message, patient->labels_error) == 0;
    struct finding *finding =
        find(patient->checkup, "loader", FINDING_ERROR, "the first batch fails%s%s",
             is_same ? " for the same reason as labels" : ": ", is_same ? "" : err->message);
    finding->is_damage = is_damage(err);
    if (err->code == PSTK_EBADMSG) /* other messages contain advice */
        advise(finding, "pack again%s",
               err->record == PSTK_NONE
                   ? ", or copy the damaged files again from where they are whole"
                   : ", or have bad samples replaced by others of their shard (--on-bad replace "
                     "of `penstock bench`, bad_sample of a loader)");
}

static void look_at_loader(struct patient *patient)
{
    struct pipeline pipeline;
    struct pstk_loader *loader;
    struct pstk_stats stats = {.size = sizeof stats};
    struct pstk_error err;
    char slots[UNIT_SIZE], reads[UNIT_SIZE], scratch[UNIT_SIZE];
    pstk_error_init(&err, sizeof err);
    pipeline_init(&pipeline);
    pipeline.read_as = *patient->checkup->fields;
    pipeline.last = PSTK_LAST_SHORT;
    if (pipeline_look(&pipeline, patient->path) || pipeline_build(&pipeline, 0)) {
        find(patient->checkup, "loader", FINDING_ERROR,
             "cannot open this data set a second time; the message on standard error says why");
        return;
    }
    if (pstk_open(&loader, &pipeline.settings, &err) < 0) {
        find(patient->checkup, "loader", FINDING_ERROR, "cannot open this data set: %s",
             err.message);
        return;
    }
    const int r = read_batch(loader, &err);
    pstk_get_stats(loader, &stats);
    pstk_close(&loader);
    if (r < 0) {
        judge_batch(patient, &err);
        return;
    }
    find(patient->checkup, "loader", FINDING_OK,
         "gives batches of %u; takes %s for batches, %s for reads, up to %s for decoding",
         pipeline.batch_size, unit_bytes(slots, (double)stats.slot_memory),
         unit_bytes(reads, (double)(stats.io_memory + stats.index_memory)),
         unit_bytes(scratch, (double)stats.scratch_memory));
}

/* ---- the contents of records ----------------------------------------------------------------- */

static void judge_counts(struct patient *patient, const struct labels *labels)
{
    uint64_t n_empty = 0;
    char n[UNIT_SIZE], empty[UNIT_SIZE];
    for (uint64_t i = 0; i < labels->n_names; i++)
        n_empty += labels->n[i] == 0;
    unit_count(n, labels->n_names);
    if (labels->n_other)
        advise(find(patient->checkup, "labels", FINDING_WARNING,
                    "%" PRIu64 " sample%s a class number that has no name: there are %s names",
                    labels->n_other, labels->n_other == 1 ? " has" : "s have", n),
               "pack again with the names of all classes");
    else if (n_empty)
        advise(find(patient->checkup, "labels", FINDING_NOTE, "%s of %s classes %s no sample",
                    unit_count(empty, n_empty), n, n_empty == 1 ? "has" : "have"),
               "`penstock info --counts --all` lists them");
    else
        find(patient->checkup, "labels", FINDING_OK, "%s class%s, each with samples", n,
             labels->n_names == 1 ? "" : "es");
}

/* Return the name of a field that belongs to images (of boxes, masks, ...), or NULL. */
static const char *target_of_images(const struct patient *patient, struct pstk_field *field)
{
    for (uint32_t i = 0; i < patient->info.n_fields; i++)
        if (pstk_dataset_get_field(patient->dataset, i, field, NULL) == 0 && field->of[0])
            return field->name;
    return NULL;
}

static void look_at_labels(struct patient *patient)
{
    struct labels labels = {.field = ROLE_NONE};
    struct pstk_error err;
    struct pstk_field field;
    char n[UNIT_SIZE];
    pstk_error_init(&err, sizeof err);
    const char *target = target_of_images(patient, &field);
    if (target && labels_field(patient->dataset) == ROLE_NONE) {
        find(patient->checkup, "labels", FINDING_OK,
             "samples have no class numbers; field %s belongs to their images", target);
    } else if (labels_field(patient->dataset) == ROLE_SEVERAL) {
        advise(
            find(patient->checkup, "labels", FINDING_NOTE,
                 "several fields may hold class numbers, and none has a usual name, such as cls or "
                 "label"),
            "where one of them holds class numbers, pack again and call it cls: `penstock info` "
            "and `penstock bench` take that one");
    } else if (labels_field(patient->dataset) < 0) {
        advise(find(patient->checkup, "labels", FINDING_NOTE, "no field holds class numbers"),
               "for classification, pack a folder that has one folder for each class, or add a "
               "field of integers in Python");
    } else if (patient->info.n_names == 0) {
        find(patient->checkup, "labels", FINDING_OK, "the classes have numbers, but no names");
    } else if (patient->info.n_samples > COUNTED_SAMPLES) {
        find(patient->checkup, "labels", FINDING_OK,
             "%s classes; `penstock info --counts` counts their samples",
             unit_count(n, patient->info.n_names));
    } else if (labels_count(&labels, patient->path, patient->checkup->fields, patient->dataset,
                            &err) < 0) {
        find(patient->checkup, "labels", FINDING_ERROR, "cannot be read: %s", err.message)
            ->is_damage = is_damage(&err);
        snprintf(patient->labels_error, sizeof patient->labels_error, "%s", err.message);
    } else {
        judge_counts(patient, &labels);
    }
    labels_close(&labels);
}

/* Count PNG files with a palette among the *n_looked PNG files of a field that are read. */
static uint64_t count_palettes(struct patient *patient, uint32_t field, uint64_t *n_looked)
{
    const uint64_t n = patient->info.n_samples, step = n / (4 * N_PROBED) + 1;
    uint64_t n_palettes = 0;
    *n_looked = 0;
    for (uint64_t id = 0; id < n && *n_looked < N_PROBED; id += step) {
        struct pstk_value_info info = {.size = sizeof info};
        if (pstk_dataset_look(patient->dataset, id, field, &info, NULL) < 0 ||
            info.encoding != PSTK_ENCODING_PNG)
            continue;
        n_palettes += info.has_palette;
        (*n_looked)++;
    }
    return n_palettes;
}

/* Return 1 when the name of an image field suggests that its values are class ids. */
static int is_mask(const char *name)
{
    return strstr(name, "mask") || strstr(name, "seg") || strstr(name, "annot");
}

static void look_for_masks(struct patient *patient, uint32_t i, const struct pstk_field *field,
                           const struct pstk_field_stats *stats)
{
    static const char advice[] =
        "if these are masks, pack them in a field of kind mask, with their image (penstock.pack "
        "or penstock.Writer in Python); pictures need no change";
    uint64_t n_looked = 0, n_palettes = 0;
    if (stats->n_encoding[PSTK_ENCODING_PNG])
        n_palettes = count_palettes(patient, i, &n_looked);
    if (n_palettes)
        advise(find(patient->checkup, "images", FINDING_WARNING,
                    "%s: %" PRIu64 " of %" PRIu64 " PNG files that were looked at %s a palette; "
                    "loaders give its colours, resized, and no class ids",
                    field->name, n_palettes, n_looked, n_palettes == 1 ? "has" : "have"),
               "%s", advice);
    else if (is_mask(field->name))
        advise(find(patient->checkup, "images", FINDING_WARNING,
                    "%s: the name says mask, and loaders resize images bilinearly, which mixes "
                    "class ids",
                    field->name),
               "%s", advice);
}

static void look_at_images(struct patient *patient)
{
    for (uint32_t i = 0; i < patient->info.n_fields; i++) {
        struct pstk_field field;
        struct pstk_field_stats stats = {.size = sizeof stats};
        char text[CENSUS_SIZE];
        if (pstk_dataset_get_field(patient->dataset, i, &field, &stats) < 0 ||
            field.kind != PSTK_FIELD_IMAGE)
            continue;
        const struct census census = census_of(&stats);
        const int is_slow = census.n_passthrough_jpeg > census.n_planes;
        const char *counts = census_text(&census, text);
        struct finding *finding =
            find(patient->checkup, "images", is_slow ? FINDING_NOTE : FINDING_OK, "%s: %s%s",
                 field.name, counts[0] ? counts : "files, not counted by encoding",
                 is_slow ? "; JPEGs decode several times slower than planes" : "");
        if (is_slow)
            advise(finding,
                   field.codec == PSTK_CODEC_PLANES
                       ? "`penstock info --passthrough` lists why they are not planes"
                       : "pack again, without --jpeg keep (in Python without codec \"none\")");
        look_for_masks(patient, i, &field, &stats);
    }
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void look(struct patient *patient)
{
    char n[UNIT_SIZE];
    const struct pstk_dataset_info *info = &patient->info;
    if (info->format_version)
        find(patient->checkup, "data set", FINDING_OK, "%s samples; %s, version %u",
             unit_count(n, info->n_samples), info->format, info->format_version);
    else
        find(patient->checkup, "data set", FINDING_OK, "%s samples; %s",
             unit_count(n, info->n_samples), info->format);
    char ignored[IGNORED_SIZE];
    if (ignored_tables(patient->path, info->format, ignored) > 0)
        find(patient->checkup, "ignored", FINDING_NOTE, "%s", ignored);
    const char *left_out = ignored_files(info, ignored);
    if (*left_out)
        find(patient->checkup, "left out", FINDING_NOTE, "%s", left_out);
    const uint64_t n_bad = look_at_files(patient);
    look_at_storage(patient);
    if (info->n_samples == 0)
        return;
    look_at_order(patient);
    look_at_records(patient);
    if (n_bad == 0) /* otherwise labels and loader would fail on the same files */
        look_at_labels(patient);
    look_at_images(patient);
    if (n_bad == 0)
        look_at_loader(patient);
}

/* Add a finding about a path that cannot be opened. format: or NULL. Without a manifest it need not
 * be a data set: it may be a file, arrays that are not for loading, or a folder that this user may
 * not read. */
static void judge_refusal(struct checkup *checkup, const char *path, const char *format,
                          const struct pstk_error *err)
{
    const int is_other = (err->code == PSTK_EACCES || err->code == PSTK_ENOTSUP) &&
                         (!format || strcmp(format, "arrays") == 0);
    struct finding *finding =
        find(checkup, "data set", is_other && !output_stands(path) ? FINDING_NOTE : FINDING_ERROR,
             "cannot be opened: %s", err->message);
    if (err->code == PSTK_EACCES)
        advise(finding, "make the folder and its files readable for this user (chmod -R a+rX)");
    else if (err->code == PSTK_EBADMSG && output_stands(path))
        advise(finding, "copy manifest.json again from where it is whole, or pack again");
}

void checkup(struct checkup *checkup, const char *path, const struct pstk_machine *machine)
{
    struct patient patient = {.checkup = checkup, .path = path, .machine = machine};
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    const int r = opening_dataset_as(&patient.dataset, path, checkup->fields, &err);
    const char *format = r < 0 ? pstk_find_format(path, NULL) : NULL;
    if ((r == PSTK_ENOENT && !format) || (format && strcmp(format, "folder") == 0))
        return; /* perhaps a folder for future data, or any folder with pictures */
    checkup->is_data_set = 1;
    if (r < 0) {
        judge_refusal(checkup, path, format, &err);
        return;
    }
    patient.info.size = sizeof patient.info;
    if (pstk_dataset_get_info(patient.dataset, &patient.info) == 0)
        look(&patient);
    pstk_dataset_close(&patient.dataset);
}

int checkup_status(const struct checkup *checkup)
{
    for (uint32_t i = 0; i < checkup->n; i++)
        if (checkup->findings[i].level == FINDING_ERROR)
            return STATUS_DAMAGED;
    return STATUS_OK;
}

void checkup_print(const struct checkup *checkup)
{
    for (uint32_t i = 0; i < checkup->n; i++) {
        const struct finding *finding = &checkup->findings[i];
        char text[FINDING_SIZE + 16];
        const int is_bad = finding->level >= FINDING_WARNING;
        snprintf(text, sizeof text, "%s%s%s", is_bad ? levels[finding->level] : "",
                 is_bad ? ": " : "", finding->text);
        printf("  %-14s ", finding->what);
        text_print_wrapped(stdout, text, 17);
        if (!finding->advice[0])
            continue;
        printf("  %-14s   ", "");
        text_print_wrapped(stdout, finding->advice, 19);
    }
}

void checkup_put_findings(const struct checkup *checkup, struct json_t *object, const char *name)
{
    struct json_t *findings = json_make_array();
    for (uint32_t i = 0; i < checkup->n; i++) {
        const struct finding *finding = &checkup->findings[i];
        struct json_t *one = json_make_object();
        json_put_text(one, "what", finding->what);
        json_put_text(one, "level", levels[finding->level]);
        json_put_text(one, "text", finding->text);
        json_put_text(one, "advice", finding->advice[0] ? finding->advice : NULL);
        json_append(findings, one);
    }
    json_put(object, name, findings);
}

void checkup_put(const struct checkup *checkup, struct json_t *object)
{
    if (checkup->is_data_set)
        checkup_put_findings(checkup, object, "data_set");
    else
        json_put_null(object, "data_set");
}
