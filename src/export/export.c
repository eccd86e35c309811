/* SPDX-License-Identifier: Apache-2.0 */
/* export: the list of the targets, and pstk_export. */
#include "export/export.h"

#include "base/error.h"
#include "export/json_value.h"
#include "export/samples.h"
#include "record/kind.h"

#include <penstock/role.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MIN_SHARD_SIZE 65536 /* as for packing, bytes */

static const struct pstk__export_target *const targets[] = {
    &pstk__export_folder, &pstk__export_webdataset, &pstk__export_tfrecord,
    &pstk__export_mds,    &pstk__export_npy,
};

#define N_TARGETS (sizeof targets / sizeof *targets)

int pstk__export_fail(const struct pstk__export *e, const struct pstk__export_sample *sample,
                      uint32_t field, int code, struct pstk_error *err, const char *fmt, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, fmt);
    vsnprintf(text, sizeof text, fmt, arguments);
    va_end(arguments);
    pstk__fail(err, code, PSTK_STAGE_WRITE, "sample %llu: field %s %s",
               (unsigned long long)sample->id, e->fields[field].name, text);
    if (err)
        err->sample_id = sample->id;
    return code;
}

int pstk__export_no_memory(const struct pstk__export *e, struct pstk_error *err)
{
    return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "%s: out of memory", e->settings->out);
}

/* ---- settings -------------------------------------------------------------------------------- */

static int check_target(struct pstk__export *e, struct pstk_error *err)
{
    char names[100] = "";
    for (size_t i = 0; i < N_TARGETS; i++) {
        const size_t n = strlen(names);
        if (targets[i]->target == e->settings->target)
            e->target = targets[i];
        snprintf(names + n, sizeof names - n, "%s%u (%s)", i ? ", " : "", targets[i]->target,
                 targets[i]->name);
    }
    return e->target
               ? 0
               : pstk__fail_setting(err, "target", e->settings->target, "be one of %s", names);
}

/* Refuse a setting that the target does not use. */
static int check_unused(const struct pstk__export *e, struct pstk_error *err)
{
    const struct pstk_export_settings *s = e->settings;
    const char *name = s->image && !e->target->has_image   ? "image"
                       : s->label && !e->target->has_label ? "label"
                       : s->key && !e->target->has_key     ? "key"
                                                           : NULL;
    if (name)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "%s: an export to %s does not use it; leave it out", name,
                          e->target->name);
    if (s->shard_size && !e->target->shard_size)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "shard_size: an export to %s has no shards; leave it out",
                          e->target->name);
    return 0;
}

static int check_settings(struct pstk__export *e, struct pstk_error *err)
{
    const struct pstk_export_settings *s = e->settings;
    if (!s->data || !*s->data || !s->out || !*s->out)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "%s: value is empty; must be the path of %s",
                          !s->data || !*s->data ? "data" : "out",
                          !s->data || !*s->data ? "a data set" : "a directory to make");
    int r = check_target(e, err);
    if (r == 0)
        r = check_unused(e, err);
    if (r < 0)
        return r;
    e->shard_size = s->shard_size ? s->shard_size : e->target->shard_size;
    if (e->target->shard_size &&
        (e->shard_size < MIN_SHARD_SIZE || e->shard_size > e->target->max_shard_size))
        return pstk__fail_setting(err, "shard_size", s->shard_size,
                                  "be 0, or from %u to %llu of an export to %s", MIN_SHARD_SIZE,
                                  (unsigned long long)e->target->max_shard_size, e->target->name);
    return 0;
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* Return the position of a name among the export's fields, or -1. */
static int32_t find(const struct pstk__export *e, const char *name)
{
    for (uint32_t i = 0; i < e->n_fields; i++)
        if (strcmp(e->fields[i].name, name) == 0)
            return (int32_t)i;
    return -1;
}

static int is_listed(const struct pstk_export_settings *s, const char *name)
{
    for (uint32_t i = 0; i < s->n_fields; i++)
        if (s->fields[i] && strcmp(s->fields[i], name) == 0)
            return 1;
    return !s->fields;
}

static int fail_name(const struct pstk__source *source, const char *setting, const char *name,
                     struct pstk_error *err)
{
    char names[400];
    pstk__schema_names(&source->schema, names, sizeof names);
    return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                      "%s: value is '%.80s'; must be one of the fields that are exported; the data "
                      "set has %s",
                      setting, name, names);
}

/* Choose the fields that are listed, or all. */
static int choose_fields(struct pstk__export *e, const struct pstk__source *source,
                         struct pstk_error *err)
{
    const struct pstk_export_settings *s = e->settings;
    for (uint32_t i = 0; i < source->schema.n_fields; i++) {
        const struct pstk_field *field = &source->schema.fields[i];
        if (!is_listed(s, field->name))
            continue;
        e->fields[e->n_fields] = *field;
        e->fields[e->n_fields].dtype = field->dtype == PSTK_BF16 ? PSTK_F32 : field->dtype;
        e->stats[e->n_fields] = source->stats[i];
        e->numbers[e->n_fields++] = i;
    }
    for (uint32_t i = 0; s->fields && i < s->n_fields; i++)
        if (!s->fields[i] || find(e, s->fields[i]) < 0)
            return fail_name(source, "fields", s->fields[i] ? s->fields[i] : "", err);
    return e->n_fields ? 0
                       : pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                                    "fields: value is an empty list; must have one field at least");
}

/* Write the names of the fields that the target can hold, for advice. */
static void list_held(const struct pstk__export *e, char *names, size_t size)
{
    size_t n = 0;
    names[0] = 0;
    for (uint32_t i = 0; i < e->n_fields && n < size; i++)
        if (!e->target->refuse(e, i))
            n += (size_t)snprintf(names + n, size - n, "%s%s", n ? "," : "", e->fields[i].name);
}

static int check_fields(const struct pstk__export *e, struct pstk_error *err)
{
    char held[300];
    for (uint32_t i = 0; i < e->n_fields; i++) {
        const char *why = e->target->refuse(e, i);
        if (!why)
            continue;
        list_held(e, held, sizeof held);
        return held[0] ? pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                                    "field %s %s; leave it out: set fields to %s",
                                    e->fields[i].name, why, held)
                       : pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                                    "field %s %s, nor can %s hold any other of the fields; choose "
                                    "another target",
                                    e->fields[i].name, why, e->target->one);
    }
    return 0;
}

/* Find the field that has a role, among all or by its name. *found: its number, or -1. Returns how
 * many fields fit. */
static int find_role(const struct pstk_field *fields, uint32_t n_fields, uint32_t role,
                     const char *name, int32_t *found)
{
    const struct pstk_role_search search = {.size = sizeof search,
                                            .field_size = sizeof *fields,
                                            .fields = fields,
                                            .n_fields = n_fields,
                                            .role = role,
                                            .name = name};
    uint32_t index;
    const int n = pstk_role_find(&search, &index, NULL);
    *found = index == PSTK_NO_FIELD ? -1 : (int32_t)index;
    return n;
}

static int is_label(const struct pstk_field *field)
{
    int32_t found;
    return find_role(field, 1, PSTK_ROLE_LABEL, field->name, &found) == 1;
}

static int is_image(const struct pstk_field *field)
{
    return field->kind == PSTK_FIELD_IMAGE || field->kind == PSTK_FIELD_MASK;
}

static int is_text(const struct pstk_field *field)
{
    return field->kind == PSTK_FIELD_UTF8;
}

/* Find the field that a setting names. Returns -1 if it names none. */
static int find_named(const struct pstk__export *e, const struct pstk__source *source,
                      const char *setting, const char *name,
                      int (*fits)(const struct pstk_field *field), int32_t *out,
                      struct pstk_error *err)
{
    *out = name && *name ? find(e, name) : -1;
    if (!name || !*name)
        return 0;
    if (*out < 0)
        return fail_name(source, setting, name, err);
    return fits(&e->fields[*out]) ? 0
                                  : pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                                               "%s: field %s is of kind %s; must be %s", setting,
                                               name, pstk__field_kind_name(e->fields[*out].kind),
                                               fits == is_image  ? "an image or a mask"
                                               : fits == is_text ? "utf8"
                                                                 : "a scalar of whole numbers");
}

static int32_t likely_key(const struct pstk__export *e)
{
    static const char *const names[] = {"key", "__key__", "file_name", "path"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const int32_t named = find(e, names[i]);
        if (named >= 0 && is_text(&e->fields[named]))
            return named;
    }
    return -1;
}

/* Find the fields that have a role: image, label, key. */
static int find_parts(struct pstk__export *e, const struct pstk__source *source,
                      struct pstk_error *err)
{
    const struct pstk_export_settings *s = e->settings;
    int r = find_named(e, source, "image", s->image, is_image, &e->image, err);
    if (r == 0)
        r = find_named(e, source, "label", s->label, is_label, &e->label, err);
    if (r == 0)
        r = find_named(e, source, "key", s->key, is_text, &e->key, err);
    if (r < 0)
        return r;
    int n_images = 1;
    if (e->target->has_image && !s->image)
        n_images = find_role(e->fields, e->n_fields, PSTK_ROLE_IMAGE, NULL, &e->image);
    if (e->target->has_label && !s->label && source->names.n > 0)
        find_role(e->fields, e->n_fields, PSTK_ROLE_LABEL, NULL, &e->label);
    if (e->target->has_key && !s->key)
        e->key = likely_key(e);
    if (e->target->has_image && (e->image < 0 || n_images > 1))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "image: the fields have %s image; %s",
                          n_images > 1 ? "more than one" : "no",
                          n_images > 1 ? "name one" : "choose another target");
    return 0;
}

/* ---- an export ------------------------------------------------------------------------------- */

/* Append the members that every target's mark has. */
static void describe(const struct pstk__export *e, const struct pstk__source *source,
                     struct pstk__bytes *to)
{
    pstk__bytes_format(to, ",\"target\":\"%s\",\"n_samples\":%llu,\"identity\":\"%s\",\"fields\":[",
                       e->target->name, (unsigned long long)e->n_samples, source->identity);
    for (uint32_t i = 0; i < e->n_fields; i++) {
        const struct pstk_field *field = &e->fields[i];
        pstk__bytes_format(to, "%s{\"name\":\"%s\",\"kind\":\"%s\"", i ? "," : "", field->name,
                           pstk__field_kind_name(field->kind));
        if (field->dtype)
            pstk__bytes_format(to, ",\"dtype\":\"%s\",\"shape\":[", pstk_dtype_name(field->dtype));
        for (uint32_t k = 0; k < field->n_dims; k++)
            pstk__bytes_format(to, "%s%llu", k ? "," : "", (unsigned long long)field->shape[k]);
        pstk__bytes_text(to, field->dtype ? "]}" : "}");
    }
    pstk__bytes_text(to, "],\"names\":[");
    for (uint64_t i = 0; i < source->names.n; i++) {
        const char *name = pstk__texts_get(&source->names, i);
        pstk__bytes_text(to, i ? "," : "");
        pstk__json_text(to, name, strlen(name));
    }
    pstk__bytes_text(to, "]");
}

/* The state of an export; one function closes it all. */
struct run {
    struct pstk__export e;
    struct pstk_dataset *dataset; /* owned */
    struct pstk_members *members; /* owned; NULL: all samples */
    void *state;                  /* state of the target; owned */
};

static int take_sample(void *user, const struct pstk__export_sample *sample, struct pstk_error *err)
{
    struct run *run = user;
    return run->e.target->add(run->state, sample, err);
}

/* Write all files. */
static int write_samples(struct run *run, struct pstk_error *err)
{
    struct pstk__export *e = &run->e;
    struct pstk__samples samples = {.export = e,
                                    .dataset = run->dataset,
                                    .members = run->members,
                                    .n_threads = e->settings->n_threads,
                                    .take = take_sample,
                                    .user = run};
    int r = e->target->begin ? e->target->begin(run->state, err) : 0;
    if (r == 0)
        r = pstk__samples_read(&samples, err);
    if (r == 0 && e->target->end_shard)
        r = e->target->end_shard(run->state, err);
    if (r == 0)
        r = e->target->commit(run->state, err);
    e->result.n_samples = e->n_samples;
    e->result.n_images = samples.counts.n_images;
    e->result.n_equivalent = samples.counts.n_equivalent;
    e->result.n_remade = samples.counts.n_remade;
    e->result.n_encoded += samples.counts.n_encoded;
    if (r == 0 && e->settings->on_progress &&
        e->settings->on_progress(e->settings->user, e->n_samples, e->n_samples))
        r = pstk__fail(err, PSTK_ECANCELED, PSTK_STAGE_CONSUMER,
                       "export was stopped by its caller");
    return r;
}

/* Count the files, write the mark, and give the directory its name. */
static int commit(struct run *run, struct pstk_error *err)
{
    struct pstk__export *e = &run->e;
    struct pstk__outdir_files files;
    struct pstk__bytes rest = {0};
    int r = pstk__outdir_measure(&e->files, &files, err);
    if (r < 0)
        return r;
    describe(e, pstk__dataset_source(run->dataset), &rest);
    r = rest.failed ? pstk__export_no_memory(e, err)
                    : pstk__outdir_commit(&e->files, &files, &rest, err);
    pstk__bytes_free(&rest);
    e->result.n_files = files.n;
    e->result.bytes = files.bytes;
    return r;
}

/* Open the inputs, and check everything that can be checked before something is written. */
static int prepare(struct run *run, struct pstk_error *err)
{
    struct pstk__export *e = &run->e;
    int r = check_settings(e, err);
    if (r == 0)
        r = pstk_dataset_open(&run->dataset, e->settings->data, e->settings->foreign, err);
    if (r < 0)
        return r;
    const struct pstk__source *source = pstk__dataset_source(run->dataset);
    e->dataset = run->dataset;
    e->n_samples = source->n_samples;
    r = choose_fields(e, source, err);
    if (r == 0)
        r = find_parts(e, source, err);
    if (r == 0)
        r = check_fields(e, err);
    if (r == 0 && e->settings->subset) {
        r = pstk_members_open(&run->members, run->dataset, e->settings->subset, err);
        e->n_samples = r == 0 ? pstk_members_n(run->members) : 0;
    }
    return r < 0 ? r : e->target->open(&run->state, e, err);
}

int pstk_export(const struct pstk_export_settings *s, struct pstk_export_result *result,
                struct pstk_error *err)
{
    struct pstk_export_settings settings = {0};
    if (!s || s->size < sizeof s->size || (result && result->size < sizeof result->size))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "%s must have its size set to that of its struct",
                          result && result->size < sizeof result->size ? "result" : "s");
    memcpy(&settings, s, s->size < sizeof settings ? s->size : sizeof settings);
    struct run run = {.e = {.settings = &settings}};
    run.e.files.parent = run.e.files.dir = -1;
    int r = prepare(&run, err);
    if (r == 0)
        r = pstk__outdir_open(&run.e.files, settings.out, (int)settings.overwrite, err);
    run.e.result.had_leftovers = (uint32_t)run.e.files.had_leftovers;
    if (r == 0)
        r = write_samples(&run, err);
    if (run.e.target)
        run.e.target->abort(run.state);
    if (r == 0)
        r = commit(&run, err);
    pstk__outdir_close(&run.e.files);
    pstk_members_close(&run.members);
    pstk_dataset_close(&run.dataset);
    if (r == 0 && result) {
        run.e.result.size = result->size;
        memcpy(result, &run.e.result,
               result->size < sizeof *result ? result->size : sizeof *result);
    }
    return r;
}
