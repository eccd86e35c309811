/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a manifest as JSON, with one line for each element of a list. Declared in manifest_json.h.
 */
#include "format/pstk/manifest_json.h"

#include "base/bytes.h"
#include "base/codec.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "format/pstk/column_fact.h"

/* A take callback of pstk__manifest_quote. */
static int put_piece(const char *data, size_t size, void *user)
{
    struct pstk__bytes *text = user;
    pstk__bytes_put(text, data, size);
    return text->failed ? -1 : 0;
}

/* Append any UTF-8 text, quoted and escaped. */
static void put_quoted(struct pstk__bytes *text, const char *string)
{
    if (pstk__manifest_quote(string, put_piece, text) != 0)
        text->failed = 1;
}

static void print_counts(struct pstk__bytes *text, const char *key, const uint64_t *counts,
                         const char *(*name_of)(uint32_t), uint32_t n)
{
    const char *comma = "";
    pstk__bytes_format(text, ",\"%s\":{", key);
    for (uint32_t i = 0; i < n; i++) {
        if (counts[i] == 0)
            continue;
        pstk__bytes_format(text, "%s\"%s\":%llu", comma, name_of(i), (unsigned long long)counts[i]);
        comma = ",";
    }
    pstk__bytes_format(text, "}");
}

/* Print the names of fields and axes, which need no escapes, and words. */
static void print_attributes(struct pstk__bytes *text, const struct pstk_field *field)
{
    if (field->of[0])
        pstk__bytes_format(text, ",\"of\":\"%s\"", field->of);
    if (field->rows[0])
        pstk__bytes_format(text, ",\"rows\":\"%s\"", field->rows);
    if (field->splits[0])
        pstk__bytes_format(text, ",\"splits\":\"%s\"", field->splits);
    if (field->box_format)
        pstk__bytes_format(text, ",\"form\":\"%s\"", pstk__form_name(field->box_format));
    if (field->coordinates)
        pstk__bytes_format(text, ",\"coordinates\":\"%s\"",
                           pstk__coordinates_name(field->coordinates));
}

static void print_field(struct pstk__bytes *text, const struct pstk_field *field,
                        const struct pstk_field_stats *stats)
{
    pstk__bytes_format(text, "{\"name\":\"%s\",\"kind\":\"%s\"", field->name,
                       pstk__field_kind_name(field->kind));
    if (field->dtype)
        pstk__bytes_format(text, ",\"dtype\":\"%s\"", pstk_dtype_name(field->dtype));
    for (uint32_t d = 0; d < field->n_dims; d++)
        pstk__bytes_format(text, "%s%llu%s", d ? "," : ",\"shape\":[",
                           (unsigned long long)field->shape[d], d + 1 == field->n_dims ? "]" : "");
    print_attributes(text, field);
    pstk__bytes_format(text, ",\"codec\":\"%s\",\"level\":%d", pstk__codec_name(field->codec),
                       field->codec_level);
    pstk__bytes_format(
        text, ",\"max_stored\":%llu,\"max_plain\":%llu,\"stored_bytes\":%llu,\"plain_bytes\":%llu",
        (unsigned long long)stats->max_stored_size, (unsigned long long)stats->max_plain_size,
        (unsigned long long)stats->stored_bytes, (unsigned long long)stats->plain_bytes);
    if (pstk__field_traits(field->kind) & PSTK__TRAIT_IMAGES)
        pstk__bytes_format(text, ",\"max_width\":%u,\"max_height\":%u", stats->max_width,
                           stats->max_height);
    if (field->kind == PSTK_FIELD_IMAGE)
        pstk__bytes_format(text, ",\"damaged\":%llu", (unsigned long long)stats->n_damaged);
    print_counts(text, "encodings", stats->n_encoding, pstk__encoding_name, PSTK__N_ENCODINGS);
    print_counts(text, "codecs", stats->n_codec, pstk__codec_name, PSTK__N_CODECS);
    if (field->codec == PSTK_CODEC_PLANES)
        pstk__bytes_format(text, ",\"equivalent\":%llu", (unsigned long long)stats->n_equivalent);
    pstk__bytes_format(text, "}");
}

static void print_shard(struct pstk__bytes *text, const struct pstk__manifest_shard *shard)
{
    pstk__bytes_format(text, "{\"file\":\"%s\",\"n_records\":%llu,\"bytes\":%llu", shard->file,
                       (unsigned long long)shard->n_records, (unsigned long long)shard->bytes);
    pstk__bytes_format(text,
                       ",\"header_crc32c\":\"%08x\",\"index_crc32c\":\"%08x\",\"dictionaries\":[",
                       shard->header_crc, shard->index_crc);
    for (uint32_t i = 0; i < shard->n_dictionaries; i++)
        pstk__bytes_format(text, i ? ",%u" : "%u", shard->dictionaries[i]);
    pstk__bytes_format(text, "]}");
}

/* Begin element i of a list on a new line. */
static void print_line(struct pstk__bytes *text, uint64_t i)
{
    pstk__bytes_format(text, i ? ",\n  " : "\n  ");
}

static void print_lists(struct pstk__bytes *text, const struct pstk__manifest *m)
{
    pstk__bytes_format(text, ",\n\"fields\":[");
    for (uint32_t i = 0; i < m->schema.n_fields; i++) {
        print_line(text, i);
        print_field(text, &m->schema.fields[i], &m->stats[i]);
    }
    pstk__bytes_format(text, "],\n\"names\":[");
    for (uint64_t i = 0; i < m->names.n; i++) {
        print_line(text, i);
        put_quoted(text, pstk__texts_get(&m->names, i));
    }
    pstk__bytes_format(text, "],\n\"dictionaries\":[");
    for (uint32_t i = 0; i < m->n_dictionaries; i++) {
        const struct pstk__manifest_dictionary *dictionary = &m->dictionaries[i];
        print_line(text, i);
        pstk__bytes_format(text,
                           "{\"file\":\"%s\",\"field\":\"%s\",\"bytes\":%llu,\"crc32c\":\"%08x\"}",
                           dictionary->file, m->schema.fields[dictionary->field].name,
                           (unsigned long long)dictionary->bytes, dictionary->crc);
    }
    pstk__bytes_format(text, "],\n\"shards\":[");
    for (uint32_t i = 0; i < m->n_shards; i++) {
        print_line(text, i);
        print_shard(text, &m->shards[i]);
    }
    pstk__bytes_format(text, "]");
}

static void print_column(struct pstk__bytes *text, const struct pstk__manifest *m,
                         const struct pstk__manifest_column *column)
{
    pstk__bytes_format(text, "{\"name\":\"%s\",\"dtype\":\"%s\",\"files\":\"%s\"", column->name,
                       pstk_dtype_name(column->dtype), column->files);
    if (column->fact)
        pstk__bytes_format(text, ",\"field\":\"%s\",\"fact\":\"%s\"",
                           m->schema.fields[column->field].name,
                           pstk__column_fact_name(column->fact));
    pstk__bytes_format(text, ",\"header_crc32c\":[");
    for (uint32_t i = 0; i < column->n_header_crcs; i++)
        pstk__bytes_format(text, i ? ",\"%08x\"" : "\"%08x\"", column->header_crcs[i]);
    pstk__bytes_format(text, "]}");
}

/* Print the features last, so that the bytes before them do not depend on columns:
 * pstk__manifest_stands relies on it. */
static void print_features(struct pstk__bytes *text, const struct pstk__manifest *m)
{
    pstk__bytes_format(text, ",\n\"requires\":[],\n\"uses\":[%s]",
                       m->n_columns ? "\"columns\"" : "");
    if (m->n_columns == 0)
        return;
    pstk__bytes_format(text, ",\n\"extra\":{\"columns\":[");
    for (uint32_t i = 0; i < m->n_columns; i++) {
        print_line(text, i);
        print_column(text, m, &m->columns[i]);
    }
    pstk__bytes_format(text, "]}");
}

int pstk__manifest_print(const struct pstk__manifest *m, char **bytes, uint64_t *size,
                         struct pstk_error *err)
{
    *bytes = NULL;
    *size = 0;
    int r = pstk__manifest_check(m, "manifest to write", PSTK_EINVAL, err);
    if (r < 0)
        return r;
    struct pstk__bytes text = {0};
    pstk__bytes_format(&text, "{\"format\":\"penstock\",\n\"version\":%d,\n\"identity\":\"%s\"",
                       PSTK_FORMAT_VERSION, m->identity);
    pstk__bytes_format(&text, ",\n\"n_samples\":%llu,\n\"n_shards\":%u,\n\"bytes\":%llu",
                       (unsigned long long)m->n_samples, m->n_shards, (unsigned long long)m->bytes);
    pstk__bytes_format(&text, ",\n\"part\":%u,\n\"n_parts\":%u", m->part, m->n_parts);
    if (m->n_parts == 0)
        pstk__bytes_format(&text, ",\n\"pack\":\"%s\",\n\"task\":\"%s\",\n\"attempt\":%u",
                           m->task.pack_id, m->task.key, m->task.attempt);
    else if (m->task.pack_id[0])
        pstk__bytes_format(&text, ",\n\"pack\":\"%s\"", m->task.pack_id);
    pstk__bytes_format(&text, ",\n\"note\":");
    put_quoted(&text, m->note ? m->note : "");
    print_lists(&text, m);
    print_features(&text, m);
    uint32_t crc = text.failed ? 0 : pstk__crc32c(0, text.data, text.size);
    pstk__bytes_format(&text, PSTK__TAIL_BEFORE "%08x" PSTK__TAIL_AFTER, crc);
    if (text.failed || text.size > PSTK__MANIFEST_MAX) {
        pstk__bytes_free(&text);
        return text.failed ? pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE,
                                        "no memory to print the manifest")
                           : pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_WRITE,
                                        "the manifest has over 256 MiB; use larger shards");
    }
    *bytes = (char *)text.data;
    *size = text.size;
    return 0;
}
