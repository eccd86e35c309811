/* SPDX-License-Identifier: Apache-2.0 */
#include "format/tfrecord/scan.h"

#include "base/error.h"
#include "format/tfrecord/example.h"
#include "format/tfrecord/frame.h"
#include "format/tfrecord/walk.h"

uint32_t pstk__tfrecord_n_columns(const struct pstk__inferred_schema *found)
{
    (void)found;
    return PSTK__TFRECORD_N_COLUMNS;
}

/* A scan of a file. */
struct scan {
    struct pstk__tfrecord_walk walk;
    struct pstk__inferred_schema *found;
    uint32_t guess; /* likely field of the next feature */
    uint64_t has;   /* fields of the record so far, a bit each; if entries have one key, the last
                       counts */
    int is_damaged; /* 1: the checksum of the record's data is wrong */
};

/* Fail because none of the first records has this key, unless the record is damaged. */
static int fail_key(struct scan *scan, const uint8_t *key, uint64_t key_size)
{
    char name[PSTK_MAX_NAME];
    const uint8_t *data;
    if (scan->is_damaged) /* the data was read for one of its keys already */
        return 0;
    pstk__tfrecord_name(name, key, key_size < PSTK_MAX_NAME ? key_size : PSTK_MAX_NAME - 1);
    const int r = pstk__tfrecord_walk_data(&scan->walk, &data);
    scan->is_damaged = r == 0 && !pstk__tfrecord_intact(data, scan->walk.length);
    if (r < 0 || scan->is_damaged)
        return r;
    return pstk__tfrecord_walk_fail(
        &scan->walk, PSTK_EBADMSG,
        "none of the first records, which gave the fields, has its feature %s: name that in "
        "fields, or write the records again without it",
        name);
}

/* Find the field of a feature: *field, or NULL if it has none. */
static int find_field(struct scan *scan, const struct pstk__feature *feature,
                      struct pstk__index_field **field)
{
    const int i = pstk__tfrecord_find(scan->found, feature->key, feature->key_size, scan->guess);
    *field = i < 0 ? NULL : &scan->found->fields[i];
    scan->guess = (uint32_t)(i + 1);
    return i >= 0 || feature->size == 0 ? 0 : fail_key(scan, feature->key, feature->key_size);
}

/* Note whether the record has a field. */
static void note(struct scan *scan, const struct pstk__index_field *field, int has)
{
    const uint64_t bit = UINT64_C(1) << (field - scan->found->fields);
    scan->has = has ? scan->has | bit : scan->has & ~bit;
}

/* Add all features of a message to the sizes of their fields. */
static int measure_features(struct scan *scan, struct pstk__example *example)
{
    struct pstk__feature feature;
    struct pstk__index_field *field;
    int r = 0;
    while (r == 0 && pstk__example_next(example, &feature) > 0) {
        r = find_field(scan, &feature, &field);
        if (field)
            note(scan, field, pstk__tfrecord_measure(field, feature.data, feature.size));
    }
    return r;
}

static int measure_small(struct scan *scan)
{
    const uint8_t *data;
    struct pstk__example example;
    const int r = pstk__tfrecord_walk_data(&scan->walk, &data);
    if (r < 0 || !pstk__example_begin(&example, data, scan->walk.length))
        return r;
    scan->guess = 0;
    return measure_features(scan, &example);
}

/* ---- large records --------------------------------------------------------------------------- */

/* Read `size` bytes from `at` on. */
static int read_bytes(struct scan *scan, uint64_t at, uint64_t size, struct pstk__wire *wire)
{
    scan->walk.reader.at = at;
    const int64_t n = pstk__file_reader_fill(&scan->walk.reader, size);
    if (n < 0)
        return (int)n;
    if ((uint64_t)n < size)
        return pstk__tfrecord_walk_fail(&scan->walk, PSTK_EBADMSG,
                                        "the file became shorter while it was indexed");
    wire->at = pstk__file_reader_bytes(&scan->walk.reader);
    wire->end = wire->at + size;
    return 0;
}

/* A field of a message that is read in pieces. */
struct field {
    uint64_t tag, size;     /* size: of bytes; 0: the field has another coding */
    uint64_t head;          /* bytes of its tag and size, or of the whole field */
    struct pstk__wire wire; /* bytes after the head, at most a page, borrowed */
};

/* Read the head of the field at `at`, in a message that ends at `end`. A group is read in full,
 * because it has no size. 1: done; 0: there is no field. */
static int read_head(struct scan *scan, uint64_t at, uint64_t end, struct field *field)
{
    const uint64_t pieces[] = {PSTK__FILE_READER_HEADER, end - at};
    for (uint32_t i = 0; i < 2; i++) {
        const uint64_t size = pieces[i] < end - at ? pieces[i] : end - at;
        const int r = read_bytes(scan, at, size, &field->wire);
        if (r < 0)
            return r;
        const uint8_t *begin = field->wire.at;
        const int is_there = pstk__wire_field(&field->wire, &field->tag, &field->size);
        field->head = (uint64_t)(field->wire.at - begin);
        if (is_there || !PSTK__WIRE_IS_GROUP(field->tag) || size == end - at)
            return is_there && field->size <= end - at - field->head;
    }
    return 0;
}

/* 1: an entry that begins with these bytes has one value of `*size` bytes. */
static int is_one_value(struct pstk__wire entry, uint64_t entry_size, struct pstk__feature *feature,
                        uint64_t *size)
{
    static const uint8_t tags[] = {0x12, 0x0a, 0x0a}; /* Feature, BytesList, value */
    const uint8_t *begin = entry.at;
    if (!pstk__wire_open(&entry, 0x0a, &feature->key_size) ||
        feature->key_size > (uint64_t)(entry.end - entry.at))
        return 0;
    feature->key = entry.at;
    entry.at += feature->key_size;
    for (uint32_t i = 0; i < sizeof tags; i++)
        if (!pstk__wire_open(&entry, tags[i], size) ||
            *size != entry_size - (uint64_t)(entry.at - begin))
            return 0;
    feature->size = *size + 1;
    return 1;
}

/* Measure the field at *at in Features that end at `end`, and step past it. 1: done; 0: it is no
 * field. */
static int measure_entry(struct scan *scan, uint64_t *at, uint64_t end)
{
    struct field entry;
    struct pstk__feature feature;
    struct pstk__index_field *field;
    uint64_t size;
    const uint64_t begin = *at;
    int r = read_head(scan, begin, end, &entry);
    if (r <= 0)
        return r;
    const uint64_t whole = entry.head + entry.size;
    *at += whole;
    if (entry.tag != PSTK__WIRE_FIRST)
        return 1;
    if (whole > PSTK__FILE_READER_SMALL && is_one_value(entry.wire, entry.size, &feature, &size)) {
        r = find_field(scan, &feature, &field);
        if (field) {
            pstk__tfrecord_measure_one(field, size);
            note(scan, field, 1);
        }
        return r < 0 ? r : 1;
    }
    struct pstk__example example = {.rest = {NULL, NULL}};
    r = read_bytes(scan, begin, whole, &example.entries);
    if (r < 0)
        return r;
    example.rest.at = example.rest.end = example.entries.end;
    r = measure_features(scan, &example);
    return r < 0 ? r : 1;
}

/* Measure the field at *at in an Example that ends at `end`, and step past it. 1: done; 0: it is no
 * field. */
static int measure_field(struct scan *scan, uint64_t *at, uint64_t end)
{
    struct field field;
    int r = read_head(scan, *at, end, &field);
    if (r <= 0)
        return r;
    *at += field.head;
    const uint64_t field_end = *at + field.size;
    while (field.tag == PSTK__WIRE_FIRST && r > 0 && *at < field_end)
        r = measure_entry(scan, at, field_end);
    *at = field_end;
    return r;
}

/* Measure the features of a record, without reading large values. */
static int measure_large(struct scan *scan)
{
    uint64_t at = scan->walk.begin + PSTK__TFRECORD_HEAD;
    const uint64_t end = at + scan->walk.length;
    int r = 1;
    scan->guess = 0;
    while (r > 0 && at < end)
        r = measure_field(scan, &at, end);
    return r < 0 ? r : 0;
}

/* ---- all ------------------------------------------------------------------------------------- */

static int add_record(struct scan *scan, struct pstk__index_rows *rows)
{
    struct pstk__inferred_schema *found = scan->found;
    const struct pstk__tfrecord_walk *walk = &scan->walk;
    const uint64_t size = walk->next - walk->begin;
    const uint64_t cells[PSTK__TFRECORD_N_COLUMNS] = {
        [PSTK__TFRECORD_BEGIN] = walk->begin, [PSTK__TFRECORD_SIZE] = size};
    if (pstk__index_rows_add(rows, cells) < 0)
        return pstk__fail(walk->reader.err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                          "no memory for the index of %s", walk->reader.scan->path);
    found->max_record = size > found->max_record ? size : found->max_record;
    scan->has = found->fields[0].coding == PSTK__TFRECORD_WHOLE;
    scan->is_damaged = 0;
    int r = 0;
    if (scan->has)
        pstk__tfrecord_measure_one(&found->fields[0], walk->length);
    else
        r = walk->length > PSTK__FILE_READER_SMALL ? measure_large(scan) : measure_small(scan);
    for (uint32_t i = 0; i < found->n_fields; i++)
        found->fields[i].n += scan->has >> i & 1;
    return r;
}

int pstk__tfrecord_scan(const struct pstk__scan *of, struct pstk__index_rows *rows,
                        struct pstk__inferred_schema *found, struct pstk_error *err)
{
    struct scan scan;
    scan.found = found;
    scan.guess = 0;
    scan.has = 0;
    scan.is_damaged = 0;
    int r = pstk__tfrecord_walk_open(&scan.walk, of, err);
    if (r == 0)
        r = 1;
    while (r > 0 && (r = pstk__tfrecord_walk_next(&scan.walk)) > 0) {
        const int added = add_record(&scan, rows);
        r = added < 0 ? added : 1;
        rows->n -=
            added < 0 && rows->n == scan.walk.n; /* the record is damaged, but its row was added */
    }
    pstk__tfrecord_walk_close(&scan.walk);
    return r;
}
