/* SPDX-License-Identifier: Apache-2.0 */
#include "format/joined.h"

#include "base/error.h"
#include "base/random.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAIL(code, fmt, ...) pstk__fail(err, code, PSTK_STAGE_OPEN, fmt, ##__VA_ARGS__)

/* One of the data sets, and its position in the joined one. */
struct part {
    struct pstk__source *source;        /* owned */
    uint64_t sample, shard, file, page; /* number of its first sample, shard, file and page */
    uint32_t is_alike;                  /* 1: its fields have the joint numbers */
    uint32_t fields[PSTK_MAX_FIELDS];   /* its own number of each joint field */
    struct pstk__field_file field_files[PSTK_MAX_FIELDS]; /* positions of each joint field's values,
                                                             if it has some */
};

struct joined {
    uint32_t n;
    struct part parts[];
};

/* ---- parts ----------------------------------------------------------------------------------- */

static const struct part *part_of_shard(const struct pstk__source *source, uint64_t shard)
{
    const struct joined *joined = source->state;
    uint32_t i = joined->n - 1;
    while (joined->parts[i].shard > shard)
        i--;
    return &joined->parts[i];
}

static const struct part *part_of_file(const struct pstk__source *source, uint64_t file)
{
    const struct joined *joined = source->state;
    uint32_t i = joined->n - 1;
    while (joined->parts[i].file > file)
        i--;
    return &joined->parts[i];
}

/* Return the position in the part's own data set. */
static struct pstk__sample_location location_in(const struct part *part,
                                                const struct pstk__sample_location *at)
{
    return (struct pstk__sample_location){.shard = at->shard - (uint32_t)part->shard,
                                          .record = at->record};
}

/* Return a set of fields in a part's numbers. */
static uint64_t fields_in(const struct part *part, uint64_t fields)
{
    uint64_t own = 0;
    for (uint64_t left = fields; left; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(left);
        own |= 1ull << part->fields[i];
    }
    return own;
}

/* Return the fields of a set that exist. */
static uint64_t known_fields(const struct pstk__source *source, uint64_t fields)
{
    const uint32_t n = source->schema.n_fields;
    return n == 64 ? fields : fields & ((1ull << n) - 1);
}

/* ---- the table ------------------------------------------------------------------------------- */

static void joined_close(struct pstk__source *source)
{
    struct joined *joined = source->state;
    for (uint32_t i = 0; joined && i < joined->n; i++)
        pstk__source_close(joined->parts[i].source);
    free(joined);
    free(source->path);
    free(source);
}

static void joined_locate(const struct pstk__source *source, uint64_t id,
                          struct pstk__sample_location *at)
{
    const struct joined *joined = source->state;
    uint32_t i = joined->n - 1;
    while (joined->parts[i].sample > id)
        i--;
    const struct part *part = &joined->parts[i];
    part->source->format->locate(part->source, id - part->sample, at);
    at->shard += (uint32_t)part->shard;
}

static uint32_t joined_n_extents(const struct pstk__source *source, uint64_t fields)
{
    const struct joined *joined = source->state;
    uint32_t most = 1;
    fields = known_fields(source, fields);
    for (uint32_t i = 0; i < joined->n; i++) {
        const struct part *part = &joined->parts[i];
        if (!part->source->format->n_extents)
            continue;
        const uint32_t n = pstk__source_n_extents(part->source, fields_in(part, fields));
        most = n > most ? n : most;
    }
    return most;
}

/* A part with fewer extents than others has empty ones after its own. */
static int joined_extent(const struct pstk__source *source, const struct pstk__sample_location *at,
                         uint64_t fields, const void *page, struct pstk__extent *out,
                         struct pstk_error *err)
{
    const struct part *part = part_of_shard(source, at->shard);
    const struct pstk__sample_location location = location_in(part, at);
    const uint64_t own = fields_in(part, known_fields(source, fields));
    const uint32_t n = pstk__source_n_extents(part->source, own);
    const uint32_t n_all = joined_n_extents(source, fields);
    const int rc = part->source->format->extent(part->source, &location, own, page, out, err);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < n; i++)
        out[i].file += (uint32_t)part->file;
    for (uint32_t i = n; i < n_all; i++)
        out[i] = (struct pstk__extent){.file = (uint32_t)part->file, .record = at->record};
    return 0;
}

/* Give the views of a part's record the joint numbers. */
static void renumber(const struct pstk__source *source, const struct part *part,
                     struct pstk__record *record)
{
    const uint32_t n = source->schema.n_fields;
    struct pstk__field_view views[PSTK_MAX_FIELDS];
    for (uint32_t i = 0; !part->is_alike && i < n; i++)
        views[i] = record->fields[part->fields[i]];
    if (!part->is_alike)
        memcpy(record->fields, views, n * sizeof *views);
    record->n_fields = n;
    record->schema = &source->schema;
    record->file += (uint32_t)part->file;
    record->field_files = record->field_files ? part->field_files : NULL;
}

static int joined_parse(const struct pstk__source *source, const struct pstk__sample_location *at,
                        uint64_t fields, const struct pstk__extent *extents, uint32_t n_extents,
                        struct pstk__record *out, struct pstk_error *err)
{
    const struct part *part = part_of_shard(source, at->shard);
    const struct pstk__sample_location location = location_in(part, at);
    struct pstk__extent own[PSTK_MAX_FIELDS];
    uint32_t n = 0;
    while (n < n_extents && (n == 0 || extents[n].size > 0)) {
        own[n] = extents[n];
        own[n++].file -= (uint32_t)part->file;
    }
    const int rc = part->source->format->parse(part->source, &location, fields_in(part, fields),
                                               own, n, out, err);
    if (rc == 0)
        renumber(source, part, out);
    return rc;
}

static void joined_range(const struct pstk__source *source, uint32_t shard, uint64_t *first,
                         uint64_t *n)
{
    const struct part *part = part_of_shard(source, shard);
    pstk__source_range(part->source, shard - (uint32_t)part->shard, first, n);
    *first += part->sample;
}

static void joined_page(const struct pstk__source *source, const struct pstk__sample_location *at,
                        struct pstk__extent *page)
{
    const struct part *part = part_of_shard(source, at->shard);
    const struct pstk__sample_location location = location_in(part, at);
    pstk__source_page(part->source, &location, page);
    if (page->size == 0)
        return;
    page->file += (uint32_t)part->file;
    page->page += (uint32_t)part->page;
}

static int joined_page_check(const struct pstk__source *source, const struct pstk__extent *page,
                             const void *bytes, struct pstk_error *err)
{
    const struct part *part = part_of_file(source, page->file);
    struct pstk__extent own = *page;
    own.file -= (uint32_t)part->file;
    own.page -= (uint32_t)part->page;
    return part->source->format->page_check(part->source, &own, bytes, err);
}

static const struct pstk__dictionary *joined_dictionary(const struct pstk__source *source,
                                                        uint32_t shard, uint32_t field)
{
    const struct part *part = part_of_shard(source, shard);
    return pstk__source_dictionary(part->source, shard - (uint32_t)part->shard,
                                   part->fields[field]);
}

static uint64_t joined_read_size(const struct pstk__source *source, uint64_t fields, int is_max)
{
    const struct joined *joined = source->state;
    uint64_t most = 0;
    double mean = 0;
    for (uint32_t i = 0; i < joined->n; i++) {
        const struct part *part = &joined->parts[i];
        const uint64_t own = fields_in(part, known_fields(source, fields));
        const uint64_t size = pstk__source_max_read(part->source, own);
        most = size > most ? size : most;
        mean += (double)pstk__source_mean_read(part->source, own) *
                ((double)part->source->n_samples / (double)source->n_samples);
    }
    return is_max ? most : (uint64_t)mean;
}

static const struct pstk__source *joined_part(const struct pstk__source *source, uint32_t *file)
{
    const struct part *part = part_of_file(source, *file);
    *file -= (uint32_t)part->file;
    return part->source;
}

static const struct pstk__format format_joined = {
    .name = "joined",
    .needs = "",
    .file = "file",
    .checksum = PSTK__CHECKSUM_CRC32C,
    .close = joined_close,
    .locate = joined_locate,
    .extent = joined_extent,
    .parse = joined_parse,
    .n_extents = joined_n_extents,
    .range = joined_range,
    .page = joined_page,
    .page_check = joined_page_check,
    .dictionary = joined_dictionary,
    .read_size = joined_read_size,
    .part = joined_part,
};

/* ---- the joint schema ------------------------------------------------------------------------ */

/* Return the difference of two fields of one name, or NULL. Their storage is ignored. */
static const char *difference(const struct pstk_field *a, const struct pstk_field *b)
{
    if (a->kind != b->kind)
        return "kind";
    if (a->dtype != b->dtype)
        return "dtype";
    if (a->n_dims != b->n_dims || memcmp(a->shape, b->shape, sizeof a->shape) != 0)
        return "shape";
    if (a->box_format != b->box_format || a->coordinates != b->coordinates)
        return a->box_format != b->box_format ? "form" : "coordinates";
    if (strcmp(a->of, b->of) != 0)
        return "of";
    if (strcmp(a->rows, b->rows) != 0 || strcmp(a->splits, b->splits) != 0)
        return strcmp(a->rows, b->rows) != 0 ? "rows" : "splits";
    return NULL;
}

/* 1: all data sets have an equal field. *other: the first data set that has not; *what: the
 * difference, NULL: it has no field of that name. */
static int is_common(const struct joined *joined, const struct pstk_field *field, uint32_t *other,
                     const char **what)
{
    *what = NULL;
    for (*other = 1; *other < joined->n; ++*other) {
        const struct pstk__schema *schema = &joined->parts[*other].source->schema;
        const int i = pstk__schema_find(schema, field->name);
        if (i < 0)
            return 0;
        *what = difference(field, &schema->fields[i]);
        if (*what)
            return 0;
    }
    return 1;
}

/* 1: the fields contain the image and the axis that one of them names. */
static int has_links(const struct pstk_field *field, const struct pstk_field *fields, uint32_t n)
{
    int has_image = !field->of[0], has_axis = !field->splits[0];
    for (uint32_t i = 0; i < n; i++) {
        has_image |= strcmp(fields[i].name, field->of) == 0;
        has_axis |= strcmp(fields[i].rows, field->splits) == 0;
    }
    return has_image && has_axis;
}

/* Collect the fields that are equal in all data sets, in the order of the first. */
static uint32_t common_fields(const struct joined *joined, struct pstk_field *fields)
{
    const struct pstk__schema *schema = &joined->parts[0].source->schema;
    uint32_t n = 0, other;
    const char *what;
    for (uint32_t i = 0; i < schema->n_fields; i++)
        if (is_common(joined, &schema->fields[i], &other, &what))
            fields[n++] = schema->fields[i];
    for (uint32_t i = 0; i < n;) { /* a removed field may remove others */
        if (has_links(&fields[i], fields, n)) {
            i++;
            continue;
        }
        memmove(&fields[i], &fields[i + 1], (--n - i) * sizeof *fields);
        i = 0;
    }
    return n;
}

/* Set the codec: a field that some data set compresses may be compressed. */
static void join_codec(const struct joined *joined, struct pstk_field *field)
{
    for (uint32_t k = 0; k < joined->n && field->codec == PSTK_CODEC_NONE; k++) {
        const struct pstk__schema *schema = &joined->parts[k].source->schema;
        const int own = pstk__schema_find(schema, field->name);
        field->codec = schema->fields[own].codec;
        field->codec_level = schema->fields[own].codec_level;
    }
}

static int join_schema(struct pstk__source *source, struct pstk_error *err)
{
    struct joined *joined = source->state;
    struct pstk_field fields[PSTK_MAX_FIELDS];
    const uint32_t n = common_fields(joined, fields);
    if (n == 0)
        return FAIL(PSTK_EINVAL, "mixture: no field is the same in all data sets; pack them with "
                                 "fields of equal names, kinds, dtypes and shapes");
    for (uint32_t i = 0; i < n; i++)
        join_codec(joined, &fields[i]);
    const int rc = pstk__schema_init(&source->schema, fields, n, err);
    if (rc < 0)
        return rc;
    for (uint32_t k = 0; k < joined->n; k++) {
        struct part *part = &joined->parts[k];
        const struct pstk__schema *schema = &part->source->schema;
        const struct pstk__format *format = part->source->format;
        const struct pstk__field_file *files =
            format->field_files ? format->field_files(part->source) : NULL;
        part->is_alike = 1;
        if (schema->head_size > source->schema.head_size)
            source->schema.head_size = schema->head_size; /* the max bytes read of a head */
        for (uint32_t i = 0; i < n; i++) {
            part->fields[i] = (uint32_t)pstk__schema_find(schema, fields[i].name);
            part->is_alike &= part->fields[i] == i;
            /* A value that lies outside of the head in some data set does so here: reading it may
             * take memory. */
            if (schema->entry[part->fields[i]] >= 0 && source->schema.entry[i] < 0)
                source->schema.entry[i] = (int32_t)i;
            if (files) {
                part->field_files[i] = files[part->fields[i]];
                part->field_files[i].file += (uint32_t)part->file;
            }
        }
    }
    return 0;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Take the larger of each limit of field i; `own`: its number in the part. */
static void join_limits(struct pstk__source *source, uint32_t i, const struct pstk__source *part,
                        uint32_t own)
{
    struct pstk__record_limits *all = &source->limits;
    const struct pstk__record_limits *one = &part->limits;
    all->max_stored[i] = larger(all->max_stored[i], one->max_stored[own]);
    all->max_plain[i] = larger(all->max_plain[i], one->max_plain[own]);
    all->max_width[i] = (uint32_t)larger(all->max_width[i], one->max_width[own]);
    all->max_height[i] = (uint32_t)larger(all->max_height[i], one->max_height[own]);
}

/* Mix the identities of the parts, in their order. */
static void join_identity(struct pstk__source *source)
{
    const struct joined *joined = source->state;
    uint64_t lanes[2] = {joined->n, ~(uint64_t)joined->n};
    for (uint32_t k = 0; k < joined->n; k++)
        for (const char *at = joined->parts[k].source->identity; *at; at++) {
            lanes[0] = pstk__mix64(lanes[0] ^ (uint8_t)*at);
            lanes[1] = pstk__mix64(lanes[1] + (uint8_t)*at);
        }
    snprintf(source->identity, sizeof source->identity, "%016" PRIx64 "%016" PRIx64, lanes[0],
             lanes[1]);
}

/* Refuse a repeated data set, and more items than numbers hold. */
static int check_part(const struct pstk__source *source, uint32_t k, struct pstk_error *err)
{
    const struct joined *joined = source->state;
    const struct pstk__source *part = joined->parts[k].source;
    for (uint32_t i = 0; i < k; i++)
        if (strcmp(joined->parts[i].source->identity, part->identity) == 0)
            return FAIL(PSTK_EINVAL,
                        "mixture: data sets %s and %s have the same content; must differ (give it "
                        "once, with the sum of both weights)",
                        joined->parts[i].source->path, part->path);
    if (source->n_shards > UINT32_MAX || source->n_files > UINT32_MAX ||
        source->n_pages > UINT32_MAX || source->n_samples > UINT64_MAX / 4)
        return FAIL(PSTK_EINVAL,
                    "mixture: the data sets have too many shards together (2^32 "
                    "files and index pages at most); leave %s out",
                    part->path);
    return 0;
}

static int join_numbers(struct pstk__source *source, struct pstk_error *err)
{
    struct joined *joined = source->state;
    for (uint32_t k = 0; k < joined->n; k++) {
        struct part *part = &joined->parts[k];
        const struct pstk__source *one = part->source;
        part->sample = source->n_samples;
        part->shard = source->n_shards;
        part->file = source->n_files;
        part->page = source->n_pages;
        source->n_samples += one->n_samples;
        source->n_shards += one->n_shards;
        source->n_files += one->n_files;
        source->n_pages += one->n_pages;
        source->bytes += one->bytes;
        source->limits.max_size = larger(source->limits.max_size, one->limits.max_size);
        if (!one->store->has_fds || !source->store)
            source->store = one->store;
        const int rc = check_part(source, k, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int pstk__joined_open(struct pstk__source **out, struct pstk__source **sources, uint32_t n,
                      struct pstk_error *err)
{
    *out = NULL;
    struct pstk__source *source = calloc(1, sizeof *source);
    struct joined *joined = calloc(1, sizeof *joined + n * sizeof joined->parts[0]);
    char path[64];
    snprintf(path, sizeof path, "the mixture of %u data set%s", n, n == 1 ? "" : "s");
    if (source)
        source->path = strdup(path);
    if (!source || !joined || !source->path) {
        for (uint32_t k = 0; k < n; k++)
            pstk__source_close(sources[k]);
        free(source ? source->path : NULL);
        free(source);
        free(joined);
        return FAIL(PSTK_ENOMEM, "no memory for a mixture of %u data sets", n);
    }
    source->format = &format_joined;
    source->state = joined;
    source->n_joined = joined->n = n;
    for (uint32_t k = 0; k < n; k++)
        joined->parts[k].source = sources[k];
    int rc = join_numbers(source, err);
    if (rc == 0)
        rc = join_schema(source, err);
    if (rc < 0) {
        joined_close(source);
        return rc;
    }
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < source->schema.n_fields; i++)
            join_limits(source, i, sources[k], joined->parts[k].fields[i]);
    join_identity(source);
    *out = source;
    return 0;
}

const struct pstk__source *pstk__joined_part(const struct pstk__source *source, uint32_t i)
{
    const struct joined *joined = source->state;
    return joined->parts[i].source;
}

int pstk__joined_check_field(const struct pstk__source *source, const char *name,
                             struct pstk_error *err)
{
    const struct joined *joined = source->state;
    if (pstk__schema_find(&source->schema, name) >= 0)
        return 0;
    uint32_t has = 0, other;
    const char *what = NULL;
    while (has < joined->n && pstk__schema_find(&joined->parts[has].source->schema, name) < 0)
        has++;
    if (has == joined->n)
        return 0; /* no data set has the field: the outputs' own check lists the fields */
    const struct pstk__schema *schema = &joined->parts[has].source->schema;
    const char *path = joined->parts[has].source->path;
    if (has > 0)
        return FAIL(PSTK_EINVAL,
                    "mixture: field %s, which an output reads, is in data set %s, but not in %s; "
                    "must be in all (leave the output or the data set out)",
                    name, path, joined->parts[0].source->path);
    if (is_common(joined, &schema->fields[pstk__schema_find(schema, name)], &other, &what))
        return FAIL(PSTK_EINVAL,
                    "mixture: field %s, which an output reads, belongs to another field, which "
                    "differs between the data sets; must be the same in all (leave the output out)",
                    name);
    if (!what)
        return FAIL(PSTK_EINVAL,
                    "mixture: field %s, which an output reads, is in data set %s, but not in %s; "
                    "must be in all (leave the output or the data set out)",
                    name, path, joined->parts[other].source->path);
    return FAIL(PSTK_EINVAL,
                "mixture: field %s, which an output reads, has another %s in data set %s than in "
                "%s; must be the same in all (leave the output or the data set out)",
                name, what, path, joined->parts[other].source->path);
}
