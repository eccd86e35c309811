/* SPDX-License-Identifier: Apache-2.0 */
/* Manifest to JSON, one line for each element of a list. Declared in manifest_json.h. */
#include "format/pstk/manifest_json.h"

#include "base/codec.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "format/pstk/column_fact.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Text that grows. After `failed` (out of memory) nothing more is added. */
struct text {
    char *data; /* owned */
    size_t size, capacity;
    int failed;
};

static int text_add(const char *data, size_t size, void *user)
{
    struct text *text = user;
    if (!text->failed && text->capacity - text->size < size) {
        size_t capacity = 2 * text->capacity + size + 4096;
        char *larger = realloc(text->data, capacity);
        text->failed = !larger;
        text->data = larger ? larger : text->data;
        text->capacity = larger ? capacity : text->capacity;
    }
    if (text->failed)
        return -1;
    memcpy(text->data + text->size, data, size);
    text->size += size;
    return 0;
}

/* For what is known to be short: file and field names, numbers. */
static void __attribute__((format(printf, 2, 3)))
text_print(struct text *text, const char *fmt, ...)
{
    char line[512];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof line)
        text->failed = 1;
    else
        text_add(line, (size_t)n, text);
}

/* Any UTF-8, quoted and escaped. */
static void text_quote(struct text *text, const char *string)
{
    if (pstk__manifest_quote(string, text_add, text) != 0)
        text->failed = 1;
}

static void print_counts(struct text *text, const char *key, const uint64_t *counts,
                         const char *(*name_of)(uint32_t), uint32_t n)
{
    const char *comma = "";
    text_print(text, ",\"%s\":{", key);
    for (uint32_t i = 0; i < n; i++) {
        if (counts[i] == 0)
            continue;
        text_print(text, "%s\"%s\":%llu", comma, name_of(i), (unsigned long long)counts[i]);
        comma = ",";
    }
    text_print(text, "}");
}

/* Names of fields and axes, which need no escapes, and words. */
static void print_attributes(struct text *text, const struct pstk_field *field)
{
    if (field->of[0])
        text_print(text, ",\"of\":\"%s\"", field->of);
    if (field->rows[0])
        text_print(text, ",\"rows\":\"%s\"", field->rows);
    if (field->splits[0])
        text_print(text, ",\"splits\":\"%s\"", field->splits);
    if (field->box_format)
        text_print(text, ",\"form\":\"%s\"", pstk__form_name(field->box_format));
    if (field->coordinates)
        text_print(text, ",\"coordinates\":\"%s\"", pstk__coordinates_name(field->coordinates));
}

static void print_field(struct text *text, const struct pstk_field *field,
                        const struct pstk_field_stats *stats)
{
    text_print(text, "{\"name\":\"%s\",\"kind\":\"%s\"", field->name,
               pstk__field_kind_name(field->kind));
    if (field->dtype)
        text_print(text, ",\"dtype\":\"%s\"", pstk_dtype_name(field->dtype));
    for (uint32_t d = 0; d < field->n_dims; d++)
        text_print(text, "%s%llu%s", d ? "," : ",\"shape\":[", (unsigned long long)field->shape[d],
                   d + 1 == field->n_dims ? "]" : "");
    print_attributes(text, field);
    text_print(text, ",\"codec\":\"%s\",\"level\":%d", pstk__codec_name(field->codec),
               field->codec_level);
    text_print(
        text, ",\"max_stored\":%llu,\"max_plain\":%llu,\"stored_bytes\":%llu,\"plain_bytes\":%llu",
        (unsigned long long)stats->max_stored_size, (unsigned long long)stats->max_plain_size,
        (unsigned long long)stats->stored_bytes, (unsigned long long)stats->plain_bytes);
    if (pstk__field_traits(field->kind) & PSTK__TRAIT_IMAGES)
        text_print(text, ",\"max_width\":%u,\"max_height\":%u", stats->max_width,
                   stats->max_height);
    if (field->kind == PSTK_FIELD_IMAGE)
        text_print(text, ",\"damaged\":%llu", (unsigned long long)stats->n_damaged);
    print_counts(text, "encodings", stats->n_encoding, pstk__encoding_name, PSTK__N_ENCODINGS);
    print_counts(text, "codecs", stats->n_codec, pstk__codec_name, PSTK__N_CODECS);
    if (field->codec == PSTK_CODEC_PLANES)
        text_print(text, ",\"equivalent\":%llu", (unsigned long long)stats->n_equivalent);
    text_print(text, "}");
}

static void print_shard(struct text *text, const struct pstk__manifest_shard *shard)
{
    text_print(text, "{\"file\":\"%s\",\"n_records\":%llu,\"bytes\":%llu", shard->file,
               (unsigned long long)shard->n_records, (unsigned long long)shard->bytes);
    text_print(text, ",\"header_crc32c\":\"%08x\",\"index_crc32c\":\"%08x\",\"dictionaries\":[",
               shard->header_crc, shard->index_crc);
    for (uint32_t i = 0; i < shard->n_dictionaries; i++)
        text_print(text, i ? ",%u" : "%u", shard->dictionaries[i]);
    text_print(text, "]}");
}

/* Where element i of a list begins: one line each. */
static void print_line(struct text *text, uint64_t i)
{
    text_print(text, i ? ",\n  " : "\n  ");
}

static void print_lists(struct text *text, const struct pstk__manifest *m)
{
    text_print(text, ",\n\"fields\":[");
    for (uint32_t i = 0; i < m->schema.n_fields; i++) {
        print_line(text, i);
        print_field(text, &m->schema.fields[i], &m->stats[i]);
    }
    text_print(text, "],\n\"names\":[");
    for (uint64_t i = 0; i < m->names.n; i++) {
        print_line(text, i);
        text_quote(text, pstk__texts_get(&m->names, i));
    }
    text_print(text, "],\n\"dictionaries\":[");
    for (uint32_t i = 0; i < m->n_dictionaries; i++) {
        const struct pstk__manifest_dictionary *dictionary = &m->dictionaries[i];
        print_line(text, i);
        text_print(text, "{\"file\":\"%s\",\"field\":\"%s\",\"bytes\":%llu,\"crc32c\":\"%08x\"}",
                   dictionary->file, m->schema.fields[dictionary->field].name,
                   (unsigned long long)dictionary->bytes, dictionary->crc);
    }
    text_print(text, "],\n\"shards\":[");
    for (uint32_t i = 0; i < m->n_shards; i++) {
        print_line(text, i);
        print_shard(text, &m->shards[i]);
    }
    text_print(text, "]");
}

static void print_column(struct text *text, const struct pstk__manifest *m,
                         const struct pstk__manifest_column *column)
{
    text_print(text, "{\"name\":\"%s\",\"dtype\":\"%s\",\"files\":\"%s\"", column->name,
               pstk_dtype_name(column->dtype), column->files);
    if (column->fact)
        text_print(text, ",\"field\":\"%s\",\"fact\":\"%s\"", m->schema.fields[column->field].name,
                   pstk__column_fact_name(column->fact));
    text_print(text, ",\"header_crc32c\":[");
    for (uint32_t i = 0; i < column->n_header_crcs; i++)
        text_print(text, i ? ",\"%08x\"" : "\"%08x\"", column->header_crcs[i]);
    text_print(text, "]}");
}

/* Last, so that the bytes before them do not depend on columns: pstk__manifest_stands. */
static void print_features(struct text *text, const struct pstk__manifest *m)
{
    text_print(text, ",\n\"requires\":[],\n\"uses\":[%s]", m->n_columns ? "\"columns\"" : "");
    if (m->n_columns == 0)
        return;
    text_print(text, ",\n\"extra\":{\"columns\":[");
    for (uint32_t i = 0; i < m->n_columns; i++) {
        print_line(text, i);
        print_column(text, m, &m->columns[i]);
    }
    text_print(text, "]}");
}

int pstk__manifest_print(const struct pstk__manifest *m, char **bytes, uint64_t *size,
                         struct pstk_error *err)
{
    *bytes = NULL;
    *size = 0;
    int r = pstk__manifest_check(m, "manifest to write", PSTK_EINVAL, err);
    if (r < 0)
        return r;
    struct text text = {0};
    text_print(&text, "{\"format\":\"penstock\",\n\"version\":%d,\n\"identity\":\"%s\"",
               PSTK_FORMAT_VERSION, m->identity);
    text_print(&text, ",\n\"n_samples\":%llu,\n\"n_shards\":%u,\n\"bytes\":%llu",
               (unsigned long long)m->n_samples, m->n_shards, (unsigned long long)m->bytes);
    text_print(&text, ",\n\"part\":%u,\n\"n_parts\":%u", m->part, m->n_parts);
    if (m->n_parts == 0)
        text_print(&text, ",\n\"pack\":\"%s\",\n\"task\":\"%s\",\n\"attempt\":%u", m->task.pack_id,
                   m->task.key, m->task.attempt);
    else if (m->task.pack_id[0])
        text_print(&text, ",\n\"pack\":\"%s\"", m->task.pack_id);
    text_print(&text, ",\n\"note\":");
    text_quote(&text, m->note ? m->note : "");
    print_lists(&text, m);
    print_features(&text, m);
    uint32_t crc = text.failed ? 0 : pstk__crc32c(0, text.data, text.size);
    text_print(&text, PSTK__TAIL_BEFORE "%08x" PSTK__TAIL_AFTER, crc);
    if (text.failed || text.size > PSTK__MANIFEST_MAX) {
        free(text.data);
        return text.failed ? pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE,
                                        "no memory to print the manifest")
                           : pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_WRITE,
                                        "the manifest has over 256 MiB; use larger shards");
    }
    *bytes = text.data;
    *size = text.size;
    return 0;
}
