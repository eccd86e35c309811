/* SPDX-License-Identifier: Apache-2.0 */
/* Infers the fields of a data set from the first records of a file. */
#include "format/tfrecord/scan.h"

#include "base/error.h"
#include "format/tfrecord/example.h"
#include "format/tfrecord/frame.h"
#include "format/tfrecord/walk.h"
#include "image/image.h"

#include <stdio.h>
#include <stdlib.h>

#define INFERRED 1000              /* records from which fields are inferred, */
#define INFERRED_BYTES (64u << 20) /* or max bytes of the file */

/* The statistics of a feature. Records without a list of it do not count. */
struct sketch {
    char key[PSTK_MAX_NAME]; /* key in the records, at most PSTK_MAX_NAME - 1 bytes */
    uint32_t key_size;
    uint32_t type;        /* enum pstk__feature_type; EMPTY: no record has a list of it */
    uint64_t least, most; /* min and max values of its lists */
    uint64_t n;           /* number of its lists */
    int is_image;         /* 1: all values so far begin as JPEG or PNG files */
};

struct sample {
    struct pstk__tfrecord_walk walk;
    struct sketch sketches[PSTK_MAX_FIELDS];
    uint32_t n;
    uint64_t n_examples; /* intact Examples that have features */
    uint64_t n_others;   /* intact records that are no Example */
    int is_other;        /* 1: an intact record cannot become fields */
};

static const char advice[] = "to read records whole, ask for fields={\"data\": \"bytes\"}";

static int is_image(const uint8_t *value, uint64_t size)
{
    return (size >= 3 && memcmp(value, "\xff\xd8\xff", 3) == 0) ||
           (size >= 8 && memcmp(value, "\x89PNG\r\n\x1a\n", 8) == 0);
}

static int has_key(const struct sketch *sketch, const struct pstk__feature *feature)
{
    return sketch->key_size == feature->key_size &&
           memcmp(sketch->key, feature->key, feature->key_size) == 0;
}

/* Find the sketch of a feature, most likely number `guess`; NULL: there is none. */
static struct sketch *find_sketch(struct sample *sample, const struct pstk__feature *feature,
                                  uint32_t guess)
{
    if (guess < sample->n && has_key(&sample->sketches[guess], feature))
        return &sample->sketches[guess];
    for (uint32_t i = 0; i < sample->n; i++)
        if (has_key(&sample->sketches[i], feature))
            return &sample->sketches[i];
    return NULL;
}

/* Check that a new feature can be a field. */
static int check_key(struct sample *sample, const struct pstk__feature *feature)
{
    char name[PSTK_MAX_NAME];
    if (feature->key_size == 0 || feature->key_size >= PSTK_MAX_NAME)
        return pstk__tfrecord_walk_fail(&sample->walk, PSTK_ENOTSUP,
                                        "a key of a feature has %llu bytes; the name of a field "
                                        "must have 1 to %d: %s",
                                        (unsigned long long)feature->key_size, PSTK_MAX_NAME - 1,
                                        advice);
    if (sample->n == PSTK_MAX_FIELDS)
        return pstk__tfrecord_walk_fail(
            &sample->walk, PSTK_ENOTSUP,
            "the records have more than %d features, the limit of fields: %s", PSTK_MAX_FIELDS,
            advice);
    pstk__tfrecord_name(name, feature->key, feature->key_size);
    for (uint32_t i = 0; i < sample->n; i++)
        if (pstk__tfrecord_is_name(name, (const uint8_t *)sample->sketches[i].key,
                                   sample->sketches[i].key_size))
            return pstk__tfrecord_walk_fail(&sample->walk, PSTK_ENOTSUP,
                                            "two feature keys become the field name %s, because "
                                            "bytes other than A-Z a-z 0-9 _ - become '.': %s",
                                            name, advice);
    return 0;
}

/* Find the sketch of a feature, or add one. */
static int get_sketch(struct sample *sample, const struct pstk__feature *feature, uint32_t guess,
                      struct sketch **out)
{
    *out = find_sketch(sample, feature, guess);
    if (*out)
        return 0;
    const int r = check_key(sample, feature);
    if (r < 0)
        return r;
    *out = &sample->sketches[sample->n++];
    **out = (struct sketch){
        .key_size = (uint32_t)feature->key_size, .least = UINT64_MAX, .is_image = 1};
    memcpy((*out)->key, feature->key, feature->key_size);
    return 0;
}

/* Add a feature to its sketch. */
static int add_feature(struct sample *sample, const struct pstk__feature *feature,
                       struct sketch *sketch)
{
    struct pstk__feature_list list;
    uint64_t n_bytes, size;
    const uint8_t *value;
    (void)pstk__feature_open(&list, feature->data,
                             feature->size); /* cannot fail: is_example checked it */
    const uint64_t n = (uint64_t)pstk__feature_count(&list, &n_bytes);
    if (list.type == PSTK__FEATURE_EMPTY)
        return 0;
    if (sketch->type && sketch->type != list.type)
        return pstk__tfrecord_walk_fail(&sample->walk, PSTK_ENOTSUP,
                                        "feature '%s' has values of another type than in the "
                                        "records before it: %s",
                                        sketch->key, advice);
    sketch->type = list.type;
    sketch->n++;
    sketch->least = n < sketch->least ? n : sketch->least;
    sketch->most = n > sketch->most ? n : sketch->most;
    while (list.type == PSTK__FEATURE_BYTES && pstk__feature_next(&list, &value, &size) > 0)
        sketch->is_image &= is_image(value, size);
    return 0;
}

/* Add the features of an Example; of those with one key, the last counts. */
static int add_features(struct sample *sample, struct pstk__example *example)
{
    struct pstk__feature feature, last[PSTK_MAX_FIELDS];
    struct sketch *sketch;
    uint64_t seen = 0; /* a bit for each sketch */
    int r = 0;
    for (uint32_t i = 0; r == 0 && pstk__example_next(example, &feature) > 0; i++) {
        r = get_sketch(sample, &feature, i, &sketch);
        if (r == 0) {
            last[sketch - sample->sketches] = feature;
            seen |= UINT64_C(1) << (sketch - sample->sketches);
        }
    }
    for (uint32_t i = 0; r == 0 && i < sample->n; i++)
        if (seen >> i & 1)
            r = add_feature(sample, &last[i], &sample->sketches[i]);
    return r;
}

/* 1: the data is an Example, down to its values. */
static int is_example(const uint8_t *data, uint64_t size)
{
    struct pstk__example example;
    struct pstk__feature feature;
    struct pstk__feature_list list;
    uint64_t n_bytes;
    if (!pstk__example_begin(&example, data, size))
        return 0;
    int r;
    while ((r = pstk__example_next(&example, &feature)) > 0)
        if (!pstk__feature_open(&list, feature.data, feature.size) ||
            pstk__feature_count(&list, &n_bytes) < 0)
            return 0;
    return r == 0;
}

/* Fail because the data of the record can neither become fields nor a single value. */
static int fail_record(struct sample *sample, const char *what)
{
    return pstk__tfrecord_walk_fail(&sample->walk, PSTK_ENOTSUP, "its data is %s: %s", what,
                                    advice);
}

/* Add a record that is no Example. */
static int add_other(struct sample *sample, const uint8_t *data)
{
    const char *other = pstk__example_other(data, sample->walk.length);
    sample->n_others++;
    if (other)
        return fail_record(sample, other);
    return sample->n_examples > 0
               ? fail_record(sample, "not a tf.train.Example, unlike that of earlier records")
               : 0;
}

/* Add a record. A damaged one is skipped: its readers report it. */
static int add_record(struct sample *sample)
{
    const uint8_t *data;
    struct pstk__example example;
    const int r = pstk__tfrecord_walk_data(&sample->walk, &data);
    if (r < 0 || !pstk__tfrecord_intact(data, sample->walk.length))
        return r;
    if (!is_example(data, sample->walk.length))
        return add_other(sample, data);
    (void)pstk__example_begin(&example, data, sample->walk.length);
    const int has_entries = example.entries.at < example.entries.end;
    sample->n_examples += (uint64_t)has_entries;
    if (has_entries && sample->n_others > 0)
        return fail_record(sample, "a tf.train.Example, unlike that of earlier records");
    return add_features(sample, &example);
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* Make the field of a sketch over n_records. An image that some records lack stays an image,
 * because a list of images could not be decoded, and an empty value is no image. */
static void make_field(struct pstk__index_field *out, const struct sketch *sketch,
                       uint64_t n_records)
{
    struct pstk_field *field = &out->field;
    *out = (struct pstk__index_field){.coding = 16 + sketch->type};
    pstk__tfrecord_name(field->name, (const uint8_t *)sketch->key, sketch->key_size);
    const int has_one = sketch->least == 1 && sketch->most == 1;
    const int is_one = has_one && sketch->n >= n_records;
    if (sketch->type == PSTK__FEATURE_BYTES) {
        field->kind = has_one && sketch->is_image ? PSTK_FIELD_IMAGE
                      : is_one                    ? PSTK_FIELD_BYTES
                                                  : PSTK_FIELD_BYTES_LIST;
        return;
    }
    field->dtype = sketch->type == PSTK__FEATURE_FLOAT ? PSTK_F32 : PSTK_I64;
    field->kind = is_one ? PSTK_FIELD_SCALAR : PSTK_FIELD_NDARRAY;
    if (is_one)
        return;
    field->n_dims = 1;
    const int is_fixed = sketch->least == sketch->most && sketch->n >= n_records;
    field->shape[0] = is_fixed ? sketch->least : 0;
}

static void make_whole(struct pstk__inferred_schema *found)
{
    found->n_fields = 1;
    found->fields[0] =
        (struct pstk__index_field){.field = {.name = PSTK__TFRECORD_DATA, .kind = PSTK_FIELD_BYTES},
                                   .coding = PSTK__TFRECORD_WHOLE};
}

/* Make fields of the features, and of those that the caller wants. */
static int make_fields(const struct sample *sample, const struct pstk_foreign *wanted,
                       struct pstk__inferred_schema *found, struct pstk_error *err)
{
    int r = 0;
    for (uint32_t i = 0; i < sample->n; i++)
        if (sample->sketches[i].type != PSTK__FEATURE_EMPTY)
            make_field(&found->fields[found->n_fields++], &sample->sketches[i], sample->n_examples);
    for (uint32_t i = 0; r == 0 && wanted && i < wanted->n_fields; i++) {
        if (pstk__index_find_field(found, wanted->fields[i].name) >= 0)
            continue;
        if (found->n_fields == PSTK_MAX_FIELDS)
            return pstk__fail(
                err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                "field %s: the records have %d other features already, the limit of fields",
                wanted->fields[i].name, PSTK_MAX_FIELDS);
        r = pstk__tfrecord_want(&found->fields[found->n_fields++], &wanted->fields[i], err);
    }
    return r;
}

/* 1: the caller wants whole records, and names their field. */
static int wants_whole(const struct pstk_foreign *wanted)
{
    for (uint32_t i = 0; wanted && i < wanted->n_fields; i++)
        if (strcmp(wanted->fields[i].name, PSTK__TFRECORD_DATA) == 0)
            return 1;
    return 0;
}

static int has_key_data(const struct sample *sample)
{
    for (uint32_t i = 0; i < sample->n; i++)
        if (strcmp(sample->sketches[i].key, PSTK__TFRECORD_DATA) == 0)
            return 1;
    return 0;
}

int pstk__tfrecord_infer(const struct pstk__scan *scan, const struct pstk_foreign *wanted,
                         struct pstk__inferred_schema *found, struct pstk_error *err)
{
    struct sample *sample = calloc(1, sizeof *sample);
    found->n_fields = 0;
    if (!sample)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to index %s", scan->path);
    int r = pstk__tfrecord_walk_open(&sample->walk, scan, err);
    if (r == 0)
        r = 1;
    while (r > 0 && sample->walk.n < INFERRED && sample->walk.next < INFERRED_BYTES &&
           (r = pstk__tfrecord_walk_next(&sample->walk)) > 0) {
        const int added = sample->is_other ? 0 : add_record(sample);
        sample->is_other |= added < 0;
        r = added < 0 && !wants_whole(wanted) ? added : 1;
    }
    const int has_records = sample->walk.n > 0;
    const int is_whole = sample->is_other || sample->n_others > 0 || sample->n == 0 ||
                         (wants_whole(wanted) && !has_key_data(sample));
    if (r >= 0 && has_records && !is_whole)
        r = make_fields(sample, wanted, found, err);
    if (r >= 0 && has_records && found->n_fields == 0)
        make_whole(found);
    pstk__tfrecord_walk_close(&sample->walk);
    free(sample);
    return r < 0 ? r : 0;
}
