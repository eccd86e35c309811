/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer: packs records.
 *
 *   add -> block -> (held until the dictionaries are trained) -> encode_pool: encoded by threads
 *       -> emitted in order -> shard_writer -> staging
 *
 * The caller's thread takes every decision (which records share a block, when to train, where a
 * shard ends) from the records alone, so the written bytes do not depend on the number of threads.
 * All functions of this file run on the caller's thread, also emit_block; the pool's threads see
 * only blocks.
 */
#include "pack/block.h"
#include "base/crc32c.h"
#include "pack/column_writer.h"
#include "pack/encode_pool.h"
#include "base/error.h"
#include "image/image.h"
#include "image/mask.h"
#include "image/pixels.h"
#include "pack/descriptions.h"
#include "pack/merge.h"
#include "pack/remade.h"
#include "pack/shard_writer.h"
#include "pack/task_settings.h"
#include "format/pstk/tally.h"
#include "record/axes.h"
#include "record/coordinates.h"
#include "record/list.h"
#include "record/value.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHARD_SIZE_DEFAULT (256u << 20)
#define SHARD_SIZE_MIN (64u << 10)
#define DICTIONARY_DEFAULT 112640u /* bytes, as in the zstd command */
#define DICTIONARY_MIN 256u        /* bytes; zstd does not train smaller ones */
#define DICTIONARY_SHARE 16        /* a dictionary is at most 1/16 of its training data */
#define SAMPLES_PER_DICTIONARY 100 /* zstd's advice: train on 100 times the dictionary's size */
#define HELD_MAX (64u << 20)       /* bytes of records held for training */
#define SMALL_VALUE (16u << 10)    /* mean bytes of values that are too large for a dictionary */
#define MAX_THREADS 1024

/* Bytes counted for a held value in addition to its own. It is a constant, so that every machine
 * decides the same. */
#define VIEW_SIZE 48

/* The records that are held until there are enough to train the dictionaries. */
struct held {
    struct pstk__block **blocks; /* owned */
    uint64_t n_blocks;
    uint64_t capacity;
    uint64_t n_records;
    uint64_t size;                   /* approximate bytes of the blocks */
    uint64_t field[PSTK_MAX_FIELDS]; /* bytes of values, by field */
};

/*
 * A writer is in one of three states:
 *   holding   pool is NULL; full blocks go to `held`;
 *   settled   pool is open, `held` has passed its blocks on; full blocks go to the pool;
 *   failed    `failed` is the error; a block, a shard or the pool may be incomplete. Only abort, or
 *             a commit that refuses, may follow.
 * A refused record changes nothing.
 */
struct pstk_writer {
    struct pstk__manifest manifest; /* schema, statistics; complete at commit */
    struct pstk__staging staging;
    struct pstk__shard_writer shards;
    struct pstk__column_writer columns; /* closed: no columns were requested */
    struct pstk__identity identity;
    struct pstk__encode_pool *pool; /* NULL: holding */
    struct pstk__block *block;      /* block being filled; NULL: there is none */
    struct held held;
    uint32_t n_threads;
    uint32_t dictionary_size; /* bytes; 0: none */
    uint64_t shard_size;
    uint64_t n_samples;                   /* records added */
    uint64_t n_remade;                    /* PNG files among their values that were remade */
    uint64_t n_emitted;                   /* records written into shards, <= n_samples */
    char pack_id[PSTK__PACK_ID_SIZE + 1]; /* pack id of the parts that this writer will commit, or
                                             "" */
    pstk_passthrough_fn on_passthrough;
    void *on_passthrough_user;
    int failed; /* 0, or the error */
};

/* ---- closing: the one way down ------------------------------------------------------------- */

static void teardown(struct pstk_writer **out)
{
    struct pstk_writer *w = *out;
    *out = NULL;
    if (!w)
        return;
    pstk__encode_pool_close(w->pool);
    pstk__block_close(w->block);
    for (uint64_t i = 0; i < w->held.n_blocks; i++)
        pstk__block_close(w->held.blocks[i]);
    free(w->held.blocks);
    pstk__column_writer_close(&w->columns);
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

/* ---- opening ----------------------------------------------------------------------------- */

void pstk_writer_settings_init(struct pstk_writer_settings *s, uint32_t size)
{
    if (!s || size < 2 * sizeof(uint32_t))
        return;
    memset(s, 0, size);
    s->size = size;
    s->field_size = sizeof(struct pstk_field);
}

/* Copy the struct of a caller who may use another version: members that it lacks become 0. Returns
 * -1 if a member unknown here is not 0. */
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
    return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "%s: value is %" PRIu64 "; must be %s",
                      name, value, advice);
}

static int check_settings(struct pstk_writer_settings *s, struct pstk_error *err)
{
    if (!s->path || !*s->path)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "path: value is empty; must be the path of a directory");
    if (!s->fields)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "fields: value is NULL; must be an array of n_fields fields");
    if (s->n_fields == 0 || s->n_fields > PSTK_MAX_FIELDS)
        return invalid(err, "n_fields", s->n_fields, "from 1 to 64");
    if (s->field_size < offsetof(struct pstk_field, codec))
        return invalid(err, "field_size", s->field_size,
                       "as pstk_writer_settings_init sets it (call that first)");
    int r = pstk__task_settings_check(s, err);
    if (r < 0)
        return r;
    s->n_parts = s->task ? 0 : s->n_parts ? s->n_parts : 1;
    if (s->part >= s->n_parts && !s->task)
        return invalid(err, "part", s->part, "below n_parts (parts count from 0)");
    s->n_threads = s->n_threads ? s->n_threads : 1;
    if (s->n_threads > MAX_THREADS)
        return invalid(err, "n_threads", s->n_threads, "at most 1024");
    s->shard_size = s->shard_size ? s->shard_size : SHARD_SIZE_DEFAULT;
    if (s->shard_size < SHARD_SIZE_MIN || s->shard_size > PSTK__MAX_SHARD_SIZE)
        return invalid(err, "shard_size", s->shard_size, "from 64 KiB to 16 TiB");
    s->dictionary_size = s->dictionary_size ? s->dictionary_size : DICTIONARY_DEFAULT;
    if (s->dictionary_size == 1)
        s->dictionary_size = 0;
    else if (s->dictionary_size < DICTIONARY_MIN || s->dictionary_size > PSTK__MAX_DICTIONARY)
        return invalid(err, "dictionary_size", s->dictionary_size,
                       "from 256 bytes to 16 MiB, or 1 for no dictionary");
    if (s->overwrite > 1)
        return invalid(err, "overwrite", s->overwrite, "0 or 1");
    if (s->n_names && !s->names)
        return invalid(err, "n_names", s->n_names, "0 while names is NULL");
    if (s->columns > 1)
        return invalid(err, "columns", s->columns, "0 (all) or 1 (none)");
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

/* Return 1 if encoding takes long enough to use threads. */
static int is_encoded(const struct pstk__schema *schema)
{
    for (uint32_t i = 0; i < schema->n_fields; i++)
        if (schema->fields[i].codec != PSTK_CODEC_NONE)
            return 1;
    return 0;
}

static int open_parts(struct pstk_writer *w, const struct pstk_writer_settings *s,
                      struct pstk_error *err)
{
    struct pstk__manifest *m = &w->manifest;
    w->n_threads = s->n_threads;
    w->shard_size = s->shard_size;
    w->on_passthrough = s->on_passthrough;
    w->on_passthrough_user = s->on_passthrough_user;
    m->part = s->part;
    m->n_parts = s->n_parts;
    if (s->task)
        pstk__task_settings_copy(&m->task, s);
    else if (s->pack_id)
        memcpy(s->n_parts > 1 ? m->task.pack_id : w->pack_id, s->pack_id, PSTK__PACK_ID_SIZE);
    int r = copy_schema(&m->schema, s, err);
    if (r == 0)
        r = pstk__manifest_set_note(m, s->note, err);
    if (r == 0)
        r = pstk__manifest_set_names(m, s->names, s->n_names, err);
    if (r == 0)
        r = pstk__staging_open(&w->staging, s->path, (int)s->overwrite, err);
    if (r == 0)
        r = pstk__shard_writer_open(&w->shards, &w->staging, &m->schema, err);
    if (r == 0 && s->columns == 0)
        r = pstk__column_writer_open(&w->columns, &w->staging, m, err);
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
        return invalid(err, "size", settings->size,
                       "as pstk_writer_settings_init sets it (call that first)");
    if (copy_sized(&s, sizeof s, settings, settings->size) < 0)
        return invalid(err, "size", settings->size,
                       "as pstk_writer_settings_init sets it (a setting is set that this version "
                       "does not know)");
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

/* ---- out: blocks become shards ------------------------------------------------------------- */

static int finish_shard(struct pstk_writer *w, struct pstk_error *err)
{
    struct pstk__manifest_shard shard = {0};
    uint32_t dictionaries[PSTK_MAX_FIELDS];
    int r = pstk__shard_writer_finish(&w->shards, &shard, err);
    if (r == 0)
        r = pstk__column_writer_finish(&w->columns, &shard, w->shards.tag, err);
    if (r < 0)
        return r;
    /* All shards share the data set's dictionaries. */
    shard.n_dictionaries = w->manifest.n_dictionaries;
    shard.dictionaries = dictionaries;
    for (uint32_t i = 0; i < shard.n_dictionaries; i++)
        dictionaries[i] = i;
    pstk__identity_join(&w->identity, &w->shards.identity);
    return pstk__manifest_add_shard(&w->manifest, &shard, err);
}

/* Write the name of the next shard without its suffix, and the text that identifies the writer in
 * the shard's tag. Merge links the files of all parts into one directory. */
static void name_shard(const struct pstk__manifest *m, char stem[64], char maker[PSTK__TASK_TEXT])
{
    const uint32_t sequence = m->n_shards;
    snprintf(maker, PSTK__TASK_TEXT, "%u/%u", m->part, m->n_parts);
    if (m->n_parts == 1)
        snprintf(stem, 64, "shard-%06u", sequence);
    else if (m->n_parts)
        snprintf(stem, 64, "part-%05u-of-%05u-%06u", m->part, m->n_parts, sequence);
    else
        snprintf(stem, 64, "task-%016" PRIx64 "-%06u", pstk__task_hash(&m->task), sequence);
    if (m->n_parts == 0)
        pstk__task_text(&m->task, maker);
}

/* Begin a shard. views: of its first record. */
static int begin_shard(struct pstk_writer *w, const struct pstk__field_view *views,
                       struct pstk_error *err)
{
    char stem[64], maker[PSTK__TASK_TEXT], name[PSTK__MAX_FILE_NAME + 1];
    const struct pstk__manifest *m = &w->manifest;
    name_shard(m, stem, maker);
    int r = pstk__staging_name(&w->staging, name, sizeof name, stem, ".pstk", err);
    if (r < 0)
        return r;
    uint32_t content = pstk__record_content_crc(&m->schema, views);
    r = pstk__column_writer_begin(&w->columns, name, err);
    if (r < 0)
        return r;
    return pstk__shard_writer_begin(&w->shards, name, pstk__shard_tag(maker, m->n_shards, content),
                                    err);
}

/* Report the images of a record that are stored unchanged. `id` counts this writer's records. */
static void report_passthrough(const struct pstk_writer *w, const struct pstk__field_view *views,
                               uint64_t id)
{
    for (uint32_t i = 0; i < w->manifest.schema.n_fields; i++)
        if (views[i].passthrough)
            w->on_passthrough(w->on_passthrough_user, id, i, views[i].passthrough);
}

static int emit_record(struct pstk_writer *w, const struct pstk__field_view *views,
                       struct pstk_error *err)
{
    const struct pstk__schema *schema = &w->manifest.schema;
    const uint64_t size = pstk__record_size(schema, views);
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
        r = pstk__column_writer_add(&w->columns, views, err);
    if (r < 0)
        return r;
    pstk__tally_add(w->manifest.stats, schema, views);
    if (w->on_passthrough)
        report_passthrough(w, views, w->n_emitted);
    w->n_emitted++;
    return 0;
}

/* Write a block: the pool's emit. On the caller's thread, in push or drain, with no lock held. */
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

/* Hold the current block until settle. */
static int hold(struct pstk_writer *w, struct pstk__block *b, struct pstk_error *err)
{
    struct held *held = &w->held;
    if (held->n_blocks == held->capacity) {
        uint64_t capacity = held->capacity ? held->capacity * 2 : 16;
        struct pstk__block **blocks = realloc(held->blocks, capacity * sizeof *blocks);
        if (!blocks)
            return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "%s: out of memory",
                              w->staging.path);
        held->blocks = blocks;
        held->capacity = capacity;
    }
    held->blocks[held->n_blocks++] = b;
    w->block = NULL;
    uint32_t n_fields = w->manifest.schema.n_fields;
    held->size += b->plain_size + (uint64_t)b->n_records * n_fields * VIEW_SIZE;
    held->n_records += b->n_records;
    for (uint64_t i = 0; i < (uint64_t)b->n_records * n_fields; i++)
        held->field[i % n_fields] += b->views[i].plain_size;
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

/* Copy the values of one field of all held records, end to end, and their sizes. Returns their
 * number. */
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

/* Write a dictionary to a file named after its field, without a leading dot. */
static int put_dictionary(struct pstk_writer *w, uint32_t field, const void *bytes, uint64_t size,
                          struct pstk_error *err)
{
    char stem[PSTK_MAX_NAME + 16], name[PSTK__MAX_FILE_NAME + 1];
    struct pstk__manifest_dictionary dictionary = {
        .file = name, .field = field, .crc = pstk__crc32c(0, bytes, size), .bytes = size};
    const char *field_name = w->manifest.schema.fields[field].name;
    snprintf(stem, sizeof stem, "%s%s-%08x", field_name[0] == '.' ? "_" : "", field_name,
             dictionary.crc);
    int r = pstk__staging_name(&w->staging, name, sizeof name, stem, ".zdict", err);
    if (r == 0)
        r = pstk__staging_put(&w->staging, name, bytes, size, err);
    return r < 0 ? r : pstk__manifest_add_dictionary(&w->manifest, &dictionary, err);
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

/* Go from holding to settled: train the dictionaries, start the threads, push the held blocks. */
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
        r = pstk__encode_pool_open(&w->pool, &config, err);
    }
    for (uint32_t i = 0; i < schema->n_fields; i++)
        free(dictionaries[i].bytes);
    for (uint64_t i = 0; r == 0 && i < w->held.n_blocks; i++) {
        struct pstk__block *b = w->held.blocks[i];
        w->held.blocks[i] = NULL;
        r = pstk__encode_pool_push(w->pool, b, err);
    }
    return r;
}

/* ---- in: records become blocks ------------------------------------------------------------- */

/* Pass the current block on, to the pool or to `held`. */
static int close_block(struct pstk_writer *w, struct pstk_error *err)
{
    struct pstk__block *b = w->block;
    if (!b || b->n_records == 0)
        return 0;
    if (w->pool) {
        w->block = NULL;
        return pstk__encode_pool_push(w->pool, b, err);
    }
    int r = hold(w, b, err);
    return r == 0 && held_enough(w) ? settle(w, err) : r;
}

static int fail_closed(struct pstk_error *err)
{
    return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_WRITE,
                      "w is NULL; this writer was already committed or aborted: open another");
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
        return fail_value(w, i, PSTK_EINVAL, err, "the image has no pixels");
    if (pixels->width > PSTK__MAX_SIDE || pixels->height > PSTK__MAX_SIDE || n > PSTK__MAX_PIXELS)
        return fail_value(
            w, i, PSTK_EFBIG, err,
            "the image has a side of more than 65535 pixels, or more than 178956970 pixels in all");
    if (value->size != n * pstk__pixels_size(pixels->channels, pixels->bit_depth))
        return fail_value(w, i, PSTK_EINVAL, err,
                          "pixels must have height x width x channels samples of bit_depth bits");
    return 0;
}

static int probe_image(const struct pstk_writer *w, uint32_t i, const struct pstk_value *value,
                       struct pstk__image_info *info, struct pstk_error *err)
{
    const int is_mask = w->manifest.schema.fields[i].kind == PSTK_FIELD_MASK;
    struct pstk_error why;
    pstk_error_init(&why, sizeof why);
    int r = (is_mask ? pstk__mask_probe : pstk__image_probe)(value->data, value->size,
                                                             PSTK__MAX_PIXELS, info, &why);
    if (r < 0) /* an unsupported file is treated as a damaged one: the record is refused */
        return fail_value(w, i, r == PSTK_EFBIG ? r : PSTK_EBADMSG, err, why.message);
    if (info->width > PSTK__MAX_SIDE || info->height > PSTK__MAX_SIDE)
        return fail_value(w, i, PSTK_EFBIG, err, "the image has a side of more than 65535 pixels");
    return 0;
}

/* Decode the image of a value whose caller accepts a damaged one; a damaged PNG was remade before.
 * *flags: flags of its entry. */
static int check_damaged(const struct pstk_writer *w, uint32_t i, const struct pstk_value *value,
                         uint16_t *flags, struct pstk_error *err)
{
    struct pstk_error why;
    uint32_t damaged;
    pstk_error_init(&why, sizeof why);
    int r = pstk_image_check_damaged(value->data, value->size, PSTK__MAX_PIXELS, &damaged, &why);
    if (r < 0 && !damaged)
        return fail_value(w, i, r, err, why.message);
    *flags |= damaged == PSTK_DAMAGE_GUESSED ? PSTK__FIELD_DAMAGED : 0;
    return 0;
}

/* A record that may still be refused: the caller's values, and the results of the checks. */
struct candidate {
    const struct pstk_value *values;  /* borrowed; one for each field */
    struct pstk__descriptions pixels; /* descriptions of the values that are pixels */
    struct pstk__field_view *views;   /* one for each field; the checks fill in encoding, width and
                                         height */
    uint64_t plain_size;              /* bytes of all values; the checks fill it in */
};

static int check_value(const struct pstk_writer *w, uint32_t i, const struct candidate *candidate,
                       struct pstk_error *err)
{
    const struct pstk_field *field = &w->manifest.schema.fields[i];
    const struct pstk_value *value = &candidate->values[i];
    struct pstk__field_view *view = &candidate->views[i];
    char text[200];
    if (!value->data && value->size)
        return fail_value(w, i, PSTK_EINVAL, err, "data is NULL");
    if (value->damaged > PSTK_DAMAGED_ACCEPT || value->reserved != 0)
        return fail_value(w, i, PSTK_EINVAL, err,
                          "damaged must be 0 or PSTK_DAMAGED_ACCEPT, and reserved 0");
    if (field->kind != PSTK_FIELD_IMAGE && field->kind != PSTK_FIELD_MASK) {
        const char *what = pstk__value_check(field, value->data, value->size, text);
        what = what ? what : pstk__coordinates_check(field, value->data, value->size, text);
        if (what || !(pstk__field_traits(field->kind) & PSTK__TRAIT_IMAGES))
            return what ? fail_value(w, i, PSTK_EINVAL, err, what) : 0;
        what = pstk__list_check_images(field->kind, value->data, value->size, &view->width,
                                       &view->height, text);
        return what ? fail_value(w, i, PSTK_EBADMSG, err, what) : 0;
    }
    struct pstk__image_info info = {0};
    const int is_pixels = pstk__descriptions_find(&candidate->pixels, i, &info);
    const int r =
        is_pixels ? check_pixels(w, i, value, &info, err) : probe_image(w, i, value, &info, err);
    view->encoding = (uint8_t)info.encoding;
    view->channels = info.channels;
    view->bit_depth = info.bit_depth;
    view->width = info.width;
    view->height = info.height;
    view->flags = info.has_palette ? PSTK__FIELD_PALETTE : 0;
    const int is_file = !is_pixels && field->kind == PSTK_FIELD_IMAGE;
    return r == 0 && is_file && value->damaged == PSTK_DAMAGED_ACCEPT
               ? check_damaged(w, i, value, &view->flags, err)
               : r;
}

/* Check all values and their sum. The record must fit uncompressed, so that its acceptance does not
 * depend on how well it compresses. */
static int check_record(const struct pstk_writer *w, struct candidate *candidate,
                        struct pstk_error *err)
{
    const struct pstk__schema *schema = &w->manifest.schema;
    uint64_t size = schema->head_size;
    uint32_t field;
    char text[320];
    for (uint32_t i = 0; i < schema->n_fields; i++) {
        const uint64_t value_size = candidate->values[i].size;
        if (value_size > PSTK__MAX_VALUE_SIZE)
            return fail_value(w, i, PSTK_EFBIG, err, "the value is 4 GiB or larger");
        candidate->plain_size += value_size;
        size += schema->entry[i] >= 0 ? pstk__record_aligned(value_size) : 0;
        if (size > PSTK__MAX_RECORD_SIZE)
            return fail_value(w, i, PSTK_EFBIG, err, "the record is 4 GiB or larger");
        int r = check_value(w, i, candidate, err);
        if (r < 0)
            return r;
    }
    const char *what = pstk__axes_check(schema, candidate->values, candidate->views, &field, text);
    if (what)
        return fail_value(w, field, PSTK_EINVAL, err, what);
    return w->n_samples < PSTK__MAX_SAMPLES
               ? 0
               : pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_WRITE,
                            "%s has 2^40 records, the most that a data set may have",
                            w->staging.path);
}

/* Add a checked record to the current block, and pass the block on when it is full. */
static int append(struct pstk_writer *w, const struct candidate *candidate, struct pstk_error *err)
{
    const struct pstk__schema *schema = &w->manifest.schema;
    int r = 0;
    if (!w->pool && !w->dictionary_size)
        r = settle(w, err);
    if (r == 0 && !w->block) {
        w->block = w->pool ? pstk__encode_pool_block(w->pool) : pstk__block_open();
        if (!w->block)
            r = pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "%s: out of memory",
                           w->staging.path);
    }
    if (r == 0)
        r = pstk__block_reserve(w->block, schema, candidate->plain_size, err);
    if (r < 0)
        return r;
    pstk__block_add(w->block, schema, candidate->values, candidate->views);
    w->n_samples++;
    return pstk__block_full(w->block) ? close_block(w, err) : 0;
}

/* Check the arguments of a call, and that the writer is not committed or failed. */
static int check_call(const struct pstk_writer *w, const struct candidate *candidate,
                      uint32_t n_values, struct pstk_error *err)
{
    if (!w)
        return fail_closed(err);
    if (!candidate->values)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_WRITE, "values is NULL");
    if (w->failed)
        return pstk__fail(err, w->failed, PSTK_STAGE_WRITE,
                          "%s: writing failed before; only abort may follow", w->staging.path);
    if (w->pack_id[0])
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_WRITE,
                          "%s: this writer has a pack_id and no task, so it can only commit parts",
                          w->staging.path);
    const struct pstk__schema *schema = &w->manifest.schema;
    if (n_values != schema->n_fields)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_WRITE,
                          "n_values: value is %u; must be %u, the number of fields", n_values,
                          schema->n_fields);
    return pstk__descriptions_check(&candidate->pixels, schema, err);
}

/* Fail the writer: an accepted record could not be added. The record was fine, so replace codes
 * that blame a record (after which adding may go on) by EIO; a file that grew too large gives one,
 * for example. */
static int fail_for_good(struct pstk_writer *w, int code, struct pstk_error *err)
{
    if (code == PSTK_EINVAL || code == PSTK_EFBIG || code == PSTK_EBADMSG) {
        code = PSTK_EIO;
        if (err)
            err->code = code;
    }
    w->failed = code;
    return code;
}

static int add_checked(struct pstk_writer *w, struct candidate *candidate, struct pstk_error *err)
{
    struct pstk__field_view views[PSTK_MAX_FIELDS];
    memset(views, 0, w->manifest.schema.n_fields * sizeof *views);
    candidate->views = views;
    int r = check_record(w, candidate, err);
    if (r < 0)
        return r;
    r = append(w, candidate, err);
    return r < 0 ? fail_for_good(w, r, err) : 0;
}

static int add(struct pstk_writer *w, struct candidate *candidate, uint32_t n_values,
               struct pstk_error *err)
{
    struct pstk__remade remade;
    int r = check_call(w, candidate, n_values, err);
    if (r < 0)
        return r;
    r = pstk__remade_open(&remade, &w->manifest.schema, candidate->values, &candidate->pixels, err);
    candidate->values = remade.values;
    if (r == 0)
        r = add_checked(w, candidate, err);
    w->n_remade += r == 0 ? remade.n : 0;
    pstk__remade_close(&remade);
    return r;
}

int pstk_writer_add(struct pstk_writer *w, const struct pstk_value *values, uint32_t n_values,
                    struct pstk_error *err)
{
    struct candidate candidate = {.values = values};
    return add(w, &candidate, n_values, err);
}

int pstk_writer_add_pixels(struct pstk_writer *w, const struct pstk_value *values,
                           uint32_t n_values, const struct pstk_pixels *pixels, uint32_t n_pixels,
                           struct pstk_error *err)
{
    struct candidate candidate = {.values = values, .pixels = {pixels, n_pixels}};
    return add(w, &candidate, n_values, err);
}

uint64_t pstk_writer_n_remade(const struct pstk_writer *w)
{
    return w ? w->n_remade : 0;
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

/* Write everything under way into shards, then make the shards a data set. */
static int commit(struct pstk_writer *w, struct pstk_error *err)
{
    int r = close_block(w, err);
    if (r == 0 && !w->pool)
        r = settle(w, err);
    if (r == 0)
        r = pstk__encode_pool_drain(w->pool, err);
    if (r == 0 && w->shards.fd >= 0)
        r = finish_shard(w, err);
    if (r < 0)
        return r;
    pstk__identity_text(&w->identity, w->manifest.schema.crc, w->manifest.identity);
    return pstk__staging_commit(&w->staging, &w->manifest, err);
}

static int check_failed(const struct pstk_writer *w, struct pstk_error *err)
{
    return w->failed ? pstk__fail(err, w->failed, PSTK_STAGE_WRITE,
                                  "%s: writing failed before, so there is nothing to commit",
                                  w->staging.path)
                     : 0;
}

/* A part may be empty, but not a data set: it would replace one by nothing. */
static int check_not_empty(const struct pstk_writer *w, struct pstk_error *err)
{
    return w->n_samples || w->manifest.n_parts != 1
               ? 0
               : pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_WRITE,
                            "%s: no record was added; a data set must have at least one",
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
        r = commit(*w, err);
    teardown(w);
    return r;
}

/* Check that a writer can commit parts: it has no records and no number. A writer with a task can:
 * its part is then made of them. */
static int check_for_parts(const struct pstk_writer *w, struct pstk_error *err)
{
    const struct pstk__manifest *m = &w->manifest;
    if (w->n_samples)
        return pstk__fail(
            err, PSTK_EINVAL, PSTK_STAGE_WRITE,
            "%s: records were added to this writer; commit parts with a writer that has no records",
            w->staging.path);
    if (m->n_parts > 1)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_WRITE,
                          "%s: this writer is part %u of %u; commit parts with a writer that is "
                          "not a part: leave out part and n_parts",
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
        r = pstk__merge_into(&(*w)->staging, &(*w)->manifest,
                             &(struct pstk__merge_list){parts, n_parts, (*w)->pack_id}, err);
    teardown(w);
    return r;
}
