/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "base/utf8.h"
#include "format/coding.h"
#include "format/indexed.h"
#include "format/listing.h"
#include "format/tar/member.h"
#include "format/tar/scan.h"
#include "format/tar/suffixes.h"
#include "format/tar/tar.h"
#include "record/translate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PACKED_NAMES ".tar.gz .tgz .tar.zst .tar.zstd"
#define PLAIN_NAMES ".tar"
#define SCANNER(names, is_packed)                                                                  \
    {                                                                                              \
        .format = &pstk__format_tar, .version = 6, .wanted = (names),                              \
        .may_be_packed = (is_packed), .packed = (is_packed) ? NULL : PACKED_NAMES,                 \
        .infer = pstk__tar_infer, .n_columns = pstk__tar_n_columns, .scan = pstk__tar_scan,        \
        .retype = retype,                                                                          \
    }

static int retype(struct pstk__index_field *field, const struct pstk_field *wanted,
                  struct pstk_error *err)
{
    if (strcmp(wanted->name, PSTK__TAR_KEY) == 0 && wanted->kind != PSTK_FIELD_UTF8 &&
        wanted->kind != PSTK_FIELD_BYTES)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "field " PSTK__TAR_KEY ", the key of samples: must be utf8 or bytes");
    return pstk__coding_retype(field, wanted, err);
}

/* Scanners for plain archives and for compressed ones. In a folder with both, the compressed ones
 * are left out: each must have its plain form next to it. */
enum { PLAIN, PACKED, N_SCANNERS };
static const struct pstk__scanner scanners[N_SCANNERS] = {
    [PLAIN] = SCANNER(PLAIN_NAMES, 0),
    [PACKED] = SCANNER(PACKED_NAMES, 1),
};

/* Return the number of the scanner for a path; N_SCANNERS: none; <0: it cannot be read. */
static int choose(const struct pstk__store *store, const char *path, struct pstk_error *err)
{
    int r = 0, i = 0;
    while (i < N_SCANNERS && (r = pstk__listing_probe(store, path, scanners[i].wanted, err)) == 0)
        i++;
    return r < 0 ? r : i;
}

static int tar_probe(const struct pstk__store *store, const char *path, struct pstk_error *err)
{
    const int i = choose(store, path, err);
    return i < 0 ? i : i < N_SCANNERS;
}

/* 1: every member is an extent of its own; 0: all members of a sample form one. */
static int is_scattered(const struct pstk__source *source)
{
    return pstk__indexed_index(source)->found.facts[PSTK__TAR_SCATTERED] != 0;
}

/* Return the max bytes of a member before its data. */
static uint64_t headers_of(const struct pstk__source *source)
{
    const uint64_t most = pstk__indexed_index(source)->found.facts[PSTK__TAR_HEADERS];
    return most < 2 * PSTK__TAR_MAX_HEADERS ? most : 2 * PSTK__TAR_MAX_HEADERS;
}

/* Return the suffixes of the fields, borrowed from the state of the source. */
static const struct pstk__tar_suffixes *suffixes_of(const struct pstk__source *source)
{
    return ((const struct pstk__indexed *)source->state)->own;
}

static int tar_open(struct pstk__source **out, const struct pstk__opening *opening,
                    struct pstk_error *err)
{
    *out = NULL;
    struct pstk__tar_suffixes *suffixes = malloc(sizeof *suffixes);
    if (!suffixes)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to open %s", opening->path);
    int r = choose(opening->store, opening->path, err);
    if (r >= 0)
        r = pstk__indexed_open(out, &scanners[r < N_SCANNERS ? r : PLAIN], opening, err);
    if (r < 0) {
        free(suffixes);
        return r;
    }
    pstk__tar_suffixes_init(suffixes, &pstk__indexed_index(*out)->found, opening->foreign);
    ((struct pstk__indexed *)(*out)->state)->own = suffixes;
    if (!is_scattered(*out))
        return 0;
    struct pstk__record_limits *limits = &(*out)->limits;
    limits->max_size = 0; /* at most 64 values below 2^32, each with 1 MiB of headers */
    for (uint32_t i = 0; i < (*out)->schema.n_fields; i++)
        limits->max_size += limits->max_stored[i] + headers_of(*out);
    return 0;
}

static uint64_t known_fields(const struct pstk__source *source)
{
    return source->schema.n_fields == 64 ? UINT64_MAX : (1ull << source->schema.n_fields) - 1;
}

static uint32_t tar_n_extents(const struct pstk__source *source, uint64_t fields)
{
    return is_scattered(source) ? (uint32_t)__builtin_popcountll(fields & known_fields(source)) : 1;
}

/* Return the max or mean bytes of a sample that are read. */
static uint64_t tar_read_size(const struct pstk__source *source, uint64_t fields, int is_max)
{
    const uint64_t headers = headers_of(source);
    uint64_t size = 0; /* as limits.max_size */
    for (uint32_t i = 0; i < source->schema.n_fields; i++)
        if (fields >> i & 1)
            size += headers + (is_max ? source->limits.max_stored[i]
                                      : source->stats[i].stored_bytes / source->n_samples);
    if (is_scattered(source))
        return size;
    return is_max || size > source->limits.max_size ? source->limits.max_size : size;
}

/* ---- where things are ------------------------------------------------------------------------ */

/* Return the member of a field as an extent; size 0: the sample has none. */
static struct pstk__extent member_of(const struct pstk__source *source,
                                     const struct pstk__sample_location *at, const void *page,
                                     uint32_t field)
{
    const uint64_t size = pstk__indexed_cell(source, at, page, pstk__tar_size(field));
    const uint64_t begin = pstk__indexed_cell(source, at, page, 0) +
                           pstk__indexed_cell(source, at, page, pstk__tar_begin(field));
    return (struct pstk__extent){
        .file = at->shard, .record = at->record, .offset = begin, .size = size, .whole_size = size};
}

/* 1: keys may end at the last dot: the missing suffix, or another one with its end, has a dot, and
 * the caller has not chosen the first dot. */
static int may_end_later(const struct pstk__source *source, uint32_t field)
{
    const struct pstk_field *fields = source->schema.fields;
    const char *dot = strrchr(fields[field].name, '.');
    const char *end = dot ? dot + 1 : fields[field].name;
    int is_dotted = dot != NULL;
    for (uint32_t i = 0; i < source->schema.n_fields; i++) {
        const char *other = strrchr(fields[i].name, '.');
        is_dotted |= other && strcmp(other + 1, end) == 0;
    }
    return is_dotted && suffixes_of(source)->may_be_last;
}

static int fail_absent(const struct pstk__source *source, const struct pstk__sample_location *at,
                       const void *page, uint32_t field, struct pstk_error *err)
{
    return pstk__indexed_fail(
        source, at, pstk__indexed_cell(source, at, page, 0), 0, err,
        "the sample has no member with the suffix '%s', which other samples have%s",
        source->schema.fields[field].name,
        may_end_later(source, field) ? "; " PSTK__TAR_LAST_DOT : "");
}

/* Check an extent by the size of its file, and by the index's own limits, which sized the memory.
 */
static int check_extent(const struct pstk__source *source, const struct pstk__sample_location *at,
                        const struct pstk__extent *extent, struct pstk_error *err)
{
    const uint64_t end = pstk__indexed_index(source)->files[at->shard].size;
    if (extent->size <= source->limits.max_size && extent->offset <= end &&
        extent->size <= end - extent->offset)
        return 0;
    return pstk__indexed_fail_extent(source, at, extent->offset, extent->size, err);
}

static int tar_extent(const struct pstk__source *source, const struct pstk__sample_location *at,
                      uint64_t fields, const void *page, struct pstk__extent *out,
                      struct pstk_error *err)
{
    const int scattered = is_scattered(source);
    struct pstk__extent all = {.file = at->shard, .record = at->record, .offset = UINT64_MAX};
    uint64_t end = 0;
    for (uint64_t left = fields & known_fields(source); left; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(left);
        const struct pstk__extent one = member_of(source, at, page, i);
        if (one.size == 0)
            return fail_absent(source, at, page, i, err);
        const int r = check_extent(source, at, &one, err);
        if (r < 0)
            return r;
        all.offset = one.offset < all.offset ? one.offset : all.offset;
        end = one.offset + one.size > end ? one.offset + one.size : end;
        if (scattered)
            *out++ = one;
    }
    if (scattered)
        return 0;
    all.offset = end ? all.offset : 0;
    all.size = all.whole_size = end - all.offset;
    *out = all;
    return check_extent(source, at, &all, err);
}

/* ---- a sample -------------------------------------------------------------------------------- */

/* The parsing of one sample. */
struct parse {
    const struct pstk__source *source;
    const struct pstk__sample_location *at;
    struct pstk__record *out;
    struct pstk_error *err;
    uint64_t fields; /* wanted fields */
    const struct pstk__tar_suffixes *suffixes;
    /* For each field with a choice: the preferred member among those seen. */
    struct choice {
        const struct pstk__extent *extent; /* NULL: none */
        uint64_t begin, data, size;
        int suffix;
    } * choices;
    uint32_t key_size;
    char key[PSTK__TAR_MAX_NAME]; /* key of the sample's first member */
};

/* Put a member of the sample into the record as field i. */
static int view_field(struct parse *parse, const struct choice *member, int i)
{
    const struct pstk__index *index = pstk__indexed_index(parse->source);
    const struct pstk__extent *extent = member->extent;
    if (member->data + member->size > extent->offset + extent->size ||
        member->size > parse->source->limits.max_stored[i])
        return pstk__indexed_fail(parse->source, parse->at, member->begin, extent->size, parse->err,
                                  "its header gives a member another size than the index");
    struct pstk__field_view *view = &parse->out->fields[i];
    char text[160];
    const uint8_t *data = extent->data + (member->data - extent->offset);
    const char *wrong = pstk__coding_view(view, &index->found.fields[i], data, member->size, text);
    view->offset = member->data + (uint64_t)(view->data - data) - parse->out->file_offset;
    return wrong ? pstk__record_fail(parse->out, (uint32_t)i, PSTK_EBADMSG, PSTK_STAGE_RECORD,
                                     parse->err, "%s", wrong)
                 : 0;
}

/* Put the key into the record, from the name of a member of the sample. */
static int view_key(struct parse *parse, const struct pstk__extent *extent,
                    const struct pstk__tar_member *member, const struct pstk__tar_name *name)
{
    const uint32_t i = (uint32_t)parse->suffixes->key;
    const struct pstk_field *field = &parse->source->schema.fields[i];
    const int is_parted = member->named == PSTK_NONE;
    const uint64_t at = is_parted ? member->data - PSTK__TAR_BLOCK
                                  : member->named + (uint64_t)(name->key - member->name);
    struct pstk__field_view *view = &parse->out->fields[i];
    *view = (struct pstk__field_view){
        .data = extent->data + (at - extent->offset),
        .stored_size = is_parted ? PSTK__TAR_BLOCK : name->key_size,
        .plain_size = name->key_size,
        .codec = is_parted ? PSTK__FOREIGN_USTAR_NAME : PSTK_CODEC_NONE,
        .checksum = PSTK__CHECKSUM_NONE,
        .offset = at - parse->out->file_offset,
    };
    const struct pstk__record_limits *limits = &parse->source->limits;
    if (view->stored_size > limits->max_stored[i] || view->plain_size > limits->max_plain[i])
        return pstk__indexed_fail(parse->source, parse->at, member->begin, extent->size, parse->err,
                                  "the key of a sample is longer than the index says");
    const uint8_t *key = (const uint8_t *)name->key;
    if (field->kind == PSTK_FIELD_UTF8 && pstk__utf8_end(key, name->key_size) != name->key_size)
        return pstk__record_fail(parse->out, i, PSTK_EBADMSG, PSTK_STAGE_RECORD, parse->err,
                                 "is not UTF-8: read it as bytes");
    return 0;
}

/* Put a member of the sample into the record. If its field has a choice, keep the member until all
 * candidates were seen. */
static int view_member(struct parse *parse, const struct pstk__extent *extent,
                       const struct pstk__tar_member *member, const struct pstk__tar_name *name)
{
    const int suffix = pstk__tar_suffixes_find(parse->suffixes, name->suffix);
    const int i = suffix < 0 ? -1 : parse->suffixes->at[suffix].field;
    if (i < 0 || !(parse->fields >> i & 1))
        return 0;
    const struct choice found = {.extent = extent,
                                 .begin = member->begin,
                                 .data = member->data,
                                 .size = member->size,
                                 .suffix = suffix};
    if (parse->suffixes->at[suffix].rule != PSTK__TAR_CHOICE)
        return view_field(parse, &found, i);
    struct choice *best = &parse->choices[i];
    if (!best->extent || suffix < best->suffix)
        *best = found;
    return 0;
}

/* Put the kept members into the record. */
static int view_choices(struct parse *parse)
{
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < parse->source->schema.n_fields; i++)
        if (parse->choices[i].extent)
            r = view_field(parse, &parse->choices[i], (int)i);
    return r;
}

/* The way in which the first member of an extent gives the key of the sample. */
enum key_of { NO_KEY, KEY_TOO, KEY_ALONE /* the extent ends after the headers */ };

/* Parse all members in an extent. */
static int parse_extent(struct parse *parse, const struct pstk__extent *extent, enum key_of key)
{
    struct pstk__tar_member member;
    struct pstk__tar_name name;
    struct pstk__tar_fault fault = {.why = "its bytes are not a member of a tar archive"};
    for (uint64_t at = 0; at < extent->size; at = member.next - extent->offset) {
        const enum pstk__tar_step step = pstk__tar_read(
            &member, extent->offset + at, extent->data + at, extent->size - at, &fault);
        if (step != PSTK__TAR_MEMBER && step != PSTK__TAR_OTHER)
            return pstk__indexed_fail(parse->source, parse->at, extent->offset + at, 0, parse->err,
                                      "%s; the index found a member here: was the file changed?",
                                      fault.why);
        if (step == PSTK__TAR_OTHER)
            continue;
        pstk__tar_split(&name, member.name, suffixes_of(parse->source)->at_last);
        if (at == 0 && parse->key_size == 0) {
            parse->key_size = name.key_size;
            memcpy(parse->key, name.key, name.key_size);
        }
        const int is_own = name.suffix_size && name.key_size == parse->key_size &&
                           memcmp(name.key, parse->key, name.key_size) == 0;
        int r = is_own && key != KEY_ALONE ? view_member(parse, extent, &member, &name) : 0;
        if (r == 0 && is_own && at == 0 && key != NO_KEY)
            r = view_key(parse, extent, &member, &name);
        if (r < 0)
            return r;
        if (at == 0 && !is_own)
            return pstk__indexed_fail(
                parse->source, parse->at, extent->offset, 0, parse->err,
                "a member of another sample lies here: was the file changed?");
    }
    return 0;
}

/* Return the number of the extent that gives the key; UINT32_MAX: the key is not wanted. If each
 * field has an extent, they have the order of the fields; otherwise the only extent begins with the
 * sample's first member. */
static uint32_t key_extent(const struct pstk__source *source, uint64_t fields)
{
    const int key = suffixes_of(source)->key;
    if (key < 0 || !(fields >> key & 1))
        return UINT32_MAX;
    const uint64_t before = fields & ((1ull << key) - 1);
    return is_scattered(source) ? (uint32_t)__builtin_popcountll(before) : 0;
}

static int tar_parse(const struct pstk__source *source, const struct pstk__sample_location *at,
                     uint64_t fields, const struct pstk__extent *extents, uint32_t n_extents,
                     struct pstk__record *out, struct pstk_error *err)
{
    struct parse parse;
    parse.source = source;
    parse.at = at;
    parse.out = out;
    parse.err = err;
    parse.fields = fields;
    parse.suffixes = suffixes_of(source);
    parse.choices = NULL;
    parse.key_size = 0;
    struct choice choices[PSTK_MAX_FIELDS];
    if (parse.suffixes->n_choices) {
        memset(choices, 0, sizeof choices);
        parse.choices = choices;
    }
    uint64_t first = n_extents ? extents[0].offset : 0; /* messages count from the first byte */
    for (uint32_t k = 1; k < n_extents; k++)
        first = extents[k].size && extents[k].offset < first ? extents[k].offset : first;
    pstk__indexed_begin(source, at, first, out);
    const uint32_t key = key_extent(source, fields);
    const enum key_of key_of = is_scattered(source) ? KEY_ALONE : KEY_TOO;
    for (uint32_t k = 0; k < n_extents; k++) {
        const int r =
            extents[k].size ? parse_extent(&parse, &extents[k], k == key ? key_of : NO_KEY) : 0;
        if (r < 0)
            return r;
    }
    return parse.choices ? view_choices(&parse) : 0;
}

const struct pstk__format pstk__format_tar = {
    .name = "tar",
    .needs = ".tar, .tar.gz or .tar.zst archives of samples",
    .names = PLAIN_NAMES " " PACKED_NAMES,
    .file = "archive",
    .checksum = PSTK__CHECKSUM_NONE,
    .probe = tar_probe,
    .open = tar_open,
    .close = pstk__indexed_close,
    .index = pstk__indexed_index,
    .locate = pstk__indexed_locate,
    .range = pstk__indexed_range,
    .page = pstk__indexed_page,
    .page_check = pstk__indexed_page_check,
    .n_extents = tar_n_extents,
    .extent = tar_extent,
    .parse = tar_parse,
    .read_size = tar_read_size,
    .file_name = pstk__indexed_file_name,
    .file_path = pstk__indexed_file_path,
    .file_check = pstk__indexed_file_check,
};
