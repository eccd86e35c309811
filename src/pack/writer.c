/* SPDX-License-Identifier: Apache-2.0 */
/*
 *   add -> block -> (held until the dictionaries are trained) -> window: encoded by threads
 *       -> emitted in order -> shard_writer -> staging
 *
 * Every decision (which records share a block, when to train, where a shard ends) is taken by the
 * caller's thread from the records alone, so the bytes written do not depend on the threads.
 */
#include "pack/block.h"
#include "base/crc32c.h"
#include "pack/encode_pool.h"
#include "base/error.h"
#include "image/image.h"
#include "pack/merge.h"
#include "pack/shard_writer.h"
#include "format/pstk/tally.h"
#include "record/value.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHARD_SIZE_DEFAULT (256u << 20)
#define SHARD_SIZE_MIN (64u << 10)
#define DICTIONARY_DEFAULT 112640u /* what the zstd command uses */
#define DICTIONARY_MIN 256u        /* zstd refuses to train less */
#define DICTIONARY_SHARE 16        /* a dictionary is at most 1/16 of what it was trained on */
#define SAMPLES_PER_DICTIONARY 100 /* zstd's advice: train on 100 times the dictionary's size */
#define HELD_MAX (64u << 20)       /* bytes of records held back for training */
#define VIEW_SIZE                                                                                  \
    48                          /* bytes counted for a held value beside its own: a constant, so   \
                                   that no machine decides otherwise */
#define SMALL_VALUE (16u << 10) /* mean bytes below which a dictionary is worth it */
#define MAX_THREADS 1024
#define MAX_SIDE 65535 /* pixels: the record head has 16 bits for it */

/* Records held back until there are enough to train the dictionaries on. */
struct held {
    struct pstk__block **blocks; /* owned */
    uint64_t n_blocks;
    uint64_t capacity;
    uint64_t n_records;
    uint64_t size;                   /* bytes they take, about */
    uint64_t field[PSTK_MAX_FIELDS]; /* bytes of values, by field */
};

struct pstk_writer {
    struct pstk__manifest manifest; /* schema, sums; complete at commit */
    struct pstk__staging staging;
    struct pstk__shard_writer shards;
    struct pstk__identity identity;
    struct pstk__encode_window *window; /* NULL until the dictionaries are settled */
    struct pstk__block *block;          /* being filled; NULL: none */
    struct held held;
    uint32_t n_threads;
    uint32_t dictionary_size; /* bytes; 0: none */
    uint64_t shard_size;
    uint64_t n_samples; /* added */
    int failed;         /* result of what went wrong; only abort may follow */
};

/* ---- opening ----------------------------------------------------------------------------- */

void pstk_writer_settings_init(struct pstk_writer_settings *s, uint32_t size)
{
    if (!s || size < 2 * sizeof(uint32_t))
        return;
    memset(s, 0, size);
    s->size = size;
    s->field_size = sizeof(struct pstk_field);
}

/* A caller built against another version has a shorter or longer struct: what is missing reads 0,
 * what we do not know must be 0. */
static int copy_sized(void *to, size_t size, const void *from, size_t from_size)
{
    const uint8_t *p = from;
    memset(to, 0, size);
    memcpy(to, from, from_size < size ? from_size : size);
    for (size_t i = size; i < from_size; i++)
        if (p[i])
            return -1;
    return 0;
}

static int invalid(struct pstk_error *err, const char *name, uint64_t value, const char *advice)
{
    return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "%s is %" PRIu64 ": %s", name, value,
                      advice);
}

static int check_settings(struct pstk_writer_settings *s, struct pstk_error *err)
{
    if (!s->path || !*s->path)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "path is empty: name a directory");
    if (!s->fields)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "fields is NULL: describe a record");
    if (s->n_fields == 0 || s->n_fields > PSTK_MAX_FIELDS)
        return invalid(err, "n_fields", s->n_fields, "a record has 1 to 64 fields");
    if (s->field_size < offsetof(struct pstk_field, codec))
        return invalid(err, "field_size", s->field_size, "call pstk_writer_settings_init");
    s->n_parts = s->n_parts ? s->n_parts : 1;
    if (s->part >= s->n_parts)
        return invalid(err, "part", s->part, "it counts from 0 and stays below n_parts");
    s->n_threads = s->n_threads ? s->n_threads : 1;
    if (s->n_threads > MAX_THREADS)
        return invalid(err, "n_threads", s->n_threads, "at most 1024");
    s->shard_size = s->shard_size ? s->shard_size : SHARD_SIZE_DEFAULT;
    if (s->shard_size < SHARD_SIZE_MIN || s->shard_size > PSTK__MAX_SHARD_SIZE)
        return invalid(err, "shard_size", s->shard_size, "choose 64 KiB to 16 TiB");
    s->dictionary_size = s->dictionary_size ? s->dictionary_size : DICTIONARY_DEFAULT;
    if (s->dictionary_size == 1)
        s->dictionary_size = 0;
    else if (s->dictionary_size < DICTIONARY_MIN || s->dictionary_size > PSTK__MAX_DICTIONARY)
        return invalid(err, "dictionary_size", s->dictionary_size,
                       "choose 256 bytes to 16 MiB, or 1 for no dictionary");
    if (s->overwrite > 1)
        return invalid(err, "overwrite", s->overwrite, "0 or 1");
    if (s->n_names && !s->names)
        return invalid(err, "n_names", s->n_names, "but names is NULL");
    return 0;
}

static int copy_schema(struct pstk__schema *schema, const struct pstk_writer_settings *s,
                       struct pstk_error *err)
{
    struct pstk_field *fields = calloc(s->n_fields, sizeof *fields);
    if (!fields)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "%s: out of memory", s->path);
    const uint8_t *from = (const uint8_t *)s->fields;
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < s->n_fields; i++, from += s->field_size)
        if (copy_sized(&fields[i], sizeof *fields, from, s->field_size) < 0)
            r = pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                           "fields[%u] has members that this version does not know", i);
    if (r == 0)
        r = pstk__schema_init(schema, fields, s->n_fields, err);
    free(fields);
    return r;
}

static int has_zstd(const struct pstk__schema *schema)
{
    for (uint32_t i = 0; i < schema->n_fields; i++)
        if (schema->fields[i].codec == PSTK_CODEC_ZSTD)
            return 1;
    return 0;
}

/* 1: encoding takes long enough to be worth threads. */
static int is_encoded(const struct pstk__schema *schema)
{
    for (uint32_t i = 0; i < schema->n_fields; i++)
        if (schema->fields[i].codec != PSTK_CODEC_NONE)
            return 1;
    return 0;
}

static void teardown(struct pstk_writer **w);

static int open_parts(struct pstk_writer *w, const struct pstk_writer_settings *s,
                      struct pstk_error *err)
{
    struct pstk__manifest *m = &w->manifest;
    w->n_threads = s->n_threads;
    w->shard_size = s->shard_size;
    m->part = s->part;
    m->n_parts = s->n_parts;
    int r = copy_schema(&m->schema, s, err);
    if (r == 0)
        r = pstk__manifest_set_note(m, s->note, err);
    if (r == 0)
        r = pstk__manifest_set_names(m, s->names, s->n_names, err);
    if (r == 0)
        r = pstk__staging_open(&w->staging, s->path, (int)s->overwrite, err);
    if (r == 0)
        r = pstk__shard_writer_open(&w->shards, &w->staging, &m->schema, err);
    w->dictionary_size = has_zstd(&m->schema) ? s->dictionary_size : 0;
    return r;
}

int pstk_writer_open(struct pstk_writer **out, const struct pstk_writer_settings *settings,
                     struct pstk_error *err)
{
    struct pstk_writer_settings s;
    if (!out)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "out is NULL");
    *out = NULL;
    if (!settings)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "settings is NULL");
    if (settings->size < offsetof(struct pstk_writer_settings, note))
        return invalid(err, "size", settings->size, "call pstk_writer_settings_init");
    if (copy_sized(&s, sizeof s, settings, settings->size) < 0)
        return invalid(err, "size", settings->size, "has settings that this version does not know");
    int r = check_settings(&s, err);
    if (r < 0)
        return r;
    struct pstk_writer *w = calloc(1, sizeof *w);
    if (!w)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "%s: out of memory", s.path);
    w->staging.dir = -1;
    w->shards.fd = -1;
    r = open_parts(w, &s, err);
    if (r < 0)
        teardown(&w);
    *out = w;
    return r;
}

/* ---- closing: the one way down ------------------------------------------------------------- */

static void teardown(struct pstk_writer **out)
{
    struct pstk_writer *w = *out;
    *out = NULL;
    if (!w)
        return;
    pstk__encode_window_close(w->window);
    pstk__block_close(w->block);
    for (uint64_t i = 0; i < w->held.n_blocks; i++)
        pstk__block_close(w->held.blocks[i]);
    free(w->held.blocks);
    pstk__shard_writer_close(&w->shards);
    pstk__staging_close(&w->staging);
    pstk__manifest_free(&w->manifest);
    free(w);
}

void pstk_writer_abort(struct pstk_writer **w)
{
    if (w)
        teardown(w);
}

/* ---- out: blocks become shards ------------------------------------------------------------- */

static int finish_shard(struct pstk_writer *w, struct pstk_error *err)
{
    struct pstk__manifest_shard shard = {0};
    uint32_t dictionaries[PSTK_MAX_FIELDS];
    int r = pstk__shard_writer_finish(&w->shards, &shard, err);
    if (r < 0)
        return r;
    /* The dictionaries are the data set's, so every shard has them all. */
    shard.n_dictionaries = w->manifest.n_dictionaries;
    shard.dictionaries = dictionaries;
    for (uint32_t i = 0; i < shard.n_dictionaries; i++)
        dictionaries[i] = i;
    pstk__identity_join(&w->identity, &w->shards.identity);
    return pstk__manifest_add_shard(&w->manifest, &shard, err);
}

/* CRC of a record's content: of fixed fields' bytes and the other fields' plain CRCs. */
static uint32_t content_crc(const struct pstk__schema *schema, const struct pstk__field_view *views)
{
    uint32_t crc = 0;
    for (uint32_t i = 0; i < schema->n_fields; i++)
        crc = schema->entry[i] < 0
                  ? pstk__crc32c(crc, views[i].data, schema->fixed_size[i])
                  : pstk__crc32c(crc, &views[i].plain_crc, sizeof views[i].plain_crc);
    return crc;
}

/* `views`: of its first record. */
static int begin_shard(struct pstk_writer *w, const struct pstk__field_view *views,
                       struct pstk_error *err)
{
    char stem[64], name[PSTK__MAX_FILE_NAME + 1];
    const struct pstk__manifest *m = &w->manifest;
    uint32_t sequence = m->n_shards;
    if (m->n_parts == 1)
        snprintf(stem, sizeof stem, "shard-%06u", sequence);
    else /* merge links the files of all parts into one directory */
        snprintf(stem, sizeof stem, "part-%05u-of-%05u-%06u", m->part, m->n_parts, sequence);
    int r = pstk__staging_name(&w->staging, name, sizeof name, stem, ".pstk", err);
    if (r < 0)
        return r;
    uint32_t content = content_crc(&m->schema, views);
    return pstk__shard_writer_begin(&w->shards, name,
                                    pstk__shard_tag(m->part, m->n_parts, sequence, content), err);
}

static int emit_record(struct pstk_writer *w, const struct pstk__field_view *views,
                       struct pstk_error *err)
{
    const struct pstk__schema *schema = &w->manifest.schema;
    uint64_t size = schema->head_size;
    for (uint32_t i = 0; i < schema->n_fields; i++)
        if (schema->entry[i] >= 0)
            size += views[i].stored_size;
    int r = 0;
    if (!pstk__shard_writer_fits(&w->shards, size, w->shard_size)) {
        if (w->shards.fd >= 0)
            r = finish_shard(w, err);
        if (r == 0)
            r = begin_shard(w, views, err);
    }
    if (r == 0)
        r = pstk__shard_writer_add(&w->shards, views, size, err);
    if (r == 0)
        pstk__tally_add(w->manifest.stats, schema, views);
    return r;
}

static int emit_block(void *user, struct pstk__block *b, struct pstk_error *err)
{
    struct pstk_writer *w = user;
    const struct pstk__field_view *v = b->views;
    int r = 0;
    for (uint32_t k = 0; r == 0 && k < b->n_records; k++, v += w->manifest.schema.n_fields)
        r = emit_record(w, v, err);
    return r;
}

/* ---- dictionaries -------------------------------------------------------------------------- */

static int hold(struct pstk_writer *w, struct pstk__block *b, struct pstk_error *err)
{
    struct held *h = &w->held;
    if (h->n_blocks == h->capacity) {
        uint64_t capacity = h->capacity ? h->capacity * 2 : 16;
        struct pstk__block **blocks = realloc(h->blocks, capacity * sizeof *blocks);
        if (!blocks)
            return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "%s: out of memory",
                              w->staging.path);
        h->blocks = blocks;
        h->capacity = capacity;
    }
    h->blocks[h->n_blocks++] = b;
    w->block = NULL;
    uint32_t n_fields = w->manifest.schema.n_fields;
    h->size += b->plain_size + (uint64_t)b->n_records * n_fields * VIEW_SIZE;
    h->n_records += b->n_records;
    for (uint64_t i = 0; i < (uint64_t)b->n_records * n_fields; i++)
        h->field[i % n_fields] += b->views[i].plain_size;
    return 0;
}

static int held_enough(const struct pstk_writer *w)
{
    const struct pstk__schema *schema = &w->manifest.schema;
    if (w->held.size >= HELD_MAX)
        return 1;
    for (uint32_t i = 0; i < schema->n_fields; i++)
        if (schema->fields[i].codec == PSTK_CODEC_ZSTD &&
            w->held.field[i] / SAMPLES_PER_DICTIONARY < w->dictionary_size)
            return 0;
    return 1;
}

/* The values of one field of all held records, end to end. */
static uint32_t gather(const struct pstk_writer *w, uint32_t field, uint8_t *samples, size_t *sizes)
{
    uint32_t n_fields = w->manifest.schema.n_fields, n = 0;
    for (uint64_t k = 0; k < w->held.n_blocks; k++) {
        const struct pstk__block *b = w->held.blocks[k];
        const uint8_t *p = b->plain;
        for (uint64_t i = 0; i < (uint64_t)b->n_records * n_fields; i++) {
            uint32_t size = b->views[i].plain_size;
            if (i % n_fields == field && size > 0) {
                memcpy(samples, p, size);
                samples += size;
                sizes[n++] = size;
            }
            p += size;
        }
    }
    return n;
}

/* Name of a dictionary file: the field's, but no leading dot. */
static int put_dictionary(struct pstk_writer *w, uint32_t field, const void *bytes, uint64_t size,
                          struct pstk_error *err)
{
    char stem[PSTK_MAX_NAME + 16], name[PSTK__MAX_FILE_NAME + 1];
    struct pstk__manifest_dictionary d = {
        .file = name, .field = field, .crc = pstk__crc32c(0, bytes, size), .bytes = size};
    const char *field_name = w->manifest.schema.fields[field].name;
    snprintf(stem, sizeof stem, "%s%s-%08x", field_name[0] == '.' ? "_" : "", field_name, d.crc);
    int r = pstk__staging_name(&w->staging, name, sizeof name, stem, ".zdict", err);
    if (r == 0)
        r = pstk__staging_put(&w->staging, name, bytes, size, err);
    return r < 0 ? r : pstk__manifest_add_dictionary(&w->manifest, &d, err);
}

static int train(struct pstk_writer *w, uint32_t field, struct pstk__encode_dictionary *out,
                 struct pstk_error *err)
{
    uint64_t bytes = w->held.field[field], n = w->held.n_records;
    uint64_t capacity = bytes / DICTIONARY_SHARE;
    capacity = capacity < w->dictionary_size ? capacity : w->dictionary_size;
    if (n == 0 || bytes / n >= SMALL_VALUE || capacity < DICTIONARY_MIN)
        return 0;
    uint8_t *samples = malloc(bytes);
    size_t *sizes = malloc(n * sizeof *sizes);
    uint8_t *dictionary = malloc(capacity);
    int r = 0;
    if (samples && sizes && dictionary) {
        uint32_t n_samples = gather(w, field, samples, sizes);
        r = pstk__dictionary_train(dictionary, capacity, samples, sizes, n_samples, &out->size,
                                   err);
    } else {
        r = pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE,
                       "%s: out of memory for training a dictionary", w->staging.path);
    }
    free(samples);
    free(sizes);
    if (r < 0 || out->size == 0) {
        free(dictionary);
        return r;
    }
    out->bytes = dictionary;
    return put_dictionary(w, field, dictionary, out->size, err);
}

/* Decide on the dictionaries, start the threads, let the held records go. */
static int settle(struct pstk_writer *w, struct pstk_error *err)
{
    struct pstk__encode_dictionary dictionaries[PSTK_MAX_FIELDS] = {{0}};
    const struct pstk__schema *schema = &w->manifest.schema;
    int r = 0;
    for (uint32_t i = 0; r == 0 && w->dictionary_size && i < schema->n_fields; i++)
        if (schema->fields[i].codec == PSTK_CODEC_ZSTD)
            r = train(w, i, &dictionaries[i], err);
    if (r == 0) {
        struct pstk__encode_config config = {.schema = schema,
                                             .dictionaries = dictionaries,
                                             .n_threads = is_encoded(schema) ? w->n_threads : 1,
                                             .emit = emit_block,
                                             .user = w};
        r = pstk__encode_window_open(&w->window, &config, err);
    }
    for (uint32_t i = 0; i < schema->n_fields; i++)
        free(dictionaries[i].bytes);
    for (uint64_t i = 0; r == 0 && i < w->held.n_blocks; i++) {
        struct pstk__block *b = w->held.blocks[i];
        w->held.blocks[i] = NULL;
        r = pstk__encode_window_push(w->window, b, err);
    }
    return r;
}

/* ---- in: records become blocks ------------------------------------------------------------- */

/* Send the current block on its way. */
static int close_block(struct pstk_writer *w, struct pstk_error *err)
{
    struct pstk__block *b = w->block;
    if (!b || b->n_records == 0)
        return 0;
    if (w->window) {
        w->block = NULL;
        return pstk__encode_window_push(w->window, b, err);
    }
    int r = hold(w, b, err);
    return r == 0 && held_enough(w) ? settle(w, err) : r;
}

static int fail_closed(struct pstk_error *err)
{
    return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_WRITE,
                      "w is NULL: this writer was committed or aborted before; open another");
}

static int fail_value(const struct pstk_writer *w, uint32_t i, int code, struct pstk_error *err,
                      const char *what)
{
    return pstk__fail(err, code, PSTK_STAGE_WRITE, "%s: record %" PRIu64 ", field %s: %s",
                      w->staging.path, w->n_samples, w->manifest.schema.fields[i].name, what);
}

static int check_pixels(const struct pstk_writer *w, uint32_t i, const struct pstk_value *value,
                        const struct pstk__image_info *pixels, struct pstk_error *err)
{
    uint64_t n = (uint64_t)pixels->width * pixels->height;
    if (pixels->width == 0 || pixels->height == 0)
        return fail_value(w, i, PSTK_EINVAL, err, "an image of no pixels");
    if (pixels->width > MAX_SIDE || pixels->height > MAX_SIDE || n > PSTK__MAX_PIXELS)
        return fail_value(w, i, PSTK_EFBIG, err,
                          "the image has more than 65535 pixels a side or 178956970 in all");
    if (value->size != n * 3)
        return fail_value(w, i, PSTK_EINVAL, err, "pixels need height x width x 3 bytes");
    return 0;
}

static int probe_image(const struct pstk_writer *w, uint32_t i, const struct pstk_value *value,
                       struct pstk__image_info *info, struct pstk_error *err)
{
    struct pstk_error why;
    pstk_error_init(&why, sizeof why);
    int r = pstk__image_probe(value->data, value->size, PSTK__MAX_PIXELS, info, &why);
    if (r < 0) /* not supported, here, means the same as damaged: the record is not added */
        return fail_value(w, i, r == PSTK_EFBIG ? r : PSTK_EBADMSG, err, why.message);
    if (info->width > MAX_SIDE || info->height > MAX_SIDE)
        return fail_value(w, i, PSTK_EFBIG, err, "the image has more than 65535 pixels a side");
    return 0;
}

/* Check one value; fill encoding, width and height of its view. */
static int check_value(const struct pstk_writer *w, uint32_t i, const struct pstk_value *value,
                       const struct pstk__image_info *pixels, struct pstk__field_view *view,
                       struct pstk_error *err)
{
    const struct pstk_field *field = &w->manifest.schema.fields[i];
    char text[160];
    if (!value->data && value->size)
        return fail_value(w, i, PSTK_EINVAL, err, "data is NULL");
    if (field->kind != PSTK_FIELD_IMAGE) {
        const char *what = pstk__value_check(field, value->data, value->size, text);
        return what ? fail_value(w, i, PSTK_EINVAL, err, what) : 0;
    }
    struct pstk__image_info info;
    int r;
    if (pixels) {
        info = *pixels;
        r = check_pixels(w, i, value, pixels, err);
    } else {
        memset(&info, 0, sizeof info);
        r = probe_image(w, i, value, &info, err);
    }
    view->encoding = (uint8_t)info.encoding;
    view->width = (uint16_t)info.width;
    view->height = (uint16_t)info.height;
    return r;
}

/* Check all values and their sum: a record that is stored uncompressed must fit, so that whether it
 * is accepted does not hang on how well it compresses. */
static int check_record(const struct pstk_writer *w, const struct pstk_value *values,
                        uint32_t pixels_field, const struct pstk__image_info *pixels,
                        struct pstk__field_view *views, uint64_t *plain_size,
                        struct pstk_error *err)
{
    const struct pstk__schema *schema = &w->manifest.schema;
    uint64_t size = schema->head_size, plain = 0;
    for (uint32_t i = 0; i < schema->n_fields; i++) {
        if (values[i].size > PSTK__MAX_RECORD_SIZE)
            return fail_value(w, i, PSTK_EFBIG, err, "the value is 4 GiB or larger");
        plain += values[i].size;
        size += schema->entry[i] >= 0 ? values[i].size : 0;
        if (size > PSTK__MAX_RECORD_SIZE)
            return fail_value(w, i, PSTK_EFBIG, err, "the record is 4 GiB or larger");
        int r = check_value(w, i, &values[i], i == pixels_field ? pixels : NULL, &views[i], err);
        if (r < 0)
            return r;
    }
    *plain_size = plain;
    return w->n_samples < PSTK__MAX_SAMPLES
               ? 0
               : pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_WRITE, "%s: has 2^40 records, no more fit",
                            w->staging.path);
}

static int append(struct pstk_writer *w, const struct pstk_value *values,
                  const struct pstk__field_view *views, uint64_t plain_size, struct pstk_error *err)
{
    const struct pstk__schema *schema = &w->manifest.schema;
    int r = 0;
    if (!w->window && !w->dictionary_size)
        r = settle(w, err);
    if (r == 0 && !w->block) {
        w->block = w->window ? pstk__encode_window_block(w->window) : pstk__block_open();
        if (!w->block)
            r = pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "%s: out of memory",
                           w->staging.path);
    }
    if (r == 0)
        r = pstk__block_reserve(w->block, schema, plain_size, err);
    if (r < 0)
        return r;
    pstk__block_add(w->block, schema, values, views);
    w->n_samples++;
    return pstk__block_full(w->block) ? close_block(w, err) : 0;
}

static int add(struct pstk_writer *w, const struct pstk_value *values, uint32_t n_values,
               uint32_t pixels_field, const struct pstk__image_info *pixels, struct pstk_error *err)
{
    struct pstk__field_view views[PSTK_MAX_FIELDS];
    uint64_t plain_size = 0;
    if (!w)
        return fail_closed(err);
    if (!values)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_WRITE, "values is NULL");
    const struct pstk__schema *schema = &w->manifest.schema;
    if (w->failed)
        return pstk__fail(err, w->failed, PSTK_STAGE_WRITE,
                          "%s: writing failed before; only abort may follow", w->staging.path);
    if (n_values != schema->n_fields)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_WRITE,
                          "n_values is %u: a record of this data set has %u", n_values,
                          schema->n_fields);
    if (pixels &&
        (pixels_field >= schema->n_fields || schema->fields[pixels_field].kind != PSTK_FIELD_IMAGE))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_WRITE, "field %u is no image field",
                          pixels_field);
    memset(views, 0, schema->n_fields * sizeof *views);
    int r = check_record(w, values, pixels_field, pixels, views, &plain_size, err);
    if (r < 0)
        return r;
    r = append(w, values, views, plain_size, err);
    /* The record was fine. A limit of the system (a file that grew too large, say) must not look
     * like one of the record, after which adding may go on. */
    if (r == PSTK_EINVAL || r == PSTK_EFBIG || r == PSTK_EBADMSG) {
        r = PSTK_EIO;
        if (err)
            err->code = r;
    }
    if (r < 0)
        w->failed = r;
    return r;
}

int pstk_writer_add(struct pstk_writer *w, const struct pstk_value *values, uint32_t n_values,
                    struct pstk_error *err)
{
    return add(w, values, n_values, 0, NULL, err);
}

int pstk_writer_add_pixels(struct pstk_writer *w, const struct pstk_value *values,
                           uint32_t n_values, uint32_t field, uint32_t height, uint32_t width,
                           struct pstk_error *err)
{
    struct pstk__image_info pixels = {
        .encoding = PSTK_ENCODING_PIXELS, .width = width, .height = height, .orientation = 1};
    return add(w, values, n_values, field, &pixels, err);
}

uint64_t pstk_writer_n_leftovers(const struct pstk_writer *w)
{
    return w ? w->staging.n_leftovers : 0;
}

uint64_t pstk_writer_n_samples(const struct pstk_writer *w)
{
    return w ? w->n_samples : 0;
}

/* ---- commit -------------------------------------------------------------------------------- */

static int write_rest(struct pstk_writer *w, struct pstk_error *err)
{
    int r = close_block(w, err);
    if (r == 0 && !w->window)
        r = settle(w, err);
    if (r == 0)
        r = pstk__encode_window_drain(w->window, err);
    if (r == 0 && w->shards.fd >= 0)
        r = finish_shard(w, err);
    return r;
}

static int write_manifest(struct pstk_writer *w, struct pstk_error *err)
{
    char *bytes = NULL;
    uint64_t size = 0;
    pstk__identity_text(&w->identity, w->manifest.schema.crc, w->manifest.identity);
    int r = pstk__manifest_print(&w->manifest, &bytes, &size, err);
    if (r == 0)
        r = pstk__staging_commit(&w->staging, bytes, size, err);
    free(bytes);
    return r;
}

static int check_failed(const struct pstk_writer *w, struct pstk_error *err)
{
    return w->failed ? pstk__fail(err, w->failed, PSTK_STAGE_WRITE,
                                  "%s: writing failed before, so there is nothing to commit",
                                  w->staging.path)
                     : 0;
}

/* A part may be empty; a data set may not, and would not replace one. */
static int check_not_empty(const struct pstk_writer *w, struct pstk_error *err)
{
    return w->n_samples || w->manifest.n_parts > 1
               ? 0
               : pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_WRITE,
                            "%s: no record was added, and a data set has at least one",
                            w->staging.path);
}

int pstk_writer_commit(struct pstk_writer **w, struct pstk_error *err)
{
    if (!w || !*w)
        return fail_closed(err);
    int r = check_failed(*w, err);
    if (r == 0)
        r = check_not_empty(*w, err);
    if (r == 0)
        r = write_rest(*w, err);
    if (r == 0)
        r = write_manifest(*w, err);
    teardown(w);
    return r;
}

/* A writer that commits parts is of the whole. */
static int check_for_parts(const struct pstk_writer *w, struct pstk_error *err)
{
    const struct pstk__manifest *m = &w->manifest;
    if (w->n_samples)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_WRITE,
                          "%s: records were added to this writer; parts are committed by one that "
                          "has none",
                          w->staging.path);
    if (m->n_parts != 1)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_WRITE,
                          "%s: this writer is part %u of %u; parts are committed by one that is "
                          "none: leave out part and n_parts",
                          w->staging.path, m->part, m->n_parts);
    return 0;
}

int pstk_writer_commit_parts(struct pstk_writer **w, const char *const *parts, uint32_t n_parts,
                             struct pstk_error *err)
{
    if (!w || !*w)
        return fail_closed(err);
    int r = check_failed(*w, err);
    if (r == 0)
        r = check_for_parts(*w, err);
    if (r == 0)
        r = pstk__merge_into(&(*w)->staging, &(*w)->manifest, parts, n_parts, err);
    teardown(w);
    return r;
}
