/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "format/coding.h"
#include "format/indexed.h"
#include "format/listing.h"
#include "format/tfrecord/defaults.h"
#include "format/tfrecord/example.h"
#include "format/tfrecord/frame.h"
#include "format/tfrecord/scan.h"
#include "format/tfrecord/tfrecord.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* 1: these first bytes of a file are the head of a record, so the file is not compressed. */
static int begins_with_record(const uint8_t *head, uint64_t n)
{
    uint64_t length;
    return n >= PSTK__TFRECORD_HEAD && pstk__tfrecord_head(head, &length);
}

#define NAMED_NAMES ".tfrecord .tfrecords .tfrec *.tfrecord-*-of-*[0-9}*]"
#define SHARD_NAMES "*-[0-9]*[0-9]-of-[0-9]*[0-9] part-r-*"
#define PACKED_NAMES                                                                               \
    ".tfrecord.gz .tfrecords.gz .tfrec.gz *.tfrecord-*-of-*.gz .tfrecord.zst .tfrecords.zst"
#define SCANNER(names, packed_names)                                                               \
    {                                                                                              \
        .format = &pstk__format_tfrecord, .version = 4, .wanted = (names), .may_be_packed = 1,     \
        .packed = (packed_names), .is_plain = begins_with_record, .infer = pstk__tfrecord_infer,   \
        .n_columns = pstk__tfrecord_n_columns, .scan = pstk__tfrecord_scan,                        \
        .retype = pstk__tfrecord_retype,                                                           \
    }

/* The scanners, by the names of the files that they take. NAMED: names that only TFRecords have.
 * PACKED: names of compressed files, if a folder has no NAMED ones. SHARDS: names that other
 * formats use as well, if the first file begins with a record. ANY: the path of a file, or a
 * pattern, if the first file begins with a record. */
enum { NAMED, PACKED, SHARDS, ANY };
static const struct pstk__scanner scanners[] = {
    [NAMED] = SCANNER(NAMED_NAMES, PACKED_NAMES),
    [PACKED] = SCANNER(PACKED_NAMES, NULL),
    [SHARDS] = SCANNER(SHARD_NAMES, NULL),
    [ANY] = SCANNER("*", NULL),
};

/* ---- which files ----------------------------------------------------------------------------- */

/* 1: the first file of a path that is not empty begins with a record, perhaps once it is unpacked.
 */
static int begins_so(const struct pstk__store *store, const char *path, const char *wanted)
{
    struct pstk__listing listing;
    struct pstk__file file;
    char name[PATH_MAX];
    uint8_t head[PSTK__TFRECORD_HEAD];
    uint64_t i = 0;
    if (pstk__listing_salvage(&listing, store, path, wanted, NULL) < 0)
        return 0;
    while (i < listing.names.n && listing.sizes[i] == 0)
        i++;
    int r = 0;
    if (i < listing.names.n &&
        snprintf(name, sizeof name, "%s/%s", listing.folder, pstk__texts_get(&listing.names, i)) <
            (int)sizeof name &&
        store->open(store, &file, name) == 0) {
        r = pstk__file_read(&file, head, sizeof head, 0) == sizeof head &&
            begins_with_record(head, sizeof head);
        pstk__file_end(&file);
        if (!r)
            r = pstk__unpack_head(store, name, head, sizeof head) == sizeof head &&
                begins_with_record(head, sizeof head);
    }
    pstk__listing_close(&listing);
    return r;
}

/* 1: a regular file lies at the path, or the path is a pattern; <0: a negative errno. */
static int names_files(const struct pstk__store *store, const char *path)
{
    const int r = pstk__store_find_file(store, path);
    return r != 0 ? r : pstk__listing_is_pattern(store, path);
}

/* 1: *scanner reads the files of the path; 0: they are not of this format; <0: a file cannot be
 * read. */
static int choose(const struct pstk__store *store, const char *path,
                  const struct pstk__scanner **scanner, struct pstk_error *err)
{
    int r = 0;
    for (int i = NAMED; i <= PACKED; i++) {
        *scanner = &scanners[i];
        r = pstk__listing_probe(store, path, (*scanner)->wanted, err);
        if (r != 0)
            return r;
    }
    *scanner = &scanners[SHARDS];
    r = pstk__listing_probe(store, path, scanners[SHARDS].wanted, err);
    if (r == 0) {
        r = names_files(store, path);
        *scanner = &scanners[r > 0 ? ANY : SHARDS];
        if (r < 0)
            pstk__fail_errno(err, -r, PSTK_STAGE_OPEN, "cannot open %s", path);
    }
    return r > 0 ? begins_so(store, path, (*scanner)->wanted) : r;
}

static int tfrecord_probe(const struct pstk__store *store, const char *path, struct pstk_error *err)
{
    const struct pstk__scanner *scanner;
    return choose(store, path, &scanner, err);
}

static int tfrecord_open(struct pstk__source **out, const struct pstk__opening *opening,
                         struct pstk_error *err)
{
    const struct pstk__scanner *scanner;
    *out = NULL;
    int r = choose(opening->store, opening->path, &scanner, err);
    if (r >= 0)
        r = pstk__indexed_open(out, scanner, opening, err);
    if (r < 0)
        return r;
    struct pstk__source *source = *out;
    const struct pstk__inferred_schema *found = &pstk__indexed_index(source)->found;
    for (uint32_t i = 0; i < source->schema.n_fields; i++)
        source->limits.max_plain[i] = source->stats[i].max_plain_size =
            pstk__tfrecord_max_plain(&found->fields[i]);
    struct pstk__tfrecord_defaults *defaults;
    r = pstk__tfrecord_defaults_make(&defaults, found, opening, err);
    if (r < 0) {
        pstk__indexed_close(source);
        *out = NULL;
        return r;
    }
    ((struct pstk__indexed *)source->state)->own = defaults;
    pstk__tfrecord_defaults_describe(defaults, found, source);
    return 0;
}

/* ---- a record -------------------------------------------------------------------------------- */

static int tfrecord_extent(const struct pstk__source *source,
                           const struct pstk__sample_location *at, uint64_t fields,
                           const void *page, struct pstk__extent *out, struct pstk_error *err)
{
    const uint64_t end = pstk__indexed_index(source)->files[at->shard].size;
    const uint64_t begin = pstk__indexed_cell(source, at, page, PSTK__TFRECORD_BEGIN);
    const uint64_t size = pstk__indexed_cell(source, at, page, PSTK__TFRECORD_SIZE);
    *out = (struct pstk__extent){.file = at->shard,
                                 .record = at->record,
                                 .offset = begin,
                                 .size = fields ? size : 0,
                                 .whole_size = size};
    if (size >= PSTK__TFRECORD_FRAME && size <= source->limits.max_size && begin <= end &&
        size <= end - begin)
        return 0;
    return pstk__indexed_fail_extent(source, at, begin, size, err);
}

/* The parsing of a record. */
struct parse {
    const struct pstk__source *source;
    const struct pstk__sample_location *at;
    struct pstk__record *out;
    struct pstk_error *err;
    const uint8_t *data;
    uint64_t length; /* bytes of the record's data */
};

static int fail_data(const struct parse *parse, const char *what)
{
    return pstk__indexed_fail(parse->source, parse->at,
                              parse->out->file_offset + PSTK__TFRECORD_HEAD, parse->length,
                              parse->err, "%s", what);
}

static int check_head(const struct parse *parse, const struct pstk__extent *extent)
{
    uint64_t length;
    const uint64_t wanted = extent->size - PSTK__TFRECORD_FRAME;
    if (!pstk__tfrecord_head(extent->data, &length))
        return pstk__indexed_fail(
            parse->source, parse->at, extent->offset, PSTK__TFRECORD_HEAD, parse->err,
            "damaged: the checksum of its length is %08x, but the record states %08x",
            pstk__tfrecord_mask(pstk__crc32c(0, extent->data, 8)), pstk__get32(extent->data + 8));
    if (length == wanted)
        return 0;
    return pstk__indexed_fail(
        parse->source, parse->at, extent->offset, PSTK__TFRECORD_HEAD, parse->err,
        "its length is %" PRIu64 ", but the index says %" PRIu64 ": was the file changed?", length,
        wanted);
}

static int check_data(const struct parse *parse)
{
    if (pstk__tfrecord_intact(parse->data, parse->length))
        return 0;
    char what[160];
    snprintf(what, sizeof what,
             "damaged: the checksum of its data is %08x, but the record states %08x",
             pstk__tfrecord_mask(pstk__crc32c(0, parse->data, parse->length)),
             pstk__get32(parse->data + parse->length));
    return fail_data(parse, what);
}

static int check_view(const struct parse *parse, uint32_t i, const char *wrong)
{
    const struct pstk__field_view *view = &parse->out->fields[i];
    if (!wrong && view->plain_size > parse->source->limits.max_plain[i])
        wrong = "is larger than the index says: was the file changed?";
    return wrong ? pstk__record_fail(parse->out, i, PSTK_EBADMSG, PSTK_STAGE_RECORD, parse->err,
                                     "%s", wrong)
                 : 0;
}

/* View all data as one value. The reader of bytes and arrays compares the checksum, during the copy
 * if possible; for other kinds it is compared here. */
static int view_whole(const struct parse *parse)
{
    const struct pstk__index_field *field = &pstk__indexed_index(parse->source)->found.fields[0];
    struct pstk__field_view *view = &parse->out->fields[0];
    const char *wrong = NULL;
    char text[160];
    int r = 0;
    if (field->field.kind == PSTK_FIELD_BYTES || field->field.kind == PSTK_FIELD_NDARRAY) {
        *view = (struct pstk__field_view){
            .data = parse->data,
            .stored_size = (uint32_t)parse->length,
            .plain_size = (uint32_t)parse->length,
            .stored_crc = pstk__tfrecord_unmask(pstk__get32(parse->data + parse->length)),
            .checksum = PSTK__CHECKSUM_CRC32C};
    } else {
        r = check_data(parse);
        wrong = r < 0 ? NULL : pstk__coding_view(view, field, parse->data, parse->length, text);
    }
    view->offset = PSTK__TFRECORD_HEAD;
    return r < 0 ? r : check_view(parse, 0, wrong);
}

static int has_same_key(const struct pstk__feature *a, const struct pstk__feature *b)
{
    return a->key_size == b->key_size && memcmp(a->key, b->key, a->key_size) == 0;
}

static int view_feature(const struct parse *parse, uint32_t i, const struct pstk__feature *feature)
{
    const struct pstk__inferred_schema *found = &pstk__indexed_index(parse->source)->found;
    struct pstk__field_view *view = &parse->out->fields[i];
    pstk__tfrecord_view(view, &found->fields[i], feature->data, feature->size);
    view->offset = (uint32_t)(view->data - parse->data) + PSTK__TFRECORD_HEAD;
    return check_view(parse, i, NULL);
}

/* View the features of an Example. If several have one key, the last counts, as protobuf reads a
 * map. A missing field has its default, or a view that reports the error when it is read. A feature
 * without a list counts as missing, as in TensorFlow. */
static int view_features(const struct parse *parse)
{
    const struct pstk__inferred_schema *found = &pstk__indexed_index(parse->source)->found;
    struct pstk__record *out = parse->out;
    struct pstk__example example;
    struct pstk__feature feature,
        last[PSTK_MAX_FIELDS]; /* for each field: the last feature with its key */
    uint64_t seen = 0;
    uint32_t guess = 0;
    int r = check_data(parse);
    if (r < 0)
        return r;
    if (!pstk__example_begin(&example, parse->data, parse->length))
        return fail_data(parse, "its data is not a tf.train.Example, unlike that of other records");
    while ((r = pstk__example_next(&example, &feature)) > 0) {
        const int i = pstk__tfrecord_find(found, feature.key, feature.key_size, guess);
        if (i < 0)
            continue;
        guess = (uint32_t)i + 1;
        if ((seen >> i & 1) && !has_same_key(&last[i], &feature))
            return pstk__record_fail(out, (uint32_t)i, PSTK_EBADMSG, PSTK_STAGE_RECORD, parse->err,
                                     "two features of the record have keys that give this name");
        seen |= UINT64_C(1) << i;
        last[i] = feature;
    }
    if (r < 0)
        return fail_data(parse, "its data is not a tf.train.Example, unlike that of other records");
    for (uint32_t i = 0; r == 0 && i < out->n_fields; i++)
        if ((seen >> i & 1) && last[i].size > 0)
            r = view_feature(parse, i, &last[i]);
        else
            pstk__tfrecord_defaults_view(((const struct pstk__indexed *)parse->source->state)->own,
                                         found, i, parse->data, &out->fields[i]);
    return r;
}

static int tfrecord_parse(const struct pstk__source *source, const struct pstk__sample_location *at,
                          uint64_t fields, const struct pstk__extent *extents, uint32_t n_extents,
                          struct pstk__record *out, struct pstk_error *err)
{
    (void)fields;
    (void)n_extents;
    pstk__indexed_begin(source, at, extents[0].offset, out);
    if (extents[0].size == 0)
        return 0;
    const struct parse parse = {.source = source,
                                .at = at,
                                .out = out,
                                .err = err,
                                .data = extents[0].data + PSTK__TFRECORD_HEAD,
                                .length = extents[0].size - PSTK__TFRECORD_FRAME};
    const int r = check_head(&parse, &extents[0]);
    if (r < 0)
        return r;
    return pstk__indexed_index(source)->found.fields[0].coding == PSTK__TFRECORD_WHOLE
               ? view_whole(&parse)
               : view_features(&parse);
}

const struct pstk__format pstk__format_tfrecord = {
    .name = "tfrecord",
    .needs = "TFRecord files",
    .names = NAMED_NAMES " " PACKED_NAMES,
    .other_names = SHARD_NAMES,
    .file = "TFRecord file",
    .checksum = PSTK__CHECKSUM_CRC32C,
    .probe = tfrecord_probe,
    .open = tfrecord_open,
    .close = pstk__indexed_close,
    .index = pstk__indexed_index,
    .locate = pstk__indexed_locate,
    .range = pstk__indexed_range,
    .page = pstk__indexed_page,
    .page_check = pstk__indexed_page_check,
    .extent = tfrecord_extent,
    .parse = tfrecord_parse,
    .file_name = pstk__indexed_file_name,
    .file_path = pstk__indexed_file_path,
    .file_check = pstk__indexed_file_check,
};
